//! What is answered without asking anybody: by rules, by what was allowed for the conversation, and by the approval mode.

use alhena_model::tool::Class;
use serde_json::Value;

use super::permission::{Action, Decision, Question};
use crate::budget;
use crate::home::{SHELL, ToolRule};
use crate::prepare::asking;
use crate::request::{Approval, ResolvedRequest};
use crate::rules::{self, Remembered, Rules, Subject};

/// What Gemini CLI does without asking in every mode but plan (0.61.0).
const FREE: &[&str] = &[
    "glob",
    "grep_search",
    "search_file_content",
    "list_directory",
    "read_file",
    "read_many_files",
    "google_web_search",
    "get_internal_docs",
    "write_todos",
    "update_topic",
    "complete_task",
    "read_mcp_resource",
    "list_mcp_resources",
    "tracker_create_task",
    "tracker_update_task",
    "tracker_get_task",
    "tracker_list_tasks",
    "tracker_add_dependency",
    "tracker_visualize",
];

/// What stands between the agent's questions and whoever answers them.
pub(super) struct Gate {
    pub approval: Approval,
    rules: Rules,
    remembered: Remembered,
    /// MCP servers whose tools need not ask, where the agent was made to ask about more than it would by itself.
    trusted: Vec<String>,
    /// The agent was made to ask about everything, because somebody decides before a tool runs.
    hooked: bool,
    /// The agent was made to ask about tools that call models, because there is a budget.
    metered: bool,
    /// What the caller allows by name.
    allowed: Vec<ToolRule>,
}

impl Gate {
    pub(super) fn of(request: &ResolvedRequest, trusted: &[String]) -> Self {
        Self {
            approval: request.approval,
            rules: request.rules.clone(),
            remembered: Remembered::default(),
            trusted: trusted.to_vec(),
            hooked: asking::about_everything(request),
            metered: budget::is_wanted(request),
            allowed: request.allow_tools.iter().filter_map(|rule| rule.parse().ok()).collect(),
        }
    }

    /// The mode that the agent itself works in.
    pub(super) fn mode(&self) -> Approval {
        match self.hooked {
            true => Approval::Default,
            false => mode_of_agent(self.approval, &self.rules),
        }
    }

    /// The answer, if it is clear. What a rule denies nobody is asked about.
    pub(super) fn decide(&self, question: &Question) -> Option<Decision> {
        let by_rule = rules::Question::from(question);
        let ruling = self.rules.decide(&by_rule);
        if let Some(ruling) = ruling.as_ref().filter(|ruling| ruling.decision == rules::Decision::Deny) {
            return Some(Decision::Reject(format!("It is {ruling}")));
        }
        if self.remembered.allows(&by_rule) {
            return Some(Decision::AllowOnce);
        }
        let edits = matches!(question.action, Action::Diff { .. });
        let nobody_wants_to_know = ruling.is_none();
        let allowed = match (ruling.map(|ruling| ruling.decision), self.approval) {
            (Some(rules::Decision::Ask | rules::Decision::Deny), _) => false,
            (Some(rules::Decision::Allow), _) => true,
            // It asks all the same for build files, and for commands that have a word of some tool's output in them (0.61.0).
            (None, Approval::Yolo) => true,
            (None, Approval::AutoEdit) => edits,
            (None, Approval::Default | Approval::Plan) => false,
        };
        (allowed || (nobody_wants_to_know && self.is_free(question))).then_some(Decision::AllowOnce)
    }

