//! `flipwave tool`.

use crate::campaign;
use crate::exec::{cannot_start, run_files};
use crate::failure::Failure;
use crate::output::{self, say};
use crate::process_files::merge_tables;
use crate::tool_arguments::{ByArgument, PlacementArgument, ToolArguments};
use flipwave_agent::{
    Event, Library, ProcessEvent, Processes, Session, StopPolicy, Task, ToolPath, ToolSession,
    end_as, read_report, run_application,
};
use flipwave_analysis::{TableError, csv_to_parquet};
use flipwave_campaigns::CampaignError;
use flipwave_device::{demangled_kernel, kernel_matches};
use flipwave_hooks::hook::HookCompiler;
use flipwave_hooks::layout::Placement;
use flipwave_host::cache::cache_folder;
use flipwave_host::output::{printable, printable_lines};
use flipwave_isa::Target;
use flipwave_ptx::Ptx;
use flipwave_ptx_hooks::PtxHookCompiler;
use flipwave_tools::{
    DispatchColumns, Measurement, NOT_COUNTED, Options, PtxTool, Tool, ToolError, ToolFile,
    csv_header, csv_lines, refusal_reasons, refused_sites,
};
use nix::sys::signal::Signal;
use std::collections::BTreeSet;
use std::io::{BufReader, BufWriter, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;

pub fn tool(arguments: &ToolArguments) -> Result<(), Failure> {
    let (tool, shipped) = arguments.tool_file().map_err(tool_failure)?;
    match &arguments.file {
        Some(file) => on_campaign(arguments, &tool, file),
        None => on_application(arguments, &tool, shipped),
    }
}

fn tool_failure(error: ToolError) -> Failure {
    CampaignError::from(Box::new(error)).into()
}

/// The options of the tool.
fn options(arguments: &ToolArguments) -> Options {
    Options {
        kernel: arguments.kernel.clone(),
        records: arguments.records,
        placement: arguments.placement.map(|placement| match placement {
            PlacementArgument::Inline => Placement::Inline,
            PlacementArgument::Trampoline => Placement::Trampoline,
        }),
    }
}

/// Runs an application whose kernels are instrumented or observed by a tool.
fn on_application(
    arguments: &ToolArguments,
    file: &ToolFile,
    shipped: Option<String>,
) -> Result<(), Failure> {
    if let Some(gpu) = arguments.gpus.ptx().filter(|_| arguments.by == ByArgument::Hardware) {
        return Err(Failure::AmdHardware { gpu: gpu.to_owned() });
    }
    if arguments.by == ByArgument::Embedded {
        if !shipped.as_deref().is_some_and(ToolSession::is_observed) {
            return Err(Failure::NeedsHooks { tool: arguments.tool.display().to_string() });
        }
    } else {
        // Checked here, because errors in the application are harder to understand.
        check_tool(arguments, file).map_err(tool_failure)?;
    }
    let files = run_files()?;
    let out = arguments.out.as_deref().map(std::path::absolute).transpose()?;
    let parquet = out.clone().filter(|out| is_parquet(out));
    let out = out.filter(|_| parquet.is_none()).unwrap_or_else(|| files.table());
    let written = ToolSession::write_tool(&files.tool(), file);
    written.map_err(|reason| Failure::File {
        file: files.tool().display().to_string(),
        reason: reason.to_string(),
    })?;
    let tool = ToolSession {
        file: files.tool(),
        shipped,
        options: options(arguments),
        by: match arguments.by {
            ByArgument::Hook => ToolPath::Hook,
            ByArgument::Embedded => ToolPath::Embedded,
            ByArgument::Hardware => ToolPath::Hardware,
        },
        out: out.clone(),
    };
    let session = Session {
        task: Task::Tool(tool),
        report: Some(files.report()),
        processes: Some(files.processes()),
        ..Session::new(arguments.gpus.all())
    };
    let library = Library::find(&cache_folder())?;
    let environment = library.environment(&session)?;
    let policy = StopPolicy::KillAfterGrace;
    let status = run_application(&arguments.command, &environment, &files, policy, || {})
        .map_err(|reason| cannot_start(&arguments.command, reason))?;
    let events = read_report(&files.report())?;
    let processes = Processes::from_events(&events);
    let failed =
        |reason: std::io::Error| Failure::Table { file: out.clone(), reason: reason.into() };
    merge_tables(&processes, &out).map_err(failed)?;
    let is_printed = arguments.out.is_none() && out.exists();
    if is_printed {
        let table = flipwave_host::input::read(&out, flipwave_host::input::BINARY)?;
        let text = String::from_utf8_lossy(&table);
        // A failure cannot be reported anywhere else.
        _ = std::io::stderr().lock().write_all(printable_lines(&text).as_bytes());
    }
    if let Some(parquet) = parquet.filter(|_| out.exists()) {
        convert(&out, &parquet)?;
    }
    print_remarks(&events, arguments.kernel.as_deref());
    if processes.are_several() {
        say(&processes);
    }
    if let Some(signal) = status.signal() {
        let table = match &arguments.out {
            Some(file) => format!("the table in {} may lack its last dispatches", file.display()),
            None if is_printed => "the table may lack its last dispatches".to_owned(),
            None => "there is no table".to_owned(),
        };
        say(format_args!(
            "flipwave: the application was terminated by {}: {table}",
            signal_name(signal)
        ));
    }
    let not_counted: Vec<&str> = events
        .iter()
        .filter_map(|ProcessEvent { event, .. }| match event {
            Event::NotCounted { what } => Some(what.as_str()),
            _ => None,
        })
        .collect();
    // A process that has dispatched kernels and has no table did not load the tool.
    let mut unseen = processes.dispatching().filter(|(_, record)| record.output.is_none());
    let unseen = unseen.next().map(|(_, record)| record.command.clone());
    // `end_as` may end this process by a signal, which would leave the files behind.
    drop(files);
    match (end_as(status), unseen) {
        (0, Some(command)) => {
            Err(Failure::WithoutRuntime { command: printable(&command).into_owned() })
        }
        (0, None) if not_counted.is_empty() => Ok(()),
        (0, None) => Err(Failure::IncompleteTable { what: not_counted.join(", ") }),
        (code, _) => Err(Failure::Exited(code)),
    }
}

/// Prints the tool's remarks. `wanted` is the only instrumented kernel, if one was selected.
fn print_remarks(events: &[ProcessEvent], wanted: Option<&str>) {
    let (mut remarks, mut kernels) = (BTreeSet::new(), BTreeSet::new());
    for ProcessEvent { event, .. } in events {
        match event {
            Event::Remark { text } => drop(remarks.insert(text.as_str())),
            Event::Kernel { name } => drop(kernels.insert(name.as_str())),
            _ => {}
        }
    }
    for remark in remarks {
        say(format_args!("flipwave: {remark}"));
    }
    let is_dispatched =
        |pattern: &&str| kernels.iter().any(|kernel| kernel_matches(kernel, pattern));
    if let Some(wanted) = wanted.filter(|pattern| !is_dispatched(pattern)) {
        let dispatched = Vec::from_iter(kernels).join(", ");
        say(format_args!(
            "flipwave: kernel `{wanted}` was not dispatched; dispatched kernels: {dispatched}"
        ));
    }
}

fn signal_name(number: i32) -> String {
    match Signal::try_from(number) {
        Ok(signal) => signal.to_string(),
        Err(_) => format!("signal {number}"),
    }
}

/// Starts and ends a tool for the target of each GPU.
fn check_tool(arguments: &ToolArguments, file: &ToolFile) -> Result<(), ToolError> {
    for gpu in arguments.gpus.all() {
        if let Some(target) = Ptx::new(&gpu) {
            PtxTool::start(file, &options(arguments), &PtxHookCompiler::default(), &target)?;
        } else if let Ok(target) = gpu.parse::<Target>() {
            let wave_size = target.wave_sizes().first().copied().unwrap_or(64);
            Tool::start(file, &HookCompiler::find()?, &target, wave_size)?;
        }
    }
    Ok(())
}

/// Runs a campaign's program once, instrumented with a tool.
fn on_campaign(arguments: &ToolArguments, tool: &ToolFile, file: &Path) -> Result<(), Failure> {
    let campaign = campaign::read(file, &arguments.variant, arguments.seed)?;
    let options = options(arguments);
    let measurement = flipwave_campaigns::measure(&campaign, tool, &options)?;
    print_uncounted(&measurement);
    let file = arguments.out.as_deref().unwrap_or(Path::new("standard output"));
    let failed = |reason| Failure::Table { file: file.to_owned(), reason };
    match &arguments.out {
        Some(out) if is_parquet(out) => {
            let table = tempfile::NamedTempFile::new().map_err(|reason| failed(reason.into()))?;
            write(&measurement, &table).map_err(failed)?;
            convert(table.path(), out)?;
        }
        Some(out) => {
            let stream = flipwave_host::output::stream(out);
            let stream = stream.map_err(|reason| failed(reason.into()))?;
            write(&measurement, stream).map_err(failed)?;
        }
        None => write(&measurement, output::raw_stdout()).map_err(failed)?,
    }
    match measurement.refused.iter().map(|refused| refused_sites(refused)).sum() {
        0 => Ok(()),
        sites => Err(Failure::IncompleteTable { what: format!("{sites} sites") }),
    }
}

/// Returns `true` for the name of a Parquet file.
fn is_parquet(file: &Path) -> bool {
    file.extension().is_some_and(|extension| extension == "parquet")
}

/// Converts a table to Parquet.
fn convert(table: &Path, parquet: &Path) -> Result<(), Failure> {
    let convert = || -> Result<(), TableError> {
        let output = BufWriter::new(flipwave_host::output::stream(parquet)?);
        let open = || flipwave_host::input::open(table).map(BufReader::new);
        csv_to_parquet(open, NOT_COUNTED, output)
    };
    convert().map_err(|reason| Failure::ParquetTable { file: parquet.to_owned(), reason })
}

/// Writes the table of a measurement as CSV.
fn write(measurement: &Measurement, mut output: impl Write) -> Result<(), csv::Error> {
    output.write_all(&csv_header(&measurement.columns)?)?;
    for table in &measurement.tables {
        let columns = DispatchColumns { dispatch: table.dispatch, kernel: &table.kernel };
        output.write_all(&csv_lines(columns, &table.rows)?)?;
        output.write_all(&csv_lines(columns, &table.not_counted)?)?;
    }
    Ok(output.flush()?)
}

/// Prints the number of lost records and the reasons for refused hooks.
fn print_uncounted(measurement: &Measurement) {
    for table in measurement.tables.iter().filter(|table| table.lost > 0) {
        say(format!(
            "dispatch {} (kernel `{}`): {} records lost because the buffer was full; increase --records",
            table.dispatch,
            printable(&demangled_kernel(&table.kernel)),
            table.lost
        ));
    }
    for refused in &measurement.refused {
        refusal_reasons(refused).into_iter().for_each(say);
    }
}
