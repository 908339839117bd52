//! The queue to which dispatches are submitted, one at a time.

use super::faults;
use crate::HsaError;
use flipwave_device::{Address, FaultCause, KernelPacket};
use hsa_sys::*;
use std::ffi::c_void;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Size of the queue, in packets.
const PACKETS: u32 = 64;
/// Timeout of one wait, in ticks of the runtime's clock, after which faults and limits are checked.
const TICKS: u64 = 100_000;

/// A queue.
#[derive(Debug)]
pub struct Queue {
    functions: Functions,
    queue: *mut hsa_queue_t,
    /// Status with which the queue has stopped, or success.
    status: Box<AtomicU32>,
    /// Completion signal: 1 while a dispatch is running.
    completion: hsa_signal_t,
}

/// The result of running a dispatch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunResult {
    Completed,
    Hung,
    Faulted(FaultCause),
}

impl Queue {
    pub fn new(functions: &Functions, gpu: hsa_agent_t) -> Result<Queue, HsaError> {
        let queue_status = Box::new(AtomicU32::new(HSA_STATUS_SUCCESS.0));
        let mut completion = hsa_signal_t::default();
        // SAFETY: `completion` outlives the call, which writes one handle to it; the list of consumers
        // is empty.
        let status = unsafe { (functions.hsa_signal_create)(0, 0, null(), &mut completion) };
        HsaError::check("hsa_signal_create", status)?;
        let mut queue =
            Queue { functions: *functions, queue: null_mut(), status: queue_status, completion };
        // SAFETY: the callback's data lives as long as the queue.
        let status = unsafe {
            (functions.hsa_queue_create)(
                gpu,
                PACKETS,
                HSA_QUEUE_TYPE_MULTI,
                Some(on_error),
                (&raw const *queue.status).cast_mut().cast(),
                u32::MAX,
                u32::MAX,
                &mut queue.queue,
            )
        };
        HsaError::check("hsa_queue_create", status)?;
        Ok(queue)
    }

    /// Submits a dispatch and waits until it completes, faults, exceeds `limit`, or `stopped` is set.
    pub fn run(
        &self,
        packet: KernelPacket,
        limit: Duration,
        stopped: &AtomicBool,
    ) -> Result<RunResult, HsaError> {
        let start = Instant::now();
        self.submit(packet);
        loop {
            // SAFETY: the signal belongs to this queue.
            let value = unsafe {
                (self.functions.hsa_signal_wait_scacquire)(
                    self.completion,
                    HSA_SIGNAL_CONDITION_LT,
                    1,
                    TICKS,
                    HSA_WAIT_STATE_BLOCKED,
                )
            };
            let status = hsa_status_t(self.status.load(Ordering::Acquire));
            if status != HSA_STATUS_SUCCESS {
                let error = HsaError { call: "the queue", status };
                return faults::cause(status).map(RunResult::Faulted).ok_or(error);
            }
            if let Some(cause) = faults::take_memory_fault() {
                return Ok(RunResult::Faulted(cause));
            }
            if value < 1 {
                return Ok(RunResult::Completed);
            }
            if start.elapsed() > limit || stopped.load(Ordering::Relaxed) {
                return Ok(RunResult::Hung);
            }
        }
    }

    fn submit(&self, packet: KernelPacket) {
        let fences =
            HSA_FENCE_ACQUIRE_SYSTEM | HSA_FENCE_RELEASE_SYSTEM | HSA_PACKET_HEADER_BARRIER;
        let header = u16::from(HSA_PACKET_TYPE_KERNEL_DISPATCH) | fences;
        let mut packet = AqlPacket(
            KernelPacket { completion: Address(self.completion.handle), ..packet }.to_bytes(),
        );
        packet.set_header(HSA_PACKET_TYPE_INVALID.into());
        let functions = &self.functions;
        // SAFETY: the queue is not full, because dispatches are submitted one at a time, and
        // incrementing the write index reserves the slot. The header is written last, so that the
        // packet is complete when the GPU reads it.
        unsafe {
            (functions.hsa_signal_store_screlease)(self.completion, 1);
            let index = (functions.hsa_queue_add_write_index_screlease)(self.queue, 1);
            let ring = (*self.queue).base_address.cast::<AqlPacket>();
            let slot = ring.add((index % u64::from((*self.queue).size)) as usize);
            slot.write(packet);
            AtomicU16::from_ptr(slot.cast()).store(header, Ordering::Release);
            let doorbell = (*self.queue).doorbell_signal;
            (functions.hsa_signal_store_screlease)(doorbell, index.cast_signed());
        }
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        // SAFETY: created by `new` and no longer used. A failure leaks the handles.
        unsafe {
            if !self.queue.is_null() {
                let _ = (self.functions.hsa_queue_destroy)(self.queue);
            }
            let _ = (self.functions.hsa_signal_destroy)(self.completion);
        }
    }
}

unsafe extern "C" fn on_error(status: hsa_status_t, _: *mut hsa_queue_t, data: *mut c_void) {
    // SAFETY: `data` is the status of the queue, which is alive.
    let queue_status = unsafe { &*data.cast::<AtomicU32>() };
    queue_status.store(status.0, Ordering::Release);
}
