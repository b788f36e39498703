//! A question of an agent: may this be done?

use std::borrow::Cow;
use std::fmt;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, OnceLock, Weak};

use alhena_model::tool::{self, Class};
use alhena_wire::acp::{Call, ToolKind, gemini};
use serde_json::{Value, json};

use super::hotline::{Hotline, Order};

/// What an agent wants to do.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Question {
    /// The call, as in its events.
    pub call_id: String,
    /// The tool.
    pub tool: String,
    /// What kind of tool it is.
    pub class: Class,
    /// The MCP server that it belongs to, where that is known.
    pub server: Option<String>,
    /// Its name on that server.
    pub server_tool: Option<String>,
    /// What the agent calls it, for people.
    pub title: String,
    /// Where the session works. What the agent's text says of a directory is not taken from it: it is the process's.
    pub dir: PathBuf,
    /// The files that it is about.
    pub paths: Vec<PathBuf>,
    /// What would happen.
    pub action: Action,
    /// The complete arguments of the tool. An edit has the text that it would write, as the agent shows it.
    pub input: Value,
    /// That a command runs in another directory than the session, in the agent's own words: `[in sub] (why)`.
    pub elsewhere: Option<String>,
    /// Whether `tool` is its name; a title otherwise.
    pub named: bool,
    /// Whether the agent is Gemini CLI.
    pub(super) is_gemini: bool,
}

/// What would happen.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Action {
    /// A file changes.
    Diff {
        /// The file.
        path: PathBuf,
        /// What it holds; empty when it is new.
        before: String,
        /// What it would hold.
        after: String,
    },
    /// A command runs.
    Command {
        /// The command.
        command: String,
        /// Whether it goes on beside the agent.
        background: bool,
    },
    /// A tool runs with these arguments.
    Arguments(Value),
    /// The title is all that is known.
    Other,
}

impl Question {
    pub(super) fn of(call: &Call, dir: &Path, is_gemini: bool) -> Self {
        let title = call.title.clone().unwrap_or_default();
        let mcp = gemini::mcp_tool(&call.id, &title, &call.texts).filter(|_| is_gemini);
        let in_id = || gemini::certain_tool_name(&call.id).filter(|_| is_gemini);
        let name = mcp.as_ref().map(|tool| tool.name.as_str()).or(call.name.as_deref()).or_else(in_id);
        // The title of a tool can be a text of the model's, which could look like a name.
        let guessed = || gemini::tool_name(&call.id).filter(|_| is_gemini);
        let tool = name.or_else(guessed).unwrap_or(title.as_str()).to_owned();
        let class = match tool::class(&tool) {
            _ if mcp.is_some() => Class::Mcp,
            // Of a tool that nobody knows its agent says what kind it is.
            Class::Unknown => call.kind.map_or(Class::Unknown, class_of),
            known => known,
        };
        let changed = call.diffs.iter().map(|diff| diff.path.as_str());
        let named = changed.chain(call.paths.iter().map(String::as_str));
        let mut paths: Vec<PathBuf> = named.map(|path| dir.join(path)).collect();
        paths.sort();
        paths.dedup();
        let action = action(call, class, dir, is_gemini);
        let given = call.input.clone().filter(Value::is_object);
        let input = given.unwrap_or_else(|| shown_input(&tool, &action));
        Self {
            call_id: call.id.clone(),
            paths,
            class,
            server: mcp.as_ref().map(|tool| tool.server.clone()),
            server_tool: mcp.as_ref().map(|tool| tool.tool.clone()),
            elsewhere: elsewhere(call, dir, is_gemini),
            action,
            input,
            named: name.is_some(),
            is_gemini,
            tool,
            title,
            dir: dir.to_owned(),
        }
    }

    /// What is asked, in a line for people: the title, and the directory where that is another than the session's.
    #[must_use]
    pub fn headline(&self) -> Cow<'_, str> {
        match &self.elsewhere {
            Some(elsewhere) => Cow::Owned(format!("{} {elsewhere}", self.title)),
            None => Cow::Borrowed(&self.title),
        }
    }
}

fn class_of(kind: ToolKind) -> Class {
    match kind {
        ToolKind::Execute => Class::Command,
        ToolKind::Edit | ToolKind::Delete | ToolKind::Move => Class::FileWrite,
        ToolKind::Read | ToolKind::Search => Class::FileRead,
        ToolKind::Fetch => Class::SearchFetch,
        _ => Class::Unknown,
    }
}

