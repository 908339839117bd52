//! Requests as programs make them, on a machine whose engines run.

use super::abi::*;
use super::render_abi::{DeviceInfo, GemClose, GemVa, Info, PrimeHandle, Version};
use super::*;
use crate::driver::Driver;
use crate::memory::PAGE;
use flipwave_device::DeviceError;
use flipwave_sim::{EmbeddedGpu, Execution, Progress};
use std::sync::atomic::{AtomicU16, AtomicU64, Ordering};

mod memory;
mod queues;
mod render;

/// Runs nothing.
struct Nothing;

impl Driver for Nothing {
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
    let targets = vec!["gfx90a".parse().expect("a target"); gpus];
    let machine = crate::start(&targets, Box::new(Nothing), None, |error| panic!("{error}"));
    Process::new(machine.expect("a machine"))
}

/// Makes a request as a program of today's header would.
fn call<T: Plain>(process: &Process, call: Call, arguments: &mut T) -> Result<(), Errno> {
    sized(process, call, arguments, size_of::<T>())
}

/// The same by a program whose header has so many bytes of the arguments.
fn sized<T: Plain>(
    process: &Process,
    call: Call,
    arguments: &mut T,
    bytes: usize,
) -> Result<(), Errno> {
    let number = 3 << 30 | (bytes as u64) << 16 | u64::from(b'K') << 8 | call as u64;
    // SAFETY: as many bytes as it says.
    let request = unsafe { Request::new(number, (&raw mut *arguments).cast()) };
    compute(process, &request)
}

/// Arguments that are all 0.
fn zero<T: Plain>() -> T {
    // SAFETY: any bits are a `T`.
    unsafe { std::mem::zeroed() }
}

const GPU: u32 = GPU_ID + 1;
const VRAM: u32 = 1;
const GTT: u32 = 2;
const USERPTR: u32 = 4;

fn allocate(process: &Process, va_addr: u64, size: u64, flags: u32) -> Result<AllocMemory, Errno> {
    let mut own = AllocMemory { va_addr, size, gpu_id: GPU, flags, ..zero() };
    call(process, Call::AllocMemory, &mut own).map(|()| own)
}

fn map(process: &Process, way: Call, handle: u64, gpus: &[u32]) -> Result<u32, Errno> {
    let device_ids_array_ptr = gpus.as_ptr() as u64;
    let n_devices = gpus.len() as u32;
    let mut own = MapMemory { handle, device_ids_array_ptr, n_devices, ..zero() };
    call(process, way, &mut own).map(|()| own.n_success)
}

#[test]
fn a_program_learns_what_there_is() {
    let process = &process(2);
    let mut version: GetVersion = zero();
    call(process, Call::GetVersion, &mut version).unwrap();
    assert_eq!([version.major_version, version.minor_version], [1, 17]);
    let clocks = |gpu_id| {
        let mut own = GetClockCounters { gpu_id, ..zero() };
        call(process, Call::GetClockCounters, &mut own).unwrap();
        assert_eq!(own.system_clock_freq, 1_000_000_000);
        own
    };
    let first = clocks(GPU).gpu_clock_counter;
    std::thread::sleep(std::time::Duration::from_millis(1));
    assert!(clocks(GPU).gpu_clock_counter > first);
    // The host's node has no number, and no GPU's clock.
    let host = clocks(0);
    assert!(host.gpu_clock_counter == 0 && host.system_clock_counter > first);
    let mut places: [ProcessDeviceApertures; 3] = zero_array();
    let mut own = GetProcessAperturesNew {
        kfd_process_device_apertures_ptr: places.as_mut_ptr() as u64,
        num_of_nodes: 3,
        pad: 0,
    };
    call(process, Call::GetProcessAperturesNew, &mut own).unwrap();
    assert_eq!(own.num_of_nodes, 2);
    assert_eq!(places.map(|place| place.gpu_id), [GPU, GPU + 1, 0]);
    assert!(places[0].lds_base >> 32 != 0 && places[0].gpuvm_limit > places[0].gpuvm_base);
    let mut wrong = GetAvailableMemory { gpu_id: 1, ..zero() };
    assert_eq!(call(process, Call::AvailableMemory, &mut wrong), Err(Errno::INVALID));
}

fn zero_array<T: Plain, const N: usize>() -> [T; N] {
    std::array::from_fn(|_| zero())
}

