//! Scalar instructions with which inserted code moves values and computes code addresses.

use super::content::Content;
use super::state::{INDEX_MODE, IndexModeWrite, SymbolicState};
use crate::checker::facts::Facts;
use flipwave_isa::{Inst, Opcode, Register, RegisterRange, Sgpr, Value};

/// Executes an instruction. Returns `None` if only the registers that it writes are known.
pub fn execute(facts: &Facts, pc: u64, state: &mut SymbolicState) -> Option<()> {
    let inst = &facts.inst;
    match facts.opcode() {
        Opcode::SMov => map(inst, state, |value, _| value, SccEffect::Preserved),
        Opcode::SNot => map(inst, state, |value, _| value.not(), SccEffect::Written),
        Opcode::SAnd => map(inst, state, Content::and, SccEffect::Written),
        Opcode::SOr => map(inst, state, Content::or, SccEffect::Written),
        Opcode::SXor => map(inst, state, Content::xor, SccEffect::Written),
        Opcode::SAndn2 => map(inst, state, Content::without, SccEffect::Written),
        Opcode::SAndSaveexec => save_exec(inst, state, |exec, value| value.and(exec)),
        Opcode::SOrSaveexec => save_exec(inst, state, |exec, value| value.or(exec)),
        Opcode::SXorSaveexec => save_exec(inst, state, |exec, value| value.xor(exec)),
        Opcode::SAndn2Saveexec => save_exec(inst, state, |exec, value| value.without(exec)),
        Opcode::SAndn1Saveexec => save_exec(inst, state, |exec, value| exec.without(value)),
        Opcode::SMovk => {
            let value = source(inst, 0, 0, state);
            write(destination(inst)?, 0, value, state);
            Some(())
        }
        Opcode::SCselect => select(inst, state),
        Opcode::SCmpLg => compare(inst, 0, state),
        Opcode::SCmpEq => compare(inst, 1, state),
        Opcode::SBitcmp1 => compare(inst, 0, state),
        Opcode::SGetpc => {
            let address = pc.wrapping_add(facts.size());
            write_address(destination(inst)?, address, state);
            Some(())
        }
        Opcode::SSwappc | Opcode::SCall => {
            write_address(destination(inst)?, pc.wrapping_add(facts.size()), state);
            Some(())
        }
        Opcode::SAdd => add_low(inst, state),
        Opcode::SAddc => add_high(inst, state),
        Opcode::SAddNc64 => add_wide(inst, state),
        Opcode::SGetreg => read_mode(inst, state),
        Opcode::SSetreg | Opcode::SSetregImm32 => write_mode(inst, state),
        // Unlike the other two, this instruction does not write M0.
        Opcode::SSetGprIdxOff => {
            state.set_index_mode(IndexModeWrite::Off);
            Some(())
        }
        Opcode::SSetGprIdxOn | Opcode::SSetGprIdxMode => {
            let is_on = facts.opcode() == Opcode::SSetGprIdxOn;
            state.set_index_mode(if is_on { IndexModeWrite::On } else { IndexModeWrite::Unknown });
            state.set_scalar(Register::M0, Content::Unknown);
            Some(())
        }
        Opcode::SRoundMode => {
            state.mode_changed |= 0xf;
            Some(())
        }
        Opcode::SDenormMode => {
            state.mode_changed |= 0xf0;
            Some(())
        }
        _ => None,
    }
}

/// Executes a load of arguments that the original kernel had in registers when it started.
pub fn load_arguments(inst: &Inst, state: &mut SymbolicState) -> Option<()> {
    let arguments = state.arguments?;
    let memory = inst.memory_operand()?;
    let (destination, base) = (memory.loaded?, memory.saddr?);
    if inst.operation.opcode() != Opcode::SLoad || memory.soffset.is_some() {
        return None;
    }
    let pointer = [base.first, base.first.offset(1)?].map(|register| state.scalar(register));
    let offset = *memory.offsets.first()? as u64;
    for word in 0..destination.words {
        let content = arguments.loaded(pointer, offset.wrapping_add(4 * u64::from(word)));
        write(destination, word, content, state);
    }
    Some(())
}

fn destination(inst: &Inst) -> Option<RegisterRange> {
    match inst.destinations().next()?.value {
        Value::Register(range) => Some(range),
        _ => None,
    }
}

fn write(range: RegisterRange, word: u8, content: Content, state: &mut SymbolicState) {
    if let Some(register) = range.first.offset(word) {
        state.set_scalar(register, content);
    }
}

