//! An instruction a second time, and what compares the two results.
//!
//! The copy comes before the original, which may overwrite what it reads, and writes to *shadow*
//! registers. After the original each word of its results is compared with its shadow:
//! `v_sad_u32 error, shadow, result, error clamp` adds the difference of the two to the lane's `error`,
//! and saturates (CDNA 3 ISA, "VOP3 instructions", V_SAD_U32 and CLAMP). So `error` is zero as long as
//! nothing has differed, for one instruction a word, without a branch and without SCC.

use crate::Reason;
use flipwave_hooks::registers::Allocation;
use flipwave_isa::{
    Class, Encoding, Family, Generation, Inst, Isa, MemoryKind, Opcode, Pc, Register,
    RegisterRange, RegisterSet, Role, Value,
};

/// Registers that copies write, and where what differs is added up. No instruction of the program names
/// them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shadows {
    /// VGPRs.
    pub vectors: Option<RegisterRange>,
    /// AccVGPRs.
    pub accumulators: Option<RegisterRange>,
    /// SGPRs.
    pub scalars: Option<RegisterRange>,
    /// Two VGPRs for what is compared and is in others.
    pub compared: Option<RegisterRange>,
    /// Each lane's sum of what has differed.
    pub error: Register,
}

/// An instruction executed twice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Duplicate {
    /// What stands before it, for the assembler.
    pub before: String,
    /// What stands after it.
    pub after: String,
    /// Its results, which are compared.
    pub results: Vec<RegisterRange>,
    /// Instructions that it takes more, without waits.
    pub instructions: u32,
}

/// The registers that an instruction gives results to, each range of them, which a copy gives to shadows
/// in their place.
///
/// # Errors
/// Why a second execution would not do, or not compute the same.
pub fn results(inst: &Inst) -> Result<Vec<RegisterRange>, Reason> {
    let operation = inst.operation;
    let is_loaded = match (inst.class(), inst.memory().map(|own| own.kind)) {
        (Class::Valu | Class::Matrix | Class::Salu, _) => false,
        (Class::Smem | Class::Vmem | Class::Lds, Some(MemoryKind::Load)) => true,
        // Moves between lanes that the LDS unit does.
        (Class::Lds, None) if operation.is(Family::OtherLanes) => true,
        _ => return Err(Reason::Kind),
    };
    if inst.flags.stores || inst.flags.branch || inst.flags.terminator || inst.flags.call {
        return Err(Reason::Kind);
    }
    let changes = inst.modifiers.glc || !inst.modifiers.cache_policy.is_empty();
    if is_loaded && changes {
        return Err(Reason::Coherent);
    }
    let reads_state = [Family::GetRegister, Family::SetRegister, Family::Movrel, Family::GprIndex];
    let moves = [Opcode::SMemtime, Opcode::SMemrealtime, Opcode::SGetpc, Opcode::VSwap];
    if reads_state.into_iter().any(|family| operation.is(family))
        || moves.contains(&operation.opcode())
        || inst.modifiers.lds
        || inst.modifiers.gds
        || inst.encoding == Encoding::Vopd
    {
        return Err(Reason::State);
    }
    let touches = |ranges: &[RegisterRange], register| {
        ranges.iter().any(|range| range.contains(register))
    };
    if touches(&inst.writes, Register::Scc) && touches(&inst.reads, Register::Scc) {
        return Err(Reason::Carry);
    }
    let mut results = Vec::new();
    for operand in inst.destinations() {
        let Value::Register(range) = operand.value else { return Err(Reason::Kind) };
        results.push(range);
    }
    let named: RegisterSet = results.iter().copied().collect();
    let is_known = |range: &RegisterRange| {
        range.first == Register::Scc || named.contains_range(*range)
    };
    if results.is_empty() || !inst.writes.iter().all(is_known) {
        return Err(Reason::Kind);
    }
    let is_general = |range: &RegisterRange| {
        let numbered = |register| match register {
            Register::Vgpr(_) | Register::AccVgpr(_) | Register::Sgpr(_) => true,
            other => matches!(other, Register::VccLo | Register::VccHi),
        };
        range.iter().all(numbered)
    };
    match results.iter().all(is_general) {
        true => Ok(results),
        false => Err(Reason::Special),
    }
}

