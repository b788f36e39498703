//! promptfoo itself, with the provider, on the real CLI.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use alhena_scripted::{Scenario, Turn, Usage, When};
use alhena_testbed::npm::Packages;
use alhena_testbed::{cache, run_bounded, tools};
use serde_json::{Value, json};

use super::place::Place;

pub const PROMPTFOO: &str = "@alhena/promptfoo-gemini-cli";
const LIMIT: Duration = Duration::from_secs(420);

fn usage() -> Usage {
    Usage {
        prompt_token_count: Some(1000),
        cached_content_token_count: Some(200),
        candidates_token_count: Some(100),
        thoughts_token_count: Some(50),
        total_token_count: Some(1150),
        ..Usage::default()
    }
}

/// What one answer of that size costs with gemini-2.5-flash: 800 fresh, 200 cached, 150 out.
const ONE_ANSWER: f64 = (800.0 * 0.3 + 200.0 * 0.03 + 150.0 * 2.5) / 1e6;

fn greetings() -> Scenario {
    let mut scenario = Scenario::new()
        .turn(
            Turn::error(400, json!({"code": 400, "message": "No such luck.", "status": "INVALID_ARGUMENT"}))
                .when(When::new().prompt("Fail"))
                .always(),
        )
        .turn(Turn::new().text("Wait").hang().when(When::new().prompt("Slow")).always());
    for name in ["Ada", "Bob", "Eve"] {
        let wrote = When::new().response_of("write_file").text(format!("greet {name} in a file"));
        let file = json!({"file_path": "greeting.txt", "content": format!("Hello, {name}!\n")});
        scenario = scenario
            .turn(Turn::say(format!("I greeted {name}.")).usage(usage()).when(wrote).always())
            .turn(
                Turn::new()
                    .call("write_file", file)
                    .usage(usage())
                    .when(When::new().prompt(format!("greet {name} in a file")))
                    .always(),
            )
            .turn(
                Turn::say(format!("Hello, {name}!"))
                    .usage(usage())
                    .when(When::new().prompt(format!("hello to {name}")))
                    .always(),
            );
    }
    scenario
}

pub fn build(place: &Place) -> Packages {
    Packages::build(&place.home.path().join("npm"), &[PROMPTFOO]).unwrap()
}

/// `promptfoo eval` with a config of the adapter's, and the results that it wrote.
pub fn eval(place: &Place, packages: &Packages, config: &str, more: impl FnOnce(&mut Command)) -> Vec<Value> {
    eval_by(&tools::promptfoo().unwrap(), place, packages, config, more)
}

fn eval_by(
    promptfoo: &Path,
    place: &Place,
    packages: &Packages,
    config: &str,
    more: impl FnOnce(&mut Command),
) -> Vec<Value> {
    let results = place.home.tmp().join("results.json");
    let node = tools::node22().unwrap();
    let config = packages.directory(PROMPTFOO).join(config);
    let mut command = place.command("promptfoo", &node, &[&promptfoo.to_string_lossy(), "eval", "-c"]);
    // Not where the config is: relative paths in it are relative to it.
    command.arg(config).current_dir(place.home.workspace());
    command.arg("-o").arg(&results).args(["--no-progress-bar", "--no-table"]);
    command.env("PROMPTFOO_CONFIG_DIR", place.home.path().join(".promptfoo"));
    for quiet in ["TELEMETRY", "UPDATE", "REMOTE_GENERATION", "SHARING"] {
        command.env(format!("PROMPTFOO_DISABLE_{quiet}"), "1");
    }
    more(&mut command);
    // It exits 100 when a case fails, which is wanted here.
    let done = run_bounded(&mut command, LIMIT).unwrap();
    let text = std::fs::read_to_string(&results)
        .unwrap_or_else(|_| panic!("{}\n{}\n{}", done.ending(), done.stdout_text(), done.stderr_text()));
    // What promptfoo itself adds to a configuration is no misspelled option.
    let said = format!("{}{}", done.stdout_text(), done.stderr_text());
    assert!(!said.contains("has no option"), "{said}");
    std::fs::remove_file(&results).unwrap();
    let all: Value = serde_json::from_str(&text).unwrap();
    let mut cases = all["results"]["results"].as_array().unwrap().clone();
    cases.sort_by_key(|case| (case["testIdx"].as_u64(), case["promptIdx"].as_u64()));
    cases
}

