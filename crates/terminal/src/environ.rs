//! The environment of an agent that runs.
//!
//! Gemini CLI 0.61.0 takes everything that looks like a secret, API keys too, out of the environment of the MCP servers that
//! it starts. A server that launches further agents needs what the agent itself was given.

use std::ffi::OsString;

use alhena_agent::env::Environment;

use crate::terminal::Terminal;

impl Terminal {
    /// What the CLI in this terminal was given. None when it does not run, and where the system does not tell.
    #[must_use]
    pub fn environment(&self) -> Option<Environment> {
        let cli = self.record().ok()?.cli.filter(|cli| cli.alive())?;
        let bytes = std::fs::read(format!("/proc/{}/environ", cli.pid)).ok()?;
        Some(parse(&bytes))
    }
}

fn parse(bytes: &[u8]) -> Environment {
    let variables = bytes.split(|byte| *byte == 0).filter_map(|variable| {
        let at = variable.iter().position(|byte| *byte == b'=').filter(|at| *at > 0)?;
        let (name, value) = variable.split_at_checked(at)?;
        Some((os_string(name), os_string(value.get(1..)?)))
    });
    variables.collect()
}

fn os_string(bytes: &[u8]) -> OsString {
    std::os::unix::ffi::OsStringExt::from_vec(bytes.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_told_apart_by_zero_bytes_and_may_hold_anything_else() {
        let expected: Environment = [("A", "1=2"), ("EMPTY", ""), ("LINES", "x\ny")]
            .map(|(name, value)| (name.into(), value.into()))
            .into_iter()
            .collect::<Vec<(OsString, OsString)>>()
            .into_iter()
            .collect();
        assert_eq!(parse(b"A=1=2\0EMPTY=\0=odd\0junk\0LINES=x\ny\0"), expected);
    }
}
