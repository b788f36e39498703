//! Wheels: the binary with its Python module by maturin, the adapters by flit.

use std::path::{Path, PathBuf};
use std::process::Command;

use alhena_testbed::{cache, tools};

use super::{Job, Package, Sample, step};

/// Its rows of the table.
pub fn packages() -> Vec<Package> {
    let row = |name, about, build, try_out| Package { name, about, build, try_out };
    vec![
        row("alhena", "wheel: the binary, and the Python module", build_alhena, try_alhena),
        row("alhena-aiwf", "wheel: the provider for the workflow engine aiwf", build_aiwf, try_aiwf),
    ]
}

fn build_alhena(job: &Job) -> Result<Vec<PathBuf>, String> {
    let tools = tools()?;
    let mut maturin = Command::new(tools.join("bin/maturin"));
    maturin
        .args(["build", "--locked", "--profile", &job.profile, "--out"])
        .arg(&job.out)
        .current_dir(cache::workspace().join("packages/python"))
        .env("PYTHONPATH", &tools);
    step(&mut maturin)?;
    Ok(vec![wheel(job, "alhena")?])
}

fn try_alhena(job: &Job) -> Result<(), String> {
    let package = cache::workspace().join("packages/python");
    types(&package, &["src", "tests", "examples"])?;
    run_example(&install(job, "alhena")?, &package.join("examples/haiku.py"))
}

fn build_aiwf(job: &Job) -> Result<Vec<PathBuf>, String> {
    needs_alhena(job)?;
    flit(job, "hosts/aiwf")?;
    Ok(vec![wheel(job, "alhena-aiwf")?])
}

fn try_aiwf(job: &Job) -> Result<(), String> {
    let package = cache::workspace().join("hosts/aiwf");
    types(&package, &["src", "tests/test_provider.py", "tests/in_engine.py", "example.py"])?;
    run_example(&install(job, "alhena-aiwf")?, &package.join("example.py"))
}

/// The wheel with the binary, which the adapters are installed with.
fn needs_alhena(job: &Job) -> Result<(), String> {
    if wheel(job, "alhena").is_err() {
        build_alhena(job)?;
    }
    Ok(())
}

/// Builds a wheel that is only Python.
fn flit(job: &Job, package: &str) -> Result<(), String> {
    let mut flit = Command::new("python3");
    flit.args(["-m", "flit_core.wheel", "--outdir"])
        .arg(&job.out)
        .current_dir(cache::workspace().join(package))
        .env("PYTHONPATH", tools()?);
    step(&mut flit)
}

fn run_example(python: &Path, example: &Path) -> Result<(), String> {
    let sample = Sample::new()?;
    step(sample.prepare(Command::new(python).arg(example)))?;
    wrote_haiku(&sample)
}

/// The example's file is there: the example ran on the real CLI and the model was asked.
fn wrote_haiku(sample: &Sample) -> Result<(), String> {
    let file = sample.workspace().join("haiku.txt");
    match (std::fs::read_to_string(&file), sample.requests()) {
        (Ok(text), asked) if text == "rivers\n" && asked > 0 => Ok(()),
        (found, asked) => Err(format!("{}: {found:?}, the model was asked {asked} times", file.display())),
    }
}

/// A wheel in the directory for finished ones. Older ones of the same name would be taken for it.
fn wheel(job: &Job, name: &str) -> Result<PathBuf, String> {
    let start = format!("{}-{}-", name.replace('-', "_"), env!("CARGO_PKG_VERSION"));
    let entries = std::fs::read_dir(&job.out).map_err(|error| error.to_string())?;
    let is_it = |path: &Path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&start));
    let found = entries.filter_map(|entry| Some(entry.ok()?.path())).find(|path| is_it(path));
    found.ok_or_else(|| format!("no wheel {start}* in {}", job.out.display()))
}

/// A virtual environment with nothing but this package and what it needs from the same directory; its Python.
fn install(job: &Job, name: &str) -> Result<PathBuf, String> {
    let place = job.scratch().join("venv");
    step(Command::new("python3").args(["-m", "venv"]).arg(&place))?;
    let python = place.join("bin/python");
    let mut pip = Command::new(&python);
    pip.args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-index",
        "--no-cache-dir",
        "--disable-pip-version-check",
    ])
    .arg("--find-links")
    .arg(&job.out)
    .arg(format!("{name}=={}", env!("CARGO_PKG_VERSION")));
    step(&mut pip)?;
    Ok(python)
}

/// `mypy --strict` over parts of a package.
fn types(directory: &Path, parts: &[&str]) -> Result<(), String> {
    let tools = tools()?;
    let mut mypy = Command::new("python3");
    mypy.args(["-m", "mypy", "--strict", "--no-incremental", "--cache-dir=/dev/null"])
        .args(parts)
        .current_dir(directory)
        .env("MYPYPATH", format!("src:{}", cache::workspace().join("packages/python/src").display()))
        .env("PYTHONPATH", tools);
    step(&mut mypy)
}

fn tools() -> Result<PathBuf, String> {
    tools::python_tools().map_err(|error| error.to_string())
}
