//! What can be typed: help, man pages and completions come from this one definition.

pub(crate) mod approvals;
pub(crate) mod approve;
mod audit;
mod call;
pub(crate) mod config;
pub(crate) mod offers;
pub(crate) mod service;

use crate::output::time::parse_duration;
pub(crate) use audit::Audit;
pub(crate) use call::{Call, Source};
use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
pub(crate) use config::{Config, Connect, Import, Trust};
pub(crate) use offers::{
    Asking, Complete, Completing, Prompt, Prompts, Read, Resources, SetLogLevel, Subscribe,
};
pub(crate) use service::Service;
use std::{ffi::OsString, path::PathBuf, time::Duration};

/// See, call and steer the MCP servers that nexusd runs.
#[derive(Debug, Parser)]
#[command(
    name = "nexusctl",
    version,
    max_term_width = 100,
    subcommand_required = true,
    arg_required_else_help = true,
    after_help = "\
Examples:
  nexusctl servers                          what runs, and in which state
  nexusctl tools                            what can be called
  nexusctl call demo.add --arg a=2 --arg b=3
  nexusctl read demo file:///notes.txt      what a resource holds
  nexusctl --json status | jq .memory_bytes

Exit codes: 0 done, 1 failed, 2 usage, 3 no daemon, 4 timeout, 130 interrupted"
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    // Not `global = true`: `call --json '{…}'` takes a value, so each command has its own.
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// `nexusctl mcp` alone.
#[derive(Debug, Parser)]
#[command(name = "nexusctl")]
struct Bridge {
    #[command(flatten)]
    global: Global,
    #[command(flatten)]
    args: Mcp,
}

impl Cli {
    /// What was typed; whoever typed something wrong is told, and that is the end.
    ///
    /// There may be dozens of bridges: they are read by themselves, because building all commands touches half
    /// of the program, and what is touched is in memory.
    pub(crate) fn read() -> Self {
        let mut typed: Vec<OsString> = std::env::args_os().collect();
        if typed.get(1).is_some_and(|word| word == "mcp") {
            typed.remove(1);
            if let Ok(Bridge { global, args }) = Bridge::try_parse_from(typed) {
                return Self {
                    global,
                    json: false,
                    command: Command::Mcp(args),
                };
            }
        }
        Self::parse()
    }
}

#[derive(Debug, Args)]
pub(crate) struct Global {
    /// Where the daemon listens
    #[arg(long, global = true, value_name = "PATH", env = "NEXUS_SOCKET")]
    pub(crate) socket: Option<PathBuf>,
    /// When to use colours
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub(crate) color: Color,
    /// Say nothing but results and errors
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
    /// How long the command may take, such as 30s or 500ms
    #[arg(long, global = true, value_name = "TIME", value_parser = parse_duration)]
    pub(crate) timeout: Option<Duration>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Color {
    Auto,
    Always,
    Never,
}

#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Json {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show how the daemon is doing
    Status(Json),
    /// List the servers, or show one in full
    #[command(
        visible_alias = "ls",
        alias = "server",
        after_help = "\
Examples:
  nexusctl servers
  nexusctl servers demo       one server: its failure, its last words, what it says of itself
  nexusctl servers --watch    changes as they happen"
    )]
    Servers(Servers),
    /// List the tools, or show one with its arguments
    #[command(
        alias = "tool",
        after_help = "\
Examples:
  nexusctl tools
  nexusctl tools --server demo
  nexusctl tools demo.add     what it takes
  nexusctl tools --json | jq -r '.tools[].name'"
    )]
    Tools(Tools),
    /// Find tools by words
    #[command(after_help = "\
Names, titles, descriptions, parameters and servers are looked at; a tool of exactly that name comes first.
Other forms of a word fit too, the last word may be unfinished, and a long word misspelt. The score is 1 for
an exact name, else less.

Examples:
  nexusctl search read file
  nexusctl search -n 3 weather
  nexusctl search --json create issue | jq -r '.[0].name'")]
    Search(Search),
    /// Call a tool
    #[command(
        override_usage = "nexusctl call [OPTIONS] <TOOL> [-]",
        after_help = "\
Values of --arg get the type that the tool's schema says; see it with `nexusctl tools NAME`. Where
several types are possible, text comes last, and quotes ask for text: --arg 'id=\"5\"'. Repeat
--arg for the elements of an array. @FILE reads a value from a file; @@ is an @. On a terminal, you
are asked what the server wants to know; --no-input keeps you out of it.