    /// Whether the agent asks only because it was made to: about these it never asks by itself. Of commands that is true where they only
    /// read, and Gemini CLI's own opinion of that is not taken: its reader can be evaded (0.61.0).
    fn is_free(&self, question: &Question) -> bool {
        let of_trusted = |server: &String| question.class == Class::Mcp && self.trusted.contains(server);
        let trusted = question.named && question.server.as_ref().is_some_and(of_trusted);
        let free = question.named && question.server.is_none() && FREE.contains(&question.tool.as_str());
        let reads = |command: &str| {
            let asks = question.is_gemini && question.named && question.tool == SHELL;
            let mode = matches!(self.approval, Approval::Default | Approval::AutoEdit);
            mode && asks && question.elsewhere.is_none() && rules::only_reads(command, &question.dir)
        };
        let fetches = question.tool == "web_fetch" && self.approval == Approval::AutoEdit;
        let command = match &question.action {
            Action::Command { command, .. } => Some(command.as_str()),
            _ => None,
        };
        let of = question.server.as_deref().zip(question.server_tool.as_deref());
        let covers = |rule: &ToolRule| rule.covers(&question.tool, of, command, question.elsewhere.is_some());
        let allowed = question.named && self.allowed.iter().any(covers);
        command.is_some_and(reads) || (self.is_made_to_ask() && (fetches || allowed || trusted || free))
    }

    fn is_made_to_ask(&self) -> bool {
        self.hooked || self.metered || self.rules.restrict()
    }

    /// From now on the same is allowed.
    pub(super) fn remember(&mut self, question: &Question) {
        self.remembered.allow(&question.into());
    }
}

/// The mode that an agent works in: where rules deny something or want to be asked, it has to ask about everything. Its
/// sub-agents, which ask nobody, may then do nothing that would have to be asked (0.61.0).
pub(super) fn mode_of_agent(approval: Approval, rules: &Rules) -> Approval {
    match approval {
        Approval::AutoEdit | Approval::Yolo if rules.restrict() => Approval::Default,
        approval => approval,
    }
}

