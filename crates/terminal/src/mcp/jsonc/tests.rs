use proptest::prelude::*;
use serde_json::{Map, json};

use super::*;

fn document(text: &str) -> Document {
    Document::new(text.to_owned()).unwrap()
}

fn with(text: &str, name: &str, value: &Value) -> String {
    let mut document = document(text);
    document.set("mcpServers", name, value).unwrap();
    document.text().to_owned()
}

const SETTINGS: &str = r#"// mine
{
  "ui": {"theme": "x"}, // a theme
  "mcpServers": {
    /* the good one */
    "old": {
      "command": "old" // keep
    } // end of old
  }
}
"#;

#[test]
fn a_server_is_put_in_and_taken_out_and_all_else_stays() {
    let put = with(SETTINGS, "new", &json!({"command": "c", "args": ["a=b=", ""]}));
    let expected = r#"// mine
{
  "ui": {"theme": "x"}, // a theme
  "mcpServers": {
    /* the good one */
    "new": {
      "command": "c",
      "args": [
        "a=b=",
        ""
      ]
    },
    "old": {
      "command": "old" // keep
    } // end of old
  }
}
"#;
    assert_eq!(put, expected);
    let mut document = document(&put);
    document.remove("mcpServers", "new").unwrap();
    assert_eq!(document.text(), SETTINGS);
}

