//! Executions counted inside of the embedded GPU, in code as it is: what hooks are held against.

use super::ToolSession;
use super::output::Output;
use flipwave_codeobj::CodeObject;
use flipwave_device::{Completion, DeviceError, WaveId};
use flipwave_hooks::flow::Program;
use flipwave_hooks::tools::{Executions, Place, Scope};
use flipwave_isa::{Inst, Pc};
use flipwave_kfd::{DispatchedKernel, Driver, KernelDispatch, Machine};
use flipwave_sim::{EmbeddedGpu, Executed, Execution, Observer, Progress, Watch, WaveState};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, OnceLock};

/// What [`at_exit`] writes.
static OUTPUT: OnceLock<Arc<Output>> = OnceLock::new();

/// Runs dispatches and counts.
pub struct Counting {
    kernel: Option<String>,
    output: Arc<Output>,
    counts: Counts,
    /// By where the code object is in memory, which the list keeps there.
    programs: HashMap<usize, (Arc<CodeObject>, Program)>,
}

#[derive(Default)]
struct Counts(HashMap<Pc, u64>);

impl Observer for Counts {
    fn watches(&mut self, _: WaveId) -> bool {
        true
    }

    fn before(&mut self, inst: &Inst, _: WaveId, _: &mut WaveState<'_>) {
        *self.0.entry(inst.pc).or_default() += 1;
    }

    fn after(&mut self, _: &Executed<'_>, _: &mut WaveState<'_>) -> Watch {
        Watch::On
    }
}

impl Counting {
    /// Counts for a session, whose tool counts instructions.
    ///
    /// # Errors
    /// In words, if the table cannot be written.
    pub fn new(session: &ToolSession) -> Result<Counting, String> {
        let output = Arc::new(Output::new(session)?);
        // SAFETY: registers a function of this library, which stays loaded.
        if OUTPUT.set(Arc::clone(&output)).is_ok() && unsafe { libc::atexit(at_exit) } != 0 {
            return Err("the table cannot be written at the end of the application".to_owned());
        }
        let kernel = session.options.kernel.clone();
        Ok(Counting { kernel, output, counts: Counts::default(), programs: HashMap::new() })
    }

    fn rows(&mut self, kernel: &str, object: &Arc<CodeObject>) -> Result<Vec<Row>, String> {
        let (_, program) = match self.programs.entry(Arc::as_ptr(object) as usize) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => {
                let program = Program::read(object).map_err(|reason| reason.to_string())?;
                place.insert((Arc::clone(object), program))
            }
        };
        let scope = Scope::new(object, program, Some(kernel));
        let row = |at| {
            let place = scope.place(at)?;
            let executions = self.counts.0.get(&place.pc).copied().unwrap_or(0);
            Some((place, Executions { executions }))
        };
        Ok(scope.all().into_iter().filter_map(row).collect())
    }
}

/// A row of the table.
type Row = (Place, Executions);

impl Driver for Counting {
    fn advance(
        &mut self,
        gpu: &mut EmbeddedGpu,
        execution: &mut Execution,
        until: u64,
    ) -> Result<Progress, DeviceError> {
        gpu.advance(execution, &mut self.counts, until)
    }

    fn end(
        &mut self,
        _: &Machine,
        _: &EmbeddedGpu,
        dispatch: &KernelDispatch,
        _: &Completion,
    ) -> Result<(), DeviceError> {
        if let Some(DispatchedKernel { number, name, code_object, .. }) = &dispatch.kernel {
            self.output.dispatched(name);
            if self.kernel.as_deref().is_none_or(|own| own == &**name) {
                match self.rows(name, code_object) {
                    Ok(rows) => self.output.rows(*number, name, &rows),
                    Err(reason) => self.output.remark(format!("dispatch {number}: {reason}")),
                }
            }
        }
        self.counts.0.clear();
        Ok(())
    }
}

extern "C" fn at_exit() {
    if let Some(output) = OUTPUT.get() {
        output.finish();
    }
}
