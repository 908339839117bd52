//! `flipwave tool`.

use crate::Failure;
use crate::arguments::{PerArgument, PlacementArgument, ToolArguments, ToolName};
use flipwave_campaigns::{Campaign, CampaignError};
use flipwave_hooks::layout::Placement;
use flipwave_hooks::tools::{
    AddressDivergence, BankConflicts, BranchDivergence, InstructionCount, KernelClock, Measurement,
    MemoryTrace, OpcodeHistogram, Options, Per, Tool,
};
use serde::Serialize;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

pub fn tool(arguments: &ToolArguments) -> Result<(), Failure> {
    match arguments.name {
        ToolName::InstructionCount => measure::<InstructionCount>(arguments),
        ToolName::OpcodeHistogram => measure::<OpcodeHistogram>(arguments),
        ToolName::MemoryTrace => measure::<MemoryTrace>(arguments),
        ToolName::AddressDivergence => measure::<AddressDivergence>(arguments),
        ToolName::BranchDivergence => measure::<BranchDivergence>(arguments),
        ToolName::BankConflicts => measure::<BankConflicts>(arguments),
        ToolName::KernelClock => measure::<KernelClock>(arguments),
    }
}

fn measure<T: Tool>(arguments: &ToolArguments) -> Result<(), Failure> {
    let mut campaign = Campaign::read(&arguments.file).map_err(CampaignError::from)?;
    campaign.seed = arguments.seed.unwrap_or(campaign.seed);
    let options = Options {
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
    };
    let found = flipwave_campaigns::measure::<T>(&campaign, &options)?;
    say_what_is_missing(&found);
    let output = arguments.out.as_deref().unwrap_or(Path::new("standard output"));
    let write = || -> Result<(), csv::Error> {
        match &arguments.out {
            Some(file) => write(&found, File::create(file)?),
            None => write(&found, io::stdout().lock()),
        }
    };
    write().map_err(|reason| Failure::Table { file: output.to_owned(), reason })
}

/// The columns that say which dispatch a row is of.
#[derive(Serialize)]
struct Of<'a> {
    dispatch: usize,
    kernel: &'a str,
}

fn write<R: Serialize>(found: &Measurement<R>, output: impl Write) -> Result<(), csv::Error> {
    let mut writer = csv::Writer::from_writer(output);
    for table in &found.tables {
        for row in &table.rows {
            writer.serialize((Of { dispatch: table.dispatch, kernel: &table.kernel }, row))?;
        }
    }
    Ok(writer.flush()?)
}

fn say_what_is_missing<R>(found: &Measurement<R>) {
    for table in found.tables.iter().filter(|table| table.lost > 0) {
        eprintln!(
            "dispatch {} (kernel `{}`): {} records found no place; --records makes more room",
            table.dispatch, table.kernel, table.lost
        );
    }
    for refused in found.instrumented.iter().flat_map(|own| &own.rewritten.report.refused) {
        eprintln!(
            "not counted: pc {} `{}`: {}",
            refused.pc,
            refused.instruction.trim(),
            refused.reason
        );
    }
}
