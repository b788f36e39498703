//! What Gemini CLI does over ACP that nobody would expect, each with its cure.

use std::time::{Duration, Instant};

use alhena_agent::{Approval, Resume, Transport, TurnItem};
use alhena_model::judge::finish::UNAVAILABLE;
use alhena_model::{EventKind, FailureKind, Status};
use alhena_scripted::{Scenario, Turn};
use alhena_testbed::{Deadline, processes, processes_with_env};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use super::{converse, follow, kinds, lab, nobody};
use crate::lab::Build;

fn shell(command: &str) -> Turn {
    Turn::new().call("run_shell_command", json!({"command": command}))
}

#[test]
fn real_cli_a_change_of_mode_or_model_is_no_answer_and_counts_from_the_next_prompt() {
    let scenario = Scenario::new().turn(Turn::say("One.")).turn(shell("touch made")).turn(Turn::say("Two."));
    let lab = lab("mode", scenario);
    let mut talk = converse(&lab, lab.request(""));
    let (_, outcome) = follow(talk.prompt("one").unwrap(), nobody);
    assert_eq!(outcome.text.all(), "One.");
    talk.set_mode(Approval::Yolo).unwrap();
    talk.set_model("gemini-2.5-pro").unwrap();
    let (_, outcome) = follow(talk.prompt("two").unwrap(), nobody);
    assert_eq!((outcome.status, outcome.text.all()), (Status::Success, "Two."), "{:?}", outcome.failure);
    assert_eq!(outcome.models, ["gemini-2.5-pro"]);
    assert!(lab.workspace().join("made").exists());
}

#[test]
fn real_cli_a_change_of_mode_in_mid_turn_is_no_part_of_the_answer() {
    let lab =
        lab("mode in mid-turn", Scenario::new().turn(Turn::new().text("Part ").gate("go").text("and rest.")));
    let mut talk = converse(&lab, lab.request("").raw_lines());
    let mut turn = talk.prompt("go").unwrap();
    let (mut told, mut texts) = (false, Vec::new());
    while let Some(item) = turn.next_blocking() {
        match item {
            TurnItem::Line(line) if String::from_utf8_lossy(&line).contains("[MODE_UPDATE] yolo") => {
                told = true;
                lab.server.release("lab", "go");
            }
            TurnItem::Event(event) => {
                if let EventKind::Text { delta } = &event.kind {
                    texts.push(delta.clone());
                    if texts.len() == 1 {
                        talk.set_mode(Approval::Yolo).unwrap();
                    }
                }
            }
            _ => {}
        }
    }
    let outcome = turn.outcome_blocking();
    assert!(told, "the CLI does not say it any more");
    assert_eq!((outcome.text.all(), texts.concat().as_str()), ("Part and rest.", "Part and rest."));
}

#[test]
fn real_cli_an_answer_that_is_cut_off_in_a_conversation_fails_its_own_turn_and_no_other() {
    let cut = |reason: &str| Turn::new().text("partial").finish(reason);
    let scenario = Scenario::new()
        .turn(Turn::say("Whole."))
        .turn(cut("MAX_TOKENS"))
        .turn(Turn::say("Whole again."))
        .turn(cut("RECITATION"));
    let lab = lab("cut off in a conversation", scenario);
    let mut talk = converse(&lab, lab.request(""));
    let mut told = Vec::new();
    for prompt in ["one", "two", "three", "four"] {
        let (_, outcome) = follow(talk.prompt(prompt).unwrap(), nobody);
        assert!(outcome.warnings.is_empty(), "{:?}", outcome.warnings);
        let kind = outcome.failure.as_ref().map(|failure| failure.kind);
        told.push((kind, outcome.finish_reason.clone().unwrap(), outcome.text.all().to_owned()));
    }
    assert!(talk.close_blocking().warnings.is_empty());
    let cut = Some(FailureKind::InvalidResponse);
    let expected = [
        (None, "STOP", "Whole."),
        (cut, "MAX_TOKENS", "partial"),
        (None, "STOP", "Whole again."),
        (cut, "RECITATION", "partial"),
    ];
    assert_eq!(told, expected.map(|(kind, reason, text)| (kind, reason.to_owned(), text.to_owned())));
}

