//! What was approved of, of one server. Pure.

use super::canonical::{changed_fields, digest};
use crate::mcp::lists::List;
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// So many definitions of one tool may be approved of at once: a server may have one for each project.
const MAX_VARIANTS: usize = 8;

/// Of no server more tools are remembered.
const MAX_TOOLS: usize = 20_000;

/// What was approved of, of one server.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Record {
    /// What it may be run by: tools that are new there are taken as they are.
    pub(super) commands: BTreeSet<String>,
    /// By their names; the latest last.
    pub(super) tools: BTreeMap<String, Vec<Approved>>,
    /// What was written down is lost: nothing is new, everything has to be approved of.
    pub(super) lost: bool,
}

/// A tool as it was approved of.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Approved {
    /// What its server was run by.
    pub(super) command: String,
    /// What it came to.
    pub(super) digest: String,
    /// The definition.
    pub(super) definition: Bytes,
}

/// A tool that is not what was approved of.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// Its name on its server.
    pub tool: String,
    /// The definition that was approved of last, if any was.
    pub approved: Option<Bytes>,
    /// The definition as it is now.
    pub now: Bytes,
    /// Its server is run by another command.
    pub other_command: bool,
}

impl Change {
    /// What is other than it was, for people and for agents.
    pub fn what(&self) -> String {
        if self.other_command {
            return "its server is run by another command".to_owned();
        }
        match &self.approved {
            None => "what was approved of is lost".to_owned(),
            Some(approved) => {
                let fields = changed_fields(approved, &self.now).join(", ");
                format!("other than before: {fields}")
            }
        }
    }
}

impl Record {
    /// Looks at what a server lists, run by this command: what has changed, and whether there was anything new to take
    /// down. The first that is seen of a server is what it is held to.
    pub(super) fn look(&mut self, command: &str, list: &List) -> (Vec<Change>, bool) {
        let is_first = self.commands.is_empty() && self.tools.is_empty() && !self.lost;
        let mut news = false;
        if is_first && !list.entries.is_empty() {
            self.commands.insert(command.to_owned());
            news = true;
        }
        let is_known = self.commands.contains(command);
        let mut changes = Vec::new();
        for entry in &list.entries {
            let variants = self.tools.entry(entry.key.clone()).or_default();
            let mut here = variants.iter_mut().filter(|old| old.command == command);
            if let Some(same) = here.find(|old| old.definition == entry.json) {
                // Kept once in memory, not twice.
                same.definition = entry.json.clone();
                continue;
            }
            let digest = digest(&entry.json);
            if variants
                .iter()
                .any(|old| old.command == command && old.digest == digest)
            {
                continue;
            }
            if variants.is_empty() && is_known {
                variants.push(Approved {
                    command: command.to_owned(),
                    digest,
                    definition: entry.json.clone(),
                });
                news = true;
                continue;
            }
            changes.push(Change {
                tool: entry.key.clone(),
                approved: variants.last().map(|old| old.definition.clone()),
                now: entry.json.clone(),
                other_command: !self.lost && !variants.iter().any(|old| old.command == command),
            });
        }
        self.tools.retain(|_, variants| !variants.is_empty());
        if self.tools.len() > MAX_TOOLS {
            let listed: HashSet<&str> = list.entries.iter().map(|entry| &*entry.key).collect();
            self.tools.retain(|tool, _| listed.contains(tool.as_str()));
        }
        (changes, news)
    }

    /// Approves of a tool as it is now.
    pub(super) fn approve(&mut self, command: &str, change: &Change) {
        let variants = self.tools.entry(change.tool.clone()).or_default();
        variants.push(Approved {
            command: command.to_owned(),
            digest: digest(&change.now),
            definition: change.now.clone(),
        });
        if variants.len() > MAX_VARIANTS {
            variants.remove(0);
        }
    }

