//! The account of a run: all that is told of it goes through here into the interpreter, is recorded, and waits to be
//! handed out. Whoever runs something, by whatever transport, fills one.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use alhena_model::{
    Change, End, Event, EventKind, Fact, Failure, Input, Interpreter, Outcome, Source, Timestamp,
};
use alhena_sys::growth::Growth;
use alhena_wire::frame::Frame;

use crate::acp::responses::Responses;
use crate::answer::Desk;
use crate::budget::Meter;
use crate::changes::ScanOptions;
use crate::disk::Disk;
use crate::finish::Finishes;
use crate::home::Finished;
use crate::hooks::Audit;
use crate::neighbours::{Neighbours, Others};
use crate::recording::Recorder;
use crate::request::ResolvedRequest;
use crate::run::{Item, Sessions};
use crate::tail::SessionTail;
use crate::telemetry;
use crate::ward::Ward;

/// How often to look where the system does not tell when a file grows.
pub(crate) const NOBODY_TELLS: Duration = Duration::from_millis(10);

pub(crate) struct Account {
    pub interpreter: Interpreter,
    pub recorder: Option<Recorder>,
    pub disk: Disk,
    /// The session file, where the run has a home of its own.
    pub session: Option<SessionTail>,
    /// Other runs in the folder; none when that cannot be said.
    pub neighbours: Option<Neighbours>,
    /// What people should know, until there is a time to say it.
    pub warnings: Vec<String>,
    pub dir: PathBuf,
    pub since: SystemTime,
    /// Whether the CLI's own lines are handed out too.
    pub raw_lines: bool,
    /// How many lines there were so far.
    pub lines: u64,
    /// What has not been handed out.
    pub waiting: VecDeque<Item>,
    /// Compares the run with the decisions of its hooks.
    pub audit: Option<Audit>,
}

impl Account {
    /// The only way into the interpreter for all but lines: what is fed is recorded.
    pub(crate) fn feed(&mut self, input: Input<'_>) {
        if let Some(recorder) = &mut self.recorder {
            recorder.input(&input, self.lines);
        }
        self.tell(input);
        self.ask_disk();
    }

    /// Feeds a line, as the input that it is, and hands it out as it stands where that is wanted. Whoever has it has recorded it.
    pub(crate) fn line<'a>(&mut self, frame: Frame<'a>, read: impl FnOnce(Frame<'a>) -> Input<'a>) {
        self.lines += 1;
        if let (true, Frame::Line(line)) = (self.raw_lines, &frame) {
            self.waiting.push_back(Item::Line(line.to_vec()));
        }
        self.tell(read(frame));
    }

    fn tell(&mut self, input: Input<'_>) {
        let mut out: Vec<Event> = Vec::new();
        self.interpreter.feed(input, &mut out);
        if let Some(audit) = &mut self.audit {
            out.iter().for_each(|event| audit.event(event));
        }
        self.waiting.extend(out.into_iter().map(Item::Event));
    }

    /// The disk's word on the file that a result waits for.
    pub(crate) fn ask_disk(&mut self) {
        if let Some(path) = self.interpreter.wanted_file().map(str::to_owned) {
            let state = self.disk.look(&path);
            self.feed(Input::Disk { path, state });
        }
    }

    /// The time for what carries none of its own.
    pub(crate) fn tick(&mut self) {
        self.feed(Input::Time(Timestamp::now()));
    }

    /// Feeds prices and spending limits, before anything else.
    pub(crate) fn take_prices(&mut self, request: &ResolvedRequest, meter: Option<&Arc<Meter>>) {
        if let Some(prices) = &request.prices {
            self.feed(Input::Prices(Box::new(prices.clone())));
        }
        if let Some(meter) = meter {
            self.feed(Input::SpendingLimits(meter.budget().spending_limits()));
        }
    }

