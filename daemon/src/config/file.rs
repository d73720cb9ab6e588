//! Reads `mcp.json`, as agents write it.

use super::{Config, ServerConfig, Sharing, Start, name_servers};
use crate::{
    supervisor::health::HealthPolicy,
    transport::http::spec::{Endpoint, HttpSpec, Kind, Secret, TlsSpec, TlsVersion},
};
use serde::Deserialize;
use serde_json::Value;
use std::{
    collections::BTreeMap,
    fs,
    io::{self, Read as _},
    path::{Path, PathBuf},
    time::Duration,
};

/// Keys that other agents write and that mean nothing here.
const FOREIGN_KEYS: &[&str] = &[
    "description",
    "autoApprove",
    "alwaysAllow",
    "trust",
    "dev",
    "gallery",
];

/// More callers than this have nothing to wait for.
const MOST_WAITING: usize = 10_000;

/// More processes of one server would not make it faster.
const MAX_REPLICAS: usize = 16;

/// No timeout is longer: what is meant by it is "never".
const LONGEST: Duration = Duration::from_secs(7 * 24 * 3600);

/// Why the configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read {}", path.display())]
    Unreadable {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// Somebody else could have written it, and it says which programs are run.
    #[error("{} {problem}", path.display())]
    Unsafe {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
        /// What to do about it.
        hint: String,
    },
    /// It is not JSON, or not of the right form.
    #[error("{}:{line}:{column}: {problem}", path.display())]
    Malformed {
        /// Which file.
        path: PathBuf,
        /// Which line.
        line: usize,
        /// Which column.
        column: usize,
        /// What is wrong there.
        problem: String,
    },
    /// A server in it makes no sense.
    #[error("{}: server {server:?}: {problem}", path.display())]
    Server {
        /// Which file.
        path: PathBuf,
        /// Which server.
        server: String,
        /// What is wrong with it.
        problem: String,
        /// What to do about it.
        hint: String,
    },
}

impl ConfigError {
    /// What to do about it.
    pub fn hint(&self) -> Option<&str> {
        match self {
            Self::Unsafe { hint, .. } | Self::Server { hint, .. } => Some(hint),
            Self::Malformed { .. } => Some(
                "look for a missing or a trailing comma, single quotes, or a name without quotes",
            ),
            Self::Unreadable { .. } => None,
        }
    }
}

#[derive(Deserialize)]
struct File {
    #[serde(alias = "servers")]
    #[serde(rename = "mcpServers")]
    servers: BTreeMap<String, Entry>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    command: Option<CommandLine>,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    #[serde(default, alias = "env_passthrough")]
    env_passthrough: Vec<String>,
    #[serde(alias = "workdir")]
    cwd: Option<PathBuf>,
    #[serde(alias = "httpUrl", alias = "serverUrl")]
    url: Option<String>,
    #[serde(rename = "type", alias = "transport")]
    kind: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    bearer: Option<String>,
    #[serde(default, alias = "forward_auth")]
    forward_auth: bool,
    tls: Option<TlsEntry>,
    proxy: Option<String>,
    timeout: Option<f64>,
    #[serde(alias = "start_timeout")]
    start_timeout: Option<f64>,
    health: Option<HealthEntry>,
    #[serde(default)]
    disabled: bool,
    enabled: Option<bool>,
    start: Option<Start>,
    /// The older way to say `lazy`.
    #[serde(alias = "auto_start")]
    auto_start: Option<bool>,
    #[serde(alias = "idle_stop")]
    idle_stop: Option<f64>,
    #[serde(default)]
    sharing: Sharing,
    replicas: Option<usize>,
    #[serde(alias = "max_in_flight")]
    max_in_flight: Option<usize>,
    #[serde(alias = "max_queue")]
    max_queue: Option<usize>,
    #[serde(default, alias = "trust_hints")]
    trust_hints: bool,
    #[serde(default, alias = "fail_if_no_tools")]
    fail_if_no_tools: bool,
    #[serde(flatten)]
    unknown: BTreeMap<String, Value>,
}

/// How an HTTP server is told from others.
#[derive(Default, Deserialize)]
#[serde(default)]
struct TlsEntry {
    ca: Option<PathBuf>,
    cert: Option<PathBuf>,
    key: Option<PathBuf>,
    min_version: Option<String>,
    verify: Option<bool>,
}

/// `false` switches it off.
#[derive(Deserialize)]
#[serde(untagged)]
enum HealthEntry {
    Switch(bool),
    Policy {
        interval: Option<f64>,
        timeout: Option<f64>,
        threshold: Option<u32>,
    },
}

#[derive(Deserialize)]
#[serde(untagged)]
enum CommandLine {
    Program(String),
    All(Vec<String>),
}

