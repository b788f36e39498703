//! The life of a run's home, from preparation to the end, with a CLI that is played by the test.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use alhena_agent::home::{
    DirectReason, FinishPlan, Finished, Home, HomeError, HomeRequest, Prepared, Release, Resume, Stopped,
    finish, prepare, sweep_stale,
};
use alhena_model::FailureKind;
use alhena_testbed::snapshot::Change;
use alhena_testbed::{Snapshot, diff};
use serde_json::json;

/// A user with a home and a project, and a place for overlays.
struct User {
    root: tempfile::TempDir,
}

impl User {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        for dir in ["home/.gemini", "work/app"] {
            fs::create_dir_all(root.path().join(dir)).unwrap();
        }
        Self { root }
    }

    fn path(&self, name: &str) -> PathBuf {
        fs::canonicalize(self.root.path()).unwrap().join(name)
    }

    fn request(&self) -> HomeRequest {
        HomeRequest::new(self.path("home"), self.path("work/app"), self.path("homes"))
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn home(&self) -> Snapshot {
        Snapshot::of(&self.path("home")).unwrap()
    }

    fn store(&self) -> PathBuf {
        self.path("home/.gemini/tmp/app/chats")
    }
}

fn overlay(request: &HomeRequest) -> Home {
    match prepare(request).unwrap() {
        Prepared::Overlay(home) => home,
        other => panic!("{other:?}"),
    }
}

fn conversation(id: &str, prompts: &[&str]) -> String {
    let mut text = format!(
        "{{\"sessionId\":\"{id}\",\"projectHash\":\"h\",\"startTime\":\"2026-01-01T00:00:00.000Z\",\"lastUpdated\":\"2026-01-01T00:00:00.000Z\"}}\n"
    );
    for prompt in prompts {
        text.push_str(&format!("{{\"id\":\"{prompt}\",\"type\":\"user\",\"content\":\"{prompt}\"}}\n"));
    }
    text
}

/// What the CLI does in a run that goes well.
fn converse(home: &Home, id: &str) {
    fs::create_dir_all(home.chats_dir()).unwrap();
    let name = format!("session-2026-01-01T00-00-{}.jsonl", id.get(..8).unwrap());
    fs::write(home.chats_dir().join(name), conversation(id, &["hi"])).unwrap();
}

fn added(paths: &[&str]) -> Vec<Change> {
    paths.iter().map(|path| Change::Added(path.into())).collect()
}

const REGISTRATION: [&str; 7] = [
    ".gemini/history",
    ".gemini/history/app",
    ".gemini/history/app/.project_root",
    ".gemini/projects.json",
    ".gemini/tmp",
    ".gemini/tmp/app",
    ".gemini/tmp/app/.project_root",
];

/// The id of the only session.
fn one() -> Vec<String> {
    vec!["aaaaaaaa-1".into()]
}

#[test]
fn a_run_leaves_its_session_and_the_registration_and_nothing_else() {
    let user = User::new();
    user.write("home/.gemini/settings.json", "{ \"general\": {\"disableAutoUpdate\": true} } // old");
    user.write("home/.gemini/oauth_creds.json", "login");
    user.write("home/.env", "A=1");
    let before = user.home();
    let mut request = user.request();
    request.settings = json!({"general": {"maxAttempts": 2}}).as_object().cloned().unwrap();
    let home = overlay(&request);
    assert_eq!(home.warnings(), [] as [&str; 0]);
    assert_eq!((home.slug(), home.resumed_id()), ("app", None));
    assert_eq!(home.env(), [("GEMINI_CLI_HOME".to_owned(), home.path().to_str().unwrap().to_owned())]);
    let settings: serde_json::Value =
        serde_json::from_slice(&fs::read(home.path().join(".gemini/settings.json")).unwrap()).unwrap();
    assert_eq!(settings, json!({"general": {"disableAutoUpdate": true, "maxAttempts": 2}}));
    converse(&home, "aaaaaaaa-1");
    let done = finish(&home.plan(), Stopped::Never);
    let session = user.store().join("session-2026-01-01T00-00-aaaaaaaa.jsonl");
    assert_eq!(done, Finished { published: vec![session], sessions: one(), ..Finished::default() });

    let mut expected = REGISTRATION.to_vec();
    expected
        .extend([".gemini/tmp/app/chats", ".gemini/tmp/app/chats/session-2026-01-01T00-00-aaaaaaaa.jsonl"]);
    assert_eq!(diff(&before, &user.home()), added(&expected));
    assert!(!home.path().exists());
    drop(home);
    assert_eq!(sweep_stale(&user.path("homes")).unwrap(), Default::default());
}