/// Shadow registers that copies need: the longest range of each file.
pub fn needed(results: &[RegisterRange]) -> Allocation {
    let mut needed = Allocation { vgprs: 0, acc_vgprs: 0, sgprs: 0 };
    for range in results {
        match range.first {
            Register::Vgpr(_) => needed.vgprs = needed.vgprs.max(range.words.into()),
            Register::AccVgpr(_) => needed.acc_vgprs = needed.acc_vgprs.max(range.words.into()),
            _ => needed.sgprs = needed.sgprs.max(range.words),
        }
    }
    needed
}

impl Duplicate {
    /// The copy of `inst`, whose results go to `shadows`, and what compares it, if that is wanted.
    ///
    /// # Errors
    /// Where there is no such instruction, or there are no such registers.
    pub fn new(
        inst: &Inst,
        isa: &Isa,
        shadows: &Shadows,
        compares: bool,
    ) -> Result<Duplicate, Reason> {
        let results = results(inst)?;
        let mut pairs: Vec<(RegisterRange, RegisterRange)> = Vec::new();
        for result in &results {
            let file = match result.first {
                Register::Vgpr(_) => shadows.vectors,
                Register::AccVgpr(_) => shadows.accumulators,
                _ => shadows.scalars,
            };
            let free = file.filter(|file| file.words >= result.words).ok_or(Reason::Registers)?;
            let shadow = RegisterRange::new(free.first, result.words);
            if pairs.iter().any(|(_, other)| other.overlaps(shadow)) {
                return Err(Reason::Registers);
            }
            pairs.push((*result, shadow));
        }
        let mut before = Vec::new();
        match accumulated(inst, &pairs).filter(|text| is_copy(text, inst, isa, &pairs, false)) {
            Some(text) => before.push(text),
            None => {
                if inst.flags.tied {
                    let (result, shadow) = pairs[0];
                    let moves = result.iter().zip(shadow.iter());
                    before.extend(moves.map(|(from, to)| move_of(from, to)));
                }
                before.push(copy(inst, isa, &pairs)?);
            }
        }
        let mut after = Vec::new();
        if compares {
            let words = pairs.iter().flat_map(|(result, shadow)| result.iter().zip(shadow.iter()));
            for (result, shadow) in words {
                compare(result, shadow, shadows, isa.target().generation(), &mut after)?;
            }
        }
        Ok(Duplicate {
            instructions: (before.len() + after.len()) as u32,
            before: before.join("\n"),
            after: after.join("\n"),
            results,
        })
    }
}

/// A move between registers of one file.
fn move_of(from: Register, to: Register) -> String {
    let operation = match to {
        Register::AccVgpr(_) => "v_accvgpr_mov_b32",
        Register::Vgpr(_) => "v_mov_b32",
        _ => "s_mov_b32",
    };
    format!("{operation} {to}, {from}")
}

/// What adds the difference of a result and its shadow to the error.
fn compare(
    result: Register,
    shadow: Register,
    shadows: &Shadows,
    generation: Generation,
    lines: &mut Vec<String>,
) -> Result<(), Reason> {
    let error = shadows.error;
    let mut free = shadows.compared.iter().flat_map(|range| range.iter());
    let mut read = |own: Register, operation: &str| {
        let to = free.next().ok_or(Reason::Registers)?;
        lines.push(format!("{operation} {to}, {own}"));
        Ok(to)
    };
    let (one, other) = match shadow {
        Register::Vgpr(_) => (shadow, result),
        Register::AccVgpr(_) => {
            (read(shadow, "v_accvgpr_read_b32")?, read(result, "v_accvgpr_read_b32")?)
        }
        // Up to gfx9 an instruction reads one scalar register.
        _ if generation < Generation::Gfx10 => (read(shadow, "v_mov_b32")?, result),
        _ => (shadow, result),
    };
    lines.push(format!("v_sad_u32 {error}, {one}, {other}, {error} clamp"));
    Ok(())
}

