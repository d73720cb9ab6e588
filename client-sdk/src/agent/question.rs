//! What servers ask.

use crate::{Message, RawJson};
use serde_json::{Value, value::RawValue};

/// A server wants a model to say something: `sampling/createMessage`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SamplingRequest {
    /// The server that asks.
    pub server: String,
    /// All of it, verbatim as the server gave it.
    pub params: RawJson,
}

impl SamplingRequest {
    /// A question as a server would ask it, to try a handler with.
    pub fn new(server: impl Into<String>, params: Value) -> Self {
        Self {
            server: server.into(),
            params: params.into(),
        }
    }

    /// The conversation so far.
    pub fn messages(&self) -> Vec<Message> {
        Message::list(&self.params, "messages")
    }

    /// How the model is to behave.
    pub fn system_prompt(&self) -> Option<String> {
        self.params.field("systemPrompt")
    }

    /// How long the answer may be.
    pub fn max_tokens(&self) -> Option<u64> {
        self.params.field("maxTokens")
    }

    /// How free the model is to be.
    pub fn temperature(&self) -> Option<f64> {
        self.params.field("temperature")
    }

    /// Texts at which the model is to stop.
    pub fn stop_sequences(&self) -> Vec<String> {
        self.params.field("stopSequences").unwrap_or_default()
    }

    /// Which model is wished for: hints and priorities, as MCP has them.
    pub fn model_preferences(&self) -> Option<Value> {
        self.params.field("modelPreferences")
    }

    /// Whose context the model is to be given: `none`, `thisServer` or `allServers`.
    pub fn include_context(&self) -> Option<String> {
        self.params.field("includeContext")
    }

    /// The definitions of the tools that the model may use, verbatim.
    pub fn tools(&self) -> Vec<RawJson> {
        let tools: Vec<Box<RawValue>> = self.params.field("tools").unwrap_or_default();
        tools.iter().map(|tool| RawJson::piece(tool)).collect()
    }

    /// Whether the model must use a tool, as MCP has it.
    pub fn tool_choice(&self) -> Option<Value> {
        self.params.field("toolChoice")
    }
}

/// A server wants something of the user: `elicitation/create`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ElicitationRequest {
    /// The server that asks.
    pub server: String,
    /// All of it, verbatim as the server gave it.
    pub params: RawJson,
}

/// What the user is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ElicitationMode {
    /// Fill in a form: [`ElicitationRequest::requested_schema`].
    Form,
    /// Go to a page: [`ElicitationRequest::url`].
    Url,
    /// Something that this version of the client does not know.
    Unknown,
}

impl ElicitationRequest {
    /// A question as a server would ask it, to try a handler with.
    pub fn new(server: impl Into<String>, params: Value) -> Self {
        Self {
            server: server.into(),
            params: params.into(),
        }
    }

    /// What the user is to do.
    pub fn mode(&self) -> ElicitationMode {
        match self.params.field::<String>("mode").as_deref() {
            None | Some("form") => ElicitationMode::Form,
            Some("url") => ElicitationMode::Url,
            Some(_) => ElicitationMode::Unknown,
        }
    }

    /// What the user is to be told.
    pub fn message(&self) -> String {
        self.params.field("message").unwrap_or_default()
    }

    /// The JSON Schema of the form: an object whose properties are simple values.
    pub fn requested_schema(&self) -> Option<Value> {
        self.params.field("requestedSchema")
    }

    /// The page that the user is to go to. Show it whole, and do not open it unasked.
    pub fn url(&self) -> Option<String> {
        self.params.field("url")
    }

    /// What the server calls this visit to a page.
    pub fn elicitation_id(&self) -> Option<String> {
        self.params.field("elicitationId")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params(text: &'static str) -> RawJson {
        RawJson::from_wire(text.as_bytes().into(), "x").unwrap()
    }

    #[test]
    fn a_question_without_a_mode_is_a_form() {
        let asked = |text| ElicitationRequest {
            server: "demo".into(),
            params: params(text),
        };
        let form = asked(r#"{"message":"Who?","requestedSchema":{"type":"object"}}"#);
        assert_eq!(
            (form.mode(), form.message().as_str()),
            (ElicitationMode::Form, "Who?")
        );
        assert_eq!(form.requested_schema().unwrap()["type"], "object");
        let page = asked(r#"{"mode":"url","url":"https://x.example/","elicitationId":"7"}"#);
        assert_eq!(page.mode(), ElicitationMode::Url);
        assert_eq!(page.url().as_deref(), Some("https://x.example/"));
        assert_eq!(
            asked(r#"{"mode":"dance"}"#).mode(),
            ElicitationMode::Unknown
        );
    }

    #[test]
    fn what_a_model_is_asked_is_read_field_by_field() {
        let request = SamplingRequest {
            server: "demo".into(),
            params: params(
                r#"{"messages":[{"role":"user","content":{"type":"text","text":"hi"}}],
                    "maxTokens":100,"temperature":0.5,"tools":[{"name":"t","n":1e400}]}"#,
            ),
        };
        assert_eq!(request.messages()[0].text(), "hi");
        assert_eq!(
            (request.max_tokens(), request.temperature()),
            (Some(100), Some(0.5))
        );
        assert_eq!(request.tools()[0].as_str(), r#"{"name":"t","n":1e400}"#);
        assert_eq!(request.system_prompt(), None);
    }
}
