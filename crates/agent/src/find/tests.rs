//! What is found, what is passed over, and what is said when nothing is left. B-44 to B-49, E-37.

#![cfg(unix)]

use alhena_model::Hint as _;
use std::fs;

use alhena_sys::files::{self, symlink};

use super::*;

/// Writes an executable shell script.
pub(super) fn script(path: &Path, body: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, format!("#!/bin/sh\n{body}\n")).unwrap();
    files::set_mode(path, 0o755).unwrap();
}

/// A machine of its own: a home, a project that is trusted, a directory on PATH with a `node` in it, and nothing else.
struct Machine {
    root: tempfile::TempDir,
}

impl Machine {
    fn new() -> Self {
        // Others could write what is made with another one.
        files::set_mask(0o022);
        let machine = Self { root: tempfile::tempdir().unwrap() };
        for directory in ["home", "project/deep", "path"] {
            fs::create_dir_all(machine.at(directory)).unwrap();
        }
        script(&machine.at("path/node"), "echo v20.1.0");
        machine.trust(&machine.at("project"));
        machine
    }

    fn trust(&self, folder: &Path) {
        let rules = serde_json::json!({folder.to_str().unwrap(): "TRUST_FOLDER"});
        fs::create_dir_all(self.at("home/.gemini")).unwrap();
        fs::write(self.at("home/.gemini/trustedFolders.json"), rules.to_string()).unwrap();
    }

    fn distrust(&self) {
        fs::remove_file(self.at("home/.gemini/trustedFolders.json")).unwrap();
    }

    fn at(&self, path: &str) -> PathBuf {
        fs::canonicalize(self.root.path()).unwrap().join(path)
    }

    fn env(&self) -> Environment {
        Environment::from([
            (env::HOME, self.at("home")),
            (env::PATH, self.at("path")),
            (env::ALHENA_HOME, self.at("alhena")),
        ])
    }

    fn finder(&self) -> Finder {
        Finder::new().env(self.env()).dir(self.at("project/deep"))
    }

