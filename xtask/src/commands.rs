//! Starting the tools that xtask drives: shown before they start, bounded in time, their output passed on and read.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use alhena_testbed::processes::kill_tree;
use alhena_testbed::{Deadline, cache, run_bounded};

pub fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(cache::workspace());
    // What `cargo run` set for xtask itself would make cargo believe that other packages changed.
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_")
            || text.starts_with("CARGO_MANIFEST_")
            || text.starts_with("CARGO_BIN_")
        {
            command.env_remove(&name);
        }
    }
    command
}

pub fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| cache::workspace().join("target"), PathBuf::from)
}

/// Whether a program can be started with these arguments and exits 0.
pub fn works(command: &mut Command) -> bool {
    run_bounded(command, Duration::from_secs(60)).is_ok_and(|done| done.succeeded())
}

pub fn first_line(program: &str, argument: &str) -> Option<String> {
    lines(Command::new(program).arg(argument)).first().map(|line| line.trim().to_owned())
}

/// What a program prints; nothing if it cannot be started or fails.
pub fn lines(command: &mut Command) -> Vec<String> {
    match run_bounded(command, Duration::from_secs(60)) {
        Ok(done) if done.succeeded() => done.stdout_text().lines().map(str::to_owned).collect(),
        _ => Vec::new(),
    }
}

/// Runs a command, passes its output on, gives each line of it to `each`, and says whether it exited 0 in time.
///
/// A process that it left behind may hold the output open: once the command itself has ended, a second of silence is
/// the end.
pub fn follow(command: &mut Command, limit: Duration, mut each: impl FnMut(&str)) -> Result<bool, String> {
    let shown = show(command);
    eprintln!("+ {shown}");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| format!("{shown}: {error}"))?;
    let (send, lines) = mpsc::channel();
    if let (Some(stdout), Some(stderr)) = (child.stdout.take(), child.stderr.take()) {
        pass_on(stdout, std::io::stdout(), send.clone());
        pass_on(stderr, std::io::stderr(), send);
    }
    let deadline = Deadline::after(limit);
    let mut status = None;
    while !deadline.passed() {
        match lines.recv_timeout(Duration::from_secs(1).min(deadline.remaining())) {
            Ok(line) => each(&line),
            Err(_) if status.is_some() => break,
            Err(RecvTimeoutError::Timeout) => status = child.try_wait().map_err(|error| error.to_string())?,
            Err(RecvTimeoutError::Disconnected) => {
                deadline.wait_until(|| {
                    status = child.try_wait().ok().flatten();
                    status.is_some()
                });
                break;
            }
        }
    }
    if let Some(status) = status {
        return Ok(status.success());
    }
    kill_tree(child.id());
    let _ = child.wait();
    eprintln!("xtask: `{shown}` did not end within {limit:?} and was killed");
    Ok(false)
}

fn pass_on(
    pipe: impl Read + Send + 'static,
    mut to: impl Write + Send + 'static,
    send: mpsc::Sender<String>,
) {
    std::thread::spawn(move || {
        let mut reader = BufReader::new(pipe);
        let mut line = Vec::new();
        while reader.read_until(b'\n', &mut line).is_ok_and(|count| count > 0) {
            let _ = to.write_all(&line);
            let _ = to.flush();
            let _ = send.send(String::from_utf8_lossy(&line).into_owned());
            line.clear();
        }
    });
}

pub fn show(command: &Command) -> String {
    let program = command.get_program().to_string_lossy();
    let name = program.rsplit('/').next().unwrap_or_default().to_owned();
    let words =
        std::iter::once(name).chain(command.get_args().map(|word| word.to_string_lossy().into_owned()));
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::time::Duration;

    use super::follow;

    fn shell(script: &str, limit: Duration) -> (bool, Vec<String>) {
        let mut lines = Vec::new();
        let well = follow(Command::new("sh").args(["-c", script]), limit, |line| lines.push(line.to_owned()));
        (well.unwrap(), lines)
    }

    #[test]
    fn lines_of_both_outputs_and_the_exit_code_are_seen() {
        let (well, mut lines) = shell("echo out; echo err >&2; printf end; exit 3", Duration::from_secs(60));
        lines.sort();
        assert_eq!((well, lines), (false, vec!["end".to_owned(), "err\n".to_owned(), "out\n".to_owned()]));
        assert!(shell("true", Duration::from_secs(60)).0);
    }

    #[test]
    fn a_process_that_holds_the_output_open_is_not_waited_for() {
        let (well, lines) = shell("sleep 30 & echo $!", Duration::from_secs(25));
        assert!(well);
        let sleeper = lines.first().and_then(|line| line.trim().parse().ok()).unwrap();
        alhena_testbed::processes::kill_tree(sleeper);
    }

    #[test]
    fn a_command_that_does_not_end_is_killed() {
        assert!(!shell("while :; do echo again; sleep 0.1; done", Duration::from_secs(1)).0);
    }
}
