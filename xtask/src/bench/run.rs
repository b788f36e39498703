//! `cargo xtask bench run`: `alhena run` against the bare `gemini` command, on the real CLI and the scripted API.

/// Says that there is nothing to measure yet.
pub fn run(_words: &[&str]) -> Result<(), String> {
    Err("bench run is not built yet: it needs `alhena run` and the scripted API".to_owned())
}
