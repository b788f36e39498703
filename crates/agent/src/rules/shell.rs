//! The command lines that rules can judge.
//!
//! Gemini CLI gives the model's text to `bash -c`. Reading all of bash is error-prone, so only a small grammar is read: plain
//! words, joined by `&&`, `||`, `;`, `|` and newlines, with output discarded or joined (`>/dev/null`, `2>&1`). All other text
//! is outside the grammar: no rule for commands allows it, and it is a possible match of every rule that denies or asks.

use alhena_wire::display::is_unsafe;

use super::programs;

/// Longer text is outside the grammar.
const LONGEST: usize = 64 << 10;

/// A program and its arguments.
pub(super) type Simple = Vec<Word>;

/// Why a text is outside the grammar: what it has that the grammar does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Outside(pub &'static str);

/// One word of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Word {
    /// The value of a literal word; the text of any other.
    pub text: String,
    pub certainty: Certainty,
    /// Whether any part of it is in quotes.
    pub quoted: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Certainty {
    /// The text is the word.
    Literal,
    /// It has a `*` that the shell replaces.
    Stars,
    /// The shell replaces it with no word, one or several.
    Unknown,
}

impl Word {
    pub fn literal(&self) -> Option<&str> {
        (self.certainty == Certainty::Literal).then_some(self.text.as_str())
    }
}

/// Reads a command line: every simple command in it, or why it is outside the grammar.
pub(super) fn read(text: &str) -> Result<Vec<Simple>, Outside> {
    if text.len() > LONGEST {
        return Err(Outside("more than 64 KiB of text"));
    }
    if is_unwrapped(text) {
        return Err(Outside("a shell with a command of its own"));
    }
    let commands = Reader::read(text)?;
    commands.iter().try_for_each(|command| {
        command
            .first()
            .and_then(Word::literal)
            .map_or(Err(Outside("a program whose name is not certain")), check_program)
    })?;
    Ok(commands)
}

/// Reads the pattern of a rule: the same, with stars in the name of its program.
pub(super) fn read_pattern(text: &str) -> Result<Vec<Simple>, Outside> {
    let commands = Reader::read(text)?;
    commands.iter().filter_map(|command| command.first()?.literal()).try_for_each(check_program)?;
    Ok(commands)
}

/// Whether Gemini CLI removes a shell from the beginning of the text and runs the rest, with the quotes around it removed even where
/// they do not belong together (0.61.0): `bash -c 'a' && echo '; b'`.
fn is_unwrapped(text: &str) -> bool {
    let mut tokens =
        text.split(|c: char| c.is_whitespace() || c == '\u{feff}').filter(|token| !token.is_empty());
    let (Some(program), Some(option)) = (tokens.next(), tokens.next()) else { return false };
    let name = programs::base_name(program);
    let name = name.strip_suffix(".exe").unwrap_or(&name);
    matches!(name, "sh" | "bash" | "zsh" | "cmd" | "powershell" | "pwsh")
        && matches!(option.to_lowercase().as_str(), "-c" | "/c" | "-noprofile" | "-command")
}

/// The word that names the program has to be the program's name and nothing else.
fn check_program(name: &str) -> Result<(), Outside> {
    if programs::KEYWORDS.contains(&name) {
        return Err(Outside("a keyword of the shell"));
    }
    if name.contains('=') {
        return Err(Outside("an assignment"));
    }
    match name.is_empty() || name.contains('!') || name.starts_with('%') {
        true => Err(Outside("a program whose name is not certain")),
        false => Ok(()),
    }
}

/// Redirections that are whole tokens.
const JOINED: &[&str] = &["2>&1", "1>&2", ">&2"];
/// Redirections that may lead to or from `/dev/null`.
const DISCARDED: &[&str] = &["&>", "1>", "2>", ">", "<"];

struct Reader<'t> {
    rest: &'t str,
    commands: Vec<Simple>,
}

impl<'t> Reader<'t> {
    fn read(text: &'t str) -> Result<Vec<Simple>, Outside> {
        let mut reader = Reader { rest: text, commands: Vec::new() };
        reader.line()?;
        Ok(reader.commands)
    }

