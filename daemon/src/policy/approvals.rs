//! The questions that wait for an answer, and who hears of them.

use super::{
    consent::{About, Answer},
    wording::Wish,
};
use parking_lot::Mutex;
use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, SystemTime},
};
use tokio::sync::{broadcast, oneshot};

/// How many questions may wait, and how many of one agent.
const MAX_OPEN: usize = 512;
const MAX_OF_AGENT: usize = 64;

/// How many changes a slow listener may miss before it is told all anew.
const CHANGES: usize = 256;

/// A question that waits for an answer.
#[derive(Debug)]
pub struct Question {
    /// Its number.
    pub id: u64,
    /// What it is about.
    pub about: About,
    /// Who wants what.
    pub wish: Wish,
    /// The number of whoever wants it.
    pub agent: u64,
    /// Their process.
    pub pid: Option<u32>,
    /// The folder that they work in.
    pub project: Option<String>,
    /// Since when it waits.
    pub since: SystemTime,
    /// When it becomes a no.
    pub until: SystemTime,
}

/// What became of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Closed {
    /// Somebody said yes.
    Allowed,
    /// Somebody said no.
    Denied,
    /// Nobody answered in time.
    Expired,
    /// Nobody wants to know any more.
    Withdrawn,
}

impl Closed {
    /// On the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::Denied => "denied",
            Self::Expired => "expired",
            Self::Withdrawn => "withdrawn",
        }
    }
}

/// Something has changed.
#[derive(Debug, Clone)]
pub enum Change {
    /// A question waits.
    Asked(Arc<Question>),
    /// It no longer does.
    Closed(u64, Closed),
}

/// The questions that wait for an answer.
#[derive(Debug)]
pub struct Approvals {
    open: Mutex<Open>,
    changes: broadcast::Sender<Change>,
}

#[derive(Debug, Default)]
struct Open {
    last: u64,
    waiting: BTreeMap<u64, (Arc<Question>, oneshot::Sender<Answer>)>,
}

impl Default for Approvals {
    fn default() -> Self {
        Self {
            open: Mutex::default(),
            changes: broadcast::Sender::new(CHANGES),
        }
    }
}

/// Who asks what, and for how long.
#[derive(Debug)]
pub(super) struct Ask {
    pub(super) about: About,
    pub(super) wish: Wish,
    pub(super) agent: u64,
    pub(super) pid: Option<u32>,
    pub(super) project: Option<String>,
    pub(super) patience: Duration,
}

impl Approvals {
    /// Puts a question. `None` when too many wait already.
    pub(super) fn ask(&self, ask: Ask) -> Option<Waiting<'_>> {
        let (to, answer) = oneshot::channel();
        let mut open = self.open.lock();
        let of_agent = |(question, _): &&(Arc<Question>, _)| question.agent == ask.agent;
        let full = open.waiting.len() >= MAX_OPEN
            || open.waiting.values().filter(of_agent).count() >= MAX_OF_AGENT;
        if full {
            return None;
        }
        open.last += 1;
        let since = SystemTime::now();
        let question = Arc::new(Question {
            id: open.last,
            about: ask.about,
            wish: ask.wish,
            agent: ask.agent,
            pid: ask.pid,
            project: ask.project,
            since,
            until: since + ask.patience,
        });
        let id = question.id;
        open.waiting.insert(id, (Arc::clone(&question), to));
        // Under the lock, so that nobody hears of the end before the beginning.
        let _ = self.changes.send(Change::Asked(question));
        drop(open);
        Some(Waiting {
            approvals: self,
            id,
            answer,
        })
    }

    /// Somebody answers. `false` when there is no such question, or no longer.
    pub fn decide(&self, id: u64, answer: Answer) -> bool {
        let waiting = self.open.lock().waiting.remove(&id);
        let Some((_, to)) = waiting else { return false };
        let outcome = closed_by(answer);
        let _ = self.changes.send(Change::Closed(id, outcome));
        // Whoever asked may have gone this very moment.
        to.send(answer).is_ok()
    }

    /// The questions that wait now, and what changes from then on.
    pub fn watch(&self) -> (Vec<Arc<Question>>, broadcast::Receiver<Change>) {
        let open = self.open.lock();
        let changes = self.changes.subscribe();
        let waiting = open
            .waiting
            .values()
            .map(|(question, _)| Arc::clone(question));
        (waiting.collect(), changes)
    }
}

