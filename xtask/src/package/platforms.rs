//! The platforms that the binary is packaged for: `packages/node/platforms.json`, which the module for Node reads as well.

use std::path::Path;

use alhena_testbed::cache;
use serde_json::{Value, json};

use crate::commands::lines;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Platform {
    pub package: String,
    pub target: String,
    os: String,
    cpu: String,
    libc: Option<String>,
}

pub fn all() -> Result<Vec<Platform>, String> {
    let file = cache::workspace().join("packages/node/platforms.json");
    let tell = |error: &dyn std::fmt::Display| format!("{}: {error}", file.display());
    let text = std::fs::read(&file).map_err(|error| tell(&error))?;
    let rows: Vec<Value> = serde_json::from_slice(&text).map_err(|error| tell(&error))?;
    let row = |row: &Value| {
        let text = |key: &str| row.get(key)?.as_str().map(str::to_owned);
        Some(Platform {
            package: text("package")?,
            target: text("target")?,
            os: text("os")?,
            cpu: text("cpu")?,
            libc: text("libc"),
        })
    };
    rows.iter().map(|value| row(value).ok_or_else(|| tell(&format!("not a platform: {value}")))).collect()
}

pub fn of(target: &str) -> Result<Platform, String> {
    let all = all()?;
    let names: Vec<&str> = all.iter().map(|platform| platform.target.as_str()).collect();
    let unknown = format!("there is no package for {target:?}; there are some for {}", names.join(", "));
    all.iter().find(|platform| platform.target == target).cloned().ok_or(unknown)
}

pub fn here() -> Result<String, String> {
    let said = lines(std::process::Command::new("rustc").arg("-vV"));
    let host = said.iter().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or_else(|| "rustc -vV names no host".to_owned())
}

pub fn can_build(target: &str) -> Result<(), String> {
    let sysroot = lines(std::process::Command::new("rustc").args(["--print", "sysroot"]));
    let library = sysroot.first().map(|root| Path::new(root).join("lib/rustlib").join(target).join("lib"));
    match library.is_some_and(|library| library.is_dir()) {
        true => Ok(()),
        false => Err(format!("Rust's library for {target} is not installed; `rustup target add {target}`")),
    }
}

impl Platform {
    /// The manifest of its package, by which npm installs it nowhere else.
    pub fn manifest(&self, version: &str) -> Value {
        let mut manifest = json!({
            "name": self.package, "version": version, "license": "MIT OR Apache-2.0",
            "description": "The program alhena; installed by the package alhena",
            "os": [self.os], "cpu": [self.cpu], "files": ["bin"], "preferUnplugged": true,
        });
        if let (Some(manifest), Some(libc)) = (manifest.as_object_mut(), &self.libc) {
            manifest.insert("libc".to_owned(), json!([libc]));
        }
        manifest
    }
}

#[cfg(test)]
mod tests {
    use alhena_testbed::cache;
    use serde_json::Value;

    use super::{all, here, of};

    #[test]
    fn the_module_for_node_depends_on_every_platform_and_nothing_else() {
        let manifest = std::fs::read(cache::workspace().join("packages/node/package.json")).unwrap();
        let manifest: Value = serde_json::from_slice(&manifest).unwrap();
        let mut named: Vec<&String> = manifest["optionalDependencies"].as_object().unwrap().keys().collect();
        let all = all().unwrap();
        let mut packages: Vec<&String> = all.iter().map(|platform| &platform.package).collect();
        named.sort();
        packages.sort();
        assert_eq!(named, packages);
    }

    #[test]
    fn a_platform_that_is_not_in_the_table_is_refused() {
        assert!(of(&here().unwrap()).is_ok());
        let said = of("x86_64-pc-windows-msvc").unwrap_err();
        assert!(
            said.starts_with(
                "there is no package for \"x86_64-pc-windows-msvc\"; there are some for x86_64-"
            ),
            "{said}"
        );
    }
}
