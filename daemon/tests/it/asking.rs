//! Questions of servers, and that they reach the agent whose call caused them, or nobody.

use super::support::{Daemon, eventually, server_until, start_with};
use nexus_client::{
    AgentInfo, ElicitationAnswer, Error, Nexus, Reason, Refusal, Root, SamplingAnswer,
};
use serde_json::{Value, json};
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

const ERAS: [&str; 2] = ["legacy", "modern"];

async fn ask(nexus: &Nexus, kind: &str, text: &str) -> Result<Value, Error> {
    let asked = json!({"kind": kind, "text": text});
    let answer = nexus.tools().call("t.ask", asked).await?;
    Ok(serde_json::from_str(&answer.text()).unwrap())
}

fn interactive(era: &str) -> Daemon {
    start_with(&["--era", era, "--interactive"])
}

#[tokio::test]
async fn every_kind_of_question_is_answered_by_whoever_called() {
    for era in ERAS {
        let daemon = interactive(era);
        let nexus = daemon.agent("ann").await;
        let sampled = ask(&nexus, "sampling", "hello").await.unwrap();
        assert_eq!(sampled["content"]["text"], "ann was asked hello", "{era}");
        let filled = ask(&nexus, "elicitation", "name?").await.unwrap();
        assert_eq!(filled["action"], "accept");
        assert_eq!(filled["content"]["answer"], "ann was asked name?");
        let sent = ask(&nexus, "url", "go there").await.unwrap();
        assert_eq!(sent["action"], "accept", "{sent}");
        let roots = ask(&nexus, "roots", "").await.unwrap();
        assert_eq!(roots["roots"][0]["uri"], "file:///ann");
        let both = ask(&nexus, "both", "two").await.unwrap();
        assert_eq!(both["roots"]["roots"][0]["uri"], "file:///ann");
        let thrice = json!({"kind": "elicitation", "text": "again", "rounds": 3});
        let answers = nexus.tools().call("t.ask", thrice).await.unwrap().text();
        assert_eq!(
            answers.matches("ann was asked again").count(),
            3,
            "{answers}"
        );
        // New folders are told from then on.
        nexus.set_roots([Root::folder("/elsewhere")]);
        let started = tokio::time::Instant::now();
        while ask(&nexus, "roots", "").await.unwrap()["roots"][0]["uri"] != "file:///elsewhere" {
            assert!(started.elapsed() < super::support::PATIENCE);
        }
    }
}

#[tokio::test]
async fn whoever_cannot_be_asked_is_not_and_the_server_knows() {
    for era in ERAS {
        let daemon = interactive(era);
        let nexus = daemon.client().await;
        for kind in ["sampling", "elicitation", "url", "roots", "both"] {
            let answer = ask(&nexus, kind, "x").await;
            match era {
                "legacy" => {
                    let text = answer.unwrap().to_string();
                    assert!(text.contains("-32601"), "{kind}: {text}");
                }
                _ => {
                    let error = answer.unwrap_err();
                    assert_eq!(
                        error.reason(),
                        Some(Reason::CannotAnswer),
                        "{kind}: {error}"
                    );
                    assert!(error.hint().is_some());
                }
            }
        }
    }
}

#[tokio::test]
async fn what_an_agent_refuses_is_refused_as_its_era_has_it() {
    for era in ERAS {
        let daemon = interactive(era);
        let info = AgentInfo::new("no")
            .on_sampling(|_| async { Err::<SamplingAnswer, _>(Refusal::rejected("not today")) })
            .on_elicitation(|_| async { Ok(ElicitationAnswer::decline()) });
        let builder = Nexus::builder().socket(daemon.home.socket()).agent(info);
        let nexus = builder.connect().await.unwrap();
        let declined = ask(&nexus, "elicitation", "x").await.unwrap();
        assert_eq!(declined["action"], "decline");
        match (era, ask(&nexus, "sampling", "x").await) {
            ("legacy", Ok(refused)) => {
                assert_eq!(refused["error"]["code"], -1);
                assert_eq!(refused["error"]["message"], "not today");
            }
            ("modern", Err(error)) => {
                assert_eq!(error.reason(), Some(Reason::CannotAnswer));
                assert!(error.to_string().contains("not today"), "{error}");
            }
            (_, other) => panic!("{era}: {other:?}"),
        }
    }
}

