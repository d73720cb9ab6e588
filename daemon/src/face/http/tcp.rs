//! HTTP on a loopback address, where it is wanted.

use super::{Face, Way, token::Token};
use crate::{
    agent::{Agent, Speaks},
    api::HttpDoor,
};
use nexus_proto::linger::{self, Passing};
use std::{io, net::SocketAddr, path::Path, sync::Arc, time::Duration};
use tokio::{net::TcpListener, sync::Semaphore, time::sleep};
use tracing::{debug, warn};

/// How many connections there may be at once.
const MAX_CONNECTIONS: usize = 256;

/// Why there is no listening on an address.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// It can be reached from other machines.
    #[error("{0} is not an address of this machine alone: use 127.0.0.1 or [::1]")]
    NotLoopback(SocketAddr),
    /// It cannot be listened on.
    #[error("cannot listen on {0}: {1}")]
    Bind(SocketAddr, io::Error),
    /// The token cannot be read or made.
    #[error("cannot read or make {}: {source}", file.display())]
    Token {
        /// Its file.
        file: std::path::PathBuf,
        /// Why not.
        source: io::Error,
    },
}

/// A loopback address that is listened on.
#[derive(Debug)]
pub struct Loopback {
    listener: TcpListener,
    token: Arc<Token>,
    door: HttpDoor,
}

impl Loopback {
    /// Listens on an address. The token is in this file, or is put there.
    pub async fn bind(address: SocketAddr, token_file: &Path) -> Result<Self, BindError> {
        if !address.ip().is_loopback() {
            return Err(BindError::NotLoopback(address));
        }
        let token = Token::of_file(token_file).map_err(|source| BindError::Token {
            file: token_file.to_owned(),
            source,
        })?;
        let cannot = |source| BindError::Bind(address, source);
        let listener = TcpListener::bind(address).await.map_err(cannot)?;
        let door = HttpDoor {
            address: listener.local_addr().map_err(cannot)?,
            token_file: token_file.to_owned(),
        };
        Ok(Self {
            listener,
            token: Arc::new(token),
            door,
        })
    }

    /// Where it listens, and where the token is.
    pub fn door(&self) -> HttpDoor {
        self.door.clone()
    }

    /// Lets clients in until it is dropped.
    pub async fn serve(self, face: Arc<Face>) {
        let room = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        loop {
            let Ok(place) = Arc::clone(&room).acquire_owned().await else {
                return;
            };
            let stream = match self.listener.accept().await {
                Ok((stream, _)) => stream,
                Err(error) => {
                    warn!(%error, "cannot accept a connection");
                    sleep(Duration::from_millis(100)).await;
                    continue;
                }
            };
            // Answers are small, and somebody waits for each.
            let _ = stream.set_nodelay(true);
            let (face, way) = (Arc::clone(&face), Way::Tcp(Arc::clone(&self.token)));
            tokio::spawn(async move {
                let agent = Arc::new(Agent::new(None, Speaks::Mcp));
                let stream = Passing::new(linger::Way::Down, stream);
                if let Err(error) = face.serve(stream, agent, way).await {
                    debug!(%error, "a client over HTTP was lost");
                }
                drop(place);
            });
        }
    }
}
