//! From a `gemini` command to the JavaScript file and the package behind it, without running anything.
//!
//! `gemini --version` takes 2.8 s on 0.61.0, and the version stands in the `package.json` above the file that the command
//! leads to. npm links the command to that file; npm on Windows and pnpm write a small script ("shim") that starts Node
//! on it; Volta's command leads nowhere, but its package has a fixed place.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::node::NodeVersion;

/// The name of the package on npm; a fork has its own.
pub const PACKAGE: &str = "@google/gemini-cli";

/// A shim is far smaller than this; what is larger is read only as far as its first line needs.
const SHIM_LIMIT: u64 = 32 << 10;

/// How a command leads to its JavaScript file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// By links alone, or it is that file.
    Link,
    /// By a shim that a package manager wrote, which does nothing but start Node.
    Shim,
    /// By a script of somebody's own, which may set up more than it shows.
    Wrapper,
}

/// The JavaScript file behind a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct EntryScript {
    pub(super) file: PathBuf,
    pub(super) way: Way,
    /// What the file's first line asks for: an interpreter and its options.
    pub(super) shebang: Vec<String>,
    /// The scripts on the way.
    pub(super) through: Vec<PathBuf>,
}

/// The package a file belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Package {
    pub(super) dir: PathBuf,
    pub(super) name: String,
    pub(super) version: String,
    /// The oldest Node that it says it runs on.
    pub(super) node: Option<NodeVersion>,
}

/// The JavaScript file that a command leads to, if that can be seen.
pub(super) fn entry(command: &Path) -> Option<EntryScript> {
    let mut at = fs::canonicalize(command).ok()?;
    let mut way = Way::Link;
    let mut through = Vec::new();
    // A shim may lead to a link that leads to another shim; more than a few is a circle.
    for _ in 0..5 {
        let start = beginning(&at)?;
        let shebang = shebang(&start);
        if is_javascript(&at, &shebang) {
            return Some(EntryScript { file: at, way, shebang, through });
        }
        if at.file_stem().is_some_and(|name| name == "volta-shim") {
            // Volta would have chosen the Node that this package was installed with.
            way = Way::Wrapper;
            at = volta_package(&at)?;
            continue;
        }
        let text = String::from_utf8(start).ok()?;
        way = if way != Way::Wrapper && is_generated(&text) { Way::Shim } else { Way::Wrapper };
        // What a shim calls its own directory is where it lies, not where a link to it does.
        let next = fs::canonicalize(target(&text, at.parent()?)?).ok()?;
        through.push(std::mem::replace(&mut at, next));
    }
    None
}

/// The package above a file: Gemini CLI's own, or a fork's that provides a `gemini` command.
pub(super) fn package(file: &Path) -> Option<Package> {
    file.ancestors().skip(1).take(8).find_map(|dir| {
        let manifest = manifest(dir)?;
        let provides = manifest.name == PACKAGE || manifest.provides_gemini();
        let node = manifest.engines.get("node").and_then(|wanted| NodeVersion::oldest_in(wanted.as_str()?));
        let (dir, name, version) = (dir.to_path_buf(), manifest.name, manifest.version);
        provides.then_some(Package { dir, name, version, node })
    })
}

#[derive(Deserialize)]
struct Manifest {
    name: String,
    version: String,
    #[serde(default)]
    bin: serde_json::Value,
    #[serde(default)]
    engines: serde_json::Value,
}

impl Manifest {
    fn provides_gemini(&self) -> bool {
        match &self.bin {
            serde_json::Value::Object(commands) => commands.contains_key("gemini"),
            serde_json::Value::String(_) => self.name.rsplit('/').next() == Some("gemini"),
            _ => false,
        }
    }
}

