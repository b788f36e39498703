//! Command lines: those that hints name, so that they can be pasted as they are, and words in quotes.
//!
//! A hint names the server and the tmux that the person named; without them it would be about other terminals.

use crate::terminal::Terminal;
use crate::terminals::{SERVER, Terminals};

impl Terminals {
    /// A command of `alhena terminal` for these terminals, for a shell.
    #[must_use]
    pub fn command_line(&self, words: &[&str]) -> String {
        let tmux = &self.inner.tmux;
        let named = tmux.named().map(|path| path.to_string_lossy());
        let mut line = vec!["alhena", "terminal"];
        if tmux.server() != SERVER {
            line.extend(["--server", tmux.server()]);
        }
        if let Some(path) = &named {
            line.extend(["--tmux", path]);
        }
        line.extend(words);
        line.into_iter().map(quoted_if_needed).collect::<Vec<_>>().join(" ")
    }
}

impl Terminal {
    /// A command for this terminal, for a shell.
    #[must_use]
    pub fn command_line(&self, command: &str, more: &[&str]) -> String {
        self.terminals.command_line(&[&[command, self.name()], more].concat())
    }

    /// The command that brings it back with a session.
    #[must_use]
    pub fn resume_line(&self, session: &str) -> String {
        self.terminals.command_line(&["launch", "--name", self.name(), "--resume", session])
    }
}

/// A word that no shell, and no tmux, takes for anything else.
pub(crate) fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

fn quoted_if_needed(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./,:=@%+".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => quoted(word),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terminals::Options;

    fn terminals(server: &str, tmux: Option<&str>) -> (tempfile::TempDir, Terminals) {
        let state = tempfile::tempdir().unwrap();
        let options = Options {
            server: server.to_owned(),
            tmux: tmux.map(Into::into),
            state: Some(state.path().to_owned()),
            ..Options::default()
        };
        (state, Terminals::open(options).unwrap())
    }

    #[test]
    fn a_hint_names_the_server_and_the_tmux_that_were_named_in_words_that_a_shell_takes() {
        let (_state, there) = terminals("other", Some("/opt/my tools/tmux"));
        assert_eq!(
            there.command_line(&["answer", "one", "it's"]),
            "alhena terminal --server other --tmux '/opt/my tools/tmux' answer one 'it'\\''s'"
        );
        let (_state, usual) = terminals(SERVER, Some("/t"));
        assert_eq!(usual.command_line(&["list"]), "alhena terminal --tmux /t list");
        assert_eq!(quoted_if_needed(""), "''");
    }

    #[test]
    fn no_hint_is_written_by_hand() {
        let own = concat!("`alhena ", "terminal ");
        let mut files = vec![std::path::PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/src"))];
        while let Some(path) = files.pop() {
            if path.is_dir() {
                files.extend(std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
            let by_hand: Vec<&str> =
                code.filter(|line| line.contains(own) && !line.contains(" here ")).collect();
            assert!(by_hand.is_empty(), "{}: {by_hand:#?}", path.display());
        }
    }
}
