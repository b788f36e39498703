//! Servers that do not let everybody in, and what goes wrong at their doors.

use alhena_testbed::HeldPort;
use alhena_testbed::nats::{NatsServer, kept};
use alhena_testbed::tls::TlsFront;

use super::jobs;
use crate::fleet::{Fleet, LONG};

#[test]
fn a_password_in_the_environment_opens_the_door_and_is_said_nowhere() {
    let server = NatsServer::with(&["--user", "me", "--pass", "hunter2"]).unwrap();
    let variables = [("NATS_USER", "me"), ("NATS_PASSWORD", "hunter2")];
    let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let fleet = Fleet::new("password", vec![server]).env(variables);
    fleet.write("jobs.jsonl", &jobs(2));
    let worker = fleet.worker("w1", &[]);
    let ended = fleet.submit(&[]).finish(LONG);
    assert_eq!((ended.code(), fleet.results().len()), (Some(0), 2), "{ended:?}");
    let worker = worker.leave();
    for said in [&ended.stderr, &ended.stdout, &worker.stderr, &worker.stdout] {
        assert!(!said.contains("hunter2"), "{said}");
    }
}

#[test]
fn a_password_in_the_address_is_said_nowhere_whether_it_is_right_or_wrong() {
    let server = NatsServer::with(&["--user", "me", "--pass", "hunter2"]).unwrap();
    let fleet = Fleet::new("in the address", vec![server]);
    for (password, code) in [("hunter2", 0), ("wrong-one", 2)] {
        let url = fleet.urls().replace("nats://", &format!("nats://me:{password}@"));
        let ended = fleet.run(&["batch", "status", "--nats", &url]);
        assert_eq!(ended.code(), Some(code), "{ended:?}");
        assert!(!format!("{ended:?}").contains(password), "{ended:?}");
    }
}

