//! The wire itself, as a stranger's gRPC client sees it.

use crate::support::{Daemon, Home};
use hyper_util::rt::TokioIo;
use nexus_proto::endpoint::Endpoint;
use tonic::{Code, transport::Channel};
use tonic_health::pb::{HealthCheckRequest, health_client::HealthClient};
use tonic_reflection::pb::v1::{
    ServerReflectionRequest, server_reflection_client::ServerReflectionClient,
    server_reflection_request::MessageRequest, server_reflection_response::MessageResponse,
};

async fn channel(daemon: &Daemon) -> Channel {
    let endpoint = Endpoint::resolve(Some(&daemon.home.socket())).unwrap();
    let connect = move |_| {
        let endpoint = endpoint.clone();
        async move { endpoint.connect().await.map(TokioIo::new) }
    };
    tonic::transport::Endpoint::from_static("http://nexus")
        .connect_with_connector(tower::service_fn(connect))
        .await
        .unwrap()
}

#[tokio::test]
async fn reflection_lists_the_services() {
    let daemon = Home::new().start();
    let mut client = ServerReflectionClient::new(channel(&daemon).await);
    let ask = ServerReflectionRequest {
        host: String::new(),
        message_request: Some(MessageRequest::ListServices(String::new())),
    };
    let answers = client
        .server_reflection_info(tokio_stream::once(ask))
        .await
        .unwrap();
    let answer = answers.into_inner().message().await.unwrap().unwrap();
    let Some(MessageResponse::ListServicesResponse(list)) = answer.message_response else {
        panic!("{answer:?}");
    };
    let names: Vec<&str> = list
        .service
        .iter()
        .map(|service| service.name.as_str())
        .collect();
    for name in [
        "nexus.v1.Servers",
        "nexus.v1.Tools",
        "nexus.v1.Daemon",
        "grpc.health.v1.Health",
    ] {
        assert!(names.contains(&name), "{names:?}");
    }
}

#[tokio::test]
async fn health_is_told_for_the_whole_and_for_each_service() {
    let daemon = Home::new().start();
    let mut client = HealthClient::new(channel(&daemon).await);
    for service in ["", "nexus.v1.Tools", "nexus.v1.Servers", "nexus.v1.Daemon"] {
        let request = HealthCheckRequest {
            service: service.into(),
        };
        let answer = client.check(request).await.unwrap().into_inner();
        assert_eq!(answer.status, 1, "{service}");
    }
    let request = HealthCheckRequest {
        service: "no.such".into(),
    };
    assert_eq!(
        client.check(request).await.unwrap_err().code(),
        Code::NotFound
    );
}

#[tokio::test]
async fn an_unknown_method_is_unimplemented() {
    let daemon = Home::new().start();
    let mut grpc = tonic::client::Grpc::new(channel(&daemon).await);
    grpc.ready().await.unwrap();
    let path = http::uri::PathAndQuery::from_static("/nexus.v1.Tools/Destroy");
    let codec = tonic_prost::ProstCodec::<(), ()>::default();
    let error = grpc
        .unary(tonic::Request::new(()), path, codec)
        .await
        .unwrap_err();
    assert_eq!(error.code(), Code::Unimplemented);
}
