//! Cut off, and back again: nothing old is shown as live.

use alhena_scripted::{After, Scenario, Turn};
use serde_json::json;

use super::place::Place;

#[test]
fn the_page_says_that_it_is_cut_off_and_comes_back_by_itself() {
    let scenario = Scenario::new().turn(Turn::say("Once.")).after(After::Repeat);
    let mut place = Place::new("reconnects", scenario);
    place.starts("Say something", "default");
    place.ends("success");
    place.go("#/now");
    place.sees("section[aria-label='Ended lately'] a");
    place.end_server();
    place.sees("html[data-link=cut] #cut");
    assert_eq!(place.texts("#link-text"), ["Cut off"]);
    let shown = place.texts("#cut").concat();
    assert!(shown.contains("Cut off from the server") && shown.contains("as it was then"), "{shown}");
    // What is shown is grey, and its ages stand still.
    let grey = "getComputedStyle(document.querySelector('.view')).filter";
    assert_eq!(place.asks(grey), json!("grayscale(1)"));
    place.start_server_again();
    place.sees("html[data-link=live]");
    place.waits("document.querySelector('#cut').hidden");
    assert_eq!(place.asks(grey), json!("none"));
    // It is as good as before: the old run is there, and another can be started.
    place.go("#/runs");
    place.sees(".rows a");
    place.starts("Say it again", "default");
    place.ends("success");
    assert_eq!(place.browser.complaints(), Vec::<String>::new());
}

#[test]
fn a_run_that_goes_on_while_the_page_is_cut_off_is_shown_whole_afterwards() {
    let scenario =
        Scenario::new().turn(Turn::new().text("one ").gate("on").text("two ").gate("end").text("three"));
    let mut place = Place::new("goes_on", scenario);
    place.starts("Count", "default");
    place.waits("document.querySelector('.answer')?.innerText.includes('one')");
    let network = |place: &mut Place, offline: bool| {
        let conditions =
            json!({"offline": offline, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1});
        place.browser.call("Network.emulateNetworkConditions", conditions).unwrap();
    };
    network(&mut place, true);
    // Streams that are open already are not cut by that: the page asks anew when it is seen again.
    let hide = "Object.defineProperty(document, 'hidden', {value: true, configurable: true}); document.dispatchEvent(new Event('visibilitychange'))";
    let seen = "delete document.hidden; document.dispatchEvent(new Event('visibilitychange'))";
    place.asks(hide);
    place.lab.server.release("lab", "on");
    place.asks(seen);
    place.sees("html[data-link=cut]");
    assert_eq!(place.asks("document.querySelector('.view').hasAttribute('data-stale')"), json!(true));
    network(&mut place, false);
    place.waits("document.querySelector('.answer').innerText.includes('two')");
    place.sees("html[data-link=live]");
    place.waits("!document.querySelector('.view').hasAttribute('data-stale')");
    place.lab.server.release("lab", "end");
    place.ends("success");
    place.waits("document.querySelector('.transcript .turn')");
    // Every piece once.
    assert_eq!(place.texts(".answer"), ["one two three"]);
}

#[test]
fn a_token_that_is_not_valid_any_more_is_told() {
    let mut place = Place::new("token", Scenario::new());
    place.browser.call("Network.clearBrowserCookies", json!({})).unwrap();
    place.go("#/runs");
    place.sees("html[data-link=denied] #cut");
    let shown = place.texts("#cut").concat();
    assert!(shown.contains("not valid any more") && shown.contains("alhena serve"), "{shown}");
}
