//! Which other files the user's context file pulls in.
//!
//! `@./rules.md` in a context file is an import, and 0.61.0 takes one whose real path is outside the directory of the
//! context file for an attack. In an overlay a linked file is just that, so imported files have to be copies.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// As deep as the CLI follows them.
const DEEPEST: usize = 5;
/// More than anybody imports, and less than would be felt.
const MOST: usize = 200;
/// A larger file is no text for a model.
const LARGEST: u64 = 1 << 20;

/// The files below `dir` that a file in it imports, directly or through others, as paths in `dir`.
pub(super) fn imported(dir: &Path, file: &Path, text: &[u8]) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    follow(dir, file.parent().unwrap_or(Path::new("")), &String::from_utf8_lossy(text), 0, &mut found);
    found.remove(file);
    found
}

/// The imports of a text in `dir` that the CLI would follow there but not in an overlay: those out of the directory, by an
/// absolute path or up to the root of a repository that the directory is in.
pub(super) fn lost(dir: &Path, text: &[u8]) -> Vec<String> {
    let Ok(dir) = fs::canonicalize(dir) else { return Vec::new() };
    let root = dir.ancestors().find(|ancestor| ancestor.join(".git").exists()).unwrap_or(&dir);
    let text = String::from_utf8_lossy(text);
    let outside = imports_in(&text).filter(|import| inside(Path::new(""), Path::new(import)).is_none());
    let followed = outside.filter(|import| {
        fs::canonicalize(dir.join(import)).is_ok_and(|path| path.is_file() && path.starts_with(root))
    });
    followed.map(str::to_owned).collect()
}

fn follow(dir: &Path, base: &Path, text: &str, depth: usize, found: &mut BTreeSet<PathBuf>) {
    if depth >= DEEPEST {
        return;
    }
    for import in imports_in(text) {
        let Some(path) = inside(base, Path::new(import)) else { continue };
        let full = dir.join(&path);
        let fits = fs::metadata(&full).is_ok_and(|meta| meta.is_file() && meta.len() <= LARGEST);
        if !fits || found.len() >= MOST || !found.insert(path.clone()) {
            continue;
        }
        if let Ok(text) = fs::read_to_string(&full) {
            follow(dir, path.parent().unwrap_or(Path::new("")), &text, depth + 1, found);
        }
    }
}

/// What looks like an import. The CLI leaves out code; a file too many does no harm.
fn imports_in(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split([' ', '\t', '\n', '\r']);
    words
        .filter_map(|word| word.strip_prefix('@'))
        .filter(|path| path.starts_with(|c: char| c == '.' || c == '/' || c.is_ascii_alphabetic()))
}

/// The path below the directory; none when it leads out of it.
fn inside(base: &Path, path: &Path) -> Option<PathBuf> {
    let mut out = base.to_owned();
    for part in path.components() {
        match part {
            Component::Normal(name) => out.push(name),
            Component::CurDir => {}
            Component::ParentDir => {
                if !out.pop() {
                    return None;
                }
            }
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn imports_are_followed_through_files_and_directories() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("rules")).unwrap();
        fs::write(dir.path().join("a.md"), "see @rules/b.md, mail me@c.md\n@./a.md").unwrap();
        fs::write(dir.path().join("rules/b.md"), "@../c.md @missing.md @../../out.md").unwrap();
        fs::write(dir.path().join("c.md"), "").unwrap();
        let text = b"# @./a.md\n@/etc/passwd @- x@rules/d.md";
        assert_eq!(imported(dir.path(), Path::new("GEMINI.md"), text), BTreeSet::from(["a.md".into()]));
        fs::write(dir.path().join("a.md"), "@rules/b.md").unwrap();
        let expected = ["a.md", "c.md", "rules/b.md"].map(PathBuf::from);
        assert_eq!(imported(dir.path(), Path::new("GEMINI.md"), text), BTreeSet::from(expected));
    }

    #[test]
    fn imports_that_an_overlay_cannot_carry_are_named() {
        let home = tempfile::tempdir().unwrap();
        let dir = home.path().join(".gemini");
        fs::create_dir(&dir).unwrap();
        fs::write(dir.join("in.md"), "").unwrap();
        fs::write(home.path().join("out.md"), "").unwrap();
        let absolute = dir.join("in.md").to_str().unwrap().to_owned();
        let text = format!("@./in.md @../out.md @{absolute} @/etc/passwd @../none.md");
        assert_eq!(lost(&dir, text.as_bytes()), [absolute.as_str()]);
        fs::create_dir(home.path().join(".git")).unwrap();
        assert_eq!(lost(&dir, text.as_bytes()), ["../out.md", &absolute]);
    }

    #[test]
    fn an_endless_chain_ends() {
        let dir = tempfile::tempdir().unwrap();
        for number in 0..20 {
            fs::write(dir.path().join(format!("{number}.md")), format!("@./{}.md", number + 1)).unwrap();
        }
        assert_eq!(imported(dir.path(), Path::new("GEMINI.md"), b"@./0.md").len(), DEEPEST);
    }
}
