//! Supervision of runs by the program that uses the library.

pub use crate::supervise::run_if_keeper;
