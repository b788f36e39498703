//! Filled from the stream, which has of a result only what a person is shown (0.61.0).

use std::borrow::Cow;

use super::ToolEnd;
use crate::event::ToolError;
use crate::tool::Class;

/// What the CLI displays of a command that was blocked.
const BLOCKED: &str = "Blocked: command substitution detected in shell command.";
const EXITED: &str = "Command exited with code: ";
const KILLED: &str = "Command terminated by signal: ";

/// The kind of error of a call that was asked about and not allowed.
pub(crate) const REJECTED: &str = "rejected";

impl ToolEnd<'static> {
    /// The end of a call, as the stream tells it. It has a shell command's exit code only when the command printed nothing.
    pub(crate) fn shown(
        class: Class,
        success: bool,
        output: Option<String>,
        error: Option<ToolError>,
    ) -> Self {
        let mut end = Self { failed: !success && error.is_none(), ..Self::default() };
        match (error, &output) {
            (Some(error), _) => {
                end.refused = is_refusal(&error);
                (end.error, end.error_type) = (Some(error.message.into()), Some(error.kind.into()));
            }
            (None, Some(output)) if class == Class::Command => end.take_notice(output.trim_end()),
            (None, _) => {}
        }
        end.shown = output.map(Cow::Owned);
        end
    }

    /// The same, with what the session file says on top.
    pub(crate) fn learn(&mut self, fact: ToolEnd<'static>) {
        // What a person is shown of an error is the error again.
        self.shown = self.shown.take().filter(|_| fact.output.is_some() || fact.error.is_none());
        let ToolEnd { output, error, failed, refused, cancelled, exit_code, killed, .. } = fact;
        self.output = output;
        self.error = error.or(self.error.take());
        self.failed |= failed;
        self.refused |= refused;
        self.cancelled = (self.cancelled || cancelled) && !self.refused;
        self.killed |= killed;
        self.exit_code = self.exit_code.or(exit_code).filter(|_| !self.cancelled && !self.refused);
        (self.diff, self.created, self.before, self.after) =
            (fact.diff, fact.created, fact.before, fact.after);
        self.images = fact.images;
    }

    fn take_notice(&mut self, output: &str) {
        self.exit_code = output.strip_prefix(EXITED).and_then(|code| code.parse().ok());
        self.killed = output.starts_with(KILLED) && !output.contains('\n');
        self.refused = output == BLOCKED;
        self.cancelled = is_cancel(output) || is_automatic_cancel(output);
    }
}

/// Whether what is shown of a command is only how it ended.
pub(super) fn is_notice(shown: &str) -> bool {
    let shown = shown.trim_end();
    shown.is_empty() || (!shown.contains('\n') && (shown.starts_with(EXITED) || shown.starts_with(KILLED)))
}

fn is_cancel(output: &str) -> bool {
    output
        .strip_prefix("Command cancelled by user.")
        .is_some_and(|rest| rest.is_empty() || rest.starts_with("\n\nOutput before"))
}

fn is_automatic_cancel(output: &str) -> bool {
    let first = output.lines().next().unwrap_or("");
    first.starts_with("Command was automatically cancelled because it exceeded the timeout of ")
        && first.ends_with(" without output.")
}

/// Errors of calls that were turned away before anything ran.
fn is_refusal(error: &ToolError) -> bool {
    matches!(
        error.kind.as_str(),
        "tool_not_registered" | "policy_violation" | "invalid_tool_params" | REJECTED
    ) || needs_somebody(&error.message)
}

/// Whether a person would have had to say yes.
pub(crate) fn needs_somebody(message: &str) -> bool {
    message.contains("requires user confirmation")
}
