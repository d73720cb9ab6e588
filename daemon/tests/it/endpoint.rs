//! The endpoint: one daemon, one user, one protocol at a time.

use crate::support::{Ends, Home};
use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    os::unix::{
        fs::PermissionsExt as _,
        net::{UnixListener, UnixStream},
    },
    process::{Child, Command},
    thread,
};

/// A daemon's first words: whether it serves, and what it says otherwise.
fn first_words(child: &mut Child) -> String {
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut text = String::new();
    loop {
        let mut line = String::new();
        let n = stderr.read_line(&mut line).unwrap();
        text += &line;
        if n == 0 || line.contains("\"listening\"") {
            child.stderr = Some(stderr.into_inner());
            return text;
        }
    }
}

#[test]
fn of_four_daemons_over_a_stale_socket_exactly_one_serves() {
    let home = Home::new();
    // Servers that are never started: this is about the endpoint.
    home.configure(&serde_json::json!({"mcpServers": {}}));
    for round in 0..50 {
        fs::create_dir_all(home.socket().parent().unwrap()).unwrap();
        let _ = fs::remove_file(home.socket());
        drop(UnixListener::bind(home.socket()).unwrap());
        let mut daemons: Vec<Ends> = (0..4)
            .map(|_| Ends(home.nexusd().spawn().unwrap()))
            .collect();
        let words: Vec<String> = thread::scope(|scope| {
            let readers: Vec<_> = daemons
                .iter_mut()
                .map(|child| scope.spawn(|| first_words(&mut child.0)))
                .collect();
            readers
                .into_iter()
                .map(|reader| reader.join().unwrap())
                .collect()
        });
        let serving: Vec<usize> = (0..4)
            .filter(|&i| words[i].contains("\"listening\""))
            .collect();
        let [winner] = serving[..] else {
            panic!("round {round}: {words:?}");
        };
        UnixStream::connect(home.socket()).unwrap();
        let pid = daemons[winner].0.id();
        for (i, daemon) in daemons.iter_mut().enumerate().filter(|(i, _)| *i != winner) {
            assert!(daemon.0.wait().unwrap().success());
            assert_eq!(
                words[i],
                format!("nexusd: already running, pid {pid}\n"),
                "round {round}"
            );
        }
        // They are killed here, so that the next round finds a stale socket and a stale lock file.
    }
}

fn failure(command: &mut Command) -> (Option<i32>, String) {
    let output = command.output().unwrap();
    (
        output.status.code(),
        String::from_utf8(output.stderr).unwrap(),
    )
}

#[test]
fn a_directory_that_others_can_write_is_refused_with_what_to_do() {
    let home = Home::new();
    let dir = home.path().join("open");
    fs::create_dir(&dir).unwrap();
    fs::set_permissions(&dir, fs::Permissions::from_mode(0o777)).unwrap();
    let (code, text) = failure(home.nexusd().arg("--socket").arg(dir.join("x.sock")));
    assert_eq!(code, Some(1));
    assert!(text.contains("is writable by others (mode 0777)"), "{text}");
    assert!(
        text.contains(&format!("hint: chmod 700 {}", dir.display())),
        "{text}"
    );
}

#[test]
fn a_path_that_is_too_long_is_refused() {
    let home = Home::new();
    let (code, text) = failure(
        home.nexusd()
            .arg("--socket")
            .arg(format!("/tmp/{}", "x".repeat(200))),
    );
    assert_eq!(code, Some(1));
    assert!(
        text.contains("too long") && text.contains("--socket"),
        "{text}"
    );
}

#[tokio::test]
async fn a_socket_that_somebody_removes_is_made_anew() {
    let daemon = Home::new().start();
    for everything in [false, true] {
        let socket = daemon.home.socket();
        if everything {
            fs::remove_dir_all(socket.parent().unwrap()).unwrap();
        } else {
            fs::remove_file(&socket).unwrap();
        }
        let nexus = nexus_client::Nexus::builder()
            .socket(&socket)
            .wait_for_daemon(crate::support::PATIENCE);
        nexus.connect().await.unwrap().ping().await.unwrap();
        // It is still the only one.
        let (code, text) = failure(&mut daemon.home.nexusd());
        assert_eq!(code, Some(0));
        assert!(text.contains("already running"), "{text}");
    }
}

#[test]
fn a_client_of_another_user_is_refused() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("only root can become another user: not tested");
        return;
    }
    let daemon = Home::new().start();
    let socket = daemon.home.socket();
    // Every other guard is taken away, so that only the check at the door is left.
    for dir in [
        daemon.home.path(),
        &daemon.home.path().join("run"),
        socket.parent().unwrap(),
    ] {
        fs::set_permissions(dir, fs::Permissions::from_mode(0o755)).unwrap();
    }
    fs::set_permissions(&socket, fs::Permissions::from_mode(0o666)).unwrap();
    let answer = thread::spawn(move || {
        let nobody = rustix::process::Uid::from_raw(65534);
        // Of this thread only.
        rustix::thread::set_thread_res_uid(nobody, nobody, nobody).unwrap();
        let mut stream = UnixStream::connect(socket).unwrap();
        let _ = stream.write_all(b"{}\n");
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        answer
    })
    .join()
    .unwrap();
    assert_eq!(answer, b"");
    daemon.wait_for_log("refused a connection from another user (uid 65534");
}

#[test]
fn what_is_neither_grpc_nor_mcp_is_told_so() {
    let daemon = Home::new().start();
    let ask = |text: &str| {
        let mut stream = UnixStream::connect(daemon.home.socket()).unwrap();
        stream.write_all(text.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let http = ask("GET /mcp HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    assert!(http.starts_with("HTTP/1.1 400 "), "{http}");
    let (head, body) = http.split_once("\r\n\r\n").unwrap();
    assert!(
        head.contains(&format!("content-length: {}", body.len())),
        "{http}"
    );
    assert_eq!(ask("hello there\n"), "");
}
