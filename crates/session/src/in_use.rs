//! Whether a Gemini CLI may be at work in a session right now.
//!
//! The CLI opens its session file for each record and closes it again (0.61.0), so no open file tells. What tells is a CLI
//! that runs in the project's folder, or a file that was written a moment ago.

use std::path::Path;
use std::time::{Duration, SystemTime};

use alhena_sys::processes;

use crate::file::SessionFile;

/// A file that was written so recently may be written again.
const RECENT: Duration = Duration::from_secs(60);

/// What is known about who uses a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Use {
    /// Nobody seems to.
    Free,
    /// A Gemini CLI runs in the project's folder: the process.
    Running(u32),
    /// The file was written within the last minute.
    Recent,
    /// This system does not tell which programs run, or the session's folder is not known.
    Unknown,
}

/// Who uses the session in this file.
pub fn of(file: &SessionFile) -> Use {
    let modified = std::fs::metadata(&file.path).and_then(|data| data.modified());
    if modified.is_ok_and(|time| SystemTime::now().duration_since(time).map_or(true, |age| age < RECENT)) {
        return Use::Recent;
    }
    match &file.project.root {
        Some(root) => running_in(root),
        None => Use::Unknown,
    }
}

fn running_in(root: &Path) -> Use {
    let processes = processes::all();
    if processes.is_empty() {
        return Use::Unknown;
    }
    let is_here = |pid: &u32| processes::working_directory(*pid).is_some_and(|dir| dir == root);
    let gemini = processes.into_iter().find(|pid| is_here(pid) && is_gemini(&processes::arguments(*pid)));
    gemini.map_or(Use::Free, Use::Running)
}

/// Whether a command line is that of Gemini CLI: `node …/gemini`, `node …/gemini-cli/bundle/gemini.js`.
fn is_gemini(words: &[Vec<u8>]) -> bool {
    let by_name = |word: &Vec<u8>| {
        let name = word.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        matches!(name, b"gemini" | b"gemini.js") || memchr::memmem::find(word, b"/gemini-cli/").is_some()
    };
    // A script comes after its interpreter and the interpreter's options.
    let Some((program, words)) = words.split_first() else { return false };
    by_name(program) || words.iter().take_while(|word| !word.is_empty()).take(8).any(by_name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    #[test]
    fn the_cli_is_known_by_its_command_line() {
        for (line, expected) in [
            ("node\0/usr/local/bin/gemini\0-p\0x\0", true),
            (
                "/usr/bin/node\0--max-old-space-size=4096\0/x/node_modules/@google/gemini-cli/bundle/gemini.js\0",
                true,
            ),
            ("gemini\0", true),
            ("vim\0gemini.txt\0", false),
            ("node\0server.js\0", false),
            ("", false),
        ] {
            let words: Vec<_> = line.split('\0').map(|word| word.as_bytes().to_vec()).collect();
            assert_eq!(is_gemini(&words), expected, "{line}");
        }
    }

    #[test]
    fn a_file_that_was_just_written_is_in_use() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("session-x.jsonl");
        std::fs::write(&path, "x").unwrap();
        assert_eq!(of(&SessionFile::at(&path).unwrap()), Use::Recent);
        File::options()
            .write(true)
            .open(&path)
            .unwrap()
            .set_modified(SystemTime::now() - RECENT * 2)
            .unwrap();
        assert_eq!(of(&SessionFile::at(&path).unwrap()), Use::Unknown);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_cli_in_the_folder_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        assert_eq!(running_in(&root), Use::Free);
        let gemini = root.join("gemini");
        alhena_sys::files::symlink("/bin/sleep", &gemini).unwrap();
        let mut child = std::process::Command::new(&gemini).arg("60").current_dir(&root).spawn().unwrap();
        // Until the new program is in place it still looks like this one.
        let started = std::time::Instant::now();
        let mut found = running_in(&root);
        while found == Use::Free && started.elapsed() < std::time::Duration::from_secs(10) {
            std::thread::sleep(std::time::Duration::from_millis(10));
            found = running_in(&root);
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(found, Use::Running(child.id()));
    }
}
