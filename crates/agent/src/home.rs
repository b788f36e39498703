//! The home of a run: a private directory that stands for the user's home and overlays their `.gemini`.
//!
//! Much of what makes Gemini CLI dependable is a setting, and there is no flag for settings (0.61.0). So a run gets its own
//! home by `GEMINI_CLI_HOME`, with the user's settings and the run's changes on top, links to the user's logins, policies
//! and extensions, and a session store of its own. When the run has ended, [`finish`] moves its sessions to the user's
//! store. Nothing else of the user's is written to.
//!
//! ```no_run
//! # fn main() -> Result<(), alhena_agent::home::HomeError> {
//! use alhena_agent::home::{HomeRequest, Prepared, Stopped, finish, prepare};
//! let request = HomeRequest::new("/home/me", "/home/me/app", "/home/me/.local/state/alhena/homes");
//! match prepare(&request)? {
//!     Prepared::Overlay(home) => {
//!         // Start the CLI with `home.env()`, wait until its last process is gone, then:
//!         let finished = finish(&home.plan(), Stopped::Never);
//!     }
//!     Prepared::Direct { cost, .. } => println!("{}", cost.join("\n")),
//! }
//! # Ok(()) }
//! ```

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use alhena_session::project::project_hash;
use alhena_session::registry::{self, Registration};
use alhena_session::resume::{Stored, find, ids_beginning};
use alhena_sys::files;
use alhena_sys::platform::{PLATFORM, Platform};
use alhena_sys::random;
use serde_json::{Map, Value};

pub use self::finish::{Stopped, Swept, finish, sweep_stale};
pub use self::mcp::{McpServer, NotAServer, Transport};
use self::overlay::Overlay;
pub use self::plan::{FinishPlan, Finished, Layout};
pub(crate) use self::policy::{DISCOVERED, SHELL, name_and_inside};
pub use self::policy::{Mistaken, NotARule, Shell, ToolRule, policy_paths, policy_text};
pub use self::policy_file::{BadPolicy, CheckedPolicy, check_policy};
pub use self::request::{DirectReason, HomeError, HomeRequest, Release};
pub(crate) use self::settings::context_names;
use self::slot::Slot;
pub use alhena_session::resume::Resume;

mod finish;
mod imports;
mod mcp;
mod merge;
mod overlay;
mod plan;
mod policy;
mod policy_file;
mod request;
mod resume;
mod settings;
mod slot;

/// Says where the CLI finds the system's settings.
const SYSTEM_SETTINGS_PATH: &str = "GEMINI_CLI_SYSTEM_SETTINGS_PATH";

/// What [`prepare`] made of a request.
#[derive(Debug)]
pub enum Prepared {
    /// A home of its own.
    Overlay(Home),
    /// There cannot be one: the CLI has to use the user's home itself.
    Direct {
        /// Why.
        why: DirectReason,
        /// What the run does without, a sentence each.
        cost: Vec<String>,
    },
}

/// A home of a run. It is nobody else's while this, or a copy of its [`lock`](Home::lock), is open.
///
/// Dropping it does not clean up, because the CLI may still be running; [`finish`] does, or a later run.
#[derive(Debug)]
pub struct Home {
    slot: Slot,
    plan: Box<FinishPlan>,
    /// The user's own system prompt, if its path begins with `~`: that would mean the overlay.
    system_prompt: Option<String>,
    warnings: Vec<String>,
}

impl Home {
    /// The directory to give to the CLI.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.slot.path
    }

    /// The home that it stands for.
    #[must_use]
    pub fn user_home(&self) -> &Path {
        &self.plan.user_home
    }

    /// What the CLI needs in its environment to use it.
    #[must_use]
    pub fn env(&self) -> Vec<(String, String)> {
        let home = (crate::env::GEMINI_CLI_HOME.to_owned(), self.path().to_string_lossy().into_owned());
        let prompt = self.system_prompt.clone().map(|path| (crate::env::GEMINI_SYSTEM_MD.to_owned(), path));
        std::iter::once(home).chain(prompt).collect()
    }

    /// The project's directory name below `.gemini/tmp`.
    #[must_use]
    pub fn slug(&self) -> &str {
        &self.plan.slug
    }

    /// Where the CLI writes the session while it runs.
    #[must_use]
    pub fn chats_dir(&self) -> PathBuf {
        self.chats_dir_of(&self.plan.slug)
    }

    /// The same for another project in the same home.
    pub(crate) fn chats_dir_of(&self, slug: &str) -> PathBuf {
        self.path().join(".gemini/tmp").join(slug).join("chats")
    }

    /// The id of the session that is continued, to be given to `--resume`. None when there is none to continue.
    #[must_use]
    pub fn resumed_id(&self) -> Option<&str> {
        self.plan.resumed.as_ref().map(|resumed| resumed.id.as_str())
    }

    /// What to do when the run has ended; for [`finish`], here or in another process.
    #[must_use]
    pub fn plan(&self) -> FinishPlan {
        FinishPlan::clone(&self.plan)
    }

    /// The lock that says the home is in use. A process that outlives this one and calls [`finish`] must inherit it,
    /// or another run takes the home for that of a crashed one. The CLI must not.
    #[must_use]
    pub fn lock(&self) -> &File {
        self.slot.lock()
    }

    /// What people should know.
    #[must_use]
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }
}