pub(super) fn read(path: &Path) -> Result<Config, ConfigError> {
    let unreadable = |source| ConfigError::Unreadable {
        path: path.to_owned(),
        source,
    };
    // Anything else could keep us waiting for ever.
    if !fs::metadata(path).map_err(unreadable)?.is_file() {
        return Err(unreadable(io::Error::other("it is not a file")));
    }
    // Opened once: what is checked is what is read.
    let mut file = fs::File::open(path).map_err(unreadable)?;
    check_owner(path, &file.metadata().map_err(unreadable)?)?;
    let mut text = String::new();
    file.read_to_string(&mut text).map_err(unreadable)?;
    parse(path, &text)
}

fn parse(path: &Path, text: &str) -> Result<Config, ConfigError> {
    let json = text.strip_prefix('\u{feff}').unwrap_or(text);
    let file: File = serde_json::from_str(json).map_err(|error| ConfigError::Malformed {
        path: path.to_owned(),
        line: error.line(),
        column: error.column(),
        problem: error_text(&error),
    })?;
    let mut config = Config {
        files: vec![path.to_owned()],
        text: Some(text.as_bytes().to_vec()),
        ..Config::default()
    };
    for (name, entry) in file.servers {
        if entry.disabled || entry.enabled == Some(false) {
            continue;
        }
        config.warnings.extend(unknown_keys(&name, &entry));
        config.servers.push(server(path, &name, entry)?);
    }
    name_servers(&mut config.servers);
    Ok(config)
}

fn server(path: &Path, name: &str, entry: Entry) -> Result<ServerConfig, ConfigError> {
    let wrong = |problem: &str, hint: &str| ConfigError::Server {
        path: path.to_owned(),
        server: name.to_owned(),
        problem: problem.to_owned(),
        hint: hint.to_owned(),
    };
    let http = http(path, &entry).map_err(|(problem, hint)| wrong(&problem, hint))?;
    let mut words = match entry.command {
        Some(CommandLine::Program(program)) => vec![program],
        Some(CommandLine::All(words)) => words,
        None => vec![],
    };
    if http.is_some() {
        words = vec![String::new()];
    }
    if http.is_none()
        && words
            .first()
            .is_none_or(|program| program.trim().is_empty())
    {
        return Err(wrong(
            "it has no command",
            "write \"command\": \"npx\", \"args\": [\"-y\", \"some-server\"]",
        ));
    }
    let command = words.remove(0);
    words.extend(entry.args);
    if name.trim().is_empty() {
        return Err(wrong("it has no name", "give it one"));
    }
    let seconds = |key: &str, value: Option<f64>, default: Duration| match value {
        None => Ok(default),
        Some(value) => Duration::try_from_secs_f64(value)
            .ok()
            .filter(|time| !time.is_zero())
            .map(|time| time.min(LONGEST))
            .ok_or_else(|| {
                wrong(
                    &format!("its {key:?} is not a number of seconds"),
                    &format!("write \"{key}\": 30"),
                )
            }),
    };
    let defaults = ServerConfig::new(name, command);
    let health = match entry.health {
        None | Some(HealthEntry::Switch(true)) => defaults.health,
        Some(HealthEntry::Switch(false)) => HealthPolicy {
            interval: Duration::ZERO,
            ..defaults.health
        },
        Some(HealthEntry::Policy {
            interval,
            timeout,
            threshold,
        }) => HealthPolicy {
            interval: seconds("interval", interval, defaults.health.interval)?,
            timeout: seconds("timeout", timeout, defaults.health.timeout)?,
            threshold: threshold.unwrap_or(defaults.health.threshold).max(1),
        },
    };
    let start = match (entry.start, entry.auto_start) {
        (Some(start), _) => start,
        (None, Some(false)) => Start::Lazy,
        (None, _) => defaults.start,
    };
    let replicas = entry.replicas.unwrap_or(defaults.replicas);
    if !(1..=MAX_REPLICAS).contains(&replicas) {
        return Err(wrong(
            &format!("it cannot have {replicas} replicas"),
            &format!("write a number from 1 to {MAX_REPLICAS}"),
        ));
    }
    if entry.max_in_flight == Some(0) {
        return Err(wrong(
            "with \"max_in_flight\": 0 it could never be called",
            "write how many calls it can work on at once, or leave it out",
        ));
    }
    // Zero is what people write for never.
    let idle_stop = match entry.idle_stop {
        None | Some(0.0) => None,
        given => Some(seconds("idle_stop", given, Duration::ZERO)?),
    };
    let sharing = match &http {
        // What one caller shows is not for another.
        Some(http) if http.forward_auth => Sharing::PerCredential,
        _ => entry.sharing,
    };
    Ok(ServerConfig {
        start,
        idle_stop,
        sharing,
        http,
        replicas,
        max_in_flight: entry.max_in_flight,
        max_queue: entry
            .max_queue
            .unwrap_or(defaults.max_queue)
            .min(MOST_WAITING),
        trust_hints: entry.trust_hints,
        fail_if_no_tools: entry.fail_if_no_tools,
        health,
        source: Some(path.to_owned()),
        args: words,
        env: entry.env,
        env_passthrough: entry.env_passthrough,
        cwd: entry.cwd.map(|cwd| {
            let folder = path.parent().unwrap_or(Path::new(""));
            let cwd = folder.join(cwd);
            std::path::absolute(&cwd).unwrap_or(cwd)
        }),
        timeout: seconds("timeout", entry.timeout, defaults.timeout)?,
        start_timeout: seconds("start_timeout", entry.start_timeout, defaults.start_timeout)?,
        ..defaults
    })
}

