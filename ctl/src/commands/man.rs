//! `nexusctl man`.

use super::Context;
use crate::{cli::Cli, exit::Error};
use clap::CommandFactory as _;
use std::path::PathBuf;

pub(crate) fn run(context: &Context, dir: Option<PathBuf>) -> Result<(), Error> {
    let Some(dir) = dir else {
        let mut page = Vec::new();
        clap_mangen::Man::new(Cli::command()).render(&mut page)?;
        return context.output.data(&String::from_utf8_lossy(&page));
    };
    clap_mangen::generate_to(Cli::command(), &dir).map_err(|source| Error::Io {
        attempt: format!("cannot write the man pages to {}", dir.display()),
        source,
    })
}
