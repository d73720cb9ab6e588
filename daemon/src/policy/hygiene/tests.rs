use super::*;
use nexus_proto::reason::Reason;

fn of(kind: Kind, names: &[&str]) -> (Vec<String>, Vec<String>) {
    let key = match kind {
        Kind::Tools | Kind::Prompts => "name",
        Kind::Resources => "uri",
        Kind::Templates => "uriTemplate",
    };
    let entries = names.iter().map(|name| Definition {
        key: (*name).to_owned(),
        json: serde_json::json!({ key: name }).to_string().into(),
    });
    let all = List {
        entries: entries.collect(),
        warnings: Vec::new(),
    };
    let List { entries, warnings } = list(kind, all);
    let keys = entries.into_iter().map(|entry| entry.key).collect();
    (keys, warnings)
}

#[test]
fn a_name_with_something_in_it_is_left_out_and_shown() {
    let long = "x".repeat(129);
    let names = [
        "good",
        "ba\u{200b}d",
        "\u{1b}[2J",
        "two\nlines",
        &long,
        "数据",
    ];
    let (kept, warnings) = of(Kind::Tools, &names);
    assert_eq!(kept, ["good", "数据"]);
    assert_eq!(warnings.len(), 4, "{warnings:?}");
    assert!(warnings[0].contains("\"ba\\u{200b}d\" among its tools is left out"));
    assert!(warnings.iter().all(|warning| text::is_clean(warning)));
    let (kept, _) = of(Kind::Resources, &["file:///a", "file:///\u{202e}a"]);
    assert_eq!(kept, ["file:///a"]);
    let (kept, _) = of(Kind::Prompts, &["re\u{430}d", "read", "rea\u{501}"]);
    assert_eq!(kept, ["read"]);
}

#[test]
fn of_many_warnings_some_are_told() {
    let names: Vec<String> = (0..500).map(|n| format!("\u{200b}{n}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let (kept, warnings) = of(Kind::Tools, &names);
    assert!(kept.is_empty());
    assert_eq!(warnings.len(), MAX_WARNINGS + 1);
    assert!(warnings[MAX_WARNINGS].starts_with("480 more"));
}

#[test]
fn a_failure_says_nothing_hostile() {
    let told = Failure::new(Reason::ServerError, "\u{1b}[1mno\u{200b}").with(|details| {
        details.stderr = vec!["\u{9b}31mbad".into()];
        details.rpc_data = Some("{\"x\":\"\\u001b]0;t\\u0007y\"}".into());
    });
    let told = failure(told);
    assert_eq!(told.message, "no");
    assert_eq!(told.details.stderr, ["bad"]);
    assert_eq!(told.details.rpc_data.as_deref(), Some("{\"x\":\"y\"}"));
}
