//! Instruments the modules of a list of dispatches with a tool and runs them.

use super::PtxReplacer;
use super::module::{InstrumentedModule, PtxDevice};
use super::request::PtxTool;
use crate::measure::complete;
use crate::{DispatchFacts, DispatchTable, Measurement, Options, ToolError, ToolFile};
use flipwave_device::{Completion, DeviceError, DeviceFault, Dispatch, WaveLocation};
use flipwave_ptx::{Origin, Ptx};
use flipwave_ptx_hooks::PtxHookCompiler;
use std::collections::BTreeMap;

/// Executes dispatches on a GPU that it has.
pub trait PtxRunner {
    /// The GPU.
    type Device: PtxDevice;

    /// The target of its code.
    fn target(&self) -> &Ptx;

    /// The GPU.
    fn device(&mut self) -> &mut Self::Device;

    /// Executes a dispatch, and calls `between` again and again meanwhile.
    ///
    /// # Errors
    /// [`DeviceError`], also those of `between`.
    fn dispatch(
        &mut self,
        dispatch: &Dispatch,
        between: &mut dyn FnMut(&mut Self::Device) -> Result<(), DeviceError>,
    ) -> Result<Completion, DeviceError>;
}

/// Instruments the modules of `dispatches` with a tool, loads them in addition to the original ones, and runs the
/// dispatches. See [`measure`](crate::measure()). `replacer` replaces emulated instructions, which the tool sees as
/// single instructions.
///
/// # Errors
/// [`ToolError`].
pub fn measure_ptx<R: PtxRunner>(
    runner: &mut R,
    dispatches: &[Dispatch],
    file: &ToolFile,
    options: &Options,
    compiler: &PtxHookCompiler,
    replacer: Option<&dyn PtxReplacer>,
) -> Result<Measurement, ToolError> {
    options.check_kernel(dispatches)?;
    let tool = PtxTool::start(file, options, compiler, &runner.target().clone())?;
    let mut modules: BTreeMap<u32, InstrumentedModule> = BTreeMap::new();
    let mut tables = Vec::new();
    for (index, dispatch) in dispatches.iter().enumerate() {
        let facts = options.wants(dispatch).then(|| tool.tool.dispatch_facts(index, dispatch));
        let is_chosen = match &facts {
            Some(facts) => tool.tool.chooses(facts)?,
            None => false,
        };
        let Some(facts) = facts.as_ref().filter(|_| is_chosen) else {
            let end = runner.dispatch(dispatch, &mut |_| Ok(()))?;
            let statistics = complete(index, dispatch, end)?;
            let rows = facts.map(|facts| tool.tool.rows(&facts, None)).transpose()?;
            tables.extend(rows.map(|found| DispatchTable::new(index, dispatch, found, statistics)));
            continue;
        };
        let original = dispatch.module;
        let module = match modules.remove(&original.0) {
            Some(module) => module,
            None => {
                let module = original.0;
                let code = runner.device().module(original);
                let code = code.ok_or(ToolError::NoCode { dispatch: index, module })?;
                let device = runner.device();
                InstrumentedModule::load(device, original, &code, &tool, options, replacer)?
            }
        };
        tables.push(run(runner, &module, &tool, dispatch, facts)?);
        modules.insert(original.0, module);
    }
    let refused = modules.into_values().map(|module| module.refused().to_vec()).collect();
    Ok(Measurement { columns: tool.tool.columns(), tables, instrumented: Vec::new(), refused })
}

/// Runs a dispatch and builds its table.
fn run<R: PtxRunner>(
    runner: &mut R,
    module: &InstrumentedModule,
    tool: &PtxTool,
    dispatch: &Dispatch,
    facts: &DispatchFacts,
) -> Result<DispatchTable, ToolError> {
    let mut records = module.begin(runner.device(), tool, facts.number)?;
    let instrumented = Dispatch { module: module.module(), ..dispatch.clone() };
    let end = runner.dispatch(&instrumented, &mut |device| records.take(device))?;
    let index = facts.number as usize;
    if let Completion::Faulted(fault) = end {
        return Err(failure(module, tool, index, dispatch, fault));
    }
    let statistics = complete(index, dispatch, end)?;
    let found = module.rows(runner.device(), tool, facts, records)?;
    Ok(DispatchTable::new(index, dispatch, found, statistics))
}

/// The error for a fault, with its location in the original code.
fn failure(
    module: &InstrumentedModule,
    tool: &PtxTool,
    index: usize,
    dispatch: &Dispatch,
    fault: DeviceFault,
) -> ToolError {
    let is_in_hook = module.origin(fault.place.pc).is_some_and(Origin::is_inserted);
    let fault = fault.map_locations(|location| {
        let pc = module.original(location.pc).unwrap_or(location.pc);
        WaveLocation { pc, ..location }
    });
    let kernel = dispatch.kernel.clone();
    if is_in_hook {
        let (name, fault) = (tool.tool.file().name.clone(), Box::new(fault));
        ToolError::PtxHookFaulted { dispatch: index, kernel, name, fault }
    } else {
        ToolError::Faulted { dispatch: index, kernel, fault }
    }
}
