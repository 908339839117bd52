//! The engines that copy: packets of SDMA queues (SDMA 4.0 and 5.0 packet formats, as the runtime
//! writes them and as the Linux driver's `vega10_sdma_pkt_open.h` has them).

use crate::events::Events;
use crate::host::{clock, word32, word64};
use crate::machine::Machine;
use crate::memory::host_address;
use crate::queue::Queue;
use std::sync::atomic::Ordering;

/// What a packet did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Done {
    /// There is none, or it waits.
    Nothing,
    /// It is done.
    Packet,
    /// Nothing that an engine knows, or an address that it may not access.
    Fault(u64),
}

/// Bytes that are copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Copy {
    from: u64,
    to: u64,
    bytes: u64,
}

const NOP: u8 = 0;
const COPY: u8 = 1;
const FENCE: u8 = 5;
const TRAP: u8 = 6;
const POLL: u8 = 8;
const ATOMIC: u8 = 10;
const FILL: u8 = 11;
const TIMESTAMP: u8 = 13;
const CACHES: u8 = 17;

/// Takes the next packet of a queue.
pub fn step(queue: &Queue, machine: &Machine, events: &Events) -> Done {
    let read = queue.read();
    if read >= queue.written() {
        return Done::Nothing;
    }
    let at = queue.ring + read % queue.ring_bytes;
    // SAFETY: the ring is the runtime's, and packets do not cross its end.
    let dword = |index: u64| unsafe { word32(at + 4 * index) }.load(Ordering::Acquire);
    let address = |index: u64| u64::from(dword(index)) | u64::from(dword(index + 1)) << 32;
    let head = dword(0);
    let (operation, variant) = (head as u8, (head >> 8) as u8);
    let fault = |address: u64| Done::Fault(address);
    let dwords = match operation {
        // A word of padding each.
        NOP => 1 + u64::from(head >> 16 & 0x3fff),
        COPY if variant == 0 => {
            let bytes = u64::from(dword(1) & 0x3f_ffff) + 1;
            let copy = Copy { from: address(3), to: address(5), bytes };
            if let Some(wild) = copy_bytes(copy, queue, machine) {
                return fault(wild);
            }
            7
        }
        COPY if variant == 4 => {
            let wild =
                Rectangle::read(&dword).rows().find_map(|copy| copy_bytes(copy, queue, machine));
            if let Some(wild) = wild {
                return fault(wild);
            }
            13
        }
        FENCE => {
            let place = address(1);
            if !machine.is_mapped(queue.node, place, 4) {
                return fault(place);
            }
            // SAFETY: mapped for the GPU, hence mapped.
            unsafe { word32(host_address(place)) }.store(dword(3), Ordering::Release);
            4
        }
        TRAP => {
            events.set(dword(1) & 0xfff_ffff);
            2
        }
        POLL if head >> 31 == 0 => 6,
        POLL => {
            let place = address(1);
            if !machine.is_mapped(queue.node, place, 4) {
                return fault(place);
            }
            // SAFETY: as above.
            let value = unsafe { word32(host_address(place)) }.load(Ordering::Acquire) & dword(4);
            if !compare(head >> 28 & 7, value, dword(3)) {
                return Done::Nothing;
            }
            6
        }
        ATOMIC => {
            const ADD_64: u32 = 47;
            let place = address(1);
            if head >> 25 != ADD_64 || !machine.is_mapped(queue.node, place, 8) {
                return fault(place);
            }
            // SAFETY: as above.
            unsafe { word64(host_address(place)) }.fetch_add(address(3), Ordering::AcqRel);
            8
        }
        FILL => {
            let (place, word, bytes) = (address(1), dword(3), u64::from(dword(4) & 0x3f_ffff) + 4);
            let bytes = bytes / 4 * 4;
            if !machine.is_mapped(queue.node, place, bytes) {
                return fault(place);
            }
            for index in 0..bytes / 4 {
                // SAFETY: as above; nothing else is promised of memory that is being filled.
                unsafe { ((host_address(place) + 4 * index) as *mut u32).write_unaligned(word) };
            }
            5
        }
        TIMESTAMP => {
            let place = address(1);
            if !machine.is_mapped(queue.node, place, 8) {
                return fault(place);
            }
            // SAFETY: as above.
            unsafe { word64(host_address(place)) }.store(clock(), Ordering::Release);
            3
        }
        CACHES => 5,
        _ => return fault(at),
    };
    queue.set_read(read + 4 * dwords);
    Done::Packet
}

/// Comparison `function` of a poll packet.
fn compare(function: u32, value: u32, reference: u32) -> bool {
    match function {
        0 => true,
        1 => value < reference,
        2 => value <= reference,
        3 => value == reference,
        4 => value != reference,
        5 => value >= reference,
        _ => value > reference,
    }
}

/// Copies; gives the first address that is not the GPU's, if one is not.
fn copy_bytes(copy: Copy, queue: &Queue, machine: &Machine) -> Option<u64> {
    let Copy { from, to, bytes } = copy;
    let wild = [from, to].into_iter().find(|start| !machine.is_mapped(queue.node, *start, bytes));
    if wild.is_none() {
        machine.show_copy(queue.node, from, to, bytes);
        // SAFETY: both are mapped for the GPU, hence mapped; the ranges may overlap.
        unsafe {
            std::ptr::copy(
                host_address(from) as *const u8,
                host_address(to) as *mut u8,
                bytes as usize,
            );
        }
    }
    wild
}

/// A part of a pitched image that is copied into another.
struct Rectangle {
    /// log2 of the bytes of an element.
    element: u32,
    source: Corner,
    destination: Corner,
    /// Elements, rows and slices.
    extent: [u64; 3],
}

struct Corner {
    base: u64,
    offset: [u64; 3],
    /// Elements from one row, and from one slice, to the next.
    pitch: u64,
    slice: u64,
}

impl Rectangle {
    fn read(dword: &dyn Fn(u64) -> u32) -> Rectangle {
        let corner = |first: u64| {
            let word = |index: u64| u64::from(dword(first + index));
            Corner {
                base: word(0) | word(1) << 32,
                offset: [word(2) & 0x3fff, word(2) >> 16 & 0x3fff, word(3) & 0x7ff],
                pitch: (word(3) >> 13) + 1,
                slice: (word(4) & 0xfff_ffff) + 1,
            }
        };
        let (xy, z) = (u64::from(dword(11)), u64::from(dword(12)));
        Rectangle {
            element: dword(0) >> 29,
            source: corner(1),
            destination: corner(6),
            extent: [(xy & 0x3fff) + 1, (xy >> 16 & 0x3fff) + 1, (z & 0x7ff) + 1],
        }
    }

    /// The rows, as copies of their own.
    fn rows(&self) -> impl Iterator<Item = Copy> {
        let [width, height, depth] = self.extent;
        let element = self.element;
        let at = move |corner: &Corner, row: u64, slice: u64| {
            let [x, y, z] = corner.offset;
            let elements = x + (y + row) * corner.pitch + (z + slice) * corner.slice;
            corner.base + (elements << element)
        };
        (0..depth).flat_map(move |slice| {
            (0..height).map(move |row| Copy {
                from: at(&self.source, row, slice),
                to: at(&self.destination, row, slice),
                bytes: width << element,
            })
        })
    }
}
