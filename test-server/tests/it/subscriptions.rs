//! Who hears of a change: the tools `touch` and `grow` of `--interactive`, in both eras.

use serde_json::{Value, json};

use crate::support::{Peer, modern_meta, text};

const README: &str = "file:///readme.txt";
const ID: &str = "io.modelcontextprotocol/subscriptionId";

/// What is told before the answer to a call, and the answer's text.
fn told(peer: &mut Peer, tool: &str, arguments: Value, meta: Value) -> (Vec<Value>, String) {
    let params = json!({"name": tool, "arguments": arguments, "_meta": meta});
    peer.request("call", "tools/call", params);
    let mut told = Vec::new();
    loop {
        let next = peer.read();
        if next["id"] == "call" {
            return (told, text(&next).to_owned());
        }
        told.push(next);
    }
}

fn touch(peer: &mut Peer, meta: Value) -> (Vec<Value>, String) {
    told(peer, "touch", json!({"uri": README}), meta)
}

#[test]
fn a_legacy_subscription_lasts_until_its_end() {
    let mut peer = Peer::initialized(&["--interactive"]);
    assert_eq!(touch(&mut peer, json!({})), (vec![], "0".to_owned()));
    peer.ask(1, "resources/subscribe", json!({"uri": README}));
    let (messages, count) = touch(&mut peer, json!({}));
    assert_eq!((messages.len(), &*count), (1, "1"));
    assert_eq!(messages[0]["method"], "notifications/resources/updated");
    assert_eq!(messages[0]["params"], json!({"uri": README}));
    let other = json!({"uri": "file:///config.json"});
    assert_eq!(told(&mut peer, "touch", other, json!({})).1, "0");
    peer.ask(2, "resources/unsubscribe", json!({"uri": README}));
    assert_eq!(touch(&mut peer, json!({})).1, "0");
    let read = peer.ask(3, "resources/read", json!({"uri": README}));
    let contents = read["result"]["contents"][0]["text"].as_str().unwrap();
    assert!(contents.ends_with("\nTouched 3 times.\n"), "{contents}");
}

#[test]
fn a_modern_listener_hears_of_its_resources_with_its_own_id() {
    let mut peer = Peer::start(&["--era", "modern", "--interactive"]);
    let wanted = json!({"resourceSubscriptions": [README, "file:///no"]});
    for id in [json!("listen:0"), json!(7)] {
        let params = json!({"notifications": wanted});
        let welcome = peer.ask_modern(id.clone(), "subscriptions/listen", params);
        assert_eq!(
            welcome["params"],
            json!({"_meta": {ID: id}, "notifications": {"resourceSubscriptions": [README]}})
        );
    }
    let (messages, count) = touch(&mut peer, modern_meta());
    assert_eq!(count, "2");
    let ids: Vec<&Value> = messages
        .iter()
        .map(|told| &told["params"]["_meta"][ID])
        .collect();
    assert_eq!(ids, [&json!("listen:0"), &json!(7)]);
    assert!(messages.iter().all(|told| told["params"]["uri"] == README));
    let params = json!({"requestId": "listen:0"});
    peer.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}));
    assert_eq!(touch(&mut peer, modern_meta()).1, "1");
}

/// The names, or the URIs, of a list.
fn names(peer: &mut Peer, list: &str) -> Vec<String> {
    let page = peer.ask_modern("list", &format!("{list}/list"), json!({}));
    let key = if list == "resources" { "uri" } else { "name" };
    let entries = page["result"][list].as_array().unwrap();
    let name = |entry: &Value| entry[key].as_str().unwrap().to_owned();
    entries.iter().map(name).collect()
}

#[test]
fn what_grows_is_told_listed_and_served() {
    let mut peer = Peer::initialized(&["--interactive"]);
    for list in ["tools", "resources", "prompts"] {
        let before = names(&mut peer, list);
        let (messages, name) = told(&mut peer, "grow", json!({"what": list}), json!({}));
        let methods: Vec<&Value> = messages.iter().map(|told| &told["method"]).collect();
        assert_eq!(
            methods,
            [&json!(format!("notifications/{list}/list_changed"))]
        );
        let after = names(&mut peer, list);
        assert_eq!(after[..before.len()], before);
        assert_eq!(after[before.len()..], [&*name]);
        let (method, params) = match list {
            "tools" => ("tools/call", json!({"name": name})),
            "resources" => ("resources/read", json!({"uri": name})),
            _ => ("prompts/get", json!({"name": name})),
        };
        assert!(peer.ask(1, method, params)["result"].is_object(), "{list}");
    }
}

