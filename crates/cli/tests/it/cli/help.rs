//! `alhena help` and `--help`

use std::fs;

use insta::assert_snapshot;

use crate::common::Desk;

#[test]
fn exit_codes_are_listed_with_the_kinds_of_failure() {
    assert_snapshot!(Desk::new().alhena(&["help", "exit-codes"]), @r#"
    Exit codes of alhena:
        0  success
        1  the run failed (input, config, sandbox, disk_full, api, invalid_response, crashed, protocol)
        2  wrong usage
        3  Gemini CLI not found (not_installed)
        4  authentication (auth)
        5  untrusted folder (untrusted)
        6  rate limited (rate_limited)
        7  turn limit (turn_limit)
        8  no answer that fits the schema (schema)
        9  budget used up (budget)
       10  an agent in a terminal waits for somebody to answer
      124  timeout or stall (timeout, stalled)
      130  cancelled (cancelled)
    [exit 0]
    "#);
}

#[test]
fn views_are_listed() {
    let seen = Desk::new().alhena(&["help", "views"]);
    assert_eq!(seen.code(), Some(0));
    let views =
        ["pretty", "text", "events", "outcome", "stream-json", "json", "aiwf", "openase", "promptfoo"];
    for view in views {
        let line = seen.stdout.lines().find(|line| line.starts_with(&format!("  {view} "))).unwrap();
        assert!(line.ends_with('.') && line.len() > view.len() + 10, "{line}");
    }
}

#[test]
fn every_variable_of_the_environment_is_explained() {
    let seen = Desk::new().alhena(&["help", "environment"]);
    for variable in alhena_agent::env::TABLE {
        assert!(
            seen.stdout.contains(&format!("\n  {}\n      {}", variable.name, variable.meaning)),
            "{}",
            variable.name
        );
    }
}

#[test]
fn an_unknown_topic_lists_the_known_ones() {
    assert_snapshot!(Desk::new().alhena(&["help", "everything"]), @r#"
    ---- stderr ----
    error: there is no command or topic "everything"
    hint: Topics are exit-codes, environment, views, config, hooks, budget, control, schema, batch, job and result; `alhena --help` lists the commands.
    [exit 2]
    "#);
}

#[test]
fn every_command_explains_itself() {
    let desk = Desk::new();
    let list = desk.alhena(&["help"]);
    assert_eq!((list.code(), list.stderr.as_str()), (Some(0), ""));
    assert_eq!(list.stdout, desk.alhena(&["--help"]).stdout);
    let commands: Vec<&str> = list
        .stdout
        .lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| !line.is_empty())
        // A longer description goes on below itself.
        .filter(|line| !line.starts_with("   "))
        .map(|line| line.split_whitespace().next().unwrap())
        .collect();
    for known in ["run", "parse", "detect", "capabilities", "doctor", "install", "completions", "man", "help"]
    {
        assert!(commands.contains(&known), "{known}");
    }
    for command in commands {
        let seen = desk.alhena(&["help", command]);
        assert_eq!(seen.code(), Some(0), "{command}");
        assert!(seen.stdout.contains(&format!("Usage: alhena {command}")), "{seen}");
        if command != "gemini" {
            // That one passes everything on.
            assert_eq!(desk.alhena(&[command, "--help"]).code(), Some(0), "{command}");
        }
    }
}

#[test]
fn no_command_at_all_shows_the_help_and_is_wrong_usage() {
    let seen = Desk::new().alhena(&[]);
    assert_eq!((seen.code(), seen.stdout.as_str()), (Some(2), ""));
    assert!(seen.stderr.contains("Usage: alhena"), "{seen}");
}

#[test]
fn the_version_is_the_packages() {
    let seen = Desk::new().alhena(&["--version"]);
    assert_eq!(
        (seen.stdout, seen.status.code()),
        (format!("alhena {}\n", env!("CARGO_PKG_VERSION")), Some(0))
    );
}

#[test]
fn subcommands_explain_themselves_too() {
    let desk = Desk::new();
    for (path, usage) in [
        (&["help", "sessions", "list"][..], "Usage: alhena sessions list"),
        (&["help", "terminal", "send"], "Usage: alhena terminal send"),
    ] {
        let seen = desk.alhena(path);
        assert_eq!(seen.code(), Some(0), "{seen}");
        assert!(seen.stdout.contains(usage), "{seen}");
    }
    assert_snapshot!(desk.alhena(&["help", "sessions", "lost"]), @r#"
    ---- stderr ----
    error: there is no command or topic "sessions lost"
    hint: Topics are exit-codes, environment, views, config, hooks, budget, control, schema, batch, job and result; `alhena --help` lists the commands.
    [exit 2]
    "#);
}

#[test]
fn every_variable_of_alhenas_own_that_the_program_reads_is_in_the_table() {
    let (mut dirs, mut unknown) = (vec![alhena_testbed::cache::workspace().join("crates")], Vec::new());
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()) {
            if entry.is_dir()
                && !["testbed", "tests", "target"].contains(&entry.file_name().unwrap().to_str().unwrap())
            {
                dirs.push(entry);
            } else if entry.extension().is_some_and(|ending| ending == "rs") {
                let text = fs::read_to_string(&entry).unwrap();
                let names = text.split("\"ALHENA_").skip(1).filter_map(|rest| rest.split('"').next());
                let names =
                    names.filter(|name| name.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_'));
                unknown.extend(
                    names.map(|name| format!("ALHENA_{name}")).filter(|name| {
                        !alhena_agent::env::TABLE.iter().any(|variable| variable.name == name)
                    }),
                );
            }
        }
    }
    assert_eq!(unknown, [""; 0]);
}
