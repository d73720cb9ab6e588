//! Who may share a process with whom.

use super::{Server, Sight};
use crate::{
    agent::{Agent, Answers, Standing},
    config::Sharing,
    policy::{for_agent, not_operator},
};
use nexus_config::policy::Level;
use nexus_proto::reason::Failure;
use std::{fmt, path::PathBuf, sync::Arc};

/// What somebody shows to be let in. It is never printed.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Credential(Arc<[u8]>);

impl Credential {
    /// What was shown.
    pub fn new(shown: &[u8]) -> Self {
        Self(shown.into())
    }
}

impl Credential {
    /// Gives it away.
    pub(super) fn expose(&self) -> String {
        String::from_utf8_lossy(&self.0).into_owned()
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
    /// Whom a server's questions go to: the client, or one request of it that can be asked on its own.
    pub party: Arc<Agent>,
    /// The folder it works in.
    pub project: Option<PathBuf>,
    /// What it shows.
    pub credential: Option<Credential>,
    /// What of the pool it sees.
    pub sight: Arc<Sight>,
    /// Who it is to us.
    pub standing: Arc<Standing>,
}

impl Caller {
    /// A client that has told nothing about itself.
    pub fn of(agent: Arc<Agent>) -> Self {
        Self {
            party: Arc::clone(&agent),
            agent,
            project: None,
            credential: None,
            sight: Arc::default(),
            standing: Arc::default(),
        }
    }

    /// Whether it sees this server. What somebody does not see does not exist for them.
    pub fn sees(&self, server: &Server) -> bool {
        !self.standing.is_sandboxed() && self.sight.has(server) && server.is_for(self)
    }
}

impl Caller {
    /// Whether it may look at this server: what it sees, and all for the operator.
    pub fn oversees(&self, server: &Server) -> bool {
        self.standing.is_operator() || self.sees(server)
    }

    /// A failure as it may be told to it.
    pub fn may_know(&self, failure: Failure) -> Failure {
        match self.standing.is_operator() {
            true => failure,
            false => for_agent(failure),
        }
    }

    /// An error unless it may steer what others use too: the operator may, and whoever is never asked.
    pub fn check_control(&self) -> Result<(), Failure> {
        if self.standing.level == Level::Yolo {
            return Ok(());
        }
        Err(not_operator("ask the user to do it"))
    }
}

/// Which process of a server: those who have the same key share it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Key {
    /// Whose it is.
    pub whose: Whose,
    /// What those who use it can be asked. A legacy server is told so once, when it is started.
    pub answers: Answers,
    /// The folders that they work in, for a server that asks for them: it may keep to what it was told.
    pub roots: Option<Folders>,
}

/// Some folders: the same number for the same ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Folders(u64);

/// What a server has shown that it asks its clients.
#[derive(Debug, Clone, Copy, Default)]
pub struct Asks {
    /// Anything.
    pub anything: bool,
    /// Which folders they work in.
    pub roots: bool,
}

/// Whose a process is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Whose {
    /// Everybody's.
    Everybody,
    /// One agent's.
    Agent(u64),
    /// That of everybody in one folder.
    Project(PathBuf),
    /// That of everybody with one credential.
    Credential(Credential),
}

impl Whose {
    /// Whether it is this caller's too.
    pub(super) fn has(&self, caller: &Caller) -> bool {
        match self {
            Self::Everybody => true,
            Self::Agent(id) => *id == caller.agent.id(),
            Self::Project(folder) => Some(folder) == caller.project.as_ref(),
            Self::Credential(shown) => Some(shown) == caller.credential.as_ref(),
        }
    }
}

impl Key {
    /// The key of the process that all share.
    pub const SHARED: Self = Self {
        whose: Whose::Everybody,
        answers: Answers::ALL,
        roots: None,
    };

    /// The key of a caller. Whoever does not tell what is asked for shares with nobody.
    ///
    /// Until a server has shown that it asks, it is told that all can be answered; from then on it is
    /// told the truth. A process that is one agent's own is told it from the start.
    pub fn of(sharing: Sharing, caller: &Caller, asks: Asks) -> Self {
        let own = Whose::Agent(caller.agent.id());
        let whose = match sharing {
            Sharing::Shared => Whose::Everybody,
            Sharing::PerAgent => own,
            Sharing::PerProject => caller.project.clone().map_or(own, Whose::Project),
            Sharing::PerCredential => caller.credential.clone().map_or(own, Whose::Credential),
        };
        let is_own = matches!(whose, Whose::Agent(_));
        let answers = match (is_own, asks.anything) {
            (true, _) => caller.agent.own_answers(),
            (false, true) => caller.party.answers(),
            (false, false) => Answers::ALL,
        };
        let roots = (asks.roots && !is_own && answers.roots).then(|| Folders::of(caller));
        Self {
            whose,
            answers,
            roots,
        }
    }

