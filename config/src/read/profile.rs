//! Profiles. Pure.

use super::Fields;
use crate::{
    diagnosis::Diagnosis,
    keys,
    model::ToolsMode,
    node::{Entry, Node},
    profile::Profile,
};

/// All profiles under `profiles`.
pub(super) fn read(fields: &mut Fields<'_>, node: &Node) -> Vec<Profile> {
    let Some(entries) = node.entries() else {
        let example = "\"profiles\": { \"web\": { \"servers\": [\"git*\"] } }";
        fields.wrong("profiles", node, "a map of profiles by name", example);
        return Vec::new();
    };
    entries.iter().map(|entry| one(fields, entry)).collect()
}

fn one(fields: &mut Fields<'_>, profile: &Entry) -> Profile {
    let mut read = Profile {
        name: profile.key.clone(),
        ..Profile::default()
    };
    for entry in profile.node.entries().unwrap_or_default() {
        match keys::find_in(keys::PROFILE, &entry.key).map(|key| key.name) {
            Some("servers") => read.servers = fields.names(entry),
            Some("include_tools") => read.tools.include = fields.names(entry),
            Some("exclude_tools") => read.tools.exclude = fields.names(entry),
            Some("tools") => read.mode = fields.word(entry, ToolsMode::ALL, ToolsMode::as_str),
            Some("agents") => read.agents = fields.names(entry),
            Some("projects") => read.projects = fields.names(entry),
            _ => {
                let near = keys::nearest(keys::PROFILE, &entry.key);
                let text = near.map_or(String::new(), |near| format!("did you mean {near:?}?"));
                let message = format!("unknown key {:?} in the profile {:?}", entry.key, read.name);
                fields.tell(
                    Diagnosis::warning("config::unknown-key", message)
                        .at(entry.key_span.clone(), text),
                );
            }
        }
    }
    read
}
