//! Resources, and what they hold.

use crate::{MissingServer, RawJson, Result};
use base64::{
    Engine as _,
    alphabet::STANDARD,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use nexus_proto::v1;
use serde::Deserialize;
use serde_json::value::RawValue;

/// One resource of one server.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Resource {
    /// The name of its server, as the config gave it.
    pub server: String,
    /// Its URI on that server.
    pub uri: String,
    /// Its definition, verbatim as the server gave it.
    pub definition: RawJson,
}

impl Resource {
    fn from_wire(wire: v1::Resource) -> Result<Self> {
        Ok(Self {
            server: wire.server,
            uri: wire.uri,
            definition: RawJson::from_wire(wire.definition, "the definition of a resource")?,
        })
    }

    /// Its size in bytes, where the server tells.
    pub fn size(&self) -> Option<u64> {
        self.definition.field("size")
    }
}

/// A family of resources of one server, which are not listed one by one.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ResourceTemplate {
    /// The name of its server, as the config gave it.
    pub server: String,
    /// The URI with its variables, as RFC 6570 has it.
    pub uri_template: String,
    /// Its definition, verbatim as the server gave it.
    pub definition: RawJson,
}

impl ResourceTemplate {
    fn from_wire(wire: v1::ResourceTemplate) -> Result<Self> {
        Ok(Self {
            server: wire.server,
            uri_template: wire.uri_template,
            definition: RawJson::from_wire(wire.definition, "the definition of a template")?,
        })
    }
}

/// What resources and their templates say of themselves alike.
macro_rules! described {
    ($($name:ident),*) => {$(
        impl $name {
            /// Its name, for programs.
            pub fn name(&self) -> Option<String> {
                self.definition.field("name")
            }

            /// A name for people.
            pub fn title(&self) -> Option<String> {
                self.definition.field("title")
            }

            /// What it is.
            pub fn description(&self) -> Option<String> {
                self.definition.field("description")
            }

            /// The type of what it holds, such as `text/plain`.
            pub fn mime_type(&self) -> Option<String> {
                self.definition.field("mimeType")
            }
        }
    )*};
}

described!(Resource, ResourceTemplate);

/// The resources of one server or of all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ResourceList {
    /// The resources, in the order of their servers' names; of one server in its own order.
    pub resources: Vec<Resource>,
    /// Servers whose resources are not known now.
    pub missing: Vec<MissingServer>,
}

impl ResourceList {
    pub(crate) fn from_wire(wire: v1::ResourcesListResponse) -> Result<Self> {
        let resources = wire.resources.into_iter().map(Resource::from_wire);
        Ok(Self {
            resources: resources.collect::<Result<_>>()?,
            missing: wire.missing.into_iter().map(Into::into).collect(),
        })
    }
}

/// The resource templates of one server or of all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TemplateList {
    /// The templates, in the order of their servers' names; of one server in its own order.
    pub templates: Vec<ResourceTemplate>,
    /// Servers whose templates are not known now.
    pub missing: Vec<MissingServer>,
}

impl TemplateList {
    pub(crate) fn from_wire(wire: v1::ResourcesListTemplatesResponse) -> Result<Self> {
        let templates = wire.templates.into_iter().map(ResourceTemplate::from_wire);
        Ok(Self {
            templates: templates.collect::<Result<_>>()?,
            missing: wire.missing.into_iter().map(Into::into).collect(),
        })
    }
}

/// What a resource holds, verbatim as the server gave it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadResult {
    server: String,
    raw: RawJson,
}

impl ReadResult {
    pub(crate) fn from_wire(wire: v1::ResourcesReadResponse) -> Result<Self> {
        Ok(Self {
            server: wire.server,
            raw: RawJson::from_wire(wire.result, "what a resource holds")?,
        })
    }

    /// The server that gave it.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// All of it, as the server wrote it.
    pub fn raw(&self) -> &RawJson {
        &self.raw
    }

    /// Its contents, in their order: one as a rule, several for a folder or the like.
    pub fn contents(&self) -> Vec<ResourceContents> {
        let contents: Vec<Box<RawValue>> = self.raw.field("contents").unwrap_or_default();
        contents
            .into_iter()
            .map(|contents| ResourceContents::read(&contents))
            .collect()
    }

    /// Its text contents, one after the other, with a line break between two.
    pub fn text(&self) -> String {
        let contents = self.contents();
        let texts: Vec<_> = contents.iter().filter_map(ResourceContents::text).collect();
        texts.join("\n")
    }
}

