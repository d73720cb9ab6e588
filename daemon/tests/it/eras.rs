//! Which revision is spoken with which server, and that it is found out once.

use crate::support::{
    Home, eventually, server_when, servers, start_with, test_server, test_server_with,
};
use nexus_client::{Nexus, ServerState};
use serde_json::{Value, json};
use std::{fs, path::Path};

/// What the processes of a home were told, each a list of methods, the oldest process first.
fn told(home: &Path) -> Vec<Vec<String>> {
    let mut files: Vec<_> = fs::read_dir(home.join("wire"))
        .into_iter()
        .flatten()
        .flatten()
        .map(|file| file.path())
        .collect();
    files.sort_by_key(|path| {
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let started = name.rsplit('-').next().unwrap().to_owned();
        (started, name)
    });
    let methods = |path: &Path| {
        let text = fs::read_to_string(path).unwrap_or_default();
        let messages = text
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok());
        messages
            .filter_map(|message| Some(message["method"].as_str()?.to_owned()))
            .collect()
    };
    files.iter().map(|path| methods(path)).collect()
}

async fn revision(nexus: &Nexus) -> String {
    let server = server_when(nexus, "t", |s| s.state == ServerState::Ready).await;
    server.info.unwrap().protocol_version
}

#[tokio::test]
async fn every_revision_is_spoken_with_a_server_that_knows_no_other() {
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let daemon = start_with(&["--era", "legacy", "--revision", version]);
        let nexus = daemon.client().await;
        assert_eq!(revision(&nexus).await, version);
        let sum = nexus.tools().call("t.add", json!({"a": 1, "b": 2})).await;
        assert_eq!(sum.unwrap().text(), "3", "{version}");
    }
    for era in ["modern", "dual"] {
        let daemon = start_with(&["--era", era]);
        let nexus = daemon.client().await;
        assert_eq!(revision(&nexus).await, "2026-07-28");
        nexus.servers().ping("t").await.unwrap();
        let methods = told(daemon.home.path()).remove(0);
        let old = ["initialize", "notifications/initialized", "ping"];
        assert!(
            !methods.iter().any(|method| old.contains(&method.as_str())),
            "{methods:?}"
        );
    }
}

#[tokio::test]
async fn a_server_is_asked_once_whether_it_is_modern() {
    for era in ["legacy", "modern"] {
        let daemon = start_with(&["--era", era]);
        let nexus = daemon.client().await;
        revision(&nexus).await;
        let first = |home: &Path| told(home).last().unwrap().first().cloned();
        assert_eq!(
            first(daemon.home.path()).as_deref(),
            Some("server/discover")
        );
        let lists = daemon.home.path().join("state/nexus/lists");
        eventually("it is remembered", || {
            fs::read_dir(&lists).is_ok_and(|mut l| l.next().is_some())
        })
        .await;
        let daemon = daemon.end().start();
        revision(&daemon.client().await).await;
        let expected = match era {
            "legacy" => "initialize",
            _ => "server/discover",
        };
        assert_eq!(first(daemon.home.path()).as_deref(), Some(expected));
    }
}

#[tokio::test]
async fn a_server_that_does_not_survive_the_question_is_greeted_in_the_old_way() {
    let daemon = start_with(&["--fault", "exit-on-probe"]);
    let nexus = daemon.client().await;
    assert_eq!(revision(&nexus).await, "2025-11-25");
    let server = nexus.servers().get("t").await.unwrap();
    assert_eq!((server.restarts, server.last_failure), (0, None));
    let told = told(daemon.home.path());
    assert_eq!(told[0], ["server/discover"]);
    assert_eq!(told[1][0], "initialize");
    // Nor is it asked again after a crash.
    nexus
        .servers()
        .restart("t", nexus_client::Wait::Done)
        .await
        .unwrap();
    nexus.tools().call("t.get_time", json!({})).await.unwrap();
    assert_eq!(self::told(daemon.home.path())[2][0], "initialize");
}

