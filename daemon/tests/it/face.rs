//! The pool as one MCP server: a client of either era, in front of servers of either era.

mod conformance;

use crate::{
    mcp_client::{Door, ERAS, Mcp},
    support::{
        Daemon, Home, PATIENCE, server_until, servers, start_with, test_server, wait_until_gone,
    },
};
use serde_json::json;
use std::time::Duration;

fn interactive(server: &str) -> Daemon {
    start_with(&["--era", server, "--interactive"])
}

/// Every pair of eras, through every door.
fn pairs() -> impl Iterator<Item = (Door, &'static str, &'static str)> {
    let doors = [Door::Lines, Door::Http].into_iter();
    let clients = doors.flat_map(|door| ERAS.map(|client| (door, client)));
    clients.flat_map(|(door, client)| ERAS.map(|server| (door, client, server)))
}

#[tokio::test]
async fn lists_calls_and_errors_are_the_same_in_every_pair_of_eras() {
    for (door, client, server) in pairs() {
        let daemon = interactive(server);
        let mut mcp = Mcp::come_in(door, &daemon, client, "ann", json!({})).await;
        let tools = mcp.request("tools/list", json!({})).await.unwrap();
        let names: Vec<_> = tools["tools"]
            .as_array()
            .unwrap()
            .iter()
            .map(|t| &t["name"])
            .collect();
        assert!(
            names.contains(&&json!("t__echo")),
            "{door:?} {client} {server}: {names:?}"
        );
        assert_eq!(mcp.text("t__echo", json!({"message": "hi"})).await, "hi");
        let sum = mcp.call("t__add", json!({"a": 1, "b": 2})).await.unwrap();
        assert_eq!(sum["structuredContent"]["sum"], 3);
        // The model can mend this, and sees it.
        let wrong = mcp.call("t__add", json!({"a": 1})).await.unwrap();
        assert_eq!(wrong["isError"], true, "{wrong}");
        let error = mcp.call("t__nothing", json!({})).await.unwrap_err();
        assert_eq!(error["code"], -32602, "{error}");
        let error = mcp.request("no/such", json!({})).await.unwrap_err();
        assert_eq!(error["code"], -32601);
        let resources = mcp.request("resources/list", json!({})).await.unwrap();
        assert_eq!(resources["resources"].as_array().unwrap().len(), 3);
        let uri = json!({"uri": "file:///readme.txt"});
        let read = mcp.request("resources/read", uri).await.unwrap();
        assert!(read["contents"][0]["text"].is_string());
        let error = mcp
            .request("resources/read", json!({"uri": "file:///gone"}))
            .await;
        let expected = if client == "legacy" { -32002 } else { -32602 };
        assert_eq!(
            error.unwrap_err()["code"],
            expected,
            "{door:?} {client} {server}"
        );
        let templates = mcp
            .request("resources/templates/list", json!({}))
            .await
            .unwrap();
        assert_eq!(templates["resourceTemplates"].as_array().unwrap().len(), 1);
        let prompts = mcp.request("prompts/list", json!({})).await.unwrap();
        assert_eq!(prompts["prompts"][0]["name"], "t__greeting");
        let prompt = json!({"name": "t__greeting", "arguments": {"name": "Ann"}});
        let filled = mcp.request("prompts/get", prompt).await.unwrap();
        assert!(
            filled["messages"][0]["content"]["text"]
                .as_str()
                .unwrap()
                .contains("Ann")
        );
        let complete = json!({
            "ref": {"type": "ref/prompt", "name": "t__code_review"},
            "argument": {"name": "language", "value": "ru"},
        });
        let completed = mcp.request("completion/complete", complete).await.unwrap();
        assert_eq!(completed["completion"]["values"], json!(["ruby", "rust"]));
    }
}