    /// What `npm install` makes of `@google/gemini-cli` below `root`; gives back the link that is the command.
    fn npm_install(&self, root: &str, version: &str) -> PathBuf {
        let package = self.at(root).join("node_modules/@google/gemini-cli");
        fs::create_dir_all(package.join("bundle")).unwrap();
        let manifest =
            format!(r#"{{"name": "{PACKAGE}", "version": "{version}", "bin": {{"gemini": "x"}}}}"#);
        fs::write(package.join("package.json"), manifest).unwrap();
        let file = package.join("bundle/gemini.js");
        fs::write(&file, "#!/usr/bin/env node\n").unwrap();
        files::set_mode(&file, 0o755).unwrap();
        let bin = self.at(root).join("node_modules/.bin");
        fs::create_dir_all(&bin).unwrap();
        let link = bin.join("gemini");
        symlink("../@google/gemini-cli/bundle/gemini.js", &link).unwrap();
        link
    }

    fn link(&self, from: &str, to: &Path) -> PathBuf {
        let link = self.at(from);
        fs::create_dir_all(link.parent().unwrap()).unwrap();
        symlink(to, &link).unwrap();
        link
    }
}

fn version(text: &str) -> Version {
    text.parse().unwrap()
}

#[test]
fn everything_about_an_npm_install_is_known_without_running_it() {
    let machine = Machine::new();
    let path = machine.npm_install("project", "0.61.0");
    let package = machine.at("project/node_modules/@google/gemini-cli");
    let expected = Gemini {
        path,
        place: Place::Project,
        version: version("0.61.0"),
        version_source: VersionSource::PackageJson,
        entry: Some(package.join("bundle/gemini.js")),
        package_dir: Some(package),
        package_name: Some(PACKAGE.to_owned()),
        node: Some(machine.at("path/node")),
        node_version: Some(NodeVersion { major: 20, minor: 1, patch: 0 }),
        node_needed: None,
        start: Start::Direct { node_options: Vec::new() },
    };
    assert_eq!(machine.finder().find(), Ok(expected));
}

#[test]
fn each_place_wins_over_the_ones_after_it() {
    // B-44, B-45, B-46, B-47, E-37
    let machine = Machine::new();
    let target = machine.npm_install("elsewhere", "0.61.0");
    let mut env = machine.env();
    env.set(env::GEMINI_CLI_PATH, machine.link("named/gemini", &target));
    let finder = machine.finder().env(env);
    let mut expected = vec![(Place::Environment, machine.at("named/gemini"))];
    for (place, path) in [
        (Place::Project, "project/deep/node_modules/.bin/gemini"),
        (Place::Project, "project/node_modules/.bin/gemini"),
        (Place::Path, "path/gemini"),
        (Place::Known, "home/.local/share/mise/installs/node/22.10.0/bin/gemini"),
        (Place::Known, "home/.local/share/mise/installs/node/22.9.0/bin/gemini"),
        (Place::Known, "home/.npm-global/bin/gemini"),
        (Place::Known, "home/.nvm/versions/node/v20.1.0/bin/gemini"),
        (Place::Installed, "alhena/data/gemini-cli/0.61.0/node_modules/.bin/gemini"),
    ] {
        expected.push((place, machine.link(path, &target)));
    }
    for (place, path) in expected {
        let found = finder.find().unwrap();
        // The test machine itself may have one in /usr/local/bin, which is a known place too.
        if found.place == Place::Known && !found.path.starts_with(machine.at("")) {
            return;
        }
        assert_eq!((found.place, found.path), (place, path.clone()));
        fs::remove_file(path).unwrap();
    }
}

#[test]
fn explicit_path_is_taken_or_refused_but_never_replaced() {
    let machine = Machine::new();
    machine.npm_install("project", "0.61.0");
    let other = machine.npm_install("other", "0.38.2");
    let found = machine.finder().path(&other).find().unwrap();
    assert_eq!((found.place, found.version), (Place::Explicit, version("0.38.2")));
    let missing = machine.at("nowhere/gemini");
    let error = machine.finder().path(&missing).find().unwrap_err();
    assert_eq!(error.tried, [Tried { path: missing, place: Place::Explicit, why: Why::Missing }]);
    assert_eq!(
        error.hint().unwrap(),
        "Give `gemini` the path of a Gemini CLI that can be started, or leave it out to have one looked for."
    );
}

#[test]
fn explicit_path_may_be_relative_a_command_name_or_the_javascript_file() {
    let machine = Machine::new();
    let target = machine.npm_install("other", "0.38.2");
    machine.link("path/gemini-old", &target);
    let js = machine.at("other/node_modules/@google/gemini-cli/bundle/gemini.js");
    files::set_mode(&js, 0o644).unwrap();
    let path = |given: &str| machine.finder().path(given).find().map(|found| found.path).unwrap();
    assert_eq!(path(js.to_str().unwrap()), js);
    files::set_mode(&js, 0o755).unwrap();
    assert_eq!(path("gemini-old"), machine.at("path/gemini-old"));
    // Seen from where the caller is, whatever directory the run is for; and a bare name is never a file here.
    let here = std::env::current_dir().unwrap();
    assert_eq!(
        machine.finder().path("other/gemini").find().unwrap_err().tried[0].path,
        here.join("other/gemini")
    );
    let found = machine.finder().path("Cargo.toml").find().unwrap_err();
    assert_eq!(found.tried, [Tried { path: "Cargo.toml".into(), place: Place::Explicit, why: Why::Missing }]);
}

#[test]
fn broken_ones_are_passed_over_and_remembered() {
    let machine = Machine::new();
    let mut env = machine.env();
    let path: Vec<_> =
        ["path", "dangling", "directory", "plain", "own"].iter().map(|name| machine.at(name)).collect();
    env.set(env::PATH, std::env::join_paths(&path).unwrap());
    env.set(env::GEMINI_CLI_PATH, machine.at("gone"));
    machine.link("dangling/gemini", Path::new("nowhere"));
    fs::create_dir_all(machine.at("directory/gemini")).unwrap();
    fs::create_dir_all(machine.at("plain")).unwrap();
    fs::write(machine.at("plain/gemini"), "#!/usr/bin/env node\n").unwrap();
    machine.link("own/gemini", &std::env::current_exe().unwrap());
    let (_, tried) = machine.finder().env(env).find_all();
    let broken: Vec<_> = tried
        .into_iter()
        .filter(|tried| tried.place != Place::Known)
        .filter(|tried| tried.place != Place::Project)
        .map(|tried| (tried.path, tried.why))
        .collect();
    let expected = [
        ("gone", Why::Missing),
        ("path/gemini", Why::Missing),
        ("dangling/gemini", Why::Dangling),
        ("directory/gemini", Why::Directory),
        ("plain/gemini", Why::NotExecutable),
        ("own/gemini", Why::Alhena),
    ];
    assert_eq!(broken, expected.map(|(path, why)| (machine.at(path), why)));
}

#[test]
fn not_found_says_what_was_tried_and_what_to_do() {
    let tried = |path: &str, place, why| Tried { path: path.into(), place, why };
    let error = NotFound {
        tried: vec![
            tried("/named/gemini", Place::Environment, Why::Missing),
            tried("/w/node_modules/.bin/gemini", Place::Project, Why::Missing),
            tried("/p/gemini", Place::Path, Why::Dangling),
            tried("/q/gemini", Place::Path, Why::Missing),
        ],
    };
    assert_eq!(
        error.to_string(),
        "Gemini CLI was not found\n  /named/gemini does not exist\n  /p/gemini is a link that leads nowhere\n  \
         nothing on PATH and in other usual places (2 in all)"
    );
    assert_eq!(
        error.in_full(),
        "Gemini CLI was not found\n  /named/gemini does not exist\n  /p/gemini is a link that leads nowhere\n  \
         /w/node_modules/.bin/gemini does not exist\n  /q/gemini does not exist"
    );
    assert_eq!(
        error.hint().unwrap(),
        "Install it with `alhena install` or `npm install -g @google/gemini-cli`, or say where it is with \
         GEMINI_CLI_PATH."
    );
    let no_node = NotFound { tried: vec![tried("/p/gemini", Place::Path, Why::NoNode)] };
    assert_eq!(no_node.hint().unwrap(), "Install Node 20 or newer, and put it first on PATH.");
}

#[test]
fn node_is_taken_from_path_or_beside_the_command() {
    let machine = Machine::new();
    let target = machine.npm_install("elsewhere", "0.61.0");
    machine.link("nvm/bin/gemini", &target);
    let find = || machine.finder().path(machine.at("nvm/bin/gemini")).find();
    script(&machine.at("nvm/bin/node"), "echo v22.1.0");
    assert_eq!(find().unwrap().node, Some(machine.at("path/node")));
    fs::remove_file(machine.at("path/node")).unwrap();
    assert_eq!(find().unwrap().node, Some(machine.at("nvm/bin/node")));
    fs::remove_file(machine.at("nvm/bin/node")).unwrap();
    assert_eq!(find().unwrap_err().tried.pop().unwrap().why, Why::NoNode);
}

#[test]
fn command_without_a_package_is_asked_once_and_not_in_the_users_home() {
    let machine = Machine::new();
    let gemini = machine.at("path/gemini");
    let log = machine.at("log");
    script(
        &gemini,
        &format!("echo \"$1 $HOME\" >> {}; test -d \"$GEMINI_CLI_HOME\" && echo 0.40.1", log.display()),
    );
    let found = machine.finder().find().unwrap();
    assert_eq!((found.version, found.version_source), (version("0.40.1"), VersionSource::Asked));
    assert_eq!((found.entry, found.package_dir, found.node), (None, None, None));
    let again = machine.finder().find().unwrap();
    assert_eq!((again.version, again.version_source), (version("0.40.1"), VersionSource::Remembered));
    assert_eq!(fs::read_to_string(&log).unwrap(), format!("--version {}\n", machine.at("home").display()));
    // Its file changes: it is asked again.
    script(&gemini, "echo 0.40.2 # changed");
    let changed = machine.finder().find().unwrap();
    assert_eq!((changed.version, changed.version_source), (version("0.40.2"), VersionSource::Asked));
}

#[test]
fn command_that_does_not_tell_its_version_is_passed_over_with_what_it_said() {
    let machine = Machine::new();
    script(&machine.at("path/gemini"), "echo; echo 'no such tool' >&2; exit 7");
    let why = machine.finder().path(machine.at("path/gemini")).find().unwrap_err().tried.pop().unwrap().why;
    assert_eq!(why, Why::NoVersion { detail: "exit status: 7 (no such tool)".to_owned() });
}

#[test]
fn nobody_is_asked_while_being_asked() {
    let machine = Machine::new();
    script(&machine.at("path/gemini"), "echo 0.40.1");
    let mut env = machine.env();
    env.set(env::ALHENA_ASKING, "1");
    let error = machine.finder().env(env).path(machine.at("path/gemini")).find().unwrap_err();
    assert_eq!(error.tried[0].why, Why::NoVersion { detail: "it is being asked already".to_owned() });
}

#[test]
#[cfg(target_os = "linux")]
fn fast_start_is_for_commands_that_only_start_node() {
    let machine = Machine::new();
    let link = machine.npm_install("project", "0.61.0");
    let settings = serde_json::json!({});
    let gemini = machine.finder().find().unwrap();
    let start = gemini.fast_start(&machine.env(), &settings).unwrap();
    assert_eq!(start.heap_mb, Some(node::total_memory().unwrap() / 2 / 1024 / 1024));
    let expected = FastStart {
        node: machine.at("path/node"),
        node_options: Vec::new(),
        heap_mb: None,
        entry: machine.at("project/node_modules/@google/gemini-cli/bundle/gemini.js"),
        compile_cache: None,
    };
    let own_heap = serde_json::json!({"advanced": {"autoConfigureMemory": false}});
    assert_eq!(gemini.fast_start(&machine.env(), &own_heap), Some(expected.clone()));

    let node = NodeVersion { major: 22, minor: 1, patch: 0 };
    let newer = Gemini { node_version: Some(node), ..gemini };
    let cache = Some(machine.at("alhena/cache/node-compile-cache"));
    assert_eq!(
        newer.fast_start(&machine.env(), &own_heap),
        Some(FastStart { compile_cache: cache, ..expected.clone() })
    );
    let mut env = machine.env();
    env.set(env::NODE_COMPILE_CACHE, "/the/users/own");
    assert_eq!(newer.fast_start(&env, &own_heap), Some(expected));

    let wrapper = machine.at("path/wrapper");
    script(&wrapper, &format!("export GEMINI_API_KEY=secret\nexec {} \"$@\"", link.display()));
    let wrapped = machine.finder().path(&wrapper).find().unwrap();
    assert_eq!(wrapped.version, version("0.61.0"));
    assert_eq!(wrapped.fast_start(&machine.env(), &settings), None);
}

#[test]
fn description_is_data_that_detect_can_print() {
    let machine = Machine::new();
    machine.npm_install("project", "0.61.0");
    let gemini = machine.finder().find().unwrap();
    let package = machine.at("project/node_modules/@google/gemini-cli");
    assert_eq!(
        serde_json::to_value(gemini).unwrap(),
        serde_json::json!({
            "path": machine.at("project/node_modules/.bin/gemini"),
            "place": "project",
            "version": "0.61.0",
            "version_source": "package_json",
            "entry": package.join("bundle/gemini.js"),
            "package_dir": package,
            "package_name": "@google/gemini-cli",
            "node": machine.at("path/node"),
            "node_version": "20.1.0",
            "node_needed": null,
        })
    );
}

/// A `gemini` that leaves a mark when it is run, in the working directory's own packages.
fn planted(machine: &Machine, folder: &str) -> (PathBuf, PathBuf) {
    let (gemini, mark) = (machine.at(folder).join("node_modules/.bin/gemini"), machine.at("it-ran"));
    script(&gemini, &format!("touch {}; echo 0.61.0", mark.display()));
    (gemini, mark)
}

/// What was passed over although it was there.
fn passed_over(finder: &Finder) -> Vec<(PathBuf, Why)> {
    let (_, tried) = finder.find_all();
    tried.into_iter().filter(|tried| tried.why != Why::Missing).map(|tried| (tried.path, tried.why)).collect()
}

#[test]
fn folders_own_cli_is_not_even_asked_unless_the_folder_is_trusted() {
    let machine = Machine::new();
    let (gemini, mark) = planted(&machine, "project");
    machine.distrust();
    assert_eq!(passed_over(&machine.finder()), [(gemini.clone(), Why::NotUsed(NotUsed::Untrusted))]);
    assert_eq!(
        passed_over(&machine.finder().trust(Trust::Run)),
        [(gemini.clone(), Why::NotUsed(NotUsed::Untrusted))]
    );
    assert!(!mark.exists(), "a folder that nobody trusts ran something");

    // Trusting a folder says nothing of the one above it.
    machine.trust(&machine.at("project/deep"));
    assert_eq!(passed_over(&machine.finder()), [(gemini.clone(), Why::NotUsed(NotUsed::Untrusted))]);
    machine.distrust();
    for finder in [machine.finder().trust(Trust::WithSettings), machine.finder().path(&gemini)] {
        assert_eq!(finder.find().unwrap().path, gemini);
    }
    machine.trust(&machine.at("project"));
    assert_eq!(machine.finder().find().unwrap().place, Place::Project);
}

#[test]
fn folders_own_cli_is_never_taken_where_others_could_have_put_it() {
    let machine = Machine::new();
    let (gemini, mark) = planted(&machine, "project");
    let exposed = |at: &str, by| Why::NotUsed(NotUsed::Exposed(crate::Exposed { at: machine.at(at), by }));
    for (at, mode, by) in [
        ("project", 0o777, crate::ExposedBy::Everybody),
        ("project/node_modules", 0o775, crate::ExposedBy::Group),
        ("project/node_modules/.bin/gemini", 0o757, crate::ExposedBy::Everybody),
    ] {
        files::set_mode(machine.at(at), mode).unwrap();
        for finder in [machine.finder(), machine.finder().trust(Trust::WithSettings)] {
            assert_eq!(passed_over(&finder), [(gemini.clone(), exposed(at, by))]);
        }
        files::set_mode(machine.at(at), 0o755).unwrap();
    }
    assert!(!mark.exists());
    assert_eq!(machine.finder().find().unwrap().path, gemini);
}

#[test]
fn package_behind_a_link_counts_as_much_as_the_link() {
    let machine = Machine::new();
    let gemini = machine.npm_install("project", "0.61.0");
    let bundle = "project/node_modules/@google/gemini-cli/bundle";
    files::set_mode(machine.at(bundle), 0o777).unwrap();
    let exposed = crate::Exposed { at: machine.at(bundle), by: crate::ExposedBy::Everybody };
    assert_eq!(passed_over(&machine.finder()), [(gemini, Why::NotUsed(NotUsed::Exposed(exposed)))]);
}

#[test]
fn nothing_is_taken_by_a_path_that_depends_on_the_folder() {
    let machine = Machine::new();
    let (_, mark) = planted(&machine, "project");
    machine.distrust();
    for name in ["gemini", "node"] {
        script(&machine.at("project/deep").join(name), &format!("touch {}; echo v22.0.0", mark.display()));
    }
    let mut env = machine.env();
    env.set(env::PATH, format!(".:bin::{}", machine.at("path").display()));
    env.set(env::GEMINI_CLI_PATH, "gemini");
    let finder = machine.finder().env(env);
    let passed: Vec<_> = passed_over(&finder).into_iter().map(|(_, why)| why).collect();
    assert_eq!(passed, [Why::Relative, Why::NotUsed(NotUsed::Untrusted)]);
    let target = machine.npm_install("elsewhere", "0.61.0");
    assert_eq!(finder.path(target).find().unwrap().node, Some(machine.at("path/node")));
    assert!(!mark.exists());
}

#[test]
fn node_that_is_too_old_for_the_package_is_said_before_anything_starts() {
    let machine = Machine::new();
    let link = machine.npm_install("elsewhere", "0.61.0");
    let manifest = machine.at("elsewhere/node_modules/@google/gemini-cli/package.json");
    fs::write(
        &manifest,
        r#"{"name": "x", "version": "0.61.0", "bin": {"gemini": "x"}, "engines": {"node": ">=20"}}"#,
    )
    .unwrap();
    script(&machine.at("path/node"), "echo v18.20.8");
    let error = machine.finder().path(&link).find().unwrap_err();
    let node = machine.at("path/node");
    assert_eq!(
        error.to_string(),
        format!(
            "Gemini CLI was not found\n  {} needs Node 20.0.0 or newer, and {} is 18.20.8",
            link.display(),
            node.display()
        )
    );
    assert_eq!(error.hint().unwrap(), "Install Node 20 or newer, and put it first on PATH.");
    script(&node, "echo v20.0.0 # newer");
    assert_eq!(
        machine.finder().path(&link).find().unwrap().node_needed,
        Some(NodeVersion { major: 20, minor: 0, patch: 0 })
    );
}

#[test]
fn version_question_is_bounded_by_the_callers_clock() {
    let machine = Machine::new();
    script(&machine.at("path/gemini"), "sleep 600");
    let start = Instant::now();
    let finder = machine.finder().path(machine.at("path/gemini"));
    let why =
        finder.deadline(Some(start + Duration::from_millis(300))).find().unwrap_err().tried.remove(0).why;
    assert!(matches!(why, Why::NoVersion { .. }), "{why:?}");
    assert!(start.elapsed() < Duration::from_secs(15), "{:?}", start.elapsed());
}

#[test]
fn number_means_an_install_of_alhenas_own() {
    let machine = Machine::new();
    machine.npm_install("alhena/data/gemini-cli/0.45.2", "0.45.2");
    let found = machine.finder().path("0.45.2").find().unwrap();
    assert_eq!((found.place, found.version), (Place::Explicit, version("0.45.2")));
    let error = machine.finder().path("0.45.3").find().unwrap_err();
    assert_eq!(error.hint().unwrap(), "Fetch it with `alhena install 0.45.3`.");
}
