//! From a decoded instruction to one that is ready for execution.

use crate::dpp::LaneMove;
use crate::lane_value::{Kind, ResultKind};
use crate::lds::LdsAccess;
use crate::machine::Machine;
use crate::op::{Adapt, Dual, Finish, Op, Run, Source, SourceAdapt, Word};
use crate::vector::{Level, VCC_WORDS, VectorOperation};
use crate::wave::{RowIndex, ScalarIndex};
use crate::{
    aperture, control, hardware_register, lds, not_compute, operations, scalar, scalar_memory,
    vector_memory,
};
use flipwave_isa::{
    AccVgpr, Dpp, DppControl, Encoding, Family, Generation, Inst, Operand, Operation, OutputScale,
    Register, RegisterRange, Role, SdwaSelect, SdwaUnused, Value, Vgpr,
};

/// Why an instruction cannot be executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap(pub &'static str);

/// Makes an instruction ready. One that cannot be executed becomes an [`Op`] that says so when
/// it is reached.
pub fn translate(inst: Inst, level: Level, machine: Machine) -> Op {
    let mut op = Op::new(inst, Run::Gap(""));
    op.run = match resolve(&mut op, level, machine) {
        Ok(run) => run,
        Err(Gap(reason)) => Run::Gap(reason),
    };
    op.per_lane = op.run.is_per_lane();
    if machine.accum_offset().is_some() {
        place_rows(&mut op, machine);
    }
    op
}

/// Puts AccVGPRs where the kernel's begin.
fn place_rows(op: &mut Op, machine: Machine) {
    op.destination = op.destination.placed(machine);
    for word in op.sources.iter_mut().flat_map(|source| &mut source.words) {
        if let Word::Row(row) = word {
            *row = row.placed(machine);
        }
    }
}

/// Resolves the operands and gives what executes the instruction.
fn resolve(op: &mut Op, level: Level, machine: Machine) -> Result<Run, Gap> {
    name_registers(op, machine);
    let inst = op.inst.clone();
    let name = inst.operation.name();
    let lacks_units = matches!(machine.generation, Generation::Gfx90a | Generation::Gfx940);
    if let Some(reason) = not_compute::reason(&inst) {
        if !lacks_units {
            return Err(Gap("images, graphics, and units that gfx90a lacks"));
        }
        return Ok(Run::NotCompute(reason));
    }
    if inst.modifiers.gds && !name.starts_with("ds_gws_") && !lacks_units {
        return Err(Gap("the global data share"));
    }
    if !inst.modifiers.other.is_empty() {
        return Err(Gap("a modifier is not understood"));
    }
    if names_halves(&inst) {
        return Err(Gap("halves of registers as operands"));
    }
    if let Some(destination) = inst.destinations().next()
        && let Value::Register(range) = destination.value
    {
        if let Some(row) = RowIndex::nominal(range.first) {
            op.destination = row;
        } else {
            op.scalar_destination = ScalarIndex::of_destination(range.first);
        }
    }
    if let Some(control) = control::find(name) {
        if inst.encoding == Encoding::Ds {
            op.immediate = inst.modifiers.offset;
        }
        if let Some(target) = inst.branch_target {
            let next = inst.pc.0.wrapping_add(inst.size.into());
            op.immediate = target.0.wrapping_sub(next) as i64 / 4;
        }
        for (slot, operand) in op
            .sources
            .iter_mut()
            .zip(inst.sources().filter(|operand| !matches!(operand.value, Value::Symbol(_))))
        {
            *slot = source(operand, Kind::Wide)?;
        }
        // Four bits of MODE in the place of a hardware register's number.
        if let Some(offset) = match name {
            "s_round_mode" => Some(0),
            "s_denorm_mode" => Some(4),
            _ => None,
        } {
            op.sources[0] = Source { words: constant(op.immediate as u64 & 0xf) };
            op.immediate = hardware_register::mode_field(offset, 4).into();
        }
        return Ok(Run::Control(control));
    }
    if name.starts_with("s_sendmsg_rtn_") {
        return answer(op);
    }
    if let Some(operation) = scalar::find(name) {
        return scalar_operands(op, &inst, operation);
    }
    if let Some(access) = scalar_memory::find(name, inst.modifiers.glc) {
        return scalar_memory_operands(op, &inst, access);
    }
    match inst.encoding {
        Encoding::Global
        | Encoding::Flat
        | Encoding::Scratch
        | Encoding::Mubuf
        | Encoding::Mtbuf => vector_memory_operands(op, &inst, machine),
        Encoding::Ds => lds_operands(op, &inst),
        Encoding::Vopd => dual(op, &inst, level, machine),
        _ => vector_operands(op, &inst, level, machine),
    }
}

