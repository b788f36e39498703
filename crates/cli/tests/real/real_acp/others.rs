//! Another agent that speaks ACP, Qwen Code, against the scripted API: what it says itself has to be enough.

use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use alhena_agent::{AcpAgent, Action, Item, Transport, recording};
use alhena_agent::{Approval, Conversation, ResolvedRequest, Resume, TurnItem};
use alhena_model::{Change, Source};
use alhena_model::{EventKind, Status};
use alhena_scripted::{Scenario, Turn};
use alhena_testbed::{Deadline, processes_with_env, run_bounded, tools};
use serde_json::json;

use super::{follow, kinds, nobody};
use crate::lab::{Build, Lab};

/// It thinks of things to do on its own after a turn, and asks the model then.
const SETTINGS: &str =
    r#"{"memory": {"enableManagedAutoMemory": false}, "ui": {"enableFollowupSuggestions": false}}"#;

fn lab(name: &str, scenario: Scenario) -> Lab {
    let mut lab = super::lab(name, scenario);
    std::fs::create_dir_all(lab.home.path().join(".qwen")).unwrap();
    std::fs::write(lab.home.path().join(".qwen/settings.json"), SETTINGS).unwrap();
    lab.env.set("GEMINI_MODEL", "gemini-2.5-flash");
    lab
}

fn command() -> String {
    let (node, qwen) = (tools::node22().unwrap(), tools::qwen().unwrap());
    format!("'{}' '{}' --acp --auth-type gemini", node.display(), qwen.display())
}

fn request(lab: &Lab, prompt: &str) -> ResolvedRequest {
    crate::lab::request(prompt).dir(lab.workspace())
}

fn converse(lab: &Lab, request: ResolvedRequest) -> Conversation {
    AcpAgent::new(&command()).unwrap().start_conversation(request, &lab.env).unwrap()
}

fn write(lab: &Lab, content: &str) -> Turn {
    // It takes only whole paths.
    let path = lab.workspace().canonicalize().unwrap().join("n.txt");
    Turn::new().call("write_file", json!({"file_path": path, "content": content}))
}

fn shell(command: &str) -> Turn {
    Turn::new().call("run_shell_command", json!({"command": command, "is_background": false}))
}

#[test]
fn real_cli_another_agent_answers_with_usage_and_the_recording_says_the_same() {
    let lab = lab("qwen text", Scenario::new().turn(Turn::new().text("Hello ").text("there.")));
    let record = lab.home.path().join("recording");
    let agent = AcpAgent::new(&command()).unwrap();
    let request = request(&lab, "hi").record(&record).conversation().transport(Transport::Acp);
    let mut run = agent.start(request, &lab.env).unwrap();
    let (mut items, mut played) = (Vec::new(), Vec::new());
    while let Some(item) = run.next_item_blocking() {
        items.push(item);
    }
    let outcome = run.outcome_blocking();
    assert_eq!((outcome.status, outcome.text.all()), (Status::Success, "Hello there."), "{outcome:?}");
    assert!(outcome.usage.all.prompt > 0 && outcome.usage.all.output > 0, "{:?}", outcome.usage);
    assert!(outcome.models[0].starts_with("gemini-2.5-flash"), "{:?}", outcome.models);
    assert!(outcome.session_id.is_some() && outcome.warnings.is_empty(), "{outcome:?}");
    recording::play_keeping(&record, |item| played.push(item)).unwrap();
    played.retain(|item| !matches!(item, Item::Line(_)));
    assert_eq!(items, played);
    let messages = items.into_iter().find_map(|item| match item {
        Item::Conversation(said) => Some(said.into_messages()),
        _ => None,
    });
    assert_eq!(messages.unwrap().len(), 2);
}

