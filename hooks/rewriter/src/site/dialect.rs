//! Text of the instructions that surround a hook, for each target.

use flipwave_isa::{Generation, Register, RegisterRange, Sgpr};

/// Syntax of lane masks and scratch accesses for a target and a wave size.
#[derive(Clone, Copy, Debug)]
pub struct Dialect {
    /// Lanes per wave: 32 or 64.
    pub wave_size: u8,
    /// The target's generation.
    pub generation: Generation,
}

impl Dialect {
    /// Number of SGPRs of a lane mask.
    pub fn mask_words(self) -> u8 {
        if self.wave_size == 32 { 1 } else { 2 }
    }

    /// The registers of EXEC.
    pub fn exec(self) -> RegisterRange {
        RegisterRange::new(Register::ExecLo, self.mask_words())
    }

    /// The SGPRs of a lane mask starting at `first`.
    pub fn mask(self, first: Sgpr) -> RegisterRange {
        RegisterRange::new(Register::Sgpr(first), self.mask_words())
    }

    /// Moves a lane mask or a constant to a lane mask.
    pub fn move_mask(self, to: RegisterRange, from: &str) -> String {
        if self.wave_size == 32 {
            format!("s_mov_b32 {to}, {from}")
        } else {
            format!("s_mov_b64 {to}, {from}")
        }
    }
}

/// A dword in the scratch memory of each lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ScratchSlot {
    /// Offset in bytes.
    pub offset: u32,
}

impl ScratchSlot {
    /// Stores a VGPR to the slot. `address` is an SGPR for the offset.
    pub fn store(self, dialect: Dialect, vgpr: Register, address: Register) -> [String; 2] {
        let name = if dialect.generation >= Generation::Gfx11 { "b32" } else { "dword" };
        [constant(address, self.offset), format!("scratch_store_{name} off, {vgpr}, {address}")]
    }

    /// Loads a VGPR from the slot.
    pub fn load(self, dialect: Dialect, vgpr: Register, address: Register) -> [String; 2] {
        let name = if dialect.generation >= Generation::Gfx11 { "b32" } else { "dword" };
        [constant(address, self.offset), format!("scratch_load_{name} {vgpr}, off, {address}")]
    }
}

/// Formats a number for the assembler: inline constants in decimal, others in hexadecimal.
pub fn number(value: u32) -> String {
    if is_inline(value) { value.cast_signed().to_string() } else { format!("{value:#x}") }
}

/// Returns `true` if a number is an inline constant.
pub fn is_inline(value: u32) -> bool {
    (-16..=64).contains(&value.cast_signed())
}

/// Returns `true` if a number fits into `s_movk_i32`.
fn is_short(value: u32) -> bool {
    i16::try_from(value.cast_signed()).is_ok()
}

/// A representative number: instructions with it differ from those with `value` only in the field of the
/// number.
pub fn example(value: u32) -> u32 {
    match value {
        value if is_inline(value) => value,
        value if is_short(value) => 0x6b2d,
        _ => 0x7a59_c36b,
    }
}

/// Moves a scalar register or a constant to a scalar register.
pub fn scalar_move(to: Register, from: &str) -> String {
    format!("s_mov_b32 {to}, {from}")
}

/// Moves a constant to a register.
pub fn constant(to: Register, value: u32) -> String {
    match to {
        Register::Vgpr(_) => format!("v_mov_b32_e32 {to}, {}", number(value)),
        _ if is_short(value) && !is_inline(value) => {
            format!("s_movk_i32 {to}, {:#x}", value as u16)
        }
        _ => format!("s_mov_b32 {to}, {}", number(value)),
    }
}

/// Saves SCC to a scalar register.
pub fn save_scc(to: Register) -> String {
    format!("s_cselect_b32 {to}, 1, 0")
}

/// Restores SCC from a scalar register: 1 if the register is not zero.
pub fn restore_scc(from: Register) -> String {
    format!("s_cmp_lg_u32 {from}, 0")
}

/// Saves MODE to a scalar register.
pub fn save_mode(to: Register) -> String {
    format!("s_getreg_b32 {to}, hwreg(HW_REG_MODE)")
}

/// Restores MODE from a scalar register.
pub fn restore_mode(from: Register) -> String {
    format!("s_setreg_b32 hwreg(HW_REG_MODE), {from}")
}

/// Moves a word between registers of any files. Per-lane destinations change in active lanes; scalar
/// destinations get the value of the first active lane. `None` if this takes a temporary register.
pub fn word_move(to: Register, from: Register) -> Option<String> {
    use Register::{AccVgpr, Mode, Scc, Vgpr};
    Some(match (to, from) {
        (AccVgpr(_) | Vgpr(_), Scc | Mode) | (Scc | Mode, AccVgpr(_) | Vgpr(_)) => return None,
        (Scc, Mode) | (Mode, Scc) => return None,
        (Vgpr(_), AccVgpr(_)) => format!("v_accvgpr_read_b32 {to}, {from}"),
        (Vgpr(_), _) => format!("v_mov_b32_e32 {to}, {from}"),
        // With an SGPR source, this exists only since gfx90a.
        (AccVgpr(_), Vgpr(_)) => format!("v_accvgpr_write_b32 {to}, {from}"),
        (AccVgpr(_), _) | (_, AccVgpr(_)) => return None,
        (_, Vgpr(_)) => format!("v_readfirstlane_b32 {to}, {from}"),
        (Scc, _) => restore_scc(from),
        (_, Scc) => save_scc(to),
        (Mode, _) => restore_mode(from),
        (_, Mode) => save_mode(to),
        _ => scalar_move(to, &from.to_string()),
    })
}
