//! `cargo xtask bench queue [JOBS]`: what NATS adds to a job. The same jobs, on a stand-in that does nothing, by a batch on this machine
//! and by one whose jobs a worker does, in turns; with the messages and bytes that the server counted for a job.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use alhena_testbed::nats::NatsServer;

use super::{build, median, number};

const JOBS: usize = 200;
const ROUNDS: usize = 3;
/// How many at once, in both.
const AT_ONCE: &str = "2";
/// What NATS may add to a job, in milliseconds.
const AIM: f64 = 5.0;

const STAND_IN: &str = r#"#!/bin/sh
case "$*" in *--version*) echo 0.61.0; exit 0 ;; esac
echo '{"type":"init","timestamp":"2026-11-15T17:49:10.686Z","session_id":"11111111-1111-4111-8111-111111111111","model":"m"}'
echo '{"type":"message","timestamp":"2026-11-15T17:49:10.686Z","role":"assistant","content":"done","delta":true}'
echo '{"type":"result","timestamp":"2026-11-15T17:49:10.686Z","status":"success","stats":{"total_tokens":1,"input_tokens":1,"output_tokens":0,"cached":0,"input":1,"duration_ms":1,"tool_calls":0,"models":{}}}'
"#;

pub fn run(words: &[&str]) -> Result<(), String> {
    let jobs = number(words, 0, JOBS)?;
    let alhena = build()?;
    let place = tempfile::tempdir().map_err(|error| error.to_string())?;
    let place = place.path();
    prepare(place, jobs).map_err(|error| error.to_string())?;
    let server = NatsServer::monitored().map_err(|error| error.to_string())?;
    let gemini = place.join("gemini").display().to_string();
    let url = server.url();
    let mut worker = Worker(
        command(&alhena, place)
            .args(["worker", "--nats", &url, "--gemini", &gemini, "--jobs", AT_ONCE, "--transport", "cold"])
            .args(["--quiet", "--idle-exit", "10m"])
            .spawn()
            .map_err(|error| error.to_string())?,
    );
    let (mut here, mut there, mut messages, mut bytes) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let into = |kind: &str| format!("{kind}-{round}.jsonl");
        let local = ["--jobs", AT_ONCE, "--transport", "cold", "--set", &format!("gemini={gemini}")];
        here.push(batch(&alhena, place, &into("here"), &local)? * 1e3 / jobs as f64);
        let before = server.traffic().map_err(|error| error.to_string())?;
        there.push(batch(&alhena, place, &into("there"), &["--nats", &url])? * 1e3 / jobs as f64);
        let after = server.traffic().map_err(|error| error.to_string())?;
        let (count, size) = after.since(&before);
        messages.push(count as f64 / jobs as f64);
        bytes.push(size as f64 / jobs as f64);
    }
    worker.end();
    let (here, there) = (median(&here), median(&there));
    println!("{jobs} jobs that do nothing, {AT_ONCE} at once, the median of {ROUNDS}");
    println!("on this machine   {here:8.2} ms a job");
    println!("by a worker       {there:8.2} ms a job");
    println!("NATS adds         {:8.2} ms a job (aim: below {AIM} ms)", there - here);
    println!("the server counted {:.1} messages and {:.0} bytes a job", median(&messages), median(&bytes));
    Ok(())
}

fn prepare(place: &Path, jobs: usize) -> std::io::Result<()> {
    fs::write(place.join("gemini"), STAND_IN)?;
    fs::set_permissions(place.join("gemini"), fs::Permissions::from_mode(0o755))?;
    let lines: String =
        (0..jobs).map(|job| format!("{{\"prompt\": \"job {job}\", \"trust\": true}}\n")).collect();
    fs::write(place.join("jobs.jsonl"), lines)
}

fn command(alhena: &Path, place: &Path) -> Command {
    let mut command = Command::new(alhena);
    command.current_dir(place).env("HOME", place).env("ALHENA_HOME", place.join("alhena"));
    command.env("GEMINI_API_KEY", "none").stdin(Stdio::null()).stdout(Stdio::null());
    command
}

/// How long a batch takes, in seconds.
fn batch(alhena: &Path, place: &Path, into: &str, more: &[&str]) -> Result<f64, String> {
    let begin = Instant::now();
    let mut command = command(alhena, place);
    command.args(["batch", "jobs.jsonl", "--quiet", "--into", into]).args(more);
    match command.status() {
        Ok(status) if status.success() => Ok(begin.elapsed().as_secs_f64()),
        Ok(status) => Err(format!("the batch ended with {status}")),
        Err(error) => Err(error.to_string()),
    }
}

struct Worker(Child);

impl Worker {
    fn end(&mut self) {
        let _gone = self.0.kill();
        let _gone = self.0.wait();
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.end();
    }
}