    /// Returns true, once, if something was done without a decision, so that the run has to be stopped.
    pub(crate) fn hear_audit(&mut self) -> bool {
        let wrong = self.audit.as_mut().and_then(Audit::wrong);
        let found = wrong.is_some();
        wrong.into_iter().for_each(|wrong| self.feed(Input::Halted(wrong)));
        found
    }

    fn feed_fact(&mut self, fact: Fact) {
        if let Some(audit) = &mut self.audit {
            audit.fact(&fact);
        }
        self.feed(Input::Fact(fact));
    }

    /// Says what people should know.
    pub(crate) fn warn_all(&mut self) {
        for warning in std::mem::take(&mut self.warnings) {
            self.feed(Input::Warning(warning));
        }
    }

    /// What the meter says while the run goes on.
    pub(crate) fn hear_meter(&mut self, ward: &Ward) {
        for warning in ward.run_dir.meter().map(|meter| meter.news()).unwrap_or_default() {
            self.feed(Input::Warning(warning));
        }
    }

    /// What was wrong with an answer while the turn goes on. Over ACP the CLI tells nobody that it was made to go on (0.61.0).
    pub(crate) fn hear_desk(&mut self, ward: &Ward) {
        for warning in ward.run_dir.desk().map(Desk::news).unwrap_or_default() {
            self.feed(Input::Warning(warning));
        }
    }

    /// The last words of who counts, of who decides, and of who takes answers.
    pub(crate) fn settle(&mut self, ward: &Ward) {
        self.settle_meter(ward);
        self.tail();
        self.hear_audit();
        if let Some(why) = ward.run_dir.halted() {
            self.feed(Input::Halted(why));
        }
        if let Some(desk) = ward.run_dir.desk() {
            let answered = desk.close(self.interpreter.last_text());
            self.feed(Input::Answered(Box::new(answered)));
        }
    }

    fn settle_meter(&mut self, ward: &Ward) {
        let Some(meter) = ward.run_dir.meter() else { return };
        let (news, why) = meter.settle();
        news.into_iter().for_each(|warning| self.feed(Input::Warning(warning)));
        if let Some(why) = why {
            self.feed(Input::OverBudget(why));
        }
    }

    /// What the session file says and the stream does not.
    pub(crate) fn read_session(&mut self) {
        if let Some(session) = self.tail() {
            session.read_on();
            self.feed_rest_of_session();
            self.wait_no_longer();
        }
    }

    /// The session file, once it is known which one that is.
    fn tail(&mut self) -> Option<&mut SessionTail> {
        let (session, id) = (self.session.as_mut()?, self.interpreter.session_id()?);
        session.session(id);
        for call in session.calls_of_sub_agents() {
            if let (Some(audit), Some(input)) = (&mut self.audit, &call.input) {
                audit.call_of_sub_agent(&call.name, input);
            }
        }
        Some(session)
    }

    /// A result that nobody speaks of does not wait for ever.
    fn wait_no_longer(&mut self) {
        if self.interpreter.waits() {
            self.tick();
        }
    }

    /// Reads what the session file says, and feeds only what a result waits for: of an agent that is ahead of whoever listens to it,
    /// the file tells things that have not been heard of. Whether something is left for [`Self::feed_rest_of_session`].
    pub(crate) fn read_session_as_waited_for(&mut self) -> bool {
        let Some(session) = self.tail() else { return false };
        if !session.has_news() {
            session.read_on();
        }
        while self.interpreter.waits() {
            let Some(fact) = self.session.as_mut().and_then(SessionTail::next_of_news) else { break };
            self.feed_fact(fact);
        }
        self.wait_no_longer();
        self.has_more_of_session()
    }

    /// Whether something is left of what was read.
    pub(crate) fn has_more_of_session(&self) -> bool {
        self.session.as_ref().is_some_and(SessionTail::has_news)
    }

