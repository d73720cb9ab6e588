use super::*;
use crate::transport::lines::Line;
use nexus_proto::reason::Reason;
use serde_json::Value;

fn connection() -> Arc<Connection> {
    Arc::new(Connection::new(Host {
        server: "s".into(),
        asks: Arc::default(),
        asks_roots: Arc::default(),
        declared: Answers::ALL,
        owner: None,
        subscriptions: Arc::default(),
        log: Box::new(|_| {}),
    }))
}

fn legacy(revision: Revision) -> Arc<Connection> {
    let connection = connection();
    connection.agree(Terms {
        revision,
        offers: Offers::default(),
    });
    connection
}

fn ask(connection: &Arc<Connection>, method: &'static str) -> Result<Waiting, CallError> {
    connection.ask(&Ask {
        method,
        params: &[],
    })
}

fn call(connection: &Arc<Connection>, events: Option<mpsc::Sender<CallEvent>>) -> Waiting {
    let behalf = OnBehalf {
        agent: Arc::default(),
        events,
        log_level: None,
        repeatable: false,
        headers: Vec::new(),
    };
    let ask = Ask {
        method: "tools/call",
        params: &[],
    };
    connection.ask_for(&ask, behalf).unwrap()
}

fn cause() -> Arc<Failure> {
    Arc::new(Failure::new(Reason::ServerExited, "exit code 7"))
}

fn line(text: &str) -> Line {
    Line::Whole(Bytes::copy_from_slice(text.as_bytes()))
}

async fn written(connection: &Connection) -> Vec<Value> {
    let mut batch = Vec::new();
    connection.outbox.next_batch(100, &mut batch).await;
    let read = |frame: &Frame| serde_json::from_slice(&frame.bytes).unwrap();
    batch.iter().map(read).collect()
}

