//! What happens between Nexus and servers that are reached over HTTP, against real sockets.

mod credentials;
mod mock;
mod old;
mod reach;
mod sessions;
mod streams;
mod stress;
mod tls;

use crate::support::{Daemon, Home, HttpServer, PATIENCE, eventually, server_when, servers};
use mock::{Answer, Era, Mock, Part, Seen};
use nexus_client::{Error, Nexus, Reason, ServerState, Wait};
use serde_json::{Value, json};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::time::Instant;

const BOTH: [Era; 2] = [Era::Legacy, Era::Modern];

/// A daemon with one server, `t`, at this place.
fn daemon_with(url: &str, keys: Value) -> Daemon {
    let home = Home::new();
    let mut server = json!({"url": url});
    let more = keys.as_object().unwrap().clone();
    server.as_object_mut().unwrap().extend(more);
    home.configure(&servers(&[("t", server)]));
    home.start()
}

async fn ready(url: &str, keys: Value) -> (Daemon, Nexus) {
    let daemon = daemon_with(url, keys);
    let nexus = daemon.client().await;
    server_when(&nexus, "t", |server| server.state == ServerState::Ready).await;
    (daemon, nexus)
}

async fn echo(nexus: &Nexus, said: &str) -> Result<String, Error> {
    let answer = nexus.tools().call("t.echo", json!({"message": said}));
    Ok(answer.await?.text())
}

/// The same with a tool that may be called twice, where the server is trusted in that.
async fn look(nexus: &Nexus, said: &str) -> Result<String, Error> {
    let answer = nexus.tools().call("t.look", json!({"message": said}));
    Ok(answer.await?.text())
}

fn trusted() -> Value {
    json!({"trust_hints": true})
}

fn nonces(seen: &[Seen]) -> Vec<String> {
    let said = |seen: &Seen| seen.body["params"]["arguments"]["message"].to_string();
    seen.iter().map(said).collect()
}

#[tokio::test]
async fn what_an_era_says_in_headers_is_said() {
    let mock = Mock::start(Era::Modern, |_| None).await;
    let (_daemon, nexus) = ready(
        &mock.url,
        json!({"headers": {"X-Team": "blue", "Mcp-Name": "no"}}),
    )
    .await;
    assert_eq!(echo(&nexus, "hi").await.unwrap(), "hi");
    nexus.resources().read_from("t", "x:///a").await.unwrap();
    let call = &mock.seen("tools/call")[0];
    let said = [
        "mcp-protocol-version",
        "mcp-method",
        "mcp-name",
        "x-team",
        "accept-encoding",
    ];
    let said = said.map(|name| call.header(name).unwrap_or_default());
    assert_eq!(
        said,
        ["2026-07-28", "tools/call", "echo", "blue", "identity"]
    );
    assert_eq!(call.header("mcp-session-id"), None);
    let read = &mock.seen("resources/read")[0];
    assert_eq!(read.header("mcp-name"), Some("x:///a"));
    assert!(mock.all().iter().all(|seen| seen.verb == "POST"));

    let mock = Mock::start(Era::Legacy, |_| None).await;
    let (daemon, nexus) = ready(&mock.url, json!({})).await;
    assert_eq!(echo(&nexus, "hi").await.unwrap(), "hi");
    let first = &mock.seen("initialize")[0];
    assert_eq!(first.header("mcp-protocol-version"), None);
    assert_eq!(first.header("mcp-session-id"), None);
    let call = &mock.seen("tools/call")[0];
    assert_eq!(call.header("mcp-protocol-version"), Some("2025-11-25"));
    assert_eq!(call.header("mcp-session-id"), Some("session-1"));
    assert_eq!(call.header("mcp-method"), None);
    let listened = || mock.all().into_iter().find(|seen| seen.verb == "GET");
    eventually("it listens", || listened().is_some()).await;
    assert_eq!(
        listened().unwrap().header("mcp-session-id"),
        Some("session-1")
    );
    let server = nexus.servers().get("t").await.unwrap();
    assert_eq!((&*server.transport, server.pid), ("http", None));
    assert_eq!(server.url.as_deref(), Some(mock.url.as_str()));
    // Not on this thread: the server is to hear of it.
    tokio::task::spawn_blocking(move || daemon.end())
        .await
        .unwrap();
    let last = mock.all().pop().unwrap();
    assert_eq!(
        (last.verb.as_str(), last.header("mcp-session-id")),
        ("DELETE", Some("session-1"))
    );
}

