//! Reads HTTP/1.1 requests and writes response heads, for servers on loopback.
//!
//! Gemini CLI (0.61.0, undici) keeps connections open and sends bodies with a length; other clients chunk theirs.

use std::io::{self, Read, Write};

/// The largest head of a request.
const MAX_HEAD: usize = 64 * 1024;
/// The largest body of a request.
pub const MAX_BODY: usize = 64 * 1024 * 1024;
const MAX_HEADERS: usize = 100;

/// A request as it was read.
#[derive(Debug, PartialEq)]
pub struct Request {
    /// Such as `POST`.
    pub method: String,
    /// The path, with its query.
    pub target: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// All of it.
    pub body: Vec<u8>,
    /// Whether the client wants the connection to stay open; HTTP/1.0 clients do not, nor do they know chunks.
    pub keep_alive: bool,
    /// The minor version: 1 of HTTP/1.1.
    pub version: u8,
}

/// Why there is no request.
#[derive(Debug)]
pub enum Refusal {
    /// The connection ended, or broke.
    Gone,
    /// The client said something wrong; the status and the reason.
    Bad(u16, &'static str),
}

impl From<io::Error> for Refusal {
    fn from(_: io::Error) -> Self {
        Refusal::Gone
    }
}

/// Reads requests from a connection, keeping what was read too far.
#[derive(Debug)]
pub struct RequestReader<S> {
    stream: S,
    buffer: Vec<u8>,
    /// How much of the buffer has been used; it is only moved down before a read, so that many small pieces cost
    /// no more than one large one.
    used: usize,
}

struct Head {
    request: Request,
    length: usize,
    chunked: bool,
    continues: bool,
}

impl<S: Read + Write> RequestReader<S> {
    /// Reads from this connection.
    pub fn new(stream: S) -> Self {
        RequestReader { stream, buffer: Vec::new(), used: 0 }
    }

    /// The connection itself, to write to.
    pub fn stream(&mut self) -> &mut S {
        &mut self.stream
    }

    /// The next request of the connection.
    #[expect(clippy::should_implement_trait, reason = "its end is a refusal that has to be told apart")]
    pub fn next(&mut self) -> Result<Request, Refusal> {
        let head = self.head()?;
        let mut request = head.request;
        if head.continues {
            self.stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
        }
        request.body = if head.chunked { self.chunked_body()? } else { self.take(head.length)? };
        Ok(request)
    }

    fn unread(&self) -> &[u8] {
        self.buffer.get(self.used..).unwrap_or_default()
    }

    fn head(&mut self) -> Result<Head, Refusal> {
        loop {
            // A head that is sent byte by byte is parsed anew for every byte; the limit on its size bounds that.
            if let Some((used, head)) = parse_head(self.unread())? {
                self.used += used;
                return Ok(head);
            }
            if self.unread().len() >= MAX_HEAD {
                return Err(Refusal::Bad(431, "The head of the request is too large."));
            }
            self.more()?;
        }
    }

    fn more(&mut self) -> Result<(), Refusal> {
        self.buffer.drain(..self.used);
        self.used = 0;
        let mut chunk = [0; 16 * 1024];
        let read = loop {
            match self.stream.read(&mut chunk) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => break other?,
            }
        };
        match chunk.get(..read) {
            None | Some([]) => Err(Refusal::Gone),
            Some(bytes) => {
                self.buffer.extend_from_slice(bytes);
                Ok(())
            }
        }
    }

    fn take(&mut self, length: usize) -> Result<Vec<u8>, Refusal> {
        if length > MAX_BODY {
            return Err(Refusal::Bad(413, "The body of the request is too large."));
        }
        loop {
            if let Some(bytes) = self.unread().get(..length) {
                let bytes = bytes.to_vec();
                self.used += length;
                return Ok(bytes);
            }
            self.more()?;
        }
    }

    fn chunked_body(&mut self) -> Result<Vec<u8>, Refusal> {
        let mut body = Vec::new();
        loop {
            let line = self.line()?;
            let size = line.split(';').next().unwrap_or_default().trim();
            let size =
                usize::from_str_radix(size, 16).map_err(|_| Refusal::Bad(400, "A chunk has no size."))?;
            if size == 0 {
                while !self.line()?.is_empty() {}
                return Ok(body);
            }
            if size.saturating_add(body.len()) > MAX_BODY {
                return Err(Refusal::Bad(413, "The body of the request is too large."));
            }
            body.extend_from_slice(&self.take(size)?);
            if !self.line()?.is_empty() {
                return Err(Refusal::Bad(400, "A chunk is longer than its size."));
            }
        }
    }

