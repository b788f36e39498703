//! A question of an agent, as it is told.

use alhena_agent::{Action, Question};
use alhena_model::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use similar::TextDiff;

/// Something that waits to be allowed.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = Permission))]
pub struct PermissionView {
    /// Its id in the conversation.
    pub id: String,
    /// The tool.
    pub tool: String,
    /// What the agent calls it, for people.
    pub title: String,
    /// The command that would run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Whether it would go on beside the agent.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[cfg_attr(feature = "openapi", schema(required = false))]
    pub background: bool,
    /// That it would run in another folder, in the agent's own words; "always" then is not remembered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elsewhere: Option<String>,
    /// The change that would be made, as a unified diff.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    /// The file that would change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The arguments of the tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(required = false, value_type = Object))]
    pub input: Option<Value>,
    /// Since when it waits.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub asked_at: Timestamp,
}

/// An answer to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// It may, this once.
    Allow,
    /// It may, and the same again in this conversation.
    Always,
    /// It may not.
    Reject,
}

impl PermissionView {
    pub fn of(id: String, question: &Question) -> Self {
        let mut view = Self {
            id,
            tool: question.tool.clone(),
            title: question.title.clone(),
            command: None,
            background: false,
            elsewhere: question.elsewhere.clone(),
            diff: None,
            path: question.paths.first().map(|path| path.display().to_string()),
            input: Some(question.input.clone()),
            asked_at: Timestamp::now(),
        };
        match &question.action {
            Action::Diff { path, before, after } => {
                view.path = Some(path.display().to_string());
                view.diff = Some(unified(&path.display().to_string(), before, after));
            }
            Action::Command { command, background } => {
                view.command = Some(command.clone());
                view.background = *background;
            }
            _ => {}
        }
        view
    }
}

fn unified(path: &str, before: &str, after: &str) -> String {
    let diff = TextDiff::configure().timeout(std::time::Duration::from_millis(500)).diff_lines(before, after);
    let old = if before.is_empty() { "/dev/null" } else { path };
    diff.unified_diff().context_radius(3).header(old, path).to_string()
}
