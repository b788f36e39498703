//! What an agent does, by everything that is known: the screen, the title, the process, and the turn.
//!
//! 0.61.0 draws in steps, so one look can catch it between two: what is not plainly at work, nor plainly over, is looked at
//! twice. And a screen that looks free says nothing about a message that is still on its way (see `turn.rs`): while a turn is
//! open, the agent is at work or waits for somebody, until the session and the screen together say that it is over.

use std::time::Duration;

use alhena_model::Timestamp;
use alhena_sys::Process;

use crate::answer::session_of;
use crate::control::Control;
use crate::error::TerminalError;
use crate::screen::{Reading, Status};
use crate::session_turn::{STANDS, STANDS_IN_SILENCE, STANDS_WITHOUT_ANSWER, SessionTurn, how_of};
use crate::store::{self, Phase, Record};
use crate::terminal::{FRAME, History, LONGEST_FRAME, Live, SOME_HISTORY, Terminal, Until};
use crate::turn::{How, Journal, TurnRecord};

/// Between two looks that have to agree.
const SECOND_LOOK: Duration = Duration::from_millis(60);
/// tmux has opened a pane before that, however busy the machine is.
const OPENING: Duration = Duration::from_secs(10);
/// A start takes three seconds, and with ten at once on two cores half a minute.
const LONGEST_START: Duration = Duration::from_secs(120);
/// The CLI gives each MCP server ten minutes.
const LONGEST_MCP_START: Duration = Duration::from_secs(660);
/// A prompt without a banner (somebody has switched it off) that has not moved for so long is a prompt.
const STARTED: Duration = Duration::from_secs(10);
/// A query without anything after it, and without a title that says so, may be the end of a turn (0.30 shows nothing for an
/// empty answer).
const UNANSWERED: Duration = Duration::from_secs(15);
/// A message that was taken, and of which nothing came for so long, is lost.
const LOST: Duration = Duration::from_secs(30);

pub(crate) struct Glimpse {
    pub(crate) reading: Reading,
    quiet: Duration,
    works: bool,
    ready: bool,
    /// Whether the last query has nothing after it.
    unanswered: bool,
}

impl Glimpse {
    /// A query with nothing after it is no work where no turn is open, and the title has said for a while that it is ready:
    /// the CLI has drawn its screen anew, and without the end of its history (0.61.0, after a resize or a resume).
    fn at_rest(self) -> Self {
        match self.unanswered && self.ready && self.quiet > STANDS_WITHOUT_ANSWER {
            true => Self { reading: Reading { status: Status::Idle, ..self.reading }, ..self },
            false => self,
        }
    }

    /// Whether everything agrees that a turn is over: the session had its answer, the screen shows one and has stood still,
    /// and the title says ready.
    fn proves_the_end_of(&self, turn: &TurnRecord) -> bool {
        turn.ended.as_ref().is_some_and(|end| end.how == How::Answered)
            && self.reading.status == Status::Completed
            && self.ready
            && self.quiet >= STANDS
    }
}

struct Look {
    reading: Reading,
    /// Whether another would tell nothing else.
    sure: bool,
}

impl From<Glimpse> for Look {
    fn from(glimpse: Glimpse) -> Self {
        Self { reading: glimpse.reading, sure: false }
    }
}

impl From<Status> for Glimpse {
    fn from(status: Status) -> Self {
        Self {
            reading: Reading::of(status),
            quiet: Duration::ZERO,
            works: false,
            ready: false,
            unanswered: false,
        }
    }
}

impl Terminal {
    /// What the agent does now. What is neither plainly at work nor plainly over is looked at until two looks agree.
    pub fn status(&self) -> Result<Reading, TerminalError> {
        match self.told() {
            Some(reading) => Ok(reading),
            None => self.settled(|| self.read_now()),
        }
    }

    fn told(&self) -> Option<Reading> {
        match self.terminals.inner.control().ok()?.as_ref() {
            Control::Watcher(client) => client.state(self.id()),
            Control::Own(_) | Control::Plain(_) => None,
        }
    }

