//! Screens of the real CLI, recorded in tmux against a scripted API while it was known what was going on.
//!
//! `index.json` names for each capture the release, the width, the title of the pane at that moment, and what must be
//! read from it. Some captures have a coloured twin (`capture-pane -e`).

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use alhena_terminal::screen::Capture;
use serde_json::{Value, json};

fn data(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/screens").join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn index() -> Vec<Value> {
    serde_json::from_str(&data("index.json")).unwrap()
}

fn text<'v>(entry: &'v Value, key: &str) -> &'v str {
    entry[key].as_str().unwrap()
}

/// The capture as a program that knows its terminal would read it. Only the layout for screen readers needs the width.
fn capture<'a>(entry: &'a Value, screen: &'a str) -> Capture<'a> {
    let capture = Capture::new(screen).title(text(entry, "title"));
    match entry["layout"].as_str() {
        Some("screen_reader") => capture.columns(entry["columns"].as_u64().unwrap() as u16),
        _ => capture,
    }
}

/// What is read from a capture: the JSON, and whether the message is known to be incomplete.
fn read(entry: &Value, screen: &str) -> (Value, bool) {
    let reading = capture(entry, screen).read();
    (serde_json::to_value(&reading).unwrap(), reading.truncated)
}

/// Compares with what must be read; says what is wrong.
fn compare(entry: &Value, name: &str, screen: &str) -> Option<String> {
    let expected = (entry["reading"].clone(), entry["truncated"] == true);
    let found = read(entry, screen);
    (found != expected).then(|| format!("{name}\n  want {expected:?}\n  read {found:?}"))
}

fn report(problems: Vec<String>) {
    assert!(problems.is_empty(), "{} of them\n{}", problems.len(), problems.join("\n"));
}

#[test]
fn every_recorded_screen_tells_what_was_going_on() {
    let problem = |entry: &Value| compare(entry, text(entry, "file"), &data(text(entry, "file")));
    report(index().iter().filter_map(problem).collect());
}

// D-17
#[test]
fn colours_change_nothing() {
    let coloured: Vec<Value> = index().into_iter().filter(|entry| entry["coloured"].is_string()).collect();
    assert!(coloured.len() >= 10);
    let problem = |entry: &Value| compare(entry, text(entry, "coloured"), &data(text(entry, "coloured")));
    report(coloured.iter().filter_map(problem).collect());
}

/// The title is the earlier sign, but hardly any recorded moment needs it. `needs_title` marks those that do.
#[test]
fn the_screen_alone_gives_the_same_status() {
    let problem = |entry: &Value| {
        let screen = data(text(entry, "file"));
        let with = capture(entry, &screen).status();
        let without = Capture::new(&screen).status();
        let needed = entry["needs_title"] == true;
        (needed == (with == without))
            .then(|| format!("{}: {with:?} with its title, {without:?} without", text(entry, "file")))
    };
    report(index().iter().filter_map(problem).collect());
}

#[test]
fn what_was_on_the_screen_before_the_cli_does_not_matter() {
    let problem = |entry: &Value| {
        let screen = data(text(entry, "file"));
        let from_the_start = screen.contains("Tips for getting started:");
        let screen = format!("user@host:~$ ls\na.txt  b.txt\nuser@host:~$ gemini\n{screen}");
        compare(entry, text(entry, "file"), &screen).filter(|_| from_the_start)
    };
    report(index().iter().filter_map(problem).collect());
}

#[test]
fn every_status_every_kind_of_dialog_and_every_release_was_recorded() {
    let index = index();
    let seen = |value: fn(&Value) -> &Value| -> BTreeSet<&str> {
        index.iter().filter_map(|entry| value(entry).as_str()).collect()
    };
    let statuses = seen(|entry| &entry["reading"]["status"]);
    let all = ["completed", "error", "exited", "idle", "processing", "starting", "unknown", "waiting"];
    assert_eq!(statuses, BTreeSet::from(all));
    let kinds = seen(|entry| &entry["reading"]["waiting_for"]["for"]);
    let all = ["authentication", "loop", "other", "question", "quota", "tool_approval", "trust"];
    assert_eq!(kinds, BTreeSet::from(all));
    assert_eq!(
        seen(|entry| &entry["version"]),
        BTreeSet::from(["0.24.0", "0.30.1", "0.36.0", "0.45.2", "0.61.0"])
    );
    let columns: BTreeSet<u64> = index.iter().filter_map(|entry| entry["columns"].as_u64()).collect();
    assert_eq!(columns, BTreeSet::from([60, 80, 100, 150, 250]));
}

