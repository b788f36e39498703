//! Prompts are served as runs are, and sessions are used again only when nothing is in them.

use alhena_agent::Approval;
use alhena_model::{EventKind, Status};
use alhena_scripted::{Scenario, Turn, Usage};
use serde_json::json;

use super::{
    VERSION, agents, answer, asked, lab, nothing_is_left, pool, run, start, well_before_the_next_hour,
};
use crate::lab::{Build, Lab, all};

#[test]
fn real_cli_prompts_in_one_folder_use_one_session_and_none_hears_of_another() {
    well_before_the_next_hour();
    let lab = lab("one session");
    let pool = pool(1);
    let mut sessions = Vec::new();
    for word in ["alder", "birch", "cedar", "dogwood"] {
        let outcome = run(&lab, &pool, lab.request(word));
        assert_eq!(outcome.text.all(), format!("heard {word}"), "{:?}", outcome.failure);
        assert!(outcome.usage.all.total > 0, "{:?}", outcome.usage);
        sessions.push(outcome.session_id.clone());
    }
    sessions.dedup();
    assert_eq!((sessions.len(), agents(&lab).len()), (1, 1), "{sessions:?}");
    let asked = asked(&lab);
    assert_eq!(asked.len(), 4);
    for (word, request) in ["alder", "birch", "cedar", "dogwood"].iter().zip(&asked) {
        for other in ["alder", "birch", "cedar", "dogwood"] {
            assert_eq!(request.raw_body.contains(other), *word == other, "{word}: {other}");
        }
    }
    pool.close_blocking();
    nothing_is_left(&lab);
    // Nothing of it is in the user's store.
    let chats = lab.home.path().join(".gemini/tmp");
    let kept: Vec<_> = walk(&chats).into_iter().filter(|path| path.ends_with(".jsonl")).collect();
    assert_eq!(kept, Vec::<String>::new());
}

fn walk(dir: &std::path::Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        found.push(path.to_string_lossy().into_owned());
        found.extend(walk(&path));
    }
    found
}

#[test]
fn real_cli_a_pooled_prompt_gives_the_same_events_and_outcome_as_a_run() {
    let scenario = || {
        Scenario::new()
            .turn(
                Turn::new()
                    .thought("Plan", "write")
                    .call("write_file", json!({"file_path": "n.txt", "content": "x\n"})),
            )
            .turn(Turn::new().call("run_shell_command", json!({"command": "echo out; exit 3"})))
            .turn(Turn::new().text("Do").text("ne."))
    };
    let request = |lab: &Lab| lab.request("go").approval(Approval::Yolo);
    let alone = Lab::real("alone", VERSION, scenario());
    let pooled = Lab::real("pooled", VERSION, scenario());
    let pool = pool(1);
    let mut run = alone.start(request(&alone).transport(alhena_agent::Transport::Acp));
    let expected = (kinds(&all(&mut run)), run.outcome_blocking());
    let mut run = start(&pooled, &pool, request(&pooled));
    let found = (kinds(&all(&mut run)), run.outcome_blocking());
    assert_eq!(found.0, expected.0);
    let (found, expected) = (found.1, expected.1);
    assert_eq!((found.status, found.text.all()), (Status::Success, "Done."), "{:?}", found.failure);
    assert_eq!(found.text, expected.text);
    let files = |outcome: &alhena_model::Outcome| format!("{:?}", outcome.files);
    assert_eq!(files(&found), files(&expected));
    let commands = |outcome: &alhena_model::Outcome| {
        let each =
            outcome.commands.iter().map(|run| (run.command.clone(), run.exit_code, run.output.clone()));
        each.collect::<Vec<_>>()
    };
    assert_eq!(commands(&found), commands(&expected));
    assert_eq!(found.usage, expected.usage);
    assert_eq!(counted(&found), counted(&expected));
    assert_eq!((found.model_calls, found.models.clone()), (expected.model_calls, expected.models.clone()));
    assert_eq!(found.warnings, expected.warnings);
}

/// The statistics without times.
fn counted(outcome: &alhena_model::Outcome) -> String {
    let mut statistics = outcome.statistics.clone().unwrap();
    for model in statistics.models.values_mut() {
        model.roles.values_mut().chain([&mut model.all]).for_each(|calls| calls.latency_ms = 0);
    }
    statistics.tools.values_mut().for_each(|tool| tool.duration_ms = 0);
    format!("{statistics:#?}")
}

