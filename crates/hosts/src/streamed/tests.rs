use alhena_model::message::message;
use alhena_wire::Raw;
use alhena_wire::session::MessageRecord;
use serde_json::{Value, json};

use super::*;
use crate::samples::{call, event, result};

fn of(source: Source, kind: EventKind) -> Event {
    Event { source, ..event(kind) }
}

fn text(delta: &str) -> EventKind {
    EventKind::Text { delta: delta.to_owned() }
}

fn started() -> EventKind {
    EventKind::Started { session_id: "s".to_owned(), model: "auto".to_owned() }
}

fn tell(streamed: &mut Streamed, kind: EventKind) -> Option<Value> {
    let told = streamed.event(&event(kind));
    told.map(|message| serde_json::to_value(message).unwrap())
}

const RUN: &str = "s-1794764950600";

#[test]
fn a_message_grows_under_one_name_in_claudes_words() {
    let mut streamed = Streamed::default();
    assert_eq!(tell(&mut streamed, started()), None);
    let prompt = tell(&mut streamed, EventKind::Prompt { text: "Go".to_owned() }).unwrap();
    assert_eq!(prompt["id"], format!("{RUN}-0"));
    assert_eq!(prompt["content"], json!([{"type": "text", "text": "Go"}]));
    tell(&mut streamed, text("I edit")).unwrap();
    let edit = json!({"file_path": "a", "old_string": "x", "new_string": "y", "instruction": "do"});
    tell(&mut streamed, call("1", "replace", edit)).unwrap();
    let failed = tell(&mut streamed, result("1", "", false, None, Some("no x in it"))).unwrap();
    let used = json!({"type": "tool_use", "id": "1", "name": "Edit",
        "input": {"file_path": "a", "old_string": "x", "new_string": "y"}});
    let answered =
        json!({"type": "tool_result", "tool_use_id": "1", "content": "no x in it", "is_error": true});
    assert_eq!(failed["id"], format!("{RUN}-1"));
    assert_eq!(failed["content"], json!([used, answered, {"type": "text", "text": "I edit"}]));
    assert_eq!(failed["_original"]["toolCalls"][0]["name"], "replace");
    let next = tell(&mut streamed, text("Sorry")).unwrap();
    assert_eq!(next["id"], format!("{RUN}-2"));
    assert_eq!(next["content"], json!([{"type": "text", "text": "Sorry"}]));
}

#[test]
fn a_command_that_failed_is_an_error_with_an_exit_code() {
    let mut streamed = Streamed::default();
    tell(&mut streamed, started());
    tell(&mut streamed, call("1", "run_shell_command", json!({"command": "false"}))).unwrap();
    let mut ended = result("1", "", false, Some("ran"), None);
    if let EventKind::ToolResult { exit_code, .. } = &mut ended {
        *exit_code = Some(3);
    }
    let told = tell(&mut streamed, ended).unwrap();
    assert_eq!(
        told["content"][1],
        json!({"type": "tool_result", "tool_use_id": "1", "content": "ran", "is_error": true, "exit_code": 3})
    );
}

#[test]
fn thoughts_and_costs_come_to_the_answer_that_they_are_of() {
    let mut streamed = Streamed::default();
    tell(&mut streamed, started());
    tell(&mut streamed, text("One")).unwrap();
    let thought = EventKind::Thinking { subject: "Plan".to_owned(), text: "count".to_owned() };
    let told = tell(&mut streamed, thought).unwrap();
    assert_eq!(told["content"][0], json!({"type": "thinking", "thinking": "Plan: count"}));
    let tokens = alhena_model::Tokens { prompt: 3, output: 2, total: 5, ..Default::default() };
    let usage = alhena_model::CallUsage { call: Some(1), usage: Usage::of_models([("m", tokens)]) };
    let usage = EventKind::Usage(usage);
    let aside = streamed.event(&of(Source::Derived, usage.clone()));
    assert!(aside.is_none(), "that of a sub-agent is of another conversation");
    let told = serde_json::to_value(streamed.event(&of(Source::Session, usage)).unwrap()).unwrap();
    assert_eq!((&told["model"], &told["usage"]["total_tokens"]), (&json!("m"), &json!(5)));
    assert_eq!(told["id"], format!("{RUN}-0"));
}

