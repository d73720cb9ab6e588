//! The first words with a server: which revision it speaks, who it is, what it can do, what it has.
//!
//! A modern server answers `server/discover`; to a legacy one that is an unknown method, and it is greeted
//! with `initialize`. Which of the two it was is remembered, so that the question is put once.

use super::{
    connection::{CallError, Connection, Reply, Terms, Waiting},
    envelope::RpcError,
    lists::{Kind, List, Pages, parse_page},
    offers::Offers,
    outgoing::{Ask, CLIENT_INFO, Param},
    revision::{Revision, spoken},
};
use crate::agent::Answers;
use bytes::Bytes;
use nexus_proto::reason::Reason;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::{sync::Arc, time::Duration};
use tokio::time::timeout;

/// A server that leaves the first question unanswered for so long, or for a third of the time that it has, is
/// greeted in the other way as well.
const PROBE: Duration = Duration::from_secs(5);

/// How long a server that was greeted in both ways may take to answer the second, when it has answered the first.
const SECOND_ANSWER: Duration = Duration::from_secs(2);

const METHOD_NOT_FOUND: i64 = -32601;
const UNSUPPORTED_VERSION: i64 = -32022;
const MODERN_ERRORS: [i64; 2] = [-32020, -32021];

/// How often a list is asked for whose answer broke off.
const LIST_TRIES: usize = 3;

/// What a server said of itself.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerInfo {
    /// Its own name.
    pub name: String,
    /// Its own version.
    pub version: String,
    /// A name for people.
    pub title: String,
    /// The revision that was agreed on.
    pub revision: Revision,
    /// How it wants to be used.
    pub instructions: String,
    /// What it can do: a JSON object, verbatim.
    pub capabilities: Bytes,
}

impl ServerInfo {
    /// What was agreed on.
    pub fn terms(&self) -> Terms {
        Terms {
            revision: self.revision,
            offers: Offers::read(&self.capabilities, self.revision),
        }
    }
}

