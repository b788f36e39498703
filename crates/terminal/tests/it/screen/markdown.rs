//! What of an answer can be read back from the screen: its normal form.
//!
//! The CLI renders Markdown, and rendering loses some of it. Two answers with the same normal form look the same on the
//! screen. The rules, as Gemini CLI 0.30 to 0.61 renders:
//!
//! - Code keeps every line, without its fences, and is set off by blank lines. One blank line at its end is lost.
//! - Headings lose their `#` (up to four), rules become `---`.
//! - List items keep marker and indentation; between marker and text stands one blank.
//! - Tables become `| a | b |` with the head set off by `| --- | --- |`, and are set off by blank lines.
//! - Inline marks go: bold, italic, struck, underlined, code. A link becomes `text (address)`.
//! - Runs of blank lines become one, blank lines at either end none. Blanks at the end of a line go.
//!
//! The layout for screen readers keeps less: no blank lines and no indentation of lists. It shows two blanks after the marker
//! of an item, and the numbers of lines of code cannot be told from numbers of the model's, so both stay.

/// The normal form of an answer.
pub fn normal_form(markdown: &str) -> String {
    let mut out = Lines::default();
    for block in blocks(markdown) {
        match block {
            Block::Blank => out.gap = true,
            Block::Line(line) => out.push(&line),
            Block::Code(lines) | Block::Table(lines) => {
                out.gap = true;
                for line in &lines {
                    out.push(line);
                    out.code = true;
                }
                (out.gap, out.code) = (true, false);
            }
        }
    }
    out.text
}

/// The normal form of an answer in the layout for screen readers: the lines of the screen, one below the other.
pub fn reader_form(markdown: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    for block in blocks(markdown) {
        match block {
            Block::Blank => {}
            Block::Line(line) => lines.push(two_blanks_after_marker(&line)),
            Block::Table(rows) => lines.extend(rows),
            Block::Code(code) => {
                lines.extend(
                    code.iter()
                        .enumerate()
                        .map(|(at, line)| format!("{} {line}", at + 1).trim_end().to_owned()),
                );
            }
        }
    }
    lines.join("\n")
}

fn two_blanks_after_marker(line: &str) -> String {
    match list_item(line) {
        Some((_, marker, text)) => format!("{marker}  {text}").trim_end().to_owned(),
        None => line.to_owned(),
    }
}

#[derive(Default)]
struct Lines {
    text: String,
    gap: bool,
    code: bool,
}

impl Lines {
    fn push(&mut self, line: &str) {
        if !self.text.is_empty() || self.code {
            self.text.push_str(if self.gap && !self.code { "\n\n" } else { "\n" });
        }
        self.gap = false;
        self.text.push_str(line);
    }
}

enum Block {
    Blank,
    Line(String),
    Code(Vec<String>),
    Table(Vec<String>),
}

fn blocks(markdown: &str) -> Vec<Block> {
    let lines: Vec<&str> = markdown.split('\n').collect();
    let mut blocks = Vec::new();
    let mut index = 0;
    while index < lines.len() {
        let line = lines[index];
        if let Some(fence) = fence(line) {
            let end = (index + 1..lines.len()).find(|at| closes(lines[*at], fence)).unwrap_or(lines.len());
            let mut code: Vec<String> =
                lines[index + 1..end].iter().map(|line| line.trim_end().to_owned()).collect();
            if code.len() > 1 && code.last().is_some_and(String::is_empty) {
                code.pop();
            }
            blocks.push(Block::Code(code));
            index = end + 1;
        } else if is_table_row(line) && lines.get(index + 1).is_some_and(|next| is_table_rule(next)) {
            let end = (index + 2..lines.len()).find(|at| !is_table_row(lines[*at])).unwrap_or(lines.len());
            blocks.push(Block::Table(table(&lines[index..end])));
            index = end;
        } else {
            blocks.push(if line.trim().is_empty() { Block::Blank } else { Block::Line(rendered_line(line)) });
            index += 1;
        }
    }
    blocks
}

