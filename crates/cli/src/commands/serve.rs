//! `alhena serve`.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use alhena_agent::Approval;
use alhena_agent::dirs::Dirs;
use alhena_agent::env::Environment;
use alhena_model::{FailureKind, Hint};
use alhena_serve::{Access, Knows, OnExit, Problem, ServeError, Server, Settings, Tls, Tokens};
use clap::ValueEnum;
use serde_json::Value;

use super::batch::meaning::OptionsOfRun;
use super::options::approval;
use super::{capabilities, doctor};
use crate::command_error::{CommandError, Done};
use crate::output::{print, say};
use crate::signals::Interrupts;
use alhena_model::options::time;

/// Serve runs, conversations, sessions and terminals over HTTP, with a page to watch them on.
///
/// The first line on stdout is the address to open, with a token in it. Nobody comes in without a token, and only programs on this
/// machine can reach the address, unless --listen says otherwise. `alhena help serve` explains more.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
#[command(after_help = "Examples:
  alhena serve
  alhena serve --root ~/projects --max-approval auto-edit
  alhena serve --port 0 --on-exit stop
  alhena serve --listen 192.168.1.5 --tls-cert cert.pem --tls-key key.pem
  alhena serve token --read")]
pub struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    /// The port; 0 is any that is free.
    #[arg(long, value_name = "PORT", default_value_t = 7428)]
    port: u16,
    /// Listen on this address instead of 127.0.0.1: whoever reaches it and has the token can run agents here.
    #[arg(long, value_name = "ADDR")]
    listen: Option<IpAddr>,
    /// A name by which the server is reached, beside its address; can be repeated.
    #[arg(long, value_name = "NAME")]
    host: Vec<String>,
    /// Speak TLS with this certificate, a PEM file.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The key of the certificate, a PEM file.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Let pages from this origin use the API, such as http://localhost:3000; can be repeated.
    #[arg(long, value_name = "ORIGIN")]
    allow_origin: Vec<String>,
    /// Folders and files that requests name have to be below this one.
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
    /// Refuse approval modes above this one: plan, default, auto-edit, yolo.
    #[arg(long, value_name = "MODE", value_parser = approval(), default_value = "yolo")]
    max_approval: Approval,
    /// Let requests set this variable for their runs; can be repeated.
    #[arg(long, value_name = "NAME")]
    allow_env: Vec<String>,
    /// Let requests name programs: gemini, agent_command, hook, mcp_server, args, the settings of folders.
    #[arg(long)]
    allow_programs: bool,
    /// So many runs at once.
    #[arg(long, value_name = "N", default_value_t = 8)]
    max_runs: usize,
    /// So many open conversations.
    #[arg(long, value_name = "N", default_value_t = 8)]
    max_conversations: usize,
    /// So many bytes in a request.
    #[arg(long, value_name = "BYTES", default_value_t = 8 << 20)]
    max_request: usize,
    /// Keep so many runs, and as many conversations, that are over.
    #[arg(long, value_name = "N", default_value_t = 500)]
    keep: usize,
    /// Keep them for this long after their end.
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "720h")]
    keep_for: Duration,
    /// What becomes of runs at ^C or SIGTERM; a second one ends everything at once.
    #[arg(long, value_enum, default_value = "wait")]
    on_exit: Ending,
    /// Where tokens, runs and conversations are kept; in Alhena's state directory otherwise.
    #[arg(long, value_name = "DIR", global = true)]
    state: Option<PathBuf>,
    /// The tmux server with the terminals.
    #[arg(long, value_name = "NAME", default_value = alhena_terminal::SERVER)]
    tmux_server: String,
    /// The tmux to use.
    #[arg(long, value_name = "PATH")]
    tmux: Option<PathBuf>,
    /// Print the address with the token for watching on the second line.
    #[arg(long)]
    read_token: bool,
    /// Say nothing on stderr but errors.
    #[arg(long, short)]
    quiet: bool,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Print the token, for programs: Authorization: Bearer TOKEN.
    Token(TokenArgs),
}

