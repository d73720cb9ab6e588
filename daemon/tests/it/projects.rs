//! The servers of a trusted project are for those who work in it.

use crate::{
    mcp_client::Mcp,
    support::{Daemon, Home, servers, test_server, test_server_with},
};
use nexus_client::{Nexus, Reason};
use nexus_config::trust::{Trust, hash};
use serde_json::{Value, json};
use std::{
    fs,
    path::{Path, PathBuf},
};

/// A project with these servers, trusted as it is.
fn project(home: &Home, name: &str, config: &Value) -> PathBuf {
    let folder = home.path().canonicalize().unwrap().join(name);
    fs::create_dir_all(&folder).unwrap();
    let (file, text) = (folder.join(".mcp.json"), config.to_string());
    fs::write(&file, &text).unwrap();
    let store = home.path().join("state/nexus/trust.json");
    let mut trust = Trust::read(&store).unwrap();
    trust.files.insert(file, hash(text.as_bytes()));
    trust.write(&store).unwrap();
    folder
}

async fn agent_in(daemon: &Daemon, folder: &Path) -> Nexus {
    let builder = Nexus::builder().socket(daemon.home.socket());
    builder.project(folder).connect().await.unwrap()
}

/// The servers whose tools an agent sees there, by the names of the tools.
async fn seen_from(daemon: &Daemon, folder: &Path) -> Vec<String> {
    let nexus = agent_in(daemon, folder).await;
    let listed = nexus.tools().list().await.unwrap();
    assert!(listed.missing.is_empty(), "{:?}", listed.missing);
    let of_tool = |name: &str| name.split("__").next().unwrap().to_owned();
    let mut names: Vec<String> = listed.tools.iter().map(|t| of_tool(&t.name)).collect();
    names.dedup();
    names
}

/// Two projects beside what the user has. Each says in `WHO` whose it is.
fn home() -> (Home, PathBuf, PathBuf) {
    let home = Home::new();
    let server = |who: &str| test_server_with(&["--env-tool"], json!({"env": {"WHO": who}}));
    home.configure(&servers(&[("mine", server("user")), ("x", server("user"))]));
    let both = |who: &str, own: &str| servers(&[("x", server(who)), (own, server(who))]);
    let a = project(&home, "a", &both("a", "only-a"));
    let b = project(&home, "b", &both("b", "only-b"));
    (home, a, b)
}

#[tokio::test]
async fn an_agent_sees_those_of_its_own_project_and_no_others() {
    let (home, a, b) = home();
    fs::create_dir(a.join("src")).unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink(&a, home.path().join("link")).unwrap();
    let daemon = home.start();
    let elsewhere = daemon.home.path().to_owned();
    assert_eq!(seen_from(&daemon, &elsewhere).await, ["mine", "x"]);
    for folder in [a.clone(), a.join("src"), elsewhere.join("link")] {
        assert_eq!(
            seen_from(&daemon, &folder).await,
            ["mine", "only-a", "x"],
            "{}",
            folder.display()
        );
    }
    assert_eq!(seen_from(&daemon, &b).await, ["mine", "only-b", "x"]);
    // Nor can it be called, searched, or asked for by name.
    let nexus = agent_in(&daemon, &b).await;
    for name in ["only-a.get_time", "only-a__get_time"] {
        let error = nexus.tools().call(name, json!({})).await.unwrap_err();
        assert_eq!(error.reason(), Some(Reason::ServerNotFound), "{error}");
        assert!(
            error.to_string().contains("is for those who work in"),
            "{error}"
        );
    }
    let found = nexus.tools().search("only-a", 50).await.unwrap();
    assert!(found.iter().all(|m| m.tool.server != "only-a"));
    let error = nexus.resources().list_of("only-a").await.unwrap_err();
    assert_eq!(error.reason(), Some(Reason::ServerNotFound), "{error}");
}

#[tokio::test]
async fn a_name_means_to_each_what_its_own_project_has() {
    let (home, a, b) = home();
    let daemon = home.start();
    let elsewhere = daemon.home.path().to_owned();
    for (folder, whose) in [(&elsewhere, "user"), (&a, "a"), (&b, "b")] {
        let nexus = agent_in(&daemon, folder).await;
        for name in ["x.env", "x__env"] {
            let result = nexus.tools().call(name, json!({})).await.unwrap();
            let told: Value = serde_json::from_str(&result.text()).unwrap();
            assert_eq!(told["env"]["WHO"], whose);
            // What a project has runs in it.
            if whose != "user" {
                assert_eq!(told["cwd"], json!(folder));
            }
        }
    }
}

#[tokio::test]
async fn a_project_can_do_without_one_and_others_keep_it() {
    let home = Home::new();
    home.configure(&servers(&[("mine", test_server(&[]))]));
    let a = project(
        &home,
        "a",
        &json!({"mcpServers": {"mine": {"disabled": true}}}),
    );
    let daemon = home.start();
    let elsewhere = daemon.home.path().to_owned();
    assert_eq!(seen_from(&daemon, &a).await, [""; 0]);
    assert_eq!(seen_from(&daemon, &elsewhere).await, ["mine"]);
}

#[tokio::test]
async fn so_it_is_for_mcp_clients() {
    let (home, a, _) = home();
    let daemon = home.start();
    for era in ["legacy", "modern"] {
        for (project, sees) in [(json!(a), true), (Value::Null, false)] {
            let hello = json!({"project": project});
            let mut client = Mcp::connect(&daemon, era, "c", hello).await;
            // What came with a project is asked about.
            client.consents.0 = "allow";
            let listed = client.request("tools/list", json!({})).await.unwrap();
            let text = listed.to_string();
            assert_eq!(text.contains("only-a__"), sees, "{era}: {text}");
            assert!(text.contains("mine__") && !text.contains("only-b__"));
            let params = json!({"name": "only-a__get_time", "arguments": {}});
            let called = client.request("tools/call", params).await;
            assert_eq!(called.is_ok(), sees, "{era}: {called:?}");
            assert_eq!(client.consents.1, usize::from(sees));
        }
    }
}

#[tokio::test]
async fn an_operator_looks_after_all_of_them() {
    let (home, a, b) = home();
    let daemon = home.start();
    let nexus = agent_in(&daemon, daemon.home.path()).await;
    let listed = nexus.servers().list().await.unwrap();
    let names: Vec<String> = listed.into_iter().map(|server| server.name).collect();
    let scoped = |folder: &Path| format!("x ({})", folder.display());
    assert_eq!(
        names,
        ["mine", "only-a", "only-b", "x", &scoped(&a), &scoped(&b)]
    );
    nexus.servers().get("only-b").await.unwrap();
    nexus.servers().get(&scoped(&b)).await.unwrap();
    // Where they are, the name means what it means there.
    let there = agent_in(&daemon, &b).await;
    let server = there.servers().get("x").await.unwrap();
    assert_eq!(server.name, scoped(&b));
}

#[tokio::test]
async fn what_has_changed_since_takes_no_part() {
    let (home, a, _) = home();
    let daemon = home.start();
    assert!(seen_from(&daemon, &a).await.contains(&"only-a".to_owned()));
    let other = servers(&[("evil", test_server(&[]))]);
    fs::write(a.join(".mcp.json"), other.to_string()).unwrap();
    let nexus = agent_in(&daemon, &a).await;
    let report = nexus.daemon().reload().await.unwrap();
    assert!(
        report
            .warnings
            .iter()
            .any(|w| w.contains("has changed since")),
        "{report:?}"
    );
    assert_eq!(seen_from(&daemon, &a).await, ["mine", "x"]);
}
