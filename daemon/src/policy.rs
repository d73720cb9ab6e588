//! Who may do what.

mod approvals;
mod asking;
pub mod audit;
pub mod consent;
mod errors;
pub mod hygiene;
pub mod limits;
pub mod output;
pub mod pins;
pub mod rate;
mod redact;
mod wording;

pub use approvals::{Approvals, Change, Question};
pub use asking::{Action, Applicant};
pub use audit::Audit;
pub use errors::{for_agent, not_operator};
pub use limits::{Limit, Limits};

use crate::{
    agent::{Agent, Programs, Standing, is_operator},
    config::{Config, ServerRules},
};
use nexus_config::policy::{self as written, Subject};
use nexus_proto::reason::{Failure, Reason};
use output::MAX_RESULT;
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
    /// Which of those that have been read.
    edition: u64,
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
        let mut rules = self.rules.write();
        *rules = Arc::new(Rules {
            policy,
            home: config.home.clone(),
            edition: rules.edition + 1,
        });
    }

    /// What is written now.
    pub fn rules(&self) -> Arc<Rules> {
        Arc::clone(&self.rules.read())
    }

    /// How large a result of a server may be: what is said of itself comes first.
    pub fn largest_result(&self, server: &ServerRules) -> output::Limit {
        let rules = self.rules();
        let max = server.max_result.or(rules.policy.max_result);
        let oversize = server.oversize.or(rules.policy.oversize);
        output::Limit {
            max: max.unwrap_or(MAX_RESULT),
            oversize: oversize.unwrap_or_default(),
        }
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
    pub fn standing(&self, agent: &Agent, project: Option<&Path>) -> Arc<Standing> {
        let rules = self.rules();
        agent.standing(rules.edition, project, || find(&rules, agent, project))
    }
}

fn find(rules: &Rules, agent: &Agent, project: Option<&Path>) -> Standing {
    let programs = agent.programs();
    // Where the system does not tell programs, whoever does not say that it is an agent has to be believed.
    let is_operators =
        !Programs::ARE_KNOWN || is_operator(&rules.policy, &programs.own, &programs.starters);
    if !agent.is_agent() && is_operators {
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
