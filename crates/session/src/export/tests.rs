use super::*;
use alhena_model::Include;
use alhena_model::message::messages;
use alhena_wire::session::Log;
use serde_json::json;

fn log(records: &[Value]) -> Log<'static> {
    let mut log = Log::new();
    for record in records {
        log.push_copy(record.to_string().as_bytes());
    }
    log
}

fn page<'a>(messages: &'a [Message<'a>]) -> Page<'a> {
    Page {
        title: "A <b>title</b>".into(),
        facts: vec![("Session", "s<1>".into())],
        messages,
        children: Vec::new(),
    }
}

const EVIL: &str = "<script>alert(1)</script> <img src=x onerror=alert(2)> \u{1b}[31m \u{202e}";

fn evil() -> Log<'static> {
    log(&[
        json!({"id": "u\"><script>", "timestamp": "2026-11-15T20:28:29.224Z", "type": "user", "content": EVIL}),
        json!({"id": "g", "timestamp": "t", "type": "gemini", "model": EVIL,
               "content": format!("{EVIL}\n\n<div onclick=x>\n\n[link](javascript:alert(3)) ![pic](https://evil/x.png) `<i>`"),
               "thoughts": [{"subject": EVIL, "description": "</details><script>"}],
               "toolCalls": [{"id": "c", "name": EVIL, "args": {"command": EVIL, EVIL: EVIL}, "status": "error",
                 "result": [{"functionResponse": {"id": "c", "response": {"error": format!("```\n{EVIL}\n````")}}},
                            {"inlineData": {"mimeType": "image/svg+xml", "data": "PHN2Zz4="}},
                            {"inlineData": {"mimeType": "image/png", "data": "AA\"onload=\"x"}},
                            {"inlineData": {"mimeType": "image/png", "data": "AAAA"}}],
                 "resultDisplay": {"fileDiff": format!("--- a\n+++ b\n@@ -1 +1 @@\n-old\n+{EVIL}\n")}}]}),
    ])
}

#[test]
fn nothing_foreign_is_markup_in_html() {
    let log = evil();
    let messages = messages(&log, Include::Said);
    let made = html(&page(&messages));
    for bad in [
        "<script",
        "<img src=x",
        "onerror=alert(2)>",
        "<div onclick",
        "href=\"javascript",
        "\u{1b}",
        "\u{202e}",
        "svg+xml",
        "onload=\"x",
    ] {
        assert!(!made.contains(bad), "{bad} in\n{made}");
    }
    assert!(made.contains("&lt;script&gt;alert(1)&lt;/script&gt;"));
    assert!(made.contains("src=\"data:image/png;base64,AAAA\""));
    assert!(made.contains("default-src &#39;none&#39;"));
    assert_eq!(made.matches("<img ").count(), 1);
    assert!(made.contains("<code>&lt;i&gt;</code>"));
}

#[test]
fn nothing_foreign_is_html_in_markdown() {
    let log = evil();
    let messages = messages(&log, Include::Said);
    let made = markdown(&page(&messages));
    let rendered = {
        let mut html = Vec::new();
        for event in pulldown_cmark::Parser::new(&made) {
            if let pulldown_cmark::Event::Html(raw) | pulldown_cmark::Event::InlineHtml(raw) = event {
                html.push(raw.to_string());
            }
        }
        html.concat()
    };
    for bad in ["<script", "<img", "<div", "<i>"] {
        assert!(!rendered.contains(bad), "{bad} in\n{rendered}");
    }
    assert!(rendered.contains("<details>"));
}

