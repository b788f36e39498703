//! Places for overlays: `<homes>/<key>/<number>`, the lowest that nobody uses.
//!
//! The path of its home appears in what Gemini CLI (0.61.0) tells the model about temporary files, and a changing path
//! would defeat the API's prompt cache. So the same project with the same settings gets the same place whenever it can.
//!
//! Beside a place `0` are `0.lock`, held with flock by the processes of the run, and `0.json`, its [`FinishPlan`].

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use super::finish::{Stopped, finish};
use super::plan::{FinishPlan, Finished};
use crate::supervise::sweep::{Life, Swept, sweep};
use alhena_session::fingerprint::sha256_hex;
use alhena_sys::files;
use alhena_sys::locks;

/// More runs of one project at once than any machine can bear.
const MOST_SLOTS: u32 = 4096;

/// How long the name of a directory of places is.
const KEY_LENGTH: usize = 12;

/// The name of the directory for the places of everything that has this fingerprint: short, because a path is in
/// everything that the model reads.
pub(super) fn key(fingerprint: &str) -> String {
    let mut key = sha256_hex(fingerprint.as_bytes());
    key.truncate(KEY_LENGTH);
    key
}

/// Whether a name is one that [`key`] gives.
pub(super) fn is_key(name: &str) -> bool {
    name.len() == KEY_LENGTH && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// A place that this process holds, empty.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) path: PathBuf,
    lock: File,
    /// What became of crashed runs that were in the way.
    pub(super) recovered: Vec<Finished>,
}

impl Slot {
    /// Takes the lowest free place in a directory, which is made if it is missing.
    pub(super) fn take(dir: &Path) -> io::Result<Self> {
        let mut recovered = Vec::new();
        let mut number = 0;
        while number < MOST_SLOTS {
            let path = dir.join(number.to_string());
            let Some(lock) = locks::take(&beside(&path, "lock"))? else {
                number += 1;
                continue;
            };
            match clear(&path)? {
                None => {
                    files::create_private_dir(&path)?;
                    return Ok(Self { path, lock, recovered });
                }
                Some(finished) => {
                    // Its lock went with it, so the place has to be taken anew; or it is still not empty.
                    number += u32::from(finished.incomplete);
                    recovered.push(finished);
                }
            }
        }
        Err(io::Error::other(format!("{} is full of runs", dir.display())))
    }

    /// Gives a place back in which nothing was done: its home could not be made.
    pub(super) fn give_back(self) {
        let _ = remove_tree(&self.path);
        let _ = fs::remove_file(beside(&self.path, "json"));
        let _ = fs::remove_file(beside(&self.path, "lock"));
        if let Some(dir) = self.path.parent() {
            let _ = fs::remove_dir(dir);
        }
    }

    /// The lock, for a child process to inherit: it is held until the last of them ends.
    pub(super) fn lock(&self) -> &File {
        &self.lock
    }
}

/// Makes a place empty that is locked by us: finishes what a crashed run left. None when there was nothing to finish.
fn clear(path: &Path) -> io::Result<Option<Finished>> {
    match read_plan(path)? {
        Planned::Nothing => remove_tree(path).map(|()| None),
        Planned::Run(plan) => Ok(Some(finish_crashed(&plan))),
        Planned::Unreadable => {
            let warning = format!("{} holds an unfinished run that this version cannot read", path.display());
            Ok(Some(Finished { warnings: vec![warning], incomplete: true, ..Finished::default() }))
        }
    }
}

/// Nobody holds the run, but something that it started may still work in its home: that is ended first.
fn finish_crashed(plan: &FinishPlan) -> Finished {
    let Swept { ended, left, .. } =
        plan.mark.as_deref().map(|mark| sweep(mark, Life::Thread)).unwrap_or_default();
    if left > 0 {
        let warning =
            format!("{} is still used by {left} processes of a run that was killed", plan.slot.display());
        return Finished { warnings: vec![warning], incomplete: true, ..Finished::default() };
    }
    // Whoever kept it is gone, so it did not come to its end.
    let mut finished = finish(plan, Stopped::Midway);
    if ended > 0 {
        finished
            .warnings
            .push(format!("{ended} processes of an earlier run, which had been killed, were ended"));
    }
    finished
}

