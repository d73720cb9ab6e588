//! What the clients saw against what the servers did. Pure.
//!
//! Every invocation has exactly one outcome. A result means exactly one execution, on the right server,
//! and the bytes that the server wrote for this call. Nothing runs twice. An error that says that nothing
//! was executed is right, and every error says why.

use std::{
    collections::{BTreeMap, HashMap},
    time::Duration,
};

/// One line of a client's log.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    /// Since the begin of the run.
    pub(crate) at: Duration,
    pub(crate) client: u32,
    pub(crate) nonce: String,
    pub(crate) what: What,
}

#[derive(Debug, Clone)]
pub(crate) enum What {
    Invoked(Invocation),
    Ended(Outcome),
}

#[derive(Debug, Clone)]
pub(crate) struct Invocation {
    pub(crate) server: String,
    pub(crate) tool: String,
    /// What the tool says of itself. It is not to matter: no hint is trusted.
    pub(crate) idempotent: bool,
    /// The bytes of the only good answer; `None` if the call must be refused.
    pub(crate) expected: Option<String>,
}

#[derive(Debug, Clone)]
pub(crate) enum Outcome {
    Ok(String),
    Failed(Failed),
    /// The client went away.
    Cancelled,
}

#[derive(Debug, Clone)]
pub(crate) struct Failed {
    /// As on the wire; for what the client itself found, a word in capitals too.
    pub(crate) reason: String,
    pub(crate) maybe_executed: bool,
    /// The message, and its causes.
    pub(crate) message: String,
    /// How the server ended, if that was told.
    pub(crate) exit: Option<String>,
}

/// One line of a server's journal.
#[derive(Debug, Clone)]
pub(crate) struct Execution {
    pub(crate) server: String,
    pub(crate) unix_ms: u64,
    pub(crate) pid: u32,
    pub(crate) tool: String,
    pub(crate) nonce: String,
}

/// What can be wrong with a history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Wrong {
    /// An invocation without an outcome.
    Lost,
    /// An invocation with several, or an outcome of nothing.
    TwoOutcomes,
    /// A call that ran more than once.
    DupExec,
    /// An answer that was another's, or a call that reached another server or tool.
    Misrouted,
    /// An answer with other bytes than the server wrote.
    Damaged,
    /// A result, or an execution, of what did not or must not run.
    Ghost,
    /// It was said not to have run, and did.
    Denied,
    /// An error that does not say why, or that has no business here.
    Unexplained,
}

#[derive(Debug)]
pub(crate) struct Violation {
    pub(crate) wrong: Wrong,
    pub(crate) text: String,
}

/// Which errors have no business in a run in which only servers and clients fail.
const OF_THE_DAEMON: &[&str] = &["DISCONNECTED", "UNREACHABLE", "SHUTTING_DOWN"];

/// Which errors have no business anywhere.
const OF_NOBODY: &[&str] = &["INTERNAL", "PROTOCOL", "CONFIG_INVALID", "OTHER"];

/// What may happen in a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules {
    /// The daemon itself is killed.
    pub(crate) daemon_ends: bool,
    /// Servers hang, or clients are in a hurry: else a call that ends at its deadline was forgotten.
    pub(crate) deadlines: bool,
}

/// Compares.
pub(crate) fn check(entries: &[Entry], executions: &[Execution], rules: Rules) -> Vec<Violation> {
    let mut calls: BTreeMap<&str, Call<'_>> = BTreeMap::new();
    for entry in entries {
        let call = calls.entry(&entry.nonce).or_default();
        match &entry.what {
            What::Invoked(invocation) => call.invocations.push((entry.client, invocation)),
            What::Ended(outcome) => call.outcomes.push((entry.client, outcome)),
        }
    }
    for execution in executions {
        calls
            .entry(&execution.nonce)
            .or_default()
            .executions
            .push(execution);
    }
    let owners: HashMap<&str, &str> = calls
        .iter()
        .filter_map(|(nonce, call)| {
            Some((call.invocations.first()?.1.expected.as_deref()?, *nonce))
        })
        .collect();
    let mut violations = Vec::new();
    for (nonce, call) in &calls {
        let mut found = |wrong, text: String| {
            let text = format!("{wrong:?}: {nonce}: {text}");
            violations.push(Violation { wrong, text });
        };
        call.check(&owners, rules, &mut found);
    }
    violations
}