/// Whether an operand is the low or the high half of a register by name (`v1.h`), which the
/// decoded operands do not tell (gfx11 and later).
fn names_halves(inst: &Inst) -> bool {
    inst.text.split([' ', ',']).any(|word| word.ends_with(".l") || word.ends_with(".h"))
}

/// Notes the highest vector registers that are named.
fn name_registers(op: &mut Op, machine: Machine) {
    let border = machine.accum_offset().unwrap_or(RowIndex::UPPER_HALF.0);
    for operand in &op.inst.operands {
        if let Value::Register(RegisterRange { first, words }) = operand.value {
            match first {
                Register::Vgpr(Vgpr(n)) => {
                    let end = u16::from(n) + u16::from(words);
                    op.vgprs_named = op.vgprs_named.max(end.min(border));
                    op.acc_vgprs_named = op.acc_vgprs_named.max(end.saturating_sub(border));
                }
                Register::AccVgpr(AccVgpr(n)) => {
                    op.acc_vgprs_named = op.acc_vgprs_named.max(u16::from(n) + u16::from(words));
                }
                _ => {}
            }
        }
    }
}

/// The words of a source.
fn source(operand: &Operand, kind: Kind) -> Result<Source, Gap> {
    let words = match &operand.value {
        Value::Register(range) => register_words(*range, kind)?,
        // What is no number, or has it in the instruction's immediate.
        Value::Off | Value::Symbol(_) => constant(0),
        _ => constant(operand.constant_bits().ok_or(Gap("a source that has no bits"))?),
    };
    Ok(Source { words })
}

fn constant(bits: u64) -> [Word; 2] {
    [Word::Constant(bits as u32), Word::Constant((bits >> 32) as u32)]
}

fn register_words(range: RegisterRange, kind: Kind) -> Result<[Word; 2], Gap> {
    let window = |base: u64, limit: u32| {
        let high = Word::Constant((base >> 32) as u32);
        // Read as one word, these registers give their upper half.
        if kind.words() == 2 { [Word::Constant(limit), high] } else { [high; 2] }
    };
    let flag = |flag| [flag, Word::Constant(0)];
    Ok(match range.first {
        Register::Scc => flag(Word::Scc),
        Register::Vccz => flag(Word::Vccz),
        Register::Execz => flag(Word::Execz),
        // Of no meaning to compute waves.
        Register::Null | Register::PopsExitingWaveId => [Word::Constant(0); 2],
        Register::SharedBase => window(aperture::SHARED, 0),
        Register::SharedLimit => window(aperture::SHARED, u32::MAX),
        Register::PrivateBase => window(aperture::PRIVATE, 0),
        Register::PrivateLimit => window(aperture::PRIVATE, u32::MAX),
        first => {
            let second = first.offset(1).filter(|_| range.words > 1).unwrap_or(first);
            [word(first)?, word(second)?]
        }
    })
}

fn word(register: Register) -> Result<Word, Gap> {
    if let Some(row) = RowIndex::nominal(register) {
        Ok(Word::Row(row))
    } else if let Some(index) = ScalarIndex::of(register) {
        Ok(Word::Scalar(index))
    } else {
        Err(Gap("a source register has no storage"))
    }
}

fn scalar_operands(
    op: &mut Op,
    inst: &Inst,
    operation: &'static scalar::ScalarOperation,
) -> Result<Run, Gap> {
    let is_register = |operand: &Operand| matches!(operand.value, Value::Register(_));
    let mut values: Vec<&Operand> = inst
        .sources()
        .filter(|operand| inst.encoding != Encoding::Sopk || is_register(operand))
        .collect();
    // A destination that is read as well is the last source.
    if values.len() < operation.sources.len()
        && let Some(destination) = inst.destinations().next()
    {
        values.push(destination);
    }
    if values.len() < operation.sources.len() {
        return Err(Gap("the operands are not those of the operation"));
    }
    for (index, value) in values.iter().take(op.sources.len()).enumerate() {
        let words = operation.sources.get(index).copied().unwrap_or(1);
        let kind = if words == 2 { Kind::Wide } else { Kind::Word };
        op.sources[index] = source(value, kind)?;
    }
    Ok(Run::Scalar(operation.run))
}

