//! What a client can ask for.

use super::{
    answer, builtin,
    client::Client,
    lists,
    message::Out,
    params::{
        Dialect, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, Params, check_responses, error,
        level, supported,
    },
    rounds, subscribe,
    view::View,
};
use crate::{
    agent::Answers,
    mcp::{connection::CallEvent, envelope::RpcError, lists::Kind, outgoing, revision::Revision},
    pool::key::Caller,
    router::{Call, Complete, GetPrompt, Read, Reference, Round},
};
use bytes::Bytes;
use nexus_proto::level::LogLevel;
use nexus_proto::reason::{Failure, Reason};
use serde::Deserialize;
use serde_json::{json, value::RawValue};
use std::{collections::HashMap, sync::Arc};

/// One request of a client.
pub(super) struct Asked<'a> {
    pub(super) client: &'a Arc<Client>,
    /// Its id, as the client wrote it.
    pub(super) id: &'a Bytes,
    pub(super) method: &'a str,
    pub(super) raw: &'a Bytes,
    pub(super) params: &'a Params<'a>,
    pub(super) dialect: Dialect,
    pub(super) out: &'a Out,
}

/// Answers a request.
pub(super) async fn answer(asked: &Asked<'_>) -> Result<Bytes, RpcError> {
    let modern = asked.dialect.is_modern();
    if let Some(answer) = builtin::answer(asked).await {
        return Ok(answer);
    }
    match asked.method {
        "initialize" if !modern => initialize(asked),
        "ping" if !modern => Ok(answer::nothing(asked.dialect)),
        "server/discover" => discover(asked),
        "tools/list" => Ok(list(asked, Kind::Tools).await),
        "resources/list" => Ok(list(asked, Kind::Resources).await),
        "resources/templates/list" => Ok(list(asked, Kind::Templates).await),
        "prompts/list" => Ok(list(asked, Kind::Prompts).await),
        "tools/call" | "resources/read" | "prompts/get" => {
            check_responses(asked.params.input_responses)?;
            match asked.dialect {
                Dialect::Modern { answers, .. } if answers != Answers::NONE => {
                    rounds::answer(asked, answers).await
                }
                _ => {
                    Request::new(asked)?
                        .run(asked.client.caller(), asked.out)
                        .await
                }
            }
        }
        "completion/complete" => complete(asked).await,
        "logging/setLevel" if !modern => {
            let name = required(asked.params.level.as_deref(), "level")?;
            *asked.client.level.lock() = Some(level(name)?);
            Ok(answer::nothing(asked.dialect))
        }
        "resources/subscribe" if !modern => subscribe::subscribe(asked).await,
        "resources/unsubscribe" if !modern => subscribe::unsubscribe(asked),
        "subscriptions/listen" => subscribe::listen(asked).await,
        method => Err(error(
            METHOD_NOT_FOUND,
            format!("Method not found: {method}"),
        )),
    }
}

/// A member that must be there.
pub(super) fn required<'a, T: ?Sized>(value: Option<&'a T>, name: &str) -> Result<&'a T, RpcError> {
    value.ok_or_else(|| error(INVALID_PARAMS, format!("{name} is required")))
}

async fn list(asked: &Asked<'_>, kind: Kind) -> Bytes {
    answer::list(&lists::list(asked.client, kind).await, asked.dialect)
}

fn initialize(asked: &Asked<'_>) -> Result<Bytes, RpcError> {
    #[derive(Default, Deserialize)]
    #[serde(default, rename_all = "camelCase")]
    struct Hello<'a> {
        protocol_version: String,
        #[serde(borrow)]
        capabilities: Option<&'a RawValue>,
        client_info: ClientInfo,
    }
    let hello: Hello<'_> = serde_json::from_slice(asked.raw)
        .map_err(|wrong| error(INVALID_PARAMS, wrong.to_string()))?;
    let client = asked.client;
    check_sight(asked)?;
    let wanted = Revision::parse(&hello.protocol_version).filter(|known| !known.is_modern());
    let revision = wanted.unwrap_or(Revision::NEWEST_LEGACY);
    let declared = hello.capabilities.map_or("{}", RawValue::get);
    let answers = Answers::read(declared.as_bytes());
    let ClientInfo { name, version } = hello.client_info;
    if !client.greet(name, version, answers) {
        return Err(error(INVALID_REQUEST, "the session has begun already"));
    }
    let mut welcome = json!({
        "protocolVersion": revision.as_str(),
        "capabilities": capabilities(),
        "serverInfo": server_info(),
    });
    if let Some(instructions) = instructions(client) {
        welcome["instructions"] = instructions.into();
    }
    Ok(welcome.to_string().into())
}

