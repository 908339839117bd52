//! Hardware registers read by `s_getreg_b32` and written by `s_setreg_b32` (ISA manual,
//! "Hardware registers").

use crate::wave::{Mode, ScalarIndex, Wave};
use flipwave_isa::Generation;

/// Register numbers of the `hwreg` operand.
mod id {
    pub const MODE: u32 = 1;
    pub const STATUS: u32 = 2;
    pub const TRAP_STATUS: u32 = 3;
    pub const HARDWARE_ID: u32 = 4;
    pub const GPR_ALLOCATION: u32 = 5;
    pub const LDS_ALLOCATION: u32 = 6;
    pub const SH_MEM_BASES: u32 = 15;
    pub const FLAT_SCRATCH: [u32; 2] = [20, 21];
    pub const SHADER_CYCLES: u32 = 29;
    pub const SHADER_CYCLES_HIGH: u32 = 30;
}

/// Offset and width of the field that an immediate selects. Bits 5:0 are the register, 10:6 the
/// offset, 15:11 the width minus one.
fn field(immediate: u32) -> (u32, u32) {
    let offset = immediate >> 6 & 31;
    let width = (immediate >> 11 & 31) + 1;
    (offset, (((1u64 << width) - 1) as u32) << offset)
}

/// Immediate that selects `width` bits of MODE, starting at `offset`.
pub fn mode_field(offset: u32, width: u32) -> u32 {
    id::MODE | offset << 6 | (width - 1) << 11
}

/// Returns `true` if an immediate selects bits of MODE.
pub fn is_mode(immediate: u32) -> bool {
    immediate & 63 == id::MODE
}

/// Bits of MODE that an immediate selects.
pub fn mode_bits(immediate: u32) -> u32 {
    if is_mode(immediate) { field(immediate).1 } else { 0 }
}

/// Reads a field of a hardware register; registers that the simulator does not model read as zero.
pub fn read(wave: &Wave, immediate: u32) -> u32 {
    let (offset, mask) = field(immediate);
    let value = match immediate & 63 {
        id::MODE => wave.mode.0 & !Mode::always_set(wave.machine.generation),
        id::STATUS => {
            let bit = |set: bool, at: u32| u32::from(set) << at;
            // SCC, EXECZ, VCCZ, VALID.
            bit(wave.scc, 0) | bit(wave.exec().0 == 0, 9) | bit(wave.vcc() == 0, 10) | bit(true, 16)
        }
        id::TRAP_STATUS => 0,
        // Every wave reports the first wave slot of the first compute unit.
        id::HARDWARE_ID => 0,
        // VGPR_SIZE: granules of eight registers, minus one. All waves start at the first register.
        id::GPR_ALLOCATION => {
            let registers = wave.vgpr_count + wave.acc_vgpr_count;
            u32::from(registers.div_ceil(8).saturating_sub(1)) << 8
        }
        id::LDS_ALLOCATION => wave.lds_size.div_ceil(256) << 12,
        id::SH_MEM_BASES => {
            let half = |base: u64| (base >> 48) as u32;
            half(crate::memory::aperture::PRIVATE) | half(crate::memory::aperture::SHARED) << 16
        }
        register => match flat_scratch(wave, register) {
            Some(index) => wave.scalar(index),
            None => shader_cycles(wave, register),
        },
    };
    (value & mask) >> offset
}

/// The shader clock: 20 bits up to gfx11, two words since gfx12 (RDNA 3 and RDNA 4 ISA, "Hardware
/// registers"); zero for other registers.
fn shader_cycles(wave: &Wave, register: u32) -> u32 {
    let has_two_words = wave.machine.generation >= Generation::Gfx12;
    match register {
        id::SHADER_CYCLES if has_two_words => wave.executed as u32,
        id::SHADER_CYCLES_HIGH if has_two_words => (wave.executed >> 32) as u32,
        id::SHADER_CYCLES => wave.executed as u32 & 0xf_ffff,
        _ => 0,
    }
}

/// Writes a field of a hardware register. Only MODE can be written, and FLAT_SCRATCH where it is a
/// hardware register.
pub fn write(wave: &mut Wave, immediate: u32, value: u32) {
    if is_mode(immediate) {
        let (offset, mask) = field(immediate);
        let mode = wave.mode.0 & !mask | value << offset & mask;
        // Since gfx10 nothing is skipped, and no registers are indexed.
        let none = wave.machine.generation >= Generation::Gfx10;
        let without = if none { Mode::GPR_INDEX | Mode::SKIP_VECTORS } else { 0 };
        wave.mode = Mode(mode & !without | Mode::always_set(wave.machine.generation));
    }
    if let Some(index) = flat_scratch(wave, immediate & 63) {
        let (offset, mask) = field(immediate);
        let word = wave.scalar(index) & !mask | value << offset & mask;
        wave.write_scalar(index, word);
    }
}

/// Scalar register that holds the half of FLAT_SCRATCH which `register` names (gfx10 and gfx11).
fn flat_scratch(wave: &Wave, register: u32) -> Option<ScalarIndex> {
    let low = wave.machine.flat_scratch;
    let half = id::FLAT_SCRATCH.iter().position(|id| *id == register)?;
    (wave.machine.generation >= Generation::Gfx10).then_some(ScalarIndex(low.0 + half as u8))
}

#[cfg(test)]
mod tests;
