//! What is checked without running anything of ours. What a machine lacks for a check is said, never passed over in silence.

use std::process::Command;

use alhena_testbed::cache::workspace;
use alhena_testbed::tools;

use crate::commands::{cargo, lines};

pub enum Lint {
    Run(Command),
    LeftOut(String),
}

pub fn all() -> Vec<Lint> {
    vec![Lint::Run(clippy()), Lint::Run(documentation()), dependencies(), oldest_rust()]
}

fn clippy() -> Command {
    let mut command = cargo();
    command.args(["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]);
    command
}

/// A link that leads nowhere is a fault of the documentation.
fn documentation() -> Command {
    let mut command = cargo();
    command.args(["doc", "--quiet", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings");
    command
}

/// `deny.toml`, but for the advisories, which have to be asked for over the network.
fn dependencies() -> Lint {
    let Some(deny) = tools::deny_if_there() else {
        return Lint::LeftOut(
            "cargo deny: it is not installed; `cargo xtask fetch cargo-deny` does it".into(),
        );
    };
    let mut command = Command::new(deny);
    command.current_dir(workspace());
    command.args(["--offline", "check", "bans", "licenses", "sources"]);
    Lint::Run(command)
}

/// The minimum that `Cargo.toml` promises, if somebody has it.
fn oldest_rust() -> Lint {
    let oldest = env!("CARGO_PKG_RUST_VERSION");
    let installed = lines(Command::new("rustup").args(["toolchain", "list"]));
    let Some(toolchain) = installed.iter().find_map(|line| toolchain(line, oldest)) else {
        return Lint::LeftOut(format!(
            "Rust {oldest}: it is not installed; `rustup toolchain install {oldest}` does it"
        ));
    };
    let mut command = Command::new("rustup");
    command.current_dir(workspace()).env_remove("RUSTC").env_remove("RUSTUP_TOOLCHAIN");
    // In a place of its own: it would throw away what the other compiler has built.
    command.args(["run", toolchain, "cargo", "check", "--workspace", "--target-dir", "target/oldest"]);
    Lint::Run(command)
}

/// `1.91.1-x86_64-unknown-linux-gnu` is a toolchain of 1.91.
fn toolchain<'a>(line: &'a str, version: &str) -> Option<&'a str> {
    let name = line.split_whitespace().next()?;
    let rest = name.strip_prefix(version)?;
    rest.starts_with(['.', '-']).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::toolchain;

    #[test]
    fn a_toolchain_is_told_by_its_number() {
        let name = "1.91.1-x86_64-unknown-linux-gnu";
        assert_eq!(toolchain(&format!("{name} (default)"), "1.91"), Some(name));
        assert_eq!(toolchain("1.91-x86_64-unknown-linux-gnu", "1.91"), Some("1.91-x86_64-unknown-linux-gnu"));
        assert_eq!(toolchain("1.9.0-x86_64-unknown-linux-gnu", "1.91"), None);
        assert_eq!(toolchain("1.910.0-x86_64-unknown-linux-gnu", "1.91"), None);
        assert_eq!(toolchain("stable-x86_64-unknown-linux-gnu", "1.91"), None);
    }
}
