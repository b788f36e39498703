//! Whether the CLI's MCP servers have started.
//!
//! While they do, for up to ten minutes each, 0.61.0 queues what is typed, and its screen and title say nothing of it. Its
//! debug log does: the start of the configured servers, and that of each extension, ends with a refresh of the context.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use alhena_wire::release::Version;
use serde::{Deserialize, Serialize};

/// The first release that is known to log the refreshes.
const TELLS: Version = Version::new(0, 38, 0);
/// More of the log is about later things.
const START: u64 = 4 << 20;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct McpStart {
    log: PathBuf,
    /// How long the log was before: it may be one that the user keeps.
    from: u64,
    servers: Vec<String>,
    tells: bool,
}

impl McpStart {
    pub(crate) fn new(log: &Path, servers: &[String], release: &Version) -> Self {
        let from = std::fs::metadata(log).map_or(0, |data| data.len());
        Self { log: log.to_owned(), from, servers: servers.to_vec(), tells: *release >= TELLS }
    }

    /// What the CLI waits for, for people. None when the start is over.
    pub(crate) fn waits_for(&self) -> Option<String> {
        let log = self.read();
        if log.is_empty() {
            // The user has sent it somewhere that cannot be read: by the time there is a prompt, it would say something.
            return None;
        }
        let servers = waits_for(&log, &self.servers)?;
        Some(match servers.as_slice() {
            // Those before name each server once it has answered or failed.
            [] if !self.tells => return None,
            [] => "Its MCP servers are starting.".to_owned(),
            names => format!("Its MCP servers are starting: {}.", names.join(", ")),
        })
    }

    fn read(&self) -> String {
        let mut bytes = Vec::new();
        // A pipe would be waited for.
        if std::fs::metadata(&self.log).is_ok_and(|data| data.is_file())
            && let Ok(mut file) = File::open(&self.log)
            && file.seek(SeekFrom::Start(self.from)).is_ok()
        {
            let _half = file.take(START).read_to_end(&mut bytes);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

/// The servers that have not been heard of. None when there is nothing to wait for.
fn waits_for(log: &str, servers: &[String]) -> Option<Vec<String>> {
    let (mut begun, mut refreshed) = (usize::from(!servers.is_empty()), 0_usize);
    for message in log.lines().filter_map(message) {
        if message.starts_with("Loading extension: ")
            || message.starts_with("Unloading extension: ")
            || message.contains("Refreshing context for server '")
        {
            begun += 1;
        } else if message == "Scheduling MCP context refresh..."
            || message.starts_with("MCP context refresh already ")
        {
            refreshed += 1;
        } else if message.ends_with("because folder is not trusted.")
            || message.ends_with("because the folder is not trusted.")
        {
            // No server is started there.
            return None;
        }
    }
    if refreshed >= begun {
        return None;
    }
    let unheard = |name: &&String| !log.contains(&format!("server '{name}'"));
    Some(servers.iter().filter(unheard).cloned().collect())
}

fn message(line: &str) -> Option<&str> {
    let (_, rest) = line.strip_prefix('[')?.split_once("] [")?;
    Some(rest.split_once("] ")?.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(lines: &[&str], servers: &[&str]) -> Option<Vec<String>> {
        let log: Vec<String> =
            lines.iter().map(|line| format!("[2026-11-16T08:20:24.226Z] [LOG] {line}")).collect();
        let servers: Vec<String> = servers.iter().map(|name| (*name).to_owned()).collect();
        waits_for(&log.join("\n"), &servers)
    }

    const REFRESH: &str = "Scheduling MCP context refresh...";
    const MORE: &str = "MCP context refresh already in progress, queuing trailing execution.";

    #[test]
    fn the_start_is_over_when_configured_servers_and_every_extension_have_been_refreshed() {
        assert_eq!(left(&[], &[]), None);
        assert_eq!(left(&[], &["slow", "bad"]), Some(vec!["slow".into(), "bad".into()]));
        let failed = "[MCP error] Error during discovery for MCP server 'bad': Connection closed";
        assert_eq!(left(&[failed], &["slow", "bad"]), Some(vec!["slow".into()]));
        assert_eq!(left(&[failed, REFRESH], &["slow", "bad"]), None);
        // An extension without servers is ready at once; the others are not.
        let extension = "Loading extension: tools";
        assert_eq!(left(&[extension, REFRESH], &["slow"]), Some(vec!["slow".into()]));
        assert_eq!(left(&[extension, REFRESH, MORE], &["slow"]), None);
        assert_eq!(left(&[extension], &[]), Some(Vec::new()));
        // A server whose tools have changed is refreshed on its own.
        let changed = "🔔 Refreshing context for server 'fast'...";
        assert_eq!(left(&[changed, REFRESH], &["fast", "slow"]), Some(vec!["slow".into()]));
    }

    #[test]
    fn where_nobody_trusts_the_folder_nothing_is_waited_for() {
        let told = "Project hooks disabled because the folder is not trusted.";
        assert_eq!(left(&[told], &["slow"]), None);
    }

    #[test]
    fn a_log_that_was_there_before_says_nothing_and_old_releases_name_servers_only() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("log");
        let old = Version::new(0, 30, 1);
        let line = |text: &str| format!("[time] [LOG] {text}\n");
        std::fs::write(&path, line(REFRESH)).unwrap();
        let begun = line("Authenticated via \"gemini-api-key\".");
        let servers = ["slow".to_owned()];
        let [new, old] = [Version::new(0, 61, 0), old].map(|it| McpStart::new(&path, &servers, &it));
        // Nothing was written: it goes to somewhere else.
        assert_eq!(new.waits_for(), None);
        std::fs::write(&path, line(REFRESH) + &begun).unwrap();
        assert_eq!(new.waits_for().as_deref(), Some("Its MCP servers are starting: slow."));
        let heard = line("Registering notification handlers for server 'slow'.");
        std::fs::write(&path, line(REFRESH) + &heard).unwrap();
        assert_eq!(new.waits_for().as_deref(), Some("Its MCP servers are starting."));
        assert_eq!(old.waits_for(), None);
        std::fs::write(&path, line(REFRESH) + &heard + &line(REFRESH)).unwrap();
        assert_eq!(new.waits_for(), None);
    }
}
