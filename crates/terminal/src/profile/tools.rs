//! The tools of a profile, by CAO's names, as tools of Gemini CLI.
//!
//! CAO's list says what an agent may use; everything else is refused. Gemini CLI 0.61.0 has no flag for that, but a policy
//! refuses a tool also in yolo mode, so what is not in the list is denied by name.

use super::Profile;

/// CAO's name, and what it stands for.
const TABLE: &[(&str, &[&str])] = &[
    ("execute_bash", &["run_shell_command"]),
    ("fs_read", &["read_file", "read_many_files", "list_directory", "glob", "grep_search"]),
    ("fs_write", &["write_file", "replace"]),
    ("fs_list", &["list_directory", "glob", "grep_search"]),
    ("web_fetch", &["web_fetch", "google_web_search"]),
];

impl Profile {
    /// The tools that an agent of this profile must not use: none when it does not say which it may.
    #[must_use]
    pub fn denied_tools(&self) -> Vec<String> {
        let Some(allowed) = &self.tools else { return Vec::new() };
        let means = |name: &str, word: &str, tool: &str| {
            word == "@builtin"
                || word == tool
                || word == name
                || word == "fs_*" && matches!(name, "fs_read" | "fs_write")
        };
        let mut denied: Vec<String> = Vec::new();
        let every = TABLE.iter().flat_map(|(_, tools)| tools.iter().copied());
        for tool in every {
            let names = TABLE.iter().filter(|(_, tools)| tools.contains(&tool));
            let is_allowed =
                names.into_iter().any(|(name, _)| allowed.iter().any(|word| means(name, word, tool)));
            if !is_allowed && !denied.iter().any(|known| known == tool) {
                denied.push(tool.to_owned());
            }
        }
        denied
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_profile_does_not_list_is_denied() {
        let denied =
            |front: &str| Profile::parse(&format!("---\n{front}\n---\n"), "x").unwrap().denied_tools();
        assert_eq!(denied("name: a"), Vec::<String>::new());
        assert_eq!(denied("tools: ['*']"), Vec::<String>::new());
        assert_eq!(denied("allowedTools: ['@builtin']"), Vec::<String>::new());
        assert_eq!(
            denied("allowedTools: ['@cao-mcp-server', fs_read]"),
            ["run_shell_command", "write_file", "replace", "web_fetch", "google_web_search"]
        );
        assert_eq!(denied("allowedTools: ['fs_*', run_shell_command]"), ["web_fetch", "google_web_search"]);
        assert_eq!(denied("allowedTools: [fs_list]").len(), 7);
    }
}
