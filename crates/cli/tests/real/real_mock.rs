//! `alhena mock` and the real CLI, started by others with nothing but variables; the examples of the chapter `testing`.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::common::{ALHENA, Desk};
use alhena_testbed::{Deadline, RealCli, Watchdog, processes_with_env, run_bounded};

const PAGE: &str = include_str!("../../../alhena/src/concepts/testing.md");
const LIMIT: Duration = Duration::from_secs(240);

/// The blocks of the page in this language.
fn blocks(language: &str) -> Vec<&'static str> {
    let fence = format!("```{language}\n");
    PAGE.split(fence.as_str()).skip(1).map(|rest| rest.split("```").next().unwrap()).collect()
}

/// A desk with `alhena`, `gemini` and Node on its PATH, and the page's first scenario.
fn desk() -> Desk {
    let cli = RealCli::get("0.61.0").unwrap();
    let places = [Path::new(ALHENA), &cli.bin].map(|program| program.parent().unwrap().display().to_string());
    let path = format!("{}:{}", places.join(":"), std::env::var("PATH").unwrap());
    let desk = Desk::new().env("PATH", path);
    desk.write("greeting.json", blocks("json")[0]);
    desk
}

/// Runs a program as its user would, and looks that it leaves nothing.
fn run(desk: &Desk, program: &str, args: &[&str]) -> String {
    let prepared = desk.command(&[]);
    let mut command = Command::new(program);
    command.args(args).current_dir(desk.work()).env_clear();
    command.envs(prepared.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let done = run_bounded(&mut command, LIMIT).unwrap();
    assert!(done.succeeded(), "{program}: {} {} {}", done.ending(), done.stdout_text(), done.stderr_text());
    let left = || processes_with_env(&format!("HOME={}", desk.home().display()));
    assert!(Deadline::after(LIMIT).wait_until(|| left().is_empty()), "{program} left {:?}", left());
    let homes = fs::read_dir(desk.home().join("alhena/state/mock")).unwrap();
    assert_eq!(homes.filter(|entry| entry.as_ref().unwrap().path().is_dir()).count(), 0);
    assert!(!desk.home().join(".gemini").exists());
    done.stdout_text()
}

#[test]
fn real_cli_a_shell_script_needs_nothing_but_the_variables() {
    let _watchdog = Watchdog::new("shell", Duration::from_secs(900));
    let desk = desk();
    let page = blocks("sh")[0];
    assert!(run(&desk, "bash", &["-ec", page]).contains("Hello from the script."));
    // The end of the shell is enough.
    let without_stop = page.lines().filter(|line| !line.contains("--stop")).collect::<Vec<_>>().join("\n");
    assert!(run(&desk, "sh", &["-ec", &without_stop]).contains("Hello from the script."));
}

#[test]
fn real_cli_programs_in_node_and_python_need_nothing_but_the_variables() {
    let _watchdog = Watchdog::new("programs", Duration::from_secs(900));
    let desk = desk();
    desk.write("host.mjs", blocks("js")[0]);
    assert_eq!(run(&desk, "node", &["host.mjs"]).trim(), "Hello from the script.");
    desk.write("host.py", blocks("python")[0]);
    assert_eq!(run(&desk, "python3", &["host.py"]).trim(), "Hello from the script.");
}

#[test]
fn real_cli_every_scenario_of_the_page_does_what_the_page_says() {
    let _watchdog = Watchdog::new("page", Duration::from_secs(900));
    let desk = desk();
    let (scenarios, printed) = (blocks("json"), blocks("text"));
    let prompts: Vec<&str> =
        PAGE.split("`gemini ").skip(1).map(|rest| rest.split('`').next().unwrap()).collect();
    assert_eq!((scenarios.len(), printed.len(), prompts.len()), (4, 4, 4));
    let names: Vec<String> = (0..4).map(|number| format!("s{number}.json")).collect();
    for (name, scenario) in names.iter().zip(&scenarios) {
        desk.write(name, scenario);
    }
    for (number, (prompt, printed)) in prompts.iter().zip(&printed).enumerate() {
        let script = format!(
            "eval \"$(alhena mock --env {})\"; GOOGLE_GEMINI_BASE_URL=$GOOGLE_GEMINI_BASE_URL/s/s{number} \
             gemini --skip-trust {prompt}",
            names.join(" ")
        );
        let seen = run(&desk, "bash", &["-c", &script]);
        assert!(seen.trim().ends_with(printed.trim()), "{printed:?} is not the end of {seen}");
    }
    assert_eq!(fs::read_to_string(desk.work().join("note.txt")).unwrap(), "Noted.\n");
}
