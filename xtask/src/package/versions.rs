//! One version for all: manifests that need one hold the workspace's, and this says which do not.

use std::path::Path;

use alhena_testbed::cache;

use super::platforms;

/// Manifests with a version of their own, and how the line with it begins.
const MANIFESTS: &[(&str, &str)] = &[
    ("hosts/aiwf/pyproject.toml", "version = \""),
    ("hosts/aiwf/pyproject.toml", "dependencies = [\"alhena=="),
    ("hosts/cao/pyproject.toml", "version = \""),
    ("hosts/cao/pyproject.toml", "dependencies = [\"alhena=="),
    ("packages/node/package.json", "\"version\": \""),
    ("hosts/agent-cli-sdk/package.json", "\"version\": \""),
    ("hosts/agent-cli-sdk/package.json", "\"alhena\": \""),
    ("hosts/promptfoo/package.json", "\"version\": \""),
    ("hosts/promptfoo/package.json", "\"alhena\": \""),
    ("hosts/github-action/run.sh", "readonly ALHENA_VERSION=\""),
    ("hosts/openase/README.md", "go get alhena.dev/hosts/openase@v"),
];

pub fn check() -> Result<(), String> {
    let packages: Vec<String> =
        platforms::all()?.iter().map(|platform| format!("\"{}\": \"", platform.package)).collect();
    let platforms = packages.iter().map(|begin| ("packages/node/package.json", begin.as_str()));
    let manifests: Vec<(&str, &str)> = MANIFESTS.iter().copied().chain(platforms).collect();
    check_in(&cache::workspace(), env!("CARGO_PKG_VERSION"), &manifests)
}

fn check_in(root: &Path, wanted: &str, manifests: &[(&str, &str)]) -> Result<(), String> {
    let wrong: Vec<String> = manifests
        .iter()
        .filter_map(|(path, begin)| {
            let text = std::fs::read_to_string(root.join(path)).unwrap_or_default();
            let line = text.lines().find_map(|line| line.trim_start().strip_prefix(begin));
            let found = line.and_then(|rest| rest.split('"').next()).unwrap_or("none");
            (found != wanted).then(|| format!("{path} has version {found}, the workspace has {wanted}"))
        })
        .collect();
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}

#[cfg(test)]
mod tests {
    use super::{check, check_in};

    #[test]
    fn every_manifest_has_the_version_of_the_workspace() {
        assert_eq!(check(), Ok(()));
    }

    #[test]
    fn another_version_is_told() {
        let root = tempfile::tempdir().unwrap();
        std::fs::write(root.path().join("package.json"), "{\n  \"version\": \"0.0.9\",\n}\n").unwrap();
        let manifests = [("package.json", "\"version\": \""), ("gone.toml", "version = \"")];
        let said = check_in(root.path(), "0.1.0", &manifests).unwrap_err();
        assert_eq!(
            said,
            "package.json has version 0.0.9, the workspace has 0.1.0\ngone.toml has version none, the workspace has 0.1.0"
        );
    }
}
