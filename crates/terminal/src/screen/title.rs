//! What the title of the terminal says.
//!
//! Since 0.25 the CLI writes its state into the title: `◇  Ready (dir)`, `✦  Working… (dir)`, `✋  Action Required (dir)`,
//! `⏲  Working…` for a silent shell, padded with blanks. It is the earliest sign of work. It is also wrong at times:
//! 0.61.0 says `Ready` while the trust, login and loop dialogs wait, and `Working…` while the quota dialog does.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Title {
    Ready,
    Working,
    ActionRequired,
    /// No title, one that somebody else set, or one from which the CLI was told to leave its state out.
    Silent,
}

impl Title {
    pub fn read(title: Option<&str>) -> Title {
        match title.and_then(|title| title.trim_start().chars().next()) {
            Some('◇') => Title::Ready,
            Some('✦' | '⏲') => Title::Working,
            Some('✋') => Title::ActionRequired,
            _ => Title::Silent,
        }
    }
}
