//! What of the pool somebody sees. Pure.

use super::Server;

/// What of the pool somebody sees: everything, unless it says otherwise.
#[derive(Debug, Clone, Default)]
pub struct Sight {
    /// These servers; all when there are none.
    only: Vec<String>,
}

impl Sight {
    /// These servers, by any of their names; all when there are none.
    pub fn of(only: Vec<String>) -> Self {
        Self { only }
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
