//! Builds the copy of an instruction and the comparison of its results.
//!
//! The copy precedes the original, which may overwrite its sources, and writes to *shadow* registers. After
//! the original, each word of its results is compared with the shadow:
//! `v_sad_u32 error, shadow, result, error clamp` adds the absolute difference to the lane's `error` and
//! saturates (CDNA 3 ISA, "VOP3 instructions", V_SAD_U32 and CLAMP). `error` stays zero as long as no result
//! has differed. The comparison takes one instruction per word, without branches, and preserves SCC.

use crate::Reason;
use flipwave_hooks::registers::Allocation;
use flipwave_isa::{
    Class, Encoding, Family, Generation, Inst, Isa, MemoryKind, Opcode, Pc, Register,
    RegisterRange, RegisterSet, Role, Value,
};

/// Registers reserved for copies and for the detection of differences. The program does not use them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shadows {
    /// VGPRs for the results of copies.
    pub vectors: Option<RegisterRange>,
    /// AccVGPRs for the results of copies.
    pub accumulators: Option<RegisterRange>,
    /// SGPRs for the results of copies.
    pub scalars: Option<RegisterRange>,
    /// Two VGPRs to which AccVGPRs and SGPRs are moved for their comparison.
    pub compared: Option<RegisterRange>,
    /// The VGPR with each lane's sum of differences.
    pub error: Register,
    /// SGPRs that save EXEC at the start of a wave.
    pub lanes: RegisterRange,
}

/// The code added to duplicate an instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Duplicate {
    /// The assembly code before the instruction: the copy.
    pub before: String,
    /// The assembly code after the instruction: the comparison.
    pub after: String,
    /// The results of the instruction.
    pub results: Vec<RegisterRange>,
    /// The number of added instructions, without waits.
    pub instructions: u32,
}

/// The registers that an instruction writes its results to, by operand. A copy writes shadows instead.
///
/// # Errors
/// The reason, if the instruction cannot be duplicated.
pub fn results(inst: &Inst) -> Result<Vec<RegisterRange>, Reason> {
    let operation = inst.operation;
    let is_load = match (inst.class(), inst.memory().map(|access| access.kind)) {
        (Class::Valu | Class::Matrix | Class::Salu, _) => false,
        (Class::Smem | Class::Vmem | Class::Lds, Some(MemoryKind::Load)) => true,
        // Cross-lane operations of the LDS unit.
        (Class::Lds, None) if operation.is(Family::CrossLane) => true,
        _ => return Err(Reason::Kind),
    };
    if inst.flags.stores || inst.flags.branch || inst.flags.terminator || inst.flags.call {
        return Err(Reason::Kind);
    }
    let is_coherent = inst.modifiers.glc || !inst.modifiers.cache_policy.is_empty();
    if is_load && is_coherent {
        return Err(Reason::Coherent);
    }
    let state_families =
        [Family::GetRegister, Family::SetRegister, Family::Movrel, Family::GprIndex];
    let state_opcodes = [Opcode::SMemtime, Opcode::SMemrealtime, Opcode::SGetpc, Opcode::VSwap];
    if state_families.into_iter().any(|family| operation.is(family))
        || state_opcodes.contains(&operation.opcode())
        || inst.modifiers.lds
        || inst.modifiers.gds
        || inst.encoding == Encoding::Vopd
        // Exchanges, which read both results.
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
            special => matches!(special, Register::VccLo | Register::VccHi),
        };
        range.iter().all(numbered)
    };
    if results.iter().all(is_general) { Ok(results) } else { Err(Reason::Special) }
}

/// The number of shadow registers that a copy needs: the longest result in each register file.
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

/// The second operand of a comparison of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ComparedWith {
    /// The shadow.
    Shadow,
    /// The result itself, which never detects a difference.
    Itself,
    /// The result is not compared.
    Nothing,
}

/// The registers of a copy.
#[derive(Clone, Copy, Debug)]
pub struct CopyRegisters<'a> {
    /// The shadows of results that are compared immediately.
    pub shadows: &'a Shadows,
    /// The shadow of the only result, if it is kept for other copies.
    pub kept: Option<RegisterRange>,
    /// The kept shadows that the copy may read in place of their results.
    pub sources: &'a [Pair],
}

