use super::*;
use clap::CommandFactory as _;

fn parse(words: &str) -> Cli {
    let words = words.split_whitespace();
    Cli::try_parse_from(std::iter::once("nexusctl").chain(words)).unwrap()
}

fn call(words: &str) -> (Result<(String, String), &'static str>, bool) {
    let cli = parse(words);
    let json = cli.wants_json();
    let Command::Call(call) = &cli.command else {
        panic!("{words}");
    };
    let input = call.input();
    let told = input.map(|input| (input.tool.to_owned(), format!("{:?}", input.source)));
    (told, json)
}

#[test]
fn the_definition_holds_together() {
    Cli::command().debug_assert();
}

#[test]
fn json_is_taken_before_and_after_the_command() {
    assert!(parse("--json status").wants_json());
    assert!(parse("status --json").wants_json());
    assert!(!parse("status").wants_json());
    assert!(parse("servers demo --json").wants_json());
}

#[test]
fn the_json_of_a_call_is_its_arguments_or_its_output() {
    let pairs = r#"Pairs([("a", "2")])"#;
    let none = "Pairs([])";
    for (words, source, json) in [
        ("call d.a --arg a=2", pairs, false),
        ("call d.a --arg a=2 --json", pairs, true),
        ("call d.a --json --arg a=2", pairs, true),
        ("call --json d.a --arg a=2", pairs, true),
        ("--json call d.a --arg a=2", pairs, true),
        ("call d.a", none, false),
        ("call d.a --json", none, true),
        ("call --json d.a", none, true),
        (r#"call d.a --json {"a":2}"#, r#"Text("{\"a\":2}")"#, false),
        (r#"call --json {"a":2} d.a"#, r#"Text("{\"a\":2}")"#, false),
        (
            r#"--json call d.a --json {"a":2}"#,
            r#"Text("{\"a\":2}")"#,
            true,
        ),
        ("call d.a --json=@f.json", r#"File("f.json")"#, false),
        ("call d.a -", "Stdin", false),
        ("call d.a - --json", "Stdin", true),
        ("call --json d.a -", "Stdin", true),
        ("call d.a --json -", "Stdin", false),
        // Not an object, and nothing else either: the check of it will say so.
        ("call d.a --json 5", r#"Text("5")"#, false),
    ] {
        let expected = (Ok(("d.a".to_owned(), source.to_owned())), json);
        assert_eq!(call(words), expected, "{words}");
    }
}

#[test]
fn arguments_come_from_one_place_only() {
    for words in [
        r#"call d.a --arg a=2 --json {"a":2}"#,
        "call d.a - --arg a=2",
        r#"call d.a - --json {"a":2}"#,
    ] {
        let (told, _) = call(words);
        assert!(told.unwrap_err().contains("one way only"), "{words}");
    }
    assert!(call("call d.a b").0.unwrap_err().contains("--arg NAME"));
    assert!(call(r#"call --json {"a":2}"#).0.is_err());
}

#[test]
fn an_argument_has_a_name_and_a_value() {
    assert!(Cli::try_parse_from(["nexusctl", "call", "d.a", "--arg", "a"]).is_err());
    assert!(Cli::try_parse_from(["nexusctl", "call", "d.a", "--arg", "=a"]).is_err());
    let (told, _) = call("call d.a --arg a=b=c --arg d=");
    assert_eq!(told.unwrap().1, r#"Pairs([("a", "b=c"), ("d", "")])"#);
}

#[test]
fn a_resource_is_given_by_its_uri_or_with_its_server() {
    for (words, server, uri) in [
        ("read a:b", "", "a:b"),
        ("read demo a:b", "demo", "a:b"),
        ("read demo a:b -o f", "demo", "a:b"),
    ] {
        let Command::Read(read) = parse(words).command else {
            panic!("{words}");
        };
        assert_eq!(
            (read.address.server(), read.address.uri.as_str()),
            (server, uri)
        );
    }
}

#[test]
fn what_is_completed_is_a_prompt_unless_a_template_is_given() {
    let what = |words: &str| {
        let Command::Complete(complete) = parse(words).command else {
            panic!("{words}");
        };
        complete.what().map(|what| format!("{what:?}"))
    };
    assert_eq!(
        what("complete d.p arg va").unwrap(),
        r#"Prompt { name: "d.p", argument: "arg", value: "va" }"#
    );
    assert_eq!(
        what("complete d.p arg").unwrap(),
        r#"Prompt { name: "d.p", argument: "arg", value: "" }"#
    );
    assert_eq!(
        what("complete --template d:{x} x v").unwrap(),
        r#"Template { server: "", template: "d:{x}", variable: "x", value: "v" }"#
    );
    assert_eq!(
        what("complete -s demo -t d:{x} x").unwrap(),
        r#"Template { server: "demo", template: "d:{x}", variable: "x", value: "" }"#
    );
    assert!(what("complete d.p").is_err());
    assert!(what("complete -t d:{x} x v w").is_err());
    assert!(Cli::try_parse_from(["nexusctl", "complete", "-s", "demo", "p", "a"]).is_err());
}

#[test]
fn a_level_is_one_that_there_is() {
    for words in ["call d.a --log-level info", "log-level demo emergency"] {
        parse(words);
    }
    assert!(Cli::try_parse_from(["nexusctl", "log-level", "demo", "loud"]).is_err());
}