/// One piece of what a resource holds.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ResourceContents {
    /// Its URI: that of the resource, or one below it.
    pub uri: String,
    /// Its type, such as `text/plain`.
    pub mime_type: Option<String>,
    /// What it is.
    pub data: ResourceData,
}

/// What a resource holds.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ResourceData {
    /// Text.
    Text(String),
    /// Anything but text.
    Blob(Vec<u8>),
    /// Neither, or broken: the piece, verbatim.
    Other(RawJson),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Wire {
    #[serde(default)]
    uri: String,
    mime_type: Option<String>,
    text: Option<String>,
    blob: Option<String>,
}

impl ResourceContents {
    fn read(raw: &RawValue) -> Self {
        let other = || ResourceData::Other(RawJson::piece(raw));
        let Ok(wire) = serde_json::from_str::<Wire>(raw.get()) else {
            return Self {
                uri: String::new(),
                mime_type: None,
                data: other(),
            };
        };
        let data = match (wire.text, wire.blob) {
            (Some(text), _) => ResourceData::Text(text),
            (None, Some(blob)) => decode(blob).map_or_else(other, ResourceData::Blob),
            (None, None) => other(),
        };
        Self {
            uri: wire.uri,
            mime_type: wire.mime_type,
            data,
        }
    }

    /// Its text, if it is text.
    pub fn text(&self) -> Option<&str> {
        match &self.data {
            ResourceData::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Its bytes, if it is not text.
    pub fn blob(&self) -> Option<&[u8]> {
        match &self.data {
            ResourceData::Blob(bytes) => Some(bytes),
            _ => None,
        }
    }
}

/// Base64 as people write it: with padding or without, in lines or in one.
fn decode(mut base64: String) -> Option<Vec<u8>> {
    const LENIENT: GeneralPurpose = GeneralPurpose::new(
        &STANDARD,
        GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
    );
    base64.retain(|c| !c.is_ascii_whitespace());
    LENIENT.decode(base64).ok()
}

/// What happens to a resource that is subscribed to.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ResourceEvent {
    /// The subscription is in force, at first or once more after it was lost.
    Subscribed {
        /// The server that has it.
        server: String,
    },
    /// The resource has changed: read it again.
    Updated {
        /// Its URI: the one that was subscribed to, or one below it.
        uri: String,
        /// Nobody said so: the subscription had been lost, and a change may have been missed.
        maybe: bool,
    },
}

impl ResourceEvent {
    /// `None` for an event that this version of the client does not know.
    pub(crate) fn from_wire(wire: v1::ResourcesSubscribeResponse) -> Option<Self> {
        use v1::resources_subscribe_response::Event;
        Some(match wire.event? {
            Event::Subscribed(wire) => Self::Subscribed {
                server: wire.server,
            },
            Event::Updated(wire) => Self::Updated {
                uri: wire.uri,
                maybe: wire.maybe,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(text: &'static str) -> ReadResult {
        ReadResult::from_wire(v1::ResourcesReadResponse {
            result: text.as_bytes().into(),
            server: "demo".into(),
        })
        .unwrap()
    }

    #[test]
    fn contents_are_text_bytes_or_kept_as_they_are() {
        let result = result(
            r#"{"contents":[{"uri":"a:1","mimeType":"text/plain","text":"one"},
                {"uri":"a:2","blob":"AAH/"}, {"uri":"a:3","blob":"not base64!"},
                {"uri":"a:4"}, 5, {"uri":"a:6","text":"two"}]}"#,
        );
        let contents = result.contents();
        assert_eq!(contents.len(), 6);
        assert_eq!(contents[0].mime_type.as_deref(), Some("text/plain"));
        assert_eq!(contents[1].blob(), Some(&[0, 1, 255][..]));
        assert!(matches!(contents[2].data, ResourceData::Other(_)));
        assert_eq!((contents[3].text(), contents[3].blob()), (None, None));
        assert!(matches!(&contents[4].data, ResourceData::Other(raw) if raw.as_str() == "5"));
        assert_eq!(result.text(), "one\ntwo");
    }

    #[test]
    fn base64_may_lack_its_padding_and_be_broken_into_lines() {
        for text in ["aGk=", "aGk", "aG\nk=\r\n"] {
            assert_eq!(decode(text.to_owned()).as_deref(), Some(&b"hi"[..]));
        }
        assert_eq!(decode(String::new()).as_deref(), Some(&b""[..]));
    }

    #[test]
    fn a_result_of_another_shape_is_no_panic() {
        for text in ["[]", "5", r#"{"contents":5}"#, "{}"] {
            assert!(result(text).contents().is_empty() && result(text).text().is_empty());
        }
    }
}
