//! Who gets in, and who does not.

use serde_json::json;

use super::{alhena, goes_on, says, serve};

#[test]
fn the_first_line_is_an_address_on_this_machine_with_a_token_that_is_in_a_private_file() {
    use std::os::unix::fs::PermissionsExt;
    let place = says("first-line", "hi");
    let served = serve(&place, &[]);
    assert!(served.line.starts_with("http://127.0.0.1:"), "{}", served.line);
    assert_eq!(served.token.len(), 64);
    let state = place.lab.home.path().join("alhena/state/serve");
    assert_eq!(std::fs::read_to_string(state.join("token")).unwrap().trim(), served.token);
    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(
        (mode(&state), mode(&state.join("token")), mode(&state.join("read-token"))),
        (0o700, 0o600, 0o600)
    );
    // Nobody else on the network can reach it.
    let port = served.host.rsplit(':').next().unwrap();
    let listening = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let wanted = format!(":{:04X} 00000000:0000 0A", port.parse::<u16>().unwrap());
    assert!(listening.lines().filter(|line| line.contains(&wanted)).all(|line| line.contains("0100007F:")));
}

#[test]
fn without_the_right_token_there_is_nothing_but_the_page() {
    let place = says("tokens", "hi");
    let served = serve(&place, &[]);
    let port = served.host.rsplit(':').next().unwrap();
    let (own, as_it_is) = (format!("alhena_{port}=x"), format!("alhena_{port}={}", served.token));
    for path in ["/v1/runs", "/v1/now", "/v1/me", "/v1/sessions", "/v1/nothing", "/v1", "/v1/now/events"] {
        for headers in [
            &[][..],
            &[("Authorization", "Bearer ")],
            &[("Authorization", "Bearer 0000000000000000000000000000000000000000000000000000000000000000")],
            &[("Authorization", "Basic dTpw")],
            &[("Authorization", served.token.as_str())],
            &[("Cookie", own.as_str())],
            &[("Cookie", as_it_is.as_str())],
            &[("Cookie", "token=x; other=y")],
        ] {
            let reply = served.bare("GET", path, headers, "");
            assert_eq!((reply.status, reply.kind().as_str()), (401, "unauthorized"), "{path} {headers:?}");
            assert!(reply.header("www-authenticate").is_some());
            assert!(!reply.body.contains(&served.token));
        }
    }
    // A token in the address of anything but the page is none: it would be in logs and histories.
    assert_eq!(served.bare("GET", &format!("/v1/runs?token={}", served.token), &[], "").status, 401);
    assert_eq!(served.bare("POST", "/v1/runs", &[], "{\"prompt\":\"x\"}").status, 401);
    assert_eq!(served.get("/v1/me")["access"], "full");
    assert_eq!(served.get("/v1/runs")["runs"], json!([]));
}

#[test]
fn the_first_click_gives_a_cookie_that_scripts_and_other_sites_do_not_get() {
    let place = says("click", "hi");
    let served = serve(&place, &[]);
    let click = served.bare("GET", &format!("/?token={}", served.token), &[("Sec-Fetch-Site", "none")], "");
    assert_eq!((click.status, click.header("location")), (303, Some("/")));
    let cookie = click.header("set-cookie").unwrap().to_owned();
    assert!(
        cookie.contains("; HttpOnly") && cookie.contains("; SameSite=Strict") && cookie.contains("; Path=/")
    );
    let cookie = cookie.split(';').next().unwrap();
    // Browsers show it to every port of this machine: it has a name of its own, and is worth nothing elsewhere.
    let (name, value) = cookie.split_once('=').unwrap();
    assert_eq!(name, format!("alhena_{}", served.host.rsplit(':').next().unwrap()));
    assert!(!click.header("set-cookie").unwrap().contains(&served.token));
    let bearer = format!("Bearer {value}");
    assert_eq!(served.bare("GET", "/v1/me", &[("Authorization", &bearer)], "").status, 401, "it is no token");
    let localhost = served.host.replace("127.0.0.1", "localhost");
    assert_eq!(served.bare("GET", "/v1/me", &[("Cookie", cookie), ("Host", &localhost)], "").status, 401);
    let with = |more: &[(&str, &str)]| {
        let headers: Vec<(&str, &str)> =
            [("Cookie", cookie)].into_iter().chain(more.iter().copied()).collect();
        served.bare("GET", "/v1/me", &headers, "").status
    };
    assert_eq!(with(&[]), 200);
    assert_eq!(with(&[("Sec-Fetch-Site", "same-origin")]), 200);
    // A page on another port of this machine is of the same site, and gets the cookie along.
    assert_eq!(with(&[("Sec-Fetch-Site", "same-site")]), 403);
    assert_eq!(with(&[("Sec-Fetch-Site", "cross-site")]), 403);
    let wrong = served.bare("GET", "/?token=0000", &[], "");
    assert_eq!((wrong.status, wrong.header("set-cookie")), (401, None));
}

