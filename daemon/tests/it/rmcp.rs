//! The official Rust SDK at the other end: a server of its making (`tests/peers/rmcp.rs`), in each version of the
//! protocol; and its client against the test server, so that the test server is known to be good.

mod client;
mod consent;

use crate::support::{Daemon, Home, NEXUSD, eventually, server_when, servers};
use nexus_client::{
    AgentInfo, CallEvent, Error, ListChange, ListKind, LogLevel, Nexus, Reason, ResourceEvent,
    ServerState,
};
use serde_json::{Value, json};
use std::{fs, path::Path, time::Duration};
use tokio::sync::mpsc;

const VERSIONS: [&str; 5] = [
    "2024-11-05",
    "2025-03-26",
    "2025-06-18",
    "2025-11-25",
    "2026-07-28",
];

const COUNTER: &str = "memo://counter";

/// A server that speaks these versions. Cargo builds it with the tests, unless one target alone is asked for.
fn peer(versions: &[&str]) -> Value {
    let program = Path::new(NEXUSD).with_file_name("examples/rmcp-peer");
    assert!(program.exists(), "first: cargo build -p nexusd --examples");
    json!({ "command": program, "args": versions })
}

fn start(versions: &[&str]) -> Daemon {
    let home = Home::new();
    home.configure(&servers(&[("r", peer(versions))]));
    home.start()
}

/// What a tool says.
async fn said(nexus: &Nexus, tool: &str, arguments: Value) -> String {
    let result = nexus.tools().call(format!("r.{tool}"), arguments).await;
    let result = result.unwrap_or_else(|error| panic!("{tool}: {error:?}"));
    assert!(!result.is_error(), "{tool}: {}", result.text());
    result.text()
}

#[tokio::test]
async fn each_version_is_agreed_on_and_the_newest_of_many() {
    for version in VERSIONS {
        let daemon = start(&[version]);
        let nexus = daemon.client().await;
        let server = server_when(&nexus, "r", |s| s.state == ServerState::Ready).await;
        let info = server.info.unwrap();
        assert_eq!(
            (&*info.protocol_version, &*info.name),
            (version, "rmcp-peer")
        );
        assert_eq!(
            info.instructions.as_deref(),
            Some("A peer to be tested against.")
        );
        assert_eq!(server.warnings, [""; 0], "{version}");
    }
    for (versions, agreed) in [(&[][..], "2026-07-28"), (&VERSIONS[..3], "2025-06-18")] {
        let daemon = start(versions);
        let nexus = daemon.client().await;
        let server = server_when(&nexus, "r", |s| s.state == ServerState::Ready).await;
        assert_eq!(server.info.unwrap().protocol_version, agreed);
    }
}

#[tokio::test]
async fn everything_that_it_offers_is_listed_and_can_be_used() {
    for version in VERSIONS {
        let daemon = start(&[version]);
        let nexus = daemon.client().await;
        let tools = nexus.tools().list().await.unwrap().tools;
        assert_eq!(tools.len(), 9, "{version}");
        let add = nexus.tools().get("r.add").await.unwrap();
        assert_eq!(add.output_schema().unwrap()["required"], json!(["sum"]));

        let sum = nexus.tools().call("r.add", json!({"a": 2, "b": 3})).await;
        assert_eq!(sum.unwrap().structured(), Some(json!({"sum": 5})));

        let resources = nexus.resources().list().await.unwrap().resources;
        assert_eq!(resources[0].uri, COUNTER);
        assert_eq!(resources[0].mime_type().as_deref(), Some("text/plain"));
        assert_eq!(nexus.resources().read(COUNTER).await.unwrap().text(), "0");

        let templates = nexus.resources().templates().await.unwrap().templates;
        let template = &templates[0].uri_template;
        assert_eq!(template, "memo://greeting/{name}");
        let filled = nexus
            .resources()
            .read_from("r", "memo://greeting/Ada")
            .await;
        assert_eq!(filled.unwrap().text(), "Hello, Ada!");

        let prompts = nexus.prompts().list().await.unwrap().prompts;
        let argument = &prompts[0].arguments()[0];
        assert_eq!((&*argument.name, argument.required), ("name", true));
        let prompt = nexus.prompts().get("r.greet").arg("name", "Grace");
        assert_eq!(prompt.await.unwrap().text(), "Please greet Grace.");

        let completions = nexus.completions();
        let of_prompt = completions.complete_prompt("r.greet", "name", "Ad");
        assert_eq!(of_prompt.await.unwrap().values, ["Ada", "Adele"]);
        let of_template = completions.complete_template("r", template, "name", "G");
        assert_eq!(of_template.await.unwrap().values, ["Grace"]);
        nexus.servers().ping("r").await.unwrap();
    }
}

