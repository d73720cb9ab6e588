//! What a client calls what the servers have.

use crate::{
    catalog::Catalog,
    mcp::lists::Kind,
    pool::{Server, key::Caller},
};
use std::{borrow::Cow, collections::HashSet, sync::Arc};

/// How a resource is told from one of another server that has the same URI.
const SCHEME: &str = "nexus+";

/// The pool under the names of one client.
pub(super) struct View<'a> {
    caller: &'a Caller,
}

impl<'a> View<'a> {
    pub(super) fn of(caller: &'a Caller) -> Self {
        Self { caller }
    }

    /// The server that was chosen, if it is one: its names are as they are.
    pub(super) fn single(&self) -> Option<&'a str> {
        match self.caller.sight.chosen() {
            [only] => Some(only),
            _ => None,
        }
    }

    /// The name by which the router finds what this client calls `name`.
    pub(super) fn name<'n>(&self, name: &'n str, catalog: &Catalog) -> Cow<'n, str> {
        let single = self.single();
        match single.and_then(|server| catalog.find_server(server, self.caller)) {
            Some(server) => format!("{}.{name}", server.config().slug).into(),
            None => name.into(),
        }
    }

    /// The server and the URI that this client means by `uri`. No server: it is in no list of this kind.
    pub(super) fn resource<'n>(
        &self,
        kind: Kind,
        uri: &'n str,
        catalog: &Catalog,
    ) -> (String, &'n str) {
        if let Some(server) = self.single() {
            return (server.to_owned(), uri);
        }
        if let Some(rest) = uri.strip_prefix(SCHEME)
            && let Some((server, own)) = rest.split_once(':')
            && catalog.find_server(server, self.caller).is_some()
        {
            return (server.to_owned(), own);
        }
        let lists_it = |server: &Arc<Server>| {
            let list = server.list_for(self.caller, kind);
            list.is_some_and(|list| list.entries.iter().any(|entry| entry.key == uri))
        };
        let first = catalog.servers(self.caller).into_iter().find(lists_it);
        let name = first.map(|server| server.config().name.clone());
        (name.unwrap_or_default(), uri)
    }

    /// What this client calls the resources of all servers: theirs where only one has it. Of several the
    /// first keeps it, and the others carry the name of their server.
    pub(super) fn uris(&self, catalog: &Catalog, kind: Kind) -> Vec<Named> {
        let mut taken = HashSet::new();
        let mut named = Vec::new();
        for server in catalog.servers(self.caller) {
            let Some(list) = server.list_for(self.caller, kind) else {
                continue;
            };
            let slug = server.config().slug.clone();
            for entry in &list.entries {
                let is_first = taken.insert(entry.key.clone());
                named.push(Named {
                    uri: (!is_first).then(|| format!("{SCHEME}{slug}:{}", entry.key)),
                    definition: entry.json.clone(),
                });
            }
        }
        named
    }
}

/// A resource or template, and what it is called if not as its server calls it.
pub(super) struct Named {
    pub(super) uri: Option<String>,
    pub(super) definition: bytes::Bytes,
}
