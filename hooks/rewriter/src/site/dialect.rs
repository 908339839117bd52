//! The few instructions that surround a hook, in the words of a target.

use flipwave_isa::{Generation, Register, RegisterRange, Sgpr};

/// How a target and a wave size spell lane masks.
#[derive(Clone, Copy, Debug)]
pub struct Dialect {
    /// Lanes of a wave: 32 or 64.
    pub wave_size: u8,
    /// The target's generation.
    pub generation: Generation,
}

impl Dialect {
    /// SGPRs that a lane mask takes.
    pub fn mask_words(self) -> u8 {
        if self.wave_size == 32 { 1 } else { 2 }
    }

    /// EXEC.
    pub fn exec(self) -> RegisterRange {
        RegisterRange::new(Register::ExecLo, self.mask_words())
    }

    /// The SGPRs of a lane mask that begins at `first`.
    pub fn mask(self, first: Sgpr) -> RegisterRange {
        RegisterRange::new(Register::Sgpr(first), self.mask_words())
    }

    /// A lane mask, or a constant, into another.
    pub fn move_mask(self, to: RegisterRange, from: &str) -> String {
        if self.wave_size == 32 {
            format!("s_mov_b32 {to}, {from}")
        } else {
            format!("s_mov_b64 {to}, {from}")
        }
    }
}

/// A dword of each lane's scratch, `offset` bytes from its beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ScratchSlot {
    /// The offset.
    pub offset: u32,
}

impl ScratchSlot {
    /// A VGPR into the slot, the offset by way of a scalar register.
    pub fn store(self, dialect: Dialect, vgpr: Register, address: Register) -> [String; 2] {
        let name = if dialect.generation >= Generation::Gfx11 { "b32" } else { "dword" };
        [constant(address, self.offset), format!("scratch_store_{name} off, {vgpr}, {address}")]
    }

    /// A VGPR from the slot.
    pub fn load(self, dialect: Dialect, vgpr: Register, address: Register) -> [String; 2] {
        let name = if dialect.generation >= Generation::Gfx11 { "b32" } else { "dword" };
        [constant(address, self.offset), format!("scratch_load_{name} {vgpr}, off, {address}")]
    }
}

/// A number as the assembler takes it: short ones in decimal, as they may be inline constants.
pub fn number(value: u32) -> String {
    match is_inline(value) {
        true => value.cast_signed().to_string(),
        false => format!("{value:#x}"),
    }
}

/// Whether a number is an inline constant.
pub fn is_inline(value: u32) -> bool {
    (-16..=64).contains(&value.cast_signed())
}

/// Whether `s_movk_i32` has a number in its own word.
fn is_short(value: u32) -> bool {
    i16::try_from(value.cast_signed()).is_ok()
}

/// A number whose instructions are those of `value` but for a field of its own.
pub fn example(value: u32) -> u32 {
    match value {
        value if is_inline(value) => value,
        value if is_short(value) => 0x6b2d,
        _ => 0x7a59_c36b,
    }
}

/// One scalar register, or a constant, into another scalar register.
pub fn scalar_move(to: Register, from: &str) -> String {
    format!("s_mov_b32 {to}, {from}")
}

/// A constant into a register.
pub fn constant(to: Register, value: u32) -> String {
    match to {
        Register::Vgpr(_) => format!("v_mov_b32_e32 {to}, {}", number(value)),
        _ if is_short(value) && !is_inline(value) => {
            format!("s_movk_i32 {to}, {:#x}", value as u16)
        }
        _ => format!("s_mov_b32 {to}, {}", number(value)),
    }
}

/// SCC into a scalar register.
pub fn save_scc(to: Register) -> String {
    format!("s_cselect_b32 {to}, 1, 0")
}

/// SCC from a scalar register: whether it is not zero.
pub fn restore_scc(from: Register) -> String {
    format!("s_cmp_lg_u32 {from}, 0")
}

/// MODE into a scalar register.
pub fn save_mode(to: Register) -> String {
    format!("s_getreg_b32 {to}, hwreg(HW_REG_MODE)")
}

/// MODE from a scalar register.
pub fn restore_mode(from: Register) -> String {
    format!("s_setreg_b32 hwreg(HW_REG_MODE), {from}")
}

/// One word from a register to another, whatever their files; per-lane destinations change in the
/// lanes that EXEC selects. A wave's value taken from lanes is that of the first one EXEC selects.
/// `None` where it takes a register in between.
pub fn word_move(to: Register, from: Register) -> Option<String> {
    use Register::{AccVgpr, Mode, Scc, Vgpr};
    Some(match (to, from) {
        (AccVgpr(_) | Vgpr(_), Scc | Mode) | (Scc | Mode, AccVgpr(_) | Vgpr(_)) => return None,
        (Scc, Mode) | (Mode, Scc) => return None,
        (Vgpr(_), AccVgpr(_)) => format!("v_accvgpr_read_b32 {to}, {from}"),
        (Vgpr(_), _) => format!("v_mov_b32_e32 {to}, {from}"),
        // One that takes SGPRs came with gfx90a.
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
