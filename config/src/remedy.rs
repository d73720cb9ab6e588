//! What is likely wrong with a server that does not come up, and what to do about it. Pure.

use std::time::Duration;

/// Likely causes, and what to do, the best first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Remedy {
    /// What is likely wrong.
    pub causes: Vec<String>,
    /// What to do about it.
    pub fixes: Vec<String>,
}

impl Remedy {
    fn cause(mut self, cause: impl Into<String>) -> Self {
        self.causes.push(cause.into());
        self
    }

    fn fix(mut self, fix: impl Into<String>) -> Self {
        self.fixes.push(fix.into());
        self
    }
}

/// What runs other people's servers, what it comes with, and how to get it.
const RUNNERS: &[(&[&str], &str, &str)] = &[
    (
        &["npx", "npm", "node"],
        "Node.js",
        "install Node.js: https://nodejs.org, or `nvm install --lts`",
    ),
    (
        &["uvx", "uv"],
        "uv",
        "install uv: https://docs.astral.sh/uv, or `pipx install uv`",
    ),
    (
        &["docker"],
        "Docker",
        "install Docker: https://docs.docker.com/get-docker, and start it",
    ),
    (&["podman"], "Podman", "install Podman: https://podman.io"),
    (
        &["python", "python3", "pip", "pipx"],
        "Python",
        "install Python: https://www.python.org/downloads",
    ),
    (&["bunx", "bun"], "Bun", "install Bun: https://bun.sh"),
    (&["deno"], "Deno", "install Deno: https://deno.com"),
    (&["go"], "Go", "install Go: https://go.dev/doc/install"),
    (&["cargo"], "Rust", "install Rust: https://rustup.rs"),
];

/// The command is nowhere on the PATH.
pub fn not_on_path(command: &str, windows: bool) -> Remedy {
    let name = command
        .strip_suffix(".cmd")
        .or(command.strip_suffix(".exe"))
        .unwrap_or(command);
    let runner = RUNNERS.iter().find(|(names, _, _)| names.contains(&name));
    let mut remedy = match runner {
        Some((_, product, install)) => Remedy::default()
            .cause(format!("{name} is not installed (it comes with {product})"))
            .fix(*install),
        None => Remedy::default()
            .cause(format!("{name} is not installed"))
            .fix(format!(
                "install {name:?}, or write its full path in the config"
            )),
    };
    remedy = remedy.cause(format!(
        "{name} is installed, but not on the PATH of nexusd, which differs from your shell's"
    ));
    if windows {
        return remedy
            .fix(format!(
                "`where {name}` in your shell tells where it is: write that path as the command"
            ))
            .fix(format!(
                "or run it by cmd: \"command\": \"cmd\", \"args\": [\"/c\", \"{name}\", …]"
            ))
            .fix("if PATHEXT is set by you, it must have .CMD in it");
    }
    remedy
        .fix(format!(
            "`which {name}` in your shell tells where it is: write that path as the command"
        ))
        .fix("or run `nexusctl service install` again: it gives the service the PATH of your shell")
}

/// There is no such file.
pub fn no_such_file(path: &str) -> Remedy {
    Remedy::default()
        .cause("the path is misspelt, or relative to another folder than you think")
        .fix(format!("ls -l {path}"))
        .fix("write the full path, or set \"cwd\"")
}

/// The file may not be run.
pub fn not_executable(path: &str) -> Remedy {
    let remedy = Remedy::default()
        .cause("it is not marked as a program, or is on a disk from which none may be run")
        .fix(format!("chmod +x {path}"));
    let interpreter = match path.rsplit('.').next() {
        Some("py") => "python3",
        Some("js" | "mjs" | "cjs") => "node",
        Some("ts") => "npx tsx",
        Some("sh") => "sh",
        _ => return remedy,
    };
    remedy.fix(format!(
        "or run it by its interpreter: \"command\": \"{interpreter}\", \"args\": [\"{path}\"]"
    ))
}