/// How a server is reached that has a URL and no command; else `None`.
fn http(path: &Path, entry: &Entry) -> Result<Option<HttpSpec>, (String, &'static str)> {
    let (None, Some(url)) = (&entry.command, &entry.url) else {
        return Ok(None);
    };
    let place = |key: &str, url: &str| {
        Endpoint::parse(url).map_err(|error| {
            let problem = format!("its {key:?} cannot be used: {error}");
            (problem, "write it as \"https://example.com/mcp\"")
        })
    };
    let folder = path.parent().unwrap_or(Path::new(""));
    let file = |file: &Option<PathBuf>| file.as_ref().map(|file| folder.join(file));
    let tls = match &entry.tls {
        None => TlsSpec::default(),
        Some(tls) => TlsSpec {
            ca: file(&tls.ca),
            cert: file(&tls.cert),
            key: file(&tls.key),
            min_version: match tls.min_version.as_deref() {
                None | Some("1.2") => TlsVersion::V1_2,
                Some("1.3") => TlsVersion::V1_3,
                Some(other) => {
                    let problem = format!("its TLS \"min_version\" is {other:?}");
                    return Err((problem, "write \"1.2\" or \"1.3\""));
                }
            },
            verify: tls.verify.unwrap_or(true),
        },
    };
    let kind = match entry.kind.as_deref() {
        Some("sse" | "http+sse") => Kind::Sse,
        Some("http" | "streamable-http" | "streamableHttp") => Kind::Auto,
        _ => Kind::Auto,
    };
    let headers = entry.headers.iter();
    Ok(Some(HttpSpec {
        kind,
        headers: headers
            .map(|(name, value)| (name.clone(), Secret::new(value)))
            .collect(),
        bearer: entry.bearer.as_deref().map(Secret::new),
        forward_auth: entry.forward_auth,
        tls,
        proxy: match &entry.proxy {
            Some(proxy) => Some(place("proxy", proxy)?),
            None => None,
        },
        ..HttpSpec::new(place("url", url)?)
    }))
}

fn unknown_keys(server: &str, entry: &Entry) -> Vec<String> {
    const KNOWN: &[&str] = &[
        "command",
        "args",
        "env",
        "env_passthrough",
        "cwd",
        "timeout",
        "start_timeout",
        "disabled",
        "enabled",
        "start",
        "auto_start",
        "idle_stop",
        "sharing",
        "replicas",
        "max_in_flight",
        "max_queue",
        "trust_hints",
        "fail_if_no_tools",
        "url",
        "headers",
        "bearer",
        "forward_auth",
        "tls",
        "proxy",
        "health",
    ];
    let unknown = entry
        .unknown
        .keys()
        .filter(|key| !FOREIGN_KEYS.contains(&key.as_str()));
    unknown
        .map(
            |key| match crate::nearest::nearest(key, KNOWN.iter().copied()) {
                Some(known) => {
                    format!("server {server:?}: unknown key {key:?}; did you mean {known:?}?")
                }
                None => format!("server {server:?}: unknown key {key:?}"),
            },
        )
        .collect()
}

/// The text of an error without the position, which is told apart.
fn error_text(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rfind(" at line ") {
        Some(at) => text[..at].to_owned(),
        None => text,
    }
}

