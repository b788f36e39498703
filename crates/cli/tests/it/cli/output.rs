//! What every command does with its output: nothing foreign is obeyed by a terminal, and what cannot be written is said.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use alhena_testbed::Deadline;
use alhena_testbed::processes::kill_tree;
use alhena_wire::display::is_unsafe_in_text;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};
use serde_json::{Value, json};

use super::sessions::chats;
use crate::common::{Desk, Started};

const LIMIT: Duration = Duration::from_secs(60);

/// Everything that a terminal obeys, around a word that tells that it was printed: a colour that is not ours, the clipboard,
/// a bell, C1, DEL, a return, a reversal of the text, what the guard's own marks begin with.
const EVIL: &str =
    "\x1b[35mzorg\x1b]52;c;cm0=\x07lub\u{9b}7mwo\u{9d}0;t\u{9c}rd\x7f\r\u{202e}\u{2066}\x08\x10\x1bc";
/// What is left of it to see, whether the sequences are shown or left out.
const WORD: &str = "lub";

/// A desk where everything that others could have written is evil.
fn evil_desk() -> Desk {
    let desk = Desk::new().env("GEMINI_API_KEY", "none").env("TERM", "xterm").env("PAGER", "/bin/cat");
    desk.program(
        "gemini",
        "#!/bin/sh\ncase \"$*\" in *--version*) echo 0.61.0; exit;; esac\n/bin/cat \"$FAKE/stdout\"\n/bin/cat \"$FAKE/stderr\" >&2\nexit 0\n",
    );
    desk.program("tmux", "#!/bin/sh\necho tmux 3.4\n");
    let desk = {
        let fake = desk.work();
        desk.env("FAKE", fake)
    };
    desk.write("stdout", stream());
    desk.write("stderr", format!("{EVIL} on stderr\n").into_bytes());
    desk.write("screen", format!(" > {EVIL}\n\n✦ {EVIL}\n\n  {EVIL}\n").into_bytes());
    desk.write("record.json", message().to_string());
    desk.write("notjson", format!("{EVIL}\n").into_bytes());
    fs::create_dir(evil_dir(&desk)).unwrap();
    let session: Vec<String> = session().iter().map(Value::to_string).collect();
    fs::write(chats(&desk).join("session-2026-11-15T20-30-bb938a8d.jsonl"), session.join("\n") + "\n")
        .unwrap();
    desk
}

fn evil_dir(desk: &Desk) -> PathBuf {
    desk.work().join(EVIL)
}

/// What the CLI writes, with raw bytes among it that are no JSON and no text.
fn stream() -> Vec<u8> {
    let at = "2026-11-15T18:04:56.270Z";
    let lines = [
        json!({"type":"init","timestamp":at,"session_id":format!("id{EVIL}"),"model":EVIL}),
        json!({"type":"message","timestamp":at,"role":"user","content":EVIL}),
        json!({"type":"message","timestamp":at,"role":"assistant","content":format!("{EVIL}\n"),"delta":true}),
        json!({"type":"tool_use","timestamp":at,"tool_name":EVIL,"tool_id":EVIL,"parameters":{"file_path":EVIL,EVIL:EVIL}}),
        json!({"type":"tool_result","timestamp":at,"tool_id":EVIL,"status":"error","output":EVIL,"error":{"type":EVIL,"message":EVIL}}),
        json!({"type":"tool_use","timestamp":at,"tool_name":"run_shell_command","tool_id":"2","parameters":{"command":EVIL}}),
        json!({"type":"tool_result","timestamp":at,"tool_id":"2","status":"success","output":EVIL}),
        json!({"type":EVIL,"timestamp":at,"what":EVIL}),
        json!({"type":"error","timestamp":at,"severity":"warning","message":EVIL}),
        json!({"type":"message","timestamp":at,"role":"assistant","content":EVIL,"delta":true}),
        json!({"type":"result","timestamp":at,"status":"error","error":{"type":EVIL,"message":EVIL},"stats":{"models":{EVIL:{}}}}),
    ];
    let mut bytes = Vec::new();
    for line in lines {
        bytes.extend_from_slice(line.to_string().as_bytes());
        bytes.push(b'\n');
        bytes.extend_from_slice(EVIL.as_bytes());
        bytes.extend_from_slice(b" \x9b31m\xff raw\n");
    }
    bytes
}

