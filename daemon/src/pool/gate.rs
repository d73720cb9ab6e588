//! How many calls, and whose, may be under way at one process. Who is too many waits, first come, first
//! served; when too many wait, the next one is turned away.
//!
//! A server that puts questions to its client can only be answered by the agent whose call it is working
//! on. Nothing in such a question tells which call that is, so from then on one agent's calls are let
//! through at a time.

use parking_lot::Mutex;
use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};
use tokio::sync::oneshot;

/// What a gate lets through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How many calls may be under way; `None` for any number.
    pub in_flight: Option<usize>,
    /// How many may wait.
    pub waiting: usize,
}

/// Too many wait already.
#[derive(Debug, PartialEq, Eq)]
pub struct Full {
    /// How many calls are under way.
    pub in_flight: usize,
    /// How many wait.
    pub waiting: usize,
}

/// The gate of one process.
#[derive(Debug)]
pub struct Gate {
    inside: Mutex<Inside>,
    /// Only calls of one agent at a time.
    one_agent: Arc<AtomicBool>,
}

#[derive(Debug)]
struct Inside {
    limits: Limits,
    in_flight: usize,
    /// Whose call was let in when there was none.
    agent: u64,
    /// Calls of others are under way as well.
    mixed: bool,
    /// In the order in which they came: whose call, and how it is let in.
    waiting: BTreeMap<u64, (u64, oneshot::Sender<Pass>)>,
    last_ticket: u64,
}

impl Inside {
    fn lets_in(&self, agent: u64, one_agent: bool) -> bool {
        if self.in_flight == 0 {
            return true;
        }
        let room = self.limits.in_flight.is_none_or(|max| self.in_flight < max);
        room && (!one_agent || (!self.mixed && self.agent == agent))
    }

    fn let_in(&mut self, agent: u64) {
        if self.in_flight == 0 {
            self.agent = agent;
            self.mixed = false;
        } else {
            self.mixed |= self.agent != agent;
        }
        self.in_flight += 1;
    }
}

/// One call that was let through. Dropping it makes room.
#[derive(Debug)]
pub struct Pass(Arc<Gate>);

impl Gate {
    /// `one_agent` may be set at any time.
    pub fn new(limits: Limits, one_agent: Arc<AtomicBool>) -> Arc<Self> {
        Arc::new(Self {
            inside: Mutex::new(Inside {
                limits,
                in_flight: 0,
                agent: 0,
                mixed: false,
                waiting: BTreeMap::new(),
                last_ticket: 0,
            }),
            one_agent,
        })
    }

    /// From now on.
    pub fn set_limits(self: &Arc<Self>, limits: Limits) {
        self.inside.lock().limits = limits;
        self.let_next_in();
    }

    /// How many calls are under way, and how many wait.
    pub fn counts(&self) -> (usize, usize) {
        let inside = self.inside.lock();
        (inside.in_flight, inside.waiting.len())
    }

    /// How many calls are under way or wait.
    pub fn load(&self) -> usize {
        let (in_flight, waiting) = self.counts();
        in_flight + waiting
    }

    /// Waits to be let through. `is_asked`: the agent has been asked something because of a call of its that
    /// is under way. What it calls to answer that does not wait for those who wait for that call.
    pub async fn enter(self: &Arc<Self>, agent: u64, is_asked: bool) -> Result<Pass, Full> {
        let mut place = {
            let mut inside = self.inside.lock();
            let one_agent = self.one_agent.load(Ordering::Relaxed);
            let goes_first = is_asked && inside.in_flight > 0 && inside.agent == agent;
            if (inside.waiting.is_empty() || goes_first) && inside.lets_in(agent, one_agent) {
                inside.let_in(agent);
                return Ok(Pass(Arc::clone(self)));
            }
            if inside.waiting.len() >= inside.limits.waiting {
                return Err(Full {
                    in_flight: inside.in_flight,
                    waiting: inside.waiting.len(),
                });
            }
            let (waiter, wait) = oneshot::channel();
            inside.last_ticket += 1;
            let ticket = inside.last_ticket;
            inside.waiting.insert(ticket, (agent, waiter));
            Place {
                gate: self,
                ticket,
                wait,
            }
        };
        match (&mut place.wait).await {
            Ok(pass) => Ok(pass),
            // It is only ever dropped by sending.
            Err(_) => Err(Full {
                in_flight: 0,
                waiting: 0,
            }),
        }
    }

    fn let_next_in(self: &Arc<Self>) {
        loop {
            let next = {
                let mut inside = self.inside.lock();
                let one_agent = self.one_agent.load(Ordering::Relaxed);
                let first = inside.waiting.first_key_value();
                match first.map(|(_, &(agent, _))| agent) {
                    Some(agent) if inside.lets_in(agent, one_agent) => {
                        inside.let_in(agent);
                        inside.waiting.pop_first()
                    }
                    _ => None,
                }
            };
            let Some((_, (_, waiter))) = next else { return };
            // Whoever goes just now does not take it: then it is dropped, here, and makes room.
            let _ = waiter.send(Pass(Arc::clone(self)));
        }
    }
}

