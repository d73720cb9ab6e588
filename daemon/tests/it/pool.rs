//! Who shares which process, when it is started, and how many calls it gets.

use crate::support::{
    Daemon, Home, NEXUSD, eventually, executions, is_alive, kill, server_until, server_when,
    servers, test_server_with,
};
use nexus_client::{Error, Nexus, Reason, ServerState, Wait};
use serde_json::{Value, json};
use std::{fs, path::Path, time::Duration};

fn start(args: &[&str], keys: Value) -> Daemon {
    let home = Home::new();
    home.configure(&servers(&[("t", test_server_with(args, keys))]));
    home.start()
}

async fn whoami(nexus: &Nexus) -> u64 {
    let answer = nexus.tools().call("t.whoami", json!({})).await.unwrap();
    let answer: Value = serde_json::from_str(&answer.text()).unwrap();
    answer["pid"].as_u64().unwrap()
}

async fn connect(daemon: &Daemon, project: &Path, credential: &str) -> Nexus {
    Nexus::builder()
        .socket(daemon.home.socket())
        .project(project)
        .credential(credential)
        .unwrap()
        .connect()
        .await
        .unwrap()
}

fn starts(journal: &Path) -> usize {
    fs::read_to_string(journal)
        .unwrap_or_default()
        .lines()
        .count()
}

#[tokio::test]
async fn a_lazy_server_is_started_by_the_first_call() {
    let daemon = start(&[], json!({"start": "lazy"}));
    let nexus = daemon.client().await;
    let server = nexus.servers().get("t").await.unwrap();
    assert_eq!((server.state, server.generation), (ServerState::Idle, 0));
    let sum = nexus.tools().call("t.add", json!({"a": 1, "b": 1})).await;
    assert_eq!(sum.unwrap().text(), "2");
    let server = nexus.servers().get("t").await.unwrap();
    assert_eq!((server.state, server.generation), (ServerState::Ready, 1));
}

#[tokio::test]
async fn one_that_an_operator_stopped_is_not_started_by_a_call() {
    let daemon = start(&[], json!({"start": "lazy"}));
    let nexus = daemon.client().await;
    nexus.tools().list().await.unwrap();
    nexus.servers().stop("t", Wait::Done).await.unwrap();
    let server = nexus.servers().get("t").await.unwrap();
    assert_eq!(server.state, ServerState::Stopped);
    let error = nexus
        .tools()
        .call("t.get_time", json!({}))
        .await
        .unwrap_err();
    assert_eq!(error.reason(), Some(Reason::ServerStopped));
    nexus.servers().start("t", Wait::Done).await.unwrap();
    nexus.tools().call("t.get_time", json!({})).await.unwrap();
}

#[tokio::test]
async fn a_server_that_nobody_calls_rests_and_the_next_call_wakes_it() {
    let daemon = start(&[], json!({"start": "lazy", "idle_stop": 0.2}));
    let nexus = daemon.client().await;
    for round in 1..=3 {
        nexus.tools().call("t.get_time", json!({})).await.unwrap();
        let server = server_when(&nexus, "t", |s| s.state == ServerState::Idle).await;
        assert_eq!((server.generation, server.restarts), (round, 0));
        assert_eq!(server.last_failure, None);
        assert!(server.cause.contains("nobody"), "{}", server.cause);
    }
}

/// The moment of resting and the moment of a call are the same again and again: none is lost.
#[tokio::test]
async fn no_call_is_lost_to_a_server_that_goes_to_rest() {
    let daemon = start(&[], json!({"start": "lazy", "idle_stop": 0.02}));
    let nexus = daemon.client().await;
    for round in 0..60 {
        nexus.tools().call("t.get_time", json!({})).await.unwrap();
        tokio::time::sleep(Duration::from_millis(15 + round % 12)).await;
    }
    let server = nexus.servers().get("t").await.unwrap();
    assert!(server.generation > 1, "it never rested");
}

#[tokio::test]
async fn a_server_with_a_call_does_not_rest() {
    let daemon = start(&[], json!({"start": "lazy", "idle_stop": 0.1}));
    let nexus = daemon.client().await;
    let slow = json!({"duration": 1.0, "steps": 2});
    nexus.tools().call("t.slow_operation", slow).await.unwrap();
    assert_eq!(nexus.servers().get("t").await.unwrap().generation, 1);
}

