//! What is too much, too large or too slow.

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::json;

use super::{goes_on, says, serve};

#[test]
fn more_runs_than_allowed_are_told_to_come_back_later() {
    let place = goes_on("too-many");
    let served = serve(&place, &["--max-runs", "2"]);
    let options = json!({"prompt": "go"});
    let ids = [served.run(&options), served.run(&options)];
    let third = served.post("/v1/runs", &options);
    assert_eq!((third.status, third.kind().as_str()), (429, "too_many"));
    assert!(third.header("retry-after").unwrap().parse::<u32>().unwrap() > 0);
    served.post(&format!("/v1/runs/{}/cancel", ids[0]), &json!({}));
    served.until(&format!("/v1/runs/{}", ids[0]), |run| run["state"] == "finished");
    served.run(&options);
}

#[test]
fn a_request_that_is_too_large_is_refused_before_it_is_read_and_while_it_is() {
    let place = says("too-large", "hi");
    let served = serve(&place, &["--max-request", "1000"]);
    let reply = served.post("/v1/runs", &json!({"prompt": "x".repeat(1001)}));
    assert_eq!((reply.status, reply.kind().as_str()), (413, "too_large"));
    // One that does not say how large it is.
    let mut stream = served.connect();
    let head = format!(
        "POST /v1/runs HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n",
        served.host, served.token
    );
    stream.write_all(head.as_bytes()).unwrap();
    for _ in 0..20 {
        if stream
            .write_all(b"64\r\n")
            .and_then(|()| stream.write_all(&[b' '; 100]))
            .and_then(|()| stream.write_all(b"\r\n"))
            .is_err()
        {
            break;
        }
    }
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"HTTP/1.1 413");
    // A head that has no end.
    let mut stream = served.connect();
    let _cut_off = stream.write_all(b"GET / HTTP/1.1\r\n").and_then(|()| {
        (0..200).try_for_each(|n| stream.write_all(format!("X-{n}: {}\r\n", "y".repeat(1000)).as_bytes()))
    });
    let mut rest = Vec::new();
    let _reset = stream.read_to_end(&mut rest);
    assert!(
        !String::from_utf8_lossy(&rest).starts_with("HTTP/1.1 200"),
        "{}",
        String::from_utf8_lossy(&rest)
    );
    assert_eq!(served.get("/v1/me")["access"], "full");
}

#[test]
fn whoever_is_slow_is_let_go_and_holds_nobody_up() {
    let place = says("too-slow", "hi");
    let served = serve(&place, &[]);
    let mut slow: Vec<TcpStream> = Vec::new();
    for begun in ["", "GET / HT", "GET /v1/me HTTP/1.1\r\nHost: x"] {
        let mut stream = served.connect();
        stream.write_all(begun.as_bytes()).unwrap();
        slow.push(stream);
    }
    assert_eq!(served.get("/v1/me")["access"], "full", "others are served meanwhile");
    // Each of them is let go: with an answer, or without one.
    for mut stream in slow {
        let mut rest = Vec::new();
        let _reset = stream.read_to_end(&mut rest);
        let said = String::from_utf8_lossy(&rest).into_owned();
        assert!(
            said.is_empty() || said.starts_with("HTTP/1.1 408") || said.starts_with("HTTP/1.1 400"),
            "{said}"
        );
    }
    let mut stream = served.connect();
    let head = format!(
        "POST /v1/runs HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{{",
        served.host, served.token
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"HTTP/1.1 408");
}

#[test]
fn five_hundred_who_only_listen_cost_little_and_all_hear_the_end() {
    let place = goes_on("listeners");
    let served = serve(&place, &[]);
    let id = served.run(&json!({"prompt": "go"}));
    let path = format!("/v1/runs/{id}/events");
    let mut listeners: Vec<_> = (0..500).map(|_| served.follow(&path, &[])).collect();
    assert!(listeners.iter().all(|one| one.status == 200));
    let before = alhena_testbed::processes::memory(served.pid());
    assert!(before < 300 << 20, "{before} bytes");
    assert_eq!(served.get("/v1/me")["access"], "full", "others are served meanwhile");
    served.post(&format!("/v1/runs/{id}/cancel"), &json!({}));
    for listener in &mut listeners {
        let last = listener.last().unwrap().1;
        assert_eq!(last["outcome"]["status"], "cancelled");
    }
}

#[test]
fn what_makes_no_sense_is_said_in_full() {
    let place = says("nonsense", "hi");
    let served = serve(&place, &[]);
    let kind = |body: &str| {
        let reply = served.ask("POST", "/v1/runs", body);
        (reply.status, reply.kind(), reply.json()["detail"].as_str().unwrap().to_owned())
    };
    for body in [
        "{",
        "[]",
        "null",
        "{}",
        "{\"prompt\": 5, \"dir\": 7}",
        "{\"prompt\": \"\"}",
        "{\"prompt\": null}",
        "{\"prompt\": 5}",
        "{\"prompt\": \"x\", \"schema\": 5}",
        "{\"prompt\": \"x\", \"max_cost\": 0}",
        "{\"prompt\": \"x\", \"max_tokens\": 0}",
        "{\"prompt\": \"x\", \"session_id\": \"../x\"}",
    ] {
        let (status, kind, detail) = kind(body);
        assert_eq!((status, kind.as_str()), (400, "input"), "{body}: {detail}");
    }
    let (_, _, detail) = kind("{\"prompt\": \"x\", \"max_cost\": 0}");
    assert!(detail.contains("max_cost") && !detail.contains("--"), "{detail}");
    let (status, _, detail) = kind("{\"prompt\": \"x\", \"promt\": \"y\"}");
    assert!(status == 400 && detail.contains("promt"), "{detail}");
    let reply =
        served.ask("POST", "/v1/runs", "{\"prompt\": \"x\", \"timeout\": \"soon\", \"max_turns\": \"many\"}");
    assert_eq!(reply.json()["errors"].as_array().unwrap().len(), 2, "{}", reply.body);
    let (status, kind, _) = kind("{\"prompt\": \"x\", \"gemini\": \"/bin/sh\"}");
    assert_eq!((status, kind.as_str()), (403, "forbidden"));
    let text = [("Content-Type", "text/plain"), ("Content-Length", "2")];
    let plain = served.ask_with("POST", "/v1/runs", &text, "");
    assert_eq!(plain.status, 415);
    let other = served.ask("PUT", "/v1/runs", "");
    assert_eq!(other.status, 405);
    assert!(other.header("allow").unwrap().contains("POST"), "{other:?}");
    assert_eq!(served.get("/v1/runs")["runs"], json!([]), "nothing was begun");
}

#[test]
fn runs_and_conversations_that_are_over_hold_no_descriptors() {
    let (place, agent) = super::talks::quick("descriptors");
    let served = serve(&place, &["--allow-programs"]);
    let open = || std::fs::read_dir(format!("/proc/{}/fd", served.pid())).unwrap().count();
    let once = || {
        let id = served.run(&json!({"prompt": "go"}));
        served.events(&id);
        let talk = super::talks::open(&served, &agent);
        served.until(&talk, |told| told["state"] == "idle");
        served.ask("DELETE", &talk, "");
    };
    // The first run also opens descriptors that all later ones share.
    once();
    let before = open();
    (0..5).for_each(|_| once());
    // What ends a moment after its last event needs that moment.
    let deadline = alhena_testbed::Deadline::after(std::time::Duration::from_secs(30));
    assert!(deadline.wait_until(|| open() <= before), "{} descriptors became {}", before, open());
}
