//! The store: projects, sessions, and which file of several is the session.
//!
//! Gemini CLI leaves up to three files with one session's id: the session, a stub with nothing but context for every
//! minute in which it was resumed (0.39 on), and the JSON file of an older release beside the JSONL that continues it. It
//! takes the one that was updated last among those that have a conversation. So does this, and it never takes an empty file
//! for the session when another has words in it.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use alhena_model::Hint;
use serde::Serialize;

use crate::cache::{self, Surveys};
use crate::file::{self, Format, SessionFile};
use crate::project::{self, Project, is_gone, project_hash};
use crate::survey::{self, Ending, Survey};
use crate::threads;

/// The sessions of one Gemini home.
#[derive(Clone, Debug)]
pub struct Store {
    gemini: PathBuf,
    cache: Option<PathBuf>,
}

/// Which sessions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Those of one folder.
    Folder(PathBuf),
    /// All of them.
    All,
}

/// One session.
#[derive(Clone, Debug, PartialEq)]
pub struct Session {
    /// Its id; what the file's name says of it when the file does not say it.
    pub id: String,
    /// The file that holds it.
    pub file: SessionFile,
    /// What that file is about.
    pub survey: Survey,
    /// Further files with its id.
    pub others: Vec<(SessionFile, Survey)>,
    /// Its sub-agents, oldest first.
    pub children: Vec<Session>,
}

/// How a session is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionState {
    /// The model answered last.
    Answered,
    /// A prompt or a tool's result has no answer.
    Open,
    /// Nothing was said.
    Empty,
    /// The CLI dropped messages that still stand in the file; `repair` brings them back.
    Lost,
    /// A stub beside it will make the CLI delete it; `repair` removes the stub.
    Endangered,
    /// The file has no header: the CLI cannot load it; `repair` gives it one.
    Headless,
}

impl Session {
    /// How it is; trouble first.
    pub fn state(&self) -> SessionState {
        if !self.survey.header {
            SessionState::Headless
        } else if self.survey.lost > 0 {
            SessionState::Lost
        } else if self.stubs().next().is_some() && self.survey.ending != Ending::Empty {
            SessionState::Endangered
        } else {
            match self.survey.ending {
                Ending::Answered => SessionState::Answered,
                Ending::Open => SessionState::Open,
                Ending::Empty => SessionState::Empty,
            }
        }
    }

    /// Further files in which nothing was said.
    pub fn stubs(&self) -> impl Iterator<Item = &SessionFile> {
        let beside = |file: &SessionFile| file.path.parent() == self.file.path.parent();
        self.others
            .iter()
            .filter(move |(file, survey)| beside(file) && survey.ending == Ending::Empty && survey.lost == 0)
            .map(|(file, _)| file)
    }

    /// When it last changed, in ms since 1970: by its own account, or else the file's.
    pub fn updated(&self) -> i64 {
        self.survey.updated.unwrap_or_else(|| self.file.stamp.modified_ms())
    }
}

/// Why there is no such session.
#[derive(Debug)]
#[non_exhaustive]
pub enum FindError {
    /// The folder has none at all.
    NoneIn(Scope),
    /// None with this id.
    Unknown(String),
    /// Several ids begin like this.
    Ambiguous(String, Vec<String>),
    /// The store could not be read.
    Io(io::Error),
}

/// So many ids of those that begin alike are named.
const MOST_IDS: usize = 5;

impl fmt::Display for FindError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // B-42
            Self::NoneIn(Scope::Folder(path)) => {
                write!(f, "No Gemini session found for project: {}", path.display())
            }
            Self::NoneIn(Scope::All) => f.write_str("No Gemini session found"),
            Self::Unknown(id) => write!(f, "No Gemini session has the id {id}"),
            Self::Ambiguous(id, ids) => {
                let some = ids.get(..MOST_IDS.min(ids.len())).unwrap_or_default().join(", ");
                let more = if ids.len() > MOST_IDS { ", …" } else { "" };
                write!(f, "{} sessions begin with \"{id}\": {some}{more}", ids.len())
            }
            Self::Io(error) => write!(f, "the session store could not be read: {error}"),
        }
    }
}

impl std::error::Error for FindError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io(error) => Some(error),
            _ => None,
        }
    }
}

