//! The Node behind Gemini CLI, and the start without a second process.
//!
//! `gemini` starts a second Node with a larger heap (0.61.0: half of the machine's memory if that is more than Node's own
//! limit, container limits ignored; 0.38.2 the same). Starting that one directly, as [`FastStart`] describes it, saves a
//! process and most of a second.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::str::FromStr;

use alhena_sys::processes;
use serde::Serialize;

use super::ANSWER_LIMIT;
use super::ask::{self, Answers, Patience};
use crate::env::{self, Environment};

/// A version of Node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NodeVersion {
    /// The first number: what Node calls a release line.
    pub major: u32,
    /// The second number.
    pub minor: u32,
    /// The third number.
    pub patch: u32,
}

impl NodeVersion {
    /// The oldest Node that Gemini CLI runs on (`engines` of 0.61.0 and of 0.38.2).
    pub const OLDEST: Self = Self { major: 20, minor: 0, patch: 0 };

    /// The oldest version that a package's `engines` allows, where that is one plain bound such as `>=20`.
    pub(super) fn oldest_in(engines: &str) -> Option<Self> {
        let bound = engines.trim().strip_prefix(">=")?.trim();
        let mut numbers = bound.split('.').map(|number| number.parse().ok());
        let version = Self {
            major: numbers.next()??,
            minor: numbers.next().unwrap_or(Some(0))?,
            patch: numbers.next().unwrap_or(Some(0))?,
        };
        numbers.next().is_none().then_some(version)
    }

    /// The first Node with `NODE_COMPILE_CACHE`.
    pub const COMPILE_CACHE: Self = Self { major: 22, minor: 1, patch: 0 };
}

impl std::fmt::Display for NodeVersion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

impl Serialize for NodeVersion {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl FromStr for NodeVersion {
    type Err = std::num::ParseIntError;

    /// Reads `v22.1.0`, as `node --version` prints it, also with a `-nightly...` behind.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim().trim_start_matches('v');
        let mut numbers = text.split(['.', '-', '+']).map(str::parse);
        let mut next = || numbers.next().unwrap_or_else(|| "".parse());
        Ok(Self { major: next()?, minor: next()?, patch: next()? })
    }
}

const QUESTION: &str = "node --version";

/// The version of a Node for next to nothing: from an earlier answer, from the header file that comes with it, or by asking
/// it once in its life. None for what a version manager puts on `PATH`, whose answer depends on where it is asked.
pub(super) fn settled_version(
    node: &Path,
    answers: &Answers,
    patience: impl Into<Patience>,
) -> Option<NodeVersion> {
    let file = fs::canonicalize(node).ok()?;
    file.file_stem().filter(|name| *name == "node" || *name == "nodejs")?;
    let remembered = answers.recall(&file, QUESTION).and_then(|answer| answer.parse().ok());
    remembered.or_else(|| header_version(&file)).or_else(|| {
        let version = ask_version(&file, Path::new("/"), patience)?;
        answers.keep(&file, QUESTION, &version.to_string());
        Some(version)
    })
}

/// The version of whatever is called `node`, in a directory.
pub(crate) fn version(node: &Path, dir: &Path, answers: &Answers) -> Option<NodeVersion> {
    settled_version(node, answers, ANSWER_LIMIT).or_else(|| ask_version(node, dir, ANSWER_LIMIT))
}

fn ask_version(node: &Path, dir: &Path, patience: impl Into<Patience>) -> Option<NodeVersion> {
    let mut command = Command::new(node);
    command.arg("--version").current_dir(dir);
    let answer = ask::ask(&mut command, patience, 1 << 10).ok()?;
    let text = String::from_utf8(answer.stdout).ok().filter(|_| answer.status.success())?;
    text.parse().ok()
}

