//! Finding tools by words, and calling what was found.

use crate::{
    mcp_client::{Door, ERAS, Mcp},
    search_corpus as corpus,
    support::{
        Daemon, Home, PATIENCE, server_until, server_when, servers, start_with, test_server,
        test_server_with,
    },
};
use nexus_client::{Reason, ServerState};
use serde_json::{Value, json};
use std::fs;

fn interactive(server: &str) -> Daemon {
    start_with(&["--era", server, "--interactive"])
}

/// Every pair of eras, through every door.
fn pairs() -> impl Iterator<Item = (Door, &'static str, &'static str)> {
    let doors = [Door::Lines, Door::Http].into_iter();
    let clients = doors.flat_map(|door| ERAS.map(|client| (door, client)));
    clients.flat_map(|(door, client)| ERAS.map(|server| (door, client, server)))
}

/// A test server that has these tools besides its own.
fn server_with(home: &Home, name: &str, tools: &[Value]) -> Value {
    let file = home.path().join(format!("{name}.json"));
    fs::write(&file, Value::from(tools.to_vec()).to_string()).unwrap();
    test_server(&["--tools-file", file.to_str().unwrap()])
}

fn tool(name: &str, description: &str) -> Value {
    json!({"name": name, "description": description, "inputSchema": {"type": "object"}})
}

fn names(found: &Value) -> Vec<&str> {
    let tools = found["structuredContent"]["tools"].as_array().unwrap();
    tools
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect()
}

fn listed(list: &Value) -> Vec<&str> {
    let tools = list["tools"].as_array().unwrap();
    tools
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect()
}

async fn search(mcp: &mut Mcp, query: &str) -> Value {
    mcp.call("search", json!({"query": query})).await.unwrap()
}

async fn execute(mcp: &mut Mcp, name: &str, arguments: Value) -> Result<Value, Value> {
    mcp.call("execute", json!({"name": name, "arguments": arguments}))
        .await
}

#[tokio::test]
async fn tools_of_real_servers_are_found_by_what_they_do() {
    let home = Home::new();
    let known = corpus::known();
    let all: Vec<_> = known
        .iter()
        .map(|(name, tools)| (name.as_str(), server_with(&home, name, tools)))
        .collect();
    home.configure(&servers(&all));
    let daemon = home.start();
    let nexus = daemon.client().await;
    for (query, expected) in corpus::queries() {
        let found = nexus.tools().search(query, 3).await.unwrap();
        assert!(found.len() <= 3);
        let best = &found[0];
        assert_eq!(best.tool.dotted(), expected, "{query}");
        assert!(found.is_sorted_by(|a, b| a.score >= b.score));
        assert!(best.score > 0.0 && best.score <= 1.0, "{}", best.score);
    }
    let exact = nexus
        .tools()
        .search("github.create_issue", 0)
        .await
        .unwrap();
    assert_eq!((exact[0].score, exact.len()), (1.0, 10));
    let most = nexus
        .tools()
        .search("a file or a message", 1000)
        .await
        .unwrap();
    assert!(most.len() <= 100, "{}", most.len());
    assert!(nexus.tools().search("xyzzy", 10).await.unwrap().is_empty());
    let long = "x".repeat(1025);
    let error = nexus.tools().search(&long, 10).await.unwrap_err();
    assert_eq!(error.reason(), Some(Reason::InvalidRequest));
}

#[tokio::test]
async fn the_index_follows_the_lists() {
    let daemon = interactive("dual");
    let nexus = daemon.client().await;
    let grown = async || {
        let found = nexus.tools().search("grown tool", 10).await.unwrap();
        let is_grown = |name: &str| name.starts_with("grown_tool_");
        let grown = found.iter().filter(|found| is_grown(&found.tool.tool));
        grown.count()
    };
    assert_eq!(grown().await, 0);
    for count in 1..=3 {
        let grow = nexus.tools().call("t.grow", json!({"what": "tools"}));
        grow.await.unwrap();
        let started = tokio::time::Instant::now();
        while grown().await < count {
            assert!(started.elapsed() < PATIENCE, "{count}");
        }
    }
    // A server that is taken out is found no longer.
    daemon.home.configure(&servers(&[("u", test_server(&[]))]));
    nexus.daemon().reload().await.unwrap();
    server_when(&nexus, "u", |s| s.state == ServerState::Ready).await;
    let found = nexus.tools().search("grown echo", 10).await.unwrap();
    let names: Vec<_> = found.iter().map(|found| found.tool.dotted()).collect();
    assert_eq!(names, ["u.echo"]);
}

