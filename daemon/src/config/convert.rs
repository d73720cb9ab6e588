//! From what is written to what is run.

use super::{Config, MAX_QUEUE, ServerConfig, ServerRules, Sharing, error::failure, name_servers};
use crate::{
    process::Helpers,
    supervisor::health::HealthPolicy,
    transport::http::spec::{CONNECT_TIMEOUT, HttpSpec, Secret, TlsSpec},
};
use nexus_config::{
    Loaded, Server, Transport,
    layers::Places,
    model::{Health, Http},
    resolve::{self, Remote, Resolved, resolve_all},
    secret::How,
};
use std::{sync::Arc, time::Duration};

/// More callers than this have nothing to wait for.
const MOST_WAITING: usize = 10_000;

/// What is to run. A server that lacks something (a variable, a secret) is there, and cannot start: the others
/// are not to wait for it.
pub(super) fn config(loaded: Loaded, places: &Places) -> Config {
    let mut config = Config {
        files: loaded.files.iter().map(|file| file.path.clone()).collect(),
        watched: loaded.watched,
        diagnoses: loaded.diagnoses,
        profiles: loaded
            .settings
            .profiles
            .iter()
            .cloned()
            .map(Arc::new)
            .collect(),
        settings: loaded.settings,
        home: places.home.clone(),
        ..Config::default()
    };
    let (headers, diagnoses) = resolve::headers(&config.settings, places, How::Fetch(&Helpers));
    config.diagnoses.extend(diagnoses);
    let mut servers = loaded.servers;
    servers.retain(|server| server.enabled);
    let resolved = resolve_all(&servers, places, &Helpers);
    for (written, (resolved, diagnoses)) in servers.into_iter().zip(resolved) {
        let lacks = diagnoses.iter().find(|diagnosis| diagnosis.is_error());
        let lacks = lacks.map(|diagnosis| Arc::new(failure(diagnosis)));
        config.diagnoses.extend(diagnoses);
        let made = server(written, resolved, &headers);
        config
            .servers
            .extend(made.map(|made| ServerConfig { lacks, ..made }));
    }
    name_servers(&mut config.servers);
    config
}

fn server(
    written: Server,
    resolved: Option<Resolved>,
    headers: &[(String, Secret)],
) -> Option<ServerConfig> {
    let defaults = match (written.transport.as_ref()?, resolved) {
        (
            Transport::Stdio(stdio),
            Some(Resolved::Stdio {
                command,
                args,
                env,
                cwd,
            }),
        ) => ServerConfig {
            args,
            env,
            env_passthrough: stdio.env_passthrough.clone(),
            cwd,
            ..ServerConfig::new(&written.name, command)
        },
        (Transport::Http(http), Some(Resolved::Http(remote))) => ServerConfig {
            http: Some(spec(http, *remote, headers)),
            ..ServerConfig::new(&written.name, String::new())
        },
        // It lacks something: what is shown of it, and nothing that could be run or reached.
        (Transport::Stdio(stdio), _) => ServerConfig::new(&written.name, stdio.command.raw.clone()),
        (Transport::Http(_), _) => ServerConfig::new(&written.name, String::new()),
    };
    let forwards = defaults.http.as_ref().is_some_and(|http| http.forward_auth);
    Some(ServerConfig {
        source: Some(written.origin.source.path.clone()),
        scope: written.scope.clone(),
        timeout: written.timeout.unwrap_or(defaults.timeout),
        start_timeout: written.start_timeout.unwrap_or(defaults.start_timeout),
        health: health(written.health, defaults.health),
        start: written.start.unwrap_or(defaults.start),
        // Zero is what people write for never.
        idle_stop: written.idle_stop.filter(|time| !time.is_zero()),
        // What one caller shows is not for another.
        sharing: match forwards {
            true => Sharing::PerCredential,
            false if !written.shared => Sharing::PerAgent,
            false => written.sharing,
        },
        replicas: written.replicas.unwrap_or(defaults.replicas),
        max_in_flight: written.max_in_flight,
        max_queue: written.max_queue.unwrap_or(MAX_QUEUE).min(MOST_WAITING),
        trust_hints: written.trust_hints,
        fail_if_no_tools: written.fail_if_no_tools,
        tools: written.tools.clone(),
        exclusive: !written.shared,
        rules: ServerRules {
            from_project: written.origin.source.project().is_some(),
            consent: written.consent,
            rate_limit: written.rate_limit,
            tool_rate_limits: written.tool_rate_limits.clone(),
            max_result: written.max_result,
            oversize: written.oversize,
        },
        written: Some(Arc::new(written)),
        ..defaults
    })
}

