//! What the READMEs of packages and adapters show is what works: every block of code is run here, or stands in [`ELSEWHERE`]
//! with what proves it instead.

use std::fs;
use std::path::{Path, PathBuf};

use alhena_scripted::{Scenario, Turn};
use alhena_testbed::npm::Packages;
use alhena_testbed::{cache, tools};
use serde_json::{Value, json};

use super::agent_cli_sdk::SDK;
use super::openase;
use super::place::Place;
use super::promptfoo::{self, PROMPTFOO};

/// Blocks that are run here: README and language, in the order in which they stand.
const RUN_HERE: &[(&str, &str)] = &[
    ("hosts/agent-cli-sdk", "ts"),
    ("hosts/aiwf", "python"),
    ("hosts/aiwf", "python"),
    ("hosts/openase", "go"),
    ("hosts/promptfoo", "yaml"),
    ("hosts/promptfoo", "yaml"),
    ("packages/node", "ts"),
    ("packages/node", "ts"),
    ("packages/python", "python"),
    ("packages/python", "python"),
];

/// The others, and who looks at them.
const ELSEWHERE: &[(&str, &str, &str)] = &[
    ("hosts/agent-cli-sdk", "sh", "cargo xtask package: npm install"),
    (
        "hosts/cao",
        "sh",
        "the commands in cao_knows_the_commands_of_the_readme; that they work in tests of hosts/cao",
    ),
    ("hosts/claude-agent-sdk", "sh", "the same link is made in the_examples_of_the_readme_run"),
    (
        "hosts/github-action",
        "yaml",
        "names in the_action_has_what_its_readme_uses; nothing here can run a workflow",
    ),
    (
        "hosts/openase",
        "",
        "cargo xtask package: go get; its version in every_manifest_has_the_version_of_the_workspace",
    ),
    ("hosts/promptfoo", "sh", "cargo xtask package: npm install"),
    ("packages/node", "sh", "cargo xtask package: npm install"),
];

/// The fenced blocks of a README: language and text.
fn blocks(package: &str) -> Vec<(String, String)> {
    let text = fs::read_to_string(cache::workspace().join(package).join("README.md")).unwrap();
    let mut blocks = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if let Some(language) = line.strip_prefix("```") {
            let body: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
            blocks.push((language.to_owned(), body.join("\n") + "\n"));
        }
    }
    blocks
}

/// The blocks of one language.
fn blocks_in(package: &str, language: &str) -> Vec<String> {
    let found = blocks(package).into_iter().filter(|(other, _)| other == language);
    found.map(|(_, text)| text).collect()
}

#[test]
fn every_block_of_a_readme_is_accounted_for() {
    let mut found = Vec::new();
    for parent in ["hosts", "packages"] {
        for entry in fs::read_dir(cache::workspace().join(parent)).unwrap() {
            let package = format!("{parent}/{}", entry.unwrap().file_name().to_string_lossy());
            found.extend(blocks(&package).into_iter().map(|(language, _)| (package.clone(), language)));
        }
    }
    let elsewhere = ELSEWHERE.iter().map(|(package, language, _)| (*package, *language));
    let known = RUN_HERE.iter().copied().chain(elsewhere);
    let mut known: Vec<_> =
        known.map(|(package, language)| (package.to_owned(), language.to_owned())).collect();
    found.sort();
    known.sort();
    assert_eq!(found, known);
}

/// What the hosts' documents ask a page about a provider for.
const SECTIONS: [&str; 6] =
    ["Authentication", "Tools and permissions", "Working directory", "Options", "Errors", "Troubleshooting"];

#[test]
fn every_readme_has_the_sections_that_the_hosts_ask_for() {
    let known = RUN_HERE.iter().map(|(package, _)| *package).chain(["hosts/cao", "hosts/github-action"]);
    for package in known {
        let text = fs::read_to_string(cache::workspace().join(package).join("README.md")).unwrap();
        let found = text.lines().filter_map(|line| line.strip_prefix("## "));
        let found: Vec<&str> = found.filter(|section| SECTIONS.contains(section)).collect();
        assert_eq!(found, SECTIONS, "{package}");
    }
}

