//! `flipwave tool`: measures a campaign's program with a tool.

use crate::error::CampaignError;
use crate::file::campaign::{Campaign, CampaignWorkload};
use crate::golden::golden;
use crate::platform::amdgpu;
use crate::program::cancellable::CancellableDevice;
use crate::program::prepare::{Prepared, prepare};
use flipwave_emulator::Emulator;
use flipwave_hooks::hook::HookCompiler;
use flipwave_tools::{Measurement, Options, Replacer, Tool, ToolError, measure_with};

/// Executes the golden run of a campaign with a tool in its kernels. The tool sees an emulated
/// instruction as a single instruction.
///
/// # Errors
/// [`CampaignError`] if the program cannot be assembled or does not complete, if the tool cannot be
/// inserted, or if the campaign was cancelled.
pub fn measure<T: Tool>(
    campaign: &Campaign,
    options: &Options,
) -> Result<Measurement<T::Row>, CampaignError> {
    if let CampaignWorkload::Application(application) = &campaign.workload {
        return Err(CampaignError::ToolOnApplication {
            command: application.command.to_string(),
            directory: application.directory.clone(),
        });
    }
    let Prepared { workload, formats, .. } = prepare(campaign)?;
    // Proxy instructions compute other results than the emulated ones, so the golden run would be
    // wrong.
    let instructions = campaign.instructions();
    if instructions.is_empty() {
        golden(campaign, &workload, &formats)?;
    }
    let gpu = amdgpu(&workload.device)?;
    let mut device = gpu.clone();
    let mut device =
        CancellableDevice { device: &mut device, cancellation: &campaign.cancellation };
    let compiler = HookCompiler::find().map_err(|error| Box::new(ToolError::Hook(error)))?;
    let code_of = |module| gpu.code_object(module);
    let emulator = Emulator { instructions, compiler: &compiler };
    let replacer = (!instructions.is_empty()).then_some(&emulator as &dyn Replacer);
    let dispatches = &workload.program.dispatches;
    let measurement =
        measure_with::<T, _>(&mut device, code_of, dispatches, options, &compiler, replacer);
    campaign.unless_cancelled(measurement.map_err(|error| Box::new(error).into()))
}
