//! Secrets as people have them in their environment, and the search for them in what a run left.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use alhena_testbed::forms;
use alhena_testbed::tools::files_under;
use memchr::memmem;

use super::place::BALLAST;

/// A secret, where it comes from, and what must be found nowhere: for a URL only the password in it.
struct Secret {
    name: &'static str,
    value: &'static str,
    hidden: &'static str,
    in_dotenv: bool,
}

const fn plain(name: &'static str, value: &'static str) -> Secret {
    Secret { name, value, hidden: value, in_dotenv: false }
}

const SECRETS: &[Secret] = &[
    plain("DEPLOY_TOKEN", "tok-8Zr4Qm1LxW0c-plain"),
    plain("SIGNING_KEY", "-----BEGIN KEY-----\nMIIEvQ7x/Zp+Kq\nu9Lr==Wb\n-----END KEY-----"),
    plain("DB_PASSWORD", "pa\"ss\\wo'rd{7} ü"),
    plain("PIN_SECRET", "q7Xz#"),
    Secret { hidden: "uRlpAss99w", ..plain("DATABASE_URL", "postgres://app:uRlpAss99w@db.example:5432/app") },
    Secret { in_dotenv: true, ..plain("STRIPE_API_KEY", "sk_live_d0tEnv55Value") },
];

pub fn names() -> impl Iterator<Item = &'static str> {
    SECRETS.iter().map(|secret| secret.name)
}

pub fn variables() -> impl Iterator<Item = (&'static str, &'static str)> {
    SECRETS.iter().filter(|secret| !secret.in_dotenv).map(|secret| (secret.name, secret.value))
}

pub fn dotenv() -> String {
    let lines = SECRETS.iter().filter(|secret| secret.in_dotenv);
    lines.map(|secret| format!("{}={}\n", secret.name, secret.value)).collect()
}

/// Which secrets stand in files below these directories, each with its form and the first file.
pub fn found_in(directories: &[PathBuf], is_users: impl Fn(&Path) -> bool) -> Vec<String> {
    let mut found = BTreeMap::<&str, (String, u64)>::new();
    for file in directories.iter().flat_map(|directory| files_under(directory)) {
        let is_plain = std::fs::symlink_metadata(&file).is_ok_and(|data| data.is_file());
        if !is_plain || is_users(&file) || file.ends_with(BALLAST) {
            continue;
        }
        let Ok(bytes) = std::fs::read(&file) else { continue };
        for secret in SECRETS {
            let all = [
                ("plain", secret.hidden.to_owned()),
                ("JSON", forms::json(secret.hidden)),
                ("JSON in JSON", forms::json(&forms::json(secret.hidden))),
                ("URL", forms::percent(secret.hidden)),
                ("base64", forms::base64(secret.value.as_bytes())),
            ];
            // Short values are not looked for in base64: a few letters are in every text.
            let mut all = all.iter().filter(|(form, _)| secret.value.len() >= 8 || *form != "base64");
            if let Some((form, _)) = all.find(|(_, text)| memmem::find(&bytes, text.as_bytes()).is_some()) {
                let first = || (format!("({form}) is in {}", file.display()), 0);
                found.entry(secret.name).or_insert_with(first).1 += 1;
            }
        }
    }
    let told = found.into_iter();
    told.map(|(name, (first, files))| format!("{name} {first} ({files} files in all)")).collect()
}
