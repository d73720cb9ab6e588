use super::*;
use serde_json::json;

fn field(schema: Value) -> Field {
    Field::new("x", &schema, true)
}

fn read(schema: &Value, line: &str) -> Result<String, String> {
    field(schema.clone()).read(line).map(Option::unwrap)
}

#[test]
fn fields_come_in_the_order_of_the_schema() {
    let form = Form::new(&json!({
        "type": "object",
        "properties": {"z": {"type": "string"}, "a": {"type": "number", "title": "Age"}},
        "required": ["z"],
    }));
    let labels: Vec<_> = form.fields.iter().map(Field::label).collect();
    assert_eq!(labels, ["z", "Age (optional)"]);
    for odd in [json!(null), json!(5), json!({"properties": 5}), json!({})] {
        assert!(Form::new(&odd).fields.is_empty(), "{odd}");
    }
}

#[test]
fn numbers_are_kept_as_they_were_written_and_checked() {
    let number = json!({"type": "number", "minimum": -1, "maximum": 1e30});
    let long = "123456789012345678901234567890.10";
    assert_eq!(read(&number, long).as_deref(), Ok(long));
    for (line, why) in [
        ("two", "That is not a number."),
        ("\"2\"", "That is not a number."),
        ("true", "That is not a number."),
        ("NaN", "That is not a number."),
        ("-2", "It must be -1 or more."),
        (
            "2e30",
            "It must be 1000000000000000000000000000000 or less.",
        ),
    ] {
        assert_eq!(read(&number, line).unwrap_err(), why, "{line}");
    }
    let whole = json!({"type": "integer"});
    assert_eq!(read(&whole, "3").as_deref(), Ok("3"));
    assert_eq!(read(&whole, "3.0").as_deref(), Ok("3.0"));
    assert!(read(&whole, "3.5").is_err());
}

#[test]
fn a_boolean_is_said_in_words() {
    let boolean = json!({"type": "boolean"});
    for (line, json) in [("y", "true"), ("No", "false"), ("TRUE", "true")] {
        assert_eq!(read(&boolean, line).as_deref(), Ok(json));
    }
    assert!(read(&boolean, "maybe").is_err());
}

#[test]
fn choices_are_numbered_however_the_schema_gives_them() {
    let by_name = json!({"type": "string", "enum": ["r", "g"], "enumNames": ["Red", "Green"]});
    let titled = json!({"type": "string", "oneOf": [
        {"const": "r", "title": "Red"}, {"const": "g", "title": "Green"}]});
    for schema in [by_name, titled] {
        let lines = field(schema.clone()).lines();
        assert_eq!(lines[2..], ["  1) Red", "  2) Green"]);
        for line in ["2", "g", "Green"] {
            assert_eq!(read(&schema, line).as_deref(), Ok("\"g\""));
        }
        for line in ["0", "3", "blue"] {
            assert_eq!(
                read(&schema, line).unwrap_err(),
                "Type a number from 1 to 2."
            );
        }
    }
    // What a number stands for is what is shown beside it.
    let digits = json!({"enum": ["2", "1"]});
    assert_eq!(read(&digits, "1").as_deref(), Ok("\"2\""));
}

#[test]
fn several_can_be_chosen_where_several_may_be() {
    let several = json!({"type": "array", "minItems": 1, "maxItems": 2, "items": {"anyOf": [
        {"const": "a", "title": "A"}, {"const": "b", "title": "B"}, {"const": "c", "title": "C"}]}});
    assert_eq!(read(&several, "3, 1,3").as_deref(), Ok(r#"["c","a"]"#));
    assert_eq!(
        read(&several, "1,2,3").unwrap_err(),
        "It must be 2 of them or less."
    );
    assert_eq!(
        read(&several, ",").unwrap_err(),
        "It must be 1 of them or more."
    );
    let plain = json!({"type": "array", "items": {"type": "string", "enum": ["a"]}});
    assert_eq!(read(&plain, "1").as_deref(), Ok(r#"["a"]"#));
}

#[test]
fn text_is_checked_for_its_length_and_its_format() {
    let short = json!({"type": "string", "minLength": 2, "maxLength": 3});
    assert_eq!(read(&short, "äöü").as_deref(), Ok("\"äöü\""));
    assert!(read(&short, "a").is_err() && read(&short, "abcd").is_err());
    for (format, good, bad) in [
        ("email", "a@b.c", "a.b"),
        ("uri", "https://x", "x y"),
        ("date", "2026-07-28", "28.7.2026"),
        ("date-time", "2026-07-28T09:05:00Z", "2026-07-28"),
        ("poem", "roses", ""),
    ] {
        let schema = json!({"type": "string", "format": format});
        assert!(read(&schema, good).is_ok(), "{format}");
        assert!(bad.is_empty() || read(&schema, bad).is_err(), "{format}");
    }
}

#[test]
fn an_empty_line_is_the_default_or_skips_what_is_optional() {
    let required = field(json!({"type": "string"}));
    assert!(required.read("").is_err());
    let optional = Field::new("x", &json!({"type": "string"}), false);
    assert_eq!(optional.read(""), Ok(None));
    assert_eq!(optional.prompt(), "text, or Enter to skip:");
    let with_default = field(json!({"type": "boolean", "default": false}));
    assert_eq!(with_default.read(""), Ok(Some("false".to_owned())));
    assert_eq!(with_default.prompt(), "yes or no, or Enter for no:");
    let choice = field(json!({"oneOf": [{"const": 1, "title": "One"}], "default": 1}));
    assert_eq!(choice.prompt(), "1-1, or Enter for One:");
}

#[test]
fn what_mcp_does_not_allow_is_written_as_json() {
    let object = json!({"type": "object"});
    assert_eq!(read(&object, r#"{"a" : 1}"#).as_deref(), Ok(r#"{"a" : 1}"#));
    assert!(read(&object, "{").is_err());
}

#[test]
fn nothing_of_a_server_acts_on_the_terminal() {
    let hostile = "\x1b[2J\x1b]0;t\x07x\ny";
    let field = Field::new(
        hostile,
        &json!({"title": hostile, "description": hostile, "enum": [hostile], "default": hostile}),
        false,
    );
    let shown = field.lines().join("\n") + &field.prompt() + &field.label();
    assert!(
        !shown.contains('\x1b') && !shown.contains('\x07'),
        "{shown:?}"
    );
}
