//! Finds tools by words.
//!
//! Costs nothing until somebody searches. Then each list that the caller sees gets an index, which lives as long as
//! the list does; a list that changes is another list. Work is done on a thread of its own, one search at a time.

mod document;
mod index;
mod rank;
mod words;

pub(super) use index::Index;

use super::{Catalog, Names, Tool};
use crate::pool::key::Caller;
use nexus_proto::reason::{Failure, Reason};
use std::sync::Arc;

/// The longest query, in bytes.
pub const MAX_QUERY: usize = 1024;

/// The most tools that one search finds.
pub const MAX_MATCHES: usize = 100;

/// A tool that fits.
#[derive(Debug, Clone)]
pub struct Match {
    /// The tool.
    pub tool: Arc<Tool>,
    /// How well it fits: 1 if it has exactly that name, else less.
    pub score: f32,
}

impl Catalog {
    /// The tools of known lists that fit, as this caller sees them, the best first.
    pub async fn search(
        &self,
        query: &str,
        limit: usize,
        caller: &Caller,
    ) -> Result<Vec<Match>, Failure> {
        if query.len() > MAX_QUERY {
            let message = format!("a query is no longer than {MAX_QUERY} bytes");
            return Err(Failure::new(Reason::InvalidRequest, message));
        }
        let servers = self.servers(caller);
        let lists = servers.iter().filter_map(|server| self.of(server, caller));
        let lists: Vec<Arc<Names<Tool>>> = lists.collect();
        let query = query.to_owned();
        let turn = Arc::clone(&self.searching).acquire_owned().await;
        let found = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            search(&lists, &query, limit.min(MAX_MATCHES))
        });
        let broken =
            |error: String| Failure::new(Reason::Internal, format!("cannot search: {error}"));
        let found = found.await.map_err(|error| broken(error.to_string()))?;
        found.map_err(|error| broken(error.to_string()))
    }
}

/// The tools of these lists that fit. Indexes that are missing are made.
fn search(lists: &[Arc<Names<Tool>>], query: &str, limit: usize) -> tantivy::Result<Vec<Match>> {
    let mut indexes = Vec::with_capacity(lists.len());
    for names in lists {
        indexes.push(index_of(names)?);
    }
    let hits = rank::rank(&indexes, query, limit)?;
    let found = hits.into_iter().filter_map(|hit| {
        let tool = lists[hit.list].list.get(hit.tool as usize)?;
        Some(Match {
            tool: Arc::clone(tool),
            score: hit.score,
        })
    });
    Ok(found.collect())
}

fn index_of(names: &Names<Tool>) -> tantivy::Result<&Index> {
    if let Some(index) = names.index.get() {
        return Ok(index);
    }
    // Nobody else is at it: one search at a time.
    let index = Index::new(&names.list, names.slug.as_str())?;
    Ok(names.index.get_or_init(|| index))
}

#[cfg(test)]
#[path = "../../tests/search/corpus.rs"]
mod corpus;
#[cfg(test)]
mod tests;
