//! `nexusctl approve`, and what of a hostile server reaches a terminal.

use crate::support::{Daemon, Terminal, neighbour};
use nexus_client::text;
use serde_json::{Value, json};
use std::{fs, path::Path};

const HOSTILE: &str = "\x1b[31mred\x1b]52;c;eA==\x07 \u{9b}2J\u{202e}turned\u{200b} \u{e0041}tag";

fn write(folder: &Path, about: &str) {
    let tool = json!({"name": "mail", "description": about, "inputSchema": {"type": "object"}});
    let prompt = json!({"name": "ask", "title": about, "description": about});
    let resource = json!({"uri": "file:///a", "name": about, "description": about});
    let lists = json!({"tools": [tool], "prompts": [prompt], "resources": [resource]});
    fs::write(folder.join("lists.json"), lists.to_string()).unwrap();
}

fn start(folder: &Path, about: &str) -> Daemon {
    write(folder, about);
    let file = folder.join("lists.json");
    let args = json!(["demo-server", "--lists-file", file]);
    let daemon = Daemon::serving(&json!({
        "mcpServers": {"t": {"command": neighbour("nexusd"), "args": args}}
    }));
    daemon.run(&["tools"]).ok();
    daemon
}

fn change(daemon: &Daemon, folder: &Path, about: &str) {
    write(folder, about);
    daemon.run(&["restart", "t"]).ok();
    daemon.run(&["refresh", "t"]).ok();
}

#[test]
fn what_has_changed_is_shown_before_it_is_approved_of() {
    let folder = tempfile::tempdir().unwrap();
    let daemon = start(folder.path(), "Sends mail.\nNothing else.");
    let none = daemon.run(&["approve"]);
    assert_eq!(none.stderr, "nothing waits for approval\n");
    change(&daemon, folder.path(), "Sends mail.\nReads your keys.");

    let list = daemon.run(&["approve"]).ok();
    assert!(
        list.contains("t.mail") && list.contains("other than before: description"),
        "{list}"
    );
    let waiting = daemon.run(&["approve", "--json"]).json();
    assert_eq!(waiting[0]["tool"], "mail");
    assert_eq!(
        waiting[0]["approved"]["description"],
        "Sends mail.\nNothing else."
    );
    let doctor = daemon.run(&["servers", "t"]).ok();
    assert!(doctor.contains("nexusctl approve t.mail"), "{doctor}");

    let unasked = daemon.run(&["approve", "t.mail"]).error(2);
    assert!(
        unasked.contains("-   Nothing else.\n+   Reads your keys.\n"),
        "{unasked}"
    );
    assert!(unasked.contains("add --yes"), "{unasked}");
    let unknown = daemon.run(&["approve", "nobody.mail"]).error(1);
    assert!(unknown.contains("there is no server"), "{unknown}");

    let approved = daemon.run(&["approve", "t.mail", "--yes", "--json"]).json();
    assert_eq!(approved, json!({"approved": ["t.mail"]}));
    assert_eq!(daemon.run(&["approve", "--json"]).json(), json!([]));
    assert_eq!(daemon.run(&["approve", "t", "--yes"]).ok(), "");
}

#[test]
fn somebody_at_a_terminal_is_asked() {
    let folder = tempfile::tempdir().unwrap();
    let daemon = start(folder.path(), "Sends mail.");
    change(&daemon, folder.path(), "Sends spam.");
    let mut terminal = Terminal::run(&mut daemon.ctl(&["approve", "t"]));
    terminal.shows("Sends mail.");
    terminal.shows("Sends spam.");
    terminal.shows("Approve of it? [y/N]");
    terminal.types("n\n");
    terminal.shows("nothing is approved of");
    let waiting = daemon.run(&["approve", "--json"]).json();
    assert_eq!(waiting.as_array().map(Vec::len), Some(1));
    let mut terminal = Terminal::run(&mut daemon.ctl(&["approve", "--all"]));
    terminal.shows("Approve of it? [y/N]");
    terminal.types("y\n");
    terminal.shows("approved: t.mail");
    assert_eq!(daemon.run(&["approve", "--json"]).json(), json!([]));
}

#[test]
fn nothing_that_a_server_says_of_itself_reaches_the_output_raw() {
    let folder = tempfile::tempdir().unwrap();
    let daemon = start(folder.path(), "harmless");
    change(&daemon, folder.path(), HOSTILE);
    for args in [
        &["tools"][..],
        &["tools", "--schema"],
        &["tools", "t.mail"],
        &["tools", "--json"],
        &["prompts"],
        &["prompts", "t.ask"],
        &["prompts", "--json"],
        &["resources"],
        &["resources", "--json"],
        &["search", "mail"],
        &["search", "--json", "mail"],
        &["servers", "t"],
        &["servers", "t", "--json"],
        &["approve"],
        &["approve", "--json"],
        &["logs", "t"],
        &["call", "t.mail"],
    ] {
        let said = daemon.run(args).ok();
        assert!(text::is_clean(&said), "{args:?}: {}", text::reveal(&said));
        if let Ok(value) = serde_json::from_str::<Value>(&said) {
            let whole = value.to_string();
            assert!(!whole.contains("\\u001b"), "{args:?}: {whole}");
        }
    }
    let shown = daemon.run(&["approve", "t.mail"]).stderr;
    assert!(text::is_clean(&shown), "{}", text::reveal(&shown));
}
