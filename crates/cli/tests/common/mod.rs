//! A desk to type at: a home, a working directory and a PATH of its own, and transcripts of what a person sees.
#![allow(dead_code)]

use std::fmt;
use std::fs::{self, File};
use std::io::{Seek, Write};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use alhena_testbed::Deadline;
use alhena_testbed::processes::kill_tree;

/// The program under test.
pub const ALHENA: &str = env!("CARGO_BIN_EXE_alhena");

/// No command takes longer, except those that run the real CLI.
const LIMIT: Duration = Duration::from_secs(60);

/// A place where nothing of the developer's can be seen or touched.
pub struct Desk {
    root: tempfile::TempDir,
    env: Vec<(String, String)>,
}

impl Desk {
    pub fn new() -> Self {
        let root = tempfile::Builder::new().prefix("alhena-desk-").tempdir().unwrap();
        let desk = Self { root, env: Vec::new() };
        for dir in ["home", "work", "bin", "tmp"] {
            fs::create_dir(desk.root().join(dir)).unwrap();
        }
        desk
    }

    /// With another variable in the environment of every command.
    pub fn env(mut self, name: &str, value: impl AsRef<Path>) -> Self {
        self.env.push((name.to_owned(), value.as_ref().to_str().unwrap().to_owned()));
        self
    }

    pub fn root(&self) -> PathBuf {
        self.root.path().canonicalize().unwrap()
    }

    pub fn home(&self) -> PathBuf {
        self.root().join("home")
    }

    /// The working directory of every command.
    pub fn work(&self) -> PathBuf {
        self.root().join("work")
    }

    /// Writes a file into the working directory.
    pub fn write(&self, name: &str, contents: impl AsRef<[u8]>) -> PathBuf {
        let path = self.work().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, contents).unwrap();
        path
    }

    /// Puts a program on the PATH, which is empty otherwise.
    pub fn program(&self, name: &str, script: &str) -> PathBuf {
        let path = self.root().join("bin").join(name);
        fs::write(&path, script).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    /// Copies stdout and stderr of a recording into the working directory, and gives its exit code back.
    pub fn recording(&self, name: &str) -> String {
        let crates = alhena_testbed::cache::workspace().join("crates");
        let places =
            ["wire", "model"].map(|owner| crates.join(owner).join("tests/data/recordings").join(name));
        let dir = places.iter().find(|place| place.is_dir()).unwrap_or_else(|| panic!("no recording {name}"));
        for file in ["stdout", "stderr"] {
            self.write(file, fs::read(dir.join(file)).unwrap());
        }
        fs::read_to_string(dir.join("exit")).unwrap().split_whitespace().next().unwrap().to_owned()
    }

    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(ALHENA);
        command.args(args).current_dir(self.work()).env_clear();
        command.env("HOME", self.home()).env("ALHENA_HOME", self.home().join("alhena"));
        command.env("PATH", self.root().join("bin")).env("TMPDIR", self.root().join("tmp"));
        command.env("LANG", "C.UTF-8").envs(self.env.iter().cloned());
        command.envs(alhena_testbed::profile_variable());
        command
    }

    /// A command whose files may have so many blocks: that stands for a full disk.
    pub fn with_little_room(&self, blocks: u32, args: &[&str]) -> Command {
        let made = self.command(&[]);
        let mut small = Command::new("/bin/sh");
        small.env_clear().envs(made.get_envs().filter_map(|(name, value)| Some((name, value?))));
        small.current_dir(self.work()).arg("-c");
        small.arg(format!("trap '' XFSZ; ulimit -S -f {blocks}; exec \"$0\" \"$@\"")).arg(ALHENA).args(args);
        small
    }

    /// Types a command, with nothing on stdin.
    pub fn alhena(&self, args: &[&str]) -> Transcript {
        self.alhena_reading(b"", args)
    }

    /// Types the commands of a transcript, each of which has to show what stands below it (or below several that show the same), and
    /// to exit with 2, or with the code that is named there. Words are quoted with apostrophes.
    pub fn transcript(&self, transcript: &str) {
        let indent = transcript.find('$').unwrap() - transcript.find('\n').unwrap() - 1;
        let lines: Vec<&str> =
            transcript.lines().map(|line| line.get(indent..).unwrap_or_default()).collect();
        let expected = lines.join("\n").trim().to_owned();
        let (mut seen, mut last) = (String::new(), String::new());
        for line in expected.lines().filter(|line| line.starts_with("$ ")) {
            let parts = line[2..].split('\'').enumerate();
            let words = parts.flat_map(|(at, part)| match at % 2 {
                0 => part.split_whitespace().collect(),
                _ => vec![part],
            });
            let shown = self.alhena(&words.collect::<Vec<_>>()).to_string();
            let shown = shown.strip_prefix("---- stderr ----\n").unwrap_or(&shown);
            let shown = shown.strip_suffix("[exit 2]").unwrap_or(shown).trim_end();
            seen.truncate(seen.len() - if shown == last { shown.len() + 1 } else { 0 });
            seen.push_str(&format!("{line}\n{shown}\n"));
            last = shown.to_owned();
        }
        assert!(seen.trim_end() == expected, "{seen}");
    }

    /// Types a command with this on stdin.
    pub fn alhena_reading(&self, stdin: &[u8], args: &[&str]) -> Transcript {
        Started::new(self, self.command(args), stdin).finish(self, args, LIMIT)
    }
}

