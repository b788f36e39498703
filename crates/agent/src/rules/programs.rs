//! Which programs run other commands, and where they have them from.
//!
//! A rule that denies has to find a command wherever it stands in the text, and has to know where it cannot be found: a shell
//! that reads a file or its input runs what the text does not say. What is not in this table is a program like any other, and
//! what it does by itself is not looked at.

use super::command::base_name;
use super::shell::{Certainty, Word};

/// Where a program has the commands from that it runs.
#[derive(Clone, Copy)]
enum Runs {
    /// A word of the shell, before a command that can be one of the shell's own.
    Shells,
    /// From the words behind it, or from a text in one of them.
    Words,
    /// The same, with more words from its input or in the place of one of its own.
    WordsAndInput,
    /// From the words behind it; with one of these options from its input, as a shell.
    WordsUnless(&'static [&'static str]),
    /// From the words behind it; with nothing behind it but where or who, from its input, as a shell.
    WordsOrInput,
    /// From the words behind one of these.
    Behind(&'static [&'static str]),
    /// A shell: from the text behind `-c`, else from a file or its input.
    Shell,
    /// From a file.
    File,
    /// From its input.
    Input,
    /// It is told what to do in a language of its own, behind one of these or by its input; a file of that is a program.
    Code(&'static [&'static str]),
    /// The same, in the first of its words.
    Awk,
    /// It looks at the values of its words as a shell does, substitutions in them included.
    Values,
}

const TABLE: &[(Runs, &[&str])] = &[
    (
        Runs::Shells,
        &[
            "!", "{", "if", "then", "elif", "else", "while", "until", "do", "function", "coproc", "time",
            "command", "builtin", "eval",
        ],
    ),
    (
        Runs::Words,
        &[
            "for",
            "case",
            "select",
            "env",
            "nohup",
            "setsid",
            "timeout",
            "nice",
            "ionice",
            "chrt",
            "taskset",
            "stdbuf",
            "unbuffer",
            "watch",
            "flock",
            "strace",
            "ltrace",
            "gdb",
            "valgrind",
            "perf",
            "rlwrap",
            "prlimit",
            "exec",
            "trap",
            "alias",
            "hash",
            "enable",
            "bind",
            "complete",
            "compgen",
            "find",
            "fd",
            "fdfind",
            "busybox",
            "toybox",
            "npx",
            "bunx",
            "pnpx",
            "uvx",
            "pipx",
            "entr",
            "watchexec",
            "hyperfine",
            "tmux",
            "screen",
            "systemd-run",
            "start-stop-daemon",
            "xvfb-run",
            "dbus-run-session",
            "firejail",
            "bwrap",
            "proot",
            "fakeroot",
            "setpriv",
            "capsh",
            "sem",
            "ts-node",
            "winpty",
            "wsl",
        ],
    ),
    (Runs::WordsAndInput, &["xargs", "parallel"]),
    (Runs::WordsUnless(&["-s", "-i", "--shell", "--login"]), &["sudo", "doas"]),
    (
        Runs::WordsOrInput,
        &["su", "runuser", "chroot", "unshare", "nsenter", "newgrp", "sg", "script", "setarch", "ssh"],
    ),
    (Runs::Behind(&["exec", "run"]), &["docker", "podman", "nerdctl", "kubectl", "oc"]),
    (
        Runs::Behind(&["exec", "x", "dlx"]),
        &["npm", "pnpm", "yarn", "bun", "mise", "asdf", "direnv", "bundle"],
    ),
    (Runs::Behind(&["run"]), &["uv", "poetry", "pipenv", "pdm", "hatch", "conda", "mamba", "rustup"]),
    (Runs::Behind(&["run", "foreach", "-x", "--exec", "filter-branch"]), &["git"]),
    (Runs::Behind(&["--run", "--command", "-c", "--", "run"]), &["nix", "nix-shell", "guix"]),
    (
        Runs::Shell,
        &[
            "sh",
            "bash",
            "rbash",
            "dash",
            "ash",
            "zsh",
            "ksh",
            "mksh",
            "fish",
            "csh",
            "tcsh",
            "yash",
            "nu",
            "elvish",
            "xonsh",
            "pwsh",
            "powershell",
            "cmd",
        ],
    ),
    (Runs::File, &[".", "source", "run-parts"]),
    (Runs::Input, &["at", "batch", "crontab"]),
    (Runs::Code(&["-c"]), &["python", "pypy", "ipython", "guile", "expect"]),
    (Runs::Code(&["-e", "-p", "--eval", "--print", "eval"]), &["node", "nodejs", "deno"]),
    (Runs::Code(&["-r", "--run"]), &["php"]),
    (
        Runs::Code(&["-e", "-E", "--eval", "-eval"]),
        &[
            "perl",
            "ruby",
            "irb",
            "lua",
            "luajit",
            "julia",
            "r",
            "rscript",
            "osascript",
            "tclsh",
            "elixir",
            "erl",
            "groovy",
            "scala",
            "racket",
            "ghc",
            "ghci",
            "swift",
        ],
    ),
    (Runs::Awk, &["awk", "gawk", "mawk", "nawk"]),
    (
        Runs::Values,
        &[
            "printf",
            "test",
            "[",
            "[[",
            "let",
            "declare",
            "typeset",
            "local",
            "export",
            "readonly",
            "read",
            "unset",
            "mapfile",
            "readarray",
            "getopts",
            "wait",
            "((",
        ],
    ),
];

