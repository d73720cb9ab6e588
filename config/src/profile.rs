//! Profiles: what some agents see of the pool, and how. Pure.

use crate::model::{ToolFilter, ToolsMode, matches};
use std::path::Path;

/// What some agents see of the pool, and how.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Profile {
    /// What it is called.
    pub name: String,
    /// These servers; all where there are none.
    pub servers: Vec<String>,
    /// These tools of them. A pattern with a dot is for `server.tool`, one without for any server's.
    pub tools: ToolFilter,
    /// How tools are shown.
    pub mode: Option<ToolsMode>,
    /// It is for agents that call themselves so.
    pub agents: Vec<String>,
    /// It is for agents that work there, or below.
    pub projects: Vec<String>,
}

impl Profile {
    /// Whether a server of these names is seen.
    pub fn has_server(&self, names: &[&str]) -> bool {
        let fits = |pattern: &String| names.iter().any(|name| fits(pattern, name));
        self.servers.is_empty() || self.servers.iter().any(fits)
    }

    /// Whether a tool is seen of a server of these names.
    pub fn has_tool(&self, servers: &[&str], tool: &str) -> bool {
        let fits = |pattern: &String| match pattern.split_once('.') {
            None => matches(pattern, tool),
            Some((server, own)) => {
                // A tool may have dots in its own name.
                matches(pattern, tool)
                    || matches(own, tool) && servers.iter().any(|name| fits(server, name))
            }
        };
        let ToolFilter { include, exclude } = &self.tools;
        (include.is_empty() || include.iter().any(fits)) && !exclude.iter().any(fits)
    }

    /// Whether it is for an agent that calls itself so.
    pub fn is_for_agent(&self, name: &str) -> bool {
        self.agents.iter().any(|pattern| fits(pattern, name))
    }

    /// Whether it is for agents that work in this folder. `home` is what `~` stands for.
    pub fn is_for_project(&self, folder: &Path, home: Option<&Path>) -> bool {
        is_below(&self.projects, folder, home)
    }
}

/// Whether a folder is one of these, or below one. `home` is what `~` stands for.
pub(crate) fn is_below(patterns: &[String], folder: &Path, home: Option<&Path>) -> bool {
    patterns.iter().any(|pattern| {
        let rest = pattern
            .strip_prefix('~')
            .filter(|rest| rest.is_empty() || rest.starts_with('/'));
        let pattern = match (rest, home) {
            (Some(rest), Some(home)) => format!("{}{rest}", home.display()),
            _ => pattern.clone(),
        };
        let here = |folder: &Path| folder.to_str().is_some_and(|text| matches(&pattern, text));
        folder.ancestors().any(here)
    })
}

/// Whether a name fits a pattern, in any case of its letters.
pub(crate) fn fits(pattern: &str, name: &str) -> bool {
    matches(&pattern.to_lowercase(), &name.to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(list: &[&str]) -> Vec<String> {
        list.iter().map(|text| (*text).to_owned()).collect()
    }

    #[test]
    fn it_has_the_servers_and_tools_that_it_names() {
        let profile = Profile {
            servers: of(&["git*", "Files"]),
            tools: ToolFilter {
                include: of(&["read_*", "github.*"]),
                exclude: of(&["github.delete_*", "*secret*"]),
            },
            ..Profile::default()
        };
        assert!(profile.has_server(&["GitHub", "github"]) && profile.has_server(&["files"]));
        assert!(!profile.has_server(&["slack"]));
        assert!(profile.has_tool(&["files"], "read_file"));
        assert!(!profile.has_tool(&["files"], "write_file"));
        assert!(profile.has_tool(&["GitHub"], "create_issue"));
        assert!(!profile.has_tool(&["GitHub"], "delete_repo"));
        assert!(!profile.has_tool(&["GitHub"], "read_secrets"));
        let open = Profile::default();
        assert!(open.has_server(&["x"]) && open.has_tool(&["x"], "y"));
    }

    #[test]
    fn it_is_for_agents_by_name_and_by_folder() {
        let profile = Profile {
            agents: of(&["claude*"]),
            projects: of(&["~/web", "/srv/*/app"]),
            ..Profile::default()
        };
        assert!(profile.is_for_agent("Claude Code") && !profile.is_for_agent("cursor"));
        let home = Some(Path::new("/home/ann"));
        let for_project = |folder: &str| profile.is_for_project(Path::new(folder), home);
        assert!(for_project("/home/ann/web") && for_project("/home/ann/web/src"));
        assert!(!for_project("/home/ann/webs") && !for_project("/home/ann"));
        assert!(for_project("/srv/x/app/y") && !for_project("/srv/x"));
        assert!(!Profile::default().is_for_agent("claude"));
    }
}
