//! `cargo xtask soak terminal`: the test of the same name, for longer, on whatever tmux is given.

use std::path::PathBuf;
use std::time::Duration;

use crate::commands::{cargo, follow};

const MINUTES: u64 = 10;
const TEST: &str = "soak::eight_loops_of_commands_at_once_end_neither_the_server_nor_an_agent";

/// Runs it.
pub fn command(words: &[&str]) -> Result<(), String> {
    let ["terminal", options @ ..] = words else { return Err("only `soak terminal` is known".to_owned()) };
    let (mut minutes, mut tmux) = (MINUTES, None);
    let mut rest = options.iter();
    while let Some(word) = rest.next() {
        let value = rest.next().ok_or_else(|| format!("{word} needs a value"))?;
        match *word {
            "--minutes" => minutes = value.parse().map_err(|_| format!("{value} is not a number"))?,
            "--tmux" => tmux = Some(PathBuf::from(value)),
            _ => return Err(format!("{word} is not known")),
        }
    }
    let mut test = cargo();
    test.args([
        "test",
        "--quiet",
        "--package",
        "alhena-cli",
        "--test",
        "real_terminal",
        "--",
        "--exact",
        TEST,
    ]);
    test.arg("--nocapture").env("ALHENA_SOAK_SECONDS", (minutes * 60).to_string());
    if let Some(tmux) = tmux {
        let tmux = std::fs::canonicalize(&tmux).map_err(|error| format!("{}: {error}", tmux.display()))?;
        test.env("ALHENA_SOAK_TMUX", tmux);
    }
    match follow(&mut test, Duration::from_secs(minutes * 60 + 1800), |_| ())? {
        true => Ok(()),
        false => Err("something ended".to_owned()),
    }
}