#[test]
fn another_name_for_this_machine_is_refused_whatever_else_is_right() {
    let place = says("hosts", "hi");
    let served = serve(&place, &[]);
    let port = served.host.rsplit(':').next().unwrap().to_owned();
    let bearer = format!("Bearer {}", served.token);
    let status = |host: &str| served.ask_with("GET", "/v1/me", &[("Host", host)], "").status;
    assert_eq!((status(&served.host), status(&format!("localhost:{port}"))), (200, 200));
    for host in [
        format!("evil.example:{port}"),
        "evil.example".to_owned(),
        format!("127.0.0.1.evil.example:{port}"),
        "127.0.0.1".to_owned(),
        "localhost:1".to_owned(),
        format!("0.0.0.0:{port}"),
        String::new(),
    ] {
        assert_eq!(status(&host), 403, "{host:?}");
    }
    // What is no name with a port is none, and what is no address at all does not come so far.
    for odd in
        ["[[127.0.0.1:P", "[127.0.0.1]:P", "127.0.0.1]:P", "127.0.0.1.:P", "localhost.:P", "x@127.0.0.1:P"]
            .into_iter()
            .chain(["127.0.0.1:80:P", "127.0.0.1:+P", "127.0.0.1:P]"])
    {
        assert!(matches!(status(&odd.replace('P', &port)), 400 | 403), "{odd}");
    }
    // The page too: nothing of ours runs under another name.
    assert_eq!(served.bare("GET", "/", &[("Host", "evil.example")], "").status, 403);
    let none =
        served.raw(&format!("GET /v1/me HTTP/1.1\r\nConnection: close\r\nAuthorization: {bearer}\r\n\r\n"));
    assert!(matches!(none.status, 400 | 403), "{none:?}");
    let two = format!(
        "GET /v1/me HTTP/1.1\r\nHost: {}\r\nHost: evil.example\r\nConnection: close\r\nAuthorization: {bearer}\r\n\r\n",
        served.host
    );
    assert!(matches!(served.raw(&two).status, 400 | 403));
    // Nor does one count that the address of the request contradicts.
    for (address, host) in [("evil.example", served.host.as_str()), (&served.host, "evil.example")] {
        let text = format!(
            "GET http://{address}/v1/me HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nAuthorization: {bearer}\r\n\r\n"
        );
        assert_eq!(served.raw(&text).status, 403, "{address} {host}");
    }
}

