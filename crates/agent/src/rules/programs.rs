//! Which commands can run others, or code that is given with them.
//!
//! A rule that denies or asks has these for a possible match; in a rule that allows, a `*` does not stand for the arguments that make
//! them do so. Programs that are not listed are not looked into: any of them can start another.

use super::shell::Word;

/// The keywords of bash: `compgen -k`.
pub(super) const KEYWORDS: &[&str] = &[
    "if", "then", "else", "elif", "fi", "case", "esac", "for", "select", "while", "until", "do", "done",
    "in", "function", "time", "{", "}", "!", "[[", "]]", "coproc",
];

/// The builtins of bash (`compgen -b`) that can run a command or change what a later one means. The others cannot, whatever their
/// arguments are.
pub(super) const BUILTINS: &[&str] = &[
    ".",
    "[",
    "alias",
    "bind",
    "builtin",
    "command",
    "compgen",
    "complete",
    "compopt",
    "declare",
    "enable",
    "eval",
    "exec",
    "export",
    "fc",
    "getopts",
    "hash",
    "history",
    "jobs",
    "let",
    "local",
    "mapfile",
    "printf",
    "read",
    "readarray",
    "readonly",
    "set",
    "shopt",
    "source",
    "test",
    "trap",
    "typeset",
    "unalias",
    "unset",
    "wait",
];

/// Builtins that change the directory in which a relative path is looked up.
const CHANGE_DIRECTORY: &[&str] = &["cd", "pushd", "popd"];

/// Programs that run the command in their arguments. Their own options end with the first word that is not one.
const PREFIXES: &[&str] = &[
    "chrt", "doas", "env", "ionice", "nice", "nohup", "numactl", "pkexec", "runcon", "setsid", "stdbuf",
    "sudo", "taskset", "time", "timeout", "unbuffer", "xargs",
];

/// Shells.
const SHELLS: &[&str] = &[
    "ash",
    "bash",
    "csh",
    "dash",
    "elvish",
    "fish",
    "ksh",
    "mksh",
    "nu",
    "powershell",
    "pwsh",
    "rbash",
    "sh",
    "tcsh",
    "xonsh",
    "yash",
    "zsh",
];

/// Other programs that take their commands from an argument, a file, their input or elsewhere.
const RUNNERS: &[&str] = &[
    "arch",
    "at",
    "batch",
    "bun",
    "bunx",
    "busybox",
    "bwrap",
    "caffeinate",
    "capsh",
    "chroot",
    "choom",
    "cmd",
    "crontab",
    "dbus-run-session",
    "deno",
    "dumb-init",
    "ed",
    "emacs",
    "entr",
    "ex",
    "fakeroot",
    "firejail",
    "flock",
    "gdb",
    "gosu",
    "guix",
    "hyperfine",
    "i386",
    "java",
    "jshell",
    "less",
    "linux32",
    "linux64",
    "ltrace",
    "m4",
    "more",
    "mysql",
    "newgrp",
    "nix",
    "nix-shell",
    "nsenter",
    "nvim",
    "parallel",
    "perf",
    "pipx",
    "pnpx",
    "npx",
    "prlimit",
    "proot",
    "psql",
    "rlwrap",
    "run-parts",
    "runuser",
    "screen",
    "script",
    "sem",
    "setarch",
    "setpriv",
    "sg",
    "socat",
    "sqlite3",
    "ssh",
    "start-stop-daemon",
    "strace",
    "su",
    "systemd-run",
    "tini",
    "tmux",
    "toybox",
    "ts-node",
    "uname26",
    "unshare",
    "uvx",
    "valgrind",
    "vi",
    "view",
    "vim",
    "vimdiff",
    "watch",
    "watchexec",
    "winpty",
    "wsl",
    "x86_64",
    "xvfb-run",
];

/// Programs that run code: a file of it where that is their first argument.
const INTERPRETERS: &[&str] = &[
    "elixir",
    "erl",
    "expect",
    "ghc",
    "ghci",
    "groovy",
    "guile",
    "ipython",
    "irb",
    "julia",
    "lua",
    "luajit",
    "node",
    "nodejs",
    "osascript",
    "perl",
    "php",
    "pypy",
    "python",
    "r",
    "racket",
    "rscript",
    "ruby",
    "scala",
    "swift",
    "tclsh",
];
const AWKS: &[&str] = &["awk", "gawk", "mawk", "nawk"];
const SEDS: &[&str] = &["sed", "gsed"];
/// Modules behind `python -m` that run files and no code in their arguments.
const MODULES: &[&str] = &["black", "build", "mypy", "pip", "pytest", "ruff", "unittest", "venv"];

