//! `cargo xtask coverage [--quick] [PACKAGE...]`: line coverage per crate, by all tests or by those of some packages.
//!
//! Measured with the compiler's own instrumentation (cargo-llvm-cov 0.9 on rustc 1.95), which also counts what the
//! `alhena` binary and its keeper do when a test starts them; a process that is killed with SIGKILL counts for nothing.
//! It needs the component `llvm-tools` of the toolchain: a system LLVM of another version cannot read the profiles.
//! Tests inside `src/` count as lines too; files under `tests/` do not.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use alhena_testbed::{cache, run_bounded, tools};
use serde_json::Value;

use crate::commands::{cargo, follow, works};
use crate::setup;
use crate::tally::Reading;

const LIMIT: Duration = Duration::from_secs(2 * 3600);

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Lines {
    all: u64,
    covered: u64,
}

#[derive(clap::Args)]
pub struct Options {
    /// Leave out everything on the real CLI
    #[arg(long)]
    quick: bool,
    /// Packages whose tests run; all by default
    packages: Vec<String>,
}

/// Runs the tests and prints the table.
pub fn run(Options { quick, packages }: &Options) -> Result<(), String> {
    check_llvm_tools()?;
    let llvm_cov = tools::llvm_cov().map_err(|error| error.to_string())?;
    setup::check_node()?;
    let environment = setup::for_tests(*quick)?;
    let report = cache::root().join("coverage.json");
    let mut command = Command::new(llvm_cov);
    command.arg("llvm-cov").current_dir(cache::workspace());
    command.args(runner(*quick)).args(["--json", "--summary-only", "--output-path"]).arg(&report);
    match packages.as_slice() {
        [] => command.arg("--workspace"),
        some => command.args(some.iter().flat_map(|package| ["--package", package.as_str()])),
    };
    let _ = std::fs::remove_file(&report);
    let mut reading = Reading::default();
    follow(command.envs(environment), LIMIT, |line| reading.line(line))?;
    let tally = reading.tally();
    let text = std::fs::read(&report).map_err(|error| format!("there is no report: {error}"))?;
    let report: Value = serde_json::from_slice(&text).map_err(|error| format!("the report: {error}"))?;
    for (name, lines) in by_crate(&report, &cache::workspace()) {
        let percent = 100.0 * lines.covered as f64 / (lines.all.max(1)) as f64;
        println!("{name:12} {percent:5.1} %  {} of {} lines", lines.covered, lines.all);
    }
    match tally.failed {
        0 => Ok(()),
        failed => Err(format!("{failed} tests failed, so the figures are too low")),
    }
}

fn runner(quick: bool) -> Vec<&'static str> {
    let nextest = works(cargo().args(["nextest", "--version"]));
    match (nextest, quick) {
        (true, true) => vec!["nextest", "--ignore-run-fail", "--profile", "quick"],
        (true, false) => vec!["nextest", "--ignore-run-fail"],
        (false, _) => vec!["--ignore-run-fail"],
    }
}

fn check_llvm_tools() -> Result<(), String> {
    let done = run_bounded(Command::new("rustc").args(["--print", "target-libdir"]), Duration::from_secs(60));
    let library = done.map_err(|error| error.to_string())?.stdout_text();
    let tool = Path::new(library.trim()).with_file_name("bin").join("llvm-profdata");
    if tool.is_file() || std::env::var_os("LLVM_PROFDATA").is_some() {
        return Ok(());
    }
    Err("coverage needs the toolchain's llvm-tools; type `rustup component add llvm-tools`".to_owned())
}

fn by_crate(report: &Value, workspace: &Path) -> BTreeMap<String, Lines> {
    let files =
        report.pointer("/data/0/files").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let mut crates = BTreeMap::<String, Lines>::new();
    for file in files {
        let path = file.get("filename").and_then(Value::as_str).map(Path::new);
        let Some(path) = path.and_then(|path| path.strip_prefix(workspace).ok()) else { continue };
        let number =
            |name: &str| file.pointer(&format!("/summary/lines/{name}")).and_then(Value::as_u64).unwrap_or(0);
        let lines = crates.entry(crate_of(path)).or_default();
        lines.all += number("count");
        lines.covered += number("covered");
    }
    crates
}

/// `crates/NAME/...` is NAME, and otherwise the first directory.
fn crate_of(path: &Path) -> String {
    let mut parts = path.iter().map(|part| part.to_string_lossy().into_owned());
    let first = parts.next().unwrap_or_default();
    if first == "crates" { parts.next().unwrap_or_default() } else { first }
}

#[cfg(test)]
mod tests {
    use super::{Lines, by_crate};
    use serde_json::json;
    use std::collections::BTreeMap;

    #[test]
    fn lines_are_added_up_per_crate() {
        let file = |name: &str, count: u64, covered: u64| json!({"filename": name, "summary": {"lines": {"count": count, "covered": covered}}});
        let report = json!({"data": [{"files": [
            file("/w/crates/wire/src/lib.rs", 10, 9), file("/w/crates/wire/src/a/b.rs", 5, 0), file("/w/crates/cli/src/main.rs", 3, 3),
            file("/w/xtask/src/main.rs", 2, 1), file("/elsewhere/x.rs", 100, 0),
        ]}]});
        let expected = [("cli", 3, 3), ("wire", 15, 9), ("xtask", 2, 1)];
        let expected: BTreeMap<String, Lines> = expected
            .into_iter()
            .map(|(name, all, covered)| (name.to_owned(), Lines { all, covered }))
            .collect();
        assert_eq!(by_crate(&report, std::path::Path::new("/w")), expected);
    }
}