/// A caller's own `--record-responses` keeps Alhena from recording, as a Google account does.
#[test]
fn real_cli_a_success_whose_finish_reason_nothing_tells_in_time_has_a_warning() {
    let scenario = Scenario::new().turn(Turn::new().text("partial").finish("MAX_TOKENS").always());
    let lab = lab("finish reason unavailable", scenario);
    let own = format!("--record-responses={}", lab.home.path().join("own").display());
    let request = |prompt: &str| lab.request(prompt).extra_arg(&own);
    let mut talk = converse(&lab, request(""));
    for prompt in ["one", "two"] {
        let (events, outcome) = follow(talk.prompt(prompt).unwrap(), nobody);
        assert_eq!((outcome.status, outcome.finish_reason.as_deref()), (Status::Success, None));
        assert!(outcome.warnings.iter().any(|warning| warning == UNAVAILABLE), "{:?}", outcome.warnings);
        let is_told =
            |kind: &&EventKind| matches!(kind, EventKind::Warning { message } if message == UNAVAILABLE);
        assert_eq!(kinds(&events).iter().filter(|kind| is_told(kind)).count(), 1);
    }
    talk.close_blocking();
    let pool = alhena_agent::Pool::new(alhena_agent::PoolOptions::default()).unwrap();
    let outcome = pool.start(&lab.gemini, request("three"), &lab.env).unwrap().outcome_blocking();
    pool.close_blocking();
    assert_eq!(outcome.status, Status::Success, "{outcome:?}");
    assert_eq!(outcome.warnings, [UNAVAILABLE]);
    // Telemetry is in time for a process that ends with its run.
    for transport in [Transport::Headless, Transport::Acp] {
        let outcome = lab.run(request("four").transport(transport));
        assert_eq!(outcome.finish_reason.as_deref(), Some("MAX_TOKENS"), "{outcome:?}");
        assert!(outcome.warnings.iter().all(|warning| warning != UNAVAILABLE), "{:?}", outcome.warnings);
    }
    // There is none with telemetry of the user's own.
    let mut env = lab.env.clone();
    env.set("GEMINI_TELEMETRY_ENABLED", "false");
    for transport in [Transport::Headless, Transport::Acp] {
        let run = lab.gemini.start(request("five").transport(transport), &env).unwrap();
        let outcome = run.outcome_blocking();
        assert_eq!(
            (outcome.status, outcome.warnings.as_slice()),
            (Status::Success, &[UNAVAILABLE.to_owned()][..])
        );
    }
}

#[test]
fn real_cli_what_the_router_takes_is_in_the_usage_of_each_turn() {
    let scenario = Scenario::dynamic(|_: &alhena_scripted::RecordedRequest| Turn::say("Hi."));
    let lab = lab("router", scenario);
    let mut talk = converse(&lab, lab.request("").model("auto"));
    for prompt in ["one", "two"] {
        let before = lab.server.requests("lab").len();
        let (_, outcome) = follow(talk.prompt(prompt).unwrap(), nobody);
        assert_eq!(outcome.status, Status::Success, "{:?}", outcome.failure);
        let asked = lab.server.requests("lab").split_off(before);
        let mut asked: Vec<&str> = asked.iter().map(|request| request.model.as_str()).collect();
        asked.sort_unstable();
        assert_eq!(outcome.models, asked, "{:?}", outcome.usage);
        assert_eq!((asked.len(), outcome.model_calls), (2, 2));
        assert!(outcome.usage.models.values().all(|tokens| tokens.total > 0), "{:?}", outcome.usage);
    }
}

#[test]
fn real_cli_what_a_sub_agent_may_not_do_it_does_not_do_unseen() {
    let delegates = || {
        Scenario::new()
            .turn(Turn::new().call("invoke_agent", json!({"agent_name": "generalist", "prompt": "Do it"})))
            .turn(shell("touch by-another"))
            .turn(Turn::new().call("complete_task", json!({"result": {"response": "I could not"}})))
            .turn(Turn::say("Well."))
    };
    for (approval, rule) in [(Approval::Default, None), (Approval::Yolo, Some("shell(touch *)"))] {
        let lab = lab("sub-agent", delegates());
        let mut request = lab.request("").approval(approval);
        if let Some(rule) = rule {
            request.rules.add(alhena_agent::rules::Decision::Deny, rule).unwrap();
        }
        let mut talk = converse(&lab, request);
        let (_, outcome) = follow(talk.prompt("go").unwrap(), |permission| {
            // The delegation itself may be; its shell commands nobody allows.
            match permission.tool.as_str() {
                "run_shell_command" => permission.reject("no"),
                _ => permission.allow_once(),
            }
        });
        assert!(!lab.workspace().join("by-another").exists(), "{approval:?}: {outcome:?}");
        assert!(lab.server.requests("lab").len() >= 2, "{approval:?}: nothing was delegated");
    }
}

