//! Whole files, as people have them, and as they break them.

#![allow(clippy::unwrap_used)]

mod agents;
mod corpus;
mod diagnoses;
mod docs;
mod property;
mod pure;
