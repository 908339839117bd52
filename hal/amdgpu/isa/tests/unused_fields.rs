//! Fields that operations do not use, and bits that LLVM drops.

use crate::common::isa;
use flipwave_isa::{DecodeError, Isa, Pc, Register, RegisterRange, Value, Vgpr};

/// Assembles a line and sets additional bits in its first two words.
fn assemble_with_bits(isa: &Isa, line: &str, bits: u64) -> Vec<u8> {
    let mut bytes = isa.assemble(line).unwrap_or_else(|error| panic!("{line}: {error}"));
    let first = bytes.first_chunk_mut::<8>().expect("two words");
    *first = (u64::from_le_bytes(*first) | bits).to_le_bytes();
    bytes
}

#[test]
fn unused_fields_are_ignored() {
    for (processor, line, bits) in [
        ("gfx90a", "v_mul_lo_u32 v0, v1, v2", 0x80 << 50),
        ("gfx1030", "v_mul_lo_u32 v0, v1, v2", 0x80 << 50),
        ("gfx1100", "v_mul_lo_u32 v0, v1, v2", 0x80 << 50),
        ("gfx1100", "v_mul_lo_u32 v0, v1, 0x1234", 0x80 << 50),
        ("gfx1100", "v_cvt_f32_u32_e64 v0, v1", 0x80 << 41 | 0x80 << 50),
        ("gfx1100", "v_cmp_lt_f32_e64 s0, v1, v2", 0x80 << 50),
        ("gfx1100", "v_pk_add_f16 v0, v1, v2", 0x80 << 50),
        ("gfx1100", "v_dual_mov_b32 v0, v1 :: v_dual_mov_b32 v3, v4", 7 << 9 | 9 << 41),
        ("gfx90a", "ds_read_b32 v1, v2", 5 << 40 | 6 << 48),
        ("gfx90a", "ds_write_b32 v1, v2", 6 << 48 | 7 << 56),
        ("gfx1100", "ds_load_b32 v1, v2", 6 << 48),
    ] {
        let isa = isa(processor);
        let plain = isa.decode(&isa.assemble(line).expect(line), Pc(0)).expect(line);
        let bytes = assemble_with_bits(&isa, line, bits);
        let inst = isa.decode(&bytes, Pc(0)).unwrap_or_else(|error| panic!("{line}: {error}"));
        assert_eq!(inst, plain, "{line}");
    }
}

/// From gfx10 on, v_cmpx does not name its result EXEC. LLVM 15 wrote zeros into the result field, LLVM
/// 22 writes EXEC's number.
#[test]
fn unnamed_result_field_is_ignored() {
    let isa = isa("gfx1030");
    for word in [0xd4d4_0000_u32, 0xd4d4_007e] {
        let bytes = [word, 0x0002_0504].map(u32::to_le_bytes).concat();
        let inst = isa.decode(&bytes, Pc(0)).expect("an instruction");
        assert_eq!(inst.text, "v_cmpx_gt_u32_e64 v4, v2");
    }
}

/// A used field is never cleared: encodings that LLVM rejects because of it are rejected.
#[test]
fn used_fields_are_not_ignored() {
    for (processor, line, bits) in [
        // Source encodings 209 to 231 are reserved.
        ("gfx1100", "v_mul_lo_u32 v0, v1, s0", 0xd5 << 41),
        ("gfx1030", "v_fma_f32 v0, v1, v2, s0", 0xd5 << 50),
        // An invalid opcode.
        ("gfx1100", "v_mul_lo_u32 v0, v1, v2", 0x3ff << 16),
    ] {
        let isa = isa(processor);
        let error = isa.decode(&assemble_with_bits(&isa, line, bits), Pc(16)).expect_err(line);
        assert!(matches!(error, DecodeError::NotDecoded { .. }), "{line}: {error}");
        assert!(error.to_string().contains("not decoded: LLVM 22 has no instruction"), "{error}");
    }
    let error = isa("gfx1100").decode(&[0xff; 8], Pc(0)).expect_err("no format");
    assert!(matches!(error, DecodeError::NotAnInstruction { .. }), "{error}");
}

