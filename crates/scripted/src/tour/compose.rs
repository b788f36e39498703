//! Small texts on any topic: a haiku, a poem, a list, a program, a note.

use serde_json::json;

/// What kind of text is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Genre {
    Haiku,
    Poem,
    List,
    Program,
    Page,
    Data,
    Note,
}

impl Genre {
    /// What the file's ending and the words of the prompt (in lower case) ask for.
    pub(super) fn of(path: &str, prompt: &str) -> Genre {
        let ending = ending_of(path);
        let says = |words: &[&str]| words.iter().any(|word| prompt.contains(word));
        if program(&ending, "").is_some() {
            Genre::Program
        } else if matches!(ending.as_str(), "html" | "htm") {
            Genre::Page
        } else if data(&ending, "").is_some() {
            Genre::Data
        } else if says(&["haiku", "俳句", "хайку"]) {
            Genre::Haiku
        } else if says(&["poem", "gedicht", "poema", "poème", "poesia", "verse", "rhyme"]) {
            Genre::Poem
        } else if says(&["list", "liste", "lista", "todo", "steps", "ideas"]) {
            Genre::List
        } else {
            Genre::Note
        }
    }

    /// As in a sentence.
    pub(super) fn name(self) -> &'static str {
        match self {
            Genre::Haiku => "a haiku",
            Genre::Poem => "a poem",
            Genre::List => "a list",
            Genre::Program => "a small program",
            Genre::Page => "a small page",
            Genre::Data => "a few lines of data",
            Genre::Note => "a note",
        }
    }
}

/// The text for a file. The topic must be [`harmless`].
pub(super) fn content(path: &str, kind: Genre, topic: &str) -> String {
    let ending = ending_of(path);
    match kind {
        Genre::Haiku => haiku(topic),
        Genre::Poem => format!(
            "{}\n\nNobody asked {topic} to stay,\nyet here it is again today:\na little thing, a little light,\nand then the \
             page, and then the night.\n",
            capital(topic)
        ),
        Genre::List => {
            let bullet = if matches!(ending.as_str(), "md" | "markdown") { "- " } else { "* " };
            let lines = ["where it comes from", "what it is good for", "what it is like", "what to ask next"];
            let lines: String = lines.iter().map(|line| format!("{bullet}{line}\n")).collect();
            format!("{}\n\n{lines}", capital(topic))
        }
        Genre::Program => program(&ending, topic).unwrap_or_default(),
        Genre::Page => format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head><meta charset=\"utf-8\"><title>{topic}</title></head>\n<body>\n<h1>{}</h1>\n\
             <p>A page about {topic}, by the scripted offline model.</p>\n</body>\n</html>\n",
            capital(topic)
        ),
        Genre::Data => data(&ending, topic).unwrap_or_default(),
        Genre::Note => format!(
            "{}{}\n\nThis is a note about {topic}. It was written by the scripted offline model, which knows how to \
             write a file, but nothing about {topic}.\n",
            if matches!(ending.as_str(), "md" | "markdown") { "# " } else { "" },
            capital(topic)
        ),
    }
}

/// Whether a name ending so is surely the name of a file.
pub(super) fn is_known_ending(ending: &str) -> bool {
    const TEXTS: [&str; 14] = [
        "txt", "md", "markdown", "rst", "adoc", "html", "htm", "css", "log", "tex", "org", "text", "cfg",
        "svg",
    ];
    TEXTS.contains(&ending) || program(ending, "").is_some() || data(ending, "").is_some()
}

/// Only letters, digits and a few marks: what is left can stand in any program or page.
pub(super) fn harmless(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-')).take(40).collect()
}

fn ending_of(path: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.rsplit_once('.').map(|(_, ending)| ending.to_lowercase()).unwrap_or_default()
}

fn capital(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map(|first| first.to_uppercase().chain(characters).collect()).unwrap_or_default()
}

/// Three lines of five, seven and five syllables, where the topic is one of these.
fn haiku(topic: &str) -> String {
    const KNOWN: [(&[&str], &str); 11] = [
        (&["river", "stream"], "A river at dawn,\ncarrying the mountain's snow\nsoftly to the sea."),
        (
            &["sea", "ocean", "wave"],
            "Grey waves on the shore;\neach one brings the same old news\nand takes it away.",
        ),
        (&["mountain", "hill"], "Over the mountain\na single cloud forgets where\nit wanted to go."),
        (&["snow", "winter"], "First snow in the yard:\neven the old broken chair\nhas been made brand-new."),
        (
            &["spring", "blossom", "cherry"],
            "Blossoms on the road;\nthe postman walks around them\nas if they could hear.",
        ),
        (&["autumn", "leaf", "leaves"], "One leaf on the step.\nI open the door for it\nand let autumn in."),
        (&["rain", "storm"], "Rain on the tin roof:\nthe whole house is listening\nto a single drum."),
        (
            &["moon", "night", "star"],
            "The moon in the well;\nmy bucket breaks it apart\nand it mends itself.",
        ),
        (&["cat", "kitten"], "The cat in the sun\nhas found the one warm tile and\nwill not discuss it."),
        (&["tree", "forest", "wood"], "Deep in the forest\na fallen tree holds up the\nsmallest of gardens."),
        (
            &["code", "program", "rust", "compiler", "software", "bug"],
            "The compiler waits,\nreading every word I wrote\nas if I meant it.",
        ),
    ];
    let lower = topic.to_lowercase();
    let says = |word: &&str| lower.split(' ').any(|each| each.starts_with(word));
    match KNOWN.iter().find(|(words, _)| words.iter().any(says)) {
        Some((_, lines)) => format!("{lines}\n"),
        None => format!("{}, you say:\na word on an empty page\nwaiting for the wind.\n", capital(topic)),
    }
}

