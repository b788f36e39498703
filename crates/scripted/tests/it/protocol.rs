//! HTTP as clients speak it, well or badly.

use std::io::Write;
use std::time::Instant;

use crate::common::{Client, End, LIMIT, STREAM, prompt, serve};
use alhena_scripted::{Scenario, Turn};
use serde_json::json;

fn hello() -> Scenario {
    Scenario::new().turn(Turn::say("hello").always())
}

#[test]
fn what_is_not_served_is_a_clear_404() {
    let server = serve(hello());
    let paths = [
        "/",
        "/s/x",
        "/s/x/v1beta/models",
        "/s/x/v1beta/models/m:embedContent",
        "/s/x/models/m:generateContent",
        "/v1beta/models/m:generateContent",
        "/s/nope/v1beta/models/m:generateContent",
    ];
    for path in paths {
        let response = Client::new(&server).post(path, &prompt("hi"));
        let error = &response.json()["error"];
        assert_eq!((response.status, &error["status"]), (404, &json!("NOT_FOUND")), "{path}");
    }
    let mut client = Client::new(&server);
    client.send(format!("GET /s/x{STREAM} HTTP/1.1\r\n\r\n"));
    assert_eq!(
        client.response().json()["error"]["message"],
        "GET is not served by the scripted API, only POST."
    );
    assert_eq!(server.requests("x").len(), 0);
}

#[test]
fn what_is_not_http_is_a_400() {
    let server = serve(hello());
    let garbage: [&[u8]; 8] = [
        b"\x16\x03\x01\x02\x00\x01\x00",
        b"hello\r\n\r\n",
        b"POST / HTTP/9.9\r\n\r\n",
        b"POST / HTTP/1.1\r\nbad header\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
        b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n",
    ];
    for bytes in garbage {
        let mut client = Client::new(&server);
        client.send(bytes);
        let response = client.response();
        assert_eq!((response.status, response.header("connection")), (400, Some("close")), "{bytes:?}");
    }
}

#[test]
fn a_body_that_is_not_json_is_a_400() {
    let server = serve(hello());
    for body in ["", "{", "\u{1}"] {
        let mut client = Client::new(&server);
        client.send(format!("POST /s/x{STREAM} HTTP/1.1\r\nContent-Length: {}\r\n\r\n{body}", body.len()));
        let response = client.response();
        assert_eq!(response.status, 400);
        assert!(response.text().contains("The body is not JSON"));
    }
    let mut client = Client::new(&server);
    client.send(format!("POST /s/x{STREAM} HTTP/1.1\r\nContent-Length: 2\r\n\r\n"));
    client.send([0xff, 0xfe]);
    assert!(client.response().text().contains("The body is not UTF-8."));
}

