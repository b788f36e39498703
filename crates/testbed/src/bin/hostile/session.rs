//! The session file of 0.61.0: a header, the context as a list of messages, the prompt, an answer. On ^C the CLI appends the
//! list without the conversation.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use serde_json::{Value, json};

const TIME: &str = "2026-11-15T20:30:38.449Z";

/// Begins or goes on with the session and writes a prompt and an answer. What cannot be written is left out, as on a full disk.
pub fn write(session_id: String, prompt: &str) {
    let resumed = chats().and_then(|chats| with_id(&chats, &session_id));
    if let Some(path) = &resumed {
        let _first = FILE.set(path.clone());
    }
    let header = json!({"sessionId": session_id, "projectHash": "0", "startTime": TIME, "lastUpdated": TIME, "kind": "main"});
    let user = json!({"id": format!("prompt-{}", std::process::id()), "timestamp": TIME, "type": "user", "content": [{"text": prompt}]});
    let answer = json!({"id": format!("answer-{}", std::process::id()), "timestamp": TIME, "type": "gemini", "content": "Begun.", "model": "gemini-2.5-flash"});
    match resumed {
        Some(_) => append(&[user, answer]),
        None => append(&[header, context(), user, answer]),
    }
}

/// Appends what makes the conversation disappear.
pub fn wipe() {
    append(&[context()]);
}

fn context() -> Value {
    let text = "<session_context>\nThis is the Gemini CLI.\n</session_context>";
    let message = json!({"id": "context", "timestamp": TIME, "type": "user", "content": [{"text": text}]});
    json!({"$set": {"messages": [message], "lastUpdated": TIME}})
}

fn append(records: &[Value]) {
    let Some(path) = file() else { return };
    if let Ok(mut file) = OpenOptions::new().create(true).append(true).open(path) {
        for record in records {
            let _full = file.write_all(format!("{record}\n").as_bytes());
        }
    }
}

static FILE: OnceLock<PathBuf> = OnceLock::new();

fn file() -> Option<PathBuf> {
    let own = || Some(chats()?.join(format!("session-2026-11-15T20-30-{:08x}.jsonl", std::process::id())));
    FILE.get().cloned().or_else(own)
}

fn with_id(chats: &Path, session_id: &str) -> Option<PathBuf> {
    let header = format!("\"sessionId\":\"{session_id}\"");
    let mut files = std::fs::read_dir(chats).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
    files.find(|path| std::fs::read_to_string(path).is_ok_and(|text| text.contains(&header)))
}

fn chats() -> Option<PathBuf> {
    let home = std::env::var_os("GEMINI_CLI_HOME").or_else(|| std::env::var_os("HOME"))?;
    let gemini = PathBuf::from(home).join(".gemini");
    let registry: Value = serde_json::from_slice(&std::fs::read(gemini.join("projects.json")).ok()?).ok()?;
    let directory = std::env::current_dir().ok()?;
    let slug = registry.get("projects")?.get(directory.to_str()?)?.as_str()?.to_owned();
    let chats = gemini.join("tmp").join(slug).join("chats");
    std::fs::create_dir_all(&chats).ok()?;
    Some(chats)
}