#[test]
fn real_cli_another_agents_tools_are_asked_about_and_told_whole() {
    let place = lab("qwen tools", Scenario::new());
    // Qwen Code can lose the output of a command that ends soon after writing it.
    let command = "echo out; touch made; sleep 5; exit 3";
    let scenario = Scenario::new().turn(write(&place, "one\n")).turn(shell(command)).turn(Turn::say("Done."));
    place.server.add("lab", scenario);
    let mut talk = converse(&place, request(&place, ""));
    let mut asked = Vec::new();
    let (events, outcome) = follow(talk.prompt("go").unwrap(), |permission| {
        asked.push((permission.tool.clone(), permission.action.clone(), permission.dir.clone()));
        permission.allow_once();
    });
    let dir = place.workspace().canonicalize().unwrap();
    let path = dir.join("n.txt");
    let diff = Action::Diff { path: path.clone(), before: String::new(), after: "one\n".into() };
    let run = Action::Command { command: command.into(), background: false };
    let expected = [("write_file", diff), ("run_shell_command", run)];
    assert_eq!(asked, expected.map(|(tool, action)| (tool.to_owned(), action, dir.clone())));
    assert_eq!((outcome.status, outcome.text.last()), (Status::Success, "Done."), "{outcome:?}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "one\n");
    let file = outcome.files.iter().find(|file| file.path.ends_with("n.txt")).unwrap();
    assert_eq!((file.change, file.claimed, file.verified), (Change::Created, true, true));
    assert!(file.diff.as_deref().unwrap().contains("+one"), "{file:?}");
    assert!(outcome.files.iter().any(|file| file.path == "made" && !file.claimed), "{:?}", outcome.files);
    let [run] = &outcome.commands[..] else { panic!("{:?}", outcome.commands) };
    assert_eq!((run.exit_code, run.output.as_deref()), (Some(3), Some("out")));
    let follows = events
        .iter()
        .filter(|event| matches!(event.kind, EventKind::FileChange(_) | EventKind::Command { .. }));
    assert!(follows.clone().count() >= 3 && follows.clone().all(|event| event.source == Source::Derived));
    assert!(events.iter().all(|event| event.source != Source::Session));
    let calls = kinds(&events).into_iter().filter(|kind| matches!(kind, EventKind::ToolCall { .. })).count();
    assert_eq!((calls, outcome.tool_calls), (2, 2));
}

#[test]
fn real_cli_what_is_rejected_or_denied_another_agent_does_not_do() {
    let place = lab("qwen rejected", Scenario::new());
    place.server.add("lab", Scenario::new().turn(write(&place, "one\n")).turn(Turn::say("Then not.")));
    let mut talk = converse(&place, request(&place, ""));
    let (events, outcome) = follow(talk.prompt("go").unwrap(), |permission| permission.reject("not today"));
    assert_eq!(outcome.status, Status::Success, "{outcome:?}");
    assert!(!place.workspace().join("n.txt").exists() && outcome.files.is_empty(), "{:?}", outcome.files);
    let failed =
        kinds(&events).into_iter().filter(|kind| matches!(kind, EventKind::ToolResult { ok: false, .. }));
    assert_eq!(failed.count(), 1);
    talk.close_blocking();
    // A rule that denies makes it ask about all, also in a mode that would not.
    place.server.add("lab", Scenario::new().turn(shell("touch made; rm -f keep")).turn(Turn::say("No.")));
    std::fs::write(place.workspace().join("keep"), "k").unwrap();
    let mut request = request(&place, "").approval(Approval::Yolo);
    request.rules.add(alhena_agent::rules::Decision::Deny, "shell(rm *)").unwrap();
    let mut talk = converse(&place, request);
    let (_, outcome) = follow(talk.prompt("go").unwrap(), nobody);
    assert!(outcome.commands.is_empty(), "{:?}", outcome.commands);
    assert!(place.workspace().join("keep").exists() && !place.workspace().join("made").exists());
}

#[test]
fn real_cli_a_turn_of_another_agent_is_cancelled_with_nothing_left_and_its_session_gone_on_with() {
    let scenario = Scenario::new()
        .turn(Turn::say("I will remember."))
        .turn(shell("touch begun; sleep 301"))
        .turn(Turn::say("It was plover."));
    let lab = lab("qwen cancelled", scenario);
    let mut talk = converse(&lab, request(&lab, "").approval(Approval::Yolo));
    let mark = format!("ALHENA_RUN={}", talk.about().mark);
    let (_, outcome) = follow(talk.prompt("The word is plover").unwrap(), nobody);
    assert_eq!(outcome.status, Status::Success, "{outcome:?}");
    let session = talk.session_id().unwrap();
    let mut turn = talk.prompt("go").unwrap();
    let deadline = Deadline::after(Duration::from_secs(60));
    assert!(deadline.wait_until(|| lab.workspace().join("begun").exists()));
    turn.cancel();
    while let Some(item) = turn.next_blocking() {
        assert!(!matches!(item, TurnItem::Asked(_)));
    }
    let outcome = turn.outcome_blocking();
    assert_eq!(outcome.status, Status::Cancelled, "{outcome:?}");
    let sleeps = || {
        let line = |pid: &u32| std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        processes_with_env(&mark).iter().any(|pid| line(pid).starts_with(b"sleep"))
    };
    assert!(deadline.wait_until(|| !sleeps()), "the command runs on");
    talk.close_blocking();
    assert_eq!(processes_with_env(&mark), Vec::<u32>::new());

    let mut talk = converse(&lab, request(&lab, "").resume(Resume::Id(session.clone())));
    let (_, outcome) = follow(talk.prompt("Which word?").unwrap(), nobody);
    assert_eq!((outcome.status, outcome.text.all()), (Status::Success, "It was plover."), "{outcome:?}");
    assert_eq!(talk.session_id(), Some(session));
    assert!(lab.server.requests("lab").last().unwrap().texts().any(|text| text.contains("plover")));
}

#[test]
fn real_cli_run_and_chat_take_another_agent_and_refuse_what_it_cannot_have() {
    let scenario = Scenario::new().turn(Turn::say("One.")).turn(Turn::say("Two.")).turn(Turn::say("Three."));
    let lab = lab("qwen commands", scenario);
    let alhena = |args: &[&str]| lab.alhena(args);
    let agent = command();
    let limit = Duration::from_secs(120);
    let done = run_bounded(&mut alhena(&["run", "--agent-command", &agent, "hi"]), limit).unwrap();
    assert_eq!((done.stdout_text().trim(), done.status.code()), ("One.", Some(0)), "{}", done.stderr_text());
    let done = alhena_testbed::run_bounded(
        alhena(&["chat", "--agent-command", &agent, "first"]).stdin(std::process::Stdio::null()),
        limit,
    );
    let done = done.unwrap();
    assert_eq!((done.stdout_text().trim(), done.status.code()), ("Two.", Some(0)), "{}", done.stderr_text());
    let asked = lab.calls();
    for (args, said) in [
        (&["--trust"][..], "--trust is only for Gemini CLI"),
        (&["--sandbox"], "--sandbox is only for Gemini CLI"),
        (&["--deny-tool", "web_fetch"], "--deny-tool is only for Gemini CLI"),
        (&["--transport", "headless"], "--transport headless is for Gemini CLI"),
        (&["--max-turns", "3"], "--max-turns is only for Gemini CLI"),
        (&["--schema", "{}"], "--schema is only for Gemini CLI"),
        (&["--max-calls", "3"], "--max-calls is only for Gemini CLI"),
        (&["--cassette", "x.json"], "cannot be used with"),
        (&["--resume"], "--resume without an id is only for Gemini CLI"),
        (&["--gemini", "0.61.0"], "cannot be used with"),
        (&["--offline"], "cannot be used with"),
    ] {
        let mut refused = alhena(&["run", "--agent-command", &agent, "--prompt=hi"]);
        let done = run_bounded(refused.args(args), limit).unwrap();
        assert_eq!(done.status.code(), Some(2), "{args:?}: {}", done.stderr_text());
        assert!(done.stderr_text().contains(said), "{args:?}: {}", done.stderr_text());
    }
    for (agent, said) in [
        ("no-such-agent --acp", "there is no no-such-agent on PATH"),
        ("./nothing-here", "is no program that can be started"),
        ("", "the agent command is empty"),
        ("qwen 'open", "open quote"),
    ] {
        let done = run_bounded(&mut alhena(&["run", "--agent-command", agent, "hi"]), limit).unwrap();
        assert_eq!(done.status.code(), Some(2), "{agent}: {}", done.stderr_text());
        assert!(done.stderr_text().contains(said), "{agent}: {}", done.stderr_text());
    }
    assert_eq!(lab.calls(), asked);
    // What speaks no ACP is a failure in its own name.
    let done =
        run_bounded(&mut alhena(&["run", "--agent-command", "sh -c 'echo hello'", "hi"]), limit).unwrap();
    assert!(done.stderr_text().contains("sh ") && !done.status.success(), "{}", done.stderr_text());
    assert!(!done.stderr_text().contains("Gemini CLI"), "{}", done.stderr_text());
}

/// An agent that says what makes no sense, before a turn is stopped and after it.
const CONFUSED: &str = r#"
    while read -r line; do
        id=$(printf '%s' "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
        answer() { echo '{"jsonrpc":"2.0","id":'"$1"',"result":'"$2"'}'; }
        case $line in
            *'"initialize"'*) answer "$id" '{"protocolVersion":1}' ;;
            *'"session/new"'*) answer "$id" '{"sessionId":"s"}' ;;
            *'"session/prompt"'*)
                prompt=$id
                echo 'before'
                echo '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"part"}}}}' ;;
            *'"session/cancel"'*)
                echo 'after it'
                head -c 70000000 /dev/zero | tr '\0' 'x'
                echo
                answer "$prompt" '{"stopReason":"cancelled"}' ;;
        esac
    done"#;

