//! What standard error says.
//!
//! Gemini CLI 0.61.0 puts the reason of a failure there whenever it fails before the run begins, and in text mode
//! always; around it stand warnings, stack traces and the whole help text. None of that is a failure by itself, so this is
//! only read when something else says that the run failed.

use alhena_wire::display::is_unsafe_in_text;
use alhena_wire::report;

/// Lines that the CLI prints on every run, or on many.
const NOISE: &[&str] = &[
    "Warning: True color",
    // Of the telemetry that Alhena switches on.
    "The 'metricReader' option is deprecated",
    // Of the tool that takes an answer: it is checked by Alhena.
    "Failed to compile schema (https://json-schema.org/draft/2020-12/schema#)",
    "Warning: 256-color",
    "YOLO mode is enabled",
    "[STARTUP]",
    "Loaded cached credentials",
    "(node:",
    "(Use `node --trace-warnings",
    "Ripgrep is not available",
    "An unexpected critical error occurred:",
];

/// What the CLI prints in text mode about an answer that it could not use, before it exits 0.
const INVALID_ANSWERS: &[&str] = &[
    "The model returned ",
    "The model response was blocked ",
    "Model response was truncated ",
    "Model stream ended ",
    "Invalid stream: ",
];

/// Whether yargs printed its usage: the arguments were wrong.
pub(super) fn is_usage(stderr: &str) -> bool {
    stderr.lines().any(|line| line.starts_with("Usage: gemini"))
}

/// An error that the CLI throws by the name of its class, which is printed with its trace.
pub(super) fn thrown(stderr: &str) -> Option<(&str, &str)> {
    let mut errors = stderr.lines().rev().filter_map(|line| line.split_once(": "));
    errors.find(|(class, _)| class.starts_with("Fatal") && is_class(class))
}

/// Which keys of which settings file the CLI calls wrong (0.61.0). It goes on with them all the same, and may come to
/// nothing.
pub(super) fn wrong_settings(stderr: &str) -> Option<String> {
    let mut lines = stderr.lines().skip_while(|line| !line.starts_with("Invalid configuration in "));
    let file = lines.next()?.strip_prefix("Invalid configuration in ")?.trim_end_matches(':');
    let mut wrong = Vec::new();
    while let Some(line) = lines.next().filter(|line| !line.starts_with("Please fix")) {
        if let Some(key) = line.strip_prefix("Error in: ") {
            let why = lines.next().unwrap_or("").trim();
            wrong.push(format!("{key} ({})", plain(why)));
        }
    }
    (!wrong.is_empty()).then(|| format!("{} in {file}", wrong.join(", ")))
}

/// The reason that the CLI gives, without its usual noise; empty when it gives none.
pub(super) fn said(stderr: &str) -> String {
    if is_usage(stderr) {
        // The reason stands before the usage.
        let reason: Vec<&str> =
            stderr.lines().take_while(|line| !line.starts_with("Usage: gemini")).filter(is_said).collect();
        return plain(&reason.join("\n"));
    }
    if let Some(found) = report::find_error_report(stderr.as_bytes())
        && let Some(message) = found.report.error.and_then(|error| error.message)
    {
        return plain(&message);
    }
    if let Some(error) = api_error(stderr) {
        return plain(error.message);
    }
    let mut lines: Vec<&str> = stderr.lines().filter(is_said).collect();
    // Turn limit and cancel are said twice.
    lines.dedup_by(|later, earlier| later.strip_prefix("[ERROR] ") == Some(earlier));
    plain(&lines.get(lines.len().saturating_sub(3)..).unwrap_or_default().join("\n"))
}

fn is_said(line: &&str) -> bool {
    let traced = line.trim_start().starts_with("at ") && line.starts_with(' ');
    !line.trim().is_empty() && !traced && !is_noise(line)
}

fn is_noise(line: &str) -> bool {
    NOISE.iter().any(|noise| line.starts_with(noise))
}

/// Standard error as it was, but without the lines that say nothing about this run, and without the names of reports: those
/// are gone when the run is over.
pub fn without_noise(stderr: &str) -> String {
    const REPORT: &str = " Full report available at: ";
    let mut kept = String::with_capacity(stderr.len());
    for line in stderr.split_inclusive('\n').filter(|line| !is_noise(line)) {
        match line.split_once(REPORT).and_then(|(before, path)| Some((before, path.split_once(".json")?.1))) {
            Some((before, behind)) => kept.extend([before, behind]),
            None => kept.push_str(line),
        }
    }
    kept
}

/// An error of the API as the CLI logs it, with its stack trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ApiError<'a> {
    /// Its own message, which may be JSON.
    pub message: &'a str,
    /// All that was printed of it: class, message, trace and properties.
    pub whole: &'a str,
}

/// The last error of the API that the CLI gave up on. Attempts that were tried again do not count.
pub(super) fn api_error(stderr: &str) -> Option<ApiError<'_>> {
    const START: &str = "Error when talking to Gemini API";
    let at = stderr
        .rmatch_indices(START)
        .map(|(at, _)| at)
        .find(|at| *at == 0 || stderr.as_bytes().get(at - 1) == Some(&b'\n'))?;
    let rest = stderr.get(at + START.len()..)?;
    // Node closes the properties with a brace of its own.
    let whole = rest.find("\n}\n").and_then(|end| rest.get(..end)).unwrap_or(rest);
    let behind_path = whole.split_once(".json ").map_or(whole, |(_, error)| error);
    let message = behind_path.split_once("\n    at ").map_or(behind_path, |(message, _)| message);
    let message = match message.split_once(": ") {
        Some((class, message)) if is_class(class) => message,
        _ => message,
    };
    Some(ApiError { message: message.trim(), whole })
}

fn is_class(name: &str) -> bool {
    name.ends_with("Error") && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// What the CLI said of its last attempt to reach the API while it was still trying.
pub(super) fn last_attempt(stderr: &str) -> Option<&str> {
    let line = stderr.lines().rev().find(|line| line.starts_with("Attempt ") && line.contains(" failed"))?;
    let end = line.find(". Retrying").or_else(|| line.find(". Max attempts")).unwrap_or(line.len());
    line.get(..line.floor_char_boundary(end.min(200)))
}

/// The answer that could not be used, of a run in text mode: it exits 0.
pub(super) fn invalid_answer(stderr: &str) -> Option<String> {
    let said = |line: &str| INVALID_ANSWERS.iter().any(|start| line.starts_with(start));
    let mut errors = stderr.lines().rev().filter_map(|line| line.strip_prefix("[ERROR] "));
    errors.find(|line| said(line)).map(plain)
}

/// Without colours, other escape sequences and characters that are unsafe to show.
pub(super) fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c == '\u{1b}' {
            // A control sequence ends with a letter.
            chars.by_ref().find(|c| c.is_ascii_alphabetic());
        } else if !is_unsafe_in_text(c) {
            out.push(c);
        }
    }
    out.trim().to_owned()
}

/// The end of standard error as evidence: at most 20 lines and 4 KiB.
pub(super) fn last_lines(stderr: &str) -> &str {
    let start = stderr.len().saturating_sub(4096);
    let tail = stderr.get(stderr.ceil_char_boundary(start)..).unwrap_or("").trim_end();
    let from = tail.rmatch_indices('\n').nth(19).map_or(0, |(at, _)| at + 1);
    tail.get(from..).unwrap_or("")
}