/// Two agents with calls in flight at once on one process of a server that asks in each of them.
#[tokio::test]
async fn each_question_reaches_the_agent_that_caused_it() {
    for era in ERAS {
        let daemon = interactive(era);
        let (ann, bob) = (daemon.agent("ann").await, daemon.agent("bob").await);
        // From its first question on a legacy server is known to ask.
        ask(&ann, "sampling", "first").await.unwrap();
        let tries = |nexus: Nexus, name: &'static str| {
            tokio::spawn(async move {
                for n in 0..500 {
                    let text = format!("{name} {n}");
                    let kind = ["sampling", "elicitation"][n % 2];
                    let answer = ask(&nexus, kind, &text).await.unwrap().to_string();
                    let expected = format!("{name} was asked {text}");
                    assert!(answer.contains(&expected), "{text}: {answer}");
                }
            })
        };
        let all = [tries(ann.clone(), "ann"), tries(bob.clone(), "bob")];
        // Calls that ask nothing go on beside them.
        for n in 0..100 {
            let echo = json!({"message": n.to_string()});
            assert_eq!(
                bob.tools().call("t.echo", echo).await.unwrap().text(),
                n.to_string()
            );
        }
        for tries in all {
            tries.await.unwrap();
        }
        let server = bob.servers().get("t").await.unwrap();
        assert_eq!((server.in_flight, server.restarts), (0, 0));
        assert_eq!(server.instances.len(), 1, "{:?}", server.instances);
    }
}

/// Nothing is known of the server yet, and somebody else's call is under way when it asks.
#[tokio::test]
async fn a_first_question_waits_until_it_is_plain_whose_it_is() {
    let daemon = interactive("legacy");
    let (ann, bob) = (daemon.agent("ann").await, daemon.agent("bob").await);
    let slow = {
        let bob = bob.clone();
        tokio::spawn(async move {
            let slow = json!({"duration": 1.0, "steps": 1});
            bob.tools().call("t.slow_operation", slow).await
        })
    };
    server_until(&ann, "t", |s| s.in_flight == 1).await;
    let answer = ask(&ann, "sampling", "mine").await.unwrap();
    assert_eq!(answer["content"]["text"], "ann was asked mine");
    assert!(slow.is_finished());
    slow.await.unwrap().unwrap();
}

/// Both wait for an answer: it cannot be told whose is whose, so neither gets the other's.
#[tokio::test]
async fn two_first_questions_at_once_are_declined_rather_than_mixed_up() {
    let daemon = interactive("legacy");
    let (ann, bob) = (daemon.agent("ann").await, daemon.agent("bob").await);
    server_until(&ann, "t", |s| s.tools > 0).await;
    let (one, two) = tokio::join!(
        ask(&ann, "sampling", "of ann"),
        ask(&bob, "sampling", "of bob")
    );
    for (answer, own, other) in [(one, "ann", "bob"), (two, "bob", "ann")] {
        let answer = answer.unwrap().to_string();
        assert!(
            !answer.contains(&format!("{other} was asked")),
            "{own}: {answer}"
        );
        let declined = answer.contains("-1");
        assert!(
            declined || answer.contains(&format!("{own} was asked of {own}")),
            "{answer}"
        );
    }
    // From now on each is answered.
    let (one, two) = tokio::join!(ask(&ann, "sampling", "a"), ask(&bob, "sampling", "b"));
    assert_eq!(one.unwrap()["content"]["text"], "ann was asked a");
    assert_eq!(two.unwrap()["content"]["text"], "bob was asked b");
}

/// An agent that thinks for longer than the server may take: the server cannot go on without it.
#[tokio::test]
async fn the_clock_of_a_server_stands_still_while_its_question_is_open() {
    for era in ERAS {
        let home = super::support::Home::new();
        let mut server = super::support::test_server(&["--era", era, "--interactive"]);
        server["timeout"] = json!(0.5);
        home.configure(&super::support::servers(&[("t", server)]));
        let daemon = home.start();
        let info = AgentInfo::new("slow").on_elicitation(|_| async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            Ok(ElicitationAnswer::accept(json!({"answer": "at last"})))
        });
        let builder = Nexus::builder().socket(daemon.home.socket()).agent(info);
        let nexus = builder.connect().await.unwrap();
        let answer = ask(&nexus, "elicitation", "?").await.unwrap();
        assert_eq!(answer["content"]["answer"], "at last", "{era}");
    }
}