impl From<&Question> for rules::Question {
    fn from(question: &Question) -> Self {
        let (class, subject) = match &question.action {
            // Of an agent whose tools nobody knows it is still a command, or a change of files.
            Action::Command { command, .. } => (Class::Command, Subject::Command(command.clone())),
            Action::Diff { path, .. } => {
                let class = if question.class == Class::Unknown { Class::FileWrite } else { question.class };
                let paths =
                    if question.paths.is_empty() { vec![path.clone()] } else { question.paths.clone() };
                (class, Subject::Paths(paths))
            }
            _ if matches!(question.class, Class::FileRead | Class::FileWrite)
                && !question.paths.is_empty() =>
            {
                (question.class, Subject::Paths(question.paths.clone()))
            }
            Action::Arguments(arguments)
                if question.class == Class::FileRead && arguments.get("file_path").is_some() =>
            {
                let path =
                    arguments.get("file_path").and_then(Value::as_str).map(|path| question.dir.join(path));
                (question.class, Subject::Paths(path.into_iter().collect()))
            }
            Action::Arguments(arguments) => (question.class, Subject::Arguments(arguments.clone())),
            Action::Other => (question.class, Subject::Text(question.title.clone())),
        };
        Self {
            tool: question.tool.clone(),
            named: question.named,
            class,
            server: question.server.clone(),
            server_tool: question.server_tool.clone(),
            subject,
            dir: question.dir.clone(),
            elsewhere: question.elsewhere.is_some(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    use alhena_model::tool;
    use alhena_wire::acp::{Call, ToolKind};
    use serde_json::json;

    fn question(tool: &str, action: Action) -> Question {
        Question {
            call_id: "c".into(),
            tool: tool.into(),
            named: true,
            class: tool::class(tool),
            server: None,
            server_tool: None,
            title: String::new(),
            paths: Vec::new(),
            dir: "/p".into(),
            elsewhere: None,
            is_gemini: true,
            action,
            input: json!({}),
        }
    }

    fn command(command: &str) -> Question {
        question("run_shell_command", Action::Command { command: command.into(), background: false })
    }

    fn edit(path: &str) -> Question {
        let path = path.into();
        question("write_file", Action::Diff { path, before: String::new(), after: String::new() })
    }

    fn gate(approval: Approval) -> Gate {
        Gate::of(&ResolvedRequest { approval, ..ResolvedRequest::default() }, &[])
    }

    #[test]
    fn each_mode_answers_by_itself_what_it_stands_for() {
        for (approval, commands, edits) in [
            (Approval::Default, false, false),
            (Approval::Plan, false, false),
            (Approval::AutoEdit, false, true),
            (Approval::Yolo, true, true),
        ] {
            let gate = gate(approval);
            assert_eq!(gate.decide(&command("make")).is_some(), commands, "{approval:?}");
            // What Gemini CLI would do unasked, as far as that is certain.
            let reads = approval != Approval::Plan;
            assert_eq!(gate.decide(&command("ls")).is_some(), reads, "{approval:?}");
            let other = Question { is_gemini: false, ..command("ls") };
            assert_eq!(gate.decide(&other).is_some(), commands, "{approval:?}");
            assert_eq!(gate.decide(&edit("/p/Cargo.toml")).is_some(), edits, "{approval:?}");
        }
    }

    #[test]
    fn what_was_allowed_for_the_conversation_is_allowed_again_and_nothing_else() {
        let mut gate = gate(Approval::Default);
        gate.remember(&command("cargo test"));
        gate.remember(&edit("/p/a"));
        gate.remember(&question("mcp_s_t", Action::Arguments(json!({"x": 1}))));
        for (asked, allowed) in [
            (command("cargo test"), true),
            (command("cargo test; rm -r x"), false),
            (edit("/p/a"), true),
            (edit("/q/b"), false),
            (question("mcp_s_u", Action::Arguments(json!({"x": 1}))), false),
            (question("web_fetch", Action::Other), false),
        ] {
            assert_eq!(gate.decide(&asked).is_some(), allowed, "{asked:?}");
        }
    }

    #[test]
    fn a_rule_about_some_tools_leaves_allowed_others_allowed() {
        let allow = ["write_file", "run_shell_command", "srv__*"].map(str::to_owned).to_vec();
        let mut request = ResolvedRequest { allow_tools: allow, ..ResolvedRequest::default() };
        request.rules.add(rules::Decision::Deny, "edit(.env)").unwrap();
        request.rules.add(rules::Decision::Deny, "shell(rm *)").unwrap();
        request.rules.add(rules::Decision::Ask, "mcp(srv/drop)").unwrap();
        let gate = Gate::of(&request, &[]);
        let tool = |tool: &str| Question {
            server: Some("srv".to_owned()),
            server_tool: Some(tool.to_owned()),
            ..question(&format!("mcp_srv_{tool}"), Action::Arguments(json!({})))
        };
        for asked in [edit("/p/a"), command("touch a"), tool("look")] {
            assert_eq!(gate.decide(&asked), Some(Decision::AllowOnce), "{asked:?}");
        }
        assert!(matches!(gate.decide(&command("rm a")), Some(Decision::Reject(_))));
        assert_eq!((gate.decide(&tool("drop")), gate.decide(&edit("/p/a/../.env")).is_some()), (None, true));
        assert!(!matches!(gate.decide(&edit("/p/.env")), Some(Decision::AllowOnce)));
    }

    #[test]
    fn rules_go_before_the_mode_and_what_they_deny_is_denied_whatever_was_allowed() {
        let mut request = ResolvedRequest { approval: Approval::Yolo, ..ResolvedRequest::default() };
        request.rules.add(rules::Decision::Deny, "shell(rm *)").unwrap();
        request.rules.add(rules::Decision::Ask, "shell(git push*)").unwrap();
        let mut gate = Gate::of(&request, &[]);
        gate.remember(&command("rm x"));
        assert!(
            matches!(gate.decide(&command("rm x")), Some(Decision::Reject(why)) if why.contains("shell(rm *)"))
        );
        assert_eq!(gate.decide(&command("git push")), None);
        gate.remember(&command("git push"));
        assert_eq!(gate.decide(&command("git push")), Some(Decision::AllowOnce));
        assert_eq!(gate.decide(&command("ls")), Some(Decision::AllowOnce));
    }

    #[test]
    fn rules_come_before_the_mode_and_make_the_agent_ask() {
        let mut rules = Rules::default();
        rules.add(rules::Decision::Allow, "shell(git *)").unwrap();
        let with = |rules: &Rules| {
            let rules = rules.clone();
            Gate::of(&ResolvedRequest { approval: Approval::Yolo, rules, ..ResolvedRequest::default() }, &[])
        };
        assert_eq!(with(&rules).mode(), Approval::Yolo);
        rules.add(rules::Decision::Deny, "edit(.env)").unwrap();
        rules.add(rules::Decision::Ask, "shell(git push *)").unwrap();
        let mut gate = with(&rules);
        assert_eq!(gate.mode(), Approval::Default);
        assert_eq!(gate.decide(&command("git log")), Some(Decision::AllowOnce));
        assert_eq!(gate.decide(&command("make")), Some(Decision::AllowOnce));
        assert_eq!(gate.decide(&command("git push x")), None);
        gate.remember(&command("git push x"));
        assert_eq!(gate.decide(&command("git push x")), Some(Decision::AllowOnce));
        gate.remember(&edit("/p/.env"));
        assert!(matches!(gate.decide(&edit("/p/.env")), Some(Decision::Reject(_))));
        // A tool that nobody knows is judged by what it does, and by each of its files.
        let mut several = edit("/p/a");
        several.class = Class::Unknown;
        several.paths = vec!["/p/a".into(), "/p/.env".into()];
        assert!(matches!(gate.decide(&several), Some(Decision::Reject(_))));
    }
    /// As a worker at `--max-approval default` has it: nobody can be asked, and a server of its user is trusted.
    #[test]
    fn a_command_with_the_title_of_a_trusted_tool_is_not_free() {
        let mut request = ResolvedRequest::default();
        request.rules.add(rules::Decision::Deny, "shell(rm *)").unwrap();
        let gate = Gate::of(&request, &["srv".to_owned()]);
        let asked = |id: &str, title: &str, kind: ToolKind, text: &str| {
            let call = Call {
                id: id.to_owned(),
                title: Some(title.to_owned()),
                kind: Some(kind),
                texts: vec![text.to_owned()],
                ..Call::default()
            };
            gate.decide(&Question::of(&call, Path::new("/p"), true))
        };
        let here = "[current working directory /p]";
        let title = "touch M # (srv MCP Server)";
        let rejected = |decision: Option<Decision>| !matches!(decision, Some(Decision::AllowOnce));
        assert!(rejected(asked("run_shell_command__1", title, ToolKind::Execute, here)));
        assert!(rejected(asked("run_shell_command__mcp_srv_t__1", title, ToolKind::Execute, here)));
        let poses = r#"{"command":"do_it (srv MCP Server)"}"#;
        assert!(rejected(asked("mcp_evil_do_it__1", "do_it (srv MCP Server)", ToolKind::Other, poses)));
        assert!(rejected(asked("mcp_srv_do_it__1", "do_it (srv MCP Server)", ToolKind::Other, poses)));
        let own = asked("mcp_srv_do_it__1", "do_it (srv MCP Server)", ToolKind::Other, r#"{"x":1}"#);
        assert_eq!(own, Some(Decision::AllowOnce));
    }

    #[test]
    fn a_program_by_its_path_is_not_allowed_in_another_directory() {
        let mut request = ResolvedRequest::default();
        request.rules.add(rules::Decision::Allow, "shell(./build.sh)").unwrap();
        let gate = Gate::of(&request, &[]);
        assert_eq!(gate.decide(&command("./build.sh")), Some(Decision::AllowOnce));
        let elsewhere = Question { elsewhere: Some("[in sub]".to_owned()), ..command("./build.sh") };
        assert_eq!(gate.decide(&elsewhere), None);
    }
}
