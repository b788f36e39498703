//! Cassettes on the real CLI: recorded over TLS from a server with its own certificate authority, played back with the
//! server gone.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use crate::common::{Desk, Started, Transcript};
use crate::lab::write_file;
use alhena_scripted::{Scenario, Server, Turn, Usage, When};
use alhena_testbed::tls::TlsFront;
use alhena_testbed::{RealCli, Watchdog, processes_with_env};
use serde_json::{Value, json};

const LIMIT: Duration = Duration::from_secs(240);
const KEY: &str = "AIzaSy-not-a-real-key-0123456789abcdefg";

/// The API behind TLS, for as long as it lives.
struct Api {
    server: Server,
    front: TlsFront,
}

impl Api {
    fn of(scenario: Scenario) -> Self {
        let server = Server::start().unwrap();
        server.add("api", scenario);
        server.serve_at_root("api");
        let front = TlsFront::before(server.address()).unwrap();
        Self { server, front }
    }
}

/// A desk that knows the authority and the address, if there is one, and where Gemini CLI is.
fn desk(api: Option<&Api>) -> (Desk, String) {
    let cli = RealCli::get("0.61.0").unwrap();
    let mut desk = Desk::new().env("PATH", std::env::var("PATH").unwrap());
    if let Some(api) = api {
        desk = desk.env("SSL_CERT_FILE", TlsFront::authority()).env("GEMINI_API_KEY", KEY);
        desk = desk.env("GOOGLE_GEMINI_BASE_URL", api.front.url());
    }
    desk.write("notes.txt", "The river is wide.\n");
    (desk, cli.bin.to_str().unwrap().to_owned())
}

fn run(desk: &Desk, gemini: &str, args: &[&str]) -> Transcript {
    let model = ["run", "--gemini", gemini, "--trust", "--model", "gemini-2.5-flash", "--as", "outcome"];
    let args = [&model, args].concat();
    Started::new(desk, desk.command(&args), b"").finish(desk, &args, LIMIT)
}

/// What an outcome says, without what is different in every run.
fn comparable(outcome: &Value, desk: &Desk) -> Value {
    let text = outcome.to_string().replace(desk.root().to_str().unwrap(), "[DESK]");
    let mut outcome: Value = serde_json::from_str(&text).unwrap();
    without(&mut outcome, &["session_id", "duration_ms", "latency_ms", "call_id", "stderr"]);
    let fields = outcome.as_object_mut().unwrap();
    if let Some(warnings) = fields.get_mut("warnings").and_then(Value::as_array_mut) {
        warnings.retain(|warning| {
            let warning = warning.as_str().unwrap();
            !warning.starts_with("Played back: ") && !crate::lab::says_only_slow(warning)
        });
    }
    outcome
}

/// Takes fields out, wherever they are.
fn without(value: &mut Value, names: &[&str]) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| without(item, names)),
        Value::Object(fields) => {
            fields.retain(|name, _| !names.contains(&name.as_str()));
            fields.values_mut().for_each(|field| without(field, names));
        }
        _ => {}
    }
}

fn call(tool: &str, args: Value) -> Turn {
    Turn::new().call(tool, args)
}