#[tokio::test]
async fn a_lazy_server_that_leaves_by_itself_is_started_by_the_next_call() {
    let daemon = start(&["--fault", "exit-idle@1"], json!({"start": "lazy"}));
    let nexus = daemon.client().await;
    nexus.tools().call("t.get_time", json!({})).await.unwrap();
    let server = server_when(&nexus, "t", |s| s.state == ServerState::Idle).await;
    assert_eq!((server.restarts, server.last_failure), (0, None));
    nexus.tools().call("t.get_time", json!({})).await.unwrap();
}

#[tokio::test]
async fn lists_are_served_from_disk_without_waking_anyone() {
    let home = Home::new();
    let journal = home.path().join("starts");
    let args = [
        "--start-journal",
        journal.to_str().unwrap(),
        "--tools",
        "50",
    ];
    home.configure(&servers(&[(
        "t",
        test_server_with(&args, json!({"start": "lazy"})),
    )]));
    let daemon = home.start();
    let nexus = daemon.client().await;
    // Nobody knows them yet: it has to be asked.
    assert_eq!(nexus.tools().list().await.unwrap().tools.len(), 54);
    assert_eq!(starts(&journal), 1);
    let lists = daemon.home.path().join("state/nexus/lists");
    let kept = || fs::read_dir(&lists).map_or(0, Iterator::count);
    eventually("they are kept", || kept() > 0).await;
    let home = daemon.end();

    let daemon = home.start();
    let nexus = daemon.client().await;
    let list = nexus.tools().list().await.unwrap();
    assert_eq!((list.tools.len(), list.missing.len()), (54, 0));
    assert_eq!(nexus.tools().get("t.add").await.unwrap().tool, "add");
    let error = nexus.tools().call("t.ad", json!({})).await.unwrap_err();
    assert_eq!(error.reason(), Some(Reason::ToolNotFound));
    let server = nexus.servers().get("t").await.unwrap();
    assert_eq!((server.state, server.tools), (ServerState::Idle, 54));
    assert_eq!(starts(&journal), 1, "somebody was woken");
    nexus.tools().call("t.get_time", json!({})).await.unwrap();
    assert_eq!(starts(&journal), 2);
}

#[tokio::test]
async fn everybody_shares_one_process_unless_told() {
    let daemon = start(&["--state"], json!({}));
    let (one, two) = (daemon.client().await, daemon.client().await);
    assert_eq!(whoami(&one).await, whoami(&two).await);
}

#[tokio::test]
async fn each_agent_has_its_own_process_and_it_ends_with_the_agent() {
    let daemon = start(&["--state"], json!({"sharing": "per-agent"}));
    let (one, two) = (daemon.client().await, daemon.client().await);
    let (first, second) = (whoami(&one).await, whoami(&two).await);
    assert_ne!(first, second);
    assert_eq!(whoami(&one).await, first);
    let remember = |nexus: Nexus, value: &'static str| async move {
        let call = nexus.tools().call("t.remember", json!({"value": value}));
        call.await.unwrap().text()
    };
    assert_eq!(remember(one.clone(), "mine").await, "");
    assert_eq!(remember(two.clone(), "theirs").await, "");
    assert_eq!(remember(one.clone(), "").await, "mine");
    assert_eq!(one.servers().get("t").await.unwrap().instances.len(), 2);
    drop(one);
    let first = u32::try_from(first).unwrap();
    eventually("its process is gone", || !is_alive(first)).await;
    assert!(is_alive(u32::try_from(second).unwrap()));
    assert_eq!(whoami(&two).await, second);
    assert_eq!(two.servers().get("t").await.unwrap().instances.len(), 1);
}

#[tokio::test]
async fn agents_in_one_folder_share_and_run_there() {
    let daemon = start(
        &["--state", "--env-tool"],
        json!({"sharing": "per-project"}),
    );
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let one = connect(&daemon, here.path(), "x").await;
    let two = connect(&daemon, here.path(), "y").await;
    let three = connect(&daemon, there.path(), "x").await;
    assert_eq!(whoami(&one).await, whoami(&two).await);
    assert_ne!(whoami(&one).await, whoami(&three).await);
    let environment = one.tools().call("t.env", json!({})).await.unwrap().text();
    let folder = here.path().canonicalize().unwrap();
    assert!(
        environment.contains(folder.to_str().unwrap()),
        "{environment}"
    );
}

