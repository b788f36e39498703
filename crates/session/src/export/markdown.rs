//! A session as Markdown. Thoughts and tools are folded away in `<details>`, as code hosts show them.

use std::fmt::Write;

use alhena_model::Timestamp;
use alhena_model::message::{Content, ImageSource, Role};

use super::safe::{escape, fenced, inline, without_html};
use super::{Card, Item, Page, about, items};

/// The page as Markdown.
pub fn markdown(page: &Page<'_>) -> String {
    let mut out = String::new();
    let _infallible = writeln!(out, "# {}\n", inline(&page.title));
    for (name, fact) in &page.facts {
        let _infallible = writeln!(out, "- {name}: {}", inline(fact));
    }
    conversation(page, 2, &mut out);
    out
}

fn conversation(page: &Page<'_>, level: usize, out: &mut String) {
    let heading = "#".repeat(level.min(6));
    for message in page.messages {
        let who = match (message.role, &message.model) {
            (Role::User, _) => "User".to_owned(),
            (Role::Assistant, Some(model)) => format!("Gemini ({})", inline(model)),
            (Role::Assistant, None) => "Gemini".to_owned(),
        };
        let _infallible = writeln!(out, "\n{heading} {who}\n");
        if let Content::Text(text) = &message.content
            && !text.trim().is_empty()
        {
            said(message.role, text, out);
        }
        for item in items(message) {
            match item {
                Item::Thought(text) => details("Thought", &without_html(text), out),
                Item::Call(card) => call(page, &card, level, out),
                Item::Image(source) => image(source, out),
                Item::Text(text) => said(message.role, text, out),
            }
        }
        let time = message.timestamp.map(|millis| Timestamp::from_millis(millis).to_string());
        let tokens = message.usage.map(|usage| format!("{} tokens", usage.total_tokens));
        let facts: Vec<String> = [time, tokens].into_iter().flatten().collect();
        if !facts.is_empty() {
            let _infallible = writeln!(out, "<sub>{}</sub>", facts.join(" · "));
        }
    }
}

fn said(role: Role, text: &str, out: &mut String) {
    let text = without_html(text);
    match role {
        Role::Assistant => {
            let _infallible = writeln!(out, "{}\n", text.trim_end());
        }
        Role::User => {
            for line in text.trim_end().lines() {
                let _infallible = writeln!(out, "> {line}");
            }
            out.push('\n');
        }
    }
}

fn details(summary: &str, body: &str, out: &mut String) {
    let _infallible =
        writeln!(out, "<details><summary>{summary}</summary>\n\n{}\n\n</details>\n", body.trim_end());
}

fn call(page: &Page<'_>, card: &Card<'_>, level: usize, out: &mut String) {
    let subject = about(card.input).map(|text| text.split_whitespace().collect::<Vec<_>>().join(" "));
    let subject: String = subject.unwrap_or_default().chars().take(120).collect();
    let trouble = card.trouble().map(|trouble| format!(" — {trouble}")).unwrap_or_default();
    let summary = format!("<b>{}</b> {}{}", escape(card.name), escape(&subject), escape(&trouble));
    let mut body = String::new();
    match card.diff() {
        Some(diff) => body.push_str(&fenced(diff, "diff")),
        None => {
            for (name, value) in card.arguments() {
                let _infallible = writeln!(body, "{}:\n\n{}", inline(name), fenced(&value, ""));
            }
            if let Some(command) = card.input.get("command").and_then(|command| command.as_str()) {
                body.push_str(&fenced(command, "sh"));
            }
        }
    }
    if let Some(result) = card.printed() {
        let _infallible = write!(body, "\n{}", fenced(result, ""));
    }
    if let Some(child) = page.child(card.id) {
        conversation(child, level + 1, &mut body);
    }
    details(&summary, &body, out);
}

fn image(source: &ImageSource<'_>, out: &mut String) {
    let said = match source {
        ImageSource::Base64 { media_type, data } => {
            format!("image ({media_type}, {} bytes)", data.len() / 4 * 3)
        }
        ImageSource::Url { url } => format!("image at {url}"),
    };
    let _infallible = writeln!(out, "*{}*\n", inline(&said));
}
