//! What is said in a session: content, results, displays, and how a shell command ended.

use alhena_wire::Raw;
use alhena_wire::session::{
    Content, FileData, FileDiff, FunctionCall, MessageRecord, Part, Payload, Piece, ResultDisplay, ShellEnd,
    shell_end,
};
use serde_json::{Value, json};

/// Gives the content of a message to a test.
fn with_content(content: &Value, test: impl FnOnce(&Content<'_>)) {
    let text = json!({"id": "1", "content": content}).to_string();
    let message = MessageRecord::from_text(&text).unwrap();
    assert_eq!(message.clone().into_owned(), message);
    test(message.content.as_ref().unwrap());
}

fn text_of(content: Value) -> String {
    let mut text = String::new();
    with_content(&content, |content| text = content.text().into_owned());
    text
}

fn with_display(display: &Value, test: impl FnOnce(&ResultDisplay<'_>)) {
    let text = json!({"id": "1", "toolCalls": [{"resultDisplay": display}]}).to_string();
    let message = MessageRecord::from_text(&text).unwrap();
    assert_eq!(message.clone().into_owned(), message);
    test(message.tool_calls.as_ref().unwrap()[0].result_display.as_ref().unwrap());
}

#[test]
fn text_is_the_same_in_every_form() {
    assert_eq!(text_of(json!("plain \"é\"")), "plain \"é\"");
    assert_eq!(text_of(json!({"text": "part"})), "part");
    assert_eq!(text_of(json!(["a", {"text": "b"}, "c\n"])), "abc\n");
    assert_eq!(text_of(json!([])), "");
    assert_eq!(text_of(json!("")), "");
}

#[test]
fn thoughts_among_the_parts_are_not_text() {
    // After a resume, 0.61 stores thoughts as parts.
    let content = json!([{"text": "**Plan** think", "thought": true}, {"text": "Answer."}, {"text": " More", "thought": false}]);
    with_content(&content, |content| {
        assert_eq!(content.text(), "Answer. More");
        assert_eq!(content.pieces().len(), 3);
    });
}

#[test]
fn calls_and_media_have_their_fields() {
    let content = json!([
        {"functionCall": {"id": "c", "name": "glob", "args": {"pattern": "*"}}, "thoughtSignature": "sig"},
        {"fileData": {"mimeType": "application/pdf", "fileUri": "gs://x"}},
        {"executableCode": {"code": "1"}}
    ]);
    with_content(&content, |content| {
        let parts: Vec<_> = content.parts().collect();
        let call = FunctionCall {
            id: Some("c".into()),
            name: Some("glob".into()),
            args: Raw::from_text(r#"{"pattern":"*"}"#),
        };
        assert_eq!(parts[0].function_call.as_deref(), Some(&call));
        let file = FileData { mime_type: Some("application/pdf".into()), file_uri: Some("gs://x".into()) };
        assert_eq!(parts[1].file_data.as_deref(), Some(&file));
        assert!(parts[1].is_media() && !parts[0].is_media());
        assert_eq!(*parts[2], Part::default());
    });
}

#[test]
fn outputs_of_any_type_are_kept() {
    for (output, text) in [
        (json!("text"), "text"),
        (json!({"b": [1, null], "a": 1.5}), r#"{"b":[1,null],"a":1.5}"#),
        (json!([1, "x"]), r#"[1,"x"]"#),
        (json!(true), "true"),
        (json!(-3), "-3"),
        (json!(3), "3"),
        (json!(2.5), "2.5"),
    ] {
        let content = json!([{"functionResponse": {"response": {"output": output, "more": 1}, "parts": [{"text": "x"}]}}]);
        with_content(&content, |content| {
            let part = content.parts().next().unwrap();
            let response = part.function_response.as_ref().unwrap().response.as_ref().unwrap();
            assert_eq!(response.output.as_ref().map(Payload::text).as_deref(), Some(text));
        });
    }
}

#[test]
fn tool_responses_in_the_users_name_are_recognised() {
    let only = |content: Value| {
        let mut only = false;
        with_content(&content, |content| only = content.is_function_response_only());
        only
    };
    let response = json!({"functionResponse": {"id": "1", "response": {"output": "x"}}});
    assert!(only(json!([response])));
    assert!(only(json!([response, response])));
    assert!(only(response.clone()));
    assert!(only(json!([response, {"inlineData": {"mimeType": "image/png", "data": "AA=="}}, ""])));
    assert!(!only(json!([response, {"text": "and say hi"}])));
    assert!(!only(json!([response, "and say hi"])));
    assert!(!only(json!([{"inlineData": {}}])));
    assert!(!only(json!("text")));
    assert!(!only(json!([])));
}

#[test]
fn context_in_the_users_name_is_recognised() {
    for (content, expected) in [
        (json!([{"text": "<session_context>\nThis is"}]), true),
        (json!("\n <session_context>"), true),
        (json!(["", {"text": " "}, "<hook_context>a</hook_context>\n\nprompt"]), true),
        (json!("What is <session_context>?"), false),
        (json!("/help"), false),
        (json!([{"thought": true, "text": "<hook_context>"}, "x"]), false),
        (json!([]), false),
    ] {
        with_content(&content, |read| assert_eq!(read.is_context(), expected, "{content}"));
    }
}

#[test]
fn display_of_a_file_is_a_diff() {
    let display = json!({
        "fileDiff": "Index: a\n-x\n+y\n", "fileName": "a", "filePath": "/w/a", "originalContent": "x", "newContent": "y",
        "isNewFile": false, "isBuildFile": true
    });
    with_display(&display, |display| {
        let ResultDisplay::FileDiff(diff) = display else { panic!("{display:?}") };
        let expected = FileDiff {
            file_diff: Some("Index: a\n-x\n+y\n".into()),
            original_content: Some("x".into()),
            new_content: Some("y".into()),
            is_new_file: Some(false),
        };
        assert_eq!(**diff, expected);
    });
    with_display(&json!({"fileDiff": "d", "originalContent": null}), |display| {
        assert!(matches!(display, ResultDisplay::FileDiff(diff) if diff.original_content.is_none()));
    });
}

#[test]
fn display_of_another_form_is_kept() {
    for display in [
        json!("es\"caped"),
        json!({"todos": [{"description": "first", "status": "completed"}]}),
        json!([[{"text": "red", "fg": "#f00", "bold": true}, {"text": " plain"}], []]),
        json!([1]),
        json!(5),
    ] {
        with_display(&display, |read| {
            assert_eq!(*read, ResultDisplay::Other(Raw::from_text(&display.to_string()).unwrap()))
        });
    }
}

#[test]
fn pieces_borrow_what_needs_no_decoding() {
    let text = r#"{"content":["a",{"text":"b"}],"toolCalls":[{"result":{"functionResponse":{"response":{"output":"c"}}}}]}"#;
    let message = MessageRecord::from_text(text).unwrap();
    let within = |piece: &str| text.as_bytes().as_ptr_range().contains(&piece.as_ptr());
    for piece in message.content.unwrap().pieces() {
        assert!(match piece {
            Piece::Text(text) => within(text),
            Piece::Part(part) => within(part.text.as_ref().unwrap()),
        });
    }
    let call = &message.tool_calls.unwrap()[0];
    let response = call.response().unwrap().response.as_ref().unwrap();
    assert!(within(&response.output.as_ref().unwrap().text()));
}

#[test]
fn exit_code_is_read_from_the_end() {
    let end = |exit_code, process_group| Some(ShellEnd { exit_code, process_group, ..ShellEnd::default() });
    // Recorded with 0.61, 0.38 and 0.30; the command itself printed "Exit Code: 99".
    let wrapped = "<untrusted_context>\nOutput: out\nExit Code: 99\nerr\nExit Code: 3\nProcess Group PGID: 3327\n</untrusted_context>";
    assert_eq!(shell_end(wrapped), end(Some(3), Some(3327)));
    assert_eq!(
        shell_end("Output: out\nExit Code: 99\nerr\nExit Code: 3\nProcess Group PGID: 1"),
        end(Some(3), Some(1))
    );
    assert_eq!(shell_end("Output: fine\nProcess Group PGID: 7"), end(None, Some(7)));
    assert_eq!(shell_end("Output: (empty)\nExit Code: -1"), end(Some(-1), None));
    // Up to 0.24 every line was there.
    let old = "Command: false\nDirectory: (root)\nOutput: (empty)\nError: (none)\nExit Code: 1\nSignal: (none)\nBackground PIDs: (none)\nProcess Group PGID: 9";
    assert_eq!(shell_end(old), end(Some(1), Some(9)));
    assert_eq!(shell_end(&old.replace("Exit Code: 1", "Exit Code: (none)")), end(None, Some(9)));
}

#[test]
fn signals_and_background_processes_are_read_too() {
    let text = "Output: x\nExit Code: 137\nSignal: 9\nBackground PIDs: 4, 5\nProcess Group PGID: 3";
    let expected = ShellEnd {
        exit_code: Some(137),
        signal: Some("9"),
        background_pids: Some("4, 5"),
        process_group: Some(3),
    };
    assert_eq!(shell_end(text), Some(expected));
}

#[test]
fn output_of_a_command_that_did_not_end_says_nothing() {
    for text in [
        "",
        "Exit Code: 3",
        "Command was cancelled by user before it could complete. Below is the output before it was cancelled:\nExit Code: 3",
        "Command moved to background (PID: 5). Output hidden.",
        "Tool execution denied by policy.",
    ] {
        assert_eq!(shell_end(text), None, "{text}");
    }
    assert_eq!(shell_end("Output: a\nExit Code: 3\nb"), Some(ShellEnd::default()));
}
