//! `flipwave capture`.

mod list;

use crate::arguments::CaptureArguments;
use crate::exec::{cannot_start, run_files};
use crate::failure::Failure;
use crate::output::say;
use crate::process_files::{numbered_files, place_captures};
use flipwave_agent::{
    Library, Processes, Session, StopPolicy, Task, exit_code, read_report, run_application,
};
use flipwave_capture::Capture;
use flipwave_host::cache::cache_folder;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

pub fn capture(arguments: &CaptureArguments) -> Result<(), Failure> {
    match &arguments.list {
        Some(file) => list::list(file, arguments.maps),
        None => record(arguments),
    }
}

fn record(arguments: &CaptureArguments) -> Result<(), Failure> {
    let file = match &arguments.out {
        Some(file) => file.clone(),
        None => default_file(arguments),
    };
    let file = prepare(&file, arguments.force).map_err(|reason| Failure::File {
        file: file.display().to_string(),
        reason: reason.to_string(),
    })?;
    let words: Vec<String> =
        arguments.command.iter().map(|word| word.display().to_string()).collect();
    // The application may run in a different folder.
    let task = Task::Capture { file: std::path::absolute(&file)?, command: words.join(" ") };
    let library = Library::find(&cache_folder())?;
    let files = run_files()?;
    let session = Session {
        task,
        report: Some(files.report()),
        processes: Some(files.processes()),
        ..Session::new(vec![arguments.gpu.clone()])
    };
    let environment = library.environment(&session)?;
    let policy = StopPolicy::KillAfterGrace;
    let status = run_application(&arguments.command, &environment, &files, policy, || {})
        .map_err(|reason| cannot_start(&arguments.command, reason))?;
    let processes = Processes::from_events(&read_report(&files.report())?);
    let placed = place_captures(&processes, &file)?;
    if placed.is_empty() {
        let name = file.display();
        say(format!("flipwave: the application did not use a GPU; {name} was not written"));
    }
    for file in &placed {
        let capture = Capture::open(file)?;
        let count = capture.dispatches()?.len();
        let end = if capture.is_complete()? { "" } else { " (the application was terminated)" };
        say(format!("flipwave: {count} dispatches recorded in {}{end}", file.display()));
    }
    if processes.are_several() {
        say(&processes);
    }
    match exit_code(status) {
        0 => Ok(()),
        code => Err(Failure::Exited(code)),
    }
}

/// Checks, before the application runs, that a file can be created, and removes existing captures if
/// `force` is set. Returns the file, with symbolic links resolved.
fn prepare(file: &Path, force: bool) -> io::Result<PathBuf> {
    flipwave_host::output::check(file)?;
    let folder = file.parent().filter(|folder| *folder != Path::new(""));
    if let Some(folder) = folder.filter(|folder| !folder.exists()) {
        let reason = format!("the folder {} does not exist; create it first", folder.display());
        return Err(io::Error::new(ErrorKind::NotFound, reason));
    }
    let mut file = file.to_owned();
    if file.exists() {
        if !force {
            return Err(io::Error::other("the file exists; use --force to replace it"));
        }
        file = file.canonicalize()?;
        flipwave_host::output::remove(&file)?;
    }
    // An earlier run of an application with several processes wrote numbered files.
    for numbered in numbered_files(&file)? {
        if !force {
            let reason = format!("{} exists; use --force to replace it", numbered.display());
            return Err(io::Error::other(reason));
        }
        flipwave_host::output::remove(&numbered)?;
    }
    // The agent creates the file when the application opens its GPU.
    File::create_new(&file)?;
    flipwave_host::output::remove(&file)?;
    Ok(file)
}

/// The default file, named after the application.
fn default_file(arguments: &CaptureArguments) -> PathBuf {
    let program = arguments.command.first().map(Path::new).and_then(Path::file_name);
    let mut name = program.unwrap_or_default().to_owned();
    name.push(".capture");
    name.into()
}
