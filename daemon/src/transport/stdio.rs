//! The two loops that drive a server's standard input and output.

use super::{
    lines::{Line, LineSplitter},
    outbox::Outbox,
};
use nexus_proto::linger::{self, Way};
use std::{
    io::{self, IoSlice},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    time::timeout,
};

/// How many frames go into one write.
const BATCH: usize = 64;

/// Reads lines until the stream ends, and hands each one over. A line that has begun and of which
/// nothing more comes for as long as `patience` is an error of the kind `TimedOut`.
pub async fn read_lines(
    mut from: impl AsyncRead + Unpin,
    max_line: usize,
    patience: Duration,
    mut each: impl FnMut(Line) -> io::Result<()>,
) -> io::Result<()> {
    let mut splitter = LineSplitter::new(max_line);
    loop {
        let read = if splitter.is_partial() {
            timeout(patience, from.read_buf(splitter.space()))
                .await
                .unwrap_or_else(|late| Err(late.into()))
        } else {
            from.read_buf(splitter.space()).await
        };
        while let Some(line) = splitter.next_line() {
            each(line)?;
        }
        match read {
            Ok(0) => break,
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    match splitter.finish() {
        Some(line) => each(line),
        None => Ok(()),
    }
}

/// Writes what the outbox holds until it is closed. Frames that wait together go out together. A
/// reader that takes nothing at all for as long as `patience` is an error of the kind `TimedOut`, unless
/// it `is_busy` with what it has taken: that is asked with the number of requests that are being written.
pub async fn write_frames(
    outbox: &Outbox,
    mut to: impl AsyncWrite + Unpin,
    patience: Duration,
    is_busy: impl Fn(usize) -> bool,
) -> io::Result<()> {
    let mut batch = Vec::new();
    while outbox.next_batch(BATCH, &mut batch).await {
        let mut slices: Vec<IoSlice<'_>> = batch
            .iter()
            .map(|frame| IoSlice::new(&frame.bytes))
            .collect();
        let mut rest = &mut slices[..];
        while !rest.is_empty() {
            let written = timeout(patience, to.write_vectored(rest)).await;
            let begun = batch.len() - rest.len();
            let requests = || batch[begun..].iter().filter(|frame| frame.id.is_some());
            match written.map_err(io::Error::from).flatten() {
                Ok(n) if n > 0 => IoSlice::advance_slices(&mut rest, n),
                Err(late)
                    if late.kind() == io::ErrorKind::TimedOut && is_busy(requests().count()) => {}
                failed => {
                    // Of the first that is left a part may have gone out; of the others nothing.
                    let untouched = rest[0].len() == batch[begun].bytes.len();
                    outbox.give_back(&batch[begun + usize::from(!untouched)..]);
                    return failed.and(Err(io::ErrorKind::WriteZero.into()));
                }
            }
        }
        linger::passed_on(Way::Up);
        batch.clear();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::outbox::Frame;
    use bytes::Bytes;
    use std::sync::Arc;

    #[tokio::test]
    async fn frames_arrive_whole_and_in_order_through_a_narrow_pipe() {
        let (ours, theirs) = tokio::io::duplex(7);
        let outbox = Arc::new(Outbox::default());
        let writer = tokio::spawn({
            let outbox = Arc::clone(&outbox);
            async move { write_frames(&outbox, ours, Duration::MAX, |_| false).await }
        });
        let expected: Vec<String> = (0..500).map(|i| format!("{{\"n\":{i}}}")).collect();
        for text in &expected {
            let bytes = Bytes::from(format!("{text}\n"));
            outbox
                .push(Frame {
                    bytes,
                    ..Frame::default()
                })
                .unwrap();
        }
        let mut lines = Vec::new();
        let mut splitter = LineSplitter::new(100);
        let mut theirs = theirs;
        while lines.len() < expected.len() {
            theirs.read_buf(splitter.space()).await.unwrap();
            lines.extend(std::iter::from_fn(|| splitter.next_line()));
        }
        let expected: Vec<Line> = expected
            .into_iter()
            .map(|l| Line::Whole(l.into()))
            .collect();
        assert_eq!(lines, expected);
        outbox.close();
        writer.await.unwrap().unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_reader_that_takes_nothing_is_not_waited_for() {
        let (ours, _theirs) = tokio::io::duplex(8);
        let outbox = Outbox::default();
        let bytes = Bytes::from_static(b"more than fits into the pipe");
        outbox
            .push(Frame {
                bytes,
                ..Frame::default()
            })
            .unwrap();
        let error = write_frames(&outbox, ours, Duration::from_secs(10), |_| false).await;
        assert_eq!(error.unwrap_err().kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test(start_paused = true)]
    async fn a_reader_that_is_busy_is_waited_for() {
        let (ours, mut theirs) = tokio::io::duplex(8);
        let outbox = Outbox::default();
        let bytes = Bytes::from_static(b"more than fits into the pipe");
        let id = Some(1);
        outbox
            .push(Frame {
                id,
                bytes,
                ..Frame::default()
            })
            .unwrap();
        let busy_until = tokio::time::Instant::now() + Duration::from_secs(100);
        let is_busy = |writing| {
            assert_eq!(writing, 1);
            tokio::time::Instant::now() < busy_until
        };
        let writing = write_frames(&outbox, ours, Duration::from_secs(10), is_busy);
        let mut read = Vec::new();
        let reading = async {
            tokio::time::sleep(Duration::from_secs(95)).await;
            while read.len() < 28 {
                theirs.read_buf(&mut read).await.unwrap();
            }
        };
        tokio::select! {
            written = writing => panic!("{written:?}"),
            () = reading => {}
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_line_that_is_begun_and_never_ended_is_not_waited_for() {
        let (mut theirs, ours) = tokio::io::duplex(64);
        let mut lines = Vec::new();
        let reading = read_lines(ours, 100, Duration::from_secs(60), |line| {
            lines.push(line);
            Ok(())
        });
        let writing = async {
            // Between two lines there is all the time in the world; within one, not.
            tokio::time::sleep(Duration::from_secs(3600)).await;
            for byte in b"{}\n{\"half" {
                theirs.write_all(&[*byte]).await.unwrap();
                tokio::time::sleep(Duration::from_secs(50)).await;
            }
            std::future::pending::<()>().await;
        };
        tokio::select! {
            read = reading => assert_eq!(read.unwrap_err().kind(), io::ErrorKind::TimedOut),
            () = writing => unreachable!(),
        }
        assert_eq!(lines, [Line::Whole("{}".into())]);
    }

    #[tokio::test]
    async fn what_meets_a_closed_pipe_was_not_sent() {
        let (ours, theirs) = tokio::io::duplex(64);
        drop(theirs);
        let outbox = Outbox::default();
        for id in [Some(1), None, Some(2)] {
            let bytes = Bytes::from_static(b"{}\n");
            outbox
                .push(Frame {
                    id,
                    bytes,
                    ..Frame::default()
                })
                .unwrap();
        }
        let error = write_frames(&outbox, ours, Duration::MAX, |_| false)
            .await
            .unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
        assert_eq!(outbox.close(), [1, 2]);
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_begun_counts_as_sent() {
        let (ours, _theirs) = tokio::io::duplex(5);
        let outbox = Outbox::default();
        for id in 1..=3 {
            let bytes = Bytes::from_static(b"{}\n");
            outbox
                .push(Frame {
                    id: Some(id),
                    bytes,
                    ..Frame::default()
                })
                .unwrap();
        }
        let error = write_frames(&outbox, ours, Duration::from_secs(1), |_| false).await;
        assert_eq!(error.unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert_eq!(outbox.close(), [3]);
    }
}
