//! `alhena completions` and `alhena man`

use std::process::Command;
use std::time::Duration;

use alhena_testbed::run_bounded;

use crate::common::Desk;

#[test]
fn every_shell_gets_completions_for_every_command() {
    let desk = Desk::new();
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let seen = desk.alhena(&["completions", shell]);
        assert_eq!((seen.code(), seen.stderr.as_str()), (Some(0), ""), "{shell}");
        for word in ["run", "parse", "doctor", "--approval", "--offline"] {
            // fish writes long options without their dashes.
            assert!(seen.stdout.contains(word.trim_start_matches("--")), "{shell}: {word}");
        }
    }
}

#[test]
fn shells_accept_their_completions() {
    let desk = Desk::new();
    for (shell, check) in [("bash", &["-n"][..]), ("zsh", &["-n"]), ("fish", &["--no-execute"])] {
        let script = desk.write(shell, desk.alhena(&["completions", shell]).stdout);
        let Ok(done) = run_bounded(Command::new(shell).args(check).arg(&script), Duration::from_secs(60))
        else {
            // bash is everywhere; the others are checked where they are.
            assert_ne!(shell, "bash");
            continue;
        };
        assert!(done.succeeded(), "{shell}: {}", done.stderr_text());
    }
}

#[test]
fn bash_completes_a_command() {
    let desk = Desk::new();
    desk.write("completions", desk.alhena(&["completions", "bash"]).stdout);
    let script = "source completions; COMP_WORDS=(alhena par); COMP_CWORD=1; _alhena alhena par alhena; echo \"${COMPREPLY[@]}\"";
    let done = run_bounded(
        Command::new("bash").args(["-c", script]).current_dir(desk.work()),
        Duration::from_secs(60),
    );
    assert_eq!(done.unwrap().stdout_text(), "parse\n");
}

#[test]
fn approval_modes_are_completed() {
    let desk = Desk::new();
    assert!(desk.alhena(&["completions", "bash"]).stdout.contains("default auto-edit yolo plan"));
    assert!(desk.alhena(&["completions", "zsh"]).stdout.contains(r"auto-edit\:"));
    // Other hosts' names are taken all the same.
    for name in ["acceptEdits", "full-auto", "suggest"] {
        let seen = desk.alhena(&["run", "--gemini", "/nowhere/gemini", "--approval", name, "hello"]);
        assert_eq!(seen.code(), Some(3), "{seen}");
    }
}

#[test]
fn the_manual_has_a_page_and_one_per_command() {
    let desk = Desk::new();
    let page = desk.alhena(&["man"]);
    assert_eq!(page.code(), Some(0));
    assert!(page.stdout.contains(".TH alhena 1") && page.stdout.contains("alhena\\-run(1)"), "{page}");
    assert_eq!(desk.alhena(&["man", "--dir", "pages"]).to_string(), "[exit 0]");
    for name in ["alhena.1", "alhena-run.1", "alhena-parse.1", "alhena-doctor.1"] {
        let text = std::fs::read_to_string(desk.work().join("pages").join(name)).unwrap();
        assert!(text.contains(".SH SYNOPSIS"), "{name}");
    }
    desk.write("file", "");
    let refused = desk.alhena(&["man", "--dir", "file"]);
    assert_eq!((refused.code(), refused.stdout.as_str()), (Some(1), ""));
}
