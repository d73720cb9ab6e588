//! Who may do what, and who is asked: levels, consent, answers and doors.

mod private;

use crate::{
    mcp_client::{Door, Mcp},
    support::{Daemon, Home, PATIENCE, servers, test_server, test_server_with},
};
use nexus_client::{AgentInfo, Answer, ApprovalEvent, ElicitationAnswer, Nexus, Reason};
use serde_json::{Value, json};
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};
use tokio::time::timeout;

/// A daemon with a server for each consent, and this policy.
fn start(policy: Value) -> Daemon {
    let home = Home::new();
    let of = |consent: &str| test_server_with(&[], json!({ "consent": consent }));
    let mut config = servers(&[
        ("never", of("never")),
        ("server", of("server")),
        ("call", of("call")),
    ]);
    config["policy"] = policy;
    home.configure(&config);
    home.start()
}

/// Somebody who works for somebody, and comes in by one of the doors.
enum Agent {
    Grpc(Nexus, Arc<AtomicUsize>),
    Mcp(Box<Mcp>),
}

const DOORS: [&str; 5] = [
    "grpc",
    "lines legacy",
    "lines modern",
    "http legacy",
    "http modern",
];

impl Agent {
    /// `says`: what it answers when it is asked; nothing for one that cannot be asked.
    async fn come(daemon: &Daemon, door: &str, says: Option<&'static str>) -> Self {
        let (kind, era) = door.split_once(' ').unwrap_or((door, ""));
        if kind == "grpc" {
            let asked = Arc::new(AtomicUsize::new(0));
            let count = Arc::clone(&asked);
            let mut builder = Nexus::builder()
                .socket(daemon.home.socket())
                .as_agent("ann");
            if let Some(says) = says {
                builder = builder.agent(AgentInfo::new("ann").on_elicitation(move |_| {
                    count.fetch_add(1, Ordering::Relaxed);
                    async move {
                        Ok(match says {
                            "decline" => ElicitationAnswer::decline(),
                            "cancel" => ElicitationAnswer::cancel(),
                            word => ElicitationAnswer::accept(json!({ "answer": word })),
                        })
                    }
                }));
            }
            return Self::Grpc(builder.connect().await.unwrap(), asked);
        }
        let door = if kind == "lines" {
            Door::Lines
        } else {
            Door::Http
        };
        let hello = json!({ "mute": says.is_none() });
        let mut client = Mcp::come_in(door, daemon, era, "ann", hello).await;
        client.consents.0 = says.unwrap_or_default();
        Self::Mcp(Box::new(client))
    }

    /// Calls a tool that says its argument. The result, or the message of the refusal and its reason.
    async fn echo(&mut self, server: &str) -> Result<String, (String, String)> {
        let arguments = json!({ "message": "hello" });
        match self {
            Self::Grpc(nexus, _) => match nexus
                .tools()
                .call(format!("{server}.echo"), arguments)
                .await
            {
                Ok(result) => Ok(result.text()),
                Err(error) => {
                    let reason = error
                        .reason()
                        .map(|reason| reason.as_str())
                        .unwrap_or_default();
                    Err((error.to_string(), reason.to_owned()))
                }
            },
            Self::Mcp(client) => match client.call(&format!("{server}__echo"), arguments).await {
                Ok(result) if result["isError"] == true => {
                    let text = result["content"][0]["text"].as_str().unwrap();
                    Err((text.to_owned(), String::new()))
                }
                Ok(result) => Ok(result["content"][0]["text"].as_str().unwrap().to_owned()),
                Err(error) => Err((
                    error["message"].as_str().unwrap().to_owned(),
                    error["data"]["reason"]
                        .as_str()
                        .unwrap_or_default()
                        .to_owned(),
                )),
            },
        }
    }

