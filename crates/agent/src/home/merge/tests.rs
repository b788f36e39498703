use serde_json::{Map, json};

use super::*;
use crate::home::plan::{ContextFile, Layout, OurContext};
use alhena_session::publish::CopiedFile;

struct Pair {
    _dir: tempfile::TempDir,
    overlay: std::path::PathBuf,
    user: std::path::PathBuf,
    plan: FinishPlan,
}

impl Pair {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (overlay, user) = (dir.path().join("overlay"), dir.path().join("user"));
        fs::create_dir(&overlay).unwrap();
        fs::create_dir(&user).unwrap();
        let plan = FinishPlan {
            mark: None,
            run: "run".into(),
            slot: dir.path().to_owned(),
            user_home: dir.path().to_owned(),
            project: "/work/app".into(),
            slug: "app".into(),
            layout: Layout::Slug,
            publish: true,
            keep_sessions: true,
            resumed: None,
            copied: Vec::new(),
            linked: Vec::new(),
            trusted: Map::new(),
            context: ContextFile { name: "GEMINI.md".into(), original: None, ours: None },
        };
        Self { overlay, user, plan, _dir: dir }
    }

    fn back(&self) -> Finished {
        let mut done = Finished::default();
        back(&self.plan, &self.overlay, &self.user, &mut done);
        done
    }

    fn users(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.user.join(name)).ok()
    }

    fn merged(&self, name: &str) -> Finished {
        let path = fs::canonicalize(self.user.join(name)).unwrap();
        Finished { merged: vec![path], ..Finished::default() }
    }
}

#[test]
fn a_first_login_becomes_the_users() {
    let pair = Pair::new();
    fs::write(pair.overlay.join("oauth_creds.json"), "new").unwrap();
    fs::write(pair.overlay.join("state.json"), "not theirs").unwrap();
    assert_eq!(pair.back(), pair.merged("oauth_creds.json"));
    assert_eq!(pair.users("oauth_creds.json").as_deref(), Some("new"));
    assert_eq!(pair.users("state.json"), None);
    assert_eq!(pair.back(), Finished::default());
}

#[test]
fn a_linked_login_is_the_users_already() {
    let pair = Pair::new();
    fs::write(pair.user.join("oauth_creds.json"), "refreshed").unwrap();
    alhena_sys::files::symlink(pair.user.join("oauth_creds.json"), pair.overlay.join("oauth_creds.json"))
        .unwrap();
    assert_eq!(pair.back(), Finished::default());
}

#[test]
fn a_login_that_took_the_place_of_a_link_replaces_the_old_one() {
    let mut pair = Pair::new();
    fs::write(pair.user.join("extension_integrity.json"), "old").unwrap();
    pair.plan.linked = vec![CopiedFile {
        path: "extension_integrity.json".into(),
        fingerprint: Fingerprint::of_bytes(b"old"),
    }];
    fs::write(pair.overlay.join("extension_integrity.json"), "new").unwrap();
    assert_eq!(pair.back(), pair.merged("extension_integrity.json"));
    assert_eq!(pair.users("extension_integrity.json").as_deref(), Some("new"));
}

#[test]
fn a_login_that_somebody_else_made_meanwhile_stays() {
    let pair = Pair::new();
    fs::write(pair.user.join("oauth_creds.json"), "theirs").unwrap();
    fs::write(pair.overlay.join("oauth_creds.json"), "ours").unwrap();
    let done = pair.back();
    assert_eq!((done.warnings.len(), done.merged.len()), (1, 0));
    assert_eq!(pair.users("oauth_creds.json").as_deref(), Some("theirs"));
}

#[test]
fn decisions_about_folders_are_added_to_what_the_user_has_now() {
    let mut pair = Pair::new();
    let before = json!({"/a": "TRUST_FOLDER", "/gone": "TRUST_FOLDER", "/b": "TRUST_FOLDER"});
    pair.plan.trusted = before.as_object().cloned().unwrap();
    let overlay =
        json!({"/a": "DO_NOT_TRUST", "/gone": "TRUST_FOLDER", "/b": "TRUST_FOLDER", "/new": "TRUST_PARENT"});
    fs::write(pair.overlay.join(TRUSTED_FOLDERS), overlay.to_string()).unwrap();
    let now = "{\"/a\": \"TRUST_FOLDER\", // mine\n \"/b\": \"TRUST_PARENT\"}";
    fs::write(pair.user.join(TRUSTED_FOLDERS), now).unwrap();
    assert_eq!(pair.back(), pair.merged(TRUSTED_FOLDERS));
    let merged: Value = serde_json::from_str(&pair.users(TRUSTED_FOLDERS).unwrap()).unwrap();
    assert_eq!(merged, json!({"/a": "DO_NOT_TRUST", "/b": "TRUST_PARENT", "/new": "TRUST_PARENT"}));
    assert_eq!(files::names_in(&pair.user).unwrap(), [TRUSTED_FOLDERS]);
}

#[test]
fn without_a_decision_the_users_file_is_not_touched() {
    let mut pair = Pair::new();
    pair.plan.trusted = Map::from_iter([("/a".to_owned(), json!("TRUST_FOLDER"))]);
    fs::write(pair.overlay.join(TRUSTED_FOLDERS), "{\"/a\": \"TRUST_FOLDER\"}").unwrap();
    assert_eq!(pair.back(), Finished::default());
    assert_eq!(pair.users(TRUSTED_FOLDERS), None);
}

fn with_context(original: &str) -> Pair {
    let mut pair = Pair::new();
    let text = "\n\n---\n\nour part\n".to_owned();
    let written = Fingerprint::of_bytes(format!("{original}{text}").as_bytes());
    pair.plan.context = ContextFile {
        name: "GEMINI.md".into(),
        original: Some(Fingerprint::of_bytes(original.as_bytes())),
        ours: Some(OurContext { text: text.clone(), written }),
    };
    fs::write(pair.user.join("GEMINI.md"), original).unwrap();
    fs::write(pair.overlay.join("GEMINI.md"), format!("{original}{text}")).unwrap();
    pair
}

#[test]
fn a_memory_goes_to_the_user_without_our_instructions() {
    let pair = with_context("theirs");
    assert_eq!(pair.back(), Finished::default());
    fs::write(pair.overlay.join("GEMINI.md"), "theirs\n\n---\n\nour part\n- a memory\n").unwrap();
    assert_eq!(pair.back(), pair.merged("GEMINI.md"));
    assert_eq!(pair.users("GEMINI.md").as_deref(), Some("theirs- a memory\n"));
    assert_eq!(pair.back(), Finished::default());
}

#[test]
fn a_memory_that_cannot_be_told_from_our_instructions_is_a_warning() {
    let pair = with_context("theirs");
    fs::write(pair.overlay.join("GEMINI.md"), "all new").unwrap();
    assert_eq!(pair.back().warnings.len(), 1);
    assert_eq!(pair.users("GEMINI.md").as_deref(), Some("theirs"));
}

#[test]
fn a_first_memory_becomes_the_users() {
    let pair = Pair::new();
    fs::write(pair.overlay.join("GEMINI.md"), "- a memory\n").unwrap();
    assert_eq!(pair.back(), pair.merged("GEMINI.md"));
    assert_eq!(pair.users("GEMINI.md").as_deref(), Some("- a memory\n"));
}