#[tokio::test]
async fn what_a_server_asks_is_answered_in_every_pair_of_eras() {
    for (door, client, server) in pairs() {
        let daemon = interactive(server);
        let mut mcp = Mcp::come_in(door, &daemon, client, "ann", json!({})).await;
        for (kind, expected) in [
            ("sampling", "ann was asked hello"),
            ("elicitation", "ann was asked hello"),
            ("roots", "file:///ann"),
            ("both", "ann was asked hello"),
        ] {
            let answer = mcp
                .text("t__ask", json!({"kind": kind, "text": "hello"}))
                .await;
            assert!(
                answer.contains(expected),
                "{door:?} {client} {server} {kind}: {answer}"
            );
        }
        let thrice = json!({"kind": "elicitation", "text": "again", "rounds": 3});
        let answers = mcp.text("t__ask", thrice).await;
        assert_eq!(
            answers.matches("ann was asked again").count(),
            3,
            "{answers}"
        );
    }
}

#[tokio::test]
async fn progress_and_log_messages_carry_the_clients_own_token() {
    for (door, client, server) in pairs() {
        let daemon = interactive(server);
        let mut mcp = Mcp::come_in(door, &daemon, client, "ann", json!({})).await;
        let slow = json!({
            "name": "t__slow_operation",
            "arguments": {"duration": 0.05, "steps": 3},
            "_meta": {"progressToken": "0"},
        });
        mcp.request("tools/call", slow).await.unwrap();
        for step in 1..=3 {
            let progress = mcp.news("notifications/progress").await;
            assert_eq!(progress["progressToken"], "0");
            assert_eq!(progress["progress"].as_f64(), Some(f64::from(step)));
        }
        let log = json!({"name": "t__log", "arguments": {"level": "warning", "message": "hear"}});
        if client == "legacy" {
            mcp.request("logging/setLevel", json!({"level": "info"}))
                .await
                .unwrap();
            mcp.request("tools/call", log).await.unwrap();
        } else {
            let mut log = log;
            log["_meta"] = json!({"io.modelcontextprotocol/logLevel": "info"});
            mcp.request("tools/call", log).await.unwrap();
        }
        let message = mcp.news("notifications/message").await;
        assert_eq!(
            (&message["level"], &message["data"]),
            (&json!("warning"), &json!("hear"))
        );
    }
}

#[tokio::test]
async fn changes_are_told_to_those_who_want_to_know() {
    for (door, client, server) in pairs() {
        let daemon = interactive(server);
        let mut mcp = Mcp::come_in(door, &daemon, client, "ann", json!({})).await;
        mcp.request("tools/list", json!({})).await.unwrap();
        let readme = "file:///readme.txt";
        let mut listen = None;
        if client == "legacy" {
            mcp.request("resources/subscribe", json!({"uri": readme}))
                .await
                .unwrap();
        } else {
            let wanted = json!({"notifications":
                {"toolsListChanged": true, "resourceSubscriptions": [readme, "file:///gone"]}});
            let id = mcp.begin("subscriptions/listen", wanted).await;
            let accepted = mcp.news("notifications/subscriptions/acknowledged").await;
            let own = &accepted["_meta"]["io.modelcontextprotocol/subscriptionId"];
            assert_eq!(*own, json!(id));
            let honoured = json!({"toolsListChanged": true, "resourceSubscriptions": [readme]});
            assert_eq!(accepted["notifications"], honoured);
            listen = Some(id);
        }
        mcp.text("t__touch", json!({"uri": readme})).await;
        let updated = mcp.news("notifications/resources/updated").await;
        assert_eq!(updated["uri"], readme, "{door:?} {client} {server}");
        mcp.text("t__grow", json!({"what": "tools"})).await;
        loop {
            // The first may be that of the server's start.
            mcp.news("notifications/tools/list_changed").await;
            let tools = mcp.request("tools/list", json!({})).await.unwrap();
            if tools.to_string().contains("t__grown_tool_0001") {
                break;
            }
        }
        if let Some(id) = listen {
            mcp.cancel(id).await;
        } else {
            mcp.request("resources/unsubscribe", json!({"uri": readme}))
                .await
                .unwrap();
        }
        let started = tokio::time::Instant::now();
        while !mcp
            .text("t__touch", json!({"uri": readme}))
            .await
            .contains('0')
        {
            assert!(
                started.elapsed() < PATIENCE,
                "{door:?} {client} {server}: still subscribed to"
            );
        }
    }
}

