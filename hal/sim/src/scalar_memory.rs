//! Scalar memory: loads of consecutive words into scalar registers.

use crate::memory::Memory;
use crate::op::Op;
use crate::vector::scalar_word;
use crate::wave::{ScalarIndex, Wave};
use flipwave_device::{AccessKind, Address, FaultCause};

/// A scalar memory operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScalarAccess {
    /// So many words from a 64-bit base.
    Load(u8),
    /// So many words from a buffer resource; words out of its range read as zero.
    BufferLoad(u8),
    /// A 64-bit counter that only goes up: wave instructions executed by the wave.
    Clock,
}

/// The scalar memory operation of a canonical name.
pub fn find(name: &str) -> Option<ScalarAccess> {
    if matches!(name, "s_memtime" | "s_memrealtime") {
        return Some(ScalarAccess::Clock);
    }
    let (width, access): (_, fn(u8) -> ScalarAccess) =
        if let Some(width) = name.strip_prefix("s_load_dword") {
            (width, ScalarAccess::Load)
        } else {
            (name.strip_prefix("s_buffer_load_dword")?, ScalarAccess::BufferLoad)
        };
    let words = if width.is_empty() { 1 } else { width.strip_prefix('x')?.parse().ok()? };
    Some(access(words))
}

/// Executes a scalar memory operation. Source 0 is the base, source 1 a scalar offset, the
/// immediate a constant one.
pub fn execute(
    wave: &mut Wave,
    op: &Op,
    access: ScalarAccess,
    memory: &mut dyn Memory,
) -> Result<(), FaultCause> {
    let base = scalar(op.sources[0].words, wave);
    let offset = i64::from(scalar_word(wave, op.sources[1].words[0])).wrapping_add(op.immediate);
    let words = match access {
        ScalarAccess::Clock => {
            let ticks = wave.executed;
            wave.write_scalar_pair(op.scalar_destination, ticks);
            return Ok(());
        }
        ScalarAccess::Load(words) | ScalarAccess::BufferLoad(words) => words,
    };
    let mut values = [0u32; 16];
    let limit = match access {
        ScalarAccess::BufferLoad(_) => buffer_bytes(wave, op),
        _ => u64::MAX,
    };
    let base = if limit == u64::MAX { base } else { base & 0xffff_ffff_ffff };
    for (word, value) in values[..usize::from(words)].iter_mut().enumerate() {
        let offset = (offset & !3).wrapping_add(4 * word as i64);
        if limit != u64::MAX && offset as u64 + 4 > limit {
            continue;
        }
        let address = (base & !3).wrapping_add_signed(offset);
        *value = memory
            .region(address)
            .and_then(|region| region.read::<4>(address))
            .map(u32::from_le_bytes)
            .ok_or(FaultCause::MemoryViolation {
                address: Address(address),
                access: AccessKind::Read,
                lane: None,
            })?;
    }
    for (word, value) in values[..usize::from(words)].iter().enumerate() {
        let index = usize::from(op.scalar_destination.0) + word;
        // A corrupted destination may run off the register file; the excess is dropped.
        if let Ok(index) = u8::try_from(index)
            && index < 128
        {
            wave.write_scalar(ScalarIndex(index), *value);
        }
    }
    Ok(())
}

fn scalar(words: [crate::op::Word; 2], wave: &Wave) -> u64 {
    u64::from(scalar_word(wave, words[0])) | u64::from(scalar_word(wave, words[1])) << 32
}

/// Bytes of the buffer resource in source 0: records times stride, or records alone for raw
/// buffers (ISA manual, "Scalar memory operations").
fn buffer_bytes(wave: &Wave, op: &Op) -> u64 {
    let crate::op::Word::Scalar(first) = op.sources[0].words[0] else { return 0 };
    let word = |n: u8| u64::from(wave.scalar(ScalarIndex(first.0 + n)));
    let stride = word(1) >> 16 & 0x3fff;
    word(2) * stride.max(1)
}
