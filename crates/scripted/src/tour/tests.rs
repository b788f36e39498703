//! The tour in a folder that exists only here, with the results that Gemini CLI 0.61.0 gives its tools.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use super::answer;
use crate::step::Step;
use crate::{Call, RecordedRequest};

const YOLO: &[&str] = &["list_directory", "read_file", "write_file", "run_shell_command"];
const AUTO_EDIT: &[&str] = &["list_directory", "read_file", "write_file"];
const DEFAULT: &[&str] = &["list_directory", "read_file"];

/// A session of Gemini CLI in a folder.
struct Session {
    tools: &'static [&'static str],
    files: BTreeMap<String, String>,
    contents: Vec<Value>,
    calls: Vec<(String, Value)>,
    said: String,
    paused: Duration,
}

impl Session {
    fn new(tools: &'static [&'static str]) -> Self {
        let context = json!({"role": "user", "parts": [{"text": "<session_context>\nWrite into wrong.txt"}]});
        Session {
            tools,
            files: BTreeMap::new(),
            contents: vec![context],
            calls: Vec::new(),
            said: String::new(),
            paused: Duration::ZERO,
        }
    }

    fn with(mut self, path: &str, text: &str) -> Self {
        self.files.insert(path.to_owned(), text.to_owned());
        self
    }

    /// Runs a prompt until the model makes no more calls.
    fn run(mut self, prompt: &str) -> Self {
        self.contents.push(json!({"role": "user", "parts": [{"text": prompt}]}));
        (self.said, self.calls, self.paused) = (String::new(), Vec::new(), Duration::ZERO);
        for _ in 0..12 {
            let calls = self.turn();
            if calls.is_empty() {
                return self;
            }
            let results: Vec<Value> = calls
                .iter()
                .map(|call| {
                    json!({"functionResponse": {"name": call.name, "response": self.execute(&call.name, &call.args)}})
                })
                .collect();
            self.contents.push(json!({"role": "model", "parts": [{"text": "..."}]}));
            self.contents.push(json!({"role": "user", "parts": results}));
            self.calls.extend(calls.into_iter().map(|call| (call.name, call.args)));
        }
        panic!("the tour does not end: {:?}", self.calls);
    }

    fn turn(&mut self) -> Vec<Call> {
        let declarations: Vec<Value> = self.tools.iter().map(|name| json!({"name": name})).collect();
        let body = json!({"contents": self.contents, "tools": [{"functionDeclarations": declarations}]});
        let turn = answer(&request(body));
        let mut calls = Vec::new();
        for step in turn.steps {
            match step {
                Step::Thought(_) => {}
                Step::Text(text) => self.said.push_str(&text),
                Step::Chunks { text, size, pause } => {
                    self.paused += pause * u32::try_from(text.chars().count() / size).unwrap();
                    self.said.push_str(&text);
                }
                Step::Calls(all) => calls.extend(all),
                Step::Sleep(pause) => self.paused += pause,
                other => panic!("{other:?}"),
            }
        }
        calls
    }

    fn execute(&mut self, tool: &str, args: &Value) -> Value {
        let text = |name: &str| args[name].as_str().unwrap().to_owned();
        match tool {
            "list_directory" => self.list(&text("dir_path")),
            "read_file" => match self.files.get(&text("file_path")) {
                Some(text) => json!({"output": text}),
                None => json!({"error": format!("File not found: {}", text("file_path"))}),
            },
            "write_file" => {
                self.files.insert(text("file_path"), text("content"));
                json!({"output": "Successfully created and wrote to new file: /w/x. Here is the updated code:\n..."})
            }
            "run_shell_command" => {
                let output = format!(
                    "<untrusted_context>\nOutput: ran {}\nProcess Group PGID: 7\n</untrusted_context>",
                    text("command")
                );
                json!({"output": output})
            }
            other => panic!("{other}"),
        }
    }

    fn list(&self, directory: &str) -> Value {
        let prefix = if directory == "." { String::new() } else { format!("{directory}/") };
        let inside: Vec<&str> = self.files.keys().filter_map(|path| path.strip_prefix(&prefix)).collect();
        if inside.is_empty() && directory != "." {
            return json!({"error": format!("Error listing directory: ENOENT: no such file or directory, stat '{directory}'")});
        }
        let entry = |path: &&str| match path.split_once('/') {
            Some((directory, _)) => format!("[DIR] {directory}"),
            None => format!("{path} (5 bytes)"),
        };
        let lines: Vec<String> = inside.iter().map(entry).collect();
        json!({"output": format!("Directory listing for /w:\n{}", lines.join("\n"))})
    }

    fn tools_called(&self) -> Vec<&str> {
        self.calls.iter().map(|(name, _)| name.as_str()).collect()
    }
}

