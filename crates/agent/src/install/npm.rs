//! Runs npm in a directory of its own, with its lines as progress and a limit that holds.
//!
//! npm takes its configuration from files and from every `npm_config_...` variable, and a `global` or a `prefix` there
//! would send the package elsewhere. Options on the command line win over both.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use alhena_wire::display::is_unsafe;

use super::{InstallError, PACKAGE, Progress, io_error};
use crate::env::{self, Environment};
use crate::programs::on_path;
use crate::supervise::errand::{Errand, ErrandFiles};
use crate::supervise::protocol::Gentle;

/// How much of npm's output an error carries.
const KEPT_LINES: usize = 60;

/// A longer line of npm's is cut.
const LINE_LIMIT: u64 = 4 << 10;

/// How long the keychain library may take; without it the CLI keeps its sign-ins in a file.
const KEYCHAIN_LIMIT: Duration = Duration::from_secs(60);

/// How npm ended.
enum NpmEnd {
    Well,
    Badly { status: String, output: String },
    TooLate { output: String },
}

/// npm, in a directory of its own.
pub(super) struct Npm<'a, P> {
    pub env: &'a Environment,
    /// Where the package goes.
    pub dir: &'a Path,
    pub start: Instant,
    pub limit: Duration,
    /// Held until nothing of npm is left.
    pub lock: &'a File,
    pub stop_when: Option<fn() -> bool>,
    pub progress: &'a mut P,
}

impl<P: FnMut(Progress)> Npm<'_, P> {
    /// Installs a version of Gemini CLI.
    pub(super) fn install(&mut self, version: &str) -> Result<(), InstallError> {
        // Its own package file keeps npm from taking a directory above for the project.
        std::fs::write(self.dir.join("package.json"), "{\"private\": true}\n")
            .map_err(io_error("preparing an install"))?;
        let (deadline, limit) = (self.start + self.limit, self.limit);
        let package = format!("{PACKAGE}@{version}");
        let install = ["install", "--no-save", "--no-package-lock", "--ignore-scripts", &package];
        match self.run(&install, deadline)? {
            NpmEnd::Well => {}
            NpmEnd::Badly { status, output } => return Err(InstallError::Npm { status, output }),
            NpmEnd::TooLate { output } => return Err(InstallError::TooLate { limit, output }),
        }
        let soon = deadline.min(Instant::now() + KEYCHAIN_LIMIT);
        if let NpmEnd::Badly { output, .. } | NpmEnd::TooLate { output } =
            self.run(&["rebuild", "@github/keytar"], soon)?
        {
            tracing::debug!(output, "Gemini CLI is installed without the keychain library");
        }
        std::fs::remove_file(self.log()).map_err(io_error("tidying up an install"))
    }

    fn log(&self) -> PathBuf {
        self.dir.join("npm.log")
    }

    fn run(&mut self, arguments: &[&str], deadline: Instant) -> Result<NpmEnd, InstallError> {
        let log = self.log();
        let mut errand = self.start(arguments, &log).map_err(io_error("starting npm"))?;
        let mut reader = BufReader::new(File::open(&log).map_err(io_error("reading npm"))?);
        let mut kept = VecDeque::new();
        let mut status = None;
        let mut in_time = true;
        while status.is_none() && in_time {
            if self.stop_when.is_some_and(|stop| stop()) {
                errand.stop(Gentle::No);
                return Err(InstallError::Stopped);
            }
            status = errand.wait(Duration::from_millis(100)).map_err(io_error("starting npm"))?;
            let before = kept.len();
            while let Some(line) = next_line(&mut reader) {
                if kept.len() == KEPT_LINES {
                    kept.pop_front();
                }
                kept.push_back(line.clone());
                (self.progress)(Progress::Line(line));
            }
            if kept.len() == before {
                (self.progress)(Progress::Tick { elapsed: self.start.elapsed() });
            }
            in_time = Instant::now() < deadline;
        }
        let output = kept.into_iter().collect::<Vec<_>>().join("\n");
        Ok(match status {
            None => {
                errand.stop(Gentle::No);
                NpmEnd::TooLate { output }
            }
            Some(status) if status.success() => NpmEnd::Well,
            Some(status) => NpmEnd::Badly { status: status.to_string(), output },
        })
    }

    fn start(&self, arguments: &[&str], log: &Path) -> std::io::Result<Errand> {
        let program = on_path(self.env, "npm").ok_or(std::io::ErrorKind::NotFound)?;
        // What the next one says is read from its beginning.
        File::create(log)?;
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
        let place = ErrandFiles {
            stdout: log,
            stderr: log,
            stdin: None,
            remove_when_abandoned: self.dir,
            lock: Some(self.lock),
        };
        Errand::start(&command, &place)
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
    Some(text.trim_end().chars().filter(|character| !is_unsafe(*character)).collect())
}
