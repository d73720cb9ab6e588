//! The order of birth and death.

use crate::{
    alive,
    api::{self, Context},
    args::Args,
    catalog::Catalog,
    config::{Config, watch::FileWatch},
    face::{door, http},
    platform::{
        self, Wish,
        manager::{self, Notice},
    },
    policy::{Audit, Policy},
    pool::Pool,
    router::Router,
    shutdown::Shutdown,
};
use anyhow::Context as _;
use futures_util::StreamExt as _;
use nexus_config::Diagnosis;
use nexus_proto::endpoint::{BindError, Endpoint, EndpointError, Listener};
use parking_lot::RwLock;
use std::{
    net::SocketAddr,
    path::Path,
    sync::{Arc, atomic::AtomicUsize},
    time::{Duration, SystemTime},
};
use tokio::time::{sleep, timeout};
use tracing::{error, info, warn};

/// How long calls that are under way may take when we stop.
const DRAIN: Duration = Duration::from_secs(10);

/// How long all servers together may take to end: the whole stop ladder, and a little.
const STOP_SERVERS: Duration = Duration::from_secs(6);

/// A configuration that has not been touched for so long has been written.
const WRITING: Duration = Duration::from_millis(250);

/// How long answers may take to be written at the very end.
const CLOSE_API: Duration = Duration::from_millis(500);