    fn line(&mut self) -> Result<String, Refusal> {
        let end = loop {
            if let Some(end) = self.unread().iter().take(MAX_HEAD).position(|byte| *byte == b'\n') {
                break end;
            }
            if self.unread().len() >= MAX_HEAD {
                return Err(Refusal::Bad(400, "A line of the request is too long."));
            }
            self.more()?;
        };
        let line = self.take(end + 1)?;
        Ok(String::from_utf8_lossy(&line).trim().to_owned())
    }
}

/// Names in lower case.
fn headers_of(parsed: &[httparse::Header<'_>]) -> Vec<(String, String)> {
    let text = |header: &httparse::Header<'_>| String::from_utf8_lossy(header.value).into_owned();
    parsed.iter().map(|header| (header.name.to_ascii_lowercase(), text(header))).collect()
}

fn parse_head(bytes: &[u8]) -> Result<Option<(usize, Head)>, Refusal> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut parsed = httparse::Request::new(&mut headers);
    let used = match parsed.parse(bytes) {
        Ok(httparse::Status::Complete(used)) => used,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(httparse::Error::TooManyHeaders) => {
            return Err(Refusal::Bad(431, "The request has too many headers."));
        }
        Err(_) => return Err(Refusal::Bad(400, "This is not an HTTP request.")),
    };
    let headers = headers_of(parsed.headers);
    let value = |name: &str| headers.iter().find(|(each, _)| each == name).map(|(_, value)| value.trim());
    let version = parsed.version.unwrap_or(1);
    let chunked = match value("transfer-encoding") {
        None => false,
        Some(coding) if coding.eq_ignore_ascii_case("chunked") => true,
        Some(_) => return Err(Refusal::Bad(501, "Only chunked transfer coding is known.")),
    };
    let length = match value("content-length") {
        None => 0,
        Some(_) if chunked => return Err(Refusal::Bad(400, "The request has two lengths.")),
        Some(text) => text.parse().map_err(|_| Refusal::Bad(400, "The content length is not a number."))?,
    };
    let connection = value("connection").unwrap_or_default().to_ascii_lowercase();
    let keep_alive = if version == 0 { connection == "keep-alive" } else { connection != "close" };
    let continues = value("expect").is_some_and(|expect| expect.eq_ignore_ascii_case("100-continue"));
    let request = Request {
        method: parsed.method.unwrap_or_default().to_owned(),
        target: parsed.path.unwrap_or_default().to_owned(),
        headers,
        body: Vec::new(),
        keep_alive: keep_alive && version > 0,
        version,
    };
    Ok(Some((used, Head { request, length, chunked, continues })))
}

/// The head of a response, up to the empty line.
pub fn response_head(status: u16, content_type: &str, extra: &[(String, String)]) -> String {
    let reason = match status {
        200 => "OK",
        202 => "Accepted",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        413 => "Content Too Large",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        503 => "Service Unavailable",
        _ => "Scripted",
    };
    let mut head = format!("HTTP/1.1 {status} {reason}\r\nContent-Type: {content_type}\r\n");
    for (name, value) in extra {
        // A header must not be able to end the head.
        let clean = |text: &str| text.replace(['\r', '\n'], " ");
        head.push_str(&format!("{}: {}\r\n", clean(name), clean(value)));
    }
    head
}

/// The head of a response.
#[derive(Debug, PartialEq)]
pub struct ResponseHead {
    /// Such as 200.
    pub status: u16,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// How the end of its body is known.
    pub framing: Framing,
}

/// How the end of a body is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// So much is left.
    Length(usize),
    /// Each piece says its size.
    Chunked,
    /// By the end of the connection.
    ToTheEnd,
}

impl<S: Read + Write> RequestReader<S> {
    /// The head of the response to what was written.
    pub fn response(&mut self) -> Result<ResponseHead, Refusal> {
        loop {
            if let Some((used, head)) = parse(self.unread())? {
                self.used += used;
                // `100 Continue` and the like announce another.
                if head.status >= 200 {
                    return Ok(head);
                }
                continue;
            }
            if self.unread().len() >= MAX_HEAD {
                return Err(Refusal::Bad(502, "The head of the response is too large."));
            }
            self.more()?;
        }
    }

