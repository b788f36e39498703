//! Folders that travel with a job, as tar archives. The worker checks every entry before it writes the first one.
//!
//! Links come last in an archive, so that nothing is written through one, and none leads out of the folder, neither by itself nor by way
//! of another. `.git` stays at home: its configuration and hooks are programs that git would run.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use alhena_sys::{files, locks};
use parking_lot::Mutex;
use tar::{Archive, Builder, EntryType, Header};

use crate::place::{LeftOut, NEITHER, is_repository};

/// The end of every archive. One without it is truncated.
const END: [u8; 1024] = [0; 1024];
/// No folder that travels is larger: it is held in memory on its way.
const LARGEST: u64 = 512 << 20;
/// The most entries of a folder. Each costs a system call here and another in every copy, however small the message is.
const MOST_ENTRIES: usize = 50_000;
/// The deepest path below a folder, in parts.
const DEEPEST: usize = 100;
/// The longest path below a folder, in bytes.
const LONGEST_PATH: usize = 2048;
/// So many folders are kept for the next job.
const KEPT: usize = 8;

/// An entry of an archive.
#[derive(Debug, PartialEq)]
enum Entry<'a> {
    Dir { path: String },
    File { path: String, executable: bool, content: &'a [u8] },
    Link { path: String, to: String },
}

impl Entry<'_> {
    fn path(&self) -> &str {
        let (Self::Dir { path } | Self::File { path, .. } | Self::Link { path, .. }) = self;
        path
    }
}

/// A folder that is being packed.
struct Packing {
    archive: Builder<Vec<u8>>,
    entries: usize,
    links: Vec<Entry<'static>>,
    left_out: LeftOut,
}

/// Packs a folder. Returns the archive and a warning for each file that was left out.
pub fn pack(folder: &Path) -> io::Result<(Vec<u8>, Vec<String>)> {
    let mut packing = Packing {
        archive: Builder::new(Vec::new()),
        entries: 0,
        links: Vec::new(),
        left_out: LeftOut::of("the copy"),
    };
    pack_below(folder, Path::new(""), 1, &mut packing)?;
    for link in &packing.links {
        write_entry(link, &mut packing.archive)?;
    }
    Ok((packing.archive.into_inner()?, packing.left_out.told()))
}

/// Packs what is in a directory of a folder; the paths have `depth` parts.
fn pack_below(folder: &Path, below: &Path, depth: usize, packing: &mut Packing) -> io::Result<()> {
    let mut names: Vec<_> =
        fs::read_dir(folder.join(below))?.map(|entry| Ok(entry?.file_name())).collect::<io::Result<_>>()?;
    names.sort();
    for name in names.into_iter().filter(|name| !is_repository(name)) {
        let (path, full) = (below.join(&name), folder.join(below).join(&name));
        let told =
            |why: &str| io::Error::new(io::ErrorKind::InvalidInput, format!("{}: {why}", path.display()));
        let text = path.to_str().ok_or_else(|| told("its name is no text"))?.to_owned();
        packing.entries += 1;
        limit(packing.entries, &text, depth)?;
        let kind = full.symlink_metadata()?.file_type();
        if kind.is_symlink() {
            let to = fs::read_link(&full)?;
            if !stays_inside(depth, &to) {
                return Err(told("it is a link that leads out of the folder, which cannot travel"));
            }
            let to = to.to_str().ok_or_else(|| told("it leads to a name that is no text"))?.to_owned();
            packing.links.push(Entry::Link { path: text, to });
        } else if kind.is_dir() {
            write_entry(&Entry::Dir { path: text }, &mut packing.archive)?;
            pack_below(folder, &path, depth + 1, packing)?;
        } else if kind.is_file() {
            let mut file = match files::open(&full) {
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    packing.left_out.add(&path, &error.to_string());
                    continue;
                }
                opened => opened?,
            };
            let mut content = Vec::new();
            (&mut file).take(LARGEST + 1).read_to_end(&mut content)?;
            if (packing.archive.get_ref().len() + content.len()) as u64 > LARGEST {
                let why = format!("the folder has more than {} MB, too much to travel", LARGEST >> 20);
                return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
            }
            let executable = files::mode(&file.metadata()?) & 0o100 != 0;
            write_entry(&Entry::File { path: text, executable, content: &content }, &mut packing.archive)?;
        } else {
            packing.left_out.add(&path, NEITHER);
        }
    }
    Ok(())
}

