//! A [`Device`] that uses AMD's runtime.

mod agent;
mod faults;
mod module;
mod queue;

use crate::HsaError;
use crate::tools::Memory;
pub(crate) use agent::agents_of_type;
use agent::{Agent, Pool};
use flipwave_codeobj::CodeObject;
use flipwave_device::{
    Address, AllocatedRanges, Completion, Device, DeviceError, DeviceFault, Dispatch, KernelPacket,
    ModuleId, Statistics, WaveId, WaveLocation,
};
use flipwave_isa::Target;
use hsa_sys::{Functions, Library, LibraryError};
use module::{Launch, Module};
use queue::{Queue, RunResult};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Size of the buffer for zeroing allocations, in bytes.
const ZEROS: usize = 1 << 20;

/// A GPU accessed through AMD's runtime: hardware, or the embedded GPU in a process started by
/// `flipwave exec`.
///
/// Limitations of hardware:
/// - It does not count instructions. [`Dispatch::instruction_limit`] is ignored; a dispatch ends as
///   hung after the time set by [`RocrDevice::set_time_limit`], with an instruction count of 0. Of
///   [`Statistics`] only the number of waves, computed from the launch configuration, is nonzero.
/// - It reports that a dispatch faulted, not where: the location of a fault is the kernel's entry and
///   the first wave. The address of a memory violation is the page address, or 0 if the runtime does
///   not report it; the words of illegal instructions and the lanes are unknown.
/// - After a fault or a hang the GPU may be unusable for this process. A new process can use it again.
#[derive(Debug)]
pub struct RocrDevice {
    functions: Functions,
    agent: Agent,
    target: Target,
    memory: Memory,
    /// Allocations and loaded code.
    ranges: AllocatedRanges,
    modules: Vec<Module>,
    queue: Option<Queue>,
    time_limit: Duration,
    stopped: Arc<AtomicBool>,
}

