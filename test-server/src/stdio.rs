//! MCP over stdin and stdout: one message a line, one write a message.

use std::io::{self, BufRead as _, BufReader, StdoutLock, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::fault::{self, Fault};
use crate::options::Options;
use crate::out::{Kind, Out, Sink};
use crate::platform;
use crate::server::{Server, Session};

/// A line buffer larger than this is given back once its message is handled.
const KEPT: usize = 1 << 20;

/// How long the fault trickle waits after each byte.
const PAUSE: Duration = Duration::from_millis(10);

/// Serves until stdin ends.
pub(crate) fn run(options: Options) -> io::Result<()> {
    fault::at_start(&options)?;
    let server = Server::new(options)?;
    let plan = &server.plan;
    if let Some(lines) = plan.number(Fault::Banner) {
        fault::banner(lines)?;
    }
    let session = Arc::new(Session::new());
    let out = Out::new(Stdout {
        crlf: plan.has(Fault::Crlf),
        begun: AtomicBool::new(false),
        stuck: AtomicBool::new(false),
    });

    let mut stdin = BufReader::with_capacity(64 * 1024, io::stdin().lock());
    let mut line = Vec::new();
    let mut messages = 0;
    while stdin.read_until(b'\n', &mut line)? > 0 {
        if let Some(wire) = &server.wire {
            wire.line(&line);
        }
        let message = line.trim_ascii();
        if !message.is_empty() {
            server.handle(&session, message, &out);
            messages += 1;
            stop_if_due(&server, messages);
        }
        if line.capacity() > KEPT {
            line = Vec::new();
        }
        line.clear();
    }
    if plan.has(Fault::IgnoreTerm) {
        live_on();
    }
    Ok(())
}

/// The faults after which nothing is read any more.
fn stop_if_due(server: &Server, messages: u64) {
    if server.plan.is_empty() {
        return;
    }
    if server.plan.since(Fault::StopReading, messages) {
        live_on();
    }
    if server.plan.since(Fault::CloseStdin, server.calls()) {
        platform::close_stdin();
        live_on();
    }
}

fn live_on() -> ! {
    loop {
        thread::park();
    }
}

struct Stdout {
    crlf: bool,
    begun: AtomicBool,
    /// Set by the fault partial, and read, while stdout is locked.
    stuck: AtomicBool,
}

impl Stdout {
    /// Nothing once an answer is stuck: what would wait behind it for ever need not be kept.
    fn lock(&self) -> Option<StdoutLock<'static>> {
        let stdout = io::stdout().lock();
        (!self.stuck.load(Ordering::Relaxed)).then_some(stdout)
    }

    fn ending(&self) -> &'static [u8] {
        if self.crlf { b"\r\n" } else { b"\n" }
    }

    /// The byte order mark, once, if there is to be one.
    fn beginning(&self) -> &'static [u8] {
        if self.crlf && !self.begun.swap(true, Ordering::Relaxed) {
            b"\xef\xbb\xbf"
        } else {
            b""
        }
    }
}

impl Sink for Stdout {
    fn put(&self, mut message: Vec<u8>, _: Kind) -> bool {
        message.extend_from_slice(self.ending());
        message.splice(..0, self.beginning().iter().copied());
        // std's stdout passes whole lines on as they are: this is one system call.
        self.lock().is_none_or(|mut stdout| {
            stdout
                .write_all(&message)
                .and_then(|()| stdout.flush())
                .is_ok()
        })
    }

    fn put_pieces(&self, pieces: &mut dyn Iterator<Item = &[u8]>) {
        let Some(mut stdout) = self.lock() else {
            return;
        };
        for piece in pieces.chain([self.ending()]) {
            if stdout.write_all(piece).is_err() {
                return;
            }
        }
        let _ = stdout.flush();
    }

    fn put_slowly(&self, mut message: Vec<u8>) {
        message.extend_from_slice(self.ending());
        if let Some(mut stdout) = self.lock() {
            let _ = trickle(&mut stdout, &message, || thread::sleep(PAUSE));
        }
    }

    fn put_partly(&self, beginning: &[u8]) {
        if let Some(mut stdout) = self.lock() {
            let _ = stdout.write_all(beginning).and_then(|()| stdout.flush());
            self.stuck.store(true, Ordering::Relaxed);
        }
    }

    fn put_unterminated(&self, message: Vec<u8>) {
        if let Some(mut stdout) = self.lock() {
            let _ = stdout.write_all(&message).and_then(|()| stdout.flush());
        }
    }
}

/// Writes byte by byte, each on its own.
fn trickle(writer: &mut impl Write, bytes: &[u8], pause: impl Fn()) -> io::Result<()> {
    for byte in bytes.chunks(1) {
        writer.write_all(byte)?;
        writer.flush()?;
        pause();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::LineWriter;

    /// What arrives, write by write.
    #[derive(Default)]
    struct Writes(Vec<Vec<u8>>);

    impl Write for Writes {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.push(bytes.to_vec());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_trickle_is_a_write_and_a_pause_for_every_byte() {
        // As stdout does, this holds back what has no newline yet, unless it is flushed.
        let mut writer = LineWriter::new(Writes::default());
        let pauses = std::cell::Cell::new(0);
        trickle(&mut writer, b"{}\n", || pauses.set(pauses.get() + 1)).unwrap();
        assert_eq!(writer.get_ref().0, [b"{", b"}", b"\n"]);
        assert_eq!(pauses.get(), 3);
    }
}
