//! Combines LLVM's description of an instruction with its printed form.

use crate::ffi::{Description, McOperand, flag};
use crate::inst::{Encoding, Flags, Inst, InstWords, Modifiers, Operand, Role, SdwaUnused, Value};
use crate::text::{self, Printed, Syntax};
use crate::{
    Class, ConstantType, Family, Generation, Half, Opcode, Operation, Pc, Register, RegisterRange,
};
use std::sync::Arc;

/// Builds the position-independent part of an instruction from LLVM's description.
pub(crate) fn words(
    description: Description,
    bytes: &[u8],
    generation: Generation,
    wave_size: u8,
) -> InstWords {
    let text = description.text.trim();
    let (mnemonic, _) = text.split_once(' ').unwrap_or((text, ""));
    let encoding = encoding(description.format, mnemonic, bytes);
    let has_symbolic_operands = matches!(encoding, Encoding::Sopp | Encoding::Sopk);
    let syntax = if has_symbolic_operands { Syntax::Symbolic } else { Syntax::Modifiers };
    let mut printed = text::parse(text, syntax);
    let operation = Operation::from_mnemonic(&printed.mnemonic, generation);

    if encoding == Encoding::Sdwa {
        printed.modifiers.sdwa.get_or_insert_default();
    }
    let immediates = || {
        description.operands.iter().filter_map(|operand| match operand {
            McOperand::Immediate { value, .. } => Some(*value),
            _ => None,
        })
    };
    if operation.opcode() == Opcode::DsSwizzle {
        let pattern = immediates().next().map(|offset| offset as u16);
        printed.modifiers.swizzle = pattern;
        printed.modifiers.offset = i64::from(pattern.unwrap_or_default());
    }
    let has_symbol =
        printed.operands.iter().any(|operand| matches!(operand.value, Value::Symbol(_)));
    // The literal of s_setreg_imm32_b32 precedes the register's number in MC's order.
    let immediate =
        if has_symbolic_operands || has_symbol { immediates().next_back() } else { None };
    fix_immediate_fields(&mut printed, encoding, operation, immediate);

    if let (Encoding::Export, Some(target)) = (encoding, printed.operands.first_mut()) {
        // `null` is an export target here, not the register.
        let (_, rest) = text.split_once(' ').unwrap_or_default();
        target.value = Value::Symbol(rest.split(' ').next().unwrap_or_default().to_owned());
    }

    let mut reads = Vec::new();
    let mut writes = Vec::new();
    for operand in &description.operands {
        match operand {
            McOperand::Definition(register) => include(&mut writes, *register),
            McOperand::Use { register, .. } => include(&mut reads, *register),
            _ => {}
        }
    }
    for implicit in &description.implicit_definitions {
        include(&mut writes, lane_mask(*implicit, wave_size));
    }
    for implicit in &description.implicit_uses {
        include(&mut reads, lane_mask(*implicit, wave_size));
    }
    if encoding == Encoding::Export {
        // MC has a register for each channel, even if disabled; the text has only the enabled ones.
        let is_printed =
            |range| printed.operands.iter().any(|operand| operand.value == Value::Register(range));
        reads.retain(|range| !range.first.is_per_lane() || is_printed(*range));
    }
    let reads_m0 = printed.modifiers.gds || operation.is(Family::LdsUsesM0);
    match encoding {
        Encoding::Ds if reads_m0 => include(&mut reads, RegisterRange::new(Register::M0, 1)),
        // From gfx9 on M0 no longer limits LDS accesses, but LLVM shares descriptions between generations.
        Encoding::Ds if generation >= Generation::Gfx9 => {
            reads.retain(|range| range.first != Register::M0);
        }
        _ => {}
    }
    if let Some(bits) = wide_literal(&bytes[..usize::from(description.size)], encoding, generation)
    {
        widen_literals(&mut printed, bits);
    }
    let mut operands = operands(&mut printed, &description, operation, generation);
    if let Some(data) = data_half(&mut operands, encoding, operation, generation) {
        data.half = operation.data_half();
    }
    let sdwa_preserves =
        printed.modifiers.sdwa.is_some_and(|sdwa| sdwa.unused == SdwaUnused::Preserve);
    if sdwa_preserves || accumulates(operation) || operation.preserves_destination_bits(generation)
    {
        for operand in operands.iter().filter(|operand| operand.role == Role::Destination) {
            if let Value::Register(range) = operand.value {
                // A load of several registers fills all but the last one.
                let last = range.first.offset(range.words - 1).filter(|_| !sdwa_preserves);
                include(&mut reads, last.map_or(range, |last| RegisterRange::new(last, 1)));
            }
        }
    }

    InstWords {
        size: description.size,
        operation,
        encoding,
        operands,
        modifiers: printed.modifiers,
        immediate,
        reads,
        writes,
        flags: flags(&description, operation),
        opcode_name: description.name,
        text: text.to_owned(),
    }
}

