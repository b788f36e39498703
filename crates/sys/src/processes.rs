//! Processes: which there are, who descends from whom, and what each was started with.
//!
//! Descent finds what cleared its environment or moved to another session; the environment finds what escaped when there was
//! no subreaper. Both come from `/proc`; other systems have neither, and say so.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Command, ExitStatus};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

/// A signal to a process.
pub use rustix::process::Signal;
use rustix::process::{
    Pid, Resource, Rlimit, WaitOptions, WaitStatus, getrlimit, kill_process, kill_process_group, setrlimit,
    test_kill_process_group, wait, waitpid,
};
use serde::{Deserialize, Serialize};

/// Whether this system can name the processes of a run.
pub const COMPLETE: bool = cfg!(target_os = "linux");

/// A process that cannot be mistaken for a later one of the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// When it started, in the kernel's own count.
    pub started: u64,
}

impl Process {
    /// The process of this number, if there is one.
    #[must_use]
    pub fn of(pid: u32) -> Option<Self> {
        Some(Self { pid, started: start_time(pid)? })
    }

    /// This process.
    #[must_use]
    pub fn own() -> Option<Self> {
        Self::of(std::process::id())
    }

    /// Whether it still runs.
    #[must_use]
    pub fn alive(self) -> bool {
        start_time(self.pid) == Some(self.started)
    }

    /// Sends it a signal, unless it has ended.
    pub fn signal(self, with: Signal) {
        if self.alive() {
            signal(self.pid, with);
        }
    }
}

/// None when it has ended.
#[cfg(target_os = "linux")]
fn start_time(pid: u32) -> Option<u64> {
    stat(pid).filter(|stat| !stat.dead).map(|stat| stat.started)
}

/// Elsewhere only that it exists is known.
#[cfg(not(target_os = "linux"))]
fn start_time(pid: u32) -> Option<u64> {
    let pid = Pid::from_raw(i32::try_from(pid).ok()?)?;
    rustix::process::test_kill_process(pid).is_ok().then_some(0)
}

/// What the kernel says of a process.
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    parent: u32,
    /// It has ended, and nobody has collected it yet.
    dead: bool,
    started: u64,
}

fn stat(pid: u32) -> Option<Stat> {
    parse_stat(&fs::read(format!("/proc/{pid}/stat")).ok()?)
}

fn parse_stat(line: &[u8]) -> Option<Stat> {
    // The name stands in parentheses and may hold any byte, a parenthesis too.
    let after = line.iter().rposition(|byte| *byte == b')')?;
    let rest = String::from_utf8_lossy(line.get(after + 1..)?).into_owned();
    let mut fields = rest.split_ascii_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    // The 22nd field of all; the parent is the fourth.
    let started = fields.nth(17)?.parse().ok()?;
    Some(Stat { parent, dead: matches!(state, "Z" | "X" | "x"), started })
}

/// The numbers of all processes.
#[must_use]
pub fn all() -> Vec<u32> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect()
}

/// Whether the process exists and is not one that only waits to be collected.
#[must_use]
pub fn alive(pid: u32) -> bool {
    start_time(pid).is_some()
}

/// The parent of a process.
#[must_use]
pub fn parent(pid: u32) -> Option<u32> {
    stat(pid).map(|stat| stat.parent)
}

/// Returns the parent of this process.
#[must_use]
pub fn own_parent() -> Option<u32> {
    rustix::process::getppid().map(number)
}

/// Returns the directory that a process works in; none where that may not be read.
#[must_use]
pub fn working_directory(pid: u32) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{pid}/cwd")).ok()
}

/// Tries out whether processes and their environments can be read.
pub fn can_be_read() -> io::Result<()> {
    fs::read("/proc/self/stat").and_then(|_| fs::read("/proc/self/environ")).map(drop)
}

/// The process that this one is a copy of and not a program of its own: a shell for its subshell. None where it is no
/// copy, or that cannot be seen.
#[must_use]
pub fn copied_from(pid: u32) -> Option<u32> {
    // Where a program's stack and arguments begin is random for each start, and the same in a copy.
    let (own, above) = start_addresses(pid).zip(parent(pid))?;
    (above > 1 && start_addresses(above).as_ref() == Some(&own)).then_some(above)
}

