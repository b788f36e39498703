//! The rules compared with the real bash, which is the shell that Gemini CLI gives commands to.

use std::fs;
use std::process::{Command, Stdio};

use alhena_sys::files;

use super::super::programs::{BUILTINS, KEYWORDS};
use super::{Decision, allow, decided, deny, shell};

const BASH: &str = "/bin/bash";

/// Builtins that neither run a command nor change what a later one means, whatever their arguments are.
const HARMLESS: &[&str] = &[
    ":", "bg", "break", "caller", "cd", "continue", "dirs", "disown", "echo", "exit", "false", "fg", "help",
    "kill", "logout", "popd", "pushd", "pwd", "return", "shift", "suspend", "times", "true", "type",
    "ulimit", "umask",
];

fn listed(what: &str) -> Vec<String> {
    let out = Command::new(BASH).args(["-c", what]).output().unwrap();
    String::from_utf8(out.stdout).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn every_builtin_and_keyword_of_bash_is_known() {
    let builtins = listed("compgen -b");
    assert!(builtins.len() > 50, "{builtins:?}");
    let known = |name: &&String| BUILTINS.contains(&name.as_str()) || HARMLESS.contains(&name.as_str());
    assert_eq!(builtins.iter().filter(|name| !known(name)).collect::<Vec<_>>(), Vec::<&String>::new());
    let keywords = listed("compgen -k");
    assert!(keywords.len() > 15, "{keywords:?}");
    let unknown = keywords.iter().filter(|name| !KEYWORDS.contains(&name.as_str()));
    assert_eq!(unknown.collect::<Vec<_>>(), Vec::<&String>::new());
    let denies = deny(&["shell(rm *)"]);
    for name in BUILTINS.iter().chain(KEYWORDS) {
        assert_eq!(decided(&denies, &shell(&format!("{name} x"))), expected(name), "{name}");
    }
}

/// `test x` runs nothing, and neither does a format without options.
fn expected(name: &str) -> Option<Decision> {
    (!matches!(name, "test" | "[" | "printf")).then_some(Decision::Deny)
}

/// Programs that only write down that they ran.
const ALLOWED: &[&str] = &["git", "ls"];
const OTHERS: &[&str] = &["rm", "touch", "x", "sh"];

/// Runs each text of a list as Gemini CLI 0.61.0 runs a command, and writes down which programs ran and which files are new.
const DRIVER: &str = r#"
command_not_found_handle() { printf '%s %q\n' "$n" "$1" >> "$RAN"; }
n=0
while IFS= read -r -d '' text <&3; do
  ( eval "(
  trap ':' EXIT
$text
)" ) 3<&- </dev/null >/dev/null 2>&1
  for file in *; do
    if [ "$file" != '*' ]; then printf '%s wrote %q\n' "$n" "$file" >> "$RAN"; /bin/rm -rf -- "$file"; fi
  done
  n=$((n + 1))
done 3< "$TEXTS"
printf 'done\n' >> "$RAN"
"#;

/// What bash runs for each of these texts, as lines `NAME` and `wrote FILE`.
fn run_all(texts: &[String]) -> Vec<Vec<String>> {
    let dir = tempfile::tempdir().unwrap();
    let place = |name: &str| dir.path().join(name);
    fs::create_dir(place("bin")).unwrap();
    fs::create_dir(place("work")).unwrap();
    let mut functions = String::new();
    for name in ALLOWED.iter().chain(OTHERS) {
        let note = format!("printf '%s %s\\n' \"$n\" {name} >> \"$RAN\"");
        functions.push_str(&format!("{name}() {{ {note}; }}\n"));
        // For whoever goes around the function.
        let path = place("bin").join(name);
        fs::write(&path, format!("#!{BASH}\n{note}\n")).unwrap();
        files::set_mode(&path, 0o755).unwrap();
    }
    fs::write(place("texts"), texts.iter().map(|text| format!("{}\0", text.trim())).collect::<String>())
        .unwrap();
    let mut bash = Command::new(BASH);
    bash.args(["--norc", "-c", &format!("export n\n{functions}{DRIVER}")])
        .current_dir(place("work"))
        .env_clear();
    bash.env("PATH", place("bin"))
        .env("RAN", place("ran"))
        .env("TEXTS", place("texts"))
        .env("HOME", dir.path());
    bash.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    bash.status().unwrap();
    let ran = fs::read_to_string(place("ran")).unwrap();
    assert!(ran.ends_with("done\n"), "bash did not come to the end");
    let mut found = vec![Vec::new(); texts.len()];
    for (number, name) in ran.lines().filter_map(|line| line.split_once(' ')) {
        found[number.parse::<usize>().unwrap()].push(name.to_owned());
    }
    found
}

/// Asserts that bash runs for these texts only programs that are fine.
fn assert_runs_only(texts: &[String], is_fine: impl Fn(&str) -> bool) {
    let found = run_all(texts);
    let wrong = texts.iter().zip(&found).filter(|(_, found)| !found.iter().all(|name| is_fine(name)));
    let wrong: Vec<_> = wrong.take(5).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
    // The stand-ins work: some program ran.
    assert!(found.iter().any(|found| !found.is_empty()));
}

/// All sequences of up to two of these.
fn sequences(pieces: &[&str]) -> Vec<String> {
    let one = pieces.iter().map(|piece| (*piece).to_owned());
    let two = pieces.iter().flat_map(|first| pieces.iter().map(move |second| format!("{first}{second}")));
    std::iter::once(String::new()).chain(one).chain(two).collect()
}

/// How a command can be hidden before it and behind it: continuations, comments, quotes, here-documents, expansions.
const BEFORE: &[&str] = &[
    "\\", "\\\n", "\\\n#", "\\'", "\\' '", "'", "'\n", "\"", "$'", "$\\\n'", "$(", "`", "#", " ", "\n", ";",
    "&&", "|", "<<E\n", "<<'E'\n", "\nE\n",
];
const BEHIND: &[&str] = &["'", "\"", "`", ")", "#'", "\\'", ";", "\nE\n", ";echo \\'", " ]]"];

/// An allowed program with another hidden behind it.
fn hidden() -> Vec<String> {
    let (before, behind) = (sequences(BEFORE), sequences(BEHIND));
    let texts =
        before.iter().flat_map(|before| behind.iter().map(move |behind| format!("{before}touch M{behind}")));
    texts.map(|text| format!("ls {text}")).collect()
}

/// Pieces of shell in an order that is different each time and the same in every run of the test.
fn mixed(pieces: &[&str], count: usize) -> Vec<String> {
    let mut state = 25_u64;
    let mut below = move |limit: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).unwrap() % limit
    };
    (0..count).map(|_| (0..=below(12)).map(|_| pieces[below(pieces.len())]).collect()).collect()
}