/// Errors returned when opening a GPU.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The runtime cannot be opened.
    #[error(transparent)]
    Library(#[from] LibraryError),
    /// A call of the runtime failed.
    #[error("AMD's runtime: {0}; check that a GPU is present and that this user may use it")]
    Hsa(#[from] HsaError),
    /// The GPU index is out of range.
    #[error("no GPU {wanted} (counted from 0): AMD's runtime has {present} GPUs")]
    NoGpu {
        /// The requested index.
        wanted: usize,
        /// Number of GPUs.
        present: usize,
    },
    /// The GPU's target is not supported.
    #[error("unsupported GPU {0}")]
    UnknownTarget(String),
    /// The GPU lacks a memory pool.
    #[error("AMD's runtime has no {0} memory for the GPU")]
    NoMemory(&'static str),
}

impl RocrDevice {
    /// The default time limit.
    const TIME_LIMIT: Duration = Duration::from_secs(60);

    /// Opens a GPU by index, counted from 0.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open(gpu: usize) -> Result<RocrDevice, OpenError> {
        let functions = Library::open()?.functions;
        // SAFETY: `hsa_init` may be called any number of times.
        HsaError::check("hsa_init", unsafe { (functions.hsa_init)() })?;
        let agent = Agent::find(&functions, gpu)?;
        let target = agent.target(&functions)?;
        faults::listen(&functions);
        Ok(RocrDevice {
            memory: Memory::new(functions.hsa_memory_copy),
            functions,
            agent,
            target,
            ranges: AllocatedRanges::default(),
            modules: Vec::new(),
            queue: None,
            time_limit: RocrDevice::TIME_LIMIT,
            stopped: Arc::default(),
        })
    }

    /// Sets the time after which a dispatch counts as hung. The limit uses the host's clock, so results
    /// near the limit are not reproducible.
    pub fn set_time_limit(&mut self, limit: Duration) {
        self.time_limit = limit;
    }

    /// Sets a cancellation flag. While it is `true`, current and later dispatches end as hung.
    pub fn set_stopped(&mut self, stopped: Arc<AtomicBool>) {
        self.stopped = stopped;
    }

    fn module(&self, id: ModuleId) -> Result<&Module, DeviceError> {
        let unknown =
            || DeviceError::Internal(format!("module {} belongs to another device", id.0));
        self.modules.get(id.0 as usize).ok_or_else(unknown)
    }

    /// Allocates memory of a pool, accessible to the GPU.
    fn allocate_in(&self, pool: Pool, bytes: u64) -> Result<Address, DeviceError> {
        let failed = |error: HsaError| {
            let reason = error.to_string();
            DeviceError::OutOfMemory { bytes, reason }
        };
        pool.allocate(&self.functions, self.agent.gpu, bytes).map_err(failed)
    }

    fn free_in_pool(&self, address: Address) -> Result<(), DeviceError> {
        // SAFETY: allocated from a pool, and freed once.
        let status = unsafe { (self.functions.hsa_amd_memory_pool_free)(address.0 as *mut _) };
        HsaError::check("hsa_amd_memory_pool_free", status).map_err(internal)
    }

    /// Submits a packet and waits for its end.
    fn run(&mut self, packet: KernelPacket) -> Result<RunResult, DeviceError> {
        if self.queue.is_none() {
            let queue = Queue::new(&self.functions, self.agent.gpu).map_err(internal)?;
            self.queue = Some(queue);
        }
        let Some(queue) = &self.queue else { return Ok(RunResult::Hung) };
        let result = queue.run(packet, self.time_limit, &self.stopped).map_err(internal)?;
        if result != RunResult::Completed {
            // The dispatch may still be running; the next one needs a new queue.
            self.queue = None;
        }
        Ok(result)
    }
}

fn internal(error: HsaError) -> DeviceError {
    DeviceError::Internal(error.to_string())
}

impl Device for RocrDevice {
    fn target(&self) -> &Target {
        &self.target
    }

    fn allocate(&mut self, bytes: u64) -> Result<Address, DeviceError> {
        let address = self.allocate_in(self.agent.memory, bytes.max(1))?;
        self.ranges.add(address, bytes);
        let zeros = vec![0; ZEROS.min(bytes as usize)];
        for offset in (0..bytes).step_by(ZEROS) {
            let length = zeros.len().min((bytes - offset) as usize);
            let zeros = zeros.get(..length).unwrap_or_default();
            self.memory.write(Address(address.0 + offset), zeros).map_err(internal)?;
        }
        Ok(address)
    }

    fn free(&mut self, address: Address) -> Result<(), DeviceError> {
        let is_code = self.modules.iter().any(|module| module.start() == address.0);
        if is_code {
            return Err(DeviceError::NotAllocated { operation: "free", address, bytes: 0 });
        }
        self.ranges.remove(address)?;
        self.free_in_pool(address)
    }

    fn write(&mut self, address: Address, bytes: &[u8]) -> Result<(), DeviceError> {
        self.ranges.check("write", address, bytes.len())?;
        self.memory.write(address, bytes).map_err(internal)
    }

    fn read(&self, address: Address, bytes: &mut [u8]) -> Result<(), DeviceError> {
        self.ranges.check("read", address, bytes.len())?;
        self.memory.read(address, bytes).map_err(internal)
    }

    fn load(&mut self, code_object: &CodeObject) -> Result<ModuleId, DeviceError> {
        if !self.target.runs_code_for(code_object.target()) {
            return Err(DeviceError::WrongTarget {
                code_object: code_object.target().to_string(),
                device: self.target.to_string(),
            });
        }
        let module = Module::load(&self.functions, self.agent.gpu, code_object)?;
        self.ranges.add(Address(module.start()), module.image.end - module.image.start);
        self.modules.push(module);
        Ok(ModuleId(self.modules.len() as u32 - 1))
    }

    fn address_of(&self, module: ModuleId, address: u64) -> Result<Address, DeviceError> {
        let module = self.module(module)?;
        if !module.image.contains(&address) {
            let image = module.image.clone();
            return Err(DeviceError::OutsideModule { address, image });
        }
        Ok(Address(module.bias.wrapping_add(address)))
    }

    fn dispatch(&mut self, dispatch: &Dispatch) -> Result<Completion, DeviceError> {
        let module = self.module(dispatch.module)?;
        let kernel = module.kernel(&dispatch.kernel)?;
        let Launch { packet, waves, start } = kernel.launch(dispatch)?;
        // The runtime rejects allocations of 0 bytes.
        let bytes = dispatch.kernarg.len().max(64) as u64;
        let kernarg = self.allocate_in(self.agent.kernarg, bytes)?;
        // SAFETY: host memory of at least this size, which was just allocated.
        unsafe {
            let destination = kernarg.0 as *mut u8;
            destination.copy_from_nonoverlapping(dispatch.kernarg.as_ptr(), dispatch.kernarg.len());
        }
        let cause = match self.run(KernelPacket { kernarg, ..packet })? {
            RunResult::Completed => {
                self.free_in_pool(kernarg)?;
                return Ok(Completion::Completed(Statistics { waves, ..Statistics::default() }));
            }
            // The arguments stay allocated, because the dispatch may still read them.
            RunResult::Hung => flipwave_device::FaultCause::Watchdog { executed: 0 },
            RunResult::Faulted(cause) => cause,
        };
        let wave = WaveId { workgroup: [0; 3], wave: 0 };
        Ok(Completion::Faulted(DeviceFault::new(cause, WaveLocation { pc: start, wave })))
    }
}
