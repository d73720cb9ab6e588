//! The one model: what a server is, however it was written. Nothing is filled in yet. Pure.

use crate::{
    node::Span,
    policy::{Consent, Oversize, Policy, Rate},
    profile::Profile,
    scope::Scope,
    source::Source,
};
use std::{fmt, net::SocketAddr, sync::Arc, time::Duration};

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$word_doc:meta])* $word:ident = $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub enum $name { $($(#[$word_doc])* $word,)* }
        impl $name {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$word,)*];
            /// As it is written.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$word => $text,)* }
            }
            /// What is written so.
            pub fn parse(text: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|word| word.as_str() == text)
            }
        }
    };
}

pub(crate) use words;

/// One server, as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// What it is called.
    pub name: String,
    /// A name for people.
    pub title: Option<String>,
    /// Where it stands.
    pub origin: Origin,
    /// Who sees it.
    pub scope: Scope,
    /// `false`: left out.
    pub enabled: bool,
    /// How it is reached. Nothing, where all that is said is that it is left out.
    pub transport: Option<Transport>,
    /// How long a call may take.
    pub timeout: Option<Duration>,
    /// How long it may take to start.
    pub start_timeout: Option<Duration>,
    /// How it is looked after.
    pub health: Option<Health>,
    /// When it is started.
    pub start: Option<Start>,
    /// It ends when nobody has called it for so long; zero: never.
    pub idle_stop: Option<Duration>,
    /// Who shares a process of it.
    pub sharing: Sharing,
    /// How many processes share its calls.
    pub replicas: Option<usize>,
    /// How many calls it works on at once.
    pub max_in_flight: Option<usize>,
    /// How many more may wait.
    pub max_queue: Option<usize>,
    /// Whether to believe what it says of its tools.
    pub trust_hints: bool,
    /// It has failed when it has no tools.
    pub fail_if_no_tools: bool,
    /// Which of its tools there are.
    pub tools: ToolFilter,
    /// `false`: it is for one agent at a time, whose it is while that agent is here.
    pub shared: bool,
    /// When somebody is asked before it is used.
    pub consent: Option<Consent>,
    /// How often it may be called.
    pub rate_limit: Option<Rate>,
    /// How often some of its tools may be called, by patterns.
    pub tool_rate_limits: Vec<(String, Rate)>,
    /// The largest result of its, in bytes.
    pub max_result: Option<usize>,
    /// What becomes of a larger one.
    pub oversize: Option<Oversize>,
}

impl Server {
    /// Whether somebody has to be asked for what it is given: a program, or a keyring.
    pub fn has_to_ask(&self) -> bool {
        let asks = |text: &Text| text.raw.contains("${cmd:") || text.raw.contains("${keyring:");
        let has_to = |setting: &Setting| match setting {
            Setting::Text(text) | Setting::File(text) => asks(text),
            Setting::Command(_) | Setting::Keyring(_) => true,
        };
        let any = |settings: &[(String, Setting)]| settings.iter().any(|(_, one)| has_to(one));
        match &self.transport {
            Some(Transport::Stdio(stdio)) => {
                let texts = stdio.args.iter().chain(&stdio.env_files).chain(&stdio.cwd);
                asks(&stdio.command) || texts.into_iter().any(asks) || any(&stdio.env)
            }
            Some(Transport::Http(http)) => {
                asks(&http.url)
                    || http.proxy.as_ref().is_some_and(asks)
                    || http.bearer_token.as_ref().is_some_and(has_to)
                    || any(&http.headers)
            }
            None => false,
        }
    }
}

/// Where a server stands.
#[derive(Clone, PartialEq, Eq)]
pub struct Origin {
    /// In this file.
    pub source: Arc<Source>,
    /// There: its name.
    pub span: Span,
}

impl fmt::Debug for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{:?}", self.source.path.display(), self.span)
    }
}

impl Origin {
    /// The line, from one.
    pub fn line(&self) -> usize {
        self.source.place(self.span.start).0
    }
}

/// How a server is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transport {
    /// As a process of ours.
    Stdio(Stdio),
    /// Over HTTP.
    Http(Http),
}

/// What is run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Stdio {
    /// The program.
    pub command: Text,
    /// Its arguments.
    pub args: Vec<Text>,
    /// Variables that it gets.
    pub env: Vec<(String, Setting)>,
    /// Variables of ours that it gets as well.
    pub env_passthrough: Vec<String>,
    /// Files with more of them.
    pub env_files: Vec<Text>,
    /// Where it runs.
    pub cwd: Option<Text>,
}

/// What is connected to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Http {
    /// Where.
    pub url: Text,
    /// In which way.
    pub kind: HttpKind,
    /// What is sent with every request.
    pub headers: Vec<(String, Setting)>,
    /// The token to show.
    pub bearer_token: Option<Setting>,
    /// What a caller shows goes to the server in its place.
    pub forward_auth: bool,
    /// How it is told from others, and told who we are.
    pub tls: Tls,
    /// Through which proxy it is reached.
    pub proxy: Option<Text>,
    /// How long a connection may take to come about.
    pub connect_timeout: Option<Duration>,
}

/// How HTTP is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HttpKind {
    /// Streamable HTTP, else the older way.
    #[default]
    Any,
    /// Streamable HTTP: every message is a POST.
    Streamable,
    /// HTTP+SSE, the older way: answers come over one stream of events.
    Sse,
}

