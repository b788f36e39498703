//! The process in the pane: between the shell and the CLI, so that nothing of the CLI outlives it.
//!
//! It is the keeper of the interactive CLI: a child subreaper in the pane itself, because the CLI needs the pane's terminal.
//! The CLI stays in its process group, the foreground one, so that sizes and hang-ups reach it. When the CLI ends, or the pane
//! is closed, or somebody asks for it (SIGTERM), everything that descends from it ends too, its session is published, and
//! the record says how it went. If the process itself is killed, a guard outside of the pane does the same.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use alhena_agent::env::Environment;
use alhena_agent::home::{self, FinishPlan};
use alhena_agent::supervise::held::{Held, Reach};
use alhena_agent::supervise::sweep::{Life, sweep};
use alhena_agent::{Finder, Interactive};
use alhena_model::{Failure, FailureKind, Timestamp};
use alhena_sys::Process;
use alhena_sys::fork::adopt_orphans;
use alhena_sys::poll::{self, Wanted};
use alhena_sys::processes::{self, Signal};
use alhena_sys::signals::Noted;
use alhena_wire::release::Version;
use serde::{Deserialize, Serialize};

use crate::borrowed::BorrowedFiles;
use crate::equip::Orders;
use crate::error::{TerminalError, TerminalErrorKind};
use crate::mcp::start::McpStart;
use crate::store::{self, Cause, Phase, TerminalEnd};

/// 0.61.0 ends with it when it wants to be started again, after a folder was trusted.
const RESTART: i32 = 199;
/// How long tmux's server may take to end after its panes.
const SERVER_END: Duration = Duration::from_millis(300);
/// How long the CLI may take to obey a signal.
const PATIENCE: Duration = Duration::from_millis(2500);

/// The whole life of the process in the pane. Gives the exit code for the shell; `say` tells people what went wrong.
pub fn serve(record: &Path, say: &dyn Fn(&str)) -> u8 {
    match run(record) {
        Ok(ended) => {
            let code = ended.code.or(ended.signal.map(|signal| 128 + signal)).unwrap_or(1);
            u8::try_from(code).unwrap_or(1)
        }
        Err(error) => {
            say(&format!("alhena: {error}"));
            let failure =
                Failure::new(failure_kind(error.kind), error.message.clone()).with_hint(error.hint.clone());
            let ended = TerminalEnd { failure: Some(failure), ..TerminalEnd::default() };
            say_ended(record, ended);
            error.exit_status()
        }
    }
}

fn failure_kind(kind: TerminalErrorKind) -> FailureKind {
    match kind {
        TerminalErrorKind::NotInstalled => FailureKind::NotInstalled,
        TerminalErrorKind::Auth => FailureKind::Auth,
        TerminalErrorKind::Untrusted => FailureKind::Untrusted,
        TerminalErrorKind::Usage => FailureKind::Input,
        _ => FailureKind::Crashed,
    }
}

fn run(record: &Path) -> Result<TerminalEnd, TerminalError> {
    let failed = |error: io::Error| TerminalError::io("the agent could not be started", &error);
    let stop = Noted::of(&[Signal::HUP, Signal::TERM]).map_err(failed)?;
    let hung_up = Noted::of(&[Signal::HUP]).map_err(failed)?;
    let server = tmux_server();
    // Keys reach the CLI as bytes, so these come only when it has left the terminal in another state: they are not for us.
    let _not_for_us = Noted::of(&[Signal::INT, Signal::QUIT]).map_err(failed)?;
    let orders = Orders::take(&record.with_extension("launch"))?;
    let environment = environment(&orders);
    let mut finder = Finder::new().env(environment.clone()).path(&orders.gemini);
    let request = orders.request(&environment)?;
    if let Some(dir) = &request.dir {
        finder = finder.dir(dir);
    }
    let gemini = finder.find().map_err(|error| {
        TerminalError::new(TerminalErrorKind::NotInstalled, error.to_string())
            .with_hint(FailureKind::NotInstalled.hint())
    })?;
    let interactive = gemini.interactive(&request, &environment)?;
    let plan = interactive.home.as_ref().map(home::Home::plan);
    let guard = Guard::start(record, &interactive, plan.as_ref());
    // Only now: the guard must not be one of those that end with us.
    adopt_orphans().map_err(failed)?;
    store::update(record, |record| {
        record.agent = Process::own();
        record.mark = Some(interactive.mark.clone());
        record.chats = interactive.home.as_ref().map(home::Home::chats_dir);
        record.warnings.extend(interactive.warnings.iter().cloned());
    })?;
    let mut ended = hold(record, &interactive, &gemini.version, &stop).map_err(failed)?;
    ended.swept = sweep(&interactive.mark, Life::Process).ended;
    ended.cause = Some(match (stop.has_come(), hung_up.has_come(), ended.code) {
        (true, true, _) if server.is_some_and(ends) => Cause::ServerGone,
        (true, true, _) => Cause::PaneClosed,
        (true, false, _) => Cause::Told,
        (false, _, Some(0)) => Cause::Quit,
        (false, _, _) => Cause::Crashed,
    });
    let finished = plan.as_ref().map(finish_home).unwrap_or_default();
    ended.sessions = finished.published;
    say_ended(record, ended.clone());
    guard.dismiss();
    Ok(ended)
}

