use serde_json::json;

use super::*;

fn gemini() -> (tempfile::TempDir, std::path::PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let gemini = dir.path().join(".gemini");
    (dir, gemini)
}

fn slug(gemini: &Path, project: &str) -> String {
    let registration = register(gemini, project);
    assert!(registration.registered && registration.warnings.is_empty(), "{registration:?}");
    registration.slug
}

fn write_registry(gemini: &Path, value: &Value) {
    fs::create_dir_all(gemini).unwrap();
    fs::write(gemini.join(REGISTRY), value.to_string()).unwrap();
}

#[test]
fn names_become_slugs_as_in_the_cli() {
    let slugs = ["App", "my app!", "--a__b--", "日本語", "Ünïcode", "", ".hidden.", "v1.2"].map(slugify);
    assert_eq!(slugs, ["app", "my-app", "a-b", "project", "n-code", "project", "hidden", "v1-2"]);
}

#[test]
fn a_new_project_is_registered_and_marked() {
    let (_dir, gemini) = gemini();
    assert_eq!(slug(&gemini, "/work/My App"), "my-app");
    // Byte for byte what 0.61.0 writes.
    let registry = fs::read_to_string(gemini.join(REGISTRY)).unwrap();
    assert_eq!(registry, "{\n  \"projects\": {\n    \"/work/My App\": \"my-app\"\n  }\n}");
    for base in BASES {
        assert_eq!(
            fs::read_to_string(gemini.join(base).join("my-app/.project_root")).unwrap(),
            "/work/My App"
        );
    }
    assert_eq!(files::names_in(&gemini).unwrap(), ["history", "projects.json", "tmp"]);
}

#[test]
fn a_registered_project_is_read_without_a_write_or_a_lock() {
    let (_dir, gemini) = gemini();
    slug(&gemini, "/work/app");
    let before = fs::metadata(gemini.join(REGISTRY)).unwrap().modified().unwrap();
    fs::create_dir(gemini.join("projects.json.lock")).unwrap();
    assert_eq!(slug(&gemini, "/work/app"), "app");
    assert_eq!(fs::metadata(gemini.join(REGISTRY)).unwrap().modified().unwrap(), before);
}

#[test]
fn projects_of_one_name_get_numbers() {
    let (_dir, gemini) = gemini();
    let slugs = ["/a/app", "/b/app", "/c/app"].map(|project| slug(&gemini, project));
    assert_eq!(slugs, ["app", "app-1", "app-2"]);
    assert_eq!(slug(&gemini, "/b/app"), "app-1");
}

#[test]
fn the_marker_wins_over_a_registry_that_disagrees() {
    let (_dir, gemini) = gemini();
    mark(&gemini, "app", "/b/app").unwrap();
    write_registry(&gemini, &json!({"projects": {"/a/app": "app"}, "other": 1}));
    assert_eq!(slug(&gemini, "/a/app"), "app-1");
    assert_eq!(slug(&gemini, "/b/app"), "app");
    let registry: Value = serde_json::from_slice(&fs::read(gemini.join(REGISTRY)).unwrap()).unwrap();
    assert_eq!(registry, json!({"projects": {"/a/app": "app-1", "/b/app": "app"}, "other": 1}));
}

#[test]
fn a_lost_registry_is_made_up_from_the_markers() {
    let (_dir, gemini) = gemini();
    mark(&gemini, "odd-name", "/a/app").unwrap();
    fs::remove_dir_all(gemini.join("tmp")).unwrap();
    assert_eq!(slug(&gemini, "/a/app"), "odd-name");
    assert!(gemini.join("tmp/odd-name/.project_root").is_file());
}

#[test]
fn a_damaged_registry_is_left_to_its_owner() {
    for damage in ["{", "[]", r#"{"projects": {"/x": "NOT A SLUG"}}"#, r#"{"projects": {"/x": 1}}"#, "{}"] {
        let (_dir, gemini) = gemini();
        fs::create_dir_all(&gemini).unwrap();
        fs::write(gemini.join(REGISTRY), damage).unwrap();
        let registration = register(&gemini, "/a/app");
        assert_eq!((registration.slug.as_str(), registration.registered), ("app", true));
        assert_eq!(registration.warnings.len(), 1, "{damage}");
        assert_eq!(fs::read_to_string(gemini.join(REGISTRY)).unwrap(), damage);
        assert_eq!(owner_of(&gemini.join("tmp/app")).as_deref(), Some("/a/app"));
    }
}

#[test]
fn a_home_that_cannot_be_written_still_gives_a_name() {
    let (dir, gemini) = gemini();
    fs::write(dir.path().join("file"), "").unwrap();
    let registration = register(&dir.path().join("file/.gemini"), "/a/app");
    assert_eq!((registration.slug.as_str(), registration.registered), ("app", false));
    assert_eq!(registration.warnings.len(), 1);
    assert!(!gemini.exists());
}

#[test]
fn sessions_of_the_time_before_slugs_stay_in_sight() {
    let (_dir, gemini) = gemini();
    let old = gemini.join("tmp").join(project_hash(Path::new("/a/app"))).join("chats");
    fs::create_dir_all(&old).unwrap();
    fs::write(old.join("session-x.json"), "old").unwrap();
    slug(&gemini, "/a/app");
    assert_eq!(fs::read_to_string(gemini.join("tmp/app/chats/session-x.json")).unwrap(), "old");
    assert_eq!(fs::read_to_string(old.join("session-x.json")).unwrap(), "old");
    // Once only: what the user deletes later does not come back.
    fs::remove_file(gemini.join("tmp/app/chats/session-x.json")).unwrap();
    fs::remove_file(gemini.join("history/app/.project_root")).unwrap();
    slug(&gemini, "/a/app");
    assert!(!gemini.join("tmp/app/chats/session-x.json").exists());
}

#[test]
fn many_processes_at_once_agree() {
    let (_dir, gemini) = gemini();
    let projects: Vec<String> = (0..8).map(|number| format!("/{number}/app")).collect();
    let slugs: Vec<String> = std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..4).flat_map(|_| &projects).map(|project| scope.spawn(|| slug(&gemini, project))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let (first, rest) = slugs.split_at(8);
    assert!(rest.chunks(8).all(|again| again == first));
    let distinct: std::collections::BTreeSet<_> = first.iter().collect();
    assert_eq!(distinct.len(), 8);
    let registry: Value = serde_json::from_slice(&fs::read(gemini.join(REGISTRY)).unwrap()).unwrap();
    let expected: Map<_, _> = projects.iter().cloned().zip(first.iter().map(|slug| json!(slug))).collect();
    assert_eq!(projects_of(registry.as_object().unwrap()), expected);
}

// What a full disk left: nothing is in it that could be lost.
#[test]
fn an_empty_registry_is_filled_and_a_damaged_one_is_left_alone() {
    let (_dir, gemini) = gemini();
    fs::create_dir_all(&gemini).unwrap();
    fs::write(gemini.join(REGISTRY), "\n").unwrap();
    assert_eq!(slug(&gemini, "/work/app"), "app");
    let registry = fs::read_to_string(gemini.join(REGISTRY)).unwrap();
    assert_eq!(registry, "{\n  \"projects\": {\n    \"/work/app\": \"app\"\n  }\n}");
    fs::write(gemini.join(REGISTRY), "{\"projects\": {").unwrap();
    let registration = register(&gemini, "/work/other");
    assert_eq!((registration.slug.as_str(), registration.warnings.len()), ("other", 1));
    assert_eq!(fs::read_to_string(gemini.join(REGISTRY)).unwrap(), "{\"projects\": {");
}
