//! VGPR bank conflicts of VOPD (dual-issue) instructions. The two operations read their registers at the same
//! time, so corresponding sources must be in different banks (RDNA 3 and RDNA 4 ISA, "VOPD", restrictions;
//! LLVM's `VOPD::InstInfo::getInvalidCompOperandIndex`). From gfx12 on both operations may read the same
//! register, which is then read once (LLVM's `AllowSameVGPR`, set by `tryMatchVOPDPair` for gfx12). The
//! encoding rules out conflicts between destinations.

use crate::{
    Encoding, Generation, Inst, Operand, Register, RegisterRange, Role, Target, Value, Vgpr,
};

/// For each source position, the mask of register number bits that select the bank: four banks, but two for
/// the third source.
const BANK_MASKS: [u16; 3] = [3, 3, 1];

/// Bank masks of the longer encoding of gfx1250 (LLVM's `VOPD3_VGPR_BANK_MASKS`).
const LONG_BANK_MASKS: [u16; 3] = [3, 3, 3];

/// Corresponding sources of the two operations of a VOPD instruction that are in the same bank.
pub fn bank_conflict(target: &Target, inst: &Inst) -> Option<[RegisterRange; 2]> {
    if inst.encoding != Encoding::Vopd {
        return None;
    }
    // From gfx12 on, the second of two moves has a separate read port.
    let is_move = |half: &str| half.trim_start().starts_with("v_dual_mov_b32 ");
    if target.generation() >= Generation::Gfx12 && inst.text.split("::").all(is_move) {
        return None;
    }
    let is_destination = |operand: &Operand| operand.role == Role::Destination;
    let second = inst.operands.iter().rposition(is_destination)?;
    let (first, second) = inst.operands.split_at(second);
    let (first_text, second_text) = inst.text.split_once("::")?;
    let allows_same_register = target.generation() >= Generation::Gfx12;
    let pairs = sources(first, first_text).into_iter().zip(sources(second, second_text));
    let masks = if is_long(inst) { LONG_BANK_MASKS } else { BANK_MASKS };
    pairs.zip(masks).find_map(|((first, second), mask)| {
        let [first, second] = [first?, second?];
        if allows_same_register && first == second {
            return None;
        }
        shares_bank(first, second, mask).then_some([first, second])
    })
}

/// Returns `true` for the encoding of 96 bits (VOPD3); a literal constant has as many bits.
fn is_long(inst: &Inst) -> bool {
    let is_literal =
        |operand: &Operand| matches!(operand.value, Value::Literal(_) | Value::WideLiteral(_));
    inst.size == 12 && !inst.operands.iter().any(is_literal)
}

fn shares_bank(first: RegisterRange, second: RegisterRange, mask: u16) -> bool {
    let banks = |range: RegisterRange| {
        let number = vgpr_number(range);
        number.into_iter().flat_map(move |number| {
            (number..number + u16::from(range.words)).map(move |number| number & mask)
        })
    };
    banks(first).any(|bank| banks(second).any(|other| other == bank))
}

/// The source registers of an operation by position. A literal constant (fmamk, fmaak) occupies a position;
/// the accumulator of fmac and dot2acc is the third source.
fn sources(operands: &[Operand], text: &str) -> [Option<RegisterRange>; 3] {
    let mut sources = [None; 3];
    let registers = operands.iter().map(|operand| match operand.value {
        Value::Register(range) => Some(range),
        _ => None,
    });
    let mut registers = registers.collect::<Vec<_>>().into_iter();
    let destination = registers.next().flatten();
    sources.iter_mut().zip(registers).for_each(|(source, register)| *source = register);
    let accumulates = ["v_dual_fmac_", "v_dual_dot2acc_"];
    if accumulates.iter().any(|prefix| text.trim_start().starts_with(prefix)) {
        sources[2] = destination;
    }
    sources
}

