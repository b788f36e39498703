//! Session files of the real CLI: 0.30.1, 0.38.2, 0.39.1, 0.44.0 and 0.61.0 were given the same scripted model, used every
//! kind of tool, and were resumed a minute later.

use std::fs;
use std::path::{Path, PathBuf};

use alhena_wire::release::{Feature, Version};
use alhena_wire::session::{
    CallStatus, Content, Format, Log, MessageRecord, MessageType, Payload, Piece, ResultDisplay, Session,
    SessionKind, ToolCallRecord, shell_end,
};
use serde_json::Value;

fn files(version: &str) -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/sessions").join(version);
    let mut files: Vec<_> = fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

const VERSIONS: [&str; 6] = ["0.30.1", "0.38.2", "0.39.1", "0.44.0", "0.61.0", "0.61.0-plain"];

/// The session itself; a later file beside it is the stub that a resume leaves.
fn session_text(version: &str) -> Vec<u8> {
    fs::read(&files(version)[0]).unwrap()
}

fn decoded<'a>(log: &'a Log<'_>) -> Vec<MessageRecord<'a>> {
    log.messages().iter().map(|message| message.decode()).collect()
}

fn calls<'a, 'm>(messages: &'m [MessageRecord<'a>], name: &str) -> Vec<&'m ToolCallRecord<'a>> {
    let all = messages.iter().flat_map(|message| message.tool_calls.iter().flatten());
    all.filter(|call| call.name.as_deref() == Some(name)).collect()
}

fn output(call: &ToolCallRecord<'_>) -> String {
    let response = call.response().unwrap().response.as_ref().unwrap();
    response.output.as_ref().or(response.error.as_ref()).map(Payload::text).unwrap().into_owned()
}

#[test]
fn every_record_of_every_release_is_read() {
    for version in VERSIONS {
        for file in files(version) {
            let bytes = fs::read(&file).unwrap();
            let session = Session::read(&bytes);
            assert!(session.complete, "{file:?}");
            assert_eq!((session.log.unreadable(), session.log.ignored()), (0, 0), "{file:?}");
            assert!(session.log.has_header());
            for message in session.log.messages() {
                let record = message.decode();
                let value: Value = serde_json::from_str(message.raw().get()).unwrap();
                for (key, value) in value.as_object().unwrap() {
                    // What the terminal shows in the place of the content; nothing reads it.
                    let known = key == "displayContent"
                        || MessageRecord::FIELDS.iter().any(|field| field.name == key);
                    assert!(known, "{file:?}: {key}");
                    let read = match key.as_str() {
                        "content" => record.content.is_some(),
                        "toolCalls" => {
                            record.tool_calls.as_ref().map(Vec::len) == value.as_array().map(Vec::len)
                        }
                        "thoughts" => {
                            record.thoughts.as_ref().map(Vec::len) == value.as_array().map(Vec::len)
                        }
                        "tokens" => record.tokens.is_some() || value.is_null(),
                        _ => true,
                    };
                    assert!(read, "{file:?}: {key}");
                }
                assert_eq!(record.id.as_deref(), Some(message.id()));
                assert_eq!(record.timestamp.as_deref(), value["timestamp"].as_str());
                assert_eq!(record.kind.as_ref().map(MessageType::as_str), value["type"].as_str());
                assert_eq!(record.model.as_deref(), value.get("model").and_then(Value::as_str));
            }
        }
    }
}

#[test]
fn format_follows_the_release() {
    for version in VERSIONS {
        let release: Version = version.trim_end_matches("-plain").parse().unwrap();
        let bytes = session_text(version);
        let expected = if release.has(Feature::JsonlSessions) { Format::Lines } else { Format::Object };
        let session = Session::read(&bytes);
        assert_eq!(session.format, expected, "{version}");
        let kind = release.has(Feature::SessionKind).then_some(SessionKind::Main);
        assert_eq!(session.log.metadata().kind, kind, "{version}");
    }
}

#[test]
fn the_same_run_tells_the_same_story_in_every_release() {
    for version in ["0.30.1", "0.38.2", "0.39.1", "0.44.0", "0.61.0"] {
        let bytes = session_text(version);
        let session = Session::read(&bytes);
        let messages = decoded(&session.log);
        let said: Vec<String> = messages
            .iter()
            .filter_map(|message| message.content.as_ref().map(|content| (message, content)))
            .filter(|(_, content)| !content.is_context() && !content.is_function_response_only())
            .map(|(message, content)| {
                format!("{}: {}", message.kind.as_ref().unwrap().as_str(), content.text())
            })
            .filter(|line| line != "gemini: ")
            .collect();
        // 0.30 to 0.61 store the model's text trimmed, until a resume rewrites it as parts.
        assert_eq!(
            said,
            [
                "user: Use the tools",
                "gemini: I will look around.",
                "gemini: Done: olá 🌍 \"quoted\"\u{2028}end.",
                "user: And again",
                "gemini: Second answer."
            ]
        );
    }
}

