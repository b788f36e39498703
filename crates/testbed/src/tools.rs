//! What tests need from outside and a machine may lack, in one table: how to get each, and when it is needed.
//!
//! Nothing is installed into the system. To add one: a function that gives its path, and a row in [`all`].

mod debian;
mod registries;

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use alhena_sys::programs;

use self::debian::{CHROMIUM, fetch_chromium, fetch_staticcheck, fetch_tmux};
use self::registries::{
    fetch_acpx, fetch_api_client, fetch_api_tools, fetch_cao, fetch_claude_sdk_npm, fetch_claude_sdk_python,
    fetch_deny, fetch_go, fetch_llvm_cov, fetch_nats, fetch_node, fetch_promptfoo, fetch_public_schemas,
    fetch_python_tools, fetch_qwen, fetch_schema_store, fetch_shellcheck, fetch_typescript,
};
use crate::cache::{self, workspace};
use crate::real_cli::{OTHER_VERSIONS, RealCli, versions};

const NODE_VERSION: &str = "22.23.3";
/// The other releases of Node that npm packages are tested on.
const OTHER_NODES: &[&str] = &["20.20.2", "24.21.0"];
const TYPESCRIPT_VERSION: &str = "5.9.3";
const NODE_TYPES_VERSION: &str = "20.19.0";
const GO_VERSION: &str = "1.27.3";
/// The distribution that runs the tests decides which tmux that is.
const TMUX_VERSION: &str = "debian";
/// The same for the browser: it must fit the C library of the machine, the only one that it takes from there.
const CHROMIUM_VERSION: &str = "debian-complete";
const LLVM_COV: &str = "cargo-llvm-cov";
const LLVM_COV_VERSION: &str = "0.9.1";
const DENY: &str = "cargo-deny";
const DENY_VERSION: &str = "0.20.2";
const PROMPTFOO_VERSION: &str = "0.123.1";
const CAO_VERSION: &str = "2.5.4";
const PUBLIC_SCHEMAS_VERSION: &str = "0.39.0";
const SCHEMA_STORE_VERSION: &str = "0.2.2";
/// Another name for each other set of the next.
const PYTHON_TOOLS_VERSION: &str = "2";
const PYTHON_TOOLS: [&str; 3] = ["maturin==1.16.0", "hatchling==1.33.0", "mypy==2.4.1"];
const CLAUDE_SDK_PYTHON_VERSION: &str = "0.2.182";
const CLAUDE_SDK_NPM_VERSION: &str = "0.3.325";
const ACPX_VERSION: &str = "0.19.1";
/// The official SDK that it is built on.
const ACP_SDK_VERSION: &str = "1.9.0";
const QWEN_VERSION: &str = "0.24.4";
const NATS_VERSION: &str = "2.15.1";
const SHELLCHECK_VERSION: &str = "0.11.0.1";
/// Another name for each other set of the next.
const API_TOOLS_VERSION: &str = "1";
const API_TOOLS: [&str; 2] = ["schemathesis==4.32.5", "openapi-python-client==0.29.1"];
const API_CLIENT_VERSION: &str = "7.13.0";
/// What speaks by the types that it makes.
const API_FETCH_VERSION: &str = "0.17.0";
/// The newest that needs no module proxy, with the Go of the same distribution: it cannot read the code of a newer one.
const STATICCHECK_VERSION: &str = "debian";

/// A row of the table.
#[derive(Debug, Clone)]
pub struct Tool {
    /// What it is called.
    pub name: &'static str,
    /// Which one of it.
    pub version: String,
    /// What for.
    pub about: &'static str,
    needed: Needed,
    get: fn(&str) -> io::Result<PathBuf>,
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
}

impl Tool {
    /// Whether the tests that are there need it.
    pub fn needed(&self) -> bool {
        let exists = |path: &&str| workspace().join(path).exists();
        match self.needed {
            Needed::Always => true,
            Needed::WhenTestsNameIt => tests_say(&format!("\"{}\"", self.version)),
            Needed::With(paths) => paths.iter().any(exists),
            Needed::WithoutCommand(path) => exists(&path) && on_path(self.name).is_none(),
        }
    }

    /// Whether it is in the cache.
    pub fn cached(&self) -> bool {
        cache::root().join(self.name).join(&self.version).is_dir()
    }

    /// Fetches it if it is not in the cache, and gives its path.
    pub fn get(&self) -> io::Result<PathBuf> {
        (self.get)(&self.version)
    }
}

