//! The SDK's client is asked whether something may be done, and its answer is obeyed.

use crate::support::{Daemon, Home, servers, test_server_with};
use rmcp::{
    ClientHandler, ClientServiceExt as _, ErrorData, RoleClient,
    model::*,
    service::{ClientLifecycleMode, RequestContext, RunningService},
};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use tokio::net::UnixStream;

/// Whoever sits there, and what they were asked.
#[derive(Clone)]
struct User {
    says: &'static str,
    asked: Arc<Mutex<Vec<String>>>,
}

impl ClientHandler for User {
    fn get_info(&self) -> ClientConfig {
        let capabilities = ClientCapabilities::builder().enable_elicitation().build();
        ClientConfig::new(capabilities, Implementation::new("rmcp-client", "1"))
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let asked = serde_json::to_value(&request).unwrap();
        let message = asked["message"].as_str().unwrap().to_owned();
        self.asked.lock().unwrap().push(message);
        let words = asked["requestedSchema"]["properties"]["answer"]["enum"].as_array();
        assert!(words.unwrap().contains(&json!(self.says)), "{asked}");
        let answer = ElicitResult::new(ElicitationAction::Accept);
        Ok(answer.with_content(json!({ "answer": self.says })))
    }
}

async fn connect(
    daemon: &Daemon,
    says: &'static str,
    lifecycle: ClientLifecycleMode,
) -> RunningService<RoleClient, User> {
    let stream = UnixStream::connect(daemon.home.socket()).await.unwrap();
    let user = User {
        says,
        asked: Arc::default(),
    };
    let client = user
        .serve_with_lifecycle(stream.into_split(), lifecycle)
        .await;
    client.unwrap()
}

fn lifecycles() -> [ClientLifecycleMode; 2] {
    let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
    [
        ClientLifecycleMode::Initialize,
        ClientLifecycleMode::Discover { preferred_versions },
    ]
}

#[tokio::test]
async fn its_user_is_asked_and_obeyed() {
    let home = Home::new();
    home.configure(&servers(&[(
        "mail",
        test_server_with(&[], json!({"consent": "call"})),
    )]));
    let daemon = home.start();
    for lifecycle in lifecycles() {
        for (says, let_through) in [("once", true), ("deny", false)] {
            let client = connect(&daemon, says, lifecycle.clone()).await;
            let Value::Object(arguments) = json!({"a": 2, "b": 3}) else {
                unreachable!()
            };
            let request = CallToolRequestParams::new("mail__add").with_arguments(arguments);
            let result = client.call_tool(request).await;
            let what = format!("{lifecycle:?} {says}: {result:?}");
            match (let_through, result) {
                (true, Ok(result)) => {
                    let text = result.content.first().and_then(|block| block.as_text());
                    assert_eq!(text.unwrap().text, "5", "{what}");
                }
                (false, Err(error)) => {
                    let told =
                        "rmcp-client may not call add of \"mail\": somebody was asked, and said no";
                    assert!(error.to_string().contains(told), "{what}");
                }
                _ => panic!("{what}"),
            }
            assert_eq!(
                *client.service().asked.lock().unwrap(),
                ["Let rmcp-client call add of \"mail\"?\nArguments: {\"a\":2,\"b\":3}"],
                "{what}"
            );
            client.cancel().await.unwrap();
        }
    }
}
