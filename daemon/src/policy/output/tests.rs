use super::*;
use proptest::prelude::*;

const MAX: usize = 4096;

fn cut_value(shape: Shape, result: &Value, max: usize) -> Option<Value> {
    let text = cut(shape, result.to_string().as_bytes(), max)?;
    assert!(text.len() <= max, "{} of {max}", text.len());
    Some(serde_json::from_slice(&text).unwrap())
}

fn text(n: usize) -> Value {
    json!({"type": "text", "text": "é\"\n".repeat(n), "annotations": {"priority": 1.0}})
}

#[test]
fn what_fits_is_not_even_read() {
    let limit = Limit {
        max: 10,
        oversize: Oversize::Truncate,
    };
    let result = Bytes::from_static(b"no JSON at");
    let passed = limit.apply(Shape::Call, result.clone(), || unreachable!());
    assert_eq!(passed.unwrap(), result);
}

#[test]
fn a_refusal_says_both_sizes_and_what_to_do() {
    let limit = Limit {
        max: MAX_RESULT,
        oversize: Oversize::Refuse,
    };
    let result = Bytes::from(vec![b'x'; 12_340_000]);
    let failure = limit
        .apply(Shape::Call, result, || "s.t".to_owned())
        .unwrap_err();
    assert_eq!(failure.reason, Reason::TooLarge);
    let expected = "the result of s.t is too large: 12.3 MB, the limit is 10.0 MB";
    assert_eq!(failure.message, expected);
    assert!(failure.details.hint.unwrap().contains("max_result"));
}

#[test]
fn text_is_cut_and_says_so() {
    let result = json!({"content": [{"type": "text", "text": "first"}, text(5000), text(1)], "isError": false});
    let cut = cut_value(Shape::Call, &result, MAX).unwrap();
    assert_eq!(cut["content"][0]["text"], "first");
    let second = cut["content"][1]["text"].as_str().unwrap();
    assert!(
        second.ends_with("… [cut by Nexus: 4.1 kB of 30.2 kB]"),
        "{second}"
    );
    assert_eq!(cut["content"][1]["annotations"]["priority"], 1.0);
    assert_eq!(cut["isError"], false);
}

#[test]
fn what_cannot_be_cut_is_replaced_by_a_text() {
    let image = json!({"type": "image", "mimeType": "image/png", "data": "A".repeat(9000)});
    let blob = json!({"type": "resource", "resource": {"uri": "a:b", "blob": "A".repeat(9000)}});
    let result = json!({"content": [image, blob, {"type": "text", "text": "last"}]});
    let cut = cut_value(Shape::Call, &result, MAX).unwrap();
    let first = cut["content"][0]["text"].as_str().unwrap();
    assert_eq!(first, "[left out by Nexus: image/png, 9.0 kB]");
    assert_eq!(cut["content"][1]["type"], "text");
    assert_eq!(cut["content"][2]["text"], "last");
}

#[test]
fn structured_content_stays_where_it_is_small() {
    let small = json!({"content": [text(5000)], "structuredContent": {"n": 1}});
    let cut = cut_value(Shape::Call, &small, MAX).unwrap();
    assert_eq!(cut["structuredContent"]["n"], 1);
    let large = json!({"content": [{"type": "text", "text": "x"}], "structuredContent": {"n": "x".repeat(5000)}});
    let cut = cut_value(Shape::Call, &large, MAX).unwrap();
    assert_eq!(cut.get("structuredContent"), None);
    let said = cut["content"][1]["text"].as_str().unwrap();
    assert_eq!(said, "[left out by Nexus: structuredContent (5.0 kB)]");
}

