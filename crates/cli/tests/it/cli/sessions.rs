//! `alhena sessions`, on session files that the real CLI wrote: list, show, search, usage.

use std::fs;
use std::path::{Path, PathBuf};

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::common::Desk;

/// Where the project of the working directory keeps its sessions.
pub fn chats(desk: &Desk) -> PathBuf {
    let project = desk.home().join(".gemini/tmp/work");
    fs::create_dir_all(project.join("chats")).unwrap();
    fs::write(project.join(".project_root"), desk.work().to_str().unwrap()).unwrap();
    project.join("chats")
}

pub fn recorded(release: &str, case: &str) -> PathBuf {
    alhena_testbed::cache::workspace().join("crates/session/tests/data").join(release).join(case)
}

pub fn copy(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let place = to.join(entry.file_name());
        if entry.path().is_dir() {
            fs::create_dir_all(&place).unwrap();
            copy(&entry.path(), &place);
        } else {
            fs::copy(entry.path(), place).unwrap();
        }
    }
}

/// A desk whose folder has these recorded sessions.
pub fn desk_with(cases: &[(&str, &str)]) -> Desk {
    let desk = Desk::new();
    let chats = chats(&desk);
    for (release, case) in cases {
        copy(&recorded(release, case), &chats);
    }
    desk
}

/// A session of a folder that is gone.
pub fn with_session_of_nope(desk: &Desk) {
    let project = desk.home().join(".gemini/tmp/gone");
    fs::create_dir_all(project.join("chats")).unwrap();
    fs::write(project.join(".project_root"), "/nope").unwrap();
    let header = r#"{"sessionId":"12345678-0000-4000-8000-000000000000","projectHash":"x","startTime":"2026-01-01T00:00:00.000Z","lastUpdated":"2026-01-01T00:00:00.000Z","kind":"main"}"#;
    let said = r#"{"id":"m1","timestamp":"2026-01-01T00:00:01.000Z","type":"user","content":"Hello there"}"#;
    fs::write(project.join("chats/session-2026-01-01T00-00-12345678.jsonl"), format!("{header}\n{said}\n"))
        .unwrap();
}

