//! An agent in a pane that somebody else owns, as CAO does: run there ([`here`]), and read ([`Hosted`]).
//!
//! It has the same home, guard and ending as in a terminal of Alhena's own. Its host captures its screen; what the screen cannot
//! tell is in its record and its session: that MCP servers still start, that a message is on its way, how a turn ended.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use alhena_agent::dirs::Dirs;
use alhena_agent::env::Environment;
use alhena_model::Timestamp;
use alhena_sys::files;

use crate::answer::session_of;
use crate::borrowed::BorrowedFiles;
use crate::equip::{Equipped, Orders};
use crate::error::{TerminalError, TerminalErrorKind};
use crate::launch::{Launch, find, new_id};
use crate::pane;
use crate::screen::{Capture, Reading, Status};
use crate::session_turn::SessionTurn;
use crate::store::{self, Record};
use crate::terminal::Until;
use crate::turn::TurnNote;

/// The screen was captured some time ago, and the CLI writes its session a moment after it draws.
const LATE: Duration = Duration::from_secs(1);

/// An agent that runs in somebody else's pane.
#[derive(Debug)]
pub struct Hosted {
    record: Record,
}

impl Hosted {
    /// The one that lives, by the id that its host gave it.
    pub fn find(id: &str, environment: &Environment) -> Result<Self, TerminalError> {
        let missing = || {
            TerminalError::new(TerminalErrorKind::NotFound, format!("no agent runs with the id {id:?}"))
                .with_hint("It is the one that its host gave it.")
        };
        let records = Dirs::of(environment).ok_or_else(missing)?.state.join("terminals").join(DIRECTORY);
        let ours = |record: &Record| record.name == id && record.is_alive();
        let found =
            store::files_in(&records).filter_map(|path| store::read(&path).ok().flatten()).filter(ours);
        found.max_by_key(|record| record.created).map(|record| Self { record }).ok_or_else(missing)
    }

    /// What it does, by its screen and by everything else. A message that was sent at `since` is work until the session has
    /// it (from then on there is a `turn`) and its turn has ended.
    #[must_use]
    pub fn read(&self, capture: &Capture<'_>, since: Option<Timestamp>) -> Reading {
        let reading = capture.read();
        if !Until::Idle.is_met(reading.status) {
            return reading;
        }
        if let Some(why) = self.record.mcp.as_ref().and_then(|mcp| mcp.waits_for()) {
            return Reading { warning: Some(why), ..Reading::of(Status::Starting) };
        }
        let Some(since) = since else { return reading };
        let (said, stands) = self.said(since);
        if said.queries == 0 {
            return Reading::of(Status::Processing);
        }
        let id = said.queries as u64;
        if !said.is_final() && !stands {
            let turn = Some(TurnNote { id, ended: None });
            return Reading { turn, ..Reading::of(Status::Processing) };
        }
        let (how, warning) = said.ending();
        let turn = Some(TurnNote { id, ended: Some(how) });
        match (&said.error, said.texts.is_empty()) {
            (Some(error), true) => {
                let error = Some(error.clone());
                Reading { turn, warning, error, ..Reading::of(Status::Error) }
            }
            (_, true) => Reading { turn, warning, ..Reading::of(Status::Idle) },
            (_, false) => {
                let message = Some(said.answer());
                Reading { turn, warning, message, ..Reading::of(Status::Completed) }
            }
        }
    }

    /// The last answer in its session since a moment, or why there is none. None without a session: the screen may tell.
    pub fn last_answer(&self, since: Option<Timestamp>) -> Option<Result<String, TerminalError>> {
        session_of(&self.record)?;
        let (said, _) = self.said(since.unwrap_or(Timestamp::from_millis(0)));
        if !said.texts.is_empty() {
            return Some(Ok(said.answer()));
        }
        let why = if said.queries == 0 { None } else { said.ending().1 };
        let why = why.unwrap_or_else(|| "its session has none yet".to_owned());
        Some(Err(TerminalError::new(TerminalErrorKind::NoAnswer, format!("there is no answer: {why}"))))
    }