/// Each 16-bit operand of VOP3 has a bit of `op_sel`; other operands have none.
#[test]
fn each_half_operand_has_its_op_sel_bit() {
    const FIRST: u64 = 1 << 11;
    const SECOND: u64 = 1 << 12;
    const THIRD: u64 = 1 << 13;
    const RESULT: u64 = 1 << 14;
    for processor in ["gfx1100", "gfx1201"] {
        let isa = isa(processor);
        for (line, bits, expected) in [
            ("v_add_f16_e64 v0.l, v1.l, v2.l", FIRST, 0b001),
            ("v_add_f16_e64 v0.l, v1.l, v2.l", SECOND | RESULT, 0b110),
            ("v_cmp_lt_f16_e64 s0, v1.l, v2.l", FIRST | SECOND, 0b11),
            ("v_cmp_lt_u16_e64 s0, v1.l, v2.l", SECOND, 0b10),
            // The mask is a source without a bit.
            ("v_cndmask_b16 v0.l, v1.l, v2.l, s0", SECOND, 0b10),
            ("v_cndmask_b16 v0.l, v1.l, v2.l, s0", FIRST | RESULT, 0b1001),
            ("v_cvt_i16_f16_e64 v0.l, v1.l", FIRST | RESULT, 0b11),
            ("v_cvt_f16_f32_e64 v0.l, v1", RESULT, 0b10),
            ("v_cvt_f32_f16_e64 v0, v1.l", FIRST, 0b01),
            ("v_add_f16_e64_dpp v0.l, v1.l, v2.l row_shl:1", FIRST | RESULT, 0b101),
            ("v_add_nc_u16 v0.l, v1.l, v2.l", FIRST | SECOND | RESULT, 0b111),
            ("v_fma_f16 v0.l, v1.l, v2.l, v3.l", FIRST | RESULT, 0b1001),
            // The name of a scalar source includes no half.
            ("v_fma_f16 v0.l, v1.l, v2.l, s3", THIRD | RESULT, 0b1100),
            ("v_add_f32_e64 v0, v1, v2", 0, 0),
            ("v_add_co_u32 v0, s8, v1, v2", 0, 0),
            ("v_div_scale_f32 v0, s24, v1, v2, v1", 0, 0),
        ] {
            let bytes = assemble_with_bits(&isa, line, bits);
            let inst = isa.decode(&bytes, Pc(0)).unwrap_or_else(|error| panic!("{line}: {error}"));
            assert_eq!(inst.modifiers.op_sel.unwrap_or_default(), expected, "{line}: {inst}");
            assert_eq!(isa.assemble(&inst.text), Ok(bytes), "{inst}");
        }
    }
    // Before gfx11 these bits do not exist.
    let gfx1030 = isa("gfx1030");
    assert!(
        gfx1030
            .decode(&assemble_with_bits(&gfx1030, "v_add_f16_e64 v0, v1, v2", FIRST), Pc(0))
            .is_ok()
    );
}

/// Short forms encode the half in the register number: numbers from 128 on are high halves.
#[test]
fn short_forms_encode_halves_in_register_numbers() {
    for processor in ["gfx1100", "gfx1201"] {
        let isa = isa(processor);
        for (line, registers, expected) in [
            ("v_add_f16_e32 v5.h, v1.l, v2.h", [5, 1, 2], 0b110),
            ("v_add_f16_e32 v5.l, v1.h, v2.l", [5, 1, 2], 0b001),
            ("v_fmac_f16_e32 v5.l, v1.l, v2.l", [5, 1, 2], 0),
        ] {
            let inst = isa.decode(&isa.assemble(line).expect(line), Pc(0)).expect(line);
            let named: Vec<Value> =
                inst.operands.iter().map(|operand| operand.value.clone()).collect();
            let register = |number| RegisterRange::new(Register::Vgpr(Vgpr(number)), 1);
            assert_eq!(named, registers.map(|number| Value::Register(register(number))), "{inst}");
            assert_eq!(inst.modifiers.op_sel.unwrap_or_default(), expected, "{inst}");
        }
    }
}

