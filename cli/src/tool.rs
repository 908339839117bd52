//! `flipwave tool`.

use crate::exec::{cannot_start, run_files};
use crate::output::{self, say};
use crate::process_files::merge_tables;
use crate::tool_arguments::{ByArgument, PerArgument, PlacementArgument, ToolArguments, ToolName};
use crate::{Failure, campaign};
use clap::ValueEnum;
use flipwave_agent::{
    Event, Library, ProcessEvent, Processes, Session, StopPolicy, Task, ToolPath, ToolSession,
    end_as, read_report, run_application,
};
use flipwave_campaigns::CampaignError;
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

/// What the tool is asked for.
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

/// Runs an application with a tool in its kernels.
fn on_application(arguments: &ToolArguments) -> Result<(), Failure> {
    let name = flipwave_agent::ToolName::from(arguments.name);
    if arguments.by == ByArgument::Embedded && !name.is_observed() {
        let value = arguments.name.to_possible_value();
        let tool = value.map(|value| value.get_name().to_owned()).unwrap_or_default();
        return Err(Failure::NeedsHooks { tool });
    }
    if arguments.by != ByArgument::Embedded {
        // Said here rather than in the application.
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
    let status = run_application(
        &arguments.command,
        &environment,
        &files,
        StopPolicy::KillAfterGrace,
        || {},
    )
    .map_err(|reason| cannot_start(&arguments.command, reason))?;
    let reported = read_report(&files.report())?;
    let processes = Processes::from_events(&reported);
    let failed =
        |reason: std::io::Error| Failure::Table { file: out.clone(), reason: reason.into() };
    merge_tables(&processes, &out).map_err(failed)?;
    let is_kept = arguments.out.is_none() && out.exists();
    if is_kept {
        let table = flipwave_host::input::read(&out, flipwave_host::input::BINARY)?;
        let text = String::from_utf8_lossy(&table);
        // Nobody is left to hear of failures.
        _ = std::io::stderr().lock().write_all(printable_lines(&text).as_bytes());
    }
    say_remarks(&reported, arguments.kernel.as_deref());
    if processes.are_several() {
        say(&processes);
    }
    if let Some(signal) = status.signal() {
        let table = match &arguments.out {
            Some(file) => format!("the table in {} may lack its last dispatches", file.display()),
            None if is_kept => "the table may lack its last dispatches".to_owned(),
            None => "there is no table".to_owned(),
        };
        say(format_args!(
            "flipwave: the application was ended by {}: {table}",
            signal_name(signal)
        ));
    }
    let not_counted: Vec<&str> = reported
        .iter()
        .filter_map(|ProcessEvent { event, .. }| match event {
            Event::NotCounted { what } => Some(what.as_str()),
            _ => None,
        })
        .collect();
    // The signal that may end this process now does not remove them.
    drop(files);
    match end_as(status) {
        0 if not_counted.is_empty() => Ok(()),
        0 => Err(Failure::NotCounted { what: not_counted.join(", ") }),
        code => Err(Failure::Ended(code)),
    }
}

/// Prints what the tool has to say beside its table. `wanted` is the only kernel that it looks at.
fn say_remarks(reported: &[ProcessEvent], wanted: Option<&str>) {
    let (mut remarks, mut kernels) = (BTreeSet::new(), BTreeSet::new());
    for ProcessEvent { event, .. } in reported {
        match event {
            Event::Remark { text } => drop(remarks.insert(text.as_str())),
            Event::Kernel { name } => drop(kernels.insert(name.as_str())),
            _ => {}
        }
    }
    for remark in remarks {
        say(format_args!("flipwave: {remark}"));
    }
    if let Some(wanted) = wanted.filter(|wanted| !kernels.contains(wanted)) {
        let dispatched = Vec::from_iter(kernels).join(", ");
        say(format_args!(
            "flipwave: kernel `{wanted}` is not dispatched; dispatched are: {dispatched}"
        ));
    }
}

fn signal_name(number: i32) -> String {
    Signal::try_from(number).map_or_else(|_| format!("signal {number}"), |own| own.to_string())
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

fn on_campaign<T: Tool>(arguments: &ToolArguments, file: &Path) -> Result<(), Failure> {
    let campaign = campaign::read(file, &arguments.variant, arguments.seed)?;
    let options = options(arguments);
    let found = flipwave_campaigns::measure::<T>(&campaign, &options)?;
    say_what_is_missing(&found);
    let file = arguments.out.as_deref().unwrap_or(Path::new("standard output"));
    let write = || -> Result<(), csv::Error> {
        match &arguments.out {
            Some(file) => write::<T>(&found, flipwave_host::output::stream(file)?),
            None => write::<T>(&found, output::raw_stdout()),
        }
    };
    write().map_err(|reason| Failure::Table { file: file.to_owned(), reason })?;
    let refused = found.instrumented.iter().map(|own| &own.rewritten.report.refused);
    match refused.map(|own| refused_sites(own)).sum() {
        0 => Ok(()),
        sites => Err(Failure::NotCounted { what: format!("{sites} sites") }),
    }
}

fn write<T: Tool>(found: &Measurement<T::Row>, mut output: impl Write) -> Result<(), csv::Error> {
    let mut header = Header::Written;
    for table in &found.tables {
        let of = DispatchColumns { dispatch: table.dispatch, kernel: &table.kernel };
        let lines = csv_lines::<T>(of, &table.rows, &table.not_counted, header)?;
        if !lines.is_empty() {
            header = Header::Omitted;
        }
        output.write_all(&lines)?;
    }
    Ok(output.flush()?)
}

fn say_what_is_missing<R>(found: &Measurement<R>) {
    for table in found.tables.iter().filter(|table| table.lost > 0) {
        say(format!(
            "dispatch {} (kernel `{}`): {} records found no place; --records makes more room",
            table.dispatch,
            printable(&table.kernel),
            table.lost
        ));
    }
    for own in &found.instrumented {
        refusal_reasons(&own.rewritten.report.refused).into_iter().for_each(say);
    }
}
