//! Tests of calls, on a machine whose engines run.

use super::abi::*;
use super::render_abi::{
    DeviceInfo, GemClose, GemCreate, GemMetadata, GemOp, GemVa, Info, PrimeHandle, Version,
};
use super::*;
use crate::dispatch::{Board, CountedKernels, DispatchDriver};
use crate::memory::PAGE;
use flipwave_device::DeviceError;
use flipwave_sim::{EmbeddedGpu, Execution, Progress};
use std::sync::atomic::{AtomicU16, AtomicU64, Ordering};

mod memory;
mod pm4;
mod queues;
mod render;

/// Executes nothing.
struct IdleDriver;

impl DispatchDriver for IdleDriver {
    fn advance(
        &mut self,
        _: &mut EmbeddedGpu,
        _: &mut Execution,
        _: u64,
    ) -> Result<Progress, DeviceError> {
        Ok(Progress::Paused)
    }
}

fn process(gpus: usize) -> Process {
    let board = |_| Board {
        target: "gfx90a".parse().expect("a target"),
        driver: Box::new(IdleDriver) as Box<dyn DispatchDriver>,
        counted: CountedKernels::All,
    };
    let machine = crate::start((0..gpus).map(board).collect(), None, |error| panic!("{error}"));
    Process::new(machine.expect("a machine"))
}

/// Makes a call as a program does that was built with the current header.
fn call<T: Plain>(process: &Process, call: Call, arguments: &mut T) -> Result<(), Errno> {
    call_with_size(process, call, arguments, size_of::<T>())
}

/// Makes a call as a program does whose header has `bytes` bytes of the arguments.
fn call_with_size<T: Plain>(
    process: &Process,
    call: Call,
    arguments: &mut T,
    bytes: usize,
) -> Result<(), Errno> {
    let number = 3 << 30 | (bytes as u64) << 16 | u64::from(b'K') << 8 | call as u64;
    // SAFETY: the arguments have the size of the request.
    let request = unsafe { Request::new(number, (&raw mut *arguments).cast()) };
    compute_call(process, &request)
}

/// Zeroed arguments.
fn zero<T: Plain>() -> T {
    // SAFETY: every bit pattern is a `T`.
    unsafe { std::mem::zeroed() }
}

const GPU: u32 = GPU_ID + 1;
const VRAM: u32 = 1;
const GTT: u32 = 2;
const USERPTR: u32 = 4;

fn allocate(process: &Process, va_addr: u64, size: u64, flags: u32) -> Result<AllocMemory, Errno> {
    let mut args = AllocMemory { va_addr, size, gpu_id: GPU, flags, ..zero() };
    call(process, Call::AllocMemory, &mut args).map(|()| args)
}

/// Maps or unmaps memory; the number of GPUs for which that succeeded.
fn map(process: &Process, operation: Call, handle: u64, gpus: &[u32]) -> Result<u32, Errno> {
    let device_ids_array_ptr = gpus.as_ptr() as u64;
    let n_devices = gpus.len() as u32;
    let mut args = MapMemory { handle, device_ids_array_ptr, n_devices, ..zero() };
    call(process, operation, &mut args).map(|()| args.n_success)
}

#[test]
fn the_system_is_described() {
    let process = &process(2);
    let mut version: GetVersion = zero();
    call(process, Call::GetVersion, &mut version).unwrap();
    assert_eq!([version.major_version, version.minor_version], [1, 17]);
    let clocks = |gpu_id| {
        let mut args = GetClockCounters { gpu_id, ..zero() };
        call(process, Call::GetClockCounters, &mut args).unwrap();
        assert_eq!(args.system_clock_freq, 1_000_000_000);
        args
    };
    let first = clocks(GPU).gpu_clock_counter;
    std::thread::sleep(std::time::Duration::from_millis(1));
    assert!(clocks(GPU).gpu_clock_counter > first);
    // The host's node has no `gpu_id` and no GPU clock.
    let host = clocks(0);
    assert!(host.gpu_clock_counter == 0 && host.system_clock_counter > first);
    let mut apertures: [ProcessDeviceApertures; 3] = std::array::from_fn(|_| zero());
    let mut args = GetProcessAperturesNew {
        kfd_process_device_apertures_ptr: apertures.as_mut_ptr() as u64,
        num_of_nodes: 3,
        pad: 0,
    };
    call(process, Call::GetProcessAperturesNew, &mut args).unwrap();
    assert_eq!(args.num_of_nodes, 2);
    assert_eq!(apertures.map(|gpu| gpu.gpu_id), [GPU, GPU + 1, 0]);
    let first = apertures[0];
    assert!(first.lds_base >> 32 != 0 && first.gpuvm_limit > first.gpuvm_base);
    let mut wrong = GetAvailableMemory { gpu_id: 1, ..zero() };
    assert_eq!(call(process, Call::AvailableMemory, &mut wrong), Err(Errno::INVALID));
}

