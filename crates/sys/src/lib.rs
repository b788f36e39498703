//! What Alhena asks of the operating system, each thing once. It knows nothing of Gemini CLI.
//!
//! | Module | Its one job |
//! |---|---|
//! | [`files`] | files that are never half there, moves, directories of our own |
//! | [`locks`] | locks that end with whoever holds them |
//! | [`processes`] | which processes there are, whose they are, and what they were started with |

pub mod files;
pub mod locks;
pub mod processes;

pub use processes::Process;
