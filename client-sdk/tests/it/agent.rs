//! Being asked.

use crate::support::{Fake, agents::Came, connection::Number};
use nexus_client::{
    AgentInfo, ElicitationAnswer, ElicitationMode, ListChange, ListKind, Nexus, Reason, Refusal,
    Root, SamplingAnswer,
};
use nexus_proto::{
    reason::Failure,
    v1::{self, agents_attach_request::Message as Says, agents_attach_response::Message as Told},
};
use serde_json::json;
use std::{
    future::pending,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::sync::{Barrier, Notify, mpsc};
use tonic::Status;

const SAMPLE: &str = "sampling/createMessage";
const ELICIT: &str = "elicitation/create";

/// An agent that says what it was asked.
fn parrot() -> AgentInfo {
    AgentInfo::new("parrot")
        .version("1.2")
        .roots([Root::folder("/work").name("w")])
        .on_sampling(|request| async move {
            let said = request.messages().pop().map(|message| message.text());
            let said = said.ok_or_else(|| Refusal::new(-32602, "nothing to say"))?;
            Ok(SamplingAnswer::text(request.server, said))
        })
        .on_elicitation(|request| async move {
            assert_eq!(request.mode(), ElicitationMode::Form);
            Ok(ElicitationAnswer::accept(
                json!({"said": request.message()}),
            ))
        })
}

async fn attached(fake: &Fake, agent: AgentInfo) -> (Nexus, Number) {
    let nexus = fake.builder().agent(agent).connect().await.unwrap();
    (nexus, fake.world.desk.last())
}

async fn called(nexus: &Nexus) -> bool {
    nexus.tools().call("demo.echo", json!({})).await.is_ok()
}

#[tokio::test]
async fn an_agent_says_who_it_is_and_what_it_can_do() {
    let fake = Fake::running();
    let (nexus, number) = attached(&fake, parrot().sampling_tools()).await;
    let agents = nexus.agents().list().await.unwrap();
    assert_eq!(agents.len(), 1);
    let me = &agents[0];
    assert_eq!((me.id, me.you, me.calls), (number.0 as u64, true, 7));
    assert_eq!(me.name.as_deref(), Some("parrot"));
    assert_eq!(me.version.as_deref(), Some("1.2"));
    let can = me.capabilities.unwrap();
    assert!(can.sampling && can.sampling_tools && can.elicitation_form && can.roots);
    assert!(!can.elicitation_url && !can.sampling_context);
    assert_eq!(me.roots, [Root::folder("/work").name("w")]);
    assert!(!fake.world.desk.hellos.lock().unwrap()[0].1.changes);
}

#[tokio::test]
async fn questions_reach_their_handlers_and_answers_go_back() {
    let fake = Fake::running();
    let (_nexus, me) = attached(&fake, parrot()).await;
    let desk = &fake.world.desk;
    desk.ask(me, 1, ELICIT, r#"{"message":"Who?"}"#);
    let said = r#"{"action":"accept","content":{"said":"Who?"}}"#;
    assert_eq!(desk.answer().await, (1, Ok(said.into())));
    let params = r#"{"messages":[{"role":"user","content":{"type":"text","text":"hi"}}]}"#;
    desk.ask(me, 2, SAMPLE, params);
    let (id, answer) = desk.answer().await;
    let answer: serde_json::Value = serde_json::from_str(&answer.unwrap()).unwrap();
    assert_eq!((id, &answer["model"]), (2, &json!("Demo")));
    assert_eq!(answer["content"]["text"], "hi");
    desk.ask(me, 3, SAMPLE, "{}");
    let refusal = (-32602, "nothing to say".to_owned());
    assert_eq!(desk.answer().await, (3, Err(refusal)));
    desk.ask(me, 4, "tea/make", "{}");
    assert!(matches!(desk.answer().await, (4, Err((-32601, _)))));
}

#[tokio::test]
async fn the_agent_is_known_before_the_first_call_on_every_connection() {
    let mut fake = Fake::running();
    let lazy = fake.builder().agent(parrot()).connect_lazy().unwrap();
    // Many at once, none before the agent is known.
    let calls = |nexus: &Nexus| {
        let calls = (0..16).map(|_| {
            let nexus = nexus.clone();
            tokio::spawn(async move { called(&nexus).await })
        });
        calls.collect::<Vec<_>>()
    };
    for round in 1..=3 {
        for call in calls(&lazy) {
            assert!(call.await.unwrap(), "round {round}");
        }
        fake.kill();
        fake.start();
        std::thread::sleep(Duration::from_millis(150)); // longer than a connection counts as fresh
    }
    let order = fake.world.desk.order.lock().unwrap().clone();
    for round in 1..=3 {
        let came = order.iter().filter(|(number, _)| *number == Number(round));
        let came: Vec<_> = came.map(|(_, came)| *came).collect();
        assert_eq!((came.len(), came[0]), (17, Came::Attached), "{order:?}");
        assert!(came[1..].iter().all(|came| *came == Came::Call));
    }
    assert_eq!(fake.world.connections.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn an_agent_can_be_asked_again_after_a_restart() {
    let mut fake = Fake::running();
    let (nexus, first) = attached(&fake, parrot()).await;
    fake.kill();
    fake.start();
    std::thread::sleep(Duration::from_millis(150)); // longer than a connection counts as fresh
    assert!(called(&nexus).await);
    let desk = &fake.world.desk;
    assert_ne!(desk.last(), first);
    desk.ask(desk.last(), 1, ELICIT, r#"{"message":"again"}"#);
    assert!(desk.answer().await.1.unwrap().contains("again"));
}

#[tokio::test]
async fn an_attachment_that_ends_alone_is_made_again_for_the_next_call() {
    let fake = Fake::running();
    let (nexus, first) = attached(&fake, parrot()).await;
    let desk = &fake.world.desk;
    let under_way = tokio::spawn({
        *fake.world.meeting.lock().unwrap() = Some(Arc::new(Barrier::new(2)));
        let nexus = nexus.clone();
        async move { nexus.tools().call("demo.meet", ()).await }
    });
    while fake.world.executions() == 0 {
        tokio::task::yield_now().await;
    }
    desk.hang_up(first);
    desk.detached.notified().await;
    while desk.last() == first {
        assert!(called(&nexus).await);
    }
    // What was under way on the old connection has not been disturbed.
    assert_eq!(
        nexus.tools().call("demo.meet", ()).await.unwrap().text(),
        "met"
    );
    assert_eq!(under_way.await.unwrap().unwrap().text(), "met");
}

#[tokio::test]
async fn questions_are_answered_side_by_side() {
    let fake = Fake::running();
    let meeting = Arc::new(Barrier::new(8));
    let agent = AgentInfo::new("x").on_elicitation(move |_| {
        let meeting = Arc::clone(&meeting);
        async move {
            meeting.wait().await;
            Ok(ElicitationAnswer::decline())
        }
    });
    let (_nexus, me) = attached(&fake, agent).await;
    let desk = &fake.world.desk;
    for id in 0..8 {
        desk.ask(me, id, ELICIT, "{}");
    }
    let mut answered = Vec::new();
    for _ in 0..8 {
        answered.push(desk.answer().await.0);
    }
    answered.sort_unstable();
    assert_eq!(answered, (0..8).collect::<Vec<_>>());
}

/// Tells of its end.
struct Bell(Arc<Notify>);

impl Drop for Bell {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

/// An agent that never answers questions of one kind, and what tells of their beginning and end.
fn silent() -> (AgentInfo, Arc<Notify>, Arc<Notify>) {
    let (begun, ended) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (begins, ends) = (Arc::clone(&begun), Arc::clone(&ended));
    let agent = parrot().on_sampling(move |_| {
        let bell = Bell(Arc::clone(&ends));
        begins.notify_one();
        async move {
            let _bell = bell;
            pending().await
        }
    });
    (agent, begun, ended)
}

#[tokio::test]
async fn a_question_that_is_withdrawn_aborts_its_handler() {
    let fake = Fake::running();
    let (agent, begun, ended) = silent();
    let (_nexus, me) = attached(&fake, agent).await;
    let desk = &fake.world.desk;
    desk.ask(me, 1, SAMPLE, "{}");
    begun.notified().await;
    desk.tell(me, Told::Withdrawn(v1::AgentWithdrawn { question: 1 }));
    ended.notified().await;
    // It is not answered; the next one is.
    desk.ask(me, 2, ELICIT, "{}");
    assert_eq!(desk.answer().await.0, 2);
}

#[tokio::test]
async fn a_handler_that_panics_answers_with_an_error_and_takes_nothing_along() {
    let fake = Fake::running();
    let agent = parrot().on_sampling(|_| async { panic!("on purpose") });
    let (nexus, me) = attached(&fake, agent).await;
    let desk = &fake.world.desk;
    desk.ask(me, 1, SAMPLE, "{}");
    assert!(matches!(desk.answer().await, (1, Err((-32603, _)))));
    desk.ask(me, 2, ELICIT, "{}");
    assert!(desk.answer().await.1.is_ok());
    assert!(called(&nexus).await);
}

#[tokio::test]
async fn dropping_the_last_client_ends_the_stream_and_the_handlers() {
    let fake = Fake::running();
    let (agent, begun, ended) = silent();
    let (nexus, me) = attached(&fake, agent).await;
    let other = nexus.clone();
    drop(nexus);
    // One is left, and can be asked.
    fake.world.desk.ask(me, 1, SAMPLE, "{}");
    begun.notified().await;
    drop(other);
    ended.notified().await;
    fake.world.desk.detached.notified().await;
}

#[tokio::test]
async fn a_client_whose_stream_is_read_can_still_be_asked() {
    let fake = Fake::running();
    let (nexus, me) = attached(&fake, parrot()).await;
    let call = nexus.tools().call_stream("demo.hang", ()).await.unwrap();
    drop(nexus);
    fake.world.desk.ask(me, 1, ELICIT, "{}");
    assert_eq!(fake.world.desk.answer().await.0, 1);
    drop(call);
    fake.world.desk.detached.notified().await;
}

#[tokio::test]
async fn other_folders_are_told_at_once_and_on_every_connection() {
    let mut fake = Fake::running();
    let (nexus, _) = attached(&fake, parrot()).await;
    nexus.set_roots([Root::new("file:///other")]);
    let Says::Roots(roots) = fake.world.desk.hear().await else {
        panic!("not the roots");
    };
    assert_eq!(roots.roots[0].uri, "file:///other");
    fake.kill();
    fake.start();
    std::thread::sleep(Duration::from_millis(150)); // longer than a connection counts as fresh
    assert!(called(&nexus).await);
    let hellos = fake.world.desk.hellos.lock().unwrap();
    assert_eq!(hellos[0].1.roots[0].uri, "file:///work");
    assert_eq!(hellos[1].1.roots[0].uri, "file:///other");
}

#[tokio::test]
async fn a_daemon_that_does_not_know_of_agents_can_be_called() {
    let mut fake = Fake::running();
    let refuse = |fake: &Fake| {
        let status = Status::unimplemented("no such service");
        fake.world.desk.refusals.lock().unwrap().push(status);
    };
    refuse(&fake);
    let nexus = fake.builder().agent(parrot()).connect().await.unwrap();
    assert!(called(&nexus).await);
    assert_eq!(fake.world.connections.load(Ordering::SeqCst), 1);
    // The next one does.
    fake.kill();
    fake.start();
    std::thread::sleep(Duration::from_millis(150)); // longer than a connection counts as fresh
    assert!(called(&nexus).await);
    assert_eq!(fake.world.desk.hellos.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn an_agent_that_is_refused_is_told_why() {
    let fake = Fake::running();
    let refuse = |reason| {
        let status = Failure::new(reason, "not you").into();
        fake.world.desk.refusals.lock().unwrap().push(status);
    };
    refuse(Reason::InvalidRequest);
    let error = fake.builder().agent(parrot()).connect().await.unwrap_err();
    assert_eq!(error.reason(), Some(Reason::InvalidRequest));
    refuse(Reason::InvalidRequest);
    let nexus = fake.builder().agent(parrot()).connect_lazy().unwrap();
    let error = nexus
        .tools()
        .call("demo.echo", json!({}))
        .await
        .unwrap_err();
    assert_eq!(error.reason(), Some(Reason::InvalidRequest));
    assert!(!error.maybe_executed());
    assert_eq!(fake.world.executions(), 0);
}

/// An agent that hears of changes, and what it heard.
fn listener() -> (AgentInfo, mpsc::UnboundedReceiver<ListChange>) {
    let (heard, changes) = mpsc::unbounded_channel();
    let agent = AgentInfo::new("x").on_list_changed(move |change| {
        let _ = heard.send(change);
    });
    (agent, changes)
}

#[tokio::test]
async fn changes_of_lists_are_told_to_whoever_wants_to_hear_of_them() {
    let fake = Fake::running();
    let (agent, mut changes) = listener();
    let (_nexus, me) = attached(&fake, agent).await;
    assert!(fake.world.desk.hellos.lock().unwrap()[0].1.changes);
    let changed = v1::AgentListChanged {
        server: "Demo".into(),
        kind: v1::ListKind::Prompts.into(),
    };
    fake.world.desk.tell(me, Told::Changed(changed));
    let change = ListChange::Of {
        server: "Demo".into(),
        kind: ListKind::Prompts,
    };
    assert_eq!(changes.recv().await, Some(change));
}

#[tokio::test]
async fn whoever_hears_of_changes_comes_back_without_a_call_and_may_have_missed_some() {
    let mut fake = Fake::running();
    let (agent, mut changes) = listener();
    let (nexus, _) = attached(&fake, agent).await;
    fake.world.desk.attached.notified().await;
    fake.kill();
    fake.start();
    fake.world.desk.attached.notified().await;
    assert_eq!(changes.recv().await, Some(ListChange::Any));
    assert!(called(&nexus).await);
    assert_eq!(fake.world.connections.load(Ordering::SeqCst), 2);
    // And stays away once nobody has a client.
    drop(nexus);
    fake.world.desk.detached.notified().await;
    assert_eq!(changes.recv().await, None);
}

#[tokio::test]
async fn a_listener_that_panics_can_still_be_asked() {
    let fake = Fake::running();
    let told = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&told);
    let agent = parrot().on_list_changed(move |_| {
        count.fetch_add(1, Ordering::SeqCst);
        panic!("on purpose");
    });
    let (_nexus, me) = attached(&fake, agent).await;
    let desk = &fake.world.desk;
    desk.tell(me, Told::Changed(v1::AgentListChanged::default()));
    desk.ask(me, 1, ELICIT, "{}");
    assert!(desk.answer().await.1.is_ok());
    assert_eq!(told.load(Ordering::SeqCst), 1);
}

#[test]
fn an_agent_outlives_the_runtime_it_was_made_in() {
    let fake = Fake::running();
    let runtime = || {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap()
    };
    let nexus = runtime().block_on(attached(&fake, parrot())).0;
    assert!(runtime().block_on(called(&nexus)));
    assert_eq!(fake.world.desk.hellos.lock().unwrap().len(), 2);
}
