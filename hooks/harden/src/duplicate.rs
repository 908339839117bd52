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
    /// SGPRs for the lanes of a wave when it begins.
    pub lanes: RegisterRange,
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
        (Class::Lds, None) if operation.is(Family::CrossLane) => true,
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
        // Exchanges: both results are read.
        || inst.flags.tied && inst.destinations().count() > 1
    {
        return Err(Reason::State);
    }
    let touches =
        |ranges: &[RegisterRange], register| ranges.iter().any(|range| range.contains(register));
    if touches(&inst.writes, Register::Scc) && touches(&inst.reads, Register::Scc) {
        return Err(Reason::Carry);
    }
    let mut results = Vec::new();
    for operand in inst.destinations() {
        let Value::Register(range) = operand.value else { return Err(Reason::Kind) };
        results.push(range);
    }
    let named: RegisterSet = results.iter().copied().collect();
    let is_known =
        |range: &RegisterRange| range.first == Register::Scc || named.contains_range(*range);
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

/// What a result is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ComparedWith {
    /// Its shadow.
    Shadow,
    /// Itself, which shows nothing.
    Itself,
    /// Nothing.
    Nothing,
}

/// The registers of a copy.
#[derive(Clone, Copy, Debug)]
pub struct CopyRegisters<'a> {
    /// Shadows of results that are compared at once.
    pub shadows: &'a Shadows,
    /// The shadow of the only result, where it is kept for other copies.
    pub kept: Option<RegisterRange>,
    /// Shadows that are kept of what it reads, by what they are shadows of.
    pub sources: &'a [(RegisterRange, RegisterRange)],
}

impl CopyRegisters<'_> {
    /// Each result with its shadow.
    fn results(&self, results: &[RegisterRange]) -> Result<Vec<Pair>, Reason> {
        let mut pairs: Vec<Pair> = Vec::new();
        for result in results {
            let file = match result.first {
                Register::Vgpr(_) => self.kept.or(self.shadows.vectors),
                Register::AccVgpr(_) => self.shadows.accumulators,
                _ => self.shadows.scalars,
            };
            let free = file.filter(|file| file.words >= result.words).ok_or(Reason::Registers)?;
            let shadow = RegisterRange::new(free.first, result.words);
            if pairs.iter().any(|own| own.shadow.overlaps(shadow)) {
                return Err(Reason::Registers);
            }
            pairs.push(Pair { result: *result, shadow });
        }
        Ok(pairs)
    }

    /// What a copy reads in place of registers that the original reads.
    fn source(&self, range: RegisterRange) -> RegisterRange {
        let inside = |(whole, shadow): &(RegisterRange, RegisterRange)| {
            let word = whole.iter().position(|own| own == range.first)?;
            let fits = word + usize::from(range.words) <= usize::from(whole.words);
            let first = shadow.first.offset(u8::try_from(word).ok()?)?;
            fits.then(|| RegisterRange::new(first, range.words))
        };
        self.sources.iter().find_map(inside).unwrap_or(range)
    }
}

/// A result, and where its copy goes.
#[derive(Clone, Copy, Debug)]
struct Pair {
    result: RegisterRange,
    shadow: RegisterRange,
}