    /// The same by the screen alone: a message that is on its way does not count.
    pub(crate) fn status_of_screen(&self) -> Result<Reading, TerminalError> {
        self.settled(|| self.glimpse().map(Look::from))
    }

    fn settled(&self, look: impl Fn() -> Result<Look, TerminalError>) -> Result<Reading, TerminalError> {
        let mut before: Option<Reading> = None;
        for _ in 0..20 {
            let Look { reading, sure } = look()?;
            let settled = sure || before.as_ref().is_some_and(|before| before.status == reading.status);
            let settled = settled || (reading.status == Status::Processing && self.says_working());
            if settled || self.is_over()? {
                return Ok(reading);
            }
            before = Some(reading);
            std::thread::sleep(SECOND_LOOK);
        }
        // It does not stand still, so it is at work.
        let last = before.unwrap_or_else(|| Reading::of(Status::Unknown));
        Ok(Reading { status: Status::Processing, ..last })
    }

    pub(crate) fn says_working(&self) -> bool {
        self.live().is_ok_and(|live| live.control.activity(&live.pane).says_working())
    }

    pub(crate) fn is_over(&self) -> Result<bool, TerminalError> {
        Ok(self.record()?.phase == Phase::Ended)
    }

    /// One look: what everything says at this moment.
    pub fn status_now(&self) -> Result<Reading, TerminalError> {
        self.told().map_or_else(|| self.read_now().map(|look| look.reading), Ok)
    }

    fn read_now(&self) -> Result<Look, TerminalError> {
        let journal = self.journal();
        // In this order: a look from before the message was sent says nothing about its turn.
        let before = journal.last();
        let mut glimpse = self.glimpse()?;
        let turn = match (before.filter(TurnRecord::is_open), journal.last()) {
            (Some(before), Some(now)) if before.id == now.id => self.follow(&journal, before, &glimpse)?,
            (_, Some(now)) => now,
            (_, None) => return Ok(glimpse.at_rest().into()),
        };
        if !turn.is_open() {
            glimpse = glimpse.at_rest();
        }
        let sure = glimpse.proves_the_end_of(&turn);
        Ok(Look { reading: with_turn(glimpse.reading, &turn), sure })
    }

    pub(crate) fn glimpse(&self) -> Result<Glimpse, TerminalError> {
        let record = self.record()?;
        match record.phase {
            Phase::Ended => return Ok(Status::Exited.into()),
            Phase::Launching => {
                // The record is there before its pane.
                let opens = age(record.created) < OPENING || self.pane().is_some();
                return Ok(if opens { Status::Starting } else { Status::Exited }.into());
            }
            Phase::Running => {}
        }
        let Some(pane) = self.pane() else { return Ok(Status::Exited.into()) };
        let live = Live { control: self.terminals.inner.control()?, pane, joined: record.joined };
        live.control.wait_until_quiet(&live.pane, FRAME, LONGEST_FRAME);
        let mut look = live.capture_pane(History::Some)?;
        let mut reading = look.capture().read();
        if (reading.truncated || reading.status == Status::Idle) && look.history > SOME_HISTORY {
            // The last query is further up.
            look = live.capture_pane(History::All)?;
            reading = look.capture().read();
        }
        if let Some(mode) = look.capture().approval() {
            self.note_approval(mode);
        }
        let quiet = live.control.quiet(&live.pane);
        let listens = || look.capture().has_started() || quiet > STARTED;
        if reading.status == Status::Idle && is_young(&record) && !listens() {
            // The prompt is there before anybody listens to it.
            return Ok(Status::Starting.into());
        }
        if Until::Idle.is_met(reading.status)
            && let Some(why) = self.waits_for_servers(&record)
        {
            // What is typed now is queued, and nothing on the screen says so.
            let reading = Reading { warning: Some(why), ..Reading::of(Status::Starting) };
            return Ok(Glimpse { reading, quiet, works: false, ready: false, unanswered: false });
        }
        let unanswered = reading.status == Status::Processing && look.capture().is_unanswered();
        let works = look.title.starts_with('✦');
        let ready = look.title.starts_with('◇');
        // It says goodbye a moment before it goes.
        let leaves = reading.status == Status::Exited && look.text.contains("Agent powering down");
        let reading = if leaves { reading } else { with_process(reading, &look.title, &record) };
        Ok(Glimpse { reading, quiet, works, ready, unanswered })
    }

