//! `alhena doctor`: is everything there, and what to do where it is not.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use alhena_agent::dirs::Dirs;
use alhena_agent::env::Environment;
use alhena_agent::facts::{LockState, NotUsed, TrustState, authentication, locks, trust};
use alhena_agent::install::Installer;
use alhena_agent::programs::on_path;
use alhena_agent::run_dir::{self, Holder};
use alhena_agent::supervise::{custody, machine, mark};
use alhena_agent::{Finder, NotFound, Tried, Why, home, settings};
use alhena_agent::{Gemini, RunError, Trust};
use alhena_model::Hint;
use alhena_sys::processes;
use alhena_wire::release::{Feature, NEWEST_KNOWN, OLDEST_SUPPORTED};
use serde::Serialize;

use super::check_directory;
use crate::command_error::Done;
use crate::config::Config;
use crate::output::{Stream, print, print_json};
use crate::style::{Colours, Paint, with_flags};

/// Check everything that a run needs, and say how to mend what is missing.
///
/// Exits with 1 when something would keep a run from working.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The directory to check for.
    #[arg(long, short = 'C', value_name = "DIR", default_value = ".")]
    dir: PathBuf,
    /// The Gemini CLI to check: a path, a command on PATH, or the version of one of Alhena's own installs.
    #[arg(long, value_name = "PATH|VERSION")]
    gemini: Option<PathBuf>,
    /// Also mend what Alhena itself left: sessions of crashed runs are saved, their processes ended.
    #[arg(long)]
    fix: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// The tmux that is used, where it is named.
    #[arg(skip)]
    tmux: Option<PathBuf>,
}

/// One thing that was looked at.
#[derive(Debug, Serialize)]
struct Finding {
    what: &'static str,
    state: Health,
    detail: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    cure: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Health {
    Good,
    /// Works, but worth knowing.
    Doubtful,
    /// A run would fail.
    Bad,
}

impl Finding {
    fn good(what: &'static str, detail: impl fmt::Display) -> Self {
        Self { what, state: Health::Good, detail: detail.to_string(), cure: None }
    }

    fn doubtful(what: &'static str, detail: impl fmt::Display, cure: impl Into<String>) -> Self {
        Self { what, state: Health::Doubtful, detail: detail.to_string(), cure: Some(cure.into()) }
    }

