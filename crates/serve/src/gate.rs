//! Who gets in: every request passes here before anything looks at it.
//!
//! A browser is told what page a request comes from and what name it was sent to, and says so. A page from elsewhere that got the
//! server's address by DNS, or that runs beside it on another port, is refused by that, whatever cookies the browser adds.

use std::net::{IpAddr, SocketAddr};

use alhena_sys::files::Stamp;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt;

use crate::problem::Problem;
use crate::state::{App, Shared};
use crate::stream::Form;
use crate::token::{ALL, Access};

/// The name of the cookie that a browser gets for its first click. A browser keeps those of all ports of a machine together: each
/// server has its own.
pub fn cookie_name(connection: Connection) -> String {
    format!("alhena_{}", connection.local.port())
}

/// What a browser calls this server: the scheme, and the name and port that the request was sent to.
#[derive(Clone, Debug)]
pub struct Origin(pub String);

/// What a page may do: use what comes from here, and nothing else.
const CONTENT: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// On every answer.
const HEADERS: &[(&str, &str)] = &[
    ("content-security-policy", CONTENT),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("x-frame-options", "DENY"),
    ("permissions-policy", "camera=(), geolocation=(), microphone=()"),
];

/// The connection that a request came by.
#[derive(Clone, Copy, Debug)]
pub struct Connection {
    /// Our end of it.
    pub local: SocketAddr,
    /// Whether it is encrypted.
    pub tls: bool,
}

impl Connection {
    fn scheme(self) -> &'static str {
        if self.tls { "https" } else { "http" }
    }
}

/// Lets a request through, or not.
pub async fn pass(State(app): State<Shared>, mut request: Request, next: Next) -> Response {
    let origin = request.headers().get(header::ORIGIN).cloned();
    let listed = origin.filter(|origin| is_listed(&app, origin));
    // Before it is judged: a token that is replaced meanwhile is another.
    let stamps = ALL.map(|access| (access, app.tokens.stamp(access)));
    let mut response = match admit(&app, &mut request) {
        Ok(Admitted::In) => {
            let access = request.extensions().get::<Access>().copied();
            let response = next.run(request).await;
            match stamps.into_iter().find(|(of, _)| Some(*of) == access) {
                Some((access, stamp)) if is_stream(&response) => {
                    while_it_counts(response, app.clone(), access, stamp)
                }
                _ => response,
            }
        }
        Ok(Admitted::Preflight) => StatusCode::NO_CONTENT.into_response(),
        Err(problem) => problem.into_response(),
    };
    let headers = response.headers_mut();
    for (name, value) in HEADERS {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    if !headers.contains_key(header::CACHE_CONTROL) {
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    if let Some(origin) = listed {
        share(headers, origin);
    }
    response
}

fn is_stream(response: &Response) -> bool {
    let kind = response.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    kind.is_some_and(|kind| kind == Form::Sse.kind() || kind == Form::Lines.kind())
}

/// A stream that ends with the token that it was opened by: before the next piece, and there is one at least each 15 s.
fn while_it_counts(response: Response, app: Shared, access: Access, stamp: Option<Stamp>) -> Response {
    response.map(|body| {
        let counts = move |_: &_| std::future::ready(app.tokens.stamp(access) == stamp);
        Body::from_stream(body.into_data_stream().take_while(counts))
    })
}

/// Tells a browser that a page from elsewhere may read the answer.
fn share(headers: &mut HeaderMap, origin: HeaderValue) {
    let mut put = |name: &'static str, value: &'static str| {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value))
    };
    put("access-control-allow-methods", "GET, POST, PATCH, DELETE");
    put("access-control-allow-headers", "authorization, content-type, idempotency-key, last-event-id");
    put("access-control-expose-headers", "location, retry-after");
    put("access-control-max-age", "600");
    put("cross-origin-resource-policy", "cross-origin");
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(header::VARY, HeaderValue::from_static("origin"));
}

enum Admitted {
    In,
    /// A browser asks whether a page from elsewhere may ask.
    Preflight,
}

fn admit(app: &App, request: &mut Request) -> Result<Admitted, Problem> {
    let connection = request.extensions().get::<Connection>().copied();
    let connection = connection.ok_or_else(|| Problem::broken("a request without a connection"))?;
    let host = host(request.headers(), request.uri().authority().map(|authority| authority.as_str()))?;
    if !is_ours(&app.settings.hosts, connection, &host) {
        return Err(Problem::forbidden(format!("this server is not {host:?}"))
            .hint("Use the address that it printed, or start it with this name as one of its hosts."));
    }
    let origin = Origin(format!("{}://{host}", connection.scheme()));
    let from = whence(app, request.headers(), &origin)?;
    request.extensions_mut().insert(origin.clone());
    if request.method() == Method::OPTIONS && from == Whence::Listed {
        return Ok(Admitted::Preflight);
    }
    if is_open(request.uri().path()) {
        return Ok(Admitted::In);
    }
    let access = access(app, request.headers(), from, &cookie_name(connection), &origin)?;
    if access == Access::Read && !matches!(*request.method(), Method::GET | Method::HEAD) {
        return Err(Problem::forbidden("this token is for watching only"));
    }
    request.extensions_mut().insert(access);
    Ok(Admitted::In)
}

