//! Answering dialogs, and interrupting what an agent does.
//!
//! A key that is pressed twice may land in the next dialog and allow what nobody has seen. So each key is pressed once, and
//! what it does is seen before the next. In a question of 0.61.0 a number chooses, or ticks where several may be chosen;
//! a paste goes to the option with a text of one's own, whichever is marked.

use std::time::{Duration, Instant};

use alhena_model::Timestamp;

use crate::error::{TerminalError, TerminalErrorKind};
use crate::screen::{Choice, Reading, Status, Waiting, WaitingFor};
use crate::store::Phase;
use crate::terminal::{History, Live, Terminal, Until, status_name};
use crate::typing::{AFTER_PASTE, Force, OTHERS, PATIENCE, settle};
use crate::wording::cleaned;

/// How long a list takes a digit for the first of a number.
const DIGITS: Duration = Duration::from_millis(1500);
/// How long a list takes to show that its mark has moved.
const MOVED: Duration = Duration::from_secs(3);
/// How long the CLI may take to start again, if it does.
const RESTART: Duration = Duration::from_secs(5);
/// What follows the options of a question with several answers.
const DONE: &str = "Done";
/// How many options may be out of sight.
const MORE: usize = 20;

/// An answer to a dialog.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reply {
    /// Options, each by its number or the beginning of its label.
    pub choose: Vec<String>,
    /// A text of one's own; to an approval, a word of feedback.
    pub text: Option<String>,
}

impl Reply {
    fn of(waiting: &Waiting, answer: &str) -> Self {
        match waiting.options.is_empty() {
            true => Reply { text: Some(answer.to_owned()), ..Reply::default() },
            false => Reply { choose: vec![answer.to_owned()], ..Reply::default() },
        }
    }
}

impl Terminal {
    /// Answers a dialog: by the number of an option, by the beginning of its label, or, where text is asked for, by that.
    pub fn answer(&self, answer: &str) -> Result<Reading, TerminalError> {
        self.answer_by(None, |waiting| Reply::of(waiting, answer))
    }

    /// The same, but only to the dialog that was seen: another one is not answered.
    pub fn answer_seen(&self, seen: &Waiting, answer: &str) -> Result<Reading, TerminalError> {
        self.answer_by(Some(seen), |waiting| Reply::of(waiting, answer))
    }

    /// Answers a dialog with several options, or with a text of one's own. What goes with an approval is sent as a message
    /// when the agent can take it: at once after a refusal, and queued by the CLI after a permission.
    pub fn reply(&self, reply: &Reply) -> Result<Reading, TerminalError> {
        self.answer_by(None, |_| reply.clone())
    }

    /// The same, but only to the dialog that was seen: another one is not answered.
    pub fn reply_seen(&self, seen: &Waiting, reply: &Reply) -> Result<Reading, TerminalError> {
        self.answer_by(Some(seen), |_| reply.clone())
    }

    fn answer_by(
        &self,
        seen: Option<&Waiting>,
        reply: impl FnOnce(&Waiting) -> Reply,
    ) -> Result<Reading, TerminalError> {
        let lock = self.terminals.inner.store.lock_typing(self.id(), OTHERS)?;
        let reading = self.status()?;
        let Some(waiting) = reading.waiting_for.filter(|_| reading.status == Status::Waiting) else {
            return Err(self.asks_nothing(reading.status));
        };
        if seen.is_some_and(|seen| !seen.asks_the_same(&waiting)) {
            let message = format!("{} asks something else by now: {}", self.name(), waiting.question);
            return Err(TerminalError::new(TerminalErrorKind::NotReady, message)
                .with_hint("Nothing was answered. Look at what it asks now, and answer that."));
        }
        self.check_approval()?;
        let live = self.live()?;
        let list = List::of(&live.capture_pane(History::None)?.text);
        let plan = Plan::of(&waiting, &reply(&waiting), list)?;
        let started = self.record()?.started;
        for number in plan.numbers() {
            let label = self.reveal(&live, number, plan.has_text())?;
            self.check_option(&waiting, &label)?;
        }
        match &plan {
            Plan::Choose(number, _) => {
                self.choose(&live, &waiting, *number)?;
                if waiting.kind == WaitingFor::Trust {
                    self.wait_for_restart(started)?;
                }
            }
            Plan::Tick(numbers, None) => {
                self.tick(&live, numbers)?;
                self.finish(&live)?;
            }
            Plan::Tick(numbers, Some(text)) => {
                self.tick(&live, numbers)?;
                self.write(&live, text)?;
            }
            Plan::Write(text) => self.write(&live, text)?,
            Plan::Confirm => self.confirm(&live)?,
        }
        drop(lock);
        if let Plan::Choose(number, Some(feedback)) = &plan {
            let refused = |option: &&Choice| option.number == *number && option.label.starts_with("No");
            let refused = waiting.options.iter().find(refused).is_some();
            return self.give_feedback(feedback, refused);
        }
        self.status()
    }

