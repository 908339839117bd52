//! A GPU through the runtime, as a [`Device`].

mod agent;
mod faults;
mod module;
mod queue;

use crate::HsaError;
use crate::tools::Memory;
pub(crate) use agent::processors;
use agent::{Agent, Pool};
use flipwave_codeobj::CodeObject;
use flipwave_device::{
    Address, Completion, Device, DeviceError, DeviceFault, Dispatch, KernelPacket, ModuleId,
    Statistics, WaveId, WaveLocation,
};
use flipwave_isa::Target;
use hsa_sys::{Functions, Library, LibraryError};
use module::Module;
use queue::{Queue, Waited};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Bytes that are zeroed at once.
const ZEROS: usize = 1 << 20;

/// A GPU that AMD's runtime has: of silicon, or the embedded one in a process that `flipwave exec`
/// has started.
///
/// What hardware does not report:
/// - It counts no instructions. [`Dispatch::instruction_limit`] is not looked at; a dispatch is
///   ended as hung when it takes longer than [`RocrDevice::set_time_limit`] says, and the number
///   of instructions of such an end is 0. Of [`Statistics`] only the waves are known, by the
///   shape of the launch; the others are 0.
/// - It says that a dispatch faulted, not where: the place of a fault is the kernel's entry and
///   the first wave. The address of a memory violation is that of its page, or 0 where the runtime
///   has none; the words of illegal instructions and the lanes are not known.
/// - After a fault or a hang the GPU may be of no use to this process any more. A new process has
///   a new one.
#[derive(Debug)]
pub struct RocrDevice {
    functions: Functions,
    agent: Agent,
    target: Target,
    memory: Memory,
    /// Bytes at each address that may be read and written: allocations, and loaded code.
    ranges: BTreeMap<u64, u64>,
    modules: Vec<Module>,
    queue: Option<Queue>,
    time_limit: Duration,
    stopped: Arc<AtomicBool>,
}