fn message() -> Value {
    json!({"id":"2","timestamp":"2026-11-15T20:30:39.744Z","type":"gemini","content":EVIL,
        "thoughts":[{"subject":EVIL,"description":EVIL,"timestamp":"2026-11-15T20:30:39.744Z"}],
        "tokens":{"input":100,"output":7,"cached":0,"thoughts":13,"tool":0,"total":120},"model":EVIL,
        "toolCalls":[{"id":EVIL,"name":EVIL,"args":{"file_path":EVIL,EVIL:EVIL},"status":"success",
            "result":[{"functionResponse":{"id":EVIL,"name":EVIL,"response":{"output":EVIL}}}],
            "resultDisplay":{"fileDiff":format!("--- a\n+++ b\n@@ -1 +1 @@\n-{EVIL}\n+{EVIL}\n"),"fileName":EVIL,"filePath":EVIL}},
            {"id":"c2","name":"run_shell_command","args":{"command":EVIL},"status":"error","resultDisplay":EVIL,
             "result":[{"functionResponse":{"id":"c2","name":"run_shell_command","response":{"error":EVIL}}}]}]})
}

fn session() -> Vec<Value> {
    let mut two = message();
    two["id"] = json!("3");
    vec![
        json!({"sessionId":"bb938a8d-7c37-4e82-aa3c-9843676e8fed","projectHash":EVIL,"startTime":"2026-11-15T20:30:38.449Z",
            "lastUpdated":"2026-11-15T20:30:38.449Z","kind":"main","summary":EVIL}),
        json!({"id":"1","timestamp":"2026-11-15T20:30:38.567Z","type":"user","content":[{"text":EVIL}]}),
        message(),
        json!({"id":EVIL,"timestamp":"2026-11-15T20:30:38.567Z","type":"info","content":EVIL}),
        // The CLI drops everything, so that there is something to repair.
        json!({"$set":{"messages":[]}}),
        json!({"id":"4","timestamp":"2026-11-15T20:30:38.567Z","type":"user","content":[{"text":EVIL}]}),
        two,
    ]
}

/// Whether the evil word has to be seen.
#[derive(Clone, Copy, PartialEq)]
enum Expect {
    Evil,
    /// The command has nothing foreign to show.
    Nothing,
}

