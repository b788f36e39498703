//! The tmux program and Alhena's own server in it.
//!
//! The user's tmux is never touched: every command names our server's socket, reads no configuration file, and does not
//! see the `TMUX` of a session that it may be called from. All terminals are windows of one session, because a control
//! client (tmux 3.3a) is told of the output of its own session only.

use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use alhena_agent::env::Environment;
use alhena_agent::programs::on_path;

use crate::error::{TerminalError, TerminalErrorKind};

/// The session that holds all terminals.
pub(crate) const SESSION: &str = "alhena";

/// The first tmux whose control clients can leave sizes alone.
const OLDEST: (u32, u32) = (3, 2);

/// A tmux server by its socket's name, which need not run.
#[derive(Clone, Debug)]
pub(crate) struct Tmux {
    program: PathBuf,
    /// Whether somebody said which program it is.
    named: bool,
    server: String,
    environment: Environment,
}

pub(crate) struct Outcome {
    pub(crate) success: bool,
    pub(crate) printed: String,
    pub(crate) said: String,
}

impl Tmux {
    pub(crate) fn find(
        program: Option<&Path>,
        server: &str,
        environment: &Environment,
    ) -> Result<Self, TerminalError> {
        let named = program.is_some();
        let program = program.map_or_else(|| on_path(environment, "tmux"), |path| Some(path.to_owned()));
        let Some(program) = program else {
            return Err(TerminalError::new(TerminalErrorKind::NoTmux, "tmux is not installed")
                .with_hint("Install tmux 3.2 or newer, or name another one (`tmux`)."));
        };
        let mut environment = environment.clone();
        environment.remove("TMUX").remove("TMUX_PANE");
        let tmux = Self { program, named, server: server.to_owned(), environment };
        Ok(tmux)
    }

    pub(crate) fn check(&self) -> Result<(), TerminalError> {
        let said = self.output(self.bare().arg("-V"), None)?;
        match version(&said) {
            Some(found) if found < OLDEST => {
                Err(TerminalError::new(TerminalErrorKind::NoTmux, format!("{} is too old", said.trim()))
                    .with_hint("Install tmux 3.2 or newer, or name another one (`tmux`)."))
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn program(&self) -> &Path {
        &self.program
    }

    pub(crate) fn named(&self) -> Option<&Path> {
        self.named.then_some(self.program.as_path())
    }

    pub(crate) fn server(&self) -> &str {
        &self.server
    }

    fn bare(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.env_clear().envs(self.environment.iter());
        command
    }

    pub(crate) fn command(&self) -> Command {
        let mut command = self.bare();
        command.args(["-u", "-L", &self.server, "-f", "/dev/null"]);
        command
    }

    pub(crate) fn run<W: AsRef<OsStr>>(
        &self,
        args: impl IntoIterator<Item = W>,
    ) -> Result<String, TerminalError> {
        self.output(self.command().args(args), None)
    }

    /// Runs commands and gives everything that they printed, also where one of them failed: tmux complains on either stream.
    pub(crate) fn outcome<W: AsRef<OsStr>>(
        &self,
        args: impl IntoIterator<Item = W>,
    ) -> Result<Outcome, TerminalError> {
        let mut command = self.command();
        let output = command.args(args).stdin(Stdio::null()).output().map_err(TerminalError::tmux)?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        Ok(Outcome {
            success: output.status.success(),
            printed: text(&output.stdout),
            said: text(&output.stderr),
        })
    }

    pub(crate) fn run_each(&self, commands: &[&[&str]]) -> Result<Vec<String>, TerminalError> {
        // What a pane shows cannot guess it.
        let between = format!("alhena-{}-{:?}", std::process::id(), std::time::Instant::now());
        let mut command = self.command();
        for (number, words) in commands.iter().enumerate() {
            if number > 0 {
                command.args([";", "display-message", "-p", &between, ";"]);
            }
            command.args(*words);
        }
        let said = self.output(&mut command, None)?;
        Ok(said.split(&format!("{between}\n")).map(str::to_owned).collect())
    }

    pub(crate) fn feed(&self, args: &[&str], input: &[u8]) -> Result<String, TerminalError> {
        self.output(self.command().args(args), Some(input))
    }

    fn output(&self, command: &mut Command, input: Option<&[u8]>) -> Result<String, TerminalError> {
        let failed = |error: std::io::Error| {
            TerminalError::new(
                TerminalErrorKind::NoTmux,
                format!("{} could not be run: {error}", self.program.display()),
            )
            .with_hint("Install tmux 3.2 or newer, or name another one (`tmux`).")
        };
        command.stdin(if input.is_some() { Stdio::piped() } else { Stdio::null() });
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(failed)?;
        if let (Some(input), Some(mut stdin)) = (input, child.stdin.take()) {
            // A tmux that goes away early says why on its standard error.
            let _broken = stdin.write_all(input);
        }
        let output = child.wait_with_output().map_err(failed)?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        Err(TerminalError::tmux(if said.is_empty() { output.status.to_string() } else { said }))
    }

    pub(crate) fn has_session(&self) -> bool {
        let target = format!("={SESSION}");
        self.run(["has-session", "-t", &target]).is_ok()
    }
}

/// `tmux 3.3a`, `tmux next-3.5`; none for what cannot be read, which is given the benefit of the doubt.
fn version(said: &str) -> Option<(u32, u32)> {
    let number = said.trim().rsplit([' ', '-']).next()?;
    let (major, minor) = number.split_once('.')?;
    let minor: String = minor.chars().take_while(char::is_ascii_digit).collect();
    Some((major.parse().ok()?, minor.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_as_tmux_prints_them() {
        assert_eq!(version("tmux 3.3a\n"), Some((3, 3)));
        assert_eq!(version("tmux next-3.5"), Some((3, 5)));
        assert_eq!(version("tmux openbsd"), None);
        assert!(version("tmux 2.9a").unwrap() < OLDEST);
    }

    #[test]
    fn a_missing_tmux_is_said_with_a_hint() {
        let error = Tmux::find(None, "x", &Environment::default()).unwrap_err();
        assert_eq!(error.kind, TerminalErrorKind::NoTmux);
        assert!(error.hint.contains("Install tmux"));
    }
}
