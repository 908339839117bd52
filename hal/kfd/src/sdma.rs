//! Packets of SDMA queues (packet formats of SDMA 4.0 and 5.0, as the runtime writes them and as
//! the Linux driver's `vega10_sdma_pkt_open.h` defines them).

use crate::clock::gpu_clock;
use crate::comparison::Comparison;
use crate::machine::Machine;
use crate::map::{GpuAddress, View, Violation};
use crate::queue::Queue;
use std::sync::atomic::Ordering;

/// Result of [`step`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepResult {
    /// The queue has no packet.
    Empty,
    /// The next packet waits.
    Waiting,
    /// A packet was executed.
    Executed,
    /// The next packet is invalid, or the GPU may not access an address that it names.
    Fault(Violation),
}

/// A linear copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Copy {
    from: GpuAddress,
    to: GpuAddress,
    bytes: u64,
}

// Operations.
const NOP: u8 = 0;
const COPY: u8 = 1;
const FENCE: u8 = 5;
const TRAP: u8 = 6;
const POLL: u8 = 8;
const ATOMIC: u8 = 10;
const FILL: u8 = 11;
const TIMESTAMP: u8 = 13;
/// Cache management (`GCR`).
const CACHES: u8 = 17;

// Sub-operations of copies.
const LINEAR: u8 = 0;
const LINEAR_SUB_WINDOW: u8 = 4;

/// The only operation of atomic packets that the runtime uses: 64-bit addition.
const ADD_64: u32 = 47;

/// Mask of the byte count of a linear copy or a fill. The count has 30 bits from gfx90a on; before,
/// it has 22, and the others are 0.
const COUNT: u32 = 0x3fff_ffff;

/// Dwords of the longest packet, except padding.
const MAX_DWORDS: usize = 13;

/// Copy of a packet: GPU code may overwrite the packet in its queue at any time.
struct Packet {
    address: GpuAddress,
    dwords: [u32; MAX_DWORDS],
    /// Number of dwords from the packet's first that were written to the queue.
    written: u64,
}

impl Packet {
    /// The next packet of a queue, and the position of its first byte.
    fn next(queue: &Queue, view: &View<'_>) -> Result<Option<(Packet, u64)>, Violation> {
        let (read, written) = (queue.read_index(view)?, queue.write_index(view)?);
        if read >= written {
            return Ok(None);
        }
        let address = queue.ring.address(read);
        // Corrupted indices may claim more packets than fit into the ring.
        if !queue.ring.has_room(written - read) {
            return Err(Violation { address: address.0 });
        }
        let written = (written - read) / 4;
        let mut dwords = [0; MAX_DWORDS];
        for (index, dword) in (0..written).zip(&mut dwords) {
            let address = queue.ring.address(read.wrapping_add(4 * index));
            *dword = view.word32(address)?.load(Ordering::Acquire);
        }
        Ok(Some((Packet { address, dwords, written }, read)))
    }

    /// The address in a dword and its successor.
    fn address(&self, index: usize) -> GpuAddress {
        let [low, high] = [index, index + 1].map(|index| u64::from(self.dwords[index]));
        GpuAddress(low | high << 32)
    }

    fn operation(&self) -> u8 {
        self.dwords[0] as u8
    }

    fn sub_operation(&self) -> u8 {
        (self.dwords[0] >> 8) as u8
    }

    /// Number of dwords; `None` for an unsupported packet.
    fn length(&self) -> Option<u64> {
        Some(match (self.operation(), self.sub_operation()) {
            // Followed by a number of dwords of padding.
            (NOP, _) => 1 + u64::from(self.dwords[0] >> 16 & 0x3fff),
            (COPY, LINEAR) => 7,
            (COPY, LINEAR_SUB_WINDOW) => MAX_DWORDS as u64,
            (FENCE, _) => 4,
            (TRAP, _) => 2,
            (POLL, _) => 6,
            (ATOMIC, _) if self.dwords[0] >> 25 == ADD_64 => 8,
            (FILL | CACHES, _) => 5,
            (TIMESTAMP, _) => 3,
            _ => return None,
        })
    }

