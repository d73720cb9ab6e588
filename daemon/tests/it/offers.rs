//! What servers have besides tools: resources, templates, prompts, completions, log messages.

use super::support::{Home, server_when, servers, start_with, test_server};
use nexus_client::{CallEvent, LogLevel, LogOptions, Nexus, Reason, ServerState};
use serde_json::json;

const ERAS: [&str; 2] = ["legacy", "modern"];

#[tokio::test]
async fn resources_are_listed_and_read_as_they_are() {
    for era in ERAS {
        let daemon = start_with(&["--era", era, "--page-size", "2"]);
        let nexus = daemon.client().await;
        let list = nexus.resources().list().await.unwrap();
        assert_eq!(list.resources.len(), 3);
        assert_eq!(list.resources[1].uri, "file:///config.json");
        let definition = list.resources[2].definition.as_str();
        assert!(
            definition.contains("\"mimeType\":\"text/csv\""),
            "{definition}"
        );
        let templates = nexus.resources().templates().await.unwrap().templates;
        assert_eq!(templates[0].uri_template, "file:///data/{name}.csv");
        // Whoever lists it is asked; what only a template covers is found too.
        for uri in ["file:///readme.txt", "file:///data/orders.csv"] {
            let read = nexus.resources().read(uri).await.unwrap();
            assert_eq!(read.server(), "t");
            assert!(!read.text().is_empty());
        }
        let error = nexus.resources().read("other:///x").await.unwrap_err();
        assert_eq!(error.reason(), Some(Reason::ResourceNotFound));
        assert!(error.hint().is_some());
        let error = nexus.resources().read_from("t", "file:///gone").await;
        let error = error.unwrap_err();
        assert_eq!(
            error.reason(),
            Some(Reason::ResourceNotFound),
            "{era}: {error}"
        );
    }
}

#[tokio::test]
async fn a_resource_that_several_servers_have_is_read_from_the_one_that_is_named() {
    let home = Home::new();
    home.configure(&servers(&[
        ("a", test_server(&[])),
        ("b", test_server(&[])),
    ]));
    let daemon = home.start();
    let nexus = daemon.client().await;
    let list = nexus.resources().list().await.unwrap();
    assert_eq!(list.resources.len(), 6);
    let error = nexus
        .resources()
        .read("file:///readme.txt")
        .await
        .unwrap_err();
    assert_eq!(error.reason(), Some(Reason::AmbiguousName));
    assert!(error.hint().unwrap().contains("a, b"), "{:?}", error.hint());
    let read = nexus.resources().read_from("b", "file:///readme.txt").await;
    assert_eq!(read.unwrap().server(), "b");
}

#[tokio::test]
async fn prompts_are_listed_filled_in_and_completed() {
    for era in ERAS {
        let daemon = start_with(&["--era", era]);
        let nexus = daemon.client().await;
        let prompts = nexus.prompts().list().await.unwrap().prompts;
        assert_eq!(prompts.len(), 3);
        let review = prompts.iter().find(|p| p.prompt == "code_review").unwrap();
        assert_eq!(review.name, "t__code_review");
        for name in ["t__code_review", "t.code_review", "code_review"] {
            let get = nexus.prompts().get(name);
            let filled = get
                .arg("focus", "the \"quotes\"")
                .arg("language", "rust")
                .await;
            let text = filled.unwrap().text();
            assert!(
                text.contains("rust") && text.contains("the \"quotes\""),
                "{text}"
            );
        }
        let error = nexus.prompts().get("t.code_revew").await.unwrap_err();
        assert_eq!(error.reason(), Some(Reason::PromptNotFound));
        let suggestion = error.failure().and_then(|f| f.details.suggestion.clone());
        assert_eq!(suggestion.as_deref(), Some("t.code_review"));
        let complete = |value: &'static str| {
            let completions = nexus.completions();
            completions.complete_prompt("t.code_review", "language", value)
        };
        let all = complete("").await.unwrap();
        assert!(all.values.contains(&"rust".to_owned()), "{:?}", all.values);
        let some = complete("ru").await.unwrap().values;
        assert!(some.iter().all(|value| value.starts_with("ru")), "{some:?}");
        let template =
            nexus
                .completions()
                .complete_template("t", "file:///data/{name}.csv", "name", "u");
        assert_eq!(template.await.unwrap().values, ["users"]);
    }
}

#[tokio::test]
async fn what_was_lost_with_a_server_is_read_once_more() {
    let daemon = start_with(&["--era", "legacy", "--fault", "exit-after-ms@300"]);
    let nexus = daemon.client().await;
    for _ in 0..50 {
        let read = nexus.resources().read_from("t", "file:///readme.txt").await;
        match read {
            Ok(read) => assert!(!read.text().is_empty()),
            // It keeps ending: that is told, and nothing else.
            Err(error) => assert!(
                matches!(
                    error.reason(),
                    Some(
                        Reason::CrashLoop
                            | Reason::ServerExited
                            | Reason::Unreachable
                            | Reason::HttpError
                    )
                ),
                "{error}"
            ),
        }
    }
}

