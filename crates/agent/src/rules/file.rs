//! Rules in a file: `allow`, `ask` and `deny`, each a list, in TOML.

use std::path::Path;

use serde::Deserialize;
use toml::Spanned;

use super::{BadRule, Decision, Rules};
use crate::settings::read_file;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    allow: Vec<Spanned<String>>,
    #[serde(default)]
    ask: Vec<Spanned<String>>,
    #[serde(default)]
    deny: Vec<Spanned<String>>,
}

const HINT: &str =
    "A file of rules looks like:  allow = [\"shell(git *)\"]  and, on other lines, ask and deny.";

impl Rules {
    /// Adds the rules of a file. If one of them is wrong, none of them counts.
    pub fn read(&mut self, path: &Path) -> Result<(), BadRule> {
        let place = path.display();
        let bytes = read_file(path).map_err(|error| {
            BadRule::new(format!("{place}: {error}"), "Give a file of rules that can be read.")
        })?;
        let text =
            String::from_utf8(bytes).map_err(|_| BadRule::new(format!("{place}: not UTF-8 text"), HINT))?;
        let line = |at: usize| text.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1;
        let file: File = toml::from_str(&text).map_err(|error| {
            let at = error.span().map(|span| format!(":{}", line(span.start))).unwrap_or_default();
            BadRule::new(format!("{place}{at}: {}", error.message()), HINT)
        })?;
        let mut read = Rules::default();
        for (decision, rules) in
            [(Decision::Allow, file.allow), (Decision::Ask, file.ask), (Decision::Deny, file.deny)]
        {
            for rule in rules {
                read.add(decision, rule.get_ref()).map_err(|error| {
                    let line = line(rule.span().start);
                    BadRule { message: format!("{place}:{line}: {}", error.message), ..error }
                })?;
            }
        }
        self.rules.extend(read.rules);
        Ok(())
    }
}
