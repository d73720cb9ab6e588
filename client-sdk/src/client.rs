//! The client, and how it is made.

use crate::{
    AgentInfo, Agents, Approvals, Completions, Daemon, Error, Failure, Policy, Prompts, RawStream,
    Reason, Resources, Result, Root, Servers, Tools,
    transport::{Settings, Transport},
};
use http::{HeaderMap, HeaderValue, header::AUTHORIZATION};
use nexus_proto::endpoint::Endpoint;
use std::{
    io,
    path::{Path, PathBuf},
    time::Duration,
};
use tokio::time::{Instant, timeout};
use tonic::metadata::{MetadataMap, MetadataValue};

/// A client of the daemon. Clones share one connection and cost nothing.
///
/// Requests of many tasks travel over the connection side by side. When it is lost, the next
/// request makes a new one.
#[derive(Debug, Clone)]
pub struct Nexus {
    transport: Transport,
}

impl Nexus {
    /// Connects to this user's daemon: at `NEXUS_SOCKET` if that is set, else in the usual place.
    ///
    /// # Errors
    /// [`Error::Unreachable`](crate::Error::Unreachable), at once, when no daemon runs.
    pub async fn connect() -> Result<Self> {
        Self::builder().connect().await
    }

    /// Connects in a way of your own.
    ///
    /// ```no_run
    /// # async fn f() -> Result<(), nexus_client::Error> {
    /// use std::time::Duration;
    ///
    /// let nexus = nexus_client::Nexus::builder()
    ///     .socket("/run/user/1000/nexus/nexusd.sock")
    ///     .reconnect_for(Duration::from_secs(30))
    ///     .connect()
    ///     .await?;
    /// # Ok(()) }
    /// ```
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// The servers of the pool.
    pub fn servers(&self) -> Servers<'_> {
        Servers {
            transport: &self.transport,
        }
    }

    /// The tools of all servers.
    pub fn tools(&self) -> Tools<'_> {
        Tools {
            transport: &self.transport,
        }
    }

    /// What the servers let agents read.
    pub fn resources(&self) -> Resources<'_> {
        Resources {
            transport: &self.transport,
        }
    }

    /// The prompts of all servers.
    pub fn prompts(&self) -> Prompts<'_> {
        Prompts {
            transport: &self.transport,
        }
    }

    /// Help with filling in prompts and resource templates.
    pub fn completions(&self) -> Completions<'_> {
        Completions {
            transport: &self.transport,
        }
    }

    /// Who uses the pool.
    pub fn agents(&self) -> Agents<'_> {
        Agents {
            transport: &self.transport,
        }
    }

    /// What agents want to do and somebody is asked about.
    pub fn approvals(&self) -> Approvals<'_> {
        Approvals {
            transport: &self.transport,
        }
    }

    /// What tools are held to, for the operator.
    pub fn policy(&self) -> Policy<'_> {
        Policy {
            transport: &self.transport,
        }
    }

    /// The daemon itself.
    pub fn daemon(&self) -> Daemon<'_> {
        Daemon {
            transport: &self.transport,
        }
    }

    /// The folders that this agent works in from now on. Servers that want to know are told. It has no
    /// effect unless this client is an [agent](Builder::agent) that was made with
    /// [roots](AgentInfo::roots).
    pub fn set_roots(&self, roots: impl IntoIterator<Item = Root>) {
        self.transport.set_roots(roots.into_iter().collect());
    }

    /// How long the daemon takes to answer.
    ///
    /// # Errors
    /// When it does not.
    pub async fn ping(&self) -> Result<Duration> {
        let start = Instant::now();
        self.daemon().status().await?;
        Ok(start.elapsed())
    }

    /// Where the daemon is looked for: the path of a socket, or the name of a pipe.
    pub fn endpoint(&self) -> &Path {
        self.transport.settings().endpoint.path()
    }
}

/// How to connect; made by [`Nexus::builder`].
#[derive(Debug, Clone)]
#[must_use]
pub struct Builder {
    socket: Option<PathBuf>,
    connect_timeout: Duration,
    wait_for_daemon: Duration,
    reconnect_for: Duration,
    project: Option<PathBuf>,
    credential: Option<HeaderValue>,
    name: Option<String>,
    agent: Option<AgentInfo>,
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            socket: None,
            connect_timeout: Duration::from_secs(5),
            wait_for_daemon: Duration::ZERO,
            reconnect_for: Duration::from_secs(5),
            project: std::env::current_dir().ok(),
            credential: None,
            name: None,
            agent: None,
        }
    }
}

