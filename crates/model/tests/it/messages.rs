//! Messages: the document's rules one by one, and its ten fixtures as the real CLI records them.

use alhena_model::message::{Include, in_claude_order, message, messages};
use alhena_wire::Raw;
use alhena_wire::session::{Log, MessageRecord};
use serde_json::{Value, json};

/// A record as a message, as JSON, without `_original`, which is checked here for all of them.
fn of(record: &Value) -> Value {
    let text = record.to_string();
    let decoded = MessageRecord::from_text(&text).unwrap();
    let mut made = serde_json::to_value(message(decoded, Raw::from_text(&text).unwrap())).unwrap();
    let original = made.as_object_mut().unwrap().remove("_original").unwrap();
    assert_eq!(original, *record, "B-22");
    made
}

fn gemini(fields: &Value) -> Value {
    let mut record =
        json!({"id": "g1", "timestamp": "2026-11-15T20:28:29.224Z", "type": "gemini", "content": ""});
    record.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    record
}

fn call(name: &str, args: &Value) -> Value {
    json!({"id": "c1", "name": name, "args": args, "status": "success", "timestamp": "t",
           "result": [{"functionResponse": {"id": "c1", "name": name, "response": {"output": "out"}}}]})
}

fn content(record: &Value) -> Value {
    of(record)["content"].take()
}

fn fixture(name: &str) -> Value {
    let path = format!("{}/tests/data/messages/{name}.json", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

// B-08, B-09, B-10, B-14, B-15
#[test]
fn blocks_come_as_thinking_then_each_tool_with_its_result_then_text() {
    let mut second = call("glob", &json!({"pattern": "*"}));
    second["id"] = json!("c2");
    second["result"] = json!([]);
    let mut third = call("no_such", &json!({"a": 1}));
    third["id"] = json!("c3");
    let record = gemini(&json!({
        "content": " text \n",
        "thoughts": [
            {"subject": "One", "description": "first", "timestamp": "t"},
            {"subject": "Two", "description": "second", "timestamp": "t"},
        ],
        "toolCalls": [call("read_file", &json!({"file_path": "a"})), second, third],
    }));
    assert_eq!(
        of(&record),
        json!({
            "id": "g1", "role": "assistant", "timestamp": 1_794_774_509_224_i64, "tool": "gemini",
            "content": [
                {"type": "thinking", "thinking": "One: first"},
                {"type": "thinking", "thinking": "Two: second"},
                {"type": "tool_use", "id": "c1", "name": "Read", "input": {"file_path": "a"}},
                {"type": "tool_result", "tool_use_id": "c1", "content": "out", "is_error": false},
                {"type": "tool_use", "id": "c2", "name": "Glob", "input": {"pattern": "*"}},
                {"type": "tool_use", "id": "c3", "name": "no_such", "input": {"a": 1}},
                {"type": "tool_result", "tool_use_id": "c3", "content": "out", "is_error": false},
                {"type": "text", "text": " text \n"},
            ],
        })
    );
}

#[test]
fn claudes_own_order_is_that_in_which_things_happened_with_results_in_user_messages() {
    let record = gemini(&json!({
        "content": "I look.",
        "thoughts": [{"subject": "One", "description": "first"}],
        "toolCalls": [call("read_file", &json!({"file_path": "a"}))],
        "tokens": {"input": 3, "output": 2, "total": 5},
    }))
    .to_string();
    let empty = gemini(&json!({})).to_string();
    let made = |record| message(MessageRecord::from_text(record).unwrap(), Raw::from_text(record).unwrap());
    let ordered = in_claude_order(vec![made(&record), made(&empty)]);
    let ordered = serde_json::to_value(ordered).unwrap();
    let [answer, results] = ordered.as_array().unwrap().as_slice() else { panic!("{ordered}") };
    assert_eq!((&answer["role"], &results["role"]), (&json!("assistant"), &json!("user")));
    assert_eq!(
        answer["content"],
        json!([
            {"type": "thinking", "thinking": "One: first"},
            {"type": "text", "text": "I look."},
            {"type": "tool_use", "id": "c1", "name": "Read", "input": {"file_path": "a"}},
        ])
    );
    assert_eq!(answer["usage"]["total_tokens"], 5);
    assert_eq!(
        results["content"],
        json!([{"type": "tool_result", "tool_use_id": "c1", "content": "out", "is_error": false}])
    );
    assert_eq!((&results["id"], &results["_original"]), (&json!("g1-results"), &Value::Null));
}

// Gemini CLI cuts the output of a command inside an emoji and writes half of it (0.61.0).
#[test]
fn half_a_character_in_a_record_is_replaced_in_the_message_and_in_its_original() {
    let record = r#"{"id":"g1","type":"gemini","content":"cut \ud83d","toolCalls":[{"id":"c1","name":"run_shell_command",
        "args":{"command":"echo \ud83d"},"result":[{"functionResponse":{"id":"c1","name":"run_shell_command",
        "response":{"output":"\ud83d and \ud83d\ude00"}}}]}]}"#;
    let made = message(MessageRecord::from_text(record).unwrap(), Raw::from_text(record).unwrap());
    let made = serde_json::to_value(made).unwrap();
    assert_eq!(made["content"][0]["input"]["command"], "echo \u{fffd}");
    assert_eq!(made["content"][1]["content"], "\u{fffd} and \u{1f600}");
    assert_eq!(made["content"][2]["text"], "cut \u{fffd}");
    assert_eq!(made["_original"]["content"], "cut \u{fffd}");
}

