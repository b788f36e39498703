use alhena_model::RunOptions;
use serde_json::{Value, json};

use super::meter::Permit;
use super::*;
use crate::hooks::{Asked, Moment};
use crate::request::RunExtras;

fn prices() -> Prices {
    Prices::read(
        r#"{"date": "d", "currency": "USD", "per_tokens": 100, "models": {"m": {"input": 1, "output": 2}}}"#,
    )
    .unwrap()
}

/// A run with a session file that the test writes.
struct Place {
    chats: tempfile::TempDir,
    meter: Meter,
    answers: usize,
}

impl Place {
    fn new(budget: Budget) -> Self {
        let (chats, meter) = (tempfile::tempdir().unwrap(), Meter::new(budget, prices()));
        meter.follow(chats.path().to_owned());
        Self { chats, meter, answers: 0 }
    }

    fn ask(&self, model: &str) -> Permit {
        let told =
            json!({"session_id": "0123456789", "llm_request": {"model": model, "config": {"topP": 1}}});
        let told = told.as_object().cloned().unwrap();
        self.meter.ask(&Asked { moment: Moment::BeforeModel, told })
    }

    /// The model answers: two lines of one message, as the CLI writes them.
    fn answer(&mut self, file: &str, model: &str, prompt: u64, output: u64) {
        self.answers += 1;
        let path = self.chats.path().join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let line = json!({
            "id": format!("message-{}", self.answers), "type": "gemini", "content": "x", "model": model,
            "timestamp": Timestamp::now().to_string(),
            "tokens": {"input": prompt, "output": output, "cached": 0, "thoughts": 0, "tool": 0, "total": prompt + output},
        });
        let before = std::fs::read_to_string(&path).unwrap_or_default();
        std::fs::write(path, format!("{before}{line}\n{line}\n")).unwrap();
    }

    fn refused(&self, model: &str) -> String {
        match self.ask(model) {
            Permit::Refused(why) => why,
            Permit::Granted { .. } => panic!("it was granted"),
        }
    }
}

const OWN: &str = "session-2026-11-17T03-00-01234567.jsonl";
const OF_AGENT: &str = "0123456789/agent.jsonl";

fn granted(permit: &Permit) -> bool {
    matches!(permit, Permit::Granted { .. })
}

#[test]
fn calls_are_counted_and_no_more_than_allowed_are_granted() {
    let mut place = Place::new(Budget { calls: Some(2), ..Budget::default() });
    for _ in 0..2 {
        assert!(granted(&place.ask("m")));
        place.answer(OWN, "m", 10, 1);
    }
    assert_eq!(place.refused("m"), "The budget is used up: 2 of 2 model calls");
    assert_eq!(place.meter.settle().1.unwrap(), "The budget is used up: 2 of 2 model calls");
}

#[test]
fn tokens_of_the_run_and_of_its_sub_agents_count_once_each() {
    let mut place = Place::new(Budget { tokens: Some(10_000), ..Budget::default() });
    assert!(granted(&place.ask("m")));
    place.answer(OWN, "m", 4_000, 0);
    assert!(granted(&place.ask("m")));
    assert_eq!(place.meter.news(), [] as [String; 0]);
    place.answer(OF_AGENT, "m", 4_000, 500);
    assert!(granted(&place.ask("m")));
    assert_eq!(place.meter.news(), ["85 % of the budget is used: 8500 of 10000 tokens"]);
    place.answer(OWN, "m", 1_500, 0);
    assert_eq!(place.refused("m"), "The budget is used up: 10000 of 10000 tokens");
}

#[test]
fn dollars_are_counted_by_call_and_a_model_without_a_price_is_not_asked() {
    let mut place = Place::new(Budget { dollars: Some(1.0), ..Budget::default() });
    assert!(granted(&place.ask("m")));
    place.answer(OWN, "m", 50, 24);
    assert!(granted(&place.ask("m")));
    place.answer(OWN, "m", 0, 1);
    assert_eq!(place.refused("m"), "The budget is used up: $1.000000 of $1");
    let place = Place::new(Budget { dollars: Some(1.0), ..Budget::default() });
    assert!(place.refused("mystery").contains("the price of \"mystery\" is not known"));
}

#[test]
fn the_last_answer_is_bounded_and_one_that_is_cut_is_no_success() {
    let mut place = Place::new(Budget { tokens: Some(10_000), ..Budget::default() });
    assert_eq!(place.ask("m"), Permit::Granted { longest_answer: Some(10_000) });
    place.answer(OWN, "m", 2_000, 10);
    let permit = place.ask("m");
    assert_eq!(permit, Permit::Granted { longest_answer: Some(5_990) });
    let mut said = Value::Null;
    let told = json!({"llm_request": {"config": {"topP": 1}}});
    let asked = Asked { moment: Moment::BeforeModel, told: told.as_object().cloned().unwrap() };
    permit.bound(&asked, &mut said);
    let config = json!({"topP": 1, "maxOutputTokens": 5_990});
    assert_eq!(said["hookSpecificOutput"]["llm_request"], json!({"config": config}));
    place.answer(OWN, "m", 2_000, 5_990);
    assert!(place.meter.settle().1.unwrap().contains("cut at 5990 tokens"));
}

