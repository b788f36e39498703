//! Objects mean what command lines mean.

use std::path::Path;

use alhena::agent::{Sandbox, Transport};
use alhena::{Approval, Request, Trust};
use clap::Parser as _;
use serde_json::{Value, json};

use super::super::asked::{Asked, Beside, asked};
use super::*;
use crate::config::Config;
use crate::views::Name;

#[derive(clap::Parser)]
struct Typed {
    #[command(flatten)]
    args: Args,
}

fn object(value: Value) -> Map<String, Value> {
    let Value::Object(fields) = value else { panic!("{value}") };
    fields
}

fn read(value: Value) -> Result<Args, Vec<Wrong>> {
    Options::new().read(&object(value), &["id", "copy"])
}

fn request(args: Args) -> Request {
    let Asked { request, .. } = asked(args, Name::Outcome, Config::default(), Beside::Nothing)
        .map_err(|error| error.to_string())
        .unwrap();
    request
}

fn complaints(value: Value) -> Vec<String> {
    read(value)
        .err()
        .unwrap()
        .iter()
        .map(|wrong| format!("{wrong} {}", wrong.hint).trim_end().to_owned())
        .collect()
}

#[test]
fn an_object_means_what_the_same_command_line_means() {
    let typed = [
        "run",
        "--dir=/tmp",
        "--model=m",
        "--approval=auto_edit",
        "--trust=settings",
        "--sandbox",
        "--allow-tool=a",
        "--allow-tool=b(c d)",
        "--env=A=1",
        "--env=B=x=y",
        "--timeout=90",
        "--stall-timeout=none",
        "--max-turns=3",
        "--max-cost=0.5",
        "--schema={\"type\":\"object\"}",
        "--schema-attempts=4",
        "--resume",
        "--transport=auto",
        "--system-prompt=-x",
        "--system-prompt-mode=replace",
        "--hook=before-tool=true",
        "--no-config",
        "--prompt=- is a dash",
        "--",
        "--debug",
        "x y",
    ];
    let given = json!({
        "prompt": "- is a dash", "dir": "/tmp", "model": "m", "approval": "auto_edit", "trust": "settings", "sandbox": true,
        "allow_tool": ["a", "b(c d)"], "env": {"A": 1, "B": "x=y"}, "timeout": 90, "stall_timeout": "none",
        "max_turns": 3, "max_cost": 0.5, "schema": {"type": "object"}, "schema_attempts": 4, "resume": true,
        "transport": "auto", "system_prompt": "-x", "system_prompt_mode": "replace", "hook": {"before-tool": "true"},
        "no_config": true, "args": ["--debug", "x y"],
    });
    let typed = Typed::try_parse_from(typed).unwrap().args;
    let read = read(given).unwrap();
    assert_eq!(
        format!("{read:?}").replace("prompt_option: None", ""),
        format!("{typed:?}").replace("prompt_option: None", "")
    );
    let request = request(read);
    assert_eq!(
        (request.transport, request.sandbox, request.trust),
        (Transport::Auto, Sandbox::On, Trust::WithSettings)
    );
    assert_eq!(request.approval, Approval::AutoEdit);
}

#[test]
fn what_is_null_or_false_is_not_said() {
    let request =
        request(read(json!({"prompt": "a", "trust": false, "model": null, "no_config": false})).unwrap());
    assert_eq!((request.trust, request.model, request.sandbox), (Trust::AsIs, None, Sandbox::Inherit));
    let off = read(json!({"prompt": "a", "sandbox": false})).unwrap();
    assert_eq!(super::tests::request(off).sandbox, Sandbox::Off);
}

#[test]
fn one_value_can_stand_for_a_list() {
    let request = request(read(json!({"prompt": "a", "deny_tool": "x", "include_dir": ["/tmp"]})).unwrap());
    assert_eq!((request.deny_tools, request.include_dirs), (vec!["x".to_owned()], vec!["/tmp".into()]));
}

