//! What agents ask for.

use super::{
    Router,
    deliver::{Job, before_deadline},
};
use crate::{
    catalog::{Item as _, Prompt, Tool},
    mcp::{MAX_MESSAGE, connection::CallEvent, lists::Kind, outgoing::Param},
    policy::{Action, audit::Entry, output::Shape},
    pool::key::Caller,
};
use bytes::Bytes;
use nexus_proto::level::LogLevel;
use nexus_proto::reason::{Failure, Reason};
use serde_json::{json, value::RawValue};
use std::{
    collections::HashMap,
    pin::pin,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};
use tokio::sync::mpsc;

/// How many events of one call may wait to be told.
const EVENTS: usize = 64;

/// What a client of the modern era comes back with, if it does. Whoever sends one answers for itself what a modern
/// server asks: it is handed the questions as they came, and no call waits for the answers.
#[derive(Debug, Clone, Default)]
pub struct Round {
    /// The answers: JSON text, empty for none.
    pub responses: Bytes,
    /// What the server wants to have back: JSON text, empty for none.
    pub state: Bytes,
}

/// A call of a tool.
#[derive(Debug)]
pub struct Call<'a> {
    /// Who calls.
    pub caller: &'a Caller,
    /// Any name of the tool.
    pub name: &'a str,
    /// JSON text; empty for none.
    pub arguments: Bytes,
    /// How long the caller waits.
    pub deadline: Option<Duration>,
    /// Where progress and log messages are told.
    pub events: Option<mpsc::Sender<CallEvent>>,
    /// The least urgent log messages that are wanted.
    pub log_level: Option<LogLevel>,
    /// The caller answers in rounds of its own.
    pub round: Option<Round>,
}

/// A read of a resource.
#[derive(Debug)]
pub struct Read<'a> {
    /// Who reads.
    pub caller: &'a Caller,
    /// Which server; empty where only one has it.
    pub server: &'a str,
    /// Which resource.
    pub uri: &'a str,
    /// How long the caller waits.
    pub deadline: Option<Duration>,
    /// The caller answers in rounds of its own.
    pub round: Option<Round>,
}

/// A prompt to be filled in.
#[derive(Debug)]
pub struct GetPrompt<'a> {
    /// Who wants it.
    pub caller: &'a Caller,
    /// Any name of the prompt.
    pub name: &'a str,
    /// JSON text; empty for none.
    pub arguments: Bytes,
    /// How long the caller waits.
    pub deadline: Option<Duration>,
    /// The caller answers in rounds of its own.
    pub round: Option<Round>,
}

/// An argument that is being typed.
#[derive(Debug)]
pub struct Complete<'a> {
    /// Who types.
    pub caller: &'a Caller,
    /// What it is an argument of.
    pub reference: Reference<'a>,
    /// Its name.
    pub argument: &'a str,
    /// What has been typed of it.
    pub value: &'a str,
    /// Arguments that are settled already.
    pub context: &'a HashMap<String, String>,
    /// How long the caller waits.
    pub deadline: Option<Duration>,
}

/// What can have arguments.
#[derive(Debug)]
pub enum Reference<'a> {
    /// A prompt, by any of its names.
    Prompt(&'a str),
    /// A template of a server's, which may be empty where only one has it.
    Template(&'a str, &'a str),
}

impl Router {
    /// Calls a tool. There is exactly one outcome; dropping the future cancels the call.
    pub async fn call(&self, call: Call<'_>) -> Result<Bytes, Failure> {
        let arguments = Some(call.arguments.clone());
        let mut entry = self.note(call.caller, "tools/call", call.name, arguments);
        let outcome = self.call_noted(call, &mut entry).await;
        entry.end(outcome.as_ref());
        outcome
    }

