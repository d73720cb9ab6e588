//! Who may do what.

mod approvals;
mod asking;
pub mod audit;
pub mod consent;
mod errors;
pub mod limits;
pub mod rate;
mod standing;
mod wording;

pub use approvals::{Approvals, Change, Question};
pub use asking::{Action, Applicant};
pub use audit::Audit;
pub use errors::for_agent;
pub use limits::{Limit, Limits};
pub use standing::{Role, Standing};

use crate::{agent::Agent, config::Config};
use nexus_config::policy::{self as written, Subject};
use nexus_proto::reason::{Failure, Reason};
use parking_lot::RwLock;
use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

/// What holds for everybody.
#[derive(Debug)]
pub struct Policy {
    /// Programs that are the operator's, by the command line.
    operators: Vec<String>,
    rules: RwLock<Arc<Rules>>,
    limits: Limits,
    audit: Audit,
    grants: asking::Grants,
    approvals: Approvals,
}

/// What is written.
#[derive(Debug, Default)]
pub struct Rules {
    /// The policy.
    pub policy: written::Policy,
    /// What `~` stands for.
    home: Option<PathBuf>,
}

impl Policy {
    /// What is configured. `operators`: more programs that are the operator's.
    pub fn new(config: &Config, operators: Vec<String>) -> Self {
        let policy = Self {
            operators,
            rules: RwLock::default(),
            limits: Limits::default(),
            audit: Audit::default(),
            grants: Default::default(),
            approvals: Approvals::default(),
        };
        policy.apply(config);
        policy
    }

    /// The same, with calls written down there.
    #[must_use]
    pub fn audited(mut self, audit: Audit) -> Self {
        audit.apply(&self.rules().policy);
        self.audit = audit;
        self
    }

    /// Another configuration counts from now on.
    pub fn apply(&self, config: &Config) {
        self.limits.apply(config);
        self.audit.apply(&config.settings.policy);
        let mut policy = config.settings.policy.clone();
        policy.operators.extend(self.operators.iter().cloned());
        *self.rules.write() = Arc::new(Rules {
            policy,
            home: config.home.clone(),
        });
    }

    /// What is written now.
    pub fn rules(&self) -> Arc<Rules> {
        Arc::clone(&self.rules.read())
    }

    /// How often what may be called.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Where calls are written down.
    pub fn audit(&self) -> &Audit {
        &self.audit
    }

    /// The questions that wait for an answer.
    pub fn approvals(&self) -> &Approvals {
        &self.approvals
    }

    /// Forgets what was answered for this agent, or all; and this server, or all.
    pub fn forget(&self, agent: Option<u64>, server: Option<&str>) -> usize {
        self.grants.forget(agent, server)
    }

    /// An error for those who may use no server.
    pub fn check_level(&self, agent: &Agent, standing: &Standing) -> Result<(), Failure> {
        if !standing.is_sandboxed() {
            return Ok(());
        }
        let name = agent.label();
        let message = format!("{name} is sandboxed: it may not use any server");
        Err(Failure::new(Reason::Sandboxed, message).with(|details| {
            let place = match &standing.rule {
                Some(rule) => format!("policy.agents.{rule}.level"),
                None => "policy.level".to_owned(),
            };
            let hint = format!("whoever runs Nexus can change that: \"{place}\" in nexus.toml");
            details.hint = Some(hint);
        }))
    }

    /// Who somebody is to us, who works in this folder.
    pub fn standing(&self, agent: &Agent, project: Option<&Path>) -> Standing {
        let rules = self.rules();
        let programs = agent.programs();
        let is_operator = !agent.is_agent()
            && standing::is_operator(&rules.policy, &programs.own, &programs.starters);
        if is_operator {
            return Standing::OPERATOR;
        }
        let (name, programs) = (agent.name(), programs.all());
        let subject = Subject {
            name: &name,
            programs: &programs,
            project,
            home: rules.home.as_deref(),
        };
        Standing::of(&rules.policy, subject)
    }
}
