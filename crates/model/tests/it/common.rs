//! The recordings of real runs, and how to play them.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use alhena_model::{End, Event, Exit, Input, Interpreter, Outcome};
use alhena_wire::frame::{Frame, Framer};
use alhena_wire::report;

/// One run of the real CLI.
pub struct Recording {
    pub name: String,
    pub stdout: Vec<u8>,
    pub stderr: String,
    /// None when the run was killed because it took too long.
    pub exit: Exit,
}

impl Recording {
    fn read(dir: &Path) -> Self {
        let name = dir.file_name().unwrap().to_str().unwrap().to_owned();
        let stderr = String::from_utf8_lossy(&fs::read(dir.join("stderr")).unwrap()).into_owned();
        let exit = fs::read_to_string(dir.join("exit")).unwrap();
        let exit = match exit.split_whitespace().next().unwrap().parse::<i32>() {
            Ok(code) if code < 0 => Exit::Signal(-code),
            Ok(code) => Exit::Code(code),
            Err(_) => Exit::Unknown,
        };
        Self { name, stdout: fs::read(dir.join("stdout")).unwrap(), stderr, exit }
    }

    /// Every recording, here and beside the wire types, by name.
    pub fn all() -> Vec<Self> {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let places = ["tests/data/recordings", "../wire/tests/data/recordings"];
        let mut dirs: Vec<PathBuf> = places
            .iter()
            .flat_map(|place| fs::read_dir(here.join(place)).unwrap())
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.is_dir())
            .collect();
        dirs.sort_by_key(|dir| dir.file_name().unwrap().to_owned());
        dirs.iter().map(|dir| Self::read(dir)).collect()
    }

    /// The recording of that name.
    pub fn get(name: &str) -> Self {
        let mut all = Self::all();
        all.retain(|recording| recording.name == name);
        all.pop().unwrap_or_else(|| panic!("no recording {name}"))
    }

    /// Plays it in the format that its name says, ended as it was.
    pub fn play(&self) -> (Vec<Event>, Arc<Outcome>) {
        self.play_ended(self.exit)
    }

    /// Plays it as if it had ended like this.
    pub fn play_ended(&self, exit: Exit) -> (Vec<Event>, Arc<Outcome>) {
        const TEXT: &[&str] = &["_text", "_noformat", "_list", "17_other"];
        let (mut interpreter, mut out) = (Interpreter::new(), Vec::new());
        let is_text = TEXT.iter().any(|sign| self.name.contains(sign)) || self.name == "06_list_two";
        if is_text && !self.name.contains("_streamjson") && !self.name.contains("_json") {
            let text = String::from_utf8_lossy(&self.stdout);
            interpreter.feed(Input::Text { text: text.trim_end_matches('\n').into(), exit }, &mut out);
        } else if self.name.contains("_json") {
            let found = report::find_report(&self.stdout)
                .or_else(|| report::find_error_report(self.stderr.as_bytes()));
            if let Some(found) = found {
                interpreter.feed(Input::Report(Box::new(found.report)), &mut out);
            }
        } else {
            feed(&mut interpreter, &self.stdout, &mut out);
        }
        let end = End { exit, stderr: self.stderr.clone(), duration_ms: None };
        let outcome = interpreter.conclude(&end, &mut out);
        (out, outcome)
    }
}

/// Bytes of stream-json into the interpreter.
pub fn feed(interpreter: &mut Interpreter, bytes: &[u8], out: &mut Vec<Event>) {
    let mut framer = Framer::default();
    let mut take = |frame: Frame<'_>| interpreter.feed(frame.into(), out);
    framer.push(bytes, &mut take);
    framer.finish(&mut take);
}