/// Every command that prints. The second list is of those that print something on stdout.
fn commands(desk: &Desk) -> Vec<(Vec<String>, Expect)> {
    let dir = evil_dir(desk).to_str().unwrap().to_owned();
    let mut all = Vec::new();
    let mut add = |seen: Expect, words: &[&str]| {
        all.push((words.iter().map(|word| (*word).to_owned()).collect(), seen))
    };
    let views = "pretty text events outcome messages message-lines stream-json json agent-cli-sdk agent-cli-sdk-lines aiwf openase \
                 openase-ticket promptfoo";
    for view in views.split(' ') {
        add(Expect::Evil, &["run", "--trust", "--as", view, EVIL]);
        add(Expect::Evil, &["parse", "stdout", "--stderr", "stderr", "--exit-code", "1", "--as", view]);
    }
    for view in ["pretty", "messages", "agent-cli-sdk", "events", "text", "markdown", "html"] {
        add(Expect::Evil, &["sessions", "show", "--as", view, "--full", "--dropped"]);
    }
    add(Expect::Evil, &["sessions", "show", "--no-pager", "--everything"]);
    for view in ["messages", "agent-cli-sdk", "events", "text"] {
        add(Expect::Evil, &["parse", "--from", "message", "record.json", "--as", view]);
    }
    add(Expect::Evil, &["run", "--trust", "-C", &dir, "--as", "text", "Hi"]);
    add(Expect::Evil, &["gemini", "-p", EVIL]);
    add(Expect::Evil, &["gemini", "-p", EVIL, "-o", "json"]);
    add(Expect::Evil, &["gemini", "-p", EVIL, "-o", "stream-json"]);
    add(Expect::Evil, &["sessions", "list", "--all"]);
    add(Expect::Evil, &["sessions", "list", "--all", "--json"]);
    add(Expect::Evil, &["sessions", "search", WORD]);
    add(Expect::Evil, &["sessions", "search", WORD, "--json"]);
    add(Expect::Evil, &["sessions", "search", "--regex", WORD]);
    add(Expect::Evil, &["sessions", "usage", "--by", "model"]);
    add(Expect::Evil, &["sessions", "usage", "--by", "model", "--json"]);
    add(Expect::Nothing, &["sessions", "repair", "--all"]);
    add(Expect::Nothing, &["sessions", "repair", "--all", "--json"]);
    add(Expect::Evil, &["sessions", "export", "-o", &format!("{dir}/talk.html")]);
    add(Expect::Evil, &["doctor", "-C", &dir]);
    add(Expect::Evil, &["doctor", "-C", &dir, "--json"]);
    add(Expect::Nothing, &["detect"]);
    add(Expect::Nothing, &["detect", "--json"]);
    add(Expect::Nothing, &["capabilities"]);
    add(Expect::Nothing, &["capabilities", "--json"]);
    add(Expect::Nothing, &["host", "list"]);
    add(Expect::Nothing, &["host", "metadata", "aiwf"]);
    add(Expect::Evil, &["terminal", "classify", "screen"]);
    add(Expect::Evil, &["terminal", "classify", "screen", "--last"]);
    add(Expect::Evil, &["terminal", "classify", "screen", "--turns"]);
    add(Expect::Nothing, &["help"]);
    add(Expect::Nothing, &["help", "views"]);
    add(Expect::Nothing, &["run", "--help"]);
    add(Expect::Nothing, &["--version"]);
    add(Expect::Nothing, &["completions", "bash"]);
    add(Expect::Nothing, &["man"]);
    all
}

/// Commands that are refused, and quote what was typed.
fn refusals() -> Vec<Vec<&'static str>> {
    vec![
        vec!["run", "--nosuch", EVIL, EVIL],
        vec![EVIL],
        vec!["help", EVIL],
        vec!["run", "--as", EVIL, "x"],
        vec!["run", "-C", EVIL_MISSING, "x"],
        vec!["run", "--gemini", EVIL_MISSING, "x"],
        vec!["run", "--timeout", EVIL, "x"],
        vec!["run", "--mcp-server", EVIL, "x"],
        vec!["run", "--env", EVIL, "x"],
        vec!["run", "--prompt-file", EVIL_MISSING],
        vec!["parse", EVIL_MISSING],
        vec!["parse", "--from", "session", "notjson"],
        vec!["sessions", "show", EVIL],
        vec!["sessions", "show", EVIL_MISSING],
        vec!["sessions", "search", "--regex", EVIL_REGEX],
        vec!["sessions", "usage", "--prices", EVIL_MISSING],
        vec!["sessions", "export", EVIL],
        vec!["install", EVIL],
        vec!["host", "metadata", EVIL],
        vec!["terminal", "classify", EVIL_MISSING],
        vec!["terminal", "here", "--profile", EVIL_MISSING],
    ]
}

const EVIL_MISSING: &str = "./no\x1b[35mzorg\x1b]52;c;cm0=\x07lub\u{9b}7m\x7f\r\u{202e}/x";
const EVIL_REGEX: &str = "\x1b[35mzorg\x07lub(\u{9b}7m\x7f\r";

