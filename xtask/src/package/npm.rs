//! npm packages: the binary in a package for its platform, the module `alhena` that finds it there, and adapters on top.

use std::path::{Path, PathBuf};
use std::process::Command;

use alhena_testbed::npm::Packages;
use alhena_testbed::{cache, tools};
use serde_json::json;

use super::platforms::{self, Platform};
use super::{Job, Package, Sample, alhena, step};

const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The module for Node with the binary, in the table of packages.
pub const ALHENA: &str = "npm:alhena";
const SDK: &str = "@alhena/agent-cli-sdk-gemini";
const PROMPTFOO: &str = "@alhena/promptfoo-gemini-cli";

pub fn packages() -> Vec<Package> {
    vec![
        Package {
            name: ALHENA,
            about: "npm: the binary for this platform, and the module for Node",
            build: |job| Ok(vec![build_platform(job)?, build_module(job, "alhena")?]),
            try_out: |job| {
                let project = Project::install(job, &["alhena"])?;
                project.run_example("packages/node/examples/haiku.ts")?;
                project.finds_its_own_binary()
            },
        },
        Package {
            name: SDK,
            about: "npm: the adapter for agent-cli-sdk",
            build: |job| Ok(vec![build_module(job, SDK)?]),
            try_out: |job| {
                Project::install(job, &["alhena", SDK])?.run_example("hosts/agent-cli-sdk/examples/basic.ts")
            },
        },
        Package {
            name: PROMPTFOO,
            about: "npm: the provider for promptfoo",
            build: |job| Ok(vec![build_module(job, PROMPTFOO)?]),
            try_out: |job| Project::install(job, &["alhena", PROMPTFOO])?.evaluate(),
        },
    ]
}

fn platform(job: &Job) -> Result<Platform, String> {
    platforms::of(&job.target.clone().map_or_else(platforms::here, Ok)?)
}

fn tarball(job: &Job, name: &str) -> PathBuf {
    job.out.join(format!("{}-{VERSION}.tgz", name.trim_start_matches('@').replace('/', "-")))
}

fn build_platform(job: &Job) -> Result<PathBuf, String> {
    let (platform, place) = (platform(job)?, job.scratch().join("platform"));
    stage(&platform, &alhena(job)?, &place)?;
    pack(job, &place, &platform.package)
}

fn stage(platform: &Platform, binary: &Path, place: &Path) -> Result<(), String> {
    let tell = |error: std::io::Error| error.to_string();
    std::fs::create_dir_all(place.join("bin")).map_err(tell)?;
    let own = place.join("bin/alhena");
    std::fs::copy(binary, &own).map_err(|error| format!("{}: {error}", binary.display()))?;
    // One that came from elsewhere, such as an archive of another machine, may have lost that.
    std::fs::set_permissions(&own, std::os::unix::fs::PermissionsExt::from_mode(0o755)).map_err(tell)?;
    let manifest = platform.manifest(VERSION);
    std::fs::write(place.join("package.json"), format!("{manifest:#}\n")).map_err(tell)?;
    let readme = "The program `alhena` for one platform. Install the package `alhena` instead.\n";
    std::fs::write(place.join("README.md"), readme).map_err(tell)
}

/// A module, compiled; with those that it needs beside it.
fn build_module(job: &Job, name: &str) -> Result<PathBuf, String> {
    let packages = Packages::build(&job.scratch().join(name), &[name]).map_err(|error| error.to_string())?;
    pack(job, &packages.directory(name), name)
}

fn pack(job: &Job, place: &Path, name: &str) -> Result<PathBuf, String> {
    let mut npm = npm(job);
    step(npm.args(["pack", "--silent", "--pack-destination"]).arg(&job.out).current_dir(place))?;
    let made = tarball(job, name);
    if made.is_file() { Ok(made) } else { Err(format!("npm made no {}", made.display())) }
}

/// npm that asks nobody, and has nothing but what it is given.
fn npm(job: &Job) -> Command {
    let mut npm = Command::new("npm");
    npm.env("npm_config_cache", job.scratch().join("npm-cache"))
        .env("npm_config_offline", "true")
        .env("npm_config_update_notifier", "false")
        .env("npm_config_audit", "false")
        .env("npm_config_fund", "false");
    npm
}

/// An empty project with packages installed in it.
struct Project {
    place: PathBuf,
    own: PathBuf,
}

impl Project {
    /// Installs these packages and the binary, from their tarballs only. Those that were not built before are.
    fn install(job: &Job, names: &[&str]) -> Result<Self, String> {
        let place = job.scratch().join("project");
        std::fs::create_dir_all(&place).map_err(|error| error.to_string())?;
        let manifest = "{\"private\": true, \"type\": \"module\"}\n";
        std::fs::write(place.join("package.json"), manifest).map_err(|error| error.to_string())?;
        let mut install = npm(job);
        install.args(["install", "--no-save"]).current_dir(&place);
        let platform = platform(job)?.package;
        let made = tarball(job, &platform);
        install.arg(if made.is_file() { made } else { build_platform(job)? });
        for name in names {
            let made = tarball(job, name);
            install.arg(if made.is_file() { made } else { build_module(job, name)? });
        }
        step(&mut install)?;
        let own = place.join("node_modules").join(platform).join("bin/alhena");
        Ok(Self { place, own })
    }

