//! Accesses to non-contiguous bytes: buffers, formatted elements, unaligned private memory, moves
//! between memory and LDS.

use super::addresses::{BufferOperands, lds_place};
use super::data::{atomic_operands, data_row, write_lane};
use crate::execute::buffer::Buffer;
use crate::execute::format::Format;
use crate::execute::{format, lds};
use crate::instruction::vector_memory::{Formatted, Part, Transfer};
use crate::instruction::{Element, Op};
use crate::memory::{Memory, modify, read_bytes, write_bytes};
use crate::wave::{ScalarIndex, Wave};
use flipwave_device::{AccessKind, FaultCause};
use flipwave_isa::{Lane, LaneMask};

/// The memories that a vector memory instruction may access.
pub struct Memories<'a> {
    /// Device memory.
    pub device: &'a mut dyn Memory,
    /// The workgroup's LDS.
    pub lds: &'a mut [u8],
}

/// Executes an access to a buffer.
#[inline(never)]
pub fn buffered(
    wave: &mut Wave,
    op: &Op,
    what: Transfer,
    buffer: &Buffer,
    operands: &BufferOperands,
    memory: &mut dyn Memory,
    lds: &mut [u8],
) -> Result<(), FaultCause> {
    if buffer.is_other {
        return Ok(());
    }
    let exec = wave.exec();
    let granule = what.granule(buffer) as u32;
    scattered(wave, op, what, exec, buffer, Memories { device: memory, lds }, |lane, byte| {
        let (index, offset) = operands.of_lane(buffer, lane);
        // The sum with the 32-bit offset does not wrap: an access at -1, which compilers and
        // libraries use to disable lanes, is entirely out of range.
        buffer
            .contains(lane, index, offset + u64::from(byte - byte % granule), granule)
            .then(|| buffer.address(lane, index, offset + u64::from(byte)))
    })
}

/// Executes an access to non-contiguous bytes: `place` returns the address of each byte, or `None`
/// if it is out of range (loads return zero, stores are dropped).
pub fn scattered(
    wave: &mut Wave,
    op: &Op,
    what: Transfer,
    lanes: LaneMask,
    buffer: &Buffer,
    memories: Memories<'_>,
    place: impl Fn(Lane, u32) -> Option<u64>,
) -> Result<(), FaultCause> {
    let Memories { device: memory, lds } = memories;
    for lane in lanes.lanes() {
        let index = usize::from(lane.0);
        match what {
            Transfer::Load(element) => {
                let bytes = gather(memory, element.bytes(), lane, &place)?;
                for word in 0..element.words() {
                    let row = wave.row_mut(op.destination.plus(word.into()));
                    row.0[index] = element.extend(word_of(&bytes, word), row.0[index]);
                }
            }
            Transfer::Store(element) => {
                let mut bytes = [0; 16];
                for word in 0..element.words() {
                    let register =
                        data_row(op, word.into()).map_or(0, |row| wave.row(row).0[index]);
                    bytes[usize::from(word) * 4..][..4]
                        .copy_from_slice(&element.part(register).to_le_bytes());
                }
                scatter(memory, &bytes[..element.bytes()], lane, &place)?;
            }
            Transfer::Atomic { atomic, returns } => {
                let operands = atomic_operands(wave, op, atomic, lane);
                let old = match place(lane, 0) {
                    Some(at) => modify(memory, at, Some(lane), atomic, operands)?,
                    None => 0,
                };
                if returns {
                    write_lane(wave, op, lane, old, atomic.bytes);
                }
            }
            Transfer::LoadBlock => {
                for register in block(wave) {
                    let at = |lane, byte| place(lane, 4 * u32::from(register) + byte);
                    let bytes = gather(memory, 4, lane, &at)?;
                    wave.row_mut(op.destination.plus(register)).0[index] = word_of(&bytes, 0);
                }
            }
            Transfer::StoreBlock => {
                for register in block(wave) {
                    let at = |lane, byte| place(lane, 4 * u32::from(register) + byte);
                    let row = data_row(op, register.into());
                    let word = row.map_or(0, |row| wave.row(row).0[index]);
                    scatter(memory, &word.to_le_bytes(), lane, &at)?;
                }
            }
            Transfer::LoadFormat(formatted) => {
                let (format, channels) = formatted.resolve(buffer);
                let bytes = gather(memory, format.map_or(0, Format::bytes), lane, &place)?;
                for component in 0..formatted.components {
                    let channel = channels[usize::from(component)];
                    let (register, shift) = formatted.register(component);
                    let word = &mut wave.row_mut(op.destination.plus(register)).0[index];
                    if formatted.part == Part::Words {
                        *word = format.map_or(0, |format| format.word(bytes, channel));
                    } else {
                        let half = format.map_or(0, |format| format.half(bytes, channel));
                        // The second component of a register is written after the first.
                        let kept = if formatted.in_whole_registers && component % 2 == 0 {
                            0
                        } else {
                            !(0xffff << shift)
                        };
                        *word = *word & kept | u32::from(half) << shift;
                    }
                }
            }
            Transfer::StoreFormat(formatted) => {
                let (Some(format), _) = formatted.resolve(buffer) else { return Ok(()) };
                let registers = (0..formatted.components).map(|component| {
                    let (register, shift) = formatted.register(component);
                    let word =
                        data_row(op, usize::from(register)).map_or(0, |row| wave.row(row).0[index]);
                    match formatted.part {
                        Part::Words => format::Register::Word(word),
                        _ => format::Register::Half((word >> shift) as u16),
                    }
                });
                let bytes = format.element(registers);
                scatter(memory, &bytes[..format.bytes()], lane, &place)?;
            }
            Transfer::LoadToLds(element) => {
                let bytes = gather(memory, element.bytes(), lane, &place)?;
                let to = lds_place(wave, op, lane, element.bytes());
                if matches!(element, Element::Words(_)) || op.sources[1].row().is_some() {
                    lds::write(lds, to, &bytes[..element.bytes()]);
                } else {
                    let word = element.extend(word_of(&bytes, 0), 0);
                    lds::write(lds, to, &word.to_le_bytes());
                }
            }
            Transfer::LoadFormatToLds(formatted) => {
                let (format, channels) = formatted.resolve(buffer);
                let bytes = gather(memory, format.map_or(0, Format::bytes), lane, &place)?;
                let word = format.map_or(0, |format| format.word(bytes, channels[0]));
                lds::write(lds, lds_place(wave, op, lane, 4), &word.to_le_bytes());
            }
            Transfer::StoreFromLds(element) => {
                let from = lds_place(wave, op, lane, element.bytes());
                let bytes = lds::read(lds, from, element.bytes());
                scatter(memory, &bytes[..element.bytes()], lane, &place)?;
            }
        }
    }
    Ok(())
}

