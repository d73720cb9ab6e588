//! `nexusctl completions`.

use super::Context;
use crate::{cli::Cli, exit::Error};
use clap::CommandFactory as _;
use clap_complete::Shell;

pub(crate) fn run(context: &Context, shell: Shell) -> Result<(), Error> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "nexusctl", &mut script);
    context.output.data(&String::from_utf8_lossy(&script))
}
