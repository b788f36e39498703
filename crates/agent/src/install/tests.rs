//! Installs by a stand-in for npm: what is asked of it, what is made of it, and what happens when it fails.

use alhena_model::Hint as _;
use alhena_sys::files;

use super::*;
use crate::env;

/// A machine with a `node` and an `npm` that do as told.
struct Machine {
    root: tempfile::TempDir,
}

/// What the stand-in for npm does to install: the package and its command, as npm makes them.
const INSTALLS: &str = r##"
case $1 in rebuild) exit 0;; esac
for a; do case $a in @google/gemini-cli@*) v=${a##*@};; esac; done
mkdir -p node_modules/.bin node_modules/@google/gemini-cli/bundle
printf '{"name":"@google/gemini-cli","version":"%s","bin":{"gemini":"bundle/gemini.js"}}' "$v" \
  > node_modules/@google/gemini-cli/package.json
printf '#!/usr/bin/env node\n' > node_modules/@google/gemini-cli/bundle/gemini.js
chmod +x node_modules/@google/gemini-cli/bundle/gemini.js
ln -s ../@google/gemini-cli/bundle/gemini.js node_modules/.bin/gemini
"##;

impl Machine {
    fn new(npm: &str) -> Self {
        let machine = Self { root: tempfile::tempdir().unwrap() };
        machine.program("node", "echo v20.1.0");
        machine.program("npm", npm);
        machine
    }

    fn at(&self, path: &str) -> PathBuf {
        self.root.path().canonicalize().unwrap().join(path)
    }

    fn program(&self, name: &str, body: &str) {
        let path = self.at("bin").join(name);
        fs::create_dir_all(self.at("bin")).unwrap();
        fs::write(&path, format!("#!/bin/sh\nPATH=/usr/bin:/bin\n{body}\n")).unwrap();
        files::set_mode(&path, 0o755).unwrap();
    }

    fn installer(&self) -> Installer {
        let env = Environment::from([
            (env::PATH, self.at("bin")),
            (env::ALHENA_HOME, self.at("alhena")),
            (env::HOME, self.at("home")),
        ]);
        Installer::new().env(env).limit(Duration::from_secs(60))
    }

    fn install(&self, version: &str) -> Result<Gemini, InstallError> {
        self.installer().install(Some(version.parse().unwrap()), |_| {})
    }

    /// What is in the directory of installs, apart from locks.
    fn entries(&self) -> Vec<String> {
        let entries = fs::read_dir(self.at("alhena/data/gemini-cli")).into_iter().flatten().flatten();
        let mut names: Vec<_> = entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
        names.retain(|name| !name.ends_with(".lock"));
        names.sort();
        names
    }
}

#[test]
fn install_is_found_listed_reused_and_removed() {
    let machine = Machine::new("");
    let log = machine.at("log");
    machine.program("npm", &format!("echo \"$1 $2\" >> {}\n{INSTALLS}", log.display()));
    let gemini = machine.install("0.38.2").unwrap();
    let dir = machine.at("alhena/data/gemini-cli/0.38.2");
    assert_eq!(gemini.path, dir.join("node_modules/.bin/gemini"));
    assert_eq!((gemini.version.to_string(), gemini.place), ("0.38.2".to_owned(), Place::Installed));
    assert_eq!(machine.install("0.38.2").unwrap(), gemini);
    assert_eq!(fs::read_to_string(&log).unwrap(), "install --no-save\nrebuild @github/keytar\n");

    machine.install("0.61.0").unwrap();
    let list = |machine: &Machine| -> Vec<_> {
        machine
            .installer()
            .installed()
            .into_iter()
            .map(|found| (found.version.to_string(), found.dir))
            .collect()
    };
    let newer = machine.at("alhena/data/gemini-cli/0.61.0");
    assert_eq!(list(&machine), [("0.61.0".to_owned(), newer), ("0.38.2".to_owned(), dir.clone())]);
    let found =
        Finder::new().env(machine.installer().env).dir(machine.at("")).path(&gemini.path).find().unwrap();
    assert_eq!(found.version, gemini.version);

    assert!(machine.installer().uninstall(&gemini.version).unwrap());
    assert!(!machine.installer().uninstall(&gemini.version).unwrap());
    assert_eq!(machine.entries(), ["0.61.0"]);
}

#[test]
fn pinned_version_is_the_default_and_npm_is_kept_from_going_global() {
    let machine = Machine::new("");
    let log = machine.at("log");
    machine.program("npm", &format!("echo \"$PWD\" \"$@\" >> {}\n{INSTALLS}", log.display()));
    let mut progress = Vec::new();
    let gemini = machine.installer().install(None, |step| progress.push(step)).unwrap();
    assert_eq!(gemini.version, PINNED);
    let place = machine.at("alhena/data/gemini-cli/0.61.0");
    assert_eq!(progress.first(), Some(&Progress::Started { version: PINNED, dir: place }));
    let log = fs::read_to_string(log).unwrap();
    let line = log.lines().next().unwrap();
    let (directory, _) = line.split_once(' ').unwrap();
    assert_eq!(
        line,
        format!(
            "{directory} install --no-save --no-package-lock --ignore-scripts @google/gemini-cli@0.61.0 --global=false \
             --location=project --workspaces=false --no-audit --no-fund --no-progress --no-color --no-update-notifier \
             --loglevel=http --yes --prefix {directory}"
        )
    );
    assert!(Path::new(directory).starts_with(machine.at("alhena/data/gemini-cli")));
}

#[test]
fn failure_of_npm_is_told_in_its_own_words_and_leaves_nothing() {
    let machine =
        Machine::new("echo fetching; printf 'npm error \\033[31mcode ETARGET\\033[0m\\n' >&2; exit 1");
    let mut lines = Vec::new();
    let error = machine
        .installer()
        .install(None, |step| {
            if let Progress::Line(line) = step {
                lines.push(line);
            }
        })
        .unwrap_err();
    assert_eq!(error.to_string(), "npm failed (exit status: 1)\nfetching\nnpm error [31mcode ETARGET[0m");
    assert_eq!(lines, ["fetching", "npm error [31mcode ETARGET[0m"]);
    assert_eq!(machine.entries(), [""; 0]);
}

#[test]
fn npm_that_hangs_is_stopped_with_its_children() {
    let machine = Machine::new("");
    let pid = machine.at("pid");
    machine
        .program("npm", &format!("trap '' TERM; echo busy; sleep 600 & echo $! > {}; wait", pid.display()));
    let error = machine.installer().limit(Duration::from_secs(5)).install(None, |_| {}).unwrap_err();
    assert_eq!(error.to_string(), "npm was stopped after 5s\nbusy");
    let child: u32 = fs::read_to_string(&pid).unwrap().trim().parse().unwrap();
    let gone = (0..200).any(|_| {
        std::thread::sleep(Duration::from_millis(20));
        !alhena_sys::processes::alive(child)
    });
    assert!(gone, "the sleeping grandchild lives on");
    assert_eq!(machine.entries(), [""; 0]);
}

#[test]
fn what_npm_leaves_is_checked_before_it_counts() {
    let machine = Machine::new("exit 0");
    let error = machine.install("0.61.0").unwrap_err();
    assert!(matches!(error, InstallError::Incomplete { .. }), "{error}");
    machine.program("npm", &INSTALLS.replace("v=${a##*@}", "v=0.1.0"));
    let error = machine.install("0.61.0").unwrap_err();
    assert!(matches!(error, InstallError::Incomplete { .. }), "{error}");
    assert_eq!(machine.entries(), [""; 0]);
}

#[test]
fn broken_install_is_replaced() {
    let machine = Machine::new(INSTALLS);
    let gemini = machine.install("0.61.0").unwrap();
    fs::remove_file(gemini.entry.as_ref().unwrap()).unwrap();
    assert_eq!(machine.install("0.61.0").unwrap(), gemini);
    assert_eq!(machine.entries(), ["0.61.0"]);
}

#[test]
fn parallel_installs_of_one_version_run_npm_once() {
    let machine = Machine::new("");
    let log = machine.at("log");
    machine.program("npm", &format!("echo \"$1\" >> {}; sleep 0.3\n{INSTALLS}", log.display()));
    std::thread::scope(|scope| {
        let all: Vec<_> =
            (0..4).map(|_| scope.spawn(|| machine.install("0.61.0").unwrap().version)).collect();
        for one in all {
            assert_eq!(one.join().unwrap(), PINNED);
        }
    });
    assert_eq!(fs::read_to_string(log).unwrap(), "install\nrebuild\n");
}

#[test]
fn without_a_good_node_and_npm_the_error_says_what_to_install() {
    let machine = Machine::new(INSTALLS);
    machine.program("node", "echo v18.20.1 # an old one");
    let error = machine.install("0.61.0").unwrap_err();
    let node = machine.at("bin/node");
    assert_eq!(
        error.to_string(),
        format!("Gemini CLI needs Node 20 or newer, and {} is 18.20.1", node.display())
    );
    machine.program("node", "echo v20.0.0");
    fs::remove_file(machine.at("bin/npm")).unwrap();
    let error = machine.install("0.61.0").unwrap_err();
    assert_eq!(error.to_string(), "Gemini CLI is installed by npm, and `npm` is not on PATH");
    fs::remove_file(node).unwrap();
    let error = machine.install("0.61.0").unwrap_err();
    assert_eq!(error.to_string(), "Gemini CLI needs Node 20 or newer, and `node` is not on PATH");
    assert_eq!(
        error.hint().unwrap(),
        "Install Node 20 or newer, with npm, and make sure that `node` and `npm` are on PATH."
    );
    let error = Installer::new().env(Environment::default()).install(None, |_| {}).unwrap_err();
    assert_eq!(error.to_string(), "there is no home directory to install Gemini CLI into");
}

#[test]
fn latest_version_is_npms_word_and_no_folder_has_a_say() {
    let machine = Machine::new("");
    let log = machine.at("log");
    machine.program("npm", &format!("echo \"$PWD\" \"$1\" \"$2\" \"$3\" > {}; echo 0.99.1", log.display()));
    assert_eq!(machine.installer().latest().unwrap().to_string(), "0.99.1");
    let asked = fs::read_to_string(&log).unwrap();
    assert!(asked.ends_with(" view @google/gemini-cli@latest version\n"), "{asked}");
    let here = std::env::current_dir().unwrap();
    assert!(!asked.starts_with(here.to_str().unwrap()), "{asked}");
    machine.program("npm", "echo 'npm error code E404' >&2; exit 1");
    let error = machine.installer().latest().unwrap_err();
    assert_eq!(error.to_string(), "npm failed (exit status: 1)\nnpm error code E404\n");
}
