//! Which release of Gemini CLI has which feature. One table, from 0.11 on.
//!
//! The CLI changes its contract in minor releases, about every week: flags that an older one rejects with exit 1, another
//! session format, other tool arguments. `since` is the first stable release that has the feature, as found in the
//! published packages; 0.14, 0.23, 0.46 and some later numbers were never published. Trust came with a patch, 0.39.1.

use std::fmt;
use std::str::FromStr;

/// A version of the CLI, ordered as npm orders them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(semver::Version);

/// The newest release whose behaviour is known.
pub const NEWEST_KNOWN: Version = Version::new(0, 61, 0);

/// The oldest release that can be driven: the first with stream-json.
pub const OLDEST_SUPPORTED: Version = Version::new(0, 11, 0);

impl Version {
    /// A stable release.
    pub const fn new(major: u64, minor: u64, patch: u64) -> Self {
        Version(semver::Version::new(major, minor, patch))
    }

    /// Whether this release has a feature. A preview counts as the release it leads up to, because it is cut from the same
    /// branch; a nightly of the release that brings the feature may predate it and so does not count.
    pub fn has(&self, feature: Feature) -> bool {
        feature
            .row()
            .is_some_and(|row| self.reached(row.since) && !row.until.is_some_and(|until| self.reached(until)))
    }

    fn reached(&self, release: (u64, u64, u64)) -> bool {
        let Version(semver::Version { major, minor, patch, pre, .. }) = self;
        let numbers = (*major, *minor, *patch);
        numbers > release || (numbers == release && (pre.is_empty() || pre.starts_with("preview")))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The text is not a version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotAVersion;

impl fmt::Display for NotAVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a version number")
    }
}

impl std::error::Error for NotAVersion {}

impl FromStr for Version {
    type Err = NotAVersion;

    /// Takes what `gemini --version` prints: white space around it, a leading `v` and the build do not matter.
    fn from_str(text: &str) -> Result<Self, NotAVersion> {
        let text = text.trim();
        let version =
            semver::Version::parse(text.strip_prefix('v').unwrap_or(text)).map_err(|_| NotAVersion)?;
        Ok(Version(semver::Version { build: semver::BuildMetadata::EMPTY, ..version }))
    }
}

/// One row of the table of features.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// The feature.
    pub feature: Feature,
    /// Its name in lists: `stream-json`.
    pub name: &'static str,
    /// The first stable release that has it.
    pub since: (u64, u64, u64),
    /// The first stable release that has it no more.
    pub until: Option<(u64, u64, u64)>,
    /// What it is.
    pub text: &'static str,
}

macro_rules! features {
    ($($feature:ident $name:literal $since:tt $(until $until:tt)?: $text:literal,)*) => {
        /// Something that not every release can do.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Feature {
            $(#[doc = $text] $feature,)*
        }

        /// Every feature, with the first release that has it.
        pub const TABLE: &[Row] = &[
            $(Row {
                feature: Feature::$feature,
                name: $name,
                since: $since,
                until: features!(@until $($until)?),
                text: $text,
            },)*
        ];
    };
    (@until) => { None };
    (@until $until:tt) => { Some($until) };
}

impl Feature {
    /// Every feature.
    pub fn all() -> impl Iterator<Item = Feature> {
        TABLE.iter().map(|row| row.feature)
    }

    /// The feature's row in [`TABLE`].
    pub fn row(self) -> Option<&'static Row> {
        TABLE.iter().find(|row| row.feature == self)
    }
}

