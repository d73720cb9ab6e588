//! What servers can do, once more with servers that are reached over HTTP.

#[path = "asking.rs"]
mod asking;
#[path = "fidelity.rs"]
mod fidelity;
#[path = "offers.rs"]
mod offers;
#[path = "subscriptions.rs"]
mod subscriptions;

/// The same, with test servers that are reached over HTTP. They end with the thread of their test.
mod support {
    pub(super) use crate::support::*;
    use serde_json::{Value, json};
    use std::cell::RefCell;

    /// Each event has a chunk of its own, which costs more than a line.
    pub(super) const MANY: usize = 50;

    thread_local! {
        static SERVERS: RefCell<Vec<HttpServer>> = const { RefCell::new(Vec::new()) };
    }

    pub(super) fn test_server(args: &[&str]) -> Value {
        let server = HttpServer::start(args);
        let config = json!({ "url": server.url });
        SERVERS.with_borrow_mut(|servers| servers.push(server));
        config
    }

    #[expect(clippy::unused_async, reason = "as the other one is")]
    pub(super) async fn pid_of(_: &nexus_client::Nexus) -> u32 {
        SERVERS.with_borrow(|servers| servers[0].pid())
    }

    pub(super) fn start_with(args: &[&str]) -> Daemon {
        let home = Home::new();
        home.configure(&servers(&[("t", test_server(args))]));
        home.start()
    }
}
