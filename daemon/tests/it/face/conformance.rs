//! What the conformance suite of MCP tries over HTTP, over every door and in every pair of eras.

use super::pairs;
use crate::{
    mcp_client::{Door, Mcp},
    support::{Daemon, start_with},
};
use serde_json::{Value, json};

fn fixtures(server: &str) -> Daemon {
    start_with(&["--era", server, "--conformance"])
}

/// A client that sees the server alone, with the names that the suite knows.
async fn come_in(door: Door, daemon: &Daemon, client: &str) -> Mcp {
    Mcp::come_in(door, daemon, client, "ann", json!({"servers": ["t"]})).await
}

#[tokio::test]
async fn contents_of_every_kind_arrive_in_every_pair_of_eras() {
    for (door, client, server) in pairs() {
        let daemon = fixtures(server);
        let mut mcp = come_in(door, &daemon, client).await;
        for (tool, kinds) in [
            ("test_simple_text", &["text"][..]),
            ("test_image_content", &["image"]),
            ("test_audio_content", &["audio"]),
            ("test_embedded_resource", &["resource"]),
            (
                "test_multiple_content_types",
                &["text", "image", "resource"],
            ),
        ] {
            let result = mcp.call(tool, json!({})).await.unwrap();
            let content = result["content"].as_array().unwrap();
            let types: Vec<_> = content.iter().map(|part| &part["type"]).collect();
            assert_eq!(types, kinds, "{door:?} {client} {server}: {result}");
        }
        let failed = mcp.call("test_error_handling", json!({})).await.unwrap();
        assert_eq!(failed["isError"], true);
        let said = failed["content"][0]["text"].as_str().unwrap();
        assert!(said.starts_with("This tool intentionally"), "{said}");

        let tools = mcp.request("tools/list", json!({})).await.unwrap();
        let tools = tools["tools"].as_array().unwrap();
        let whole = |tool: &&Value| tool["name"] == "json_schema_2020_12_tool";
        let schema = &tools.iter().find(whole).unwrap()["inputSchema"];
        for keyword in ["$schema", "$defs", "allOf", "if", "then", "else"] {
            assert!(schema.get(keyword).is_some(), "{keyword}: {schema}");
        }
        assert_eq!(schema["$defs"]["address"]["$anchor"], "addressDef");

        for (uri, member) in [
            ("test://static-text", "text"),
            ("test://static-binary", "blob"),
            ("test://template/123/data", "text"),
        ] {
            let read = mcp.request("resources/read", json!({ "uri": uri })).await;
            let read = read.unwrap();
            assert!(read["contents"][0][member].is_string(), "{read}");
            assert_eq!(read.get("ttlMs").is_some(), client == "modern", "{read}");
        }
        let gone = json!({"uri": "test://nonexistent"});
        let error = mcp.request("resources/read", gone).await.unwrap_err();
        assert_eq!(error["data"]["uri"], "test://nonexistent", "{error}");

        for (prompt, arguments, kind) in [
            ("test_simple_prompt", json!({}), "text"),
            (
                "test_prompt_with_arguments",
                json!({"arg1": "a", "arg2": "b"}),
                "text",
            ),
            (
                "test_prompt_with_embedded_resource",
                json!({"resourceUri": "test://x"}),
                "resource",
            ),
            ("test_prompt_with_image", json!({}), "image"),
        ] {
            let get = json!({"name": prompt, "arguments": arguments});
            let filled = mcp.request("prompts/get", get).await.unwrap();
            assert_eq!(filled["messages"][0]["content"]["type"], kind, "{filled}");
        }
        let progress = json!({
            "name": "test_tool_with_progress",
            "arguments": {},
            "_meta": {"progressToken": "progress-test-1"},
        });
        mcp.request("tools/call", progress).await.unwrap();
        for done in [0.0, 50.0, 100.0] {
            let progress = mcp.news("notifications/progress").await;
            assert_eq!(progress["progressToken"], "progress-test-1");
            assert_eq!(progress["progress"].as_f64(), Some(done));
        }
    }
}

#[tokio::test]
async fn everything_that_can_be_asked_is_answered_in_every_pair_of_eras() {
    for (door, client, server) in pairs() {
        let daemon = fixtures(server);
        let mut mcp = come_in(door, &daemon, client).await;
        for (tool, arguments, expected) in [
            (
                "test_sampling",
                json!({"prompt": "why"}),
                "LLM response: ann was asked why",
            ),
            (
                "test_elicitation",
                json!({"message": "who"}),
                "ann was asked who",
            ),
            (
                "test_elicitation_sep1034_defaults",
                json!({}),
                "action=accept",
            ),
            ("test_elicitation_sep1330_enums", json!({}), "action=accept"),
            ("test_input_required_result_elicitation", json!({}), "Hello"),
            (
                "test_input_required_result_sampling",
                json!({}),
                "ann was asked What is the capital of France?",
            ),
            (
                "test_input_required_result_list_roots",
                json!({}),
                "file:///ann",
            ),
            (
                "test_input_required_result_request_state",
                json!({}),
                "state-ok",
            ),
            (
                "test_input_required_result_multiple_inputs",
                json!({}),
                "ann was asked Generate a greeting",
            ),
            ("test_input_required_result_multi_round", json!({}), "likes"),
            (
                "test_input_required_result_capabilities",
                json!({}),
                "ann was asked What is your name?",
            ),
        ] {
            let said = mcp.text(tool, arguments).await;
            assert!(
                said.contains(expected),
                "{door:?} {client} {server} {tool}: {said}"
            );
        }
        let asking = json!({"name": "test_input_required_result_prompt"});
        let filled = mcp.request("prompts/get", asking).await.unwrap();
        assert!(filled["messages"][0]["content"]["text"].is_string());
    }
}

