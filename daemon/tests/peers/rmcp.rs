//! A server made with the official Rust SDK: somebody else's reading of the protocol.
//!
//! `rmcp-peer [VERSION…]` speaks these versions of the protocol, or all that the SDK knows, over stdio.
#![allow(missing_docs, clippy::unwrap_used)]
// Sampling, roots and logging are on their way out of the protocol, and still in it.
#![allow(deprecated)]

use rmcp::{
    ErrorData, RoleServer, ServerHandler, ServiceExt as _,
    model::*,
    service::{MaybeSendFuture, RequestContext, SubscriptionContext, SubscriptionSink},
};
use serde_json::{Value, json};
use std::{
    borrow::Cow,
    collections::BTreeSet,
    fs,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
};

const COUNTER: &str = "memo://counter";
const GREETING: &str = "memo://greeting/";
const NAMES: [&str; 3] = ["Ada", "Adele", "Grace"];
/// It has everything in it that a state could be spoiled by.
const STATE: &str = "a.b/c+d=e \"f\" \\ \n\t ü";

#[derive(Clone)]
struct Peer {
    versions: Arc<[ProtocolVersion]>,
    memory: Arc<Memory>,
}

#[derive(Default)]
struct Memory {
    counter: AtomicU32,
    has_grown: AtomicBool,
    level: Mutex<Option<LoggingLevel>>,
    /// The resources that a legacy client has subscribed to.
    subscribed: Mutex<BTreeSet<String>>,
    /// Where a modern client listens.
    sinks: Mutex<Vec<SubscriptionSink>>,
}

fn object(value: Value) -> Arc<JsonObject> {
    let Value::Object(object) = value else {
        panic!("{value}")
    };
    Arc::new(object)
}

fn tool(name: &'static str, properties: Value) -> Tool {
    let schema = object(json!({ "type": "object", "properties": properties }));
    Tool::new(name, format!("The tool {name}"), schema)
}

fn said(text: impl Into<String>) -> CallToolResponse {
    CallToolResult::success(vec![ContentBlock::text(text.into())]).into()
}

fn wrong(error: impl ToString) -> ErrorData {
    ErrorData::internal_error(error.to_string(), None)
}

fn form(message: &str) -> ElicitRequestParams {
    let schema = json!({
        "type": "object",
        "properties": { "answer": { "type": "string" } },
        "required": ["answer"],
    });
    ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: message.to_owned(),
        requested_schema: serde_json::from_value(schema).unwrap(),
    }
}

fn conversation(message: &str) -> CreateMessageRequestParams {
    CreateMessageRequestParams::new(vec![SamplingMessage::user_text(message)], 100)
}

/// What an answer says, whichever kind it is of.
fn answer(answer: &Value) -> String {
    let text = answer.pointer("/content/text");
    let form = answer.pointer("/content/answer");
    let root = answer.pointer("/roots/0/uri");
    let said = text.or(form).or(root).and_then(Value::as_str);
    said.map_or_else(|| answer.to_string(), str::to_owned)
}

impl Peer {
    fn is_modern(context: &RequestContext<RoleServer>) -> bool {
        context.protocol_version() >= Some(ProtocolVersion::V_2026_07_28)
    }

    async fn ask(
        &self,
        request: &CallToolRequestParams,
        message: &str,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let name = request.name.as_ref();
        if Self::is_modern(context) {
            return Self::ask_modern(request, message);
        }
        let peer = &context.peer;
        let answered = match name {
            "sample" => {
                let answer = peer.create_message(conversation(message)).await;
                serde_json::to_value(answer.map_err(wrong)?)
            }
            "elicit" => {
                let request = ServerRequest::ElicitRequest(ElicitRequest::new(form(message)));
                match peer.send_request(request).await.map_err(wrong)? {
                    ClientResult::ElicitResult(answer) => serde_json::to_value(answer),
                    other => return Err(wrong(format!("{other:?}"))),
                }
            }
            _ => serde_json::to_value(peer.list_roots().await.map_err(wrong)?),
        };
        Ok(said(answer(&answered.map_err(wrong)?)))
    }