#[test]
fn arguments_of_older_and_newer_headers_are_accepted() {
    let process = &process(1);
    // A field that the program does not have is not written.
    let mut version = GetVersion { major_version: 7, minor_version: 7 };
    call_with_size(process, Call::GetVersion, &mut version, 4).unwrap();
    assert_eq!([version.major_version, version.minor_version], [1, 7]);
    let mut longer = [7u32; 4];
    let number = 2 << 30 | 16 << 16 | u64::from(b'K') << 8 | Call::GetVersion as u64;
    // SAFETY: the arguments have the size of the request.
    let request = unsafe { Request::new(number, longer.as_mut_ptr().cast()) };
    compute_call(process, &request).unwrap();
    assert_eq!(longer, [1, 17, 7, 7]);
    // SAFETY: null is no memory.
    let request = unsafe { Request::new(number, std::ptr::null_mut()) };
    assert_eq!(compute_call(process, &request), Err(Errno::FAULT));
    // Arguments are copied back only if the request says so.
    let mut version = GetVersion { major_version: 7, minor_version: 7 };
    let number = 1 << 30 | 8 << 16 | u64::from(b'K') << 8 | Call::GetVersion as u64;
    // SAFETY: the arguments have the size of the request.
    let request = unsafe { Request::new(number, (&raw mut version).cast()) };
    compute_call(process, &request).unwrap();
    assert_eq!([version.major_version, version.minor_version], [7, 7]);
    // SAFETY: null is no memory.
    let request = unsafe { Request::new(u64::from(b'K') << 8 | 0xff, std::ptr::null_mut()) };
    assert_eq!(compute_call(process, &request), Err(Errno::NO_CALL));
}

fn create_event(process: &Process, event_type: u32) -> CreateEvent {
    let mut args = CreateEvent { event_type, auto_reset: 1, ..zero() };
    call(process, Call::CreateEvent, &mut args).expect("an event");
    args
}

/// Waits for a millisecond; whether the event was signaled, and its data.
fn wait(process: &Process, event_id: u32) -> Result<(bool, EventData), Errno> {
    let mut data = EventData { event_id, ..zero() };
    let events_ptr = (&raw mut data) as u64;
    let mut args = WaitEvents { events_ptr, num_events: 1, timeout: 1, ..zero() };
    call(process, Call::WaitEvents, &mut args).map(|()| (args.wait_result == 0, data))
}

#[test]
fn a_signaled_event_ends_one_wait() {
    let process = &process(1);
    let event = create_event(process, 0);
    assert!(event.event_page_offset != 0 && event.event_trigger_data == event.event_id);
    let is_signaled = || wait(process, event.event_id).map(|(is_signaled, _)| is_signaled);
    assert_eq!(is_signaled(), Ok(false));
    let id = event.event_id;
    call(process, Call::SetEvent, &mut SetEvent { event_id: id, pad: 0 }).unwrap();
    assert_eq!([is_signaled(), is_signaled()], [Ok(true), Ok(false)]);
    call(process, Call::SetEvent, &mut SetEvent { event_id: id, pad: 0 }).unwrap();
    call(process, Call::ResetEvent, &mut ResetEvent { event_id: id, pad: 0 }).unwrap();
    assert_eq!(is_signaled(), Ok(false));
    let mut gone = DestroyEvent { event_id: id, pad: 0 };
    call(process, Call::DestroyEvent, &mut gone).unwrap();
    assert_eq!(call(process, Call::DestroyEvent, &mut gone), Err(Errno::INVALID));
    assert_eq!(is_signaled(), Err(Errno::INVALID));
    let mut no_page = CreateEvent { event_page_offset: 77, ..zero() };
    assert_eq!(call(process, Call::CreateEvent, &mut no_page), Err(Errno::INVALID));
}

#[test]
fn an_invalid_pointer_is_a_fault_and_no_crash() {
    let process = &process(1);
    const UNMAPPED: u64 = 0x10;
    for (number, bytes) in [(Call::GetVersion, 8u64), (Call::AllocMemory, 40), (Call::Svm, 32)] {
        let number = 3 << 30 | bytes << 16 | u64::from(b'K') << 8 | number as u64;
        // SAFETY: there is no memory at this address.
        let request = unsafe { Request::new(number, UNMAPPED as *mut c_void) };
        assert_eq!(compute_call(process, &request), Err(Errno::FAULT));
    }
    let handle = allocate(process, 0x1000_0000, PAGE, VRAM).unwrap().handle;
    let mut ids = MapMemory { handle, device_ids_array_ptr: UNMAPPED, n_devices: 1, ..zero() };
    assert_eq!(call(process, Call::MapMemory, &mut ids), Err(Errno::FAULT));
    let mut events = WaitEvents { events_ptr: UNMAPPED, num_events: 1, timeout: 1, ..zero() };
    assert_eq!(call(process, Call::WaitEvents, &mut events), Err(Errno::FAULT));
    let mut apertures = GetProcessAperturesNew {
        kfd_process_device_apertures_ptr: UNMAPPED,
        num_of_nodes: 1,
        pad: 0,
    };
    assert_eq!(call(process, Call::GetProcessAperturesNew, &mut apertures), Err(Errno::FAULT));
    // The refused calls had no effect.
    assert_eq!(map(process, Call::MapMemory, handle, &[GPU]), Ok(1));
}
