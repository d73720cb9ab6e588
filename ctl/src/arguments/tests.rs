use super::*;
use proptest::prelude::*;
use serde_json::json;

fn pairs(words: &[&str]) -> Vec<(String, String)> {
    words
        .iter()
        .map(|word| word.split_once('=').unwrap())
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

/// What one value becomes for a property of that schema.
fn as_schema(schema: Value, value: &str) -> Result<String, Wrong> {
    let root = json!({"properties": {"x": schema}, "$defs": {"Size": {"type": "integer"}}});
    let built = build(&[("x".to_owned(), value.to_owned())], &root)?;
    Ok(built[5..built.len() - 1].to_owned())
}

#[test]
fn values_get_the_type_that_the_schema_says() {
    for (schema, value, json) in [
        (json!({"type": "string"}), "5", r#""5""#),
        (json!({"type": "string"}), "true", r#""true""#),
        (json!({"type": "string"}), r#"a "b""#, r#""a \"b\"""#),
        (json!({"type": "string"}), "", r#""""#),
        (json!({"type": "number"}), "2", "2"),
        (json!({"type": "number"}), "-1.50", "-1.50"),
        (json!({"type": "integer"}), "1e3", "1e3"),
        (json!({"type": "boolean"}), "true", "true"),
        (json!({"type": "null"}), "null", "null"),
        (json!({"type": "object"}), r#"{"a": 1.0}"#, r#"{"a": 1.0}"#),
        (json!({"type": "array"}), "[1, 2]", "[1, 2]"),
    ] {
        assert_eq!(as_schema(schema, value).as_deref(), Ok(json), "{value}");
    }
}

#[test]
fn digits_are_never_lost() {
    let number = json!({"type": "number"});
    for digits in [
        "123456789012345678901234567890",
        "1e400",
        "0.1000000000000000055511151231257827",
        "-0",
    ] {
        assert_eq!(as_schema(number.clone(), digits).as_deref(), Ok(digits));
    }
    let integer = json!({"type": "integer"});
    let digits = "123456789012345678901234567890";
    assert_eq!(as_schema(integer, digits).as_deref(), Ok(digits));
}

#[test]
fn a_value_of_another_type_is_refused_with_what_is_wanted() {
    for (schema, value, message) in [
        (
            json!({"type": "number"}),
            "two",
            "`x` must be a number, not `two`",
        ),
        (
            json!({"type": "number"}),
            "0x10",
            "`x` must be a number, not `0x10`",
        ),
        (
            json!({"type": "number"}),
            "",
            "`x` must be a number, not ``",
        ),
        (
            json!({"type": "integer"}),
            "1.5",
            "`x` must be an integer, not `1.5`",
        ),
        (
            json!({"type": "boolean"}),
            "yes",
            "`x` must be true or false, not `yes`",
        ),
        (
            json!({"type": ["integer", "null"]}),
            "a",
            "`x` must be null or an integer, not `a`",
        ),
        (
            json!({"enum": ["a", 5]}),
            "b",
            "`x` must be one of a, 5, not `b`",
        ),
        (
            json!({"type": "object"}),
            "a",
            "`x` must be an object, not `a`",
        ),
    ] {
        let wrong = as_schema(schema, value).unwrap_err();
        assert_eq!(wrong.message, message);
    }
}

#[test]
fn in_a_union_everything_else_comes_before_text() {
    let optional = json!({"anyOf": [{"type": "string"}, {"type": "null"}]});
    assert_eq!(as_schema(optional.clone(), "null").as_deref(), Ok("null"));
    assert_eq!(as_schema(optional.clone(), "x").as_deref(), Ok(r#""x""#));
    // Quotes ask for text.
    assert_eq!(as_schema(optional, r#""null""#).as_deref(), Ok(r#""null""#));
    let either = json!({"type": ["string", "number"]});
    assert_eq!(as_schema(either.clone(), "5").as_deref(), Ok("5"));
    assert_eq!(as_schema(either, "5 m").as_deref(), Ok(r#""5 m""#));
}

#[test]
fn references_into_the_schema_are_followed() {
    let schema = json!({"$ref": "#/$defs/Size"});
    assert_eq!(as_schema(schema.clone(), "5").as_deref(), Ok("5"));
    assert!(as_schema(schema, "five").is_err());
    // One that leads to itself ends.
    let root = json!({"properties": {"x": {"$ref": "#/properties/x"}}});
    assert_eq!(build(&pairs(&["x=5"]), &root).as_deref(), Ok(r#"{"x":5}"#));
}

#[test]
fn lists_of_values_decide_what_is_meant() {
    let schema = json!({"enum": ["5", "6"]});
    assert_eq!(as_schema(schema, "5").as_deref(), Ok(r#""5""#));
    let schema = json!({"type": "integer", "enum": [5, 6]});
    assert_eq!(as_schema(schema.clone(), "5").as_deref(), Ok("5"));
    assert!(as_schema(schema, "7").is_err());
    assert!(as_schema(json!({"const": "a"}), "b").is_err());
}

#[test]
fn repeated_arguments_make_an_array() {
    let root = json!({"properties": {
        "words": {"type": "array", "items": {"type": "string"}},
        "sizes": {"type": "array", "items": {"type": "integer"}},
        "one": {"type": "string"},
    }});
    let built = build(&pairs(&["words=1", "sizes=1", "words=b", "sizes=2"]), &root);
    assert_eq!(built.as_deref(), Ok(r#"{"words":["1","b"],"sizes":[1,2]}"#));
    let single = build(&pairs(&["words=a,b", "sizes=3"]), &root);
    assert_eq!(single.as_deref(), Ok(r#"{"words":["a,b"],"sizes":[3]}"#));
    let whole = build(&pairs(&[r#"words=["a","b"]"#]), &root);
    assert_eq!(whole.as_deref(), Ok(r#"{"words":["a","b"]}"#));
    let wrong = build(&pairs(&["sizes=1", "sizes=b"]), &root).unwrap_err();
    assert_eq!(wrong.message, "`sizes` must be an integer, not `b`");
    let wrong = build(&pairs(&["one=a", "one=b"]), &root).unwrap_err();
    assert_eq!(wrong.message, "`one` is given 2 times, but is no array");
}

#[test]
fn elements_are_found_behind_references_and_in_unions() {
    let root = json!({
        "properties": {
            "a": {"$ref": "#/$defs/Names"},
            "b": {"anyOf": [{"$ref": "#/$defs/Names"}, {"type": "null"}]},
        },
        "$defs": {"Names": {"type": "array", "items": {"$ref": "#/$defs/Name"}},
                  "Name": {"type": "string"}},
    });
    let built = build(&pairs(&["a=1", "b=2", "b=3"]), &root);
    assert_eq!(built.as_deref(), Ok(r#"{"a":["1"],"b":["2","3"]}"#));
    assert_eq!(
        build(&pairs(&["b=null"]), &root).as_deref(),
        Ok(r#"{"b":null}"#)
    );
}

#[test]
fn what_the_schema_does_not_describe_is_json_if_it_is_any() {
    let words = pairs(&["a=5", "b=true", "c=text", "d=[1]", r#"e="q""#, "f=1 2"]);
    let expected = r#"{"a":5,"b":true,"c":"text","d":[1],"e":"q","f":"1 2"}"#;
    for schema in [json!(null), json!({}), json!({"properties": {}})] {
        assert_eq!(build(&words, &schema).as_deref(), Ok(expected));
    }
    let strings = json!({"additionalProperties": {"type": "string"}});
    assert_eq!(
        build(&pairs(&["a=5"]), &strings).as_deref(),
        Ok(r#"{"a":"5"}"#)
    );
}

#[test]
fn a_name_that_the_schema_forbids_is_refused_with_those_it_has() {
    let schema = json!({"properties": {"a": {}, "b": {}}, "additionalProperties": false});
    let wrong = build(&pairs(&["c=1"]), &schema).unwrap_err();
    assert_eq!(wrong.message, "the tool has no argument `c`");
    assert_eq!(wrong.hint.as_deref(), Some("it takes `a`, `b`"));
}

#[test]
fn only_an_object_can_be_all_arguments() {
    assert_eq!(check_object(r#" {"a": 1e400} "#), Ok(()));
    assert!(check_object("[1]").is_err());
    let wrong = check_object("{a: 1}").unwrap_err();
    assert!(wrong.message.contains("line 1 column 2"), "{wrong:?}");
}

proptest! {
    #[test]
    fn what_is_built_is_always_an_object(
        words in prop::collection::vec((".*", ".*"), 0..6),
        kind in prop::sample::select(vec!["string", "number", "array", "object", "null"]),
    ) {
        for schema in [json!(null), json!({"additionalProperties": {"type": kind}})] {
            if let Ok(built) = build(&words, &schema) {
                prop_assert_eq!(check_object(&built), Ok(()));
            }
        }
    }

    #[test]
    fn text_arrives_as_it_was_written(text in ".*") {
        let built = as_schema(json!({"type": "string"}), &text).unwrap();
        prop_assert_eq!(serde_json::from_str::<String>(&built).unwrap(), text);
    }
}
