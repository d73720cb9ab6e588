//! What all servers have, under one set of names.

mod changed;
mod find;
mod headers;
mod names;
mod prompt;
mod resources;
mod schema;
mod search;
mod tool;

pub use changed::Changed;
pub use find::{Found, Named, NotFound};
pub use names::Item;
pub use prompt::Prompt;
pub use search::{MAX_MATCHES, MAX_QUERY, Match};
pub use tool::Tool;

use crate::pool::{Pool, Server, check_length, key::Caller, no_such_server};
use names::{Cache, Names};
use nexus_proto::reason::Failure;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// What all servers have.
#[derive(Debug)]
pub struct Catalog {
    pool: Arc<Pool>,
    tools: Cache<Tool>,
    prompts: Cache<Prompt>,
    /// One search at a time: others get on with their work on what is left of the machine.
    searching: Arc<Semaphore>,
}

impl Catalog {
    /// The catalog of a pool.
    pub fn new(pool: Arc<Pool>) -> Self {
        Self {
            pool,
            tools: Cache::default(),
            prompts: Cache::default(),
            searching: Arc::new(Semaphore::new(1)),
        }
    }

    /// The servers that it is the catalog of.
    pub fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    /// The servers that a caller sees, in the order of their names.
    pub fn servers(&self, caller: &Caller) -> Vec<Arc<Server>> {
        let servers = self.pool.servers();
        let seen = servers.values().filter(|server| caller.sees(server));
        seen.cloned().collect()
    }

    /// The server of that name or slug, if the caller sees it.
    pub fn find_server(&self, name: &str, caller: &Caller) -> Option<Arc<Server>> {
        self.pool.find(name, caller)
    }

    /// The server of that name or slug, or an error that names the nearest.
    pub fn server(&self, name: &str, caller: &Caller) -> Result<Arc<Server>, Failure> {
        check_length(name)?;
        self.find_server(name, caller).ok_or_else(|| {
            if let Some(failure) = self.pool.is_elsewhere(name, caller) {
                return failure;
            }
            let seen = self.servers(caller);
            let names: Vec<_> = seen.iter().map(|s| s.config().name.clone()).collect();
            no_such_server(name, names.iter())
        })
    }

    /// What a server has of one kind as this caller sees it, if it has ever been listed.
    pub fn of<T: Item>(&self, server: &Server, caller: &Caller) -> Option<Arc<Names<T>>> {
        let source = server.list_for(caller, T::KIND)?;
        Some(T::cache(self).get(server, source, caller.sight.profile(), &self.pool))
    }
}