fn write_address(range: RegisterRange, address: u64, state: &mut SymbolicState) {
    write(range, 0, Content::AddressLow(address), state);
    write(range, 1, Content::AddressHigh(address), state);
}

/// A word of the source operand at `index`.
pub fn source(inst: &Inst, index: usize, word: u8, state: &SymbolicState) -> Content {
    let Some(operand) = inst.sources().nth(index) else { return Content::Unknown };
    match operand.value {
        Value::Register(range) => (range.first.offset(word).filter(|_| word < range.words))
            .map_or(Content::Unknown, |register| state.scalar(register)),
        Value::Integer(value) => Content::Constant((value >> (32 * word)) as u32),
        // The extension of a literal to 64 bits depends on the operation.
        Value::Literal(value) if word == 0 => Content::Constant(value),
        Value::WideLiteral(value) => Content::Constant((value >> (32 * word)) as u32),
        _ => Content::Unknown,
    }
}

/// The effect of an operation on SCC.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SccEffect {
    Preserved,
    Written,
}

/// An operation with one or two sources that computes each word separately.
fn map(
    inst: &Inst,
    state: &mut SymbolicState,
    operation: impl Fn(Content, Content) -> Content,
    scc: SccEffect,
) -> Option<()> {
    let to = destination(inst)?;
    let word = |word| operation(source(inst, 0, word, state), source(inst, 1, word, state));
    let results = [word(0), word(1)];
    for (index, result) in (0..to.words).zip(results) {
        write(to, index, result, state);
    }
    if scc == SccEffect::Written {
        state.set_scalar(Register::Scc, Content::Unknown);
    }
    Some(())
}

/// Copies EXEC to the destination, then applies `operation` to EXEC and the source and writes EXEC.
fn save_exec(
    inst: &Inst,
    state: &mut SymbolicState,
    operation: impl Fn(Content, Content) -> Content,
) -> Option<()> {
    let to = destination(inst)?;
    for (word, half) in (0..to.words).zip([Register::ExecLo, Register::ExecHi]) {
        let (exec, value) = (state.scalar(half), source(inst, 0, word, state));
        write(to, word, exec, state);
        state.set_scalar(half, operation(exec, value));
    }
    state.set_scalar(Register::Scc, Content::Unknown);
    Some(())
}

/// A conditional move. `s_cselect t, 1, 0` copies SCC to a register.
fn select(inst: &Inst, state: &mut SymbolicState) -> Option<()> {
    let to = destination(inst)?;
    let scc = state.scalar(Register::Scc);
    for word in 0..to.words {
        let value = match (source(inst, 0, word, state), source(inst, 1, word, state)) {
            (first, second) if first == second => first,
            (Content::Constant(1), Content::Constant(0)) => scc,
            _ => Content::Unknown,
        };
        write(to, word, value, state);
    }
    Some(())
}

/// A comparison, which restores SCC if its first source is a copy of SCC and its second `constant`.
fn compare(inst: &Inst, constant: u32, state: &mut SymbolicState) -> Option<()> {
    let value = source(inst, 0, 0, state);
    let restores_scc = value == Content::Initial(Register::Scc)
        && source(inst, 1, 0, state) == Content::Constant(constant);
    state.set_scalar(Register::Scc, if restores_scc { value } else { Content::Unknown });
    Some(())
}

/// The addition of a constant to the low half of an address.
fn add_low(inst: &Inst, state: &mut SymbolicState) -> Option<()> {
    let to = destination(inst)?;
    let (sum, carry) = match (source(inst, 0, 0, state), source(inst, 1, 0, state)) {
        (Content::AddressLow(base), Content::Constant(value)) => {
            let sum = base.wrapping_add(value.into());
            (Content::AddressLow(sum), Content::Carry { sum, base })
        }
        _ => (Content::Unknown, Content::Unknown),
    };
    write(to, 0, sum, state);
    state.set_scalar(Register::Scc, carry);
    Some(())
}

