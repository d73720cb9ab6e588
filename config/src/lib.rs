//! What is configured: every spelling of MCP servers that people have, read into one model.
//!
//! From the bottom up: [`source`] is a file's text, [`syntax`] turns JSON, YAML or TOML into a tree that
//! knows where everything stands, [`read`] turns that into [`model`], [`expand`] fills in variables. All of
//! these are pure. [`layers`] knows where files are, [`belief`] which of them may be believed, [`trust`] which
//! ones somebody has looked at, [`secret`] fetches what is only referred to, and [`load()`] does it all.
//! Whatever is wrong is a [`diagnosis::Diagnosis`], which [`render`] shows to people.

pub mod belief;
pub mod diagnosis;
pub mod endpoint;
pub mod env_file;
pub mod expand;
pub mod keyring;
pub mod keys;
pub mod layers;
pub mod load;
pub mod mask;
pub mod model;
pub mod nearest;
pub mod node;
pub mod policy;
pub mod profile;
pub mod read;
pub mod remedy;
pub mod render;
pub mod resolve;
pub mod scope;
pub mod secret;
pub mod show;
pub mod source;
pub mod syntax;
pub mod trust;
pub mod write;

pub use diagnosis::{Diagnosis, Severity};
pub use load::{Loaded, load};
pub use model::{Server, Transport};
pub use profile::Profile;
pub use source::{Format, Layer, Source};