/// Why there is no talking to a server.
#[derive(Debug, thiserror::Error)]
pub enum HandshakeError {
    /// The server refused, or its process ended.
    #[error("`{0}` failed: {1}")]
    Call(&'static str, String),
    /// The answer is not what MCP prescribes.
    #[error("the answer to `{0}` is not MCP: {1}")]
    Malformed(&'static str, serde_json::Error),
    /// No common revision.
    #[error("the server speaks MCP {theirs}; Nexus speaks {}", spoken())]
    Version {
        /// The revisions that it offered.
        theirs: String,
    },
    /// It has no tools, and its configuration says that it must.
    #[error("it has no tools, and \"fail_if_no_tools\" is set{}", .0.as_ref().map(|why| format!(": {why}")).unwrap_or_default())]
    NoTools(Option<String>),
}

/// What is known before the first word.
#[derive(Debug, Clone, Copy)]
pub struct Beforehand {
    /// What our callers can be asked.
    pub answers: Answers,
    /// Whether it was modern when it last ran, if that is known.
    pub was_modern: Option<bool>,
    /// How long it has.
    pub time: Duration,
}

/// Introduces ourselves and learns who the server is. `probing` is told when a server of which nothing is
/// known is asked a question that an old one might not survive, and when it has answered.
pub async fn introduce(
    connection: &Arc<Connection>,
    before: Beforehand,
    probing: impl Fn(bool),
) -> Result<ServerInfo, HandshakeError> {
    let found = match before.was_modern {
        Some(false) => match initialize(connection, before.answers).await {
            // It may have learned the other way since. How it says so is its own business.
            Err(Refused::Rpc(error)) => match found(ask_discover(connection)?.await)? {
                Found::Legacy => return Err(Refused::Rpc(error).into_error()),
                known => known,
            },
            greeted => Found::Known(greeted.map_err(Refused::into_error)?),
        },
        Some(true) => found(ask_discover(connection)?.await)?,
        None => {
            probing(true);
            let found = probe(connection, before).await;
            probing(false);
            found?
        }
    };
    let info = match found {
        Found::Known(info) => info,
        Found::Legacy => {
            let greeted = initialize(connection, before.answers).await;
            greeted.map_err(Refused::into_error)?
        }
    };
    connection.agree(info.terms());
    if !info.revision.is_modern() {
        connection.notify("notifications/initialized", b"");
    }
    Ok(info)
}

/// The same with a legacy server that has forgotten us, while the connection goes on.
pub async fn introduce_again(connection: &Arc<Connection>, answers: Answers) -> Result<(), String> {
    let info = initialize(connection, answers).await;
    let info = info.map_err(|refused| refused.into_error().to_string())?;
    if connection.terms() != Some(info.terms()) {
        return Err("it is not the server that it was".to_owned());
    }
    connection.notify("notifications/initialized", b"");
    Ok(())
}

/// What came of asking a server whether it is modern.
enum Found {
    /// It is known who it is.
    Known(ServerInfo),
    /// It is not modern.
    Legacy,
}

/// Asks whether the server is modern. One that says nothing is greeted in the other way as well, and so a slow
/// starter is not mistaken for an old one: when it is awake, it answers what it understands.
async fn probe(connection: &Arc<Connection>, before: Beforehand) -> Result<Found, HandshakeError> {
    let mut question = ask_discover(connection)?;
    let patience = PROBE.min(before.time / 3);
    if let Ok(answer) = timeout(patience, &mut question).await {
        return found(answer);
    }
    let mut greeting = std::pin::pin!(initialize(connection, before.answers));
    let (answered, greeted) = tokio::select! {
        biased;
        greeted = &mut greeting => (None, Some(greeted)),
        answer = &mut question => {
            let answer = found(answer)?;
            let greeted = match &answer {
                Found::Legacy => Some(greeting.await),
                // One that speaks both takes the greeting for a choice.
                Found::Known(_) => timeout(SECOND_ANSWER, greeting).await.ok(),
            };
            (Some(answer), greeted)
        }
    };
    match (greeted, answered) {
        (Some(Ok(info)), _) => Ok(Found::Known(info)),
        (_, Some(known @ Found::Known(_))) => Ok(known),
        (Some(Err(Refused::Rpc(refusal))), None) => match found(question.await)? {
            Found::Legacy => Err(Refused::Rpc(refusal).into_error()),
            known => Ok(known),
        },
        (Some(Err(refused)), _) => Err(refused.into_error()),
        (None, Some(legacy)) => Ok(legacy),
        (None, None) => Ok(Found::Legacy),
    }
}

fn ask_discover(connection: &Arc<Connection>) -> Result<Waiting, HandshakeError> {
    let ask = Ask {
        method: "server/discover",
        params: &[],
    };
    let asked = connection.ask_as(true, &ask);
    let asked = asked.map_err(|error| lost("server/discover", &error))?;
    // An old server would not know what to make of a cancellation.
    Ok(asked.quietly())
}

/// What the answer to `server/discover` comes to.
fn found(answer: Reply) -> Result<Found, HandshakeError> {
    match answer {
        Ok(result) => match parse_discovery(&result) {
            Ok(Welcome::Modern(info)) => Ok(Found::Known(*info)),
            Ok(Welcome::Versions(versions)) => by_versions(&versions),
            Err(_) => Ok(Found::Legacy),
        },
        Err(CallError::Rpc(error)) if error.code == UNSUPPORTED_VERSION => {
            by_versions(&supported(&error))
        }
        // Only a modern server has these, and there is nothing about the question that could be mended.
        Err(CallError::Rpc(error)) if MODERN_ERRORS.contains(&error.code) => {
            Err(HandshakeError::Call("server/discover", describe(&error)))
        }
        Err(CallError::Rpc(_)) => Ok(Found::Legacy),
        // Whoever has no such page does not know the question; who may not see it, or is ill, says nothing.
        Err(CallError::Refused(cause)) if cause.reason == Reason::NotSupported => Ok(Found::Legacy),
        Err(CallError::Malformed(_)) => Ok(Found::Legacy),
        Err(error) => Err(lost("server/discover", &error)),
    }
}

/// A server that speaks only other revisions: one of the old ones, or none that we know.
fn by_versions(versions: &[String]) -> Result<Found, HandshakeError> {
    let is_legacy = |name: &String| Revision::parse(name).is_some_and(|known| !known.is_modern());
    if versions.is_empty() || versions.iter().any(is_legacy) {
        return Ok(Found::Legacy);
    }
    Err(HandshakeError::Version {
        theirs: versions.join(", "),
    })
}

fn supported(error: &RpcError) -> Vec<String> {
    #[derive(Default, Deserialize)]
    struct Data {
        #[serde(default)]
        supported: Vec<String>,
    }
    let data: Data = serde_json::from_slice(&error.data).unwrap_or_default();
    data.supported
}

/// Why a server was not to be greeted.
enum Refused {
    Rpc(RpcError),
    Other(HandshakeError),
}

impl Refused {
    fn into_error(self) -> HandshakeError {
        match self {
            Self::Rpc(error) => HandshakeError::Call("initialize", describe(&error)),
            Self::Other(error) => error,
        }
    }
}

async fn initialize(connection: &Arc<Connection>, answers: Answers) -> Result<ServerInfo, Refused> {
    let capabilities = answers.legacy_declaration(connection.owner().is_some());
    let ask = Ask {
        method: "initialize",
        params: &[
            (
                "protocolVersion",
                Param::Text(Revision::NEWEST_LEGACY.as_str()),
            ),
            ("capabilities", Param::Json(capabilities.as_bytes())),
            ("clientInfo", Param::Json(CLIENT_INFO)),
        ],
    };
    let answer = match connection.ask_as(false, &ask) {
        // It is never to be cancelled.
        Ok(waiting) => waiting.quietly().await,
        Err(error) => Err(error),
    };
    match answer {
        Ok(result) => parse_welcome(&result).map_err(Refused::Other),
        Err(CallError::Rpc(error)) => Err(Refused::Rpc(error)),
        Err(error) => Err(Refused::Other(lost("initialize", &error))),
    }
}

/// A list, as far as it could be had.
#[derive(Debug)]
pub struct Listed {
    /// Of what.
    pub kind: Kind,
    /// The list, and how long it is good for; for ever, where the server tells of changes.
    pub list: Result<(List, Option<Duration>), String>,
}

/// Asks for a list, page by page. A server that does not declare it has none.
pub async fn list(connection: &Arc<Connection>, terms: Terms, kind: Kind) -> Listed {
    let offers = terms.offers;
    let (declared, tells) = match kind {
        Kind::Tools => (offers.tools, offers.tools_changed),
        Kind::Resources | Kind::Templates => (offers.resources, offers.resources_changed),
        Kind::Prompts => (offers.prompts, offers.prompts_changed),
    };
    let list = if declared {
        let pages = list_pages(connection, kind).await;
        let lasts = !terms.revision.is_modern() || tells;
        // A modern server that does not say how long it is good for says: not at all.
        pages.map(|(list, ttl)| (list, (!lasts).then(|| ttl.unwrap_or_default())))
    } else {
        Ok((List::default(), None))
    };
    Listed { kind, list }
}

/// The same, within a time.
pub async fn list_within(
    time: Duration,
    connection: &Arc<Connection>,
    terms: Terms,
    kind: Kind,
) -> Listed {
    let listed = timeout(time, list(connection, terms, kind)).await;
    listed.unwrap_or_else(|_| Listed {
        kind,
        list: Err(format!("no answer within {time:?}")),
    })
}

async fn list_pages(
    connection: &Arc<Connection>,
    kind: Kind,
) -> Result<(List, Option<Duration>), String> {
    let mut pages = Pages::new(kind);
    let mut cursor = None::<String>;
    loop {
        let params = cursor
            .as_ref()
            .map(|cursor| ("cursor", Param::Text(cursor)));
        let ask = Ask {
            method: kind.method(),
            params: params.as_slice(),
        };
        let answer = ask_again(connection, &ask).await;
        let answer = match answer {
            Ok(answer) => answer,
            // Many servers have resources and know nothing of templates.
            Err(CallError::Rpc(error))
                if kind == Kind::Templates && error.code == METHOD_NOT_FOUND =>
            {
                return Ok(pages.finish());
            }
            Err(error) => return Err(why(&error)),
        };
        let page = parse_page(kind, &answer);
        let page = page.map_err(|error| format!("the list is not MCP: {error}"))?;
        match pages.add(page) {
            Some(next) => cursor = Some(next),
            None => return Ok(pages.finish()),
        }
    }
}

/// Asks something that may be asked again when the answer breaks off.
async fn ask_again(connection: &Arc<Connection>, ask: &Ask<'_>) -> Reply {
    let mut tries = 0;
    loop {
        tries += 1;
        match connection.ask(ask)?.await {
            Err(CallError::Dropped(_)) if tries < LIST_TRIES => {}
            answer => return answer,
        }
    }
}

fn lost(method: &'static str, error: &CallError) -> HandshakeError {
    HandshakeError::Call(method, why(error))
}

fn describe(error: &RpcError) -> String {
    format!("{} (code {})", error.message, error.code)
}

fn why(error: &CallError) -> String {
    match error {
        CallError::Rpc(error) => describe(error),
        CallError::NotSent(cause) | CallError::Lost(cause) | CallError::Refused(cause) => {
            cause.message.clone()
        }
        CallError::Dropped(why) => why.clone(),
        CallError::Overloaded => "too much is waiting to be written".to_owned(),
        CallError::TooLarge(length) => format!("the answer is too large ({length} bytes)"),
        CallError::Malformed(what) => format!("the answer is {what}"),
    }
}

#[derive(Default, Deserialize)]
struct Implementation {
    #[serde(default)]
    name: String,
    #[serde(default)]
    version: String,
    #[serde(default)]
    title: Option<String>,
}

impl Implementation {
    fn into_info(
        self,
        revision: Revision,
        instructions: Option<String>,
        capabilities: Option<&RawValue>,
    ) -> ServerInfo {
        let capabilities = capabilities.map_or("{}", RawValue::get);
        ServerInfo {
            name: self.name,
            version: self.version,
            title: self.title.unwrap_or_default(),
            revision,
            instructions: instructions.unwrap_or_default(),
            capabilities: Bytes::copy_from_slice(capabilities.as_bytes()),
        }
    }
}

fn parse_welcome(answer: &Bytes) -> Result<ServerInfo, HandshakeError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Body<'a> {
        protocol_version: String,
        #[serde(borrow, default)]
        capabilities: Option<&'a RawValue>,
        #[serde(default)]
        server_info: Implementation,
        #[serde(default)]
        instructions: Option<String>,
    }
    let body: Body<'_> = serde_json::from_slice(answer)
        .map_err(|error| HandshakeError::Malformed("initialize", error))?;
    let revision = Revision::parse(&body.protocol_version).filter(|known| !known.is_modern());
    let Some(revision) = revision else {
        return Err(HandshakeError::Version {
            theirs: body.protocol_version,
        });
    };
    let info = body.server_info;
    Ok(info.into_info(revision, body.instructions, body.capabilities))
}