const PIECES: &[&str] = &[
    "git",
    "git ",
    "ls ",
    "echo ",
    "rm ",
    "touch M",
    "x",
    "-n",
    " ",
    " ",
    " ",
    "\t",
    "\n",
    "\\\n",
    "\\",
    "#",
    "'",
    "'",
    "\"",
    "\"",
    "$",
    "$(",
    ")",
    "(",
    "`",
    "{",
    "}",
    "${x}",
    "=",
    "x=",
    "&&",
    "||",
    ";",
    ";",
    "|",
    "|",
    "&",
    ">",
    "<",
    "<<E\n",
    "\nE\n",
    "<(",
    "2>&1",
    " 2>&1 ",
    ">/dev/null",
    " > /dev/null",
    " &>/dev/null",
    "!",
    "if ",
    "; then ",
    "; fi",
    "() ",
    "*",
    "?",
    "[",
    "~",
    "\r",
    "é",
    "\u{a0}",
    "\u{85}",
    "eval ",
    "exec ",
    "command ",
    "time ",
    "'a b'",
    "\"a;b\"",
    "'$(rm x)'",
    "'\\'",
    "日本",
];

/// Most of them are inside the grammar.
const PLAIN: &[&str] = &[
    "git ",
    "ls ",
    "echo ",
    "git x",
    "rm ",
    "x ",
    "'a b' ",
    "\"a;b\" ",
    "'#' ",
    "a#b ",
    "'\n'",
    "2>&1 ",
    ">/dev/null ",
    "* ",
    "'rm x' ",
    "\"it's\" ",
    "'$(rm x)' ",
    "'\\' ",
    "! ",
    "a=b ",
    "; git ",
    " && ls ",
    "| git ",
    "|| ls ",
    "\ngit ",
    " ;\nls ",
    " &&\n git ",
    "; rm ",
    "\nrm x",
];

fn texts() -> Vec<String> {
    let mut texts = hidden();
    texts.extend(mixed(PIECES, 20_000).into_iter().map(|text| format!("ls {text}")));
    texts.extend(mixed(PLAIN, 5_000).into_iter().map(|text| format!("ls {text}")));
    texts.sort();
    texts.dedup();
    texts
}

#[test]
fn bash_runs_nothing_but_allowed_programs_for_an_allowed_text() {
    let rules = allow(&["shell(git *)", "shell(ls *)", "shell(echo *)"]);
    let mut allowed = texts();
    allowed.retain(|text| decided(&rules, &shell(text)) == Some(Decision::Allow));
    assert!(allowed.len() > 500, "{}", allowed.len());
    assert_runs_only(&allowed, |name| ALLOWED.contains(&name));
}

#[test]
fn bash_does_not_run_what_is_denied_for_a_text_that_passes() {
    let rules = deny(&["shell(rm *)", "shell(touch *)"]);
    let mut passed = texts();
    passed.retain(|text| decided(&rules, &shell(text)).is_none());
    assert!(passed.len() > 500, "{}", passed.len());
    assert_runs_only(&passed, |name| !matches!(name, "rm" | "touch"));
}

#[test]
fn the_evasions_are_real_ones() {
    let texts: Vec<String> = super::EVASIONS.iter().take(6).map(|text| (*text).to_owned()).collect();
    for (text, found) in texts.iter().zip(run_all(&texts)) {
        assert!(found.iter().any(|name| name == "touch"), "{text:?} ran {found:?}");
    }
}
