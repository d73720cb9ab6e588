//! How often each server, tool and agent is called, and what is too often.

use super::{
    Standing,
    rate::{self, Bucket},
};
use crate::{agent::Agent, config::Config};
use nexus_config::{model::matches, policy::Rate};
use nexus_proto::reason::{Failure, Reason};
use parking_lot::Mutex;
use std::{
    collections::HashMap,
    sync::{Arc, Weak},
    time::Duration,
};
use tokio::time::Instant;

/// The limits that are configured, and how much of them is used.
#[derive(Debug)]
pub struct Limits {
    began: Instant,
    state: Arc<Mutex<State>>,
}

/// A limit, as it is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limit {
    /// What it is for: `server`, `tool NAME` or `agent`.
    pub what: String,
    /// How often it may be called.
    pub rate: Rate,
    /// How many calls it has refused.
    pub refused: u64,
}

#[derive(Debug, Default)]
struct State {
    /// As many as are configured.
    servers: HashMap<String, ServerState>,
    /// As many as are here: those that leave are forgotten.
    agents: HashMap<u64, Used>,
}

#[derive(Debug, Default)]
struct ServerState {
    whole: Option<(Rate, Used)>,
    /// By patterns. The tools that one fits share it.
    tools: Vec<(String, Rate, Used)>,
}

#[derive(Debug, Default)]
struct Used {
    bucket: Bucket,
    refused: u64,
}

/// Something that is to be let through.
#[derive(Debug, Clone, Copy)]
pub struct Charge<'a> {
    /// Who calls.
    pub agent: &'a Arc<Agent>,
    /// Who that is to us.
    pub standing: &'a Standing,
    /// The server, by its name in the configuration.
    pub server: &'a str,
    /// The tool, if it is one.
    pub tool: Option<&'a str>,
}

/// What a limit is for.
#[derive(Clone, Copy)]
enum Whose<'a> {
    Server,
    Tools(&'a str),
    Agent,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            began: Instant::now(),
            state: Arc::default(),
        }
    }
}

impl Limits {
    /// Other limits count from now on. What was used of those that stay is still used.
    pub fn apply(&self, config: &Config) {
        let mut state = self.state.lock();
        let mut before = std::mem::take(&mut state.servers);
        for server in &config.servers {
            let rules = &server.rules;
            if rules.rate_limit.is_none() && rules.tool_rate_limits.is_empty() {
                continue;
            }
            let mut old = before.remove(&server.name).unwrap_or_default();
            let whole = |rate| (rate, old.whole.take().map(|old| old.1).unwrap_or_default());
            let mut used = |pattern: &String| {
                let same = |(other, ..): &&mut (String, Rate, Used)| other == pattern;
                let old = old.tools.iter_mut().find(same);
                old.map(|old| std::mem::take(&mut old.2))
                    .unwrap_or_default()
            };
            let tools = rules.tool_rate_limits.iter();
            let tools = tools.map(|(pattern, rate)| (pattern.clone(), *rate, used(pattern)));
            let tools = tools.collect();
            let whole = rules.rate_limit.map(whole);
            let now = ServerState { whole, tools };
            state.servers.insert(server.name.clone(), now);
        }
    }

