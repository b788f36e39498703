//! An agent in a pane that somebody else owns.

use std::fs;
use std::time::Duration;

use alhena_scripted::{Scenario, Turn, When};
use alhena_testbed::Deadline;

use super::place::{ALHENA, LONG, Place};

#[test]
fn closing_the_pane_ends_everything_and_puts_the_users_files_back() {
    // D-29, D-34
    let scenario = Scenario::new().turn(Turn::say("I am terse.").when(When::new().body("You are TERSE-7.")));
    let place = Place::new("here", scenario);
    place.home.write("GEMINI.md", "Mine.\n").unwrap();
    let profile = place.home.path().join("terse.md");
    fs::write(&profile, "---\nname: terse\nmcpServers:\n  probe: {command: cat}\n---\nYou are TERSE-7.")
        .unwrap();
    let settings = place.home.gemini().join("settings.json");
    let before = fs::read_to_string(&settings).unwrap();
    let read = |name: &str| fs::read_to_string(place.work().join(name)).unwrap_or_default();

    let command = format!(
        "exec {ALHENA} terminal here --id t1 --gemini {} --model gemini-2.5-flash --profile {} \
         --profile-by document --mcp-scope user",
        place.gemini.display(),
        profile.display()
    );
    let work = place.work();
    let mut tmux = std::process::Command::new(&place.tmux);
    tmux.args([
        "-u",
        "-L",
        &place.server,
        "new-session",
        "-d",
        "-s",
        "others",
        "-x",
        "120",
        "-y",
        "40",
        "-c",
    ]);
    tmux.arg(&work).arg(command).env_clear().envs(place.env.iter());
    assert!(tmux.status().unwrap().success());

    let shown = || place.tmux(&["capture-pane", "-p", "-t", "others"]);
    let answered = Deadline::after(LONG).wait_until(|| shown().contains("✦ I am terse."));
    assert!(answered, "{}", shown());
    assert_eq!([read("GEMINI.md"), read("GEMINI.md.cao_backup")], ["You are TERSE-7.\n", "Mine.\n"]);
    assert!(fs::read_to_string(&settings).unwrap().contains("\"CAO_TERMINAL_ID\": \"t1\""));
    // Nobody else's business: it is no terminal of Alhena's.
    assert!(place.terminals.list().unwrap().is_empty());

    place.tmux(&["kill-session", "-t", "others"]);
    let back = Deadline::after(Duration::from_secs(30))
        .wait_until(|| read("GEMINI.md") == "Mine.\n" && fs::read_to_string(&settings).unwrap() == before);
    assert!(back, "{} {}", read("GEMINI.md"), fs::read_to_string(&settings).unwrap());
    assert!(!work.join("GEMINI.md.cao_backup").exists());
    place.nothing_left();
}
