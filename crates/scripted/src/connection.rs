//! One connection: requests are read, routed to their scenario and answered, one after the other.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use alhena_sys::http::{MAX_BODY, Refusal, Request, RequestReader, response_head};
use alhena_sys::sockets;
use serde_json::{Value, json};

use crate::answer;
use crate::cassette::Line;
use crate::play::{Exchange, Fate};
use crate::request::RecordedRequest;
use crate::route::{Route, without_keys};
use crate::server::{Observed, Shared};
use crate::turn::Turn;
use crate::utility;

/// How long a connection may be idle; Gemini CLI closes its own after a few seconds.
pub(crate) const IDLE_LIMIT: Duration = Duration::from_secs(120);

pub(crate) fn serve(shared: &Shared, stream: &Arc<TcpStream>) {
    let _ = stream.set_nodelay(true);
    let _ = stream.set_read_timeout(Some(IDLE_LIMIT));
    let mut reader = RequestReader::new(&**stream);
    loop {
        let fate = match reader.next() {
            Ok(request) => answer_one(shared, stream, request),
            Err(Refusal::Gone) => Fate::Closes,
            Err(Refusal::Bad(status, reason)) => {
                refuse(stream, status, reason);
                return drain(stream);
            }
        };
        match fate {
            Fate::Stays => {}
            Fate::Closes => return close(stream),
            Fate::Resets => {
                let _ = sockets::reset_when_closed(stream);
                return;
            }
        }
    }
}

/// Ends the sending side first, so that what was written last is not lost to a reset.
fn close(stream: &TcpStream) {
    let _ = stream.shutdown(Shutdown::Write);
}

/// Reads what a refused client still sends, for a while: closing on unread bytes would reset the connection and take
/// the refusal with it.
fn drain(mut stream: &TcpStream) {
    close(stream);
    let _ = stream.set_read_timeout(Some(Duration::from_millis(500)));
    let mut scratch = [0; 16 * 1024];
    let mut left = MAX_BODY;
    while let Ok(read @ 1..) = stream.read(&mut scratch) {
        left = left.saturating_sub(read);
        if left == 0 {
            return;
        }
    }
}

/// Tells the client what was wrong; the connection is of no use afterwards.
pub(crate) fn refuse(mut stream: &TcpStream, status: u16, reason: &str) {
    let body = answer::error(status, reason).to_string();
    let head = response_head(status, "application/json; charset=UTF-8", &[]);
    let response = format!("{head}Content-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len());
    let _ = stream.write_all(response.as_bytes());
}

fn answer_one(shared: &Shared, stream: &TcpStream, request: Request) -> Fate {
    if let Some(tape) = shared.tape() {
        let (keep_alive, chunked) = (request.keep_alive, request.version > 0);
        let line = Line { stream, shared, chunked, keep_alive };
        return match tape.answer(request, &line) {
            Ok(()) if line.stays() => Fate::Stays,
            _ => Fate::Closes,
        };
    }
    let refused = |status: u16, reason: &str| {
        shared.tell(&Observed::Refused { status, reason });
        refuse(stream, status, reason);
        Fate::Closes
    };
    let Some(route) = Route::of(&request.target) else {
        let path = without_keys(&request.target);
        return refused(404, &format!("{path} is not served by the scripted API."));
    };
    let Some(name) = route.scenario.clone().or_else(|| shared.at_root()) else {
        return refused(404, "The address names no scenario.");
    };
    let Some(served) = shared.find(&name) else {
        return refused(404, &format!("There is no scenario `{name}`."));
    };
    if request.method != "POST" {
        return refused(404, &format!("{} is not served by the scripted API, only POST.", request.method));
    }
    let (keep_alive, chunked) = (request.keep_alive, request.version > 0);
    let recorded = match record(route, request) {
        Ok(recorded) => recorded,
        Err(reason) => return refused(400, &reason),
    };
    let (request, playing) = served.begin(recorded);
    shared.tell(&Observed::Request { scenario: &served.name, request: &request });
    let line = Exchange {
        stream,
        stopping: &shared.stopping,
        served: &served,
        playing: &playing,
        model: &request.model,
        number: request.number,
        keep_alive,
        chunked,
    };
    match request.action.as_str() {
        "streamGenerateContent" => line.stream(&served.turn_for(&request)),
        "generateContent" => line.object(&served.generate_for(&request)),
        _ => line.object(&counted(&request)),
    }
}

fn counted(request: &RecordedRequest) -> Turn {
    Turn::response(json!({"totalTokens": utility::count_tokens(request)}))
}

fn record(route: Route, request: Request) -> Result<RecordedRequest, String> {
    let raw_body = String::from_utf8(request.body).map_err(|_| "The body is not UTF-8.".to_owned())?;
    let body: Value = alhena_wire::from_slice(raw_body.as_bytes())
        .map_err(|error| format!("The body is not JSON: {error}"))?;
    let headers: BTreeMap<String, String> = request.headers.into_iter().map(without_secret).collect();
    Ok(RecordedRequest {
        at: SystemTime::now(),
        run: route.run,
        number: 0,
        method: request.method,
        path: route.path,
        action: route.action,
        model: route.model,
        headers,
        body,
        raw_body,
    })
}

fn without_secret((name, value): (String, String)) -> (String, String) {
    const SECRETS: [&str; 5] =
        ["authorization", "x-goog-api-key", "cookie", "proxy-authorization", "x-api-key"];
    if SECRETS.contains(&name.as_str()) { (name, "[secret]".to_owned()) } else { (name, value) }
}
