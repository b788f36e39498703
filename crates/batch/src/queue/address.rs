//! Where the server is and who one is there, as the tools of NATS have it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use async_nats::{ConnectOptions, ServerAddr};

use super::{QueueError, Trouble};

/// A server, or several of one cluster, and how to be let in.
///
/// The variables are those of the `nats` command: `NATS_URL`, `NATS_CREDS`, `NATS_NKEY`, `NATS_USER`, `NATS_PASSWORD`,
/// `NATS_TOKEN`, `NATS_CA`, `NATS_CERT`, `NATS_KEY`.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct Address {
    /// Addresses with commas between them.
    pub url: String,
    /// A file with credentials.
    pub credentials: Option<PathBuf>,
    /// A file with the seed of a key.
    pub nkey: Option<PathBuf>,
    /// A user; without a password it is a token.
    pub user: Option<String>,
    /// The password of the user.
    pub password: Option<String>,
    /// A token.
    pub token: Option<String>,
    /// A file with certificates that are trusted beside the system's.
    pub ca: Option<PathBuf>,
    /// The client's own certificate, and its key.
    pub certificate: Option<(PathBuf, PathBuf)>,
}

impl std::fmt::Debug for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Address").field("url", &self.shown()).finish_non_exhaustive()
    }
}

impl Address {
    /// This address, or the environment's where there is none, with what the environment says of credentials.
    pub fn of(url: Option<&str>, variable: impl Fn(&str) -> Option<String>) -> Result<Self, QueueError> {
        let said = |name: &str| variable(name).filter(|value| !value.is_empty());
        let url = url.map(str::to_owned).or_else(|| said("NATS_URL"));
        let url =
            url.ok_or_else(|| QueueError::Address("no address of a NATS server was given".to_owned()))?;
        let file = |name: &str| said(name).map(PathBuf::from);
        let certificate = match (file("NATS_CERT"), file("NATS_KEY")) {
            (Some(certificate), Some(key)) => Some((certificate, key)),
            (None, None) => None,
            _ => return Err(QueueError::Address("NATS_CERT and NATS_KEY go together".to_owned())),
        };
        let address = Self {
            url,
            credentials: file("NATS_CREDS"),
            nkey: file("NATS_NKEY"),
            user: said("NATS_USER"),
            password: said("NATS_PASSWORD"),
            token: said("NATS_TOKEN"),
            ca: file("NATS_CA"),
            certificate,
        };
        address.servers()?;
        Ok(address)
    }

    /// The address without what is secret in it.
    pub fn shown(&self) -> String {
        let hide = |part: &str| match part.split_once("://") {
            Some((scheme, rest)) => match rest.rsplit_once('@') {
                Some((_, host)) => format!("{scheme}://***@{host}"),
                None => part.to_owned(),
            },
            None => part.rsplit_once('@').map_or_else(|| part.to_owned(), |(_, host)| format!("***@{host}")),
        };
        self.url.split(',').map(|part| hide(part.trim())).collect::<Vec<_>>().join(",")
    }

    /// The user that stands in the address, and the password: the client does not look for them there.
    fn in_url(&self) -> Option<(String, Option<String>)> {
        let parts = self.url.split(',').map(|part| part.split_once("://").map_or(part, |(_, rest)| rest));
        let user = parts.filter_map(|part| part.rsplit_once('@').map(|(user, _)| user.trim())).next()?;
        Some(match user.split_once(':') {
            Some((user, password)) => (decoded(user), Some(decoded(password))),
            None => (decoded(user), None),
        })
    }

    pub(crate) fn servers(&self) -> Result<Vec<ServerAddr>, QueueError> {
        let parts = self.url.split(',').map(str::trim).filter(|part| !part.is_empty());
        let servers: Result<Vec<ServerAddr>, _> = parts.map(str::parse).collect();
        match servers {
            Ok(servers) if !servers.is_empty() => Ok(servers),
            Ok(_) => Err(QueueError::Address("the address of the NATS server is empty".to_owned())),
            // The reason may repeat the address with its password.
            Err(_) => Err(QueueError::Address(format!("{:?} is no address of a NATS server", self.shown()))),
        }
    }

