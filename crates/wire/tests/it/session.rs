//! Session records and their fold, one rule at a time (B-01 to B-06, contract section E.4).

use alhena_wire::session::{
    CallStatus, Change, Content, Format, FunctionResponse, InlineData, Log, MessageRecord, MessageType,
    Metadata, Part, Payload, Piece, Record, Response, ResultDisplay, Session, SessionKind, Thought, Tokens,
    ToolCallRecord, Update, parse_record,
};
use alhena_wire::stream::LineError;
use alhena_wire::{Count, Named, Raw};
use serde_json::json;

const HEADER: &str =
    r#"{"sessionId":"s","projectHash":"p","startTime":"t0","lastUpdated":"t1","kind":"main"}"#;

fn record(line: &str) -> Record<'_> {
    let record = parse_record(line.as_bytes()).unwrap();
    assert_eq!(record.clone().into_owned(), record);
    record
}

fn raw(text: &str) -> Raw<'_> {
    Raw::from_text(text).unwrap()
}

fn count(number: u64) -> Option<Count> {
    Some(Count::Whole(number))
}

fn fold<'a>(lines: impl IntoIterator<Item = &'a str>) -> Log<'a> {
    let mut log = Log::new();
    lines.into_iter().for_each(|line| _ = log.push_line(line.as_bytes()));
    log
}

fn texts(log: &Log<'_>) -> Vec<(String, String)> {
    let text = |message: &alhena_wire::session::Stored<'_>| {
        (
            message.id().to_owned(),
            message.decode().content.map_or(String::new(), |content| content.text().into_owned()),
        )
    };
    log.messages().iter().map(text).collect()
}

fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(id, text)| ((*id).to_owned(), (*text).to_owned())).collect()
}

// Records

#[test]
fn header_is_metadata() {
    let Record::Header(update) = record(HEADER) else { panic!("not a header") };
    assert_eq!(update.messages, None);
    assert_eq!(
        update.fields.iter().map(|(key, _)| key).collect::<Vec<_>>(),
        ["sessionId", "projectHash", "startTime", "lastUpdated", "kind"]
    );
}

#[test]
fn message_is_recognised_by_its_id_wherever_it_stands() {
    for line in [
        r#"{"id":"1","type":"user"}"#,
        r#" { "id" : "1" , "type" : "user" } "#,
        r#"{"type":"user","id":"1"}"#,
        r#"{"\u0069d":"1"}"#,
        r#"{"id":"\u0031"}"#,
        r#"{"sessionId":"s","projectHash":"p","$set":{},"id":"1"}"#,
    ] {
        let Record::Message(message) = record(line) else { panic!("{line}") };
        assert_eq!((message.id(), message.raw().get()), ("1", line.trim()));
    }
}

