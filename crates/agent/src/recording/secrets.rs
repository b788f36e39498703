//! What must not be written down: the secrets that a run can know.
//!
//! They come from the environment, from the `.env` files and settings that the CLI may read, from its logins, and from the
//! MCP servers of the run. What a name says decides: `GITHUB_TOKEN` is a secret, `EDITOR` is none. A password inside a URL is
//! one whatever the name is.

use std::path::Path;

use serde_json::Value;

use super::mask::Mask;
use crate::env::{self, Environment};
use crate::facts::env_files;
use crate::request::ResolvedRequest;
use crate::settings;

/// A name with one of these in it is the name of a secret.
const SIGNS: &[&str] = &["KEY", "TOKEN", "SECRET", "PASSW", "PASSPHRASE", "CREDENTIAL", "AUTH", "COOKIE"];
/// A name with one of these as a word of it too.
const WORDS: &[&str] = &["PASS", "PWD", "PAT", "PIN", "DSN"];
/// A name with one of these as a word of it only looks like one.
const NO_SIGNS: &[&str] = &["AUTHOR", "AUTHTYPE", "ENFORCEDAUTHTYPE", "KEYBOARD", "KEYMAP", "TOKENIZER"];
/// Values that are no secret whatever the name is.
const NO_SECRETS: &[&str] =
    &["true", "false", "none", "null", "auto", "default", "enabled", "disabled", "offline"];
/// Shorter values are everywhere.
const SHORTEST: usize = 4;
/// A key of the API is longer, or has a figure in it.
const SHORTEST_KEY: usize = 16;
/// A name alone in front of a host is a token from here on.
const TOKEN: usize = 16;

/// The keys of the API, in whose place a gateway takes any word.
const API_KEYS: &[&str] = &[env::GEMINI_API_KEY, env::GOOGLE_API_KEY];

/// Whether something stands for a key and is none: `test`, `not-needed`. Taken out of a text it would take words along.
pub(super) fn is_placeholder(key: &str) -> bool {
    key.len() < SHORTEST || key.len() < SHORTEST_KEY && !key.bytes().any(|byte| byte.is_ascii_digit())
}

/// Everything that is secret in a run.
pub(crate) fn secrets(request: &ResolvedRequest, environment: &Environment, dir: &Path) -> Mask {
    let mut found = Secrets::default();
    for (name, value) in environment.iter() {
        found.variable(&name.to_string_lossy(), &value.to_string_lossy());
    }
    let home = environment.gemini_home();
    for (name, value) in env_files(dir, home.as_deref()) {
        found.variable(&name, &value);
    }
    let of_home = |name: &str| home.as_ref().map(|home| home.join(".gemini").join(name));
    let logins = environment.filled("GOOGLE_APPLICATION_CREDENTIALS").map(Into::into);
    let files = [
        of_home("settings.json"),
        of_home("oauth_creds.json"),
        logins,
        Some(dir.join(".gemini/settings.json")),
    ];
    for path in files.into_iter().flatten() {
        if let Ok(value) = settings::read_settings(&path) {
            found.json("", &value);
        }
    }
    request.mcp_servers.iter().for_each(|server| found.json("", &server.entry()));
    Mask::new(found.0)
}

#[derive(Default)]
struct Secrets(Vec<(String, String)>);

impl Secrets {
    /// A variable, a header, a setting.
    fn variable(&mut self, name: &str, value: &str) {
        let value = value.trim();
        if is_secret_name(name) && !is_count(name, value) {
            self.add(name, value);
            // What a header says before its secret.
            if let Some((_, token)) = value.split_once(' ').filter(|(scheme, _)| scheme.len() < 10) {
                self.add(name, token.trim());
            }
        }
        for secret in passwords(value).chain(settings_in(value)) {
            // In other forms of the text it may stand as it is written here.
            self.add(name, secret);
            self.add(name, &plain(secret));
        }
    }

    fn add(&mut self, name: &str, value: &str) {
        let is_path = value.starts_with('/') && Path::new(value).exists();
        let is_reference = value.starts_with('$') && value.len() < 64;
        let is_word = NO_SECRETS.iter().any(|word| word.eq_ignore_ascii_case(value))
            || API_KEYS.contains(&name) && is_placeholder(value);
        if value.len() >= SHORTEST && !is_path && !is_reference && !is_word {
            self.0.push((name.to_owned(), value.to_owned()));
        }
    }