/// The copy of an instruction with its results in shadows.
fn copy(
    inst: &Inst,
    isa: &Isa,
    pairs: &[(RegisterRange, RegisterRange)],
) -> Result<String, Reason> {
    let (mnemonic, operands) = inst.text.trim().split_once(' ').ok_or(Reason::Encoding)?;
    let mut operands: Vec<String> = operands.split(", ").map(|own| own.trim().to_owned()).collect();
    let destinations = inst.operands.iter().enumerate();
    let destinations = destinations.filter(|(_, own)| own.role == Role::Destination);
    for ((index, _), (_, shadow)) in destinations.zip(pairs) {
        let operand = operands.get_mut(index).ok_or(Reason::Encoding)?;
        // What stands after the last operand are modifiers.
        let modifiers = operand.split_once(' ').map(|(_, rest)| format!(" {rest}"));
        *operand = format!("{shadow}{}", modifiers.unwrap_or_default());
    }
    let operands = operands.join(", ");
    let short = format!("{mnemonic} {operands}");
    // The short encodings write carries and conditions to VCC.
    let long = format!("{} {operands}", mnemonic.replace("_e32", "_e64"));
    let found = [short, long].into_iter().find(|text| is_copy(text, inst, isa, pairs, true));
    found.ok_or(Reason::Encoding)
}

/// An operation that adds to its destination, as the one that adds to another register.
fn accumulated(inst: &Inst, pairs: &[(RegisterRange, RegisterRange)]) -> Option<String> {
    let three_sources = match inst.operation.name() {
        "v_fmac_f32" => "v_fma_f32",
        "v_mac_f32" => "v_mad_f32",
        "v_fmac_f64" => "v_fma_f64",
        _ => return None,
    };
    let (result, shadow) = pairs.first()?;
    let (_, operands) = inst.text.trim().split_once("_e32 ")?;
    let (_, sources) = operands.split_once(", ")?;
    Some(format!("{three_sources} {shadow}, {sources}, {result}"))
}

/// Whether `text` is an instruction that computes what `inst` does, and gives it to the shadows.
fn is_copy(
    text: &str,
    inst: &Inst,
    isa: &Isa,
    pairs: &[(RegisterRange, RegisterRange)],
    is_same: bool,
) -> bool {
    let Ok(bytes) = isa.assemble(text) else { return false };
    let Ok(found) = isa.decode(&bytes, Pc(0)) else { return false };
    let shadows: Vec<RegisterRange> = pairs.iter().map(|(_, shadow)| *shadow).collect();
    let own = found.destinations().map(|operand| &operand.value);
    let writes_shadows = own.eq(shadows.iter().map(|own| Value::Register(*own)).collect::<Vec<_>>().iter());
    let all: RegisterSet = shadows.into_iter().chain([RegisterRange::new(Register::Scc, 1)]).collect();
    let writes_no_more = found.writes.iter().all(|range| all.contains_range(*range));
    let sources = || found.sources().map(|operand| &operand.value);
    let reads_same = match is_same {
        true => found.operation == inst.operation && sources().eq(inst.sources().map(|own| &own.value)),
        // It reads the result besides, as what it adds to.
        false => {
            let result = pairs.first().map(|(result, _)| Value::Register(*result));
            sources().eq(inst.sources().map(|own| &own.value).chain(result.as_ref()))
        }
    };
    writes_shadows && writes_no_more && reads_same && found.modifiers == inst.modifiers
}
