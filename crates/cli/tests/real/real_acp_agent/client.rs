//! The official SDK's client, told what to do by a test.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use alhena_testbed::{Deadline, tools};
use serde_json::{Value, json};

use crate::lab::{ALHENA, Lab};

/// Nothing is waited for longer.
const LIMIT: Duration = Duration::from_secs(120);

pub struct Client {
    pub child: Child,
    stdin: Option<ChildStdin>,
    said: Receiver<Value>,
    /// What came and was not asked for yet.
    kept: VecDeque<Value>,
    tags: u64,
}

/// A directory with the modules beside what is put there: a module finds others beside itself only.
pub fn modules(lab: &Lab) -> PathBuf {
    let directory = lab.home.tmp().join("js");
    if !directory.exists() {
        std::fs::create_dir_all(&directory).unwrap();
        symlink(tools::acpx().unwrap(), directory.join("node_modules")).unwrap();
    }
    directory
}

/// The command of the agent.
pub fn agent(lab: &Lab, args: &[&str]) -> Vec<String> {
    let gemini = lab.gemini.path.to_str().unwrap();
    let fixed = [ALHENA, "acp", "--model", "gemini-2.5-flash"];
    let gemini = if args.contains(&"--gemini") { &[][..] } else { &["--gemini", gemini] };
    fixed.iter().chain(gemini).chain(args).map(|word| (*word).to_owned()).collect()
}

impl Client {
    /// A client that has not said anything.
    pub fn silent(lab: &Lab, args: &[&str]) -> Self {
        let program = modules(lab).join("client.mjs");
        std::fs::write(&program, include_str!("client.mjs")).unwrap();
        let mut command = Command::new(tools::node22().unwrap());
        command.env_clear().envs(lab.env.iter()).current_dir(lab.workspace());
        command.arg(program).args(agent(lab, args));
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (sender, said) = channel();
        let out = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            for line in out.lines().map_while(Result::ok) {
                if sender.send(serde_json::from_str(&line).unwrap()).is_err() {
                    return;
                }
            }
        });
        let stdin = child.stdin.take();
        Self { child, stdin, said, kept: VecDeque::new(), tags: 0 }
    }

    /// A client that has initialized.
    pub fn new(lab: &Lab, args: &[&str]) -> Self {
        let mut client = Self::silent(lab, args);
        let first = client.ask("initialize", json!({"protocolVersion": 1, "clientCapabilities": {}}));
        assert_eq!(first["protocolVersion"], 1, "{first}");
        client
    }

    fn say(&mut self, what: &Value) {
        writeln!(self.stdin.as_mut().unwrap(), "{what}").unwrap();
    }

    /// Says nothing any more.
    pub fn end(&mut self) {
        drop(self.stdin.take());
    }

    /// Calls a method, and gives what its answer can be waited for by.
    pub fn call(&mut self, method: &str, params: Value) -> u64 {
        self.tags += 1;
        let key = if method.contains('/') { "request" } else { "call" };
        self.say(&json!({key: method, "params": params, "tag": self.tags}));
        self.tags
    }

    /// The first thing that is so; what comes before it is kept.
    pub fn wait(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        if let Some(at) = self.kept.iter().position(&wanted) {
            return self.kept.remove(at).unwrap();
        }
        loop {
            let next = self.said.recv_timeout(LIMIT);
            let next = next.unwrap_or_else(|_| panic!("it never came; this did: {:?}", self.kept));
            if wanted(&next) {
                return next;
            }
            self.kept.push_back(next);
        }
    }

    /// The answer to a call, with `result` or `error`.
    pub fn answer(&mut self, tag: u64) -> Value {
        self.wait(|said| said["tag"] == tag)
    }

    /// Calls a method that has to succeed.
    pub fn ask(&mut self, method: &str, params: Value) -> Value {
        let tag = self.call(method, params);
        let answer = self.answer(tag);
        assert!(answer.get("error").is_none(), "{method}: {answer}");
        answer["result"].clone()
    }

    /// Calls a method that has to fail.
    pub fn refused(&mut self, method: &str, params: Value) -> Value {
        let tag = self.call(method, params);
        let answer = self.answer(tag);
        assert!(answer.get("error").is_some(), "{method}: {answer}");
        answer["error"].clone()
    }

    /// A new session in the lab's workspace.
    pub fn session(&mut self, lab: &Lab) -> String {
        let opened = self.ask("newSession", json!({"cwd": lab.workspace(), "mcpServers": []}));
        opened["sessionId"].as_str().unwrap().to_owned()
    }

    pub fn prompt(&mut self, session: &str, text: &str) -> u64 {
        self.call("prompt", json!({"sessionId": session, "prompt": [{"type": "text", "text": text}]}))
    }

    /// A question, and the number to answer it by.
    pub fn question(&mut self) -> (u64, Value) {
        let asked = self.wait(|said| said.get("ask").is_some());
        (asked["ask"].as_u64().unwrap(), asked["params"].clone())
    }

    /// Answers a question with one of its options, by its kind.
    pub fn choose(&mut self, (number, params): (u64, Value), kind: &str) {
        let option = params["options"].as_array().unwrap().iter().find(|option| option["kind"] == kind);
        let chosen = json!({"outcome": "selected", "optionId": option.unwrap()["optionId"]});
        self.say(&json!({"answer": number, "result": {"outcome": chosen}}));
    }

    /// All updates of a session that have come, in their order.
    pub fn updates(&mut self, session: &str) -> Vec<Value> {
        let is_update = |said: &Value| said["update"]["sessionId"] == session;
        let (updates, kept): (Vec<Value>, Vec<Value>) = self.kept.drain(..).partition(is_update);
        self.kept = kept.into();
        updates.into_iter().map(|mut said| said["update"]["update"].take()).collect()
    }

    /// Whether a question is waiting.
    pub fn has_question(&self) -> bool {
        self.kept.iter().any(|said| said.get("ask").is_some())
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // It ends when Alhena has, which has the test's standard error and would outlive one that is killed.
        self.end();
        let patience = Duration::from_secs(if std::thread::panicking() { 5 } else { 60 });
        let _ended = Deadline::after(patience).wait_until(|| !matches!(self.child.try_wait(), Ok(None)));
        let _gone = self.child.kill();
        let _gone = self.child.wait();
    }
}

/// Those of one kind.
pub fn of<'u>(updates: &'u [Value], kind: &str) -> Vec<&'u Value> {
    updates.iter().filter(|update| update["sessionUpdate"] == kind).collect()
}

/// The text of all chunks of one kind.
pub fn text(updates: &[Value], kind: &str) -> String {
    of(updates, kind).iter().filter_map(|update| update["content"]["text"].as_str()).collect()
}