/// What servers say before they end, and what it means.
const LAST_WORDS: &[(&[&str], &str, &str)] = &[
    (
        &["ECONNREFUSED", "Connection refused"],
        "something that it needs (a database, another server) does not answer",
        "start what it connects to, and look at the address that it is given",
    ),
    (
        &[
            "EADDRINUSE",
            "Address already in use",
            "address already in use",
        ],
        "the port that it wants is taken, perhaps by another copy of it",
        "end the other copy, or give it another port",
    ),
    (
        &[
            "ENOTFOUND",
            "getaddrinfo",
            "Could not resolve host",
            "Temporary failure in name resolution",
        ],
        "the network, or a name in it, cannot be reached",
        "look at the network, and at the address that it is given",
    ),
    (
        &[
            "MODULE_NOT_FOUND",
            "Cannot find module",
            "ERR_MODULE_NOT_FOUND",
            "ModuleNotFoundError",
            "ImportError",
        ],
        "a part of the server is not installed",
        "install its dependencies (npm install, uv sync, pip install …)",
    ),
    (
        &[
            "npm error 404",
            "npm ERR! 404",
            "E404",
            "No matching distribution",
            "not found in the package registry",
        ],
        "there is no package of that name",
        "look at the name of the package in \"args\"",
    ),
    (
        &[
            "Cannot connect to the Docker daemon",
            "docker daemon is not running",
        ],
        "Docker does not run",
        "start Docker",
    ),
    (
        &[
            "401",
            "Unauthorized",
            "invalid api key",
            "Invalid API key",
            "authentication failed",
        ],
        "its key or token is not accepted",
        "look at the key in \"env\": is it expired, or of another account?",
    ),
    (
        &[
            "environment variable",
            "is not set",
            "is required",
            "Missing required",
            "must be set",
            "undefined is not",
        ],
        "it misses a variable or an argument",
        "give it the variable in \"env\", or pass yours on with \"env_passthrough\"",
    ),
    (
        &["EACCES", "Permission denied", "EPERM"],
        "it may not read or write something",
        "look at who may read and write what it names",
    ),
    (
        &[
            "heap out of memory",
            "MemoryError",
            "Cannot allocate memory",
        ],
        "it needs more memory than there is",
        "give it less to do, or more memory",
    ),
    (
        &[
            "SyntaxError",
            "Unsupported engine",
            "requires Node",
            "requires Python",
        ],
        "it needs a newer version of what runs it",
        "update Node.js or Python, or pin an older version of the server",
    ),
    (
        &[
            "usage:",
            "Usage:",
            "unknown option",
            "unrecognized arguments",
            "unexpected argument",
        ],
        "it does not understand its arguments",
        "look at \"args\"",
    ),
];

/// The process ended. The command is as it may be shown.
pub fn ended(exit: &str, stderr: &[String], command: &str, server: &str) -> Remedy {
    let mut remedy = Remedy::default();
    for (words, cause, fix) in LAST_WORDS {
        let said = |word: &&str| stderr.iter().any(|line| line.contains(*word));
        if words.iter().any(said) {
            remedy = remedy.cause(*cause).fix(*fix);
        }
        if remedy.causes.len() == 2 {
            break;
        }
    }
    let by_exit = match exit {
        _ if !remedy.causes.is_empty() => None,
        exit if exit.contains("SIGKILL") => {
            Some("somebody killed it, or the system was out of memory (`journalctl -k` tells)")
        }
        exit if exit.contains("SIGSEGV") || exit.contains("SIGABRT") || exit.contains("SIGBUS") => {
            Some("it has a fault of its own")
        }
        "exit code 127" => Some("it wanted to run a program that is not there"),
        "exit code 126" => Some("it wanted to run something that is not a program"),
        "exit code 0" => Some(
            "it thought that its work was done: is it an MCP server that talks over stdin and stdout?",
        ),
        _ => None,
    };
    if let Some(cause) = by_exit {
        remedy = remedy.cause(cause);
    }
    remedy
        .fix(format!("`nexusctl logs {server}` shows all that it wrote"))
        .fix(format!("try it by hand: {command}"))
}

