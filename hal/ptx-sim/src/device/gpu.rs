//! The GPU and its modules.

use super::running::Running;
use crate::compile::Tier;
use crate::execute::Launch;
use crate::memory::Memory;
use crate::program::{Base, Inserted, Original, Program};
use flipwave_arch::Architecture;
use flipwave_device::{Address, DeviceError, Dispatch, ModuleId};
use flipwave_jit::Compiling;
use flipwave_machine::Stalls;
use flipwave_ptx::{Code, EmulatedInst, Module, Origin, Ptx, Slot, resolve};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Threads that a workgroup can have (CUDA C++ Programming Guide, "Technical Specifications per Compute
/// Capability").
const MOST_THREADS: u64 = 1024;
/// Bytes of shared memory that a workgroup can have: those of a multiprocessor (see above).
const MOST_SHARED_BYTES: u64 = 228 << 10;

/// Waves that the GPU can hold, and therefore the waves of a cooperative launch: 64 on each of 16 multiprocessors (see
/// above). Drivers may permit fewer.
const MOST_RESIDENT_WAVES: u64 = 16 * 64;

/// A loaded module.
#[derive(Clone)]
pub(super) struct Loaded {
    pub program: Arc<Program>,
    /// Its compiled code.
    pub tier: Arc<Tier>,
}

/// A simulated GPU that executes PTX.
#[derive(Clone)]
pub struct PtxGpu {
    pub(super) architecture: Arc<dyn Architecture>,
    pub(super) memory: Memory,
    pub(super) modules: Vec<Loaded>,
    pub(super) stalls: Stalls,
    pub(super) compiling: Compiling,
}

impl PtxGpu {
    /// A GPU without code.
    pub fn new(architecture: Ptx) -> PtxGpu {
        let (memory, modules, stalls) = Default::default();
        let (architecture, compiling) = (Arc::new(architecture), Compiling::of_process());
        PtxGpu { architecture, memory, modules, stalls, compiling }
    }

    /// Selects the code that is compiled to host code, which does not change results.
    pub fn set_compiling(&mut self, compiling: Compiling) {
        self.compiling = compiling;
    }

    /// Loads a module.
    ///
    /// # Errors
    /// [`DeviceError::Load`] if names are unknown, or variables are not defined in the module;
    /// [`DeviceError::OutOfMemory`].
    pub fn load(&mut self, module: &Module) -> Result<ModuleId, DeviceError> {
        self.load_with_variables(module, &BTreeMap::new())
    }

    /// Loads a module like [`PtxGpu::load`]. Variables in global memory that `placed` names have these
    /// addresses, in memory that is already accessible.
    ///
    /// # Errors
    /// See [`PtxGpu::load`].
    pub fn load_with_variables(
        &mut self,
        module: &Module,
        placed: &BTreeMap<String, Address>,
    ) -> Result<ModuleId, DeviceError> {
        if module.address_bits() != 64 {
            return Err(DeviceError::Load(
                "only modules with 64-bit addresses are supported".into(),
            ));
        }
        let code = resolve(module).map_err(|error| DeviceError::Load(error.to_string()))?;
        let program = Program::load(module, code, &mut self.memory, None, placed)?;
        Ok(self.add(program))
    }

    fn add(&mut self, program: Program) -> ModuleId {
        let tier = Arc::new(Tier::new(&program.blocks));
        self.modules.push(Loaded { program: Arc::new(program), tier });
        ModuleId(self.modules.len() as u32 - 1)
    }

    /// Loads a module with hooks, which can be executed in place of the module `original`. `origins` contains
    /// the origin of each instruction.
    ///
    /// Both share the variables of the original module, and addresses of functions are those of the original
    /// code. Observers see the original code: its instructions, addresses and registers.
    ///
    /// # Errors
    /// As [`PtxGpu::load`]; [`DeviceError::Load`] if `origins` has another length than the code.
    pub fn load_rewritten(
        &mut self,
        original: ModuleId,
        module: &Module,
        origins: &[Origin],
        inserted: Inserted,
    ) -> Result<ModuleId, DeviceError> {
        self.load_emulating(original, module, origins, inserted, &BTreeMap::new())
    }

    /// Loads a module like [`PtxGpu::load_rewritten`], in which hooks replace emulated instructions. `emulated`
    /// contains the instructions that observers see, by number in the code of `original`. An emulated
    /// instruction counts as one.
    ///
    /// # Errors
    /// See [`PtxGpu::load_rewritten`].
    pub fn load_emulating(
        &mut self,
        original: ModuleId,
        module: &Module,
        origins: &[Origin],
        inserted: Inserted,
        emulated: &BTreeMap<usize, EmulatedInst>,
    ) -> Result<ModuleId, DeviceError> {
        let code = resolve(module).map_err(|error| DeviceError::Load(error.to_string()))?;
        let (expected, found) = (code.instructions.len(), origins.len());
        if expected != found {
            let reason =
                format!("{found} origins; expected one for each of {expected} instructions");
            return Err(DeviceError::Load(reason));
        }
        let known = self.modules.get(original.0 as usize).cloned();
        let known = known.ok_or_else(|| DeviceError::Internal("an unknown module".into()))?;
        let known = known.program;
        let blocks = &known.blocks;
        let inside = (0..known.steps.len()).map(|number| blocks.is_inside(number)).collect();
        let mut seen = Arc::clone(&known.code);
        for (number, inst) in emulated {
            Arc::make_mut(&mut seen).set_emulated(*number, inst);
        }
        let original = Original::new(&seen, inside, &code, origins, inserted);
        let base = Base { program: &known, original };
        let program = Program::load(module, code, &mut self.memory, Some(base), &BTreeMap::new())?;
        Ok(self.add(program))
    }

    /// Address and size in bytes of a variable of a loaded module in device memory.
    pub fn variable(&self, module: ModuleId, name: &str) -> Option<(Address, u64)> {
        self.program(module)?.variable(name)
    }

    /// Places the variables of modules that are loaded from now on at `start` and above, each at a multiple of
    /// 64 KiB. Without this call, they are placed above all other allocations.
    pub fn place_variables(&mut self, start: Address) {
        self.memory.allocate_from(start);
    }

    /// Lets kernels access memory of the host at the host's addresses. Returns `false` if the range is empty
    /// or overlaps with other such memory. Clones of the GPU access the same memory.
    ///
    /// # Safety
    /// The range is readable and writable memory of this process until [`PtxGpu::unmap_host_memory`] was
    /// called on this GPU and all its clones. The host accesses it like memory that is shared with another
    /// process.
    pub unsafe fn map_host_memory(&mut self, start: Address, bytes: u64) -> bool {
        // SAFETY: promised by the caller.
        unsafe { self.memory.host_mut().add(start.0, bytes) }
    }

    /// Takes memory of the host away from kernels. Returns `false` if no mapped range begins at `start`.
    pub fn unmap_host_memory(&mut self, start: Address) -> bool {
        self.memory.host_mut().remove(start.0)
    }

    /// The code of a loaded module.
    pub fn program(&self, module: ModuleId) -> Option<&Program> {
        self.modules.get(module.0 as usize).map(|loaded| &*loaded.program)
    }

    /// The code of a module as observers see it.
    pub(super) fn seen_code(&self, module: ModuleId) -> Option<&Code> {
        let program = self.program(module)?;
        Some(program.original.as_ref().map_or(&*program.code, |original| &*original.code))
    }

    /// Prepares a dispatch.
    pub(super) fn launch(&self, dispatch: &Dispatch) -> Result<Running, DeviceError> {
        let program = self.program(dispatch.module);
        let program = program.ok_or_else(|| DeviceError::Internal("an unknown module".into()))?;
        let functions = program.code.functions.iter();
        let kernel = functions
            .enumerate()
            .find(|(_, found)| {
                *found.name == *dispatch.kernel && found.kind == flipwave_ptx::FunctionKind::Entry
            })
            .map(|(number, _)| number);
        let kernel = kernel.ok_or_else(|| DeviceError::UnknownKernel {
            wanted: dispatch.kernel.clone(),
            present: program.code.kernels().map(|found| found.name.to_string()).collect(),
        })?;
        let refused = |reason| DeviceError::BadLaunch { kernel: dispatch.kernel.clone(), reason };
        let code = &program.code.functions[kernel];
        let needed = code.parameters.iter().map(|slot| match slot {
            Slot::Memory { offset, bytes } => offset + bytes,
            Slot::Register(_) => 0,
        });
        let needed = needed.max().unwrap_or(0);
        if (dispatch.kernarg.len() as u64) < needed {
            let given = dispatch.kernarg.len();
            return Err(refused(format!("{given} bytes of arguments; expected {needed}")));
        }
        let threads: u64 = dispatch.workgroup.iter().map(|size| u64::from(*size)).product();
        if threads == 0 || threads > MOST_THREADS {
            return Err(refused(format!("{threads} threads; expected 1 to {MOST_THREADS}")));
        }
        check_limits(&code.directives, dispatch.workgroup).map_err(refused)?;
        let mut workgroups = [0; 3];
        for (axis, count) in workgroups.iter_mut().enumerate() {
            let (grid, workgroup) = (dispatch.grid[axis], dispatch.workgroup[axis]);
            if grid == 0 || grid % workgroup != 0 {
                return Err(refused(format!(
                    "{grid} threads in dimension {axis}; expected a multiple of {workgroup}"
                )));
            }
            *count = grid / workgroup;
        }
        let shared = program.dynamic_shared() + u64::from(dispatch.dynamic_lds);
        for (space, bytes, most) in [
            ("shared", shared, MOST_SHARED_BYTES),
            ("local", code.frame_bytes, crate::execute::MOST_LOCAL_BYTES),
        ] {
            if bytes > most {
                let reason = format!("{bytes} bytes of {space} memory; expected at most {most}");
                return Err(refused(reason));
            }
        }
        let waves = workgroups
            .iter()
            .fold(threads.div_ceil(32), |product, count| product.saturating_mul((*count).into()));
        if dispatch.is_cooperative && waves > MOST_RESIDENT_WAVES {
            return Err(refused(format!(
                "a cooperative launch of {waves} waves; expected at most {MOST_RESIDENT_WAVES}"
            )));
        }
        let launch = Launch {
            workgroup: dispatch.workgroup,
            workgroups,
            arguments: dispatch.kernarg.clone(),
            dynamic_shared: dispatch.dynamic_lds,
            shared,
        };
        Ok(Running::new(dispatch, kernel, launch))
    }
}

/// Checks `.reqntid` and `.maxntid`.
fn check_limits(
    directives: &[(flipwave_ptx::Name, Vec<u64>)],
    workgroup: [u32; 3],
) -> Result<(), String> {
    for (name, values) in directives {
        let axis = |axis: usize| values.get(axis).copied().unwrap_or(1);
        let threads: u64 = workgroup.iter().map(|size| u64::from(*size)).product();
        match &**name {
            "reqntid" if (0..3).any(|number| axis(number) != workgroup[number].into()) => {
                return Err(format!("workgroup {workgroup:?}; the kernel requires {values:?}"));
            }
            "maxntid" if threads > values.iter().product() => {
                return Err(format!("workgroup {workgroup:?}; the kernel permits {values:?}"));
            }
            _ => {}
        }
    }
    Ok(())
}