/// The instruction with these words at `pc`.
pub(crate) fn at(words: Arc<InstWords>, pc: Pc) -> Inst {
    let branch_target = match printed_branch_offset(&words.operands, words.encoding) {
        Some(offset) if words.flags.branch => {
            Some(Pc(pc.0.wrapping_add(4).wrapping_add_signed(offset * 4)))
        }
        _ => None,
    };
    Inst { pc, branch_target, words }
}

/// Distinguishes immediate fields from literals, both of which LLVM prints either in decimal or in
/// hexadecimal.
fn fix_immediate_fields(
    printed: &mut Printed,
    encoding: Encoding,
    operation: Operation,
    field: Option<i64>,
) {
    for operand in &mut printed.operands {
        operand.value = match (&operand.value, encoding, field) {
            (Value::Integer(literal), ..) if operation.opcode() == Opcode::SSetregImm32 => {
                Value::Literal(*literal as u32)
            }
            (Value::Literal(_), ..) if operation.opcode() == Opcode::SSetregImm32 => continue,
            (Value::Literal(offset), Encoding::Smem, _) => Value::Integer(i64::from(*offset)),
            (Value::Literal(_) | Value::Integer(_), Encoding::Sopp, Some(field)) => {
                Value::Integer(field)
            }
            (Value::Literal(_) | Value::Integer(_), Encoding::Sopk, Some(field)) => {
                let is_unsigned = operation.is(Family::CompareUnsignedImmediate);
                Value::Integer(if is_unsigned { field as u16 as i64 } else { field as i16 as i64 })
            }
            _ => continue,
        };
    }
}

/// The 64-bit literal of an instruction in a one-word format. Nothing else makes such an instruction three
/// words long (LLVM, `Feature64BitLiterals`).
fn wide_literal(bytes: &[u8], encoding: Encoding, generation: Generation) -> Option<u64> {
    use Encoding::{Sop1, Sop2, Sopc, Vop1, Vop2, Vopc};
    let has_literal = matches!(encoding, Sop1 | Sop2 | Sopc | Vop1 | Vop2 | Vopc)
        && generation >= Generation::Gfx125
        && bytes.len() == 12;
    let literal = has_literal.then(|| bytes.last_chunk()).flatten();
    literal.map(|literal| u64::from_le_bytes(*literal))
}

/// Replaces printed literals by the full 64-bit literal, since the text may omit high bits.
fn widen_literals(printed: &mut Printed, bits: u64) {
    for operand in &mut printed.operands {
        let is_lit64 = matches!(&operand.value, Value::Symbol(word) if word.starts_with("lit64("));
        if is_lit64 || matches!(operand.value, Value::Literal(_)) {
            operand.value = Value::WideLiteral(bits);
        }
    }
}

