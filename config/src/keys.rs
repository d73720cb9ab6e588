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
    "shared" []: "`true` or `false`" => "`false`: it is for one agent at a time; while that agent is here, others do not see it";
    "consent" []: "`never`, `server` or `call`" => "when somebody is asked before it is used: never, once for each agent, or for each call; a project's file can only make it stricter";
    "rate_limit" ["rate_limits"]: "rate, or a map" => "how often it may be called: `10/s`, `60/min`, `60/min burst 10`; or `server` and `tools`, a map of rates by names of tools";
    "max_result" ["max_output", "max_result_size"]: "size" => "the largest result of a call, such as `10MB`, which it is";
    "oversize" ["on_oversize"]: "`refuse` or `truncate`" => "what becomes of a larger one: the call fails, or its text is cut and says so";
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

/// What `policy` may have.
pub const POLICY: &[Key] = keys! {
    "level" []: "`sandboxed`, `trusted` or `yolo`" => "how much agents are trusted for which no rule says it: `sandboxed` ones see no server, for `trusted` ones somebody is asked as `consent` says, for `yolo` ones nobody (`trusted`)";
    "consent" []: "`never`, `server` or `call`" => "when somebody is asked before a server is used that does not say it itself (`never`; `server` for those of projects)";
    "approval_timeout" []: "time" => "how long a question is open before it is a no (120 s)";
    "operators" []: "list of programs" => "programs that are the operator's as `nexusctl` is: for them nobody is asked, and they decide";
    "rate_limit" []: "rate" => "how often each agent may call";
    "max_result" []: "size" => "the largest result of a call (`10MB`)";
    "oversize" []: "`refuse` or `truncate`" => "what becomes of a larger one (`refuse`)";
    "pins" []: "`off`, `warn` or `block`" => "what becomes of a tool whose definition has changed: nothing, a warning, or it is held back until `nexusctl approve` (`warn`)";
    "audit" []: "`true` or `false`" => "whether every call is written down (`true`)";
    "audit_arguments" []: "`true` or `false`" => "with its arguments, as far as they are no secrets (`false`)";
    "agents" []: "map" => "rules for some agents, by name: the first that fits counts";
};

/// What a rule under `policy.agents` may have.
pub const RULE: &[Key] = keys! {
    "agents" ["agent"]: "list of names" => "for agents that call themselves so";
    "programs" ["program", "executable", "executables"]: "list of programs" => "for agents that are such a program, or were started by one: a name, or a path";
    "projects" ["project"]: "list of folders" => "for agents that work there, or below; `~` is your home";
    "level" []: "as above" => "their level";
    "consent" []: "as above" => "when somebody is asked; the stricter of this and what the server says counts";
    "profile" []: "name" => "the profile that they have";
    "rate_limit" []: "rate" => "how often each of them may call";
};

/// What the whole of our own files may have besides servers.
pub const TOP: &[Key] = keys! {
    "daemon" []: "map" => "settings of the daemon: `log`, `threads`, `http` (a loopback address; the command line wins), and `headers`, which go to every `url`";
    "profiles" []: "map" => "what some agents see of the pool, and how, by the name of the profile";
    "policy" []: "map" => "what agents may do";
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