/// A message that is answered in a register (AMDGPUUsage and LLVM's `SIDefines.h`, `sendmsg`).
fn answer(op: &mut Op) -> Result<Run, Gap> {
    const GET_DOORBELL: i64 = 128;
    const GET_REALTIME: i64 = 131;
    match op.immediate {
        GET_REALTIME => {
            let clock = scalar_memory::find("s_memrealtime", false);
            clock.map(Run::ScalarMemory).ok_or(OPERANDS)
        }
        // Only a trap handler has a use for it. The sources of the move are zero.
        GET_DOORBELL => {
            let wide = op.inst.operation.name().ends_with("_b64");
            let zero = scalar::find(if wide { "s_mov_b64" } else { "s_mov_b32" });
            zero.map(|operation| Run::Scalar(operation.run)).ok_or(OPERANDS)
        }
        _ => Err(Gap("this message")),
    }
}

fn scalar_memory_operands(
    op: &mut Op,
    inst: &Inst,
    access: scalar_memory::ScalarAccess,
) -> Result<Run, Gap> {
    op.immediate = inst.modifiers.offset;
    let values: Vec<&Operand> = inst.sources().collect();
    // Slots: 0 base, 1 offset, 2 data, which stands first where it is not the destination too.
    let has_destination = inst.destinations().next().is_some();
    let order: &[usize] = if has_destination { &[0, 1] } else { &[2, 0, 1] };
    if values.len() > order.len() {
        return Err(OPERANDS);
    }
    for (value, slot) in values.into_iter().zip(order) {
        match (slot, &value.value) {
            (1, Value::Integer(offset)) => op.immediate = *offset,
            (1, Value::Literal(offset)) => op.immediate = i64::from(*offset),
            _ => op.sources[*slot] = source(value, Kind::Wide)?,
        }
    }
    if let Some(destination) = inst.destinations().next() {
        op.sources[2] = source(destination, Kind::Wide)?;
    }
    Ok(Run::ScalarMemory(access))
}

fn vector_memory_operands(op: &mut Op, inst: &Inst, machine: Machine) -> Result<Run, Gap> {
    let buffer = matches!(inst.encoding, Encoding::Mubuf | Encoding::Mtbuf);
    if buffer && machine.generation >= Generation::Gfx11 {
        return Err(Gap("the buffer resources of this generation"));
    }
    let access = vector_memory::find(inst).ok_or(Gap("this memory operation"))?;
    op.immediate = inst.modifiers.offset;
    let values: Vec<&Operand> = inst.sources().collect();
    let has_data = access.transfer.has_data();
    // Slots: 0 address, 1 data, 2 scalar base or resource, 3 scalar offset.
    let order: &[usize] = match (inst.encoding, has_data) {
        // What goes from LDS to memory has no address register.
        (Encoding::Mubuf, false) if values.len() == 2 => &[2, 3],
        (Encoding::Mubuf | Encoding::Mtbuf, false) => &[0, 2, 3],
        // An atomic that returns has its data in the destination.
        (Encoding::Mubuf, true) if inst.destinations().next().is_some() => &[0, 2, 3],
        (Encoding::Mubuf | Encoding::Mtbuf, true) => &[1, 0, 2, 3],
        (Encoding::Flat, false) => &[0],
        (Encoding::Flat, true) => &[0, 1],
        (_, false) => &[0, 2],
        (_, true) => &[0, 1, 2],
    };
    if values.len() != order.len() {
        return Err(Gap("the operands are not those of the operation"));
    }
    for (value, slot) in values.iter().zip(order) {
        op.sources[*slot] = source(value, Kind::Word)?;
    }
    if has_data
        && op.sources[1] == Source::NONE
        && let Some(destination) = inst.destinations().next()
    {
        op.sources[1] = source(destination, Kind::Word)?;
    }
    Ok(Run::VectorMemory(access))
}