fn column(cases: &[Value], pointer: &str) -> Vec<Value> {
    cases.iter().map(|case| case.pointer(pointer).cloned().unwrap_or(Value::Null)).collect()
}

#[test]
fn real_promptfoo_evaluates_and_caches() {
    let place = Place::new("promptfoo", [("eval", greetings())]);
    let packages = build(&place);
    let first = eval(&place, &packages, "test/promptfooconfig.yaml", |_| ());
    assert_eq!(first.len(), 10);
    let success = column(&first, "/success");
    let reasons = column(&first, "/error");
    assert_eq!(
        success,
        [true, true, true, true, false, false, false, false, false, false].map(Value::Bool),
        "{reasons:?}"
    );
    assert_eq!(
        column(&first, "/response/output")[..6],
        ["Hello, Ada!", "I greeted Ada.", "Hello, Bob!", "I greeted Bob.", "Hello, Eve!", "I greeted Eve."]
            .map(|text| json!(text))
    );
    // Eve fails an assertion only; the API's error and the time-out are errors.
    let errors: Vec<String> =
        column(&first, "/error").iter().map(|error| error.as_str().unwrap_or("").to_owned()).collect();
    assert!(errors[..4].iter().all(String::is_empty), "{errors:?}");
    assert!(errors[4].contains("never said"), "{errors:?}");
    for api in &errors[6..8] {
        assert!(api.starts_with("Gemini CLI error: Exit code 144: "), "{api}");
        assert!(api.contains("No such luck."), "{api}");
    }
    assert_eq!(
        errors[8..],
        [
            "Gemini CLI error: The run took longer than 12 s",
            "Gemini CLI error: The run took longer than 12 s"
        ]
    );
    for (case, answers) in first[..6].iter().zip([1, 2, 1, 2, 1, 2]) {
        let usage = &case["response"]["tokenUsage"];
        assert_eq!(
            (&usage["prompt"], &usage["completion"], &usage["total"]),
            (&json!(1000 * answers), &json!(100 * answers), &json!(1150 * answers)),
            "{case}"
        );
        assert_eq!(usage["completionDetails"]["reasoning"], 50 * answers, "{case}");
        assert_eq!(case["response"]["metadata"]["sessionId"], case["response"]["sessionId"]);
        let cost = case["cost"].as_f64().unwrap();
        assert!((cost - ONE_ANSWER * f64::from(answers)).abs() < 1e-9, "{cost}");
        assert!(case["latencyMs"].as_u64().unwrap() > 0);
        assert!(case["response"]["sessionId"].as_str().is_some_and(|id| !id.is_empty()));
        assert_eq!(case["provider"]["id"], "package:@alhena/promptfoo-gemini-cli:GeminiCli");
        assert_eq!(case["response"]["cached"], Value::Null);
    }
    place.assert_nothing_left();

    // Again: what succeeded comes from the cache, what failed is tried again.
    let asked = place.requests("eval").len();
    let second = eval(&place, &packages, "test/promptfooconfig.yaml", |_| ());
    assert_eq!(column(&second, "/success"), success);
    let cached = column(&second, "/response/cached");
    assert_eq!(cached[..6], [true; 6].map(Value::Bool));
    assert_eq!(column(&second, "/response/output")[..6], column(&first, "/response/output")[..6]);
    assert!(cached[6..].iter().all(Value::is_null), "{cached:?}");
    // As promptfoo's own providers tell it.
    for (case, answers) in second[..6].iter().zip([1, 2, 1, 2, 1, 2]) {
        let usage = &case["response"]["tokenUsage"];
        let told = [&usage["prompt"], &usage["completion"], &usage["cached"], &usage["total"], &case["cost"]];
        assert_eq!(
            told.map(|number| number.as_f64()),
            [0, 0, 1150 * answers, 1150 * answers, 0].map(|n| Some(f64::from(n)))
        );
        assert_eq!(usage["completionDetails"]["reasoning"], 50 * answers);
    }
    let again = place.requests("eval");
    let asked_again: Vec<&str> = again[asked..].iter().filter_map(|request| request.prompt()).collect();
    assert!(!asked_again.is_empty());
    assert!(
        asked_again.iter().all(|prompt| prompt.contains("Fail") || prompt.contains("Slow")),
        "{asked_again:?}"
    );
}