/// Explicit operands with their roles. A destination is a leading operand that MC defines, or the `vcc`
/// that VOP2 and VOPC print although MC defines it implicitly.
fn operands(
    printed: &mut Printed,
    description: &Description,
    operation: Operation,
    generation: Generation,
) -> Vec<Operand> {
    let is_vector = printed.mnemonic.starts_with("v_");
    let mut implicit_vcc = is_vector
        && description.implicit_definitions.iter().any(|range| range.first == Register::VccLo);
    let mut definitions = description
        .operands
        .iter()
        .filter_map(|operand| match operand {
            McOperand::Definition(register) => Some(*register),
            _ => None,
        })
        .peekable();
    let mut constant_types = constant_types(description);
    let modifiers = printed.modifiers.clone();
    let mut sources = 0;
    let mut leading = true;
    let second_half = printed.second_half;
    let mut halves = Halves::default();
    let with_role = |(index, operand): (usize, text::PrintedOperand)| {
        leading |= second_half == Some(index);
        let is_destination = leading
            && match operand.value {
                Value::Register(range) if definitions.peek() == Some(&range) => {
                    definitions.next();
                    true
                }
                Value::Register(range) if range.first == Register::VccLo && implicit_vcc => {
                    implicit_vcc = false;
                    true
                }
                _ => false,
            };
        // Each half of a VOPD instruction has one destination; the source printed after it may be the
        // destination of the other half.
        leading = is_destination && second_half.is_none();
        let is_constant = matches!(
            operand.value,
            Value::Integer(_) | Value::Float(_) | Value::Literal(_) | Value::WideLiteral(_)
        );
        let described = if is_constant { constant_types.next() } else { None };
        let constant =
            described.map(|described| described.refine(operation, &modifiers, sources, generation));
        halves.add(operand.half, (!is_destination).then_some(sources));
        sources += usize::from(!is_destination);
        Operand {
            role: if is_destination { Role::Destination } else { Role::Source },
            value: operand.value,
            constant,
            negate: operand.negate,
            absolute: operand.absolute,
            sign_extend: operand.sign_extend,
            half: operand.half,
        }
    };
    let operands = std::mem::take(&mut printed.operands);
    let operands = operands.into_iter().enumerate().map(with_role).collect();
    halves.update_op_sel(sources, printed.op_sel_entries, &mut printed.modifiers);
    operands
}

/// The data operand of a 16-bit or narrower memory instruction, which accesses half of its register
/// although it is printed without a half; `None` before gfx11, where registers have no halves.
fn data_half(
    operands: &mut [Operand],
    encoding: Encoding,
    operation: Operation,
    generation: Generation,
) -> Option<&mut Operand> {
    operation.data_half().filter(|_| generation >= Generation::Gfx11)?;
    // Buffer instructions print the stored data first, other stores after the address.
    let is_buffer = matches!(encoding, Encoding::Mubuf | Encoding::Mtbuf);
    let is_load = operands.first()?.role == Role::Destination;
    operands.get_mut(usize::from(!is_buffer && !is_load))
}

/// Register halves named by 16-bit operands (`v1.h`), which LLVM prints from gfx11 on. Short forms
/// encode the half in the register number, long forms in `op_sel`.
#[derive(Default)]
struct Halves {
    /// Bit mask of sources that are high halves.
    high_sources: u8,
    /// Bit mask of results that are high halves.
    high_results: u8,
    /// Number of results that are halves.
    results: u8,
}

impl Halves {
    /// Adds the half of an operand; `source` is the number of a source, or `None` for a destination.
    fn add(&mut self, half: Option<Half>, source: Option<usize>) {
        let Some(half) = half else { return };
        let is_high = u8::from(half == Half::High);
        match source {
            Some(number) => self.high_sources |= is_high << number,
            None => {
                self.high_results |= is_high << self.results;
                self.results += 1;
            }
        }
    }

    /// Sets `op_sel` to the named halves, keeping the printed bits of scalar sources, whose names have no
    /// half.
    fn update_op_sel(self, sources: usize, op_sel_entries: u8, modifiers: &mut Modifiers) {
        let Halves { high_sources, high_results, results } = self;
        if high_sources == 0 && results == 0 {
            return;
        }
        let printed = modifiers.op_sel.unwrap_or_default();
        // The last printed bit belongs to the result, even if some sources without halves have none.
        let source_bits = printed & ((1u8 << op_sel_entries.saturating_sub(results)) - 1);
        let bits = source_bits | high_sources | high_results << sources;
        modifiers.op_sel = Some(bits).filter(|bits| *bits != 0);
    }
}

/// The types of the constants among the operands, in order. Immediates that a register cannot replace
/// have no type.
fn constant_types(description: &Description) -> impl Iterator<Item = ConstantType> {
    description.operands.iter().filter_map(|operand| match operand {
        McOperand::Immediate { constant, .. } => *constant,
        _ => None,
    })
}

/// Narrows VCC and EXEC to their low halves for wave32.
fn lane_mask(range: RegisterRange, wave_size: u8) -> RegisterRange {
    match range.first {
        Register::VccLo | Register::ExecLo if wave_size == 32 => RegisterRange::new(range.first, 1),
        _ => range,
    }
}

