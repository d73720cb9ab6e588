//! What is to be known of a server that is reached over HTTP. Pure.

use std::{path::PathBuf, time::Duration};

pub use nexus_config::{
    endpoint::{Endpoint, Secret},
    model::{HttpKind as Kind, TlsVersion},
};

/// How long a connection may take to come about.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// A server that is reached over HTTP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpSpec {
    /// Where it is.
    pub url: Endpoint,
    /// Which of the two ways of speaking MCP over HTTP it knows.
    pub kind: Kind,
    /// What is sent with every request.
    pub headers: Vec<(String, Secret)>,
    /// The token to show, in a header `Authorization: Bearer …`.
    pub bearer: Option<Secret>,
    /// What a caller shows goes to the server in its place.
    pub forward_auth: bool,
    /// What the caller shows, whose connection it is: a whole header `Authorization`.
    pub forwarded: Option<Secret>,
    /// How the server is told from others.
    pub tls: TlsSpec,
    /// How long a connection may take to come about.
    pub connect_timeout: Duration,
    /// Through which proxy it is reached; none is looked for in the environment.
    pub proxy: Option<Endpoint>,
}

/// How a server is told from others, and told who we are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsSpec {
    /// Certificates to trust besides those that the system trusts: a file in PEM.
    pub ca: Option<PathBuf>,
    /// Our own certificate and the key that belongs to it: files in PEM.
    pub own: Option<(PathBuf, PathBuf)>,
    /// The oldest version that is spoken.
    pub min_version: TlsVersion,
    /// Whether it matters who answers.
    pub verify: bool,
}

impl Default for TlsSpec {
    fn default() -> Self {
        Self {
            ca: None,
            own: None,
            min_version: TlsVersion::default(),
            verify: true,
        }
    }
}

impl HttpSpec {
    /// A server at this place, with nothing else said about it.
    pub fn new(url: Endpoint) -> Self {
        Self {
            url,
            kind: Kind::default(),
            headers: Vec::new(),
            bearer: None,
            forward_auth: false,
            forwarded: None,
            tls: TlsSpec::default(),
            connect_timeout: CONNECT_TIMEOUT,
            proxy: None,
        }
    }

    /// What it is shown that nobody else is to see.
    pub fn secrets(&self) -> impl Iterator<Item = &str> {
        let headers = self.headers.iter().map(|(_, value)| value);
        let user = self.url.user.as_ref();
        let proxy = self.proxy.as_ref().and_then(|proxy| proxy.user.as_ref());
        let all = headers.chain(&self.bearer).chain(user).chain(proxy);
        all.map(Secret::expose)
    }

    /// What it is called in lists.
    pub fn transport(&self) -> &'static str {
        match self.kind {
            Kind::Sse => "sse",
            Kind::Any | Kind::Streamable => "http",
        }
    }
}
