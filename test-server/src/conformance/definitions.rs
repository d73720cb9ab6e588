//! The lists.

use crate::reply::quoted;

/// No arguments at all.
const NOTHING: &str = r#"{"type":"object","properties":{},"additionalProperties":false}"#;

/// Name, description and schema of the arguments.
const TOOLS: [(&str, &str, &str); 26] = [
    ("test_simple_text", "Returns a text.", NOTHING),
    ("test_image_content", "Returns a picture.", NOTHING),
    ("test_audio_content", "Returns a sound.", NOTHING),
    ("test_embedded_resource", "Returns a resource.", NOTHING),
    (
        "test_multiple_content_types",
        "Returns a text, a picture and a resource.",
        NOTHING,
    ),
    ("test_error_handling", "Fails, always.", NOTHING),
    (
        "test_tool_with_logging",
        "Sends three log messages while it works.",
        NOTHING,
    ),
    (
        "test_logging_tool",
        "Sends log messages to those who want them.",
        NOTHING,
    ),
    (
        "test_tool_with_progress",
        "Tells its progress: 0, 50 and 100 of 100.",
        NOTHING,
    ),
    (
        "test_sampling",
        "Has the client's model answer a prompt.",
        r#"{"type":"object","properties":{"prompt":{"type":"string","description":"The prompt to send to the model."}},"required":["prompt"],"additionalProperties":false}"#,
    ),
    (
        "test_elicitation",
        "Asks the user for a name and an address.",
        r#"{"type":"object","properties":{"message":{"type":"string","description":"The message to show the user."}},"required":["message"],"additionalProperties":false}"#,
    ),
    (
        "test_elicitation_sep1034_defaults",
        "Asks the user with a form whose fields have defaults.",
        NOTHING,
    ),
    (
        "test_elicitation_sep1330_enums",
        "Asks the user with a form of choices.",
        NOTHING,
    ),
    (
        "json_schema_2020_12_tool",
        "Has arguments that take the whole of JSON Schema 2020-12 to describe.",
        r##"{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","$defs":{"address":{"$anchor":"addressDef","type":"object","properties":{"street":{"type":"string"},"city":{"type":"string"}}}},"properties":{"name":{"type":"string"},"address":{"$ref":"#/$defs/address"},"contactMethod":{"type":"string","enum":["phone","email"]},"phone":{"type":"string"},"email":{"type":"string"}},"allOf":[{"anyOf":[{"required":["phone"]},{"required":["email"]}]}],"if":{"properties":{"contactMethod":{"const":"phone"}},"required":["contactMethod"]},"then":{"required":["phone"]},"else":{"required":["email"]},"additionalProperties":false}"##,
    ),
    (
        "test_missing_capability",
        "Cannot do without a client that has a model.",
        NOTHING,
    ),
    (
        "test_streaming_elicitation",
        "Asks the user while it works.",
        NOTHING,
    ),
    (
        "test_trigger_tool_change",
        "Adds a tool to the list.",
        NOTHING,
    ),
    (
        "test_trigger_prompt_change",
        "Adds a prompt to the list.",
        NOTHING,
    ),
    (
        "test_input_required_result_elicitation",
        "Greets the user, once it knows the name.",
        NOTHING,
    ),
    (
        "test_input_required_result_sampling",
        "Has the client's model name a capital.",
        NOTHING,
    ),
    (
        "test_input_required_result_list_roots",
        "Tells the folders that the client works in.",
        NOTHING,
    ),
    (
        "test_input_required_result_request_state",
        "Asks, and looks at the state that comes back.",
        NOTHING,
    ),
    (
        "test_input_required_result_multiple_inputs",
        "Asks three things at once.",
        NOTHING,
    ),
    (
        "test_input_required_result_multi_round",
        "Asks one thing after the other.",
        NOTHING,
    ),
    (
        "test_input_required_result_tampered_state",
        "Asks, and refuses a state that somebody has changed.",
        NOTHING,
    ),
    (
        "test_input_required_result_capabilities",
        "Asks only what the client can be asked.",
        NOTHING,
    ),
];

/// The tools, as they are listed.
pub(crate) fn tools() -> impl Iterator<Item = String> {
    TOOLS.into_iter().map(|(name, description, schema)| {
        let description = quoted(description);
        format!(r#"{{"name":"{name}","description":{description},"inputSchema":{schema}}}"#)
    })
}

/// The resources that are listed.
pub(crate) const RESOURCES: [&str; 3] = [
    r#"{"uri":"test://static-text","name":"Static text","description":"A text that never changes.","mimeType":"text/plain"}"#,
    r#"{"uri":"test://static-binary","name":"Static binary","description":"A picture that never changes.","mimeType":"image/png"}"#,
    r#"{"uri":"test://watched-resource","name":"Watched resource","description":"Can be subscribed to.","mimeType":"text/plain"}"#,
];

/// The template that is listed.
pub(crate) const RESOURCE_TEMPLATES: [&str; 1] = [
    r#"{"uriTemplate":"test://template/{id}/data","name":"Template","description":"Data by its number.","mimeType":"application/json"}"#,
];

/// The URI of that template.
pub(crate) const TEMPLATE_URI: &str = "test://template/{id}/data";

/// The prompts that are listed.
pub(crate) const PROMPTS: [&str; 5] = [
    r#"{"name":"test_simple_prompt","description":"A text."}"#,
    r#"{"name":"test_prompt_with_arguments","description":"A text with two arguments in it.","arguments":[{"name":"arg1","description":"First test argument","required":true},{"name":"arg2","description":"Second test argument","required":true}]}"#,
    r#"{"name":"test_prompt_with_embedded_resource","description":"A resource, and what to do with it.","arguments":[{"name":"resourceUri","description":"URI of the resource to embed","required":true}]}"#,
    r#"{"name":"test_prompt_with_image","description":"A picture, and what to do with it."}"#,
    r#"{"name":"test_input_required_result_prompt","description":"A text about what the user says."}"#,
];

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[test]
    fn every_definition_is_json_and_every_tool_can_be_called() {
        for text in tools() {
            let tool: Value = serde_json::from_str(&text).unwrap();
            assert_eq!(tool["inputSchema"]["type"], "object", "{text}");
            let name = tool["name"].as_str().unwrap();
            let arguments = match name {
                "test_sampling" => r#"{"prompt":"p"}"#,
                "test_elicitation" => r#"{"message":"m"}"#,
                _ => "{}",
            };
            assert!(super::super::prepare(name, arguments).is_ok(), "{name}");
        }
        for text in RESOURCES
            .into_iter()
            .chain(RESOURCE_TEMPLATES)
            .chain(PROMPTS)
        {
            let entry: Value = serde_json::from_str(text).unwrap();
            assert!(entry["description"].is_string(), "{text}");
        }
        assert!(RESOURCE_TEMPLATES[0].contains(TEMPLATE_URI));
    }
}