fn vgpr_number(range: RegisterRange) -> Option<u16> {
    match range.first {
        Register::Vgpr(Vgpr(number)) => Some(number),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Isa, Pc};

    /// Returns `true` if a VOPD instruction has a conflict once its second source 0 is replaced by VGPR
    /// `source`. The register is patched because assemblers reject instructions with a conflict.
    fn has_conflict(isa: &Isa, text: &str, source: u16) -> bool {
        let mut bytes = isa.assemble(text).expect(text);
        // SRC0Y is in bits 8:0 of the second word, where 256 is v0.
        let word = u16::from_le_bytes([bytes[4], bytes[5]]) & !511 | (256 + source);
        bytes[4..6].copy_from_slice(&word.to_le_bytes());
        let inst = isa.decode(&bytes, Pc(0)).expect(text);
        bank_conflict(isa.target(), &inst).is_some()
    }

    #[test]
    fn bank_conflicts_match_the_assembler() {
        for target in ["gfx1100", "gfx1151", "gfx1201"] {
            let isa = Isa::new(&target.parse().unwrap()).unwrap();
            for (first, second) in [
                ("v_dual_mov_b32 v0, v1", "v_dual_mov_b32 v3, "),
                ("v_dual_add_f32 v0, v1, v2", "v_dual_mul_f32 v3, "),
                ("v_dual_fmamk_f32 v0, v1, 0x1234, v2", "v_dual_mul_f32 v3, "),
                ("v_dual_fmac_f32 v0, v1, v2", "v_dual_mov_b32 v3, "),
                ("v_dual_fmaak_f32 v0, s1, v2, 0x1234", "v_dual_add_f32 v3, "),
            ] {
                for source in 4..12 {
                    for source1 in 4..8 {
                        let tail = if second.contains("mov") {
                            String::new()
                        } else {
                            format!(", v{source1}")
                        };
                        let text = format!("{first} :: {second}v{source}{tail}");
                        let is_accepted = isa.assemble(&text).is_ok();
                        let valid = (4..12)
                            .map(|source| format!("{first} :: {second}v{source}{tail}"))
                            .find(|text| isa.assemble(text).is_ok());
                        // With this second source, every first source may conflict.
                        let Some(valid) = valid else { continue };
                        // LLVM 22 accepts equal registers from gfx1250 on only, later versions on gfx12.
                        let has_same_register = isa.target().generation() == Generation::Gfx12
                            && is_accepted_for("gfx1250", &text);
                        let expected = !is_accepted && !has_same_register;
                        assert_eq!(has_conflict(&isa, &valid, source), expected, "{text}");
                    }
                }
            }
        }
    }

    /// Pairs of registers, and the third source in the longer encoding, whose register is in another byte.
    #[test]
    fn bank_conflicts_of_the_long_encoding_match_the_assembler() {
        let isa = Isa::new(&"gfx1250".parse().unwrap()).unwrap();
        let mut conflicts = 0;
        for (text, valid, byte) in [
            ("v_dual_add_f64 v[4:5], v[0:1], v[2:3] :: v_dual_mov_b32 v11, v", 2, 4),
            ("v_dual_fma_f32 v4, v0, v1, v2 :: v_dual_fma_f32 v7, v1, v2, v", 4, 10),
            ("v_dual_fmac_f32 v4, v0, v1 :: v_dual_fma_f32 v7, v1, v2, v", 6, 10),
        ] {
            for source in 0..16 {
                let mut bytes = isa.assemble(&format!("{text}{valid}")).expect(text);
                bytes[byte] = source;
                let inst = isa.decode(&bytes, Pc(0)).expect(text);
                let is_accepted = isa.assemble(&format!("{text}{source}")).is_ok();
                let has_conflict = bank_conflict(isa.target(), &inst).is_some();
                assert_eq!(has_conflict, !is_accepted, "{text}{source}");
                conflicts += usize::from(has_conflict);
            }
        }
        assert!(conflicts > 10);
    }

    fn is_accepted_for(processor: &str, text: &str) -> bool {
        Isa::new(&processor.parse().unwrap()).unwrap().assemble(text).is_ok()
    }

    #[test]
    fn equal_registers_conflict_only_before_gfx12() {
        for (processor, expected) in [("gfx1100", true), ("gfx1201", false)] {
            let isa = Isa::new(&processor.parse().unwrap()).unwrap();
            let text = "v_dual_mul_f32 v0, v1, v2 :: v_dual_mul_f32 v3, ";
            // The first operation reads v1; v5 is another register of its bank.
            let text = format!("{text}v4, v7");
            assert_eq!(has_conflict(&isa, &text, 1), expected, "{processor}");
            assert!(has_conflict(&isa, &text, 5), "{processor}");
        }
    }
}
