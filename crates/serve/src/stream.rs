//! A log as the body of an answer: server-sent events, or JSON lines.
//!
//! The file is read in pieces, and a piece is asked for when the one before has left. It is in the page cache nearly always, so it is
//! read where it is needed, without a thread.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream;
use tokio::sync::watch;

use crate::log::{Log, Told};
use crate::problem::Problem;

/// So much is read at once.
const PIECE: usize = 16 << 10;
/// Whoever hears nothing for this long is told that we are here; a connection that is gone is noticed so.
pub const STILL_HERE: Duration = Duration::from_secs(15);
/// How soon a browser that was cut off comes back, in milliseconds.
const RETRY: &str = "retry: 1000\n\n";

/// In which form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Server-sent events.
    Sse,
    /// The lines as they are.
    Lines,
}

impl Form {
    /// The one that is asked for; server-sent events otherwise.
    pub fn of(headers: &HeaderMap) -> Self {
        let accepts = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
        let mut kinds = accepts
            .flat_map(|value| value.split(','))
            .map(|kind| kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase());
        let lines = |kind: String| {
            matches!(kind.as_str(), "application/jsonl" | "application/x-ndjson" | "application/jsonlines")
        };
        if kinds.any(lines) { Form::Lines } else { Form::Sse }
    }

    /// How it is called in an answer.
    pub fn kind(self) -> &'static str {
        match self {
            Form::Sse => "text/event-stream",
            Form::Lines => "application/jsonl",
        }
    }
}

/// The last event that somebody has: `Last-Event-ID`, or what the address says.
pub fn last_seen(headers: &HeaderMap, after: Option<u64>) -> Result<Option<u64>, Problem> {
    // As many digits as the document allows; its numbers end where those of 64 bits with a sign do.
    let is_number = |text: &&str| text.len() <= 18 && text.bytes().all(|byte| byte.is_ascii_digit());
    // A client that has none yet may say so with an empty one.
    let told = headers.get("last-event-id").filter(|told| !told.is_empty()).map(|told| {
        let number: Option<u64> = told.to_str().ok().filter(is_number).and_then(|text| text.parse().ok());
        number.ok_or_else(|| Problem::input("Last-Event-ID is no number of an event"))
    });
    let told = told.transpose()?;
    match after {
        Some(after) if i64::try_from(after).is_err() => {
            Err(Problem::input("after: no event has such a number"))
        }
        after => Ok(told.or(after)),
    }
}

/// How long a reader stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// To the end of the log.
    End,
    /// As long as there is something to read.
    Now,
}

impl Until {
    /// As it is asked for; to the end otherwise.
    pub fn of(follow: Option<bool>) -> Self {
        if follow == Some(false) { Until::Now } else { Until::End }
    }
}

/// The answer: everything after `after`, as it comes.
pub fn response(log: &Arc<Log>, after: Option<u64>, form: Form, until: Until) -> Response {
    let reader = Reader {
        told: log.follow(),
        log: log.clone(),
        form,
        until,
        offset: 0,
        line: 0,
        first: after.map_or(0, |after| after.saturating_add(1)),
        is_inside: false,
        is_new: form == Form::Sse,
    };
    let pieces = stream::unfold(reader, |mut reader| async {
        reader.next().await.map(|piece| (Ok::<_, std::io::Error>(piece), reader))
    });
    streamed(form.kind(), Body::from_stream(pieces))
}

/// An answer that goes on.
pub fn streamed(kind: &'static str, body: Body) -> Response {
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(kind)),
        // Said to proxies that would collect it.
        (header::HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no")),
    ];
    (StatusCode::OK, headers, body).into_response()
}

struct Reader {
    log: Arc<Log>,
    told: watch::Receiver<Told>,
    form: Form,
    until: Until,
    /// What is read next.
    offset: u64,
    /// The number of the line that is read next, or that is being read.
    line: u64,
    /// The first that is wanted.
    first: u64,
    /// Whether a part of that line has been read.
    is_inside: bool,
    /// Nothing has been said yet.
    is_new: bool,
}

impl Reader {
    async fn next(&mut self) -> Option<Bytes> {
        if std::mem::take(&mut self.is_new) {
            return Some(Bytes::from_static(RETRY.as_bytes()));
        }
        loop {
            let told = *self.told.borrow_and_update();
            while self.offset < told.bytes {
                let piece = self.piece(told.bytes)?;
                if !piece.is_empty() {
                    return Some(piece.into());
                }
            }
            if told.is_over || self.until == Until::Now {
                return None;
            }
            match tokio::time::timeout(STILL_HERE, self.told.changed()).await {
                Ok(Ok(())) => {}
                Ok(Err(_nobody_writes)) => return None,
                Err(_) if self.form == Form::Sse => return Some(Bytes::from_static(b": \n\n")),
                Err(_) => {}
            }
        }
    }