    /// Why the CLI does not take a prompt yet although it looks free.
    fn waits_for_servers(&self, record: &Record) -> Option<String> {
        let mcp = record.mcp.as_ref()?;
        let why = mcp.waits_for().filter(|_| record.started.is_some_and(|at| age(at) < LONGEST_MCP_START));
        if why.is_none() {
            let over = |record: &mut Record| record.mcp = record.mcp.take().filter(|now| now != mcp);
            let _seen_again_by_the_next = store::update(&self.record_path(), over);
        }
        why
    }

    /// What has become of an open turn. What is new of it is noted for everybody.
    fn follow(
        &self,
        journal: &Journal,
        turn: TurnRecord,
        seen: &Glimpse,
    ) -> Result<TurnRecord, TerminalError> {
        let status = seen.reading.status;
        let end = |how, warning: Option<String>| {
            journal.ended(turn.id, how, warning.clone());
            let noted = journal.last().filter(|last| last.id == turn.id && !last.is_open());
            // On a full disk it is over all the same.
            Ok(noted.unwrap_or_else(|| turn.clone().over(how, warning)))
        };
        if status == Status::Exited {
            return end(How::Exited, Some("The agent ended before it had answered.".to_owned()));
        }
        if turn.is_on_its_way() {
            return Ok(turn);
        }
        let session = session_of(&self.record()?);
        let said =
            || session.as_deref().map(|session| SessionTurn::since(session, turn.sent)).unwrap_or_default();
        // Whoever sent it may have ended in the moment between its arrival and the note of that.
        let arrived = |turn: &TurnRecord| turn.begun.is_some() || seen.works || said().queries > 0;
        let Some(taken) = turn.taken.or_else(|| arrived(&turn).then_some(turn.sent)) else {
            return end(How::Lost, Some("Whoever sent the message ended before it had arrived.".to_owned()));
        };
        if turn.begun.is_none() && (seen.works || status == Status::Waiting) {
            journal.begun(turn.id);
        }
        let unanswered = seen.unanswered && !seen.works && seen.quiet > UNANSWERED;
        if !Until::Idle.is_met(status) && !unanswered {
            return Ok(turn);
        }
        let said = said();
        if turn.begun.is_none() && said.queries > 0 {
            // Whether it has ended, the next look tells.
            journal.begun(turn.id);
            return Ok(turn);
        }
        if turn.begun.is_none() {
            // What was given to the launch waits for the whole start, and then for the servers.
            let waited = age(taken.max(self.record()?.ready.unwrap_or(taken)));
            let lost = waited > LOST && seen.quiet > STANDS_IN_SILENCE;
            return if lost {
                end(How::Lost, Some("Nothing came of the message.".to_owned()))
            } else {
                Ok(turn)
            };
        }
        if seen.quiet < said.patience() {
            return Ok(turn);
        }
        let (how, warning) = if said.queries > 0 { said.ending() } else { ending_on_screen(&seen.reading) };
        end(how, warning)
    }
}

/// How a turn ended, where there is no session to ask.
fn ending_on_screen(reading: &Reading) -> (How, Option<String>) {
    match (&reading.error, &reading.message) {
        (Some(error), _) => (how_of(error), Some(error.clone())),
        (None, Some(_)) => (How::Answered, None),
        (None, None) => (How::Empty, Some("The model returned no text.".to_owned())),
    }
}