#[test]
fn nobody_else_can_look_into_an_overlay() {
    let user = User::new();
    let mut request = user.request();
    request.settings =
        json!({"mcpServers": {"s": {"command": "x", "env": {"T": "secret"}}}}).as_object().cloned().unwrap();
    request.context = Some("ours".into());
    let home = overlay(&request);
    let mut waiting = vec![user.path("homes")];
    while let Some(path) = waiting.pop() {
        let meta = path.symlink_metadata().unwrap();
        if meta.is_dir() {
            waiting.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        }
        let expected = if meta.is_dir() { 0o700 } else { 0o600 };
        assert!(meta.is_symlink() || meta.permissions().mode() & 0o777 == expected, "{}", path.display());
    }
    assert!(!format!("{home:?}").contains("secret"));
    assert!(!fs::read_to_string(home.path().with_extension("json")).unwrap().contains("secret"));
}

#[test]
fn settings_that_the_cli_would_refuse_are_refused_before_anything_happens() {
    for wrong in ["{", "[]", "{\"a\": 1,}"] {
        let user = User::new();
        user.write("home/.gemini/settings.json", wrong);
        let before = user.home();
        let error = prepare(&user.request()).unwrap_err();
        assert!(matches!(error, HomeError::Settings(_)), "{error:?}");
        assert_eq!(error.kind(), FailureKind::Config);
        assert!(error.to_string().contains("settings.json"), "{error}");
        assert_eq!(diff(&before, &user.home()), []);
        assert!(!user.path("homes").exists());
    }
}

#[test]
fn where_there_can_be_no_overlay_the_cost_is_named() {
    let user = User::new();
    let mut request = user.request();
    request.settings =
        json!({"general": {"maxAttempts": 2}, "mcpServers": {"s": {}}}).as_object().cloned().unwrap();
    request.context = Some("ours".into());
    let direct = |request: &HomeRequest| match prepare(request).unwrap() {
        Prepared::Direct { why, cost } => (why, cost),
        Prepared::Overlay(home) => panic!("{home:?}"),
    };
    let cost = |why: &str| {
        vec![
            format!(
                "The run uses the Gemini home itself, because {why}: other starts of the CLI can delete its session"
            ),
            "These settings of the run have no effect: general.maxAttempts, mcpServers.s".to_owned(),
            "The system prompt cannot be appended".to_owned(),
        ]
    };
    let mut here = request.clone();
    here.project_dir = here.user_home.clone();
    let expected = (DirectReason::HomeDirectory, cost("the project is the home directory itself"));
    assert_eq!(direct(&here), expected);
    let mut sandboxed = request.clone();
    sandboxed.sandbox = true;
    assert_eq!(direct(&sandboxed), (DirectReason::Sandbox, cost("it runs in a sandbox")));
    let mut old = request.clone();
    old.release = Release { has_home_variable: false, has_slugs: false };
    let expected = (DirectReason::TooOld, cost("this release does not know GEMINI_CLI_HOME (0.25)"));
    assert_eq!(direct(&old), expected);
    let mut plain = user.request();
    plain.sandbox = true;
    assert_eq!(direct(&plain).1.len(), 1);
    assert!(!user.path("homes").exists());
}

