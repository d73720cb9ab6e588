//! What happens between Nexus and servers that are reached over HTTP, against real sockets.

mod credentials;
mod mock;
mod old;
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

/// 72.
#[tokio::test]
async fn a_session_that_has_ended_is_begun_anew_and_nothing_is_lost() {
    let ended = Arc::new(AtomicBool::new(false));
    let script = Arc::clone(&ended);
    let mock = Mock::start(Era::Legacy, move |seen| {
        let old = seen.header("mcp-session-id") == Some("session-1");
        (old && script.load(Ordering::Relaxed)).then(|| Answer::status(404))
    })
    .await;
    let (_daemon, nexus) = ready(&mock.url, json!({})).await;
    let mut updates = nexus.resources().subscribe("x:///a").await.unwrap();
    eventually("it is told", || mock.seen("resources/subscribe").len() == 1).await;
    ended.store(true, Ordering::Relaxed);
    let calls = (0..20).map(|n| {
        let nexus = nexus.clone();
        tokio::spawn(async move { echo(&nexus, &n.to_string()).await.unwrap() == n.to_string() })
    });
    for call in calls.collect::<Vec<_>>() {
        assert!(call.await.unwrap());
    }
    assert_eq!(mock.seen("initialize").len(), 2, "once is enough");
    eventually("it is told again", || {
        mock.seen("resources/subscribe").len() == 2
    })
    .await;
    let told = tokio::time::timeout(PATIENCE, updates.next()).await;
    assert!(told.unwrap().is_some());
    let server = nexus.servers().get("t").await.unwrap();
    assert_eq!((server.state, server.restarts), (ServerState::Ready, 0));
    let carried = mock.seen("tools/call");
    let carried: Vec<_> = carried
        .into_iter()
        .filter(|seen| seen.header("mcp-session-id") == Some("session-2"))
        .collect();
    assert_eq!(carried.len(), 20, "{:?}", nonces(&carried));
}

#[tokio::test]
async fn a_server_that_knows_no_session_at_all_is_not_asked_for_ever() {
    let started = Arc::new(AtomicBool::new(false));
    let script = Arc::clone(&started);
    let mock = Mock::start(Era::Legacy, move |seen| {
        let in_call = seen.is("tools/call") && script.load(Ordering::Relaxed);
        in_call.then(|| Answer::status(404))
    })
    .await;
    let (_daemon, nexus) = ready(&mock.url, json!({})).await;
    started.store(true, Ordering::Relaxed);
    let error = echo(&nexus, "x").await.unwrap_err();
    assert!(error.to_string().contains("404"), "{error}");
    assert_eq!(mock.seen("tools/call").len(), 4);
    assert_eq!(mock.seen("initialize").len(), 4);
}

#[tokio::test]
async fn a_server_without_a_stream_of_its_own_is_left_in_peace() {
    // Many answer 404 where they should answer 405.
    let mock = Mock::start(Era::Legacy, |seen| {
        (seen.verb == "GET").then(|| Answer::status(404))
    })
    .await;
    let (_daemon, nexus) = ready(&mock.url, json!({})).await;
    let listened = || mock.all().iter().filter(|seen| seen.verb == "GET").count();
    eventually("it is asked for one", || listened() == 1).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(echo(&nexus, "x").await.unwrap(), "x");
    assert_eq!((mock.seen("initialize").len(), listened()), (1, 1));
}

/// 73.
#[tokio::test]
async fn a_method_that_is_missing_is_not_a_session_that_has_ended() {
    let mock = Mock::start(Era::Modern, |seen| {
        let error = || Answer::json(&seen.error(-32601, "Method not found")).code(404);
        seen.is("resources/read").then(error)
    })
    .await;
    let (_daemon, nexus) = ready(&mock.url, json!({})).await;
    let error = nexus
        .resources()
        .read_from("t", "x:///a")
        .await
        .unwrap_err();
    assert_eq!(error.failure().unwrap().details.rpc_code, Some(-32601));
    assert_eq!(mock.seen("resources/read").len(), 1);
    assert_eq!(mock.seen("initialize").len(), 0);
}

