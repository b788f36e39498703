mod dice;

use std::fs;
use std::process::Command;
use std::sync::mpsc::channel;

use alhena_model::RunOptions;
use alhena_sys::files::symlink;
use serde_json::json;

use self::dice::{Dice, seen};
use super::*;
use crate::job::Mark;
use crate::perform::Stop;

/// A directory for everything of a test.
struct Desk {
    root: tempfile::TempDir,
}

impl Desk {
    fn new() -> Self {
        let desk = Self { root: tempfile::tempdir().unwrap() };
        fs::create_dir(desk.at("dir")).unwrap();
        desk
    }

    fn at(&self, name: &str) -> PathBuf {
        self.root.path().canonicalize().unwrap().join(name)
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.at("dir").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        path
    }

    fn places(&self) -> Places {
        let path = std::env::var_os("PATH").unwrap();
        let variables = [("ALHENA_HOME".into(), self.at("alhena").into_os_string()), ("PATH".into(), path)];
        let environment: Environment =
            variables.into_iter().collect::<Vec<(std::ffi::OsString, _)>>().into_iter().collect();
        Places::of(&environment).unwrap()
    }

    /// Git as a person would use it, with a configuration of nobody.
    fn git(&self, dir: &Path, args: &[&str]) -> String {
        let mut command = Command::new("git");
        command.args(args).current_dir(dir).env_remove("GIT_DIR").env("GIT_CEILING_DIRECTORIES", self.at(""));
        command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
        for who in ["AUTHOR", "COMMITTER"] {
            command.env(format!("GIT_{who}_NAME"), "a").env(format!("GIT_{who}_EMAIL"), "a@example.org");
        }
        let output = command.output().unwrap();
        assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// A repository with all that is in the directory as its only commit.
    fn repository(&self) -> String {
        let dir = self.at("dir");
        self.git(&dir, &["init", "-q", "-b", "main"]);
        self.git(&dir, &["add", "-A"]);
        self.git(&dir, &["commit", "-q", "-m", "one"]);
        self.git(&dir, &["rev-parse", "HEAD"])
    }

    fn checkout(&self, reference: &str) -> Job {
        let checkout = Checkout {
            url: self.at("dir").to_str().unwrap().to_owned(),
            reference: reference.to_owned(),
            dir: PathBuf::new(),
        };
        job(Place::Git(checkout), RunOptions::default())
    }

    fn copy(&self) -> Job {
        let dir = self.at("dir");
        job(Place::Copy, RunOptions { dir: Some(dir), ..RunOptions::default() })
    }

    /// Applies a patch to what is in a directory.
    fn apply(&self, dir: &Path, patch: &str) {
        let file = self.at("patch");
        fs::write(&file, patch).unwrap();
        if !patch.is_empty() {
            self.git(dir, &["apply", "--whitespace=nowarn", file.to_str().unwrap()]);
        }
    }

    /// Names in the directory of places.
    fn left(&self) -> Vec<String> {
        files::names_in(&self.at("alhena/state/places")).unwrap()
    }
}

fn job(place: Place, options: RunOptions) -> Job {
    let (prompt, mark) = ("a".into(), Mark::of(&[]));
    Job { id: "1".into(), line: 1, prompt, options, place, outputs: Outputs::default(), mark }
}

fn watch() -> Watch {
    Watch::new(0, channel().0)
}

#[test]
fn whatever_is_changed_in_a_copy_its_patch_makes_of_the_original_what_the_copy_was() {
    let trials = std::env::var("PATCH_TRIALS").ok().and_then(|count| count.parse().ok()).unwrap_or(24);
    for seed in 1..=trials {
        let (desk, mut dice) = (Desk::new(), Dice(0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(seed)));
        let dir = desk.at("dir");
        (0..dice.roll(25)).for_each(|_| dice.put(&dir));
        let before = seen(&dir);
        let places = desk.places();
        let mut place = places.make(&desk.copy(), &watch()).unwrap().unwrap();
        assert_eq!(place.source(), Some(dir.as_path()));
        assert_eq!(seen(place.dir()), before, "seed {seed}");
        (0..1 + dice.roll(15)).for_each(|_| dice.change(place.dir()));
        let after = seen(place.dir());
        let changes = place.changes(&watch()).unwrap();
        assert_eq!(changes.warnings, Vec::<String>::new(), "seed {seed}");
        assert_eq!(seen(&dir), before, "seed {seed}: the original is not touched");
        let patch = changes.patch.unwrap();
        assert_eq!(patch.is_empty(), after == before, "seed {seed}");
        desk.apply(&dir, &patch);
        assert_eq!(seen(&dir), after, "seed {seed}: {patch}");
        drop(place);
        drop(places);
        assert_eq!(desk.left(), Vec::<String>::new());
    }
}

#[test]
fn a_checkout_has_its_commit_a_repository_of_its_own_and_a_patch() {
    let desk = Desk::new();
    desk.write("src/a.rs", "fn a() {}\n");
    desk.write("crlf.txt", "one\r\ntwo\r\n");
    desk.write(".gitattributes", "* text=auto eol=lf\n*.txt filter=evil\n");
    let dir = desk.at("dir");
    // Bytes are what they are, whatever attributes say.
    desk.git(&dir, &["init", "-q", "-b", "main"]);
    desk.git(&dir, &["-c", "core.attributesFile=/dev/null", "add", "-A"]);
    let commit = desk.repository();
    let places = desk.places();
    for reference in ["main", "HEAD", &commit, commit.get(..10).unwrap(), "main~0"] {
        let mut place = places.make(&desk.checkout(reference), &watch()).unwrap().unwrap();
        assert_eq!(place.commit(), Some(commit.as_str()), "{reference}");
        assert_eq!(place.source(), Some(dir.as_path()));
        let git = |args: &[&str]| desk.git(place.dir(), args);
        assert_eq!(git(&["rev-parse", "HEAD"]), commit);
        assert_eq!(git(&["status", "--porcelain", "--", "src"]), "");
        fs::write(place.dir().join("src/b.rs"), "fn b() {}\n").unwrap();
        // Commits of its own do not hide what it did, and do not reach the original.
        git(&["add", "-A"]);
        git(&["commit", "-q", "-m", "mine"]);
        let patch = place.changes(&watch()).unwrap().patch.unwrap();
        assert!(patch.starts_with("diff --git a/src/b.rs b/src/b.rs\nnew file mode 100644\n"), "{patch}");
    }
    assert_eq!(desk.git(&dir, &["rev-parse", "HEAD"]), commit);
    desk.write("later", "x");
    desk.git(&dir, &["add", "-A"]);
    desk.git(&dir, &["commit", "-q", "-m", "two"]);
    // All jobs of a batch work on the same commit; the next batch asks again.
    let again = |places: &Places| {
        places.make(&desk.checkout("main"), &watch()).unwrap().unwrap().commit().map(str::to_owned)
    };
    assert_eq!(again(&places), Some(commit.clone()));
    drop(places);
    assert_ne!(again(&desk.places()), Some(commit));
    assert_eq!(desk.left(), Vec::<String>::new());
}

#[test]
fn nothing_of_a_repository_runs() {
    let desk = Desk::new();
    let ran = desk.at("ran");
    let program = desk.write("evil.sh", format!("#!/bin/sh\necho \"$0 $*\" >> {}\ncat\n", ran.display()));
    files::set_mode(&program, 0o755).unwrap();
    desk.write(
        ".gitattributes",
        "* filter=evil diff=evil merge=evil text eol=crlf working-tree-encoding=UTF-16\n",
    );
    desk.write(
        ".gitmodules",
        "[submodule \"x\"]\n\tpath = x\n\turl = ext::sh -c evil\n\tupdate = !sh evil.sh\n",
    );
    let dir = desk.at("dir");
    desk.git(&dir, &["init", "-q", "-b", "main"]);
    desk.write(".git/info/attributes", "* -filter -text !working-tree-encoding\n");
    desk.git(&dir, &["add", "-A"]);
    desk.git(&dir, &["commit", "-q", "-m", "one"]);
    let evil = program.to_str().unwrap();
    for (name, value) in [
        ("core.fsmonitor", evil),
        ("core.hooksPath", dir.to_str().unwrap()),
        ("core.sshCommand", evil),
        ("core.pager", evil),
        ("core.alternateRefsCommand", evil),
        ("filter.evil.clean", evil),
        ("filter.evil.smudge", evil),
        ("filter.evil.process", evil),
        ("filter.evil.required", "true"),
        ("diff.evil.command", evil),
        ("diff.evil.textconv", evil),
        ("diff.external", evil),
        ("uploadpack.packObjectsHook", evil),
        ("credential.helper", evil),
    ] {
        desk.git(&dir, &["config", name, value]);
    }
    for hook in ["post-checkout", "post-index-change", "pre-commit", "reference-transaction", "post-merge"] {
        for place in [format!(".git/hooks/{hook}"), hook.to_owned()] {
            fs::copy(&program, desk.write(&place, "")).unwrap();
        }
    }
    let places = desk.places();
    for job in [desk.copy(), desk.checkout("main")] {
        let mut place = places.make(&job, &watch()).unwrap().unwrap();
        fs::write(place.dir().join("evil.sh"), "other\n").unwrap();
        let changes = place.changes(&watch()).unwrap();
        assert!(changes.patch.unwrap().contains("+other\n"), "{:?}", changes.warnings);
        assert!(!ran.exists(), "{:?}: {}", job.place, fs::read_to_string(&ran).unwrap());
    }
    let outside =
        Checkout { url: "ext::sh -c touch% ran".into(), reference: "main".into(), dir: PathBuf::new() };
    let refused =
        places.make(&job(Place::Git(outside), RunOptions::default()), &watch()).map(drop).unwrap_err();
    assert!(refused.message.contains("not allowed"), "{}", refused.message);
    assert!(!ran.exists());
    // Whoever just asks git runs them.
    desk.git(&dir, &["status"]);
    assert!(ran.exists());
}

#[test]
fn what_git_ignores_is_no_change_unless_git_knew_it() {
    let desk = Desk::new();
    desk.write(".gitignore", "target\n*.log\n");
    desk.write("known.log", "one\n");
    desk.write("a", "one\n");
    desk.git(&desk.at("dir"), &["init", "-q"]);
    desk.git(&desk.at("dir"), &["add", "-f", "known.log"]);
    desk.write("other.log", "one\n");
    let places = desk.places();
    let mut place = places.make(&desk.copy(), &watch()).unwrap().unwrap();
    for name in ["known.log", "other.log", "new.log", "target/x", "b"] {
        fs::create_dir_all(place.dir().join("target")).unwrap();
        fs::write(place.dir().join(name), "two\n").unwrap();
    }
    let patch = place.changes(&watch()).unwrap().patch.unwrap();
    let changed: Vec<&str> = patch.lines().filter(|line| line.starts_with("diff ")).collect();
    assert_eq!(changed, ["diff --git a/b b/b", "diff --git a/known.log b/known.log"]);
}

#[test]
fn a_copy_is_whole_private_and_leads_nowhere_else() {
    let desk = Desk::new();
    desk.write("a", "one\n");
    desk.write("sub/inner", "one\n");
    let secret = desk.write("secret", "s");
    files::set_mode(&secret, 0o600).unwrap();
    files::set_mode(desk.at("dir/sub"), 0o555).unwrap();
    let commit = desk.repository();
    let dir = desk.at("dir");
    desk.write(".git/index.lock", "");
    desk.git(&dir, &["worktree", "add", "-q", "--detach", desk.at("dir/tree").to_str().unwrap()]);
    alhena_sys::sockets::Listener::bind(dir.join("socket")).unwrap();
    let _nested = desk.git(&desk.at("dir/tree"), &["init", "-q", desk.at("dir/nested").to_str().unwrap()]);
    desk.write("nested/file", "n\n");
    let places = desk.places();
    let mut place = places.make(&desk.copy(), &watch()).unwrap().unwrap();
    let mode = |name: &str| files::mode(&fs::metadata(place.dir().join(name)).unwrap()) & 0o777;
    assert_eq!(
        (mode("secret"), mode("sub"), mode("a")),
        (0o600, 0o555, files::mode(&fs::metadata(dir.join("a")).unwrap()) & 0o777)
    );
    let modified = |path: PathBuf| fs::metadata(path).unwrap().modified().unwrap();
    assert_eq!(modified(place.dir().join("a")), modified(dir.join("a")));
    assert_eq!(desk.git(place.dir(), &["rev-parse", "HEAD"]), commit);
    assert!(!place.dir().join(".git/index.lock").exists() && place.dir().join("nested/.git/HEAD").exists());
    // Git in the copy of a working tree would work in the original.
    assert!(place.dir().join("tree/a").exists() && !place.dir().join("tree/.git").exists());
    // A nested repository's files are files.
    fs::write(place.dir().join("nested/file"), "changed\n").unwrap();
    desk.git(place.dir(), &["init", "-q", "made"]);
    fs::write(place.dir().join("made/new"), "new\n").unwrap();
    files::set_mode(place.dir().join("made"), 0o000).unwrap();
    let Changes { patch, mut warnings, .. } = place.changes(&watch()).unwrap();
    warnings.sort();
    assert_eq!(
        warnings,
        [
            "socket was left out of the copy: it is neither a file nor a directory nor a link",
            "tree/.git was left out of the copy: its repository is somewhere else",
        ]
    );
    let patch = patch.unwrap();
    let changed: Vec<&str> = patch.lines().filter(|line| line.starts_with("diff ")).collect();
    assert_eq!(changed, ["diff --git a/made/new b/made/new", "diff --git a/nested/file b/nested/file"]);
    files::set_mode(dir.join("sub"), 0o755).unwrap();
}

#[test]
fn a_name_that_git_takes_from_nobody_is_told_and_the_rest_is_in_the_patch() {
    let desk = Desk::new();
    desk.write("git~1", "before\n");
    let places = desk.places();
    let mut place = places.make(&desk.copy(), &watch()).unwrap().unwrap();
    fs::write(place.dir().join("sub git~1"), "fine\n").unwrap();
    fs::write(place.dir().join("git~1"), "after\n").unwrap();
    let Changes { patch, warnings, .. } = place.changes(&watch()).unwrap();
    assert!(warnings.iter().all(|warning| warning.contains("git~1")) && warnings.len() == 2, "{warnings:?}");
    desk.apply(&desk.at("dir"), &patch.unwrap());
    assert_eq!(fs::read_to_string(desk.at("dir/sub git~1")).unwrap(), "fine\n");
}

#[test]
fn a_patch_that_is_too_large_is_told_and_not_given() {
    let desk = Desk::new();
    let places = desk.places();
    let mut place = places.make(&desk.copy(), &watch()).unwrap().unwrap();
    let lines = LARGEST as usize / 8 + 1;
    fs::write(place.dir().join("big"), "1234567\n".repeat(lines)).unwrap();
    let Changes { patch, warnings, .. } = place.changes(&watch()).unwrap();
    assert_eq!(
        (patch, warnings),
        (None, vec!["what it changed is more than 16 MB, so that there is no patch".to_owned()])
    );
}

#[test]
fn places_are_used_again_and_what_the_dead_left_is_swept() {
    let desk = Desk::new();
    desk.write("a", "one\n");
    let places = desk.places();
    let (copy, watch) = (desk.copy(), watch());
    let first = places.make(&copy, &watch).unwrap().unwrap();
    let second = places.make(&copy, &watch).unwrap().unwrap();
    let (one, two) = (first.dir().to_owned(), second.dir().to_owned());
    assert!(one != two && one.ends_with("0/dir") && two.ends_with("1/dir"), "{one:?} {two:?}");
    drop((first, second));
    // A process that was started there still is somewhere.
    assert!(one.is_dir() && fs::read_dir(&one).unwrap().next().is_none());
    let again = places.make(&copy, &watch).unwrap().unwrap();
    assert!([&one, &two].contains(&&again.dir().to_owned()));
    // Others leave alone what somebody holds, and take what nobody does.
    fs::create_dir_all(desk.at("alhena/state/places/7/dir/sub")).unwrap();
    files::set_mode(desk.at("alhena/state/places/7/dir"), 0o500).unwrap();
    desk.places().sweep();
    assert!(again.dir().join("a").exists() && !desk.at("alhena/state/places/7").exists());
    drop(again);
    drop(places);
    assert_eq!(desk.left(), Vec::<String>::new());
}

#[test]
fn a_link_in_the_place_of_a_place_leads_nobody_anywhere() {
    let desk = Desk::new();
    desk.write("a", "one\n");
    desk.repository();
    let places = desk.places();
    for above in [false, true] {
        let mut place = places.make(&desk.copy(), &watch()).unwrap().unwrap();
        let top = place.dir().to_owned();
        let (moved, target) = match above {
            false => (top.clone(), desk.at("dir")),
            true => (top.parent().unwrap().to_owned(), desk.at("")),
        };
        fs::rename(&moved, desk.at("elsewhere")).unwrap();
        symlink(target, &moved).unwrap();
        assert_eq!(place.changes(&watch()).unwrap_err().message, "its place was taken away");
        drop(place);
        assert!(desk.at("dir/a").exists() && desk.at("dir/.git/HEAD").exists());
        slot::remove(&desk.at("elsewhere")).unwrap();
    }
    drop(places);
    assert!(desk.at("dir/a").exists() && desk.at("dir/.git/HEAD").exists());
    assert_eq!(desk.left(), Vec::<String>::new());
}

#[test]
fn who_is_to_stop_makes_no_place_and_leaves_nothing() {
    let desk = Desk::new();
    desk.write("a", "one\n");
    desk.repository();
    let places = desk.places();
    let stopped = watch();
    stopped.stop(Stop::Gently);
    for job in [desk.copy(), desk.checkout("main")] {
        let failure = places.make(&job, &stopped).map(drop).unwrap_err();
        assert_eq!(failure.kind, FailureKind::Cancelled);
    }
    drop(places);
    assert_eq!(desk.left(), Vec::<String>::new());
}

#[test]
fn what_cannot_be_checked_out_is_told() {
    let desk = Desk::new();
    desk.write("a", "one\n");
    symlink("/", desk.at("dir/out")).unwrap();
    desk.repository();
    let places = desk.places();
    let refusal = |url: &str, reference: &str, dir: &str| {
        let checkout = Checkout { url: url.into(), reference: reference.into(), dir: dir.into() };
        let failure =
            places.make(&job(Place::Git(checkout), RunOptions::default()), &watch()).map(drop).unwrap_err();
        failure.message.replace(desk.at("").to_str().unwrap(), "")
    };
    let url = desk.at("dir").to_str().unwrap().to_owned();
    assert_eq!(refusal(&url, "nowhere", ""), "dir has no commit \"nowhere\"");
    assert_eq!(refusal(&url, "main", "b"), "dir: there is no directory b in the repository");
    assert_eq!(refusal(&url, "main", "out/etc"), "dir: there is no directory out/etc in the repository");
    assert!(refusal("/nonexistent/x", "main", "").starts_with("git: /nonexistent/x: No such file"));
    assert!(refusal(desk.at("alhena").to_str().unwrap(), "main", "").contains("cannot be fetched"));
    let told = refusal("https://user:pass@127.0.0.1:9/x.git", "main", "");
    assert!(told.contains("https://127.0.0.1:9/x.git cannot be fetched") && !told.contains("pass"), "{told}");
}

#[test]
fn outputs_are_taken_where_the_job_worked_unless_it_put_a_link_there() {
    let desk = Desk::new();
    desk.write("sub/made.txt", "made\n");
    desk.repository();
    let places = desk.places();
    let wanted = Outputs::of(json!(["made.txt", "etc"])).unwrap();
    let mut checkout = desk.checkout("main");
    let Place::Git(inner) = &mut checkout.place else { panic!() };
    inner.dir = PathBuf::from("sub");
    let place = places.make(&checkout, &watch()).unwrap().unwrap();
    assert_eq!(place.source(), Some(desk.at("dir/sub").as_path()));
    let taken = place.outputs(&wanted, &watch()).unwrap();
    assert_eq!(taken.files.iter().map(|file| file.path.as_str()).collect::<Vec<_>>(), ["made.txt"]);
    assert_eq!(taken.warnings, ["outputs: there is no file \"etc\""]);
    fs::remove_dir_all(place.dir()).unwrap();
    symlink("/etc", place.dir()).unwrap();
    assert_eq!(place.outputs(&wanted, &watch()).unwrap_err().message, "its place was taken away");
}

#[test]
fn an_output_that_is_a_pipe_or_a_socket_is_told_as_what_it_is() {
    let desk = Desk::new();
    desk.write("a", "a");
    let places = desk.places();
    let mut place = places.make(&desk.copy(), &watch()).unwrap().unwrap();
    let at = |name: &str| place.dir().join(name);
    fs::create_dir(at("deep")).unwrap();
    for pipe in ["pipe", "deep/pipe", "unasked"] {
        files::create_pipe(&at(pipe)).unwrap();
    }
    let _socket = alhena_sys::sockets::Listener::bind(at("s")).unwrap();
    assert_eq!(place.changes(&watch()).unwrap().warnings, Vec::<String>::new());
    let wanted = Outputs::of(json!(["pipe", "deep/*", "s", "none"])).unwrap();
    let mut warnings = place.outputs(&wanted, &watch()).unwrap().warnings;
    warnings.sort();
    let told = |path: &str| {
        format!("{path} was left out of the outputs: it is neither a file nor a directory nor a link")
    };
    let none = "outputs: there is no file \"none\"".to_owned();
    assert_eq!(warnings, [told("deep/pipe"), none, told("pipe"), told("s")]);
}
