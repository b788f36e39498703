//! `alhena run --record`: what is kept, what never is, and what is there when it ends early.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use alhena_testbed::Deadline;
use serde_json::{Value, json};

use crate::common::{Desk, Started};

const LIMIT: Duration = Duration::from_secs(60);
const END_OF_STREAM: &str =
    r#"{"type":"result","timestamp":"2026-11-15T18:04:57.000Z","status":"success","stats":{}}"#;

/// A desk whose `gemini` prints these lines, and these on stderr, and then does that.
fn desk_that_prints(lines: &[Value], stderr: &str, then: &str) -> Desk {
    let desk = Desk::new().env("GEMINI_API_KEY", "none");
    let fake = desk.work();
    let desk = desk.env("FAKE", fake);
    desk.program(
        "gemini",
        &format!(
            "#!/bin/sh\ncase \"$*\" in *--version*) echo 0.61.0; exit;; esac\n/bin/cat \"$FAKE/in\"\n/bin/cat \"$FAKE/err\" >&2\n{then}\n"
        ),
    );
    let at = "2026-11-15T18:04:56.270Z";
    let mut text =
        json!({"type":"init","timestamp":at,"session_id":"11111111-2222-4333-8444-555555555555","model":"m"})
            .to_string();
    for line in lines {
        text.push('\n');
        text.push_str(&line.to_string());
    }
    desk.write("in", text + "\n");
    desk.write("err", stderr);
    desk
}

fn said(text: &str) -> Value {
    json!({"type":"message","timestamp":"2026-11-15T18:04:56.341Z","role":"assistant","content":text,"delta":true})
}

/// Every file below a directory.
fn files(dir: &Path) -> Vec<std::path::PathBuf> {
    let mut all = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(files(&path));
        } else {
            all.push(path);
        }
    }
    all
}

// Each secret is given in another way, and the CLI prints it in every form.
#[test]
fn no_secret_is_in_any_file_of_a_recording_and_nobody_else_can_read_it() {
    let secrets = [
        ("awkward", "line one \"quoted\" \\ back\nline two of it/with slash"),
        ("short", "tig3r"),
        ("in a url", "p@ss/word!x"),
        ("from .env", "dotenv-0123456789-secret"),
        ("by --env", "given-0123456789-value"),
        ("header", "bearer-0123456789-token"),
        ("in settings", "settings-0123456789-key"),
    ];
    let mut lines = Vec::new();
    for (_, secret) in secrets {
        let once = serde_json::to_string(secret).unwrap();
        lines.push(said(&format!("plain {secret} json {once} twice {} ", json!(once))));
        let percent: String = secret.bytes().map(|byte| format!("%{byte:02X}")).collect();
        lines.push(said(&format!("url {percent} ")));
        lines.push(json!({"type":"tool_use","timestamp":"2026-11-15T18:04:56.457Z","tool_name":"run_shell_command","tool_id":"1",
            "parameters":{"command":secret}}));
        lines.push(json!({"type":"tool_result","timestamp":"2026-11-15T18:04:56.566Z","tool_id":"1","status":"success","output":secret}));
    }
    lines.push(said("cut dotenv-0123456789-se... [truncated]"));
    lines.push(serde_json::from_str(END_OF_STREAM).unwrap());
    let stderr: String = secrets.iter().map(|(_, secret)| format!("stderr {secret}\n")).collect();
    let desk = desk_that_prints(&lines, &stderr, "exit 0")
        .env("AWKWARD_KEY", secrets[0].1)
        .env("SHORT_PASSWORD", secrets[1].1)
        .env("DATABASE_URL", "postgres://app:p%40ss%2Fword!x@db/x");
    desk.write(".env", format!("export OTHER_TOKEN='{}'\n", secrets[3].1));
    fs::create_dir_all(desk.home().join(".gemini")).unwrap();
    fs::write(desk.home().join(".gemini/settings.json"), json!({"x": {"apiKey": secrets[6].1}}).to_string())
        .unwrap();
    let server = json!({"s": {"url": "http://127.0.0.1:9/", "headers": {"Authorization": format!("Bearer {}", secrets[5].1)}}});
    desk.write("server.json", server.to_string());
    let given = format!("SOME_SECRET={}", secrets[4].1);
    let prompt = format!("Say {} and {}", secrets[0].1, secrets[4].1);
    let args = ["run", "--trust", "--record", "rec", "--as", "outcome", "--env", &given];
    let seen = desk.alhena(&[&args[..], &["--mcp-server", "server.json", &prompt]].concat());
    assert_eq!(seen.code(), Some(0), "{seen}");
    let rec = desk.work().join("rec");
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&rec), 0o700);
    let all = files(&rec);
    let names: Vec<&str> = all.iter().map(|path| path.file_name().unwrap().to_str().unwrap()).collect();
    for name in ["recording.json", "stdout", "stderr", "inputs.jsonl", "outcome.json"] {
        assert!(names.contains(&name), "{names:?}");
    }
    for path in all {
        assert_eq!(mode(&path), 0o600, "{}", path.display());
        let text = fs::read_to_string(&path).unwrap();
        let plain = "quoted|line two|tig3r|p@ss|p%40ss|dotenv-0|given-0|bearer-0|settings-0";
        for sign in plain.split('|').chain(["%6C%69%6E%65", "%74%69%67", "%64%6F%74"]) {
            assert!(!text.contains(sign), "{sign} is in {}: {text}", path.display());
        }
    }
    let recorded = fs::read_to_string(rec.join("stderr")).unwrap();
    assert_eq!(recorded.matches("stderr [").count(), secrets.len(), "{recorded}");
    let recorded = fs::read_to_string(rec.join("stdout")).unwrap();
    for name in
        "AWKWARD_KEY SHORT_PASSWORD DATABASE_URL OTHER_TOKEN SOME_SECRET Authorization apiKey".split(' ')
    {
        assert!(recorded.contains(&format!("[{name}]")), "{name}: {recorded}");
    }
    // What is left is still a recording.
    let played = desk.alhena(&["parse", "rec", "--as", "outcome"]);
    assert_eq!(played.code(), Some(0), "{played}");
    assert_eq!(played.json()["malformed"]["lines"], json!(0));
}

