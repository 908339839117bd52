//! The packets of the application's queues.

use super::gate::Job;
use super::signal::Signal;
use super::{TOOLS, Tools, Version};
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

/// A queue of the application.
#[derive(Debug, Default)]
pub struct QueueState {
    /// The most dispatches that may be on their way: those of a quarter of the ring. The runtime
    /// may put a packet that finds no room after later ones.
    limit: u32,
    under_way: AtomicU32,
    /// Jobs whose last barrier may not have been reached yet: their signals have to stay.
    retired: Mutex<Vec<Arc<Job>>>,
}

impl QueueState {
    /// That of a queue with this many packets.
    pub fn new(packets: u32) -> QueueState {
        QueueState { limit: (packets / 16).max(1), ..QueueState::default() }
    }

    /// Waits until there is room for one more dispatch.
    fn enter(&self) {
        while self.under_way.load(Ordering::Acquire) >= self.limit {
            std::thread::sleep(Duration::from_micros(50));
        }
        self.under_way.fetch_add(1, Ordering::AcqRel);
    }

    /// A job has ended.
    pub fn retire(&self, job: Arc<Job>) {
        self.retired.lock().unwrap_or_else(PoisonError::into_inner).push(job);
        self.under_way.fetch_sub(1, Ordering::AcqRel);
    }

    /// All packets before a new job are done.
    pub fn all_before_is_done(&self) {
        let done =
            std::mem::take(&mut *self.retired.lock().unwrap_or_else(PoisonError::into_inner));
        drop(done);
    }
}

/// Is shown packets on their way into a queue.
///
/// # Safety
/// The runtime calls it as the header says; `data` is a [`QueueState`] of an [`Arc`] that lives.
pub unsafe extern "C" fn on_packets(
    packets: *const c_void,
    count: u64,
    _: u64,
    data: *mut c_void,
    writer: hsa_amd_queue_intercept_packet_writer,
) {
    // SAFETY: there are this many packets, the runtime says.
    let packets =
        unsafe { std::slice::from_raw_parts(packets.cast::<AqlPacket>(), count as usize) };
    let data = data.cast::<QueueState>().cast_const();
    // SAFETY: `data` is of an `Arc`, of which this makes one more.
    let queue = unsafe {
        Arc::increment_strong_count(data);
        Arc::from_raw(data)
    };
    let mut written = Vec::with_capacity(packets.len());
    for packet in packets {
        let all = TOOLS.get().and_then(|tools| expand(tools, &queue, packet));
        match all {
            Some(all) => written.extend(all),
            None => written.push(*packet),
        }
    }
    // SAFETY: packets, and the number of them. It may be called only once.
    unsafe { writer(written.as_ptr().cast(), written.len() as u64) };
}

/// The packets in place of a dispatch that passes the gate; nothing for what does not.
fn expand(tools: &Tools, queue: &Arc<QueueState>, packet: &AqlPacket) -> Option<[AqlPacket; 4]> {
    if packet.kind() != HSA_PACKET_TYPE_KERNEL_DISPATCH {
        return None;
    }
    let asked = KernelPacket::from_bytes(&packet.0);
    let kernel = tools.registry().kernel(asked.kernel)?;
    kernel.meet(tools);
    let version = match kernel.has_other() {
        true => tools.interceptor.version(kernel.code, &kernel.name),
        false => Version::Named,
    };
    let new = kernel.packet(asked, version);
    queue.enter();
    // Without signals the dispatch runs as it is, and is not seen.
    let job = prepare(tools, queue, kernel, version, new).ok()?;
    let none = hsa_signal_t::default();
    let mut dispatch = *packet;
    put(&mut dispatch, 24, &new.private_bytes.to_le_bytes());
    put(&mut dispatch, 32, &new.kernel.0.to_le_bytes());
    // The host has written variables of the hooks, and will read them.
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

fn prepare(
    tools: &Tools,
    queue: &Arc<QueueState>,
    kernel: Arc<super::code::LoadedKernel>,
    version: Version,
    packet: KernelPacket,
) -> Result<Arc<Job>, HsaError> {
    let signals = || Ok((Signal::new()?, Signal::new()?, Signal::new()?, Signal::new()?));
    let (ready, go, done, over) = signals()?;
    let queue = Arc::clone(queue);
    let job = Arc::new(Job { kernel, version, packet, queue, ready, go, done, over });
    tools.gate.expect(&job)?;
    Ok(job)
}

fn put(packet: &mut AqlPacket, at: usize, bytes: &[u8]) {
    packet.0[at..at + bytes.len()].copy_from_slice(bytes);
}
