//! What is written in Python: its packages, and their types.

use std::io;
use std::path::Path;
use std::process::Command;

use crate::cache::workspace;
use crate::tools;

/// A package, and the parts of it that have types.
#[derive(Debug, Clone, Copy)]
pub struct PythonPackage {
    pub directory: &'static str,
    parts: &'static [&'static str],
}

pub const ALHENA: PythonPackage =
    PythonPackage { directory: "packages/python", parts: &["src", "tests", "examples"] };
pub const AIWF: PythonPackage = PythonPackage {
    directory: "hosts/aiwf",
    parts: &["src", "tests/test_provider.py", "tests/test_units.py", "tests/in_engine.py", "example.py"],
};
pub const CAO: PythonPackage = PythonPackage { directory: "hosts/cao", parts: &["src", "tests"] };

impl PythonPackage {
    /// `mypy --strict` over all of it, and over how it uses what it is built on. `scratch` is an empty directory.
    pub fn strict_types(&self, scratch: &Path) -> io::Result<Command> {
        // Of CAO only its own modules: those that it needs must not stand before those of mypy.
        let cao = "cli_agent_orchestrator";
        alhena_sys::files::symlink(tools::cao()?.join(cao), scratch.join(cao))?;
        let root = workspace();
        let sources =
            [root.join(self.directory).join("src"), root.join("packages/python/src"), scratch.to_path_buf()];
        let mut mypy = Command::new("python3");
        mypy.args(["-m", "mypy", "--strict", "--follow-imports=silent", "--cache-dir=/dev/null"])
            .args(self.parts)
            .current_dir(root.join(self.directory))
            .env("MYPYPATH", std::env::join_paths(sources).map_err(io::Error::other)?)
            .env("PYTHONPATH", tools::python_tools()?);
        Ok(mypy)
    }
}
