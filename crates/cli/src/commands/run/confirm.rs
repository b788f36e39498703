//! `--confirm TOOL`: a person is asked on the terminal before such a tool runs, with its diff or command.
//!
//! It is a hook before tools, and so works headless as well. Whoever is asked sits at the terminal of this process, wherever
//! stdin and stdout lead. Everything but a yes is a no: a time that is over, a terminal that is gone, an empty line.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use alhena_agent::Action;
use alhena_agent::hooks::{Asked, Hooks, Moment, Verdict};
use alhena_agent::rules::{BadRule, Decision, Question, Rules, Subject};
use alhena_agent::{ResolvedRequest, RunError};
use alhena_model::Hint;
use alhena_model::hook::{UNCONFIRMED, UNDECIDED};
use alhena_model::tool::{self, Class};
use alhena_sys::{handles, terminals};
use parking_lot::Mutex;
use serde_json::Value;

use crate::commands::chat::asked;
use crate::commands::chat::editor;
use crate::commands::chat::input::Answer;
use crate::output::{self, Guard, Stream};
use crate::signals;
use crate::style::Colours;

const QUESTION: &str = "  [y]es, [n]o, or a reason: ";
/// Of a larger file no diff is shown.
const LARGEST: u64 = 4 << 20;
/// The time is kept for each question by itself; several may wait for each other.
const ALL_DAY: Duration = Duration::from_secs(23 * 3600);

/// Adds whom it asks to a request. Without a terminal, or without a tool of that name, it is refused.
pub fn add(tools: &[String], request: &mut ResolvedRequest) -> Result<(), RunError> {
    if tools.is_empty() {
        return Ok(());
    }
    let mut rules = Rules::default();
    for tool in tools {
        rules.add(Decision::Ask, &with_any_end(tool)).map_err(|bad: BadRule| {
            RunError::usage(format!("--confirm: {bad}"), bad.hint().unwrap_or_default().into_owned())
        })?;
    }
    let person = Person { terminal: terminal()?, limit: request.permission_timeout };
    let person = Arc::new(Mutex::new(person));
    let confirm = Hooks::new([Moment::BeforeTool], move |asked| match rules.decide(&question(asked)) {
        None => Verdict::GO_ON,
        Some(_) => person.lock().confirm(asked),
    });
    let confirm = confirm.time_limit(ALL_DAY);
    request.hooks = Some(match request.hooks.take() {
        Some(others) => others.then(confirm),
        None => confirm,
    });
    Ok(())
}

/// `run_shell_command(git push)` is about all commands that begin so, as for `--allow-tool`.
fn with_any_end(tool: &str) -> String {
    match tool.trim().strip_suffix(')') {
        Some(begun) if !begun.ends_with(['*', '(']) && is_shell(begun) => format!("{begun} *)"),
        _ => tool.to_owned(),
    }
}

fn is_shell(begun: &str) -> bool {
    let name = begun.split('(').next().unwrap_or_default().trim();
    matches!(name, "shell" | "ShellTool") || tool::class(name) == Class::Command || name == "Bash"
}

/// The terminal of this process, if it may be read from.
fn terminal() -> Result<File, RunError> {
    let nobody = |why: &str| {
        RunError::usage(
            format!("--confirm asks a person, and {why}"),
            "Run it in a terminal, or let a program decide by --hook before-tool=COMMAND.",
        )
    };
    let terminal = terminals::open_own();
    let terminal = terminal.map_err(|_| nobody("there is no terminal"))?;
    match terminals::is_in_foreground(&terminal) {
        true => Ok(terminal),
        false => Err(nobody("alhena does not run in the foreground of its terminal")),
    }
}

/// What a call is about, for rules.
fn question(asked: &Asked) -> Question {
    let (name, input, dir) = (asked.tool(), asked.input(), dir(asked));
    let class = tool::class(name);
    let subject = match (command(input), path(input)) {
        (Some(command), _) if class == Class::Command => Subject::Command(command.to_owned()),
        (_, Some(path)) if matches!(class, Class::FileRead | Class::FileWrite) => {
            Subject::Paths(vec![dir.join(path)])
        }
        _ => Subject::Arguments(input.clone()),
    };
    Question {
        tool: name.to_owned(),
        named: true,
        class,
        server: None,
        server_tool: None,
        subject,
        dir,
        elsewhere: false,
    }
}

fn dir(asked: &Asked) -> PathBuf {
    asked.told.get("cwd").and_then(Value::as_str).unwrap_or("/").into()
}

fn text<'i>(input: &'i Value, names: &[&str]) -> Option<&'i str> {
    names.iter().find_map(|name| input.get(name)?.as_str())
}

fn command(input: &Value) -> Option<&str> {
    text(input, &["command"])
}

fn path(input: &Value) -> Option<&str> {
    text(input, &["file_path", "absolute_path"])
}

/// Whoever is at the terminal.
struct Person {
    terminal: File,
    limit: Option<Duration>,
}

impl Person {
    fn confirm(&self, asked: &Asked) -> Verdict {
        // Whoever ends the run is not asked about the rest of it.
        if signals::have_come() {
            return denied("the run is being stopped");
        }
        let _quiet = output::without_progress();
        match self.ask(asked) {
            Ok(verdict) => verdict,
            Err(error) => Verdict::Deny(format!("{UNDECIDED}the terminal could not be used: {error}")),
        }
    }

