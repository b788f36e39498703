//! Cassettes: recorded from another server, played back with that one gone.

use std::path::Path;

use crate::common::{COUNT, Client, GENERATE, STREAM};
use alhena_scripted::cassette::{Body, Cassette, Normal, Player, Recorder, Upstream};
use alhena_scripted::{Scenario, Server, Turn};
use serde_json::{Value, json};

fn asking(text: &str) -> Value {
    json!({"contents": [{"role": "user", "parts": [{"text": text}]}]})
}

/// An API that has this to say, and a server before it that records.
fn recording(path: &Path, scenario: Scenario, normal: Normal) -> (Server, Server) {
    let api = Server::start().unwrap();
    let url = api.add("api", scenario);
    let proxy = Server::start().unwrap();
    proxy.record(Recorder::open(path, Upstream::new(&url, None).unwrap(), normal).unwrap());
    (api, proxy)
}

fn playing(path: &Path, normal: Normal) -> Server {
    let server = Server::start().unwrap();
    server.replay(Player::open(path, normal).unwrap());
    server
}

fn tape() -> (tempfile::TempDir, std::path::PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("talk.json");
    (dir, path)
}

#[test]
fn what_was_said_is_said_again_without_the_api() {
    let (_dir, path) = tape();
    let scenario = Scenario::new()
        .turn(Turn::new().thought("Plan", "Short.").text("Hel").text("lo ü"))
        .turn(Turn::status(503).retry_after(7))
        .turn(Turn::new().malformed());
    let (api, proxy) = recording(&path, scenario, Normal::new());
    let talk = |server: &Server| {
        let mut client = Client::new(server);
        let mut answers = Vec::new();
        // One connection for all: it stays open.
        for (target, text) in [(STREAM, "a"), (STREAM, "b"), (COUNT, "c"), (GENERATE, "d"), (STREAM, "e")] {
            let answer = client.post(target, &asking(text));
            let retry = answer.header("retry-after").map(str::to_owned);
            answers.push((answer.status, retry, answer.text(), answer.end));
        }
        answers
    };
    let recorded = talk(&proxy);
    assert_eq!(recorded[0].0, 200);
    assert!(recorded[0].2.contains("lo ü"), "{recorded:?}");
    assert_eq!((recorded[1].0, recorded[1].1.as_deref()), (503, Some("7")));
    assert_eq!(api.requests("api").len(), 5);
    drop((api, proxy));
    assert_eq!(talk(&playing(&path, Normal::new())), recorded);
    let bodies: Vec<Body> =
        Cassette::read(&path).unwrap().interactions.into_iter().map(|each| each.response.body).collect();
    assert!(matches!(&bodies[0], Body::Events(events) if events.len() == 4), "{bodies:?}");
    assert!(matches!((&bodies[1], &bodies[4]), (Body::Json(_), Body::Chunks(_))), "{bodies:?}");
}

