use std::fs;
use std::path::{Path, PathBuf};

use alhena_model::Include;
use alhena_model::message::Role;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::conversation;
use crate::Transcript;
use crate::survey::survey_at;

const INCLUDES: [Include; 2] = [Include::Said, Include::Everything];

fn session_files(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            session_files(&path, found);
        } else if path.extension().is_some_and(|end| end == "json" || end == "jsonl") {
            found.push(path);
        }
    }
}

fn recorded() -> Vec<PathBuf> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut found = Vec::new();
    session_files(&crates.join("session/tests/data"), &mut found);
    session_files(&crates.join("wire/tests/data/sessions"), &mut found);
    assert!(found.len() > 50, "{}", found.len());
    found
}

/// Both ways on the same bytes; says whether the quick way could be taken.
fn assert_same(bytes: Vec<u8>, what: &dyn std::fmt::Debug) -> bool {
    let transcript = Transcript::from_bytes(bytes);
    let mut taken = true;
    for include in INCLUDES {
        let thorough = transcript.thorough(include);
        let events = thorough.events();
        let thorough = thorough.into_messages();
        match conversation(transcript.bytes(), include) {
            Some(quick) => {
                assert_eq!(quick.events(), events, "{what:?} {include:?}");
                let quick = quick.into_messages();
                assert_eq!(quick, thorough, "{what:?} {include:?}");
                let written = |list: &[alhena_model::Message<'_>]| serde_json::to_string(list).unwrap();
                assert_eq!(written(&quick), written(&thorough), "{what:?} {include:?}");
            }
            None => taken = false,
        }
        assert_eq!(transcript.messages(include), thorough, "{what:?} {include:?}");
    }
    taken
}

#[test]
fn every_recorded_session_gives_the_same_quickly_and_thoroughly() {
    for path in recorded() {
        assert!(assert_same(fs::read(&path).unwrap(), &path), "{path:?} is not read the quick way");
    }
}

// The fold of a list looks at a few keys of each record; the thorough one decodes everything.
#[test]
fn every_recorded_session_is_listed_as_it_is_read_thoroughly() {
    for path in recorded() {
        let survey = survey_at(&path).unwrap();
        let transcript = Transcript::from_bytes(fs::read(&path).unwrap());
        let said = transcript.thorough(Include::Said).into_messages();
        let prompts = said.iter().filter(|message| message.role == Role::User).count();
        let counted = (survey.messages as usize, survey.prompts as usize, survey.has_conversation());
        assert_eq!(counted, (said.len(), prompts, !said.is_empty()), "{path:?}");
    }
}

#[test]
fn a_recorded_session_cut_anywhere_gives_the_same_messages_both_ways() {
    for path in recorded() {
        let bytes = fs::read(&path).unwrap();
        let step = (bytes.len() / 12).max(1);
        for end in (0..bytes.len()).step_by(step) {
            assert_same(bytes[..end].to_vec(), &(&path, end));
        }
    }
}

fn word() -> BoxedStrategy<String> {
    prop_oneof![
        4 => "[a-z \n]{0,12}",
        1 => Just("<session_context>\nToday".to_owned()),
        1 => Just("  \n<hook_context>x".to_owned()),
        1 => Just("\u{a0}<hook_context>x".to_owned()),
        1 => Just("\u{3000} \u{c}".to_owned()),
        1 => "[\"\\\\{}\\[\\],:\u{e9}\u{1f30d}\t]{0,8}",
    ]
    .boxed()
}

fn any_value() -> BoxedStrategy<Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        word().prop_map(Value::from),
        Just(json!([])),
        Just(json!({})),
        Just(json!([{"text": "x"}, 5])),
        Just(json!({"a": {"b": [1, null, "z"]}})),
    ]
    .boxed()
}

fn call_id() -> BoxedStrategy<&'static str> {
    prop::sample::select(vec!["c1", "c2", "c3"]).boxed()
}

fn media() -> BoxedStrategy<Value> {
    prop_oneof![
        Just(json!({"inlineData": {"mimeType": "image/png", "data": "AAAA"}})),
        Just(json!({"inlineData": {"mimeType": "application/pdf", "data": "AAAA"}})),
        Just(json!({"fileData": {"mimeType": "image/png", "fileUri": "gs://x"}})),
        Just(json!({"inlineData": null})),
    ]
    .boxed()
}

fn response() -> BoxedStrategy<Value> {
    let answer = prop_oneof![
        word().prop_map(|text| json!({"output": text})),
        word().prop_map(|text| json!({"error": text})),
        any_value().prop_map(|value| json!({"output": value})),
        any_value(),
    ];
    (call_id(), answer, prop::option::of(media()))
        .prop_map(|(id, answer, parts)| {
            let mut response = json!({"id": id, "name": "read_file", "response": answer});
            if let Some(parts) = parts {
                response["parts"] = json!([parts]);
            }
            json!({"functionResponse": response})
        })
        .boxed()
}