    /// The servers whose tools it sees.
    async fn sees(&mut self) -> Vec<String> {
        let names: Vec<String> = match self {
            Self::Grpc(nexus, _) => {
                let listed = nexus.tools().list().await.unwrap();
                assert!(listed.missing.is_empty());
                listed.tools.into_iter().map(|tool| tool.name).collect()
            }
            Self::Mcp(client) => {
                let listed = client.request("tools/list", json!({})).await.unwrap();
                let tools = listed["tools"].as_array().unwrap().iter();
                tools
                    .map(|tool| tool["name"].as_str().unwrap().to_owned())
                    .collect()
            }
        };
        let mut seen: Vec<String> = names
            .iter()
            .filter_map(|name| Some(name.split_once("__")?.0.to_owned()))
            .collect();
        seen.dedup();
        seen
    }

    /// How often it was asked.
    fn asked(&self) -> usize {
        match self {
            Self::Grpc(_, asked) => asked.load(Ordering::Relaxed),
            Self::Mcp(client) => client.consents.1,
        }
    }
}

#[tokio::test]
async fn a_sandboxed_agent_has_no_servers_and_is_told_who_can_change_that() {
    let daemon = start(json!({"level": "sandboxed"}));
    for door in DOORS {
        let mut agent = Agent::come(&daemon, door, Some("allow")).await;
        assert_eq!(agent.sees().await, [""; 0], "{door}");
        for server in ["never", "server", "call", "nobody"] {
            let (message, reason) = agent.echo(server).await.unwrap_err();
            assert_eq!(
                message, "ann is sandboxed: it may not use any server",
                "{door} {server}"
            );
            assert!(
                ["SANDBOXED", ""].contains(&reason.as_str()),
                "{door}: {reason}"
            );
        }
        assert_eq!(agent.asked(), 0);
    }
    // The operator is not.
    let operator = daemon.client().await;
    let sum = operator
        .tools()
        .call("call.add", json!({"a": 2, "b": 3}))
        .await;
    assert_eq!(sum.unwrap().text(), "5");
    assert_eq!(operator.servers().list().await.unwrap().len(), 3);
}

#[tokio::test]
async fn nobody_is_asked_for_whoever_may_do_everything() {
    let daemon = start(
        json!({"level": "sandboxed", "consent": "call", "agents": {"mine": {"agents": ["ann"], "level": "yolo"}}}),
    );
    for door in DOORS {
        let mut agent = Agent::come(&daemon, door, Some("deny")).await;
        // A modern client says who it is with each request.
        for server in ["never", "server", "call"] {
            assert_eq!(
                agent.echo(server).await.unwrap(),
                "hello",
                "{door} {server}"
            );
        }
        assert_eq!(agent.sees().await, ["call", "never", "server"], "{door}");
        assert_eq!(agent.asked(), 0);
    }
}

/// What comes of two calls: how often somebody is asked, and whether they go through.
struct Case {
    server: &'static str,
    says: &'static str,
    asked: usize,
    first: Result<(), &'static str>,
    second: Result<(), &'static str>,
}

const NOT_THE_SERVER: &str = "ann may not use \"server\": somebody was asked, and said no";
const NOT_THE_CALL: &str = "ann may not call echo of \"call\": somebody was asked, and said no";