#[test]
fn no_key_gets_into_the_file_wherever_it_was() {
    let (_dir, path) = tape();
    let key = "AIzaSy-0123456789-abcdef";
    let (_api, proxy) =
        recording(&path, Scenario::new().turn(Turn::say(format!("It is {key}."))), Normal::new());
    let mut client = Client::new(&proxy);
    let body = asking(&format!("My key is {key}")).to_string();
    client.send(format!(
        "POST {STREAM}&key={key} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    ));
    assert_eq!(client.response().status, 200);
    drop(proxy);
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(!text.contains(key) && !text.contains("key="), "{text}");
    assert!(text.contains("My key is [[secret:key]]") && text.contains("It is [[secret:key]]."), "{text}");
}

#[test]
fn what_was_not_recorded_is_refused_with_what_differs() {
    let (_dir, path) = tape();
    let (api, proxy) = recording(&path, Scenario::new().turn(Turn::say("Hi.")), Normal::new());
    let mut client = Client::new(&proxy);
    assert_eq!(client.post(STREAM, &asking("rivers")).status, 200);
    assert_eq!(client.post(COUNT, &asking("rivers")).status, 200);
    drop((api, proxy));

    let player = Player::open(&path, Normal::new()).unwrap();
    let complaints = player.complaints();
    let server = Server::start().unwrap();
    server.replay(player);
    let mut client = Client::new(&server);
    let refused = client.post(STREAM, &asking("lakes"));
    assert_eq!(refused.status, 400);
    let message = refused.json()["error"]["message"].as_str().unwrap().to_owned();
    let differs = "contents[0].parts[0].text: recorded was \"rivers\", asked is \"lakes\"";
    assert!(message.ends_with(differs), "{message}");
    assert_eq!(complaints.all(), [message]);
    // A side question may be asked again, a turn may not.
    assert_eq!([0, 1].map(|_| client.post(COUNT, &asking("rivers")).status), [200, 200]);
    assert_eq!(client.post(STREAM, &asking("rivers")).said(), "Hi.");
    let again = client.post(STREAM, &asking("rivers"));
    assert!(again.text().contains("it was recorded 1 times and is asked once more"), "{}", again.text());
}

#[test]
fn places_are_put_back_where_it_is_played() {
    let (_dir, path) = tape();
    let scenario = Scenario::new().turn(Turn::new().call("write_file", json!({"file_path": "/there/a.txt"})));
    let at = |place: &str| Normal::new().place("dir", Path::new(place));
    let (api, proxy) = recording(&path, scenario, at("/there"));
    Client::new(&proxy).post(STREAM, &asking("Write /there/a.txt"));
    drop((api, proxy));
    assert!(!std::fs::read_to_string(&path).unwrap().contains("/there"));
    let server = playing(&path, at("/here"));
    let answer = Client::new(&server).post(STREAM, &asking("Write /here/a.txt"));
    assert_eq!(answer.calls(), [("write_file".to_owned(), json!({"file_path": "/here/a.txt"}))]);
}

/// Other programs work where they like, and not where the server was started.
#[test]
fn places_that_a_request_tells_of_are_put_back_as_well() {
    let (_dir, path) = tape();
    let asking_in = |dir: &str, cli: &str, further: &str| {
        let context = format!(
            "<session_context>\nThe project's temporary directory is: {dir}/h/.gemini/tmp/w\n- **Workspace \
             Directories:**\n  - {dir}\n- **Directory Structure:**\n\n{dir}/\n\n</session_context>"
        );
        let skills = format!("<location>{cli}/builtin/skill-creator/SKILL.md</location>");
        json!({
            "contents": [{"role": "user", "parts": [{"text": context}, {"text": further}]}],
            "systemInstruction": {"parts": [{"text": skills}]},
        })
    };
    let there = "/there/a b";
    let memory = json!({"file_path": format!("{there}/h/.gemini/tmp/w/memory/M.md")});
    let skill = json!({"file_path": "/opt/there/bundle/builtin/x/SKILL.md"});
    let scenario = Scenario::new().turn(Turn::new().call("write_file", memory).call("read_file", skill));
    let (api, proxy) = recording(&path, scenario, Normal::new());
    let asked = asking_in(there, "/opt/there/bundle", &format!("Look into {there}/a.txt"));
    Client::new(&proxy).post(STREAM, &asked);
    drop((api, proxy));
    assert!(!std::fs::read_to_string(&path).unwrap().contains("there/"));
    let server = playing(&path, Normal::new());
    let asked = asking_in("/here", "/lib/x", "Look into /here/a.txt");
    let answer = Client::new(&server).post(STREAM, &asked);
    let named = |path: &str| json!({"file_path": path});
    assert_eq!(
        answer.calls(),
        [
            ("write_file".to_owned(), named("/here/h/.gemini/tmp/w/memory/M.md")),
            ("read_file".to_owned(), named("/lib/x/builtin/x/SKILL.md")),
        ],
        "{}",
        answer.text()
    );
}

/// Also over a file that others may read, and by way of a link to a file that is not there yet.
#[test]
fn a_cassette_can_be_read_by_its_owner_alone_however_it_comes_to_be() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let (dir, path) = tape();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let (link, older) = (dir.path().join("link.json"), dir.path().join("older.json"));
    symlink("talk.json", &link).unwrap();
    std::fs::write(&older, "").unwrap();
    std::fs::set_permissions(&older, std::fs::Permissions::from_mode(0o644)).unwrap();
    for (given, written) in [(&link, &path), (&older, &older)] {
        let (api, proxy) = recording(given, Scenario::new().turn(Turn::say("Hi.")), Normal::new());
        assert_eq!(path.exists(), given == &older, "an empty file was left");
        Client::new(&proxy).post(STREAM, &asking("a"));
        drop((api, proxy));
        assert_eq!((mode(written), Cassette::read(given).unwrap().interactions.len()), (0o600, 1));
    }
    assert!(link.is_symlink());
}

#[test]
fn an_api_that_is_not_there_is_told_and_nothing_is_written() {
    let (_dir, path) = tape();
    let (api, proxy) = recording(&path, Scenario::new(), Normal::new());
    drop(api);
    let answer = Client::new(&proxy).post(STREAM, &asking("a"));
    assert_eq!(answer.status, 502);
    assert!(answer.text().contains("cannot be reached"), "{}", answer.text());
    assert!(!path.exists());
}

/// So that whoever sees it knows that there is more, and records it anew.
#[test]
fn an_answer_that_is_missing_is_written_down_until_it_comes() {
    let (_dir, path) = tape();
    let scenario = Scenario::new().turn(Turn::say("One.")).turn(Turn::new().text("Tw").drop_connection());
    let scenario = scenario.turn(Turn::say("Two."));
    let (_api, proxy) = recording(&path, scenario, Normal::new());
    Client::new(&proxy).post(STREAM, &asking("a"));
    assert_eq!(Cassette::read(&path).unwrap().trouble(), None);
    let mut client = Client::new(&proxy);
    client.send_post(STREAM, &asking("b"));
    let _cut = client.response();
    let trouble = Cassette::read(&path).unwrap().trouble().unwrap();
    assert!(trouble.starts_with("an answer is missing: the connection to the API was lost"), "{trouble}");
    assert_eq!(Client::new(&proxy).post(STREAM, &asking("b")).said(), "Two.");
    assert_eq!(Cassette::read(&path).unwrap().trouble(), None);
}

#[test]
fn an_error_at_the_end_is_trouble_and_one_that_was_overcome_is_none() {
    let (_dir, path) = tape();
    let scenario = Scenario::new().turn(Turn::status(503)).turn(Turn::say("One.")).turn(Turn::status(429));
    let (_api, proxy) = recording(&path, scenario, Normal::new());
    let trouble = |text: &str| {
        Client::new(&proxy).post(STREAM, &asking(text));
        Cassette::read(&path).unwrap().trouble().unwrap_or_default()
    };
    assert!(trouble("a").starts_with("503 "));
    assert_eq!(trouble("a"), "");
    assert!(trouble("b").starts_with("429 "));
}

#[test]
fn who_does_not_wait_for_the_end_of_an_answer_is_recorded_all_the_same() {
    let (_dir, path) = tape();
    let turn = Turn::new().text("a").sleep(std::time::Duration::from_millis(300)).text("b");
    let (_api, proxy) = recording(&path, Scenario::new().turn(turn), Normal::new());
    let mut client = Client::new(&proxy);
    client.send_post(STREAM, &asking("a"));
    assert!(client.read_until("\"a\""));
    drop(client);
    while !path.exists() {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    assert_eq!(Cassette::read(&path).unwrap().trouble(), None);
    let server = playing(&path, Normal::new());
    assert_eq!(Client::new(&server).post(STREAM, &asking("a")).said(), "ab");
}

#[test]
fn what_would_make_a_cassette_too_large_is_missing_on_it_and_the_rest_plays_back() {
    let (_dir, path) = tape();
    let api = Server::start().unwrap();
    let turns =
        [Turn::say("one"), Turn::say("x".repeat(20_000)), Turn::say("three"), Turn::say("x".repeat(20_000))];
    let url = api.add("api", turns.into_iter().fold(Scenario::new(), Scenario::turn));
    let proxy = Server::start().unwrap();
    let recorder = Recorder::open(&path, Upstream::new(&url, None).unwrap(), Normal::new()).unwrap();
    let complaints = recorder.complaints();
    proxy.record(recorder.largest(10_000));
    for text in ["a", "b", "c", "d"] {
        assert_eq!(Client::new(&proxy).post(STREAM, &asking(text)).status, 200);
    }
    let said = complaints.all();
    assert!(said.len() == 1 && said[0].contains("it would be larger than"), "{said:?}");
    assert!(std::fs::metadata(&path).unwrap().len() <= 10_000);
    let trouble = Cassette::read(&path).unwrap().trouble();
    assert_eq!(trouble.as_deref(), Some("an answer is missing: it would be too large"));
    let server = playing(&path, Normal::new());
    assert_eq!(Client::new(&server).post(STREAM, &asking("a")).said(), "one");
    assert_eq!(Client::new(&server).post(STREAM, &asking("c")).said(), "three");
    assert_eq!(Client::new(&server).post(STREAM, &asking("b")).status, 400);
}

#[test]
fn another_release_of_the_client_is_named_where_something_differs() {
    let (_dir, path) = tape();
    let (api, proxy) = recording(&path, Scenario::new().turn(Turn::say("Hi.")), Normal::new());
    let ask = |server: &Server, agent: &str, text: &str| {
        let mut client = Client::new(server);
        let body = asking(text).to_string();
        client.send(format!(
            "POST {STREAM} HTTP/1.1\r\nHost: x\r\nUser-Agent: {agent}/gemini-2.5-flash (linux; x64)\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        ));
        client.response().text()
    };
    ask(&proxy, "GeminiCLI/0.60.0", "a");
    drop((api, proxy));
    let server = playing(&path, Normal::new());
    let said = ask(&server, "GeminiCLI/0.61.0", "b");
    assert!(said.contains("it was recorded with GeminiCLI/0.60.0, and this is GeminiCLI/0.61.0"), "{said}");
    assert!(!ask(&server, "GeminiCLI/0.60.0", "b").contains("it was recorded with"));
    // That alone is no difference.
    assert!(ask(&server, "GeminiCLI/0.61.0", "a").contains("Hi."));
}

#[test]
fn dropping_the_server_ends_a_wait_for_the_api() {
    let (_dir, path) = tape();
    let (api, proxy) = recording(&path, Scenario::new().turn(Turn::new().text("a").hang()), Normal::new());
    let mut client = Client::new(&proxy);
    client.send_post(STREAM, &asking("a"));
    assert!(client.read_until("\"a\""));
    drop(proxy);
    assert!(!path.exists(), "half an answer was written down");
    drop(api);
}