#[test]
fn what_is_told_of_a_long_text_stays_in_proportion() {
    let mut streamed = Streamed::default();
    tell(&mut streamed, started());
    let told: usize = (0..20_000)
        .filter_map(|_| tell(&mut streamed, text("ten bytes.")))
        .map(|message| message["content"][0]["text"].as_str().map_or(0, str::len))
        .sum();
    assert!(told < 200_000 * 40, "{told}");
}

#[test]
fn final_messages_keep_the_names_under_which_they_were_told() {
    let mut streamed = Streamed::default();
    tell(&mut streamed, started());
    tell(&mut streamed, EventKind::Prompt { text: "Go".to_owned() });
    tell(&mut streamed, text("A try that was lost. I look"));
    tell(&mut streamed, call("1", "read_file", json!({"file_path": "a"})));
    tell(&mut streamed, result("1", "", true, Some("a"), None));
    tell(&mut streamed, text("Done"));
    let records = [
        r#"{"id":"r0","type":"user","content":"Go"}"#,
        r#"{"id":"r1","type":"gemini","content":"I look","toolCalls":[{"id":"1","name":"read_file","args":{}}]}"#,
        r#"{"id":"r2","type":"gemini","content":"Done"}"#,
        r#"{"id":"r3","type":"gemini","content":"More"}"#,
    ];
    let mut messages: Vec<Message<'_>> = records
        .iter()
        .map(|text| message(MessageRecord::from_text(text).unwrap(), Raw::from_text(text).unwrap()))
        .collect();
    streamed.name(&mut messages);
    let names: Vec<&str> = messages.iter().map(|message| &*message.id).collect();
    let told = |number| format!("{RUN}-{number}");
    assert_eq!(names, [told(0), told(1), told(2), format!("{RUN}-unseen-3")]);
    assert!(messages[0].original.get().contains("r0"));
}

fn recorded(streamed: &mut Streamed) {
    let tokens = alhena_model::Tokens { prompt: 3, output: 2, total: 5, ..Default::default() };
    let usage = alhena_model::CallUsage { call: None, usage: Usage::of_models([("m", tokens)]) };
    streamed.event(&of(Source::Session, EventKind::Usage(usage)));
}

#[test]
fn calls_of_one_answer_that_come_one_by_one_stay_in_it() {
    let mut streamed = Streamed::default();
    streamed.transport(Transport::Acp);
    tell(&mut streamed, started());
    // Over ACP an answer is recorded before its first call, also one without text.
    recorded(&mut streamed);
    let mut answers = Vec::new();
    for id in ["1", "2"] {
        answers.push(tell(&mut streamed, call(id, "read_file", json!({"file_path": id}))).unwrap());
        tell(&mut streamed, result(id, "", true, Some("x"), None));
    }
    assert_eq!((&answers[0]["id"], &answers[0]["usage"]["total_tokens"]), (&answers[1]["id"], &json!(5)));
    assert_eq!(answers[1]["content"].as_array().unwrap().len(), 3);
    recorded(&mut streamed);
    let next = tell(&mut streamed, call("3", "read_file", json!({"file_path": "c"}))).unwrap();
    assert_eq!(next["id"], format!("{RUN}-1"));
    assert_eq!(next["content"].as_array().unwrap().len(), 1);
}

#[test]
fn calls_of_answers_that_are_recorded_later_are_not_joined() {
    let mut streamed = Streamed::default();
    tell(&mut streamed, started());
    for id in ["1", "2"] {
        let told = tell(&mut streamed, call(id, "read_file", json!({"file_path": id}))).unwrap();
        assert_eq!(told["content"].as_array().unwrap().len(), 1, "{told}");
        recorded(&mut streamed);
        tell(&mut streamed, result(id, "", true, Some("x"), None));
    }
}

#[test]
fn headless_a_record_that_is_read_before_its_call_joins_no_answers() {
    let mut streamed = Streamed::default();
    tell(&mut streamed, started());
    recorded(&mut streamed);
    let mut answers = Vec::new();
    // The record of the second answer is read after its call.
    for id in ["1", "2"] {
        answers.push(tell(&mut streamed, call(id, "read_file", json!({"file_path": id}))).unwrap());
        tell(&mut streamed, result(id, "", true, Some("x"), None));
    }
    assert_ne!(answers[0]["id"], answers[1]["id"]);
    assert_eq!(answers[1]["content"].as_array().unwrap().len(), 1);
}