const CASES: &[Case] = &[
    Case {
        server: "never",
        says: "deny",
        asked: 0,
        first: Ok(()),
        second: Ok(()),
    },
    Case {
        server: "server",
        says: "allow",
        asked: 1,
        first: Ok(()),
        second: Ok(()),
    },
    Case {
        server: "server",
        says: "deny",
        asked: 1,
        first: Err(NOT_THE_SERVER),
        second: Err(NOT_THE_SERVER),
    },
    Case {
        server: "server",
        says: "decline",
        asked: 1,
        first: Err(NOT_THE_SERVER),
        second: Err(NOT_THE_SERVER),
    },
    Case {
        server: "server",
        says: "cancel",
        asked: 2,
        first: Err(NOT_THE_SERVER),
        second: Err(NOT_THE_SERVER),
    },
    Case {
        server: "call",
        says: "once",
        asked: 2,
        first: Ok(()),
        second: Ok(()),
    },
    Case {
        server: "call",
        says: "always",
        asked: 1,
        first: Ok(()),
        second: Ok(()),
    },
    Case {
        server: "call",
        says: "deny",
        asked: 2,
        first: Err(NOT_THE_CALL),
        second: Err(NOT_THE_CALL),
    },
    Case {
        server: "call",
        says: "cancel",
        asked: 2,
        first: Err(NOT_THE_CALL),
        second: Err(NOT_THE_CALL),
    },
    Case {
        server: "call",
        says: "nonsense",
        asked: 2,
        first: Err(NOT_THE_CALL),
        second: Err(NOT_THE_CALL),
    },
];

#[tokio::test]
async fn an_agent_that_can_be_asked_is_and_its_answer_is_obeyed() {
    let daemon = start(json!({}));
    for door in DOORS {
        for case in CASES {
            let what = format!("{door}: {} {}", case.server, case.says);
            let mut agent = Agent::come(&daemon, door, Some(case.says)).await;
            for expected in [case.first, case.second] {
                let got = agent.echo(case.server).await;
                let got = got.map(|_| ()).map_err(|(message, _)| message);
                assert_eq!(got, expected.map_err(str::to_owned), "{what}");
            }
            // Over HTTP a modern client has no session: what was answered holds for one connection.
            if door != "http modern" {
                assert_eq!(agent.asked(), case.asked, "{what}");
            }
        }
    }
    let nothing_waits = daemon.client().await.approvals().list().await.unwrap();
    assert_eq!(nothing_waits, []);
}