fn tmux_server() -> Option<Process> {
    let tmux = std::env::var("TMUX").ok()?;
    Process::of(tmux.split(',').nth(1)?.parse().ok()?)
}

/// Whether a server that has closed a pane ends as well. It may do so a moment later.
fn ends(server: Process) -> bool {
    let deadline = Instant::now() + SERVER_END;
    while server.alive() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(10));
    }
    !server.alive()
}

/// The launcher's environment, but with what the pane says about its terminal.
fn environment(orders: &Orders) -> Environment {
    let mut environment: Environment = orders.environment.iter().cloned().collect();
    for name in ["TERM", "TERM_PROGRAM", "TERM_PROGRAM_VERSION", "TMUX", "TMUX_PANE", "COLUMNS", "LINES"] {
        match std::env::var_os(name) {
            Some(value) => environment.set(name, value),
            None => environment.remove(name),
        };
    }
    // Either would have the CLI think that nobody is there.
    for name in ["CI", "CONTINUOUS_INTEGRATION"] {
        environment.remove(name);
    }
    environment
}

fn give_back(record: &Path) {
    if let Some((state, id)) = record.ancestors().nth(3).zip(record.file_stem()) {
        for warning in BorrowedFiles::new(state).give_back(&id.to_string_lossy()) {
            let _unwritten = store::update(record, |record| record.warnings.push(warning));
        }
    }
}

/// Ends the agents that worked for this one: nobody waits for them any more.
fn end_workers(record: &Path) {
    let (Some(dir), Some(id)) = (record.parent(), record.file_stem()) else { return };
    for path in store::files_in(dir) {
        if let Ok(Some(worker)) = store::read(&path)
            && worker.supervisor.as_deref().is_some_and(|supervisor| *supervisor == *id)
            && let Some(agent) = worker.agent
        {
            agent.signal(Signal::TERM);
        }
    }
}

/// What the CLI took back in a terminal, a person took back.
fn finish_home(plan: &home::FinishPlan) -> home::Finished {
    home::finish(plan, home::Stopped::Never)
}

fn say_ended(record: &Path, ended: TerminalEnd) {
    give_back(record);
    end_workers(record);
    let _unwritten = store::update(record, |record| {
        record.phase = Phase::Ended;
        record.ended = Some(ended);
        record.agent = None;
        record.cli = None;
    });
}

fn hold(
    record: &Path,
    interactive: &Interactive,
    release: &Version,
    stop: &Noted,
) -> io::Result<TerminalEnd> {
    loop {
        clear_screen();
        let mcp = McpStart::new(&interactive.log, &interactive.servers, release);
        let cli = start(interactive)?;
        let process = Process::of(cli.pid());
        let _unwritten = store::update(record, |record| {
            record.phase = Phase::Running;
            record.mcp = Some(mcp);
            record.cli = process;
            record.started = Some(Timestamp::now());
        });
        let status = wait(cli, stop)?;
        if status.code() != Some(RESTART) || stop.has_come() {
            return Ok(TerminalEnd {
                code: status.code(),
                signal: processes::ending_signal(status),
                ..TerminalEnd::default()
            });
        }
        let _ended = sweep(&interactive.mark, Life::Process);
    }
}