fn manifest(dir: &Path) -> Option<Manifest> {
    let mut text = Vec::new();
    File::open(dir.join("package.json")).ok()?.take(1 << 20).read_to_end(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}

fn beginning(path: &Path) -> Option<Vec<u8>> {
    let mut start = Vec::new();
    File::open(path).ok()?.take(SHIM_LIMIT).read_to_end(&mut start).ok()?;
    Some(start)
}

/// The words of a `#!` line, without `env` and its options, so that the interpreter comes first.
fn shebang(start: &[u8]) -> Vec<String> {
    let Some(rest) = start.strip_prefix(b"#!") else { return Vec::new() };
    let line = rest.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let line = String::from_utf8_lossy(line);
    let mut words = line.split_whitespace().map(str::to_owned).peekable();
    if words.peek().is_some_and(|word| word.ends_with("/env")) {
        words.next();
        while words.next_if(|word| word.starts_with('-')).is_some() {}
    }
    words.collect()
}

fn is_javascript(path: &Path, shebang: &[String]) -> bool {
    let by_name =
        path.extension().is_some_and(|extension| ["js", "mjs", "cjs"].iter().any(|js| extension == *js));
    by_name || shebang.first().is_some_and(|program| program.rsplit('/').next() == Some("node"))
}

/// Volta installs each package in an image of its own, beside its shims: `tools/image/packages/NAME`.
fn volta_package(shim: &Path) -> Option<PathBuf> {
    let homes = shim.ancestors().skip(1).take(4);
    let package = |home: &Path| home.join("tools/image/packages").join(PACKAGE);
    homes.map(package).find_map(|package| fs::canonicalize(package.join("bin/gemini")).ok())
}

/// Whether a package manager wrote this shim: npm and pnpm for shells, npm and pnpm for Windows.
fn is_generated(text: &str) -> bool {
    let shell = text.contains("basedir=$(dirname \"$(echo \"$0\" | sed -e 's,\\\\,/,g')\")");
    let windows = text.trim_start().to_ascii_uppercase().starts_with("@")
        && text.contains("%*")
        && (text.contains("%dp0%") || text.contains("%~dp0"));
    shell || windows
}

/// The file that a shim hands its arguments to: a JavaScript file, or else another `gemini` command.
fn target(text: &str, directory: &Path) -> Option<PathBuf> {
    let lines = || text.lines().filter(|line| !line.trim_start().starts_with('#'));
    let paths = || lines().flat_map(words).filter_map(|word| located(&word, directory));
    let script = paths().find(|path| is_javascript(path, &[]) && path.is_file());
    script.or_else(|| {
        paths().find(|path| path.file_stem().is_some_and(|name| name == "gemini") && path.is_file())
    })
}

/// The words of a line as a shell would split them: quotes hold a word together and are dropped.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut quote = None;
    for character in line.chars() {
        match (quote, character) {
            (Some(open), _) if open == character => quote = None,
            (None, '"' | '\'') => quote = Some(character),
            (None, ' ' | '\t' | ';') => words.push(std::mem::take(&mut word)),
            _ => word.push(character),
        }
    }
    words.push(word);
    words.retain(|word| !word.is_empty());
    words
}

