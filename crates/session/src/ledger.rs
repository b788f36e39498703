//! Token counts of runs whose sessions are not kept: one JSON line for each run and model, in a file for each month.
//!
//! Warm processes use one session for many prompts and clear it in between, so the store of Gemini CLI has no record of what
//! they used. The pool writes it here; [`UsageTable`](crate::usage::UsageTable) adds it to the sessions. A line has about 250 bytes.
//! Nothing is ever deleted, as sessions are not either; the files of past months can be.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use alhena_model::{Outcome, Timestamp, Tokens};
use alhena_sys::files;
use serde::{Deserialize, Serialize};

use crate::{Scope, Store};

/// The directory of these files.
#[derive(Clone, Debug)]
pub struct Ledger {
    dir: PathBuf,
}

/// What a run used of one model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// The `.gemini` directory that the session would have been stored in.
    pub store: PathBuf,
    /// The folder that the run worked in, or that was copied for it.
    pub project: PathBuf,
    /// When it ended.
    pub at: Timestamp,
    /// The model.
    pub model: String,
    /// Number of model calls. Of a run with several models only their sum is known; the one with the most tokens has it.
    pub calls: u64,
    /// The tokens of all of them.
    pub tokens: Tokens,
}

impl Entry {
    /// Returns the day (UTC), such as `2026-11-15`.
    pub fn day(&self) -> String {
        self.at.to_string().chars().take(10).collect()
    }

    /// Returns the entries of a run that has ended: none if it used nothing.
    fn of(store: &Path, project: &Path, outcome: &Outcome, at: Timestamp) -> Vec<Self> {
        let busiest = outcome.usage.models.iter().max_by_key(|(_, tokens)| tokens.total);
        let busiest = busiest.map(|(model, _)| model);
        let entry = |(model, tokens): (&String, &Tokens)| Self {
            store: resolved(store),
            project: project.to_owned(),
            at,
            model: model.clone(),
            calls: if Some(model) == busiest { outcome.model_calls } else { 0 },
            tokens: *tokens,
        };
        outcome.usage.models.iter().map(entry).filter(|entry| entry.tokens.total > 0).collect()
    }
}

impl Ledger {
    /// Uses the files in this directory, which does not have to exist.
    pub fn at(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into() }
    }

    /// Notes what a run used that has just ended.
    pub fn add(&self, store: &Path, project: &Path, outcome: &Outcome) -> io::Result<()> {
        let at = Timestamp::now();
        let mut lines = String::new();
        for entry in Entry::of(store, project, outcome, at) {
            // The line end comes first: whatever a killed writer left of its line spoils no other.
            lines.push('\n');
            lines.push_str(&serde_json::to_string(&entry)?);
        }
        if lines.is_empty() {
            return Ok(());
        }
        files::create_private_dir(&self.dir)?;
        let month: String = at.to_string().chars().take(7).collect();
        let path = self.dir.join(format!("{month}.jsonl"));
        let mut file = files::private(std::fs::OpenOptions::new().append(true).create(true)).open(path)?;
        // One write, so that the lines of several processes do not mix.
        file.write_all(lines.as_bytes())
    }

    /// Returns all entries of a store. Lines that cannot be read are skipped.
    pub fn list(&self, store: &Store, scope: &Scope) -> io::Result<Vec<Entry>> {
        let store = resolved(store.gemini());
        let wanted = |entry: &Entry| {
            entry.store == store
                && match scope {
                    Scope::All => true,
                    Scope::Folder(folder) => entry.project == *folder,
                }
        };
        let mut entries = Vec::new();
        for name in files::names_in(&self.dir)?.iter().filter(|name| name.ends_with(".jsonl")) {
            let Some(bytes) = files::read_if_there(&self.dir.join(name))? else { continue };
            let lines = bytes.split(|byte| *byte == b'\n');
            entries.extend(lines.filter_map(|line| serde_json::from_slice(line).ok()).filter(wanted));
        }
        Ok(entries)
    }
}

fn resolved(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

#[cfg(test)]
mod tests {
    use alhena_model::{Failure, FailureKind, Prices, Usage};

    use super::*;
    use crate::usage::{By, UsageTable};

    fn outcome(models: &[(&str, u64)], calls: u64) -> Outcome {
        let tokens = |total| Tokens { prompt: total, total, ..Tokens::default() };
        let usage = Usage::of_models(models.iter().map(|(model, total)| (*model, tokens(*total))));
        let mut outcome = Outcome::not_begun(Failure::new(FailureKind::Api, "x"));
        (outcome.usage, outcome.model_calls) = (usage, calls);
        outcome
    }

    #[test]
    fn runs_without_a_session_are_added_up_by_store_and_folder() {
        let dir = tempfile::tempdir().unwrap();
        let ledger = Ledger::at(dir.path().join("usage"));
        let store = Store::at(dir.path().join(".gemini"));
        assert_eq!(ledger.list(&store, &Scope::All).unwrap(), []);
        let add = |store: &Path, project: &str, outcome| ledger.add(store, Path::new(project), &outcome);
        add(store.gemini(), "/a", outcome(&[("gemini-2.5-pro", 70), ("gemini-2.5-flash", 5)], 3)).unwrap();
        add(store.gemini(), "/b", outcome(&[("gemini-2.5-pro", 30)], 1)).unwrap();
        add(store.gemini(), "/b", outcome(&[], 0)).unwrap();
        add(Path::new("/other/.gemini"), "/a", outcome(&[("gemini-2.5-pro", 1000)], 1)).unwrap();

        let all = ledger.list(&store, &Scope::All).unwrap();
        let prices = Prices::shipped().unwrap();
        let table = UsageTable::of(&[], &all, By::Project, None, &prices);
        let rows: Vec<_> =
            table.rows.iter().map(|(key, row)| (&**key, row.tokens.total, row.answers)).collect();
        assert_eq!(rows, [("/a", 75, 3), ("/b", 30, 1)]);
        assert_eq!(table.total.tokens.total, 105);
        assert!(table.total.cost.unwrap() > 0.0);
        assert_eq!(
            UsageTable::of(&[], &all, By::Model, None, &prices).rows["gemini-2.5-pro"].tokens.total,
            100
        );
        assert_eq!(UsageTable::of(&[], &all, By::Day, Some("9999-01-01"), &prices).total.tokens.total, 0);
        let of_b = ledger.list(&store, &Scope::Folder("/b".into())).unwrap();
        assert_eq!(of_b.iter().map(|entry| entry.tokens.total).collect::<Vec<_>>(), [30]);
    }

    #[test]
    fn a_line_that_a_killed_process_left_unfinished_spoils_no_other() {
        let dir = tempfile::tempdir().unwrap();
        let ledger = Ledger::at(dir.path());
        let store = Store::at(dir.path().join(".gemini"));
        let add = || ledger.add(store.gemini(), Path::new("/a"), &outcome(&[("m", 1)], 1)).unwrap();
        add();
        let names = files::names_in(dir.path()).unwrap();
        let file = dir.path().join(&names[0]);
        let mut torn = std::fs::read(&file).unwrap();
        torn.extend_from_slice(b"\n{\"store\":\"/x");
        std::fs::write(&file, torn).unwrap();
        add();
        assert_eq!(ledger.list(&store, &Scope::All).unwrap().len(), 2);
    }
}
