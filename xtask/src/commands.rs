//! Starting the tools that xtask drives: shown before they start, bounded in time, their output passed on and read.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use alhena_testbed::bounded::{Deadline, kill_group, run_bounded};
use alhena_testbed::cache;

/// Cargo, the same that runs xtask.
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

/// Whether a program can be started with these arguments and exits 0.
pub fn works(command: &mut Command) -> bool {
    run_bounded(command, Duration::from_secs(60)).is_ok_and(|done| done.succeeded())
}

/// The first line that a program prints.
pub fn first_line(program: &str, argument: &str) -> Option<String> {
    let done = run_bounded(Command::new(program).arg(argument), Duration::from_secs(60)).ok()?;
    done.succeeded().then(|| done.stdout_text().lines().next().unwrap_or_default().trim().to_owned())
}

/// Runs a command, passes its output on, gives each line of it to `each`, and says whether it exited 0 in time.
pub fn follow(command: &mut Command, limit: Duration, mut each: impl FnMut(&str)) -> Result<bool, String> {
    let shown = show(command);
    eprintln!("+ {shown}");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let mut child = command.spawn().map_err(|error| format!("{shown}: {error}"))?;
    let (send, lines) = mpsc::channel();
    let readers = [
        child.stdout.take().map(|pipe| pass_on(pipe, std::io::stdout(), send.clone())),
        child.stderr.take().map(|pipe| pass_on(pipe, std::io::stderr(), send)),
    ];
    let deadline = Deadline::after(limit);
    while let Ok(line) = lines.recv_timeout(deadline.remaining()) {
        each(&line);
    }
    let status = wait(&mut child, deadline);
    for reader in readers.into_iter().flatten().filter(|reader| reader.is_finished()) {
        let _ = reader.join();
    }
    match status {
        Some(status) => Ok(status),
        None => {
            eprintln!("xtask: `{shown}` did not end within {limit:?} and was killed");
            Ok(false)
        }
    }
}

/// Whether it exited 0; nothing when it had to be killed.
fn wait(child: &mut Child, deadline: Deadline) -> Option<bool> {
    let mut status = None;
    deadline.wait_until(|| {
        status = child.try_wait().ok().flatten();
        status.is_some()
    });
    if status.is_none() {
        kill_group(child.id());
        let _ = child.wait();
    }
    status.map(|status| status.success())
}

fn pass_on(
    pipe: impl Read + Send + 'static,
    mut to: impl Write + Send + 'static,
    send: mpsc::Sender<String>,
) -> std::thread::JoinHandle<()> {
    std::thread::spawn(move || {
        let mut reader = BufReader::new(pipe);
        let mut line = Vec::new();
        while reader.read_until(b'\n', &mut line).is_ok_and(|count| count > 0) {
            let _ = to.write_all(&line);
            let _ = to.flush();
            let _ = send.send(String::from_utf8_lossy(&line).into_owned());
            line.clear();
        }
    })
}

fn show(command: &Command) -> String {
    let program = command.get_program().to_string_lossy();
    let name = program.rsplit('/').next().unwrap_or_default().to_owned();
    let words =
        std::iter::once(name).chain(command.get_args().map(|word| word.to_string_lossy().into_owned()));
    words.collect::<Vec<_>>().join(" ")
}
