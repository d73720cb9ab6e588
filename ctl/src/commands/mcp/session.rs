//! What has to be known of a client's session so that it outlives a daemon. Pure.

use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};
use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap, HashSet},
};

/// The code of an error that is nobody's but ours.
const GONE: i32 = -32000;

/// What is the same however often it is asked.
const REPEATABLE: [&str; 12] = [
    "ping",
    "tools/list",
    "resources/list",
    "resources/templates/list",
    "prompts/list",
    "server/discover",
    "resources/read",
    "prompts/get",
    "completion/complete",
    "subscriptions/listen",
    "resources/unsubscribe",
    "logging/setLevel",
];

/// A session.
#[derive(Debug, Default)]
pub(super) struct Session {
    /// Requests that wait for an answer: what could be asked again, as it was asked.
    pending: HashMap<String, Option<Vec<u8>>>,
    /// How the client began: its `initialize`, and whether that has been answered.
    greeting: Option<(String, Vec<u8>)>,
    is_greeted: bool,
    is_initialized: bool,
    /// What it has subscribed to, and how much it wants to have logged.
    subscriptions: BTreeMap<String, Vec<u8>>,
    level: Option<Vec<u8>>,
    /// Answers that the client has had already, or never asked for.
    swallowed: HashSet<String>,
    repeats: u64,
}

#[derive(Deserialize)]
struct Head<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    method: Option<Cow<'a, str>>,
}

/// The id and the method of a message, if it is one.
fn head(line: &[u8]) -> Option<(Option<String>, Option<String>)> {
    if line.trim_ascii_start().first() != Some(&b'{') {
        return None;
    }
    let head: Head<'_> = serde_json::from_slice(line).ok()?;
    let id = head.id.map(|id| id.get().to_owned());
    Some((id, head.method.map(Cow::into_owned)))
}

impl Session {
    /// The client has said this.
    pub(super) fn client_said(&mut self, line: &[u8]) {
        let Some((id, Some(method))) = head(line) else {
            return;
        };
        match (id, method.as_str()) {
            (None, "notifications/initialized") => self.is_initialized = true,
            (None, "notifications/cancelled") => self.cancelled(line),
            (None, _) => {}
            (Some(id), "initialize") => self.greeting = Some((id, line.to_vec())),
            (Some(id), method) => {
                match method {
                    "resources/subscribe" => self.subscribed(line),
                    "resources/unsubscribe" => self.unsubscribed(line),
                    "logging/setLevel" => self.level = Some(line.to_vec()),
                    _ => {}
                }
                let again = REPEATABLE.contains(&method) || method == "resources/subscribe";
                self.pending.insert(id, again.then(|| line.to_vec()));
            }
        }
    }

    /// The daemon has said this. Whether it is for the client.
    pub(super) fn daemon_said(&mut self, line: &[u8]) -> bool {
        let Some((Some(id), None)) = head(line) else {
            return true;
        };
        if self.swallowed.remove(&id) {
            return false;
        }
        if self.greeting.as_ref().is_some_and(|(own, _)| *own == id) {
            self.is_greeted = true;
        }
        self.pending.remove(&id);
        true
    }

    /// The daemon has gone. What the client is told: what was under way and must not be done twice is over.
    pub(super) fn lost(&mut self) -> Vec<u8> {
        let mut told = Vec::new();
        self.swallowed.clear();
        self.pending.retain(|id, again| {
            if again.is_none() {
                let message =
                    "the daemon went away while this was under way: it may have been carried out";
                let data = json!({"reason": "DISCONNECTED", "maybeExecuted": true});
                let error = json!({"code": GONE, "message": message, "data": data});
                let line = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{error}}}\n");
                told.extend_from_slice(line.as_bytes());
            }
            again.is_some()
        });
        told
    }

    /// What the next daemon is told, so that the session goes on.
    pub(super) fn again(&mut self) -> Vec<u8> {
        let mut said = Vec::new();
        if let Some((id, line)) = &self.greeting {
            said.extend_from_slice(line);
            if self.is_greeted {
                self.swallowed.insert(id.clone());
            }
        }
        if self.is_initialized {
            said.extend_from_slice(
                b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n",
            );
        }
        let under_way: HashSet<&[u8]> = self.pending.values().flatten().map(|l| &l[..]).collect();
        let silent = self.subscriptions.values().chain(&self.level);
        for line in silent.filter(|line| !under_way.contains(&line[..])) {
            self.repeats += 1;
            let id = format!("\"nexus-again-{}\"", self.repeats);
            if let Some(line) = with_id(line, &id) {
                said.extend_from_slice(&line);
                self.swallowed.insert(id);
            }
        }
        for line in self.pending.values().flatten() {
            said.extend_from_slice(line);
        }
        said
    }

    /// What the client is told when its session goes on: anything may have changed meanwhile.
    pub(super) fn restored(&self) -> Vec<u8> {
        let mut told = Vec::new();
        if self.is_initialized {
            for list in ["tools", "resources", "prompts"] {
                let changed = json!({"jsonrpc": "2.0", "method": format!("notifications/{list}/list_changed")});
                told.extend_from_slice(format!("{changed}\n").as_bytes());
            }
        }
        told
    }

    fn cancelled(&mut self, line: &[u8]) {
        let id = param(line, "requestId").map(|id| id.to_string());
        if let Some(id) = id {
            self.pending.remove(&id);
        }
    }

    fn subscribed(&mut self, line: &[u8]) {
        if let Some(uri) = param(line, "uri") {
            self.subscriptions.insert(uri.to_string(), line.to_vec());
        }
    }

    fn unsubscribed(&mut self, line: &[u8]) {
        if let Some(uri) = param(line, "uri") {
            self.subscriptions.remove(&uri.to_string());
        }
    }
}

