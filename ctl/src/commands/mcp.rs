//! `nexusctl mcp`: a bridge from an MCP client on standard input and output to the daemon.
//!
//! It copies lines. It reads of them just enough to outlive a daemon: what the client had said to begin its
//! session is said again to the next one, and whatever was under way gets its one outcome.

mod session;
mod slim;
mod start;
mod stdio;

use super::Context;
use crate::{
    cli::{Mcp, ToolsMode},
    exit::Error,
};
use nexus_client::RawStream;
use nexus_proto::linger::{self, Way};
use serde_json::json;
use session::Session;
use std::{cell::RefCell, io, path::PathBuf, time::Duration};
use stdio::Stdio;
use tokio::{
    io::{
        AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _,
        BufReader,
    },
    time::{Instant, sleep, timeout},
};

/// How long a daemon that went away is looked for.
const RETURN: Duration = Duration::from_secs(60);

/// What is said after the client's last word.
const BYE: &[u8] = b"{\"jsonrpc\":\"2.0\",\"method\":\"nexus/bye\"}\n";

const PING: &[u8] = b"{\"jsonrpc\":\"2.0\",\"id\":\"nexus-hello\",\"method\":\"ping\"}\n";

/// No line is longer than the daemon takes.
const MAX_LINE: usize = 17 << 20;

pub(crate) async fn run(context: &Context, args: Mcp) -> Result<(), Error> {
    let stdio = Stdio::open().map_err(|source| Error::Io {
        attempt: "cannot use standard input and output".to_owned(),
        source,
    })?;
    let hello = hello(&args);
    let mut bridge = Bridge {
        session: RefCell::default(),
        input: Lines::new(stdio.input),
        output: stdio.output,
    };
    let mut stream = start::connect(context, !args.no_start).await?;
    if let Err(source) = stream.write_all(&hello).await {
        let attempt = "cannot talk to the daemon".to_owned();
        return Err(Error::Io { attempt, source });
    }
    slim::give_back();
    loop {
        let (reader, writer) = tokio::io::split(stream);
        match bridge.pump(reader, writer).await {
            End::ClientGone => return Ok(()),
            End::DaemonGone => {}
        }
        if bridge.tell_lost().await.is_err() {
            return Ok(());
        }
        stream = tokio::select! {
            stream = come_back(context, &args, &hello) => stream?,
            () = stdio::client_gone() => return Ok(()),
        };
        match bridge.resume(&mut stream).await {
            Ok(()) | Err(End::DaemonGone) => {}
            Err(End::ClientGone) => return Ok(()),
        }
    }
}

/// What is said before the client's first word: where it works, and what it wants to see.
fn hello(args: &Mcp) -> Vec<u8> {
    let project = args
        .project
        .clone()
        .or_else(|| std::env::current_dir().ok());
    let project = project.and_then(|path: PathBuf| std::path::absolute(path).ok());
    let project = project.and_then(|path| path.to_str().map(str::to_owned));
    let tools = args.tools.map_or("", |tools| match tools {
        ToolsMode::Direct => "direct",
        ToolsMode::Search => "search",
        ToolsMode::Both => "both",
    });
    let params = json!({
        "project": project,
        "servers": args.server,
        "tools": tools,
        "profile": args.profile,
    });
    let hello = json!({"jsonrpc": "2.0", "method": "nexus/hello", "params": params});
    format!("{hello}\n").into_bytes()
}

/// Finds the daemon again, or the next one. Only one that answers counts: one that is dying may still be
/// connected to.
async fn come_back(context: &Context, args: &Mcp, hello: &[u8]) -> Result<RawStream, Error> {
    let began = Instant::now();
    loop {
        let found = match start::connect(context, !args.no_start).await {
            Ok(stream) => greet(stream, hello).await.map_err(|source| Error::Io {
                attempt: "the daemon does not answer".to_owned(),
                source,
            }),
            Err(error) => Err(error),
        };
        match found {
            Ok(stream) => return Ok(stream),
            Err(error) if began.elapsed() > RETURN => return Err(error),
            Err(_) => sleep(Duration::from_millis(100)).await,
        }
    }
}

