//! One job: its options, where it works, and the mark by which it is known again.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use alhena_model::options::AnswerSchema;
use alhena_model::policy::is_below;
use alhena_model::{Approval, Prompt, RunOptions, SettingError};
use alhena_sys::files;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::launcher::{Launcher, setting_error};
use crate::outputs::Outputs;
use crate::place::without_secret;
use crate::travel;

/// What a job may say beside the options of `run`, and what it means.
pub const FIELDS: &[(&str, &str)] = &[
    ("id", "What the job is called in the results; its line's number by default."),
    (
        "copy",
        "Whether it works in a private copy of its directory; what it changes there is the result's patch.",
    ),
    (
        "git",
        "Works in a private checkout of a repository, in `dir` of it: {\"url\": ..., \"ref\": ...}. What it changes there is the result's patch.",
    ),
    (
        "outputs",
        "Files to give back in the result: paths and patterns below the directory of a job with `copy` or `git`, ignored files too.",
    ),
    ("shared", "Whether it may work in its directory while others that may change something do."),
];

/// Returns the JSON schema of a job: one line of a batch.
pub fn schema() -> Value {
    let mut properties = Map::new();
    for (name, meaning) in FIELDS {
        let mut schema = match *name {
            "id" => json!({ "type": ["string", "integer"] }),
            "git" => json!({
                "type": "object",
                "properties": { "url": { "type": "string" }, "ref": { "type": "string" } },
                "required": ["url"],
                "additionalProperties": false,
            }),
            "outputs" => json!({
                "anyOf": [{ "type": "string" }, { "type": "array", "items": { "type": "string" }, "maxItems": 100 }],
            }),
            _ => json!({ "type": "boolean" }),
        };
        if let Some(schema) = schema.as_object_mut() {
            schema.insert("description".to_owned(), Value::from(*meaning));
        }
        properties.insert((*name).to_owned(), schema);
    }
    properties.extend(alhena_model::options::properties());
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Job",
        "description": "One job of a batch: a prompt, and any option of `alhena run` by its name.",
        "type": "object",
        "properties": properties,
        "additionalProperties": false,
    })
}

/// A job as it is written: its own fields and those of its options.
pub type Fields = Map<String, Value>;

/// No id is longer, in bytes.
const LONGEST_ID: usize = 256;

/// A job that can be run.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// Unique among the jobs of a batch.
    pub id: String,
    /// The line on which it begins, from 1.
    pub line: u64,
    /// Its prompt.
    pub prompt: Prompt,
    /// Its options, with the defaults of the batch.
    pub options: RunOptions,
    /// Where it works.
    pub place: Place,
    /// What it gives back beside its patch.
    pub outputs: Outputs,
    /// Of all that it says.
    pub mark: Mark,
}

/// Where a job works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// In its directory, as that is.
    Dir,
    /// In a private copy of its directory.
    Copy,
    /// In a private checkout of a repository.
    Git(Checkout),
}

/// Which commit of which repository.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Checkout {
    /// Where the repository is.
    pub url: String,
    /// A branch, a tag or a commit.
    pub reference: String,
    /// The directory in it, if not all of it.
    pub dir: PathBuf,
}

/// By which a job is known again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Mark([u8; 16]);

impl Mark {
    pub(crate) fn of(parts: &[&[u8]]) -> Self {
        let mut hash = Sha256::new();
        for part in parts {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        let mut mark = [0; 16];
        mark.iter_mut().zip(hash.finalize()).for_each(|(to, from)| *to = from);
        Self(mark)
    }
}

impl std::fmt::Display for Mark {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// A text that is not a [`Mark`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadMark;

impl std::fmt::Display for BadMark {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a mark has 32 hexadecimal digits")
    }
}

impl std::error::Error for BadMark {}

impl std::str::FromStr for Mark {
    type Err = BadMark;