impl Hint for FindError {
    fn hint(&self) -> Option<Cow<'_, str>> {
        let hint = match self {
            Self::NoneIn(Scope::Folder(_)) => "Look in all folders.",
            Self::NoneIn(Scope::All) => "Gemini CLI has not kept any session in this home yet.",
            Self::Unknown(_) => "The list of sessions has the ids.",
            Self::Ambiguous(..) => "Give more of the id.",
            Self::Io(_) => return None,
        };
        Some(hint.into())
    }
}

impl From<io::Error> for FindError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl Store {
    /// The store in this `.gemini` directory.
    pub fn at(gemini: impl Into<PathBuf>) -> Self {
        Self { gemini: gemini.into(), cache: None }
    }

    /// The store of a home directory. The CLI puts `.gemini` into `GEMINI_CLI_HOME`, if that is set (0.25 on).
    pub fn of_home(home: &Path) -> Self {
        Self::at(home.join(".gemini"))
    }

    /// Keeps what it finds out in this directory.
    pub fn with_cache(mut self, directory: impl Into<PathBuf>) -> Self {
        self.cache = Some(directory.into());
        self
    }

    /// The `.gemini` directory.
    pub fn gemini(&self) -> &Path {
        &self.gemini
    }

    /// The cache directory for this store alone.
    pub(crate) fn own_cache(&self) -> Option<PathBuf> {
        let gemini = std::fs::canonicalize(&self.gemini).unwrap_or_else(|_| self.gemini.clone());
        let name: String = project_hash(&gemini).chars().take(16).collect();
        self.cache.as_ref().map(|cache| cache.join("sessions").join(name))
    }

    /// The directories that can hold sessions.
    pub fn projects(&self, scope: &Scope) -> io::Result<Vec<Project>> {
        match scope {
            Scope::Folder(folder) => project::of(&self.gemini, folder),
            Scope::All => project::all(&self.gemini),
        }
    }

    /// Every session file, unread.
    pub fn files(&self, scope: &Scope) -> io::Result<Vec<SessionFile>> {
        let projects: Vec<Arc<Project>> = self.projects(scope)?.into_iter().map(Arc::new).collect();
        let found = threads::map(&projects, || (), |(), project| file::in_project(project));
        let mut files = Vec::new();
        for found in found {
            files.extend(found?);
        }
        files.sort_unstable_by(|one, other| one.path.as_os_str().cmp(other.path.as_os_str()));
        Ok(files)
    }

    /// Every session, the newest first.
    pub fn list(&self, scope: &Scope) -> io::Result<Vec<Session>> {
        let (files, known) = self.files_and_surveys(scope)?;
        Ok(group(self.survey(files, scope, known)))
    }

    /// Every session file, and the sessions that they make up.
    pub(crate) fn files_and_sessions(&self, scope: &Scope) -> io::Result<(Vec<SessionFile>, Vec<Session>)> {
        let (files, known) = self.files_and_surveys(scope)?;
        let sessions = group(self.survey(files.clone(), scope, known));
        Ok((files, sessions))
    }

    fn surveys_path(&self) -> Option<PathBuf> {
        self.own_cache().map(|cache| cache.join("surveys"))
    }

    /// The files and what the cache says, which take about as long to read.
    fn files_and_surveys(&self, scope: &Scope) -> io::Result<(Vec<SessionFile>, Surveys)> {
        let path = self.surveys_path();
        thread::scope(|threads| {
            // What is kept is made on this thread: another one's memory grows in small steps.
            let files = threads.spawn(|| self.files(scope));
            let mut known = path.as_deref().map(Surveys::read).unwrap_or_default();
            if *scope == Scope::All {
                known = known.decode();
            }
            let files = files.join().unwrap_or_else(|_| Err(io::Error::other("a thread failed")))?;
            Ok((files, known))
        })
    }

