//! State of the driver in this process.

use crate::handles::{Handles, lock};
use crate::launch::{FaultedLaunch, LaunchDriver, LoadedCode, PlainLaunchDriver};
use crate::memory::{self, Allocation, Allocations, Kind};
use crate::module::OUTPUT;
use crate::output;
use crate::queue::{Clock, Queue, Work};
use crate::status::Status;
use flipwave_arch::Architecture;
use flipwave_device::{Address, DeviceError, ModuleId, demangled_kernel};
use flipwave_machine::Machine;
use flipwave_ptx::Ptx;
use flipwave_ptx_sim::PtxGpu;
use std::collections::BTreeMap;
use std::io::Write;
use std::sync::atomic::{
    AtomicBool, AtomicI32, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering,
};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

/// Size of device memory in bytes.
pub const DEVICE_BYTES: u64 = 1 << 36;

/// The GPUs of this process, and what runs their kernels.
pub struct Configuration {
    /// The GPUs.
    pub targets: Vec<Ptx>,
    /// Runs the kernels.
    pub launcher: Box<dyn LaunchDriver>,
    /// Reports a kernel that a fault has ended, before [`LaunchDriver::end`].
    pub report_fault: fn(&FaultedLaunch<'_>),
    /// Handles errors of the tool, and gaps of the simulator.
    pub fail: fn(&DeviceError),
}

impl Default for Configuration {
    fn default() -> Configuration {
        Configuration {
            targets: Ptx::new("sm_90").into_iter().collect(),
            launcher: Box::new(PlainLaunchDriver),
            report_fault: |FaultedLaunch { launch, text, .. }| {
                let kernel = demangled_kernel(&launch.dispatch.kernel);
                report(&format_args!("dispatch {}, kernel {kernel}: {text}", launch.number));
            },
            fail: |error| {
                // Standard error may be closed.
                let _ = writeln!(std::io::stderr(), "flipwave: {error}");
                // SAFETY: only ends the process.
                unsafe { libc::_exit(2) }
            },
        }
    }
}

type Opener = fn() -> Option<Configuration>;

static OPENER: OnceLock<Opener> = OnceLock::new();

/// Sets the function that selects the GPUs when the application first uses the driver.
pub fn on_open(opener: Opener) {
    let _ = OPENER.set(opener);
}

/// The driver of this process. Drivers are never freed.
static DRIVER: AtomicPtr<Driver> = AtomicPtr::new(std::ptr::null_mut());

/// A device.
pub struct Device {
    /// The instruction set.
    pub target: Ptx,
    pub(crate) gpu: Mutex<PtxGpu>,
    /// Number of threads that wait for the device.
    pub(crate) waiting: AtomicUsize,
    /// `true` while a kernel runs, also between two slices.
    pub(crate) is_running: AtomicBool,
    /// The error that all calls return after a fault; 0 without one.
    pub(crate) fault: AtomicI32,
    /// The clock.
    pub clock: Clock,
    /// Handle of the primary context and the number of its users.
    pub primary: Mutex<(Option<usize>, u32)>,
    /// Flags of the primary context.
    pub primary_flags: AtomicU32,
    /// The default streams: legacy and per thread.
    pub default_stream: Arc<Stream>,
}

impl Device {
    /// Major and minor number of the compute capability.
    pub fn capability(&self) -> (u32, u32) {
        let number = self.number();
        (number / 10, number % 10)
    }

    /// Number of the architecture, such as 90.
    pub fn number(&self) -> u32 {
        let digits: String = self.target.target().chars().filter(char::is_ascii_digit).collect();
        digits.parse().unwrap_or(0)
    }

    /// The GPU, between two slices of a kernel.
    pub fn gpu(&self) -> MutexGuard<'_, PtxGpu> {
        self.waiting.fetch_add(1, Ordering::AcqRel);
        let gpu = lock(&self.gpu);
        self.waiting.fetch_sub(1, Ordering::AcqRel);
        gpu
    }