#[test]
fn arguments_may_be_those_of_an_older_header_or_of_a_newer_one() {
    let process = &process(1);
    // A field that the program does not have is 0, and is not written.
    let mut version = GetVersion { major_version: 7, minor_version: 7 };
    sized(process, Call::GetVersion, &mut version, 4).unwrap();
    assert_eq!([version.major_version, version.minor_version], [1, 7]);
    let mut longer = [7u32; 4];
    let number = 2 << 30 | 16 << 16 | u64::from(b'K') << 8 | Call::GetVersion as u64;
    // SAFETY: as many bytes as it says.
    let request = unsafe { Request::new(number, longer.as_mut_ptr().cast()) };
    compute(process, &request).unwrap();
    assert_eq!(longer, [1, 17, 7, 7]);
    // SAFETY: none is read.
    let request = unsafe { Request::new(number, std::ptr::null_mut()) };
    assert_eq!(compute(process, &request), Err(Errno::FAULT));
    // What is not answered is not written.
    let mut version = GetVersion { major_version: 7, minor_version: 7 };
    let number = 1 << 30 | 8 << 16 | u64::from(b'K') << 8 | Call::GetVersion as u64;
    // SAFETY: as many bytes as it says.
    let request = unsafe { Request::new(number, (&raw mut version).cast()) };
    compute(process, &request).unwrap();
    assert_eq!([version.major_version, version.minor_version], [7, 7]);
    // SAFETY: as above.
    let request = unsafe { Request::new(u64::from(b'K') << 8 | 0xff, std::ptr::null_mut()) };
    assert_eq!(compute(process, &request), Err(Errno::NO_CALL));
}

fn create_event(process: &Process, event_type: u32) -> CreateEvent {
    let mut own = CreateEvent { event_type, auto_reset: 1, ..zero() };
    call(process, Call::CreateEvent, &mut own).expect("an event");
    own
}

/// Waits for a millisecond; whether the event happened.
fn wait(process: &Process, event_id: u32) -> Result<(bool, EventData), Errno> {
    let mut data = EventData { event_id, ..zero() };
    let events_ptr = (&raw mut data) as u64;
    let mut own = WaitEvents { events_ptr, num_events: 1, timeout: 1, ..zero() };
    call(process, Call::WaitEvents, &mut own).map(|()| (own.wait_result == 0, data))
}

#[test]
fn who_waits_for_an_event_is_woken_once() {
    let process = &process(1);
    let event = create_event(process, 0);
    assert!(event.event_page_offset != 0 && event.event_trigger_data == event.event_id);
    let happened = || wait(process, event.event_id).map(|(happened, _)| happened);
    assert_eq!(happened(), Ok(false));
    let id = event.event_id;
    call(process, Call::SetEvent, &mut SetEvent { event_id: id, pad: 0 }).unwrap();
    assert_eq!([happened(), happened()], [Ok(true), Ok(false)]);
    call(process, Call::SetEvent, &mut SetEvent { event_id: id, pad: 0 }).unwrap();
    call(process, Call::ResetEvent, &mut ResetEvent { event_id: id, pad: 0 }).unwrap();
    assert_eq!(happened(), Ok(false));
    let mut gone = DestroyEvent { event_id: id, pad: 0 };
    call(process, Call::DestroyEvent, &mut gone).unwrap();
    assert_eq!(call(process, Call::DestroyEvent, &mut gone), Err(Errno::INVALID));
    assert_eq!(happened(), Err(Errno::INVALID));
    let mut no_page = CreateEvent { event_page_offset: 77, ..zero() };
    assert_eq!(call(process, Call::CreateEvent, &mut no_page), Err(Errno::INVALID));
}

/// As the kernel answers it, which does not end a program for what it asks.
#[test]
fn a_pointer_that_leads_nowhere_is_a_fault() {
    let process = &process(1);
    const NOWHERE: u64 = 0x10;
    for (number, bytes) in [(Call::GetVersion, 8u64), (Call::AllocMemory, 40), (Call::Svm, 32)] {
        let number = 3 << 30 | bytes << 16 | u64::from(b'K') << 8 | number as u64;
        // SAFETY: there is no memory.
        let request = unsafe { Request::new(number, NOWHERE as *mut c_void) };
        assert_eq!(compute(process, &request), Err(Errno::FAULT));
    }
    let own = allocate(process, 0x1000_0000, PAGE, VRAM).unwrap();
    let mut ids =
        MapMemory { handle: own.handle, device_ids_array_ptr: NOWHERE, n_devices: 1, ..zero() };
    assert_eq!(call(process, Call::MapMemory, &mut ids), Err(Errno::FAULT));
    let mut events = WaitEvents { events_ptr: NOWHERE, num_events: 1, timeout: 1, ..zero() };
    assert_eq!(call(process, Call::WaitEvents, &mut events), Err(Errno::FAULT));
    let mut places = GetProcessAperturesNew {
        kfd_process_device_apertures_ptr: NOWHERE,
        num_of_nodes: 1,
        pad: 0,
    };
    assert_eq!(call(process, Call::GetProcessAperturesNew, &mut places), Err(Errno::FAULT));
    // What was refused has done nothing.
    assert_eq!(map(process, Call::MapMemory, own.handle, &[GPU]), Ok(1));
}