    /// Lets a call through, or says when it may come again.
    pub fn take(&self, charge: Charge<'_>) -> Result<(), Failure> {
        let now = self.began.elapsed();
        let mut state = self.state.lock();
        let State { servers, agents } = &mut *state;
        let mut limits = Vec::new();
        if let Some(server) = servers.get_mut(charge.server) {
            let whole = server.whole.iter_mut();
            limits.extend(whole.map(|(rate, used)| (Whose::Server, *rate, used)));
            if let Some(tool) = charge.tool {
                let fit = server.tools.iter_mut();
                let fit = fit.filter(|(pattern, ..)| matches(pattern, tool));
                limits
                    .extend(fit.map(|(pattern, rate, used)| (Whose::Tools(pattern), *rate, used)));
            }
        }
        if let Some(rate) = charge.standing.rate_limit {
            let id = charge.agent.id();
            let used = agents.entry(id).or_insert_with(|| {
                self.forget_when_gone(charge.agent);
                Used::default()
            });
            limits.push((Whose::Agent, rate, used));
        }
        let buckets = limits.iter_mut();
        let mut buckets: Vec<_> = buckets
            .map(|(_, rate, used)| (*rate, &mut used.bucket))
            .collect();
        let Err(refused) = rate::take_all(&mut buckets, now) else {
            return Ok(());
        };
        let (whose, rate, used) = &mut limits[refused.limit];
        used.refused += 1;
        Err(failure(charge, *whose, *rate, refused.wait))
    }

    fn forget_when_gone(&self, agent: &Agent) {
        let (id, gone) = (agent.id(), agent.gone());
        let state: Weak<Mutex<State>> = Arc::downgrade(&self.state);
        tokio::spawn(async move {
            gone.await;
            if let Some(state) = state.upgrade() {
                state.lock().agents.remove(&id);
            }
        });
    }

    /// The limits of a server.
    pub fn of_server(&self, name: &str) -> Vec<Limit> {
        let state = self.state.lock();
        let Some(server) = state.servers.get(name) else {
            return Vec::new();
        };
        let limit = |what: String, rate: Rate, used: &Used| Limit {
            what,
            rate,
            refused: used.refused,
        };
        let whole = server.whole.iter();
        let whole = whole.map(|(rate, used)| limit("server".to_owned(), *rate, used));
        let tools = server.tools.iter();
        let tools =
            tools.map(|(pattern, rate, used)| limit(format!("tool {pattern}"), *rate, used));
        whole.chain(tools).collect()
    }

    /// The limit of an agent, if it has one.
    pub fn of_agent(&self, agent: u64, standing: &Standing) -> Option<Limit> {
        let rate = standing.rate_limit?;
        let state = self.state.lock();
        let used = state.agents.get(&agent);
        Some(Limit {
            what: "agent".to_owned(),
            rate,
            refused: used.map_or(0, |used| used.refused),
        })
    }
}

fn failure(charge: Charge<'_>, whose: Whose<'_>, rate: Rate, wait: Duration) -> Failure {
    let server = charge.server;
    let (what, place) = match whose {
        Whose::Server => (
            format!("{server:?} may be called"),
            format!("\"rate_limit\" of the server {server:?}"),
        ),
        Whose::Tools(pattern) => {
            let what = match charge.tool {
                Some(tool) if tool == pattern => format!("{tool:?} of {server:?} may be called"),
                _ => format!("{pattern:?} of {server:?} together may be called"),
            };
            let place = format!("\"rate_limit.tools\" of the server {server:?}");
            (what, place)
        }
        Whose::Agent => {
            let place = match &charge.standing.rule {
                Some(rule) => format!("\"policy.rate_limit\", or that of \"policy.agents.{rule}\""),
                None => "\"policy.rate_limit\"".to_owned(),
            };
            (format!("{} may call", charge.agent.label()), place)
        }
    };
    let message = format!("{what} {rate}: try again in {}", in_words(wait));
    Failure::new(Reason::RateLimited, message).with(|details| {
        details.server = Some(server.to_owned());
        details.tool = charge.tool.map(str::to_owned);
        details.retry_after = Some(wait);
        let hint = format!(
            "call less often; whoever runs Nexus can change the limit: {place} in nexus.toml"
        );
        details.hint = Some(hint);
    })
}

