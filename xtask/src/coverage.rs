//! `cargo xtask coverage`: not wired yet.

/// Runs it.
pub fn run(_words: &[&str]) -> Result<(), String> {
    Err("coverage is not built yet".to_owned())
}
