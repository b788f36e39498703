//! Brings the session that a run continues into the overlay.
//!
//! Gemini CLI 0.61.0 writes a stub `session-<this minute>-<id8>.jsonl` when it resumes. In the minute in which the
//! session was created that is the session's own file, and the stub's checkpoint wipes the conversation out. So the copy
//! gets the name of another minute.

use std::fs;
use std::io;
use std::path::Path;

use alhena_session::fingerprint::Fingerprint;
use alhena_session::names::{PREFIX, is_plain_name, with_minute};
use alhena_session::publish::{CopiedFile, CopiedSession};
use alhena_session::resume::Stored;
use alhena_sys::files;

/// The minute in the name of a copy: none in which the CLI can run.
const OTHER_MINUTE: &str = "2001-01-01T00-00";

/// Copies the session into the overlay's store, and what belongs to it into the overlay's project directory.
pub(super) fn copy_in(
    stored: &Stored,
    user_project: &Path,
    project: &Path,
    copied: &mut Vec<CopiedFile>,
) -> io::Result<CopiedSession> {
    let name = stored.path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let name = with_minute(name, OTHER_MINUTE).unwrap_or_else(|| name.to_owned());
    let target = project.join("chats").join(&name);
    fs::create_dir_all(project.join("chats"))?;
    fs::copy(&stored.path, &target)?;
    let fingerprint = Fingerprint::of(&target)?.ok_or(io::ErrorKind::NotFound)?;
    let session = CopiedSession { id: stored.id.clone(), original: stored.path.clone(), name, fingerprint };

    if is_plain_name(&session.id) {
        copy_dir_in(user_project, project, Path::new(&session.id), copied)?;
        let outputs = Path::new("tool-outputs").join(format!("{PREFIX}{}", session.id));
        link_files_in(&user_project.join(&outputs), &project.join(&outputs))?;
    }
    Ok(session)
}

/// Plans, task lists and memories are changed in place by the CLI, so they are copies.
pub(super) fn copy_dir_in(
    from: &Path,
    to: &Path,
    relative: &Path,
    copied: &mut Vec<CopiedFile>,
) -> io::Result<()> {
    for name in files::names_in(&from.join(relative))? {
        let path = relative.join(name);
        let source = from.join(&path);
        if files::is_plain_dir(&source) {
            copy_dir_in(from, to, &path, copied)?;
        } else if files::is_plain_file(&source) {
            fs::create_dir_all(to.join(relative))?;
            fs::copy(&source, to.join(&path))?;
            let fingerprint = Fingerprint::of(&to.join(&path))?.ok_or(io::ErrorKind::NotFound)?;
            copied.push(CopiedFile { path, fingerprint });
        }
    }
    Ok(())
}

/// The long outputs of earlier tools are never written again, so links do.
fn link_files_in(from: &Path, to: &Path) -> io::Result<()> {
    let names = files::names_in(from).unwrap_or_default();
    if !names.is_empty() {
        fs::create_dir_all(to)?;
    }
    for name in names {
        files::symlink(from.join(&name), to.join(&name))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
