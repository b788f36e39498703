//! What Gemini CLI says of things that it was asked for and goes on without.
//!
//! 0.61.0 runs without a policy file that it cannot read, without settings that it calls wrong, and without an MCP server
//! that does not answer. It says so on stderr, of MCP servers only that there are issues; which ones, and why, is in its
//! debug log. All of it is told as warnings, from this one table.

use super::stderr::{plain, wrong_settings};

/// Makes a complaint of a line and of those that follow it.
type Make = fn(&str, &mut dyn Iterator<Item = &str>) -> Option<String>;

/// How a line begins that the CLI complains with, and what is made of it.
const TABLE: &[(&str, Make)] = &[
    ("[USER] Policy file ", policy),
    ("[WORKSPACE] Policy file ", policy),
    ("[EXTENSION] Policy file ", policy),
    ("[ADMIN] Policy file ", policy),
    ("MCP issues detected", |_, _| Some(SOME_MCP_SERVER.to_owned())),
    ("Failed to load extension", |line, _| Some(plain(line))),
    ("Error parsing MCP server config", |line, _| Some(plain(line))),
];

const SOME_MCP_SERVER: &str =
    "An MCP server has a problem, and the model was without its tools; `gemini mcp list` says which";

/// A line of a complaint is cut here.
const LONGEST: usize = 300;

/// Each complaint on stderr once. What only the debug log knows is taken from there, if there is one.
pub fn complaints(stderr: &str, debug_log: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut add = |complaint: String| {
        if !found.contains(&complaint) {
            found.push(complaint);
        }
    };
    if let Some(wrong) = wrong_settings(stderr) {
        add(format!("Gemini CLI calls its settings wrong and may not obey them: {wrong}"));
    }
    let servers = mcp_servers(debug_log);
    let mut lines = stderr.lines();
    while let Some(line) = lines.next() {
        let row = TABLE.iter().find(|(start, _)| line.starts_with(start));
        if let Some(complaint) = row.and_then(|(_, make)| make(line, &mut lines))
            && (complaint != SOME_MCP_SERVER || servers.is_empty())
        {
            add(cut(&complaint));
        }
    }
    for (name, why) in servers {
        add(cut(&format!("The MCP server {name} has a problem, and the model was without its tools: {why}")));
    }
    found
}

/// `[USER] Policy file error in x.toml:`, what kind it is, and the details up to a blank line or the suggestion.
fn policy(line: &str, lines: &mut dyn Iterator<Item = &str>) -> Option<String> {
    let file = line.split_once(" in ")?.1.trim_end_matches(':');
    let mut said = Vec::new();
    for line in lines.take(4) {
        let line = line.trim();
        if line.is_empty() || line.starts_with("Suggestion:") {
            break;
        }
        said.push(line.trim_end_matches(':'));
        // What stands in the file there, and details beyond the first.
        if said.len() == 3 || line.starts_with("Rule #") {
            break;
        }
    }
    Some(format!("Gemini CLI has a problem with the policy file {file}: {}", plain(&said.join(": "))))
}

/// The servers that could not be reached, each with the first reason.
fn mcp_servers(debug_log: &str) -> Vec<(String, String)> {
    const START: &str = "Error during discovery for MCP server '";
    let mut servers: Vec<(String, String)> = Vec::new();
    for line in debug_log.lines() {
        let Some((_, rest)) = line.split_once(START) else { continue };
        let Some((name, why)) = rest.split_once("': ") else { continue };
        if servers.iter().all(|(known, _)| known != name) {
            // The message, and behind it the error that it is of, with the same message.
            let error = why.rfind("Error: ").and_then(|at| why.get(at + "Error: ".len()..));
            let why = error.filter(|error| why.starts_with(error)).unwrap_or(why);
            servers.push((plain(name), plain(why)));
        }
    }
    servers
}

fn cut(text: &str) -> String {
    let end = text.floor_char_boundary(LONGEST);
    text.get(..end).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policy_files_that_the_cli_does_not_like_are_named_once() {
        let stderr = "[USER] Policy file error in bad1.toml:\n  TOML parsing failed\nInvalid character, expected \"=\" at row 1, col 6, pos 5:\n1> not toml [\n        ^\n2: \n\n\n  Suggestion: Check for syntax errors like missing quotes, brackets, or commas\n[USER] Policy file error in bad1.toml:\n  TOML parsing failed\nInvalid character, expected \"=\" at row 1, col 6, pos 5:\n1> not toml [\n[USER] Policy file warning in bad4.toml:\n  Unrecognized tool name\nRule #1: Unrecognized tool name \"writefile\". Did you mean one of: \"write_file\"?\nRipgrep is not available.\n";
        assert_eq!(
            complaints(stderr, ""),
            [
                "Gemini CLI has a problem with the policy file bad1.toml: TOML parsing failed: Invalid character, expected \"=\" at row 1, col 6, pos 5: 1> not toml [",
                "Gemini CLI has a problem with the policy file bad4.toml: Unrecognized tool name: Rule #1: Unrecognized tool name \"writefile\". Did you mean one of: \"write_file\"?",
            ]
        );
    }

    #[test]
    fn mcp_servers_are_named_where_the_debug_log_does() {
        let stderr = "Ripgrep is not available.\nMCP issues detected. Run /mcp list for status.\n";
        assert_eq!(complaints(stderr, ""), [SOME_MCP_SERVER]);
        let log = "[2026] [LOG] [MCP error] Error during discovery for MCP server 'nocmd': spawn /nowhere/x ENOENT Error: spawn /nowhere/x ENOENT\n    at x\n\
            [2026] [LOG] [MCP error] Error during discovery for MCP server 'exits': MCP error -32000: Connection closed _McpError: MCP error -32000: Connection closed\n\
            [2026] [LOG] [MCP error] Error during discovery for MCP server 'exits': again\n";
        assert_eq!(
            complaints(stderr, log),
            [
                "The MCP server nocmd has a problem, and the model was without its tools: spawn /nowhere/x ENOENT",
                "The MCP server exits has a problem, and the model was without its tools: MCP error -32000: Connection closed",
            ]
        );
    }

    #[test]
    fn wrong_settings_are_told_and_noise_is_not() {
        let stderr = "Invalid configuration in /h/.gemini/settings.json:\n\nError in: model\n    Expected object, received string\nExpected: object, but received: string\n\nPlease fix the configuration.\n";
        assert_eq!(
            complaints(stderr, "DEBUG nothing"),
            [
                "Gemini CLI calls its settings wrong and may not obey them: model (Expected object, received string) in /h/.gemini/settings.json"
            ]
        );
        assert_eq!(complaints("YOLO mode is enabled.\n\u{1b}[31mx\n", ""), Vec::<String>::new());
        assert_eq!(complaints("[USER] Policy file é", "MCP server '\u{0}"), Vec::<String>::new());
    }
}
