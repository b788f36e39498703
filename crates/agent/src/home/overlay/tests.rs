use alhena_sys::files;

use super::*;

struct Homes {
    _dir: tempfile::TempDir,
    home: PathBuf,
    user_home: PathBuf,
}

impl Homes {
    fn new(files: &[(&str, &str)]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (home, user_home) = (dir.path().join("overlay"), dir.path().join("user"));
        fs::create_dir(&home).unwrap();
        fs::create_dir(&user_home).unwrap();
        for (name, text) in files {
            let path = user_home.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        Self { home, user_home, _dir: dir }
    }

    fn overlay(&self, layout: Layout) -> Overlay<'_> {
        Overlay { home: &self.home, user_home: &self.user_home, project: "/work/app", slug: "app", layout }
    }

    /// Every path in the overlay: `->` for a link to the same place in the user's home, or the content.
    fn tree(&self) -> Vec<String> {
        let mut lines = Vec::new();
        self.walk(Path::new(""), &mut lines);
        lines
    }

    fn walk(&self, dir: &Path, lines: &mut Vec<String>) {
        for name in files::names_in(&self.home.join(dir)).unwrap() {
            let path = dir.join(name);
            let full = self.home.join(&path);
            let shown = path.display();
            if let Ok(target) = fs::read_link(&full) {
                let same = target == self.user_home.join(&path);
                lines.push(format!(
                    "{shown} -> {}",
                    if same { "user".into() } else { target.display().to_string() }
                ));
            } else if full.is_dir() {
                self.walk(&path, lines);
            } else {
                let mode = files::mode(&fs::metadata(&full).unwrap()) & 0o777;
                assert_eq!(mode, 0o600, "{shown}");
                lines.push(format!("{shown}: {}", fs::read_to_string(&full).unwrap()));
            }
        }
    }
}

fn no_settings() -> Map<String, Value> {
    Map::new()
}

#[test]
fn everything_is_linked_but_what_the_cli_writes_to() {
    let homes = Homes::new(&[
        (".env", ""),
        (".agents/skills/s/SKILL.md", ""),
        (".bashrc", ""),
        (".gemini/settings.json", "{}"),
        (".gemini/GEMINI.md", ""),
        (".gemini/oauth_creds.json", "login"),
        (".gemini/policies/p.toml", ""),
        (".gemini/extensions/e/gemini-extension.json", ""),
        (".gemini/state.json", "state"),
        (".gemini/installation_id", "id"),
        (".gemini/trustedFolders.json", "{\"/work/app\": \"TRUST_FOLDER\"}"),
        (".gemini/projects.json", "{\"projects\":{\"/other\":\"other\"}}"),
        (".gemini/projects.json.lock/x", ""),
        (".gemini/trustedFolders.json.tmp.123", ""),
        (".gemini/projects.json.123.tmp", ""),
        (".gemini/tmp/app/chats/session-x.jsonl", ""),
        (".gemini/tmp/app/shell_history", ""),
        (".gemini/tmp/app/checkpoint-tag.json", ""),
        (".gemini/tmp/other/chats/session-y.jsonl", ""),
        (".gemini/tmp/bin/rg", ""),
        (".gemini/history/app/HEAD", ""),
    ]);
    let overlay = homes.overlay(Layout::Slug);
    let linked = overlay.build(Path::new("/unused")).unwrap();
    overlay.write_settings(&no_settings()).unwrap();
    let login = CopiedFile { path: "oauth_creds.json".into(), fingerprint: Fingerprint::of_bytes(b"login") };
    assert_eq!(linked, [login]);
    assert_eq!(overlay.trusted(), Map::from_iter([("/work/app".to_owned(), json!("TRUST_FOLDER"))]));
    assert_eq!(
        homes.tree(),
        [
            ".agents -> user",
            ".env -> user",
            ".gemini/GEMINI.md -> user",
            ".gemini/extensions -> user",
            ".gemini/history/app/.project_root: /work/app",
            ".gemini/installation_id: id",
            ".gemini/oauth_creds.json -> user",
            ".gemini/policies -> user",
            ".gemini/projects.json: {\"projects\":{\"/other\":\"other\",\"/work/app\":\"app\"}}",
            ".gemini/settings.json: {}",
            ".gemini/state.json: state",
            ".gemini/tmp/app/.project_root: /work/app",
            ".gemini/tmp/app/checkpoint-tag.json -> user",
            ".gemini/tmp/bin -> user",
            ".gemini/trustedFolders.json: {\"/work/app\": \"TRUST_FOLDER\"}",
        ]
    );
}

