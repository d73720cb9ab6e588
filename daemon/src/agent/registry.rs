//! Who is connected.

use super::Agent;
use parking_lot::Mutex;
use std::{
    collections::BTreeMap,
    sync::{Arc, Weak},
    time::SystemTime,
};

/// An agent, and since when it has been connected.
#[derive(Debug, Clone)]
pub struct Presence {
    /// The agent.
    pub agent: Arc<Agent>,
    /// For people.
    pub since: SystemTime,
}

/// Everybody who is connected, by number.
#[derive(Debug, Default)]
pub struct Registry(Mutex<BTreeMap<u64, (Weak<Agent>, SystemTime)>>);

impl Registry {
    /// Somebody has come, or was here already.
    pub fn add(&self, agent: &Arc<Agent>) {
        let mut all = self.0.lock();
        all.entry(agent.id())
            .or_insert_with(|| (Arc::downgrade(agent), SystemTime::now()));
    }

    /// Somebody has left.
    pub fn remove(&self, id: u64) {
        self.0.lock().remove(&id);
    }

    /// Those who are here, in the order in which they came.
    pub fn all(&self) -> Vec<Presence> {
        let all = self.0.lock();
        let present = all.values().filter_map(|(agent, since)| {
            Some(Presence {
                agent: agent.upgrade()?,
                since: *since,
            })
        });
        present.collect()
    }
}
