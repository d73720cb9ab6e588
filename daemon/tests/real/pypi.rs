//! The reference servers from PyPI, which speak both eras.

use crate::{
    npm::{said, start},
    ok,
};
use serde_json::json;
use std::{path::Path, process::Command};

pub(crate) async fn time_and_git(bin: &Path) {
    let repository = tempfile::tempdir().unwrap();
    let made = Command::new("git")
        .args(["init", "--quiet", "--initial-branch=trunk"])
        .arg(repository.path())
        .status();
    let has_git = made.is_ok_and(|status| status.success());
    let time = json!({ "command": bin.join("mcp-server-time") });
    let git = json!({
        "command": bin.join("mcp-server-git"),
        "args": ["--repository", repository.path()],
    });
    let mut all = vec![("time", time)];
    if has_git {
        all.push(("git", git));
    } else {
        println!("skipped: mcp-server-git, as there is no git");
    }
    let daemon = start(&all).await;
    let nexus = daemon.client().await;
    let zone = json!({ "timezone": "Europe/Oslo" });
    let told = said(&nexus, "time.get_current_time", zone).await;
    assert!(told.contains("Europe/Oslo"), "{told}");
    ok("time tells the time in Oslo");
    if has_git {
        let status = json!({ "repo_path": repository.path() });
        let told = said(&nexus, "git.git_status", status).await;
        assert!(told.contains("trunk"), "{told}");
        ok("git tells the state of a repository");
    }
}
