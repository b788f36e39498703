//! Which commands a rule means: `git status`, `git *`, `npm run test*`.

use std::path::Path;

use super::paths;
use super::programs::{self, Behind, base_name};
use super::shell::{self, Certainty, Outside, Simple, Word};

/// The arguments of a longer command are not searched for others.
const MOST_WORDS: usize = 1000;

/// Whether a rule applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fit {
    No,
    Maybe,
    Yes,
}

/// A command line, as far as it can be judged.
pub(super) type Script = Result<Vec<Simple>, Outside>;

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
    /// Parses a pattern; the error is a sentence.
    pub fn parse(text: &str) -> Result<Self, String> {
        // As Claude writes it.
        let text = match text.strip_suffix(":*") {
            Some(start) => format!("{start} *"),
            None => text.to_owned(),
        };
        let commands = shell::read_pattern(&text)
            .map_err(|Outside(what)| format!("it has {what}, and a rule is one plain command"))?;
        let [words] = commands.as_slice() else {
            return Err("it has several commands, and a rule is about one".to_owned());
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

    /// Whether it means this very command. A `*` does not stand for an argument by which a program runs another.
    fn covers(&self, command: &Simple) -> bool {
        let by = programs::launch(command).map(|launch| launch.by).unwrap_or_default();
        let is_exact = self.parts.iter().all(|part| matches!(part, Part::Is(_)));
        let takes_input = by.iter().any(|at| *at >= command.len());
        (is_exact || !takes_input) && fit(&self.parts, command, Wanted::Certain(&by)) == Fit::Yes
    }

    /// Whether the script may run a command that it means.
    pub fn might_mean(&self, script: &Script) -> Fit {
        let Ok(commands) = script else { return Fit::Maybe };
        let mut parts = self.parts.clone();
        // A program is meant wherever it is and however its name is written.
        if let Some(Part::Is(program)) = parts.first_mut() {
            *program = base_name(program);
        }
        let search = |parts: &[Part], command: &[Word]| fit(parts, command, Wanted::Possible);
        let own = |command: &Simple| search(&parts, &loose(command)).max(search(&self.parts, command));
        let launched = |command: &Simple| match launches(command) {
            None => Fit::No,
            Some(Launches::Unknown(_)) => Fit::Maybe,
            Some(Launches::One(of)) => {
                of.iter().map(|other| search(&parts, &loose(other))).max().unwrap_or(Fit::Maybe)
            }
        };
        commands.iter().map(|command| own(command).max(launched(command))).max().unwrap_or(Fit::Maybe)
    }
}

/// The commands that a command may run.
enum Launches {
    /// One of these.
    One(Vec<Simple>),
    Unknown(&'static str),
}

fn launches(command: &Simple) -> Option<Launches> {
    let launch = programs::launch(command)?;
    let Some(behind) = launch.behind.filter(|_| command.len() <= MOST_WORDS) else {
        return Some(Launches::Unknown(launch.why));
    };
    let inner = |words: &[Word]| programs::launch_of_program(words).and_then(|launch| launch.behind);
    let behind_inner: Vec<Behind> =
        (1..command.len()).filter_map(|at| command.get(at..)).filter_map(inner).collect();
    let mut words = command.clone();
    if behind == Behind::WordsAndInput || behind_inner.contains(&Behind::WordsAndInput) {
        words.push(Word { text: "*".to_owned(), certainty: Certainty::Unknown, quoted: false });
    }
    // Where another prefix follows, as in `xargs timeout 5`, the input alone can be the command.
    let end = if behind_inner.is_empty() { command.len() } else { words.len() };
    let others: Vec<Simple> = (1..end).filter_map(|at| words.get(at..)).map(<[Word]>::to_vec).collect();
    // A program behind it that runs others, unless it only finds its command among the same words.
    let further = others.iter().filter_map(|other| programs::launch_of_program(other));
    let unknown = further.filter(|launch| launch.behind.is_none()).map(|launch| launch.why).next();
    Some(unknown.map_or(Launches::One(others), Launches::Unknown))
}

/// Returns true if one of the patterns covers each command of a script. After the script has changed the directory, only commands count that
/// read: build tools, git and scripts run what they find in the directory.
pub(super) fn all_covered(script: &Script, patterns: &[&CommandPattern]) -> bool {
    let Ok(commands) = script else { return false };
    let from_change = commands.iter().skip_while(|command| !programs::changes_directory(command));
    let is_elsewhere = from_change.skip(1).any(|command| !programs::stays_harmless(command));
    let covered = |command: &Simple| patterns.iter().any(|pattern| pattern.covers(command));
    !is_elsewhere && commands.iter().all(covered)
}

/// Whether all that a script does is to read files in this directory, or to say something about the system.
pub(super) fn only_reads(script: &Script, dir: &Path) -> bool {
    let is_inside = |word: &Word| {
        let Some(text) = word.literal() else { return false };
        let is_option = text.starts_with('-');
        (is_option && !text.contains('/')) || (!is_option && paths::is_inside(Path::new(text), dir))
    };
    let reads = |command: &Simple| programs::reads(command) && command.iter().skip(1).all(is_inside);
    script.as_ref().is_ok_and(|commands| commands.iter().all(reads))
}

/// Why it is not certain which commands the script runs.
pub(super) fn why_uncertain(script: &Script) -> Option<String> {
    match script {
        Err(Outside(what)) => {
            Some(format!("the command has {what}; only plain words, joined by &&, ||, ; or |, can be judged"))
        }
        Ok(commands) => {
            let launches = commands.iter().filter_map(launches).find_map(|launches| match launches {
                Launches::Unknown(why) => Some(why),
                Launches::One(_) => None,
            });
            launches.map(|why| format!("the command has {why}"))
        }
    }
}

/// The command with the bare name of its program, and without options that do not change what it does.
fn loose(command: &[Word]) -> Simple {
    let mut command = programs::without_idle_options(command);
    if let Some(program) = command.first_mut() {
        program.text = base_name(&program.text);
    }
    command
}

/// What a pattern is compared for.
#[derive(Clone, Copy)]
enum Wanted<'a> {
    /// Every match counts.
    Possible,
    /// Only a match without doubt counts. The words at these positions have to be named, and a star in a word does not lead to a
    /// parent directory: `./scripts/*` is not `./scripts/../x`.
    Certain(&'a [usize]),
}

impl Wanted<'_> {
    fn is_named(self, at: usize) -> bool {
        matches!(self, Wanted::Certain(named) if named.contains(&at))
    }

    fn lets_star_be(self, text: &str) -> bool {
        matches!(self, Wanted::Possible) || !text.split('/').any(|part| part == "..")
    }
}

/// Whether the words are what the parts say. A word that is not known can be no word or several.
fn fit(parts: &[Part], words: &[Word], wanted: Wanted<'_>) -> Fit {
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
                (Part::Any, Some(_)) if wanted.is_named(from) => at(from),
                (Part::Any, _) => here.max(at(from)),
                (_, None) => Fit::No,
                (_, Some(word)) if word.certainty != Certainty::Literal => Fit::Maybe,
                (Part::Is(text), Some(word)) if word.text == *text => at(from + 1),
                (Part::Like(pieces), Some(word))
                    if !wanted.is_named(from)
                        && wanted.lets_star_be(&word.text)
                        && is_like(pieces, &word.text) =>
                {
                    at(from + 1)
                }
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
