//! Who may share a process with whom.

use crate::{
    agent::{Agent, Answers},
    config::Sharing,
};
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
pub struct Key {
    /// Whose it is.
    pub whose: Whose,
    /// What those who use it can be asked. A legacy server is told so once, when it is started.
    pub answers: Answers,
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

impl Key {
    /// The key of the process that all share.
    pub const SHARED: Self = Self {
        whose: Whose::Everybody,
        answers: Answers::ALL,
    };

    /// The key of a caller. Whoever does not tell what is asked for shares with nobody.
    ///
    /// `asks`: the server has shown that it puts questions to its clients. Until then it is told that all
    /// can be answered; from then on it is told the truth.
    pub fn of(sharing: Sharing, caller: &Caller, asks: bool) -> Self {
        let own = Whose::Agent(caller.agent.id());
        let whose = match sharing {
            Sharing::Shared => Whose::Everybody,
            Sharing::PerAgent => own,
            Sharing::PerProject => caller.project.clone().map_or(own, Whose::Project),
            Sharing::PerCredential => caller.credential.clone().map_or(own, Whose::Credential),
        };
        let answers = if asks {
            caller.agent.answers()
        } else {
            Answers::ALL
        };
        Self { whose, answers }
    }

    /// The same, of a process that was told that all can be answered.
    pub(super) fn unaware(&self) -> Self {
        Self {
            answers: Answers::ALL,
            ..self.clone()
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
        secret
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
        match self.answers {
            Answers::ALL => Ok(()),
            Answers::NONE => f.write_str(", cannot be asked"),
            _ => f.write_str(", can be asked some things"),
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
        let same = |sharing, a, b| Key::of(sharing, a, false) == Key::of(sharing, b, false);
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
            assert_ne!(Key::of(sharing, &one, false), Key::of(sharing, &two, false));
        }
    }

    #[test]
    fn a_credential_is_never_printed() {
        let key = Key::of(
            Sharing::PerCredential,
            &caller(None, Some("hunter2")),
            false,
        );
        assert!(!format!("{key:?} {key}").contains("hunter2"));
    }

    #[test]
    fn only_where_a_server_asks_does_it_matter_who_can_be_asked() {
        let one = caller(None, None);
        let (to, _from) = tokio::sync::mpsc::channel(1);
        let hello = crate::agent::Hello {
            answers: Answers::ALL,
            ..crate::agent::Hello::default()
        };
        let two = caller(None, None);
        two.agent.attach(crate::agent::Attachment::new(hello, to));
        let key = |caller, asks| Key::of(Sharing::Shared, caller, asks);
        assert_eq!(key(&one, false), key(&two, false));
        assert_ne!(key(&one, true), key(&two, true));
        assert_eq!(key(&two, true), Key::SHARED);
        assert_eq!(key(&one, true).unaware(), Key::SHARED);
        assert_ne!(key(&one, true).secret(), key(&two, true).secret());
    }
}