/// Whoever has what the server asks for is let in, by options and by the environment; whoever has not is told what is missing, and
/// nothing secret is said.
fn lets_in(name: &str, server: NatsServer, options: &[&str], variables: &[(&str, &str)], secret: &str) {
    let fleet = Fleet::new(name, vec![server]);
    fleet.write("jobs.jsonl", &jobs(2));
    let worker = fleet.worker("w1", options);
    let ended = fleet.submit(options).finish(LONG);
    assert_eq!((ended.code(), fleet.results().len()), (Some(0), 2), "{ended:?}");
    let worker = worker.leave();
    for said in [&ended.stderr, &ended.stdout, &worker.stderr, &worker.stdout] {
        assert!(!said.contains(secret), "{said}");
    }
    let urls = fleet.urls();
    let trusted = if urls.starts_with("tls") { vec!["--nats-ca", options[1]] } else { Vec::new() };
    let mut status = vec!["batch", "status", "--nats", &urls];
    status.extend(&trusted);
    let strange = fleet.run(&status);
    assert_eq!(strange.code(), Some(2), "{strange:?}");
    assert!(strange.stderr.contains("hint: "), "{strange:?}");
    let known = fleet.env(variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
    let ended = known.run(&status);
    assert_eq!(ended.code(), Some(0), "{ended:?}");
    assert!(ended.stdout.contains("2 jobs, 2 results"), "{ended:?}");
    known.nothing_is_left();
}

#[test]
fn a_file_of_credentials_opens_the_door() {
    let file = kept("nats/user.creds");
    let text = std::fs::read_to_string(&file).unwrap();
    let seed = text.lines().find(|line| line.starts_with("SU")).unwrap().to_owned();
    let server = NatsServer::configured("accounts.conf").unwrap();
    lets_in("credentials", server, &["--nats-creds", &file], &[("NATS_CREDS", &file)], &seed);
}

#[test]
fn a_key_opens_the_door() {
    let file = kept("nats/user.nk");
    let seed = std::fs::read_to_string(&file).unwrap().trim().to_owned();
    let server = NatsServer::configured("nkey.conf").unwrap();
    lets_in("nkey", server, &["--nats-nkey", &file], &[("NATS_NKEY", &file)], &seed);
}

#[test]
fn a_certificate_of_ones_own_opens_the_door() {
    let authority = TlsFront::authority().display().to_string();
    let (certificate, key) = (kept("tls/client.pem"), kept("tls/client.key"));
    let server = NatsServer::with_certificates_of_clients().unwrap();
    let options = ["--nats-ca", &authority, "--nats-cert", &certificate, "--nats-key", &key];
    lets_in(
        "certificate",
        server,
        &options,
        &[("NATS_CERT", &certificate), ("NATS_KEY", &key)],
        "PRIVATE KEY",
    );
}

#[test]
fn credentials_that_are_none_are_told_by_their_file_and_not_by_what_is_in_it() {
    let fleet = Fleet::new("broken credentials", vec![NatsServer::configured("accounts.conf").unwrap()]);
    fleet.write("broken", "-----BEGIN NATS USER JWT-----\nhunter2\n");
    let urls = fleet.urls();
    for option in ["--nats-creds", "--nats-nkey"] {
        let ended = fleet.run(&["batch", "status", "--nats", &urls, option, "broken"]);
        assert_eq!(ended.code(), Some(2), "{option}: {ended:?}");
        assert!(!ended.stderr.contains("hunter2") && ended.stderr.contains("broken"), "{option}: {ended:?}");
        assert!(ended.stderr.contains("hint: Give the file as it was handed out: NATS_CREDS"), "{ended:?}");
    }
    let ended =
        fleet.run(&["batch", "status", "--nats", &urls, "--nats-cert", "broken", "--nats-key", "broken"]);
    assert_eq!(ended.code(), Some(2), "{ended:?}");
}

#[test]
fn what_is_wrong_at_the_door_is_told_with_a_hint() {
    let fleet = Fleet::new("wrong", Vec::new());
    let port = HeldPort::new().unwrap();
    let nobody = format!("nats://127.0.0.1:{}", port.number);
    let gemini = fleet.gemini.display().to_string();
    let worker = |more: &[&str]| {
        let mut args = vec!["worker", "--gemini", &gemini];
        args.extend(more);
        fleet.run(&args)
    };
    let ended = worker(&["--nats", &nobody]);
    assert_eq!(ended.code(), Some(2));
    assert!(ended.stderr.starts_with("error: no connection to NATS at nats://127.0.0.1:"), "{ended:?}");
    assert!(ended.stderr.contains("hint: Start it with `nats-server -js`"), "{ended:?}");
    let ended = worker(&[]);
    assert_eq!((ended.code(), ended.stderr.contains("NATS_URL")), (Some(2), true), "{ended:?}");
    let ended = worker(&["--nats", &nobody, "--nats-creds", "/proc/nowhere/creds"]);
    assert_eq!((ended.code(), ended.stderr.contains("/proc/nowhere/creds")), (Some(2), true), "{ended:?}");
    let ended = worker(&["--nats", &nobody, "--root", "/proc/nowhere"]);
    assert_eq!((ended.code(), ended.stderr.contains("--root")), (Some(2), true), "{ended:?}");
    let ended = worker(&["--nats", &nobody, "--label", "a b"]);
    assert_eq!((ended.code(), ended.stderr.contains("label")), (Some(2), true), "{ended:?}");
    for command in ["status", "cancel", "results", "forget"] {
        let ended = fleet.run(&["batch", command, "a.b", "--nats", &nobody]);
        let hinted = ended.stderr.contains("hint: `alhena batch status` lists them.");
        assert_eq!((ended.code(), hinted), (Some(2), true), "{ended:?}");
    }
    let ended = fleet.run(&["batch", "cancel", "--nats", &nobody]);
    assert_eq!(ended.code(), Some(2), "{ended:?}");
}

#[test]
fn a_server_that_cannot_be_used_is_told_by_its_reason_and_no_results_file_is_left() {
    let locked = NatsServer::with(&["--user", "me", "--pass", "hunter2"]).unwrap();
    let forgetful = NatsServer::with(&["-js=false"]).unwrap();
    let port = HeldPort::new().unwrap();
    let nobody = format!("nats://127.0.0.1:{}", port.number);
    let fleet = Fleet::new("no use", Vec::new());
    fleet.write("jobs.jsonl", &jobs(1));
    for (url, hint) in [
        (nobody, "hint: Start it with `nats-server -js`, or look whether the address is right."),
        (
            locked.url(),
            "hint: Give credentials that it knows: NATS_CREDS, NATS_NKEY, NATS_USER with NATS_PASSWORD",
        ),
        (locked.url().replace("nats://", "nats://me:wrong@"), "hint: Give credentials that it knows"),
        (forgetful.url(), "hint: Start the server with JetStream"),
    ] {
        let ended = fleet.run(&["batch", "jobs.jsonl", "--into", "results.jsonl", "--nats", &url]);
        assert_eq!(ended.code(), Some(2), "{ended:?}");
        assert!(ended.stderr.contains(hint), "{ended:?}");
        assert!(!fleet.path("here/results.jsonl").exists(), "{ended:?}");
    }
}