impl CopyRegisters<'_> {
    /// Assigns a shadow to each result.
    fn pairs(&self, results: &[RegisterRange]) -> Result<Vec<Pair>, Reason> {
        let mut pairs: Vec<Pair> = Vec::new();
        for result in results {
            let file = match result.first {
                Register::Vgpr(_) => self.kept.or(self.shadows.vectors),
                Register::AccVgpr(_) => self.shadows.accumulators,
                _ => self.shadows.scalars,
            };
            let file = file.filter(|file| file.words >= result.words).ok_or(Reason::Registers)?;
            let shadow = RegisterRange::new(file.first, result.words);
            if pairs.iter().any(|pair| pair.shadow.overlaps(shadow)) {
                return Err(Reason::Registers);
            }
            pairs.push(Pair { result: *result, shadow });
        }
        Ok(pairs)
    }

    /// The registers that a copy reads where the original reads `range`: a kept shadow, or `range` itself.
    fn source(&self, range: RegisterRange) -> RegisterRange {
        let in_shadow = |Pair { result, shadow }: &Pair| {
            let word = result.iter().position(|register| register == range.first)?;
            let fits = word + usize::from(range.words) <= usize::from(result.words);
            let first = shadow.first.offset(u8::try_from(word).ok()?)?;
            fits.then(|| RegisterRange::new(first, range.words))
        };
        self.sources.iter().find_map(in_shadow).unwrap_or(range)
    }
}

/// A result and its shadow.
#[derive(Clone, Copy, Debug)]
pub struct Pair {
    /// The registers of the result.
    pub result: RegisterRange,
    /// The registers of the copy's result.
    pub shadow: RegisterRange,
}

impl Duplicate {
    /// Builds the copy of `inst` and the comparison of its results.
    ///
    /// # Errors
    /// The reason, if the instruction cannot be duplicated with these registers.
    pub fn new(
        inst: &Inst,
        isa: &Isa,
        registers: CopyRegisters<'_>,
        compared: ComparedWith,
    ) -> Result<Duplicate, Reason> {
        let results = results(inst)?;
        let pairs = registers.pairs(&results)?;
        let copy = Copy { inst, isa, registers, pairs: &pairs };
        let mut before = Vec::new();
        match copy.accumulated() {
            Some(text) => before.push(text),
            None => {
                let keeps = keeps_old_value(inst, isa.target().generation());
                if let Some(pair) = pairs.first().filter(|_| keeps) {
                    let old = registers.source(pair.result);
                    let moves = old.iter().zip(pair.shadow.iter());
                    before.extend(moves.map(|(from, to)| move_text(from, to)));
                }
                before.push(copy.text()?);
            }
        }
        let mut after = Vec::new();
        if compared != ComparedWith::Nothing {
            let words = pairs.iter().flat_map(|pair| pair.result.iter().zip(pair.shadow.iter()));
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

/// Returns `true` if the first result may keep a part of its old value, which the shadow then needs too.
fn keeps_old_value(inst: &Inst, generation: Generation) -> bool {
    let modifiers = &inst.modifiers;
    inst.flags.tied
        || inst.operation.preserves_destination_bits(generation)
        || modifiers.op_sel.is_some_and(|bits| bits != 0)
        || modifiers.sdwa.is_some()
        || modifiers.dpp.is_some()
}

/// Formats a move between registers of one register file.
fn move_text(from: Register, to: Register) -> String {
    let operation = match to {
        Register::AccVgpr(_) => "v_accvgpr_mov_b32",
        Register::Vgpr(_) => "v_mov_b32",
        _ => "s_mov_b32",
    };
    format!("{operation} {to}, {from}")
}

/// Appends the instructions that add the difference of a result and its shadow to the error.
fn compare(
    result: Register,
    shadow: Register,
    shadows: &Shadows,
    generation: Generation,
    lines: &mut Vec<String>,
) -> Result<(), Reason> {
    let error = shadows.error;
    let mut temporaries = shadows.compared.iter().flat_map(|range| range.iter());
    let mut move_to_vgpr = |register: Register, operation: &str| {
        let temporary = temporaries.next().ok_or(Reason::Registers)?;
        lines.push(format!("{operation} {temporary}, {register}"));
        Ok(temporary)
    };
    let (shadow, result) = match shadow {
        Register::Vgpr(_) => (shadow, result),
        Register::AccVgpr(_) => {
            let shadow = move_to_vgpr(shadow, "v_accvgpr_read_b32")?;
            (shadow, move_to_vgpr(result, "v_accvgpr_read_b32")?)
        }
        // Up to gfx9, a vector instruction can read only one scalar register.
        _ if generation < Generation::Gfx10 => (move_to_vgpr(shadow, "v_mov_b32")?, result),
        _ => (shadow, result),
    };
    lines.push(format!("v_sad_u32 {error}, {shadow}, {result}, {error} clamp"));
    Ok(())
}

/// The variant of an accumulating operation with a separate addend operand.
fn accumulating(inst: &Inst) -> Option<&'static str> {
    match inst.operation.name() {
        "v_fmac_f32" => Some("v_fma_f32"),
        "v_mac_f32" => Some("v_mad_f32"),
        "v_fmac_f64" => Some("v_fma_f64"),
        _ => None,
    }
}

/// Builder for the text of an instruction's copy.
struct Copy<'a> {
    inst: &'a Inst,
    isa: &'a Isa,
    registers: CopyRegisters<'a>,
    pairs: &'a [Pair],
}

impl Copy<'_> {
    /// The mnemonic and the operands of the copy: shadows in place of results, and kept shadows in place of
    /// sources.
    fn operands(&self) -> Result<(&str, Vec<String>), Reason> {
        let (mnemonic, operands) = self.inst.text.trim().split_once(' ').ok_or(Reason::Encoding)?;
        let operands = operands.split(", ").map(str::trim);
        let mut results = self.pairs.iter();
        let named = operands.zip(&self.inst.operands).map(|(text, operand)| {
            let Value::Register(range) = operand.value else { return text.to_owned() };
            let replacement = match operand.role {
                Role::Destination => results.next().map_or(range, |pair| pair.shadow),
                Role::Source => self.registers.source(range),
            };
            text.replacen(&range.to_string(), &replacement.to_string(), 1)
        });
        let named: Vec<String> = named.collect();
        if named.len() != self.inst.operands.len() {
            return Err(Reason::Encoding);
        }
        Ok((mnemonic, named))
    }