fn part() -> BoxedStrategy<Value> {
    prop_oneof![
        4 => word().prop_map(|text| json!({"text": text})),
        2 => (word(), any::<bool>()).prop_map(|(text, thought)| json!({"text": text, "thought": thought})),
        2 => word().prop_map(Value::from),
        2 => call_id().prop_map(|id| json!({"functionCall": {"id": id, "name": "glob", "args": {"pattern": "*"}}})),
        3 => response(),
        1 => media(),
        1 => Just(json!({"functionResponse": null})),
        1 => any_value(),
        1 => (word(), any_value()).prop_map(|(text, other)| json!({"text": text, "unknown": other, "thoughtSignature": "s"})),
    ]
    .boxed()
}

fn content() -> BoxedStrategy<Value> {
    prop_oneof![
        3 => word().prop_map(Value::from),
        5 => prop::collection::vec(part(), 0..4).prop_map(Value::from),
        1 => part(),
        1 => prop::collection::vec(response(), 1..3).prop_map(Value::from),
        1 => any_value(),
    ]
    .boxed()
}

fn display() -> BoxedStrategy<Value> {
    prop_oneof![
        word().prop_map(Value::from),
        word().prop_map(
            |diff| json!({"fileDiff": diff, "fileName": "a", "originalContent": null, "newContent": "n"})
        ),
        any_value().prop_map(|diff| json!({"fileDiff": diff, "fileName": 5})),
        Just(json!({"todos": [{"description": "d", "status": "pending"}]})),
        Just(json!([[{"text": "x"}]])),
        any_value(),
    ]
    .boxed()
}

fn call() -> BoxedStrategy<Value> {
    let result = prop_oneof![
        3 => prop::collection::vec(part(), 0..3).prop_map(Value::from),
        2 => response().prop_map(|part| json!([part])),
        1 => Just(Value::Null),
        1 => any_value(),
    ];
    let status = prop::sample::select(vec!["success", "error", "cancelled", "executing"]);
    let name = prop::sample::select(vec!["read_file", "run_shell_command", "replace", "mine"]);
    (
        call_id(),
        name,
        any_value(),
        prop::option::of(result),
        prop::option::of(status),
        prop::option::of(display()),
        any_value(),
    )
        .prop_map(|(id, name, args, result, status, display, description)| {
            let mut call = json!({"id": id, "name": name, "args": args});
            let optional =
                [("result", result), ("status", status.map(Value::from)), ("resultDisplay", display)];
            for (key, value) in optional {
                if let Some(value) = value {
                    call[key] = value;
                }
            }
            call["description"] = description;
            call
        })
        .boxed()
}

/// A field that is usually right.
fn field(usual: impl Strategy<Value = Value> + 'static) -> BoxedStrategy<Option<Value>> {
    prop_oneof![6 => usual.prop_map(Some), 3 => Just(None), 1 => any_value().prop_map(Some)].boxed()
}

fn message() -> BoxedStrategy<Value> {
    let id = prop::sample::select(vec!["a", "b", "c", "d", "e", ""]);
    let kind = prop::sample::select(vec!["user", "gemini", "gemini", "info", "warning", "error", "other"]);
    let thought = (word(), word())
        .prop_map(|(subject, text)| json!({"subject": subject, "description": text, "timestamp": "t"}));
    let tokens = (0..90_u32).prop_map(
        |count| json!({"input": count, "output": 1, "cached": 0, "thoughts": 2, "tool": 0, "total": count}),
    );
    (
        id,
        field(kind.prop_map(Value::from)),
        field(Just(json!("2026-11-15T20:29:00.000Z"))),
        field(content()),
        field(prop::collection::vec(thought, 0..3).prop_map(Value::from)),
        field(tokens),
        field(Just(json!("gemini-2.5-flash"))),
        field(prop::collection::vec(call(), 0..3).prop_map(Value::from)),
        prop::option::weighted(0.1, any_value()),
    )
        .prop_map(|(id, kind, time, content, thoughts, tokens, model, calls, unknown)| {
            let mut record = Map::new();
            record.insert("id".to_owned(), id.into());
            let fields = [
                ("timestamp", time),
                ("type", kind),
                ("content", content),
                ("thoughts", thoughts),
                ("tokens", tokens),
                ("model", model),
                ("toolCalls", calls),
                ("displayContent", unknown.clone()),
                ("new", unknown),
            ];
            record.extend(fields.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))));
            Value::Object(record)
        })
        .boxed()
}

fn plain_message() -> BoxedStrategy<String> {
    message().prop_map(|record| record.to_string()).boxed()
}

