//! The policy of the server in terms of HTTP: what a request gets, and the problem that says what it does not get.
//!
//! Whoever has the token is the user, but the address may be reached by more than the user meant.

mod paths;

use std::io;
use std::path::Path;

use alhena_agent::ResolvedRequest;
use alhena_model::options::{BadValue, Prompt, Setting};
use alhena_model::{Approval, Failure, FailureKind, Policy, Refusal, RunOptions};
use axum::http::StatusCode;
use serde_json::{Map, Value};

use crate::problem::Problem;
use crate::tasks::TaskKind;

/// Options that say nothing about a conversation.
pub(crate) const NOT_IN_CONVERSATIONS: &[Setting] = &[
    Setting::Cassette,
    Setting::CassetteMode,
    Setting::Prompt,
    Setting::PromptBy,
    Setting::PromptFile,
    Setting::Schema,
    Setting::SchemaAttempts,
    Setting::SessionId,
    Setting::Transport,
];

/// Returns a policy with this root and no other limit but that programs and variables are the server's choice. Relative paths
/// begin at the root, or where the server was started.
pub fn below(root: Option<&Path>) -> io::Result<Policy> {
    let root = root.map(Path::canonicalize).transpose()?;
    if root.as_ref().is_some_and(|root| !root.is_dir()) {
        return Err(io::ErrorKind::NotADirectory.into());
    }
    Ok(Policy {
        base: root.clone().map_or_else(std::env::current_dir, Ok)?,
        root,
        max_approval: Approval::Yolo,
        allow_env: Vec::new(),
        allow_programs: false,
    })
}

/// Reads the prompt and the options of a request.
pub fn read(given: &Map<String, Value>) -> Result<(Option<Prompt>, RunOptions), Problem> {
    // In a file of jobs a number stands for its digits.
    if given.get(Setting::Prompt.name()).is_some_and(Value::is_number) {
        return Err(Problem::input("prompt: a text is needed"));
    }
    RunOptions::with_prompt_from(given, &[]).map_err(Problem::settings)
}

/// Admits the prompt and the options of a request. Their paths become real ones, and what a server has its own defaults for is set.
pub fn admit(
    policy: &Policy,
    kind: TaskKind,
    prompt: &mut Option<Prompt>,
    options: &mut RunOptions,
) -> Result<(), Problem> {
    if kind == TaskKind::Conversation {
        let given = prompt.as_ref().map(|prompt| prompt.to_field().0);
        let wrong = NOT_IN_CONVERSATIONS.iter().copied().find(|setting| options.has(*setting)).or(given);
        if let Some(setting) = wrong {
            let problem = Problem::input(format!("{} cannot be given for a conversation", setting.name()));
            return Err(problem.hint("Prompts are sent to it one by one."));
        }
    }
    let resolve = |setting, path: &Path, used| paths::resolve(policy, setting, path, used);
    policy.admit(prompt.as_mut(), options, resolve).map_err(|refusal| refused(policy, refusal))?;
    options.dir.get_or_insert_with(|| policy.base.clone());
    if options.approval.is_none() && options.offline.is_some() {
        // The scripted model may do everything otherwise; in a conversation one wants to see the questions.
        options.approval = Some(match kind {
            TaskKind::Run => policy.max_approval,
            TaskKind::Conversation => Approval::Default.min(policy.max_approval),
        });
    }
    if options.approval.is_none() && !policy.allows(Approval::Default) {
        options.approval = Some(policy.max_approval);
    }
    Ok(())
}

fn refused(policy: &Policy, refusal: Refusal<Problem>) -> Problem {
    let most = policy.max_approval;
    match refusal {
        Refusal::Path(problem) => problem,
        Refusal::Approval(mode) => above(policy, mode),
        Refusal::Grant(setting) => {
            Problem::forbidden(format!("{} allows more than the mode {most} does", setting.name()))
                .hint("The server would have to be started without a limit on approval modes.")
        }
        Refusal::Program(setting, what) => {
            Problem::forbidden(format!("{} {what}, and a request may not", setting.name()))
                .hint("The server would have to be started so that requests may name programs.")
        }
        Refusal::Variable(name) => Problem::forbidden(format!("env: {name} may not be set by a request"))
            .hint("The server would have to be started so that requests may set this variable."),
        Refusal::Recording => {
            Problem::forbidden(format!("cassette: recording writes a file, and the mode {most} may not"))
                .hint("Give cassette_mode replay, which plays back and never records.")
        }
        Refusal::Never(setting) => Problem::input(format!(
            "{} cannot be given here: the server records every run: GET /v1/runs/{{id}}/recording",
            setting.name()
        )),
        Refusal::NotJson(setting, error) => Problem::input(format!("{}: {error}", setting.name())),
    }
}

/// Returns the mode with this name, if it may be asked for.
pub fn mode(policy: &Policy, name: &str) -> Result<Approval, Problem> {
    let mode = name.parse().map_err(|bad: BadValue| Problem::input(bad.to_string()))?;
    allowed(policy, mode).map(|()| mode)
}

/// Refuses a mode that may not be asked for.
pub fn allowed(policy: &Policy, mode: Approval) -> Result<(), Problem> {
    if policy.allows(mode) { Ok(()) } else { Err(above(policy, mode)) }
}

fn above(policy: &Policy, mode: Approval) -> Problem {
    let most = policy.max_approval;
    Problem::forbidden(format!("the approval mode {mode} is above {most}"))
        .hint(format!("This server allows no more than {most}."))
}

/// Refuses to allow something for a whole conversation where that is as much as a mode above the limit, in which nobody is asked.
pub fn may_allow_always(policy: &Policy, is_edit: bool) -> Result<(), Problem> {
    let needed = if is_edit { Approval::AutoEdit } else { Approval::Yolo };
    match policy.allows(needed) {
        true => Ok(()),
        false => {
            let most = policy.max_approval;
            Err(Problem::forbidden(format!("to allow this always is more than the mode {most} does"))
                .hint("Allow it once; it is asked about each time."))
        }
    }
}

/// Returns true if a request may use what is in this folder.
pub fn may_use(policy: &Policy, folder: &Path) -> bool {
    let real = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    policy.root.as_ref().is_none_or(|root| real.starts_with(root))
}

/// Applies the policy to what the options came to with the defaults of files, right before a task begins. A mode that the request
/// did not name is lowered to the limit.
pub fn limit(
    policy: &Policy,
    options: &RunOptions,
    request: &mut ResolvedRequest,
) -> Result<(), Box<Failure>> {
    let refused = |message: String, hint: &str| {
        Err(Box::new(Failure::new(FailureKind::Input, message).with_hint(hint.to_owned())))
    };
    if options.approval.is_none() {
        request.approval = request.approval.min(policy.max_approval);
    }
    if !policy.allows(request.approval) {
        return refused(
            format!("the approval mode {} is above the server's limit", request.approval),
            "Ask for a lower mode, or start the server with a higher limit.",
        );
    }
    match &request.dir {
        Some(dir) if may_use(policy, dir) => Ok(()),
        _ => refused("the folder is not below the server's root".to_owned(), "Give another dir."),
    }
}

/// Returns the problem of a request that is one too many.
pub fn too_many(what: &str, most: usize) -> Problem {
    Problem::new(StatusCode::TOO_MANY_REQUESTS, "too_many", format!("there are {most} {what} already"))
        .hint("Wait for one to end, or start the server with a higher limit.")
        .retry_after(5)
}

#[cfg(test)]
mod tests;
