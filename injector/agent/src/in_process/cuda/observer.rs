//! Observes kernels inside the simulated GPU, which executes the original code, for the table of a shipped tool.

use crate::tool::{Output, ToolSession};
use flipwave_cuda::{KernelLaunch, LaunchDriver, MemoryMap};
use flipwave_device::{Completion, DeviceError, kernel_matches};
use flipwave_machine::{Execution, Machine, Progress, Unobserved};
use flipwave_ptx_sim::PtxGpu;
use flipwave_tools::{DispatchColumns, Options, PtxObservation};
use std::sync::Arc;

/// LaunchDriver that executes launches with the observer of a tool.
pub struct ObserverDriver {
    tool: String,
    options: Options,
    output: Arc<Output>,
    /// The observer of the current launch; `None` if its kernel is not observed.
    observer: Option<PtxObservation>,
}

impl ObserverDriver {
    /// Creates the driver for the tool of a session.
    ///
    /// # Errors
    /// A message, if the tool needs hooks or its table cannot be written.
    pub fn new(session: &ToolSession) -> Result<ObserverDriver, String> {
        let tool = session.shipped.clone().filter(|name| ToolSession::is_observed(name));
        let tool = tool.ok_or("this tool needs hooks")?;
        let output = Arc::new(Output::new(session)?);
        output.finish_at_exit()?;
        Ok(ObserverDriver { tool, options: session.options.clone(), output, observer: None })
    }
}

impl LaunchDriver for ObserverDriver {
    fn begin(
        &mut self,
        gpu: &PtxGpu,
        _: &MemoryMap,
        launch: &KernelLaunch,
    ) -> Result<(), DeviceError> {
        let kernel = &launch.dispatch.kernel;
        self.output.dispatched(kernel);
        let Options { kernel: wanted, records, .. } = &self.options;
        let is_wanted = wanted.as_ref().is_none_or(|pattern| kernel_matches(kernel, pattern));
        let program = gpu.program(launch.dispatch.module).filter(|_| is_wanted);
        self.observer =
            program.and_then(|program| PtxObservation::new(&self.tool, program, kernel, *records));
        Ok(())
    }

    fn advance(
        &mut self,
        gpu: &mut PtxGpu,
        execution: &mut Execution,
        until: u64,
    ) -> Result<Progress, DeviceError> {
        match &mut self.observer {
            Some(observer) => gpu.advance(execution, observer, until),
            None => gpu.advance(execution, &mut Unobserved, until),
        }
    }

    fn end(
        &mut self,
        _: &PtxGpu,
        _: &MemoryMap,
        launch: &KernelLaunch,
        _: &Completion,
    ) -> Result<(), DeviceError> {
        if let Some(observer) = self.observer.take() {
            let kernel = &launch.dispatch.kernel;
            self.output.lost(launch.number, kernel, observer.lost());
            let columns = DispatchColumns { dispatch: launch.number as usize, kernel };
            self.output.rows(columns, &observer.columns(), &observer.rows(), &[]);
        }
        Ok(())
    }
}
