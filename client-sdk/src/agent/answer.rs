//! What is answered.

use bytes::Bytes;
use serde_json::{Value, json};

/// What a model said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SamplingAnswer(Bytes);

impl SamplingAnswer {
    /// Text, and the name of the model that said it.
    pub fn text(model: impl Into<String>, text: impl Into<String>) -> Self {
        let (model, text): (String, String) = (model.into(), text.into());
        Self::from(json!({
            "role": "assistant",
            "content": {"type": "text", "text": text},
            "model": model,
            "stopReason": "endTurn",
        }))
    }

    /// JSON text, as MCP has it for the result of `sampling/createMessage`. It reaches the server as
    /// it is.
    pub fn from_raw(json: impl Into<Bytes>) -> Self {
        Self(json.into())
    }

    pub(super) fn into_bytes(self) -> Bytes {
        self.0
    }
}

impl From<Value> for SamplingAnswer {
    fn from(result: Value) -> Self {
        Self(result.to_string().into())
    }
}

/// What the user did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ElicitationAnswer(Bytes);

impl ElicitationAnswer {
    /// The user has filled in the form, with this.
    pub fn accept(content: impl Into<Value>) -> Self {
        let content: Value = content.into();
        Self::from(json!({"action": "accept", "content": content}))
    }

    /// The user agrees to go to the page.
    pub fn accept_url() -> Self {
        Self::from(json!({"action": "accept"}))
    }

    /// The user said no.
    pub fn decline() -> Self {
        Self::from(json!({"action": "decline"}))
    }

    /// The user did not decide.
    pub fn cancel() -> Self {
        Self::from(json!({"action": "cancel"}))
    }

    /// JSON text, as MCP has it for the result of `elicitation/create`. It reaches the server as it
    /// is.
    pub fn from_raw(json: impl Into<Bytes>) -> Self {
        Self(json.into())
    }

    pub(super) fn into_bytes(self) -> Bytes {
        self.0
    }
}

impl From<Value> for ElicitationAnswer {
    fn from(result: Value) -> Self {
        Self(result.to_string().into())
    }
}

/// Why a question is not answered. The server sees it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct Refusal {
    /// The JSON-RPC code.
    pub code: i32,
    /// Why, as a sentence.
    pub message: String,
}

impl Refusal {
    pub(super) const METHOD_NOT_FOUND: i32 = -32601;
    pub(super) const INVALID_PARAMS: i32 = -32602;
    pub(super) const INTERNAL: i32 = -32603;

    /// A refusal with a JSON-RPC code.
    pub fn new(code: i32, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
        }
    }

    /// The user does not want it.
    pub fn rejected(message: impl Into<String>) -> Self {
        Self::new(-1, message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &Bytes) -> Value {
        serde_json::from_slice(bytes).unwrap()
    }

    #[test]
    fn answers_have_the_shape_that_mcp_gives_them() {
        let answer = read(&ElicitationAnswer::accept(json!({"a": 1})).into_bytes());
        assert_eq!(answer, json!({"action": "accept", "content": {"a": 1}}));
        let answer = read(&ElicitationAnswer::accept_url().into_bytes());
        assert_eq!(answer, json!({"action": "accept"}));
        let answer = read(&SamplingAnswer::text("m", "hi").into_bytes());
        assert_eq!(answer["content"]["text"], "hi");
        assert_eq!(
            (&answer["role"], &answer["model"]),
            (&json!("assistant"), &json!("m"))
        );
    }

    #[test]
    fn raw_text_is_not_touched() {
        let text = r#"{ "role" : "assistant", "n": 1e400 }"#;
        assert_eq!(SamplingAnswer::from_raw(text).into_bytes(), text);
    }
}