#[test]
fn an_embedded_resource_a_prompt_and_a_read_are_cut_too() {
    let long = "x".repeat(9000);
    let mark = "… [cut by Nexus: 4.1 kB of 9.1 kB]";
    let embedded = json!({"type": "resource", "resource": {"uri": "a:b", "text": long}});
    let call = cut_value(Shape::Call, &json!({ "content": [embedded] }), MAX).unwrap();
    let said = call["content"][0]["resource"]["text"].as_str().unwrap();
    assert!(said.ends_with(mark), "{said}");
    let message = json!({"role": "assistant", "content": {"type": "text", "text": long}});
    let prompt = cut_value(Shape::Prompt, &json!({ "messages": [message] }), MAX).unwrap();
    assert_eq!(prompt["messages"][0]["role"], "assistant");
    let said = prompt["messages"][0]["content"]["text"].as_str().unwrap();
    assert!(said.ends_with(mark), "{said}");
    let contents =
        json!({"contents": [{"uri": "a:b", "text": long}, {"uri": "a:c", "blob": long}]});
    let read = cut_value(Shape::Read, &contents, MAX).unwrap();
    assert_eq!(read["contents"][0]["uri"], "a:b");
    let said = read["contents"][0]["text"].as_str().unwrap();
    assert!(said.contains("[cut by Nexus"), "{said}");
}

#[test]
fn what_is_no_result_or_has_nothing_to_cut_is_refused() {
    let question =
        json!({"resultType": "input_required", "inputRequests": {"a": "x".repeat(9000)}});
    assert_eq!(cut_value(Shape::Call, &question, MAX), None);
    let odd = json!({"content": [], "x-odd": "x".repeat(9000)});
    assert_eq!(cut_value(Shape::Call, &odd, MAX), None);
    assert_eq!(cut(Shape::Call, b"no JSON", MAX), None);
}

fn any_item(shape: Shape) -> impl Strategy<Value = Value> {
    let word = prop_oneof!["[a-z\"\\\\\n]{0,40}", "\\PC{0,40}", "x{0,3000}"];
    (word, 0..5_u8).prop_map(move |(word, kind)| {
        if shape == Shape::Read {
            return match kind {
                0 => json!({"uri": "a:b", "blob": word}),
                _ => json!({"uri": "a:b", "text": word}),
            };
        }
        let content = match kind {
            0 => json!({"type": "image", "mimeType": "image/png", "data": word}),
            1 => json!({"type": "resource", "resource": {"uri": "a:b", "text": word}}),
            2 => json!({"type": "resource_link", "uri": "a:b", "name": word}),
            _ => json!({"type": "text", "text": word}),
        };
        match shape {
            Shape::Prompt => json!({"role": "user", "content": content}),
            _ => content,
        }
    })
}

/// What its schema wants of an item.
fn is_valid(shape: Shape, item: &Value) -> bool {
    let content = match shape {
        Shape::Call => item,
        Shape::Prompt => &item["content"],
        Shape::Read => {
            return item["uri"].is_string()
                && (item["text"].is_string() || item["blob"].is_string());
        }
    };
    match content["type"].as_str() {
        Some("text") => content["text"].is_string(),
        Some("image") => content["data"].is_string() && content["mimeType"].is_string(),
        Some("resource") => {
            content["resource"]["uri"].is_string() && content["resource"]["text"].is_string()
        }
        Some("resource_link") => content["uri"].is_string(),
        _ => false,
    }
}

proptest! {
    #[test]
    fn what_is_cut_fits_and_stays_a_result(
        (shape, items) in prop_oneof![Just(Shape::Call), Just(Shape::Read), Just(Shape::Prompt)]
            .prop_flat_map(|shape| (Just(shape), prop::collection::vec(any_item(shape), 0..8))),
        max in 1200..4000_usize,
    ) {
        let list = match shape {
            Shape::Call => "content",
            Shape::Read => "contents",
            Shape::Prompt => "messages",
        };
        let result = json!({list: items, "_meta": {"n": 1}});
        let cut = cut_value(shape, &result, max).unwrap();
        let left = cut[list].as_array().unwrap();
        prop_assert!(left.iter().all(|item| is_valid(shape, item)), "{}", cut);
        prop_assert_eq!(&cut["_meta"], &result["_meta"]);
        // What fits as it is stays as it is.
        if result.to_string().len() + MARKS + 64 <= max {
            prop_assert_eq!(cut, result);
        }
    }
}
