//! A daemon whose servers offer everything and ask on command.

use super::{Run, nexusctl};
use nexus_proto::{
    reason::{Failure, Reason},
    v1::{
        agents_server::AgentsServer, completions_server::CompletionsServer,
        prompts_server::PromptsServer, resources_server::ResourcesServer,
        servers_server::ServersServer, tools_server::ToolsServer, *,
    },
};
use std::{
    collections::VecDeque,
    path::PathBuf,
    pin::Pin,
    process::Command,
    sync::{Arc, Mutex},
    time::SystemTime,
};
use tempfile::TempDir;
use tokio::{net::UnixListener, runtime::Runtime, sync::mpsc};
use tokio_stream::{
    Stream, StreamExt as _,
    wrappers::{ReceiverStream, UnixListenerStream},
};
use tonic::{Request, Response, Status, Streaming, transport::Server as GrpcServer};

type Answer<T> = Result<Response<T>, Status>;
type Events<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

const FORM: &str = r#"{"message":"Who are you?\u001b[2J","requestedSchema":{"type":"object",
    "properties":{"name":{"type":"string","title":"Your name"},
        "color":{"type":"string","oneOf":[{"const":"r","title":"Red"},{"const":"g","title":"Green"}],"default":"g"},
        "age":{"type":"integer","minimum":0}},
    "required":["name","color"]}}"#;
const PAGE: &str =
    r#"{"mode":"url","message":"Log in","url":"https://x.example/login","elicitationId":"1"}"#;

/// A daemon that ends with the test.
pub(crate) struct Fake {
    home: TempDir,
    world: Arc<World>,
    _runtime: Runtime,
}

#[derive(Default)]
struct World {
    hello: Mutex<Option<AgentHello>>,
    agent: Mutex<Option<mpsc::Sender<Result<AgentsAttachResponse, Status>>>>,
    answers: Mutex<VecDeque<AgentAnswer>>,
    answered: tokio::sync::Notify,
    changed_its_mind: tokio::sync::Notify,
}

impl Fake {
    pub(crate) fn start() -> Self {
        let home = tempfile::tempdir().unwrap();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let world: Arc<World> = Arc::default();
        let listener = {
            let _inside = runtime.enter();
            UnixListener::bind(home.path().join("x.sock")).unwrap()
        };
        let served = Served(Arc::clone(&world));
        let router = GrpcServer::builder()
            .add_service(ToolsServer::new(served.clone()))
            .add_service(ServersServer::new(served.clone()))
            .add_service(ResourcesServer::new(served.clone()))
            .add_service(PromptsServer::new(served.clone()))
            .add_service(CompletionsServer::new(served.clone()))
            .add_service(AgentsServer::new(served));
        runtime.spawn(router.serve_with_incoming(UnixListenerStream::new(listener)));
        Self {
            home,
            world,
            _runtime: runtime,
        }
    }

    fn socket(&self) -> PathBuf {
        self.home.path().join("x.sock")
    }

    /// `nexusctl` for this daemon.
    pub(crate) fn ctl(&self, args: &[&str]) -> Command {
        let mut command = nexusctl();
        command.arg("--socket").arg(self.socket()).args(args);
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Run {
        Run::of(&mut self.ctl(args))
    }

    /// The server that asks withdraws its question and asks another.
    pub(crate) fn change_its_mind(&self) {
        self.world.changed_its_mind.notify_one();
    }

    /// What the last agent said of itself, if one came.
    pub(crate) fn hello(&self) -> Option<AgentHello> {
        self.world.hello.lock().unwrap().clone()
    }
}

#[derive(Clone)]
struct Served(Arc<World>);

impl Served {
    async fn tell(&self, message: agents_attach_response::Message) -> Result<(), Status> {
        let agent = self.0.agent.lock().unwrap().clone();
        let failure = Failure::new(Reason::CannotAnswer, "the server asks, and nobody answers");
        let agent = agent.ok_or_else(|| Status::from(failure))?;
        let message = Some(message);
        let _ = agent.send(Ok(AgentsAttachResponse { message })).await;
        Ok(())
    }

    async fn ask(&self, params: &'static str) -> Result<(), Status> {
        self.tell(agents_attach_response::Message::Question(AgentQuestion {
            id: 1,
            server: "Demo".into(),
            method: "elicitation/create".into(),
            params: params.into(),
        }))
        .await
    }

