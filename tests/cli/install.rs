//! `alhena install`, without fetching anything

use insta::assert_snapshot;

use crate::common::Desk;

#[test]
fn an_empty_list_says_what_to_do() {
    let desk = Desk::new();
    assert_snapshot!(desk.alhena(&["install", "--list"]), @r#"
    ---- stderr ----
    nothing is installed; `alhena install` fetches Gemini CLI 0.61.0
    [exit 0]
    "#);
    assert_snapshot!(desk.alhena(&["install", "--list", "--json"]), @r#"
    []
    [exit 0]
    "#);
}

#[test]
fn what_is_no_version_is_refused() {
    assert_snapshot!(Desk::new().alhena(&["install", "newest"]), @r#"
    ---- stderr ----
    error: "newest" is no version
    hint: Write it as 0.61.0.
    [exit 2]
    "#);
}

#[test]
fn what_is_not_installed_cannot_be_removed() {
    assert_snapshot!(Desk::new().alhena(&["install", "--remove", "0.61.0"]), @r#"
    ---- stderr ----
    error: 0.61.0 is not installed
    hint: `alhena install --list` shows what is.
    [exit 1]
    "#);
}

#[test]
fn without_npm_it_says_what_to_install() {
    // The PATH is empty.
    assert_snapshot!(Desk::new().alhena(&["install"]), @r#"
    ---- stderr ----
    error: Gemini CLI needs Node 20 or newer, and `node` is not on PATH
    hint: Install Node 20 or newer, with npm, and make sure that `node` and `npm` are on PATH.
    [exit 1]
    "#);
}

#[test]
fn what_npm_complains_of_is_said_once() {
    let desk = Desk::new();
    desk.program("node", "#!/bin/sh\necho v22.1.0\n");
    desk.program("npm", "#!/bin/sh\necho 'npm error code ENOTFOUND' >&2\nexit 1\n");
    let seen = desk.alhena(&["install", "0.61.0"]);
    assert_eq!(seen.code(), Some(1), "{seen}");
    assert_eq!(seen.stderr.matches("ENOTFOUND").count(), 1, "{seen}");
}