#[test]
fn diffs_results_and_exit_codes_are_there_in_every_release() {
    for version in ["0.30.1", "0.38.2", "0.39.1", "0.44.0", "0.61.0"] {
        let bytes = session_text(version);
        let session = Session::read(&bytes);
        let messages = decoded(&session.log);

        let write = calls(&messages, "write_file")[0];
        let Some(ResultDisplay::FileDiff(diff)) = &write.result_display else {
            panic!("{version}: {write:?}")
        };
        assert_eq!(
            (diff.new_content.as_deref(), diff.is_new_file),
            (Some("one\ntwo\n"), Some(true)),
            "{version}"
        );
        assert!(diff.file_diff.as_ref().unwrap().contains("+one\n+two\n"));

        let edit = calls(&messages, "replace")[0];
        let Some(ResultDisplay::FileDiff(diff)) = &edit.result_display else { panic!("{version}: {edit:?}") };
        assert_eq!(diff.original_content.as_deref(), Some("alpha\nbeta\ngamma\n"), "{version}");

        let shell = calls(&messages, "run_shell_command");
        let codes: Vec<_> = shell.iter().map(|call| shell_end(&output(call)).unwrap().exit_code).collect();
        assert_eq!(codes, [Some(3), None], "{version}");
        assert!(shell.iter().all(|call| call.status == Some(CallStatus::Success)));

        let reads = calls(&messages, "read_file");
        let statuses: Vec<_> = reads.iter().map(|call| call.status.clone().unwrap()).collect();
        assert_eq!(statuses, [CallStatus::Success, CallStatus::Error, CallStatus::Success], "{version}");
        assert_eq!(output(reads[0]), "alpha\nbeta\ngamma\n");
        let image = reads[2]
            .own_result()
            .iter()
            .filter_map(Piece::part)
            .find_map(|part| part.inline_data.as_ref())
            .unwrap();
        assert_eq!(image.mime_type.as_deref(), Some("image/png"));
    }
}

#[test]
fn thoughts_and_tokens_are_per_message() {
    for version in ["0.30.1", "0.38.2", "0.39.1", "0.44.0", "0.61.0"] {
        let bytes = session_text(version);
        let session = Session::read(&bytes);
        let messages = decoded(&session.log);
        let model: Vec<_> =
            messages.iter().filter(|message| message.kind == Some(MessageType::Gemini)).collect();
        let thought = &model[0].thoughts.as_ref().unwrap()[0];
        assert_eq!(thought.subject.as_deref(), Some("Looking around"), "{version}");
        let tokens = model[0].tokens.as_ref().unwrap();
        assert_eq!((tokens.thoughts.unwrap().get(), tokens.cached.unwrap().get()), (7, 20), "{version}");
        assert_eq!(model[0].model.as_deref(), Some("gemini-2.5-flash"));
    }
}

#[test]
fn resume_since_0_44_rewrites_thoughts_as_parts_and_doubles_responses() {
    for (version, contexts, responses) in [("0.39.1", 0, 1), ("0.44.0", 1, 8), ("0.61.0", 1, 8)] {
        let bytes = session_text(version);
        let session = Session::read(&bytes);
        let messages = decoded(&session.log);
        let contents: Vec<_> = messages.iter().filter_map(|message| message.content.as_ref()).collect();
        let of = |test: fn(&Content<'_>) -> bool| contents.iter().filter(|content| test(content)).count();
        assert_eq!(of(|content| content.is_context()), contexts, "{version}");
        assert_eq!(of(|content| content.is_function_response_only()), responses, "{version}");
        let thoughts = of(|content| content.parts().any(|part| part.is_thought()));
        assert_eq!(thoughts, if version == "0.39.1" { 0 } else { 2 }, "{version}");
    }
}

#[test]
fn stub_of_a_resume_has_the_id_but_nothing_said() {
    for version in ["0.39.1", "0.44.0", "0.61.0"] {
        let files = files(version);
        let (first, stub) = (fs::read(&files[0]).unwrap(), fs::read(&files[1]).unwrap());
        let (first, stub) = (Session::read(&first), Session::read(&stub));
        assert_eq!(first.log.metadata().session_id, stub.log.metadata().session_id);
        let said = |message: &MessageRecord<'_>| message.content.as_ref().is_some_and(|c| !c.is_context());
        assert!(!decoded(&stub.log).iter().any(said), "{version}");
    }
}

#[test]
fn legacy_file_cut_at_any_byte_gives_a_prefix_of_its_messages() {
    let bytes = session_text("0.38.2");
    let whole = Session::read(&bytes);
    let mut most = 0;
    for cut in (0..bytes.len()).step_by(7) {
        let session = Session::read(&bytes[..cut]);
        let seen = session.log.messages();
        assert_eq!(seen, &whole.log.messages()[..seen.len()], "cut at {cut}");
        most = most.max(seen.len());
    }
    assert_eq!(most, whole.log.messages().len());
}
