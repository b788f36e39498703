//! Schemas of well-known tools are taken, or refused with a reason.

use alhena_model::answer::Schema;
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
                wrapped_means_the_same(&name, &checked);
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

/// Where a schema of an organisation of its own is, in the store.
const OPENAPI: &str = "raw.githubusercontent.com/OAI/OpenAPI-Specification/main/schemas";

/// What becomes of the schemas that most people know, and of what those refer to that are refused.
#[test]
fn package_json_openapi_and_others_are_taken_or_refused_by_name() {
    let store = alhena_testbed::tools::schema_store().unwrap();
    let (v30, v31) = (format!("{OPENAPI}/v3.0/schema.json"), format!("{OPENAPI}/v3.1/schema.json"));
    let taken = None;
    for (name, refused) in [
        ("package.json", Some("https://json.schemastore.org/")),
        (&v30, taken),
        (&v31, taken),
        ("github-workflow.json", taken),
        ("github-action.json", taken),
        ("tsconfig.json", taken),
        ("eslintrc.json", taken),
        ("prettierrc.json", taken),
    ] {
        let text =
            std::fs::read_to_string(store.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        let schema = Schema::parse(text.trim_start_matches('\u{feff}')).unwrap();
        match (Schema::new(&schema), refused) {
            (Ok(checked), None) => wrapped_means_the_same(name, &checked),
            (Err(error), Some(reason)) => assert!(error.to_string().contains(reason), "{name}: {error}"),
            (Ok(_), Some(reason)) => panic!("{name} is taken, in spite of {reason}"),
            (Err(error), None) => panic!("{name}: {error}"),
        }
    }
    // One that takes nothing from elsewhere checks as it should.
    let schema = Schema::parse(&std::fs::read_to_string(store.join(&v30)).unwrap()).unwrap();
    let checked = Schema::new(&schema).unwrap();
    let good = json!({"openapi": "3.0.3", "info": {"title": "t", "version": "1"}, "paths": {}});
    assert_eq!(checked.errors(&good), [""; 0]);
    let errors = checked.errors(&json!({"openapi": "3.0.3", "info": {"title": 7}, "paths": {}}));
    assert!(errors.iter().any(|error| error.starts_with("/info/title: ")), "{errors:?}");
}

/// A number is no configuration of anything, and what is wrapped refuses it as well.
fn wrapped_means_the_same(name: &str, checked: &Schema) {
    let errors = checked.errors(&json!(7));
    assert!(!errors.is_empty(), "{name}");
    let wrapped = Schema::new(checked.tool_input()).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(wrapped.errors(&json!({"result": 7})).is_empty(), errors.is_empty(), "{name}");
    assert_eq!(checked.tool_input()["type"], "object");
}

/// A schema that refers to the world is refused, and nothing is asked for.
#[test]
fn a_package_file_whose_parts_are_elsewhere_is_refused() {
    let schema: Value = json!({"properties": {"eslint": {"$ref": "https://example.com/eslintrc.json"}}});
    let error = Schema::new(&schema).unwrap_err().to_string();
    assert!(error.contains("https://example.com/eslintrc.json"), "{error}");
}
