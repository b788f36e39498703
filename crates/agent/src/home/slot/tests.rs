use super::*;
use crate::home::plan::{ContextFile, Layout};

fn plan(slot: &Path, user_home: &Path) -> FinishPlan {
    FinishPlan {
        mark: None,
        run: "this run".into(),
        slot: slot.to_owned(),
        user_home: user_home.to_owned(),
        project: "/work/app".into(),
        slug: "app".into(),
        layout: Layout::Slug,
        publish: true,
        keep_sessions: true,
        resumed: None,
        copied: Vec::new(),
        linked: Vec::new(),
        trusted: serde_json::Map::new(),
        context: ContextFile { name: "GEMINI.md".into(), original: None, ours: None },
    }
}

fn put_session(slot: &Path) {
    let chats = slot.join(".gemini/tmp/app/chats");
    fs::create_dir_all(&chats).unwrap();
    let text =
        "{\"sessionId\":\"s\",\"projectHash\":\"h\"}\n{\"id\":\"u\",\"type\":\"user\",\"content\":\"hi\"}\n";
    fs::write(chats.join("session-2026-01-01T00-00-s.jsonl"), text).unwrap();
}

#[test]
fn the_lowest_free_place_is_taken() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().join("key");
    let first = Slot::take(&dir).unwrap();
    let second = Slot::take(&dir).unwrap();
    assert_eq!([&first.path, &second.path], [&dir.join("0"), &dir.join("1")]);
    drop(first);
    let third = Slot::take(&dir).unwrap();
    assert_eq!((&third.path, &third.recovered), (&dir.join("0"), &Vec::new()));
}

#[test]
fn a_place_is_empty_and_the_users_alone() {
    use alhena_sys::files;
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("homes/key");
    let slot = Slot::take(&dir).unwrap();
    fs::write(slot.path.join("left"), "").unwrap();
    drop(slot);
    let slot = Slot::take(&dir).unwrap();
    assert_eq!(files::names_in(&slot.path).unwrap(), Vec::<String>::new());
    for path in [root.path().join("homes"), dir, slot.path.clone()] {
        assert_eq!(files::mode(&fs::metadata(path).unwrap()) & 0o777, 0o700);
    }
}

#[test]
fn many_at_once_never_share_a_place() {
    let root = tempfile::tempdir().unwrap();
    let (root, dir) = (root.path(), root.path().join("key"));
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..40 {
                    let slot = Slot::take(&dir).unwrap();
                    let mine = slot.path.join("mine");
                    // Fails if anybody else is here.
                    fs::OpenOptions::new().write(true).create_new(true).open(&mine).unwrap();
                    std::thread::yield_now();
                    fs::remove_file(&mine).unwrap();
                    let mut plan = plan(&slot.path, root);
                    plan.run = format!("{:?}", std::time::Instant::now());
                    write_plan(&plan).unwrap();
                    assert_eq!(finish(&plan, Stopped::Never), Finished::default());
                }
            });
        }
    });
    assert!(!dir.exists());
}

#[test]
fn a_crashed_run_is_finished_by_the_next() {
    let root = tempfile::tempdir().unwrap();
    let (home, dir) = (root.path().join("home"), root.path().join("key"));
    let slot = Slot::take(&dir).unwrap();
    put_session(&slot.path);
    write_plan(&plan(&slot.path, &home)).unwrap();
    drop(slot);
    let slot = Slot::take(&dir).unwrap();
    let session = home.join(".gemini/tmp/app/chats/session-2026-01-01T00-00-s.jsonl");
    let expected =
        Finished { published: vec![session.clone()], sessions: vec!["s".into()], ..Finished::default() };
    assert_eq!((&slot.path, &slot.recovered), (&dir.join("0"), &vec![expected]));
    assert!(session.is_file());
    assert_eq!(files::names_in(&slot.path).unwrap(), Vec::<String>::new());
    // Still locked, though the crashed run's lock is gone.
    assert_eq!(Slot::take(&dir).unwrap().path, dir.join("1"));
}

#[test]
fn what_cannot_be_saved_stays_and_the_next_run_goes_elsewhere() {
    let root = tempfile::tempdir().unwrap();
    let (home, dir) = (root.path().join("home"), root.path().join("key"));
    fs::write(&home, "a file is in the way").unwrap();
    let slot = Slot::take(&dir).unwrap();
    put_session(&slot.path);
    write_plan(&plan(&slot.path, &home)).unwrap();
    drop(slot);
    let slot = Slot::take(&dir).unwrap();
    assert_eq!((&slot.path, slot.recovered.len(), slot.recovered[0].incomplete), (&dir.join("1"), 1, true));
    assert!(dir.join("0/.gemini/tmp/app/chats/session-2026-01-01T00-00-s.jsonl").is_file());
    fs::remove_file(&home).unwrap();
    let again = Slot::take(&dir).unwrap();
    assert_eq!((&again.path, again.recovered[0].incomplete), (&dir.join("0"), false));
}

#[test]
fn a_plan_that_cannot_be_read_protects_its_place() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("key");
    let slot = Slot::take(&dir).unwrap();
    put_session(&slot.path);
    fs::write(dir.join("0.json"), "{\"of\": \"another version\"}").unwrap();
    drop(slot);
    let slot = Slot::take(&dir).unwrap();
    assert_eq!((&slot.path, slot.recovered[0].incomplete), (&dir.join("1"), true));
    assert!(dir.join("0/.gemini").is_dir());
}

#[test]
fn a_finished_plan_does_not_touch_the_run_that_came_after() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("key");
    let slot = Slot::take(&dir).unwrap();
    let old = plan(&slot.path, &root.path().join("home"));
    write_plan(&old).unwrap();
    drop(slot);
    assert_eq!(finish(&old, Stopped::Never), Finished::default());
    let slot = Slot::take(&dir).unwrap();
    put_session(&slot.path);
    assert_eq!(finish(&old, Stopped::Never), Finished::default());
    let mut new = old.clone();
    new.run = "another run".into();
    write_plan(&new).unwrap();
    assert_eq!(finish(&old, Stopped::Never), Finished::default());
    assert!(slot.path.join(".gemini").is_dir() && dir.join("0.lock").exists() && dir.join("0.json").exists());
}

#[test]
fn a_home_that_cannot_be_made_leaves_nothing() {
    let root = tempfile::tempdir().unwrap();
    let (user_home, project, homes) =
        (root.path().join("user"), root.path().join("app"), root.path().join("homes"));
    for directory in [&user_home, &project, &homes] {
        fs::create_dir(directory).unwrap();
    }
    // Where a directory has to be.
    fs::write(homes.join("bin"), "").unwrap();
    let failed = crate::home::prepare(&crate::home::HomeRequest::new(&user_home, &project, &homes));
    assert!(failed.is_err(), "{failed:?}");
    assert_eq!(files::names_in(&homes).unwrap(), ["bin"]);
}