/// Says who we are, and waits until the daemon has heard it.
async fn greet(mut stream: RawStream, hello: &[u8]) -> io::Result<RawStream> {
    let greeting = async {
        stream.write_all(hello).await?;
        stream.write_all(PING).await?;
        stream.flush().await?;
        // Nothing has been asked but this: the first line is its answer.
        while stream.read_u8().await? != b'\n' {}
        io::Result::Ok(())
    };
    timeout(Duration::from_secs(5), greeting)
        .await
        .unwrap_or_else(|late| Err(late.into()))?;
    Ok(stream)
}

enum End {
    ClientGone,
    DaemonGone,
}

struct Bridge<I, O> {
    session: RefCell<Session>,
    input: Lines<I>,
    output: O,
}

impl<I: AsyncRead + Unpin, O: AsyncWrite + Unpin> Bridge<I, O> {
    /// Says to the next daemon what the client has said so far, and to the client what may have changed.
    async fn resume(&mut self, to: &mut (impl AsyncWrite + Unpin)) -> Result<(), End> {
        let (again, news) = {
            let mut session = self.session.borrow_mut();
            (session.again(), session.restored())
        };
        to.write_all(&again).await.map_err(|_| End::DaemonGone)?;
        to.flush().await.map_err(|_| End::DaemonGone)?;
        self.output
            .write_all(&news)
            .await
            .map_err(|_| End::ClientGone)?;
        self.output.flush().await.map_err(|_| End::ClientGone)
    }

    /// Copies both ways until one side has gone.
    async fn pump(
        &mut self,
        daemon_said: impl AsyncRead + Unpin,
        mut to_daemon: impl AsyncWrite + Unpin,
    ) -> End {
        let (session, output) = (&self.session, &mut self.output);
        let up = async {
            loop {
                let Some(line) = self.input.next().await? else {
                    // It has no more to ask, and may still want its answers.
                    to_daemon.write_all(BYE).await?;
                    to_daemon.flush().await?;
                    stdio::client_gone().await;
                    return io::Result::Ok(());
                };
                session.borrow_mut().client_said(line);
                to_daemon.write_all(line).await?;
                to_daemon.flush().await?;
                linger::passed_on(Way::Up);
            }
        };
        let mut lines = Lines::new(daemon_said);
        let down = async {
            while let Ok(Some(line)) = lines.next().await {
                if session.borrow_mut().daemon_said(line) {
                    let written = output.write_all(line).await;
                    if written.is_err() || output.flush().await.is_err() {
                        return End::ClientGone;
                    }
                    linger::passed_on(Way::Down);
                }
            }
            End::DaemonGone
        };
        let mut down = std::pin::pin!(down);
        let end = tokio::select! {
            up = up => match up {
                Ok(()) => return End::ClientGone,
                // Writing has failed; what the daemon still said is read.
                Err(_) => down.await,
            },
            end = &mut down => end,
        };
        match end {
            End::DaemonGone if self.input.ended => End::ClientGone,
            end => end,
        }
    }

    /// The daemon has gone: what cannot be asked again has its outcome now.
    async fn tell_lost(&mut self) -> io::Result<()> {
        let lost = self.session.borrow_mut().lost();
        self.output.write_all(&lost).await?;
        self.output.flush().await
    }
}

/// Lines, with their ends. What was read of a line is kept when nobody waits for the rest.
struct Lines<R> {
    reader: BufReader<R>,
    line: Vec<u8>,
    is_whole: bool,
    ended: bool,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    fn new(reader: R) -> Self {
        Self {
            reader: BufReader::with_capacity(16 * 1024, reader),
            line: Vec::new(),
            is_whole: false,
            ended: false,
        }
    }

    async fn next(&mut self) -> io::Result<Option<&[u8]>> {
        if std::mem::take(&mut self.is_whole) {
            self.line.clear();
            // Not the memory of the longest line ever seen.
            self.line.shrink_to(64 * 1024);
        }
        loop {
            let buffer = self.reader.fill_buf().await?;
            if buffer.is_empty() {
                self.ended = true;
                if self.line.is_empty() {
                    return Ok(None);
                }
                self.line.push(b'\n');
                break;
            }
            let end = buffer.iter().position(|&byte| byte == b'\n');
            let taken = end.map_or(buffer.len(), |end| end + 1);
            self.line.extend_from_slice(&buffer[..taken]);
            self.reader.consume(taken);
            if end.is_some() {
                break;
            }
            if self.line.len() > MAX_LINE {
                return Err(io::ErrorKind::InvalidData.into());
            }
        }
        self.is_whole = true;
        Ok(Some(&self.line))
    }
}