    async fn answer(&self) -> String {
        loop {
            let answer = self.0.answers.lock().unwrap().pop_front();
            if let Some(answer) = answer {
                return match answer.outcome.unwrap() {
                    agent_answer::Outcome::Result(json) => {
                        String::from_utf8(json.to_vec()).unwrap()
                    }
                    agent_answer::Outcome::Refusal(refusal) => {
                        format!("refused: {} {}", refusal.code, refusal.message)
                    }
                };
            }
            self.0.answered.notified().await;
        }
    }

    /// The text that a tool comes to.
    async fn work(&self, name: &str) -> Result<String, Status> {
        match name {
            "demo.form" => self.ask(FORM).await?,
            "demo.page" => self.ask(PAGE).await?,
            "demo.fickle" => {
                self.ask(FORM).await?;
                let question = 1;
                let withdrawn = AgentWithdrawn { question };
                let withdrawn = agents_attach_response::Message::Withdrawn(withdrawn);
                self.0.changed_its_mind.notified().await;
                self.tell(withdrawn).await?;
                self.ask(PAGE).await?;
            }
            name => return Ok(format!("{name} is done")),
        }
        Ok(self.answer().await)
    }
}

fn result(text: &str) -> String {
    let text = serde_json::Value::from(text);
    format!(r#"{{"content":[{{"type":"text","text":{text}}}]}}"#)
}

fn missing() -> Vec<MissingServer> {
    vec![MissingServer {
        server: "broken".into(),
        reason: "CRASH_LOOP".into(),
        message: "it keeps ending".into(),
    }]
}

#[tonic::async_trait]
impl tools_server::Tools for Served {
    type CallStreamStream = Events<ToolsCallStreamResponse>;

    async fn list(&self, _: Request<ToolsListRequest>) -> Answer<ToolsListResponse> {
        Err(Status::unimplemented("list"))
    }

    async fn get(&self, _: Request<ToolsGetRequest>) -> Answer<ToolsGetResponse> {
        Err(Status::unimplemented("get"))
    }

    async fn search(&self, _: Request<ToolsSearchRequest>) -> Answer<ToolsSearchResponse> {
        Err(Status::unimplemented("search"))
    }

    async fn call(&self, request: Request<ToolsCallRequest>) -> Answer<ToolsCallResponse> {
        let text = self.work(&request.into_inner().name).await?;
        let result = result(&text).into();
        Ok(Response::new(ToolsCallResponse { result }))
    }

    async fn call_stream(
        &self,
        request: Request<ToolsCallStreamRequest>,
    ) -> Answer<Self::CallStreamStream> {
        use tools_call_stream_response::Event;
        let request = request.into_inner();
        let log = (!request.log_level.is_empty()).then(|| {
            Event::Log(LogMessage {
                level: request.log_level.clone(),
                logger: "worker".into(),
                data: r#"{"n":1e400}"#.into(),
            })
        });
        let work = self.clone();
        let last = async move {
            let text = work.work(&request.name).await?;
            Ok(Event::Result(result(&text).into()))
        };
        let (sender, events) = mpsc::channel(4);
        tokio::spawn(async move {
            for event in log.into_iter().map(Ok) {
                let _ = sender.send(event).await;
            }
            let _ = sender.send(last.await).await;
        });
        let events = ReceiverStream::new(events)
            .map(|event| event.map(|event| ToolsCallStreamResponse { event: Some(event) }));
        Ok(Response::new(Box::pin(events)))
    }
}

#[tonic::async_trait]
impl servers_server::Servers for Served {
    type WatchStream = Events<ServersWatchResponse>;
    type LogsStream = Events<ServersLogsResponse>;

    async fn list(&self, _: Request<ServersListRequest>) -> Answer<ServersListResponse> {
        let servers = vec![demo()];
        Ok(Response::new(ServersListResponse { servers }))
    }

    async fn get(&self, _: Request<ServersGetRequest>) -> Answer<ServersGetResponse> {
        let server = Some(demo());
        Ok(Response::new(ServersGetResponse { server }))
    }

    async fn start(&self, _: Request<ServersStartRequest>) -> Answer<ServersStartResponse> {
        Err(Status::unimplemented("start"))
    }

    async fn stop(&self, _: Request<ServersStopRequest>) -> Answer<ServersStopResponse> {
        Err(Status::unimplemented("stop"))
    }

    async fn restart(&self, _: Request<ServersRestartRequest>) -> Answer<ServersRestartResponse> {
        Err(Status::unimplemented("restart"))
    }

    async fn refresh(&self, _: Request<ServersRefreshRequest>) -> Answer<ServersRefreshResponse> {
        Err(Status::unimplemented("refresh"))
    }

    async fn ping(&self, _: Request<ServersPingRequest>) -> Answer<ServersPingResponse> {
        Err(Status::unimplemented("ping"))
    }

    async fn watch(&self, _: Request<ServersWatchRequest>) -> Answer<Self::WatchStream> {
        Err(Status::unimplemented("watch"))
    }

    async fn logs(&self, _: Request<ServersLogsRequest>) -> Answer<Self::LogsStream> {
        Err(Status::unimplemented("logs"))
    }

    async fn set_log_level(
        &self,
        request: Request<ServersSetLogLevelRequest>,
    ) -> Answer<ServersSetLogLevelResponse> {
        if request.into_inner().server == "mute" {
            let failure = Failure::new(Reason::NotSupported, "mute does not log for its client");
            return Err(failure.into());
        }
        Ok(Response::new(ServersSetLogLevelResponse {}))
    }
}

fn demo() -> Server {
    Server {
        name: "Demo".into(),
        slug: "demo".into(),
        state: ServerState::Ready.into(),
        tools: 1,
        resources: 3,
        resource_templates: 2,
        prompts: 4,
        ..Server::default()
    }
}

#[tonic::async_trait]
impl resources_server::Resources for Served {
    type SubscribeStream = Events<ResourcesSubscribeResponse>;

    async fn list(&self, request: Request<ResourcesListRequest>) -> Answer<ResourcesListResponse> {
        let server = request.into_inner().server;
        if server == "empty" {
            return Ok(Response::new(ResourcesListResponse::default()));
        }
        let resource = |uri: &str, definition: &'static str| Resource {
            server: "Demo".into(),
            uri: uri.into(),
            definition: definition.into(),
        };
        Ok(Response::new(ResourcesListResponse {
            resources: vec![
                resource(
                    "demo://notes",
                    r#"{"name":"notes","mimeType":"text/plain","size":2048,"description":"What I\nthink"}"#,
                ),
                resource("demo://logo", r#"{"name":"logo"}"#),
            ],
            missing: if server.is_empty() {
                missing()
            } else {
                Vec::new()
            },
        }))
    }

    async fn list_templates(
        &self,
        _: Request<ResourcesListTemplatesRequest>,
    ) -> Answer<ResourcesListTemplatesResponse> {
        Ok(Response::new(ResourcesListTemplatesResponse {
            templates: vec![ResourceTemplate {
                server: "Demo".into(),
                uri_template: "demo://days/{day}".into(),
                definition: r#"{"name":"day","title":"A day"}"#.into(),
            }],
            missing: missing(),
        }))
    }

    async fn read(&self, request: Request<ResourcesReadRequest>) -> Answer<ResourcesReadResponse> {
        let request = request.into_inner();
        let result = match request.uri.as_str() {
            "demo://notes" => {
                r#"{"contents":[{"uri":"demo://notes","text":"a \u001b[31mb"}], "n":1e400}"#
            }
            "demo://folder" => {
                r#"{"contents":[{"uri":"demo://1","text":"one"},{"uri":"demo://2","text":"two"}]}"#
            }
            "demo://logo" => {
                r#"{"contents":[{"uri":"demo://logo","mimeType":"image/png","blob":"AAH/"}]}"#
            }
            "demo://asks" => {
                self.ask(FORM).await?;
                self.answer().await;
                r#"{"contents":[{"uri":"demo://asks","text":"asked"}]}"#
            }
            _ => {
                return Err(
                    Failure::new(Reason::ResourceNotFound, "there is no such resource").into(),
                );
            }
        };
        Ok(Response::new(ResourcesReadResponse {
            result: result.into(),
            server: "Demo".into(),
        }))
    }

    async fn subscribe(
        &self,
        request: Request<ResourcesSubscribeRequest>,
    ) -> Answer<Self::SubscribeStream> {
        use resources_subscribe_response::Event;
        let uri = request.into_inner().uri;
        let updated = |maybe| {
            let uri = uri.clone();
            Event::Updated(ResourceUpdated { uri, maybe })
        };
        let server = "Demo".into();
        let subscribed = Event::Subscribed(ResourceSubscribed { server });
        let events = [subscribed, updated(false), updated(true), updated(false)];
        let events = events.map(|event| Ok(ResourcesSubscribeResponse { event: Some(event) }));
        // It goes on: only whoever subscribed ends it.
        let events = tokio_stream::iter(events).chain(tokio_stream::pending());
        Ok(Response::new(Box::pin(events)))
    }
}

#[tonic::async_trait]
impl prompts_server::Prompts for Served {
    async fn list(&self, request: Request<PromptsListRequest>) -> Answer<PromptsListResponse> {
        let server = request.into_inner().server;
        if !server.is_empty() && !server.eq_ignore_ascii_case("demo") {
            return Err(Failure::new(Reason::ServerNotFound, "there is no such server").into());
        }
        let definition = r#"{"name":"review","description":"Reviews code","arguments":[
            {"name":"code","description":"What to review","required":true},{"name":"style"}]}"#;
        Ok(Response::new(PromptsListResponse {
            prompts: vec![Prompt {
                name: "demo__review".into(),
                server: "Demo".into(),
                prompt: "review".into(),
                definition: definition.into(),
            }],
            missing: Vec::new(),
        }))
    }