    /// What the session says, and whether it has not grown for a while.
    fn said(&self, since: Timestamp) -> (SessionTurn, bool) {
        let Some(session) = session_of(&self.record) else { return (SessionTurn::default(), false) };
        let written = std::fs::metadata(&session).and_then(|data| data.modified());
        let age = written.ok().and_then(|at| SystemTime::now().duration_since(at).ok());
        let said = SessionTurn::since(&session, since);
        let stands = age.is_some_and(|age| age > said.patience() + LATE);
        (said, stands)
    }
}

/// No tmux server can have this name.
const DIRECTORY: &str = ".here";

/// Runs an agent right here until it ends, and gives its exit code. `id` is what others call the terminal; `say` tells
/// people what they should know.
pub fn here(
    launch: Launch,
    id: Option<String>,
    environment: &Environment,
    say: &dyn Fn(&str),
) -> Result<u8, TerminalError> {
    let dirs = Dirs::of(environment).ok_or_else(|| {
        TerminalError::usage("there is no home directory to work with", "Set HOME, or ALHENA_HOME.")
    })?;
    let records = dirs.state.join("terminals").join(DIRECTORY);
    files::create_private_dir(&records).map_err(|error| TerminalError::io(records.display(), &error))?;
    let borrowed = BorrowedFiles::new(&dirs.state);
    for warning in borrowed.recover(&|terminal| store::is_alive(&dirs.state, terminal)) {
        say(&warning);
    }
    forget_the_dead(&records);

    // The number of this process tells two apart that others call the same.
    let id = id.map_or_else(new_id, Ok)?;
    let own = format!("{id}-{}", std::process::id());
    let mut equipped = Equipped::of(launch, &id, environment)?;
    let dir = equipped.launch.options.dir.clone().unwrap_or_else(|| PathBuf::from("."));
    let dir = std::fs::canonicalize(&dir).map_err(|error| TerminalError::io(dir.display(), &error))?;
    let gemini = find(&equipped, &dir)?;
    equipped.lend(&own, &borrowed, environment)?;
    let path = records.join(format!("{own}.json"));
    let mut record = Record::of(&equipped.launch, &own, &id, &dir, &gemini);
    record.warnings.clone_from(&equipped.notices);
    Orders::new(&equipped, &equipped.launch.prompt, &dir, &gemini.path)
        .leave_at(&path.with_extension("launch"))?;
    store::write(&path, &record)?;
    let _later = borrowed.confirm(&own);
    let code = pane::serve(&path, say);
    forget(&path);
    Ok(code)
}

fn forget(record: &Path) {
    for extension in ["launch", "turns", "mode", "lock", "json"] {
        let _gone = std::fs::remove_file(record.with_extension(extension));
    }
}

/// Records of those that were killed.
fn forget_the_dead(records: &Path) {
    for path in store::files_in(records) {
        if store::read(&path).is_ok_and(|record| record.is_none_or(|record| !record.is_alive())) {
            forget(&path);
        }
    }
}

#[cfg(test)]
mod tests {
    use alhena_sys::Process;
    use serde_json::json;

    use super::*;
    use crate::turn::How;

    const FREE: &str = "\
▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄
 > the question before
▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀
✦ The answer before.

──────────────────────────────
 Shift+Tab to accept edits
▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄
 >   Type your message or @path/to/file
▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀
 ~/project   no sandbox   /model
";

    struct Desk {
        root: tempfile::TempDir,
        environment: Environment,
    }

    impl Desk {
        fn new() -> Self {
            let root = tempfile::tempdir().unwrap();
            let environment = Environment::from([("ALHENA_HOME", root.path())]);
            std::fs::create_dir(root.path().join("chats")).unwrap();
            let desk = Self { root, environment };
            desk.record(&json!(null));
            desk
        }

