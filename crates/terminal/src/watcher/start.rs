//! Finding the watcher, and starting one where there is none.

use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::Duration;

use alhena_agent::env::Environment;
use alhena_agent::supervise::custody::keeper_program;

use super::client::{Answerer, Client, retire};
use super::serve::command;
use super::wire::{Hello, PROTOCOL};
use crate::control::{Control, Plain};
use crate::error::TerminalError;
use crate::store::Store;
use crate::tmux::Tmux;

/// How long others may take to start one.
const OTHERS: Duration = Duration::from_secs(20);

/// What tmux, and what speaks of it, may need from the environment. The rest is not the watcher's business, secrets least.
const VARIABLES: [&str; 15] = [
    "HOME",
    "USER",
    "LOGNAME",
    "PATH",
    "TERM",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TMPDIR",
    "TMUX_TMPDIR",
    "ALHENA_HOME",
    // What a person's own command may need to reach their desktop.
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "XDG_RUNTIME_DIR",
    "DBUS_SESSION_BUS_ADDRESS",
];

/// Where a watcher is, and what it takes to start one.
#[derive(Clone, Debug)]
pub(crate) struct Ground {
    pub(crate) tmux: Tmux,
    pub(crate) store: Store,
    pub(crate) environment: Environment,
}

/// A way to the terminals of a server: its watcher, started if need be; without one, plain commands. Fails where no
/// terminal is.
pub(crate) fn connect(ground: &Ground) -> Result<Control, TerminalError> {
    find_or_start(ground).map_or_else(|why| plain(&ground.tmux, &why), |client| Ok(Control::Watcher(client)))
}

pub(super) fn revive(ground: &Ground) -> bool {
    find_or_start(ground).is_ok()
}

fn find_or_start(ground: &Ground) -> Result<Client, String> {
    match meet(ground) {
        Met::Ours(client) => return Ok(client),
        Met::Newer => return Err("it is of a newer release".to_owned()),
        Met::Nobody => {}
    }
    if !ground.tmux.has_session() {
        return Err("no terminal is open".to_owned());
    }
    let _lock = ground.store.lock_watcher_start(OTHERS).map_err(|error| error.to_string())?;
    // It may have been somebody else's work meanwhile.
    if let Met::Ours(client) = meet(ground) {
        return Ok(client);
    }
    start(ground)?;
    match meet(ground) {
        Met::Ours(client) => Ok(client),
        _ => Err("it does not answer".to_owned()),
    }
}

fn plain(tmux: &Tmux, why: &str) -> Result<Control, TerminalError> {
    if !tmux.has_session() {
        return Err(TerminalError::tmux("no terminal is open"));
    }
    tracing::warn!("no watcher: {why}");
    Ok(Control::Plain(Plain::new(tmux)))
}

enum Met {
    Ours(Client),
    /// It knows better than we do what it watches.
    Newer,
    /// There is none, or an older one, which has been asked to make room.
    Nobody,
}

fn meet(ground: &Ground) -> Met {
    match Client::find(ground) {
        Ok(Answerer::Ours(client)) => Met::Ours(client),
        Ok(Answerer::Other(Hello { protocol, .. }, _)) if protocol > PROTOCOL => Met::Newer,
        Ok(Answerer::Other(_, stream)) => {
            retire(stream);
            Met::Nobody
        }
        Err(_) => Met::Nobody,
    }
}

/// Starts one and waits until it listens. It is nobody's child: who starts it may end before it, or never look after it.
fn start(ground: &Ground) -> Result<(), String> {
    let Ground { tmux, store, environment } = ground;
    let program = keeper_program(environment).ok_or("the program alhena cannot be found")?;
    let mut command = command(&program, tmux.server(), tmux.program(), store.dir(), "1");
    command.env_clear();
    for name in VARIABLES {
        command.envs(environment.get(name).map(|value| (name, value)));
    }
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    let mut first = command.spawn().map_err(|error| error.to_string())?;
    let said = first.stdout.take();
    let _ended = first.wait();
    let mut line = String::new();
    if let Some(said) = said {
        let _nothing = BufReader::new(said).read_line(&mut line);
    }
    match line.trim() {
        "ready" => Ok(()),
        "" => Err("it ended at once".to_owned()),
        why => Err(why.to_owned()),
    }
}
