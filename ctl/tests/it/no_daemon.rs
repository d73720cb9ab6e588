//! Nobody is there.

use crate::support::{Run, nexusctl};

#[test]
fn every_command_says_that_no_daemon_runs_and_how_to_start_one() {
    let home = tempfile::tempdir().unwrap();
    let socket = home.path().join("x.sock");
    for args in [
        &["status"][..],
        &["--json", "status"],
        &["-q", "servers"],
        &["servers", "--watch"],
        &["tools"],
        &["search", "x"],
        &["call", "demo.add"],
        &["call", "demo.add", "--arg", "a=1"],
        &["resources"],
        &["templates"],
        &["read", "a:b"],
        &["subscribe", "demo", "a:b"],
        &["prompts"],
        &["prompt", "demo.x", "--arg", "a=1"],
        &["complete", "demo.x", "a"],
        &["agents"],
        &["log-level", "demo", "info"],
        &["ping"],
        &["start", "x"],
        &["stop", "x"],
        &["restart", "x"],
        &["refresh", "x"],
        &["logs", "x"],
        &["reload"],
        &["shutdown"],
    ] {
        let run = Run::of(nexusctl().arg("--socket").arg(&socket).args(args));
        let error = run.error(3);
        let first = format!("error: no daemon is running at {}\n", socket.display());
        assert!(error.starts_with(&first), "{args:?}: {error}");
        assert!(error.contains("\ncaused by: "), "{error}");
        assert!(
            error.contains("\n\nhint: start it with `nexusd`"),
            "{error}"
        );
    }
}

#[test]
fn a_socket_that_nobody_serves_is_no_daemon_either() {
    let home = tempfile::tempdir().unwrap();
    let socket = home.path().join("x.sock");
    drop(std::os::unix::net::UnixListener::bind(&socket).unwrap());
    let run = Run::of(nexusctl().env("NEXUS_SOCKET", &socket).arg("status"));
    assert!(run.error(3).contains("no daemon is running at"));
}

#[test]
fn a_path_that_can_be_no_socket_is_said_to_be() {
    let long = format!("/{}", "x".repeat(200));
    let error = Run::of(nexusctl().args(["--socket", &long, "status"])).error(3);
    assert!(error.contains("too long"), "{error}");
}

#[test]
fn colours_are_only_used_where_they_are_wanted() {
    let home = tempfile::tempdir().unwrap();
    let socket = home.path().join("x.sock");
    let run = |args: &[&str]| {
        Run::of(
            nexusctl()
                .env("NEXUS_SOCKET", &socket)
                .args(args)
                .arg("status"),
        )
        .error(3)
    };
    assert!(!run(&[]).contains('\x1b'));
    assert!(!run(&["--color", "never"]).contains('\x1b'));
    assert!(run(&["--color", "always"]).contains('\x1b'));
}
