//! The queue through which dispatches go, one at a time.

use super::faults;
use crate::HsaError;
use flipwave_device::{Address, FaultCause, KernelPacket};
use hsa_sys::*;
use std::ffi::c_void;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Packets that the queue has room for.
const PACKETS: u32 = 64;
/// Ticks of the runtime's clock between two looks at what else has happened.
const TICKS: u64 = 100_000;

/// A queue.
#[derive(Debug)]
pub struct Queue {
    functions: Functions,
    queue: *mut hsa_queue_t,
    /// The status that it has stopped with.
    stopped: Box<AtomicU32>,
    /// 1 while a dispatch is under way.
    completion: hsa_signal_t,
}

/// How waiting for a dispatch has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Waited {
    Done,
    Hung,
    Faulted(FaultCause),
}

impl Queue {
    pub fn new(functions: &Functions, gpu: hsa_agent_t) -> Result<Queue, HsaError> {
        let stopped = Box::new(AtomicU32::new(HSA_STATUS_SUCCESS.0));
        let mut completion = hsa_signal_t::default();
        // SAFETY: `completion` outlives the call, which writes one handle to it; no agents are named.
        let status = unsafe { (functions.hsa_signal_create)(0, 0, null(), &mut completion) };
        HsaError::check("hsa_signal_create", status)?;
        let mut queue = Queue { functions: *functions, queue: null_mut(), stopped, completion };
        // SAFETY: what the callback is given lives as long as the queue.
        let status = unsafe {
            (functions.hsa_queue_create)(
                gpu,
                PACKETS,
                HSA_QUEUE_TYPE_MULTI,
                Some(on_error),
                (&raw const *queue.stopped).cast_mut().cast(),
                u32::MAX,
                u32::MAX,
                &mut queue.queue,
            )
        };
        HsaError::check("hsa_queue_create", status)?;
        Ok(queue)
    }

    /// Runs a dispatch.
    pub fn run(
        &self,
        packet: KernelPacket,
        limit: Duration,
        stopped: &AtomicBool,
    ) -> Result<Waited, HsaError> {
        let start = Instant::now();
        self.submit(packet);
        loop {
            // SAFETY: the signal is ours.
            let value = unsafe {
                (self.functions.hsa_signal_wait_scacquire)(
                    self.completion,
                    HSA_SIGNAL_CONDITION_LT,
                    1,
                    TICKS,
                    HSA_WAIT_STATE_BLOCKED,
                )
            };
            let status = hsa_status_t(self.stopped.load(Ordering::Acquire));
            if status != HSA_STATUS_SUCCESS {
                let other = HsaError { call: "the queue", status };
                return faults::cause(status).map(Waited::Faulted).ok_or(other);
            }
            if let Some(cause) = faults::memory_fault() {
                return Ok(Waited::Faulted(cause));
            }
            if value < 1 {
                return Ok(Waited::Done);
            }
            if start.elapsed() > limit || stopped.load(Ordering::Relaxed) {
                return Ok(Waited::Hung);
            }
        }
    }

    fn submit(&self, packet: KernelPacket) {
        let fences =
            HSA_FENCE_ACQUIRE_SYSTEM | HSA_FENCE_RELEASE_SYSTEM | HSA_PACKET_HEADER_BARRIER;
        let header = u16::from(HSA_PACKET_TYPE_KERNEL_DISPATCH) | fences;
        let mut new = AqlPacket(
            KernelPacket { completion: Address(self.completion.handle), ..packet }.to_bytes(),
        );
        new.set_header(HSA_PACKET_TYPE_INVALID.into());
        let functions = &self.functions;
        // SAFETY: the queue has room, since dispatches come one at a time, and the place is ours
        // from the moment that its number is. The header comes last, so that the packet is whole
        // when the GPU takes it.
        unsafe {
            (functions.hsa_signal_store_screlease)(self.completion, 1);
            let number = (functions.hsa_queue_add_write_index_screlease)(self.queue, 1);
            let ring = (*self.queue).base_address.cast::<AqlPacket>();
            let place = ring.add((number % u64::from((*self.queue).size)) as usize);
            place.write(new);
            AtomicU16::from_ptr(place.cast()).store(header, Ordering::Release);
            let doorbell = (*self.queue).doorbell_signal;
            (functions.hsa_signal_store_screlease)(doorbell, number.cast_signed());
        }
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        // SAFETY: made by `new`, and not used any more. A failure leaves them behind.
        unsafe {
            if !self.queue.is_null() {
                let _ = (self.functions.hsa_queue_destroy)(self.queue);
            }
            let _ = (self.functions.hsa_signal_destroy)(self.completion);
        }
    }
}

unsafe extern "C" fn on_error(status: hsa_status_t, _: *mut hsa_queue_t, stopped: *mut c_void) {
    // SAFETY: that of the queue, which lives.
    let stopped = unsafe { &*stopped.cast::<AtomicU32>() };
    stopped.store(status.0, Ordering::Release);
}