// B-11, B-12
#[test]
fn a_result_is_its_output_or_its_error_or_nothing() {
    let result = |status: &str, response: Value| {
        let mut call = call("t", &json!({}));
        call["status"] = json!(status);
        call["result"][0]["functionResponse"]["response"] = response;
        let block = content(&gemini(&json!({"toolCalls": [call]})))[1].take();
        (block["content"].clone(), block["is_error"].clone())
    };
    assert_eq!(result("success", json!({"output": "fine"})), (json!("fine"), json!(false)));
    assert_eq!(result("error", json!({"output": "fine"})), (json!("fine"), json!(true)));
    assert_eq!(result("error", json!({"error": "bad"})), (json!("bad"), json!(true)));
    assert_eq!(result("success", json!({"error": "bad"})), (json!("bad"), json!(true)));
    assert_eq!(
        result("cancelled", json!({"output": "part", "error": "cancelled"})),
        (json!("part"), json!(true))
    );
    assert_eq!(result("success", json!({"output": "", "error": "bad"})), (json!("bad"), json!(true)));
    assert_eq!(result("success", json!({"output": ""})), (json!(""), json!(false)));
    assert_eq!(result("success", json!({})), (json!(""), json!(false)));
    assert_eq!(result("success", json!({"output": {"n": 1}})), (json!("{\"n\":1}"), json!(false)));
}

// B-13
#[test]
fn without_a_result_there_is_no_tool_result() {
    for nothing in [json!(null), json!([])] {
        let mut call = call("t", &json!({}));
        call["result"] = nothing;
        assert_eq!(
            content(&gemini(&json!({"toolCalls": [call]}))),
            json!([{"type": "tool_use", "id": "c1", "name": "t", "input": {}}])
        );
    }
    let mut absent = call("t", &json!({}));
    absent.as_object_mut().unwrap().remove("result");
    assert_eq!(content(&gemini(&json!({"toolCalls": [absent]}))).as_array().unwrap().len(), 1);
}