#[tokio::test]
async fn answers_find_their_callers_in_any_order() {
    let connection = connection();
    let first = ask(&connection, "a").unwrap();
    let second = ask(&connection, "b").unwrap();
    connection.receive(line(r#"{"id":2,"result":"two"}"#));
    connection.receive(line(r#"{"id":1,"result":"one"}"#));
    assert_eq!(first.await.unwrap(), "\"one\"");
    assert_eq!(second.await.unwrap(), "\"two\"");
    assert_eq!(connection.in_flight(), 0);
}

#[tokio::test]
async fn repeated_unknown_and_strange_answers_are_dropped_and_counted() {
    let connection = connection();
    let call = ask(&connection, "a").unwrap();
    for text in [
        r#"{"id":99,"result":{}}"#,
        r#"{"id":"1","result":{}}"#,
        r#"{"id":null,"result":{}}"#,
        "npm warn deprecated",
    ] {
        connection.receive(line(text));
    }
    connection.receive(line(r#"{"id":1,"result":"first"}"#));
    connection.receive(line(r#"{"id":1,"result":"second"}"#));
    assert_eq!(call.await.unwrap(), "\"first\"");
    assert_eq!((connection.oddities(), connection.noise()), (4, 1));
}

#[tokio::test]
async fn the_end_tells_what_was_written_from_what_was_not() {
    let connection = connection();
    let sent = ask(&connection, "a").unwrap();
    written(&connection).await;
    let unsent = ask(&connection, "b").unwrap();
    connection.end(&cause());
    assert!(matches!(sent.await, Err(CallError::Lost(_))));
    assert!(matches!(unsent.await, Err(CallError::NotSent(_))));
    let late = ask(&connection, "c").map(|_| ());
    assert!(matches!(late, Err(CallError::NotSent(_))));
}

#[tokio::test]
async fn a_caller_that_goes_away_cancels_what_was_written_and_takes_back_what_was_not() {
    let connection = connection();
    let sent = ask(&connection, "a").unwrap();
    written(&connection).await;
    drop(sent);
    drop(ask(&connection, "b").unwrap());
    let news = written(&connection).await;
    assert_eq!(news.len(), 1, "{news:?}");
    assert_eq!(news[0]["method"], "notifications/cancelled");
    assert_eq!(news[0]["params"]["requestId"], 1);
    connection.receive(line(r#"{"id":1,"result":"late"}"#));
    assert_eq!(connection.oddities(), 1);
}

#[tokio::test]
async fn a_line_that_cannot_be_kept_fails_its_own_call_only() {
    let connection = connection();
    let large = ask(&connection, "a").unwrap();
    let spoiled = ask(&connection, "b").unwrap();
    let good = ask(&connection, "c").unwrap();
    connection.receive(Line::Oversized {
        head: Bytes::from_static(br#"{"jsonrpc":"2.0","id":1,"result":{"#),
        tail: Bytes::from_static(b"}}"),
        length: 1 << 30,
    });
    connection.receive(Line::Whole(Bytes::from_static(
        b"{\"id\":2,\"result\":{\"text\":\"\xff\"}}",
    )));
    connection.receive(line(r#"{"id":3,"result":{}}"#));
    assert!(matches!(large.await, Err(CallError::TooLarge(_))));
    assert!(matches!(spoiled.await, Err(CallError::Malformed(_))));
    assert!(good.await.is_ok());
}

#[tokio::test]
async fn progress_reaches_its_own_call_and_no_other() {
    let connection = connection();
    let (to, mut from) = mpsc::channel(4);
    let first = call(&connection, Some(to));
    let _other = call(&connection, None);
    for token in ["1", "2", "99", "\"1\""] {
        connection.receive(line(&format!(
            r#"{{"method":"notifications/progress","params":{{"progressToken":{token},"progress":0.5,"total":1}}}}"#
        )));
    }
    let Ok(CallEvent::Progress(progress)) = from.try_recv() else {
        panic!("no progress");
    };
    assert_eq!(progress.total, Some(1.0));
    assert!(from.try_recv().is_err());
    drop(first);
}

#[tokio::test]
async fn what_no_agent_can_answer_is_refused() {
    let connection = legacy(Revision::NEWEST_LEGACY);
    connection.receive(line(r#"{"id":"p","method":"ping"}"#));
    connection.receive(line(r#"{"id":8,"method":"who/knows"}"#));
    let answers = written(&connection).await;
    assert_eq!(answers[0]["result"], serde_json::json!({}));
    assert_eq!(answers[1]["error"]["code"], -32601);
    // Outside a call there is nobody to ask, and that is no reason to let calls in one by one.
    connection.receive(line(r#"{"id":9,"method":"sampling/createMessage"}"#));
    assert_eq!(written(&connection).await[0]["error"]["code"], -1);
    assert!(!connection.host.asks.load(Ordering::Relaxed));
    let _call = call(&connection, None);
    written(&connection).await;
    connection.receive(line(r#"{"id":10,"method":"sampling/createMessage"}"#));
    assert_eq!(written(&connection).await[0]["error"]["code"], -32601);
    assert!(connection.host.asks.load(Ordering::Relaxed));
}

#[tokio::test]
async fn a_batch_is_taken_from_a_server_whose_revision_has_them() {
    for (revision, taken) in [
        (Revision::V2025_03_26, true),
        (Revision::V2025_06_18, false),
    ] {
        let connection = legacy(revision);
        let (first, second) = (
            ask(&connection, "a").unwrap(),
            ask(&connection, "b").unwrap(),
        );
        connection.receive(line(r#"[{"id":2,"result":"two"},{"id":1,"result":"one"}]"#));
        assert_eq!(connection.in_flight() == 0, taken);
        assert_eq!(connection.oddities() == 0, taken);
        if taken {
            assert_eq!(first.await.unwrap(), "\"one\"");
            assert_eq!(second.await.unwrap(), "\"two\"");
        }
    }
}

#[tokio::test]
async fn what_is_asked_quietly_is_never_cancelled_and_its_late_answer_is_no_oddity() {
    let connection = connection();
    let quiet = ask(&connection, "a").unwrap().quietly();
    written(&connection).await;
    drop(quiet);
    assert_eq!(connection.in_flight(), 0);
    connection.receive(line(r#"{"id":1,"result":"late"}"#));
    connection.receive(line(r#"{"id":1,"result":"twice"}"#));
    assert_eq!(connection.oddities(), 1);
    connection.notify("x", b"");
    assert_eq!(written(&connection).await.len(), 1);
}

#[tokio::test]
async fn a_banner_is_forgiven_and_a_flood_of_noise_is_not() {
    let connection = connection();
    for _ in 0..3 {
        for _ in 0..MAX_NOISE {
            connection.receive(line("npm warn deprecated"));
        }
        assert!(!connection.is_only_noise());
        connection.receive(line(r#"{"method":"notifications/message"}"#));
    }
    for _ in 0..=MAX_NOISE {
        connection.receive(line("npm warn deprecated"));
    }
    assert!(connection.is_only_noise());
}

#[tokio::test]
async fn one_that_retires_takes_nothing_new_and_finishes_what_it_has() {
    let connection = connection();
    let call = ask(&connection, "a").unwrap();
    assert!(!connection.retire_if_idle(&cause()));
    connection.retire(&cause());
    let late = ask(&connection, "b").map(|_| ());
    assert!(matches!(late, Err(CallError::NotSent(_))));
    let mut drained = std::pin::pin!(connection.drained());
    assert!(futures_util::poll!(&mut drained).is_pending());
    connection.receive(line(r#"{"id":1,"result":"one"}"#));
    drained.await;
    assert_eq!(call.await.unwrap(), "\"one\"");
}

#[tokio::test]
async fn one_that_retires_idle_is_drained_at_once() {
    let connection = connection();
    connection.retire(&cause());
    connection.drained().await;
}

/// An agent that can be asked, and what it is asked.
fn asked_agent() -> (Arc<Agent>, mpsc::Receiver<crate::agent::ToAgent>) {
    use crate::agent::{Attachment, Hello};
    let (to, from) = mpsc::channel(8);
    let hello = Hello {
        answers: Answers::ALL,
        ..Hello::default()
    };
    let agent = Arc::new(Agent::default());
    agent.attach(Attachment::new(hello, to));
    (agent, from)
}

fn call_of(connection: &Arc<Connection>, agent: &Arc<Agent>) -> Waiting {
    let behalf = OnBehalf {
        agent: Arc::clone(agent),
        events: None,
        log_level: None,
        repeatable: false,
        headers: Vec::new(),
    };
    let ask = Ask {
        method: "tools/call",
        params: &[],
    };
    connection.ask_for(&ask, behalf).unwrap()
}

const QUESTION: &str = r#"{"id":1,"method":"sampling/createMessage","params":{}}"#;

#[tokio::test]
async fn what_a_given_up_call_asks_reaches_nobody_else() {
    let connection = legacy(Revision::NEWEST_LEGACY);
    let (ann, mut asks_ann) = asked_agent();
    let (bob, mut asks_bob) = asked_agent();
    let of_ann = call_of(&connection, &ann);
    let of_bob = call_of(&connection, &bob);
    written(&connection).await;
    // It may be about either, and then one of them gives up.
    connection.receive(line(QUESTION));
    tokio::task::yield_now().await;
    drop(of_ann);
    let answers = written(&connection).await;
    let mut answers: Vec<_> = answers.iter().filter_map(|m| m.get("error")).collect();
    let late;
    if answers.is_empty() {
        late = written(&connection).await;
        answers.extend(late.iter().filter_map(|m| m.get("error")));
    }
    assert_eq!(answers[0]["code"], -1);
    // What it asks after that could still be the other's.
    connection.receive(line(&QUESTION.replace(":1,", ":2,")));
    assert_eq!(written(&connection).await[0]["error"]["code"], -1);
    assert!(asks_ann.try_recv().is_err() && asks_bob.try_recv().is_err());
    // Once the server has answered it after all, it is over.
    connection.receive(line(r#"{"id":1,"result":{}}"#));
    connection.receive(line(&QUESTION.replace(":1,", ":3,")));
    assert!(asks_bob.recv().await.is_some());
    drop(of_bob);
}

#[tokio::test]
async fn a_call_that_began_after_a_question_did_not_cause_it() {
    let connection = legacy(Revision::NEWEST_LEGACY);
    let (ann, mut asks_ann) = asked_agent();
    connection.receive(line(QUESTION));
    let _late = call_of(&connection, &ann);
    let all = written(&connection).await;
    let mut refused = all.iter().any(|message| message["error"]["code"] == -1);
    if !refused {
        refused = written(&connection).await[0]["error"]["code"] == -1;
    }
    assert!(refused && asks_ann.try_recv().is_err());
}

#[tokio::test]
async fn what_may_be_about_a_request_of_our_own_waits_for_that() {
    let connection = legacy(Revision::NEWEST_LEGACY);
    let (ann, mut asks_ann) = asked_agent();
    let list = ask(&connection, "tools/list").unwrap();
    let _call = call_of(&connection, &ann);
    written(&connection).await;
    connection.receive(line(QUESTION));
    tokio::task::yield_now().await;
    assert!(asks_ann.try_recv().is_err());
    connection.receive(line(r#"{"id":1,"result":{}}"#));
    list.await.unwrap();
    assert!(asks_ann.recv().await.is_some());
}

#[tokio::test]
async fn a_server_logs_as_much_as_whoever_wants_most() {
    let connection = connection();
    connection.agree(Terms {
        revision: Revision::NEWEST_LEGACY,
        offers: Offers {
            logging: true,
            ..Offers::default()
        },
    });
    connection.set_level(LogLevel::Error);
    let behalf = OnBehalf {
        agent: Arc::default(),
        events: None,
        log_level: Some(LogLevel::Debug),
        repeatable: false,
        headers: Vec::new(),
    };
    let ask = Ask {
        method: "tools/call",
        params: &[],
    };
    let call = connection.ask_for(&ask, behalf).unwrap();
    let levels = |messages: Vec<Value>| {
        let levels = messages
            .into_iter()
            .filter(|m| m["method"] == "logging/setLevel");
        levels
            .map(|m| m["params"]["level"].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(levels(written(&connection).await), ["error", "debug"]);
    connection.receive(line(r#"{"id":3,"result":{}}"#));
    call.await.unwrap();
    assert_eq!(levels(written(&connection).await), ["error"]);
}
