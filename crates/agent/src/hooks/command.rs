//! Commands that decide: the question as JSON on stdin, the decision as JSON on stdout.

use std::fs;
use std::process::Command;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{Asked, Hooks, Moment, Verdict, in_turn};
use crate::find::{NoAnswer, ask_in, scratch};

/// More than this is no decision.
const LONGEST: u64 = 16 << 20;

/// What a command says.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CommandAnswer {
    decision: Word,
    #[serde(default)]
    reason: Option<String>,
    #[serde(default)]
    input: Option<Map<String, Value>>,
    #[serde(default)]
    context: Option<String>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Word {
    Allow,
    Deny,
    Stop,
}

impl Hooks {
    /// Shell commands that decide, each at its moment; of several for one moment the first that does not allow decides. One
    /// that fails, says something else or takes longer than `limit` has denied.
    pub fn of_commands(commands: Vec<(Moment, String)>, limit: Duration) -> Self {
        let moments: Vec<Moment> =
            Moment::ALL.into_iter().filter(|moment| commands.iter().any(|(at, _)| at == moment)).collect();
        let most = u32::try_from(commands.len().max(1)).unwrap_or(u32::MAX);
        Self::new(moments, move |asked| decide(&commands, asked, limit))
            .time_limit(limit.saturating_mul(most).saturating_add(Duration::from_secs(5)))
    }
}

fn decide(commands: &[(Moment, String)], asked: &Asked, limit: Duration) -> Verdict {
    let at = commands.iter().filter(|(moment, _)| *moment == asked.moment);
    let decide = |command: &str, asked: &Asked| {
        run(command, asked, limit)
            .unwrap_or_else(|why| Verdict::undecided(format_args!("the hook {command:?} {why}")))
    };
    in_turn(asked, at.map(|(_, command)| move |asked: &Asked| decide(command, asked)))
}

fn run(command: &str, asked: &Asked, limit: Duration) -> Result<Verdict, String> {
    let not_run = |error: std::io::Error| format!("could not be run: {error}");
    let place = scratch().map_err(not_run)?;
    let question = place.path().join("question");
    fs::write(&question, question_of(asked).to_string()).map_err(not_run)?;
    // In the folder that is worked in, as people expect; one that is gone decides from nowhere.
    let dir = asked.told.get("cwd").and_then(Value::as_str).unwrap_or("/");
    let mut shell = Command::new("/bin/sh");
    let script = r#"cd "$3" 2>/dev/null; exec /bin/sh -c "$1" < "$2""#;
    shell.args(["-c", script, "hook", command]).arg(&question).arg(dir);
    let answer = ask_in(&place, &mut shell, limit, LONGEST).map_err(|error| match error {
        NoAnswer::NotStarted(error) => not_run(error),
        NoAnswer::TooLate | NoAnswer::Stopped => {
            format!("did not decide within {} s", limit.as_secs_f64())
        }
    })?;
    if !answer.status.success() {
        let said = String::from_utf8_lossy(&answer.stderr);
        let said = Some(said.trim()).filter(|said| !said.is_empty()).map(|said| format!(": {said}"));
        return Err(format!("failed ({}){}", answer.status, said.unwrap_or_default()));
    }
    verdict(&answer.stdout, asked.moment)
}

/// The question, in Alhena's words.
fn question_of(asked: &Asked) -> Value {
    let mut question = Map::from_iter([("event".to_owned(), json!(asked.moment.name()))]);
    for (name, theirs) in [
        ("session_id", "session_id"),
        ("dir", "cwd"),
        ("tool", "tool_name"),
        ("input", "tool_input"),
        ("result", "tool_response"),
        ("request", "llm_request"),
    ] {
        if let Some(value) = asked.told.get(theirs) {
            question.insert(name.to_owned(), value.clone());
        }
    }
    Value::Object(question)
}