#[test]
fn rewind_and_set_have_their_form() {
    assert_eq!(record(r#"{"$rewindTo":"7"}"#), Record::Rewind("7".into()));
    assert_eq!(record(r#"{"x":1,"id":"1","$rewindTo":"7"}"#), Record::Rewind("7".into()));
    let set = Update {
        fields: Named(vec![("lastUpdated".into(), raw(r#""t""#)), ("new".into(), raw("[1]"))]),
        messages: None,
    };
    assert_eq!(record(r#"{"$set":{"lastUpdated":"t","new":[1]}}"#), Record::Set(set));
    assert_eq!(record(r#"{"$set":[1]}"#), Record::Set(Update::default()));
}

#[test]
fn other_json_is_kept_as_it_is() {
    for line in
        ["5", "null", "[]", "\"x\"", "{}", r#"{"sessionId":"s"}"#, r#"{"id":5}"#, r#"{"$rewindTo":null}"#]
    {
        assert_eq!(record(line), Record::Other(raw(line)), "{line}");
    }
}

#[test]
fn what_is_not_json_is_unreadable() {
    for line in
        ["", "{", r#"{"id":"1""#, r#"{"id":"1","content":"half"#, "nonsense", r#"{"id":"1"}{"id":"2"}"#]
    {
        assert_eq!(parse_record(line.as_bytes()), Err(LineError::NotJson), "{line}");
    }
}

#[test]
fn bytes_that_are_not_utf8_are_replaced() {
    // The CLI's own reader decodes with replacement characters.
    let Record::Message(message) = parse_record(b"{\"id\":\"1\",\"content\":\"a\xffb\"}").unwrap() else {
        panic!()
    };
    assert_eq!(message.decode().content.unwrap().text(), "a\u{fffd}b");
}

#[test]
fn messages_in_an_update_are_told_by_their_ids() {
    let line =
        r#"{"$set":{"messages":[{"id":"1"},5,{"type":"user","id":"2"},{"no":"id"}],"lastUpdated":"t"}}"#;
    let Record::Set(update) = record(line) else { panic!("not a set") };
    let ids: Vec<_> =
        update.messages.unwrap().iter().map(|m| (m.id().to_owned(), m.raw().get().to_owned())).collect();
    assert_eq!(
        ids,
        pairs(&[("1", r#"{"id":"1"}"#), ("2", r#"{"type":"user","id":"2"}"#), ("", r#"{"no":"id"}"#)])
    );
    for line in
        [r#"{"$set":{"messages":{"a":1}}}"#, r#"{"$set":{"messages":"x"}}"#, r#"{"$set":{"messages":null}}"#]
    {
        assert_eq!(record(line), Record::Set(Update::default()), "{line}");
    }
    for other in ["1", "-1", "1.5", "true"] {
        let line = format!(r#"{{"$set":{{"messages":{other}}}}}"#);
        assert_eq!(record(&line), Record::Set(Update::default()), "{line}");
    }
}

// The fold

#[test]
fn set_merges_metadata() {
    let log = fold([
        HEADER,
        r#"{"$set":{"lastUpdated":"t2"}}"#,
        r#"{"$set":{"summary":"About it","directories":["/a"],"future":{"x":1}}}"#,
        r#"{"$set":{"lastUpdated":"t3","memoryScratchpad":{"version":1}}}"#,
    ]);
    let metadata = log.metadata();
    assert_eq!(
        metadata,
        Metadata {
            session_id: Some("s".into()),
            project_hash: Some("p".into()),
            start_time: Some("t0".into()),
            last_updated: Some("t3".into()),
            kind: Some(SessionKind::Main),
            summary: Some("About it".into()),
        }
    );
    assert!(log.has_header());
}

#[test]
fn metadata_of_another_type_does_not_cost_the_rest() {
    let log = fold([HEADER, r#"{"$set":{"summary":5,"directories":"x","startTime":null}}"#]);
    let metadata = log.metadata();
    assert_eq!(
        (metadata.session_id.as_deref(), metadata.summary, metadata.start_time),
        (Some("s"), None, None)
    );
}

#[test]
fn unreadable_and_strange_lines_are_counted() {
    let log = fold([HEADER, "", "  \r", "{\"id\":\"1\"", "garbage", "[1]", r#"{"id":"1","content":"a"}"#]);
    assert_eq!((log.unreadable(), log.ignored()), (2, 1));
    assert_eq!(texts(&log), pairs(&[("1", "a")]));
}

#[test]
fn each_push_says_what_changed() {
    let mut log: Log<'static> = Log::new();
    let mut push = |line: &str| log.push_copy(line.as_bytes());
    assert_eq!(push(HEADER), Change::Metadata);
    assert_eq!(push(r#"{"id":"1"}"#), Change::Added(0));
    assert_eq!(push(r#"{"id":"2"}"#), Change::Added(1));
    assert_eq!(push(r#"{"id":"1","content":"x"}"#), Change::Replaced(0));
    assert_eq!(push(r#"{"$set":{"lastUpdated":"t"}}"#), Change::Metadata);
    assert_eq!(push(""), Change::Nothing);
    assert_eq!(push("{}"), Change::Nothing);
    assert_eq!(push("{"), Change::Unreadable);
    assert_eq!(push(r#"{"$rewindTo":"2"}"#), Change::Removed(1));
    assert_eq!(push(r#"{"$set":{"messages":[{"id":"3"}]}}"#), Change::Everything);
    assert_eq!(push(r#"{"$rewindTo":"?"}"#), Change::Removed(0));
    assert_eq!((log.messages(), log.position("2")), (&[][..], None));
    assert!(log.has_header());
    log.push_copy(br#"{"id":"2"}"#);
    assert_eq!(log.position("2"), Some(0));
}

// Files

#[test]
fn log_without_its_header_still_gives_its_messages() {
    let session = Session::read(b"{\"id\":\"1\",\"content\":\"a\"}\n{\"$set\":{\"lastUpdated\":\"t\"}}\n");
    assert_eq!((session.format, session.complete, session.log.has_header()), (Format::Lines, true, false));
    assert_eq!(texts(&session.log), pairs(&[("1", "a")]));
    assert_eq!(session.log.metadata().last_updated.as_deref(), Some("t"));
}

#[test]
fn torn_line_leaves_the_version_before_it() {
    // A crash in the middle of a write, and an append by the next process: the line begins like one message, ends like
    // another, and is neither.
    let torn = r#"{"id":"1","content":"ha{"id":"2","content":"b"}"#;
    let first = r#"{"id":"1","content":"a"}"#;
    let last = r#"{"id":"3","content":"c"}"#;
    for (lines, expected) in [
        (vec![first, torn, last], pairs(&[("1", "a"), ("3", "c")])),
        (vec![torn, last, first], pairs(&[("3", "c"), ("1", "a")])),
        (vec![torn, last, torn, first], pairs(&[("3", "c"), ("1", "a")])),
        (vec![torn, last], pairs(&[("3", "c")])),
        (vec![first, last, torn, r#"{"$rewindTo":"1"}"#], pairs(&[])),
        (vec![last, torn, r#"{"$rewindTo":"1"}"#, first], pairs(&[("1", "a")])),
        (vec![torn, r#"{"$set":{"messages":[{"id":"1","content":"set"}]}}"#], pairs(&[("1", "set")])),
    ] {
        let file = format!("{HEADER}\n{}\n", lines.join("\n"));
        let session = Session::read(file.as_bytes());
        assert_eq!(texts(&session.log), expected, "{lines:?}");
        assert_eq!(session.log.unreadable() as usize, lines.iter().filter(|line| **line == torn).count());
    }
}

#[test]
fn messages_before_the_session_id_are_read_too() {
    let session =
        Session::read(b"{\n\"messages\": [{\"id\":\"1\",\"content\":\"a\"}],\n\"sessionId\": \"s\"\n}");
    assert_eq!((session.format, texts(&session.log)), (Format::Object, pairs(&[("1", "a")])));
}

#[test]
fn half_written_last_line_is_not_counted_as_damage() {
    let file = format!("{HEADER}\n{{\"id\":\"1\",\"content\":\"a\"}}\n{{\"id\":\"2\",\"con");
    let session = Session::read(file.as_bytes());
    assert_eq!((session.complete, session.log.unreadable()), (false, 0));
    assert_eq!(texts(&session.log), pairs(&[("1", "a")]));
    let ended = format!("{HEADER}\n{{\"id\":\"1\",\"content\":\"a\"}}");
    let session = Session::read(ended.as_bytes());
    assert_eq!((session.complete, texts(&session.log)), (true, pairs(&[("1", "a")])));
}

const LEGACY: &str = r#"{
  "sessionId": "s",
  "projectHash": "p",
  "startTime": "t0",
  "lastUpdated": "t1",
  "messages": [
    {
      "id": "1",
      "type": "user",
      "content": "Hi"
    },
    {
      "id": "2",
      "type": "gemini",
      "content": "Hello"
    },
    {
      "type": "info",
      "content": "no id"
    },
    {
      "id": "1",
      "content": "same id"
    }
  ],
  "summary": "Greeting"
}"#;

#[test]
fn legacy_object_keeps_every_message_as_it_stands() {
    // One without a project is read, too.
    let session = Session::read(b"{\"sessionId\":\"s\",\"messages\":[{\"id\":\"1\",\"content\":\"a\"}]}");
    assert_eq!((session.format, session.complete), (Format::Object, true));
    assert_eq!(texts(&session.log), pairs(&[("1", "a")]));
    let session = Session::read(LEGACY.as_bytes());
    assert_eq!((session.format, session.complete), (Format::Object, true));
    assert_eq!(texts(&session.log), pairs(&[("1", "Hi"), ("2", "Hello"), ("", "no id"), ("1", "same id")]));
    assert_eq!(session.log.metadata().summary.as_deref(), Some("Greeting"));
    assert_eq!(
        session.log.messages()[1].raw().get(),
        "{\n      \"id\": \"2\",\n      \"type\": \"gemini\",\n      \"content\": \"Hello\"\n    }"
    );
}

#[test]
fn half_written_legacy_object_gives_what_is_there() {
    let cut = LEGACY.find("\"content\": \"no id\"").unwrap();
    let session = Session::read(&LEGACY.as_bytes()[..cut]);
    assert_eq!((session.format, session.complete), (Format::Object, false));
    assert_eq!(texts(&session.log), pairs(&[("1", "Hi"), ("2", "Hello")]));
    assert_eq!(session.log.metadata().session_id.as_deref(), Some("s"));
}

#[test]
fn legacy_object_with_invalid_utf8_is_read_with_replacements() {
    let session =
        Session::read(b"{\n\"sessionId\": \"s\", \"messages\": [{\"id\":\"1\",\"content\":\"a\xff\"}]\n}");
    assert_eq!(texts(&session.log), pairs(&[("1", "a\u{fffd}")]));
}

#[test]
fn other_files_are_empty_sessions() {
    for file in
        [&b""[..], b"\n\n", b"{}", b"{\n}", b"[1,\n2]", b"\xff\xfe", b"{\n\"a\": 1\n}", b"not json\nat all\n"]
    {
        let session = Session::read(file);
        assert_eq!((session.format, session.log.messages()), (Format::Lines, &[][..]), "{file:?}");
        assert!(!session.log.has_header());
    }
    assert!(!fold([r#"{"sessionId":"","projectHash":"p"}"#]).has_header());
}

// Messages

#[test]
fn message_of_the_model_has_every_field() {
    // B-02, B-03, B-05, B-06
    let text = r#"{"id":"2","timestamp":"t","type":"gemini","content":"Done.","thoughts":[{"subject":"Plan","description":"First","timestamp":"t1"}],"tokens":{"input":100,"output":5,"cached":20,"thoughts":7,"tool":0,"total":112},"model":"gemini-2.5-flash","toolCalls":[{"id":"read_file__1","name":"read_file","args":{"file_path":"a.png"},"result":[{"functionResponse":{"id":"read_file__1","name":"read_file","response":{"output":"Binary"}}},{"inlineData":{"mimeType":"image/png","data":"AA==","displayName":"a.png"}}],"status":"success","timestamp":"t2","agentId":"a1","displayName":"ReadFile","description":"a.png","resultDisplay":"Read image","renderOutputAsMarkdown":true}]}"#;
    let response = FunctionResponse {
        id: Some("read_file__1".into()),
        name: Some("read_file".into()),
        response: Some(Response { output: Some(Payload::Text("Binary".into())), error: None }),
        parts: None,
    };
    let image = InlineData { mime_type: Some("image/png".into()), data: Some("AA==".into()) };
    let part = |part: Part<'static>| Piece::Part(Box::new(part));
    let call = ToolCallRecord {
        id: Some("read_file__1".into()),
        name: Some("read_file".into()),
        args: Some(raw(r#"{"file_path":"a.png"}"#)),
        result: Some(Content::Many(vec![
            part(Part { function_response: Some(Box::new(response.clone())), ..Part::default() }),
            part(Part { inline_data: Some(Box::new(image)), ..Part::default() }),
        ])),
        status: Some(CallStatus::Success),
        agent_id: Some("a1".into()),
        result_display: Raw::from_text("\"Read image\"").map(ResultDisplay::Other),
    };
    assert_eq!(call.response(), Some(&response));
    assert_eq!(call.own_result().len(), 2);
    let message = MessageRecord {
        id: Some("2".into()),
        timestamp: Some("t".into()),
        kind: Some(MessageType::Gemini),
        content: Some(Content::One(Piece::Text("Done.".into()))),
        tool_calls: Some(vec![call]),
        thoughts: Some(vec![Thought {
            subject: Some("Plan".into()),
            description: Some("First".into()),
            timestamp: Some("t1".into()),
        }]),
        tokens: Some(Tokens {
            input: count(100),
            output: count(5),
            cached: count(20),
            thoughts: count(7),
            tool: count(0),
            total: count(112),
        }),
        model: Some("gemini-2.5-flash".into()),
    };
    assert_eq!(MessageRecord::from_text(text).unwrap(), message);
    assert_eq!(message.clone().into_owned(), message);
}

#[test]
fn call_finds_its_own_response_among_those_of_others() {
    // Recorded with 0.44.0 and 0.61.0: after a resume each call carries the results of the whole message.
    let text = r#"{"id":"1","toolCalls":[
        {"id":"b","result":[{"functionResponse":{"id":"a","response":{"output":"A"}}},{"functionResponse":{"id":"b","response":{"output":"B"}}},{"inlineData":{"data":"x"}},"y",{"functionResponse":{"id":"c"}}]},
        {"id":"z","result":[{"functionResponse":{"id":"a","response":{"output":"A"}}},{"text":"t"}]},
        {"result":[{"functionResponse":{"response":{"output":"N"}}}]},
        {"id":"q","result":"text"},
        {"id":"r","result":null},
        {"id":"s"}]}"#;
    let calls = MessageRecord::from_text(text).unwrap().tool_calls.unwrap();
    let output = |call: &ToolCallRecord<'_>| {
        call.response()
            .and_then(|response| response.response.as_ref()?.output.as_ref().map(|o| o.text().into_owned()))
    };
    let found: Vec<_> = calls.iter().map(|call| (call.own_result().len(), output(call))).collect();
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(found, [(3, some("B")), (2, some("A")), (1, some("N")), (1, None), (0, None), (0, None)]);
}

#[test]
fn message_types_and_statuses_outside_the_known_set_survive() {
    for kind in ["user", "gemini", "info", "error", "warning", "quiz"] {
        let text = format!(r#"{{"id":"1","type":"{kind}"}}"#);
        assert_eq!(MessageRecord::from_text(&text).unwrap().kind.unwrap().as_str(), kind);
    }
    for status in
        ["success", "error", "cancelled", "validating", "scheduled", "executing", "awaiting_approval", "odd"]
    {
        let text = format!(r#"{{"toolCalls":[{{"status":"{status}"}}]}}"#);
        let calls = MessageRecord::from_text(&text).unwrap().tool_calls.unwrap();
        assert_eq!(calls[0].status.as_ref().unwrap().as_str(), status);
    }
}

#[test]
fn field_of_another_type_does_not_cost_the_message() {
    let text = r#"{"id":"1","timestamp":5,"type":"gemini","content":7,"thoughts":"none","tokens":null,"model":{"a":1},"toolCalls":[{"id":1,"name":"t","args":[],"result":null,"resultDisplay":{"fileDiff":3}}]}"#;
    let message = MessageRecord::from_text(text).unwrap();
    assert_eq!((message.id.as_deref(), message.kind.clone()), (Some("1"), Some(MessageType::Gemini)));
    let (text, cost) = (message.content.is_some() || message.thoughts.is_some(), message.tokens.is_some());
    assert_eq!((message.timestamp, text, cost, message.model), (None, false, false, None));
    let call = &message.tool_calls.as_ref().unwrap()[0];
    assert_eq!((call.name.as_deref(), call.args.as_ref().unwrap().get()), (Some("t"), "[]"));
    assert_eq!(call.id, None);
    let display = Some(ResultDisplay::FileDiff(Box::default()));
    assert_eq!((&call.result, &call.result_display), (&None, &display));
}

#[test]
fn lone_surrogates_in_a_message_are_replaced_where_they_are() {
    let text = r#"{"id":"1","type":"gemini","content":[{"text":"a\ud800"},"b\udc00",{"functionResponse":{"response":{"output":"\ud83c","error":{"x":"\ud83c"}}}}],"toolCalls":[{"resultDisplay":"\ud83c","status":"\ud83c"}],"model":"m"}"#;
    let message = MessageRecord::from_text(text).unwrap();
    let content = message.content.unwrap();
    assert_eq!(content.text(), "a\u{fffd}b\u{fffd}");
    let response = content.parts().find_map(|part| part.function_response.as_deref()).unwrap();
    let response = response.response.as_ref().unwrap();
    assert_eq!(response.output, Some(Payload::Text("\u{fffd}".into())));
    assert_eq!(response.error, Some(Payload::Value(json!({"x": "\u{fffd}"}))));
    let call = &message.tool_calls.unwrap()[0];
    assert_eq!(call.result_display, Raw::from_text("\"\\ud83c\"").map(ResultDisplay::Other));
    assert_eq!(call.status, Some(CallStatus::Other("\u{fffd}".into())));
    assert_eq!(message.model.as_deref(), Some("m"));
}

#[test]
fn text_that_is_no_object_is_no_message() {
    for text in ["", "5", "[]", "null", "{"] {
        assert_eq!(MessageRecord::from_text(text), None);
    }
}
