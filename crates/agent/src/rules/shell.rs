//! A command line as a shell reads it, as far as that is certain.
//!
//! Gemini CLI gives the model's text to `bash -c`. What is read here is every simple command in it, word by word, and a list
//! of doubts: things that are read but do more than their words say (a redirection, a substitution), and things that are not
//! read at all. A rule that allows wants no doubt; a rule that denies wants to be sure that it does not apply. So whatever
//! this does not know for certain has to end in a doubt, never in a guess.

use std::fmt;
use std::iter::Peekable;
use std::str::Chars;

/// Nobody types a longer one, and nobody reads one before they agree to it.
const LONGEST: usize = 64 << 10;
/// Substitutions and subshells inside one another.
const DEEPEST: usize = 16;

/// What was read.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Script {
    /// Every simple command, those in substitutions and subshells included.
    pub commands: Vec<Simple>,
    /// Why the words do not say all.
    pub doubts: Vec<Doubt>,
}

/// A program and its arguments, with assignments before it.
pub(super) type Simple = Vec<Word>;

/// What the text does that its words do not say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Doubt {
    Substitution,
    /// `$(` in quotes: some commands run it nevertheless, such as `printf -v 'a[$(x)]'`.
    QuotedSubstitution,
    Subshell,
    Redirection,
    Comment,
    /// From here on it is not known which commands there are.
    Unreadable(&'static str),
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Doubt::Substitution => "a command substitution",
            Doubt::QuotedSubstitution => "the text of a substitution in quotes",
            Doubt::Subshell => "a subshell",
            Doubt::Redirection => "a redirection to a file",
            Doubt::Comment => "a comment",
            Doubt::Unreadable(what) => what,
        })
    }
}

/// One word of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Word {
    /// Its value, where it is literal; else what it was made of.
    pub text: String,
    pub certainty: Certainty,
    /// Whether any part of it stood in quotes or behind a backslash.
    pub quoted: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Certainty {
    /// The text is the word.
    Literal,
    /// It has a `*` that the shell replaces.
    Stars,
    /// The shell makes something else of it: no word, one or several.
    Unknown,
}

impl Script {
    pub fn read(text: &str) -> Self {
        let mut reader = Reader { rest: text.chars().peekable(), script: Script::default(), depth: 0 };
        let read = match text.len() > LONGEST {
            true => Err(Doubt::Unreadable("more text than anybody reads")),
            false => reader.list(End::OfText),
        };
        let mut script = reader.script;
        script.doubts.extend(read.err());
        let mut literal =
            script.commands.iter().flatten().filter(|word| word.certainty == Certainty::Literal);
        if literal.any(|word| word.text.contains("$(") || word.text.contains('`')) {
            script.doubts.push(Doubt::QuotedSubstitution);
        }
        script
    }

    /// Whether all its commands are known.
    pub fn is_complete(&self) -> bool {
        !self.doubts.iter().any(|doubt| matches!(doubt, Doubt::Unreadable(_)))
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    OfText,
    Parenthesis,
}

/// What has been read of the command that is being read.
#[derive(Default)]
struct Open {
    words: Simple,
    /// After `( ... )` only a separator or a redirection can follow.
    closed: bool,
    /// Something has to follow: this comes after `&&`, `||` or `|`.
    wanted: bool,
}

struct Reader<'t> {
    rest: Peekable<Chars<'t>>,
    script: Script,
    depth: usize,
}

type Read<T> = Result<T, Doubt>;

fn unreadable<T>(what: &'static str) -> Read<T> {
    Err(Doubt::Unreadable(what))
}

