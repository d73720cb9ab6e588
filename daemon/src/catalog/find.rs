//! From any name of a tool or a prompt to the one that is meant.

use super::{Catalog, Item, names::Names};
use crate::{
    mcp::lists::Kind,
    nearest::nearest,
    pool::{Server, check_length, key::Caller},
    supervisor::status::Readiness,
};
use nexus_proto::{
    name::readings,
    reason::{Failure, Reason},
};
use std::sync::Arc;

/// What was looked for, and the server that has it.
#[derive(Debug)]
pub struct Found<T> {
    /// The server.
    pub server: Arc<Server>,
    /// What was looked for.
    pub item: Arc<T>,
}

/// Why a name leads to nothing.
#[derive(Debug)]
pub enum NotFound {
    /// This server may have it once its lists are known: the one that was named, or one of many.
    AskLater(Arc<Server>, Named),
    /// Nobody has it.
    Never(Failure),
}

/// Whether somebody said which server it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Named {
    /// The server was named.
    Yes,
    /// It is one of those that might have something of that bare name.
    No,
}

impl Catalog {
    /// What somebody calls `name`.
    ///
    /// A bare name is not looked for at the servers in `without`.
    pub fn find<T: Item>(
        &self,
        name: &str,
        caller: &Caller,
        without: &[Arc<Server>],
    ) -> Result<Found<T>, NotFound> {
        check_length(name).map_err(NotFound::Never)?;
        let mut unlisted = None;
        let mut named_server = None;
        for (server_name, own_name) in readings(name) {
            let Some(server) = self.find_server(server_name, caller) else {
                continue;
            };
            match self.of::<T>(&server, caller) {
                Some(names) => {
                    let by_name = names.by_name.get(own_name);
                    if let Some(item) = by_name.or_else(|| names.by_agent_name.get(name)) {
                        let item = Arc::clone(item);
                        return Ok(Found { server, item });
                    }
                    if let Some(failure) = names.held(&server.config(), own_name, name) {
                        return Err(NotFound::Never(failure));
                    }
                    named_server.get_or_insert((server, names, own_name));
                }
                None => {
                    unlisted.get_or_insert(server);
                }
            }
        }
        if let Some(server) = unlisted {
            return Err(NotFound::AskLater(server, Named::Yes));
        }
        match named_server {
            Some((server, names, own_name)) => {
                let error = server.lists_for(caller).of(T::KIND).error.clone();
                let failure = no_such_item(&server, &names, own_name, error);
                Err(NotFound::Never(failure))
            }
            None => self.find_bare(name, caller, without),
        }
    }

    /// A bare name, which is good where only one server has it.
    fn find_bare<T: Item>(
        &self,
        name: &str,
        caller: &Caller,
        without: &[Arc<Server>],
    ) -> Result<Found<T>, NotFound> {
        let mut found: Vec<Found<T>> = Vec::new();
        let mut unlisted = None;
        let mut held = None;
        let is_left_out = |server: &Arc<Server>| without.iter().any(|out| Arc::ptr_eq(out, server));
        let is_dotted = readings(name).next().is_some();
        let servers = self.pool.servers();
        let asked = |server: &&Arc<Server>| caller.sees(server) && !is_left_out(server);
        for server in servers.values().filter(asked) {
            match self.of::<T>(server, caller) {
                Some(names) => match names.by_name.get(name) {
                    Some(item) => found.push(Found {
                        server: Arc::clone(server),
                        item: Arc::clone(item),
                    }),
                    None => held = held.or_else(|| names.held(&server.config(), name, name)),
                },
                // One that keeps ending, or would have to be woken for it, is not worth the wait; nor is
                // any for a name that says which server is meant.
                None if !is_dotted && is_coming(&server.readiness_for(caller)) => {
                    unlisted.get_or_insert_with(|| Arc::clone(server));
                }
                None => {}
            }
        }
        if let (true, None, Some(failure)) = (found.is_empty(), &unlisted, held) {
            return Err(NotFound::Never(failure));
        }
        match (found.len(), unlisted) {
            (1, None) => found
                .pop()
                .ok_or_else(|| NotFound::Never(self.no_such_name::<T>(name, caller))),
            // It may turn out to be known to a second one.
            (_, Some(server)) => Err(NotFound::AskLater(server, Named::No)),
            (0, None) => Err(NotFound::Never(self.no_such_name::<T>(name, caller))),
            (_, None) => {
                let names: Vec<&str> = found.iter().map(|found| found.item.name()).collect();
                let noun = T::NOUN;
                let message = format!("several servers have a {noun} {name:?}");
                let hint = format!("say which: {}", names.join(", "));
                Err(NotFound::Never(
                    Failure::new(Reason::AmbiguousName, message)
                        .with(|details| details.hint = Some(hint)),
                ))
            }
        }
    }

