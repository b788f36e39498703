//! Workers and a submitter at real NATS servers, each in a home of its own, and nobody left when it is over.
#![allow(dead_code)]

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use alhena_testbed::nats::{NatsServer, urls};
use alhena_testbed::processes::{self, kill_tree};
use alhena_testbed::{Deadline, Watchdog, processes_with_env};
use serde_json::Value;

/// The program; a soak that takes long can have another than the one that is being built meanwhile.
fn alhena() -> PathBuf {
    std::env::var_os("ALHENA_SOAK_BINARY").map_or_else(|| env!("CARGO_BIN_EXE_alhena").into(), PathBuf::from)
}

pub const LONG: Duration = Duration::from_secs(120);

/// Says what it was asked. `slow` takes a second, `held` ends when it is [let go](Fleet::let_go), `hang` does not end, `fail` fails,
/// `costs` used a model with a price, and `where` says where it is, `key` with what key, and `told` what it was instructed.
const STAND_IN: &str = r#"#!/bin/sh
prompt=; next=
for word in "$@"; do
    if [ -n "$next" ]; then prompt=$word; next=; continue; fi
    case "$word" in
        --version) echo 0.61.0; exit 0 ;;
        --prompt=*) prompt=${word#--prompt=} ;;
        -p|--prompt) next=1 ;;
    esac
done
[ -n "$prompt" ] || prompt=$(cat)
printf '%s\n' '{"type":"init","timestamp":"2026-11-15T17:49:10.686Z","session_id":"11111111-1111-4111-8111-111111111111","model":"m"}'
case "$prompt" in
    *slow*) sleep 1 ;;
    *held*) while [ ! -e "${0%/*}/go" ]; do sleep 0.05; done ;;
    *hang*) sleep 600 ;;
    *write*) cat given.txt > made.txt; mkdir -p out; echo built > out/built.txt; printf '\377' > out/bytes; echo out > .gitignore ;;
    *where*) prompt="$prompt $PWD" ;;
    *key*) prompt="$prompt $GEMINI_API_KEY" ;;
    *told*) prompt="$prompt $(cat "$GEMINI_SYSTEM_MD")" ;;
esac
status='"status":"success"'; models=
case "$prompt" in *costs*) models='"gemini-2.5-flash":{"total_tokens":10,"input_tokens":5,"output_tokens":5,"cached":0,"input":5}' ;; esac
case "$prompt" in *limited*)
    # The first one is told to wait.
    if mkdir "${0%/*}/limited" 2> /dev/null; then
        status='"status":"error","error":{"type":"unknown","message":"RetryableQuotaError: busy. Please retry in 20s."}'
        code=1
    fi ;;
esac
case "$prompt" in *fail*) status='"status":"error","error":{"type":"unknown","message":"no"}' ;; esac
printf '{"type":"message","timestamp":"2026-11-15T17:49:10.686Z","role":"assistant","content":"heard %s","delta":true}\n' "$prompt"
printf '{"type":"result","timestamp":"2026-11-15T17:49:10.686Z",%s,"stats":{"total_tokens":10,"input_tokens":5,"output_tokens":5,"cached":0,"input":5,"duration_ms":1,"tool_calls":0,"models":{%s}}}\n' "$status" "$models"
exit ${code:-0}
"#;

/// A place for all of them.
pub struct Fleet {
    root: tempfile::TempDir,
    pub servers: Vec<NatsServer>,
    /// For all who are started here, so that they are found again.
    mark: String,
    env: Vec<(String, String)>,
    /// What the workers run.
    pub gemini: PathBuf,
    _watchdog: Watchdog,
}

impl Fleet {
    /// At these servers, with a stand-in for the CLI.
    pub fn new(name: &str, servers: Vec<NatsServer>) -> Self {
        Self::for_long(name, servers, Duration::from_secs(300))
    }

