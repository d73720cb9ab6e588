//! An MCP client of either era, over lines or HTTP, which answers what it is asked with its name.

use crate::support::{Daemon, PATIENCE};
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use std::{collections::VecDeque, path::PathBuf};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    net::{UnixStream, unix::OwnedWriteHalf},
    sync::mpsc,
    task::JoinSet,
    time::timeout,
};

/// How a client comes in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Door {
    Lines,
    Http,
}

pub(crate) const ERAS: [&str; 2] = ["legacy", "modern"];

const ABILITIES: &str = r#"{"sampling": {}, "elicitation": {"form": {}, "url": {}}, "roots": {}}"#;

enum Way {
    Lines(OwnedWriteHalf),
    Http {
        socket: PathBuf,
        path: String,
        session: Option<String>,
        to: mpsc::UnboundedSender<Value>,
        requests: JoinSet<()>,
    },
}

/// A client. Over HTTP, `hello` may name one server, and how tools are shown.
pub(crate) struct Mcp {
    way: Way,
    from: mpsc::UnboundedReceiver<Value>,
    pub(crate) is_modern: bool,
    name: &'static str,
    /// What it can be asked: JSON text.
    abilities: &'static str,
    /// What it says when it is asked whether something may be done, and how often it was.
    pub(crate) consents: (&'static str, usize),
    last: u64,
    news: VecDeque<Value>,
}

impl Mcp {
    pub(crate) async fn connect(
        daemon: &Daemon,
        era: &str,
        name: &'static str,
        hello: Value,
    ) -> Self {
        Self::come_in(Door::Lines, daemon, era, name, hello).await
    }

    pub(crate) async fn come_in(
        door: Door,
        daemon: &Daemon,
        era: &str,
        name: &'static str,
        hello: Value,
    ) -> Self {
        let (to, from) = mpsc::unbounded_channel();
        let socket = daemon.home.socket();
        let way = match door {
            Door::Lines => {
                let stream = UnixStream::connect(socket).await.unwrap();
                let (lines, write) = stream.into_split();
                tokio::spawn(async move {
                    let mut lines = BufReader::new(lines).lines();
                    while let Ok(Some(line)) = lines.next_line().await {
                        let _ = to.send(serde_json::from_str(&line).unwrap());
                    }
                });
                Way::Lines(write)
            }
            Door::Http => Way::Http {
                socket,
                path: {
                    let server = hello["servers"][0].as_str();
                    let server = server.map(|name| format!("/{name}")).unwrap_or_default();
                    let tools = hello["tools"].as_str();
                    let tools = tools
                        .map(|mode| format!("?tools={mode}"))
                        .unwrap_or_default();
                    format!("/mcp{server}{tools}")
                },
                session: None,
                to,
                requests: JoinSet::new(),
            },
        };
        let mut client = Self {
            way,
            from,
            is_modern: era == "modern",
            name,
            abilities: match hello["mute"] == true {
                true => "{}",
                false => ABILITIES,
            },
            consents: ("", 0),
            last: 0,
            news: VecDeque::new(),
        };
        if door == Door::Lines {
            client.notify("nexus/hello", hello).await;
        }
        if !client.is_modern {
            let params = json!({
                "protocolVersion": "2025-11-25",
                "capabilities": serde_json::from_str::<Value>(client.abilities).unwrap(),
                "clientInfo": {"name": name, "version": "1"},
            });
            let welcome = client.request("initialize", params).await.unwrap();
            assert_eq!(welcome["protocolVersion"], "2025-11-25");
            assert_eq!(welcome["serverInfo"]["name"], "nexus");
            client.notify("notifications/initialized", json!({})).await;
            client.listen().await;
        }
        client
    }

    /// Opens the stream for what belongs to no request.
    async fn listen(&mut self) {
        if let Way::Http {
            socket,
            path,
            session,
            to,
            requests,
        } = &mut self.way
        {
            let request = http::Request::get(path.as_str())
                .header("accept", "text/event-stream")
                .header("mcp-session-id", session.as_deref().unwrap())
                .body(Full::default())
                .unwrap();
            let response = exchange(socket, request).await;
            assert_eq!(response.status(), 200);
            requests.spawn(read_events(response, to.clone()));
        }
    }

    /// The id of its session, over HTTP.
    pub(crate) fn session(&mut self) -> &mut Option<String> {
        match &mut self.way {
            Way::Http { session, .. } => session,
            Way::Lines(_) => panic!("lines have no session"),
        }
    }