/// What the shell has written would be taken for the CLI's.
fn clear_screen() {
    let mut out = io::stdout();
    let _closed = out.write_all(b"\x1b[H\x1b[2J\x1b[3J").and_then(|()| out.flush());
}

fn start(interactive: &Interactive) -> io::Result<Held> {
    let mut command = Command::new(&interactive.program);
    command.args(&interactive.args).env_clear().envs(interactive.env.iter().cloned());
    command.current_dir(&interactive.dir);
    Held::start(&mut command, Reach::Program, Life::Process, PATIENCE)
}

fn wait(mut cli: Held, stop: &Noted) -> io::Result<ExitStatus> {
    loop {
        if let Some(status) = cli.ended()? {
            return Ok(status);
        }
        match stop.has_come() {
            true if cli.is_stopping() => cli.escalate(),
            true => cli.stop(),
            false => {}
        }
        let wanted: Vec<Wanted<'_>> = cli.end().into_iter().collect();
        poll::wait(&wanted, Some(cli.longest_wait()))?;
    }
}

/// Cleans up if the process in the pane is killed before it can.
struct Guard(Option<ChildStdin>);

#[derive(Debug, Serialize, Deserialize)]
struct GuardOrders {
    record: PathBuf,
    mark: String,
    plan: Option<FinishPlan>,
    remove: Vec<PathBuf>,
}

impl Guard {
    fn start(record: &Path, interactive: &Interactive, plan: Option<&FinishPlan>) -> Self {
        let watch = GuardOrders {
            record: record.to_owned(),
            mark: interactive.mark.clone(),
            plan: plan.cloned(),
            remove: vec![interactive.run_dir.temporary().to_owned(), interactive.run_dir.path().to_owned()],
        };
        let spawn = || -> io::Result<ChildStdin> {
            // It holds the locks of the run, so that nobody takes it for abandoned before it has been put away.
            let lock = interactive.home.as_ref().and_then(|home| home.lock().try_clone().ok());
            let mut first = guard_command("1")?;
            first
                .stdin(Stdio::piped())
                .stdout(lock.map_or_else(Stdio::null, Stdio::from))
                .stderr(Stdio::from(interactive.run_dir.lock().try_clone()?));
            let mut first = first.spawn()?;
            let stdin = first.stdin.take();
            first.wait()?;
            let mut stdin = stdin.ok_or_else(|| io::Error::other("no pipe"))?;
            let mut line = serde_json::to_vec(&watch)?;
            line.push(b'\n');
            stdin.write_all(&line)?;
            Ok(stdin)
        };
        // Without one a later command cleans up.
        Self(spawn().ok())
    }

    fn dismiss(mut self) {
        if let Some(stdin) = &mut self.0 {
            let _gone = stdin.write_all(b"done\n");
        }
    }
}

fn guard_command(step: &str) -> io::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["terminal", "guard", step]).current_dir("/").env_clear();
    Ok(command)
}

/// The whole life of the guard. In its first step it only starts the second one, and ends, so that the second is nobody's
/// child; that one reads what to watch over, and waits for a word that all is done, or for silence.
pub fn guard(step: &str) -> io::Result<()> {
    if step == "1" {
        guard_command("2")?.spawn()?;
        return Ok(());
    }
    processes::leave_session();
    let mut lines = io::stdin().lines();
    let Some(first) = lines.next().transpose()? else { return Ok(()) };
    let watch: GuardOrders = serde_json::from_str(&first)?;
    if lines.next().transpose()?.is_some() {
        return Ok(());
    }
    sweep(&watch.mark, Life::Thread);
    let finished = watch.plan.as_ref().map(finish_home).unwrap_or_default();
    let cause = Some(Cause::Killed);
    let sessions = finished.published;
    // Before the run's lock goes with its directory: as long as somebody holds that, this is waited for.
    say_ended(&watch.record, TerminalEnd { sessions, cause, signal: Some(9), ..TerminalEnd::default() });
    for path in &watch.remove {
        let _gone = std::fs::remove_dir_all(path);
    }
    Ok(())
}
