//! `flipwave tool`.

use crate::campaign;
use crate::exec::{cannot_start, run_files};
use crate::failure::Failure;
use crate::output::{self, say};
use crate::process_files::merge_tables;
use crate::tool_arguments::{ByArgument, PerArgument, PlacementArgument, ToolArguments, ToolName};
use clap::ValueEnum;
use flipwave_agent::{
    Event, Library, ProcessEvent, Processes, Session, StopPolicy, Task, ToolPath, ToolSession,
    end_as, read_report, run_application,
};
use flipwave_campaigns::CampaignError;
use flipwave_device::kernel_matches;
use flipwave_hooks::hook::HookCompiler;
use flipwave_hooks::layout::Placement;
use flipwave_host::cache::cache_folder;
use flipwave_host::output::{printable, printable_lines};
use flipwave_tools::{
    AddressDivergence, BankConflicts, BranchDivergence, DispatchColumns, Header, InstructionCount,
    KernelClock, Measurement, MemoryTrace, OpcodeHistogram, Options, Per, Tool, ToolError,
    csv_lines, refusal_reasons, refused_sites,
};
use nix::sys::signal::Signal;
use std::collections::BTreeSet;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;

pub fn tool(arguments: &ToolArguments) -> Result<(), Failure> {
    let Some(file) = &arguments.file else { return on_application(arguments) };
    match arguments.name {
        ToolName::InstructionCount => on_campaign::<InstructionCount>(arguments, file),
        ToolName::OpcodeHistogram => on_campaign::<OpcodeHistogram>(arguments, file),
        ToolName::MemoryTrace => on_campaign::<MemoryTrace>(arguments, file),
        ToolName::AddressDivergence => on_campaign::<AddressDivergence>(arguments, file),
        ToolName::BranchDivergence => on_campaign::<BranchDivergence>(arguments, file),
        ToolName::BankConflicts => on_campaign::<BankConflicts>(arguments, file),
        ToolName::KernelClock => on_campaign::<KernelClock>(arguments, file),
    }
}

/// The options of the tool.
fn options(arguments: &ToolArguments) -> Options {
    Options {
        kernel: arguments.kernel.clone(),
        per: match arguments.per {
            PerArgument::Block => Per::Block,
            PerArgument::Instruction => Per::Instruction,
        },
        records: arguments.records,
        placement: arguments.placement.map(|placement| match placement {
            PlacementArgument::Inline => Placement::Inline,
            PlacementArgument::Trampoline => Placement::Trampoline,
        }),
    }
}

/// Runs an application whose kernels are instrumented or observed by a tool.
fn on_application(arguments: &ToolArguments) -> Result<(), Failure> {
    let name = flipwave_agent::ToolName::from(arguments.name);
    if arguments.by == ByArgument::Embedded && !name.is_observed() {
        let value = arguments.name.to_possible_value();
        let tool = value.map(|value| value.get_name().to_owned()).unwrap_or_default();
        return Err(Failure::NeedsHooks { tool });
    }
    if arguments.by != ByArgument::Embedded {
        // Checked here, because errors in the application are harder to understand.
        HookCompiler::find()
            .map_err(|error| CampaignError::from(Box::new(ToolError::from(error))))?;
    }
    let files = run_files()?;
    let out = arguments.out.as_deref().map(std::path::absolute).transpose()?;
    let out = out.unwrap_or_else(|| files.table());
    let tool = ToolSession {
        name,
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
    // `end_as` may end this process by a signal, which would leave the files behind.
    drop(files);
    match end_as(status) {
        0 if not_counted.is_empty() => Ok(()),
        0 => Err(Failure::IncompleteTable { what: not_counted.join(", ") }),
        code => Err(Failure::Exited(code)),
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

impl From<ToolName> for flipwave_agent::ToolName {
    fn from(name: ToolName) -> flipwave_agent::ToolName {
        match name {
            ToolName::InstructionCount => flipwave_agent::ToolName::InstructionCount,
            ToolName::OpcodeHistogram => flipwave_agent::ToolName::OpcodeHistogram,
            ToolName::MemoryTrace => flipwave_agent::ToolName::MemoryTrace,
            ToolName::AddressDivergence => flipwave_agent::ToolName::AddressDivergence,
            ToolName::BranchDivergence => flipwave_agent::ToolName::BranchDivergence,
            ToolName::BankConflicts => flipwave_agent::ToolName::BankConflicts,
            ToolName::KernelClock => flipwave_agent::ToolName::KernelClock,
        }
    }
}

/// Runs a campaign's program once, instrumented with a tool.
fn on_campaign<T: Tool>(arguments: &ToolArguments, file: &Path) -> Result<(), Failure> {
    let campaign = campaign::read(file, &arguments.variant, arguments.seed)?;
    let options = options(arguments);
    let measurement = flipwave_campaigns::measure::<T>(&campaign, &options)?;
    print_uncounted(&measurement);
    let file = arguments.out.as_deref().unwrap_or(Path::new("standard output"));
    let write = || -> Result<(), csv::Error> {
        match &arguments.out {
            Some(file) => write::<T>(&measurement, flipwave_host::output::stream(file)?),
            None => write::<T>(&measurement, output::raw_stdout()),
        }
    };
    write().map_err(|reason| Failure::Table { file: file.to_owned(), reason })?;
    let reports = measurement.instrumented.iter().map(|code| &code.rewritten.report);
    match reports.map(|report| refused_sites(&report.refused)).sum() {
        0 => Ok(()),
        sites => Err(Failure::IncompleteTable { what: format!("{sites} sites") }),
    }
}

/// Writes the table of a measurement as CSV.
fn write<T: Tool>(
    measurement: &Measurement<T::Row>,
    mut output: impl Write,
) -> Result<(), csv::Error> {
    let mut header = Header::Written;
    for table in &measurement.tables {
        let columns = DispatchColumns { dispatch: table.dispatch, kernel: &table.kernel };
        let lines = csv_lines::<T>(columns, &table.rows, &table.not_counted, header)?;
        if !lines.is_empty() {
            header = Header::Omitted;
        }
        output.write_all(&lines)?;
    }
    Ok(output.flush()?)
}

/// Prints the number of lost records and the reasons for refused hooks.
fn print_uncounted<R>(measurement: &Measurement<R>) {
    for table in measurement.tables.iter().filter(|table| table.lost > 0) {
        say(format!(
            "dispatch {} (kernel `{}`): {} records lost because the buffer was full; increase --records",
            table.dispatch,
            printable(&table.kernel),
            table.lost
        ));
    }
    for code in &measurement.instrumented {
        refusal_reasons(&code.rewritten.report.refused).into_iter().for_each(say);
    }
}