    pub(crate) async fn send(&mut self, message: Value) {
        match &mut self.way {
            Way::Lines(write) => {
                let line = format!("{message}\n");
                write.write_all(line.as_bytes()).await.unwrap();
            }
            Way::Http {
                socket,
                path,
                session,
                to,
                requests,
            } => {
                let request = post(path, session.as_deref(), &message);
                let (socket, to) = (socket.clone(), to.clone());
                if message["method"] == "initialize" {
                    let response = exchange(&socket, request).await;
                    let id = response.headers()["mcp-session-id"].to_str().unwrap();
                    *session = Some(id.to_owned());
                    return read_answer(response, to).await;
                }
                requests.spawn(async move {
                    read_answer(exchange(&socket, request).await, to).await;
                });
            }
        }
    }

    /// Sends what may be no message at all.
    pub(crate) async fn send_text(&mut self, text: &str) {
        match &mut self.way {
            Way::Lines(write) => write
                .write_all(format!("{text}\n").as_bytes())
                .await
                .unwrap(),
            Way::Http { .. } => panic!("lines only"),
        }
    }

    /// Waits until the stream for what belongs to no request has ended.
    pub(crate) async fn listened(&mut self) {
        let Way::Http { requests, .. } = &mut self.way else {
            panic!("lines have no stream of their own");
        };
        let ended = timeout(PATIENCE, async {
            while requests.join_next().await.is_some() {}
        });
        ended.await.expect("the stream ends");
    }

    /// Gives up a request, in the way of its era and door.
    pub(crate) async fn cancel(&mut self, id: u64) {
        match &mut self.way {
            Way::Http { requests, .. } if self.is_modern => requests.abort_all(),
            _ => {
                self.notify("notifications/cancelled", json!({"requestId": id}))
                    .await
            }
        }
    }

    /// Leaves, in the way of its era and door.
    pub(crate) async fn leave(self) {
        if let Way::Http {
            socket,
            path,
            session: Some(session),
            ..
        } = &self.way
        {
            let request = http::Request::delete(path.as_str())
                .header("mcp-session-id", session)
                .body(Full::default())
                .unwrap();
            assert_eq!(exchange(socket, request).await.status(), 204);
        }
    }

    pub(crate) async fn notify(&mut self, method: &str, params: Value) {
        self.send(json!({"jsonrpc": "2.0", "method": method, "params": params}))
            .await;
    }

