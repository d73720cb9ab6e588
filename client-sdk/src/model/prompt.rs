//! Prompts, and what they come to.

use crate::{Message, MissingServer, RawJson, Result};
use nexus_proto::v1;
use serde::Deserialize;

/// One prompt of one server.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Prompt {
    /// Its name towards agents: `server__prompt`.
    pub name: String,
    /// The name of its server, as the config gave it.
    pub server: String,
    /// Its name on that server.
    pub prompt: String,
    /// Its definition, verbatim as the server gave it.
    pub definition: RawJson,
}

impl Prompt {
    fn from_wire(wire: v1::Prompt) -> Result<Self> {
        Ok(Self {
            name: wire.name,
            server: wire.server,
            prompt: wire.prompt,
            definition: RawJson::from_wire(wire.definition, "the definition of a prompt")?,
        })
    }

    /// The name as people type it: `server.prompt`.
    pub fn dotted(&self) -> String {
        format!("{}.{}", self.server, self.prompt)
    }

    /// A name for people.
    pub fn title(&self) -> Option<String> {
        self.definition.field("title")
    }

    /// What it is for.
    pub fn description(&self) -> Option<String> {
        self.definition.field("description")
    }

    /// What it takes.
    pub fn arguments(&self) -> Vec<PromptArgument> {
        self.definition.field("arguments").unwrap_or_default()
    }
}

/// Something that a prompt takes: always text.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct PromptArgument {
    /// Its name.
    pub name: String,
    /// A name for people.
    pub title: Option<String>,
    /// What it is for.
    pub description: Option<String>,
    /// Whether it must be given.
    #[serde(default)]
    pub required: bool,
}

/// The prompts of one server or of all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PromptList {
    /// The prompts, in the order of their servers' names; of one server in its own order.
    pub prompts: Vec<Prompt>,
    /// Servers whose prompts are not known now.
    pub missing: Vec<MissingServer>,
}

impl PromptList {
    pub(crate) fn from_wire(wire: v1::PromptsListResponse) -> Result<Self> {
        let prompts = wire.prompts.into_iter().map(Prompt::from_wire);
        Ok(Self {
            prompts: prompts.collect::<Result<_>>()?,
            missing: wire.missing.into_iter().map(Into::into).collect(),
        })
    }
}

/// A prompt, filled in, verbatim as the server gave it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptResult {
    raw: RawJson,
}

impl PromptResult {
    pub(crate) fn new(raw: RawJson) -> Self {
        Self { raw }
    }

    /// All of it, as the server wrote it.
    pub fn raw(&self) -> &RawJson {
        &self.raw
    }

    /// What it is for.
    pub fn description(&self) -> Option<String> {
        self.raw.field("description")
    }

    /// The messages that it comes to, in their order.
    pub fn messages(&self) -> Vec<Message> {
        Message::list(&self.raw, "messages")
    }

    /// The text of its messages, one after the other, with a line break between two.
    pub fn text(&self) -> String {
        let messages = self.messages();
        let texts = messages.iter().map(Message::text);
        let texts: Vec<_> = texts.filter(|text| !text.is_empty()).collect();
        texts.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_definition_is_read_field_by_field() {
        let prompt = Prompt::from_wire(v1::Prompt {
            name: "demo__review".into(),
            server: "Demo".into(),
            prompt: "review".into(),
            definition: r#"{"name":"review","title":"Review","arguments":[{"name":"code","required":true},{"name":"style"}]}"#.into(),
        });
        let prompt = prompt.unwrap();
        assert_eq!(prompt.dotted(), "Demo.review");
        assert_eq!(prompt.title().as_deref(), Some("Review"));
        let arguments = prompt.arguments();
        assert!(arguments[0].required && !arguments[1].required);
    }

    #[test]
    fn a_result_of_another_shape_is_no_panic() {
        for text in ["[]", "5", r#"{"messages":5}"#, "{}"] {
            let raw = RawJson::from_wire(text.as_bytes().into(), "x").unwrap();
            let result = PromptResult::new(raw);
            assert!(result.messages().is_empty() && result.text().is_empty());
        }
    }
}
