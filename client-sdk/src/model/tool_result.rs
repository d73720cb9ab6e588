//! What comes of a call.

use crate::{LogMessage, RawJson, Result};
use nexus_proto::v1;
use serde::Deserialize;
use serde_json::{Value, value::RawValue};

/// The result of a call, verbatim as the server gave it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolResult {
    raw: RawJson,
}

impl ToolResult {
    pub(crate) fn new(raw: RawJson) -> Self {
        Self { raw }
    }

    /// All of it, as the server wrote it.
    pub fn raw(&self) -> &RawJson {
        &self.raw
    }

    /// Whether the tool ran and failed; its text then says why.
    pub fn is_error(&self) -> bool {
        self.raw.field("isError").unwrap_or(false)
    }

    /// Its contents, in their order.
    pub fn content(&self) -> Vec<Content> {
        let contents: Vec<Box<RawValue>> = self.raw.field("content").unwrap_or_default();
        contents
            .into_iter()
            .map(|content| Content::read(&content))
            .collect()
    }

    /// Its text contents, one after the other, with a line break between two.
    pub fn text(&self) -> String {
        let texts = self.content().into_iter().filter_map(|content| {
            let Content::Text { text } = content else {
                return None;
            };
            Some(text)
        });
        texts.collect::<Vec<_>>().join("\n")
    }

    /// Its structured content, where the tool has an output schema. Numbers beyond the range of
    /// `f64` do not fit: read [`ToolResult::raw`] for those.
    pub fn structured(&self) -> Option<Value> {
        self.raw.field("structuredContent")
    }

    /// The same, verbatim.
    pub fn structured_raw(&self) -> Option<RawJson> {
        let raw: Box<RawValue> = self.raw.field("structuredContent")?;
        Some(RawJson::piece(&raw))
    }
}

/// One piece of what a tool answered, a prompt holds or a model said.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Content {
    /// Text.
    Text {
        /// The text.
        text: String,
    },
    /// A picture.
    Image {
        /// Its data, in base64.
        data: String,
        /// Its type, such as `image/png`.
        mime_type: String,
    },
    /// A sound.
    Audio {
        /// Its data, in base64.
        data: String,
        /// Its type, such as `audio/wav`.
        mime_type: String,
    },
    /// The address of a resource that the server has.
    ResourceLink {
        /// Its address.
        uri: String,
        /// Its name.
        name: Option<String>,
        /// Its type.
        mime_type: Option<String>,
    },
    /// A resource, whole.
    Resource {
        /// Its address.
        uri: String,
        /// Its type.
        mime_type: Option<String>,
        /// What it holds, if that is text.
        text: Option<String>,
        /// What it holds, in base64, if that is not text.
        blob: Option<String>,
    },
    /// Anything else, verbatim.
    Other(RawJson),
}

/// As MCP writes it.
#[derive(Deserialize)]
#[serde(
    tag = "type",
    rename_all = "snake_case",
    rename_all_fields = "camelCase"
)]
enum Wire {
    Text {
        text: String,
    },
    Image {
        data: String,
        mime_type: String,
    },
    Audio {
        data: String,
        mime_type: String,
    },
    ResourceLink {
        uri: String,
        name: Option<String>,
        mime_type: Option<String>,
    },
    Resource {
        resource: Resource,
    },
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Resource {
    uri: String,
    mime_type: Option<String>,
    text: Option<String>,
    blob: Option<String>,
}

impl Content {
    pub(super) fn read(raw: &RawValue) -> Self {
        match serde_json::from_str(raw.get()) {
            Ok(Wire::Text { text }) => Self::Text { text },
            Ok(Wire::Image { data, mime_type }) => Self::Image { data, mime_type },
            Ok(Wire::Audio { data, mime_type }) => Self::Audio { data, mime_type },
            Ok(Wire::ResourceLink {
                uri,
                name,
                mime_type,
            }) => Self::ResourceLink {
                uri,
                name,
                mime_type,
            },
            Ok(Wire::Resource { resource }) => Self::Resource {
                uri: resource.uri,
                mime_type: resource.mime_type,
                text: resource.text,
                blob: resource.blob,
            },
            Err(_) => Self::Other(RawJson::piece(raw)),
        }
    }
}

/// How far a call has come.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Progress {
    /// Grows from event to event.
    pub progress: f64,
    /// What `progress` grows to, if that is known.
    pub total: Option<f64>,
    /// A word for people.
    pub message: Option<String>,
}

/// What happens in a call. The result is the last event.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum CallEvent {
    /// It has come further.
    Progress(Progress),
    /// Its server has logged something.
    Log(LogMessage),
    /// It is done.
    Result(ToolResult),
}

impl CallEvent {
    /// `None` for an event that this version of the client does not know.
    pub(crate) fn from_wire(wire: v1::ToolsCallStreamResponse) -> Result<Option<Self>> {
        use v1::tools_call_stream_response::Event;
        Ok(match wire.event {
            Some(Event::Progress(wire)) => Some(Self::Progress(Progress {
                progress: wire.progress,
                total: wire.total,
                message: Some(wire.message).filter(|message| !message.is_empty()),
            })),
            Some(Event::Result(result)) => {
                let raw = RawJson::from_wire(result, "the result")?;
                Some(Self::Result(ToolResult::new(raw)))
            }
            Some(Event::Log(wire)) => Some(Self::Log(LogMessage::from_wire(wire)?)),
            None => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(text: &'static str) -> ToolResult {
        ToolResult::new(RawJson::from_wire(text.as_bytes().into(), "x").unwrap())
    }

    #[test]
    fn texts_are_joined_and_other_contents_are_kept() {
        let result = result(
            r#"{"content":[{"type":"text","text":"one"},
                {"type":"image","data":"AA==","mimeType":"image/png"},
                {"type":"resource_link","uri":"file:///a","name":"a"},
                {"type":"resource","resource":{"uri":"file:///b","text":"b"}},
                {"type":"hologram","depth":3},
                {"type":"text","text":"two"}]}"#,
        );
        assert_eq!(result.text(), "one\ntwo");
        assert!(!result.is_error());
        let content = result.content();
        assert_eq!(content.len(), 6);
        assert!(
            matches!(&content[2], Content::ResourceLink { name: Some(name), .. } if name == "a")
        );
        assert!(
            matches!(&content[4], Content::Other(raw) if raw.as_str() == r#"{"type":"hologram","depth":3}"#)
        );
    }

    #[test]
    fn structured_content_is_kept_verbatim_too() {
        let result = result(r#"{"structuredContent": {"n" : 1e400} }"#);
        assert_eq!(result.structured(), None);
        assert_eq!(
            result.structured_raw().unwrap().as_str(),
            r#"{"n" : 1e400}"#
        );
    }

    #[test]
    fn a_tool_that_failed_says_so_inside() {
        assert!(result(r#"{"content":[],"isError":true}"#).is_error());
    }

    #[test]
    fn a_result_of_another_shape_is_no_panic() {
        for text in ["[]", "5", r#"{"content":5}"#, "{}"] {
            let result = result(text);
            assert_eq!(result.text(), "");
            assert!(!result.is_error() && result.structured().is_none());
        }
    }
}
