//! `cargo xtask bench`: not wired yet.

/// Runs one.
pub fn run(_words: &[&str]) -> Result<(), String> {
    Err("no benchmark is built yet".to_owned())
}