/// An agent that can be asked and does not answer; how many questions it has open.
async fn undecided(daemon: &Daemon) -> (Nexus, Arc<AtomicUsize>) {
    struct Open(Arc<AtomicUsize>);
    impl Drop for Open {
        fn drop(&mut self) {
            self.0.fetch_sub(1, Ordering::Relaxed);
        }
    }
    let open = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&open);
    let info = AgentInfo::new("undecided").on_elicitation(move |_| {
        let counter = Arc::clone(&counter);
        async move {
            counter.fetch_add(1, Ordering::Relaxed);
            let _open = Open(counter);
            std::future::pending().await
        }
    });
    let builder = Nexus::builder().socket(daemon.home.socket()).agent(info);
    (builder.connect().await.unwrap(), open)
}

#[tokio::test]
async fn a_question_is_taken_back_when_its_call_is_cancelled() {
    for era in ERAS {
        let daemon = interactive(era);
        let (nexus, open) = undecided(&daemon).await;
        let asking = {
            let nexus = nexus.clone();
            tokio::spawn(async move { ask(&nexus, "elicitation", "?").await })
        };
        eventually("it is asked", || open.load(Ordering::Relaxed) == 1).await;
        let agents = nexus.agents().list().await.unwrap();
        assert_eq!((agents[0].questions, agents[0].in_flight), (1, 1));
        asking.abort();
        eventually("it is taken back", || open.load(Ordering::Relaxed) == 0).await;
        server_until(&nexus, "t", |s| s.in_flight == 0).await;
        let agents = nexus.agents().list().await.unwrap();
        assert_eq!((agents[0].questions, agents[0].in_flight), (0, 0));
    }
}

#[tokio::test]
async fn a_question_ends_with_the_server_that_asked_it() {
    let daemon = interactive("legacy");
    let (nexus, open) = undecided(&daemon).await;
    let asking = {
        let nexus = nexus.clone();
        tokio::spawn(async move { ask(&nexus, "elicitation", "?").await })
    };
    eventually("it is asked", || open.load(Ordering::Relaxed) == 1).await;
    let pid = super::support::pid_of(&nexus).await;
    super::support::kill(pid);
    let error = asking.await.unwrap().unwrap_err();
    assert!(error.maybe_executed(), "{error}");
    eventually("it is taken back", || open.load(Ordering::Relaxed) == 0).await;
}

/// The server was told that the call is given up, but may not care: what it asks next could be about it.
#[tokio::test]
async fn what_is_asked_after_an_agent_has_left_is_declined_for_a_while_rather_than_mixed_up() {
    let daemon = interactive("legacy");
    let (nexus, open) = undecided(&daemon).await;
    let asking = tokio::spawn(async move { ask(&nexus, "elicitation", "?").await });
    eventually("it is asked", || open.load(Ordering::Relaxed) == 1).await;
    asking.abort();
    eventually("it is taken back", || open.load(Ordering::Relaxed) == 0).await;
    let other = daemon.agent("undecided").await;
    server_until(&other, "t", |s| s.in_flight == 0).await;
    // Calls go on; only questions are not put.
    let echo = other.tools().call("t.echo", json!({"message": "x"})).await;
    assert_eq!(echo.unwrap().text(), "x");
    let agents = other.agents().list().await.unwrap();
    assert!(
        agents
            .iter()
            .any(|agent| agent.you && agent.capabilities.is_some())
    );
    assert_eq!(agents.len(), 1, "{agents:?}");
}

