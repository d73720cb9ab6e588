//! Fakes of the services for resources, prompts and completions.

use super::World;
use nexus_proto::{
    reason::{Failure, Reason},
    v1::{
        self, completions_complete_request::Reference, completions_server, prompts_server,
        resources_server, resources_subscribe_response::Event,
    },
};
use std::pin::Pin;
use tokio_stream::Stream;
use tonic::{Request, Response, Status};

type Answer<T> = Result<Response<T>, Status>;

fn missing() -> Vec<v1::MissingServer> {
    vec![v1::MissingServer {
        server: "broken".into(),
        reason: "CRASH_LOOP".into(),
        message: "it keeps ending".into(),
    }]
}

#[tonic::async_trait]
impl resources_server::Resources for World {
    type SubscribeStream =
        Pin<Box<dyn Stream<Item = Result<v1::ResourcesSubscribeResponse, Status>> + Send>>;

    async fn list(
        &self,
        request: Request<v1::ResourcesListRequest>,
    ) -> Answer<v1::ResourcesListResponse> {
        let server = request.into_inner().server;
        Ok(Response::new(v1::ResourcesListResponse {
            resources: vec![v1::Resource {
                server: if server.is_empty() { "Demo".into() } else { server },
                uri: "demo://notes".into(),
                definition: r#"{"uri":"demo://notes","name":"notes","mimeType":"text/plain","size":12, "n":1e400}"#.into(),
            }],
            missing: missing(),
        }))
    }

    async fn list_templates(
        &self,
        _: Request<v1::ResourcesListTemplatesRequest>,
    ) -> Answer<v1::ResourcesListTemplatesResponse> {
        Ok(Response::new(v1::ResourcesListTemplatesResponse {
            templates: vec![v1::ResourceTemplate {
                server: "Demo".into(),
                uri_template: "demo://{day}".into(),
                definition: r#"{"name":"day","title":"A day"}"#.into(),
            }],
            missing: missing(),
        }))
    }

    async fn read(
        &self,
        request: Request<v1::ResourcesReadRequest>,
    ) -> Answer<v1::ResourcesReadResponse> {
        let request = request.into_inner();
        if request.uri == "demo://absent" {
            return Err(Failure::new(Reason::ResourceNotFound, "no such resource").into());
        }
        let uri = &request.uri;
        let result = format!(
            r#"{{ "contents":[{{"uri":"{uri}","text":"hi"}},{{"uri":"{uri}/b","blob":"AAE="}}], "n":1e400 }}"#
        );
        Ok(Response::new(v1::ResourcesReadResponse {
            result: result.into(),
            server: match request.server.as_str() {
                "" => "Demo".into(),
                server => server.into(),
            },
        }))
    }

    async fn subscribe(
        &self,
        request: Request<v1::ResourcesSubscribeRequest>,
    ) -> Answer<Self::SubscribeStream> {
        let request = request.into_inner();
        let event = |event| Ok(v1::ResourcesSubscribeResponse { event });
        let updated = |maybe| {
            let uri = request.uri.clone();
            Some(Event::Updated(v1::ResourceUpdated { uri, maybe }))
        };
        let server = request.server.clone();
        let subscribed = Event::Subscribed(v1::ResourceSubscribed { server });
        let events = [Some(subscribed), updated(false), None, updated(true)];
        let events = events.map(event);
        Ok(Response::new(Box::pin(tokio_stream::iter(events))))
    }
}

#[tonic::async_trait]
impl prompts_server::Prompts for World {
    async fn list(&self, _: Request<v1::PromptsListRequest>) -> Answer<v1::PromptsListResponse> {
        Ok(Response::new(v1::PromptsListResponse {
            prompts: vec![v1::Prompt {
                name: "demo__review".into(),
                server: "Demo".into(),
                prompt: "review".into(),
                definition: r#"{"name":"review","arguments":[{"name":"code","required":true}]}"#
                    .into(),
            }],
            missing: missing(),
        }))
    }

    async fn get(&self, request: Request<v1::PromptsGetRequest>) -> Answer<v1::PromptsGetResponse> {
        let request = request.into_inner();
        let given = String::from_utf8(request.arguments.to_vec()).unwrap();
        let text = serde_json::Value::from(format!("{}: {given}", request.name));
        let result = format!(
            r#"{{"description":"d","messages":[{{"role":"user","content":{{"type":"text","text":{text}}}}}], "n":1e400}}"#
        );
        let result = result.into();
        Ok(Response::new(v1::PromptsGetResponse { result }))
    }
}

#[tonic::async_trait]
impl completions_server::Completions for World {
    async fn complete(
        &self,
        request: Request<v1::CompletionsCompleteRequest>,
    ) -> Answer<v1::CompletionsCompleteResponse> {
        let request = request.into_inner();
        let of = match request.reference.unwrap() {
            Reference::Prompt(name) => name,
            Reference::Template(template) => {
                format!("{} of {}", template.uri_template, template.server)
            }
        };
        let mut context: Vec<_> = request.context.into_iter().collect();
        context.sort();
        let values =
            serde_json::json!([of, request.argument, request.value, format!("{context:?}")]);
        let result = format!(r#"{{"completion":{{"values":{values},"total":9,"hasMore":true}}}}"#);
        let result = result.into();
        Ok(Response::new(v1::CompletionsCompleteResponse { result }))
    }
}
