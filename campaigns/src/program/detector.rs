//! Detectors: tools whose hooks check the program, and report faults that they find.

use crate::file::element::ElementType;
use crate::outputs::compare::{OutputFormat, OutputRole};
use crate::platform::{CampaignTarget, DetectorCounter};
use crate::program::error::{DetectorError, PrepareError};
use flipwave_device::ModuleId;
use flipwave_injector::{Buffer, Workload};
use flipwave_tools::{DispatchFacts, ToolFile};
use std::collections::BTreeMap;

/// Upper bound of instructions executed per instruction of the program.
const MAX_COST: u64 = 1000;

/// Inserts the hooks of a detector into the code that a workload dispatches, and returns the formats of its
/// counters, which become the last outputs. Fault sites and locations remain those of the original code.
///
/// # Errors
/// [`PrepareError`] if the tool fails, or a hook cannot be inserted.
pub(super) fn insert(
    file: &ToolFile,
    target: &CampaignTarget,
    workload: &mut Workload,
) -> Result<Vec<OutputFormat>, PrepareError> {
    let method = target.tools()?.detector(file, workload)?;
    let tool = method.tool();
    if tool.detectors().next().is_none() {
        return Err(DetectorError::NoDetector { file: file.name.clone() }.into());
    }
    let mut versions: BTreeMap<u32, ModuleId> = BTreeMap::new();
    let mut formats = Vec::new();
    for (number, dispatch) in (0..).zip(&mut workload.program.dispatches) {
        let facts = DispatchFacts {
            number,
            kernel: dispatch.kernel.clone(),
            grid: dispatch.grid,
            workgroup: dispatch.workgroup,
            launch: tool.count_launch(&dispatch.kernel),
        };
        if !tool.chooses(&facts).map_err(DetectorError::Tool)? {
            continue;
        }
        let module = match versions.get(&dispatch.module.0) {
            Some(module) => *module,
            None => {
                let loaded = method.load(&mut workload.device, dispatch.module)?;
                for DetectorCounter { name, address, bytes } in loaded.counters {
                    formats.push(OutputFormat {
                        element: ElementType::U64,
                        role: OutputRole::Detector(name.clone()),
                        extents: None,
                    });
                    workload.program.outputs.push(Buffer { name, address, bytes });
                }
                versions.insert(dispatch.module.0, loaded.module);
                loaded.module
            }
        };
        dispatch.module = module;
        // The limit is for the original program.
        dispatch.instruction_limit = dispatch.instruction_limit.saturating_mul(MAX_COST);
    }
    Ok(formats)
}
