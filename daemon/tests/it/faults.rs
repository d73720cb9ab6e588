//! Servers that misbehave: what their callers see, and that everyone else sees nothing.

use crate::support::{Home, eventually, executions, server_when, servers, start_with, test_server};
use futures_util::StreamExt as _;
use nexus_client::{Error, Failure, LogOptions, Nexus, Reason, ServerState};
use serde_json::{Value, json};
use std::fs;

fn two() -> Value {
    json!({"a": 1, "b": 1})
}

async fn works(nexus: &Nexus) {
    let sum = nexus.tools().call("t.add", two()).await.unwrap();
    assert_eq!(sum.text(), "2");
}

async fn fails(nexus: &Nexus, tool: &str, arguments: Value) -> Failure {
    match nexus.tools().call(tool, arguments).await {
        Err(Error::Failed(failure)) => failure,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_call_that_died_with_its_server_is_not_repeated_and_says_why() {
    let home = Home::new();
    let journal = home.path().join("journal");
    let args = [
        "--journal",
        journal.to_str().unwrap(),
        "--fault",
        "exit-after@2",
    ];
    home.configure(&servers(&[("t", test_server(&args))]));
    let daemon = home.start();
    let nexus = daemon.client().await;
    works(&nexus).await;
    let failure = fails(&nexus, "t.echo", json!({"message": "x"})).await;
    assert_eq!(failure.reason, Reason::ServerExited);
    assert!(failure.details.maybe_executed);
    assert_eq!(failure.details.exit.as_deref(), Some("exit code 7"));
    assert_eq!(
        failure.message,
        "t.echo was lost: the server ended: exit code 7"
    );
    assert_eq!(executions(&journal), ["add", "echo"]);
    works(&nexus).await;
    assert_eq!(executions(&journal), ["add", "echo", "add"]);
}

#[tokio::test]
async fn fifty_calls_that_die_together_each_get_one_outcome() {
    let daemon = start_with(&["--fault", "exit@50"]);
    let nexus = daemon.client().await;
    server_when(&nexus, "t", |s| s.state == ServerState::Ready).await;
    let calls = (0..50).map(|_| {
        let nexus = nexus.clone();
        tokio::spawn(async move {
            nexus
                .tools()
                .call("t.slow_operation", json!({"duration": 300}))
                .await
        })
    });
    for call in calls.collect::<Vec<_>>() {
        let error = call.await.unwrap().unwrap_err();
        assert_eq!(error.reason(), Some(Reason::ServerExited), "{error:?}");
    }
    works(&nexus).await;
}

#[tokio::test]
async fn a_signal_is_named() {
    let daemon = start_with(&["--fault", "segv@2"]);
    let nexus = daemon.client().await;
    works(&nexus).await;
    let failure = fails(&nexus, "t.add", two()).await;
    assert_eq!(failure.details.exit.as_deref(), Some("signal 11 (SIGSEGV)"));
    works(&nexus).await;
}

#[tokio::test]
async fn a_server_that_cannot_start_is_a_crash_loop_that_says_why_at_once() {
    let daemon = start_with(&["--fault", "crash-start"]);
    let nexus = daemon.client().await;
    let server = server_when(&nexus, "t", |s| s.state == ServerState::CrashLoop).await;
    let past = server.last_failure.unwrap();
    assert_eq!(past.message, "the server ended: exit code 1");
    assert_eq!(past.stderr, ["fatal: cannot open database"]);
    assert!(server.next_try.is_some());
    let failure = fails(&nexus, "t.add", two()).await;
    assert_eq!(failure.reason, Reason::CrashLoop);
    assert!(failure.details.retry_after.is_some());
    assert_eq!(failure.details.stderr, ["fatal: cannot open database"]);
    let list = nexus.tools().list().await.unwrap();
    assert_eq!(list.missing[0].server, "t");
}

#[tokio::test]
async fn a_missing_command_names_the_path_that_was_searched() {
    let home = Home::new();
    home.configure(&servers(&[
        (
            "lost",
            json!({"command": "no-such-server", "env": {"PATH": "/nowhere:/nor/here"}}),
        ),
        ("t", test_server(&[])),
    ]));
    let daemon = home.start();
    let nexus = daemon.client().await;
    let failure = fails(&nexus, "lost.anything", json!({})).await;
    assert_eq!(failure.reason, Reason::CommandNotFound);
    assert!(
        failure.message.contains("/nowhere:/nor/here"),
        "{}",
        failure.message
    );
    let server = nexus.servers().get("lost").await.unwrap();
    assert_eq!((server.state, server.generation), (ServerState::Failed, 1));
    works(&nexus).await;
}

/// What can never work is not tried again and again.
#[cfg(unix)]
#[tokio::test]
async fn what_cannot_be_run_fails_at_once_and_says_why() {
    use std::os::unix::fs::PermissionsExt as _;
    let home = Home::new();
    let file = |name: &str, mode: u32| {
        let path = home.path().join(name);
        fs::write(&path, [0x7f, b'E', b'L', b'F', 9, 9]).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path
    };
    let (plain, broken) = (file("plain", 0o644), file("broken", 0o755));
    let gone = home.path().join("gone");
    home.configure(&servers(&[
        ("eacces", json!({"command": plain})),
        ("enoexec", json!({"command": broken})),
        ("enoent", json!({"command": gone})),
        ("cwd", json!({"command": "sh", "cwd": gone})),
    ]));
    let daemon = home.start();
    let nexus = daemon.client().await;
    for (name, words) in [
        ("eacces", "is not executable"),
        ("enoexec", "not a program for this system"),
        ("enoent", "does not exist"),
        ("cwd", "working directory"),
    ] {
        let server = server_when(&nexus, name, |s| s.state == ServerState::Failed).await;
        let message = server.last_failure.unwrap().message;
        assert!(message.contains(words), "{name}: {message}");
        assert_eq!((server.generation, server.next_try), (1, None), "{name}");
    }
}

#[tokio::test]
async fn a_handshake_that_never_ends_is_ended() {
    let home = Home::new();
    let mut server = test_server(&["--fault", "init-hang"]);
    server["start_timeout"] = json!(0.3);
    home.configure(&servers(&[("t", server)]));
    let daemon = home.start();
    let nexus = daemon.client().await;
    let server = server_when(&nexus, "t", |s| s.last_failure.is_some()).await;
    let past = server.last_failure.unwrap();
    assert_eq!(past.reason, Some(Reason::HandshakeFailed));
    assert!(past.message.contains("within 300ms"), "{}", past.message);
}

#[tokio::test]
async fn an_unknown_revision_is_refused_with_both_lists() {
    let daemon = start_with(&["--era", "legacy", "--fault", "bad-version"]);
    let nexus = daemon.client().await;
    let server = server_when(&nexus, "t", |s| s.last_failure.is_some()).await;
    let past = server.last_failure.unwrap();
    assert!(past.message.contains("1999-01-01"), "{}", past.message);
    assert!(past.message.contains("2025-11-25"), "{}", past.message);
}

#[tokio::test]
async fn every_legacy_server_is_understood() {
    let daemon = start_with(&["--era", "legacy"]);
    works(&daemon.client().await).await;
}

/// Faults that nobody should notice at all.
#[tokio::test]
async fn odd_but_harmless_servers_just_work() {
    for fault in [
        "banner",
        "crlf",
        "stderr-flood",
        "unknown-id",
        "dup-response",
        "notification-flood",
        "no-newline-exit",
        "deep",
        "exit-idle",
        "slow-start@300",
    ] {
        let daemon = start_with(&["--fault", fault]);
        let nexus = daemon.client().await;
        let first = nexus.tools().call("t.echo", json!({"message": "x"})).await;
        first.unwrap_or_else(|error| panic!("{fault}: {error}"));
        let server = server_when(&nexus, "t", |s| s.state == ServerState::Ready).await;
        assert!(server.restarts <= 1, "{fault}");
        works(&nexus).await;
    }
}

/// Two oddities at once are no worse than each.
#[tokio::test]
async fn a_byte_order_mark_after_a_banner_is_accepted() {
    let daemon = start_with(&["--fault", "banner", "--fault", "crlf"]);
    works(&daemon.client().await).await;
}

#[tokio::test]
async fn noise_on_standard_output_is_told_and_too_much_of_it_is_the_end() {
    let daemon = start_with(&["--fault", "stdout-garbage@100"]);
    let nexus = daemon.client().await;
    works(&nexus).await;
    let server = nexus.servers().get("t").await.unwrap();
    let told = server.warnings.iter().any(|w| w.contains("100 lines"));
    assert!(told, "{:?}", server.warnings);

    let daemon = start_with(&["--fault", "stdout-garbage@101"]);
    let nexus = daemon.client().await;
    let failure = fails(&nexus, "t.add", two()).await;
    assert_eq!(failure.reason, Reason::ServerHung);
    assert!(
        failure.message.contains("does not speak MCP"),
        "{}",
        failure.message
    );
}

#[tokio::test]
async fn an_answer_that_trickles_in_arrives_whole() {
    let daemon = start_with(&["--fault", "trickle@1"]);
    works(&daemon.client().await).await;
}

#[tokio::test]
async fn a_lone_surrogate_passes_as_it_is() {
    let daemon = start_with(&["--fault", "surrogate@1"]);
    let nexus = daemon.client().await;
    let answer = nexus.tools().call("t.add", two()).await.unwrap();
    assert!(answer.raw().as_str().contains("\\ud800"), "{answer:?}");
}

#[tokio::test]
async fn questions_before_the_handshake_is_done_are_answered() {
    let daemon = start_with(&["--era", "legacy", "--fault", "ask-init"]);
    works(&daemon.client().await).await;
}

#[tokio::test]
async fn a_storm_of_list_changes_is_one_change() {
    let daemon = start_with(&["--fault", "list-storm@1"]);
    let nexus = daemon.client().await;
    works(&nexus).await;
    server_when(&nexus, "t", |s| s.tools == 5).await;
    works(&nexus).await;
}

#[tokio::test]
async fn a_flood_of_progress_does_not_drown_the_result() {
    let daemon = start_with(&["--fault", "progress-flood@1"]);
    let nexus = daemon.client().await;
    let mut events = nexus.tools().call("t.add", two()).stream().await.unwrap();
    let mut last = None;
    while let Some(event) = events.next().await {
        last = Some(event.unwrap());
    }
    assert!(
        matches!(last, Some(nexus_client::CallEvent::Result(_))),
        "{last:?}"
    );
}

#[tokio::test]
async fn a_flood_on_standard_error_is_read_and_kept_within_bounds() {
    let daemon = start_with(&["--fault", "stderr-flood@32"]);
    let nexus = daemon.client().await;
    works(&nexus).await;
    let logs = daemon.home.path().join("state/nexus/logs");
    let files = || fs::read_dir(&logs).into_iter().flatten().flatten();
    eventually("there is a log", || files().count() > 0).await;
    let size: u64 = files().map(|file| file.metadata().unwrap().len()).sum();
    assert!(size <= 3 << 20, "{size}");
    let kept = nexus
        .servers()
        .logs("t", LogOptions::default())
        .await
        .unwrap();
    let kept: usize = kept
        .map(|line| line.unwrap().line.len())
        .collect::<Vec<_>>()
        .await
        .iter()
        .sum();
    assert!((1..=64 << 10).contains(&kept), "{kept}");
}

/// Faults that spoil one call, and only that one.
#[tokio::test]
async fn a_spoiled_answer_fails_its_own_call_only() {
    for (fault, reason) in [
        ("bad-utf8@2", Reason::ProtocolError),
        ("nul@2", Reason::ProtocolError),
        ("huge@2", Reason::TooLarge),
    ] {
        let daemon = start_with(&["--fault", fault]);
        let nexus = daemon.client().await;
        works(&nexus).await;
        let failure = fails(&nexus, "t.echo", json!({"message": "x"})).await;
        assert_eq!(failure.reason, reason, "{fault}: {}", failure.message);
        assert!(failure.details.maybe_executed, "{fault}");
        works(&nexus).await;
        let server = nexus.servers().get("t").await.unwrap();
        assert_eq!(server.restarts, 0, "{fault}");
    }
}

/// Answers that are nobody's: the call they were meant for ends at its deadline.
#[tokio::test]
async fn an_answer_with_a_strange_id_reaches_nobody() {
    // A batch is as strange, but in the one revision that has them.
    let modern = ["--era", "modern", "--fault", "batch@1"];
    let legacy = ["--era", "legacy", "--revision", "2025-06-18"];
    let legacy = [&legacy[..], &modern[2..]].concat();
    for args in [
        &["--fault", "string-id@1"][..],
        &["--fault", "null-id@1"],
        &modern,
        &legacy,
    ] {
        let fault = args.join(" ");
        let home = Home::new();
        let mut server = test_server(args);
        server["timeout"] = json!(0.3);
        home.configure(&servers(&[("t", server)]));
        let daemon = home.start();
        let nexus = daemon.client().await;
        let failure = fails(&nexus, "t.echo", json!({"message": "x"})).await;
        assert_eq!(failure.reason, Reason::Deadline, "{fault}");
        works(&nexus).await;
        let warnings = nexus.servers().get("t").await.unwrap().warnings;
        assert!(
            warnings.iter().any(|w| w.contains("made no sense")),
            "{fault}: {warnings:?}"
        );
    }
}

#[tokio::test]
async fn a_batch_is_its_messages_where_there_are_batches() {
    let args = ["--era", "legacy", "--revision", "2025-03-26", "--batch"];
    let daemon = start_with(&args);
    let nexus = daemon.client().await;
    works(&nexus).await;
    let slow = json!({"duration": 0.01, "steps": 3});
    let call = nexus.tools().call_stream("t.slow_operation", slow).await;
    let events: Vec<_> = call.unwrap().collect().await;
    // Three steps, and the result.
    assert_eq!(events.len(), 4, "{events:?}");
    let warnings = nexus.servers().get("t").await.unwrap().warnings;
    assert_eq!(warnings, [""; 0]);
}

#[tokio::test]
async fn a_server_that_closes_its_output_is_started_again() {
    let daemon = start_with(&["--fault", "close-stdout@2"]);
    let nexus = daemon.client().await;
    works(&nexus).await;
    let failure = fails(&nexus, "t.echo", json!({"message": "x"})).await;
    assert!(
        failure.message.contains("closed its output"),
        "{}",
        failure.message
    );
    assert!(failure.details.maybe_executed);
    works(&nexus).await;
}

#[tokio::test]
async fn a_server_that_closes_its_input_is_started_again() {
    let daemon = start_with(&["--fault", "close-stdin@1"]);
    let nexus = daemon.client().await;
    works(&nexus).await;
    match nexus.tools().call("t.add", two()).await {
        // Nothing of it was taken: it went to the next process.
        Ok(sum) => assert_eq!(sum.text(), "2"),
        // It was written just before.
        Err(error) => assert!(error.to_string().contains("closed its input"), "{error}"),
    }
    let server = server_when(&nexus, "t", |s| {
        s.state == ServerState::Ready && s.restarts >= 1
    })
    .await;
    let past = server.last_failure.unwrap();
    assert_eq!(past.reason, Some(Reason::ServerHung));
}

#[tokio::test]
async fn whoever_waits_for_a_start_that_fails_is_told_why() {
    let home = Home::new();
    let mut server = test_server(&["--fault", "init-hang"]);
    server["start_timeout"] = json!(0.5);
    home.configure(&servers(&[("t", server)]));
    let daemon = home.start();
    let nexus = daemon.client().await;
    let failure = fails(&nexus, "t.add", two()).await;
    assert_eq!(failure.reason, Reason::HandshakeFailed, "{failure:?}");
    assert!(failure.details.retry_after.is_some());
}

#[tokio::test]
async fn new_tools_are_found_when_the_server_says_so() {
    let daemon = start_with(&["--fault", "list-changed"]);
    let nexus = daemon.client().await;
    works(&nexus).await;
    server_when(&nexus, "t", |s| s.tools == 5).await;
    nexus.tools().call("t.extra_tool", json!({})).await.unwrap();
}

#[tokio::test]
async fn a_list_that_goes_in_circles_or_fails_is_a_warning() {
    for (fault, word) in [
        ("cursor-loop", "no end"),
        ("list-error", "could not be listed"),
    ] {
        let daemon = start_with(&["--fault", fault]);
        let nexus = daemon.client().await;
        let server = server_when(&nexus, "t", |s| s.state == ServerState::Ready).await;
        assert!(
            server.warnings.iter().any(|w| w.contains(word)),
            "{fault}: {server:?}"
        );
    }
}

#[tokio::test]
async fn an_error_of_the_servers_keeps_its_code() {
    let daemon = start_with(&["--fault", "list-error@2"]);
    let nexus = daemon.client().await;
    works(&nexus).await;
    let error = nexus.servers().refresh("t").await.unwrap_err();
    assert!(error.to_string().contains("-32603"), "{error}");
    // The list from before is better than none.
    works(&nexus).await;
}

#[tokio::test]
async fn one_bad_server_does_not_slow_the_others_down() {
    let home = Home::new();
    home.configure(&servers(&[
        ("t", test_server(&[])),
        ("deaf", test_server(&["--fault", "stop-reading@3"])),
        ("mute", test_server(&["--fault", "hang-all"])),
        ("loop", test_server(&["--fault", "crash-start"])),
    ]));
    let daemon = home.start();
    let nexus = daemon.client().await;
    nexus.tools().call("mute.add", two()).await.unwrap();
    let stuck: Vec<_> = ["deaf", "mute"]
        .map(|server| {
            let nexus = nexus.clone();
            tokio::spawn(async move {
                let large = json!({"message": "x".repeat(1 << 20)});
                nexus.tools().call(format!("{server}.echo"), large).await
            })
        })
        .into();
    for _ in 0..100 {
        works(&nexus).await;
    }
    assert!(stuck.iter().all(|call| !call.is_finished()));
    for call in stuck {
        call.abort();
    }
}