/// Makes the home of a run.
pub fn prepare(request: &HomeRequest) -> Result<Prepared, HomeError> {
    let user_home = resolved(&request.user_home);
    let project_dir = resolved(&request.project_dir);
    let homes = std::path::absolute(&request.homes).unwrap_or_else(|_| request.homes.clone());
    let paths = [&user_home, &project_dir, &homes].map(|path| path.to_str());
    let why = match paths {
        _ if !request.release.has_home_variable => DirectReason::TooOld,
        _ if request.sandbox => DirectReason::Sandbox,
        _ if user_home == project_dir => DirectReason::HomeDirectory,
        [Some(_), Some(project), Some(_)] => return overlay(request, &user_home, project, &homes),
        _ => DirectReason::NotUnicode,
    };
    Ok(Prepared::Direct { why, cost: request.cost_of(why) })
}

fn overlay(
    request: &HomeRequest,
    user_home: &Path,
    project: &str,
    homes: &Path,
) -> Result<Prepared, HomeError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| HomeError::Io { path, source }
    };
    let users = user_home.join(".gemini");
    let mut warnings = Vec::new();
    let settings = run_settings(request, user_home, &mut warnings)?;

    let layout = request.release.layout();
    let registration = match layout {
        Layout::Slug => registry::register(&users, project),
        Layout::Hash => {
            Registration { slug: project_hash(Path::new(project)), registered: true, warnings: Vec::new() }
        }
    };
    let publish = is_writable(&users);
    if !publish {
        warnings.push(format!(
            "{} cannot be written to, so the session of this run is not kept",
            users.display()
        ));
    }
    warnings.extend(registration.warnings.into_iter().filter(|_| publish));
    let stores = stores(&users, &registration.slug, project);
    if request.resume.is_some() {
        // The session may still be where a run left it that crashed together with all that would have published it.
        let swept = sweep_stale(homes).map(|swept| swept.recovered).unwrap_or_default();
        warnings.extend(swept.into_iter().flat_map(|(_, finished)| finished.warnings));
    }
    let session = session_to_continue(request, &stores, project, &mut warnings)?;

    let slot = Slot::take(&homes.join(key(user_home, project, &request.settings))).map_err(failed(homes))?;
    warnings.extend(slot.recovered.iter().flat_map(|finished| finished.warnings.iter().cloned()));
    let overlay = Overlay { home: &slot.path, user_home, project, slug: &registration.slug, layout };
    let plan = match build(request, &overlay, &settings, session, homes, publish, &mut warnings) {
        Ok(plan) => plan,
        Err(error) => {
            let error = failed(&slot.path)(error);
            slot.give_back();
            return Err(error);
        }
    };
    let system_prompt = request.environment.get(crate::env::GEMINI_SYSTEM_MD).and_then(|path| path.to_str());
    let system_prompt = system_prompt.and_then(|path| settings::written_out(path.trim(), user_home));
    Ok(Prepared::Overlay(Home { slot, plan: Box::new(plan), system_prompt, warnings }))
}

/// Fills an empty slot.
fn build(
    request: &HomeRequest,
    overlay: &Overlay<'_>,
    settings: &Map<String, Value>,
    session: Option<Stored>,
    homes: &Path,
    publish: bool,
    warnings: &mut Vec<String>,
) -> io::Result<FinishPlan> {
    let linked = overlay.build(&homes.join("bin"))?;
    overlay.write_settings(settings)?;
    let context = overlay.write_context(settings, request.context.as_deref(), warnings)?;
    let users_project = overlay.user_home.join(".gemini/tmp").join(overlay.slug);
    let mut copied = Vec::new();
    // Not a link: the CLI lets the model write only below the real path of the project's directory.
    resume::copy_dir_in(&users_project, &overlay.project_dir(), Path::new("memory"), &mut copied)?;
    let resumed = match session {
        Some(session) => {
            Some(resume::copy_in(&session, &users_project, &overlay.project_dir(), &mut copied)?)
        }
        None => None,
    };
    let plan = FinishPlan {
        run: random::hex::<32>()?,
        mark: request.mark.clone(),
        slot: overlay.home.to_owned(),
        user_home: overlay.user_home.to_owned(),
        project: overlay.project.to_owned(),
        slug: overlay.slug.to_owned(),
        layout: overlay.layout,
        publish,
        keep_sessions: request.keep_sessions,
        resumed,
        copied,
        linked,
        trusted: overlay.trusted(),
        context,
    };
    slot::write_plan(&plan)?;
    Ok(plan)
}

