//! The GitHub Action: an archive with `action.yml` in it, tried out with an environment like GitHub's.

use std::path::{Path, PathBuf};
use std::process::Command;

use alhena_testbed::{cache, tools};

use super::{Job, Package, Sample, alhena, step};

pub fn packages() -> Vec<Package> {
    vec![Package {
        name: "github-action",
        about: "GitHub Action: a step that runs Gemini CLI",
        build,
        try_out,
    }]
}

fn archive(job: &Job) -> PathBuf {
    job.out.join(format!("alhena-github-action-{}.tar.gz", env!("CARGO_PKG_VERSION")))
}

fn build(job: &Job) -> Result<Vec<PathBuf>, String> {
    let archive = archive(job);
    let mut tar = Command::new("tar");
    tar.args(["--create", "--gzip", "--owner=0", "--group=0", "--file"]).arg(&archive).arg("--directory");
    step(tar.arg(cache::workspace().join("hosts")).arg("github-action"))?;
    Ok(vec![archive])
}

fn try_out(job: &Job) -> Result<(), String> {
    step(
        Command::new("tar")
            .args(["--extract", "--file"])
            .arg(archive(job))
            .arg("--directory")
            .arg(job.scratch()),
    )?;
    let action = job.scratch().join("github-action");
    let shellcheck = tools::shellcheck().map_err(|error| error.to_string())?;
    step(Command::new(shellcheck).arg(action.join("run.sh")))?;
    let sample = Sample::new()?;
    let file = |name: &str| job.scratch().join(name);
    let mut script = Command::new("bash");
    sample
        .prepare(script.arg(action.join("run.sh")))
        .env("GITHUB_OUTPUT", file("output"))
        .env("GITHUB_STEP_SUMMARY", file("summary"))
        .env("RUNNER_TEMP", job.scratch())
        .env("ALHENA_ACTION_ALHENA", alhena(job)?)
        .env("ALHENA_ACTION_APPROVAL", "auto-edit")
        .env("ALHENA_ACTION_PROMPT", "Write a haiku about rivers into haiku.txt");
    step(&mut script)?;
    sample.wrote_haiku()?;
    has(&file("output"), "status<<", "success")?;
    has(&file("summary"), "## Gemini CLI: success", "haiku&#46;txt")
}

fn has(path: &Path, first: &str, second: &str) -> Result<(), String> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    match text.contains(first) && text.contains(second) {
        true => Ok(()),
        false => Err(format!("{} lacks {first:?} or {second:?}: {text}", path.display())),
    }
}