#[test]
fn the_path_is_the_same_for_the_same_project_and_settings() {
    let user = User::new();
    let request = user.request();
    let path_of = |request: &HomeRequest| {
        let home = overlay(request);
        let path = home.path().to_owned();
        assert_eq!(finish(&home.plan(), Stopped::Never), Finished::default());
        path
    };
    let first = path_of(&request);
    assert_eq!(path_of(&request), first);
    let mut other = request.clone();
    other.settings = json!({"general": {"maxAttempts": 2}}).as_object().cloned().unwrap();
    assert_ne!(path_of(&other).parent(), first.parent());
    // The instructions of a run do not change its place.
    let mut spoken = request.clone();
    spoken.context = Some("ours".into());
    assert_eq!(path_of(&spoken), first);
    let one = overlay(&request);
    assert_eq!(overlay(&request).path(), one.path().with_file_name("1"));
}

#[test]
fn a_plan_works_in_another_process_and_any_number_of_times() {
    let user = User::new();
    let home = overlay(&user.request());
    converse(&home, "aaaaaaaa-1");
    let text = serde_json::to_string(&home.plan()).unwrap();
    let plan: FinishPlan = serde_json::from_str(&text).unwrap();
    assert_eq!(plan, home.plan());
    let results = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(|| finish(&plan, Stopped::Never))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
    });
    assert_eq!(results.iter().map(|done| done.published.len()).sum::<usize>(), 1);
    assert!(results.iter().all(|done| done.warnings.is_empty() && !done.incomplete));
}

#[test]
fn a_crashed_run_is_finished_by_a_sweep_and_a_living_one_is_left_alone() {
    let user = User::new();
    let crashed = overlay(&user.request());
    let living = overlay(&user.request());
    converse(&crashed, "aaaaaaaa-1");
    converse(&living, "bbbbbbbb-1");
    let path = crashed.path().to_owned();
    drop(crashed);
    let swept = sweep_stale(&user.path("homes")).unwrap();
    let session = user.store().join("session-2026-01-01T00-00-aaaaaaaa.jsonl");
    let done = Finished { published: vec![session.clone()], sessions: one(), ..Finished::default() };
    assert_eq!((swept.recovered, swept.alive), (vec![(path, done)], 1));
    assert_eq!(fs::read_dir(user.store()).unwrap().count(), 1);
    assert_eq!(finish(&living.plan(), Stopped::Never).published.len(), 1);
    drop(living);
    assert_eq!(sweep_stale(&user.path("homes")).unwrap(), Default::default());
    assert!(session.is_file());
}

/// The keeper inherits the lock: as long as it lives, nobody takes the home for that of a crashed run.
#[test]
fn a_process_that_inherits_the_lock_keeps_the_home() {
    let user = User::new();
    let home = overlay(&user.request());
    let inherited = rustix::io::dup(home.lock()).unwrap();
    let mut child = Command::new("cat").stdin(Stdio::piped()).stdout(inherited).spawn().unwrap();
    drop(home);
    assert_eq!(sweep_stale(&user.path("homes")).unwrap().alive, 1);
    drop(child.stdin.take());
    child.wait().unwrap();
    let swept = sweep_stale(&user.path("homes")).unwrap();
    assert_eq!((swept.alive, swept.recovered.len()), (0, 1));
}

#[test]
fn a_session_that_is_not_there_or_already_there_is_said_so() {
    let user = User::new();
    let mut request = user.request();
    request.resume = Some(Resume::Latest);
    let home = overlay(&request);
    assert_eq!(home.warnings(), ["There is no session to continue in this project; a new one was started"]);
    assert_eq!(home.resumed_id(), None);
    drop(home);
    request.resume = Some(Resume::Id("aaaaaaaa-1".into()));
    let error = prepare(&request).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("no session aaaaaaaa-1 in the project {}", user.path("work/app").display())
    );
    assert_eq!(error.kind(), FailureKind::Input);
    let session = conversation("aaaaaaaa-1", &["one"]);
    user.write("home/.gemini/tmp/app/chats/session-2026-01-01T00-00-aaaaaaaa.jsonl", &session);
    let mut request = user.request();
    request.session_id = Some("aaaaaaaa-1".into());
    let error = prepare(&request).unwrap_err();
    assert_eq!(
        (error.to_string().as_str(), error.kind()),
        ("the session aaaaaaaa-1 exists already", FailureKind::Input)
    );
    request.session_id = Some("aaaaaaaa-2".into());
    drop(overlay(&request));
}

