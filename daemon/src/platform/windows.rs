//! Windows: the events of a console.

use super::Wish;
use futures_util::{Stream, stream};
use std::io;
use tokio::signal::windows;

/// There is no such limit here.
pub fn raise_file_limit() {}

/// What the events that arrive ask for.
pub fn signals() -> io::Result<impl Stream<Item = Wish> + Unpin> {
    let events = (
        windows::ctrl_c()?,
        windows::ctrl_break()?,
        windows::ctrl_close()?,
    );
    Ok(Box::pin(stream::unfold(
        events,
        |(mut c, mut pause, mut close)| async move {
            tokio::select! {
                _ = c.recv() => {}
                _ = pause.recv() => {}
                _ = close.recv() => {}
            }
            Some((Wish::Stop, (c, pause, close)))
        },
    )))
}
