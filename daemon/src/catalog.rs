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
pub use search::search;
pub use tool::Tool;

use crate::pool::{Pool, Server, key::Caller};
use names::{Cache, Names};
use std::sync::Arc;

/// What all servers have.
#[derive(Debug)]
pub struct Catalog {
    pool: Arc<Pool>,
    tools: Cache<Tool>,
    prompts: Cache<Prompt>,
}

impl Catalog {
    /// The catalog of a pool.
    pub fn new(pool: Arc<Pool>) -> Self {
        Self {
            pool,
            tools: Cache::default(),
            prompts: Cache::default(),
        }
    }

    /// The servers that it is the catalog of.
    pub fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    /// What a server has of one kind as this caller sees it, if it has ever been listed.
    pub fn of<T: Item>(&self, server: &Server, caller: &Caller) -> Option<Arc<Names<T>>> {
        let source = server.list_for(caller, T::KIND)?;
        Some(T::cache(self).get(server, source, &self.pool))
    }
}
