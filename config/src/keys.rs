//! Every key there is: the reader, the suggestions and the documentation all come from this. Pure.

/// One key of a server.
#[derive(Debug)]
pub struct Key {
    /// As we write it.
    pub name: &'static str,
    /// As others do. Case, `_` and `-` make no difference, so `envFile` needs no line of its own.
    pub aliases: &'static [&'static str],
    /// What it may be.
    pub value: &'static str,
    /// What it is for.
    pub what: &'static str,
}

macro_rules! keys {
    ($($name:literal $([$($alias:literal),*])?: $value:literal => $what:literal;)*) => {
        &[$(Key { name: $name, aliases: &[$($($alias),*)?], value: $value, what: $what },)*]
    };
}

/// What a server may have.
pub const SERVER: &[Key] = keys! {
    "command" ["cmd"]: "text, or a list" => "what is run: a program on the `PATH` or a path; a list is the program and its arguments";
    "args" ["arguments"]: "list of text" => "its arguments";
    "env" ["environment", "envs"]: "map" => "variables that it gets; a value is text, `{\"file\": PATH}`, `{\"cmd\": [PROGRAM, …]}` or `{\"keyring\": \"SERVICE/NAME\"}`";
    "env_passthrough" ["env_vars", "env_keys", "pass_env"]: "list of names" => "variables of the daemon that it gets as well; besides these it sees only the likes of `PATH`, `HOME` and `LANG`";
    "env_file" []: "path, or a list" => "files with lines `NAME=value`; what `env` says wins";
    "cwd" ["workdir", "working_directory", "working_dir"]: "path" => "where it runs; relative to the folder of the file";
    "type" ["transport"]: "`stdio`, `http`, `streamable-http` or `sse`" => "how it is reached; known from `command` or `url` as a rule";
    "url" ["http_url", "server_url", "uri", "base_url", "endpoint"]: "text" => "where it is reached, instead of `command`";
    "headers" ["http_headers"]: "map" => "what is sent with every request to a `url`; values as in `env`";
    "bearer_token" ["bearer"]: "as in `env`" => "the token to show at a `url`; better a reference than the token itself";
    "bearer_token_env_var" []: "name" => "the variable that holds the token for a `url`";
    "forward_auth" []: "`true` or `false`" => "`true`: what a caller shows (`authorization`) goes to the `url`, in the place of what is written here; nothing is shared between callers that show something else";
    "tls" ["ssl"]: "map" => "how a `url` with https is told from others: see below";
    "proxy" ["http_proxy", "https_proxy"]: "text" => "the proxy through which a `url` is reached; none is taken from the environment";
    "connect_timeout" ["connection_timeout"]: "time" => "how long a connection to a `url` may take to come about (5 s); for a `command` it is its `start_timeout`";
    "env_http_headers" []: "map" => "headers of which the values are names of variables";
    "request_options" []: "map" => "`headers`, `proxy`, `verify_ssl`, `ca_bundle_path` and `client_certificate`, as Continue writes them";
    "timeout" ["tool_timeout", "tool_timeout_sec", "request_timeout"]: "time" => "how long a call may take (300 s)";
    "start_timeout" ["startup_timeout", "startup_timeout_sec", "init_timeout"]: "time" => "how long it may take to start (60 s)";
    "startup_timeout_ms" []: "number" => "the same in milliseconds";
    "disabled" []: "`true` or `false`" => "`true`: left out, also where an earlier layer has it";
    "enabled" []: "`true` or `false`" => "`false`: left out, also where an earlier layer has it";
    "start" []: "`eager` or `lazy`" => "`eager`: with the daemon, and kept alive; `lazy`: by the first call";
    "auto_start" []: "`true` or `false`" => "`false` is `lazy`";
    "idle_stop" ["idle_timeout"]: "time" => "ends when nobody has called it for so long; the next call starts it again; 0: never";
    "sharing" []: "`shared`, `per-agent`, `per-project` or `per-credential`" => "who shares a process of it";
    "replicas" []: "1 to 16" => "how many processes share its calls; for servers that keep nothing in memory";
    "max_in_flight" ["max_concurrency"]: "number" => "how many calls it works on at once (any number)";
    "max_queue" []: "number" => "how many more may wait (256)";
    "trust_hints" []: "`true` or `false`" => "`true`: a call that died with the server is made once more if the tool says that it is read-only or idempotent";
    "fail_if_no_tools" []: "`true` or `false`" => "`true`: a server without tools has failed";
    "health" []: "`false`, or a map" => "`false`: never asked whether it lives; or `interval`, `timeout` and `threshold`";
    "include_tools" ["enabled_tools", "allowed_tools", "tools_include"]: "list of names" => "only these tools are listed and can be called; `*` stands for anything";
    "exclude_tools" ["disabled_tools", "blocked_tools", "tools_exclude"]: "list of names" => "these tools are not";
    "tools" []: "list of names, or a map" => "`include` and `exclude`, or just what to include";
    "name" []: "text" => "what it is called, in a list of servers";
    "id" []: "text" => "what it is called, in a list of servers; then `name` is for people";
    "title" []: "text" => "a name for people";
    "description" []: "text" => "what it is for";
};

