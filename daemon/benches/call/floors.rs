//! The floors: as little as a relay and a gRPC server can do.

use crate::peers::{http_client, post};
use bytes::BytesMut;
use nexus_proto::v1::{self, tools_server};
use std::{os::fd::AsFd as _, process::Stdio};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{UnixListener, UnixStream},
};
use tokio_stream::{Stream, wrappers::UnixListenerStream};
use tonic::{Request, Response, Status};

fn single_threaded() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
}

/// Copies bytes between a socket and a server, on one thread.
pub(crate) fn relay(socket: &str) {
    single_threaded().block_on(async {
        let listener = UnixListener::bind(socket).unwrap();
        let (stream, _) = listener.accept().await.unwrap();
        let mut server = tokio::process::Command::new(env!("CARGO_BIN_EXE_nexusd"))
            .arg("demo-server")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let (mut input, mut output) = (server.stdin.take().unwrap(), server.stdout.take().unwrap());
        let (mut from, mut to) = stream.into_split();
        tokio::select! {
            _ = tokio::io::copy(&mut from, &mut input) => {}
            _ = tokio::io::copy(&mut output, &mut to) => {}
        }
    });
}

/// Copies bytes between standard input and output and a socket, on one thread.
pub(crate) fn copier(socket: &str) {
    single_threaded().block_on(async {
        let stream = UnixStream::connect(socket).await.unwrap();
        let (mut from, mut to) = stream.into_split();
        let pipe = |fd: std::os::fd::BorrowedFd<'_>| fd.try_clone_to_owned().unwrap();
        let input = pipe(std::io::stdin().as_fd());
        let output = pipe(std::io::stdout().as_fd());
        let mut input = tokio::net::unix::pipe::Receiver::from_owned_fd(input).unwrap();
        let mut output = tokio::net::unix::pipe::Sender::from_owned_fd(output).unwrap();
        tokio::select! {
            _ = tokio::io::copy(&mut from, &mut output) => {}
            _ = tokio::io::copy(&mut input, &mut to) => {}
        }
    });
}

/// Posts each line that comes over a socket, and writes down the answer, on one thread.
pub(crate) fn bridge(socket: &str, url: &str) {
    let url: http::Uri = url.parse().unwrap();
    single_threaded().block_on(async {
        let listener = UnixListener::bind(socket).unwrap();
        let client = http_client();
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let (client, url) = (client.clone(), url.clone());
            tokio::spawn(async move {
                let mut buffer = BytesMut::with_capacity(64 * 1024);
                while stream
                    .read_buf(&mut buffer)
                    .await
                    .is_ok_and(|read| read > 0)
                {
                    // One call at a time is all that is asked of it.
                    if buffer.last() == Some(&b'\n') {
                        let line = buffer.split().freeze();
                        let answer = post(&client, &url, line.slice(..line.len() - 1)).await;
                        let mut answer = Vec::from(answer);
                        answer.push(b'\n');
                        stream.write_all(&answer).await.unwrap();
                    }
                }
            });
        }
    });
}

/// Answers a call with its own arguments.
pub(crate) fn tonic(socket: &str) {
    single_threaded().block_on(async {
        let listener = UnixListener::bind(socket).unwrap();
        tonic::transport::Server::builder()
            .add_service(tools_server::ToolsServer::new(Echo))
            .serve_with_incoming(UnixListenerStream::new(listener))
            .await
            .unwrap();
    });
}

struct Echo;

type Nothing =
    std::pin::Pin<Box<dyn Stream<Item = Result<v1::ToolsCallStreamResponse, Status>> + Send>>;

#[tonic::async_trait]
impl tools_server::Tools for Echo {
    async fn call(
        &self,
        request: Request<v1::ToolsCallRequest>,
    ) -> Result<Response<v1::ToolsCallResponse>, Status> {
        let result = request.into_inner().arguments;
        Ok(Response::new(v1::ToolsCallResponse { result }))
    }

    async fn list(
        &self,
        _: Request<v1::ToolsListRequest>,
    ) -> Result<Response<v1::ToolsListResponse>, Status> {
        Err(Status::unimplemented("a floor"))
    }

    async fn get(
        &self,
        _: Request<v1::ToolsGetRequest>,
    ) -> Result<Response<v1::ToolsGetResponse>, Status> {
        Err(Status::unimplemented("a floor"))
    }

    async fn search(
        &self,
        _: Request<v1::ToolsSearchRequest>,
    ) -> Result<Response<v1::ToolsSearchResponse>, Status> {
        Err(Status::unimplemented("a floor"))
    }

    type CallStreamStream = Nothing;

    async fn call_stream(
        &self,
        _: Request<v1::ToolsCallStreamRequest>,
    ) -> Result<Response<Nothing>, Status> {
        Err(Status::unimplemented("a floor"))
    }
}
