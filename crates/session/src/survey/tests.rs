use super::*;

use alhena_model::Tokens;
use serde_json::{Value, json};

fn log(records: &[Value]) -> Survey {
    let text: String = records.iter().map(|record| format!("{record}\n")).collect();
    of_bytes(text.as_bytes())
}

fn header() -> Value {
    json!({"sessionId": "s1", "projectHash": "h", "startTime": "2026-11-15T18:07:00.000Z",
           "lastUpdated": "2026-11-15T18:07:00.000Z", "kind": "main"})
}

fn context() -> Value {
    json!({"id": "ctx", "timestamp": "t", "type": "user", "content": [{"text": "<session_context>\nHi"}]})
}

fn prompt(id: &str, text: &str) -> Value {
    json!({"id": id, "timestamp": "t", "type": "user", "content": [{"text": text}]})
}

fn answer(id: &str, text: &str, total: u64) -> Value {
    json!({"id": id, "timestamp": "2026-11-15T18:08:00.000Z", "type": "gemini", "content": text, "thoughts": [],
           "tokens": {"input": total - 1, "output": 1, "cached": 0, "thoughts": 0, "tool": 0, "total": total},
           "model": "gemini-2.5-flash"})
}

fn with_calls(mut answer: Value) -> Value {
    answer["toolCalls"] =
        json!([{"id": "c", "name": "read_file", "args": {"tokens": {"input": 99}}, "status": "success"}]);
    answer
}

#[test]
fn a_log_is_folded_and_a_message_counts_once() {
    let survey = log(&[
        header(),
        json!({"$set": {"messages": [context()]}}),
        prompt("u1", "  First\nprompt "),
        answer("g1", "", 10),
        with_calls(answer("g1", "", 10)),
        json!({"id": "r1", "type": "user", "content": [{"functionResponse": {"id": "c", "response": {"output": "x"}}},
               {"inlineData": {"data": "AA==", "mimeType": "image/png"}}]}),
        answer("g2", "Done.", 20),
        json!({"$set": {"lastUpdated": "2026-11-15T18:09:00.000Z"}}),
    ]);
    let tokens = Tokens { prompt: 28, output: 2, total: 30, ..Tokens::default() };
    let spent = Spent {
        day: "2026-11-15".into(),
        model: "gemini-2.5-flash".into(),
        large: false,
        answers: 2,
        tokens,
    };
    assert_eq!(
        survey,
        Survey {
            id: Some("s1".into()),
            header: true,
            subagent: false,
            title: Some("First\nprompt".into()),
            started: Some(1_794_766_020_000),
            updated: Some(1_794_766_140_000),
            messages: 3,
            prompts: 1,
            spent: vec![spent],
            ending: Ending::Answered,
            lost: 0,
        }
    );
}

#[test]
fn tokens_are_found_behind_the_tool_calls_too() {
    let survey = log(&[
        header(),
        json!({"id": "g", "timestamp": "t", "type": "gemini", "content": "",
               "toolCalls": [{"args": {"tokens": {"input": 5}, "model": "no"}}], "thoughts": [], "model": "m",
               "tokens": {"input": 1, "output": 2, "cached": 0, "total": 3}}),
    ]);
    assert_eq!(survey.usage().models["m"], Tokens { prompt: 1, output: 2, total: 3, ..Tokens::default() });
    assert_eq!(survey.ending, Ending::Open);
}

#[test]
fn one_object_gives_the_same_as_the_log() {
    let messages = [prompt("u", "Hello"), with_calls(answer("a", "Reading. ", 5)), answer("b", "Hi", 7)];
    let mut whole = header();
    whole["messages"] = json!(messages);
    let expected = log(&[header(), messages[0].clone(), messages[1].clone(), messages[2].clone()]);
    assert_eq!(of_bytes(serde_json::to_string_pretty(&whole).unwrap().as_bytes()), expected);
    assert_eq!(of_bytes(whole.to_string().as_bytes()), expected);
    assert_eq!(of_bytes(format!("{whole}\n").as_bytes()), expected);
}

#[test]
fn an_object_that_is_cut_off_gives_the_messages_that_are_whole() {
    let mut whole = header();
    whole["messages"] = json!([prompt("u", "Hello"), answer("b", "Hi", 7)]);
    let text = serde_json::to_string_pretty(&whole).unwrap();
    let mut last = 0;
    for end in 0..text.len() {
        let survey = of_bytes(&text.as_bytes()[..end]);
        assert!(survey.messages >= last && survey.messages <= 2, "{end}");
        last = survey.messages;
    }
    assert_eq!(last, 2);
}