/// Without the ages, which grow.
fn ageless(text: &str) -> String {
    let is_age = |word: &str| {
        let count = word.trim_end_matches(['s', 'm', 'h', 'd', 'w']);
        count.len() + 1 == word.len() && !count.is_empty() && count.bytes().all(|byte| byte.is_ascii_digit())
    };
    let line = |line: &str| {
        let words = line.split(' ').map(|word| if is_age(word) { "[AGE]" } else { word });
        words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_list_has_the_newest_first_with_state_tokens_and_title() {
    let desk =
        desk_with(&[("0.61.0", "tools"), ("0.61.0", "cancelled"), ("0.61.0", "stub"), ("0.38.2", "image")]);
    assert_snapshot!(ageless(&desk.alhena(&["sessions", "list"]).to_string()), @r#"
    cccccccc [AGE] 4 msg 202 tok gemini-2.5-flash endangered first prompt
    c1ac0cd4 [AGE] 3 msg 208 tok gemini-2.5-flash answered Look at @dot.png and read it again
    bb938a8d [AGE] 8 msg 1.9k tok gemini-2.5-flash answered Show me main.py, then improve the notes
    77db4d23 [AGE] 0 msg 107 tok gemini-2.5-flash lost Wait a while
    [exit 0]
    "#);
    let two = desk.alhena(&["sessions", "list", "--json", "-n", "2"]).json();
    let entry = |at: usize, key: &str| two[at][key].clone();
    assert_eq!(two.as_array().map(Vec::len), Some(2));
    assert_eq!(
        [entry(0, "id"), entry(0, "state"), entry(0, "messages"), entry(0, "title")],
        [json!("cccccccc-2222-4333-8444-555555555555"), json!("endangered"), json!(4), json!("first prompt")]
    );
    assert_eq!(two[0]["project"], json!(desk.work()));
}

#[test]
fn a_store_without_sessions_is_said_to_have_none() {
    let desk = Desk::new();
    // B-42
    desk.transcript(
        r"
        $ sessions list
        No sessions here. `alhena sessions list --all` looks in all folders.
        [exit 0]
        $ sessions list --all
        Gemini CLI has kept no sessions in [DESK]/home/.gemini.
        [exit 0]
        $ sessions list --json
        []
        [exit 0]
        $ sessions show
        error: No Gemini session found for project: [DESK]/work
        hint: `alhena sessions list --all` shows those of other folders.
        [exit 1]
        $ sessions search word
        Nothing found.
        [exit 1]
        $ sessions usage
        Nothing was spent.
        [exit 0]
        $ sessions repair
        Nothing to repair.
        [exit 0]
        ",
    );
    assert!(!desk.home().join(".gemini").exists());
}

#[test]
fn the_sessions_of_a_folder_that_is_gone_can_still_be_listed() {
    let desk = Desk::new();
    with_session_of_nope(&desk);
    let seen = desk.alhena(&["sessions", "list", "-C", "/nope"]);
    assert!(seen.stdout.contains("12345678") && seen.code() == Some(0), "{seen}");
}

#[test]
fn another_folder_has_other_sessions() {
    let desk = desk_with(&[("0.61.0", "plain")]);
    let elsewhere = desk.root().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    let there = ["sessions", "list", "--dir", elsewhere.to_str().unwrap()];
    assert_eq!(desk.alhena(&there).stdout, "");
    assert_eq!(
        desk.alhena(&["sessions", "list", "--all", "--json"]).json().as_array().map(Vec::len),
        Some(1)
    );
    // An id is an id, wherever the session was.
    let shown = desk.alhena(&["sessions", "show", "3e9f", "-C", elsewhere.to_str().unwrap()]);
    assert!(shown.stdout.contains("What is in main.py?"), "{shown}");
}

#[test]
fn show_has_thoughts_tools_diffs_exit_codes_and_tokens() {
    let desk = desk_with(&[("0.61.0", "tools")]);
    assert_snapshot!(desk.alhena(&["sessions", "show"]), @r#"
    Show me main.py, then improve the notes
    Session   [ID]
    Project   [DESK]/work
    Started   [TIME]
    Updated   [TIME]
    Messages  8
    Models    gemini-2.5-flash
    Tokens    1942 (1800 in, 1000 of them cached; 79 out, 63 thoughts)

    ▌ you 2026-11-15 20:30:38
    Show me main.py, then improve the notes

    ▌ gemini 2026-11-15 20:30:39 · gemini-2.5-flash · 120 tokens
    ∴ Reading the code: I should look at main.py first.
    Reading.
    ● Read main.py
      import sys

      def main():
          print("hello", sys.argv)

      main()

    ▌ gemini 2026-11-15 20:30:40 · gemini-2.5-flash · 126 tokens
    ∴ Writing: A new file is needed.
    ∴ Also editing: And the notes.
    ● Write out/new.txt
      --- new.txt	Original
      +++ new.txt	Written
      @@ -0,0 +1,2 @@
      +one
      +two
    ● Edit notes.txt
      --- notes.txt	Current
      +++ notes.txt	Proposed
      @@ -1,3 +1,3 @@
       alpha
      -beta
      +BETA
       gamma

    ▌ gemini 2026-11-15 20:30:40 · gemini-2.5-flash · 110 tokens
    ● Bash echo out; echo err >&2; exit 3
      exit 3
      out
      err
    ● Bash echo fine
      fine

    ▌ gemini 2026-11-15 20:30:41 · gemini-2.5-flash · 115 tokens
    ● Glob *
      Directory listing for /home/dev/work:
      [DIR] out
      main.py (61 bytes)
      notes.txt (17 bytes)
    ● Glob **/*.py
      Found 1 file(s) matching "**/*.py" within /home/dev/work, sorted by modification time (newest first):
      /home/dev/work/main.py
    ● Grep def main
      Found 1 match for pattern "def main" in the workspace directory:
      ---
      File: main.py
      L1- import sys
      L2- 
      L3: def main():
      L4-     print("hello", sys.argv)
      L5- 
      … 3 more lines (--full shows all)

    ▌ gemini 2026-11-15 20:30:42 · gemini-2.5-flash · 115 tokens
    ● Edit notes.txt
      failed
      Could not find an exact match for 'old_string' in 'notes.txt'. If previous edits modified the file or you are …
    ● no_such_tool
      failed
      Tool "no_such_tool" not found. Did you mean one of: "write_todos", "update_topic", "list_directory"?
    ● Read missing.txt
      failed
      File not found: /home/dev/work/missing.txt

    ▌ gemini 2026-11-15 20:30:42 · gemini-2.5-flash · 110 tokens
    ● TodoWrite
      Successfully updated the todo list. The current list is now:
      1. [in_progress] Check
      2. [pending] Done?
    ● WebSearch gemini cli sessions
      Web search results for "gemini cli sessions":

      A web answer.

      Sources:
      [1] Example (https://example.com/a)

    ▌ gemini 2026-11-15 20:30:42 · gemini-2.5-flash · 1,246 tokens
    ∴ Summing up: All done.
    Größe: 10 µm — all done. 🌍
    [exit 0]
    "#);
}

#[test]
fn show_puts_a_sub_agent_below_its_call() {
    let desk = desk_with(&[("0.61.0", "subagent")]);
    assert_snapshot!(desk.alhena(&["sessions", "show", "latest"]), @r#"
    Ask an agent
    Session   [ID]
    Project   [DESK]/work
    Started   [TIME]
    Updated   [TIME]
    Messages  3
    Models    gemini-2.5-flash
    Tokens    209 (200 in, 0 of them cached; 9 out, 0 thoughts)

    ▌ you 2026-11-15 20:43:36
    Ask an agent

    ▌ gemini 2026-11-15 20:43:37 · gemini-2.5-flash · 108 tokens
    Delegating.
    ● Task Find main

      │ ▌ you 2026-11-15 20:43:37
      │ Find main

      │ ▌ gemini 2026-11-15 20:43:37 · gemini-2.5-flash · 113 tokens
      │ ∴ Sub: Thinking in the sub-agent.
      │ ● Read main.py
      │   def main():
      │       pass

      │ ▌ gemini 2026-11-15 20:43:37 · gemini-2.5-flash · 105 tokens
      │ ● complete_task
      │   failed
      │   params/result must be object

      │ ▌ gemini 2026-11-15 20:43:38 · gemini-2.5-flash · 104 tokens
      │ The agent found it.

      │ ▌ you 2026-11-15 20:43:38
      │ You have stopped calling tools without finishing. You have one final chance to complete the task with a short grace period. You MUST call `complete_task` immediately with your best answer and explain that your investigation was interrupted. Do not call any other tools.

      │ ▌ gemini 2026-11-15 20:43:38 · gemini-2.5-flash · 101 tokens
      │ done.
      Subagent 'generalist' finished.
      Termination Reason: ERROR_NO_COMPLETE_TASK_CALL
      Result:
      Agent stopped calling tools but did not call 'complete_task'.

    ▌ gemini 2026-11-15 20:43:38 · gemini-2.5-flash · 101 tokens
    done.
    [exit 0]
    "#);
}

#[test]
fn what_the_cli_dropped_is_told_and_can_be_seen() {
    let desk = desk_with(&[("0.61.0", "cancelled")]);
    assert_snapshot!(desk.alhena(&["sessions", "show"]), @r#"
    Wait a while
    Session   [ID]
    Project   [DESK]/work
    Started   [TIME]
    Updated   [TIME]
    Messages  0
    Models    gemini-2.5-flash
    Tokens    107 (100 in, 0 of them cached; 7 out, 0 thoughts)
    ---- stderr ----
    Gemini CLI has lost 2 messages of this session that are still in its file. --dropped shows them; `alhena sessions repair` gives them back to Gemini CLI.
    [exit 0]
    "#);
    assert_snapshot!(desk.alhena(&["sessions", "show", "--dropped"]), @r#"
    Wait a while
    Session   [ID]
    Project   [DESK]/work
    Started   [TIME]
    Updated   [TIME]
    Messages  2
    Models    gemini-2.5-flash
    Tokens    107 (100 in, 0 of them cached; 7 out, 0 thoughts)

    ▌ you 2026-11-15 20:29:22
    Wait a while

    ▌ gemini 2026-11-15 20:29:24 · gemini-2.5-flash · 107 tokens
    Waiting.
    ● Bash echo started; touch go; sleep 40
      cancelled
      Command was cancelled by user before it could complete. Below is the output before it was cancelled:
      started
    [exit 0]
    "#);
}

#[test]
fn show_as_messages_events_text_and_markdown() {
    let desk = desk_with(&[("0.61.0", "plain")]);
    let messages = desk.alhena(&["sessions", "show", "--as", "messages"]).json();
    let roles: Vec<&Value> = messages.as_array().unwrap().iter().map(|message| &message["role"]).collect();
    assert_eq!(roles, [&json!("user"), &json!("assistant"), &json!("user"), &json!("assistant")]);
    let blocks = messages[1]["content"].as_array().unwrap();
    assert_eq!(blocks.last().unwrap()["name"], json!("Read"));
    assert_eq!(messages[2]["content"][0]["type"], json!("tool_result"));
    let all = desk.alhena(&["sessions", "show", "--as", "messages", "--everything"]).json();
    assert_eq!(all.as_array().map(Vec::len), Some(5));
    let kinds: Vec<Value> = desk
        .alhena(&["sessions", "show", "--as", "events"])
        .json_lines()
        .into_iter()
        .map(|event| event["type"].clone())
        .collect();
    assert_eq!(kinds, ["prompt", "tool_call", "tool_result", "usage", "text", "usage"].map(Value::from));
    assert_snapshot!(desk.alhena(&["sessions", "show", "--as", "text"]), @r#"
    > What is in main.py?

    It defines main().

    [exit 0]
    "#);
    let markdown = desk.alhena(&["sessions", "show", "--as", "markdown"]).stdout;
    assert!(markdown.starts_with("# What is in main.py?\n\n- Session: 3e9f236b"), "{markdown}");
}

#[test]
fn a_session_file_anywhere_can_be_shown() {
    let desk = Desk::new();
    let from = recorded("0.38.2", "plain/session-2026-11-15T20-35-75e77303.json");
    desk.write("s.json", fs::read(from).unwrap());
    let shown = desk.alhena(&["sessions", "show", "s.json"]).to_string();
    assert!(shown.starts_with("What is in main.py?\nSession   [ID]\nStarted   [TIME]\n"), "{shown}");
    assert!(shown.ends_with("104 tokens\nIt defines main().\n[exit 0]"), "{shown}");
}

#[test]
fn search_finds_words_phrases_and_expressions_with_what_stands_around_them() {
    let desk = desk_with(&[("0.61.0", "tools"), ("0.61.0", "stub"), ("0.38.2", "plain")]);
    let seen = |args: &[&str]| ageless(&desk.alhena(args).to_string());
    assert_snapshot!(seen(&["sessions", "search", "main.py"]), @r#"
    75e77303 What is in main.py? work · [AGE] · 2 messages
    call main.py
    prompt What is in main.py?

    bb938a8d Show me main.py, then improve the notes work · [AGE] · 3 messages
    thought I should look at main.py first.
    result Directory listing for /home/dev/work: [DIR] out main.py (61 bytes) notes.txt (17 bytes)
    prompt Show me main.py, then improve the notes
    [exit 0]
    "#);
    assert_snapshot!(seen(&["sessions", "search", "improve", "the notes"]), @r#"
    bb938a8d Show me main.py, then improve the notes work · [AGE] · 2 messages
    prompt Show me main.py, then improve the notes
    thought And the notes.
    [exit 0]
    "#);
    assert_snapshot!(seen(&["sessions", "search", "notes the"]), @r#"
    ---- stderr ----
    Nothing found.
    [exit 1]
    "#);
    assert_snapshot!(seen(&["sessions", "search", "--regex", r"def \w+\("]), @r#"
    bb938a8d Show me main.py, then improve the notes work · [AGE] · 2 messages
    result import sys def main(): print("hello", sys.argv) main()
    result …ain" in the workspace directory: --- File: main.py L1- import sys L2- L3: def main(): L4- print("hello", sys.argv) L5- L6- main() L7- ---

    75e77303 What is in main.py? work · [AGE] · 1 message
    result def main(): pass
    [exit 0]
    "#);
    let found = desk.alhena(&["sessions", "search", "second", "--json"]).json();
    let hits = found["hits"].as_array().or(found.as_array()).unwrap();
    assert_eq!(hits.len(), 1, "{found}");
    assert!(found.to_string().contains("cccccccc-2222-4333-8444-555555555555"), "{found}");
}

#[test]
fn usage_adds_up_by_day_model_and_project() {
    let desk = desk_with(&[("0.61.0", "tools"), ("0.61.0", "subagent"), ("0.30.1", "tools")]);
    assert_snapshot!(desk.alhena(&["sessions", "usage"]), @r#"
    2026-11-15      4.0k      3.8k in      2.0k cached       132 out       134 thoughts      <$0.01  ██████████████████████████████
    total           4.0k      3.8k in      2.0k cached       132 out       134 thoughts      <$0.01
    [exit 0]
    "#);
    assert_snapshot!(desk.alhena(&["sessions", "usage", "--by", "model"]), @r#"
    gemini-2.5-flash      4.0k      3.8k in      2.0k cached       132 out       134 thoughts      <$0.01  ██████████████████████████████
    total                 4.0k      3.8k in      2.0k cached       132 out       134 thoughts      <$0.01
    [exit 0]
    "#);
    let by_project = desk.alhena(&["sessions", "usage", "--by", "project", "--json"]).json();
    assert!(by_project.to_string().contains(desk.work().to_str().unwrap()), "{by_project}");
    let prices = desk.write("prices.json", r#"{"date": "2026-01-01", "currency": "EUR", "per_tokens": 1000, "models": {"other": {"input": 1, "cached": 1, "output": 1}}}"#);
    assert_snapshot!(desk.alhena(&["sessions", "usage", "--prices", prices.to_str().unwrap()]), @r#"
    2026-11-15      4.0k      3.8k in      2.0k cached       132 out       134 thoughts           ?  ██████████████████████████████
    total           4.0k      3.8k in      2.0k cached       132 out       134 thoughts           ?  
    Without the cost of gemini-2.5-flash: the prices of 2026-01-01 do not name them.
    [exit 0]
    "#);
    desk.transcript("\n$ sessions usage --since 2026-11-16\nNothing was spent.\n[exit 0]");
}

#[test]
fn a_renamed_session_is_shown_by_its_id_and_a_linked_directory_lists_nothing_twice() {
    let desk = desk_with(&[("0.61.0", "plain")]);
    let chats = chats(&desk);
    let name = "session-2026-11-15T20-29-3e9f236b.jsonl";
    fs::rename(chats.join(name), chats.join("session-2026-11-15T20-29-myown.jsonl")).unwrap();
    std::os::unix::fs::symlink(&chats, chats.join("linked")).unwrap();
    let listed = desk.alhena(&["sessions", "list", "--json"]).json();
    assert_eq!(listed.as_array().map(Vec::len), Some(1), "{listed:#}");
    assert!(listed[0]["id"].as_str().unwrap().starts_with("3e9f236b"), "{listed:#}");
    let shown = desk.alhena(&["sessions", "show", "3e9f236b", "--as", "text"]);
    assert!(shown.stdout.contains("It defines main()."), "{shown}");
}

#[test]
fn events_have_what_was_said_before_the_tool_that_followed() {
    let desk = desk_with(&[("0.61.0", "tools")]);
    let events = desk.alhena(&["sessions", "show", "--as", "events"]).json_lines();
    let kinds: Vec<&Value> = events.iter().take(5).map(|event| &event["type"]).collect();
    assert_eq!(kinds, ["prompt", "thinking", "text", "tool_call", "tool_result"]);
}

#[test]
fn of_sessions_that_fit_equally_well_the_newest_is_found_first() {
    let desk = desk_with(&[]);
    let chats = chats(&desk);
    for (id, day) in [("aaaaaaaa-1", "03"), ("bbbbbbbb-1", "09"), ("cccccccc-1", "05")] {
        let time = format!("2026-11-{day}T10:00:00.000Z");
        let header = json!({"sessionId": id, "projectHash": "h", "startTime": time, "lastUpdated": time});
        let prompt = json!({"id": "u", "type": "user", "content": [{"text": "find the needle"}]});
        let name = format!("session-2026-11-{day}T10-00-{}.jsonl", id.get(..8).unwrap());
        fs::write(chats.join(name), format!("{header}\n{prompt}\n")).unwrap();
    }
    for _indexed in 0..2 {
        let found = desk.alhena(&["sessions", "search", "needle", "-n", "1", "--json"]).stdout;
        assert!(found.contains("bbbbbbbb-1") && !found.contains("aaaaaaaa-1"), "{found}");
    }
}
