//! Trees that change, and what a scan says of them.

use std::fs;
use std::process::Command;

use alhena_sys::files::{self, symlink};

use super::*;

/// A directory with a few old files in it.
struct Tree {
    root: tempfile::TempDir,
}

impl Tree {
    fn with(files: &[&str]) -> Self {
        let tree = Self { root: tempfile::tempdir().unwrap() };
        for file in files {
            tree.write(file, "old");
        }
        tree
    }

    fn at(&self, path: &str) -> PathBuf {
        self.root.path().join(path)
    }

    fn write(&self, path: &str, text: &str) {
        fs::create_dir_all(self.at(path).parent().unwrap()).unwrap();
        fs::write(self.at(path), text).unwrap();
    }

    fn git(&self, arguments: &[&str]) {
        let mut command = Command::new("git");
        for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"] {
            command.env_remove(name);
        }
        command.args(["-c", "user.name=t", "-c", "user.email=t@t", "-c", "init.defaultBranch=main"]);
        let output = command.args(arguments).current_dir(self.root.path()).output().unwrap();
        assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    }

    fn commit(&self) {
        self.git(&["init", "-q"]);
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "--allow-empty", "-m", "old"]);
    }

    /// A time after everything so far and before everything from now on.
    fn start(&self) -> SystemTime {
        std::thread::sleep(Duration::from_millis(30));
        scan_start(self.root.path(), Instant::now())
    }
}

fn paths(names: &[&str]) -> Vec<PathBuf> {
    names.iter().map(PathBuf::from).collect()
}

fn changes(created: &[&str], modified: &[&str]) -> Changes {
    Changes { created: paths(created), modified: paths(modified), ..Changes::default() }
}

#[test]
fn nothing_changed_is_nothing_found() {
    let tree = Tree::with(&["a", "d/b"]);
    let since = tree.start();
    assert_eq!(scan(tree.root.path(), since), Changes::default());
}

#[test]
fn created_and_modified_files_are_told_apart() {
    let tree = Tree::with(&["a", "d/b", "d/c"]);
    let since = tree.start();
    tree.write("d/b", "new");
    tree.write("new/file", "new");
    tree.write(".hidden", "new");
    symlink("a", tree.at("link")).unwrap();
    fs::create_dir(tree.at("empty")).unwrap();
    assert_eq!(scan(tree.root.path(), since), changes(&[".hidden", "link", "new/file"], &["d/b"]));
}

#[test]
fn change_with_an_old_modification_time_is_found() {
    let tree = Tree::with(&["a", "b"]);
    let since = tree.start();
    let old = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    tree.write("a", "new");
    fs::File::options().write(true).open(tree.at("a")).unwrap().set_modified(old).unwrap();
    files::set_mode(tree.at("b"), 0o700).unwrap();
    assert_eq!(scan(tree.root.path(), since), changes(&[], &["a", "b"]));
}

#[test]
fn ignored_files_do_not_count_and_neither_does_gits_own_directory() {
    let tree = Tree::with(&[".gitignore", "sub/.gitignore"]);
    tree.write(".gitignore", "target/\n*.log\n");
    tree.write("sub/.gitignore", "!keep.log\n");
    let since = tree.start();
    for file in ["target/x", "a.log", "sub/keep.log", "sub/b.log", "node_modules/m/index.js", ".git/index"] {
        tree.write(file, "new");
    }
    assert_eq!(scan(tree.root.path(), since), changes(&["node_modules/m/index.js", "sub/keep.log"], &[]));
}