/// If an `op_sel` bit without operand is set, LLVM drops all `op_sel` bits.
#[test]
fn dropped_op_sel_bits_are_reported() {
    const UNUSED: u64 = 1 << 13;
    let gfx1100 = isa("gfx1100");
    for (line, half) in
        [("v_add_f16_e64 v0.l, v1.l, v2.l", 1 << 11), ("v_cmp_lt_f16_e64 s0, v1.l, v2.l", 1 << 12)]
    {
        assert!(
            gfx1100.decode(&assemble_with_bits(&gfx1100, line, UNUSED), Pc(0)).is_ok(),
            "{line}"
        );
        let error = gfx1100
            .decode(&assemble_with_bits(&gfx1100, line, UNUSED | half), Pc(16))
            .expect_err(line);
        assert!(matches!(error, DecodeError::NotExact { .. }), "{line}: {error}");
        assert!(error.to_string().starts_with("0x10: not decoded exactly: LLVM 22 drops"));
    }
}

/// Some DPP forms print register halves without `op_sel`.
#[test]
fn halves_in_register_names_only_are_decoded() {
    for processor in ["gfx1100", "gfx1201"] {
        let isa = isa(processor);
        for operands in ["v5.l, -v1.l, |v2.h|", "v5.h, v1.h, v2.l"] {
            let line = format!("v_cndmask_b16_e64_dpp {operands}, s6 dpp8:[7,6,5,4,3,2,1,0]");
            let bytes = isa.assemble(&line).expect(&line);
            let inst = isa.decode(&bytes, Pc(0)).expect(&line);
            assert_eq!(inst.text, line);
            assert_eq!(isa.assemble(&inst.text), Ok(bytes), "{inst}");
        }
    }
}

/// Of the VOP3 fields other than registers, constants and `op_sel`, decoding drops only absolute values and
/// negations of integer sources, which have no meaning (ISA manuals, "Input modifiers"). Everything else
/// is decoded or makes LLVM reject the instruction. Decoded fields are printed, so a bit was dropped if the
/// text assembles to other bytes.
#[test]
fn only_meaningless_modifiers_are_dropped() {
    // Floating-point operations whose sources after the first are integers.
    const MIXED: [&str; 4] =
        ["v_ldexp_", "v_cvt_pk_u8_f32", "v_cvt_pkaccum_u8_f32", "v_trig_preop"];
    let is_integer = |name: &str, source: u32| {
        let is_conversion = ["_u16", "_i16"].iter().any(|from| name.ends_with(from));
        let is_float =
            !is_conversion && ["_f16", "_f32", "_f64"].iter().any(|part| name.contains(part));
        !is_float || source > 0 && MIXED.iter().any(|mixed| name.starts_with(mixed))
    };
    for (processor, prefix) in
        [("gfx90a", 0xd000_0000), ("gfx1030", 0xd400_0000), ("gfx1100", 0xd400_0000)]
    {
        let isa = isa(processor);
        let mut modified = 0;
        for opcode in 0..1024 {
            let sources = [0x102 | 0x104 << 9 | 0x106 << 18, 0x102 | 0x104 << 9, 0x102];
            let exact = |bits: u64| {
                let inst = isa.decode(&bits.to_le_bytes(), Pc(0)).ok()?;
                let again = isa.assemble(&inst.text).ok()?;
                Some((inst, again == bits.to_le_bytes()))
            };
            let plain = sources.map(|sources: u64| prefix | opcode << 16 | 6 | sources << 32);
            let Some((bits, inst)) = plain.into_iter().find_map(|bits| match exact(bits) {
                Some((inst, true)) => Some((bits, inst)),
                _ => None,
            }) else {
                continue;
            };
            // The second result, a lane mask, occupies the bits of absolute values and halves.
            if inst.destinations().count() > 1 {
                continue;
            }
            for bit in (8..11).chain([15]).chain(59..64) {
                match exact(bits | 1 << bit) {
                    Some((_, true)) => {}
                    Some((inst, false)) => {
                        let source = match bit {
                            8..11 => bit - 8,
                            61..64 => bit - 61,
                            _ => panic!("{processor}: bit {bit} of {inst} is dropped"),
                        };
                        let name = inst.operation.name();
                        assert!(is_integer(name, source), "{processor}: source {source} of {inst}");
                    }
                    None => continue,
                }
                modified += 1;
            }
        }
        assert!(modified > 500, "{processor}: only {modified}");
    }
}