/// Runs a command on a terminal, and gives everything that the terminal was sent.
fn on_a_terminal(desk: &Desk, args: &[&str], until: Option<&str>) -> Vec<u8> {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap();
    let terminal = File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
    // Line ends come as they were written.
    let mut mode = tcgetattr(&terminal).unwrap();
    mode.make_raw();
    tcsetattr(&terminal, OptionalActions::Now, &mode).unwrap();
    let mut command = desk.command(args);
    command.stdin(Stdio::null()).stdout(terminal.try_clone().unwrap()).stderr(terminal.try_clone().unwrap());
    let mut child = command.spawn().unwrap();
    drop((command, terminal));
    let (seen, sent) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let (mut master, mut buffer) = (File::from(master), [0; 4096]);
        while let Ok(count @ 1..) = master.read(&mut buffer) {
            let _over = seen.send(buffer[..count].to_vec());
        }
    });
    let deadline = Deadline::after(LIMIT);
    let mut all = Vec::new();
    let ended = deadline.wait_until(|| {
        all.extend(sent.try_iter().flatten());
        let enough = until.is_some_and(|until| String::from_utf8_lossy(&all).contains(until));
        enough || child.try_wait().unwrap().is_some()
    });
    if !ended || until.is_some() {
        kill_tree(child.id());
        let _status = child.wait();
    }
    assert!(ended, "`alhena {args:?}` did not end: {}", String::from_utf8_lossy(&all));
    // The reader ends with the last holder of the terminal.
    all.extend(sent.iter().flatten());
    all
}

/// What is in there that a terminal obeys, beside our own colours.
fn obeyed(sent: &[u8]) -> Vec<String> {
    let mut text = String::from_utf8(sent.to_vec()).unwrap_or_else(|error| panic!("{error}"));
    for own in ["0m", "1m", "2m", "4m", "31m", "32m", "33m", "36m"] {
        text = text.replace(&format!("\x1b[{own}"), "");
    }
    text = text.replace("\r\x1b[K", "");
    text.lines().filter(|line| line.chars().any(is_unsafe_in_text)).map(|line| format!("{line:?}")).collect()
}

