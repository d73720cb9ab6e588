//! Makes connections to one server, whatever URL is asked for: nothing that a server says leads elsewhere.

use super::{address::Addresses, spec::Endpoint};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use futures_util::{StreamExt as _, future::BoxFuture, stream::FuturesUnordered};
use http::Uri;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::{
    client::legacy::connect::{Connected, Connection},
    rt::TokioIo,
};
use nexus_proto::linger::{self, Passing};
use rustls::pki_types::ServerName;
use std::{
    io,
    net::SocketAddr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    net::TcpStream,
    time::{sleep, timeout},
};
use tokio_rustls::TlsConnector;
use tower_service::Service;

/// An address that does not answer for so long has the next one tried as well.
const STAGGER: Duration = Duration::from_millis(250);

/// A peer that says nothing for so long is asked whether it is there, and so often.
const KEEPALIVE: Duration = Duration::from_secs(20);

/// The longest answer of a proxy.
const MAX_PROXY_ANSWER: usize = 8192;

/// Makes connections to one server.
#[derive(Debug, Clone)]
pub(super) struct Connector(pub(super) Arc<Way>);

/// The way to one server.
pub(super) struct Way {
    pub(super) to: Endpoint,
    pub(super) proxy: Option<Endpoint>,
    pub(super) addresses: Arc<super::Memory>,
    pub(super) tls: Option<TlsConnector>,
    pub(super) timeout: Duration,
}

impl std::fmt::Debug for Way {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Way({})", self.to)
    }
}

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// A connection.
pub(super) struct Conn {
    io: TokioIo<Box<dyn Stream>>,
    h2: bool,
}

impl Service<Uri> for Connector {
    type Response = Conn;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<Conn>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        let way = Arc::clone(&self.0);
        Box::pin(async move {
            let connecting = timeout(way.timeout, way.connect()).await;
            connecting.unwrap_or_else(|_| {
                let message = format!("no connection within {:?}", way.timeout);
                Err(io::Error::new(io::ErrorKind::TimedOut, message))
            })
        })
    }
}

impl Way {
    async fn connect(&self) -> io::Result<Conn> {
        let via = self.proxy.as_ref().unwrap_or(&self.to);
        let tcp = reach(&self.addresses.addresses, via).await?;
        let mut tcp = Passing::new(linger::Way::Up, tcp);
        if self.proxy.is_some() {
            self.tunnel(via, &mut tcp).await?;
        }
        let Some(tls) = &self.tls else {
            return Ok(Conn {
                io: TokioIo::new(Box::new(tcp)),
                h2: false,
            });
        };
        let name = ServerName::try_from(self.to.host.clone()).map_err(io::Error::other)?;
        let stream = tls.connect(name, tcp).await?;
        let h2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
        Ok(Conn {
            io: TokioIo::new(Box::new(stream)),
            h2,
        })
    }

    /// Has a proxy connect us.
    async fn tunnel(&self, proxy: &Endpoint, tcp: &mut Passing<TcpStream>) -> io::Result<()> {
        let to = format!("{}:{}", self.to.host, self.to.port);
        let mut request = format!("CONNECT {to} HTTP/1.1\r\nHost: {to}\r\n");
        if let Some(user) = &proxy.user {
            let shown = STANDARD.encode(user.expose());
            request += &format!("Proxy-Authorization: Basic {shown}\r\n");
        }
        request += "\r\n";
        tcp.write_all(request.as_bytes()).await?;
        let mut answer = Vec::new();
        while !answer.ends_with(b"\r\n\r\n") && answer.len() < MAX_PROXY_ANSWER {
            // What follows belongs to the server, and is not to be read here.
            answer.push(tcp.read_u8().await?);
        }
        let answer = String::from_utf8_lossy(&answer);
        let status = answer.split(' ').nth(1).unwrap_or_default();
        if status == "200" {
            return Ok(());
        }
        let message = format!("the proxy {proxy} does not connect us: {status}");
        Err(io::Error::new(io::ErrorKind::ConnectionRefused, message))
    }
}

/// A connection to the first address that answers. They are tried one after the other, each before the one
/// before it has failed for good.
async fn reach(addresses: &Addresses, to: &Endpoint) -> io::Result<TcpStream> {
    let found = addresses.find(&to.host, to.port).await?;
    let mut rest = found.into_iter();
    let mut trying = FuturesUnordered::new();
    let mut failed = None;
    loop {
        if let Some(next) = rest.next() {
            trying.push(connect(next));
        }
        let more = rest.len() > 0;
        tokio::select! {
            Some(connected) = trying.next() => match connected {
                Ok(stream) => return Ok(stream),
                Err(error) => failed = Some(error),
            },
            () = sleep(STAGGER), if more => {}
            else => {
                let nowhere = || io::Error::new(io::ErrorKind::NotFound, "there is no address");
                return Err(failed.unwrap_or_else(nowhere));
            }
        }
    }
}

async fn connect(to: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(to).await.map_err(|error| {
        let message = format!("cannot connect to {to}: {error}");
        io::Error::new(error.kind(), message)
    })?;
    stream.set_nodelay(true)?;
    // Whoever is unplugged says no goodbye.
    let keepalive = socket2::TcpKeepalive::new()
        .with_time(KEEPALIVE)
        .with_interval(KEEPALIVE / 2);
    socket2::SockRef::from(&stream).set_tcp_keepalive(&keepalive)?;
    Ok(stream)
}

impl Connection for Conn {
    fn connected(&self) -> Connected {
        let connected = Connected::new();
        if self.h2 {
            connected.negotiated_h2()
        } else {
            connected
        }
    }
}

impl Read for Conn {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(cx, buf)
    }
}

impl Write for Conn {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write_vectored(cx, bufs)
    }
}
