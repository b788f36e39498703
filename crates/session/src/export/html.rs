//! A session as one HTML file: no script, nothing loaded, readable in the dark.

use std::fmt::Write;

use alhena_model::Timestamp;
use alhena_model::message::{Content, ImageSource, Role};

use super::safe::{escape, markdown};
use super::{Card, Item, Page, about, items};

/// What a browser may do with the page, whatever the text in it says.
const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'";

/// Kinds of images that are pictures only; SVG can hold scripts.
const PICTURES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

const STYLE: &str = include_str!("style.css");

/// The page as HTML.
pub fn html(page: &Page<'_>) -> String {
    let mut out = String::new();
    let title = escape(&first_line(&page.title, 200));
    let _infallible = write!(
        out,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"referrer\" content=\"no-referrer\">\n\
         <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<header>\n<h1>{title}</h1>\n<dl>\n",
        escape(POLICY)
    );
    for (name, fact) in &page.facts {
        let _infallible = writeln!(out, "<div><dt>{}</dt><dd>{}</dd></div>", escape(name), escape(fact));
    }
    out.push_str("</dl>\n</header>\n<main>\n");
    conversation(page, &mut out);
    out.push_str("</main>\n</body>\n</html>\n");
    out
}

fn first_line(text: &str, length: usize) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(length).collect()
}

fn conversation(page: &Page<'_>, out: &mut String) {
    for message in page.messages {
        let (class, who) = match message.role {
            Role::User => ("user", "User"),
            Role::Assistant => ("model", "Gemini"),
        };
        let _infallible =
            write!(out, "<section class=\"{class}\" id=\"m-{}\">\n<h2>{who}", escape(&message.id));
        meta(message, out);
        out.push_str("</h2>\n");
        if let Content::Text(text) = &message.content
            && !text.trim().is_empty()
        {
            said(message.role, text, out);
        }
        for item in items(message) {
            match item {
                Item::Thought(text) => thought(text, out),
                Item::Call(card) => call(page, &card, out),
                Item::Image(source) => image(source, out),
                Item::Text(text) => said(message.role, text, out),
            }
        }
        out.push_str("</section>\n");
    }
}

fn meta(message: &alhena_model::Message<'_>, out: &mut String) {
    let mut chips = Vec::new();
    chips.extend(message.model.as_deref().map(str::to_owned));
    chips.extend(message.timestamp.map(|millis| Timestamp::from_millis(millis).to_string()));
    if let Some(usage) = &message.usage {
        let thoughts = usage.thought_tokens.filter(|count| *count > 0);
        let thoughts = thoughts.map(|count| format!(", {count} thoughts")).unwrap_or_default();
        chips.push(format!("{} in, {} out{thoughts}", usage.input_tokens, usage.output_tokens));
    }
    for chip in chips {
        let _infallible = write!(out, " <small>{}</small>", escape(&chip));
    }
}

fn said(role: Role, text: &str, out: &mut String) {
    let _infallible = match role {
        Role::User => writeln!(out, "<p class=\"said\">{}</p>", escape(text)),
        Role::Assistant => writeln!(out, "<div class=\"answer\">{}</div>", markdown(text)),
    };
}

fn thought(text: &str, out: &mut String) {
    let start = first_line(text, 100);
    let _infallible = writeln!(
        out,
        "<details class=\"thought\"><summary>{}</summary><div class=\"answer\">{}</div></details>",
        escape(&start),
        markdown(text)
    );
}

fn call(page: &Page<'_>, card: &Card<'_>, out: &mut String) {
    let trouble = card.trouble();
    let class = if trouble.is_some() { "tool trouble" } else { "tool" };
    let subject = about(card.input).map(|text| first_line(text, 160)).unwrap_or_default();
    let _infallible = write!(
        out,
        "<details class=\"{class}\"><summary><b>{}</b> <code>{}</code>",
        escape(card.name),
        escape(&subject)
    );
    if let Some(trouble) = trouble {
        let _infallible = write!(out, " <em>{}</em>", escape(&trouble));
    }
    out.push_str("</summary>\n");
    match card.diff() {
        Some(text) => diff(text, out),
        None => {
            if let Some(command) = card.input.get("command").and_then(|command| command.as_str()) {
                let _infallible = writeln!(out, "<pre class=\"command\">{}</pre>", escape(command));
            }
            for (name, value) in card.arguments() {
                let _infallible = writeln!(out, "<h3>{}</h3><pre>{}</pre>", escape(name), escape(&value));
            }
        }
    }
    if let Some(result) = card.printed() {
        let _infallible = writeln!(out, "<h3>Result</h3><pre class=\"result\">{}</pre>", escape(result));
    }
    if let Some(child) = page.child(card.id) {
        out.push_str("<div class=\"agent\">\n");
        conversation(child, out);
        out.push_str("</div>\n");
    }
    out.push_str("</details>\n");
}

fn diff(text: &str, out: &mut String) {
    out.push_str("<pre class=\"diff\">");
    for line in text.lines() {
        let class = match line.as_bytes().first() {
            _ if line.starts_with("+++") || line.starts_with("---") => "file",
            Some(b'+') => "added",
            Some(b'-') => "removed",
            Some(b'@') => "hunk",
            _ => "same",
        };
        let _infallible = writeln!(out, "<span class=\"{class}\">{}</span>", escape(line));
    }
    out.push_str("</pre>\n");
}

fn image(source: &ImageSource<'_>, out: &mut String) {
    let picture = match source {
        ImageSource::Base64 { media_type, data } => {
            let is_plain = data.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte));
            PICTURES.iter().find(|kind| is_plain && *kind == media_type).map(|kind| (kind, data))
        }
        ImageSource::Url { .. } => None,
    };
    let _infallible = match picture {
        Some((kind, data)) => writeln!(out, "<p><img alt=\"\" src=\"data:{kind};base64,{data}\"></p>"),
        None => writeln!(out, "<p class=\"missing\">an image that is not shown</p>"),
    };
}
