//! How Claude's tools name their arguments.
//!
//! One function per shape: the arguments of a Gemini call in, of any release, those of Claude's tool out. What is
//! missing stays missing. B-30 to B-35 are exact; the others follow Claude's own tools.

use serde_json::{Map, Value, json};

type Arguments = Map<String, Value>;

/// Takes the first of `names` that is there, under the name `to`.
fn take(from: &Arguments, names: &[&str], to: &str, into: &mut Arguments) {
    if let Some(value) = names.iter().find_map(|name| from.get(*name)) {
        into.insert(to.to_owned(), value.clone());
    }
}

fn pick(from: &Arguments, renames: &[(&str, &[&str])]) -> Arguments {
    let mut into = Arguments::new();
    for (to, names) in renames {
        take(from, names, to, &mut into);
    }
    into
}

pub(super) fn same(from: &Arguments) -> Arguments {
    from.clone()
}

pub(super) fn read(from: &Arguments) -> Arguments {
    pick(from, &[("file_path", &["absolute_path", "file_path", "path"])]) // B-30
}

pub(super) fn write(from: &Arguments) -> Arguments {
    pick(from, &[("file_path", &["file_path"]), ("content", &["content"])]) // B-31
}

pub(super) fn edit(from: &Arguments) -> Arguments {
    pick(
        from,
        &[("file_path", &["file_path"]), ("old_string", &["old_string"]), ("new_string", &["new_string"])],
    ) // B-32
}

pub(super) fn list(from: &Arguments) -> Arguments {
    let mut into = Arguments::from_iter([("pattern".to_owned(), json!("*"))]); // B-33
    take(from, &["path", "dir_path"], "path", &mut into);
    into
}

pub(super) fn bash(from: &Arguments) -> Arguments {
    pick(from, &[("command", &["command"]), ("description", &["description"])]) // B-34
}

pub(super) fn bash_output(from: &Arguments) -> Arguments {
    pick(from, &[("bash_id", &["pid"])])
}

pub(super) fn glob(from: &Arguments) -> Arguments {
    pick(from, &[("pattern", &["pattern"]), ("path", &["dir_path", "path"])])
}

pub(super) fn grep(from: &Arguments) -> Arguments {
    let mut into = pick(
        from,
        &[
            ("pattern", &["pattern"]),
            ("path", &["dir_path", "path"]),
            ("glob", &["include_pattern", "include"]),
            ("-A", &["after"]),
            ("-B", &["before"]),
            ("-C", &["context"]),
        ],
    );
    if from.get("case_sensitive") == Some(&Value::Bool(false)) {
        into.insert("-i".to_owned(), Value::Bool(true));
    }
    if from.get("names_only") == Some(&Value::Bool(true)) {
        into.insert("output_mode".to_owned(), json!("files_with_matches"));
    }
    into
}

pub(super) fn fetch(from: &Arguments) -> Arguments {
    let mut into = Arguments::new();
    take(from, &["url"], "url", &mut into);
    if let (false, Some(prompt)) = (into.contains_key("url"), from.get("prompt").and_then(Value::as_str)) {
        // Gemini's tool has the address inside the prompt.
        if let Some(url) = first_url(prompt) {
            into.insert("url".to_owned(), json!(url));
        }
    }
    take(from, &["prompt"], "prompt", &mut into);
    into
}

fn first_url(text: &str) -> Option<&str> {
    let start = text.find("https://").into_iter().chain(text.find("http://")).min()?;
    let address = text.get(start..)?.split(|c: char| c.is_whitespace() || "\"'<>`".contains(c)).next()?;
    Some(address.trim_end_matches(['.', ',', ';', ')', ']']))
}

pub(super) fn todos(from: &Arguments) -> Arguments {
    let mut into = from.clone();
    if let Some(Value::Array(todos)) = into.get_mut("todos") {
        for todo in todos {
            let Value::Object(todo) = todo else { continue };
            if let Some(description) = todo.remove("description") {
                todo.insert("content".to_owned(), description.clone());
                todo.insert("activeForm".to_owned(), description);
            }
        }
    }
    into
}

pub(super) fn task(from: &Arguments) -> Arguments {
    let mut into =
        pick(from, &[("subagent_type", &["agent_name", "agentName"]), ("prompt", &["prompt", "objective"])]);
    let words: Option<Vec<&str>> =
        into.get("prompt").and_then(Value::as_str).map(|prompt| prompt.split_whitespace().take(5).collect());
    if let Some(words) = words {
        let description = words.join(" ");
        into.insert("description".to_owned(), json!(description));
    }
    into
}

pub(super) fn skill(from: &Arguments) -> Arguments {
    pick(from, &[("skill", &["name"])])
}

pub(super) fn plan(from: &Arguments) -> Arguments {
    pick(from, &[("plan", &["plan", "plan_filename", "plan_path"])])
}

pub(super) fn ask(from: &Arguments) -> Arguments {
    pick(from, &[("questions", &["questions"])])
}

pub(super) fn mcp_resources(from: &Arguments) -> Arguments {
    pick(from, &[("server", &["serverName"])])
}

pub(super) fn mcp_resource(from: &Arguments) -> Arguments {
    pick(from, &[("server", &["serverName"]), ("uri", &["uri"])])
}
