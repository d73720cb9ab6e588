//! What a person sees of servers that do not come up, and that no secret is in it.

use crate::support::{Daemon, Run};
use serde_json::json;
use std::{fs, os::unix::fs::PermissionsExt as _, path::Path};

const CANARY: &str = "cAnArY-5f3b9e2a7c1d4086-sEcReT";

/// The same text on every machine.
fn plain(text: &str, daemon: &Daemon) -> String {
    let home = daemon.home().display().to_string();
    let text = text.replace(&home, "~");
    let path = std::env::var("PATH").unwrap();
    text.replace(&path, "$PATH")
}

fn said(daemon: &Daemon, server: &str) -> String {
    let run = daemon.run(&["--timeout", "20s", "start", server]);
    assert_eq!(run.code, 1, "{run:?}");
    // When it is tried again differs from run to run.
    let lines = run
        .stderr
        .lines()
        .filter(|line| !line.contains("tried again"));
    plain(
        &lines.map(|line| format!("{line}\n")).collect::<String>(),
        daemon,
    )
}

#[test]
fn every_way_not_to_come_up_says_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("server.py");
    fs::write(&script, "print('x')\n").unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o644)).unwrap();
    let empty = folder.path().join("empty");
    fs::create_dir(&empty).unwrap();
    let lazy =
        |command: &str, args: &[&str]| json!({"command": command, "args": args, "start": "lazy"});
    let mut missing = lazy("npx", &["-y", "x"]);
    missing["env"] = json!({"PATH": empty});
    let mut silent = lazy(
        "sh",
        &["-c", "echo 'Missing required variable' >&2; sleep 60"],
    );
    silent["start_timeout"] = json!("300ms");
    let daemon = Daemon::serving(&json!({"mcpServers": {
        "missing": missing,
        "forbidden": lazy(script.to_str().unwrap(), &[]),
        "nowhere": lazy("/no/such/program", &[]),
        "postgres": lazy("sh", &["-c", "echo 'Error: connect ECONNREFUSED 127.0.0.1:5432' >&2; exit 1"]),
        "killed": lazy("sh", &["-c", "kill -9 $$"]),
        "silent": silent,
    }}));
    let hide = |text: String| text.replace(&folder.path().display().to_string(), "/tmp/x");
    insta::assert_snapshot!("command_not_found", hide(said(&daemon, "missing")));
    insta::assert_snapshot!("permission_denied", hide(said(&daemon, "forbidden")));
    insta::assert_snapshot!("no_such_file", hide(said(&daemon, "nowhere")));
    insta::assert_snapshot!("crash", hide(said(&daemon, "postgres")));
    insta::assert_snapshot!("handshake_timeout", hide(said(&daemon, "silent")));
    let killed = said(&daemon, "killed");
    assert!(
        killed.contains("SIGKILL") && killed.contains("out of memory"),
        "{killed}"
    );
    let shown = daemon.run(&["servers", "postgres"]).ok();
    assert!(
        shown.contains("likely: something that it needs") && shown.contains("hint: "),
        "{shown}"
    );
}

#[test]
fn a_reload_of_a_bad_file_is_told_in_full_and_changes_nothing() {
    let daemon = Daemon::serving(&json!({"mcpServers": {}}));
    fs::write(daemon.home().join("mcp.json"), "{\n  \"mcpServers\": {\n    \"a\": { \"timeout\": \"soon\", \"command\": \"x\" }\n  }\n}\n").unwrap();
    let error = daemon.run(&["reload"]).error(1);
    insta::assert_snapshot!("reload", plain(&error, &daemon));
}

