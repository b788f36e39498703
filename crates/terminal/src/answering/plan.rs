//! What has to be done for an answer: which options, which text, or why the dialog does not take it.

use super::Reply;
use crate::error::TerminalError;
use crate::screen::{Waiting, WaitingFor};

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
    use crate::screen::Choice;

    fn asks(kind: WaitingFor, labels: &[&str], checked: Option<bool>) -> Waiting {
        let options = labels.iter().zip(1..).map(|(label, number)| Choice {
            number,
            label: (*label).to_owned(),
            selected: false,
            checked,
        });
        Waiting { kind, question: "Which?".to_owned(), options: options.collect(), detail: None }
    }

    fn plan(waiting: &Waiting, choose: &[&str], text: Option<&str>) -> Result<Plan, TerminalErrorKind> {
        let choose = choose.iter().map(|one| (*one).to_owned()).collect();
        Plan::of(waiting, &Reply { choose, text: text.map(str::to_owned) }, List::Whole)
            .map_err(|error| error.kind)
    }

    #[test]
    fn an_answer_names_one_option() {
        let approval =
            asks(WaitingFor::ToolApproval, &["Allow once", "Allow for this session", "No (esc)"], None);
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
        let part = asks(WaitingFor::Question, &["Red", "Blue"], Some(false));
        let reply = Reply { choose: vec!["7".to_owned()], text: None };
        assert_eq!(Plan::of(&part, &reply, List::Part), Ok(Plan::Tick(vec![7], None)));
        assert!(Plan::of(&part, &reply, List::Whole).is_err());
        assert_eq!(List::of("│ ▲   │\n│ ● 1. Red │"), List::Part);
        assert_eq!(List::of("│ ● 1. ▲ Red │"), List::Whole);
    }

    #[test]
    fn a_question_takes_an_option_or_a_text_and_several_options_where_it_says_so() {
        let one = asks(WaitingFor::Question, &["Red", "Blue", "Enter a custom value"], None);
        assert_eq!(plan(&one, &["red"], None), Ok(Plan::Choose(1, None)));
        assert_eq!(plan(&one, &[], Some("5")), Ok(Plan::Write("5".to_owned())));
        assert_eq!(plan(&one, &["1"], Some("5")), Err(TerminalErrorKind::Usage));
        let labels = ["Red", "Blue", "All of the above", "Enter a custom value"];
        let several = asks(WaitingFor::Question, &labels, Some(false));
        assert_eq!(plan(&several, &["2", "1", "2"], None), Ok(Plan::Tick(vec![1, 2], None)));
        assert_eq!(plan(&several, &["1"], Some("x")), Ok(Plan::Tick(vec![1], Some("x".to_owned()))));
        assert_eq!(plan(&several, &["all"], None), Ok(Plan::Tick(vec![3], None)));
        assert_eq!(plan(&several, &["4"], None), Err(TerminalErrorKind::Usage));
        let text = asks(WaitingFor::Question, &[], None);
        assert_eq!(plan(&text, &[], Some("x")), Ok(Plan::Write("x".to_owned())));
        assert_eq!(plan(&text, &["1"], None), Err(TerminalErrorKind::Usage));
    }
}
