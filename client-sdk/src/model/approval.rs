//! What somebody is asked about.

use nexus_proto::v1::{self, policy_watch_response::Change};
use std::time::SystemTime;

/// A question that waits for an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Approval {
    /// Its number.
    pub id: u64,
    /// The number of the agent that wants to do it.
    pub agent: u64,
    /// What that agent is called.
    pub agent_name: String,
    /// Its process, where that is known.
    pub pid: Option<u32>,
    /// The folder that it works in.
    pub project: Option<String>,
    /// The server that is to be used.
    pub server: String,
    /// What is to be done with it; `None` where the question is whether it may be used at all.
    pub action: Option<ApprovalAction>,
    /// What the server has, for a question whether it may be used at all.
    pub tools: Vec<String>,
    /// Since when it waits.
    pub since: Option<SystemTime>,
    /// When it becomes a no.
    pub until: Option<SystemTime>,
}

/// What an agent wants to do.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ApprovalAction {
    /// `tools/call`, `resources/read` or `prompts/get`.
    pub method: String,
    /// The tool, the URI or the prompt.
    pub target: String,
    /// The arguments, shortened and made safe to be shown.
    pub arguments: String,
}

/// An answer to a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// This call; or the server, with a question for each call.
    Once,
    /// Everything of this server, by this agent, for as long as it is here.
    Server,
    /// No.
    Deny,
}

impl From<Answer> for v1::Answer {
    fn from(answer: Answer) -> Self {
        match answer {
            Answer::Once => Self::Once,
            Answer::Server => Self::Server,
            Answer::Deny => Self::Deny,
        }
    }
}

/// Something has changed among the questions that wait.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ApprovalEvent {
    /// A question waits. All that wait are told at the beginning, and after [`ApprovalEvent::Told`] each new one.
    Asked(Box<Approval>),
    /// It no longer does.
    Closed {
        /// Which.
        id: u64,
        /// `allowed`, `denied`, `expired` or `withdrawn`.
        outcome: String,
    },
    /// All that waited when the stream began have been told.
    Told,
}

impl ApprovalEvent {
    pub(crate) fn from_wire(event: v1::PolicyWatchResponse) -> Option<Self> {
        Some(match event.change? {
            Change::Asked(approval) => Self::Asked(Box::new((*approval).into())),
            Change::Closed(v1::ApprovalClosed { id, outcome }) => Self::Closed { id, outcome },
            Change::Told(v1::ApprovalsTold {}) => Self::Told,
        })
    }
}

impl From<v1::Approval> for Approval {
    fn from(wire: v1::Approval) -> Self {
        let agent = wire.agent.unwrap_or_default();
        let action = ApprovalAction {
            method: wire.method,
            target: wire.target,
            arguments: wire.arguments,
        };
        Self {
            id: wire.id,
            agent: agent.id,
            agent_name: agent.name,
            pid: agent.pid,
            project: Some(agent.project).filter(|project| !project.is_empty()),
            server: wire.server,
            action: Some(action).filter(|action| !action.method.is_empty()),
            tools: wire.tools,
            since: wire.since.and_then(|at| at.try_into().ok()),
            until: wire.until.and_then(|at| at.try_into().ok()),
        }
    }
}
