//! Lines by hand: what no client would write.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use alhena_scripted::{Scenario, Turn};
use alhena_testbed::Deadline;
use serde_json::{Value, json};

use super::client::agent;
use super::{lab, until_nothing_is_left};
use crate::lab::Lab;

struct Agent {
    child: Child,
    out: BufReader<ChildStdout>,
}

impl Agent {
    fn new(lab: &Lab) -> Self {
        Self::with(lab, &[])
    }

    fn with(lab: &Lab, args: &[&str]) -> Self {
        let words = agent(lab, args);
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).env_clear().envs(lab.env.iter()).current_dir(lab.workspace());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        Self { child, out }
    }

    fn say(&mut self, bytes: &[u8]) {
        self.child.stdin.as_mut().unwrap().write_all(bytes).unwrap();
    }

    fn ask(&mut self, id: u64, method: &str, params: &Value) {
        let line = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.say(format!("{line}\n").as_bytes());
    }

    /// The next line, which is always one of the protocol.
    fn next(&mut self) -> Value {
        let mut line = String::new();
        self.out.read_line(&mut line).unwrap();
        let said: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"));
        assert_eq!(said["jsonrpc"], "2.0", "{said}");
        said
    }

    fn answer(&mut self, id: u64) -> Value {
        loop {
            let said = self.next();
            if said["id"] == id && said.get("method").is_none() {
                return said;
            }
        }
    }

    fn ends(&mut self) -> Option<i32> {
        let mut code = None;
        assert!(Deadline::after(Duration::from_secs(60)).wait_until(|| {
            code = self.child.try_wait().unwrap();
            code.is_some()
        }));
        code.unwrap().code()
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _gone = self.child.kill();
        let _gone = self.child.wait();
    }
}

#[test]
fn real_cli_garbage_is_answered_and_everything_goes_on() {
    let lab = lab("garbage", Scenario::new().turn(Turn::say("Still here.")));
    let mut agent = Agent::new(&lab);
    let place = json!({"cwd": lab.workspace(), "mcpServers": []});
    agent.ask(1, "session/new", &place);
    assert_eq!(agent.answer(1)["error"]["code"], -32600);
    for (line, code) in [
        (&b"garbage\n"[..], -32700),
        (b"\xff\xfe\x00\n", -32700),
        (b"[]\n", -32600),
        (b"[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\"}]\n", -32600),
        (b"{\"id\":{},\"method\":\"a\"}\n", -32600),
        (b"{}\n", -32600),
        // Half a character is one that is not known, and still no message.
        (b"\"\\ud800\"\n", -32600),
    ] {
        agent.say(line);
        let said = agent.next();
        assert_eq!((&said["error"]["code"], &said["id"]), (&json!(code), &Value::Null), "{said}");
    }
    agent.say(b"\n\r\n   \n{\"jsonrpc\":\"2.0\",\"method\":\"nobody/knows\"}\n{\"jsonrpc\":\"2.0\",\"id\":99,\"result\":{}}\n");
    agent.ask(2, "nobody/knows", &json!({}));
    assert_eq!(agent.answer(2)["error"]["code"], -32601);
    agent.ask(3, "initialize", &json!({"protocolVersion": 7}));
    assert_eq!(agent.answer(3)["result"]["protocolVersion"], 1);
    agent.ask(4, "session/new", &place);
    let session = agent.answer(4)["result"]["sessionId"].clone();
    agent.say(b"{\"jsonrpc\":\"2.0\",\"method\":\"session/cancel\",\"params\":{\"sessionId\":\"nobody\"}}\n");
    agent.say(b"{\"jsonrpc\":\"2.0\",\"method\":\"session/cancel\",\"params\":7}\n");
    agent.ask(
        5,
        "session/prompt",
        &json!({"sessionId": session, "prompt": [{"type": "text", "text": "hi"}]}),
    );
    assert_eq!(agent.answer(5)["result"]["stopReason"], "end_turn");
    // A line without an end is a line, and the end of input is the end.
    agent.say(b"half a li");
    drop(agent.child.stdin.take());
    assert_eq!(agent.ends(), Some(0));
    until_nothing_is_left(&lab);
}

#[test]
fn real_cli_a_question_that_nobody_answers_in_time_is_withdrawn() {
    let elsewhere = json!({"command": "touch never", "dir_path": "sub"});
    let call = Turn::new().call("run_shell_command", elsewhere);
    let lab = lab("unanswered", Scenario::new().turn(call).turn(Turn::say("Then not.")));
    std::fs::create_dir(lab.workspace().join("sub")).unwrap();
    let mut agent = Agent::with(&lab, &["--permission-timeout", "500ms"]);
    agent.ask(1, "initialize", &json!({"protocolVersion": 1}));
    agent.answer(1);
    agent.ask(2, "session/new", &json!({"cwd": lab.workspace(), "mcpServers": []}));
    let session = agent.answer(2)["result"]["sessionId"].clone();
    agent.ask(
        3,
        "session/prompt",
        &json!({"sessionId": session, "prompt": [{"type": "text", "text": "hi"}]}),
    );
    let of = |agent: &mut Agent, method: &str| loop {
        let said = agent.next();
        if said["method"] == method {
            return said;
        }
    };
    let asked = of(&mut agent, "session/request_permission");
    // Where it would run is a part of what is asked.
    assert_eq!(asked["params"]["toolCall"]["title"], "touch never [in sub]", "{asked}");
    let question = asked["id"].clone();
    let withdrawn = of(&mut agent, "$/cancel_request");
    assert_eq!(withdrawn["params"]["requestId"], question, "{withdrawn}");
    // As the protocol has it, the editor still says something.
    agent.say(
        format!("{}\n", json!({"jsonrpc": "2.0", "id": question, "error": {"code": -32800, "message": "x"}}))
            .as_bytes(),
    );
    assert_eq!(agent.answer(3)["result"]["stopReason"], "end_turn");
    assert!(!lab.workspace().join("sub/never").exists());
}

#[test]
fn real_cli_a_signal_ends_everything() {
    let lab = lab("a signal", Scenario::new().turn(Turn::new().text("part").hang()));
    let mut agent = Agent::new(&lab);
    agent.ask(1, "initialize", &json!({"protocolVersion": 1}));
    agent.answer(1);
    agent.ask(2, "session/new", &json!({"cwd": lab.workspace(), "mcpServers": []}));
    let session = agent.answer(2)["result"]["sessionId"].clone();
    agent.ask(
        3,
        "session/prompt",
        &json!({"sessionId": session, "prompt": [{"type": "text", "text": "hi"}]}),
    );
    while agent.next()["params"]["update"]["sessionUpdate"] != "agent_message_chunk" {}
    rustix::process::kill_process(
        rustix::process::Pid::from_child(&agent.child),
        rustix::process::Signal::TERM,
    )
    .unwrap();
    assert_eq!(agent.ends(), Some(128 + 15));
    until_nothing_is_left(&lab);
}
