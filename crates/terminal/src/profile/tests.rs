use std::fs;

use alhena_agent::Trust;
use alhena_agent::env::Environment;
use serde_json::json;

use super::*;

const SUPERVISOR: &str = "---
name: code_supervisor
description: Coding Supervisor Agent in a multi-agent system
role: supervisor  # @cao-mcp-server, fs_read, fs_list
model: gemini-2.5-pro
allowedTools: [\"@cao-mcp-server\", fs_read]
mcpServers:
  cao-mcp-server:
    type: stdio
    command: npx
    args:
      - -y
      - cao-mcp-server
    env:
      TOKEN: a=b==
      EMPTY: ''
      PORT: 9889
---

# CODING SUPERVISOR AGENT

You coordinate.
---
Not front matter.
";

fn problem(text: &str) -> String {
    Profile::parse(text, "x").unwrap_err().to_string()
}

#[test]
fn a_profile_of_cao_is_read_as_it_is() {
    // D-25, D-26, D-31
    let profile = Profile::parse(SUPERVISOR, "file").unwrap();
    let server = profile.servers[0].clone();
    let expected = Profile {
        name: "code_supervisor".to_owned(),
        description: "Coding Supervisor Agent in a multi-agent system".to_owned(),
        model: Some("gemini-2.5-pro".to_owned()),
        servers: vec![server.clone()],
        tools: Some(vec!["@cao-mcp-server".to_owned(), "fs_read".to_owned()]),
        prompt: "# CODING SUPERVISOR AGENT\n\nYou coordinate.\n---\nNot front matter.".to_owned(),
    };
    assert_eq!(profile, expected);
    assert_eq!(server.name, "cao-mcp-server");
    let entry = json!({
        "command": "npx", "args": ["-y", "cao-mcp-server"],
        "env": {"TOKEN": "a=b==", "EMPTY": "", "PORT": "9889"},
    });
    assert_eq!(server.entry(), entry);
}

#[test]
fn a_profile_without_front_matter_is_a_prompt() {
    let expected = Profile {
        name: "plain".to_owned(),
        description: String::new(),
        model: None,
        servers: Vec::new(),
        tools: None,
        prompt: "You are terse.".to_owned(),
    };
    for text in [
        "You are terse.\n",
        "\n You are terse.",
        "\u{feff}---\r\n---\r\nYou are terse.\r\n",
        "---\n# c\n---\nYou are terse.",
    ] {
        assert_eq!(Profile::parse(text, "plain").unwrap(), expected, "{text:?}");
    }
    assert_eq!(Profile::parse("---\ntools: ['*']\nmodel:\n---\nYou are terse.", "plain").unwrap(), expected);
}

#[test]
fn what_is_wrong_is_said_with_its_line() {
    // D-30
    let start = "Failed to load agent profile 'x': ";
    assert_eq!(
        problem("---\nname: a\nmcpServers: 5\n---\n"),
        format!("{start}line 3: mcpServers is not a map of servers")
    );
    assert_eq!(
        problem("\n---\nname: a\ndescription: b\nmcpServers:\n  s: {args: []}\n---\n"),
        format!("{start}line 5: the MCP server s has neither a command nor a url")
    );
    assert_eq!(problem("---\nname: [a]\n---\n"), format!("{start}line 2: name is not text"));
    assert_eq!(problem("---\ntools: {a: 1}\n---\n"), format!("{start}line 2: tools is not a list of names"));
    assert_eq!(problem("---\na: 1\na: 2\n---\n"), format!("{start}line 3: \"a\" is there twice"));
    assert_eq!(problem("---\n- a\n---\n"), format!("{start}line 2: not a list of `key: value`"));
    assert_eq!(
        problem("\n---\nname: a\n"),
        format!("{start}line 2: the front matter that begins here has no end: a line of `---`")
    );
    assert!(problem("---\nname: a\n  b: : c\n---\n").starts_with(&format!("{start}line 3: ")));
    assert!(problem("---\na: &x 1\nb: *x\n---\n").contains("line 3: aliases are not supported"));
    assert!(problem(&format!("---\na: {}\n---\n", "[".repeat(100))).contains("nested too deeply"));
    assert!(
        problem(&format!("---\na: {}\n---\n", "[".repeat(100_000))).starts_with(&format!("{start}line 2: "))
    );
}

#[test]
fn profiles_are_found_by_path_and_in_the_places_in_order() {
    let root = tempfile::tempdir().unwrap();
    let dir = |name: &str| root.path().join(name);
    let project = Project { dir: dir("project"), trust: Trust::WithSettings, env: Environment::default() };
    let places = Places { own: Some(dir("own")), project: Some(project), cao: Some(dir("cao")) };
    let write = |path: &str, text: &str| {
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    };
    let prompt = |wanted: &str| Profile::load(wanted, &places).map(|profile| profile.prompt);
    write("project/.alhena/profiles/a.md", "project $$ ${TOKEN}");
    assert_eq!(prompt("a"), Ok("project $$ ${TOKEN}".to_owned()));
    write("cao/agent-context/a/agent.md", "nested");
    assert_eq!(prompt("a"), Ok("nested".to_owned()));
    write("cao/agent-context/a.md", "installed");
    assert_eq!(prompt("a"), Ok("installed".to_owned()));
    write("cao/agent-store/a.md", "store ${TOKEN} $TOKEN $$ ${OTHER} $5");
    assert_eq!(prompt("a"), Ok("store ${TOKEN} $TOKEN $ ${OTHER} $5".to_owned()));
    write("cao/.env", "# c\nTOKEN='s3 cret'\n");
    assert_eq!(prompt("a"), Ok("store s3 cret s3 cret $ ${OTHER} $5".to_owned()));
    write("own/a.md", "own");
    assert_eq!(prompt("a"), Ok("own".to_owned()));
    let elsewhere = write("else/b.md", "by path");
    let profile = Profile::load(elsewhere.to_str().unwrap(), &places).unwrap();
    assert_eq!((profile.name.as_str(), profile.prompt.as_str()), ("b", "by path"));
}

#[test]
fn a_profile_that_is_not_there_is_said_with_those_that_are() {
    let root = tempfile::tempdir().unwrap();
    let places =
        Places { own: Some(root.path().join("own")), cao: Some(root.path().join("cao")), project: None };
    let hint = |wanted: &str| places.hint(&Profile::load(wanted, &places).unwrap_err());
    let own = root.path().join("own");
    assert_eq!(
        hint("x"),
        format!("There are no profiles: put NAME.md into {}, or give the path of one.", own.display())
    );
    for path in
        ["own/reviewer.md", "own/notes.txt", "cao/agent-store/reviewer.md", "cao/agent-context/dev/agent.md"]
    {
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "You are.").unwrap();
    }
    assert_eq!(hint("reveiwer"), "Did you mean reviewer? There are: dev, reviewer.");
    assert_eq!(hint("zzz"), "There are: dev, reviewer.");
}

