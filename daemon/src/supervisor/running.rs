//! One server while it runs: the process with its pipes, or the way to it over HTTP; its connection, and the
//! tasks that serve them.

use super::{
    health::{Health, HealthPolicy, Probe, Verdict},
    instance::Common,
    limiter::Turn,
    log::{MAX_LINE, Source},
    machine::Generation,
};
use crate::{
    mcp::{
        MAX_MESSAGE,
        connection::{CallError, Connection, Host, LogMessage, Remote, Terms},
        handshake::{self, Beforehand, HandshakeError, Listed, ServerInfo, list_within},
        lists::Kind,
        subscriptions::keep_subscribed,
    },
    process::{Pipes, Process, SpawnError, SpawnSpec},
    transport::{
        http::{self, spec::HttpSpec},
        lines::Line,
        stdio,
    },
};
use nexus_proto::reason::{Failure, Reason};
use std::{
    convert::Infallible,
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::{
    sync::{Notify, mpsc, oneshot},
    task::JoinHandle,
    time::{Instant, sleep, timeout},
};

/// How long the last words of a process may take to arrive after it has ended. A grandchild that
/// holds its output open would otherwise keep us waiting for ever.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// A process that ends closes its output first: this long after it, it lives on without one.
const ALIVE_AFTER: Duration = Duration::from_millis(50);

/// How long a message may stay unfinished while nothing more of it comes.
const UNFINISHED: Duration = Duration::from_secs(60);

/// A server that takes longer to start has had its turn: others start meanwhile.
const LONGEST_TURN: Duration = Duration::from_secs(5);

/// How long a server may take to give a list.
const LIST_TIMEOUT: Duration = Duration::from_secs(30);

/// Changes of a list that come in quick succession are one.
const LIST_PAUSE: Duration = Duration::from_millis(250);

/// What the tasks of a process tell its actor.
#[derive(Debug)]
pub(super) enum News {
    /// There is no talking to the process, though it lives: why.
    GaveUp(Generation, &'static str),
    /// The handshake is done.
    Welcome(Generation, Box<Welcome>),
    /// The handshake failed.
    Refused(Generation, HandshakeError),
    /// It has retired, and no call is under way any more.
    Drained(Generation),
    /// An idle server was asked whether it lives.
    Health(Generation, Verdict, Probe),
    /// Some of its lists, for somebody who waits for them or because the server said so.
    Lists(Generation, Vec<Listed>, Option<Refresher>),
}

/// Whoever waits for the lists to be had again.
pub(super) type Refresher = oneshot::Sender<Result<(), String>>;

/// What is known after the handshake.
#[derive(Debug)]
pub(super) struct Welcome {
    pub(super) info: ServerInfo,
    pub(super) tools: Listed,
}

/// What is expected of a process.
#[derive(Debug, Clone, Copy)]
pub(super) struct Demands {
    pub(super) health: HealthPolicy,
    /// How long the handshake may take.
    pub(super) start: Duration,
    /// One without tools is of no use.
    pub(super) tools: bool,
}

/// What is to be run, or reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// A program on this machine.
    Process(SpawnSpec),
    /// A server that somebody else runs.
    Http(Box<HttpSpec>),
}

/// A server that runs. Dropping it ends its process and its tasks.
#[derive(Debug)]
pub(super) struct Running {
    link: Link,
    pub(super) connection: Arc<Connection>,
    generation: Generation,
    talker: JoinHandle<()>,
    /// It has been asked a question that an old server might not survive.
    probing: Arc<AtomicBool>,
}

/// What is between us and a server.
#[derive(Debug)]
enum Link {
    Process {
        process: Box<Process>,
        reader: JoinHandle<()>,
        stderr: JoinHandle<()>,
        writer: Option<JoinHandle<()>>,
    },
    Http {
        driver: JoinHandle<Failure>,
        close: Arc<Notify>,
    },
}

/// How a server ended.
#[derive(Debug)]
pub(super) struct Exit {
    /// In words for people.
    pub(super) how: String,
    /// By itself, and with nothing to complain about.
    pub(super) well: bool,
    /// Why, where that says more than how.
    pub(super) failure: Option<Failure>,
}

impl Running {
    pub(super) fn start(
        name: &str,
        target: &Target,
        demands: Demands,
        source: Source,
        common: &Common,
        news: &mpsc::Sender<News>,
        turn: Turn,
    ) -> Result<Self, SpawnError> {
        let generation = Generation(source.generation);
        let connection = || Arc::new(Connection::new(host(name, source, common)));
        let (link, connection, is_old) = match target {
            Target::Process(spec) => {
                let (process, pipes) = Process::spawn(spec)?;
                let connection = connection();
                let link = link(process, pipes, &connection, demands, source, common, news);
                (link, connection, false)
            }
            Target::Http(spec) => {
                let connection = connection();
                let is_old = spec.kind == http::spec::Kind::Sse;
                (reach(spec, &connection, common), connection, is_old)
            }
        };
        let probing = Arc::new(AtomicBool::new(false));
        let talk = Talk {
            connection: Arc::clone(&connection),
            generation,
            demands,
            common: common.clone(),
            probing: Arc::clone(&probing),
            is_old,
            news: news.clone(),
        };
        let talker = tokio::spawn(talk.run(turn));
        Ok(Self {
            link,
            connection,
            generation,
            talker,
            probing,
        })
    }

    /// The process, if it is one.
    pub(super) fn pid(&self) -> Option<u32> {
        match &self.link {
            Link::Process { process, .. } => Some(process.pid()),
            Link::Http { .. } => None,
        }
    }

    /// Waits for its end. To be asked again until it is there, and then no more.
    pub(super) async fn wait(&mut self) -> Exit {
        match &mut self.link {
            Link::Process { process, .. } => match process.wait().await {
                Ok(status) => Exit {
                    how: process.describe_exit(status),
                    well: status.success(),
                    failure: None,
                },
                Err(error) => Exit {
                    how: format!("unknown ({error})"),
                    well: false,
                    failure: None,
                },
            },
            Link::Http { driver, .. } => {
                let failure = driver.await.unwrap_or_else(|error| {
                    let why = if error.is_panic() {
                        "failed"
                    } else {
                        "was ended"
                    };
                    Failure::new(Reason::Internal, format!("what carries its messages {why}"))
                });
                Exit {
                    how: failure.message.clone(),
                    well: false,
                    failure: Some(failure),
                }
            }
        }
    }

    /// Asks it to end.
    pub(super) fn terminate(&self) {
        match &self.link {
            Link::Process { process, .. } => process.terminate(),
            Link::Http { driver, .. } => driver.abort(),
        }
    }

    /// Ends it.
    pub(super) fn kill(&mut self) {
        match &mut self.link {
            Link::Process { process, .. } => process.kill(),
            Link::Http { driver, .. } => driver.abort(),
        }
    }

    /// What is to be done about what it left behind.
    pub(super) fn sweep(&self) -> Option<Box<dyn FnOnce() -> usize + Send>> {
        match &self.link {
            Link::Process { process, .. } => Some(Box::new(process.sweep())),
            Link::Http { .. } => None,
        }
    }

    pub(super) fn generation(&self) -> Generation {
        self.generation
    }

    /// Closes the input of the process: a good server ends by itself then.
    pub(super) fn close_input(&mut self) {
        self.talker.abort();
        match &mut self.link {
            Link::Process { writer, .. } => {
                if let Some(writer) = writer.take() {
                    writer.abort();
                }
            }
            Link::Http { close, .. } => close.notify_one(),
        }
    }

    /// Sends it no new calls, and tells the actor when those under way are done.
    pub(super) fn retire(&self, cause: &Arc<Failure>, news: &mpsc::Sender<News>) {
        self.connection.retire(cause);
        let (connection, generation, news) =
            (Arc::clone(&self.connection), self.generation, news.clone());
        tokio::spawn(async move {
            connection.drained().await;
            let _ = news.send(News::Drained(generation)).await;
        });
    }

    /// Whether it has been asked a question that an old server might not survive, and not answered.
    pub(super) fn is_probed(&self) -> bool {
        // That a server cannot be reached says nothing about how old it is.
        matches!(self.link, Link::Process { .. }) && self.probing.load(Ordering::Relaxed)
    }

    /// Lists everything again, and tells the actor.
    pub(super) fn list_again(&self, terms: Terms, refresher: Refresher, news: &mpsc::Sender<News>) {
        let (connection, generation, news) =
            (Arc::clone(&self.connection), self.generation, news.clone());
        tokio::spawn(async move {
            let lists = list_all(&connection, terms, Kind::ALL).await;
            let _ = news
                .send(News::Lists(generation, lists, Some(refresher)))
                .await;
        });
    }

    /// Reads what the process still said before it ended.
    pub(super) async fn last_words(&mut self) {
        if let Link::Process { reader, stderr, .. } = &mut self.link {
            let _ = timeout(LAST_WORDS, async {
                let _ = reader.await;
                let _ = stderr.await;
            })
            .await;
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Whoever still waits is not to wait for ever. As a rule nobody does: they were told why.
        let cause = Failure::new(Reason::Internal, "the server was given up");
        self.connection.end(&Arc::new(cause));
        self.close_input();
        match &self.link {
            Link::Process { reader, stderr, .. } => {
                reader.abort();
                stderr.abort();
            }
            Link::Http { driver, .. } => driver.abort(),
        }
    }
}

/// The tasks that serve the pipes of a process.
fn link(
    process: Process,
    pipes: Pipes,
    connection: &Arc<Connection>,
    demands: Demands,
    source: Source,
    common: &Common,
    news: &mpsc::Sender<News>,
) -> Link {
    let generation = Generation(source.generation);
    let health = demands.health;
    let reader = tokio::spawn({
        let (connection, news) = (Arc::clone(connection), news.clone());
        async move {
            let each = |line| {
                connection.receive(line);
                if connection.is_only_noise() {
                    return Err(io::ErrorKind::InvalidData.into());
                }
                Ok(())
            };
            let read = stdio::read_lines(pipes.stdout, MAX_MESSAGE, UNFINISHED, each).await;
            let why = match read.map_err(|error| error.kind()) {
                Err(io::ErrorKind::TimedOut) => "the server began a message and never ended it",
                Err(io::ErrorKind::InvalidData) => {
                    "the server does not speak MCP: it prints other things to its standard output"
                }
                // An error and an end come to the same: nothing more will be heard.
                _ => "the server closed its output",
            };
            tokio::spawn(async move {
                sleep(ALIVE_AFTER).await;
                let _ = news.send(News::GaveUp(generation, why)).await;
            });
        }
    });
    let stderr = tokio::spawn({
        let log = Arc::clone(&common.log);
        async move {
            let each = |line| {
                log.push(source, log_text(&line));
                Ok(())
            };
            let _ = stdio::read_lines(pipes.stderr, MAX_LINE, Duration::MAX, each).await;
        }
    });
    let writer = tokio::spawn({
        let (connection, news) = (Arc::clone(connection), news.clone());
        async move {
            // Whoever works on one thing need not read the next; its callers have their deadlines.
            let is_busy = |writing| connection.in_flight() > writing + connection.outbox.requests();
            let (outbox, stdin) = (&connection.outbox, pipes.stdin);
            let written = stdio::write_frames(outbox, stdin, health.timeout, is_busy).await;
            let Err(error) = written else { return };
            let why = if error.kind() == io::ErrorKind::TimedOut {
                "the server does not read what it is sent"
            } else {
                // As a rule the process has ended, and says so itself.
                sleep(ALIVE_AFTER).await;
                "the server closed its input"
            };
            let _ = news.send(News::GaveUp(generation, why)).await;
        }
    });
    Link::Process {
        process: Box::new(process),
        reader,
        stderr,
        writer: Some(writer),
    }
}

/// The task that carries messages over HTTP.
fn reach(spec: &HttpSpec, connection: &Arc<Connection>, common: &Common) -> Link {
    let close = Arc::new(Notify::new());
    let peer = Arc::new(Remote {
        connection: Arc::clone(connection),
        answers: common.answers,
    });
    let closed = Arc::clone(&close);
    let closed = async move { closed.notified().await };
    let memory = Arc::clone(&common.memory);
    let driver = http::run(spec.clone(), peer, memory, MAX_MESSAGE, closed);
    Link::Http {
        driver: tokio::spawn(driver),
        close,
    }
}

/// What a connection has around it.
fn host(name: &str, source: Source, common: &Common) -> Host {
    let log = Arc::clone(&common.log);
    Host {
        server: name.to_owned(),
        asks: Arc::clone(common.lists.asks()),
        asks_roots: Arc::clone(&common.asks_roots),
        declared: common.answers,
        owner: common.owner.clone(),
        subscriptions: Arc::clone(&common.subscriptions),
        log: Box::new(move |message| log.push_for_clients(source, log_line(message))),
    }
}

/// What a server logs for its client, beside what it writes to its standard error.
fn log_line(message: &LogMessage) -> String {
    let level = message.level.as_str();
    // Most servers log sentences, and those are read without their quotes.
    let data = match serde_json::from_slice::<String>(&message.data) {
        Ok(sentence) => sentence,
        Err(_) => String::from_utf8_lossy(&message.data).into_owned(),
    };
    match message.logger.as_str() {
        "" => one_line(format!("[{level}] {data}")),
        logger => one_line(format!("[{level}] {logger}: {data}")),
    }
}

/// What somebody else wrote, in one line that is not too long.
fn one_line(mut text: String) -> String {
    if text.len() > MAX_LINE {
        text.truncate(text.floor_char_boundary(MAX_LINE));
    }
    if text.contains(['\n', '\r']) {
        text = text.replace(['\n', '\r'], " ");
    }
    text
}

/// What is said to a process for as long as it runs.
struct Talk {
    connection: Arc<Connection>,
    generation: Generation,
    demands: Demands,
    common: Common,
    probing: Arc<AtomicBool>,
    /// It is known to be an old one, by the way it is spoken to.
    is_old: bool,
    news: mpsc::Sender<News>,
}

impl Talk {
    /// The handshake, and after it what keeps an idle connection good: the lists whenever the server says
    /// that they have changed, and a question now and then whether it lives.
    async fn run(self, turn: Turn) {
        let greeted = tokio::select! {
            greeted = self.greet() => greeted,
            never = give_back(turn) => match never {},
        };
        let welcome = match greeted {
            Ok(welcome) => welcome,
            Err(error) => return self.tell(News::Refused(self.generation, error)).await,
        };
        let terms = welcome.info.terms();
        self.tell(News::Welcome(self.generation, Box::new(welcome)))
            .await;
        tokio::join!(
            self.keep_listed(terms),
            self.keep_probing(),
            keep_subscribed(&self.connection, terms, &self.common.subscriptions),
        );
    }

    async fn greet(&self) -> Result<Welcome, HandshakeError> {
        let before = Beforehand {
            answers: self.common.answers,
            was_modern: match self.is_old {
                true => Some(false),
                false => self.common.lists.current().was_modern(),
            },
            time: self.demands.start,
        };
        let probing = |probing| self.probing.store(probing, Ordering::Relaxed);
        let info = handshake::introduce(&self.connection, before, probing).await?;
        let level = *self.common.level.lock();
        if let Some(level) = level {
            self.connection.set_level(level);
        }
        let tools = handshake::list(&self.connection, info.terms(), Kind::Tools).await;
        if self.demands.tools {
            match &tools.list {
                Ok((list, _)) if !list.entries.is_empty() => {}
                Ok(_) => return Err(HandshakeError::NoTools(None)),
                Err(why) => return Err(HandshakeError::NoTools(Some(why.clone()))),
            }
        }
        Ok(Welcome { info, tools })
    }

    async fn keep_listed(&self, terms: Terms) {
        let mut kinds = vec![Kind::Resources, Kind::Templates, Kind::Prompts];
        loop {
            let lists = list_all(&self.connection, terms, kinds).await;
            self.tell(News::Lists(self.generation, lists, None)).await;
            self.connection.changes.wait().await;
            sleep(LIST_PAUSE).await;
            kinds = self.connection.changes.take().collect();
        }
    }

    async fn keep_probing(&self) {
        let policy = self.demands.health;
        if policy.interval.is_zero() {
            return;
        }
        let mut health = Health::new(policy);
        loop {
            sleep(health.pause()).await;
            let busy = self.connection.in_flight() > 0;
            if !health.wants_probe(self.connection.received(), busy) {
                continue;
            }
            let Ok(question) = self.connection.probe() else {
                return;
            };
            let asked = Instant::now();
            // An error is an answer too, if it is the server's.
            let answered = match timeout(policy.timeout, question).await {
                // Whoever wants to be left alone lives.
                Ok(Err(CallError::Refused(why))) => why.reason == Reason::Overloaded,
                Ok(Err(CallError::Dropped(_))) | Err(_) => false,
                Ok(_) => true,
            };
            let probe = if answered {
                Probe::Answered(asked.elapsed())
            } else {
                Probe::Silent(asked.elapsed())
            };
            let verdict = health.judge(probe);
            self.tell(News::Health(self.generation, verdict, probe))
                .await;
            if verdict == Verdict::Hung {
                return;
            }
        }
    }

    async fn tell(&self, news: News) {
        // An actor that has gone takes this task along.
        let _ = self.news.send(news).await;
    }
}

/// Lets others start when this one takes long.
async fn give_back(turn: Turn) -> Infallible {
    sleep(LONGEST_TURN).await;
    drop(turn);
    std::future::pending().await
}

/// These lists, asked for at once.
async fn list_all(
    connection: &Arc<Connection>,
    terms: Terms,
    kinds: impl IntoIterator<Item = Kind>,
) -> Vec<Listed> {
    let lists = kinds.into_iter();
    let lists = lists.map(|kind| list_within(LIST_TIMEOUT, connection, terms, kind));
    futures_util::future::join_all(lists).await
}

fn log_text(line: &Line) -> String {
    match line {
        Line::Whole(text) => String::from_utf8_lossy(text).into_owned(),
        Line::Oversized { head, length, .. } => {
            format!("{}… ({length} bytes)", String::from_utf8_lossy(head))
        }
    }
}
