//! What is typed at the prompt: something for the model, or a command that begins with a slash.

use alhena_agent::{Approval, Resume};
use alhena_model::options::BadValue;

/// One line of input.
#[derive(Debug, PartialEq)]
pub enum Input {
    Nothing,
    Prompt(String),
    Model(String),
    Mode(Approval),
    Resume(Resume),
    Undo,
    Help,
    Exit,
}

/// Each command: its name, what stands behind it, and what it does.
pub const COMMANDS: &[(&str, &str, &str)] = &[
    ("/model", "NAME", "Go on with another model."),
    ("/mode", "MODE", "What the model may do without asking: default, auto-edit, yolo, plan."),
    ("/resume", "ID|latest", "Go on with an earlier session of this folder."),
    ("/undo", "", "Put the files of the last turn back, where nothing else changed them since."),
    ("/help", "", "This list."),
    ("/exit", "", "End the conversation; ^D does it too."),
];

impl Input {
    /// Reads a line; what is wrong with it is a sentence for people.
    pub fn parse(line: &str) -> Result<Self, String> {
        let text = line.trim();
        if text.is_empty() {
            return Ok(Input::Nothing);
        }
        // A space before it sends a line as it is.
        if !line.starts_with('/') {
            return Ok(Input::Prompt(text.to_owned()));
        }
        let (command, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let rest = rest.trim();
        let known = COMMANDS.iter().find(|(name, ..)| *name == command);
        let Some((_, value, _)) =
            known.or_else(|| COMMANDS.iter().find(|(name, ..)| command == "/quit" && *name == "/exit"))
        else {
            let near = COMMANDS.iter().map(|(name, ..)| (strsim::jaro_winkler(name, command), *name));
            let near = near.max_by(|one, other| one.0.total_cmp(&other.0)).filter(|(close, _)| *close > 0.8);
            return Err(match near {
                Some((_, name)) => format!("{command} is no command; did you mean {name}?"),
                None => format!(
                    "{command} is no command; /help lists them, and a space before it sends it to the model"
                ),
            });
        };
        match (value.is_empty(), rest.is_empty()) {
            (true, false) => return Err(format!("{command} takes nothing behind it")),
            (false, true) => return Err(format!("{command} needs {value}")),
            _ => {}
        }
        Ok(match command {
            "/model" => Input::Model(rest.to_owned()),
            "/mode" => Input::Mode(rest.parse().map_err(|_: BadValue| {
                format!("unknown approval mode {rest:?}; use default, auto-edit, yolo or plan")
            })?),
            "/resume" if rest == "latest" => Input::Resume(Resume::Latest),
            "/resume" => Input::Resume(Resume::Id(rest.to_owned())),
            "/undo" => Input::Undo,
            "/help" => Input::Help,
            _ => Input::Exit,
        })
    }
}

/// What somebody answers to the question whether something may be done.
#[derive(Debug, PartialEq, Eq)]
pub enum Answer {
    Once,
    Always,
    /// With a reason for the model, if there is one.
    No(Option<String>),
    /// All of what would be done is to be shown.
    Show,
}

impl Answer {
    /// Reads an answer. Whoever only presses return has not said yes.
    pub fn parse(line: &str) -> Self {
        let text = line.trim();
        match text.to_lowercase().as_str() {
            "y" | "yes" => Answer::Once,
            "a" | "always" => Answer::Always,
            "s" | "show" => Answer::Show,
            "" | "n" | "no" => Answer::No(None),
            _ => Answer::No(Some(text.to_owned())),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_prompt_or_a_command() {
        let cases = [
            ("", Input::Nothing),
            ("  \t", Input::Nothing),
            (" fix it ", Input::Prompt("fix it".to_owned())),
            (" /etc/hosts is odd", Input::Prompt("/etc/hosts is odd".to_owned())),
            ("/model gemini-2.5-pro", Input::Model("gemini-2.5-pro".to_owned())),
            ("/mode auto-edit", Input::Mode(Approval::AutoEdit)),
            ("/mode  acceptEdits ", Input::Mode(Approval::AutoEdit)),
            ("/resume latest", Input::Resume(Resume::Latest)),
            ("/resume 9c9a", Input::Resume(Resume::Id("9c9a".to_owned()))),
            ("/undo", Input::Undo),
            ("/help", Input::Help),
            ("/exit", Input::Exit),
            ("/quit", Input::Exit),
        ];
        for (line, expected) in cases {
            assert_eq!(Input::parse(line).unwrap(), expected, "{line:?}");
        }
    }

    #[test]
    fn what_is_no_command_is_said_so() {
        let cases = [
            ("/resum x", "/resum is no command; did you mean /resume?"),
            (
                "/etc/hosts",
                "/etc/hosts is no command; /help lists them, and a space before it sends it to the model",
            ),
            ("/model", "/model needs NAME"),
            ("/undo all", "/undo takes nothing behind it"),
            ("/mode fast", "unknown approval mode \"fast\"; use default, auto-edit, yolo or plan"),
        ];
        for (line, expected) in cases {
            assert_eq!(Input::parse(line).unwrap_err(), expected);
        }
    }

    #[test]
    fn only_a_clear_yes_is_a_yes() {
        let cases = [
            ("y", Answer::Once),
            (" Yes ", Answer::Once),
            ("a", Answer::Always),
            ("ALWAYS", Answer::Always),
            ("s", Answer::Show),
            ("", Answer::No(None)),
            ("n", Answer::No(None)),
            ("yes but not there", Answer::No(Some("yes but not there".to_owned()))),
            ("use cargo instead", Answer::No(Some("use cargo instead".to_owned()))),
        ];
        for (line, expected) in cases {
            assert_eq!(Answer::parse(line), expected, "{line:?}");
        }
    }
}
