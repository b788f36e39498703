//! Tests of the check of policy files.

use super::*;

fn said(text: &str) -> Result<(), String> {
    let root = tempfile::tempdir().unwrap();
    let file = root.path().canonicalize().unwrap().join("p.toml");
    fs::write(&file, text).unwrap();
    let shown = format!("{}", file.display());
    check_policy(&file).map(drop).map_err(|bad| bad.to_string().replace(&shown, "p.toml"))
}

const GOOD: &str = "# mine\n[[rule]]\ntoolName = \"run_shell_command\"\ncommandPrefix = \"git\"\n\
    decision = \"ask_user\"\npriority = 100\nmodes = [\"yolo\"]\nallow_redirection = true\n\n\
    [[rule]]\ntoolName = \"*\"\ndecision = \"deny\"\npriority = 0\n";

#[test]
fn good_file_is_taken_and_what_the_cli_would_drop_is_refused_with_its_line() {
    assert_eq!(said(GOOD), Ok(()));
    for (text, expected) in [
        ("not toml [", "p.toml:1: "),
        ("\n[[rules]]\ntoolName = \"x\"\n", "p.toml:2: unknown field `rules`"),
        ("[[rule]]\ntool = \"x\"\ndecision = \"deny\"\npriority = 1\n", "p.toml:2: unknown field `tool`"),
        (
            "[[rule]]\ntoolName = \"x\"\ndecision = \"maybe\"\npriority = 1\n",
            "p.toml:3: decision \"maybe\" is none of allow, deny, ask_user",
        ),
        (
            "[[rule]]\ntoolName = \"x\"\ndecision = \"deny\"\npriority = 1000\n",
            "p.toml:4: priority is not between 0 and 999",
        ),
        (
            "[[rule]]\ntoolName = \"x\"\ndecision = \"deny\"\npriority = 1\nmodes = [\"auto\"]\n",
            "p.toml:5: mode \"auto\" is none of default, autoEdit, yolo, plan",
        ),
        ("[[rule]]\ntoolName = \"\"\ndecision = \"deny\"\npriority = 1\n", "p.toml:1: toolName is empty"),
        ("[[rule]]\ntoolName = \"x\"\ndecision = \"deny\"\n", "p.toml:1: missing field `priority`"),
        ("rule = 1\n", "p.toml:1: "),
        ("", "p.toml: there is no [[rule]] in it"),
    ] {
        let why = said(text).unwrap_err();
        assert!(why.starts_with(expected), "{text:?}: {why}");
    }
}

/// Each reason why `toml-loader.js` of 0.61.0 drops a rule, or a condition of one.
#[test]
fn rule_that_the_cli_would_drop_is_refused() {
    let shell = |lines: &str| {
        said(&format!(
            "[[rule]]\ntoolName = \"run_shell_command\"\ndecision = \"deny\"\npriority = 1\n{lines}\n"
        ))
    };
    for good in [
        "commandPrefix = [\"git push\", \"rm\"]",
        "commandRegex = 'rm\\s+-(rf|fr)'",
        "argsPattern = '\"command\":\"[^\"]*sudo'",
        "mcpName = \"x\"",
    ] {
        assert_eq!(shell(good), Ok(()), "{good}");
    }
    for (lines, expected) in [
        ("commandPrefix = \"a\"\ncommandRegex = \"b\"", "commandPrefix and commandRegex do not go together"),
        ("commandPrefix = \"a\"\nargsPattern = \"b\"", "do not go together with argsPattern"),
        ("commandRegex = \"a\"\nargsPattern = \"b\"", "do not go together with argsPattern"),
        ("commandRegex = \"[\"", "commandRegex \"[\" is no regular expression"),
        ("commandRegex = \"(?i)rm\"", "is no regular expression"),
        ("argsPattern = \"(\"", "argsPattern \"(\" is no regular expression"),
        ("commandRegex = \"(a+)+\"", "takes for too slow"),
        ("commandRegex = \"(?:sudo )?rm\"", "takes for too slow"),
        ("commandPrefix = []", "commandPrefix is empty"),
        ("commandPrefix = [\"a\", \"\"]", "commandPrefix is empty"),
        ("commandRegex = \"\"", "commandRegex is empty"),
        (&format!("argsPattern = \"{}\"", "a".repeat(2049)), "is longer than 2048 characters"),
    ] {
        let why = shell(lines).unwrap_err();
        assert!(why.starts_with("p.toml:1: ") && why.contains(expected), "{lines}: {why}");
    }
    for tool in ["\"write_file\"", "[\"run_shell_command\"]"] {
        let text = format!(
            "[[rule]]\ntoolName = {tool}\ndecision = \"deny\"\npriority = 1\ncommandPrefix = \"a\"\n"
        );
        assert!(said(&text).unwrap_err().contains("go only with toolName"), "{tool}");
    }
}

