//! What `/openapi.json` says, held against the server by tools that know nothing else of it.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use alhena_testbed::{run_bounded, tools};

use super::{says, serve};

/// Generators and attacks take their time on busy cores.
const LIMIT: Duration = Duration::from_secs(900);

fn succeeds(command: &mut Command) -> String {
    let done = run_bounded(command, LIMIT).unwrap();
    let said =
        format!("{}\n{}", String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert!(done.succeeded(), "{command:?}\n{said}");
    said
}

/// What an option's value means is judged by the option, and said: a schema cannot say that "soon" is no time.
const ATTACKS: &str = r#"
[[operations]]
include-operation-id-regex = "^(runs_start|conversations_open)$"
[operations.checks.positive_data_acceptance]
enabled = false

[[operations]]
include-operation-id = "now_events"
[operations.parameters]
"query.follow" = "false"
"#;

fn python(tools: &Path) -> Command {
    let mut python = Command::new("python3");
    python.env("PYTHONPATH", tools).env("PYTHONDONTWRITEBYTECODE", "1");
    python
}

#[test]
fn the_served_document_is_the_committed_one_and_names_every_route() {
    let place = says("document", "hi");
    let served = serve(&place, &[]);
    let reply = served.bare("GET", "/openapi.json", &[], "");
    let committed = alhena_testbed::cache::workspace().join("schemas/openapi.json");
    assert_eq!(reply.body, std::fs::read_to_string(committed).unwrap());
    let document = reply.json();
    assert!(document["openapi"].as_str().unwrap().starts_with("3.1"));
    let routes = alhena_testbed::cache::workspace().join("crates/serve/src/routes.rs");
    let source = std::fs::read_to_string(routes).unwrap();
    let named = source.lines().filter_map(|line| line.trim().strip_prefix(".route(\"")?.split('"').next());
    for path in named.filter(|path| path.starts_with("/v1")) {
        assert!(document["paths"].get(path).is_some(), "{path} is not described");
    }
}

/// Attacks on every route, by what the document says of it. The stream that has no end is always asked for what there is now.
#[test]
fn schemathesis_finds_nothing() {
    let place = says("schemathesis", "hi");
    let served = serve(&place, &["--max-runs", "1000", "--max-conversations", "1000"]);
    let tools = tools::api_tools().unwrap();
    let scratch = tempfile::tempdir().unwrap();
    std::fs::write(scratch.path().join("schemathesis.toml"), ATTACKS).unwrap();
    let said = succeeds(
        python(&tools)
            .current_dir(scratch.path())
            .args(["-m", "schemathesis.cli", "run"])
            .arg(format!("http://{}/openapi.json", served.host))
            .arg("--header")
            .arg(format!("Authorization: Bearer {}", served.token))
            .args(["--max-examples", "5", "--seed", "1", "--workers", "1", "--request-timeout", "30"])
            .args(["--phases", "coverage,fuzzing", "--generation-database", "none"])
            .arg("--no-color"),
    );
    assert!(said.contains("Tested: 37"), "{said}");
    assert_eq!(served.get("/v1/me")["access"], "full", "it is still there");
}

#[test]
fn a_client_that_a_generator_makes_for_python_starts_a_run_and_reads_its_outcome() {
    let place = says("python-client", "Hello from here");
    let served = serve(&place, &[]);
    let tools = tools::api_tools().unwrap();
    let scratch = tempfile::tempdir().unwrap();
    let document = alhena_testbed::cache::workspace().join("schemas/openapi.json");
    std::fs::write(scratch.path().join("config.yml"), "post_hooks: []\n").unwrap();
    succeeds(
        python(&tools)
            .args(["-m", "openapi_python_client", "generate", "--meta", "none"])
            .args(["--config", "config.yml", "--output-path", "client", "--path"])
            .arg(document)
            .current_dir(scratch.path()),
    );
    let program = scratch.path().join("program.py");
    std::fs::write(
        &program,
        r#"
import sys, time
from client import AuthenticatedClient
from client.api.runs import runs_list, runs_show, runs_start
from client.models import RunOptions

host, token = sys.argv[1:]
client = AuthenticatedClient(base_url=f"http://{host}", token=token, raise_on_unexpected_status=True)
started = runs_start.sync(client=client, body=RunOptions(prompt="Say hello"), idempotency_key="python")
again = runs_start.sync(client=client, body=RunOptions(prompt="Say hello"), idempotency_key="python")
assert started.id == again.id, (started, again)
while (run := runs_show.sync(started.id, client=client)).state != "finished":
    time.sleep(0.1)
assert run.outcome.status == "success", run
assert [one.id for one in runs_list.sync(client=client).runs] == [run.id]
print(run.outcome.text)
"#,
    )
    .unwrap();
    let said = succeeds(
        python(&tools).arg(&program).args([&served.host, &served.token]).current_dir(scratch.path()),
    );
    assert!(said.contains("Hello from here"), "{said}");
}

#[test]
fn a_client_that_a_generator_makes_for_typescript_starts_a_run_and_reads_its_outcome() {
    let place = says("typescript-client", "Hello from there");
    let served = serve(&place, &[]);
    let scratch = tempfile::tempdir().unwrap();
    let modules = tools::api_client().unwrap();
    std::os::unix::fs::symlink(&modules, scratch.path().join("node_modules")).unwrap();
    std::fs::write(scratch.path().join("package.json"), "{\"type\": \"module\", \"private\": true}").unwrap();
    let document = alhena_testbed::cache::workspace().join("schemas/openapi.json");
    let node = || {
        let mut node = Command::new(tools::node22().unwrap());
        node.current_dir(scratch.path());
        node
    };
    succeeds(node().arg("node_modules/openapi-typescript/bin/cli.js").arg(document).args(["-o", "api.d.ts"]));
    std::fs::write(
        scratch.path().join("program.ts"),
        r#"
import createClient from "openapi-fetch";
import type { paths } from "./api.d.ts";

const [host, token] = process.argv.slice(2);
const client = createClient<paths>({ baseUrl: `http://${host}`, headers: { Authorization: `Bearer ${token}` } });
const { data: started, error } = await client.POST("/v1/runs", { body: { prompt: "Say hello" } });
if (!started) throw new Error(JSON.stringify(error));
for (;;) {
  const { data: run } = await client.GET("/v1/runs/{id}", { params: { path: { id: started.id } } });
  if (run?.state === "finished") {
    console.log(run.outcome?.status, run.outcome?.text);
    break;
  }
  await new Promise((later) => setTimeout(later, 100));
}
const { error: problem, response } = await client.GET("/v1/runs/{id}", { params: { path: { id: "none" } } });
console.log(response.status, problem?.kind);
"#,
    )
    .unwrap();
    for options in ["--strict --allowImportingTsExtensions --noEmit", "--rewriteRelativeImportExtensions"] {
        let options = format!("--module NodeNext --target es2022 --skipLibCheck {options} program.ts");
        succeeds(node().arg("node_modules/typescript/bin/tsc").args(options.split(' ')));
    }
    let said = succeeds(node().arg("program.js").args([&served.host, &served.token]));
    assert!(said.contains("success Hello from there") && said.contains("404 not_found"), "{said}");
}
