//! Which commands a rule means: `git status`, `git *`, `npm run test*`.

use super::programs;
use super::shell::{Certainty, Doubt, Script, Simple, Word};

/// Scripts inside words inside scripts.
const DEEPEST: usize = 4;

/// More words behind such a program are not looked through.
const MOST_WORDS: usize = 1000;

/// What a rule says of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fit {
    No,
    Maybe,
    Yes,
}

/// Words that a simple command has to consist of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CommandPattern {
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    /// `*`: any words, or none.
    Any,
    Is(String),
    /// A word with stars in it: the pieces between them.
    Like(Vec<String>),
}

impl CommandPattern {
    /// Reads a pattern; what is wrong with it is a sentence.
    pub fn parse(text: &str) -> Result<Self, String> {
        // As Claude writes it.
        let text = match text.strip_suffix(":*") {
            Some(start) => format!("{start} *"),
            None => text.to_owned(),
        };
        let script = Script::read(&text);
        if let Some(doubt) = script.doubts.first() {
            return Err(format!("it has {doubt}, and a rule is one plain command"));
        }
        let words = match script.commands.as_slice() {
            [words] => words,
            [] => return Err("it has no words".to_owned()),
            _ => return Err("it has several commands, and a rule is about one".to_owned()),
        };
        let mut parts = Vec::new();
        for word in words {
            parts.push(match word.certainty {
                Certainty::Literal => Part::Is(word.text.clone()),
                Certainty::Stars if word.quoted => {
                    return Err(format!("{:?} is half in quotes; only a * outside of them stands for anything", word.text));
                }
                Certainty::Stars if word.text.chars().all(|c| c == '*') => Part::Any,
                Certainty::Stars => Part::Like(word.text.split('*').map(str::to_owned).collect()),
                Certainty::Unknown => {
                    return Err(format!("{:?} means something to a shell; only * stands for anything, the rest goes in quotes", word.text));
                }
            });
        }
        if parts.iter().all(|part| *part == Part::Any) {
            return Err("it limits nothing".to_owned());
        }
        Ok(Self { parts })
    }

    /// Whether it means this very command, assignments before it included.
    fn covers(&self, command: &Simple) -> bool {
        fit(&self.parts, command) == Fit::Yes
    }

    /// Whether the script may run a command that it means.
    pub fn might_mean(&self, script: &Script) -> Fit {
        self.searched(script, 0)
    }

    fn searched(&self, script: &Script, depth: usize) -> Fit {
        let unknown = if script.is_complete() { Fit::No } else { Fit::Maybe };
        script
            .commands
            .iter()
            .map(|command| self.searched_in(command, depth))
            .max()
            .unwrap_or(Fit::No)
            .max(unknown)
    }

    fn searched_in(&self, command: &Simple, depth: usize) -> Fit {
        let parts = self.loose();
        let (assigned, bare) = without_assignments(command);
        let mut best = fit(&parts, &loose(bare)).max(fit(&self.parts, command));
        // Some programs run what stands in a variable: `GIT_PAGER`.
        for word in assigned.iter().filter(|word| word.certainty == Certainty::Literal && depth < DEEPEST) {
            let (_, value) = word.text.split_once('=').unwrap_or_default();
            let script = Script::read(value);
            best = best.max(
                script.commands.iter().map(|command| fit(&parts, &loose(command))).max().unwrap_or(Fit::No),
            );
        }
        if best != Fit::Yes && unread_in(command).is_some() {
            best = Fit::Maybe;
        }
        let Some(from) = programs::others_from(bare) else { return best };
        if bare.len() > MOST_WORDS {
            return best.max(Fit::Maybe);
        }
        let input = programs::with_input(bare);
        let words = input.as_deref().unwrap_or(bare);
        for start in from..bare.len() {
            best = best.max(fit(&parts, &loose(words.get(start..).unwrap_or_default())));
        }
        let texts = bare.iter().skip(from).filter(|word| word.certainty == Certainty::Literal);
        for text in texts.flat_map(|word| texts_in(&word.text)) {
            if best == Fit::Yes {
                break;
            }
            // The text of a command for another shell.
            best = best.max(match depth < DEEPEST {
                true => self.searched(&Script::read(text), depth + 1),
                false => Fit::Maybe,
            });
        }
        best
    }

    /// The same for a program wherever it lies and however its name is written.
    fn loose(&self) -> Vec<Part> {
        let mut parts = self.parts.clone();
        if let Some(Part::Is(program)) = parts.first_mut() {
            *program = base_name(program);
        }
        parts
    }
}

/// Whether each command of a script is meant by one of these, with no doubt of what it does.
pub(super) fn all_covered(script: &Script, patterns: &[&CommandPattern]) -> Result<(), Option<Doubt>> {
    if let Some(doubt) = script.doubts.first() {
        return Err(Some(*doubt));
    }
    let covered = |command: &Simple| patterns.iter().any(|pattern| pattern.covers(command));
    match !script.commands.is_empty() && script.commands.iter().all(covered) {
        true => Ok(()),
        false => Err(None),
    }
}

