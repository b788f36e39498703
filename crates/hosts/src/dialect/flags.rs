//! The flags that are understood, in one table: those of Gemini CLI 0.61.0, and those that only the hosts' documents know.

/// What follows a flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Takes {
    /// Nothing, or the literal `true` or `false`.
    Switch,
    /// Nothing, or a word that says which engine; the CLI itself only knows true and false.
    Engine,
    /// One value.
    Value,
    /// One value that may be missing.
    PerhapsValue,
    /// One value that may hold several, separated by commas; the flag may come again.
    List,
}

/// What a flag is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    Prompt,
    Model,
    Approval,
    Yolo,
    OutputFormat,
    Sandbox,
    IncludeDirs,
    AllowTools,
    DenyTools,
    Policy,
    Dir,
    Resume,
    SessionId,
    /// The folder is trusted anyway.
    Trust,
    /// Not for a headless run: the real CLI gets everything.
    HandOver,
    /// For the real CLI, as it is.
    Keep,
}

/// Who knows a flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    Cli,
    /// Some host's document, and no release of the CLI.
    Document,
}

#[derive(Debug, PartialEq)]
pub(super) struct Flag {
    pub name: &'static str,
    pub short: Option<char>,
    pub takes: Takes,
    pub meaning: Meaning,
    pub origin: Origin,
}

macro_rules! flags {
    ($($origin:ident $name:literal $($short:literal)? $takes:ident $meaning:ident;)+) => {
        &[$(Flag {
            name: $name,
            short: flags!(@short $($short)?),
            takes: Takes::$takes,
            meaning: Meaning::$meaning,
            origin: Origin::$origin,
        }),+]
    };
    (@short) => { None };
    (@short $short:literal) => { Some($short) };
}

pub(super) const FLAGS: &[Flag] = flags! {
    Cli "prompt" 'p' Value Prompt;
    Cli "prompt-interactive" 'i' Value HandOver;
    Cli "model" 'm' Value Model;
    Cli "approval-mode" Value Approval;
    Cli "yolo" 'y' Switch Yolo;
    Cli "output-format" 'o' Value OutputFormat;
    Cli "sandbox" 's' Engine Sandbox;
    Cli "include-directories" List IncludeDirs;
    Cli "allowed-tools" List AllowTools;
    Cli "policy" List Policy;
    Cli "resume" 'r' PerhapsValue Resume;
    Cli "session-id" Value SessionId;
    Cli "skip-trust" Switch Trust;
    Cli "version" 'v' Switch HandOver;
    Cli "help" 'h' Switch HandOver;
    Cli "acp" Switch HandOver;
    Cli "experimental-acp" Switch HandOver;
    Cli "list-extensions" 'l' Switch HandOver;
    Cli "list-sessions" Switch HandOver;
    Cli "delete-session" Value HandOver;
    Cli "worktree" 'w' PerhapsValue HandOver;
    Cli "debug" 'd' Switch Keep;
    Cli "extensions" 'e' List Keep;
    Cli "allowed-mcp-server-names" List Keep;
    Cli "admin-policy" List Keep;
    Cli "session-file" Value Keep;
    Cli "screen-reader" Switch Keep;
    Cli "raw-output" Switch Keep;
    Cli "accept-raw-output-risk" Switch Keep;
    Cli "fake-responses" Value Keep;
    Cli "fake-responses-non-strict" Value Keep;
    Cli "record-responses" Value Keep;
    Document "working-directory" Value Dir;
    Document "disable-tool" List DenyTools;
    Document "disable-tools" List DenyTools;
};

/// The first word of a command of the CLI, aliases included.
pub(super) const COMMANDS: &[&str] =
    &["mcp", "extensions", "extension", "skills", "skill", "hooks", "hook", "gemma"];

/// What may stand after `--sandbox` as a word of its own.
pub(super) const ENGINES: &[&str] = &[
    "true",
    "false",
    "none",
    "off",
    "on",
    "docker",
    "podman",
    "sandbox-exec",
    "runsc",
    "lxc",
    "windows-native",
];

impl Flag {
    /// The flag of that long name; yargs takes camel case for the same.
    pub fn long(name: &str) -> Option<&'static Flag> {
        let kebab = kebab_case(name);
        FLAGS.iter().find(|flag| flag.name == kebab)
    }

    pub fn short(letter: char) -> Option<&'static Flag> {
        FLAGS.iter().find(|flag| flag.short == Some(letter))
    }

    /// Whether it can be negated with `--no-`.
    pub fn is_switch(&self) -> bool {
        matches!(self.takes, Takes::Switch | Takes::Engine)
    }
}

fn kebab_case(name: &str) -> String {
    let mut kebab = String::with_capacity(name.len() + 2);
    for letter in name.chars() {
        if letter.is_ascii_uppercase() {
            kebab.push('-');
        }
        kebab.push(letter.to_ascii_lowercase());
    }
    kebab
}