    pub fn for_long(name: &str, servers: Vec<NatsServer>, limit: Duration) -> Self {
        let root = tempfile::Builder::new().prefix("alhena-fleet-").tempdir().unwrap();
        let mark = root.path().file_name().unwrap().to_str().unwrap().to_owned();
        for dir in ["here", "root/app", "bin", "tmp"] {
            fs::create_dir_all(root.path().join(dir)).unwrap();
        }
        let gemini = root.path().join("bin/gemini");
        fs::write(&gemini, STAND_IN).unwrap();
        fs::set_permissions(&gemini, fs::Permissions::from_mode(0o755)).unwrap();
        Self { root, servers, mark, env: Vec::new(), gemini, _watchdog: Watchdog::new(name, limit) }
    }

    /// With this environment for all.
    pub fn env(mut self, more: impl IntoIterator<Item = (String, String)>) -> Self {
        self.env.extend(more);
        self
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.root.path().canonicalize().unwrap().join(name)
    }

    /// Writes a file where the submitter is.
    pub fn write(&self, name: &str, text: &str) {
        let path = self.path("here").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Lets those end that were asked with `held`, and those that will be.
    pub fn let_go(&self) {
        fs::write(self.path("bin/go"), "").unwrap();
    }

    /// Holds those that begin from now on.
    pub fn hold(&self) {
        fs::remove_file(self.path("bin/go")).unwrap();
    }

    pub fn urls(&self) -> String {
        urls(&self.servers)
    }

    /// Puts messages under subjects of the first server, as any program can. Comes back when it has them.
    pub fn put_by_hand(&self, messages: &[(String, String)]) {
        let mut plain = TcpStream::connect(self.servers[0].host()).unwrap();
        plain.set_read_timeout(Some(LONG)).unwrap();
        let mut said = "CONNECT {\"verbose\": false}\r\n".to_owned();
        for (subject, message) in messages {
            said.push_str(&format!("PUB {subject} {}\r\n{message}\r\n", message.len()));
        }
        said.push_str("PING\r\n");
        plain.write_all(said.as_bytes()).unwrap();
        assert!(BufReader::new(plain).lines().map(Result::unwrap).any(|line| line == "PONG"));
    }

    fn command(&self, whose: &str, args: &[&str]) -> Command {
        let home = self.path(whose);
        fs::create_dir_all(&home).unwrap();
        let mut command = Command::new(alhena());
        command.args(args).env_clear().current_dir(self.path("here"));
        command.env("HOME", &home).env("ALHENA_HOME", home.join("alhena"));
        command.env("PATH", std::env::var_os("PATH").unwrap()).env("TMPDIR", self.path("tmp"));
        command.env("LANG", "C.UTF-8").env("FLEET", &self.mark);
        // Everybody has another one.
        command.env("GEMINI_API_KEY", format!("of-{whose}"));
        command.envs(self.env.iter().cloned()).envs(alhena_testbed::profile_variable());
        command
    }

    /// A command of the submitter, or of anybody else, that does not wait.
    pub fn start(&self, args: &[&str]) -> Started {
        Started::new(self.command("home", args), self.path("tmp"))
    }

    /// The same to its end.
    pub fn run(&self, args: &[&str]) -> Ended {
        self.start(args).finish(LONG)
    }

    /// `alhena batch` for `jobs.jsonl`, on cold stand-ins.
    pub fn submit(&self, more: &[&str]) -> Started {
        let urls = self.urls();
        let mut args = vec!["batch", "jobs.jsonl", "--into", "results.jsonl", "--nats", &urls];
        if self.servers.len() > 1 {
            args.extend(["--nats-replicas", "3"]);
        }
        args.extend(more);
        self.start(&args)
    }

    /// A worker of this name, with a home of that name.
    pub fn worker(&self, name: &str, more: &[&str]) -> Started {
        let (urls, gemini) = (self.urls(), self.gemini.display().to_string());
        let root = self.path("root").display().to_string();
        let mut args = vec!["worker", "--nats", &urls, "--name", name, "--gemini", &gemini, "--root", &root];
        args.push("--json");
        if !more.contains(&"--transport") {
            args.extend(["--transport", "cold"]);
        }
        args.extend(more);
        Started::new(self.command(&format!("home-{name}"), &args), self.path("tmp"))
    }

    /// The results by their ids; each has to be there once.
    pub fn results(&self) -> BTreeMap<String, Value> {
        results(&fs::read_to_string(self.path("here/results.jsonl")).unwrap())
    }

    pub fn count_results(&self) -> usize {
        let text = fs::read_to_string(self.path("here/results.jsonl")).unwrap_or_default();
        text.lines().count()
    }

    /// Every job has its own result, and nothing else has one.
    pub fn each_heard_its_own(&self, count: usize, seed: u64) {
        let all = self.results();
        assert_eq!(all.len(), count, "seed {seed}");
        for job in 0..count {
            let result = &all[&format!("j{job}")];
            assert_eq!(text(result), format!("heard marker-{job}-end"), "seed {seed}: {result}");
        }
    }

    /// Nothing that was started here lives on.
    pub fn nothing_is_left(&self) {
        let mark = format!("FLEET={}", self.mark);
        let left = || processes_with_env(&mark);
        let gone = Deadline::after(Duration::from_secs(30)).wait_until(|| left().is_empty());
        let lines: Vec<String> = left().iter().map(|pid| processes::command_line(*pid)).collect();
        assert!(gone, "{lines:#?}");
        let folders = self.path("home-w1/alhena/cache/workers");
        let kept: Vec<_> = fs::read_dir(folders).into_iter().flatten().flatten().collect();
        assert!(kept.len() <= 1, "{kept:?}");
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        for pid in processes_with_env(&format!("FLEET={}", self.mark)) {
            kill_tree(pid);
        }
    }
}

pub fn results(text: &str) -> BTreeMap<String, Value> {
    let mut all = BTreeMap::new();
    for line in text.lines() {
        let result: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        let id = result["id"].as_str().unwrap().to_owned();
        assert!(all.insert(id.clone(), result).is_none(), "{id} is there twice");
    }
    all
}

/// The text that the agent of a result said.
pub fn text(result: &Value) -> &str {
    result["outcome"]["text"].as_str().unwrap_or_default()
}

/// A command that is under way, with its output in files.
pub struct Started {
    pub child: Child,
    out: PathBuf,
    err: PathBuf,
}

#[derive(Debug)]
pub struct Ended {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
}

impl Ended {
    pub fn code(&self) -> Option<i32> {
        self.status.code()
    }
}

impl Started {
    fn new(mut command: Command, tmp: PathBuf) -> Self {
        let file = |end: &str| {
            let (_, path) = tempfile::Builder::new().suffix(end).tempfile_in(&tmp).unwrap().keep().unwrap();
            path
        };
        let (out, err) = (file(".out"), file(".err"));
        command.stdin(Stdio::null()).stdout(File::create(&out).unwrap()).stderr(File::create(&err).unwrap());
        Self { child: command.spawn().unwrap(), out, err }
    }

