//! The end of a run: its sessions are published, its logins and trust decisions merged back, its overlay removed.
//!
//! It can be done by the keeper, by Alhena itself, or much later by another run that finds the overlay of a crashed one.
//! So it can be called any number of times, by any number of processes, and after any of them died half-way.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use alhena_session::publish::{PrivateProject, Published};
use alhena_session::registry;

use super::merge;
use super::plan::{FinishPlan, Finished, Layout};
use super::slot::{self, PlanLock};

/// Whether a run of one prompt was stopped before it had come to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// It was: what the CLI took back of its last turn is brought back.
    Midway,
    /// It ended by itself, or a person at a terminal decides what counts.
    Never,
}

/// Does what is left to do for a run that has ended. No process of the run may be alive any more.
///
/// What cannot be saved (a full disk, say) stays in the overlay, and [`Finished::incomplete`] says so.
#[must_use]
pub fn finish(plan: &FinishPlan, stopped: Stopped) -> Finished {
    let mut done = Finished::default();
    let lock = match PlanLock::of(plan) {
        Ok(Some(lock)) => lock,
        Ok(None) => return done,
        Err(error) => {
            done.warnings.push(format!("The home of the run could not be cleaned up: {error}"));
            done.incomplete = true;
            return done;
        }
    };
    if let Err(error) = save(plan, stopped, &mut done) {
        done.warnings.push(format!(
            "The session of this run is not in the session store yet ({error}); it is kept in {}",
            plan.slot.display()
        ));
        done.incomplete = true;
        return done;
    }
    if let Err(error) = slot::remove(&plan.slot, lock) {
        done.warnings.push(format!("{} could not be removed: {error}", plan.slot.display()));
        done.incomplete = true;
    }
    done
}

fn save(plan: &FinishPlan, stopped: Stopped, done: &mut Finished) -> io::Result<()> {
    let (overlay, user) = (plan.slot.join(".gemini"), plan.user_home.join(".gemini"));
    if plan.publish {
        publish_all(plan, stopped, &overlay, &user, done)?;
    }
    merge::back(plan, &overlay, &user, done);
    Ok(())
}

/// Publishes every project of the overlay: the run's own, and those of CLIs that a tool of the run started elsewhere.
fn publish_all(
    plan: &FinishPlan,
    stopped: Stopped,
    overlay: &Path,
    user: &Path,
    done: &mut Finished,
) -> io::Result<()> {
    for name in alhena_sys::files::names_in(&overlay.join("tmp"))? {
        let from = overlay.join("tmp").join(&name);
        let is_own = name == plan.slug;
        if !alhena_sys::files::is_plain_dir(&from) || !(is_own || has_chats(&from)) {
            continue;
        }
        let project = if is_own { Some(plan.project.clone()) } else { registry::owner_of(&from) };
        let Some(to) = place_of(plan.layout, user, &name, project.as_deref(), &from)? else { continue };
        if !plan.keep_sessions {
            remove_chats(&from)?;
        }
        let resumed = plan.resumed.as_ref().filter(|_| is_own);
        let copied = if is_own { plan.copied.as_slice() } else { &[] };
        let stopped = stopped == Stopped::Midway;
        let mut published = Published::default();
        let all = PrivateProject { from: &from, to: &to, resumed, copied, stopped }.publish(&mut published);
        done.add(published);
        all?;
    }
    Ok(())
}

/// Nobody wants to know what was said; what else the run wrote there stays.
fn remove_chats(project_dir: &Path) -> io::Result<()> {
    match fs::remove_dir_all(project_dir.join("chats")) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

fn has_chats(project_dir: &Path) -> bool {
    project_dir.join("chats").is_dir()
}

/// Where a project's sessions belong in the user's home. None for a directory that is no project's.
fn place_of(
    layout: Layout,
    user: &Path,
    name: &str,
    project: Option<&str>,
    from: &Path,
) -> io::Result<Option<PathBuf>> {
    if layout == Layout::Hash {
        return Ok(Some(user.join("tmp").join(name)));
    }
    let Some(project) = project else { return Ok(None) };
    if !has_chats(from) {
        return Ok(Some(user.join("tmp").join(name)));
    }
    let registration = registry::register(user, project);
    if !registration.registered {
        return Err(io::Error::other(registration.warnings.join("; ")));
    }
    Ok(Some(user.join("tmp").join(registration.slug)))
}

/// What [`sweep_stale`] found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Overlays of runs that had crashed, and what became of them.
    pub recovered: Vec<(PathBuf, Finished)>,
    /// How many runs are alive.
    pub alive: usize,
}

/// Finishes the runs whose process is gone: publishes what they left in `homes`, and removes it.
pub fn sweep_stale(homes: &Path) -> io::Result<Swept> {
    let mut swept = Swept::default();
    let homes = &std::path::absolute(homes)?;
    for key in alhena_sys::files::names_in(homes)?.into_iter().filter(|name| slot::is_key(name)) {
        let dir = homes.join(key);
        for number in slot::numbers_in(&dir)? {
            let path = dir.join(number.to_string());
            match slot::take_over(&path)? {
                slot::Taken::InUse => swept.alive += 1,
                slot::Taken::Empty => {}
                slot::Taken::Recovered(finished) => swept.recovered.push((path, finished)),
            }
        }
        let _ = fs::remove_dir(&dir);
    }
    Ok(swept)
}
