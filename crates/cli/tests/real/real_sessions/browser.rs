//! An exported page as a browser shows it: what is folded, what is coloured, and that nothing in it runs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use alhena_testbed::{run_bounded, tools};
use serde_json::{Value, json};

use crate::lab::ALHENA;

const LIMIT: Duration = Duration::from_secs(60);

fn recorded(path: &str) -> PathBuf {
    alhena_testbed::cache::workspace().join("crates/session/tests/data").join(path)
}

/// The page of a session file.
fn page(file: &Path) -> String {
    let mut alhena = Command::new(ALHENA);
    alhena.args(["sessions", "show", "--as", "html"]).arg(file);
    let done = run_bounded(&mut alhena, LIMIT).unwrap();
    assert!(done.succeeded(), "{}", done.stderr_text());
    done.stdout_text()
}

/// The document that a browser makes of a page, as HTML.
fn rendered(page: &str) -> String {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("page.html");
    fs::write(&path, page).unwrap();
    let mut browser = Command::new(tools::chromium().unwrap());
    browser
        .args(["--no-sandbox", "--disable-gpu", "--no-first-run", "--window-size=1000,800", "--dump-dom"])
        .arg(format!("--user-data-dir={}", dir.path().join("profile").display()))
        .arg(format!("file://{}", path.display()))
        .env("HOME", dir.path());
    let done = run_bounded(&mut browser, LIMIT).unwrap();
    assert!(done.succeeded(), "{} {}", done.ending(), done.stderr_text());
    done.stdout_text()
}

/// What a script of ours finds out about a page. The page itself forbids scripts; for ours that is lifted.
fn asked(page: &str, question: &str) -> Value {
    let policy = page.find("<meta http-equiv=\"Content-Security-Policy\"").unwrap();
    let end = policy + page[policy..].find('>').unwrap() + 1;
    let script =
        format!("<script>document.title = 'ANSWER' + JSON.stringify(({question})()) + 'END'</script></body>");
    let open = format!("{}{}", &page[..policy], &page[end..]).replace("</body>", &script);
    let seen = rendered(&open);
    let answer = seen.split("<title>ANSWER").nth(1).and_then(|rest| rest.split("END</title>").next());
    let answer = answer.unwrap_or_else(|| panic!("the script did not run: {seen}"));
    serde_json::from_str(&answer.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")).unwrap()
}

#[test]
fn a_browser_shows_folded_thoughts_and_tools_diffs_and_tokens() {
    let page = page(&recorded("0.61.0/tools/session-2026-11-15T20-30-bb938a8d.jsonl"));
    let question = "() => {
        const all = (what) => [...document.querySelectorAll(what)];
        const shown = (element) => element.checkVisibility();
        const colour = (what) => getComputedStyle(document.querySelector(what)).color;
        const folded = all('details.thought, details.tool');
        const inside = (details) => [...details.children].filter((child) => child.tagName !== 'SUMMARY');
        const before = folded.flatMap(inside).filter(shown).length;
        folded.forEach((details) => details.querySelector('summary').click());
        const after = folded.filter((details) => inside(details).some(shown)).length;
        return {
            sections: all('section').map((section) => section.className).join(' '),
            thoughts: all('details.thought > summary').map((summary) => summary.textContent),
            tools: all('details.tool > summary > b').map((name) => name.textContent),
            trouble: all('details.trouble > summary > em').map((word) => word.textContent),
            folded: [folded.length, before, after],
            added: all('.diff .added').map((line) => line.textContent),
            removed: all('.diff .removed').map((line) => line.textContent),
            colours: colour('.diff .added') !== colour('.diff .removed'),
            tokens: all('h2 small').map((chip) => chip.textContent).filter((chip) => chip.includes(' in, ')).length,
            wide: document.documentElement.scrollWidth <= window.innerWidth,
            answer: all('.answer').at(-1).textContent.trim(),
        };
    }";
    let seen = asked(&page, question);
    let expected = json!({
        "sections": "user model model model model model model model",
        "thoughts": [
            "Reading the code: I should look at main.py first.",
            "Writing: A new file is needed.",
            "Also editing: And the notes.",
            "Summing up: All done.",
        ],
        "tools": ["Read", "Write", "Edit", "Bash", "Bash", "Glob", "Glob", "Grep", "Edit", "no_such_tool", "Read", "TodoWrite", "WebSearch"],
        "trouble": ["exit 3", "failed", "failed", "failed"],
        "folded": [17, 0, 17],
        "added": ["+one", "+two", "+BETA"],
        "removed": ["-beta"],
        "colours": true,
        "tokens": 7,
        "wide": true,
        "answer": "Größe: 10 µm — all done. 🌍",
    });
    assert_eq!(seen, expected);
}

#[test]
fn nothing_that_was_said_runs_in_a_browser() {
    let evil = "</script></pre></details></style></title><script>document.body.id='ran'</script>\
        <img src=x onerror=\"document.body.id='ran'\"><svg onload=\"document.body.id='ran'\">\
        [click](javascript:document.body.id='ran') <a href=\"javascript:document.body.id='ran'\">x</a>\
        <iframe srcdoc=\"<script>parent.document.body.id='ran'</script>\"></iframe>";
    let escaped = serde_json::to_string(evil).unwrap();
    let text = fs::read_to_string(recorded("0.61.0/tools/session-2026-11-15T20-30-bb938a8d.jsonl")).unwrap();
    // Into the prompt, a thought, an answer, an argument, a result and a diff.
    let mut bad = text.clone();
    for said in [
        "Show me main.py, then improve the notes",
        "I should look at main.py first.",
        "Größe: 10 µm — all done. 🌍",
        "echo fine",
        "A web answer.",
        "+BETA",
    ] {
        assert!(text.contains(said), "{said}");
        bad = bad.replace(said, &format!("{said} {}", &escaped[1..escaped.len() - 1]));
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("session-2026-11-15T20-30-bb938a8d.jsonl");
    fs::write(&file, bad).unwrap();
    let page = page(&file);
    let seen = rendered(&page);
    assert!(seen.contains("<body>") && !seen.contains("id=\"ran\""), "{seen}");
    // Not even without the policy that forbids scripts: it is all text.
    let question = "() => ({
        ran: document.body.id,
        scripts: document.querySelectorAll('script').length,
        others: document.querySelectorAll('iframe, svg, object, embed, [onerror], [onload], img').length,
        links: [...document.querySelectorAll('a')].map((link) => link.getAttribute('href')).filter((to) => /script/i.test(to)),
        sections: document.querySelectorAll('main > section').length,
        text: document.body.textContent.split('<script>').length - 1,
    })";
    let found = asked(&page, question);
    let texts = found["text"].as_u64().unwrap();
    assert_eq!(
        found,
        json!({"ran": "", "scripts": 1, "others": 0, "links": [], "sections": 8, "text": texts})
    );
    assert!(texts >= 6, "{found}");
}