    async fn call_noted(&self, call: Call<'_>, entry: &mut Entry<'_>) -> Result<Bytes, Failure> {
        let _lane = self.enter(call.caller)?;
        let _call = call.caller.agent.begin_call();
        check_size(&call.arguments)?;
        before_deadline(call.name, call.deadline, &mut false, async |sent| {
            let found = self.find::<Tool>(call.name, call.caller);
            let found = entry.waits_for(pin!(found)).await?;
            let tool = &found.item;
            entry.found(found.server.config(), &tool.tool);
            tool.check(&call.arguments)?;
            let action = Action {
                method: "tools/call",
                target: &tool.tool,
                arguments: &call.arguments,
            };
            self.check_rate(call.caller, &found.server, Some(&tool.tool))?;
            let permit = self.permit(call.caller, &found.server, action);
            entry.waits_for(pin!(permit)).await?;
            self.calls.fetch_add(1, Ordering::Relaxed);
            found.server.count_call();
            entry.sending();
            let job = Job {
                caller: call.caller,
                what: &|| tool.dotted(),
                item: Some(&tool.tool),
                method: "tools/call",
                params: &[
                    ("name", Param::Text(&tool.tool)),
                    ("arguments", Param::Json(&call.arguments)),
                ],
                needs: |offers| offers.tools,
                // A tool that can be called twice without harm is, if the operator believes the server
                // in that.
                repeatable: tool.repeatable && found.server.config().trust_hints,
                events: call.events,
                log_level: call.log_level,
                round: call.round.as_ref(),
                headers: tool.headers(&call.arguments),
                server: found.server,
            };
            let result = job.run(sent).await?;
            self.fit(Shape::Call, &job, result)
        })
        .await
        .map_err(|failure| call.caller.may_know(failure))
    }

    /// The same, and tells what happens meanwhile, in order and before the outcome.
    pub async fn call_telling(
        &self,
        mut call: Call<'_>,
        mut tell: impl FnMut(CallEvent),
    ) -> Result<Bytes, Failure> {
        let (to, mut told) = mpsc::channel(EVENTS);
        call.events = Some(to);
        let mut call = std::pin::pin!(self.call(call));
        let outcome = loop {
            tokio::select! {
                biased;
                Some(event) = told.recv() => tell(event),
                outcome = &mut call => break outcome,
            }
        };
        while let Ok(event) = told.try_recv() {
            tell(event);
        }
        outcome
    }

    /// Reads a resource. Returns the name of the server too.
    pub async fn read(&self, read: Read<'_>) -> Result<(Bytes, String), Failure> {
        let mut entry = self.note(read.caller, "resources/read", read.uri, None);
        let outcome = self.read_noted(read, &mut entry).await;
        entry.end(outcome.as_ref().map(|(result, _)| result));
        outcome
    }

    async fn read_noted(
        &self,
        read: Read<'_>,
        entry: &mut Entry<'_>,
    ) -> Result<(Bytes, String), Failure> {
        let _lane = self.enter(read.caller)?;
        let _call = read.caller.agent.begin_call();
        before_deadline(read.uri, read.deadline, &mut false, async |sent| {
            let (kind, caller) = (Kind::Resources, read.caller);
            let server = self.find_server(kind, read.server, read.uri, caller);
            let server = entry.waits_for(pin!(server)).await?;
            let name = server.config().name.clone();
            let action = Action {
                method: "resources/read",
                target: read.uri,
                arguments: b"",
            };
            entry.found(server.config(), read.uri);
            self.check_rate(caller, &server, None)?;
            let permit = self.permit(caller, &server, action);
            entry.waits_for(pin!(permit)).await?;
            entry.sending();
            let job = Job {
                caller,
                server,
                what: &|| format!("{} of {name}", read.uri),
                item: None,
                method: "resources/read",
                round: read.round.as_ref(),
                params: &[("uri", Param::Text(read.uri))],
                needs: |offers| offers.resources,
                repeatable: true,
                events: None,
                log_level: None,
                headers: Vec::new(),
            };
            let result = job.run(sent).await?;
            Ok((self.fit(Shape::Read, &job, result)?, name))
        })
        .await
        .map_err(|failure| read.caller.may_know(failure))
    }

    /// Fills in a prompt.
    pub async fn prompt(&self, get: GetPrompt<'_>) -> Result<Bytes, Failure> {
        let arguments = Some(get.arguments.clone());
        let mut entry = self.note(get.caller, "prompts/get", get.name, arguments);
        let outcome = self.prompt_noted(get, &mut entry).await;
        entry.end(outcome.as_ref());
        outcome
    }

