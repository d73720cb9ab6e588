//! Which server a resource is read from.

use super::{Catalog, Named, NotFound, find::is_coming};
use crate::{
    mcp::lists::Kind,
    nearest::nearest,
    pool::{Server, key::Caller},
};
use nexus_proto::reason::{Failure, Reason};
use std::sync::Arc;

/// The longest URI.
const MAX_URI: usize = 8 * 1024;

impl Catalog {
    /// The server that lists this resource, or this template; or the one that was named.
    pub fn server_of(
        &self,
        kind: Kind,
        server: &str,
        uri: &str,
        caller: &Caller,
        without: &[Arc<Server>],
    ) -> Result<Arc<Server>, NotFound> {
        if uri.is_empty() || uri.len() > MAX_URI {
            let message = format!("a URI has 1 to {MAX_URI} bytes");
            let failure = Failure::new(Reason::InvalidRequest, message);
            return Err(NotFound::Never(failure));
        }
        if !server.is_empty() {
            return self.server(server, caller).map_err(NotFound::Never);
        }
        let mut listed = Vec::new();
        let mut fits = Vec::new();
        let is_left_out = |server: &Arc<Server>| without.iter().any(|out| Arc::ptr_eq(out, server));
        let servers = self.servers(caller);
        for server in servers.iter().filter(|server| !is_left_out(server)) {
            let Some(list) = server.list_for(caller, kind) else {
                // One that runs tells it soon: its tools come first.
                if is_coming(&server.readiness_for(caller)) {
                    return Err(NotFound::AskLater(Arc::clone(server), Named::No));
                }
                continue;
            };
            if list.entries.iter().any(|entry| entry.key == uri) {
                listed.push(Arc::clone(server));
            } else if kind == Kind::Resources
                && let Some(templates) = server.list_for(caller, Kind::Templates)
                && templates
                    .entries
                    .iter()
                    .any(|entry| could_be(uri, &entry.key))
            {
                fits.push(Arc::clone(server));
            }
        }
        let mut candidates = if listed.is_empty() { fits } else { listed };
        match (candidates.pop(), candidates.is_empty()) {
            (Some(server), true) => Ok(server),
            (None, _) => Err(NotFound::Never(self.no_such_resource(kind, uri, caller))),
            (Some(server), false) => {
                candidates.push(server);
                let names: Vec<_> = candidates.iter().map(|s| s.config().name.clone()).collect();
                let message = format!("several servers have {uri}");
                let hint = format!("say which server: {}", names.join(", "));
                let failure = Failure::new(Reason::AmbiguousName, message);
                Err(NotFound::Never(
                    failure.with(|details| details.hint = Some(hint)),
                ))
            }
        }
    }

    fn no_such_resource(&self, kind: Kind, uri: &str, caller: &Caller) -> Failure {
        let servers = self.servers(caller);
        let lists = servers
            .iter()
            .filter_map(|server| server.list_for(caller, kind));
        let lists: Vec<_> = lists.collect();
        let known = lists
            .iter()
            .flat_map(|list| &list.entries)
            .map(|entry| entry.key.as_str());
        let near = nearest(uri, known);
        let message = format!("no server lists {uri}");
        Failure::new(Reason::ResourceNotFound, message).with(|details| {
            details.suggestion = near.map(str::to_owned);
            let hint = "say which server has it; `nexusctl resources` lists what is known";
            details.hint = Some(hint.to_owned());
        })
    }
}

/// Whether a URI could come from a template: its fixed parts are there, in their order.
fn could_be(uri: &str, template: &str) -> bool {
    let mut parts = template.split('{');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = uri.strip_prefix(first) else {
        return false;
    };
    let mut fixed = first;
    for part in parts {
        fixed = part.split_once('}').map_or("", |(_, fixed)| fixed);
        match rest.find(fixed) {
            Some(at) => rest = &rest[at + fixed.len()..],
            None => return false,
        }
    }
    // What ends in a variable may go on; what ends in fixed text may not.
    rest.is_empty() || fixed.is_empty() || uri.ends_with(fixed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uri_fits_a_template_whose_fixed_parts_it_has() {
        assert!(could_be(
            "file:///data/users.csv",
            "file:///data/{name}.csv"
        ));
        assert!(!could_be(
            "file:///data/users.txt",
            "file:///data/{name}.csv"
        ));
        assert!(!could_be("db:///data/users.csv", "file:///data/{name}.csv"));
        assert!(could_be("db://a/b/c", "db://{x}/{+rest}"));
        assert!(!could_be("file:///x/y", "file:///x"));
        assert!(could_be("a", "{anything}"));
    }
}
