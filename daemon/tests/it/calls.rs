//! Calls: names, arguments, progress, deadlines, cancelling.

use crate::support::{Home, executions, server_when, servers, start_with, test_server};
use nexus_client::{Arguments, CallEvent, Error, Reason, ServerState};
use serde_json::{Value, json};
use std::{collections::HashSet, time::Duration};

#[tokio::test]
async fn every_spelling_of_a_name_finds_its_tool() {
    let home = Home::new();
    home.configure(&servers(&[
        ("Sequential Thinking", test_server(&[])),
        ("other", test_server(&["--tools", "2"])),
    ]));
    let daemon = home.start();
    let nexus = daemon.client().await;
    for name in [
        "sequential-thinking__add",
        "sequential-thinking.add",
        "Sequential Thinking.add",
        "mcp:sequential-thinking.add",
        "SEQUENTIAL-THINKING.add",
    ] {
        let sum = nexus
            .tools()
            .call(name, json!({"a": 1, "b": 1}))
            .await
            .unwrap();
        assert_eq!(sum.text(), "2", "{name}");
    }
    // A bare name is good where one server alone has it.
    nexus.tools().call("tool_0001", json!({})).await.unwrap();
    let error = nexus
        .tools()
        .call("add", json!({"a": 1, "b": 1}))
        .await
        .unwrap_err();
    assert_eq!(error.reason(), Some(Reason::AmbiguousName));
    assert!(
        error.hint().unwrap().contains("other__add"),
        "{:?}",
        error.hint()
    );
}

#[tokio::test]
async fn servers_whose_names_differ_only_in_case_are_told_apart() {
    let home = Home::new();
    let named = |name: &str| {
        let mut server = test_server(&["--env-tool"]);
        server["env"] = json!({"WHO": format!("<{name}>")});
        server
    };
    let names = ["GitHub", "github", "GITHUB", "github-2"];
    home.configure(&servers(&names.map(|name| (name, named(name)))));
    let daemon = home.start();
    let nexus = daemon.client().await;
    let tools = nexus.tools().list().await.unwrap().tools;
    let tools: Vec<_> = tools
        .into_iter()
        .filter(|tool| tool.tool == "env")
        .collect();
    assert_eq!(tools.len(), names.len());
    for tool in tools {
        // By the name that agents see, and by the name that people wrote.
        for name in [tool.name.clone(), tool.dotted()] {
            let told = nexus.tools().call(&name, json!({})).await.unwrap().text();
            assert!(
                told.contains(&format!("<{}>", tool.server)),
                "{name}: {told}"
            );
        }
    }
}

#[tokio::test]
async fn a_name_that_is_not_known_brings_the_nearest() {
    let daemon = start_with(&[]);
    let nexus = daemon.client().await;
    let suggestion = async |name: &str| {
        let Error::Failed(failure) = nexus.tools().call(name, json!({})).await.unwrap_err() else {
            panic!("{name}");
        };
        (
            failure.reason,
            failure.details.suggestion.unwrap_or_default(),
        )
    };
    assert_eq!(
        suggestion("t.ad").await,
        (Reason::ToolNotFound, "t.add".into())
    );
    assert_eq!(
        suggestion("t__get_tim").await,
        (Reason::ToolNotFound, "t.get_time".into())
    );
    assert_eq!(
        suggestion("tt.add").await,
        (Reason::ServerNotFound, "t.add".into())
    );
    assert_eq!(suggestion("slow_op").await.0, Reason::ToolNotFound);
    let Error::Failed(failure) = nexus.servers().get("tt").await.unwrap_err() else {
        panic!()
    };
    assert_eq!(failure.reason, Reason::ServerNotFound);
    assert_eq!(failure.details.hint.as_deref(), Some("the servers are: t"));
}

#[tokio::test]
async fn arguments_that_break_the_schema_never_reach_the_server() {
    let home = Home::new();
    let journal = home.path().join("journal");
    let server = test_server(&["--journal", journal.to_str().unwrap()]);
    home.configure(&servers(&[("t", server)]));
    let daemon = home.start();
    let nexus = daemon.client().await;
    for arguments in [
        "{\"a\":\"two\",\"b\":3}",
        "{\"a\":1}",
        "[1,2]",
        "{\"a\":",
        "null",
    ] {
        let call = nexus
            .tools()
            .call("t.add", Arguments::from_raw(arguments.to_owned()));
        let Error::Failed(failure) = call.await.unwrap_err() else {
            panic!("{arguments}")
        };
        assert_eq!(failure.reason, Reason::InvalidArguments, "{arguments}");
        assert!(!failure.details.violations.is_empty(), "{arguments}");
    }
    nexus
        .tools()
        .call("t.add", json!({"a": 1, "b": 1}))
        .await
        .unwrap();
    assert_eq!(executions(&journal), ["add"]);
}