#[test]
fn all_that_is_wrong_is_said_with_the_names_of_fields() {
    let given = json!({
        "prompt": "a", "promt": 1, "approvall": "x", "approval": "youlo", "timeout": "soon", "max_turns": -1, "as": "text",
        "trust": "true", "env": 5.5, "allow_tool": [{}], "no_config": "yes", "copies": true, "xyz": 0, "model": {},
    });
    insta::assert_snapshot!(complaints(given).join("\n"), @r#"
    there is no option promt Did you mean prompt?
    there is no option approvall Did you mean approval?
    as cannot be given here: what comes of it is an outcome Leave it out.
    allow_tool: a text or a number is needed
    no_config: true or false is needed
    there is no option copies Did you mean copy?
    there is no option xyz Names are those of `alhena run --help`, without dashes in front and with underscores.
    model: a text or a number is needed
    approval: "youlo" is none of default, auto-edit, yolo, plan Did you mean yolo?
    timeout: "soon" cannot be used: "soon" is no time; write 90s, 10m, 1h30m or 500ms, or none
    max_turns: "-1" cannot be used: -1 is not in 1..=4294967295
    trust: "true" is none of settings Give true or one of these.
    "#);
}

#[test]
fn limits_of_zero_and_variables_without_a_name_are_refused() {
    let said = |given| complaints(given).join("\n");
    insta::assert_snapshot!(said(json!({"prompt": "a", "max_turns": 0})), @r#"max_turns: "0" cannot be used: 0 is not in 1..=4294967295"#);
    insta::assert_snapshot!(said(json!({"prompt": "a", "max_attempts": 0})), @r#"max_attempts: "0" cannot be used: 0 is not in 1..=4294967295"#);
    insta::assert_snapshot!(said(json!({"prompt": "a", "env": {"": "x"}})), @r#"env: the name "" is empty or has a = in it"#);
    insta::assert_snapshot!(said(json!({"prompt": "a", "env": {"A=B": "x"}})), @r#"env: the name "A=B" is empty or has a = in it"#);
    for (variable, message) in [("=x", r#"env "=x" names no variable"#), ("", r#"env "" names no variable"#)]
    {
        let args = read(json!({"prompt": "a", "env": [variable]})).unwrap();
        let refused = asked(args, Name::Outcome, Config::default(), Beside::Nothing).err().unwrap();
        assert_eq!(Options::new().in_fields(&refused).message, message);
    }
}

#[test]
fn a_command_that_is_quoted_stays_as_it_has_to_be_typed() {
    let said = Options::new()
        .renamed("no --model; `alhena detect --verbose` lists them, or give `--trust`, not `--gemini");
    assert_eq!(said, "no model; `alhena detect --verbose` lists them, or give `trust`, not `gemini");
}

#[test]
fn what_does_not_go_together_is_said() {
    insta::assert_snapshot!(complaints(json!({"prompt": "a", "prompt_file": "b"})).join("\n"), @"prompt and prompt_file cannot be given together Leave one of them out.");
    insta::assert_snapshot!(complaints(json!({"prompt": "a", "schema_attempts": 2})).join("\n"), @"schema is missing, which something else here needs Give schema, or leave out what needs it.");
    insta::assert_snapshot!(complaints(json!({"prompt": "a", "system_prompt_mode": "append"})).join("\n"), @"system_prompt or system_prompt_file is missing, which something else here needs Give system_prompt or system_prompt_file, or leave out what needs it.");
    insta::assert_snapshot!(complaints(json!({"prompt": "a\u{0}b"})).join("\n"), @"prompt: a text with a zero character cannot be given");
}

#[test]
fn what_run_refuses_is_refused_in_the_words_of_fields() {
    let options = Options::new();
    let refused = |given| {
        let args = read(given).unwrap();
        let error = asked(args, Name::Outcome, Config::default(), Beside::Nothing).err().unwrap();
        let wrong = options.in_fields(&error);
        format!("{wrong} {}", wrong.hint)
    };
    insta::assert_snapshot!(refused(json!({"dir": "/tmp"})), @"there is no prompt Give a prompt, or a prompt_file.");
    insta::assert_snapshot!(refused(json!({"prompt": "  "})), @"the prompt is empty Give a prompt as an argument, by prompt_file or on stdin.");
    insta::assert_snapshot!(refused(json!({"prompt": "a", "schema": "/proc/nowhere.json"})), @r#"
    schema: /proc/nowhere.json: No such file or directory (os error 2) Give a file with a JSON schema, or the schema itself: schema '{"type": "object"}'.
    "#);
    insta::assert_snapshot!(refused(json!({"prompt": "a", "dir": "/proc/nowhere"})), @"/proc/nowhere is not a directory Give a directory that exists.");
    insta::assert_snapshot!(refused(json!({"prompt": "a", "resume": ""})), @"resume needs the id of a session, and it is empty `alhena sessions list` shows them; resume alone goes on with the latest.");
    insta::assert_snapshot!(refused(json!({"prompt": "a", "agent_command": "x", "transport": "headless"})), @"x speaks ACP, and transport headless is for Gemini CLI Leave out transport.");
}

#[test]
fn text_means_what_would_be_typed() {
    let options = Options::new();
    let value = |name, text| options.value_of_text(name, text);
    assert_eq!(value("trust", "true"), json!(true));
    assert_eq!(value("trust", "settings"), json!("settings"));
    assert_eq!(value("no_config", "false"), json!(false));
    assert_eq!(value("model", "true"), json!("true"));
    assert_eq!(value("allow_tool", "[\"a\", \"b\"]"), json!(["a", "b"]));
    assert_eq!(value("allow_tool", "[a"), json!("[a"));
    assert_eq!(value("env", "{\"A\": \"1\"}"), json!({"A": "1"}));
    assert_eq!(value("prompt", "{\"A\": \"1\"}"), json!("{\"A\": \"1\"}"));
}

#[test]
fn every_name_that_is_refused_is_an_option_of_run() {
    let options = Options::new();
    let unknown: Vec<_> = NOT_HERE.iter().filter(|(name, _)| options.field(name).is_none()).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
    assert!(options.names().count() > 40);
}

/// To write it anew: `UPDATE_SCHEMAS=1 cargo test -p alhena-cli committed`.
#[test]
fn the_committed_schema_of_jobs_is_up_to_date() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schemas/job.json");
    let expected = format!("{:#}\n", Options::new().job_schema());
    if std::fs::read_to_string(&file).ok().as_deref() != Some(expected.as_str()) {
        assert!(std::env::var_os("UPDATE_SCHEMAS").is_some(), "stale; run this test with UPDATE_SCHEMAS=1");
        std::fs::write(&file, expected).unwrap();
    }
}
