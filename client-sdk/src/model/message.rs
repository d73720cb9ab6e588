//! Messages of a conversation: in prompts, and in what servers ask a model.

use crate::{Content, RawJson};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::fmt;

/// Who says something.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Role {
    /// The user.
    User,
    /// The model.
    Assistant,
    /// Somebody that this version of the client does not know.
    Other(String),
}

impl Role {
    /// Its name, as MCP has it.
    pub fn as_str(&self) -> &str {
        match self {
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Other(name) => name,
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Message {
    /// Who says it.
    pub role: Role,
    /// What is said: one piece as a rule.
    pub content: Vec<Content>,
}

#[derive(Deserialize)]
struct Wire<'a> {
    #[serde(default)]
    role: String,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
}

impl Message {
    /// The messages in that field of an object.
    pub(crate) fn list(json: &RawJson, field: &str) -> Vec<Self> {
        let messages: Vec<Box<RawValue>> = json.field(field).unwrap_or_default();
        messages.iter().filter_map(|raw| Self::read(raw)).collect()
    }

    fn read(raw: &RawValue) -> Option<Self> {
        let wire: Wire<'_> = serde_json::from_str(raw.get()).ok()?;
        let content = match wire.content {
            None => Vec::new(),
            // One piece, or several.
            Some(content) => match serde_json::from_str::<Vec<&RawValue>>(content.get()) {
                Ok(pieces) => pieces.into_iter().map(Content::read).collect(),
                Err(_) => vec![Content::read(content)],
            },
        };
        let role = match wire.role.as_str() {
            "user" => Role::User,
            "assistant" => Role::Assistant,
            _ => Role::Other(wire.role),
        };
        Some(Self { role, content })
    }

    /// Its text, one piece after the other, with a line break between two.
    pub fn text(&self) -> String {
        let texts = self.content.iter().filter_map(|content| match content {
            Content::Text { text } => Some(text.as_str()),
            _ => None,
        });
        texts.collect::<Vec<_>>().join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_has_one_piece_or_several() {
        let json = r#"{"messages":[
            {"role":"user","content":{"type":"text","text":"hi"}},
            {"role":"assistant","content":[{"type":"text","text":"a"},{"type":"tool_use","id":"1"},
                {"type":"text","text":"b"}]},
            {"role":"critic"}, 5]}"#;
        let json = RawJson::from_wire(json.as_bytes().into(), "x").unwrap();
        let messages = Message::list(&json, "messages");
        assert_eq!(messages.len(), 3);
        assert_eq!(
            (&messages[0].role, messages[0].text().as_str()),
            (&Role::User, "hi")
        );
        assert_eq!(messages[1].text(), "a\nb");
        assert!(matches!(messages[1].content[1], Content::Other(_)));
        assert_eq!(messages[2].role.to_string(), "critic");
    }
}
