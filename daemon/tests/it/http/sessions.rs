//! Sessions that end, or that there never were.

use super::*;

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
