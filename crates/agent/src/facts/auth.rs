//! How Gemini CLI would sign in, and whether it would get as far as the first call.
//!
//! 0.61.0: the selected method in the settings wins, then the environment in a fixed order. `GOOGLE_GEMINI_BASE_URL` comes
//! before `GEMINI_API_KEY` there and selects `gateway`, a method that the check which follows does not know: "Invalid auth
//! method selected.", exit 41.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::Value;

use super::dotenv::Rules;
use super::trust::{TrustState, trust};
use super::{Layers, SettingsError};
use crate::env::{self, Environment};

/// A way to sign in, by the CLI's own names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum AuthMethod {
    /// A personal Google account, by a login that was made before.
    OauthPersonal,
    /// An API key.
    GeminiApiKey,
    /// Vertex AI.
    VertexAi,
    /// The machine's own Google account.
    ComputeDefaultCredentials,
    /// Another server that speaks the Gemini API.
    Gateway,
    /// A name that is none of these.
    #[serde(untagged)]
    Other(String),
}

impl AuthMethod {
    fn named(name: &str) -> Self {
        match name {
            "oauth-personal" => Self::OauthPersonal,
            "gemini-api-key" => Self::GeminiApiKey,
            "vertex-ai" => Self::VertexAi,
            "compute-default-credentials" => Self::ComputeDefaultCredentials,
            "gateway" => Self::Gateway,
            other => Self::Other(other.to_owned()),
        }
    }

    /// The method that the environment selects, and the variable that does it.
    fn from_env(env: &Environment) -> Option<(Self, &'static str)> {
        let chosen = |set: bool, method: Self, name: &'static str| set.then_some((method, name));
        let switch = |name| env.is_true(name);
        chosen(switch(env::GOOGLE_GENAI_USE_GCA), Self::OauthPersonal, env::GOOGLE_GENAI_USE_GCA)
            .or_else(|| {
                chosen(switch(env::GOOGLE_GENAI_USE_VERTEXAI), Self::VertexAi, env::GOOGLE_GENAI_USE_VERTEXAI)
            })
            .or_else(|| {
                let set = env.filled(env::GOOGLE_GEMINI_BASE_URL).is_some();
                chosen(set, Self::Gateway, env::GOOGLE_GEMINI_BASE_URL)
            })
            .or_else(|| {
                let set = env.filled(env::GEMINI_API_KEY).is_some();
                chosen(set, Self::GeminiApiKey, env::GEMINI_API_KEY)
            })
            .or_else(|| {
                let names = [env::CLOUD_SHELL, env::GEMINI_CLI_USE_COMPUTE_ADC];
                let name = names.into_iter().find(|name| switch(name))?;
                Some((Self::ComputeDefaultCredentials, name))
            })
    }
}

impl fmt::Display for AuthMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OauthPersonal => "oauth-personal",
            Self::GeminiApiKey => "gemini-api-key",
            Self::VertexAi => "vertex-ai",
            Self::ComputeDefaultCredentials => "compute-default-credentials",
            Self::Gateway => "gateway",
            Self::Other(name) => name,
        })
    }
}

/// What selected a method.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Chosen {
    /// `security.auth.selectedType` in the settings.
    Settings,
    /// A variable, in the environment or in the `.env` file.
    Variable(&'static str),
}

/// Why the CLI would refuse before any call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Refusal {
    /// Nothing selects a method.
    NoMethod,
    /// An address for the API selects `gateway`, which headless runs refuse.
    Gateway,
    /// The selected name is no method.
    UnknownMethod,
    /// The method needs `GEMINI_API_KEY`.
    KeyMissing,
    /// Vertex AI needs a project and a location, or a key.
    VertexIncomplete,
    /// A personal account is selected and no login is stored.
    LoginMissing,
    /// The settings enforce another method.
    Enforced {
        /// The one they enforce.
        method: String,
    },
    /// The settings cannot be read.
    Settings {
        /// What is wrong with them.
        problem: String,
    },
}