/// Registers of a block that take part (RDNA 4 ISA, "GLOBAL_LOAD_BLOCK").
fn block(wave: &Wave) -> impl Iterator<Item = u16> + use<> {
    let mask = wave.scalar(ScalarIndex::M0);
    (0..32).filter(move |register| mask >> register & 1 != 0)
}

fn word_of(bytes: &[u8; 16], word: u8) -> u32 {
    u32::from_le_bytes([0, 1, 2, 3].map(|byte| bytes[usize::from(word) * 4 + byte]))
}

/// Reads non-contiguous bytes; bytes out of range are zero.
fn gather(
    memory: &mut dyn Memory,
    count: usize,
    lane: Lane,
    place: &impl Fn(Lane, u32) -> Option<u64>,
) -> Result<[u8; 16], FaultCause> {
    let mut bytes = [0; 16];
    for (offset, byte) in bytes[..count].iter_mut().enumerate() {
        if let Some(at) = place(lane, offset as u32) {
            read_bytes(memory, at, std::slice::from_mut(byte), AccessKind::Read, Some(lane))?;
        }
    }
    Ok(bytes)
}

/// Writes non-contiguous bytes; bytes out of range are dropped.
fn scatter(
    memory: &mut dyn Memory,
    bytes: &[u8],
    lane: Lane,
    place: &impl Fn(Lane, u32) -> Option<u64>,
) -> Result<(), FaultCause> {
    for (offset, byte) in bytes.iter().enumerate() {
        if let Some(at) = place(lane, offset as u32) {
            write_bytes(memory, at, &[*byte], AccessKind::Write, Some(lane))?;
        }
    }
    Ok(())
}

impl Transfer {
    /// Returns `true` if data are converted.
    pub fn is_formatted(self) -> bool {
        matches!(
            self,
            Transfer::LoadFormat(_) | Transfer::StoreFormat(_) | Transfer::LoadFormatToLds(_)
        )
    }

    /// Unit of the range check: the dwords of a plain access are checked one by one, atomics and
    /// formatted elements as a whole (ISA manual, "Range checking").
    pub fn granule(self, buffer: &Buffer) -> usize {
        let granule = match self {
            Transfer::Load(element)
            | Transfer::Store(element)
            | Transfer::LoadToLds(element)
            | Transfer::StoreFromLds(element) => element.bytes().min(4),
            Transfer::LoadBlock | Transfer::StoreBlock => 4,
            Transfer::Atomic { atomic, .. } => atomic.bytes.into(),
            Transfer::LoadFormat(formatted)
            | Transfer::StoreFormat(formatted)
            | Transfer::LoadFormatToLds(formatted) => {
                formatted.resolve(buffer).0.map_or(1, Format::bytes)
            }
        };
        granule.max(1)
    }
}

impl Formatted {
    /// Format and channel selections. An instruction that specifies a format has the components in
    /// order.
    fn resolve(self, buffer: &Buffer) -> (Option<Format>, [u8; 4]) {
        match self.format {
            Some(format) => (Format::new(format), [4, 5, 6, 7]),
            None => (Format::new(buffer.format), buffer.channels),
        }
    }

    /// Register and lowest bit of a component.
    fn register(self, component: u8) -> (u16, u32) {
        match self.part {
            Part::Words => (component.into(), 0),
            Part::Halves => ((component / 2).into(), u32::from(component % 2) * 16),
            Part::HighHalf => (0, 16),
        }
    }
}
