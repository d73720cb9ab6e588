//! What needs no daemon.

use crate::support::{Run, nexusctl};

fn run(args: &[&str]) -> Run {
    // A socket that nobody has: whatever gets as far as connecting exits with 3.
    let socket = tempfile::tempdir().unwrap();
    Run::of(
        nexusctl()
            .env("NEXUS_SOCKET", socket.path().join("x.sock"))
            .args(args),
    )
}

const COMMANDS: [&str; 29] = [
    "status",
    "servers",
    "tools",
    "search",
    "call",
    "resources",
    "templates",
    "read",
    "subscribe",
    "prompts",
    "prompt",
    "complete",
    "agents",
    "log-level",
    "ping",
    "start",
    "stop",
    "restart",
    "refresh",
    "logs",
    "reload",
    "shutdown",
    "config",
    "trust",
    "import",
    "connect",
    "doctor",
    "completions",
    "man",
];

#[test]
fn every_command_has_help() {
    let help = run(&["--help"]).ok();
    assert!(help.contains("Exit codes"), "{help}");
    for command in COMMANDS {
        let help = run(&[command, "--help"]).ok();
        assert!(help.contains("Usage: nexusctl"), "{help}");
        assert!(command == "man" || run(&["--help"]).ok().contains(command));
    }
}

#[test]
fn the_version_is_told() {
    let version = format!("nexusctl {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(run(&["--version"]).ok(), version);
}

#[test]
fn without_a_command_there_is_help_and_an_error() {
    assert!(run(&[]).error(2).contains("Usage: nexusctl"));
}

#[test]
fn what_makes_no_sense_is_a_usage_error() {
    for args in [
        &["nonsense"][..],
        &["status", "--nonsense"],
        &["search"],
        &["call"],
        &["start"],
        &["logs"],
        &["ping", "-c", "0"],
        &["--timeout", "5x", "status"],
        &["--color", "purple", "status"],
        &["call", "demo.add", "--arg", "a"],
        &["call", "demo.add", "other"],
        &["call", "demo.add", "--json", "{"],
        &["call", "demo.add", "--json", "[1]"],
        &["call", "demo.add", "--json", "@/nonexistent"],
        &["call", "demo.add", "--arg", "a=@/nonexistent"],
        &["call", "demo.add", "--arg", "a=1", "--json", "{}"],
        &["call", "demo.add", "-"],
        &["call", "demo.add", "--log-level", "loud"],
        &["read"],
        &["read", "a", "b", "c"],
        &["read", "a:b", "--json", "--output", "x"],
        &["subscribe", "a:b", "--count", "0"],
        &["resources", "demo", "--server", "demo"],
        &["prompt"],
        &["prompt", "demo.x", "--arg", "a"],
        &["prompt", "demo.x", "--arg", "a=@/nonexistent"],
        &["complete", "demo.x"],
        &["complete", "--server", "demo", "demo.x", "a"],
        &["log-level", "demo"],
        &["log-level", "demo", "loud"],
    ] {
        let error = run(args).error(2);
        assert!(error.starts_with("error: "), "{args:?}: {error}");
    }
}

#[test]
fn arguments_that_are_no_json_say_where() {
    assert_eq!(
        run(&["call", "demo.add", "--json", "{\"a\": }"]).error(2),
        "error: the arguments are not JSON: expected value at line 1 column 7\n\
         \n\
         hint: write a JSON object, such as '{\"a\": 2, \"b\": 3}'\n"
    );
}

#[test]
fn every_shell_has_completions() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = run(&["completions", shell]).ok();
        assert!(script.contains("nexusctl") && script.contains("restart"));
    }
}

#[test]
fn there_is_a_man_page_for_every_command() {
    assert!(run(&["man"]).ok().contains(".TH nexusctl 1"));
    let dir = tempfile::tempdir().unwrap();
    run(&["man", dir.path().to_str().unwrap()]).ok();
    for page in ["nexusctl.1", "nexusctl-call.1", "nexusctl-servers.1"] {
        assert!(dir.path().join(page).exists(), "{page}");
    }
    assert_eq!(run(&["man", "/nonexistent"]).code, 1);
}
