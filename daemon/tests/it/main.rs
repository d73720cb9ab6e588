//! The real daemon with real servers, over its real endpoint.
#![cfg(unix)]
#![allow(missing_docs, clippy::unwrap_used, clippy::print_stderr)]
// What servers can do is tested once for each way to reach them.
#![allow(clippy::duplicate_mod)]

mod arrows;
mod asking;
mod audit;
mod calls;
mod endpoint;
mod eras;
mod face;
mod faults;
mod fidelity;
mod health;
mod http;
mod http_door;
mod hygiene;
mod lacking;
mod lifecycle;
mod limits;
mod mcp_client;
mod offers;
mod orphans;
mod over_http;
mod pins;
mod policy;
mod pool;
mod processes;
mod profiles;
mod projects;
mod records;
mod reload;
mod results;
mod rmcp;
mod search;
#[path = "../search/corpus.rs"]
mod search_corpus;
mod subscriptions;
mod support;
mod wire;
