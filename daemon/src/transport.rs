//! Bytes ↔ frames: how messages get to a server and back, without a word about what they mean.

pub mod http;
pub mod lines;
pub mod outbox;
pub mod stdio;