/// It lives, but does not answer as an MCP server does.
pub fn no_handshake(command: &str, limit: Duration, stderr: &[String], server: &str) -> Remedy {
    let mut remedy = Remedy::default();
    let program = command.split(' ').next().unwrap_or_default();
    let downloads = ["npx", "uvx", "docker", "bunx"]
        .iter()
        .any(|runner| program.ends_with(runner));
    remedy = if downloads {
        remedy.cause("its package is being downloaded, which takes long the first time")
    } else {
        remedy.cause("it takes long to start (it loads a model, or waits for a database)")
    };
    remedy = remedy.cause("it is not an MCP server that talks over stdin and stdout, or waits for something to be typed");
    if let Some(cause) = ended("", stderr, command, server).causes.first() {
        remedy = remedy.cause(cause.clone());
    }
    let more = (limit.as_secs() * 2).max(60);
    remedy
        .fix(format!("give it more time: \"start_timeout\": {more}"))
        .fix(format!("try it by hand: run {command}, and type {HELLO}"))
        .fix(format!("`nexusctl logs {server}` shows all that it wrote"))
}

/// Something answers at an address, but not as an MCP server does.
pub fn no_mcp_there(url: &str) -> Remedy {
    Remedy::default()
        .cause("the address is that of something else, or its path is another: often /mcp or /sse")
        .cause("it only speaks the older HTTP+SSE, at an address of its own")
        .fix(format!("`curl -i {url}` shows what answers there"))
        .fix("where its documentation has an address that ends in /sse, write that, and \"type\": \"sse\"")
}

/// Nothing answers at an address.
pub fn not_reached() -> Remedy {
    Remedy::default()
        .cause("it does not run, or not at this address")
        .cause("only a proxy leads there: none is taken from the environment")
        .fix("start it, and look at the \"url\"")
        .fix("or name the proxy: \"proxy\": \"http://proxy.example.com:8080\"")
}

/// It wants to know who we are.
pub fn not_let_in() -> Remedy {
    Remedy::default()
        .cause("it wants a token, and has got none or one that it does not accept")
        .fix("\"bearer_token\": \"${TOKEN}\" shows what the variable TOKEN holds")
        .fix("or have each agent show its own: \"forward_auth\": true")
}

/// What a client says first.
pub const HELLO: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"me","version":"1"}}}"#;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_misses_npx_is_told_how_to_get_it() {
        let remedy = not_on_path("npx", false);
        assert!(remedy.causes[0].contains("Node.js") && remedy.fixes[0].contains("nodejs.org"));
        assert!(
            not_on_path("npx", true)
                .fixes
                .iter()
                .any(|fix| fix.contains("cmd"))
        );
        assert!(not_on_path("my-tool", false).fixes[0].contains("my-tool"));
        assert!(not_on_path("uvx", false).fixes[0].contains("uv"));
    }

    #[test]
    fn last_words_are_understood() {
        let lines = |text: &str| vec![text.to_owned()];
        let refused = ended(
            "exit code 1",
            &lines("Error: connect ECONNREFUSED 127.0.0.1:5432"),
            "npx pg-server",
            "pg",
        );
        assert!(refused.causes[0].contains("does not answer"));
        assert!(refused.fixes[1].contains("nexusctl logs pg"));
        assert!(ended("signal 9 (SIGKILL)", &[], "x", "x").causes[0].contains("killed"));
        assert_eq!(ended("exit code 1", &[], "x", "x").causes, [""; 0]);
    }

    #[test]
    fn a_script_without_its_mark_is_run_by_what_runs_it() {
        assert_eq!(not_executable("/a/server.py").fixes.len(), 2);
        assert_eq!(not_executable("/a/server").fixes, ["chmod +x /a/server"]);
    }

    #[test]
    fn silence_has_its_reasons() {
        let remedy = no_handshake("/usr/bin/npx -y x", Duration::from_secs(60), &[], "x");
        assert!(remedy.causes[0].contains("downloaded"));
        assert!(remedy.fixes[0].contains("120") && remedy.fixes[1].contains("initialize"));
    }
}