    /// The error of an earlier fault.
    ///
    /// # Errors
    /// The error.
    pub fn check(&self) -> Result<(), Status> {
        match self.fault.load(Ordering::Acquire) {
            0 => Ok(()),
            code => Err(Status(code)),
        }
    }

    pub(crate) fn set_fault(&self, status: Status) {
        let _ = self.fault.compare_exchange(0, status.0, Ordering::AcqRel, Ordering::Acquire);
    }
}

/// A context.
pub struct Context {
    /// Number of the device.
    pub device: usize,
    /// Flags of the creation.
    pub flags: u32,
}

/// A stream.
pub struct Stream {
    /// Number in order of creation; 0 for the default stream.
    pub number: u64,
    /// Number of the device.
    pub device: usize,
    /// Handle of the context; 0 for default streams.
    pub context: usize,
    /// Flags of the creation.
    pub flags: u32,
    /// Priority.
    pub priority: i32,
    /// Number of the work that was submitted last.
    pub last: AtomicU64,
    /// Handle of the graph that records the stream's work, if any.
    pub capture: Mutex<Option<usize>>,
}

impl Stream {
    /// A stream without work.
    pub fn new(number: u64, device: usize, context: usize, flags: u32, priority: i32) -> Stream {
        let (last, capture) = Default::default();
        Stream { number, device, context, flags, priority, last, capture }
    }
}

/// An event.
pub struct Event {
    /// Number of the device.
    pub device: usize,
    /// Flags of the creation.
    pub flags: u32,
    /// Number of the last record in the queue; 0 before the first.
    pub number: AtomicU64,
    /// Clock of the device when the last record was executed.
    pub time: Mutex<Arc<AtomicU64>>,
    /// Handle of the graph in which the event was last recorded, if it was.
    pub capture: Mutex<Option<usize>>,
}

/// A loaded module.
pub struct LoadedModule {
    /// Number of the device.
    pub device: usize,
    /// Handle of the context.
    pub context: usize,
    /// Number in the GPU.
    pub id: ModuleId,
    /// The code.
    pub code: Arc<LoadedCode>,
    /// Handles of the functions by name.
    pub functions: Mutex<BTreeMap<String, usize>>,
    /// Memory of managed variables.
    pub(crate) managed: Vec<u64>,
}

/// A kernel.
pub struct Function {
    /// Handle of the module.
    pub module_handle: usize,
    /// The module.
    pub module: Arc<LoadedModule>,
    /// Name of the kernel.
    pub name: String,
    /// Offset and size in bytes of each parameter.
    pub parameters: Vec<(u64, u64)>,
    /// Bytes of shared memory that the module declares.
    pub shared_bytes: u64,
    /// Bytes of local memory of a thread.
    pub local_bytes: u64,
    /// Most threads of a workgroup.
    pub most_threads: u64,
    /// Number of 32-bit registers, at most 255.
    pub registers: u32,
    /// Bytes of dynamic shared memory that launches may use, once the application has set them.
    pub most_dynamic_bytes: AtomicU32,
}

/// State of the driver.
pub struct Driver {
    /// Number of the process.
    process: u32,
    /// The devices.
    pub devices: Vec<Device>,
    /// The contexts.
    pub contexts: Handles<Context>,
    /// The streams.
    pub streams: Handles<Stream>,
    /// Number of streams created so far.
    pub stream_count: AtomicU64,
    /// The events.
    pub events: Handles<Event>,
    /// The modules and libraries.
    pub modules: Handles<LoadedModule>,
    /// The kernels.
    pub functions: Handles<Function>,
    /// Graphs, recorded or finished.
    pub graphs: Handles<Mutex<Vec<Work>>>,
    /// Graphs that can be launched.
    pub executables: Handles<Vec<Work>>,
    /// Memory of the application.
    pub allocations: Allocations,
    /// Submitted work.
    pub queue: Queue,
    pub(crate) launcher: Mutex<Box<dyn LaunchDriver>>,
    pub(crate) launches: AtomicU32,
    pub(crate) report_fault: fn(&FaultedLaunch<'_>),
    pub(crate) fail: fn(&DeviceError),
}

/// The driver of this process, if the application has initialized it.
pub fn opened() -> Option<&'static Driver> {
    // SAFETY: null, or a driver, which is never freed.
    let driver = unsafe { DRIVER.load(Ordering::Acquire).as_ref() };
    // A forked process does not have the thread that executes work.
    driver.filter(|driver| driver.process == std::process::id())
}

