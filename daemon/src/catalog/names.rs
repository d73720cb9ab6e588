//! What one server has of one kind, under the names that agents use.

use super::{Catalog, search::Index};
use crate::{
    config::{ServerConfig, ToolFilter},
    mcp::lists::{Definition, Kind, List},
    policy::pins::{Judgement, Pins},
    pool::{Pool, Server},
};
use nexus_config::Profile;
use nexus_proto::{
    name::{Slug, tool_name},
    reason::{Failure, Reason},
};
use parking_lot::Mutex;
use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
};

/// What has a name on its server: a tool or a prompt.
pub trait Item: Sized + Send + Sync + 'static {
    /// Which list it is in.
    const KIND: Kind;
    /// What one is called.
    const NOUN: &'static str;
    /// Why there is none of some name.
    const NOT_FOUND: Reason;
    /// The command that lists them.
    const COMMAND: &'static str;

    /// One that is called `name` by agents.
    fn new(name: String, server: String, definition: &Definition) -> Self;
    /// Its name towards agents.
    fn name(&self) -> &str;
    /// The name of its server.
    fn server(&self) -> &str;
    /// Its name on its server.
    fn own_name(&self) -> &str;
    #[doc(hidden)]
    fn cache(catalog: &Catalog) -> &Cache<Self>;

    /// Its name as people type it.
    fn dotted(&self) -> String {
        format!("{}.{}", self.server(), self.own_name())
    }
}

/// What one server has of one kind.
#[derive(Debug)]
pub struct Names<T> {
    /// In the server's own order.
    pub list: Vec<Arc<T>>,
    pub(super) by_name: HashMap<String, Arc<T>>,
    pub(super) by_agent_name: HashMap<String, Arc<T>>,
    /// Made by whoever searches first.
    pub(super) index: OnceLock<Index>,
    source: Arc<List>,
    pub(super) slug: Slug,
    filter: ToolFilter,
    /// Of whoever has this profile.
    profile: Option<Arc<Profile>>,
    /// What has changed of them.
    judgement: Arc<Judgement>,
    /// As of when.
    judged_at: u64,
}

impl<T: Item> Names<T> {
    pub(super) fn new(
        config: &ServerConfig,
        source: &Arc<List>,
        profile: Option<&Arc<Profile>>,
        pins: &Pins,
    ) -> Self {
        // Before it is judged: what changes meanwhile is judged again.
        let judged_at = pins.revision();
        let judgement = match T::KIND {
            Kind::Tools => pins.judge(config, source),
            _ => Arc::default(),
        };
        let (server, slug) = (config.name.as_str(), &config.slug);
        let mut names = Self {
            list: Vec::with_capacity(source.entries.len()),
            by_name: HashMap::new(),
            by_agent_name: HashMap::new(),
            index: OnceLock::new(),
            source: Arc::clone(source),
            slug: slug.clone(),
            filter: config.tools.clone(),
            profile: profile.cloned(),
            judgement: Arc::clone(&judgement),
            judged_at,
        };
        // What is left out here can be neither listed nor called.
        let passes = |definition: &&Definition| {
            let tool = &definition.key;
            let servers = [server, slug.as_str()];
            T::KIND != Kind::Tools
                || judgement.held(tool).is_none()
                    && config.tools.passes(tool)
                    && profile.is_none_or(|profile| profile.has_tool(&servers, tool))
        };
        for definition in source.entries.iter().filter(passes) {
            let name = tool_name(slug, &definition.key);
            let item = Arc::new(T::new(name.clone(), server.to_owned(), definition));
            names.list.push(Arc::clone(&item));
            names
                .by_name
                .insert(definition.key.clone(), Arc::clone(&item));
            // Two names that are shortened to the same: the first keeps it.
            names.by_agent_name.entry(name).or_insert(item);
        }
        names
    }

    /// Why there is none of that name, if it is there but held back.
    pub(super) fn held(
        &self,
        config: &ServerConfig,
        own_name: &str,
        name: &str,
    ) -> Option<Failure> {
        let change = self.judgement.held(own_name).or_else(|| {
            let mut held = self.judgement.held_tools();
            let tool = held.find(|tool| tool_name(&self.slug, tool) == name)?;
            self.judgement.held(tool)
        })?;
        let servers = [config.name.as_str(), self.slug.as_str()];
        let is_seen = self.filter.passes(&change.tool)
            && self
                .profile
                .as_ref()
                .is_none_or(|profile| profile.has_tool(&servers, &change.tool));
        is_seen.then(|| Judgement::refusal(config, change))
    }
}

/// Of each server what those lists come to that somebody still holds: agents may see different ones.
#[derive(Debug)]
pub struct Cache<T>(Mutex<HashMap<String, Vec<Arc<Names<T>>>>>);

impl<T> Default for Cache<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T: Item> Cache<T> {
    pub(super) fn get(
        &self,
        server: &Server,
        source: Arc<List>,
        profile: Option<&Arc<Profile>>,
        pool: &Pool,
    ) -> Arc<Names<T>> {
        // One that lets all tools pass is as good as none.
        let profile = profile.filter(|profile| T::KIND == Kind::Tools && !profile.tools.is_open());
        let config = server.config();
        let mut known = self.0.lock();
        let of_server = known.entry(config.name.clone()).or_default();
        let is_it = |names: &&Arc<Names<T>>| {
            Arc::ptr_eq(&names.source, &source)
                && names.slug == config.slug
                && names.filter == config.tools
                && names.judged_at == pool.pins().revision()
                && names.profile.as_ref().map(Arc::as_ptr) == profile.map(Arc::as_ptr)
        };
        if let Some(names) = of_server.iter().find(is_it) {
            return Arc::clone(names);
        }
        let names = Arc::new(Names::new(&config, &source, profile, pool.pins()));
        // Lists that only we remember are nobody's any more.
        of_server.retain(|old| {
            let is_used = |profile: &Arc<Profile>| Arc::strong_count(profile) > 1;
            let is_held =
                Arc::strong_count(&old.source) > 1 && old.profile.as_ref().is_none_or(is_used);
            is_held
                && old.judged_at == names.judged_at
                && old.slug == config.slug
                && old.filter == config.tools
        });
        of_server.push(Arc::clone(&names));
        let servers = pool.servers();
        known.retain(|name, _| servers.contains_key(name));
        names
    }
}