/// Programs that run others by some of their arguments.
struct Row {
    programs: &'static [&'static str],
    /// Words that can be a command of the program, which comes before other words but not before options.
    commands: &'static [&'static str],
    /// Words, wherever they are.
    words: &'static [&'static str],
    /// Long options, which may be abbreviated.
    long: &'static [&'static str],
    /// Letters of short options.
    short: &'static str,
}

const TABLE: &[Row] = &[
    Row {
        programs: &["find"],
        commands: &[],
        words: &["-exec", "-execdir", "-ok", "-okdir"],
        long: &[],
        short: "",
    },
    Row {
        programs: &["fd", "fdfind"],
        commands: &[],
        words: &[],
        long: &["exec", "exec-batch"],
        short: "xX",
    },
    Row {
        programs: &["tar", "gtar", "bsdtar"],
        commands: &[],
        words: &[],
        long: &[
            "checkpoint-action",
            "info-script",
            "new-volume-script",
            "rsh-command",
            "to-command",
            "use-compress-program",
        ],
        short: "FI",
    },
    Row { programs: &["sort"], commands: &[], words: &[], long: &["compress-program"], short: "" },
    Row { programs: &["split"], commands: &[], words: &[], long: &["filter"], short: "" },
    Row { programs: &["rg"], commands: &[], words: &[], long: &["hostname-bin", "pre"], short: "" },
    Row { programs: &["rsync"], commands: &[], words: &[], long: &["rsh", "rsync-path"], short: "e" },
    Row { programs: &["scp", "sftp"], commands: &[], words: &[], long: &[], short: "DFJSo" },
    Row { programs: &["zip"], commands: &[], words: &[], long: &["unzip-command"], short: "T" },
    Row {
        programs: &["man"],
        commands: &[],
        words: &[],
        long: &["html", "pager", "preprocessor"],
        short: "HPp",
    },
    Row {
        programs: &["make", "gmake"],
        commands: &[],
        words: &[],
        long: &["directory", "eval", "file", "makefile"],
        short: "CEf",
    },
    Row {
        programs: &["go"],
        commands: &[],
        words: &["-exec", "-toolexec", "-vettool", "generate", "tool"],
        long: &["exec", "toolexec", "vettool"],
        short: "",
    },
    Row { programs: &["cargo"], commands: &[], words: &[], long: &["config", "manifest-path"], short: "C" },
    Row { programs: &["go"], commands: &["env"], words: &["-C"], long: &[], short: "" },
    Row {
        programs: &["mvn", "mvnw", "ant", "rake"],
        commands: &[],
        words: &[],
        long: &["file", "rakefile"],
        short: "f",
    },
    Row {
        programs: &["gradle", "gradlew"],
        commands: &[],
        words: &[],
        long: &["build-file", "include-build", "init-script", "project-dir", "settings-file"],
        short: "bcIp",
    },
    Row {
        programs: &["just", "tox", "nox", "phpunit", "composer"],
        commands: &[],
        words: &[],
        long: &["conf", "configuration", "justfile", "noxfile", "shell", "working-dir"],
        short: "cdf",
    },
    Row {
        programs: &["pytest", "py.test"],
        commands: &[],
        words: &[],
        long: &["confcutdir", "config-file", "override-ini", "rootdir"],
        short: "cop",
    },
    Row { programs: &["pip"], commands: &[], words: &[], long: &["python"], short: "" },
    Row { programs: &["gh"], commands: &["alias", "extension"], words: &[], long: &[], short: "" },
    Row { programs: &["cmake"], commands: &[], words: &["-E", "-P"], long: &[], short: "EP" },
    Row {
        programs: &["gcc", "g++", "cc", "c++", "clang", "clang++"],
        commands: &[],
        words: &["-wrapper"],
        long: &[],
        short: "B",
    },
    Row { programs: &["wget"], commands: &[], words: &[], long: &["config", "use-askpass"], short: "" },
    Row {
        programs: &["install", "ginstall"],
        commands: &[],
        words: &[],
        long: &["strip-program"],
        short: "",
    },
    Row {
        programs: &["docker", "podman", "nerdctl", "kubectl", "oc"],
        commands: &[],
        words: &["exec", "run"],
        long: &[],
        short: "",
    },
    Row {
        programs: &[
            "asdf", "bundle", "conda", "direnv", "hatch", "mamba", "mise", "npm", "pdm", "pipenv", "pnpm",
            "poetry", "rustup", "uv", "yarn",
        ],
        commands: &["x"],
        words: &["dlx", "exec"],
        long: &["script-shell"],
        short: "",
    },
    // These run a program of a package, or name the shell of all scripts.
    Row {
        programs: &["npm", "pnpm", "yarn"],
        commands: &[],
        words: &["config", "create", "explore", "init", "innit", "set"],
        long: &["cwd", "dir", "globalconfig", "node-options", "prefix", "userconfig"],
        short: "C",
    },
    Row {
        programs: &["conda", "hatch", "mamba", "pdm", "pipenv", "poetry", "rustup", "uv"],
        commands: &[],
        words: &["run"],
        long: &[],
        short: "",
    },
];

