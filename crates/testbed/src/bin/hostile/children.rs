//! The processes that an agent leaves behind: tools in sessions of their own, daemons, a program without any environment,
//! and a storm of processes that are never the same twice.
//!
//! Gemini CLI 0.61.0 starts every shell command in its own session and does not end it when it is ended itself.

use std::fs::OpenOptions;
use std::io::Write;
use std::time::{Duration, Instant};

use alhena_testbed::script::{Child, PIDS_VARIABLE};

use crate::os;

/// `argv[0]` of a child that was started as a program.
const PROGRAM: &str = "hostile-child";

/// Adds this process to the file of pids, if there is one.
pub fn record_own_pid() -> Result<(), String> {
    let Some(path) = std::env::var_os(PIDS_VARIABLE) else { return Ok(()) };
    OpenOptions::new()
        .create(true)
        .append(true)
        .open(&path)
        .and_then(|mut file| file.write_all(format!("{}\n", std::process::id()).as_bytes()))
        .map_err(|error| format!("{}: {error}", path.display()))
}

/// Starts a child and waits until it is what it should be, so that no test has to guess when to look.
pub fn spawn(child: &Child) -> Result<(), String> {
    let (ready, tell) = os::pipe()?;
    match os::fork()? {
        Some(pid) => {
            os::close(tell);
            os::wait_for_byte(ready);
            os::close(ready);
            if child.daemon {
                os::reap(pid);
            }
            Ok(())
        }
        None => {
            os::close(ready);
            become_child(child, tell)
        }
    }
}

fn become_child(child: &Child, tell: i32) -> ! {
    if child.new_session {
        os::new_session();
    }
    if child.daemon && !matches!(os::fork(), Ok(None)) {
        os::exit(0);
    }
    os::limit_lifetime();
    if let Err(message) = record_own_pid() {
        eprintln!("hostile: {message}");
        os::exit(1);
    }
    if child.ignores_signals {
        [libc::SIGTERM, libc::SIGINT, libc::SIGHUP].into_iter().for_each(os::ignore);
    }
    if child.closed_files {
        (0..3).for_each(os::close);
    }
    let life = Life { tell, lifetime: os::lifetime(), writes_every_ms: child.writes_every_ms };
    if child.cleared_environment {
        os::exec_self_without_environment(&life.to_arguments());
        os::exit(1);
    }
    live(&life)
}

#[derive(Debug)]
pub struct Life {
    tell: i32,
    lifetime: u32,
    writes_every_ms: Option<u64>,
}

impl Life {
    fn to_arguments(&self) -> Vec<String> {
        let pause = self.writes_every_ms.unwrap_or(0);
        vec![PROGRAM.to_owned(), self.tell.to_string(), self.lifetime.to_string(), pause.to_string()]
    }
}

/// The life of this process if it was started as a child's program: it has no environment, only arguments.
pub fn as_program() -> Option<Life> {
    let mut arguments = std::env::args();
    if arguments.next()? != PROGRAM {
        return None;
    }
    let mut number = || arguments.next().and_then(|text| text.parse::<u64>().ok());
    let tell = number().and_then(|value| i32::try_from(value).ok())?;
    let lifetime = number().and_then(|value| u32::try_from(value).ok())?;
    Some(Life { tell, lifetime, writes_every_ms: number().filter(|pause| *pause > 0) })
}

/// Says that the child is ready and lives until killed.
pub fn live(life: &Life) -> ! {
    os::limit_lifetime_to(life.lifetime);
    os::write_all(life.tell, b"!");
    os::close(life.tell);
    let Some(pause) = life.writes_every_ms else { os::hang() };
    loop {
        os::write_all(1, b"a child still writes\n");
        std::thread::sleep(Duration::from_millis(pause));
    }
}

/// Starts the processes of a storm and comes back when all of them have begun.
pub fn storm(processes: u32, length: Duration, every: Duration) -> Result<(), String> {
    let until = Instant::now() + length;
    for _ in 0..processes {
        let (ready, tell) = os::pipe()?;
        match os::fork()? {
            Some(_) => {
                os::close(tell);
                os::wait_for_byte(ready);
                os::close(ready);
            }
            None => {
                os::close(ready);
                os::discard_children();
                storm_on(tell, until, every);
            }
        }
    }
    Ok(())
}

fn storm_on(tell: i32, until: Instant, every: Duration) -> ! {
    let mut generation = 0_u32;
    loop {
        os::limit_lifetime();
        if record_own_pid().is_err() {
            os::exit(1);
        }
        if generation == 0 {
            os::write_all(tell, b"!");
            os::close(tell);
        }
        if Instant::now() >= until {
            os::hang();
        }
        std::thread::sleep(every);
        match os::fork() {
            Ok(None) => os::new_session(),
            Ok(Some(_)) => os::exit(0),
            Err(_) => os::hang(),
        }
        generation += 1;
    }
}
