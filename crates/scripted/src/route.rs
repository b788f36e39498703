//! Where a request goes: `[/s/<scenario>[/<run>]]/v1beta/models/<model>:<action>`.
//!
//! Gemini CLI (0.61.0) keeps a path prefix of `GOOGLE_GEMINI_BASE_URL`, so one server can play many scenarios.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

#[derive(Debug, PartialEq)]
pub(crate) struct Route {
    /// None at the root of the server.
    pub(crate) scenario: Option<String>,
    pub(crate) run: String,
    pub(crate) model: String,
    pub(crate) action: String,
    /// The target without a key.
    pub(crate) path: String,
}

const ACTIONS: [&str; 3] = ["streamGenerateContent", "generateContent", "countTokens"];

impl Route {
    /// Takes a target apart; none when it is not one of the API's.
    pub(crate) fn of(target: &str) -> Option<Route> {
        let path = target.split_once('?').map_or(target, |(path, _)| path);
        let (prefix, last) = path.rsplit_once("/models/")?;
        let (prefix, version) = prefix.rsplit_once('/')?;
        if !version.starts_with("v1") {
            return None;
        }
        let (scenario, run) = match prefix {
            "" => (None, ""),
            _ => {
                let rest = prefix.strip_prefix("/s/")?;
                let (scenario, run) = rest.split_once('/').unwrap_or((rest, ""));
                (Some(decode(scenario)), run)
            }
        };
        let (model, action) = last.rsplit_once(':')?;
        if !ACTIONS.contains(&action) {
            return None;
        }
        Some(Route {
            scenario,
            run: decode(run),
            model: decode(model),
            action: action.to_owned(),
            path: without_keys(target),
        })
    }
}

/// A target without the keys in its query.
pub(crate) fn without_keys(target: &str) -> String {
    let Some((path, query)) = target.split_once('?') else { return target.to_owned() };
    let pairs = query.split('&').map(|pair| if pair.starts_with("key=") { "key=[secret]" } else { pair });
    format!("{path}?{}", pairs.collect::<Vec<_>>().join("&"))
}

const OF_A_NAME: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// Makes a name fit for one segment of a path.
pub(crate) fn encode(name: &str) -> String {
    utf8_percent_encode(name, OF_A_NAME).to_string()
}

/// Without the escapes of a URL.
pub(crate) fn decode(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::{Route, decode, encode};

    proptest::proptest! {
        #[test]
        fn any_name_survives_its_way_through_a_path(name in ".*", run in "[^/?]{0,9}") {
            proptest::prop_assert_eq!(decode(&encode(&name)), name.clone());
            let target = format!("/s/{}/{}/v1beta/models/m:countTokens", encode(&name), encode(&run));
            let route = Route::of(&target).map(|route| (route.scenario, route.run));
            proptest::prop_assert_eq!(route, Some((Some(name), run)));
        }

        #[test]
        fn any_target_is_taken(target in r"(/|s|%|\?|:|v1|models|\PC){0,30}") {
            let _ = (Route::of(&target), decode(&target));
        }
    }
}
