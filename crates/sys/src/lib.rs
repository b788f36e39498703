//! What Alhena asks of the operating system, each thing once. It knows nothing of Gemini CLI.
//!
//! | Module | Its one job |
//! |---|---|
//! | [`processes`] | which processes there are, whose they are, and what they were started with |

pub mod processes;

pub use processes::Process;
