//! From what is written to what is run.

use super::{Config, MAX_QUEUE, ServerConfig, error::failure, name_servers};
use crate::{process::Helpers, supervisor::health::HealthPolicy};
use nexus_config::{
    Diagnosis, Loaded, Server, Transport,
    layers::Places,
    model::Health,
    resolve::{Resolved, resolve_all},
};
use std::{collections::BTreeMap, sync::Arc, time::Duration};

/// More callers than this have nothing to wait for.
const MOST_WAITING: usize = 10_000;

/// What is to run. A server that lacks something (a variable, a secret) is there, and cannot start: the others
/// are not to wait for it.
pub(super) fn config(loaded: Loaded, places: &Places) -> Config {
    let mut config = Config {
        files: loaded.files.iter().map(|file| file.path.clone()).collect(),
        watched: loaded.watched,
        diagnoses: loaded.diagnoses,
        settings: loaded.settings,
        ..Config::default()
    };
    let mut servers = loaded.servers;
    servers.retain(|server| server.enabled && can_be_reached(server, &mut config.diagnoses));
    let resolved = resolve_all(&servers, places, &Helpers);
    for (written, (resolved, diagnoses)) in servers.into_iter().zip(resolved) {
        let lacks = diagnoses.iter().find(|diagnosis| diagnosis.is_error());
        let lacks = lacks.map(|diagnosis| Arc::new(failure(diagnosis)));
        config.diagnoses.extend(diagnoses);
        let resolved = resolved.unwrap_or_else(|| nothing_of(&written));
        let made = server(written, resolved);
        config
            .servers
            .extend(made.map(|made| ServerConfig { lacks, ..made }));
    }
    name_servers(&mut config.servers);
    config
}

/// Whether this version has a transport for it.
fn can_be_reached(server: &Server, diagnoses: &mut Vec<Diagnosis>) -> bool {
    match &server.transport {
        Some(Transport::Stdio(_)) => true,
        Some(Transport::Http(http)) => {
            let message =
                "it is reached over HTTP, which this version of Nexus cannot do: left out";
            diagnoses.push(
                Diagnosis::warning("config::http", message)
                    .in_file(&server.origin.source)
                    .of_server(&server.name)
                    .at(http.url.span.clone(), "this address"),
            );
            false
        }
        None => false,
    }
}

/// Of a server that lacks something: what is shown of it, and nothing that could be run.
fn nothing_of(written: &Server) -> Resolved {
    let command = match &written.transport {
        Some(Transport::Stdio(stdio)) => stdio.command.raw.clone(),
        Some(Transport::Http(_)) | None => String::new(),
    };
    Resolved::Stdio {
        command,
        args: Vec::new(),
        env: BTreeMap::new(),
        cwd: None,
    }
}

fn server(written: Server, resolved: Resolved) -> Option<ServerConfig> {
    let Resolved::Stdio {
        command,
        args,
        env,
        cwd,
    } = resolved
    else {
        return None;
    };
    let env_passthrough = match &written.transport {
        Some(Transport::Stdio(stdio)) => stdio.env_passthrough.clone(),
        _ => Vec::new(),
    };
    let defaults = ServerConfig::new(&written.name, command);
    Some(ServerConfig {
        source: Some(written.origin.source.path.clone()),
        scope: written.scope.clone(),
        args,
        env,
        env_passthrough,
        cwd,
        timeout: written.timeout.unwrap_or(defaults.timeout),
        start_timeout: written.start_timeout.unwrap_or(defaults.start_timeout),
        health: health(written.health, defaults.health),
        start: written.start.unwrap_or(defaults.start),
        // Zero is what people write for never.
        idle_stop: written.idle_stop.filter(|time| !time.is_zero()),
        sharing: written.sharing,
        replicas: written.replicas.unwrap_or(defaults.replicas),
        max_in_flight: written.max_in_flight,
        max_queue: written.max_queue.unwrap_or(MAX_QUEUE).min(MOST_WAITING),
        trust_hints: written.trust_hints,
        fail_if_no_tools: written.fail_if_no_tools,
        tools: written.tools.clone(),
        written: Some(Arc::new(written)),
        ..defaults
    })
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
            "c": {"url": "http://localhost/mcp"}
        }}"#);
        let [a, b] = &config.servers[..] else {
            panic!("{config:?}")
        };
        let lacks = a.lacks.as_ref().unwrap();
        assert_eq!(lacks.message, "the variable NEXUS_TEST_NOT_SET is not set");
        assert_eq!(lacks.details.server.as_deref(), Some("a"));
        assert!(lacks.details.hint.is_some() && b.lacks.is_none());
        assert!(a.env.is_empty() && a.args.is_empty());
        let told = config.warnings().join("\n");
        assert!(
            told.contains("NEXUS_TEST_NOT_SET") && told.contains("HTTP"),
            "{told}"
        );
    }

    #[test]
    fn what_is_shown_has_no_secret() {
        let config = of(r#"{"mcpServers": {"a": {
            "command": "x", "args": ["--api-key", "cAnArY", "${PATH}"], "env": {"T": "cAnArY"}
        }}}"#);
        let shown = config.redacted().to_string();
        assert!(
            !shown.contains("cAnArY") && shown.contains("${PATH}"),
            "{shown}"
        );
        assert!(!format!("{config:?}").contains("\"T\": \"cAnArY"));
    }
}
