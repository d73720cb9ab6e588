//! From a tree to the model. Pure.

mod fields;
mod http;
mod policy;
mod profile;
mod server;

use crate::{
    diagnosis::Diagnosis,
    keys,
    model::{Origin, Server, Settings},
    nearest::nearest,
    node::{Entry, Node, Span, Value},
    source::Source,
    syntax,
};
use fields::Fields;
use std::sync::Arc;

/// Whose file it is: the same words mean different things to different programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Dialect {
    /// A `timeout` without a unit is in milliseconds.
    pub milliseconds: bool,
    /// `$NAME` is a variable.
    pub bare_variables: bool,
    /// Entries that are no servers for us are passed over with a word.
    pub lenient: bool,
}

/// What a document says.
#[derive(Debug, Clone, Default)]
pub struct Document {
    /// Its servers, in its order.
    pub servers: Vec<Server>,
    /// What it says to the daemon.
    pub settings: Settings,
    /// What is wrong with it.
    pub diagnoses: Vec<Diagnosis>,
}

/// Reads a document. What is wrong with one server does not hide the others.
pub fn read(source: &Arc<Source>, dialect: Dialect) -> Document {
    match syntax::parse(source) {
        Ok(tree) => read_tree(source, &tree, dialect),
        Err(diagnosis) => Document {
            diagnoses: vec![*diagnosis],
            ..Document::default()
        },
    }
}

/// Reads a document that has been parsed.
pub fn read_tree(source: &Arc<Source>, tree: &Node, dialect: Dialect) -> Document {
    let mut reader = Reader {
        source,
        dialect,
        document: Document::default(),
    };
    reader.top(tree);
    reader.document
}

struct Reader<'a> {
    source: &'a Arc<Source>,
    dialect: Dialect,
    document: Document,
}

impl Reader<'_> {
    fn top(&mut self, tree: &Node) {
        let Some(entries) = tree.entries() else {
            self.tell(
                Diagnosis::error("config::shape", "the file must be a map")
                    .at(tree.span.clone(), format!("this is {}", tree.kind()))
                    .fix("{ \"mcpServers\": { \"time\": { \"command\": \"uvx\", \"args\": [\"mcp-server-time\"] } } }"),
            );
            return;
        };
        self.own_keys(entries);
        let settings = tree.get("daemon");
        if let Some(settings) = settings {
            self.settings(settings);
        }
        let profiles = tree.get("profiles").filter(|_| !self.dialect.lenient);
        if let Some(profiles) = profiles {
            let mut fields = Fields::new(self.source, "", self.dialect);
            self.document.settings.profiles = profile::read(&mut fields, profiles);
            self.document.diagnoses.append(&mut fields.diagnoses);
        }
        let policy = tree.get("policy").filter(|_| !self.dialect.lenient);
        if let Some(policy) = policy {
            let mut fields = Fields::new(self.source, "", self.dialect);
            self.document.settings.policy = policy::read(&mut fields, policy);
            self.document.diagnoses.append(&mut fields.diagnoses);
        }
        match servers_of(tree) {
            Some(Root { node, enabled, .. }) => self.servers(node, enabled),
            None if entries.is_empty() => {}
            None if looks_like_servers(entries) => self.servers(tree, true),
            None if settings.or(profiles).or(policy).is_some() || self.dialect.lenient => {}
            None => self.no_servers(entries),
        }
    }

    /// In a file that is only ours, what we do not know is a slip.
    fn own_keys(&mut self, entries: &[Entry]) {
        let name = self.source.path.file_stem().and_then(|name| name.to_str());
        if name != Some("nexus") {
            return;
        }
        let names = || {
            keys::ROOTS
                .iter()
                .copied()
                .chain(keys::TOP.iter().map(|key| key.name))
        };
        for entry in entries {
            let span = entry.key_span.clone();
            if !names().any(|name| name == entry.key) && !keys::is_foreign(&entry.key) {
                let near = nearest(&entry.key, names());
                let text = near.map_or(String::new(), |near| format!("did you mean {near:?}?"));
                let message = format!("unknown key {:?}", entry.key);
                self.tell(Diagnosis::warning("config::unknown-key", message).at(span, text));
            }
        }
    }

    fn no_servers(&mut self, entries: &[Entry]) {
        let near = |entry: &&Entry| nearest(&entry.key, keys::ROOTS.iter().copied()).is_some();
        let mut diagnosis = Diagnosis::error("config::no-servers", "there are no servers in it")
            .note("servers stand under \"mcpServers\" (or \"servers\")");
        if let Some(entry) = entries.iter().find(near) {
            diagnosis = diagnosis.at(entry.key_span.clone(), "did you mean \"mcpServers\"?");
        }
        self.tell(diagnosis.fix("{ \"mcpServers\": { \"time\": { \"command\": \"uvx\", \"args\": [\"mcp-server-time\"] } } }"));
    }

    fn servers(&mut self, node: &Node, enabled: bool) {
        match &node.value {
            Value::Map(entries) => {
                for entry in entries {
                    self.server(&entry.key, &entry.key_span, &entry.node, enabled);
                }
            }
            Value::List(nodes) => {
                for node in nodes {
                    self.listed(node, enabled);
                }
            }
            Value::Null => {}
            _ => self.tell(
                Diagnosis::error("config::type", "the servers must be a map or a list")
                    .at(node.span.clone(), format!("this is {}", node.kind()))
                    .fix("{ \"mcpServers\": { \"time\": { \"command\": \"uvx\", \"args\": [\"mcp-server-time\"] } } }"),
            ),
        }
    }

    /// One of a list: its name stands in it.
    fn listed(&mut self, node: &Node, enabled: bool) {
        let named = |key: &str| {
            node.get(key)
                .and_then(|node| Some((node.text()?, &node.span)))
        };
        match named("id").or_else(|| named("name")) {
            Some((name, span)) => {
                let (name, span) = (name.to_owned(), span.clone());
                self.server(&name, &span, node, enabled);
            }
            None => self.tell(
                Diagnosis::error("config::no-name", "a server in the list has no name")
                    .at(head(self.source, &node.span), "this one")
                    .note("a server in a list is called by its \"name\" (or \"id\")")
                    .fix("{ \"name\": \"time\", \"command\": [\"uvx\", \"mcp-server-time\"] }"),
            ),
        }
    }

    fn server(&mut self, name: &str, span: &Span, node: &Node, enabled: bool) {
        if let Some(first) = self
            .document
            .servers
            .iter()
            .find(|server| server.name == name)
        {
            let first = first.origin.span.clone();
            self.tell(
                Diagnosis::error(
                    "config::duplicate",
                    format!("two servers are called {name:?}"),
                )
                .of_server(name)
                .at(span.clone(), "the second")
                .at(first, "the first")
                .fix("rename one of them"),
            );
            return;
        }
        let mut fields = Fields::new(self.source, name, self.dialect);
        let server = server::read(&mut fields, name, span, node);
        self.document.diagnoses.append(&mut fields.diagnoses);
        if let Some(mut server) = server {
            server.enabled &= enabled;
            self.document.servers.push(server);
        }
    }

    fn settings(&mut self, node: &Node) {
        let mut fields = Fields::new(self.source, "", self.dialect);
        for entry in node.entries().unwrap_or_default() {
            match entry.key.as_str() {
                "log" => self.document.settings.log = fields.text(entry).map(|text| text.raw),
                "threads" => {
                    let threads = fields.count(entry, 1..=256);
                    self.document.settings.threads = threads.and_then(|n| u16::try_from(n).ok());
                }
                "http" => self.document.settings.http = fields.address(entry),
                "headers" => {
                    let headers = fields.settings(entry).into_iter();
                    let headers = headers.map(|(name, setting)| {
                        let origin = Origin {
                            source: Arc::clone(self.source),
                            span: entry.key_span.clone(),
                        };
                        (name, setting, origin)
                    });
                    self.document.settings.headers = headers.collect();
                }
                _ => {
                    let near = nearest(&entry.key, ["log", "threads", "http", "headers"]);
                    let text = near.map_or(String::new(), |near| format!("did you mean {near:?}?"));
                    let message = format!("unknown key {:?} under \"daemon\"", entry.key);
                    self.tell(
                        Diagnosis::warning("config::unknown-key", message)
                            .at(entry.key_span.clone(), text),
                    );
                }
            }
        }
        self.document.diagnoses.append(&mut fields.diagnoses);
    }

    fn tell(&mut self, diagnosis: Diagnosis) {
        self.document.diagnoses.push(diagnosis.in_file(self.source));
    }
}