    fn survey(
        &self,
        files: Vec<SessionFile>,
        scope: &Scope,
        mut known: Surveys,
    ) -> Vec<(SessionFile, Survey)> {
        let mut surveys = known.take(&files);
        let missing: Vec<(&SessionFile, &mut Option<Survey>)> =
            files.iter().zip(&mut surveys).filter(|(_, survey)| survey.is_none()).collect();
        let read = |(file, _): &(&SessionFile, &mut Option<Survey>)| survey::survey(file);
        let outdated = !missing.is_empty() || (*scope == Scope::All && known.len() != files.len());
        let fresh = threads::map(&missing, || (), |(), file| read(file));
        for ((_, survey), fresh) in missing.into_iter().zip(fresh) {
            *survey = match fresh {
                Ok(fresh) => Some(fresh),
                Err(error) if is_gone(&error) => None,
                // One unreadable file must not hide all others.
                Err(_) => Some(Survey::default()),
            };
        }
        if let Some(path) = self.surveys_path().filter(|_| outdated) {
            let elsewhere = if *scope == Scope::All { Vec::new() } else { known.beside(&files) };
            let elsewhere = elsewhere.iter().map(|(path, stamp, survey)| (&**path, *stamp, survey));
            let here = files.iter().zip(&surveys);
            let here = here.filter_map(|(file, survey)| Some((&*file.path, file.stamp, survey.as_ref()?)));
            // A cache that cannot be written costs time, nothing else.
            let _unwritable = cache::write(&path, here.chain(elsewhere));
        }
        let mut surveyed = Vec::with_capacity(files.len());
        surveyed.extend(files.into_iter().zip(surveys).filter_map(|(file, survey)| Some((file, survey?))));
        surveyed
    }

    /// The session that somebody means.
    pub fn find(&self, scope: &Scope, which: &Which) -> Result<Session, FindError> {
        let mut sessions = match which {
            Which::Id(id) => match self.with_id(scope, id)? {
                // Somebody may have given a file another name; what it says counts, as in a list.
                none if none.is_empty() => beginning_with(id, self.list(scope)?),
                found => found,
            },
            Which::Latest => self.list(scope)?,
        };
        match which {
            Which::Latest => {
                let said = sessions.iter().position(|session| session.survey.ending != Ending::Empty);
                match sessions.is_empty() {
                    true => Err(FindError::NoneIn(scope.clone())),
                    false => Ok(sessions.swap_remove(said.unwrap_or(0))),
                }
            }
            Which::Id(id) => {
                if let Some(exact) = sessions.iter().position(|session| session.id == *id) {
                    return Ok(sessions.swap_remove(exact));
                }
                match sessions.len() {
                    0 => Err(FindError::Unknown(id.clone())),
                    1 => Ok(sessions.swap_remove(0)),
                    _ => {
                        let ids = sessions.into_iter().map(|session| session.id).collect();
                        Err(FindError::Ambiguous(id.clone(), ids))
                    }
                }
            }
        }
    }

    /// Sessions and sub-agents whose id begins like this; only files whose name allows it are read.
    fn with_id(&self, scope: &Scope, id: &str) -> io::Result<Vec<Session>> {
        let files = self.files(scope)?;
        let candidates: Vec<SessionFile> = files.iter().filter(|file| file.may_be(id)).cloned().collect();
        let children = files
            .into_iter()
            .filter(|file| file.parent.as_deref().is_some_and(|parent| parent.starts_with(id)));
        let mut wanted = candidates;
        for child in children {
            if !wanted.contains(&child) {
                wanted.push(child);
            }
        }
        let surveyed = threads::map(&wanted, || (), |(), file| survey::survey(file));
        let surveyed =
            wanted.iter().cloned().zip(surveyed).filter_map(|(file, survey)| Some((file, survey.ok()?)));
        Ok(beginning_with(id, group(surveyed.collect())))
    }
}

/// Those whose id begins like this, sub-agents included.
fn beginning_with(id: &str, mut sessions: Vec<Session>) -> Vec<Session> {
    let children: Vec<Session> = sessions
        .iter()
        .flat_map(|session| session.children.iter())
        .filter(|child| child.id.starts_with(id))
        .cloned()
        .collect();
    sessions.retain(|session| session.id.starts_with(id));
    sessions.extend(children);
    sessions
}

/// The session that somebody means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Which {
    /// The one with this id, or the only one whose id begins like this.
    Id(String),
    /// The one that was used last and has something in it.
    Latest,
}

impl Which {
    /// `latest`, or an id.
    pub fn of(text: &str) -> Self {
        match text {
            "latest" => Self::Latest,
            id => Self::Id(id.to_owned()),
        }
    }
}

