//! What the server is told at its start.

use std::path::PathBuf;

use crate::eras::LEGACY;
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

    /// With --http: serve HTTP+SSE as well, as the first revision had it: GET /sse, then POST where its first event says.
    #[cfg(feature = "http")]
    #[arg(long, requires = "http")]
    pub sse: bool,

    /// The protocol revisions to speak.
    #[arg(long, value_enum, default_value_t)]
    pub era: Era,

    /// Of the legacy revisions speak only VERSION (repeatable, or a list with commas).
    ///
    /// `initialize` is answered with the requested one if it is among them, else with the newest of them.
    #[arg(long = "revision", value_name = "VERSION", value_delimiter = ',', value_parser = LEGACY)]
    pub revisions: Vec<String>,

    /// Offer N generated tools (`tool_0001`, `tool_0002`, ...) after the four standard ones.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=100_000))]
    pub tools: u32,

    /// Offer the tools of FILE too: a JSON array of definitions. They take any arguments, and return their names.
    #[arg(long, value_name = "FILE")]
    pub tools_file: Option<PathBuf>,

    /// Offer what FILE says in place of our own: a JSON object with any of `tools`, `prompts`, `resources` and
    /// `resourceTemplates`, each an array of definitions, `instructions`, and `error`, with which calls fail then.
    ///
    /// It is read again whenever it is asked for. Its tools take any arguments and return their names.
    #[arg(long, value_name = "FILE")]
    pub lists_file: Option<PathBuf>,

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

    /// Offer the tools `ask`, `log`, `touch`, `grow` and `odd` too, which do all else that a server can do to a client.
    ///
    /// `ask` puts a question (kind: sampling, elicitation, url, roots, or both for elicitation and roots at once) and
    /// returns the answer; `log` sends log messages; `touch` tells the subscribers of a resource that it has changed;
    /// `grow` adds an entry to a list and says so; `odd` returns one of the results that are hard to pass on unchanged.
    #[arg(long)]
    pub interactive: bool,

    /// Offer what the conformance suite of MCP expects of a server too: its tools, resources and prompts `test_...`.
    #[arg(long)]
    pub conformance: bool,

    /// Write every answer as a JSON-RPC batch, together with the progress and the log messages of its request.
    ///
    /// This is 2025-03-26, the only revision with batches. Questions and changes are sent at once, each in a batch of
    /// its own.
    #[arg(long)]
    pub batch: bool,

    /// How long a modern result may be kept: its `ttlMs` [default: 60000]
    #[arg(long, value_name = "MS")]
    pub ttl: Option<u64>,

    /// For whom a modern result may be kept: its `cacheScope`.
    #[arg(long, value_enum, default_value_t)]
    pub cache_scope: CacheScope,

    /// Append every line that is read from stdin, before it is handled, to `FOLDER/<pid>-<start ms>.jsonl`.
    ///
    /// A line `# negotiated VERSION` follows an `initialize`, and a line `# asked ID METHOD` comes before the answer
    /// to a question of the server's. What cannot be written is left out; nothing is recorded over HTTP.
    #[arg(long, value_name = "FOLDER")]
    pub wire: Option<PathBuf>,
}

/// For whom a result may be kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum CacheScope {
    /// Anybody.
    #[default]
    Public,
    /// Whoever asked.
    Private,
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