Examples:
  nexusctl call demo.add --arg a=2 --arg b=3
  nexusctl call demo.add --json '{\"a\": 2, \"b\": 3}'
  echo '{\"a\": 2, \"b\": 3}' | nexusctl call demo.add -
  nexusctl call demo.echo --arg message=@notes.txt
  nexusctl call demo.add --arg a=2 --arg b=3 --json     the whole result, as JSON
  nexusctl --timeout 5s call demo.slow_operation --log-level info"
    )]
    Call(Call),
    /// List the resources
    #[command(
        alias = "resource",
        after_help = "\
Examples:
  nexusctl resources
  nexusctl resources --server demo
  nexusctl resources --json | jq -r '.resources[].uri'"
    )]
    Resources(Resources),
    /// List the resource templates
    #[command(
        alias = "template",
        after_help = "\
A template is a URI with variables, such as demo://days/{day}. Fill them in, and read the URI.

Examples:
  nexusctl templates
  nexusctl complete --template 'demo://days/{day}' day mon"
    )]
    Templates(Resources),
    /// Print what a resource holds
    #[command(
        allow_missing_positional = true,
        after_help = "\
A pipe and a file get it as it is; a terminal gets text only.

Examples:
  nexusctl read file:///notes.txt
  nexusctl read demo file:///notes.txt
  nexusctl read demo demo://logo.png --output logo.png"
    )]
    Read(Read),
    /// Tell when a resource changes, until Ctrl-C
    #[command(
        allow_missing_positional = true,
        after_help = "\
Examples:
  nexusctl subscribe demo file:///notes.txt
  nexusctl subscribe file:///notes.txt --read      what it holds, after each change
  nexusctl subscribe file:///notes.txt --count 1   wait for a change"
    )]
    Subscribe(Subscribe),
    /// List the prompts, or show one with its arguments
    #[command(after_help = "\
Examples:
  nexusctl prompts
  nexusctl prompts --server demo
  nexusctl prompts demo.review     what it takes")]
    Prompts(Prompts),
    /// Fill in a prompt, and print its messages
    #[command(after_help = "\
Examples:
  nexusctl prompt demo.review --arg code='1 + 1'
  nexusctl prompt demo.review --arg code=@main.rs --json")]
    Prompt(Prompt),
    /// Suggest values for an argument of a prompt, or a variable of a resource template
    #[command(
        override_usage = "\
nexusctl complete [OPTIONS] <PROMPT> <ARGUMENT> [VALUE]
       nexusctl complete [OPTIONS] --template <TEMPLATE> <VARIABLE> [VALUE]",
        after_help = "\
Examples:
  nexusctl complete demo.review language py
  nexusctl complete demo.review style --arg language=python
  nexusctl complete --template 'demo://days/{day}' day mon"
    )]
    Complete(Complete),
    /// List who is connected
    #[command(
        alias = "agent",
        after_help = "\
Examples:
  nexusctl agents
  nexusctl agents --json | jq '.[] | select(.in_flight > 0)'"
    )]
    Agents(Json),
    /// Show what agents want to do and somebody is asked about, and answer
    #[command(
        alias = "approval",
        args_conflicts_with_subcommands = true,
        after_help = "\
Somebody is asked where `consent` in nexus.toml says so, and for servers that came with a project. An agent that
can ask its user does; you can answer here in any case. The first answer counts; no answer is a no.

Examples:
  nexusctl approvals
  nexusctl approvals watch
  nexusctl approvals allow 3
  nexusctl approvals deny 4"
    )]
    Approvals(approvals::Approvals),
    /// Approve of tools that are no longer what they were
    #[command(after_help = "\
A tool is held to what it was when it was first seen: its name, title, description, schemas and annotations, and what
its server is run by. What has changed is shown before it is approved of, and that is what is approved of.

Examples:
  nexusctl approve                 what waits
  nexusctl approve mail.send       what has changed; then it asks
  nexusctl approve mail --yes      all tools of a server
  nexusctl approve --json | jq -r '.[] | .server + \".\" + .tool'")]
    Approve(approve::Approve),
    /// Say how much a server is to log for its client
    #[command(after_help = "\
It is shown by `nexusctl logs SERVER`, and by `nexusctl call --log-level LEVEL` while a call lasts.

Examples:
  nexusctl log-level demo debug")]
    LogLevel(SetLogLevel),
    /// Be an MCP server on standard input and output: what agents put into their configuration
    #[command(after_help = "\
An agent that has this as its one MCP server has all servers of the pool:

  {\"mcpServers\": {\"nexus\": {\"command\": \"nexusctl\", \"args\": [\"mcp\"]}}}

Tools are called server__tool. With one --server they have their own names.

Many tools fill a model's context. With --tools search it sees only two: `search` finds tools by words, with
their schemas, and `execute` calls them.

Examples:
  nexusctl mcp
  nexusctl mcp --server github
  nexusctl mcp --tools search
  echo '{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}' | nexusctl mcp")]
    Mcp(Mcp),
    /// Show how to reach the pool over HTTP: the address, the token, and what to write for an agent
    #[command(after_help = "\
HTTP is off unless the daemon was started with --http, or nexus.toml has `http` under [daemon].

Examples:
  nexusctl http
  curl -H \"Authorization: Bearer $(nexusctl http --json | jq -r .token)\" http://127.0.0.1:7420/mcp ...")]
    Http(Json),
    /// Measure how long the daemon, or a server, takes to answer
    #[command(after_help = "\