    fn from_str(text: &str) -> Result<Self, BadMark> {
        let mut mark = [0; 16];
        // The conversion below accepts a sign too.
        if text.len() != 32 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(BadMark);
        }
        for (place, digits) in mark.iter_mut().zip(text.as_bytes().chunks(2)) {
            let digits = std::str::from_utf8(digits).map_err(|_| BadMark)?;
            *place = u8::from_str_radix(digits, 16).map_err(|_| BadMark)?;
        }
        Ok(Self(mark))
    }
}

/// Who may work at the same time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lane {
    /// Everybody.
    Free,
    /// One after another in this directory, and in those above and below it.
    In(PathBuf),
}

/// What all jobs have in common.
pub struct Common<'a> {
    /// Options where a job says nothing.
    pub defaults: &'a Fields,
    /// What its prompt is made by.
    pub template: Option<&'a crate::supply::Template>,
    /// Checks the options.
    pub launcher: &'a dyn Launcher,
    /// Whether workers on other machines run the jobs.
    pub travels: bool,
}

impl Job {
    /// Makes a job of what a line says, or tells all that is wrong with it.
    pub fn read(line: u64, said: Fields, common: &Common<'_>) -> Result<(Self, Lane), Vec<SettingError>> {
        let mut faults = Vec::new();
        let mut options = said;
        if let Some(template) = common.template
            && let Err(fault) = template.fill(&mut options)
        {
            faults.push(fault);
        }
        let mut options = with_defaults(options, common.defaults);
        let id = keep(id(options.shift_remove("id"), line), &mut faults).unwrap_or_default();
        let copy = keep(flag(&mut options, "copy"), &mut faults).unwrap_or_default();
        let shared = keep(flag(&mut options, "shared"), &mut faults).unwrap_or_default();
        let checkout = keep(checkout(&mut options), &mut faults).flatten();
        let place = match (copy, checkout) {
            (true, Some(_)) => {
                faults.push(SettingError::new(
                    "copy and git cannot be given together",
                    "Leave one of them out.",
                ));
                Place::Copy
            }
            (true, None) => Place::Copy,
            (false, Some(checkout)) => Place::Git(checkout),
            (false, None) => Place::Dir,
        };
        let outputs = options.shift_remove("outputs").map(Outputs::of).transpose();
        let outputs = keep(outputs, &mut faults).flatten().unwrap_or_default();
        if place == Place::Dir && !outputs.is_empty() {
            let message = "outputs are for jobs with a place of their own";
            faults.push(SettingError::new(
                message,
                "Add copy or git, or leave it out: the files stay in its directory.",
            ));
        }
        let fields = options;
        let checked = prompt_and_options(&fields).and_then(|(prompt, options)| {
            let check = if common.travels { travel::check } else { check };
            let (checked, dir) = check(&prompt, &options, &place, common.launcher)?;
            Ok((prompt, options, writes(&checked), dir))
        });
        let (prompt, options, writes, dir) = match checked {
            Ok(checked) if faults.is_empty() => checked,
            Ok(_) => return Err(faults),
            Err(more) => {
                faults.extend(more);
                return Err(faults);
            }
        };
        let mark =
            mark(&fields, &place, &outputs, &inputs(&prompt, &options)).map_err(|fault| vec![fault])?;
        let lane = match place {
            Place::Dir if writes && !shared => Lane::In(dir),
            _ => Lane::Free,
        };
        Ok((Self { id, line, prompt, options, place, outputs, mark }, lane))
    }
}

fn prompt_and_options(fields: &Fields) -> Result<(Prompt, RunOptions), Vec<SettingError>> {
    let own: Vec<&str> = FIELDS.iter().map(|(name, _)| *name).collect();
    let (prompt, options) = RunOptions::with_prompt_from(fields, &own)?;
    let none = || SettingError::new("there is no prompt", "Give a prompt, or a prompt_file.");
    let prompt = prompt.ok_or_else(none).and_then(|prompt| prompt.check().map(|()| prompt));
    Ok((prompt.map_err(|error| vec![error])?, options))
}