/// Commands of git that run only programs named in the repository's settings. Any other word can be an alias.
const GIT: &[&str] = &[
    "add",
    "am",
    "apply",
    "blame",
    "branch",
    "cat-file",
    "checkout",
    "cherry",
    "cherry-pick",
    "clean",
    "clone",
    "commit",
    "describe",
    "diff",
    "diff-tree",
    "fetch",
    "for-each-ref",
    "format-patch",
    "gc",
    "grep",
    "init",
    "log",
    "ls-files",
    "ls-remote",
    "ls-tree",
    "merge",
    "merge-base",
    "mv",
    "notes",
    "prune",
    "pull",
    "push",
    "rebase",
    "reflog",
    "remote",
    "reset",
    "restore",
    "rev-list",
    "rev-parse",
    "revert",
    "rm",
    "shortlog",
    "show",
    "show-ref",
    "stash",
    "status",
    "switch",
    "symbolic-ref",
    "tag",
    "version",
    "whatchanged",
    "worktree",
];
/// Options before the command that run nothing.
const GIT_BEFORE: &[&str] = &["--help", "--no-optional-locks", "--no-pager", "--version", "-P", "-h", "-v"];
/// Options before the command with a value in the next word.
const GIT_VALUES: &[&str] = &[
    "--attr-source",
    "--config-env",
    "--git-dir",
    "--namespace",
    "--super-prefix",
    "--work-tree",
    "-C",
    "-c",
];
/// Options behind the command that name a program, or a setting or folder that can.
const GIT_LONG: &[&str] = &[
    "config",
    "edit-description",
    "exec",
    "ext-diff",
    "extcmd",
    "open-files-in-pager",
    "output",
    "receive-pack",
    "separate-git-dir",
    "template",
    "textconv",
    "tool",
    "upload-pack",
];
const GIT_SHORT: &[(&str, &str)] = &[("clone", "cu"), ("grep", "O"), ("rebase", "x")];

/// Programs that run their input even with `--version` or `--help`, or that may do so on some systems.
const NEVER_DESCRIBES: &[&str] = &["ash", "csh", "elvish", "expect", "mksh", "tclsh", "wish"];

const RUNS_ANOTHER: &str = "a program that can run another";
const RUNS_CODE: &str = "an interpreter that can run code";
const IS_BUILTIN: &str = "a builtin of the shell that can run a command";

/// Programs that only read, or say something about the system.
const READERS: &[&str] = &[
    "cat", "cut", "echo", "expr", "false", "grep", "head", "id", "ls", "nl", "paste", "pwd", "rev", "seq",
    "stat", "tac", "tail", "tr", "true", "uname", "wc", "which", "whoami",
];

/// Whether a command only reads. git does not: the settings of a repository can make `git status` run a program.
pub(super) fn reads(command: &[Word]) -> bool {
    let Some((program, arguments)) = command.split_first() else { return false };
    // These follow links, or read the files that another file names.
    let leads_on = |text: &str| {
        is_long(text, &["dereference-recursive", "files0-from"])
            || program.text == "grep" && cluster(text).is_some_and(|cluster| cluster.contains('R'))
    };
    program.literal().is_some_and(|program| READERS.contains(&program))
        && !arguments.iter().filter_map(Word::literal).any(leads_on)
}

/// Returns true if the directory does not decide what the command runs: it reads, or changes the directory again.
pub(super) fn stays_harmless(command: &[Word]) -> bool {
    let changes = |program: &Word| CHANGE_DIRECTORY.contains(&program.text.as_str());
    reads(command) || command.first().is_some_and(changes)
}

