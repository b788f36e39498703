//! What a program takes on that depends on the library.

use std::collections::BTreeSet;
use std::process::Command;

use alhena_testbed::cache::workspace;

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
