//! The real `nexusctl`: without a daemon, with the real one, and with one that asks on command.
#![allow(missing_docs, clippy::unwrap_used)]

#[cfg(unix)]
mod approvals;
#[cfg(unix)]
mod approve;
#[cfg(unix)]
mod ask;
#[cfg(unix)]
mod audit;
#[cfg(unix)]
mod call;
mod config;
#[cfg(unix)]
mod diagnoses;
#[cfg(unix)]
mod mcp;
#[cfg(unix)]
mod no_daemon;
#[cfg(unix)]
mod offers;
#[cfg(unix)]
mod steer;
mod support;
mod usage;
#[cfg(unix)]
mod view;
