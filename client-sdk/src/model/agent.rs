//! Agents: who uses the pool, and what they can be asked.

use super::server::RateLimit;
use nexus_proto::v1;
use std::{path::Path, time::SystemTime};

/// Somebody who is connected to the daemon.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Agent {
    /// Its number. No two agents of one daemon have the same.
    pub id: u64,
    /// Its name, if it has said it.
    pub name: Option<String>,
    /// Its version, if it has said it.
    pub version: Option<String>,
    /// Its process, where the platform tells.
    pub pid: Option<u32>,
    /// The folder that it works in, if it has said it.
    pub project: Option<String>,
    /// What it can be asked; `None` for one that cannot be asked anything.
    pub capabilities: Option<AgentCapabilities>,
    /// The folders that it works in.
    pub roots: Vec<Root>,
    /// Since when it has been connected.
    pub since: Option<SystemTime>,
    /// Its calls that are under way.
    pub in_flight: u32,
    /// Its calls so far.
    pub calls: u64,
    /// Questions that it was asked, and has not answered yet.
    pub questions: u32,
    /// It is this client.
    pub you: bool,
    /// How often it may call; `None` if as often as it likes.
    pub rate_limit: Option<RateLimit>,
    /// Its program, and those that started it, where the platform tells.
    pub programs: Vec<String>,
    /// How much it is trusted: `operator`, `yolo`, `trusted` or `sandboxed`.
    pub level: Option<String>,
    /// The rule that says so.
    pub rule: Option<String>,
    /// Servers that are its own as long as it is here.
    pub holds: Vec<String>,
}

impl From<v1::Agent> for Agent {
    fn from(wire: v1::Agent) -> Self {
        let said = |text: String| Some(text).filter(|text| !text.is_empty());
        Self {
            id: wire.id,
            name: said(wire.name),
            version: said(wire.version),
            pid: wire.pid,
            project: said(wire.project),
            capabilities: wire.capabilities.map(Into::into),
            roots: wire.roots.into_iter().map(Into::into).collect(),
            since: wire.since.and_then(|at| at.try_into().ok()),
            in_flight: wire.in_flight,
            calls: wire.calls,
            questions: wire.questions,
            you: wire.you,
            rate_limit: wire.rate_limit.map(Into::into),
            programs: wire.programs,
            level: said(wire.level),
            rule: said(wire.rule),
            holds: wire.holds,
        }
    }
}

/// What an agent can be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct AgentCapabilities {
    /// To have a model say something.
    pub sampling: bool,
    /// To give that model tools.
    pub sampling_tools: bool,
    /// To give that model context of other servers.
    pub sampling_context: bool,
    /// To have somebody fill in a form.
    pub elicitation_form: bool,
    /// To send somebody to a page.
    pub elicitation_url: bool,
    /// Which folders it works in.
    pub roots: bool,
}

impl From<v1::AgentCapabilities> for AgentCapabilities {
    fn from(wire: v1::AgentCapabilities) -> Self {
        Self {
            sampling: wire.sampling,
            sampling_tools: wire.sampling_tools,
            sampling_context: wire.sampling_context,
            elicitation_form: wire.elicitation_form,
            elicitation_url: wire.elicitation_url,
            roots: wire.roots,
        }
    }
}

impl From<AgentCapabilities> for v1::AgentCapabilities {
    fn from(can: AgentCapabilities) -> Self {
        Self {
            sampling: can.sampling,
            sampling_tools: can.sampling_tools,
            sampling_context: can.sampling_context,
            elicitation_form: can.elicitation_form,
            elicitation_url: can.elicitation_url,
            roots: can.roots,
        }
    }
}

/// A folder that an agent works in.
///
/// ```
/// use nexus_client::Root;
///
/// let root = Root::folder("/home/me/my project").name("my project");
/// assert_eq!(root.uri, "file:///home/me/my%20project");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Root {
    /// A `file://` URI.
    pub uri: String,
    /// A name for people.
    pub name: Option<String>,
}

impl Root {
    /// A `file://` URI.
    pub fn new(uri: impl Into<String>) -> Self {
        Self {
            uri: uri.into(),
            name: None,
        }
    }

