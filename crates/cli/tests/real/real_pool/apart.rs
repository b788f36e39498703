//! Nothing of one prompt reaches another: each carries words of its own in everything that a prompt can bring along, and looks for
//! those of the others in what the API receives.

use std::path::PathBuf;

use alhena_agent::home::McpServer;
use alhena_agent::{Approval, ResolvedRequest, SystemPrompt};
use alhena_scripted::RecordedRequest;

use super::{agents, answer, asked, lab, nothing_is_left, pool};
use crate::lab::{Build, Lab, SHOUTING_SERVER};

/// A way to carry a word.
const WAYS: &[&str] = &["prompt", "context", "file", "header", "server", "include", "folder"];

/// Somebody who asks, with the ways that its words go.
struct Asker {
    name: &'static str,
    ways: &'static [&'static str],
}

/// The first three share nothing; the others differ in their folder alone, or in nothing but what they ask.
const ASKERS: &[Asker] = &[
    Asker { name: "alder", ways: &["prompt", "context", "header", "server", "include"] },
    Asker { name: "birch", ways: &["prompt", "context", "header", "server", "include", "file"] },
    Asker { name: "cedar", ways: &["prompt", "file", "folder"] },
    Asker { name: "dogwood", ways: &["prompt", "file"] },
    Asker { name: "elm", ways: &["prompt", "file"] },
    Asker { name: "fir", ways: &["prompt"] },
];

fn word(asker: &Asker, way: &str) -> String {
    format!("{}{way}", asker.name)
}

fn dir(lab: &Lab, asker: &Asker) -> PathBuf {
    lab.workspace().join(format!("place-of-{}", asker.name.len() * 7 + asker.name.as_bytes()[0] as usize))
}

/// Puts the asker's words into its folder.
fn settle(lab: &Lab, asker: &Asker) {
    let dir = dir(lab, asker);
    std::fs::create_dir_all(&dir).unwrap();
    for way in asker.ways {
        let word = word(asker, way);
        match *way {
            "file" if asker.ways.contains(&"folder") => std::fs::write(dir.join("OTHER.md"), &word).unwrap(),
            "file" => std::fs::write(dir.join("GEMINI.md"), &word).unwrap(),
            "include" => std::fs::create_dir_all(lab.home.path().join(&word)).unwrap(),
            "folder" => {
                std::fs::create_dir_all(dir.join(".gemini")).unwrap();
                let settings = r#"{"context": {"fileName": "OTHER.md"}}"#;
                std::fs::write(dir.join(".gemini/settings.json"), settings).unwrap();
                let variable = format!("GEMINI_CLI_CUSTOM_HEADERS=X-Word: {word}\n");
                std::fs::write(dir.join(".env"), variable).unwrap();
            }
            _ => {}
        }
    }
}

fn request(lab: &Lab, asker: &Asker) -> ResolvedRequest {
    let mut request = lab.request(&word(asker, "prompt")).dir(dir(lab, asker)).approval(Approval::AutoEdit);
    for way in asker.ways {
        let word = word(asker, way);
        request = match *way {
            "context" => request.system_prompt(SystemPrompt::Append(word)),
            "header" => request.env("GEMINI_CLI_CUSTOM_HEADERS", format!("X-Word: {word}")),
            "server" => {
                let script = lab.home.path().join("shout.js");
                std::fs::write(&script, SHOUTING_SERVER).unwrap();
                request.mcp_server(McpServer::process(&word, "node", [script.to_string_lossy().into_owned()]))
            }
            "include" => request.include_dir(lab.home.path().join(word)),
            _ => request,
        };
    }
    request
}

/// The words in a request, wherever they are.
fn words_in(request: &RecordedRequest) -> Vec<String> {
    let headers: Vec<String> = request.headers.values().cloned().collect();
    let all = format!("{} {}", request.raw_body, headers.join(" "));
    let words = ASKERS.iter().flat_map(|asker| WAYS.iter().map(move |way| word(asker, way)));
    words.filter(|word| all.contains(word.as_str())).collect()
}

#[test]
fn real_cli_nothing_of_one_prompt_reaches_another() {
    let lab = lab("apart");
    for asker in ASKERS {
        settle(&lab, asker);
    }
    let pool = pool(3);
    // Those that share a process come together and between others, in both orders.
    for order in [[0, 3, 4, 1, 5, 2, 3], [2, 4, 3, 5, 0, 1, 5]] {
        for index in order {
            let asker = &ASKERS[index];
            let said = answer(&lab, &pool, request(&lab, asker));
            assert_eq!(said, format!("heard {}", word(asker, "prompt")));
        }
    }
    assert!(agents(&lab).len() <= 3);
    let asked = asked(&lab);
    assert_eq!(asked.len(), 14);
    for request in &asked {
        let prompt = request.prompt().unwrap();
        let asker = ASKERS.iter().find(|asker| word(asker, "prompt") == prompt).unwrap();
        let own: Vec<String> =
            WAYS.iter().filter(|way| asker.ways.contains(way)).map(|way| word(asker, way)).collect();
        assert_eq!(words_in(request), own, "{}", asker.name);
    }
    pool.close_blocking();
    nothing_is_left(&lab);
}

#[test]
fn real_cli_a_folders_env_that_changes_is_not_served_stale() {
    let lab = lab("stale env");
    let pool = pool(1);
    for value in ["one", "two"] {
        std::fs::write(lab.workspace().join(".env"), format!("GEMINI_CLI_CUSTOM_HEADERS=X-Word: {value}\n"))
            .unwrap();
        assert_eq!(answer(&lab, &pool, lab.request(value)), format!("heard {value}"));
        let headers = asked(&lab).last().unwrap().headers.clone();
        assert_eq!(headers.get("x-word").map(String::as_str), Some(value));
    }
}
