//! The real `nexusctl`, without a daemon and with the real one.
#![allow(missing_docs, clippy::unwrap_used)]

#[cfg(unix)]
mod call;
mod config;
#[cfg(unix)]
mod diagnoses;
#[cfg(unix)]
mod no_daemon;
#[cfg(unix)]
mod steer;
mod support;
mod usage;
#[cfg(unix)]
mod view;
