//! What is read here is what git itself lists, and no foreign file is too much.

use std::io::Write;
use std::process::{Command, Stdio};
use std::time::Duration;

use proptest::prelude::*;

use super::*;

/// A repository of real git's, with no configuration but its own.
struct Repository(tempfile::TempDir);

impl Repository {
    fn new(options: &[&str]) -> Self {
        let repository = Self(tempfile::tempdir().unwrap());
        repository.git(&[&["init", "-q"], options].concat());
        repository
    }

    fn at(&self, path: &str) -> PathBuf {
        self.0.path().canonicalize().unwrap().join(path)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("git");
        command.args(arguments).current_dir(self.0.path());
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap()).env("HOME", self.0.path());
        for role in ["AUTHOR", "COMMITTER"] {
            command.env(format!("GIT_{role}_NAME"), "t").env(format!("GIT_{role}_EMAIL"), "t@t");
        }
        command
    }

    fn git(&self, arguments: &[&str]) -> Vec<u8> {
        let output = self.command(arguments).output().unwrap();
        assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    }

    fn write(&self, path: &str) -> &Self {
        std::fs::create_dir_all(self.at(path).parent().unwrap()).unwrap();
        std::fs::write(self.at(path), path).unwrap();
        self
    }

    fn commit(&self) {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "--allow-empty", "-m", "x"]);
    }

    /// What git says of `dir`: names, and whether a file is expected.
    fn listed(&self, dir: &str, options: &[&str]) -> Vec<(Vec<u8>, bool)> {
        let arguments = [&["-C", dir, "ls-files", "-z", "-t", "--cached"], options].concat();
        let mut all: Vec<_> = self
            .git(&arguments)
            .split(|byte| *byte == 0)
            .filter_map(|record| record.split_at_checked(2))
            .map(|(tag, name)| (name.to_vec(), tag != b"S "))
            .collect();
        all.dedup();
        all
    }

    /// Puts files into the index by name alone.
    fn add_names(&self, names: &[Vec<u8>]) {
        let mut child =
            self.command(&["update-index", "-z", "--index-info"]).stdin(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        for name in names {
            let id = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391";
            let line = [format!("100644 {id}\t").as_bytes(), name, b"\0"].concat();
            stdin.write_all(&line).unwrap();
        }
        drop(stdin);
        assert!(child.wait().unwrap().success());
    }
}

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(60)
}

fn read(root: &Path) -> Option<Vec<(Vec<u8>, bool)>> {
    let mut index = of(root, soon())?;
    let mut all = Vec::new();
    index.each(|entry| all.push((entry.name.to_vec(), entry.expected))).unwrap();
    Some(all)
}

fn assert_same(repository: &Repository, what: &str) {
    let expected = repository.listed(".", &["--sparse"]);
    assert_eq!(read(&repository.at("")), Some(expected), "{what}");
}

#[test]
fn every_version_and_both_hashes_are_read_as_git_reads_them() {
    for options in [&[][..], &["--object-format=sha256"]] {
        let repository = Repository::new(options);
        assert_eq!(read(&repository.at("")), Some(vec![]), "no index yet");
        repository.git(&["read-tree", "--empty"]);
        assert_same(&repository, "empty");
        for path in
            ["a", "ab", "d/deep/er/file", "d/deeper", "name with\nnewline é", "x.y", "x/y", "12345678"]
        {
            repository.write(path);
        }
        repository.commit();
        for version in ["2", "3", "4"] {
            repository.git(&["update-index", "--index-version", version]);
            assert_same(&repository, version);
            repository.git(&["update-index", "--skip-worktree", "d/deeper"]);
            assert_same(&repository, "skipped");
            repository.write(&format!("new-{version}")).git(&["add", "-N", "."]);
            assert_same(&repository, "intended");
            repository.git(&["update-index", "--no-skip-worktree", "d/deeper"]);
        }
    }
}