/// The pipe that a process writes its output to, by the system's name for it; none where that is something else.
#[must_use]
pub fn output_pipe(pid: u32) -> Option<String> {
    let output = fs::read_link(format!("/proc/{pid}/fd/1")).ok()?.into_os_string().into_string().ok()?;
    output.starts_with("pipe:").then_some(output)
}

/// What the kernel tells of a process behind its name.
fn stat_fields(pid: u32) -> Option<Vec<String>> {
    let line = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let after = line.iter().rposition(|byte| *byte == b')')?;
    let rest = String::from_utf8_lossy(line.get(after + 1..)?).into_owned();
    Some(rest.split_ascii_whitespace().map(str::to_owned).collect())
}

/// Where the stack and the arguments of a process began; none where the kernel does not tell.
fn start_addresses(pid: u32) -> Option<[String; 2]> {
    let fields = stat_fields(pid)?;
    // The 28th and the 48th field of all; the first of these is the third.
    let found = [25, 45].map(|index| fields.get(index).cloned().unwrap_or_default());
    found.iter().all(|address| !matches!(address.as_str(), "" | "0")).then_some(found)
}

/// All living processes below `root`, without it.
#[must_use]
pub fn descendants(root: u32) -> Vec<u32> {
    descendants_without(root, &HashSet::new())
}

/// The same without these and what is below them.
#[must_use]
pub fn descendants_without(root: u32, spared: &HashSet<u32>) -> Vec<u32> {
    let mut children: HashMap<u32, Vec<(u32, bool)>> = HashMap::new();
    for (pid, stat) in all().into_iter().filter_map(|pid| Some((pid, stat(pid)?))) {
        children.entry(stat.parent).or_default().push((pid, stat.dead));
    }
    let (mut found, mut seen, mut next) = (Vec::new(), HashSet::new(), vec![root]);
    while let Some(parent) = next.pop() {
        for (pid, dead) in children.get(&parent).into_iter().flatten() {
            if !spared.contains(pid) && seen.insert(*pid) {
                next.push(*pid);
                if !dead {
                    found.push(*pid);
                }
            }
        }
    }
    found
}

/// A handle that is readable when a process has ended. Old kernels and some containers have no such thing.
pub fn end_of(pid: u32) -> io::Result<OwnedFd> {
    let pid = of_number(pid).ok_or(io::ErrorKind::NotFound)?;
    Ok(rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty())?)
}

/// What a process was started with; none when that may not be read.
#[must_use]
pub fn environment(pid: u32) -> Option<Vec<(OsString, OsString)>> {
    Some(parse_environment(&raw_environment(pid).ok()?))
}

/// How long a process may take to become the program that it is started for.
const BECOMING: Duration = Duration::from_secs(1);

/// A process that becomes another program has no environment for a moment: that is not to say that it has none.
fn raw_environment(pid: u32) -> io::Result<Vec<u8>> {
    let begin = Instant::now();
    loop {
        let bytes = fs::read(format!("/proc/{pid}/environ"))?;
        if !bytes.is_empty() || begin.elapsed() > BECOMING {
            return Ok(bytes);
        }
        if !is_becoming(pid) {
            // It may have become it since.
            return fs::read(format!("/proc/{pid}/environ"));
        }
        std::thread::sleep(Duration::from_micros(200));
    }
}

/// Whether it has memory, but not yet a place for its environment, where the kernel tells.
fn is_becoming(pid: u32) -> bool {
    static TELLS: LazyLock<bool> =
        LazyLock::new(|| has_place(std::process::id()).is_some_and(|(_, place)| place));
    *TELLS && has_place(pid) == Some((true, false))
}

/// Whether a process has memory, and a place for its environment.
fn has_place(pid: u32) -> Option<(bool, bool)> {
    let fields = stat_fields(pid)?;
    // The 23rd and the 51st field of all; the first of these is the third.
    let is_set = |index: usize| fields.get(index).is_some_and(|field| field != "0");
    Some((is_set(20), is_set(48)))
}

fn parse_environment(bytes: &[u8]) -> Vec<(OsString, OsString)> {
    let variables = bytes.split(|byte| *byte == 0).filter_map(|variable| {
        let at = variable.iter().position(|byte| *byte == b'=').filter(|at| *at > 0)?;
        let (name, value) = variable.split_at_checked(at)?;
        Some((os_string(name), os_string(value.get(1..)?)))
    });
    variables.collect()
}