fn include(set: &mut Vec<RegisterRange>, range: RegisterRange) {
    if !set.contains(&range) {
        set.push(range);
    }
}

/// Returns `true` if the operation accumulates into its destination although LLVM does not describe the
/// destination as read.
fn accumulates(operation: Operation) -> bool {
    matches!(operation.opcode(), Opcode::VPkFmac | Opcode::VCvtPkAccum)
}

fn flags(description: &Description, operation: Operation) -> Flags {
    let has = |bit| description.flags & bit != 0;
    Flags {
        loads: has(flag::LOADS),
        stores: has(flag::STORES),
        // LLVM does not mark forks, joins and returns from exceptions as branches.
        branch: (has(flag::BRANCH) || operation.class() == Class::Branch)
            && operation.opcode() != Opcode::SEndpgm,
        conditional: has(flag::CONDITIONAL),
        call: has(flag::CALL),
        terminator: has(flag::TERMINATOR),
        barrier: has(flag::BARRIER),
        // LLVM marks the destinations of some byte conversions as early-clobber instead of tied.
        tied: operation.is(Family::ConvertToByte)
            || accumulates(operation)
            || description
                .operands
                .iter()
                .any(|operand| matches!(operand, McOperand::Use { tied: true, .. })),
        side_effects: has(flag::SIDE_EFFECTS),
    }
}

/// Offset of a direct branch in words, relative to the next instruction.
fn printed_branch_offset(operands: &[Operand], encoding: Encoding) -> Option<i64> {
    match (encoding, operands.last().map(|operand| &operand.value)) {
        (Encoding::Sopp | Encoding::Sopk, Some(Value::Integer(words))) => {
            Some(i64::from(*words as i16))
        }
        _ => None,
    }
}

/// The instruction format, from LLVM's `TSFlags` and, for flat, global and scratch instructions, the
/// mnemonic. The bits are those of LLVM 22's `SIInstrFlags`; a test checks each on known instructions.
fn encoding(format: u64, mnemonic: &str, bytes: &[u8]) -> Encoding {
    /// Formats in lookup order: the SDWA, DPP and VOP3 forms of an instruction also have the bit of its
    /// short form.
    const FORMATS: [(u32, Encoding); 22] = [
        (14, Encoding::Sdwa),
        (15, Encoding::Dpp),
        (29, Encoding::Vintrp),
        (12, Encoding::Vop3p),
        (10, Encoding::Vop3),
        (2, Encoding::Sop1),
        (3, Encoding::Sop2),
        (4, Encoding::Sopc),
        (5, Encoding::Sopk),
        (6, Encoding::Sopp),
        (7, Encoding::Vop1),
        (8, Encoding::Vop2),
        (9, Encoding::Vopc),
        (13, Encoding::Vintrp),
        (17, Encoding::Mubuf),
        (18, Encoding::Mtbuf),
        (19, Encoding::Smem),
        (20, Encoding::Mimg),
        (21, Encoding::Mimg),
        (22, Encoding::Mimg),
        (23, Encoding::Export),
        (25, Encoding::Ds),
    ];
    if mnemonic.starts_with("v_dual_") {
        return Encoding::Vopd;
    }
    if mnemonic.starts_with("global_") || mnemonic.starts_with("cluster_load_") {
        return Encoding::Global;
    }
    if mnemonic.starts_with("scratch_") {
        return Encoding::Scratch;
    }
    if mnemonic.starts_with("flat_") {
        return Encoding::Flat;
    }
    if ["v_mfma_", "v_smfmac_", "v_accvgpr_"].iter().any(|family| mnemonic.starts_with(family)) {
        return Encoding::Vop3p;
    }
    let found = FORMATS.iter().find(|(bit, _)| format >> bit & 1 != 0);
    match found.map_or(Encoding::Other, |(_, encoding)| *encoding) {
        // LLVM keeps the bit of an older generation's short form for some instructions (v_readlane_b32).
        // Only short forms have their highest bit clear.
        Encoding::Vop1 | Encoding::Vop2 | Encoding::Vopc if bytes[3] >> 7 != 0 => Encoding::Vop3,
        encoding => encoding,
    }
}
