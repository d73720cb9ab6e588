//! Whether somebody is asked, and what an answer means. Pure.

use crate::config::ServerRules;
use nexus_config::policy::{Consent, Level};

/// What has been answered for one agent and one server, for as long as the agent is here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Grant {
    /// Nothing yet.
    #[default]
    Nothing,
    /// It may be used, and each call is asked about.
    Each,
    /// Everything.
    All,
    /// It may not be used.
    Denied,
}

/// What becomes of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It goes on.
    Allow,
    /// Somebody is asked.
    Ask(About),
    /// It was refused before.
    Deny,
}

/// What somebody is asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum About {
    /// Whether a server may be used at all.
    Server,
    /// Whether this may be done.
    Call,
}

/// What somebody says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// This call; or the server, with a question for each call.
    Once,
    /// All of this server.
    Server,
    /// No.
    Deny,
    /// Nothing: the question was put away.
    Dismiss,
}

/// When somebody is asked before a server is used. `rule`: what is said of the agent; `default`: what is said of all.
pub fn consent(rule: Option<Consent>, server: &ServerRules, default: Option<Consent>) -> Consent {
    let usual = match (default, server.from_project) {
        (Some(default), _) => default,
        (None, true) => Consent::Server,
        (None, false) => Consent::Never,
    };
    let of_server = match (server.consent, server.from_project) {
        // What comes with a project does not excuse itself.
        (Some(own), true) => usual.or_stricter(own),
        (Some(own), false) => own,
        (None, _) => usual,
    };
    of_server.or_stricter(rule.unwrap_or(Consent::Never))
}

/// What becomes of a request of somebody of this level.
pub fn decide(level: Level, consent: Consent, granted: Grant) -> Verdict {
    match (level, consent, granted) {
        (Level::Sandboxed, _, _) => Verdict::Deny,
        (Level::Yolo, _, _) => Verdict::Allow,
        (Level::Trusted, _, Grant::Denied) => Verdict::Deny,
        (Level::Trusted, _, Grant::All) | (Level::Trusted, Consent::Never, _) => Verdict::Allow,
        (Level::Trusted, Consent::Server, Grant::Nothing) => Verdict::Ask(About::Server),
        (Level::Trusted, Consent::Server, Grant::Each) | (Level::Trusted, Consent::Call, _) => {
            Verdict::Ask(About::Call)
        }
    }
}

/// What is granted after an answer.
pub fn after(granted: Grant, about: About, answer: Answer) -> Grant {
    match (about, answer) {
        (_, Answer::Server) => Grant::All,
        (About::Server, Answer::Once) => Grant::Each,
        (About::Server, Answer::Deny) => Grant::Denied,
        (About::Call, Answer::Once | Answer::Deny) | (_, Answer::Dismiss) => granted,
    }
}

/// Whether the request that was asked about goes on, is asked about once more, or has ended.
pub fn then(about: About, answer: Answer) -> Verdict {
    match (about, answer) {
        (_, Answer::Server) | (About::Call, Answer::Once) => Verdict::Allow,
        (About::Server, Answer::Once) => Verdict::Ask(About::Call),
        (_, Answer::Deny | Answer::Dismiss) => Verdict::Deny,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rules(from_project: bool, consent: Option<Consent>) -> ServerRules {
        ServerRules {
            from_project,
            consent,
            ..ServerRules::default()
        }
    }

    #[test]
    fn own_servers_are_used_and_those_of_projects_are_asked_about() {
        assert_eq!(consent(None, &rules(false, None), None), Consent::Never);
        assert_eq!(consent(None, &rules(true, None), None), Consent::Server);
        let excused = rules(true, Some(Consent::Never));
        assert_eq!(consent(None, &excused, None), Consent::Server);
        let strict = rules(true, Some(Consent::Call));
        assert_eq!(consent(None, &strict, None), Consent::Call);
        let own = rules(false, Some(Consent::Never));
        assert_eq!(consent(None, &own, Some(Consent::Call)), Consent::Never);
        assert_eq!(consent(Some(Consent::Call), &own, None), Consent::Call);
    }

    fn any<T: Copy + std::fmt::Debug + 'static>(all: &'static [T]) -> impl Strategy<Value = T> {
        prop::sample::select(all)
    }

    const GRANTS: &[Grant] = &[Grant::Nothing, Grant::Each, Grant::All, Grant::Denied];
    const ANSWERS: &[Answer] = &[Answer::Once, Answer::Server, Answer::Deny, Answer::Dismiss];

    proptest! {
        /// A request is asked about twice at the most, and only a yes lets it through.
        #[test]
        fn every_request_comes_to_an_end(
            level in any(Level::ALL), consent in any(Consent::ALL), granted in any(GRANTS),
            answers in prop::collection::vec(any(ANSWERS), 2),
        ) {
            let mut granted = granted;
            let mut verdict = decide(level, consent, granted);
            let mut said = Vec::new();
            for answer in answers {
                let Verdict::Ask(about) = verdict else { break };
                said.push(answer);
                granted = after(granted, about, answer);
                verdict = then(about, answer);
            }
            prop_assert!(!matches!(verdict, Verdict::Ask(_)));
            let refused = said.iter().any(|answer| matches!(answer, Answer::Deny | Answer::Dismiss));
            if !said.is_empty() {
                prop_assert_eq!(verdict == Verdict::Allow, !refused);
            }
            if level == Level::Sandboxed {
                prop_assert_eq!(verdict, Verdict::Deny);
            }
        }

        /// A yes to all of a server holds; a no to a server does; a no to a call is forgotten.
        #[test]
        fn what_was_answered_holds(consent in any(Consent::ALL), granted in any(GRANTS), answer in any(ANSWERS)) {
            if let Verdict::Ask(about) = decide(Level::Trusted, consent, granted) {
                let now = after(granted, about, answer);
                let next = decide(Level::Trusted, consent, now);
                match (about, answer) {
                    (_, Answer::Server) => prop_assert_eq!(next, Verdict::Allow),
                    (About::Server, Answer::Deny) => prop_assert_eq!(next, Verdict::Deny),
                    (About::Server, Answer::Once) => prop_assert_eq!(next, Verdict::Ask(About::Call)),
                    _ => prop_assert_eq!(next, Verdict::Ask(about)),
                }
            }
        }

        /// Nothing that is stricter lets more through.
        #[test]
        fn stricter_is_never_more(level in any(Level::ALL), granted in any(GRANTS)) {
            let weight = |consent| match decide(level, consent, granted) {
                Verdict::Allow => 0,
                Verdict::Ask(About::Server) => 1,
                Verdict::Ask(About::Call) => 2,
                Verdict::Deny => 3,
            };
            prop_assert!(weight(Consent::Never) <= weight(Consent::Server));
            prop_assert!(weight(Consent::Server) <= weight(Consent::Call));
        }
    }
}
