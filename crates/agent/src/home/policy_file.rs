//! Whether a policy file that was asked for will be obeyed.
//!
//! 0.61.0 runs without a policy file that is missing, broken or not called `.toml`, and without the keys in it that it does
//! not know: what was to be denied is then allowed. So such a file is refused before anything starts.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use toml::{Spanned, Value};

/// What is wrong with a policy file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadPolicy {
    /// The file or directory.
    pub path: PathBuf,
    /// The line, from 1.
    pub line: Option<usize>,
    /// What is wrong there.
    pub message: String,
}

impl fmt::Display for BadPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.path.display(), self.message),
            None => write!(f, "{}: {}", self.path.display(), self.message),
        }
    }
}

impl std::error::Error for BadPolicy {}

/// The whole file. Safety checkers are left to the CLI.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    rule: Vec<Spanned<Rule>>,
    #[serde(default)]
    safety_checker: Vec<Value>,
}

/// One rule as 0.61.0 takes it, old spellings included.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Rule {
    tool_name: Names,
    decision: Spanned<String>,
    priority: Spanned<i64>,
    #[serde(default)]
    modes: Vec<Spanned<String>>,
    #[serde(rename = "commandPrefix")]
    _prefix: Option<Names>,
    #[serde(rename = "subagent")]
    _subagent: Option<String>,
    #[serde(rename = "mcpName")]
    _server: Option<String>,
    #[serde(rename = "argsPattern")]
    _arguments: Option<String>,
    #[serde(rename = "commandRegex")]
    _command: Option<String>,
    #[serde(rename = "interactive")]
    _interactive: Option<bool>,
    #[serde(rename = "toolAnnotations")]
    _annotations: Option<toml::Table>,
    #[serde(rename = "allowRedirection", alias = "allow_redirection")]
    _redirection: Option<bool>,
    #[serde(rename = "denyMessage", alias = "deny_message")]
    _message: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Names {
    One(String),
    Several(Vec<String>),
}

const DECISIONS: [&str; 3] = ["allow", "deny", "ask_user"];
const MODES: [&str; 4] = ["default", "autoEdit", "yolo", "plan"];

/// Checks what `--policy` names: a file, or a directory of them. Gives back the path for the CLI, which works elsewhere.
pub fn check_policy(path: &Path) -> Result<PathBuf, BadPolicy> {
    let bad = |message: String| BadPolicy { path: path.to_path_buf(), line: None, message };
    let found = path.canonicalize().map_err(|error| bad(error.to_string()))?;
    if found.to_string_lossy().contains(',') {
        return Err(bad("Gemini CLI takes the comma in its name for the start of another".to_owned()));
    }
    let is_toml = |file: &Path| file.extension().is_some_and(|extension| extension == "toml");
    if !found.is_dir() {
        if !is_toml(&found) {
            return Err(bad("Gemini CLI reads only files whose name ends in .toml".to_owned()));
        }
        check_file(&found)?;
        return Ok(found);
    }
    let entries = fs::read_dir(&found).map_err(|error| bad(error.to_string()))?;
    let files: Vec<PathBuf> =
        entries.flatten().map(|entry| entry.path()).filter(|file| is_toml(file)).collect();
    if files.is_empty() {
        return Err(bad("there is no .toml file in that directory".to_owned()));
    }
    files.iter().try_for_each(|file| check_file(file))?;
    Ok(found)
}

