//! Foreign text made harmless.

use std::fmt::Write;

use alhena_wire::display::{is_unsafe, is_unsafe_in_text};
use pulldown_cmark::{CowStr, Event, LinkType, Options, Parser, Tag, TagEnd, html};

/// Text as HTML text, without characters that are unsafe to show.
pub(super) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 8);
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            other if is_unsafe_in_text(other) => {}
            other => out.push(other),
        }
    }
    out
}

fn options() -> Options {
    Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS
}

/// Markdown as HTML in which nothing is left of HTML that stood in it. Links lead only to the web; images become links.
pub(super) fn markdown(text: &str) -> String {
    let clean: String = text.chars().filter(|c| !is_unsafe_in_text(*c)).collect();
    let events = Parser::new_ext(&clean, options()).map(|event| match event {
        Event::Html(raw) | Event::InlineHtml(raw) => Event::Text(raw),
        Event::Start(Tag::HtmlBlock) => Event::Start(Tag::Paragraph),
        Event::End(TagEnd::HtmlBlock) => Event::End(TagEnd::Paragraph),
        Event::Start(Tag::Link { dest_url, title, id, .. }) => Event::Start(link(dest_url, title, id)),
        Event::Start(Tag::Image { dest_url, title, id, .. }) => Event::Start(link(dest_url, title, id)),
        Event::End(TagEnd::Image) => Event::End(TagEnd::Link),
        other => other,
    });
    let mut out = String::with_capacity(clean.len() * 2);
    html::push_html(&mut out, events);
    out
}

fn link<'a>(address: CowStr<'a>, title: CowStr<'a>, id: CowStr<'a>) -> Tag<'a> {
    let start = address.trim_start().to_ascii_lowercase();
    let to_the_web = ["https://", "http://", "mailto:"].iter().any(|scheme| start.starts_with(scheme));
    let dest_url = if to_the_web { address } else { CowStr::Borrowed("#") };
    Tag::Link { link_type: LinkType::Inline, dest_url, title, id }
}

/// Markdown as Markdown in which HTML is only text.
pub(super) fn without_html(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut done = 0;
    for (event, range) in Parser::new_ext(text, options()).into_offset_iter() {
        if matches!(event, Event::Html(_) | Event::InlineHtml(_)) && range.start >= done {
            out.push_str(text.get(done..range.start).unwrap_or(""));
            out.push_str(&text.get(range.clone()).unwrap_or("").replace('<', "&lt;"));
            done = range.end;
        }
    }
    out.push_str(text.get(done..).unwrap_or(""));
    out
}

/// Text as a block of code that nothing in it can end.
pub(super) fn fenced(text: &str, language: &str) -> String {
    let mut longest = 0;
    let mut run = 0;
    for character in text.chars() {
        run = if character == '`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    let fence = "`".repeat(longest.max(2) + 1);
    let end = if text.ends_with('\n') { "" } else { "\n" };
    let mut out = String::new();
    let _infallible = write!(out, "{fence}{language}\n{text}{end}{fence}\n");
    out
}

/// One line of text inside Markdown.
pub(super) fn inline(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut out = String::with_capacity(line.len());
    for character in line.chars() {
        match character {
            '<' => out.push_str("&lt;"),
            '&' => out.push_str("&amp;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '#' | '|' | '~' | '!' => {
                out.push('\\');
                out.push(character);
            }
            other if is_unsafe(other) => {}
            other => out.push(other),
        }
    }
    out
}