#[test]
fn calls_that_left_no_counts_are_calls_all_the_same() {
    let mut place = Place::new(Budget { calls: Some(3), tokens: Some(1_000_000), ..Budget::default() });
    assert!(granted(&place.ask("m")));
    assert!(granted(&place.ask("m")));
    place.answer(OWN, "m", 10, 1);
    assert!(granted(&place.ask("m")));
    assert!(place.refused("m").contains("3 of 3 model calls"));
}

/// Records an answer of a call outside of conversations.
fn record(path: &std::path::Path, tokens: u64) {
    let answer =
        json!({"candidates": [], "usageMetadata": {"promptTokenCount": tokens, "totalTokenCount": tokens}});
    let line = format!("{{\"method\":\"generateContent\",\"response\":{answer}}}\n");
    let before = std::fs::read_to_string(path).unwrap_or_default();
    std::fs::write(path, before + &line).unwrap();
}

#[test]
fn tools_that_call_models_run_one_at_a_time_and_what_they_took_counts() {
    let mut place = Place::new(Budget { tokens: Some(10_000), ..Budget::default() });
    let responses = place.chats.path().join("responses");
    let ask = |place: &Place| place.meter.ask_for_tool("google_web_search", None);
    assert!(granted(&place.ask("m")));
    place.answer(OWN, "m", 100, 0);
    assert!(matches!(ask(&place), ToolPermit::Denied(why) if why.contains("cannot be counted")));
    place.meter.record(&responses, None);
    assert_eq!(ask(&place), ToolPermit::Granted);
    assert!(matches!(ask(&place), ToolPermit::Denied(why) if why.contains("one at a time")));
    record(&responses, 6_000);
    place.meter.tool_ended("google_web_search");
    assert_eq!(ask(&place), ToolPermit::Granted);
    record(&responses, 6_000);
    place.meter.tool_ended("google_web_search");
    let used_up = "The budget is used up: 12100 of 10000 tokens".to_owned();
    assert_eq!(ask(&place), ToolPermit::Refused(used_up.clone()));
    assert_eq!(place.refused("m"), used_up);
    assert!(!place.meter.is_overrun());
    record(&responses, 1);
    assert_eq!(place.meter.settle().1, Some(used_up));
    assert!(place.meter.is_overrun());
}

#[test]
fn calls_that_tools_may_make_are_reserved() {
    let mut place = Place::new(Budget { calls: Some(4), ..Budget::default() });
    assert!(granted(&place.ask("m")));
    place.answer(OWN, "m", 100, 0);
    assert_eq!(place.meter.ask_for_tool("google_web_search", None), ToolPermit::Granted);
    assert_eq!(place.meter.ask_for_tool("web_fetch", None), ToolPermit::Granted);
    let denied = place.meter.ask_for_tool("google_web_search", None);
    assert!(matches!(denied, ToolPermit::Denied(why) if why.contains("the budget has 0 left")));
}

#[test]
fn a_call_made_without_asking_counts_and_exceeding_the_limit_is_a_failure() {
    let mut place = Place::new(Budget { calls: Some(1), ..Budget::default() });
    assert!(granted(&place.ask("m")));
    place.answer(OWN, "m", 10, 1);
    assert_eq!(place.meter.settle().1, None);
    place.answer(OWN, "m", 10, 1);
    assert_eq!(place.meter.settle().1.unwrap(), "The budget was exceeded: 2 of 1 model calls");
}

#[test]
fn limits_that_cannot_be_kept_are_refused() {
    let limits = |limit: fn(RunOptions) -> RunOptions, prices| {
        let extras = RunExtras { prices: Some(prices), ..RunExtras::default() };
        Budget::of(&ResolvedRequest::of(None, &limit(RunOptions::default().model("m")), extras).unwrap())
    };
    let refused = |limit| limits(limit, prices()).unwrap_err().to_string();
    assert_eq!(limits(|options| options, prices()).unwrap(), None);
    assert!(limits(|options| options.max_cost(0.5), prices()).unwrap().is_some());
    assert!(limits(|options| options.max_cost(0.5).model("auto"), prices()).unwrap().is_some());
    assert!(refused(|options| options.max_tokens(0)).contains("`max_tokens`"));
    assert!(refused(|options| options.max_calls(0)).contains("`max_calls`"));
    assert!(refused(|options| options.max_cost(f64::NAN)).contains("`max_cost`"));
    assert!(refused(|options| options.max_cost(-1.0)).contains("`max_cost`"));
    assert!(refused(|options| options.max_cost(1.0).model("mystery")).contains("mystery"));
    let euros = Prices { currency: "EUR".to_owned(), ..prices() };
    let error = limits(|options| options.max_cost(1.0), euros).unwrap_err();
    assert!(error.to_string().contains("EUR"));
}