#[test]
fn rules_above_the_root_count_up_to_the_repository_and_a_nested_one_has_its_own() {
    let tree = Tree::with(&["repo/sub/a", "repo/sub/nested/b"]);
    tree.write(".gitignore", "*.above\n");
    tree.write("repo/.gitignore", "*.log\n/sub/anchored\n");
    tree.write("repo/.git/info/exclude", "*.private\n");
    tree.write("repo/sub/nested/.git", "gitdir: elsewhere\n");
    let since = tree.start();
    for file in
        ["a.log", "anchored", "x.private", "x.above", "nested/b.log", "nested/x.private", "deep/anchored"]
    {
        tree.write(&format!("repo/sub/{file}"), "new");
    }
    let expected = ["deep/anchored", "nested/b.log", "nested/x.private", "x.above"];
    assert_eq!(scan(&tree.at("repo/sub"), since).created, paths(&expected));
}

#[test]
fn gitignore_that_is_a_pipe_or_a_link_is_no_file_of_rules() {
    let tree = Tree::with(&["rules"]);
    tree.write("rules", "*\n");
    symlink("rules", tree.at(".gitignore")).unwrap();
    fs::create_dir(tree.at("d")).unwrap();
    let made = Command::new("mkfifo").arg(tree.at("d/.gitignore")).status().unwrap();
    assert!(made.success());
    let since = tree.start();
    tree.write("d/a", "new");
    assert_eq!(scan(tree.root.path(), since), changes(&["d/a"], &[]));
}

#[test]
fn git_says_what_was_deleted_and_what_was_only_written_anew() {
    let tree =
        Tree::with(&["kept", "gone", "d/gone", "d/kept", "whole/x/y", "replaced", "name with\nnewline é"]);
    tree.commit();
    let since = tree.start();
    fs::remove_file(tree.at("gone")).unwrap();
    fs::remove_file(tree.at("d/gone")).unwrap();
    fs::remove_file(tree.at("name with\nnewline é")).unwrap();
    fs::remove_dir_all(tree.at("whole")).unwrap();
    tree.write("temporary", "new");
    fs::rename(tree.at("temporary"), tree.at("replaced")).unwrap();
    tree.write("new", "new");
    let expected = Changes {
        created: paths(&["new"]),
        modified: paths(&["replaced"]),
        deleted: paths(&["d/gone", "gone", "name with\nnewline é", "whole/x/y"]),
        deletions_known: true,
        ..Changes::default()
    };
    assert_eq!(scan(tree.root.path(), since), expected);
    // Seen from below, names are relative to there.
    let below = scan(&tree.at("d"), since);
    assert_eq!(below.deleted, paths(&["gone"]));
}

#[test]
fn file_that_was_missing_before_does_not_count_as_deleted() {
    let tree = Tree::with(&["d/gone", "d/kept", "sparse/a", "other"]);
    tree.commit();
    fs::remove_file(tree.at("d/gone")).unwrap();
    tree.git(&["update-index", "--skip-worktree", "sparse/a"]);
    let since = tree.start();
    tree.write("d/kept", "new");
    fs::remove_file(tree.at("sparse/a")).unwrap();
    let found = scan(tree.root.path(), since);
    assert_eq!((found.deleted, found.modified, found.deletions_known), (vec![], paths(&["d/kept"]), true));
}

#[test]
fn moved_directory_takes_its_files_along() {
    let tree = Tree::with(&["src/a", "src/deep/b", "other/c"]);
    tree.commit();
    let since = tree.start();
    fs::rename(tree.at("src"), tree.at("lib")).unwrap();
    let found = scan(tree.root.path(), since);
    assert_eq!(found.created, paths(&["lib/a", "lib/deep/b"]));
    assert_eq!(found.deleted, paths(&["src/a", "src/deep/b"]));
    assert_eq!(found.modified, paths(&[]));
}

#[test]
fn directory_whose_permissions_changed_is_not_taken_for_a_new_one() {
    let tree = Tree::with(&["d/a"]);
    tree.commit();
    let since = tree.start();
    files::set_mode(tree.at("d"), 0o700).unwrap();
    let found = scan(tree.root.path(), since);
    assert_eq!((found.created, found.deleted), (vec![], vec![]));
}