#[test]
fn pages_from_elsewhere_are_refused_unless_they_are_listed() {
    let place = says("origins", "hi");
    let served = serve(&place, &["--allow-origin", "http://friend.example:3000"]);
    let ours = format!("http://{}", served.host);
    let ask = |origin: &str| served.ask_with("GET", "/v1/me", &[("Origin", origin)], "");
    assert_eq!(ask(&ours).status, 200);
    for origin in [
        "http://evil.example",
        "null",
        "http://127.0.0.1:1",
        &ours.replace("http:", "https:"),
        "http://friend.example",
    ] {
        let reply = ask(origin);
        assert_eq!((reply.status, reply.kind().as_str()), (403, "forbidden"), "{origin}");
        assert_eq!(reply.header("access-control-allow-origin"), None);
    }
    for twice in [[ours.as_str(), "http://evil.example"], ["http://evil.example", &ours]] {
        let headers = twice.map(|origin| ("Origin", origin));
        assert_eq!(served.ask_with("GET", "/v1/me", &headers, "").status, 403, "{twice:?}");
    }
    let friend = ask("http://friend.example:3000");
    assert_eq!(friend.status, 200);
    assert_eq!(friend.header("access-control-allow-origin"), Some("http://friend.example:3000"));
    assert_eq!(friend.header("access-control-allow-credentials"), None);
    let preflight = [("Origin", "http://friend.example:3000"), ("Access-Control-Request-Method", "POST")];
    assert_eq!(served.bare("OPTIONS", "/v1/runs", &preflight, "").status, 204);
    assert_eq!(served.bare("OPTIONS", "/v1/runs", &[("Origin", "http://evil.example")], "").status, 403);
    // Its cookie is not enough for a page from elsewhere, listed or not.
    let click = served.bare("GET", &format!("/?token={}", served.token), &[], "");
    let cookie = click.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    let listed = [("Origin", "http://friend.example:3000"), ("Cookie", cookie.as_str())];
    assert_eq!(served.bare("GET", "/v1/me", &listed, "").status, 403);
}

#[test]
fn a_token_for_watching_sees_everything_and_changes_nothing() {
    let place = says("watching", "hi");
    let served = serve(&place, &[]);
    let token = alhena(&place, &["serve", "token", "--read"]).stdout_text().trim().to_owned();
    assert_ne!(token, served.token);
    let bearer = format!("Bearer {token}");
    let ask =
        |method: &str, path: &str, body: &str| served.bare(method, path, &[("Authorization", &bearer)], body);
    assert_eq!(ask("GET", "/v1/me", "").json()["access"], "read");
    assert_eq!(ask("GET", "/v1/runs", "").status, 200);
    let document = served.bare("GET", "/openapi.json", &[], "").json();
    let mut changing = 0;
    for (path, operations) in document["paths"].as_object().unwrap() {
        let path: String = path
            .split('/')
            .map(|part| if part.starts_with('{') { "x" } else { part })
            .collect::<Vec<_>>()
            .join("/");
        for method in operations.as_object().unwrap().keys().filter(|method| *method != "get") {
            let reply = ask(&method.to_uppercase(), &path, "{\"prompt\": \"x\"}");
            assert_eq!((reply.status, reply.kind().as_str()), (403, "forbidden"), "{method} {path}");
            changing += 1;
        }
    }
    assert!(changing > 10, "{changing}");
    for method in ["PUT", "OPTIONS", "TRACE", "get", "ANYTHING"] {
        assert_eq!(ask(method, "/v1/runs", "").status, 403, "{method}");
    }
    assert_eq!(served.get("/v1/runs")["runs"], json!([]));
}

