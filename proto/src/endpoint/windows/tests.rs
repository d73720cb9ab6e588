//! With real pipes.

use super::*;
use crate::endpoint::Endpoint;
use interprocess::os::windows::security_descriptor::AsSecurityDescriptorExt as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use windows_sys::Win32::Security::{DACL_SECURITY_INFORMATION, OWNER_SECURITY_INFORMATION};

/// A pipe that no other test has.
fn endpoint(test: &str) -> Endpoint {
    let name = format!("nexusd-test-{}-{test}", std::process::id());
    Endpoint::resolve(Some(Path::new(&name))).unwrap()
}

#[tokio::test]
async fn both_sides_know_each_other() {
    let endpoint = endpoint("known");
    let mut listener = endpoint.bind().unwrap();
    let (accepted, connected) = tokio::join!(listener.accept(), endpoint.connect());
    let (mut server, peer) = accepted.unwrap();
    assert_eq!(peer.pid, Some(std::process::id()));
    let mut client = connected.unwrap();
    client.write_all(b"ping").await.unwrap();
    let mut said = [0; 4];
    server.read_exact(&mut said).await.unwrap();
    assert_eq!(&said, b"ping");
}

#[tokio::test]
async fn the_pipe_is_its_makers() {
    let endpoint = endpoint("owner");
    let mut listener = endpoint.bind().unwrap();
    let (_server, client) = tokio::join!(listener.accept(), endpoint.connect());
    let Stream::NamedPipe(pipe) = client.unwrap();
    let owner = user::owner_of(pipe.as_handle()).unwrap();
    assert_eq!(owner, user::current_sid().unwrap());
}

/// What a service does. The account is one that there is everywhere, and is not us.
#[tokio::test]
async fn a_client_that_is_not_on_the_list_is_refused() {
    let endpoint = endpoint("foreign");
    let mut listener = endpoint.bind_for("S-1-5-7").unwrap();
    listener.sids = vec!["S-1-5-7".to_owned()];
    let (accepted, _client) = tokio::join!(listener.accept(), endpoint.connect());
    let error = accepted.unwrap_err();
    assert!(matches!(error, AcceptError::Foreign { .. }), "{error}");
}

#[tokio::test]
async fn the_second_daemon_learns_that_there_is_one() {
    let endpoint = endpoint("second");
    let _first = endpoint.bind().unwrap();
    let error = endpoint.bind().unwrap_err();
    assert!(matches!(error, BindError::AlreadyRunning { .. }), "{error}");
}

#[tokio::test]
async fn without_a_daemon_there_is_nobody() {
    let error = endpoint("nobody").connect().await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::NotFound);
}

#[test]
fn the_descriptor_names_its_owner_and_nobody_else() {
    let sids = ["S-1-5-18".to_owned(), "S-1-5-7".to_owned()];
    let descriptor = private_descriptor(&sids).unwrap();
    let text = descriptor
        .serialize(
            OWNER_SECURITY_INFORMATION | DACL_SECURITY_INFORMATION,
            |text| text.to_string().unwrap(),
        )
        .unwrap();
    assert!(
        text.starts_with("O:SYD:P(A;;GA;;;SY)(A;;GA;;;AN)"),
        "{text}"
    );
}

#[test]
fn accounts_are_found_by_name_and_by_sid() {
    assert_eq!(user::sid_of_account("S-1-5-18").unwrap(), "S-1-5-18");
    let me = env::var("USERNAME").unwrap();
    assert_eq!(
        user::sid_of_account(&me).unwrap(),
        user::current_sid().unwrap()
    );
    user::sid_of_account("nobody-of-this-name").unwrap_err();
}

#[test]
fn a_file_is_its_makers() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    let owner = user::owner_of_file(&file).unwrap();
    // An administrator's files may be the group's.
    assert!(
        [&*user::current_sid().unwrap(), user::ADMINISTRATORS].contains(&&*owner),
        "{owner}"
    );
}

/// The system itself keeps out whoever the descriptor does not name.
#[tokio::test]
#[ignore = "wine opens every pipe; on Windows: cargo test -p nexus-proto -- --ignored"]
async fn a_pipe_for_somebody_else_cannot_be_opened() {
    let endpoint = endpoint("closed");
    let me = user::current_sid().unwrap();
    let text = format!("O:{me}D:P(A;;GA;;;S-1-5-7)");
    let text = widestring::U16CString::from_str(text).unwrap();
    let _listener = ListenerOptions::new()
        .name(name(endpoint.path()).unwrap())
        .security_descriptor(SecurityDescriptor::deserialize(&text).unwrap())
        .create_tokio()
        .unwrap();
    let error = endpoint.connect().await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::PermissionDenied, "{error}");
}