/// What the `tls` of a server may have.
pub const TLS: &[Key] = keys! {
    "ca" ["ca_file", "ca_bundle"]: "path" => "certificates to trust besides those that the system trusts, in PEM";
    "cert" ["cert_file", "client_cert"]: "path" => "our own certificate, in PEM";
    "key" ["key_file", "client_key"]: "path" => "the key that belongs to it, in PEM";
    "min_version" []: "`1.2` or `1.3`" => "the oldest version that is spoken (1.2)";
    "verify" []: "`true` or `false`" => "`false`: anybody may answer in its place, which is warned of";
};

/// What other programs write into the same files, and what means nothing to us.
pub const FOREIGN: &[&str] = &[
    "autoApprove",
    "alwaysAllow",
    "trust",
    "dev",
    "gallery",
    "version",
    "source",
    "settings",
    "remote",
    "bundled",
    "display_name",
    "available_tools",
    "required",
    "scopes",
    "oauth",
    "oauth_resource",
    "auth",
    "authProviderType",
    "supports_parallel_tool_calls",
    "default_tools_approval_mode",
    "headersHelper",
    "sandbox",
    "sandboxEnabled",
    "icon",
    "metadata",
    "$schema",
    "_comment",
    "comment",
    "note",
    "package",
    "registry",
    "iconUrl",
    "targetAudience",
    "networkTimeout",
    "sampling",
    "roots",
    "prompts",
    "resources",
    "isActive",
    "fromGalleryId",
    "debug",
];

/// What a profile may have.
pub const PROFILE: &[Key] = keys! {
    "servers" []: "list of names" => "only these servers are seen; `*` stands for anything";
    "include_tools" []: "list of names" => "only these tools of them: `tool` of any server, or `server.tool`";
    "exclude_tools" []: "list of names" => "not these tools";
    "tools" []: "`direct`, `search` or `both`" => "how MCP clients get at them: all in one list (`direct`), by the tools `search` and `execute`, or `both`";
    "agents" ["agent"]: "list of names" => "the profile is for agents that call themselves so";
    "projects" ["project"]: "list of folders" => "the profile is for agents that work there, or below; `~` is your home";
};

/// What the whole of our own files may have besides servers.
pub const TOP: &[Key] = keys! {
    "daemon" []: "map" => "settings of the daemon: `log`, `threads`, `http` (a loopback address; the command line wins), and `headers`, which go to every `url`";
    "profiles" []: "map" => "what some agents see of the pool, and how, by the name of the profile";
    "policy" []: "map" => "what agents may do; it has no effect yet, which a warning says";
};

/// Under which names servers stand in a file: the first that there is.
pub const ROOTS: &[&str] = &[
    "mcpServers",
    "mcp_servers",
    "servers",
    "context_servers",
    "amp.mcpServers",
    "mcp",
    "extensions",
];

/// The key of a server that somebody means.
pub fn find(written: &str) -> Option<&'static Key> {
    find_in(SERVER, written)
}

/// The key that somebody means.
pub fn find_in(keys: &'static [Key], written: &str) -> Option<&'static Key> {
    let plain = plain(written);
    keys.iter().find(|key| {
        self::plain(key.name) == plain
            || key.aliases.iter().any(|alias| self::plain(alias) == plain)
    })
}

/// Whether it is another program's.
pub fn is_foreign(written: &str) -> bool {
    let plain = plain(written);
    FOREIGN.iter().any(|key| self::plain(key) == plain)
        || written.starts_with("x-")
        || written.starts_with("//")
}

/// The name that somebody probably meant.
pub fn nearest(keys: &'static [Key], written: &str) -> Option<&'static str> {
    crate::nearest::nearest(written, keys.iter().map(|key| key.name))
}

fn plain(name: &str) -> String {
    let letters = name.chars().filter(|c| !matches!(c, '_' | '-'));
    letters.flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_known_in_every_spelling() {
        for (written, name) in [
            ("envFile", "env_file"),
            ("env-passthrough", "env_passthrough"),
            ("httpUrl", "url"),
            ("serverURL", "url"),
            ("environment", "env"),
            ("workdir", "cwd"),
            ("disabledTools", "exclude_tools"),
        ] {
            assert_eq!(find(written).map(|key| key.name), Some(name), "{written}");
        }
        assert!(find("arg").is_none());
        assert_eq!(nearest(SERVER, "arg"), Some("args"));
        assert!(is_foreign("autoApprove"));
    }

    #[test]
    fn no_two_keys_share_a_spelling() {
        let mut seen = std::collections::BTreeSet::new();
        for key in SERVER {
            for name in std::iter::once(&key.name).chain(key.aliases) {
                assert!(seen.insert(plain(name)), "{name}");
            }
        }
        assert!(FOREIGN.iter().all(|key| !seen.contains(&plain(key))));
    }
}
