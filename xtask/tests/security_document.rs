//! `docs/security.md` names the tests that prove its promises: each has to exist.
#![allow(clippy::unwrap_used, missing_docs)]

use std::collections::BTreeSet;

use alhena_testbed::cache::workspace;
use alhena_testbed::tools::files_under;

/// What stands between backquotes.
fn quoted(text: &str) -> BTreeSet<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

fn is_test_name(text: &str) -> bool {
    let is_word =
        |word: &str| !word.is_empty() && word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
    text.split('_').count() > 2 && text.split('_').all(is_word)
}

/// All sources: of the packages' directories and not of what was built or fetched.
fn sources() -> String {
    let directories = ["src", "tests", "crates", "xtask"].map(|name| workspace().join(name));
    let files = directories.iter().flat_map(|directory| files_under(directory));
    let rust = files.filter(|path| path.extension().is_some_and(|extension| extension == "rs"));
    rust.filter_map(|path| std::fs::read_to_string(path).ok()).collect()
}

#[test]
fn every_test_and_every_attack_that_the_security_document_names_exists() {
    let document = std::fs::read_to_string(workspace().join("docs/security.md")).unwrap();
    let sources = sources();
    let tests = quoted(&document).into_iter().filter(|name| is_test_name(name)).collect::<Vec<_>>();
    assert!(tests.len() > 20, "{tests:?}");
    let is_test = |name: &str| sources.contains(&format!("fn {name}("));
    let missing: Vec<&str> = tests.into_iter().filter(|name| !is_test(name)).collect();
    assert_eq!(missing, Vec::<&str>::new());

    let kinds = std::fs::read_to_string(workspace().join("xtask/src/torture/plan.rs")).unwrap();
    let attacks = quoted(&document).into_iter().filter_map(|name| name.strip_prefix("torture "));
    let unknown: Vec<&str> = attacks.filter(|name| !kinds.contains(&format!("\"{name}\""))).collect();
    assert_eq!(unknown, Vec::<&str>::new());
}
