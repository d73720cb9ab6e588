//! The SDK's client against the test server: what the other tests lean on is somebody else's idea of MCP too.
// Sampling, roots and logging are on their way out of the protocol, and still in it.
#![allow(deprecated)]

use crate::support::{NEXUSD, eventually};
use rmcp::{
    ClientHandler, ClientServiceExt as _, ErrorData, RoleClient,
    model::*,
    service::{ClientLifecycleMode, NotificationContext, RequestContext, RunningService},
};
use serde_json::{Value, json};
use std::{
    process::Stdio,
    sync::{Arc, Mutex},
};
use tokio::process::{Child, Command};

const README: &str = "file:///readme.txt";

/// A client that can be asked everything, and notes what it is told.
#[derive(Clone, Default)]
struct Listener {
    heard: Arc<Mutex<Vec<String>>>,
}

impl Listener {
    fn note(&self, what: impl Into<String>) {
        self.heard.lock().unwrap().push(what.into());
    }

    fn has_heard(&self, what: &str) -> bool {
        self.heard.lock().unwrap().iter().any(|it| it == what)
    }
}

impl ClientHandler for Listener {
    fn get_info(&self) -> ClientConfig {
        let capabilities = ClientCapabilities::builder()
            .enable_sampling()
            .enable_elicitation()
            .enable_roots()
            .build();
        ClientConfig::new(capabilities, Implementation::new("rmcp", "1"))
    }

    async fn create_message(
        &self,
        request: CreateMessageRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        self.note(format!("asked {} times", request.messages.len()));
        let message = SamplingMessage::assistant_text("a sampled answer");
        Ok(CreateMessageResult::new(message, "m".to_owned()))
    }

    async fn create_elicitation(
        &self,
        _: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let answer = ElicitResult::new(ElicitationAction::Accept);
        Ok(answer.with_content(json!({ "answer": "a filled form" })))
    }

    async fn list_roots(
        &self,
        _: RequestContext<RoleClient>,
    ) -> Result<ListRootsResult, ErrorData> {
        Ok(ListRootsResult::new(vec![Root::new("file:///a/root")]))
    }

    async fn on_progress(
        &self,
        news: ProgressNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        self.note(format!("progress {}", news.progress));
    }

    async fn on_logging_message(
        &self,
        news: LoggingMessageNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        self.note(format!("log {}", news.data));
    }

    async fn on_resource_updated(
        &self,
        news: ResourceUpdatedNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        self.note(format!("updated {}", news.uri));
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.note("tools changed");
    }
}

type Client = RunningService<RoleClient, Listener>;

async fn connect(args: &[&str], lifecycle: ClientLifecycleMode) -> (Client, Child) {
    let mut server = Command::new(NEXUSD)
        .args(["demo-server", "--interactive"])
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let pipes = (server.stdout.take().unwrap(), server.stdin.take().unwrap());
    let listener = Listener::default();
    let client = listener.serve_with_lifecycle(pipes, lifecycle).await;
    (client.unwrap(), server)
}

async fn legacy(revision: &str) -> (Client, Child) {
    let args = ["--era", "legacy", "--revision", revision];
    connect(&args, ClientLifecycleMode::Initialize).await
}

async fn modern(args: &[&str]) -> (Client, Child) {
    let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
    connect(args, ClientLifecycleMode::Discover { preferred_versions }).await
}

fn request(tool: &'static str, arguments: Value) -> CallToolRequestParams {
    let Value::Object(arguments) = arguments else {
        panic!("{arguments}")
    };
    CallToolRequestParams::new(tool).with_arguments(arguments)
}

async fn said(client: &Client, tool: &'static str, arguments: Value) -> String {
    let result = client.call_tool(request(tool, arguments)).await;
    let result = result.unwrap_or_else(|error| panic!("{tool}: {error:?}"));
    let text = result.content.first().and_then(|block| block.as_text());
    text.map(|text| text.text.clone()).unwrap_or_default()
}