#[tokio::test]
async fn a_cancelled_call_is_cancelled_and_not_answered() {
    for (door, client, server) in pairs() {
        let daemon = interactive(server);
        let nexus = daemon.client().await;
        let mut mcp = Mcp::come_in(door, &daemon, client, "ann", json!({})).await;
        let slow = json!({"name": "t__slow_operation", "arguments": {"duration": 60, "steps": 1}});
        let id = mcp.begin("tools/call", slow).await;
        server_until(&nexus, "t", |s| s.in_flight == 1).await;
        mcp.cancel(id).await;
        server_until(&nexus, "t", |s| s.in_flight == 0).await;
        // Nothing came of it: the next answer is that of the next request.
        assert_eq!(mcp.text("t__echo", json!({"message": "on"})).await, "on");
    }
}

#[tokio::test]
async fn a_client_that_leaves_leaves_nothing_under_way() {
    for (door, client, server) in pairs() {
        let daemon = interactive(server);
        let nexus = daemon.client().await;
        let mut mcp = Mcp::come_in(door, &daemon, client, "ann", json!({})).await;
        let slow = json!({"name": "t__slow_operation", "arguments": {"duration": 60, "steps": 1}});
        mcp.begin("tools/call", slow).await;
        server_until(&nexus, "t", |s| s.in_flight == 1).await;
        assert_eq!(nexus.agents().list().await.unwrap().len(), 2);
        mcp.leave().await;
        server_until(&nexus, "t", |s| s.in_flight == 0).await;
        let started = tokio::time::Instant::now();
        while nexus.agents().list().await.unwrap().len() > 1 {
            assert!(started.elapsed() < PATIENCE);
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
}

#[tokio::test]
async fn one_server_alone_keeps_its_names_and_several_are_told_apart() {
    let home = Home::new();
    home.configure(&servers(&[
        ("One", test_server(&["--state"])),
        ("two", test_server(&[])),
        ("three", test_server(&["--tools", "1"])),
    ]));
    let daemon = home.start();
    for era in ERAS {
        let mut all = Mcp::connect(&daemon, era, "a", json!({})).await;
        let resources = all.request("resources/list", json!({})).await.unwrap();
        let resources = resources["resources"].as_array().unwrap().clone();
        assert_eq!(resources.len(), 9);
        let own = resources[3]["uri"].as_str().unwrap().to_owned();
        assert!(
            own.starts_with("nexus+") && own.ends_with(":file:///readme.txt"),
            "{own}"
        );
        let read = all
            .request("resources/read", json!({ "uri": own }))
            .await
            .unwrap();
        assert_eq!(read["contents"][0]["uri"], "file:///readme.txt");

        let mut one = Mcp::connect(&daemon, era, "b", json!({"servers": ["one"]})).await;
        let tools = one
            .request("tools/list", json!({}))
            .await
            .unwrap()
            .to_string();
        assert!(
            tools.contains("\"whoami\"") && !tools.contains("__"),
            "{tools}"
        );
        assert_eq!(one.text("echo", json!({"message": "x"})).await, "x");

        let two = json!({"servers": ["two", "three"]});
        let mut some = Mcp::connect(&daemon, era, "c", two).await;
        let tools = some
            .request("tools/list", json!({}))
            .await
            .unwrap()
            .to_string();
        assert!(
            tools.contains("three__tool_0001") && !tools.contains("one__"),
            "{tools}"
        );
        some.call("two__echo", json!({"message": "x"}))
            .await
            .unwrap();
        let hidden = [
            ("tools/call", json!({"name": "one__whoami"})),
            ("tools/call", json!({"name": "whoami"})),
            (
                "resources/read",
                json!({"uri": "nexus+one:file:///readme.txt"}),
            ),
            ("prompts/get", json!({"name": "one__greeting"})),
        ];
        for (method, params) in hidden {
            let error = some.request(method, params).await.unwrap_err();
            let is_unknown = error["code"] == -32602 || error["code"] == -32002;
            assert!(is_unknown && !error.to_string().contains("One"), "{error}");
        }
        let both = json!({"uri": "file:///readme.txt"});
        let read = some.request("resources/read", both).await.unwrap();
        assert_eq!(read["contents"][0]["uri"], "file:///readme.txt");
    }
}

#[tokio::test]
async fn nonsense_gets_an_error_and_disturbs_nobody() {
    let daemon = interactive("modern");
    let mut mcp = Mcp::connect(&daemon, "legacy", "ann", json!({})).await;
    for (line, code) in [
        ("{\"jsonrpc\":", -32700),
        ("{\"jsonrpc\":\"2.0\"}", -32600),
        (
            "[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]",
            -32600,
        ),
        ("\"x\"", -32700),
        (
            "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\",\"params\":[]}",
            -32602,
        ),
        (
            "{\"jsonrpc\":\"2.0\",\"id\":8,\"method\":\"tools/call\"}",
            -32602,
        ),
        (
            "{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"initialize\",\"params\":{}}",
            -32600,
        ),
    ] {
        mcp.send_text(line).await;
        let error = mcp.next().await;
        assert_eq!(error["error"]["code"], code, "{line}: {error}");
    }
    assert_eq!(mcp.text("t__echo", json!({"message": "on"})).await, "on");
    // It can still be asked: a second greeting took nothing away.
    let asked = mcp
        .text("t__ask", json!({"kind": "sampling", "text": "why"}))
        .await;
    assert!(asked.contains("ann was asked why"), "{asked}");
    let mut early = Mcp::connect(&daemon, "modern", "bob", json!({})).await;
    early.is_modern = false;
    let error = early.request("tools/list", json!({})).await.unwrap_err();
    assert_eq!(error["code"], -32602, "{error}");
}

/// Whoever has no more to ask still gets its answers.
#[tokio::test]
async fn the_last_answers_come_after_the_last_question() {
    let daemon = interactive("legacy");
    let mut mcp = Mcp::connect(&daemon, "modern", "ann", json!({})).await;
    let slow = json!({"name": "t__slow_operation", "arguments": {"duration": 0.2, "steps": 1}});
    let id = mcp.begin("tools/call", slow).await;
    mcp.notify("nexus/bye", json!({})).await;
    let done = mcp.answer(id).await.unwrap();
    assert!(
        done["content"][0]["text"]
            .as_str()
            .unwrap()
            .starts_with("Done")
    );
    mcp.ended().await;
}

/// Two agents over MCP: each question reaches its own.
#[tokio::test]
async fn questions_reach_the_client_whose_call_caused_them() {
    for (door, client, server) in pairs() {
        let daemon = interactive(server);
        let mut first = Mcp::come_in(door, &daemon, client, "first", json!({})).await;
        first
            .text("t__ask", json!({"kind": "sampling", "text": "warm up"}))
            .await;
        let mut tries = Vec::new();
        for name in ["ann", "bob"] {
            let mut mcp = Mcp::come_in(door, &daemon, client, name, json!({})).await;
            tries.push(tokio::spawn(async move {
                for n in 0..50 {
                    let asked = json!({"kind": "sampling", "text": n.to_string()});
                    let answer = mcp.text("t__ask", asked).await;
                    assert!(
                        answer.contains(&format!("{name} was asked {n}")),
                        "{answer}"
                    );
                }
            }));
        }
        for tries in tries {
            tries.await.unwrap();
        }
    }
}

#[tokio::test]
async fn a_client_has_one_process_of_its_own_which_ends_with_it() {
    let home = Home::new();
    let mut server = test_server(&["--state"]);
    server["sharing"] = json!("per-agent");
    home.configure(&servers(&[("t", server)]));
    let daemon = home.start();
    let nexus = daemon.client().await;
    for era in ERAS {
        let mut mcp = Mcp::connect(&daemon, era, "ann", json!({})).await;
        mcp.request("tools/list", json!({})).await.unwrap();
        let pid = mcp.text("t__whoami", json!({})).await;
        let pid: u32 = pid
            .trim_matches(|c: char| !c.is_ascii_digit())
            .parse()
            .unwrap();
        // What lists is what is called.
        let server = nexus.servers().get("t").await.unwrap();
        let pids: Vec<_> = server.instances.iter().filter_map(|i| i.pid).collect();
        assert_eq!(pids, [pid], "{era}");
        drop(mcp);
        tokio::task::spawn_blocking(move || wait_until_gone(pid))
            .await
            .unwrap();
    }
}
