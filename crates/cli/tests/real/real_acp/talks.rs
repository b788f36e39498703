//! What is said and done in a conversation.

use std::time::Duration;

use alhena_agent::Action;
use alhena_model::{Change, EventKind, FailureKind, Status};
use alhena_scripted::{After, Scenario, Turn};
use alhena_testbed::run_bounded;
use serde_json::json;

use super::{converse, follow, kinds, lab, nobody};

#[test]
fn real_cli_a_conversation_has_turns_with_text_thoughts_usage_and_one_session() {
    let scenario = Scenario::new()
        .turn(Turn::new().thought("Plan", "say hello").text("Hello ").text("there 🌍."))
        .turn(Turn::say("Again."));
    let lab = lab("two turns", scenario);
    let mut talk = converse(&lab, lab.request(""));
    let (events, outcome) = follow(talk.prompt("Say hi").unwrap(), nobody);
    assert_eq!(outcome.status, Status::Success, "{:?}", outcome.failure);
    assert_eq!(outcome.text.all(), "Hello there 🌍.");
    assert_eq!(outcome.models, ["gemini-2.5-flash"]);
    assert!(outcome.usage.all.prompt > 0 && outcome.usage.all.total > 0, "{:?}", outcome.usage);
    let kinds = kinds(&events);
    assert!(matches!(kinds[0], EventKind::Started { model, .. } if model == "gemini-2.5-flash"), "{kinds:?}");
    assert!(kinds.contains(&&EventKind::Prompt { text: "Say hi".into() }), "{kinds:?}");
    let thought = EventKind::Thinking { subject: "Plan".into(), text: "say hello".into() };
    assert_eq!(kinds.iter().filter(|kind| ***kind == thought).count(), 1, "{kinds:?}");
    assert!(matches!(kinds.last(), Some(EventKind::Finished { .. })));
    let session = outcome.session_id.clone().unwrap();
    assert_eq!(talk.session_id(), Some(session.clone()));

    let (_, second) = follow(talk.prompt("Once more").unwrap(), nobody);
    assert_eq!((second.status, second.text.all()), (Status::Success, "Again."), "{:?}", second.failure);
    assert_eq!(second.session_id.as_ref(), Some(&session));
    // The second prompt came with the first one's history.
    let requests = lab.server.requests("lab");
    assert!(requests.last().unwrap().texts().any(|text| text.contains("Hello there")));
    let closed = talk.close_blocking();
    let stored = closed.session_files.iter().filter(|file| file.starts_with(lab.home.gemini())).count();
    assert_eq!(stored, 1, "{closed:?}");
}

fn shell() -> Scenario {
    Scenario::new()
        .turn(
            Turn::new()
                .text("Go. ")
                .call("run_shell_command", json!({"command": "echo out; touch made; exit 3"})),
        )
        .turn(Turn::say("Done."))
}

#[test]
fn real_cli_a_command_that_is_allowed_once_runs_and_its_output_and_exit_code_are_known() {
    let lab = lab("allowed", shell());
    let mut talk = converse(&lab, lab.request(""));
    let mut asked = Vec::new();
    let (events, outcome) = follow(talk.prompt("run it").unwrap(), |permission| {
        asked.push(permission.question().clone());
        permission.allow_once();
    });
    assert_eq!(outcome.status, Status::Success, "{:?}", outcome.failure);
    let [question] = &asked[..] else { panic!("{asked:?}") };
    assert_eq!(question.tool, "run_shell_command");
    let command = Action::Command { command: "echo out; touch made; exit 3".into(), background: false };
    assert_eq!(question.action, command);
    assert_eq!(question.dir, lab.workspace().canonicalize().unwrap());
    assert!(lab.workspace().join("made").exists());
    let [run] = &outcome.commands[..] else { panic!("{:?}", outcome.commands) };
    assert_eq!((run.exit_code, run.output.as_deref().map(str::trim)), (Some(3), Some("out")));
    assert_eq!((outcome.text.all(), outcome.text.last()), ("Go. Done.", "Done."));
    let made = outcome.files.iter().find(|file| file.path == "made").unwrap();
    assert_eq!((made.change, made.claimed), (Change::Created, false));
    let called = kinds(&events).into_iter().find_map(|kind| match kind {
        EventKind::ToolCall { id, .. } => Some(id.clone()),
        _ => None,
    });
    assert_eq!(called.as_deref(), Some(question.call_id.as_str()));
}