#[test]
fn an_answer_reads_like_markdown_and_a_diff_like_a_diff() {
    let log = log(&[
        json!({"id": "u", "timestamp": "2026-11-15T20:28:29.224Z", "type": "user", "content": "Hi\n\nthere"}),
        json!({"id": "g", "timestamp": "2026-11-15T20:28:30.000Z", "type": "gemini", "model": "gemini-2.5-flash",
               "tokens": {"input": 100, "output": 7, "thoughts": 13, "cached": 0, "total": 120},
               "content": "# Done\n\n- one\n- **two**\n\n| a | b |\n|---|---|\n| 1 | 2 |\n",
               "thoughts": [{"subject": "Plan", "description": "Look first."}],
               "toolCalls": [{"id": "c", "name": "replace", "status": "success",
                 "args": {"file_path": "a.txt", "old_string": "x", "new_string": "y"},
                 "result": [{"functionResponse": {"id": "c", "response": {"output": "Edited"}}}],
                 "resultDisplay": {"fileDiff": "--- a.txt\n+++ a.txt\n@@ -1 +1 @@\n-x\n+y\n"}}]}),
    ]);
    let messages = messages(&log, Include::Said);
    let page = page(&messages);
    let made = html(&page);
    for good in [
        "<h1>Done</h1>",
        "<li><strong>two</strong></li>",
        "<td>1</td>",
        "<summary>Plan: Look first.</summary>",
        "<b>Edit</b> <code>a.txt</code>",
        "<span class=\"removed\">-x</span>\n<span class=\"added\">+y</span>",
        "<small>100 in, 7 out, 13 thoughts</small>",
        "<p class=\"said\">Hi\n\nthere</p>",
    ] {
        assert!(made.contains(good), "{good} in\n{made}");
    }
    let text = markdown(&page);
    assert_eq!(
        text,
        "# A &lt;b>title&lt;/b>\n\n- Session: s&lt;1>\n\n## User\n\n> Hi\n> \n> there\n\n\
         <sub>2026-11-15T20:28:29.224Z</sub>\n\n## Gemini (gemini-2.5-flash)\n\n\
         <details><summary>Thought</summary>\n\nPlan: Look first.\n\n</details>\n\n\
         # Done\n\n- one\n- **two**\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n\
         <details><summary><b>Edit</b> a.txt</summary>\n\n```diff\n--- a.txt\n+++ a.txt\n@@ -1 +1 @@\n-x\n+y\n```\n\n```\nEdited\n```\n\n</details>\n\n\
         <sub>2026-11-15T20:28:30.000Z · 120 tokens</sub>\n"
    );
}

#[test]
fn a_sub_agents_talk_stands_inside_its_call() {
    let parent = log(&[json!({"id": "g", "type": "gemini", "content": "", "toolCalls": [
        {"id": "c", "name": "invoke_agent", "args": {"agent_name": "generalist", "prompt": "Find main"}, "status": "success",
         "result": [{"functionResponse": {"id": "c", "response": {"output": "Found"}}}]}]})]);
    let child = log(&[json!({"id": "k", "type": "gemini", "content": "I looked."})]);
    let (outer, inner) = (messages(&parent, Include::Said), messages(&child, Include::Said));
    let mut page = page(&outer);
    page.children.push(("c".into(), self::page(&inner)));
    let made = html(&page);
    let inside = made.split("<div class=\"agent\">").nth(1).unwrap();
    assert!(inside.contains("I looked."));
    assert!(markdown(&page).contains("### Gemini\n\nI looked."));
}

#[test]
fn a_fence_is_longer_than_any_in_the_text() {
    assert_eq!(safe::fenced("a\n````\nb", "x"), "`````x\na\n````\nb\n`````\n");
    assert_eq!(safe::inline("# *a*\n<b>\u{7} & `c`"), "\\# \\*a\\* &lt;b> &amp; \\`c\\`");
}

#[test]
fn what_a_command_printed_is_shown_without_its_wrapping() {
    for (result, expected) in [
        (
            "<untrusted_context>\nOutput: out\nerr\nExit Code: 3\nProcess Group PGID: 104\n</untrusted_context>",
            "out\nerr",
        ),
        ("Output: fine\nProcess Group PGID: 10479", "fine"),
        ("Output: (empty)\nExit Code: 1\nSignal: 9\nBackground PIDs: 1\nProcess Group PGID: 4", "(empty)"),
        ("Command was cancelled", "Command was cancelled"),
        ("Output: Exit Code: 3", ""),
        ("", ""),
    ] {
        assert_eq!(shell_output(result), expected, "{result}");
    }
}