#[test]
fn every_place_of_a_member_can_be_taken_out() {
    let cases = [
        (r#"{"m": {"x": 1}}"#, r#"{"m": {}}"#),
        (r#"{"m": {"x": 1, "a": 2}}"#, r#"{"m": {"a": 2}}"#),
        (r#"{"m": {"a": 2, "x": 1}}"#, r#"{"m": {"a": 2}}"#),
        ("{\"m\": {\n  \"a\": 2, // two\n  \"x\": 1\n}}", "{\"m\": {\n  \"a\": 2 // two\n}}"),
        (
            "{\"m\": {\n  \"a\": 2,\n  \"x\": [1, {}],\n  \"b\": 3\n}}",
            "{\"m\": {\n  \"a\": 2,\n  \"b\": 3\n}}",
        ),
        ("{\"m\": {\"x\": 1, /* of b */ \"b\": 3}}", "{\"m\": { /* of b */ \"b\": 3}}"),
        ("{\"m\": {\n  // none\n  \"x\": \"}\\\"\"\n}}", "{\"m\": {\n  // none\n  \n}}"),
        (r#"{"m": {"a": 1}}"#, r#"{"m": {"a": 1}}"#),
        (r#"{"m": 5}"#, r#"{"m": 5}"#),
    ];
    for (text, expected) in cases {
        let mut document = document(text);
        document.remove("m", "x").unwrap();
        assert_eq!(document.text(), expected, "{text}");
    }
}

#[test]
fn files_in_one_line_stay_in_one_line_and_other_line_ends_are_kept() {
    let value = json!({"command": "c", "args": []});
    assert_eq!(with("{}", "n", &value), r#"{"mcpServers": {"n": {"command":"c","args":[]}}}"#);
    assert_eq!(
        with("{\r\n\t\"a\": 1\r\n}", "n", &json!({"command": "c"})),
        "{\r\n\t\"mcpServers\": {\r\n\t\t\"n\": {\r\n\t\t  \"command\": \"c\"\r\n\t\t}\r\n\t},\r\n\t\"a\": 1\r\n}"
    );
    assert_eq!(
        with("{\n}\n", "n", &json!({"command": "c"})),
        "{\n  \"mcpServers\": {\n    \"n\": {\n      \"command\": \"c\"\n    }\n  }\n}\n"
    );
}

#[test]
fn what_cannot_be_edited_is_refused() {
    for text in ["", "[]", "{,}", "{\"a\": 1,}", "{\"a\": }", "\u{feff}{}", "{} x"] {
        assert!(matches!(Document::new(text.to_owned()), Err(NotEdited::Text(_))), "{text}");
    }
    let mut document = document(r#"{"mcpServers": []}"#);
    let refused = document.set("mcpServers", "n", &json!({}));
    assert!(matches!(refused, Err(NotEdited::NotAnObject(key)) if key == "mcpServers"));
    assert_eq!(document.text(), r#"{"mcpServers": []}"#);
}

struct Writer {
    seed: u64,
    text: String,
    comments: Vec<String>,
}

impl Writer {
    fn pick(&mut self, limit: u64) -> u64 {
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.seed >> 33) % limit
    }

    fn gap(&mut self) {
        let number = self.comments.len();
        match self.pick(9) {
            0 => self.text.push('\n'),
            1 => self.text.push_str("\r\n\t"),
            2 => self.text.push_str("  "),
            3 => self.comment(format!("/* \"{{,{number}}} */")),
            4 => {
                self.comment(format!("// ]{number}\","));
                self.text.push('\n');
            }
            5 => self.text.push_str("\n    "),
            _ => {}
        }
    }

    fn comment(&mut self, comment: String) {
        self.text.push_str(&comment);
        self.comments.push(comment);
    }

    fn write(&mut self, value: &Value) {
        match value {
            Value::Object(members) => {
                self.text.push('{');
                self.gap();
                for (at, (name, value)) in members.iter().enumerate() {
                    if at > 0 {
                        self.text.push(',');
                        self.gap();
                    }
                    self.text.push_str(&quoted(name));
                    self.gap();
                    self.text.push(':');
                    self.gap();
                    self.write(value);
                    self.gap();
                }
                self.text.push('}');
            }
            Value::Array(items) => {
                self.text.push('[');
                for (at, item) in items.iter().enumerate() {
                    if at > 0 {
                        self.text.push(',');
                    }
                    self.gap();
                    self.write(item);
                }
                self.gap();
                self.text.push(']');
            }
            other => self.text.push_str(&other.to_string()),
        }
    }
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        "[ -~]{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-c\"\\\\/{}, ]{0,3}", inner, 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn any_settings() -> impl Strategy<Value = Map<String, Value>> {
    let servers = prop::option::of(prop::collection::btree_map("[abc]", any_value(), 0..4));
    let rest = prop::collection::btree_map("[a-z/\"]{1,3}", any_value(), 0..4);
    (servers, rest, any::<bool>()).prop_map(|(servers, rest, first)| {
        let servers = servers.map(|servers| ("mcpServers".to_owned(), servers.into_iter().collect()));
        let mut all: Vec<(String, Value)> = rest.into_iter().collect();
        if let Some(servers) = servers {
            all.insert(if first { 0 } else { all.len() }, servers);
        }
        all.into_iter().collect()
    })
}

proptest! {
    #[test]
    fn putting_in_and_taking_out_gives_the_same_bytes(
        settings in any_settings(), name in "[abc]", value in any_value(), seed in any::<u64>(),
    ) {
        let mut writer = Writer { seed, text: String::new(), comments: Vec::new() };
        writer.gap();
        writer.write(&Value::Object(settings.clone()));
        writer.gap();
        let (text, comments) = (writer.text, writer.comments);

        let mut document = document(&text);
        let before = document.entry("mcpServers", &name).map(str::to_owned);
        let had_key = document.has("mcpServers");
        document.set("mcpServers", &name, &value).unwrap();

        let mut expected = settings;
        let servers = expected.entry("mcpServers").or_insert_with(|| json!({}));
        servers.as_object_mut().unwrap().insert(name.clone(), value);
        prop_assert_eq!(parse(document.text()).unwrap(), Value::Object(expected));
        let replaced = before.clone().unwrap_or_default();
        for comment in comments.iter().filter(|comment| !replaced.contains(comment.as_str())) {
            prop_assert!(document.text().contains(comment));
        }

        match before {
            Some(before) => document.set_text("mcpServers", &name, &before).unwrap(),
            None => document.remove("mcpServers", &name).unwrap(),
        }
        if !had_key {
            document.remove_if_empty("mcpServers").unwrap();
        }
        prop_assert_eq!(document.text(), text);
    }

    #[test]
    fn any_text_is_survived(text in "[{}\\[\\]\":,/*\\\\a1 \n]{0,40}", name in "[a1]") {
        if let Ok(mut document) = Document::new(text) {
            let _ = document.set("a", &name, &json!({"k": [1]}));
            let _ = document.remove("a", &name);
            let _ = document.remove_if_empty("a");
        }
    }
}
