//! Batches that run beside the server.

use serde_json::json;

use super::{says, serve};

#[test]
fn a_batch_is_listed_with_its_progress_and_its_results() {
    let place = says("batches", "Hello");
    let served = serve(&place, &[]);
    assert_eq!(served.get("/v1/batches"), json!({"batches": []}));
    let jobs = place.lab.workspace().join("jobs.jsonl");
    std::fs::write(&jobs, "{\"id\": \"a\", \"prompt\": \"one\"}\n{\"id\": \"b\", \"prompt\": \"two\"}\n")
        .unwrap();
    let done = std::process::Command::new(crate::lab::ALHENA)
        .args(["batch", "jobs.jsonl", "--into", "results.jsonl", "--transport", "cold", "--quiet"])
        .env_clear()
        .envs(place.lab.env.iter())
        .env("GEMINI_CLI_PATH", place.hostile.path())
        .current_dir(place.lab.workspace())
        .output()
        .unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let batch = served.get("/v1/batches")["batches"][0].clone();
    assert_eq!((batch["title"].as_str(), batch["state"].as_str()), (Some("jobs.jsonl"), Some("ended")));
    assert_eq!((&batch["progress"]["succeeded"], &batch["summary"]["succeeded"]), (&json!(2), &json!(2)));
    let path = format!("/v1/batches/{}", batch["id"].as_str().unwrap());
    assert_eq!(served.get(&path), batch);
    let results = served.ask("GET", &format!("{path}/results"), "");
    assert_eq!(results.header("content-type"), Some("application/jsonl"));
    let file = std::fs::read_to_string(place.lab.workspace().join("results.jsonl")).unwrap();
    assert_eq!(results.body, file);
    assert_eq!(served.get("/v1/now")["items"], json!([]), "it is over");
}