/// A place in the queue, which is given up by whoever goes away.
#[derive(Debug)]
struct Place<'a> {
    gate: &'a Arc<Gate>,
    ticket: u64,
    wait: oneshot::Receiver<Pass>,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let gone = self.gate.inside.lock().waiting.remove(&self.ticket);
        if gone.is_some() {
            // It may have stood in the way of others.
            self.gate.let_next_in();
        }
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        self.0.inside.lock().in_flight -= 1;
        self.0.let_next_in();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gate(in_flight: Option<usize>, waiting: usize) -> (Arc<Gate>, Arc<AtomicBool>) {
        let one_agent = Arc::new(AtomicBool::new(false));
        let limits = Limits { in_flight, waiting };
        (Gate::new(limits, Arc::clone(&one_agent)), one_agent)
    }

    #[tokio::test]
    async fn without_a_limit_everybody_is_let_through() {
        let (gate, _) = gate(None, 0);
        let mut passes = Vec::new();
        for agent in 0..1000 {
            passes.push(gate.enter(agent, false).await.unwrap());
        }
        assert_eq!(gate.load(), 1000);
        drop(passes);
        assert_eq!(gate.load(), 0);
    }

    #[tokio::test]
    async fn who_is_too_many_waits_in_order_and_the_queue_has_an_end() {
        let (gate, _) = gate(Some(2), 2);
        let first = gate.enter(1, false).await.unwrap();
        let second = gate.enter(2, false).await.unwrap();
        let mut third = Box::pin(gate.enter(3, false));
        let mut fourth = Box::pin(gate.enter(4, false));
        assert!(futures_util::poll!(&mut third).is_pending());
        assert!(futures_util::poll!(&mut fourth).is_pending());
        let full = gate.enter(5, false).await.unwrap_err();
        assert_eq!((full.in_flight, full.waiting), (2, 2));
        drop(second);
        let third = third.await.unwrap();
        assert!(futures_util::poll!(&mut fourth).is_pending());
        drop((first, third));
        drop(fourth.await.unwrap());
        assert_eq!(gate.load(), 0);
    }

    #[tokio::test]
    async fn who_goes_away_while_waiting_or_just_let_in_holds_nobody_up() {
        let (gate, _) = gate(Some(1), 2);
        let first = gate.enter(1, false).await.unwrap();
        let mut leaves = Box::pin(gate.enter(2, false));
        let mut granted = Box::pin(gate.enter(3, false));
        assert!(futures_util::poll!(&mut leaves).is_pending());
        assert!(futures_util::poll!(&mut granted).is_pending());
        drop(leaves);
        assert_eq!(gate.counts(), (1, 1));
        drop(first);
        // Let in, but never looked at.
        assert_eq!(gate.load(), 1);
        drop(granted);
        assert_eq!(gate.load(), 0);
        gate.enter(4, false).await.unwrap();
    }

    #[tokio::test]
    async fn any_number_may_go_away() {
        let (gate, _) = gate(Some(1), usize::MAX);
        let first = gate.enter(1, false).await.unwrap();
        let mut waiting: Vec<_> = (0..100_000)
            .map(|_| Box::pin(gate.enter(2, false)))
            .collect();
        for waits in &mut waiting {
            assert!(futures_util::poll!(waits).is_pending());
        }
        drop(waiting);
        assert_eq!(gate.counts(), (1, 0));
        drop(first);
        gate.enter(3, false).await.unwrap();
    }

    #[tokio::test]
    async fn one_agent_at_a_time_once_the_server_asks() {
        let (gate, asks) = gate(None, 10);
        let ours = gate.enter(1, false).await.unwrap();
        let theirs = gate.enter(2, false).await.unwrap();
        asks.store(true, Ordering::Relaxed);
        // Whose question it would be is not known while both are under way.
        let mut waits = Box::pin(gate.enter(1, false));
        assert!(futures_util::poll!(&mut waits).is_pending());
        drop(ours);
        assert!(futures_util::poll!(&mut waits).is_pending());
        drop(theirs);
        let first = waits.await.unwrap();
        let second = gate.enter(1, false).await.unwrap();
        let mut other = Box::pin(gate.enter(2, false));
        assert!(futures_util::poll!(&mut other).is_pending());
        // The first come is served first: its own agent does not overtake.
        let mut again = Box::pin(gate.enter(1, false));
        assert!(futures_util::poll!(&mut again).is_pending());
        drop((first, second));
        let other = other.await.unwrap();
        assert!(futures_util::poll!(&mut again).is_pending());
        drop(other);
        again.await.unwrap();
    }

    #[tokio::test]
    async fn a_wider_limit_lets_those_in_who_wait() {
        let (gate, _) = gate(Some(1), 10);
        let _first = gate.enter(1, false).await.unwrap();
        let mut second = Box::pin(gate.enter(2, false));
        assert!(futures_util::poll!(&mut second).is_pending());
        gate.set_limits(Limits {
            in_flight: Some(2),
            waiting: 10,
        });
        second.await.unwrap();
    }

    #[tokio::test]
    async fn whoever_is_asked_goes_before_those_who_wait_for_it() {
        let gate = Gate::new(
            Limits {
                in_flight: None,
                waiting: 10,
            },
            Arc::new(AtomicBool::new(true)),
        );
        let outer = gate.enter(1, false).await.unwrap();
        let mut other = std::pin::pin!(gate.enter(2, false));
        assert!(futures_util::poll!(&mut other).is_pending());
        // Its own call that has nothing to do with the question waits its turn.
        let mut later = std::pin::pin!(gate.enter(1, false));
        assert!(futures_util::poll!(&mut later).is_pending());
        let nested = gate.enter(1, true).await.unwrap();
        drop((nested, outer));
        assert!(other.await.is_ok());
    }
}
