//! Observes kernels inside the embedded GPU, which executes the original code.

use super::ToolSession;
use super::output::Output;
use flipwave_codeobj::CodeObject;
use flipwave_device::{Completion, DeviceError, kernel_matches};
use flipwave_hooks::flow::Disassembly;
use flipwave_kfd::{DispatchDriver, DispatchedKernel, KernelDispatch, Machine};
use flipwave_sim::{EmbeddedGpu, Execution, Progress, Unobserved};
use flipwave_tools::{
    Cell, DispatchColumns, InstructionCount, MemoryTrace, ObservableTool, OpcodeHistogram, Options,
    Row, ToolScope,
};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

/// Creates the drivers of `gpus` GPUs for the tool of a session.
///
/// # Errors
/// A message, if the tool needs hooks or its table cannot be written.
pub fn observer_drivers(
    session: &ToolSession,
    gpus: usize,
) -> Result<Vec<Box<dyn DispatchDriver>>, String> {
    match session.shipped.as_deref() {
        Some(InstructionCount::NAME) => drivers::<InstructionCount>(session, gpus),
        Some(OpcodeHistogram::NAME) => drivers::<OpcodeHistogram>(session, gpus),
        Some(MemoryTrace::NAME) => drivers::<MemoryTrace>(session, gpus),
        _ => Err("this tool needs hooks".to_owned()),
    }
}

/// Creates drivers that share one table.
fn drivers<T: ObservableTool + 'static>(
    session: &ToolSession,
    gpus: usize,
) -> Result<Vec<Box<dyn DispatchDriver>>, String>
where
    T::Observer: Send,
{
    let output = Arc::new(Output::new(session)?);
    output.finish_at_exit()?;
    let driver = |_| -> Box<dyn DispatchDriver> {
        Box::new(ObserverDriver::<T>::new(session, Arc::clone(&output)))
    };
    Ok((0..gpus).map(driver).collect())
}

/// DispatchDriver that executes dispatches with the observer of a tool.
struct ObserverDriver<T: ObservableTool> {
    options: Options,
    output: Arc<Output>,
    /// The observer of the current dispatch; `None` if its kernel is not observed.
    observer: Option<T::Observer>,
    /// The code of observed kernels, including the functions that they may call, by kernel and by the
    /// address of the code object in this process; the `Arc` keeps the address valid.
    programs: HashMap<(usize, Arc<str>), (Arc<CodeObject>, Disassembly)>,
}

impl<T: ObservableTool> ObserverDriver<T> {
    fn new(session: &ToolSession, output: Arc<Output>) -> ObserverDriver<T> {
        let options = session.options.clone();
        ObserverDriver { options, output, observer: None, programs: HashMap::new() }
    }

    /// Builds the rows of an observed dispatch.
    fn rows(
        &mut self,
        kernel: &DispatchedKernel,
        observer: &T::Observer,
    ) -> Result<Vec<Row>, String> {
        let object = &kernel.code_object;
        let key = (Arc::as_ptr(object) as usize, Arc::clone(&kernel.name));
        let (_, program) = match self.programs.entry(key) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => {
                let mut names = object.kernels().iter().map(|kernel| &kernel.name);
                let index = names.position(|name| *name == kernel.name);
                let index = index.ok_or_else(|| format!("no kernel `{}`", kernel.name))?;
                let program = Disassembly::of_kernel(object, index);
                let program = program.map_err(|reason| reason.to_string())?;
                entry.insert((Arc::clone(object), program))
            }
        };
        let scope = ToolScope::new(object, program, Some(&kernel.name));
        Ok(T::observed_rows(&scope, observer))
    }
}

impl<T: ObservableTool> DispatchDriver for ObserverDriver<T> {
    fn begin(&mut self, _: &Machine, dispatch: &KernelDispatch) -> Result<(), DeviceError> {
        let wanted = self.options.kernel.as_deref();
        let is_wanted = |kernel: &DispatchedKernel| {
            wanted.is_none_or(|pattern| kernel_matches(&kernel.name, pattern))
        };
        if let Some(kernel) = &dispatch.kernel {
            self.output.dispatched(&kernel.name);
        }
        let is_observed = dispatch.kernel.as_ref().is_some_and(is_wanted);
        self.observer = is_observed.then(|| T::observer(self.options.records));
        Ok(())
    }

    fn advance(
        &mut self,
        gpu: &mut EmbeddedGpu,
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
        _: &Machine,
        _: &EmbeddedGpu,
        dispatch: &KernelDispatch,
        _: &Completion,
    ) -> Result<(), DeviceError> {
        if let (Some(kernel), Some(observer)) = (&dispatch.kernel, self.observer.take()) {
            let DispatchedKernel { number, name, .. } = kernel;
            self.output.lost(*number, name, T::lost_observations(&observer));
            let columns: Vec<String> = T::COLUMNS.iter().map(|name| (*name).to_owned()).collect();
            let dispatch = DispatchColumns { dispatch: *number as usize, kernel: name };
            match self.rows(kernel, &observer) {
                Ok(rows) => self.output.rows(dispatch, &columns, &rows, &[]),
                Err(reason) => {
                    let unknown = vec![Cell::NotCounted; columns.len()];
                    self.output.rows(dispatch, &columns, &[], &[unknown]);
                    let remark = format!("not counted: dispatch {number}: {reason}");
                    self.output.not_counted(format!("kernel {name}"), [remark]);
                }
            }
        }
        Ok(())
    }
}