/// 74.
#[tokio::test]
async fn a_bad_request_is_read_before_anything_is_made_of_it() {
    // A session that is said to be unknown with 400 is begun anew.
    let mock = Mock::start(Era::Legacy, |seen| {
        let old = seen.is("tools/call") && seen.header("mcp-session-id") == Some("session-1");
        let error = seen.error(-32000, "Bad Request: No valid session ID provided");
        old.then(|| Answer::json(&error).code(400))
    })
    .await;
    let (_daemon, nexus) = ready(&mock.url, json!({})).await;
    assert_eq!(echo(&nexus, "x").await.unwrap(), "x");
    assert_eq!(mock.seen("initialize").len(), 2);
    // One that names revisions that nobody here speaks is told so, and nothing else is tried.
    let mock = Mock::start(Era::Legacy, |seen| {
        let mut error = seen.error(-32022, "Unsupported protocol version");
        error["error"]["data"] = json!({"supported": ["2030-01-01"], "requested": "2026-07-28"});
        seen.is("server/discover")
            .then(|| Answer::json(&error).code(400))
    })
    .await;
    let daemon = daemon_with(&mock.url, json!({}));
    let nexus = daemon.client().await;
    let server = server_when(&nexus, "t", |server| server.last_failure.is_some()).await;
    let message = server.last_failure.unwrap().message;
    assert!(message.contains("2030-01-01"), "{message}");
    assert!(mock.seen("initialize").is_empty());
    assert!(mock.all().iter().all(|seen| seen.verb == "POST"));
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

/// 79.
#[tokio::test]
async fn a_stream_that_breaks_is_taken_up_where_it_broke() {
    let mock = Mock::start(Era::Legacy, |seen| {
        let progress = |n: u64, token: &Value| {
            let params = json!({"progressToken": token, "progress": n});
            json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})
        };
        let answer = |id: u64| {
            let result = json!({"content": [{"type": "text", "text": "whole"}]});
            json!({"jsonrpc": "2.0", "id": id, "result": result})
        };
        match (seen.verb.as_str(), seen.header("last-event-id")) {
            ("POST", _) if seen.is("tools/call") => {
                let token = &seen.body["params"]["_meta"]["progressToken"];
                let id = seen.body["id"].as_u64().unwrap();
                // Its id says what is to be answered later.
                let events = Answer::events()
                    .part(Part::Text("retry: 20\n".to_owned()))
                    .event(&format!("{id}-1"), &progress(1, token));
                Some(events.part(Part::Cut))
            }
            ("GET", Some(last)) => {
                let (id, n) = last.split_once('-').unwrap();
                let (id, n): (u64, u64) = (id.parse().unwrap(), n.parse().unwrap());
                // It begins with what has arrived already.
                let again = Answer::events().event(last, &progress(n, &json!(id)));
                Some(match n {
                    1..4 => again
                        .event(&format!("{id}-{}", n + 1), &progress(n + 1, &json!(id)))
                        .part(Part::Cut),
                    _ => again.event(&format!("{id}-end"), &answer(id)),
                })
            }
            _ => None,
        }
    })
    .await;
    let (_daemon, nexus) = ready(&mock.url, json!({})).await;
    let call = nexus.tools().call("t.echo", json!({"message": "x"}));
    let mut events = call.stream().await.unwrap();
    let mut heard = Vec::new();
    let mut answer = String::new();
    while let Some(event) = events.next().await {
        match event.unwrap() {
            nexus_client::CallEvent::Progress(progress) => heard.push(progress.progress as u64),
            nexus_client::CallEvent::Result(result) => answer = result.text(),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((heard, &*answer), (vec![1, 2, 3, 4], "whole"));
    assert_eq!(mock.seen("tools/call").len(), 1);
    let server = nexus.servers().get("t").await.unwrap();
    assert!(server.warnings.is_empty(), "{:?}", server.warnings);
}

/// 80.
#[tokio::test]
async fn a_modern_stream_that_breaks_is_one_error_or_asked_anew() {
    let mock = Mock::start(Era::Modern, |seen| {
        let log = json!({"jsonrpc": "2.0", "method": "notifications/message",
            "params": {"level": "info", "data": "x"}});
        let cut = || Answer::events().event("7", &log).part(Part::Cut);
        (seen.is("tools/call") && seen.nth % 2 == 1).then(cut)
    })
    .await;
    let (_daemon, nexus) = ready(&mock.url, trusted()).await;
    assert_eq!(look(&nexus, "x").await.unwrap(), "x");
    let seen = mock.seen("tools/call");
    assert_eq!(seen.len(), 2);
    assert_ne!(seen[0].body["id"], seen[1].body["id"]);
    let error = echo(&nexus, "y").await.unwrap_err();
    assert!(error.maybe_executed(), "{error}");
    assert_eq!(mock.seen("tools/call").len(), 3);
    assert!(mock.all().iter().all(|seen| seen.verb == "POST"));
}

/// 81.
#[tokio::test]
async fn an_event_without_an_end_fails_its_own_call_only() {
    let mock = Mock::start(Era::Modern, |seen| {
        let megabyte = || Part::Text("x".repeat(1 << 20));
        let endless = || {
            let start = Answer::events().part(Part::Text("data: {".to_owned()));
            (0..40)
                .fold(start, |answer, _| answer.part(megabyte()))
                .part(Part::Hang)
        };
        let large = || {
            let start = Answer::status(200).with("content-type", "application/json");
            (0..40).fold(start, |answer, _| answer.part(megabyte()))
        };
        match (seen.method(), seen.nth) {
            ("tools/call", 1) => Some(endless()),
            ("tools/call", 2) => Some(large()),
            _ => None,
        }
    })
    .await;
    let (_daemon, nexus) = ready(&mock.url, json!({})).await;
    for _ in 0..2 {
        let error = echo(&nexus, "x").await.unwrap_err();
        assert_eq!(error.reason(), Some(Reason::TooLarge), "{error}");
    }
    assert_eq!(echo(&nexus, "x").await.unwrap(), "x");
    let server = nexus.servers().get("t").await.unwrap();
    assert_eq!((server.state, server.restarts), (ServerState::Ready, 0));
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

/// 83.
#[tokio::test]
async fn a_server_that_is_gone_is_told_and_found_again() {
    let mock = Mock::start(Era::Modern, |_| None).await;
    let (_daemon, nexus) = ready(&mock.url, json!({})).await;
    assert_eq!(echo(&nexus, "x").await.unwrap(), "x");
    let port = mock.port;
    drop(mock);
    let error = loop {
        match echo(&nexus, "gone").await {
            Ok(_) => tokio::time::sleep(Duration::from_millis(5)).await,
            Err(error) => break error,
        }
    };
    let reason = error.reason();
    assert!(
        matches!(reason, Some(Reason::Unreachable | Reason::HttpError)),
        "{error}"
    );
    let error = echo(&nexus, "refused").await.unwrap_err();
    assert!(!error.maybe_executed(), "{error}");
    assert!(error.to_string().contains("cannot be reached"), "{error}");
    let server = server_when(&nexus, "t", |server| server.last_failure.is_some()).await;
    assert!(server.last_failure.unwrap().message.contains("refused"));
    let _mock = Mock::start_with(Era::Modern, port, None, |_| None).await;
    server_when(&nexus, "t", |server| server.state == ServerState::Ready).await;
    assert_eq!(echo(&nexus, "back").await.unwrap(), "back");
}

/// 83.
#[tokio::test]
async fn a_place_that_swallows_everything_is_given_up_after_five_seconds() {
    // Whose queue is full answers nobody.
    let hole = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    let any: std::net::SocketAddr = "127.0.0.1:0".parse().unwrap();
    hole.bind(&any.into()).unwrap();
    hole.listen(0).unwrap();
    let place = hole.local_addr().unwrap().as_socket().unwrap();
    let _full: Vec<_> = (0..4)
        .map(|_| {
            let socket =
                socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
            socket.set_nonblocking(true).unwrap();
            let _ = socket.connect(&place.into());
            socket
        })
        .collect();
    let began = Instant::now();
    let daemon = daemon_with(&format!("http://{place}/mcp"), json!({}));
    let nexus = daemon.client().await;
    let server = server_when(&nexus, "t", |server| server.last_failure.is_some()).await;
    let took = began.elapsed();
    assert!(
        took > Duration::from_secs(4) && took < Duration::from_secs(20),
        "{took:?}"
    );
    let message = server.last_failure.unwrap().message;
    assert!(message.contains("no connection within 5s"), "{message}");
}

/// 86.
#[tokio::test]
async fn nobody_is_led_elsewhere() {
    let other = Mock::start(Era::Modern, |_| None).await;
    let metadata = "http://169.254.169.254/latest/".to_owned();
    let elsewhere = other.url.clone();
    let mock = Mock::start(Era::Modern, move |seen| {
        let to = |status, place: &str| Some(Answer::status(status).with("location", place));
        match (seen.path.as_str(), seen.method(), seen.nth) {
            ("/moved", _, _) => None,
            (_, "tools/call", 1) => to(308, "/moved"),
            (_, "tools/call", 3) => to(307, &elsewhere),
            (_, "tools/call", 4) => to(302, "/moved"),
            (_, "tools/call", 5) => to(308, &metadata),
            (_, "tools/call", 6..) => to(307, "/mcp"),
            _ => None,
        }
    })
    .await;
    let (_daemon, nexus) = ready(&mock.url, json!({"bearer": "hunter2"})).await;
    assert_eq!(echo(&nexus, "x").await.unwrap(), "x");
    for expected in ["not followed", "302", "169.254.169.254", "circles"] {
        let error = echo(&nexus, "x").await.unwrap_err();
        assert!(error.to_string().contains(expected), "{expected}: {error}");
    }
    assert!(other.all().is_empty());
}

#[tokio::test]
async fn an_old_server_that_wants_a_credential_says_so() {
    let mock = Mock::start(Era::Old, |_| Some(Answer::status(401))).await;
    let daemon = daemon_with(&mock.url, json!({"type": "sse"}));
    let nexus = daemon.client().await;
    server_when(&nexus, "t", |server| server.state == ServerState::NeedsAuth).await;
    assert_eq!(mock.all().len(), 1);
}

/// 86.
#[tokio::test]
async fn an_old_server_does_not_lead_our_messages_elsewhere() {
    let mock = Mock::start(Era::Legacy, |seen| {
        let place = "event: endpoint\ndata: http://169.254.169.254/messages\n\n";
        let events = || {
            Answer::events()
                .part(Part::Text(place.to_owned()))
                .part(Part::Hang)
        };
        (seen.verb == "GET").then(events)
    })
    .await;
    let daemon = daemon_with(&mock.url, json!({"type": "sse"}));
    let nexus = daemon.client().await;
    let server = server_when(&nexus, "t", |server| server.last_failure.is_some()).await;
    let message = server.last_failure.unwrap().message;
    assert!(message.contains("not followed"), "{message}");
    assert!(mock.seen("initialize").is_empty());
}

/// 88.
#[tokio::test]
async fn a_proxy_is_used_only_where_it_is_configured() {
    let proxy = Arc::new(AtomicUsize::new(0));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let place = format!("http://{}", listener.local_addr().unwrap());
    let count = Arc::clone(&proxy);
    tokio::spawn(async move {
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
        loop {
            let (mut from, _) = listener.accept().await.unwrap();
            count.fetch_add(1, Ordering::Relaxed);
            tokio::spawn(async move {
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    head.push(from.read_u8().await.unwrap());
                }
                let head = String::from_utf8(head).unwrap();
                let to = head
                    .strip_prefix("CONNECT ")
                    .unwrap()
                    .split(' ')
                    .next()
                    .unwrap();
                let mut to = tokio::net::TcpStream::connect(to.to_owned()).await.unwrap();
                from.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
                let _ = tokio::io::copy_bidirectional(&mut from, &mut to).await;
            });
        }
    });
    for configured in [false, true] {
        let mock = Mock::start(Era::Modern, |_| None).await;
        let home = Home::new();
        let mut server = json!({"url": mock.url});
        if configured {
            server["proxy"] = json!(place);
        }
        home.configure(&servers(&[("t", server)]));
        let mut command = home.nexusd();
        for name in ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY"] {
            command.env(name, &place);
        }
        let daemon = home.start_as(command);
        let nexus = daemon.client().await;
        server_when(&nexus, "t", |server| server.state == ServerState::Ready).await;
        assert_eq!(echo(&nexus, "x").await.unwrap(), "x");
        assert_eq!(proxy.load(Ordering::Relaxed) > 0, configured);
    }
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