fn fence(line: &str) -> Option<&str> {
    let text = line.trim_start_matches(' ');
    let mark = text.chars().next().filter(|mark| ['`', '~'].contains(mark))?;
    let length = text.chars().take_while(|next| *next == mark).count();
    let language = text[length..].trim_matches(' ');
    (length >= 3 && language.chars().all(|next| next.is_alphanumeric() || next == '_'))
        .then_some(&text[..length])
}

fn closes(line: &str, open: &str) -> bool {
    fence(line).is_some_and(|close| close.starts_with(&open[..1]) && close.len() >= open.len())
}

fn is_table_row(line: &str) -> bool {
    let text = line.trim();
    text.len() >= 3 && text.starts_with('|') && text.ends_with('|')
}

fn is_table_rule(line: &str) -> bool {
    let cells: Vec<&str> = line.trim().trim_matches('|').split('|').map(str::trim).collect();
    let rule = |cell: &&str| cell.contains('-') && cell.trim_matches(':').chars().all(|next| next == '-');
    cells.len() >= 2 && cells.iter().all(rule)
}

fn table(lines: &[&str]) -> Vec<String> {
    let cells = |line: &str| -> Vec<String> {
        let text = line.trim();
        text[1..text.len() - 1].split('|').map(|cell| inline(cell.trim())).collect()
    };
    let columns = cells(lines[0]).len();
    let row = |line: &str| -> String {
        let mut cells = cells(line);
        cells.resize(columns, String::new());
        let cells: Vec<String> = cells
            .iter()
            .map(|cell| if cell.is_empty() { " |".to_owned() } else { format!(" {cell} |") })
            .collect();
        format!("|{}", cells.concat())
    };
    let mut rows = vec![row(lines[0]), format!("|{}", " --- |".repeat(columns))];
    rows.extend(lines.iter().skip(2).map(|line| row(line)));
    rows
}

fn rendered_line(line: &str) -> String {
    if is_rule(line) {
        return "---".to_owned();
    }
    let text = line.trim_start_matches(' ');
    let level = text.chars().take_while(|next| *next == '#').count();
    if (1..=4).contains(&level) && text[level..].starts_with(' ') {
        return inline(text[level..].trim_start()).trim_end().to_owned();
    }
    match list_item(line) {
        Some((indent, marker, text)) => format!("{indent}{marker} {}", inline(text)).trim_end().to_owned(),
        None => inline(line).trim_end().to_owned(),
    }
}

fn is_rule(line: &str) -> bool {
    let marks: String = line.chars().filter(|next| *next != ' ').collect();
    marks.len() >= 3 && marks.chars().all(|next| ['-', '*', '_'].contains(&next))
}

/// The indentation, marker and text of a list item.
fn list_item(line: &str) -> Option<(&str, &str, &str)> {
    let text = line.trim_start_matches([' ', '\t']);
    let indent = &line[..line.len() - text.len()];
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let length = match text.chars().next()? {
        '-' | '*' | '+' => 1,
        _ if digits > 0 && text[digits..].starts_with('.') => digits + 1,
        _ => return None,
    };
    let rest = &text[length..];
    rest.starts_with(' ').then(|| (indent, &text[..length], rest.trim_start_matches(' ')))
}

/// Takes out inline marks by the CLI's own rules.
fn inline(text: &str) -> String {
    let mut out = String::new();
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        match span(rest) {
            Some(length) => {
                out.push_str(&styled(text, at, length));
                at += length;
            }
            None => {
                let next = rest.chars().next().unwrap();
                out.push(next);
                at += next.len_utf8();
            }
        }
    }
    out
}