fn with_turn(reading: Reading, turn: &TurnRecord) -> Reading {
    let reading = Reading { turn: Some(turn.note()), ..reading };
    match (&turn.ended, reading.status) {
        (None, Status::Waiting | Status::Exited) => reading,
        (None, _) => {
            // What the screen has may be the answer to the turn before.
            let message = reading.message.filter(|_| turn.begun.is_some());
            Reading { status: Status::Processing, message, error: None, ..reading }
        }
        // A query that nothing came after.
        (Some(end), Status::Processing) if end.how == How::Empty => {
            Reading { status: Status::Idle, warning: end.warning.clone(), ..reading }
        }
        (Some(end), status) if Until::Idle.is_met(status) || status == Status::Exited => {
            Reading { warning: end.warning.clone(), ..reading }
        }
        // Somebody else gave it something to do.
        (Some(_), _) => reading,
    }
}

/// Whether the CLI runs is the system's word. While it does, a screen that looks like its end is one that is being drawn.
fn with_process(reading: Reading, title: &str, record: &Record) -> Reading {
    let lives = record.cli.is_some_and(Process::alive);
    if !lives && (reading.status == Status::Exited || record.agent.is_none_or(|agent| !agent.alive())) {
        return Reading::of(Status::Exited);
    }
    match reading.status {
        Status::Unknown | Status::Exited if title.starts_with('✦') => Reading::of(Status::Processing),
        // A screen that is being drawn anew.
        Status::Unknown | Status::Exited if title.starts_with('◇') && record.has_been_ready() => {
            Reading::of(Status::Idle)
        }
        Status::Unknown | Status::Exited if is_young(record) => Reading::of(Status::Starting),
        Status::Exited => Reading::of(Status::Unknown),
        _ => reading,
    }
}

fn is_young(record: &Record) -> bool {
    !record.has_been_ready() && record.started.is_some_and(|started| age(started) < LONGEST_START)
}

fn age(moment: Timestamp) -> Duration {
    let millis = Timestamp::now().as_millis() - moment.as_millis();
    Duration::from_millis(u64::try_from(millis).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_that_nothing_came_after_is_no_work_where_the_title_has_said_so_for_a_while() {
        let seen = |ready: bool, millis: u64| {
            let quiet = Duration::from_millis(millis);
            let reading = Reading::of(Status::Processing);
            Glimpse { reading, quiet, works: false, ready, unanswered: true }.at_rest().reading.status
        };
        assert_eq!(seen(true, 5_000), Status::Idle);
        assert_eq!((seen(true, 100), seen(false, 5_000)), (Status::Processing, Status::Processing));
    }

    #[test]
    fn one_look_proves_the_end_of_a_turn_only_where_everything_agrees() {
        let root = tempfile::tempdir().unwrap();
        let journal = Journal::beside(&root.path().join("t.json"));
        journal.send("hello").unwrap();
        let open = journal.last().unwrap();
        let over = |how| open.clone().over(how, None);
        let seen = |status, millis, ready| Glimpse {
            reading: Reading::of(status),
            quiet: Duration::from_millis(millis),
            works: false,
            ready,
            unanswered: false,
        };
        assert!(seen(Status::Completed, 100, true).proves_the_end_of(&over(How::Answered)));
        // The turn goes on; it has ended, and nobody knows with what; the screen lacks the answer, or has just been drawn, or
        // its title lacks a word.
        assert!(!seen(Status::Completed, 5_000, true).proves_the_end_of(&open));
        assert!(!seen(Status::Completed, 5_000, true).proves_the_end_of(&over(How::Empty)));
        assert!(!seen(Status::Idle, 5_000, true).proves_the_end_of(&over(How::Answered)));
        assert!(!seen(Status::Completed, 30, true).proves_the_end_of(&over(How::Answered)));
        assert!(!seen(Status::Completed, 5_000, false).proves_the_end_of(&over(How::Answered)));
    }
}
