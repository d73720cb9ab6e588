//! Keeps one server process alive: a pure machine decides, an actor carries out.

mod actor;
mod diagnose;
pub mod health;
mod instance;
pub mod limiter;
pub mod lists;
pub mod log;
pub mod machine;
pub mod restart;
mod running;
pub mod status;

pub use instance::{Common, Instance, InstanceSpec};
pub use running::Target;
