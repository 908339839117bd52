//! Instruments the modules that an application loads with a tool.

use crate::tool::{Output, ToolSession};
use flipwave_cuda::{KernelLaunch, LaunchDriver, MemoryMap};
use flipwave_device::{Completion, DeviceError, ModuleId, kernel_matches};
use flipwave_machine::{Execution, Limited, Machine, Progress, Unobserved};
use flipwave_ptx::{Origin, Ptx};
use flipwave_ptx_hooks::PtxHookCompiler;
use flipwave_ptx_sim::PtxGpu;
use flipwave_tools::{
    DispatchColumns, DispatchFacts, InstrumentedModule, Options, PtxTool, RunningRecords,
    ToolError, refusal_reasons, refused_sites, uncounted_dispatch,
};
use std::collections::HashMap;
use std::sync::Arc;

/// Number of wave instructions after which the records of a running launch are taken.
const ATTENDED_SLICE: u64 = 1 << 12;

/// LaunchDriver that runs kernels with the hooks of a tool, and writes its table.
pub struct ToolDriver {
    tool: PtxTool,
    options: Options,
    output: Arc<Output>,
    /// Modules that a launch has needed, by device and number; `None` for those that cannot be instrumented.
    modules: HashMap<(usize, u32), Option<InstrumentedModule>>,
    current: Current,
}

/// The current launch.
enum Current {
    /// The tool does not see the launch.
    Unwanted,
    /// The original code runs, because the tool has chosen it.
    Original(DispatchFacts),
    /// The original code runs, because it cannot be instrumented.
    NotCounted,
    /// The instrumented code runs.
    Instrumented(DispatchFacts, RunningRecords),
}

impl ToolDriver {
    /// Starts the tool of a session.
    ///
    /// # Errors
    /// A message, if the tool does not compile or its table cannot be written.
    pub fn new(session: &ToolSession, targets: &[Ptx]) -> Result<ToolDriver, String> {
        let target = targets.first().ok_or("the session has no GPU")?;
        let (file, options) = (session.read_tool()?, session.options.clone());
        let tool = PtxTool::start(&file, &options, &PtxHookCompiler::default(), target);
        let tool = tool.map_err(|error| error.to_string())?;
        let output = Arc::new(Output::new(session)?);
        output.finish_at_exit()?;
        Ok(ToolDriver {
            tool,
            options,
            output,
            modules: HashMap::new(),
            current: Current::Unwanted,
        })
    }

    fn wants(&self, kernel: &str) -> bool {
        self.options.kernel.as_ref().is_none_or(|pattern| kernel_matches(kernel, pattern))
    }

    /// Instruments a module, unless it is.
    fn instrument(&mut self, gpu: &mut PtxGpu, launch: &KernelLaunch) {
        let original = launch.dispatch.module;
        let key = (launch.device, original.0);
        if self.modules.contains_key(&key) {
            return;
        }
        let program = gpu.program(original).map(|program| Arc::clone(&program.module));
        let missing = ToolError::NoCode { dispatch: launch.number as usize, module: original.0 };
        let instrumented = program.ok_or(missing).and_then(|module| {
            InstrumentedModule::load(gpu, original, &module, &self.tool, &self.options, None)
        });
        let module = match instrumented {
            Ok(module) => {
                let refused = module.refused();
                if !refused.is_empty() {
                    let what = format!("{} sites", refused_sites(refused));
                    self.output.not_counted(what, refusal_reasons(refused));
                }
                Some(module)
            }
            Err(reason) => {
                let kernel = &launch.dispatch.kernel;
                let remark = format!("not counted: kernel {kernel}: {reason}");
                self.output.not_counted(format!("kernel {kernel}"), [remark]);
                None
            }
        };
        self.modules.insert(key, module);
    }

    fn instrumented(&self, launch: &KernelLaunch) -> Option<&InstrumentedModule> {
        self.modules.get(&(launch.device, launch.dispatch.module.0))?.as_ref()
    }
}

