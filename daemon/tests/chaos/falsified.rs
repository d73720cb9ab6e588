//! Histories that are wrong in one way each: a checker that does not object to them is worth nothing.

use crate::history::{Entry, Execution, Failed, Invocation, Outcome, Rules, What, Wrong, check};
use std::time::Duration;

const RULES: Rules = Rules {
    daemon_ends: false,
    deadlines: false,
};

type Falsification = (&'static str, Wrong, fn(&mut History));

#[derive(Clone)]
struct History {
    entries: Vec<Entry>,
    executions: Vec<Execution>,
}

/// Checks the checker; it is a panic if it lets something pass.
pub(crate) fn must_be_found() {
    let good = good();
    let found = good.wrongs();
    assert_eq!(found, [], "the good history is good");
    let falsifications: &[Falsification] = &[
        ("an outcome is missing", Wrong::Lost, |h| {
            h.entries.retain(|e| !(e.nonce == "a" && e.is_outcome()));
        }),
        ("an outcome came at the deadline only", Wrong::Lost, |h| {
            h.set("lost", failed("DEADLINE", true));
        }),
        ("an outcome came twice", Wrong::TwoOutcomes, |h| {
            let again = h.entries.iter().find(|e| e.is_outcome()).cloned();
            h.entries.extend(again);
        }),
        ("an outcome of nothing", Wrong::TwoOutcomes, |h| {
            h.entries.push(ended("x", 1, Outcome::Cancelled));
        }),
        ("a result ran twice", Wrong::DupExec, |h| {
            h.executions.push(ran("a", "one", "echo"));
        }),
        ("a failure ran twice", Wrong::DupExec, |h| {
            h.executions.push(ran("lost", "one", "slow"));
        }),
        ("what was cancelled ran twice", Wrong::DupExec, |h| {
            h.executions.push(ran("left", "one", "echo"));
        }),
        ("two answers are exchanged", Wrong::Misrouted, |h| {
            h.set("a", Outcome::Ok("answer b".into()));
        }),
        ("an outcome went to another", Wrong::Misrouted, |h| {
            let entry = h.entries.iter_mut().find(|e| e.is_outcome());
            entry.into_iter().for_each(|e| e.client = 9);
        }),
        ("another server ran it", Wrong::Misrouted, |h| {
            h.executions[0].server = "two".into();
        }),
        ("another tool ran", Wrong::Misrouted, |h| {
            h.executions[0].tool = "add".into();
        }),
        ("a byte is missing", Wrong::Damaged, |h| {
            h.set("a", Outcome::Ok("answer".into()));
        }),
        ("a result without an execution", Wrong::Ghost, |h| {
            h.executions.retain(|e| e.nonce != "a");
        }),
        ("an execution of nothing", Wrong::Ghost, |h| {
            h.executions.push(ran("nobody", "one", "echo"));
        }),
        ("what must be refused ran", Wrong::Ghost, |h| {
            h.set("refused", failed("SERVER_STOPPED", true));
            h.executions.push(ran("refused", "one", "none"));
        }),
        ("what must be refused succeeded", Wrong::Ghost, |h| {
            h.set("refused", Outcome::Ok("answer".into()));
        }),
        ("an execution is denied", Wrong::Denied, |h| {
            h.set("lost", failed("SERVER_STOPPED", false));
        }),
        ("an error without a reason", Wrong::Unexplained, |h| {
            h.set("lost", failed("", true));
        }),
        ("an end without its cause", Wrong::Unexplained, |h| {
            h.set("lost", failed("SERVER_EXITED", true));
        }),
        ("a fault of the daemon's", Wrong::Unexplained, |h| {
            h.set("lost", failed("INTERNAL", true));
        }),
        ("the daemon was lost", Wrong::Unexplained, |h| {
            h.set("lost", failed("DISCONNECTED", true));
        }),
    ];
    for (name, wrong, falsify) in falsifications {
        let mut history = good.clone();
        falsify(&mut history);
        assert_eq!(history.wrongs(), [*wrong], "{name}");
    }
}

fn good() -> History {
    let exited = Outcome::Failed(Failed {
        reason: "SERVER_EXITED".into(),
        maybe_executed: true,
        message: "the server ended".into(),
        exit: Some("exit code 7".into()),
    });
    let mut entries = Vec::new();
    for (nonce, client, tool, expected, outcome) in [
        (
            "a",
            1,
            "echo",
            Some("answer a"),
            Outcome::Ok("answer a".into()),
        ),
        (
            "b",
            2,
            "echo",
            Some("answer b"),
            Outcome::Ok("answer b".into()),
        ),
        ("lost", 1, "slow", Some("answer c"), exited),
        (
            "unsent",
            1,
            "slow",
            Some("answer d"),
            failed("CRASH_LOOP", false),
        ),
        ("left", 2, "echo", Some("answer e"), Outcome::Cancelled),
        ("refused", 2, "none", None, failed("TOOL_NOT_FOUND", false)),
    ] {
        let what = What::Invoked(Invocation {
            server: "one".into(),
            tool: tool.into(),
            idempotent: tool == "echo",
            expected: expected.map(Into::into),
        });
        entries.push(entry(nonce, client, what));
        entries.push(ended(nonce, client, outcome));
    }
    let executions = vec![
        ran("a", "one", "echo"),
        ran("b", "one", "echo"),
        ran("lost", "one", "slow"),
        ran("left", "one", "echo"),
    ];
    History {
        entries,
        executions,
    }
}

impl History {
    fn wrongs(&self) -> Vec<Wrong> {
        let violations = check(&self.entries, &self.executions, RULES);
        violations.into_iter().map(|v| v.wrong).collect()
    }

    fn set(&mut self, nonce: &str, outcome: Outcome) {
        let mut entries = self.entries.iter_mut();
        let entry = entries.find(|e| e.nonce == nonce && e.is_outcome());
        entry.unwrap().what = What::Ended(outcome);
    }
}

impl Entry {
    fn is_outcome(&self) -> bool {
        matches!(self.what, What::Ended(_))
    }
}

fn entry(nonce: &str, client: u32, what: What) -> Entry {
    Entry {
        at: Duration::ZERO,
        client,
        nonce: nonce.into(),
        what,
    }
}

fn ended(nonce: &str, client: u32, outcome: Outcome) -> Entry {
    entry(nonce, client, What::Ended(outcome))
}

fn failed(reason: &str, maybe_executed: bool) -> Outcome {
    Outcome::Failed(Failed {
        reason: reason.into(),
        maybe_executed,
        message: "because".into(),
        exit: None,
    })
}

fn ran(nonce: &str, server: &str, tool: &str) -> Execution {
    Execution {
        server: server.into(),
        unix_ms: 1,
        pid: 42,
        tool: tool.into(),
        nonce: nonce.into(),
    }
}
