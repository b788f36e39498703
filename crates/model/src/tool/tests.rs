use serde_json::json;

use super::*;

#[test]
fn classes_follow_the_exact_list() {
    // C-20 to C-27
    let expected = [
        (Class::Command, &["run_shell_command"][..]),
        (Class::FileRead, &["read_file", "read_many_files", "list_directory", "glob", "grep_search"]),
        (Class::FileWrite, &["replace", "write_file"]),
        (Class::AskUser, &["ask_user"]),
        (Class::SearchFetch, &["google_web_search", "web_fetch"]),
        (
            Class::Planning,
            &[
                "write_todos",
                "enter_plan_mode",
                "exit_plan_mode",
                "complete_task",
                "save_memory",
                "activate_skill",
                "get_internal_docs",
            ],
        ),
        (
            Class::Unknown,
            &["", "READ_FILE", "read_file2", "shell", "mcp_", "__", "a__", "discovered_tool_a__b"],
        ),
        (Class::FileRead, &["search_file_content"]),
        (Class::Agent, &["invoke_agent"]),
        (
            Class::Mcp,
            &["mcp_github_create_issue", "github__create_issue", "mcp__github__create_issue", "mcp_x"],
        ),
    ];
    for (wanted, names) in expected {
        for name in names {
            assert_eq!(class(name), wanted, "{name}");
        }
    }
}

#[test]
fn claude_names_follow_the_document_and_others_stay() {
    let expected = [
        ("read_file", "Read"),              // B-23
        ("write_file", "Write"),            // B-24
        ("replace", "Edit"),                // B-25
        ("list_directory", "Glob"),         // B-26
        ("run_shell_command", "Bash"),      // B-27
        ("google_web_search", "WebSearch"), // B-28
        ("update_topic", "update_topic"),   // B-29
        ("nobody_knows", "nobody_knows"),
        ("discovered_tool_a__b", "discovered_tool_a__b"),
        ("mcp_files_read_all", "mcp__files__read_all"),
        ("files__read_all", "mcp__files__read_all"),
        ("search_file_content", "Grep"),
        ("invoke_agent", "Task"),
    ];
    for (name, claude) in expected {
        assert_eq!(claude_name(name), claude);
    }
}

#[test]
fn arguments_of_all_releases_take_claudes_shape() {
    let cases = [
        ("read_file", json!({"absolute_path": "/a", "offset": 1}), json!({"file_path": "/a"})), // B-30
        ("read_file", json!({"file_path": "/a", "start_line": 1}), json!({"file_path": "/a"})),
        (
            "write_file",
            json!({"file_path": "/a", "content": "x"}),
            json!({"file_path": "/a", "content": "x"}),
        ), // B-31
        (
            "replace",
            json!({"file_path": "/a", "instruction": "i", "old_string": "o", "new_string": "n"}),
            json!({"file_path": "/a", "old_string": "o", "new_string": "n"}),
        ), // B-32
        ("list_directory", json!({"path": "/d"}), json!({"pattern": "*", "path": "/d"})), // B-33
        ("list_directory", json!({"dir_path": "."}), json!({"pattern": "*", "path": "."})),
        ("run_shell_command", json!({"command": "ls", "dir_path": "x"}), json!({"command": "ls"})), // B-34
        ("google_web_search", json!({"query": "q", "more": 1}), json!({"query": "q", "more": 1})),  // B-35
        ("who_knows", json!({"a": [1]}), json!({"a": [1]})),                                        // B-36
        ("who_knows", json!("no object"), json!("no object")),
        ("glob", json!({"pattern": "*.rs", "dir_path": "src"}), json!({"pattern": "*.rs", "path": "src"})),
        (
            "grep_search",
            json!({"pattern": "p", "include_pattern": "*.c", "names_only": true, "case_sensitive": false, "context": 2}),
            json!({"pattern": "p", "glob": "*.c", "-C": 2, "-i": true, "output_mode": "files_with_matches"}),
        ),
        (
            "search_file_content",
            json!({"pattern": "p", "path": "d", "include": "*.c"}),
            json!({"pattern": "p", "path": "d", "glob": "*.c"}),
        ),
        (
            "web_fetch",
            json!({"prompt": "Sum up https://example.org/a(b), please"}),
            json!({"url": "https://example.org/a(b", "prompt": "Sum up https://example.org/a(b), please"}),
        ),
        ("web_fetch", json!({"prompt": "no address"}), json!({"prompt": "no address"})),
        ("web_fetch", json!({"url": "http://x/"}), json!({"url": "http://x/"})),
        (
            "write_todos",
            json!({"todos": [{"description": "d", "status": "pending"}, 7]}),
            json!({"todos": [{"status": "pending", "content": "d", "activeForm": "d"}, 7]}),
        ),
        (
            "invoke_agent",
            json!({"agent_name": "generalist", "prompt": "one two three four five six"}),
            json!({"subagent_type": "generalist", "prompt": "one two three four five six", "description": "one two three four five"}),
        ),
        ("activate_skill", json!({"name": "pdf"}), json!({"skill": "pdf"})),
        ("exit_plan_mode", json!({"plan_filename": "p.md"}), json!({"plan": "p.md"})),
        ("ask_user", json!({"questions": [], "x": 1}), json!({"questions": []})),
        ("read_background_output", json!({"pid": 7}), json!({"bash_id": 7})),
        ("list_mcp_resources", json!({"serverName": "s"}), json!({"server": "s"})),
        ("read_mcp_resource", json!({"uri": "u"}), json!({"uri": "u"})),
        ("enter_plan_mode", json!({"reason": "r"}), json!({"reason": "r"})),
    ];
    for (name, input, expected) in cases {
        assert_eq!(claude_input(name, &input), expected, "{name}");
    }
}

#[test]
fn only_writing_tools_name_a_written_file() {
    assert_eq!(written_path("write_file", &json!({"file_path": "a"})), Some("a".to_owned()));
    assert_eq!(written_path("replace", &json!({"file_path": "a"})), Some("a".to_owned()));
    assert_eq!(written_path("read_file", &json!({"file_path": "a"})), None); // A-26
    assert_eq!(written_path("write_file", &json!({"file_path": 7})), None);
    assert_eq!(written_path("write_file", &json!(null)), None);
}

#[test]
fn names_and_aliases_are_unique() {
    let mut names: Vec<&str> =
        TOOLS.iter().flat_map(|tool| std::iter::once(&tool.name).chain(tool.aliases)).copied().collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
}

#[test]
fn whoever_permits_a_call_sees_every_argument() {
    let full = |name: &str, input: Value| claude_input_in_full(name, &input);
    assert_eq!(
        full("run_shell_command", json!({"command": "./build.sh", "dir_path": "sub", "is_background": true})),
        json!({"command": "./build.sh", "dir_path": "sub", "run_in_background": true})
    );
    assert_eq!(
        full(
            "replace",
            json!({"file_path": "a", "old_string": "x", "new_string": "y", "allow_multiple": true})
        ),
        json!({"file_path": "a", "old_string": "x", "new_string": "y", "replace_all": true})
    );
    assert_eq!(
        full(
            "search_file_content",
            json!({"pattern": "x", "dir_path": "d", "case_sensitive": false, "total": 3})
        ),
        json!({"pattern": "x", "path": "d", "-i": true, "total": 3})
    );
    assert_eq!(full("mcp_srv_tool", json!({"a": 1})), json!({"a": 1}));
    assert_eq!(full("run_shell_command", json!("no object")), json!("no object"));
}
