//! Messages between terminals: kept beside the receiver's record until its agent is free to take one.
//!
//! Gemini CLI 0.61.0 queues what is typed while it works and then sends several messages as one; a message must also not
//! land in a dialog. So a message waits here. Anybody may deliver, one at a time; a crash in between can deliver one twice,
//! never lose one.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use alhena_sys::files;

use crate::error::{TerminalError, TerminalErrorKind};
use crate::terminal::{Terminal, Until};
use crate::typing::Force;

impl Terminal {
    /// Leaves a message for the agent, to be taken when it is free.
    pub fn post(&self, text: &str) -> Result<(), TerminalError> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        // Nobody would ever read it.
        self.record()?;
        let dir = self.letters();
        let failed = |error: io::Error| TerminalError::io(dir.display(), &error);
        files::create_private_dir(&dir).map_err(failed)?;
        let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{time:032}-{:010}-{count:06}.txt", std::process::id());
        files::replace_own(&dir.join(name), text.as_bytes()).map_err(failed)
    }

    /// How many messages wait.
    #[must_use]
    pub fn waiting_letters(&self) -> usize {
        self.waiting().len()
    }

    /// Gives the agent the oldest message, if there is one and the agent is free. True when it took one.
    pub fn deliver_post(&self) -> Result<bool, TerminalError> {
        if self.waiting().is_empty() || !Until::Idle.is_met(self.status()?.status) {
            return Ok(false);
        }
        let Ok(_lock) = self.terminals.inner.store.lock_post(self.id(), Duration::ZERO) else {
            return Ok(false);
        };
        // Somebody else may have delivered it meanwhile.
        let Some(oldest) = self.waiting().into_iter().next() else { return Ok(false) };
        let failed = |error: io::Error| TerminalError::io(oldest.display(), &error);
        let text = fs::read_to_string(&oldest).map_err(failed)?;
        match self.send(&text, Force::OnlyWhenReady) {
            Ok(_) => {}
            // It has just begun with something else.
            Err(error) if error.kind == TerminalErrorKind::NotReady => return Ok(false),
            Err(error) => return Err(error),
        }
        fs::remove_file(&oldest).map_err(failed)?;
        Ok(true)
    }

    fn letters(&self) -> PathBuf {
        self.terminals.inner.store.path(self.id()).with_extension("post")
    }

    fn waiting(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.letters()).into_iter().flatten().flatten();
        let mut letters: Vec<PathBuf> = entries
            .map(|entry| entry.path())
            .filter(|path| path.extension().is_some_and(|extension| extension == "txt"))
            .collect();
        letters.sort();
        letters
    }
}