Examples:
  nexusctl ping
  nexusctl ping demo -c 5")]
    Ping(Ping),
    /// Start servers
    #[command(
        after_help = "Examples:\n  nexusctl start demo\n  nexusctl start --no-wait demo time"
    )]
    Start(Control),
    /// Stop servers, until they are started again
    #[command(after_help = "Examples:\n  nexusctl stop demo")]
    Stop(Control),
    /// Stop servers and start them again
    #[command(after_help = "Examples:\n  nexusctl restart demo")]
    Restart(Control),
    /// Ask servers for their lists again
    #[command(after_help = "Examples:\n  nexusctl refresh demo")]
    Refresh(Refresh),
    /// Show what a server wrote to its standard error
    #[command(after_help = "\
Examples:
  nexusctl logs demo -n 20
  nexusctl logs demo -f")]
    Logs(Logs),
    /// Show who called what, and what became of it
    #[command(after_help = "\
Reads the files that the daemon writes, also while none runs. With --json it prints their lines as they are.
A decision is what the policy said: allowed, denied, sandboxed, rate-limited, …; the outcome is ok, tool-error,
cancelled, lost (the daemon was killed meanwhile), or why it failed.

Examples:
  nexusctl audit
  nexusctl audit -f --server mail
  nexusctl audit --agent claude-code --since 2h
  nexusctl audit --json | jq 'select(.outcome != \"ok\")'")]
    Audit(Audit),
    /// Read the configuration again
    #[command(after_help = "Servers that the configuration leaves as they were go on undisturbed.")]
    Reload(Json),
    /// Stop the daemon and its servers
    #[command(after_help = "Calls that are under way are waited for, unless --now is given.")]
    Shutdown(Shutdown),
    /// Show and check the configuration
    #[command(args_conflicts_with_subcommands = true)]
    Config(Config),
    /// Let the servers of a project take part, as its file is now
    #[command(after_help = "\
Examples:
  nexusctl trust                 the project in this folder
  nexusctl trust --list
  nexusctl trust --remove ~/src/app")]
    Trust(Trust),
    /// Bring servers here that other programs have
    #[command(after_help = "\
Examples:
  nexusctl import                what there is to import
  nexusctl import cursor         everything that Cursor has
  nexusctl import ./mcp.json --dry-run")]
    Import(Import),
    /// Let an agent use Nexus
    #[command(after_help = "\
Examples:
  nexusctl connect               which agents there are
  nexusctl connect claude-code
  nexusctl connect claude-code --undo")]
    Connect(Connect),
    /// Look at everything, and say what to do
    Doctor(Json),
    /// Run the daemon as a service
    #[command(after_help = "\
Examples:
  nexusctl service install
  nexusctl service status
  nexusctl service uninstall")]
    Service(Service),
    /// Print completions for a shell
    #[command(after_help = "\
Examples:
  nexusctl completions bash > ~/.local/share/bash-completion/completions/nexusctl
  nexusctl completions fish > ~/.config/fish/completions/nexusctl.fish")]
    Completions {
        /// Which shell
        shell: Shell,
    },
    /// Print the man page, or write all of them into a folder
    #[command(hide = true)]
    Man {
        /// The folder
        dir: Option<PathBuf>,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Servers {
    /// Show this server in full
    pub(crate) name: Option<String>,
    /// Go on with changes as they happen
    #[arg(short, long)]
    pub(crate) watch: bool,
    #[command(flatten)]
    pub(crate) json: Json,
}

#[derive(Debug, Args)]
pub(crate) struct Tools {
    /// Show this tool with its arguments
    pub(crate) name: Option<String>,
    /// Only the tools of this server
    #[arg(short, long, value_name = "NAME", conflicts_with = "name")]
    pub(crate) server: Option<String>,
    /// Show the arguments of every tool
    #[arg(long)]
    pub(crate) schema: bool,
    #[command(flatten)]
    pub(crate) json: Json,
}

#[derive(Debug, Args)]
pub(crate) struct Search {
    /// What to look for
    #[arg(required = true)]
    pub(crate) words: Vec<String>,
    /// How many tools at the most
    #[arg(short = 'n', long, value_name = "COUNT", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) limit: u32,
    #[command(flatten)]
    pub(crate) json: Json,
}

#[derive(Debug, Args)]
pub(crate) struct Mcp {
    /// Only this server; may be repeated
    #[arg(short, long, value_name = "NAME")]
    pub(crate) server: Vec<String>,
    /// The folder that the agent works in, if not the current one
    #[arg(long, value_name = "FOLDER")]
    pub(crate) project: Option<PathBuf>,
    /// How the agent gets at tools
    #[arg(long, value_enum, value_name = "MODE")]
    pub(crate) tools: Option<ToolsMode>,
    /// What the agent sees, as `profiles` in nexus.toml says
    #[arg(long, value_name = "NAME")]
    pub(crate) profile: Option<String>,
    /// Do not start a daemon if none runs
    #[arg(long)]
    pub(crate) no_start: bool,
}

/// How an agent gets at tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ToolsMode {
    /// All tools are in its list, as usual
    Direct,
    /// Its list has two tools: `search` finds the others, `execute` calls them
    Search,
    /// Its list has these two and all others
    Both,
}