impl Refusal {
    /// What to do about it.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            Self::NoMethod => "Set GEMINI_API_KEY, or run Gemini CLI once and sign in.".to_owned(),
            Self::Gateway => {
                "Select a method in ~/.gemini/settings.json: {\"security\": {\"auth\": {\"selectedType\": \
                \"gemini-api-key\"}}}. GOOGLE_GEMINI_BASE_URL still applies then."
                    .to_owned()
            }
            Self::UnknownMethod => "Run Gemini CLI once and choose a method with /auth.".to_owned(),
            Self::KeyMissing => "Set GEMINI_API_KEY.".to_owned(),
            Self::VertexIncomplete => {
                "Set GOOGLE_CLOUD_PROJECT and GOOGLE_CLOUD_LOCATION, or GOOGLE_API_KEY.".to_owned()
            }
            Self::LoginMissing => "Run Gemini CLI once and sign in.".to_owned(),
            Self::Enforced { method } => {
                format!("Sign in with the method that the settings enforce: {method}.")
            }
            Self::Settings { .. } => "Correct the settings file.".to_owned(),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoMethod => f.write_str("no sign-in is configured"),
            Self::Gateway => {
                f.write_str("GOOGLE_GEMINI_BASE_URL without a selected method is refused by headless runs")
            }
            Self::UnknownMethod => f.write_str("the selected sign-in method does not exist"),
            Self::KeyMissing => f.write_str("an API key is selected and none is set"),
            Self::VertexIncomplete => {
                f.write_str("Vertex AI is selected and its project, location or key is missing")
            }
            Self::LoginMissing => f.write_str("a Google account is selected and nobody has signed in"),
            Self::Enforced { method } => write!(f, "the settings enforce another sign-in method: {method}"),
            Self::Settings { problem } => f.write_str(problem),
        }
    }
}

/// How the CLI would sign in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AuthState {
    /// The method, if one is selected.
    pub method: Option<AuthMethod>,
    /// What selected it.
    pub chosen: Option<Chosen>,
    /// Why the CLI would refuse; none means that it would go on to a call, whose outcome nobody knows.
    pub refusal: Option<Refusal>,
    /// What is needed may be in the system's keychain, which nobody looks into: a refusal is not certain, then there is
    /// none.
    pub perhaps_in_keychain: bool,
    /// The `.env` file that was taken into account.
    pub env_file: Option<PathBuf>,
}

/// How the CLI with this home (the directory that has `.gemini`) and environment would sign in for a run in `dir`.
#[must_use]
pub fn authentication(home: &Path, dir: &Path, env: &Environment) -> AuthState {
    judge(home, dir, env).unwrap_or_else(|error| {
        let refusal = Some(Refusal::Settings { problem: error.to_string() });
        AuthState { method: None, chosen: None, refusal, perhaps_in_keychain: false, env_file: None }
    })
}

fn judge(home: &Path, dir: &Path, env: &Environment) -> Result<AuthState, SettingsError> {
    let trusted = matches!(trust(home, dir, env), TrustState::Trusted(_));
    let mut layers = Layers::read(home, env)?;
    layers.add_workspace(home, dir, trusted)?;
    let excluded = layers.get("/advanced/excludedEnvVars").and_then(Value::as_array);
    let excluded =
        excluded.into_iter().flatten().filter_map(|name| Some(name.as_str()?.to_owned())).collect();
    let ignore_local = layers.get("/advanced/ignoreLocalEnv") == Some(&Value::Bool(true));
    let (env, env_file) = Rules { home, dir, trusted, ignore_local, excluded }.apply(env);

    let (method, chosen) = match layers.text("/security/auth/selectedType") {
        Some(name) => (Some(AuthMethod::named(name)), Some(Chosen::Settings)),
        None => AuthMethod::from_env(&env).map(|(method, name)| (method, Chosen::Variable(name))).unzip(),
    };
    let external = layers.get("/security/auth/useExternal") == Some(&Value::Bool(true));
    let enforced = layers.text("/security/auth/enforcedType");
    let (refusal, perhaps_in_keychain) = match (&method, enforced) {
        (Some(method), Some(enforced)) if method.to_string() != enforced => {
            (Some(Refusal::Enforced { method: enforced.to_owned() }), false)
        }
        (None, Some(enforced)) => (Some(Refusal::Enforced { method: enforced.to_owned() }), false),
        (None, None) => (Some(Refusal::NoMethod), false),
        (Some(_), _) if external => (None, false),
        (Some(method), _) => check(method, chosen.as_ref(), home, &env),
    };
    Ok(AuthState { method, chosen, refusal, perhaps_in_keychain, env_file })
}

