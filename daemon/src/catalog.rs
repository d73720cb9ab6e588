//! The tools of all servers, under one set of names.

mod schema;
mod search;
mod tool;

pub use search::search;
pub use tool::Tool;

use crate::{
    mcp::handshake::ToolList,
    nearest::nearest,
    pool::{Pool, Server, check_length, key::Caller},
    supervisor::status::Readiness,
};
use nexus_proto::{
    name::{Slug, readings, tool_name},
    reason::{Failure, Reason},
};
use parking_lot::Mutex;
use std::{collections::HashMap, sync::Arc};

/// A tool, and the server that has it.
#[derive(Debug, Clone)]
pub struct Found {
    /// The server.
    pub server: Arc<Server>,
    /// The tool.
    pub tool: Arc<Tool>,
}

/// Why a name leads to no tool.
#[derive(Debug)]
pub enum NotFound {
    /// This server may have it once its tools are known: the one that was named, or one of many.
    AskLater(Arc<Server>, Named),
    /// Nobody has it.
    Never(Failure),
}

/// Whether somebody said which server has a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Named {
    /// The server was named.
    Yes,
    /// It is one of those that might have a tool of that bare name.
    No,
}

/// The tools of one server, under their names.
#[derive(Debug)]
pub struct ServerTools {
    /// In the server's own order.
    pub list: Vec<Arc<Tool>>,
    by_name: HashMap<String, Arc<Tool>>,
    by_agent_name: HashMap<String, Arc<Tool>>,
    source: Arc<ToolList>,
    slug: Slug,
}

impl ServerTools {
    fn new(server: &str, slug: &Slug, source: &Arc<ToolList>) -> Self {
        let mut tools = Self {
            list: Vec::with_capacity(source.tools.len()),
            by_name: HashMap::new(),
            by_agent_name: HashMap::new(),
            source: Arc::clone(source),
            slug: slug.clone(),
        };
        for definition in &source.tools {
            let name = tool_name(slug, &definition.name);
            let tool = Arc::new(Tool::new(name.clone(), server.to_owned(), definition));
            tools.list.push(Arc::clone(&tool));
            tools
                .by_name
                .insert(definition.name.clone(), Arc::clone(&tool));
            // Two names that are shortened to the same: the first keeps it.
            tools.by_agent_name.entry(name).or_insert(tool);
        }
        tools
    }
}

/// The tools of all servers.
#[derive(Debug)]
pub struct Catalog {
    pool: Arc<Pool>,
    /// Of each server what those lists come to that somebody still holds: agents may see different ones.
    known: Mutex<HashMap<String, Vec<Arc<ServerTools>>>>,
}

impl Catalog {
    /// The catalog of a pool.
    pub fn new(pool: Arc<Pool>) -> Self {
        Self {
            pool,
            known: Mutex::default(),
        }
    }

    /// The servers that it is the catalog of.
    pub fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    /// The tools of a server as this caller sees them, if they have ever been listed.
    pub fn tools_of(&self, server: &Server, caller: &Caller) -> Option<Arc<ServerTools>> {
        let source = server.tools_for(caller)?;
        let config = server.config();
        let mut known = self.known.lock();
        let of_server = known.entry(config.name.clone()).or_default();
        let is_it = |tools: &&Arc<ServerTools>| {
            Arc::ptr_eq(&tools.source, &source) && tools.slug == config.slug
        };
        if let Some(tools) = of_server.iter().find(is_it) {
            return Some(Arc::clone(tools));
        }
        let tools = Arc::new(ServerTools::new(&config.name, &config.slug, &source));
        // Lists that only we remember are nobody's any more.
        of_server.retain(|old| Arc::strong_count(&old.source) > 1 && old.slug == config.slug);
        of_server.push(Arc::clone(&tools));
        let servers = self.pool.servers();
        known.retain(|name, _| servers.contains_key(name));
        Some(tools)
    }