/// How a command can run another.
pub(super) struct Launch {
    /// The arguments by which it does so. One behind the last stands for its input.
    pub by: Vec<usize>,
    /// Whether the other command is one of its arguments and those behind it.
    pub behind: Option<Behind>,
    pub why: &'static str,
}

/// What the words of the other command are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Behind {
    Words,
    /// Followed by more from its input.
    WordsAndInput,
}

pub(super) fn base_name(program: &str) -> String {
    program.rsplit('/').next().unwrap_or(program).to_lowercase()
}

/// Whether a program is one of these, in any version: `python3.12`, `perl5.36-x86_64-linux-gnu`.
fn is_one_of(name: &str, names: &[&str]) -> bool {
    let plain = name.split(|c: char| c.is_ascii_digit()).next().unwrap_or_default();
    names.contains(&name) || names.contains(&plain)
}

/// Whether a command can change the directory for those behind it.
pub(super) fn changes_directory(command: &[Word]) -> bool {
    command.first().is_some_and(|program| CHANGE_DIRECTORY.contains(&program.text.as_str()))
        || launch(command).is_some_and(|launch| launch.why == IS_BUILTIN)
}

/// How a command can run another, or code that is given with it; none if it is not known to.
pub(super) fn launch(command: &[Word]) -> Option<Launch> {
    let (program, arguments) = command.split_first()?;
    let name = program.text.as_str();
    if BUILTINS.contains(&name) {
        let launch = Launch { by: vec![1], behind: None, why: IS_BUILTIN };
        return (!is_harmless(name, arguments)).then_some(launch);
    }
    launch_of_program(command)
}

/// The same where the program is not one of the shell's own.
pub(super) fn launch_of_program(command: &[Word]) -> Option<Launch> {
    let (program, arguments) = command.split_first()?;
    let name = base_name(&program.text);
    let is_in = |names: &[&str]| is_one_of(&name, names);
    // Short options are not safe: `bash -h` and `sh -V` run their input.
    let describes = |text: &str| match text {
        "--version" | "--help" => !is_in(NEVER_DESCRIBES),
        "-V" => is_in(&["python"]),
        _ => false,
    };
    if let [only] = arguments
        && only.literal().is_some_and(describes)
    {
        return None;
    }
    let first = arguments.first().and_then(Word::literal);
    let another = |by, behind| Some(Launch { by, behind, why: RUNS_ANOTHER });
    let code = |by| Some(Launch { by, behind: None, why: RUNS_CODE });
    // Without arguments these read their input.
    let all: Vec<usize> = (1..=arguments.len().max(1)).collect();
    if is_in(PREFIXES) {
        let begins =
            |text: &str| !text.starts_with('-') && !text.contains(|c: char| c == '=' || c.is_whitespace());
        let behind = if is_in(&["xargs"]) { Behind::WordsAndInput } else { Behind::Words };
        return another(vec![1], first.is_some_and(begins).then_some(behind));
    }
    // The dynamic linker runs the program that it is given.
    if is_in(RUNNERS) || name.starts_with("ld") && name.contains(".so") {
        return another(up_to_first_word(arguments), None);
    }
    if is_in(SHELLS) {
        return another(if first.is_some_and(is_file) { vec![1] } else { all }, None);
    }
    if is_in(INTERPRETERS) {
        let module = arguments.get(1).and_then(Word::literal);
        let is_module = first == Some("-m") && module.is_some_and(|module| MODULES.contains(&module));
        return if first.is_some_and(is_file) || is_module { None } else { code(all) };
    }
    if is_in(AWKS) {
        return if runs_nothing(arguments) { None } else { code(all) };
    }
    if is_in(SEDS) {
        return if only_substitutes(arguments) { None } else { code(all) };
    }
    let rows: Vec<&Row> = TABLE.iter().filter(|row| row.programs.contains(&name.as_str())).collect();
    let no_command_first = first.is_none_or(|text| text.starts_with('-'));
    let by = match name.as_str() {
        "git" => by_git(arguments),
        _ if rows.is_empty() => Vec::new(),
        _ => {
            let words: Vec<&str> =
                rows.iter().flat_map(|row| row.words.iter().chain(row.commands)).copied().collect();
            positions(arguments, &words, |at, text| {
                let is_command = |row: &Row| row.commands.contains(&text) && (at == 0 || no_command_first);
                // The value of a variable of make can be a command.
                let is_variable = matches!(name.as_str(), "make" | "gmake") && text.contains('=');
                is_variable || rows.iter().any(|row| row.has(at, text) || is_command(row))
            })
        }
    };
    (!by.is_empty()).then_some(Launch { by, behind: None, why: RUNS_ANOTHER })
}

