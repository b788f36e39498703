//! `alhena sessions`: the session store of Gemini CLI, read without changing it.

pub mod convert;
mod export;
mod follow;
mod list;
mod pager;
mod pretty;
mod repair;
mod search;
mod show;
mod usage;

use std::path::{Path, PathBuf};

use alhena_agent::dirs::Dirs;
use alhena_agent::env::Environment;
use alhena_session::{FindError, Scope, Session, SessionFile, Store, Survey, Which};

use super::check_directory;
use crate::command_error::{CommandError, Done};

/// List, read, export, follow, search, add up and repair the sessions that Gemini CLI keeps.
#[derive(Debug, clap::Args)]
#[command(arg_required_else_help = true)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    List(list::Args),
    Show(show::Args),
    Export(export::Args),
    Follow(follow::Args),
    Search(search::Args),
    Usage(Box<usage::Args>),
    Repair(repair::Args),
}

pub fn execute(args: Args) -> Done {
    match args.command {
        Command::List(args) => list::execute(&args),
        Command::Show(args) => show::execute(&args),
        Command::Export(args) => export::execute(&args),
        Command::Follow(args) => follow::execute(&args),
        Command::Search(args) => search::execute(&args),
        Command::Usage(args) => usage::execute(&args),
        Command::Repair(args) => repair::execute(&args),
    }
}

/// Which sessions a command is about.
#[derive(Debug, clap::Args)]
struct Where {
    /// The folder whose sessions are meant.
    #[arg(long, short = 'C', value_name = "DIR", default_value = ".")]
    dir: PathBuf,
    /// Those of all folders.
    #[arg(long, short = 'a')]
    all: bool,
}

impl Where {
    fn scope(&self, store: &Store) -> Result<Scope, CommandError> {
        if self.all { Ok(Scope::All) } else { folder(store, &self.dir) }
    }
}

/// The sessions of a folder, which is said in full wherever it is named. One that is gone can still have sessions; without
/// any it is refused.
fn folder(store: &Store, dir: &Path) -> Result<Scope, CommandError> {
    let real = std::fs::canonicalize(dir).or_else(|_| std::path::absolute(dir));
    let scope = Scope::Folder(real.unwrap_or_else(|_| dir.to_owned()));
    let unknown = || store.files(&scope).is_ok_and(|files| files.is_empty());
    match check_directory(dir) {
        Err(refused) if unknown() => Err(refused),
        _ => Ok(scope),
    }
}

/// The user's store; an error when there is no home to look in.
fn store() -> Result<Store, CommandError> {
    store_of(&Environment::of_process())
}

/// The same in an environment of the caller's making.
pub(super) fn store_of(environment: &Environment) -> Result<Store, CommandError> {
    let no_home = || CommandError::usage("there is no home directory", "Set HOME or GEMINI_CLI_HOME.");
    let home = environment.gemini_home().ok_or_else(no_home)?;
    let store = Store::at(home.join(".gemini"));
    Ok(match Dirs::of(environment) {
        Some(dirs) => store.with_cache(dirs.cache),
        None => store,
    })
}

/// The session that somebody means: a file, an id or its beginning, or `latest`.
fn find(store: &Store, place: &Where, which: &str) -> Result<Session, CommandError> {
    let path = Path::new(which);
    if which.contains(['/', '.']) {
        return from_file(path);
    }
    let which = Which::of(which);
    let found = match (&which, store.find(&place.scope(store)?, &which)) {
        // An id is an id, wherever the session was.
        (Which::Id(_), Err(FindError::Unknown(_))) if !place.all => store.find(&Scope::All, &which),
        (_, found) => found,
    };
    Ok(found?)
}

fn from_file(path: &Path) -> Result<Session, CommandError> {
    let file = SessionFile::at(path);
    let surveyed = file.and_then(|file| alhena_session::survey::survey(&file).map(|survey| (file, survey)));
    let (problem, hint) = match surveyed {
        Ok((file, survey)) if survey.id.is_some() || !survey.is_blank() => return Ok(of_parts(file, survey)),
        Ok(_) => ("this is no session of Gemini CLI".to_owned(), "Give a file that Gemini CLI wrote."),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            ("there is no such file".to_owned(), "`alhena sessions list --all` shows the ids.")
        }
        Err(error) => (error.to_string(), ""),
    };
    Err(CommandError::usage(format!("{}: {problem}", path.display()), hint))
}

fn of_parts(file: SessionFile, survey: Survey) -> Session {
    let id = survey.id.clone().unwrap_or_else(|| file.id_start.clone());
    Session { id, file, survey, others: Vec::new(), children: Vec::new() }
}