/// Refuses a folder that exceeds a limit with this entry, which is its `number`th and whose path has `depth` parts.
fn limit(number: usize, path: &str, depth: usize) -> io::Result<()> {
    let why = if number > MOST_ENTRIES {
        format!("the folder has more than {MOST_ENTRIES} entries, which is the limit")
    } else if path.len() > LONGEST_PATH || depth > DEEPEST {
        format!("the folder has a path of more than {DEEPEST} parts or {LONGEST_PATH} bytes")
    } else {
        return Ok(());
    };
    Err(io::Error::new(io::ErrorKind::FileTooLarge, why))
}

/// Appends an entry. Names are written byte for byte: `tar` itself would normalise the target of a link.
fn write_entry(entry: &Entry<'_>, archive: &mut Builder<Vec<u8>>) -> io::Result<()> {
    let (kind, mode, content, to) = match entry {
        Entry::Dir { .. } => (EntryType::Directory, 0o755, &[][..], ""),
        Entry::File { executable: true, content, .. } => (EntryType::Regular, 0o755, *content, ""),
        Entry::File { executable: false, content, .. } => (EntryType::Regular, 0o644, *content, ""),
        Entry::Link { to, .. } => (EntryType::Symlink, 0o777, &[][..], to.as_str()),
    };
    let mut header = Header::new_gnu();
    if !fits(entry.path(), &mut header.as_old_mut().name) {
        write_long_name(EntryType::GNULongName, entry.path(), archive)?;
    }
    if !fits(to, &mut header.as_old_mut().linkname) {
        write_long_name(EntryType::GNULongLink, to, archive)?;
    }
    header.set_mode(mode);
    write_header(header, kind, content, archive)
}

/// Writes a name into a field of a header if it fits there.
fn fits(name: &str, field: &mut [u8]) -> bool {
    field.get_mut(..name.len()).map(|field| field.copy_from_slice(name.as_bytes())).is_some()
}

/// Appends the name of the next entry, as GNU tar does.
fn write_long_name(kind: EntryType, name: &str, archive: &mut Builder<Vec<u8>>) -> io::Result<()> {
    write_header(Header::new_gnu(), kind, &[name.as_bytes(), b"\0"].concat(), archive)
}

fn write_header(
    mut header: Header,
    kind: EntryType,
    content: &[u8],
    archive: &mut Builder<Vec<u8>>,
) -> io::Result<()> {
    header.set_entry_type(kind);
    header.set_size(content.len() as u64);
    header.set_cksum();
    archive.append(&header, content)
}

/// Whether a link whose path has `depth` parts leads to something in the folder, whatever else is in there: it goes up no further than
/// to the folder itself, and not up again behind a name, which could be a link.
fn stays_inside(depth: usize, to: &Path) -> bool {
    let mut up = 0;
    let mut named = false;
    for part in to.components() {
        match part {
            Component::ParentDir if !named => up += 1,
            Component::Normal(_) => named = true,
            Component::CurDir => {}
            _ => return false,
        }
    }
    !to.as_os_str().is_empty() && up < depth
}

/// Unpacks an archive into an empty directory. Checks all entries first: nothing is written of a folder that is refused.
fn unpack(bytes: &[u8], into: &Path) -> io::Result<()> {
    for entry in entries(bytes)? {
        let full = into.join(entry.path());
        match &entry {
            Entry::Dir { .. } => fs::create_dir(&full)?,
            Entry::File { executable, content, .. } => {
                let mode = if *executable { 0o755 } else { 0o644 };
                let mut file = files::create_new(&full, mode)?;
                file.write_all(content)?;
            }
            Entry::Link { to, .. } => files::symlink(to, &full)?,
        }
    }
    Ok(())
}

/// Reads the entries of an archive. Fails if one of them may not be made.
fn entries(bytes: &[u8]) -> io::Result<Vec<Entry<'_>>> {
    let broken = |error: io::Error| wrong(&error.to_string());
    let text =
        |name: &[u8]| String::from_utf8(name.to_vec()).map_err(|_| wrong("a name in it is not valid UTF-8"));
    if !bytes.ends_with(&END) {
        return Err(wrong("the archive is truncated"));
    }
    let mut entries = Vec::new();
    for entry in Archive::new(bytes).entries().map_err(broken)? {
        let entry = entry.map_err(broken)?;
        let path = text(&entry.path_bytes())?;
        limit(entries.len() + 1, &path, 1)?;
        entries.push(match entry.header().entry_type() {
            EntryType::Directory => Entry::Dir { path },
            EntryType::Regular => {
                let start = usize::try_from(entry.raw_file_position()).map_err(io::Error::other)?;
                let size = usize::try_from(entry.size()).map_err(io::Error::other)?;
                let content = bytes.get(start..).and_then(|rest| rest.get(..size));
                let content = content.ok_or_else(|| wrong("a file in it is truncated"))?;
                let executable = entry.header().mode().map_err(broken)? & 0o100 != 0;
                Entry::File { path, executable, content }
            }
            EntryType::Symlink => {
                Entry::Link { path, to: text(&entry.link_name_bytes().unwrap_or_default())? }
            }
            _ => return Err(wrong("an entry is neither a file nor a directory nor a link")),
        });
    }
    check(&entries)?;
    Ok(entries)
}