#[test]
fn extensions_conflicts_and_links_are_read_as_git_reads_them() {
    let repository = Repository::new(&["-b", "main"]);
    for path in ["kept/a", "left/out/b", "left/c", "both"] {
        repository.write(path);
    }
    symlink_to(&repository, "kept/a", "link");
    repository.commit();
    repository.git(&["update-index", "--untracked-cache"]);
    repository.git(&["status"]);
    assert_same(&repository, "untracked cache");

    repository.git(&["checkout", "-q", "-b", "other"]);
    std::fs::write(repository.at("both"), "other").unwrap();
    repository.commit();
    repository.git(&["checkout", "-q", "main"]);
    std::fs::write(repository.at("both"), "main").unwrap();
    repository.commit();
    assert!(!repository.command(&["merge", "-q", "other"]).output().unwrap().status.success());
    assert_same(&repository, "conflict");
    repository.git(&["merge", "--abort"]);

    repository.git(&["sparse-checkout", "set", "--cone", "--sparse-index", "kept"]);
    let listed = read(&repository.at("")).unwrap();
    assert!(listed.contains(&(b"left/".to_vec(), false)), "{listed:?}");
    assert_same(&repository, "sparse");

    repository.git(&["sparse-checkout", "disable"]);
    repository.git(&["update-index", "--split-index"]);
    assert_eq!(read(&repository.at("")), None, "half of a split index is not the whole");
}

fn symlink_to(repository: &Repository, target: &str, link: &str) {
    files::symlink(target, repository.at(link)).unwrap();
}

#[test]
fn second_working_tree_and_a_submodule_have_an_index_of_their_own() {
    let inner = Repository::new(&[]);
    inner.write("inside").commit();
    let outer = Repository::new(&[]);
    outer.write("outside").commit();
    outer.git(&["worktree", "add", "-q", "second"]);
    let from = inner.at("").to_str().unwrap().to_owned();
    outer.git(&["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", &from, "module"]);
    for dir in ["second", "module"] {
        assert_eq!(read(&outer.at(dir)), Some(outer.listed(dir, &[])), "{dir}");
    }
    assert_same(&outer, "with a submodule");
}

#[test]
fn long_names_are_read_and_names_that_lead_elsewhere_are_not() {
    let long = |length: usize| vec![b'x'; length];
    for version in ["2", "4"] {
        let repository = Repository::new(&[]);
        repository.add_names(&[long(4094), long(4095), long(4096), long(9000), b"\xff\xfe".to_vec()]);
        repository.git(&["update-index", "--index-version", version]);
        assert_same(&repository, version);
    }
    for name in ["../up", "a/../../up", "/etc/passwd", ".git/hooks/x", "a//b"] {
        let repository = Repository::new(&[]);
        let stand_in: Vec<u8> =
            name.bytes().map(|byte| if byte == b'/' || byte == b'.' { b'z' } else { byte }).collect();
        repository.add_names(std::slice::from_ref(&stand_in));
        let mut bytes = std::fs::read(repository.at(".git/index")).unwrap();
        let at = memchr::memmem::find(&bytes, &stand_in).unwrap();
        bytes.splice(at..at + name.len(), name.bytes());
        std::fs::write(repository.at(".git/index"), bytes).unwrap();
        assert_eq!(read(&repository.at("")), None, "{name}");
    }
}

#[test]
fn what_is_no_index_is_not_known_and_keeps_nobody_waiting() {
    let repository = Repository::new(&[]);
    let index = repository.at(".git/index");
    for bytes in [&b""[..], b"DIRC", b"DIRC\0\0\0\x02\xff\xff\xff\xff", b"DIRC\0\0\0\x09\0\0\0\0"] {
        std::fs::write(&index, bytes).unwrap();
        assert_eq!(read(&repository.at("")), None, "{bytes:?}");
    }
    std::fs::remove_file(&index).unwrap();
    assert!(Command::new("mkfifo").arg(&index).status().unwrap().success());
    assert_eq!(read(&repository.at("")), None, "a pipe");
    std::fs::remove_file(&index).unwrap();
    repository.write("a").commit();
    let too_late = Instant::now().checked_sub(Duration::from_secs(1)).unwrap();
    assert!(of(&repository.at(""), too_late).is_none(), "too late");
}

