//! An MCP server of our own that can misbehave on command: the demo of nexusd and the real peer of its tests.
//!
//! The core (`server`) is synchronous and knows nothing of transports: it takes one message and a sink for what it
//! answers. `stdio` and `http` bring it the messages. Whatever it does wrong on purpose is named in `fault`.

mod catalog;
mod clock;
mod conformance;
mod definitions;
mod eras;
mod fault;
#[cfg(feature = "http")]
mod http;
mod interactive;
mod journal;
mod level;
mod message;
mod odd;
mod options;
mod out;
mod platform;
mod prompts;
mod reply;
mod resources;
mod server;
mod stdio;
mod tools;
mod wire;

use std::io;

pub use fault::{Fault, FaultSpec, fault_help};
pub use odd::odd_results;
pub use options::{CacheScope, Era, Options};

/// Serves until the transport ends: HTTP if the options name a port, else stdio.
pub fn run(options: Options) -> io::Result<()> {
    #[cfg(feature = "http")]
    if let Some(port) = options.http {
        return run_http(options, port);
    }
    run_stdio(options)
}

/// Serves MCP on stdin and stdout until stdin ends; blocks the calling thread.
pub fn run_stdio(options: Options) -> io::Result<()> {
    stdio::run(options)
}

/// Serves MCP over Streamable HTTP on 127.0.0.1 (port 0: a free one, named on stderr); blocks the calling thread.
#[cfg(feature = "http")]
pub fn run_http(options: Options, port: u16) -> io::Result<()> {
    http::run(options, port)
}