#[test]
fn no_secret_leaves_the_daemon() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("secret");
    fs::write(&file, CANARY).unwrap();
    fs::write(folder.path().join("x.env"), format!("FROM_FILE={CANARY}\n")).unwrap();
    let env = json!({"A": CANARY, "B": {"file": file}, "C": {"cmd": ["cat", file]}, "D": format!("${{file:{}}}", file.display())});
    let count = "n=0; for v in $A $B $C $D $FROM_FILE; do [ \"$v\" = \"$(cat $0)\" ] && n=$((n+1)); done; echo secrets: $n >&2; exit 3";
    let daemon = Daemon::serving(&json!({"mcpServers": {
        "told": {"command": "sh", "args": ["-c", count, file], "env": env, "env_file": folder.path().join("x.env"), "start": "lazy"},
        "chatty": {"command": "sh", "args": ["-c", "echo key $MY_API_KEY >&2; exit 5"], "env": {"MY_API_KEY": CANARY}, "start": "lazy"},
        "args": {"command": "sh", "args": ["-c", "exit 4", "--token", CANARY, format!("${{X:-{CANARY}}}")], "start": "lazy"},
        "unset": {"command": "sh", "env": {"A": CANARY, "B": "${NEXUS_TEST_UNSET}"}},
        "http": {"url": format!("https://u:{CANARY}@example.com/?k={CANARY}"), "headers": {"Authorization": CANARY}},
    }}));
    // All four ways to give it reach the server, and only the server.
    let failed = daemon.run(&["--timeout", "20s", "start", "told"]);
    assert!(failed.stderr.contains("secrets: 5"), "{failed:?}");
    let mut all = vec![failed];
    for args in [
        &["start", "args"][..],
        &["start", "chatty"],
        &["logs", "chatty"],
        &["servers"],
        &["servers", "told"],
        &["--json", "servers"],
        &["config"],
        &["config", "show"],
        &["status"],
        &["reload"],
        &["--json", "reload"],
        &["logs", "told"],
        &["call", "told.x"],
        &["doctor"],
    ] {
        all.push(daemon.run(args));
    }
    for run in &all {
        assert!(
            !run.stdout.contains(CANARY) && !run.stderr.contains(CANARY),
            "{run:?}"
        );
    }
    let reload = all
        .iter()
        .find(|run| run.stderr.contains("NEXUS_TEST_UNSET"))
        .unwrap();
    assert_eq!(reload.code, 0, "{reload:?}");
    assert!(!daemon.log().contains(CANARY), "{}", daemon.log());
    let state = files_under(daemon.home());
    for path in state.iter().filter(|path| !path.ends_with("mcp.json")) {
        let bytes = fs::read(path).unwrap_or_default();
        assert!(
            !String::from_utf8_lossy(&bytes).contains(CANARY),
            "{}",
            path.display()
        );
    }
}

#[test]
fn doctor_greets_every_server_and_says_what_the_others_lack() {
    let nexusd = crate::support::neighbour("nexusd");
    let daemon = Daemon::serving(&json!({"mcpServers": {
        "good": {"command": nexusd, "args": ["demo-server"], "start": "lazy"},
        "own": {"command": nexusd, "args": ["demo-server"], "sharing": "per-agent"},
        "broken": {"command": "sh", "args": ["-c", "echo 'Usage: x' >&2; exit 2"], "start": "lazy"},
        "unset": {"command": "sh", "env": {"B": "${NEXUS_TEST_UNSET}"}},
        "stopped": {"command": nexusd, "args": ["demo-server"]},
    }}));
    daemon.run(&["stop", "stopped"]).ok();
    let run = daemon.run(&["doctor"]);
    assert_eq!(run.code, 1);
    for part in [
        "ok    server good: answers after ",
        "ok    server own: answers after ",
        "bad   server broken: ",
        "hint: look at \"args\"",
        "bad   server unset: failed: the variable NEXUS_TEST_UNSET is not set",
        "care  server stopped: stopped by you",
    ] {
        assert!(run.stdout.contains(part), "{part}: {}", run.stdout);
    }
}

#[test]
fn a_server_that_lacks_a_variable_is_listed_and_says_which() {
    let daemon = Daemon::serving(&json!({"mcpServers": {
        "lacking": {"command": "npx", "args": ["-y", "x"], "env": {"TOKEN": "${NEXUS_TEST_UNSET}"}},
    }}));
    let listed = daemon.run(&["servers"]).ok();
    insta::assert_snapshot!("lacking_listed", plain(&listed, &daemon));
    insta::assert_snapshot!("lacking", said(&daemon, "lacking"));
}

fn files_under(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => found.extend(files_under(&path)),
            Ok(kind) if kind.is_file() => found.push(path),
            _ => {}
        }
    }
    found
}

#[test]
fn tools_that_are_left_out_are_neither_listed_nor_called() {
    let server = crate::support::neighbour("nexus-test-server");
    let config = |keys: serde_json::Value| {
        let mut entry = json!({"command": server});
        entry
            .as_object_mut()
            .unwrap()
            .extend(keys.as_object().unwrap().clone());
        json!({"mcpServers": {"t": entry}})
    };
    let daemon = Daemon::serving(&config(
        json!({"include_tools": ["add", "ech*"], "exclude_tools": ["echo"]}),
    ));
    let names = || -> Vec<String> {
        let listed = Run::of(&mut daemon.ctl(&["--json", "tools", "--server", "t"])).json();
        listed["tools"]
            .as_array()
            .unwrap()
            .iter()
            .map(|tool| tool["tool"].as_str().unwrap_or_default().to_owned())
            .collect()
    };
    daemon.run(&["start", "t"]).ok();
    assert_eq!(names(), ["add"]);
    let error = daemon
        .run(&["call", "t.echo", "--arg", "message=x"])
        .error(1);
    assert!(error.contains("left out by the configuration"), "{error}");
    assert_eq!(
        daemon
            .run(&["call", "t.add", "--arg", "a=1", "--arg", "b=2"])
            .ok(),
        "3\n"
    );
    fs::write(
        daemon.home().join("mcp.json"),
        config(json!({"exclude_tools": ["add"]})).to_string(),
    )
    .unwrap();
    daemon.run(&["reload"]).ok();
    assert!(
        !names().contains(&"add".to_owned()) && names().contains(&"echo".to_owned()),
        "{:?}",
        names()
    );
}
