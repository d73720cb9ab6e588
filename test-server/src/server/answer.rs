//! The answers to calls, and all the ways to spoil them.

use std::iter::{once, repeat_n};
use std::process::exit;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use super::call::{Ticket, spawn};
use crate::catalog::List;
use crate::fault::{self, Fault};
use crate::reply::{self, Outcome, Reply, RpcError, quoted};

const HUGE: usize = 100_000_000;
const DEPTH: usize = 100_000;
const FLOOD: usize = 50_000;
const PROGRESS_FLOOD: u32 = 20_000;
const STORM: usize = 1_000;
const LATE: Duration = Duration::from_millis(1500);

impl Ticket {
    /// Answers the call, with the faults that are due.
    pub(super) fn deliver(self, reply: Reply) {
        if self.server.plan.is_empty() {
            return self
                .server
                .respond(&self.out, &self.id, self.dialect, &reply);
        }
        if self.due(Fault::ExitAfter) {
            exit(7);
        }
        if !self.due(Fault::Late) {
            return self.misdeliver(reply);
        }
        let late = self.clone();
        let spawned = spawn(move || {
            thread::sleep(LATE);
            late.misdeliver(reply);
        });
        if let Err(error) = spawned {
            self.misdeliver(Err(RpcError::new(
                -32603,
                format!("Internal error: no thread: {error}"),
            )));
        }
    }

    fn due(&self, fault: Fault) -> bool {
        self.server.plan.at(fault, self.turn)
    }

    fn misdeliver(self, reply: Reply) {
        let (server, out) = (&self.server, &self.out);
        if server.is_muted() {
            return out.hold();
        }
        if self.due(Fault::NotificationFlood) {
            for number in 1..=FLOOD {
                let params = format!(
                    r#"{{"level":"info","logger":"flood","data":"log line {number} of {FLOOD}"}}"#
                );
                out.aside(reply::outgoing(None, "notifications/message", &params));
            }
        }
        if let Some(token) = self
            .token
            .as_deref()
            .filter(|_| self.due(Fault::ProgressFlood))
        {
            for step in 1..=PROGRESS_FLOOD {
                out.aside(reply::progress(token, step, PROGRESS_FLOOD));
            }
        }
        if let (Some(lines), 1) = (server.plan.number(Fault::StdoutGarbage), self.turn) {
            // In one piece, so that no other answer comes between the lines.
            let lines: Vec<&str> = fault::chatter(lines).collect();
            out.aside(lines.join("\n").into_bytes());
        }
        server.stray(out);
        let id = match () {
            () if self.due(Fault::StringId) => quoted(&self.id),
            () if self.due(Fault::NullId) => "null".to_owned(),
            () => self.id.clone(),
        };
        let reply = reply.map(|outcome| self.spoilt(outcome));
        if self.due(Fault::Huge) {
            self.send_huge(&id);
        } else {
            self.send(
                reply::render(&id, self.dialect, &server.caching, &reply),
                reply.err().map(|error| error.code),
            );
        }
        if self.due(Fault::ListChanged) {
            server.catalog.add_extra_tool();
            server.listeners.list_changed(List::Tools);
        }
        if self.due(Fault::ListStorm) {
            server.catalog.add_extra_tool();
            for _ in 0..STORM {
                server.listeners.list_changed(List::Tools);
            }
        }
        if self.due(Fault::ExitIdle) {
            exit(0);
        }
        if self.due(Fault::HangAll) {
            server.muted.store(true, Ordering::Relaxed);
        }
    }

    fn spoilt(&self, outcome: Outcome) -> Outcome {
        if self.due(Fault::BigNumber) {
            let numbers =
                r#""structuredContent":{"big":123456789012345678901234567890,"overflow":1e400}"#;
            return Outcome::text("two numbers that fit no machine word", numbers);
        }
        if self.due(Fault::Deep) {
            let (open, close) = ("[".repeat(DEPTH), "]".repeat(DEPTH));
            let nested = format!(r#""structuredContent":{{"deep":{open}{close}}}"#);
            return Outcome::text("nested deep", &nested);
        }
        for (fault, bytes) in [
            (Fault::BadUtf8, &b"\xff"[..]),
            (Fault::Nul, b"\0"),
            (Fault::Surrogate, br"\ud800"),
        ] {
            if self.due(fault) {
                return with_bytes(bytes);
            }
        }
        outcome
    }

    fn send(&self, mut message: Vec<u8>, error: Option<i32>) {
        if self.due(Fault::Batch) {
            message.insert(0, b'[');
            message.push(b']');
        }
        if self.due(Fault::NoNewlineExit) {
            self.out.answer_unterminated(message);
            exit(0);
        }
        if self.due(Fault::DupResponse) {
            self.out.aside(message.clone());
        }
        if self.due(Fault::Partial) {
            return self.out.answer_partly(&message[..message.len() / 2]);
        }
        if self.due(Fault::Trickle) {
            return self.out.answer_slowly(message);
        }
        self.out.answer(message, error);
    }

    /// Streams the huge answer: it must cost the reader memory, not us.
    fn send_huge(&self, id: &str) {
        static FILLER: [u8; 64 * 1024] = [b'x'; 64 * 1024];
        const MARK: &[u8] = b"@filler@";
        let frame = reply::render(id, self.dialect, "", &Ok(Outcome::text("@filler@", "")));
        let Some(at) = frame.windows(MARK.len()).rposition(|window| window == MARK) else {
            return;
        };
        let (head, tail) = (&frame[..at], &frame[at + MARK.len()..]);
        let filler = HUGE - head.len() - tail.len();
        let whole = repeat_n(&FILLER[..], filler / FILLER.len());
        let rest = &FILLER[..filler % FILLER.len()];
        self.out
            .answer_in_pieces(once(head).chain(whole).chain(once(rest)).chain(once(tail)));
    }
}

/// A text that has these bytes in its midst as they are.
fn with_bytes(bytes: &[u8]) -> Outcome {
    let members = Outcome::text("bad ? byte", "").members;
    let parts: Vec<&[u8]> = members.split(|byte| *byte == b'?').collect();
    Outcome::complete(parts.join(bytes))
}
