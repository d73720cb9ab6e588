//! One prompt.

use super::{Catalog, Item, names::Cache};
use crate::mcp::lists::{Definition, Kind};
use bytes::Bytes;
use nexus_proto::reason::Reason;

/// One prompt of one server.
#[derive(Debug)]
pub struct Prompt {
    /// Its name towards agents.
    pub name: String,
    /// The name of its server.
    pub server: String,
    /// Its name on its server.
    pub prompt: String,
    /// Its definition, verbatim.
    pub definition: Bytes,
}

impl Item for Prompt {
    const KIND: Kind = Kind::Prompts;
    const NOUN: &'static str = "prompt";
    const NOT_FOUND: Reason = Reason::PromptNotFound;
    const COMMAND: &'static str = "prompts";

    fn new(name: String, server: String, definition: &Definition) -> Self {
        Self {
            name,
            server,
            prompt: definition.key.clone(),
            definition: definition.json.clone(),
        }
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn server(&self) -> &str {
        &self.server
    }

    fn own_name(&self) -> &str {
        &self.prompt
    }

    fn cache(catalog: &Catalog) -> &Cache<Self> {
        &catalog.prompts
    }
}
