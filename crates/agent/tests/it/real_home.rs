//! The home of a run on the real Gemini CLI, against a scripted API.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use alhena_agent::home::{
    Finished, Home, HomeRequest, McpServer, Prepared, Resume, Shell, Stopped, ToolRule, finish, policy_paths,
    policy_text, prepare, sweep_stale,
};
use alhena_scripted::{Scenario, Server, Turn};
use alhena_testbed::snapshot::Change;
use alhena_testbed::{PrivateHome, RealCli, diff, run_bounded, versions};
use serde_json::{Map, Value, json};

const LIMIT: Duration = Duration::from_secs(180);

/// A user, a CLI and a model.
struct World {
    cli: RealCli,
    user: PrivateHome,
    server: Server,
    homes: tempfile::TempDir,
}

impl World {
    fn new(version: &str) -> Self {
        Self {
            cli: RealCli::get(version).unwrap(),
            user: PrivateHome::new().unwrap(),
            server: Server::start().unwrap(),
            homes: tempfile::tempdir().unwrap(),
        }
    }

    fn is_before(&self, minor: u32) -> bool {
        self.cli.version.split('.').nth(1).unwrap().parse::<u32>().unwrap() < minor
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.user.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn request(&self) -> HomeRequest {
        let mut request =
            HomeRequest::new(self.user.path(), self.user.workspace(), self.homes.path().join("homes"));
        let settings = json!({"general": {"maxAttempts": 2, "sessionRetention": {"enabled": false}}});
        request.settings = settings.as_object().cloned().unwrap();
        request
    }

    fn command(&self, scenario: &str, turns: Vec<Turn>, arguments: &[&str]) -> Command {
        let url = self.server.add(scenario, turns.into_iter().fold(Scenario::new(), Scenario::turn));
        let mut command = Command::new("node");
        command
            .arg(&self.cli.entry)
            .args(["-m", "gemini-2.5-flash", "-o", "stream-json"])
            .args(arguments)
            .env_clear()
            .envs(self.user.env(&url))
            .env("GEMINI_CLI_NO_RELAUNCH", "1")
            .current_dir(self.user.workspace())
            .stdin(Stdio::null());
        command
    }

    /// A whole run in its home. Gives the events, and what the end of it brought.
    fn run(
        &self,
        request: &HomeRequest,
        scenario: &str,
        turns: Vec<Turn>,
        arguments: &[&str],
    ) -> (Vec<Value>, Finished) {
        let home = overlay(request);
        let events = self.run_in(&home, scenario, turns, arguments);
        (events, finish(&home.plan(), Stopped::Never))
    }

    fn run_in(&self, home: &Home, scenario: &str, turns: Vec<Turn>, arguments: &[&str]) -> Vec<Value> {
        let mut command = self.command(scenario, turns, arguments);
        let done = run_bounded(command.envs(home.env()), LIMIT).unwrap();
        done.stdout_text().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// A run without Alhena: what the user does tomorrow.
    fn run_bare(&self, scenario: &str, turns: Vec<Turn>, arguments: &[&str]) -> Option<i32> {
        run_bounded(&mut self.command(scenario, turns, arguments), LIMIT).unwrap().status.code()
    }

    fn bodies(&self, scenario: &str) -> Vec<String> {
        self.server.requests(scenario).iter().map(|request| request.raw_body.clone()).collect()
    }

    fn store(&self) -> PathBuf {
        self.user.gemini().join("tmp/work/chats")
    }

    fn stored(&self) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(self.store())
            .map(|entries| entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect())
            .unwrap_or_default();
        names.sort();
        names
    }
}

fn overlay(request: &HomeRequest) -> Home {
    match prepare(request).unwrap() {
        Prepared::Overlay(home) => home,
        other => panic!("{other:?}"),
    }
}

fn say(text: &str) -> Vec<Turn> {
    vec![Turn::say(text)]
}

/// What became of each call, in the order of the calls.
fn results(events: &[Value]) -> Vec<&str> {
    let of = |kind: &'static str| events.iter().filter(move |event| event["type"] == kind);
    of("tool_use")
        .map(|call| of("tool_result").find(|result| result["tool_id"] == call["tool_id"]).unwrap())
        .map(|result| result["error"]["type"].as_str().unwrap_or(result["status"].as_str().unwrap()))
        .collect()
}

fn shell(commands: &[&str]) -> Vec<Turn> {
    let calls = commands.iter().map(|command| ("run_shell_command", json!({"command": command})));
    vec![Turn::new().calls(calls), Turn::say("Done.")]
}

/// Everything that a user can have in a home, each with a word that must reach the model.
fn furnish(world: &World) {
    let settings = json!({
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "general": {"disableAutoUpdate": true},
        "hooks": {"SessionStart": [{"hooks": [{"type": "command", "command": "true", "name": "theirs"}]}]},
    });
    world.write(".gemini/settings.json", &format!("// The user's.\n{settings}"));
    world.write(".gemini/GEMINI.md", "WORD-MEMORY\n@./more.md and @rules/deep.md\n");
    world.write(".gemini/more.md", "WORD-IMPORT\n");
    world.write(".gemini/rules/deep.md", "WORD-DEEP-IMPORT\n");
    world.write(".gemini/skills/one/SKILL.md", "---\nname: one\ndescription: WORD-SKILL\n---\nBody.\n");
    world.write(".agents/skills/two/SKILL.md", "---\nname: two\ndescription: WORD-OTHER-SKILL\n---\nBody.\n");
    world.write(".gemini/agents/mine.md", "---\nname: mine\ndescription: WORD-AGENT\n---\nYou are.\n");
    let extension = json!({"name": "ext", "version": "1.0.0", "contextFileName": "EXT.md"});
    world.write(".gemini/extensions/ext/gemini-extension.json", &extension.to_string());
    world.write(".gemini/extensions/ext/EXT.md", "WORD-EXTENSION @./part.md\n");
    world.write(".gemini/extensions/ext/part.md", "WORD-EXTENSION-IMPORT\n");
    world.write(".gemini/commands/greet.toml", "prompt = \"WORD-COMMAND {{args}}\"\n");
    world.write(".gemini/state.json", "{\"tipsShown\": 1}");
    world.write(".gemini/installation_id", "11111111-1111-4111-8111-111111111111");
    world.write(".gemini/google_accounts.json", "{\"active\": \"a@example.org\", \"old\": []}");
    world.write(".gemini/oauth_creds.json", "{}");
    world.write(".env", "A=1\n");
}

// What the home is for: DESIGN "Nothing touched", and issue 2 "byte for byte the same".
#[test]
fn everything_of_the_users_reaches_the_cli_and_nothing_of_it_changes() {
    for version in versions() {
        let world = World::new(&version);
        furnish(&world);
        let before = world.user.snapshot().unwrap();
        let mut request = world.request();
        request.context = Some("WORD-RUN".into());
        let (events, done) = world.run(&request, "words", say("Hello."), &["-p", "/greet you"]);
        assert_eq!(events.last().unwrap()["status"], "success", "{version}");
        let body = world.bodies("words").pop().unwrap();
        let words = [
            "WORD-MEMORY",
            "WORD-IMPORT",
            "WORD-DEEP-IMPORT",
            "WORD-SKILL",
            "WORD-OTHER-SKILL",
            "WORD-AGENT",
            "WORD-EXTENSION",
            "WORD-EXTENSION-IMPORT",
            "WORD-RUN",
            "WORD-COMMAND you",
        ];
        let missing: Vec<_> = words.iter().filter(|word| !body.contains(**word)).collect();
        assert_eq!(missing, Vec::<&&str>::new(), "{version}");

        assert_eq!((done.published.len(), &done.warnings), (1, &Vec::new()), "{version}");
        let session = done.published[0].strip_prefix(world.user.path()).unwrap().to_owned();
        let expected = [
            ".gemini/history",
            ".gemini/history/work",
            ".gemini/history/work/.project_root",
            ".gemini/projects.json",
            ".gemini/tmp",
            ".gemini/tmp/work",
            ".gemini/tmp/work/.project_root",
            ".gemini/tmp/work/chats",
        ];
        let expected = expected.iter().map(PathBuf::from).chain([session]).map(Change::Added);
        let changes = diff(&before, &world.user.snapshot().unwrap());
        assert_eq!(changes, expected.collect::<Vec<_>>(), "{version}");

        // A second run, which fails, changes nothing at all.
        let before = world.user.snapshot().unwrap();
        let (events, done) = world.run(&world.request(), "error", vec![Turn::status(400)], &["-p", "hi"]);
        assert_eq!(events.last().unwrap()["status"], "error", "{version}");
        // Releases before 0.39 keep the prompt of a failed call.
        if !world.is_before(39) {
            assert_eq!(done, Finished::default(), "{version}");
            assert_eq!(diff(&before, &world.user.snapshot().unwrap()), [], "{version}");
        }
    }
}

// The CLI's bugs 1 and 3 in the list of observed ones: a resume in the same minute wipes the session, one in another
// minute leaves a stub that makes the next start delete it.
#[test]
fn a_session_can_be_continued_at_once_and_stays_whole() {
    for version in versions() {
        let world = World::new(&version);
        let (_, done) = world.run(&world.request(), "one", say("First answer."), &["-p", "first prompt"]);
        let session = done.published[0].clone();
        let mut request = world.request();
        request.resume = Some(Resume::Latest);
        for (scenario, prompt) in [("two", "second prompt"), ("three", "third prompt")] {
            let home = overlay(&request);
            let id = home.resumed_id().unwrap().to_owned();
            world.run_in(&home, scenario, say("Again."), &["--resume", &id, "-p", prompt]);
            let done = finish(&home.plan(), Stopped::Never);
            assert_eq!(
                done,
                Finished { published: vec![session.clone()], sessions: vec![id], ..Finished::default() },
                "{version}"
            );
        }
        let name = session.file_name().unwrap().to_str().unwrap();
        assert_eq!(world.stored(), [name], "{version}");
        let body = world.bodies("three").pop().unwrap();
        let told = ["first prompt", "First answer.", "second prompt", "Again.", "third prompt"];
        assert!(told.iter().all(|text| body.contains(text)), "{version}: {body}");

        // The user goes on without Alhena.
        let id = overlay(&request).resumed_id().unwrap().to_owned();
        let code = world.run_bare("bare", say("Bare."), &["--resume", &id, "-p", "bare prompt"]);
        assert_eq!(code, Some(0), "{version}");
        assert!(world.bodies("bare").pop().unwrap().contains("third prompt"), "{version}");
    }
}

#[test]
fn runs_at_once_in_one_project_all_keep_their_sessions() {
    let world = World::new("0.61.0");
    let all: Vec<Finished> = std::thread::scope(|scope| {
        let world = &world;
        let threads: Vec<_> = ["a", "b", "c"]
            .map(|name| {
                scope.spawn(move || world.run(&world.request(), name, say("Hello."), &["-p", "hi"]).1)
            })
            .into();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(all.iter().map(|done| done.published.len()).collect::<Vec<_>>(), [1, 1, 1]);
    assert_eq!(world.stored().len(), 3);
    assert_eq!(sweep_stale(&world.homes.path().join("homes")).unwrap(), Default::default());
}

#[test]
fn the_session_of_a_killed_run_is_kept_and_can_be_continued() {
    for version in versions() {
        let world = World::new(&version);
        let home = overlay(&world.request());
        let turn = Turn::new().text("Half an answer").gate("never");
        let mut command = world.command("killed", vec![turn], &["-p", "kill me"]);
        let mut child = command.envs(home.env()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        assert!(world.server.wait_until("killed", LIMIT, |state| state.turns_in_flight() == 1));
        child.kill().unwrap();
        child.wait().unwrap();
        // Alhena is gone as well: only its files are left.
        drop(home);
        let swept = sweep_stale(&world.homes.path().join("homes")).unwrap();
        assert_eq!((swept.recovered.len(), swept.recovered[0].1.published.len()), (1, 1), "{version}");
        let mut request = world.request();
        request.resume = Some(Resume::Latest);
        let home = overlay(&request);
        let id = home.resumed_id().unwrap().to_owned();
        world.run_in(&home, "after", say("Yes."), &["--resume", &id, "-p", "go on"]);
        assert!(world.bodies("after").pop().unwrap().contains("kill me"), "{version}");
    }
}

// REQUIREMENTS, tool limits: `--policy` replaces the user's own policies.
#[test]
fn rules_of_the_run_and_of_the_user_both_act() {
    for version in versions() {
        let world = World::new(&version);
        let rule = "[[rule]]\ntoolName = \"run_shell_command\"\ncommandPrefix = \"echo user\"\ndecision = \"allow\"\npriority = 100\n";
        world.write(".gemini/policies/user.toml", rule);
        let rules =
            |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect::<Vec<ToolRule>>();
        let ours = world.homes.path().join("ours.toml");
        let text = policy_text(
            &rules(&["run_shell_command(echo run)"]),
            &rules(&["glob", "run_shell_command(echo run no)"]),
            &[],
            Shell::Judges,
        );
        fs::write(&ours, text).unwrap();
        let paths = policy_paths(&ours, &[], &world.user.path(), &Map::new());
        let flags: Vec<&str> = paths.iter().flat_map(|path| ["--policy", path.to_str().unwrap()]).collect();
        let commands = ["echo user", "echo run", "echo run no", "echo other"];
        for mode in ["default", "yolo"] {
            let arguments = [flags.as_slice(), &["--approval-mode", mode, "-p", "hi"]].concat();
            let (events, _) = world.run(&world.request(), mode, shell(&commands), &arguments);
            let denied = "policy_violation";
            assert_eq!(results(&events), ["success", "success", denied, denied], "{version} {mode}");
            let request = world.server.requests(mode).into_iter().next().unwrap();
            let offered: Vec<&str> =
                request.tools().filter(|tool| ["glob", "list_directory"].contains(tool)).collect();
            assert_eq!(offered, ["list_directory"], "{version} {mode}");
        }
    }
}

#[test]
fn a_command_is_not_hidden_from_the_rules_of_a_run_without_questions() {
    for version in versions() {
        let world = World::new(&version);
        let ours = world.homes.path().join("ours.toml");
        let rule = |text: &str| vec![text.parse::<ToolRule>().unwrap()];
        let hidden =
            ["echo \"$\\\n(touch M)\"", "echo $\\\n'a\\' '; touch M; echo \\'", "true && \\\n touch M"];
        let commands = [&hidden[..], &["echo 'a; b' && echo c"]].concat();
        for (mode, allow, deny) in [
            ("default", rule("run_shell_command(echo)"), Vec::new()),
            ("yolo", Vec::new(), rule("run_shell_command(touch)")),
        ] {
            fs::write(&ours, policy_text(&allow, &deny, &[], Shell::Judges)).unwrap();
            let arguments = ["--policy", ours.to_str().unwrap(), "--approval-mode", mode, "-p", "hi"];
            let (events, _) = world.run(&world.request(), mode, shell(&commands), &arguments);
            let denied = "policy_violation";
            assert_eq!(results(&events), [denied, denied, denied, "success"], "{version} {mode}");
            assert!(!world.user.workspace().join("M").exists(), "{version} {mode}");
        }
    }
}

#[test]
fn a_shell_that_is_allowed_as_a_whole_may_redirect() {
    for version in versions() {
        let world = World::new(&version);
        let ours = world.homes.path().join("ours.toml");
        fs::write(&ours, policy_text(&["run_shell_command".parse().unwrap()], &[], &[], Shell::Judges))
            .unwrap();
        let arguments = ["--policy", ours.to_str().unwrap(), "-p", "hi"];
        let (events, _) = world.run(&world.request(), "redirect", shell(&["echo x > out.txt"]), &arguments);
        assert_eq!(results(&events), ["success"], "{version}");
        assert_eq!(fs::read_to_string(world.user.workspace().join("out.txt")).unwrap(), "x\n", "{version}");
    }
}

/// A server that says what its environment holds.
const MCP_SERVER: &str = r#"
const lines = require('node:readline').createInterface({input: process.stdin});
lines.on('line', (line) => {
  const {id, method, params} = JSON.parse(line);
  if (id === undefined) return;
  const shown = 'It has ' + JSON.stringify([process.env.TOKEN, process.env.EMPTY, ...process.argv.slice(2)]);
  const result = {
    initialize: () => ({protocolVersion: params.protocolVersion, capabilities: {tools: {}}, serverInfo: {name: 's', version: '1'}}),
    'tools/list': () => ({tools: [{name: 'show', description: 'Shows.', inputSchema: {type: 'object', properties: {}}}]}),
    'tools/call': () => ({content: [{type: 'text', text: shown}]}),
  }[method];
  const answer = result ? {result: result()} : {error: {code: -32601, message: 'no'}};
  process.stdout.write(JSON.stringify({jsonrpc: '2.0', id, ...answer}) + '\n');
});
"#;

// The CLI's own `mcp add` cuts `a=b==` and drops empty values.
#[test]
fn an_mcp_server_of_the_run_works_beside_the_users_and_gets_every_value() {
    for version in versions() {
        let world = World::new(&version);
        world.write("server.js", MCP_SERVER);
        let script = world.user.path().join("server.js");
        world
            .user
            .write_settings(&json!({
                "security": {"auth": {"selectedType": "gemini-api-key"}},
                "mcp": {"allowed": ["theirs"]},
                "mcpServers": {"theirs": {"command": "node", "args": [script]}},
            }))
            .unwrap();
        let before = world.user.snapshot().unwrap();
        let file = json!({"mcpServers": {"mine": {
            "command": "node", "args": [script, "two words"], "env": {"TOKEN": "a=b==", "EMPTY": ""}, "trust": true,
        }}});
        let servers = McpServer::from_json(file.as_object().cloned().unwrap()).unwrap();
        let mut request = world.request();
        request.settings.extend(McpServer::settings(&servers));
        let turns = vec![
            Turn::new().calls([("mcp_mine_show", json!({})), ("mcp_theirs_show", json!({}))]),
            Turn::say("Done."),
        ];
        let (events, _) = world.run(&request, "mcp", turns, &["-p", "hi"]);
        assert_eq!(results(&events), ["success", "success"], "{version}");
        let last = world.server.requests("mcp").pop().unwrap();
        let answer = last.responses().find(|(name, _)| *name == "mcp_mine_show").unwrap().1.to_string();
        assert!(answer.contains(r#"[\"a=b==\",\"\",\"two words\"]"#), "{version}: {answer}");
        let settings = std::path::Path::new(".gemini/settings.json");
        let after = world.user.snapshot().unwrap();
        assert_eq!(after.entries[settings], before.entries[settings], "{version}");
    }
}

// 0.44 and later let the model write to the project's memory; before, `save_memory` wrote to the user's context file.
#[test]
fn what_the_model_remembers_is_the_users() {
    for version in versions() {
        let world = World::new(&version);
        world.write(".gemini/GEMINI.md", "Theirs.\n");
        let mut request = world.request();
        request.context = Some("Ours.".into());
        let home = overlay(&request);
        let memory = home.path().join(".gemini/tmp/work/memory/MEMORY.md");
        let call = match world.is_before(44) {
            true => Turn::new().call("save_memory", json!({"fact": "Likes tea."})),
            false => Turn::new().call("write_file", json!({"file_path": memory, "content": "Likes tea.\n"})),
        };
        let turns = vec![call, Turn::say("Noted.")];
        let events = world.run_in(&home, "memory", turns, &["--approval-mode", "yolo", "-p", "hi"]);
        assert_eq!(results(&events), ["success"], "{version}");
        let done = finish(&home.plan(), Stopped::Never);
        assert_eq!(done.warnings, Vec::<String>::new(), "{version}");
        let context = fs::read_to_string(world.user.gemini().join("GEMINI.md")).unwrap();
        if world.is_before(44) {
            let expected = "Theirs.\n\n\n## Gemini Added Memories\n- Likes tea.\n";
            assert_eq!(
                context.split_whitespace().collect::<Vec<_>>(),
                expected.split_whitespace().collect::<Vec<_>>()
            );
        } else {
            assert_eq!(context, "Theirs.\n", "{version}");
            let kept = world.user.gemini().join("tmp/work/memory/MEMORY.md");
            assert_eq!(fs::read_to_string(kept).unwrap(), "Likes tea.\n", "{version}");
        }
    }
}

#[test]
fn sub_agents_and_long_outputs_are_kept_with_the_session() {
    let world = World::new("0.61.0");
    let turns = vec![
        Turn::new().call("invoke_agent", json!({"agent_name": "generalist", "prompt": "help"})),
        Turn::new().call("complete_task", json!({"result": {"response": "Helped."}})),
        Turn::new().call("run_shell_command", json!({"command": "yes x | head -c 100000"})),
        Turn::say("Done."),
    ];
    let (events, done) =
        world.run(&world.request(), "agents", turns, &["--approval-mode", "yolo", "-p", "hi"]);
    assert_eq!(results(&events), ["success", "success"]);
    assert_eq!((done.published.len(), done.warnings), (1, Vec::new()));
    let id = events[0]["session_id"].as_str().unwrap();
    let project = world.user.gemini().join("tmp/work");
    assert_eq!(fs::read_dir(project.join("chats").join(id)).unwrap().count(), 1);
    assert_eq!(fs::read_dir(project.join(format!("tool-outputs/session-{id}"))).unwrap().count(), 1);
    // The shell history, logs and checkpoints of the run are gone with it.
    let mut names: Vec<_> = fs::read_dir(&project).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, [".project_root", "chats", "tool-outputs"]);
}