#[test]
fn sizes_are_bounded() {
    let server = serve(hello());
    let too_large = 64 * 1024 * 1024 + 1;
    let mut client = Client::new(&server);
    client.send(format!("POST /s/x{STREAM} HTTP/1.1\r\nContent-Length: {too_large}\r\n\r\n"));
    assert_eq!(client.response().status, 413);
    let mut client = Client::new(&server);
    client.send(format!("POST /s/x{STREAM} HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n{too_large:x}\r\n"));
    assert_eq!(client.response().status, 413);
    let mut client = Client::new(&server);
    client.send(format!("POST / HTTP/1.1\r\nx: {}\r\n\r\n", "y".repeat(70_000)));
    assert_eq!(client.response().status, 431);
    let mut client = Client::new(&server);
    client.send(format!("POST / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(200)));
    assert_eq!(client.response().status, 431);
}

#[test]
fn a_large_body_is_read_whole() {
    let server = serve(hello());
    let text = "ü".repeat(4 * 1024 * 1024);
    assert_eq!(Client::new(&server).post(&format!("/s/x{STREAM}"), &prompt(&text)).said(), "hello");
    assert_eq!(server.requests("x")[0].prompt(), Some(text.as_str()));
}

#[test]
fn a_request_may_come_in_pieces_in_chunks_or_with_the_next_one() {
    let server = serve(hello());
    let mut client = Client::new(&server);
    let head = format!("POST /s/x{STREAM} HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n");
    for byte in head.bytes() {
        client.send([byte]);
    }
    client.send("2;ext=1\r\n{}\r\n0\r\ntrailer: 1\r\n\r\n");
    assert_eq!(client.response().said(), "hello");
    let one = format!("POST /s/x{STREAM} HTTP/1.1\r\nContent-Length: 2\r\n\r\n{{}}");
    client.send(format!("{one}{one}"));
    assert_eq!([client.response().said(), client.response().said()], ["hello", "hello"]);
}

#[test]
fn a_pipelined_request_does_not_cut_a_pause_short() {
    let turn = Turn::new().gate("go").text("a");
    let server = serve(Scenario::new().turn(turn).turn(Turn::say("b")));
    let mut client = Client::new(&server);
    client.send_post(&format!("/s/x{STREAM}"), &prompt("1"));
    assert!(server.wait_until("x", LIMIT, |state| state.turns_in_flight() == 1));
    client.send_post(&format!("/s/x{STREAM}"), &prompt("2"));
    server.release("x", "go");
    assert_eq!([client.response().said(), client.response().said()], ["a", "b"]);
}

#[test]
fn a_client_that_asks_first_is_told_to_go_on() {
    let server = serve(hello());
    let mut client = Client::new(&server);
    client.send(format!("POST /s/x{STREAM} HTTP/1.1\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n"));
    assert_eq!(client.response().status, 100);
    client.send("{}");
    assert_eq!(client.response().said(), "hello");
}

#[test]
fn old_clients_get_a_plain_stream_and_the_end_of_the_connection() {
    let server = serve(hello());
    let mut client = Client::new(&server);
    client.send(format!("POST /s/x{STREAM} HTTP/1.0\r\nContent-Length: 2\r\n\r\n{{}}"));
    let response = client.response();
    assert_eq!((response.header("transfer-encoding"), response.said().as_str()), (None, "hello"));
}

#[test]
fn a_client_can_ask_for_the_connection_to_be_closed() {
    let server = serve(hello());
    let mut client = Client::new(&server);
    client.send(format!("POST /s/x{STREAM} HTTP/1.1\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{{}}"));
    assert_eq!(client.response().said(), "hello");
    assert_eq!(client.try_response().unwrap_err(), End::Closed);
}

#[test]
fn only_loopback_is_listened_on() {
    let server = serve(hello());
    assert!(server.address().ip().is_loopback());
}

#[test]
fn connections_are_bounded() {
    let server = serve(hello());
    let mut clients: Vec<Client> = (0..256).map(|_| Client::new(&server)).collect();
    assert_eq!(Client::new(&server).response().status, 503);
    // One that leaves makes room for another, as soon as its thread has noticed.
    clients.pop();
    let start = Instant::now();
    let path = format!("/s/x{STREAM}");
    loop {
        let mut client = Client::new(&server);
        let request = format!("POST {path} HTTP/1.1\r\nContent-Length: 2\r\n\r\n{{}}");
        let sent = client.stream.write_all(request.as_bytes()).is_ok();
        if sent && client.try_response().is_ok_and(|response| response.status == 200) {
            break;
        }
        assert!(start.elapsed() < LIMIT);
    }
}

#[test]
fn many_runs_are_served_at_once() {
    let server = serve(Scenario::new().turn(Turn::say("first").gate("all")).turn(Turn::say("second")));
    std::thread::scope(|scope| {
        for run in 0..40 {
            let server = &server;
            scope.spawn(move || {
                let mut client = Client::new(server);
                let path = format!("/s/x/{run}{STREAM}");
                let said = [client.post(&path, &prompt("a")).said(), client.post(&path, &prompt("b")).said()];
                assert_eq!(said, ["first", "second"]);
            });
        }
        // All forty are in their first turn at the same time.
        assert!(server.wait_until("x", LIMIT, |state| state.turns_in_flight() == 40));
        server.release("x", "all");
    });
    assert_eq!(server.state("x").turns_served(), 80);
}