/// What a server can do may depend on where it runs: nobody sees the tools of somebody else's.
#[tokio::test]
async fn each_project_sees_the_tools_of_its_own_process() {
    let home = Home::new();
    let script = format!("exec {NEXUSD} demo-server --tools $(cat tools)");
    let server = json!({"command": "sh", "args": ["-c", script], "sharing": "per-project"});
    home.configure(&servers(&[("t", server)]));
    let project = |tools: &str| {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("tools"), tools).unwrap();
        folder
    };
    let (few, many) = (project("1"), project("3"));
    let mut daemon = home.start();
    for round in 0..2 {
        let one = connect(&daemon, few.path(), "").await;
        let two = connect(&daemon, many.path(), "").await;
        for _ in 0..2 {
            assert_eq!(one.tools().list().await.unwrap().tools.len(), 5);
            assert_eq!(two.tools().list().await.unwrap().tools.len(), 7);
        }
        assert_eq!(two.servers().get("t").await.unwrap().tools, 7);
        let error = one
            .tools()
            .call("t.tool_0003", json!({}))
            .await
            .unwrap_err();
        assert_eq!(error.reason(), Some(Reason::ToolNotFound));
        if round == 0 {
            two.tools().call("t.tool_0003", json!({})).await.unwrap();
            // The next daemon tells them apart as well, and wakes nobody.
            let lists = daemon.home.path().join("state/nexus/lists");
            let kept = || fs::read_dir(&lists).map_or(0, Iterator::count);
            eventually("both are kept", || kept() == 2).await;
            daemon = daemon.end().start();
        } else {
            assert_eq!(one.servers().get("t").await.unwrap().generation, 0);
        }
    }
}

#[tokio::test]
async fn agents_with_one_credential_share_and_it_is_never_shown() {
    let daemon = start(&["--state"], json!({"sharing": "per-credential"}));
    let folder = daemon.home.path().to_owned();
    let one = connect(&daemon, &folder, "Bearer hunter2").await;
    let two = connect(&daemon, &folder, "Bearer hunter2").await;
    let three = connect(&daemon, &folder, "Bearer other").await;
    assert_eq!(whoami(&one).await, whoami(&two).await);
    assert_ne!(whoami(&one).await, whoami(&three).await);
    let server = one.servers().get("t").await.unwrap();
    assert_eq!(server.instances.len(), 2);
    assert!(!format!("{server:?}").contains("hunter2"));
    assert!(!daemon.log().contains("hunter2"));
}

#[tokio::test]
async fn replicas_share_the_work_and_the_least_busy_gets_it() {
    let daemon = start(&["--state"], json!({"replicas": 3}));
    let nexus = daemon.client().await;
    server_when(&nexus, "t", |s| {
        s.instances.len() == 3 && s.instances.iter().all(|i| i.state == ServerState::Ready)
    })
    .await;
    let slow: Vec<_> = (0..3)
        .map(|_| {
            let nexus = nexus.clone();
            tokio::spawn(async move {
                let slow = json!({"duration": 60, "steps": 1});
                nexus.tools().call("t.slow_operation", slow).await
            })
        })
        .collect();
    let server = server_until(&nexus, "t", |s| s.in_flight == 3).await;
    assert!(
        server.instances.iter().all(|i| i.in_flight == 1),
        "{server:?}"
    );
    // One that dies takes only its own call with it.
    kill(server.instances[0].pid.unwrap());
    let lost = || slow.iter().filter(|call| call.is_finished()).count();
    eventually("one is lost", || lost() > 0).await;
    assert_eq!(lost(), 1);
    whoami(&nexus).await;
    for call in slow {
        call.abort();
    }
}

async fn waiting(nexus: &Nexus, in_flight: u32, waiting: u32) {
    let counts = (in_flight, waiting);
    server_until(nexus, "t", |s| (s.in_flight, s.waiting) == counts).await;
}

#[tokio::test]
async fn who_is_too_many_waits_and_the_queue_has_an_end() {
    let home = Home::new();
    let journal = home.path().join("journal");
    let args = ["--journal", journal.to_str().unwrap()];
    let keys = json!({"max_in_flight": 2, "max_queue": 3});
    home.configure(&servers(&[("t", test_server_with(&args, keys))]));
    let daemon = home.start();
    let nexus = daemon.client().await;
    let call = |nonce: String| {
        let nexus = nexus.clone();
        tokio::spawn(async move {
            let slow = json!({"duration": 0.3, "steps": 1, "nonce": nonce});
            nexus.tools().call("t.slow_operation", slow).await
        })
    };
    let calls: Vec<_> = (0..5).map(|n| call(n.to_string())).collect();
    waiting(&nexus, 2, 3).await;
    let error = nexus
        .tools()
        .call("t.get_time", json!({}))
        .await
        .unwrap_err();
    let Error::Failed(failure) = &error else {
        panic!("{error:?}")
    };
    assert_eq!(failure.reason, Reason::Overloaded);
    assert!(
        failure.message.contains("2 calls under way and 3 waiting"),
        "{error}"
    );
    assert!(!failure.details.maybe_executed);
    for call in calls {
        call.await.unwrap().unwrap();
    }
    assert_eq!(executions(&journal).len(), 5);
    nexus.tools().call("t.get_time", json!({})).await.unwrap();
}