#[test]
fn nothing_foreign_is_obeyed_by_a_terminal_in_any_command() {
    let desk = evil_desk();
    let mut wrong = Vec::new();
    for (args, seen) in commands(&desk) {
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let sent = on_a_terminal(&desk, &args, None);
        let text = String::from_utf8_lossy(&sent);
        if seen == Expect::Evil && !text.contains(WORD) {
            wrong.push(format!("{args:?} did not show what it should: {text:?}"));
        }
        wrong.extend(obeyed(&sent).into_iter().map(|line| format!("{args:?}: {line}")));
    }
    for args in refusals() {
        let sent = on_a_terminal(&desk, &args, None);
        let text = String::from_utf8_lossy(&sent);
        if !text.contains("error:") {
            wrong.push(format!("{args:?} was not refused: {text:?}"));
        }
        wrong.extend(obeyed(&sent).into_iter().map(|line| format!("{args:?}: {line}")));
    }
    for args in [
        vec!["sessions", "follow", "--from-start", "--full"],
        vec!["sessions", "follow", "--from-start", "--json"],
    ] {
        let sent = on_a_terminal(&desk, &args, Some(WORD));
        wrong.extend(obeyed(&sent).into_iter().map(|line| format!("{args:?}: {line}")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// JSON with half of an emoji in the place of each evil text, as JavaScript writes it.
fn halved(json: &str) -> String {
    let evil = json!(EVIL).to_string();
    let halved = json.replace(evil.trim_matches('"'), r"lub \ud83d half");
    // A model is never named like that.
    halved.replace(r#""model":"lub \ud83d half""#, r#""model":"lub""#)
}

// Gemini CLI cuts the output of a command inside an emoji and writes half of it (0.61.0).
#[test]
fn half_a_character_breaks_no_command() {
    let desk = evil_desk();
    let stream = String::from_utf8_lossy(&stream()).into_owned();
    let lines = stream.lines().filter(|line| line.starts_with('{')).map(halved);
    // Not an error: a run that failed says less.
    let lines = lines.filter(|line| !line.contains(r#""type":"result""#) && !line.contains("severity"));
    let result = json!({"type": "result", "status": "success", "stats": {}}).to_string();
    let lines: Vec<String> = lines.chain([result]).collect();
    desk.write("stdout", lines.join("\n") + "\n");
    desk.write("stderr", "");
    desk.write("record.json", halved(&message().to_string()));
    let session: Vec<String> = session().iter().map(|record| halved(&record.to_string())).collect();
    desk.write("session.jsonl", session.join("\n") + "\n");
    fs::write(chats(&desk).join("session-2026-11-15T20-30-bb938a8d.jsonl"), session.join("\n") + "\n")
        .unwrap();
    for (args, seen) in commands(&desk) {
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let shows = ["run", "parse", "sessions"].contains(&args[0]) && !args.contains(&"-C");
        if !shows || seen == Expect::Nothing {
            continue;
        }
        let plain = |word| match word {
            EVIL => "Hi",
            "1" => "0",
            word => word,
        };
        let args: Vec<&str> = args.into_iter().map(plain).collect();
        let done = desk.alhena(&args);
        assert_eq!(done.code(), Some(0), "{args:?}: {done}");
        // Only the CLI's own lines are as it wrote them.
        let verbatim = args.contains(&"stream-json");
        assert_eq!(done.stdout.contains(r"\ud83d"), verbatim, "{args:?}: {done}");
    }
    for view in ["messages", "agent-cli-sdk", "events", "text"] {
        let done = desk.alhena(&["parse", "session.jsonl", "--as", view]);
        assert!(done.code() == Some(0) && done.stdout.contains("lub \u{fffd} half"), "{view}: {done}");
    }
}

#[test]
fn json_for_programs_holds_no_control_characters_either() {
    let desk = evil_desk();
    for view in ["events", "outcome", "messages", "json", "aiwf", "openase", "promptfoo", "agent-cli-sdk"] {
        let seen = desk.alhena(&["parse", "stdout", "--as", view]);
        assert_eq!(obeyed(seen.stdout.as_bytes()), Vec::<String>::new(), "{view}");
        assert!(
            seen.stdout.contains("\\u009b") && seen.stdout.contains("\\u007f"),
            "{view}: {}",
            seen.stdout
        );
    }
    // The CLI's own lines and the model's text are what was asked for.
    let seen = desk.alhena(&["parse", "stdout", "--as", "text"]);
    assert!(seen.stdout.contains(EVIL), "{seen}");
}

#[test]
fn every_command_that_cannot_write_its_output_says_so_and_exits_with_1() {
    let desk = evil_desk();
    let mut wrong = Vec::new();
    for (args, _) in commands(&desk) {
        let words: Vec<&str> = args.iter().map(String::as_str).collect();
        let mut command = desk.command(&words);
        command.stdin(Stdio::null()).stdout(File::options().write(true).open("/dev/full").unwrap());
        let stderr = tempfile::NamedTempFile::new_in(desk.root().join("tmp")).unwrap();
        command.stderr(stderr.reopen().unwrap());
        let status = command.status().unwrap();
        let said = fs::read(stderr.path()).unwrap();
        let said = String::from_utf8_lossy(&said);
        let right = "the output could not be written: No space left on device";
        if status.code() != Some(1)
            || !said.contains(right)
            || said.contains("Give a file that Gemini CLI wrote")
        {
            wrong.push(format!("{words:?}: {:?} {:?}: {said}", status.code(), status.signal()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_reader_that_went_away_is_no_failure() {
    let desk = evil_desk();
    for args in [
        &["sessions", "list"][..],
        &["help", "views"],
        &["parse", "stdout", "--exit-code", "0", "--as", "events"],
    ] {
        let mut command = desk.command(args);
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        command.stdin(Stdio::null()).stdout(writer);
        let output = command.output().unwrap();
        assert_eq!(
            (output.status.code(), String::from_utf8_lossy(&output.stderr).as_ref()),
            (Some(0), ""),
            "{args:?}"
        );
    }
}

#[test]
fn an_export_that_finds_no_room_leaves_no_file() {
    let desk = evil_desk();
    let args = ["sessions", "export", "-o", "talk.html"];
    let seen = Started::new(&desk, desk.with_little_room(1, &args), b"").finish(&desk, &args, LIMIT);
    assert_eq!(seen.code(), Some(1), "{seen}");
    assert!(seen.stderr.contains("File too large"), "{seen}");
    let left: Vec<_> = fs::read_dir(desk.work()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(
        !left
            .iter()
            .any(|name| name.to_string_lossy().contains("talk") || name.to_string_lossy().starts_with('.')),
        "{left:?}"
    );
}