#[tokio::test]
async fn nobody_finds_what_is_not_theirs() {
    let home = Home::new();
    let secret = server_with(&home, "secret", &[tool("launch", "Launches the rocket")]);
    home.configure(&servers(&[("secret", secret), ("own", test_server(&[]))]));
    let daemon = home.start();
    for client in ERAS {
        let hello = json!({"tools": "search", "servers": ["own"]});
        let mut ann = Mcp::connect(&daemon, client, "ann", hello).await;
        let mut bob = Mcp::connect(&daemon, client, "bob", json!({"tools": "search"})).await;
        assert_eq!(names(&search(&mut bob, "rocket").await), ["secret__launch"]);
        let nothing = search(&mut ann, "launch the rocket").await;
        assert!(!nothing.to_string().contains("secret"), "{nothing}");
        assert!(names(&nothing).is_empty());
        let list = ann.request("tools/list", json!({})).await.unwrap();
        assert!(!list.to_string().contains("secret"), "{list}");
        for name in ["secret__launch", "secret.launch", "launch"] {
            let refused = execute(&mut ann, name, json!({})).await.unwrap();
            assert_eq!(refused["isError"], true);
            assert!(!refused.to_string().contains("rocket"), "{refused}");
        }
    }
}

#[tokio::test]
async fn each_finds_what_its_own_process_of_a_server_has() {
    let home = Home::new();
    let own = test_server_with(&["--interactive"], json!({"sharing": "per-agent"}));
    home.configure(&servers(&[("own", own)]));
    let daemon = home.start();
    let mut ann = Mcp::connect(&daemon, "legacy", "ann", json!({"tools": "search"})).await;
    let mut bob = Mcp::connect(&daemon, "legacy", "bob", json!({"tools": "search"})).await;
    // Until it has one of its own, it is shown what is known of any.
    execute(&mut bob, "own__echo", json!({"message": "mine"}))
        .await
        .unwrap();
    execute(&mut ann, "own__grow", json!({"what": "tools"}))
        .await
        .unwrap();
    let started = tokio::time::Instant::now();
    loop {
        let found = search(&mut ann, "grown tool").await;
        if names(&found).contains(&"own__grown_tool_0001") {
            break;
        }
        assert!(started.elapsed() < PATIENCE, "{found}");
    }
    let other = search(&mut bob, "grown tool").await;
    assert!(!other.to_string().contains("grown_tool"), "{other}");
    assert_eq!(names(&other), ["own__grow"]);
}

#[tokio::test]
async fn a_client_has_the_tools_that_its_mode_says() {
    for (door, client, server) in pairs() {
        let daemon = interactive(server);
        let mut direct = Mcp::come_in(door, &daemon, client, "a", json!({})).await;
        let list = direct.request("tools/list", json!({})).await.unwrap();
        let all: Vec<_> = listed(&list).into_iter().map(str::to_owned).collect();
        assert!(all.contains(&"t__echo".to_owned()) && !all.contains(&"search".to_owned()));
        let unknown = direct
            .call("search", json!({"query": "x"}))
            .await
            .unwrap_err();
        assert_eq!(unknown["code"], -32602);

        let mut both = Mcp::come_in(door, &daemon, client, "b", json!({"tools": "both"})).await;
        let list = both.request("tools/list", json!({})).await.unwrap();
        assert_eq!(listed(&list)[..2], ["search", "execute"]);
        assert_eq!(listed(&list)[2..], all);

        let mut mcp = Mcp::come_in(door, &daemon, client, "c", json!({"tools": "search"})).await;
        let list = mcp.request("tools/list", json!({})).await.unwrap();
        assert_eq!(listed(&list), ["search", "execute"]);
        let found = mcp
            .call("search", json!({"query": "add numbers", "limit": 1}))
            .await
            .unwrap();
        let best = &found["structuredContent"]["tools"][0];
        assert_eq!(
            (&best["name"], &best["server"]),
            (&json!("t__add"), &json!("t"))
        );
        assert_eq!(best["inputSchema"]["required"], json!(["a", "b"]));
        assert!(best["score"].as_f64().unwrap() > 0.0);
        let text: Value =
            serde_json::from_str(found["content"][0]["text"].as_str().unwrap()).unwrap();
        assert_eq!(text, found["structuredContent"]);
        let words = mcp
            .call("search", json!({"keywords": ["add", "numbers"]}))
            .await
            .unwrap();
        assert_eq!(names(&words)[0], "t__add");

        let sum = json!({"a": 2, "b": 3});
        let executed = execute(&mut mcp, "t__add", sum.clone()).await.unwrap();
        assert_eq!(executed, direct.call("t__add", sum.clone()).await.unwrap());
        // A name that is known needs no detour.
        assert_eq!(mcp.text("t__add", sum).await, "5");
    }
}

