//! `flipwave exec`.

use crate::Failure;
use crate::arguments::ExecArguments;
use flipwave_attach::{Library, Session, become_application};
use flipwave_hooks::hook::cache_folder;

pub fn exec(arguments: &ExecArguments) -> Result<(), Failure> {
    let library = Library::find(&cache_folder())?;
    let session = Session::new(&arguments.gpu, arguments.gpus);
    let reason = become_application(&arguments.command, &library.environment(&session));
    let program = arguments.command.first().map(|program| program.display().to_string());
    Err(Failure::Application { program: program.unwrap_or_default(), reason })
}