fn request(body: Value) -> RecordedRequest {
    RecordedRequest {
        at: SystemTime::UNIX_EPOCH,
        run: String::new(),
        number: 1,
        method: "POST".to_owned(),
        path: String::new(),
        action: "streamGenerateContent".to_owned(),
        model: "m".to_owned(),
        headers: BTreeMap::new(),
        raw_body: body.to_string(),
        body,
    }
}

const HAIKU: &str = "A river at dawn,\ncarrying the mountain's snow\nsoftly to the sea.\n";

#[test]
fn a_file_is_looked_for_written_shown_and_told_of() {
    let session = Session::new(YOLO).run("Write a haiku about rivers into haiku.txt");
    assert_eq!(session.tools_called(), ["list_directory", "write_file", "run_shell_command"]);
    assert_eq!(session.files, BTreeMap::from([("haiku.txt".to_owned(), HAIKU.to_owned())]));
    assert_eq!(session.calls[2].1["command"], "ls -l haiku.txt");
    assert_eq!(
        session.said,
        format!(
            "I am the scripted offline model. I write a haiku about rivers into haiku.txt. I wrote a haiku about rivers \
             into haiku.txt (3 lines). `ls -l` shows it: ran ls -l haiku.txt\n\n{HAIKU}\nThis answer comes from the \
             scripted offline model: the tool calls and the file are real, the words were made up before you asked."
        )
    );
    assert!(session.paused < Duration::from_secs(2), "{:?}", session.paused);
}

#[test]
fn without_a_shell_the_file_is_read() {
    let session = Session::new(AUTO_EDIT).run("Write a haiku about rivers into haiku.txt");
    assert_eq!(session.tools_called(), ["list_directory", "write_file", "read_file"]);
    assert!(session.said.contains("I read it back, and it is there."));
}

#[test]
fn without_leave_to_write_the_text_is_shown() {
    let session = Session::new(DEFAULT).run("Write a haiku about rivers into haiku.txt");
    assert_eq!((session.calls.len(), session.files.len()), (0, 0));
    assert!(
        session.said.contains(HAIKU) && session.said.contains("scripted offline model"),
        "{}",
        session.said
    );
}

#[test]
fn a_file_of_the_user_is_never_overwritten() {
    let prompts = [
        "Write a haiku into notes.txt",
        "Write tests for notes.txt",
        "Create NOTES.txt",
        "notes.txt へ書いて",
    ];
    for prompt in prompts {
        let session = Session::new(YOLO).with("notes.txt", "mine").with("NOTES.txt", "mine too").run(prompt);
        assert_eq!(session.tools_called(), ["list_directory", "read_file"], "{prompt}");
        assert_eq!(session.files.values().collect::<Vec<_>>(), ["mine too", "mine"]);
        assert!(session.said.contains("overwrites nothing of yours"), "{}", session.said);
    }
}

#[test]
fn its_own_file_is_written_again() {
    let session =
        Session::new(YOLO).with("haiku.txt", HAIKU).run("Write a haiku about rivers into haiku.txt");
    assert_eq!(session.tools_called(), ["list_directory", "read_file", "write_file", "run_shell_command"]);
}

#[test]
fn folders_are_looked_into_one_by_one() {
    let fresh = Session::new(YOLO).run("Create docs/notes/a.md about tea");
    assert_eq!(fresh.tools_called(), ["list_directory", "write_file", "run_shell_command"]);
    assert!(fresh.files.contains_key("docs/notes/a.md"));
    let known = Session::new(YOLO).with("docs/notes/a.md", "mine").run("Create docs/notes/a.md about tea");
    assert_eq!(known.tools_called(), ["list_directory", "list_directory", "list_directory", "read_file"]);
    assert_eq!(known.files["docs/notes/a.md"], "mine");
    let beside = Session::new(YOLO).with("docs/b.md", "mine").run("Create docs/a.md about tea");
    assert_eq!(
        beside.tools_called(),
        ["list_directory", "list_directory", "write_file", "run_shell_command"]
    );
}

