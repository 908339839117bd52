//! Tools by a look into the embedded GPU, which executes code as it is: what hooks are held
//! against.

use super::output::Output;
use super::{ToolName, ToolSession};
use flipwave_codeobj::CodeObject;
use flipwave_device::{Completion, DeviceError};
use flipwave_hooks::flow::Disassembly;
use flipwave_kfd::{DispatchDriver, DispatchedKernel, KernelDispatch, Machine};
use flipwave_sim::{EmbeddedGpu, Execution, Progress, Unobserved};
use flipwave_tools::{
    InstructionCount, MemoryTrace, ObservableTool, OpcodeHistogram, Options, ToolScope,
};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, OnceLock};

/// What [`at_exit`] writes.
static OUTPUT: OnceLock<Arc<Output>> = OnceLock::new();

/// What runs the dispatches of a session, whose tool looks at them.
///
/// # Errors
/// In words, if the tool needs hooks or its table cannot be written.
pub fn observing(session: &ToolSession) -> Result<Box<dyn DispatchDriver>, String> {
    Ok(match session.name {
        ToolName::InstructionCount => Box::new(Observing::<InstructionCount>::new(session)?),
        ToolName::OpcodeHistogram => Box::new(Observing::<OpcodeHistogram>::new(session)?),
        ToolName::MemoryTrace => Box::new(Observing::<MemoryTrace>::new(session)?),
        ToolName::AddressDivergence
        | ToolName::BranchDivergence
        | ToolName::BankConflicts
        | ToolName::KernelClock => return Err("this tool has no table without hooks".to_owned()),
    })
}

/// Runs dispatches and looks at them.
struct Observing<T: ObservableTool> {
    options: Options,
    output: Arc<Output>,
    /// Sees the dispatch under way, if it is one that the tool looks at.
    observer: Option<T::Observer>,
    /// By where the code object is in memory, which the list keeps there, and by kernel, with what the
    /// kernel may call.
    programs: HashMap<(usize, Arc<str>), (Arc<CodeObject>, Disassembly)>,
}

impl<T: ObservableTool> Observing<T> {
    fn new(session: &ToolSession) -> Result<Observing<T>, String> {
        let output = Arc::new(Output::new(session)?);
        // SAFETY: registers a function of this library, which stays loaded.
        if OUTPUT.set(Arc::clone(&output)).is_ok() && unsafe { libc::atexit(at_exit) } != 0 {
            return Err("the table cannot be written at the end of the application".to_owned());
        }
        let options = session.options.clone();
        Ok(Observing { options, output, observer: None, programs: HashMap::new() })
    }

    fn rows(
        &mut self,
        kernel: &DispatchedKernel,
        seen: &T::Observer,
    ) -> Result<Vec<T::Row>, String> {
        let object = &kernel.code_object;
        let place = (Arc::as_ptr(object) as usize, Arc::clone(&kernel.name));
        let (_, program) = match self.programs.entry(place) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => {
                let index = object.kernels().iter().position(|own| own.name == kernel.name);
                let index = index.ok_or_else(|| format!("no kernel `{}`", kernel.name))?;
                let program = Disassembly::of_kernel(object, index);
                let program = program.map_err(|reason| reason.to_string())?;
                place.insert((Arc::clone(object), program))
            }
        };
        Ok(T::observed_rows(&ToolScope::new(object, program, Some(&kernel.name)), seen))
    }
}

impl<T: ObservableTool> DispatchDriver for Observing<T> {
    fn begin(&mut self, _: &Machine, dispatch: &KernelDispatch) -> Result<(), DeviceError> {
        let wanted = self.options.kernel.as_deref();
        let is_wanted = |kernel: &DispatchedKernel| wanted.is_none_or(|own| *own == *kernel.name);
        if let Some(kernel) = &dispatch.kernel {
            self.output.dispatched(&kernel.name);
        }
        let is_observed = dispatch.kernel.as_ref().is_some_and(is_wanted);
        self.observer = is_observed.then(|| T::observer(&self.options));
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
        if let (Some(kernel), Some(seen)) = (&dispatch.kernel, self.observer.take()) {
            let DispatchedKernel { number, name, .. } = kernel;
            self.output.lost(*number, name, T::lost_observations(&seen));
            match self.rows(kernel, &seen) {
                Ok(rows) => self.output.rows::<T>(*number, name, &rows, &[]),
                Err(reason) => {
                    self.output.marked::<T>(*number, name);
                    let remark = format!("not counted: dispatch {number}: {reason}");
                    self.output.not_counted(format!("kernel {name}"), [remark]);
                }
            }
        }
        Ok(())
    }
}

extern "C" fn at_exit() {
    if let Some(output) = OUTPUT.get() {
        output.finish();
    }
}
