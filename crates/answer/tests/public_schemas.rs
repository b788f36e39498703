//! Schemas of well-known tools are taken, or refused with a reason.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use alhena_answer::Schema;
use serde_json::{Value, json};

#[test]
fn schemas_of_public_tools_are_taken_or_refused_with_a_reason() {
    let directory = alhena_testbed::tools::public_schemas().unwrap();
    let mut taken = 0;
    let mut refused = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|ending| ending != "json") {
            continue;
        }
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let schema = Schema::parse(&std::fs::read_to_string(&path).unwrap()).unwrap();
        match Schema::new(&schema) {
            Ok(checked) => {
                taken += 1;
                // A number is no configuration of anything, and what is wrapped refuses it as well.
                let errors = checked.errors(&json!(7));
                assert!(!errors.is_empty(), "{name}");
                let wrapped =
                    Schema::new(checked.tool_input()).unwrap_or_else(|error| panic!("{name}: {error}"));
                assert_eq!(wrapped.errors(&json!({"result": 7})).is_empty(), errors.is_empty(), "{name}");
                assert_eq!(checked.tool_input()["type"], "object");
            }
            Err(error) => refused.push((name, error.to_string())),
        }
    }
    assert!(taken + refused.len() >= 20, "{taken} {refused:?}");
    // The two that refer to what is not in them say to what.
    for (name, reason) in &refused {
        assert!(
            reason.contains("http") || reason.contains("regex") || reason.contains("deeper"),
            "{name}: {reason}"
        );
    }
    assert!(taken >= 20, "{taken} {refused:?}");
}

/// A schema that refers to the world is refused, and nothing is asked for.
#[test]
fn a_package_file_whose_parts_are_elsewhere_is_refused() {
    let schema: Value = json!({"properties": {"eslint": {"$ref": "https://example.com/eslintrc.json"}}});
    let error = Schema::new(&schema).unwrap_err().to_string();
    assert!(error.contains("https://example.com/eslintrc.json"), "{error}");
}
