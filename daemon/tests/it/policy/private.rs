//! What is one agent's own, and what only the operator steers.

use super::*;

fn private(policy: Value) -> Daemon {
    let home = Home::new();
    let mut config = servers(&[
        ("open", test_server(&[])),
        (
            "diary",
            test_server_with(
                &["--interactive"],
                json!({"shared": false, "start": "lazy"}),
            ),
        ),
    ]);
    config["policy"] = policy;
    home.configure(&config);
    home.start()
}

/// All that an agent can ask over gRPC, as text.
async fn everything_over_grpc(nexus: &Nexus) -> String {
    let mut told = format!("{:?}", nexus.servers().list().await.unwrap());
    told += &format!("{:?}", nexus.servers().get("diary").await.unwrap_err());
    told += &format!("{:?}", nexus.servers().ping("diary").await.unwrap_err());
    told += &format!("{:?}", nexus.servers().refresh("diary").await.unwrap_err());
    told += &format!("{:?}", nexus.tools().list().await.unwrap());
    told += &format!(
        "{:?}",
        nexus
            .tools()
            .call("diary.ask", json!({}))
            .await
            .unwrap_err()
    );
    told += &format!("{:?}", nexus.tools().search("ask", 100).await.unwrap());
    told += &format!("{:?}", nexus.resources().list().await.unwrap());
    told += &format!(
        "{:?}",
        nexus
            .resources()
            .read_from("diary", "file:///notes.txt")
            .await
            .unwrap_err()
    );
    told += &format!("{:?}", nexus.prompts().list().await.unwrap());
    told += &format!("{:?}", nexus.agents().list().await.unwrap());
    told += &format!(
        "{:?}",
        nexus
            .servers()
            .watch()
            .await
            .unwrap()
            .next()
            .await
            .unwrap()
            .unwrap()
    );
    let status = nexus.daemon().status().await.unwrap();
    assert_eq!((status.servers, status.servers_ready), (1, 1), "{status:?}");
    told
}

/// While a server is somebody's own, nothing that others ask tells of it.
#[tokio::test]
async fn what_is_one_agents_own_is_not_there_for_others() {
    let daemon = private(json!({}));
    let of = |name: &'static str| {
        let builder = Nexus::builder().socket(daemon.home.socket());
        builder.as_agent(name).connect()
    };
    let (ann, bob) = (of("xerxes").await.unwrap(), of("bob").await.unwrap());
    let mut eve = Mcp::connect(&daemon, "legacy", "eve", json!({})).await;
    // What nobody has yet is there for everybody to take.
    assert_eq!(bob.servers().list().await.unwrap().len(), 2);
    bob.tools().call("open.get_time", json!({})).await.unwrap();
    let echo = json!({"message": "dear diary"});
    assert_eq!(
        ann.tools().call("diary.echo", echo).await.unwrap().text(),
        "dear diary"
    );
    assert_eq!(ann.servers().list().await.unwrap().len(), 2);
    // Whether a name is somebody's or nobody's cannot be told: the same error, but for the name.
    for name in ["diary", "nobody"] {
        let tool = format!("{name}.echo");
        let error = bob
            .tools()
            .call(&tool, json!({"message": "x"}))
            .await
            .unwrap_err();
        assert_eq!(error.reason(), Some(Reason::ServerNotFound));
        assert_eq!(error.to_string(), format!("there is no server {name:?}"));
        let error = bob.servers().get(name).await.unwrap_err();
        assert_eq!(error.to_string(), format!("there is no server {name:?}"));
        assert_eq!(error.hint(), Some("the servers are: open"));
        let refused = eve
            .call(&format!("{name}__echo"), json!({"message": "x"}))
            .await
            .unwrap_err();
        assert_eq!(refused["data"]["reason"], "SERVER_NOT_FOUND", "{refused}");
    }
    let told = everything_over_grpc(&bob).await;
    let told = told.replace("no server \\\"diary\\\"", "no such server");
    assert!(
        !told.contains("diary") && !told.contains("xerxes"),
        "{told}"
    );
    for method in [
        "tools/list",
        "resources/list",
        "resources/templates/list",
        "prompts/list",
    ] {
        let listed = eve.request(method, json!({})).await.unwrap().to_string();
        assert!(
            !listed.contains("diary") && listed.matches("file:///readme.txt").count() <= 1,
            "{listed}"
        );
    }
    // The operator sees who has what.
    let operator = daemon.client().await;
    let agents = operator.agents().list().await.unwrap();
    let ann_is = agents
        .iter()
        .find(|agent| agent.name.as_deref() == Some("xerxes"))
        .unwrap();
    assert_eq!(ann_is.holds, ["diary"]);
    assert_eq!(operator.servers().list().await.unwrap().len(), 2);
    // When its agent has gone it is there for the next.
    drop(ann);
    let started = tokio::time::Instant::now();
    while bob
        .tools()
        .call("diary.echo", json!({"message": "x"}))
        .await
        .is_err()
    {
        assert!(started.elapsed() < PATIENCE);
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    let refused = eve
        .call("diary__echo", json!({"message": "x"}))
        .await
        .unwrap_err();
    assert_eq!(refused["data"]["reason"], "SERVER_NOT_FOUND", "{refused}");
}

/// What steers the pool, or tells of others, is for the operator and for whoever is never asked.
#[tokio::test]
async fn an_agent_does_not_steer_what_others_use() {
    let daemon = private(json!({"agents": {"free": {"agents": ["free"], "level": "yolo"}}}));
    let of = |name: &'static str| {
        let builder = Nexus::builder().socket(daemon.home.socket());
        builder.as_agent(name).connect()
    };
    let ann = of("ann").await.unwrap();
    let wait = nexus_client::Wait::Done;
    let errors = [
        ann.servers().restart("open", wait).await.unwrap_err(),
        ann.servers().stop("open", wait).await.unwrap_err(),
        ann.servers()
            .logs("open", Default::default())
            .await
            .unwrap_err(),
        ann.daemon().reload().await.unwrap_err(),
        ann.daemon().shutdown(false).await.unwrap_err(),
        ann.daemon().effective_config().await.unwrap_err(),
    ];
    for error in errors {
        assert_eq!(error.reason(), Some(Reason::NotOperator), "{error}");
    }
    of("free")
        .await
        .unwrap()
        .servers()
        .restart("open", wait)
        .await
        .unwrap();
}
