//! Failed requests to the API are told while the CLI still tries again.

use alhena_model::{EventKind, Status};
use alhena_scripted::Scenario;

use crate::lab::{Lab, warnings};

#[test]
fn real_cli_a_failed_request_is_warned_of_before_the_next_one_is_answered() {
    let scenario =
        Scenario::from_json(r#"{"turns": [{"status": 500}, {"steps": [{"text": "recovered"}]}]}"#).unwrap();
    let lab = Lab::real("retries", "0.61.0", scenario);
    let (events, outcome) = lab.run_with_events(lab.request("go"));
    assert_eq!(outcome.status, Status::Success, "{:?}", outcome.failure);
    let place = |wanted: &dyn Fn(&EventKind) -> bool| events.iter().position(|event| wanted(&event.kind));
    let warning = place(
        &|kind| matches!(kind, EventKind::Warning { message } if message == "Attempt 1 to reach the API failed (status 500); Gemini CLI tries again"),
    );
    let answer = place(&|kind| matches!(kind, EventKind::Text { delta } if delta == "recovered"));
    assert!(warning.is_some() && warning < answer, "{events:?}");
    assert_eq!(warnings(&outcome).len(), 1, "{:?}", outcome.warnings);
}
