//! The other side of the same protocol: responses in, piece by piece.

use std::io::{Read, Write};

use super::{MAX_HEAD, MAX_HEADERS, Refusal, RequestReader};

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
    let headers = super::headers_of(parsed.headers);
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
