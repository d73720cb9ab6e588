//! The real daemon with real servers, over its real endpoint.
#![cfg(unix)]
#![allow(missing_docs, clippy::unwrap_used, clippy::print_stderr)]

mod arrows;
mod asking;
mod calls;
mod endpoint;
mod eras;
mod face;
mod faults;
mod fidelity;
mod health;
mod http_door;
mod lacking;
mod lifecycle;
mod mcp_client;
mod offers;
mod orphans;
mod pool;
mod processes;
mod projects;
mod records;
mod reload;
mod rmcp;
mod subscriptions;
mod support;
mod wire;
