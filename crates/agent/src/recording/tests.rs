//! What is recorded is what was fed: played again it gives the same, whatever it was and in whatever order it came.

use alhena_model::{Change, DiskFact, Fact, Stop, Timestamp, Tokens, ToolFact};
use proptest::prelude::*;
use serde_json::json;

use super::mask::Mask;
use super::*;

/// One thing that happens to an engine.
#[derive(Clone, Debug)]
enum Happening {
    /// The CLI wrote these lines at once.
    Output(Vec<String>),
    Input(Input<'static>),
}

fn line() -> impl Strategy<Value = String> {
    let id = || prop_oneof![Just("a"), Just("b"), Just("c")];
    let tool = prop_oneof![Just("write_file"), Just("run_shell_command"), Just("read_file")];
    let text = || "[ -~]{0,12}";
    prop_oneof![
        Just(json!({"type": "init", "session_id": "s", "model": "m"}).to_string()),
        text().prop_map(|text| json!({"type": "message", "role": "assistant", "content": text}).to_string()),
        (tool, id(), text()).prop_map(|(name, id, text)| {
            let parameters = json!({"file_path": text, "command": text});
            json!({"type": "tool_use", "tool_name": name, "tool_id": id, "parameters": parameters})
                .to_string()
        }),
        (id(), prop_oneof![Just("success"), Just("error")], text()).prop_map(|(id, status, output)| {
            json!({"type": "tool_result", "tool_id": id, "status": status, "output": output}).to_string()
        }),
        Just(json!({"type": "result", "status": "success"}).to_string()),
        text(),
    ]
}

fn fact() -> impl Strategy<Value = Fact> {
    let id = prop_oneof![Just("a"), Just("b"), Just("c"), Just("d")];
    prop_oneof![
        (id, any::<Option<i32>>(), any::<Option<bool>>()).prop_map(|(id, exit_code, created)| {
            let fact = ToolFact { exit_code, created, diff: Some("@@ x".into()), ..ToolFact::default() };
            Fact::Tool { message: String::new(), id: id.into(), fact: Box::new(fact), call: None }
        }),
        any::<i32>().prop_map(|at| Fact::Thought {
            message: String::new(),
            at: Some(Timestamp::from_millis(at.into())),
            subject: "Thinking: hard".into(),
            text: "so".into()
        }),
        Just(Fact::Usage {
            message: "m".into(),
            model: "m".into(),
            tokens: Tokens { total: 3, ..Tokens::default() }
        }),
    ]
}

fn disk() -> impl Strategy<Value = DiskFact> {
    prop_oneof![
        Just(DiskFact::Unknown),
        Just(DiskFact::Untouched),
        Just(DiskFact::Created),
        Just(DiskFact::Modified)
    ]
}

fn happening() -> impl Strategy<Value = Happening> {
    let input = prop_oneof![
        // Mostly forwards, by steps around the time that a result waits.
        4 => (0_i64..3_000).prop_map(|at| Input::Time(Timestamp::from_millis(at))),
        4 => fact().prop_map(Input::Fact),
        1 => Just(Input::SessionEnded),
        1 => ("[ -~]{0,6}", disk()).prop_map(|(path, state)| Input::Disk { path, state }),
        1 => Just(Input::Found { path: "x".into(), change: Change::Deleted }),
        1 => "[a-z]{1,3}".prop_map(Input::Warning),
        1 => Just(Input::Stop(Stop::Cancelled)),
        1 => Just(Input::SessionLost),
    ];
    prop_oneof![
        2 => prop::collection::vec(line(), 1..5).prop_map(Happening::Output),
        3 => input.prop_map(Happening::Input),
    ]
}

/// Feeds and records as the engine does; gives the events.
fn live(dir: &Path, witnesses: Witnesses, happenings: &[Happening], states: &[DiskFact]) -> Vec<Event> {
    let header = Header::new(witnesses, crate::request::Transport::Headless, json!({}));
    let mut recorder = Recorder::new(dir, &header, Mask::default(), Path::new("/nowhere"), 0).unwrap();
    let (mut interpreter, mut out, mut lines) = (Interpreter::with(witnesses), Vec::new(), 0);
    let (mut framer, mut states) = (Framer::default(), states.iter().cycle());
    for happening in happenings {
        match happening {
            Happening::Output(texts) => {
                let bytes = texts.join("\n") + "\n";
                recorder.output(bytes.as_bytes());
                framer.push(bytes.as_bytes(), |frame| {
                    lines += 1;
                    interpreter.feed(frame.into(), &mut out);
                });
            }
            Happening::Input(input) => {
                recorder.input(input, lines);
                interpreter.feed(input.clone(), &mut out);
            }
        }
        while let Some(path) = interpreter.wanted_file().map(str::to_owned) {
            let input = Input::Disk { path, state: *states.next().unwrap() };
            recorder.input(&input, lines);
            interpreter.feed(input, &mut out);
        }
    }
    let end = End { exit: Exit::Code(0), stderr: String::new(), duration_ms: Some(5) };
    let outcome = interpreter.conclude(&end, &mut out);
    assert_eq!(recorder.finish(&end, &outcome, lines), None);
    out
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]
    #[test]
    fn a_recording_of_any_sequence_of_inputs_gives_the_same_events(
        session in any::<bool>(),
        disk_speaks in any::<bool>(),
        happenings in prop::collection::vec(happening(), 0..25),
        states in prop::collection::vec(disk(), 1..4),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let record = dir.path().join("recording");
        let events = live(&record, Witnesses { session, disk: disk_speaks }, &happenings, &states);
        let mut played = Vec::new();
        let outcome = play(&record, |item| {
            if let Item::Event(event) = item {
                played.push(event);
            }
        })
        .unwrap();
        prop_assert_eq!(&played, &events);
        let last = events.last().map(|event| event.kind.clone());
        prop_assert_eq!(last, Some(EventKind::Finished { outcome }));
    }
}
