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
    /// Somebody has come.
    pub fn add(&self, agent: &Arc<Agent>) {
        let entry = (Arc::downgrade(agent), SystemTime::now());
        self.0.lock().insert(agent.id(), entry);
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