    /// The copy with the same operation as the original.
    fn text(&self) -> Result<String, Reason> {
        let (mnemonic, operands) = self.operands()?;
        let operands = operands.join(", ");
        let short = format!("{mnemonic} {operands}");
        // Short encodings implicitly write carries and conditions to VCC.
        let long = format!("{} {operands}", mnemonic.replace("_e32", "_e64"));
        let sources: Vec<Value> = self.sources().collect();
        let is_copy = |text: &String| {
            self.assemble(text).is_some_and(|copy| {
                copy.operation == self.inst.operation && self.is_equivalent(&copy, &sources)
            })
        };
        [short, long].into_iter().find(is_copy).ok_or(Reason::Encoding)
    }

    /// The copy of an accumulating instruction, which reads the old value of the destination as a separate
    /// operand. `None` if the instruction is not accumulating.
    fn accumulated(&self) -> Option<String> {
        let operation = accumulating(self.inst)?;
        let added = self.registers.source(self.pairs.first()?.result);
        let (_, operands) = self.operands().ok()?;
        let text = format!("{operation} {}, {added}", operands.join(", "));
        let sources: Vec<Value> = self.sources().chain([Value::Register(added)]).collect();
        self.assemble(&text).filter(|copy| self.is_equivalent(copy, &sources)).map(|_| text)
    }

    /// The source values of the copy.
    fn sources(&self) -> impl Iterator<Item = Value> {
        self.inst.sources().map(|source| match source.value {
            Value::Register(range) => Value::Register(self.registers.source(range)),
            ref constant => constant.clone(),
        })
    }

    /// Assembles an instruction and decodes it again.
    fn assemble(&self, text: &str) -> Option<Inst> {
        self.isa.decode(&self.isa.assemble(text).ok()?, Pc(0)).ok()
    }

    /// Returns `true` if a copy reads `sources`, has the modifiers of the original, and writes only the
    /// shadows and SCC.
    fn is_equivalent(&self, copy: &Inst, sources: &[Value]) -> bool {
        let shadows = || self.pairs.iter().map(|pair| pair.shadow);
        let scc = RegisterRange::new(Register::Scc, 1);
        let allowed: RegisterSet = shadows().chain([scc]).collect();
        let source_modifiers = |inst: &Inst| {
            let all =
                inst.sources().map(|source| (source.negate, source.absolute, source.sign_extend));
            all.filter(|modifiers| *modifiers != (false, false, false)).collect::<Vec<_>>()
        };
        let destinations = copy.destinations().map(|destination| destination.value.clone());
        destinations.eq(shadows().map(Value::Register))
            && copy.writes.iter().all(|range| allowed.contains_range(*range))
            && copy.sources().map(|source| &source.value).eq(sources)
            && source_modifiers(copy) == source_modifiers(self.inst)
            && copy.modifiers == self.inst.modifiers
    }
}