/// A model that mends a file in `app`, is asked what was wrong, and does it all again; and a place with that directory.
fn place(name: &str) -> Place {
    let mend = || Turn::new().call("write_file", json!({"file_path": "sum.py", "content": "a + b\n"}));
    let scenario = Scenario::new()
        .turn(mend())
        .turn(Turn::say("Mended: ```json\n{\"files\": [\"sum.py\"]}\n```"))
        .turn(mend())
        .turn(Turn::say("Mended."))
        .turn(Turn::say("The sum."));
    let place = Place::new(name, [("mend", scenario)]);
    fs::create_dir(place.home.workspace().join("app")).unwrap();
    place
}

fn assert_mended(place: &Place) {
    let file = place.home.workspace().join("app/sum.py");
    assert_eq!(fs::read_to_string(&file).unwrap(), "a + b\n");
    place.assert_nothing_left();
}

/// Runs a Python block in the workspace and gives what it printed.
fn run_python(place: &Place, package: &str, text: &str, engine: Option<&str>) -> String {
    let script = place.home.tmp().join("readme.py");
    fs::write(&script, text).unwrap();
    let mut command = place.python(package, &[&script.to_string_lossy()]);
    if let Some(engine) = engine {
        let mut path = vec![cache::workspace().join(package).join("tests/engines").join(engine)];
        let before = command.get_envs().find(|(name, _)| *name == "PYTHONPATH").unwrap().1.unwrap();
        path.extend(std::env::split_paths(before));
        command.env("PYTHONPATH", std::env::join_paths(path).unwrap());
    }
    place.run(command.current_dir(place.home.workspace())).stdout_text()
}

#[test]
fn the_examples_in_the_python_packages_readme_run() {
    let place = place("readme-python");
    let [example, conversation] = blocks_in("packages/python", "python").try_into().unwrap();
    let said = run_python(&place, "packages/python", &example, None);
    assert!(said.starts_with("Mended: ") && said.ends_with(" ['sum.py']\n"), "{said}");
    assert_mended(&place);
    fs::remove_file(place.home.workspace().join("app/sum.py")).unwrap();
    let said = run_python(&place, "packages/python", &conversation, None);
    assert!(said.contains("name='Write'") && said.ends_with("\nThe sum.\n"), "{said}");
    assert_mended(&place);
}

#[test]
fn the_examples_in_aiwfs_readme_run() {
    let place = place("readme-aiwf");
    let [register, example] = blocks_in("hosts/aiwf", "python").try_into().unwrap();
    for engine in ["document", "two"] {
        run_python(&place, "hosts/aiwf", &register, Some(engine));
    }
    let said = run_python(&place, "hosts/aiwf", &example, None);
    assert!(said.starts_with("Mended: ") && said.ends_with(" ['sum.py']\n"), "{said}");
    assert_mended(&place);
}

/// Compiles the TypeScript blocks as strictly as the packages are, and runs one after the other in the workspace.
fn run_typescript(place: &Place, name: &str, package: &str) -> Vec<String> {
    let root = place.home.path().join("npm");
    Packages::build(&root, &[name]).unwrap();
    fs::write(root.join("package.json"), "{\"private\": true, \"type\": \"module\"}").unwrap();
    let compiler = root.join("node_modules/typescript/bin/tsc");
    let run = |(number, example): (usize, String)| {
        fs::write(root.join(format!("readme{number}.ts")), example).unwrap();
        let mut tsc = place.command("promptfoo", "node", &[&compiler.to_string_lossy(), "--strict"]);
        tsc.args(["--module", "NodeNext", "--target", "ES2022", "--types", "node"]);
        place.run(tsc.arg(format!("readme{number}.ts")).current_dir(&root));
        let script = root.join(format!("readme{number}.js"));
        let mut node = place.command("promptfoo", "node", &[&script.to_string_lossy()]);
        let done = place.run(node.current_dir(place.home.workspace()));
        assert_eq!(done.stderr_text(), "");
        done.stdout_text()
    };
    blocks_in(package, "ts").into_iter().enumerate().map(run).collect()
}

#[test]
fn the_examples_in_the_node_packages_readme_run() {
    let place = place("readme-node");
    let [query, conversation] = run_typescript(&place, "alhena", "packages/node").try_into().unwrap();
    assert!(query.contains("name: 'Write'") && query.contains("path: 'sum.py'"), "{query}");
    assert!(conversation.contains("name: 'Write'"), "{conversation}");
    assert!(conversation.ends_with("\nThe sum.\n"), "{conversation}");
    assert_mended(&place);
}