/// The table.
pub fn all() -> Vec<Tool> {
    let tool = |name, version: &str, about, needed, get| Tool {
        name,
        version: version.to_owned(),
        about,
        needed,
        get,
    };
    let cli = |version: &str, needed| {
        tool("gemini-cli", version, "the real CLI", needed, |version| {
            RealCli::get(version).map(|cli| cli.dir)
        })
    };
    let always = versions();
    let others = OTHER_VERSIONS.iter().filter(|version| !always.iter().any(|known| known == *version));
    let mut all: Vec<Tool> = always.iter().map(|version| cli(version, Needed::Always)).collect();
    all.extend(others.map(|version| cli(version, Needed::WhenTestsNameIt)));
    let node_users = Needed::With(&["crates/agent/tests", "hosts/promptfoo"]);
    all.push(tool(
        "node",
        NODE_VERSION,
        "compile cache, which Node 20 lacks; promptfoo",
        node_users,
        fetch_node,
    ));
    let packages = Needed::With(&["packages/node"]);
    for version in OTHER_NODES {
        all.push(tool("node", version, "npm packages", packages, fetch_node));
    }
    all.push(tool("typescript", TYPESCRIPT_VERSION, "npm packages", packages, fetch_typescript));
    let terminal = Needed::WithoutCommand("crates/terminal/tests");
    all.push(tool("tmux", TMUX_VERSION, "the interactive CLI", terminal, fetch_tmux));
    let browser = Needed::WithoutCommand("crates/cli/tests/real/real_sessions");
    all.push(tool(
        CHROMIUM,
        CHROMIUM_VERSION,
        "exported pages and the page of `alhena serve`",
        browser,
        fetch_chromium,
    ));
    all.push(tool("go", GO_VERSION, "the OpenASE adapter", Needed::With(&["hosts/openase"]), fetch_go));
    let promptfoo = Needed::With(&["hosts/promptfoo"]);
    all.push(tool("promptfoo", PROMPTFOO_VERSION, "the promptfoo adapter", promptfoo, fetch_promptfoo));
    all.push(tool(
        "public-schemas",
        PUBLIC_SCHEMAS_VERSION,
        "answers that have to fit a schema",
        Needed::With(&["crates/model/tests/it/public_schemas.rs"]),
        fetch_public_schemas,
    ));
    all.push(tool(
        "schema-store",
        SCHEMA_STORE_VERSION,
        "answers that have to fit a schema",
        Needed::With(&["crates/model/tests/it/public_schemas.rs"]),
        fetch_schema_store,
    ));
    all.push(tool("cao", CAO_VERSION, "the CAO provider", Needed::With(&["hosts/cao"]), fetch_cao));
    let python = Needed::With(&["packages/python"]);
    all.push(tool(
        "python-tools",
        PYTHON_TOOLS_VERSION,
        "wheels and their types",
        python,
        fetch_python_tools,
    ));
    let sdk = Needed::With(&["hosts/claude-agent-sdk"]);
    all.push(tool(
        "claude-sdk-python",
        CLAUDE_SDK_PYTHON_VERSION,
        "programs on the Claude Agent SDK",
        sdk,
        fetch_claude_sdk_python,
    ));
    all.push(tool(
        "claude-sdk-npm",
        CLAUDE_SDK_NPM_VERSION,
        "programs on the Claude Agent SDK",
        sdk,
        fetch_claude_sdk_npm,
    ));
    let clients = Needed::With(&["crates/cli/tests/real/real_acp_agent"]);
    all.push(tool("acpx", ACPX_VERSION, "clients of `alhena acp`", clients, fetch_acpx));
    let agents = Needed::With(&["crates/cli/tests/real/real_acp/others.rs"]);
    all.push(tool("qwen-code", QWEN_VERSION, "another agent that speaks ACP", agents, fetch_qwen));
    let action = Needed::With(&["hosts/github-action"]);
    all.push(tool(
        "nats-server",
        NATS_VERSION,
        "jobs for many machines",
        Needed::With(&["crates/batch/tests"]),
        fetch_nats,
    ));
    all.push(tool("shellcheck", SHELLCHECK_VERSION, "the GitHub Action", action, fetch_shellcheck));
    let api = Needed::With(&["crates/cli/tests/it/serve"]);
    all.push(tool(
        "api-tools",
        API_TOOLS_VERSION,
        "attacks on the API by its description, and its client for Python",
        api,
        fetch_api_tools,
    ));
    all.push(tool(
        "api-client",
        API_CLIENT_VERSION,
        "the API's client for TypeScript",
        api,
        fetch_api_client,
    ));
    let on_demand = Needed::With(&[]);
    all.push(tool("staticcheck", STATICCHECK_VERSION, "the OpenASE adapter", on_demand, fetch_staticcheck));
    all.push(tool(LLVM_COV, LLVM_COV_VERSION, "cargo xtask coverage", on_demand, fetch_llvm_cov));
    all.push(tool(DENY, DENY_VERSION, "licences and sources of dependencies", Needed::With(&[]), fetch_deny));
    all
}

