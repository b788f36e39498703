//! Conversations side by side: what one process would share between its sessions, and what a home would.

use alhena_agent::Approval;
use alhena_model::Status;
use alhena_scripted::{RecordedRequest, Scenario, Turn};
use serde_json::json;

use super::{converse, follow, lab, nobody};
use crate::lab::Build;

#[test]
fn real_cli_a_folders_env_and_context_file_do_not_reach_a_conversation_in_another() {
    let echo = || Turn::new().call("run_shell_command", json!({"command": "echo who=$WHO"}));
    let scenario = Scenario::dynamic(move |request: &RecordedRequest| match request.responses().count() {
        0 => echo(),
        _ => Turn::say("Done."),
    });
    let lab = lab("side by side", scenario);
    let folder = |name: &str| {
        lab.home.write(format!("{name}/.env"), format!("WHO={name}\n")).unwrap();
        let settings = json!({"context": {"fileName": format!("{name}.md")}});
        lab.home.write(format!("{name}/.gemini/settings.json"), settings.to_string()).unwrap();
        for other in ["first", "second"] {
            lab.home.write(format!("{name}/{other}.md"), format!("CONTEXT {other} IN {name}")).unwrap();
        }
        lab.workspace().join(name)
    };
    let request = |name: &str| lab.request("").dir(folder(name)).approval(Approval::Yolo);
    let mut talks: Vec<_> = ["first", "second"].map(|name| (name, converse(&lab, request(name)))).into();
    for (name, talk) in &mut talks {
        let before = lab.server.requests("lab").len();
        let (_, outcome) = follow(talk.prompt("who are you").unwrap(), nobody);
        assert_eq!(outcome.status, Status::Success, "{:?}", outcome.failure);
        let output = outcome.commands[0].output.as_deref().map(str::trim);
        assert_eq!(output, Some(format!("who={name}").as_str()));
        let asked = lab.server.requests("lab").split_off(before);
        let body: String = asked.iter().map(|request| request.body.to_string()).collect();
        let other = if *name == "first" { "second" } else { "first" };
        assert!(body.contains(&format!("CONTEXT {name} IN {name}")), "{name}");
        assert!(!body.contains(&format!("CONTEXT {other}")), "{name}");
    }
}

#[test]
fn real_cli_conversations_that_begin_at_once_in_one_home_all_get_their_session() {
    let lab = lab("at once", Scenario::dynamic(|_: &RecordedRequest| Turn::say("Here.")));
    std::thread::scope(|scope| {
        let talks: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let mut talk = converse(&lab, lab.request(""));
                    let (_, outcome) = follow(talk.prompt("hi").unwrap(), nobody);
                    let closed = talk.close_blocking();
                    (outcome.status, outcome.session_id.clone(), closed.session_files.len())
                })
            })
            .collect();
        let mut sessions: Vec<_> = talks.into_iter().map(|talk| talk.join().unwrap()).collect();
        sessions.sort_by(|one, other| one.1.cmp(&other.1));
        sessions.dedup();
        assert_eq!(sessions.len(), 4, "{sessions:?}");
        assert!(
            sessions.iter().all(|(status, _, files)| (*status, *files) == (Status::Success, 1)),
            "{sessions:?}"
        );
    });
}
