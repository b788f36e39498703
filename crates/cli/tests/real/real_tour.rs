//! The README's tour, line by line as it is printed, in a folder that nobody trusts.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::lab::{ALHENA, Lab};
use alhena_scripted::{Scenario, Turn};
use alhena_testbed::{run_bounded, tools};

/// The lines of the block below `## A tour`.
fn tour() -> Vec<String> {
    let readme = include_str!("../../../../README.md");
    let (_, rest) = readme.split_once("## A tour").unwrap();
    let (_, block) = rest.split_once("```sh\n").unwrap();
    let (block, _) = block.split_once("```").unwrap();
    block.lines().filter(|line| !line.trim().is_empty()).map(str::to_owned).collect()
}

#[test]
fn every_line_of_the_readmes_tour_works_as_printed() {
    let lab = Lab::untrusted("tour", "0.61.0", Scenario::new().turn(Turn::say("Hello there.")));
    lab.home.write("code.txt", "one\n").unwrap();
    let git = |arguments: &[&str]| {
        let mut git = Command::new("git");
        git.current_dir(lab.workspace()).args(["-c", "user.name=t", "-c", "user.email=t@t"]).args(arguments);
        assert!(git.stdout(Stdio::null()).status().unwrap().success());
    };
    git(&["init", "-q"]);
    git(&["add", "-A"]);
    git(&["commit", "-q", "-m", "x"]);
    lab.home.write("code.txt", "two\n").unwrap();

    // Nothing but the environment is made for the test: the commands are on PATH.
    let tmux = tools::tmux().unwrap();
    let programs =
        [Path::new(ALHENA), &lab.gemini.path, &tmux].map(|program| program.parent().unwrap().to_owned());
    let path = std::env::var_os("PATH").unwrap();
    let path = std::env::join_paths(programs.into_iter().chain(std::env::split_paths(&path))).unwrap();
    let lines = tour();
    assert!(lines.len() >= 10, "{lines:?}");
    for line in lines {
        let mut command = Command::new("bash");
        command.env_clear().envs(lab.env.iter()).env("PATH", &path).env("TMUX_TMPDIR", lab.home.tmp());
        command.env("SHELL", "/bin/sh").args(["-euo", "pipefail", "-c", &line]);
        command.current_dir(lab.workspace()).stdin(Stdio::null());
        let done = run_bounded(&mut command, Duration::from_secs(180)).unwrap();
        let said = format!("{line}\n{}\n{}", done.stdout_text(), done.stderr_text());
        assert_eq!(done.status.code(), Some(0), "{said}");
        assert!(!done.stdout_text().trim().is_empty(), "{said}");
    }
    let mut end = Command::new(tmux);
    end.env("TMUX_TMPDIR", lab.home.tmp()).args(["-L", "alhena", "kill-server"]);
    assert!(end.status().unwrap().success(), "the terminal of the tour was there");
}
