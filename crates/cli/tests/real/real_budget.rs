//! What a run may spend, on the real CLI: the scripted API says what each call takes.

use std::time::Duration;

use crate::lab::{Build, Lab};
use alhena_agent::Transport;
use alhena_agent::hooks::{Hooks, Moment, Verdict};
use alhena_agent::{Approval, ResolvedRequest, Trust};
use alhena_model::{Event, EventKind, FailureKind, Outcome, Status};
use alhena_scripted::{Scenario, Turn, Usage};
use alhena_testbed::run_bounded;
use serde_json::{Value, json};

const MODEL: &str = "gemini-2.5-flash";

/// So many runs with random usages; the demand is 30, and `ALHENA_BUDGET_RUNS` says it.
const RUNS: u64 = 4;

fn usage(prompt: u64, cached: u64, output: u64, thoughts: u64) -> Usage {
    Usage {
        prompt_token_count: Some(prompt),
        cached_content_token_count: Some(cached),
        candidates_token_count: Some(output),
        thoughts_token_count: Some(thoughts),
        ..Usage::default()
    }
}

fn total(usage: &Usage) -> u64 {
    usage.prompt_token_count.unwrap()
        + usage.candidates_token_count.unwrap()
        + usage.thoughts_token_count.unwrap()
}

/// In dollars, by the price list: 0.30 for what is sent, 0.03 for what of it was cached, 2.50 for what is answered.
fn dollars(usage: &Usage) -> f64 {
    let (prompt, cached) = (usage.prompt_token_count.unwrap(), usage.cached_content_token_count.unwrap());
    let answer = usage.candidates_token_count.unwrap() + usage.thoughts_token_count.unwrap();
    ((prompt - cached) as f64 * 0.3 + cached as f64 * 0.03 + answer as f64 * 2.5) / 1e6
}

/// The model looks for one file after another, and then says something.
fn scenario(usages: &[Usage]) -> Scenario {
    let (last, before) = usages.split_last().unwrap();
    let scenario = before.iter().enumerate().fold(Scenario::new(), |scenario, (number, usage)| {
        // Not the same each time: the CLI would call that a loop.
        let call = Turn::new().call("glob", json!({"pattern": format!("{number}.txt")}));
        scenario.turn(call.usage(usage.clone()))
    });
    scenario.turn(Turn::new().text("All read.").usage(last.clone()))
}

fn lab(name: &str, usages: &[Usage]) -> Lab {
    Lab::real(name, "0.61.0", scenario(usages))
}

fn request(lab: &Lab) -> ResolvedRequest {
    lab.request("read").approval(Approval::Yolo).trust(Trust::Run)
}

fn warnings(events: &[Event]) -> Vec<&str> {
    let warning = |event| match event {
        &Event { kind: EventKind::Warning { ref message }, .. } => Some(message.as_str()),
        _ => None,
    };
    events.iter().filter_map(warning).collect()
}

fn over_budget(outcome: &Outcome) -> &str {
    let failure = outcome.failure.as_ref().expect("a failure");
    assert_eq!((outcome.status, failure.kind), (Status::Failed, FailureKind::Budget), "{failure:?}");
    assert_eq!(outcome.exit_status(), 9);
    &failure.message
}

/// Random figures that are the same each time.
struct Dice(u64);

impl Dice {
    fn up_to(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most + 1
    }
}

