//! The session store of Gemini CLI: finding, reading, following, searching and repairing sessions.

pub use alhena_session::export;
pub use alhena_session::follow::{Follow, News};
pub use alhena_session::repair;
pub use alhena_session::search::{Hit, Query, SearchResults};
pub use alhena_session::usage::{By, Row, UsageTable};
pub use alhena_session::{
    Ending, FindError, Format, Project, Scope, Session, SessionFile, SessionState, Stamp, Store, Survey,
    Transcript, Which,
};
