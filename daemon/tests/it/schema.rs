//! Whether what the daemon tells servers is MCP.
//!
//! A test server keeps a record of every line it reads (`--wire`). Each is checked against the published schema of the
//! revision it is in: against the definition of its very method, as a message that a client may send.

use jsonschema::Validator;
use serde_json::{Value, json, value::RawValue};
use std::{
    collections::HashMap,
    fs,
    path::Path,
    sync::{Arc, LazyLock, Mutex},
};

pub(crate) const MODERN: &str = "2026-07-28";
const META_VERSION: &str = "/params/_meta/io.modelcontextprotocol~1protocolVersion";

/// Checks every record in a folder; panics with the message and the reason.
pub(crate) fn check_records(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for path in entries.map(|entry| entry.unwrap().path()) {
        let text = fs::read_to_string(&path).unwrap();
        if let Err(reason) = check_record(&text) {
            panic!("{}: {reason}", path.display());
        }
    }
}

/// Checks one record. A last line without an end is one that nobody finished writing.
pub(crate) fn check_record(text: &str) -> Result<(), String> {
    let mut stream = Stream::default();
    let whole = text
        .split_inclusive('\n')
        .filter(|line| line.ends_with('\n'));
    for line in whole.map(str::trim_end) {
        let shown: String = line.chars().take(2000).collect();
        stream
            .line(line)
            .map_err(|reason| format!("the daemon wrote what is not MCP: {reason}\n{shown}"))?;
    }
    Ok(())
}

/// What is known of a stream at one of its lines.
#[derive(Default)]
struct Stream {
    /// The revision that the last `initialize` asked for.
    requested: Option<String>,
    /// The one it was answered with.
    negotiated: Option<String>,
    /// Whether there was a modern request.
    modern: bool,
    /// The questions of the server that are not answered: their methods by their ids.
    asked: HashMap<String, String>,
}

impl Stream {
    fn line(&mut self, line: &str) -> Result<(), String> {
        if let Some(note) = line.strip_prefix("# ") {
            match *note.split(' ').collect::<Vec<_>>() {
                ["negotiated", version] => self.negotiated = Some(version.to_owned()),
                ["asked", id, method] => {
                    self.asked.insert(id.to_owned(), method.to_owned());
                }
                _ => return Err("a note that is not known".to_owned()),
            }
            return Ok(());
        }
        let message = read(line)?;
        let method = message["method"].as_str();
        match (method, message.get("id")) {
            (Some(method), Some(_)) => {
                let revision = self.revision_of_request(method, &message)?;
                let kinds = ["ClientRequest", "JSONRPCRequest"];
                check_method(&revision, method, kinds, &message)
            }
            (Some(method), None) => {
                let revision = self.revision_of_notification()?;
                let kinds = ["ClientNotification", "JSONRPCNotification"];
                check_method(&revision, method, kinds, &message)
            }
            (None, _) => self.response(&message),
        }
    }

    fn revision_of_request(&mut self, method: &str, message: &Value) -> Result<String, String> {
        if message.pointer(META_VERSION).is_some_and(|it| it == MODERN) {
            self.modern = true;
            return Ok(MODERN.to_owned());
        }
        if method == "initialize" {
            let requested = message["params"]["protocolVersion"].as_str();
            self.requested = requested.map(str::to_owned);
            self.negotiated = None;
        }
        let early = matches!(method, "initialize" | "ping");
        let requested = self.requested.as_ref().filter(|_| early);
        let revision = self.negotiated.as_ref().or(requested);
        revision
            .cloned()
            .ok_or_else(|| format!("`{method}` in no revision"))
    }

    /// Where there are both eras, the older one: what can be notified of in the newer one is in both.
    fn revision_of_notification(&self) -> Result<String, String> {
        let modern = self.modern.then(|| MODERN.to_owned());
        let legacy = self.negotiated.clone().or(self.requested.clone());
        legacy
            .or(modern)
            .ok_or_else(|| "a notification in no revision".to_owned())
    }

    fn response(&mut self, message: &Value) -> Result<(), String> {
        let revision = self.negotiated.as_ref().or(self.requested.as_ref());
        let revision = revision.ok_or("a response, which only the legacy era has")?;
        let asked = self.asked.remove(&message["id"].to_string());
        let asked = asked.ok_or("a response to no question")?;
        let schema = schema(revision)?;
        let named = |names: [&'static str; 2]| {
            let known = |name: &&str| schema["definitions"].get(*name).is_some();
            names.into_iter().find(known).unwrap_or(names[1])
        };
        if message.get("error").is_some() {
            let name = named(["JSONRPCErrorResponse", "JSONRPCError"]);
            return check(revision, name, message);
        }
        let name = named(["JSONRPCResultResponse", "JSONRPCResponse"]);
        check(revision, name, message)?;
        check(revision, "ClientResult", &message["result"])?;
        let name = match asked.as_str() {
            "ping" => "EmptyResult",
            "roots/list" => "ListRootsResult",
            "sampling/createMessage" => "CreateMessageResult",
            "elicitation/create" => "ElicitResult",
            _ => return Err(format!("an answer to `{asked}`, which is not known here")),
        };
        check(revision, name, &message["result"])
    }
}