async fn log_lines(nexus: &Nexus, level: Option<LogLevel>) -> Vec<String> {
    let logged = json!({"level": "notice", "message": "hear, hear", "count": 3});
    let mut call = nexus.tools().call("t.log", logged);
    if let Some(level) = level {
        call = call.log_level(level);
    }
    let mut events = call.stream().await.unwrap();
    let mut lines = Vec::new();
    while let Some(event) = events.next().await {
        if let CallEvent::Log(message) = event.unwrap() {
            assert_eq!(message.level, LogLevel::Notice);
            lines.push(message.text());
        }
    }
    lines
}

#[tokio::test]
async fn log_messages_reach_the_call_they_are_about() {
    for era in ERAS {
        let daemon = start_with(&["--era", era, "--interactive"]);
        let nexus = daemon.client().await;
        let heard = ["hear, hear 1", "hear, hear 2", "hear, hear 3"];
        assert_eq!(log_lines(&nexus, Some(LogLevel::Info)).await, heard);
        assert_eq!(log_lines(&nexus, Some(LogLevel::Notice)).await, heard);
        assert!(log_lines(&nexus, Some(LogLevel::Error)).await.is_empty());
        assert!(log_lines(&nexus, None).await.is_empty());
        // They are in its log as well.
        let mut log = nexus
            .servers()
            .logs("t", LogOptions::default())
            .await
            .unwrap();
        let mut found = false;
        while let Some(line) = log.next().await {
            found |= line
                .unwrap()
                .line
                .contains("[notice] nexus-test-server: hear, hear 1");
        }
        assert!(found);
    }
}

#[tokio::test]
async fn a_server_is_told_how_much_to_log_also_after_it_was_started_again() {
    for era in ERAS {
        let daemon = start_with(&["--era", era, "--interactive"]);
        let nexus = daemon.client().await;
        server_when(&nexus, "t", |s| s.state == ServerState::Ready).await;
        nexus
            .servers()
            .set_log_level("t", LogLevel::Critical)
            .await
            .unwrap();
        for _ in 0..2 {
            let logged = json!({"level": "error", "message": "x"});
            let sent = nexus.tools().call("t.log", logged).await.unwrap().text();
            assert!(sent.contains('0'), "{era}: {sent}");
            let logged = json!({"level": "alert", "message": "x"});
            let sent = nexus.tools().call("t.log", logged).await.unwrap().text();
            assert!(sent.contains('1'), "{era}: {sent}");
            nexus
                .servers()
                .restart("t", nexus_client::Wait::Done)
                .await
                .unwrap();
        }
    }
}

#[tokio::test]
async fn a_list_that_grows_is_told_and_known() {
    for era in ERAS {
        let daemon = start_with(&["--era", era, "--interactive"]);
        let (to, mut from) = tokio::sync::mpsc::unbounded_channel();
        let info = nexus_client::AgentInfo::new("a").on_list_changed(move |change| {
            let _ = to.send(change);
        });
        let builder = Nexus::builder().socket(daemon.home.socket()).agent(info);
        let nexus = builder.connect().await.unwrap();
        server_when(&nexus, "t", |s| s.prompts > 0 && s.resource_templates > 0).await;
        for (what, kind) in [
            ("tools", nexus_client::ListKind::Tools),
            ("resources", nexus_client::ListKind::Resources),
            ("prompts", nexus_client::ListKind::Prompts),
        ] {
            let before = nexus.servers().get("t").await.unwrap();
            nexus
                .tools()
                .call("t.grow", json!({ "what": what }))
                .await
                .unwrap();
            let counts = |s: &nexus_client::Server| (s.tools, s.resources, s.prompts);
            server_when(&nexus, "t", |s| counts(s) > counts(&before)).await;
            loop {
                let change = tokio::time::timeout(super::support::PATIENCE, from.recv());
                let change = change.await.unwrap().unwrap();
                let meant = nexus_client::ListChange::Of {
                    server: "t".into(),
                    kind,
                };
                if change == meant {
                    break;
                }
            }
        }
        nexus
            .tools()
            .call("t.grown_tool_0001", json!({}))
            .await
            .unwrap();
        nexus
            .resources()
            .read("file:///grown/0001.txt")
            .await
            .unwrap();
        nexus.prompts().get("t.grown_prompt_0001").await.unwrap();
    }
}

#[tokio::test]
async fn what_a_server_does_not_offer_is_refused_by_name() {
    let daemon = start_with(&["--era", "legacy"]);
    let nexus = daemon.client().await;
    let error = nexus.resources().read_from("nobody", "file:///x").await;
    assert_eq!(error.unwrap_err().reason(), Some(Reason::ServerNotFound));
    let long = format!("file:///{}", "x".repeat(10_000));
    let error = nexus.resources().read(&long).await.unwrap_err();
    assert_eq!(error.reason(), Some(Reason::InvalidRequest));
}
