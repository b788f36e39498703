//! Where answers arrive: each is checked, and counted.

use alhena_model::Answered;
use alhena_model::answer::Schema;
use alhena_model::answer::{NONE_VALID, TAKEN};
use parking_lot::Mutex;
use serde_json::{Map, Value};

/// So much is kept of an answer that is not valid.
const LONGEST_ANSWER: usize = 64 << 10;

#[derive(Debug)]
pub(crate) struct Desk {
    schema: Schema,
    /// How often the model may try again.
    more: u32,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The first that is valid, and which call of the tool it was: calls of one turn come at once and in any order.
    valid: Option<(u64, Value)>,
    /// How often the model may still try again.
    more: u32,
    /// How often it has tried.
    tries: u32,
    /// It may not try any more.
    over: bool,
    /// The last answer that was not valid, and why.
    answer: Option<String>,
    errors: Vec<String>,
    /// All that it had said by its last answer in text: the CLI tells everything again each time.
    heard: String,
    /// What people have not been told: that the model was made to go on, and why.
    news: Vec<String>,
}

impl Desk {
    /// Takes answers; after one that is not valid, so many more.
    pub(crate) fn new(schema: Schema, more: u32) -> Self {
        Self { schema, more, state: Mutex::new(State { more, ..State::default() }) }
    }

    /// Another prompt, and another answer to it.
    pub(crate) fn begin_again(&self) {
        *self.state.lock() = State { more: self.more, ..State::default() };
    }

    pub(crate) fn schema(&self) -> &Schema {
        &self.schema
    }

    /// The model submits an answer by the call of this number: what it is told then, as a success or not.
    pub(crate) fn submit(&self, call: u64, arguments: Map<String, Value>) -> Result<String, String> {
        let shown = Value::Object(arguments.clone()).to_string();
        let checked = self.schema.submitted(arguments);
        let mut state = self.state.lock();
        if state.valid.as_ref().is_some_and(|(first, _)| *first < call) {
            return Ok("The answer was taken before; this one does not count.".to_owned());
        }
        match checked {
            Ok(data) => {
                state.valid = Some((call, data));
                Ok(TAKEN.to_owned())
            }
            Err(errors) => {
                state.wrong(&shown, errors);
                Err(state.what_is_wrong())
            }
        }
    }

    /// The model submits what cannot even be read.
    pub(crate) fn submit_unreadable(&self, why: &str) {
        self.state.lock().wrong("", vec![format!("/: {why}")]);
    }

    /// The tool has run: why all ends here, if it does.
    pub(crate) fn end(&self) -> Option<&'static str> {
        let state = self.state.lock();
        match (&state.valid, state.over) {
            (Some(_), _) => Some(TAKEN),
            (None, true) => Some(NONE_VALID),
            (None, false) => None,
        }
    }

    /// The model has ended its turn, and this is all that it said: what to tell it, if it is to go on.
    pub(crate) fn hear(&self, said: &str) -> Option<String> {
        let mut state = self.state.lock();
        if state.valid.is_some() || state.over {
            return None;
        }
        let new = said.strip_prefix(&*state.heard).unwrap_or(said).to_owned();
        state.heard = said.to_owned();
        match self.schema.told(&new) {
            Ok(data) => {
                state.valid = Some((u64::MAX, data));
                None
            }
            Err(errors) => {
                state.wrong(&new, errors);
                if state.over {
                    return None;
                }
                let wrong = state.what_is_wrong();
                state.news.push(in_short(&wrong));
                Some(wrong)
            }
        }
    }

    /// What people should know that they were not told yet, in the words that the CLI has for it where it tells them.
    pub(crate) fn news(&self) -> Vec<String> {
        let news = std::mem::take(&mut self.state.lock().news);
        news.into_iter().map(|wrong| format!("Agent execution blocked: {wrong}")).collect()
    }

    /// The run is over: what came of it. What the model said last counts where the CLI did not ask us about it.
    pub(crate) fn close(&self, last: &str) -> Answered {
        let mut state = self.state.lock();
        if state.valid.is_none() && !state.over {
            match self.schema.told(last) {
                Ok(data) => state.valid = Some((u64::MAX, data)),
                Err(errors) if state.tries == 0 => state.wrong(last, errors),
                Err(_) => {}
            }
        }
        match state.valid.take() {
            Some((_, data)) => Answered::Valid { data },
            None => Answered::Invalid {
                answer: state.answer.take(),
                errors: std::mem::take(&mut state.errors),
                tries: state.tries,
            },
        }
    }
}

