//! The capture file of this process.

use super::identity::{self, Identity};
use super::reporting::{fail, output_file};
use crate::session::Session;
use flipwave_capture::Writer;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// Returns the writer, once.
type TakeWriter = Box<dyn FnMut() -> Option<Writer> + Send>;

/// The process ID and the recording to finish when the process exits.
static RECORDING: Mutex<Option<(u32, TakeWriter)>> = Mutex::new(None);

extern "C" fn finish() {
    let recording = RECORDING.lock().unwrap_or_else(PoisonError::into_inner).take();
    // A forked process has a copy, but must not finish the recording.
    let recording = recording.filter(|(process, _)| *process == std::process::id());
    let Some((_, mut take)) = recording else { return };
    if let Some(Err(error)) = take().map(Writer::finish) {
        fail(&error.to_string());
    }
}

/// Creates the capture file of this process, for the application `command`.
///
/// # Errors
/// A message, if the session has several GPUs and selects none, or the file cannot be created.
pub fn create(file: &Path, session: &Session, command: &str) -> Result<Writer, String> {
    let gpu = &session.gpus[session.single_gpu("capture a run")?];
    let file = output_file(file)?;
    // The application's command belongs to its first process.
    let identity = Identity::of_process();
    let process_command = (!identity.is_first()).then(identity::command);
    let command = process_command.as_deref().unwrap_or(command);
    let writer = Writer::create(&file, gpu, command).map_err(|e| e.to_string())?;
    if let Some(rank) = identity.path.rank {
        writer.set_rank(rank).map_err(|e| e.to_string())?;
    }
    Ok(writer)
}

/// Finishes the capture when the process exits.
pub fn finish_at_exit(take: impl FnMut() -> Option<Writer> + Send + 'static) {
    let current = (std::process::id(), Box::new(take) as TakeWriter);
    let previous = RECORDING.lock().unwrap_or_else(PoisonError::into_inner).replace(current);
    if previous.is_none() {
        // SAFETY: registers an exit handler.
        unsafe { libc::atexit(finish) };
    }
}
