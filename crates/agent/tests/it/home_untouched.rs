//! Whatever the user has and whatever the CLI does in its overlay: the user's home changes only as it should.

use std::fs;
use std::path::{Path, PathBuf};

use alhena_agent::home::{HomeRequest, Prepared, Stopped, finish, prepare};
use alhena_testbed::snapshot::Change;
use alhena_testbed::{Snapshot, diff};
use proptest::prelude::*;

/// What a user may have. Directories end with a slash and get a file.
const USERS: &[&str] = &[
    ".gemini/GEMINI.md",
    ".gemini/state.json",
    ".gemini/installation_id",
    ".gemini/user_id",
    ".gemini/trusted_hooks.json",
    ".gemini/policy_integrity.json",
    ".gemini/trustedFolders.json",
    ".gemini/keybindings.json",
    ".gemini/oauth_creds.json",
    ".gemini/google_accounts.json",
    ".gemini/policies/",
    ".gemini/extensions/",
    ".gemini/commands/",
    ".gemini/tmp/app/memory/",
    ".gemini/tmp/app/checkpoints/",
    ".gemini/tmp/app/shell_history",
    ".gemini/tmp/app/logs.json",
    ".gemini/history/app/",
    ".gemini/tmp/other/chats/",
    ".agents/skills/",
    ".env",
    ".bashrc",
];

/// What the CLI may do to a file of its home that is not the user's to lose.
#[derive(Clone, Copy, Debug)]
enum Act {
    /// Writes it in place, which follows a link.
    Write,
    /// Replaces it by rename.
    Replace,
    /// Deletes it.
    Delete,
}

/// Files that the CLI writes as it likes.
const ITS_OWN: &[&str] = &[
    ".gemini/settings.json",
    ".gemini/state.json",
    ".gemini/installation_id",
    ".gemini/user_id",
    ".gemini/trusted_hooks.json",
    ".gemini/policy_integrity.json",
    ".gemini/projects.json",
    ".gemini/tmp/app/shell_history",
    ".gemini/tmp/app/logs.json",
    ".gemini/tmp/app/checkpoints/c.json",
    ".gemini/tmp/app/.project_root",
    ".gemini/history/app/HEAD",
];

/// Links that it may lose or replace, but that it never writes through.
const LINKS: &[&str] =
    &[".gemini/keybindings.json", ".gemini/policies", ".gemini/commands", ".env", ".agents"];

fn act(home: &Path, name: &str, act: Act) {
    let path = home.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    match act {
        Act::Write => fs::write(&path, "written").unwrap(),
        Act::Replace => {
            let _ = fs::remove_file(&path);
            fs::write(home.join("new"), "replaced").unwrap();
            fs::rename(home.join("new"), &path).unwrap();
        }
        Act::Delete => {
            let _ = fs::remove_file(&path);
        }
    }
}

fn any_act() -> impl Strategy<Value = Act> {
    prop_oneof![Just(Act::Write), Just(Act::Replace), Just(Act::Delete)]
}

fn link_act() -> impl Strategy<Value = Act> {
    prop_oneof![Just(Act::Replace), Just(Act::Delete)]
}

fn acts() -> impl Strategy<Value = Vec<(&'static str, Act)>> {
    let own = (prop::sample::select(ITS_OWN), any_act());
    let links = (prop::sample::select(LINKS), link_act());
    prop::collection::vec(prop_oneof![own, links], 0..20)
}

fn is_expected(change: &Change) -> bool {
    let Change::Added(path) = change else { return false };
    let allowed: &[&str] = &[
        ".gemini",
        ".gemini/projects.json",
        ".gemini/tmp",
        ".gemini/tmp/app",
        ".gemini/tmp/app/.project_root",
        ".gemini/tmp/app/chats",
        ".gemini/tmp/app/chats/session-2026-01-01T00-00-aaaaaaaa.jsonl",
        ".gemini/history",
        ".gemini/history/app",
        ".gemini/history/app/.project_root",
    ];
    allowed.iter().any(|name| path == &PathBuf::from(name))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    #[test]
    fn nothing_in_the_users_home_changes_but_the_session_and_the_registration(
        users in prop::sample::subsequence(USERS, 0..=USERS.len()),
        acts in acts(),
        context in any::<bool>(),
    ) {
        let root = tempfile::tempdir().unwrap();
        let (user, project) = (root.path().join("home"), root.path().join("app"));
        fs::create_dir_all(&user).unwrap();
        fs::create_dir_all(&project).unwrap();
        for name in &users {
            let path = match name.strip_suffix('/') {
                Some(dir) => user.join(dir).join("file.md"),
                None => user.join(name),
            };
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "{}").unwrap();
        }
        let before = Snapshot::of(&user).unwrap();
        let mut request = HomeRequest::new(&user, &project, root.path().join("homes"));
        request.context = context.then(|| "ours".to_owned());
        let Prepared::Overlay(home) = prepare(&request).unwrap() else { panic!("no overlay") };
        for (name, what) in acts {
            act(home.path(), name, what);
        }
        fs::create_dir_all(home.chats_dir()).unwrap();
        let session = "{\"sessionId\":\"aaaaaaaa-1\",\"projectHash\":\"h\"}\n{\"id\":\"u\",\"type\":\"user\",\"content\":\"hi\"}\n";
        fs::write(home.chats_dir().join("session-2026-01-01T00-00-aaaaaaaa.jsonl"), session).unwrap();
        let done = finish(&home.plan(), Stopped::Never);
        prop_assert_eq!(done.published.len(), 1);
        prop_assert!(done.warnings.is_empty() && !done.incomplete && done.merged.is_empty(), "{:?}", done);
        let changes = diff(&before, &Snapshot::of(&user).unwrap());
        prop_assert!(changes.iter().all(is_expected), "{:#?}", changes);
        prop_assert!(!home.path().exists());
    }
}
