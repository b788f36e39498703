use std::collections::BTreeSet;

use alhena_agent::home::McpServer;
use alhena_sys::files;
use serde_json::{Value, json};

use super::*;

struct Desk {
    root: tempfile::TempDir,
    borrowed: BorrowedFiles,
}

impl Desk {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("work")).unwrap();
        let borrowed = BorrowedFiles::new(&root.path().join("state"));
        Self { root, borrowed }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().join("work").join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    fn profile(&self, terminal: &str, prompt: &str) -> Vec<String> {
        ContextFile::write(&self.borrowed, &self.path(""), terminal, prompt).unwrap()
    }

    fn servers(&self, terminal: &str, servers: &[McpServer]) -> io::Result<Vec<String>> {
        Servers::add(&self.borrowed, &self.path("settings.json"), terminal, servers)
    }

    fn names(&self) -> BTreeSet<String> {
        let entries = fs::read_dir(self.path("")).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    /// As if the process that launched had died.
    fn forget_launchers(&self) {
        for (path, mut borrowed) in self.borrowed.borrowed_files().unwrap() {
            let gone = || Some(Process { pid: std::process::id(), started: 1 });
            match &mut borrowed.kind {
                BorrowedKind::Context(lent) => {
                    lent.holders().iter_mut().for_each(|holder| holder.launcher = gone())
                }
                BorrowedKind::Servers(lent) => {
                    lent.holders().iter_mut().for_each(|holder| holder.launcher = gone())
                }
            }
            save(&path, &borrowed, &self.borrowed.lock().unwrap()).unwrap();
        }
    }

    fn nothing_is_lent(&self) -> bool {
        self.borrowed.borrowed_files().unwrap().is_empty()
    }
}

fn names<const N: usize>(names: [&str; N]) -> BTreeSet<String> {
    names.into_iter().map(str::to_owned).collect()
}

fn server(name: &str, word: &str) -> McpServer {
    McpServer::process(name, "serve", [word])
}

#[test]
fn a_context_file_is_written_and_removed_where_there_was_none() {
    // D-27, D-29
    let desk = Desk::new();
    assert_eq!(desk.profile("t1", "You are terse.\n\n"), Vec::<String>::new());
    assert_eq!(desk.read("GEMINI.md"), "You are terse.\n");
    assert_eq!(desk.borrowed.give_back("t1"), Vec::<String>::new());
    assert_eq!(desk.names(), names([]));
    assert!(desk.nothing_is_lent());
}

#[test]
fn an_existing_context_file_is_kept_and_comes_back_as_it_was() {
    // D-28, D-29
    let desk = Desk::new();
    desk.write("GEMINI.md", "mine");
    files::set_mode(desk.path("GEMINI.md"), 0o640).unwrap();
    desk.profile("t1", "role");
    assert_eq!((desk.read("GEMINI.md"), desk.read("GEMINI.md.cao_backup")), ("role\n".into(), "mine".into()));
    desk.borrowed.give_back("t1");
    assert_eq!(desk.read("GEMINI.md"), "mine");
    assert_eq!(files::mode(&fs::metadata(desk.path("GEMINI.md")).unwrap()) & 0o777, 0o640);
    assert_eq!(desk.names(), names(["GEMINI.md"]));
}

#[test]
fn a_link_stays_a_link() {
    let desk = Desk::new();
    desk.write("real.md", "mine");
    files::symlink("real.md", desk.path("GEMINI.md")).unwrap();
    desk.profile("t1", "role");
    assert_eq!(desk.read("real.md"), "mine");
    desk.borrowed.give_back("t1");
    assert_eq!(fs::read_link(desk.path("GEMINI.md")).unwrap(), Path::new("real.md"));
}

#[test]
fn the_last_of_several_terminals_puts_the_file_back() {
    let desk = Desk::new();
    desk.write("GEMINI.md", "mine");
    desk.profile("t1", "one");
    desk.profile("t2", "two");
    desk.profile("t3", "three");
    assert_eq!(desk.read("GEMINI.md"), "three\n");
    desk.borrowed.give_back("t1");
    assert_eq!(desk.read("GEMINI.md"), "three\n");
    desk.borrowed.give_back("t3");
    assert_eq!(desk.read("GEMINI.md"), "two\n");
    desk.borrowed.give_back("t2");
    assert_eq!(desk.read("GEMINI.md"), "mine");
    assert_eq!(desk.names(), names(["GEMINI.md"]));
}