/// A record that is written in an unusual way.
fn bent() -> BoxedStrategy<String> {
    let bend = prop::sample::select(vec![
        ("\"id\":", "\"\\u0069d\":"),
        ("\"type\":", "\"typ\\u0065\":"),
        ("\"text\":", "\"te\\u0078t\":"),
        ("\"functionResponse\":", "\"\\u0066unctionResponse\":"),
        ("\"a\"", "\"\\u0061\""),
        ("\"user\"", "\"us\\u0065r\""),
        ("<hook", "\\u003chook"),
        ("\"type\":", "\"type\":\"user\",\"type\":"),
        ("\"content\":", "\"content\":\"x\",\"content\":"),
        ("\"id\":", "\"id\":\"b\",\"id\":"),
        ("\"model\":", "\"model\":null,\"model\":"),
        ("\"text\":", "\"text\":null,\"text\":"),
        ("\"fileDiff\":", "\"fileDiff\":\"one\",\"fileDiff\":"),
        ("\"name\":", "\"name\":\"glob\",\"name\":"),
        ("}", "},"),
        ("\":", "\" :\t"),
        (":", "::"),
        ("\"x", "\"\\ud800x"),
        ("\"x", "\"\\qx"),
    ]);
    (plain_message(), bend, any::<bool>())
        .prop_map(
            |(text, (from, to), all)| {
                if all { text.replace(from, to) } else { text.replacen(from, to, 1) }
            },
        )
        .boxed()
}

fn line() -> BoxedStrategy<String> {
    let id = prop::sample::select(vec!["a", "b", "c", "nowhere"]);
    let list = prop::collection::vec(message(), 0..3);
    prop_oneof![
        20 => plain_message(),
        4 => bent(),
        2 => (plain_message(), any::<prop::sample::Index>()).prop_map(|(text, at)| {
            let end = text.floor_char_boundary(at.index(text.len()));
            text.get(..end).unwrap().to_owned()
        }),
        1 => (plain_message(), any::<prop::sample::Index>()).prop_map(|(text, at)| {
            let end = text.floor_char_boundary(at.index(text.len()));
            text.get(..end).unwrap().to_owned() + &text
        }),
        1 => id.prop_map(|id| json!({"$rewindTo": id}).to_string()),
        1 => list.prop_map(|list| json!({"$set": {"messages": list}}).to_string()),
        2 => Just(r#"{"$set":{"lastUpdated":"2026-11-15T20:30:00.000Z"}}"#.to_owned()),
        1 => any_value().prop_map(|value| json!({"$set": {"sessionId": value}}).to_string()),
        1 => any_value().prop_map(|value| json!({"$set": value, "id": "a"}).to_string()),
        1 => Just(HEADER.to_owned()),
        1 => any_value().prop_map(|value| value.to_string()),
        1 => Just(String::new()),
        1 => "\\PC{0,20}",
    ]
    .boxed()
}

const HEADER: &str =
    r#"{"sessionId":"s","projectHash":"p","startTime":"2026-11-15T20:29:00.000Z","kind":"main"}"#;

fn log() -> BoxedStrategy<Vec<u8>> {
    let lines =
        prop_oneof![prop::collection::vec(plain_message(), 0..8), prop::collection::vec(line(), 0..8),];
    let end = prop::sample::select(vec!["\n", "", "\r\n", " "]);
    let between = prop_oneof![8 => Just("\n"), 1 => Just("\r\n")];
    (prop::bool::weighted(0.9), lines, between, end)
        .prop_map(|(header, lines, between, end)| {
            let header = header.then(|| HEADER.to_owned());
            let all: Vec<String> = header.into_iter().chain(lines).collect();
            (all.join(between) + end).into_bytes()
        })
        .boxed()
}

fn object() -> BoxedStrategy<Vec<u8>> {
    let bend = prop::sample::select(vec![
        (",", ""),
        ("[", "[,"),
        ("}", ",}"),
        ("\"messages\"", "\"m\\u0065ssages\""),
        ("\"messages\"", "\"messages\": [], \"messages\""),
        ("\"sessionId\"", "\"id\""),
        ("\"type\":", "\"type\": \"user\", \"type\":"),
    ]);
    let items = prop::collection::vec(prop_oneof![9 => message(), 1 => any_value()], 0..6);
    let tail = prop::sample::select(vec!["", "\n", "x"]);
    (items, prop::option::weighted(0.3, bend), tail)
        .prop_map(|(items, bend, tail)| {
            let whole = json!({"sessionId": "s", "projectHash": "p", "messages": items, "startTime": "t"});
            let mut text = serde_json::to_string_pretty(&whole).unwrap() + tail;
            if let Some((from, to)) = bend {
                text = text.replacen(from, to, 1);
            }
            text.into_bytes()
        })
        .boxed()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn any_log_gives_the_same_messages_both_ways(bytes in log()) {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        assert_same(bytes, &text);
    }

    #[test]
    fn any_object_gives_the_same_messages_both_ways(bytes in object(), cut in prop::option::weighted(0.2, any::<prop::sample::Index>())) {
        let end = cut.map_or(bytes.len(), |cut| cut.index(bytes.len()));
        let bytes = bytes[..end].to_vec();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        assert_same(bytes, &text);
    }
}
