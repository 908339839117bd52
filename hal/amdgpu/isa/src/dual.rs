//! Dual instructions: two operations that read their registers at once, each source of the one from
//! another bank than that of the other (RDNA 3 and RDNA 4 ISA, "VOPD", restrictions; LLVM's
//! `VOPD::InstInfo::getInvalidCompOperandIndex`). From gfx12 on both may read the same register, which
//! is read once (the same with `AllowSameVGPR`, which its `tryMatchVOPDPair` sets for gfx12). The
//! encoding itself keeps destinations apart.

use crate::{
    Encoding, Generation, Inst, Operand, Register, RegisterRange, Role, Target, Value, Vgpr,
};

/// By the place of a source, which of the lowest bits of its number must not be the same in both:
/// there are four banks, and the third source has two.
const DIFFERING: [u16; 3] = [3, 3, 1];

/// Sources of the two operations of a dual instruction that are in the same bank.
pub fn bank_conflict(target: &Target, inst: &Inst) -> Option<[RegisterRange; 2]> {
    if inst.encoding != Encoding::Vopd {
        return None;
    }
    // From gfx12 on, the second of two moves reads by a way of its own.
    let is_move = |half: &str| half.trim_start().starts_with("v_dual_mov_b32 ");
    if target.generation() >= Generation::Gfx12 && inst.text.split("::").all(is_move) {
        return None;
    }
    let is_destination = |operand: &Operand| operand.role == Role::Destination;
    let second = inst.operands.iter().rposition(is_destination)?;
    let (first, second) = inst.operands.split_at(second);
    let (first_text, second_text) = inst.text.split_once("::")?;
    let shares_reads = target.generation() >= Generation::Gfx12;
    let pairs = sources(first, first_text).into_iter().zip(sources(second, second_text));
    pairs.zip(DIFFERING).find_map(|((first, second), bits)| {
        let [first, second] = [first?, second?];
        if shares_reads && first == second {
            return None;
        }
        (vector(first)? & bits == vector(second)? & bits).then_some([first, second])
    })
}

/// The registers of an operation's sources by their places. A constant of its own is one of them; what
/// an operation adds to is its third.
fn sources(operands: &[Operand], text: &str) -> [Option<RegisterRange>; 3] {
    let mut places = [None; 3];
    let registers = operands.iter().map(|operand| match operand.value {
        Value::Register(range) => Some(range),
        _ => None,
    });
    let mut registers = registers.collect::<Vec<_>>().into_iter();
    let destination = registers.next().flatten();
    places.iter_mut().zip(registers).for_each(|(place, register)| *place = register);
    if ["v_dual_fmac_", "v_dual_dot2acc_"].iter().any(|own| text.trim_start().starts_with(own)) {
        places[2] = destination;
    }
    places
}

fn vector(range: RegisterRange) -> Option<u16> {
    match range.first {
        Register::Vgpr(Vgpr(number)) => Some(number),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Isa, Pc};

    /// Whether a dual instruction has a conflict when its second source 0 is another register than
    /// that of the text: assemblers refuse those that have one.
    fn has_conflict(isa: &Isa, text: &str, source: u16) -> bool {
        let mut bytes = isa.assemble(text).expect(text);
        // SRC0Y is in bits 8:0 of the second word, where 256 is v0.
        let word = u16::from_le_bytes([bytes[4], bytes[5]]) & !511 | (256 + source);
        bytes[4..6].copy_from_slice(&word.to_le_bytes());
        let inst = isa.decode(&bytes, Pc(0)).expect(text);
        bank_conflict(isa.target(), &inst).is_some()
    }

    #[test]
    fn the_assembler_refuses_what_has_a_conflict_and_no_more() {
        for target in ["gfx1100", "gfx1151", "gfx1201"] {
            let isa = Isa::new(&target.parse().unwrap()).unwrap();
            for (first, rest) in [
                ("v_dual_mov_b32 v0, v1", "v_dual_mov_b32 v3, "),
                ("v_dual_add_f32 v0, v1, v2", "v_dual_mul_f32 v3, "),
                ("v_dual_fmamk_f32 v0, v1, 0x1234, v2", "v_dual_mul_f32 v3, "),
                ("v_dual_fmac_f32 v0, v1, v2", "v_dual_mov_b32 v3, "),
                ("v_dual_fmaak_f32 v0, s1, v2, 0x1234", "v_dual_add_f32 v3, "),
            ] {
                for source in 4..12 {
                    for other in 4..8 {
                        let tail = if rest.contains("mov") {
                            String::new()
                        } else {
                            format!(", v{other}")
                        };
                        let own = format!("{first} :: {rest}v{source}{tail}");
                        let is_accepted = isa.assemble(&own).is_ok();
                        let allowed = (4..12)
                            .map(|source| format!("{first} :: {rest}v{source}{tail}"))
                            .find(|text| isa.assemble(text).is_ok());
                        // With this second register there may be no source that is allowed.
                        let Some(allowed) = allowed else { continue };
                        // LLVM 22 pairs such instructions from gfx1250 on only, later ones on gfx12.
                        let is_shared = isa.target().generation() == Generation::Gfx12
                            && is_accepted_for("gfx1250", &own);
                        let is_wrong = !is_accepted && !is_shared;
                        assert_eq!(has_conflict(&isa, &allowed, source), is_wrong, "{own}");
                    }
                }
            }
        }
    }

    fn is_accepted_for(processor: &str, text: &str) -> bool {
        Isa::new(&processor.parse().unwrap()).unwrap().assemble(text).is_ok()
    }

    #[test]
    fn both_read_one_register_at_once_from_gfx12_on() {
        for (processor, expected) in [("gfx1100", true), ("gfx1201", false)] {
            let isa = Isa::new(&processor.parse().unwrap()).unwrap();
            let text = "v_dual_mul_f32 v0, v1, v2 :: v_dual_mul_f32 v3, ";
            // v1 twice; v5, which is in its bank, is a conflict everywhere.
            let own = format!("{text}v4, v7");
            assert_eq!(has_conflict(&isa, &own, 1), expected, "{processor}");
            assert!(has_conflict(&isa, &own, 5), "{processor}");
        }
    }
}