/// Recorded over TLS, and played back elsewhere with the server gone: the outcomes are equal.
#[test]
fn real_cli_text_tools_and_token_counts_play_back_and_what_was_not_recorded_fails_with_what_differs() {
    let _watchdog = Watchdog::new("plays back", Duration::from_secs(900));
    let usage = Usage {
        prompt_token_count: Some(1234),
        cached_content_token_count: Some(1000),
        thoughts_token_count: Some(7),
        ..Usage::default()
    };
    let both = [
        ("read_file", json!({"file_path": "notes.txt"})),
        ("run_shell_command", json!({"command": "echo one; exit 3"})),
    ];
    let note = json!({"file_path": "note.txt", "content": "Noted.\n"});
    let scenario = Scenario::new()
        .turn(Turn::new().thought("Plan", "Short.").text("Look ").text("first.").calls(both).usage(usage))
        .turn(Turn::new().chunks("Grüße, 世界 🌍!", 3, Duration::ZERO).call("write_file", note))
        .turn(Turn::say("Cut o").finish("MAX_TOKENS"));
    let api = Api::of(scenario);
    let (there, gemini) = desk(Some(&api));
    let args = ["--cassette", "talk.json", "--approval", "yolo", "Do it"];
    let recorded = run(&there, &gemini, &args);
    let asked = api.server.requests("api").len();
    assert_eq!(asked, 3, "{recorded}");
    let cassette = there.work().join("talk.json");
    let text = fs::read_to_string(&cassette).unwrap_or_else(|error| panic!("{error} {recorded}"));
    assert!(!text.contains(KEY) && !recorded.stdout.contains(KEY));
    assert!(!text.contains(there.root().to_str().unwrap()));
    assert_eq!(fs::metadata(&cassette).unwrap().permissions().mode() & 0o777, 0o600);
    let read: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(read["interactions"].as_array().unwrap().len(), asked);
    drop(api);

    let (here, _) = desk(None);
    here.write("talk.json", &text);
    let played = run(&here, &gemini, &args);
    assert_eq!(comparable(&played.json(), &here), comparable(&recorded.json(), &there), "{played}");
    assert_eq!(played.code(), recorded.code(), "{played}");
    let notice = "Played back: the answers come from the cassette talk.json";
    assert!(played.json()["warnings"].as_array().unwrap().contains(&json!(notice)), "{played}");
    assert_eq!(fs::read_to_string(here.work().join("talk.json")).unwrap(), text);
    // Files are really written.
    assert_eq!(fs::read_to_string(here.work().join("note.txt")).unwrap(), "Noted.\n");

    let played = run(&here, &gemini, &[&args[..4], &["Do that"]].concat());
    assert_ne!(played.code(), Some(0), "{played}");
    let failure = &played.json()["failure"];
    let place = "This request is not on the cassette talk.json (`cassette_mode` record records it anew): contents[0].parts[1].text: ";
    let said = "recorded was \"Do it\", asked is \"Do that\"";
    assert_eq!(failure["message"], json!(format!("{place}{said}")), "{played}");
    let hint = failure["hint"].as_str().unwrap();
    assert!(hint.contains("record it anew by `cassette_mode` record"), "{played}");
    for desk in [&there, &here] {
        assert_eq!(processes_with_env(&format!("HOME={}", desk.home().display())), [0_u32; 0]);
        assert!(!desk.home().join(".gemini").exists());
    }
}

/// Who does not say more wants a conversation, and not the bad day of an API for ever.
#[test]
fn real_cli_an_error_of_the_api_is_not_kept_unless_it_is_asked_for() {
    let _watchdog = Watchdog::new("error", Duration::from_secs(900));
    let api = Api::of(Scenario::new().turn(Turn::daily_quota().always()));
    let (desk, gemini) = desk(Some(&api));
    let path = desk.work().join("talk.json");
    let failed = run(&desk, &gemini, &["--cassette", "talk.json", "Do it"]);
    assert_eq!(failed.json()["failure"]["kind"], json!("rate_limited"), "{failed}");
    assert!(
        failed.stderr.contains("the cassette talk.json is not written; --cassette-mode record"),
        "{failed}"
    );
    assert!(!path.exists());

    let kept = run(&desk, &gemini, &["--cassette", "talk.json", "--cassette-mode", "record", "Do it"]);
    assert_eq!(kept.json()["failure"]["kind"], json!("rate_limited"), "{kept}");
    assert!(kept.stderr.contains("the cassette talk.json ends with an error of the API: 429"), "{kept}");
    let played = run(&desk, &gemini, &["--cassette", "talk.json", "--cassette-mode", "replay", "Do it"]);
    let warnings = played.json()["warnings"].to_string();
    assert!(
        warnings.contains("Played back: the cassette talk.json ends with an error of the API: 429"),
        "{played}"
    );
    assert_eq!(played.json()["failure"]["kind"], json!("rate_limited"), "{played}");

    api.server.add("api", Scenario::new().turn(Turn::say("Hello.")));
    let anew = run(&desk, &gemini, &["--cassette", "talk.json", "Do it"]);
    assert_eq!(anew.json()["final_text"], json!("Hello."), "{anew}");
    let warnings = anew.json()["warnings"].to_string();
    assert!(
        warnings.contains("Recorded anew: the cassette talk.json ended with an error of the API: 429"),
        "{anew}"
    );
    drop(api);
    let played = run(&desk, &gemini, &["--cassette", "talk.json", "Do it"]);
    assert_eq!(played.json()["final_text"], json!("Hello."), "{played}");
}

/// The same CLI, installed at another place.
fn installed_at(place: &Path) -> String {
    let cli = RealCli::get("0.61.0").unwrap();
    // Links to the files are enough, where the file system has them: Node looks for the place of a link to a directory.
    for how in ["-al", "-a"] {
        let copied =
            std::process::Command::new("cp").arg(how).arg(cli.dir.join("node_modules")).arg(place).output();
        if copied.unwrap().status.success() {
            break;
        }
        fs::remove_dir_all(place.join("node_modules")).unwrap();
    }
    place.join("node_modules/.bin/gemini").to_str().unwrap().to_owned()
}

