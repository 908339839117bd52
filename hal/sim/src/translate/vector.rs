//! The operands and modifiers of vector operations.

use super::operands::{Gap, OPERANDS, constant, source};
use crate::execute::lane::{Kind, ResultKind};
use crate::execute::operand::VCC_WORDS;
use crate::execute::operations::{self, Variant};
use crate::instruction::lane_move::LaneMove;
use crate::instruction::{Adapt, Finish, Op, Run, Source, SourceAdapt, TableRow, VectorOperation};
use crate::wave::{Level, Machine, RowIndex, ScalarIndex};
use flipwave_isa::{
    Encoding, Family, Generation, Inst, Opcode, Operand, OutputScale, Sdwa, SdwaSelect, SdwaUnused,
    Value,
};

/// Resolves the operands and modifiers of a vector operation.
pub fn vector_operands(
    op: &mut Op,
    inst: &Inst,
    level: Level,
    machine: Machine,
) -> Result<Run, Gap> {
    let name = inst.operation.name();
    if let Some(operation) = operations::find_whole(name, machine) {
        // A second destination is also read: `v_swap_b32`.
        let operands = inst.sources().chain(inst.destinations().skip(1));
        let mut values: Vec<&Operand> = operands.collect();
        // LLVM lists the register that M0 is added to as a source.
        if ["v_movreld_b32", "v_movrelsd_b32", "v_movrelsd_2_b32"].contains(&name)
            && values.len() > 1
            && let Value::Register(range) = values.remove(0).value
        {
            op.destination = RowIndex::nominal(range.first).ok_or(OPERANDS)?;
        }
        for (index, value) in values.iter().take(op.sources.len()).enumerate() {
            let kind = operation.sources.get(index).copied().unwrap_or(Kind::Word);
            op.sources[index] = source(value, kind)?;
        }
        // Two scales of one word each.
        if let Some(second) = values.get(4) {
            op.sources[3].words[1] = source(second, Kind::Word)?.words[0];
        }
        if inst.modifiers.sdwa.is_some_and(|sdwa| sdwa != Sdwa::FULL_DWORDS) {
            return Err(Gap("parts of words in a move that M0 directs"));
        }
        if let Some(dpp) = &inst.modifiers.dpp {
            let lane_move = Some(LaneMove::of(dpp));
            op.adapt = Some(Box::new(Adapt { lane_move, ..Adapt::default() }));
        }
        return Ok(Run::Whole(operation.function));
    }
    let row = row(inst, machine)?;
    let mut operands: Vec<(&Operand, SourceAdapt)> = Vec::new();
    for (index, operand) in inst.sources().enumerate() {
        let kind = row.sources.get(index).copied().ok_or(OPERANDS)?;
        operands.push((operand, source_adapt(inst, index, kind)));
    }
    let is_listed = inst.operation.opcode() == Opcode::VBitop3;
    if operands.len() < row.sources.len() && row.sources.last() != Some(&Kind::Mask) && !is_listed {
        let destination = inst.destinations().next().ok_or(OPERANDS)?;
        operands
            .push((destination, SourceAdapt { select: added_half(inst), ..Default::default() }));
    }
    for (index, (operand, _)) in operands.iter().enumerate() {
        op.sources[index] = source(operand, row.sources[index])?;
    }
    match row.sources.len() - operands.len() {
        0 => {}
        1 if inst.operation.opcode() == Opcode::VBitop3 => {
            op.sources[operands.len()].words = constant(inst.modifiers.bitop3.into());
        }
        1 if row.sources.last() == Some(&Kind::Mask) => {
            op.sources[operands.len()] = Source { words: VCC_WORDS };
        }
        _ => return Err(OPERANDS),
    }
    mask_destination(op, inst, row, machine);
    let lane_move = inst.modifiers.dpp.as_ref().map(LaneMove::of);
    let mut adapt = Adapt { finish: finish(inst, row, machine), lane_move, ..Adapt::default() };
    for (slot, (_, source_adapt)) in adapt.sources.iter_mut().zip(&operands) {
        *slot = *source_adapt;
    }
    if adapt != Adapt::default() {
        op.adapt = Some(Box::new(adapt));
    }
    op.row = Some(TableRow::Vector(row));
    Ok(Run::Vector(row.function(level)))
}