/// The names of what happened, without usage: that comes when it is known.
fn kinds(events: &[alhena_model::Event]) -> Vec<String> {
    let name = |kind: &EventKind| format!("{kind:?}").split([' ', '(', '{']).next().unwrap_or("").to_owned();
    events.iter().map(|event| name(&event.kind)).filter(|name| name != "Usage").collect()
}

#[test]
fn real_cli_a_session_is_not_used_again_after_a_tool_a_failure_or_a_change_of_the_folder() {
    well_before_the_next_hour();
    let scenario = Scenario::dynamic(|request: &alhena_scripted::RecordedRequest| {
        let prompt = request.prompt().unwrap_or_default();
        match (prompt, request.responses().next().is_some()) {
            ("tool", false) => Turn::new().call("list_directory", json!({"dir_path": "."})),
            ("fails", _) => Turn::status(400),
            _ => Turn::say("answered"),
        }
    });
    let lab = Lab::real("not again", VERSION, scenario);
    let pool = pool(1);
    let session = |word: &str| run(&lab, &pool, lab.request(word)).session_id.clone().unwrap();
    let first = session("tool");
    let second = session("plain");
    assert_ne!(first, second);
    assert_eq!(session("again"), second);
    std::fs::write(lab.workspace().join("GEMINI.md"), "Speak of oak trees.").unwrap();
    let third = session("changed");
    assert_ne!(third, second);
    let told = |word: &str| asked(&lab).into_iter().rfind(|request| request.prompt() == Some(word)).unwrap();
    assert!(told("changed").raw_body.contains("oak trees"));
    std::fs::write(lab.workspace().join("GEMINI.md"), "Speak of elm trees.").unwrap();
    let fourth = session("changed again");
    let body = told("changed again").raw_body.clone();
    assert!(body.contains("elm trees") && !body.contains("oak trees"));
    assert_eq!(session("fails"), fourth);
    assert_ne!(session("after it"), fourth);
    assert_eq!(agents(&lab).len(), 1);
}

#[test]
fn real_cli_an_answer_that_is_cut_off_fails_its_own_run_and_no_other() {
    let scenario = Scenario::dynamic(|request: &alhena_scripted::RecordedRequest| {
        let cut = request.prompt() == Some("cut");
        Turn::new().text("part").finish(if cut { "MAX_TOKENS" } else { "STOP" })
    });
    let lab = Lab::real("cut off", VERSION, scenario);
    let pool = pool(1);
    let told = ["whole", "cut", "whole again"].map(|word| {
        let outcome = run(&lab, &pool, lab.request(word));
        (outcome.is_success(), outcome.finish_reason.clone().unwrap())
    });
    assert_eq!(
        told,
        [(true, "STOP"), (false, "MAX_TOKENS"), (true, "STOP")].map(|(ok, why)| (ok, why.to_owned()))
    );
}

#[test]
fn real_cli_what_the_router_takes_is_in_the_usage_of_each_prompt() {
    let lab = lab("router");
    let pool = pool(1);
    for word in ["alder", "birch", "cedar"] {
        let before = lab.server.requests("lab").len();
        let outcome = run(&lab, &pool, lab.request(word).model("auto"));
        assert_eq!(outcome.text.all(), format!("heard {word}"), "{:?}", outcome.failure);
        let asked = lab.server.requests("lab").split_off(before);
        let mut asked: Vec<&str> = asked.iter().map(|request| request.model.as_str()).collect();
        asked.sort_unstable();
        assert_eq!((asked.len(), outcome.model_calls), (2, 2), "{word}");
        assert_eq!(outcome.models, asked, "{word}: {:?}", outcome.usage);
        assert!(outcome.usage.models.values().all(|tokens| tokens.total > 0), "{:?}", outcome.usage);
        assert!(outcome.cost_usd.is_some(), "{word}: {:?}", outcome.usage);
    }
    assert_eq!(agents(&lab).len(), 1);
}