    async fn get(&self, request: Request<PromptsGetRequest>) -> Answer<PromptsGetResponse> {
        let given = request.into_inner().arguments;
        let given = serde_json::Value::from(String::from_utf8(given.to_vec()).unwrap());
        let result = format!(
            r#"{{"messages":[{{"role":"user","content":{{"type":"text","text":{given}}}}},
                {{"role":"assistant","content":{{"type":"image","data":"AAAA","mimeType":"image/png"}}}}]}}"#
        );
        let result = result.into();
        Ok(Response::new(PromptsGetResponse { result }))
    }
}

#[tonic::async_trait]
impl completions_server::Completions for Served {
    async fn complete(
        &self,
        request: Request<CompletionsCompleteRequest>,
    ) -> Answer<CompletionsCompleteResponse> {
        use completions_complete_request::Reference;
        let request = request.into_inner();
        let of = match request.reference.unwrap() {
            Reference::Prompt(name) => name,
            Reference::Template(of) => format!("{}|{}", of.server, of.uri_template),
        };
        let context = format!("{:?}", request.context);
        let values = serde_json::json!([of, request.argument, request.value, context]);
        let result = format!(r#"{{"completion":{{"values":{values},"total":9}}}}"#);
        let result = result.into();
        Ok(Response::new(CompletionsCompleteResponse { result }))
    }
}

#[tonic::async_trait]
impl agents_server::Agents for Served {
    type AttachStream = Events<AgentsAttachResponse>;