        fn record(&self, mcp: &serde_json::Value) {
            let records = Dirs::of(&self.environment).unwrap().state.join("terminals").join(DIRECTORY);
            std::fs::create_dir_all(&records).unwrap();
            let record = json!({
                "id": "t1-7", "name": "t1", "dir": "/w", "approval": "yolo", "gemini": "/g",
                "gemini_version": "0.61.0", "created": "2026-11-16T05:40:00.000Z", "phase": "running",
                "agent": Process::own(), "chats": self.root.path().join("chats"), "mcp": mcp,
            });
            std::fs::write(records.join("t1-7.json"), record.to_string()).unwrap();
        }

        fn session(&self, lines: &[(&str, &str)]) {
            let line = |(second, (kind, text)): (usize, &(&str, &str))| {
                let time = format!("2026-11-16T05:41:{second:02}.000Z");
                json!({"id": second.to_string(), "timestamp": time, "type": kind, "content": text})
                    .to_string()
            };
            let lines: Vec<String> = lines.iter().enumerate().map(line).collect();
            std::fs::write(self.root.path().join("chats/session-1.jsonl"), lines.join("\n") + "\n").unwrap();
        }

        fn read(&self) -> Reading {
            let since = Timestamp::parse("2026-11-16T05:41:02.000Z");
            Hosted::find("t1", &self.environment).unwrap().read(&Capture::new(FREE), since)
        }

        fn answer(&self) -> Result<String, String> {
            let since = Timestamp::parse("2026-11-16T05:41:02.000Z");
            let hosted = Hosted::find("t1", &self.environment).unwrap();
            hosted.last_answer(since).unwrap().map_err(|error| error.message)
        }
    }

    const BEFORE: [(&str, &str); 2] = [("user", "the question before"), ("gemini", "The answer before.")];

    #[test]
    fn what_was_sent_is_work_until_the_session_has_its_end_whatever_the_screen_shows() {
        let desk = Desk::new();
        desk.session(&BEFORE);
        assert_eq!((desk.read().status, desk.read().turn), (Status::Processing, None));
        assert_eq!(desk.answer().unwrap_err(), "there is no answer: its session has none yet");
        let asked = [BEFORE[0], BEFORE[1], ("user", "and now?")];
        desk.session(&asked);
        let open = TurnNote { id: 1, ended: None };
        assert_eq!((desk.read().status, desk.read().turn), (Status::Processing, Some(open)));
        let markdown = "# Done\n\n```sh\nls\n```";
        desk.session(&[&asked[..], &[("gemini", markdown)]].concat());
        let over = TurnNote { id: 1, ended: Some(How::Answered) };
        assert_eq!((desk.read().status, desk.read().turn), (Status::Completed, Some(over)));
        assert_eq!(desk.answer().unwrap(), markdown);
    }

    #[test]
    fn a_turn_that_failed_is_over_and_has_no_answer_but_a_reason() {
        let desk = Desk::new();
        desk.session(&[BEFORE[0], BEFORE[1], ("user", "and now?"), ("error", "[API Error: no]")]);
        let reading = desk.read();
        assert_eq!((reading.status, reading.error.as_deref()), (Status::Error, Some("[API Error: no]")));
        assert_eq!(desk.answer().unwrap_err(), "there is no answer: [API Error: no]");
    }

    #[test]
    fn it_starts_until_its_servers_have_and_an_unknown_one_is_not_found() {
        let desk = Desk::new();
        let log = desk.root.path().join("log");
        std::fs::write(&log, "[time] [LOG] Authenticated\n").unwrap();
        desk.record(&json!({"log": log, "from": 0, "servers": ["slow"], "tells": true}));
        assert_eq!(desk.read().status, Status::Starting);
        let error = Hosted::find("t2", &desk.environment).unwrap_err();
        assert_eq!((error.kind, error.exit_status()), (TerminalErrorKind::NotFound, 2));
    }
}
