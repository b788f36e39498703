//! A command line as flags and words, read as yargs reads it, except where yargs gives up.
//!
//! yargs takes no value that starts with a dash (`-p "-x"` is exit 1 in 0.61.0) and no value glued to a short flag. Both are
//! clear enough to people, so they are understood here.

use super::flags::{ENGINES, Flag, Takes};

/// One piece of a command line.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Piece {
    /// A known flag.
    Flag(Given),
    /// Something that starts with a dash and is no known flag.
    Unknown(String),
    /// Anything else.
    Word(String),
}

/// A flag as it was given.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Given {
    pub flag: &'static Flag,
    /// As it was spelled, without its value.
    pub spelled: String,
    pub value: Value,
    /// Whether yargs would have refused it.
    pub odd: Option<Odd>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Value {
    /// None was given, and none is needed.
    None,
    /// `--no-FLAG`.
    No,
    Text(String),
    /// One is needed and there is none.
    Missing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Odd {
    /// The value starts with a dash.
    DashedValue,
    /// The value is glued to a short flag.
    GluedValue,
}

pub(super) fn split(arguments: &[String]) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut rest = arguments;
    while let Some((argument, after)) = rest.split_first() {
        rest = after;
        if argument == "--" {
            pieces.extend(rest.iter().cloned().map(Piece::Word));
            break;
        }
        match opening(argument) {
            Opening::Word => pieces.push(Piece::Word(argument.clone())),
            Opening::Unknown => pieces.push(Piece::Unknown(argument.clone())),
            Opening::Flags(mut flags) => {
                if let Some(last) = flags.last_mut()
                    && last.value == Value::None
                {
                    rest = take_value(last, rest);
                }
                pieces.extend(flags.into_iter().map(Piece::Flag));
            }
        }
    }
    pieces
}

enum Opening {
    Word,
    Unknown,
    /// Several only for a group of short switches.
    Flags(Vec<Given>),
}

fn opening(argument: &str) -> Opening {
    if let Some(long) = argument.strip_prefix("--") {
        return opening_long(long);
    }
    let Some(letters) = argument.strip_prefix('-').filter(|letters| !letters.is_empty()) else {
        return Opening::Word;
    };
    // A negative number is a word to yargs; so is anything here that is clearly text.
    if letters.starts_with(|first: char| first.is_ascii_digit() || first.is_whitespace()) {
        return Opening::Word;
    }
    opening_short(letters)
}

fn opening_long(long: &str) -> Opening {
    let (name, value) = match long.split_once('=') {
        Some((name, value)) => (name, Value::Text(value.to_owned())),
        None => (long, Value::None),
    };
    if name.is_empty() || name.contains(char::is_whitespace) {
        return Opening::Word;
    }
    let spelled = format!("--{name}");
    if let Some(flag) = Flag::long(name) {
        return Opening::Flags(vec![Given { flag, spelled, value, odd: None }]);
    }
    let negated = name.strip_prefix("no-").and_then(Flag::long).filter(|flag| flag.is_switch());
    match negated {
        Some(flag) => Opening::Flags(vec![Given { flag, spelled, value: Value::No, odd: None }]),
        None => Opening::Unknown,
    }
}

fn opening_short(letters: &str) -> Opening {
    let mut chars = letters.chars();
    let Some((first, flag)) = chars.next().and_then(|first| Some((first, Flag::short(first)?))) else {
        return Opening::Unknown;
    };
    let spelled = format!("-{first}");
    let glued = chars.as_str();
    if glued.is_empty() {
        return Opening::Flags(vec![Given { flag, spelled, value: Value::None, odd: None }]);
    }
    if let Some(value) = glued.strip_prefix('=') {
        let value = Value::Text(value.to_owned());
        return Opening::Flags(vec![Given { flag, spelled, value, odd: None }]);
    }
    if !flag.is_switch() {
        let value = Value::Text(glued.to_owned());
        return Opening::Flags(vec![Given { flag, spelled, value, odd: Some(Odd::GluedValue) }]);
    }
    let group: Option<Vec<Given>> = letters
        .chars()
        .map(|letter| {
            let flag = Flag::short(letter)?;
            Some(Given { flag, spelled: format!("-{letter}"), value: Value::None, odd: None })
        })
        .collect();
    group.map_or(Opening::Unknown, Opening::Flags)
}

/// Gives a flag the value that follows it, and returns what is left.
fn take_value<'a>(given: &mut Given, rest: &'a [String]) -> &'a [String] {
    let next = rest.split_first();
    let taken = match (given.flag.takes, next) {
        (Takes::Switch, Some((next, _))) => ["true", "false"].contains(&next.as_str()),
        (Takes::Engine, Some((next, _))) => ENGINES.contains(&next.as_str()),
        (Takes::PerhapsValue, Some((next, _))) => !next.starts_with('-'),
        (Takes::Value | Takes::List, Some((next, _))) if !is_known_flag(next) => {
            given.odd = next.starts_with('-').then_some(Odd::DashedValue);
            true
        }
        (Takes::Value | Takes::List, _) => {
            given.value = Value::Missing;
            false
        }
        (_, None) => false,
    };
    match next {
        Some((next, after)) if taken => {
            given.value = Value::Text(next.clone());
            after
        }
        _ => rest,
    }
}

/// Whether an argument is a flag to the letter: then it is nobody's value.
fn is_known_flag(argument: &str) -> bool {
    matches!(opening(argument), Opening::Flags(flags) if flags.iter().all(|given| given.odd.is_none()))
}
