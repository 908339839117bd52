//! Packets of the application's queues.

use super::Version;
use super::code::registry;
use super::gate::{Job, gate};
use super::runtime::{RUNTIME, Runtime};
use super::signal::Signal;
use crate::HsaError;
use flipwave_device::KernelPacket;
use hsa_sys::{
    AqlPacket, HSA_FENCE_ACQUIRE_SYSTEM, HSA_FENCE_RELEASE_SYSTEM, HSA_PACKET_HEADER_BARRIER,
    HSA_PACKET_TYPE_KERNEL_DISPATCH, hsa_amd_queue_intercept_packet_writer, hsa_signal_t,
};
use std::ffi::c_void;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// State of an intercepted queue.
#[derive(Debug, Default)]
pub struct QueueState {
    /// Maximum number of dispatches in flight. Their packets fill at most a quarter of the ring: if the
    /// ring is full, the runtime may reorder packets.
    limit: u32,
    in_flight: AtomicU32,
    /// Ended jobs whose last barrier packet may not have executed yet. Their signals must stay alive.
    retired: Mutex<Vec<Arc<Job>>>,
}

impl QueueState {
    /// Creates the state of a queue with a ring of `packets` packets.
    pub fn new(packets: u32) -> QueueState {
        QueueState { limit: (packets / 16).max(1), ..QueueState::default() }
    }

    /// Waits until another dispatch fits, and counts it as in flight.
    fn enter(&self) {
        while self.in_flight.load(Ordering::Acquire) >= self.limit {
            std::thread::sleep(Duration::from_micros(50));
        }
        self.in_flight.fetch_add(1, Ordering::AcqRel);
    }

    /// Retires an ended job.
    pub fn retire(&self, job: Arc<Job>) {
        self.retired.lock().unwrap_or_else(PoisonError::into_inner).push(job);
        self.in_flight.fetch_sub(1, Ordering::AcqRel);
    }

    /// Drops the retired jobs. Called when all their packets are done.
    pub fn drop_retired(&self) {
        let retired =
            std::mem::take(&mut *self.retired.lock().unwrap_or_else(PoisonError::into_inner));
        drop(retired);
    }
}

/// Handler of packets submitted to an intercepted queue.
///
/// # Safety
/// The runtime must call it as specified in its header; `data` must point to a [`QueueState`] in a live
/// [`Arc`].
pub unsafe extern "C" fn on_packets(
    packets: *const c_void,
    count: u64,
    _: u64,
    data: *mut c_void,
    writer: hsa_amd_queue_intercept_packet_writer,
) {
    // SAFETY: the runtime passes `count` packets.
    let packets =
        unsafe { std::slice::from_raw_parts(packets.cast::<AqlPacket>(), count as usize) };
    let data = data.cast::<QueueState>().cast_const();
    // SAFETY: `data` points into a live `Arc`, of which this creates another reference.
    let queue = unsafe {
        Arc::increment_strong_count(data);
        Arc::from_raw(data)
    };
    let mut written = Vec::with_capacity(packets.len());
    for packet in packets {
        let expanded = RUNTIME.get().and_then(|runtime| expand(runtime, &queue, packet));
        match expanded {
            Some(expanded) => written.extend(expanded),
            None => written.push(*packet),
        }
    }
    // SAFETY: pointer and number of the packets. The writer must be called exactly once.
    unsafe { writer(written.as_ptr().cast(), written.len() as u64) };
}

/// Returns the packets that replace an intercepted dispatch; `None` for other packets.
fn expand(
    runtime: &Runtime,
    queue: &Arc<QueueState>,
    packet: &AqlPacket,
) -> Option<[AqlPacket; 4]> {
    if packet.kind() != HSA_PACKET_TYPE_KERNEL_DISPATCH {
        return None;
    }
    let submitted = KernelPacket::from_bytes(&packet.0);
    let kernel = registry().kernel(submitted.kernel)?;
    kernel.load_alternate_once(runtime);
    let version = if kernel.has_alternate() {
        runtime.interceptor.version(kernel.code, &kernel.name, &submitted)
    } else {
        Version::Primary
    };
    let new = kernel.packet(submitted, version);
    queue.enter();
    // Without signals the dispatch runs unchanged and is not intercepted.
    let job = prepare(queue, kernel, version, new).ok()?;
    let none = hsa_signal_t::default();
    let mut dispatch = *packet;
    put(&mut dispatch, 24, &new.private_bytes.to_le_bytes());
    put(&mut dispatch, 32, &new.kernel.0.to_le_bytes());
    // System-scope fences: the host writes variables of the hooks before and reads them afterwards.
    let fences = HSA_FENCE_ACQUIRE_SYSTEM | HSA_FENCE_RELEASE_SYSTEM | HSA_PACKET_HEADER_BARRIER;
    dispatch.set_header(u16::from(HSA_PACKET_TYPE_KERNEL_DISPATCH) | fences);
    dispatch.set_completion(job.done.handle());
    Some([
        AqlPacket::barrier(&[], job.ready.handle()),
        AqlPacket::barrier(&[job.go.handle()], none),
        dispatch,
        AqlPacket::barrier(&[job.over.handle()], packet.completion()),
    ])
}

/// Creates a job with its signals and registers it at the gate.
fn prepare(
    queue: &Arc<QueueState>,
    kernel: Arc<super::code::LoadedKernel>,
    version: Version,
    packet: KernelPacket,
) -> Result<Arc<Job>, HsaError> {
    let signals = || Ok((Signal::new()?, Signal::new()?, Signal::new()?, Signal::new()?));
    let (ready, go, done, over) = signals()?;
    let queue = Arc::clone(queue);
    let job = Arc::new(Job { kernel, version, packet, queue, ready, go, done, over });
    gate().register(&job)?;
    Ok(job)
}

fn put(packet: &mut AqlPacket, at: usize, bytes: &[u8]) {
    packet.0[at..at + bytes.len()].copy_from_slice(bytes);
}