#[test]
fn a_new_token_counts_at_once_and_the_old_one_not_any_more() {
    let place = goes_on("renewed");
    let served = serve(&place, &[]);
    let mut listening = served.follow("/v1/now/events", &[]);
    assert!(listening.next().is_some());
    let new = alhena(&place, &["serve", "token", "--new"]).stdout_text().trim().to_owned();
    assert_eq!(served.ask("GET", "/v1/me", "").status, 401);
    let bearer = format!("Bearer {new}");
    assert_eq!(served.bare("GET", "/v1/me", &[("Authorization", &bearer)], "").status, 200);
    // Whoever listened with the old one hears nothing of what comes now.
    let headers = [("Authorization", bearer.as_str())];
    let begun = served.bare("POST", "/v1/runs", &headers, r#"{"prompt": "secret from now on"}"#);
    assert_eq!(begun.status, 201, "{}", begun.body);
    let heard: Vec<_> = listening.collect();
    assert!(!format!("{heard:?}").contains("secret"), "{heard:?}");
}

#[test]
fn every_answer_forbids_what_a_page_of_ours_does_not_need() {
    let place = says("headers", "hi");
    let served = serve(&place, &[]);
    for path in ["/", "/v1/me", "/v1/nothing", "/page/nothing.js", "/nothing"] {
        let reply = served.ask("GET", path, "");
        let policy = reply.header("content-security-policy").unwrap_or_else(|| panic!("{path}"));
        assert!(policy.starts_with("default-src 'none'; script-src 'self'; style-src 'self';"), "{policy}");
        assert!(policy.contains("frame-ancestors 'none'") && !policy.contains("unsafe"), "{policy}");
        assert_eq!(reply.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(reply.header("referrer-policy"), Some("no-referrer"));
        assert_eq!(reply.header("access-control-allow-origin"), None);
    }
}

#[test]
fn paths_lead_to_nothing_but_what_there_is() {
    let place = says("paths", "hi");
    let served = serve(&place, &[]);
    for path in [
        "/page/../Cargo.toml",
        "/page/..%2f..%2fCargo.toml",
        "/page/%2e%2e/Cargo.toml",
        "/page//etc/passwd",
        "/page/%00",
        "/page/",
        "/v1/runs/..",
        "/v1/runs/..%2f..%2ftoken",
        "/v1/runs/../../token/events",
        "/v1/runs/%2e%2e%2ftoken/events",
        "/v1/runs/%ff",
        "/v1/conversations/..%2f..",
        "/v1/sessions/..%2f..%2fetc%2fpasswd",
        "/v1/sessions/%2fetc%2fpasswd",
        "/v1/sessions/.%2fx.jsonl/export",
        "/v1/terminals/..%2f..",
        "/v1/batches/..%2f..",
        "//v1/runs",
        "/v1/runs/",
        "/V1/runs",
        "/%761/runs",
        "/v1%2fruns",
        "/v1/./runs",
        "/x/../v1/runs",
        "/v1/runs/%C3%A9%E2%80%AE",
        "/v1/runs/%F0%9F%92%A9/events",
        "/etc/passwd",
    ] {
        let reply = served.ask("GET", path, "");
        assert!(matches!(reply.status, 400 | 404 | 503), "{path}: {} {}", reply.status, reply.body);
        assert!(
            !reply.body.contains("root:") && !reply.body.contains(&served.token),
            "{path}: {}",
            reply.body
        );
    }
}

#[test]
fn with_a_certificate_it_speaks_tls_and_the_cookie_says_so() {
    let place = says("tls", "hi");
    let tls = alhena_testbed::tls::TlsFront::authority();
    let dir = tls.parent().unwrap();
    let (cert, key) = (dir.join("server.pem"), dir.join("server.key"));
    let served = serve(&place, &["--tls-cert", cert.to_str().unwrap(), "--tls-key", key.to_str().unwrap()]);
    assert!(served.line.starts_with("https://127.0.0.1:"), "{}", served.line);
    let program = r#"
import http.client, ssl, sys
port, token, authority = sys.argv[1:]
trusted = ssl.create_default_context(cafile=authority)
def ask(path, headers={}):
    connection = http.client.HTTPSConnection("localhost", int(port), context=trusted, timeout=60)
    connection.request("GET", path, headers=headers)
    return connection.getresponse()
print(ask("/v1/me").status, ask("/v1/me", {"Authorization": f"Bearer {token}"}).status)
print(ask(f"/?token={token}").getheader("Set-Cookie"))
"#;
    let port = served.host.rsplit(':').next().unwrap();
    let mut python = std::process::Command::new("python3");
    python.args(["-c", program, port, &served.token]).arg(&tls);
    let said = alhena_testbed::run_bounded(&mut python, std::time::Duration::from_secs(60)).unwrap();
    let said = format!("{}{}", said.stdout_text(), said.stderr_text());
    assert!(said.starts_with("401 200\n") && said.contains("; Secure"), "{said}");
    // Whoever does not speak it gets nothing.
    let mut stream = served.connect();
    std::io::Write::write_all(&mut stream, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    let _reset = std::io::Read::read_to_end(&mut stream, &mut answer);
    assert!(!answer.starts_with(b"HTTP"), "{}", String::from_utf8_lossy(&answer));
}

#[test]
fn an_address_that_others_reach_is_said_to_be_one() {
    let place = says("listen", "hi");
    let mut command = std::process::Command::new(crate::lab::ALHENA);
    command.args(["serve", "--port", "0", "--listen", "0.0.0.0"]).env_clear().envs(place.lab.env.iter());
    let mut child =
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap();
    let mut said = std::io::BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    std::io::BufRead::read_line(&mut said, &mut line).unwrap();
    alhena_testbed::processes::signal(child.id(), rustix::process::Signal::TERM);
    child.wait().unwrap();
    for word in ["warning", "other machines", "run agents as you", "unencrypted", "--root", "yolo"] {
        assert!(line.contains(word), "{word} in {line}");
    }
}

#[test]
fn the_address_of_a_server_that_listens_everywhere_is_one_that_works() {
    let place = says("everywhere", "hi");
    let served = serve(&place, &["--listen", "0.0.0.0", "--quiet"]);
    assert!(served.line.starts_with("http://127.0.0.1:"), "{}", served.line);
    assert_eq!(served.get("/v1/me")["access"], "full");
}

#[test]
fn what_could_never_match_is_refused_at_the_start() {
    let place = says("start", "hi");
    let file = place.lab.home.path().join("a-file");
    std::fs::write(&file, "").unwrap();
    for (args, word) in [
        (["--root", file.to_str().unwrap()], "not a directory"),
        (["--root", "/no/such/folder"], "/no/such/folder"),
        (["--allow-origin", "*"], "not an origin"),
        (["--allow-origin", "http://a.example/page"], "not an origin"),
        (["--allow-env", "A=B"], "not the name of a variable"),
    ] {
        let refused = alhena(&place, &[&["serve", "--port", "0"], &args[..]].concat());
        let said = refused.stderr_text();
        assert!(said.contains(word) && said.contains("hint: "), "{args:?}: {said}");
        assert!(refused.stdout.is_empty(), "{args:?}");
        assert_eq!(refused.status.code(), Some(2), "{args:?}");
    }
}

#[test]
fn what_is_not_there_is_said_and_is_no_error_of_the_server() {
    let place = says("not-there", "hi");
    let served = serve(&place, &["--tmux", "/nope/tmux"]);
    for path in ["/v1/sessions/latest", "/v1/sessions/latest/export"] {
        let reply = served.ask("GET", path, "");
        assert_eq!((reply.status, reply.kind().as_str()), (404, "not_found"), "{path}: {}", reply.body);
    }
    for path in ["/v1/terminals", "/v1/terminals/one"] {
        let reply = served.ask("GET", path, "");
        assert_eq!((reply.status, reply.kind().as_str()), (503, "no_tmux"), "{}", reply.body);
        assert!(reply.json()["hint"].as_str().unwrap().contains("another tmux"), "{}", reply.body);
    }
    // Everything else is told, and that this is not.
    let now = served.get("/v1/now");
    assert_eq!((&now["items"], now["unseen"].as_array().unwrap().len()), (&json!([]), 1));
    let unseen = &now["unseen"][0];
    assert_eq!(
        (unseen["kind"].as_str(), unseen["problem"]["kind"].as_str()),
        (Some("terminal"), Some("no_tmux"))
    );
    let doctor = served.get("/v1/doctor");
    let finding = doctor.as_array().unwrap().iter().find(|finding| finding["what"] == "tmux").unwrap();
    assert_eq!(finding["state"], "doubtful", "{finding}");
    assert!(finding["detail"].as_str().unwrap().contains("/nope/tmux"), "{finding}");
}
