use serde_json::json;

use super::*;

fn object(value: Value) -> Map<String, Value> {
    let Value::Object(fields) = value else { panic!("{value}") };
    fields
}

fn read(value: Value) -> Result<(Option<Prompt>, RunOptions), Vec<SettingError>> {
    RunOptions::with_prompt_from(&object(value), &["id", "copy"])
}

fn options(value: Value) -> RunOptions {
    read(value).unwrap().1
}

fn complaints(value: Value) -> String {
    let errors = read(value).unwrap_err();
    let lines = errors.iter().map(|error| format!("{error} {}", error.fix).trim_end().to_owned());
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn an_object_means_what_the_same_command_line_means() {
    let typed = [
        ("dir", Some("/tmp")),
        ("model", Some("m")),
        ("approval", Some("auto_edit")),
        ("trust", Some("settings")),
        ("sandbox", None),
        ("allow_tool", Some("a")),
        ("allow_tool", Some("b(c d)")),
        ("env", Some("A=1")),
        ("env", Some("B=x=y")),
        ("timeout", Some("90")),
        ("stall_timeout", Some("none")),
        ("max_turns", Some("3")),
        ("max_cost", Some("0.5")),
        ("schema_attempts", Some("4")),
        ("resume", None),
        ("transport", Some("auto")),
        ("system_prompt", Some("-x")),
        ("system_prompt_mode", Some("replace")),
        ("hook", Some("before-tool=true")),
        ("no_config", None),
        ("args", Some("--debug")),
        ("args", Some("x y")),
    ];
    let mut expected = RunOptions::default();
    for (name, text) in typed {
        expected.add(Setting::named(name).unwrap(), text.map(OsStr::new)).unwrap();
    }
    expected.schema = Some(AnswerSchema::Json(object(json!({"type": "object"}))));
    let given = json!({
        "prompt": "- is a dash", "dir": "/tmp", "model": "m", "approval": "auto_edit", "trust": "settings", "sandbox": true,
        "allow_tool": ["a", "b(c d)"], "env": {"A": 1, "B": "x=y"}, "timeout": 90, "stall_timeout": "none",
        "max_turns": 3, "max_cost": 0.5, "schema": {"type": "object"}, "schema_attempts": 4, "resume": true,
        "transport": "auto", "system_prompt": "-x", "system_prompt_mode": "replace", "hook": {"before-tool": "true"},
        "no_config": true, "args": ["--debug", "x y"],
    });
    let (prompt, read) = read(given).unwrap();
    assert_eq!((prompt, &read), (Some(Prompt::Text("- is a dash".to_owned())), &expected));
    let (approval, sandbox) = (read.approval, read.sandbox.clone());
    assert_eq!((approval, sandbox), (Some(Approval::AutoEdit), Some(Sandbox::On)));
    assert_eq!((read.transport, read.trust), (Some(Transport::Auto), Some(Trust::WithSettings)));
    let again: RunOptions = serde_json::from_value(serde_json::to_value(&read).unwrap()).unwrap();
    assert_eq!(again, read);
}

#[test]
fn null_and_false_are_options_that_were_not_given() {
    let read =
        options(json!({"prompt": "a", "trust": false, "model": null, "no_config": false, "offline": false}));
    assert_eq!(read, RunOptions::default());
    assert_eq!(options(json!({"sandbox": false})).sandbox, Some(Sandbox::Off));
}

#[test]
fn one_value_can_stand_for_a_list() {
    let read = options(json!({"prompt": "a", "deny_tool": "x", "include_dir": ["/tmp"]}));
    assert_eq!((read.deny_tool, read.include_dir), (vec!["x".to_owned()], vec!["/tmp".into()]));
}

#[test]
fn everything_wrong_is_reported_with_the_names_of_fields() {
    let given = json!({
        "prompt": "a", "promt": 1, "approvall": "x", "approval": "youlo", "timeout": "soon", "max_turns": -1, "as": "text",
        "trust": "true", "env": 5.5, "allow_tool": [{}], "no_config": "yes", "copies": true, "xyz": 0, "model": {},
    });
    insta::assert_snapshot!(complaints(given), @r#"
    there is no option `promt` Did you mean `prompt`?
    there is no option `approvall` Did you mean `approval`?
    `approval`: "youlo" is none of default, auto-edit, yolo, plan Did you mean yolo?
    `timeout`: "soon" is no time; write 90s, 10m, 1h30m or 500ms, or none
    `max_turns`: -1 is not in 1..=4294967295
    there is no option `as` Did you mean `ask`?
    `trust`: "true" is none of settings Give true or one of these.
    `allow_tool`: a text or a number is needed
    `no_config`: true or false is needed
    there is no option `copies` Did you mean `copy`?
    there is no option `xyz` Names are those of the options of `alhena run`, with underscores.
    `model`: a text or a number is needed
    "#);
}

#[test]
fn limits_of_zero_and_variables_without_a_name_are_refused() {
    insta::assert_snapshot!(complaints(json!({"max_turns": 0})), @"`max_turns`: 0 is not in 1..=4294967295");
    insta::assert_snapshot!(complaints(json!({"max_attempts": 0})), @"`max_attempts`: 0 is not in 1..=4294967295");
    insta::assert_snapshot!(complaints(json!({"env": {"": "x"}})), @r#"`env`: the name "" is empty or has a = in it"#);
    insta::assert_snapshot!(complaints(json!({"env": {"A=B": "x"}})), @r#"`env`: the name "A=B" is empty or has a = in it"#);
    insta::assert_snapshot!(complaints(json!({"env": ["=x"]})), @r#"`env`: "=x" names no variable Write NAME=VALUE, or the NAME of a variable that is set."#);
    insta::assert_snapshot!(complaints(json!({"env": [""]})), @r#"`env`: "" names no variable Write NAME=VALUE, or the NAME of a variable that is set."#);
}

#[test]
fn options_that_exclude_or_need_each_other_are_reported() {
    insta::assert_snapshot!(complaints(json!({"prompt": "a", "prompt_file": "b"})), @"`prompt` and `prompt_file` cannot be given together Leave one of them out.");
    insta::assert_snapshot!(complaints(json!({"offline": true, "cassette": "b"})), @"`offline` and `cassette` cannot be given together Leave one of them out.");
    insta::assert_snapshot!(complaints(json!({"schema_attempts": 2})), @"`schema_attempts` needs `schema` Give `schema`, or leave `schema_attempts` out.");
    insta::assert_snapshot!(complaints(json!({"system_prompt_mode": "append"})), @"`system_prompt_mode` needs `system_prompt` or `system_prompt_file` Give `system_prompt` or `system_prompt_file`, or leave `system_prompt_mode` out.");
    insta::assert_snapshot!(complaints(json!({"prompt": "a\u{0}b"})), @"`prompt`: a text with a zero character cannot be given");
}

#[test]
fn text_means_what_would_be_typed() {
    let value = |name, text| Setting::named(name).unwrap().value_of_text(text);
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
fn approval_has_every_hosts_names() {
    let expected = [
        (Approval::Default, &["default", "suggest"][..]),
        (Approval::AutoEdit, &["auto-edit", "auto_edit", "autoEdit", "acceptEdits"]),
        (Approval::Yolo, &["yolo", "full_auto", "bypassPermissions"]),
        (Approval::Plan, &["plan"]),
    ];
    for (approval, names) in expected {
        for name in names {
            assert_eq!(name.parse(), Ok(approval));
        }
    }
    assert!("YOLO!".parse::<Approval>().is_err());
}

#[test]
fn sandbox_engines_are_named_and_others_refused() {
    assert_eq!("docker".parse(), Ok(Sandbox::Engine("docker".to_owned())));
    assert_eq!("none".parse(), Ok(Sandbox::Off)); // E-11
    assert_eq!("true".parse(), Ok(Sandbox::On));
    assert!("qemu".parse::<Sandbox>().is_err());
}

#[test]
fn defaults_fill_what_was_not_given_and_not_excluded() {
    let defaults = options(json!({"model": "m", "offline": true, "deny_tool": "x", "max_turns": 3}));
    let mut given = options(json!({"model": "other", "agent_command": "qwen --acp"}));
    given.fill(&defaults, Setting::ALL);
    let expected =
        json!({"agent_command": "qwen --acp", "model": "other", "deny_tool": ["x"], "max_turns": 3});
    assert_eq!(serde_json::to_value(&given).unwrap(), expected);
}

#[test]
fn every_setting_has_a_name_in_each_form_and_a_description() {
    for setting in Setting::ALL {
        assert_eq!(Setting::named(setting.name()), Some(*setting));
        assert!(!setting.help().is_empty() && !setting.help().ends_with('.'), "{setting:?}");
    }
    assert_eq!(Setting::MaxCost.to_string(), "`max_cost`");
}
