//! The name that somebody probably meant. Pure.

pub use nexus_config::nearest::nearest;
