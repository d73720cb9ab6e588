//! Which lists change, as one caller sees them.

use crate::{
    mcp::lists::{Kind, List},
    pool::{Pool, key::Caller},
};
use std::{collections::HashMap, sync::Arc, time::Duration};
use tokio::{sync::watch, time::sleep};

/// How long to wait for more of the same.
const PAUSE: Duration = Duration::from_millis(20);

/// Lists, and the tools in them that are held back, by server and kind.
type Seen = HashMap<(String, u8), (Arc<List>, Vec<String>)>;

/// What was known when it was last looked at.
#[derive(Debug)]
pub struct Changed {
    pool: Arc<Pool>,
    pulse: watch::Receiver<u64>,
    known: Option<Seen>,
}

impl Changed {
    /// Nothing has been looked at yet.
    pub fn new(pool: &Arc<Pool>) -> Self {
        Self {
            pulse: pool.pulse(),
            pool: Arc::clone(pool),
            known: None,
        }
    }

    /// Waits until lists have changed since it was last looked at: of which servers, and which. The first
    /// time it looks, and waits then. `None` at the end of the pool, or when there is no caller any more.
    pub async fn next(
        &mut self,
        caller: impl Fn() -> Option<Caller>,
    ) -> Option<Vec<(String, Kind)>> {
        loop {
            let _ = self.pulse.borrow_and_update();
            let now = self.look(&caller()?);
            let before = self.known.replace(now);
            if let (Some(before), Some(now)) = (before, &self.known) {
                let changed = difference(&before, now);
                if !changed.is_empty() {
                    return Some(changed);
                }
            }
            self.pulse.changed().await.ok()?;
            // What changes together is told together.
            sleep(PAUSE).await;
        }
    }

    fn look(&self, caller: &Caller) -> Seen {
        let servers = self.pool.servers();
        let mut lists = HashMap::new();
        for (name, server) in servers.iter().filter(|(_, server)| caller.sees(server)) {
            for kind in Kind::ALL {
                if let Some(list) = server.known_list(caller, kind) {
                    let held = match kind {
                        Kind::Tools => server
                            .judge(&list)
                            .held_tools()
                            .map(str::to_owned)
                            .collect(),
                        _ => Vec::new(),
                    };
                    lists.insert((name.clone(), kind as u8), (list, held));
                }
            }
        }
        lists
    }
}

/// What is new, gone or other than it was.
fn difference(before: &Seen, now: &Seen) -> Vec<(String, Kind)> {
    let kind = |number: u8| Kind::ALL[usize::from(number)];
    type One = (Arc<List>, Vec<String>);
    let is_news = |list: Option<&One>, other: &One| match list {
        Some((list, held)) => !Arc::ptr_eq(list, &other.0) || *held != other.1,
        // An empty list that comes or goes is no change to anybody.
        None => !other.0.entries.is_empty(),
    };
    let mut changed = Vec::new();
    for (key, list) in now {
        if is_news(before.get(key), list) {
            changed.push((key.0.clone(), kind(key.1)));
        }
    }
    for (key, list) in before {
        if !now.contains_key(key) && is_news(None, list) {
            changed.push((key.0.clone(), kind(key.1)));
        }
    }
    changed
}
