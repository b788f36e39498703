//! Directories and changes that look random, and are the same each time.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use alhena_sys::files::{self, symlink};

use super::super::{copy, slot};

/// What git would see of a directory: files, links and whether one may be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    File(Vec<u8>, bool),
    Link(PathBuf),
}

pub fn seen(dir: &Path) -> BTreeMap<PathBuf, Seen> {
    let (mut all, mut waiting) = (BTreeMap::new(), vec![dir.to_owned()]);
    while let Some(folder) = waiting.pop() {
        for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let (path, kind) = (entry.path(), entry.file_type().unwrap());
            let name = path.strip_prefix(dir).unwrap().to_owned();
            if copy::is_repository(&entry.file_name()) {
            } else if kind.is_dir() {
                waiting.push(path);
            } else if kind.is_symlink() {
                all.insert(name, Seen::Link(fs::read_link(path).unwrap()));
            } else {
                let may_run = files::mode(&fs::metadata(&path).unwrap()) & 0o100 != 0;
                all.insert(name, Seen::File(fs::read(path).unwrap(), may_run));
            }
        }
    }
    all
}

/// Numbers that look random, and are the same each time.
pub struct Dice(pub u64);

impl Dice {
    pub fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % sides as u64) as usize
    }

    fn bytes(&mut self) -> Vec<u8> {
        let lines = self.roll(30);
        let mut text: Vec<u8> =
            (0..lines).flat_map(|_| format!("line {}\n", self.roll(9)).into_bytes()).collect();
        match self.roll(8) {
            0 => text = (0..self.roll(3000)).map(|_| self.roll(256) as u8).collect(),
            1 => text = String::from_utf8(text).unwrap().replace('\n', "\r\n").into_bytes(),
            2 => text.extend(b"no end"),
            3 => text.extend("grüße, 日本 \u{202e}\u{1}\n".bytes()),
            // Latin-1: text to git, and no UTF-8.
            4 => text.extend(b"gr\xfc\xdfe\nline\n"),
            5 => text.clear(),
            _ => {}
        }
        text
    }

    fn name(&mut self) -> PathBuf {
        const NAMES: &[&str] = &[
            "a",
            "b.rs",
            "with space",
            "quote\"d",
            "grün",
            "日本",
            "tab\tbed",
            "back\\slash",
            "star*[x]?",
            "-dash",
            "new\nline",
            "a.b",
            "# hash",
            "trailing ",
            "a => b",
            "~",
            "%s",
            "'",
            "é\u{301}",
        ];
        let depth = 1 + self.roll(3);
        (0..depth)
            .map(|level| {
                if level + 1 < depth {
                    ["d", "e f", "ü"][self.roll(3)]
                } else {
                    NAMES[self.roll(NAMES.len())]
                }
            })
            .collect()
    }

    /// Puts something somewhere, whatever is there.
    pub fn put(&mut self, dir: &Path) {
        let path = dir.join(self.name());
        let mut above = path.parent().unwrap();
        while above != dir {
            if above.is_symlink() || above.is_file() {
                fs::remove_file(above).unwrap();
            }
            above = above.parent().unwrap();
        }
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        slot::remove(&path).unwrap();
        if self.roll(6) == 0 {
            return symlink(["a", "../x", "/nonexistent", "grün"][self.roll(4)], &path).unwrap();
        }
        fs::write(&path, self.bytes()).unwrap();
        if self.roll(4) == 0 {
            files::set_mode(&path, 0o755).unwrap();
        }
    }

    pub fn change(&mut self, dir: &Path) {
        let there: Vec<PathBuf> = seen(dir).into_keys().map(|name| dir.join(name)).collect();
        let Some(path) = there.get(self.roll(there.len().max(1))) else { return self.put(dir) };
        match self.roll(6) {
            0 => fs::remove_file(path).unwrap(),
            1 => {
                let to = dir.join(format!("renamed {}", self.roll(5)));
                if *path != to {
                    slot::remove(&to).unwrap();
                    fs::rename(path, to).unwrap();
                }
            }
            2 if !path.is_symlink() => {
                let mode = files::mode(&fs::metadata(path).unwrap()) ^ 0o111;
                files::set_mode(path, mode).unwrap();
            }
            3 if !path.is_symlink() => {
                let mut bytes = fs::read(path).unwrap();
                let at = self.roll(bytes.len().max(1));
                bytes.splice(at.min(bytes.len())..at.min(bytes.len()), b"changed\n".iter().copied());
                fs::write(path, bytes).unwrap();
            }
            _ => self.put(dir),
        }
    }
}