/// A command that is under way. Its output goes to files: nothing that it leaves behind can make a test wait.
pub struct Started {
    pub child: Child,
    stdout: File,
    stderr: File,
}

impl Started {
    pub fn new(desk: &Desk, mut command: Command, stdin: &[u8]) -> Self {
        let temporary = || tempfile::tempfile_in(desk.root().join("tmp")).unwrap();
        let (mut input, stdout, stderr) = (temporary(), temporary(), temporary());
        input.write_all(stdin).unwrap();
        input.rewind().unwrap();
        command
            .stdin(Stdio::from(input))
            .stdout(stdout.try_clone().unwrap())
            .stderr(stderr.try_clone().unwrap());
        Self { child: command.spawn().unwrap(), stdout, stderr }
    }

    /// What it has printed so far.
    pub fn so_far(&mut self) -> String {
        contents(&self.stdout)
    }

    /// What it has said so far, on stderr.
    pub fn said_so_far(&self) -> String {
        contents(&self.stderr)
    }

    pub fn finish(mut self, desk: &Desk, args: &[&str], limit: Duration) -> Transcript {
        let deadline = Deadline::after(limit);
        let mut ended = None;
        if !deadline.wait_until(|| {
            ended = self.child.try_wait().unwrap();
            ended.is_some()
        }) {
            kill_tree(self.child.id());
            panic!("`alhena {}` took longer than {limit:?}: {}", args.join(" "), contents(&self.stderr));
        }
        Transcript {
            status: ended.unwrap(),
            stdout: contents(&self.stdout),
            stderr: contents(&self.stderr),
            root: desk.root(),
        }
    }
}

/// Read without moving in it: the child writes where the file is, which is the same for both.
fn contents(file: &File) -> String {
    let mut bytes = vec![0; file.metadata().unwrap().len() as usize];
    file.read_exact_at(&mut bytes, 0).unwrap();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// What came of a command.
pub struct Transcript {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
    root: PathBuf,
}

impl Transcript {
    pub fn code(&self) -> Option<i32> {
        self.status.code()
    }

    /// The last part of stdout as JSON.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self}"))
    }

    /// Each line of stdout as JSON.
    pub fn json_lines(&self) -> Vec<serde_json::Value> {
        let read = |line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        self.stdout.lines().map(read).collect()
    }

    /// The one list of what differs from run to run.
    fn filtered(&self, text: &str) -> String {
        let root = self.root.to_str().unwrap();
        let text = text.replace(root, "[DESK]").replace(ALHENA, "[ALHENA]");
        masked(
            &masked(&text, "####-##-##T##:##:##.###Z", "[TIME]"),
            "########-####-####-####-############",
            "[ID]",
        )
    }
}

/// Replaces what looks like the pattern, `#` standing for a digit or one of a to f.
fn masked(text: &str, pattern: &str, name: &str) -> String {
    let matches = |candidate: &[u8]| {
        candidate.iter().zip(pattern.as_bytes()).all(|(byte, wanted)| match wanted {
            b'#' => byte.is_ascii_hexdigit(),
            other => byte == other,
        })
    };
    let (mut out, mut rest) = (String::new(), text);
    while let Some(at) = rest.as_bytes().windows(pattern.len()).position(matches) {
        out.push_str(&rest[..at]);
        out.push_str(name);
        rest = &rest[at + pattern.len()..];
    }
    out + rest
}

impl fmt::Display for Transcript {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.filtered(&self.stdout))?;
        if !self.stdout.is_empty() && !self.stdout.ends_with('\n') {
            writeln!(f, "[no line end]")?;
        }
        if !self.stderr.is_empty() {
            write!(f, "---- stderr ----\n{}", self.filtered(&self.stderr))?;
        }
        match self.status.code() {
            Some(code) => write!(f, "[exit {code}]"),
            None => write!(f, "[{}]", self.status),
        }
    }
}