    /// The next bytes of its body; none at its end.
    pub fn piece(&mut self, framing: &mut Framing) -> Result<Option<Vec<u8>>, Refusal> {
        match framing {
            Framing::Length(0) => Ok(None),
            Framing::Length(left) => {
                let bytes = self.at_most(*left)?.ok_or(Refusal::Gone)?;
                *left -= bytes.len();
                Ok(Some(bytes))
            }
            Framing::ToTheEnd => self.at_most(usize::MAX),
            Framing::Chunked => {
                let line = self.line()?;
                let size = line.split(';').next().unwrap_or_default().trim();
                let size = usize::from_str_radix(size, 16)
                    .map_err(|_| Refusal::Bad(502, "A chunk of the response has no size."))?;
                if size == 0 {
                    while !self.line()?.is_empty() {}
                    *framing = Framing::Length(0);
                    return Ok(None);
                }
                let bytes = self.take(size)?;
                self.line()?;
                Ok(Some(bytes))
            }
        }
    }

    /// What is there, or comes next; none at the end of the connection.
    fn at_most(&mut self, longest: usize) -> Result<Option<Vec<u8>>, Refusal> {
        if self.unread().is_empty() {
            match self.more() {
                Err(Refusal::Gone) => return Ok(None),
                other => other?,
            }
        }
        let length = self.unread().len().min(longest);
        self.take(length).map(Some)
    }
}

fn parse(bytes: &[u8]) -> Result<Option<(usize, ResponseHead)>, Refusal> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut parsed = httparse::Response::new(&mut headers);
    let used = match parsed.parse(bytes) {
        Ok(httparse::Status::Complete(used)) => used,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(_) => return Err(Refusal::Bad(502, "This is not an HTTP response.")),
    };
    let headers = self::headers_of(parsed.headers);
    let value = |name: &str| headers.iter().find(|(each, _)| each == name).map(|(_, value)| value.trim());
    let status = parsed.code.unwrap_or_default();
    let framing = match (value("transfer-encoding"), value("content-length")) {
        _ if status < 200 || matches!(status, 204 | 304) => Framing::Length(0),
        (Some(coding), _) if coding.eq_ignore_ascii_case("chunked") => Framing::Chunked,
        (Some(_), _) => return Err(Refusal::Bad(502, "Only chunked transfer coding is known.")),
        (None, Some(length)) => Framing::Length(
            length.parse().map_err(|_| Refusal::Bad(502, "The content length is not a number."))?,
        ),
        (None, None) => Framing::ToTheEnd,
    };
    Ok(Some((used, ResponseHead { status, headers, framing })))
}

#[cfg(test)]
mod tests {
    use std::io::{self, Read, Write};

    use super::{Refusal, Request, RequestReader};

    /// A connection that gives its bytes in pieces of one size.
    struct Pieces<'a>(&'a [u8], usize);

    impl Read for Pieces<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let (now, later) = self.0.split_at(self.1.min(self.0.len()).min(buffer.len()));
            buffer[..now.len()].copy_from_slice(now);
            self.0 = later;
            Ok(now.len())
        }
    }

    impl Write for Pieces<'_> {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn requests(bytes: &[u8], piece: usize) -> (Vec<Request>, Refusal) {
        let mut reader = RequestReader::new(Pieces(bytes, piece));
        let mut requests = Vec::new();
        loop {
            match reader.next() {
                Ok(request) => requests.push(request),
                Err(refusal) => return (requests, refusal),
            }
        }
    }

    #[test]
    fn requests_are_the_same_in_pieces_of_any_size() {
        let bytes = b"POST /a HTTP/1.1\r\nX: 1\r\nContent-Length: 3\r\n\r\nabc\
            POST /b HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nde\r\n1\r\nf\r\n0\r\n\r\nGET /c HTTP/1.0\r\n\r\n";
        let whole = requests(bytes, usize::MAX).0;
        let seen: Vec<_> = whole.iter().map(|each| (each.target.as_str(), each.body.as_slice())).collect();
        assert_eq!(seen, [("/a", &b"abc"[..]), ("/b", b"def"), ("/c", b"")]);
        for piece in 1..bytes.len() {
            assert_eq!(requests(bytes, piece).0, whole);
        }
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_end_in_a_refusal(bytes: Vec<u8>, piece in 1usize..40) {
            let head = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
            requests(&bytes, piece);
            requests(&[&head[..], &bytes].concat(), piece);
        }
    }
}