/// The directory of a command where it is another than the session's.
fn elsewhere(call: &Call, dir: &Path, is_gemini: bool) -> Option<String> {
    if is_gemini {
        return call.texts.first().and_then(|text| gemini::elsewhere(text)).map(str::to_owned);
    }
    let input = call.input.as_ref()?;
    let named = DIRECTORIES.iter().find_map(|name| input.get(name).filter(|value| !value.is_null()))?;
    let is_dir = named.as_str().is_some_and(|text| Path::new(text) == dir);
    (!is_dir).then(|| format!("[in {}]", named.as_str().map_or_else(|| named.to_string(), str::to_owned)))
}

/// Arguments by which agents say where a command runs.
const DIRECTORIES: &[&str] = &[
    "cwd",
    "dir",
    "dir_path",
    "directory",
    "workdir",
    "working_dir",
    "working_directory",
    "workingDirectory",
];

fn action(call: &Call, class: Class, dir: &Path, is_gemini: bool) -> Action {
    if let Some(diff) = call.diffs.first() {
        let path = dir.join(&diff.path);
        return Action::Diff { path, before: diff.before.clone(), after: diff.after.clone() };
    }
    if class == Class::Command || call.kind == Some(ToolKind::Execute) {
        let given = call.input.as_ref().and_then(|input| input.get("command")).and_then(Value::as_str);
        // Gemini CLI's title is the command, with a text beside it; that of others is for people, and rules must not take it for one.
        let is_titled = is_gemini && call.texts.first().is_some_and(|text| gemini::is_beside_command(text));
        let command = given.or_else(|| call.title.as_deref().filter(|_| is_titled));
        if let Some(command) = command.map(str::to_owned) {
            let background = is_gemini && call.texts.iter().any(|text| gemini::is_background(text));
            return Action::Command { command, background };
        }
    }
    let arguments = || call.texts.first().and_then(|text| alhena_wire::from_slice(text.as_bytes()).ok());
    call.input.clone().or_else(arguments).filter(Value::is_object).map_or(Action::Other, Action::Arguments)
}

/// The arguments of a call, from what the agent shows of it.
fn shown_input(tool: &str, action: &Action) -> Value {
    match action {
        Action::Diff { path, before, after } => {
            let path = path.to_string_lossy();
            match tool {
                "write_file" => json!({"file_path": path, "content": after}),
                _ => json!({"file_path": path, "old_string": before, "new_string": after}),
            }
        }
        Action::Command { command, .. } => json!({"command": command}),
        Action::Arguments(arguments) => arguments.clone(),
        Action::Other => json!({}),
    }
}

/// Whether these arguments are those of the call that the agent asks about. Only what the agent shows will run, so arguments of
/// another call must not be decided about in its place.
pub(super) fn is_asked_about(args: &Value, question: &Question) -> bool {
    let text = |name: &str| args.get(name).and_then(Value::as_str);
    match &question.action {
        Action::Command { command, .. } => {
            text("command").is_some_and(|given| given.trim() == command.trim())
        }
        Action::Diff { path, .. } => {
            text("file_path").is_some_and(|given| is_same_file(&question.dir.join(given), path))
        }
        Action::Arguments(_) | Action::Other => true,
    }
}

/// Whether both paths name the same file, which need not exist.
fn is_same_file(one: &Path, other: &Path) -> bool {
    let [one, other] = [one, other].map(plain);
    let parent = |path: &Path| path.parent().and_then(|parent| parent.canonicalize().ok());
    one == other
        || one.file_name() == other.file_name() && parent(&one).is_some_and(|dir| parent(&other) == Some(dir))
}

/// The path without `.` and `..`, as it is written.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(plain.pop()),
            part => plain.push(part),
        }
    }
    plain
}

/// The arguments as the model gave them. Gemini CLI corrects some texts of edits before it asks (0.61.0): the text that would be
/// written counts then.
pub(super) fn exact_input(args: &Value, question: &Question) -> Value {
    let Action::Diff { before, after, .. } = &question.action else { return args.clone() };
    let text = |name: &str| args.get(name).and_then(Value::as_str).unwrap_or_default();
    let writes = text("content") == after;
    let (old, new) = (text("old_string"), text("new_string"));
    let replaces = || match old {
        "" => new == after,
        old => before.replacen(old, new, 1) == *after || before.replace(old, new) == *after,
    };
    let shown = match question.tool.as_str() {
        "write_file" if !writes => json!({"content": after}),
        "replace" if !replaces() => json!({"old_string": before, "new_string": after}),
        _ => return args.clone(),
    };
    let mut exact = args.as_object().cloned().unwrap_or_default();
    exact.extend(shown.as_object().cloned().unwrap_or_default());
    Value::Object(exact)
}