/// How long the marked part is that begins here.
fn span(rest: &str) -> Option<usize> {
    let enclosed = |mark: &str| {
        rest.strip_prefix(mark).and_then(|inner| inner.find(mark)).map(|end| end + 2 * mark.len())
    };
    let link = || {
        let middle = rest.strip_prefix('[')?.find("](")?;
        let end = rest[middle + 3..].find(')')?;
        Some(middle + 3 + end + 1)
    };
    let code = || {
        let ticks = rest.bytes().take_while(|next| *next == b'`').count();
        let end = (ticks > 0).then(|| rest[ticks..].find('`'))??;
        let close = rest[ticks + end..].bytes().take_while(|next| *next == b'`').count();
        Some(ticks + end + close)
    };
    let underlined = || Some(rest.strip_prefix("<u>")?.find("</u>")? + 7);
    let address = || {
        (rest.starts_with("http://") || rest.starts_with("https://"))
            .then(|| rest.find(char::is_whitespace).unwrap_or(rest.len()))
    };
    enclosed("***")
        .or_else(|| enclosed("**"))
        .or_else(|| enclosed("*"))
        .or_else(|| enclosed("_"))
        .or_else(|| enclosed("~~"))
        .or_else(link)
        .or_else(code)
        .or_else(underlined)
        .or_else(address)
}

fn styled(text: &str, at: usize, length: usize) -> String {
    let whole = &text[at..at + length];
    let between = |mark: usize| inline(&whole[mark..whole.len() - mark]);
    let marked =
        |mark: &str| whole.starts_with(mark) && whole.ends_with(mark) && whole.len() > 2 * mark.len();
    if marked("***") {
        between(3)
    } else if marked("**") {
        between(2)
    } else if (marked("*") || marked("_")) && stands_alone(text, at, length) {
        between(1)
    } else if marked("~~") {
        between(2)
    } else if whole.starts_with('`') {
        let ticks = whole.bytes().take_while(|next| *next == b'`').count();
        if marked(&"`".repeat(ticks)) {
            whole[ticks..whole.len() - ticks].to_owned()
        } else {
            whole.to_owned()
        }
    } else if whole.starts_with('[') && whole.ends_with(')') {
        let (name, address) = whole[1..whole.len() - 1].split_once("](").unwrap();
        format!("{} ({address})", inline(name))
    } else if whole.starts_with("<u>") && whole.len() > 7 {
        inline(&whole[3..whole.len() - 4])
    } else {
        whole.to_owned()
    }
}

/// Whether a part in single marks is not inside a word or a path.
fn stands_alone(text: &str, at: usize, length: usize) -> bool {
    let word = |next: char| next.is_ascii_alphanumeric() || next == '_';
    let path = |next: char| ['.', '/', '\\'].contains(&next);
    let mut before = text[..at].chars().rev();
    let mut after = text[at + length..].chars();
    let (last, last_but_one) = (before.next(), before.next());
    let (first, second) = (after.next(), after.next());
    let inside_word = last.is_some_and(word) || first.is_some_and(word);
    let path_before = last.is_some_and(path) && last_but_one.is_some_and(|next| !next.is_whitespace());
    let path_after = first.is_some_and(path) && second.is_some_and(|next| !next.is_whitespace());
    !inside_word && !path_before && !path_after
}

#[test]
fn marks_are_taken_out_and_words_left_alone() {
    let cases = [
        ("some **bold** and *italic* and `code` and ~~gone~~", "some bold and italic and code and gone"),
        ("my_variable_name, a*b*c, src/*.rs and 5 * 3", "my_variable_name, a*b*c, src/*.rs and 5 * 3"),
        ("a [link](https://example.com/x) here", "a link (https://example.com/x) here"),
        ("# Title", "Title"),
        ("##### Five", "##### Five"),
        ("***", "---"),
        ("  -   item", "  - item"),
        ("a\n\n\n\nb", "a\n\nb"),
        ("x\n```\n  y\n\n```\nz", "x\n\n  y\n\nz"),
        ("|a|b|\n|-|-|\n|1||", "| a | b |\n| --- | --- |\n| 1 | |"),
    ];
    for (markdown, form) in cases {
        assert_eq!(normal_form(markdown), form, "{markdown:?}");
    }
}