#[test]
fn real_cli_no_model_is_called_after_a_limit_is_passed_and_the_sums_are_those_of_the_api() {
    let runs = std::env::var("ALHENA_BUDGET_RUNS").ok().and_then(|runs| runs.parse().ok()).unwrap_or(RUNS);
    let mut ended = 0;
    for run in 0..runs {
        let mut dice = Dice(run + 1);
        let count = dice.up_to(4) + 1;
        let usages: Vec<Usage> = (0..count)
            .map(|_| {
                let prompt = 500 + dice.up_to(20_000);
                let cached = dice.up_to(prompt) - 1;
                usage(prompt, cached, dice.up_to(400), dice.up_to(400) - 1)
            })
            .collect();
        let (lab, by_tokens) = (lab(&format!("random-{run}"), &usages), run % 2 == 0);
        // Between half of what the first call takes and a little more than all of them take.
        let part = 0.5 + dice.up_to(count * 100) as f64 / 100.0;
        let all: u64 = usages.iter().map(total).sum();
        let (max_tokens, max_cost) = (
            (all as f64 * part / count as f64) as u64,
            usages.iter().map(dollars).sum::<f64>() * part / count as f64,
        );
        let request = match by_tokens {
            true => request(&lab).max_tokens(max_tokens),
            false => request(&lab).max_cost(max_cost),
        };
        let outcome = lab.run(request);
        // The call that passes the limit is the last.
        let (mut tokens, mut cost, mut expected) = (0, 0.0, 0);
        for usage in &usages {
            let used_up = if by_tokens { tokens >= max_tokens } else { cost >= max_cost };
            if used_up {
                break;
            }
            (tokens, cost, expected) = (tokens + total(usage), cost + dollars(usage), expected + 1);
        }
        assert_eq!(lab.calls(), expected, "run {run}: {:?}", outcome.failure);
        assert_eq!(outcome.usage.all.total, tokens, "run {run}");
        assert!((outcome.cost_usd.unwrap() - cost).abs() < 1e-9, "run {run}: {:?}", outcome.cost_usd);
        assert_eq!(outcome.model_calls, expected as u64, "run {run}");
        let overspent = if by_tokens { tokens > max_tokens } else { cost > max_cost };
        match (expected == usages.len(), overspent) {
            (true, false) => assert_eq!(outcome.status, Status::Success, "run {run}: {:?}", outcome.failure),
            (true, true) => {
                assert!(over_budget(&outcome).starts_with("The budget was exceeded: "), "run {run}")
            }
            (false, _) => {
                ended += 1;
                assert!(over_budget(&outcome).starts_with("The budget is used up: "), "run {run}");
            }
        }
    }
    assert!(ended > 0, "no run was ended by its budget");
}

#[test]
fn real_cli_calls_are_limited_with_a_warning_at_80_percent_and_exit_code_9() {
    let small = usage(1_000, 0, 10, 0);
    let lab = lab("calls", &vec![small; 8]);
    let (events, outcome) = lab.run_with_events(request(&lab).max_calls(5));
    assert_eq!(over_budget(&outcome), "The budget is used up: 5 of 5 model calls");
    assert_eq!((lab.calls(), outcome.model_calls, outcome.tool_calls), (5, 5, 5));
    assert!(warnings(&events).contains(&"80 % of the budget is used: 4 of 5 model calls"), "{events:?}");
    assert!(outcome.failure.as_ref().unwrap().hint.contains("`resume`="), "{:?}", outcome.failure);
    let lab = self::lab("calls-cli", &vec![usage(1_000, 0, 10, 0); 3]);
    let args = ["--trust", "--approval", "yolo", "-m", MODEL, "--as", "outcome", "--max-calls", "1", "read"];
    let done = run_bounded(&mut lab.command(&args), Duration::from_secs(120)).unwrap();
    assert_eq!(done.status.code(), Some(9), "{}", done.stderr_text());
    let outcome: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!((&outcome["failure"]["kind"], &outcome["model_calls"]), (&json!("budget"), &json!(1)));
}

#[test]
fn real_cli_what_sub_agents_take_counts_and_the_last_answers_are_bounded() {
    let asks = Turn::new().call("invoke_agent", json!({"agent_name": "generalist", "prompt": "Find main"}));
    let done = Turn::new().call("complete_task", json!({"result": {"response": "It is in main.py"}}));
    let scenario = Scenario::new()
        .turn(asks.usage(usage(1_000, 0, 10, 0)))
        .turn(done.usage(usage(30_000, 0, 10, 0)))
        .turn(Turn::say("In main.py.").usage(usage(2_000, 0, 10, 0)));
    let lab = Lab::real("sub-agents", "0.61.0", scenario);
    let outcome = lab.run(request(&lab).max_tokens(31_000));
    assert_eq!(over_budget(&outcome), "The budget is used up: 31020 of 31000 tokens");
    assert_eq!((lab.calls(), outcome.usage.all.total), (2, 31_020));
    let bounds: Vec<Value> = lab
        .server
        .requests("lab")
        .iter()
        .map(|request| {
            let body: Value = serde_json::from_str(&request.raw_body).unwrap();
            body["generationConfig"]["maxOutputTokens"].clone()
        })
        .collect();
    assert_eq!(bounds, [json!(31_000), json!(31_000 - 1_010 - 1_000)]);
}

