//! Defaults in files, `--no-config` and `alhena help config`

use std::fs;

use alhena_testbed::{Hostile, Script};
use insta::assert_snapshot;

use super::run::desk_with;
use crate::common::{Desk, Transcript};

/// The user's own file.
fn user_config(desk: &Desk, text: &str) {
    fs::create_dir_all(desk.home().join("alhena")).unwrap();
    fs::write(desk.home().join("alhena/config.toml"), text).unwrap();
}

/// What the user decided about the working directory.
fn trust(desk: &Desk) {
    let rules = serde_json::json!({ desk.work().to_str().unwrap(): "TRUST_FOLDER" });
    fs::create_dir_all(desk.home().join(".gemini")).unwrap();
    fs::write(desk.home().join(".gemini/trustedFolders.json"), rules.to_string()).unwrap();
}

/// The arguments that the CLI was started with.
fn started(desk: &Desk, hostile: &Hostile, args: &[&str]) -> Vec<String> {
    let seen = desk.alhena(&[&["run", "--quiet", "hello"], args].concat());
    assert_eq!(seen.code(), Some(0), "{seen}");
    hostile.starts().unwrap().last().unwrap().argv.clone()
}

fn has(argv: &[String], wanted: &str) -> bool {
    argv.iter().any(|argument| argument == wanted)
}

#[test]
fn the_command_line_wins_over_the_folder_and_that_over_the_user() {
    let (desk, hostile) = desk_with(Script::normal());
    user_config(&desk, "model = \"users\"\napproval = \"plan\"\n");
    desk.write(".alhena/config.toml", "model = \"folders\"\n");
    trust(&desk);
    let argv = started(&desk, &hostile, &[]);
    assert!(has(&argv, "--model=folders") && has(&argv, "--approval-mode=plan"), "{argv:?}");
    let argv = started(&desk, &hostile, &["--model", "mine", "--approval", "auto-edit"]);
    assert!(has(&argv, "--model=mine") && has(&argv, "--approval-mode=auto_edit"), "{argv:?}");
    let argv = started(&desk, &hostile, &["--no-config"]);
    assert!(!argv.iter().any(|argument| argument.starts_with("--model")), "{argv:?}");
}

#[test]
fn a_folder_that_is_not_trusted_sets_nothing_and_that_is_said() {
    let (desk, hostile) = desk_with(Script::normal());
    desk.write(".alhena/config.toml", "model = \"folders\"\n");
    let seen = desk.alhena(&["run", "--trust", "hello"]);
    let warning = "warning: [DESK]/work/.alhena/config.toml is not used: Gemini CLI does not trust this folder; --trust=settings does";
    assert!(seen.to_string().contains(warning), "{seen}");
    assert!(!has(&hostile.starts().unwrap().last().unwrap().argv, "--model=folders"));
    assert!(has(&started(&desk, &hostile, &["--trust=settings"]), "--model=folders"));
}

#[test]
fn who_trusts_every_folder_is_told_of_the_cli_that_then_runs() {
    let (desk, hostile) = desk_with(Script::normal());
    desk.write("node_modules/.bin/.keep", "");
    let own = desk.work().join("node_modules/.bin/gemini");
    std::os::unix::fs::symlink(hostile.path(), &own).unwrap();
    let found = |args: &[&str]| desk.alhena(&[&["detect", "--json"], args].concat()).json()["place"].clone();
    assert_eq!(found(&[]), "path");
    user_config(&desk, "trust = \"settings\"\n");
    assert_eq!(
        (found(&[]), found(&["--no-config"]), found(&["--trust"])),
        ("project".into(), "path".into(), "path".into())
    );
    let said = desk.alhena(&["doctor"]).to_string();
    assert!(said.contains("[DESK]/work/node_modules/.bin/gemini"), "{said}");
    assert!(said.contains("is not trusted, and your config says to run there"), "{said}");
    user_config(&desk, "trust = maybe\n");
    assert_eq!(desk.alhena(&["detect"]).code(), Some(2));
}

fn refused(user: &str, folder: &str) -> Transcript {
    let (desk, hostile) = desk_with(Script::normal());
    user_config(&desk, user);
    trust(&desk);
    desk.write(".alhena/config.toml", folder);
    let seen = desk.alhena(&["run", "hello"]);
    assert_eq!(hostile.starts().unwrap().len(), 0, "{seen}");
    seen
}