    /// The agent is about to be heard on a call: what the session file says before the end of that call comes first, the record of the
    /// answer that it is in for example.
    pub(crate) fn read_session_before(&mut self, call: &str) {
        let Some(session) = self.tail() else { return };
        session.read_on();
        while let Some(fact) = self.session.as_mut().and_then(|session| session.next_before(call)) {
            self.feed_fact(fact);
        }
    }

    /// Feeds what is left of what was read.
    pub(crate) fn feed_rest_of_session(&mut self) {
        while let Some(fact) = self.session.as_mut().and_then(SessionTail::next_of_news) {
            self.feed_fact(fact);
        }
    }

    /// The session file is complete.
    pub(crate) fn read_session_to_its_end(&mut self) {
        if let Some(session) = &mut self.session {
            session.catch_up();
        }
        self.read_session();
        self.feed(Input::SessionEnded);
    }

    /// Tells the others in the folder what the tools of the run have written.
    pub(crate) fn claim(&mut self) {
        if let Some(neighbours) = &mut self.neighbours {
            neighbours.claim(self.interpreter.claimed_files());
        }
    }

    /// All that is waited for to grow.
    pub(crate) fn session_growth(&self) -> Option<&Growth> {
        self.session.as_ref().map(SessionTail::growth)
    }

    /// How long a result can still wait for what the session file says of it.
    pub(crate) fn longest_wait_for_fact(&self) -> Option<Duration> {
        let until = self.interpreter.waits_until()?.as_millis();
        let left = u64::try_from(until.saturating_sub(Timestamp::now().as_millis())).unwrap_or(0);
        // A file that is not there yet cannot be watched.
        let watched = self.session.as_ref().is_some_and(SessionTail::found);
        let left = Duration::from_millis(left.saturating_add(1));
        Some(if watched { left } else { left.min(NOBODY_TELLS) })
    }

    /// The disk's last word: on the files that tools claim, and on those that nobody does.
    pub(crate) fn ask_disk_at_last(&mut self, ran: bool) {
        self.tick();
        let claimed: Vec<String> =
            self.interpreter.claimed_files().iter().map(|file| file.path.clone()).collect();
        for path in claimed {
            let state = self.disk.look(&path);
            self.feed(Input::Disk { path, state });
        }
        let others = match &mut self.neighbours {
            Some(neighbours) => neighbours.part(self.interpreter.claimed_files()),
            None => Others::default(),
        };
        if self.interpreter.may_have_changed_files() && ran {
            self.scan_disk(&others);
        }
    }

    fn scan_disk(&mut self, others: &Others) {
        let claimed: Vec<PathBuf> =
            self.interpreter.claimed_files().iter().map(|file| self.dir.join(&file.path)).collect();
        let exclude = self.recorder.iter().map(|recorder| recorder.dir().to_owned()).collect();
        let options = ScanOptions { exclude, ..ScanOptions::default() };
        let found = options.scan(&self.dir, self.since);
        let all = found
            .created
            .into_iter()
            .map(|path| (path, Change::Created))
            .chain(found.modified.into_iter().map(|path| (path, Change::Modified)))
            .chain(found.deleted.into_iter().map(|path| (path, Change::Deleted)));
        let mut whose = false;
        for (path, change) in all {
            let full = self.dir.join(&path);
            if !claimed.contains(&full) && !others.wrote.contains(&full) {
                whose = others.any;
                let path = path.to_string_lossy().into_owned();
                self.feed(Input::Found { path, change });
            }
        }
        if whose {
            self.warnings.push(
                "Another run worked in this folder at the same time: files that no tool claims may be of its making"
                    .to_owned(),
            );
        }
        if found.truncated {
            let warning = "The scan for changed files was cut short; not all changes are listed";
            self.feed(Input::Warning(warning.to_owned()));
        }
    }

    /// What became of the sessions of the run.
    pub(crate) fn take_sessions(&mut self, finished: &Finished, sessions: &Sessions) {
        self.warnings.extend_from_slice(&finished.warnings);
        if let Some(recorder) = &mut self.recorder {
            recorder.sessions(&finished.published);
        }
        sessions.lock().clone_from(&finished.published);
    }