    pub(crate) async fn options(&self) -> Result<ConnectOptions, QueueError> {
        let mut options = ConnectOptions::new()
            .name("alhena")
            .connection_timeout(Duration::from_secs(5))
            .request_timeout(Some(Duration::from_secs(10)));
        if let Some(file) = &self.credentials {
            self.readable("credentials", file)?;
            options = options
                .credentials_file(file)
                .await
                .map_err(|error| self.no_good(format!("credentials {}: {error}", file.display())))?;
        }
        if let Some(file) = &self.nkey {
            options = options.nkey(self.seed(file)?);
        }
        let (user, password) = match self.in_url() {
            Some((user, password)) => (Some(user), password),
            None => (self.user.clone(), self.password.clone()),
        };
        if let Some(user) = &user {
            options = match &password {
                Some(password) => options.user_and_password(user.clone(), password.clone()),
                None => options.token(user.clone()),
            };
        }
        if let Some(token) = &self.token {
            options = options.token(token.clone());
        }
        if let Some(file) = &self.ca {
            self.readable("certificates", file)?;
            options = options.add_root_certificates(file.clone());
        }
        if let Some((certificate, key)) = &self.certificate {
            self.readable("certificate", certificate)?;
            self.readable("key", key)?;
            options = options.add_client_certificate(certificate.clone(), key.clone());
        }
        Ok(options)
    }

    /// The seed of a user's key, alone in its file or between the lines that the tools of NATS put around it.
    fn seed(&self, file: &Path) -> Result<String, QueueError> {
        let text = self.readable("key", file)?;
        let is_seed = |line: &&str| {
            line.len() == 58
                && line.starts_with("SU")
                && line.bytes().all(|byte| byte.is_ascii_alphanumeric())
        };
        let seed = text.lines().map(str::trim).find(is_seed).map(str::to_owned);
        // What else is in it is not said: it may be secret.
        let none = || format!("key {}: there is no seed of a user's key in it", file.display());
        seed.ok_or_else(|| self.no_good(none()))
    }

    fn readable(&self, what: &str, file: &Path) -> Result<String, QueueError> {
        let text = std::fs::read_to_string(file);
        text.map_err(|error| self.no_good(format!("{what} {}: {error}", file.display())))
    }

    /// A file that was to let one in does not.
    fn no_good(&self, reason: String) -> QueueError {
        QueueError::Connect { address: self.shown(), reason, trouble: Trouble::Files }
    }
}

/// `%40` is `@`.
fn decoded(text: &str) -> String {
    let mut parts = text.split('%');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        match part.get(..2).and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                bytes.extend_from_slice(part.get(2..).unwrap_or_default().as_bytes());
            }
            None => {
                bytes.push(b'%');
                bytes.extend_from_slice(part.as_bytes());
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_counts_where_nothing_is_given() {
        let variable = |name: &str| match name {
            "NATS_URL" => Some("nats://there:4222".to_owned()),
            "NATS_CREDS" => Some("/c".to_owned()),
            _ => None,
        };
        let address = Address::of(None, variable).unwrap();
        assert_eq!((address.url.as_str(), address.credentials), ("nats://there:4222", Some("/c".into())));
        assert_eq!(Address::of(Some("nats://here"), variable).unwrap().url, "nats://here");
        assert!(Address::of(None, |_| None).is_err());
        assert!(Address::of(Some(" , "), |_| None).is_err());
        let half = |name: &str| (name == "NATS_KEY").then(|| "k".to_owned());
        assert!(Address::of(Some("nats://here"), half).is_err());
    }

    #[test]
    fn a_user_in_the_address_counts_before_that_of_the_environment() {
        let of = |url: &str| Address::of(Some(url), |_| None).unwrap().in_url();
        let both = Some(("me".to_owned(), Some("p@ss:w%rd".to_owned())));
        assert_eq!(of("nats://me:p%40ss:w%rd@a:1,nats://b:2"), both);
        assert_eq!(of("nats://token@a:1"), Some(("token".to_owned(), None)));
        assert_eq!(of("nats://a:1"), None);
    }

    #[test]
    fn a_seed_is_found_alone_and_between_lines() {
        let address = Address::default();
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("key");
        let key = format!("SU{}", "A".repeat(56));
        for text in [
            format!("{key}\n"),
            format!("-----BEGIN USER NKEY SEED-----\n{key}\n------END USER NKEY SEED------\n"),
        ] {
            std::fs::write(&file, text).unwrap();
            assert_eq!(address.seed(&file).unwrap(), key);
        }
        for text in ["", "hunter2", &key.replace("SU", "SA"), &key.replace("SU", "S")] {
            std::fs::write(&file, text).unwrap();
            let said = address.seed(&file).unwrap_err().to_string();
            assert!(said.contains("no seed") && !said.contains("hunter2"), "{said}");
        }
    }

    #[test]
    fn a_password_is_never_shown() {
        let address = Address::of(Some("nats://me:hunter2@a:1,tls://b:2"), |_| None).unwrap();
        assert_eq!(address.shown(), "nats://***@a:1,tls://b:2");
        assert!(!format!("{address:?}").contains("hunter2"));
        let wrong = Address::of(Some("nats://me:hunter2@a:none"), |_| None).unwrap_err().to_string();
        assert!(!wrong.contains("hunter2"), "{wrong}");
    }
}
