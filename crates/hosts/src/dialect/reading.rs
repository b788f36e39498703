//! From flags and words to one run, with a reason for everything that had to be changed.

use alhena_model::Approval;
use alhena_model::options::Sandbox;

use super::flags::{Meaning, Origin, Takes};
use super::words::{Given, Odd, Piece, Value};
use super::{DropIn, Stream, Surroundings};
use crate::native::Format;

/// A command line that is being read.
#[derive(Default)]
pub(super) struct Reading {
    run: DropIn,
    /// Whether `-p` has a prompt: words that stand elsewhere then belong to something else.
    prompt_flag: bool,
    words: Vec<String>,
    modes: Vec<(String, Approval)>,
    /// What a word that follows now would belong to.
    open: Option<Open>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Open {
    List(Meaning),
    Unknown,
}

impl Reading {
    pub fn of(pieces: &[Piece]) -> Self {
        let prompt_flag = pieces.iter().any(|piece| match piece {
            Piece::Flag(given) => given.flag.meaning == Meaning::Prompt && given.value != Value::Missing,
            Piece::Unknown(_) | Piece::Word(_) => false,
        });
        Self { prompt_flag, ..Self::default() }
    }

    pub fn piece(&mut self, piece: Piece) {
        let open = self.open.take();
        match piece {
            Piece::Flag(given) => self.flag(given),
            Piece::Unknown(argument) => {
                self.explain(format!("{argument} is not known and is passed on as it is"));
                self.run.extra.push(argument);
                self.open = Some(Open::Unknown);
            }
            Piece::Word(word) => self.word(word, open),
        }
    }

    fn word(&mut self, word: String, open: Option<Open>) {
        match open.filter(|_| self.prompt_flag) {
            Some(Open::List(meaning)) => {
                self.explain(format!("{word:?} is taken as one more value of the list before it"));
                self.list(meaning).push(word);
                self.open = open;
            }
            Some(Open::Unknown) => self.run.extra.push(word),
            None => self.words.push(word),
        }
    }

    fn flag(&mut self, given: Given) {
        let Given { flag, spelled, value, odd } = given;
        if value == Value::Missing {
            return self.without_value(flag.meaning, &spelled);
        }
        match odd {
            Some(Odd::DashedValue) => {
                self.explain(format!(
                    "the value of {spelled} starts with a dash, which Gemini CLI refuses there"
                ));
            }
            Some(Odd::GluedValue) => {
                self.explain(format!("the value of {spelled} is glued to it, which Gemini CLI refuses"));
            }
            None => {}
        }
        match flag.takes {
            Takes::Switch | Takes::Engine => self.switch(flag.meaning, &spelled, value),
            Takes::List => self.values(flag.meaning, flag.origin, &spelled, value),
            Takes::Value | Takes::PerhapsValue => self.value(flag.meaning, &spelled, value),
        }
    }

    /// Without its value a flag is the CLI's to refuse; a prompt can still come from standard input.
    fn without_value(&mut self, meaning: Meaning, spelled: &str) {
        if meaning == Meaning::Prompt {
            self.explain(format!("{spelled} has no value; the prompt is taken from standard input"));
        } else {
            self.explain(format!("{spelled} has no value and is passed on as it is"));
            self.run.extra.push(spelled.to_owned());
        }
    }

    fn switch(&mut self, meaning: Meaning, spelled: &str, value: Value) {
        let (on, word) = match &value {
            Value::No => (false, None),
            Value::Text(word) if word == "false" => (false, None),
            Value::Text(word) if word == "true" => (true, None),
            Value::Text(word) => (true, Some(word.as_str())),
            Value::None | Value::Missing => (true, None),
        };
        match meaning {
            Meaning::Yolo if on => self.modes.push((spelled.to_owned(), Approval::Yolo)),
            Meaning::Sandbox => self.sandbox(on, word),
            Meaning::Keep if on => self.run.extra.push(spelled.to_owned()),
            _ => {}
        }
    }

    fn sandbox(&mut self, on: bool, word: Option<&str>) {
        self.run.sandbox = match word {
            Some("none" | "off") => {
                self.explain("--sandbox none: no sandbox; Gemini CLI knows only a flag without a value");
                Sandbox::Off
            }
            Some("on") => Sandbox::On,
            Some(engine) => {
                self.explain(format!(
                    "--sandbox {engine}: the engine is set by GEMINI_SANDBOX; with the flag Gemini CLI would run without a sandbox"
                ));
                Sandbox::Engine(engine.to_owned())
            }
            None if on => Sandbox::On,
            None => Sandbox::Off,
        };
    }

    fn values(&mut self, meaning: Meaning, origin: Origin, spelled: &str, value: Value) {
        let Value::Text(text) = value else { return };
        if origin == Origin::Document {
            self.explain(format!("{spelled} {text}: denied by a policy; Gemini CLI has no such flag"));
        }
        if meaning == Meaning::Keep {
            self.run.extra.push(format!("{spelled}={text}"));
            return;
        }
        if meaning == Meaning::AllowTools {
            self.explain(format!("{spelled} {text}: allowed by a policy; the flag is deprecated"));
        }
        let values = text.split(',').map(str::trim).filter(|value| !value.is_empty()).map(str::to_owned);
        self.list(meaning).extend(values);
        self.open = Some(Open::List(meaning));
    }