#[tokio::test]
async fn whoever_cannot_be_asked_waits_for_the_operator() {
    let daemon = start(json!({}));
    let operator = daemon.client().await;
    for door in DOORS {
        for (server, answers, expected) in [
            ("server", &[Answer::Server][..], Ok(())),
            ("server", &[Answer::Once, Answer::Once], Ok(())),
            (
                "server",
                &[Answer::Once, Answer::Deny],
                Err("ann may not call echo of \"server\": somebody was asked, and said no"),
            ),
            ("server", &[Answer::Deny], Err(NOT_THE_SERVER)),
            ("call", &[Answer::Once], Ok(())),
            ("call", &[Answer::Server], Ok(())),
            ("call", &[Answer::Deny], Err(NOT_THE_CALL)),
        ] {
            let mut agent = Agent::come(&daemon, door, None).await;
            let mut events = operator.approvals().watch().await.unwrap();
            let decide = async {
                let mut answers = answers.iter();
                let mut about = Vec::new();
                while answers.len() > 0 {
                    let event = timeout(PATIENCE, events.next()).await.expect("a question");
                    if let ApprovalEvent::Asked(approval) = event.unwrap().unwrap() {
                        assert_eq!(
                            (approval.agent_name.as_str(), approval.server.as_str()),
                            ("ann", server)
                        );
                        about.push(approval.action.clone());
                        match &approval.action {
                            Some(action) => {
                                assert_eq!(
                                    (action.method.as_str(), action.target.as_str()),
                                    ("tools/call", "echo")
                                );
                                assert_eq!(action.arguments, r#"{"message":"hello"}"#);
                            }
                            None => {
                                assert!(approval.tools.contains(&"echo".to_owned()), "{approval:?}")
                            }
                        }
                        operator
                            .approvals()
                            .decide(approval.id, *answers.next().unwrap())
                            .await
                            .unwrap();
                        // The first answer counts.
                        let error = operator
                            .approvals()
                            .decide(approval.id, Answer::Deny)
                            .await
                            .unwrap_err();
                        assert_eq!(error.reason(), Some(Reason::ApprovalNotFound));
                    }
                }
            };
            let (got, ()) = tokio::join!(agent.echo(server), decide);
            let got = got.map(|_| ()).map_err(|(message, _)| message);
            assert_eq!(
                got,
                expected.map_err(str::to_owned),
                "{door}: {server} {answers:?}"
            );
        }
    }
}

#[tokio::test]
async fn no_answer_in_time_is_a_no_that_says_so() {
    let daemon = start(json!({"approval_timeout": "200ms"}));
    for door in DOORS {
        let mut agent = Agent::come(&daemon, door, None).await;
        let (message, _) = agent.echo("call").await.unwrap_err();
        assert_eq!(
            message,
            "nobody said within 200ms whether ann may call echo of \"call\", which is a no",
            "{door}"
        );
        let (message, _) = agent.echo("server").await.unwrap_err();
        assert_eq!(
            message, "nobody said within 200ms whether ann may use \"server\", which is a no",
            "{door}"
        );
    }
    assert_eq!(daemon.client().await.approvals().list().await.unwrap(), []);
}

/// Calls that wait for somebody hold up nobody, and one question is enough for all that wait for the same answer.
#[tokio::test]
async fn nothing_waits_for_a_question_but_what_is_asked_about() {
    let daemon = start(json!({}));
    let operator = daemon.client().await;
    let ann = Nexus::builder()
        .socket(daemon.home.socket())
        .as_agent("ann")
        .connect()
        .await
        .unwrap();
    let call = |server: &'static str| {
        let ann = ann.clone();
        tokio::spawn(async move {
            let arguments = json!({"message": "hello"});
            ann.tools().call(format!("{server}.echo"), arguments).await
        })
    };
    let waiting: Vec<_> = (0..20).map(|_| call("server")).collect();
    questions(&operator, 1).await;
    // Others go on, at the same server too.
    for _ in 0..20 {
        call("never").await.unwrap().unwrap();
        let arguments = json!({"message": "hello"});
        operator
            .tools()
            .call("server.echo", arguments)
            .await
            .unwrap();
    }
    let asked = questions(&operator, 1).await;
    operator
        .approvals()
        .decide(asked[0].id, Answer::Server)
        .await
        .unwrap();
    for call in waiting {
        assert_eq!(call.await.unwrap().unwrap().text(), "hello");
    }
    // What was answered is forgotten when somebody wants it so.
    assert_eq!(
        operator
            .approvals()
            .forget(None, Some("never"))
            .await
            .unwrap(),
        0
    );
    assert_eq!(
        operator
            .approvals()
            .forget(None, Some("server"))
            .await
            .unwrap(),
        1
    );
    let again = call("server");
    questions(&operator, 1).await;
    // Who goes away takes the question along.
    again.abort();
    questions(&operator, 0).await;
}

#[tokio::test]
async fn an_agent_does_not_answer_for_itself() {
    let daemon = start(json!({}));
    let ann = Nexus::builder()
        .socket(daemon.home.socket())
        .as_agent("ann")
        .connect()
        .await
        .unwrap();
    let call = tokio::spawn({
        let ann = ann.clone();
        async move { ann.tools().call("call.echo", json!({"message": "x"})).await }
    });
    let operator = daemon.client().await;
    questions(&operator, 1).await;
    let id = operator.approvals().list().await.unwrap()[0].id;
    let approvals = ann.approvals();
    for error in [
        approvals.list().await.unwrap_err(),
        approvals.decide(id, Answer::Server).await.unwrap_err(),
        approvals.forget(None, None).await.unwrap_err(),
    ] {
        assert_eq!(error.reason(), Some(Reason::NotOperator), "{error}");
    }
    operator.approvals().decide(id, Answer::Deny).await.unwrap();
    assert_eq!(
        call.await.unwrap().unwrap_err().reason(),
        Some(Reason::Denied)
    );
}

