//! `alhena completions` and `alhena man`, made from the command definitions.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::CommandFactory;

use super::Cli;
use crate::command_error::{CommandError, Done};

/// Print completions for a shell.
///
/// For example: `alhena completions bash > ~/.local/share/bash-completion/completions/alhena`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The shell.
    shell: clap_complete::Shell,
}

/// Print the manual page, or write one page per command into a directory.
#[derive(Debug, clap::Args)]
pub struct ManArgs {
    /// Write alhena.1, alhena-run.1 and the others into this directory.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

pub fn execute(args: Args) -> Done {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "alhena", &mut text);
    Ok(write(&text))
}

pub fn man(args: ManArgs) -> Done {
    let refused = |error| CommandError::failed(error, "Give a directory that can be written to.");
    if let Some(dir) = args.dir {
        let written =
            std::fs::create_dir_all(&dir).and_then(|()| clap_mangen::generate_to(Cli::command(), &dir));
        return written.map(|()| ExitCode::SUCCESS).map_err(refused);
    }
    let mut text = Vec::new();
    clap_mangen::Man::new(Cli::command()).render(&mut text).map_err(refused)?;
    Ok(write(&text))
}

fn write(text: &[u8]) -> ExitCode {
    crate::output::written(crate::output::write(|out| out.write_all(text)))
}