    fn asks_nothing(&self, status: Status) -> TerminalError {
        let line = |command: &str, more: &[&str]| self.command_line(command, more);
        let hint = match status {
            Status::Exited => return self.exited(),
            Status::Processing => {
                format!(
                    "`{}` waits until it asks or is done, `{}` stops it.",
                    line("wait", &[]),
                    line("interrupt", &[])
                )
            }
            Status::Idle | Status::Completed | Status::Error => {
                format!("`{}` sends it a message.", line("send", &["TEXT"]))
            }
            Status::Starting | Status::Waiting | Status::Unknown => {
                format!(
                    "`{}` waits until it is ready, `{}` shows it.",
                    line("wait", &[]),
                    line("attach", &[])
                )
            }
        };
        let message = format!("{} asks nothing: it is {}", self.name(), status_name(status));
        TerminalError::new(TerminalErrorKind::NotReady, message).with_hint(hint)
    }

    /// A refusal ends the turn, which takes a moment; after a permission the CLI queues what is sent.
    fn give_feedback(&self, text: &str, refused: bool) -> Result<Reading, TerminalError> {
        let sent = match refused {
            true => self.wait(Until::Settled, PATIENCE).and_then(|_| self.send(text, Force::OnlyWhenReady)),
            false => self.send(text, Force::Anyway),
        };
        match sent {
            Ok(_) => self.status(),
            Err(error) => {
                let message = format!("it was answered, but the text was not sent: {}", error.message);
                Err(TerminalError { message, ..error })
            }
        }
    }

