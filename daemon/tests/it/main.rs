//! The real daemon with real servers, over its real endpoint.
#![cfg(unix)]
#![allow(missing_docs, clippy::unwrap_used, clippy::print_stderr)]

mod arrows;
mod calls;
mod endpoint;
mod faults;
mod health;
mod lifecycle;
mod orphans;
mod pool;
mod processes;
mod records;
mod reload;
mod rmcp;
mod support;
mod wire;