/// Another installation, home, directory for temporary files, folder, user, date and Node.
#[test]
fn real_cli_a_cassette_plays_back_on_another_machine() {
    let _watchdog = Watchdog::new("elsewhere", Duration::from_secs(900));
    let api = Api::of(Scenario::new());
    let (there, gemini) = desk(Some(&api));
    let there = there.env("TZ", "Pacific/Kiritimati").env("USER", "ann");
    let memory = there.home().join("memory.md");
    let shell = json!({"command": "pwd; echo $TMPDIR $HOME; cat notes.txt; ls -d $TMPDIR"});
    let note = json!({"file_path": there.work().join("note.txt"), "content": "Noted.\n"});
    let home = json!({"command": format!("echo mine > '{}'", memory.display())});
    let scenario = Scenario::new()
        .turn(call("run_shell_command", shell))
        .turn(call("write_file", note).when(When::new().response_of("run_shell_command")))
        .turn(call("run_shell_command", home).when(When::new().response_of("write_file")))
        .turn(Turn::say("All tests pass."));
    api.server.add("api", scenario);
    let args = ["--cassette", "talk.json", "--approval", "yolo", "Run the test"];
    let recorded = run(&there, &gemini, &args);
    assert_eq!(recorded.json()["status"], json!("success"), "{recorded}");
    let text = fs::read_to_string(there.work().join("talk.json")).unwrap();
    let places = [there.root(), Path::new(&gemini).ancestors().nth(3).unwrap().to_owned()];
    for place in places {
        assert!(!text.contains(place.to_str().unwrap()), "{}", place.display());
    }
    drop(api);

    let (here, _) = desk(None);
    let (home, tmp, work) = ("people/bob the second", "t", "projects/a folder");
    let [home, tmp, work] = [home, tmp, work].map(|name| here.root().join(name));
    for dir in [&home, &tmp, &work] {
        fs::create_dir_all(dir).unwrap();
    }
    fs::write(work.join("notes.txt"), "The river is wide.\n").unwrap();
    fs::write(work.join("talk.json"), &text).unwrap();
    let node = alhena_testbed::tools::node22().unwrap();
    let path = format!("{}:{}", node.parent().unwrap().display(), std::env::var("PATH").unwrap());
    let here = here.env("TZ", "Pacific/Pago_Pago").env("USER", "bob").env("LANG", "de_DE.UTF-8");
    let here = here.env("HOME", &home).env("TMPDIR", &tmp).env("PATH", path);
    let elsewhere = here.root().join("opt/gemini cli");
    fs::create_dir_all(&elsewhere).unwrap();
    let gemini = installed_at(&elsewhere);
    let args = [&["--dir", work.to_str().unwrap()], &args[..]].concat();
    let talk = work.join("talk.json");
    let args: Vec<&str> =
        args.iter().map(|arg| if *arg == "talk.json" { talk.to_str().unwrap() } else { arg }).collect();
    let played = run(&here, &gemini, &args);
    assert_eq!(played.json()["status"], json!("success"), "{played}");
    assert_eq!(played.json()["final_text"], recorded.json()["final_text"], "{played}");
    assert_eq!(fs::read_to_string(work.join("note.txt")).unwrap(), "Noted.\n");
    assert_eq!(fs::read_to_string(home.join("memory.md")).unwrap_or_default(), "mine\n", "{played}");
}

/// A password that is a word is in everything that is asked. A replay matches whatever the password is here, and never prints it.
#[test]
fn real_cli_a_secret_that_others_do_not_have_makes_no_difference() {
    let _watchdog = Watchdog::new("secret", Duration::from_secs(900));
    let api =
        Api::of(Scenario::new().turn(Turn::say("The tables of postgres are there: the test is green.")));
    let (there, gemini) = desk(Some(&api));
    // A gateway takes any word for a key, and such a word is no secret.
    let there = there.env("DB_PASSWORD", "postgres").env("GEMINI_API_KEY", "test");
    let args = ["--cassette", "talk.json", "Run the test of postgres"];
    let recorded = run(&there, &gemini, &args);
    assert_eq!(recorded.json()["status"], json!("success"), "{recorded}");
    drop(api);
    let text = fs::read(there.work().join("talk.json")).unwrap();
    assert!(!String::from_utf8_lossy(&text).contains("postgres"));
    for secret in [None, Some(("DB_PASSWORD", "postgres")), Some(("OTHER_PASSWORD", "file"))] {
        let (mut here, _) = desk(None);
        if let Some((name, value)) = secret {
            here = here.env(name, value);
        }
        here.write("talk.json", &text);
        let played = run(&here, &gemini, &args);
        let answer = "The tables of [[secret:DB_PASSWORD]] are there: the test is green.";
        assert_eq!(played.json()["final_text"], json!(answer), "{played}");
    }
}