    /// Compiles an example against what was installed, and runs it.
    fn run_example(&self, example: &str) -> Result<(), String> {
        let source = cache::workspace().join(example);
        let name = source.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let copied = self.place.join(format!("{name}.ts"));
        std::fs::copy(&source, &copied).map_err(|error| format!("{example}: {error}"))?;
        let modules = tools::typescript().map_err(|error| error.to_string())?;
        let mut tsc = Command::new("node");
        tsc.arg(modules.join("typescript/bin/tsc"))
            .args([
                "--strict",
                "--module",
                "NodeNext",
                "--target",
                "ES2022",
                "--types",
                "node",
                "--typeRoots",
            ])
            .arg(modules.join("@types"))
            .arg(&copied)
            .current_dir(&self.place);
        step(&mut tsc)?;
        let sample = Sample::new()?;
        step(sample.prepare(Command::new("node").arg(self.place.join(format!("{name}.js")))))?;
        sample.wrote_haiku()
    }

    /// Runs promptfoo itself with the provider that was installed.
    fn evaluate(&self) -> Result<(), String> {
        let tell = |error: std::io::Error| error.to_string();
        let sample = Sample::new()?;
        let config = json!({
            "providers": [{
                "id": format!("package:{PROMPTFOO}:GeminiCli"),
                "config": {"working_dir": sample.workspace(), "approval_mode": "auto_edit"},
            }],
            // It takes a prompt that ends like a file's name for a file.
            "prompts": ["Write into haiku.txt a haiku about rivers"],
            "tests": [{"assert": [{"type": "equals", "value": "Here it is."}]}],
        });
        let file = self.place.join("promptfooconfig.json");
        std::fs::write(&file, config.to_string()).map_err(tell)?;
        let mut eval = Command::new(tools::node22().map_err(tell)?);
        sample.prepare(
            eval.arg(tools::promptfoo().map_err(tell)?).args(["eval", "--no-progress-bar", "-c"]).arg(&file),
        );
        eval.current_dir(&self.place).env("PROMPTFOO_CONFIG_DIR", self.place.join("promptfoo"));
        for quiet in ["TELEMETRY", "UPDATE", "REMOTE_GENERATION", "SHARING"] {
            eval.env(format!("PROMPTFOO_DISABLE_{quiet}"), "1");
        }
        step(&mut eval)?;
        sample.wrote_haiku()
    }

    /// The module and `npx alhena` use the binary that was installed, not one that happens to be on PATH.
    fn finds_its_own_binary(&self) -> Result<(), String> {
        let script = format!(
            "import {{ findBinary }} from 'alhena'; if (findBinary() !== {:?}) throw new Error(findBinary());",
            self.own.display().to_string()
        );
        let mut node = Command::new("node");
        node.args(["--input-type=module", "-e", &script]).current_dir(&self.place).env_remove("ALHENA_BIN");
        step(&mut node)?;
        let mut npx = Command::new(self.place.join("node_modules/.bin/alhena"));
        step(npx.arg("--version").current_dir(&self.place).env_remove("ALHENA_BIN"))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{VERSION, platforms, stage};

    #[test]
    fn each_platform_has_a_package_that_is_installed_nowhere_else() {
        let scratch = tempfile::tempdir().unwrap();
        let binary = scratch.path().join("dummy");
        std::fs::write(&binary, "not even a program").unwrap();
        let mut told = Vec::new();
        for platform in platforms::all().unwrap() {
            let place = scratch.path().join(&platform.target);
            stage(&platform, &binary, &place).unwrap();
            let mode = std::fs::metadata(place.join("bin/alhena")).unwrap().permissions();
            assert_eq!(std::os::unix::fs::PermissionsExt::mode(&mode) & 0o777, 0o755);
            let manifest = std::fs::read(place.join("package.json")).unwrap();
            let manifest: Value = serde_json::from_slice(&manifest).unwrap();
            assert_eq!(
                (&manifest["name"], &manifest["version"]),
                (&json!(platform.package), &json!(VERSION))
            );
            told.push(json!([platform.target, manifest["os"], manifest["cpu"], manifest["libc"]]));
        }
        let wanted = json!([
            ["x86_64-unknown-linux-gnu", ["linux"], ["x64"], ["glibc"]],
            ["x86_64-unknown-linux-musl", ["linux"], ["x64"], ["musl"]],
            ["aarch64-unknown-linux-gnu", ["linux"], ["arm64"], ["glibc"]],
            ["aarch64-unknown-linux-musl", ["linux"], ["arm64"], ["musl"]],
            ["x86_64-apple-darwin", ["darwin"], ["x64"], null],
            ["aarch64-apple-darwin", ["darwin"], ["arm64"], null],
        ]);
        assert_eq!(Value::Array(told), wanted);
    }
}