/// What the CLI asks for itself: where nobody says which model answered, it is counted all the same, and has no price.
#[test]
fn real_cli_what_a_search_of_the_web_takes_is_in_the_usage_of_its_prompt() {
    let scenario = Scenario::dynamic(|request: &alhena_scripted::RecordedRequest| {
        let searches = request.prompt() == Some("search") && request.action.starts_with("stream");
        let turn = match searches && request.responses().next().is_none() {
            true => Turn::new().call("google_web_search", json!({"query": "alders"})),
            false => Turn::say("found"),
        };
        let (prompt, answer, total) = (Some(100), Some(10), Some(110));
        turn.usage(Usage {
            prompt_token_count: prompt,
            candidates_token_count: answer,
            total_token_count: total,
            ..Usage::default()
        })
    });
    let lab = Lab::real("aside", VERSION, scenario);
    let pool = pool(1);
    let taken = |word: &str| {
        let before = lab.server.requests("lab").len();
        let outcome = run(&lab, &pool, lab.request(word).approval(Approval::Yolo));
        assert!(outcome.is_success(), "{:?}", outcome.failure);
        let calls = lab.server.requests("lab").len() - before;
        (calls as u64, outcome.model_calls, outcome.usage.all.total, outcome.cost_usd.is_some())
    };
    assert_eq!(taken("plain"), (1, 1, 110, true));
    assert_eq!(taken("search"), (3, 3, 330, false));
    assert_eq!(taken("plain again"), (1, 1, 110, true));
}

#[test]
fn real_cli_a_folder_of_its_own_gets_a_session_of_its_own_in_the_same_process() {
    let lab = lab("two folders");
    let pool = pool(1);
    let other = lab.workspace().join("below");
    std::fs::create_dir(&other).unwrap();
    std::fs::write(lab.workspace().join("only-above.txt"), "").unwrap();
    assert_eq!(answer(&lab, &pool, lab.request("alder")), "heard alder");
    let process = agents(&lab);
    assert_eq!(answer(&lab, &pool, lab.request("birch").dir(&other)), "heard birch");
    assert_eq!(agents(&lab), process);
    let bodies: Vec<String> = asked(&lab).into_iter().map(|request| request.raw_body.clone()).collect();
    assert!(bodies[0].contains("only-above.txt") && !bodies[1].contains("only-above.txt"));
    assert!(bodies[1].contains(&*other.to_string_lossy()));
}

#[test]
fn real_cli_what_cannot_share_a_process_is_refused_with_the_reason_and_runs_without_the_pool() {
    let lab = lab("cannot share");
    let pool = pool(1);
    let refused = |request: alhena_agent::ResolvedRequest| {
        let unfit = alhena_agent::Pool::fits_in(&lab.gemini, &request, &lab.env).unwrap_err().to_string();
        assert_eq!(pool.start(&lab.gemini, request, &lab.env).unwrap_err().to_string(), unfit);
        unfit
    };
    let recording = lab.home.path().join("recording");
    let recorded = lab.request("alder").record(&recording);
    assert_eq!(refused(recorded.clone()), "a pool cannot take this: it is to be recorded");
    assert_eq!(lab.run(recorded).text.all(), "heard alder");
    assert!(recording.exists());
    assert!(refused(lab.request("birch").raw_lines()).contains("lines"));
    assert!(refused(lab.request("cedar").dir(lab.home.path())).contains("home directory"));
    // What is not there no process can work in, and that is another error.
    let nowhere = lab.request("dogwood").dir("/proc/nowhere");
    alhena_agent::Pool::fits_in(&lab.gemini, &nowhere, &lab.env).unwrap();
    assert!(pool.start(&lab.gemini, nowhere, &lab.env).unwrap_err().to_string().contains("/proc/nowhere"));
    alhena_agent::Pool::fits_in(&lab.gemini, &lab.request("elm"), &lab.env).unwrap();
    assert_eq!(answer(&lab, &pool, lab.request("elm")), "heard elm");
}

#[test]
fn real_cli_a_batch_of_different_keys_is_served_by_as_many_processes_as_there_may_be() {
    let lab = lab("batch");
    let pool = pool(2);
    let most = std::sync::atomic::AtomicUsize::new(0);
    let over = std::sync::atomic::AtomicBool::new(false);
    let word = |number: usize| format!("word{number}");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(std::sync::atomic::Ordering::Relaxed) {
                most.fetch_max(agents(&lab).len(), std::sync::atomic::Ordering::Relaxed);
                std::thread::sleep(std::time::Duration::from_millis(20));
            }
        });
        // All are asked at once, and every third has a key of its own.
        let runs: Vec<_> = (0..24)
            .map(|number| start(&lab, &pool, lab.request(&word(number)).env("KEY", (number % 3).to_string())))
            .collect();
        for (number, run) in runs.into_iter().enumerate() {
            let outcome = run.outcome_blocking();
            assert_eq!(outcome.text.all(), format!("heard {}", word(number)), "{:?}", outcome.failure);
        }
        over.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    assert!(most.into_inner() <= 2);
    assert_eq!(asked(&lab).len(), 24);
    pool.close_blocking();
    nothing_is_left(&lab);
}