#[test]
fn real_cli_always_is_never_said_to_the_cli() {
    let scenario = Scenario::new()
        .turn(shell("touch a"))
        .turn(Turn::say("One."))
        .turn(shell("touch a"))
        .turn(Turn::say("Two."));
    let lab = lab("always", scenario);
    let mut talk = converse(&lab, lab.request("").raw_lines());
    let mut questions = Vec::new();
    for prompt in ["one", "two"] {
        let mut turn = talk.prompt(prompt).unwrap();
        let mut asked = 0;
        while let Some(item) = turn.next_blocking() {
            match item {
                TurnItem::Asked(permission) => permission.allow_for_conversation(),
                TurnItem::Line(line) => {
                    asked +=
                        usize::from(String::from_utf8_lossy(&line).contains("session/request_permission"));
                }
                _ => {}
            }
        }
        questions.push(asked);
    }
    // It asks again, because it was told nothing that it could remember.
    assert_eq!(questions, [1, 1]);
    talk.close_blocking();
    assert!(!lab.home.path().join(".gemini/policies/auto-saved.toml").exists());
}

#[test]
fn real_cli_yolo_asks_nobody_although_the_cli_still_asks() {
    let scenario = Scenario::new()
        .turn(shell("ls"))
        .turn(shell("cat seen.txt"))
        .turn(Turn::new().call("write_file", json!({"file_path": "package.json", "content": "{}"})))
        .turn(Turn::say("Done."));
    let lab = lab("yolo", scenario);
    std::fs::write(lab.workspace().join("seen.txt"), "alpha\n").unwrap();
    let mut talk = converse(&lab, lab.request("").approval(Approval::Yolo));
    let (_, outcome) = follow(talk.prompt("go").unwrap(), nobody);
    assert_eq!((outcome.status, outcome.text.all()), (Status::Success, "Done."), "{:?}", outcome.failure);
    let outputs: Vec<&str> =
        outcome.commands.iter().filter_map(|run| run.output.as_deref()).map(str::trim).collect();
    assert_eq!(outputs, ["seen.txt", "alpha"]);
    assert!(lab.workspace().join("package.json").exists());
}

#[test]
fn real_cli_sixty_calls_of_one_session_have_each_its_own_output() {
    let calls = 60;
    let mut scenario = Scenario::new();
    for number in 0..calls {
        scenario = scenario.turn(shell(&format!("echo n{number}; head -c 5000 /dev/zero | tr '\\0' x")));
    }
    let lab = lab("sixty", scenario.turn(Turn::say("Done.")));
    let mut talk = converse(&lab, lab.request("").approval(Approval::Yolo));
    let (_, outcome) = follow(talk.prompt("go").unwrap(), nobody);
    assert_eq!((outcome.status, outcome.text.all()), (Status::Success, "Done."), "{:?}", outcome.failure);
    assert_eq!((outcome.commands.len(), outcome.tool_calls), (calls, calls as u64));
    let heads =
        outcome.commands.iter().map(|run| run.output.as_deref().and_then(|output| output.lines().next()));
    let heads: Vec<String> = heads.map(|head| head.unwrap_or("none").to_owned()).collect();
    assert_eq!(heads, (0..calls).map(|number| format!("n{number}")).collect::<Vec<_>>());
    assert!(outcome.commands.iter().all(|run| run.exit_code == Some(0)));
}