fn os_string(bytes: &[u8]) -> OsString {
    std::os::unix::ffi::OsStringExt::from_vec(bytes.to_vec())
}

/// All living processes that were started with this variable, by its value. The caller is left out.
#[must_use]
pub fn by_variable(name: &str) -> HashMap<OsString, Vec<u32>> {
    let this = std::process::id();
    let mut found: HashMap<OsString, Vec<u32>> = HashMap::new();
    for pid in all().into_iter().filter(|pid| *pid != this) {
        let variables = environment(pid).unwrap_or_default();
        if let Some((_, value)) = variables.into_iter().find(|(there, _)| there == name)
            && alive(pid)
        {
            found.entry(value).or_default().push(pid);
        }
    }
    found
}

/// All living processes that were started with this value of a variable. The caller is left out.
#[must_use]
pub fn with_variable(name: &str, value: &str) -> Vec<u32> {
    let wanted = format!("{name}={value}");
    let this = std::process::id();
    let has_it = |pid: &u32| {
        let environment = raw_environment(*pid).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|entry| entry == wanted.as_bytes())
    };
    all().into_iter().filter(|pid| *pid != this && has_it(pid) && alive(*pid)).collect()
}

/// What a process calls itself, for people.
#[must_use]
pub fn name(pid: u32) -> String {
    let name = fs::read(format!("/proc/{pid}/comm")).unwrap_or_default();
    let name = String::from_utf8_lossy(&name);
    name.trim_end().chars().filter(|character| !character.is_control()).collect()
}

/// The words of a process's command line, its name first.
#[must_use]
pub fn arguments(pid: u32) -> Vec<Vec<u8>> {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let line = line.strip_suffix(b"\0").unwrap_or(&line);
    line.split(|byte| *byte == 0).map(<[u8]>::to_vec).collect()
}

/// The same in one line, for messages.
#[must_use]
pub fn command_line(pid: u32) -> String {
    let words = arguments(pid);
    let words: Vec<_> = words.iter().map(|word| String::from_utf8_lossy(word)).collect();
    words.join(" ").trim_end().to_owned()
}

/// The program that a process runs, also when its file has been replaced since.
#[must_use]
pub fn executable(pid: u32) -> Option<PathBuf> {
    let path = fs::read_link(format!("/proc/{pid}/exe")).ok()?;
    Some(PathBuf::from(path.to_string_lossy().trim_end_matches(" (deleted)")))
}

/// The most memory that a living process has had, in KiB.
#[must_use]
pub fn peak_memory(pid: u32) -> u64 {
    kilobytes(&format!("/proc/{pid}/status"), "VmHWM:").unwrap_or(0)
}

/// How much memory a process holds now, in bytes; 0 where that cannot be told.
pub fn memory(pid: u32) -> u64 {
    kilobytes(&format!("/proc/{pid}/status"), "VmRSS:").unwrap_or(0) * 1024
}

/// How much memory of the machine is free for somebody new, in bytes; none where that cannot be told.
pub fn free_memory() -> Option<u64> {
    kilobytes("/proc/meminfo", "MemAvailable:")?.checked_mul(1024)
}

/// Returns all memory of the machine in bytes; none where that cannot be told.
#[must_use]
pub fn total_memory() -> Option<u64> {
    kilobytes("/proc/meminfo", "MemTotal:")?.checked_mul(1024)
}

/// What a file of the kernel says after this name.
fn kilobytes(path: &str, name: &str) -> Option<u64> {
    let text = fs::read_to_string(path).ok()?;
    text.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace().next()?.parse().ok()
}

fn of_number(pid: u32) -> Option<Pid> {
    i32::try_from(pid).ok().and_then(Pid::from_raw)
}

fn number(pid: Pid) -> u32 {
    pid.as_raw_nonzero().get().unsigned_abs()
}

/// Sends a signal; a process that is gone does not matter.
pub fn signal(pid: u32, signal: Signal) {
    if let Some(pid) = of_number(pid) {
        let _gone = kill_process(pid, signal);
    }
}