/// Why the daemon did not run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// There is no place to listen at.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    /// We cannot listen there.
    #[error("cannot listen on {endpoint}")]
    Bind {
        /// Where.
        endpoint: Endpoint,
        /// Why not.
        #[source]
        source: BindError,
    },
    /// Another daemon does already.
    #[error("already running{}", pid.map(|pid| format!(", pid {pid}")).unwrap_or_default())]
    AlreadyRunning {
        /// Its process.
        pid: Option<u32>,
    },
    /// There is no listening for HTTP.
    #[error("{0}")]
    Http(#[from] http::BindError),
    /// Anything else.
    #[error("{0:#}")]
    Other(#[from] anyhow::Error),
}

impl RunError {
    /// What to do about it.
    pub fn hint(&self) -> Option<&str> {
        match self {
            Self::Bind {
                source: BindError::UnsafeDirectory { hint, .. },
                ..
            } => Some(hint),
            Self::Http(http::BindError::Bind(..)) => {
                Some("choose another port with --http 127.0.0.1:PORT")
            }
            Self::Endpoint(_) => Some("choose a place with --socket or NEXUS_SOCKET"),
            _ => None,
        }
    }
}

/// Runs until it is asked to stop.
pub async fn run(args: &Args, config: Config) -> Result<(), RunError> {
    let config = Arc::new(config);
    platform::raise_file_limit();
    // Signals first: one that comes during the start must not kill us half-way.
    let mut signals = platform::signals().context("cannot catch signals")?;
    let (endpoint, listener) = listen(args)?;

    #[cfg(unix)]
    look_after_processes(&endpoint);

    let state = args.state.clone().or_else(crate::config::state_folder);
    let loopback = match args.http.or(config.settings.http) {
        Some(address) => Some(loopback(address, state.as_deref()).await?),
        None => None,
    };
    let pool = Arc::new(Pool::new(state.as_deref()));
    let catalog = Arc::new(Catalog::new(Arc::clone(&pool)));
    let policy = Policy::new(&config, args.operators.clone());
    let policy = match &state {
        Some(state) => Arc::new(policy.audited(audit(state, &endpoint))),
        None => Arc::new(policy),
    };
    let router = Router::new(Arc::clone(&catalog), Arc::clone(&policy));
    let router = Arc::new(router);
    let shutdown = Shutdown::default();
    let context = Arc::new(Context {
        pool: Arc::clone(&pool),
        catalog,
        policy,
        router: Arc::clone(&router),
        endpoint: endpoint.clone(),
        shutdown: shutdown.clone(),
        config: RwLock::new(Arc::clone(&config)),
        config_file: args.config.clone(),
        reloading: tokio::sync::Mutex::default(),
        started_at: SystemTime::now(),
        connections: AtomicUsize::new(0),
        agents: Default::default(),
        http: loopback.as_ref().map(http::Loopback::door),
    });
    let routes = api::routes(&context)
        .await
        .context("cannot build the API")?;
    tell_all(&config.diagnoses);
    // Before the door opens: nobody is to see servers that are not even being started.
    pool.apply(&config).await;
    let http = http::Face::new(Arc::clone(&context));
    let door = door::serve(listener, routes, Arc::clone(&context), Arc::clone(&http));
    let door = tokio::spawn(door);
    let loopback = loopback.map(|loopback| tokio::spawn(loopback.serve(http)));
    info!(
        pid = std::process::id(),
        endpoint = %endpoint,
        servers = config.servers.len(),
        "listening"
    );
    manager::tell(Notice::Ready);
    let watchers = [
        tokio::spawn(keep_manager_informed(Arc::clone(&pool))),
        tokio::spawn(feed_watchdog(endpoint.clone())),
    ];

    let listen_to_signals = async {
        while let Some(wish) = signals.next().await {
            match wish {
                Wish::Stop => shutdown.ask(),
                Wish::Reload => reload(&context).await,
            }
        }
    };
    tokio::select! {
        () = listen_to_signals => {}
        () = reload_when_written(&context), if !args.no_watch => {}
        () = stop_when_asked(&shutdown, &router, &pool) => {}
    }

    shutdown.close_api();
    if let Some(loopback) = loopback {
        loopback.abort();
    }
    door.abort();
    // The socket goes with it.
    let _ = door.await;
    // Whoever asked for the end is still to hear that it came.
    let gone = async {
        while context.connections() > 0 {
            sleep(Duration::from_millis(5)).await;
        }
    };
    let _ = timeout(CLOSE_API, gone).await;
    let flush = move || context.policy.audit().flush();
    let _ = tokio::task::spawn_blocking(flush).await;
    for watcher in watchers {
        watcher.abort();
    }
    #[cfg(target_os = "linux")]
    crate::process::reaper::end_strays();
    #[cfg(unix)]
    crate::process::guardian::release();
    info!("stopped");
    Ok(())
}

/// A loopback address for MCP over HTTP. The token is kept with the state.
async fn loopback(address: SocketAddr, state: Option<&Path>) -> Result<http::Loopback, RunError> {
    let folder = state.context("there is no folder for the token: use --state")?;
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let loopback = http::Loopback::bind(address, &folder.join("http-token")).await?;
    info!(address = %loopback.door().address, "listening for HTTP");
    Ok(loopback)
}

/// Calls are written down with the state. Those under way are noted beside the socket: whoever holds that has no
/// earlier daemon beside it, and the folder is in memory as a rule, where nobody has to wait for a disk.
fn audit(state: &Path, endpoint: &Endpoint) -> Audit {
    let folder = state.join("audit");
    let path = endpoint.path();
    let calls = match path.file_name() {
        // A pipe is in no folder that files could be in.
        Some(name) if cfg!(windows) => state.join(name),
        _ => path.to_owned(),
    };
    Audit::start(&folder, &calls.with_extension("calls"))
}

/// Takes over the socket that systemd has for us, or makes our own.
fn listen(args: &Args) -> Result<(Endpoint, Listener), RunError> {
    #[cfg(target_os = "linux")]
    if let Some(socket) =
        platform::systemd::socket().context("cannot take over systemd's socket")?
    {
        let adopted = Endpoint::adopt(socket);
        return adopted.map_err(|source| match source {
            BindError::AlreadyRunning { pid } => RunError::AlreadyRunning { pid },
            source => RunError::Other(anyhow::Error::new(source)),
        });
    }
    let endpoint = Endpoint::resolve(args.socket.as_deref())?;
    match platform::bind(&endpoint) {
        Ok(listener) => Ok((endpoint, listener)),
        Err(BindError::AlreadyRunning { pid }) => Err(RunError::AlreadyRunning { pid }),
        Err(source) => Err(RunError::Bind { endpoint, source }),
    }
}

/// Whatever becomes of this daemon, no process of its servers is to be left behind, nor of an earlier
/// daemon's at the same endpoint: that one is gone, or we would not hold it.
#[cfg(unix)]
fn look_after_processes(endpoint: &Endpoint) {
    use crate::process::guardian;
    let place = endpoint.to_string();
    if let Err(error) = guardian::start(&place) {
        warn!(%error, "no guardian: if this daemon is killed, servers may be left behind");
    }
    #[cfg(target_os = "linux")]
    if let Err(error) = crate::process::reaper::start() {
        warn!(%error, "what servers leave behind cannot be adopted");
    }
    // It looks at every process there is: nobody has to wait for that.
    tokio::task::spawn_blocking(move || {
        let leftovers = guardian::sweep_leftovers(&place);
        if leftovers > 0 {
            warn!(leftovers, "ended what an earlier daemon had left behind");
        }
    });
}

/// Refuses new calls, waits for those under way, ends the servers. Asked again: at once.
async fn stop_when_asked(shutdown: &Shutdown, router: &Router, pool: &Pool) {
    shutdown.asked().await;
    router.close();
    manager::tell(Notice::Stopping);
    info!(calls = router.in_flight(), "stopping");
    tokio::select! {
        drained = timeout(DRAIN, router.drained()) => {
            if drained.is_err() {
                warn!(calls = router.in_flight(), "calls are still under way: their servers are ended");
            }
        }
        () = shutdown.asked_again() => warn!("asked again: stopping now"),
    }
    tokio::select! {
        stopped = timeout(STOP_SERVERS, pool.stop_all()) => {
            if stopped.is_err() {
                error!("servers are left that cannot be ended");
            }
        }
        () = shutdown.asked_again() => {
            pool.kill_all().await;
            let _ = timeout(Duration::from_secs(1), pool.stop_all()).await;
        }
    }
}

async fn reload(context: &Context) {
    if context.router.is_closed() {
        return; // servers are being ended: none is to be started
    }
    manager::tell(Notice::Reloading);
    match context.reload().await {
        Ok((report, diagnoses)) => {
            tell_all(&diagnoses);
            info!(
                added = report.added.len(),
                removed = report.removed.len(),
                changed = report.changed.len(),
                unchanged = report.unchanged.len(),
                "configuration read again"
            );
        }
        Err(error) => {
            tell_all(&error.diagnoses);
            error!("the configuration cannot be used: everything stays as it was");
        }
    }
    manager::tell(Notice::Ready);
}

/// Reads the configuration again whenever somebody has written it.
async fn reload_when_written(context: &Context) {
    let mut config = Arc::clone(&context.config.read());
    let mut watch = FileWatch::new(config.watched.clone());
    loop {
        watch.changed(WRITING).await;
        reload(context).await;
        config = Arc::clone(&context.config.read());
        // A project more or less.
        if !watch.is_of(config.watched.iter().map(|(file, _)| file.as_path())) {
            watch = FileWatch::new(config.watched.clone());
        }
    }
}

/// Tells what is wrong with the configuration, with all that a program may want to know of it.
fn tell_all(diagnoses: &[Diagnosis]) {
    for diagnosis in diagnoses {
        let (code, server) = (diagnosis.code, diagnosis.server.as_deref());
        let hint = diagnosis.fixes.first();
        if diagnosis.is_error() {
            error!(code, server, hint, "{diagnosis}");
        } else {
            warn!(code, server, hint, "{diagnosis}");
        }
    }
}

async fn keep_manager_informed(pool: Arc<Pool>) {
    let mut pulse = pool.pulse();
    loop {
        let servers = pool.servers();
        let ready = servers.values().filter(|server| server.is_ready()).count();
        let text = format!("{ready} of {} servers ready", servers.len());
        manager::tell(Notice::Status(&text));
        if pulse.changed().await.is_err() {
            return;
        }
        // Many changes at once are one line.
        sleep(Duration::from_millis(100)).await;
    }
}

/// Tells systemd that we live, as long as we find that we do.
async fn feed_watchdog(endpoint: Endpoint) {
    let Some(interval) = manager::watchdog() else {
        return;
    };
    let pause = interval / 4;
    loop {
        match timeout(pause, alive::check(&endpoint)).await {
            Ok(Ok(())) => manager::tell(Notice::Alive),
            Ok(Err(error)) => warn!(%error, "we do not answer ourselves"),
            Err(_) => warn!("we do not answer ourselves in time"),
        }
        sleep(pause).await;
    }
}
