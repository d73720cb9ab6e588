//! Streams that break.

use super::*;

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
