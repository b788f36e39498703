//! Checks the dependencies of the library, and which crates may contain which code.
use std::collections::BTreeSet;
use std::process::Command;

use alhena_testbed::cache::workspace;
use alhena_testbed::tools::files_under;
use regex::Regex;

/// All packages that are built for a package, by cargo's own word.
fn built_for(package: &str) -> BTreeSet<String> {
    let mut tree = Command::new(env!("CARGO"));
    tree.args(["tree", "--offline", "--package", package, "--edges", "normal,build"]);
    tree.args(["--prefix", "none", "--format", "{p}"]);
    let done = tree.current_dir(workspace()).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let text = String::from_utf8(done.stdout).unwrap();
    text.lines().filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

#[test]
fn a_program_that_uses_the_library_builds_nothing_that_only_the_command_needs() {
    let (library, command) = (built_for("alhena"), built_for("alhena-cli"));
    for heavy in ["async-nats", "clap", "jsonschema", "ratatui", "rustls", "tokio", "tracing-subscriber"] {
        assert!(!library.contains(heavy), "the library builds {heavy}");
        assert!(command.contains(heavy), "{heavy} is no longer used: take it out of this list");
    }
    let only_library: Vec<_> = library.difference(&command).filter(|package| *package != "alhena").collect();
    assert!(only_library.is_empty(), "{only_library:?}");
}

/// Sources outside of `crates/sys` that may call the system directly. The list can only become shorter.
const EXCEPTIONS: &[&str] = &[
    // The stand-in does what no safe interface allows: it forks with threads, ignores signals, and leaves zombies.
    "crates/testbed/src/bin/hostile/",
];

/// Returns the lines of a source that only `crates/sys` may have. Tests may be left out on a platform.
fn operating_system_code(source: &str, is_test_file: bool) -> Vec<String> {
    let platforms = ["cfg(unix", "cfg(windows", "cfg(target_os", "cfg(not(", "cfg(any(", "cfg(all(", "cfg!("];
    let names = ["unix", "windows", "target_os", "target_family"];
    let mut in_tests = is_test_file;
    let mut found = Vec::new();
    for line in source.lines() {
        let code = line.split("//").next().unwrap_or_default();
        in_tests |= code.contains("cfg(test)");
        let calls =
            ["std::os::", "rustix::", "libc::", "signal_hook::"].iter().any(|name| code.contains(name));
        let chooses = platforms.iter().any(|form| code.contains(form))
            && names.iter().any(|name| code.contains(name))
            && !in_tests;
        if calls || chooses {
            found.push(line.trim().to_owned());
        }
    }
    found
}

/// The Rust sources of all crates, each with its path.
fn sources_of_crates() -> Vec<(String, String)> {
    let root = workspace();
    let files = files_under(&root.join("crates")).into_iter().map(|path| {
        let name = path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
        (name, path)
    });
    let sources = files.filter(|(name, _)| name.split('/').nth(2) == Some("src") && name.ends_with(".rs"));
    sources.map(|(name, path)| (name, std::fs::read_to_string(path).unwrap())).collect()
}

#[test]
fn operating_system_code_is_only_in_sys() {
    let (mut wrong, mut excepted) = (Vec::new(), BTreeSet::new());
    for (name, source) in sources_of_crates() {
        if name.starts_with("crates/sys/") {
            continue;
        }
        let is_test_file = name.ends_with("/tests.rs") || name.contains("/tests/");
        let found = operating_system_code(&source, is_test_file);
        match EXCEPTIONS.iter().find(|exception| name.starts_with(*exception)) {
            Some(exception) if !found.is_empty() => drop(excepted.insert(*exception)),
            Some(_) => {}
            None => wrong.extend(found.into_iter().map(|line| format!("{name}: {line}"))),
        }
    }
    assert!(wrong.is_empty(), "call a function of alhena_sys instead:\n{}", wrong.join("\n"));
    assert_eq!(excepted, EXCEPTIONS.iter().copied().collect(), "remove exceptions that are not needed");
}

#[test]
fn operating_system_code_is_known_by_paths_and_attributes() {
    let found = |source: &str| operating_system_code(source, false).len();
    for wrong in
        ["use std::os::fd::AsFd;", "rustix::process::getpid()", "#[cfg(not(unix))]", "if cfg!(windows) {"]
    {
        assert_eq!(found(wrong), 1, "{wrong}");
    }
    assert_eq!(found("// std::os::fd\nlet libc = 1;\n#[cfg(test)]\n#[cfg(unix)]\nmod tests;"), 0);
    assert_eq!(found("#[cfg(test)]\nmod tests {\n    use std::os::fd::AsFd;\n}"), 1);
}

/// Sources of the library with options in their texts, and where an argument stands alone because they start programs.
const OPTIONS_IN_TEXTS: &[(&str, &str)] = &[
    // Arguments of Gemini CLI, Node, npm, git and the watcher; commands of `alhena terminal`, as a shell takes them.
    ("crates/agent/src/acp/process.rs", ""),
    ("crates/agent/src/acp/responses.rs", ""),
    ("crates/agent/src/find", ""),
    ("crates/agent/src/install", ""),
    ("crates/agent/src/interactive.rs", ""),
    ("crates/agent/src/prepare", ""),
    ("crates/agent/src/rules/programs.rs", ""),
    ("crates/batch/src/place", ""),
    ("crates/terminal/src/command_line.rs", ""),
    ("crates/terminal/src/launch.rs", ""),
    ("crates/terminal/src/watcher/serve.rs", ""),
    // Command lines of other programs.
    ("crates/agent/src/acp/other.rs", "'qwen --acp'"),
    ("crates/agent/src/find.rs", "gemini --version"),
    ("crates/agent/src/find/node.rs", "node --version"),
    ("crates/hosts/src/schema/", "cargo test -p alhena-hosts --test it schemas"),
    ("crates/model/src/judge", "`gemini --"),
    ("crates/model/src/judge/stderr.rs", "`node --"),
    ("crates/wire/src/release.rs", "`--"),
    // Command lines that hosts write for the programs that Alhena stands in for.
    ("crates/hosts/src/claude/options.rs", "--permission-prompt-tool stdio"),
    ("crates/hosts/src/claude/options.rs", "`alhena claude --help`"),
    ("crates/hosts/src/dialect/", ""),
    ("crates/hosts/src/dialect/", "--resume and --session-id together"),
    ("crates/hosts/src/dialect/", "--sandbox "),
];

/// The string literals of a source without its tests that have an option of a command line in them.
fn options_in_texts(source: &str) -> Vec<String> {
    let source = source.split("\nmod tests").next().unwrap_or_default();
    let literal = r##"//[^\n]*|'(?:\\.|[^\\'\n])'|r#+"(?s:.*?)"#+|"(?:\\(?s:.)|[^"\\])*""##;
    let (literals, option) = (Regex::new(literal).unwrap(), Regex::new("--[a-z]").unwrap());
    let texts = literals.find_iter(source).map(|found| found.as_str()).filter(|text| !text.starts_with("//"));
    texts.filter(|text| option.is_match(text)).map(str::to_owned).collect()
}

#[test]
fn texts_of_the_library_name_settings_and_no_options_of_the_command_line() {
    let alone = Regex::new("^\"--[a-z-]+(=\\S*)?\"$").unwrap();
    let (mut wrong, mut excepted) = (Vec::new(), BTreeSet::new());
    for (name, source) in sources_of_crates() {
        let is_test = name.ends_with("/tests.rs") || name.contains("/tests/");
        if is_test || ["crates/cli/", "crates/testbed/"].iter().any(|other| name.starts_with(other)) {
            continue;
        }
        for text in options_in_texts(&source) {
            let is_meant = |(place, words): &&(&str, &str)| {
                let allows = if words.is_empty() { alone.is_match(&text) } else { text.contains(words) };
                name.starts_with(place) && allows
            };
            match OPTIONS_IN_TEXTS.iter().find(is_meant) {
                Some(exception) => drop(excepted.insert(*exception)),
                None => wrong.push(format!("{name}: {text}")),
            }
        }
    }
    assert!(wrong.is_empty(), "format the Setting instead:\n{}", wrong.join("\n"));
    assert_eq!(excepted, OPTIONS_IN_TEXTS.iter().copied().collect(), "remove exceptions that are not needed");
    let source =
        "// --a\nlet a = '\"'; f(\"use --b\", r#\"\"--c\"\"#, \"d\");\n#[cfg(test)]\nmod tests { \"--e\" }";
    assert_eq!(options_in_texts(source), ["\"use --b\"", "r#\"\"--c\"\"#"]);
}