    fn list(&mut self, meaning: Meaning) -> &mut Vec<String> {
        match meaning {
            Meaning::IncludeDirs => &mut self.run.include_dirs,
            Meaning::AllowTools => &mut self.run.allow_tools,
            Meaning::DenyTools => &mut self.run.deny_tools,
            Meaning::Policy => &mut self.run.policies,
            _ => &mut self.run.extra,
        }
    }

    fn value(&mut self, meaning: Meaning, spelled: &str, value: Value) {
        let text = match value {
            Value::Text(text) => text,
            Value::None | Value::No | Value::Missing => String::new(),
        };
        let place = match meaning {
            Meaning::Prompt => &mut self.run.prompt,
            Meaning::Model => &mut self.run.model,
            Meaning::SessionId => &mut self.run.session_id,
            Meaning::Resume => &mut self.run.resume,
            Meaning::Dir => {
                self.explain(format!(
                    "{spelled} {text}: the run is started there; Gemini CLI has no such flag"
                ));
                &mut self.run.dir
            }
            Meaning::Approval => return self.approval(spelled, text),
            Meaning::OutputFormat => return self.output_format(spelled, text),
            _ => return self.run.extra.push(format!("{spelled}={text}")),
        };
        let text = match meaning {
            Meaning::Resume if text.trim().is_empty() => "latest".to_owned(),
            _ => text,
        };
        if place.replace(text).is_some() {
            self.explain(format!("{spelled} was given more than once; the last one counts"));
        }
    }

    fn approval(&mut self, spelled: &str, name: String) {
        let Ok(mode) = name.parse::<Approval>() else { return self.pass_on(spelled, &name) };
        if mode.flag() != name {
            self.explain(format!("{spelled} {name} is {} to Gemini CLI", mode.flag()));
        }
        self.modes.push((spelled.to_owned(), mode));
    }

    fn output_format(&mut self, spelled: &str, name: String) {
        let Some(format) = Format::named(&name) else { return self.pass_on(spelled, &name) };
        if self.run.output_format.replace(format).is_some() {
            self.explain(format!("{spelled} was given more than once; the last one counts"));
        }
    }

    fn pass_on(&mut self, spelled: &str, name: &str) {
        self.explain(format!("{spelled} {name} is not known and is passed on as it is"));
        self.run.extra.push(format!("{spelled}={name}"));
    }

    /// Whether the CLI would open its own screen, and why.
    pub fn interactive(&self, around: Surroundings) -> Option<&'static str> {
        if self.prompt_flag {
            return None;
        }
        let on_a_terminal =
            around.stdin == Stream::Terminal && around.stdout == Stream::Terminal && !around.ci;
        match (self.words.is_empty(), around.stdin) {
            (false, _) if on_a_terminal => Some("a prompt without -p opens the screen on a terminal"),
            (true, Stream::Terminal) => Some("there is no prompt, and standard input is a terminal"),
            _ => None,
        }
    }

    pub fn finish(mut self) -> DropIn {
        self.decide_approval();
        self.decide_session();
        self.decide_prompt();
        self.run
    }

    /// The CLI takes exactly one approval flag.
    fn decide_approval(&mut self) {
        let Some((_, last)) = self.modes.last() else { return };
        let yolo = self
            .modes
            .iter()
            .any(|(spelled, mode)| *mode == Approval::Yolo && !spelled.starts_with("--approval"));
        let decided = if yolo { Approval::Yolo } else { *last };
        self.run.approval = Some(decided);
        if self.modes.len() > 1 {
            let given: Vec<&str> = self.modes.iter().map(|(spelled, _)| spelled.as_str()).collect();
            self.explain(format!(
                "{} together are refused by Gemini CLI; {} is used",
                given.join(" and "),
                decided.flag()
            ));
        }
    }

    /// `--resume` and `--session-id` exclude each other in the CLI; together they mean "go on with that one".
    fn decide_session(&mut self) {
        if self.run.resume.is_none() || self.run.session_id.is_none() {
            return;
        }
        if self.run.resume.as_deref() == Some("latest") {
            self.run.resume = self.run.session_id.take();
            self.explain("--resume and --session-id together: the session of that id is resumed");
        } else {
            self.run.session_id = None;
            self.explain("--resume and --session-id together: --resume counts");
        }
    }

    /// Words are the prompt where there is no `-p`; the CLI refuses both together.
    fn decide_prompt(&mut self) {
        if self.words.is_empty() {
            return;
        }
        let words = self.words.join(" ");
        match self.run.prompt.take() {
            None => self.run.prompt = Some(words),
            Some(prompt) => {
                self.explain(
                    "words and -p together are refused by Gemini CLI; the words are put before the prompt",
                );
                self.run.prompt = Some(format!("{words}\n\n{prompt}"));
            }
        }
    }

    fn explain(&mut self, what: impl Into<String>) {
        self.run.explanations.push(what.into());
    }
}