    /// After a decision about trust 0.61.0 shows its prompt for a moment, and starts again.
    fn wait_for_restart(&self, started: Option<Timestamp>) -> Result<(), TerminalError> {
        let deadline = Instant::now() + RESTART;
        while Instant::now() < deadline {
            let record = self.record()?;
            if record.started != started || record.phase == Phase::Ended {
                break;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// Moves the mark until an option is in sight, and returns its label: what a number does that nobody has seen is not known, and the option for a
    /// text of one's own takes every key as text.
    fn reveal(&self, live: &Live, number: u32, has_text: bool) -> Result<String, TerminalError> {
        for _ in 0..=MORE {
            let Some(now) = self.dialog()? else { return Err(self.not_answered(live)) };
            match now.options.iter().find(|option| option.number == number) {
                Some(option) if option.label == OWN && !has_text && option.checked.is_some() => {
                    return Err(needs_text());
                }
                Some(option) => return Ok(option.label.clone()),
                None => {}
            }
            let above = now.options.first().is_some_and(|first| number < first.number);
            live.press(if above { "Up" } else { "Down" })?;
            let after = self.wait_for_dialog(live, MOVED, |after| after != Some(&now))?;
            let mark = |waiting: &Waiting| {
                let marked = waiting.options.iter().find(|option| option.selected);
                marked.map_or(u32::MAX, |option| option.number)
            };
            let goes_on =
                after.is_some_and(
                    |after| if above { mark(&after) < mark(&now) } else { mark(&after) > mark(&now) },
                );
            if !goes_on {
                return Err(not_an_option(&now, &number.to_string()));
            }
        }
        Err(self.not_answered(live))
    }

    /// Chooses one option. A number alone does; where it only moves the mark, Enter does.
    fn choose(&self, live: &Live, waiting: &Waiting, number: u32) -> Result<(), TerminalError> {
        let Some(before) = self.dialog()?.filter(|now| is_same(now, waiting)) else { return Ok(()) };
        press_number(live, number)?;
        let after = self.wait_for_dialog(live, PATIENCE, |now| now != Some(&before))?;
        let goes_on = |now: Option<&Waiting>| now.is_some_and(|now| is_same(now, waiting));
        if !goes_on(after.as_ref()) {
            return Ok(());
        }
        let after = self.wait_for_dialog(live, DIGITS, |now| !goes_on(now))?;
        let is_marked =
            |now: &Waiting| now.options.iter().any(|option| option.number == number && option.selected);
        match after.filter(|now| is_same(now, waiting)) {
            None => Ok(()),
            Some(now) if now != before && is_marked(&now) => self.confirm(live),
            Some(_) => Err(self.not_answered(live)),
        }
    }

    /// Ticks these options and no others. A long list shows only a part of itself, and moves to what is chosen.
    fn tick(&self, live: &Live, numbers: &[u32]) -> Result<(), TerminalError> {
        let ticked = |now: Option<&Waiting>, number: u32| {
            now.and_then(|now| now.options.iter().find(|option| option.number == number)?.checked)
        };
        let set = |number: u32, wanted: bool| -> Result<(), TerminalError> {
            press_number(live, number)?;
            let is_done = |now: Option<&Waiting>| ticked(now, number) == Some(wanted);
            match is_done(self.wait_for_dialog(live, PATIENCE, is_done)?.as_ref()) {
                true => Ok(()),
                false => Err(self.not_answered(live)),
            }
        };
        loop {
            let now = self.dialog()?;
            let unwanted =
                |option: &&Choice| option.checked == Some(true) && !numbers.contains(&option.number);
            let Some(other) = now.iter().flat_map(|now| &now.options).find(unwanted) else { break };
            set(other.number, false)?;
        }
        for number in numbers {
            if ticked(self.dialog()?.as_ref(), *number) != Some(true) {
                set(*number, true)?;
            }
        }
        Ok(())
    }

    /// Goes down to the end of the list, which has no number, and presses Enter there.
    fn finish(&self, live: &Live) -> Result<(), TerminalError> {
        let options = self.dialog()?.map(|now| now.options.len()).unwrap_or_default();
        let is_done =
            |line: &str| line.split_once('●').is_some_and(|(_, rest)| rest.trim_matches(['│', ' ']) == DONE);
        let is_there = |text: &str| text.lines().any(is_done);
        for _ in 0..options + MORE {
            let seen = live.capture_pane(History::None)?.text;
            if is_there(&seen) {
                return self.confirm(live);
            }
            live.press("Down")?;
            self.wait_for_screen(live, |text| text != seen)?;
            settle(live);
        }
        Err(self.not_answered(live))
    }

    /// Gives a text of one's own. The blank in front, which the CLI trims, keeps a digit from being a choice.
    fn write(&self, live: &Live, text: &str) -> Result<(), TerminalError> {
        let (text, _) = cleaned(text);
        let before = occurrences(&live.capture_pane(History::None)?.text, &text);
        self.paste(live, &format!(" {}", text.trim()))?;
        // Enter before that would choose what is marked.
        if !self.wait_for_screen(live, |now| occurrences(now, &text) > before)? {
            return Err(self.not_answered(live));
        }
        settle(live);
        std::thread::sleep(AFTER_PASTE);
        self.confirm(live)
    }

    fn confirm(&self, live: &Live) -> Result<(), TerminalError> {
        let before = self.dialog()?;
        live.press("Enter")?;
        let after = self.wait_for_dialog(live, PATIENCE, |now| now != before.as_ref())?;
        if after == before {
            return Err(self.not_answered(live));
        }
        settle(live);
        Ok(())
    }

    fn not_answered(&self, live: &Live) -> TerminalError {
        let screen = live.capture_pane(History::None).map(|look| look.text).unwrap_or_default();
        self.not_taken("the dialog does not take the answer").screen(&screen)
    }

    fn wait_for_screen(&self, live: &Live, wanted: impl Fn(&str) -> bool) -> Result<bool, TerminalError> {
        live.watch(Instant::now() + PATIENCE, DIGITS, |late| {
            let found = wanted(&live.capture_pane(History::None)?.text);
            Ok((found || late || self.is_over()?).then_some(found))
        })
    }

    fn wait_for_dialog(
        &self,
        live: &Live,
        limit: Duration,
        wanted: impl Fn(Option<&Waiting>) -> bool,
    ) -> Result<Option<Waiting>, TerminalError> {
        live.watch(Instant::now() + limit, Duration::from_millis(200), |late| {
            let now = self.dialog()?;
            Ok((wanted(now.as_ref()) || late || self.is_over()?).then_some(now))
        })
    }

    fn dialog(&self) -> Result<Option<Waiting>, TerminalError> {
        Ok(self.status_now()?.waiting_for)
    }

    /// Interrupts what the agent does, by Escape, and waits until it takes a prompt again. An agent that does nothing is
    /// left alone: there Escape means other things.
    pub fn interrupt(&self, timeout: Duration) -> Result<Reading, TerminalError> {
        let _lock = self.terminals.inner.store.lock_typing(self.id(), OTHERS)?;
        self.interrupt_unlocked(timeout)
    }

    pub(crate) fn interrupt_unlocked(&self, timeout: Duration) -> Result<Reading, TerminalError> {
        let deadline = Instant::now() + timeout;
        loop {
            let reading = self.status()?;
            if !matches!(reading.status, Status::Processing | Status::Waiting | Status::Starting) {
                return Ok(reading);
            }
            if Instant::now() >= deadline {
                return Err(TerminalError::new(
                    TerminalErrorKind::Timeout,
                    format!("{} does not stop", self.name()),
                )
                .with_hint(format!("`{}` ends it.", self.command_line("kill", &[]))));
            }
            let live = self.live()?;
            match reading.waiting_for.as_ref().and_then(stop_of) {
                // Escape does nothing there.
                Some(number) => live.press(&number.to_string())?,
                None => live.press("Escape")?,
            }
            let patience = deadline.saturating_duration_since(Instant::now()).min(Duration::from_secs(2));
            match self.wait(Until::Idle, patience) {
                Err(error) if error.kind != TerminalErrorKind::Timeout => return Err(error),
                _ => {}
            }
        }
    }
}

/// How often the end of a text is on the screen, or a paste that the CLI does not show.
fn occurrences(screen: &str, text: &str) -> usize {
    let letters = |text: &str| text.chars().filter(|c| c.is_alphanumeric()).collect::<String>();
    let last = letters(text.trim_end().lines().last().unwrap_or_default());
    let end: String = last.chars().skip(last.chars().count().saturating_sub(12)).collect();
    let pasted = screen.matches("[Pasted Text: ").count();
    match end.is_empty() {
        true => pasted + screen.matches(text.trim()).count(),
        false => pasted + letters(screen).matches(&end).count(),
    }
}

fn is_same(one: &Waiting, other: &Waiting) -> bool {
    (&one.question, &one.detail) == (&other.question, &other.detail)
}

fn press_number(live: &Live, number: u32) -> Result<(), TerminalError> {
    number.to_string().chars().try_for_each(|digit| live.press(&digit.to_string()))
}

/// The option of a dialog about the model or its quota that gives the turn up.
fn stop_of(waiting: &Waiting) -> Option<u32> {
    let asks = matches!(waiting.kind, WaitingFor::Model | WaitingFor::Quota);
    waiting.options.iter().find(|option| asks && option.label == "Stop").map(|option| option.number)
}

/// The option for a text of one's own, as long as there is none.
pub(super) const OWN: &str = "Enter a custom value";

/// What submits the answers to several questions.
const SUBMIT: &str = "submit";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Plan {
    /// One option, and a word to go with it.
    Choose(u32, Option<String>),
    /// Several options, and a text of one's own.
    Tick(Vec<u32>, Option<String>),
    Write(String),
    /// What was answered before.
    Confirm,
}

pub(super) fn needs_text() -> TerminalError {
    TerminalError::usage("that option needs a text", "Give a `text`, too.")
}

impl Waiting {
    /// Whether it shows what was answered, to be submitted.
    #[must_use]
    pub fn is_review(&self) -> bool {
        self.options.is_empty() && self.question.starts_with("Review your answers")
    }
}

impl Plan {
    pub(super) fn numbers(&self) -> Vec<u32> {
        match self {
            Plan::Choose(number, _) => vec![*number],
            Plan::Tick(numbers, _) => numbers.clone(),
            Plan::Write(_) | Plan::Confirm => Vec::new(),
        }
    }

    pub(super) fn has_text(&self) -> bool {
        matches!(self, Plan::Tick(_, Some(_)))
    }

    pub(super) fn of(waiting: &Waiting, reply: &Reply, list: List) -> Result<Self, TerminalError> {
        let refused = |message: &str, hint: &str| Err(TerminalError::usage(message, hint));
        let text = reply.text.clone().filter(|text| !text.trim().is_empty());
        let mut numbers =
            reply.choose.iter().map(|one| chosen(waiting, one, list)).collect::<Result<Vec<u32>, _>>()?;
        numbers.sort_unstable();
        numbers.dedup();
        let several = waiting.options.iter().any(|option| option.checked.is_some());
        let own = waiting.options.iter().find(|option| option.label == OWN).map(|option| option.number);
        let is_own = |numbers: &[u32]| own.is_some_and(|own| numbers.contains(&own));
        match (numbers.as_slice(), text) {
            ([], None) => refused("there is no answer", "Give the number of an option, or a text."),
            ([], Some(text)) if waiting.is_review() => match text.trim().to_lowercase().as_str() {
                SUBMIT | "yes" | "y" => Ok(Plan::Confirm),
                _ => refused(
                    "the answers can only be submitted as they are",
                    "Answer `submit`, or interrupt the agent to take it all back.",
                ),
            },
            ([], Some(text)) if waiting.options.is_empty() => Ok(Plan::Write(text)),
            (numbers, None) if several && is_own(numbers) => Err(needs_text()),
            (_, text) if several => Ok(Plan::Tick(numbers, text)),
            ([], Some(text)) if waiting.kind == WaitingFor::Question => Ok(Plan::Write(text)),
            ([number], Some(text)) if waiting.kind == WaitingFor::ToolApproval => {
                Ok(Plan::Choose(*number, Some(text)))
            }
            ([number], None) => Ok(Plan::Choose(*number, None)),
            (_, None) => refused("the dialog takes one option", "Choose one by its number."),
            ([], Some(_)) => refused("the dialog takes no text", "Choose an option by its number."),
            (_, Some(_)) => refused("the dialog takes an option or a text, not both", "Give one of them."),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum List {
    Whole,
    /// There are more above or below.
    Part,
}

impl List {
    pub(super) fn of(screen: &str) -> Self {
        let arrow = |line: &str| ["▲", "▼"].contains(&line.trim_matches(['│', ' ']));
        if screen.lines().any(arrow) { List::Part } else { List::Whole }
    }
}

fn chosen(waiting: &Waiting, answer: &str, list: List) -> Result<u32, TerminalError> {
    let wanted = answer.trim().to_lowercase();
    let by_number = wanted.parse::<u32>().ok();
    if let (Some(number @ 1..=99), List::Part) = (by_number, list) {
        return Ok(number);
    }
    let mut fitting = waiting.options.iter().filter(|option| match by_number {
        Some(number) => option.number == number,
        None => !wanted.is_empty() && option.label.to_lowercase().starts_with(&wanted),
    });
    match (fitting.next(), fitting.next()) {
        (Some(option), None) => Ok(option.number),
        _ => Err(not_an_option(waiting, answer)),
    }
}

pub(super) fn not_an_option(waiting: &Waiting, answer: &str) -> TerminalError {
    let options: Vec<String> =
        waiting.options.iter().map(|option| format!("{}. {}", option.number, option.label)).collect();
    let hint = match options.as_slice() {
        [] => "It takes a text.".to_owned(),
        options => format!("Choose by number: {}.", options.join("; ")),
    };
    TerminalError::usage(format!("{answer:?} is not one of the options of {:?}", waiting.question), hint)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::TerminalErrorKind;

    #[test]
    fn a_text_is_seen_by_its_end_wherever_it_is_wrapped() {
        let screen = "│ > some words of my │\n│   own, at last     │";
        assert_eq!(occurrences(screen, "some words of my own, at last"), 1);
        assert_eq!(occurrences(screen, "some words"), 1);
        assert_eq!(occurrences(screen, "others"), 0);
        assert_eq!(occurrences("> ?!", "?!"), 1);
    }

    fn plan(waiting: &Waiting, choose: &[&str], text: Option<&str>) -> Result<Plan, TerminalErrorKind> {
        let choose = choose.iter().map(|one| (*one).to_owned()).collect();
        Plan::of(waiting, &Reply { choose, text: text.map(str::to_owned) }, List::Whole)
            .map_err(|error| error.kind)
    }

    #[test]
    fn an_answer_names_one_option() {
        let approval = Waiting::asking(
            WaitingFor::ToolApproval,
            &["Allow once", "Allow for this session", "No (esc)"],
            None,
        );
        assert_eq!(plan(&approval, &[" 2 "], None), Ok(Plan::Choose(2, None)));
        assert_eq!(plan(&approval, &["no"], Some("why")), Ok(Plan::Choose(3, Some("why".to_owned()))));
        for wrong in ["4", "allow", "", "yes"] {
            assert_eq!(plan(&approval, &[wrong], None), Err(TerminalErrorKind::Usage), "{wrong}");
        }
        assert_eq!(plan(&approval, &["1", "2"], None), Err(TerminalErrorKind::Usage));
        assert_eq!(plan(&approval, &[], Some("text")), Err(TerminalErrorKind::Usage));
        assert_eq!(plan(&approval, &[], None), Err(TerminalErrorKind::Usage));
    }

    #[test]
    fn a_number_that_is_out_of_sight_can_be_chosen() {
        let part = Waiting::asking(WaitingFor::Question, &["Red", "Blue"], Some(false));
        let reply = Reply { choose: vec!["7".to_owned()], text: None };
        assert_eq!(Plan::of(&part, &reply, List::Part), Ok(Plan::Tick(vec![7], None)));
        assert!(Plan::of(&part, &reply, List::Whole).is_err());
        assert_eq!(List::of("│ ▲   │\n│ ● 1. Red │"), List::Part);
        assert_eq!(List::of("│ ● 1. ▲ Red │"), List::Whole);
    }

    #[test]
    fn a_question_takes_an_option_or_a_text_and_several_options_where_it_says_so() {
        let one = Waiting::asking(WaitingFor::Question, &["Red", "Blue", "Enter a custom value"], None);
        assert_eq!(plan(&one, &["red"], None), Ok(Plan::Choose(1, None)));
        assert_eq!(plan(&one, &[], Some("5")), Ok(Plan::Write("5".to_owned())));
        assert_eq!(plan(&one, &["1"], Some("5")), Err(TerminalErrorKind::Usage));
        let labels = ["Red", "Blue", "All of the above", "Enter a custom value"];
        let several = Waiting::asking(WaitingFor::Question, &labels, Some(false));
        assert_eq!(plan(&several, &["2", "1", "2"], None), Ok(Plan::Tick(vec![1, 2], None)));
        assert_eq!(plan(&several, &["1"], Some("x")), Ok(Plan::Tick(vec![1], Some("x".to_owned()))));
        assert_eq!(plan(&several, &["all"], None), Ok(Plan::Tick(vec![3], None)));
        assert_eq!(plan(&several, &["4"], None), Err(TerminalErrorKind::Usage));
        let text = Waiting::asking(WaitingFor::Question, &[], None);
        assert_eq!(plan(&text, &[], Some("x")), Ok(Plan::Write("x".to_owned())));
        assert_eq!(plan(&text, &["1"], None), Err(TerminalErrorKind::Usage));
    }
}