/// Returns the positions of the leading options and of the first word after them. Without such a word, the position after the last
/// argument stands for the input.
fn up_to_first_word(arguments: &[Word]) -> Vec<usize> {
    let options =
        arguments.iter().take_while(|word| word.literal().is_some_and(|text| text.starts_with('-')));
    (1..=options.count() + 1).collect()
}

/// Which of the arguments are such: by their text, or because the shell may replace them with an option or one of these words.
fn positions(arguments: &[Word], words: &[&str], is_such: impl Fn(usize, &str) -> bool) -> Vec<usize> {
    let may_be = |word: &Word| {
        word.text.starts_with(['*', '?', '[', '-']) || words.iter().any(|other| can_become(word, other))
    };
    let such = |at: usize, word: &Word| match word.literal() {
        Some(text) => is_such(at, text),
        None => may_be(word),
    };
    arguments.iter().enumerate().filter(|(at, word)| such(*at, word)).map(|(at, _)| at + 1).collect()
}

/// Whether the shell may replace a word with this one: it has the same beginning, and the same end if that is known.
fn can_become(word: &Word, other: &str) -> bool {
    let is_glob = |c: char| matches!(c, '*' | '?' | '[' | '~');
    let begins = word.text.split(is_glob).next().is_some_and(|start| other.starts_with(start));
    let ends = word.text.contains(['[', '~'])
        || word.text.rsplit(is_glob).next().is_some_and(|end| other.ends_with(end));
    begins && ends
}

impl Row {
    fn has(&self, at: usize, text: &str) -> bool {
        // The first argument of tar is a cluster without a dash, too.
        let bare = (at == 0 && self.programs.contains(&"tar")).then_some(text);
        // npm takes an abbreviation for the command.
        let abbreviated = |word: &&str| text.len() > 2 && word.starts_with(text);
        self.words.contains(&text)
            || self.programs.contains(&"npm") && self.words.iter().any(abbreviated)
            || is_long(text, self.long)
            || cluster(text).or(bare).is_some_and(|cluster| cluster.contains(|c| self.short.contains(c)))
    }
}

/// Whether it is one of these long options, or an abbreviation of one.
fn is_long(text: &str, names: &[&str]) -> bool {
    let name = text.strip_prefix("--").and_then(|rest| rest.split('=').next()).unwrap_or_default();
    !name.is_empty() && names.iter().any(|long| long.starts_with(name))
}

/// The letters of short options in one word.
fn cluster(text: &str) -> Option<&str> {
    text.strip_prefix('-').filter(|rest| !rest.starts_with('-'))
}

fn by_git(arguments: &[Word]) -> Vec<usize> {
    let (mut by, mut at) = (Vec::new(), 0);
    let command = loop {
        match arguments.get(at).map(Word::literal) {
            None => return by,
            Some(Some(text)) if GIT_BEFORE.contains(&text) => at += 1,
            Some(Some(text)) if text.starts_with('-') => {
                let words = if GIT_VALUES.contains(&text) { 2 } else { 1 };
                by.extend((at + 1..=at + words).filter(|at| *at <= arguments.len()));
                at += words;
            }
            Some(Some(text)) if GIT.contains(&text) => break text,
            Some(_) => {
                by.push(at + 1);
                return by;
            }
        }
    };
    let short = GIT_SHORT.iter().find(|(name, _)| *name == command).map_or("", |(_, letters)| letters);
    by.extend(positions(arguments, &[], |found, text| {
        let is_short = cluster(text).is_some_and(|cluster| cluster.contains(|c| short.contains(c)));
        found > at && (is_short || is_long(text, GIT_LONG) || is_repository(text))
    }));
    let unknown = arguments.iter().enumerate().filter(|(_, word)| word.literal().is_none());
    by.extend(unknown.filter(|(_, word)| can_become_repository(&word.text)).map(|(at, _)| at + 1));
    by
}