/// A program that greets, in the language of the ending.
fn program(ending: &str, topic: &str) -> Option<String> {
    let note = format!("A small program about {topic}, by the scripted offline model.");
    let hello = "Hello, world!";
    Some(match ending {
        "rs" => format!("//! {note}\n\nfn main() {{\n    println!(\"{hello}\");\n}}\n"),
        "py" => format!("# {note}\n\nprint(\"{hello}\")\n"),
        "js" | "mjs" | "cjs" | "ts" => format!("// {note}\n\nconsole.log(\"{hello}\");\n"),
        "go" => format!(
            "// {note}\npackage main\n\nimport \"fmt\"\n\nfunc main() {{\n\tfmt.Println(\"{hello}\")\n}}\n"
        ),
        "c" => format!(
            "/* {note} */\n#include <stdio.h>\n\nint main(void) {{\n    puts(\"{hello}\");\n    return 0;\n}}\n"
        ),
        "cpp" | "cc" | "cxx" => format!(
            "// {note}\n#include <iostream>\n\nint main() {{\n    std::cout << \"{hello}\" << std::endl;\n}}\n"
        ),
        "cs" => format!("// {note}\nSystem.Console.WriteLine(\"{hello}\");\n"),
        "java" => format!(
            "// {note}\nclass Hello {{\n    public static void main(String[] arguments) {{\n        \
             System.out.println(\"{hello}\");\n    }}\n}}\n"
        ),
        "kt" | "kts" => format!("// {note}\nfun main() {{\n    println(\"{hello}\")\n}}\n"),
        "swift" => format!("// {note}\nprint(\"{hello}\")\n"),
        "rb" => format!("# {note}\nputs \"{hello}\"\n"),
        "pl" => format!("# {note}\nprint \"{hello}\\n\";\n"),
        "php" => format!("<?php\n// {note}\necho \"{hello}\\n\";\n"),
        "lua" => format!("-- {note}\nprint(\"{hello}\")\n"),
        "hs" => format!("-- {note}\nmain :: IO ()\nmain = putStrLn \"{hello}\"\n"),
        "jl" => format!("# {note}\nprintln(\"{hello}\")\n"),
        "sh" | "bash" | "zsh" => format!("#!/bin/sh\n# {note}\necho \"{hello}\"\n"),
        "sql" => format!("-- {note}\nSELECT '{hello}';\n"),
        _ => return None,
    })
}

/// A few valid lines of a data format.
fn data(ending: &str, topic: &str) -> Option<String> {
    let by = "scripted offline model";
    Some(match ending {
        "json" => format!("{}\n", json!({"topic": topic, "by": by})),
        "yaml" | "yml" => format!("topic: \"{topic}\"\nby: {by}\n"),
        "toml" | "ini" => format!("topic = \"{topic}\"\nby = \"{by}\"\n"),
        "csv" => format!("topic,by\n{topic},{by}\n"),
        "tsv" => format!("topic\tby\n{topic}\t{by}\n"),
        "xml" => format!("<?xml version=\"1.0\"?>\n<note by=\"{by}\">{topic}</note>\n"),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::{Genre, content, harmless, program};

    #[test]
    fn data_is_valid_whatever_the_topic() {
        let topic = harmless("\"quotes\" \\ \n <tags> & ünï — #{x} `y` $(z)");
        let json: serde_json::Value = serde_json::from_str(&content("a.json", Genre::Data, &topic)).unwrap();
        assert_eq!(json["topic"], topic);
        assert!(topic.chars().all(|c| c.is_alphanumeric() || c == ' ' || c == '-'), "{topic}");
    }

    #[test]
    fn every_kind_gives_a_text_that_ends_with_a_newline() {
        let kinds = [
            ("a.txt", Genre::Haiku),
            ("a.txt", Genre::Poem),
            ("a.md", Genre::List),
            ("a.txt", Genre::Note),
            ("a.md", Genre::Note),
            ("a.html", Genre::Page),
            ("a.csv", Genre::Data),
            ("a.rs", Genre::Program),
        ];
        for (path, kind) in kinds {
            let text = content(path, kind, "mountain paths");
            assert!(text.ends_with('\n') && text.lines().count() >= 2, "{path} {kind:?}: {text}");
        }
    }

    #[test]
    fn every_language_greets() {
        let endings =
            "rs py js mjs cjs ts go c cpp cc cxx cs java kt kts swift rb pl php lua hs jl sh bash zsh sql";
        for ending in endings.split(' ') {
            assert!(program(ending, "x").unwrap().contains("Hello, world!"), "{ending}");
        }
    }
}