    fn bad(what: &'static str, detail: impl fmt::Display, cure: impl Into<String>) -> Self {
        Self { what, state: Health::Bad, detail: detail.to_string(), cure: Some(cure.into()) }
    }
}

pub fn execute(args: Args) -> Done {
    check_directory(&args.dir)?;
    let args = Args { dir: args.dir.canonicalize().unwrap_or(args.dir), ..args };
    let findings = examine(&args);
    let bad = findings.iter().any(|finding| finding.state == Health::Bad);
    let printed = match args.json {
        true => print_json(&findings),
        false => print(&listed(&findings)),
    };
    Ok(if bad { ExitCode::FAILURE } else { printed })
}

/// The same for whoever asks over a wire.
pub fn told(dir: PathBuf, tmux: Option<PathBuf>) -> serde_json::Value {
    serde_json::json!(examine(&Args { dir, gemini: None, fix: false, json: true, tmux }))
}

/// Looks at everything.
fn examine(args: &Args) -> Vec<Finding> {
    let environment = Environment::of_process();
    let mut findings = Vec::new();
    // A file that is wrong is told below.
    let config = Config::load(&args.dir, None, &environment);
    let trusting = config.as_ref().ok().and_then(|config| config.options.trust).unwrap_or_default();
    let named = args.gemini.clone().or_else(|| config.as_ref().ok()?.gemini());
    let found = find_cli(args, named, trusting, &mut findings);
    findings.push(node(&found, &environment));
    let gemini = found.ok();
    if let Some(home) = environment.gemini_home() {
        findings.extend(of_home(&home, &args.dir, trusting, gemini.as_ref(), &environment));
    } else {
        findings.push(Finding::bad("home", "there is no home directory", "Set HOME."));
    }
    findings.extend(defaults(config));
    findings.push(keeper());
    findings.push(kernel());
    findings.push(tmux(args.tmux.as_deref()));
    findings.extend(leftovers(&environment, args.fix));
    findings
}

fn listed(findings: &[Finding]) -> String {
    let colours = Colours::of(Stream::Out);
    let mut text = String::new();
    for finding in findings {
        let mark = match finding.state {
            Health::Good => colours.paint(Paint::Green, "ok  "),
            Health::Doubtful => colours.paint(Paint::Yellow, "note"),
            Health::Bad => colours.paint(Paint::Red, "BAD "),
        };
        // What goes on over several lines stays in its column.
        let detail = with_flags(&finding.detail).replace('\n', &format!("\n{:21}", ""));
        text.push_str(&format!("{mark} {:<15} {detail}\n", finding.what));
        if let Some(cure) = &finding.cure {
            text.push_str(&format!(
                "     {:<15} {}\n",
                "",
                colours.paint(Paint::Cyan, format!("→ {}", with_flags(cure)))
            ));
        }
    }
    text.trim_end().to_owned()
}

/// The CLI; without one, what was not taken because of its Node.
fn find_cli(
    args: &Args,
    named: Option<PathBuf>,
    trust: Trust,
    findings: &mut Vec<Finding>,
) -> Result<Gemini, Option<Tried>> {
    let mut finder = Finder::new().dir(&args.dir).trust(trust);
    if let Some(path) = named {
        finder = finder.path(path);
    }
    let (found, tried) = finder.find_first();
    let passed_over: Vec<String> =
        tried.iter().filter(|tried| tried.is_worth_telling()).map(Tried::to_string).collect();
    let old_node = tried.iter().find(|tried| matches!(tried.why, Why::NodeTooOld { .. })).cloned();
    let Some(gemini) = found else {
        let error = NotFound { tried };
        findings.push(Finding::bad("Gemini CLI", &error, error.hint().unwrap_or_default()));
        return Err(old_node);
    };
    findings.push(Finding::good("Gemini CLI", gemini.path.display()));
    if !passed_over.is_empty() {
        findings.push(Finding::doubtful(
            "passed over",
            passed_over.join("\n"),
            "`alhena help detect` says what is used and what is not.",
        ));
    }
    let version = &gemini.version;
    findings.push(match version {
        version if *version < OLDEST_SUPPORTED => Finding::bad(
            "version",
            format_args!("{version} has no stream-json output"),
            "`alhena install` fetches a newer one.",
        ),
        version if *version > NEWEST_KNOWN => Finding::doubtful(
            "version",
            format_args!("{version} is newer than {NEWEST_KNOWN}, the newest that Alhena knows"),
            "It will probably work; `alhena install` fetches the one that Alhena is tested with.",
        ),
        version if !version.has(Feature::CliHome) => Finding::doubtful(
            "version",
            format_args!("{version} cannot have a home per run (0.25)"),
            "A newer one keeps sessions from being deleted; `alhena install` fetches it.",
        ),
        version => Finding::good("version", version),
    });
    Ok(gemini)
}

fn node(found: &Result<Gemini, Option<Tried>>, environment: &Environment) -> Finding {
    let cure = "Install Node 20 or newer, with npm, and put it first on PATH.";
    if let Err(Some(Tried { why: Why::NodeTooOld { node, found, needed }, .. })) = found {
        let detail = format!("{} is {found}, and Gemini CLI needs {needed} or newer", node.display());
        return Finding::bad("Node", detail, cure);
    }
    let gemini = found.as_ref().ok();
    if let Some(node) = gemini.and_then(|gemini| gemini.node.as_ref()) {
        let version = gemini.and_then(|gemini| gemini.node_version);
        let version = version.map(|version| format!(" {version}")).unwrap_or_default();
        return Finding::good("Node", format_args!("{}{version}", node.display()));
    }
    match on_path(environment, "node") {
        Some(path) => Finding::good("Node", path.display()),
        None if gemini.is_some() => Finding::good("Node", "not needed by this Gemini CLI"),
        None => Finding::bad("Node", "not on PATH", cure),
    }
}

fn of_home(
    home: &Path,
    dir: &Path,
    trusting: Trust,
    gemini: Option<&Gemini>,
    environment: &Environment,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    let file = home.join(".gemini/settings.json");
    findings.push(match settings::read_settings(&file) {
        Ok(_) if file.exists() => Finding::good("settings", file.display()),
        Ok(_) => Finding::good("settings", format_args!("none in {}", home.join(".gemini").display())),
        Err(error) => Finding::bad("settings", error, "Mend the file: Gemini CLI exits with 52 on it."),
    });
    let auth = authentication(home, dir, environment);
    let method = auth.method.as_ref().map(|method| method.to_string());
    findings.push(match (&auth.refusal, method) {
        (Some(refusal), _) => Finding::bad("authentication", refusal, refusal.hint()),
        (None, Some(method)) if auth.perhaps_in_keychain => Finding::good(
            "authentication",
            format_args!("{method}; the login may be in the system's keychain"),
        ),
        (None, Some(method)) => Finding::good("authentication", method),
        (None, None) => Finding::bad(
            "authentication",
            "none is chosen",
            "Set GEMINI_API_KEY, or start Gemini CLI and sign in.",
        ),
    });
    let enforced = gemini.is_none_or(|gemini| gemini.version.has(Feature::TrustEnforcedHeadless));
    findings.push(match trust(home, dir, environment) {
        TrustState::Trusted { .. } => Finding::good("trust", format_args!("{} is trusted", dir.display())),
        _ if trusting != Trust::AsIs => Finding::good(
            "trust",
            format_args!("{} is not trusted, and your config says to run there", dir.display()),
        ),
        _ if !enforced => Finding::good("trust", "this release does not ask for it in headless runs"),
        _ => Finding::doubtful(
            "trust",
            format_args!("{} is not trusted: headless runs end with exit 55", dir.display()),
            "Run with --trust, or --trust=settings to load the folder's own settings too.",
        ),
    });
    for lock in locks(home) {
        let (path, age) = (lock.path.display(), lock.age.as_secs());
        // A stale one costs nothing: the CLI takes it over.
        if lock.state == LockState::Held {
            findings.push(Finding::doubtful(
                "lock",
                format_args!("{path} is {age} s old: a Gemini CLI is starting, or one was killed while it started"),
                "The next start waits up to 13 s for it; wait, or remove that directory if nothing is starting.",
            ));
        }
    }
    findings
}

/// The defaults that a run here would have, and where they come from.
fn defaults(config: Result<Config, RunError>) -> Vec<Finding> {
    let config = match config {
        Ok(config) => config,
        Err(error) => return vec![Finding::bad("config", &error, error.hint().unwrap_or_default())],
    };
    let set = config.set.iter().map(|set| format!("{} = {} ({})", set.key, set.value, set.file.display()));
    let set: Vec<String> = set.collect();
    let mut findings = vec![Finding::good(
        "config",
        match set.is_empty() {
            true => "no defaults of your own".to_owned(),
            false => set.join("\n"),
        },
    )];
    if let Some((file, why)) = &config.passed_over {
        let cure = match why {
            NotUsed::Untrusted => "`alhena run --trust=settings` takes it, and the folder's other settings.",
            NotUsed::Exposed(_) => "Take the others' permission to write away.",
        };
        findings.push(Finding::doubtful("config", format_args!("{} {why}", file.display()), cure));
    }
    findings
}

fn keeper() -> Finding {
    match (custody::keeper_program(&Environment::of_process()), processes::COMPLETE) {
        (Some(path), true) => Finding::good("keeper", path.display()),
        (Some(path), false) => Finding::doubtful(
            "keeper",
            path.display(),
            "On this system processes that leave their group cannot be found.",
        ),
        (None, _) => Finding::doubtful("keeper", "none", "Put `alhena` on PATH, or set ALHENA_KEEPER."),
    }
}

/// What the system does not allow is said here and not found out by a run.
fn kernel() -> Finding {
    let lacks = machine::lacks();
    let (what, cost): (Vec<_>, Vec<_>) = lacks.iter().map(|lack| (lack.what, lack.cost)).unzip();
    match lacks.is_empty() {
        true => Finding::good("kernel", "allows all that it takes to leave nothing behind"),
        false => Finding::doubtful(
            "kernel",
            format_args!("does not allow: {}", what.join(", ")),
            format!("Here {}.", cost.join("; ")),
        ),
    }
}

fn tmux(named: Option<&Path>) -> Finding {
    const CURE: &str = "Only interactive agents need it; install tmux 3.2 or newer.";
    let environment = Environment::of_process();
    let found = match named {
        Some(path) if path.components().nth(1).is_some() => path.is_file().then(|| path.to_owned()),
        named => on_path(&environment, &named.unwrap_or(Path::new("tmux")).to_string_lossy()),
    };
    match (found, named) {
        (Some(path), _) => Finding::good("tmux", path.display()),
        (None, None) => Finding::doubtful("tmux", "not on PATH", CURE),
        (None, Some(named)) => Finding::doubtful("tmux", format_args!("not at {}", named.display()), CURE),
    }
}

/// What earlier runs left: processes without a keeper, homes without a run.
fn leftovers(environment: &Environment, fix: bool) -> Vec<Finding> {
    let mut findings = Vec::new();
    let runs = Dirs::of(environment).map(|dirs| dirs.runs()).unwrap_or_default();
    let (mut orphaned, mut unknown) = (Vec::new(), Vec::new());
    for (mark, pids) in mark::marks() {
        match run_dir::holder(&runs, &mark) {
            Holder::Somebody => {}
            Holder::Nobody => orphaned.extend(pids),
            Holder::Unknown => unknown.extend(pids),
        }
    }
    if !orphaned.is_empty() && fix {
        processes::signal_all(&orphaned, processes::Signal::KILL);
    }
    findings.push(match (orphaned.len(), fix) {
        (0, _) => Finding::good("leftovers", "no process of an earlier run"),
        (count, true) => Finding::good("leftovers", format_args!("{count} processes of earlier runs ended")),
        (count, false) => Finding::doubtful(
            "leftovers",
            format_args!("{count} processes of runs that nobody holds: {orphaned:?}"),
            "`alhena doctor --fix` ends them.",
        ),
    });
    if !unknown.is_empty() {
        findings.push(Finding::doubtful(
            "other runs",
            format_args!("{} processes of runs that are not of this home: {unknown:?}", unknown.len()),
            "Nobody can tell from here whether they are wanted; end them yourself if they are not.",
        ));
    }
    if let (true, Some(dirs)) = (fix, Dirs::of(environment)) {
        let homes = dirs.state.join("homes");
        if let Ok(swept) = home::sweep_stale(&homes) {
            let count = swept.recovered.len();
            findings.push(Finding::good("crashed runs", format_args!("{count} found and put away")));
        }
    }
    let installed = Installer::new().installed().len();
    findings.push(Finding::good("own installs", format_args!("{installed} of Gemini CLI")));
    findings
}