/// Only with these does a program nothing but tell of itself.
const TELLS_OF_ITSELF: &[&str] = &["--version", "-V", "--help", "-h"];
/// What a shell runs before a text.
const START_UP_FILES: &[&str] = &["--rcfile", "--init-file"];
/// Variables that a shell looks up commands in.
const READ_BY_SHELLS: &[&str] = &["BASH_ENV=", "PROMPT_COMMAND="];

fn runs(program: &Word) -> Option<Runs> {
    let name = base_name(&program.text);
    // `python3.12` is a Python.
    let plain = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    let of = |name: &str| TABLE.iter().find(|(_, names)| names.contains(&name)).map(|(runs, _)| *runs);
    of(&name).or_else(|| of(plain).filter(|_| !plain.is_empty()))
}

/// Where in a command others can begin: none when the program runs no others.
pub(super) fn others_from(command: &[Word]) -> Option<usize> {
    let program = command.first()?;
    if program.certainty != Certainty::Literal {
        return Some(1);
    }
    match runs(program)? {
        Runs::Shells
        | Runs::Words
        | Runs::WordsAndInput
        | Runs::WordsUnless(_)
        | Runs::WordsOrInput
        | Runs::Shell => Some(1),
        Runs::Behind(markers) => {
            let is_marker = |word: &Word| {
                word.certainty != Certainty::Literal
                    || markers.contains(&word.text.split('=').next().unwrap_or_default())
            };
            // A text can stand in the same word: `--exec='a b'`.
            command.iter().skip(1).position(is_marker).map(|at| at + 1)
        }
        Runs::File | Runs::Input | Runs::Code(_) | Runs::Awk | Runs::Values => None,
    }
}

/// Whether a word behind such a program can be a command: the shell's own `.` is none to other programs, but a folder.
pub(super) fn can_begin(program: &Word, word: &Word) -> bool {
    let is_plain = word.certainty == Certainty::Literal && !word.text.starts_with('-');
    is_plain && (word.text != "." || matches!(runs(program), Some(Runs::Shells)))
}

/// The words that a command has in truth, as far as they are others than those that were written.
pub(super) fn with_input(command: &[Word]) -> Option<Vec<Word>> {
    let program = command.first()?;
    let Some(Runs::WordsAndInput) = runs(program) else { return None };
    let mut words = command.to_vec();
    let replaced: Vec<String> = command
        .iter()
        .enumerate()
        .filter_map(|(at, word)| match word.text.as_str() {
            "-I" | "-J" | "--replace" => command.get(at + 1).map(|word| word.text.clone()),
            text => ["-I", "-i", "--replace="]
                .iter()
                .find_map(|option| text.strip_prefix(option))
                .map(str::to_owned),
        })
        .filter(|text| !text.is_empty())
        .collect();
    for word in &mut words {
        if replaced.iter().any(|text| word.text.contains(text.as_str())) {
            word.certainty = Certainty::Unknown;
        }
    }
    words.push(Word { text: String::new(), certainty: Certainty::Unknown, quoted: false });
    Some(words)
}

