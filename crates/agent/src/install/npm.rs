//! Runs npm in a directory of its own, with its lines as progress and a limit that holds.
//!
//! npm takes its configuration from files and from every `npm_config_...` variable, and a `global` or a `prefix` there
//! would send the package elsewhere. Options on the command line win over both.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use super::{InstallError, PACKAGE, Progress, io_error};
use crate::env::{self, Environment};
use crate::find::{has_ended, kill_group, on_path};

/// How much of npm's output an error carries.
const KEPT_LINES: usize = 60;

/// A longer line of npm's is cut.
const LINE_LIMIT: u64 = 4 << 10;

/// How long the keychain library may take; without it the CLI keeps its sign-ins in a file.
const KEYCHAIN_LIMIT: Duration = Duration::from_secs(60);

/// Installs a version of Gemini CLI into `dir`.
pub(super) fn install(
    env: &Environment,
    dir: &Path,
    version: &str,
    deadline: Instant,
    limit: Duration,
    progress: &mut impl FnMut(Progress),
) -> Result<(), InstallError> {
    // Its own package file keeps npm from taking a directory above for the project.
    std::fs::write(dir.join("package.json"), "{\"private\": true}\n")
        .map_err(io_error("preparing an install"))?;
    let package = format!("{PACKAGE}@{version}");
    let mut npm = Npm { env, dir, start: Instant::now(), progress };
    match npm.run(&["install", "--no-save", "--no-package-lock", "--ignore-scripts", &package], deadline)? {
        Ended::Well => {}
        Ended::Badly { status, output } => return Err(InstallError::Npm { status, output }),
        Ended::TooLate { output } => return Err(InstallError::TooLate { limit, output }),
    }
    let soon = deadline.min(Instant::now() + KEYCHAIN_LIMIT);
    if let Ended::Badly { output, .. } | Ended::TooLate { output } =
        npm.run(&["rebuild", "@github/keytar"], soon)?
    {
        tracing::debug!(output, "Gemini CLI is installed without the keychain library");
    }
    Ok(())
}

/// How npm ended.
enum Ended {
    Well,
    Badly { status: String, output: String },
    TooLate { output: String },
}

struct Npm<'a, P> {
    env: &'a Environment,
    dir: &'a Path,
    start: Instant,
    progress: &'a mut P,
}

impl<P: FnMut(Progress)> Npm<'_, P> {
    fn run(&mut self, arguments: &[&str], deadline: Instant) -> Result<Ended, InstallError> {
        let (output, mut child) = self.spawn(arguments).map_err(io_error("starting npm"))?;
        let mut kept = VecDeque::new();
        let mut take = |line: String, progress: &mut P| {
            if kept.len() == KEPT_LINES {
                kept.pop_front();
            }
            kept.push_back(line.clone());
            progress(Progress::Line(line));
        };
        let mut in_time = true;
        while !has_ended(&mut child) && in_time {
            match output.recv_timeout(Duration::from_millis(100)) {
                Ok(line) => take(line, self.progress),
                Err(RecvTimeoutError::Timeout) => {
                    (self.progress)(Progress::Tick { elapsed: self.start.elapsed() });
                }
                Err(RecvTimeoutError::Disconnected) => std::thread::sleep(Duration::from_millis(10)),
            }
            in_time = Instant::now() < deadline;
        }
        let status = kill_group(&mut child).map_err(io_error("waiting for npm"))?;
        // A grandchild in a session of its own may still hold the output: what is there by now is all that counts.
        while let Ok(line) = output.recv_timeout(Duration::from_millis(200)) {
            take(line, self.progress);
        }
        let output = kept.into_iter().collect::<Vec<_>>().join("\n");
        Ok(match (in_time, status.success()) {
            (false, _) => Ended::TooLate { output },
            (true, true) => Ended::Well,
            (true, false) => Ended::Badly { status: status.to_string(), output },
        })
    }

    fn spawn(&self, arguments: &[&str]) -> std::io::Result<(Receiver<String>, std::process::Child)> {
        let program = on_path(self.env, self.dir, "npm").unwrap_or_else(|| "npm".into());
        let (reader, writer) = std::io::pipe()?;
        let mut command = Command::new(program);
        command.args(arguments);
        command.args([
            "--global=false",
            "--location=project",
            "--workspaces=false",
            "--no-audit",
            "--no-fund",
        ]);
        command.args(["--no-progress", "--no-color", "--no-update-notifier", "--loglevel=http", "--yes"]);
        command.arg("--prefix").arg(self.dir).current_dir(self.dir);
        command.env_clear().envs(self.env.iter()).env(env::NO_COLOR, "1");
        command.stdin(Stdio::null()).stdout(writer.try_clone()?).stderr(writer);
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let child = command.spawn()?;
        let (sender, receiver) = mpsc::channel();
        std::thread::spawn(move || {
            let mut reader = BufReader::new(reader);
            while let Some(line) = next_line(&mut reader) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        Ok((receiver, child))
    }
}

/// The next line, printable and of bounded length; none at the end.
fn next_line(reader: &mut impl BufRead) -> Option<String> {
    let mut line = Vec::new();
    if reader.by_ref().take(LINE_LIMIT).read_until(b'\n', &mut line).ok()? == 0 {
        return None;
    }
    if !line.ends_with(b"\n") {
        let _rest = reader.skip_until(b'\n');
    }
    let text = String::from_utf8_lossy(&line);
    Some(text.trim_end().chars().filter(|character| !character.is_control()).collect())
}
