//! The engines that copy: packets of SDMA queues (SDMA 4.0 and 5.0 packet formats, as the runtime
//! writes them and as the Linux driver's `vega10_sdma_pkt_open.h` has them).

use crate::clock::clock;
use crate::machine::Machine;
use crate::map::{GpuAddress, View, Violation};
use crate::queue::Queue;
use std::sync::atomic::Ordering;

/// What a packet did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Done {
    /// There is none.
    Nothing,
    /// It waits.
    Waits,
    /// It is done.
    Packet,
    /// Nothing that an engine supports, or an address that it may not access.
    Fault(Violation),
}

/// Bytes that are copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Copy {
    from: GpuAddress,
    to: GpuAddress,
    bytes: u64,
}

const NOP: u8 = 0;
const COPY: u8 = 1;
const FENCE: u8 = 5;
const TRAP: u8 = 6;
const POLL: u8 = 8;
const ATOMIC: u8 = 10;
/// The only operation of an atomic packet that the runtime uses.
const ADD_64: u32 = 47;
const FILL: u8 = 11;
const TIMESTAMP: u8 = 13;
const CACHES: u8 = 17;

/// The bits that count bytes of a linear copy or a fill: 30 from gfx90a on, 22 before, where the others
/// are 0.
const COUNT: u32 = 0x3fff_ffff;

/// Dwords of the longest packet, padding aside.
const LONGEST: usize = 13;

/// A packet, as it stood in its queue when it was looked at: GPU code may write there.
struct Packet {
    at: GpuAddress,
    dwords: [u32; LONGEST],
    /// Dwords from its first on that have been written to the queue.
    written: u64,
}

impl Packet {
    /// The next packet of a queue, if there is one, and its first byte's number.
    fn next(queue: &Queue, view: &View<'_>) -> Result<Option<(Packet, u64)>, Violation> {
        let (read, written) = (queue.read(view)?, queue.written(view)?);
        if read >= written {
            return Ok(None);
        }
        let at = queue.ring.place(read);
        // Damaged pointers may say more than a lifetime of packets.
        if !queue.ring.holds(written - read) {
            return Err(Violation { address: at.0 });
        }
        let written = (written - read) / 4;
        let mut dwords = [0; LONGEST];
        for (index, dword) in (0..written).zip(&mut dwords) {
            let place = queue.ring.place(read.wrapping_add(4 * index));
            *dword = view.word32(place)?.load(Ordering::Acquire);
        }
        Ok(Some((Packet { at, dwords, written }, read)))
    }

    fn address(&self, index: usize) -> GpuAddress {
        let [low, high] = [index, index + 1].map(|index| u64::from(self.dwords[index]));
        GpuAddress(low | high << 32)
    }

    fn operation(&self) -> u8 {
        self.dwords[0] as u8
    }

    fn variant(&self) -> u8 {
        (self.dwords[0] >> 8) as u8
    }

    /// How many dwords it has; nothing for one that no engine supports.
    fn length(&self) -> Option<u64> {
        Some(match (self.operation(), self.variant()) {
            // A word of padding each.
            (NOP, _) => 1 + u64::from(self.dwords[0] >> 16 & 0x3fff),
            (COPY, 0) => 7,
            (COPY, 4) => LONGEST as u64,
            (FENCE, _) => 4,
            (TRAP, _) => 2,
            (POLL, _) => 6,
            (ATOMIC, _) if self.dwords[0] >> 25 == ADD_64 => 8,
            (FILL | CACHES, _) => 5,
            (TIMESTAMP, _) => 3,
            _ => return None,
        })
    }

    /// Does what it asks for; whether it is done.
    fn execute(&self, queue: &Queue, machine: &Machine) -> Result<bool, Violation> {
        let (head, word, place) =
            (self.dwords[0], |index: usize| self.dwords[index], self.address(1));
        match self.operation() {
            COPY if self.variant() == 0 => {
                let bytes = u64::from(word(1) & COUNT) + 1;
                let copy = Copy { from: self.address(3), to: self.address(5), bytes };
                copy_bytes(copy, queue, machine)?;
            }
            COPY => {
                for copy in Rectangle::read(&word).rows() {
                    // What damaged code asks for may take hours.
                    if queue.is_over() {
                        return Ok(false);
                    }
                    copy_bytes(copy, queue, machine)?;
                }
            }
            FENCE => queue.view().word32(place)?.store(word(3), Ordering::Release),
            TRAP => {
                machine.events.set(word(1) & 0xfff_ffff);
            }
            POLL if head >> 31 == 1 => {
                let value = queue.view().word32(place)?.load(Ordering::Acquire) & word(4);
                return Ok(compare(head >> 28 & 7, value, word(3)));
            }
            ATOMIC => {
                let operand = self.address(3).0;
                queue.view().word64(place)?.fetch_add(operand, Ordering::AcqRel);
                machine.events.signal_notifier.notify();
            }
            FILL => {
                let bytes = u64::from(word(4) & COUNT) + 4;
                queue.view().fill(place, word(3), bytes / 4)?;
            }
            TIMESTAMP => queue.view().word64(place)?.store(clock(), Ordering::Release),
            // Nothing is cached.
            _ => {}
        }
        Ok(true)
    }
}

/// Takes the next packet of a queue.
pub fn step(queue: &Queue, machine: &Machine) -> Done {
    match take(queue, machine) {
        Ok(done) => done,
        Err(violation) => Done::Fault(violation),
    }
}

fn take(queue: &Queue, machine: &Machine) -> Result<Done, Violation> {
    let Some((packet, read)) = Packet::next(queue, &queue.view())? else {
        return Ok(Done::Nothing);
    };
    machine.forget_lost_memory();
    let length = packet.length().filter(|length| *length <= packet.written);
    let length = length.ok_or(Violation { address: packet.at.0 })?;
    if !packet.execute(queue, machine)? {
        return Ok(Done::Waits);
    }
    queue.set_read(&queue.view(), read.wrapping_add(4 * length))?;
    Ok(Done::Packet)
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

/// Copies, and shows it to whoever watches before.
fn copy_bytes(copy: Copy, queue: &Queue, machine: &Machine) -> Result<(), Violation> {
    let Copy { from, to, bytes } = copy;
    let view = queue.view();
    view.check(from, bytes)?;
    view.check(to, bytes)?;
    // Who watches looks at the memory.
    drop(view);
    machine.show_copy(queue.node, from.0, to.0, bytes);
    queue.view().copy(from, to, bytes)
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
    fn read(dword: &dyn Fn(usize) -> u32) -> Rectangle {
        let corner = |first: usize| {
            let word = |index: usize| u64::from(dword(first + index));
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
            GpuAddress(corner.base).plus(elements << element)
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