impl Builder {
    /// Where the daemon listens: the path of a socket, or the name of a pipe.
    pub fn socket(mut self, path: impl Into<PathBuf>) -> Self {
        self.socket = Some(path.into());
        self
    }

    /// How long one attempt to connect may take; 5 s unless told.
    pub fn connect_timeout(mut self, time: Duration) -> Self {
        self.connect_timeout = time;
        self
    }

    /// How long to wait for a daemon that is not there yet; not at all unless told.
    pub fn wait_for_daemon(mut self, time: Duration) -> Self {
        self.wait_for_daemon = time;
        self
    }

    /// How long to wait for a daemon that had been there and went away, for example because it is
    /// being restarted; 5 s unless told. Zero reports the loss at once.
    pub fn reconnect_for(mut self, time: Duration) -> Self {
        self.reconnect_for = time;
        self
    }

    /// The folder that you work in; the current one unless told. Servers that have a process for each
    /// project give you that of this folder, and run in it.
    pub fn project(mut self, folder: impl Into<PathBuf>) -> Self {
        self.project = Some(folder.into());
        self
    }

    /// You act for somebody, under this name: what the operator has said of agents holds for you, even where your
    /// program is one of the operator's own.
    pub fn as_agent(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Who you are, and what servers may ask you; nobody, and nothing, unless told. The daemon knows
    /// it before the first call, on this connection and on each that follows it.
    pub fn agent(mut self, agent: AgentInfo) -> Self {
        self.agent = Some(agent);
        self
    }

    /// What you show to servers that have a process for each credential; nothing unless told. It is
    /// sent as it is, as `authorization`: `Bearer …`, as a rule.
    ///
    /// # Errors
    /// When it holds what no header can.
    pub fn credential(mut self, credential: &str) -> Result<Self> {
        let mut value = HeaderValue::from_str(credential).map_err(|_| {
            Failure::new(Reason::InvalidRequest, "a credential is one line of text")
        })?;
        value.set_sensitive(true);
        self.credential = Some(value);
        Ok(self)
    }

    fn introduction(&self) -> HeaderMap {
        let mut metadata = MetadataMap::new();
        if let Some(project) = self.project.as_deref().and_then(Path::to_str) {
            let project = MetadataValue::from_bytes(project.as_bytes());
            metadata.insert_bin("nexus-project-bin", project);
        }
        if let Some(name) = &self.name {
            metadata.insert_bin(
                "nexus-agent-bin",
                MetadataValue::from_bytes(name.as_bytes()),
            );
        }
        let mut headers = metadata.into_headers();
        if let Some(credential) = &self.credential {
            headers.insert(AUTHORIZATION, credential.clone());
        }
        headers
    }

    /// Connects.
    ///
    /// # Errors
    /// When no daemon can be reached.
    pub async fn connect(self) -> Result<Nexus> {
        let nexus = self.connect_lazy()?;
        nexus.transport.connect().await?;
        Ok(nexus)
    }

    /// Connects, and leaves it to you what to say: MCP as lines of JSON, for one. The daemon tells by the first
    /// bytes what you speak.
    ///
    /// # Errors
    /// When no daemon can be reached.
    pub async fn connect_raw(self) -> Result<RawStream> {
        let endpoint = Endpoint::resolve(self.socket.as_deref())?;
        let late = || io::Error::from(io::ErrorKind::TimedOut);
        let connected = timeout(self.connect_timeout, endpoint.connect()).await;
        connected
            .unwrap_or_else(|_| Err(late()))
            .map_err(|source| Error::Unreachable {
                endpoint: endpoint.path().to_owned(),
                source,
            })
    }

    /// Makes a client that connects when it is first used.
    ///
    /// # Errors
    /// When nothing tells where the daemon would be.
    pub fn connect_lazy(self) -> Result<Nexus> {
        let transport = Transport::new(Settings {
            endpoint: Endpoint::resolve(self.socket.as_deref())?,
            connect_timeout: self.connect_timeout,
            wait_for_daemon: self.wait_for_daemon,
            reconnect_for: self.reconnect_for,
            introduction: self.introduction(),
            agent: self.agent,
        });
        Ok(Nexus { transport })
    }
}
