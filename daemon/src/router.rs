//! From a name to an answer: which server, is it good, which connection, and what became of it.

mod deliver;
mod limit;
mod requests;
mod subscribe;

pub use requests::{Call, Complete, GetPrompt, Read, Reference, Round};
pub use subscribe::keep_up;

use crate::{
    catalog::{Catalog, Found, Item, Named, NotFound, Tool},
    mcp::lists::Kind,
    policy::{
        Action, Applicant, Policy,
        audit::{Entry, Request},
        limits::Charge,
    },
    pool::{Server, key::Caller},
};
use bytes::Bytes;
use nexus_proto::reason::{Failure, Reason};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::{sync::watch, time::timeout};

/// How long a server that might have something of some bare name is waited for.
const GUESS: Duration = Duration::from_secs(5);

/// The way from a name to an answer.
#[derive(Debug)]
pub struct Router {
    catalog: Arc<Catalog>,
    policy: Arc<Policy>,
    traffic: watch::Sender<Traffic>,
    calls: AtomicU64,
}

#[derive(Debug, Default)]
struct Traffic {
    in_flight: usize,
    closed: bool,
}

impl Router {
    /// A router for what a catalog has, and a policy allows.
    pub fn new(catalog: Arc<Catalog>, policy: Arc<Policy>) -> Self {
        Self {
            catalog,
            policy,
            traffic: watch::Sender::default(),
            calls: AtomicU64::new(0),
        }
    }

    /// The tool or prompt of that name. A server whose lists are not known yet is waited for.
    pub async fn find<T: Item>(&self, name: &str, caller: &Caller) -> Result<Found<T>, Failure> {
        let find = |without: &[Arc<Server>]| self.catalog.find(name, caller, without);
        let found = self.look(caller, T::KIND, find).await;
        match found {
            // Its server may have it by now, if it no longer stands by what it listed.
            Err(failure) if failure.reason == T::NOT_FOUND => {
                if Box::pin(self.freshen(caller, T::KIND)).await {
                    return self.look(caller, T::KIND, find).await;
                }
                Err(failure)
            }
            found => found,
        }
    }

    /// Has lists that are no longer good asked for again. Whether there were any.
    async fn freshen(&self, caller: &Caller, kind: Kind) -> bool {
        let servers = self.catalog.servers(caller);
        let stale: Vec<_> = servers
            .iter()
            .filter(|server| server.lists_for(caller).of(kind).is_stale())
            .collect();
        let settled = stale.iter().map(|server| server.settled(caller, kind));
        timeout(GUESS, futures_util::future::join_all(settled))
            .await
            .is_ok()
            && !stale.is_empty()
    }

    /// The server that has this resource or template, unless it is named.
    async fn find_server(
        &self,
        kind: Kind,
        server: &str,
        uri: &str,
        caller: &Caller,
    ) -> Result<Arc<Server>, Failure> {
        let find =
            |without: &[Arc<Server>]| self.catalog.server_of(kind, server, uri, caller, without);
        self.look(caller, kind, find).await
    }

    /// Looks, and looks again when a server whose lists were not known has told them. What is waited for is boxed:
    /// it is rare, and each call would have room for it.
    async fn look<T>(
        &self,
        caller: &Caller,
        kind: Kind,
        find: impl Fn(&[Arc<Server>]) -> Result<T, NotFound>,
    ) -> Result<T, Failure> {
        let mut without = Vec::new();
        loop {
            match find(&without) {
                Ok(found) => return Ok(found),
                Err(NotFound::Never(failure)) => return Err(failure),
                Err(NotFound::AskLater(server, named)) => {
                    let introduced = server.introduced(caller, kind);
                    match named {
                        Named::Yes => Box::pin(introduced).await?,
                        // What it cannot tell soon is no reason not to ask the others.
                        Named::No => match Box::pin(timeout(GUESS, introduced)).await {
                            Ok(Ok(())) => {}
                            Ok(Err(_)) | Err(_) => without.push(server),
                        },
                    }
                }
            }
        }
    }