    pub(crate) async fn begin(&mut self, method: &str, mut params: Value) -> u64 {
        self.last = self.last.wrapping_add(1);
        if self.is_modern {
            let meta = &mut params["_meta"];
            meta["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
            meta["io.modelcontextprotocol/clientCapabilities"] =
                serde_json::from_str(self.abilities).unwrap();
            meta["io.modelcontextprotocol/clientInfo"] = json!({"name": self.name, "version": "1"});
        }
        let id = self.last;
        self.send(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
            .await;
        id
    }

    pub(crate) async fn next(&mut self) -> Value {
        let message = timeout(PATIENCE, self.from.recv()).await;
        message.expect("a message").expect("the connection lasts")
    }

    fn answer_to(&mut self, method: &str, params: &Value) -> Value {
        let name = self.name;
        match method {
            "elicitation/create"
                if params["requestedSchema"]["properties"]["answer"]["enum"].is_array() =>
            {
                self.consents.1 += 1;
                match self.consents.0 {
                    word @ ("decline" | "cancel") => json!({ "action": word }),
                    word => json!({"action": "accept", "content": {"answer": word}}),
                }
            }
            "sampling/createMessage" => {
                let asked = params["messages"][0]["content"]["text"].as_str().unwrap();
                let text = format!("{name} was asked {asked}");
                json!({"role": "assistant", "model": "m", "content": {"type": "text", "text": text}})
            }
            "elicitation/create" => {
                let asked = params["message"].as_str().unwrap();
                json!({"action": "accept", "content": {"answer": format!("{name} was asked {asked}")}})
            }
            "roots/list" => json!({"roots": [{"uri": format!("file:///{name}")}]}),
            other => panic!("{other}"),
        }
    }

    /// Waits for an answer. What is asked meanwhile is answered, and news is kept.
    pub(crate) async fn answer(&mut self, id: u64) -> Result<Value, Value> {
        loop {
            let message = self.next().await;
            match (message.get("method"), message.get("id")) {
                (None, Some(own)) if *own == json!(id) => {
                    return match message.get("error") {
                        Some(error) => Err(error.clone()),
                        None => Ok(message["result"].clone()),
                    };
                }
                (Some(method), Some(question)) => {
                    assert!(
                        !self.is_modern,
                        "a modern client is not sent requests: {message}"
                    );
                    let result = self.answer_to(method.as_str().unwrap(), &message["params"]);
                    self.send(json!({"jsonrpc": "2.0", "id": question, "result": result}))
                        .await;
                }
                (Some(_), None) => self.news.push_back(message),
                _ => panic!("{message}"),
            }
        }
    }

    pub(crate) async fn request(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        let mut more = params.clone();
        loop {
            let id = self.begin(method, more).await;
            let result = self.answer(id).await?;
            if self.is_modern {
                assert!(result["resultType"].is_string(), "{result}");
            } else {
                assert!(result.get("resultType").is_none(), "{result}");
            }
            if result["resultType"] != "input_required" {
                return Ok(result);
            }
            let mut responses = json!({});
            for (key, asked) in result["inputRequests"].as_object().unwrap() {
                let method = asked["method"].as_str().unwrap();
                responses[key] = self.answer_to(method, &asked["params"]);
            }
            more = params.clone();
            more["inputResponses"] = responses;
            more["requestState"] = result["requestState"].clone();
        }
    }

    pub(crate) async fn call(&mut self, tool: &str, arguments: Value) -> Result<Value, Value> {
        self.request("tools/call", json!({"name": tool, "arguments": arguments}))
            .await
    }

    pub(crate) async fn text(&mut self, tool: &str, arguments: Value) -> String {
        let result = self.call(tool, arguments).await.unwrap();
        result["content"][0]["text"].as_str().unwrap().to_owned()
    }

    /// Waits for news of this kind.
    pub(crate) async fn news(&mut self, method: &str) -> Value {
        if let Some(at) = self.news.iter().position(|news| news["method"] == method) {
            return self.news.remove(at).unwrap()["params"].clone();
        }
        loop {
            let message = self.next().await;
            if message["method"] == method {
                return message["params"].clone();
            }
            assert!(message.get("id").is_none(), "{message}");
            self.news.push_back(message);
        }
    }

    /// A request with id 0: its result, and all news of progress before it.
    pub(crate) async fn request_as_zero(
        &mut self,
        method: &str,
        params: Value,
    ) -> (Value, Vec<Value>) {
        self.last = u64::MAX;
        let id = self.begin(method, params).await;
        assert_eq!(id, 0);
        let result = self.answer(id).await.unwrap();
        let news = std::mem::take(&mut self.news).into_iter();
        let progress = news.filter(|news| news["method"] == "notifications/progress");
        (result, progress.collect())
    }

    /// Waits until the other side has closed the connection.
    pub(crate) async fn ended(&mut self) {
        let end = timeout(PATIENCE, self.from.recv()).await;
        assert_eq!(end.expect("an end"), None);
    }
}

/// A message as a request, with the headers of its era.
fn post(path: &str, session: Option<&str>, message: &Value) -> http::Request<Full<bytes::Bytes>> {
    let mut request = http::Request::post(path)
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream");
    let params = &message["params"];
    let version = &params["_meta"]["io.modelcontextprotocol/protocolVersion"];
    if let Some(version) = version.as_str() {
        request = request
            .header("mcp-protocol-version", version)
            .header("mcp-method", message["method"].as_str().unwrap());
        let addressee = match message["method"].as_str().unwrap() {
            "tools/call" | "prompts/get" => params["name"].as_str(),
            "resources/read" => params["uri"].as_str(),
            _ => None,
        };
        if let Some(addressee) = addressee {
            request = request.header("mcp-name", addressee);
        }
    } else if let Some(session) = session {
        request = request
            .header("mcp-session-id", session)
            .header("mcp-protocol-version", "2025-11-25");
    }
    request.body(message.to_string().into()).unwrap()
}

/// One request on a connection of its own.
pub(crate) async fn exchange(
    socket: &std::path::Path,
    mut request: http::Request<Full<bytes::Bytes>>,
) -> http::Response<hyper::body::Incoming> {
    let stream = UnixStream::connect(socket).await.unwrap();
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .unwrap();
    tokio::spawn(connection);
    let host = http::HeaderValue::from_static("localhost");
    request.headers_mut().entry("host").or_insert(host);
    let answered = timeout(PATIENCE, sender.send_request(request)).await;
    answered.expect("an answer").unwrap()
}

async fn read_answer(
    response: http::Response<hyper::body::Incoming>,
    to: mpsc::UnboundedSender<Value>,
) {
    if response
        .headers()
        .get("content-type")
        .is_some_and(|kind| kind == "text/event-stream")
    {
        return read_events(response, to).await;
    }
    let body = response.into_body().collect().await.unwrap().to_bytes();
    if !body.is_empty() {
        let _ = to.send(serde_json::from_slice(&body).unwrap());
    }
}

async fn read_events(
    response: http::Response<hyper::body::Incoming>,
    to: mpsc::UnboundedSender<Value>,
) {
    let mut body = response.into_body();
    let mut seen = String::new();
    while let Some(Ok(frame)) = body.frame().await {
        let Ok(data) = frame.into_data() else {
            continue;
        };
        seen.push_str(str::from_utf8(&data).unwrap());
        while let Some((event, rest)) = seen.split_once("\n\n") {
            for line in event.lines() {
                if let Some(data) = line.strip_prefix("data: ") {
                    let _ = to.send(serde_json::from_str(data).unwrap());
                }
            }
            seen = rest.to_owned();
        }
    }
}