/// What the file beside a place says.
enum Planned {
    Nothing,
    Run(Box<FinishPlan>),
    /// Of another version, or edited: what it is about must not be thrown away.
    Unreadable,
}

fn read_plan(path: &Path) -> io::Result<Planned> {
    let Some(bytes) = files::read_if_there(&beside(path, "json"))? else { return Ok(Planned::Nothing) };
    match serde_json::from_slice::<FinishPlan>(&bytes) {
        Ok(plan) if plan.slot == path => Ok(Planned::Run(Box::new(plan))),
        _ => Ok(Planned::Unreadable),
    }
}

/// Writes the plan beside the place, so that a crash from here on loses nothing.
pub(super) fn write_plan(plan: &FinishPlan) -> io::Result<()> {
    let bytes = serde_json::to_vec(plan)?;
    files::replace_own(&beside(&plan.slot, "json"), &bytes)
}

/// The right to carry out a plan; only one process at a time has it.
#[derive(Debug)]
pub(super) struct PlanLock(File);

impl PlanLock {
    /// None when the plan has been carried out already.
    pub(super) fn of(plan: &FinishPlan) -> io::Result<Option<Self>> {
        let path = beside(&plan.slot, "json");
        let file = match OpenOptions::new().read(true).write(true).open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        locks::lock(&file)?;
        if !locks::is_at(&file, &path)? {
            return Ok(None);
        }
        match read_plan(&plan.slot)? {
            Planned::Run(there) if there.run == plan.run => Ok(Some(Self(file))),
            _ => Ok(None),
        }
    }
}

/// Removes a place with its lock and its plan, in the order that leaves no room for misunderstanding: whoever finds the
/// plan still there waits for [`PlanLock`], and finds it gone.
pub(super) fn remove(path: &Path, lock: PlanLock) -> io::Result<()> {
    remove_tree(path)?;
    let _ = fs::remove_file(beside(path, "lock"));
    fs::remove_file(beside(path, "json"))?;
    drop(lock.0);
    if let Some(dir) = path.parent() {
        let _ = fs::remove_dir(dir);
    }
    Ok(())
}

fn remove_tree(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

fn beside(path: &Path, extension: &str) -> PathBuf {
    path.with_extension(extension)
}

/// The numbers of the places in a directory, used or not.
pub(super) fn numbers_in(dir: &Path) -> io::Result<Vec<u32>> {
    if !files::is_plain_dir(dir) {
        return Ok(Vec::new());
    }
    let names = files::names_in(dir)?;
    let mut numbers: Vec<u32> =
        names.iter().filter_map(|name| name.split('.').next()?.parse().ok()).collect();
    numbers.sort_unstable();
    numbers.dedup();
    Ok(numbers)
}

/// The `.gemini` directories of runs that stand for this home: what is said in them is not in the user's store yet.
pub(super) fn overlays_of(homes: &Path, user_home: &Path) -> io::Result<Vec<PathBuf>> {
    let mut overlays = Vec::new();
    for key in files::names_in(homes)?.into_iter().filter(|name| is_key(name)) {
        let dir = homes.join(key);
        for number in numbers_in(&dir)? {
            let path = dir.join(number.to_string());
            if let Ok(Planned::Run(plan)) = read_plan(&path)
                && plan.user_home == user_home
            {
                overlays.push(path.join(".gemini"));
            }
        }
    }
    Ok(overlays)
}

/// What a look at somebody else's place gave.
pub(super) enum Taken {
    /// A run is alive there.
    InUse,
    /// There was nothing of value.
    Empty,
    /// A crashed run had left something.
    Recovered(Finished),
}

/// Finishes a crashed run, if there is one.
pub(super) fn take_over(path: &Path) -> io::Result<Taken> {
    let Some(lock) = locks::take(&beside(path, "lock"))? else { return Ok(Taken::InUse) };
    let finished = clear(path)?;
    if finished.is_none() {
        fs::remove_file(beside(path, "lock"))?;
    }
    drop(lock);
    Ok(finished.map_or(Taken::Empty, Taken::Recovered))
}

#[cfg(test)]
mod tests;
