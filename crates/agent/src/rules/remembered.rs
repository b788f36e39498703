//! What somebody has allowed for the rest of a conversation. Alhena remembers it, never the CLI: what the CLI remembers of MCP
//! tools it applies to other sessions as well (0.61.0).

use std::path::PathBuf;

use alhena_model::tool::Class;

use super::paths::Forms;
use super::{Question, Subject};

/// Questions that were answered with yes for as long as the conversation lasts.
#[derive(Clone, Debug, Default)]
pub struct Remembered {
    allowed: Vec<Exactly>,
}

/// What the same question is.
#[derive(Clone, Debug, PartialEq)]
struct Exactly {
    tool: String,
    server: Option<String>,
    about: About,
}

#[derive(Clone, Debug, PartialEq)]
enum About {
    /// The same text of a command.
    Command(String),
    /// The same files, whatever is written into them.
    Files(Vec<PathBuf>),
    /// The tool of an MCP server, whatever its arguments are.
    Tool,
    Arguments(serde_json::Value),
    Text(String),
}

impl Remembered {
    /// Remembers that what this is about is allowed. A question that cannot be told from others is not remembered.
    pub fn allow(&mut self, question: &Question) {
        self.allowed.extend(Exactly::of(question));
    }

    /// Whether this very thing has been allowed.
    pub fn allows(&self, question: &Question) -> bool {
        Exactly::of(question).is_some_and(|asked| self.allowed.contains(&asked))
    }

    /// Whether nothing has been.
    pub fn is_empty(&self) -> bool {
        self.allowed.is_empty()
    }
}

impl Exactly {
    fn of(question: &Question) -> Option<Self> {
        let about = match &question.subject {
            // A command that is harmless here may not be elsewhere.
            Subject::Command(_) if question.elsewhere => return None,
            Subject::Command(command) => About::Command(command.clone()),
            Subject::Paths(paths) => {
                let real = |path: &PathBuf| Some(Forms::of(path, &question.dir)?.real);
                About::Files(
                    paths.iter().map(real).collect::<Option<Vec<_>>>().filter(|paths| !paths.is_empty())?,
                )
            }
            Subject::Arguments(_) if question.class == Class::Mcp => About::Tool,
            Subject::Arguments(arguments) => About::Arguments(arguments.clone()),
            Subject::Text(text) => About::Text(text.clone()),
        };
        Some(Self { tool: question.tool.clone(), server: question.server.clone(), about })
    }
}
