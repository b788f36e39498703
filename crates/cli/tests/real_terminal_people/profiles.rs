//! Profiles and MCP servers of a terminal, in its own home and the document's way.

use std::fs;

use alhena::agent::home::{McpServer, Transport};
use alhena::scripted::{Scenario, Turn, When};
use alhena::terminal::mcp::McpScope;
use alhena::terminal::profile::{Profile, ProfileBy};
use alhena::terminal::{Launch, Until};
use alhena_testbed::{Deadline, diff};

use crate::place::{LONG, Place, ask};

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