    /// The next piece of the file in its form; empty if nothing of it is wanted.
    fn piece(&mut self, end: u64) -> Option<Vec<u8>> {
        let mut buffer = [0; PIECE];
        let most = usize::try_from(end - self.offset).unwrap_or(PIECE).min(PIECE);
        let count = self.log.read_at(buffer.get_mut(..most)?, self.offset).ok().filter(|count| *count > 0)?;
        self.offset += count as u64;
        let mut rest = buffer.get(..count)?;
        let mut out = Vec::with_capacity(count + 64);
        while !rest.is_empty() {
            let (part, is_whole) = match memchr::memchr(b'\n', rest) {
                Some(at) => (rest.get(..at)?, true),
                None => (rest, false),
            };
            rest = rest.get(part.len() + usize::from(is_whole)..)?;
            if self.line >= self.first {
                if self.form == Form::Sse && !self.is_inside {
                    out.extend_from_slice(format!("id: {}\ndata: ", self.line).as_bytes());
                }
                out.extend_from_slice(part);
                if is_whole {
                    out.extend_from_slice(if self.form == Form::Sse { b"\n\n" } else { b"\n" });
                }
            }
            self.is_inside = !is_whole;
            self.line += u64::from(is_whole);
        }
        Some(out)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn text(log: &Arc<Log>, after: Option<u64>, form: Form) -> String {
        text_until(log, after, form, Until::End)
    }

    fn text_until(log: &Arc<Log>, after: Option<u64>, form: Form, until: Until) -> String {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let body = response(log, after, form, until).into_body();
            let bytes = axum::body::to_bytes(body, usize::MAX).await.unwrap();
            String::from_utf8(bytes.to_vec()).unwrap()
        })
    }

    fn log_of(lines: &[&str]) -> (tempfile::TempDir, Arc<Log>) {
        let dir = tempfile::tempdir().unwrap();
        let log = Log::create(&dir.path().join("events.jsonl")).unwrap();
        for line in lines {
            log.append(|_| line.as_bytes().to_vec()).unwrap();
        }
        log.end();
        (dir, Arc::new(log))
    }

    #[test]
    fn every_event_has_its_number_and_whoever_comes_back_gets_the_rest() {
        let (_dir, log) = log_of(&["{\"a\":1}", "{}", "{\"c\":3}"]);
        assert_eq!(
            text(&log, None, Form::Sse),
            format!("{RETRY}id: 0\ndata: {{\"a\":1}}\n\nid: 1\ndata: {{}}\n\nid: 2\ndata: {{\"c\":3}}\n\n")
        );
        assert_eq!(text(&log, Some(1), Form::Sse), format!("{RETRY}id: 2\ndata: {{\"c\":3}}\n\n"));
        assert_eq!(text(&log, Some(0), Form::Lines), "{}\n{\"c\":3}\n");
        assert_eq!(text(&log, Some(u64::MAX), Form::Lines), "");
    }

    #[test]
    fn whoever_does_not_wait_gets_what_there_is() {
        let dir = tempfile::tempdir().unwrap();
        let log = Arc::new(Log::create(&dir.path().join("events.jsonl")).unwrap());
        log.append(|_| b"0".to_vec()).unwrap();
        assert_eq!(text_until(&log, None, Form::Lines, Until::Now), "0\n");
        assert_eq!(text_until(&log, Some(0), Form::Lines, Until::Now), "");
    }

    #[test]
    fn a_line_that_is_longer_than_a_piece_arrives_whole() {
        let long = format!("\"{}\"", "x".repeat(5 * PIECE + 7));
        let (_dir, log) = log_of(&[&long, "2"]);
        assert_eq!(text(&log, None, Form::Lines), format!("{long}\n2\n"));
        assert_eq!(text(&log, None, Form::Sse), format!("{RETRY}id: 0\ndata: {long}\n\nid: 1\ndata: 2\n\n"));
        assert_eq!(text(&log, Some(0), Form::Lines), "2\n");
    }

    #[test]
    fn what_was_cut_off_by_a_kill_is_left_out_and_the_end_is_put_behind_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("events.jsonl");
        std::fs::write(&path, "0\n1\n{\"half").unwrap();
        assert_eq!(Log::of_old(&path).unwrap().told(), Told { bytes: 4, lines: 2, is_over: true });
        Log::end_old(&path, |seq| vec![format!("end {seq}").into_bytes()]).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "0\n1\nend 2\n");
    }

    #[test]
    fn the_form_is_the_one_that_is_asked_for() {
        let form = |accept: &'static str| {
            Form::of(&HeaderMap::from_iter([(header::ACCEPT, HeaderValue::from_static(accept))]))
        };
        assert_eq!(form("text/event-stream"), Form::Sse);
        assert_eq!(form("*/*"), Form::Sse);
        assert_eq!(form("text/plain, Application/JSONL;q=0.9"), Form::Lines);
    }
}