/// A file that says which programs are run must be the user's own (or root's).
#[cfg(unix)]
fn check_owner(path: &Path, meta: &fs::Metadata) -> Result<(), ConfigError> {
    use std::os::unix::fs::MetadataExt as _;
    let refused = |problem: String, hint: String| {
        Err(ConfigError::Unsafe {
            path: path.to_owned(),
            problem,
            hint,
        })
    };
    let me = rustix::process::geteuid().as_raw();
    if meta.uid() != me && meta.uid() != 0 {
        return refused(
            format!("belongs to another user (uid {})", meta.uid()),
            "it says which programs are run: use a file of your own".to_owned(),
        );
    }
    if meta.mode() & 0o022 != 0 {
        return refused(
            format!("is writable by others (mode {:04o})", meta.mode() & 0o7777),
            format!("chmod go-w {}", path.display()),
        );
    }
    Ok(())
}

#[cfg(not(unix))]
fn check_owner(_path: &Path, _meta: &fs::Metadata) -> Result<(), ConfigError> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<Config, ConfigError> {
        parse(Path::new("/etc/mcp.json"), text)
    }

    #[test]
    fn both_spellings_of_a_command_are_read() {
        let config = of(r#"{"mcpServers": {
            "b": {"command": "npx", "args": ["-y", "x"], "env": {"K": "v"}, "timeout": 1.5},
            "A": {"command": ["npx", "-y", "x"], "type": "stdio"}
        }}"#)
        .unwrap();
        let [a, b] = &config.servers[..] else {
            panic!("{config:?}")
        };
        assert_eq!((&*a.name, &*b.name, a.slug.as_str()), ("A", "b", "a"));
        assert_eq!((&a.command, &a.args), (&b.command, &b.args));
        assert_eq!(b.timeout, Duration::from_millis(1500));
        assert_eq!(config.warnings, [""; 0]);
    }

    #[test]
    fn servers_is_another_word_for_the_same() {
        assert_eq!(
            of(r#"{"servers": {"x": {"command": "y"}}}"#)
                .unwrap()
                .servers
                .len(),
            1
        );
    }

    #[test]
    fn a_disabled_server_is_left_out() {
        let config = of(r#"{"mcpServers": {
            "a": {"command": "x", "disabled": true}, "b": {"command": "x", "enabled": false}
        }}"#);
        assert_eq!(config.unwrap().servers, []);
    }

    #[test]
    fn an_unknown_key_is_warned_of_with_the_nearest() {
        let config = of(r#"{"mcpServers": {"x": {"command": "y", "arg": []}}}"#).unwrap();
        assert_eq!(
            config.warnings,
            ["server \"x\": unknown key \"arg\"; did you mean \"args\"?"]
        );
    }

    #[test]
    fn an_http_server_is_read_and_what_may_be_secret_of_it_is_not_told() {
        let config = of(r#"{"mcpServers": {"x": {"type": "sse",
            "url": "https://me:hunter1@localhost/mcp?key=hunter2", "forward_auth": true,
            "headers": {"X-Key": "hunter3"}, "bearer": "hunter4",
            "tls": {"ca": "ca.pem", "min_version": "1.3", "verify": false}}}}"#)
        .unwrap();
        let [server] = &config.servers[..] else {
            panic!("{config:?}")
        };
        let http = server.http.as_ref().unwrap();
        assert_eq!(
            (server.transport(), server.sharing),
            ("sse", Sharing::PerCredential)
        );
        assert_eq!(http.tls.ca.as_deref(), Some(Path::new("/etc/ca.pem")));
        let shown = format!("{server:?} {}", config.redacted());
        assert!(!shown.contains("hunter"), "{shown}");
        assert!(shown.contains("https://localhost/mcp"), "{shown}");
        assert_eq!(config.warnings, [""; 0]);
        for bad in ["ftp://x/", "localhost:8080"] {
            let error = of(&format!(r#"{{"mcpServers": {{"x": {{"url": "{bad}"}}}}}}"#));
            assert!(error.unwrap_err().to_string().contains("\"url\""));
        }
    }

    #[test]
    fn a_syntax_error_says_where() {
        let error = of("{\n  \"mcpServers\": {\n    \"x\" 1\n").unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("/etc/mcp.json:3:9: expected `:`"),
            "{error}"
        );
    }

    #[test]
    fn a_server_without_a_command_is_an_error_that_names_it() {
        for text in [
            r#"{"mcpServers": {"x": {}}}"#,
            r#"{"mcpServers": {"x": {"command": []}}}"#,
        ] {
            let error = of(text).unwrap_err();
            assert!(
                error
                    .to_string()
                    .contains("server \"x\": it has no command"),
                "{error}"
            );
            assert!(error.hint().unwrap().contains("npx"));
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_file_that_others_can_write_is_refused() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("mcp.json");
        fs::write(&path, r#"{"mcpServers": {}}"#).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(read(&path).is_ok());
        fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
        let error = read(&path).unwrap_err();
        assert!(error.hint().unwrap().starts_with("chmod go-w "), "{error}");
    }
}