impl Duplicate {
    /// The copy of `inst`, and what compares its results.
    ///
    /// # Errors
    /// Where there is no such instruction, or there are no such registers.
    pub fn new(
        inst: &Inst,
        isa: &Isa,
        registers: CopyRegisters<'_>,
        compared: ComparedWith,
    ) -> Result<Duplicate, Reason> {
        let results = results(inst)?;
        let pairs = registers.results(&results)?;
        let copy = Copy { inst, isa, registers, pairs: &pairs };
        let mut before = Vec::new();
        match copy.accumulated() {
            Some(text) => before.push(text),
            None => {
                let keeps = keeps_some(inst, isa.target().generation());
                if let Some(pair) = pairs.first().filter(|_| keeps) {
                    let old = registers.source(pair.result);
                    let moves = old.iter().zip(pair.shadow.iter());
                    before.extend(moves.map(|(from, to)| move_of(from, to)));
                }
                before.push(copy.text()?);
            }
        }
        let mut after = Vec::new();
        if compared != ComparedWith::Nothing {
            let words = pairs.iter().flat_map(|own| own.result.iter().zip(own.shadow.iter()));
            for (result, shadow) in words {
                let shadow = if compared == ComparedWith::Itself { result } else { shadow };
                let generation = isa.target().generation();
                compare(result, shadow, registers.shadows, generation, &mut after)?;
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

/// Whether some of what the first result's registers held before is in them afterwards, or may be: the
/// copy's begin with the same then.
fn keeps_some(inst: &Inst, generation: Generation) -> bool {
    let modifiers = &inst.modifiers;
    inst.flags.tied
        || inst.operation.preserves_destination_bits(generation)
        || modifiers.op_sel.is_some_and(|own| own != 0)
        || modifiers.sdwa.is_some()
        || modifiers.dpp.is_some()
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

/// The operation that adds to a third source what `inst` adds to its destination.
fn accumulating(inst: &Inst) -> Option<&'static str> {
    match inst.operation.name() {
        "v_fmac_f32" => Some("v_fma_f32"),
        "v_mac_f32" => Some("v_mad_f32"),
        "v_fmac_f64" => Some("v_fma_f64"),
        _ => None,
    }
}

/// A copy of an instruction that is being looked for.
struct Copy<'a> {
    inst: &'a Inst,
    isa: &'a Isa,
    registers: CopyRegisters<'a>,
    pairs: &'a [Pair],
}

impl Copy<'_> {
    /// The mnemonic, and the text of each operand: results in shadows, and shadows in place of what is read.
    fn operands(&self) -> Result<(&str, Vec<String>), Reason> {
        let (mnemonic, operands) = self.inst.text.trim().split_once(' ').ok_or(Reason::Encoding)?;
        let operands = operands.split(", ").map(str::trim);
        let mut results = self.pairs.iter();
        let named = operands.zip(&self.inst.operands).map(|(text, operand)| {
            let Value::Register(range) = operand.value else { return text.to_owned() };
            let own = match operand.role {
                Role::Destination => results.next().map_or(range, |pair| pair.shadow),
                Role::Source => self.registers.source(range),
            };
            text.replacen(&range.to_string(), &own.to_string(), 1)
        });
        let named: Vec<String> = named.collect();
        match named.len() == self.inst.operands.len() {
            true => Ok((mnemonic, named)),
            false => Err(Reason::Encoding),
        }
    }

    /// The instruction with its results in shadows.
    fn text(&self) -> Result<String, Reason> {
        let (mnemonic, operands) = self.operands()?;
        let operands = operands.join(", ");
        let short = format!("{mnemonic} {operands}");
        // The short encodings write carries and conditions to VCC.
        let long = format!("{} {operands}", mnemonic.replace("_e32", "_e64"));
        let sources: Vec<Value> = self.sources().collect();
        let is_copy = |text: &String| {
            self.read(text).is_some_and(|own| {
                own.operation == self.inst.operation && self.does(&own, &sources)
            })
        };
        [short, long].into_iter().find(is_copy).ok_or(Reason::Encoding)
    }

    /// An operation that adds to its destination, as the one that adds to another register.
    fn accumulated(&self) -> Option<String> {
        let operation = accumulating(self.inst)?;
        let added = self.registers.source(self.pairs.first()?.result);
        let (_, operands) = self.operands().ok()?;
        let text = format!("{operation} {}, {added}", operands.join(", "));
        let sources: Vec<Value> = self.sources().chain([Value::Register(added)]).collect();
        self.read(&text).filter(|own| self.does(own, &sources)).map(|_| text)
    }

    /// What the copy is to read.
    fn sources(&self) -> impl Iterator<Item = Value> {
        self.inst.sources().map(|own| match own.value {
            Value::Register(range) => Value::Register(self.registers.source(range)),
            ref other => other.clone(),
        })
    }

    fn read(&self, text: &str) -> Option<Inst> {
        self.isa.decode(&self.isa.assemble(text).ok()?, Pc(0)).ok()
    }

    /// Whether an instruction reads `sources` as the original does its own, and gives what it computes to
    /// the shadows and to nothing else.
    fn does(&self, found: &Inst, sources: &[Value]) -> bool {
        let shadows = || self.pairs.iter().map(|own| own.shadow);
        let scc = RegisterRange::new(Register::Scc, 1);
        let allowed: RegisterSet = shadows().chain([scc]).collect();
        let modified = |inst: &Inst| {
            let all = inst.sources().map(|own| (own.negate, own.absolute, own.sign_extend));
            all.filter(|own| *own != (false, false, false)).collect::<Vec<_>>()
        };
        found.destinations().map(|own| own.value.clone()).eq(shadows().map(Value::Register))
            && found.writes.iter().all(|range| allowed.contains_range(*range))
            && found.sources().map(|own| &own.value).eq(sources)
            && modified(found) == modified(self.inst)
            && found.modifiers == self.inst.modifiers
    }
}