#[test]
fn real_cli_attempts_that_follow_a_failed_one_are_calls_and_a_hook_goes_on_working() {
    let scenario = Scenario::new()
        .turn(Turn::status(503))
        .turn(Turn::new().call("list_directory", json!({"dir_path": "."})).usage(usage(100, 0, 5, 0)))
        .turn(Turn::say("All read.").usage(usage(100, 0, 5, 0)));
    let lab = Lab::real("attempts", "0.61.0", scenario);
    let asked = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let seen = asked.clone();
    let hooks = Hooks::new([Moment::BeforeModel], move |_| {
        seen.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        Verdict::GO_ON
    });
    let outcome = lab.run(request(&lab).max_calls(2).hooks(hooks));
    assert_eq!(over_budget(&outcome), "The budget is used up: 2 of 2 model calls");
    assert_eq!((lab.calls(), asked.load(std::sync::atomic::Ordering::Relaxed)), (2, 3));
}

const TRANSPORTS: [Transport; 2] = [Transport::Headless, Transport::Acp];

/// The model searches for several things in one answer, and each search is a model call of its own.
fn searches(count: usize, more: &Value) -> Scenario {
    let search = |number: usize| {
        let mut args = json!({"query": format!("thing {number}")});
        args.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
        ("google_web_search", args)
    };
    Scenario::new()
        .turn(Turn::new().calls((0..count).map(search)).usage(usage(500, 0, 10, 0)))
        .turn(Turn::say("All found.").usage(usage(500, 0, 10, 0)).always())
        .generate(Turn::say("Found.").usage(usage(59_000, 0, 10, 0)).always())
}

#[test]
fn real_cli_tools_that_call_a_model_count_and_none_runs_beyond_the_budget() {
    let limits: [fn(ResolvedRequest) -> ResolvedRequest; 3] = [
        |request| request.max_tokens(1_000),
        |request| request.max_cost(0.01),
        |request| request.max_calls(2),
    ];
    for (transport, limit) in TRANSPORTS.into_iter().cycle().zip(limits) {
        let lab = Lab::real("searches", "0.61.0", searches(20, &json!({})));
        let outcome = lab.run(limit(request(&lab).transport(transport)));
        over_budget(&outcome);
        assert_eq!((lab.calls(), outcome.model_calls), (2, 2), "{transport:?}: {:?}", outcome.failure);
        assert_eq!(outcome.usage.all.total, 510 + 59_010, "{transport:?}");
    }
}

#[test]
fn real_cli_tools_that_call_a_model_one_after_the_other_run_as_long_as_the_budget_lasts() {
    for transport in TRANSPORTS {
        let lab = Lab::real("in turn", "0.61.0", searches(5, &json!({"wait_for_previous": true})));
        let outcome = lab.run(request(&lab).transport(transport).max_tokens(100_000));
        assert_eq!(over_budget(&outcome), "The budget is used up: 118530 of 100000 tokens", "{transport:?}");
        assert_eq!((lab.calls(), outcome.model_calls), (3, 3), "{transport:?}");
    }
    let lab = Lab::real("enough", "0.61.0", searches(2, &json!({"wait_for_previous": true})));
    let request = request(&lab).transport(Transport::Acp).max_tokens(1_000_000).max_cost(1.0).max_calls(9);
    let outcome = lab.run(request);
    assert_eq!(outcome.status, Status::Success, "{:?}", outcome.failure);
    assert_eq!((lab.calls(), outcome.model_calls), (4, 4));
    assert_eq!(outcome.usage.all.total, 2 * 510 + 2 * 59_010);
}