/// Reads `include/node/node_version.h` beside `bin/node`: Node's own archives and most packages contain both.
fn header_version(node: &Path) -> Option<NodeVersion> {
    let header = node.parent()?.parent()?.join("include/node/node_version.h");
    let text = fs::read_to_string(header).ok()?;
    let number = |name: &str| {
        let define = format!("#define NODE_{name}_VERSION ");
        text.lines().find_map(|line| line.strip_prefix(&define)?.trim().parse().ok())
    };
    Some(NodeVersion { major: number("MAJOR")?, minor: number("MINOR")?, patch: number("PATCH")? })
}

/// How to start Gemini CLI in one process: `node ARGS ENTRY` with [`FastStart::variables`] in the environment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FastStart {
    /// The Node to start.
    pub node: PathBuf,
    /// Options for Node that the CLI's own first line asks for.
    pub node_options: Vec<String>,
    /// The heap limit the CLI would have given its second process; none when it would have given none.
    pub heap_mb: Option<u64>,
    /// The JavaScript file to run.
    pub entry: PathBuf,
    /// Where Node may keep compiled code; only with a Node that does.
    pub compile_cache: Option<PathBuf>,
}

impl FastStart {
    /// Node, its options and the file to run: the CLI's own arguments follow.
    #[must_use]
    pub fn command(&self) -> Vec<OsString> {
        let heap = self.heap_mb.map(|heap| format!("--max-old-space-size={heap}"));
        let options = self.node_options.iter().cloned().chain(heap).map(OsString::from);
        std::iter::once(self.node.clone().into_os_string())
            .chain(options)
            .chain([self.entry.clone().into_os_string()])
            .collect()
    }

    /// What has to be in the environment.
    #[must_use]
    pub fn variables(&self) -> Vec<(&'static str, OsString)> {
        let mut variables = vec![(env::GEMINI_CLI_NO_RELAUNCH, OsString::from("1"))];
        variables.extend(self.compile_cache.iter().map(|path| (env::NODE_COMPILE_CACHE, path.into())));
        variables
    }
}

/// The heap limit that the CLI would choose, in MB: half of all memory, unless `NODE_OPTIONS` already allows as much.
///
/// Node's own default is a quarter of the memory at most, so half is always more. A container's limit makes Node's
/// default smaller and leaves the CLI's choice as it is.
pub(super) fn heap_mb(env: &Environment, total_memory: u64) -> Option<u64> {
    let half = total_memory / (2 << 20);
    let chosen = env.get(env::NODE_OPTIONS).and_then(|options| {
        let options = options.to_string_lossy().replace('_', "-");
        let sizes =
            options.split_whitespace().filter_map(|option| option.strip_prefix("--max-old-space-size="));
        sizes.filter_map(|size| size.parse::<u64>().ok()).next_back()
    });
    (half > chosen.unwrap_or(0)).then_some(half)
}

/// All memory of the machine as Node's `os.totalmem()` sees it; unknown where Alhena cannot tell.
pub(super) fn total_memory() -> Option<u64> {
    processes::total_memory()
}

#[cfg(test)]
mod tests {
    use super::*;

    const GB: u64 = 1 << 30;

    #[test]
    fn versions_of_node_are_read_as_it_prints_them() {
        let version = |text: &str| text.parse::<NodeVersion>().ok().map(|found| found.to_string());
        assert_eq!(version("v20.20.2\n"), Some("20.20.2".to_owned()));
        assert_eq!(version("v25.0.0-nightly2025"), Some("25.0.0".to_owned()));
        assert_eq!(version("v20"), None);
        assert_eq!(version("Volta error"), None);
    }

    #[test]
    fn oldest_node_of_a_package_is_read_from_a_plain_bound_only() {
        let oldest = |text: &str| NodeVersion::oldest_in(text).map(|found| found.to_string());
        assert_eq!(oldest(">=20"), Some("20.0.0".to_owned()));
        assert_eq!(oldest(" >= 20.19.1"), Some("20.19.1".to_owned()));
        for unclear in ["^18 || >=20", "20", ">=20 <23", ">=x", ">=20.1.2.3", ""] {
            assert_eq!(oldest(unclear), None, "{unclear}");
        }
    }