#[test]
fn real_cli_a_reader_that_comes_late_hears_everything_in_its_order() {
    let calls = 6;
    // More than is kept for a reader, so that the agent is far ahead when it is heard.
    let much: String = (0..200_000).map(|number| format!("{number} ")).collect();
    let first = Turn::new().chunks(&much, 60_000, Duration::ZERO);
    let mut scenario = Scenario::new().turn(first.call("run_shell_command", json!({"command": "echo 0"})));
    for number in 1..calls {
        let command = json!({"command": format!("echo {number}")});
        scenario = scenario.turn(Turn::new().text(format!("{number}. ")).call("run_shell_command", command));
    }
    let lab = lab("late", scenario.turn(Turn::say("Done.")));
    let mut talk = converse(&lab, lab.request("").approval(Approval::Yolo));
    let turn = talk.prompt("go").unwrap();
    let all = || lab.server.requests("lab").len() > calls;
    assert!(Deadline::after(Duration::from_secs(60)).wait_until(all), "{}", lab.server.requests("lab").len());
    let (events, outcome) = follow(turn, nobody);
    assert_eq!(outcome.status, Status::Success, "{:?}", outcome.failure);
    let told = kinds(&events).into_iter().filter_map(|kind| match kind {
        EventKind::Text { delta } if delta.len() < 10 => Some(delta.trim().to_owned()),
        EventKind::Command { command, .. } => Some(command.clone()),
        _ => None,
    });
    let mut wanted = vec!["echo 0".to_owned()];
    wanted.extend((1..calls).flat_map(|number| [format!("{number}."), format!("echo {number}")]));
    wanted.push("Done.".to_owned());
    assert_eq!(told.collect::<Vec<_>>(), wanted);
}

#[test]
fn real_cli_a_session_is_gone_on_with_in_the_minute_of_its_beginning_in_the_mode_and_model_that_are_asked_for()
 {
    let scenario = Scenario::new()
        .turn(Turn::say("I will remember the word."))
        .turn(shell("echo resumed; touch made"))
        .turn(Turn::say("It was plover."));
    let lab = lab("resumed", scenario);
    let mut talk = converse(&lab, lab.request(""));
    let (_, outcome) = follow(talk.prompt("The word is plover").unwrap(), nobody);
    let id = outcome.session_id.clone().unwrap();
    let closed = talk.close_blocking();
    assert_eq!(closed.session_files.len(), 1, "{closed:?}");

    let request =
        lab.request("").approval(Approval::Yolo).model("gemini-2.5-pro").resume(Resume::Id(id.clone()));
    let mut talk = converse(&lab, request);
    let (_, outcome) = follow(talk.prompt("Which word?").unwrap(), nobody);
    assert_eq!(
        (outcome.status, outcome.text.all()),
        (Status::Success, "It was plover."),
        "{:?}",
        outcome.failure
    );
    assert_eq!(
        (outcome.session_id.as_ref(), &outcome.models[..]),
        (Some(&id), &["gemini-2.5-pro".to_owned()][..])
    );
    assert_eq!(
        outcome.commands[0].output.as_deref().map(str::trim),
        Some("resumed"),
        "{:?}",
        outcome.commands
    );
    let requests = lab.server.requests("lab");
    assert!(requests.last().unwrap().texts().any(|text| text.contains("plover")));
    let closed = talk.close_blocking();
    let [file] = &closed.session_files[..] else { panic!("{closed:?}") };
    let kept = std::fs::read_to_string(file).unwrap();
    assert!(kept.contains("The word is plover") && kept.contains("Which word?"), "{kept}");
}

#[test]
fn real_cli_what_a_cancelled_turn_did_is_in_its_outcome_and_told_to_the_next_one() {
    let scenario = Scenario::new()
        .turn(shell("echo done > done.txt"))
        .turn(Turn::new().text("and ").hang())
        .turn(Turn::say("I know."));
    let lab = lab("erased", scenario);
    let mut talk = converse(&lab, lab.request("").approval(Approval::Yolo));
    let mut turn = talk.prompt("go").unwrap();
    while let Some(item) = turn.next_blocking() {
        if matches!(&item, TurnItem::Event(event) if matches!(event.kind, EventKind::Text { .. })) {
            turn.cancel();
        }
    }
    let outcome = turn.outcome_blocking();
    assert_eq!(outcome.status, Status::Cancelled);
    assert_eq!(outcome.commands[0].command, "echo done > done.txt");
    assert_eq!(outcome.files[0].path, "done.txt");
    let (_, outcome) = follow(talk.prompt("And now?").unwrap(), nobody);
    assert_eq!((outcome.status, outcome.text.all()), (Status::Success, "I know."), "{:?}", outcome.failure);
    let requests = lab.server.requests("lab");
    let last = requests.last().unwrap();
    let told: Vec<&str> = last.texts().filter(|text| text.contains("was cut short")).collect();
    assert!(
        told.len() == 1
            && told[0].contains("ran `echo done > done.txt`")
            && told[0].contains("created done.txt"),
        "{told:?}"
    );
}