#[tokio::test]
async fn arguments_that_a_server_wants_in_headers_are_there_as_well() {
    let mock = Mock::start(Era::Modern, |seen| {
        let schema = json!({"type": "object", "properties": {
            "message": {"type": "string", "x-mcp-header": "Said"},
            "n": {"type": "number", "x-mcp-header": "N"},
        }});
        let tools = json!({"tools": [{"name": "echo", "inputSchema": schema}], "ttlMs": 600_000});
        seen.is("tools/list")
            .then(|| Answer::json(&seen.result(tools)))
    })
    .await;
    let (_daemon, nexus) = ready(&mock.url, json!({})).await;
    let call = nexus
        .tools()
        .call("t.echo", json!({"message": "é", "n": 1.5}));
    call.await.unwrap();
    let call = &mock.seen("tools/call")[0];
    assert_eq!(call.header("mcp-param-said"), Some("=?base64?w6k=?="));
    assert_eq!(call.header("mcp-param-n"), Some("1.5"));
}

/// 75.
#[tokio::test]
async fn whoever_wants_a_credential_is_not_asked_again_until_there_is_one() {
    for era in BOTH {
        let good = Arc::new(AtomicBool::new(true));
        let script = Arc::clone(&good);
        let mock = Mock::start(era, move |seen| {
            let challenge = "Bearer realm=\"x\", error=\"invalid_token\"";
            let no = || Answer::status(401).with("www-authenticate", challenge);
            (seen.verb == "POST" && !script.load(Ordering::Relaxed)).then(no)
        })
        .await;
        let keys = json!({"headers": {"Authorization": "Bearer hunter2"}});
        let (daemon, nexus) = ready(&mock.url, keys).await;
        assert_eq!(
            mock.all()[0].header("authorization"),
            Some("Bearer hunter2")
        );
        good.store(false, Ordering::Relaxed);
        let calls = (0..50).map(|_| {
            let nexus = nexus.clone();
            tokio::spawn(async move { echo(&nexus, "x").await.unwrap_err() })
        });
        for call in calls.collect::<Vec<_>>() {
            let error = call.await.unwrap();
            assert_eq!(error.reason(), Some(Reason::NeedsAuth), "{error}");
            assert!(!error.maybe_executed(), "{error:?}");
            assert!(
                error.hint().unwrap().contains("headers"),
                "{:?}",
                error.hint()
            );
        }
        let server = nexus.servers().get("t").await.unwrap();
        assert_eq!((server.state, server.restarts), (ServerState::NeedsAuth, 0));
        let asked = mock.all().len();
        for _ in 0..20 {
            echo(&nexus, "x").await.unwrap_err();
        }
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert_eq!(mock.all().len(), asked, "it was asked again");
        good.store(true, Ordering::Relaxed);
        nexus.servers().restart("t", Wait::Done).await.unwrap();
        assert_eq!(echo(&nexus, "x").await.unwrap(), "x");
        assert!(!daemon.log().contains("hunter2"), "{}", daemon.log());
    }
}

/// 76.
#[tokio::test]
async fn what_a_credential_is_not_good_for_is_told_and_not_tried_again() {
    let mock = Mock::start(Era::Modern, |seen| {
        let challenge = "Bearer error=\"insufficient_scope\", scope=\"files:write\"";
        let no = || Answer::status(403).with("www-authenticate", challenge);
        (seen.is("tools/call") && seen.nth == 1).then(no)
    })
    .await;
    let (_daemon, nexus) = ready(&mock.url, trusted()).await;
    let error = look(&nexus, "x").await.unwrap_err();
    assert_eq!(error.reason(), Some(Reason::Forbidden), "{error}");
    assert!(error.to_string().contains("insufficient_scope"), "{error}");
    assert_eq!(mock.seen("tools/call").len(), 1);
    assert_eq!(look(&nexus, "x").await.unwrap(), "x");
}