/// What both eras have in common.
async fn offers_everything(client: &Client) {
    let tools = client.list_all_tools().await.unwrap();
    assert_eq!(tools.len(), 9);
    let sum = client.call_tool(request("add", json!({"a": 2, "b": 3})));
    let sum = sum.await.unwrap();
    assert_eq!(sum.structured_content.unwrap()["sum"].as_f64(), Some(5.0));

    assert_eq!(client.list_all_resources().await.unwrap().len(), 3);
    assert_eq!(client.list_all_resource_templates().await.unwrap().len(), 1);
    let read = client.read_resource(ReadResourceRequestParams::new(README));
    assert_eq!(read.await.unwrap().contents.len(), 1);
    let missing = ReadResourceRequestParams::new("file:///no/such");
    client.read_resource(missing).await.unwrap_err();

    assert_eq!(client.list_all_prompts().await.unwrap().len(), 3);
    let prompt = GetPromptRequestParams::new("greeting");
    let name = json!({ "name": "Ada" }).as_object().unwrap().clone();
    let prompt = client.get_prompt(prompt.with_arguments(name)).await;
    assert_eq!(prompt.unwrap().messages.len(), 1);
    let languages = client.complete_prompt_simple("code_review", "language", "ja");
    assert_eq!(languages.await.unwrap(), ["java", "javascript"]);

    let slow = json!({ "duration": 0.01, "steps": 3 });
    said(client, "slow_operation", slow).await;
    let listener = client.service().clone();
    eventually("progress", || listener.has_heard("progress 3")).await;

    for (kind, part) in [
        ("sampling", "a sampled answer"),
        ("roots", "file:///a/root"),
    ] {
        let answer = said(client, "ask", json!({ "kind": kind, "text": "?" })).await;
        assert!(answer.contains(part), "{kind}: {answer}");
    }
}

#[tokio::test]
async fn the_sdks_client_gets_along_with_the_test_server_in_each_legacy_revision() {
    for revision in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let (client, _server) = legacy(revision).await;
        let listener = client.service().clone();
        let version = client.peer_info().unwrap().protocol_version.clone();
        assert_eq!(version.as_str(), revision);
        offers_everything(&client).await;
        if revision >= "2025-06-18" {
            let asking = json!({ "kind": "elicitation", "text": "?" });
            let answer = said(&client, "ask", asking).await;
            assert!(answer.contains("a filled form"), "{answer}");
        }

        let level = SetLevelRequestParams::new(LoggingLevel::Info);
        client.set_level(level).await.unwrap();
        said(&client, "log", json!({"level": "info", "message": "hm"})).await;
        eventually("a log message", || listener.has_heard("log \"hm\"")).await;

        let subscribe = SubscribeRequestParams::new(README);
        client.subscribe(subscribe).await.unwrap();
        said(&client, "touch", json!({ "uri": README })).await;
        let updated = format!("updated {README}");
        eventually("an update", || listener.has_heard(&updated)).await;

        said(&client, "grow", json!({ "what": "tools" })).await;
        eventually("a change", || listener.has_heard("tools changed")).await;
        assert_eq!(client.list_all_tools().await.unwrap().len(), 10);
        client.cancel().await.unwrap();
    }
}

#[tokio::test]
async fn the_sdks_client_gets_along_with_the_test_server_in_the_modern_era() {
    for era in ["modern", "dual"] {
        let (client, _server) = modern(&["--era", era]).await;
        offers_everything(&client).await;
        let asking = json!({ "kind": "elicitation", "text": "?" });
        let answer = said(&client, "ask", asking).await;
        assert!(answer.contains("a filled form"), "{answer}");

        let wanted = SubscriptionFilter::builder()
            .tools_list_changed()
            .resource_subscription(README)
            .build();
        let mut subscription = client.listen(wanted).await.unwrap();
        said(&client, "touch", json!({ "uri": README })).await;
        let news = subscription.next().await.unwrap().unwrap();
        let updated = matches!(&news, ServerNotification::ResourceUpdatedNotification(it) if it.params.uri == README);
        assert!(updated, "{news:?}");
        said(&client, "grow", json!({ "what": "tools" })).await;
        let news = subscription.next().await.unwrap().unwrap();
        let changed = matches!(news, ServerNotification::ToolListChangedNotification(_));
        assert!(changed, "{news:?}");
        subscription.cancel().await.unwrap();
        client.cancel().await.unwrap();
    }
}

/// It is probed with the newest first, and told of the older ones by its refusal.
#[tokio::test]
async fn the_sdks_client_finds_out_which_era_the_test_server_is_of() {
    for (era, modern) in [("legacy", false), ("modern", true), ("dual", true)] {
        let lifecycle = ClientLifecycleMode::Auto {
            preferred_versions: vec![ProtocolVersion::V_2026_07_28],
            legacy_version: None,
        };
        let (client, _server) = connect(&["--era", era], lifecycle).await;
        assert_eq!(said(&client, "echo", json!({"message": era})).await, era);
        let version = client.peer_info().unwrap().protocol_version.clone();
        assert_eq!(version == ProtocolVersion::V_2026_07_28, modern, "{era}");
        client.cancel().await.unwrap();
    }
}
