//! Scenario files: mistakes are pointed at.

use alhena_scripted::Scenario;

#[test]
fn a_mistake_is_named_with_its_place() {
    let mistakes = [
        ("", "EOF while parsing a value at line 1 column 0"),
        ("{} x", "trailing characters at line 1 column 4"),
        (
            r#"{"turn": []}"#,
            "turn: unknown field `turn`, expected one of `turns`, `after`, `generate`, `$schema` at line 1 column 7; \
             did you mean `turns`?",
        ),
        (
            "{\"turns\": [{\"steps\": []},\n {\"steps\": [{\"txt\": \"a\"}]}]}",
            "turns[1].steps[0]: unknown variant `txt`, expected one of `text`, `chunks`, `thought`, `call`, `calls`, \
             `sleep`, `sleep_ms`, `gate`, `hang`, `drop`, `reset`, `raw`, `hex`, `chunk` at line 2 column 18; did you mean `text`?",
        ),
        (
            r#"{"turns": [{"steps": [{"hang": false}]}]}"#,
            "turns[0].steps[0]: `hang` can only be true; leave the step out instead at line 1 column 38",
        ),
        (
            r#"{"turns": [{"steps": [{"sleep": -1}]}]}"#,
            "turns[0].steps[0]: -1 is not a number of seconds to wait at line 1 column 36",
        ),
        (
            r#"{"turns": [{"steps": [{"hex": "abc"}]}]}"#,
            "turns[0].steps[0]: `hex` must be pairs of hexadecimal digits at line 1 column 37",
        ),
        (
            r#"{"turns": [{"steps": [{"chunks": {"text": "a", "size": 0}}]}]}"#,
            "turns[0].steps[0]: `size` must be at least 1 at line 1 column 59",
        ),
        (r#"{"turns": [{"delay": 1e400}]}"#, "turns[0].delay: number out of range at line 1 column 26"),
        (
            r#"{"turns": [{"usage": {"tokens": 1}}]}"#,
            "turns[0].usage.tokens: unknown field `tokens`, expected one of `promptTokenCount`, `candidatesTokenCount`, \
             `thoughtsTokenCount`, `cachedContentTokenCount`, `toolUsePromptTokenCount`, `totalTokenCount` at line 1 \
             column 30",
        ),
        ("{", "EOF while parsing an object at line 1 column 1"),
        (
            r#"{"after": "again"}"#,
            "after: unknown variant `again`, expected one of `stop`, `repeat`, `error` at line 1 column 17",
        ),
    ];
    for (text, wanted) in mistakes {
        let error = Scenario::from_json(text).unwrap_err().to_string();
        assert_eq!(error, format!("not a scenario: {wanted}"));
    }
}