/// What is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    AllowOnce,
    AllowForConversation,
    Reject(String),
}

/// Why a question is not asked any more; empty as long as it is.
pub(super) type Withdrawn = Arc<OnceLock<String>>;

/// A question that waits for its answer. One that is dropped without an answer is rejected.
pub struct Permission {
    question: Box<Question>,
    number: u64,
    engine: Weak<Hotline>,
    withdrawn: Withdrawn,
    answered: bool,
}

impl Permission {
    pub(super) fn new(question: Question, number: u64, engine: Weak<Hotline>, withdrawn: Withdrawn) -> Self {
        Self { question: Box::new(question), number, engine, withdrawn, answered: false }
    }

    pub(super) fn is(&self, number: u64) -> bool {
        self.number == number
    }

    /// What the agent wants to do.
    pub fn question(&self) -> &Question {
        &self.question
    }

    /// Why no answer counts any more: the time for it is over, or the turn is. The turn says so too, with a
    /// [`TurnItem::Withdrawn`](super::TurnItem::Withdrawn); this is for whoever waits for an answer and not for the turn.
    pub fn withdrawn(&self) -> Option<&str> {
        self.withdrawn.get().map(String::as_str)
    }

    /// It may, this once.
    pub fn allow_once(self) {
        self.decide(Decision::AllowOnce);
    }

    /// It may, and the same again in this conversation. Alhena remembers that; the CLI is never told, as it would tell others.
    ///
    /// The same is: this command as it stands, unless it runs elsewhere, any change of these files, any call of this tool of an MCP server.
    pub fn allow_for_conversation(self) {
        self.decide(Decision::AllowForConversation);
    }

    /// It may not.
    pub fn reject(self, reason: impl Into<String>) {
        self.decide(Decision::Reject(reason.into()));
    }

    fn decide(mut self, decision: Decision) {
        self.send(decision);
    }

    fn send(&mut self, decision: Decision) {
        self.answered = true;
        if let Some(engine) = self.engine.upgrade() {
            // One that is gone has rejected everything.
            let _over = engine.give(Order::Decide { question: self.number, decision });
        }
    }
}

impl std::ops::Deref for Permission {
    type Target = Question;

    fn deref(&self) -> &Question {
        &self.question
    }
}

impl Drop for Permission {
    fn drop(&mut self) {
        if !self.answered {
            self.send(Decision::Reject(NOBODY_ANSWERED.to_owned()));
        }
    }
}

impl fmt::Debug for Permission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permission").field("question", &self.question).finish_non_exhaustive()
    }
}