    fn ask_modern(
        request: &CallToolRequestParams,
        message: &str,
    ) -> Result<CallToolResponse, ErrorData> {
        if let Some(answers) = &request.input_responses {
            if request.request_state.as_deref() != Some(STATE) {
                return Err(wrong("the state came back changed"));
            }
            let answered = answers.get("the question").ok_or_else(|| wrong("none"))?;
            return Ok(said(answer(answered)));
        }
        let question = match request.name.as_ref() {
            "sample" => {
                InputRequest::CreateMessage(CreateMessageRequest::new(conversation(message)))
            }
            "elicit" => InputRequest::Elicitation(ElicitRequest::new(form(message))),
            _ => InputRequest::ListRoots(ListRootsRequest::default()),
        };
        let questions = InputRequests::from([("the question".to_owned(), question)]);
        Ok(InputRequiredResult::new(Some(questions), Some(STATE.to_owned())).into())
    }

    async fn count(
        to: u32,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let token = context.meta.get_progress_token();
        for step in 1..=to {
            if let Some(token) = token.clone() {
                let progress = ProgressNotificationParam::new(token, f64::from(step))
                    .with_total(f64::from(to))
                    .with_message(format!("step {step}"));
                context
                    .peer
                    .notify_progress(progress)
                    .await
                    .map_err(wrong)?;
            }
        }
        Ok(said(format!("counted to {to}")))
    }

    async fn log(
        &self,
        message: &str,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let wanted = match Self::is_modern(context) {
            true => context.meta.log_level(),
            false => *self.memory.level.lock().unwrap(),
        };
        for level in [LoggingLevel::Debug, LoggingLevel::Warning] {
            if wanted.is_some_and(|wanted| wanted as u8 <= level as u8) {
                let message = LoggingMessageNotificationParam::new(level, json!(message));
                let message = message.with_logger("peer");
                let told = context.peer.notify_logging_message(message).await;
                told.map_err(wrong)?;
            }
        }
        Ok(said("logged"))
    }

    /// Changes the counter, and tells whoever wants to know.
    async fn touch(
        &self,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let counter = self.memory.counter.fetch_add(1, Ordering::Relaxed) + 1;
        for sink in self.sinks() {
            let _ = sink.notify_resource_updated(COUNTER).await;
        }
        if self.memory.subscribed.lock().unwrap().contains(COUNTER) {
            let news = ResourceUpdatedNotificationParam::new(COUNTER);
            let told = context.peer.notify_resource_updated(news).await;
            told.map_err(wrong)?;
        }
        Ok(said(counter.to_string()))
    }

    /// Has one more tool from now on, and tells whoever wants to know.
    async fn grow(
        &self,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        self.memory.has_grown.store(true, Ordering::Relaxed);
        if Self::is_modern(context) {
            for sink in self.sinks() {
                let _ = sink.notify_tool_list_changed().await;
            }
        } else {
            let told = context.peer.notify_tool_list_changed().await;
            told.map_err(wrong)?;
        }
        Ok(said("grown"))
    }

    fn sinks(&self) -> Vec<SubscriptionSink> {
        self.memory.sinks.lock().unwrap().clone()
    }
}