/// Ways in which a repository makes git run a program, as `git ls-files` and its like meet them.
fn trap(repository: &Repository) -> PathBuf {
    let marker = repository.at("ran");
    let script = repository.at(".git/trap");
    std::fs::write(&script, format!("#!/bin/sh\ntouch {}\n", marker.display())).unwrap();
    files::set_mode(&script, 0o755).unwrap();
    let script = script.to_str().unwrap();
    std::fs::write(repository.at(".git/included"), format!("[core]\nfsmonitor = {script}\n")).unwrap();
    for (name, value) in [
        ("remote.origin.url", format!("ext::{script}")),
        ("remote.origin.promisor", "true".to_owned()),
        ("extensions.partialClone", "origin".to_owned()),
        ("protocol.ext.allow", "always".to_owned()),
        ("core.fsmonitor", script.to_owned()),
        ("core.hooksPath", repository.at(".git").to_str().unwrap().to_owned()),
        ("core.pager", script.to_owned()),
        ("core.sshCommand", script.to_owned()),
        ("core.editor", script.to_owned()),
        ("pager.ls-files", script.to_owned()),
        ("alias.ls-files", format!("!{script}")),
        ("credential.helper", script.to_owned()),
        ("diff.external", script.to_owned()),
        ("diff.trap.textconv", script.to_owned()),
        ("filter.trap.clean", script.to_owned()),
        ("filter.trap.smudge", script.to_owned()),
        ("include.path", "included".to_owned()),
        ("safe.directory", "*".to_owned()),
    ] {
        repository.git(&["config", name, &value]);
    }
    for hook in ["post-index-change", "fsmonitor-watchman", "post-checkout", "reference-transaction"] {
        std::fs::copy(script, repository.at(".git/hooks").join(hook)).unwrap();
    }
    std::fs::write(repository.at(".gitattributes"), "* filter=trap diff=trap\n").unwrap();
    marker
}

#[test]
fn repository_that_makes_git_run_its_own_programs_runs_none_here() {
    let repository = Repository::new(&[]);
    repository.write("kept/a").write("left/b").commit();
    repository.git(&["sparse-checkout", "set", "--cone", "--sparse-index", "kept"]);
    // The contents of the directory that is left out are elsewhere: git has to fetch them before it can list them.
    let tree = String::from_utf8(repository.git(&["rev-parse", "HEAD:left"])).unwrap();
    let (first, rest) = tree.trim().split_at(2);
    std::fs::remove_file(repository.at(".git/objects").join(first).join(rest)).unwrap();
    let marker = trap(&repository);

    let since = super::super::scan_start(&repository.at(""), std::time::Instant::now());
    std::fs::remove_file(repository.at("kept/a")).unwrap();
    let changes = super::super::scan(&repository.at(""), since);
    assert_eq!(changes.deleted, [PathBuf::from("kept/a")]);
    assert!(changes.deletions_known);
    assert!(!marker.exists(), "something of the repository's ran");

    // The trap is a real one.
    let _failed = repository.command(&["ls-files", "-z", "-t", "--cached"]).output().unwrap();
    assert!(marker.exists(), "git itself did not fall for it");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn any_names_are_read_as_git_reads_them(
        names in proptest::collection::btree_set("[a-c]{1,3}(/[a-cé ]{1,4}){0,3}", 1..40),
        version in 2_u8..=4,
    ) {
        let repository = Repository::new(&[]);
        let names: Vec<Vec<u8>> = names.into_iter().map(String::into_bytes).collect();
        repository.add_names(&names);
        repository.git(&["update-index", "--index-version", &version.to_string()]);
        assert_same(&repository, "random names");
    }
}

proptest! {
    #[test]
    fn damaged_index_is_told_or_read_and_never_a_panic(
        version in 2_u8..=4,
        damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        cut in any::<prop::sample::Index>(),
    ) {
        static INDEXES: std::sync::OnceLock<Vec<Vec<u8>>> = std::sync::OnceLock::new();
        let indexes = INDEXES.get_or_init(|| {
            let repository = Repository::new(&[]);
            repository.write("a/b").write("a/bc").write("d").commit();
            ["2", "3", "4"].map(|version| {
                repository.git(&["update-index", "--index-version", version]);
                std::fs::read(repository.at(".git/index")).unwrap()
            }).to_vec()
        });
        let mut bytes = indexes[usize::from(version) - 2].clone();
        for (at, byte) in &damage {
            let at = at.index(bytes.len());
            bytes[at] = *byte;
        }
        if damage.len() % 2 == 1 {
            bytes.truncate(cut.index(bytes.len()));
        }
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join(".git")).unwrap();
        std::fs::write(root.path().join(".git/HEAD"), "x").unwrap();
        std::fs::write(root.path().join(".git/index"), &bytes).unwrap();
        for (name, _) in read(root.path()).unwrap_or_default() {
            let path = files::path_from_bytes(&name);
            prop_assert!(path.is_relative() && !path.as_os_str().as_encoded_bytes().starts_with(b".."));
        }
    }
}