/// Sends a signal to the process group that this process leads, as far as it is there.
pub fn signal_group(leader: u32, signal: Signal) {
    if let Some(leader) = of_number(leader) {
        let _gone = kill_process_group(leader, signal);
    }
}

/// Returns true if a process is left of the group that this process leads, or led.
#[must_use]
pub fn group_is_alive(leader: u32) -> bool {
    of_number(leader).is_some_and(|leader| test_kill_process_group(leader).is_ok())
}

/// Collects a child if it has ended, and returns how. Does not wait.
pub fn collect(child: u32) -> io::Result<Option<ExitStatus>> {
    let child = of_number(child).ok_or(io::ErrorKind::InvalidInput)?;
    Ok(waitpid(Some(child), WaitOptions::NOHANG)?.map(|(_, status)| exit_status(status)))
}

/// Collects any child that has ended, and returns which and how. Does not wait. An error says that there is no child.
pub fn collect_any() -> io::Result<Option<(u32, ExitStatus)>> {
    Ok(wait(WaitOptions::NOHANG)?.map(|(child, status)| (number(child), exit_status(status))))
}

fn exit_status(status: WaitStatus) -> ExitStatus {
    ExitStatus::from_raw(status.as_raw())
}

/// Returns the status of a process that exited with this code.
#[must_use]
pub fn exited_with(code: i32) -> ExitStatus {
    ExitStatus::from_raw(code << 8)
}

/// Returns the status of a process that a signal ended, by the number of the signal.
#[must_use]
pub fn ended_by(signal: i32) -> ExitStatus {
    ExitStatus::from_raw(signal)
}

/// Returns the number of the signal that ended a process, if one did.
#[must_use]
pub fn ending_signal(status: ExitStatus) -> Option<i32> {
    status.signal()
}

/// Lets a program that is to be started lead a process group of its own.
pub fn lead_group(command: &mut Command) -> &mut Command {
    command.process_group(0)
}

/// Gives a program that is to be started another name than that of its file.
pub fn set_name<'a>(command: &'a mut Command, name: &str) -> &'a mut Command {
    command.arg0(name)
}

/// Becomes this program. Returns only if that fails.
pub fn become_program(command: &mut Command) -> io::Error {
    command.exec()
}

/// Takes this process out of the reach of its terminal, and of signals to its group.
pub fn leave_session() {
    let _already_leader = rustix::process::setsid();
}

/// Lets this process have as many open files as the system allows it.
pub fn allow_most_files() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum.or(limit.current);
    let _refused = setrlimit(Resource::Nofile, limit);
}

/// Limits the size of the files that this process writes, or lifts the limit.
pub fn limit_file_size(most: Option<u64>) -> io::Result<()> {
    Ok(setrlimit(Resource::Fsize, Rlimit { current: most, maximum: None })?)
}

/// Sends a signal to each.
pub fn signal_all(pids: &[u32], with: Signal) {
    pids.iter().for_each(|pid| signal(*pid, with));
}

