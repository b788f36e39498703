//! The keys and tokens that a request carries.

use alhena_sys::http::Request;

use crate::request::decode;

/// Parameters of a query that are keys.
const PARAMETERS: [&str; 4] = ["key", "api_key", "apikey", "access_token"];
const HEADERS: [&str; 4] = ["x-goog-api-key", "x-api-key", "authorization", "proxy-authorization"];

pub(super) fn of(request: &Request) -> Vec<String> {
    let headers = request.headers.iter().filter(|(name, _)| HEADERS.contains(&name.as_str()));
    // What is before the blank says which kind of a key it is.
    let headers = headers.filter_map(|(_, value)| value.split_whitespace().next_back()).map(str::to_owned);
    let query = request.target.split_once('?').map_or("", |(_, query)| query);
    let query = query.split('&').filter_map(parameter).flat_map(|key| [key.to_owned(), decode(key)]);
    let mut keys: Vec<String> = headers.chain(query).filter(|key| !key.is_empty()).collect();
    keys.sort_unstable_by_key(|key| std::cmp::Reverse(key.len()));
    keys.dedup();
    keys
}

/// A target without the keys in its query, not even that there was one.
pub(super) fn without(target: &str) -> String {
    let Some((path, query)) = target.split_once('?') else { return target.to_owned() };
    let rest: Vec<&str> = query.split('&').filter(|pair| parameter(pair).is_none()).collect();
    if rest.is_empty() { path.to_owned() } else { format!("{path}?{}", rest.join("&")) }
}

/// The key of a pair, if it is one.
fn parameter(pair: &str) -> Option<&str> {
    let (name, value) = pair.split_once('=')?;
    PARAMETERS.iter().any(|known| known.eq_ignore_ascii_case(name)).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keys_of_a_request_are_found_wherever_they_stand() {
        let request = |target: &str, name: &str, value: &str| Request {
            method: "POST".to_owned(),
            target: target.to_owned(),
            headers: vec![(name.to_owned(), value.to_owned())],
            body: Vec::new(),
            keep_alive: true,
            version: 1,
        };
        let key = "AIza-0123456789abcdef";
        assert_eq!(of(&request("/m", "x-goog-api-key", key)), [key]);
        assert_eq!(of(&request("/m", "authorization", &format!("Bearer {key}"))), [key]);
        assert_eq!(of(&request(&format!("/m?alt=sse&key={key}"), "a", "b")), [key]);
        assert_eq!(of(&request("/m?API_KEY=a%2Fb%zz", "a", "b")), ["a%2Fb%zz", "a/b%zz"]);
        assert_eq!(of(&request("/m?alt=sse", "accept", key)), [""; 0]);
        assert_eq!(without(&format!("/m?key={key}&alt=sse")), "/m?alt=sse");
        assert_eq!(without(&format!("/m?key={key}")), "/m");
    }
}
