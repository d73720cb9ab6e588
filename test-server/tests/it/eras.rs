//! Both eras over stdio.

use serde_json::json;

use crate::support::{Peer, initialize_params, text};

#[test]
fn initialize_gets_the_version_it_asks_for() {
    for (asked, given) in [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("2031-01-01", "2025-11-25"),
    ] {
        let answer = Peer::start(&[]).ask(0, "initialize", initialize_params(asked));
        assert_eq!(answer["result"]["protocolVersion"], given);
        assert!(answer["result"]["capabilities"]["tools"].is_object());
    }
}

#[test]
fn modern_requests_need_no_handshake_but_their_metadata() {
    let mut peer = Peer::start(&[]);
    let discovered = peer.ask_modern("d", "server/discover", json!({}));
    assert_eq!(discovered["result"]["supportedVersions"][0], "2026-07-28");
    let list = peer.ask_modern(1, "tools/list", json!({}));
    assert_eq!(
        (&list["result"]["resultType"], &list["result"]["cacheScope"]),
        (&json!("complete"), &json!("public"))
    );
    let echo = peer.ask_modern(
        2,
        "tools/call",
        json!({"name": "echo", "arguments": {"message": "m"}}),
    );
    assert_eq!(
        (text(&echo), &echo["result"]["resultType"]),
        ("m", &json!("complete"))
    );
    assert_eq!(
        peer.ask_modern(3, "ping", json!({}))["error"]["code"],
        -32601
    );
    assert_eq!(
        peer.ask_modern(4, "resources/read", json!({"uri": "file:///no"}))["error"]["code"],
        -32602
    );
    assert_eq!(
        peer.ask(5, "tools/list", json!({}))["error"]["code"],
        -32602
    );
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2030-01-01", "io.modelcontextprotocol/clientCapabilities": {}});
    assert_eq!(
        peer.ask(6, "tools/list", json!({"_meta": meta}))["error"]["code"],
        -32022
    );
}

#[test]
fn a_server_of_one_era_refuses_the_other() {
    let mut legacy = Peer::start(&["--era", "legacy"]);
    assert_eq!(
        legacy.ask_modern(1, "server/discover", json!({}))["error"]["code"],
        -32601
    );
    assert!(legacy.ask(2, "initialize", initialize_params("2025-11-25"))["result"].is_object());
    let mut modern = Peer::start(&["--era", "modern"]);
    let refused = modern.ask(1, "initialize", initialize_params("2025-11-25"));
    assert_eq!(refused["error"]["code"], -32022);
    assert_eq!(refused["error"]["data"]["supported"], json!(["2026-07-28"]));
    assert!(modern.ask_modern(2, "server/discover", json!({}))["result"].is_object());
}