fn closed_by(answer: Answer) -> Closed {
    match answer {
        Answer::Once | Answer::Server => Closed::Allowed,
        Answer::Deny | Answer::Dismiss => Closed::Denied,
    }
}

/// A question that somebody waits for. Who goes away takes it back.
#[derive(Debug)]
pub(super) struct Waiting<'a> {
    approvals: &'a Approvals,
    id: u64,
    answer: oneshot::Receiver<Answer>,
}

impl Waiting<'_> {
    /// The operator's answer.
    pub(super) async fn answered(&mut self) -> Answer {
        // The sender goes only with an answer: nobody else takes it out while we are here.
        (&mut self.answer).await.unwrap_or(Answer::Dismiss)
    }

    /// Somebody else has answered, or nobody has in time. Returns the operator's answer, if that came first.
    pub(super) fn close(mut self, answer: Option<Answer>) -> Option<Answer> {
        let is_open = self
            .approvals
            .open
            .lock()
            .waiting
            .remove(&self.id)
            .is_some();
        if !is_open {
            return self.answer.try_recv().ok();
        }
        let outcome = answer.map_or(Closed::Expired, closed_by);
        let _ = self
            .approvals
            .changes
            .send(Change::Closed(self.id, outcome));
        None
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut open = self.approvals.open.lock();
        if open.waiting.remove(&self.id).is_some() {
            let closed = Change::Closed(self.id, Closed::Withdrawn);
            let _ = self.approvals.changes.send(closed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(agent: u64) -> Ask {
        Ask {
            about: About::Call,
            wish: Wish {
                agent: "a".into(),
                server: "s".into(),
                tools: vec![],
                method: "tools/call",
                target: "t".into(),
                arguments: String::new(),
            },
            agent,
            pid: None,
            project: None,
            patience: Duration::from_secs(60),
        }
    }

    #[tokio::test]
    async fn the_first_answer_counts_and_everybody_hears_of_it() {
        let approvals = Approvals::default();
        let (none, mut changes) = approvals.watch();
        assert!(none.is_empty());
        let mut waiting = approvals.ask(ask(1)).unwrap();
        let Change::Asked(question) = changes.recv().await.unwrap() else {
            panic!("nothing was asked");
        };
        assert_eq!(approvals.watch().0[0].id, question.id);
        assert!(approvals.decide(question.id, Answer::Once));
        assert!(!approvals.decide(question.id, Answer::Deny));
        assert_eq!(waiting.answered().await, Answer::Once);
        drop(waiting);
        let closed = changes.recv().await.unwrap();
        assert!(matches!(closed, Change::Closed(id, Closed::Allowed) if id == question.id));
        assert!(changes.try_recv().is_err());
    }

    #[tokio::test]
    async fn who_goes_away_takes_the_question_back() {
        let approvals = Approvals::default();
        let (_, mut changes) = approvals.watch();
        drop(approvals.ask(ask(1)));
        approvals.ask(ask(1)).unwrap().close(None);
        let mut ends = Vec::new();
        while let Ok(change) = changes.try_recv() {
            ends.extend(match change {
                Change::Closed(_, outcome) => Some(outcome),
                Change::Asked(_) => None,
            });
        }
        assert_eq!(ends, [Closed::Withdrawn, Closed::Expired]);
        assert!(approvals.watch().0.is_empty());
    }

    #[test]
    fn one_agent_does_not_take_all_the_room() {
        let approvals = Approvals::default();
        let waiting: Vec<_> = (0..MAX_OF_AGENT)
            .map(|_| approvals.ask(ask(1)).unwrap())
            .collect();
        assert!(approvals.ask(ask(1)).is_none());
        assert!(approvals.ask(ask(2)).is_some());
        drop(waiting);
        assert!(approvals.ask(ask(1)).is_some());
    }
}
