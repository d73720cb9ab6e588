//! Unix: signals.

use super::Wish;
use futures_util::{Stream, StreamExt as _};
use nexus_proto::endpoint::{BindError, Endpoint, Listener};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use std::io;

/// Lets us have as many files open as we are allowed to: each client is one, and two
/// while it is slow to read; each server three.
pub fn raise_file_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    // More is of no use, and some programs that inherit it try to close all there could be.
    const ENOUGH: u64 = 65_536;
    let limit = getrlimit(Resource::Nofile);
    let wanted = limit.maximum.unwrap_or(ENOUGH).min(ENOUGH);
    if limit.current.is_some_and(|current| current < wanted) {
        let raised = Rlimit {
            current: Some(wanted),
            ..limit
        };
        // As many as before is enough for most.
        let _ = setrlimit(Resource::Nofile, raised);
    }
}

/// Takes the endpoint.
pub fn bind(endpoint: &Endpoint) -> Result<Listener, BindError> {
    endpoint.bind()
}

/// What the signals that arrive ask for.
pub fn signals() -> io::Result<impl Stream<Item = Wish> + Unpin> {
    let heard = [SIGTERM, SIGINT, SIGQUIT, SIGHUP, SIGUSR1, SIGUSR2];
    let signals = signal_hook_tokio::Signals::new(heard)?;
    Ok(signals.filter_map(|signal| {
        std::future::ready(match signal {
            SIGHUP => Some(Wish::Reload),
            // What others take as a wish to open their logs anew must not be our end.
            SIGUSR1 | SIGUSR2 => None,
            _ => Some(Wish::Stop),
        })
    }))
}
