//! A daemon that does as it is told, on a socket of its own and in a runtime of its own: ending
//! that runtime is as sudden as `kill -9`.

use futures_util::StreamExt as _;
use nexus_client::{Builder, Nexus};
use nexus_proto::v1::{
    agents_server::AgentsServer, completions_server::CompletionsServer,
    daemon_server::DaemonServer, prompts_server::PromptsServer, resources_server::ResourcesServer,
    servers_server::ServersServer, tools_server::ToolsServer,
};
use std::{
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, Weak,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};
use tempfile::TempDir;
use tokio::{
    net::UnixListener,
    runtime::Runtime,
    sync::{Barrier, Notify},
};
use tokio_stream::wrappers::UnixListenerStream;
use tonic::transport::Server;

pub(crate) mod agents;
pub(crate) mod connection;
mod offers;
mod services;

use connection::{Number, Numbered};

/// What all daemons on one socket have seen, and how they behave.
#[derive(Default)]
pub(crate) struct World {
    /// Connections that were accepted.
    pub(crate) connections: AtomicUsize,
    /// Tool calls that were carried out, by name and arguments.
    pub(crate) executed: Mutex<Vec<(String, bytes::Bytes)>>,
    /// Lists that were asked for.
    pub(crate) lists: AtomicUsize,
    /// A call of `hang`, or a list that hangs, has begun.
    pub(crate) entered: Notify,
    /// A stream of `hang` was dropped.
    pub(crate) cancelled: Arc<Notify>,
    /// The next list hangs.
    pub(crate) hang_list: AtomicBool,
    /// Calls are refused so many times because the daemon is stopping.
    pub(crate) refusals: AtomicUsize,
    /// Where calls of `meet` wait for each other.
    pub(crate) meeting: Mutex<Option<Arc<Barrier>>>,
    /// Who can be asked, and was.
    pub(crate) desk: agents::Desk,
    me: Mutex<Weak<World>>,
}

impl World {
    pub(crate) fn executions(&self) -> usize {
        self.executed.lock().unwrap().len()
    }
}

/// A socket, and the daemon behind it while there is one.
pub(crate) struct Fake {
    pub(crate) world: Arc<World>,
    home: TempDir,
    runtime: Option<Runtime>,
}

impl Fake {
    /// No daemon yet.
    pub(crate) fn absent() -> Self {
        let world: Arc<World> = Arc::default();
        *world.me.lock().unwrap() = Arc::downgrade(&world);
        Self {
            world,
            home: tempfile::tempdir().unwrap(),
            runtime: None,
        }
    }

    pub(crate) fn running() -> Self {
        let mut fake = Self::absent();
        fake.start();
        fake
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.home.path().join("nexusd.sock")
    }

    /// Listens before it returns: nobody has to wait for it.
    pub(crate) fn start(&mut self) {
        assert!(self.runtime.is_none());
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let listener = listen(&self.socket());
        let world = Arc::clone(&self.world);
        runtime.spawn(async move {
            let listener = UnixListener::from_std(listener).unwrap();
            let counted = Arc::clone(&world);
            let incoming = UnixListenerStream::new(listener).map(move |stream| {
                let number = counted.connections.fetch_add(1, Ordering::SeqCst) + 1;
                stream.map(|stream| Numbered {
                    stream,
                    number: Number(number),
                })
            });
            let tools = ToolsServer::from_arc(Arc::clone(&world));
            Server::builder()
                .add_service(
                    tools
                        .max_decoding_message_size(32 << 20)
                        .max_encoding_message_size(64 << 20),
                )
                .add_service(ServersServer::from_arc(Arc::clone(&world)))
                .add_service(ResourcesServer::from_arc(Arc::clone(&world)))
                .add_service(PromptsServer::from_arc(Arc::clone(&world)))
                .add_service(CompletionsServer::from_arc(Arc::clone(&world)))
                .add_service(AgentsServer::from_arc(Arc::clone(&world)))
                .add_service(DaemonServer::from_arc(world))
                .serve_with_incoming(incoming)
                .await
        });
        self.runtime = Some(runtime);
    }

    /// Ends the daemon in the middle of whatever it does; all connections are closed after this.
    pub(crate) fn kill(&mut self) {
        let _ = std::fs::remove_file(self.socket());
        if let Some(runtime) = self.runtime.take() {
            // A runtime may not be waited for inside of another one.
            thread::spawn(move || runtime.shutdown_timeout(Duration::from_secs(60)))
                .join()
                .unwrap();
        }
    }

    pub(crate) fn builder(&self) -> Builder {
        Nexus::builder().socket(self.socket())
    }

    pub(crate) async fn client(&self) -> Nexus {
        self.builder().connect().await.unwrap()
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.kill();
    }
}

fn listen(path: &Path) -> std::os::unix::net::UnixListener {
    let listener = std::os::unix::net::UnixListener::bind(path).unwrap();
    listener.set_nonblocking(true).unwrap();
    listener
}