/// What is wrong with an answer, for people.
pub(crate) fn in_short(wrong: &str) -> String {
    wrong.lines().take(2).collect::<Vec<_>>().join(" ")
}

impl State {
    fn wrong(&mut self, answer: &str, errors: Vec<String>) {
        self.tries += 1;
        let kept = answer.get(..answer.floor_char_boundary(LONGEST_ANSWER)).unwrap_or_default();
        self.answer = Some(kept.to_owned()).filter(|answer| !answer.trim().is_empty());
        self.errors = errors;
        match self.more.checked_sub(1) {
            Some(more) => self.more = more,
            None => self.over = true,
        }
    }

    fn what_is_wrong(&self) -> String {
        let errors: String = self.errors.iter().map(|error| format!("- {error}\n")).collect();
        format!("The answer does not fit the schema:\n{errors}Mend it, and submit the whole answer again.")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn desk(more: u32) -> Desk {
        let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
        Desk::new(Schema::new(&schema).unwrap(), more)
    }

    fn call(value: Value) -> Map<String, Value> {
        json!({"result": value, "wait_for_previous": true}).as_object().unwrap().clone()
    }

    #[test]
    fn the_first_valid_answer_counts() {
        let desk = desk(2);
        let wrong = desk.submit(1, call(json!({"n": "1"}))).unwrap_err();
        assert!(wrong.contains("- /n: "), "{wrong}");
        assert_eq!(desk.end(), None);
        desk.submit(3, call(json!({"n": 2}))).unwrap();
        desk.submit(2, call(json!({"n": 1}))).unwrap();
        desk.submit(4, call(json!({"n": "x"}))).unwrap();
        assert!(desk.end().is_some());
        assert_eq!(desk.hear("{\"n\": 3}"), None);
        assert_eq!(desk.close(""), Answered::Valid { data: json!({"n": 1}) });
    }

    #[test]
    fn an_argument_of_the_clis_own_is_no_part_of_the_answer() {
        let desk = desk(0);
        let bare = json!({"n": 1, "wait_for_previous": false}).as_object().unwrap().clone();
        desk.submit(1, bare).unwrap();
        assert_eq!(desk.close(""), Answered::Valid { data: json!({"n": 1}) });
    }

    #[test]
    fn text_is_tried_as_often_as_wanted_and_only_what_is_new_in_it() {
        let desk = desk(1);
        let first = "I say {\"n\": true}";
        assert!(desk.hear(first).is_some());
        // Said again with nothing new in it: the old one is not blamed twice.
        assert_eq!(desk.hear(&format!("{first} and no more")), None);
        assert!(desk.end().is_some());
        let Answered::Invalid { answer, errors, tries } = desk.close("{\"n\": 1}") else { panic!() };
        assert_eq!((answer.as_deref(), tries), (Some(" and no more"), 2));
        assert_eq!(errors, ["/: there is no JSON in the answer"]);
    }

    #[test]
    fn where_nobody_asked_the_last_words_count() {
        assert_eq!(desk(0).close("It is {\"n\": 7}."), Answered::Valid { data: json!({"n": 7}) });
        assert!(matches!(desk(2).close("no"), Answered::Invalid { tries: 1, .. }));
    }
}