// gemini-cli-observed.md, section 6: the stub that a resume leaves.
#[test]
fn a_file_anywhere_is_surveyed_and_its_first_line_alone_says_whose_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let (log, object) = (dir.path().join("a.jsonl"), dir.path().join("b.json"));
    let lines = [header(), context(), prompt("u", "hi")].map(|record| record.to_string());
    std::fs::write(&log, lines.join("\n")).unwrap();
    let whole = survey_at(&log).unwrap();
    assert!(whole.header && whole.has_conversation());
    let first = survey_header(&log).unwrap().unwrap();
    assert_eq!((&first.id, first.started, first.has_conversation()), (&whole.id, whole.started, false));
    // An object that is printed over several lines says nothing in its first.
    let mut legacy = header();
    legacy["messages"] = json!([prompt("u", "hi")]);
    std::fs::write(&object, serde_json::to_string_pretty(&legacy).unwrap()).unwrap();
    assert_eq!(survey_header(&object).unwrap(), None);
    assert!(survey_at(&object).unwrap().has_conversation());
    for garbage in ["", "nonsense\n[1]\n{}\n\0", &lines[2]] {
        std::fs::write(&log, garbage).unwrap();
        assert_eq!(survey_header(&log).unwrap(), None, "{garbage}");
        assert!(!survey_at(&log).unwrap().header, "{garbage}");
    }
}

#[test]
fn a_stub_is_empty() {
    let survey = log(&[header(), json!({"$set": {"messages": [context()]}})]);
    assert_eq!((survey.ending, survey.messages, survey.lost, survey.header), (Ending::Empty, 0, 0, true));
}

// Seen in 0.61.0: ^C during a tool ends with a checkpoint that holds only the context.
#[test]
fn what_a_checkpoint_drops_is_counted_as_lost_and_still_gives_the_title() {
    let survey = log(&[
        header(),
        prompt("u", "Wait a while"),
        answer("g", "Waiting.", 5),
        json!({"$set": {"messages": [context()]}}),
    ]);
    assert_eq!((survey.ending, survey.messages, survey.lost), (Ending::Empty, 0, 2));
    assert_eq!(survey.title.as_deref(), Some("Wait a while"));
}

#[test]
fn messages_that_come_back_bare_are_counted_as_lost() {
    let bare = json!({"id": "g", "timestamp": "t", "type": "gemini",
                      "content": [{"text": "hm", "thought": true}, {"functionCall": {"name": "x"}}]});
    let survey = log(&[
        header(),
        prompt("u", "Hello"),
        with_calls(answer("g", "", 5)),
        header(),
        json!({"$set": {"messages": [context()]}}),
        json!({"$set": {"messages": [context(), prompt("u", "Hello"), bare]}}),
        answer("g2", "Hi", 6),
    ]);
    assert_eq!((survey.messages, survey.lost, survey.ending), (3, 1, Ending::Answered));
    // Both answers were paid for.
    assert_eq!(survey.usage().all.total, 11);
}

#[test]
fn a_compressed_conversation_lost_nothing() {
    let survey = log(&[
        header(),
        prompt("u", "Hello"),
        answer("g", "Hi", 5),
        json!({"$set": {"messages": [prompt("new", "<state_snapshot>")]}}),
    ]);
    assert_eq!((survey.messages, survey.lost), (1, 0));
}

#[test]
fn a_rewind_takes_back_and_an_unknown_one_takes_back_all() {
    let records =
        [header(), prompt("u", "One"), answer("g", "A", 5), prompt("u2", "Two"), answer("g2", "B", 6)];
    let mut rewound = records.to_vec();
    rewound.push(json!({"$rewindTo": "u2"}));
    let survey = log(&rewound);
    assert_eq!((survey.messages, survey.lost, survey.title.as_deref()), (2, 0, Some("One")));
    let mut all = records.to_vec();
    all.push(json!({"$rewindTo": "nobody"}));
    all.push(prompt("u3", "Three"));
    let survey = log(&all);
    assert_eq!((survey.messages, survey.title.as_deref(), survey.ending), (1, Some("Three"), Ending::Open));
}

#[test]
fn the_summary_is_the_title_and_commands_are_prompts() {
    let survey = log(&[header(), prompt("u", "/help me"), json!({"$set": {"summary": "A helpful talk"}})]);
    assert_eq!((survey.title.as_deref(), survey.prompts), (Some("A helpful talk"), 1));
    let shown = json!({"id": "u", "type": "user", "content": [{"text": "Look at @a.txt"}, {"text": "long file"}],
                       "displayContent": [{"text": "Look at @a.txt"}]});
    assert_eq!(log(&[header(), shown]).title.as_deref(), Some("Look at @a.txt"));
}

