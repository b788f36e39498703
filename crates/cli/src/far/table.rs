//! Which options of a job may travel to a worker, and why the others may not.
//!
//! It is a list of what is allowed: an option that `run` gets one day travels when it has a row here that says so. Both sides
//! keep to it: the submitter tells early and by line, the worker trusts nobody.

use std::path::{Component, Path};

use alhena_batch::meaning::Fault;
use serde_json::Value;

/// How an option travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Travels {
    /// As it is.
    AsItIs,
    /// As the content of the file that it names, in the place of this option.
    AsContent(&'static str),
    /// As the schema itself, also where a file was named.
    AsSchema,
    /// As a path below the worker's root.
    BelowRoot,
    /// As far as the worker allows such a mode.
    Approval,
    /// Where the worker allows everything: it lets the model do what nobody is asked about.
    WhereAllIsAllowed,
    /// Alone: with a value it would load or play what the worker's owner has not chosen.
    Alone,
    /// Not at all, because of this.
    Never(&'static str),
}

use Travels::{
    Alone, Approval as Mode, AsContent, AsItIs, AsSchema, BelowRoot, Never, WhereAllIsAllowed as Granting,
};

const BINARY: &str = "the worker chooses which programs run on it";
const FILES: &str = "it names a file on the worker, which nobody but its owner chooses";

/// Every option of `run`.
pub const TABLE: &[(&str, Travels)] = &[
    ("prompt", AsItIs),
    ("prompt_file", AsContent("prompt")),
    ("prompt_by", AsItIs),
    ("transport", AsItIs),
    ("model", AsItIs),
    ("approval", Mode),
    ("trust", Alone),
    ("offline", Alone),
    ("dir", BelowRoot),
    ("include_dir", BelowRoot),
    ("allow_tool", Granting),
    ("allow", Granting),
    ("deny_tool", AsItIs),
    ("deny", AsItIs),
    ("ask", AsItIs),
    ("permission_timeout", AsItIs),
    ("system_prompt", AsItIs),
    ("system_prompt_file", AsContent("system_prompt")),
    ("system_prompt_mode", AsItIs),
    ("schema", AsSchema),
    ("schema_attempts", AsItIs),
    ("timeout", AsItIs),
    ("first_event_timeout", AsItIs),
    ("stall_timeout", AsItIs),
    ("max_turns", AsItIs),
    ("max_attempts", AsItIs),
    ("max_tokens", AsItIs),
    ("max_cost", AsItIs),
    ("max_calls", AsItIs),
    ("on_rate_limit", AsItIs),
    ("no_config", AsItIs),
    ("gemini", Never(BINARY)),
    ("agent_command", Never(BINARY)),
    ("mcp_server", Never(BINARY)),
    ("hook", Never(BINARY)),
    ("hook_timeout", Never(BINARY)),
    ("args", Never("they would say to Gemini CLI what no other option may")),
    ("env", Never("a worker has its own environment, with its own key")),
    ("sandbox", Never("the worker chooses in what its agents are shut up")),
    ("policy", Never(FILES)),
    ("rules", Never(FILES)),
    ("prices", Never(FILES)),
    ("cassette", Never(FILES)),
    ("cassette_mode", Never(FILES)),
    ("record", Never(FILES)),
    ("resume", Never("sessions stay on the machine that they are on")),
    ("session_id", Never("a job that is given to another worker begins a session anew")),
];

/// How an option travels; none for what is no option.
pub fn travels(name: &str) -> Option<Travels> {
    TABLE.iter().find(|(known, _)| *known == name).map(|(_, travels)| *travels)
}

/// What is wrong with an option that is to travel, as far as that shows before a worker has it.
pub fn fault(name: &str, value: &Value) -> Option<Fault> {
    let travels = travels(name)?;
    let fault = |why: String, hint: &str| Some(Fault::new(why, hint));
    match (travels, value) {
        (Never(why), _) => fault(format!("{name} cannot travel to a worker: {why}"), "Leave it out."),
        (Alone, Value::Bool(_) | Value::Null) => None,
        (Alone, _) => fault(format!("{name} travels to a worker only as true or false"), "Write true."),
        (BelowRoot, value) => {
            let paths = texts(value);
            let inside = paths.is_some_and(|paths| paths.iter().all(|path| is_below(Path::new(path))));
            match inside {
                true => None,
                false => fault(
                    format!("{name} has to be a relative path, below the worker's root"),
                    "Give such a path, or let the folder travel with \"copy\": true.",
                ),
            }
        }
        (AsItIs | AsContent(_) | AsSchema | Mode | Granting, _) => None,
    }
}

/// One text, or a list of them.
pub fn texts(value: &Value) -> Option<Vec<&str>> {
    match value {
        Value::String(text) => Some(vec![text]),
        Value::Array(texts) => texts.iter().map(Value::as_str).collect(),
        _ => None,
    }
}

/// Whether a path stays below wherever it begins, as it is written.
pub fn is_below(path: &Path) -> bool {
    path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
}

/// Whether a repository can be had by its address from anywhere, or else is a path below the root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repository {
    Elsewhere,
    BelowRoot,
}