#[test]
fn what_makes_no_sense_is_counted_also_of_an_agent_that_was_stopped() {
    let lab = super::lab("confused", Scenario::new());
    let script = lab.home.write("confused.sh", CONFUSED).unwrap();
    let agent = AcpAgent::new(&format!("sh '{}'", script.display())).unwrap();
    let mut request = request(&lab, "");
    request.max_output = 1 << 30;
    let mut talk = agent.start_conversation(request, &lab.env).unwrap();
    let mut turn = talk.prompt("go").unwrap();
    let mut told = 0;
    while let Some(item) = turn.next_blocking() {
        if let TurnItem::Event(event) = item {
            told += usize::from(matches!(event.kind, EventKind::Malformed { .. }));
            if matches!(event.kind, EventKind::Text { .. }) {
                turn.cancel();
            }
        }
    }
    let outcome = turn.outcome_blocking();
    let counted = (outcome.malformed.lines, outcome.malformed.bytes);
    assert_eq!((outcome.status, counted), (Status::Cancelled, (3, 6 + 8 + 70_000_000)), "{outcome:?}");
    // Each is an event only where a reader can hold it up.
    assert_eq!(told, 1);
}

#[test]
fn an_agent_that_floods_is_ended_in_its_time() {
    let lab = lab("floods", Scenario::new());
    let mut alhena = lab.alhena(&["run", "--agent-command", "yes"]);
    alhena.args(["--first-event-timeout", "2s", "--as", "outcome", "hi"]);
    let done = run_bounded(&mut alhena, Duration::from_secs(60)).unwrap();
    assert_eq!(done.status.code(), Some(124), "{}", done.stderr_text());
}

#[test]
fn what_a_dead_agent_left_to_be_read_is_read_in_its_time() {
    let lab = lab("left", Scenario::new());
    // It is gone long before anybody has read that.
    let agent = lab.home.write("flood", "#!/bin/sh\nyes | head -c 200000000\n").unwrap();
    std::fs::set_permissions(&agent, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut alhena = lab.alhena(&["run", "--agent-command"]);
    alhena.arg(&agent);
    alhena.args(["--first-event-timeout", "2s", "--as", "outcome", "hi"]);
    let done = run_bounded(&mut alhena, Duration::from_secs(60)).unwrap();
    assert_eq!(done.status.code(), Some(124), "{}", done.stderr_text());
}
