//! A whole connection: whatever a server writes, every request has one outcome, and it is its own.

use crate::envelope::names;
use bytes::Bytes;
use futures_util::FutureExt as _;
use nexus_proto::level::LogLevel;
use nexus_proto::reason::{Failure, Reason};
use nexusd::{
    agent::{Agent, Answers},
    mcp::{
        connection::{CallError, Connection, Host, OnBehalf, Reply, Terms, Waiting},
        offers::Offers,
        outgoing::Ask,
        revision::Revision,
    },
    transport::lines::{Line, LineSplitter},
};
use serde_json::value::RawValue;
use std::{collections::HashMap, sync::Arc};
use tokio::sync::mpsc;

/// Lines of more than this are oversized here.
const MAX: usize = 300;

/// The first byte says what is spoken; the rest is what a server writes.
pub fn check(data: &[u8]) {
    thread_local! {
        static RUNTIME: tokio::runtime::Runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .unwrap();
    }
    let &[which, ref text @ ..] = data else {
        return;
    };
    let revision = Revision::ALL.get(usize::from(which % 6)).copied();
    RUNTIME.with(|runtime| runtime.block_on(converse(revision, text)));
}

async fn converse(revision: Option<Revision>, text: &[u8]) {
    let subscriptions = Arc::default();
    let connection = Arc::new(Connection::new(Host {
        server: "s".into(),
        asks: Arc::default(),
        asks_roots: Arc::default(),
        declared: Answers::ALL,
        owner: None,
        subscriptions: Arc::clone(&subscriptions),
        log: Box::new(|_| {}),
    }));
    if let Some(revision) = revision {
        let offers = Offers::default();
        connection.agree(Terms { revision, offers });
    }
    let _subscription = subscriptions.subscribe("file:///a").unwrap();
    let _listening = connection.listen(b"{}").unwrap();
    // The ids are minted from 1 on; 1 listens.
    let mut waiting: HashMap<u64, Waiting> = (2..).zip(requests(&connection)).collect();
    let is_modern = revision.is_some_and(Revision::is_modern);

    for line in lines(text) {
        let expected = Expected::of(&line, revision);
        connection.receive(line);
        // Questions are answered by tasks of their own.
        tokio::task::yield_now().await;
        waiting.retain(|&id, waiting| match waiting.now_or_never() {
            Some(reply) => {
                expected.assert(id, &reply);
                false
            }
            None => true,
        });
        assert_eq!(connection.in_flight(), waiting.len());
        assert_written(&connection, is_modern);
    }

    let cause = Arc::new(Failure::new(Reason::ServerExited, "it is over"));
    connection.end(&cause);
    for (id, waiting) in waiting {
        let reply = waiting.now_or_never();
        let lost = matches!(
            &reply,
            Some(Err(CallError::Lost(_) | CallError::NotSent(_)))
        );
        assert!(lost, "{id}: {reply:?}");
    }
    assert_eq!(connection.in_flight(), 0);
}

/// Two questions of our own, and three calls of two agents.
fn requests(connection: &Arc<Connection>) -> Vec<Waiting> {
    let ask = |method| Ask {
        method,
        params: &[],
    };
    let agents = [Arc::new(Agent::default()), Arc::new(Agent::default())];
    let call = |agent: &Arc<Agent>| {
        let behalf = OnBehalf {
            agent: Arc::clone(agent),
            events: Some(mpsc::channel(4).0),
            log_level: Some(LogLevel::Debug),
            repeatable: false,
            headers: Vec::new(),
        };
        connection.ask_for(&ask("tools/call"), behalf).unwrap()
    };
    vec![
        connection.ask(&ask("tools/list")).unwrap(),
        connection.probe().unwrap(),
        call(&agents[0]),
        call(&agents[0]),
        call(&agents[1]),
    ]
}

fn lines(text: &[u8]) -> Vec<Line> {
    let mut splitter = LineSplitter::new(MAX);
    splitter.space().extend_from_slice(text);
    let mut lines: Vec<_> = std::iter::from_fn(|| splitter.next_line()).collect();
    lines.extend(splitter.finish());
    lines
}

/// What a line may settle, and with what.
enum Expected {
    /// The responses that it is, or holds: their results, as JSON text.
    Responses(HashMap<u64, Vec<Option<String>>>),
    /// What it was meant to be is not plain, but it must name the id.
    Spoiled(Bytes),
}

impl Expected {
    fn of(line: &Line, revision: Option<Revision>) -> Self {
        let line = match line {
            Line::Whole(line) => line.clone(),
            Line::Oversized { head, tail, .. } => {
                return Self::Spoiled([&head[..], b"\n", tail].concat().into());
            }
        };
        let has_batches = revision.is_none_or(|revision| revision <= Revision::V2025_03_26);
        let batch = has_batches.then(|| serde_json::from_slice::<Vec<&RawValue>>(&line));
        let messages = match batch {
            Some(Ok(batch)) => batch,
            _ => match serde_json::from_slice(&line) {
                Ok(message) => vec![message],
                Err(_) => return Self::Spoiled(line),
            },
        };
        let mut responses: HashMap<u64, Vec<Option<String>>> = HashMap::new();
        for message in messages {
            type Members<'a> = HashMap<String, &'a RawValue>;
            let Ok(members) = serde_json::from_str::<Members<'_>>(message.get()) else {
                continue;
            };
            let id = members.get("id").and_then(|id| id.get().parse().ok());
            let result = members.get("result").map(|it| it.get().to_owned());
            if let Some(id) = id {
                responses.entry(id).or_default().push(result);
            }
        }
        Self::Responses(responses)
    }

    fn assert(&self, id: u64, reply: &Reply) {
        match (self, reply) {
            (Self::Responses(all), Ok(result)) => {
                let result = Some(String::from_utf8(result.to_vec()).unwrap());
                assert!(all[&id].contains(&result), "{id}: {result:?}");
            }
            (Self::Responses(all), Err(CallError::Rpc(_) | CallError::Malformed(_))) => {
                assert!(all.contains_key(&id), "{id}: {reply:?}");
            }
            (Self::Spoiled(line), Err(CallError::TooLarge(_) | CallError::Malformed(_))) => {
                let is_object = line.trim_ascii_start().starts_with(b"{");
                assert!(is_object && names(line, id), "{id}: {line:?}");
            }
            _ => panic!("{id}: {reply:?}"),
        }
    }
}

/// What is written to the server is JSON-RPC, a line each; and no answers where there are no questions.
fn assert_written(connection: &Connection, is_modern: bool) {
    loop {
        let mut frames = Vec::new();
        let some = connection.outbox.next_batch(100, &mut frames);
        if some.now_or_never().is_none() {
            return;
        }
        for frame in frames {
            let (end, message) = frame.bytes.split_last().unwrap();
            assert!(*end == b'\n' && !message.contains(&b'\n'));
            let message: HashMap<String, Box<RawValue>> = serde_json::from_slice(message).unwrap();
            assert_eq!(message["jsonrpc"].get(), "\"2.0\"");
            if !message.contains_key("method") {
                assert!(!is_modern, "{message:?}");
                assert!(message.contains_key("result") != message.contains_key("error"));
                let id = message["id"].get().as_bytes()[0];
                assert!(matches!(id, b'"' | b'-' | b'0'..=b'9'), "{message:?}");
            }
        }
    }
}