#[test]
fn a_cut_listing_is_not_trusted() {
    assert!(super::may_hold("Directory listing for /w:\na (5 bytes)\n... [truncated]", "b"));
    assert!(!super::may_hold("Directory listing for /w:\na (5 bytes)\nb.txt.bak (5 bytes)", "b.txt"));
}

#[test]
fn a_failed_tool_is_told_of() {
    let mut session = Session::new(YOLO);
    session.contents.push(json!({"role": "user", "parts": [{"text": "Write a.txt"}]}));
    let result = |name: &str, response: Value| json!({"role": "user", "parts": [{"functionResponse": {"name": name, "response": response}}]});
    session
        .contents
        .push(result("list_directory", json!({"output": "Directory listing for /w:\nb (1 bytes)"})));
    session.contents.push(result("write_file", json!({"error": "denied by policy\nmore"})));
    assert_eq!(session.turn(), []);
    assert_eq!(
        session.said,
        "a.txt was not written: denied by policy\n\n(This is the scripted offline model.)"
    );

    let mut session = Session::new(YOLO);
    session.contents.push(json!({"role": "user", "parts": [{"text": "Write /etc/a.txt"}]}));
    session.contents.push(result("list_directory", json!({"error": "Path not in workspace"})));
    assert_eq!(session.turn(), []);
    assert_eq!(
        session.said,
        "/etc/a.txt was not written: Path not in workspace\n\n(This is the scripted offline model.)"
    );
}

#[test]
fn a_second_prompt_starts_anew() {
    let session = Session::new(YOLO).run("Write a haiku about rivers into haiku.txt").run("Write hello.py");
    assert_eq!(session.tools_called(), ["list_directory", "write_file", "run_shell_command"]);
    assert!(session.files["hello.py"].contains("print(\"Hello, world!\")"));
    assert_eq!(session.run("Thanks!").calls, []);
}

#[test]
fn a_repair_begins_with_a_look_around() {
    for prompt in ["fix the failing test", "Why is the build broken?", "Please refactor main.rs"] {
        let session = Session::new(YOLO).with("main.rs", "mine").with("lib.rs", "mine").run(prompt);
        assert_eq!(session.tools_called(), ["list_directory"], "{prompt}");
        assert!(session.said.contains("The folder holds 2 entries."), "{}", session.said);
        assert!(session.said.contains("I am the scripted offline model"), "{}", session.said);
    }
    let session = Session::new(&[]).run("fix it");
    assert_eq!(session.calls, []);
    assert!(session.said.contains("I am the scripted offline model"), "{}", session.said);
}

#[test]
fn any_other_prompt_is_answered_in_words() {
    let huge = "word ".repeat(1_600_000);
    let prompts = ["", "hello", "What is in main.rs?", "🌍\u{1b}[31m\0", "Résume node.js", "a\n\n\n", &huge];
    for prompt in prompts {
        let session = Session::new(YOLO).run(prompt);
        assert_eq!(session.calls, [], "{prompt:.40}");
        assert!(session.said.starts_with("I am the scripted offline model"), "{}", session.said);
        assert!(!session.said.contains(char::is_control), "{:?}", session.said);
        assert!(session.said.len() < 700);
    }
}

#[test]
fn the_usage_grows_with_the_conversation_and_is_cached_after_the_first_request() {
    let first = request(json!({"contents": [{"parts": [{"text": "Write a.txt"}]}]}));
    let usage = super::realistic_usage(&first);
    assert_eq!((usage.prompt_token_count, usage.cached_content_token_count), (Some(12), None));
    let later = request(json!({"contents": [
        {"parts": [{"text": "Write a.txt"}]}, {"parts": [{"functionResponse": {"name": "list_directory"}}]},
    ]}));
    let usage = super::realistic_usage(&later);
    assert_eq!((usage.prompt_token_count, usage.cached_content_token_count), (Some(27), Some(24)));
}
