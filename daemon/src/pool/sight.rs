//! What of the pool somebody sees. Pure.

use super::Server;
use nexus_config::{Profile, model::ToolsMode};
use std::{path::Path, sync::Arc};

/// What of the pool somebody sees: everything, unless it says otherwise.
#[derive(Debug, Clone, Default)]
pub struct Sight {
    /// These servers; all when there are none.
    only: Vec<String>,
    /// How tools are shown, if somebody has said so.
    tools: Option<ToolsMode>,
    profile: Chosen,
}

/// Which profile somebody has.
#[derive(Debug, Clone, Default)]
pub enum Chosen {
    /// None: all is seen.
    #[default]
    None,
    /// This one.
    Profile(Arc<Profile>),
    /// One of a name that there is not: nothing is seen.
    Missing(String),
}

impl Chosen {
    /// The profile of whoever wants one by name, or has one by their own name or else by their folder. `home` is
    /// what `~` stands for.
    pub fn of(
        profiles: &[Arc<Profile>],
        wanted: Option<&str>,
        agent: &str,
        project: Option<&Path>,
        home: Option<&Path>,
    ) -> Self {
        let find = |is_it: &dyn Fn(&Profile) -> bool| {
            let found = profiles.iter().find(|profile| is_it(profile));
            found.map(Arc::clone)
        };
        if let Some(name) = wanted {
            let found = find(&|profile| profile.name == name);
            return found.map_or_else(|| Self::Missing(name.to_owned()), Self::Profile);
        }
        let by_folder =
            || find(&|profile| project.is_some_and(|at| profile.is_for_project(at, home)));
        find(&|profile| profile.is_for_agent(agent))
            .or_else(by_folder)
            .map_or(Self::None, Self::Profile)
    }
}

impl Sight {
    /// These servers, by any of their names; all when there are none.
    pub fn of(only: Vec<String>) -> Self {
        Self {
            only,
            ..Self::default()
        }
    }

    /// The same, with tools shown in this way, whatever the profile says.
    #[must_use]
    pub fn with_tools(self, tools: Option<ToolsMode>) -> Self {
        Self { tools, ..self }
    }

    /// The same, of whoever has this profile.
    #[must_use]
    pub fn with_profile(&self, profile: Chosen) -> Self {
        Self {
            profile,
            ..self.clone()
        }
    }

    /// How tools are shown.
    pub fn tools(&self) -> ToolsMode {
        let of_profile = self.profile().and_then(|profile| profile.mode);
        self.tools.or(of_profile).unwrap_or_default()
    }

    /// The profile, if there is one.
    pub fn profile(&self) -> Option<&Arc<Profile>> {
        match &self.profile {
            Chosen::Profile(profile) => Some(profile),
            Chosen::None | Chosen::Missing(_) => None,
        }
    }

    /// The name of the profile that there is not.
    pub fn missing_profile(&self) -> Option<&str> {
        match &self.profile {
            Chosen::Missing(name) => Some(name),
            Chosen::None | Chosen::Profile(_) => None,
        }
    }

    /// The servers that were chosen, as they were named; none when all are.
    pub fn chosen(&self) -> &[String] {
        &self.only
    }

    /// Whether this server is seen.
    pub fn has(&self, server: &Server) -> bool {
        let config = server.config();
        let is_it = |name: &String| {
            config.name.eq_ignore_ascii_case(name)
                || config.slug.as_str().eq_ignore_ascii_case(name)
        };
        let in_profile = match &self.profile {
            Chosen::None => true,
            Chosen::Profile(profile) => profile.has_server(&[&config.name, config.slug.as_str()]),
            Chosen::Missing(_) => false,
        };
        in_profile && (self.only.is_empty() || self.only.iter().any(is_it))
    }
}