/// Finds the operation's table row. A comparison that writes EXEC uses the row of the comparison
/// without it. Saturating integer operations have separate rows; operations without such a row
/// cannot overflow (minimum, maximum, median, shifts) or do not produce a number (`v_div_scale`).
/// Each combination of `neg_lo` signs also has its row.
fn row(inst: &Inst, machine: Machine) -> Result<&'static VectorOperation, Gap> {
    let name = inst.operation.name();
    let signed_sources = has_signs(inst).then_some(inst.modifiers.neg_lo & 3);
    let compare = name.strip_prefix("v_cmpx_").map(|suffix| format!("v_cmp_{suffix}"));
    let row = operations::find_for(compare.as_deref().unwrap_or(name), signed_sources, machine)
        .ok_or(Gap("this operation"))?;
    let selects_format = name == "v_cvt_f32_fp8" && machine.generation >= Generation::Gfx125;
    if inst.modifiers.clamp && (!row.float || selects_format) {
        let saturating = Variant { signed_sources, edition: None, saturates: true };
        return Ok(operations::find_variant(name, saturating).unwrap_or(row));
    }
    Ok(row)
}

/// Returns `true` if `neg_lo` selects which sources are signed.
fn has_signs(inst: &Inst) -> bool {
    inst.operation.opcode() == Opcode::VDotMixedSign
}

/// Sets the destination of a lane-mask result: the only destination of a comparison, or the second
/// destination of an operation with a carry.
fn mask_destination(op: &mut Op, inst: &Inst, row: &VectorOperation, machine: Machine) {
    let position = match row.result {
        ResultKind::Rows(_) => return,
        ResultKind::Mask => 0,
        ResultKind::RowsAndMask(_) => 1,
    };
    if let Some(operand) = inst.destinations().nth(position)
        && let Value::Register(range) = operand.value
    {
        let low = ScalarIndex::of_destination(range.first);
        op.mask_destination = machine.mask_destination(low);
    }
    // From gfx10 on, comparisons that write EXEC write nothing else, and name no destination.
    op.writes_exec = inst.operation.is(Family::CompareWritesExec);
}

/// Modifiers of one source.
fn source_adapt(inst: &Inst, index: usize, kind: Kind) -> SourceAdapt {
    let modifiers = &inst.modifiers;
    let operand = inst.sources().nth(index);
    let bit = |mask: u8| mask >> index & 1 != 0;
    let mut adapt = SourceAdapt {
        negate: operand.is_some_and(|operand| operand.negate),
        absolute: operand.is_some_and(|operand| operand.absolute),
        sign_extend: operand.is_some_and(|operand| operand.sign_extend),
        ..SourceAdapt::default()
    };
    if let Some(sdwa) = &modifiers.sdwa
        && let Some(select) = sdwa.sources.get(index)
    {
        adapt.select = *select;
    }
    let op_sel = bit(modifiers.op_sel.unwrap_or(0));
    if inst.encoding == Encoding::Vop3 && matches!(kind, Kind::Packed | Kind::PackedWords) {
        adapt.low_from_high = op_sel && !inst.operation.is(Family::ConvertSmallFloat);
        adapt.negate_low = adapt.negate;
        adapt.negate_high = adapt.negate;
        return adapt;
    }
    if inst.operation.is(Family::ConvertSmallFloat) && inst.encoding == Encoding::Vop3 {
        if index == 0 {
            // Conversions that gfx1250 adds read half precision from either half.
            let is_high =
                op_sel && kind == Kind::F16 && inst.operation.is(Family::ConvertStochastic);
            adapt.select = if is_high { SdwaSelect::Word1 } else { part_read(inst) };
        }
        return adapt;
    }
    if matches!(kind, Kind::Mixed | Kind::MixedBrain) {
        // Here `op_sel_hi` marks a half-precision source, and its default is none.
        adapt.select = match (bit(modifiers.op_sel_hi.unwrap_or(0)), op_sel) {
            (false, _) => SdwaSelect::Dword,
            (true, false) => SdwaSelect::Word0,
            (true, true) => SdwaSelect::Word1,
        };
    } else if matches!(kind, Kind::Packed | Kind::PackedWords) {
        adapt.low_from_high = op_sel;
        adapt.high_from_low = !bit(modifiers.op_sel_hi.unwrap_or(u8::MAX));
        adapt.negate_low = bit(modifiers.neg_lo);
        adapt.negate_high = bit(modifiers.neg_hi);
    } else if modifiers.byte_select != 0 && !inst.operation.is(Family::ConvertToByte) {
        adapt.select = byte(modifiers.byte_select);
    } else if has_signs(inst) {
        // The bits have another meaning there.
    } else if inst.encoding == Encoding::Vop3p {
        adapt.negate |= bit(modifiers.neg_lo);
    } else if op_sel {
        adapt.select = SdwaSelect::Word1;
    }
    adapt
}

