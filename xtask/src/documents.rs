//! The documents name files, functions and tests: each has to exist, so that whoever renames one is told which page speaks
//! of it.

use std::collections::{BTreeSet, HashSet};
use std::ffi::OsStr;

use alhena_testbed::cache::workspace;
use alhena_testbed::tools::files_under;

/// Where the project's own files are, and nothing that was built or fetched.
const DIRECTORIES: &[&str] = &["crates", "xtask"];

fn document(name: &str) -> String {
    std::fs::read_to_string(workspace().join(name)).unwrap()
}

/// What stands between backquotes.
fn quoted(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

fn is_test_name(text: &str) -> bool {
    let is_word =
        |word: &str| !word.is_empty() && word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
    text.split('_').count() > 2 && text.split('_').all(is_word)
}

/// All sources in the languages of the adapters, too: of the project's own directories and not of what was built or fetched.
fn sources() -> String {
    let directories = DIRECTORIES.iter().chain(&["hosts"]).map(|name| workspace().join(name));
    let files = directories.flat_map(|directory| files_under(&directory));
    let languages = ["rs", "py", "ts", "mjs", "go"].map(OsStr::new);
    let written = files.filter(|path| path.extension().is_some_and(|ending| languages.contains(&ending)));
    written.filter_map(|path| std::fs::read_to_string(path).ok()).collect()
}

/// The names of all functions, in Rust, Python or Go.
fn functions(sources: &str) -> HashSet<&str> {
    let of = |word: &'static str| {
        sources.split(word).skip(1).filter_map(|rest| rest.split(['(', '<', ' ']).next())
    };
    ["fn ", "def ", "func "].into_iter().flat_map(of).collect()
}

/// Tests that a document names and that nobody has written.
fn missing_tests(document: &str, sources: &str) -> Vec<String> {
    let tests: BTreeSet<&str> = quoted(document).into_iter().filter(|name| is_test_name(name)).collect();
    assert!(tests.len() > 20, "{tests:?}");
    let functions = functions(sources);
    tests.into_iter().filter(|name| !functions.contains(name)).map(str::to_owned).collect()
}

/// A file or directory of this project: `crates/model/src/tool.rs`, `docs`, and not `a/b` in a sentence.
fn is_path(text: &str) -> bool {
    let first = text.split('/').next().unwrap_or_default();
    // Without the name of a package, `src` and `tests` are nobody's.
    let is_ours =
        DIRECTORIES.contains(&first) || ["docs", "hosts", "schemas", "src", "tests"].contains(&first);
    is_ours && text.contains('/') && !text.contains([' ', '*', '<'])
}

/// Whether a source defines something of this name: a function, a type, a constant, a macro.
fn defines(source: &str, name: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    ["fn ", "struct ", "enum ", "trait ", "type ", "const ", "static ", "macro_rules! "].iter().any(|kind| {
        let definition = format!("{kind}{name}");
        source.match_indices(&definition).any(|(at, found)| {
            let behind = source.get(at + found.len()..).and_then(|rest| rest.chars().next());
            behind.is_some_and(|c| !is_word(c))
        })
    })
}

/// Paths that do not exist, and names that the file before them in a row of a table does not define.
fn untrue(document: &str) -> Vec<String> {
    let mut untrue: Vec<String> = quoted(document)
        .into_iter()
        .filter(|name| is_path(name) && !workspace().join(name).exists())
        .map(|path| format!("{path} does not exist"))
        .collect();
    for row in document.lines().filter(|line| line.starts_with('|')) {
        let cells: Vec<Vec<&str>> = row.split('|').map(quoted).collect();
        for pair in cells.windows(2) {
            let [file, names] = pair else { continue };
            let [file] = file.as_slice() else { continue };
            let Ok(source) = std::fs::read_to_string(workspace().join(file)) else { continue };
            // `Type::method` is a method of a type that the file at least speaks of.
            let parts = names.iter().flat_map(|name| name.split("::").map(move |part| (part, *name)));
            for (part, name) in parts {
                let is_last = name.ends_with(part);
                if !(defines(&source, part) || !is_last && source.contains(part)) {
                    untrue.push(format!("{file} does not define {name}"));
                }
            }
        }
    }
    untrue
}

