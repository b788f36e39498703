//! What a run wrote into its overlay and the user would miss: logins, trusted folders, memories. Nothing else goes back.
//!
//! Gemini CLI 0.61.0 writes its logins in place, so a refreshed one follows the link into the user's home; one that was
//! not there before stays in the overlay. `trustedFolders.json` and `extension_integrity.json` are replaced by rename.

use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

use alhena_session::lockfile::{LockDir, NotLocked};
use serde_json::Value;

use super::plan::{FinishPlan, Finished};
use super::settings::read_object;
use alhena_session::fingerprint::Fingerprint;
use alhena_sys::files::{self, Existing, move_file};

/// Logins, and what belongs to the user's extensions. They are links in the overlay if the user has them.
pub(super) const KEPT: &[&str] = &[
    "oauth_creds.json",
    "google_accounts.json",
    "gemini-credentials.json",
    "mcp-oauth-tokens.json",
    "mcp-oauth-tokens-v2.json",
    "a2a-oauth-tokens.json",
    "extension_integrity.json",
];

/// The decisions about folders.
pub(super) const TRUSTED_FOLDERS: &str = "trustedFolders.json";

/// Takes over what belongs to the user. Nothing here is worth keeping the whole overlay for, so failures are warnings.
pub(super) fn back(plan: &FinishPlan, overlay: &Path, user: &Path, done: &mut Finished) {
    for name in KEPT {
        if let Err(error) = keep_file(plan, name, overlay, user, done) {
            done.warnings.push(format!("{name} of the run was not kept: {error}"));
        }
    }
    if let Err(error) = merge_trust(plan, overlay, user, done) {
        done.warnings.push(format!("A trust decision of the run was not kept: {error}"));
    }
    if let Err(error) = merge_context(plan, overlay, user, done) {
        done.warnings.push(format!("A memory of the run was not kept: {error}"));
    }
}

fn keep_file(
    plan: &FinishPlan,
    name: &str,
    overlay: &Path,
    user: &Path,
    done: &mut Finished,
) -> io::Result<()> {
    let (from, to) = (overlay.join(name), user.join(name));
    if !files::is_plain_file(&from) {
        return Ok(());
    }
    let before = plan.linked.iter().find(|file| file.path == Path::new(name)).map(|file| &file.fingerprint);
    let (ours, theirs) = (Fingerprint::of(&from)?, Fingerprint::of(&to)?);
    if ours == theirs {
        return Ok(());
    }
    if theirs.as_ref() != before {
        done.warnings.push(format!(
            "{} was changed by another program; the run's own version was dropped",
            to.display()
        ));
        return Ok(());
    }
    fs::create_dir_all(user)?;
    // A file that is a link for the user stays one.
    let to = fs::canonicalize(&to).unwrap_or(to);
    move_file(&from, &to, if theirs.is_some() { Existing::Replace } else { Existing::Keep })?;
    done.merged.push(to);
    Ok(())
}

/// Adds the run's decisions to those that the user has now.
fn merge_trust(plan: &FinishPlan, overlay: &Path, user: &Path, done: &mut Finished) -> io::Result<()> {
    let mut decided = read_object(&overlay.join(TRUSTED_FOLDERS)).map_err(io::Error::other)?;
    decided.retain(|folder, level| plan.trusted.get(folder) != Some(level));
    if decided.is_empty() {
        return Ok(());
    }
    fs::create_dir_all(user)?;
    let file = user.join(TRUSTED_FOLDERS);
    let _lock = LockDir::take(&file, Duration::from_secs(12)).map_err(|error| match error {
        NotLocked::Held => io::Error::other(format!("another program holds {}.lock", file.display())),
        NotLocked::Io(error) => error,
    })?;
    let mut folders = read_object(&file).map_err(io::Error::other)?;
    folders.extend(decided);
    let text = serde_json::to_string_pretty(&Value::Object(folders))?;
    files::replace(&file, text.as_bytes(), 0o600)?;
    done.merged.push(file);
    Ok(())
}

/// A model can write to the context file: by `save_memory` until 0.43, by its file tools since. Without our part, what it
/// wrote is the user's.
fn merge_context(plan: &FinishPlan, overlay: &Path, user: &Path, done: &mut Finished) -> io::Result<()> {
    let context = &plan.context;
    let (from, to) = (overlay.join(&context.name), user.join(&context.name));
    let untouched = context.ours.as_ref().map(|ours| &ours.written);
    if !files::is_plain_file(&from) || Fingerprint::of(&from)?.as_ref() == untouched {
        return Ok(());
    }
    let mut text = fs::read_to_string(&from)?;
    if let Some(ours) = &context.ours {
        let parts = text.split_once(&ours.text);
        let (before, after) =
            parts.ok_or_else(|| io::Error::other("the run's own instructions were rewritten"))?;
        text = format!("{before}{after}");
    }
    let theirs = Fingerprint::of(&to)?;
    if theirs == Some(Fingerprint::of_bytes(text.as_bytes())) {
        return Ok(());
    }
    if theirs != context.original {
        return Err(io::Error::other(format!("{} was changed by another program", to.display())));
    }
    if let Some(dir) = to.parent() {
        fs::create_dir_all(dir)?;
    }
    files::replace(&to, text.as_bytes(), 0o644)?;
    done.merged.push(to);
    Ok(())
}

#[cfg(test)]
mod tests;
