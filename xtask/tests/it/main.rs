#![allow(clippy::unwrap_used, missing_docs)]

mod documents;
mod library;
