//! Messages wait until their receiver is free.

use alhena_scripted::{After, Scenario, Turn, When};
use alhena_terminal::screen::Status;
use alhena_terminal::{Force, Until};
use alhena_testbed::Deadline;

use super::place::{LONG, Place};

#[test]
fn messages_wait_for_a_busy_agent_and_come_one_by_one_in_their_order() {
    let scenario = Scenario::new()
        .turn(Turn::new().text("Half").gate("go").text(" and half.").when(When::new().prompt("Work")))
        .turn(Turn::say("Got the first.").when(When::new().prompt("First message")))
        .turn(Turn::say("Got the second.").when(When::new().prompt("Second message")))
        .after(After::Error);
    let place = Place::new("post", scenario);
    let agent = place.launch();
    agent.send("Work", Force::OnlyWhenReady).unwrap();
    let other = place.again().find(agent.id()).unwrap();
    other.post("First message").unwrap();
    agent.post("Second message").unwrap();
    assert_eq!((agent.deliver_post().unwrap(), agent.waiting_letters()), (false, 2));
    assert_eq!(agent.status().unwrap().status, Status::Processing);
    place.api.release("api", "go");
    agent.wait(Until::Completed, LONG).unwrap();
    for (left, answer) in [(1, "Got the first."), (0, "Got the second.")] {
        let delivered = Deadline::after(LONG).wait_until(|| agent.deliver_post().unwrap());
        assert!(delivered, "{}", place.capture(&agent));
        agent.wait(Until::Completed, LONG).unwrap();
        assert_eq!((agent.waiting_letters(), agent.last_answer().unwrap().text.as_str()), (left, answer));
    }
    // What nobody took goes with the terminal.
    agent.post("Too late").unwrap();
    agent.kill().unwrap();
    assert!(agent.post("Nobody").is_err());
}
