//! Turns: what is said, what is done and what is asked.

use alhena_scripted::{Scenario, Turn, Usage};
use serde_json::{Value, json};

use super::client::{Client, of, text};
use super::{lab, until_nothing_is_left};

fn write_file(name: &str, content: &str) -> Turn {
    Turn::new().call("write_file", json!({"file_path": name, "content": content}))
}

fn shell(command: &str) -> Turn {
    Turn::new().call("run_shell_command", json!({"command": command, "description": "x"}))
}

#[test]
fn real_cli_a_turn_is_thoughts_and_text_with_its_usage() {
    let used = Usage {
        prompt_token_count: Some(1000),
        cached_content_token_count: Some(200),
        candidates_token_count: Some(100),
        thoughts_token_count: Some(50),
        total_token_count: Some(1150),
        ..Usage::default()
    };
    let turn = Turn::new().thought("Plan", "say it").text("Hello, ").text("editor.").usage(used);
    let lab = lab("text and thoughts", Scenario::new().turn(turn));
    let mut client = Client::new(&lab, &[]);
    let session = client.session(&lab);
    let prompt = client.prompt(&session, "hi");
    let answer = client.answer(prompt);
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    assert_eq!(answer["result"]["_meta"]["alhena"]["usage"]["total"], 1150, "{answer}");
    let updates = client.updates(&session);
    assert_eq!(text(&updates, "agent_message_chunk"), "Hello, editor.");
    assert_eq!(text(&updates, "agent_thought_chunk"), "**Plan**\nsay it");
    assert_eq!(of(&updates, "user_message_chunk").len(), 0);
    let usage = of(&updates, "usage_update");
    assert_eq!((&usage[0]["used"], &usage[0]["size"]), (&json!(1150), &json!(1 << 20)), "{usage:?}");
    assert!(usage[0]["cost"]["amount"].as_f64().unwrap() > 0.0);
    client.end();
    assert_eq!(client.wait(|said| said.get("closed").is_some())["closed"], 0);
    until_nothing_is_left(&lab);
}

#[test]
fn real_cli_what_is_allowed_is_done_what_is_rejected_is_not_and_a_session_remembers() {
    let scenario = Scenario::new()
        .turn(write_file("a.txt", "one\n"))
        .turn(shell("touch b.txt"))
        .turn(shell("echo out; echo more; exit 3"))
        .turn(shell("touch c.txt"))
        .turn(shell("touch c.txt"))
        .turn(Turn::say("Done."));
    let lab = lab("permissions", scenario);
    let mut client = Client::new(&lab, &[]);
    let session = client.session(&lab);
    let prompt = client.prompt(&session, "go");

    let asked = client.question();
    let call = &asked.1["toolCall"];
    assert_eq!((&call["kind"], &call["status"]), (&json!("edit"), &json!("pending")), "{call}");
    let diff = &call["content"][0];
    assert_eq!((&diff["type"], &diff["newText"]), (&json!("diff"), &json!("one\n")), "{call}");
    assert_eq!(diff["path"], json!(lab.workspace().join("a.txt")));
    let kinds: Vec<&Value> =
        asked.1["options"].as_array().unwrap().iter().map(|option| &option["kind"]).collect();
    assert_eq!(kinds, ["allow_once", "allow_always", "reject_once"]);
    let written = call["toolCallId"].clone();
    client.choose(asked, "allow_once");

    let asked = client.question();
    assert_eq!(asked.1["toolCall"]["title"], "touch b.txt");
    let rejected = asked.1["toolCall"]["toolCallId"].clone();
    client.choose(asked, "reject_once");

    let asked = client.question();
    let failed = asked.1["toolCall"]["toolCallId"].clone();
    client.choose(asked, "allow_once");
    let asked = client.question();
    client.choose(asked, "allow_always");

    let answer = client.answer(prompt);
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    assert!(!client.has_question());
    let made = |name: &str| lab.workspace().join(name).exists();
    assert_eq!((made("a.txt"), made("b.txt"), made("c.txt")), (true, false, true));

    let updates = client.updates(&session);
    // Each call is announced once, before anything else is told of it.
    let announced: Vec<&Value> =
        of(&updates, "tool_call").iter().map(|update| &update["toolCallId"]).collect();
    assert_eq!(announced.len(), 5, "{announced:?}");
    let last = |id: &Value| {
        of(&updates, "tool_call_update")
            .into_iter()
            .rfind(|update| update["toolCallId"] == *id)
            .unwrap()
            .clone()
    };
    let edit = last(&written);
    assert_eq!(
        (&edit["status"], &edit["content"][0]["type"]),
        (&json!("completed"), &json!("diff")),
        "{edit}"
    );
    assert_eq!(last(&rejected)["status"], "failed");
    let printed = last(&failed);
    assert_eq!(
        (&printed["status"], &printed["rawOutput"]["exitCode"]),
        (&json!("failed"), &json!(3)),
        "{printed}"
    );
    assert!(printed["content"].to_string().contains("out\\nmore"), "{printed}");
    // The model was told that somebody said no.
    let told =
        lab.server.requests("lab")[2].responses().map(|(_, said)| said.to_string()).collect::<String>();
    assert!(told.contains("The user rejected it"), "{told}");
}