#[test]
fn a_wrong_file_is_refused_with_the_line_and_what_was_meant() {
    assert_snapshot!(refused("model = \"m\"\nstall_timout = \"5m\"\n", ""), @r#"
    ---- stderr ----
    error: [DESK]/home/alhena/config.toml:2: unknown key "stall-timout"
    hint: Did you mean stall-timeout? `alhena help config` lists the keys.
    [exit 2]
    "#);
    assert_snapshot!(refused("gemini = \"/tmp/evil\"\n", ""), @r#"
    ---- stderr ----
    error: [DESK]/home/alhena/config.toml:1: unknown key "gemini"
    hint: The keys are model, approval, trust, timeout, first-event-timeout, stall-timeout, max-turns, view.
    [exit 2]
    "#);
    assert_snapshot!(refused("\ntimeout = \"soon\"\n", ""), @r#"
    ---- stderr ----
    error: [DESK]/home/alhena/config.toml:2: timeout: "soon" is no time; write 90s, 10m, 1h30m or 500ms, or none
    hint: Mend the file, or run with --no-config; `alhena help config` explains it.
    [exit 2]
    "#);
    assert_snapshot!(refused("max-turns = 0\n", ""), @r#"
    ---- stderr ----
    error: [DESK]/home/alhena/config.toml:1: max-turns: 0 is not in 1..=4294967295
    hint: Mend the file, or run with --no-config; `alhena help config` explains it.
    [exit 2]
    "#);
    assert_snapshot!(refused("model = \n", ""), @r#"
    ---- stderr ----
    error: [DESK]/home/alhena/config.toml:1: string values must be quoted, expected literal string
    hint: Mend the file, or run with --no-config; `alhena help config` explains it.
    [exit 2]
    "#);
    assert_snapshot!(refused("as = \"text\"\n", ""), @r#"
    ---- stderr ----
    error: [DESK]/home/alhena/config.toml:1: unknown key "as"
    hint: Did you mean view? `alhena help config` lists the keys.
    [exit 2]
    "#);
    assert_snapshot!(refused("", "approval = \"yolo\"\n"), @r#"
    ---- stderr ----
    error: [DESK]/work/.alhena/config.toml:1: approval: a folder cannot let the model do everything
    hint: Mend the file, or run with --no-config; `alhena help config` explains it.
    [exit 2]
    "#);
    assert_snapshot!(refused("", "trust = \"settings\"\n"), @r#"
    ---- stderr ----
    error: [DESK]/work/.alhena/config.toml:1: trust: a folder cannot trust itself
    hint: Mend the file, or run with --no-config; `alhena help config` explains it.
    [exit 2]
    "#);
}

#[test]
fn limits_and_the_view_come_from_a_file_too() {
    let (desk, _hostile) = desk_with(Script::normal());
    user_config(&desk, "view = \"outcome\"\ntimeout = \"none\"\nfirst-event-timeout = 90\nmax_turns = 7\n");
    assert_eq!(desk.alhena(&["run", "hello"]).json()["status"], "success");
    // Somebody who asks for no configuration gets none.
    let seen = desk.command(&["run", "hello"]).env("ALHENA_CONFIG", "").output().unwrap();
    assert!(!String::from_utf8_lossy(&seen.stdout).contains("\"status\""));
    let missing = desk.command(&["run", "hello"]).env("ALHENA_CONFIG", "nowhere.toml").output().unwrap();
    assert_eq!(missing.status.code(), Some(2));
}

#[test]
fn doctor_shows_what_is_in_force_and_from_where() {
    let (desk, _hostile) = desk_with(Script::normal());
    user_config(&desk, "model = \"users\"\n");
    desk.write(".alhena/config.toml", "approval = \"plan\"\n");
    let shown = |desk: &Desk| {
        let text = desk.alhena(&["doctor"]).to_string();
        let lines = text.lines().skip_while(|line| !line.contains(" config ")).take(3);
        lines.collect::<Vec<_>>().join("\n")
    };
    assert_snapshot!(shown(&desk), @r#"
    ok   config          model = users ([DESK]/home/alhena/config.toml)
    note config          [DESK]/work/.alhena/config.toml is in a folder that is not trusted
                         → `alhena run --trust=settings` takes it, and the folder's other settings.
    "#);
    trust(&desk);
    assert_snapshot!(shown(&desk).lines().take(2).collect::<Vec<_>>().join("\n"), @r#"
    ok   config          model = users ([DESK]/home/alhena/config.toml)
                         approval = plan ([DESK]/work/.alhena/config.toml)
    "#);
}

#[test]
fn help_explains_the_files() {
    assert_snapshot!(Desk::new().alhena(&["help", "config"]), @r#"
    Defaults of `alhena run` can stand in two files, as KEY = VALUE (TOML):
      your own      [DESK]/home/alhena/config.toml
      a folder's    .alhena/config.toml in the working directory, if Gemini CLI trusts the folder

    The command line wins over the folder's file, and that over your own. --no-config, or an empty
    ALHENA_CONFIG, leaves both alone. `alhena doctor` shows what is in force.

    Keys:
      model                The model.
      approval             What the model may do without asking; yolo only in your own file.
      trust                true or "settings": run in folders that are not trusted. Only in your own file.
      timeout              How long a run may take, such as "1h30m", or "none".
      first-event-timeout  How long until the first event, or "none".
      stall-timeout        How long it may be silent while no tool runs, or "none".
      max-turns            How many turns the model may take.
      view                 What to print when --as is not given.

    Example:
      model = "gemini-2.5-flash"
      approval = "auto-edit"
      timeout = "1h30m"
    [exit 0]
    "#);
}