#[tokio::test]
async fn payloads_pass_byte_for_byte() {
    let daemon = start_with(&["--fault", "big-number"]);
    let nexus = daemon.client().await;
    let odd = "{ \"message\" : \"\\u0041 \u{1F600} \\n\" }";
    let result = nexus
        .tools()
        .call("t.echo", Arguments::from_raw(odd))
        .await
        .unwrap();
    assert!(
        result
            .raw()
            .as_str()
            .contains("123456789012345678901234567890")
    );
    assert!(result.raw().as_str().contains("1e400"));
}

#[tokio::test]
async fn large_arguments_and_results_pass_and_too_large_ones_are_refused() {
    let daemon = start_with(&[]);
    let nexus = daemon.client().await;
    let large = "x".repeat(8 * 1024 * 1024);
    let result = nexus
        .tools()
        .call("t.echo", json!({"message": large}))
        .await
        .unwrap();
    assert_eq!(result.text().len(), large.len());
    let too_large = "x".repeat(17 * 1024 * 1024);
    let error = nexus
        .tools()
        .call("t.echo", json!({"message": too_large}))
        .await
        .unwrap_err();
    assert_eq!(error.reason(), Some(Reason::TooLarge), "{error:?}");
    nexus
        .tools()
        .call("t.echo", json!({"message": "small"}))
        .await
        .unwrap();
}