// B-14, B-17
#[test]
fn text_that_is_only_white_space_is_no_block_but_stays_the_content() {
    assert_eq!(content(&gemini(&json!({"content": ""}))), json!(""));
    assert_eq!(content(&gemini(&json!({"content": " \n"}))), json!(" \n"));
    assert_eq!(
        content(&gemini(&json!({"content": " \n", "thoughts": [{"subject": "s", "description": "d"}]}))),
        json!([{"type": "thinking", "thinking": "s: d"}])
    );
}

// B-16
#[test]
fn a_user_is_a_user_and_everybody_else_the_assistant() {
    for (kind, role) in
        [("user", "user"), ("gemini", "assistant"), ("info", "assistant"), ("new_kind", "assistant")]
    {
        assert_eq!(of(&gemini(&json!({"type": kind, "content": "x"})))["role"], role, "{kind}");
    }
}

// B-18
#[test]
fn the_time_is_in_milliseconds() {
    assert_eq!(of(&gemini(&json!({"timestamp": "1970-01-01T00:00:01.5Z"})))["timestamp"], 1500);
    assert_eq!(of(&gemini(&json!({"timestamp": "soon"})))["timestamp"], Value::Null);
}

// B-20, B-21
#[test]
fn model_and_usage_are_copied_or_absent() {
    let plain = of(&gemini(&json!({})));
    assert!(plain.get("model").is_none() && plain.get("usage").is_none());
    let tokens =
        json!({"input": 1200, "output": 12, "cached": 1000, "thoughts": 34, "tool": 0, "total": 1246});
    let full = of(&gemini(&json!({"model": "gemini-2.5-pro", "tokens": tokens})));
    assert_eq!(full["model"], "gemini-2.5-pro");
    assert_eq!(
        full["usage"],
        json!({"input_tokens": 1200, "output_tokens": 12, "total_tokens": 1246, "cached_tokens": 1000, "thought_tokens": 34})
    );
    let old = of(&gemini(&json!({"tokens": {"input": 1, "output": 2, "total": 3}})));
    assert_eq!(old["usage"], json!({"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}));
    assert!(of(&gemini(&json!({"tokens": null}))).get("usage").is_none());
}

// B-23 to B-36
#[test]
fn tools_have_claudes_names_and_arguments() {
    for (name, args, claude, input) in [
        ("read_file", json!({"absolute_path": "/a", "offset": 1}), "Read", json!({"file_path": "/a"})),
        ("read_file", json!({"file_path": "a", "start_line": 1}), "Read", json!({"file_path": "a"})),
        (
            "write_file",
            json!({"file_path": "a", "content": "c"}),
            "Write",
            json!({"file_path": "a", "content": "c"}),
        ),
        (
            "replace",
            json!({"file_path": "a", "instruction": "i", "old_string": "o", "new_string": "n", "allow_multiple": true}),
            "Edit",
            json!({"file_path": "a", "old_string": "o", "new_string": "n"}),
        ),
        ("list_directory", json!({"path": "/d"}), "Glob", json!({"pattern": "*", "path": "/d"})),
        (
            "list_directory",
            json!({"dir_path": "/d", "ignore": []}),
            "Glob",
            json!({"pattern": "*", "path": "/d"}),
        ),
        (
            "run_shell_command",
            json!({"command": "ls", "description": "List", "dir_path": "."}),
            "Bash",
            json!({"command": "ls", "description": "List"}),
        ),
        ("google_web_search", json!({"query": "q", "x": 1}), "WebSearch", json!({"query": "q", "x": 1})),
        ("my_own_tool", json!({"query": "q"}), "my_own_tool", json!({"query": "q"})),
        ("mcp_files_read", json!({"p": 1}), "mcp__files__read", json!({"p": 1})),
        (
            "search_file_content",
            json!({"pattern": "p", "include": "*.rs"}),
            "Grep",
            json!({"pattern": "p", "glob": "*.rs"}),
        ),
        ("activate_skill", json!({"name": "pdf"}), "Skill", json!({"skill": "pdf"})),
    ] {
        let blocks = content(&gemini(&json!({"toolCalls": [call(name, &args)]})));
        assert_eq!(
            blocks[0],
            json!({"type": "tool_use", "id": "c1", "name": claude, "input": input}),
            "{name}"
        );
    }
}

#[test]
fn diffs_exit_codes_and_cancellation_are_extra_keys_of_the_result() {
    let mut edit = call("write_file", &json!({"file_path": "a", "content": "x"}));
    edit["resultDisplay"] =
        json!({"fileDiff": "@@ -0,0 +1 @@\n+x\n", "fileName": "a", "originalContent": "", "newContent": "x"});
    assert_eq!(
        content(&gemini(&json!({"toolCalls": [edit]})))[1],
        json!({"type": "tool_result", "tool_use_id": "c1", "content": "out", "is_error": false, "diff": "@@ -0,0 +1 @@\n+x\n"})
    );
    let shell = |status: &str, output: &str| {
        let mut call = call("run_shell_command", &json!({"command": "x"}));
        call["status"] = json!(status);
        call["result"][0]["functionResponse"]["response"]["output"] = json!(output);
        let block = content(&gemini(&json!({"toolCalls": [call]})))[1].take();
        (block.get("exit_code").cloned(), block.get("cancelled").cloned())
    };
    let failed = "<untrusted_context>\nOutput: out\nerr\nExit Code: 3\nProcess Group PGID: 10476\n</untrusted_context>";
    assert_eq!(shell("success", failed), (Some(json!(3)), None));
    let fine =
        "<untrusted_context>\nOutput: Exit Code: 9\nfine\nProcess Group PGID: 10479\n</untrusted_context>";
    assert_eq!(shell("success", fine), (Some(json!(0)), None));
    assert_eq!(shell("cancelled", "Command was cancelled by user"), (None, Some(json!(true))));
    assert_eq!(shell("success", "anything else"), (None, None));
}

#[test]
fn images_of_prompts_and_results_are_blocks_before_the_text() {
    let png = |data: &str| json!({"inlineData": {"data": data, "mimeType": "image/png"}});
    let block = |data: &str| json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}});
    let prompt = gemini(&json!({"type": "user", "content": [
        {"text": "Look at @dot.png"}, {"text": "\n--- Content ---"}, png("AA=="), {"text": "\n--- End ---"},
        {"inlineData": {"data": "JVBERi0=", "mimeType": "application/pdf"}},
    ]}));
    let text = "Look at @dot.png\n--- Content ---\n--- End ---";
    assert_eq!(content(&prompt), json!([block("AA=="), {"type": "text", "text": text}]));
    let mut read = call("read_file", &json!({"file_path": "dot.png"}));
    read["result"].as_array_mut().unwrap().push(png("BB=="));
    read["result"][0]["functionResponse"]["parts"] = json!([png("CC==")]);
    let blocks = content(&gemini(&json!({"toolCalls": [read], "content": "Nice."})));
    assert_eq!(
        blocks.as_array().unwrap()[2..],
        [block("CC=="), block("BB=="), json!({"type": "text", "text": "Nice."})]
    );
}

