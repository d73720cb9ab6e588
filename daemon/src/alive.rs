//! Whether we really serve: asks ourselves, over our own endpoint, as a client would. A timer alone would
//! go on beating in a daemon that lets nobody in.

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::{Request, client::conn::http2, header::CONTENT_TYPE};
use hyper_util::rt::{TokioExecutor, TokioIo};
use nexus_proto::endpoint::Endpoint;
use std::io;

/// An empty message of gRPC: not compressed, no bytes.
const EMPTY: &[u8] = &[0; 5];

/// Asks the health service whether it is well.
pub async fn check(endpoint: &Endpoint) -> io::Result<()> {
    let stream = endpoint.connect().await?;
    let (mut sender, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
        .await
        .map_err(io::Error::other)?;
    let connection = tokio::spawn(connection);
    let answered = async {
        let request = Request::post("http://localhost/grpc.health.v1.Health/Check")
            .header(CONTENT_TYPE, "application/grpc")
            .header("te", "trailers")
            .body(Full::new(Bytes::from_static(EMPTY)))
            .map_err(io::Error::other)?;
        let response = sender.send_request(request).await;
        let body = response.map_err(io::Error::other)?.into_body().collect();
        let body = body.await.map_err(io::Error::other)?;
        let status = body
            .trailers()
            .and_then(|trailers| trailers.get("grpc-status"));
        match status {
            Some(status) if status == "0" => Ok(()),
            status => Err(io::Error::other(format!("it answered {status:?}"))),
        }
    }
    .await;
    connection.abort();
    answered
}