/// Whether it sets a variable that shells have commands from.
pub(super) fn feeds_shells(command: &[Word]) -> bool {
    command.iter().any(|word| READ_BY_SHELLS.iter().any(|name| word.text.starts_with(name)))
}

/// What this command runs that nobody can read in the text.
pub(super) fn unread(command: &[Word]) -> Option<&'static str> {
    let (program, behind) = command.split_first()?;
    if program.certainty != Certainty::Literal {
        return None;
    }
    if matches!(behind, [only] if TELLS_OF_ITSELF.contains(&only.text.as_str())) {
        return None;
    }
    let names = |option: &&Word| option.text.starts_with(['-', '+']) && option.text != "-";
    match runs(program)? {
        Runs::Shells | Runs::Words | Runs::Behind(_) => None,
        Runs::WordsAndInput => {
            let alone = base_name(&program.text) == "parallel" && behind.iter().all(|word| names(&word));
            alone.then_some("commands that stand in its input")
        }
        Runs::WordsUnless(options) => behind
            .iter()
            .any(|word| options.contains(&word.text.as_str()))
            .then_some("a shell that reads its input"),
        Runs::WordsOrInput => {
            let few = behind.iter().filter(|word| !word.text.starts_with('-')).count() < 2;
            (few && !behind.iter().any(gives_text)).then_some("a shell that reads its input")
        }
        Runs::Shell => {
            // What comes behind the name of a file is none of the shell's own.
            let has_text = behind.iter().take_while(names).any(gives_text);
            let has_more = behind.iter().any(|word| START_UP_FILES.contains(&word.text.as_str()));
            (has_more || !has_text).then_some("a shell that reads its commands from a file or its input")
        }
        Runs::File => (!behind.is_empty()).then_some("commands that stand in a file"),
        Runs::Input => Some("commands that stand in its input"),
        Runs::Code(options) => {
            let file = behind.iter().position(|word| !names(&word));
            let before = behind.get(..file.unwrap_or(behind.len())).unwrap_or_default();
            let by_module = before.iter().any(|word| word.text.starts_with("-m"));
            let by_option = before.iter().any(|word| is_one_of(&word.text, options))
                || behind.first().is_some_and(|word| options.contains(&word.text.as_str()));
            let by_input = file.is_none() && !by_module
                || file
                    .and_then(|at| behind.get(at))
                    .is_some_and(|word| matches!(word.text.as_str(), "-" | "/dev/stdin"));
            (by_option || by_input).then_some("code in another language")
        }
        Runs::Awk => {
            let runs_nothing = |word: &Word| {
                word.certainty == Certainty::Literal
                    && !word.text.contains(['|', '@'])
                    && !word.text.contains("system")
            };
            let mut words = behind.iter().skip_while(names);
            let by_file = behind.first().is_some_and(|word| word.text.starts_with("-f"));
            (!by_file && words.next().is_some_and(|word| !runs_nothing(word))
                || behind.iter().any(|word| word.text.contains("system(")))
            .then_some("code in another language")
        }
        Runs::Values => {
            let substitutes = |word: &Word| word.text.contains("$(") || word.text.contains('`');
            behind
                .iter()
                .any(|word| word.certainty == Certainty::Literal && substitutes(word))
                .then_some("the text of a substitution in quotes")
        }
    }
}

/// Whether it is the option of a shell behind which a text stands.
fn gives_text(option: &Word) -> bool {
    let text = option.text.as_str();
    let cluster = text.starts_with('-') && !text.starts_with("--") && text.contains('c');
    option.certainty == Certainty::Literal && (cluster || text == "--command")
}

/// Whether an option is one of these, alone or with others (`-pe`), or with its value behind it (`-eprint`).
fn is_one_of(text: &str, options: &[&str]) -> bool {
    options.iter().any(|option| {
        let letter = option.strip_prefix('-').filter(|letter| letter.len() == 1);
        let cluster = text.starts_with('-') && !text.starts_with("--");
        text == *option
            || text.strip_prefix(option).is_some_and(|rest| rest.starts_with('='))
            || cluster && letter.is_some_and(|letter| text.contains(letter))
    })
}
