//! Who somebody is to us. Pure.

use nexus_config::policy::{Consent, Level, Policy, Rate, Subject, is_program};

/// Agents that run in a terminal: what they start is theirs, also where it is `nexusctl`. Editors are not among
/// them: people use the terminals of their editors.
const AGENTS: &[&str] = &[
    "aider",
    "amp",
    "claude",
    "codex",
    "copilot",
    "crush",
    "cursor-agent",
    "gemini",
    "goose",
    "opencode",
    "qwen",
];

/// Whom somebody speaks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Role {
    /// Themselves: a program that works for somebody.
    #[default]
    Agent,
    /// Whoever runs the daemon.
    Operator,
}

/// Who somebody is to us.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Standing {
    /// Whom they speak for.
    pub role: Role,
    /// How much they are trusted.
    pub level: Level,
    /// When somebody is asked for them, if a rule says so.
    pub consent: Option<Consent>,
    /// The rule that says so.
    pub rule: Option<String>,
    /// The profile that they have.
    pub profile: Option<String>,
    /// How often they may call.
    pub rate_limit: Option<Rate>,
}

impl Standing {
    /// The operator: everything is seen, and nobody is asked.
    pub const OPERATOR: Self = Self {
        role: Role::Operator,
        level: Level::Yolo,
        consent: None,
        rule: None,
        profile: None,
        rate_limit: None,
    };

    /// That of an agent.
    pub fn of(policy: &Policy, who: Subject<'_>) -> Self {
        let rule = policy.rule_for(who);
        Self {
            role: Role::Agent,
            level: rule
                .and_then(|rule| rule.level)
                .or(policy.level)
                .unwrap_or_default(),
            consent: rule.and_then(|rule| rule.consent),
            rule: rule.map(|rule| rule.name.clone()),
            profile: rule.and_then(|rule| rule.profile.clone()),
            rate_limit: rule.and_then(|rule| rule.rate_limit).or(policy.rate_limit),
        }
    }

    /// Whether they are the operator.
    pub fn is_operator(&self) -> bool {
        self.role == Role::Operator
    }

    /// Whether they may use no server.
    pub fn is_sandboxed(&self) -> bool {
        self.level == Level::Sandboxed
    }
}

/// Whether a program is the operator's: it is named as one, or it is `nexusctl` and no agent has started it.
pub fn is_operator(policy: &Policy, own: &[String], starters: &[Vec<String>]) -> bool {
    // The file alone: a process may call itself anything, and so may a script.
    let own = own.get(..2).unwrap_or(own);
    let is_named = is_program(&policy.operators, own);
    let is_ours = own.iter().any(|name| name == "nexusctl");
    let is_agent = |names: &Vec<String>| {
        names.iter().any(|name| AGENTS.contains(&name.as_str()))
            || policy
                .rules
                .iter()
                .any(|rule| is_program(&rule.programs, names))
    };
    is_named || is_ours && !starters.iter().any(is_agent)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nexus_config::policy::Rule;

    fn of(list: &[&str]) -> Vec<String> {
        list.iter().map(|text| (*text).to_owned()).collect()
    }

    #[test]
    fn nexusctl_is_the_operators_unless_an_agent_has_started_it() {
        let nexusctl = of(&["/usr/bin/nexusctl", "nexusctl"]);
        let shell = of(&["/bin/bash", "bash"]);
        let plain = Policy::default();
        let is_operator = |policy: &Policy, own: &[String], starters: &[&[String]]| {
            let starters: Vec<_> = starters.iter().map(|names| names.to_vec()).collect();
            super::is_operator(policy, own, &starters)
        };
        assert!(is_operator(
            &plain,
            &nexusctl,
            &[&shell, &of(&["gnome-terminal"])]
        ));
        assert!(!is_operator(
            &plain,
            &nexusctl,
            &[&shell, &of(&["/opt/claude", "claude"])]
        ));
        assert!(!is_operator(
            &plain,
            &of(&["/usr/bin/dashboard", "dashboard"]),
            &[]
        ));
        assert!(!is_operator(&plain, &[], &[]));
        let policy = Policy {
            operators: of(&["dashboard"]),
            rules: vec![Rule {
                programs: of(&["my-agent"]),
                ..Rule::default()
            }],
            ..Policy::default()
        };
        assert!(is_operator(
            &policy,
            &of(&["/usr/bin/dashboard", "dashboard"]),
            &[]
        ));
        assert!(!is_operator(
            &policy,
            &nexusctl,
            &[&shell, &of(&["my-agent"])]
        ));
    }

    #[test]
    fn nobody_is_trusted_more_than_is_written() {
        let rule = |name: &str, level| Rule {
            name: name.to_owned(),
            agents: vec![format!("{name}*")],
            level,
            ..Rule::default()
        };
        let policy = Policy {
            level: Some(Level::Sandboxed),
            rules: vec![rule("a", Some(Level::Yolo)), rule("b", None)],
            ..Policy::default()
        };
        let level = |policy: &Policy, name: &str| {
            let who = Subject {
                name,
                programs: &[],
                project: None,
                home: None,
            };
            Standing::of(policy, who).level
        };
        assert_eq!(level(&policy, "agent"), Level::Yolo);
        assert_eq!(level(&policy, "b"), Level::Sandboxed);
        assert_eq!(level(&policy, "c"), Level::Sandboxed);
        assert_eq!(level(&Policy::default(), "c"), Level::Trusted);
    }
}