#[test]
fn real_cli_a_command_that_is_rejected_does_not_run_and_its_call_ends() {
    let lab = lab("rejected", shell());
    let mut talk = converse(&lab, lab.request(""));
    let (events, outcome) = follow(talk.prompt("run it").unwrap(), |ask| ask.reject("not today"));
    assert_eq!(outcome.status, Status::Success, "{:?}", outcome.failure);
    assert!(!lab.workspace().join("made").exists());
    assert_eq!((outcome.tool_calls, outcome.commands.len()), (1, 0));
    let error = kinds(&events).into_iter().find_map(|kind| match kind {
        EventKind::ToolResult { ok: false, error: Some(error), .. } => Some(error.clone()),
        _ => None,
    });
    let error = error.unwrap();
    assert_eq!((error.kind.as_str(), error.message.as_str()), ("rejected", "not today"));
    // The model knows why, in plain words.
    let requests = lab.server.requests("lab");
    let told: Vec<_> = requests.last().unwrap().responses().map(|(_, told)| told["error"].clone()).collect();
    assert_eq!(told, ["The user rejected this call, and it did not run. Reason: not today"]);
}

#[test]
fn real_cli_an_edit_is_asked_with_its_diff_and_what_is_allowed_for_the_conversation_is_not_asked_again() {
    let write =
        |content: &str| Turn::new().call("write_file", json!({"file_path": "n.txt", "content": content}));
    let scenario = Scenario::new()
        .turn(write("one\n"))
        .turn(Turn::say("First."))
        .turn(write("two\n"))
        .turn(Turn::say("Second."));
    let lab = lab("edit", scenario);
    let mut talk = converse(&lab, lab.request(""));
    let mut asked = Vec::new();
    let (_, outcome) = follow(talk.prompt("write").unwrap(), |permission| {
        asked.push(permission.action.clone());
        permission.allow_for_conversation();
    });
    let path = lab.workspace().canonicalize().unwrap().join("n.txt");
    assert_eq!(asked, [Action::Diff { path, before: String::new(), after: "one\n".into() }]);
    let [file] = &outcome.files[..] else { panic!("{:?}", outcome.files) };
    assert_eq!((file.path.as_str(), file.change, file.verified), ("n.txt", Change::Created, true));
    assert!(file.diff.as_deref().unwrap().contains("+one"), "{file:?}");
    let (_, outcome) = follow(talk.prompt("write again").unwrap(), nobody);
    let [file] = &outcome.files[..] else { panic!("{:?}", outcome.files) };
    assert_eq!((file.path.as_str(), file.change, file.verified), ("n.txt", Change::Modified, true));
    assert_eq!(std::fs::read_to_string(lab.workspace().join("n.txt")).unwrap(), "two\n");
}

#[test]
fn real_cli_a_turn_that_the_api_refuses_fails_with_its_status_and_the_conversation_goes_on() {
    let refused =
        Turn::error(400, json!({"code": 400, "message": "It said no.", "status": "INVALID_ARGUMENT"}));
    let lab = lab("refused", Scenario::new().turn(refused).turn(Turn::say("Well.")).after(After::Error));
    let mut talk = converse(&lab, lab.request(""));
    let (_, outcome) = follow(talk.prompt("one").unwrap(), nobody);
    let failure = outcome.failure.as_ref().unwrap();
    assert_eq!((failure.kind, failure.http_status), (FailureKind::Input, Some(400)), "{failure:?}");
    let (_, outcome) = follow(talk.prompt("two").unwrap(), nobody);
    assert_eq!((outcome.status, outcome.text.all()), (Status::Success, "Well."), "{:?}", outcome.failure);
}

#[test]
fn real_cli_a_missing_key_is_a_matter_of_signing_in() {
    let lab = lab("no key", Scenario::new());
    let mut command = lab.command(&["--transport", "acp", "--trust", "hi"]);
    let done = run_bounded(command.env_remove("GEMINI_API_KEY"), Duration::from_secs(120)).unwrap();
    assert_eq!(done.status.code(), Some(4), "{}", done.stderr_text());
}

#[test]
fn real_cli_a_conversation_can_be_opened_before_its_first_prompt_and_fails_there_if_it_cannot() {
    let mut lab = lab("open", Scenario::new().turn(Turn::say("Hi.")));
    let mut talk = converse(&lab, lab.request(""));
    let (_, outcome) = follow(talk.open().unwrap(), nobody);
    assert_eq!(outcome.failure, None);
    let opened = talk.opened().unwrap();
    assert_eq!(talk.session_id(), Some(opened.session_id));
    assert!(opened.models.iter().any(|model| model.id == "gemini-2.5-pro"), "{:?}", opened.models);
    let (_, outcome) = follow(talk.prompt("hi").unwrap(), nobody);
    assert_eq!((outcome.status, outcome.text.all()), (Status::Success, "Hi."), "{:?}", outcome.failure);
    talk.close_blocking();

    lab.env.remove("GEMINI_API_KEY");
    let mut talk = converse(&lab, lab.request(""));
    let (_, outcome) = follow(talk.open().unwrap(), nobody);
    assert_eq!(outcome.failure.as_ref().map(|failure| failure.kind), Some(FailureKind::Auth));
    assert_eq!(talk.opened(), None);
}
