//! What is answered without asking anybody: by the approval mode, and by what was allowed for the conversation.

use super::permission::{Action, Decision, Question};
use crate::request::Approval;

/// What stands between the agent's questions and whoever answers them.
pub(super) struct Gate {
    pub approval: Approval,
    /// What was allowed for the conversation.
    allowed: Vec<Question>,
}

impl Gate {
    pub(super) fn new(approval: Approval) -> Self {
        Self { approval, allowed: Vec::new() }
    }

    /// The answer, if it is clear.
    pub(super) fn decide(&self, question: &Question) -> Option<Decision> {
        let edits = matches!(question.action, Action::Diff { .. });
        let allowed = match self.approval {
            // It asks all the same for build files, and for commands that have a word of some tool's output in them (0.61.0).
            Approval::Yolo => true,
            Approval::AutoEdit => edits,
            Approval::Default | Approval::Plan => false,
        };
        (allowed || self.allowed.iter().any(|before| is_same(before, question)))
            .then_some(Decision::AllowOnce)
    }

    /// From now on the same is allowed.
    pub(super) fn remember(&mut self, question: Question) {
        self.allowed.push(question);
    }
}

/// Whether what is asked now was meant by what was allowed before.
fn is_same(before: &Question, now: &Question) -> bool {
    match (&before.action, &now.action) {
        (
            Action::Command { command: one, background: first },
            Action::Command { command: other, background },
        ) => one == other && first == background,
        (Action::Diff { path: one, .. }, Action::Diff { path: other, .. }) => {
            one == other || (one.starts_with(&before.dir) && is_below(other, &now.dir))
        }
        (Action::Arguments(_), Action::Arguments(_)) | (Action::Other, Action::Other) => {
            before.tool == now.tool
        }
        _ => false,
    }
}

/// Whether a path is in a directory, and not by way of `..`.
fn is_below(path: &std::path::Path, dir: &std::path::Path) -> bool {
    path.starts_with(dir) && !path.components().any(|part| part == std::path::Component::ParentDir)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alhena_model::tool;
    use serde_json::json;

    fn question(tool: &str, action: Action) -> Question {
        let dir = "/p".into();
        Question {
            call_id: "c".into(),
            tool: tool.into(),
            class: tool::class(tool),
            title: String::new(),
            dir,
            action,
        }
    }

    fn command(command: &str) -> Question {
        question("run_shell_command", Action::Command { command: command.into(), background: false })
    }

    fn edit(path: &str) -> Question {
        let path = path.into();
        question("write_file", Action::Diff { path, before: String::new(), after: String::new() })
    }

    #[test]
    fn each_mode_answers_by_itself_what_it_stands_for() {
        for (approval, commands, edits) in [
            (Approval::Default, false, false),
            (Approval::Plan, false, false),
            (Approval::AutoEdit, false, true),
            (Approval::Yolo, true, true),
        ] {
            let gate = Gate::new(approval);
            assert_eq!(gate.decide(&command("ls")).is_some(), commands, "{approval:?}");
            assert_eq!(gate.decide(&edit("/p/Cargo.toml")).is_some(), edits, "{approval:?}");
        }
    }

    #[test]
    fn what_was_allowed_for_the_conversation_is_allowed_again_and_nothing_else() {
        let mut gate = Gate::new(Approval::Default);
        gate.remember(command("cargo test"));
        gate.remember(edit("/p/a"));
        gate.remember(question("mcp_s_t", Action::Arguments(json!({"x": 1}))));
        for (asked, allowed) in [
            (command("cargo test"), true),
            (command("cargo test; rm -r x"), false),
            (edit("/p/b"), true),
            (edit("/q/b"), false),
            (edit("/p/../q/b"), false),
            (question("mcp_s_t", Action::Arguments(json!({"x": 2}))), true),
            (question("mcp_s_u", Action::Arguments(json!({"x": 1}))), false),
            (question("web_fetch", Action::Other), false),
        ] {
            assert_eq!(gate.decide(&asked).is_some(), allowed, "{asked:?}");
        }
    }
}