impl LaunchDriver for ToolDriver {
    fn begin(
        &mut self,
        _: &PtxGpu,
        _: &MemoryMap,
        launch: &KernelLaunch,
    ) -> Result<(), DeviceError> {
        self.output.dispatched(&launch.dispatch.kernel);
        Ok(())
    }

    fn module(&mut self, gpu: &mut PtxGpu, launch: &KernelLaunch) -> Result<ModuleId, DeviceError> {
        let (kernel, original) = (&launch.dispatch.kernel, launch.dispatch.module);
        self.current = Current::Unwanted;
        if !self.wants(kernel) {
            return Ok(original);
        }
        let facts = DispatchFacts {
            number: launch.number,
            kernel: kernel.clone(),
            grid: launch.dispatch.grid,
            workgroup: launch.dispatch.workgroup,
            launch: self.tool.tool.count_launch(kernel),
        };
        match self.tool.tool.chooses(&facts) {
            Ok(true) => {}
            Ok(false) => {
                self.current = Current::Original(facts);
                return Ok(original);
            }
            Err(reason) => {
                self.output.not_counted(format!("kernel {kernel}"), [reason.to_string()]);
                self.current = Current::NotCounted;
                return Ok(original);
            }
        }
        self.instrument(gpu, launch);
        let Some(module) = self.instrumented(launch) else {
            self.current = Current::NotCounted;
            return Ok(original);
        };
        let (records, module) = (module.begin(gpu, &self.tool, facts.number)?, module.module());
        self.current = Current::Instrumented(facts, records);
        Ok(module)
    }

    fn advance(
        &mut self,
        gpu: &mut PtxGpu,
        execution: &mut Execution,
        until: u64,
    ) -> Result<Progress, DeviceError> {
        let Current::Instrumented(_, records) = &mut self.current else {
            return gpu.advance(execution, &mut Unobserved, until);
        };
        loop {
            let slice = until.min(execution.wave_instructions().saturating_add(ATTENDED_SLICE));
            let progress = gpu.advance(execution, &mut Unobserved, slice)?;
            records.take(gpu)?;
            if slice == until || matches!(progress, Progress::Ended(_)) {
                return Ok(progress);
            }
        }
    }

    fn end(
        &mut self,
        gpu: &PtxGpu,
        _: &MemoryMap,
        launch: &KernelLaunch,
        completion: &Completion,
    ) -> Result<(), DeviceError> {
        let (number, kernel) = (launch.number as usize, &*launch.dispatch.kernel);
        let columns = DispatchColumns { dispatch: number, kernel };
        let current = std::mem::replace(&mut self.current, Current::Unwanted);
        if let Completion::Faulted(fault) = completion {
            let origin = self.instrumented(launch).and_then(|module| module.origin(fault.place.pc));
            let runs_hooks = matches!(current, Current::Instrumented(..));
            if runs_hooks && matches!(origin, Some(Origin::Before | Origin::After)) {
                let tool = &self.tool.tool.file().name;
                self.output.remark(format!("dispatch {number}: the fault is in a hook of {tool}"));
            }
            return Ok(());
        }
        let tool = &self.tool.tool;
        match current {
            Current::Unwanted => {}
            Current::Original(facts) => {
                self.output.table(tool, columns, tool.rows(&facts, None));
            }
            Current::NotCounted => {
                self.output.rows(columns, &tool.columns(), &[], &[uncounted_dispatch(tool)]);
            }
            Current::Instrumented(facts, records) => {
                if let Some(module) = self.instrumented(launch) {
                    let found = module.rows(gpu, &self.tool, &facts, records);
                    self.output.table(tool, columns, found);
                }
            }
        }
        Ok(())
    }

    fn unload(&mut self, device: usize, gpu: &mut PtxGpu, module: ModuleId) {
        if let Some(Some(module)) = self.modules.remove(&(device, module.0)) {
            module.free(gpu);
        }
    }
}