    async fn prompt_noted(
        &self,
        get: GetPrompt<'_>,
        entry: &mut Entry<'_>,
    ) -> Result<Bytes, Failure> {
        let _lane = self.enter(get.caller)?;
        let _call = get.caller.agent.begin_call();
        check_size(&get.arguments)?;
        check_object(&get.arguments)?;
        before_deadline(get.name, get.deadline, &mut false, async |sent| {
            let found = self.find::<Prompt>(get.name, get.caller);
            let found = entry.waits_for(pin!(found)).await?;
            let action = Action {
                method: "prompts/get",
                target: &found.item.prompt,
                arguments: &get.arguments,
            };
            entry.found(found.server.config(), &found.item.prompt);
            self.check_rate(get.caller, &found.server, None)?;
            let permit = self.permit(get.caller, &found.server, action);
            entry.waits_for(pin!(permit)).await?;
            entry.sending();
            let job = Job {
                caller: get.caller,
                server: Arc::clone(&found.server),
                what: &|| found.item.dotted(),
                item: Some(&found.item.prompt),
                round: get.round.as_ref(),
                method: "prompts/get",
                params: &[
                    ("name", Param::Text(&found.item.prompt)),
                    ("arguments", Param::Json(&get.arguments)),
                ],
                needs: |offers| offers.prompts,
                repeatable: true,
                events: None,
                log_level: None,
                headers: Vec::new(),
            };
            let result = job.run(sent).await?;
            self.fit(Shape::Prompt, &job, result)
        })
        .await
        .map_err(|failure| get.caller.may_know(failure))
    }

    /// A result as its server's limit allows it.
    fn fit(&self, shape: Shape, job: &Job<'_>, result: Bytes) -> Result<Bytes, Failure> {
        let config = job.server.config();
        let limit = self.policy.largest_result(&config.rules);
        let fitted = limit.apply(shape, result, || (job.what)());
        fitted.map_err(|failure| {
            failure.with(|details| {
                details.server = Some(config.name.clone());
                details.tool = job.item.map(str::to_owned);
            })
        })
    }

    /// Suggests what an argument might be.
    pub async fn complete(&self, complete: Complete<'_>) -> Result<Bytes, Failure> {
        let _lane = self.enter(complete.caller)?;
        let _call = complete.caller.agent.begin_call();
        let caller = complete.caller;
        before_deadline(
            complete.argument,
            complete.deadline,
            &mut false,
            async |sent| {
                let (server, what, reference) = match complete.reference {
                    Reference::Prompt(name) => {
                        let found = self.find::<Prompt>(name, caller).await?;
                        let reference = json!({"type": "ref/prompt", "name": found.item.prompt});
                        (found.server, found.item.dotted(), reference)
                    }
                    Reference::Template(server, template) => {
                        let kind = Kind::Templates;
                        let server = self.find_server(kind, server, template, caller).await?;
                        let reference = json!({"type": "ref/resource", "uri": template});
                        (server, template.to_owned(), reference)
                    }
                };
                self.permit(caller, &server, Action::CONNECT).await?;
                let reference = reference.to_string();
                let argument = json!({"name": complete.argument, "value": complete.value});
                let argument = argument.to_string();
                let context = match complete.context.is_empty() {
                    true => String::new(),
                    false => json!({"arguments": complete.context}).to_string(),
                };
                let job = Job {
                    caller,
                    server,
                    what: &|| format!("completing {what}"),
                    item: None,
                    round: None,
                    method: "completion/complete",
                    params: &[
                        ("ref", Param::Json(reference.as_bytes())),
                        ("argument", Param::Json(argument.as_bytes())),
                        ("context", Param::Json(context.as_bytes())),
                    ],
                    needs: |offers| offers.completions,
                    repeatable: true,
                    events: None,
                    log_level: None,
                    headers: Vec::new(),
                };
                job.run(sent).await
            },
        )
        .await
        .map_err(|failure| caller.may_know(failure))
    }
}

fn check_size(arguments: &[u8]) -> Result<(), Failure> {
    let length = arguments.len();
    if length <= MAX_MESSAGE {
        return Ok(());
    }
    let message =
        format!("the arguments are too large: {length} bytes, the limit is {MAX_MESSAGE}");
    Err(Failure::new(Reason::TooLarge, message))
}

fn check_object(arguments: &[u8]) -> Result<(), Failure> {
    let is_object = arguments.trim_ascii_start().first() == Some(&b'{')
        && serde_json::from_slice::<&RawValue>(arguments).is_ok();
    if arguments.is_empty() || is_object {
        return Ok(());
    }
    let message = "the arguments must be a JSON object of strings";
    Err(Failure::new(Reason::InvalidArguments, message))
}
