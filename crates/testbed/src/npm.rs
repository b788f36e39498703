//! The npm packages of this repository, copied and compiled outside of it, beside each other as an installation has them.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use alhena_sys::files::symlink;

use crate::bounded::run_bounded;
use crate::{cache, tools};

/// Each package and its directory; all others need the first.
const PACKAGES: [(&str, &str); 3] = [
    ("alhena", "packages/node"),
    ("@alhena/agent-cli-sdk-gemini", "hosts/agent-cli-sdk"),
    ("@alhena/promptfoo-gemini-cli", "hosts/promptfoo"),
];

/// Compiling one takes seconds; cores are busy.
const LIMIT: Duration = Duration::from_secs(600);

#[derive(Debug, Clone)]
pub struct Packages {
    root: PathBuf,
}

impl Packages {
    /// Compiles packages, and those that they need, in an empty directory. Strictly: any complaint of the compiler is an error.
    pub fn build(root: &Path, wanted: &[&str]) -> io::Result<Self> {
        let packages = Self { root: root.to_owned() };
        let modules = root.join("node_modules");
        let fetched = tools::typescript()?;
        std::fs::create_dir_all(modules.join("@alhena"))?;
        for shared in ["typescript", "@types"] {
            symlink(fetched.join(shared), modules.join(shared))?;
        }
        if let Some(unknown) = wanted.iter().find(|name| !PACKAGES.iter().any(|(known, _)| known == *name)) {
            return Err(io::Error::other(format!("there is no package {unknown}")));
        }
        for (name, source) in
            PACKAGES.into_iter().filter(|(name, _)| *name == "alhena" || wanted.contains(name))
        {
            let place = packages.directory(name);
            copy(&cache::workspace().join(source), &place)?;
            symlink(&place, modules.join(name))?;
            packages.compile(name)?;
        }
        Ok(packages)
    }

    pub fn directory(&self, name: &str) -> PathBuf {
        self.root.join("packages").join(name.rsplit('/').next().unwrap_or(name))
    }

    fn compile(&self, name: &str) -> io::Result<()> {
        let compiler = self.root.join("node_modules/typescript/bin/tsc");
        let mut command = Command::new("node");
        command.arg(compiler).args(["-p", ".", "--strict", "--module", "NodeNext"]);
        let done = run_bounded(command.current_dir(self.directory(name)), LIMIT)?;
        match done.succeeded() {
            true => Ok(()),
            false => Err(io::Error::other(format!("tsc {name}: {}\n{}", done.ending(), done.stdout_text()))),
        }
    }
}

/// A directory without what was made in it.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let name = entry.file_name();
        if name == "node_modules" || name == "dist" {
            continue;
        }
        match entry.file_type()?.is_dir() {
            true => copy(&entry.path(), &to.join(&name))?,
            false => drop(std::fs::copy(entry.path(), to.join(&name))?),
        }
    }
    Ok(())
}
