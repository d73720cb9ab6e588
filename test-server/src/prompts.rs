//! Prompts, and the completion of their arguments.

use std::collections::HashMap;

use serde_json::json;
use serde_json::value::RawValue;

use crate::catalog::{Catalog, List};
use crate::conformance;
use crate::definitions::{FOCUS, FOCUS_OF_RUST, LANGUAGES, TABLES, TEMPLATE_URI};
use crate::message::{Argument, Context, Reference};
use crate::reply::{Outcome, Reply, RpcError, quoted};

type Arguments = HashMap<String, String>;

/// The messages of a prompt.
pub(crate) fn get(name: Option<&str>, arguments: Option<&RawValue>, catalog: &Catalog) -> Reply {
    let name = name.ok_or_else(|| RpcError::invalid_params("name is required"))?;
    let arguments: Arguments = match arguments {
        None => Arguments::new(),
        Some(raw) => serde_json::from_str(raw.get()).map_err(|error| {
            RpcError::invalid_params(format!("arguments of prompt {name}: {error}"))
        })?,
    };
    if catalog.has_fixtures()
        && let Some(fixture) = conformance::prompt(name, &arguments)
    {
        return fixture;
    }
    let (description, text) = match name {
        "greeting" => ("A greeting", greeting(&arguments)?),
        "code_review" => ("A review of code", code_review(&arguments)?),
        "summarize" => ("A summary", summarize(&arguments)),
        _ if catalog.has_in_file(List::Prompts, name) => ("A prompt of a file", name.to_owned()),
        _ if catalog.has_grown(List::Prompts, name) => ("A prompt that grew", name.to_owned()),
        _ => return Err(RpcError::invalid_params(format!("unknown prompt {name}"))),
    };
    let text = quoted(&text);
    Ok(Outcome::complete(format!(
        r#""description":"{description}","messages":[{{"role":"user","content":{{"type":"text","text":{text}}}}}]"#
    )))
}

fn greeting(arguments: &Arguments) -> Result<String, RpcError> {
    let name = required(arguments, "name")?;
    Ok(match arguments.get("formal").map(String::as_str) {
        Some("true") => {
            format!("Please write a formal greeting to {name}, with their title if you know it.")
        }
        _ => format!("Please write a short and friendly greeting to {name}."),
    })
}

fn code_review(arguments: &Arguments) -> Result<String, RpcError> {
    let language = required(arguments, "language")?;
    let focus = arguments.get("focus").map_or(String::new(), |focus| {
        format!(" Look at {focus} most of all.")
    });
    Ok(format!(
        "Please review the following {language} code: name bugs first, then what is hard to read.{focus}"
    ))
}

fn summarize(arguments: &Arguments) -> String {
    match arguments.get("max_length") {
        Some(words) => format!("Please summarize the following text in at most {words} words."),
        None => "Please summarize the following text.".to_owned(),
    }
}

fn required<'a>(arguments: &'a Arguments, name: &str) -> Result<&'a str, RpcError> {
    let missing = || RpcError::invalid_params(format!("argument {name} is required"));
    arguments.get(name).map(String::as_str).ok_or_else(missing)
}

/// What an argument may become; some candidates depend on the arguments that are known already.
pub(crate) fn complete(
    reference: Option<&Reference>,
    argument: Option<&Argument>,
    context: Option<&Context>,
    catalog: &Catalog,
) -> Reply {
    let reference = reference.ok_or_else(|| RpcError::invalid_params("ref is required"))?;
    let argument = argument.ok_or_else(|| RpcError::invalid_params("argument is required"))?;
    if catalog.has_fixtures()
        && let Some(values) = conformance::complete(reference, argument)
    {
        return Ok(completed(&values));
    }
    let known = |name| context.and_then(|context| context.arguments.get(name));
    let candidates: &[&str] = match (
        reference.r#type.as_str(),
        reference.name.as_deref(),
        argument.name.as_str(),
    ) {
        ("ref/prompt", Some("code_review"), "language") => &LANGUAGES,
        ("ref/prompt", Some("code_review"), "focus") => {
            match known("language").map(String::as_str) {
                Some("rust") => &FOCUS_OF_RUST,
                _ => &FOCUS,
            }
        }
        ("ref/prompt", Some("greeting"), "formal") => &["true", "false"],
        ("ref/prompt", Some("code_review" | "greeting" | "summarize"), _) => &[],
        ("ref/resource", _, argument) if reference.uri.as_deref() == Some(TEMPLATE_URI) => {
            if argument == "name" {
                &TABLES
            } else {
                &[]
            }
        }
        _ => {
            return Err(RpcError::invalid_params(
                "ref names no prompt or resource template of ours",
            ));
        }
    };
    let values: Vec<&str> = candidates
        .iter()
        .copied()
        .filter(|value| value.starts_with(&argument.value))
        .collect();
    Ok(completed(&values))
}

fn completed(values: &[&str]) -> Outcome {
    let completion = json!({ "total": values.len(), "values": values, "hasMore": false });
    Outcome::complete(format!(r#""completion":{completion}"#))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Options;

    fn text(name: &str, arguments: &str) -> Result<String, i32> {
        let raw = RawValue::from_string(arguments.to_owned()).unwrap();
        let catalog = Catalog::new(&Options::default()).unwrap();
        match get(Some(name), Some(&raw), &catalog) {
            Ok(outcome) => Ok(String::from_utf8(outcome.members).unwrap()),
            Err(error) => Err(error.code),
        }
    }

    #[test]
    fn arguments_find_their_way_into_the_text() {
        assert!(
            text("greeting", r#"{"name":"Ada","formal":"true"}"#)
                .unwrap()
                .contains("formal greeting to Ada")
        );
        assert!(
            text("code_review", r#"{"language":"rust","focus":"safety"}"#)
                .unwrap()
                .contains("at safety most")
        );
        assert!(
            text("summarize", r#"{"max_length":"50"}"#)
                .unwrap()
                .contains("at most 50 words")
        );
        assert!(text("summarize", "{}").is_ok());
    }

    #[test]
    fn missing_arguments_and_unknown_prompts_are_invalid_params() {
        for (name, arguments) in [
            ("greeting", "{}"),
            ("code_review", "{}"),
            ("nope", "{}"),
            ("greeting", r#"{"name":1}"#),
        ] {
            assert_eq!(text(name, arguments), Err(-32602), "{name} {arguments}");
        }
    }

    fn completed(prompt: &str, argument: &str, value: &str) -> Reply {
        let reference = Reference {
            r#type: "ref/prompt".to_owned(),
            name: Some(prompt.to_owned()),
            uri: None,
        };
        let argument = Argument {
            name: argument.to_owned(),
            value: value.to_owned(),
        };
        let catalog = Catalog::new(&Options::default()).unwrap();
        complete(Some(&reference), Some(&argument), None, &catalog)
    }

    #[test]
    fn completions_begin_with_what_was_typed() {
        let members = |reply: Reply| String::from_utf8(reply.unwrap().members).unwrap();
        assert!(
            members(completed("code_review", "language", "ru"))
                .contains(r#""values":["ruby","rust"]"#)
        );
        assert!(members(completed("greeting", "formal", "t")).contains(r#""values":["true"]"#));
        assert!(members(completed("summarize", "max_length", "")).contains(r#""values":[]"#));
        assert!(completed("nope", "x", "").is_err());
    }
}
