//! `flipwave completions` and `flipwave manual`.

use crate::arguments::{Arguments, CompletionsArguments, ManualArguments};
use crate::failure::Failure;
use crate::output;
use clap::CommandFactory;
use std::io::Write;

/// Prints a completion script for a shell.
pub fn completions(arguments: &CompletionsArguments) -> Result<(), Failure> {
    let mut text = Vec::new();
    clap_complete::generate(arguments.shell, &mut Arguments::command(), "flipwave", &mut text);
    output::stdout().write_all(&text)?;
    Ok(())
}

/// Writes a manual page for the program and one for each command.
pub fn manual(arguments: &ManualArguments) -> Result<(), Failure> {
    let folder = &arguments.folder;
    let written = std::fs::create_dir_all(folder)
        .and_then(|()| clap_mangen::generate_to(Arguments::command(), folder));
    written.map_err(|reason| Failure::File {
        file: folder.display().to_string(),
        reason: reason.to_string(),
    })
}
