//! The reference servers from npm. All of them are of the legacy era.

use crate::{
    ok,
    support::{Daemon, Ends, Home, eventually, server_when, servers},
};
use nexus_client::{
    AgentInfo, CallEvent, ElicitationAnswer, LogLevel, LogOptions, Nexus, ResourceEvent, Root,
    SamplingAnswer, ServerState,
};
use serde_json::{Value, json};
use std::{
    fs,
    net::TcpListener,
    path::Path,
    process::{Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

/// Starts a daemon with these servers, and waits for them.
pub(crate) async fn start(all: &[(&str, Value)]) -> Daemon {
    let home = Home::new();
    home.configure(&servers(all));
    let daemon = home.start();
    let nexus = daemon.client().await;
    // A server of an agent's own starts when the agent calls.
    for (name, _) in all.iter().filter(|(_, it)| it.get("sharing").is_none()) {
        server_when(&nexus, name, |s| s.state == ServerState::Ready).await;
        nexus.resources().list_of(name).await.unwrap();
        nexus.resources().templates_of(name).await.unwrap();
        nexus.prompts().list_of(name).await.unwrap();
        let server = nexus.servers().get(name).await.unwrap();
        let info = server.info.unwrap();
        ok(format_args!(
            "{name} is {} {}, of {}: {} tools, {} resources, {} templates, {} prompts",
            info.name,
            info.version,
            info.protocol_version,
            server.tools,
            server.resources,
            server.resource_templates,
            server.prompts,
        ));
    }
    daemon
}

/// What a tool says.
pub(crate) async fn said(nexus: &Nexus, tool: &str, arguments: Value) -> String {
    let result = nexus.tools().call(tool, arguments).await;
    let result = result.unwrap_or_else(|error| panic!("{tool}: {error:?}"));
    assert!(!result.is_error(), "{tool}: {}", result.text());
    result.text()
}

/// An agent whose answers tell its name.
async fn agent(daemon: &Daemon, name: &'static str, root: &Path) -> Nexus {
    let info = AgentInfo::new(name)
        .roots([Root::folder(root)])
        .on_sampling(move |_| async move {
            Ok(SamplingAnswer::text("a-model", format!("{name} was asked")))
        })
        .on_elicitation(
            move |_| async move { Ok(ElicitationAnswer::accept(json!({ "name": name }))) },
        );
    let builder = Nexus::builder().socket(daemon.home.socket()).agent(info);
    builder.connect().await.unwrap()
}

/// All that it can do, in each way that it can be reached.
pub(crate) async fn everything(bin: &Path) {
    let program = bin.join("mcp-server-everything");
    whole(json!({ "command": program, "args": ["stdio"] })).await;
    for (way, path, kind) in [
        ("streamableHttp", "mcp", "http"),
        // Found out, and known.
        ("sse", "sse", "http"),
        ("sse", "sse", "sse"),
    ] {
        let (_ends, port) = serve(&program, way).await;
        ok(format_args!(
            "everything is run with {way}, and reached with the type {kind}"
        ));
        let url = format!("http://localhost:{port}/{path}");
        whole(json!({ "url": url, "type": kind })).await;
    }
}

/// Runs it as a server over HTTP.
async fn serve(program: &Path, way: &str) -> (Ends, u16) {
    // Free a moment ago; it takes no other, and tells of none.
    let port = {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap().port()
    };
    let mut command = Command::new(program);
    command.arg(way).env("PORT", port.to_string());
    let told = tempfile::NamedTempFile::new().unwrap();
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null());
    let server = Ends(quiet.stderr(told.reopen().unwrap()).spawn().unwrap());
    // Knocking at a port that is free may connect us to ourselves.
    let listens = || {
        let told = fs::read_to_string(told.path()).unwrap();
        told.contains("on port")
    };
    eventually("everything to listen", listens).await;
    (server, port)
}

async fn whole(server: Value) {
    let daemon = start(&[("everything", server)]).await;
    let root = daemon.home.path().to_owned();
    let (ada, eve) = (
        agent(&daemon, "ada", &root).await,
        agent(&daemon, "eve", &root).await,
    );
    offers(&ada).await;
    during_calls(&ada).await;

    for (name, agent) in [("ada", &ada), ("eve", &eve)] {
        let asked = json!({ "prompt": "?", "maxTokens": 10 });
        let sampled = said(agent, "everything.trigger-sampling-request", asked).await;
        assert!(sampled.contains(&format!("{name} was asked")), "{sampled}");
        let elicited = said(agent, "everything.trigger-elicitation-request", json!({})).await;
        assert!(elicited.contains(&format!("Name: {name}")), "{elicited}");
    }
    ok("everything samples and elicits, and each agent is asked in its own calls");
    let roots = said(&ada, "everything.get-roots-list", json!({})).await;
    assert!(roots.contains(root.to_str().unwrap()), "{roots}");
    ok("everything asks for roots in a call, and is given the caller's");
    subscribe(&ada).await;
    let server = ada.servers().get("everything").await.unwrap();
    assert_eq!(server.restarts, 0, "{:?}", server.last_failure);
}

async fn offers(nexus: &Nexus) {
    let sum = said(nexus, "everything.get-sum", json!({"a": 2, "b": 3})).await;
    assert!(sum.contains('5'), "{sum}");
    let weather = json!({ "location": "Chicago" });
    let structured = nexus
        .tools()
        .call("everything.get-structured-content", weather)
        .await
        .unwrap();
    assert!(structured.structured().unwrap()["temperature"].is_number());
    ok("everything.get-sum and get-structured-content answer");

    let resources = nexus.resources().list().await.unwrap().resources;
    let first = nexus
        .resources()
        .read_from("everything", &resources[0].uri)
        .await
        .unwrap();
    assert!(!first.contents().is_empty());
    let templates = nexus.resources().templates().await.unwrap().templates;
    let text = templates.iter().find(|t| t.uri_template.contains("text"));
    let template = &text.unwrap().uri_template;
    let filled = template.replace("{resourceId}", "7");
    let read = nexus
        .resources()
        .read_from("everything", &filled)
        .await
        .unwrap();
    assert!(read.text().contains('7'), "{}", read.text());
    ok(format_args!("everything: {filled} of {template} is read"));

    let prompt = nexus.prompts().get("everything.args-prompt");
    let prompt = prompt.arg("city", "Oslo").await.unwrap();
    assert!(prompt.text().contains("Oslo"), "{}", prompt.text());
    let completions = nexus.completions();
    let department = completions
        .complete_prompt("everything.completable-prompt", "department", "S")
        .await
        .unwrap();
    assert_eq!(department.values, ["Sales", "Support"]);
    let name = completions
        .complete_prompt("everything.completable-prompt", "name", "")
        .context("department", "Sales")
        .await
        .unwrap();
    assert_eq!(name.values, ["David", "Eve", "Frank"]);
    ok("everything.args-prompt is filled in, and completable-prompt completed, with context");
}

async fn during_calls(nexus: &Nexus) {
    let slow = json!({ "duration": 0.5, "steps": 5 });
    let mut events = nexus
        .tools()
        .call_stream("everything.trigger-long-running-operation", slow)
        .await
        .unwrap();
    let mut steps = Vec::new();
    while let Some(event) = events.next().await {
        if let CallEvent::Progress(step) = event.unwrap() {
            steps.push(step.progress);
        }
    }
    assert_eq!(steps, [1.0, 2.0, 3.0, 4.0, 5.0]);
    ok("everything.trigger-long-running-operation tells its five steps in order");
    nexus
        .servers()
        .set_log_level("everything", LogLevel::Debug)
        .await
        .unwrap();
    nexus.servers().ping("everything").await.unwrap();
    ok("everything is told a log level, and answers a ping");
    let follow = LogOptions::default().follow();
    let mut lines = nexus.servers().logs("everything", follow).await.unwrap();
    said(nexus, "everything.toggle-simulated-logging", json!({})).await;
    while let Some(line) = lines.next().await {
        if line.unwrap().line.contains("level message") {
            break;
        }
    }
    ok("everything logs, and its log can be followed");
}

async fn subscribe(nexus: &Nexus) {
    let uri = "demo://resource/dynamic/text/1";
    let mut events = nexus
        .resources()
        .subscribe_on("everything", uri)
        .await
        .unwrap();
    let subscribed = events.next().await.unwrap().unwrap();
    assert!(matches!(subscribed, ResourceEvent::Subscribed { .. }));
    said(nexus, "everything.toggle-subscriber-updates", json!({})).await;
    let updated = events.next().await.unwrap().unwrap();
    let (uri, maybe) = (uri.to_owned(), false);
    assert_eq!(updated, ResourceEvent::Updated { uri, maybe });
    ok("everything tells its subscriber of a change");
}

pub(crate) async fn filesystem(bin: &Path) {
    let program = bin.join("mcp-server-filesystem");
    let home = Home::new();
    let (common, own) = (home.path().join("common"), home.path().join("own"));
    for folder in [&common, &own] {
        fs::create_dir(folder).unwrap();
        fs::write(folder.join("a.txt"), "hello").unwrap();
    }
    let shared = json!({ "command": program, "args": [common] });
    let mut each = shared.clone();
    each["sharing"] = json!("per-agent");
    let daemon = start(&[("shared", shared), ("each", each)]).await;
    let nexus = agent(&daemon, "ada", &own).await;

    let file = json!({ "path": common.join("a.txt") });
    assert_eq!(said(&nexus, "shared.read_text_file", file).await, "hello");
    ok("filesystem reads a file in the folder that it is configured with");
    // It asks when it starts, outside of any call. One that all share has nobody to ask; one of an agent's own has.
    let (folder, asked) = (own.to_str().unwrap(), Arc::new(AtomicBool::new(false)));
    let looks = {
        let (nexus, asked) = (nexus.clone(), Arc::clone(&asked));
        let folder = folder.to_owned();
        tokio::spawn(async move {
            loop {
                let told = said(&nexus, "each.list_allowed_directories", json!({})).await;
                if told.contains(&folder) {
                    asked.store(true, Ordering::Relaxed);
                    return;
                }
            }
        })
    };
    eventually("the roots of its agent", || asked.load(Ordering::Relaxed)).await;
    looks.await.unwrap();
    let told = said(&nexus, "shared.list_allowed_directories", json!({})).await;
    assert!(!told.contains(folder), "{told}");
    ok("filesystem asks for roots: of an agent's own it gets the agent's, and shared nobody's");
}

pub(crate) async fn memory_and_thinking(bin: &Path) {
    let memory = json!({ "command": bin.join("mcp-server-memory") });
    let thinking = json!({ "command": bin.join("mcp-server-sequential-thinking") });
    let home = tempfile::tempdir().unwrap();
    let mut memory = memory;
    memory["env"] = json!({ "MEMORY_FILE_PATH": home.path().join("memory.jsonl") });
    let daemon = start(&[("memory", memory), ("sequential-thinking", thinking)]).await;
    let nexus = daemon.client().await;
    let ada = json!({ "name": "Ada", "entityType": "person", "observations": ["counts"] });
    said(&nexus, "memory.create_entities", json!({"entities": [ada]})).await;
    let graph = said(&nexus, "memory.read_graph", json!({})).await;
    assert!(graph.contains("Ada"), "{graph}");
    ok("memory remembers an entity");
    let thought = json!({
        "thought": "It works.", "thoughtNumber": 1, "totalThoughts": 1, "nextThoughtNeeded": false,
    });
    let told = said(&nexus, "sequential-thinking.sequentialthinking", thought).await;
    assert!(told.contains("\"thoughtNumber\": 1"), "{told}");
    ok("sequential-thinking thinks a thought");
}
