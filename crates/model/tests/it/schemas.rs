//! What is a schema, what fits it, and what a model can do to both.

use alhena_model::answer::Schema;
use serde_json::{Map, Value, json};

fn schema(schema: Value) -> Schema {
    Schema::new(&schema).unwrap()
}

#[test]
fn what_is_no_schema_is_refused_with_a_reason() {
    for (given, reason) in [
        (json!(7), "an object"),
        (json!([]), "an object"),
        (json!({"type": "strong"}), "strong"),
        (json!({"properties": []}), "/properties"),
        (json!({"required": "n"}), "/required"),
        (json!({"minimum": "3"}), "/minimum"),
        (json!({"pattern": "("}), "("),
        (json!({"$ref": "#/$defs/none"}), "/$defs/none"),
        (json!({"$ref": "https://example.com/x.json"}), "https://example.com/x.json"),
        (json!({"$ref": "other.json"}), "other.json"),
        (json!({"$schema": "https://example.com/draft"}), "https://example.com/draft"),
    ] {
        let error = Schema::new(&given).expect_err(&given.to_string()).to_string();
        assert!(error.contains(reason), "{given}: {error}");
    }
    let error = Schema::parse("{'a': 1}").unwrap_err().to_string();
    assert!(error.contains("not JSON"), "{error}");
    let deep = (0..200).fold(json!({}), |inner, _| json!({"not": inner}));
    assert!(Schema::new(&deep).unwrap_err().to_string().contains("deeper"));
}

#[test]
fn errors_have_their_paths() {
    let checked = schema(json!({
        "$defs": {"tag": {"type": "string", "maxLength": 3}},
        "type": "object",
        "properties": {
            "when": {"type": "string", "format": "date-time"},
            "who": {"type": "string", "format": "email"},
            "shape": {"oneOf": [
                {"type": "object", "properties": {"r": {"type": "number"}}, "required": ["r"], "additionalProperties": false},
                {"type": "object", "properties": {"w": {"type": "number"}}, "required": ["w"], "additionalProperties": false},
            ]},
            "in": {"type": "object", "properties": {"tags": {"type": "array", "items": {"$ref": "#/$defs/tag"}}}},
        },
        "required": ["when"],
        "additionalProperties": false,
    }));
    let good = json!({
        "when": "2026-11-17T03:00:00Z", "who": "a@example.com", "shape": {"w": 2}, "in": {"tags": ["a", "abc"]},
    });
    assert_eq!(checked.errors(&good), [""; 0]);
    for (path, wrong) in [
        ("/when", json!("yesterday")),
        ("/who", json!("nobody")),
        ("/shape", json!({"r": 1, "w": 2})),
        ("/in", json!({"tags": ["a", "abcd"]})),
        ("/more", json!(1)),
    ] {
        let mut answer = good.clone();
        answer[path.trim_start_matches('/')] = wrong;
        let errors = checked.errors(&answer);
        let expected = match path {
            "/in" => "/in/tags/1: ",
            "/more" => "/: ",
            path => path,
        };
        assert!(errors.iter().any(|error| error.starts_with(expected)), "{path}: {errors:?}");
    }
    assert!(checked.errors(&json!({}))[0].contains("\"when\" is a required property"));
}

#[test]
fn a_draft_is_known_by_its_name() {
    let of = |draft: &str| {
        schema(json!({"$schema": draft, "prefixItems": [{"type": "string"}], "items": [{"type": "number"}]}))
    };
    let seven = of("http://json-schema.org/draft-07/schema#");
    assert!(seven.errors(&json!([1])).is_empty() && !seven.errors(&json!(["a"])).is_empty());
    // What the model is told is of one draft, and means the same.
    let told = Schema::new(seven.tool_input()).unwrap();
    assert!(
        told.errors(&json!({"result": [1]})).is_empty() && !told.errors(&json!({"result": ["a"]})).is_empty()
    );
    let four = schema(json!({
        "$schema": "http://json-schema.org/draft-04/schema#",
        "properties": {"n": {"minimum": 0, "exclusiveMinimum": true, "maximum": 9, "exclusiveMaximum": false}},
        "enum": [{"n": 1}, {"n": 0}, {"n": 9}, {"exclusiveMinimum": true}],
    }));
    let told = Schema::new(four.tool_input()).unwrap();
    for (answer, fits) in [
        (json!({"n": 1}), true),
        (json!({"n": 0}), false),
        (json!({"n": 9}), true),
        (json!({"exclusiveMinimum": true}), true),
    ] {
        assert_eq!(four.errors(&answer).is_empty(), fits, "{answer}");
        assert_eq!(told.errors(&json!({ "result": answer })).is_empty(), fits, "{answer}");
    }
    // Since 2020-12 `items` is one schema, and that is what counts where nothing is said.
    assert!(Schema::new(&json!({"items": [{"type": "number"}]})).is_err());
    assert!(!schema(json!({"prefixItems": [{"type": "string"}]})).errors(&json!([1])).is_empty());
}

#[test]
fn many_fields_and_much_text_are_no_matter() {
    let fields: Map<String, Value> = (0..200)
        .map(|n| (format!("field{n}"), json!({"type": "integer", "description": "x".repeat(500)})))
        .collect();
    let names: Vec<&String> = fields.keys().collect();
    let given =
        json!({"type": "object", "properties": fields, "required": names, "additionalProperties": false});
    assert!(given.to_string().len() > 100_000);
    let checked = schema(given.clone());
    let answer: Map<String, Value> = (0..200).map(|n| (format!("field{n}"), json!(n))).collect();
    assert_eq!(checked.errors(&Value::Object(answer)), [""; 0]);
    // Not two hundred lines of the same.
    assert!(checked.errors(&json!({})).len() <= 21);
    assert_eq!(checked.tool_input()["properties"]["result"], given);
}

#[test]
fn hostile_answers_are_refused_and_cost_little() {
    let checked = schema(json!({"type": "object", "additionalProperties": {"type": "integer"}}));
    let large = json!({"text": "x".repeat(10 << 20)});
    let errors = checked.errors(&large);
    assert!(errors[0].len() < 1000, "{}", errors[0].len());
    let wide: Map<String, Value> = (0..200_000).map(|n| (n.to_string(), json!("x"))).collect();
    assert!(checked.errors(&Value::Object(wide)).len() <= 21);
    let nested = (0..120).fold(json!(1), |inner, _| json!([inner]));
    assert!(checked.errors(&nested)[0].contains("deeper"));
    for text in ["[".repeat(10_000), format!("{}1{}", "{\"a\":".repeat(10_000), "}".repeat(10_000))] {
        assert!(checked.told(&text).is_err());
    }
    assert_eq!(checked.told(&format!("{} {{\"a\": 1}}", "[".repeat(10 << 20))), Ok(json!({"a": 1})));
}

#[test]
fn an_answer_that_is_wrapped_once_too_often_or_not_at_all_is_understood() {
    let checked =
        schema(json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}));
    let expected = Ok(json!({"n": 1}));
    for arguments in [
        json!({"result": {"n": 1}, "wait_for_previous": true}),
        json!({"result": {"result": {"n": 1}}}),
        json!({"n": 1, "wait_for_previous": true}),
    ] {
        let Value::Object(arguments) = arguments else { panic!() };
        assert_eq!(checked.submitted(arguments), expected);
    }
    assert_eq!(checked.told("{\"result\": {\"n\": 1}}"), expected);
    // What the schema has a place for stays.
    let own = schema(json!({"type": "object", "required": ["result"]}));
    assert_eq!(own.told("{\"result\": 1}"), Ok(json!({"result": 1})));
}