/// The CLI then goes without the whole file.
#[test]
fn safety_checker_that_is_wrong_is_refused() {
    let checker = |lines: &str| said(&format!("[[safety_checker]]\ntoolName = \"*\"\n{lines}\n"));
    let good = "[safety_checker.checker]\ntype = \"in-process\"\nname = \"allowed-path\"";
    assert_eq!(checker(good), Ok(()));
    assert_eq!(checker(&format!("argsPattern = \"a\"\n{good}")), Ok(()));
    for (lines, expected) in [
        ("priority = 1", "missing field `checker`"),
        ("checker = { type = \"inline\", name = \"x\" }", "checker type \"inline\" is none of"),
        ("checker = { type = \"in-process\", name = \"x\" }", "checker \"x\" is none of"),
        (&format!("commandRegex = \"[\"\n{good}"), "go only with toolName"),
        (&format!("argsPattern = \"[\"\n{good}"), "is no regular expression"),
        (&format!("modes = [\"auto\"]\n{good}"), "mode \"auto\" is none of"),
    ] {
        let why = checker(lines).unwrap_err();
        assert!(why.contains(expected), "{lines}: {why}");
    }
}

#[test]
fn rule_for_a_tool_that_may_not_exist_is_a_warning_that_names_it() {
    let root = tempfile::tempdir().unwrap();
    let file = root.path().join("p.toml");
    let rule = |name: &str| format!("[[rule]]\ntoolName = \"{name}\"\ndecision = \"deny\"\npriority = 1\n");
    let known = ["*", "write_file", "mcp_x_y", "mcp_*"].map(rule).concat();
    fs::write(&file, format!("{known}{}{}", rule("run_shel_command"), rule("x__y"))).unwrap();
    let checked = check_policy(&file).unwrap();
    let at = |line: usize| format!("{}:{line}: ", checked.path.display());
    assert_eq!(
        checked.warnings,
        [
            format!(
                "{}toolName \"run_shel_command\" has no effect: Gemini CLI has no tool called \"run_shel_command\"; did you mean run_shell_command?",
                at(17)
            ),
            format!(
                "{}toolName \"x__y\" has no effect: Gemini CLI wants mcpName = \"SERVER\", or mcp_SERVER_TOOL",
                at(21)
            ),
        ]
    );
}

#[test]
fn what_is_not_there_or_would_not_be_read_is_refused() {
    let root = tempfile::tempdir().unwrap();
    let at = |name: &str| root.path().join(name);
    let message = |name: &str| check_policy(&at(name)).unwrap_err().message;
    assert!(message("missing.toml").contains("No such file"));
    fs::write(at("rules.txt"), GOOD).unwrap();
    assert!(message("rules.txt").contains(".toml"));
    fs::write(at("a,b.toml"), GOOD).unwrap();
    assert!(message("a,b.toml").contains("comma"));
    fs::create_dir(at("directory")).unwrap();
    assert!(message("directory").contains("no .toml file"));
    fs::write(at("directory/one.toml"), GOOD).unwrap();
    assert_eq!(check_policy(&at("directory")).unwrap().path, at("directory").canonicalize().unwrap());
    alhena_sys::files::symlink(at("directory/one.toml"), at("directory/link.toml")).unwrap();
    assert!(message("directory").contains("passes over a link"));
    fs::remove_file(at("directory/link.toml")).unwrap();
    fs::write(at("directory/two.toml"), "x").unwrap();
    assert_eq!(
        check_policy(&at("directory")).unwrap_err().path,
        at("directory/two.toml").canonicalize().unwrap()
    );
}