    #[test]
    fn heap_is_half_of_memory_unless_node_options_allow_as_much() {
        let heap = |options: &str| heap_mb(&Environment::from([(env::NODE_OPTIONS, options)]), 16 * GB + 1);
        assert_eq!(heap_mb(&Environment::default(), 16 * GB + 1), Some(8192));
        assert_eq!(heap("--no-warnings"), Some(8192));
        assert_eq!(heap("--max-old-space-size=4096 --trace-gc"), Some(8192));
        assert_eq!(heap("--max-old-space-size=8192"), None);
        assert_eq!(heap("--max_old_space_size=12000"), None);
        assert_eq!(heap("--max-old-space-size=x"), Some(8192));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn memory_of_this_machine_is_known() {
        assert!(total_memory().unwrap() > 1 << 20);
    }

    #[test]
    fn fast_start_is_one_command_line_and_its_variables() {
        let start = FastStart {
            node: "/n/bin/node".into(),
            node_options: vec!["--no-warnings=DEP0040".to_owned()],
            heap_mb: Some(8192),
            entry: "/g/gemini.js".into(),
            compile_cache: Some("/c".into()),
        };
        let expected = ["/n/bin/node", "--no-warnings=DEP0040", "--max-old-space-size=8192", "/g/gemini.js"];
        assert_eq!(start.command(), expected.map(OsString::from));
        assert_eq!(
            start.variables(),
            [(env::GEMINI_CLI_NO_RELAUNCH, "1".into()), (env::NODE_COMPILE_CACHE, OsString::from("/c"))]
        );
    }

    #[test]
    #[cfg(unix)]
    fn version_comes_from_the_header_beside_node_then_from_asking_once() {
        let root = tempfile::tempdir().unwrap();
        let answers = Answers::in_directory(Some(root.path().join("answers")));
        let node = root.path().join("bin/node");
        fs::create_dir_all(root.path().join("bin")).unwrap();
        fs::create_dir_all(root.path().join("include/node")).unwrap();
        fs::write(&node, "not a program").unwrap();
        let header = root.path().join("include/node/node_version.h");
        let text = "#ifndef X\n#define NODE_MAJOR_VERSION 22\n#define NODE_MINOR_VERSION 1\n#define NODE_PATCH_VERSION 4\n";
        fs::write(&header, text).unwrap();
        assert_eq!(
            settled_version(&node, &answers, ANSWER_LIMIT),
            Some(NodeVersion { major: 22, minor: 1, patch: 4 })
        );

        fs::remove_file(header).unwrap();
        assert_eq!(settled_version(&node, &answers, ANSWER_LIMIT), None);
        let asked = root.path().join("asked");
        super::super::tests::script(&node, &format!("echo asked >> {}; echo v21.2.3", asked.display()));
        let expected = Some(NodeVersion { major: 21, minor: 2, patch: 3 });
        assert_eq!(settled_version(&node, &answers, ANSWER_LIMIT), expected);
        assert_eq!(settled_version(&node, &answers, ANSWER_LIMIT), expected);
        assert_eq!(version(&node, root.path(), &answers), expected);
        assert_eq!(fs::read_to_string(&asked).unwrap(), "asked\n");
    }

    #[test]
    #[cfg(unix)]
    fn version_managers_node_is_asked_where_it_counts_and_not_remembered() {
        let root = tempfile::tempdir().unwrap();
        let answers = Answers::in_directory(Some(root.path().join("answers")));
        super::super::tests::script(
            &root.path().join("volta-shim"),
            "test -e pinned && echo v18.0.0 || echo v22.0.0",
        );
        let node = root.path().join("node");
        alhena_sys::files::symlink("volta-shim", &node).unwrap();
        fs::create_dir(root.path().join("project")).unwrap();
        fs::write(root.path().join("project/pinned"), "").unwrap();
        assert_eq!(settled_version(&node, &answers, ANSWER_LIMIT), None);
        let major = |dir: &Path| version(&node, dir, &answers).map(|version| version.major);
        assert_eq!((major(root.path()), major(&root.path().join("project"))), (Some(22), Some(18)));
    }
}