#[test]
fn what_the_user_wrote_meanwhile_is_left_and_so_is_what_was_there_before() {
    let desk = Desk::new();
    desk.write("GEMINI.md", "mine");
    desk.profile("t1", "role");
    desk.write("GEMINI.md", "edited");
    let told = desk.profile("t2", "other role");
    assert!(told[0].contains("was changed by somebody else"), "{told:?}");
    desk.borrowed.give_back("t2");
    let told = desk.borrowed.give_back("t1");
    assert_eq!(told.len(), 1);
    assert!(told[0].ends_with("GEMINI.md.cao_backup"), "{told:?}");
    assert_eq!((desk.read("GEMINI.md"), desk.read("GEMINI.md.cao_backup")), ("edited".into(), "mine".into()));
    // The next terminal keeps both.
    desk.profile("t3", "role");
    assert_eq!(desk.names(), names(["GEMINI.md", "GEMINI.md.cao_backup", "GEMINI.md.cao_backup.1"]));
    desk.borrowed.give_back("t3");
    assert_eq!((desk.read("GEMINI.md"), desk.read("GEMINI.md.cao_backup")), ("edited".into(), "mine".into()));
    assert_eq!(desk.names(), names(["GEMINI.md", "GEMINI.md.cao_backup"]));
}

#[test]
fn a_file_that_the_user_wrote_where_there_was_none_or_removed_is_respected() {
    let desk = Desk::new();
    desk.profile("t1", "role");
    desk.write("GEMINI.md", "new");
    desk.borrowed.give_back("t1");
    assert_eq!(desk.read("GEMINI.md"), "new");
    desk.profile("t1", "role");
    fs::remove_file(desk.path("GEMINI.md")).unwrap();
    desk.borrowed.give_back("t1");
    assert_eq!(desk.read("GEMINI.md"), "new");
    // Put back by hand: the backup is not needed any more.
    desk.profile("t1", "role");
    desk.write("GEMINI.md", "new");
    desk.borrowed.give_back("t1");
    assert_eq!((desk.read("GEMINI.md"), desk.names()), ("new".into(), names(["GEMINI.md"])));
}

#[test]
fn a_later_command_gives_back_for_terminals_that_are_gone_and_not_for_those_being_launched() {
    let desk = Desk::new();
    desk.write("GEMINI.md", "mine");
    desk.profile("t1", "one");
    desk.profile("t2", "two");
    // This process is launching both.
    desk.borrowed.recover(&|_| false);
    assert_eq!(desk.read("GEMINI.md"), "two\n");
    desk.borrowed.confirm("t1").unwrap();
    desk.borrowed.confirm("t2").unwrap();
    desk.borrowed.recover(&|terminal| terminal == "t1");
    assert_eq!(desk.read("GEMINI.md"), "one\n");
    desk.borrowed.recover(&|_| false);
    assert_eq!((desk.read("GEMINI.md"), desk.names()), ("mine".into(), names(["GEMINI.md"])));
    assert!(desk.nothing_is_lent());
}

#[test]
fn a_crash_at_any_step_of_a_change_is_made_good() {
    // The steps: written down; moved away; half of the new file; written.
    for step in 0..4 {
        let desk = Desk::new();
        desk.write("GEMINI.md", "mine");
        desk.profile("t1", "role");
        desk.forget_launchers();
        if step < 3 {
            fs::remove_file(desk.path("GEMINI.md")).unwrap();
        }
        if step == 2 {
            desk.write(".GEMINI.md.alhena-1-0", "ro");
        }
        if step == 0 {
            fs::rename(desk.path("GEMINI.md.cao_backup"), desk.path("GEMINI.md")).unwrap();
        }
        assert_eq!(desk.borrowed.recover(&|_| false), Vec::<String>::new());
        assert_eq!((desk.read("GEMINI.md"), desk.names()), ("mine".into(), names(["GEMINI.md"])), "{step}");
    }
}

#[test]
fn an_original_that_equals_the_prompt_is_not_taken_for_ours() {
    let desk = Desk::new();
    desk.write("GEMINI.md", "role\n");
    desk.profile("t1", "role");
    desk.forget_launchers();
    fs::rename(desk.path("GEMINI.md.cao_backup"), desk.path("GEMINI.md")).unwrap();
    desk.borrowed.recover(&|_| false);
    assert_eq!((desk.read("GEMINI.md"), desk.names()), ("role\n".into(), names(["GEMINI.md"])));
}

#[test]
fn a_working_directory_that_is_gone_is_no_trouble() {
    let desk = Desk::new();
    desk.profile("t1", "role");
    fs::remove_dir_all(desk.path("")).unwrap();
    assert_eq!(desk.borrowed.give_back("t1"), Vec::<String>::new());
    assert!(desk.nothing_is_lent());
}

#[test]
fn many_terminals_at_once_in_one_directory_leave_it_as_it_was() {
    let desk = Desk::new();
    desk.write("GEMINI.md", "mine");
    desk.write("settings.json", "{\n  // c\n}\n");
    std::thread::scope(|scope| {
        for number in 0..8 {
            let desk = &desk;
            scope.spawn(move || {
                let name = format!("t{number}");
                for _ in 0..5 {
                    desk.profile(&name, &name);
                    desk.servers(&name, &[server("cao", &name)]).unwrap();
                    desk.borrowed.confirm(&name).unwrap();
                    desk.borrowed.recover(&|_| true);
                    assert_eq!(desk.borrowed.give_back(&name), Vec::<String>::new());
                }
            });
        }
    });
    assert_eq!(desk.read("GEMINI.md"), "mine");
    assert_eq!(desk.read("settings.json"), "{\n  // c\n}\n");
    assert_eq!(desk.names(), names(["GEMINI.md", "settings.json"]));
}

