//! The options of the Python and Node packages, from the table of the options of a run.

use alhena_model::Setting;

/// Ends the line that says where a file comes from.
const RENEW: &str = "Generated from the Rust types; do not edit. To renew: UPDATE_SCHEMAS=1 cargo test -p alhena-hosts --test it schemas";

/// The values of an option in the packages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Text,
    Texts,
    Path,
    Paths,
    Integer,
    Number,
    /// A time, or none.
    Limit,
    /// One of a few names.
    Choice,
    /// The same, with the first as the default.
    Approval,
    Trust,
    Sandbox,
    Servers,
    Variables,
    Session,
    Schema,
    Scenario,
    /// On by default, where the option turns it off.
    On,
}

/// An option in the packages: its name, its values, and its description where that of the command line does not fit.
type Offered = (&'static str, Kind, &'static str);

/// Without a wildcard: a new option does not compile until it is decided.
fn offered(setting: Setting) -> Option<Offered> {
    let plain = |kind| Some((setting.name(), kind, ""));
    match setting {
        Setting::Dir => Some(("cwd", Kind::Path, "Work in this directory; the current one by default")),
        Setting::Gemini => plain(Kind::Path),
        Setting::Model => plain(Kind::Text),
        Setting::Approval => plain(Kind::Approval),
        Setting::Trust => plain(Kind::Trust),
        Setting::Sandbox => plain(Kind::Sandbox),
        Setting::IncludeDir => Some(("include_dirs", Kind::Paths, "More directories that the model may use")),
        Setting::AllowTool => {
            Some(("allow_tools", Kind::Texts, "Allow tools: a name, or run_shell_command(PREFIX)"))
        }
        Setting::DenyTool => Some(("deny_tools", Kind::Texts, "Deny tools")),
        Setting::Policy => Some(("policies", Kind::Paths, "Policy files of Gemini CLI")),
        Setting::McpServer => Some((
            "mcp_servers",
            Kind::Servers,
            "MCP servers by name, as in Gemini CLI's settings, or a JSON file with them",
        )),
        Setting::SystemPrompt => plain(Kind::Text),
        Setting::SystemPromptMode => plain(Kind::Choice),
        Setting::Env => Some((
            "env",
            Kind::Variables,
            "Variables for `alhena` and Gemini CLI, beside those of this process",
        )),
        Setting::Resume => Some((
            "resume",
            Kind::Session,
            "Continue a session: its id, or true for the latest of the folder",
        )),
        Setting::SessionId => plain(Kind::Text),
        Setting::Timeout => Some((
            "timeout",
            Kind::Limit,
            "Stop the run, or a turn of a conversation, after this time. It is then the only limit of time, unless the next two are given",
        )),
        Setting::FirstEventTimeout => Some((
            "first_event_timeout",
            Kind::Limit,
            "Stop when nothing arrives within this time; 60 s if no `timeout` is given",
        )),
        Setting::StallTimeout => Some((
            "stall_timeout",
            Kind::Limit,
            "Stop after this long without output while no tool runs; 5 min if no `timeout` is given",
        )),
        Setting::MaxTurns
        | Setting::MaxAttempts
        | Setting::MaxTokens
        | Setting::MaxCalls
        | Setting::SchemaAttempts => plain(Kind::Integer),
        Setting::MaxCost => plain(Kind::Number),
        Setting::Schema => Some((
            "schema",
            Kind::Schema,
            "Require an answer that fits this JSON schema, or the one in this file; the outcome then has it as `data`",
        )),
        Setting::Offline => plain(Kind::Scenario),
        Setting::Record => Some((
            "record",
            Kind::Path,
            "Keep everything that the CLI wrote in this directory, which must not exist, for `alhena parse`",
        )),
        Setting::NoConfig => {
            Some(("use_config", Kind::On, "Use the files with defaults; `alhena help config` explains them"))
        }
        Setting::Args => Some(("extra_args", Kind::Texts, "")),
        // A callback decides instead.
        Setting::Allow | Setting::Deny | Setting::Ask | Setting::Rules | Setting::PermissionTimeout => None,
        Setting::Hook | Setting::HookTimeout => None,
        // A prompt is an argument, and a long text goes through a file of the package's own.
        Setting::Prompt | Setting::PromptFile | Setting::PromptBy | Setting::SystemPromptFile => None,
        Setting::Transport
        | Setting::AgentCommand
        | Setting::Cassette
        | Setting::CassetteMode
        | Setting::OnRateLimit
        | Setting::Prices => None,
    }
}

/// In the order in which they can be given without names: the directory comes first.
fn all() -> impl Iterator<Item = (Setting, Offered)> {
    let is_last = |setting: &&Setting| matches!(setting, Setting::Offline | Setting::Gemini);
    let settings = Setting::ALL.iter().filter(move |setting| !is_last(setting));
    let settings = settings.chain(Setting::ALL.iter().filter(is_last));
    settings.filter_map(|setting| offered(*setting).map(|offered| (*setting, offered)))
}

/// The option of a package that errors name in place of this setting.
fn option_of(setting: Setting) -> &'static str {
    match setting {
        // The package writes the file.
        Setting::SystemPromptFile => Setting::SystemPrompt.name(),
        _ => offered(setting).map_or(setting.name(), |(name, ..)| name),
    }
}

fn description(setting: Setting, (_, kind, own): Offered) -> String {
    let text = if own.is_empty() { setting.help() } else { own };
    match kind {
        Kind::Limit => format!("{text}. `none` is no limit, also where a file with defaults has one."),
        _ => format!("{text}."),
    }
}