/// A Node 22 binary.
pub fn node22() -> io::Result<PathBuf> {
    fetch_node(NODE_VERSION)
}

/// Every Node that npm packages have to run on, the oldest first.
pub fn nodes() -> io::Result<Vec<PathBuf>> {
    let mut versions = vec![NODE_VERSION];
    versions.extend(OTHER_NODES);
    versions.sort_unstable();
    versions.into_iter().map(fetch_node).collect()
}

/// The directory of modules with the TypeScript compiler, and the types of Node beside it.
pub fn typescript() -> io::Result<PathBuf> {
    fetch_typescript(TYPESCRIPT_VERSION)
}

/// The system's tmux, or one from the cache.
pub fn tmux() -> io::Result<PathBuf> {
    on_path("tmux").map_or_else(|| fetch_tmux(TMUX_VERSION), Ok)
}

/// A Chromium without windows: the system's, or one from the cache.
pub fn chromium() -> io::Result<PathBuf> {
    on_path(CHROMIUM).map_or_else(|| fetch_chromium(CHROMIUM_VERSION), Ok)
}

/// A Go toolchain: the `go` command.
pub fn go() -> io::Result<PathBuf> {
    fetch_go(GO_VERSION)
}

/// Promptfoo's command. It needs Node 22, so put the directory of [`node22`] first on PATH.
pub fn promptfoo() -> io::Result<PathBuf> {
    fetch_promptfoo(PROMPTFOO_VERSION)
}

/// CAO and what it needs: a directory for `PYTHONPATH`.
pub fn cao() -> io::Result<PathBuf> {
    fetch_cao(CAO_VERSION)
}

/// JSON schemas of well-known tools, as the package check-jsonschema has them: a directory of files.
pub fn public_schemas() -> io::Result<PathBuf> {
    fetch_public_schemas(PUBLIC_SCHEMAS_VERSION)
}

/// The schemas that editors know files by, package.json and OpenAPI among them: a directory of files.
pub fn schema_store() -> io::Result<PathBuf> {
    fetch_schema_store(SCHEMA_STORE_VERSION)
}

/// maturin, hatchling and mypy: a directory for `PYTHONPATH`, with the commands in its `bin`.
pub fn python_tools() -> io::Result<PathBuf> {
    fetch_python_tools(PYTHON_TOOLS_VERSION)
}

/// schemathesis and openapi-python-client: a directory for `PYTHONPATH`, with the commands in its `bin`.
pub fn api_tools() -> io::Result<PathBuf> {
    fetch_api_tools(API_TOOLS_VERSION)
}

/// openapi-typescript and openapi-fetch, with the TypeScript compiler: a directory of modules.
pub fn api_client() -> io::Result<PathBuf> {
    fetch_api_client(API_CLIENT_VERSION)
}

/// The Claude Agent SDK for Python: a directory for `PYTHONPATH`.
pub fn claude_sdk_python() -> io::Result<PathBuf> {
    fetch_claude_sdk_python(CLAUDE_SDK_PYTHON_VERSION)
}

/// The Claude Agent SDK for JavaScript: a directory of modules.
pub fn claude_sdk_npm() -> io::Result<PathBuf> {
    fetch_claude_sdk_npm(CLAUDE_SDK_NPM_VERSION)
}

/// acpx and the official SDK of the Agent Client Protocol: a directory of modules. They need Node 22.
pub fn acpx() -> io::Result<PathBuf> {
    fetch_acpx(ACPX_VERSION)
}

/// Qwen Code, an agent that speaks ACP: the script to give to [`node22`].
pub fn qwen() -> io::Result<PathBuf> {
    fetch_qwen(QWEN_VERSION)
}

/// The `nats-server` command.
pub fn nats_server() -> io::Result<PathBuf> {
    fetch_nats(NATS_VERSION)
}

/// The `shellcheck` command.
pub fn shellcheck() -> io::Result<PathBuf> {
    fetch_shellcheck(SHELLCHECK_VERSION)
}

/// The `staticcheck` command, with the Go toolchain that it understands.
pub fn staticcheck() -> io::Result<Command> {
    let root = fetch_staticcheck(STATICCHECK_VERSION)?.join("root/usr");
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

/// The `cargo-llvm-cov` command, compiled on first use.
pub fn llvm_cov() -> io::Result<PathBuf> {
    on_path(LLVM_COV).map_or_else(|| fetch_llvm_cov(LLVM_COV_VERSION), Ok)
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

/// A command on PATH.
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
