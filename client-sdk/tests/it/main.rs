//! The client against a real gRPC server on a real socket.
#![cfg(unix)]
#![allow(missing_docs, clippy::unwrap_used)]

mod answers;
mod calls;
mod reconnect;
mod support;