#[test]
fn a_file_without_a_header_says_so_and_still_counts() {
    let survey = log(&[prompt("u", "Hello"), answer("g", "Hi", 5)]);
    assert_eq!((survey.header, survey.id, survey.messages), (false, None, 2));
    assert_eq!(of_bytes(b""), Survey::default());
    assert_eq!(of_bytes(b"not json\n\xff\xfe\n"), Survey::default());
}

#[test]
fn broken_lines_are_skipped_and_half_a_line_at_the_end_does_not_count() {
    let mut text = format!("{}\n{{\"id\":\"x\",\"type\n{}\n", header(), prompt("u", "Hello"));
    text.push_str(&with_calls(answer("g", "Hi", 5)).to_string());
    assert_eq!(of_bytes(text.as_bytes()).messages, 2);
    text.pop();
    assert_eq!(of_bytes(text.as_bytes()).messages, 1);
}

#[test]
fn the_outline_says_where_the_last_versions_stand() {
    let records = [
        header(),
        json!({"$set": {"messages": [context(), prompt("a", "One"), prompt("b", "Gone?")]}}),
        answer("g", "", 5),
        with_calls(answer("g", "", 5)),
        json!({"$set": {"messages": [context(), prompt("a", "One"), with_calls(answer("g", "", 5))]}}),
        prompt("c", "Two"),
    ];
    let text: String = records.iter().map(|record| format!("{record}\n")).collect();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("session-x.jsonl");
    std::fs::write(&path, &text).unwrap();
    let (survey, outline) = super::outline(&SessionFile::at(&path).unwrap(), &mut Vec::new()).unwrap();
    let at = |span: &Span| -> Value {
        let start = usize::try_from(span.offset).unwrap();
        serde_json::from_str(text.get(start..start + usize::try_from(span.length).unwrap()).unwrap()).unwrap()
    };
    let said: Vec<Value> = outline.said.iter().map(at).collect();
    assert_eq!(said, [prompt("a", "One"), with_calls(answer("g", "", 5)), prompt("c", "Two")]);
    let history: Vec<(Value, bool)> =
        outline.history.iter().map(|old| (at(&old.span), old.dropped)).collect();
    let expected = [
        (prompt("a", "One"), false),
        (prompt("b", "Gone?"), true),
        (with_calls(answer("g", "", 5)), false),
        (prompt("c", "Two"), false),
    ];
    assert_eq!(history, expected);
    assert_eq!((survey.messages, survey.lost), (3, 1));
}

#[test]
fn what_was_spent_is_known_by_day_model_and_size() {
    let on = |id: &str, day: &str, model: &str, total: u64| {
        let mut answer = answer(id, "x", total);
        answer["timestamp"] = json!(format!("{day}T00:00:00.000Z"));
        answer["model"] = json!(model);
        answer
    };
    let survey = log(&[
        header(),
        on("a", "2026-11-15", "m", 10),
        on("b", "2026-11-16", "m", 20),
        on("c", "2026-11-16", "n", 300_000),
        on("d", "2026-11-16", "n", 40),
        json!({"$rewindTo": "d"}),
    ]);
    let spent: Vec<(&str, &str, bool, u64, u64)> = survey
        .spent
        .iter()
        .map(|spent| (&*spent.day, &*spent.model, spent.large, spent.answers, spent.tokens.total))
        .collect();
    assert_eq!(
        spent,
        [
            ("2026-11-15", "m", false, 1, 10),
            ("2026-11-16", "m", false, 1, 20),
            ("2026-11-16", "n", false, 1, 40),
            ("2026-11-16", "n", true, 1, 300_000),
        ]
    );
}

#[test]
fn it_does_not_matter_how_an_old_session_is_printed() {
    let data = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let mut seen = 0;
    for release in ["0.30.1", "0.38.2"] {
        for case in std::fs::read_dir(data.join(release)).unwrap() {
            for file in std::fs::read_dir(case.unwrap().path()).unwrap() {
                let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
                let value: Value = serde_json::from_str(&text).unwrap();
                assert_eq!(of_bytes(text.as_bytes()), of_bytes(value.to_string().as_bytes()));
                seen += 1;
            }
        }
    }
    assert!(seen > 10, "{seen}");
}