/// The end of the daemon does not wait for somebody to say something.
#[tokio::test]
async fn a_question_does_not_hold_up_the_end() {
    let daemon = start(json!({}));
    let mut agent = Agent::come(&daemon, "lines legacy", None).await;
    let operator = daemon.client().await;
    let ask = async { agent.echo("call").await };
    let stop = async {
        questions(&operator, 1).await;
        daemon.signal(rustix::process::Signal::TERM);
    };
    let (refused, ()) = tokio::join!(ask, stop);
    assert_eq!(refused.unwrap_err().1, "SHUTTING_DOWN");
}

/// What was answered is for the program that was asked about.
#[tokio::test]
async fn another_program_under_the_same_name_is_asked_about_again() {
    let mut config = servers(&[("s", test_server_with(&[], json!({"consent": "server"})))]);
    let home = Home::new();
    home.configure(&config);
    let daemon = home.start();
    let mut agent = Agent::come(&daemon, "lines legacy", Some("allow")).await;
    for _ in 0..3 {
        agent.echo("s").await.unwrap();
    }
    assert_eq!(agent.asked(), 1);
    config["mcpServers"]["s"] = test_server(&["--env-tool"]);
    config["mcpServers"]["s"]["consent"] = json!("server");
    daemon.home.configure(&config);
    daemon.client().await.daemon().reload().await.unwrap();
    agent.echo("s").await.unwrap();
    assert_eq!(agent.asked(), 2);
}

/// Reads and prompts are asked about like calls.
#[tokio::test]
async fn resources_and_prompts_are_asked_about_too() {
    let home = Home::new();
    home.configure(&servers(&[(
        "s",
        test_server_with(&[], json!({"consent": "call"})),
    )]));
    let daemon = home.start();
    let mut client = Mcp::connect(&daemon, "legacy", "ann", json!({})).await;
    client.consents.0 = "deny";
    let listed = client.request("resources/list", json!({})).await.unwrap();
    let uri = listed["resources"][0]["uri"].clone();
    let refused = client
        .request("resources/read", json!({ "uri": uri }))
        .await
        .unwrap_err();
    assert_eq!(refused["data"]["reason"], "DENIED", "{refused}");
    let listed = client.request("prompts/list", json!({})).await.unwrap();
    let name = listed["prompts"][0]["name"].clone();
    let refused = client
        .request("prompts/get", json!({"name": name, "arguments": {}}))
        .await
        .unwrap_err();
    assert_eq!(refused["data"]["reason"], "DENIED", "{refused}");
    assert_eq!(client.consents.1, 2);
    // What only connects is asked about as that.
    let complete = json!({
        "ref": {"type": "ref/prompt", "name": name},
        "argument": {"name": "name", "value": ""},
    });
    let mut other = Mcp::connect(&daemon, "legacy", "bob", json!({})).await;
    other.consents.0 = "deny";
    let refused = other.request("completion/complete", complete.clone()).await;
    assert_eq!(refused.unwrap_err()["data"]["reason"], "DENIED");
    let mut third = Mcp::connect(&daemon, "legacy", "eve", json!({})).await;
    third.consents.0 = "confirm";
    for _ in 0..2 {
        third
            .request("completion/complete", complete.clone())
            .await
            .unwrap();
    }
    assert_eq!((other.consents.1, third.consents.1), (1, 1));
    client.consents.0 = "always";
    let read = json!({ "uri": uri });
    client.request("resources/read", read).await.unwrap();
    assert_eq!(client.consents.1, 3);
}

/// Waits until so many questions wait for an answer.
async fn questions(operator: &Nexus, count: usize) -> Vec<nexus_client::Approval> {
    let started = tokio::time::Instant::now();
    loop {
        let waiting = operator.approvals().list().await.unwrap();
        if waiting.len() == count {
            return waiting;
        }
        assert!(started.elapsed() < PATIENCE, "{waiting:?}");
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    }
}