/// Whose question a server asks cannot be told while two agents have calls under way at it.
#[tokio::test]
async fn once_a_server_asks_one_agent_is_served_at_a_time_and_that_is_remembered() {
    let home = Home::new();
    let args = ["--era", "legacy", "--fault", "ask-sampling@1"];
    home.configure(&servers(&[("t", test_server_with(&args, json!({})))]));
    let mut daemon = home.start();
    for round in 0..2 {
        let (one, two) = (daemon.agent("one").await, daemon.agent("two").await);
        assert_eq!(one.servers().get("t").await.unwrap().asks, round > 0);
        let answer = one.tools().call("t.get_time", json!({})).await.unwrap();
        assert!(answer.text().contains("one was asked"), "{}", answer.text());
        assert!(one.servers().get("t").await.unwrap().asks);
        let slow = |nexus: &Nexus| {
            let nexus = nexus.clone();
            tokio::spawn(async move {
                let slow = json!({"duration": 0.3, "steps": 1});
                nexus.tools().call("t.slow_operation", slow).await
            })
        };
        let first = slow(&one);
        waiting(&one, 1, 0).await;
        let second = slow(&two);
        waiting(&one, 1, 1).await;
        first.await.unwrap().unwrap();
        second.await.unwrap().unwrap();
        // The end of the process writes down what was learnt.
        one.servers().stop("t", Wait::Done).await.unwrap();
        let lists = daemon.home.path().join("state/nexus/lists");
        let known = || {
            let files = fs::read_dir(&lists).into_iter().flatten().flatten();
            files
                .map(|file| fs::read_to_string(file.path()).unwrap_or_default())
                .any(|text| text.contains("\"asks\":true"))
        };
        eventually("it is written down", known).await;
        daemon = daemon.end().start();
    }
}

#[tokio::test]
async fn a_tool_is_called_once_more_only_if_its_server_is_trusted_in_that() {
    for (trust, executed) in [(false, 1), (true, 2)] {
        let home = Home::new();
        let journal = home.path().join("journal");
        // It dies in the second call of each of its processes.
        let args = [
            "--journal",
            journal.to_str().unwrap(),
            "--read-only-hints",
            "--fault",
            "exit-after@2",
        ];
        let keys = json!({"trust_hints": trust});
        home.configure(&servers(&[("t", test_server_with(&args, keys))]));
        let daemon = home.start();
        let nexus = daemon.client().await;
        nexus.tools().call("t.get_time", json!({})).await.unwrap();
        let echo = json!({"message": "x", "nonce": "n"});
        let answer = nexus.tools().call("t.echo", echo).await;
        assert_eq!(answer.is_ok(), trust, "{answer:?}");
        let echoes = executions(&journal)
            .iter()
            .filter(|tool| *tool == "echo")
            .count();
        assert_eq!(echoes, executed);
    }
}

#[tokio::test]
async fn a_tool_that_is_lost_twice_is_not_called_a_third_time() {
    let home = Home::new();
    let journal = home.path().join("journal");
    let args = [
        "--journal",
        journal.to_str().unwrap(),
        "--fault",
        "exit-after@1",
    ];
    let keys = json!({"trust_hints": true});
    home.configure(&servers(&[("t", test_server_with(&args, keys))]));
    let daemon = home.start();
    let nexus = daemon.client().await;
    let error = nexus.tools().call("t.echo", json!({"message": "x"})).await;
    assert_eq!(error.unwrap_err().reason(), Some(Reason::ServerExited));
    assert_eq!(executions(&journal), ["echo", "echo"]);
}

#[tokio::test]
async fn a_list_that_was_lost_with_its_process_is_asked_for_once_more() {
    let daemon = start(&["--fault", "exit-after-ms@600"], json!({}));
    let nexus = daemon.client().await;
    // Somewhere in these its process ends, perhaps in the middle of one.
    for _ in 0..40 {
        nexus.servers().refresh("t").await.unwrap();
        if nexus.servers().get("t").await.unwrap().generation > 1 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("it never ended");
}
