//! `alhena run --offline` on the real CLI: the first thing a new user types, and what stays when it is stopped.

use std::fs;
use std::time::Duration;

use crate::common::{Desk, Started, Transcript};
use alhena_testbed::processes::signal;
use alhena_testbed::{Deadline, RealCli, Watchdog, processes_with_env};
use rustix::process::Signal;
use serde_json::json;

const LIMIT: Duration = Duration::from_secs(120);
const PROMPT: &str = "Write a haiku about rivers into haiku.txt";
const NOTICE: &str =
    "Offline: the answers come from Alhena's scripted model on this machine, not from Gemini";

/// A desk with Node on its PATH, and the path of a Gemini CLI that is fetched once for all tests.
fn desk() -> (Desk, String) {
    let cli = RealCli::get("0.61.0").unwrap();
    let desk = Desk::new().env("PATH", std::env::var("PATH").unwrap());
    (desk, cli.bin.to_str().unwrap().to_owned())
}

fn run(desk: &Desk, gemini: &str, args: &[&str]) -> Transcript {
    let args = [&["run", "--gemini", gemini], args].concat();
    Started::new(desk, desk.command(&args), b"").finish(desk, &args, LIMIT)
}

/// Everything that was started for this desk and still lives.
fn left_behind(desk: &Desk) -> Vec<u32> {
    processes_with_env(&format!("HOME={}", desk.home().display()))
}

#[test]
fn real_cli_the_tour_writes_the_file_says_that_the_model_is_scripted_and_plays_back_in_every_form() {
    let _watchdog = Watchdog::new("tour", Duration::from_secs(300));
    let (desk, gemini) = desk();
    let seen = run(&desk, &gemini, &["--offline", "--record", "rec", PROMPT]);
    assert_eq!(seen.code(), Some(0), "{seen}");
    assert!(seen.stderr.contains(NOTICE), "{seen}");
    assert!(seen.stdout.contains("haiku.txt"), "{seen}");
    let haiku = fs::read_to_string(desk.work().join("haiku.txt")).unwrap();
    assert_eq!(haiku.trim_end().lines().count(), 3, "{haiku}");
    assert_eq!(left_behind(&desk), [0_u32; 0]);
    // Nothing of the user's was needed or touched.
    assert!(!desk.home().join(".gemini").exists());
    assert_eq!(desk.alhena(&["parse", "rec", "--as", "text"]).stdout, seen.stdout);

    let seen = desk.alhena(&["parse", "rec", "--as", "pretty"]);
    let shown =
        |line: &str| assert!(seen.stdout.lines().any(|shown| shown.starts_with(line)), "{line}\n{seen}");
    for line in ["∴ ", "✓ write haiku.txt", "✓ $ ", "  + haiku.txt", "done ", "  session "] {
        shown(line);
    }
    let summary = seen.stdout.lines().find(|line| line.starts_with("done ")).unwrap();
    assert!(summary.contains(" tokens (") && summary.contains(" tool calls"), "{summary}");
    assert!(seen.stdout.contains(&format!("! {NOTICE}")), "{seen}");
    assert!(!seen.stdout.contains('\u{1b}'), "{seen}");
}

#[test]
fn real_cli_data_views_agree_with_each_other_and_with_the_recording() {
    let _watchdog = Watchdog::new("views", Duration::from_secs(300));
    let (desk, gemini) = desk();
    let live = run(&desk, &gemini, &["--offline", "--as", "events", "--record", "rec", PROMPT]);
    assert_eq!(live.code(), Some(0), "{live}");
    let events = live.json_lines();
    let outcome = events.last().unwrap()["outcome"].clone();
    let kinds: Vec<&str> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    for kind in [
        "started",
        "prompt",
        "thinking",
        "text",
        "tool_call",
        "tool_result",
        "file_change",
        "command",
        "usage",
        "finished",
    ] {
        assert!(kinds.contains(&kind), "{kind} is not in {kinds:?}");
    }
    assert_eq!(outcome["status"], json!("success"));
    assert_eq!(outcome["files"][0]["path"], json!("haiku.txt"));
    assert_eq!([&outcome["files"][0]["claimed"], &outcome["files"][0]["verified"]], [true, true]);
    assert!(outcome["warnings"].as_array().unwrap().contains(&json!(NOTICE)));

    let play = |view: &str| desk.alhena(&["parse", "rec", "--as", view]);
    assert_eq!(play("outcome").json(), outcome);
    assert_eq!(play("outcome").code(), Some(0));
    assert_eq!(play("events").json_lines(), events);
    let text: String = events
        .iter()
        .filter(|event| event["type"] == "text")
        .map(|event| event["delta"].as_str().unwrap())
        .collect();
    assert_eq!(outcome["text"], json!(text));
    let recorded = fs::read_to_string(desk.work().join("rec/stdout")).unwrap();
    assert_eq!(play("stream-json").stdout, recorded);
    let report = play("json").json();
    assert_eq!(
        [&report["session_id"], &report["response"]],
        [&outcome["session_id"], &outcome["final_text"]]
    );
    assert_eq!(report.get("error"), None);
    assert_eq!(play("text").stdout.replace('\n', ""), text.replace('\n', ""));
}

#[test]
fn real_cli_a_live_view_prints_what_playing_back_prints() {
    let _watchdog = Watchdog::new("live", Duration::from_secs(300));
    let (desk, gemini) = desk();
    desk.write(
        "hi.json",
        r#"{"turns": [{"steps": [{"thought": "**Greet**\nShort."}, {"text": "Hello "}, {"text": "you."}]}]}"#,
    );
    let live = run(&desk, &gemini, &["--offline=hi.json", "--as", "json", "--record", "rec", "hi"]);
    assert_eq!(live.code(), Some(0), "{live}");
    assert_eq!(live.stdout, desk.alhena(&["parse", "rec", "--as", "json"]).stdout);
    assert_eq!(desk.alhena(&["parse", "rec", "--as", "text"]).stdout, "Hello you.\n");
}

#[test]
fn real_cli_a_signal_during_the_answer_cancels_the_run_and_leaves_nothing() {
    let _watchdog = Watchdog::new("signals", Duration::from_secs(300));
    let (desk, gemini) = desk();
    desk.write("scenario.json", r#"{"turns": [{"steps": [{"text": "one "}, {"hang": true}]}]}"#);
    let args =
        ["run", "--gemini", &gemini, "--offline=scenario.json", "--as", "events", "--record", "rec", "go"];
    let mut started = Started::new(&desk, desk.command(&args), b"");
    let begun = || started.so_far().contains("\"delta\":\"one \"");
    assert!(Deadline::after(LIMIT).wait_until(begun), "{}", started.so_far());
    signal(started.child.id(), Signal::INT);
    let seen = started.finish(&desk, &args, LIMIT);
    assert_eq!(seen.code(), Some(130), "{seen}");
    let outcome = seen.json_lines().last().unwrap()["outcome"].clone();
    let told = [&outcome["status"], &outcome["failure"]["kind"]];
    assert_eq!(told, [&json!("cancelled"), &json!("cancelled")]);
    assert_eq!(outcome["text"], json!("one "));
    assert_eq!(left_behind(&desk), [0_u32; 0]);
    let played = desk.alhena(&["parse", "rec"]);
    assert_eq!((played.code(), played.json()), (Some(130), outcome));
}