    fn json(&mut self, name: &str, value: &Value) {
        match value {
            Value::String(text) => self.variable(name, text),
            Value::Object(object) => object.iter().for_each(|(name, value)| self.json(name, value)),
            Value::Array(list) => self.arguments(name, list),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// `--token=x` and `--token x` among the arguments of a server.
    fn arguments(&mut self, name: &str, list: &[Value]) {
        let mut option = name;
        for value in list {
            match value.as_str() {
                Some(text) if text.starts_with('-') => match text.split_once('=') {
                    Some((option, value)) => self.variable(option, value),
                    None => option = text,
                },
                _ => self.json(std::mem::replace(&mut option, name), value),
            }
        }
    }
}

fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    let words = || name.split(|c: char| !c.is_ascii_alphanumeric());
    // The working directory.
    if matches!(name.as_str(), "PWD" | "OLDPWD") || words().any(|word| NO_SIGNS.contains(&word)) {
        return false;
    }
    SIGNS.iter().any(|sign| name.contains(sign)) || words().any(|word| WORDS.contains(&word))
}

/// `MAX_TOKENS=8192`.
fn is_count(name: &str, value: &str) -> bool {
    name.to_ascii_uppercase().ends_with("TOKENS") && value.bytes().all(|byte| byte.is_ascii_digit())
}

/// The passwords in the URLs of a text: `scheme://user:password@host`, and tokens that stand for a user.
fn passwords(text: &str) -> impl Iterator<Item = &str> {
    let rests = text.match_indices("://").filter_map(|(at, sign)| text.get(at + sign.len()..));
    rests.filter_map(|rest| {
        let end = rest.find(|c: char| "/?#\"'<>".contains(c) || c.is_whitespace()).unwrap_or(rest.len());
        let (user, _) = rest.get(..end)?.rsplit_once('@')?;
        match user.split_once(':') {
            Some((_, password)) => Some(password),
            None => (user.len() >= TOKEN).then_some(user),
        }
    })
}

/// The secrets among settings inside a value: `?api_key=x&y=z` of a URL, `Password=x;User=y` of a connection string.
fn settings_in(text: &str) -> impl Iterator<Item = &str> {
    let ends = |c: char| "?&;#,\"'<>".contains(c) || c.is_whitespace();
    text.split(ends).filter_map(|setting| setting.split_once('=')).filter_map(move |(name, value)| {
        let value = value.trim();
        (is_secret_name(name) && !is_count(name, value)).then_some(value)
    })
}

/// Without the escapes of a URL.
fn plain(text: &str) -> String {
    super::mask::without_percent(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(name: &str, value: &str) -> Vec<String> {
        let mut found = Secrets::default();
        found.variable(name, value);
        found.0.into_iter().map(|(_, value)| value).collect()
    }

    #[test]
    fn a_name_says_what_is_secret() {
        for name in
            ["GITHUB_TOKEN", "apiKey", "MYPASSWORD", "DB_PASS", "SENTRY_DSN", "X-Api-Key", "client_secret"]
        {
            assert_eq!(found(name, "hunter22"), ["hunter22"], "{name}");
        }
        for name in ["EDITOR", "GIT_AUTHOR_NAME", "KEYBOARD_LAYOUT", "PWD", "COMPASS"] {
            assert_eq!(found(name, "hunter22"), [""; 0], "{name}");
        }
        assert_eq!(found("MAX_TOKENS", "8192"), [""; 0]);
        assert_eq!(found("GITHUB_TOKEN", "abc"), [""; 0]);
        assert_eq!(found("SSH_AUTH_SOCK", "/"), [""; 0]);
        assert_eq!(found("GITHUB_TOKEN", "$OTHER"), [""; 0]);
        assert_eq!(found("GEMINI_API_KEY", "placeholder"), [""; 0]);
        assert_eq!(found("GEMINI_API_KEY", "sk-1234"), ["sk-1234"]);
        assert_eq!(found("GEMINI_API_KEY", "a-rather-long-word"), ["a-rather-long-word"]);
        assert_eq!(found("Authorization", "Bearer abcdefgh"), ["Bearer abcdefgh", "abcdefgh"]);
    }

    #[test]
    fn a_password_in_a_url_is_one_in_any_variable() {
        assert_eq!(found("DATABASE_URL", "postgres://app:p%40ss/w@rd@db:5432/x"), [""; 0]);
        assert_eq!(
            found("DATABASE_URL", "postgres://app:p%40ssw%2Frd@db:5432/x?y"),
            ["p%40ssw%2Frd", "p@ssw/rd"]
        );
        assert_eq!(
            found("HTTPS_PROXY", "http://u:hunter2@p:80 and ftp://a:other@b"),
            ["hunter2", "hunter2", "other", "other"]
        );
        assert_eq!(found("REPO", "https://ghp_0123456789abcdef@github.com/a/b"), ["ghp_0123456789abcdef"; 2]);
        assert_eq!(found("REPO", "https://github.com/a@b"), [""; 0]);
    }

    #[test]
    fn a_secret_among_the_settings_of_a_value_is_one_in_any_variable() {
        let url = "https://host/path?x=1&api_key=qk_1122&max_tokens=8192#access_token=at%2F33";
        assert_eq!(found("WEBHOOK_URL", url), ["qk_1122", "qk_1122", "at%2F33", "at/33"]);
        let connection = "Server=x;Password=connpw_99;User=sa";
        assert_eq!(found("CONNECTION_STRING", connection), ["connpw_99", "connpw_99"]);
    }

    #[test]
    fn settings_and_the_arguments_of_servers_are_looked_through() {
        let mut all = Secrets::default();
        all.json(
            "",
            &serde_json::json!({
                "headers": { "Authorization": "Bearer one-one-one" },
                "args": ["--api-key", "two-two-two", "--token=three-three", "--verbose", "yes-yes-yes"],
                "env": { "SOME_SECRET": "four-four", "MODE": "production" },
                "url": "https://u:five-five@x",
            }),
        );
        let values: Vec<&str> = all.0.iter().map(|(_, value)| value.as_str()).collect();
        assert_eq!(
            values,
            [
                "Bearer one-one-one",
                "one-one-one",
                "two-two-two",
                "three-three",
                "four-four",
                "five-five",
                "five-five"
            ]
        );
    }
}
