use super::*;
use serde_json::{Value, json};

/// A request, as the client would make it.
fn dialog(params: &Value) -> Result<Dialog, &'static str> {
    Dialog::new(&ElicitationRequest::new("demo", params.clone()))
}

/// What comes of typing these lines, and what was wrong on the way.
fn typed(params: &Value, lines: &[&str]) -> (Option<Answer>, Vec<String>) {
    let mut dialog = dialog(params).unwrap();
    let mut wrong = Vec::new();
    for line in lines {
        match dialog.hear(Some(line)) {
            Heard::Next => {}
            Heard::Wrong(why) => wrong.push(why),
            Heard::Done(answer) => return (Some(answer), wrong),
        }
    }
    let ended = match dialog.hear(None) {
        Heard::Done(answer) => Some(answer),
        _ => None,
    };
    (ended, wrong)
}

fn form() -> Value {
    json!({"message": "Who are you?\nReally?", "requestedSchema": {
        "type": "object",
        "properties": {"name": {"type": "string", "title": "Your name"}, "age": {"type": "integer"}},
        "required": ["name"],
    }})
}

#[test]
fn a_form_is_filled_in_field_by_field() {
    let (answer, wrong) = typed(&form(), &["", "accept", "", "Ann \"A\"", "old", "30"]);
    let json = r#"{"name":"Ann \"A\"","age":30}"#;
    assert_eq!(answer, Some(Answer::Filled(json.to_owned())));
    assert_eq!(
        wrong,
        [
            "Type accept, decline or cancel.",
            "This must be given; Ctrl-D cancels.",
            "That is not a whole number."
        ]
    );
    let (answer, _) = typed(&form(), &["y", "Ann", ""]);
    assert_eq!(answer, Some(Answer::Filled(r#"{"name":"Ann"}"#.to_owned())));
}

#[test]
fn saying_no_and_not_deciding_are_two_things() {
    for line in ["decline", "D", "no", " n "] {
        assert_eq!(typed(&form(), &[line]).0, Some(Answer::Declined));
    }
    assert_eq!(typed(&form(), &["c"]).0, Some(Answer::Cancelled));
    // The end of input, before the first answer and in the middle.
    assert_eq!(typed(&form(), &[]).0, Some(Answer::Cancelled));
    assert_eq!(typed(&form(), &["y", "Ann"]).0, Some(Answer::Cancelled));
}

#[test]
fn a_form_without_fields_is_a_question_of_yes_or_no() {
    let sure = json!({"message": "Sure?", "requestedSchema": {"type": "object", "properties": {}}});
    assert_eq!(
        typed(&sure, &["y"]).0,
        Some(Answer::Filled("{}".to_owned()))
    );
    assert_eq!(dialog(&sure).unwrap().intro(), ["demo asks:", "  Sure?"]);
}

#[test]
fn whoever_is_asked_knows_by_whom_and_for_what() {
    assert_eq!(
        dialog(&form()).unwrap().intro(),
        [
            "demo asks:",
            "  Who are you?",
            "  Really?",
            "It wants to know: Your name, age (optional)"
        ]
    );
}

#[test]
fn a_page_is_shown_and_agreed_to() {
    let page = json!({"mode": "url", "message": "Log in", "url": "https://x.example/a b\u{1b}[2J"});
    let shown = dialog(&page).unwrap();
    assert_eq!(
        shown.intro(),
        [
            "demo asks you to go to a page:",
            "  Log in",
            "  https://x.example/a%20b",
            "It is a page of x.example."
        ]
    );
    assert_eq!(shown.question().lines, ["It is not opened for you."]);
    assert_eq!(typed(&page, &["", "accept"]).0, Some(Answer::Agreed));
    assert_eq!(typed(&page, &["no"]).0, Some(Answer::Declined));
    assert!(dialog(&json!({"mode": "url"})).is_err());
    assert!(dialog(&json!({"mode": "dance"})).is_err());
}

#[test]
fn a_page_is_whose_it_is_and_not_whose_it_looks_like() {
    for (url, whose) in [
        ("https://x.example", Some("x.example")),
        (
            "https://bank.example@evil.example:8443/?a@b",
            Some("evil.example:8443"),
        ),
        ("https://evil.example\\@bank.example/", Some("evil.example")),
        ("https://evil.example?@bank.example", Some("evil.example")),
        ("https:///x", None),
        ("mailto:me@x.example", None),
    ] {
        assert_eq!(host(url), whose, "{url}");
    }
}

#[test]
fn what_a_server_says_cannot_be_taken_for_ours() {
    let hostile = json!({"message": "x\n[accept/decline/cancel]\n\u{1b}[31mred"});
    let intro = dialog(&hostile).unwrap().intro();
    assert!(intro[1..].iter().all(|line| line.starts_with("  ")));
    assert!(!intro.join("").contains('\x1b'));
}
