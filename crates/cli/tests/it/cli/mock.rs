//! `alhena mock`: what is told, what is refused, and what stays.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::time::Duration;

use alhena_testbed::processes::signal;
use alhena_testbed::{Deadline, processes_with_env};
use insta::assert_snapshot;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::common::{ALHENA, Desk, Started, Transcript};

const LIMIT: Duration = Duration::from_secs(60);
const HELLO: &str = r#"{"turns": [{"steps": [{"text": "Hello."}]}], "after": "repeat"}"#;

/// A server in the foreground.
struct Mock<'a> {
    desk: &'a Desk,
    started: Started,
}

impl<'a> Mock<'a> {
    fn start(desk: &'a Desk, args: &[&str]) -> Self {
        let args = [&["mock"], args].concat();
        let mut started = Started::new(desk, desk.command(&args), b"");
        assert!(Deadline::after(LIMIT).wait_until(|| started.so_far().contains('\n')));
        Self { desk, started }
    }

    fn json(&mut self) -> Value {
        serde_json::from_str(&self.started.so_far()).unwrap()
    }

    fn end(self, with: Signal) -> Transcript {
        signal(self.started.child.id(), with);
        self.started.finish(self.desk, &["mock"], LIMIT)
    }
}

/// Asks the API as a client would, and gives back the whole response.
fn ask(url: &str) -> String {
    let (host, path) = url.strip_prefix("http://").unwrap().split_once('/').unwrap_or((&url[7..], ""));
    let path = if path.is_empty() { String::new() } else { format!("/{path}") };
    let body = r#"{"contents": [{"role": "user", "parts": [{"text": "Say it"}]}]}"#;
    let mut stream = TcpStream::connect(host).unwrap();
    let target = format!("{path}/v1beta/models/gemini-2.5-flash:streamGenerateContent?key=sesame");
    write!(
        stream,
        "POST {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    response
}

fn variable(told: &Value, name: &str) -> String {
    let found = told["env"].as_array().unwrap().iter().find(|variable| variable["name"] == name);
    found.unwrap_or_else(|| panic!("{name} is not in {told}"))["value"].as_str().unwrap().to_owned()
}

fn homes(desk: &Desk) -> Vec<PathBuf> {
    let place = desk.home().join("alhena/state/mock");
    let entries = fs::read_dir(place).into_iter().flatten().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.is_dir()).collect()
}

#[test]
fn the_first_line_is_the_address_and_a_signal_ends_it_without_a_trace() {
    for with in [Signal::INT, Signal::TERM, Signal::HUP] {
        let desk = Desk::new();
        desk.write("hello.json", HELLO);
        let mut mock = Mock::start(&desk, &["hello.json"]);
        let address = mock.started.so_far().lines().next().unwrap().to_owned();
        assert!(ask(&address).contains("Hello."));
        assert_eq!(homes(&desk).len(), 1);
        let seen = mock.end(with);
        assert_eq!(seen.code(), Some(0), "{seen}");
        assert!(
            seen.stderr.contains("hello: streamGenerateContent 1 of gemini-2.5-flash \"Say it\""),
            "{seen}"
        );
        assert!(!seen.stderr.contains("sesame") && !seen.stdout.contains("sesame"), "{seen}");
        assert_eq!(homes(&desk), Vec::<PathBuf>::new());
    }
}