#[test]
fn a_modern_listener_hears_of_the_lists_it_asked_for() {
    let mut peer = Peer::start(&["--era", "modern", "--interactive"]);
    for (list, filter) in [
        ("tools", "toolsListChanged"),
        ("resources", "resourcesListChanged"),
        ("prompts", "promptsListChanged"),
    ] {
        let params = json!({"notifications": {filter: true}});
        let welcome = peer.ask_modern(list, "subscriptions/listen", params);
        assert_eq!(welcome["params"]["notifications"], json!({filter: true}));
    }
    for list in ["tools", "resources", "prompts"] {
        let (messages, _) = told(&mut peer, "grow", json!({"what": list}), modern_meta());
        assert_eq!(messages.len(), 1, "{messages:?}");
        assert_eq!(messages[0]["params"], json!({"_meta": {ID: list}}));
    }
}

#[test]
fn every_list_can_change_and_says_so() {
    let mut peer = Peer::start(&["--interactive"]);
    let discovered = peer.ask_modern(1, "server/discover", json!({}));
    let capabilities = &discovered["result"]["capabilities"];
    for list in ["tools", "resources", "prompts"] {
        assert_eq!(capabilities[list]["listChanged"], true, "{list}");
    }
    assert_eq!(capabilities["resources"]["subscribe"], true);
    assert!(capabilities["logging"].is_object() && capabilities["completions"].is_object());
}

#[test]
fn completions_know_the_template_and_the_arguments_before() {
    let mut peer = Peer::initialized(&[]);
    let mut completed = |reference: &Value, argument: Value, context: Value| {
        let params = json!({"ref": reference, "argument": argument, "context": context});
        let answer = peer.ask(1, "completion/complete", params.clone());
        assert_eq!(
            peer.ask_modern(2, "completion/complete", params)["result"]["completion"],
            answer["result"]["completion"]
        );
        answer["result"]["completion"]["values"].clone()
    };
    let template = json!({"type": "ref/resource", "uri": "file:///data/{name}.csv"});
    let name = json!({"name": "name", "value": "u"});
    assert_eq!(completed(&template, name, json!({})), json!(["users"]));
    let review = json!({"type": "ref/prompt", "name": "code_review"});
    let focus = json!({"name": "focus", "value": ""});
    let of_rust = completed(
        &review,
        focus.clone(),
        json!({"arguments": {"language": "rust"}}),
    );
    let of_go = completed(&review, focus, json!({"arguments": {"language": "go"}}));
    assert_eq!(of_rust[0], "ownership");
    assert_eq!(of_go, json!(["performance", "readability", "security"]));
}

#[cfg(feature = "http")]
#[test]
fn a_legacy_session_hears_on_its_stream_and_another_does_not() {
    use crate::site::Site;

    let site = Site::start(&["--interactive"]);
    let sessions = [site.initialize(), site.initialize()];
    let mut streams = sessions.each_ref().map(|session| {
        let headers = [("Accept", "text/event-stream"), ("Mcp-Session-Id", session)];
        site.open("GET", &headers, "")
    });
    site.ask(&sessions[0], "resources/subscribe", json!({"uri": README}))
        .json();
    for (tool, arguments) in [
        ("touch", json!({"uri": README})),
        ("grow", json!({"what": "prompts"})),
    ] {
        let params = json!({"name": tool, "arguments": arguments});
        site.ask(&sessions[1], "tools/call", params).json();
    }
    let first = streams[0].event().unwrap();
    assert_eq!(first["method"], "notifications/resources/updated");
    for stream in &mut streams {
        let next = stream.event().unwrap();
        assert_eq!(next["method"], "notifications/prompts/list_changed");
    }
}
