//! The real npm installs the real Gemini CLI into a private directory, and it starts. Needs Node, npm and its registry, as
//! `alhena install` does.
#![cfg(unix)]

use std::ffi::OsString;
use std::fs;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use alhena_agent::env::{self, Environment};
use alhena_agent::install::{Installer, PINNED, Progress};
use alhena_agent::{Finder, PACKAGE, Place, VersionSource};

/// What a command prints, if it ends well and in time.
fn output(command: &[OsString], variables: &[(&str, OsString)]) -> String {
    let home = tempfile::tempdir().unwrap();
    let mut child = Command::new(&command[0])
        .args(&command[1..])
        .envs(variables.iter().map(|(name, value)| (name, value)))
        .env(env::GEMINI_CLI_HOME, home.path())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .process_group(0)
        .spawn()
        .unwrap();
    let start = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if start.elapsed() > Duration::from_secs(120) {
            let group = rustix::process::Pid::from_child(&child);
            rustix::process::kill_process_group(group, rustix::process::Signal::KILL).unwrap();
            child.wait().unwrap();
            panic!("{command:?} did not end");
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", output.status);
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn installs_the_pinned_version_privately_and_both_ways_to_start_it_work() {
    let root = tempfile::tempdir().unwrap();
    let mut environment = Environment::of_process();
    environment.set(env::ALHENA_HOME, root.path());
    let npmrc = environment.home().map(|home| home.join(".npmrc"));
    let before = npmrc.as_ref().and_then(|path| fs::read(path).ok());

    let mut started = Vec::new();
    let installer = Installer::new().env(environment.clone()).limit(Duration::from_secs(400));
    let gemini = installer
        .install(None, |step| {
            if let Progress::Started { version, .. } = step {
                started.push(version);
            }
        })
        .unwrap();
    assert_eq!(started, [PINNED]);
    assert_eq!((gemini.place, gemini.version_source), (Place::Installed, VersionSource::PackageJson));
    assert_eq!((gemini.version.clone(), gemini.package_name.as_deref()), (PINNED, Some(PACKAGE)));
    assert!(gemini.path.starts_with(root.path()), "{}", gemini.path.display());
    assert_eq!(npmrc.as_ref().and_then(|path| fs::read(path).ok()), before);

    // The second time npm is not needed, nor anything else but the files.
    let again = installer.install(None, |step| panic!("{step:?}")).unwrap();
    assert_eq!(again, gemini);
    let installed = installer.installed();
    assert_eq!(installed.iter().map(|one| one.version.clone()).collect::<Vec<_>>(), [PINNED]);
    let found = Finder::new().env(environment.clone()).path(&gemini.path).find().unwrap();
    assert_eq!(found.version, PINNED);

    let version = PINNED.to_string();
    let bare = vec![gemini.path.clone().into_os_string(), "--version".into()];
    assert_eq!(output(&bare, &[]).trim(), version);
    if cfg!(target_os = "linux") {
        let fast = gemini.fast_start(&environment, &serde_json::json!({})).unwrap();
        let mut command = fast.command();
        command.push("--version".into());
        assert_eq!(output(&command, &fast.variables()).trim(), version);
    }
    assert!(installer.uninstall(&PINNED).unwrap());
    assert_eq!(installer.installed(), []);
}

#[test]
fn version_that_does_not_exist_is_npms_failure_in_its_own_words() {
    let root = tempfile::tempdir().unwrap();
    let mut environment = Environment::of_process();
    environment.set(env::ALHENA_HOME, root.path());
    let installer = Installer::new().env(environment).limit(Duration::from_secs(200));
    let error = installer.install(Some("99.0.0".parse().unwrap()), |_| {}).unwrap_err().to_string();
    assert!(error.starts_with("npm failed (exit status: 1)\n"), "{error}");
    assert!(error.contains("99.0.0"), "{error}");
    assert_eq!(installer.installed(), []);
}