/// 77.
#[tokio::test]
async fn a_server_that_wants_to_be_left_alone_is() {
    for form in ["seconds", "date"] {
        let mock = Mock::start(Era::Modern, move |seen| {
            let limited = match form {
                "seconds" => Answer::status(429).with("retry-after", "1"),
                _ => Answer::status(429)
                    .with("date", "Wed, 21 Oct 2015 07:28:00 GMT")
                    .with("retry-after", "Wed, 21 Oct 2015 07:28:01 GMT"),
            };
            (seen.is("tools/call") && seen.nth == 1).then_some(limited)
        })
        .await;
        let (_daemon, nexus) = ready(&mock.url, json!({})).await;
        let began = Instant::now();
        let first = {
            let nexus = nexus.clone();
            tokio::spawn(async move { echo(&nexus, "first").await })
        };
        eventually("it is refused", || mock.seen("tools/call").len() == 1).await;
        // It is for everybody.
        assert_eq!(echo(&nexus, "second").await.unwrap(), "second");
        assert_eq!(first.await.unwrap().unwrap(), "first");
        assert!(began.elapsed() >= Duration::from_secs(1), "{form}");
        assert_eq!(mock.seen("tools/call").len(), 3);
    }
    // Whoever would wait for long is told instead.
    let mock = Mock::start(Era::Modern, |seen| {
        let long = || Answer::status(429).with("retry-after", "3600");
        seen.is("tools/call").then(long)
    })
    .await;
    let (_daemon, nexus) = ready(&mock.url, json!({})).await;
    for _ in 0..3 {
        let error = echo(&nexus, "x").await.unwrap_err();
        assert_eq!(error.reason(), Some(Reason::Overloaded), "{error}");
        let after = error.failure().unwrap().details.retry_after.unwrap();
        assert!(after > Duration::from_secs(290) && after <= Duration::from_secs(300));
        assert!(!error.maybe_executed());
    }
    assert_eq!(mock.seen("tools/call").len(), 1);
}

/// 78.
#[tokio::test]
async fn only_what_is_safe_is_asked_again_of_a_server_that_is_ill() {
    let mock = Mock::start(Era::Modern, |seen| {
        (seen.is("tools/call") && seen.nth <= 2).then(|| Answer::status(503))
    })
    .await;
    let (_daemon, nexus) = ready(&mock.url, trusted()).await;
    assert_eq!(look(&nexus, "x").await.unwrap(), "x");
    assert_eq!(mock.seen("tools/call").len(), 3);
    let mock = Mock::start(Era::Modern, |seen| {
        seen.is("tools/call")
            .then(|| Answer::status(502).part(Part::Text("bad gateway".into())))
    })
    .await;
    let (_daemon, nexus) = ready(&mock.url, trusted()).await;
    let error = echo(&nexus, "x").await.unwrap_err();
    assert_eq!(
        (error.reason(), error.maybe_executed()),
        (Some(Reason::HttpError), true)
    );
    assert!(
        error.to_string().contains("502") && error.to_string().contains("bad gateway"),
        "{error}"
    );
    assert_eq!(mock.seen("tools/call").len(), 1, "a call was repeated");
    look(&nexus, "x").await.unwrap_err();
    assert_eq!(mock.seen("tools/call").len(), 4, "two more tries");
}

