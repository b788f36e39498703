//! Sessions and what was spent, as the page shows them.

use alhena_scripted::{After, Scenario, Turn, Usage};
use serde_json::{Value, json};

use super::place::{MODEL, Place};

fn says(text: &str) -> Scenario {
    let usage =
        Usage { prompt_token_count: Some(120_000), candidates_token_count: Some(3_000), ..Usage::default() };
    Scenario::new().turn(Turn::say(text).usage(usage)).after(After::Repeat)
}

#[test]
fn a_session_is_found_by_a_word_and_read_with_the_word_marked() {
    let mut place = Place::new("search", says("The größte heron stands in the reeds."));
    place.starts("Tell me of birds", "default");
    place.ends("success");
    place.go("#/sessions");
    place.sees(".rows a");
    place.browser.press(&["/"]).unwrap();
    place.browser.type_text("heron").unwrap();
    place.browser.press(&["Enter"]).unwrap();
    place.sees(".snippets mark");
    assert_eq!(place.texts(".snippets mark"), ["heron"]);
    assert_eq!(place.texts(".sessions .title"), ["Tell me of birds"]);
    place.browser.click(".sessions a").unwrap();
    place.sees(".view[data-view=session] .transcript mark");
    assert_eq!(place.texts(".transcript mark"), ["heron"]);
    place.sees("a[href*='export?as=markdown']");
    let exported = "fetch(document.querySelector(\"a[href*='export?as=markdown']\").href).then((answer) => answer.text())";
    let exported = place.asks(exported);
    assert!(exported.as_str().unwrap().contains("heron"), "{exported}");
    // The list is filtered by words and by folder.
    place.go("#/sessions");
    place.sees(".rows a");
    let filters = |words: &str| {
        format!(
            "(() => {{ const field = document.querySelector('[aria-label=\"Filter the list\"]'); field.value = {};
                field.dispatchEvent(new Event('input')); return document.querySelectorAll('.rows a').length; }})()",
            json!(words)
        )
    };
    assert_eq!(place.asks(&filters("BIRDS tell")), json!(1));
    assert_eq!(place.asks(&filters("birds fish")), json!(0));
    assert_eq!(place.texts(".empty"), ["No session fits that."]);
    assert_eq!(place.asks(&filters("")), json!(1));
    assert_eq!(place.asks("document.querySelectorAll('select[aria-label=Folder] option').length"), json!(2));
    // Nothing is found, and that is said.
    place.go("#/sessions?q=flamingo");
    place.waits("document.querySelector('.empty')?.textContent.includes('Nothing was found')");
    place.is_harmless();
}

#[test]
fn usage_is_drawn_and_told_with_the_right_figures() {
    let mut place = Place::new("usage", says("Fine."));
    for prompt in ["One", "Two"] {
        place.starts(prompt, "default");
        place.ends("success");
    }
    place.go("#/usage");
    place.sees("table[data-by=folder]");
    let told = place.asks("fetch('/v1/usage?by=day').then((answer) => answer.json())");
    let total = &told["total"];
    assert_eq!((total["prompt"].as_u64(), total["output"].as_u64()), (Some(240_000), Some(6_000)), "{told}");
    let cell =
        |by: &str, column: &str| format!("table[data-by={by}] tbody tr:first-child [data-column={column}]");
    for by in ["day", "model", "folder"] {
        assert_eq!(place.texts(&cell(by, "prompt")), ["240,000"], "{by}");
        assert_eq!(place.texts(&cell(by, "output")), ["6,000"], "{by}");
        assert_eq!(place.texts(&cell(by, "total")), [grouped(total["total"].as_u64().unwrap())], "{by}");
        // 240,000 at $0.30 and 6,000 at $2.50 a million.
        assert_eq!(place.texts(&cell(by, "cost")), ["$0.0870"], "{by}");
    }
    assert_eq!(place.texts("table[data-by=model] tbody th"), [MODEL]);
    assert_eq!(place.texts("[data-sum=tokens]"), [grouped(total["total"].as_u64().unwrap())]);
    // They can be taken elsewhere.
    place.asks("navigator.clipboard.writeText = async (text) => { window.copied = text; }");
    place.browser.click("details:has(table[data-by=model]) .tools button").unwrap();
    place.waits("window.copied");
    let copied = place.asks("window.copied");
    let lines: Vec<Vec<&str>> =
        copied.as_str().unwrap().lines().map(|line| line.split('\t').collect()).collect();
    assert_eq!(
        (lines[0][0], lines[1][0], lines[2][0], lines.len()),
        ("model", MODEL, "total", 3),
        "{copied}"
    );
    assert!(lines.iter().all(|line| line.len() == lines[0].len()), "{copied}");
    assert!(
        lines[1].contains(&"240000") && lines[1].contains(&"6000") && lines[1].contains(&"0.087"),
        "{copied}"
    );
    // The bar of the one day that has any is as high as the plot; its parts are as the figures are.
    let drawn: Value = place.asks(
        "(() => { const plot = document.querySelector('.plot svg'); const all = [...plot.querySelectorAll('.bar rect:not(.area)')];
            const height = (kind) => all.filter((rect) => rect.classList.contains(kind)).reduce((sum, rect) => sum + rect.height.baseVal.value, 0);
            return {bars: new Set(all.map((rect) => rect.parentNode)).size, whole: plot.querySelector('.area').height.baseVal.value,
                fresh: height('fresh'), output: height('output'), days: plot.querySelectorAll('.bar').length,
                named: [...plot.querySelectorAll('.bar title')].at(-1).textContent}; })()",
    );
    let figure = |name: &str| drawn[name].as_f64().unwrap();
    assert_eq!((drawn["bars"].as_u64(), drawn["days"].as_u64()), (Some(1), Some(30)), "{drawn}");
    assert!((figure("fresh") / figure("output") - 40.0).abs() < 0.5, "{drawn}");
    assert!((figure("fresh") + figure("output") - figure("whole")).abs() < 1.0, "{drawn}");
    assert!(drawn["named"].as_str().unwrap().contains(&grouped(total["total"].as_u64().unwrap())), "{drawn}");
    place.is_harmless();
}

/// 1234 as 1,234.
fn grouped(figure: u64) -> String {
    let digits = figure.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[test]
fn a_token_for_watching_shows_everything_and_offers_nothing_to_do() {
    let mut place = Place::new("watching", says("Fine."));
    place.starts("Hello", "default");
    place.ends("success");
    let address = place.served.for_watching.clone();
    place.browser.open(&address).unwrap();
    place.sees("html[data-access=read] #access");
    for view in ["#/now", "#/runs", "#/chats", "#/sessions", "#/usage", "#/doctor"] {
        place.go(view);
        place.waits("document.querySelector('main .rows a, main table, main .findings, main .empty')");
        let offered =
            place.asks("document.querySelectorAll('main [data-acts], a[href^=\"#/start\"]').length");
        assert_eq!(offered, json!(0), "{view}");
    }
    place.go("#/runs");
    place.browser.click(".rows a").unwrap();
    place.ends("success");
    assert_eq!(place.asks("Boolean(document.querySelector('#resume, #stop'))"), json!(false));
}