#[test]
fn a_user_without_a_gemini_home_gets_an_empty_one() {
    let homes = Homes::new(&[]);
    let tools = homes.user_home.join("tools");
    let linked = homes.overlay(Layout::Slug).build(&tools).unwrap();
    assert_eq!(linked, []);
    assert_eq!(
        homes.tree(),
        [
            ".gemini/history/app/.project_root: /work/app".to_owned(),
            ".gemini/projects.json: {\"projects\":{\"/work/app\":\"app\"}}".to_owned(),
            ".gemini/tmp/app/.project_root: /work/app".to_owned(),
            format!(".gemini/tmp/bin -> {}", tools.display()),
        ]
    );
}

#[test]
fn releases_before_slugs_have_neither_registry_nor_markers() {
    let homes = Homes::new(&[]);
    homes.overlay(Layout::Hash).build(&homes.user_home.join("tools")).unwrap();
    let tree = homes.tree();
    assert_eq!((tree.len(), homes.home.join(".gemini/tmp/app").is_dir()), (1, true), "{tree:?}");
}

#[test]
fn a_damaged_registry_of_the_users_does_not_reach_the_cli() {
    for damage in ["", "[]", "{}", "{\"projects\":[]}", "{\"projects\":{\"/x\":1}}"] {
        let homes = Homes::new(&[(".gemini/projects.json", damage)]);
        let registry = homes.overlay(Layout::Slug).registry();
        assert_eq!(registry, json!({"projects": {"/work/app": "app"}}), "{damage}");
    }
}

#[test]
fn instructions_come_after_the_users_own() {
    let homes = Homes::new(&[
        (".gemini/GEMINI.md", "theirs\n@./a.md @rules/b.md\n"),
        (".gemini/a.md", "A"),
        (".gemini/rules/b.md", "B"),
        (".gemini/rules/c.md", "C"),
    ]);
    let overlay = homes.overlay(Layout::Hash);
    overlay.build(&homes.user_home.join("tools")).unwrap();
    let context = overlay.write_context(&no_settings(), Some("ours"), &mut Vec::new()).unwrap();
    let whole = "theirs\n@./a.md @rules/b.md\n\n\n---\n\nours\n";
    let expected = ContextFile {
        name: "GEMINI.md".into(),
        original: Some(Fingerprint::of_bytes(b"theirs\n@./a.md @rules/b.md\n")),
        ours: Some(OurContext {
            text: "\n\n---\n\nours\n".into(),
            written: Fingerprint::of_bytes(whole.as_bytes()),
        }),
    };
    assert_eq!(context, expected);
    let tree: Vec<String> = homes.tree().into_iter().filter(|line| !line.contains("/tmp/")).collect();
    assert_eq!(
        tree,
        [
            format!(".gemini/GEMINI.md: {whole}"),
            ".gemini/a.md: A".into(),
            // A linked import would count as an attack, so its directory is the overlay's own.
            ".gemini/rules/b.md: B".into(),
            ".gemini/rules/c.md -> user".into(),
        ]
    );
    assert_eq!(fs::read_to_string(homes.user_home.join(".gemini/rules/b.md")).unwrap(), "B");
}

#[test]
fn the_users_name_for_context_files_is_honoured() {
    let settings = json!({"context": {"fileName": ["../out.md", "ctx/AGENTS.md", "GEMINI.md"]}});
    let homes = Homes::new(&[(".gemini/GEMINI.md", "not this"), (".gemini/ctx/other.md", "")]);
    let overlay = homes.overlay(Layout::Hash);
    overlay.build(&homes.user_home.join("tools")).unwrap();
    let context =
        overlay.write_context(settings.as_object().unwrap(), Some("ours"), &mut Vec::new()).unwrap();
    assert_eq!((context.name, context.original), (PathBuf::from("ctx/AGENTS.md"), None));
    let tree: Vec<String> = homes.tree().into_iter().filter(|line| !line.contains("/tmp/")).collect();
    assert_eq!(
        tree,
        [".gemini/GEMINI.md -> user", ".gemini/ctx/AGENTS.md: ours\n", ".gemini/ctx/other.md -> user"]
    );
    assert!(!homes.user_home.join(".gemini/ctx/AGENTS.md").exists());
}

#[test]
fn without_instructions_the_users_file_stays_a_link() {
    let homes = Homes::new(&[(".gemini/GEMINI.md", "theirs")]);
    let overlay = homes.overlay(Layout::Hash);
    overlay.build(&homes.user_home.join("tools")).unwrap();
    let context = overlay.write_context(&no_settings(), None, &mut Vec::new()).unwrap();
    assert_eq!(
        context,
        ContextFile {
            name: "GEMINI.md".into(),
            original: Some(Fingerprint::of_bytes(b"theirs")),
            ours: None
        }
    );
    assert_eq!(homes.tree()[0], ".gemini/GEMINI.md -> user");
}