fn check(
    method: &AuthMethod,
    chosen: Option<&Chosen>,
    home: &Path,
    env: &Environment,
) -> (Option<Refusal>, bool) {
    let has = |name| env.filled(name).is_some();
    let stored = |file: &str| home.join(".gemini").join(file).exists();
    match method {
        AuthMethod::GeminiApiKey if has(env::GEMINI_API_KEY) => (None, false),
        // The interactive CLI can store a key in the keychain, or in this file where there is none.
        AuthMethod::GeminiApiKey if stored("gemini-credentials.json") => (None, true),
        AuthMethod::GeminiApiKey => (Some(Refusal::KeyMissing), false),
        AuthMethod::VertexAi => {
            let project = has(env::GOOGLE_CLOUD_PROJECT) && has(env::GOOGLE_CLOUD_LOCATION);
            ((!project && !has(env::GOOGLE_API_KEY)).then_some(Refusal::VertexIncomplete), false)
        }
        AuthMethod::OauthPersonal if stored("oauth_creds.json") => (None, false),
        AuthMethod::OauthPersonal if env.is_true(env::GEMINI_FORCE_ENCRYPTED_FILE_STORAGE) => (None, true),
        AuthMethod::OauthPersonal
            if env.is_true(env::GOOGLE_GENAI_USE_GCA) && has(env::GOOGLE_CLOUD_ACCESS_TOKEN) =>
        {
            (None, false)
        }
        AuthMethod::OauthPersonal => (Some(Refusal::LoginMissing), false),
        AuthMethod::ComputeDefaultCredentials => (None, false),
        AuthMethod::Gateway if matches!(chosen, Some(Chosen::Variable(_))) => (Some(Refusal::Gateway), false),
        AuthMethod::Gateway | AuthMethod::Other(_) => (Some(Refusal::UnknownMethod), false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Home(tempfile::TempDir);

    impl Home {
        fn with(settings: &str) -> Self {
            let root = tempfile::tempdir().unwrap();
            std::fs::create_dir_all(root.path().join(".gemini")).unwrap();
            std::fs::create_dir_all(root.path().join("work/.gemini")).unwrap();
            std::fs::write(root.path().join(".gemini/settings.json"), settings).unwrap();
            Self(root)
        }

        fn ask(&self, env: &[(&str, &str)]) -> AuthState {
            authentication(self.0.path(), &self.0.path().join("work"), &env.iter().copied().collect())
        }

        fn verdict(&self, env: &[(&str, &str)]) -> (Option<String>, Option<Refusal>) {
            let state = self.ask(env);
            (state.method.map(|method| method.to_string()), state.refusal)
        }
    }

    fn selected(method: &str) -> Home {
        Home::with(&format!(r#"{{"security": {{"auth": {{"selectedType": "{method}"}}}}}}"#))
    }

    fn refused(method: &str, refusal: Refusal) -> (Option<String>, Option<Refusal>) {
        (Some(method.to_owned()), Some(refusal))
    }

    fn accepted(method: &str) -> (Option<String>, Option<Refusal>) {
        (Some(method.to_owned()), None)
    }

    #[test]
    fn environment_selects_in_the_order_of_the_cli() {
        let home = Home::with("{}");
        let mut env: Vec<(&str, &str)> = Vec::new();
        assert_eq!(home.verdict(&env), (None, Some(Refusal::NoMethod)));
        env.push((env::CLOUD_SHELL, "true"));
        assert_eq!(home.verdict(&env), accepted("compute-default-credentials"));
        env.push((env::GEMINI_API_KEY, "key"));
        assert_eq!(home.verdict(&env), accepted("gemini-api-key"));
        env.push((env::GOOGLE_GEMINI_BASE_URL, "http://127.0.0.1:1"));
        assert_eq!(home.verdict(&env), refused("gateway", Refusal::Gateway));
        env.push((env::GOOGLE_GENAI_USE_VERTEXAI, "true"));
        assert_eq!(home.verdict(&env), refused("vertex-ai", Refusal::VertexIncomplete));
        env.push((env::GOOGLE_GENAI_USE_GCA, "true"));
        assert_eq!(home.verdict(&env), refused("oauth-personal", Refusal::LoginMissing));
        assert_eq!(home.ask(&env).chosen, Some(Chosen::Variable(env::GOOGLE_GENAI_USE_GCA)));
    }

    #[test]
    fn selected_method_wins_over_the_environment_and_springs_the_gateway_trap() {
        let home = selected("gemini-api-key");
        let url = (env::GOOGLE_GEMINI_BASE_URL, "http://127.0.0.1:1");
        assert_eq!(home.verdict(&[url, (env::GEMINI_API_KEY, "key")]), accepted("gemini-api-key"));
        assert_eq!(home.ask(&[url]).chosen, Some(Chosen::Settings));
        assert_eq!(home.verdict(&[url]), refused("gemini-api-key", Refusal::KeyMissing));
        assert_eq!(
            home.verdict(&[(env::GEMINI_API_KEY, "")]),
            refused("gemini-api-key", Refusal::KeyMissing)
        );
        assert_eq!(selected("gateway").verdict(&[url]), refused("gateway", Refusal::UnknownMethod));
        assert_eq!(selected("magic").verdict(&[]), refused("magic", Refusal::UnknownMethod));
    }

    #[test]
    fn vertex_needs_project_and_location_or_a_key() {
        let home = selected("vertex-ai");
        let project = (env::GOOGLE_CLOUD_PROJECT, "p");
        assert_eq!(home.verdict(&[project]), refused("vertex-ai", Refusal::VertexIncomplete));
        assert_eq!(home.verdict(&[project, (env::GOOGLE_CLOUD_LOCATION, "l")]), accepted("vertex-ai"));
        assert_eq!(home.verdict(&[(env::GOOGLE_API_KEY, "k")]), accepted("vertex-ai"));
    }

    #[test]
    fn stored_logins_count_and_hidden_ones_are_not_denied() {
        let home = selected("oauth-personal");
        assert_eq!(home.verdict(&[]), refused("oauth-personal", Refusal::LoginMissing));
        let hidden = home.ask(&[(env::GEMINI_FORCE_ENCRYPTED_FILE_STORAGE, "true")]);
        assert_eq!((hidden.refusal, hidden.perhaps_in_keychain), (None, true));
        std::fs::write(home.0.path().join(".gemini/oauth_creds.json"), "{}").unwrap();
        assert_eq!(home.verdict(&[]), accepted("oauth-personal"));
        let home = selected("gemini-api-key");
        std::fs::write(home.0.path().join(".gemini/gemini-credentials.json"), "{}").unwrap();
        let hidden = home.ask(&[]);
        assert_eq!((hidden.refusal, hidden.perhaps_in_keychain), (None, true));
    }

    #[test]
    fn key_in_the_env_file_of_a_trusted_folder_counts() {
        let home = Home::with("{}");
        let file = home.0.path().join(".gemini/.env");
        std::fs::write(&file, "GEMINI_API_KEY=key\n").unwrap();
        assert_eq!(home.verdict(&[]), (None, Some(Refusal::NoMethod)));
        let expected = AuthState {
            method: Some(AuthMethod::GeminiApiKey),
            chosen: Some(Chosen::Variable(env::GEMINI_API_KEY)),
            refusal: None,
            perhaps_in_keychain: false,
            env_file: Some(file),
        };
        assert_eq!(home.ask(&[(env::GEMINI_CLI_TRUST_WORKSPACE, "true")]), expected);
    }

    #[test]
    fn settings_of_a_trusted_workspace_win_over_the_users() {
        let home = selected("gemini-api-key");
        let workspace = r#"{"security": {"auth": {"selectedType": "vertex-ai"}}}"#;
        std::fs::write(home.0.path().join("work/.gemini/settings.json"), workspace).unwrap();
        let key = (env::GEMINI_API_KEY, "key");
        assert_eq!(home.verdict(&[key]), accepted("gemini-api-key"));
        let trusted = (env::GEMINI_CLI_TRUST_WORKSPACE, "true");
        assert_eq!(home.verdict(&[key, trusted]), refused("vertex-ai", Refusal::VertexIncomplete));
    }

    #[test]
    fn enforced_and_external_methods_are_respected() {
        let home = Home::with(r#"{"security": {"auth": {"enforcedType": "vertex-ai"}}}"#);
        let enforced = Refusal::Enforced { method: "vertex-ai".to_owned() };
        assert_eq!(home.verdict(&[]), (None, Some(enforced.clone())));
        assert_eq!(home.verdict(&[(env::GEMINI_API_KEY, "k")]), refused("gemini-api-key", enforced));
        let home = Home::with(r#"{"security": {"auth": {"useExternal": true}}}"#);
        assert_eq!(home.verdict(&[(env::GOOGLE_GEMINI_BASE_URL, "http://x")]), accepted("gateway"));
    }

    #[test]
    fn broken_settings_are_the_reason_given() {
        let home = Home::with("{,}");
        let Some(Refusal::Settings { problem }) = home.ask(&[]).refusal else { panic!("no refusal") };
        assert!(problem.ends_with("settings.json:1:2 is not JSON: key must be a string"), "{problem}");
    }
}
