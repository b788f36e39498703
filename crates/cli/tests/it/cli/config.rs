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
    assert_snapshot!(refused("qqq = 1\n", ""), @r#"
    ---- stderr ----
    error: [DESK]/home/alhena/config.toml:1: unknown key "qqq"
    hint: `alhena help config` lists the keys.
    [exit 2]
    "#);
    assert_snapshot!(refused("no_config = true\n", ""), @r#"
    ---- stderr ----
    error: [DESK]/home/alhena/config.toml:1: unknown key "no-config"
    hint: `alhena help config` lists the keys.
    [exit 2]
    "#);
    assert_snapshot!(refused("max_turns = 1\nmax-turns = 2\n", ""), @r#"
    ---- stderr ----
    error: [DESK]/home/alhena/config.toml:1: max-turns is given twice
    hint: Mend the file, or run with --no-config; `alhena help config` explains it.
    [exit 2]
    "#);
    assert_snapshot!(refused("gemini = \"g\"\nagent_command = \"a\"\n", ""), @r#"
    ---- stderr ----
    error: [DESK]/home/alhena/config.toml:1: gemini: it cannot be given together with agent-command
    hint: Mend the file, or run with --no-config; `alhena help config` explains it.
    [exit 2]
    "#);
    assert_snapshot!(refused("max_cost = nan\n", ""), @r#"
    ---- stderr ----
    error: [DESK]/home/alhena/config.toml:1: max-cost: it has to be an amount of more than 0, such as 0.50; leave it out for no limit
    hint: Mend the file, or run with --no-config; `alhena help config` explains it.
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
    hint: Put it into your own file, or on the command line.
    [exit 2]
    "#);
}

#[test]
fn a_folder_sets_only_what_it_may() {
    let fields = [
        ("agent_command", "'qwen --acp'", "a folder cannot choose what is executed"),
        ("gemini", "'/tmp/evil'", "a folder cannot choose what is executed"),
        ("mcp_server", "['s=evil']", "a folder cannot choose what is executed"),
        ("env", "{PATH = '/tmp'}", "a folder cannot choose what is executed"),
        ("hook", "['before-tool=true']", "a folder cannot choose what is executed"),
        ("hook_timeout", "'9h'", "a folder cannot choose what is executed"),
        ("args", "['--yolo']", "a folder cannot choose what is executed"),
        ("transport", "'acp'", "a folder cannot allow more than you do"),
        ("allow_tool", "['run_shell_command']", "a folder cannot allow more than you do"),
        ("policy", "['p.toml']", "a folder cannot allow more than you do"),
        ("allow", "['shell(*)']", "a folder cannot allow more than you do"),
        ("rules", "['r']", "a folder cannot allow more than you do"),
        ("approval", "'yolo'", "a folder cannot let the model do everything"),
        ("trust", "true", "a folder cannot trust itself"),
        ("sandbox", "'off'", "a folder cannot turn the sandbox off"),
        ("sandbox", "'inherit'", "a folder cannot turn the sandbox off"),
        ("offline", "true", "a folder cannot choose which files are read or written"),
        ("cassette", "'c.json'", "a folder cannot choose which files are read or written"),
        ("cassette_mode", "'record'", "a folder cannot choose which files are read or written"),
        ("dir", "'/'", "a folder cannot choose which files are read or written"),
        ("include_dir", "['/']", "a folder cannot choose which files are read or written"),
        ("system_prompt_file", "'/etc/passwd'", "a folder cannot choose which files are read or written"),
        ("prices", "'p.json'", "a folder cannot choose which files are read or written"),
        ("schema", "'/etc/passwd'", "a folder cannot choose which files are read or written"),
        ("record", "'/tmp/r'", "a folder cannot choose which files are read or written"),
        ("max_attempts", "99", "a folder cannot raise what a run may cost"),
        ("schema_attempts", "99", "a folder cannot raise what a run may cost"),
        ("on_rate_limit", "'model=dear'", "a folder cannot raise what a run may cost"),
        ("system_prompt", "'Obey.'", "a folder's instructions belong in its GEMINI.md"),
        ("system_prompt_mode", "'replace'", "a folder's instructions belong in its GEMINI.md"),
        ("resume", "'latest'", "a folder cannot choose the session"),
        ("session_id", "'x'", "a folder cannot choose the session"),
    ];
    let (desk, hostile) = desk_with(Script::normal());
    trust(&desk);
    for (field, value, why) in fields {
        desk.write(".alhena/config.toml", format!("{field} = {value}\n"));
        let seen = desk.alhena(&["run", "hello"]);
        let key = field.replace('_', "-");
        let expected = format!("error: [DESK]/work/.alhena/config.toml:1: {key}: {why}\n");
        assert!(seen.code() == Some(2) && seen.to_string().contains(&expected), "{field}: {seen}");
    }
    assert_eq!(hostile.starts().unwrap().len(), 0);
    // What the table does not name, a folder may set.
    let may = "prompt_by = 'flag'\nmodel = 'gemini-2.5-flash'\napproval = 'plan'\npermission_timeout = '1m'\ntimeout = '5m'\n\
               first_event_timeout = '1m'\nstall_timeout = '1m'\ndeny_tool = ['web_fetch']\nmax_turns = 3\n\
               max_tokens = 1000000\nmax_cost = 1.5\nmax_calls = 9\nview = 'text'\n";
    desk.write(".alhena/config.toml", may);
    let argv = started(&desk, &hostile, &[]);
    assert!(has(&argv, "--model=gemini-2.5-flash") && has(&argv, "--approval-mode=plan"), "{argv:?}");
    // Each of the keys that are only for the user's own file is one of those above.
    let listed = desk.alhena(&["help", "config"]).to_string();
    let (_, own) = listed.split_once("Keys for your own file:\n").unwrap();
    let own = own.lines().take_while(|line| line.starts_with("  ")).map(|line| line.trim_start());
    let own: Vec<String> = own.map(|line| line.split(' ').next().unwrap().replace('-', "_")).collect();
    let untested: Vec<&String> =
        own.iter().filter(|key| !fields.iter().any(|(field, _, _)| field == key)).collect();
    assert!(own.len() > 20 && untested.is_empty(), "{untested:?}");
}

#[test]
fn a_folder_lowers_limits_and_adds_to_what_is_denied() {
    let (desk, _hostile) = desk_with(Script::normal());
    trust(&desk);
    user_config(&desk, "max_calls = 5\nmax_cost = 2\nsandbox = 'docker'\ndeny = ['edit(.env)']\n");
    desk.write(
        ".alhena/config.toml",
        "max_calls = 50\nmax_cost = 1\nmax_tokens = 7\nsandbox = 'on'\ndeny = 'shell(rm *)'\n",
    );
    let text = desk.alhena(&["doctor"]).to_string();
    let lines = text.lines().skip_while(|line| !line.contains(" config ")).take(6);
    assert_snapshot!(lines.collect::<Vec<_>>().join("\n"), @r#"
    ok   config          deny = ["edit(.env)"] ([DESK]/home/alhena/config.toml)
                         max-calls = 5 ([DESK]/home/alhena/config.toml)
                         sandbox = docker ([DESK]/home/alhena/config.toml)
                         deny = shell(rm *) ([DESK]/work/.alhena/config.toml)
                         max-cost = 1 ([DESK]/work/.alhena/config.toml)
                         max-tokens = 7 ([DESK]/work/.alhena/config.toml)
    "#);
}

#[test]
fn every_option_can_stand_in_the_users_file() {
    let (desk, hostile) = desk_with(Script::normal());
    user_config(
        &desk,
        "include_dir = ['/tmp']\nargs = ['--debug']\nmax_attempts = 2\nschema_attempts = 5\nenv = {SEEN = 'secret'}\n\
         system_prompt_mode = 'replace'\nrecord = 'kept'\n",
    );
    let argv = started(&desk, &hostile, &[]);
    assert!(has(&argv, "--include-directories=/tmp") && has(&argv, "--debug"), "{argv:?}");
    assert!(desk.work().join("kept").is_dir());
    let said = desk.alhena(&["doctor"]).to_string();
    assert!(said.contains("env = SEEN (") && !said.contains("secret"), "{said}");
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
    let shown = Desk::new().alhena(&["help", "config"]).to_string();
    // Their meaning is that of the options.
    let keys = |line: &str| match line.strip_prefix("  ").and_then(|row| row.split_once("  ")) {
        Some((key, _)) if !line.contains("config.toml") => format!("  {key}"),
        _ => line.to_owned(),
    };
    assert_snapshot!(shown.lines().map(keys).collect::<Vec<_>>().join("\n"), @r#"
    Defaults of `alhena run` can stand in two files, as KEY = VALUE (TOML):
      your own      [DESK]/home/alhena/config.toml
      a folder's    .alhena/config.toml in the working directory, if Gemini CLI trusts the folder

    The command line wins over the folder's file, and that over your own. --no-config, or an empty
    ALHENA_CONFIG, leaves both alone. `alhena doctor` shows what is in force.

    Keys are the options of `alhena run`, with - or _. Relative paths start in the working directory.
    deny, deny-tool and ask are added to those of the other file and of the command line.

    Keys for both files. A folder cannot set approval to yolo, turn the sandbox off, or raise
    max-turns, max-tokens, max-cost and max-calls. Batches and the server take these keys, and trust:
      prompt-by
      model
      approval
      sandbox
      deny-tool
      deny
      ask
      permission-timeout
      timeout
      first-event-timeout
      stall-timeout
      max-turns
      max-tokens
      max-cost
      max-calls
      view

    Keys for your own file:
      transport
      agent-command
      offline
      cassette
      cassette-mode
      dir
      gemini
      trust
      include-dir
      allow-tool
      policy
      mcp-server
      system-prompt
      system-prompt-file
      system-prompt-mode
      env
      resume
      allow
      rules
      session-id
      max-attempts
      on-rate-limit
      prices
      schema
      schema-attempts
      hook
      hook-timeout
      record
      args

    Example:
      model = "gemini-2.5-flash"
      approval = "auto-edit"
      timeout = "1h30m"
      deny = ["edit(.env)"]
    [exit 0]
    "#);
}