#[test]
fn content_is_a_string_a_part_or_parts_and_thought_parts_are_thinking() {
    for same in [json!("hi"), json!({"text": "hi"}), json!(["h", {"text": "i"}])] {
        assert_eq!(content(&gemini(&json!({"content": same}))), json!([{"type": "text", "text": "hi"}]));
    }
    let parts = json!([{"text": "hm", "thought": true}, {"text": "hi"}]);
    assert_eq!(
        content(&gemini(&json!({"content": parts}))),
        json!([{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "hi"}])
    );
    // The CLI keeps both after a resume; they are the same thoughts.
    let thoughts = json!([{"subject": "s", "description": "d"}]);
    assert_eq!(
        content(&gemini(&json!({"content": parts, "thoughts": thoughts}))),
        json!([{"type": "thinking", "thinking": "s: d"}, {"type": "text", "text": "hi"}])
    );
}

#[test]
fn results_that_are_no_list_of_responses_still_say_something() {
    for (result, expected) in [
        (json!("plain"), "plain"),
        (json!({"functionResponse": {"response": {"output": "one"}}}), "one"),
        (json!([{"text": "a"}, {"text": "b"}]), "ab"),
        (
            json!([{"functionResponse": {"response": {"output": "one"}}}, {"functionResponse": {"response": {"output": "two"}}}]),
            "one",
        ),
    ] {
        let mut call = call("t", &json!({}));
        call["result"] = result;
        assert_eq!(content(&gemini(&json!({"toolCalls": [call]})))[1]["content"], expected);
    }
}

