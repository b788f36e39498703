use super::*;

fn rules(texts: &[&str]) -> Vec<ToolRule> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

#[test]
fn rules_are_read_in_every_form() {
    let texts =
        ["write_file", " run_shell_command( git status ) ", "ShellTool(npm:*)", "run_shell_command(ls *)"];
    let shown: Vec<String> = rules(&texts).iter().map(ToString::to_string).collect();
    assert_eq!(
        shown,
        ["write_file", "run_shell_command(git status)", "run_shell_command(npm)", "run_shell_command(ls)"]
    );
    let texts = ["mcp_db_query", "mcp_db_*", "db__query", "run_shell_command()", "run_shell_command(*)", "*"];
    let shown: Vec<String> = rules(&texts).iter().map(ToString::to_string).collect();
    assert_eq!(
        shown,
        ["mcp_db_query", "mcp_db_*", "db__query", "run_shell_command", "run_shell_command", "*"]
    );
}

#[test]
fn what_is_no_rule_is_said_so() {
    let errors = ["", "a b", "run_shell_command(git", "write_file(x)"];
    let errors = errors.map(|text| text.parse::<ToolRule>().unwrap_err().to_string());
    assert_eq!(
        errors,
        [
            "\"\" is not the name of a tool",
            "\"a b\" is not the name of a tool",
            "\"run_shell_command(git\" has no closing parenthesis",
            "\"write_file(x)\": only run_shell_command can be limited to commands",
        ]
    );
}

#[test]
fn the_file_is_the_clis_own_format() {
    let text = policy_text(
        &rules(&["run_shell_command(git)", "db__query"]),
        &rules(&["write_file"]),
        &[],
        Shell::Asks,
    );
    assert_eq!(
        text,
        r##"# Written by Alhena for one run.

[[rule]]
toolName = "run_shell_command"
argsPattern = "\\$|\\x60|\\\\\\\\|\\\\[bfru]|<<|([ ;&|]|\\\\[nt])#|\"command\":\"#"
decision = "deny"
priority = 999
deny_message = "Only plain commands can be checked: no $, backticks, backslashes, comments or here-documents, also in the description."

[[rule]]
toolName = "write_file"
decision = "deny"
priority = 999

[[rule]]
toolName = "run_shell_command"
commandPrefix = "git"
decision = "allow"
priority = 300

[[rule]]
toolName = "query"
mcpName = "db"
decision = "allow"
priority = 300

[[rule]]
toolName = "run_shell_command"
argsPattern = "\"dir_path\":"
decision = "deny"
priority = 301
deny_message = "Commands are allowed only in the folder of the run: leave out dir_path."

[[rule]]
toolName = "run_shell_command"
decision = "deny"
priority = 0
"##
    );
}

#[test]
fn a_shell_that_is_allowed_as_a_whole_may_redirect_and_has_no_rest() {
    let text = policy_text(&rules(&["run_shell_command(git)", "run_shell_command"]), &[], &[], Shell::Judges);
    assert!(text.ends_with(
        "toolName = \"run_shell_command\"\ndecision = \"allow\"\npriority = 300\nallowRedirection = true\n"
    ));
    assert!(!text.contains("toolName = \"run_shell_command\"\ndecision = \"deny\""));
}

#[test]
fn text_that_the_cli_reads_in_another_way_than_bash_is_denied_where_commands_are_limited() {
    let pattern = regress::Regex::new(NOT_PLAIN).unwrap();
    let is_denied = |command: &str| {
        let arguments = serde_json::json!({"command": command, "description": "Why"}).to_string();
        pattern.find(&arguments).is_some()
    };
    for command in [
        "git status \\\n# '\ntouch M #'",
        "echo \"$\\\n(touch M)\"",
        "true && \\\n touch M",
        "git `x`",
        "git a\\b",
        "# x",
        "git # x",
        "git;#x",
        "git\n#x",
        "git <<E",
        "git\rx",
        "git \u{1}x",
    ] {
        assert!(is_denied(command), "{command:?}");
    }
    for command in
        ["git status", "git commit -m \"a 'b' c\"", "git log && echo x | cat", "echo a#b\n\tls", "ls > x"]
    {
        assert!(!is_denied(command), "{command:?}");
    }
}

#[test]
fn a_shell_that_asks_leaves_the_users_own_rules_above() {
    let asks = "argsPattern = \"\\\\{\"\ndecision = \"ask_user\"\npriority = 0\nmodes = [\"default\", \"autoEdit\"]\n";
    assert!(policy_text(&[], &[], &[], Shell::Asks).ends_with(asks));
    assert!(!policy_text(&[], &[], &[], Shell::Judges).contains("ask_user"));
}

