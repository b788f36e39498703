use std::collections::BTreeMap;

use alhena_model::FailureKind;

use super::*;
use crate::result::Spent;

fn entry(
    status: Status,
    kind: Option<FailureKind>,
    tokens: u64,
    cost: Option<f64>,
    duration_ms: u64,
) -> Entry {
    Entry::for_tests(status, kind, Spent::of(tokens, cost), duration_ms)
}

fn shown(summary: &Summary, results: &[(&str, &Entry)]) -> String {
    let about = About { jobs: "jobs.jsonl", results: "/r/results.jsonl" };
    page(summary, results, &about, Timestamp::from_millis(0))
}

/// Every element is closed, in its order; nothing is there that runs or loads.
fn is_sound(page: &str) {
    let mut open: Vec<&str> = Vec::new();
    for part in page.split('<').skip(1) {
        let tag = part.split('>').next().unwrap();
        let name = tag.split([' ', '\n', '/']).find(|word| !word.is_empty()).unwrap();
        if tag.starts_with('/') {
            assert_eq!(open.pop(), Some(name), "{tag}");
        } else if !tag.ends_with('/') && !["!doctype", "meta"].contains(&name) {
            open.push(name);
        }
        assert!(!["script", "iframe", "object", "img", "link", "a"].contains(&name), "{tag}");
        assert!(!tag.contains("http://") && !tag.contains("https://") && !tag.contains(" on"), "{tag}");
    }
    assert_eq!(open, Vec::<&str>::new());
}

#[test]
fn a_page_says_what_was_and_shows_it() {
    let good = entry(Status::Success, None, 1500, Some(0.02), 1234);
    let bad = entry(Status::Failed, Some(FailureKind::RateLimited), 0, None, 61_000);
    let odd = entry(Status::Timeout, Some(FailureKind::Timeout), 10, None, 5);
    let results = [("a", &good), ("b", &bad), ("c", &odd)];
    let summary = Summary {
        jobs: 3,
        succeeded: 1,
        failed: 2,
        by_kind: BTreeMap::from([("rate_limited".to_owned(), 1), ("timeout".to_owned(), 1)]),
        p50_ms: Some(1234),
        p95_ms: Some(61_000),
        spent: Spent { tokens: 1510, cost_usd: 0.02, unpriced: true },
        ..Summary::default()
    };
    let page = shown(&summary, &results);
    is_sound(&page);
    for part in [
        "every job has a result, and not every one succeeded",
        "<dd>1,510</dd>",
        "$0.02, or more: not every model has a price",
        "p95 1 min 1 s",
        "rate_limited: 1",
        "1 without a known price are left out",
        "<td>b</td><td>rate_limited</td>",
        "How long jobs took",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert_eq!(page.matches("<svg").count(), 4);
}

#[test]
fn hostile_names_stay_text() {
    let evil =
        "</title></style><script>alert(1)</script><img src=x onerror=alert(1)> \" ' & \u{202e}\u{1b}[31m";
    let bad = entry(Status::Failed, Some(FailureKind::Api), 1, None, 1);
    let summary = Summary { jobs: 1, stopped: Some(evil.to_owned()), ..Summary::default() };
    let about = About { jobs: evil, results: evil };
    let page = page(&summary, &[(evil, &bad)], &about, Timestamp::from_millis(0));
    is_sound(&page);
    assert!(!page.contains(['\u{202e}', '\u{1b}']) && page.contains("&lt;script&gt;"));
}

#[test]
fn an_empty_or_interrupted_batch_is_told_as_it_is() {
    let none = shown(
        &Summary { jobs: 5, left: 5, stopped: Some("stopped on request".into()), ..Summary::default() },
        &[],
    );
    is_sound(&none);
    assert!(none.contains("No job has a result yet") && none.contains("stopped: stopped on request"));
    assert!(!none.contains("<svg") && !none.contains("every job succeeded"));
    let good = entry(Status::Success, None, 0, None, 0);
    let some = shown(&Summary { jobs: 2, left: 1, succeeded: 1, ..Summary::default() }, &[("a", &good)]);
    is_sound(&some);
    assert!(some.contains("not every job has a result"));
}
