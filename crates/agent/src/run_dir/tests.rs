use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use super::*;

/// A run that was killed: its directories are there, and nobody holds them.
fn killed(runs: &Path) -> (PathBuf, PathBuf, String) {
    let run = RunDir::create(runs).unwrap();
    let (temporary, mark) = (run.temporary().to_owned(), run.mark().to_owned());
    let RunDir { dir, lock, .. } = &run;
    let path = dir.path().to_owned();
    // What a process that is killed does not do: drop.
    let kept = path.with_extension("kept");
    fs::rename(&path, &kept).unwrap();
    let aside = temporary.with_extension("kept");
    fs::rename(&temporary, &aside).unwrap();
    locks::unlock(lock).unwrap();
    drop(run);
    fs::rename(kept, &path).unwrap();
    fs::rename(aside, &temporary).unwrap();
    (path, temporary, mark)
}

#[test]
fn what_a_killed_run_left_goes_with_the_next_and_what_is_alive_stays() {
    let root = tempfile::tempdir().unwrap();
    let (path, temporary, mark) = killed(root.path());
    let alive = RunDir::create(&root.path().join("other")).unwrap();
    let child = Command::new("sleep").arg("60").env(crate::env::ALHENA_RUN, &mark).spawn().unwrap();
    assert_eq!(holder(root.path(), &mark), Holder::Nobody);
    let next = RunDir::create(root.path()).unwrap();
    assert!(!path.exists() && !temporary.exists());
    let ended = std::process::Child::wait_with_output(child).unwrap();
    assert!(!ended.status.success(), "its process is ended too");
    clear_away(root.path());
    clear_away(&root.path().join("other"));
    for run in [&next, &alive] {
        assert!(run.path().is_dir() && run.temporary().join(MARK).is_file());
    }
    assert_eq!(holder(root.path(), next.mark()), Holder::Somebody);
    let (path, temporary) = (next.path().to_owned(), next.temporary().to_owned());
    drop(next);
    assert!(!path.exists() && !temporary.exists());
}

#[test]
fn what_cannot_be_removed_yet_is_known_to_the_next_run() {
    for _ in 0..10 {
        let root = tempfile::tempdir().unwrap();
        let run = RunDir::create(root.path()).unwrap();
        let (path, temporary, mark) =
            (run.path().to_owned(), run.temporary().to_owned(), run.mark().to_owned());
        let (begun, over) = (std::sync::Barrier::new(2), AtomicBool::new(false));
        std::thread::scope(|scope| {
            let busy = scope.spawn(|| {
                begun.wait();
                let mut names = 0..u64::MAX;
                names.all(|name| {
                    !over.load(Ordering::Relaxed) && File::create(temporary.join(name.to_string())).is_ok()
                })
            });
            begun.wait();
            drop(run);
            let known = !temporary.exists() || (path.join(LOCK).exists() && is_of(&temporary, &mark));
            over.store(true, Ordering::Relaxed);
            busy.join().unwrap();
            assert!(known);
        });
        clear_away(root.path());
        assert!(!path.exists() && !temporary.exists());
    }
}

#[test]
fn a_link_in_the_place_of_temporary_files_goes_and_what_it_leads_to_stays() {
    let root = tempfile::tempdir().unwrap();
    let persons = tempfile::tempdir().unwrap();
    fs::write(persons.path().join("thesis"), "mine").unwrap();
    fs::write(persons.path().join(MARK), "mine too").unwrap();
    let run = RunDir::create(root.path()).unwrap();
    let (path, temporary) = (run.path().to_owned(), run.temporary().to_owned());
    fs::remove_dir_all(&temporary).unwrap();
    files::symlink(persons.path(), &temporary).unwrap();
    drop(run);
    assert!(!path.exists() && fs::symlink_metadata(&temporary).is_err());
    assert!(persons.path().join("thesis").exists() && persons.path().join(MARK).exists());
}

#[test]
fn what_was_killed_while_it_was_being_marked_is_known_by_its_record() {
    let root = tempfile::tempdir().unwrap();
    for beginning in [None, Some(0), Some(3)] {
        let (path, temporary, mark) = killed(root.path());
        fs::remove_file(temporary.join(MARK)).unwrap();
        if let Some(length) = beginning {
            fs::write(temporary.join(MARK), &mark.as_bytes()[..length]).unwrap();
        }
        clear_away(root.path());
        assert!(!path.exists() && !temporary.exists(), "{beginning:?}");
    }
}

/// A person's directory, and one of a container that shares the place for temporary files, are nobody's leftovers.
#[test]
fn a_directory_without_the_mark_stays_whatever_its_name() {
    let root = tempfile::tempdir().unwrap();
    let (path, temporary, _) = killed(root.path());
    fs::remove_file(temporary.join(MARK)).unwrap();
    fs::write(temporary.join("thesis"), "mine").unwrap();
    let persons = std::env::temp_dir().join(format!("alhena-4{:09}", std::process::id()));
    let made = fs::create_dir(&persons).is_ok();
    clear_away(root.path());
    assert!(!path.exists());
    assert!(temporary.join("thesis").exists() && persons.exists());
    fs::remove_dir_all(temporary).unwrap();
    if made {
        fs::remove_dir(persons).unwrap();
    }
}

#[test]
fn a_mark_that_is_no_name_of_a_run_is_of_nobody_known() {
    let root = tempfile::tempdir().unwrap();
    for mark in ["", "../x", "1-none"] {
        assert_eq!(holder(root.path(), mark), Holder::Unknown, "{mark:?}");
    }
}