features! {
    StreamJson "stream-json" (0, 11, 0): "`--output-format stream-json`.",
    SaveMemory "save-memory" (0, 11, 0) until (0, 44, 0): "The tool `save_memory`.",
    FakeResponses "fake-responses" (0, 12, 0): "`--fake-responses` and `--record-responses`, for tests.",
    FilePathArgument "file-path-argument" (0, 14, 0): "Tools take `file_path` and `dir_path` instead of `absolute_path` and `path`.",
    Resume "resume" (0, 15, 0): "`--resume`, `--list-sessions` and `--delete-session`.",
    ReportSessionId "report-session-id" (0, 21, 0): "`session_id` in the json report.",
    SessionSummary "session-summary" (0, 21, 0): "`summary` in session files.",
    Hooks "hooks" (0, 21, 0): "Hooks.",
    CachedTokens "cached-tokens" (0, 22, 0): "`cached` and `input` in stream stats, `tokens.input` in the json report.",
    ApprovalLabels "approval-labels" (0, 22, 0): "`Allow once` instead of `Yes, allow once` in the terminal.",
    CliHome "gemini-cli-home" (0, 25, 0): "`GEMINI_CLI_HOME`.",
    WindowTitle "window-title" (0, 25, 0): "The terminal title tells the state.",
    PlanMode "plan-mode" (0, 26, 0): "`--approval-mode plan`.",
    PositionalInteractive "positional-interactive" (0, 26, 0): "A positional prompt on a terminal starts an interactive session.",
    RawOutput "raw-output" (0, 27, 0): "`--raw-output`; escape sequences in the model's text are removed without it.",
    FolderTrustDefault "folder-trust-default" (0, 28, 0): "Folder trust is on unless switched off.",
    GrepSearch "grep-search" (0, 28, 0): "`grep_search` instead of `search_file_content`.",
    AcpLoad "acp-load" (0, 28, 0): "ACP `session/load`.",
    SessionDirectories "session-directories" (0, 28, 0): "`directories` and `displayContent` in session files.",
    SlugDirectories "slug-directories" (0, 29, 0): "Sessions lie under a slug from `projects.json` instead of a hash of the path.",
    Policy "policy" (0, 30, 0): "`--policy`.",
    RoleMetrics "role-metrics" (0, 30, 0): "`roles` in the json report.",
    LineRange "line-range" (0, 31, 0): "`start_line` and `end_line` instead of `offset` and `limit`.",
    AllowMultiple "allow-multiple" (0, 31, 0): "`replace` takes `allow_multiple` instead of `expected_replacements`.",
    AcpSetMode "acp-set-mode" (0, 31, 0): "ACP `session/set_mode`.",
    SessionKind "session-kind" (0, 31, 0): "`kind` in session files.",
    AcpSetModel "acp-set-model" (0, 33, 0): "ACP `session/set_model`.",
    Acp "acp" (0, 33, 0): "`--acp`; `--experimental-acp` before.",
    McpPrefix "mcp-prefix" (0, 33, 0): "MCP tools are called `mcp_<server>_<tool>`.",
    StatsModels "stats-models" (0, 34, 0): "`models` in stream stats.",
    AdminPolicy "admin-policy" (0, 35, 0): "`--admin-policy`.",
    AcpQuota "acp-quota" (0, 36, 0): "Token counts in the ACP prompt response.",
    SubagentDirectories "subagent-directories" (0, 37, 0): "Sub-agents record below their parent's session.",
    UpdateTopic "update-topic" (0, 37, 0): "The tool `update_topic`.",
    JsonlSessions "jsonl-sessions" (0, 39, 0): "Sessions are append-only JSONL logs instead of one JSON object.",
    LauncherSplit "launcher-split" (0, 39, 0): "`gemini` is a thin launcher that ignores signals, with the real process below it.",
    InvokeAgent "invoke-agent" (0, 39, 0): "One tool `invoke_agent` instead of a tool per sub-agent.",
    SkipTrust "skip-trust" (0, 39, 1): "`--skip-trust` and `GEMINI_CLI_TRUST_WORKSPACE`.",
    TrustEnforcedHeadless "trust-enforced-headless" (0, 39, 1): "An untrusted folder ends a headless run with exit 55.",
    SessionIdFlag "session-id" (0, 41, 0): "`--session-id`.",
    ReportWarnings "report-warnings" (0, 42, 0): "`warnings` in the json report.",
    InvalidStreamResult "invalid-stream-result" (0, 42, 0): "An invalid answer of the model is an `error` event and a `result` of error, with exit 0.",
    HookMessages "hook-messages" (0, 42, 0): "A BeforeModel hook can add a message; before, it took calls and results out.",
    ToolIdPrefix "tool-id-prefix" (0, 43, 0): "Tool ids begin with the tool's name and two underscores.",
    SessionFileFlag "session-file" (0, 43, 0): "`--session-file`.",
    SessionCheckpoints "session-checkpoints" (0, 44, 0): "`$set.messages` in session logs.",
    ErrorsByType "errors-by-type" (0, 54, 0): "`errorsByType` in the json report.",
    SecureSystemSettings "secure-system-settings" (0, 60, 0): "System settings count only if root alone can write them.",
}
