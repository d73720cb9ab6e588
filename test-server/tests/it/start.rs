//! Faults at the start, and of the process as a whole.

use serde_json::json;

use crate::support::{Peer, initialize_params, modern_meta, text};

#[test]
fn crash_start_says_why_and_exits_with_1() {
    let mut peer = Peer::start(&["--fault", "crash-start"]);
    assert_eq!(peer.exit_code(), Some(1));
    assert_eq!(peer.stderr(), b"fatal: cannot open database\n");
}

#[test]
fn init_exit_leaves_two_lines_and_exits_with_3() {
    let mut peer = Peer::start(&["--fault", "init-exit"]);
    peer.request(1, "initialize", initialize_params("2025-11-25"));
    assert_eq!(peer.exit_code(), Some(3));
    assert_eq!(String::from_utf8(peer.stderr()).unwrap().lines().count(), 2);
    assert!(peer.line().is_none());
}

#[test]
fn init_hang_answers_neither_way_of_beginning() {
    let mut peer = Peer::start(&["--fault", "init-hang"]);
    peer.request(1, "server/discover", json!({}));
    peer.request(2, "initialize", initialize_params("2025-11-25"));
    assert_eq!(peer.ask(3, "ping", json!({}))["id"], 3);
    assert!(peer.rest().is_empty());
}

#[test]
fn bad_version_is_bad_in_both_eras() {
    let mut peer = Peer::start(&["--fault", "bad-version"]);
    let discovered = peer.ask_modern(1, "server/discover", json!({}));
    assert_eq!(discovered["error"]["code"], -32022);
    assert_eq!(
        discovered["error"]["data"]["supported"],
        json!(["1999-01-01"])
    );
    let initialized = peer.ask(2, "initialize", initialize_params("2025-11-25"));
    assert_eq!(initialized["result"]["protocolVersion"], "1999-01-01");
}

#[test]
fn exit_on_probe_exits_unless_initialize_comes_first() {
    let mut peer = Peer::start(&["--fault", "exit-on-probe"]);
    peer.request("p", "server/discover", json!({"_meta": modern_meta()}));
    assert_eq!(peer.exit_code(), Some(4));
    assert!(peer.line().is_none());
    assert_eq!(peer.stderr(), b"error: server/discover before initialize\n");

    let mut peer = Peer::initialized(&["--fault", "exit-on-probe"]);
    let refused = peer.ask_modern("p", "server/discover", json!({}));
    assert_eq!(refused["error"]["code"], -32601, "it is of the legacy era");
}

#[test]
fn ignore_unknown_says_nothing_to_what_it_does_not_know() {
    let mut peer = Peer::start(&["--fault", "ignore-unknown"]);
    peer.request("p", "server/discover", json!({"_meta": modern_meta()}));
    let answer = peer.ask("i", "initialize", initialize_params("2025-11-25"));
    assert_eq!(answer["id"], "i");
    peer.request(1, "no/such", json!({}));
    assert_eq!(peer.ask(2, "tools/list", json!({}))["id"], 2);
    assert!(peer.rest().is_empty());
}

#[test]
fn banner_lines_come_before_the_first_message() {
    let mut peer = Peer::start(&["--fault", "banner@5"]);
    for _ in 0..5 {
        let line = peer.line().unwrap();
        assert!(serde_json::from_slice::<serde_json::Value>(&line).is_err());
    }
    assert_eq!(peer.ask(1, "ping", json!({}))["id"], 1);
}

#[test]
fn stderr_flood_comes_before_the_first_answer() {
    let mut peer = Peer::initialized(&["--fault", "stderr-flood"]);
    peer.close_stdin();
    assert_eq!(peer.stderr().len(), 1 << 20);
}

#[test]
fn slow_start_starts() {
    Peer::initialized(&["--fault", "slow-start@1"]);
}

#[test]
fn exit_after_ms_exits_with_9_whatever_else_it_does() {
    for other in ["slow-start@600000", "ignore-term", "stop-reading"] {
        let mut peer = Peer::start(&["--fault", "exit-after-ms@1", "--fault", other]);
        assert_eq!(peer.exit_code(), Some(9), "{other}");
    }
}

#[test]
fn crlf_servers_begin_with_a_byte_order_mark() {
    let mut peer = Peer::start(&["--fault", "crlf"]);
    peer.request(1, "ping", json!({}));
    peer.request(2, "ping", json!({}));
    assert_eq!(
        peer.line().unwrap(),
        b"\xef\xbb\xbf{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\r\n"
    );
    assert_eq!(
        peer.line().unwrap(),
        b"{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}}\r\n"
    );
}

#[cfg(target_os = "linux")]
#[test]
fn ignore_term_outlives_the_signal_and_the_end_of_stdin() {
    let mut peer = Peer::initialized(&["--fault", "ignore-term"]);
    let pid = rustix::process::Pid::from_child(&peer.child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert_eq!(peer.ask(1, "ping", json!({}))["id"], 1);
    peer.close_stdin();
    peer.wait_until_it_stops_reading();
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert!(peer.is_alive());
}

/// The session of a process, from `/proc`: `getsid` of rustix panics at the 0 that the kernel
/// gives for a session that began outside our pid namespace.
#[cfg(target_os = "linux")]
fn session(pid: i32) -> i32 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    // The name before it may hold spaces and brackets; what follows is state, parent, group, session.
    let (_, rest) = stat.rsplit_once(") ").unwrap();
    rest.split(' ').nth(3).unwrap().parse().unwrap()
}

#[cfg(target_os = "linux")]
#[test]
fn a_grandchild_in_a_session_of_its_own_holds_stdout() {
    use crate::support::wait_until;
    use rustix::process::{
        Pid, Signal, WaitOptions, getpid, kill_process, set_child_subreaper, waitpid,
    };

    struct Orphan(Pid);
    impl Drop for Orphan {
        fn drop(&mut self) {
            let _ = kill_process(self.0, Signal::KILL);
            let _ = waitpid(Some(self.0), WaitOptions::empty());
        }
    }

    // The orphan becomes our child, so that we can reap it.
    set_child_subreaper(Some(getpid())).unwrap();
    let mut peer = Peer::initialized(&["--fault", "grandchild"]);
    let server = peer.child.id();
    let children =
        std::fs::read_to_string(format!("/proc/{server}/task/{server}/children")).unwrap();
    let pid: i32 = children.trim().parse().unwrap();
    let orphan = Orphan(Pid::from_raw(pid).unwrap());
    wait_until("session of its own", || (session(pid) == pid).then_some(()));

    peer.close_stdin();
    assert_eq!(peer.exit_code(), Some(0));
    let stdout = std::fs::read_link(format!("/proc/{pid}/fd/1")).unwrap();
    assert!(stdout.to_str().unwrap().starts_with("pipe:"), "{stdout:?}");
    drop(orphan);
    assert!(peer.line().is_none(), "stdout ends with the grandchild");
}

#[test]
fn several_faults_strike_each_at_its_time() {
    let mut peer = Peer::initialized(&["--fault", "null-id@2", "--fault", "exit@3"]);
    peer.call(1, "echo", json!({"message": "one"}));
    assert_eq!(text(&peer.read()), "one");
    peer.call(2, "echo", json!({"message": "two"}));
    assert!(peer.read()["id"].is_null());
    peer.call(3, "echo", json!({"message": "three"}));
    assert_eq!(peer.exit_code(), Some(7));
    assert!(peer.line().is_none());
}