#[test]
fn the_example_in_agent_cli_sdks_readme_runs() {
    let place = place("readme-sdk");
    let said = run_typescript(&place, SDK, "hosts/agent-cli-sdk");
    assert_eq!(said, ["[ 'sum.py' ]\n"]);
    assert_mended(&place);
}

#[test]
fn the_example_in_openases_readme_runs() {
    let place = place("readme-openase");
    let [example] = blocks_in("hosts/openase", "go").try_into().unwrap();
    let source = format!(
        "package main\n\nimport (\n\"context\"\n\"fmt\"\n\"io\"\n\n\"alhena.dev/hosts/openase\"\n)\n\n\
         func main() {{\nif err := turn(context.Background()); err != nil {{\npanic(err)\n}}\n}}\n\n\
         func turn(ctx context.Context) error {{\n{example}}}\n"
    );
    let program = openase::program(&place, &source);
    let mut command = place.command("openase", program, &[]);
    let said = place.run(command.current_dir(place.home.workspace())).stdout_text();
    assert!(said.starts_with("[write_file]\nMended: ") && said.ends_with("done\n"), "{said}");
    assert_mended(&place);
}

#[test]
fn the_examples_in_promptfoos_readme_run() {
    let review = Scenario::new()
        .turn(Turn::new().call("read_file", json!({"file_path": "file.ts"})))
        .turn(Turn::say("I found none."))
        .turn(Turn::say("Hello."));
    let place = Place::new("readme-promptfoo", [("review", review)]);
    let packages = promptfoo::build(&place);
    let [package, exec] = blocks_in("hosts/promptfoo", "yaml").try_into().unwrap();
    let write = |name: &str, text: &str| {
        fs::write(packages.directory(PROMPTFOO).join(name), text).unwrap();
    };
    write("package.yaml", &package);
    write("exec.yaml", &format!("{exec}prompts: ['- hello']\n"));
    let successes =
        |cases: &[Value]| -> Vec<bool> { cases.iter().map(|case| case["success"] == true).collect() };
    let cases = promptfoo::eval(&place, &packages, "package.yaml", |_| ());
    assert_eq!(successes(&cases), [true], "{cases:?}");
    let cases = promptfoo::eval(&place, &packages, "exec.yaml", |command| {
        let alhena = PathBuf::from(super::place::ALHENA);
        let path = std::env::var("PATH").unwrap();
        command.env("PATH", format!("{}:{path}", alhena.parent().unwrap().display()));
    });
    assert_eq!(
        (successes(&cases), &cases[0]["response"]["output"]),
        (vec![true], &json!("Hello.")),
        "{cases:?}"
    );
    place.assert_nothing_left();
}

/// CAO's commands need a server and a terminal, which its tests have. Here: that there are such commands and options.
#[test]
fn cao_knows_the_commands_of_the_readme() {
    let [example] = blocks_in("hosts/cao", "sh").try_into().unwrap();
    let place = Place::new("readme-cao", []);
    let cao = tools::cao().unwrap();
    let mut seen = 0;
    for line in example.lines() {
        let words: Vec<&str> = line.split_whitespace().take_while(|word| *word != "#").collect();
        let (program, rest) = words.split_first().unwrap();
        if *program != "cao" {
            assert!(["alhena-cao check", "cao-server &"].contains(&words.join(" ").as_str()), "{line}");
            continue;
        }
        let script = cao.join("bin/cao");
        let mut help = place.python("hosts/cao", &[&script.to_string_lossy(), rest[0], "--help"]);
        let sources =
            std::env::join_paths([cao.clone(), cache::workspace().join("packages/python/src")]).unwrap();
        let said = place.run(help.env("PYTHONPATH", sources)).stdout_text();
        for option in rest.iter().filter(|word| word.starts_with("--")) {
            assert!(said.contains(option), "{line}: {said}");
        }
        seen += 1;
    }
    assert_eq!(seen, 2);
}