#[test]
fn tools_stand_apart_from_the_answer() {
    let tools = |file: &str| -> Value {
        let screen = data(file);
        serde_json::to_value(&Capture::new(&screen).turns().last().unwrap().tools).unwrap()
    };
    let tool = |name: &str, status: &str, description: &str, output: &str| json!({"name": name, "status": status, "description": description, "output": output});
    let command = "echo working; sleep 3; rm -f zzz; echo finished";
    assert_eq!(
        tools("v61_08_shell_done.txt"),
        json!([tool("Shell", "succeeded", command, "working\nfinished")])
    );
    assert_eq!(
        tools("v61_10_refused.txt"),
        json!([tool(
            "Edit",
            "cancelled",
            "a.txt → Rejected (+1, -1)",
            "1   alpha\n2 - beta\n2 + BETA\n3   gamma"
        )])
    );
    assert_eq!(
        tools("v36_10_refused.txt"),
        json!([tool("Edit", "cancelled", "a.txt: beta => BETA", "1   alpha\n2 - beta\n2 + BETA\n3   gamma")])
    );
    assert_eq!(
        tools("v61_three_tools.txt"),
        json!([
            tool("ReadFile", "succeeded", "a.txt", ""),
            tool("ReadFolder", "succeeded", ". → Found 1 item(s).", ""),
        ])
    );
}

#[test]
fn a_prompt_tells_its_approval_mode_and_a_dialog_does_not() {
    use alhena_agent::Approval;
    let problem = |entry: &Value| {
        let (name, screen) = (text(entry, "file"), data(text(entry, "file")));
        let has_row = |begins: &str| screen.lines().any(|line| line.to_lowercase().starts_with(begins));
        let free = ["idle", "completed", "error"].contains(&entry["reading"]["status"].as_str().unwrap());
        let expected = match name {
            _ if entry["reading"]["status"] == "exited" => None,
            // The row is that of the shell mode, or of a message.
            _ if ["shell_mode", "user_shell", "v30_ctrl_d_once"].iter().any(|one| name.contains(one)) => None,
            _ if has_row(" yolo ctrl+y") => Some(Approval::Yolo),
            _ if has_row(" plan shift+tab") => Some(Approval::Plan),
            _ if free && capture(entry, &screen).draft().is_some() => Some(Approval::Default),
            _ if entry["reading"]["status"] == "waiting" => None,
            _ => return None,
        };
        let found = capture(entry, &screen).approval();
        (found != expected).then(|| format!("{name}: want {expected:?}, read {found:?}"))
    };
    report(index().iter().filter_map(problem).collect());
    let idle = data("v61_01_idle.txt");
    let with = |row: &str| idle.replace("Shift+Tab to accept edits", row);
    for (row, mode) in [
        ("Shift+Tab to accept edits", Some(Approval::Default)),
        ("Alt+M to accept edits", Some(Approval::Default)),
        ("auto-accept edits Shift+Tab to plan", Some(Approval::AutoEdit)),
        ("auto-accept edits Shift+Tab to manual   raw markdown mode", Some(Approval::AutoEdit)),
        ("plan Shift+Tab to manual", Some(Approval::Plan)),
        ("YOLO Ctrl+Y", Some(Approval::Yolo)),
        ("● auto edit", Some(Approval::AutoEdit)),
        ("● YOLO", Some(Approval::Yolo)),
        ("planets", None),
        ("", None),
    ] {
        assert_eq!(Capture::new(&with(row)).approval(), mode, "{row}");
    }
    let sign = idle.replace(" >   Type your message", " *   Type your message");
    assert_eq!(Capture::new(&sign).approval(), Some(Approval::Yolo));
    // What a model says above the prompt makes no mode lower.
    let said =
        with("auto-accept edits Shift+Tab to plan").replace("? for shortcuts", "Shift+Tab to accept edits");
    assert_eq!(Capture::new(&said).approval(), Some(Approval::AutoEdit));
}