#[tokio::test]
async fn a_server_that_leaves_the_question_unanswered_is_greeted_in_the_old_way() {
    let daemon = start_with(&["--fault", "ignore-unknown"]);
    let nexus = daemon.client().await;
    assert_eq!(revision(&nexus).await, "2025-11-25");
    nexus.tools().call("t.get_time", json!({})).await.unwrap();
    let methods = told(daemon.home.path()).remove(0);
    assert_eq!(methods[..2], ["server/discover", "initialize"]);
    let server = nexus.servers().get("t").await.unwrap();
    assert_eq!(server.in_flight, 0);
}

#[tokio::test]
async fn a_slow_starter_is_not_mistaken_for_an_old_one() {
    for (era, expected) in [("modern", "2026-07-28"), ("legacy", "2025-11-25")] {
        let daemon = start_with(&["--era", era, "--fault", "slow-start@6000"]);
        let nexus = daemon.client().await;
        assert_eq!(revision(&nexus).await, expected);
        assert_eq!(told(daemon.home.path()).len(), 1, "it was started once");
        let server = nexus.servers().get("t").await.unwrap();
        assert!(server.warnings.is_empty(), "{:?}", server.warnings);
    }
}

#[tokio::test]
async fn only_what_a_server_declares_is_asked_of_it() {
    let daemon = start_with(&["--era", "legacy", "--fault", "templates-missing"]);
    let nexus = daemon.client().await;
    revision(&nexus).await;
    let templates = nexus.resources().templates_of("t").await.unwrap();
    assert!(templates.templates.is_empty() && templates.missing.is_empty());
    let server = nexus.servers().get("t").await.unwrap();
    assert!(server.warnings.is_empty(), "{:?}", server.warnings);
}

#[tokio::test]
async fn a_server_that_cannot_list_its_tools_stays_and_may_be_asked_again() {
    let home = Home::new();
    let args = ["--fault", "list-error"];
    let strict = json!({"fail_if_no_tools": true});
    home.configure(&servers(&[
        ("t", test_server(&args)),
        (
            "strict",
            test_server_with(&["--fault", "list-error"], strict),
        ),
    ]));
    let daemon = home.start();
    let nexus = daemon.client().await;
    let server = server_when(&nexus, "t", |s| s.state == ServerState::Ready).await;
    assert_eq!(server.tools, 0);
    let warned = server
        .warnings
        .iter()
        .any(|w| w.contains("could not be listed"));
    assert!(warned, "{:?}", server.warnings);
    // What else it has is there.
    let read = nexus.resources().read_from("t", "file:///readme.txt").await;
    read.unwrap();
    let error = nexus.servers().refresh("t").await.unwrap_err().to_string();
    assert!(error.contains("the tools cannot be listed"), "{error}");
    let error = nexus
        .tools()
        .call("t.get_time", json!({}))
        .await
        .unwrap_err();
    assert!(error.to_string().contains("could not be listed"), "{error}");
    assert!(error.hint().unwrap().contains("refresh"), "{error}");
    let server = nexus.servers().get("t").await.unwrap();
    assert_eq!((server.state, server.restarts), (ServerState::Ready, 0));
    let failed = server_when(&nexus, "strict", |s| s.last_failure.is_some()).await;
    let message = failed.last_failure.unwrap().message;
    assert!(message.contains("fail_if_no_tools"), "{message}");
}

/// A list is asked for again when its server no longer stands by it, and only then.
#[tokio::test]
async fn a_list_is_good_for_as_long_as_its_server_says() {
    for (ttl, again) in [("0", true), ("3600000", false)] {
        let daemon = start_with(&["--era", "modern", "--ttl", ttl]);
        let nexus = daemon.client().await;
        nexus.prompts().list().await.unwrap();
        let asked = || {
            let methods = told(daemon.home.path()).remove(0);
            methods.iter().filter(|m| *m == "prompts/list").count()
        };
        assert_eq!(asked(), 1);
        tokio::time::sleep(std::time::Duration::from_millis(1100)).await;
        nexus.prompts().list().await.unwrap();
        assert_eq!(asked() > 1, again, "{ttl}");
    }
}