/// The half of the destination that an operation adds to, which is also the half that it writes.
fn added_half(inst: &Inst) -> SdwaSelect {
    if writes_high_half(inst) { SdwaSelect::Word1 } else { SdwaSelect::Dword }
}

/// Returns `true` if the result goes to the high half: the `op_sel` bit after the sources' bits
/// selects it.
fn writes_high_half(inst: &Inst) -> bool {
    let bits = inst.modifiers.op_sel.unwrap_or(0) >> inst.sources().count();
    inst.encoding != Encoding::Vop3p && bits & 1 != 0
}

/// The part of the first source that a conversion from a small format reads.
fn part_read(inst: &Inst) -> SdwaSelect {
    let op_sel = inst.modifiers.op_sel.unwrap_or(0);
    if inst.operation.is(Family::ConvertFromByte) {
        byte(op_sel)
    } else if inst.operation.is(Family::ConvertFromTwoBytes) && op_sel & 1 != 0 {
        SdwaSelect::Word1
    } else {
        SdwaSelect::Dword
    }
}

/// Selects a byte of a register.
fn byte(number: u8) -> SdwaSelect {
    [SdwaSelect::Byte0, SdwaSelect::Byte1, SdwaSelect::Byte2, SdwaSelect::Byte3]
        [usize::from(number & 3)]
}

/// Modifiers of the result.
fn finish(inst: &Inst, row: &VectorOperation, machine: Machine) -> Finish {
    let modifiers = &inst.modifiers;
    let mut finish = Finish {
        scale: if row.float { modifiers.output_scale } else { OutputScale::None },
        clamp: row.float && modifiers.clamp,
        ..Finish::default()
    };
    if let Some(sdwa) = &modifiers.sdwa
        && row.result != ResultKind::Mask
    {
        finish.select = sdwa.destination;
        finish.unused = sdwa.unused;
    }
    // The tables specify what gfx9 preserves; from gfx10 on, every 16-bit result preserves the
    // other half.
    if machine.generation >= Generation::Gfx10
        && inst.operation.preserves_destination_bits(machine.generation)
        && !matches!(inst.encoding, Encoding::Sdwa | Encoding::Vop3p)
    {
        finish.select = SdwaSelect::Word0;
        finish.unused = SdwaUnused::Preserve;
    }
    if inst.operation.is(Family::ConvertToByte) {
        let gfx9_byte = modifiers.op_sel.unwrap_or(0) >> 2;
        let is_newer = machine.generation >= Generation::Gfx12;
        finish.select = byte(if is_newer { modifiers.byte_select } else { gfx9_byte });
        finish.unused = SdwaUnused::Preserve;
        return finish;
    }
    if writes_high_half(inst) {
        finish.select = SdwaSelect::Word1;
        finish.unused = SdwaUnused::Preserve;
    }
    finish
}