/// Returns the options with the defaults of files, and the directory of the job without symbolic links.
fn check(
    prompt: &Prompt,
    options: &RunOptions,
    place: &Place,
    launcher: &dyn Launcher,
) -> Result<(RunOptions, PathBuf), Vec<SettingError>> {
    let mut options = options.clone();
    // The files in a checkout are known when it is there.
    options.no_config |= matches!(place, Place::Git(_));
    let checked = launcher.check(Some(prompt), &options).map_err(|error| vec![setting_error(&error)])?;
    let dir = checked.dir.as_deref().unwrap_or(Path::new("."));
    let dir = dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
    Ok((checked, dir))
}

/// Returns true if the agent may change something without being asked.
fn writes(options: &RunOptions) -> bool {
    // The scripted model may do everything, unless something else is said.
    let default = if options.offline.is_some() { Approval::Yolo } else { Approval::Default };
    let reads_only = matches!(options.approval.unwrap_or(default), Approval::Default | Approval::Plan)
        && options.allow_tool.is_empty()
        && [&options.allow, &options.deny, &options.ask].iter().all(|rules| rules.is_empty())
        && options.rules.is_empty()
        && options.policy.is_empty()
        && options.mcp_server.is_empty()
        && options.args.is_empty();
    !reads_only || options.agent_command.is_some()
}

/// The files that a job consists of: other content makes it another job.
fn inputs(prompt: &Prompt, options: &RunOptions) -> Vec<PathBuf> {
    let prompt = match prompt {
        Prompt::File(file) => Some(file.clone()),
        Prompt::Text(_) => None,
    };
    let schema = match &options.schema {
        Some(AnswerSchema::FileOrText(given)) => Some(PathBuf::from(given)).filter(|file| file.is_file()),
        Some(AnswerSchema::Json(_)) | None => None,
    };
    prompt.into_iter().chain(options.system_prompt_file.clone()).chain(schema).collect()
}

fn keep<T>(value: Result<T, SettingError>, faults: &mut Vec<SettingError>) -> Option<T> {
    value.map_err(|fault| faults.push(fault)).ok()
}

/// The defaults, with what the job says on top. Null takes a default away.
fn with_defaults(said: Fields, defaults: &Fields) -> Fields {
    let mut options = defaults.clone();
    // One kind of prompt is in the place of the other.
    for (one, other) in [("prompt", "prompt_file"), ("prompt_file", "prompt")] {
        if said.contains_key(one) {
            options.shift_remove(other);
        }
    }
    options.extend(said);
    options.retain(|_, value| !value.is_null());
    options
}

/// The id of what a line says, if it has a right one.
pub(crate) fn id_of(said: &Fields, line: u64) -> Option<String> {
    id(said.get("id").filter(|id| !id.is_null()).cloned(), line).ok()
}

fn id(said: Option<Value>, line: u64) -> Result<String, SettingError> {
    let fault = |message: &str| Err(SettingError::new(message, "An id is a text or a whole number."));
    let id = match said {
        None => line.to_string(),
        Some(Value::String(id)) => id,
        Some(Value::Number(number)) if number.is_u64() || number.is_i64() => number.to_string(),
        Some(_) => return fault("id is neither a text nor a whole number"),
    };
    match id {
        _ if id.trim().is_empty() => fault("id is empty"),
        _ if id.len() > LONGEST_ID => fault(&format!("id is longer than {LONGEST_ID} bytes")),
        _ if id.chars().any(char::is_control) => fault("id has a control character in it"),
        _ => Ok(id),
    }
}

fn flag(options: &mut Fields, name: &str) -> Result<bool, SettingError> {
    match options.shift_remove(name) {
        None => Ok(false),
        Some(Value::Bool(yes)) => Ok(yes),
        Some(_) => Err(SettingError::new(format!("{name}: true or false is needed"), "")),
    }
}

