//! What programs read of a run that goes on.

use alhena_scripted::Turn;
use alhena_testbed::run_bounded;
use serde_json::Value;

use super::{MODEL, OTHER, counted, counts_and_then, lab, seconds};

fn printed(view: &str) -> Vec<Value> {
    let lab = lab(view, counts_and_then([Turn::daily_quota(), Turn::say("Done.")]));
    let goes_on = format!("model={OTHER}");
    let args =
        ["--trust", "--approval", "yolo", "-m", MODEL, "--on-rate-limit", &goes_on, "--as", view, "count"];
    let done = run_bounded(&mut lab.command(&args), seconds(120)).unwrap();
    assert!(done.succeeded(), "{view}: {}", done.stderr_text());
    assert_eq!(counted(&lab), 1);
    let text = done.stdout_text();
    let values = serde_json::Deserializer::from_str(&text).into_iter();
    values.map(|value| value.unwrap()).collect()
}

#[test]
fn real_cli_stream_json_has_one_init_and_one_result_which_is_true_and_counts_everything() {
    let lines = printed("stream-json");
    let of = |kind: &str| lines.iter().filter(|line| line["type"] == kind).collect::<Vec<_>>();
    assert_eq!((of("init").len(), of("tool_use").len(), of("tool_result").len()), (1, 1, 1), "{lines:#?}");
    let [result] = of("result")[..] else { panic!("{lines:#?}") };
    assert_eq!(lines.last(), Some(result));
    assert_eq!((result["status"].as_str(), result.get("error")), (Some("success"), None));
    let models = result["stats"]["models"].as_object().unwrap();
    assert_eq!(models.keys().collect::<Vec<_>>(), [MODEL, OTHER], "{result:#}");
    assert_eq!(result["stats"]["tool_calls"], 1);
}

#[test]
fn real_cli_json_events_and_outcome_tell_of_both_models_and_of_what_was_decided() {
    let report = printed("json").remove(0);
    assert_eq!((report["response"].as_str(), report.get("error")), (Some("Done."), None), "{report:#}");
    assert_eq!(report["stats"]["models"].as_object().unwrap().len(), 2, "{report:#}");
    assert_eq!(report["stats"]["tools"]["totalCalls"], 1);
    assert!(report["warnings"].to_string().contains("going on with"), "{report:#}");

    let outcome = printed("outcome").remove(0);
    assert_eq!(outcome["status"], "success");
    assert_eq!(outcome["models"].as_array().unwrap().len(), 2, "{outcome:#}");
    assert!(outcome["warnings"].to_string().contains("going on with"));

    let events = printed("events");
    let told = events.iter().position(|event| {
        event["type"] == "warning" && event["message"].as_str().unwrap().contains("going on with")
    });
    let done = events.iter().position(|event| event["type"] == "text" && event["delta"] == "Done.");
    assert!(told.is_some() && told < done, "{events:#?}");
    assert!(events.iter().all(|event| event["type"] != "error"), "{events:#?}");
}