/// Returns true if the shell may replace a word with a path into `.git`. Only a pattern with a dot of its own matches a name with one.
fn can_become_repository(pattern: &str) -> bool {
    let hidden = |part: &str| part.starts_with('.') && part.contains(['*', '?', '[']);
    is_repository(pattern) || pattern.split(['/', '=', ':']).any(hidden)
}

/// Whether a path leads into `.git`, whose files name programs.
fn is_repository(path: &str) -> bool {
    // The path can be the value of an option, or have a prefix of git's: `-o.git/hooks`, `:(top).git`.
    let has_prefix = path.starts_with([':', '-']);
    let mut parts = path.split(['/', '=']).map(str::to_lowercase);
    parts.any(|part| part == ".git" || has_prefix && part.ends_with(".git"))
}

/// Removes options of git that change nothing about its command: `git --no-pager push` becomes `git push`.
pub(super) fn without_idle_options(command: &[Word]) -> Vec<Word> {
    let is_idle = |word: &&Word| word.literal().is_some_and(|text| GIT_BEFORE.contains(&text));
    match command.split_first() {
        Some((program, arguments)) if base_name(&program.text) == "git" => {
            let idle = arguments.iter().take_while(is_idle).count();
            std::iter::once(program).chain(arguments.iter().skip(idle)).cloned().collect()
        }
        _ => command.to_vec(),
    }
}

/// Whether an argument is a file of code, and neither an option nor the input.
fn is_file(argument: &str) -> bool {
    !argument.starts_with(['-', '+']) && !is_device(argument)
}

/// Whether a path leads to what is read from a pipe.
fn is_device(path: &str) -> bool {
    path.split('/').any(|part| matches!(part, "dev" | "proc" | "fd" | "stdin"))
}

/// Returns true if awk has only a field separator and a program that runs nothing.
fn runs_nothing(arguments: &[Word]) -> bool {
    let rest = match arguments {
        [option, _, rest @ ..] if option.literal() == Some("-F") => rest,
        [option, rest @ ..] if option.literal().is_some_and(|text| text.starts_with("-F")) => rest,
        rest => rest,
    };
    let program = rest.first().and_then(Word::literal);
    program.is_some_and(|text| {
        let runs = ["system", "getline", "|", "@"];
        !text.starts_with('-') && !runs.iter().any(|part| text.contains(part))
    })
}

/// Returns true if sed only prints, deletes, counts or substitutes lines, without running a command or writing another file.
fn only_substitutes(arguments: &[Word]) -> bool {
    let idle =
        ["-n", "-e", "-E", "-r", "-s", "-z", "-i", "--quiet", "--silent", "--in-place", "--regexp-extended"];
    let mut words =
        arguments.iter().map(Word::literal).skip_while(|word| word.is_some_and(|text| idle.contains(&text)));
    let is_idle_script = |script: &str| {
        let prints = script.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, ',' | '$'));
        let mut parts = script.chars().nth(1).into_iter().flat_map(|delimiter| script.split(delimiter));
        let substitutes = parts.next() == Some("s")
            && parts.nth(1).is_some()
            && parts
                .next()
                .is_some_and(|flags| flags.chars().all(|c| c.is_ascii_digit() || "gpIi".contains(c)))
            && parts.next().is_none();
        !script.contains('\n') && (matches!(prints, "p" | "d" | "q" | "=") || substitutes)
    };
    words.next().flatten().is_some_and(is_idle_script)
        && words.all(|word| word.is_some_and(|text| !text.starts_with('-')))
}

/// Whether such a builtin does nothing but what it is known for. A subscript in an argument is evaluated, substitutions in it included:
/// `test -v 'a[$(command)]'`.
fn is_harmless(builtin: &str, arguments: &[Word]) -> bool {
    let texts: Option<Vec<&str>> = arguments.iter().map(Word::literal).collect();
    let Some(texts) = texts else { return false };
    match (builtin, texts.as_slice()) {
        ("test" | "[", words) => !words.iter().any(|word| word.contains('[')),
        ("printf", [format, ..]) => {
            let rest = ["%%", "%s", "%d", "%b"]
                .iter()
                .fold((*format).to_owned(), |rest, part| rest.replace(part, ""));
            !format.starts_with('-') && !rest.contains('%')
        }
        ("command", ["-v" | "-V", ..]) => true,
        ("set", ["-e" | "-u" | "-eu"] | ["-euo" | "-eo" | "-o", "pipefail"]) => true,
        _ => false,
    }
}
