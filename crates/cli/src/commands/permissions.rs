//! What can be said beforehand of what a warm agent may do.

use std::path::PathBuf;

use alhena::agent::rules::{BadRule, Decision, Rules};
use alhena::{Hint, Request, RunError};

use crate::limit::Limit;

#[derive(Debug, clap::Args)]
pub struct Permissions {
    /// Allow matching actions without asking, such as 'shell(git *)' or 'edit(src/**)'; can be repeated.
    #[arg(long, value_name = "RULE")]
    allow: Vec<String>,
    /// Deny matching actions, whatever else allows them; a guard against accidents, not a sandbox; can be repeated.
    #[arg(long, value_name = "RULE")]
    deny: Vec<String>,
    /// Ask about matching actions, also where they would be allowed; can be repeated.
    #[arg(long, value_name = "RULE")]
    ask: Vec<String>,
    /// Rules in a file; can be repeated.
    #[arg(long, value_name = "FILE")]
    rules: Vec<PathBuf>,
    /// Reject what nobody answers within this time, or none [default: 5m].
    #[arg(long, value_name = "TIME")]
    permission_timeout: Option<Limit>,
}

impl Permissions {
    /// Puts all of it into a request.
    pub fn describe(self, request: &mut Request) -> Result<(), RunError> {
        let wrong = |bad: BadRule| RunError::Usage {
            message: bad.to_string(),
            hint: bad.hint().unwrap_or_default().into_owned(),
        };
        let mut rules = Rules::default();
        for file in &self.rules {
            rules.read(file).map_err(wrong)?;
        }
        let given = [(Decision::Allow, self.allow), (Decision::Deny, self.deny), (Decision::Ask, self.ask)];
        for (decision, list) in given {
            for rule in list {
                rules.add(decision, &rule).map_err(wrong)?;
            }
        }
        request.rules = rules;
        if let Some(limit) = self.permission_timeout {
            request.permission_timeout = limit.duration();
        }
        Ok(())
    }
}
