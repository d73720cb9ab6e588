//! What is measured: a process with a socket, and clients that call it.

use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1;
use hyper_util::{
    client::legacy::{self, connect::HttpConnector},
    rt::{TokioExecutor, TokioIo},
};
use nexus_client::{Arguments, Nexus};
use nexus_proto::v1::{self, tools_client::ToolsClient};
use std::{
    fs,
    io::{self, BufRead as _, BufReader},
    path::{Path, PathBuf},
    pin::Pin,
    process::{Child, Command, Stdio},
    task::{Context, Poll},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadBuf},
    net::UnixStream,
};
use tonic::transport::{Channel, Endpoint};

pub(crate) const ARGUMENTS: &[u8] = br#"{"message":"hello"}"#;

/// What is measured.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A bare byte relay in front of the test server.
    Relay,
    /// A bare gRPC echo.
    Tonic,
    /// The daemon in front of the test server, with this many threads.
    Nexusd(u16),
    /// The test server over HTTP, called directly.
    Http,
    /// A bare bridge in front of it: lines on a socket, each posted with the same client.
    Bridge,
    /// The daemon in front of it, called over gRPC.
    NexusdHttp,
    /// The daemon in front of it, called with lines on its socket, as the bridge is.
    NexusdHttpLines,
    /// The daemon in front of the test server, called with lines on its socket.
    Lines,
    /// The same, called over HTTP on its socket.
    Door,
    /// A bare copier between standard input and output and the bare relay.
    Copier,
    /// `nexusctl mcp` in front of the daemon.
    Mcp,
}

impl Kind {
    fn is_nexusd(self) -> bool {
        matches!(
            self,
            Self::Nexusd(_)
                | Self::NexusdHttp
                | Self::NexusdHttpLines
                | Self::Lines
                | Self::Door
                | Self::Mcp
        )
    }

    fn needs_http(self) -> bool {
        matches!(
            self,
            Self::Http | Self::Bridge | Self::NexusdHttp | Self::NexusdHttpLines
        )
    }
}

/// A process that is measured. It ends with this.
pub(crate) struct Peer {
    kind: Kind,
    socket: PathBuf,
    child: Child,
    /// The test server over HTTP.
    url: String,
    server: Option<Child>,
}

/// The HTTP client that the daemon has too.
pub(crate) type HttpClient = legacy::Client<HttpConnector, Full<bytes::Bytes>>;

/// Makes one.
pub(crate) fn http_client() -> HttpClient {
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    legacy::Client::builder(TokioExecutor::new()).build(connector)
}

/// A call as a modern server takes it.
fn modern_call(id: u64) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"echo","arguments":{{"message":"hello"}},"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{{}}}}}}}}"#
    )
}

/// A call of a modern client as a request.
fn posted(url: http::Uri, name: &str, body: bytes::Bytes) -> http::Request<Full<bytes::Bytes>> {
    http::Request::post(url)
        .header("host", "localhost")
        .header("accept", "application/json, text/event-stream")
        .header("content-type", "application/json")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", "tools/call")
        .header("mcp-name", name)
        .body(Full::from(body))
        .unwrap()
}

/// Posts it.
pub(crate) async fn post(client: &HttpClient, url: &http::Uri, body: bytes::Bytes) -> bytes::Bytes {
    let request = posted(url.clone(), "echo", body);
    let answer = client.request(request).await.unwrap().into_body();
    answer.collect().await.unwrap().to_bytes()
}

/// Starts the test server over HTTP.
fn serve_http() -> (Child, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nexusd"));
    command.args(["demo-server", "--http", "0", "--era", "modern"]);
    let mut child = command
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let stderr = child.stderr.take().unwrap();
    BufReader::new(stderr).read_line(&mut line).unwrap();
    let url = line.trim().strip_prefix("listening on ").unwrap();
    (child, url.to_owned())
}

