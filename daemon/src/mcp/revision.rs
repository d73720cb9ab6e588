//! The revisions of MCP. Pure.

/// A revision of the protocol, the oldest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Revision {
    /// The first.
    V2024_11_05,
    /// Batches, and the capability `completions`.
    V2025_03_26,
    /// No batches, elicitation, structured results.
    V2025_06_18,
    /// Elicitation by URL, sampling with tools.
    V2025_11_25,
    /// Stateless: no handshake, everything is told with every request.
    V2026_07_28,
}

impl Revision {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::V2024_11_05,
        Self::V2025_03_26,
        Self::V2025_06_18,
        Self::V2025_11_25,
        Self::V2026_07_28,
    ];

    /// What is offered to a server that begins with `initialize`.
    pub const NEWEST_LEGACY: Self = Self::V2025_11_25;

    /// What is offered to a server that does not.
    pub const MODERN: Self = Self::V2026_07_28;

    /// Its name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }

    /// The revision of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.as_str() == name)
    }

    /// Whether it needs no handshake: each request says all that there is to say.
    pub const fn is_modern(self) -> bool {
        matches!(self, Self::V2026_07_28)
    }
}

/// All revisions that Nexus speaks, for people.
pub fn spoken() -> String {
    Revision::ALL.map(Revision::as_str).join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_revision_has_its_own_name() {
        for revision in Revision::ALL {
            assert_eq!(Revision::parse(revision.as_str()), Some(revision));
        }
        assert_eq!(Revision::parse("1999-01-01"), None);
    }

    #[test]
    fn only_the_newest_is_modern() {
        let modern: Vec<_> = Revision::ALL
            .into_iter()
            .filter(|r| r.is_modern())
            .collect();
        assert_eq!(modern, [Revision::MODERN]);
        assert!(Revision::NEWEST_LEGACY < Revision::MODERN);
    }
}