#[test]
fn real_cli_an_edit_in_a_mode_that_allows_it_has_its_diff_too() {
    let replace = json!({"file_path": "a.txt", "old_string": "two", "new_string": "2", "instruction": "x"});
    let scenario = Scenario::new()
        .turn(Turn::new().call("read_file", json!({"file_path": "a.txt"})))
        .turn(Turn::new().call("replace", replace))
        .turn(Turn::say("Done."));
    let lab = lab("an edit", scenario);
    lab.home.write("a.txt", "one\ntwo\n").unwrap();
    let mut client = Client::new(&lab, &["--approval", "auto-edit"]);
    let session = client.session(&lab);
    let prompt = client.prompt(&session, "edit");
    let answer = client.answer(prompt);
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    assert_eq!(answer["result"]["_meta"]["alhena"]["files"][0]["verified"], true, "{answer}");
    assert_eq!(std::fs::read_to_string(lab.workspace().join("a.txt")).unwrap(), "one\n2\n");
    let updates = client.updates(&session);
    let diff = updates.iter().rev().find_map(|update| {
        update["content"].as_array()?.iter().find(|content| content["type"] == "diff").cloned()
    });
    let diff = diff.unwrap_or_else(|| panic!("{updates:?}"));
    assert_eq!((&diff["oldText"], &diff["newText"]), (&json!("one\ntwo\n"), &json!("one\n2\n")));
    let read = of(&updates, "tool_call")[0];
    assert_eq!(read["rawInput"]["file_path"], "a.txt", "{read}");
}

