//! The pool as one MCP server: what any MCP client talks to, in either era.
//!
//! A client is a stream of messages and a way back. Its requests run side by side, each in a task of its
//! own, and are answered in the era that they were asked in.

mod answer;
mod builtin;
mod client;
mod lists;
mod message;
mod methods;
mod params;
mod questions;
mod rounds;
mod splice;
mod subscribe;
mod view;

pub use client::{Client, Introduction, Present, not_a_message};
pub use message::{Kind, Message, Out, WeakOut};
pub use params::Says;
pub use rounds::Rounds;
