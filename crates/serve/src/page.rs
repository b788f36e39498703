//! The page: files that are part of the program, and the first click.

use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use sha2::{Digest, Sha256};

use crate::extract::typed;
use crate::gate::{Connection, Origin, cookie_name};
use crate::problem::Problem;
use crate::state::Shared;
use crate::token::hex;

const FILES: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/page.rs"));
const INDEX: &str = "index.html";

/// The document that describes the API.
pub const OPENAPI: &str = include_str!("../openapi.json");

/// `/`: the page. With the token in the address a browser gets its cookie, and an address without.
pub async fn index(
    State(app): State<Shared>,
    Extension(connection): Extension<Connection>,
    Extension(Origin(origin)): Extension<Origin>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let given = uri
        .query()
        .into_iter()
        .flat_map(|query| query.split('&'))
        .find_map(|pair| pair.strip_prefix("token="));
    let Some(token) = given else { return file(INDEX, &headers) };
    let Some(value) = app.tokens.cookie(token, &origin) else {
        return Err(Problem::new(
            StatusCode::UNAUTHORIZED,
            "unauthorized",
            "the token in the address is not right",
        )
        .hint("Use the address that the server printed; `alhena serve token` prints the token."));
    };
    let secure = if connection.tls { "; Secure" } else { "" };
    let cookie = format!("{}={value}; Path=/; HttpOnly; SameSite=Strict{secure}", cookie_name(connection));
    let cookie = HeaderValue::from_str(&cookie).map_err(Problem::broken)?;
    let there = (header::LOCATION, HeaderValue::from_static("/"));
    Ok((StatusCode::SEE_OTHER, [there, (header::SET_COOKIE, cookie)]).into_response())
}

/// `/page/...`: what the page is made of.
pub async fn part(uri: Uri, headers: HeaderMap) -> Result<Response, Problem> {
    file(uri.path().strip_prefix("/page/").unwrap_or_default(), &headers)
}

/// `/openapi.json`.
pub async fn openapi() -> Response {
    typed(StatusCode::OK, "application/json", OPENAPI)
}

fn file(name: &str, headers: &HeaderMap) -> Result<Response, Problem> {
    let Some((_, bytes)) = FILES.iter().find(|(file, _)| *file == name) else {
        return Err(Problem::not_found(format!("there is no file {name:?}")));
    };
    // Another program has other files: a browser asks each time, and gets what it has not.
    let tag = format!("\"{}\"", hex(Sha256::digest(bytes).get(..8).unwrap_or_default()));
    let tag = HeaderValue::from_str(&tag).map_err(Problem::broken)?;
    let mut response = match headers.get(header::IF_NONE_MATCH) == Some(&tag) {
        true => StatusCode::NOT_MODIFIED.into_response(),
        false => typed(StatusCode::OK, kind(name), *bytes),
    };
    response.headers_mut().insert(header::ETAG, tag);
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    Ok(response)
}

fn kind(name: &str) -> &'static str {
    match name.rsplit_once('.').map(|(_, ending)| ending) {
        Some("html") => "text/html; charset=utf-8",
        Some("js" | "mjs") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        Some("ico") => "image/x-icon",
        Some("json" | "webmanifest") => "application/json",
        Some("woff2") => "font/woff2",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_small() {
        let size: usize = FILES.iter().map(|(_, bytes)| bytes.len()).sum();
        assert!((50_000..200_000).contains(&size), "{size} bytes");
    }
}