#[tokio::test]
async fn agents_are_listed_with_what_they_can_be_asked() {
    let daemon = interactive("legacy");
    let nexus = daemon.client().await;
    let ann = daemon.agent("ann").await;
    ask(&ann, "roots", "").await.unwrap();
    let agents = nexus.agents().list().await.unwrap();
    assert_eq!(agents.len(), 2);
    assert!(agents[0].you && agents[0].name.is_none() && agents[0].capabilities.is_none());
    assert_eq!(agents[1].name.as_deref(), Some("ann"));
    assert_eq!(agents[1].calls, 1);
    assert_eq!(agents[1].pid, Some(std::process::id()));
    assert_eq!(agents[1].roots[0].uri, "file:///ann");
    drop(ann);
    let started = tokio::time::Instant::now();
    while nexus.agents().list().await.unwrap().len() > 1 {
        assert!(started.elapsed() < super::support::PATIENCE);
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Only the agent whose question it was hears that a page is done; only in the legacy era is it told.
#[tokio::test]
async fn whoever_was_sent_to_a_page_hears_when_that_is_done() {
    let daemon = interactive("legacy");
    let (to, mut from) = tokio::sync::mpsc::unbounded_channel();
    let agent = |name: &'static str| {
        let to = to.clone();
        let info = AgentInfo::new(name)
            .on_elicitation(|_| async { Ok(ElicitationAnswer::accept_url()) })
            .elicitation_url()
            .on_elicitation_complete(move |done| {
                let _ = to.send((name, done.server));
            });
        Nexus::builder().socket(daemon.home.socket()).agent(info)
    };
    let ann = agent("ann").connect().await.unwrap();
    let _bob = agent("bob").connect().await.unwrap();
    ask(&ann, "url", "go there").await.unwrap();
    let heard = tokio::time::timeout(super::support::PATIENCE, from.recv()).await;
    assert_eq!(heard.unwrap(), Some(("ann", "t".to_owned())));
    assert!(from.try_recv().is_err());
}

/// A process of its own is told when its agent works elsewhere.
#[tokio::test]
async fn a_server_that_is_one_agents_own_is_told_of_its_folders() {
    let home = super::support::Home::new();
    let args = ["--era", "legacy", "--interactive"];
    let server = super::support::test_server_with(&args, json!({"sharing": "per-agent"}));
    home.configure(&super::support::servers(&[("t", server)]));
    let daemon = home.start();
    let ann = daemon.agent("ann").await;
    ask(&ann, "roots", "").await.unwrap();
    ann.set_roots([Root::folder("/elsewhere")]);
    let told = || {
        let files = std::fs::read_dir(daemon.home.wire())
            .into_iter()
            .flatten()
            .flatten();
        files
            .map(|file| std::fs::read_to_string(file.path()).unwrap_or_default())
            .any(|text| text.contains("notifications/roots/list_changed"))
    };
    eventually("it is told", told).await;
}

/// Whose answers need the very server that asks: they do not wait for others who wait for that call.
#[tokio::test]
async fn an_agent_may_call_the_server_that_asks_it() {
    let daemon = interactive("legacy");
    let plain = daemon.agent("bob").await;
    ask(&plain, "sampling", "so that it is known to ask")
        .await
        .unwrap();
    let (to, from) = tokio::sync::watch::channel(None::<Nexus>);
    let info = AgentInfo::new("ann").on_sampling(move |_| {
        let from = from.clone();
        async move {
            let nexus = from.borrow().clone().expect("it is connected");
            // Somebody else waits for its turn by now.
            tokio::time::sleep(Duration::from_millis(100)).await;
            let echo = nexus
                .tools()
                .call("t.echo", json!({"message": "nested"}))
                .await;
            Ok(SamplingAnswer::text("m", echo.unwrap().text()))
        }
    });
    let info = info
        .on_elicitation(|_| async { Ok(ElicitationAnswer::cancel()) })
        .elicitation_url();
    let info = info
        .sampling_tools()
        .sampling_context()
        .roots([Root::folder("/bob")]);
    let builder = Nexus::builder().socket(daemon.home.socket()).agent(info);
    let ann = builder.connect().await.unwrap();
    to.send_replace(Some(ann.clone()));
    let asking = tokio::spawn(async move { ask(&ann, "sampling", "x").await });
    server_until(&plain, "t", |s| s.in_flight >= 1).await;
    let (answer, other) = tokio::join!(asking, ask(&plain, "sampling", "meanwhile"));
    assert_eq!(answer.unwrap().unwrap()["content"]["text"], "nested");
    assert_eq!(other.unwrap()["content"]["text"], "bob was asked meanwhile");
    to.send_replace(None);
}

/// A server that asks for folders may keep to what it was told.
#[tokio::test]
async fn agents_in_other_folders_have_another_process_of_a_server_that_asks_for_them() {
    let daemon = interactive("legacy");
    let (ann, bob) = (daemon.agent("ann").await, daemon.agent("bob").await);
    for _ in 0..2 {
        assert_eq!(
            ask(&ann, "roots", "").await.unwrap()["roots"][0]["uri"],
            "file:///ann"
        );
        assert_eq!(
            ask(&bob, "roots", "").await.unwrap()["roots"][0]["uri"],
            "file:///bob"
        );
    }
    let server = ann.servers().get("t").await.unwrap();
    let of_folders = server
        .instances
        .iter()
        .filter(|i| i.key.contains("folders"));
    assert_eq!(of_folders.count(), 2, "{:?}", server.instances);
}
