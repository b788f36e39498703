//! Batches that run beside the server.

use serde_json::json;

use super::{alhena, says, serve};

#[test]
fn a_batch_is_listed_with_its_progress_and_its_results() {
    let place = says("batches", "Hello");
    let served = serve(&place, &[]);
    assert_eq!(served.get("/v1/batches"), json!({"batches": []}));
    let jobs = place.lab.workspace().join("jobs.jsonl");
    std::fs::write(&jobs, "{\"id\": \"a\", \"prompt\": \"one\"}\n{\"id\": \"b\", \"prompt\": \"two\"}\n")
        .unwrap();
    let batch = ["batch", "jobs.jsonl", "--into", "results.jsonl", "--transport", "cold", "--quiet"];
    let done = alhena(&place, &batch);
    assert!(done.succeeded(), "{}", done.stderr_text());
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