fn checkout(options: &mut Fields) -> Result<Option<Checkout>, SettingError> {
    let hint = "Write {\"url\": \"https://...\", \"ref\": \"main\"}.";
    let fault = |message: String| SettingError::new(message, hint);
    let Some(said) = options.shift_remove("git") else { return Ok(None) };
    let Value::Object(mut said) = said else { return Err(fault("git: an object is needed".to_owned())) };
    let mut text = |name: &str| match said.shift_remove(name) {
        None => Ok(None),
        // What begins with a dash is an option to git.
        Some(Value::String(text)) if text.starts_with('-') || text.contains('\0') => {
            Err(fault(format!("git: {name} cannot be {text:?}")))
        }
        Some(Value::String(text)) if !text.trim().is_empty() => Ok(Some(text)),
        Some(_) => Err(fault(format!("git: {name} has to be a text"))),
    };
    let (url, reference) = (text("url")?, text("ref")?);
    if let Some(name) = said.keys().next() {
        return Err(fault(format!("git: there is no {name}")));
    }
    let Some(url) = url else { return Err(fault("git: url is missing".to_owned())) };
    if !is_address(&url) {
        return Err(fault(format!("git: {} is no address of a repository", without_secret(&url))));
    }
    let dir = match options.shift_remove("dir") {
        None => PathBuf::new(),
        Some(Value::String(dir)) if is_below(Path::new(&dir)) => PathBuf::from(dir),
        Some(dir) => {
            let message = format!("dir: {dir} is no directory inside of the repository");
            return Err(SettingError::new(message, "With git, dir is a path in the repository."));
        }
    };
    Ok(Some(Checkout { url, reference: reference.unwrap_or_else(|| "HEAD".to_owned()), dir }))
}

/// By one of the ways that only fetch: git has others, which run whatever they are told.
fn is_address(url: &str) -> bool {
    match url.split_once("://") {
        Some((way, _)) => matches!(way, "https" | "http" | "ssh" | "git" | "file"),
        None => !url.contains("::"),
    }
}

fn mark(fields: &Fields, place: &Place, outputs: &Outputs, inputs: &[PathBuf]) -> Result<Mark, SettingError> {
    let place = match place {
        Place::Dir => Value::Null,
        Place::Copy => json!("copy"),
        Place::Git(Checkout { url, reference, dir }) => json!([url, reference, dir]),
    };
    let mut text = String::new();
    write_sorted(fields, &mut text);
    let place = place.to_string();
    let mut contents = Vec::new();
    for input in inputs {
        let read = files::open(input).and_then(|mut file| {
            let mut bytes = Vec::new();
            std::io::Read::read_to_end(&mut file, &mut bytes)?;
            Ok(Sha256::digest(&bytes).to_vec())
        });
        let digest = read.map_err(|error| {
            SettingError::new(format!("{}: {error}", input.display()), "Give a file that can be read.")
        })?;
        contents.extend(digest);
    }
    let mut parts: Vec<&[u8]> = vec![text.as_bytes(), place.as_bytes(), &contents];
    parts.extend(outputs.patterns().iter().map(|pattern| pattern.as_bytes()));
    Ok(Mark::of(&parts))
}

/// JSON that is the same in whatever order the fields were given.
fn write_sorted(fields: &Fields, text: &mut String) {
    let mut names: Vec<&String> = fields.keys().collect();
    names.sort();
    text.push('{');
    for name in names {
        let _infallible = write!(text, "{name:?}:");
        match fields.get(name) {
            Some(Value::Object(inner)) => write_sorted(inner, text),
            Some(value) => {
                let _infallible = write!(text, "{value}");
            }
            None => {}
        }
        text.push(',');
    }
    text.push('}');
}

#[cfg(test)]
mod tests;
