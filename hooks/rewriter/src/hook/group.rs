//! Which registers of a body must stay neighbours.

use super::rename::is_renamed;
use super::{BodyInst, RegisterGroup};
use flipwave_isa::{Generation, Inst, Register, RegisterRange, Target, Value};

/// The registers that instructions name, in groups: those of one operand together, and with them
/// those of every operand that has one of them. The same holds for `kept`, the inputs and outputs.
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

/// How many registers the second range begins after the first.
fn distance(from: RegisterRange, to: RegisterRange) -> u8 {
    from.iter().position(|register| register == to.first).unwrap_or_default() as u8
}

/// What an operand's first register must be a multiple of: scalar pairs 2, longer scalar ranges 4
/// (the ISA documents, "Scalar operands"); since gfx90a vector ranges 2 (MI200 ISA, "VGPR
/// alignment"), on gfx12 no longer.
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
