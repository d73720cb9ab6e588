//! Steering a daemon.

use crate::support::Daemon;

#[test]
fn a_server_is_stopped_started_and_restarted() {
    let daemon = Daemon::demo();
    daemon.run(&["tools"]).ok();
    let pid = || daemon.run(&["servers", "demo", "--json"]).json()["pid"].clone();
    let first = pid();
    assert_eq!(daemon.run(&["start", "demo"]).ok(), "demo: ready already\n");
    assert_eq!(daemon.run(&["restart", "demo"]).ok(), "demo: ready\n");
    assert_ne!(pid(), first);
    assert_eq!(daemon.run(&["stop", "demo"]).ok(), "demo: stopped\n");
    let error = daemon.run(&["call", "demo.get_time"]).error(1);
    assert!(error.contains("stopped"), "{error}");
    assert_eq!(daemon.run(&["start", "DEMO"]).ok(), "demo: ready\n");
    assert_eq!(daemon.run(&["refresh", "demo"]).ok(), "demo: ready\n");
}

#[test]
fn of_several_servers_each_is_told() {
    let daemon = Daemon::demo();
    let run = daemon.run(&["restart", "demo", "nope"]);
    assert_eq!((run.code, run.stdout.as_str()), (1, "demo: ready\n"));
    assert!(run.stderr.starts_with("error: "), "{run:?}");
}

#[test]
fn the_configuration_is_shown_and_read_again() {
    let daemon = Daemon::demo();
    let config = daemon.run(&["config"]).json();
    assert!(config["mcpServers"]["demo"].is_object(), "{config}");
    assert_eq!(daemon.run(&["reload"]).ok(), "nothing has changed\n");
    let report = daemon.run(&["--json", "reload"]).json();
    assert_eq!(report["unchanged"][0], "demo");
}

#[test]
fn after_a_shutdown_the_daemon_is_gone() {
    let mut daemon = Daemon::demo();
    let run = daemon.run(&["shutdown"]);
    assert_eq!(run.stderr, "nexusd has stopped\n");
    assert_eq!(run.ok(), "");
    assert!(!daemon.socket().exists());
    assert!(daemon.wait());
    daemon.run(&["status"]).error(3);
}