#[tokio::test]
async fn progress_comes_in_order_before_the_result() {
    let daemon = start_with(&[]);
    let nexus = daemon.client().await;
    let arguments = json!({"duration": 0.05, "steps": 5});
    let mut stream = nexus
        .tools()
        .call_stream("t.slow_operation", arguments)
        .await
        .unwrap();
    let mut seen = Vec::new();
    let mut results = 0;
    while let Some(event) = stream.next().await {
        match event.unwrap() {
            CallEvent::Progress(progress) => {
                assert_eq!(results, 0);
                seen.push(progress.progress);
            }
            CallEvent::Result(_) => results += 1,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(results, 1);
    assert!(!seen.is_empty() && seen.is_sorted(), "{seen:?}");
}

#[tokio::test]
async fn a_deadline_ends_the_call_and_nothing_else() {
    let daemon = start_with(&["--fault", "hang"]);
    let nexus = daemon.client().await;
    // The time is the call's, not the server's to start.
    server_when(&nexus, "t", |s| s.state == ServerState::Ready).await;
    let call = nexus.tools().call("t.echo", json!({"message": "x"}));
    let error = call.timeout(Duration::from_millis(200)).await.unwrap_err();
    assert!(error.is_timeout() && error.maybe_executed(), "{error:?}");
    server_when(&nexus, "t", |s| s.in_flight == 0).await;
    let sum = nexus
        .tools()
        .call("t.add", json!({"a": 1, "b": 1}))
        .await
        .unwrap();
    assert_eq!(sum.text(), "2");
    assert_eq!(nexus.servers().get("t").await.unwrap().restarts, 0);
}

#[tokio::test]
async fn the_servers_own_time_limit_is_told_with_its_name() {
    let home = Home::new();
    let mut server = test_server(&["--fault", "hang"]);
    server["timeout"] = json!(0.2);
    home.configure(&servers(&[("t", server)]));
    let daemon = home.start();
    let nexus = daemon.client().await;
    let error = nexus
        .tools()
        .call("t.echo", json!({"message": "x"}))
        .await
        .unwrap_err();
    assert_eq!(error.reason(), Some(Reason::Deadline));
    assert_eq!(error.to_string(), "t.echo did not answer within 200ms");
}

#[tokio::test]
async fn a_caller_that_goes_away_cancels_its_call() {
    let daemon = start_with(&[]);
    let nexus = daemon.client().await;
    let slow = json!({"duration": 300});
    let calls = [
        nexus
            .tools()
            .call_stream("t.slow_operation", slow.clone())
            .await
            .unwrap(),
        daemon
            .client()
            .await
            .tools()
            .call_stream("t.slow_operation", slow)
            .await
            .unwrap(),
    ];
    while nexus.servers().get("t").await.unwrap().in_flight < 2 {
        tokio::task::yield_now().await;
    }
    drop(calls);
    while nexus.servers().get("t").await.unwrap().in_flight > 0 {
        tokio::task::yield_now().await;
    }
    nexus
        .tools()
        .call("t.add", json!({"a": 1, "b": 1}))
        .await
        .unwrap();
}

#[tokio::test]
async fn many_agents_at_once_each_get_their_own_answers() {
    let daemon = start_with(&[]);
    let mut agents = Vec::new();
    for agent in 0..20 {
        let nexus = daemon.client().await;
        agents.push(tokio::spawn(async move {
            for call in 0..50 {
                let message = format!("agent {agent}, call {call}");
                let echo = nexus.tools().call("t.echo", json!({"message": message}));
                assert_eq!(echo.await.unwrap().text(), message);
            }
        }));
    }
    for agent in agents {
        agent.await.unwrap();
    }
    let nexus = daemon.client().await;
    assert_eq!(nexus.daemon().status().await.unwrap().calls, 1000);
}

#[tokio::test]
async fn a_list_of_many_pages_is_read_to_its_end() {
    let daemon = start_with(&["--tools", "250", "--page-size", "7"]);
    let nexus = daemon.client().await;
    let tools = nexus.tools().list_of("t").await.unwrap().tools;
    let names: HashSet<&str> = tools.iter().map(|tool| tool.tool.as_str()).collect();
    assert_eq!((tools.len(), names.len()), (254, 254));
    let found = nexus.tools().search("tool_0123", 3).await.unwrap();
    assert_eq!(found[0].tool.tool, "tool_0123");
}

#[tokio::test]
async fn a_server_sees_only_what_it_is_given() {
    let home = Home::new();
    let mut server = test_server(&["--env-tool"]);
    server["env"] = json!({"GIVEN": "yes"});
    server["cwd"] = json!(home.path());
    let mut trusted = server.clone();
    trusted["env_passthrough"] = json!(["NEXUS_TEST_SECRET"]);
    home.configure(&servers(&[("t", server), ("trusted", trusted)]));
    let daemon = home.start();
    let nexus = daemon.client().await;
    let env = async |server: &str| -> Value {
        let told = nexus
            .tools()
            .call(format!("{server}.env"), json!({}))
            .await
            .unwrap();
        serde_json::from_str(&told.text()).unwrap()
    };
    let plain = env("t").await;
    let text = plain.to_string();
    assert!(text.contains("GIVEN") && text.contains("PATH"), "{text}");
    assert!(!text.contains("do not tell"), "{text}");
    assert!(
        text.contains(daemon.home.path().to_str().unwrap()),
        "{text}"
    );
    assert!(env("trusted").await.to_string().contains("do not tell"));
    let config = nexus.daemon().effective_config().await.unwrap();
    assert!(!config.as_str().contains("yes"), "{}", config.as_str());
}

#[tokio::test]
async fn what_a_server_complains_about_can_be_read() {
    let daemon = start_with(&["--fault", "init-exit"]);
    let nexus = daemon.client().await;
    server_when(&nexus, "t", |s| s.state == ServerState::CrashLoop).await;
    let mut logs = nexus
        .servers()
        .logs("t", nexus_client::LogOptions::default())
        .await
        .unwrap();
    assert!(logs.next().await.is_some());
}

/// Somebody else's slow start is no reason to keep whoever mistypes a name.
#[tokio::test]
async fn a_wrong_name_is_told_at_once_while_another_server_starts() {
    let home = Home::new();
    home.configure(&servers(&[
        ("t", test_server(&[])),
        ("slow", test_server(&["--fault", "init-hang"])),
    ]));
    let daemon = home.start();
    let nexus = daemon.client().await;
    let error = nexus
        .tools()
        .call("nosuch.tool", json!({}))
        .await
        .unwrap_err();
    assert_eq!(error.reason(), Some(Reason::ServerNotFound));
    // A bare name may be that of a tool that is not known yet, but not for ever.
    let sum = nexus.tools().call("add", json!({"a": 1, "b": 1})).await;
    assert_eq!(sum.unwrap().text(), "2");
    let slow = nexus.servers().get("slow").await.unwrap();
    assert_eq!((slow.state, slow.generation), (ServerState::Starting, 1));
}

/// Both use the same tool of the same process at the same time; the tokens are ours.
#[tokio::test]
async fn each_caller_hears_of_the_progress_of_its_own_call() {
    let daemon = start_with(&[]);
    let mut calls = Vec::new();
    for steps in [3u32, 5] {
        let nexus = daemon.client().await;
        calls.push(tokio::spawn(async move {
            let slow = json!({"duration": 0.3, "steps": steps});
            let mut events = nexus
                .tools()
                .call("t.slow_operation", slow)
                .stream()
                .await
                .unwrap();
            let mut heard = 0;
            while let Some(event) = events.next().await {
                if let CallEvent::Progress(progress) = event.unwrap() {
                    assert_eq!(progress.total, Some(f64::from(steps)));
                    heard += 1;
                }
            }
            assert!(heard > 0);
        }));
    }
    for call in calls {
        call.await.unwrap();
    }
}
