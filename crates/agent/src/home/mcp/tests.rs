use super::*;

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(object) => object,
        _ => panic!("not an object"),
    }
}

#[test]
fn a_command_is_split_as_a_shell_would() {
    let server = McpServer::parse(r#"db = npx -y "@scope/db server" --url=postgres://u:p=q@h '' "#).unwrap();
    let expected =
        McpServer::process("db", "npx", ["-y", "@scope/db server", "--url=postgres://u:p=q@h", ""]);
    assert_eq!(server, expected);
    assert_eq!(
        server.entry(),
        json!({"command": "npx", "args": ["-y", "@scope/db server", "--url=postgres://u:p=q@h", ""]})
    );
}

#[test]
fn an_address_is_taken_as_one() {
    let server = McpServer::parse("web=https://example.org/mcp?a=b c").unwrap();
    assert_eq!(
        (server.name.as_str(), server.entry()),
        ("web", json!({"url": "https://example.org/mcp?a=b c"}))
    );
}

#[test]
fn what_is_no_server_is_said_so() {
    let errors =
        ["x", "=cmd", "a b=cmd", "x=", "x='open"].map(|text| McpServer::parse(text).unwrap_err().to_string());
    assert_eq!(
        errors,
        [
            "\"x\" is not NAME=COMMAND",
            "\"\" cannot be the name of an MCP server",
            "\"a b\" cannot be the name of an MCP server",
            "the MCP server x has no command",
            "the command of the MCP server x has an open quote",
        ]
    );
}

#[test]
fn every_value_of_a_file_survives() {
    let entries = json!({
        "a": {"command": "x", "args": [], "env": {"TOKEN": "a=b==", "EMPTY": "", "ODD": "\u{0}\"\\$'"}, "cwd": "/w",
              "timeout": 5, "includeTools": ["t"], "trust": false},
        "b": {"url": "http://h", "type": "sse", "headers": {"Authorization": "Bearer x=y"}, "oauth": {"enabled": true}},
        "c": {"httpUrl": "http://old", "headers": {"a": "b"}},
    });
    for file in [entries.clone(), json!({"mcpServers": entries, "other": 1})] {
        let servers = McpServer::from_json(object(file)).unwrap();
        let settings = Value::Object(McpServer::settings(&servers));
        assert_eq!(settings, json!({"mcpServers": entries}));
    }
}

#[test]
fn a_wrong_file_names_the_server_and_the_key() {
    let wrong = [
        json!({"a": 1}),
        json!({"a": {}}),
        json!({"a": {"command": 1}}),
        json!({"a": {"command": "x", "args": "y"}}),
        json!({"a": {"command": "x", "env": {"N": 1}}}),
        json!({"a": {"url": "u", "headers": []}}),
        json!({"a": {"url": "u", "trust": "yes"}}),
        json!({"mcpServers": []}),
    ];
    let errors = wrong.map(|file| McpServer::from_json(object(file)).unwrap_err().to_string());
    assert_eq!(
        errors,
        [
            "the MCP server a is not an object",
            "the MCP server a has neither a command nor a url",
            "command of the MCP server a has the wrong type",
            "args of the MCP server a has the wrong type",
            "env of the MCP server a has the wrong type",
            "headers of the MCP server a has the wrong type",
            "trust of the MCP server a has the wrong type",
            "mcpServers is not an object",
        ]
    );
}

#[test]
fn an_argument_is_a_file_or_a_server() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("servers=1.json");
    std::fs::write(&file, "{ // mine\n\"a\": {\"command\": \"x\"}}").unwrap();
    assert_eq!(
        McpServer::from_argument(file.to_str().unwrap()).unwrap(),
        [McpServer::process("a", "x", [] as [&str; 0])]
    );
    assert_eq!(McpServer::from_argument("b=y z").unwrap(), [McpServer::process("b", "y", ["z"])]);
    std::fs::write(&file, "{").unwrap();
    let error = McpServer::from_argument(file.to_str().unwrap()).unwrap_err().to_string();
    assert!(error.contains("servers=1.json:1"), "{error}");
}

#[test]
fn secrets_are_not_shown() {
    let file = json!({
        "a": {"command": "x", "env": {"TOKEN": "secret"}, "oauth": {"clientSecret": "secret"}},
        "b": {"url": "http://h", "headers": {"Authorization": "secret"}},
    });
    let shown = format!("{:?}", McpServer::from_json(object(file)).unwrap());
    assert!(
        !shown.contains("secret") && shown.contains("TOKEN") && shown.contains("Authorization"),
        "{shown}"
    );
}