#[derive(Debug, Args)]
pub(crate) struct Ping {
    /// Ping this server instead of the daemon
    pub(crate) server: Option<String>,
    /// How many times
    #[arg(short, long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) count: u32,
    /// How long to wait between two
    #[arg(short, long, value_name = "TIME", default_value = "200ms", value_parser = parse_duration)]
    pub(crate) interval: Duration,
    #[command(flatten)]
    pub(crate) json: Json,
}

#[derive(Debug, Args)]
pub(crate) struct Control {
    /// Which servers
    #[arg(required = true, value_name = "SERVER")]
    pub(crate) servers: Vec<String>,
    /// Do not wait until it is done
    #[arg(long)]
    pub(crate) no_wait: bool,
    /// Wait until it is done, as is done anyway
    #[arg(long = "wait", hide = true, conflicts_with = "no_wait")]
    pub(crate) _wait: bool,
    #[command(flatten)]
    pub(crate) json: Json,
}

#[derive(Debug, Args)]
pub(crate) struct Refresh {
    /// Which servers
    #[arg(required = true, value_name = "SERVER")]
    pub(crate) servers: Vec<String>,
    #[command(flatten)]
    pub(crate) json: Json,
}

#[derive(Debug, Args)]
pub(crate) struct Logs {
    /// Which server
    pub(crate) server: String,
    /// Go on with new lines as they come
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// Only the last lines of what is kept
    #[arg(short = 'n', long, value_name = "COUNT")]
    pub(crate) lines: Option<u32>,
    /// Say when each line was written
    #[arg(short, long)]
    pub(crate) timestamps: bool,
    #[command(flatten)]
    pub(crate) json: Json,
}

#[derive(Debug, Args)]
pub(crate) struct Shutdown {
    /// Do not wait for calls that are under way
    #[arg(long)]
    pub(crate) now: bool,
    /// Do not wait until the daemon is gone
    #[arg(long)]
    pub(crate) no_wait: bool,
    #[command(flatten)]
    pub(crate) json: Json,
}

impl Cli {
    /// Whether JSON is asked for, before the command or after it.
    pub(crate) fn wants_json(&self) -> bool {
        self.json || self.command.wants_json()
    }
}

impl Command {
    fn wants_json(&self) -> bool {
        match self {
            Self::Status(json) | Self::Reload(json) | Self::Doctor(json) => json.json,
            Self::Config(args) => args.wants_json(),
            Self::Trust(args) => args.json.json,
            Self::Import(args) => args.json.json,
            Self::Connect(args) => args.json.json,
            Self::Servers(args) => args.json.json,
            Self::Tools(args) => args.json.json,
            Self::Search(args) => args.json.json,
            Self::Call(args) => args.wants_json(),
            Self::Resources(args) | Self::Templates(args) => args.json.json,
            Self::Read(args) => args.json.json,
            Self::Subscribe(args) => args.json.json,
            Self::Prompts(args) => args.json.json,
            Self::Prompt(args) => args.json.json,
            Self::Complete(args) => args.json.json,
            Self::Approvals(args) => args.json(),
            Self::Approve(args) => args.json.json,
            Self::Agents(json) | Self::Http(json) => json.json,
            Self::LogLevel(args) => args.json.json,
            Self::Ping(args) => args.json.json,
            Self::Start(args) | Self::Stop(args) | Self::Restart(args) => args.json.json,
            Self::Refresh(args) => args.json.json,
            Self::Logs(args) => args.json.json,
            Self::Audit(args) => args.json.json,
            Self::Shutdown(args) => args.json.json,
            Self::Service(args) => args.wants_json(),
            Self::Mcp(_) | Self::Completions { .. } | Self::Man { .. } => false,
        }
    }
}

#[cfg(test)]
mod tests;