#[derive(Debug, clap::Args)]
struct TokenArgs {
    /// The one for watching: it reads everything and changes nothing.
    #[arg(long)]
    read: bool,
    /// Make a new one; the old one counts no more, at once.
    #[arg(long)]
    new: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Ending {
    /// They are waited for; nothing new begins.
    Wait,
    /// They are stopped.
    Stop,
}

pub fn execute(mut args: Args) -> Done {
    let environment = Environment::of_process();
    let state = match args.state.take() {
        Some(state) => std::path::absolute(&state).unwrap_or(state),
        None => {
            let no_home =
                || CommandError::usage("there is no home directory", "Set HOME, or give --state DIR.");
            Dirs::of(&environment).ok_or_else(no_home)?.state.join("serve")
        }
    };
    match args.command {
        Some(Command::Token(asked)) => token(&asked, &state),
        None => serve(args, state, environment),
    }
}

fn token(asked: &TokenArgs, state: &std::path::Path) -> Done {
    let access = if asked.read { Access::Read } else { Access::Full };
    let token = Tokens::open(state).and_then(|tokens| match asked.new {
        true => tokens.renew(access),
        false => tokens.get(access),
    });
    let token = token.map_err(|error| CommandError::failed(format!("{}: {error}", state.display()), ""))?;
    Ok(print(&token))
}

fn serve(args: Args, state: PathBuf, environment: Environment) -> Done {
    check(&args)?;
    let interrupts = Arc::new(Interrupts::catch());
    let meaning = Arc::new(OptionsOfRun::new(interrupts.clone(), args.quiet));
    let (quiet, read_token) = (args.quiet, args.read_token);
    let warning = warning(&args);
    let settings = settings(args, state.clone());
    let binary = Binary { tmux: settings.tmux.clone() };
    let server = Server::open(settings, meaning, Arc::new(binary), environment).map_err(refused)?;
    let broken = |error: std::io::Error| CommandError::failed(error, "");
    let mut lines = server.address().map_err(broken)?;
    if read_token {
        let read = Tokens::open(&state).and_then(|tokens| tokens.get(Access::Read)).map_err(broken)?;
        let full = lines.rsplit_once('=').map(|(address, _)| format!("{address}={read}"));
        lines.push_str(&format!("\n{}", full.unwrap_or_default()));
    }
    let printed = print(&lines);
    if printed != ExitCode::SUCCESS {
        return Ok(printed);
    }
    if let Some(warning) = warning {
        say(format_args!("warning: {warning}"));
    }
    if !quiet {
        say(
            "Serving until ^C. Whoever has the address has the token in it; `alhena serve token --new` makes another.",
        );
    }
    let ender = server.ender();
    interrupts.tell(move |count| {
        if count == 1 && !quiet {
            say("Ending: nothing new begins. ^C again ends what still runs at once.");
        }
        ender.end();
    });
    server.run();
    Ok(ExitCode::SUCCESS)
}

/// Refuses what would be taken and never match anything.
fn check(args: &Args) -> Result<(), CommandError> {
    if let Some(wrong) = args.allow_origin.iter().find(|origin| !is_origin(origin)) {
        return Err(CommandError::usage(
            format!("--allow-origin {wrong}: not an origin"),
            "Give the scheme, the host and the port of each page, such as http://localhost:3000, and no path.",
        ));
    }
    let is_name = |name: &str| !name.is_empty() && !name.contains(['=', '\0']);
    if let Some(wrong) = args.allow_env.iter().find(|name| !is_name(name)) {
        return Err(CommandError::usage(
            format!("--allow-env {wrong}: not the name of a variable"),
            "Give the name alone; requests give the value.",
        ));
    }
    Ok(())
}

/// Whether a browser could say that it comes from there.
fn is_origin(text: &str) -> bool {
    let rest = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
    rest.map(|rest| rest.strip_suffix('/').unwrap_or(rest)).is_some_and(|host| {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:[]".contains(&byte);
        !host.is_empty() && host.bytes().all(plain)
    })
}

/// What it means that others can reach the address.
fn warning(args: &Args) -> Option<String> {
    let address = args.listen.filter(|address| !address.is_loopback())?;
    let tls = match args.tls_cert {
        Some(_) => "",
        None => ", and everything goes over the network unencrypted, the token too (--tls-cert)",
    };
    let root = match args.root {
        Some(_) => "below --root",
        None => "in every folder of yours (--root limits that)",
    };
    Some(format!(
        "{address} can be reached from other machines: whoever has the token can run agents as you, {root}, with {} (--max-approval){tls}",
        args.max_approval,
    ))
}

fn settings(args: Args, state: PathBuf) -> Settings {
    Settings {
        listen: SocketAddr::new(args.listen.unwrap_or(Ipv4Addr::LOCALHOST.into()), args.port),
        tls: args.tls_cert.zip(args.tls_key).map(|(cert, key)| Tls { cert, key }),
        state,
        hosts: args.host.iter().map(|host| host.to_ascii_lowercase()).collect(),
        allow_origins: args
            .allow_origin
            .iter()
            .map(|origin| origin.trim_end_matches('/').to_ascii_lowercase())
            .collect(),
        root: args.root,
        max_approval: args.max_approval,
        allow_env: args.allow_env,
        allow_programs: args.allow_programs,
        max_runs: args.max_runs,
        max_conversations: args.max_conversations,
        max_request: args.max_request,
        keep: args.keep,
        keep_for: args.keep_for,
        on_exit: match args.on_exit {
            Ending::Wait => OnExit::Wait,
            Ending::Stop => OnExit::Stop,
        },
        tmux_server: args.tmux_server,
        tmux: args.tmux,
    }
}

fn refused(error: ServeError) -> CommandError {
    let hint = match &error {
        ServeError::Listen(..) => "Give another --port; --port 0 takes any that is free.",
        ServeError::InUse(_) => "Use that one, or give --state another directory.",
        ServeError::State(..) => "Give --state a directory that can be written to.",
        ServeError::Root(..) => "Give --root a folder that is there.",
        ServeError::Tls(_) => "Give PEM files with a certificate and its key.",
        ServeError::Threads(_) => "",
    };
    match error {
        ServeError::Root(..) | ServeError::Tls(_) => CommandError::usage(error, hint),
        _ => CommandError::failed(error, hint),
    }
}

/// What only the binary knows.
struct Binary {
    /// The tmux that the server uses, where it is named.
    tmux: Option<PathBuf>,
}

impl Knows for Binary {
    fn capabilities(&self) -> Result<Value, Problem> {
        capabilities::told().map_err(|error| {
            let hint = error.hint().unwrap_or_default().into_owned();
            Problem::unavailable(FailureKind::NotInstalled, error.to_string()).hint(hint)
        })
    }

