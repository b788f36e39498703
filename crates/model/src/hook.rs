//! Those who decide while Gemini CLI works, as far as their words come back in what it says.

/// How a denial begins that nobody has decided: whoever should have failed, said something else, or took too long. The CLI hands
/// the reason of a denial on word for word, to the model and to whoever reads its output.
pub const UNDECIDED: &str = "nobody decided: ";

/// How a denial begins that a person who was asked did not say yes to.
pub const UNCONFIRMED: &str = "not confirmed: ";

/// Why nobody decided, if that is what a denial is for.
pub(crate) fn undecided(reason: &str) -> Option<&str> {
    reason.strip_prefix(UNDECIDED)
}

/// How a reason begins to end a run in which the CLI did something without a decision. It takes a hook that was killed for
/// consent (0.61.0).
pub const UNASKED: &str = "without a decision: ";

/// Returns what was done without a decision, if a run was ended for that.
pub(crate) fn unasked(reason: &str) -> Option<&str> {
    reason.strip_prefix(UNASKED)
}