#[test]
fn settings_that_win_over_the_runs_own_are_named() {
    let user = User::new();
    user.write("work/app/.gemini/settings.json", "{\"general\": {\"maxAttempts\": 9}} // theirs");
    user.write("system.json", "{\"model\": {\"maxSessionTurns\": 9}}");
    let mut request = user.request();
    let settings = json!({"general": {"maxAttempts": 2}, "model": {"maxSessionTurns": 3}});
    request.settings = settings.as_object().cloned().unwrap();
    assert_eq!(overlay(&request).warnings(), [] as [&str; 0]);
    request.folder_settings = true;
    let system = user.path("system.json");
    request.environment.set("GEMINI_CLI_SYSTEM_SETTINGS_PATH", system.clone());
    let folder = user.path("work/app/.gemini/settings.json");
    assert_eq!(
        overlay(&request).warnings(),
        [
            format!("{} wins over these settings of the run: general.maxAttempts", folder.display()),
            format!("{} wins over these settings of the run: model.maxSessionTurns", system.display()),
        ]
    );
}

#[test]
fn a_system_prompt_below_the_home_is_found_from_the_overlay() {
    let user = User::new();
    let mut request = user.request();
    request.environment.set("GEMINI_SYSTEM_MD", "~/prompt.md");
    let expected = user.path("home/prompt.md").to_str().unwrap().to_owned();
    assert_eq!(overlay(&request).env()[1], ("GEMINI_SYSTEM_MD".to_owned(), expected));
    request.environment.set("GEMINI_SYSTEM_MD", "1");
    assert_eq!(overlay(&request).env().len(), 1);
}

#[test]
fn links_in_the_way_to_home_and_project_are_resolved() {
    let user = User::new();
    std::os::unix::fs::symlink(user.path("work/app"), user.path("link")).unwrap();
    std::os::unix::fs::symlink(user.path("home"), user.path("home-link")).unwrap();
    let request = HomeRequest::new(user.path("home-link"), user.path("link"), user.path("homes"));
    let home = overlay(&request);
    assert_eq!(home.slug(), "app");
    let marker = fs::read_to_string(user.path("home/.gemini/tmp/app/.project_root")).unwrap();
    assert_eq!(marker, user.path("work/app").to_str().unwrap());
    let mut request = request;
    request.project_dir = user.path("home");
    assert!(matches!(prepare(&request).unwrap(), Prepared::Direct { why: DirectReason::HomeDirectory, .. }));
}

#[test]
fn releases_before_slugs_use_the_hash_of_the_path() {
    let user = User::new();
    let before = user.home();
    let mut request = user.request();
    request.release = Release { has_home_variable: true, has_slugs: false };
    let home = overlay(&request);
    assert_eq!(home.slug().len(), 64);
    converse(&home, "aaaaaaaa-1");
    assert_eq!(finish(&home.plan(), Stopped::Never).published.len(), 1);
    let dir = format!(".gemini/tmp/{}", home.slug());
    let session = format!("{dir}/chats/session-2026-01-01T00-00-aaaaaaaa.jsonl");
    assert_eq!(diff(&before, &user.home()), added(&[".gemini/tmp", &dir, &format!("{dir}/chats"), &session]));
}