#[tokio::test]
async fn a_modern_client_comes_back_to_a_modern_server_with_what_that_gave_it() {
    for door in [Door::Lines, Door::Http] {
        let daemon = fixtures("modern");
        let mut mcp = come_in(door, &daemon, "modern").await;
        let name = "test_input_required_result_elicitation";
        let ann = json!({"action": "accept", "content": {"name": "Ann"}});
        for (responses, greets) in [
            (Value::Null, false),
            (json!({"wrong": ann}), false),
            (json!({"user_name": ann, "unknown": ann}), true),
        ] {
            let mut call = json!({"name": name, "arguments": {}});
            if !responses.is_null() {
                call["inputResponses"] = responses;
            }
            let id = mcp.begin("tools/call", call).await;
            let result = mcp.answer(id).await.unwrap();
            if greets {
                assert_eq!(result["content"][0]["text"], "Hello, Ann!");
                continue;
            }
            assert_eq!(result["resultType"], "input_required");
            let asked = &result["inputRequests"]["user_name"];
            assert_eq!(asked["method"], "elicitation/create", "{result}");
        }
        let wrong = json!({"name": name, "arguments": {}, "inputResponses": {"user_name": 12345}});
        let id = mcp.begin("tools/call", wrong).await;
        assert_eq!(mcp.answer(id).await.unwrap_err()["code"], -32602);
    }
}

#[tokio::test]
async fn a_state_that_somebody_has_changed_is_refused_whatever_the_server_speaks() {
    for (door, client, server) in pairs().filter(|(_, client, _)| *client == "modern") {
        let daemon = fixtures(server);
        let mut mcp = come_in(door, &daemon, client).await;
        let mut call = json!({"name": "test_input_required_result_tampered_state"});
        let id = mcp.begin("tools/call", call.clone()).await;
        let asked = mcp.answer(id).await.unwrap();
        let questions = asked["inputRequests"].as_object().unwrap();
        let key = questions.keys().next().unwrap().clone();
        let state = asked["requestState"].as_str().unwrap();
        call["inputResponses"] = json!({key: {"action": "accept", "content": {"ok": true}}});
        call["requestState"] = json!(format!("{state}-TAMPERED"));
        let id = mcp.begin("tools/call", call).await;
        let error = mcp.answer(id).await.unwrap_err();
        assert_eq!(error["code"], -32602, "{door:?} {server}: {error}");
    }
}

#[tokio::test]
async fn a_modern_request_that_cannot_be_answered_is_told_why() {
    for door in [Door::Lines, Door::Http] {
        let daemon = fixtures("modern");
        let mut mcp = come_in(door, &daemon, "modern").await;
        for gone in [
            "ping",
            "logging/setLevel",
            "resources/subscribe",
            "resources/unsubscribe",
        ] {
            let error = mcp.request(gone, json!({})).await.unwrap_err();
            assert_eq!(error["code"], -32601, "{door:?} {gone}: {error}");
        }
        if door == Door::Lines {
            // Over HTTP this client takes it for the beginning of a session.
            let error = mcp.request("initialize", json!({})).await.unwrap_err();
            assert_eq!(error["code"], -32601, "{error}");
        }
        let version = "io.modelcontextprotocol/protocolVersion";
        let capabilities = "io.modelcontextprotocol/clientCapabilities";
        for (id, method, name, meta, code) in [
            (
                901,
                "server/discover",
                "",
                json!({version: "2026-07-28"}),
                -32602,
            ),
            (
                902,
                "server/discover",
                "",
                json!({version: "v999.0.0", capabilities: {}}),
                -32022,
            ),
            (
                903,
                "tools/call",
                "test_missing_capability",
                json!({version: "2026-07-28", capabilities: {}}),
                -32021,
            ),
        ] {
            let params = json!({"name": name, "_meta": meta});
            mcp.send(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
                .await;
            let error = mcp.answer(id).await.unwrap_err();
            assert_eq!(error["code"], code, "{door:?} {method}: {error}");
            match code {
                -32022 => assert_eq!(error["data"]["requested"], "v999.0.0"),
                -32021 => assert!(error["data"]["requiredCapabilities"]["sampling"].is_object()),
                _ => {}
            }
        }
        let capable = json!({version: "2026-07-28", capabilities: {"sampling": {}}});
        let call = json!({"name": "test_input_required_result_capabilities", "_meta": capable});
        mcp.send(json!({"jsonrpc": "2.0", "id": 904, "method": "tools/call", "params": call}))
            .await;
        let asked = mcp.answer(904).await.unwrap();
        let asked: Vec<_> = asked["inputRequests"].as_object().unwrap().keys().collect();
        assert_eq!(asked, ["greeting"], "only what the client can be asked");
    }
}
