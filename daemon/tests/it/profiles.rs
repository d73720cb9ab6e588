//! Profiles: what an agent sees, by name, by who it is, and by where it works.

use crate::{
    mcp_client::{Door, ERAS, Mcp},
    support::{Daemon, Home, servers, test_server},
};
use serde_json::{Value, json};

fn start() -> Daemon {
    let home = Home::new();
    let mut config = servers(&[("files", test_server(&[])), ("other", test_server(&[]))]);
    config["profiles"] = json!({
        "web": {"servers": ["fi*"], "exclude_tools": ["files.add", "get_*"]},
        "small": {"agents": ["Curs*"], "tools": "search"},
        "there": {"projects": ["/srv/web"], "servers": ["other"]},
    });
    home.configure(&config);
    home.start()
}

async fn names(mcp: &mut Mcp) -> Vec<String> {
    let tools = mcp.request("tools/list", json!({})).await.unwrap();
    let tools = tools["tools"].as_array().unwrap().clone();
    let name = |tool: &Value| tool["name"].as_str().unwrap().to_owned();
    tools.iter().map(name).collect()
}

#[tokio::test]
async fn an_agent_sees_what_its_profile_shows_and_nothing_else() {
    let daemon = start();
    for era in ERAS {
        let hello = json!({"profile": "web"});
        let mut web = Mcp::connect(&daemon, era, "ann", hello).await;
        assert_eq!(
            names(&mut web).await,
            ["files__echo", "files__slow_operation"]
        );
        assert_eq!(web.text("files__echo", json!({"message": "x"})).await, "x");
        for hidden in ["files__add", "files.add", "other__echo", "get_time"] {
            let error = web.call(hidden, json!({"a": 1, "b": 2})).await.unwrap_err();
            assert_eq!(error["code"], -32602, "{hidden}: {error}");
            // What it said itself it may hear.
            let told = error.to_string().replace("no server \\\"other", "");
            assert!(!told.contains("other"), "{error}");
        }
        // By where it works.
        let hello = json!({"project": "/srv/web/src"});
        let mut there = Mcp::connect(&daemon, era, "ann", hello).await;
        assert!(
            names(&mut there)
                .await
                .iter()
                .all(|name| name.starts_with("other__"))
        );
        // Whoever has none sees everything.
        let mut all = Mcp::connect(&daemon, era, "ann", json!({"project": "/srv"})).await;
        assert_eq!(names(&mut all).await.len(), 8);
    }
    // By what it calls itself, which a client of the legacy era says once.
    for door in [Door::Lines, Door::Http] {
        let mut small = Mcp::come_in(door, &daemon, "legacy", "Cursor", json!({})).await;
        assert_eq!(names(&mut small).await, ["search", "execute"], "{door:?}");
    }
}

#[tokio::test]
async fn a_profile_that_there_is_not_shows_nothing_and_says_so() {
    let daemon = start();
    let mut mcp = Mcp::connect(&daemon, "modern", "ann", json!({"profile": "webb"})).await;
    assert!(names(&mut mcp).await.is_empty());
    let error = mcp.request("server/discover", json!({})).await.unwrap_err();
    assert_eq!(error["data"]["suggestion"], "web", "{error}");
    assert!(
        error["message"]
            .as_str()
            .unwrap()
            .contains("no profile \"webb\""),
        "{error}"
    );
    // It is there once it is configured.
    let mut config = servers(&[("files", test_server(&[]))]);
    config["profiles"] = json!({"webb": {}});
    daemon.home.configure(&config);
    daemon.client().await.daemon().reload().await.unwrap();
    assert_eq!(names(&mut mcp).await.len(), 4);
}
