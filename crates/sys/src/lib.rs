//! What Alhena asks of the operating system, each thing once. It knows nothing of Gemini CLI.
//!
//! No other crate calls the operating system beside the standard library's portable functions. A function here is named for
//! its intent and not for the call, so that each platform can have its own way.
//!
//! | Module | Its one job |
//! |---|---|
//! | [`files`] | files that are never half there, moves, directories of our own, identity, times, permissions |
//! | [`fork`] | a second process, a child that dies with its parent, orphans that become children |
//! | [`growth`] | files that grow |
//! | [`handles`] | what is open, of any kind, and standard input and output |
//! | [`http`] | HTTP/1.1 requests and response heads, for servers on loopback |
//! | [`locks`] | locks that end with whoever holds them |
//! | [`platform`] | the system and the machine |
//! | [`poll`] | waiting for several things at once |
//! | [`processes`] | which processes there are, whose they are, and what they were started with |
//! | [`programs`] | programs on `PATH` |
//! | [`random`] | unpredictable names |
//! | [`signals`] | signals that come to this process |
//! | [`sockets`] | connections between processes |
//! | [`terminals`] | a terminal as standard input, and that of a person |

pub mod files;
pub mod fork;
pub mod growth;
pub mod handles;
pub mod http;
pub mod locks;
pub mod platform;
pub mod poll;
pub mod processes;
pub mod programs;
pub mod random;
pub mod signals;
pub mod sockets;
pub mod terminals;

pub use processes::Process;
