//! Tools, and lists of them.

use crate::{Error, RawJson, Reason, Result};
use nexus_proto::v1;
use serde::Deserialize;
use serde_json::Value;

/// One tool of one server.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tool {
    /// Its name towards agents: `server__tool`.
    pub name: String,
    /// The name of its server, as the config gave it.
    pub server: String,
    /// Its name on that server.
    pub tool: String,
    /// Its definition, verbatim as the server gave it.
    pub definition: RawJson,
}

impl Tool {
    pub(crate) fn from_wire(wire: v1::Tool) -> Result<Self> {
        Ok(Self {
            name: wire.name,
            server: wire.server,
            tool: wire.tool,
            definition: RawJson::from_wire(wire.definition, "the definition of a tool")?,
        })
    }

    /// The name as people type it: `server.tool`.
    pub fn dotted(&self) -> String {
        format!("{}.{}", self.server, self.tool)
    }

    /// A name for people.
    pub fn title(&self) -> Option<String> {
        self.definition
            .field("title")
            .or_else(|| self.annotations().title)
    }

    /// What it does.
    pub fn description(&self) -> Option<String> {
        self.definition.field("description")
    }

    /// The JSON Schema of its arguments.
    pub fn input_schema(&self) -> Option<Value> {
        self.definition.field("inputSchema")
    }

    /// The JSON Schema of its structured result.
    pub fn output_schema(&self) -> Option<Value> {
        self.definition.field("outputSchema")
    }

    /// Whether it says that it changes nothing. Its word, not a promise of Nexus.
    pub fn read_only(&self) -> bool {
        self.annotations().read_only_hint.unwrap_or(false)
    }

    /// Whether it may destroy something; true unless it says otherwise.
    pub fn destructive(&self) -> bool {
        !self.read_only() && self.annotations().destructive_hint.unwrap_or(true)
    }

    /// Whether it says that calling it twice is as good as once.
    pub fn idempotent(&self) -> bool {
        self.read_only() || self.annotations().idempotent_hint.unwrap_or(false)
    }

    fn annotations(&self) -> Annotations {
        self.definition.field("annotations").unwrap_or_default()
    }
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Annotations {
    title: Option<String>,
    read_only_hint: Option<bool>,
    destructive_hint: Option<bool>,
    idempotent_hint: Option<bool>,
}

/// The tools of one server or of all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolList {
    /// The tools, in the order of their servers' names; of one server in its own order.
    pub tools: Vec<Tool>,
    /// Servers whose tools are not known now.
    pub missing: Vec<MissingServer>,
}

impl ToolList {
    pub(crate) fn from_wire(wire: v1::ToolsListResponse) -> Result<Self> {
        let tools = wire.tools.into_iter().map(Tool::from_wire);
        Ok(Self {
            tools: tools.collect::<Result<_>>()?,
            missing: wire.missing.into_iter().map(Into::into).collect(),
        })
    }
}

/// A server whose tools could not be listed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MissingServer {
    /// The name of the server.
    pub server: String,
    /// Why; `None` for a reason that this version of the client does not know.
    pub reason: Option<Reason>,
    /// Why, as a sentence for people.
    pub message: String,
}

impl From<v1::MissingServer> for MissingServer {
    fn from(wire: v1::MissingServer) -> Self {
        Self {
            server: wire.server,
            reason: Reason::parse(&wire.reason),
            message: wire.message,
        }
    }
}

/// A tool that fits a search.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ToolMatch {
    /// The tool.
    pub tool: Tool,
    /// How well it fits: 1 if it has exactly that name, else less. Only good for comparing within one answer.
    pub score: f32,
}

impl ToolMatch {
    pub(crate) fn from_wire(wire: v1::ToolMatch) -> Result<Self> {
        let tool = wire.tool.ok_or_else(|| {
            let message = "a match without a tool";
            Error::Protocol(message.to_owned())
        })?;
        Ok(Self {
            tool: Tool::from_wire(tool)?,
            score: wire.score,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(definition: &'static str) -> Tool {
        Tool::from_wire(v1::Tool {
            name: "demo__add".into(),
            server: "demo".into(),
            tool: "add".into(),
            definition: definition.as_bytes().into(),
        })
        .unwrap()
    }

    #[test]
    fn a_definition_is_read_field_by_field() {
        let tool = tool(
            r#"{"name":"add","description":"Adds","annotations":{"title":"Addition","readOnlyHint":true},
                "inputSchema":{"type":"object","required":["a"]}}"#,
        );
        assert_eq!(tool.dotted(), "demo.add");
        assert_eq!(tool.title().as_deref(), Some("Addition"));
        assert_eq!(tool.description().as_deref(), Some("Adds"));
        assert_eq!(tool.input_schema().unwrap()["required"][0], "a");
        assert!(tool.read_only() && tool.idempotent() && !tool.destructive());
    }

    #[test]
    fn a_tool_that_says_nothing_is_taken_for_dangerous() {
        let tool = tool(r#"{"name":"add"}"#);
        assert!(!tool.read_only() && !tool.idempotent() && tool.destructive());
        assert_eq!(tool.title(), None);
    }
}
