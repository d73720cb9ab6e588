//! The service `Resources`.

use super::{Context, caller, deadline, lists};
use crate::{
    mcp::{
        lists::{Definition, Kind},
        subscriptions::Event,
    },
    pool::{Listener, Server, key::Caller},
    router::{Read, keep_up},
    shutdown::Shutdown,
};
use nexus_proto::{
    reason::{Failure, Reason},
    v1::{self, resources_server, resources_subscribe_response::Event as Wire},
};
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status};

/// How many events may wait for a slow reader.
const EVENTS: usize = 16;

pub(super) struct Resources(pub(super) Arc<Context>);

#[tonic::async_trait]
impl resources_server::Resources for Resources {
    async fn list(
        &self,
        request: Request<v1::ResourcesListRequest>,
    ) -> Result<Response<v1::ResourcesListResponse>, Status> {
        let caller = caller::of(&self.0, &request);
        let servers = lists::servers(&self.0, &request.into_inner().server, &caller)?;
        let wire = |server: &str, entry: &Definition| v1::Resource {
            server: server.to_owned(),
            uri: entry.key.clone(),
            definition: entry.json.clone(),
        };
        let (resources, missing) = gather(&servers, &caller, Kind::Resources, wire).await;
        Ok(Response::new(v1::ResourcesListResponse {
            resources,
            missing,
        }))
    }

    async fn list_templates(
        &self,
        request: Request<v1::ResourcesListTemplatesRequest>,
    ) -> Result<Response<v1::ResourcesListTemplatesResponse>, Status> {
        let caller = caller::of(&self.0, &request);
        let servers = lists::servers(&self.0, &request.into_inner().server, &caller)?;
        let wire = |server: &str, entry: &Definition| v1::ResourceTemplate {
            server: server.to_owned(),
            uri_template: entry.key.clone(),
            definition: entry.json.clone(),
        };
        let (templates, missing) = gather(&servers, &caller, Kind::Templates, wire).await;
        Ok(Response::new(v1::ResourcesListTemplatesResponse {
            templates,
            missing,
        }))
    }

    async fn read(
        &self,
        request: Request<v1::ResourcesReadRequest>,
    ) -> Result<Response<v1::ResourcesReadResponse>, Status> {
        let deadline = deadline::of(request.metadata());
        let caller = caller::of(&self.0, &request);
        let v1::ResourcesReadRequest { server, uri } = request.into_inner();
        let read = Read {
            caller: &caller,
            server: &server,
            uri: &uri,
            deadline,
            round: None,
        };
        let (result, server) = self.0.router.read(read).await?;
        Ok(Response::new(v1::ResourcesReadResponse { result, server }))
    }

    type SubscribeStream = ReceiverStream<Result<v1::ResourcesSubscribeResponse, Status>>;

    async fn subscribe(
        &self,
        request: Request<v1::ResourcesSubscribeRequest>,
    ) -> Result<Response<Self::SubscribeStream>, Status> {
        let caller = caller::of(&self.0, &request);
        let v1::ResourcesSubscribeRequest { server, uri } = request.into_inner();
        let router = &self.0.router;
        let listener = router.subscribe(&caller, &server, &uri).await?;
        let (events, stream) = mpsc::channel(EVENTS);
        let shutdown = self.0.shutdown.clone();
        tokio::spawn(tell(listener, shutdown, events));
        Ok(Response::new(ReceiverStream::new(stream)))
    }
}

async fn gather<T>(
    servers: &[Arc<Server>],
    caller: &Caller,
    kind: Kind,
    wire: impl Fn(&str, &Definition) -> T,
) -> (Vec<T>, Vec<v1::MissingServer>) {
    let list = |server: &Arc<Server>| {
        let list = server.list_for(caller, kind)?;
        let name = server.config().name.clone();
        Some(
            list.entries
                .iter()
                .map(|entry| wire(&name, entry))
                .collect(),
        )
    };
    lists::gather(servers, caller, kind, list).await
}

/// Tells what happens to a resource, until nobody listens or there is no hope for its server.
async fn tell(
    listener: Listener,
    shutdown: Shutdown,
    events: mpsc::Sender<Result<v1::ResourcesSubscribeResponse, Status>>,
) {
    let Listener {
        mut subscription,
        keeper,
    } = listener;
    let server = keeper.server();
    let name = server
        .map(|server| server.config().name.clone())
        .unwrap_or_default();
    let mut keep_up = std::pin::pin!(keep_up(&keeper));
    loop {
        let event = tokio::select! {
            biased;
            () = events.closed() => return,
            () = shutdown.api_closes() => return,
            event = subscription.next() => event,
            failure = &mut keep_up => Some(Event::Refused(failure)),
        };
        let updated = |uri: String, maybe| Wire::Updated(v1::ResourceUpdated { uri, maybe });
        let event = match event {
            Some(Event::Subscribed) => Ok(Wire::Subscribed(v1::ResourceSubscribed {
                server: name.clone(),
            })),
            Some(Event::Updated(uri)) => Ok(updated(uri, false)),
            Some(Event::MayHaveChanged) => Ok(updated(subscription.uri().to_owned(), true)),
            Some(Event::Refused(failure)) => Err(failure.with(|details| {
                details.server = Some(name.clone());
            })),
            None => {
                let message = "the subscription has ended: subscribe again";
                Err(Failure::new(Reason::Internal, message))
            }
        };
        let is_end = event.is_err();
        let event = event.map(|event| v1::ResourcesSubscribeResponse { event: Some(event) });
        if events.send(event.map_err(Status::from)).await.is_err() || is_end {
            return;
        }
    }
}