/// Refuses entries that may not be made. Each has to be in a directory that an earlier entry makes, so that nothing is behind a link. Of
/// each path only the last part is looked at, because the directory has been checked: a folder may have 50,000 paths of 100 parts.
fn check(entries: &[Entry<'_>]) -> io::Result<()> {
    // How many parts the path of each directory has; none for what is no directory.
    let mut depths: HashMap<&str, Option<usize>> = HashMap::new();
    for (number, entry) in (1..).zip(entries) {
        let path = entry.path();
        let (above, name) = match path.rsplit_once('/') {
            Some((directory, name)) => (depths.get(directory).copied().flatten(), name),
            None => (Some(0), path),
        };
        let depth =
            above.ok_or_else(|| wrong("a path leads through something that is no directory of it"))? + 1;
        limit(number, path, depth)?;
        if matches!(name, "" | "." | "..") {
            return Err(wrong("a path leads out of it"));
        }
        if is_repository(name.as_ref()) {
            return Err(wrong("a repository is in it"));
        }
        if matches!(entry, Entry::Link { to, .. } if !stays_inside(depth, Path::new(to))) {
            return Err(wrong("a link leads out of it"));
        }
        let is_dir = matches!(entry, Entry::Dir { .. });
        if depths.insert(path, is_dir.then_some(depth)).is_some() {
            return Err(wrong("a path is there twice"));
        }
    }
    Ok(())
}

fn wrong(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("it is no folder: {why}"))
}

/// The folders that came to a worker, each unpacked once for all jobs that work on it, and gone with the worker.
pub struct Folders {
    dir: PathBuf,
    _lock: File,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    folders: HashMap<String, Arc<Folder>>,
    /// The one that was asked for last is the last.
    order: Vec<String>,
    number: u64,
}

/// A folder that is there as long as somebody has this.
pub struct Folder(PathBuf);

impl Folder {
    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        remove(&self.0);
    }
}

impl Drop for Folders {
    fn drop(&mut self) {
        remove(&self.dir);
    }
}

fn remove(dir: &Path) {
    // What cannot be removed now is removed by the next worker.
    let _left = fs::remove_dir_all(dir);
}

impl Folders {
    /// Below this directory, where what workers left that were killed is removed first.
    pub fn new(below: &Path) -> io::Result<Self> {
        fs::create_dir_all(below)?;
        for name in files::names_in(below)? {
            let dir = below.join(name);
            // Held until it is gone: one who begins there just now then makes it anew.
            if let Ok(Some(_held)) = locks::take_existing(&dir.join("lock")) {
                remove(&dir);
            }
        }
        let dir = tempfile::Builder::new().prefix("worker-").tempdir_in(below)?.keep();
        let lock = locks::take_from_the_dead(&dir.join("lock"))?;
        let lock = lock.ok_or_else(|| io::Error::other("somebody else holds a new directory"))?;
        Ok(Self { dir, _lock: lock, kept: Mutex::default() })
    }

    /// Takes all of it away; a program that ends drops nothing.
    pub fn close(&self) {
        remove(&self.dir);
    }

