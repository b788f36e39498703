//! Conversations, with small agents of another kind.

use serde_json::{Value, json};

use super::{says, serve};
use crate::lab::HostileLab;
use crate::serve_client::Served;

/// An agent that never says anything: a conversation with it starts for ever.
const SILENT: &str = "tail -f /dev/null";

/// An agent that answers at once, and asks before it runs a command where the prompt says so.
const QUICK: &str = r#"
while read -r line; do
  id=$(printf '%s' "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
  say() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
  case "$line" in
    *'"initialize"'*) say '{"protocolVersion":1,"agentCapabilities":{},"authMethods":[]}' ;;
    *'"session/new"'*) say '{"sessionId":"one"}' ;;
    *'"session/prompt"'*)
      case "$line" in *'please ask'*)
        printf '%s\n' '{"jsonrpc":"2.0","id":900,"method":"session/request_permission","params":{"sessionId":"one","toolCall":{"toolCallId":"t","title":"ls","kind":"execute","rawInput":{"command":"ls"}},"options":[{"optionId":"a","name":"Allow","kind":"allow_once"},{"optionId":"r","name":"No","kind":"reject_once"}]}}'
        read -r answer ;;
      esac
      printf '%s\n' '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"one","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"Done."}}}}'
      say '{"stopReason":"end_turn"}' ;;
  esac
done
"#;

pub fn open(served: &Served, agent: &str) -> String {
    let reply = served.post("/v1/conversations", &json!({"agent_command": agent}));
    assert_eq!(reply.status, 201, "{}", reply.body);
    format!("/v1/conversations/{}", reply.json()["id"].as_str().unwrap())
}

pub fn quick(name: &str) -> (HostileLab, String) {
    let place = says(name, "hi");
    let script = place.lab.workspace().join("quick.sh");
    std::fs::write(&script, QUICK).unwrap();
    let command = format!("sh {}", script.display());
    (place, command)
}

#[test]
fn more_conversations_than_allowed_are_told_to_come_back_later() {
    let (place, agent) = quick("too-many-talks");
    let served = serve(&place, &["--allow-programs", "--max-conversations", "2"]);
    let first = open(&served, &agent);
    open(&served, &agent);
    let third = served.post("/v1/conversations", &json!({"agent_command": agent}));
    assert_eq!((third.status, third.kind().as_str()), (429, "too_many"), "{}", third.body);
    assert!(third.header("retry-after").unwrap().parse::<u32>().unwrap() > 0);
    assert_eq!(served.ask("DELETE", &first, "").status, 200);
    open(&served, &agent);
}

fn kind(event: &Value) -> &str {
    event["type"].as_str().unwrap()
}

#[test]
fn a_cancel_and_a_close_count_while_the_agent_starts() {
    let place = says("starting", "hi");
    let served = serve(&place, &["--allow-programs"]);
    let path = open(&served, SILENT);
    let mut events = served.follow(&format!("{path}/events"), &[]);
    assert_eq!(served.post(&format!("{path}/prompt"), &json!({"text": "go"})).status, 202);
    assert_eq!(served.post(&format!("{path}/cancel"), &json!({})).status, 202);
    let over = events.kind("turn_finished");
    assert_eq!(over["outcome"]["status"], "cancelled", "{over}");
    assert_eq!(served.get(&path)["state"], "starting");
    let closed = served.ask("DELETE", &path, "");
    assert_eq!((closed.status, closed.json()["state"].as_str()), (200, Some("closed")), "{}", closed.body);
    let rest: Vec<Value> = events.map(|(_, event)| event).collect();
    assert_eq!(rest.iter().filter(|event| kind(event) == "closed").count(), 1, "{rest:?}");
    assert_eq!(kind(rest.last().unwrap()), "closed");
    let view = served.get(&path);
    assert_eq!((view["state"].as_str(), &view["failure"]), (Some("closed"), &Value::Null), "it stays closed");
    super::runs::nothing_but_the_server(&place, served.pid());
}

#[test]
fn whoever_heard_the_end_of_a_turn_can_send_the_next_prompt() {
    let (place, agent) = quick("next-prompt");
    let served = serve(&place, &["--allow-programs"]);
    let path = open(&served, &agent);
    let mut events = served.follow(&format!("{path}/events"), &[]);
    for turn in 1..=30 {
        let reply = served.post(&format!("{path}/prompt"), &json!({"text": "go"}));
        assert_eq!(reply.status, 202, "turn {turn}: {}", reply.body);
        let over = events.kind("turn_finished");
        assert_eq!(
            (over["turn"].as_u64(), over["outcome"]["status"].as_str()),
            (Some(turn), Some("success"))
        );
    }
    for model in ["", " "] {
        let reply = served.ask("PATCH", &path, &json!({"model": model}).to_string());
        assert_eq!((reply.status, reply.kind().as_str()), (400, "input"));
    }
    served.until(&path, |view| view["state"] == "idle");
    drop(place);
}

#[test]
fn nothing_is_allowed_always_that_the_limit_would_ask_about() {
    let (place, agent) = quick("always");
    let served = serve(&place, &["--allow-programs", "--max-approval", "auto-edit"]);
    let path = open(&served, &agent);
    let mut events = served.follow(&format!("{path}/events"), &[]);
    served.post(&format!("{path}/prompt"), &json!({"text": "please ask"}));
    let asked = events.kind("permission");
    let answer = format!("{path}/permissions/{}", asked["permission"]["id"].as_str().unwrap());
    let reply = served.post(&answer, &json!({"decision": "always"}));
    assert_eq!((reply.status, reply.kind().as_str()), (403, "forbidden"), "{}", reply.body);
    assert_eq!(served.post(&answer, &json!({"decision": "allow"})).status, 200, "it still waits");
    events.kind("turn_finished");
    drop(place);
}