/// The page itself holds nothing; all that it shows comes by the API.
fn is_open(path: &str) -> bool {
    !(path == "/v1" || path.starts_with("/v1/"))
}

fn host(headers: &HeaderMap, authority: Option<&str>) -> Result<String, Problem> {
    let given = only(headers, &header::HOST)?.map(|host| host.to_str().unwrap_or_default());
    match (given, authority) {
        (Some(host), Some(other)) if !host.eq_ignore_ascii_case(other) => Err(said_twice(&header::HOST)),
        (Some(host), _) | (None, Some(host)) => Ok(host.to_ascii_lowercase()),
        (None, None) => Err(Problem::forbidden("the request says not to whom it goes")),
    }
}

/// A header that there is one of at most: whoever says two things says nothing.
fn only<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Result<Option<&'h HeaderValue>, Problem> {
    let mut given = headers.get_all(name).iter();
    match (given.next(), given.next()) {
        (_, Some(_)) => Err(said_twice(name)),
        (only, None) => Ok(only),
    }
}

fn said_twice(name: &HeaderName) -> Problem {
    Problem::forbidden(format!("the request has more than one {name}"))
}

/// Whether a `Host` is a name of ours: the address that the request came to, `localhost` for one of this machine, or a name
/// that the server was given. Names that others can point here are not.
fn is_ours(hosts: &[String], connection: Connection, host: &str) -> bool {
    let Some((name, port)) = name_and_port(host) else { return false };
    if hosts.iter().any(|ours| host == ours || name == ours) {
        return true;
    }
    let local = connection.local.ip().to_canonical();
    let address: Option<IpAddr> = match name.strip_prefix('[').and_then(|name| name.strip_suffix(']')) {
        Some(bracketed) => bracketed.parse().ok().map(IpAddr::V6),
        None => name.parse().ok().map(IpAddr::V4),
    };
    let is_name = match address {
        Some(address) => address.to_canonical() == local,
        None => name == "localhost" && local.is_loopback(),
    };
    let usual = if connection.tls { 443 } else { 80 };
    is_name && port.unwrap_or(usual) == connection.local.port()
}

/// Splits a `Host` (RFC 9110, 7.2) into its name and its port: a plain name, or an address in brackets, then a colon and digits.
/// Everything else is refused.
fn name_and_port(host: &str) -> Option<(&str, Option<u16>)> {
    let end = match host.strip_prefix('[') {
        Some(rest) => rest.find(']')? + 2,
        None => host.find(':').unwrap_or(host.len()),
    };
    let (name, rest) = host.split_at_checked(end)?;
    let inner = name.strip_prefix('[').and_then(|name| name.strip_suffix(']'));
    let is_plain = match inner {
        Some(address) => address.bytes().all(|byte| byte.is_ascii_hexdigit() || matches!(byte, b':' | b'.')),
        None => name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_')),
    };
    if name.is_empty() || !is_plain {
        return None;
    }
    match rest.strip_prefix(':') {
        None => rest.is_empty().then_some((name, None)),
        // `parse` alone would take a plus sign.
        Some(port) if port.bytes().all(|byte| byte.is_ascii_digit()) => {
            Some((name, Some(port.parse().ok()?)))
        }
        Some(_) => None,
    }
}

/// Where a request comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Whence {
    /// Our own page, or no page at all.
    Ours,
    /// A page that was listed.
    Listed,
    /// A page of which the browser says no more than that it is another.
    Elsewhere,
}

fn is_listed(app: &App, origin: &HeaderValue) -> bool {
    origin.to_str().is_ok_and(|origin| app.settings.allow_origins.iter().any(|listed| listed == origin))
}

fn whence(app: &App, headers: &HeaderMap, ours: &Origin) -> Result<Whence, Problem> {
    if let Some(origin) = only(headers, &header::ORIGIN)? {
        if is_listed(app, origin) {
            return Ok(Whence::Listed);
        }
        if !origin.to_str().is_ok_and(|origin| origin.eq_ignore_ascii_case(&ours.0)) {
            return Err(Problem::forbidden("a page from elsewhere may not use this server")
                .hint("The server would have to be started with that origin allowed."));
        }
    }
    match headers.get("sec-fetch-site").map(HeaderValue::as_bytes) {
        None | Some(b"same-origin" | b"none") => Ok(Whence::Ours),
        Some(_) => Ok(Whence::Elsewhere),
    }
}