    fn line(&mut self) -> Result<(), Outside> {
        let mut words = Simple::new();
        // After an operator a command has to follow, on the same line or on a later one.
        let mut wanted = true;
        loop {
            self.rest = self.rest.trim_start_matches([' ', '\t']);
            if !words.is_empty() && self.skip_redirection() {
                continue;
            }
            let Some(next) = self.rest.chars().next() else { break };
            let operator =
                ["&&", "||", "|&", "|", ";", "\n", "&"].into_iter().find(|op| self.rest.starts_with(op));
            match operator {
                None if next == '#' => return Err(Outside("a comment")),
                None => words.push(self.word()?),
                Some("&") => return Err(Outside("a command in the background")),
                Some("|&") => return Err(Outside("a pipe of errors")),
                Some("\n") if words.is_empty() => self.rest = self.rest.trim_start_matches('\n'),
                Some(_) if words.is_empty() => return Err(Outside("an operator without a command")),
                Some(operator) => {
                    self.commands.push(std::mem::take(&mut words));
                    self.rest = self.rest.strip_prefix(operator).unwrap_or_default();
                    wanted = !matches!(operator, ";" | "\n");
                }
            }
        }
        match words.is_empty() {
            true if wanted => Err(Outside("an operator at its end")),
            true => Ok(()),
            false => {
                self.commands.push(words);
                Ok(())
            }
        }
    }

    /// Takes a redirection that only discards or joins output.
    fn skip_redirection(&mut self) -> bool {
        let joined = JOINED.iter().filter_map(|token| self.rest.strip_prefix(token));
        let discarded = DISCARDED.iter().filter_map(|operator| {
            self.rest.strip_prefix(operator)?.trim_start_matches([' ', '\t']).strip_prefix("/dev/null")
        });
        let after = joined.chain(discarded).find(|after| after.is_empty() || after.starts_with(ends_word));
        self.rest = after.unwrap_or(self.rest);
        after.is_some()
    }

    fn word(&mut self) -> Result<Word, Outside> {
        let mut word = Word { text: String::new(), certainty: Certainty::Literal, quoted: false };
        let mut chars = self.rest.chars();
        loop {
            self.rest = chars.as_str();
            let Some(next) = chars.next().filter(|c| !ends_word(*c)) else { break };
            match next {
                '\'' | '"' => {
                    word.quoted = true;
                    loop {
                        match chars.next().ok_or(Outside("a quote that is not closed"))? {
                            c if c == next => break,
                            c => word.text.push(in_quotes(c, next)?),
                        }
                    }
                }
                c => {
                    let starts = word.text.is_empty() || word.text.ends_with(['=', ':']);
                    word.certainty = word.certainty.max(match c {
                        '*' => Certainty::Stars,
                        '?' | '[' => Certainty::Unknown,
                        '~' if starts => Certainty::Unknown,
                        _ => Certainty::Literal,
                    });
                    word.text.push(plain(c)?);
                }
            }
        }
        if word.text == "[" && !word.quoted {
            word.certainty = Certainty::Literal;
        }
        Ok(word)
    }
}

fn ends_word(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | ';' | '&' | '|')
}

/// A character outside of quotes.
fn plain(c: char) -> Result<char, Outside> {
    match c {
        'a'..='z' | 'A'..='Z' | '0'..='9' => Ok(c),
        '_' | '-' | '.' | '/' | ',' | ':' | '=' | '+' | '@' | '%' | '^' | '~' | '*' | '?' | '[' | ']'
        | '#' | '!' => Ok(c),
        '\\' => Err(Outside("a backslash")),
        '$' => Err(Outside("a dollar sign")),
        '`' => Err(Outside("a backtick")),
        '<' | '>' => Err(Outside("a redirection")),
        '(' | ')' => Err(Outside("a parenthesis")),
        '{' | '}' => Err(Outside("a brace")),
        // Some systems take these bytes for blanks.
        c if c.is_alphanumeric()
            && !c.encode_utf8(&mut [0; 4]).bytes().any(|byte| matches!(byte, 0x85 | 0xa0)) =>
        {
            Ok(c)
        }
        _ => Err(Outside("an unusual character")),
    }
}

/// A character inside of such quotes.
fn in_quotes(c: char, quote: char) -> Result<char, Outside> {
    match c {
        '\\' if quote == '"' => Err(Outside("a backslash")),
        '$' if quote == '"' => Err(Outside("a dollar sign")),
        '`' if quote == '"' => Err(Outside("a backtick")),
        ' ' | '\t' | '\n' => Ok(c),
        // People cannot see these, or see them in another order.
        '\u{200c}' | '\u{200d}' => Err(Outside("an unusual character")),
        c if c.is_whitespace() || is_unsafe(c) => Err(Outside("an unusual character")),
        c => Ok(c),
    }
}
