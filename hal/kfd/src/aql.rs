//! Packets of compute queues (HSA Runtime specification 1.2, "Architected Queuing Language packets";
//! `hsa_ext_amd.h` for AMD's own).

use crate::host::{Signal, word64};
use crate::queue::Queue;
use flipwave_device::KernelPacket;
use std::sync::atomic::{AtomicU16, Ordering};

/// Bytes of a packet.
const SIZE: u64 = 64;
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
    pub address: u64,
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
    /// The packet is not written yet.
    Packet,
    /// Signals that it names have other values.
    Signals,
    /// A value that anybody may write at any time.
    Value,
}

/// The next packet of a queue that has one, if nothing that it waits for is missing.
///
/// # Errors
/// What is missing.
pub fn next(queue: &Queue) -> Result<Packet, Wait> {
    let number = queue.read();
    let address = queue.ring + number % (queue.ring_bytes / SIZE) * SIZE;
    let kind = header(address).load(Ordering::Acquire) as u8;
    let work = match kind {
        INVALID => return Err(Wait::Packet),
        KernelPacket::TYPE => Work::Kernel,
        VENDOR if vendor_format(address) == BARRIER_VALUE && !value_is_reached(address) => {
            return Err(Wait::Value);
        }
        BARRIER_AND if !dependencies(address).all(|signal| signal.value() == 0) => {
            return Err(Wait::Signals);
        }
        BARRIER_OR if !is_any_zero(address) => return Err(Wait::Signals),
        VENDOR | BARRIER_AND | BARRIER_OR => Work::Nothing,
        _ => Work::Unknown,
    };
    Ok(Packet { number, address, work })
}

/// Gives the packet's place back and tells whoever waits for it.
pub fn retire(queue: &Queue, packet: &Packet, times: (u64, u64), events: &crate::events::Events) {
    let signal = completion(packet.address);
    header(packet.address).store(INVALID.into(), Ordering::Release);
    queue.set_read(packet.number + 1);
    if let Some(signal) = signal {
        signal.set_times(times.0, times.1);
        signal.decrement(events);
    }
}

fn header(packet: u64) -> &'static AtomicU16 {
    // SAFETY: a packet of the queue's ring.
    unsafe { AtomicU16::from_ptr(packet as *mut u16) }
}

fn word(packet: u64, offset: u64) -> u64 {
    // SAFETY: a packet of the queue's ring.
    unsafe { word64(packet + offset) }.load(Ordering::Acquire)
}

fn completion(packet: u64) -> Option<Signal> {
    // SAFETY: signals of packets that are not done stay.
    unsafe { Signal::new(word(packet, 56)) }
}

/// The signals that a barrier packet names.
fn dependencies(packet: u64) -> impl Iterator<Item = Signal> {
    // SAFETY: as above.
    (1..=5).filter_map(move |index| unsafe { Signal::new(word(packet, index * 8)) })
}

fn is_any_zero(packet: u64) -> bool {
    dependencies(packet).next().is_none() || dependencies(packet).any(|one| one.value() == 0)
}

/// `HSA_AMD_PACKET_TYPE_BARRIER_VALUE`.
const BARRIER_VALUE: u8 = 2;

fn vendor_format(packet: u64) -> u8 {
    (word(packet, 0) >> 16) as u8
}

/// Whether the signal of a packet that waits for a value has it.
fn value_is_reached(packet: u64) -> bool {
    // SAFETY: as above.
    let Some(signal) = (unsafe { Signal::new(word(packet, 8)) }) else { return true };
    let (wanted, mask) = (word(packet, 16) as i64, word(packet, 24) as i64);
    let value = signal.value() & mask;
    match word(packet, 32) as u32 {
        0 => value == wanted,
        1 => value != wanted,
        2 => value < wanted,
        _ => value >= wanted,
    }
}