/// How many rows of tables name a file and something in it.
fn rows_with_names(document: &str) -> usize {
    let is_step = |row: &&str| {
        let cells: Vec<Vec<&str>> = row.split('|').map(quoted).collect();
        cells.windows(2).any(|pair| match pair {
            [file, names] => file.len() == 1 && file.iter().all(|file| is_path(file)) && !names.is_empty(),
            _ => false,
        })
    };
    document.lines().filter(|line| line.starts_with('|')).filter(is_step).count()
}

#[test]
fn every_test_and_every_attack_that_the_security_document_names_exists() {
    let document = document("docs/security.md");
    assert_eq!(missing_tests(&document, &sources()), Vec::<String>::new());

    let kinds = std::fs::read_to_string(workspace().join("xtask/src/torture/plan.rs")).unwrap();
    let attacks = quoted(&document).into_iter().filter_map(|name| name.strip_prefix("torture "));
    let unknown: Vec<&str> = attacks.filter(|name| !kinds.contains(&format!("\"{name}\""))).collect();
    assert_eq!(unknown, Vec::<&str>::new());
}

#[test]
fn every_file_and_every_function_that_the_architecture_names_exists() {
    let document = document("ARCHITECTURE.md");
    assert!(rows_with_names(&document) > 30);
    assert_eq!(untrue(&document), Vec::<String>::new());
}

#[test]
fn every_file_that_a_newcomer_is_sent_to_has_what_is_to_be_changed() {
    let document = document("CONTRIBUTING.md");
    assert!(rows_with_names(&document) >= 10);
    assert_eq!(untrue(&document), Vec::<String>::new());
}

#[test]
fn what_was_renamed_is_found() {
    let row = |file: &str, name: &str| format!("| `{file}` | `{name}` | why |\n");
    let (engine, tool) = ("crates/agent/src/engine.rs", "crates/model/src/tool.rs");
    assert_eq!(untrue(&row(engine, "Process::wait")), Vec::<String>::new());
    assert_eq!(untrue(&row(tool, "TOOLS")), Vec::<String>::new());
    assert_eq!(untrue(&row(engine, "Process::wai")), [format!("{engine} does not define Process::wai")]);
    assert_eq!(untrue(&row(engine, "Motor::wait")), [format!("{engine} does not define Motor::wait")]);
    assert_eq!(
        untrue(&row("crates/agent/src/motor.rs", "run")),
        ["crates/agent/src/motor.rs does not exist"]
    );
}

/// The packages that a package uses, by its manifest.
fn used_by(package: &str) -> BTreeSet<String> {
    let manifest = document(&format!("{package}/Cargo.toml"));
    let dependencies =
        manifest.split("\n[").find(|part| part.starts_with("dependencies]")).unwrap_or_default();
    let ours = dependencies.lines().filter(|line| line.starts_with("alhena"));
    let names = ours.filter_map(|line| line.split(['.', ' ', '=']).next());
    names.map(|name| name.strip_prefix("alhena-").unwrap_or(name).to_owned()).collect()
}

#[test]
fn the_map_says_what_depends_on_what() {
    let document = document("ARCHITECTURE.md");
    let mut seen = 0;
    for row in document.lines().filter(|line| line.starts_with("| `crates/")) {
        let cells: Vec<Vec<&str>> = row.split('|').map(quoted).collect();
        let [_, package, uses, ..] = cells.as_slice() else { continue };
        let Some(package) = package.first().filter(|path| workspace().join(path).join("Cargo.toml").exists())
        else {
            continue;
        };
        seen += 1;
        assert_eq!(used_by(package), uses.iter().map(|name| (*name).to_owned()).collect(), "{package}");
    }
    assert_eq!(seen, std::fs::read_dir(workspace().join("crates")).unwrap().count());
}