/// 78.
#[tokio::test]
async fn a_server_that_answers_with_errors_only_is_left_alone_and_tried_again() {
    let ill = Arc::new(AtomicBool::new(false));
    let script = Arc::clone(&ill);
    let mock = Mock::start(Era::Modern, move |seen| {
        let is_ill = script.load(Ordering::Relaxed) && !seen.is("");
        is_ill.then(|| Answer::status(500))
    })
    .await;
    let (_daemon, nexus) = ready(&mock.url, json!({})).await;
    ill.store(true, Ordering::Relaxed);
    let began = Instant::now();
    let failed = server_when(&nexus, "t", |server| server.state == ServerState::CrashLoop);
    let calls = async {
        loop {
            let _ = echo(&nexus, "x").await;
        }
    };
    let server = tokio::select! {
        server = failed => server,
        () = calls => unreachable!(),
    };
    assert!(server.next_try.is_some());
    // While it is left alone nobody waits, and it is not asked.
    let asked = mock.all().len();
    let open = Instant::now();
    for _ in 0..100 {
        let error = echo(&nexus, "x").await.unwrap_err();
        assert_eq!(error.reason(), Some(Reason::CrashLoop), "{error}");
    }
    assert!(open.elapsed() < Duration::from_secs(5));
    assert!(mock.all().len() <= asked + 1, "{:?}", began.elapsed());
    ill.store(false, Ordering::Relaxed);
    nexus.servers().start("t", Wait::Done).await.unwrap();
    assert_eq!(echo(&nexus, "x").await.unwrap(), "x");
}

/// 82.
#[tokio::test]
async fn what_is_not_mcp_is_told_as_that() {
    let mock = Mock::start(Era::Modern, |seen| {
        let page = |kind: &str| {
            let page = Part::Text("<html><title>Sign in</title></html>".to_owned());
            Answer::status(200).with("content-type", kind).part(page)
        };
        match (seen.method(), seen.nth) {
            ("tools/call", 1) => Some(page("text/html; charset=utf-8")),
            ("tools/call", 2) => Some(page("application/json")),
            ("tools/call", 3) => Some(page("application/json").with("content-encoding", "gzip")),
            ("tools/call", 4) => Some(Answer::status(202)),
            ("tools/call", 5) => Some(Answer::json(
                &json!({"jsonrpc": "2.0", "id": 999_999, "result": {}}),
            )),
            _ => None,
        }
    })
    .await;
    let (_daemon, nexus) = ready(&mock.url, trusted()).await;
    for expected in ["text/html", "not an answer", "gzip", "202", "not an answer"] {
        let error = look(&nexus, "x").await.unwrap_err();
        assert_eq!(error.reason(), Some(Reason::ProtocolError), "{error}");
        assert!(error.to_string().contains(expected), "{expected}: {error}");
    }
    assert_eq!(look(&nexus, "x").await.unwrap(), "x");
}

/// 89.
#[tokio::test]
async fn a_connection_that_is_closed_after_its_answer_costs_nobody_a_call() {
    let mock = Mock::start(Era::Modern, |seen| {
        seen.is("tools/call")
            .then(|| Answer::json(&seen.echo()).with("connection", "close"))
    })
    .await;
    let (_daemon, nexus) = ready(&mock.url, json!({})).await;
    for n in 0..200 {
        assert_eq!(echo(&nexus, &n.to_string()).await.unwrap(), n.to_string());
    }
    assert_eq!(mock.seen("tools/call").len(), 200);
}

/// A call that is cancelled ends at the server too: as its era has it.
#[tokio::test]
async fn a_call_that_is_taken_back_is_taken_back_at_the_server() {
    for era in ["legacy", "modern"] {
        let folder = tempfile::tempdir().unwrap();
        let journal = folder.path().join("cancelled");
        let path = journal.to_str().unwrap();
        let server = HttpServer::start(&["--era", era, "--cancel-journal", path]);
        let (_daemon, nexus) = ready(&server.url, json!({})).await;
        let slow = json!({"duration": 60, "steps": 600});
        let call = nexus.tools().call("t.slow_operation", slow);
        let mut events = call.stream().await.unwrap();
        events.next().await.unwrap().unwrap();
        drop(events);
        let cancelled = || std::fs::read_to_string(&journal).unwrap_or_default();
        eventually("it is taken back", || cancelled().contains("cancelled")).await;
    }
}

