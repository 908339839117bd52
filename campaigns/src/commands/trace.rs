//! `flipwave trace`: traces the propagation of a fault through a campaign's program.

use crate::error::CampaignError;
use crate::file::campaign::Campaign;
use crate::golden::golden;
use crate::program::prepare::Prepared;
use crate::program::{prepare_emulated, site_in};
use crate::results::folder::FolderError;
use crate::run::process_site::ProcessSite;
use flipwave_analysis::{PropagationRow, Workgroup, propagation_svg};
use flipwave_arch::RegisterId;
use flipwave_host::output::FormulaEscaper;
use flipwave_injector::{Spread, Step, Trace, TraceEnding, TraceEvent, What, trace as trace_fault};
use std::collections::BTreeMap;
use std::path::Path;

/// The propagation of a fault through a campaign's program.
#[derive(Clone, Debug, PartialEq)]
pub struct Traced {
    /// Name of the campaign.
    pub name: String,
    /// Text of the fault site.
    pub site: String,
    /// The trace.
    pub trace: Trace,
    /// Kernel of each dispatch.
    pub kernels: Vec<String>,
    /// Name of each output.
    pub outputs: Vec<String>,
    /// Names that the code declares for the registers of events, by dispatch, address and register.
    names: BTreeMap<(u32, u64, RegisterId), String>,
}

/// Executes a campaign's program with a fault at `site` in lockstep with the golden run.
///
/// # Errors
/// [`CampaignError`] if the program cannot be assembled, the golden run does not complete, the run
/// never reaches the site, or the program has proxy instructions.
pub fn trace(campaign: &Campaign, site: impl Into<ProcessSite>) -> Result<Traced, CampaignError> {
    let prepared = prepare_emulated(campaign)?;
    let site = &site_in(campaign, &prepared, site.into())?;
    let Prepared { workload, formats, .. } = prepared;
    let limits = golden(campaign, &workload, &formats)?.instruction_limits();
    let trace = campaign
        .unless_cancelled(trace_fault(&workload, site, &limits).map_err(Into::into))
        .map_err(|error: CampaignError| error.at_declared_register(&workload, site))?;
    let text = workload.site_text(site);
    let mut names = BTreeMap::new();
    for event in &trace.events {
        let Step { dispatch, pc, .. } = event.step;
        if let Some(register) = event.what.register()
            && let Some(name) = workload.register_name(dispatch, pc, register)
        {
            names.insert((dispatch, pc.0, register), name);
        }
    }
    let kernels = workload.program.dispatches.into_iter().map(|dispatch| dispatch.kernel).collect();
    let outputs = workload.program.outputs.into_iter().map(|output| output.name).collect();
    Ok(Traced { name: campaign.name.clone(), site: text, trace, kernels, outputs, names })
}

impl Traced {
    /// Name of a register at an event, as the code declares it.
    pub fn register_name(&self, step: &Step, register: RegisterId) -> String {
        let known = self.names.get(&(step.dispatch, step.pc.0, register));
        known.cloned().unwrap_or_else(|| register.to_string())
    }

    /// The differences over time: a row for each event and each change of the numbers, and a last
    /// row for the end of the run.
    pub fn rows(&self) -> Vec<PropagationRow> {
        let Trace { events, samples, time, .. } = &self.trace;
        let is_event = |time: u64| events.iter().any(|event| event.step.time == time);
        let samples = samples.iter().filter(|sample| !is_event(sample.step.time));
        let mut rows: Vec<PropagationRow> =
            samples.map(|sample| row(&sample.step, sample.spread, "")).collect();
        let event_row =
            |event: &TraceEvent| row(&event.step, event.spread, event_name(&event.what));
        rows.extend(events.iter().map(event_row));
        // The sort is stable: rows with the same time keep their order.
        rows.sort_by_key(|row| row.time);
        let last = rows.last().cloned().unwrap_or_default();
        let (dispatch, pc) = match &self.trace.ending {
            TraceEnding::Faulted { dispatch, fault } => (Some(*dispatch), Some(fault.place.pc.0)),
            _ => (None, None),
        };
        let (opcode, event) = (String::new(), ending_name(&self.trace.ending).to_owned());
        let (workgroup, wave) = (None, None);
        // The trace ends when no difference is left.
        let is_dead = self.trace.ending == TraceEnding::Died;
        rows.push(PropagationRow {
            time: if is_dead { last.time } else { *time },
            dispatch,
            workgroup,
            wave,
            pc,
            opcode,
            event,
            ..last
        });
        rows
    }

    /// Writes `trace.csv` and `trace.svg` to a folder. Creates the folder if necessary.
    ///
    /// # Errors
    /// [`CampaignError::Folder`].
    pub fn write(&self, folder: &Path) -> Result<(), CampaignError> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |reason| FolderError::Access { path, reason }
        };
        std::fs::create_dir_all(folder).map_err(failed(folder))?;
        let rows = self.rows();
        let file = folder.join("trace.csv");
        let write = || -> Result<(), csv::Error> {
            let mut writer = csv::Writer::from_writer(FormulaEscaper::new(
                flipwave_host::output::create(&file)?,
            ));
            rows.iter().try_for_each(|row| writer.serialize(row))?;
            Ok(writer.flush()?)
        };
        write().map_err(|error| failed(&file)(std::io::Error::other(error)))?;
        let file = folder.join("trace.svg");
        let title = format!("{}: a fault and what it made wrong", self.name);
        let svg = propagation_svg(&rows, &title, &self.site);
        flipwave_host::output::replace(&file, svg.as_bytes()).map_err(failed(&file))?;
        Ok(())
    }
}

fn row(step: &Step, spread: Spread, event: &str) -> PropagationRow {
    PropagationRow {
        time: step.time,
        dispatch: Some(step.dispatch),
        workgroup: Some(Workgroup(step.wave.workgroup)),
        wave: Some(step.wave.wave),
        pc: Some(step.pc.0),
        opcode: step.operation.name().to_owned(),
        wrong_words: spread.words,
        wrong_registers: spread.registers,
        wrong_lanes: spread.lanes,
        wrong_waves: spread.waves,
        waves_on_other_path: spread.waves_on_other_path,
        wrong_workgroups: spread.workgroups,
        wrong_lds_bytes: spread.lds_bytes,
        wrong_memory_bytes: spread.memory_bytes,
        wrong_scratch_bytes: spread.scratch_bytes,
        event: event.to_owned(),
    }
}

/// Name of an event in the table.
fn event_name(what: &What) -> &'static str {
    match what {
        What::Fault(_) => "fault",
        What::Value(_) => "value",
        What::Masked => "masked",
        What::Wave => "wave",
        What::Lds(_) => "lds",
        What::Path { .. } => "path",
        What::Escape { .. } => "escape",
        What::Missing(_) => "missing",
        What::Output { .. } => "output",
        What::Gone(_) => "gone",
    }
}

/// Name of an ending in the table.
fn ending_name(ending: &TraceEnding) -> &'static str {
    match ending {
        TraceEnding::Died => "died",
        TraceEnding::Contained { .. } => "contained",
        TraceEnding::Escaped(_) => "escaped",
        TraceEnding::Faulted { .. } => "faulted",
    }
}