impl Peer {
    pub(crate) async fn start(kind: Kind, home: &Path) -> Self {
        let socket = home.join("s.sock");
        let (server, url) = kind.needs_http().then(serve_http).unzip();
        let url = url.unwrap_or_default();
        if kind.is_nexusd() && kind.needs_http() {
            let config = format!("{{\"mcpServers\": {{\"demo\": {{\"url\": \"{url}\"}}}}}}");
            fs::create_dir_all(home.join("nexus")).unwrap();
            fs::write(home.join("nexus/mcp.json"), config).unwrap();
        }
        let itself = std::env::current_exe().unwrap();
        let mut command = match kind {
            Kind::Relay | Kind::Copier | Kind::Tonic | Kind::Bridge => Command::new(itself),
            // What is measured is the server itself.
            Kind::Http => Command::new("true"),
            _ => Command::new(env!("CARGO_BIN_EXE_nexusd")),
        };
        match kind {
            Kind::Relay | Kind::Copier => command.arg("relay").arg(&socket),
            Kind::Tonic => command.arg("tonic").arg(&socket),
            Kind::Bridge => command.arg("bridge").arg(&socket).arg(&url),
            Kind::Http => &mut command,
            _ => {
                let threads = match kind {
                    Kind::Nexusd(threads) => threads,
                    _ => 1,
                };
                command
                    .arg("--socket")
                    .arg(&socket)
                    .args(["--log", "error", "--threads", &threads.to_string()])
                    .env("XDG_CONFIG_HOME", home)
                    .env("XDG_STATE_HOME", home)
            }
        };
        let child = command.stdin(Stdio::null()).spawn().unwrap();
        let peer = Self {
            kind,
            socket,
            child,
            url,
            server,
        };
        if kind == Kind::Http {
            return peer;
        }
        while kind.is_nexusd() && UnixStream::connect(&peer.socket).await.is_err() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        // The floors take no connection for a look.
        while !peer.socket.exists() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        peer
    }

    pub(crate) async fn client(&self) -> Client {
        match self.kind {
            Kind::Door => {
                let stream = TokioIo::new(self.connect().await);
                let (sender, connection) = http1::handshake(stream).await.unwrap();
                tokio::spawn(connection);
                Client::Door(sender, 0)
            }
            Kind::Relay
            | Kind::Copier
            | Kind::Bridge
            | Kind::NexusdHttpLines
            | Kind::Lines
            | Kind::Mcp => {
                let mut stream: Box<dyn Wire> = match self.kind {
                    Kind::Copier | Kind::Mcp => Box::new(self.stdio()),
                    _ => Box::new(self.connect().await),
                };
                let call = match self.kind {
                    Kind::Relay | Kind::Copier => legacy_echo,
                    Kind::NexusdHttpLines | Kind::Lines | Kind::Mcp => legacy_demo_echo,
                    _ => {
                        return Client::Lines {
                            stream,
                            buffer: Vec::with_capacity(64 * 1024),
                            id: 0,
                            call: modern_call,
                        };
                    }
                };
                let hello = br#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}"#;
                stream
                    .write_all(&[hello, &b"\n"[..]].concat())
                    .await
                    .unwrap();
                let mut buffer = Vec::with_capacity(64 * 1024);
                read_line(&mut stream, &mut buffer).await;
                let ready = b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n";
                stream.write_all(ready).await.unwrap();
                Client::Lines {
                    stream,
                    buffer,
                    id: 0,
                    call,
                }
            }
            Kind::Tonic => {
                let socket = self.socket.clone();
                let connect = move |_| {
                    let socket = socket.clone();
                    async move { UnixStream::connect(socket).await.map(TokioIo::new) }
                };
                let channel = Endpoint::from_static("http://floor")
                    .connect_with_connector(tower::service_fn(connect))
                    .await
                    .unwrap();
                Client::Tonic(ToolsClient::new(channel))
            }
            Kind::Http => Client::Http(Box::new(http_client()), self.url.parse().unwrap(), 0),
            Kind::Nexusd(_) | Kind::NexusdHttp => {
                let nexus = Nexus::builder()
                    .socket(&self.socket)
                    .connect()
                    .await
                    .unwrap();
                Client::Nexus(nexus)
            }
        }
    }

    async fn connect(&self) -> UnixStream {
        loop {
            match UnixStream::connect(&self.socket).await {
                Ok(stream) => return stream,
                Err(_) => tokio::time::sleep(Duration::from_millis(2)).await,
            }
        }
    }

    /// A process that carries lines between its standard input and output and the socket.
    fn stdio(&self) -> Piped {
        let mut command = match self.kind {
            Kind::Mcp => {
                let mut command = tokio::process::Command::new(nexusctl());
                command.arg("mcp").arg("--no-start").arg("--socket");
                command
            }
            _ => {
                let mut command = tokio::process::Command::new(std::env::current_exe().unwrap());
                command.arg("copier");
                command
            }
        };
        let mut child = command
            .arg(&self.socket)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Piped {
            wire: tokio::io::join(output, input),
            _child: child,
        }
    }

