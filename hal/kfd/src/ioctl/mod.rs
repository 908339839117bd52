//! The kernel driver's own interface: what `ioctl` answers on `/dev/kfd` and on render nodes
//! (`linux/kfd_ioctl.h`, `drm/amdgpu_drm.h`). All of the vendor's runtime stands above it, of any
//! version.
//!
//! Arguments are the program's own, as it is this program that calls; but it is the kernel that reads
//! and writes them, so that a pointer in them that leads nowhere is `EFAULT`.

mod abi;
mod buffers;
mod error;
mod events;
mod exchange;
mod files;
mod gpu;
#[cfg(test)]
mod header;
mod management;
mod memory;
mod objects;
mod process;
mod program;
mod queues;
mod render;
mod render_abi;
mod request;
mod share;
mod system;
#[cfg(test)]
mod tests;

use crate::opened::process;
use crate::store::{Mapping, Store};
pub(crate) use gpu::{FIRST_RENDER_MINOR, GPU_ID};
pub(crate) use process::Process;

use abi::Call;
use error::Errno;
use gpu::GpuNode;
use request::Request;
use std::ffi::c_void;

/// A device that the driver gives files for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Device {
    /// `/dev/kfd`.
    Compute,
    /// The render node of the GPU of a node.
    Render(GpuNode),
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

/// Answers a request on the compute device.
fn compute(process: &Process, request: &Request) -> Result<(), Errno> {
    let call = Call::of(request.number).ok_or(Errno::NO_CALL)?;
    match call {
        Call::GetVersion => request.with(system::version),
        Call::GetClockCounters => request.with(|own| system::clocks(process, own)),
        Call::GetProcessAperturesNew => request.with(|own| system::apertures(process, own)),
        Call::AcquireVm => {
            request.with(|own: &mut abi::AcquireVm| process.gpu(own.gpu_id).map(drop))
        }
        Call::GetTileConfig => request.with(|own| system::tile_config(process, own)),
        Call::SetXnackMode => request.with(system::xnack_mode),
        // How caches behave, where private memory is and what traps do: there are none of these
        // caches, private memory is found through the queue, and traps end a dispatch.
        Call::SetMemoryPolicy | Call::SetScratchBackingVa | Call::SetTrapHandler => Ok(()),
        Call::AllocMemory => request.with(|own| memory::allocate(process, own)),
        Call::FreeMemory => request.with(|own| memory::free(process, own)),
        Call::MapMemory => request.with(|own| memory::map(process, own)),
        Call::UnmapMemory => request.with(|own| memory::unmap(process, own)),
        Call::AvailableMemory => request.with(|own| memory::available(process, own)),
        Call::Svm => request.with_array(
            |own: &abi::Svm| own.nattr,
            |own, attributes| memory::shared(process, own, attributes),
        ),
        Call::ExportDmabuf => request.with(|own| exchange::export_file(process, own)),
        Call::GetDmabufInfo => request.with(|own| exchange::describe_file(process, own)),
        Call::ImportDmabuf => request.with(|own| exchange::import_file(process, own)),
        Call::IpcExport => request.with(|own| exchange::export_handle(process, own)),
        Call::IpcImport => request.with(|own| exchange::import_handle(process, own)),
        Call::SmiEvents => request.with(|own: &mut abi::SmiEvents| {
            process.gpu(own.gpuid)?;
            process.listeners.listen(own)
        }),
        Call::CreateQueue => request.with(|own| queues::create(process, own)),
        Call::DestroyQueue => request.with(|own| queues::destroy(process, own)),
        Call::UpdateQueue => request.with(|own| queues::update(process, own)),
        Call::SetCuMask => request.with(|own| queues::set_units(process, own)),
        Call::AllocQueueGws => request.with(|own| queues::give_global_sync(process, own)),
        Call::CreateEvent => request.with(|own| events::create(process, own)),
        Call::DestroyEvent => request.with(|own| events::destroy(process, own)),
        Call::SetEvent => request.with(|own| events::set(process, own)),
        Call::ResetEvent => request.with(|own| events::reset(process, own)),
        Call::WaitEvents => request.with(|own| events::wait(process, own)),
    }
}

/// What a device is made of.
fn store(minor: Option<u32>) -> Result<&'static Store, Errno> {
    let process = process().ok_or(Errno::NO_DEVICE)?;
    Ok(match Device::of(minor, process)? {
        Device::Compute => &process.machine.pages,
        Device::Render(gpu) => gpu.store(&process.machine)?,
    })
}

/// Opens the compute device, or the render node with a minor number: a file, or an error of the
/// system with its sign changed. `flags` are those of `open`.
pub fn open_device(minor: Option<u32>, flags: libc::c_int) -> libc::c_int {
    let open = || store(minor)?.open(flags).map_err(Errno::of);
    open().unwrap_or_else(Errno::answer)
}

/// Maps a part of a device for the program: the place, or an error of the system with its sign
/// changed.
///
/// # Safety
/// As with `mmap`: what is at a fixed place is replaced.
pub unsafe fn map_device(minor: Option<u32>, mapping: Mapping) -> i64 {
    // SAFETY: promised by the caller.
    let map = || unsafe { store(minor)?.map(mapping) }.map_err(Errno::of);
    map().map_or_else(|error| error.answer().into(), |place| place as i64)
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
            (Device::Compute, b'K') => compute(process, &request),
            (Device::Render(gpu), b'd') => render::answer(process, gpu, &request),
            _ => Err(Errno::NO_CALL),
        }
    };
    answer().map_or_else(Errno::answer, |()| 0)
}