    pub fn stdout(&self) -> String {
        read(&self.out)
    }

    pub fn stderr(&self) -> String {
        read(&self.err)
    }

    /// Waits until stdout has this in it.
    pub fn says(&mut self, words: &str) {
        let said = Deadline::after(LONG).wait_until(|| {
            self.stdout().contains(words)
                || self.stderr().contains(words)
                || self.child.try_wait().unwrap().is_some()
        });
        let (out, err) = (self.stdout(), self.stderr());
        assert!(said && (out.contains(words) || err.contains(words)), "{words}: {out}{err}");
    }

    pub fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args([name, &pid]).status().unwrap().success());
    }

    /// SIGKILL, and nothing else: what it leaves has to end by itself.
    pub fn kill(&mut self) {
        let _gone = self.child.kill();
        let _gone = self.child.wait();
    }

    pub fn has_ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().unwrap()
    }

    pub fn finish(mut self, limit: Duration) -> Ended {
        let mut ended = None;
        let in_time = Deadline::after(limit).wait_until(|| {
            ended = self.child.try_wait().unwrap();
            ended.is_some()
        });
        let (stdout, stderr) = (self.stdout(), self.stderr());
        if !in_time {
            kill_tree(self.child.id());
            panic!("it took longer than {limit:?}: {stdout}{stderr}");
        }
        Ended { status: ended.unwrap(), stdout, stderr }
    }

    /// Ends a worker as a person would.
    pub fn leave(self) -> Ended {
        self.signal("-TERM");
        self.finish(LONG)
    }
}