#[test]
fn a_recording_is_there_when_alhena_is_killed_and_says_that_it_ends_early() {
    let desk = desk_that_prints(&[said("so far ")], "on stderr\n", "exec /bin/sleep 600");
    let args = ["run", "--trust", "--record", "rec", "--as", "events", "hello"];
    let mut started = Started::new(&desk, desk.command(&args), b"");
    let recorded = |name: &str| fs::read_to_string(desk.work().join("rec").join(name)).unwrap_or_default();
    let there = || recorded("stdout").contains("so far") && recorded("stderr").contains("on stderr");
    let seen = Deadline::after(LIMIT).wait_until(there);
    assert!(seen, "{} {}", recorded("stdout"), started.so_far());
    rustix::process::kill_process(
        rustix::process::Pid::from_child(&started.child),
        rustix::process::Signal::KILL,
    )
    .unwrap();
    let _killed = started.finish(&desk, &args, LIMIT);

    let early = "The recording ends early: Alhena was killed, or could not write on, before the run was over";
    let played = desk.alhena(&["parse", "rec", "--as", "outcome"]);
    let outcome = played.json();
    assert_eq!((outcome["text"].clone(), outcome["warnings"].clone()), (json!("so far "), json!([early])));
    assert_ne!((outcome["status"].clone(), played.code()), (json!("success"), Some(0)));
    assert_eq!(played.stderr, format!("rec: {early}\n"));
    assert_eq!(desk.alhena(&["parse", "rec", "--as", "text"]).stdout, "so far \n");
    // A line that was being written is no damage.
    let inputs = recorded("inputs.jsonl");
    fs::write(desk.work().join("rec/inputs.jsonl"), inputs + "[1,{\"ti").unwrap();
    assert_eq!(desk.alhena(&["parse", "rec", "--as", "outcome"]).json(), outcome);
}

#[test]
fn a_recording_that_finds_no_room_is_a_warning_and_the_run_stands() {
    let text = "word ".repeat(4000);
    let desk = desk_that_prints(&[said(&text), serde_json::from_str(END_OF_STREAM).unwrap()], "", "exit 0");
    for view in ["outcome", "text"] {
        // Pipes and the CLI's own output are not limited.
        let dir = format!("rec-{view}");
        desk.program(
            "gemini",
            "#!/bin/sh\ncase \"$*\" in *--version*) echo 0.61.0; exit;; esac\nulimit -S -f unlimited\n/bin/cat \"$FAKE/in\"\n",
        );
        let args = ["run", "--trust", "--record", &dir, "--as", view, "hello"];
        let seen = desk.with_little_room(16, &args).stdin(Stdio::null()).output().unwrap();
        let [stdout, stderr] = [seen.stdout, seen.stderr].map(|said| String::from_utf8(said).unwrap());
        assert_eq!(seen.status.code(), Some(0), "{stderr}");
        let said = match view {
            "outcome" => serde_json::from_str::<Value>(&stdout).unwrap()["warnings"].to_string(),
            _ => stderr,
        };
        assert!(
            said.contains("The recording in ") && said.contains("is not whole: File too large"),
            "{said}"
        );
        let played = desk.alhena(&["parse", &dir, "--as", "outcome"]);
        assert!(played.stderr.contains("The recording ends early"), "{played}");
    }
}
