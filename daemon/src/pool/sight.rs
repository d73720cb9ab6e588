//! What of the pool somebody sees. Pure.

use super::Server;

/// What of the pool somebody sees: everything, unless it says otherwise.
#[derive(Debug, Clone, Default)]
pub struct Sight {
    /// These servers; all when there are none.
    only: Vec<String>,
    tools: ToolsMode,
}

/// How an MCP client gets at tools.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ToolsMode {
    /// All are in its list.
    #[default]
    Direct,
    /// Its list has two tools, one that finds tools and one that calls them: for many tools and a small context.
    Search,
    /// Its list has these two and all others.
    Both,
}

impl ToolsMode {
    /// The mode of that name.
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "direct" => Some(Self::Direct),
            "search" => Some(Self::Search),
            "both" => Some(Self::Both),
            _ => None,
        }
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

    /// The same, with tools shown in this way.
    #[must_use]
    pub fn with_tools(self, tools: ToolsMode) -> Self {
        Self { tools, ..self }
    }

    /// How tools are shown.
    pub fn tools(&self) -> ToolsMode {
        self.tools
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
        self.only.is_empty() || self.only.iter().any(is_it)
    }
}