#[test]
fn an_answer_that_fits_its_schema_is_an_object_in_promptfoo() {
    let answer = Scenario::new().turn(Turn::say("It is {\"n\": 7}").always());
    let place = Place::new("promptfoo-schema", [("schema", answer)]);
    let cases = eval(&place, &build(&place), "test/schema.yaml", |_| ());
    assert_eq!(column(&cases, "/success"), [json!(true), json!(false)], "{cases:#?}");
    assert_eq!(column(&cases, "/response/output")[0], json!({"n": 7}));
    let error = cases[1]["error"].as_str().unwrap();
    assert!(error.starts_with("Gemini CLI error: ") && error.contains("schema"), "{error}");
    place.assert_nothing_left();
}

#[test]
fn an_abort_of_promptfoo_leaves_nothing_behind() {
    let sleep = Turn::new().call("run_shell_command", json!({"command": "sleep 300", "description": "rest"}));
    let place = Place::new("promptfoo-abort", [("sleep", Scenario::new().turn(sleep))]);
    let cases = eval(&place, &build(&place), "test/abort.yaml", |command| {
        command.env("PROMPTFOO_EVAL_TIMEOUT_MS", "45000");
    });
    let error = cases[0]["error"].as_str().unwrap();
    assert!(error.contains("timed out after 45000ms"), "{error}");
    assert_eq!(place.requests("sleep").len(), 1, "the command had begun");
    place.assert_nothing_left();
}

#[test]
fn the_exec_form_gives_text() {
    let place = Place::new("promptfoo-exec", [("exec", Scenario::new().turn(Turn::say("Hello, Ada!")))]);
    let cases = eval(&place, &build(&place), "test/exec.yaml", |_| ());
    assert_eq!(
        (&cases[0]["success"], &cases[0]["response"]["output"]),
        (&json!(true), &json!("Hello, Ada!")),
        "{}",
        cases[0]
    );
    assert_eq!(place.requests("exec")[0].prompt(), Some("- say hello to Ada"));
}

#[test]
fn the_promptfoo_example_runs() {
    let review = Scenario::new()
        .turn(Turn::new().call("read_file", json!({"file_path": "average.ts"})))
        .turn(Turn::say("average.ts reads one element too many."));
    let place = Place::new("promptfoo-example", [("review", review)]);
    let cases = eval(&place, &build(&place), "example/promptfooconfig.yaml", |_| ());
    assert_eq!(column(&cases, "/success"), [json!(true)], "{}", cases[0]);
}

/// A copy of promptfoo with the change that is meant for it.
fn patched(place: &Place) -> PathBuf {
    let installed = tools::promptfoo().unwrap();
    let installed = installed.parent().and_then(Path::parent).unwrap();
    let modules = place.home.path().join("patched/node_modules");
    std::fs::create_dir_all(&modules).unwrap();
    for entry in std::fs::read_dir(installed).unwrap() {
        let entry = entry.unwrap();
        match entry.file_name() == "promptfoo" {
            true => drop(place.run(Command::new("cp").arg("-r").arg(entry.path()).arg(&modules))),
            false => symlink(entry.path(), modules.join(entry.file_name())).unwrap(),
        }
    }
    let patch = cache::workspace().join("hosts/promptfoo/upstream/promptfoo-0.123.1-npm.patch");
    let promptfoo = modules.join("promptfoo");
    place.run(
        Command::new("git").arg("apply").arg(patch).current_dir(&promptfoo).env("GIT_DIR", "/nonexistent"),
    );
    promptfoo.join("dist/src/entrypoint.js")
}