/// Ids of demands, such as `C-28`, that stand in a text.
fn ids(text: &str) -> BTreeSet<&str> {
    let is_free = |byte: Option<&u8>| byte.is_none_or(|byte| !byte.is_ascii_alphanumeric() && *byte != b'-');
    let bytes = text.as_bytes();
    let is_id = |at: usize| match bytes.get(at..at + 4) {
        Some([b'A'..=b'E', b'-', b'0'..=b'9', b'0'..=b'9']) => {
            is_free(at.checked_sub(1).and_then(|before| bytes.get(before))) && is_free(bytes.get(at + 4))
        }
        _ => false,
    };
    (0..bytes.len()).filter(|at| is_id(*at)).filter_map(|at| text.get(at..at + 4)).collect()
}

#[test]
fn every_id_in_a_comment_is_a_demand_of_the_requirements() {
    let document = document("docs/requirements.md");
    let rows = document.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| Id "));
    let listed: Vec<&str> = rows.filter_map(|row| row.split(" | ").next()?.strip_prefix("| ")).collect();
    assert_eq!(ids(&listed.join(" ")).len(), listed.len(), "an id is none, or is listed twice");
    let sources = sources();
    let used = ids(&sources);
    assert!(used.len() > 200, "{used:?}");
    let unknown: Vec<&str> = used.into_iter().filter(|id| !listed.contains(id)).collect();
    assert_eq!(unknown, Vec::<&str>::new());
}

/// The names of all tests, in Rust, Python or Go: a function that nobody runs proves nothing.
fn tests(sources: &str) -> HashSet<&str> {
    let rust = sources.split("#[test]").skip(1).filter_map(|rest| rest.split("fn ").nth(1));
    let python = sources.split("def ").skip(1).filter(|rest| rest.starts_with("test_"));
    let go = sources.split("func ").skip(1).filter(|rest| rest.starts_with("Test"));
    rust.chain(python).chain(go).filter_map(|rest| rest.split('(').next()).collect()
}

#[test]
fn every_proof_of_the_requirements_exists() {
    let document = document("docs/requirements.md");
    let sources = sources();
    let tests = tests(&sources);
    let mut untrue = untrue(&document);
    for row in document.lines().filter(|line| !ids(line.get(..8).unwrap_or_default()).is_empty()) {
        let proof = row.trim_end_matches([' ', '|']).rsplit(" | ").next().unwrap_or_default();
        let names = quoted(proof).into_iter().filter(|name| !is_path(name));
        untrue.extend(names.filter(|name| !tests.contains(name)).map(str::to_owned));
        // Tests in JavaScript and TypeScript have titles.
        let titles = proof.split('"').skip(1).step_by(2);
        untrue.extend(titles.filter(|title| !sources.contains(title)).map(str::to_owned));
        assert!(row.matches(" | ").count() == 2 && !proof.is_empty(), "{row}");
    }
    assert_eq!(untrue, Vec::<String>::new());
}

#[test]
fn ids_are_told_from_other_words() {
    let (one, two) = (format!("C-{}", 28), format!("B-{}", 16));
    assert_eq!(ids(&format!("// {one}, ({two})")), BTreeSet::from([two.as_str(), one.as_str()]));
    assert_eq!(ids("1E-05 A-1 B-123 X-12 UTC-12 C-1x"), BTreeSet::new());
}

#[test]
fn links_between_documents_lead_somewhere() {
    for name in
        ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "docs/security.md", "docs/requirements.md"]
    {
        let text = document(name);
        let dir = workspace().join(name).parent().unwrap().to_owned();
        let links = text.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next());
        for link in links.filter(|link| !link.is_empty() && !link.contains("://")) {
            assert!(dir.join(link).exists(), "{name}: {link}");
        }
    }
}
