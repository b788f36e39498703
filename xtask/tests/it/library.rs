//! Checks the dependencies of the library, and which crates may contain which code.
use std::collections::BTreeSet;
use std::process::Command;

use alhena_testbed::cache::workspace;
use alhena_testbed::tools::files_under;

/// All packages that are built for a package, by cargo's own word.
fn built_for(package: &str) -> BTreeSet<String> {
    let mut tree = Command::new(env!("CARGO"));
    tree.args(["tree", "--offline", "--package", package, "--edges", "normal,build"]);
    tree.args(["--prefix", "none", "--format", "{p}"]);
    let done = tree.current_dir(workspace()).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let text = String::from_utf8(done.stdout).unwrap();
    text.lines().filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

#[test]
fn a_program_that_uses_the_library_builds_nothing_that_only_the_command_needs() {
    let (library, command) = (built_for("alhena"), built_for("alhena-cli"));
    for heavy in ["async-nats", "clap", "jsonschema", "ratatui", "rustls", "tokio", "tracing-subscriber"] {
        assert!(!library.contains(heavy), "the library builds {heavy}");
        assert!(command.contains(heavy), "{heavy} is no longer used: take it out of this list");
    }
    assert!(library.is_subset(&command));
}

/// Sources outside of `crates/sys` that may call the system directly. The list can only become shorter.
const EXCEPTIONS: &[&str] = &[
    // The stand-in does what no safe interface allows: it forks with threads, ignores signals, and leaves zombies.
    "crates/testbed/src/bin/hostile/",
];

/// Returns the lines of a source that only `crates/sys` may have. Tests may be left out on a platform.
fn operating_system_code(source: &str, is_test_file: bool) -> Vec<String> {
    let platforms = ["cfg(unix", "cfg(windows", "cfg(target_os", "cfg(not(", "cfg(any(", "cfg(all(", "cfg!("];
    let names = ["unix", "windows", "target_os", "target_family"];
    let mut in_tests = is_test_file;
    let mut found = Vec::new();
    for line in source.lines() {
        let code = line.split("//").next().unwrap_or_default();
        in_tests |= code.contains("cfg(test)");
        let calls =
            ["std::os::", "rustix::", "libc::", "signal_hook::"].iter().any(|name| code.contains(name));
        let chooses = platforms.iter().any(|form| code.contains(form))
            && names.iter().any(|name| code.contains(name))
            && !in_tests;
        if calls || chooses {
            found.push(line.trim().to_owned());
        }
    }
    found
}

#[test]
fn operating_system_code_is_only_in_sys() {
    let root = workspace();
    let (mut wrong, mut excepted) = (Vec::new(), BTreeSet::new());
    for path in files_under(&root.join("crates")) {
        let name = path.strip_prefix(&root).unwrap().to_str().unwrap();
        let mut parts = name.split('/').skip(1);
        let (of, place) = (parts.next(), parts.next());
        if of == Some("sys") || place != Some("src") || !name.ends_with(".rs") {
            continue;
        }
        let is_test_file = name.ends_with("/tests.rs") || name.contains("/tests/");
        let found = operating_system_code(&std::fs::read_to_string(&path).unwrap(), is_test_file);
        match EXCEPTIONS.iter().find(|exception| name.starts_with(*exception)) {
            Some(exception) if !found.is_empty() => drop(excepted.insert(*exception)),
            Some(_) => {}
            None => wrong.extend(found.into_iter().map(|line| format!("{name}: {line}"))),
        }
    }
    assert!(wrong.is_empty(), "call a function of alhena_sys instead:\n{}", wrong.join("\n"));
    assert_eq!(excepted, EXCEPTIONS.iter().copied().collect(), "remove exceptions that are not needed");
}

#[test]
fn operating_system_code_is_known_by_paths_and_attributes() {
    let found = |source: &str| operating_system_code(source, false).len();
    for wrong in
        ["use std::os::fd::AsFd;", "rustix::process::getpid()", "#[cfg(not(unix))]", "if cfg!(windows) {"]
    {
        assert_eq!(found(wrong), 1, "{wrong}");
    }
    assert_eq!(found("// std::os::fd\nlet libc = 1;\n#[cfg(test)]\n#[cfg(unix)]\nmod tests;"), 0);
    assert_eq!(found("#[cfg(test)]\nmod tests {\n    use std::os::fd::AsFd;\n}"), 1);
}