#[tokio::test]
async fn what_is_wrong_with_a_search_or_a_name_is_told_to_the_model() {
    for (door, client, server) in pairs() {
        let daemon = interactive(server);
        let mut mcp = Mcp::come_in(door, &daemon, client, "a", json!({"tools": "search"})).await;
        for (tool, arguments, told) in [
            ("search", json!({}), "query"),
            ("search", json!({"query": 7}), "query"),
            ("search", json!({"query": "x".repeat(1025)}), "1024"),
            ("execute", json!({}), "name"),
            (
                "execute",
                json!({"name": "t__ad", "arguments": {}}),
                "did you mean",
            ),
            ("execute", json!({"name": "u__add"}), "there is no server"),
            (
                "execute",
                json!({"name": "t__add", "arguments": {"a": "x"}}),
                "/a",
            ),
            (
                "execute",
                json!({"name": "t__add", "arguments": [1]}),
                "JSON object",
            ),
        ] {
            let result = mcp.call(tool, arguments).await.unwrap();
            assert_eq!(result["isError"], true, "{result}");
            let text = result["content"][0]["text"].as_str().unwrap();
            assert!(text.contains(told), "{told}: {text}");
        }
        let nothing = search(&mut mcp, "xyzzy").await;
        assert!(names(&nothing).is_empty() && nothing.get("isError").is_none());
        let text = nothing["content"][0]["text"].as_str().unwrap();
        assert!(text.contains("No tool fits"), "{text}");
    }
}

#[tokio::test]
async fn an_executed_call_goes_the_way_of_any_other() {
    for (door, client, server) in pairs() {
        let daemon = interactive(server);
        let nexus = daemon.client().await;
        let mut mcp = Mcp::come_in(door, &daemon, client, "ann", json!({"tools": "search"})).await;
        // It is asked what the server asks.
        let ask = json!({"kind": "sampling", "text": "the time", "rounds": 2});
        let asked = execute(&mut mcp, "t__ask", ask).await.unwrap();
        let answer = asked["content"][0]["text"].as_str().unwrap();
        assert_eq!(
            answer.matches("ann was asked the time").count(),
            2,
            "{answer}"
        );
        // It hears of progress.
        let slow =
            json!({"name": "t__slow_operation", "arguments": {"duration": 0.05, "steps": 2}});
        let params = json!({"name": "execute", "arguments": slow, "_meta": {"progressToken": "p"}});
        mcp.request("tools/call", params).await.unwrap();
        for _ in 0..2 {
            let progress = mcp.news("notifications/progress").await;
            assert_eq!(progress["progressToken"], "p");
        }
        // It can be cancelled.
        let slow = json!({"name": "t__slow_operation", "arguments": {"duration": 60, "steps": 1}});
        let id = mcp
            .begin("tools/call", json!({"name": "execute", "arguments": slow}))
            .await;
        server_until(&nexus, "t", |s| s.in_flight == 1).await;
        mcp.cancel(id).await;
        server_until(&nexus, "t", |s| s.in_flight == 0).await;
    }
}

#[tokio::test]
async fn a_server_may_have_a_search_of_its_own() {
    let home = Home::new();
    let own = [
        tool("search", "Searches the web"),
        tool("execute", "Runs code"),
    ];
    let server = server_with(&home, "web", &own);
    home.configure(&servers(&[("web", server)]));
    let daemon = home.start();
    for client in ERAS {
        let hello = |tools: &str| json!({"servers": ["web"], "tools": tools});
        let mut direct = Mcp::connect(&daemon, client, "a", hello("direct")).await;
        assert_eq!(direct.text("search", json!({})).await, "search: no input");
        for mode in ["both", "search"] {
            let mut mcp = Mcp::connect(&daemon, client, "b", hello(mode)).await;
            let list = mcp.request("tools/list", json!({})).await.unwrap();
            let list = listed(&list);
            for name in ["search", "execute"] {
                assert_eq!(
                    list.iter().filter(|known| **known == name).count(),
                    1,
                    "{list:?}"
                );
            }
            assert_eq!(list.contains(&"echo"), mode == "both");
            assert_eq!(names(&search(&mut mcp, "search").await)[0], "search");
            for name in ["search", "execute"] {
                let result = execute(&mut mcp, name, json!({})).await.unwrap();
                assert_eq!(result["content"][0]["text"], format!("{name}: no input"));
            }
        }
        let mut all = Mcp::connect(&daemon, client, "c", json!({"tools": "both"})).await;
        assert_eq!(
            names(&search(&mut all, "search the web").await)[0],
            "web__search"
        );
        assert_eq!(all.text("web__search", json!({})).await, "search: no input");
    }
}

#[tokio::test]
async fn many_search_at_once_while_others_call() {
    let home = Home::new();
    let filler = corpus::filler(1000, 200);
    let all: Vec<_> = filler
        .iter()
        .map(|(name, tools)| (name.as_str(), server_with(&home, name, tools)))
        .collect();
    home.configure(&servers(&all));
    let daemon: Daemon = home.start();
    let mut tasks = Vec::new();
    for n in 0..8 {
        let nexus = daemon.client().await;
        tasks.push(tokio::spawn(async move {
            for _ in 0..10 {
                if n % 2 == 0 {
                    let echo = nexus
                        .tools()
                        .call("filler003.echo", json!({"message": "m"}));
                    assert_eq!(echo.await.unwrap().text(), "m");
                } else {
                    let found = nexus
                        .tools()
                        .search("export blocked parcel", 5)
                        .await
                        .unwrap();
                    assert_eq!(found[0].tool.tool, "export_blocked_parcel");
                }
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
}