    /// Lets somebody use a server, or says why not. It may be that somebody has to be asked first.
    async fn permit(
        &self,
        caller: &Caller,
        server: &Server,
        action: Action<'_>,
    ) -> Result<(), Failure> {
        let config = server.config();
        if self.policy.lets_through(&caller.standing, &config) {
            return Ok(());
        }
        Box::pin(self.ask_for_permit(caller, server, action)).await
    }

    async fn ask_for_permit(
        &self,
        caller: &Caller,
        server: &Server,
        action: Action<'_>,
    ) -> Result<(), Failure> {
        let who = Applicant {
            agent: &caller.agent,
            party: &caller.party,
            standing: &caller.standing,
            project: caller.project.as_deref(),
        };
        let tools = || {
            let names = self.catalog.of::<Tool>(server, caller);
            let own = |tool: &Arc<Tool>| tool.tool.clone();
            names.map_or(Vec::new(), |names| names.list.iter().map(own).collect())
        };
        let config = server.config();
        tokio::select! {
            biased;
            permitted = self.policy.permit(who, &config, tools, action) => permitted,
            // Nobody is kept waiting for an answer at the end.
            () = self.closing() => Err(shutting_down()),
        }
    }

    /// How many calls are under way.
    pub fn in_flight(&self) -> usize {
        self.traffic.borrow().in_flight
    }

    /// How many calls there have been.
    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    /// Whether new calls are refused.
    pub fn is_closed(&self) -> bool {
        self.traffic.borrow().closed
    }

    /// An error if new work is refused.
    pub fn check_open(&self) -> Result<(), Failure> {
        if self.is_closed() {
            return Err(shutting_down());
        }
        Ok(())
    }

    async fn closing(&self) {
        let mut traffic = self.traffic.subscribe();
        let _ = traffic.wait_for(|traffic| traffic.closed).await;
    }

    /// Refuses new calls from now on.
    pub fn close(&self) {
        self.traffic.send_modify(|traffic| traffic.closed = true);
    }

    /// Waits until no call is under way.
    pub async fn drained(&self) {
        let mut traffic = self.traffic.subscribe();
        let _ = traffic.wait_for(|traffic| traffic.in_flight == 0).await;
    }

    /// It is written down, whatever becomes of it.
    fn note<'a>(
        &'a self,
        caller: &'a Caller,
        method: &'static str,
        target: &'a str,
        arguments: Option<Bytes>,
    ) -> Entry<'a> {
        self.policy.audit().begin(Request {
            agent: &caller.agent,
            project: caller.project.as_deref(),
            method,
            target,
            arguments,
        })
    }

    /// An error if it is called too often: by this caller, or by all.
    fn check_rate(
        &self,
        caller: &Caller,
        server: &Server,
        tool: Option<&str>,
    ) -> Result<(), Failure> {
        self.policy.limits().take(Charge {
            agent: &caller.agent,
            standing: &caller.standing,
            server: &server.config().name,
            tool,
        })
    }

    fn enter(&self, caller: &Caller) -> Result<Lane<'_>, Failure> {
        self.policy.check_level(&caller.agent, &caller.standing)?;
        let mut entered = false;
        self.traffic.send_if_modified(|traffic| {
            entered = !traffic.closed;
            traffic.in_flight += usize::from(entered);
            false
        });
        if entered {
            return Ok(Lane(self));
        }
        Err(shutting_down())
    }
}

fn shutting_down() -> Failure {
    Failure::new(Reason::ShuttingDown, "the daemon is stopping")
        .with(|details| details.hint = Some("start it again with `nexusd`".to_owned()))
}

/// One call under way.
struct Lane<'a>(&'a Router);

impl Drop for Lane<'_> {
    fn drop(&mut self) {
        self.0.traffic.send_if_modified(|traffic| {
            traffic.in_flight -= 1;
            // Only whoever waits for the end wants to know.
            traffic.closed && traffic.in_flight == 0
        });
    }
}