/// A tool of the run can start the CLI in another folder, in the same home.
#[test]
fn sessions_of_other_projects_in_the_overlay_are_kept_too() {
    let user = User::new();
    let home = overlay(&user.request());
    let other = home.path().join(".gemini/tmp/other");
    fs::create_dir_all(other.join("chats")).unwrap();
    fs::write(other.join(".project_root"), "/somewhere/other").unwrap();
    let name = "session-2026-01-01T00-00-cccccccc.jsonl";
    fs::write(other.join("chats").join(name), conversation("cccccccc-1", &["hi"])).unwrap();
    let done = finish(&home.plan(), Stopped::Never);
    assert_eq!(done.published, [user.path("home/.gemini/tmp/other/chats").join(name)]);
    let registry = fs::read_to_string(user.path("home/.gemini/projects.json")).unwrap();
    assert!(registry.contains("\"/somewhere/other\": \"other\""), "{registry}");
}

#[test]
fn sessions_cross_from_one_file_system_to_another() {
    let user = User::new();
    let Ok(elsewhere) = tempfile::tempdir_in("/dev/shm") else { return };
    if elsewhere.path().metadata().unwrap().dev() == user.path("home").metadata().unwrap().dev() {
        return;
    }
    let mut request = user.request();
    request.homes = elsewhere.path().join("homes");
    user.write(
        "home/.gemini/tmp/app/chats/session-2026-01-01T00-00-aaaaaaaa.jsonl",
        &conversation("aaaaaaaa-1", &["one"]),
    );
    request.resume = Some(Resume::Latest);
    let home = overlay(&request);
    let copy = fs::read_dir(home.chats_dir()).unwrap().next().unwrap().unwrap().path();
    let after = conversation("aaaaaaaa-1", &["one", "two"]);
    fs::write(copy, &after).unwrap();
    converse(&home, "bbbbbbbb-1");
    assert_eq!(finish(&home.plan(), Stopped::Never).published.len(), 2);
    let mut names: Vec<_> =
        fs::read_dir(user.store()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["session-2026-01-01T00-00-aaaaaaaa.jsonl", "session-2026-01-01T00-00-bbbbbbbb.jsonl"]);
    assert_eq!(fs::read_to_string(user.store().join(&names[0])).unwrap(), after);
}

#[test]
fn a_file_in_the_place_of_the_gemini_home_is_refused() {
    let user = User::new();
    fs::remove_dir(user.path("home/.gemini")).unwrap();
    fs::write(user.path("home/.gemini"), "").unwrap();
    let error = prepare(&user.request()).unwrap_err();
    assert_eq!(error.kind(), FailureKind::Config);
    assert!(!user.path("homes").exists());
}

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

const WORKER: &str = "ALHENA_TEST_HOME_WORKER";

/// Not a test of its own: the process that the next one starts several times.
#[test]
fn worker_process() {
    let Ok(root) = std::env::var(WORKER) else { return };
    let root = Path::new(&root);
    let request = HomeRequest::new(root.join("home"), root.join("work/app"), root.join("homes"));
    for number in 0..8 {
        let home = overlay(&request);
        let id = format!("{:08x}-{number}", u64::from(std::process::id()) * 100 + number);
        converse(&home, &id);
        match number % 4 {
            // Crashes: somebody else publishes.
            3 => drop(home),
            _ => assert!(!finish(&home.plan(), Stopped::Never).incomplete),
        }
    }
}

#[test]
fn many_processes_share_a_project_and_lose_nothing() {
    let user = User::new();
    let root = fs::canonicalize(user.root.path()).unwrap();
    let workers: Vec<_> = (0..6)
        .map(|_| {
            Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "home_life::worker_process", "--test-threads=1"])
                .env(WORKER, &root)
                .stdout(Stdio::null())
                .spawn()
                .unwrap()
        })
        .collect();
    for mut worker in workers {
        assert!(worker.wait().unwrap().success());
    }
    sweep_stale(&user.path("homes")).unwrap();
    assert_eq!(fs::read_dir(user.store()).unwrap().count(), 48);
    assert_eq!(names(&user.path("homes")), ["bin"]);
}