const SETTINGS: &str =
    "// mine\n{\n  \"mcpServers\": {\n    \"cao\": {\"command\": \"own\" /* c */},\n    \"b\": {}\n  }\n}\n";

fn entry(desk: &Desk, name: &str) -> Option<Value> {
    let settings = alhena_agent::settings::read_settings(&desk.path("settings.json")).unwrap();
    settings["mcpServers"].get(name).cloned()
}

#[test]
fn servers_are_in_the_users_settings_while_a_terminal_needs_them() {
    // D-31, D-32, D-34
    let desk = Desk::new();
    desk.write("settings.json", SETTINGS);
    let mut ours = server("cao", "x");
    if let alhena_agent::home::Transport::Process { env, .. } = &mut ours.transport {
        env.extend([("TOKEN".to_owned(), "a=b==".to_owned()), ("EMPTY".to_owned(), String::new())]);
    }
    desk.servers("t1", &[ours, server("new", "y")]).unwrap();
    let expected = json!({"command": "serve", "args": ["x"], "env": {"EMPTY": "", "TOKEN": "a=b=="}});
    assert_eq!(entry(&desk, "cao"), Some(expected));
    assert_eq!(entry(&desk, "new"), Some(json!({"command": "serve", "args": ["y"]})));
    desk.borrowed.give_back("t1");
    assert_eq!(desk.read("settings.json"), SETTINGS);
    assert!(desk.nothing_is_lent());
}

#[test]
fn of_several_terminals_the_latest_has_its_server_there_and_the_users_comes_back() {
    let desk = Desk::new();
    desk.write("settings.json", SETTINGS);
    let args = || entry(&desk, "cao").map(|entry| entry["args"].clone());
    desk.servers("t1", &[server("cao", "1")]).unwrap();
    desk.servers("t2", &[server("cao", "2"), server("more", "2")]).unwrap();
    assert_eq!(args(), Some(json!(["2"])));
    desk.borrowed.give_back("t2");
    assert_eq!((args(), entry(&desk, "more")), (Some(json!(["1"])), None));
    desk.borrowed.give_back("t1");
    assert_eq!(desk.read("settings.json"), SETTINGS);
}

#[test]
fn what_the_user_changes_in_the_settings_meanwhile_stays() {
    let desk = Desk::new();
    desk.write("settings.json", SETTINGS);
    desk.servers("t1", &[server("cao", "1"), server("new", "1")]).unwrap();
    let edited =
        desk.read("settings.json").replace("// mine", "// yours").replace("\"b\": {}", "\"b\": {\"x\": 1}");
    desk.write("settings.json", &edited);
    desk.borrowed.give_back("t1");
    assert_eq!(
        desk.read("settings.json"),
        SETTINGS.replace("// mine", "// yours").replace("\"b\": {}", "\"b\": {\"x\": 1}")
    );

    // An entry that the user rewrote is theirs now.
    desk.servers("t1", &[server("cao", "1")]).unwrap();
    let theirs = r#"{"mcpServers": {"cao": {"command": "theirs"}}}"#;
    desk.write("settings.json", theirs);
    desk.servers("t2", &[server("cao", "2")]).unwrap();
    assert_eq!(entry(&desk, "cao"), Some(json!({"command": "serve", "args": ["2"]})));
    desk.borrowed.give_back("t2");
    desk.borrowed.give_back("t1");
    assert_eq!(desk.read("settings.json"), theirs);
}

#[test]
fn settings_that_were_not_there_are_gone_again_and_bad_ones_are_refused() {
    let desk = Desk::new();
    desk.servers("t1", &[server("cao", "1")]).unwrap();
    assert!(entry(&desk, "cao").is_some());
    desk.forget_launchers();
    desk.borrowed.recover(&|_| false);
    assert_eq!(desk.names(), names([]));
    desk.write("settings.json", "{\"a\": 1,}");
    let refused = desk.servers("t1", &[server("cao", "1")]).unwrap_err().to_string();
    assert!(refused.ends_with("settings.json:1:9 is not JSON: trailing comma"), "{refused}");
    assert_eq!(desk.read("settings.json"), "{\"a\": 1,}");
    assert!(desk.nothing_is_lent());
}

#[test]
fn a_server_that_the_users_lists_keep_out_is_told_of() {
    let desk = Desk::new();
    let text = r#"{"mcp": {"allowed": ["b"], "excluded": ["c"]}}"#;
    desk.write("settings.json", text);
    let told = desk.servers("t1", &[server("a", "1"), server("b", "1"), server("c", "1")]).unwrap();
    let expected = ["a", "c"].map(|name| {
        format!("The MCP server {name} is kept out by mcp.allowed or mcp.excluded in the settings")
    });
    assert_eq!(told, expected);
    desk.borrowed.give_back("t1");
    assert_eq!(desk.read("settings.json"), text);
}