#[test]
fn real_cli_a_turn_that_is_cancelled_while_a_command_runs_leaves_nothing_of_it_running() {
    for command in ["sleep 301", "sleep 301 & sleep 302", "trap '' TERM; while :; do sleep 0.2; done"] {
        let scenario =
            Scenario::new().turn(shell(&format!("touch begun; {command}"))).turn(Turn::say("After."));
        let lab = lab("cancelled command", scenario);
        let mut talk = converse(&lab, lab.request("").approval(Approval::Yolo));
        let mark = format!("ALHENA_RUN={}", talk.about().mark);
        let turn = talk.prompt("go").unwrap();
        assert!(
            Deadline::after(Duration::from_secs(60)).wait_until(|| lab.workspace().join("begun").exists())
        );
        let asked = Instant::now();
        turn.cancel();
        let outcome = turn.outcome_blocking();
        println!("{command}: over after {:?}", asked.elapsed());
        assert_eq!(outcome.status, Status::Cancelled, "{:?}", outcome.failure);
        let tools = || processes_with_env(&mark).into_iter().filter(|pid| is_tool(*pid)).collect::<Vec<_>>();
        assert_eq!(tools(), Vec::<u32>::new(), "{command}");
        let (_, outcome) = follow(talk.prompt("next").unwrap(), nobody);
        assert_eq!(
            (outcome.status, outcome.text.all()),
            (Status::Success, "After."),
            "{:?}",
            outcome.failure
        );
    }
}

/// What a shell command started, and not the CLI itself.
fn is_tool(pid: u32) -> bool {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let line = String::from_utf8_lossy(&line).into_owned();
    !line.is_empty() && !line.contains("gemini") && !line.contains("alhena")
}

#[test]
fn real_cli_an_agent_that_dies_in_mid_turn_is_a_crash_and_the_conversation_is_over() {
    let lab = lab("abort", Scenario::new().turn(Turn::new().text("part ").hang()));
    let mut talk = converse(&lab, lab.request(""));
    let mark = talk.about().mark.clone();
    let mut turn = talk.prompt("go").unwrap();
    while let Some(item) = turn.next_blocking() {
        if !matches!(&item, TurnItem::Event(event) if matches!(event.kind, EventKind::Text { .. })) {
            continue;
        }
        // As Node ends when its memory is full.
        for pid in processes::with_variable("ALHENA_RUN", &mark) {
            let pid = Pid::from_raw(pid as i32).unwrap();
            let _gone = kill_process(pid, Signal::ABORT);
        }
    }
    let outcome = turn.outcome_blocking();
    let failure = outcome.failure.as_ref().unwrap();
    assert_eq!((outcome.status, failure.kind), (Status::Failed, FailureKind::Crashed), "{failure:?}");
    assert_eq!(outcome.text.all(), "part ");
    assert!(failure.message.contains("signal 6"), "{failure:?}");
    let deadline = Deadline::after(Duration::from_secs(30));
    assert!(deadline.wait_until(|| talk.prompt("again").is_err()));
    assert!(processes_with_env(&format!("ALHENA_RUN={mark}")).is_empty());
}

#[test]
fn real_cli_a_prompt_of_a_megabyte_arrives_whole() {
    let lab = lab("large", Scenario::new().turn(Turn::say("Read.")));
    let mut talk = converse(&lab, lab.request(""));
    let prompt = format!("{}END", "word ".repeat(200_000));
    let (_, outcome) = follow(talk.prompt(prompt.as_str()).unwrap(), nobody);
    assert_eq!(outcome.status, Status::Success, "{:?}", outcome.failure);
    let requests = lab.server.requests("lab");
    assert!(requests.last().unwrap().texts().any(|text| text == prompt));
}