fn access(
    app: &App,
    headers: &HeaderMap,
    from: Whence,
    name: &str,
    origin: &Origin,
) -> Result<Access, Problem> {
    let unauthorized = |detail: &str| {
        Problem::new(StatusCode::UNAUTHORIZED, "unauthorized", detail).hint(
            "Open the address that the server printed, or send its token: Authorization: Bearer TOKEN; `alhena serve token` prints it.",
        )
    };
    if let Some(given) = only(headers, &header::AUTHORIZATION)? {
        let token = given.to_str().ok().and_then(|given| {
            let (scheme, token) = given.split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
        });
        return token
            .and_then(|token| app.tokens.access(token))
            .ok_or_else(|| unauthorized("the token is not right"));
    }
    let Some(cookie) = cookie(headers, name) else { return Err(unauthorized("there is no token")) };
    // A browser adds cookies by itself; whoever asks from elsewhere has to know the token.
    if from != Whence::Ours {
        return Err(Problem::forbidden("a page from elsewhere has to send a token of its own"));
    }
    app.tokens
        .access_by_cookie(cookie, &origin.0)
        .ok_or_else(|| unauthorized("the cookie is not right any more"))
}

fn cookie<'h>(headers: &'h HeaderMap, wanted: &str) -> Option<&'h str> {
    let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = cookies.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(name, _)| *name == wanted).map(|(_, value)| value)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn ours(local: &str, tls: bool, hosts: &[&str], host: &str) -> bool {
        let hosts: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
        is_ours(&hosts, Connection { local: local.parse().unwrap(), tls }, host)
    }

    #[test]
    fn only_names_that_nobody_else_can_point_here_are_ours() {
        for host in ["127.0.0.1:7428", "localhost:7428"] {
            assert!(ours("127.0.0.1:7428", false, &[], host), "{host}");
        }
        for host in [
            "127.0.0.1",
            "127.0.0.1:80",
            "localhost",
            "localhost:1",
            "evil.example:7428",
            "127.0.0.2:7428",
            "localhost.evil.example:7428",
            "127.0.0.1.evil.example:7428",
            "",
            ":7428",
            "[::1]:7428",
            "127.0.0.1:7428:7428",
            "127.1:7428",
            "2130706433:7428",
            "localhost:7428 ",
            "localhost:+7428x",
            "localhost:+7428",
            "[[127.0.0.1:7428",
            "[127.0.0.1]:7428",
            "[127.0.0.1:7428",
            "127.0.0.1]:7428",
            "127.0.0.1:7428]",
            "127.0.0.1]",
            "127.0.0.1:",
            "127.0.0.1:72964",
            "127.0.0.1:99999",
            "127.0.0.1.:7428",
            "localhost.:7428",
            "user@127.0.0.1:7428",
            "user:password@localhost:7428",
            "[localhost]:7428",
            "[::1]",
            "[::ffff:127.0.0.1",
            "::ffff:127.0.0.1:7428",
        ] {
            assert!(!ours("127.0.0.1:7428", false, &[], host), "{host}");
        }
        assert!(ours("[::1]:7428", false, &[], "[::1]:7428"));
        for host in ["::1:7428", "[::1]7428", "[[::1]]:7428", "[::1]]:7428", "[::1]:7428]", "[::1%25lo]:7428"]
        {
            assert!(!ours("[::1]:7428", false, &[], host), "{host}");
        }
        assert!(ours("192.168.1.5:443", true, &[], "192.168.1.5"));
        assert!(!ours("192.168.1.5:443", true, &[], "localhost"));
        assert!(ours("10.0.0.1:7428", false, &["box.lan"], "box.lan:7428"));
        assert!(ours("10.0.0.1:7428", false, &["box.lan"], "box.lan"));
        for host in [
            "notbox.lan:7428",
            "box.lan:",
            "box.lan:+80",
            "box.lan:80:80",
            "box.lan.",
            "user@box.lan",
            "[box.lan]",
        ] {
            assert!(!ours("10.0.0.1:7428", false, &["box.lan"], host), "{host}");
        }
    }

    #[test]
    fn the_cookie_is_found_among_others() {
        let headers =
            |text: &'static str| HeaderMap::from_iter([(header::COOKIE, HeaderValue::from_static(text))]);
        assert_eq!(cookie(&headers("a=b; alhena_80=x; c=d"), "alhena_80"), Some("x"));
        assert_eq!(cookie(&headers("xalhena_80=x; alhena_8000=z"), "alhena_80"), None);
    }
}