/// `everywhere`: headers that are sent to all servers; what is said of one of them wins.
fn spec(written: &Http, remote: Remote, everywhere: &[(String, Secret)]) -> HttpSpec {
    let mut headers = remote.headers;
    for (name, value) in everywhere {
        if !headers
            .iter()
            .any(|(own, _)| own.eq_ignore_ascii_case(name))
        {
            headers.push((name.clone(), value.clone()));
        }
    }
    HttpSpec {
        kind: written.kind,
        headers,
        bearer: remote.bearer_token,
        forward_auth: written.forward_auth,
        tls: TlsSpec {
            ca: remote.ca,
            own: remote.cert.zip(remote.key),
            min_version: written.tls.min_version,
            verify: written.tls.unverified.is_none(),
        },
        proxy: remote.proxy,
        connect_timeout: written.connect_timeout.unwrap_or(CONNECT_TIMEOUT),
        ..HttpSpec::new(remote.url)
    }
}

fn health(written: Option<Health>, default: HealthPolicy) -> HealthPolicy {
    match written {
        None => default,
        Some(Health::Off) => HealthPolicy {
            interval: Duration::ZERO,
            ..default
        },
        Some(Health::On {
            interval,
            timeout,
            threshold,
        }) => HealthPolicy {
            interval: interval.unwrap_or(default.interval),
            timeout: timeout.unwrap_or(default.timeout),
            threshold: threshold.unwrap_or(default.threshold),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::http::spec::{Kind, TlsVersion};
    use nexus_config::{Layer, Source};

    fn of(text: &str) -> Config {
        let mut loaded = Loaded::default();
        loaded.add(&Source::new("/etc/nexus/mcp.json", Layer::User, text));
        assert!(!loaded.has_errors(), "{:?}", loaded.diagnoses);
        config(loaded, &Places::default())
    }

    #[test]
    fn what_is_written_is_what_is_run() {
        let config = of(r#"{"mcpServers": {
            "b": {"command": "npx", "args": ["-y", "x"], "env": {"K": "v"}, "timeout": 1.5, "cwd": "sub"},
            "A": {"command": ["npx", "-y", "x"], "disabled": false, "health": false, "idle_stop": 0},
            "off": {"command": "x", "disabled": true}
        }}"#);
        let [a, b] = &config.servers[..] else {
            panic!("{config:?}")
        };
        assert_eq!((&*a.name, &*b.name, a.slug.as_str()), ("A", "b", "a"));
        assert_eq!((&a.command, &a.args), (&b.command, &b.args));
        assert_eq!(b.timeout, Duration::from_millis(1500));
        let cwd = b.cwd.as_deref().unwrap();
        assert!(cwd.ends_with("etc/nexus/sub"), "{}", cwd.display());
        assert_eq!((a.health.interval, a.idle_stop), (Duration::ZERO, None));
        assert_eq!(config.diagnoses, []);
    }

    #[test]
    fn a_server_that_lacks_something_is_there_and_cannot_start_and_the_others_can() {
        let config = of(r#"{"mcpServers": {
            "a": {"command": "x", "env": {"T": "${NEXUS_TEST_NOT_SET}"}},
            "b": {"command": "x"},
            "c": {"url": "http://localhost/mcp", "bearer_token": "${NEXUS_TEST_NOT_SET}"},
            "d": {"url": "http://local host/mcp"},
            "e": {"url": "https://x", "headers": {"X": "a\nb"}},
            "f": {"url": "https://x", "tls": {"cert": "/c.pem"}}
        }}"#);
        let [a, b, c, d, e, f] = &config.servers[..] else {
            panic!("{config:?}")
        };
        let lacks = a.lacks.as_ref().unwrap();
        assert_eq!(lacks.message, "the variable NEXUS_TEST_NOT_SET is not set");
        assert_eq!(lacks.details.server.as_deref(), Some("a"));
        assert!(lacks.details.hint.is_some() && b.lacks.is_none());
        assert!(a.env.is_empty() && a.args.is_empty());
        for remote in [c, d, e, f] {
            assert!(remote.lacks.is_some() && remote.http.is_none());
            assert_eq!(remote.transport(), "http");
        }
        let told = config.warnings().join("\n");
        assert_eq!(told.matches("NEXUS_TEST_NOT_SET").count(), 2, "{told}");
        assert!(
            told.contains("not a URL") && told.contains("line break"),
            "{told}"
        );
        assert!(told.contains("both \"cert\" and \"key\""), "{told}");
    }

    #[test]
    fn what_is_written_of_a_server_over_http_is_what_is_reached() {
        let config = of(
            r#"{"daemon": {"headers": {"X-Team": "blue", "x-who": "everybody"}}, "mcpServers": {
            "a": {"url": "https://u:p@example.com/mcp?k=1", "headers": {"X-Who": "me"}, "bearer_token": "t0ken",
                "tls": {"ca": "ca.pem", "min_version": "1.3", "verify": false}, "proxy": "http://proxy:3128",
                "connect_timeout": "2s", "timeout": 7, "type": "streamable-http"},
            "b": {"type": "sse", "url": "http://localhost/sse", "forward_auth": true, "sharing": "shared"}
        }}"#,
        );
        let [a, b] = &config.servers[..] else {
            panic!("{config:?}")
        };
        let http = a.http.as_ref().unwrap();
        assert_eq!(http.url.to_url(), "https://example.com/mcp?k=1");
        let header = |name: &str| {
            let mut found = http
                .headers
                .iter()
                .filter(|(own, _)| own.eq_ignore_ascii_case(name));
            let value = found.next().map(|(_, value)| value.expose());
            assert!(found.next().is_none());
            value
        };
        assert_eq!(
            (header("x-who"), header("x-team")),
            (Some("me"), Some("blue"))
        );
        assert_eq!(http.bearer.as_ref().unwrap().expose(), "t0ken");
        assert_eq!(http.kind, Kind::Streamable);
        assert_eq!(http.tls.min_version, TlsVersion::V1_3);
        assert!(http.tls.ca.as_ref().unwrap().ends_with("etc/nexus/ca.pem") && !http.tls.verify);
        assert_eq!(http.proxy.as_ref().unwrap().port, 3128);
        assert_eq!(
            (http.connect_timeout, a.timeout),
            (Duration::from_secs(2), Duration::from_secs(7))
        );
        assert_eq!((a.transport(), b.transport()), ("http", "sse"));
        assert_eq!(
            (a.sharing, b.sharing),
            (Sharing::Shared, Sharing::PerCredential)
        );
        let told = config.warnings().join("\n");
        assert!(
            told.contains("\"verify\" is false") && told.contains("ca.pem"),
            "{told}"
        );
    }

    #[test]
    fn what_is_shown_has_no_secret() {
        let config = of(r#"{"mcpServers": {"a": {
            "command": "x", "args": ["--api-key", "cAnArY", "${PATH}"], "env": {"T": "cAnArY"}
        }, "b": {
            "url": "https://me:cAnArY@example.com/mcp?key=cAnArY", "headers": {"X": "cAnArY"},
            "bearer_token": "cAnArY", "proxy": "http://me:cAnArY@proxy:1"
        }}}"#);
        let shown = config.redacted().to_string();
        assert!(
            !shown.contains("cAnArY") && shown.contains("${PATH}"),
            "{shown}"
        );
        assert!(!format!("{config:?}").contains("\"T\": \"cAnArY"));
    }
}
