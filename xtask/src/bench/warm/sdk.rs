//! The crate gemini-cli-sdk, which has a client of `gemini --experimental-acp`: a small program that uses it as its README says.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use alhena_testbed::cache;

use crate::commands::{cargo, follow};

const VERSION: &str = "0.1.0";
const MAIN: &str = include_str!("sdk_client.rs");

/// Builds it, once, and gives its path.
pub(super) fn client() -> Result<PathBuf, String> {
    let name = format!("gemini-cli-sdk/{VERSION}");
    let dir = cache::entry(&name, |dir| make(dir).map_err(io::Error::other));
    dir.map(|dir| dir.join("client")).map_err(|error| error.to_string())
}

fn make(dir: &Path) -> Result<(), String> {
    let text = |error: io::Error| error.to_string();
    let manifest = format!(
        "[package]\nname = \"client\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[workspace]\n\n[dependencies]\n\
         gemini-cli-sdk = \"={VERSION}\"\ntokio = {{ version = \"1\", features = [\"macros\", \"rt-multi-thread\"] }}\n\
         tokio-stream = \"0.1\"\n"
    );
    let source = dir.join("source");
    std::fs::create_dir_all(source.join("src")).map_err(text)?;
    std::fs::write(source.join("Cargo.toml"), manifest).map_err(text)?;
    std::fs::write(source.join("src/main.rs"), MAIN).map_err(text)?;
    let mut build = cargo();
    build
        .args(["build", "--release", "--quiet"])
        .current_dir(&source)
        .env("CARGO_TARGET_DIR", source.join("target"));
    if !follow(&mut build, Duration::from_secs(1800), |_| ())? {
        return Err(format!("gemini-cli-sdk {VERSION} does not build"));
    }
    std::fs::copy(source.join("target/release/client"), dir.join("client")).map_err(text)?;
    std::fs::remove_dir_all(source.join("target")).map_err(text)
}