/// A member of the params of a message.
fn param(line: &[u8], name: &str) -> Option<Value> {
    let message: Value = serde_json::from_slice(line).ok()?;
    message.get("params")?.get(name).cloned()
}

/// The same message with another id: JSON text.
fn with_id(line: &[u8], id: &str) -> Option<Vec<u8>> {
    let mut message: Value = serde_json::from_slice(line).ok()?;
    message["id"] = serde_json::from_str(id).ok()?;
    Some(format!("{message}\n").into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &[u8]) -> Vec<Value> {
        let lines = text
            .split(|&byte| byte == b'\n')
            .filter(|line| !line.is_empty());
        lines
            .map(|line| serde_json::from_slice(line).unwrap())
            .collect()
    }

    fn greeted() -> Session {
        let mut session = Session::default();
        session.client_said(br#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}"#);
        assert!(session.daemon_said(br#"{"jsonrpc":"2.0","id":0,"result":{}}"#));
        session.client_said(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        session
    }

    #[test]
    fn a_call_under_way_is_over_and_a_list_is_asked_again() {
        let mut session = greeted();
        session.client_said(br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}"#);
        session.client_said(br#"{"jsonrpc":"2.0","id":"x","method":"tools/list"}"#);
        session.client_said(br#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{}}"#);
        session.daemon_said(br#"{"jsonrpc":"2.0","id":2,"result":{}}"#);
        let told = lines(&session.lost());
        assert_eq!(told.len(), 1);
        assert_eq!(
            (&told[0]["id"], &told[0]["error"]["code"]),
            (&json!(1), &json!(GONE))
        );
        let again = session.again();
        assert!(
            again.windows(12).any(|w| w == br#""tools/list""#),
            "{:?}",
            String::from_utf8_lossy(&again)
        );
        assert!(!again.windows(12).any(|w| w == br#""tools/call""#));
        // The client has had the answer to its greeting.
        assert!(!session.daemon_said(br#"{"jsonrpc":"2.0","id":0,"result":{}}"#));
        assert!(session.daemon_said(br#"{"jsonrpc":"2.0","id":"x","result":{}}"#));
        assert_eq!(lines(&session.restored()).len(), 3);
    }

    #[test]
    fn a_greeting_that_was_not_answered_is_answered_by_the_next() {
        let mut session = Session::default();
        session.client_said(
            b"{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{}}\n",
        );
        assert!(session.lost().is_empty());
        assert_eq!(lines(&session.again())[0]["method"], "initialize");
        assert!(session.daemon_said(br#"{"jsonrpc":"2.0","id":0,"result":{}}"#));
        assert!(session.restored().is_empty());
    }

    #[test]
    fn what_was_subscribed_to_is_subscribed_to_again_and_nobody_notices() {
        let mut session = greeted();
        session.client_said(
            br#"{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"a"}}"#,
        );
        session.client_said(
            br#"{"jsonrpc":"2.0","id":2,"method":"resources/subscribe","params":{"uri":"b"}}"#,
        );
        session.client_said(
            br#"{"jsonrpc":"2.0","id":3,"method":"resources/unsubscribe","params":{"uri":"b"}}"#,
        );
        session.client_said(
            br#"{"jsonrpc":"2.0","id":4,"method":"logging/setLevel","params":{"level":"info"}}"#,
        );
        for id in 1..=4 {
            assert!(
                session.daemon_said(
                    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#).as_bytes()
                )
            );
        }
        assert!(session.lost().is_empty());
        let again = session.again();
        let text = String::from_utf8(again).unwrap();
        assert!(
            text.contains(r#""uri":"a""#)
                && !text.contains(r#""uri":"b""#)
                && text.contains("setLevel"),
            "{text}"
        );
        assert!(!session.daemon_said(br#"{"jsonrpc":"2.0","id":"nexus-again-1","result":{}}"#));
    }

    #[test]
    fn what_is_cancelled_is_not_told() {
        let mut session = greeted();
        session.client_said(br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}"#);
        session.client_said(
            br#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#,
        );
        assert!(session.lost().is_empty());
    }

    #[test]
    fn what_is_no_message_is_passed_on_and_forgotten() {
        let mut session = Session::default();
        session.client_said(b"[1,2]\n");
        session.client_said(b"nonsense\n");
        assert!(session.daemon_said(b"nonsense\n"));
        assert!(session.lost().is_empty() && session.again().is_empty());
    }
}
