//! Compiles the protos with `protox`, so that a machine with nothing but Rust can build.

use prost::Message as _;
use std::{env, error::Error, fs, path::PathBuf};

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=nexus");
    let descriptors = protox::compile(
        [
            "nexus/v1/servers.proto",
            "nexus/v1/tools.proto",
            "nexus/v1/resources.proto",
            "nexus/v1/prompts.proto",
            "nexus/v1/agents.proto",
            "nexus/v1/policy.proto",
            "nexus/v1/daemon.proto",
        ],
        ["."],
    )?;
    let out = PathBuf::from(env::var("OUT_DIR")?);
    fs::write(out.join("nexus.v1.bin"), descriptors.encode_to_vec())?;
    tonic_prost_build::configure()
        // JSON payloads are slices of the buffer they arrived in, never copies.
        .bytes(".nexus.v1")
        .boxed(".nexus.v1.PolicyWatchResponse.change.asked")
        .compile_fds(descriptors)?;
    Ok(())
}