#[tokio::test]
async fn a_slow_answer_arrives_and_one_without_an_end_does_not_keep_its_caller() {
    let mock = Mock::start(Era::Modern, |seen| {
        let text = seen.echo().to_string();
        let (one, two) = text.split_at(text.len() / 2);
        let half = Answer::status(200)
            .with("content-type", "application/json")
            .part(Part::Text(one.to_owned()));
        match (seen.method(), seen.nth) {
            ("tools/call", 1) => Some(half.part(Part::Wait(300)).part(Part::Text(two.to_owned()))),
            ("tools/call", 2) => Some(half.part(Part::Hang)),
            ("tools/call", 3) => Some(half.part(Part::Cut)),
            _ => None,
        }
    })
    .await;
    let (_daemon, nexus) = ready(&mock.url, json!({"timeout": 1})).await;
    assert_eq!(echo(&nexus, "slow").await.unwrap(), "slow");
    let error = echo(&nexus, "never").await.unwrap_err();
    assert_eq!(error.reason(), Some(Reason::Deadline), "{error}");
    let error = echo(&nexus, "cut").await.unwrap_err();
    assert!(
        error.maybe_executed() && error.to_string().contains("broke off"),
        "{error}"
    );
    assert_eq!(echo(&nexus, "x").await.unwrap(), "x");
}

/// What goes wrong on the way says nothing about how old a server is.
#[tokio::test]
async fn an_outage_is_no_evidence_of_an_era() {
    for status in [500, 502, 503] {
        let mock = Mock::start(Era::Modern, move |seen| {
            let ill = seen.is("server/discover") && seen.nth <= 4;
            let error = seen.error(-32603, "Internal error");
            ill.then(|| Answer::json(&error).code(status))
        })
        .await;
        let (_daemon, nexus) = ready(&mock.url, json!({})).await;
        assert_eq!(echo(&nexus, "x").await.unwrap(), "x");
        assert!(mock.seen("initialize").is_empty(), "{status}");
    }
}

#[tokio::test]
async fn a_session_with_an_odd_name_is_refused() {
    let mock = Mock::start(Era::Legacy, |seen| {
        let result = json!({"protocolVersion": "2025-11-25", "capabilities": {}});
        let long = "x".repeat(300);
        let answer = || Answer::json(&seen.result(result)).with("mcp-session-id", &long);
        seen.is("initialize").then(answer)
    })
    .await;
    let daemon = daemon_with(&mock.url, json!({}));
    let nexus = daemon.client().await;
    let server = server_when(&nexus, "t", |server| server.last_failure.is_some()).await;
    let message = server.last_failure.unwrap().message;
    assert!(message.contains("session"), "{message}");
}

/// The test server, with all that it can do wrong over HTTP.
#[tokio::test]
async fn faults_of_a_whole_server_are_survived_in_both_eras() {
    for era in ["legacy", "modern"] {
        let faults = [
            "http-session@3",
            "http-429",
            "http-503",
            "http-slow@200",
            "http-cut",
        ];
        for fault in faults {
            let server = HttpServer::start(&["--era", era, "--fault", fault]);
            let (_daemon, nexus) = ready(&server.url, trusted()).await;
            for n in 0..8 {
                let said = echo(&nexus, &n.to_string()).await;
                assert_eq!(said.unwrap(), n.to_string(), "{era} {fault}");
            }
            let server = nexus.servers().get("t").await.unwrap();
            assert_eq!(
                (server.state, server.restarts),
                (ServerState::Ready, 0),
                "{era} {fault}"
            );
        }
        for (fault, reason) in [
            ("http-html", Reason::ProtocolError),
            ("http-401", Reason::NeedsAuth),
        ] {
            let server = HttpServer::start(&["--era", era, "--fault", fault]);
            let (_daemon, nexus) = ready(&server.url, json!({})).await;
            let error = echo(&nexus, "x").await.unwrap_err();
            assert_eq!(error.reason(), Some(reason), "{era} {fault}: {error}");
        }
    }
    let server = HttpServer::start(&["--era", "legacy", "--sse", "--interactive"]);
    let url = server.url.replace("/mcp", "/sse");
    let (daemon, nexus) = ready(&url, json!({"type": "sse"})).await;
    assert_eq!(echo(&nexus, "x").await.unwrap(), "x");
    let ann = daemon.agent("ann").await;
    let asked = ann
        .tools()
        .call("t.ask", json!({"kind": "sampling", "text": "hello"}));
    assert!(asked.await.unwrap().text().contains("ann was asked hello"));
}