    fn doctor(&self) -> Result<Value, Problem> {
        let dir = std::env::current_dir().map_err(Problem::broken)?;
        Ok(doctor::told(dir, self.tmux.clone()))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::path::Path;

    use alhena_serve::policy::TABLE;

    use super::is_origin;
    use alhena_model::Setting;
    use alhena_model::options::properties;

    #[test]
    fn an_origin_is_a_scheme_a_host_and_a_port() {
        for origin in ["http://localhost:3000", "https://a.example", "http://[::1]:80", "http://a.example/"] {
            assert!(is_origin(origin), "{origin}");
        }
        for other in
            ["*", "localhost:3000", "http://", "http://a/b", "http://*.a", "http://u@a", "null", "ftp://a"]
        {
            assert!(!is_origin(other), "{other}");
        }
    }

    #[test]
    fn every_option_of_a_run_has_a_rule_and_every_rule_an_option() {
        let mut names: Vec<&str> = Setting::ALL.iter().map(|setting| setting.name()).collect();
        let mut ruled: Vec<&str> = TABLE.iter().map(|(name, _)| *name).collect();
        names.sort_unstable();
        ruled.sort_unstable();
        assert_eq!(names, ruled);
    }

    /// To write it anew: `UPDATE_SCHEMAS=1 cargo test -p alhena-cli committed`.
    #[test]
    fn the_committed_document_of_the_api_is_up_to_date() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schemas/openapi.json");
        let expected = format!("{:#}\n", alhena_serve::openapi::document(&properties()));
        if std::fs::read_to_string(&file).ok().as_deref() != Some(expected.as_str()) {
            assert!(
                std::env::var_os("UPDATE_SCHEMAS").is_some(),
                "stale; run this test with UPDATE_SCHEMAS=1"
            );
            std::fs::write(&file, expected).unwrap();
        }
    }
}