/// An error if a server was chosen that there is not.
fn check_sight(asked: &Asked<'_>) -> Result<(), RpcError> {
    let (client, caller) = (asked.client, asked.client.caller());
    if let Some(name) = caller.sight.missing_profile() {
        let failure = client.no_such_profile(name);
        return Err(answer::refusal(&failure, asked.dialect));
    }
    let mut chosen = caller.sight.chosen().iter();
    chosen
        .try_for_each(|name| client.catalog().server(name, &caller).map(drop))
        .map_err(|failure| answer::refusal(&failure, asked.dialect))
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ClientInfo {
    name: String,
    version: String,
}

fn discover(asked: &Asked<'_>) -> Result<Bytes, RpcError> {
    let client = asked.client;
    check_sight(asked)?;
    let mut found = json!({
        "resultType": "complete",
        "supportedVersions": supported(),
        "capabilities": capabilities(),
        "ttlMs": 3_600_000,
        "cacheScope": "private",
        "_meta": {"io.modelcontextprotocol/serverInfo": server_info()},
    });
    if let Some(instructions) = instructions(client) {
        found["instructions"] = instructions.into();
    }
    Ok(found.to_string().into())
}

fn capabilities() -> serde_json::Value {
    json!({
        "tools": {"listChanged": true},
        "resources": {"subscribe": true, "listChanged": true},
        "prompts": {"listChanged": true},
        "completions": {},
        "logging": {},
    })
}

fn server_info() -> serde_json::Value {
    json!({"name": "nexus", "title": "Nexus", "version": env!("CARGO_PKG_VERSION")})
}

/// How we and the servers want to be used, as far as they are known.
fn instructions(client: &Client) -> Option<String> {
    let caller = client.caller();
    let own = builtin::instructions(&caller).map(str::to_owned);
    let single = View::of(&caller).single().is_some();
    let all = client
        .catalog()
        .servers(&caller)
        .into_iter()
        .filter_map(|server| {
            let info = server.lists_for(&caller).info?;
            let config = server.config();
            match (info.instructions.trim(), single) {
                ("", _) => None,
                (text, true) => Some(text.to_owned()),
                (text, false) => Some(format!("## {}\n{text}", config.slug)),
            }
        });
    let all: Vec<_> = own.into_iter().chain(all).collect();
    (!all.is_empty()).then(|| all.join("\n\n"))
}

/// A request that goes to a server, with all that it needs.
pub(super) struct Request {
    client: Arc<Client>,
    what: What,
    dialect: Dialect,
    progress_token: Option<Box<RawValue>>,
    log_level: Option<LogLevel>,
    round: Option<Round>,
}

enum What {
    Call(String, Bytes),
    /// A call whose tool is an argument of `execute`.
    Execute(String, Bytes),
    Read(String),
    Prompt(String, Bytes),
}

impl Request {
    pub(super) fn new(asked: &Asked<'_>) -> Result<Self, RpcError> {
        let params = asked.params;
        let name = || required(params.name.as_deref(), "name").map(str::to_owned);
        let arguments = || {
            params
                .arguments
                .map_or_else(Bytes::new, |raw| asked.raw.slice_ref(raw.get().as_bytes()))
        };
        let what = match asked.method {
            "tools/call" => match builtin::to_execute(asked) {
                Some((name, arguments)) => What::Execute(name, arguments),
                None => What::Call(name()?, arguments()),
            },
            "prompts/get" => What::Prompt(name()?, arguments()),
            _ => What::Read(required(params.uri.as_deref(), "uri")?.to_owned()),
        };
        let text = |raw: &str| Bytes::copy_from_slice(raw.as_bytes());
        let round = || Round {
            responses: params
                .input_responses
                .map_or_else(Bytes::new, |raw| text(raw.get())),
            state: params
                .request_state
                .as_deref()
                .map_or_else(Bytes::new, |state| text(&json!(state).to_string())),
        };
        Ok(Self {
            round: asked.dialect.is_modern().then(round),
            client: Arc::clone(asked.client),
            what,
            dialect: asked.dialect,
            progress_token: params.meta.progress_token.map(ToOwned::to_owned),
            log_level: match asked.dialect {
                Dialect::Modern { log_level, .. } => log_level,
                Dialect::Legacy => *asked.client.level.lock(),
            },
        })
    }

    /// Has it done for `caller`; progress and log messages go to `out`.
    pub(super) async fn run(self, caller: Caller, out: &Out) -> Result<Bytes, RpcError> {
        let dialect = self.dialect;
        let client = &self.client;
        let view = View::of(&caller);
        let result = match &self.what {
            What::Call(name, arguments) | What::Execute(name, arguments) => {
                let name = view.name(name, client.catalog());
                let called = self.call(&caller, &name, arguments.clone(), out).await;
                let executed = matches!(self.what, What::Execute(..));
                match &called {
                    Err(failure) if failure.reason == Reason::InvalidArguments => {
                        return Ok(answer::mend_arguments(failure, dialect));
                    }
                    // The name is an argument here, and the model's to mend as well.
                    Err(failure) if executed && builtin::is_wrong_name(failure) => {
                        return Ok(answer::failed(&answer::sentence(failure), dialect));
                    }
                    _ => called,
                }
            }
            What::Read(uri) => {
                let (server, uri) = view.resource(Kind::Resources, uri, client.catalog());
                let read = Read {
                    caller: &caller,
                    server: &server,
                    uri,
                    deadline: None,
                    round: self.round.clone(),
                };
                client.router().read(read).await.map(|(result, _)| result)
            }
            What::Prompt(name, arguments) => {
                let name = view.name(name, client.catalog());
                let get = GetPrompt {
                    caller: &caller,
                    name: &name,
                    arguments: arguments.clone(),
                    deadline: None,
                    round: self.round.clone(),
                };
                client.router().prompt(get).await
            }
        };
        let cacheable = matches!(self.what, What::Read(_));
        match result {
            Ok(result) => Ok(answer::shape(result, dialect, cacheable)),
            Err(failure) => Err(answer::refusal(&failure, dialect)),
        }
    }

    async fn call(
        &self,
        caller: &Caller,
        name: &str,
        arguments: Bytes,
        out: &Out,
    ) -> Result<Bytes, Failure> {
        let call = Call {
            caller,
            name,
            arguments,
            deadline: None,
            events: None,
            log_level: self.log_level,
            round: self.round.clone(),
        };
        let router = self.client.router();
        if self.progress_token.is_none() && self.log_level.is_none() {
            return router.call(call).await;
        }
        router
            .call_telling(call, |event| self.tell(event, out))
            .await
    }

    fn tell(&self, event: CallEvent, out: &Out) {
        match event {
            CallEvent::Progress(progress) => {
                let Some(token) = &self.progress_token else {
                    return;
                };
                let mut params = json!({"progressToken": token, "progress": progress.progress});
                if let Some(total) = progress.total {
                    params["total"] = total.into();
                }
                if let Some(message) = progress.message {
                    params["message"] = message.into();
                }
                let params = params.to_string();
                out.offer(outgoing::notification(
                    "notifications/progress",
                    params.as_bytes(),
                ));
            }
            CallEvent::Log(message) => {
                let level = message.level.as_str();
                let logger = match message.logger.as_str() {
                    "" => String::new(),
                    logger => format!(r#""logger":{},"#, json!(logger)),
                };
                let mut params = format!(r#"{{"level":"{level}",{logger}"data":"#).into_bytes();
                params.extend_from_slice(&message.data);
                params.push(b'}');
                out.offer(outgoing::notification("notifications/message", &params));
            }
        }
    }
}

async fn complete(asked: &Asked<'_>) -> Result<Bytes, RpcError> {
    #[derive(Deserialize)]
    struct Ref {
        r#type: String,
        #[serde(default)]
        name: String,
        #[serde(default)]
        uri: String,
    }
    #[derive(Deserialize)]
    struct Argument {
        name: String,
        value: String,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Context {
        arguments: HashMap<String, String>,
    }
    fn read<'a, T: Deserialize<'a>>(raw: Option<&'a RawValue>, name: &str) -> Result<T, RpcError> {
        let raw = required(raw, name)?;
        serde_json::from_str(raw.get())
            .map_err(|wrong| error(INVALID_PARAMS, format!("{name}: {wrong}")))
    }
    let reference: Ref = read(asked.params.reference, "ref")?;
    let argument: Argument = read(asked.params.argument, "argument")?;
    let context: Context = match asked.params.context {
        Some(raw) => read(Some(raw), "context")?,
        None => Context::default(),
    };
    let client = asked.client;
    let caller = client.caller();
    let (view, catalog) = (View::of(&caller), client.catalog());
    let (name, resource);
    let reference = match reference.r#type.as_str() {
        "ref/prompt" => {
            name = view.name(&reference.name, catalog).into_owned();
            Reference::Prompt(&name)
        }
        "ref/resource" => {
            resource = view.resource(Kind::Templates, &reference.uri, catalog);
            Reference::Template(&resource.0, resource.1)
        }
        other => {
            return Err(error(
                INVALID_PARAMS,
                format!("ref: unknown type {other:?}"),
            ));
        }
    };
    let complete = Complete {
        caller: &caller,
        reference,
        argument: &argument.name,
        value: &argument.value,
        context: &context.arguments,
        deadline: None,
    };
    match client.router().complete(complete).await {
        Ok(result) => Ok(answer::shape(result, asked.dialect, false)),
        Err(failure) => Err(answer::refusal(&failure, asked.dialect)),
    }
}
