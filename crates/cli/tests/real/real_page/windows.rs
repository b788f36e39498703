//! Several windows of one browser, which has six connections for all of them.

use alhena_scripted::{Scenario, Turn};
use serde_json::json;

use super::place::Place;

/// Another window at an address of the page, which is live.
fn window(place: &mut Place, view: &str) -> usize {
    let window = place.browser.window().unwrap();
    let address = format!("{}/{view}", place.served.origin());
    place.browser.open(&address).unwrap();
    place.sees("html[data-link=live] main h1");
    window
}

/// A run that goes on until it is stopped, shown in the first window; its view.
fn going(name: &str) -> (Place, String) {
    let scenario = Scenario::new().turn(Turn::new().text("one ").gate("never")).turn(Turn::say("Another."));
    let mut place = Place::new(name, scenario);
    place.starts("Count", "default");
    place.waits("document.querySelector('.answer')?.innerText.includes('one')");
    let view = place.asks("location.hash").as_str().unwrap().to_owned();
    (place, view)
}

#[test]
fn four_windows_on_a_live_run_leave_connections_for_a_click() {
    let (mut place, view) = going("windows");
    for _ in 0..3 {
        window(&mut place, &view);
        place.waits("document.querySelector('.answer')?.innerText.includes('one')");
    }
    place.browser.click("#stop").unwrap();
    place.ends("cancelled");
    // The others hear of it too.
    place.browser.turn_to(1);
    place.ends("cancelled");
    place.is_harmless();
}

#[test]
fn when_the_window_with_the_stream_goes_another_one_hears_the_server() {
    let (mut place, _) = going("leaders");
    let others = [window(&mut place, "#/now"), window(&mut place, "#/now")];
    place.sees("section[aria-label='At work'] a");
    place.browser.turn_to(0);
    place.browser.call("Page.close", json!({})).unwrap();
    // A window that is not seen any more does not keep it either.
    place.browser.turn_to(others[0]);
    place.sees("html[data-link=live] section[aria-label='At work'] a");
    place.asks("Object.defineProperty(document, 'hidden', {value: true, configurable: true}); document.dispatchEvent(new Event('visibilitychange'))");
    place.browser.turn_to(others[1]);
    place.starts("Say something", "default");
    place.ends("success");
    place.go("#/now");
    place.sees("html[data-link=live] section[aria-label='Ended lately'] a");
    place.browser.turn_to(others[0]);
    place.asks("delete document.hidden; document.dispatchEvent(new Event('visibilitychange'))");
    place.sees("html[data-link=live]");
    // All know when nobody answers, and when somebody does again.
    place.end_server();
    for window in others {
        place.browser.turn_to(window);
        place.sees("html[data-link=cut] #cut");
    }
    place.start_server_again();
    for window in others {
        place.browser.turn_to(window);
        place.sees("html[data-link=live]");
    }
    assert_eq!(place.browser.complaints(), Vec::<String>::new());
}

/// Windows whose leader is silent say that they are cut off, and take the lead.
#[test]
fn a_window_that_hears_nothing_is_not_live() {
    let mut place = Place::new("unheard", Scenario::new());
    place.asks("BroadcastChannel.prototype.postMessage = () => {}");
    place.browser.window().unwrap();
    // Its patience is short, and what it was is noted.
    let hurry = "const wait = setTimeout; window.setTimeout = (act, after, ...more) => wait(act, after === 50000 ? 400 : after, ...more); \
        window.was = []; new MutationObserver(() => was.push(document.documentElement.dataset.link)).observe(document, {attributes: true, subtree: true, attributeFilter: ['data-link']})";
    place.browser.call("Page.addScriptToEvaluateOnNewDocument", json!({ "source": hurry })).unwrap();
    let address = format!("{}/#/now", place.served.origin());
    place.browser.open(&address).unwrap();
    place.waits("was.includes('cut') && was.lastIndexOf('live') > was.indexOf('cut')");
    // The other one hears from it now.
    place.browser.turn_to(0);
    place.sees("html[data-link=live]");
}

#[test]
fn a_click_that_gets_no_connection_says_so() {
    let (mut place, _) = going("connections");
    let hold = "window.held = new AbortController(); for (let at = 0; at < 6; at++) fetch('/v1/now/events', {signal: held.signal, cache: 'no-store'}).catch(() => {}); \
        const wait = setTimeout; window.setTimeout = (act, after, ...more) => wait(act, after === 60000 ? 400 : after, ...more); 1";
    place.asks(hold);
    place.browser.click("#stop").unwrap();
    place.waits("document.querySelector('.failure')?.textContent.includes('not answered in 60 s')");
    let told = place.texts(".failure").concat();
    assert!(told.contains("Other windows") && told.contains("look before you ask again"), "{told}");
    place.asks("window.setTimeout = wait; held.abort()");
    place.browser.click("#stop").unwrap();
    place.ends("cancelled");
}
