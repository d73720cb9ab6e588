//! The client against a real gRPC server on a real socket.
#![cfg(unix)]
#![allow(missing_docs, clippy::unwrap_used)]

mod agent;
mod answers;
mod calls;
mod offers;
mod reconnect;
mod support;