/// No workflow can run here: `run.sh` is tested with the environment that `action.yml` gives it, and this looks at the names.
#[test]
fn the_action_has_what_its_readme_uses() {
    let [example] = blocks_in("hosts/github-action", "yaml").try_into().unwrap();
    let action = fs::read_to_string(cache::workspace().join("hosts/github-action/action.yml")).unwrap();
    let (inputs, outputs) = action.split_once("\noutputs:\n").unwrap();
    let has = |part: &str, name: &str| part.lines().any(|line| line == format!("  {name}:"));
    let mut lines = example.lines().skip_while(|line| *line != "  with:").skip(1);
    let given: Vec<&str> = lines
        .by_ref()
        .take_while(|line| line.starts_with("    "))
        .map(|line| line.trim().split(':').next().unwrap())
        .collect();
    assert_eq!(given, ["prompt", "approval", "timeout"]);
    assert!(given.iter().all(|name| has(inputs, name)));
    let used: Vec<&str> = example
        .split("steps.gemini.outputs.")
        .skip(1)
        .map(|rest| rest.split_whitespace().next().unwrap())
        .collect();
    assert_eq!(used, ["text"]);
    assert!(used.iter().all(|name| has(outputs, name)));
    let version = format!("@v{}", env!("CARGO_PKG_VERSION"));
    assert!(example.contains(&version), "{example}");
}

/// The extensions of files that a README may name. Any other word with a dot is code, or a version.
const EXTENSIONS: [&str; 7] = ["js", "mjs", "ts", "json", "md", "yaml", "patch"];

/// Folders in READMEs that are not the package's own: the one of the SDK's repository.
const NOT_OURS: [&str; 1] = ["src/gemini/"];

/// The files and folders of a package that its README names: words with an extension or a slash at the end.
fn named_files(package: &Path) -> Vec<String> {
    let text = fs::read_to_string(package.join("README.md")).unwrap();
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || "@._/-".contains(c)));
    let words = words.map(|word| word.trim_start_matches("./").trim_end_matches('.'));
    // By way of an installation, it is the package's own file.
    let words = words.map(|word| word.rsplit_once("-gemini-cli/").map_or(word, |(_, inside)| inside));
    let is_file = |word: &str| {
        Path::new(word)
            .extension()
            .is_some_and(|extension| EXTENSIONS.iter().any(|known| extension == *known))
    };
    let is_named = |word: &&str| {
        !word.starts_with('/') && !NOT_OURS.contains(word) && (word.ends_with('/') || is_file(word))
    };
    words.filter(is_named).map(str::to_owned).collect()
}

#[test]
fn every_published_package_has_the_licences_of_the_project() {
    let root = cache::workspace();
    let published =
        ["agent-cli-sdk", "aiwf", "cao", "openase", "promptfoo"].map(|name| format!("hosts/{name}"));
    for package in published.iter().map(String::as_str).chain(["packages/node", "packages/python"]) {
        for licence in ["LICENSE-APACHE", "LICENSE-MIT"] {
            let text = |path: PathBuf| {
                fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
            };
            assert_eq!(text(root.join(package).join(licence)), text(root.join(licence)), "{package}");
        }
        // An npm package has them among its files: see the next test.
        if let Ok(manifest) = fs::read_to_string(root.join(package).join("pyproject.toml")) {
            assert!(manifest.contains("license-files = [\"LICENSE-*\"]"), "{package}");
        }
    }
}

#[test]
fn npm_packages_contain_the_files_that_their_readmes_name_and_the_licences() {
    let place = Place::new("readmes-tarballs", []);
    let packages = Packages::build(&place.home.path().join("npm"), &[SDK, PROMPTFOO]).unwrap();
    for (name, expected) in
        [("alhena", &[][..]), (SDK, &[]), (PROMPTFOO, &["dist/src/file.js", "example/", "upstream/"])]
    {
        let directory = packages.directory(name);
        let mut pack =
            place.command("promptfoo", "npm", &["pack", "--dry-run", "--json", "--ignore-scripts"]);
        pack.env("npm_config_offline", "true").env("npm_config_update_notifier", "false");
        let said = place.run(pack.current_dir(&directory)).stdout_text();
        let packed: Value = serde_json::from_str(&said).unwrap();
        let files: Vec<&str> = packed[0]["files"]
            .as_array()
            .unwrap()
            .iter()
            .map(|file| file["path"].as_str().unwrap())
            .collect();
        let named = named_files(&directory);
        for file in expected {
            assert!(named.iter().any(|named| named == file), "{name} names {named:?}");
        }
        let licences = ["LICENSE-APACHE", "LICENSE-MIT"].map(str::to_owned);
        for file in named.iter().chain(&licences) {
            let found =
                files.iter().any(|packed| packed == file || file.ends_with('/') && packed.starts_with(file));
            assert!(found, "{name}: {file} is not among {files:?}");
        }
    }
}
