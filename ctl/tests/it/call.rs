//! Calling tools.

use crate::support::{Daemon, Run};
use std::{
    fs,
    process::{Command, Stdio},
};

#[test]
fn a_tool_is_called_with_arguments_from_everywhere() {
    let daemon = Daemon::demo();
    let object = r#"{"a": 2, "b": 3}"#;
    for args in [
        &["call", "demo.add", "--arg", "a=2", "--arg", "b=3"][..],
        &["call", "demo.add", "-a", "a=2", "-a", "b=3"],
        &["call", "demo.add", "--json", object],
        &["call", "demo__add", "--json", object],
        &["call", "mcp:demo.add", "--json", object],
        &["call", "add", "--json", object],
    ] {
        assert_eq!(daemon.run(args).ok(), "5\n", "{args:?}");
    }
    let run = Run::with_input(&mut daemon.ctl(&["call", "demo.add", "-"]), object);
    assert_eq!(run.ok(), "5\n");
}

#[test]
fn the_whole_result_is_printed_as_json() {
    let daemon = Daemon::demo();
    for args in [
        &["call", "demo.add", "--arg", "a=2", "--arg", "b=3", "--json"][..],
        &["call", "--json", "demo.add", "--arg", "a=2", "--arg", "b=3"],
        &["--json", "call", "demo.add", "--json", r#"{"a":2,"b":3}"#],
    ] {
        let result = daemon.run(args).json();
        assert_eq!(result["content"][0]["text"], "5", "{args:?}");
    }
}

#[test]
fn text_stays_text_and_files_are_read() {
    let daemon = Daemon::demo();
    let echo = |value: &str| {
        let arg = format!("message={value}");
        daemon.run(&["call", "demo.echo", "--arg", &arg]).ok()
    };
    assert_eq!(echo("5"), "5\n");
    assert_eq!(echo("@@me"), "@me\n");
    // A pipe gets what the tool wrote, whatever it is.
    assert_eq!(echo("\x1b[31mred"), "\x1b[31mred\n");
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("notes");
    fs::write(&file, "from a file\n").unwrap();
    assert_eq!(echo(&format!("@{}", file.display())), "from a file\n");
}

#[test]
fn a_value_of_the_wrong_type_is_a_usage_error_before_the_call() {
    let daemon = Daemon::demo();
    assert_eq!(
        daemon
            .run(&["call", "demo.add", "--arg", "a=two", "--arg", "b=3"])
            .error(2),
        "error: `a` must be a number, not `two`\n"
    );
    assert_eq!(daemon.run(&["status", "--json"]).json()["calls"], 0);
}

#[test]
fn what_the_daemon_refuses_is_explained() {
    let daemon = Daemon::demo();
    let error = daemon
        .run(&["call", "demo.add", "--json", r#"{"a": 2}"#])
        .error(1);
    assert!(error.starts_with("error: "), "{error}");
    assert!(error.contains("required"), "{error}");
    let error = daemon.run(&["call", "demo.ad"]).error(1);
    assert!(
        error.contains("\n\nhint: did you mean `demo.add`?"),
        "{error}"
    );
}

#[test]
fn a_tool_that_fails_says_so_on_stderr() {
    let daemon = Daemon::demo();
    let too_large = ["call", "demo.add", "--arg", "a=1e308", "--arg", "b=1e308"];
    assert_eq!(
        daemon.run(&too_large).error(1),
        "error: demo.add failed\nThe sum is too large for a number\n"
    );
    // As JSON it is a result like any other, and a failure all the same.
    let run = Run::of(daemon.ctl(&too_large).arg("--json"));
    assert_eq!((run.code, run.stderr.as_str()), (1, ""));
    assert!(run.stdout.contains(r#""isError":true"#), "{run:?}");
}

#[test]
fn a_call_that_takes_too_long_exits_with_4() {
    let daemon = Daemon::demo();
    let args = ["--timeout", "100ms", "call", "demo.slow_operation"];
    let error = daemon.run(&args).error(4);
    assert!(error.starts_with("error: "), "{error}");
    assert!(error.contains("may have been carried out"), "{error}");
}

#[test]
fn an_interrupt_cancels_the_call() {
    let daemon = Daemon::demo();
    let under_way = |count: u32| {
        // Asked until it is so: there is nothing to wait on from the outside.
        while daemon.run(&["status", "--json"]).json()["calls_in_flight"] != count {}
    };
    let call = daemon
        .ctl(&["call", "demo.slow_operation", "--arg", "duration=600"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    under_way(1);
    let pid = call.id().to_string();
    let interrupted = Command::new("kill").args(["-INT", &pid]).status();
    assert!(interrupted.unwrap().success());
    assert_eq!(call.wait_with_output().unwrap().status.code(), Some(130));
    under_way(0);
}