/// The driver of this process, which is created on the first call.
///
/// # Errors
/// [`Status::NO_DEVICE`] without GPUs.
pub fn open() -> Result<&'static Driver, Status> {
    static CREATION: Mutex<()> = Mutex::new(());
    if let Some(driver) = opened() {
        return Ok(driver);
    }
    let _creation = lock(&CREATION);
    if let Some(driver) = opened() {
        return Ok(driver);
    }
    let configuration = match OPENER.get() {
        Some(open) => open().ok_or(Status::NO_DEVICE)?,
        None => Configuration::default(),
    };
    if configuration.targets.is_empty() {
        return Err(Status::NO_DEVICE);
    }
    let driver = Box::leak(Box::new(Driver::new(configuration)));
    let run = || driver.queue.run(driver);
    let thread = std::thread::Builder::new().name("flipwave gpu".into()).spawn(run);
    thread.map_err(|_| Status::UNKNOWN)?;
    DRIVER.store(std::ptr::from_ref(driver).cast_mut(), Ordering::Release);
    Ok(driver)
}

impl Driver {
    fn new(configuration: Configuration) -> Driver {
        let Configuration { targets, launcher, report_fault, fail } = configuration;
        Allocations::reserve(targets.len());
        let device = |(number, target): (usize, Ptx)| {
            let mut gpu = PtxGpu::new(target.clone());
            gpu.place_variables(Address(memory::variables_of(number)));
            let (waiting, is_running, fault, clock, primary, primary_flags) = Default::default();
            let gpu = Mutex::new(gpu);
            let default_stream = Arc::new(Stream::new(0, number, 0, 0, 0));
            Device {
                target,
                gpu,
                waiting,
                is_running,
                fault,
                clock,
                primary,
                primary_flags,
                default_stream,
            }
        };
        Driver {
            process: std::process::id(),
            devices: targets.into_iter().enumerate().map(device).collect(),
            contexts: Handles::new(1),
            streams: Handles::new(2),
            stream_count: AtomicU64::new(0),
            events: Handles::new(3),
            modules: Handles::new(4),
            functions: Handles::new(5),
            graphs: Handles::new(6),
            executables: Handles::new(7),
            allocations: Allocations::default(),
            queue: Queue::default(),
            launcher: Mutex::new(launcher),
            launches: AtomicU32::new(0),
            report_fault,
            fail,
        }
    }

    /// Submits work to a stream, or records it if the stream is captured.
    pub fn submit(&self, stream: &Stream, work: Work) {
        let graph = *lock(&stream.capture);
        if let Some(graph) = graph.and_then(|graph| self.graphs.get(graph)) {
            lock(&graph).push(work);
            return;
        }
        let number = self.queue.submit(stream.device, work);
        stream.last.fetch_max(number, Ordering::AcqRel);
    }

    /// Submits work to a stream and waits for its end.
    ///
    /// # Errors
    /// [`Status::STREAM_CAPTURE_UNSUPPORTED`] if the stream is captured; the error of a fault.
    pub fn submit_and_wait(&self, stream: &Stream, work: Work) -> Result<(), Status> {
        if lock(&stream.capture).is_some() {
            return Err(Status::STREAM_CAPTURE_UNSUPPORTED);
        }
        self.submit(stream, work);
        self.wait(stream.device, stream.last.load(Ordering::Acquire))
    }

