//! Results that are larger than they may be.

use crate::{
    mcp_client::Mcp,
    support::{Daemon, Home, servers, test_server_with},
};
use nexus_client::Reason;
use serde_json::{Value, json};
use std::fs;

fn start(policy: &str, keys: Value) -> Daemon {
    let home = Home::new();
    home.configure(&servers(&[("t", test_server_with(&[], keys))]));
    let file = home.config_file().with_file_name("nexus.toml");
    fs::write(file, format!("[policy]\n{policy}\n")).unwrap();
    home.start()
}

#[tokio::test]
async fn a_result_that_is_too_large_is_refused_and_says_how_to_change_it() {
    let daemon = start("max_result = \"100kB\"", json!({}));
    let nexus = daemon.client().await;
    let echo = |n: usize| json!({"message": "é".repeat(n)});
    let small = nexus.tools().call("t.echo", echo(1000)).await.unwrap();
    assert_eq!(small.text(), "é".repeat(1000));
    let error = nexus
        .tools()
        .call("t.echo", echo(100_000))
        .await
        .unwrap_err();
    assert_eq!(error.reason(), Some(Reason::TooLarge));
    let failure = error.failure().unwrap();
    let told = &failure.message;
    let (length, limit) = told.split_once(" kB, ").unwrap();
    assert!(
        length.starts_with("the result of t.echo is too large: 200."),
        "{told}"
    );
    assert_eq!(limit, "the limit is 100.0 kB");
    assert!(
        failure
            .details
            .hint
            .as_deref()
            .unwrap()
            .contains("max_result")
    );
    assert_eq!(failure.details.tool.as_deref(), Some("echo"));
    // The server goes on.
    assert!(nexus.tools().call("t.echo", echo(1)).await.is_ok());
}

#[tokio::test]
async fn what_is_said_of_a_server_comes_first() {
    let keys = json!({"max_result": "50kB", "oversize": "truncate"});
    let daemon = start("max_result = \"1kB\"\noversize = \"refuse\"", keys);
    let nexus = daemon.client().await;
    let message = "é\n".repeat(30_000);
    let result = nexus
        .tools()
        .call("t.echo", json!({"message": message}))
        .await
        .unwrap();
    assert!(result.raw().as_str().len() <= 50_000);
    let text = result.text();
    let (kept, mark) = text.split_once("… [cut by Nexus: ").unwrap();
    assert!(
        message.starts_with(kept) && kept.len() > 30_000,
        "{}",
        kept.len()
    );
    assert!(
        mark.starts_with("50.0 kB of 120.") && mark.ends_with(" kB]"),
        "{mark}"
    );

    let mut mcp = Mcp::connect(&daemon, "modern", "a", json!({})).await;
    let cut = mcp.text("t__echo", json!({"message": message})).await;
    assert_eq!(cut, text);
    let prompt = nexus
        .prompts()
        .get("t.greeting")
        .arg("name", &message)
        .await
        .unwrap();
    assert!(prompt.text().contains("[cut by Nexus: 50.0 kB"));
    let raw = prompt.raw().as_str().len();
    assert!((40_000..=50_000).contains(&raw), "{raw}");
}

#[tokio::test]
async fn resources_are_held_to_it_and_a_reload_counts() {
    let daemon = start("max_result = 20", json!({}));
    let nexus = daemon.client().await;
    let list = nexus.resources().list().await.unwrap();
    let uri = list.resources[0].uri.clone();
    let error = nexus.resources().read_from("t", &uri).await.unwrap_err();
    assert_eq!(error.reason(), Some(Reason::TooLarge));
    let file = daemon.home.config_file().with_file_name("nexus.toml");
    fs::write(file, "[policy]\nmax_result = \"1MB\"\n").unwrap();
    nexus.daemon().reload().await.unwrap();
    assert!(nexus.resources().read_from("t", &uri).await.is_ok());
}
