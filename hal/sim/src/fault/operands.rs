//! Values of the registers that an instruction reads.

use crate::wave::Wave;
use flipwave_device::{Bits, OperandValue, RegisterValue};
use flipwave_isa::{Inst, Lane, Register, RegisterRange, Role, Value};

/// The explicit register operands that an instruction reads, then VCC, M0 and EXEC if it reads them
/// implicitly. Per-lane registers have their values in `lanes`.
pub fn operand_values(wave: &Wave, inst: &Inst, lanes: &[Lane]) -> Vec<OperandValue> {
    let mut ranges: Vec<RegisterRange> = Vec::new();
    let explicit = inst.operands.iter().filter_map(|operand| match operand.value {
        Value::Register(range) if operand.role == Role::Source || inst.flags.tied => Some(range),
        _ => None,
    });
    let is_shown = |range: &&RegisterRange| {
        matches!(range.first, Register::VccLo | Register::M0 | Register::ExecLo)
    };
    for range in explicit.chain(inst.reads.iter().filter(is_shown).copied()) {
        if !ranges.iter().any(|known| known.overlaps(range)) {
            ranges.push(range);
        }
    }
    ranges.into_iter().filter_map(|range| operand_value(wave, range, lanes)).collect()
}

fn operand_value(wave: &Wave, range: RegisterRange, lanes: &[Lane]) -> Option<OperandValue> {
    let bits = |lane: Lane| {
        let words = range.iter().map(|register| wave.read_register(register, lane));
        Some(Bits { words: words.collect::<Option<_>>()? })
    };
    let value = if range.first.is_per_lane() {
        let values = lanes.iter().map(|lane| Some((*lane, bits(*lane)?)));
        RegisterValue::PerLane(values.collect::<Option<_>>()?)
    } else {
        RegisterValue::Scalar(bits(Lane(0))?)
    };
    Some(OperandValue { name: range.to_string().into(), value })
}