/// An edited cassette asks for secrets of the machine that replays it, in its text and in a file that a tool writes.
#[test]
fn real_cli_a_cassette_cannot_ask_for_secrets() {
    let _watchdog = Watchdog::new("ask for secrets", Duration::from_secs(900));
    const AWS: &str = "wJalrXUtnFEMI-K7MDENG-bPxRfiCYEXAMPLEKEY";
    let placed = "[[secret:GEMINI_API_KEY]] [[secret:AWS_SECRET_ACCESS_KEY]] [[secret:key]]";
    let write = write_file("note.txt", "WANTED");
    let api = Api::of(Scenario::new().turn(write).turn(Turn::say("WANTED")));
    let (there, gemini) = desk(Some(&api));
    let args = ["--approval", "auto-edit", "--cassette", "talk.json", "Note it"];
    let recorded = run(&there, &gemini, &args);
    assert_eq!(recorded.json()["final_text"], json!("WANTED"), "{recorded}");
    drop(api);
    let edited = fs::read_to_string(there.work().join("talk.json")).unwrap().replace("WANTED", placed);

    let (here, _) = desk(None);
    let here = here.env("GEMINI_API_KEY", KEY).env("AWS_SECRET_ACCESS_KEY", AWS);
    here.write("talk.json", &edited);
    let args = [&args[..4], &["--record", "recording", "Note it"]].concat();
    let played = run(&here, &gemini, &args);
    assert_eq!(played.json()["final_text"], json!(placed), "{played}");
    assert_eq!(fs::read_to_string(here.work().join("note.txt")).unwrap(), placed);
    let mut files = vec![here.work().join("recording")];
    while let Some(path) = files.pop() {
        if path.is_dir() {
            files.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            continue;
        }
        let text = String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned();
        assert!(!text.contains(KEY) && !text.contains(AWS), "{}", path.display());
    }
    assert!(!played.stdout.contains(KEY) && !played.stdout.contains(AWS), "{played}");

    // The same by way of `mock`, for any program.
    let host = format!(
        "eval \"$({} mock --env --cassette talk.json --cassette-mode replay)\"; {gemini} --skip-trust -m gemini-2.5-flash \
         --approval-mode auto_edit -p 'Note it'",
        crate::common::ALHENA
    );
    fs::remove_file(here.work().join("note.txt")).unwrap();
    let prepared = here.command(&[]);
    let mut command = std::process::Command::new("bash");
    command.args(["-c", &host]).current_dir(here.work()).env_clear();
    command.envs(prepared.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let played = Started::new(&here, command, b"").finish(&here, &["mock"], LIMIT);
    assert!(played.stdout.contains(placed), "{played}");
    assert!(!format!("{played}").contains(KEY) && !format!("{played}").contains(AWS), "{played}");
}

#[test]
fn real_cli_other_programs_record_and_play_back_by_variables() {
    let _watchdog = Watchdog::new("mock", Duration::from_secs(900));
    let api = Api::of(Scenario::new().turn(Turn::say("Hello from the API.")));
    let (desk, gemini) = desk(Some(&api));
    let host = format!(
        "eval \"$({} mock --env --log log --cassette talk.json)\"; {gemini} --skip-trust -m gemini-2.5-flash -p Hi",
        crate::common::ALHENA
    );
    let shell = |host: &str| {
        let prepared = desk.command(&[]);
        let mut command = std::process::Command::new("bash");
        command.args(["-c", host]).current_dir(desk.work()).env_clear();
        command.envs(prepared.get_envs().filter_map(|(name, value)| Some((name, value?))));
        Started::new(&desk, command, b"").finish(&desk, &["mock"], LIMIT)
    };
    let recorded = shell(&host);
    assert!(recorded.stdout.contains("Hello from the API."), "{recorded}");
    assert!(!fs::read_to_string(desk.work().join("talk.json")).unwrap().contains(KEY));
    assert!(fs::read_to_string(desk.work().join("log")).unwrap().contains("passed on: /v1beta/models/"));
    drop(api);
    let played = shell(&host);
    assert_eq!((played.code(), &played.stdout), (Some(0), &recorded.stdout), "{played}");
    // The program need not be where the server is.
    let elsewhere = host.replace("; ", "; mkdir -p other/folder && cd other/folder && ");
    let played = shell(&elsewhere);
    assert_eq!((played.code(), &played.stdout), (Some(0), &recorded.stdout), "{played}");
}
