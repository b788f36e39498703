//! Gemini CLI's own stream in Go: the eight types that OpenASE's document names (C-14), made from the wire types.

use alhena_wire::schema::Field;
use alhena_wire::stream::{
    ErrorEvent, ErrorInfo, Init, Message, ModelStats, ResultEvent, StreamStats, ToolResult, ToolUse,
};

use super::{GENERATED, exported, line};

/// An event: the value of its `type`, its name in Go, when it comes, and its fields.
const EVENTS: &[(&str, &str, &str, &[Field])] = &[
    ("init", "InitEvent", "once, before anything else", Init::FIELDS),
    (
        "message",
        "MessageEvent",
        "the prompt once, then one for each chunk of the model's text",
        Message::FIELDS,
    ),
    ("tool_use", "ToolUseEvent", "while the model streams, before the tool runs", ToolUse::FIELDS),
    (
        "tool_result",
        "ToolResultEvent",
        "after all tools of the turn have run, not in the order of the calls",
        ToolResult::FIELDS,
    ),
    ("error", "ErrorEvent", "a warning or an error; it ends nothing", ErrorEvent::FIELDS),
    (
        "result",
        "ResultEvent",
        "the last event, at most once; absent when the CLI was stopped or failed before it began",
        ResultEvent::FIELDS,
    ),
];

/// What events hold.
const PARTS: &[(&str, &str, &[Field])] = &[
    ("Error", "the error of a tool_result or a result", ErrorInfo::FIELDS),
    ("StreamStats", "the stats of a result", StreamStats::FIELDS),
    ("ModelStats", "the stats of one model", ModelStats::FIELDS),
];

/// The file with all of them.
pub fn go_protocol(package: &str) -> String {
    let mut out = String::new();
    line(&mut out, GENERATED);
    line(&mut out, &format!("package {package}\n\nimport \"encoding/json\"\n"));
    for (tag, name, when, fields) in EVENTS {
        line(&mut out, &format!("// GeminiCLI{name} is `{tag}`: {when}."));
        line(&mut out, &format!("type GeminiCLI{name} struct {{\n\tGeminiCLIEventHead"));
        // The head has it.
        structure(&mut out, fields.iter().filter(|field| field.name != "timestamp"), Gap::Before);
    }
    for (name, what, fields) in PARTS {
        line(&mut out, &format!("// GeminiCLI{name} is {what}."));
        line(&mut out, &format!("type GeminiCLI{name} struct {{"));
        structure(&mut out, fields.iter(), Gap::Between);
    }
    line(&mut out, "// emptyEvent is an event of this type, or nil when there is no such type.");
    line(&mut out, "func emptyEvent(kind string) GeminiCLIEvent {\n\tswitch kind {");
    for (tag, name, ..) in EVENTS {
        line(&mut out, &format!("\tcase {tag:?}:\n\t\treturn &GeminiCLI{name}{{}}"));
    }
    line(&mut out, "\t}\n\treturn nil\n}");
    out
}

/// Where the empty lines of a struct are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Gap {
    Before,
    Between,
}

fn structure<'a>(out: &mut String, fields: impl Iterator<Item = &'a Field>, gap: Gap) {
    for (index, field) in fields.enumerate() {
        if index > 0 || gap == Gap::Before {
            out.push('\n');
        }
        for text in field.doc.lines() {
            line(out, &format!("\t//{text}"));
        }
        let (kind, omit) = go_type(field.rust);
        line(out, &format!("\t{} {kind} `json:\"{}{omit}\"`", exported(field.name), field.name));
    }
    line(out, "}\n");
}

/// The type in Go of a type in Rust, and what its tag ends with.
fn go_type(rust: &str) -> (String, &'static str) {
    let plain: String = rust.chars().filter(|letter| !letter.is_whitespace()).collect();
    let plain = plain.replace("<'a>", "").replace("'a,", "");
    let (inner, optional) = match within(&plain, "Option") {
        Some(inner) => (inner, true),
        None => (plain.as_str(), false),
    };
    let inner = within(inner, "Box").unwrap_or(inner);
    let go = match (within(inner, "Named"), inner) {
        (Some(item), _) => return (format!("map[string]GeminiCLI{item}"), ",omitempty"),
        (None, "Raw") => return ("json.RawMessage".to_owned(), ""),
        // Words from an open set stay words.
        (None, "Cow<str>" | "Role" | "Status" | "Severity") => "string".to_owned(),
        (None, "bool") => "bool".to_owned(),
        (None, "ErrorInfo") => "GeminiCLIError".to_owned(),
        (None, name) => format!("GeminiCLI{name}"),
    };
    if optional { (format!("*{go}"), ",omitempty") } else { (go, "") }
}

/// `T` of `Name<T>`.
fn within<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.strip_prefix(name)?.strip_prefix('<')?.strip_suffix('>')
}

#[cfg(test)]
mod tests {
    use super::go_type;

    #[test]
    fn types_of_the_wire_have_one_form_in_go() {
        for (rust, go, omit) in [
            ("Cow<'a, str>", "string", ""),
            ("Option < Cow < 'a, str > >", "*string", ",omitempty"),
            ("Option<Box<ErrorInfo<'a>>>", "*GeminiCLIError", ",omitempty"),
            ("Option<Named<'a, ModelStats>>", "map[string]GeminiCLIModelStats", ",omitempty"),
            ("Option<Count>", "*GeminiCLICount", ",omitempty"),
            ("Raw<'a>", "json.RawMessage", ""),
            ("Status<'a>", "string", ""),
        ] {
            assert_eq!(go_type(rust), (go.to_owned(), omit), "{rust}");
        }
    }
}
