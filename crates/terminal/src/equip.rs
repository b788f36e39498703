//! Equipping a terminal: what its profile and its MCP servers make of the request, and of the user's files.
//!
//! Gemini CLI 0.61.0 reads settings and context files once, at its start, so all of it has to be in place before.

use std::io;
use std::path::{Path, PathBuf};

use alhena_agent::env::{self, Environment};
use alhena_agent::{Prompt, SystemPrompt};

use crate::borrowed::BorrowedFiles;
use crate::error::{TerminalError, TerminalErrorKind};
use crate::launch::Launch;
use crate::mcp::{McpScope, Servers, for_terminal};
use crate::profile::{ContextFile, Profile, ProfileBy};

/// The launch with everything in its request. What was changed in the user's files is in the borrowed, under the terminal's id.
pub(crate) fn equip(
    mut launch: Launch,
    id: &str,
    borrowed: &BorrowedFiles,
    environment: &Environment,
) -> Result<Launch, TerminalError> {
    let profile = launch.profile.take();
    let equipped = apply(&mut launch, profile.as_ref(), id, borrowed, environment);
    launch.profile = profile;
    match equipped {
        Ok(()) => Ok(launch),
        Err((what, error)) => {
            borrowed.give_back(id);
            Err(TerminalError::new(TerminalErrorKind::Usage, format!("{}: {error}", what.display()))
                .with_hint("Nothing was changed. Launch without `profile_by` document and `mcp_scope` user to leave the file alone."))
        }
    }
}

fn apply(
    launch: &mut Launch,
    profile: Option<&Profile>,
    id: &str,
    borrowed: &BorrowedFiles,
    environment: &Environment,
) -> Result<(), (PathBuf, io::Error)> {
    let request = &mut launch.request;
    for (outer, name) in [(crate::OUTER_GEMINI_HOME, env::GEMINI_CLI_HOME), (crate::OUTER_TMPDIR, "TMPDIR")] {
        request.env.extend(environment.filled(name).map(|value| (outer.into(), value.into())));
    }
    if let Some(profile) = profile {
        request.model = request.model.take().or_else(|| profile.model.clone());
        request.mcp_servers.extend(profile.servers.iter().cloned());
        request.deny_tools.extend(profile.denied_tools());
    }
    request.mcp_servers = for_terminal(&request.mcp_servers, id);
    if launch.mcp_scope == McpScope::User && !request.mcp_servers.is_empty() {
        let settings = user_settings(environment);
        let told = Servers::add(borrowed, &settings, id, &request.mcp_servers);
        request.notices.extend(told.map_err(|error| (settings, error))?);
        request.mcp_servers.clear();
    }
    let Some(prompt) = profile.map(|profile| profile.prompt.as_str()).filter(|prompt| !prompt.is_empty())
    else {
        return Ok(());
    };
    match launch.profile_by {
        ProfileBy::Home => {
            request.system_prompt = Some(match request.system_prompt.take() {
                None => SystemPrompt::Append(prompt.to_owned()),
                Some(SystemPrompt::Append(own)) => SystemPrompt::Append(format!("{prompt}\n\n{own}")),
                Some(SystemPrompt::Replace(own)) => SystemPrompt::Replace(format!("{own}\n\n{prompt}")),
            });
        }
        ProfileBy::Document => {
            let dir = request.dir.clone().unwrap_or_else(|| PathBuf::from("."));
            let told = ContextFile::write(borrowed, &dir, id, prompt);
            request.notices.extend(told.map_err(|error| (dir.join("GEMINI.md"), error))?);
            request.prompt = match &request.prompt {
                Prompt::Text(text) if !text.trim().is_empty() => Prompt::Text(format!("{prompt}\n\n{text}")),
                _ => Prompt::Text(prompt.to_owned()),
            };
        }
    }
    Ok(())
}

fn user_settings(environment: &Environment) -> PathBuf {
    let chosen = environment.filled(env::GEMINI_CLI_HOME).map(PathBuf::from);
    let home = chosen.or_else(|| environment.home()).unwrap_or_else(|| Path::new(".").to_owned());
    home.join(".gemini/settings.json")
}

#[cfg(test)]
mod tests {
    use alhena_agent::Request;
    use alhena_agent::home::McpServer;

    use super::*;

    const TEXT: &str = "---\nmodel: gemini-2.5-pro\nallowedTools: ['fs_*', execute_bash]\nmcpServers:\n  s: {command: c}\n---\nYou are terse.";

    struct Desk {
        root: tempfile::TempDir,
        borrowed: BorrowedFiles,
        environment: Environment,
    }

    fn desk() -> Desk {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("work")).unwrap();
        let environment = Environment::from([(env::GEMINI_CLI_HOME, root.path().join("home"))]);
        Desk { borrowed: BorrowedFiles::new(&root.path().join("state")), environment, root }
    }

    fn launch(desk: &Desk) -> Launch {
        let request = Request::new("Begin.").dir(desk.root.path().join("work"));
        Launch { request, profile: Some(Profile::parse(TEXT, "p").unwrap()), ..Launch::default() }
    }

    #[test]
    fn a_profile_goes_into_the_request_and_touches_nothing() {
        let desk = desk();
        let launch = equip(launch(&desk), "t1", &desk.borrowed, &desk.environment).unwrap();
        let request = &launch.request;
        assert_eq!(request.model.as_deref(), Some("gemini-2.5-pro"));
        assert_eq!(request.system_prompt, Some(SystemPrompt::Append("You are terse.".to_owned())));
        assert_eq!(request.prompt, Prompt::Text("Begin.".to_owned()));
        assert_eq!(request.deny_tools, ["web_fetch", "google_web_search"]);
        assert_eq!(request.mcp_servers, for_terminal(&[McpServer::process("s", "c", [""; 0])], "t1"));
        assert_eq!(std::fs::read_dir(desk.root.path().join("work")).unwrap().count(), 0);
        assert!(!desk.root.path().join("home").exists());
    }

    #[test]
    fn the_documents_way_is_a_first_message_and_files_that_are_given_back() {
        // D-26, D-27, D-31, D-32
        let desk = desk();
        let wanted = Launch { profile_by: ProfileBy::Document, mcp_scope: McpScope::User, ..launch(&desk) };
        let launch = equip(wanted, "t1", &desk.borrowed, &desk.environment).unwrap();
        assert_eq!(launch.request.prompt, Prompt::Text("You are terse.\n\nBegin.".to_owned()));
        assert_eq!((&launch.request.system_prompt, launch.request.mcp_servers.len()), (&None, 0));
        let context = desk.root.path().join("work/GEMINI.md");
        let settings = desk.root.path().join("home/.gemini/settings.json");
        assert_eq!(std::fs::read_to_string(&context).unwrap(), "You are terse.\n");
        assert!(std::fs::read_to_string(&settings).unwrap().contains("\"CAO_TERMINAL_ID\": \"t1\""));
        assert_eq!(desk.borrowed.give_back("t1"), Vec::<String>::new());
        assert!(!context.exists() && !settings.exists());
    }

    #[test]
    fn when_one_file_cannot_be_changed_the_other_is_given_back() {
        let desk = desk();
        let wanted = Launch { profile_by: ProfileBy::Document, mcp_scope: McpScope::User, ..launch(&desk) };
        std::fs::remove_dir(desk.root.path().join("work")).unwrap();
        let error = equip(wanted, "t1", &desk.borrowed, &desk.environment).unwrap_err();
        assert!(error.to_string().contains("GEMINI.md"), "{error}");
        assert!(!desk.root.path().join("home/.gemini/settings.json").exists());
    }
}
