//! Packets of compute queues (HSA Runtime specification 1.2, "Architected Queuing Language
//! packets"; `hsa_ext_amd.h` for AMD's own packets).

use crate::events::Events;
use crate::map::{GpuAddress, View, Violation};
use crate::pm4::IndirectBuffer;
use crate::queue::{Queue, Ring};
use crate::signal::Signal;
use flipwave_device::KernelPacket;
use std::sync::atomic::{AtomicU16, Ordering};

/// Size of a packet in bytes.
const SIZE: u64 = Ring::MIN_BYTES;

// Packet types.
const VENDOR: u8 = 0;
const INVALID: u8 = 1;
const BARRIER_AND: u8 = 3;
const BARRIER_OR: u8 = 5;

// Formats of vendor packets.
/// A PM4 packet that names an indirect buffer (`hsa_ven_amd_aqlprofile.h`, `amd_aql_pm4_ib`).
const PM4: u8 = 1;
/// `HSA_AMD_PACKET_TYPE_BARRIER_VALUE`.
const BARRIER_VALUE: u8 = 2;

/// A packet that is ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Number of the packet in its queue.
    pub number: u64,
    pub address: GpuAddress,
    pub work: Work,
}

/// Work of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Dispatch of a kernel.
    Kernel,
    /// Execution of PM4 packets.
    Commands(IndirectBuffer),
    /// No work: the packet only orders others, or flushes caches, which the embedded GPU does not
    /// have.
    Nothing,
    /// The packet has an unknown type.
    Unknown,
}

/// Reasons for which the next packet of a queue is not ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotReady {
    /// The packet waits for the host: it is not written yet, or for signals of a barrier.
    Host {
        /// Number of the packet in its queue.
        number: u64,
    },
    /// The packet waits for a value of a signal that anybody may write at any time.
    Value,
    /// The queue, the packet or a signal that it names is not in memory that the GPU may access.
    Invalid(Violation),
}

impl From<Violation> for NotReady {
    fn from(violation: Violation) -> NotReady {
        NotReady::Invalid(violation)
    }
}

/// Start and end time of a packet's execution, in ticks of the GPU's clock.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    pub start: u64,
    pub end: u64,
}

/// The next packet of a queue that has one.
///
/// # Errors
/// Returns the reason if the packet is not ready.
pub fn next(queue: &Queue) -> Result<Packet, NotReady> {
    let view = queue.view();
    let number = queue.read_index(&view)?;
    let address = queue.ring.address(number.wrapping_mul(SIZE));
    let host = Err(NotReady::Host { number });
    let kind = header(&view, address)?.load(Ordering::Acquire) as u8;
    let work = match kind {
        INVALID => return host,
        KernelPacket::TYPE => Work::Kernel,
        VENDOR => {
            let format = vendor_format(&view, address)?;
            if format == BARRIER_VALUE && !is_value_reached(&view, address)? {
                return Err(NotReady::Value);
            }
            if format == PM4 { commands(&view, address)? } else { Work::Nothing }
        }
        BARRIER_AND if dependencies(&view, address)?.iter().any(|value| *value != 0) => {
            return host;
        }
        BARRIER_OR if !is_any_zero(&dependencies(&view, address)?) => return host,
        BARRIER_AND | BARRIER_OR => Work::Nothing,
        _ => Work::Unknown,
    };
    Ok(Packet { number, address, work })
}

/// Frees a packet's slot in the ring and decrements its completion signal.
///
/// # Errors
/// [`Violation`] if the GPU may not access the queue or the signal; the signal is unchanged then.
pub fn retire(
    queue: &Queue,
    packet: &Packet,
    times: Times,
    events: &Events,
) -> Result<(), Violation> {
    const COMPLETION_SIGNAL: u64 = 56;
    let view = queue.view();
    let handle = word(&view, packet.address, COMPLETION_SIGNAL)?;
    let signal = Signal::from_handle(&view, handle)?;
    header(&view, packet.address)?.store(INVALID.into(), Ordering::Release);
    queue.set_read_index(&view, packet.number.wrapping_add(1))?;
    if let Some(signal) = signal {
        signal.set_times(times.start, times.end)?;
        signal.decrement(events)?;
    }
    Ok(())
}

fn header<'a>(view: &'a View<'_>, packet: GpuAddress) -> Result<&'a AtomicU16, Violation> {
    view.word16(packet)
}

fn word(view: &View<'_>, packet: GpuAddress, offset: u64) -> Result<u64, Violation> {
    Ok(view.word64(packet.plus(offset))?.load(Ordering::Acquire))
}

/// Values of the signals that a barrier packet depends on.
fn dependencies(view: &View<'_>, packet: GpuAddress) -> Result<Vec<i64>, Violation> {
    let value = |index: u64| {
        let signal = Signal::from_handle(view, word(view, packet, index * 8)?)?;
        Ok(signal.map(|signal| signal.value()))
    };
    (1..=5).map(value).filter_map(Result::transpose).collect()
}

/// Returns `true` if one of the values is 0; also `true` without any value.
fn is_any_zero(values: &[i64]) -> bool {
    values.is_empty() || values.contains(&0)
}

fn vendor_format(view: &View<'_>, packet: GpuAddress) -> Result<u8, Violation> {
    Ok((word(view, packet, 0)? >> 16) as u8)
}

/// Work of a vendor packet with a PM4 packet in its second dword and the following ones.
fn commands(view: &View<'_>, packet: GpuAddress) -> Result<Work, Violation> {
    let mut dwords = [0; IndirectBuffer::PACKET_DWORDS];
    for (dword, offset) in dwords.iter_mut().zip((4..).step_by(4)) {
        *dword = view.word32(packet.plus(offset))?.load(Ordering::Acquire);
    }
    Ok(IndirectBuffer::decode(&dwords).map_or(Work::Unknown, Work::Commands))
}

/// Returns `true` if the signal of a barrier-value packet has the value that the packet waits for.
fn is_value_reached(view: &View<'_>, packet: GpuAddress) -> Result<bool, Violation> {
    let word = |offset| word(view, packet, offset);
    let Some(signal) = Signal::from_handle(view, word(8)?)? else { return Ok(true) };
    let (expected, mask) = (word(16)? as i64, word(24)? as i64);
    let value = signal.value() & mask;
    Ok(match word(32)? as u32 {
        0 => value == expected,
        1 => value != expected,
        2 => value < expected,
        _ => value >= expected,
    })
}
