//! Packets of compute queues (HSA Runtime specification 1.2, "Architected Queuing Language packets";
//! `hsa_ext_amd.h` for AMD's own).

use crate::events::Events;
use crate::map::{GpuAddress, View, Violation};
use crate::queue::{Queue, Ring};
use crate::signal::Signal;
use flipwave_device::KernelPacket;
use std::sync::atomic::{AtomicU16, Ordering};

/// Bytes of a packet.
const SIZE: u64 = Ring::LEAST;
const VENDOR: u8 = 0;
const INVALID: u8 = 1;
const BARRIER_AND: u8 = 3;
const BARRIER_OR: u8 = 5;

/// A packet that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Its number in the queue.
    pub number: u64,
    /// Its address.
    pub address: GpuAddress,
    /// What is to be done.
    pub work: Work,
}

/// What a packet asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    Kernel,
    /// A packet that orders others, or that flushes caches which there are not.
    Nothing,
    /// A packet of a type that a GPU does not have.
    Unknown,
}

/// Why the next packet of a queue is not due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// The host has to do something for this packet: it is not written yet, or signals that it
    /// names have other values.
    Host {
        /// Its number in the queue.
        number: u64,
    },
    /// A value that anybody may write at any time.
    Value,
    /// It will never be: the queue, the packet or a signal that it names is not the GPU's.
    Never(Violation),
}

impl From<Violation> for Wait {
    fn from(violation: Violation) -> Wait {
        Wait::Never(violation)
    }
}

/// The next packet of a queue that has one, if nothing that it waits for is missing.
///
/// # Errors
/// What is missing.
pub fn next(queue: &Queue) -> Result<Packet, Wait> {
    let view = queue.view();
    let number = queue.read(&view)?;
    let address = queue.ring.place(number.wrapping_mul(SIZE));
    let host = Err(Wait::Host { number });
    let kind = header(&view, address)?.load(Ordering::Acquire) as u8;
    let work = match kind {
        INVALID => return host,
        KernelPacket::TYPE => Work::Kernel,
        VENDOR => {
            let is_wait = vendor_format(&view, address)? == BARRIER_VALUE;
            if is_wait && !value_is_reached(&view, address)? {
                return Err(Wait::Value);
            }
            Work::Nothing
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

/// Gives the packet's place back and signals whoever waits for it.
///
/// # Errors
/// [`Violation`] if the queue or the signal is not the GPU's; nobody is signalled then.
pub fn retire(
    queue: &Queue,
    packet: &Packet,
    times: (u64, u64),
    events: &Events,
) -> Result<(), Violation> {
    let view = queue.view();
    let signal = Signal::of(&view, word(&view, packet.address, 56)?)?;
    header(&view, packet.address)?.store(INVALID.into(), Ordering::Release);
    queue.set_read(&view, packet.number.wrapping_add(1))?;
    if let Some(signal) = signal {
        signal.set_times(times.0, times.1)?;
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

/// The values of the signals that a barrier packet names.
fn dependencies(view: &View<'_>, packet: GpuAddress) -> Result<Vec<i64>, Violation> {
    let value = |index: u64| {
        let signal = Signal::of(view, word(view, packet, index * 8)?)?;
        Ok(signal.map(|signal| signal.value()))
    };
    (1..=5).map(value).filter_map(Result::transpose).collect()
}

fn is_any_zero(values: &[i64]) -> bool {
    values.is_empty() || values.contains(&0)
}

/// `HSA_AMD_PACKET_TYPE_BARRIER_VALUE`.
const BARRIER_VALUE: u8 = 2;

fn vendor_format(view: &View<'_>, packet: GpuAddress) -> Result<u8, Violation> {
    Ok((word(view, packet, 0)? >> 16) as u8)
}

/// Whether the signal of a packet that waits for a value has it.
fn value_is_reached(view: &View<'_>, packet: GpuAddress) -> Result<bool, Violation> {
    let word = |offset| word(view, packet, offset);
    let Some(signal) = Signal::of(view, word(8)?)? else { return Ok(true) };
    let (wanted, mask) = (word(16)? as i64, word(24)? as i64);
    let value = signal.value() & mask;
    Ok(match word(32)? as u32 {
        0 => value == wanted,
        1 => value != wanted,
        2 => value < wanted,
        _ => value >= wanted,
    })
}