#[test]
fn real_cli_things_to_do_are_a_plan() {
    let todos = json!([{"description": "one", "status": "completed"}, {"description": "two", "status": "in_progress"}]);
    let scenario = Scenario::new()
        .turn(Turn::new().call("write_todos", json!({ "todos": todos })))
        .turn(Turn::say("Done."));
    let lab = lab("a plan", scenario);
    let mut client = Client::new(&lab, &["--approval", "yolo"]);
    let session = client.session(&lab);
    let prompt = client.prompt(&session, "plan");
    assert_eq!(client.answer(prompt)["result"]["stopReason"], "end_turn");
    let updates = client.updates(&session);
    let [plan] = of(&updates, "plan")[..] else { panic!("{updates:?}") };
    let entries: Vec<(&str, &str)> = plan["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| (entry["content"].as_str().unwrap(), entry["status"].as_str().unwrap()))
        .collect();
    assert_eq!(entries, [("one", "completed"), ("two", "in_progress")]);
}

#[test]
fn real_cli_an_answer_that_was_cut_off_says_so_in_its_reason() {
    let cut = Turn::new().text("part of it").finish("MAX_TOKENS");
    let lab = lab("cut off", Scenario::new().turn(cut).turn(Turn::say("Whole.")));
    let mut client = Client::new(&lab, &[]);
    let session = client.session(&lab);
    for (text, reason) in [("cut", "max_tokens"), ("whole", "end_turn")] {
        let prompt = client.prompt(&session, text);
        let answer = client.answer(prompt);
        assert_eq!(answer["result"]["stopReason"], reason, "{answer}");
    }
}

#[test]
fn real_cli_rules_decide_before_the_editor_is_asked() {
    let scenario =
        Scenario::new().turn(shell("touch a.txt")).turn(shell("rm a.txt")).turn(Turn::say("Done."));
    let lab = lab("rules", scenario);
    let mut client = Client::new(&lab, &["--allow", "shell(touch *)", "--deny", "shell(rm *)"]);
    let session = client.session(&lab);
    let prompt = client.prompt(&session, "go");
    let answer = client.answer(prompt);
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    assert!(!client.has_question());
    assert!(lab.workspace().join("a.txt").exists());
}

#[test]
fn real_cli_a_failure_is_an_error_with_its_kind_and_a_hint_and_the_session_goes_on() {
    let wrong = json!({"code": 400, "message": "No such luck.", "status": "INVALID_ARGUMENT"});
    let scenario = Scenario::new().turn(Turn::error(400, wrong)).turn(Turn::say("After."));
    let lab = lab("an API error", scenario);
    let mut client = Client::new(&lab, &[]);
    let session = client.session(&lab);
    let prompt = client.prompt(&session, "fail");
    let error = client.answer(prompt)["error"].clone();
    assert_eq!(
        (&error["data"]["kind"], &error["data"]["httpStatus"]),
        (&json!("input"), &json!(400)),
        "{error}"
    );
    assert!(!error["data"]["hint"].as_str().unwrap().is_empty(), "{error}");
    let prompt = client.prompt(&session, "again");
    assert_eq!(client.answer(prompt)["result"]["stopReason"], "end_turn");
}

#[test]
fn real_cli_mode_and_model_can_be_chosen() {
    let scenario =
        Scenario::new().turn(write_file("a.txt", "x")).turn(Turn::say("One.")).turn(Turn::say("Two."));
    let lab = lab("mode and model", scenario);
    let mut client = Client::new(&lab, &[]);
    let opened = client.ask("newSession", json!({"cwd": lab.workspace(), "mcpServers": []}));
    let session = opened["sessionId"].clone();
    assert_eq!(opened["modes"]["currentModeId"], "default");
    let option = |id: &str, options: &Value| {
        options.as_array().unwrap().iter().find(|option| option["id"] == id).unwrap()["currentValue"].clone()
    };
    assert_eq!(option("model", &opened["configOptions"]), "gemini-2.5-flash");
    client.ask("setSessionMode", json!({"sessionId": session, "modeId": "autoEdit"}));
    let prompt = client.prompt(session.as_str().unwrap(), "write");
    assert_eq!(client.answer(prompt)["result"]["stopReason"], "end_turn");
    assert!(!client.has_question() && lab.workspace().join("a.txt").exists());
    let set = |value: &str| json!({"sessionId": session, "configId": "model", "value": value});
    let chosen = client.ask("setSessionConfigOption", set("gemini-2.5-pro"));
    assert_eq!(option("model", &chosen["configOptions"]), "gemini-2.5-pro");
    assert_eq!(option("mode", &chosen["configOptions"]), "autoEdit");
    let prompt = client.prompt(session.as_str().unwrap(), "next");
    assert_eq!(client.answer(prompt)["result"]["stopReason"], "end_turn");
    assert_eq!(lab.server.requests("lab").last().unwrap().model, "gemini-2.5-pro");
    for (method, params) in [
        ("setSessionMode", json!({"sessionId": session, "modeId": "root"})),
        ("setSessionConfigOption", set("no-such-model")),
        ("setSessionConfigOption", json!({"sessionId": session, "configId": "x", "value": "y"})),
        ("setSessionMode", json!({"sessionId": "nobody", "modeId": "yolo"})),
        ("session/fork", json!({"sessionId": session})),
    ] {
        let refused = client.refused(method, params);
        assert!(refused["code"].as_i64().unwrap() < 0, "{method}: {refused}");
    }
}

#[test]
fn real_cli_mcp_servers_of_an_editor_are_used_with_their_environment() {
    let scenario = Scenario::new()
        .turn(Turn::new().call("mcp_echo_shout", json!({"word": "hi"})))
        .turn(Turn::say("Done."));
    let lab = lab("mcp", scenario);
    let source = crate::lab::SHOUTING_SERVER
        .replace("params.arguments.word", "(process.env.WORD + params.arguments.word)");
    let server = lab.home.write("server.js", source).unwrap();
    let mut client = Client::new(&lab, &[]);
    let servers = json!([{"name": "echo", "command": "node", "args": [server], "env": [{"name": "WORD", "value": "oh=so "}]}]);
    let opened = client.ask("newSession", json!({"cwd": lab.workspace(), "mcpServers": servers}));
    let session = opened["sessionId"].as_str().unwrap().to_owned();
    let prompt = client.prompt(&session, "shout");
    let asked = client.question();
    assert_eq!(asked.1["toolCall"]["rawInput"], json!({"word": "hi"}), "{}", asked.1);
    client.choose(asked, "allow_once");
    assert_eq!(client.answer(prompt)["result"]["stopReason"], "end_turn");
    let updates = client.updates(&session);
    assert!(json!(updates).to_string().contains("OH=SO HI"), "{updates:?}");
}