/// Why it is not certain what the script runs.
pub(super) fn why_uncertain(script: &Script) -> Option<String> {
    let unreadable = script.doubts.iter().find(|doubt| matches!(doubt, Doubt::Unreadable(_)));
    let unread = || script.commands.iter().find_map(unread_in).map(str::to_owned);
    unreadable.map(Doubt::to_string).or_else(unread).or_else(|| script.doubts.first().map(Doubt::to_string))
}

fn unread_in(command: &Simple) -> Option<&'static str> {
    let (assigned, bare) = without_assignments(command);
    let substitutes = |word: &Word| word.text.contains("$(") || word.text.contains('`');
    if assigned.iter().any(|word| word.certainty == Certainty::Literal && substitutes(word)) {
        return Some("the text of a substitution in a variable");
    }
    if programs::feeds_shells(command) {
        return Some("a variable that shells have commands from");
    }
    programs::unread(bare).or_else(|| {
        let from = programs::others_from(bare)?;
        let input = programs::with_input(bare);
        let words = input.as_deref().unwrap_or(bare);
        let can_begin = |start: &usize| {
            bare.first()
                .zip(words.get(*start))
                .is_some_and(|(program, word)| programs::can_begin(program, word))
        };
        let mut starts = (from..bare.len().min(MOST_WORDS)).filter(can_begin);
        let reads = |start: usize| {
            let behind = words.get(start..).unwrap_or_default();
            // Its input may be the command that this one runs.
            let takes_input = input.is_some() && programs::others_from(behind) == Some(1);
            programs::unread(behind).or(takes_input.then_some("commands that stand in its input"))
        };
        starts.find_map(reads)
    })
}

fn without_assignments(command: &Simple) -> (&[Word], &[Word]) {
    command.split_at(command.iter().take_while(|word| is_assignment(word)).count())
}

/// The texts in a word that can be commands: all of it, or what comes behind an option. A plain word has been looked at as such.
fn texts_in(word: &str) -> impl Iterator<Item = &str> {
    let value = word.split_once('=').map(|(_, value)| value);
    let short = word.strip_prefix('-').filter(|rest| !rest.starts_with('-')).and_then(|rest| rest.get(1..));
    let is_more = word.contains(|c: char| !c.is_ascii_alphanumeric());
    [Some(word), value, short].into_iter().flatten().filter(move |text| is_more && !text.is_empty())
}

fn is_assignment(word: &Word) -> bool {
    let Some((name, _)) = word.text.split_once('=') else { return false };
    let name = name.strip_suffix('+').unwrap_or(name);
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '[' | ']'))
}

pub(super) fn base_name(program: &str) -> String {
    program.rsplit('/').next().unwrap_or(program).to_lowercase()
}

fn loose(command: &[Word]) -> Simple {
    let mut command = command.to_vec();
    if let Some(program) = command.first_mut() {
        program.text = base_name(&program.text);
    }
    command
}

/// Whether the words are what the parts say. A word that is not known can be no word or several.
fn fit(parts: &[Part], words: &[Word]) -> Fit {
    // For each number of words from the end: how the parts from `part` on fit them. The last parts come first.
    let mut fits: Vec<Fit> = (0..=words.len())
        .map(|from| match words.get(from..).unwrap_or_default() {
            [] => Fit::Yes,
            rest if rest.iter().all(|word| word.certainty != Certainty::Literal) => Fit::Maybe,
            _ => Fit::No,
        })
        .collect();
    for part in parts.iter().rev() {
        let behind = fits.clone();
        let at = |from: usize| behind.get(from).copied().unwrap_or(Fit::No);
        let mut here = Fit::No;
        for from in (0..=words.len()).rev() {
            let word = words.get(from);
            here = match (part, word) {
                (Part::Any, _) => here.max(at(from)),
                (_, None) => Fit::No,
                (_, Some(word)) if word.certainty != Certainty::Literal => Fit::Maybe,
                (Part::Is(text), Some(word)) if word.text == *text => at(from + 1),
                (Part::Like(pieces), Some(word)) if is_like(pieces, &word.text) => at(from + 1),
                (Part::Is(_) | Part::Like(_), Some(_)) => Fit::No,
            };
            if let Some(slot) = fits.get_mut(from) {
                *slot = here;
            }
        }
    }
    fits.first().copied().unwrap_or(Fit::No)
}

/// Whether a text has these pieces in this order, the first at its start and the last at its end.
pub(super) fn is_like(pieces: &[String], text: &str) -> bool {
    let Some(((first, last), middle)) = pieces.split_first().and_then(|(first, rest)| {
        let (last, middle) = rest.split_last()?;
        Some(((first, last), middle))
    }) else {
        return pieces.first().is_some_and(|only| only == text);
    };
    let Some(mut rest) = text.strip_prefix(first.as_str()) else { return false };
    for piece in middle {
        match rest.split_once(piece.as_str()) {
            Some((_, behind)) => rest = behind,
            None => return false,
        }
    }
    rest.ends_with(last.as_str())
}
