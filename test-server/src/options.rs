//! What the server is told at its start.

use std::path::PathBuf;

use crate::fault::FaultSpec;

/// How to serve. `Options::default()` is a well-behaved dual-era server on stdio.
///
/// It is a `clap::Args`, so that a host binary can flatten it into a command of its own.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct Options {
    /// Serve Streamable HTTP on 127.0.0.1:PORT instead of stdio (0: a free port).
    ///
    /// The first line on stderr then says `listening on http://127.0.0.1:PORT/mcp`.
    #[cfg(feature = "http")]
    #[arg(long, value_name = "PORT")]
    pub http: Option<u16>,

    /// The protocol revisions to speak.
    #[arg(long, value_enum, default_value_t)]
    pub era: Era,

    /// Offer N generated tools (`tool_0001`, `tool_0002`, ...) after the four standard ones.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=100_000))]
    pub tools: u32,

    /// Answer every list in pages of M entries, linked by opaque cursors.
    #[arg(long, value_name = "M", value_parser = clap::value_parser!(u32).range(1..))]
    pub page_size: Option<u32>,

    /// Misbehave: NAME, or NAME@N to say when (repeatable; --help lists the names).
    #[arg(long = "fault", value_name = "NAME[@N]")]
    pub faults: Vec<FaultSpec>,

    /// Append a line `<unix_ms> <pid> <tool> <nonce>` (tab-separated) to FILE for every tool call that is executed.
    ///
    /// The nonce is the call's `_meta["nexus.test/nonce"]`, else its `arguments.nonce`, else `-`.
    #[arg(long, value_name = "FILE")]
    pub journal: Option<PathBuf>,

    /// Append a line `<unix_ms> <pid>` (tab-separated) to FILE when the process starts, before anything else.
    #[arg(long, value_name = "FILE")]
    pub start_journal: Option<PathBuf>,

    /// Append a line `<unix_ms> <pid> cancelled <nonce>` (tab-separated) to FILE when a call is cancelled that is being
    /// executed.
    ///
    /// Over HTTP the end of its session cancels a call too, and in the modern era that of its response.
    #[arg(long, value_name = "FILE")]
    pub cancel_journal: Option<PathBuf>,

    /// Offer the tool `env` too, which tells the environment variables, working directory and arguments.
    #[arg(long)]
    pub env_tool: bool,

    /// Offer the tool `remember` too, which returns what the call before it gave, and `whoami`, which tells the pid.
    #[arg(long)]
    pub state: bool,

    /// List `slow_operation` as idempotent (`echo`, `add` and `get_time` are listed as read-only anyway).
    #[arg(long)]
    pub read_only_hints: bool,
}

/// Which revisions the server speaks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Era {
    /// Only the revisions that begin with `initialize` (2024-11-05 to 2025-11-25).
    Legacy,
    /// Only the stateless revision (2026-07-28).
    Modern,
    /// Both, as each request asks.
    #[default]
    Dual,
}