/// `3 s`, rounded up: whoever waits so long is let in.
fn in_words(wait: Duration) -> String {
    match wait.as_micros().div_ceil(1000) {
        ms @ 0..1000 => format!("{ms} ms"),
        ms @ 1000..120_000 => format!("{} s", ms.div_ceil(1000)),
        ms => format!("{} min", ms.div_ceil(60_000)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ServerRules;

    fn config(whole: Option<&str>, tools: &[(&str, &str)]) -> Config {
        let rate = |text: &str| Rate::parse(text).unwrap();
        let mut config = Config::of_one("mail");
        config.servers[0].rules = ServerRules {
            rate_limit: whole.map(rate),
            tool_rate_limits: tools
                .iter()
                .map(|(pattern, text)| ((*pattern).to_owned(), rate(text)))
                .collect(),
            ..ServerRules::default()
        };
        config
    }

    fn take(
        limits: &Limits,
        agent: &Arc<Agent>,
        standing: &Standing,
        tool: Option<&str>,
    ) -> Result<(), Failure> {
        limits.take(Charge {
            agent,
            standing,
            server: "mail",
            tool,
        })
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_passes_all_its_limits_or_is_told_which_one_it_does_not() {
        let limits = Limits::default();
        limits.apply(&config(Some("3/min"), &[("send*", "60/h burst 1")]));
        let (agent, nobody) = (Arc::default(), Standing::default());
        take(&limits, &agent, &nobody, Some("send")).unwrap();
        let failure = take(&limits, &agent, &nobody, Some("send_all")).unwrap_err();
        assert_eq!(failure.reason, Reason::RateLimited);
        assert_eq!(
            failure.message,
            "\"send*\" of \"mail\" together may be called 60/h burst 1: try again in 60 s"
        );
        assert_eq!(failure.details.retry_after, Some(Duration::from_secs(60)));
        // What was refused cost the server's limit nothing.
        take(&limits, &agent, &nobody, None).unwrap();
        take(&limits, &agent, &nobody, Some("read")).unwrap();
        let failure = take(&limits, &agent, &nobody, None).unwrap_err();
        assert_eq!(
            failure.message,
            "\"mail\" may be called 3/min: try again in 20 s"
        );
        let refused: Vec<_> = limits.of_server("mail").iter().map(|l| l.refused).collect();
        assert_eq!(refused, [1, 1]);
        tokio::time::advance(Duration::from_secs(20)).await;
        take(&limits, &agent, &nobody, None).unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn other_limits_count_at_once_and_what_was_used_is_used() {
        let limits = Limits::default();
        let (agent, nobody) = (Arc::default(), Standing::default());
        limits.apply(&config(Some("1/h"), &[]));
        take(&limits, &agent, &nobody, None).unwrap();
        take(&limits, &agent, &nobody, None).unwrap_err();
        limits.apply(&config(Some("2/min"), &[]));
        let failure = take(&limits, &agent, &nobody, None).unwrap_err();
        assert_eq!(failure.details.retry_after, Some(Duration::from_secs(30)));
        assert_eq!(limits.of_server("mail")[0].refused, 2);
        limits.apply(&config(None, &[]));
        take(&limits, &agent, &nobody, None).unwrap();
        assert!(limits.state.lock().servers.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn each_agent_has_its_own_and_it_goes_with_the_agent() {
        let limits = Limits::default();
        let standing = Standing {
            rate_limit: Rate::parse("1/min"),
            ..Standing::default()
        };
        let (one, two): (Arc<Agent>, Arc<Agent>) = Default::default();
        take(&limits, &one, &standing, None).unwrap();
        take(&limits, &two, &standing, None).unwrap();
        let failure = take(&limits, &one, &standing, None).unwrap_err();
        assert!(
            failure
                .message
                .ends_with("may call 1/min: try again in 60 s")
        );
        let shown = limits.of_agent(one.id(), &standing).unwrap();
        assert_eq!((shown.refused, shown.what.as_str()), (1, "agent"));
        take(&limits, &one, &Standing::OPERATOR, None).unwrap();
        drop(one);
        tokio::task::yield_now().await;
        assert_eq!(limits.state.lock().agents.len(), 1);
    }
}
