//! One session of the legacy era.

use super::super::{
    mcp::{Client, Introduction, Kind, Message, Out, Present, WeakOut},
    random::random,
};
use crate::{
    agent::{Agent, Answers, Speaks},
    api::Context,
    pool::key::Credential,
};
use parking_lot::Mutex;
use std::{
    fmt::Write as _,
    sync::{Arc, Weak},
    time::Duration,
};
use tokio::{
    sync::{Notify, mpsc},
    time::{Instant, timeout},
};

/// How many messages that belong to no request may wait.
const WAITING: usize = 256;

/// How long a question waits for a stream that it can be asked on.
const PATIENCE: Duration = Duration::from_secs(30);

/// The longest name of a client that is remembered in the id of its session.
const NAME: usize = 48;

/// What a session is called. It says all that is needed to begin it anew, so that it outlives the daemon:
/// what its client can be asked, and who the client is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Id(String);

impl Id {
    fn new(answers: Answers, name: &str) -> Self {
        let mut id = format!("{}-{:02x}-", random::<16>(), answers.bits());
        for byte in name.bytes().take(NAME) {
            let _ = write!(id, "{byte:02x}");
        }
        Self(id)
    }

    /// The id and what it says, if it is one.
    pub(super) fn read(text: &str) -> Option<(Self, Answers, String)> {
        let mut parts = text.split('-');
        let (number, answers, name) = (parts.next()?, parts.next()?, parts.next()?);
        let is_hex = |text: &str| text.bytes().all(|b| b.is_ascii_hexdigit());
        let is_id = number.len() == 32 && name.len() <= 2 * NAME && parts.next().is_none();
        if !is_id || !is_hex(number) || !is_hex(name) || name.len() % 2 != 0 {
            return None;
        }
        let answers = Answers::of_bits(u8::from_str_radix(answers, 16).ok()?);
        let bytes: Vec<u8> = (0..name.len())
            .step_by(2)
            .filter_map(|at| u8::from_str_radix(&name[at..at + 2], 16).ok())
            .collect();
        let name = String::from_utf8_lossy(&bytes).into_owned();
        Some((Self(text.to_owned()), answers, name))
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

/// One session: a client that comes over many connections.
#[derive(Debug)]
pub(super) struct Session {
    client: Present,
    context: Weak<Context>,
    agent: Arc<Agent>,
    /// What its client shows to servers. Nobody speaks in it who shows something else.
    credential: Option<Credential>,
    streams: Arc<Streams>,
    used: Mutex<Instant>,
}

/// The streams over which a client can be told something now.
#[derive(Debug, Default)]
struct Streams {
    /// Answers to requests under way, by number. Any of them can carry a question.
    answers: Mutex<Vec<(u64, WeakOut)>>,
    /// The one for what belongs to no request.
    listener: Mutex<Option<Out>>,
    opened: Notify,
    /// How many are open, and the last number.
    open: Mutex<(usize, u64)>,
}

impl Session {
    pub(super) fn new(
        context: &Arc<Context>,
        introduction: Introduction,
        pid: Option<u32>,
    ) -> Arc<Self> {
        let agent = Arc::new(Agent::new(pid, Speaks::Mcp));
        context.agents.add(&agent);
        let (out, from) = Out::new(WAITING);
        let client = Client::arrive(Arc::clone(context), Arc::clone(&agent), out, None);
        let credential = introduction.credential.clone();
        client.introduce(introduction);
        let streams = Arc::new(Streams::default());
        let pump = tokio::spawn(pump(from, Arc::clone(&streams)));
        client.keep(pump.abort_handle());
        Arc::new(Self {
            client,
            context: Arc::downgrade(context),
            agent,
            credential,
            streams,
            used: Mutex::new(Instant::now()),
        })
    }

    pub(super) fn client(&self) -> &Arc<Client> {
        &self.client
    }

    /// What it is called, once its client has been greeted.
    pub(super) fn id(&self) -> Option<Id> {
        let (name, answers) = self.client.greeted()?;
        Some(Id::new(answers, &name))
    }

    /// A stream of it is open for as long as this is held.
    pub(super) fn open(self: &Arc<Self>) -> Open {
        self.open_for(None)
    }

    /// The same for an answer, over which its client can be asked something too.
    pub(super) fn open_for(self: &Arc<Self>, out: Option<WeakOut>) -> Open {
        *self.used.lock() = Instant::now();
        let number = {
            let mut open = self.streams.open.lock();
            open.0 += 1;
            open.1 += 1;
            open.1
        };
        if let Some(out) = out {
            self.streams.answers.lock().push((number, out));
            self.streams.opened.notify_waiters();
        }
        Open {
            session: Arc::clone(self),
            number,
        }
    }

    /// What belongs to no request goes there from now on. Whoever listened before has ended.
    pub(super) fn listen(&self, out: Out) {
        *self.streams.listener.lock() = Some(out);
        self.streams.opened.notify_waiters();
    }

    /// Its client has ended it: so does all that is under way, and whoever listens.
    pub(super) fn end(&self) {
        self.client.close();
        *self.streams.listener.lock() = None;
    }

    /// Whether it belongs to whoever shows this.
    pub(super) fn is_of(&self, credential: Option<&Credential>) -> bool {
        self.credential.as_ref() == credential
    }

    /// For how long nobody has used it; `None` while somebody does.
    pub(super) fn idle(&self) -> Option<Duration> {
        let is_open = self.streams.open.lock().0 > 0;
        (!is_open).then(|| self.used.lock().elapsed())
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if let Some(context) = self.context.upgrade() {
            context.agents.remove(self.agent.id());
        }
    }
}

/// A stream that is open.
#[derive(Debug)]
pub(super) struct Open {
    session: Arc<Session>,
    number: u64,
}

impl Drop for Open {
    fn drop(&mut self) {
        let streams = &self.session.streams;
        streams
            .answers
            .lock()
            .retain(|(number, _)| *number != self.number);
        streams.open.lock().0 -= 1;
        *self.session.used.lock() = Instant::now();
    }
}

/// Sends what belongs to no request where the client can hear it.
async fn pump(mut from: mpsc::Receiver<Message>, streams: Arc<Streams>) {
    while let Some(message) = from.recv().await {
        let to = match message.kind {
            Kind::Question => timeout(PATIENCE, streams.for_question()).await.ok(),
            // News that nobody listens to is no news: whoever comes later asks how things are.
            Kind::News | Kind::Answer(_) => streams.listener.lock().clone(),
        };
        if let Some(to) = to {
            to.send(message.text, message.kind).await;
        }
    }
}

impl Streams {
    /// A question belongs to a request: it goes over the stream of the last one.
    async fn for_question(&self) -> Out {
        loop {
            let mut opened = std::pin::pin!(self.opened.notified());
            opened.as_mut().enable();
            let answers = self.answers.lock().clone();
            let answers = answers.iter().rev().filter_map(|(_, out)| out.upgrade());
            let listener = self.listener.lock().clone();
            if let Some(out) = answers.chain(listener).find(Out::is_open) {
                return out;
            }
            opened.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_says_how_to_begin_anew() {
        let answers = Answers {
            sampling: true,
            roots: true,
            ..Answers::NONE
        };
        let id = Id::new(answers, "claude-caf\u{e9}");
        let (read, said, name) = Id::read(id.as_str()).unwrap();
        assert_eq!(
            (read, said, &*name),
            (id.clone(), answers, "claude-caf\u{e9}")
        );
        assert_ne!(Id::new(answers, ""), Id::new(answers, ""));
        assert!(id.as_str().len() <= 256 && id.as_str().is_ascii());
        for wrong in ["", "x", "-", "--", "12-00-", &id.as_str()[1..], "\u{e9}"] {
            assert!(Id::read(wrong).is_none(), "{wrong}");
        }
    }
}