    /// Waits for work, and prints the output of kernels.
    ///
    /// # Errors
    /// The error of a fault.
    pub fn wait(&self, device: usize, number: u64) -> Result<(), Status> {
        self.queue.wait(number);
        let device = &self.devices[device];
        self.print_output(device);
        device.check()
    }

    /// Waits for all work.
    ///
    /// # Errors
    /// The error of a fault.
    pub fn synchronize(&self, device: usize) -> Result<(), Status> {
        self.wait(device, self.queue.last())
    }

    /// Prints the output of kernels that have ended. Returns `true` if an assertion failed.
    pub(crate) fn print_output(&self, device: &Device) -> bool {
        let number = self.devices.iter().position(|found| std::ptr::eq(found, device));
        let mut has_failed = false;
        for (_, module) in self.modules.all() {
            if Some(module.device) != number {
                continue;
            }
            let mut gpu = device.gpu();
            if device.is_running.load(Ordering::Acquire) {
                // The kernel may have written a part of a record.
                break;
            }
            let Some((start, _)) = gpu.program(module.id).and_then(|found| found.variable(OUTPUT))
            else {
                continue;
            };
            let output = output::take(&mut gpu, start);
            drop(gpu);
            has_failed |= !output.assertions.is_empty();
            output::write(&output);
        }
        has_failed
    }

    /// Lets all devices access host memory.
    pub fn map_host(&self, allocation: &Allocation) {
        for device in &self.devices {
            // SAFETY: the driver's own memory, which is unmapped from GPUs before it is returned to the system;
            // or memory that the application has registered, and keeps until it takes that back.
            unsafe { device.gpu().map_host_memory(Address(allocation.start), allocation.bytes) };
        }
    }

    /// Takes host memory away from all devices.
    pub fn unmap_host(&self, start: u64) {
        for device in &self.devices {
            device.gpu().unmap_host_memory(Address(start));
        }
    }

    /// Frees host memory that the driver has allocated.
    pub fn free_host(&self, start: u64) -> bool {
        let is_own = |kind| matches!(kind, Kind::Managed | Kind::Host(_));
        let Some(allocation) = self.allocations.remove(start, is_own) else { return false };
        self.queue.wait(self.queue.last());
        self.unmap_host(start);
        memory::unmap(&allocation);
        true
    }

    /// Allocates device memory.
    ///
    /// # Errors
    /// [`Status::OUT_OF_MEMORY`].
    pub fn allocate(&self, context: usize, device: usize, bytes: u64) -> Result<u64, Status> {
        if self.allocations.used(device).saturating_add(bytes) > DEVICE_BYTES {
            return Err(Status::OUT_OF_MEMORY);
        }
        let allocation = self.allocations.add_device(device, context, bytes)?;
        let mut gpu = self.devices[device].gpu();
        let allocated = gpu.allocate_at(Address(allocation.start), allocation.mapped_bytes());
        allocated.map_err(|error| {
            self.allocations.remove(allocation.start, |kind| kind == Kind::Device);
            Status::from(&error)
        })?;
        Ok(allocation.start)
    }

    /// Frees device memory, or managed memory.
    pub fn free(&self, start: u64) -> bool {
        match self.allocations.remove(start, |kind| kind == Kind::Device) {
            Some(allocation) => {
                let mut gpu = self.devices[allocation.device].gpu();
                gpu.free(Address(start)).is_ok()
            }
            None => self.free_host(start),
        }
    }

    /// Number of the device whose memory contains an address; `None` for host memory.
    pub fn device_of(&self, address: u64) -> Option<usize> {
        memory::device_of(address).filter(|device| *device < self.devices.len())
    }

    /// Returns `true` if an address is in host memory that the driver knows.
    pub fn is_pinned(&self, address: u64) -> bool {
        self.allocations.around(address).is_some_and(|found| found.kind != Kind::Device)
    }
}

/// Prints why something is not possible.
pub fn report(reason: &dyn std::fmt::Display) {
    // Standard error may be closed.
    let _ = writeln!(std::io::stderr(), "flipwave: {reason}");
}
