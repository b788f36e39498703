//! `alhena sessions export`.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use alhena_session::read::{Files, What};
use alhena_session::{Session, export};
use alhena_sys::files;
use clap::ValueEnum;

use super::{Where, find, store};
use crate::command_error::{CommandError, Done};
use crate::output::print;

/// Write sessions to files that open anywhere: one HTML page or one Markdown file each.
///
/// A page needs nothing but a browser, runs no script and loads nothing.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  alhena sessions export
  alhena sessions export 9c9a14e1 -o talk.html
  alhena sessions export --all --every --as markdown -o talks/")]
pub struct Args {
    /// Ids, their beginnings, `latest`, or session files.
    #[arg(value_name = "ID|FILE")]
    which: Vec<String>,
    #[command(flatten)]
    place: Where,
    /// Every session of this folder, or of all.
    #[arg(long, conflicts_with = "which")]
    every: bool,
    /// The form.
    #[arg(long = "as", value_enum, value_name = "FORM", default_value = "html")]
    form: Form,
    /// The file to write, or a directory for one file each.
    #[arg(long, short = 'o', value_name = "FILE|DIR")]
    output: Option<PathBuf>,
    /// Also what Gemini CLI dropped from the conversation and left in the file.
    #[arg(long)]
    dropped: bool,
    /// Write over files that are there.
    #[arg(long)]
    force: bool,
}

/// What is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Form {
    /// One self-contained page.
    Html,
    /// Markdown with folded parts, as code hosts show it.
    Markdown,
}

impl Form {
    fn extension(self) -> &'static str {
        match self {
            Form::Html => "html",
            Form::Markdown => "md",
        }
    }
}

pub fn execute(args: &Args) -> Done {
    let sessions = chosen(args)?;
    let many = sessions.len() > 1 || args.every;
    for session in &sessions {
        let path = target(args, session, many);
        write(args, session, &path).map_err(|error| {
            let hint = match error.kind() {
                io::ErrorKind::AlreadyExists => "--force writes over it, -o chooses another file.",
                _ => "",
            };
            CommandError::failed(format!("{}: {error}", path.display()), hint)
        })?;
        let printed = print(&path.display().to_string());
        if printed != ExitCode::SUCCESS {
            return Ok(printed);
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn chosen(args: &Args) -> Result<Vec<Session>, CommandError> {
    let store = store()?;
    if args.every {
        return store.list(&args.place.scope(&store)?).map_err(CommandError::of_store);
    }
    let latest = ["latest".to_owned()];
    let which = if args.which.is_empty() { &latest[..] } else { &args.which[..] };
    which.iter().map(|which| find(&store, &args.place, which)).collect()
}

fn target(args: &Args, session: &Session, many: bool) -> PathBuf {
    let safe: String =
        session.id.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }).collect();
    let name = format!("session-{safe}.{}", args.form.extension());
    match &args.output {
        Some(path) if many || path.is_dir() => path.join(name),
        Some(path) => path.clone(),
        None => PathBuf::from(name),
    }
}

fn write(args: &Args, session: &Session, path: &Path) -> io::Result<()> {
    let files = Files::read(session)?;
    let what = if args.dropped { What::History } else { What::Said };
    let text = files.with_page(session, what, |page| match args.form {
        Form::Html => export::html(page),
        Form::Markdown => export::markdown(page),
    });
    put(path, text.as_bytes(), args.force)
}

/// Writes the whole file or none of it.
fn put(path: &Path, bytes: &[u8], force: bool) -> io::Result<()> {
    // A link stays a link, and what it leads to is written over.
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let there = fs::symlink_metadata(&path).ok();
    if there.is_some() && !force {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    if there.as_ref().is_some_and(|there| !there.is_file()) {
        // A pipe or a device: there is nothing to be kept whole.
        return fs::OpenOptions::new().write(true).open(&path)?.write_all(bytes);
    }
    let dir = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    fs::create_dir_all(dir)?;
    match force {
        true => files::replace(&path, bytes, 0o666),
        false => files::create(&path, bytes, 0o666),
    }
}
