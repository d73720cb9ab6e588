//! One process while it runs: its pipes, its connection, and the tasks that serve them.

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
        connection::Connection,
        handshake::{self, HandshakeError, ServerInfo, ToolList},
    },
    process::{Process, SpawnError, SpawnSpec},
    transport::{lines::Line, stdio},
};
use nexus_proto::reason::{Failure, Reason};
use std::{convert::Infallible, io, sync::Arc, time::Duration};
use tokio::{
    sync::{mpsc, oneshot},
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

/// How long a server may take to list its tools again.
const LIST_TIMEOUT: Duration = Duration::from_secs(30);

/// Changes of the list of tools that come in quick succession are one.
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
    /// The tools were listed again, for somebody who waits for it or because the server said so.
    Tools(Generation, Result<ToolList, String>, Option<Refresher>),
}

/// Whoever waits for the tools to be listed again.
pub(super) type Refresher = oneshot::Sender<Result<(), String>>;

/// What is known after the handshake.
#[derive(Debug)]
pub(super) struct Welcome {
    pub(super) info: ServerInfo,
    pub(super) tools: Result<ToolList, String>,
}

/// A process that runs. Dropping it ends the process and its tasks.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) process: Process,
    pub(super) connection: Arc<Connection>,
    generation: Generation,
    reader: JoinHandle<()>,
    stderr: JoinHandle<()>,
    writer: Option<JoinHandle<()>>,
    talker: JoinHandle<()>,
}

impl Running {
    pub(super) fn start(
        spec: &SpawnSpec,
        health: HealthPolicy,
        source: Source,
        common: &Common,
        news: &mpsc::Sender<News>,
        turn: Turn,
    ) -> Result<Self, SpawnError> {
        let generation = Generation(source.generation);
        let (process, pipes) = Process::spawn(spec)?;
        let connection = Arc::new(Connection::new(Arc::clone(common.lists.asks())));
        let reader = tokio::spawn({
            let (connection, news) = (Arc::clone(&connection), news.clone());
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
            let (connection, news) = (Arc::clone(&connection), news.clone());
            async move {
                // Whoever works on one thing need not read the next; its callers have their deadlines.
                let is_busy =
                    |writing| connection.in_flight() > writing + connection.outbox.requests();
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
        let talker = tokio::spawn(talk(
            Arc::clone(&connection),
            generation,
            health,
            news.clone(),
            turn,
        ));
        Ok(Self {
            process,
            connection,
            generation,
            reader,
            stderr,
            writer: Some(writer),
            talker,
        })
    }

    pub(super) fn generation(&self) -> Generation {
        self.generation
    }

    /// Closes the input of the process: a good server ends by itself then.
    pub(super) fn close_input(&mut self) {
        self.talker.abort();
        if let Some(writer) = self.writer.take() {
            writer.abort();
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

    /// Lists the tools again, and tells the actor.
    pub(super) fn list_again(
        &self,
        info: Arc<ServerInfo>,
        refresher: Refresher,
        news: &mpsc::Sender<News>,
    ) {
        let (connection, generation, news) =
            (Arc::clone(&self.connection), self.generation, news.clone());
        tokio::spawn(async move {
            let tools = list(&connection, &info).await;
            let news_of_it = News::Tools(generation, tools, Some(refresher));
            let _ = news.send(news_of_it).await;
        });
    }

    /// Reads what the process still said before it ended.
    pub(super) async fn last_words(&mut self) {
        let _ = timeout(LAST_WORDS, async {
            let _ = (&mut self.reader).await;
            let _ = (&mut self.stderr).await;
        })
        .await;
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Whoever still waits is not to wait for ever. As a rule nobody does: they were told why.
        let cause = Failure::new(Reason::Internal, "the server was given up");
        self.connection.end(&Arc::new(cause));
        self.close_input();
        self.reader.abort();
        self.stderr.abort();
    }
}

/// The handshake, and after it what keeps an idle connection good: the lists whenever the server says
/// that they have changed, and a question now and then whether it lives.
async fn talk(
    connection: Arc<Connection>,
    generation: Generation,
    health: HealthPolicy,
    news: mpsc::Sender<News>,
    turn: Turn,
) {
    let greeted = tokio::select! {
        greeted = greet(&connection) => greeted,
        never = give_back(turn) => match never {},
    };
    let welcome = match greeted {
        Ok(welcome) => welcome,
        Err(error) => {
            let _ = news.send(News::Refused(generation, error)).await;
            return;
        }
    };
    let info = welcome.info.clone();
    if news
        .send(News::Welcome(generation, Box::new(welcome)))
        .await
        .is_err()
    {
        return;
    }
    tokio::join!(
        keep_listed(&connection, generation, &info, &news),
        keep_probing(&connection, generation, health, &news),
    );
}

async fn greet(connection: &Arc<Connection>) -> Result<Welcome, HandshakeError> {
    let info = handshake::introduce(connection).await?;
    let tools = handshake::list_tools(connection, &info).await;
    Ok(Welcome { info, tools })
}

/// Lets others start when this one takes long.
async fn give_back(turn: Turn) -> Infallible {
    sleep(LONGEST_TURN).await;
    drop(turn);
    std::future::pending().await
}

async fn keep_listed(
    connection: &Arc<Connection>,
    generation: Generation,
    info: &ServerInfo,
    news: &mpsc::Sender<News>,
) {
    loop {
        connection.tools_changed.notified().await;
        sleep(LIST_PAUSE).await;
        let tools = list(connection, info).await;
        if news
            .send(News::Tools(generation, tools, None))
            .await
            .is_err()
        {
            return;
        }
    }
}

async fn keep_probing(
    connection: &Arc<Connection>,
    generation: Generation,
    policy: HealthPolicy,
    news: &mpsc::Sender<News>,
) {
    if policy.interval.is_zero() {
        return;
    }
    let mut health = Health::new(policy);
    loop {
        sleep(health.pause()).await;
        if !health.wants_probe(connection.received(), connection.in_flight() > 0) {
            continue;
        }
        let Ok(question) = connection.request("ping", b"") else {
            return;
        };
        let asked = Instant::now();
        // An error is an answer too.
        let answered = timeout(policy.timeout, question).await.is_ok();
        let probe = if answered {
            Probe::Answered(asked.elapsed())
        } else {
            Probe::Silent(asked.elapsed())
        };
        let verdict = health.judge(probe);
        let told = news.send(News::Health(generation, verdict, probe)).await;
        if told.is_err() || verdict == Verdict::Hung {
            return;
        }
    }
}

/// The tools, asked for once more. The first time is bounded by the start of the server.
async fn list(connection: &Arc<Connection>, info: &ServerInfo) -> Result<ToolList, String> {
    timeout(LIST_TIMEOUT, handshake::list_tools(connection, info))
        .await
        .unwrap_or_else(|_| Err(format!("no answer within {LIST_TIMEOUT:?}")))
}

fn log_text(line: &Line) -> String {
    match line {
        Line::Whole(text) => String::from_utf8_lossy(text).into_owned(),
        Line::Oversized { head, length, .. } => {
            format!("{}… ({length} bytes)", String::from_utf8_lossy(head))
        }
    }
}
