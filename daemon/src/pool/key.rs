//! Who may share a process with whom.

use crate::config::Sharing;
use std::{
    fmt,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};
use tokio::sync::watch;

/// One client, for as long as it is connected. When the last hold on it is dropped, the processes that
/// are its own end.
#[derive(Debug)]
pub struct Agent {
    id: u64,
    present: watch::Sender<()>,
}

impl Agent {
    /// A client that has just come.
    pub fn new() -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        Self {
            id: LAST.fetch_add(1, Ordering::Relaxed) + 1,
            present: watch::channel(()).0,
        }
    }

    /// Its number. No two clients of one daemon have the same.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Done when it has gone.
    pub(super) fn gone(&self) -> impl Future<Output = ()> + Send + 'static {
        let mut present = self.present.subscribe();
        // Nothing is ever sent: the only change is the end.
        async move { while present.changed().await.is_ok() {} }
    }
}

impl Default for Agent {
    fn default() -> Self {
        Self::new()
    }
}

/// What somebody shows to be let in. It is never printed.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Credential(Arc<[u8]>);

impl Credential {
    /// What was shown.
    pub fn new(shown: &[u8]) -> Self {
        Self(shown.into())
    }
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credential(***)")
    }
}

/// Who is asking.
#[derive(Debug, Clone)]
pub struct Caller {
    /// The client.
    pub agent: Arc<Agent>,
    /// The folder it works in.
    pub project: Option<PathBuf>,
    /// What it shows.
    pub credential: Option<Credential>,
}

impl Caller {
    /// A client that has told nothing about itself.
    pub fn of(agent: Arc<Agent>) -> Self {
        Self {
            agent,
            project: None,
            credential: None,
        }
    }
}

/// Which process of a server: those who have the same key share it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Key {
    /// Everybody's.
    Shared,
    /// One agent's.
    Agent(u64),
    /// That of everybody in one folder.
    Project(PathBuf),
    /// That of everybody with one credential.
    Credential(Credential),
}

impl Key {
    /// The key of a caller. Whoever does not tell what is asked for shares with nobody.
    pub fn of(sharing: Sharing, caller: &Caller) -> Self {
        let own = Self::Agent(caller.agent.id());
        match sharing {
            Sharing::Shared => Self::Shared,
            Sharing::PerAgent => own,
            Sharing::PerProject => caller.project.clone().map_or(own, Self::Project),
            Sharing::PerCredential => caller.credential.clone().map_or(own, Self::Credential),
        }
    }
}

impl Key {
    /// What is only known to those who share the process, if that is so.
    pub(super) fn secret(&self) -> &[u8] {
        match self {
            Self::Credential(Credential(shown)) => shown,
            Self::Shared | Self::Agent(_) | Self::Project(_) => b"",
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shared => f.write_str("shared"),
            Self::Agent(id) => write!(f, "agent {id}"),
            Self::Project(path) => write!(f, "project {}", path.display()),
            Self::Credential(_) => f.write_str("credential ***"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(project: Option<&str>, credential: Option<&str>) -> Caller {
        Caller {
            project: project.map(PathBuf::from),
            credential: credential.map(|shown| Credential::new(shown.as_bytes())),
            ..Caller::of(Arc::new(Agent::new()))
        }
    }

    #[test]
    fn only_those_share_who_have_the_same_of_what_counts() {
        let one = caller(Some("/a"), Some("x"));
        let two = caller(Some("/a"), Some("y"));
        let three = caller(Some("/b"), Some("x"));
        let same = |sharing, a, b| Key::of(sharing, a) == Key::of(sharing, b);
        assert!(same(Sharing::Shared, &one, &two));
        assert!(!same(Sharing::PerAgent, &one, &two));
        assert!(same(Sharing::PerAgent, &one, &one));
        assert!(same(Sharing::PerProject, &one, &two));
        assert!(!same(Sharing::PerProject, &one, &three));
        assert!(same(Sharing::PerCredential, &one, &three));
        assert!(!same(Sharing::PerCredential, &one, &two));
    }

    #[test]
    fn whoever_tells_nothing_shares_with_nobody() {
        let (one, two) = (caller(None, None), caller(None, None));
        for sharing in [Sharing::PerProject, Sharing::PerCredential] {
            assert_ne!(Key::of(sharing, &one), Key::of(sharing, &two));
        }
    }

    #[test]
    fn a_credential_is_never_printed() {
        let key = Key::of(Sharing::PerCredential, &caller(None, Some("hunter2")));
        assert!(!format!("{key:?} {key}").contains("hunter2"));
    }

    #[tokio::test]
    async fn an_agent_is_gone_when_nobody_holds_it() {
        let agent = Arc::new(Agent::new());
        let mut gone = std::pin::pin!(agent.gone());
        let held = Arc::clone(&agent);
        drop(agent);
        assert!(futures_util::poll!(&mut gone).is_pending());
        drop(held);
        gone.await;
    }
}
