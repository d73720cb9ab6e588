//! Servers that cannot be reached, and where nobody is led.

use super::*;

/// 83.
#[tokio::test]
async fn a_server_that_is_gone_is_told_and_found_again() {
    let mock = Mock::start(Era::Modern, |_| None).await;
    let (_daemon, nexus) = ready(&mock.url, json!({})).await;
    assert_eq!(echo(&nexus, "x").await.unwrap(), "x");
    let port = mock.port;
    drop(mock);
    let error = loop {
        match echo(&nexus, "gone").await {
            Ok(_) => tokio::time::sleep(Duration::from_millis(5)).await,
            Err(error) => break error,
        }
    };
    let reason = error.reason();
    assert!(
        matches!(reason, Some(Reason::Unreachable | Reason::HttpError)),
        "{error}"
    );
    let error = echo(&nexus, "refused").await.unwrap_err();
    assert!(!error.maybe_executed(), "{error}");
    assert!(error.to_string().contains("cannot be reached"), "{error}");
    let server = server_when(&nexus, "t", |server| server.last_failure.is_some()).await;
    assert!(server.last_failure.unwrap().message.contains("refused"));
    let _mock = Mock::start_with(Era::Modern, port, None, |_| None).await;
    server_when(&nexus, "t", |server| server.state == ServerState::Ready).await;
    assert_eq!(echo(&nexus, "back").await.unwrap(), "back");
}

/// 83.
#[tokio::test]
async fn a_place_that_swallows_everything_is_given_up_after_five_seconds() {
    // Whose queue is full answers nobody.
    let hole = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    let any: std::net::SocketAddr = "127.0.0.1:0".parse().unwrap();
    hole.bind(&any.into()).unwrap();
    hole.listen(0).unwrap();
    let place = hole.local_addr().unwrap().as_socket().unwrap();
    let _full: Vec<_> = (0..4)
        .map(|_| {
            let socket =
                socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
            socket.set_nonblocking(true).unwrap();
            let _ = socket.connect(&place.into());
            socket
        })
        .collect();
    let began = Instant::now();
    let daemon = daemon_with(&format!("http://{place}/mcp"), json!({}));
    let nexus = daemon.client().await;
    let server = server_when(&nexus, "t", |server| server.last_failure.is_some()).await;
    let took = began.elapsed();
    assert!(
        took > Duration::from_secs(4) && took < Duration::from_secs(20),
        "{took:?}"
    );
    let message = server.last_failure.unwrap().message;
    assert!(message.contains("no connection within 5s"), "{message}");
}

/// 86.
#[tokio::test]
async fn nobody_is_led_elsewhere() {
    let other = Mock::start(Era::Modern, |_| None).await;
    let metadata = "http://169.254.169.254/latest/".to_owned();
    let elsewhere = other.url.clone();
    let mock = Mock::start(Era::Modern, move |seen| {
        let to = |status, place: &str| Some(Answer::status(status).with("location", place));
        match (seen.path.as_str(), seen.method(), seen.nth) {
            ("/moved", _, _) => None,
            (_, "tools/call", 1) => to(308, "/moved"),
            (_, "tools/call", 3) => to(307, &elsewhere),
            (_, "tools/call", 4) => to(302, "/moved"),
            (_, "tools/call", 5) => to(308, &metadata),
            (_, "tools/call", 6..) => to(307, "/mcp"),
            _ => None,
        }
    })
    .await;
    let (_daemon, nexus) = ready(&mock.url, json!({"bearer": "hunter2"})).await;
    assert_eq!(echo(&nexus, "x").await.unwrap(), "x");
    for expected in ["not followed", "302", "169.254.169.254", "circles"] {
        let error = echo(&nexus, "x").await.unwrap_err();
        assert!(error.to_string().contains(expected), "{expected}: {error}");
    }
    assert!(other.all().is_empty());
}

#[tokio::test]
async fn an_old_server_that_wants_a_credential_says_so() {
    let mock = Mock::start(Era::Old, |_| Some(Answer::status(401))).await;
    let daemon = daemon_with(&mock.url, json!({"type": "sse"}));
    let nexus = daemon.client().await;
    server_when(&nexus, "t", |server| server.state == ServerState::NeedsAuth).await;
    assert_eq!(mock.all().len(), 1);
}

/// 86.
#[tokio::test]
async fn an_old_server_does_not_lead_our_messages_elsewhere() {
    let mock = Mock::start(Era::Legacy, |seen| {
        let place = "event: endpoint\ndata: http://169.254.169.254/messages\n\n";
        let events = || {
            Answer::events()
                .part(Part::Text(place.to_owned()))
                .part(Part::Hang)
        };
        (seen.verb == "GET").then(events)
    })
    .await;
    let daemon = daemon_with(&mock.url, json!({"type": "sse"}));
    let nexus = daemon.client().await;
    let server = server_when(&nexus, "t", |server| server.last_failure.is_some()).await;
    let message = server.last_failure.unwrap().message;
    assert!(message.contains("not followed"), "{message}");
    assert!(mock.seen("initialize").is_empty());
}

/// 88.
#[tokio::test]
async fn a_proxy_is_used_only_where_it_is_configured() {
    let proxy = Arc::new(AtomicUsize::new(0));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let place = format!("http://{}", listener.local_addr().unwrap());
    let count = Arc::clone(&proxy);
    tokio::spawn(async move {
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
        loop {
            let (mut from, _) = listener.accept().await.unwrap();
            count.fetch_add(1, Ordering::Relaxed);
            tokio::spawn(async move {
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    head.push(from.read_u8().await.unwrap());
                }
                let head = String::from_utf8(head).unwrap();
                let to = head
                    .strip_prefix("CONNECT ")
                    .unwrap()
                    .split(' ')
                    .next()
                    .unwrap();
                let mut to = tokio::net::TcpStream::connect(to.to_owned()).await.unwrap();
                from.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
                let _ = tokio::io::copy_bidirectional(&mut from, &mut to).await;
            });
        }
    });
    for configured in [false, true] {
        let mock = Mock::start(Era::Modern, |_| None).await;
        let home = Home::new();
        let mut server = json!({"url": mock.url});
        if configured {
            server["proxy"] = json!(place);
        }
        home.configure(&servers(&[("t", server)]));
        let mut command = home.nexusd();
        for name in ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY"] {
            command.env(name, &place);
        }
        let daemon = home.start_as(command);
        let nexus = daemon.client().await;
        server_when(&nexus, "t", |server| server.state == ServerState::Ready).await;
        assert_eq!(echo(&nexus, "x").await.unwrap(), "x");
        assert_eq!(proxy.load(Ordering::Relaxed) > 0, configured);
    }
}