#[test]
fn links_are_not_followed_out_of_the_tree_but_the_root_may_be_one() {
    let outside = Tree::with(&[]);
    let tree = Tree::with(&["a"]);
    symlink(outside.root.path(), tree.at("out")).unwrap();
    symlink(tree.root.path(), outside.at("in")).unwrap();
    let since = tree.start();
    outside.write("b", "new");
    tree.write("a", "new");
    assert_eq!(scan(tree.root.path(), since), changes(&[], &["a"]));
    assert_eq!(scan(&outside.at("in"), since), changes(&[], &["a"]));
}

#[test]
fn excluded_paths_do_not_count() {
    let tree = Tree::with(&["record/events", "gone/x"]);
    tree.commit();
    let since = tree.start();
    fs::remove_file(tree.at("record/events")).unwrap();
    tree.write("record/other", "new");
    tree.write("a", "new");
    let options = ScanOptions { exclude: vec![tree.at("record")], ..ScanOptions::default() };
    let found = options.scan(tree.root.path(), since);
    assert_eq!((found.created, found.deleted), (paths(&["a"]), vec![]));
}

#[test]
fn bounds_end_a_scan_and_say_so() {
    let tree = Tree::with(&[]);
    let since = tree.start();
    for number in 0..50 {
        tree.write(&format!("d/{number}"), "new");
    }
    let few = ScanOptions { most: 10, ..ScanOptions::default() }.scan(tree.root.path(), since);
    assert_eq!((few.created.len(), few.truncated), (10, true));
    let exact = ScanOptions { most: 50, ..ScanOptions::default() }.scan(tree.root.path(), since);
    assert_eq!((exact.created.len(), exact.truncated), (50, false));
    let late = ScanOptions { limit: Duration::ZERO, ..ScanOptions::default() }.scan(tree.root.path(), since);
    assert!(late.truncated);
}

#[test]
fn directory_that_may_not_be_read_is_counted() {
    let tree = Tree::with(&["closed/a", "open/b"]);
    let since = tree.start();
    tree.write("open/b", "new");
    files::set_mode(tree.at("closed"), 0o000).unwrap();
    let found = scan(tree.root.path(), since);
    // Root may read it all the same.
    let expected = usize::from(fs::read_dir(tree.at("closed")).is_err());
    files::set_mode(tree.at("closed"), 0o700).unwrap();
    assert_eq!((found.unreadable, found.modified), (expected, paths(&["open/b"])));
}

#[test]
fn missing_root_is_no_panic() {
    let found = scan(Path::new("/nonexistent/directory"), SystemTime::UNIX_EPOCH);
    assert_eq!(found, Changes { unreadable: 1, ..Changes::default() });
}

#[test]
fn tree_that_changes_meanwhile_is_survived() {
    let tree = Tree::with(&["a"]);
    let since = tree.start();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0..200 {
                let directory = tree.at(&format!("busy{}", round % 7));
                let _racing = fs::create_dir_all(directory.join("x/y"));
                let _racing = fs::write(directory.join("x/y/z"), "new");
                let _racing = fs::remove_dir_all(directory);
            }
        });
        for _ in 0..20 {
            assert_eq!(scan(tree.root.path(), since).unreadable, 0);
        }
    });
}

#[test]
fn one_path_can_be_looked_at() {
    let tree = Tree::with(&["a"]);
    let since = tree.start();
    let old = verify(&tree.at("a"));
    assert_eq!((old.exists, old.size, old.changed_since(since)), (true, 3, false));
    tree.write("b", "longer");
    let new = verify(&tree.at("b"));
    assert_eq!((new.exists, new.size, new.changed_since(since)), (true, 6, true));
    assert_eq!(new.created_since(since), new.born.is_some());
    assert_eq!(verify(&tree.at("c")), DiskState::default());
    symlink("nowhere", tree.at("dangling")).unwrap();
    assert_eq!(verify(&tree.at("dangling")), DiskState::default());
}