fn check_file(path: &Path) -> Result<(), BadPolicy> {
    let bad = |line, message: String| BadPolicy { path: path.to_path_buf(), line, message };
    let bytes = crate::settings::read_file(path).map_err(|error| bad(None, error.to_string()))?;
    let text = String::from_utf8(bytes).map_err(|_| bad(None, "not UTF-8 text".to_owned()))?;
    let line = |at: usize| Some(text.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1);
    let file: File = toml::from_str(&text).map_err(|error| {
        let message = error.message().replace('\n', " ");
        bad(error.span().and_then(|span| line(span.start)), message)
    })?;
    if file.rule.is_empty() && file.safety_checker.is_empty() {
        return Err(bad(None, "there is no [[rule]] in it".to_owned()));
    }
    for rule in &file.rule {
        let start = rule.span().start;
        let rule = rule.get_ref();
        let one_of = |value: &Spanned<String>, what: &str, known: &[&str]| {
            let text = value.get_ref().as_str();
            match known.contains(&text) {
                true => Ok(()),
                false => Err(bad(
                    line(value.span().start),
                    format!("{what} {text:?} is none of {}", known.join(", ")),
                )),
            }
        };
        one_of(&rule.decision, "decision", &DECISIONS)?;
        rule.modes.iter().try_for_each(|mode| one_of(mode, "mode", &MODES))?;
        if !(0..=999).contains(rule.priority.get_ref()) {
            let message = "priority is not between 0 and 999".to_owned();
            return Err(bad(line(rule.priority.span().start), message));
        }
        let names = match &rule.tool_name {
            Names::One(name) => std::slice::from_ref(name),
            Names::Several(names) => names,
        };
        if names.is_empty() || names.iter().any(String::is_empty) {
            return Err(bad(line(start), "toolName is empty; \"*\" stands for every tool".to_owned()));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> Result<(), String> {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().canonicalize().unwrap().join("p.toml");
        fs::write(&file, text).unwrap();
        let shown = format!("{}", file.display());
        check_policy(&file).map(drop).map_err(|bad| bad.to_string().replace(&shown, "p.toml"))
    }

    const GOOD: &str = "# mine\n[[rule]]\ntoolName = [\"run_shell_command\"]\ncommandPrefix = \"git\"\n\
        decision = \"ask_user\"\npriority = 100\nmodes = [\"yolo\"]\nallow_redirection = true\n\n\
        [[rule]]\ntoolName = \"*\"\ndecision = \"deny\"\npriority = 0\n";

    #[test]
    fn good_file_is_taken_and_what_the_cli_would_drop_is_refused_with_its_line() {
        assert_eq!(said(GOOD), Ok(()));
        for (text, expected) in [
            ("not toml [", "p.toml:1: "),
            ("\n[[rules]]\ntoolName = \"x\"\n", "p.toml:2: unknown field `rules`"),
            ("[[rule]]\ntool = \"x\"\ndecision = \"deny\"\npriority = 1\n", "p.toml:2: unknown field `tool`"),
            (
                "[[rule]]\ntoolName = \"x\"\ndecision = \"maybe\"\npriority = 1\n",
                "p.toml:3: decision \"maybe\" is none of allow, deny, ask_user",
            ),
            (
                "[[rule]]\ntoolName = \"x\"\ndecision = \"deny\"\npriority = 1000\n",
                "p.toml:4: priority is not between 0 and 999",
            ),
            (
                "[[rule]]\ntoolName = \"x\"\ndecision = \"deny\"\npriority = 1\nmodes = [\"auto\"]\n",
                "p.toml:5: mode \"auto\" is none of default, autoEdit, yolo, plan",
            ),
            ("[[rule]]\ntoolName = \"\"\ndecision = \"deny\"\npriority = 1\n", "p.toml:1: toolName is empty"),
            ("[[rule]]\ntoolName = \"x\"\ndecision = \"deny\"\n", "p.toml:1: missing field `priority`"),
            ("rule = 1\n", "p.toml:1: "),
            ("", "p.toml: there is no [[rule]] in it"),
        ] {
            let why = said(text).unwrap_err();
            assert!(why.starts_with(expected), "{text:?}: {why}");
        }
    }

    #[test]
    fn what_is_not_there_or_would_not_be_read_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        let message = |name: &str| check_policy(&at(name)).unwrap_err().message;
        assert!(message("missing.toml").contains("No such file"));
        fs::write(at("rules.txt"), GOOD).unwrap();
        assert!(message("rules.txt").contains(".toml"));
        fs::write(at("a,b.toml"), GOOD).unwrap();
        assert!(message("a,b.toml").contains("comma"));
        fs::create_dir(at("directory")).unwrap();
        assert!(message("directory").contains("no .toml file"));
        fs::write(at("directory/one.toml"), GOOD).unwrap();
        assert_eq!(check_policy(&at("directory")), Ok(at("directory").canonicalize().unwrap()));
        fs::write(at("directory/two.toml"), "x").unwrap();
        assert_eq!(
            check_policy(&at("directory")).unwrap_err().path,
            at("directory/two.toml").canonicalize().unwrap()
        );
    }
}