/// All that is known of one nonce.
#[derive(Default)]
struct Call<'a> {
    invocations: Vec<(u32, &'a Invocation)>,
    outcomes: Vec<(u32, &'a Outcome)>,
    executions: Vec<&'a Execution>,
}

impl Call<'_> {
    fn check(
        &self,
        owners: &HashMap<&str, &str>,
        rules: Rules,
        found: &mut impl FnMut(Wrong, String),
    ) {
        let [(client, invocation)] = self.invocations[..] else {
            if self.invocations.is_empty() && !self.executions.is_empty() {
                return found(
                    Wrong::Ghost,
                    "was executed, and nobody called it".to_owned(),
                );
            }
            let n = self.invocations.len();
            return found(Wrong::TwoOutcomes, format!("was invoked {n} times"));
        };
        let Invocation {
            server,
            tool,
            idempotent,
            expected,
        } = invocation;
        for execution in &self.executions {
            if (&execution.server, &execution.tool) != (server, tool) {
                let (server, tool) = (&execution.server, &execution.tool);
                found(Wrong::Misrouted, format!("was executed as {server}.{tool}"));
            }
        }
        let runs = self.executions.len();
        if runs > 1 {
            let pids: Vec<u32> = self.executions.iter().map(|e| e.pid).collect();
            found(
                Wrong::DupExec,
                format!("{server}.{tool} (idempotent: {idempotent}) ran in {pids:?}"),
            );
        }
        let (whose, outcome) = match self.outcomes[..] {
            [one] => one,
            [] => return found(Wrong::Lost, format!("{server}.{tool} has no outcome")),
            _ => {
                let n = self.outcomes.len();
                return found(
                    Wrong::TwoOutcomes,
                    format!("{server}.{tool} has {n} outcomes"),
                );
            }
        };
        if whose != client {
            found(
                Wrong::Misrouted,
                format!("the outcome went to client {whose}"),
            );
        }
        if expected.is_none() && runs > 0 {
            found(
                Wrong::Ghost,
                format!("{server}.{tool} must be refused, and ran"),
            );
        }
        match outcome {
            Outcome::Cancelled => {}
            Outcome::Ok(answer) => match expected {
                None => found(
                    Wrong::Ghost,
                    format!("{server}.{tool} must be refused: {answer:.200}"),
                ),
                Some(expected) => {
                    if answer != expected {
                        match owners.get(answer.as_str()) {
                            Some(other) => {
                                found(Wrong::Misrouted, format!("got the answer of {other}"))
                            }
                            None => found(
                                Wrong::Damaged,
                                format!(
                                    "{server}.{tool}: {answer:.200} instead of {expected:.200}"
                                ),
                            ),
                        }
                    }
                    if runs == 0 {
                        found(
                            Wrong::Ghost,
                            format!("{server}.{tool} answered and never ran"),
                        );
                    }
                }
            },
            Outcome::Failed(failed) => {
                let Failed {
                    reason, message, ..
                } = failed;
                if !failed.maybe_executed && runs > 0 {
                    let pid = self.executions[0].pid;
                    found(
                        Wrong::Denied,
                        format!("{server}.{tool} ran in {pid}, but: {reason}: {message}"),
                    );
                }
                if !rules.deadlines && ["DEADLINE", "TIMEOUT"].contains(&reason.as_str()) {
                    found(Wrong::Lost, format!("{server}.{tool}: {message}"));
                }
                if let Some(why) = unexplained(failed, rules) {
                    found(
                        Wrong::Unexplained,
                        format!("{server}.{tool}: {why}: {reason}: {message}"),
                    );
                }
            }
        }
    }
}

fn unexplained(failed: &Failed, rules: Rules) -> Option<&'static str> {
    let reason = failed.reason.as_str();
    if reason.is_empty() || failed.message.is_empty() {
        return Some("says nothing");
    }
    if OF_NOBODY.contains(&reason) || !rules.daemon_ends && OF_THE_DAEMON.contains(&reason) {
        return Some("has no business here");
    }
    if reason == "SERVER_EXITED" && failed.exit.is_none() {
        return Some("does not say how the server ended");
    }
    None
}
