//! The real CLI comes out of the cache and runs in a private home.

use std::process::Command;
use std::time::Duration;

use alhena_testbed::home::{PrivateHome, Trust};
use alhena_testbed::{Finished, RealCli, diff, run_bounded, versions};

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

// The CLI's own fake model needs no server, so this also shows that the home's key and trust are enough for a run.
#[test]
fn a_trusted_home_is_enough_for_a_run() {
    let cli = RealCli::get("0.61.0").unwrap();
    let home = PrivateHome::new().unwrap();
    let response = r#"{"method":"generateContentStream","response":[{"candidates":[{"content":{"parts":[{"text":"It works."}],"role":"model"},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":3,"candidatesTokenCount":2,"totalTokenCount":5}}]}"#;
    let file = home.write("responses.ndjson", response).unwrap();
    let file = file.to_str().unwrap();
    let done = gemini(&cli, &home, &["-m", "gemini-2.5-flash", "-p", "Hello", "--fake-responses", file]);
    assert_eq!(
        (done.stdout_text().as_str(), done.status.code()),
        ("It works.\n", Some(0)),
        "{}",
        done.stderr_text()
    );
}

#[test]
fn an_untrusted_home_is_refused_by_the_cli() {
    let cli = RealCli::get("0.61.0").unwrap();
    let home = PrivateHome::with(Trust::Untrusted).unwrap();
    let done = gemini(&cli, &home, &["-p", "Hello", "-o", "stream-json"]);
    assert_eq!((done.stdout_text().as_str(), done.status.code()), ("", Some(55)), "{}", done.stderr_text());
}

#[test]
fn a_run_of_the_bare_cli_shows_in_the_snapshot() {
    let cli = RealCli::get("0.61.0").unwrap();
    let home = PrivateHome::with(Trust::Untrusted).unwrap();
    let before = home.snapshot().unwrap();
    assert_eq!(diff(&before, &home.snapshot().unwrap()), []);
    gemini(&cli, &home, &["-p", "Hello"]);
    assert_ne!(diff(&before, &home.snapshot().unwrap()), []);
}

#[test]
fn a_version_that_does_not_exist_is_an_error_that_says_so() {
    let error = RealCli::get("0.0.0-no-such-version").unwrap_err().to_string();
    assert!(error.starts_with("`npm install @google/gemini-cli@0.0.0-no-such-version` failed"), "{error}");
    assert!(!alhena_testbed::cache::root().join("gemini-cli/0.0.0-no-such-version").exists());
}
