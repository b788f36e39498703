use serde_json::json;

use super::*;

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(object) => object,
        _ => panic!("not an object"),
    }
}

#[test]
fn the_runs_settings_go_on_top_and_the_rest_stays() {
    let mut settings = object(json!({
        "general": {"maxAttempts": 10, "vimMode": true, "sessionRetention": {"enabled": true, "maxAge": "9d"}},
        "tools": {"exclude": ["a"]},
        "mcpServers": {"db": {"command": "old", "args": ["x"]}, "kept": {"command": "k"}},
    }));
    let changes = object(json!({
        "general": {"maxAttempts": 2, "sessionRetention": {"enabled": false}},
        "tools": {"exclude": ["b"]},
        "mcpServers": {"db": {"url": "http://new"}},
        "model": {"maxSessionTurns": 3},
    }));
    merge(&mut settings, &changes);
    let expected = json!({
        "general": {"maxAttempts": 2, "vimMode": true, "sessionRetention": {"enabled": false, "maxAge": "9d"}},
        "tools": {"exclude": ["b"]},
        "mcpServers": {"db": {"url": "http://new"}, "kept": {"command": "k"}},
        "model": {"maxSessionTurns": 3},
    });
    assert_eq!(Value::Object(settings), expected);
}

#[test]
fn settings_that_are_no_object_are_replaced() {
    let mut settings = object(json!({"general": "nonsense", "mcpServers": null}));
    merge(
        &mut settings,
        &object(json!({"general": {"maxAttempts": 2}, "mcpServers": {"a": {"command": "x"}}})),
    );
    let expected = json!({"general": {"maxAttempts": 2}, "mcpServers": {"a": {"command": "x"}}});
    assert_eq!(Value::Object(settings), expected);
}

#[test]
fn a_list_of_allowed_servers_lets_the_runs_own_in() {
    let changes = object(json!({"mcpServers": {"mine": {}, "shut": {}}}));
    let mut settings = object(json!({"mcp": {"allowed": ["theirs", "mine"], "excluded": ["shut"]}}));
    let warnings = admit_servers(&mut settings, &changes);
    assert_eq!(settings["mcp"], json!({"allowed": ["theirs", "mine", "shut"], "excluded": ["shut"]}));
    assert_eq!(warnings, ["The MCP server shut is excluded by mcp.excluded in the settings"]);

    let mut settings = object(json!({"mcp": {}}));
    assert_eq!(admit_servers(&mut settings, &changes), Vec::<String>::new());
    assert_eq!(Value::Object(settings), json!({"mcp": {}}));
}

#[test]
fn a_tilde_means_the_users_home_and_not_the_overlay() {
    let mut settings = object(json!({
        "context": {"includeDirectories": ["~", "~/docs", "~other", "/abs", "rel", 1]},
        "policyPaths": ["~/p"], "experimental": {"extensionRegistryURI": "~/r.json"}, "model": {"name": "~/x"},
    }));
    write_out_home(&mut settings, Path::new("/home/u"));
    let expected = json!({
        "context": {"includeDirectories": ["/home/u", "/home/u/docs", "~other", "/abs", "rel", 1]},
        "policyPaths": ["/home/u/p"], "experimental": {"extensionRegistryURI": "/home/u/r.json"},
        "model": {"name": "~/x"},
    });
    assert_eq!(Value::Object(settings), expected);
}

#[test]
fn the_names_of_context_files_are_the_users_choice() {
    let names = |value| context_names(&object(value));
    assert_eq!(names(json!({})), ["GEMINI.md"]);
    assert_eq!(names(json!({"context": {"fileName": " AGENTS.md "}})), ["AGENTS.md"]);
    assert_eq!(names(json!({"context": {"fileName": ["", "A.md", "B.md", 3]}})), ["A.md", "B.md"]);
    assert_eq!(names(json!({"context": {"fileName": []}})), ["GEMINI.md"]);
}

#[test]
fn settings_that_another_file_wins_over_are_named() {
    let changes =
        object(json!({"general": {"maxAttempts": 2, "x": {"y": 1}}, "model": {"maxSessionTurns": 3}}));
    let names = |value| overridden(&changes, &object(value));
    assert_eq!(names(json!({})), Vec::<String>::new());
    assert_eq!(names(json!({"general": {"maxAttempts": 2, "vimMode": true}})), Vec::<String>::new());
    assert_eq!(
        names(json!({"general": {"maxAttempts": 5, "x": {"y": 2}}, "model": 1})),
        ["general.maxAttempts", "general.x.y", "model"]
    );
}

#[test]
fn settings_are_named_by_their_paths() {
    let settings =
        object(json!({"a": {"b": 1, "c": {"d": []}}, "mcpServers": {"s": {"command": "x"}}, "e": {}}));
    assert_eq!(leaf_names(&settings), ["a.b", "a.c.d", "mcpServers.s", "e"]);
}