fn lds_operands(op: &mut Op, inst: &Inst) -> Result<Run, Gap> {
    // gfx11's name says that the new value precedes the one compared with.
    let name = inst.operation.name().replace("ds_cmpstore_", "ds_cmpst_");
    let access = lds::find(&name).ok_or(Gap("this LDS operation"))?;
    // One field: a long offset, or two short ones.
    let modifiers = &inst.modifiers;
    let short = i64::from(modifiers.offset0) | i64::from(modifiers.offset1) << 8;
    op.immediate = modifiers.offset | short;
    // What is addressed by the thread's number has no address register.
    let first = usize::from(access == LdsAccess::WriteByThread);
    for (slot, operand) in op.sources[first..].iter_mut().zip(inst.sources()) {
        *slot = source(operand, Kind::Word)?;
    }
    if name != inst.operation.name() {
        op.sources.swap(1, 2);
    }
    Ok(Run::Lds(access))
}

fn vector_operands(op: &mut Op, inst: &Inst, level: Level, machine: Machine) -> Result<Run, Gap> {
    let name = inst.operation.name();
    if let Some(operation) = operations::find_whole(name, machine.generation) {
        // A second destination is read as well: `v_swap_b32`.
        let operands = inst.sources().chain(inst.destinations().skip(1));
        let mut values: Vec<&Operand> = operands.collect();
        // LLVM has the register that M0 is added to as a source.
        if ["v_movreld_b32", "v_movrelsd_b32"].contains(&name)
            && let Value::Register(range) = values.remove(0).value
        {
            op.destination = RowIndex::nominal(range.first).ok_or(OPERANDS)?;
        }
        for (index, value) in values.iter().take(op.sources.len()).enumerate() {
            let kind = operation.sources.get(index).copied().unwrap_or(Kind::Word);
            op.sources[index] = source(value, kind)?;
        }
        return Ok(Run::Whole(operation.function));
    }
    let row = row(inst)?;
    if let Some(Dpp { control: DppControl::Dpp8(_), fetch_inactive: false, .. }) =
        inst.modifiers.dpp
    {
        return Err(Gap("DPP8 that may read lanes that are not active"));
    }
    // It packs two bytes, and whether these leave the other half alone is not in the table.
    if name == "v_sat_pk_u8_i16" && machine.generation >= Generation::Gfx10 {
        return Err(Gap("this operation of this generation"));
    }
    let mut operands: Vec<(&Operand, SourceAdapt)> = Vec::new();
    for (index, operand) in inst.sources().enumerate() {
        let kind = row.sources.get(index).copied().ok_or(OPERANDS)?;
        operands.push((operand, source_adapt(inst, index, kind)));
    }
    if operands.len() < row.sources.len() && row.sources.last() != Some(&Kind::Mask) {
        let destination = inst.destinations().next().ok_or(OPERANDS)?;
        operands.push((destination, SourceAdapt::default()));
    }
    for (index, (operand, _)) in operands.iter().enumerate() {
        op.sources[index] = source(operand, row.sources[index])?;
    }
    match row.sources.len() - operands.len() {
        0 => {}
        1 if row.sources.last() == Some(&Kind::Mask) => {
            op.sources[operands.len()] = Source { words: VCC_WORDS };
        }
        _ => return Err(OPERANDS),
    }
    mask_destination(op, inst, row, machine);
    let lane_move = inst.modifiers.dpp.as_ref().map(LaneMove::of);
    let mut adapt = Adapt { finish: finish(inst, row, machine), lane_move, ..Adapt::default() };
    for (slot, (_, how)) in adapt.sources.iter_mut().zip(&operands) {
        *slot = *how;
    }
    if adapt != Adapt::default() {
        op.adapt = Some(Box::new(adapt));
    }
    Ok(Run::Vector(row.function(level)))
}

