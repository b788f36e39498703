//! What programs build on: that it is there is checked by the compiler.

use std::fmt::Debug;

use alhena::agent::NotFound;
use alhena::{Event, Failure, Hint, Run, RunError, Stopper};
use futures_core::Stream;

fn is_stream<T: Stream<Item = Event> + Debug + Send + Unpin>() {}
fn is_stopper<T: Clone + Debug + Send + Sync + 'static>() {}
fn is_error<T: Hint + Send + Sync + 'static>() {}

#[test]
fn a_run_is_a_stream_that_can_be_sent_and_stopped_from_anywhere() {
    is_stream::<Run>();
    is_stopper::<Stopper>();
}

#[test]
fn every_error_may_have_a_hint_and_can_be_sent() {
    is_error::<NotFound>();
    is_error::<RunError>();
    is_error::<Failure>();
    is_error::<alhena::agent::BadRule>();
    is_error::<alhena::agent::HomeError>();
    is_error::<alhena::agent::InstallError>();
    is_error::<alhena::agent::SettingsError>();
    is_error::<alhena::session::FindError>();
    is_error::<alhena::session::repair::NotRepaired>();
    is_error::<alhena::terminal::TerminalError>();
    is_error::<alhena::terminal::ProfileError>();
    is_error::<alhena::wire::release::NotAVersion>();
    is_error::<alhena::wire::stream::LineError>();
}

#[test]
fn the_source_of_an_error_is_kept() {
    use std::error::Error;
    let denied = || std::io::Error::from(std::io::ErrorKind::PermissionDenied);
    let find = alhena::session::FindError::from(denied());
    let install = alhena::agent::InstallError::Io { doing: "asking npm", error: denied() };
    for error in [&find as &dyn Error, &install] {
        assert!(error.source().is_some_and(|source| source.is::<std::io::Error>()), "{error}");
    }
}

/// What most programs need. Whatever else there is, is in the module of its layer: a name more here is one less that is found.
const NAMES: [&str; 24] = [
    "Approval",
    "Conversation",
    "Event",
    "EventKind",
    "Failure",
    "FailureKind",
    "Gemini",
    "Hint",
    "Message",
    "Outcome",
    "Permission",
    "Pool",
    "PoolOptions",
    "Prompt",
    "Resume",
    "Run",
    "RunError",
    "RunExtras",
    "RunOptions",
    "Status",
    "Stopper",
    "Trust",
    "Turn",
    "TurnItem",
];

const MODULES: [&str; 11] = [
    "agent", "answer", "batch", "concepts", "hosts", "keeper", "model", "scripted", "session", "terminal",
    "wire",
];

#[test]
fn the_front_door_has_these_names_and_the_layers_as_modules() {
    let source = include_str!("../../src/lib.rs");
    let code: String = source.lines().filter(|line| !line.trim_start().starts_with(['/', '#'])).collect();
    let exports = code.split(';').filter_map(|item| item.trim().strip_prefix("pub "));
    let mut found: Vec<&str> = exports.flat_map(exported).collect();
    found.sort_unstable();
    let mut expected: Vec<&str> = NAMES.into_iter().chain(MODULES).collect();
    expected.sort_unstable();
    assert_eq!(found, expected);
}

/// The names that an item of the facade gives away.
fn exported(item: &str) -> Vec<&str> {
    match item.split_once('{') {
        Some((_, group)) => {
            group.trim_end_matches('}').split(',').map(str::trim).filter(|name| !name.is_empty()).collect()
        }
        None => vec![item.rsplit([':', ' ']).next().unwrap_or(item)],
    }
}
