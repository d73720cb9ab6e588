//! What was done, as the daemon has written it down.

use crate::support::{Daemon, Run, nexusctl};
use serde_json::{Value, json};
use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    path::Path,
    process::Stdio,
    thread,
    time::Duration,
};

fn line(n: u32, agent: &str, server: &str, outcome: &str) -> String {
    let decision = match outcome {
        "RATE_LIMITED" => "rate-limited",
        _ => "allowed",
    };
    json!({
        "id": format!("19a8c3f2b1d-{n}"),
        "at": format!("2026-07-28T09:{n:02}:00.000Z"),
        "agent": {"id": 7, "name": agent, "pid": 42, "program": "/opt/agent"},
        "method": "tools/call", "server": server, "tool": "send",
        "arguments_bytes": 2, "decision": decision, "outcome": outcome, "duration_ms": 1.25,
    })
    .to_string()
        + "\n"
}

/// A state folder with two files of lines.
fn state(folder: &Path) {
    let audit = folder.join("audit");
    fs::create_dir_all(&audit).unwrap();
    let older = line(1, "ann", "mail", "ok") + &line(2, "bob", "web", "SERVER_EXITED");
    fs::write(audit.join("audit.jsonl.1"), older).unwrap();
    let lost = "{\"id\":\"19a8c3f2b1d-3\",\"at\":\"2026-07-28T09:03:00.000Z\",\"lines_lost\":5}\n";
    let newer = lost.to_owned() + &line(4, "ann\u{1b}[2J", "mail", "RATE_LIMITED");
    fs::write(audit.join("audit.jsonl"), newer).unwrap();
}

fn audit(folder: &Path, args: &[&str]) -> Run {
    let mut command = nexusctl();
    command.arg("audit").arg("--state").arg(folder).args(args);
    Run::of(&mut command)
}

#[test]
fn the_audit_is_a_table_for_people_and_lines_for_programs() {
    let home = tempfile::tempdir().unwrap();
    state(home.path());
    let run = audit(home.path(), &[]);
    assert!(
        run.stderr.contains("5 calls could not be written down"),
        "{run:?}"
    );
    let table = run.ok();
    let rows: Vec<Vec<&str>> = table
        .lines()
        .map(|row| row.split_whitespace().collect())
        .collect();
    assert_eq!(
        rows[0],
        [
            "TIME", "(UTC)", "AGENT", "CALL", "DECISION", "OUTCOME", "MS"
        ]
    );
    assert_eq!(
        rows[1],
        [
            "2026-07-28",
            "09:01:00",
            "ann",
            "mail.send",
            "allowed",
            "ok",
            "1.2"
        ]
    );
    assert_eq!(
        rows[3][2..6],
        ["ann", "mail.send", "rate-limited", "RATE_LIMITED"]
    );
    assert!(!table.contains('\x1b'));
    let all = audit(home.path(), &["--json"]).ok();
    let all: Vec<Value> = all
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(all.len(), 4);
    assert_eq!(all[1]["outcome"], "SERVER_EXITED");

    let count = |args: &[&str]| audit(home.path(), args).ok().lines().count();
    assert_eq!(count(&["--json", "--server", "web"]), 2);
    assert_eq!(count(&["--agent", "bob"]), 2);
    assert_eq!(count(&["--json", "--since", "2026-07-28T09:04"]), 1);
    assert_eq!(count(&["--json", "--since", "1s"]), 0);
    assert_eq!(count(&["-n", "1"]), 2);
    let error = audit(home.path(), &["--since", "soon"]).error(2);
    assert!(error.contains("\"soon\" is no time"), "{error}");
    let none = audit(&home.path().join("none"), &[]);
    assert!(none.stderr.contains("no such calls"), "{none:?}");
    assert_eq!(none.ok(), "");
}

#[test]
fn what_is_added_is_shown_also_in_the_next_file() {
    let home = tempfile::tempdir().unwrap();
    state(home.path());
    let mut command = nexusctl();
    command
        .args(["audit", "-f", "--json", "--state"])
        .arg(home.path());
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = || serde_json::from_str::<Value>(&lines.next().unwrap().unwrap()).unwrap();
    for _ in 0..4 {
        next();
    }
    let path = home.path().join("audit/audit.jsonl");
    let mut file = fs::OpenOptions::new().append(true).open(&path).unwrap();
    file.write_all(line(5, "ann", "mail", "ok").as_bytes())
        .unwrap();
    assert_eq!(next()["at"], "2026-07-28T09:05:00.000Z");
    file.write_all(line(6, "ann", "mail", "ok").as_bytes())
        .unwrap();
    fs::rename(&path, home.path().join("audit/audit.jsonl.1")).unwrap();
    fs::write(&path, line(7, "ann", "mail", "ok")).unwrap();
    assert_eq!(next()["at"], "2026-07-28T09:06:00.000Z");
    assert_eq!(next()["at"], "2026-07-28T09:07:00.000Z");
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn calls_are_in_the_audit_and_limits_are_shown_also_when_the_daemon_has_gone() {
    let nexusd = crate::support::neighbour("nexusd");
    let mut daemon = Daemon::serving(&json!({"mcpServers": {"t": {
        "command": nexusd, "args": ["demo-server"], "rate_limit": "1/h",
    }}}));
    let add = ["call", "t.add", "--arg", "a=1", "--arg", "b=2"];
    daemon.run(&add).ok();
    let error = daemon.run(&add).error(1);
    assert!(
        error.contains("\"t\" may be called 1/h: try again in 60 min"),
        "{error}"
    );
    assert!(error.contains("hint: call less often"), "{error}");
    let shown = daemon.run(&["servers", "t"]).ok();
    assert!(
        shown.contains("rate limit   server: 1/h, 1 refused"),
        "{shown}"
    );
    let shown = daemon.run(&["servers", "t", "--json"]).json();
    assert_eq!(
        shown["rate_limits"],
        json!([{"what": "server", "count": 1, "per_seconds": 3600.0, "burst": 1, "refused": 1}])
    );
    let agents = daemon.run(&["agents", "--json"]).json();
    assert_eq!(agents[0]["rate_limit"], Value::Null);
    let state = daemon.home().join("nexus");
    let shown = loop {
        let shown = audit(&state, &["--json", "--agent", "nexusctl"]).ok();
        if shown.lines().count() == 2 {
            break shown;
        }
        thread::sleep(Duration::from_millis(5));
    };
    daemon.kill();
    assert_eq!(audit(&state, &["--json"]).ok(), shown);
}