    fn no_such_name<T: Item>(&self, name: &str, caller: &Caller) -> Failure {
        let servers = self.servers(caller);
        let mut names: Vec<_> = servers.iter().map(|s| s.config().name.clone()).collect();
        for server in &servers {
            if let Some(known) = self.of::<T>(server, caller) {
                names.extend(known.list.iter().map(|item| item.dotted()));
            }
        }
        let wrong_server = readings(name).next().map(|(server, _)| server);
        if let Some(failure) =
            wrong_server.and_then(|server| self.pool.is_elsewhere(server, caller))
        {
            return failure;
        }
        let failure = match wrong_server {
            Some(server) => Failure::new(
                Reason::ServerNotFound,
                format!("there is no server {server:?}"),
            ),
            None => Failure::new(T::NOT_FOUND, format!("there is no {} {name:?}", T::NOUN)),
        };
        let bare = names.iter().find(|n| n.rsplit('.').next() == Some(name));
        let near = bare
            .map(String::as_str)
            .or_else(|| nearest(name, names.iter().map(String::as_str)));
        failure.with(|details| {
            details.suggestion = near.map(str::to_owned);
            let (command, noun) = (T::COMMAND, T::NOUN);
            details.hint = Some(format!("`nexusctl {command}` lists the {noun}s there are"));
        })
    }
}

/// Whether the lists of a server will be known soon, without anybody having to wake it.
pub(super) fn is_coming(readiness: &Readiness) -> bool {
    matches!(readiness, Readiness::Wait | Readiness::Ready(_))
}

fn no_such_item<T: Item>(
    server: &Server,
    names: &Names<T>,
    name: &str,
    list_error: Option<String>,
) -> Failure {
    let config = server.config();
    let (noun, command) = (T::NOUN, T::COMMAND);
    let near = nearest(name, names.list.iter().map(|item| item.own_name()));
    if let Some(error) = list_error {
        let message = format!(
            "the {noun}s of {:?} could not be listed: {error}",
            config.name
        );
        return Failure::new(T::NOT_FOUND, message).with(|details| {
            details.server = Some(config.name.clone());
            details.hint = Some(format!("`nexusctl refresh {}` asks again", config.slug));
        });
    }
    if T::KIND == Kind::Tools && !config.tools.passes(name) {
        let message = format!(
            "the tool {name:?} of {:?} is left out by the configuration",
            config.name
        );
        return Failure::new(T::NOT_FOUND, message).with(|details| {
            details.server = Some(config.name.clone());
            details.hint = Some(
                "see \"include_tools\" and \"exclude_tools\" in `nexusctl config show`".to_owned(),
            );
        });
    }
    Failure::new(
        T::NOT_FOUND,
        format!("the server {:?} has no {noun} {name:?}", config.name),
    )
    .with(|details| {
        details.server = Some(config.name.clone());
        details.suggestion = near.map(|near| format!("{}.{near}", config.slug));
        let slug = &config.slug;
        details.hint = Some(format!(
            "`nexusctl {command} --server {slug}` lists its {noun}s"
        ));
    })
}
