//! Recognises Alhena's own drop-in, so that Alhena never takes itself for Gemini CLI.
//!
//! The drop-in is Alhena under the name `gemini`: a link to the binary, a copy of it, or a small script. Found first on
//! `PATH`, it would start itself for ever.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use alhena_sys::files::FileId;

/// Bytes that are part of every program with Alhena inside, and that every script Alhena writes as a drop-in carries in
/// a comment.
pub const DROP_IN_MARK: &str = "alhena:this-is-not-gemini-cli:5d0c1f7a";

/// How much of a program is searched for the mark. Alhena's own binary is far smaller.
const SEARCHED: u64 = 96 << 20;

/// Whether the program at `path` is Alhena: the running program, a link to it, a copy of any version, or a script that
/// starts it.
pub(super) fn is_alhena(path: &Path) -> bool {
    std::env::current_exe().is_ok_and(|own| same_file(path, &own)) || carries_mark(path).unwrap_or(false)
}

fn same_file(one: &Path, other: &Path) -> bool {
    FileId::at(one).is_ok_and(|one| FileId::at(other).is_ok_and(|other| one == other))
}

fn carries_mark(path: &Path) -> std::io::Result<bool> {
    let mut file = File::open(path)?;
    let mut start = Vec::new();
    file.by_ref().take(64 << 10).read_to_end(&mut start)?;
    if is_native(&start) {
        return search(&start, file);
    }
    // A script somebody wrote by hand to start the drop-in has no mark but the command.
    let found = |text: &str| memchr::memmem::find(&start, text.as_bytes()).is_some();
    Ok(found(DROP_IN_MARK) || found("alhena gemini") || found("alhena\" gemini"))
}

/// Whether a file starts like a program of Linux, macOS or Windows.
fn is_native(start: &[u8]) -> bool {
    const MAGIC: &[&[u8]] = &[
        b"\x7fELF",
        b"MZ",
        b"\xcf\xfa\xed\xfe",
        b"\xfe\xed\xfa\xcf",
        b"\xca\xfe\xba\xbe",
        b"\xce\xfa\xed\xfe",
    ];
    MAGIC.iter().any(|magic| start.starts_with(magic))
}

fn search(start: &[u8], rest: File) -> std::io::Result<bool> {
    let finder = memchr::memmem::Finder::new(DROP_IN_MARK);
    let overlap = DROP_IN_MARK.len() - 1;
    let mut rest = rest.take(SEARCHED);
    let mut window = start.to_vec();
    loop {
        if finder.find(&window).is_some() {
            return Ok(true);
        }
        window.drain(..window.len().saturating_sub(overlap));
        if rest.by_ref().take(1 << 20).read_to_end(&mut window)? == 0 {
            return Ok(false);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn running_program_a_link_and_a_copy_of_it_are_alhena() {
        let root = tempfile::tempdir().unwrap();
        let own = std::env::current_exe().unwrap();
        let copy = root.path().join("copy");
        fs::copy(&own, &copy).unwrap();
        assert!(is_alhena(&own));
        assert!(is_alhena(&copy));
        let link = root.path().join("gemini");
        alhena_sys::files::symlink(&own, &link).unwrap();
        assert!(is_alhena(&link));
    }

    #[test]
    fn mark_is_found_across_the_edges_of_what_is_read_at_once() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("gemini");
        for at in [4, (64 << 10) - 5, (64 << 10) + (1 << 20) - 7, 3 << 20] {
            let mut bytes = b"\x7fELF".to_vec();
            bytes.resize(at, 0);
            bytes.extend_from_slice(DROP_IN_MARK.as_bytes());
            fs::write(&path, &bytes).unwrap();
            assert!(is_alhena(&path), "mark at {at}");
        }
    }

    #[test]
    fn scripts_that_start_the_drop_in_are_alhena_and_others_are_not() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("gemini");
        for (text, expected) in [
            (format!("#!/bin/sh\n# {DROP_IN_MARK}\nexec /opt/x \"$@\"\n"), true),
            ("#!/bin/sh\nexec alhena gemini \"$@\"\n".to_owned(), true),
            ("#!/usr/bin/env node\nconsole.log('alhena');\n".to_owned(), false),
            (String::new(), false),
            ("\x7fELF and nothing else".to_owned(), false),
        ] {
            fs::write(&path, &text).unwrap();
            assert_eq!(is_alhena(&path), expected, "{text}");
        }
        assert!(!is_alhena(&root.path().join("missing")));
    }
}
