//! Several sessions, and those that were there before.

use alhena_scripted::{Scenario, Turn, When};
use serde_json::{Value, json};

use super::client::{Client, of, text};
use super::lab;

#[test]
fn real_cli_a_session_is_listed_and_loaded_with_all_that_was_said_and_goes_on() {
    let scenario = Scenario::new()
        .turn(Turn::new().call("write_file", json!({"file_path": "a.txt", "content": "one\n"})))
        .turn(Turn::say("I wrote it."))
        .turn(Turn::say("I remember."));
    let lab = lab("load", scenario);
    let mut first = Client::new(&lab, &["--approval", "auto-edit"]);
    let session = first.session(&lab);
    let here = json!({"cwd": lab.workspace()});
    assert_eq!(first.ask("listSessions", here.clone())["sessions"], json!([]));
    let prompt = first.prompt(&session, "write a file");
    assert_eq!(first.answer(prompt)["result"]["stopReason"], "end_turn");
    // It is in the list while it is open, and afterwards.
    let listed = |client: &mut Client| client.ask("listSessions", here.clone())["sessions"].clone();
    let open = listed(&mut first);
    assert_eq!(
        (&open[0]["sessionId"], &open[0]["title"]),
        (&json!(session), &json!("write a file")),
        "{open}"
    );
    let refused =
        first.refused("loadSession", json!({"sessionId": session, "cwd": lab.workspace(), "mcpServers": []}));
    assert!(refused["message"].as_str().unwrap().contains("open already"), "{refused}");
    first.ask("closeSession", json!({"sessionId": session}));
    assert_eq!(listed(&mut first)[0]["sessionId"], json!(session));
    drop(first);

    let mut second = Client::new(&lab, &[]);
    let stored = listed(&mut second);
    assert_eq!(stored.as_array().unwrap().len(), 1, "{stored}");
    assert_eq!(
        (&stored[0]["sessionId"], &stored[0]["cwd"]),
        (&json!(session), &json!(lab.workspace())),
        "{stored}"
    );
    let load = json!({"sessionId": session, "cwd": lab.workspace(), "mcpServers": []});
    let loaded = second.ask("loadSession", load);
    assert_eq!(loaded["modes"]["currentModeId"], "default", "{loaded}");
    let told = second.updates(&session);
    assert_eq!(text(&told, "user_message_chunk"), "write a file", "{told:?}");
    assert_eq!(text(&told, "agent_message_chunk"), "I wrote it.");
    assert_eq!(of(&told, "tool_call").len(), 1, "{told:?}");
    let ended = of(&told, "tool_call_update");
    assert!(ended.iter().any(|update| update["status"] == "completed"), "{ended:?}");
    assert!(ended.iter().any(|update| update["content"][0]["newText"] == "one\n"), "{ended:?}");
    let prompt = second.prompt(&session, "and now?");
    assert_eq!(second.answer(prompt)["result"]["stopReason"], "end_turn");
    assert_eq!(text(&second.updates(&session), "agent_message_chunk"), "I remember.");
    let sent: Vec<String> = lab.server.requests("lab").last().unwrap().texts().map(str::to_owned).collect();
    assert!(sent.iter().any(|text| text.contains("write a file")), "{sent:?}");
}

#[test]
fn real_cli_what_cannot_be_opened_is_refused_with_a_reason() {
    let lab = lab("not opened", Scenario::new());
    let mut client = Client::new(&lab, &[]);
    let place = |dir: &str| json!({"cwd": dir, "mcpServers": []});
    let work = lab.workspace();
    for (method, params, word) in [
        ("newSession", place("relative"), "absolute"),
        ("newSession", place("/no/such/place"), "not a directory"),
        ("loadSession", json!({"sessionId": "latest", "cwd": work, "mcpServers": []}), "no session"),
        ("loadSession", json!({"sessionId": "../x", "cwd": work, "mcpServers": []}), "no session"),
        ("resumeSession", json!({"sessionId": "", "cwd": work}), "no session"),
        ("listSessions", json!({"cursor": "x"}), "cursor"),
        ("authenticate", json!({"methodId": "oauth-personal"}), "signs in by itself"),
        ("prompt", json!({"sessionId": "x", "prompt": [{"type": "text", "text": "hi"}]}), "no session"),
    ] {
        let refused = client.refused(method, params);
        assert!(refused["message"].as_str().unwrap().contains(word), "{method}: {refused}");
    }
    // One that no CLI is behind.
    let mut client = Client::new(&lab, &["--gemini", "/no/such/gemini"]);
    let refused = client.refused("newSession", json!({"cwd": work, "mcpServers": []}));
    assert_eq!(refused["data"]["kind"], "not_installed", "{refused}");
}

#[test]
fn real_cli_a_cli_that_does_not_sign_in_fails_the_session_and_not_the_first_prompt() {
    let mut lab = lab("no key", Scenario::new());
    lab.env.remove("GEMINI_API_KEY");
    let mut client = Client::new(&lab, &[]);
    let refused = client.refused("newSession", json!({"cwd": lab.workspace(), "mcpServers": []}));
    assert_eq!((&refused["code"], &refused["data"]["kind"]), (&json!(-32000), &json!("auth")), "{refused}");
    super::until_nothing_is_left_but(&lab, 2);
}

#[test]
fn real_cli_two_sessions_at_once_do_not_mix() {
    let on = |prompt: &str| When::new().prompt(prompt);
    let scenario = Scenario::new()
        .turn(Turn::new().text("left ").gate("both").text("hand").when(on("left")))
        .turn(Turn::new().text("right ").gate("both").text("foot").when(on("right")));
    let lab = lab("two sessions", scenario);
    let mut client = Client::new(&lab, &[]);
    let open =
        |client: &mut Client| client.call("newSession", json!({"cwd": lab.workspace(), "mcpServers": []}));
    let (one, other) = (open(&mut client), open(&mut client));
    let id = |answer: Value| answer["result"]["sessionId"].as_str().unwrap().to_owned();
    let (one, other) = (id(client.answer(one)), id(client.answer(other)));
    assert_ne!(one, other);
    let (first, second) = (client.prompt(&one, "left"), client.prompt(&other, "right"));
    for _ in 0..2 {
        let begun = client.wait(|said| said["update"]["update"]["sessionUpdate"] == "agent_message_chunk");
        let left = begun["update"]["sessionId"] == json!(one);
        assert_eq!(begun["update"]["update"]["content"]["text"], if left { "left " } else { "right " });
    }
    // A second prompt in the same session has to wait for the first.
    let third = client.prompt(&one, "left");
    assert_eq!(client.answer(third)["error"]["code"], -32600);
    lab.server.release("lab", "both");
    for (prompt, session, word) in [(first, one, "hand"), (second, other, "foot")] {
        assert_eq!(client.answer(prompt)["result"]["stopReason"], "end_turn");
        assert_eq!(text(&client.updates(&session), "agent_message_chunk"), word);
    }
}
