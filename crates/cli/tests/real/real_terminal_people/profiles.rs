//! Profiles and MCP servers of a terminal, in its own home and the document's way.

use std::fs;

use alhena_agent::home::{McpServer, Transport};
use alhena_scripted::{Scenario, Turn, Usage, When};
use alhena_terminal::mcp::McpScope;
use alhena_terminal::profile::{Profile, ProfileBy};
use alhena_terminal::{Force, Launch, Until};
use alhena_testbed::{Deadline, diff};

use super::place::{LONG, Place, ask};

const TEXT: &str = "---\nname: terse\n---\nYou are TERSE-7.";

fn said() -> Scenario {
    Scenario::new().turn(Turn::say("I am terse.").when(When::new().body("You are TERSE-7.")).always())
}

/// Where in the latest request the model is told what the profile says.
fn told_in(place: &Place) -> Vec<&'static str> {
    let requests = place.api.requests("api");
    let request = requests.iter().rfind(|request| request.action == "streamGenerateContent").unwrap();
    let says = |part: &&str| request.body[*part].to_string().contains("You are TERSE-7.");
    ["systemInstruction", "contents"].into_iter().filter(says).collect()
}

#[test]
fn a_profile_in_the_terminals_own_home_touches_nothing() {
    // D-25
    let place = Place::new("profile-home", said());
    let before = fs::read_dir(place.work()).unwrap().count();
    let profile = Some(Profile::parse(TEXT, "x").unwrap());
    let terminal = place.terminals.launch(Launch { profile, ..place.wanted("") }).unwrap();
    assert_eq!(terminal.record().unwrap().profile.as_deref(), Some("terse"));
    ask(&terminal, "Who are you?");
    assert_eq!(terminal.last_answer().unwrap().text, "I am terse.");
    assert_eq!(place.last_prompt(), "Who are you?");
    // In every request, and above all that was said.
    assert_eq!(told_in(&place), ["systemInstruction"]);
    terminal.exit(LONG).unwrap();
    assert_eq!(fs::read_dir(place.work()).unwrap().count(), before);
}

#[test]
fn the_documents_way_says_it_first_and_puts_the_file_back() {
    // D-26 to D-29
    let place = Place::new("profile-document", said());
    place.home.write("GEMINI.md", "Mine.\n").unwrap();
    let wanted = || Launch {
        profile: Some(Profile::parse(TEXT, "x").unwrap()),
        profile_by: ProfileBy::Document,
        ..place.wanted("")
    };
    let read = |name: &str| fs::read_to_string(place.work().join(name)).ok();
    let first = place.terminals.launch(wanted()).unwrap();
    first.wait(Until::Completed, LONG).unwrap();
    assert_eq!(place.last_prompt(), "You are TERSE-7.");
    assert_eq!(first.last_answer().unwrap().text, "I am terse.");
    assert_eq!(told_in(&place), ["contents"]);
    let second = place.terminals.launch(wanted()).unwrap();
    assert_eq!(
        [read("GEMINI.md"), read("GEMINI.md.cao_backup")],
        [Some("You are TERSE-7.\n".to_owned()), Some("Mine.\n".to_owned())]
    );
    first.kill().unwrap();
    assert_eq!(read("GEMINI.md").as_deref(), Some("You are TERSE-7.\n"));
    // The whole tmux server dies, and a later command puts the file back.
    place.tmux(&["kill-server"]);
    let back = Deadline::after(LONG).wait_until(|| {
        place.again();
        read("GEMINI.md").as_deref() == Some("Mine.\n")
    });
    assert!(back, "{:?}", second.record());
    assert_eq!(read("GEMINI.md.cao_backup"), None);
}

/// How often the profile is in the system instruction and in the history of the latest request.
fn counted(place: &Place) -> [usize; 2] {
    let requests = place.api.requests("api");
    let request = requests.iter().rfind(|request| request.action == "streamGenerateContent").unwrap();
    ["systemInstruction", "contents"]
        .map(|part| request.body[part].to_string().matches("You are TERSE-7.").count())
}

#[test]
fn instructions_of_the_home_stand_above_the_history_and_those_of_the_document_in_it() {
    // D-26: measured, because the document takes `-i` for the stronger way.
    let measured = [ProfileBy::Home, ProfileBy::Document].map(|profile_by| {
        // Enough tokens for the CLI to prefer the compressed history.
        let usage = Usage { prompt_token_count: Some(100_000), ..Usage::default() };
        let answers = Turn::say("Very well.").usage(usage).always();
        let summary = Turn::say("<state_snapshot>We talked.</state_snapshot>");
        let place = Place::new("profile-measured", Scenario::new().turn(answers).generate(summary));
        let profile = Some(Profile::parse(TEXT, "x").unwrap());
        let terminal = place.terminals.launch(Launch { profile, profile_by, ..place.wanted("") }).unwrap();
        if profile_by == ProfileBy::Document {
            terminal.wait(Until::Completed, LONG).unwrap();
        }
        let spent = place.api.requests("api").len();
        for question in ["one", "two", "three"] {
            ask(&terminal, question);
        }
        let before = counted(&place);
        terminal.command("/compress", Force::OnlyWhenReady).unwrap();
        let compressed = || place.capture(&terminal).contains("Chat history compressed");
        assert!(Deadline::after(LONG).wait_until(compressed), "{}", place.capture(&terminal));
        terminal.wait(Until::Idle, LONG).unwrap();
        ask(&terminal, "And now?");
        let measured = (spent, before, counted(&place));
        terminal.exit(LONG).unwrap();
        measured
    });
    assert_eq!(measured, [(0, [1, 0], [1, 0]), (1, [0, 2], [0, 1])]);
}

#[test]
fn servers_learn_their_terminal_and_keep_every_value_in_both_scopes() {
    // D-31 to D-34
    for scope in [McpScope::Terminal, McpScope::User] {
        let place = Place::new("mcp-scope", Scenario::new());
        let told = place.work().join("told");
        // It ends at once: a server that never answers would be waited for.
        let script = format!("env > '{0}.new'; mv '{0}.new' '{0}'", told.display());
        let mut server = McpServer::process("probe", "/bin/sh", ["-c", &script]);
        if let Transport::Process { env, .. } = &mut server.transport {
            env.extend([("TOKEN".to_owned(), "a=b==".to_owned()), ("EMPTY".to_owned(), String::new())]);
        }
        let before = place.home.snapshot().unwrap();
        let settings = place.home.gemini().join("settings.json");
        let mut wanted = Launch { mcp_scope: scope, ..place.wanted("") };
        wanted.request.mcp_servers.push(server);
        let terminal = place.terminals.launch(wanted).unwrap();
        assert!(Deadline::after(LONG).wait_until(|| told.exists()));
        let told = fs::read_to_string(&told).unwrap();
        let id = format!("CAO_TERMINAL_ID={}", terminal.id());
        for line in [id.as_str(), "TOKEN=a=b==", "EMPTY="] {
            assert!(told.lines().any(|one| one == line), "{line} in {told}");
        }
        let shown = fs::read_to_string(&settings).unwrap().contains("probe");
        assert_eq!(shown, scope == McpScope::User);
        terminal.kill().unwrap();
        let changes = diff(&before, &place.home.snapshot().unwrap());
        let of_settings: Vec<_> =
            changes.iter().filter(|change| format!("{change:?}").contains("settings.json")).collect();
        assert!(of_settings.is_empty(), "{of_settings:?}");
    }
}
