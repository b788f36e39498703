//! What an agent was asked, and what came of it.

use std::time::Duration;

use alhena_scripted::{After, Scenario, Turn, When};
use alhena_testbed::Deadline;
use serde_json::{Value, json};

use super::place::{LONG, Place, ask, json_of, type_in};

#[test]
fn logs_list_turns_with_their_ends_and_what_a_person_typed_in_the_pane() {
    let asked = |text: &str| When::new().prompt(text);
    let scenario = Scenario::new()
        .turn(Turn::say("The first line.\nThe second line.").when(asked("One")))
        .turn(Turn::status(400).when(asked("Fail")))
        .turn(Turn::say("Typed and answered.").when(asked("By hand")))
        .turn(Turn::say("And on.").when(asked("Last")))
        .after(After::Error);
    let place = Place::new("logs", scenario);
    let agent = place.launch();
    let name = agent.name();
    assert_eq!(type_in(&place, &["logs", name]).1, format!("{name} has had no turns.\n"));
    assert_eq!(type_in(&place, &["logs", "nobody"]).0, 2);
    assert_eq!(type_in(&place, &["logs", name, "-n", "0"]).0, 2);
    std::thread::scope(|scope| {
        let follower = scope.spawn(|| type_in(&place, &["logs", name, "--follow", "--json"]));
        ask(&agent, "One\nof two lines");
        ask(&agent, "Fail");
        place.tmux(&["send-keys", "-t", &place.pane_of(&agent), "-l", "By hand"]);
        let typed = || place.capture(&agent).contains("By hand");
        assert!(Deadline::after(LONG).wait_until(typed), "{}", place.capture(&agent));
        std::thread::sleep(Duration::from_millis(200));
        place.tmux(&["send-keys", "-t", &place.pane_of(&agent), "Enter"]);
        let answered = || place.capture(&agent).contains("Typed and answered.");
        assert!(Deadline::after(LONG).wait_until(answered), "{}", place.capture(&agent));
        let free = || agent.status().is_ok_and(|reading| alhena_terminal::Until::Idle.is_met(reading.status));
        assert!(Deadline::after(LONG).wait_until(free));
        ask(&agent, "Last");

        let (code, log) = json_of(&place, &["logs", name]);
        assert_eq!((code, log.as_array().unwrap().len()), (0, 4), "{log:#}");
        let part = |keys: &[&str]| -> Value {
            let rows = log.as_array().unwrap().iter();
            rows.map(|row| keys.iter().map(|key| row[*key].clone()).collect::<Value>()).collect()
        };
        assert_eq!(
            part(&["turn", "ended", "prompt", "answer"]),
            json!([
                [1, "answered", "One", "The first line."],
                [2, "error", "Fail", null],
                [null, "answered", "By hand", "Typed and answered."],
                [3, "answered", "Last", "And on."],
            ])
        );
        for row in log.as_array().unwrap() {
            assert!(row["duration_ms"].is_u64() && row["at"].is_string(), "{row}");
            assert_eq!(row["tokens"].is_u64(), row["answer"].is_string(), "{row}");
        }
        assert!(log[1]["warning"].as_str().unwrap().contains("400"), "{log:#}");
        let text = type_in(&place, &["logs", name, "-n", "1"]).1;
        assert!(text.starts_with("turn 3  ") && text.contains("\n  > Last\n  And on.\n"), "{text}");

        // It ends with the agent, and has told everything once.
        place.tmux(&["kill-pane", "-t", &place.pane_of(&agent)]);
        let (code, lines, err) = follower.join().unwrap();
        let told: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!((code, told.len()), (0, 4), "{lines}{err}");
        assert_eq!(told[3]["prompt"], "Last");
    });
}
