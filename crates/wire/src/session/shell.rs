//! How a shell command ended, as the model was told.
//!
//! The stream calls every command a success, and no field of the session says otherwise: the exit code stands only in the
//! text for the model, in its last lines, since about 0.26 only when it is not 0. The command's own output comes before
//! them, so they are read from the end. A command that prints such a line last and then succeeds cannot be told from one
//! that failed (0.61).

/// The last lines of a shell result.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShellEnd<'a> {
    /// Upstream: `Exit Code: N`.
    pub exit_code: Option<i32>,
    /// Upstream: `Signal: N`, a number or a name.
    pub signal: Option<&'a str>,
    /// Upstream: `Background PIDs: N, M`.
    pub background_pids: Option<&'a str>,
    /// Upstream: `Process Group PGID: N`.
    pub process_group: Option<i64>,
}

/// Reads the last lines of what `run_shell_command` told the model; `None` when this is not the report of a command that
/// ran to its end (one that was cancelled, refused or sent to the background).
pub fn shell_end(output: &str) -> Option<ShellEnd<'_>> {
    let text = output.trim_end();
    let text = text.strip_prefix("<untrusted_context>").unwrap_or(text).trim_start();
    let mut text = text.strip_suffix("</untrusted_context>").unwrap_or(text).trim_end();
    if !text.starts_with("Output: ") && !text.starts_with("Command: ") {
        return None;
    }
    let process_group = take_last(&mut text, "Process Group PGID: ");
    let background_pids = take_last(&mut text, "Background PIDs: ");
    let signal = take_last(&mut text, "Signal: ");
    let exit_code = take_last(&mut text, "Exit Code: ");
    Some(ShellEnd {
        exit_code: exit_code.and_then(|code| code.parse().ok()),
        signal: signal.filter(|signal| *signal != "(none)"),
        background_pids: background_pids.filter(|pids| *pids != "(none)"),
        process_group: process_group.and_then(|group| group.parse().ok()),
    })
}

/// What a shell command printed, without what the CLI writes around it for the model (0.26 on).
pub fn shell_output(result: &str) -> &str {
    let inner = result.trim_start().strip_prefix("<untrusted_context>").unwrap_or(result);
    let inner = inner.trim_end().strip_suffix("</untrusted_context>").unwrap_or(inner);
    let Some(output) = inner.trim().strip_prefix("Output: ") else { return inner.trim_matches('\n') };
    let mut end = output.len();
    for label in ["Process Group PGID: ", "Background PIDs: ", "Signal: ", "Exit Code: "] {
        let so_far = output.get(..end).unwrap_or("");
        let start = so_far.rfind('\n').map_or(0, |at| at + 1);
        if so_far.get(start..).is_some_and(|line| line.starts_with(label)) {
            end = start.saturating_sub(1);
        }
    }
    output.get(..end).unwrap_or(output)
}

/// Takes the last line off a text if it has this name.
fn take_last<'a>(text: &mut &'a str, name: &str) -> Option<&'a str> {
    let (before, line) = text.rsplit_once('\n')?;
    let value = line.strip_prefix(name)?;
    *text = before;
    Some(value)
}