    async fn attach(
        &self,
        request: Request<Streaming<AgentsAttachRequest>>,
    ) -> Answer<Self::AttachStream> {
        use agents_attach_request::Message;
        let mut says = request.into_inner();
        let Some(Message::Hello(hello)) = says.message().await?.unwrap().message else {
            return Err(Status::invalid_argument("who are you?"));
        };
        *self.0.hello.lock().unwrap() = Some(hello);
        let (agent, told) = mpsc::channel(4);
        *self.0.agent.lock().unwrap() = Some(agent);
        let agent = AgentAttached { agent: 1 };
        self.tell(agents_attach_response::Message::Attached(agent))
            .await?;
        let world = Arc::clone(&self.0);
        tokio::spawn(async move {
            while let Ok(Some(said)) = says.message().await {
                if let Some(Message::Answer(answer)) = said.message {
                    world.answers.lock().unwrap().push_back(answer);
                    world.answered.notify_one();
                }
            }
            *world.agent.lock().unwrap() = None;
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(told))))
    }

    async fn list(&self, _: Request<AgentsListRequest>) -> Answer<AgentsListResponse> {
        let capabilities = AgentCapabilities {
            sampling: true,
            sampling_tools: true,
            elicitation_form: true,
            roots: true,
            ..AgentCapabilities::default()
        };
        let agents = vec![
            Agent {
                id: 3,
                name: "claude-code".into(),
                level: "trusted".into(),
                holds: vec!["diary".into()],
                version: "2.1".into(),
                pid: Some(42),
                project: "/home/me/x".into(),
                capabilities: Some(capabilities),
                roots: vec![Root {
                    uri: "file:///home/me/x".into(),
                    name: String::new(),
                }],
                since: Some(SystemTime::now().into()),
                in_flight: 2,
                calls: 17,
                ..Agent::default()
            },
            Agent {
                id: 4,
                you: true,
                ..Agent::default()
            },
        ];
        Ok(Response::new(AgentsListResponse { agents }))
    }
}