/// No device.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// No runtime.
    #[error(transparent)]
    Library(#[from] LibraryError),
    /// The runtime has refused a call.
    #[error("AMD's runtime: {0}; is there a GPU, and may this user use it?")]
    Hsa(#[from] HsaError),
    /// Fewer GPUs than that.
    #[error("there is no GPU {wanted}, counted from 0: AMD's runtime has {present}")]
    NoGpu {
        /// The one asked for.
        wanted: usize,
        /// How many there are.
        present: usize,
    },
    /// A GPU that is not known here.
    #[error("the GPU is a {0}, which Flipwave does not support")]
    UnknownTarget(String),
    /// A GPU without memory that one may allocate.
    #[error("AMD's runtime has no {0} memory for the GPU")]
    NoMemory(&'static str),
}

impl RocrDevice {
    /// The time after which a dispatch counts as hung, if nothing else is said.
    const TIME_LIMIT: Duration = Duration::from_secs(60);

    /// Opens a GPU, counted from 0.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open(gpu: usize) -> Result<RocrDevice, OpenError> {
        let functions = Library::open()?.functions;
        // SAFETY: the runtime may be started as often as one likes.
        HsaError::check("hsa_init", unsafe { (functions.hsa_init)() })?;
        let agent = Agent::find(&functions, gpu)?;
        let target = agent.target(&functions)?;
        faults::listen(&functions);
        Ok(RocrDevice {
            memory: Memory::new(functions.hsa_memory_copy),
            functions,
            agent,
            target,
            ranges: BTreeMap::new(),
            modules: Vec::new(),
            queue: None,
            time_limit: RocrDevice::TIME_LIMIT,
            stopped: Arc::default(),
        })
    }

    /// Says after which time a dispatch counts as hung. It depends on the host's clock: the same
    /// dispatch may or may not reach its end.
    pub fn set_time_limit(&mut self, limit: Duration) {
        self.time_limit = limit;
    }

    /// Says by what dispatches are ended as if they were hung, those that begin later too.
    pub fn set_stopped(&mut self, stopped: Arc<AtomicBool>) {
        self.stopped = stopped;
    }

    fn check(
        &self,
        operation: &'static str,
        address: Address,
        bytes: usize,
    ) -> Result<(), DeviceError> {
        let bytes = bytes as u64;
        let around = self.ranges.range(..=address.0).next_back();
        let end = address.0.checked_add(bytes);
        match around.zip(end) {
            Some(((start, size), end)) if end <= start + size => Ok(()),
            _ => Err(DeviceError::NotAllocated { operation, address, bytes }),
        }
    }

    fn module(&self, id: ModuleId) -> Result<&Module, DeviceError> {
        let unknown = || DeviceError::Internal(format!("module {} is not of this device", id.0));
        self.modules.get(id.0 as usize).ok_or_else(unknown)
    }

    /// Memory of a pool that the GPU can reach.
    fn allocate_in(&self, pool: Pool, bytes: u64) -> Result<Address, DeviceError> {
        let failed = |error: HsaError| {
            let reason = error.to_string();
            DeviceError::OutOfMemory { bytes, reason }
        };
        pool.allocate(&self.functions, self.agent.gpu, bytes).map_err(failed)
    }

    fn free_in_pool(&self, address: Address) -> Result<(), DeviceError> {
        // SAFETY: allocated in a pool, and given back once.
        let status = unsafe { (self.functions.hsa_amd_memory_pool_free)(address.0 as *mut _) };
        HsaError::check("hsa_amd_memory_pool_free", status).map_err(internal)
    }

    /// Submits a packet and waits for its end.
    fn run(&mut self, packet: KernelPacket) -> Result<Waited, DeviceError> {
        if self.queue.is_none() {
            let queue = Queue::new(&self.functions, self.agent.gpu).map_err(internal)?;
            self.queue = Some(queue);
        }
        let Some(queue) = &self.queue else { return Ok(Waited::Hung) };
        let end = queue.run(packet, self.time_limit, &self.stopped).map_err(internal)?;
        if end != Waited::Done {
            // What is left of the dispatch must not meet the next one.
            self.queue = None;
        }
        Ok(end)
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
        self.ranges.insert(address.0, bytes);
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
        let own = self.ranges.remove(&address.0).filter(|_| !is_code);
        if own.is_none() {
            return Err(DeviceError::NotAllocated { operation: "free", address, bytes: 0 });
        }
        self.free_in_pool(address)
    }

    fn write(&mut self, address: Address, bytes: &[u8]) -> Result<(), DeviceError> {
        self.check("write", address, bytes.len())?;
        self.memory.write(address, bytes).map_err(internal)
    }

    fn read(&self, address: Address, bytes: &mut [u8]) -> Result<(), DeviceError> {
        self.check("read", address, bytes.len())?;
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
        self.ranges.insert(module.start(), module.image.end - module.image.start);
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
        let (packet, waves, entry) = kernel.packet(dispatch)?;
        // The runtime gives no memory for nothing.
        let bytes = dispatch.kernarg.len().max(64) as u64;
        let kernarg = self.allocate_in(self.agent.kernarg, bytes)?;
        // SAFETY: memory of the host that was just allocated, of at least this many bytes.
        unsafe {
            let place = kernarg.0 as *mut u8;
            place.copy_from_nonoverlapping(dispatch.kernarg.as_ptr(), dispatch.kernarg.len());
        }
        let end = self.run(KernelPacket { kernarg, ..packet })?;
        let cause = match end {
            Waited::Done => {
                self.free_in_pool(kernarg)?;
                return Ok(Completion::Completed(Statistics { waves, ..Statistics::default() }));
            }
            // The dispatch may still read its arguments.
            Waited::Hung => flipwave_device::FaultCause::Watchdog { executed: 0 },
            Waited::Faulted(cause) => cause,
        };
        let wave = WaveId { workgroup: [0; 3], wave: 0 };
        Ok(Completion::Faulted(DeviceFault { cause, place: WaveLocation { pc: entry, wave } }))
    }
}
