//! Prompts, and the completion of their arguments.

use std::collections::HashMap;

use super::content::{PICTURE, embedded};
use super::definitions::TEMPLATE_URI;
use crate::message::{Argument, Reference};
use crate::reply::{Outcome, Reply, RpcError, quoted};

/// The prompt that asks the user before it answers.
pub(crate) const ASKING_PROMPT: &str = "test_input_required_result_prompt";

/// The messages of a prompt; nothing if there is no such.
pub(crate) fn prompt(name: &str, arguments: &HashMap<String, String>) -> Option<Reply> {
    let text = |text: &str| format!(r#"{{"type":"text","text":{}}}"#, quoted(text));
    let argument = |name: &str| {
        let missing = || RpcError::invalid_params(format!("argument {name} is required"));
        arguments.get(name).ok_or_else(missing)
    };
    let contents = match name {
        "test_simple_prompt" => Ok(vec![text("This is a simple prompt for testing.")]),
        "test_prompt_with_arguments" => argument("arg1").and_then(|one| {
            let two = argument("arg2")?;
            let filled = format!("Prompt with arguments: arg1='{one}', arg2='{two}'");
            Ok(vec![text(&filled)])
        }),
        "test_prompt_with_embedded_resource" => argument("resourceUri").map(|uri| {
            vec![
                embedded(uri, "text/plain", "Embedded resource content for testing."),
                text("Please process the embedded resource above."),
            ]
        }),
        "test_prompt_with_image" => Ok(vec![
            format!(r#"{{"type":"image","data":"{PICTURE}","mimeType":"image/png"}}"#),
            text("Please analyze the image above."),
        ]),
        _ => return None,
    };
    Some(contents.map(|contents| messages(&contents)))
}

/// Messages of the user's, each with one content.
fn messages(contents: &[String]) -> Outcome {
    let all: Vec<String> = contents
        .iter()
        .map(|content| format!(r#"{{"role":"user","content":{content}}}"#))
        .collect();
    Outcome::complete(format!(r#""messages":[{}]"#, all.join(",")))
}

/// What an argument of these prompts, or of the template, may become; nothing if it is of none of them.
pub(crate) fn complete(reference: &Reference, argument: &Argument) -> Option<Vec<&'static str>> {
    let candidates: &[&str] = match (
        reference.name.as_deref(),
        reference.uri.as_deref(),
        argument.name.as_str(),
    ) {
        (Some("test_prompt_with_arguments"), _, "arg1" | "arg2") => {
            &["paris", "park", "party", "test", "testing"]
        }
        (Some("test_prompt_with_embedded_resource"), _, "resourceUri") => {
            &["test://static-text", "test://watched-resource"]
        }
        (None, Some(TEMPLATE_URI), "id") => &["1", "12", "123"],
        (Some(name), ..) if name.starts_with("test_") => &[],
        (None, Some(TEMPLATE_URI), _) => &[],
        _ => return None,
    };
    let fitting = candidates
        .iter()
        .filter(|one| one.starts_with(&argument.value));
    Some(fitting.copied().collect())
}