/// Where a repository is. Addresses by which git would run a program, and paths out of the root, are refused.
pub fn repository(url: &str) -> Option<Repository> {
    let schemes = ["https://", "http://", "ssh://", "git://"];
    if schemes.iter().any(|scheme| url.starts_with(scheme)) {
        return Some(Repository::Elsewhere);
    }
    if url.contains("::") || url.contains("://") || url.starts_with('-') {
        return None;
    }
    match url.split_once(':') {
        // `git@host:path`.
        Some((host, path)) if !host.contains('/') && !host.is_empty() && !path.is_empty() => {
            Some(Repository::Elsewhere)
        }
        Some(_) => None,
        None => is_below(Path::new(url)).then_some(Repository::BelowRoot),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use alhena_batch::meaning::Options;

    use super::*;
    use alhena_model::Setting;

    fn faults(options: &Options) -> Vec<Fault> {
        options.iter().filter_map(|(name, value)| fault(name, value)).collect()
    }

    #[test]
    fn every_option_of_run_has_a_row_that_says_whether_it_travels() {
        let there: BTreeSet<&str> = Setting::ALL.iter().map(|setting| setting.name()).collect();
        let listed: BTreeSet<&str> = TABLE.iter().map(|(name, _)| *name).collect();
        assert_eq!(there, listed);
        assert_eq!(listed.len(), TABLE.len());
    }

    #[test]
    fn what_names_programs_files_keys_and_sessions_of_the_worker_does_not_travel() {
        let all = serde_json::json!({
            "gemini": "/bin/sh", "agent_command": "sh", "mcp_server": "x=sh", "hook": "before-tool=sh",
            "args": ["--yolo"], "env": {"GEMINI_API_KEY": "k"}, "sandbox": "off", "policy": "p", "rules": "r",
            "prices": "p", "cassette": "c", "record": "r", "resume": "latest", "session_id": "s",
            "dir": "../x", "include_dir": ["a", "/etc"], "trust": "settings", "offline": "s.json",
        });
        let Value::Object(all) = all else { panic!() };
        assert_eq!(faults(&all).len(), all.len());
        let fine = serde_json::json!({
            "prompt": "p", "dir": "a/b", "include_dir": "c", "trust": true, "offline": true, "approval": "yolo",
        });
        let Value::Object(fine) = fine else { panic!() };
        assert_eq!(faults(&fine), []);
    }

    #[test]
    fn a_repository_is_elsewhere_or_below_the_root() {
        for url in ["https://h/r.git", "ssh://git@h/r", "git@h:r.git", "git://h/r"] {
            assert_eq!(repository(url), Some(Repository::Elsewhere), "{url}");
        }
        assert_eq!(repository("repos/one"), Some(Repository::BelowRoot));
        for url in
            ["ext::sh -c x", "file:///etc", "/etc", "../x", "fd::17", "-u", "ftp://h/r", "./a:b", "::x"]
        {
            assert_eq!(repository(url), None, "{url}");
        }
    }
}