impl ServerHandler for Peer {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_prompts()
            .enable_completions()
            .enable_logging()
            .build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("rmcp-peer", "1.0.0"))
            .with_instructions("A peer to be tested against.")
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Cow::Owned(self.versions.to_vec())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let number = json!({ "type": "integer" });
        let text = json!({ "message": { "type": "string" } });
        let sum = json!({ "type": "object", "properties": { "sum": number }, "required": ["sum"] });
        let mut tools = vec![
            tool("add", json!({ "a": number, "b": number })).with_raw_output_schema(object(sum)),
            tool("count", json!({ "to": number })),
            tool("sample", text.clone()),
            tool("elicit", text.clone()),
            tool("roots", json!({})),
            tool("log", text),
            tool("touch", json!({})),
            tool("grow", json!({})),
            tool("wait", json!({ "file": { "type": "string" } })),
        ];
        if self.memory.has_grown.load(Ordering::Relaxed) {
            tools.push(tool("grown", json!({})));
        }
        Ok(ListToolsResult::with_all_items(tools))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = Value::Object(request.arguments.clone().unwrap_or_default());
        let text = |key: &str| arguments[key].as_str().unwrap_or_default().to_owned();
        let number = |key: &str| arguments[key].as_i64().unwrap_or_default();
        match request.name.as_ref() {
            "add" => {
                let sum = json!({ "sum": number("a") + number("b") });
                Ok(CallToolResult::structured(sum).into())
            }
            "count" => Self::count(number("to").try_into().unwrap_or(0), &context).await,
            "sample" | "elicit" | "roots" => self.ask(&request, &text("message"), &context).await,
            "log" => self.log(&text("message"), &context).await,
            "touch" => self.touch(&context).await,
            "grow" => self.grow(&context).await,
            "wait" => {
                context.ct.cancelled().await;
                fs::write(text("file"), "cancelled").map_err(wrong)?;
                Ok(said("nobody reads this"))
            }
            other => Err(ErrorData::invalid_params(format!("no tool {other}"), None)),
        }
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let counter = Resource::new(COUNTER, "counter").with_mime_type("text/plain");
        Ok(ListResourcesResult::with_all_items(vec![counter]))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let greeting = ResourceTemplate::new(format!("{GREETING}{{name}}"), "greeting");
        Ok(ListResourceTemplatesResult::with_all_items(vec![greeting]))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let uri = request.uri;
        let text = match uri.strip_prefix(GREETING) {
            Some(name) => format!("Hello, {name}!"),
            None if uri == COUNTER => self.memory.counter.load(Ordering::Relaxed).to_string(),
            None => return Err(ErrorData::resource_not_found("no such memo", None)),
        };
        Ok(ReadResourceResult::new(vec![ResourceContents::text(text, uri)]).into())
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.memory.subscribed.lock().unwrap().insert(request.uri);
        Ok(())
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.memory.subscribed.lock().unwrap().remove(&request.uri);
        Ok(())
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        Some(requested.supported_by(&self.get_info().capabilities))
    }

    fn listen(
        &self,
        context: SubscriptionContext,
    ) -> impl Future<Output = Result<(), ErrorData>> + MaybeSendFuture + '_ {
        let sink = context.sink().clone();
        let id = sink.id().clone();
        self.memory.sinks.lock().unwrap().push(sink);
        async move {
            context.cancelled().await;
            let mut sinks = self.memory.sinks.lock().unwrap();
            sinks.retain(|sink| *sink.id() != id);
            Ok(())
        }
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let name = PromptArgument::new("name").with_required(true);
        let greet = Prompt::new("greet", Some("Greets somebody"), Some(vec![name]));
        Ok(ListPromptsResult::with_all_items(vec![greet]))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let name = request.arguments.as_ref().and_then(|all| all.get("name"));
        let name = name.and_then(Value::as_str);
        let name = name.ok_or_else(|| ErrorData::invalid_params("greet whom?", None))?;
        let message = PromptMessage::new_text(Role::User, format!("Please greet {name}."));
        Ok(GetPromptResult::new(vec![message]).into())
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let start = request.argument.value;
        let names = NAMES.iter().filter(|name| name.starts_with(&start));
        let names = names.map(ToString::to_string).collect();
        let found = CompletionInfo::with_all_values(names).map_err(wrong)?;
        Ok(CompleteResult::new(found))
    }

    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        *self.memory.level.lock().unwrap() = Some(request.level);
        Ok(())
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let named: Vec<String> = std::env::args().skip(1).collect();
    let known = ProtocolVersion::KNOWN_VERSIONS.iter();
    let versions = known
        .filter(|version| named.is_empty() || named.iter().any(|name| name == version.as_str()))
        .cloned()
        .collect();
    let peer = Peer {
        versions,
        memory: Arc::default(),
    };
    let serving = peer.serve(rmcp::transport::stdio()).await.unwrap();
    serving.waiting().await.unwrap();
}
