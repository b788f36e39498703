//! What an exit code of Gemini CLI means. One table.
//!
//! The CLI passes an HTTP status to `process.exit`, which keeps the low eight bits: 429 is seen as 173 (0.61). And it exits 0
//! after SIGTERM, after an invalid model stream and when a hook stopped it, so 0 alone says little.

/// The class of an exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ExitMeaning {
    /// 0: finished; or was told to stop, or the model's answer was invalid.
    Done,
    /// 1: anything without a code of its own, wrong arguments included.
    General,
    /// 41: no usable way to sign in.
    Authentication,
    /// 42: no prompt, or a session that does not exist or exists already.
    Input,
    /// 44: the sandbox could not be started.
    Sandbox,
    /// 52: unreadable settings.
    Config,
    /// 53: more turns than the settings allow.
    TurnLimit,
    /// 54: a tool failed in a way that ends the run: the disk is full.
    ToolExecution,
    /// 55: the folder is not trusted (since 0.39.1).
    UntrustedWorkspace,
    /// 130: cancelled by ^C or Escape.
    Cancelled,
    /// 199: the CLI asks its own launcher to start it again; never seen outside.
    Relaunch,
    /// 144 to 255: the API answered with this HTTP status.
    Http(u16),
    /// None of these.
    Unknown,
}

/// One row of the table of exit codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExitCode {
    /// The code.
    pub code: u8,
    /// Its class.
    pub meaning: ExitMeaning,
    /// The class upstream that carries it, or where it comes from.
    pub upstream: &'static str,
    /// What it means, for people.
    pub text: &'static str,
}

macro_rules! exit_codes {
    ($($code:literal $meaning:ident $upstream:literal: $text:literal;)*) => {
        /// Every code that the CLI uses by itself.
        pub const TABLE: &[ExitCode] = &[
            $(ExitCode { code: $code, meaning: ExitMeaning::$meaning, upstream: $upstream, text: $text },)*
        ];
    };
}

exit_codes! {
    0 Done "process.exit": "finished; also after SIGTERM, SIGINT or SIGHUP, an invalid answer of the model, or a hook that stopped it";
    1 General "Error": "failed without a code of its own: wrong arguments, model not found, lost connection, any error in text mode";
    41 Authentication "FatalAuthenticationError": "no usable way to sign in";
    42 Input "FatalInputError": "no prompt, or a session that does not exist or exists already";
    44 Sandbox "FatalSandboxError": "the sandbox could not be started";
    52 Config "FatalConfigError": "the settings could not be read";
    53 TurnLimit "FatalTurnLimitedError": "more turns than maxSessionTurns allows";
    54 ToolExecution "FatalToolExecutionError": "a tool could not write because the disk is full";
    55 UntrustedWorkspace "FatalUntrustedWorkspaceError": "the folder is not trusted";
    130 Cancelled "FatalCancellationError": "cancelled by ^C or Escape";
    199 Relaunch "RELAUNCH_EXIT_CODE": "asks its own launcher for a new start; not an HTTP status";
}

/// The HTTP statuses that an exit code can stand for: the errors that are registered, and 499, which proxies of the API send.
/// Statuses from 512 on cannot be told from small exit codes.
const HTTP: &[u16] = &[
    400, 401, 402, 403, 404, 405, 406, 407, 408, 409, 410, 411, 412, 413, 414, 415, 416, 417, 418, 421, 422,
    423, 424, 425, 426, 428, 429, 431, 451, 499, 500, 501, 502, 503, 504, 505, 506, 507, 508, 510, 511,
];

/// What a code means.
pub fn meaning(code: i32) -> ExitMeaning {
    match row(code) {
        Some(row) => row.meaning,
        None => http_status(code).map_or(ExitMeaning::Unknown, ExitMeaning::Http),
    }
}

/// What a code means, for people; empty when nothing is known about it.
pub fn text(code: i32) -> &'static str {
    match row(code) {
        Some(row) => row.text,
        None if http_status(code).is_some() => {
            "the API answered with an HTTP error; its status modulo 256 is the code"
        }
        None => "",
    }
}

/// The HTTP status behind a code, if it is one: 173 is 429. A model that does not exist is a 404 too, but exits 1 (0.61).
pub fn http_status(code: i32) -> Option<u16> {
    if row(code).is_some() {
        return None;
    }
    let code = u16::from(u8::try_from(code).ok()?);
    HTTP.contains(&(code + 256)).then_some(code + 256)
}

fn row(code: i32) -> Option<&'static ExitCode> {
    TABLE.iter().find(|row| i32::from(row.code) == code)
}