/// The path a word stands for, seen from the shim's own directory; none for a bare word.
fn located(word: &str, directory: &Path) -> Option<PathBuf> {
    const OWN_DIRECTORY: &[&str] = &["$basedir", "${basedir}", "%dp0%", "%~dp0"];
    let relative = OWN_DIRECTORY.iter().find_map(|own| word.strip_prefix(own));
    match relative {
        Some(rest) => Some(directory.join(rest.trim_start_matches(['/', '\\']).replace('\\', "/"))),
        None => Path::new(word).is_absolute().then(|| PathBuf::from(word)),
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use alhena_sys::files::symlink;

    use super::*;

    /// What `npm install` puts into `node_modules/@google/gemini-cli`, as far as looking it up is concerned.
    fn package_in(root: &Path, shebang: &str) -> PathBuf {
        let dir = root.join("node_modules/@google/gemini-cli");
        fs::create_dir_all(dir.join("bundle")).unwrap();
        let manifest =
            r#"{"name": "@google/gemini-cli", "version": "0.61.0", "bin": {"gemini": "bundle/gemini.js"}}"#;
        fs::write(dir.join("package.json"), manifest).unwrap();
        fs::write(dir.join("bundle/gemini.js"), format!("{shebang}\nimport './chunk.js';\n")).unwrap();
        fs::canonicalize(dir).unwrap()
    }

    fn entry_of(command: &Path) -> Option<(PathBuf, Way)> {
        entry(command).map(|entry| (entry.file, entry.way))
    }

    #[test]
    fn npm_link_leads_to_the_file_its_package_and_its_node_options() {
        let root = tempfile::tempdir().unwrap();
        let dir = package_in(root.path(), "#!/usr/bin/env -S node --no-warnings=DEP0040");
        let bin = root.path().join("node_modules/.bin");
        fs::create_dir(&bin).unwrap();
        symlink("../@google/gemini-cli/bundle/gemini.js", bin.join("gemini")).unwrap();
        symlink(bin.join("gemini"), root.path().join("gemini")).unwrap();
        let file = dir.join("bundle/gemini.js");
        let shebang = ["node", "--no-warnings=DEP0040"].map(str::to_owned).to_vec();
        assert_eq!(
            entry(&root.path().join("gemini")),
            Some(EntryScript { file: file.clone(), way: Way::Link, shebang, through: Vec::new() })
        );
        assert_eq!(
            package(&file),
            Some(Package { dir, name: PACKAGE.to_owned(), version: "0.61.0".to_owned(), node: None })
        );
    }

    #[test]
    fn shims_of_pnpm_and_of_npm_on_windows_lead_to_the_file() {
        let root = tempfile::tempdir().unwrap();
        let file = package_in(root.path(), "#!/usr/bin/env node").join("bundle/gemini.js");
        let shell = r##"#!/bin/sh
basedir=$(dirname "$(echo "$0" | sed -e 's,\\,/,g')")
if [ -x "$basedir/node" ]; then
  exec "$basedir/node"  "$basedir/node_modules/@google/gemini-cli/bundle/gemini.js" "$@"
else
  exec node  "$basedir/node_modules/@google/gemini-cli/bundle/gemini.js" "$@"
fi
"##;
        let windows = "@ECHO off\r\nGOTO start\r\n:find_dp0\r\nSET dp0=%~dp0\r\nEXIT /b\r\n:start\r\nSETLOCAL\r\n\
            CALL :find_dp0\r\nendLocal & goto #_undefined_# 2>NUL || title %COMSPEC% & \"%_prog%\"  \
            \"%dp0%\\node_modules\\@google\\gemini-cli\\bundle\\gemini.js\" %*\r\n";
        for (name, text) in [("gemini", shell), ("gemini.cmd", windows)] {
            fs::write(root.path().join(name), text).unwrap();
            assert_eq!(entry_of(&root.path().join(name)), Some((file.clone(), Way::Shim)), "{name}");
        }
        // A link elsewhere to a shim: the shim's own directory counts.
        fs::create_dir(root.path().join("elsewhere")).unwrap();
        let link = root.path().join("elsewhere/gemini");
        symlink(root.path().join("gemini"), &link).unwrap();
        assert_eq!(entry_of(&link), Some((file, Way::Shim)));
    }

    #[test]
    fn script_of_ones_own_is_seen_through_but_not_taken_for_a_shim() {
        let root = tempfile::tempdir().unwrap();
        let file = package_in(root.path(), "#!/usr/bin/env node").join("bundle/gemini.js");
        let inner = root.path().join("bin/gemini");
        fs::create_dir(root.path().join("bin")).unwrap();
        symlink(&file, &inner).unwrap();
        let outer = root.path().join("gemini");
        fs::write(&outer, format!("#!/bin/sh\nexport GEMINI_API_KEY=x\nexec '{}' \"$@\"\n", inner.display()))
            .unwrap();
        assert_eq!(entry_of(&outer), Some((file, Way::Wrapper)));
    }

    #[test]
    fn volta_shim_leads_to_the_package_image() {
        let root = tempfile::tempdir().unwrap();
        let image = root.path().join("tools/image/packages/@google/gemini-cli");
        let file = package_in(&image.join("lib"), "#!/usr/bin/env node").join("bundle/gemini.js");
        fs::create_dir_all(image.join("bin")).unwrap();
        symlink(&file, image.join("bin/gemini")).unwrap();
        fs::create_dir(root.path().join("bin")).unwrap();
        fs::write(root.path().join("bin/volta-shim"), b"\x7fELF").unwrap();
        symlink("volta-shim", root.path().join("bin/gemini")).unwrap();
        assert_eq!(entry_of(&root.path().join("bin/gemini")), Some((file, Way::Wrapper)));
    }

    #[test]
    fn circle_of_scripts_and_foreign_bytes_lead_nowhere() {
        let root = tempfile::tempdir().unwrap();
        let (one, other) = (root.path().join("a/gemini"), root.path().join("b/gemini"));
        fs::create_dir(root.path().join("a")).unwrap();
        fs::create_dir(root.path().join("b")).unwrap();
        fs::write(&one, format!("#!/bin/sh\nexec {}\n", other.display())).unwrap();
        fs::write(&other, format!("#!/bin/sh\nexec {}\n", one.display())).unwrap();
        assert_eq!(entry(&one), None);
        fs::write(&one, b"#!\xff\xfe\n\xc3\x28\"'").unwrap();
        assert_eq!(entry(&one), None);
        fs::write(&one, "").unwrap();
        assert_eq!(entry(&one), None);
    }

    #[test]
    fn fork_keeps_its_name_and_unrelated_packages_are_passed_over() {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("fork");
        fs::create_dir_all(dir.join("dist/src")).unwrap();
        fs::write(dir.join("dist/package.json"), r#"{"type": "module"}"#).unwrap();
        fs::write(
            dir.join("package.json"),
            r#"{"name": "@acme/gemini", "version": "1.2.3", "bin": {"gemini": "dist/src/x.js"}}"#,
        )
        .unwrap();
        let found = package(&dir.join("dist/src/x.js"));
        assert_eq!(
            found,
            Some(Package {
                dir: dir.clone(),
                name: "@acme/gemini".into(),
                version: "1.2.3".into(),
                node: None
            })
        );
        fs::write(dir.join("package.json"), r#"{"name": "other", "version": "1.2.3", "bin": {"x": "y"}}"#)
            .unwrap();
        assert_eq!(package(&dir.join("dist/src/x.js")), None);
    }
}