/// The addition of a constant and the carry to the high half of an address.
fn add_high(inst: &Inst, state: &mut SymbolicState) -> Option<()> {
    let to = destination(inst)?;
    let sources = [source(inst, 0, 0, state), source(inst, 1, 0, state)];
    let high = match (sources, state.scalar(Register::Scc)) {
        ([Content::AddressHigh(high), Content::Constant(value)], Content::Carry { sum, base })
            if base == high =>
        {
            // The low half was computed with an unsigned constant.
            Some(sum.wrapping_add(u64::from(value) << 32))
        }
        _ => None,
    };
    let low = to.first;
    write(to, 0, high.map_or(Content::Unknown, Content::AddressHigh), state);
    state.set_scalar(Register::Scc, Content::Unknown);
    // The low half now belongs to the complete sum.
    if let (Some(sum), Some(Content::AddressLow(old))) =
        (high, below(low).map(|register| state.scalar(register)))
        && old as u32 == sum as u32
        && let Some(register) = below(low)
    {
        state.set_scalar(register, Content::AddressLow(sum));
    }
    Some(())
}

/// The addition of a constant of 64 bits to an address (gfx1250), which leaves SCC alone.
fn add_wide(inst: &Inst, state: &mut SymbolicState) -> Option<()> {
    let to = destination(inst)?;
    let word = |index, word| source(inst, index, word, state);
    let words = [[word(0, 0), word(0, 1)], [word(1, 0), word(1, 1)]];
    let sum = match words {
        [
            [Content::AddressLow(low), Content::AddressHigh(high)],
            [Content::Constant(first), Content::Constant(second)],
        ] if low == high => Some(low.wrapping_add(u64::from(second) << 32 | u64::from(first))),
        _ => None,
    };
    match sum {
        Some(sum) => write_address(to, sum, state),
        None => {
            for word in 0..to.words {
                write(to, word, Content::Unknown, state);
            }
        }
    }
    Some(())
}

/// The scalar register with the next lower number.
fn below(register: Register) -> Option<Register> {
    match register {
        Register::Sgpr(sgpr) => sgpr.0.checked_sub(1).map(|n| Register::Sgpr(Sgpr(n))),
        Register::VccHi => Some(Register::VccLo),
        _ => None,
    }
}

/// A field of MODE.
#[derive(Clone, Copy)]
struct ModeField {
    offset: u8,
    size: u8,
}

impl ModeField {
    fn bits(self) -> u32 {
        let ones = u32::MAX >> (32 - u32::from(self.size.clamp(1, 32)));
        ones << self.offset
    }
}

/// The field of MODE that `hwreg` names. Bits 5:0 are the hardware register's number, 10:6 the offset,
/// 15:11 the size minus one (ISA manual, "S_GETREG_B32").
fn mode_field(inst: &Inst) -> Option<ModeField> {
    const MODE: u16 = 1;
    let field = inst.immediate? as u16;
    let (offset, size) = ((field >> 6 & 0x1f) as u8, (field >> 11) as u8 + 1);
    (field & 0x3f == MODE).then_some(ModeField { offset, size })
}

fn read_mode(inst: &Inst, state: &mut SymbolicState) -> Option<()> {
    let to = destination(inst)?;
    let content = match mode_field(inst) {
        Some(field) if state.mode_changed & field.bits() == 0 => {
            Content::ModeField { offset: field.offset, size: field.size }
        }
        _ => Content::Unknown,
    };
    write(to, 0, content, state);
    Some(())
}

/// A write of a hardware register. Apart from MODE, programs only compute with the halves of
/// FLAT_SCRATCH on gfx10.
fn write_mode(inst: &Inst, state: &mut SymbolicState) -> Option<()> {
    const FLAT_SCRATCH: [u16; 2] = [20, 21];
    let Some(field) = mode_field(inst) else {
        if FLAT_SCRATCH.contains(&(inst.immediate? as u16 & 0x3f)) {
            state.set_scalar(Register::FlatScratchLo, Content::Unknown);
            state.set_scalar(Register::FlatScratchHi, Content::Unknown);
        }
        return Some(());
    };
    let value = source(inst, 1, 0, state);
    let (offset, bits) = (field.offset, field.bits());
    if value == (Content::ModeField { offset, size: field.size }) {
        state.mode_changed &= !bits;
    } else {
        state.mode_changed |= bits;
    }
    if bits & INDEX_MODE != 0 {
        match value {
            Content::ModeField { .. } => state.restore_index_mode(),
            Content::Constant(value) => {
                let is_on = value << offset & INDEX_MODE != 0;
                state.set_index_mode(if is_on { IndexModeWrite::On } else { IndexModeWrite::Off });
            }
            _ => state.set_index_mode(IndexModeWrite::Unknown),
        }
    }
    Some(())
}
