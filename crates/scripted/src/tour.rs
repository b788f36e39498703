//! The offline tour: a scripted model that reads the prompt well enough to show what a run looks like.
//!
//! It keeps no state. Gemini CLI sends the whole conversation with every request, so what was done since the last
//! prompt is read from there, and a resumed session goes on where it was. It never overwrites a file of the user: it
//! looks first, and writes only what is new or what it wrote itself.

mod asked;
mod compose;

use std::time::Duration;

use serde_json::{Value, json};

use crate::{RecordedRequest, Scenario, Turn, Usage};
use asked::{Asked, FileTask};
use compose::Genre;

/// What every answer says about itself.
const WHO: &str = "scripted offline model";

/// The scenario behind `alhena run --offline`: writes the file that the prompt asks for, looks at it, and says what it
/// did. Every answer says that it comes from the scripted offline model.
pub fn tour() -> Scenario {
    Scenario::dynamic(|request: &RecordedRequest| answer(request).usage(realistic_usage(request)))
}

fn answer(request: &RecordedRequest) -> Turn {
    let prompt = request.prompt().unwrap_or_default();
    match asked::read(prompt) {
        Asked::File(task) => write_file(request, &task),
        Asked::Repair => look_around(request, prompt),
        Asked::Anything => introduce(prompt),
    }
}

/// What a tool gave back since the prompt.
struct Done<'a> {
    tool: &'a str,
    output: &'a str,
    failed: bool,
}

fn done_since_prompt(request: &RecordedRequest) -> Vec<Done<'_>> {
    let results = request.results_since_prompt();
    results
        .map(|(tool, response)| {
            let text = |key: &str| response.get(key).and_then(Value::as_str);
            let failed = text("error").is_some();
            Done { tool, output: text("error").or(text("output")).unwrap_or_default(), failed }
        })
        .collect()
}

/// Looks whether the file is there, writes it, looks at it, tells.
fn write_file(request: &RecordedRequest, task: &FileTask) -> Turn {
    let offers = |tool: &str| request.tools().any(|each| each == tool);
    if !offers("write_file") || !offers("list_directory") || !offers("read_file") {
        return show_instead(task);
    }
    let done = done_since_prompt(request);
    let writes = done.iter().position(|done| done.tool == "write_file");
    if let Some(index) = writes {
        let after = done.get(index + 1..).unwrap_or_default();
        return written(request, task, done.get(index), after);
    }
    if let Some(read) = done.iter().find(|done| done.tool == "read_file") {
        let own = read.output.trim() == task.content.trim();
        let missing = read.failed && read.output.contains("not found");
        return if own || missing { begin_writing(task) } else { keep_theirs(task) };
    }
    look_or_write(task, &done)
}

/// Looks from the outside in until it is known whether the file is there.
fn look_or_write(task: &FileTask, done: &[Done<'_>]) -> Turn {
    let places = task.places();
    let listings: Vec<&Done<'_>> = done.iter().filter(|done| done.tool == "list_directory").collect();
    let next = places.get(listings.len());
    let looked = listings.last().zip(places.get(listings.len().saturating_sub(1)));
    match (looked, next) {
        (Some((listing, _)), _) if listing.failed && !listing.output.contains("ENOENT") => {
            not_written(task, listing.output)
        }
        (Some((listing, place)), _) if listing.failed || !may_hold(listing.output, &place.entry) => {
            begin_writing(task)
        }
        (_, Some(place)) => look_first(task, &place.directory, listings.is_empty()),
        (_, None) => Turn::new().call("read_file", json!({"file_path": task.path})),
    }
}

fn not_written(task: &FileTask, reason: &str) -> Turn {
    let said = format!("{} was not written: {}\n\n(This is the {WHO}.)", task.path, first_line(reason));
    streamed(Turn::new(), &said)
}

/// Whether a directory listing names an entry, or might: a long one is cut.
fn may_hold(listing: &str, entry: &str) -> bool {
    let entry = entry.to_lowercase();
    listing.to_lowercase().lines().any(|line| {
        let line = line.strip_prefix("[dir] ").unwrap_or(line);
        line == entry
            || line.strip_prefix(&entry).is_some_and(|rest| rest.starts_with(" ("))
            || line.contains("truncated")
    })
}

fn look_first(task: &FileTask, directory: &str, first: bool) -> Turn {
    let turn = if first {
        let plan = format!(
            "The prompt asks for {} in {}. I look first, so that nothing is overwritten.",
            task.kind.name(),
            task.path
        );
        Turn::new().thought("Looking around", &plan).sleep(Duration::from_millis(150))
    } else {
        Turn::new()
    };
    // Ignored files are files too.
    let all = json!({"respect_git_ignore": false, "respect_gemini_ignore": false});
    turn.call("list_directory", json!({"dir_path": directory, "file_filtering_options": all}))
}

fn begin_writing(task: &FileTask) -> Turn {
    let plan = format!("A short text will do: {} about {}.", task.kind.name(), task.topic);
    let said =
        format!("I am the {WHO}. I write {} about {} into {}. ", task.kind.name(), task.topic, task.path);
    streamed(Turn::new().thought("Composing", &plan).sleep(Duration::from_millis(150)), &said)
        .call("write_file", json!({"file_path": task.path, "content": task.content}))
}

fn written(request: &RecordedRequest, task: &FileTask, write: Option<&Done<'_>>, after: &[Done<'_>]) -> Turn {
    if let Some(failed) = write.filter(|write| write.failed) {
        let said =
            format!("{} was not written: {}\n\n(This is the {WHO}.)", task.path, first_line(failed.output));
        return streamed(Turn::new(), &said);
    }
    match after.last() {
        None if request.tools().any(|tool| tool == "run_shell_command") => Turn::new()
            .thought("Checking", "A look at the file shows that it is there.")
            .sleep(Duration::from_millis(100))
            .call(
                "run_shell_command",
                json!({
                    "command": format!("ls -l {}", task.quoted_path()),
                    "description": format!("Shows the size of {}", task.path),
                }),
            ),
        None => Turn::new()
            .thought("Checking", "A look at the file shows that it is there.")
            .sleep(Duration::from_millis(100))
            .call("read_file", json!({"file_path": task.path})),
        Some(check) => finished(task, check),
    }
}

