//! Wheels: the binary with its Python module by maturin, the adapters by hatchling.

use std::path::{Path, PathBuf};
use std::process::Command;

use alhena_testbed::python::{self, PythonPackage};
use alhena_testbed::{cache, tools};

use super::{Job, Package, Sample, platforms, step};

pub fn packages() -> Vec<Package> {
    let row = |name, about, build, try_out| Package { name, about, build, try_out };
    vec![
        row("alhena", "wheel: the binary, and the Python module", build_alhena, try_alhena),
        row("alhena-aiwf", "wheel: the provider for the workflow engine aiwf", build_aiwf, try_aiwf),
        row("alhena-cao", "wheel: the provider for CAO", build_cao, try_cao),
    ]
}

fn build_alhena(job: &Job) -> Result<Vec<PathBuf>, String> {
    if job.binary.is_some() {
        return Err(
            "maturin builds the binary of the wheel itself: give --profile instead of --binary".to_owned()
        );
    }
    let tools = tools()?;
    let made = job.scratch().join("wheel");
    let mut maturin = Command::new(tools.join("bin/maturin"));
    maturin
        .args(["build", "--locked", "--profile", &job.profile, "--out"])
        .arg(&made)
        .current_dir(cache::workspace().join(python::ALHENA.directory))
        .env("PYTHONPATH", &tools);
    if let Some(target) = &job.target {
        platforms::can_build(target)?;
        maturin.args(["--target", target]);
    }
    step(&mut maturin)?;
    let wheel = wheels(&made, "alhena").pop().ok_or("maturin made no wheel")?;
    if job.target.is_none() {
        // With another profile its name may be another one, and pip would find both.
        for old in wheels(&job.out, "alhena").iter().filter(|wheel| is_for_here(wheel)) {
            std::fs::remove_file(old).map_err(|error| format!("{}: {error}", old.display()))?;
        }
    }
    let place = job.out.join(wheel.file_name().unwrap_or_default());
    std::fs::copy(&wheel, &place).map_err(|error| format!("{}: {error}", place.display()))?;
    Ok(vec![place])
}

fn try_alhena(job: &Job) -> Result<(), String> {
    types(job, python::ALHENA)?;
    run_example(&install(job, "alhena", None)?, python::ALHENA, "examples/haiku.py")
}

fn build_aiwf(job: &Job) -> Result<Vec<PathBuf>, String> {
    build_adapter(job, python::AIWF, "alhena-aiwf")
}

fn try_aiwf(job: &Job) -> Result<(), String> {
    types(job, python::AIWF)?;
    let python = install(job, "alhena-aiwf", None)?;
    let sample = Sample::new()?;
    has_licences(&sample, &python, "alhena-aiwf")?;
    step(sample.prepare(Command::new(&python).args(["-m", "alhena_aiwf.example"])))?;
    sample.wrote_haiku()
}

/// Checks that the installed package brings both of its licence files along.
fn has_licences(sample: &Sample, python: &Path, package: &str) -> Result<(), String> {
    let count = "import sys; from importlib.metadata import files; assert sum('licenses/' in str(file) for file in files(sys.argv[1])) == 2";
    step(sample.prepare(Command::new(python).args(["-c", count, package])))
}

fn build_cao(job: &Job) -> Result<Vec<PathBuf>, String> {
    build_adapter(job, python::CAO, "alhena-cao")
}

/// CAO's own commands know the provider once the wheel is there. That agents run is tested with the adapter.
fn try_cao(job: &Job) -> Result<(), String> {
    types(job, python::CAO)?;
    let cao = tools::cao().map_err(|error| error.to_string())?;
    let python = install(job, "alhena-cao", Some(&cao))?;
    let sample = Sample::new()?;
    has_licences(&sample, &python, "alhena-cao")?;
    let profile = sample.workspace().join("reviewer.md");
    std::fs::write(&profile, "---\nname: reviewer\ndescription: reviews\n---\nYou review.\n")
        .map_err(|error| error.to_string())?;
    let mut check = Command::new(python.with_file_name("alhena-cao"));
    step(sample.prepare(check.arg("check")).env("PYTHONPATH", &cao))?;
    let mut installing = Command::new(&python);
    installing.arg(cao.join("bin/cao")).arg("install").arg(&profile).args(["--provider", "gemini_cli"]);
    step(sample.prepare(&mut installing).env("PYTHONPATH", &cao))
}

/// The wheel with the binary, which the adapters are installed with.
fn needs_alhena(job: &Job) -> Result<(), String> {
    if wheel(job, "alhena").is_err() {
        build_alhena(job)?;
    }
    Ok(())
}

fn build_adapter(job: &Job, package: PythonPackage, name: &str) -> Result<Vec<PathBuf>, String> {
    needs_alhena(job)?;
    let mut hatchling = Command::new("python3");
    hatchling
        .args(["-m", "hatchling", "build", "--target", "wheel", "--directory"])
        .arg(&job.out)
        .current_dir(cache::workspace().join(package.directory))
        .env("PYTHONPATH", tools()?);
    step(&mut hatchling)?;
    Ok(vec![wheel(job, name)?])
}

fn run_example(python: &Path, package: PythonPackage, example: &str) -> Result<(), String> {
    let sample = Sample::new()?;
    let example = cache::workspace().join(package.directory).join(example);
    step(sample.prepare(Command::new(python).arg(example)))?;
    sample.wrote_haiku()
}

/// A wheel for this machine in the directory for finished ones.
fn wheel(job: &Job, name: &str) -> Result<PathBuf, String> {
    let found = wheels(&job.out, name).into_iter().find(|wheel| is_for_here(wheel));
    found.ok_or_else(|| format!("no wheel {name} in {}", job.out.display()))
}

fn wheels(directory: &Path, name: &str) -> Vec<PathBuf> {
    let start = format!("{}-{}-", name.replace('-', "_"), env!("CARGO_PKG_VERSION"));
    let is_it =
        |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&start));
    let entries = std::fs::read_dir(directory).into_iter().flatten().filter_map(Result::ok);
    entries.map(|entry| entry.path()).filter(is_it).collect()
}

/// Whether pip on this machine takes a wheel: by the end of its name, such as `-manylinux_2_34_x86_64.whl`.
fn is_for_here(wheel: &Path) -> bool {
    let name = wheel.file_name().unwrap_or_default().to_string_lossy();
    let tag = name.trim_end_matches(".whl").rsplit('-').next().unwrap_or_default();
    let system = match std::env::consts::OS {
        "macos" => "macosx_",
        _ if cfg!(target_env = "musl") => "musllinux_",
        _ => "manylinux",
    };
    let processor = match std::env::consts::ARCH {
        "aarch64" if cfg!(target_os = "macos") => "arm64",
        other => other,
    };
    tag == "any" || ((tag.starts_with(system) || tag.starts_with("linux_")) && tag.ends_with(processor))
}

/// A virtual environment with this package and the packages of the same directory that it needs; its Python. Packages in `there`
/// count as installed.
fn install(job: &Job, name: &str, there: Option<&Path>) -> Result<PathBuf, String> {
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
    step(pip.envs(there.map(|there| ("PYTHONPATH", there))))?;
    Ok(python)
}

fn types(job: &Job, package: PythonPackage) -> Result<(), String> {
    let place = job.scratch().join("types");
    std::fs::create_dir(&place).map_err(|error| error.to_string())?;
    step(&mut package.strict_types(&place).map_err(|error| error.to_string())?)
}

fn tools() -> Result<PathBuf, String> {
    tools::python_tools().map_err(|error| error.to_string())
}