#[tokio::test]
async fn what_it_does_not_have_is_told_as_it_tells_it() {
    for version in VERSIONS {
        let daemon = start(&[version]);
        let nexus = daemon.client().await;
        let missing = nexus.resources().read_from("r", "memo://nothing").await;
        let Error::Failed(failure) = missing.unwrap_err() else {
            panic!("{version}")
        };
        let code = if version == "2026-07-28" {
            -32602
        } else {
            -32002
        };
        assert_eq!(failure.details.rpc_code, Some(code), "{version}");
        assert_eq!(failure.message, "no such memo");
        let unfilled = nexus.prompts().get("r.greet").await.unwrap_err();
        assert!(unfilled.reason().is_some(), "{version}: {unfilled:?}");
    }
}

#[tokio::test]
async fn progress_and_log_messages_come_before_the_result() {
    for version in VERSIONS {
        let daemon = start(&[version]);
        let nexus = daemon.client().await;
        let mut events = nexus
            .tools()
            .call_stream("r.count", json!({"to": 20}))
            .await
            .unwrap();
        let mut steps = Vec::new();
        let mut result = None;
        while let Some(event) = events.next().await {
            match event.unwrap() {
                CallEvent::Progress(step) => {
                    assert_eq!((step.total, result.is_none()), (Some(20.0), true));
                    assert_eq!(step.message, Some(format!("step {}", step.progress)));
                    steps.push(step.progress);
                }
                CallEvent::Result(it) => result = Some(it.text()),
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(result.as_deref(), Some("counted to 20"));
        // A reader that is too slow may miss some.
        assert!(!steps.is_empty() && steps.is_sorted(), "{steps:?}");

        let call = nexus.tools().call("r.log", json!({"message": "hm"}));
        let mut events = call.log_level(LogLevel::Warning).stream().await.unwrap();
        let mut logged = Vec::new();
        while let Some(event) = events.next().await {
            if let CallEvent::Log(message) = event.unwrap() {
                logged.push((message.level, message.text(), message.logger));
            }
        }
        let expected = (LogLevel::Warning, "hm".to_owned(), Some("peer".to_owned()));
        assert_eq!(logged, [expected], "{version}");
    }
}

#[tokio::test]
async fn its_questions_reach_the_agent_that_called() {
    for version in VERSIONS {
        let daemon = start(&[version]);
        let (ada, eve) = (daemon.agent("ada").await, daemon.agent("eve").await);
        let message = |text: &str| json!({ "message": text });
        for (name, agent) in [("ada", &ada), ("eve", &eve)] {
            let sampled = said(agent, "sample", message("1?")).await;
            assert_eq!(sampled, format!("{name} was asked 1?"), "{version}");
            // There is no elicitation before 2025-06-18: the SDK asks all the same.
            let elicited = said(agent, "elicit", message("2?")).await;
            assert_eq!(elicited, format!("{name} was asked 2?"), "{version}");
            let roots = said(agent, "roots", json!({})).await;
            assert_eq!(roots, format!("file:///{name}"), "{version}");
        }
        // Many at once: each its own.
        let mut calls = tokio::task::JoinSet::new();
        for n in 0..20 {
            let (name, agent) = [("ada", &ada), ("eve", &eve)][n % 2];
            let (tool, agent) = (["sample", "elicit"][n / 2 % 2], agent.clone());
            calls.spawn(async move {
                let told = said(&agent, tool, json!({ "message": n.to_string() })).await;
                assert_eq!(told, format!("{name} was asked {n}"));
            });
        }
        while let Some(call) = calls.join_next().await {
            call.unwrap();
        }
    }
}

#[tokio::test]
async fn an_agent_that_cannot_be_asked_is_not() {
    for version in VERSIONS {
        let daemon = start(&[version]);
        let nexus = daemon.client().await;
        let sampled = nexus.tools().call("r.sample", json!({"message": "?"}));
        let error = sampled.await.unwrap_err();
        // A legacy server is refused, and says so; a modern one has asked in its answer, and is not asked again.
        let reason = match version {
            "2026-07-28" => Reason::CannotAnswer,
            _ => Reason::ServerError,
        };
        assert_eq!(error.reason(), Some(reason), "{error:?}");
        assert!(error.to_string().contains("cannot be asked"), "{error}");
        assert_eq!(said(&nexus, "touch", json!({})).await, "1");
    }
}

#[tokio::test]
async fn a_subscriber_hears_of_a_change() {
    for version in VERSIONS {
        let daemon = start(&[version]);
        let nexus = daemon.client().await;
        let mut events = nexus.resources().subscribe(COUNTER).await.unwrap();
        let mut next = async || {
            let event = tokio::time::timeout(crate::support::PATIENCE, events.next());
            event.await.expect(version).unwrap().unwrap()
        };
        let server = "r".to_owned();
        assert_eq!(next().await, ResourceEvent::Subscribed { server });
        for n in 1..4 {
            assert_eq!(said(&nexus, "touch", json!({})).await, n.to_string());
            let (uri, maybe) = (COUNTER.to_owned(), false);
            assert_eq!(next().await, ResourceEvent::Updated { uri, maybe });
            let read = nexus.resources().read(COUNTER).await.unwrap();
            assert_eq!(read.text(), n.to_string(), "{version}");
        }
    }
}

#[tokio::test]
async fn a_list_that_grows_is_read_again() {
    for version in VERSIONS {
        let daemon = start(&[version]);
        let (tell, mut told) = mpsc::unbounded_channel();
        let info = AgentInfo::new("reader").on_list_changed(move |change| {
            let _ = tell.send(change);
        });
        let builder = Nexus::builder().socket(daemon.home.socket()).agent(info);
        let nexus = builder.connect().await.unwrap();
        assert_eq!(nexus.tools().list().await.unwrap().tools.len(), 9);
        said(&nexus, "grow", json!({})).await;
        let expected = ListChange::Of {
            server: "r".to_owned(),
            kind: ListKind::Tools,
        };
        let heard = async { while told.recv().await.unwrap() != expected {} };
        let heard = tokio::time::timeout(crate::support::PATIENCE, heard).await;
        heard.expect(version);
        server_when(&nexus, "r", |s| s.tools == 10).await;
        nexus.tools().get("r.grown").await.unwrap();
    }
}

#[tokio::test]
async fn a_call_that_is_given_up_is_cancelled_there() {
    for version in VERSIONS {
        let daemon = start(&[version]);
        let nexus = daemon.client().await;
        // What is not sent in time is not there to be cancelled.
        server_when(&nexus, "r", |s| s.state == ServerState::Ready).await;
        let file = daemon.home.path().join("cancelled");
        let call = nexus.tools().call("r.wait", json!({ "file": file }));
        let error = call.timeout(Duration::from_millis(300)).await.unwrap_err();
        assert!(error.is_timeout(), "{error:?}");
        eventually("cancelled", || {
            fs::read(&file).is_ok_and(|it| !it.is_empty())
        })
        .await;
        // The rest goes on.
        assert_eq!(said(&nexus, "touch", json!({})).await, "1");
        assert_eq!(nexus.servers().get("r").await.unwrap().restarts, 0);
    }
}