fn finished(task: &FileTask, check: &Done<'_>) -> Turn {
    let checked = match (check.tool, check.failed) {
        (_, true) => format!("The check afterwards failed: {}", first_line(check.output)),
        ("run_shell_command", false) => format!("`ls -l` shows it: {}", shell_output(check.output)),
        (_, false) => "I read it back, and it is there.".to_owned(),
    };
    let verses = match task.kind {
        Genre::Haiku | Genre::Poem => format!("\n\n{}", task.content),
        Genre::List | Genre::Program | Genre::Page | Genre::Data | Genre::Note => "\n".to_owned(),
    };
    let said = format!(
        "I wrote {} about {} into {} ({} lines). {checked}{verses}\nThis answer comes from the {WHO}: the tool calls and the \
         file are real, the words were made up before you asked.",
        task.kind.name(),
        task.topic,
        task.path,
        task.content.lines().count(),
    );
    streamed(Turn::new(), &said)
}

fn keep_theirs(task: &FileTask) -> Turn {
    let said = format!(
        "{} is there already, and I did not write it. The {WHO} overwrites nothing of yours: ask for a file with \
         another name, or run without it.",
        task.path
    );
    streamed(Turn::new().thought("Stopping", "That file belongs to somebody."), &said)
}

/// The run does not allow writing: the content as text.
fn show_instead(task: &FileTask) -> Turn {
    let said = format!(
        "I am the {WHO}. This run offers no tools to write files with (an approval of auto-edit or yolo does), so here \
         is what {} would hold:\n\n{}",
        task.path, task.content
    );
    streamed(Turn::new().thought("Answering", "Without write_file, the text itself has to do."), &said)
}

fn look_around(request: &RecordedRequest, prompt: &str) -> Turn {
    let done = done_since_prompt(request);
    let listing = done.iter().find(|done| done.tool == "list_directory");
    if listing.is_none() && request.tools().any(|tool| tool == "list_directory") {
        return Turn::new()
            .thought("Looking around", "Before anything is repaired, a look at what is here.")
            .sleep(Duration::from_millis(150))
            .text("I look at the folder first. ")
            .call("list_directory", json!({"dir_path": "."}));
    }
    let seen = match listing {
        Some(listing) if !listing.failed => {
            match listing.output.lines().skip(1).filter(|line| !line.is_empty()).count() {
                0 => "The folder is empty. ".to_owned(),
                1 => "The folder holds one entry. ".to_owned(),
                entries => format!("The folder holds {entries} entries. "),
            }
        }
        _ => String::new(),
    };
    let said = format!(
        "{seen}I am the {WHO}, so I cannot really work on \"{}\": I understand no code and change nothing. Run it \
         without me and Gemini does; the run, its events and its summary look the same as here.",
        asked::excerpt(prompt)
    );
    streamed(Turn::new(), &said)
}

fn introduce(prompt: &str) -> Turn {
    let said = format!(
        "I am the {WHO}: no network, no key, and no understanding of \"{}\". What I can show is a whole run: ask for a \
         file, as in \"Write a haiku about rivers into haiku.txt\", and I write it by a real tool call, look at it with \
         a shell command, and say what I did. Ask me to fix something, and I look around in the folder.",
        asked::excerpt(prompt)
    );
    streamed(Turn::new().thought("Introducing myself", "No file is asked for, so an answer in words."), &said)
}

/// A text as a model streams it, in well under a second.
fn streamed(turn: Turn, text: &str) -> Turn {
    let size = (text.chars().count() / 24).max(16);
    turn.chunks(text, size, Duration::from_millis(15))
}

fn realistic_usage(request: &RecordedRequest) -> Usage {
    let tokens = |bytes: usize| (bytes / 4) as u64;
    let prompt = tokens(request.raw_body.len());
    // What a former request of the conversation had sent already comes from the cache.
    let cached = (request.results_since_prompt().next().is_some()).then_some(prompt * 9 / 10);
    Usage { prompt_token_count: Some(prompt), cached_content_token_count: cached, ..Usage::default() }
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().chars().take(200).collect()
}

/// The output of a command, without what Gemini CLI puts around it.
fn shell_output(output: &str) -> String {
    let line = output.lines().find_map(|line| line.strip_prefix("Output: "));
    first_line(line.unwrap_or(output))
}

#[cfg(test)]
mod tests;