/// A dual instruction: its two halves as instructions of their own.
fn dual(op: &mut Op, inst: &Inst, level: Level, machine: Machine) -> Result<Run, Gap> {
    // Each half begins with its only destination.
    let is_destination = |index: &usize| inst.operands[*index].role == Role::Destination;
    let starts: Vec<usize> = (0..inst.operands.len()).filter(is_destination).collect();
    let &[_, second] = starts.as_slice() else { return Err(OPERANDS) };
    let half = |operands: &[Operand], text: &str| {
        let mnemonic = text.split_whitespace().next().unwrap_or_default();
        let operation = Operation::of_mnemonic(&mnemonic.replace("dual_", ""), machine.generation);
        let encoding = Encoding::Vop2;
        let inst = Inst { operation, encoding, operands: operands.to_vec(), ..inst.clone() };
        translate(inst, level, machine)
    };
    let (first, rest) = inst.operands.split_at(second);
    let (first_text, rest_text) = inst.text.split_once(" :: ").ok_or(OPERANDS)?;
    let (mut first, second) = (half(first, first_text), half(rest, rest_text));
    for half in [&first, &second] {
        if let Run::Gap(reason) = half.run {
            return Err(Gap(reason));
        }
    }
    let destination = std::mem::replace(&mut first.destination, RowIndex::WAITING);
    op.dual = Some(Box::new(Dual { first, destination, second }));
    Ok(Run::Dual)
}

const OPERANDS: Gap = Gap("the operands are not those of the operation");

/// The table row of a vector operation. A comparison that writes EXEC has the row of the plain
/// one; integer saturation has rows of its own. Operations without one cannot leave the range of
/// their result, so that saturation changes nothing (minimum, maximum, median, shifts), or give no
/// number to saturate (`v_div_scale`).
fn row(inst: &Inst) -> Result<&'static VectorOperation, Gap> {
    let name = inst.operation.name();
    let compare = name.strip_prefix("v_cmpx_").map(|rest| format!("v_cmp_{rest}"));
    let row = operations::find(compare.as_deref().unwrap_or(name)).ok_or(Gap("this operation"))?;
    if inst.modifiers.clamp && !row.float {
        return Ok(operations::find(&format!("{name} clamp")).unwrap_or(row));
    }
    Ok(row)
}

/// Where a lane-mask result goes: the only destination of a comparison, the second one of
/// operations with a carry.
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
    // From gfx10 on EXEC is all that it writes, and no destination is named.
    op.writes_exec = inst.operation.is(Family::CompareToExec);
}

/// What the modifiers make of one source.
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
    if kind == Kind::Mixed {
        // Here `op_sel_hi` says that the source is half precision, and its default is none.
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
    } else if inst.encoding == Encoding::Vop3p {
        adapt.negate |= bit(modifiers.neg_lo);
    } else if op_sel {
        adapt.select = SdwaSelect::Word1;
    }
    adapt
}

/// What the modifiers make of the result.
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
    // The tables say what gfx9 keeps; from gfx10 on every 16-bit result keeps the other half.
    if machine.generation >= Generation::Gfx10
        && inst.operation.keeps_destination(machine.generation)
        && !matches!(inst.encoding, Encoding::Sdwa | Encoding::Vop3p)
    {
        finish.select = SdwaSelect::Word0;
        finish.unused = SdwaUnused::Preserve;
    }
    // The bit behind the sources' bits selects the half that is written.
    let destination = modifiers.op_sel.unwrap_or(0) >> inst.sources().count() & 1;
    if inst.encoding == Encoding::Vop3 && destination != 0 {
        finish.select = SdwaSelect::Word1;
        finish.unused = SdwaUnused::Preserve;
    }
    finish
}

#[cfg(test)]
mod tests {
    use super::*;
    use flipwave_isa::{Isa, Pc};

    /// Instructions that people wrote down, which a walk over encodings may pass by.
    #[test]
    fn every_instruction_of_the_corpus_is_executed_or_refused_by_type() {
        let isa = Isa::new(&"gfx90a".parse().unwrap()).unwrap();
        let corpus = include_str!("../../isa/tests/corpus/gfx90a.s");
        let mut gaps = Vec::new();
        let mut executed = 0;
        for line in corpus.lines().filter(|line| !line.trim_start().starts_with("//")) {
            let Ok(bytes) = isa.assemble(line) else { continue };
            let Ok(inst) = isa.decode(&bytes, Pc(0)) else { continue };
            match translate(inst, Level::Plain, Machine::default()).run {
                Run::Gap(reason) => gaps.push(format!("{reason}: {line}")),
                _ => executed += 1,
            }
        }
        assert!(executed > 500, "only {executed}");
        assert!(gaps.is_empty(), "{gaps:#?}");
    }
}
