//! The interface of the kernel driver: ioctl, open and mmap of `/dev/kfd` and of render nodes
//! (`linux/kfd_ioctl.h`, `drm/amdgpu_drm.h`). AMD's user-space runtime, of any version, builds on
//! it.
//!
//! Arguments are in the memory of this process, as the program itself calls. But the kernel copies
//! them, so that an invalid pointer is `EFAULT`.

mod abi;
mod arguments;
mod buffers;
mod dmabuf;
mod error;
mod events;
mod gem;
mod gpu;
#[cfg(test)]
mod header;
mod ipc;
mod memory;
mod process;
mod queues;
mod render;
mod render_abi;
mod request;
mod sharing;
mod smi;
mod system;
#[cfg(test)]
mod tests;

use crate::instance::process;
use crate::store::{Mapping, Store};
pub(crate) use gpu::{FIRST_RENDER_MINOR, GPU_ID};
pub(crate) use process::Process;

use abi::Call;
use error::Errno;
use gpu::GpuNode;
use request::Request;
use std::ffi::c_void;

/// A device of the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Device {
    /// `/dev/kfd`.
    Compute,
    /// The render node of a GPU.
    Render(GpuNode),
}

impl Device {
    /// The render node with a minor number, or the compute device for `None`.
    ///
    /// # Errors
    /// [`Errno::NO_DEVICE`] if there is no such render node.
    fn from_minor(minor: Option<u32>, process: &Process) -> Result<Device, Errno> {
        let Some(minor) = minor else { return Ok(Device::Compute) };
        let index = minor.checked_sub(FIRST_RENDER_MINOR).ok_or(Errno::NO_DEVICE)?;
        let node = 1 + index;
        let is_gpu = process.machine.is_gpu(node);
        is_gpu.then_some(Device::Render(GpuNode(node))).ok_or(Errno::NO_DEVICE)
    }
}

/// Executes a call on the compute device.
fn compute_call(process: &Process, request: &Request) -> Result<(), Errno> {
    let call = Call::from_number(request.number).ok_or(Errno::NO_CALL)?;
    match call {
        Call::GetVersion => request.with(system::version),
        Call::GetClockCounters => request.with(|args| system::clocks(process, args)),
        Call::GetProcessAperturesNew => request.with(|args| system::apertures(process, args)),
        Call::AcquireVm => {
            request.with(|args: &mut abi::AcquireVm| process.gpu(args.gpu_id).map(drop))
        }
        Call::GetTileConfig => request.with(|args| system::tile_config(process, args)),
        Call::SetXnackMode => request.with(system::xnack_mode),
        Call::RuntimeEnable => request.with(system::enable_runtime),
        // Without effect: there are no caches, private memory is found through the queue, and traps
        // end a dispatch.
        Call::SetMemoryPolicy | Call::SetScratchBackingVa | Call::SetTrapHandler => Ok(()),
        Call::AllocMemory => request.with(|args| memory::allocate(process, args)),
        Call::FreeMemory => request.with(|args| memory::free(process, args)),
        Call::MapMemory => request.with(|args| memory::map(process, args)),
        Call::UnmapMemory => request.with(|args| memory::unmap(process, args)),
        Call::AvailableMemory => request.with(|args| memory::available(process, args)),
        Call::Svm => request.with_array(
            |args: &abi::Svm| args.nattr,
            |args, attributes| memory::svm(process, args, attributes),
        ),
        Call::ExportDmabuf => request.with(|args| sharing::export_dmabuf(process, args)),
        Call::GetDmabufInfo => request.with(|args| sharing::describe_dmabuf(process, args)),
        Call::ImportDmabuf => request.with(|args| sharing::import_dmabuf(process, args)),
        Call::IpcExport => request.with(|args| sharing::export_ipc(process, args)),
        Call::IpcImport => request.with(|args| sharing::import_ipc(process, args)),
        Call::SmiEvents => request.with(|args: &mut abi::SmiEvents| {
            process.gpu(args.gpuid)?;
            process.smi_clients.open(args)
        }),
        Call::CreateQueue => request.with(|args| queues::create(process, args)),
        Call::DestroyQueue => request.with(|args| queues::destroy(process, args)),
        Call::UpdateQueue => request.with(|args| queues::update(process, args)),
        Call::SetCuMask => request.with(|args| queues::set_cu_mask(process, args)),
        Call::AllocQueueGws => request.with(|args| queues::allocate_gws(process, args)),
        Call::CreateEvent => request.with(|args| events::create(process, args)),
        Call::DestroyEvent => request.with(|args| events::destroy(process, args)),
        Call::SetEvent => request.with(|args| events::set(process, args)),
        Call::ResetEvent => request.with(|args| events::reset(process, args)),
        Call::WaitEvents => request.with(|args| events::wait(process, args)),
    }
}

/// Backing store of a device.
fn store(minor: Option<u32>) -> Result<&'static Store, Errno> {
    let process = process().ok_or(Errno::NO_DEVICE)?;
    Ok(match Device::from_minor(minor, process)? {
        Device::Compute => &process.machine.driver_pages,
        Device::Render(gpu) => gpu.store(&process.machine)?,
    })
}

/// Opens the render node with a minor number, or the compute device for `None`, with the flags of
/// open(2). Returns a file descriptor or a negated error number.
pub fn open_device(minor: Option<u32>, flags: libc::c_int) -> libc::c_int {
    let open = || store(minor)?.open(flags).map_err(Errno::from_io);
    open().unwrap_or_else(Errno::to_return_value)
}

/// Maps a part of a device for the program. Returns the address or a negated error number.
///
/// # Safety
/// As for mmap(2): a mapping at a fixed address is replaced.
pub unsafe fn map_device(minor: Option<u32>, mapping: Mapping) -> i64 {
    // SAFETY: promised by the caller.
    let map = || unsafe { store(minor)?.map(mapping) }.map_err(Errno::from_io);
    map().map_or_else(|error| error.to_return_value().into(), |address| address as i64)
}

/// Executes an ioctl request on the render node with a minor number, or on the compute device for
/// `None`. Returns 0 or a negated error number.
///
/// # Safety
/// `argument` is what the kernel's header requires for this request.
pub unsafe fn request_device(
    minor: Option<u32>,
    request: u64,
    argument: *mut c_void,
) -> libc::c_int {
    let call = || {
        let process = process().ok_or(Errno::NO_DEVICE)?;
        // SAFETY: promised by the caller.
        let request = unsafe { Request::new(request, argument) };
        match (Device::from_minor(minor, process)?, request.driver_type) {
            (Device::Compute, b'K') => compute_call(process, &request),
            (Device::Render(gpu), b'd') => render::call(process, gpu, &request),
            _ => Err(Errno::NO_CALL),
        }
    };
    call().map_or_else(Errno::to_return_value, |()| 0)
}