    /// The same, of a process that was told that all can be answered.
    pub(super) fn unaware(&self) -> Self {
        match self.whose {
            Whose::Agent(_) => self.clone(),
            _ => Self {
                whose: self.whose.clone(),
                ..Self::SHARED
            },
        }
    }

    /// What is only known to those who share the process, or told to it, if that is so.
    pub(super) fn secret(&self) -> Vec<u8> {
        let mut secret = match &self.whose {
            Whose::Credential(Credential(shown)) => shown.to_vec(),
            Whose::Everybody | Whose::Agent(_) | Whose::Project(_) => Vec::new(),
        };
        if self.answers != Answers::ALL {
            secret.extend_from_slice(self.answers.declaration().as_bytes());
        }
        if let Some(Folders(number)) = self.roots {
            secret.extend_from_slice(&number.to_le_bytes());
        }
        secret
    }
}

impl Folders {
    /// Those of a caller, as far as they are known; else the one that it says it works in.
    fn of(caller: &Caller) -> Self {
        use std::hash::{DefaultHasher, Hash as _, Hasher as _};
        let mut hasher = DefaultHasher::new();
        let attachment = caller.party.attachment();
        let told = attachment.filter(|attachment| attachment.hello.roots.is_some());
        match told {
            Some(attachment) => {
                for root in attachment.roots() {
                    root.uri.hash(&mut hasher);
                }
            }
            None => caller.project.hash(&mut hasher),
        }
        Self(hasher.finish())
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.whose {
            Whose::Everybody => f.write_str("shared")?,
            Whose::Agent(id) => write!(f, "agent {id}")?,
            Whose::Project(path) => write!(f, "project {}", path.display())?,
            Whose::Credential(_) => f.write_str("credential ***")?,
        }
        match (self.answers, &self.whose) {
            (Answers::ALL, _) | (_, Whose::Agent(_)) => {}
            (Answers::NONE, _) => f.write_str(", cannot be asked")?,
            _ => f.write_str(", can be asked some things")?,
        }
        match self.roots {
            Some(Folders(number)) => write!(f, ", folders {:04x}", number & 0xffff),
            None => Ok(()),
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
            ..Caller::of(Arc::default())
        }
    }

    #[test]
    fn only_those_share_who_have_the_same_of_what_counts() {
        let one = caller(Some("/a"), Some("x"));
        let two = caller(Some("/a"), Some("y"));
        let three = caller(Some("/b"), Some("x"));
        let same = |sharing, a, b| {
            Key::of(sharing, a, Asks::default()) == Key::of(sharing, b, Asks::default())
        };
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
            let key = |caller| Key::of(sharing, caller, Asks::default());
            assert_ne!(key(&one), key(&two));
        }
    }

    #[test]
    fn a_credential_is_never_printed() {
        let asks = Asks::default();
        let key = Key::of(Sharing::PerCredential, &caller(None, Some("hunter2")), asks);
        assert!(!format!("{key:?} {key}").contains("hunter2"));
    }

    fn attached(answers: Answers, roots: &[&str]) -> Caller {
        use crate::agent::{Attachment, Hello, Root};
        let (to, _from) = tokio::sync::mpsc::channel(1);
        let root = |uri: &&str| Root {
            uri: (*uri).to_owned(),
            name: String::new(),
        };
        let hello = Hello {
            answers,
            roots: Some(roots.iter().map(root).collect()),
            ..Hello::default()
        };
        let caller = caller(None, None);
        caller.party.attach(Attachment::new(hello, to));
        caller
    }

    #[test]
    fn only_where_a_server_asks_does_it_matter_who_can_be_asked() {
        let (one, two) = (caller(None, None), attached(Answers::ALL, &[]));
        let key = |caller, anything| {
            let asks = Asks {
                anything,
                roots: false,
            };
            Key::of(Sharing::Shared, caller, asks)
        };
        assert_eq!(key(&one, false), key(&two, false));
        assert_ne!(key(&one, true), key(&two, true));
        assert_eq!(key(&two, true), Key::SHARED);
        assert_eq!(key(&one, true).unaware(), Key::SHARED);
        assert_ne!(key(&one, true).secret(), key(&two, true).secret());
        let own = |asks| Key::of(Sharing::PerAgent, &one, asks);
        let all = Asks {
            anything: true,
            roots: true,
        };
        assert_eq!(own(Asks::default()), own(all));
    }

    #[test]
    fn a_server_that_asks_for_folders_serves_those_who_work_in_the_same() {
        let key = |roots: &[&str]| {
            let asks = Asks {
                anything: true,
                roots: true,
            };
            Key::of(Sharing::Shared, &attached(Answers::ALL, roots), asks)
        };
        assert_eq!(key(&["file:///a"]), key(&["file:///a"]));
        assert_ne!(key(&["file:///a"]), key(&["file:///b"]));
        assert_ne!(key(&["file:///a"]), key(&["file:///a", "file:///b"]));
    }
}
