//! Which release of Gemini CLI has which feature. One table, from 0.11 on.
//!
//! The CLI changes its contract in minor releases, about every week: flags that an older one rejects with exit 1, another
//! session format, other tool arguments. `since` is the first stable release that has the feature, as found in the
//! published packages; 0.14, 0.23, 0.46 and some later numbers were never published. Trust came with a patch, 0.39.1.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

/// A version of the CLI, ordered as npm orders them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Version {
    /// The first number.
    pub major: u64,
    /// The second number.
    pub minor: u64,
    /// The third number.
    pub patch: u64,
    /// What follows a `-`: `nightly.20260821.g5411f113c`, `preview.0`; empty on a stable release.
    pub pre: String,
}

/// The newest release whose behaviour is known.
pub const NEWEST_KNOWN: Version = Version::new(0, 61, 0);

/// The oldest release that can be driven: the first with stream-json.
pub const OLDEST_SUPPORTED: Version = Version::new(0, 11, 0);

impl Version {
    /// A stable release.
    pub const fn new(major: u64, minor: u64, patch: u64) -> Self {
        Version { major, minor, patch, pre: String::new() }
    }

    /// Whether this release has a feature. A preview counts as the release it leads up to, because it is cut from the same
    /// branch; a nightly of the release that brings the feature may predate it and so does not count.
    pub fn has(&self, feature: Feature) -> bool {
        feature
            .row()
            .is_some_and(|row| self.reached(row.since) && !row.until.is_some_and(|until| self.reached(until)))
    }

    fn reached(&self, release: (u64, u64, u64)) -> bool {
        let numbers = (self.major, self.minor, self.patch);
        numbers > release || (numbers == release && (self.pre.is_empty() || self.pre.starts_with("preview")))
    }
}

impl Ord for Version {
    fn cmp(&self, other: &Self) -> Ordering {
        let numbers = |version: &Version| (version.major, version.minor, version.patch);
        numbers(self).cmp(&numbers(other)).then_with(|| compare_pre(&self.pre, &other.pre))
    }
}

impl PartialOrd for Version {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Pre-release order of semantic versioning: none is the highest, numbers before words, the shorter first.
fn compare_pre(left: &str, right: &str) -> Ordering {
    match (left.is_empty(), right.is_empty()) {
        (true, true) => return Ordering::Equal,
        (true, false) => return Ordering::Greater,
        (false, true) => return Ordering::Less,
        (false, false) => {}
    }
    let (mut left, mut right) = (left.split('.'), right.split('.'));
    loop {
        let order = match (left.next(), right.next()) {
            (None, None) => return Ordering::Equal,
            (None, Some(_)) => Ordering::Less,
            (Some(_), None) => Ordering::Greater,
            (Some(left), Some(right)) => compare_identifier(left, right),
        };
        if order != Ordering::Equal {
            return order;
        }
    }
}

fn compare_identifier(left: &str, right: &str) -> Ordering {
    let number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    match (number(left), number(right)) {
        (true, false) => Ordering::Less,
        (false, true) => Ordering::Greater,
        (false, false) => left.cmp(right),
        (true, true) => {
            let (left, right) = (left.trim_start_matches('0'), right.trim_start_matches('0'));
            left.len().cmp(&right.len()).then_with(|| left.cmp(right))
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)?;
        if self.pre.is_empty() { Ok(()) } else { write!(f, "-{}", self.pre) }
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

    /// Takes what `gemini --version` prints: white space around it and a leading `v` do not matter.
    fn from_str(text: &str) -> Result<Self, NotAVersion> {
        let text = text.trim();
        let text = text.strip_prefix('v').unwrap_or(text);
        let text = text.split_once('+').map_or(text, |(version, _build)| version);
        let (numbers, pre) = match text.split_once('-') {
            Some((numbers, pre)) if is_pre(pre) => (numbers, pre),
            Some(_) => return Err(NotAVersion),
            None => (text, ""),
        };
        let mut numbers = numbers.split('.').map(number);
        let mut next = || numbers.next().unwrap_or(Err(NotAVersion));
        let version = Version { major: next()?, minor: next()?, patch: next()?, pre: pre.to_owned() };
        if numbers.next().is_some() { Err(NotAVersion) } else { Ok(version) }
    }
}

fn number(text: &str) -> Result<u64, NotAVersion> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        text.parse().map_err(|_| NotAVersion)
    } else {
        Err(NotAVersion)
    }
}

fn is_pre(text: &str) -> bool {
    let identifier =
        |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    text.split('.').all(identifier)
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
