//! Register groups: registers of a body that must stay consecutive.

use super::rename::is_renamed;
use super::{BodyInst, RegisterGroup};
use flipwave_isa::{Generation, Inst, Register, RegisterRange, Target, Value};

/// Groups the registers that instructions name. Registers of one operand, or of the ranges `kept` (the inputs
/// and outputs), belong to one group, and ranges with a common register are merged.
pub(super) fn groups(
    instructions: &[BodyInst],
    kept: impl Iterator<Item = RegisterRange>,
    target: &Target,
) -> Vec<RegisterGroup> {
    let mut ranges: Vec<RegisterRange> = kept.collect();
    for inst in instructions {
        match inst {
            BodyInst::Inst { inst, .. } | BodyInst::Branch { inst, .. } => {
                ranges.extend(operands(inst));
            }
            BodyInst::Address { destination, .. } => ranges.push(*destination),
            BodyInst::Indexed(indexed) => ranges.extend([indexed.index, indexed.value]),
        }
    }
    ranges.retain(|range| is_renamed(range.first));
    ranges.sort_by_key(|range| (range.first, range.words));
    let mut groups: Vec<RegisterGroup> = Vec::new();
    for range in ranges {
        let alignment = alignment(range, target);
        match groups.last_mut() {
            Some(group) if group.range.contains(range.first) => {
                group.range.words =
                    group.range.words.max(distance(group.range, range) + range.words);
                group.alignment = group.alignment.max(alignment);
            }
            _ => groups.push(RegisterGroup { range, alignment }),
        }
    }
    groups
}

/// Registers of an instruction's operands.
pub(super) fn operands(inst: &Inst) -> impl Iterator<Item = RegisterRange> {
    inst.operands.iter().filter_map(|operand| match operand.value {
        Value::Register(range) => Some(range),
        _ => None,
    })
}

/// Distance in registers between the starts of two overlapping ranges.
fn distance(from: RegisterRange, to: RegisterRange) -> u8 {
    from.iter().position(|register| register == to.first).unwrap_or_default() as u8
}

/// Alignment of an operand's first register: 2 for scalar pairs, 4 for longer scalar ranges (ISA documents,
/// "Scalar operands"); on gfx90a and gfx940, 2 for vector ranges (MI200 ISA, "VGPR alignment").
fn alignment(range: RegisterRange, target: &Target) -> u8 {
    let even = matches!(target.generation(), Generation::Gfx90a | Generation::Gfx940);
    match (range.first, range.words) {
        (_, 0 | 1) => 1,
        (Register::Sgpr(_), 2) => 2,
        (Register::Sgpr(_), _) => 4,
        _ if even => 2,
        _ => 1,
    }
}
