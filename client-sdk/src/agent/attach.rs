//! The stream by which an agent is asked. It belongs to one connection, as the agent does: it is
//! made before the first call goes out there, and made anew on the next connection.

use super::{AgentInfo, questions::Questions};
use crate::{
    Failure, ListChange, Root,
    retry::Retry,
    rpc::{MAX_MESSAGE, origin},
    transport::{Connection, Transport, WeakTransport},
};
use futures_util::stream;
use nexus_proto::v1::{
    self, agents_attach_request::Message as Says, agents_attach_response::Message as Told,
    agents_client::AgentsClient,
};
use std::{
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    time::Duration,
};
use tokio::{
    sync::{mpsc, watch},
    time::Instant,
};
use tonic::{Code, Status, Streaming};

/// What waits to be sent. A daemon that does not read is not answered any faster.
const OUTGOING: usize = 16;

/// An agent that the daemon knows, on one connection.
#[derive(Debug)]
pub(crate) struct Attachment {
    agent: AgentInfo,
    /// The folders, and a sign of life: it ends with the last client.
    roots: watch::Receiver<Vec<Root>>,
    says: mpsc::Sender<v1::AgentsAttachRequest>,
    told: Streaming<v1::AgentsAttachResponse>,
}

/// Makes the agent known on a new connection. `None` where the daemon does not know of agents: it can
/// be called all the same.
pub(crate) async fn attach(
    agent: &AgentInfo,
    mut roots: watch::Receiver<Vec<Root>>,
    connection: Connection,
) -> io::Result<Option<Attachment>> {
    let (says, mut outgoing) = mpsc::channel(OUTGOING);
    let hello = Says::Hello(v1::AgentHello {
        name: agent.name.clone(),
        version: agent.version.clone(),
        capabilities: Some(agent.capabilities().into()),
        roots: wire(&roots.borrow_and_update()),
        changes: agent.list_changed.is_some(),
    });
    // The channel is empty, and its other end is here.
    let _ = says.try_send(request(hello));
    let outgoing = stream::poll_fn(move |cx| outgoing.poll_recv(cx));
    let mut client = AgentsClient::with_origin(connection, origin())
        .max_decoding_message_size(MAX_MESSAGE)
        .max_encoding_message_size(MAX_MESSAGE);
    let mut told = match client.attach(outgoing).await {
        Ok(response) => response.into_inner(),
        Err(status) if status.code() == Code::Unimplemented => return Ok(None),
        Err(status) => return Err(refused(&status)),
    };
    let first = match told.message().await {
        Ok(first) => first.and_then(|first| first.message),
        Err(status) if status.code() == Code::Unimplemented => return Ok(None),
        Err(status) => return Err(refused(&status)),
    };
    match first {
        Some(Told::Attached(_)) => Ok(Some(Attachment {
            agent: agent.clone(),
            roots,
            says,
            told,
        })),
        _ => Err(io::Error::other("the daemon did not take the agent in")),
    }
}

/// What the daemon told is kept, so that whoever wanted the connection learns of it.
fn refused(status: &Status) -> io::Error {
    match Failure::from_status(status) {
        Some(failure) => io::Error::other(failure),
        None => io::Error::other(status.message().to_owned()),
    }
}

impl Attachment {
    /// Hears and answers for as long as the connection lasts and somebody has a client. `number` is
    /// that of the connection.
    pub(crate) async fn run(mut self, client: WeakTransport, number: u64) {
        if number > 1 {
            self.changed(ListChange::Any);
        }
        if self.converse().await.is_err() {
            return; // nobody has a client any more
        }
        let Some(transport) = client.upgrade() else {
            return;
        };
        // The connection may be as good as ever. But a call on it could not be asked about.
        transport.forget(number);
        drop(transport);
        if self.agent.list_changed.is_some() {
            come_back(client).await;
        }
    }

    /// `Ok` when the daemon has ended it, `Err` when we have.
    async fn converse(&mut self) -> Result<(), Gone> {
        let mut questions = Questions::default();
        loop {
            let says = tokio::select! {
                told = self.told.message() => match told {
                    Ok(Some(told)) => match self.hear(told, &mut questions) {
                        Some(answer) => Says::Answer(answer),
                        None => continue,
                    },
                    Ok(None) | Err(_) => return Ok(()),
                },
                Some(answer) = questions.next() => Says::Answer(answer),
                changed = self.roots.changed() => {
                    changed.map_err(|_| Gone)?;
                    let roots = wire(&self.roots.borrow_and_update());
                    Says::Roots(v1::AgentRoots { roots })
                }
            };
            tokio::select! {
                sent = self.says.send(request(says)) => if sent.is_err() {
                    return Ok(());
                },
                () = gone(self.roots.clone()) => return Err(Gone),
            }
        }
    }

    /// Takes in what the daemon says; an answer if there is one at once.
    fn hear(
        &self,
        told: v1::AgentsAttachResponse,
        questions: &mut Questions,
    ) -> Option<v1::AgentAnswer> {
        match told.message? {
            Told::Question(question) => return questions.ask(&self.agent, question),
            Told::Withdrawn(withdrawn) => questions.withdraw(withdrawn.question),
            Told::Changed(changed) => self.changed(ListChange::Of {
                kind: changed.kind().into(),
                server: changed.server,
            }),
            Told::ElicitationComplete(done) => {
                if let Some(handler) = &self.agent.elicitation_complete {
                    // As with a list: a handler that panics is no reason to be deaf.
                    let _ = catch_unwind(AssertUnwindSafe(|| handler(done.into())));
                }
            }
            Told::Attached(_) => {}
        }
        None
    }

    fn changed(&self, change: ListChange) {
        if let Some(handler) = &self.agent.list_changed {
            // Questions are answered whatever becomes of this.
            let _ = catch_unwind(AssertUnwindSafe(|| handler(change)));
        }
    }
}

/// Nobody has a client any more.
struct Gone;

/// Ends when nobody has a client any more.
async fn gone(mut roots: watch::Receiver<Vec<Root>>) {
    while roots.changed().await.is_ok() {}
}

/// Makes a new connection, for as long as somebody has a client: whoever wants to hear of changes
/// does not call, and would never hear of one again.
async fn come_back(client: WeakTransport) {
    let mut retry = Retry::new(Instant::now(), Duration::MAX);
    while let Some(transport) = client.upgrade() {
        if transport.revive().await.is_ok() {
            return; // the new connection has an attachment of its own
        }
        drop(transport);
        retry.pause().await;
    }
}

fn request(says: Says) -> v1::AgentsAttachRequest {
    v1::AgentsAttachRequest {
        message: Some(says),
    }
}

fn wire(roots: &[Root]) -> Vec<v1::Root> {
    roots.iter().map(Into::into).collect()
}

impl Transport {
    /// Tells the daemon of other folders, now and on every connection to come.
    pub(crate) fn set_roots(&self, roots: Vec<Root>) {
        self.roots().send_replace(roots);
    }
}
