//! The kernel driver's own interface: what `ioctl` answers on `/dev/kfd` and on render nodes
//! (`linux/kfd_ioctl.h`, `drm/amdgpu_drm.h`). All of the vendor's runtime stands above it, of any
//! version.
//!
//! Arguments are the program's own, as it is this program that calls. A pointer in them that leads
//! nowhere ends it, where the kernel would answer `EFAULT`.

mod abi;
mod buffers;
mod error;
mod events;
mod queues;
mod render;
mod render_abi;
mod request;
mod store;
mod system;

use crate::machine::Machine;
use crate::opened::machine;
use abi::Call;
use buffers::Buffers;
use error::Errno;
use request::Request;
use std::ffi::{CString, c_void};
use std::io;
use std::sync::{Arc, OnceLock};
use store::Store;

/// A device that the driver gives files for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Device {
    /// `/dev/kfd`.
    Compute,
    /// The render node of the GPU of a node.
    Render(GpuNode),
}

/// The number of a node that is a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct GpuNode(u32);

impl GpuNode {
    /// What programs call it in requests: never 0.
    fn id(self) -> u32 {
        GPU_ID + self.0
    }

    /// As a bit among those of nodes.
    fn bit(self) -> u64 {
        1 << self.0
    }
}

/// What is added to a node's number to get its GPU's.
pub(crate) const GPU_ID: u32 = 0x1000;
/// The number of the first render node.
pub(crate) const FIRST_RENDER_MINOR: u32 = 128;

/// The driver as this process has it.
pub(crate) struct Process {
    machine: Arc<Machine>,
    /// What doorbells and other pages of `/dev/kfd` are made of.
    compute: Store,
    /// The memory of each GPU, by node, from node 1 on.
    gpus: Vec<Store>,
    buffers: Buffers,
}

impl Process {
    fn new(machine: Arc<Machine>) -> io::Result<Process> {
        let store = |name: String| Store::new(&CString::new(name).unwrap_or_default());
        let gpus = (1..machine.topology.nodes()).map(|node| store(format!("flipwave-gpu-{node}")));
        let gpus: io::Result<Vec<Store>> = gpus.collect();
        let compute = store("flipwave-kfd".to_owned())?;
        Ok(Process { machine, compute, gpus: gpus?, buffers: Buffers::default() })
    }

    /// The GPU that a program means by a number.
    fn gpu(&self, id: u32) -> Result<GpuNode, Errno> {
        let node = id.checked_sub(GPU_ID).filter(|node| self.machine.is_gpu(*node));
        node.map(GpuNode).ok_or(Errno::INVALID)
    }

    /// The memory of a GPU.
    fn store(&self, gpu: GpuNode) -> &Store {
        &self.gpus[gpu.0 as usize - 1]
    }

    fn compute_call(&self, request: &Request) -> Result<(), Errno> {
        let call = Call::of(request.number).ok_or(Errno::NO_CALL)?;
        match call {
            Call::GetVersion => request.with(system::version),
            Call::GetClockCounters => request.with(|own| system::clocks(self, own)),
            Call::GetProcessAperturesNew => request.with(|own| system::apertures(self, own)),
            Call::AcquireVm => {
                request.with(|own: &mut abi::AcquireVm| self.gpu(own.gpu_id).map(drop))
            }
            Call::GetTileConfig => request.with(|own| system::tile_config(self, own)),
            Call::SetXnackMode => request.with(system::xnack_mode),
            // How caches behave, where private memory is and what traps do: there are none of these
            // caches, private memory is found through the queue, and traps end a dispatch.
            Call::SetMemoryPolicy | Call::SetScratchBackingVa | Call::SetTrapHandler => Ok(()),
            Call::AllocMemory => request.with(|own| buffers::allocate(self, own)),
            Call::FreeMemory => request.with(|own| buffers::free(self, own)),
            Call::MapMemory => request.with(|own| buffers::map(self, own)),
            Call::UnmapMemory => request.with(|own| buffers::unmap(self, own)),
            Call::AvailableMemory => request.with(|own| buffers::available(self, own)),
            Call::Svm => request.with_array(
                |own: &abi::Svm| own.nattr,
                |own, attributes| buffers::shared(self, own, attributes),
            ),
            Call::CreateQueue => request.with(|own| queues::create(self, own)),
            Call::DestroyQueue => request.with(|own| queues::destroy(self, own)),
            Call::UpdateQueue => request.with(|own| queues::update(self, own)),
            Call::SetCuMask => request.with(|own| queues::set_units(self, own)),
            Call::AllocQueueGws => request.with(|own| queues::give_global_sync(self, own)),
            Call::CreateEvent => request.with(|own| events::create(self, own)),
            Call::DestroyEvent => request.with(|own| events::destroy(self, own)),
            Call::SetEvent => request.with(|own| events::set(self, own)),
            Call::ResetEvent => request.with(|own| events::reset(self, own)),
            Call::WaitEvents => request.with(|own| events::wait(self, own)),
        }
    }
}

static PROCESS: OnceLock<Option<Process>> = OnceLock::new();

/// The driver of this process; `None` if there is no machine.
fn process() -> Option<&'static Process> {
    let new = || machine().and_then(|machine| Process::new(Arc::clone(machine)).ok());
    PROCESS.get_or_init(new).as_ref()
}

impl Device {
    /// The compute device, or the render node with a minor number.
    ///
    /// # Errors
    /// If there is none.
    fn of(minor: Option<u32>, process: &Process) -> Result<Device, Errno> {
        let Some(minor) = minor else { return Ok(Device::Compute) };
        let index = minor.checked_sub(FIRST_RENDER_MINOR).ok_or(Errno::NO_DEVICE)?;
        let node = 1 + index;
        process
            .machine
            .is_gpu(node)
            .then_some(Device::Render(GpuNode(node)))
            .ok_or(Errno::NO_DEVICE)
    }
}

/// Opens the compute device, or the render node with a minor number: a file, or an error of the
/// system with its sign changed. `flags` are those of `open`.
pub fn open_device(minor: Option<u32>, flags: libc::c_int) -> libc::c_int {
    let open = || {
        let process = process().ok_or(Errno::NO_DEVICE)?;
        let store = match Device::of(minor, process)? {
            Device::Compute => &process.compute,
            Device::Render(gpu) => process.store(gpu),
        };
        store.open(flags).map_err(|_| Errno::last())
    };
    open().unwrap_or_else(Errno::answer)
}

/// Answers a request on the compute device, or on the render node with a minor number: 0, or an error
/// of the system with its sign changed.
///
/// # Safety
/// `argument` is what the header says of this request.
pub unsafe fn request_device(
    minor: Option<u32>,
    request: u64,
    argument: *mut c_void,
) -> libc::c_int {
    let answer = || {
        let process = process().ok_or(Errno::NO_DEVICE)?;
        // SAFETY: promised by the caller.
        let request = unsafe { Request::new(request, argument) };
        match (Device::of(minor, process)?, request.family) {
            (Device::Compute, b'K') => process.compute_call(&request),
            (Device::Render(gpu), b'd') => render::answer(process, gpu, &request),
            _ => Err(Errno::NO_CALL),
        }
    };
    answer().map_or_else(Errno::answer, |()| 0)
}
