//! Unix: signals.

use super::Wish;
use futures_util::{Stream, StreamExt as _};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use std::io;

/// What the signals that arrive ask for.
pub fn signals() -> io::Result<impl Stream<Item = Wish> + Unpin> {
    let signals = signal_hook_tokio::Signals::new([SIGTERM, SIGINT, SIGQUIT, SIGHUP])?;
    Ok(signals.map(|signal| match signal {
        SIGHUP => Wish::Reload,
        _ => Wish::Stop,
    }))
}