    /// Executes the packet. Returns `false` if it waits, or if its queue was closed meanwhile.
    fn execute(&self, queue: &Queue, machine: &Machine) -> Result<bool, Violation> {
        let (head, word, address) =
            (self.dwords[0], |index: usize| self.dwords[index], self.address(1));
        match self.operation() {
            COPY if self.sub_operation() == LINEAR => {
                let bytes = u64::from(word(1) & COUNT) + 1;
                let copy = Copy { from: self.address(3), to: self.address(5), bytes };
                copy_bytes(copy, queue, machine)?;
            }
            COPY => {
                for copy in SubWindowCopy::read(&word).rows() {
                    // A corrupted packet may ask for hours of copying.
                    if queue.is_closed() {
                        return Ok(false);
                    }
                    copy_bytes(copy, queue, machine)?;
                }
            }
            FENCE => queue.view().word32(address)?.store(word(3), Ordering::Release),
            TRAP => {
                machine.events.set(word(1) & 0xfff_ffff);
            }
            POLL if head >> 31 == 1 => {
                let value = queue.view().word32(address)?.load(Ordering::Acquire) & word(4);
                return Ok(Comparison::from_bits(head >> 28).holds(value, word(3)));
            }
            ATOMIC => {
                let operand = self.address(3).0;
                queue.view().word64(address)?.fetch_add(operand, Ordering::AcqRel);
                machine.events.signal_notifier.notify();
            }
            FILL => {
                let bytes = u64::from(word(4) & COUNT) + 4;
                queue.view().fill(address, word(3), bytes / 4)?;
            }
            TIMESTAMP => queue.view().word64(address)?.store(gpu_clock(), Ordering::Release),
            // Nothing is cached.
            _ => {}
        }
        Ok(true)
    }
}

/// Executes the next packet of a queue.
pub fn step(queue: &Queue, machine: &Machine) -> StepResult {
    match try_step(queue, machine) {
        Ok(result) => result,
        Err(violation) => StepResult::Fault(violation),
    }
}

fn try_step(queue: &Queue, machine: &Machine) -> Result<StepResult, Violation> {
    let Some((packet, position)) = Packet::next(queue, &queue.view())? else {
        return Ok(StepResult::Empty);
    };
    machine.remove_unmapped_memory();
    let length = packet.length().filter(|length| *length <= packet.written);
    let length = length.ok_or(Violation { address: packet.address.0 })?;
    if !packet.execute(queue, machine)? {
        return Ok(StepResult::Waiting);
    }
    queue.set_read_index(&queue.view(), position.wrapping_add(4 * length))?;
    Ok(StepResult::Executed)
}

/// Makes a copy, after telling the observer.
fn copy_bytes(copy: Copy, queue: &Queue, machine: &Machine) -> Result<(), Violation> {
    let Copy { from, to, bytes } = copy;
    let view = queue.view();
    view.check(from, bytes)?;
    view.check(to, bytes)?;
    // The observer may look at memory.
    drop(view);
    machine.observe_copy(queue.node, from.0, to.0, bytes);
    queue.view().copy(from, to, bytes)?;
    machine.count_copy(to);
    Ok(())
}

/// Copy of a box between two pitched images.
struct SubWindowCopy {
    /// log2 of the size of an element in bytes.
    element: u32,
    source: Corner,
    destination: Corner,
    /// Elements, rows and slices.
    extent: [u64; 3],
}

/// The first corner of a box in a pitched image.
struct Corner {
    base: u64,
    /// Elements, rows and slices.
    offset: [u64; 3],
    /// Number of elements from one row to the next.
    pitch: u64,
    /// Number of elements from one slice to the next.
    slice: u64,
}

impl SubWindowCopy {
    fn read(dword: &dyn Fn(usize) -> u32) -> SubWindowCopy {
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
        SubWindowCopy {
            element: dword(0) >> 29,
            source: corner(1),
            destination: corner(6),
            extent: [(xy & 0x3fff) + 1, (xy >> 16 & 0x3fff) + 1, (z & 0x7ff) + 1],
        }
    }

    /// The rows, each as a linear copy.
    fn rows(&self) -> impl Iterator<Item = Copy> {
        let [width, height, depth] = self.extent;
        let element = self.element;
        let address = move |corner: &Corner, row: u64, slice: u64| {
            let [x, y, z] = corner.offset;
            let elements = x + (y + row) * corner.pitch + (z + slice) * corner.slice;
            GpuAddress(corner.base).plus(elements << element)
        };
        (0..depth).flat_map(move |slice| {
            (0..height).map(move |row| Copy {
                from: address(&self.source, row, slice),
                to: address(&self.destination, row, slice),
                bytes: width << element,
            })
        })
    }
}