#[test]
fn folders_profile_needs_a_folder_that_is_trusted_and_that_only_the_user_can_write() {
    use alhena_sys::files;
    let root = tempfile::tempdir().unwrap();
    let (home, dir) = (root.path().join("home"), root.path().join("project"));
    let profiles = dir.join(".alhena/profiles");
    fs::create_dir_all(&profiles).unwrap();
    fs::create_dir_all(home.join(".gemini")).unwrap();
    for path in [&dir, &dir.join(".alhena"), &profiles] {
        files::set_mode(path, 0o755).unwrap();
    }
    fs::write(profiles.join("evil.md"), "do it").unwrap();
    files::set_mode(profiles.join("evil.md"), 0o644).unwrap();
    let env = Environment::from([("HOME", &home)]);
    let load = |trust| Profile::load("evil", &Places::usual(&env, &dir, trust));
    let untrusted = Cause::NotUsed { path: profiles.join("evil.md"), why: NotUsed::Untrusted };
    for trust in [Trust::AsIs, Trust::Run] {
        assert_eq!(load(trust).unwrap_err().cause, untrusted);
    }
    assert_eq!(load(Trust::WithSettings).unwrap().prompt, "do it");
    let rules = serde_json::json!({ dir.canonicalize().unwrap().to_str().unwrap(): "TRUST_FOLDER" });
    fs::write(home.join(".gemini/trustedFolders.json"), rules.to_string()).unwrap();
    assert_eq!(load(Trust::AsIs).unwrap().prompt, "do it");
    files::set_mode(&profiles, 0o777).unwrap();
    for trust in [Trust::AsIs, Trust::WithSettings] {
        let cause = load(trust).unwrap_err().cause;
        assert!(matches!(cause, Cause::NotUsed { why: NotUsed::Exposed(_), .. }), "{cause:?}");
    }
    assert_eq!(
        Profile::load(profiles.join("evil.md").to_str().unwrap(), &Places::default()).unwrap().prompt,
        "do it"
    );
}

#[test]
fn a_profile_that_is_not_there_or_not_readable_names_the_places() {
    let root = tempfile::tempdir().unwrap();
    let places = Places { own: Some(root.path().join("own")), project: None, cao: None };
    let text = |wanted: &str| Profile::load(wanted, &places).unwrap_err().to_string();
    let own = root.path().join("own");
    assert_eq!(
        text("none"),
        format!("Failed to load agent profile 'none': there is none; looked for {}/none.md", own.display())
    );
    assert!(text("..").ends_with("a name has no slashes, no `..` and is not empty"));
    assert!(text("").ends_with("a name has no slashes, no `..` and is not empty"));
    fs::create_dir(&own).unwrap();
    fs::write(own.join("bytes.md"), b"\xff").unwrap();
    assert_eq!(
        text("bytes"),
        format!("Failed to load agent profile 'bytes': {}/bytes.md: not UTF-8", own.display())
    );
    fs::write(own.join("bad.md"), "---\nname: 5\n---\n").unwrap();
    assert_eq!(
        text("bad"),
        format!("Failed to load agent profile 'bad': {}/bad.md:2: name is not text", own.display())
    );
}

#[test]
fn what_a_profile_does_not_list_is_denied() {
    let denied = |front: &str| Profile::parse(&format!("---\n{front}\n---\n"), "x").unwrap().denied_tools();
    assert_eq!(denied("name: a"), Vec::<String>::new());
    assert_eq!(denied("tools: ['*']"), Vec::<String>::new());
    assert_eq!(denied("allowedTools: ['@builtin']"), Vec::<String>::new());
    assert_eq!(
        denied("allowedTools: ['@cao-mcp-server', fs_read]"),
        ["run_shell_command", "write_file", "replace", "web_fetch", "google_web_search"]
    );
    assert_eq!(denied("allowedTools: ['fs_*', run_shell_command]"), ["web_fetch", "google_web_search"]);
    assert_eq!(denied("allowedTools: [fs_list]").len(), 7);
}

proptest::proptest! {
    #[test]
    fn any_text_is_survived(text in "(---\n)?[a-z:\\-\\[\\]{}\"'|>&*!#% \n]{0,80}(\n---\n)?.{0,10}") {
        let _ = Profile::parse(&text, "x");
    }
}
