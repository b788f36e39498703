//! Jobs that workers on other machines do.

pub mod folder;
