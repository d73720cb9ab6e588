//! MCP as lines on the endpoint: what a bridge copies, or a client speaks by itself.

use super::{
    mcp::{Client, Kind, Message, Out, not_a_message},
    rewind::Rewind,
};
use crate::{
    agent::Agent,
    api::Context,
    mcp::{
        MAX_MESSAGE,
        envelope::{self, RpcError},
        outgoing,
    },
    transport::lines::{Line, LineSplitter},
};
use std::{
    io::{self, IoSlice},
    sync::Arc,
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    sync::mpsc,
    time::timeout,
};

/// How many messages may wait for a client that is slow to read.
const WAITING: usize = 256;

/// How long a client that is being left may take to read its last answers.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// How long the requests of a client that says no more are waited for.
const NEARLY_DONE: Duration = Duration::from_millis(500);

/// How many messages go into one write.
const BATCH: usize = 32;

/// Serves a client until it leaves, or the doors close.
pub(super) async fn serve<S>(
    stream: Rewind<S>,
    agent: Arc<Agent>,
    context: &Arc<Context>,
) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (reader, writer) = tokio::io::split(stream);
    let (out, from) = Out::new(WAITING);
    let client = Client::arrive(Arc::clone(context), agent, out.clone(), None);
    let mut writing = std::pin::pin!(write(writer, from));
    let read_all = async {
        read(reader, &client, &out).await?;
        // It has gone, as a rule; if it only has no more to ask, what is nearly done is waited for.
        let _ = timeout(NEARLY_DONE, client.finished()).await;
        Ok(())
    };
    let served = tokio::select! {
        read = read_all => read,
        () = client.left() => Ok(()),
        written = &mut writing => return written,
        () = context.shutdown.api_closes() => Ok(()),
    };
    drop((client, out));
    // What was answered goes out.
    timeout(LAST_WORDS, writing)
        .await
        .unwrap_or(Ok(()))
        .and(served)
}

async fn read(mut from: impl AsyncRead + Unpin, client: &Arc<Client>, out: &Out) -> io::Result<()> {
    let mut splitter = LineSplitter::new(MAX_MESSAGE);
    loop {
        let read = from.read_buf(splitter.space()).await?;
        while let Some(line) = splitter.next_line() {
            match line {
                Line::Whole(line) => match envelope::parse(&line) {
                    Ok(message) => client.receive(message, out).await,
                    Err(wrong) => {
                        let (refused, kind) = not_a_message(&wrong);
                        out.send(refused, kind).await;
                    }
                },
                Line::Oversized { length, .. } => {
                    let message = format!(
                        "a message of {length} bytes is too large: the limit is {MAX_MESSAGE}"
                    );
                    let refused = RpcError::new(-32600, message);
                    let refused = outgoing::error_response(b"null", &refused);
                    out.send(refused, Kind::Answer(Some(-32600))).await;
                }
            }
        }
        if read == 0 {
            return Ok(());
        }
    }
}

/// Writes what is to go out. What waits together goes out together.
async fn write(
    mut to: impl AsyncWrite + Unpin,
    mut messages: mpsc::Receiver<Message>,
) -> io::Result<()> {
    let mut batch: Vec<Message> = Vec::with_capacity(BATCH);
    while messages.recv_many(&mut batch, BATCH).await > 0 {
        if let [only] = &*batch {
            to.write_all(&only.text).await?;
        } else {
            let mut slices: Vec<_> = batch
                .iter()
                .map(|message| IoSlice::new(&message.text))
                .collect();
            let mut left = &mut slices[..];
            while !left.is_empty() {
                let written = to.write_vectored(left).await?;
                if written == 0 {
                    return Err(io::ErrorKind::WriteZero.into());
                }
                IoSlice::advance_slices(&mut left, written);
            }
        }
        to.flush().await?;
        batch.clear();
    }
    Ok(())
}
