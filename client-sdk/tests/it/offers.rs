//! Resources, prompts, completions and log messages.

use crate::support::Fake;
use nexus_client::{CallEvent, LogLevel, Reason, ResourceEvent, Role};

#[tokio::test]
async fn resources_and_templates_are_listed_with_the_servers_that_are_missing() {
    let fake = Fake::running();
    let nexus = fake.client().await;
    let list = nexus.resources().list().await.unwrap();
    let notes = &list.resources[0];
    assert_eq!(
        (notes.server.as_str(), notes.uri.as_str()),
        ("Demo", "demo://notes")
    );
    assert_eq!(
        (notes.name().as_deref(), notes.size()),
        (Some("notes"), Some(12))
    );
    assert_eq!(notes.mime_type().as_deref(), Some("text/plain"));
    assert_eq!(list.missing[0].reason, Some(Reason::CrashLoop));
    let list = nexus.resources().list_of("Other").await.unwrap();
    assert_eq!(list.resources[0].server, "Other");
    let list = nexus.resources().templates().await.unwrap();
    assert_eq!(list.templates[0].uri_template, "demo://{day}");
    assert_eq!(list.templates[0].title().as_deref(), Some("A day"));
    assert_eq!(nexus.resources().templates_of("x").await.unwrap(), list);
}

#[tokio::test]
async fn what_a_resource_holds_comes_verbatim_and_decoded() {
    let fake = Fake::running();
    let nexus = fake.client().await;
    let result = nexus.resources().read("demo://notes").await.unwrap();
    assert_eq!(result.server(), "Demo");
    assert!(result.raw().as_str().ends_with(r#", "n":1e400 }"#));
    assert_eq!(result.text(), "hi");
    assert_eq!(result.contents()[1].blob(), Some(&[0, 1][..]));
    let result = nexus.resources().read_from("Other", "demo://notes").await;
    assert_eq!(result.unwrap().server(), "Other");
    let error = nexus.resources().read("demo://absent").await.unwrap_err();
    assert_eq!(error.reason(), Some(Reason::ResourceNotFound));
}

#[tokio::test]
async fn changes_of_a_resource_are_a_stream_without_what_is_not_understood() {
    let fake = Fake::running();
    let nexus = fake.client().await;
    let mut events = nexus
        .resources()
        .subscribe_on("Demo", "demo://notes")
        .await
        .unwrap();
    let mut seen = Vec::new();
    while let Some(event) = events.next().await {
        seen.push(event.unwrap());
    }
    let updated = |maybe| ResourceEvent::Updated {
        uri: "demo://notes".into(),
        maybe,
    };
    let server = "Demo".into();
    assert_eq!(
        seen,
        [
            ResourceEvent::Subscribed { server },
            updated(false),
            updated(true)
        ]
    );
    assert!(nexus.resources().subscribe("demo://notes").await.is_ok());
}

#[tokio::test]
async fn prompts_are_listed_and_filled_in() {
    let fake = Fake::running();
    let nexus = fake.client().await;
    let list = nexus.prompts().list().await.unwrap();
    assert_eq!(list.prompts[0].dotted(), "Demo.review");
    assert!(list.prompts[0].arguments()[0].required);
    assert_eq!(list.missing.len(), 1);
    let prompt = nexus
        .prompts()
        .get("demo.review")
        .arg("code", "\"1\"")
        .await
        .unwrap();
    assert_eq!(prompt.text(), r#"demo.review: {"code":"\"1\""}"#);
    assert_eq!(prompt.description().as_deref(), Some("d"));
    assert_eq!(prompt.messages()[0].role, Role::User);
    assert!(prompt.raw().as_str().ends_with(r#", "n":1e400}"#));
    let bare = nexus.prompts().get("x").await.unwrap();
    assert_eq!(bare.text(), "x: ");
}

#[tokio::test]
async fn suggestions_are_asked_for_with_what_is_settled() {
    let fake = Fake::running();
    let nexus = fake.client().await;
    let of_prompt = nexus
        .completions()
        .complete_prompt("demo.review", "language", "py")
        .context("style", "strict")
        .await
        .unwrap();
    let values = ["demo.review", "language", "py", r#"[("style", "strict")]"#];
    assert_eq!(of_prompt.values, values);
    assert_eq!((of_prompt.total, of_prompt.has_more), (Some(9), true));
    let of_template = nexus
        .completions()
        .complete_template("Demo", "demo://{day}", "day", "mon");
    let values = ["demo://{day} of Demo", "day", "mon", "[]"];
    assert_eq!(of_template.await.unwrap().values, values);
}

#[tokio::test]
async fn what_a_server_logs_is_in_the_stream_of_whoever_wants_it() {
    let fake = Fake::running();
    let nexus = fake.client().await;
    let call = nexus.tools().call("demo.echo", serde_json::json!({}));
    let mut events = call
        .clone()
        .log_level(LogLevel::Notice)
        .stream()
        .await
        .unwrap();
    let mut logs = Vec::new();
    let mut results = 0;
    while let Some(event) = events.next().await {
        match event.unwrap() {
            CallEvent::Log(message) => logs.push(message),
            CallEvent::Result(_) => results += 1,
            _ => {}
        }
    }
    assert_eq!((logs.len(), results), (1, 1));
    assert_eq!(logs[0].level, LogLevel::Notice);
    assert_eq!(logs[0].logger.as_deref(), Some("demo"));
    assert_eq!(logs[0].data.as_str(), r#"{"n": 1e400}"#);
    // The result is waited for past them, and without a level there are none.
    let events = call
        .clone()
        .log_level(LogLevel::Debug)
        .stream()
        .await
        .unwrap();
    assert!(events.result().await.is_ok());
    let mut events = call.stream().await.unwrap();
    while let Some(event) = events.next().await {
        assert!(!matches!(event.unwrap(), CallEvent::Log(_)));
    }
}

#[tokio::test]
async fn a_server_is_told_how_much_to_log() {
    let fake = Fake::running();
    let nexus = fake.client().await;
    let servers = nexus.servers();
    servers
        .set_log_level("demo", LogLevel::Warning)
        .await
        .unwrap();
    assert_eq!(
        fake.world.executed.lock().unwrap()[0],
        ("demo".into(), "warning".into())
    );
    let error = servers.set_log_level("mute", LogLevel::Debug).await;
    assert_eq!(error.unwrap_err().reason(), Some(Reason::NotSupported));
}

#[tokio::test]
async fn a_server_tells_how_much_it_offers() {
    let fake = Fake::running();
    let server = fake.client().await.servers().get("x").await.unwrap();
    let counts = (server.resources, server.resource_templates, server.prompts);
    assert_eq!(counts, (4, 5, 6));
}
