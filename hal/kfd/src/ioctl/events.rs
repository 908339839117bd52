//! Calls for events.

use super::abi::*;
use super::arguments::with_array;
use super::error::Errno;
use super::gpu::GpuNode;
use super::process::Process;
use crate::events::{
    AccessFault, MemoryFault, ReportedAges, ReportedFault, ResetMode, WaitFor, WaitedEvent,
};
use std::cell::RefCell;
use std::time::Duration;

pub fn create(process: &Process, args: &mut CreateEvent) -> Result<(), Errno> {
    // A handle: the program allocates the page in which hardware notes the signaled events.
    if args.event_page_offset != 0 {
        process.buffers.get(args.event_page_offset)?;
    }
    let reset_mode = if args.auto_reset == 0 { ResetMode::Manual } else { ResetMode::Auto };
    let id = process.machine.events.create(args.event_type, reset_mode);
    args.event_id = id.ok_or(Errno::NO_MEMORY)?;
    (args.event_slot_index, args.event_trigger_data) = (args.event_id, args.event_id);
    // Any value but 0 tells the program that events have slots in the page.
    args.event_page_offset = 1 << 32;
    Ok(())
}

pub fn destroy(process: &Process, args: &mut DestroyEvent) -> Result<(), Errno> {
    process.machine.events.destroy(args.event_id).then_some(()).ok_or(Errno::INVALID)
}

pub fn set(process: &Process, args: &mut SetEvent) -> Result<(), Errno> {
    process.machine.events.set(args.event_id).then_some(()).ok_or(Errno::INVALID)
}

pub fn reset(process: &Process, args: &mut ResetEvent) -> Result<(), Errno> {
    process.machine.events.reset(args.event_id).then_some(()).ok_or(Errno::INVALID)
}

thread_local! {
    static REPORTED_AGES: RefCell<ReportedAges> = RefCell::default();
}

// Results of a wait, `KFD_IOC_WAIT_RESULT_*`.
const COMPLETE: u32 = 0;
const TIMEOUT: u32 = 1;

pub fn wait(process: &Process, args: &mut WaitEvents) -> Result<(), Errno> {
    let timeout = (args.timeout != u32::MAX).then(|| Duration::from_millis(args.timeout.into()));
    let wait_for = if args.wait_for_all == 0 { WaitFor::Any } else { WaitFor::All };
    let mut in_time = false;
    // SAFETY: the program's array has `num_events` elements.
    unsafe {
        with_array(args.events_ptr, args.num_events, |elements: &mut [EventData]| {
            let waited = |element: &EventData| WaitedEvent::new(element.event_id, age(element));
            let mut events: Vec<WaitedEvent> = elements.iter().map(waited).collect();
            if !process.machine.events.exist(&events) {
                return Err(Errno::INVALID);
            }
            process.machine.wake_engines();
            // A thread that ends may have no record any more.
            let mut ages = REPORTED_AGES.try_with(RefCell::take).unwrap_or_default();
            in_time = process.machine.events.wait(&mut events, wait_for, timeout, &mut ages);
            let _ = REPORTED_AGES.try_with(|record| record.replace(ages));
            for (element, waited) in elements.iter_mut().zip(&events) {
                store_result(element, waited);
            }
            Ok(())
        })?;
    }
    args.wait_result = if in_time { COMPLETE } else { TIMEOUT };
    Ok(())
}

/// Age of a signal event when the program last looked; 0 if the program does not use ages.
fn age(element: &EventData) -> u64 {
    let failure = element.memory_exception_data.failure;
    let MemoryFailure { NotPresent: low, ReadOnly: high, .. } = failure;
    u64::from(low) | u64::from(high) << 32
}

fn store_result(element: &mut EventData, waited: &WaitedEvent) {
    let data = &mut element.memory_exception_data;
    match waited.fault {
        Some(ReportedFault::Memory(fault)) => *data = memory_exception(fault),
        Some(ReportedFault::Hardware { node }) => {
            data.failure = hardware_exception(GpuNode(node)).into();
        }
        None if waited.age != 0 => {
            let failure = &mut data.failure;
            (failure.NotPresent, failure.ReadOnly) = (waited.age as u32, (waited.age >> 32) as u32);
        }
        None => {}
    }
}

fn memory_exception(fault: MemoryFault) -> MemoryException {
    MemoryException {
        failure: MemoryFailure {
            NotPresent: (fault.reason == AccessFault::NotPresent).into(),
            ReadOnly: (fault.reason == AccessFault::ReadOnly).into(),
            NoExecute: 0,
            imprecise: 0,
        },
        va: fault.address,
        gpu_id: GpuNode(fault.node).id(),
        ErrorType: 0,
    }
}

fn hardware_exception(gpu: GpuNode) -> HardwareException {
    /// The whole GPU is reset (`KFD_HW_EXCEPTION_WHOLE_GPU_RESET`).
    const WHOLE_GPU: u32 = 0;
    /// `KFD_HW_EXCEPTION_GPU_HANG`.
    const HANG: u32 = 0;
    HardwareException { reset_type: WHOLE_GPU, reset_cause: HANG, memory_lost: 1, gpu_id: gpu.id() }
}
