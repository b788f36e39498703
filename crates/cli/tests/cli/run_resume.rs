//! `alhena run --resume` with a session that is not there.

use alhena_testbed::Script;

use crate::directories::with_session_of_nope;
use crate::run::desk_with;

#[test]
fn a_session_of_another_folder_is_told_with_that_folder() {
    let (desk, _hostile) = desk_with(Script::normal());
    with_session_of_nope(&desk);
    let seen = desk.alhena(&["run", "--trust", "--resume", "12345678", "go on"]);
    let hint = "hint: That is a session of another folder: run it there, with -C /nope";
    assert!(seen.stderr.contains(hint), "{seen}");
}

#[test]
fn a_session_that_nobody_has_is_told_with_where_the_ids_are() {
    let (desk, _hostile) = desk_with(Script::normal());
    let seen = desk.alhena(&["run", "--trust", "--resume", "zzzz", "go on"]);
    assert!(seen.stderr.contains("error: no session zzzz in the project"), "{seen}");
    assert!(seen.stderr.contains("hint: `alhena sessions list` shows those of this folder"), "{seen}");
    let seen = desk.alhena(&["run", "--trust", "--resume=", "go on"]);
    assert!(
        seen.stderr.starts_with("error: --resume needs the id of a session, and it is empty\n"),
        "{seen}"
    );
    let seen = desk.alhena(&["run", "--trust", "--resume", "Explain"]);
    assert!(
        seen.stderr.starts_with(
            "error: the prompt is empty: \"Explain\" behind --resume was taken for the session\n"
        ),
        "{seen}"
    );
}
