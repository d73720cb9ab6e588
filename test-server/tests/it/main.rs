//! The real binary, over real pipes and sockets.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod eras;
mod faults;
#[cfg(feature = "http")]
mod http;
mod interactive;
mod options;
mod questions;
#[cfg(feature = "http")]
mod site;
mod start;
mod stdio;
mod subscriptions;
mod support;
mod wire;