    fn ask(&self, asked: &Asked) -> io::Result<Verdict> {
        let began = Instant::now();
        let late = || self.limit.is_some_and(|limit| began.elapsed() >= limit);
        let what = match (change(asked), command(asked.input())) {
            (Some((path, before, after)), _) => Action::Diff { path: path.into(), before, after },
            // Where it runs elsewhere all of it is shown.
            (None, Some(command))
                if tool::class(asked.tool()) == Class::Command
                    && text(asked.input(), &["dir_path", "directory"]).is_none() =>
            {
                let background = asked.input().get("is_background") == Some(&Value::Bool(true));
                Action::Command { command: command.to_owned(), background }
            }
            _ => Action::Arguments(asked.input().clone()),
        };
        let colours = Colours::of(Stream::Err);
        let mut most = Some(asked::FIRST_LINES);
        // What was printed before may not have ended its line.
        self.print("\n")?;
        loop {
            let text = asked::shown(asked.tool(), "", &what, most, colours);
            self.print(&text)?;
            let over = || late() || signals::have_come();
            let answer = editor::answer_on(handles::of(&self.terminal), || self.print(QUESTION), over)?;
            match answer.as_deref().map(Answer::parse) {
                Some(Answer::Once) => return Ok(Verdict::GO_ON),
                Some(Answer::No(reason)) => {
                    return Ok(denied(reason.as_deref().unwrap_or("the user said no")));
                }
                Some(Answer::Show) => most = None,
                // It is asked each time.
                Some(Answer::Always) => self.print("  It is yes or no, each time.\n")?,
                None => {
                    self.print("\n")?;
                    let why = if late() { "nobody answered in time" } else { "nobody answered" };
                    return Ok(denied(why));
                }
            }
        }
    }

    fn print(&self, text: &str) -> io::Result<()> {
        let mut out = Guard::new(BufWriter::new(&self.terminal));
        out.write_all(text.as_bytes())?;
        out.flush()
    }
}

fn denied(why: &str) -> Verdict {
    Verdict::Deny(format!("{UNCONFIRMED}{why}"))
}

/// The file that a tool changes, as it is and as it would be; none where that cannot be shown.
fn change(asked: &Asked) -> Option<(String, String, String)> {
    if tool::class(asked.tool()) != Class::FileWrite {
        return None;
    }
    let input = asked.input();
    let path = path(input)?;
    let before = contents(&dir(asked).join(path))?;
    let after = match (text(input, &["content"]), text(input, &["old_string"]), text(input, &["new_string"]))
    {
        (Some(content), None, None) => content.to_owned(),
        (None, Some(""), Some(new)) if before.is_empty() => new.to_owned(),
        (None, Some(old), Some(new)) if !old.is_empty() && before.contains(old) => {
            let all = input.get("allow_multiple") == Some(&Value::Bool(true));
            if all { before.replace(old, new) } else { before.replacen(old, new, 1) }
        }
        // What the tool makes of it cannot be foretold.
        _ => return None,
    };
    Some((path.to_owned(), before, after))
}

/// What a file holds; nothing if it is new, and none if it is no text, too large, or no file.
fn contents(path: &Path) -> Option<String> {
    match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Some(String::new()),
        Ok(data) if data.is_file() && data.len() <= LARGEST => fs::read_to_string(path).ok(),
        _ => None,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use serde_json::json;

    fn asks(confirm: &str, tool: &str, input: Value) -> bool {
        let told = json!({"tool_name": tool, "tool_input": input, "cwd": "/p"});
        let asked = Asked { moment: Moment::BeforeTool, told: told.as_object().cloned().unwrap() };
        let mut rules = Rules::default();
        rules.add(Decision::Ask, &with_any_end(confirm)).unwrap();
        rules.decide(&question(&asked)).is_some()
    }

    #[test]
    fn tools_are_meant_by_their_names_aliases_and_the_beginnings_of_commands() {
        let run = |command: &str| json!({ "command": command });
        assert!(asks("write_file", "write_file", json!({"file_path": "a", "content": "x"})));
        assert!(asks("Write", "write_file", json!({"file_path": "a", "content": "x"})));
        assert!(!asks("write_file", "replace", json!({"file_path": "a"})));
        assert!(asks("*", "replace", json!({"file_path": "a"})));
        assert!(asks("run_shell_command", "run_shell_command", run("ls")));
        for rule in
            ["run_shell_command(git push)", "Bash(git push:*)", "ShellTool(git push)", "shell(git push *)"]
        {
            for command in
                ["git push", "git push -f origin", "cd x && git push", "$(echo git) push", "sh -c 'git push'"]
            {
                assert!(asks(rule, "run_shell_command", run(command)), "{rule}: {command}");
            }
            assert!(!asks(rule, "run_shell_command", run("git status")), "{rule}");
        }
    }

    #[test]
    fn a_change_is_foretold_as_far_as_it_can_be() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("a"), "one two two\n").unwrap();
        let of = |tool: &str, input: Value| {
            let told = json!({"tool_name": tool, "tool_input": input, "cwd": dir.path()});
            change(&Asked { moment: Moment::BeforeTool, told: told.as_object().cloned().unwrap() })
        };
        let after = |found: Option<(String, String, String)>| found.map(|(_, _, after)| after);
        assert_eq!(after(of("write_file", json!({"file_path": "b", "content": "x"}))).as_deref(), Some("x"));
        let replace = |more: Value| {
            let mut input = json!({"file_path": "a", "old_string": "two", "new_string": "2"});
            input.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
            after(of("replace", input))
        };
        assert_eq!(replace(json!({})).as_deref(), Some("one 2 two\n"));
        assert_eq!(replace(json!({"allow_multiple": true})).as_deref(), Some("one 2 2\n"));
        assert_eq!(replace(json!({"old_string": "three"})), None);
        assert_eq!(of("write_file", json!({"file_path": ".", "content": "x"})), None);
        assert_eq!(of("run_shell_command", json!({"command": "ls"})), None);
    }
}