#[test]
fn the_change_for_promptfoo_makes_gemini_cli_an_id_of_its_own() {
    let review = greetings()
        .turn(Turn::say("average.ts reads too far.").when(When::new().response_of("read_file")))
        .turn(Turn::new().call("read_file", json!({"file_path": "average.ts"})));
    let place = Place::new("promptfoo-upstream", [("eval", review)]);
    let (promptfoo, packages) = (patched(&place), build(&place));
    let cases = eval_by(&promptfoo, &place, &packages, "test/upstream.yaml", |_| ());
    assert_eq!(column(&cases, "/success"), [json!(true)], "{}", cases[0]);
    assert_eq!(cases[0]["provider"]["id"], "google:gemini-cli:gemini-2.5-flash");
    assert_eq!(cases[0]["response"]["metadata"]["models"], json!(["gemini-2.5-flash"]));

    // Promptfoo asks for tests, an example, a page and its line in the list of pages. The tests need promptfoo's sources.
    let directory = packages.directory(PROMPTFOO);
    let patch = directory.join("upstream/google-gemini-cli.patch");
    let text = std::fs::read_to_string(&patch).unwrap();
    for file in [
        "test/providers/families/google.test.ts",
        "site/docs/providers/gemini-cli.md",
        "site/docs/providers/index.md",
    ] {
        assert!(text.contains(&format!("\n+++ b/{file}\n")), "the change has no {file}");
    }
    let mut apply = Command::new("git");
    apply.args(["apply", "--include", "examples/*"]).arg(&patch);
    place.run(apply.current_dir(&directory).env("GIT_DIR", "/nonexistent"));
    let example = "examples/google-gemini-cli/promptfooconfig.yaml";
    let cases = eval_by(&promptfoo, &place, &packages, example, |_| ());
    assert_eq!(column(&cases, "/success"), [json!(true)], "{}", cases[0]);
    assert_eq!(cases[0]["provider"]["id"], "google:gemini-cli");
}

/// The packages with promptfoo beside them, and the directory that holds both.
fn beside_promptfoo(place: &Place) -> (Packages, PathBuf) {
    let packages = build(place);
    let modules = place.home.path().join("npm/node_modules");
    let installed = tools::promptfoo().unwrap();
    let installed = installed.parent().and_then(Path::parent).unwrap();
    symlink(installed.join("promptfoo"), modules.join("promptfoo")).unwrap();
    (packages, modules)
}

/// Which ids the released promptfoo can load, and as what.
const IDS: &str = r#"
import promptfoo from 'promptfoo';
import { GeminiCli } from '@alhena/promptfoo-gemini-cli';

const load = (id) => promptfoo.loadApiProvider(id, { basePath: process.cwd() }).then((found) => found.constructor.name, () => null);
const given = 'package:@alhena/promptfoo-gemini-cli:GeminiCli';
const ids = ['google:gemini-cli', new GeminiCli().id(), new GeminiCli({ id: given }).id()];
console.log(JSON.stringify(await Promise.all(ids.map(load))));
"#;

#[test]
fn the_id_of_the_provider_is_none_that_promptfoo_has_released() {
    let place = Place::new("promptfoo-ids", []);
    let (_, modules) = beside_promptfoo(&place);
    let script = modules.with_file_name("ids.mjs");
    std::fs::write(&script, IDS).unwrap();
    let mut command = place.command("promptfoo", tools::node22().unwrap(), &[&script.to_string_lossy()]);
    command.env("PROMPTFOO_CONFIG_DIR", place.home.path().join(".promptfoo"));
    command.env("PROMPTFOO_DISABLE_TELEMETRY", "1").current_dir(modules.with_file_name(""));
    let said = place.run(&mut command).stdout_text();
    let loaded: Value = serde_json::from_str(said.lines().last().unwrap()).unwrap();
    // The first is a model of Google; the second is unknown; the third is this provider again.
    assert_eq!(loaded, json!(["AIStudioChatProvider", null, "GeminiCli"]), "{said}");
}

#[test]
fn the_provider_fits_promptfoos_own_types() {
    let place = Place::new("promptfoo-types", []);
    let (packages, modules) = beside_promptfoo(&place);
    let proof = packages.directory(PROMPTFOO).join("fits.ts");
    let text = format!(
        "import type {{ ApiProvider, ProviderOptions }} from 'promptfoo';\n\
         import {{ GeminiCli }} from '{PROMPTFOO}';\n\
         export const fits: (options: ProviderOptions) => ApiProvider = (options) => new GeminiCli(options);\n"
    );
    std::fs::write(&proof, text).unwrap();
    let compiler = modules.join("typescript/bin/tsc");
    let mut command =
        place.command("promptfoo", "node", &[&compiler.to_string_lossy(), "--noEmit", "--strict"]);
    // Its own declarations are not the test.
    command.args(["--skipLibCheck", "--module", "NodeNext", "--target", "ES2022", "--types", "node"]);
    place.run(command.arg(&proof).current_dir(packages.directory(PROMPTFOO)));
}