fn names(setting: Setting) -> Vec<&'static str> {
    setting.choices().into_iter().flat_map(|(names, _)| names.iter().copied()).collect()
}

fn camel_case(name: &str) -> String {
    let mut upper = false;
    let letters = name.chars().filter_map(|letter| {
        let now = std::mem::replace(&mut upper, letter == '_');
        (letter != '_').then(|| if now { letter.to_ascii_uppercase() } else { letter })
    });
    letters.collect()
}

/// A module with the data class from which the package's own inherits.
pub fn python_options() -> String {
    let mut out = format!(
        "# {RENEW}\n\"\"\"The options of a run.\"\"\"\n\nfrom __future__ import annotations\n\nimport os\nfrom collections.abc import \
         Mapping, Sequence\nfrom dataclasses import dataclass, field\nfrom datetime import timedelta\nfrom typing import Any, Literal\n\n\
         Seconds = float | int | timedelta\n\"\"\"A time: seconds, or a `timedelta`.\"\"\"\nStrPath = str | os.PathLike[str]\n\n\n\
         @dataclass\nclass RunOptions:\n    \"\"\"Options of a run; all can be left out.\"\"\"\n\n"
    );
    for (setting, offered) in all() {
        let (name, kind, _) = offered;
        let quoted = || names(setting).iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ");
        let value = match kind {
            Kind::Text => "str | None = None".to_owned(),
            Kind::Texts => "Sequence[str] = ()".to_owned(),
            Kind::Path => "StrPath | None = None".to_owned(),
            Kind::Paths => "Sequence[StrPath] = ()".to_owned(),
            Kind::Integer => "int | None = None".to_owned(),
            Kind::Number => "float | None = None".to_owned(),
            Kind::Limit => "Seconds | Literal[\"none\"] | None = None".to_owned(),
            Kind::Choice => {
                let default = names(setting).first().copied().unwrap_or_default();
                format!("Literal[{}] = {default:?}", quoted())
            }
            Kind::Approval => "str = \"default\"".to_owned(),
            Kind::Trust => "bool | Literal[\"settings\"] = False".to_owned(),
            Kind::Sandbox => "bool | str | None = None".to_owned(),
            Kind::Servers => "Mapping[str, Mapping[str, Any]] | StrPath | None = None".to_owned(),
            Kind::Variables => "Mapping[str, str] = field(default_factory=dict)".to_owned(),
            Kind::Session => "str | Literal[True] | None = None".to_owned(),
            Kind::Schema => "Mapping[str, object] | StrPath | None = None".to_owned(),
            Kind::Scenario => "bool | StrPath = False".to_owned(),
            Kind::On => "bool = True".to_owned(),
        };
        let mut doc = description(setting, offered);
        if kind == Kind::Approval {
            doc.push_str(&format!("\n\n    One of {}.\n    ", names(setting).join(", ")));
        }
        out.push_str(&format!("    {name}: {value}\n    \"\"\"{doc}\"\"\"\n"));
    }
    out.push_str("\n\nOPTION_OF = {\n");
    for setting in Setting::ALL.iter().filter(|setting| option_of(**setting) != setting.name()) {
        out.push_str(&format!("    {:?}: {:?},\n", setting.name(), option_of(*setting)));
    }
    out.push_str("}\n\"\"\"The option in place of a setting that errors of `alhena` name, where the names differ.\"\"\"\n");
    out
}

/// A module with the interface that the package's own extends.
pub fn typescript_options() -> String {
    let union =
        |setting| names(setting).iter().map(|name| format!("'{name}'")).collect::<Vec<_>>().join(" | ");
    let mut out = format!(
        "// {RENEW}\n\n/** {}. */\nexport type Approval = {};\n\n/** Options of a run; all can be left out. */\nexport interface RunOptions {{\n",
        Setting::Approval.help(),
        union(Setting::Approval)
    );
    for (setting, offered) in all() {
        let (name, kind, _) = offered;
        let value = match kind {
            Kind::Text | Kind::Path => "string".to_owned(),
            Kind::Texts | Kind::Paths => "readonly string[]".to_owned(),
            Kind::Integer | Kind::Number => "number".to_owned(),
            Kind::Limit => "number | 'none'".to_owned(),
            Kind::Choice => union(setting),
            Kind::Approval => "Approval".to_owned(),
            Kind::Trust => "boolean | 'settings'".to_owned(),
            Kind::Sandbox | Kind::Scenario => "boolean | string".to_owned(),
            Kind::Servers => "Readonly<Record<string, object>> | string".to_owned(),
            Kind::Variables => "Readonly<Record<string, string | undefined>>".to_owned(),
            Kind::Session => "string | true".to_owned(),
            Kind::Schema => "object | string".to_owned(),
            Kind::On => "boolean".to_owned(),
        };
        let unit = if kind == Kind::Limit { " In milliseconds." } else { "" };
        let doc = description(setting, offered);
        out.push_str(&format!("  /** {doc}{unit} */\n  {}?: {value} | undefined;\n", camel_case(name)));
    }
    out.push_str("}\n\n/** The option in place of each setting that errors of `alhena` name. */\nexport const OPTION_OF: Readonly<Record<string, string>> = {\n");
    for setting in Setting::ALL {
        out.push_str(&format!("  {}: '{}',\n", setting.name(), camel_case(option_of(*setting))));
    }
    out.push_str("};\n");
    out
}