#[test]
fn behind_the_address_stands_what_a_shell_has_to_do() {
    let desk = Desk::new().env("HTTPS_PROXY", "http://proxy:1").env("TMPDIR", "/tmp/it's");
    desk.write("hello.json", HELLO);
    let mock = Mock::start(&desk, &["--quiet", "--trust", "hello.json"]);
    let seen = mock.end(Signal::TERM);
    assert_snapshot!(masked(&seen.stdout), @r"
    http://127.0.0.1:[PORT]
    export GOOGLE_GEMINI_BASE_URL='http://127.0.0.1:[PORT]'
    export GEMINI_API_KEY='mock'
    export GEMINI_CLI_HOME='[HOME]'
    export GEMINI_CLI_TRUST_WORKSPACE='true'
    export ALHENA_MOCK='[SERVER]'
    unset HTTPS_PROXY
    # hello: http://127.0.0.1:[PORT]/s/hello
    ");
    assert_eq!(seen.stderr, "");
}

/// What differs from server to server.
fn masked(text: &str) -> String {
    let line = |line: &str| {
        let line = match line.split_once("127.0.0.1:") {
            Some((before, after)) => {
                let rest = after.trim_start_matches(|c: char| c.is_ascii_digit());
                format!("{before}127.0.0.1:[PORT]{rest}")
            }
            None => line.to_owned(),
        };
        match line.split_once('=') {
            Some((name, _)) if name.ends_with("GEMINI_CLI_HOME") => format!("{name}='[HOME]'"),
            Some((name, _)) if name.ends_with("ALHENA_MOCK") => format!("{name}='[SERVER]'"),
            _ => line,
        }
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn several_scenarios_have_an_address_each_and_the_bare_one_is_the_first() {
    let desk = Desk::new();
    desk.write("hello.json", HELLO);
    desk.write("a/hello.json", HELLO.replace("Hello.", "Goodbye."));
    let args = ["--json", "--log", "log", "hello.json", "bye=a/hello.json", "tour"];
    let mut mock = Mock::start(&desk, &args);
    let told = mock.json();
    let names: Vec<&str> =
        told["scenarios"].as_array().unwrap().iter().map(|served| served["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["hello", "bye", "tour"]);
    let address = told["address"].as_str().unwrap();
    assert_eq!(variable(&told, "GOOGLE_GEMINI_BASE_URL"), address);
    assert!(ask(address).contains("Hello."));
    assert!(ask(told["scenarios"][0]["url"].as_str().unwrap()).contains("Hello."));
    assert!(ask(told["scenarios"][1]["url"].as_str().unwrap()).contains("Goodbye."));
    assert!(ask(&format!("{address}/s/nobody")).contains("There is no scenario `nobody`."));
    let seen = mock.end(Signal::TERM);
    assert_eq!(seen.code(), Some(0), "{seen}");
    let log = fs::read_to_string(desk.work().join("log")).unwrap();
    assert!(
        log.contains("bye: streamGenerateContent 1 of") && log.contains("refused: 404 There is no"),
        "{log}"
    );
}

#[test]
fn a_bad_scenario_is_refused_with_the_place_and_the_word_that_was_meant() {
    let desk = Desk::new();
    desk.write("bad.json", "{\n  \"turns\": [\n    {\"stpes\": []}\n  ]\n}");
    assert_snapshot!(desk.alhena(&["mock", "bad.json"]), @r#"
    ---- stderr ----
    error: bad.json:3:12: not a scenario: turns[0].stpes: unknown field `stpes`, expected one of `when`, `times`, `always`, `delay`, `hang`, `drop`, `reset`, `status`, `error`, `retry_after`, `headers`, `steps`, `finish`, `usage`, `raw`
    hint: Did you mean "steps"?
    [exit 2]
    "#);
    assert_snapshot!(desk.alhena(&["mock", "--env", "missing.json"]), @r#"
    ---- stderr ----
    error: missing.json: No such file or directory (os error 2)
    hint: Give a scenario in JSON, for example {"turns": [{"steps": [{"text": "Hi"}]}]}.
    [exit 2]
    "#);
    let refused = desk.alhena(&["run", "--offline=bad.json", "hi"]);
    assert!(refused.stderr.contains("bad.json:3:12: not a scenario"), "{refused}");
}

#[test]
fn what_cannot_be_served_is_refused() {
    let desk = Desk::new();
    desk.write("hello.json", HELLO);
    assert_snapshot!(desk.alhena(&["mock", "hello.json", "./hello.json"]), @r#"
    ---- stderr ----
    error: two scenarios have the name "hello"
    hint: Give one of them another name: NAME=FILE.
    [exit 2]
    "#);
    let taken = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    for way in [&["mock", "--port", &port][..], &["mock", "--env", "--port", &port]] {
        let refused = desk.alhena(way);
        assert_eq!(refused.code(), Some(1), "{refused}");
        assert!(refused.stderr.contains(&format!("127.0.0.1:{port} cannot be listened on")), "{refused}");
        assert!(refused.stderr.contains("hint: Leave out --port to get a free one."), "{refused}");
    }
    let refused = desk.alhena(&["mock", "--log", "missing/log"]);
    assert!(refused.stderr.contains("missing/log: No such file"), "{refused}");
    let refused = desk.alhena(&["mock", "--pid", "4194305"]);
    assert!(refused.code() == Some(2) && refused.stderr.contains("cannot be watched"), "{refused}");
    let refused = desk.alhena(&["mock", "--stop"]);
    assert!(refused.code() == Some(2) && refused.stderr.contains("this shell has no server"), "{refused}");
    assert_eq!(homes(&desk), Vec::<PathBuf>::new());
}

/// Runs a script with `alhena` on its PATH.
fn script(desk: &Desk, shell: &str, text: &str) -> Transcript {
    let mut command = desk.command(&[]);
    let path =
        format!("{}:{}", PathBuf::from(ALHENA).parent().unwrap().display(), std::env::var("PATH").unwrap());
    let envs: Vec<_> =
        command.get_envs().map(|(name, value)| (name.to_owned(), value.map(ToOwned::to_owned))).collect();
    command = std::process::Command::new(shell);
    command.arg("-c").arg(text).current_dir(desk.work()).env_clear();
    command.envs(envs.into_iter().filter_map(|(name, value)| Some((name, value?)))).env("PATH", path);
    Started::new(desk, command, b"").finish(desk, &[shell], LIMIT)
}

fn left(desk: &Desk) -> Vec<u32> {
    processes_with_env(&format!("HOME={}", desk.home().display()))
}

#[test]
fn a_shell_has_its_server_until_it_ends() {
    for shell in ["bash", "sh"] {
        let desk = Desk::new();
        desk.write("hello.json", HELLO);
        // A subshell, a pipe and a function come and go while the shell stays.
        let text = r#"
            ask() { alhena mock --env hello.json; }
            eval "$(ask)"
            (true); echo x | cat > /dev/null
            kill -0 "${ALHENA_MOCK%%:*}" && echo serves
            test -f "$GEMINI_CLI_HOME/.gemini/settings.json" && echo "$GEMINI_CLI_HOME"
        "#;
        let seen = script(&desk, shell, text);
        assert!(seen.code() == Some(0) && seen.stdout.starts_with("serves\n/"), "{shell}: {seen}");
        assert!(Deadline::after(LIMIT).wait_until(|| left(&desk).is_empty()), "{shell}: {:?}", left(&desk));
        assert_eq!(homes(&desk), Vec::<PathBuf>::new());
    }
}

#[test]
fn a_shell_that_is_killed_takes_its_server_along() {
    let desk = Desk::new();
    let seen = script(&desk, "bash", r#"eval "$(alhena mock --env)"; kill -KILL $$"#);
    assert_eq!(seen.code(), None, "{seen}");
    assert!(Deadline::after(LIMIT).wait_until(|| left(&desk).is_empty()), "{:?}", left(&desk));
}

#[test]
fn stop_ends_the_server_of_the_shell_and_unsets_its_variables() {
    let desk = Desk::new();
    let text = r#"
        eval "$(alhena mock --env)"
        server=$ALHENA_MOCK
        eval "$(alhena mock --stop)"
        echo "${ALHENA_MOCK-unset} ${GEMINI_CLI_HOME-unset} ${GOOGLE_GEMINI_BASE_URL-unset}"
        ALHENA_MOCK=$server alhena mock --stop > /dev/null
    "#;
    let seen = script(&desk, "bash", text);
    assert_eq!(seen.stdout, "unset unset unset\n", "{seen}");
    assert!(seen.code() == Some(0) && seen.stderr.contains("was not running any more"), "{seen}");
    assert_eq!(homes(&desk), Vec::<PathBuf>::new());
}

/// A key and a proxy of the user's are there again, and were known to nobody in between. What the shell remembers is its own.
#[test]
fn stop_gives_a_shell_back_what_it_had() {
    for shell in ["bash", "sh"] {
        let desk = Desk::new()
            .env("GEMINI_API_KEY", r#"it's "my" $key"#)
            .env("HTTPS_PROXY", "http://proxy:1")
            .env("GOOGLE_GEMINI_BASE_URL", "");
        desk.write("hello.json", HELLO);
        let text = r#"
            set -eu
            all() { printf '%s|' "${GEMINI_API_KEY-none}" "${HTTPS_PROXY-none}" "${GOOGLE_GEMINI_BASE_URL-none}" "${ALHENA_MOCK-none}"; }
            said=$(alhena mock --env); eval "$said"
            case $said in *'my'*) echo "the key was told" ;; esac
            echo "$GEMINI_API_KEY ${HTTPS_PROXY-none}"
            env | grep alhena_had_ || true
            outer=$(all)
            (eval "$(alhena mock --env hello.json)"; eval "$(alhena mock --stop)"; test "$(all)" = "$outer" && echo "as around it")
            kill -KILL "${ALHENA_MOCK%%:*}"
            eval "$(alhena mock --env hello.json)"
            eval "$(alhena mock --env hello.json)"
            eval "$(alhena mock --stop)"
            all
            env | grep -c '^GEMINI_API_KEY='
        "#;
        let seen = script(&desk, shell, text);
        let expected = "mock none\nas around it\nit's \"my\" $key|http://proxy:1||none|1\n";
        assert_eq!((seen.stdout.as_str(), seen.code()), (expected, Some(0)), "{shell}: {seen}");
        assert!(Deadline::after(LIMIT).wait_until(|| left(&desk).is_empty()), "{shell}: {:?}", left(&desk));
    }
}

/// What answers in a script at the address that is set.
const WHO: &str = r#"who() { bash -c 'address=${GOOGLE_GEMINI_BASE_URL#http://}; exec 3<>"/dev/tcp/${address%%:*}/${address##*:}" || exit
    printf "POST /v1beta/models/m:streamGenerateContent HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}" >&3
    grep -ao "Hello\|Goodbye" <&3' 2> /dev/null || echo nobody; }"#;

/// A desk with two scenarios.
fn two() -> Desk {
    let desk = Desk::new();
    desk.write("hello.json", HELLO);
    desk.write("bye.json", HELLO.replace("Hello.", "Goodbye."));
    desk
}

#[test]
fn a_shell_that_asks_for_another_server_has_that_one_alone() {
    let taken = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = taken.local_addr().unwrap().port();
    drop(taken);
    for option in [String::new(), format!("--port {port}")] {
        let desk = two();
        let text = format!(
            r#"{WHO}
            eval "$(alhena mock --env --trust {option} hello.json)"; who
            first=$ALHENA_MOCK home=$GEMINI_CLI_HOME
            alhena mock --env nothing.json 2> /dev/null; who
            eval "$(alhena mock --env {option} bye.json)"; who
            # Whoever has to collect it may not have done so.
            grep -q ") [^Z] " "/proc/${{first%%:*}}/stat" 2> /dev/null && echo "the first is there"
            test -d "$home" && echo "and its home"
            echo "${{GEMINI_CLI_TRUST_WORKSPACE-unset}}"
            eval "$(alhena mock --stop)"
        "#
        );
        let seen = script(&desk, "bash", &text);
        assert_eq!(seen.stdout, "Hello\nHello\nGoodbye\nunset\n", "{option}: {seen}");
        assert_eq!((seen.code(), seen.stderr.as_str()), (Some(0), ""), "{option}: {seen}");
        assert!(Deadline::after(LIMIT).wait_until(|| left(&desk).is_empty()), "{:?}", left(&desk));
        assert_eq!(homes(&desk), Vec::<PathBuf>::new());
    }
}

/// It has the variables of the shell around it, and nothing to say there.
#[test]
fn a_subshell_and_a_script_have_servers_of_their_own() {
    let desk = two();
    desk.write("inner.sh", format!("{WHO}\neval \"$(alhena mock --env bye.json)\"; who"));
    let text = format!(
        r#"{WHO}
        eval "$(alhena mock --env hello.json)"
        (eval "$(alhena mock --env bye.json)"; who; echo "${{ALHENA_MOCK%%:*}}" > inner); who
        while kill -0 "$(cat inner)" 2> /dev/null; do sleep 0.1; done
        bash inner.sh; who
    "#
    );
    let seen = script(&desk, "bash", &text);
    assert_eq!(seen.stdout, "Goodbye\nHello\nGoodbye\nHello\n", "{seen}");
    assert!(Deadline::after(LIMIT).wait_until(|| left(&desk).is_empty()), "{:?}", left(&desk));
}

#[test]
fn the_home_of_a_server_that_was_killed_is_removed_by_the_next() {
    let desk = Desk::new();
    let killed = Mock::start(&desk, &[]).end(Signal::KILL);
    assert_eq!(killed.code(), None, "{killed}");
    let left_home = homes(&desk);
    assert_eq!(left_home.len(), 1);
    let one = Mock::start(&desk, &[]);
    let other = Mock::start(&desk, &[]);
    let now = homes(&desk);
    assert!(now.len() == 2 && !now.contains(&left_home[0]), "{now:?}");
    assert_eq!((one.end(Signal::TERM).code(), other.end(Signal::TERM).code()), (Some(0), Some(0)));
    assert_eq!(homes(&desk), Vec::<PathBuf>::new());
}

#[test]
fn a_server_ends_when_the_reader_of_its_output_or_a_process_is_gone() {
    let desk = Desk::new();
    let seen = script(&desk, "bash", "alhena mock --quiet | head -n 1");
    assert!(seen.code() == Some(0) && seen.stdout.starts_with("http://127.0.0.1:"), "{seen}");
    assert_eq!(left(&desk), [0_u32; 0]);

    let mut sleep = std::process::Command::new("sleep").arg("300").spawn().unwrap();
    let mut mock = Mock::start(&desk, &["--json", "--pid", &sleep.id().to_string()]);
    assert_eq!(mock.json()["pid"], json!(mock.started.child.id()));
    sleep.kill().unwrap();
    sleep.wait().unwrap();
    assert_eq!(mock.started.finish(&desk, &["mock"], LIMIT).code(), Some(0));
    assert_eq!(homes(&desk), Vec::<PathBuf>::new());
}
