//! Lists the tools of the machine and calls one. Needs a running `nexusd`; without a config it
//! serves the demo that is called here.

use nexus_client::{CallEvent, Error, Nexus};
use serde_json::json;
use std::time::Duration;

#[tokio::main(flavor = "current_thread")]
#[expect(clippy::print_stdout, reason = "an example talks to its reader")]
async fn main() -> Result<(), Error> {
    let nexus = Nexus::connect().await?;

    let list = nexus.tools().list().await?;
    for tool in &list.tools {
        let description = tool.description().unwrap_or_default();
        println!("{:24} {description}", tool.dotted());
    }
    for server in &list.missing {
        println!("{:24} not available: {}", server.server, server.message);
    }

    let sum = nexus
        .tools()
        .call("demo.add", json!({"a": 2, "b": 3}))
        .timeout(Duration::from_secs(10))
        .await?;
    println!("2 + 3 = {}", sum.text());

    // A tool that takes its time tells how far it has come.
    let mut call = nexus
        .tools()
        .call_stream("demo.slow_operation", json!({}))
        .await?;
    while let Some(event) = call.next().await {
        match event? {
            CallEvent::Progress(progress) => println!("… {}", progress.progress),
            CallEvent::Result(result) => println!("{}", result.text()),
            _ => {}
        }
    }
    Ok(())
}