    /// A folder, by its whole path. It is named as its last part is.
    pub fn folder(path: impl AsRef<Path>) -> Self {
        let path = path.as_ref();
        let name = path.file_name().map(|name| name.to_string_lossy().into());
        Self {
            uri: file_uri(&path.to_string_lossy(), cfg!(windows)),
            name,
        }
    }

    /// A name for people.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }
}

impl From<&Path> for Root {
    fn from(path: &Path) -> Self {
        Self::folder(path)
    }
}

impl From<v1::Root> for Root {
    fn from(wire: v1::Root) -> Self {
        Self {
            uri: wire.uri,
            name: Some(wire.name).filter(|name| !name.is_empty()),
        }
    }
}

impl From<&Root> for v1::Root {
    fn from(root: &Root) -> Self {
        Self {
            uri: root.uri.clone(),
            name: root.name.clone().unwrap_or_default(),
        }
    }
}

/// RFC 8089: `/a b` is `file:///a%20b`, `C:\a` is `file:///C:/a`, `\\host\a` is `file://host/a`.
fn file_uri(path: &str, windows: bool) -> String {
    let mut path = path.to_owned();
    if windows {
        path = path.replace('\\', "/");
        // What the system puts in front of a path that it has resolved.
        let plain = path.strip_prefix("//?/").map(str::to_owned);
        path = plain.unwrap_or(path);
    }
    let mut uri = String::from(match (windows, path.as_str()) {
        (true, path) if path.starts_with("//") => "file:",
        (_, path) if path.starts_with('/') => "file://",
        _ => "file:///",
    });
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' | b':' => {
                uri.push(char::from(byte));
            }
            _ => uri += &format!("%{byte:02X}"),
        }
    }
    uri
}

/// A list that has changed, as [`AgentInfo::on_list_changed`](crate::AgentInfo::on_list_changed)
/// is told.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ListChange {
    /// A list of one server.
    Of {
        /// Which server.
        server: String,
        /// Which list.
        kind: ListKind,
    },
    /// Any list may have changed: the connection had been lost for a while.
    Any,
}

/// What a server had sent somebody to a page for is done, as
/// [`AgentInfo::on_elicitation_complete`](crate::AgentInfo::on_elicitation_complete) is told.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ElicitationComplete {
    /// The server that asked.
    pub server: String,
    /// The id of its question: [`ElicitationRequest::elicitation_id`](crate::ElicitationRequest::elicitation_id).
    pub elicitation_id: String,
}

impl From<v1::AgentElicitationComplete> for ElicitationComplete {
    fn from(wire: v1::AgentElicitationComplete) -> Self {
        Self {
            server: wire.server,
            elicitation_id: wire.elicitation_id,
        }
    }
}

/// The lists that a server has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ListKind {
    /// Its tools.
    Tools,
    /// Its resources.
    Resources,
    /// Its resource templates.
    ResourceTemplates,
    /// Its prompts.
    Prompts,
    /// A list that this version of the client does not know.
    Unknown,
}

impl From<v1::ListKind> for ListKind {
    fn from(wire: v1::ListKind) -> Self {
        match wire {
            v1::ListKind::Unspecified => Self::Unknown,
            v1::ListKind::Tools => Self::Tools,
            v1::ListKind::Resources => Self::Resources,
            v1::ListKind::ResourceTemplates => Self::ResourceTemplates,
            v1::ListKind::Prompts => Self::Prompts,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_a_uri_on_every_platform() {
        for (path, windows, uri) in [
            ("/home/me", false, "file:///home/me"),
            ("/a b/ü#?%", false, "file:///a%20b/%C3%BC%23%3F%25"),
            ("/a\\b", false, "file:///a%5Cb"),
            (r"C:\Users\me", true, "file:///C:/Users/me"),
            (r"\\?\C:\x", true, "file:///C:/x"),
            (r"\\host\share", true, "file://host/share"),
        ] {
            assert_eq!(file_uri(path, windows), uri);
        }
    }

    #[test]
    fn what_an_agent_did_not_say_is_absent() {
        let agent = Agent::from(v1::Agent::default());
        assert_eq!(
            (agent.name, agent.project, agent.capabilities),
            (None, None, None)
        );
    }
}