    /// The tool that somebody calls `name`.
    ///
    /// A bare name is not looked for at the servers in `without`.
    pub fn find(
        &self,
        name: &str,
        caller: &Caller,
        without: &[Arc<Server>],
    ) -> Result<Found, NotFound> {
        check_length(name).map_err(NotFound::Never)?;
        let mut unlisted = None;
        let mut named_server = None;
        for (server_name, tool_name) in readings(name) {
            let Some(server) = self.pool.find(server_name) else {
                continue;
            };
            match self.tools_of(&server, caller) {
                Some(tools) => {
                    let by_name = tools.by_name.get(tool_name);
                    if let Some(tool) = by_name.or_else(|| tools.by_agent_name.get(name)) {
                        let tool = Arc::clone(tool);
                        return Ok(Found { server, tool });
                    }
                    named_server.get_or_insert((server, tools, tool_name));
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
            Some((server, tools, tool)) => {
                let error = server.lists_for(caller).error;
                Err(NotFound::Never(no_such_tool(&server, &tools, tool, error)))
            }
            None => self.find_bare(name, caller, without),
        }
    }

    /// A bare name, which is good where only one server has it.
    fn find_bare(
        &self,
        name: &str,
        caller: &Caller,
        without: &[Arc<Server>],
    ) -> Result<Found, NotFound> {
        let mut found: Vec<Found> = Vec::new();
        let mut unlisted = None;
        let is_left_out = |server: &Arc<Server>| without.iter().any(|out| Arc::ptr_eq(out, server));
        let is_dotted = readings(name).next().is_some();
        let servers = self.pool.servers();
        for server in servers.values().filter(|server| !is_left_out(server)) {
            match self.tools_of(server, caller) {
                Some(tools) => found.extend(tools.by_name.get(name).map(|tool| Found {
                    server: Arc::clone(server),
                    tool: Arc::clone(tool),
                })),
                // One that keeps ending, or would have to be woken for it, is not worth the wait; nor is
                // any for a name that says which server is meant.
                None if !is_dotted && matches!(server.readiness_for(caller), Readiness::Wait) => {
                    unlisted.get_or_insert_with(|| Arc::clone(server));
                }
                None => {}
            }
        }
        match (found.len(), unlisted) {
            (1, None) => found
                .pop()
                .ok_or_else(|| NotFound::Never(self.no_such_name(name, caller))),
            // It may turn out to be known to a second one.
            (_, Some(server)) => Err(NotFound::AskLater(server, Named::No)),
            (0, None) => Err(NotFound::Never(self.no_such_name(name, caller))),
            (_, None) => {
                let names: Vec<&str> = found.iter().map(|found| &*found.tool.name).collect();
                Err(NotFound::Never(
                    Failure::new(
                        Reason::AmbiguousName,
                        format!("several servers have a tool {name:?}"),
                    )
                    .with(|details| {
                        details.hint = Some(format!("say which: {}", names.join(", ")))
                    }),
                ))
            }
        }
    }

    fn no_such_name(&self, name: &str, caller: &Caller) -> Failure {
        let servers = self.pool.servers();
        let mut names: Vec<String> = servers.keys().cloned().collect();
        for server in servers.values() {
            if let Some(tools) = self.tools_of(server, caller) {
                names.extend(tools.list.iter().map(|tool| tool.dotted()));
            }
        }
        let wrong_server = readings(name).next().map(|(server, _)| server);
        let failure = match wrong_server {
            Some(server) => Failure::new(
                Reason::ServerNotFound,
                format!("there is no server {server:?}"),
            ),
            None => Failure::new(Reason::ToolNotFound, format!("there is no tool {name:?}")),
        };
        let bare = names.iter().find(|n| n.rsplit('.').next() == Some(name));
        let near = bare
            .map(String::as_str)
            .or_else(|| nearest(name, names.iter().map(String::as_str)));
        failure.with(|details| {
            details.suggestion = near.map(str::to_owned);
            details.hint = Some("`nexusctl tools` lists the tools there are".to_owned());
        })
    }
}

fn no_such_tool(
    server: &Server,
    tools: &ServerTools,
    tool: &str,
    list_error: Option<String>,
) -> Failure {
    let config = server.config();
    let near = nearest(tool, tools.list.iter().map(|tool| tool.tool.as_str()));
    if let Some(error) = list_error {
        let message = format!(
            "the tools of {:?} could not be listed: {error}",
            config.name
        );
        return Failure::new(Reason::ToolNotFound, message).with(|details| {
            details.server = Some(config.name.clone());
            details.hint = Some(format!("`nexusctl refresh {}` asks again", config.slug));
        });
    }
    Failure::new(
        Reason::ToolNotFound,
        format!("the server {:?} has no tool {tool:?}", config.name),
    )
    .with(|details| {
        details.server = Some(config.name.clone());
        details.suggestion = near.map(|near| format!("{}.{near}", config.slug));
        details.hint = Some(format!(
            "`nexusctl tools --server {}` lists its tools",
            config.slug
        ));
    })
}