/// Kills a process and all its descendants, whatever their group or session.
pub fn kill_tree(root: u32) {
    // Stopped first, so that it starts no more while we look.
    signal(root, Signal::STOP);
    for _ in 0..20 {
        let found = descendants(root);
        if found.is_empty() {
            break;
        }
        signal_all(&found, Signal::KILL);
    }
    signal(root, Signal::KILL);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn a_child_is_found_by_descent_and_by_what_it_was_started_with() {
        let value = format!("test-{}", std::process::id());
        let mut command = Command::new("sleep");
        let mut child = command.arg("30").env("TEST_OF_SYS", &value).stdout(Stdio::null()).spawn().unwrap();
        let (this, pid) = (std::process::id(), child.id());
        assert!(descendants(this).contains(&pid));
        assert!(!descendants_without(this, &HashSet::from([pid])).contains(&pid));
        assert_eq!(parent(pid), Some(this));
        assert_eq!(with_variable("TEST_OF_SYS", &value), [pid]);
        assert_eq!(with_variable("TEST_OF_SYS", "test-"), Vec::<u32>::new());
        assert_eq!(by_variable("TEST_OF_SYS").get(&OsString::from(&value)), Some(&vec![pid]));
        assert_eq!(name(pid), "sleep");
        assert_eq!(command_line(pid), "sleep 30");
        kill_tree(pid);
        child.wait().unwrap();
        assert!(!alive(pid));
        assert!(with_variable("TEST_OF_SYS", &value).is_empty());
        assert!(!descendants(this).contains(&pid));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_process_has_its_environment_as_soon_as_it_is_started() {
        for round in 0..200 {
            let value = format!("{}-{round}", std::process::id());
            let mut child = Command::new("sleep").arg("30").env("TEST_OF_BECOMING", &value).spawn().unwrap();
            assert_eq!(with_variable("TEST_OF_BECOMING", &value), [child.id()]);
            child.kill().unwrap();
            child.wait().unwrap();
        }
        // One that was emptied stays so.
        let mut child = Command::new("sleep").arg("30").env_clear().spawn().unwrap();
        assert_eq!(environment(child.id()), Some(Vec::new()));
        assert!(!is_becoming(child.id()), "it was waited for");
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn a_subshell_is_a_copy_of_its_shell_and_a_program_of_nobody() {
        let mut command = Command::new("bash");
        command.args(["-c", "exec 3<&0; (echo sub $BASHPID of $$; read line <&3; :); :"]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        let mut out = std::io::BufReader::new(child.stdout.take().unwrap());
        std::io::BufRead::read_line(&mut out, &mut line).unwrap();
        let words: Vec<u32> = line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        let [subshell, shell] = words[..] else { panic!("{line}") };
        assert_ne!(subshell, shell);
        assert_eq!((copied_from(subshell), copied_from(shell)), (Some(shell), None));
        drop(child.stdin.take());
        child.wait().unwrap();
    }

    #[test]
    fn a_process_that_waits_to_be_collected_has_ended() {
        let mut child = Command::new("true").spawn().unwrap();
        let pid = child.id();
        let end = end_of(pid).unwrap();
        assert!(crate::poll::is_readable(end, std::time::Duration::MAX).unwrap());
        assert!(!alive(pid));
        assert_eq!(Process::of(pid), None);
        assert!(!descendants(std::process::id()).contains(&pid));
        child.wait().unwrap();
    }

    #[test]
    fn a_later_process_with_the_same_number_is_another() {
        let own = Process::own().unwrap();
        assert!(own.alive());
        assert!(!Process { started: own.started + 1, ..own }.alive());
        assert_eq!(Process::of(u32::MAX), None);
        let text = serde_json::to_string(&own).unwrap();
        assert_eq!(text, format!(r#"{{"pid":{},"started":{}}}"#, own.pid, own.started));
        assert_eq!(serde_json::from_str::<Process>(&text).unwrap(), own);
    }

    #[test]
    fn a_process_may_call_itself_anything() {
        let line = |name: &str, state: &str| {
            format!("7 ({name}) {state} 5 7 7 0 -1 4194560 1 0 0 0 2 1 0 0 20 0 1 0 8123 1 2 3\n")
        };
        for name in ["node", "a b", ") Z 1 (", "\u{fffd}"] {
            let expected = Stat { parent: 5, dead: false, started: 8123 };
            assert_eq!(parse_stat(line(name, "S").as_bytes()), Some(expected), "{name}");
        }
        assert!(parse_stat(line("node", "Z").as_bytes()).unwrap().dead);
        for broken in ["", "7 (node", "7 (node)", "7 (node) S", "7 (node) S five", "7 (node) S 5 7"] {
            assert_eq!(parse_stat(broken.as_bytes()), None, "{broken}");
        }
    }

    #[test]
    fn variables_are_told_apart_by_zero_bytes_and_may_hold_anything_else() {
        let expected = [("A", "1=2"), ("EMPTY", ""), ("LINES", "x\ny")];
        let expected = expected.map(|(name, value)| (name.into(), value.into()));
        assert_eq!(parse_environment(b"A=1=2\0EMPTY=\0=odd\0junk\0LINES=x\ny\0"), expected);
    }

    #[test]
    fn a_living_process_has_used_memory_and_an_ended_one_none() {
        assert!(peak_memory(std::process::id()) > 100);
        assert_eq!(peak_memory(u32::MAX), 0);
        assert!(memory(std::process::id()) > 100 << 10);
        assert_eq!(memory(u32::MAX), 0);
        assert!(free_memory().is_some_and(|free| free > 1 << 20));
    }
}