/// How a server is told from others, and told who we are.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tls {
    /// A file with certificates to trust besides those that the system trusts.
    pub ca: Option<Text>,
    /// A file with our own certificate.
    pub cert: Option<Text>,
    /// A file with the key that belongs to it.
    pub key: Option<Text>,
    /// The oldest version that is spoken.
    pub min_version: TlsVersion,
    /// Where it says that it does not matter who answers.
    pub unverified: Option<Span>,
}

words! {
    /// A version of TLS.
    TlsVersion {
        /// 1.2.
        #[default]
        V1_2 = "1.2",
        /// 1.3.
        V1_3 = "1.3",
    }
}

/// Text that may have variables in it, or a secret.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Text {
    /// As it was written.
    pub raw: String,
    /// Where.
    pub span: Span,
}

/// A value that may be a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Setting {
    /// As it was written.
    Text(Text),
    /// What is in a file.
    File(Text),
    /// What a program says.
    Command(Vec<Text>),
    /// What the system's keyring has.
    Keyring(Text),
}

impl Setting {
    /// Whether it says where a secret is, and not what it is.
    pub fn is_reference(&self) -> bool {
        match self {
            Self::Text(text) => ["file:", "cmd:", "keyring:"]
                .iter()
                .any(|kind| text.raw.contains(kind)),
            Self::File(_) | Self::Command(_) | Self::Keyring(_) => true,
        }
    }
}

/// Not what it says: that may be a secret.
impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// How a server is looked after.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Health {
    /// Not at all.
    Off,
    /// Asked now and then.
    On {
        /// How often.
        interval: Option<Duration>,
        /// How long it may take to answer.
        timeout: Option<Duration>,
        /// How many silences end it.
        threshold: Option<u32>,
    },
}

words! {
    /// When a server is started.
    Start {
        /// With the daemon.
        #[default]
        Eager = "eager",
        /// By the first call.
        Lazy = "lazy",
    }
}

words! {
    /// How MCP clients get at tools.
    ToolsMode {
        /// All are in one list.
        #[default]
        Direct = "direct",
        /// The list has two tools, one that finds tools and one that calls them: for many tools and a small
        /// context.
        Search = "search",
        /// The list has these two and all others.
        Both = "both",
    }
}

words! {
    /// Who shares a process of a server.
    Sharing {
        /// Everybody.
        #[default]
        Shared = "shared",
        /// Nobody: each agent has its own.
        PerAgent = "per-agent",
        /// Agents that work in the same folder.
        PerProject = "per-project",
        /// Agents that show the same credential.
        PerCredential = "per-credential",
    }
}

/// Which tools of a server there are for anybody.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ToolFilter {
    /// Only these; all, where there are none.
    pub include: Vec<String>,
    /// Not these.
    pub exclude: Vec<String>,
}

impl ToolFilter {
    /// Whether all tools pass.
    pub fn is_open(&self) -> bool {
        self.include.is_empty() && self.exclude.is_empty()
    }

    /// Whether a tool of that name passes.
    pub fn passes(&self, tool: &str) -> bool {
        let named = |patterns: &[String]| patterns.iter().any(|pattern| matches(pattern, tool));
        (self.include.is_empty() || named(&self.include)) && !named(&self.exclude)
    }
}

/// Whether a name fits a pattern in which `*` stands for anything.
pub fn matches(pattern: &str, name: &str) -> bool {
    // Gemini writes `tool(arguments)`; only the tool counts here.
    glob(pattern.split('(').next().unwrap_or_default(), name)
}

/// The same, and nothing but `*` is special.
pub(crate) fn glob(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else {
        return false;
    };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else {
        return rest.is_empty();
    };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// What the daemon itself is told.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Settings {
    /// What to log.
    pub log: Option<String>,
    /// How many threads serve calls.
    pub threads: Option<u16>,
    /// The loopback address on which MCP over HTTP is served.
    pub http: Option<SocketAddr>,
    /// What some agents see of the pool.
    pub profiles: Vec<Profile>,
    /// What agents may do.
    pub policy: Policy,
    /// What is sent with every request to every server that is reached over HTTP.
    pub headers: Vec<(String, Setting, Origin)>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_takes_names_and_stars() {
        let filter = |include: &[&str], exclude: &[&str]| ToolFilter {
            include: include.iter().map(|&name| name.into()).collect(),
            exclude: exclude.iter().map(|&name| name.into()).collect(),
        };
        assert!(filter(&[], &[]).is_open() && filter(&[], &[]).passes("x"));
        let reads = filter(&["read_*", "list"], &["read_secret*"]);
        for (tool, passes) in [
            ("read_file", true),
            ("list", true),
            ("list_all", false),
            ("read_secrets", false),
            ("write", false),
        ] {
            assert_eq!(reads.passes(tool), passes, "{tool}");
        }
        assert!(filter(&["a*b*c"], &[]).passes("a-b-c") && !filter(&["a*b*c"], &[]).passes("a-c"));
        assert!(filter(&["*"], &[]).passes("anything"));
        assert!(!filter(&["ab*b"], &[]).passes("ab"));
    }

    #[test]
    fn what_may_be_a_secret_is_not_printed() {
        let text = Text {
            raw: "hunter2".into(),
            span: 0..1,
        };
        let server = format!("{:?}", Setting::Text(text));
        assert!(!server.contains("hunter2"), "{server}");
    }
}
