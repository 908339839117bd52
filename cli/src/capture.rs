//! `flipwave capture`.

use crate::arguments::CaptureArguments;
use crate::exec::{cannot_start, run_files};
use crate::failure::Failure;
use crate::output;
use crate::output::say;
use crate::process_files::{numbered_files, place_captures};
use flipwave_agent::{
    Library, Processes, Session, StopPolicy, Task, exit_code, read_report, run_application,
};
use flipwave_capture::{Capture, Step};
use flipwave_device::Change;
use flipwave_host::cache::cache_folder;
use flipwave_host::output::printable;
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

pub fn capture(arguments: &CaptureArguments) -> Result<(), Failure> {
    match &arguments.list {
        Some(file) => list(file),
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

/// Prints the contents of a capture, in recorded order.
fn list(file: &Path) -> Result<(), Failure> {
    let capture = Capture::open(file)?;
    let mut out = output::stdout();
    let state = if capture.is_complete()? { "" } else { " (the application was terminated)" };
    let rank = capture.rank()?.map(|rank| format!(", rank {rank}")).unwrap_or_default();
    let (command, gpu) = (capture.command()?, capture.gpu()?);
    writeln!(out, "{} on {}{rank}{state}", printable(&command), printable(&gpu))?;
    for (id, code) in capture.code_objects()? {
        writeln!(out, "code object {}: {} bytes at {:#x}", id.0, code.elf.len(), code.bias)?;
    }
    for step in capture.steps()? {
        match step {
            Step::Change(Change::Map { address, bytes }) => {
                writeln!(out, "map       {bytes} bytes at {address}")?;
            }
            Step::Change(Change::Unmap { address }) => writeln!(out, "unmap     {address}")?,
            Step::Change(Change::Write(patch)) => {
                let (ranges, bytes) = (patch.ranges().len(), patch.bytes().len());
                writeln!(out, "write     {bytes} bytes in {ranges} ranges")?;
            }
            Step::Change(Change::Copy { from, to, bytes }) => {
                writeln!(out, "copy      {bytes} bytes from {from} to {to}")?;
            }
            Step::Read { address, bytes } => {
                writeln!(out, "output    {} bytes at {address}", bytes.len())?;
            }
            Step::Dispatch(dispatch) => {
                let shape = |extent: [u32; 3]| extent.map(|size| size.to_string()).join(",");
                let written: u64 = dispatch.written.iter().map(|(_, bytes)| bytes).sum();
                write!(
                    out,
                    "dispatch  {} {} grid={} workgroup={} stream={} code_object={} \
                     instructions={} written={written}",
                    dispatch.number,
                    printable(&dispatch.kernel),
                    shape(dispatch.packet.grid),
                    shape(dispatch.packet.workgroup),
                    dispatch.stream,
                    dispatch.code_object.0,
                    dispatch.instructions,
                )?;
                match &dispatch.range {
                    Some(range) => writeln!(out, " range={}", printable(range))?,
                    None => writeln!(out)?,
                }
            }
        }
    }
    Ok(())
}