#[test]
fn a_shell_that_is_to_be_asked_about_is_asked_about_whatever_it_runs() {
    let asked = |rule: &str| policy_text(&[], &[], &rules(&[rule]), Shell::Judges);
    let shell = r#"toolName = "run_shell_command"
argsPattern = "\\{"
decision = "ask_user"
priority = 998
"#;
    assert!(asked("run_shell_command").ends_with(shell));
    assert!(asked("*").contains(shell) && asked("*").contains("toolName = \"*\""));
    assert!(!asked("db__*").contains("argsPattern"));
}

#[test]
fn a_denial_counts_for_every_server_and_tool_that_it_can_mean() {
    let denied = |rule: &str| policy_text(&[], &rules(&[rule]), &rules(&[rule]), Shell::Judges);
    let rule = |tool: &str, server: &str, decision: &str| {
        format!("toolName = \"{tool}\"\nmcpName = \"{server}\"\ndecision = \"{decision}\"\n")
    };
    for written in ["mcp__my__srv__drop", "my__srv__drop"] {
        let text = denied(written);
        for decision in ["deny", "ask_user"] {
            assert!(text.contains(&rule("srv__drop", "my", decision)), "{text}");
            assert!(text.contains(&rule("drop", "my__srv", decision)), "{text}");
        }
    }
    // The CLI compares such names with what it makes of them.
    let long = "x".repeat(70);
    let shown = format!("toolName = \"mcp_srv_{}...{}\"\ndecision", "x".repeat(22), "x".repeat(30));
    for written in [format!("srv__{long}"), format!("mcp_srv_{long}")] {
        let text = denied(&written);
        assert!(text.contains(&format!("{shown} = \"deny\"")), "{text}");
        assert!(text.contains(&format!("{shown} = \"ask_user\"")), "{text}");
    }
    assert!(denied("srv__lösche").contains("toolName = \"mcp_srv_l_sche\"\ndecision"));
    assert!(denied("mcp_srv__drop").contains("toolName = \"mcp_srv__drop\""));
    assert!(denied("mcp_srv__drop").contains(&rule("drop", "mcp_srv", "deny")));
    assert_eq!(denied("db__query").matches("[[rule]]").count(), 2);
    // Claude's form of a name can be the name that the CLI gives.
    let text = denied("mcp__a__b");
    for (tool, server) in [("b", "a"), ("a__b", "mcp"), ("b", "mcp__a")] {
        assert!(text.contains(&rule(tool, server, "deny")), "{text}");
    }
    assert!(text.contains("toolName = \"mcp__a__b\"\ndecision = \"deny\""), "{text}");
    assert!(denied("mcp___lead").contains("toolName = \"mcp___lead\"\ndecision = \"deny\""));
}

#[test]
fn what_the_policies_of_the_cli_cannot_deny_is_known() {
    let is_beyond = |rule: &str| rule.parse::<ToolRule>().unwrap().is_beyond_policies();
    for rule in [
        "srv__*",
        "srv__drop",
        "mcp_srv_*",
        "*__*",
        "*",
        "mcp_*",
        "mcp_my_srv_*",
        "my__srv__drop",
        "lös__drop",
    ] {
        assert!(!is_beyond(rule), "{rule}");
    }
    let long = format!("{}__*", "x".repeat(40));
    for rule in
        ["srv__dr*", "*__drop", "s*__*", "lös__*", "mcp_srv__*", "my__srv__*", &long, "write_*", "*do"]
            .into_iter()
            .chain(["mcp_srv_d*", "mcp_srv*", "mcp_*do", "mcp_lös_*", "discovered_tool_*"])
    {
        assert!(is_beyond(rule), "{rule}");
    }
}

