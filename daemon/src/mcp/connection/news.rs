//! What a server tells without being asked.

use super::{Connection, GHOST};
use crate::mcp::lists::Kind;
use bytes::Bytes;
use nexus_proto::level::LogLevel;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::{borrow::Cow, sync::Arc};
use tokio::sync::mpsc;

/// What happens during a call.
#[derive(Debug, Clone, PartialEq)]
pub enum CallEvent {
    /// How far it has come.
    Progress(Progress),
    /// What the server logged.
    Log(LogMessage),
}

/// How far a call has come.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Progress {
    /// Grows from event to event.
    pub progress: f64,
    /// What it grows to.
    #[serde(default)]
    pub total: Option<f64>,
    /// A word for people.
    #[serde(default)]
    pub message: Option<String>,
}

/// What a server logs for its client.
#[derive(Debug, Clone, PartialEq)]
pub struct LogMessage {
    /// How urgent it is.
    pub level: LogLevel,
    /// Who logs it; may be empty.
    pub logger: String,
    /// Any JSON, verbatim.
    pub data: Bytes,
}

impl Connection {
    pub(super) fn told(self: &Arc<Self>, method: &str, params: &Bytes) {
        match method {
            "notifications/progress" => self.progress(params),
            "notifications/message" => self.log(params),
            "notifications/tools/list_changed" => self.list_changed(params, &[Kind::Tools]),
            "notifications/prompts/list_changed" => self.list_changed(params, &[Kind::Prompts]),
            "notifications/resources/list_changed" => {
                self.list_changed(params, &[Kind::Resources, Kind::Templates]);
            }
            "notifications/resources/updated" => self.updated(params),
            "notifications/cancelled" => self.taken_back(params),
            "notifications/elicitation/complete" => self.page_done(params),
            "notifications/subscriptions/acknowledged" => self.acknowledged(params),
            // What a newer server tells is no fault.
            _ => {}
        }
    }

    fn progress(&self, params: &[u8]) {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Params {
            progress_token: u64,
            #[serde(flatten)]
            progress: Progress,
        }
        let Ok(params) = serde_json::from_slice::<Params>(params) else {
            return self.odd();
        };
        let table = self.table.lock();
        let pending = table.pending.get(&params.progress_token);
        let call = pending.and_then(|pending| pending.call.as_ref());
        match call.and_then(|call| call.events.as_ref()) {
            // A caller that reads too slowly misses some: what comes later says more.
            Some(to) => drop(to.try_send(CallEvent::Progress(params.progress))),
            None => self.odd(),
        }
    }

    fn log(&self, params: &Bytes) {
        #[derive(Deserialize)]
        struct Params<'a> {
            #[serde(borrow)]
            level: Cow<'a, str>,
            #[serde(borrow, default)]
            logger: Option<Cow<'a, str>>,
            #[serde(borrow)]
            data: &'a RawValue,
        }
        let Ok(read) = serde_json::from_slice::<Params<'_>>(params) else {
            return self.odd();
        };
        let Some(level) = read.level.parse::<LogLevel>().ok() else {
            return self.odd();
        };
        let message = LogMessage {
            level,
            logger: read.logger.unwrap_or_default().into_owned(),
            data: params.slice_ref(read.data.get().as_bytes()),
        };
        (self.host.log)(&message);
        for to in self.listeners(level) {
            let _ = to.try_send(CallEvent::Log(message.clone()));
        }
    }

    /// The calls that a log message may be about. Nothing in it tells which call that is, so it is told
    /// to nobody where calls of more than one agent are under way, or were given up a moment ago.
    fn listeners(&self, level: LogLevel) -> Vec<mpsc::Sender<CallEvent>> {
        let mut table = self.table.lock();
        table.ghosts.retain(|_, (_, since)| since.elapsed() < GHOST);
        let mut calls = table
            .pending
            .values()
            .filter_map(|p| p.call.as_ref())
            .peekable();
        let first = calls.peek().map(|call| call.agent.id());
        if table
            .ghosts
            .values()
            .any(|(agent, _)| Some(*agent) != first)
        {
            return Vec::new();
        }
        let mut listeners = Vec::new();
        for call in calls {
            if Some(call.agent.id()) != first {
                return Vec::new();
            }
            if call.log_level.is_some_and(|wanted| wanted <= level) {
                listeners.extend(call.events.clone());
            }
        }
        listeners
    }

    fn list_changed(&self, params: &[u8], kinds: &[Kind]) {
        if !self.is_heard(params) {
            return self.odd();
        }
        for &kind in kinds {
            self.changes.note(kind);
        }
    }

    fn updated(&self, params: &[u8]) {
        #[derive(Deserialize)]
        struct Params<'a> {
            #[serde(borrow)]
            uri: Cow<'a, str>,
        }
        match serde_json::from_slice::<Params<'_>>(params) {
            Ok(Params { uri }) if self.is_heard(params) => {
                if !self.host.subscriptions.updated(&uri) {
                    self.odd();
                }
            }
            _ => self.odd(),
        }
    }
}