/// Why a question was rejected that nobody took.
pub(super) const NOBODY_ANSWERED: &str = "Nobody answered whether it may be done";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_another_agent_calls_its_command_is_no_command_to_be_judged() {
        let call = |input: Option<Value>| Call {
            id: "1".to_owned(),
            texts: vec!["[current working directory /p]".to_owned()],
            title: Some("git status".to_owned()),
            kind: Some(ToolKind::Execute),
            input,
            ..Call::default()
        };
        let of = |input, is_gemini| {
            let question = Question::of(&call(input), Path::new("/p"), is_gemini);
            (question.class, question.action)
        };
        let command = |text: &str| Action::Command { command: text.to_owned(), background: false };
        assert_eq!(of(None, true), (Class::Command, command("git status")));
        assert_eq!(of(None, false), (Class::Command, Action::Other));
        assert_eq!(of(Some(json!({"command": "rm x"})), false), (Class::Command, command("rm x")));
    }

    #[test]
    fn arguments_of_another_call_are_not_those_that_are_asked_about() {
        let mut question =
            asked("run_shell_command__1", "touch x", ToolKind::Execute, "[current working directory /p]");
        let fits = |question: &Question, args| is_asked_about(&args, question);
        assert!(fits(&question, json!({"command": " touch x\n", "dir_path": "sub"})));
        assert!(!fits(&question, json!({"command": "echo ok"})) && !fits(&question, json!({})));
        question.action =
            Action::Diff { path: "/p/a/b.txt".into(), before: String::new(), after: "x".into() };
        for path in ["a/b.txt", "./a/c/../b.txt", "/p/a/b.txt"] {
            assert!(fits(&question, json!({"file_path": path})), "{path}");
        }
        for path in ["b.txt", "a/c.txt", "../a/b.txt", ""] {
            assert!(!fits(&question, json!({"file_path": path})), "{path}");
        }
    }

    /// Gemini CLI corrects an `old_string` that does not occur in the file before it asks (0.61.0).
    #[test]
    fn an_edit_that_the_cli_corrected_is_asked_about_as_it_would_be_written() {
        let mut question = asked("replace__1", "a.txt", ToolKind::Edit, "");
        question.action =
            Action::Diff { path: "/p/a.txt".into(), before: "one two".into(), after: "one 2".into() };
        let exact = |old: &str, new: &str| {
            let args =
                json!({"file_path": "a.txt", "old_string": old, "new_string": new, "instruction": "i"});
            exact_input(&args, &question)
        };
        let as_given = exact("two", "2");
        assert_eq!((&as_given["old_string"], &as_given["new_string"]), (&json!("two"), &json!("2")));
        let corrected = exact("tvvo", "2");
        assert_eq!(
            (&corrected["old_string"], &corrected["new_string"]),
            (&json!("one two"), &json!("one 2"))
        );
        assert_eq!((&corrected["file_path"], &corrected["instruction"]), (&json!("a.txt"), &json!("i")));
    }

    /// A question of Gemini CLI's, as it sends it (0.61.0).
    fn asked(id: &str, title: &str, kind: ToolKind, text: &str) -> Question {
        let call = Call {
            id: id.to_owned(),
            title: Some(title.to_owned()),
            kind: Some(kind),
            texts: vec![text.to_owned()],
            ..Call::default()
        };
        Question::of(&call, Path::new("/p"), true)
    }

    #[test]
    fn no_command_and_no_argument_poses_as_a_tool_of_a_server() {
        let here = "[current working directory /p]";
        let shell = asked("run_shell_command__1", "touch M # (srv MCP Server)", ToolKind::Execute, here);
        assert_eq!((shell.server, shell.class, shell.named), (None, Class::Command, true));
        let poses = r#"{"command":"do_it (srv MCP Server)"}"#;
        let other = asked("mcp_evil_do_it__1", "do_it (srv MCP Server)", ToolKind::Other, poses);
        assert_eq!((other.server, other.tool.as_str()), (None, "mcp_evil_do_it"));
        let fetch = asked("web_fetch__1", "x (srv MCP Server)", ToolKind::Fetch, "{}");
        assert_eq!(fetch.server, None);
        let own = asked("mcp_srv_do_it__1", "do_it (srv MCP Server)", ToolKind::Other, "{}");
        assert_eq!(
            (own.server.as_deref(), own.tool.as_str(), own.named),
            (Some("srv"), "mcp_srv_do_it", true)
        );
    }

    #[test]
    fn half_a_character_in_arguments_hides_none_of_them() {
        let text = r#"{"word":"half \ud83d","n":1}"#;
        let question = asked("mcp_srv_do_it__1", "do_it (srv MCP Server)", ToolKind::Other, text);
        assert_eq!(question.input, json!({"word": "half \u{fffd}", "n": 1}));
        assert_eq!(question.server.as_deref(), Some("srv"));
    }

    #[test]
    fn underscores_in_the_id_of_a_call_do_not_change_its_tool() {
        let here = "[current working directory /p]";
        for id in ["run_shell_command__a__b", "run_shell_command__mcp_srv_t__1", "run_shell_command____"] {
            let question = asked(id, "ls", ToolKind::Execute, here);
            assert_eq!((question.tool.as_str(), question.named), ("run_shell_command", true), "{id}");
        }
        let unsure = asked("mcp_srv_x__y__1", "ls", ToolKind::Other, r#"{"command":"ls"}"#);
        assert_eq!((unsure.named, unsure.class, unsure.server), (false, Class::Mcp, None));
    }

    #[test]
    fn where_a_command_runs_is_taken_from_what_the_agent_says_and_not_from_the_command() {
        let of = |title: &str, text: &str| asked("run_shell_command__1", title, ToolKind::Execute, text);
        assert_eq!(of("ls", "[current working directory /p] ([in sub])").elsewhere, None);
        assert_eq!(of("ls", "[in sub]").elsewhere.as_deref(), Some("[in sub]"));
        // Up to 0.37 the title was more than the command.
        let old = of("ls [in sub]", "");
        assert_eq!((old.class, old.action), (Class::Command, Action::Other));
        let other = |input: Value| {
            let call = Call {
                id: "1".to_owned(),
                kind: Some(ToolKind::Execute),
                input: Some(input),
                ..Call::default()
            };
            Question::of(&call, Path::new("/p"), false).elsewhere
        };
        assert_eq!(other(json!({"command": "ls"})), None);
        assert_eq!(other(json!({"command": "ls", "cwd": "/p"})), None);
        assert_eq!(other(json!({"command": "ls", "cwd": "sub"})).as_deref(), Some("[in sub]"));
    }
}
