//! `flipwave tool`: measures a campaign's program with a tool.

use crate::error::CampaignError;
use crate::file::campaign::{Campaign, CampaignWorkload};
use crate::golden::golden;
use crate::platform::ToolRun;
use crate::program::capture::prepare_checked;
use crate::program::prepare::{Prepared, prepare};
use flipwave_tools::{Measurement, Options, ToolFile};

/// Number of wave instructions, including those of hooks, after which a hook counts as endless. Hooks may
/// execute some thousand instructions per instruction of the program.
fn instruction_limit(golden_wave_instructions: u64) -> u64 {
    golden_wave_instructions.saturating_mul(5_000).saturating_add(50_000_000)
}

/// Executes the golden run of a campaign with a tool in its kernels. The tool sees an emulated
/// instruction as a single instruction.
///
/// # Errors
/// [`CampaignError`] if the program cannot be assembled or does not complete, if the tool cannot be
/// inserted, or if the campaign was cancelled.
pub fn measure(
    campaign: &Campaign,
    file: &ToolFile,
    options: &Options,
) -> Result<Measurement, CampaignError> {
    if let CampaignWorkload::Application(application) = &campaign.workload {
        return Err(CampaignError::ToolOnApplication {
            command: application.command.to_string(),
            directory: application.directory.clone(),
        });
    }
    let method = campaign.target.tools()?;
    let Prepared { workload, formats, .. } = match &campaign.workload {
        CampaignWorkload::Capture(source) => prepare_checked(campaign, source)?,
        _ => prepare(campaign)?,
    };
    // Proxy instructions compute other results than the emulated ones, so the golden run would be
    // wrong.
    let instructions = campaign.instructions();
    let mut dispatches = workload.program.dispatches.clone();
    if instructions.is_empty() {
        let golden = golden(campaign, &workload, &formats)?;
        for (dispatch, executed) in dispatches.iter_mut().zip(&golden.statistics) {
            dispatch.instruction_limit = instruction_limit(executed.wave_instructions);
        }
    }
    let run = ToolRun { workload: &workload, dispatches: &dispatches, instructions, file, options };
    campaign.unless_cancelled(method.measure(&run).map_err(CampaignError::from))
}