fn conversation(records: &[Value], include: Include) -> Vec<Value> {
    let mut log = Log::new();
    for record in records {
        log.push_copy(record.to_string().as_bytes());
    }
    messages(&log, include).iter().map(|message| serde_json::to_value(message).unwrap()).collect()
}

fn ids(messages: &[Value]) -> Vec<&str> {
    messages.iter().map(|message| message["id"].as_str().unwrap()).collect()
}

#[test]
fn what_nobody_said_is_left_out_unless_asked_for() {
    let user =
        |id: &str, content: Value| json!({"id": id, "timestamp": "t", "type": "user", "content": content});
    let notice =
        |id: &str, kind: &str| json!({"id": id, "timestamp": "t", "type": kind, "content": "notice"});
    let records = [
        user("context", json!([{"text": "<session_context>\nThis is the Gemini CLI."}])),
        user("hook", json!([{"text": "  <hook_context>x</hook_context>"}])),
        user("prompt", json!([{"text": "/help me, ?please"}])),
        notice("info", "info"),
        notice("warning", "warning"),
        notice("error", "error"),
        gemini(&json!({"id": "answer", "content": "Yes"})),
        user(
            "response",
            json!([{"functionResponse": {"id": "c", "name": "x", "response": {"output": "o"}}},
                                {"inlineData": {"data": "AA==", "mimeType": "image/png"}}]),
        ),
        user(
            "both",
            json!([{"functionResponse": {"id": "c", "name": "x", "response": {}}}, {"text": "and a word"}]),
        ),
        user("empty", json!([])),
    ];
    assert_eq!(ids(&conversation(&records, Include::Said)), ["prompt", "answer", "both", "empty"]);
    assert_eq!(conversation(&records, Include::Everything).len(), records.len());
}

// gemini-cli-contract.md, E.5: what a resume makes of earlier answers.
#[test]
fn calls_among_parts_get_their_results_from_the_record_that_follows() {
    let response = |id: &str| {
        json!({"id": id, "timestamp": "t", "type": "user", "content": [
            {"functionResponse": {"id": "c1", "name": "run_shell_command", "response": {"output": "Output: x\nExit Code: 2"}}}]})
    };
    let records = [
        gemini(&json!({"content": [{"text": "**First** Look.", "thought": true},
            {"functionCall": {"id": "c1", "name": "run_shell_command", "args": {"command": "x"}}}]})),
        response("g1_response"),
        response("again"),
        gemini(&json!({"id": "g2", "content": "Done"})),
    ];
    let made = conversation(&records, Include::Said);
    assert_eq!(ids(&made), ["g1", "g2"]);
    assert_eq!(
        made[0]["content"],
        json!([
            {"type": "thinking", "thinking": "**First** Look."},
            {"type": "tool_use", "id": "c1", "name": "Bash", "input": {"command": "x"}},
            {"type": "tool_result", "tool_use_id": "c1", "content": "Output: x\nExit Code: 2", "is_error": true, "exit_code": 2},
        ])
    );
}

