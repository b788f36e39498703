//! The Go module, as a module proxy that is only files: `GOPROXY=file:///...` or any web server is enough to install it.

use std::path::{Path, PathBuf};
use std::process::Command;

use alhena_testbed::{cache, tools};

use super::{Job, Package, Sample, alhena, step};
use crate::commands::lines;

const MODULE: &str = "alhena.dev/hosts/openase";

pub fn packages() -> Vec<Package> {
    vec![Package { name: "openase", about: "Go module: turns of Gemini CLI for OpenASE", build, try_out }]
}

fn source() -> PathBuf {
    cache::workspace().join("hosts/openase")
}

fn version() -> String {
    format!("v{}", env!("CARGO_PKG_VERSION"))
}

fn proxy(job: &Job) -> PathBuf {
    job.out.join("go")
}

/// The files of a proxy for one version, and the page that leads to it from the module's own address.
fn build(job: &Job) -> Result<Vec<PathBuf>, String> {
    let place = proxy(job).join(MODULE);
    let versions = place.join("@v");
    std::fs::create_dir_all(&versions).map_err(|error| error.to_string())?;
    let version = version();
    let file = |ending: &str| versions.join(format!("{version}.{ending}"));
    let manifest = read(&source().join("go.mod"))?;
    write(&versions.join("list"), &format!("{version}\n"))?;
    write(&file("info"), &format!("{{\"Version\":\"{version}\"}}\n"))?;
    write(&file("mod"), &manifest)?;
    let page = format!("<meta name=\"go-import\" content=\"{MODULE} mod https://alhena.dev/go\">\n");
    write(&place.join("index.html"), &page)?;
    let archive = file("zip");
    let mut python = Command::new("python3");
    python.args(["-c", ZIP]).arg(&archive).arg(format!("{MODULE}@{version}")).arg(cache::workspace());
    step(&mut python)?;
    Ok(vec![archive])
}

/// What a module's archive has to be: all names below `module@version/`, and the same bytes every time.
const ZIP: &str = r#"
import pathlib, sys, zipfile
archive, prefix, root = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
source = root / "hosts/openase"
names = [path.relative_to(source) for path in sorted(source.rglob("*")) if path.is_file() and path.suffix in (".go", ".mod", ".md")]
files = [(str(name), source / name) for name in names] + [(name, root / name) for name in ("LICENSE-APACHE", "LICENSE-MIT")]
with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as out:
    for name, path in files:
        entry = zipfile.ZipInfo(f"{prefix}/{name}", (1980, 1, 1, 0, 0, 0))
        entry.compress_type = zipfile.ZIP_DEFLATED
        out.writestr(entry, path.read_bytes())
"#;

/// Installs the module into one with nothing in it and runs its example from there.
fn try_out(job: &Job) -> Result<(), String> {
    let go = tools::go().map_err(|error| error.to_string())?;
    check_source(job, &go)?;
    let empty = job.scratch().join("empty");
    std::fs::create_dir(&empty).map_err(|error| error.to_string())?;
    let example = job.scratch().join("example");
    let in_empty = |arguments: &[&str]| {
        let mut command = Command::new(&go);
        command.args(arguments).current_dir(&empty);
        // As the README says it. Nobody else vouches for what a domain has that does not answer.
        offline(job, &mut command)
            .env("GOPROXY", format!("file://{},off", proxy(job).display()))
            .env_remove("GOSUMDB")
            .env("GONOSUMDB", "alhena.dev");
        command
    };
    step(&mut in_empty(&["mod", "init", "example.org/host"]))?;
    step(&mut in_empty(&["get", &format!("{MODULE}@{}", version())]))?;
    step(in_empty(&["build", "-o"]).arg(&example).arg(format!("{MODULE}/example")))?;
    from_checkout(job, &go)?;
    let sample = Sample::new()?;
    step(sample.prepare(&mut Command::new(&example)).env("ALHENA_BIN", alhena(job)?))?;
    sample.wrote_haiku()
}

/// The other way: a checkout in the place of the module.
fn from_checkout(job: &Job, go: &Path) -> Result<(), String> {
    let place = job.scratch().join("checkout");
    std::fs::create_dir(&place).map_err(|error| error.to_string())?;
    let manifest = format!(
        "module example.org/host\n\ngo 1.19\n\nrequire {MODULE} {}\nreplace {MODULE} => {}\n",
        version(),
        source().display()
    );
    write(&place.join("go.mod"), &manifest)?;
    let mut build = Command::new(go);
    build.args(["build", "-o", "example", &format!("{MODULE}/example")]).current_dir(&place);
    step(offline(job, &mut build))
}

/// Formatted, and without a fault that Go's own tools know.
fn check_source(job: &Job, go: &Path) -> Result<(), String> {
    let unformatted = lines(Command::new(go.with_file_name("gofmt")).arg("-l").arg(source()));
    if !unformatted.is_empty() {
        return Err(format!("gofmt would change {}", unformatted.join(", ")));
    }
    step(offline(job, Command::new(go).args(["vet", "./..."]).current_dir(source())))?;
    let mut staticcheck = tools::staticcheck().map_err(|error| error.to_string())?;
    staticcheck.arg("./...").current_dir(source());
    let older = job.scratch().join("older-build");
    step(offline(job, &mut staticcheck).env("GOCACHE", older))
}

/// Nothing but this machine, and no cache of modules but its own.
fn offline<'a>(job: &Job, command: &'a mut Command) -> &'a mut Command {
    command
        .env("GOPATH", job.scratch().join("go-path"))
        .env("GOCACHE", cache::root().join("go-build"))
        .env("GOFLAGS", "-mod=mod -modcacherw")
        .env("GOPROXY", "off")
        .env("GOSUMDB", "off")
        .env("GOTOOLCHAIN", "local")
}

fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}