    /// CPU time of the process in nanoseconds, all threads together.
    pub(crate) fn cpu(&self) -> u64 {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.child.id()))
            .into_iter()
            .flatten();
        tasks
            .filter_map(|task| fs::read_to_string(task.ok()?.path().join("schedstat")).ok())
            .filter_map(|text| text.split_whitespace().next()?.parse::<u64>().ok())
            .sum()
    }

    /// Resident memory in KiB.
    pub(crate) fn memory(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()));
        let status = status.unwrap_or_default();
        let line = status.lines().find(|line| line.starts_with("VmRSS:"));
        line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok())
            .unwrap_or(0)
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        for child in [Some(&mut self.child), self.server.as_mut()]
            .into_iter()
            .flatten()
        {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// `nexusctl`, which is built beside the daemon.
pub(crate) fn nexusctl() -> PathBuf {
    Path::new(env!("CARGO_BIN_EXE_nexusd")).with_file_name("nexusctl")
}

pub(crate) trait Wire: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Wire for T {}

/// The standard input and output of a process, which ends with this.
struct Piped {
    wire: tokio::io::Join<tokio::process::ChildStdout, tokio::process::ChildStdin>,
    _child: tokio::process::Child,
}

impl AsyncRead for Piped {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.wire).poll_read(cx, buf)
    }
}

impl AsyncWrite for Piped {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.wire).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.wire).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.wire).poll_shutdown(cx)
    }
}

/// One agent.
pub(crate) enum Client {
    Lines {
        stream: Box<dyn Wire>,
        buffer: Vec<u8>,
        id: u64,
        call: fn(u64) -> String,
    },
    Tonic(ToolsClient<Channel>),
    Nexus(Nexus),
    Http(Box<HttpClient>, http::Uri, u64),
    Door(http1::SendRequest<Full<bytes::Bytes>>, u64),
}

impl Client {
    /// One call, and its answer.
    pub(crate) async fn call(&mut self) {
        match self {
            Self::Lines {
                stream,
                buffer,
                id,
                call,
            } => {
                *id += 1;
                let line = call(*id) + "\n";
                stream.write_all(line.as_bytes()).await.unwrap();
                // The daemon has news of its servers too.
                loop {
                    read_line(stream, buffer).await;
                    if buffer.windows(5).any(|w| w == b"hello") {
                        break;
                    }
                }
            }
            Self::Tonic(client) => {
                let request = v1::ToolsCallRequest {
                    name: "demo__echo".to_owned(),
                    arguments: bytes::Bytes::from_static(ARGUMENTS),
                };
                let answer = client.call(request).await.unwrap().into_inner();
                assert_eq!(answer.result, ARGUMENTS);
            }
            Self::Http(client, url, id) => {
                *id += 1;
                let answer = post(client, url, modern_call(*id).into()).await;
                assert!(answer.windows(5).any(|w| w == b"hello"));
            }
            Self::Door(sender, id) => {
                *id += 1;
                let body = modern_call(*id).replace("\"echo\"", "\"demo__echo\"");
                let request = posted("http://x/mcp".parse().unwrap(), "demo__echo", body.into());
                let answer = sender.send_request(request).await.unwrap().into_body();
                let answer = answer.collect().await.unwrap().to_bytes();
                assert!(answer.windows(5).any(|w| w == b"hello"));
            }
            Self::Nexus(nexus) => {
                let arguments = Arguments::from_raw(ARGUMENTS);
                let answer = nexus.tools().call("demo__echo", arguments).await.unwrap();
                assert!(answer.raw().as_str().contains("hello"));
            }
        }
    }
}

fn legacy_echo(id: u64) -> String {
    legacy_call(id, "echo")
}

fn legacy_demo_echo(id: u64) -> String {
    legacy_call(id, "demo__echo")
}

fn legacy_call(id: u64, name: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{name}","arguments":{{"message":"hello"}}}}}}"#
    )
}

async fn read_line(stream: &mut Box<dyn Wire>, buffer: &mut Vec<u8>) {
    buffer.clear();
    while buffer.last() != Some(&b'\n') {
        assert!(stream.read_buf(buffer).await.unwrap() > 0);
    }
}
