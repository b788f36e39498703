//! What is recorded is what was fed: played again it gives the same, whatever it was and in whatever order it came.

use alhena_model::{
    Change, Decided, DiskFact, Fact, Prompted, Statistics, Stop, Timestamp, Tokens, ToolFact,
};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::mask::Mask;
use super::*;

/// One thing that happens to an engine.
#[derive(Clone, Debug)]
enum Happening {
    /// The CLI wrote these lines at once.
    Output(Vec<String>),
    Input(Input<'static>),
}

/// A line of stream-json, or something else.
fn line() -> impl Strategy<Value = String> {
    let tool = prop_oneof![Just("write_file"), Just("run_shell_command"), Just("read_file")];
    let event = prop_oneof![
        Just(json!({"type": "init", "session_id": "s", "model": "m"})),
        text().prop_map(|text| json!({"type": "message", "role": "assistant", "content": text})),
        text().prop_map(|text| json!({"type": "message", "role": "user", "content": text})),
        (tool, id(), text()).prop_map(|(name, id, text)| {
            let parameters = json!({"file_path": text, "command": text});
            json!({"type": "tool_use", "tool_name": name, "tool_id": id, "parameters": parameters})
        }),
        (id(), prop_oneof![Just("success"), Just("error")], text()).prop_map(|(id, status, output)| {
            json!({"type": "tool_result", "tool_id": id, "status": status, "output": output})
        }),
        text().prop_map(|text| json!({"type": "error", "severity": "error", "message": text})),
        Just(json!({"type": "result", "status": "success", "stats": {"total_tokens": 3}})),
    ];
    let timed = (event, any::<Option<u16>>()).prop_map(|(mut event, at): (Value, Option<u16>)| {
        if let Some(at) = at {
            event["timestamp"] = json!(Timestamp::from_millis(at.into()));
        }
        event.to_string()
    });
    prop_oneof![6 => timed, 1 => text()]
}

/// A line of an ACP agent, or something else.
fn acp_line() -> impl Strategy<Value = String> {
    let update = |update: Value| {
        let params = json!({"sessionId": "s", "update": update});
        json!({"jsonrpc": "2.0", "method": "session/update", "params": params}).to_string()
    };
    let said = |kind: &'static str| {
        text().prop_map(move |text| {
            update(json!({"sessionUpdate": kind, "content": {"type": "text", "text": text}}))
        })
    };
    let status = prop_oneof![Just("pending"), Just("in_progress"), Just("completed"), Just("failed")];
    let call = (id(), prop_oneof![Just("tool_call"), Just("tool_call_update")], status, text());
    prop_oneof![
        3 => said("agent_message_chunk"),
        1 => said("agent_thought_chunk"),
        3 => call.prop_map(move |(id, told, status, title)| {
            let call = json!({"sessionUpdate": told, "toolCallId": id, "status": status, "title": title, "kind": "edit"});
            update(call)
        }),
        1 => Just(json!({"jsonrpc": "2.0", "id": 1, "result": {"stopReason": "end_turn"}}).to_string()),
        1 => text(),
    ]
}

fn id() -> impl Strategy<Value = &'static str> {
    prop_oneof![Just("a"), Just("b"), Just("c")]
}

fn text() -> &'static str {
    "[ -~]{0,12}"
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

fn prompted() -> Input<'static> {
    let [session, model, dir, text] = ["s", "m", "/w", "Do it"].map(str::to_owned);
    Input::Prompted(Box::new(Prompted {
        request: 1,
        session,
        model,
        dir,
        text,
        is_gemini: true,
        max_turns: None,
    }))
}

fn measured() -> Input<'static> {
    let mut statistics = Statistics::default();
    statistics.tool("read_file", 5, Some("accept"));
    Input::Statistics(Box::new(statistics))
}

fn happening(line: impl Strategy<Value = String>) -> impl Strategy<Value = Happening> {
    let decided = (id(), any::<Option<bool>>()).prop_map(|(call, rejected)| {
        let rejected = rejected.map(|_| "No".to_owned());
        Input::Decided(Box::new(Decided { call: call.to_owned(), rejected }))
    });
    let input = prop_oneof![
        // Mostly forwards, by steps around the time that a result waits.
        4 => (0_i64..12_000).prop_map(|at| Input::Time(Timestamp::from_millis(at))),
        4 => fact().prop_map(Input::Fact),
        1 => Just(Input::SessionEnded),
        1 => ("[ -~]{0,6}", disk()).prop_map(|(path, state)| Input::Disk { path, state }),
        1 => Just(Input::Found { path: "x".into(), change: Change::Deleted }),
        1 => "[a-z]{1,3}".prop_map(Input::Warning),
        1 => Just(Input::Stop(Stop::Cancelled)),
        1 => Just(Input::SessionLost),
        1 => Just(Input::FinishReasonUnavailable),
        1 => decided,
        1 => Just(measured()),
        1 => Just(Input::Denied(vec!["read_file".to_owned()])),
        1 => Just(Input::Halted("Enough".to_owned())),
    ];
    prop_oneof![
        2 => prop::collection::vec(line, 1..5).prop_map(Happening::Output),
        3 => input.prop_map(Happening::Input),
    ]
}

/// Feeds and records as the engine does; gives the events.
fn live(
    dir: &Path,
    transport: Transport,
    witnesses: Witnesses,
    happenings: &[Happening],
    states: &[DiskFact],
) -> Vec<Event> {
    let header = Header::new(witnesses, transport, json!({}));
    let mut recorder = Recorder::new(dir, &header, Mask::default(), Path::new("/proc/nowhere"), 0).unwrap();
    let (mut interpreter, mut out, mut lines) = (Interpreter::with(witnesses), Vec::new(), 0);
    let (mut framer, mut states) = (Framer::default(), states.iter().cycle());
    for happening in happenings {
        match happening {
            Happening::Output(texts) => {
                let bytes = texts.join("\n") + "\n";
                recorder.output(bytes.as_bytes());
                framer.push(bytes.as_bytes(), |frame| {
                    lines += 1;
                    let input = if transport == Transport::Acp { Input::acp(frame) } else { frame.into() };
                    interpreter.feed(input, &mut out);
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

/// Every field has to be the same: numbers, times, sources, and whether the disk agreed.
fn is_played_as_it_was(
    transport: Transport,
    witnesses: Witnesses,
    happenings: &[Happening],
    states: &[DiskFact],
) -> Result<(), TestCaseError> {
    let dir = tempfile::tempdir().unwrap();
    let record = dir.path().join("recording");
    let events = live(&record, transport, witnesses, happenings, states);
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
    Ok(())
}

fn witnesses() -> impl Strategy<Value = Witnesses> {
    any::<(bool, bool)>().prop_map(|(session, disk)| Witnesses { session, disk })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]
    #[test]
    fn a_recording_of_any_sequence_of_inputs_gives_the_same_events(
        witnesses in witnesses(),
        happenings in prop::collection::vec(happening(line()), 0..25),
        states in prop::collection::vec(disk(), 1..4),
    ) {
        is_played_as_it_was(Transport::Headless, witnesses, &happenings, &states)?;
    }

    #[test]
    fn a_recording_of_any_conversation_over_acp_gives_the_same_events(
        witnesses in witnesses(),
        happenings in prop::collection::vec(happening(acp_line()), 0..25),
        states in prop::collection::vec(disk(), 1..4),
    ) {
        let happenings = [vec![Happening::Input(prompted())], happenings].concat();
        is_played_as_it_was(Transport::Acp, witnesses, &happenings, &states)?;
    }
}
