//! Tools to search: those of well-known servers, and as many others as wanted.

use serde_json::{Map, Value, json};

const TOOLS: &str = include_str!("tools.txt");
const QUERIES: &str = include_str!("queries.txt");

/// Servers with their tools' definitions.
pub(crate) type Servers = Vec<(String, Vec<Value>)>;

fn lines(text: &str) -> impl Iterator<Item = &str> {
    let lines = text.lines().map(str::trim);
    lines.filter(|line| !line.is_empty() && !line.starts_with('#'))
}

fn definition(name: &str, description: &str, parameters: &[&str]) -> Value {
    let properties: Map<_, _> = parameters
        .iter()
        .map(|name| ((*name).to_owned(), json!({"type": "string"})))
        .collect();
    json!({
        "name": name,
        "description": description,
        "inputSchema": {"type": "object", "properties": properties},
    })
}

/// Servers that many people use.
pub(crate) fn known() -> Servers {
    let mut servers = Servers::new();
    for line in lines(TOOLS) {
        if let Some(name) = line.strip_prefix('[') {
            servers.push((name.trim_end_matches(']').to_owned(), Vec::new()));
            continue;
        }
        let mut parts = line.splitn(3, '|').map(str::trim);
        let mut part = || parts.next().unwrap_or_default();
        let (name, description, parameters) = (part(), part(), part());
        let parameters: Vec<_> = parameters
            .split(", ")
            .filter(|name| !name.is_empty())
            .collect();
        let (_, tools) = servers.last_mut().expect("a server comes first");
        tools.push(definition(name, description, &parameters));
    }
    servers
}

/// What to look for, and what must be found first: `server.tool`.
pub(crate) fn queries() -> Vec<(&'static str, &'static str)> {
    let query = |line: &'static str| {
        let (tool, query) = line.split_once(char::is_whitespace).unwrap();
        (query.trim(), tool)
    };
    lines(QUERIES).map(query).collect()
}

const VERBS: [&str; 20] = [
    "get", "list", "create", "update", "delete", "search", "export", "import", "archive",
    "approve", "cancel", "compare", "copy", "count", "lock", "publish", "restore", "schedule",
    "share", "validate",
];
const NOUNS: [&str; 25] = [
    "account",
    "asset",
    "budget",
    "campaign",
    "contract",
    "course",
    "delivery",
    "device",
    "employee",
    "exam",
    "expense",
    "flight",
    "holiday",
    "ledger",
    "order",
    "parcel",
    "patient",
    "policy",
    "product",
    "recipe",
    "shipment",
    "supplier",
    "survey",
    "vehicle",
    "warehouse",
];
const KINDS: [&str; 20] = [
    "annual", "blocked", "bulk", "central", "digital", "draft", "expired", "external", "frozen",
    "global", "internal", "legacy", "local", "monthly", "overdue", "partner", "regional",
    "seasonal", "shared", "virtual",
];
/// Words that others are looked for by stand here too.
const ENDS: [&str; 8] = [
    "Returns the result as a file",
    "Sends a message to the owner when it is done",
    "Reads the page that was asked for",
    "Needs a repository of documents",
    "May take some time",
    "Runs a query against the database",
    "Fails with an error if there is none",
    "Opens a ticket if somebody has to look at it",
];

/// So many tools of no particular use, and so many to a server.
pub(crate) fn filler(count: usize, of_each: usize) -> Servers {
    let tool = |n: usize| {
        let (verb, noun) = (VERBS[n % 20], NOUNS[n / 20 % 25]);
        let kind = KINDS[n / 500 % 20];
        let end = ENDS[(n * 7 + n / 13) % 8];
        let description = format!("To {verb} one {kind} {noun} or several. {end}.");
        definition(
            &format!("{verb}_{kind}_{noun}"),
            &description,
            &[&format!("{noun}_id"), "limit", "fields"],
        )
    };
    let all: Vec<_> = (0..count).map(tool).collect();
    let servers = all.chunks(of_each).enumerate();
    servers
        .map(|(n, tools)| (format!("filler{n:03}"), tools.to_vec()))
        .collect()
}