/// Project, session, and the parent of a sub-agent.
type Key<'a> = (usize, &'a str, Option<&'a str>);

/// Puts files of one session together, and sub-agents below their parents.
fn group(surveyed: Vec<(SessionFile, Survey)>) -> Vec<Session> {
    let (numbers, projects) = numbers(&surveyed);
    let mut sessions: Vec<Session> = Vec::with_capacity(surveyed.len());
    for ((file, survey), number) in surveyed.into_iter().zip(numbers) {
        match sessions.get_mut(number) {
            Some(session) => session.others.push((file, survey)),
            None => {
                let id = survey.id.clone().unwrap_or_else(|| file.id_start.clone());
                sessions.push(Session { id, file, survey, others: Vec::new(), children: Vec::new() });
            }
        }
    }
    for session in sessions.iter_mut().filter(|session| !session.others.is_empty()) {
        choose(session);
    }
    let mut grouped = if sessions.iter().any(|session| session.file.parent.is_some()) {
        below_their_parents(sessions, projects)
    } else {
        sessions
    };
    // A session is large: each is moved once.
    grouped.sort_by_cached_key(|session| Reverse((session.updated(), session.id.clone())));
    grouped
}

/// The number of the session that each file belongs to, in the order in which they come, and the project of each session.
fn numbers(surveyed: &[(SessionFile, Survey)]) -> (Vec<usize>, Vec<usize>) {
    let mut roots: HashMap<&OsStr, usize> = HashMap::new();
    let mut known: HashMap<Key<'_>, usize> = HashMap::with_capacity(surveyed.len());
    let mut projects = Vec::with_capacity(surveyed.len());
    let mut last: Option<(&Arc<Project>, usize)> = None;
    let mut numbers = Vec::with_capacity(surveyed.len());
    for (file, survey) in surveyed {
        // The same id in another project is another session, but not in the two directories of one project.
        let project = match last {
            Some((project, number)) if Arc::ptr_eq(project, &file.project) => number,
            _ => {
                let root = file.project.root.as_ref().unwrap_or(&file.project.chats).as_os_str();
                let next = roots.len();
                *roots.entry(root).or_insert(next)
            }
        };
        last = Some((&file.project, project));
        let id = survey.id.as_deref().unwrap_or(&file.id_start);
        let next = known.len();
        let number = *known.entry((project, id, file.parent.as_deref())).or_insert(next);
        if number == next {
            projects.push(project);
        }
        numbers.push(number);
    }
    (numbers, projects)
}

/// Puts sub-agents below their parents. Those whose parent the CLI has deleted stand beside the others.
fn below_their_parents(sessions: Vec<Session>, projects: Vec<usize>) -> Vec<Session> {
    let mut parents = Vec::with_capacity(sessions.len());
    let mut children: HashMap<(usize, String), Vec<Session>> = HashMap::new();
    for (session, project) in sessions.into_iter().zip(projects) {
        match session.file.parent.clone() {
            Some(parent) => children.entry((project, parent)).or_default().push(session),
            None => parents.push((project, session)),
        }
    }
    for (project, session) in &mut parents {
        session.children = children.remove(&(*project, session.id.clone())).unwrap_or_default();
        session
            .children
            .sort_by(|one, other| (one.survey.started, &one.id).cmp(&(other.survey.started, &other.id)));
    }
    parents.into_iter().map(|(_, session)| session).chain(children.into_values().flatten()).collect()
}

/// Makes that file the session, among all with its id, which is.
fn choose(session: &mut Session) {
    let rank = |file: &SessionFile, survey: &Survey| {
        let said = survey.ending != Ending::Empty;
        let updated = survey.updated.unwrap_or_else(|| file.stamp.modified_ms());
        (said, survey.header, said || survey.lost > 0, updated, file.format == Format::Jsonl, survey.messages)
    };
    let first = (session.file.clone(), std::mem::take(&mut session.survey));
    session.others.push(first);
    session.others.sort_by(|(one, one_survey), (other, other_survey)| {
        rank(one, one_survey).cmp(&rank(other, other_survey)).then_with(|| one.path.cmp(&other.path))
    });
    if let Some((file, survey)) = session.others.pop() {
        (session.file, session.survey) = (file, survey);
    }
}