fn read(path: &Path) -> String {
    String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned()
}

/// Chance that repeats (SplitMix64).
pub struct Dice(pub u64);

impl Dice {
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % limit.max(1)
    }
}

/// What was done to a fleet.
#[derive(Debug, Default)]
pub struct Harm {
    pub workers: u32,
    pub submitters: u32,
    pub servers: u32,
}

/// Runs `jobs.jsonl` to its end while everybody is killed at random moments, until most of it is done.
pub fn through_chaos(fleet: &mut Fleet, seed: u64, jobs: usize, limit: Duration, flags: &Flags<'_>) -> Harm {
    let (mut dice, mut harm) = (Dice(seed), Harm::default());
    let start_worker = |fleet: &Fleet, number: usize| fleet.worker(&format!("w{number}"), flags.worker);
    let mut submitter = fleet.submit(flags.submit);
    let mut workers: Vec<Started> = (1..=flags.workers).map(|number| start_worker(fleet, number)).collect();
    let mut down: Option<(usize, std::time::Instant)> = None;
    let deadline = Deadline::after(limit);
    loop {
        std::thread::sleep(Duration::from_millis(flags.pause + dice.below(flags.pause)));
        if let Some(status) = submitter.has_ended() {
            // A cluster without a leader takes nobody in: once more, as its user would.
            if status.code() == Some(2) {
                submitter = fleet.submit(flags.submit);
                continue;
            }
            assert!(status.success(), "seed {seed}: {}{}", submitter.stdout(), submitter.stderr());
            break;
        }
        assert!(
            !deadline.passed(),
            "seed {seed}: {} of {jobs}: {}",
            fleet.count_results(),
            submitter.stderr()
        );
        for (index, worker) in workers.iter_mut().enumerate() {
            if worker.has_ended().is_some() {
                // A cluster without a leader takes nobody in: once more, as a service manager would.
                *worker = start_worker(fleet, index + 1);
            }
        }
        if let Some((index, _)) = down.take_if(|(_, until)| std::time::Instant::now() >= *until) {
            fleet.servers[index].again().unwrap();
        }
        if fleet.count_results() * 10 > jobs * 8 {
            continue;
        }
        match dice.below(10) {
            0..=3 => {
                let index = dice.below(workers.len() as u64) as usize;
                workers[index].kill();
                workers[index] = start_worker(fleet, index + 1);
                harm.workers += 1;
            }
            4..=5 => {
                submitter.kill();
                submitter = fleet.submit(flags.submit);
                harm.submitters += 1;
            }
            6..=7 if down.is_none() && fleet.servers.len() > 1 => {
                let index = dice.below(fleet.servers.len() as u64) as usize;
                fleet.servers[index].kill();
                let pause = Duration::from_millis(1000 + dice.below(3000));
                down = Some((index, std::time::Instant::now() + pause));
                harm.servers += 1;
            }
            _ => {}
        }
    }
    if let Some((index, _)) = down {
        fleet.servers[index].again().unwrap();
    }
    for worker in workers {
        worker.leave();
    }
    harm
}

/// How a fleet is run.
pub struct Flags<'a> {
    pub workers: usize,
    pub worker: &'a [&'a str],
    pub submit: &'a [&'a str],
    /// Between two blows, in milliseconds, and as much again by chance.
    pub pause: u64,
}