    /// The folder of this name; `fetch` gets its bytes where it is not there.
    pub fn get(&self, name: &str, fetch: impl FnOnce() -> io::Result<Vec<u8>>) -> io::Result<Arc<Folder>> {
        // The lock is held meanwhile: many who begin at once fetch it once.
        let mut kept = self.kept.lock();
        kept.order.retain(|other| other != name);
        if !kept.folders.contains_key(name) {
            let bytes = fetch()?;
            kept.number += 1;
            let folder = Folder(self.dir.join(kept.number.to_string()));
            fs::create_dir(folder.path())?;
            unpack(&bytes, folder.path())?;
            kept.folders.insert(name.to_owned(), Arc::new(folder));
        }
        kept.order.push(name.to_owned());
        while kept.order.len() > KEPT {
            let oldest = kept.order.remove(0);
            kept.folders.remove(&oldest);
        }
        kept.folders.get(name).cloned().ok_or_else(|| io::Error::other("it is not there"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(dir: &Path) -> Vec<String> {
        let mut all: Vec<String> = alhena_testbed::tools::files_under(dir)
            .iter()
            .map(|path| path.strip_prefix(dir).unwrap().display().to_string())
            .collect();
        all.sort();
        all
    }

    fn packed(entries: &[Entry]) -> Vec<u8> {
        let mut archive = Builder::new(Vec::new());
        entries.iter().for_each(|entry| write_entry(entry, &mut archive).unwrap());
        archive.into_inner().unwrap()
    }

    #[test]
    fn a_folder_is_the_same_on_the_other_side() {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::create_dir_all(from.path().join("a/b/empty")).unwrap();
        fs::write(from.path().join("a/b/file"), b"one\n\0two").unwrap();
        fs::write(from.path().join("run"), b"#!").unwrap();
        files::set_mode(from.path().join("run"), 0o755).unwrap();
        files::symlink("../run", from.path().join("a/link")).unwrap();
        // Names that a header of an archive has no room for, and a target that is not written in the shortest way.
        let long = "n".repeat(120);
        fs::write(from.path().join("a").join(&long), "long").unwrap();
        let target = format!(".//{long}");
        files::symlink(&target, from.path().join("a/to-long")).unwrap();
        let there = listed(from.path());
        let _pipe = alhena_sys::sockets::Listener::bind(from.path().join("pipe")).unwrap();
        fs::create_dir_all(from.path().join(".git/hooks")).unwrap();
        fs::write(from.path().join(".git/config"), "[core]").unwrap();
        let (bytes, left_out) = pack(from.path()).unwrap();
        assert_eq!(
            left_out,
            ["pipe was left out of the copy: it is neither a file nor a directory nor a link"]
        );
        unpack(&bytes, to.path()).unwrap();
        assert_eq!(listed(to.path()), there);
        assert_eq!(fs::read(to.path().join("a/b/file")).unwrap(), b"one\n\0two");
        assert_eq!(fs::read_link(to.path().join("a/link")).unwrap(), Path::new("../run"));
        assert_eq!(fs::read_link(to.path().join("a/to-long")).unwrap().as_os_str(), target.as_str());
        assert_eq!(fs::read(to.path().join("a/to-long")).unwrap(), b"long");
        assert!(to.path().join("a/b/empty").is_dir());
        let mode = |name: &str| files::mode(&to.path().join(name).metadata().unwrap()) & 0o777;
        assert_eq!((mode("run"), mode("a/b/file")), (0o755, 0o644));
    }

    #[test]
    fn what_leads_out_of_a_folder_is_neither_packed_nor_unpacked() {
        let from = tempfile::tempdir().unwrap();
        files::symlink("/etc/passwd", from.path().join("out")).unwrap();
        assert!(pack(from.path()).unwrap_err().to_string().contains("leads out of the folder"));
        let file = |path: &str| Entry::File { path: path.to_owned(), executable: false, content: b"x" };
        let dir = |path: &str| Entry::Dir { path: path.to_owned() };
        let link = |path: &str, to: &str| Entry::Link { path: path.to_owned(), to: to.to_owned() };
        let tricks: Vec<Vec<Entry>> = vec![
            vec![file("/tmp/alhena-out")],
            vec![file("../out")],
            vec![dir("a"), file("a/../../out")],
            vec![file("")],
            vec![link("l", "..")],
            vec![link("l", "/etc")],
            vec![link("l", "")],
            vec![link("l", "."), file("l/x")],
            vec![dir("d"), link("d/l", ".."), file("d/l/x")],
            // Up to the folder itself and, behind that, up once more.
            vec![dir("d"), link("d/up", ".."), link("k", "d/up/../../out")],
            vec![dir("sub"), dir("sub/.Git"), file("sub/.Git/config")],
            vec![link(".git", "sub")],
            vec![file("a"), file("a")],
            vec![link("a", "b"), link("a", "c")],
            vec![file("a"), file("a/x")],
            vec![file("d/x"), dir("d")],
            vec![dir("/d")],
            vec![dir("d/")],
            vec![dir("d"), file("d/.")],
            vec![dir("d"), file("d//x")],
            vec![dir("d"), link("d/l", "../..")],
        ];
        for entries in tricks {
            let root = tempfile::tempdir().unwrap();
            let into = root.path().join("into");
            fs::create_dir(&into).unwrap();
            assert!(unpack(&packed(&entries), &into).is_err(), "{entries:?}");
            assert!(listed(root.path()).iter().all(|path| path.starts_with("into/")), "{entries:?}");
        }
        let cut = packed(&[file("a")]);
        for bytes in [&b""[..], b"nonsense", cut.get(..512).unwrap(), cut.get(..1024).unwrap()] {
            let into = tempfile::tempdir().unwrap();
            assert!(unpack(bytes, into.path()).is_err(), "{}", bytes.len());
            assert_eq!(listed(into.path()), [""; 0]);
        }
    }

    #[test]
    fn what_an_archive_can_hold_beside_files_directories_and_links_is_refused() {
        let refused = |fill: &dyn Fn(&mut Builder<Vec<u8>>) -> io::Result<()>| {
            let mut archive = Builder::new(Vec::new());
            fill(&mut archive).unwrap();
            let into = tempfile::tempdir().unwrap();
            let error = unpack(&archive.into_inner().unwrap(), into.path()).unwrap_err();
            assert_eq!(fs::read_dir(into.path()).unwrap().count(), 0, "{error}");
            error.to_string()
        };
        let file = || Entry::File { path: "a".to_owned(), executable: false, content: b"x" };
        let kinds = [
            EntryType::Link,
            EntryType::Char,
            EntryType::Block,
            EntryType::Fifo,
            EntryType::Continuous,
            EntryType::XGlobalHeader,
            EntryType::new(b'?'),
        ];
        for kind in kinds {
            let error = refused(&|archive| {
                write_entry(&file(), archive)?;
                let mut header = Header::new_gnu();
                header.set_path("b")?;
                header.set_link_name("a")?;
                write_header(header, kind, &[], archive)
            });
            assert!(error.contains("neither a file nor a directory nor a link"), "{kind:?}: {error}");
        }
        // A file with holes takes more room than the archive.
        refused(&|archive| write_header(Header::new_gnu(), EntryType::GNUSparse, &[], archive));
        // The other ways to name an entry and to say how large it is.
        for record in ["15 path=../out\n", "13 path=/out\n", "14 size=99999\n"] {
            refused(&|archive| {
                write_header(Header::new_ustar(), EntryType::XHeader, record.as_bytes(), archive)?;
                write_entry(&file(), archive)
            });
        }
        refused(&|archive| {
            write_long_name(EntryType::GNULongName, "../out", archive)?;
            write_entry(&file(), archive)
        });
        refused(&|archive| {
            write_long_name(EntryType::GNULongLink, "../out", archive)?;
            write_entry(&Entry::Link { path: "a".to_owned(), to: "b".to_owned() }, archive)
        });
    }

    #[test]
    fn a_folder_with_too_many_entries_or_too_deep_a_path_is_refused_before_anything_is_written() {
        let dir = |path: String| Entry::Dir { path };
        let deep = |parts: usize| vec!["d"; parts].join("/");
        let refused: [(Vec<Entry>, &str); 3] = [
            ((0..=MOST_ENTRIES).map(|number| dir(number.to_string())).collect(), "more than 50000 entries"),
            ((1..=DEEPEST + 1).map(|parts| dir(deep(parts))).collect(), "more than 100 parts"),
            (vec![dir("x".repeat(LONGEST_PATH + 1))], "2048 bytes"),
        ];
        for (entries, why) in refused {
            let into = tempfile::tempdir().unwrap();
            let error = unpack(&packed(&entries), into.path()).unwrap_err();
            assert!(error.to_string().contains(why), "{error}");
            assert_eq!(fs::read_dir(into.path()).unwrap().count(), 0, "{why}");
        }
        // The same limits on the way out: the submitter is told, and not each worker.
        let from = tempfile::tempdir().unwrap();
        fs::create_dir_all(from.path().join(deep(DEEPEST + 1))).unwrap();
        assert!(pack(from.path()).unwrap_err().to_string().contains("more than 100 parts"));
    }

    #[test]
    fn folders_of_killed_workers_are_removed_by_the_next_one_and_those_of_the_living_stay() {
        let below = tempfile::tempdir().unwrap();
        fs::create_dir(below.path().join("worker-dead")).unwrap();
        fs::write(below.path().join("worker-dead/lock"), "").unwrap();
        let bytes = packed(&[Entry::File { path: "f".to_owned(), executable: false, content: b"x" }]);
        let living = Folders::new(below.path()).unwrap();
        let folder = living.get("one", || Ok(bytes.clone())).unwrap();
        let again = living.get("one", || Err(io::Error::other("fetched twice"))).unwrap();
        assert_eq!(folder.path(), again.path());
        let next = Folders::new(below.path()).unwrap();
        assert!(folder.path().join("f").is_file());
        assert!(!below.path().join("worker-dead").exists());
        drop((living, next, folder, again));
        assert_eq!(listed(below.path()), [""; 0]);
    }
}