#[test]
fn a_rule_covers_its_tool_and_no_command_beside_its_own() {
    let covers = |rule: &str, tool: &str, command: Option<&str>| {
        rule.parse::<ToolRule>().unwrap().covers(tool, None, command, false)
    };
    assert!(covers("write_file", "write_file", None) && !covers("write_file", "replace", None));
    assert!(!covers("db__query", "mcp_db_query", None) && covers("*", "glob", None));
    let of_server = |rule: &str, server: &str, tool: &str| {
        let name = gemini::mcp_name(server, tool);
        rule.parse::<ToolRule>().unwrap().covers(&name, Some((server, tool)), None, false)
    };
    assert!(of_server("db__query", "db", "query"));
    assert!(of_server("db__admin_rows", "db", "admin_rows"));
    assert!(!of_server("db__admin_rows", "db_admin", "rows"));
    assert!(!of_server("my__srv__drop", "my", "srv__drop"));
    for rule in ["db__*", "mcp_db_*", "mcp__db__*", "*__*", "mcp_*", "*"] {
        assert!(of_server(rule, "db", "query"), "{rule}");
    }
    assert!(!of_server("db__*", "other", "query") && !of_server("mcp_db_*", "db_admin", "rows"));
    assert!(!covers("mcp_*", "write_file", None) && !covers("db__*", "mcp_db_query", None));
    for (command, expected) in [
        ("git status", true),
        ("git", true),
        ("gitk", false),
        ("git status; rm x", false),
        ("git $(x)", false),
    ] {
        assert_eq!(covers("run_shell_command(git)", SHELL, Some(command)), expected, "{command}");
    }
}

#[test]
fn no_character_breaks_out_of_the_file() {
    assert_eq!(quoted("a\"b\\c\nd\u{7f}é"), r#""a\"b\\c\u000Ad\u007Fé""#);
}

#[test]
fn the_users_own_policies_are_kept() {
    let (ours, home) = (Path::new("/run/policy.toml"), Path::new("/home/u"));
    let paths = |explicit: &[&str], settings: Value| {
        let explicit: Vec<PathBuf> = explicit.iter().map(PathBuf::from).collect();
        policy_paths(ours, &explicit, home, settings.as_object().unwrap())
    };
    let none = serde_json::json!({});
    let own = serde_json::json!({"policyPaths": ["~/mine.toml", "/etc/p"]});
    assert_eq!(paths(&[], none.clone()), [ours, Path::new("/home/u/.gemini/policies")]);
    assert_eq!(paths(&[], own.clone()), [ours, Path::new("/home/u/mine.toml"), Path::new("/etc/p")]);
    assert_eq!(paths(&["/x"], own), [ours, Path::new("/x")]);
    assert_eq!(paths(&["/x"], none), [ours, Path::new("/x")]);
}

#[test]
fn rule_for_a_server_that_is_not_there_is_known() {
    let unknown = |text: &str, servers: &[&str]| {
        text.parse::<ToolRule>().unwrap().names_none_of(servers.iter().copied())
    };
    for rule in ["mcp_my_db_query", "my_db__query", "mcp__my_db__query", "mcp_my_db_*"] {
        assert!(unknown(rule, &[]), "{rule}");
        // In `mcp_my_db_query` the server could also be `my`.
        assert_ne!(unknown(rule, &["my", "db"]), rule.starts_with("mcp_my"), "{rule}");
        assert!(!unknown(rule, &["x", "my_db"]), "{rule}");
    }
    for rule in ["write_file", "mcp_*", "*", "mcp_*_query"] {
        assert!(!unknown(rule, &[]), "{rule}");
    }
}

#[test]
fn name_that_no_tool_has_is_told_with_what_was_probably_meant() {
    let mistaken = |text: &str| text.parse::<ToolRule>().unwrap().mistaken().map(|found| found.to_string());
    for known in [
        "write_file",
        "run_shell_command(git)",
        "search_file_content",
        "mcp_x_y",
        "a__b",
        "*",
        "mcp_*",
        "ShellTool",
    ] {
        assert_eq!(mistaken(known), None, "{known}");
    }
    let says = |name: &str, meant: &str| {
        Some(format!("Gemini CLI has no tool called {name:?}; did you mean {meant}?"))
    };
    assert_eq!(mistaken("writefile"), says("writefile", "write_file"));
    assert_eq!(mistaken("run_shell_comand"), says("run_shell_comand", "run_shell_command"));
    assert_eq!(mistaken("Bash"), says("Bash", "run_shell_command"));
    assert_eq!(
        mistaken("zzz"),
        Some("Gemini CLI has no tool called \"zzz\", unless an extension brings it".to_owned())
    );
}

#[test]
fn what_is_to_be_asked_about_no_policy_of_the_users_allows() {
    let text = policy_text(&[], &[], &rules(&["read_file", "*__*"]), Shell::Judges);
    let asked = "toolName = \"read_file\"\ndecision = \"ask_user\"\npriority = 998\n";
    let servers = "toolName = \"*\"\nmcpName = \"*\"\ndecision = \"ask_user\"\npriority = 998\n";
    assert!(text.contains(asked) && text.contains(servers), "{text}");
}
