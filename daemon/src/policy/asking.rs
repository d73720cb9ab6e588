//! Has somebody asked before a server is used, where that is wanted.

use super::{
    Policy,
    approvals::Ask,
    consent::{self, About, Answer, Grant, Verdict},
    wording::{Wish, plain, shown},
};
use crate::{
    agent::{Agent, Question, Standing},
    config::ServerConfig,
    supervisor::Target,
};
use nexus_proto::reason::{Failure, Reason};
use parking_lot::Mutex;
use std::{
    collections::HashMap,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::time::sleep;

/// Who asks on our behalf: no server has this name in the questions of others.
const NEXUS: &str = "nexus";

/// How long a question is open where nothing else is said.
const PATIENCE: Duration = Duration::from_secs(120);

/// Somebody who wants to use a server.
#[derive(Debug, Clone, Copy)]
pub struct Applicant<'a> {
    /// The client.
    pub agent: &'a Arc<Agent>,
    /// Whom questions go to.
    pub party: &'a Agent,
    /// Who the client is to us.
    pub standing: &'a Standing,
    /// The folder that it works in.
    pub project: Option<&'a Path>,
}

/// What somebody wants to do with a server.
#[derive(Debug, Clone, Copy)]
pub struct Action<'a> {
    /// `tools/call`, `resources/read` or `prompts/get`; empty where only the server matters.
    pub method: &'static str,
    /// The tool, the URI or the prompt.
    pub target: &'a str,
    /// JSON text.
    pub arguments: &'a [u8],
}

impl Action<'_> {
    /// Only that the server is used.
    pub const CONNECT: Self = Self {
        method: "",
        target: "",
        arguments: b"",
    };
}

/// What has been answered.
#[derive(Debug, Default)]
pub(super) struct Grants(Mutex<HashMap<u64, HashMap<String, Granted>>>);

#[derive(Debug)]
struct Granted {
    /// The answer is for what was run then.
    target: Target,
    grant: Grant,
    turn: Arc<Turn>,
}

/// One question about a server at a time: others wait for the answer.
#[derive(Debug, Default)]
struct Turn {
    lock: tokio::sync::Mutex<()>,
    /// How often nobody answered.
    expired: AtomicU64,
}

impl Grants {
    /// What was answered for this agent and this server as it is now.
    fn get(
        &self,
        agent: &Arc<Agent>,
        server: &ServerConfig,
        policy: &Arc<Policy>,
    ) -> (Grant, Arc<Turn>) {
        let mut all = self.0.lock();
        let of_agent = all.entry(agent.id()).or_insert_with(|| {
            let (gone, id, policy) = (agent.gone(), agent.id(), Arc::downgrade(policy));
            tokio::spawn(async move {
                gone.await;
                if let Some(policy) = policy.upgrade() {
                    policy.grants.0.lock().remove(&id);
                }
            });
            HashMap::new()
        });
        let target = server.target();
        let granted = of_agent
            .entry(server.name.clone())
            .or_insert_with(|| Granted {
                target: target.clone(),
                grant: Grant::Nothing,
                turn: Arc::default(),
            });
        if granted.target != target {
            // Another program under the same name.
            granted.target = target;
            granted.grant = Grant::Nothing;
        }
        (granted.grant, Arc::clone(&granted.turn))
    }

    /// Takes an answer down, unless it was about another program. Returns what is granted now.
    fn add(&self, agent: u64, server: &ServerConfig, about: About, answer: Answer) -> Grant {
        let mut all = self.0.lock();
        let granted = all
            .get_mut(&agent)
            .and_then(|own| own.get_mut(&server.name))
            .filter(|granted| granted.target == server.target());
        match granted {
            Some(granted) => {
                granted.grant = consent::after(granted.grant, about, answer);
                granted.grant
            }
            None => consent::after(Grant::Nothing, about, answer),
        }
    }

    /// Forgets what was answered. Returns how many answers that were.
    pub(super) fn forget(&self, agent: Option<u64>, server: Option<&str>) -> usize {
        let mut forgotten = 0;
        for (id, of_agent) in self.0.lock().iter_mut() {
            if agent.is_some_and(|agent| agent != *id) {
                continue;
            }
            for (name, granted) in of_agent.iter_mut() {
                if server.is_none_or(|server| server == name) && granted.grant != Grant::Nothing {
                    granted.grant = Grant::Nothing;
                    forgotten += 1;
                }
            }
        }
        forgotten
    }
}

impl Policy {
    /// Whether somebody may go on without anybody being asked, which is the rule.
    pub fn lets_through(&self, standing: &Standing, server: &ServerConfig) -> bool {
        let everybody = self.rules().policy.consent;
        let wanted = consent::consent(standing.consent, &server.rules, everybody);
        consent::decide(standing.level, wanted, Grant::Nothing) == Verdict::Allow
    }