    /// Nothing waits any more: from now on what is new is taken as it is.
    pub(super) fn settle(&mut self, command: &str) {
        self.commands.insert(command.to_owned());
        self.lost = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::lists::Definition;

    fn list(tools: &[(&str, &str)]) -> List {
        let entry = |(name, about): &(&str, &str)| Definition {
            key: (*name).to_owned(),
            json: format!(r#"{{"name":"{name}","description":"{about}"}}"#).into(),
        };
        List {
            entries: tools.iter().map(entry).collect(),
            warnings: Vec::new(),
        }
    }

    fn changed(record: &mut Record, command: &str, tools: &[(&str, &str)]) -> Vec<(String, bool)> {
        let (changes, _) = record.look(command, &list(tools));
        let what = |change: Change| (change.tool, change.other_command);
        changes.into_iter().map(what).collect()
    }

    #[test]
    fn the_first_sight_is_what_it_is_held_to() {
        let mut record = Record::default();
        assert_eq!(record.look("c", &List::default()), (vec![], false));
        assert!(record.look("c", &list(&[("a", "1")])).1);
        assert_eq!(record.look("c", &list(&[("a", "1")])), (vec![], false));
        assert_eq!(
            changed(&mut record, "c", &[("a", "2")]),
            [("a".into(), false)]
        );
        // One that is new is taken as it is; one that comes back is what it was.
        assert_eq!(changed(&mut record, "c", &[("b", "1")]), []);
        assert_eq!(
            changed(&mut record, "c", &[("a", "1"), ("b", "2")]),
            [("b".into(), false)]
        );
    }

    #[test]
    fn another_command_has_nothing_that_is_known() {
        let mut record = Record::default();
        record.look("c", &list(&[("a", "1")]));
        let now = [("a", "1"), ("new", "1")];
        let all = [("a".into(), true), ("new".into(), true)];
        assert_eq!(changed(&mut record, "d", &now), all);
        assert_eq!(changed(&mut record, "d", &now), all);
        // The old one is still what it was.
        assert_eq!(changed(&mut record, "c", &[("a", "1")]), []);
        let (changes, _) = record.look("d", &list(&now));
        changes
            .iter()
            .for_each(|change| record.approve("d", change));
        assert_eq!(changed(&mut record, "d", &now), []);
        assert_eq!(
            changed(&mut record, "d", &[("late", "1")]),
            [("late".into(), true)]
        );
        record.settle("d");
        assert_eq!(changed(&mut record, "d", &[("late", "1")]), []);
    }

    #[test]
    fn what_was_lost_is_not_the_first_sight() {
        let mut record = Record {
            lost: true,
            ..Record::default()
        };
        let (changes, news) = record.look("c", &list(&[("a", "1"), ("b", "1")]));
        assert!(changes.len() == 2 && !news);
        assert!(
            changes
                .iter()
                .all(|change| !change.other_command && change.approved.is_none())
        );
        record.approve("c", &changes[0]);
        assert_eq!(
            changed(&mut record, "c", &[("a", "1"), ("b", "1")]),
            [("b".into(), false)]
        );
        record.approve("c", &changes[1]);
        record.settle("c");
        assert_eq!(
            changed(&mut record, "c", &[("a", "1"), ("b", "1"), ("d", "1")]),
            []
        );
    }

    #[test]
    fn several_definitions_may_be_approved_of() {
        let mut record = Record::default();
        record.look("c", &list(&[("a", "0")]));
        for about in ["1", "2", "3"] {
            let (changes, _) = record.look("c", &list(&[("a", about)]));
            assert_eq!(changes[0].what(), "other than before: description");
            record.approve("c", &changes[0]);
        }
        for about in ["0", "1", "2", "3"] {
            assert_eq!(changed(&mut record, "c", &[("a", about)]), []);
        }
        for n in 10..20 {
            let (changes, _) = record.look("c", &list(&[("a", &n.to_string())]));
            record.approve("c", &changes[0]);
        }
        assert_eq!(record.tools["a"].len(), MAX_VARIANTS);
    }
}