/// What a server that knows `server/discover` says.
enum Welcome {
    Modern(Box<ServerInfo>),
    /// It knows the question, and speaks only these.
    Versions(Vec<String>),
}

fn parse_discovery(answer: &Bytes) -> serde_json::Result<Welcome> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Body<'a> {
        supported_versions: Vec<String>,
        #[serde(borrow, default)]
        capabilities: Option<&'a RawValue>,
        #[serde(default)]
        instructions: Option<String>,
        #[serde(default, rename = "_meta")]
        meta: Meta,
    }
    #[derive(Default, Deserialize)]
    struct Meta {
        #[serde(default, rename = "io.modelcontextprotocol/serverInfo")]
        server_info: Implementation,
    }
    let body: Body<'_> = serde_json::from_slice(answer)?;
    let speaks = |name: &String| Revision::parse(name) == Some(Revision::MODERN);
    if !body.supported_versions.iter().any(speaks) {
        return Ok(Welcome::Versions(body.supported_versions));
    }
    let info = body.meta.server_info;
    let info = info.into_info(Revision::MODERN, body.instructions, body.capabilities);
    Ok(Welcome::Modern(Box::new(info)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn welcome(text: &str) -> Result<ServerInfo, HandshakeError> {
        parse_welcome(&Bytes::copy_from_slice(text.as_bytes()))
    }

    #[test]
    fn any_of_the_four_legacy_revisions_is_accepted() {
        for revision in Revision::ALL {
            let version = revision.as_str();
            let info = welcome(&format!(r#"{{"protocolVersion":"{version}"}}"#));
            match info {
                Ok(info) => assert_eq!(info.revision, revision),
                Err(_) => assert!(revision.is_modern()),
            }
        }
    }

    #[test]
    fn an_unknown_revision_is_refused_with_both_lists() {
        let error = welcome(r#"{"protocolVersion":"1999-01-01"}"#)
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("1999-01-01") && error.contains("2024-11-05"),
            "{error}"
        );
    }

    #[test]
    fn what_a_server_says_of_itself_is_kept() {
        let info = welcome(
            r#"{"protocolVersion":"2025-06-18","capabilities":{"tools": {}},
                "serverInfo":{"name":"n","version":"1"},"instructions":"be kind"}"#,
        )
        .unwrap();
        assert_eq!((&*info.name, &*info.instructions), ("n", "be kind"));
        assert_eq!(info.capabilities, r#"{"tools": {}}"#);
    }

    #[test]
    fn a_modern_server_says_who_it_is_in_its_metadata() {
        let text = r#"{"resultType":"complete","supportedVersions":["2026-07-28","2025-11-25"],
            "capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"public",
            "_meta":{"io.modelcontextprotocol/serverInfo":{"name":"n","version":"2","title":"N"}}}"#;
        let Ok(Welcome::Modern(info)) = parse_discovery(&Bytes::from_static(text.as_bytes()))
        else {
            panic!("not modern");
        };
        assert_eq!((&*info.name, &*info.version, &*info.title), ("n", "2", "N"));
        assert!(info.revision.is_modern() && info.terms().offers.tools);
    }

    #[test]
    fn a_server_with_other_revisions_is_greeted_in_the_old_way_or_refused() {
        let versions = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            by_versions(&names)
        };
        assert!(matches!(versions(&["2025-06-18"]), Ok(Found::Legacy)));
        assert!(matches!(versions(&[]), Ok(Found::Legacy)));
        let error = versions(&["2030-01-01", "2031-01-01"])
            .err()
            .unwrap()
            .to_string();
        assert!(error.contains("2030-01-01, 2031-01-01"), "{error}");
    }
}