/// Where the servers of a document are.
#[derive(Debug)]
pub struct Root<'a> {
    /// The names that lead there.
    pub path: Vec<&'static str>,
    /// The map or list.
    pub node: &'a Node,
    /// `false`: all of them are left out.
    pub enabled: bool,
}

/// Where the servers of a document are.
pub fn servers_of(tree: &Node) -> Option<Root<'_>> {
    let (root, node) = keys::ROOTS
        .iter()
        .find_map(|root| Some((*root, tree.get(root)?)))?;
    let switch = |node: &Node| {
        matches!(
            node.get("enabled").map(|node| &node.value),
            Some(Value::Bool(false))
        )
    };
    if root == "mcp" {
        for inner in ["servers", "mcpServers"] {
            if let Some(servers) = node.get(inner) {
                return Some(Root {
                    path: vec![root, inner],
                    node: servers,
                    enabled: !switch(node),
                });
            }
        }
        // Others have settings under that name.
        if !node.entries().is_some_and(looks_like_servers) {
            return None;
        }
    }
    Some(Root {
        path: vec![root],
        node,
        enabled: true,
    })
}

fn looks_like_servers(entries: &[Entry]) -> bool {
    let is_server = |entry: &Entry| {
        let fields = entry.node.entries().unwrap_or_default();
        fields.iter().any(|field| {
            matches!(
                keys::find(&field.key).map(|key| key.name),
                Some("command" | "url")
            )
        })
    };
    !entries.is_empty() && entries.iter().all(is_server)
}

/// The first line of something long.
fn head(source: &Source, span: &Span) -> Span {
    let span = source.clip(span);
    let text = &source.text[span.clone()];
    let len = text.find(['\n', '\r']).unwrap_or(text.len());
    span.start..span.start + len
}

#[cfg(test)]
mod tests;