    /// Lets somebody go on who is not let through, or says why not. Others are asked, which may take its time.
    pub async fn permit(
        self: &Arc<Self>,
        who: Applicant<'_>,
        server: &ServerConfig,
        tools: impl Fn() -> Vec<String>,
        action: Action<'_>,
    ) -> Result<(), Failure> {
        let rules = self.rules();
        let wanted = consent::consent(who.standing.consent, &server.rules, rules.policy.consent);
        let level = who.standing.level;
        let patience = rules.policy.approval_timeout.unwrap_or(PATIENCE);
        let (mut grant, turn) = self.grants.get(who.agent, server, self);
        let mut verdict = consent::decide(level, wanted, grant);
        let mut turn_held = None;
        while let Verdict::Ask(about) = verdict {
            // What only connects is no call: it is enough that the server may be used.
            let about = match (action.method.is_empty(), grant) {
                (true, Grant::Each) => return Ok(()),
                (true, _) => About::Server,
                (false, _) => about,
            };
            let wish = || Wish {
                agent: who.agent.label(),
                server: server.name.clone(),
                tools: if about == About::Server {
                    tools()
                } else {
                    Vec::new()
                },
                method: action.method,
                target: plain(action.target),
                arguments: shown(action.arguments),
            };
            if about == About::Server && turn_held.is_none() {
                let expired = turn.expired.load(Ordering::Relaxed);
                turn_held = Some(turn.lock.lock().await);
                if turn.expired.load(Ordering::Relaxed) != expired {
                    // Somebody waited for the same answer, and nobody gave it.
                    return Err(unanswered(&wish(), about, patience));
                }
                grant = self.grants.get(who.agent, server, self).0;
                verdict = consent::decide(level, wanted, grant);
                continue;
            }
            let wish = wish();
            let answer = self.ask(who, wish.clone(), about, patience).await?;
            if about == About::Server && matches!(answer, None | Some(Answer::Dismiss)) {
                // Those who wait for the same answer do not ask again.
                turn.expired.fetch_add(1, Ordering::Relaxed);
            }
            let Some(answer) = answer else {
                return Err(unanswered(&wish, about, patience));
            };
            grant = self.grants.add(who.agent.id(), server, about, answer);
            verdict = consent::then(about, answer);
            if verdict == Verdict::Deny {
                return Err(denied(&wish, about));
            }
            // Others may have their calls asked about meanwhile.
            turn_held = None;
        }
        if verdict == Verdict::Allow {
            return Ok(());
        }
        let wish = Wish {
            agent: who.agent.label(),
            server: server.name.clone(),
            tools: Vec::new(),
            method: action.method,
            target: plain(action.target),
            arguments: String::new(),
        };
        Err(denied(&wish, About::Server))
    }

    /// Asks the agent itself if it can be asked, and the operator in any case: the first answer counts.
    async fn ask(
        &self,
        who: Applicant<'_>,
        wish: Wish,
        about: About,
        patience: Duration,
    ) -> Result<Option<Answer>, Failure> {
        let form = wish.form(about);
        let waiting = self.approvals.ask(Ask {
            about,
            wish,
            agent: who.agent.id(),
            pid: who.agent.pid(),
            project: who.project.map(|project| project.display().to_string()),
            patience,
        });
        let Some(mut waiting) = waiting else {
            let message = "too many questions wait for an answer already";
            return Err(Failure::new(Reason::Overloaded, message).with(|details| {
                details.hint = Some("`nexusctl approvals` shows them".to_owned());
            }));
        };
        let question = Question {
            server: NEXUS.to_owned(),
            method: "elicitation/create".to_owned(),
            params: form,
        };
        let by_agent = async {
            match who.party.ask(question).await {
                Ok(result) => super::wording::read_answer(about, &result),
                // It cannot be asked, or did not want to: that is for the operator then.
                Err(_) => std::future::pending().await,
            }
        };
        let answer = tokio::select! {
            biased;
            answer = waiting.answered() => return Ok(Some(answer)),
            answer = by_agent => Some(answer),
            () = sleep(patience) => None,
        };
        // The operator may have been faster by a moment.
        Ok(waiting.close(answer).or(answer))
    }
}

fn denied(wish: &Wish, about: About) -> Failure {
    let failure = Failure::new(Reason::Denied, wish.denied(about));
    failure.with(|details| {
        details.server = Some(wish.server.clone());
        details.hint = Some(match about {
            About::Server => "`nexusctl approvals forget` makes it be asked about again".to_owned(),
            About::Call => "do something else, or ask the user first".to_owned(),
        });
    })
}

fn unanswered(wish: &Wish, about: About, patience: Duration) -> Failure {
    let failure = Failure::new(Reason::Unanswered, wish.unanswered(about, patience));
    failure.with(|details| {
        details.server = Some(wish.server.clone());
        details.hint = Some("`nexusctl approvals` shows what waits for an answer".to_owned());
    })
}
