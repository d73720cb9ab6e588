//! Which servers a client sees, and what it calls what they have.

use crate::{
    catalog::Catalog,
    mcp::lists::Kind,
    pool::{Pool, Server, key::Caller},
};
use nexus_proto::reason::Failure;
use std::{borrow::Cow, collections::HashSet, sync::Arc};

/// How a resource is told from one of another server that has the same URI.
const SCHEME: &str = "nexus+";

/// The servers that a client sees.
#[derive(Debug, Clone, Default)]
pub(super) struct View {
    /// These; all when there are none.
    pub(super) only: Vec<String>,
}

impl View {
    /// The one server that it shows, if it is one: its names are as they are.
    pub(super) fn single(&self) -> Option<&str> {
        match &*self.only {
            [only] => Some(only),
            _ => None,
        }
    }

    /// The servers that it shows to this caller, in the order of their names.
    pub(super) fn servers(&self, pool: &Pool, caller: &Caller) -> Vec<Arc<Server>> {
        let mut servers = pool.servers_for(caller);
        servers.retain(|server| self.shows(server));
        servers
    }

    /// Whether it shows this one.
    pub(super) fn shows(&self, server: &Server) -> bool {
        let config = server.config();
        let is_it = |name: &String| {
            config.name.eq_ignore_ascii_case(name)
                || config.slug.as_str().eq_ignore_ascii_case(name)
        };
        self.only.is_empty() || self.only.iter().any(is_it)
    }

    /// An error if it names a server that there is not.
    pub(super) fn check(&self, pool: &Pool, caller: &Caller) -> Result<(), Failure> {
        self.only
            .iter()
            .try_for_each(|name| pool.get(name, caller).map(drop))
    }

    /// The name by which the router finds what this client calls `name`.
    pub(super) fn name<'a>(&self, name: &'a str, pool: &Pool, caller: &Caller) -> Cow<'a, str> {
        match self.single().and_then(|server| pool.find(server, caller)) {
            Some(server) => format!("{}.{name}", server.config().slug).into(),
            None => name.into(),
        }
    }

    /// The server and the URI that this client means by `uri`. No server: whoever lists it.
    pub(super) fn resource<'a>(
        &self,
        uri: &'a str,
        pool: &Pool,
        caller: &Caller,
    ) -> (String, &'a str) {
        if let Some(server) = self.single() {
            return (server.to_owned(), uri);
        }
        if let Some(rest) = uri.strip_prefix(SCHEME)
            && let Some((server, own)) = rest.split_once(':')
            && pool.find(server, caller).is_some()
        {
            return (server.to_owned(), own);
        }
        (String::new(), uri)
    }

    /// What this client calls the resources of all servers: theirs where only one has it. Of several the
    /// first keeps it, and the others carry the name of their server.
    pub(super) fn uris(&self, catalog: &Catalog, caller: &Caller, kind: Kind) -> Vec<Named> {
        let mut taken = HashSet::new();
        let mut named = Vec::new();
        for server in self.servers(catalog.pool(), caller) {
            let Some(list) = server.list_for(caller, kind) else {
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