impl Reader<'_> {
    fn next_if(&mut self, wanted: char) -> bool {
        self.rest.next_if_eq(&wanted).is_some()
    }

    fn list(&mut self, end: End) -> Read<()> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return unreadable("too many levels");
        }
        let mut open = Open::default();
        let done = self.commands(end, &mut open);
        // What stood before the unreadable is known.
        self.finish(&mut open);
        self.depth -= 1;
        done
    }

    fn finish(&mut self, open: &mut Open) {
        let words = std::mem::take(&mut open.words);
        if !words.is_empty() {
            self.script.commands.push(words);
        }
        open.closed = false;
    }

    fn commands(&mut self, end: End, open: &mut Open) -> Read<()> {
        loop {
            let Some(&next) = self.rest.peek() else {
                return match end {
                    End::OfText if open.wanted && open.words.is_empty() && !open.closed => {
                        unreadable("an end in the middle")
                    }
                    End::OfText => Ok(()),
                    End::Parenthesis => unreadable("a parenthesis that is not closed"),
                };
            };
            match next {
                ' ' | '\t' => drop(self.rest.next()),
                '\n' | ';' | '&' | '|' => {
                    self.rest.next();
                    self.separator(next, open)?;
                }
                '(' => {
                    self.rest.next();
                    if !open.words.is_empty() || open.closed || self.rest.peek() == Some(&'(') {
                        return unreadable("a parenthesis inside a command");
                    }
                    self.script.doubts.push(Doubt::Subshell);
                    self.list(End::Parenthesis)?;
                    open.closed = true;
                }
                ')' if end == End::Parenthesis => {
                    self.rest.next();
                    return Ok(());
                }
                ')' => return unreadable("a parenthesis that nobody opened"),
                '<' | '>' => self.redirection()?,
                '#' => {
                    self.script.doubts.push(Doubt::Comment);
                    while self.rest.next_if(|c| *c != '\n').is_some() {}
                }
                _ if open.closed => return unreadable("words behind a subshell"),
                _ => {
                    let word = self.word()?;
                    let number = !word.quoted
                        && !word.text.is_empty()
                        && word.text.chars().all(|c| c.is_ascii_digit());
                    // `2>`: not a word but which output.
                    if !(number && matches!(self.rest.peek(), Some('<' | '>'))) {
                        open.words.push(word);
                    }
                }
            }
        }
    }

    fn separator(&mut self, first: char, open: &mut Open) -> Read<()> {
        if first == '&' && self.rest.peek() == Some(&'>') {
            return self.redirection();
        }
        let empty = open.words.is_empty() && !open.closed;
        let wanted = match first {
            '\n' => empty && open.wanted,
            _ if empty => return unreadable("a command without words"),
            '&' => self.next_if('&'),
            '|' => {
                let _either = self.next_if('|') || self.next_if('&');
                true
            }
            _ if matches!(self.rest.peek(), Some(';' | '&')) => return unreadable("a case"),
            _ => false,
        };
        self.finish(open);
        open.wanted = wanted;
        Ok(())
    }

    fn redirection(&mut self) -> Read<()> {
        let (first, second) = (self.rest.next(), self.rest.peek().copied());
        let mut copies = false;
        match (first, second) {
            (_, Some('(')) => return unreadable("a process substitution"),
            (Some('<'), Some('<')) => {
                self.rest.next();
                if !self.next_if('<') {
                    return unreadable("a here-document");
                }
            }
            (_, Some('&')) => {
                self.rest.next();
                copies = true;
            }
            (Some('<'), Some('>')) | (Some('>'), Some('>' | '|')) => drop(self.rest.next()),
            _ => {}
        }
        while self.rest.next_if(|c| matches!(c, ' ' | '\t')).is_some() {}
        let target = self.word()?;
        let is_number = !target.text.is_empty() && target.text.chars().all(|c| c.is_ascii_digit());
        let harmless = target.text == "/dev/null" || copies && (is_number || target.text == "-");
        if !(harmless && target.certainty == Certainty::Literal) {
            self.script.doubts.push(Doubt::Redirection);
        }
        Ok(())
    }

    fn word(&mut self) -> Read<Word> {
        let mut word = Word { text: String::new(), certainty: Certainty::Literal, quoted: false };
        let mut any = false;
        while let Some(&next) = self.rest.peek() {
            if matches!(next, ' ' | '\t' | '\n' | ';' | '&' | '|' | '(' | ')' | '<' | '>') {
                break;
            }
            any = true;
            self.rest.next();
            match next {
                '\\' => match self.rest.next() {
                    None => return unreadable("a backslash at the end"),
                    Some('\n') => {}
                    Some(c) => {
                        word.quoted = true;
                        word.text.push(visible(c)?);
                    }
                },
                '\'' => {
                    word.quoted = true;
                    loop {
                        match self.rest.next() {
                            None => return unreadable("a quote that is not closed"),
                            Some('\'') => break,
                            Some(c) => word.text.push(visible(c)?),
                        }
                    }
                }
                '"' => {
                    word.quoted = true;
                    self.in_quotes(&mut word)?;
                }
                '$' => self.dollar(&mut word, false)?,
                '`' => return unreadable("a backtick"),
                c => {
                    let starts = word.text.is_empty() || word.text.ends_with(['=', ':']);
                    word.certainty = word.certainty.max(match c {
                        '*' => Certainty::Stars,
                        '?' | '[' | '{' => Certainty::Unknown,
                        '~' if starts => Certainty::Unknown,
                        _ => Certainty::Literal,
                    });
                    word.text.push(visible(c)?);
                }
            }
        }
        if !any {
            return unreadable("a redirection to nowhere");
        }
        if !word.quoted && matches!(word.text.as_str(), "[" | "[[" | "{") {
            word.certainty = Certainty::Literal;
        }
        Ok(word)
    }

    fn in_quotes(&mut self, word: &mut Word) -> Read<()> {
        loop {
            match self.rest.next() {
                None => return unreadable("a quote that is not closed"),
                Some('"') => return Ok(()),
                Some('\\') => match self.rest.next() {
                    None => return unreadable("a quote that is not closed"),
                    Some('\n') => {}
                    Some(c @ ('$' | '`' | '"' | '\\')) => word.text.push(c),
                    Some(c) => {
                        word.text.push('\\');
                        word.text.push(visible(c)?);
                    }
                },
                Some('$') => self.dollar(word, true)?,
                Some('`') => return unreadable("a backtick"),
                Some(c) => word.text.push(visible(c)?),
            }
        }
    }

    /// What a dollar begins, after it.
    fn dollar(&mut self, word: &mut Word, in_quotes: bool) -> Read<()> {
        let is_name = |c: &char| c.is_ascii_alphanumeric() || *c == '_';
        match self.rest.peek() {
            Some('(') => {
                self.rest.next();
                if self.rest.peek() == Some(&'(') {
                    return unreadable("arithmetic");
                }
                self.script.doubts.push(Doubt::Substitution);
                self.list(End::Parenthesis)?;
            }
            Some('{') => {
                self.rest.next();
                let mut name = String::new();
                name.extend(std::iter::from_fn(|| self.rest.next_if(is_name)));
                if name.is_empty() || !self.next_if('}') {
                    return unreadable("an expansion that can do more than to name a variable");
                }
            }
            Some('[') => return unreadable("arithmetic"),
            Some('\'' | '"') if !in_quotes => return unreadable("a dollar before a quote"),
            Some(c) if is_name(c) => while self.rest.next_if(is_name).is_some() {},
            Some('?' | '#' | '@' | '*' | '!' | '$' | '-') => drop(self.rest.next()),
            _ => {
                word.text.push('$');
                return Ok(());
            }
        }
        word.text.push('$');
        word.certainty = Certainty::Unknown;
        Ok(())
    }
}

/// What people cannot see, and shells do not agree on, is no part of a word.
fn visible(c: char) -> Read<char> {
    let odd_space = c.is_whitespace() && !matches!(c, ' ' | '\t' | '\n');
    let reorders =
        matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}');
    match odd_space || reorders || (c.is_control() && !matches!(c, '\t' | '\n')) {
        true => unreadable("a character that cannot be seen"),
        false => Ok(c),
    }
}
