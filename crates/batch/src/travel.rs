//! The check of jobs that workers on other machines run.

use std::path::{Path, PathBuf};

use alhena_model::policy::{is_below, travel_errors};
use alhena_model::{Prompt, RunOptions, Setting, SettingError};

use crate::job::Place;
use crate::launcher::{Launcher, setting_error};

/// Returns the options of a job that can travel, and the directory in which one job at a time may work, wherever the workers are.
pub(crate) fn check(
    prompt: &Prompt,
    options: &RunOptions,
    place: &Place,
    launcher: &dyn Launcher,
) -> Result<(RunOptions, PathBuf), Vec<SettingError>> {
    let brings_dir = matches!(place, Place::Copy);
    let mut errors = travel_errors(options, brings_dir);
    if let Place::Git(checkout) = place
        && Repository::of(&checkout.url).is_none()
    {
        errors.push(SettingError::new(
            format!("git: {:?} is no address that a worker can have", checkout.url),
            "Give one with https:// or ssh://, or a path below the worker's root.",
        ));
    }
    let mut known = options.clone();
    // What is refused already, and directories of the worker, say nothing on this machine.
    let elsewhere = (!brings_dir).then_some(Setting::Dir).into_iter().chain([Setting::IncludeDir]);
    for setting in errors.iter().filter_map(|error| error.setting).chain(elsewhere) {
        known.replace(&RunOptions::default(), setting);
    }
    // The files with defaults are on this machine, or on the worker.
    known.no_config = true;
    match launcher.check(Some(prompt), &known) {
        Ok(checked) if errors.is_empty() => {
            let dir = options.dir.as_deref().unwrap_or(Path::new(""));
            Ok((checked, Path::new("/root of workers").join(dir).components().collect()))
        }
        Ok(_) => Err(errors),
        Err(error) => {
            errors.push(setting_error(&error));
            Err(errors)
        }
    }
}

/// A repository that a worker can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repository {
    /// It has the same address everywhere.
    Elsewhere,
    /// It is below the worker's root.
    BelowRoot,
}

impl Repository {
    /// Returns where a repository is. Addresses by which git would run a program, and paths out of the root, are refused.
    pub(crate) fn of(url: &str) -> Option<Self> {
        let schemes = ["https://", "http://", "ssh://", "git://"];
        if schemes.iter().any(|scheme| url.starts_with(scheme)) {
            return Some(Self::Elsewhere);
        }
        if url.contains("::") || url.contains("://") || url.starts_with('-') {
            return None;
        }
        match url.split_once(':') {
            // `git@host:path`.
            Some((host, path)) if !host.contains('/') && !host.is_empty() && !path.is_empty() => {
                Some(Self::Elsewhere)
            }
            Some(_) => None,
            None => is_below(Path::new(url)).then_some(Self::BelowRoot),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repository_is_elsewhere_or_below_the_root() {
        for url in ["https://h/r.git", "ssh://git@h/r", "git@h:r.git", "git://h/r"] {
            assert_eq!(Repository::of(url), Some(Repository::Elsewhere), "{url}");
        }
        assert_eq!(Repository::of("repos/one"), Some(Repository::BelowRoot));
        for url in
            ["ext::sh -c x", "file:///etc", "/etc", "../x", "fd::17", "-u", "ftp://h/r", "./a:b", "::x"]
        {
            assert_eq!(Repository::of(url), None, "{url}");
        }
    }
}