/// Checks a message against the definition of its method, and against all that a client may send of its kind.
fn check_method(
    revision: &str,
    method: &str,
    [from_client, envelope]: [&'static str; 2],
    message: &Value,
) -> Result<(), String> {
    let schema = schema(revision)?;
    let definitions = schema["definitions"].as_object().unwrap();
    let of_method = |(name, definition): &(&String, &Value)| {
        definition["properties"]["method"]["const"] == method && *name != from_client
    };
    let (name, _) = definitions
        .iter()
        .find(of_method)
        .ok_or_else(|| format!("{revision} has no method `{method}`"))?;
    check(revision, envelope, message)?;
    check(revision, name, message)?;
    check(revision, from_client, message)
}

/// Checks something against a definition.
pub(crate) fn check(revision: &str, definition: &str, message: &Value) -> Result<(), String> {
    type Validators = Mutex<HashMap<(String, String), Arc<Validator>>>;
    static VALIDATORS: LazyLock<Validators> = LazyLock::new(Validators::default);
    let key = (revision.to_owned(), definition.to_owned());
    let known = VALIDATORS.lock().unwrap().get(&key).cloned();
    let validator = match known {
        Some(validator) => validator,
        None => {
            let mut schema = schema(revision)?.clone();
            schema["allOf"] = json!([{ "$ref": format!("#/definitions/{definition}") }]);
            let validator = jsonschema::options()
                .should_validate_formats(true)
                .build(&schema)
                .unwrap();
            let validator = Arc::new(validator);
            VALIDATORS.lock().unwrap().insert(key, validator.clone());
            validator
        }
    };
    let errors = validator.iter_errors(message);
    let reasons: Vec<String> = errors
        .map(|error| format!("{error} (at `{}`)", error.instance_path()))
        .collect();
    match reasons.is_empty() {
        true => Ok(()),
        false => Err(format!("{revision} {definition}: {}", reasons.join("; "))),
    }
}

/// The schema of a revision, with its definitions under the older of their two names.
fn schema(revision: &str) -> Result<&'static Value, String> {
    static SCHEMAS: LazyLock<HashMap<&str, Value>> = LazyLock::new(|| {
        [
            (
                "2024-11-05",
                include_str!("../schemas/schema-2024-11-05.json"),
            ),
            (
                "2025-03-26",
                include_str!("../schemas/schema-2025-03-26.json"),
            ),
            (
                "2025-06-18",
                include_str!("../schemas/schema-2025-06-18.json"),
            ),
            (
                "2025-11-25",
                include_str!("../schemas/schema-2025-11-25.json"),
            ),
            (MODERN, include_str!("../schemas/schema-2026-07-28.json")),
        ]
        .map(|(revision, text)| {
            let text = text.replace("\"$defs\"", "\"definitions\"");
            let text = text.replace("#/$defs/", "#/definitions/");
            (revision, serde_json::from_str(&text).unwrap())
        })
        .into()
    });
    let schema = SCHEMAS.get(revision);
    schema.ok_or_else(|| format!("there is no revision {revision:?}"))
}

/// A message; what no `Value` can hold (1e400, a lone surrogate, depths) is replaced by something of its type.
pub(crate) fn read(line: &str) -> Result<Value, String> {
    let raw: &RawValue =
        serde_json::from_str(line).map_err(|error| format!("this is not JSON: {error}"))?;
    match serde_json::from_str(line).unwrap_or_else(|_| lossy(raw, 0)) {
        message @ Value::Object(_) => Ok(message),
        _ => Err("this is not one message".to_owned()),
    }
}

fn lossy(raw: &RawValue, depth: usize) -> Value {
    let text = raw.get();
    match text.as_bytes()[0] {
        b'{' if depth < 50 => {
            let members: HashMap<String, &RawValue> =
                serde_json::from_str(text).unwrap_or_default();
            let member = |(key, raw)| (key, lossy(raw, depth + 1));
            Value::Object(members.into_iter().map(member).collect())
        }
        b'[' if depth < 50 => {
            let items: Vec<&RawValue> = serde_json::from_str(text).unwrap_or_default();
            items.into_iter().map(|raw| lossy(raw, depth + 1)).collect()
        }
        b'{' => json!({}),
        b'[' => json!([]),
        b'"' => serde_json::from_str(text).unwrap_or_else(|_| "\u{fffd}".into()),
        _ => serde_json::from_str(text).unwrap_or_else(|_| 0.into()),
    }
}
