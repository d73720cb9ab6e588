//! What the conformance suite of MCP expects a server to have, for `--conformance`: names, texts and behaviour are
//! as the scenarios of the suite describe them.

mod content;
mod definitions;
mod prompts;
mod tools;

pub(crate) use content::resource;
pub(crate) use definitions::{PROMPTS, RESOURCE_TEMPLATES, RESOURCES, tools};
pub(crate) use prompts::{ASKING_PROMPT, complete, prompt};
pub(crate) use tools::{Fixture, Topic, prepare};
