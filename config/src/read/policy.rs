//! What agents may do. Pure.

use super::{Fields, server::unknown};
use crate::{
    keys,
    node::{Entry, Node},
    policy::{Consent, Level, Oversize, Pins, Policy, Rule},
};

/// All that stands under `policy`.
pub(super) fn read(fields: &mut Fields<'_>, node: &Node) -> Policy {
    let mut policy = Policy::default();
    let Some(entries) = node.entries() else {
        let example = "\"policy\": { \"level\": \"trusted\" }";
        fields.wrong("policy", node, "a map", example);
        return policy;
    };
    for entry in entries {
        match keys::find_in(keys::POLICY, &entry.key).map(|key| key.name) {
            Some("level") => policy.level = fields.word(entry, Level::ALL, Level::as_str),
            Some("consent") => policy.consent = fields.word(entry, Consent::ALL, Consent::as_str),
            Some("approval_timeout") => policy.approval_timeout = fields.time(entry, false),
            Some("operators") => policy.operators = fields.names(entry),
            Some("rate_limit") => policy.rate_limit = fields.rate(entry),
            Some("max_result") => policy.max_result = fields.size(entry),
            Some("oversize") => {
                policy.oversize = fields.word(entry, Oversize::ALL, Oversize::as_str)
            }
            Some("pins") => policy.pins = fields.word(entry, Pins::ALL, Pins::as_str),
            Some("audit") => policy.audit = fields.bool(entry),
            Some("audit_arguments") => policy.audit_arguments = fields.bool(entry),
            Some("agents") => policy.rules = rules(fields, &entry.node),
            _ => unknown(fields, keys::POLICY, entry),
        }
    }
    policy
}

fn rules(fields: &mut Fields<'_>, node: &Node) -> Vec<Rule> {
    let Some(entries) = node.entries() else {
        let example =
            "\"agents\": { \"ci\": { \"programs\": [\"ci-runner\"], \"level\": \"sandboxed\" } }";
        fields.wrong("agents", node, "a map of rules by name", example);
        return Vec::new();
    };
    entries.iter().map(|entry| rule(fields, entry)).collect()
}

fn rule(fields: &mut Fields<'_>, rule: &Entry) -> Rule {
    let mut read = Rule {
        name: rule.key.clone(),
        ..Rule::default()
    };
    for entry in rule.node.entries().unwrap_or_default() {
        match keys::find_in(keys::RULE, &entry.key).map(|key| key.name) {
            Some("agents") => read.agents = fields.names(entry),
            Some("programs") => read.programs = fields.names(entry),
            Some("projects") => read.projects = fields.names(entry),
            Some("level") => read.level = fields.word(entry, Level::ALL, Level::as_str),
            Some("consent") => read.consent = fields.word(entry, Consent::ALL, Consent::as_str),
            Some("profile") => read.profile = fields.text(entry).map(|text| text.raw),
            Some("rate_limit") => read.rate_limit = fields.rate(entry),
            _ => unknown(fields, keys::RULE, entry),
        }
    }
    let names_nobody =
        read.agents.is_empty() && read.programs.is_empty() && read.projects.is_empty();
    if names_nobody {
        let example = format!("\"{0}\": {{ \"agents\": [\"{0}*\"], … }}", read.name);
        fields.wrong(
            &read.name,
            &rule.node,
            "a rule for some \"agents\", \"programs\" or \"projects\"",
            &example,
        );
    }
    read
}
