//! Scalar memory: loads, stores and atomics of consecutive words in scalar registers. They execute
//! once per wave, regardless of EXEC, at addresses whose two lowest bits are ignored except for
//! bytes and half words.

use crate::execute::buffer::Resource;
use crate::execute::operand::scalar_word;
use crate::instruction::scalar_memory::{ScalarAccess, Space, Transfer};
use crate::instruction::{Op, Word};
use crate::memory::{Memory, modify, read_bytes, write_bytes};
use crate::wave::{ScalarIndex, Wave};
use flipwave_device::{AccessKind, FaultCause};

/// Executes a scalar memory operation. The immediate is a constant offset.
pub fn execute(
    wave: &mut Wave,
    op: &Op,
    access: ScalarAccess,
    memory: &mut dyn Memory,
) -> Result<(), FaultCause> {
    let place = Place::of(wave, op, access);
    match access.transfer {
        Transfer::Clock => {
            let ticks = wave.executed;
            wave.write_scalar_pair(op.scalar_destination, ticks);
        }
        Transfer::Load(words) => {
            let mut values = [0u32; 16];
            for (word, value) in values[..usize::from(words)].iter_mut().enumerate() {
                let Some(address) = place.of_word(word, 4) else { continue };
                let mut bytes = [0; 4];
                read_bytes(memory, address, &mut bytes, AccessKind::Read, None)?;
                *value = u32::from_le_bytes(bytes);
            }
            write_words(wave, op.scalar_destination, &values[..usize::from(words)]);
        }
        Transfer::LoadPart(element) => {
            let mut bytes = [0; 4];
            if let Some(address) = place.of_part(element.bytes() as u64) {
                let bytes = &mut bytes[..element.bytes()];
                read_bytes(memory, address, bytes, AccessKind::Read, None)?;
            }
            wave.write_scalar(op.scalar_destination, element.extend(u32::from_le_bytes(bytes), 0));
        }
        Transfer::Store(words) => {
            for word in 0..words {
                let Some(address) = place.of_word(word.into(), 4) else { continue };
                let bytes = data(wave, op, word).to_le_bytes();
                write_bytes(memory, address, &bytes, AccessKind::Write, None)?;
            }
        }
        Transfer::Atomic { atomic, returns } => {
            let pair = |first| {
                u64::from(data(wave, op, first)) | u64::from(data(wave, op, first + 1)) << 32
            };
            let operands = if atomic.bytes == 4 {
                [data(wave, op, 0).into(), data(wave, op, 1).into()]
            } else {
                [pair(0), pair(2)]
            };
            let old = match place.of_word(0, atomic.bytes.into()) {
                Some(address) => modify(memory, address, None, atomic, operands)?,
                None => 0,
            };
            if returns {
                let words = [old as u32, (old >> 32) as u32];
                write_words(wave, op.scalar_destination, &words[..usize::from(atomic.bytes / 4)]);
            }
        }
    }
    Ok(())
}

/// Address of the first word of an access, if it is in range.
pub fn first_address(wave: &Wave, op: &Op, access: ScalarAccess) -> Option<u64> {
    Place::of(wave, op, access).of_word(0, 4)
}

/// Address of an access, in range or not.
pub fn address(wave: &Wave, op: &Op, access: ScalarAccess) -> u64 {
    let place = Place::of(wave, op, access);
    match access.transfer {
        Transfer::LoadPart(_) => place.base.wrapping_add_signed(place.offset),
        _ => (place.base & !3).wrapping_add_signed(place.offset & !3),
    }
}

/// Address of an access before its lowest bits are dropped.
pub fn unaligned_address(wave: &Wave, op: &Op, access: ScalarAccess) -> u64 {
    let place = Place::of(wave, op, access);
    place.base.wrapping_add_signed(place.offset)
}

/// Start and limit of an access.
struct Place {
    base: u64,
    offset: i64,
    /// Size of a buffer in bytes.
    limit: Option<u64>,
}

impl Place {
    fn of(wave: &Wave, op: &Op, access: ScalarAccess) -> Place {
        let space = access.space;
        let [low, high] = op.sources[0].words;
        let base = u64::from(scalar_word(wave, low)) | u64::from(scalar_word(wave, high)) << 32;
        let register = i64::from(scalar_word(wave, op.sources[1].words[0]));
        let register = match space {
            Space::Scratch => register * 64,
            _ if access.is_scaled => register * i64::from(access.transfer.bytes()),
            _ => register,
        };
        let offset = register.wrapping_add(op.immediate);
        match space {
            Space::Buffer => {
                let resource = resource(wave, op);
                let limit = Some(resource.scalar_bytes(wave.machine.generation));
                Place { base: resource.base(), offset, limit }
            }
            Space::Address | Space::Scratch => Place { base, offset, limit: None },
        }
    }

    /// Address of a word of the access, if `bytes` bytes there are in range.
    fn of_word(&self, word: usize, bytes: u64) -> Option<u64> {
        let offset = (self.offset & !3).wrapping_add(4 * word as i64);
        let end = (offset as u64).saturating_add(bytes);
        if self.limit.is_some_and(|limit| end > limit) {
            return None;
        }
        Some((self.base & !3).wrapping_add_signed(offset))
    }
}

impl Place {
    /// Address of a byte or an aligned half word, if it is in range.
    fn of_part(&self, bytes: u64) -> Option<u64> {
        let end = (self.offset as u64).saturating_add(bytes);
        let address = self.base.wrapping_add_signed(self.offset) & !(bytes - 1);
        self.limit.is_none_or(|limit| end <= limit).then_some(address)
    }
}

/// Writes consecutive registers. A corrupted destination may exceed the register file; the excess
/// is dropped.
fn write_words(wave: &mut Wave, first: ScalarIndex, values: &[u32]) {
    for (index, value) in (first.0..ScalarIndex::DROPPED.0).zip(values) {
        wave.write_scalar(ScalarIndex(index), *value);
    }
}

/// Reads a word of the data.
fn data(wave: &Wave, op: &Op, word: u8) -> u32 {
    match op.sources[2].words[0] {
        Word::Scalar(first) => wave.scalar(ScalarIndex(first.0 + word)),
        _ => 0,
    }
}

/// The buffer resource in source 0.
fn resource(wave: &Wave, op: &Op) -> Resource {
    let Word::Scalar(first) = op.sources[0].words[0] else { return Resource::default() };
    let words = [0, 1, 2, 3].map(|word| wave.scalar(ScalarIndex(first.0 + word)));
    Resource::new(words, wave.machine.generation)
}