fn verdict(said: &[u8], moment: Moment) -> Result<Verdict, String> {
    const WANTED: &str = r#"{"decision": "allow"}, "deny" or "stop""#;
    if said.trim_ascii().is_empty() {
        return Err(format!("decided nothing; it has to print {WANTED}"));
    }
    let said: CommandAnswer =
        serde_json::from_slice(said).map_err(|error| format!("did not print {WANTED}: {error}"))?;
    let reason = || said.reason.clone().unwrap_or_else(|| "a hook decided so".to_owned());
    match said.decision {
        Word::Deny => Ok(Verdict::Deny(reason())),
        Word::Stop => Ok(Verdict::Stop(reason())),
        Word::Allow if said.input.is_some() && moment != Moment::BeforeTool => {
            Err("gives an input, which only before-tool can".to_owned())
        }
        Word::Allow if said.context.is_some() && moment == Moment::BeforeTool => {
            Err("gives a context, which only after-tool and before-model can".to_owned())
        }
        Word::Allow => Ok(Verdict::Allow { input: said.input, context: said.context }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked() -> Asked {
        let told = json!({"tool_name": "write_file", "tool_input": {"a": 1}, "cwd": "/srv/p"});
        Asked { moment: Moment::BeforeTool, told: told.as_object().cloned().unwrap() }
    }

    fn decided(commands: &[&str]) -> Verdict {
        let commands: Vec<_> =
            commands.iter().map(|command| (Moment::BeforeTool, (*command).to_owned())).collect();
        decide(&commands, &asked(), Duration::from_secs(20))
    }

    #[test]
    fn a_command_gets_the_question_and_its_word_counts() {
        let wanted = r#"{"event":"before-tool","dir":"/srv/p","tool":"write_file","input":{"a":1}}"#;
        let test = format!(r#"test "$(cat)" = '{wanted}' && echo '{{"decision":"allow"}}'"#);
        assert_eq!(decided(&[&test]), Verdict::GO_ON);
        let deny = r#"echo '{"decision":"deny","reason":"no"}'"#;
        assert_eq!(decided(&[&test, deny, "false"]), Verdict::Deny("no".to_owned()));
        let stop = r#"echo '{"decision":"stop","reason":"enough"}'"#;
        assert_eq!(decided(&[stop]), Verdict::Stop("enough".to_owned()));
    }

    #[test]
    fn the_second_command_sees_what_the_first_has_changed() {
        let change = r#"echo '{"decision":"allow","input":{"a":2}}'"#;
        let check = r#"grep -q '"a":2' && echo '{"decision":"allow"}'"#;
        let input = Some(Map::from_iter([("a".to_owned(), json!(2))]));
        assert_eq!(decided(&[change, check]), Verdict::Allow { input, context: None });
    }

    #[test]
    fn a_command_that_does_not_decide_has_denied() {
        for command in [
            "true",
            "echo yes",
            "false",
            "exit 2",
            "kill -9 $$",
            "no-such-program-here",
            r#"echo '{"decision":"perhaps"}'"#,
            r#"echo '{"decision":"allow","contekst":"x"}'"#,
            r#"echo '{"decision":"allow","context":"x"}'"#,
            r#"echo '{"decision":"allow"}{"decision":"deny"}'"#,
        ] {
            assert!(matches!(decided(&[command]), Verdict::Deny(_)), "{command}");
        }
        let commands = vec![(Moment::BeforeTool, "sleep 60".to_owned())];
        let Verdict::Deny(why) = decide(&commands, &asked(), Duration::from_millis(200)) else { panic!() };
        assert!(why.contains("did not decide within 0.2 s"), "{why}");
    }

    #[test]
    fn a_command_runs_in_the_folder_that_is_worked_in() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("check.sh"), r#"echo '{"decision": "allow"}'"#).unwrap();
        let mut asked = asked();
        asked.told.insert("cwd".to_owned(), json!(folder.path()));
        let commands = [(Moment::BeforeTool, "sh ./check.sh".to_owned())];
        assert_eq!(decide(&commands, &asked, Duration::from_secs(20)), Verdict::GO_ON);
    }
}