/// The user's settings with the run's on top; warns of those that other settings win over.
fn run_settings(
    request: &HomeRequest,
    user_home: &Path,
    warnings: &mut Vec<String>,
) -> Result<Map<String, Value>, HomeError> {
    let path = user_home.join(".gemini/settings.json");
    let mut settings = settings::read_object(&path).map_err(HomeError::Settings)?;
    settings::merge(&mut settings, &request.settings);
    settings::write_out_home(&mut settings, user_home);
    warnings.extend(settings::admit_servers(&mut settings, &request.settings));
    let folder = request.folder_settings.then(|| request.project_dir.join(".gemini/settings.json"));
    for path in folder.into_iter().chain([system_settings(request)]) {
        // The CLI itself complains of one that cannot be read.
        let winner = settings::read_object(&path).unwrap_or_default();
        let names = settings::overridden(&request.settings, &winner);
        if !names.is_empty() {
            warnings.push(format!(
                "{} wins over these settings of the run: {}",
                path.display(),
                names.join(", ")
            ));
        }
    }
    Ok(settings)
}

fn system_settings(request: &HomeRequest) -> PathBuf {
    let chosen = request.environment.filled(SYSTEM_SETTINGS_PATH).map(PathBuf::from);
    let usual = match PLATFORM {
        Platform::MacOs => "/Library/Application Support/GeminiCli",
        Platform::Linux | Platform::Windows => "/etc/gemini-cli",
    };
    chosen.unwrap_or_else(|| Path::new(usual).join("settings.json"))
}

/// Where the project's sessions can be, the place of the CLI's own choice first. The other is that of older releases,
/// if the CLI has not copied it yet.
fn stores(users: &Path, slug: &str, project: &str) -> Vec<PathBuf> {
    let mut names = vec![slug.to_owned(), project_hash(Path::new(project))];
    names.dedup();
    names.into_iter().map(|name| users.join("tmp").join(name).join("chats")).collect()
}

fn session_to_continue(
    request: &HomeRequest,
    stores: &[PathBuf],
    project: &str,
    warnings: &mut Vec<String>,
) -> Result<Option<Stored>, HomeError> {
    let failed = |source| HomeError::Io { path: stores.first().cloned().unwrap_or_default(), source };
    if let Some(id) = &request.session_id
        && find(stores, &Resume::Id(id.clone())).map_err(failed)?.is_some()
    {
        return Err(HomeError::SessionExists { id: id.clone() });
    }
    let Some(wanted) = &request.resume else { return Ok(None) };
    match (find(stores, wanted).map_err(failed)?, wanted) {
        (Some(found), _) => Ok(Some(found)),
        (None, Resume::Id(start)) => match ids_beginning(stores, start).map_err(failed)?.as_slice() {
            [id] => find(stores, &Resume::Id(id.clone())).map_err(failed),
            [] => Err(HomeError::NoSession { id: start.clone(), project: project.into() }),
            several => Err(HomeError::SeveralSessions { start: start.clone(), ids: several.to_vec() }),
        },
        (None, Resume::Latest) => {
            warnings
                .push("There is no session to continue in this project; a new one was started".to_owned());
            Ok(None)
        }
    }
}

/// The `.gemini` directories of runs that are going on for this home, or that nobody has finished yet. Each is a store of its
/// own, with the sessions that [`finish`] will move to the user's.
pub fn unpublished(homes: &Path, user_home: &Path) -> io::Result<Vec<PathBuf>> {
    slot::overlays_of(&std::path::absolute(homes)?, &resolved(user_home))
}

/// The same for the same project and settings.
fn key(user_home: &Path, project: &str, settings: &Map<String, Value>) -> String {
    slot::key(&serde_json::json!([user_home.to_string_lossy(), project, settings]).to_string())
}

fn resolved(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).or_else(|_| std::path::absolute(path)).unwrap_or_else(|_| path.to_owned())
}

/// Whether something can be put into a directory, which may have to be made first.
fn is_writable(dir: &Path) -> bool {
    match files::may_create_in(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => dir.parent().is_some_and(is_writable),
        answer => answer.is_ok(),
    }
}