#[test]
fn calls_that_are_recorded_are_not_repeated_from_the_parts() {
    let record = gemini(&json!({
        "content": [{"functionCall": {"id": "c1", "name": "glob", "args": {}}}, {"functionCall": {"name": "glob"}}],
        "toolCalls": [call("glob", &json!({"pattern": "*"}))],
    }));
    assert_eq!(content(&record).as_array().unwrap().len(), 2);
}

// B-61
#[test]
fn fixture_read_file() {
    let made = of(&fixture("tool-read_file"));
    let blocks = made["content"].as_array().unwrap();
    assert_eq!((&made["role"], &made["tool"]), (&json!("assistant"), &json!("gemini")));
    assert_eq!((&blocks[1]["type"], &blocks[1]["name"]), (&json!("tool_use"), &json!("Read")));
    assert!(blocks[1]["input"]["file_path"].as_str().unwrap().contains("main.py"));
    assert_eq!(blocks[2]["tool_use_id"], blocks[1]["id"]);
    assert!(blocks[2]["content"].as_str().unwrap().contains("def main()"));
}

// B-59, B-63, B-64
#[test]
fn each_fixture_has_the_blocks_it_should() {
    let kinds = |name: &str| -> Vec<String> {
        let made = of(&fixture(name));
        let blocks = made["content"].as_array().unwrap().clone();
        blocks
            .iter()
            .map(|block| {
                format!(
                    "{}{}",
                    block["type"].as_str().unwrap(),
                    match block.get("name") {
                        Some(name) => format!(" {}", name.as_str().unwrap()),
                        None => String::new(),
                    }
                )
            })
            .collect()
    };
    assert_eq!(kinds("tool-write-file"), ["thinking", "thinking", "tool_use Write", "tool_result"]);
    assert_eq!(kinds("tool-replace"), ["thinking", "tool_use Edit", "tool_result"]);
    assert_eq!(kinds("tool-run_shell_command"), ["thinking", "tool_use Bash", "tool_result"]);
    assert_eq!(kinds("tool-google_web_search"), ["thinking", "tool_use WebSearch", "tool_result"]);
    assert_eq!(kinds("tool-list_directory"), ["thinking", "tool_use Glob", "tool_result"]);
    assert_eq!(kinds("tool-result-error"), ["thinking", "tool_use Read", "tool_result"]);
    assert_eq!(kinds("tool-result-cancelled"), ["tool_use Bash", "tool_result", "text"]);
    assert_eq!(kinds("tool-result-success"), ["thinking", "tool_use Glob", "tool_result"]);
    assert_eq!(kinds("gemini-with-thoughts"), ["thinking", "thinking", "text"]);
}

// B-59, B-63
#[test]
fn the_details_of_fixtures_are_what_the_cli_recorded() {
    let blocks = |name: &str| of(&fixture(name))["content"].take();
    let edit = blocks("tool-replace");
    assert_eq!(
        edit[1]["input"],
        json!({"file_path": "notes.txt", "old_string": "beta", "new_string": "BETA"})
    );
    assert!(edit[2]["diff"].as_str().unwrap().contains("\n-beta\n+BETA\n"));
    let shell = blocks("tool-run_shell_command");
    assert_eq!(shell[1]["input"], json!({"command": "echo out; exit 3", "description": "Fails on purpose"}));
    assert_eq!((&shell[2]["is_error"], &shell[2]["exit_code"]), (&json!(true), &json!(3)));
    let failed = blocks("tool-result-error");
    assert_eq!(failed[2]["is_error"], true);
    assert!(failed[2]["content"].as_str().unwrap().contains("not found"));
    let cancelled = blocks("tool-result-cancelled");
    assert_eq!((&cancelled[1]["is_error"], &cancelled[1]["cancelled"]), (&json!(true), &json!(true)));
    let thoughts = blocks("gemini-with-thoughts");
    assert_eq!(thoughts[1]["thinking"], "Concluding: That was all.");
    assert_eq!(thoughts[2], json!({"type": "text", "text": "All done."}));
}
