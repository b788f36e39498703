use std::io::{Read, Write};
use std::net::Shutdown;
use std::path::Path;

use alhena_sys::sockets::Stream;

use super::*;

fn served(hooks: Hooks) -> (tempfile::TempDir, Server) {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(
        dir.path(),
        dir.path(),
        Deciders { hooks: Some(hooks), desk: None, meter: None, behind: None, can_tell: true },
        Vec::new(),
    )
    .unwrap();
    (dir, server)
}

/// What the relay would get.
fn ask(socket: &Path, text: &str) -> String {
    let mut line = Stream::connect(socket).unwrap();
    line.write_all(text.as_bytes()).unwrap();
    line.shutdown(Shutdown::Write).unwrap();
    let mut answer = String::new();
    line.read_to_string(&mut answer).unwrap();
    answer
}

fn always(verdict: Verdict) -> Hooks {
    Hooks::new(Moment::ALL, move |_| verdict.clone())
}

#[test]
fn whoever_decides_is_told_everything_and_the_decision_goes_back() {
    let (_dir, server) = served(Hooks::new(Moment::ALL, |asked| {
        assert_eq!((asked.tool(), asked.input()), ("write_file", &json!({"a": 1})));
        match asked.moment {
            Moment::BeforeTool => Verdict::Deny("not this".to_owned()),
            Moment::AfterTool => Verdict::Allow { input: None, context: Some("careful".to_owned()) },
            Moment::BeforeModel => Verdict::Stop("enough".to_owned()),
        }
    }));
    for (moment, expected) in [
        ("before-tool", json!({"decision": "deny", "reason": "not this"})),
        (
            "after-tool",
            json!({"hookSpecificOutput": {"hookEventName": "AfterTool", "additionalContext": "careful"}}),
        ),
        ("before-model", json!({"decision": "deny", "reason": "enough"})),
    ] {
        let said = ask(
            server.socket(),
            &format!("{moment}\n{{\"tool_name\":\"write_file\",\"tool_input\":{{\"a\":1}}}}"),
        );
        assert_eq!(serde_json::from_str::<Value>(&said).unwrap(), expected, "{moment}");
    }
}

#[test]
fn other_arguments_replace_those_of_the_tool_and_nothing_else() {
    let input = Map::from_iter([("command".to_owned(), json!("true"))]);
    let (_dir, server) = served(always(Verdict::Allow { input: Some(input), context: None }));
    let before = ask(server.socket(), "before-tool\n{}");
    let expected =
        json!({"hookSpecificOutput": {"hookEventName": "BeforeTool", "tool_input": {"command": "true"}}});
    assert_eq!(serde_json::from_str::<Value>(&before).unwrap(), expected);
    assert_eq!(ask(server.socket(), "after-tool\n{}"), "{}\n");
}

#[test]
fn what_cannot_be_decided_is_denied() {
    let denied = |said: &str| serde_json::from_str::<Value>(said).unwrap()["decision"] == json!("deny");
    let (_dir, server) = served(always(Verdict::GO_ON));
    for text in ["before-tool\nnot json", "before-tool\n", "before-tool\n[]", "before-tool\n{\"a\":"] {
        assert!(denied(&ask(server.socket(), text)), "{text}");
    }
    // Nothing at all is no decision either: the relay blocks then.
    for text in ["", "\n", "at-noon\n{}"] {
        assert_eq!(ask(server.socket(), text), "", "{text}");
    }
    let (_dir, server) = served(Hooks::new(Moment::ALL, |_| panic!("a bug of whoever decides")));
    assert!(denied(&ask(server.socket(), "before-tool\n{}")));
    let never = Hooks::new(Moment::ALL, |_| {
        std::thread::sleep(Duration::from_secs(60));
        Verdict::GO_ON
    });
    let (_dir, server) = served(never.time_limit(Duration::from_millis(50)));
    assert!(denied(&ask(server.socket(), "before-tool\n{}")));
}

#[test]
fn the_users_own_hooks_stay() {
    let mut settings = json!({"hooks": {"BeforeTool": [{"matcher": "x", "hooks": []}], "AfterAgent": [1]}});
    let settings = settings.as_object_mut().unwrap();
    assert!(add_to(settings, &[Moment::BeforeTool, Moment::BeforeModel].map(Occasion::Decision)));
    let hooks = &settings["hooks"];
    assert_eq!(hooks["BeforeTool"][0], json!({"matcher": "x", "hooks": []}));
    assert_eq!(hooks["AfterAgent"], json!([1]));
    for (event, at, end) in [("BeforeTool", 1, "|| exit 2"), ("BeforeModel", 0, "exit 2; }")] {
        let command = hooks[event][at]["hooks"][0]["command"].as_str().unwrap();
        assert!(command.ends_with(end), "{command}");
    }
}

#[test]
fn a_command_that_is_not_answered_has_denied_before_it_ends() {
    for moment in Moment::ALL {
        let command = Occasion::Decision(moment).command();
        let dir = tempfile::tempdir().unwrap();
        let (socket, failed) = (dir.path().join("hooks"), dir.path().join("hook-failed"));
        // The program that asks prints nothing and is ended by SIGINT, which the shell does not report.
        let program = dir.path().join("silent");
        std::fs::write(&program, "#!/bin/sh\nkill -INT $$\n").unwrap();
        alhena_sys::files::set_mode(&program, 0o755).unwrap();
        let mut shell = std::process::Command::new("bash");
        let done = shell
            .args(["-c", &command])
            .env(PROGRAM, &program)
            .env(SOCKET, &socket)
            .env(FAILED, &failed)
            .output()
            .unwrap();
        assert_eq!((done.status.code(), done.stdout.len()), (Some(2), 0), "{moment:?}");
        let said = String::from_utf8(done.stderr).unwrap();
        assert!(said.contains("nobody decided: the hook was ended before it decided"), "{said}");
        assert_eq!(failed.exists(), moment == Moment::BeforeModel);
        if moment != Moment::BeforeModel {
            assert_eq!(serde_json::from_str::<Value>(&said).unwrap()["decision"], "deny");
        }
    }
}

#[test]
fn where_hooks_are_switched_off_nobody_is_told_that_they_work() {
    for config in [json!({"enabled": false}), json!({"disabled": ["alhena"]})] {
        let mut settings = Map::from_iter([("hooksConfig".to_owned(), config)]);
        assert!(!add_to(&mut settings, &[Occasion::Decision(Moment::BeforeTool)]));
    }
}