#[test]
fn real_cli_a_prompt_that_does_not_fit_into_the_models_window_is_not_called_an_answer_that_was_cut_off() {
    let lab = lab("too large", Scenario::new().turn(Turn::say("Now.")));
    let mut talk = converse(&lab, lab.request(""));
    let (_, outcome) = follow(talk.prompt("word ".repeat(1_200_000)).unwrap(), nobody);
    assert_eq!(outcome.failure.as_ref().map(|failure| failure.kind), Some(FailureKind::Input), "{outcome:?}");
    assert!(outcome.warnings.iter().all(|warning| !warning.contains("MAX_TOKENS")), "{:?}", outcome.warnings);
    let (_, outcome) = follow(talk.prompt("short").unwrap(), nobody);
    assert_eq!((outcome.status, outcome.text.all()), (Status::Success, "Now."), "{:?}", outcome.failure);
}

#[test]
fn real_cli_what_rules_deny_by_name_is_not_done_when_the_api_names_its_calls() {
    let call = |name: &str, args: serde_json::Value, id: &str| json!({"steps": [{"call": {"name": name, "args": args, "id": id}}]});
    let scenario = json!({"turns": [
        call("write_file", json!({"file_path": "new.txt", "content": "x"}), "8f2b0"),
        call("run_shell_command", json!({"command": "touch made"}), "call_7"),
        {"steps": [{"text": "Done."}]},
    ]});
    let lab = lab("ids of the API", Scenario::from_json(&scenario.to_string()).unwrap());
    let mut rules = alhena_agent::rules::Rules::default();
    for rule in ["write_file", "Bash(touch *)"] {
        rules.add(alhena_agent::rules::Decision::Deny, rule).unwrap();
    }
    let mut talk = converse(&lab, lab.request("").approval(Approval::Yolo).rules(rules));
    let (events, outcome) = follow(talk.prompt("go").unwrap(), nobody);
    assert!(!lab.workspace().join("new.txt").exists() && !lab.workspace().join("made").exists());
    let names: Vec<&str> = kinds(&events)
        .iter()
        .filter_map(|kind| match kind {
            EventKind::ToolCall { name, .. } => Some(name.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(names, ["write_file", "run_shell_command"], "{outcome:?}");
}

/// What the CLI holds for safe, and what is trusted, it does without asking, unless it is made to.
#[test]
fn real_cli_rules_are_kept_for_commands_that_count_as_safe_and_for_servers_that_are_trusted() {
    let shout = || Turn::new().call("mcp_echo_shout", json!({"word": "heard"}));
    let scenario = Scenario::new()
        .turn(shell("cat secret.txt"))
        .turn(shout())
        .turn(Turn::new().call("read_file", json!({"file_path": "open.txt"})))
        .turn(Turn::say("End."));
    let lab = lab("safe and trusted", scenario);
    std::fs::write(lab.workspace().join("secret.txt"), "THE-SECRET").unwrap();
    std::fs::write(lab.workspace().join("open.txt"), "OPEN-TEXT").unwrap();
    let script = lab.home.path().join("echo.js");
    std::fs::write(&script, crate::lab::SHOUTING_SERVER).unwrap();
    let settings = lab.home.gemini().join("settings.json");
    let mut object: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(&settings).unwrap()).unwrap();
    object["mcpServers"]["echo"] = json!({"command": "node", "args": [script], "trust": true});
    std::fs::write(settings, object.to_string()).unwrap();
    let mut rules = alhena_agent::rules::Rules::default();
    for rule in ["shell(cat *)", "mcp(echo/shout)", "read(secret.txt)"] {
        rules.add(alhena_agent::rules::Decision::Deny, rule).unwrap();
    }
    let mut talk = converse(&lab, lab.request("").rules(rules));
    let (_, outcome) = follow(talk.prompt("go").unwrap(), nobody);
    assert_eq!(outcome.status, Status::Success, "{:?}", outcome.failure);
    let told = lab.server.requests("lab").last().unwrap().raw_body.clone();
    assert!(!told.contains("THE-SECRET") && !told.contains("HEARD"), "{told}");
    // Nobody is asked about what no rule speaks of and the CLI would do unasked.
    assert!(told.contains("OPEN-TEXT"), "{told}");
}