    /// A session that is not in the store cannot be gone on with.
    pub(crate) fn say_if_lost(&mut self, stored: &[String]) {
        let is_stored = |id: &str| stored.iter().any(|stored| stored == id);
        if self.interpreter.session_id().is_some_and(|id| !is_stored(id)) {
            self.feed(Input::SessionLost);
        }
    }

    /// What a CLI that has ended left to be heard: its telemetry, and what it complained of. False if it measured nothing.
    pub(crate) fn hear_last_of(&mut self, ward: &Ward) -> bool {
        let mut measured = telemetry::read(&ward.run_dir.path().join(telemetry::FILE));
        let mut recorded = Responses::of_ended(&ward.run_dir);
        // The recording has the API's own finish reason, but not every run can be recorded.
        let mut recorded = recorded.as_mut().map(Responses::finishes);
        if recorded.as_mut().is_some_and(|finishes| finishes.is_unreadable()) {
            self.feed(Input::FinishReasonUnavailable);
        }
        let recorded = recorded.filter(|finishes| finishes.knows_last());
        self.hear_finishes(recorded.unwrap_or(&mut measured.finishes));
        measured.aside.into_iter().for_each(|fact| self.feed(Input::Fact(fact)));
        let has_measured = !measured.statistics.is_empty();
        if has_measured {
            self.feed(Input::Statistics(Box::new(measured.statistics)));
        }
        self.warnings.extend(ward.complaints());
        let began = self.interpreter.session_id().is_some();
        if began && self.session.as_ref().is_some_and(|session| !session.found()) {
            self.warnings.push(
                "The session file never appeared: thoughts, diffs and exit codes are missing".to_owned(),
            );
        }
        self.warn_all();
        has_measured
    }

    /// How the answers of a turn ended.
    pub(crate) fn hear_finishes(&mut self, finishes: &mut Finishes) {
        if finishes.is_unreadable() {
            self.feed(Input::FinishReasonUnavailable);
        }
        let (last, warnings) = finishes.take();
        self.warnings.extend(warnings);
        if let Some(reason) = last {
            self.feed(Input::FinishReason(reason));
        }
    }

    /// What the run would have failed of if it ended now.
    pub(crate) fn would_fail_of(&mut self, end: &End) -> Option<Failure> {
        let mut out = Vec::new();
        let failure = self.interpreter.would_fail_of(end, &mut out);
        self.waiting.extend(out.into_iter().map(Item::Event));
        failure
    }

    /// The verdict: what is still to be handed out, the outcome last.
    pub(crate) fn conclude(mut self, end: &End) -> VecDeque<Item> {
        let mut out = Vec::new();
        let said = self.interpreter.take_conversation(&mut out);
        self.waiting.extend(out.drain(..).map(Item::Event));
        self.waiting.extend(said.map(|said| Item::Conversation(Box::new(said))));
        let outcome = self.interpreter.conclude(end, &mut out);
        let unwhole = self.recorder.and_then(|recorder| recorder.finish(end, &outcome, self.lines));
        if let Some(warning) = unwhole {
            warn_at_last(&outcome, warning, &mut out);
        }
        self.waiting.extend(out.into_iter().map(Item::Event));
        self.waiting
    }
}

/// A recording that is not whole is no failure of the run, but it has to be said: the last event is the outcome, and it
/// gets the warning too.
fn warn_at_last(outcome: &Outcome, warning: String, out: &mut Vec<Event>) {
    let Some(mut last) = out.pop() else { return };
    let mut outcome = outcome.clone();
    outcome.warnings.push(warning.clone());
    out.push(Event {
        source: Source::Derived,
        kind: EventKind::Warning { message: warning },
        ..last.clone()
    });
    last.seq += 1;
    last.kind = EventKind::Finished { outcome: Arc::new(outcome) };
    out.push(last);
}