/// The router is asked without a hook: its calls count all the same.
#[test]
fn real_cli_a_run_that_exceeded_its_budget_is_a_failure_although_no_call_was_refused() {
    for transport in TRANSPORTS {
        let scenario = Scenario::new().turn(Turn::say("Hello.").usage(usage(500, 0, 10, 0)));
        let lab = Lab::real("exceeded", "0.61.0", scenario);
        let outcome = lab.run(request(&lab).transport(transport).max_tokens(400));
        assert_eq!(over_budget(&outcome), "The budget was exceeded: 510 of 400 tokens", "{transport:?}");
        assert_eq!(outcome.text.all(), "Hello.", "{transport:?}");
    }
    let exactly = Scenario::new().turn(Turn::say("Hello.").usage(usage(500, 0, 10, 0)));
    let lab = Lab::real("exactly", "0.61.0", exactly);
    let outcome = lab.run(request(&lab).max_tokens(510).max_calls(1));
    assert_eq!(outcome.status, Status::Success, "{:?}", outcome.failure);
    let routed = Scenario::new()
        .turn(Turn::say("Hello.").usage(usage(500, 0, 10, 0)).always())
        .generate(Turn::response(json!({"candidates": [{"content": {"role": "model", "parts": [
            {"text": r#"{"complexity_reasoning": "x", "complexity_score": 10, "reasoning": "x", "model_choice": "flash"}"#}
        ]}, "finishReason": "STOP"}], "usageMetadata": {"promptTokenCount": 2_000, "candidatesTokenCount": 10,
            "totalTokenCount": 2_010}})).always());
    let lab = Lab::real("routed", "0.61.0", routed);
    let outcome = lab.run(request(&lab).transport(Transport::Acp).model("auto").max_tokens(1_000));
    over_budget(&outcome);
    assert!(outcome.usage.all.total >= 2_010, "{:?}", outcome.usage);
    assert_eq!(outcome.model_calls, lab.calls() as u64);
}

#[test]
fn real_cli_over_acp_model_calls_are_those_that_were_made() {
    let glob = |number: usize| ("glob", json!({"pattern": format!("{number}.txt")}));
    let scenario = Scenario::new().turn(Turn::new().calls((0..8).map(glob))).turn(Turn::say("None."));
    let lab = Lab::real("eight", "0.61.0", scenario);
    let outcome = lab.run(request(&lab).transport(Transport::Acp));
    assert_eq!(outcome.status, Status::Success, "{:?}", outcome.failure);
    assert_eq!((outcome.tool_calls, lab.calls(), outcome.model_calls), (8, 2, 2));
}

#[test]
fn real_cli_over_acp_the_budget_is_that_of_the_conversation() {
    let lab = lab("acp", &vec![usage(1_000, 0, 10, 0); 5]);
    let outcome = lab.run(request(&lab).transport(Transport::Acp).max_tokens(2_000));
    assert_eq!(over_budget(&outcome), "The budget is used up: 2020 of 2000 tokens");
    assert_eq!((lab.calls(), outcome.usage.all.total, outcome.model_calls), (2, 2_020, 2));
}

#[test]
fn real_cli_a_budget_that_is_not_used_up_changes_nothing_and_replays() {
    let lab = lab("enough", &vec![usage(1_000, 200, 10, 5); 2]);
    let record = lab.home.path().join("recording");
    let outcome = lab.run(request(&lab).max_tokens(1_000_000).max_cost(5.0).max_calls(9).record(&record));
    assert_eq!(outcome.status, Status::Success, "{:?}", outcome.failure);
    assert_eq!((outcome.model_calls, crate::lab::warnings(&outcome)), (2, Vec::new()));
    let again = alhena_agent::recording::play(&record, |_| ()).unwrap();
    assert_eq!(*again, *outcome);
}

#[test]
fn a_budget_that_cannot_be_kept_is_refused_before_the_start() {
    let lab = lab("refused", &[usage(1, 0, 1, 0)]);
    let refused = |request: ResolvedRequest| lab.gemini.start(request, &lab.env).unwrap_err().to_string();
    let unknown = request(&lab).max_cost(1.0).model("gemini-of-tomorrow");
    assert!(refused(unknown).contains("the price of \"gemini-of-tomorrow\" is not known"));
    assert!(refused(request(&lab).max_calls(0)).contains("more than 0"));
    let sandboxed = request(&lab).max_calls(1).sandbox(alhena_agent::Sandbox::On);
    assert!(refused(sandboxed).contains("a budget cannot be kept in a sandbox"));
    assert_eq!(lab.calls(), 0);
    for (args, why) in [
        (&["--max-cost", "nan", "x"][..], "more than 0"),
        (&["--max-tokens", "many", "x"], "--max-tokens"),
        (&["--max-cost", "1", "-m", "gemini-of-tomorrow", "x"], "is not known"),
    ] {
        let done = run_bounded(&mut lab.command(args), Duration::from_secs(60)).unwrap();
        assert_eq!(done.status.code(), Some(2), "{args:?} {}", done.stderr_text());
        assert!(done.stderr_text().contains(why), "{args:?} {}", done.stderr_text());
    }
}

#[test]
fn real_cli_a_model_without_a_price_is_not_called_when_there_is_a_price_limit() {
    let lab = lab("unpriced", &[usage(1, 0, 1, 0)]);
    let prices = alhena_model::Prices::read(
        r#"{"date": "d", "currency": "USD", "per_tokens": 1, "models": {"another": {"input": 1, "output": 1}}}"#,
    );
    // Which model the alias means is only known when it is called.
    let request = request(&lab).model("flash").max_cost(1.0).prices(prices.unwrap());
    let outcome = lab.run(request);
    assert!(over_budget(&outcome).contains("`max_cost` cannot be kept"), "{:?}", outcome.failure);
    assert_eq!((lab.calls(), outcome.cost_usd), (0, None));
}
