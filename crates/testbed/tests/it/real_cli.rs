//! The real CLI comes out of the cache and runs in a private home.

use std::process::Command;
use std::time::Duration;

use alhena_testbed::home::PrivateHome;
use alhena_testbed::{Finished, RealCli, run_bounded, versions};

const LIMIT: Duration = Duration::from_secs(120);
const NO_SERVER: &str = "http://127.0.0.1:9";

fn gemini(cli: &RealCli, home: &PrivateHome, arguments: &[&str]) -> Finished {
    let mut command = Command::new("node");
    command
        .arg(&cli.entry)
        .args(arguments)
        .env_clear()
        .envs(home.env(NO_SERVER))
        .env("GEMINI_CLI_NO_RELAUNCH", "1");
    run_bounded(command.current_dir(home.workspace()), LIMIT).unwrap()
}

#[test]
fn every_version_says_its_own_name() {
    for version in versions() {
        let cli = RealCli::get(&version).unwrap();
        let home = PrivateHome::new().unwrap();
        let done = gemini(&cli, &home, &["--version"]);
        assert_eq!(
            (done.stdout_text().trim(), done.status.code()),
            (version.as_str(), Some(0)),
            "{}",
            done.stderr_text()
        );
        assert!(cli.bin.exists());
    }
}

#[test]
fn a_version_that_does_not_exist_is_an_error_that_says_so() {
    let error = RealCli::get("0.0.0-no-such-version").unwrap_err().to_string();
    assert!(error.starts_with("`npm install @google/gemini-cli@0.0.0-no-such-version` failed"), "{error}");
    assert!(!alhena_testbed::cache::root().join("gemini-cli/0.0.0-no-such-version").exists());
}
