//! Shell commands that decide while an agent works.

use std::str::FromStr;
use std::time::Duration;

use alhena::Request;
use alhena::agent::hooks::{Hooks, Moment};

use crate::limit;

/// Options of all that run an agent.
#[derive(Clone, Debug, clap::Args)]
pub struct Hooking {
    /// A shell command that decides: EVENT is before-tool, after-tool or before-model; `alhena help hooks` explains it.
    #[arg(long = "hook", value_name = "EVENT=COMMAND")]
    hooks: Vec<HookCommand>,
    /// How long such a command may take; then the answer is no.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = limit::time)]
    hook_timeout: Duration,
}

impl Hooking {
    /// Puts them into a request.
    pub fn describe(self, request: &mut Request) {
        if !self.hooks.is_empty() {
            let commands = self.hooks.into_iter().map(|hook| (hook.moment, hook.command)).collect();
            request.hooks = Some(Hooks::of_commands(commands, self.hook_timeout));
        }
    }
}

/// `EVENT=COMMAND`.
#[derive(Clone, Debug)]
struct HookCommand {
    moment: Moment,
    command: String,
}

impl FromStr for HookCommand {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = || Moment::ALL.map(Moment::name).join(", ");
        let (name, command) = text.split_once('=').ok_or("write EVENT=COMMAND")?;
        let moment = Moment::named(name)
            .ok_or_else(|| format!("there is no event {name:?}; there are {}", known()))?;
        match command.trim().is_empty() {
            true => Err(format!("{name} has no command")),
            false => Ok(Self { moment, command: command.to_owned() }),
        }
    }
}
