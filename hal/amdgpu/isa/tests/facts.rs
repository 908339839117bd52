//! Properties of single decoded instructions.

use crate::common::isa;
use flipwave_isa::{
    BufferFormat, Class, ConstantType, DppControl, Encoding, Half, Inst, Isa, Modifiers,
    OutputScale, Pc, RegisterRange, Role, SdwaSelect, SdwaUnused, Value,
};

/// Assembles and decodes one line at address 0x1000.
fn inst(isa: &Isa, line: &str) -> Inst {
    let bytes = isa.assemble(line).unwrap_or_else(|error| panic!("{line}: {error}"));
    let inst = isa.decode(&bytes, Pc(0x1000)).unwrap_or_else(|error| panic!("{line}: {error}"));
    assert_eq!(usize::from(inst.size), bytes.len(), "{line}");
    inst
}

/// The ranges, sorted by name and separated by spaces.
fn names(ranges: &[RegisterRange]) -> String {
    let mut names: Vec<String> = ranges.iter().map(RegisterRange::to_string).collect();
    names.sort();
    names.join(" ")
}

/// The values of the operands with a role, separated by spaces.
fn operands(inst: &Inst, role: Role) -> String {
    let values = inst.operands.iter().filter(|operand| operand.role == role);
    let text = |value: &Value| match value {
        Value::Register(range) => range.to_string(),
        Value::Integer(integer) => integer.to_string(),
        Value::Float(float) => format!("{float:?}"),
        Value::Literal(literal) => format!("{literal:#x}"),
        Value::WideLiteral(literal) => format!("{literal:#x}"),
        Value::Off => "off".to_owned(),
        Value::Symbol(symbol) => symbol.clone(),
    };
    values.map(|operand| text(&operand.value)).collect::<Vec<_>>().join(" ")
}

#[test]
fn operands_of_16_bits_are_register_halves_from_gfx11_on() {
    use Half::{High, Low};
    for (target, line, expected) in [
        ("gfx1100", "ds_load_u16_d16 v1, v0", [Some(Low), None]),
        ("gfx1100", "ds_load_u16_d16_hi v1, v0", [Some(High), None]),
        ("gfx1100", "ds_load_u16 v1, v0", [None, None]),
        ("gfx1100", "ds_store_b16 v1, v1", [None, Some(Low)]),
        ("gfx1100", "ds_store_b8_d16_hi v1, v1", [None, Some(High)]),
        ("gfx1100", "ds_store_b32 v1, v1", [None, None]),
        ("gfx1100", "global_store_d16_hi_b16 v1, v1, s[0:1]", [None, Some(High)]),
        ("gfx1201", "buffer_store_b8 v1, v1, s[0:3], null offen", [Some(Low), None]),
        ("gfx1201", "buffer_load_d16_hi_format_x v1, v1, s[0:3], null offen", [Some(High), None]),
        ("gfx1201", "buffer_load_d16_format_xy v1, v1, s[0:3], null offen", [None, None]),
        ("gfx1100", "v_mov_b16 v1.h, v2.l", [Some(High), Some(Low)]),
        ("gfx90a", "ds_read_u16_d16_hi v1, v0", [None, None]),
        ("gfx90a", "ds_write_b16 v1, v1", [None, None]),
    ] {
        let inst = inst(&isa(target), line);
        let halves: Vec<_> = inst.operands.iter().take(2).map(|operand| operand.half).collect();
        assert_eq!(halves, expected, "{target}: {line}");
    }
}

/// Checks rows of a line, its operation, its printed destinations and sources, and all registers read and
/// written.
fn check(isa: &Isa, rows: &[[&str; 6]]) {
    for [line, operation, destinations, sources, reads, writes] in rows {
        let inst = inst(isa, line);
        assert_eq!(inst.operation.name(), *operation, "{line}");
        assert_eq!(operands(&inst, Role::Destination), *destinations, "{line}: destinations");
        assert_eq!(operands(&inst, Role::Source), *sources, "{line}: sources");
        assert_eq!(names(&inst.reads), *reads, "{line}: reads");
        assert_eq!(names(&inst.writes), *writes, "{line}: writes");
    }
}

#[test]
#[rustfmt::skip]
fn gfx90a_operands_reads_and_writes() {
    check(&isa("gfx90a"), &[
        ["v_addc_co_u32 v15, vcc, v11, v15, vcc", "v_addc_co_u32", "v15 vcc", "v11 v15 vcc", "exec v11 v15 vcc", "v15 vcc"],
        ["v_cmp_eq_u32 vcc, v0, v1", "v_cmp_eq_u32", "vcc", "v0 v1", "exec v0 v1", "vcc"],
        ["v_cmp_eq_u32 vcc, vcc_lo, v1", "v_cmp_eq_u32", "vcc", "vcc_lo v1", "exec v1 vcc_lo", "vcc"],
        ["v_cmpx_lt_f32 vcc, v0, v1", "v_cmpx_lt_f32", "vcc", "v0 v1", "exec mode v0 v1", "exec vcc"],
        ["v_readlane_b32 s0, v1, 3", "v_readlane_b32", "s0", "v1 3", "v1", "s0"],
        ["v_writelane_b32 v0, s1, 2", "v_writelane_b32", "v0", "s1 2", "s1 v0", "v0"],
        ["v_readfirstlane_b32 s0, v1", "v_readfirstlane_b32", "s0", "v1", "exec v1", "s0"],
        ["s_cmp_lt_i32 s14, 1", "s_cmp_lt_i32", "", "s14 1", "s14", "scc"],
        ["s_add_u32 s0, s1, 0x1234567", "s_add_u32", "s0", "s1 0x1234567", "s1", "s0 scc"],
        ["s_addc_u32 s0, s1, s2", "s_addc_u32", "s0", "s1 s2", "s1 s2 scc", "s0 scc"],
        ["s_and_saveexec_b64 s[0:1], exec", "s_and_saveexec_b64", "s[0:1]", "exec", "exec", "exec s[0:1] scc"],
        ["s_cselect_b32 s0, s1, s2", "s_cselect_b32", "s0", "s1 s2", "s1 s2 scc", "s0"],
        ["s_cmov_b32 s0, s1", "s_cmov_b32", "s0", "s1", "s0 s1 scc", "s0"],
        ["s_bitset1_b32 s0, s1", "s_bitset1_b32", "s0", "s1", "s0 s1", "s0"],
        ["s_addk_i32 s0, 0xfff0", "s_addk_i32", "s0", "-16", "s0", "s0 scc"],
        ["s_cmpk_eq_u32 s0, 0xfff0", "s_cmpk_eq_u32", "", "s0 65520", "s0", "scc"],
        ["s_cbranch_scc1 8", "s_cbranch_scc1", "", "8", "scc", ""],
        ["s_cbranch_vccz 8", "s_cbranch_vccz", "", "8", "vcc", ""],
        ["s_cbranch_execz 8", "s_cbranch_execz", "", "8", "exec", ""],
        ["s_load_dwordx2 s[0:1], s[4:5], 0x10", "s_load_dwordx2", "s[0:1]", "s[4:5] 16", "s[4:5]", "s[0:1]"],
        ["s_load_dword s0, s[4:5], -16", "s_load_dword", "s0", "s[4:5] -16", "s[4:5]", "s0"],
        ["s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 4), 3", "s_setreg_imm32_b32", "", "hwreg(HW_REG_MODE, 0, 4) 0x3", "mode", "mode"],
        ["ds_write_b32 v8, v1", "ds_write_b32", "", "v8 v1", "exec v1 v8", ""],
        ["ds_read2_b64 v[0:3], v4 offset1:1", "ds_read2_b64", "v[0:3]", "v4", "exec v4", "v[0:3]"],
        ["ds_read_u16_d16 v0, v1", "ds_read_u16_d16", "v0", "v1", "exec v0 v1", "v0"],
        ["ds_read_u8_d16_hi v0, v1", "ds_read_u8_d16_hi", "v0", "v1", "exec v0 v1", "v0"],
        ["global_load_short_d16_hi v0, v[2:3], off", "global_load_short_d16_hi", "v0", "v[2:3] off", "exec v0 v[2:3]", "v0"],
        ["flat_load_sbyte_d16 v0, v[2:3]", "flat_load_sbyte_d16", "v0", "v[2:3]", "exec flat_scratch v0 v[2:3]", "v0"],
        ["buffer_load_short_d16 v0, v1, s[0:3], 0 offen", "buffer_load_short_d16", "v0", "v1 s[0:3] 0", "exec s[0:3] v0 v1", "v0"],
        ["buffer_load_format_d16_xyz v[2:3], v1, s[0:3], 0 offen", "buffer_load_format_d16_xyz", "v[2:3]", "v1 s[0:3] 0", "exec s[0:3] v1 v3", "v[2:3]"],
        ["buffer_load_format_d16_xy v0, v1, s[0:3], 0 offen", "buffer_load_format_d16_xy", "v0", "v1 s[0:3] 0", "exec s[0:3] v1", "v0"],
        ["buffer_store_short_d16_hi v0, v1, s[0:3], 0 offen", "buffer_store_short_d16_hi", "", "v0 v1 s[0:3] 0", "exec s[0:3] v0 v1", ""],
        ["ds_append v0", "ds_append", "v0", "", "exec m0", "v0"],
        ["global_atomic_add v1, v[2:3], v4, off glc", "global_atomic_add", "v1", "v[2:3] v4 off", "exec v4 v[2:3]", "v1"],
        ["global_load_dword a0, v[2:3], off", "global_load_dword", "a0", "v[2:3] off", "exec v[2:3]", "a0"],
        ["flat_load_dword v0, v[2:3]", "flat_load_dword", "v0", "v[2:3]", "exec flat_scratch v[2:3]", "v0"],
        ["scratch_load_dword v0, off, s0", "scratch_load_dword", "v0", "off s0", "exec flat_scratch s0", "v0"],
        ["buffer_load_dword v0, v1, s[0:3], s5 offen offset:16", "buffer_load_dword", "v0", "v1 s[0:3] s5", "exec s5 s[0:3] v1", "v0"],
        ["buffer_load_dword v0, s[0:3], 0 offen lds", "buffer_load_dword", "", "v0 s[0:3] 0", "exec m0 s[0:3] v0", ""],
        ["buffer_atomic_add v0, off, s[0:3], 0 glc", "buffer_atomic_add", "v0", "off s[0:3] 0", "exec s[0:3] v0", "v0"],
        ["v_mfma_f32_32x32x1f32 a[0:31], v0, v1, a[0:31]", "v_mfma_f32_32x32x1f32", "a[0:31]", "v0 v1 a[0:31]", "a[0:31] exec mode v0 v1", "a[0:31]"],
        ["v_div_scale_f32 v2, vcc, v0, v1, v0", "v_div_scale_f32", "v2 vcc", "v0 v1 v0", "exec mode v0 v1", "v2 vcc"],
        ["v_div_fmas_f32 v0, v1, v2, v3", "v_div_fmas_f32", "v0", "v1 v2 v3", "exec mode v1 v2 v3 vcc", "v0"],
        ["v_fmac_f32 v0, v1, v2", "v_fmac_f32", "v0", "v1 v2", "exec mode v0 v1 v2", "v0"],
        ["v_swap_b32 v0, v1", "v_swap_b32", "v0 v1", "", "exec v0 v1", "v0 v1"],
        ["v_mov_b32 v0, -0.5", "v_mov_b32", "v0", "-0.5", "exec", "v0"],
        ["v_mul_f16 v0, 0.15915494, v1", "v_mul_f16", "v0", "0.15915494309189532 v1", "exec mode v1", "v0"],
        ["v_mad_u16 v0, v1, v2, v3", "v_mad_u16", "v0", "v1 v2 v3", "exec v0 v1 v2 v3", "v0"],
        ["v_mad_legacy_u16 v0, v1, v2, v3", "v_mad_legacy_u16", "v0", "v1 v2 v3", "exec v1 v2 v3", "v0"],
        ["v_mov_b32_sdwa v0, v1 dst_sel:BYTE_1 dst_unused:UNUSED_PRESERVE src0_sel:DWORD", "v_mov_b32", "v0", "v1", "exec v0 v1", "v0"],
        ["v_mov_b32_sdwa v0, v1 dst_sel:BYTE_1 dst_unused:UNUSED_PAD src0_sel:DWORD", "v_mov_b32", "v0", "v1", "exec v1", "v0"],
    ]);
}

#[test]
#[rustfmt::skip]
fn operands_reads_and_writes_of_other_targets() {
    // On gfx8, M0 limits LDS accesses and v_add_u32 has a carry-out.
    check(&isa("gfx803"), &[
        ["ds_read_b32 v0, v1", "ds_read_b32", "v0", "v1", "exec m0 v1", "v0"],
        ["v_add_u32 v0, vcc, v1, v2", "v_add_co_u32", "v0 vcc", "v1 v2", "exec v1 v2", "v0 vcc"],
    ]);
    // Lane masks of wave32 have 32 bits.
    check(&isa("gfx1030"), &[
        ["v_cmp_eq_u32 vcc_lo, v0, v1", "v_cmp_eq_u32", "vcc_lo", "v0 v1", "exec_lo v0 v1", "vcc_lo"],
        ["v_cmpx_eq_u32 v0, v1", "v_cmpx_eq_u32", "", "v0 v1", "exec_lo v0 v1", "exec_lo"],
        ["v_add_co_ci_u32 v0, vcc_lo, v1, v2, vcc_lo", "v_addc_co_u32", "v0 vcc_lo", "v1 v2 vcc_lo", "exec_lo v1 v2 vcc_lo", "v0 vcc_lo"],
        ["v_add_f16 v0, v1, v2", "v_add_f16", "v0", "v1 v2", "exec_lo mode v0 v1 v2", "v0"],
        ["v_pk_fmac_f16 v0, v1, v2", "v_pk_fmac_f16", "v0", "v1 v2", "exec_lo mode v0 v1 v2", "v0"],
        ["v_sad_u16 v0, v1, v2, v3", "v_sad_u16", "v0", "v1 v2 v3", "exec_lo v1 v2 v3", "v0"],
        ["v_sat_pk_u8_i16 v0, v1", "v_sat_pk_u8_i16", "v0", "v1", "exec_lo v1", "v0"],
    ]);
    check(&isa("gfx1100"), &[
        ["global_load_b32 v0, v[2:3], off", "global_load_dword", "v0", "v[2:3] off", "exec_lo v[2:3]", "v0"],
        ["v_sat_pk_u8_i16 v0.l, v1", "v_sat_pk_u8_i16", "v0", "v1", "exec_lo v0 v1", "v0"],
        ["v_interp_p2_f32 v0, v1, v2, v3", "v_interp_p2_f32_inreg", "v0", "v1 v2 v3", "exec_lo m0 mode v1 v2 v3", "v0"],
        ["v_dual_mov_b32 v0, v1 :: v_dual_mov_b32 v1, v0", "v_dual_mov_b32 :: v_dual_mov_b32", "v0 v1", "v1 v0", "exec_lo v0 v1", "v0 v1"],
        ["v_dual_mov_b32 v0, v1 :: v_dual_add_f32 v3, v4, v5", "v_dual_mov_b32 :: v_dual_add_f32", "v0 v3", "v1 v4 v5", "exec_lo mode v1 v4 v5", "v0 v3"],
        // The second accumulator is odd if the first destination is even, and vice versa.
        ["v_dual_mov_b32 v34, v1 :: v_dual_fmac_f32 v29, v24, v7", "v_dual_mov_b32 :: v_dual_fmac_f32", "v34 v29", "v1 v24 v7", "exec_lo mode v1 v24 v29 v7", "v29 v34"],
        ["v_dual_mov_b32 v35, v1 :: v_dual_fmac_f32 v28, v24, v7", "v_dual_mov_b32 :: v_dual_fmac_f32", "v35 v28", "v1 v24 v7", "exec_lo mode v1 v24 v28 v7", "v28 v35"],
        ["v_dual_fmac_f32 v0, v1, v2 :: v_dual_dot2acc_f32_f16 v9, v3, v4", "v_dual_fmac_f32 :: v_dual_dot2acc_f32_f16", "v0 v9", "v1 v2 v3 v4", "exec_lo mode v0 v1 v2 v3 v4 v9", "v0 v9"],
        ["exp mrt0 v0, off, v2, off done", "exp", "", "mrt0 v0 off v2 off", "exec_lo v0 v2", ""],
    ]);
    let wave64 = Isa::with_wave_size(&"gfx1030".parse().expect("a target"), 64).expect("wave64");
    assert_eq!(names(&inst(&wave64, "v_cmp_eq_u32 vcc, v0, v1").writes), "vcc");
}

#[test]
fn operand_modifiers_are_decoded() {
    let isa = isa("gfx90a");
    let flags = |line: &str| {
        let operands = inst(&isa, line).operands.clone();
        let flags = operands
            .iter()
            .skip(1)
            .map(|operand| (operand.negate, operand.absolute, operand.sign_extend));
        flags.collect::<Vec<_>>()
    };
    assert_eq!(
        flags("v_fma_f32 v0, -v1, |v2|, -|v3|"),
        [(true, false, false), (false, true, false), (true, true, false)]
    );
    assert_eq!(
        flags("v_add_u32_sdwa v0, sext(v1), v2 dst_sel:DWORD src0_sel:WORD_1 src1_sel:DWORD"),
        [(false, false, true), (false, false, false)]
    );
    // A negated constant differs from a negative one.
    assert_eq!(flags("v_add_f32_e64 v0, neg(1.0), -1.0")[0], (true, false, false));
    assert_eq!(flags("v_add_f32_e64 v0, neg(1.0), -1.0")[1], (false, false, false));
}

#[test]
fn instruction_modifiers_are_decoded() {
    let isa = isa("gfx90a");
    let modifiers = |line: &str| inst(&isa, line).modifiers.clone();
    let none = Modifiers::default;

    assert_eq!(
        modifiers("v_add_f32_e64 v0, v1, v2 clamp mul:4"),
        Modifiers { clamp: true, output_scale: OutputScale::Times4, ..none() }
    );
    assert_eq!(
        modifiers(
            "v_pk_fma_f16 v0, v1, v2, v3 op_sel:[1,0,0] op_sel_hi:[0,1,1] neg_lo:[1,0,0] neg_hi:[0,0,1]"
        ),
        Modifiers { op_sel: Some(1), op_sel_hi: Some(6), neg_lo: 1, neg_hi: 4, ..none() }
    );
    assert_eq!(
        modifiers("buffer_load_dword v0, v[2:3], s[0:3], 0 idxen offen offset:4095 glc slc scc"),
        Modifiers {
            offset: 4095,
            glc: true,
            cache_policy: vec!["slc".to_owned(), "scc".to_owned()],
            offen: true,
            idxen: true,
            ..none()
        }
    );
    // LLVM omits the data or number format if it is the default, and both if both are.
    for (format, data, number) in [
        ("format:[BUF_DATA_FORMAT_10_11_11,BUF_NUM_FORMAT_FLOAT]", 6, 7),
        ("format:[BUF_DATA_FORMAT_32_32_32_32]", 14, 0),
        ("format:[BUF_NUM_FORMAT_SINT]", 1, 5),
    ] {
        assert_eq!(
            modifiers(&format!("tbuffer_load_format_x v0, off, s[0:3], 0 {format}")),
            Modifiers { buffer_format: Some(BufferFormat { data, number }), ..none() }
        );
    }
    assert_eq!(modifiers("tbuffer_load_format_x v0, off, s[0:3], 0"), none());
    assert_eq!(
        modifiers("global_load_dword v0, v[2:3], off offset:-4096"),
        Modifiers { offset: -4096, ..none() }
    );
    assert_eq!(
        modifiers("ds_read2_b32 v[0:1], v2 offset0:3 offset1:255"),
        Modifiers { offset0: 3, offset1: 255, ..none() }
    );
    for (line, pattern) in [
        ("ds_swizzle_b32 v0, v1 offset:swizzle(QUAD_PERM,0,1,2,3)", 0x80e4),
        ("ds_swizzle_b32 v0, v1 offset:swizzle(SWAP,16)", 0x401f),
        ("ds_swizzle_b32 v0, v1 offset:0xffff", 0xffff),
    ] {
        assert_eq!(modifiers(line).swizzle, Some(pattern), "{line}");
    }
    let matrix = modifiers("v_mfma_f32_32x32x1f32 a[0:31], v0, v1, a[0:31] cbsz:1 abid:2 blgp:3");
    assert_eq!((matrix.cbsz, matrix.abid, matrix.blgp), (1, 2, 3));
    let load = modifiers("s_load_dword s0, s[2:3], s4 offset:0x10");
    assert_eq!(load.offset, 16);

    let sdwa = modifiers(
        "v_add_f32_sdwa v0, v1, v2 dst_sel:WORD_1 dst_unused:UNUSED_SEXT src0_sel:BYTE_0 src1_sel:BYTE_3",
    )
    .sdwa
    .expect("sdwa");
    assert_eq!((sdwa.destination, sdwa.unused), (SdwaSelect::Word1, SdwaUnused::SignExtend));
    assert_eq!(sdwa.sources, [SdwaSelect::Byte0, SdwaSelect::Byte3]);
}

#[test]
fn gfx942_modifiers_are_decoded() {
    let negated = "v_mfma_f64_16x16x4_f64 v[0:7], v[8:9], v[10:11], v[0:7] neg:[1,0,1]";
    let modifiers = inst(&isa("gfx942"), negated).modifiers.clone();
    assert_eq!((modifiers.negated_sources, modifiers.blgp), (0b101, 0));
    let load = inst(&isa("gfx942"), "global_load_dword v0, v[2:3], off sc0 nt sc1");
    let mut policy = load.modifiers.cache_policy.clone();
    policy.sort();
    assert_eq!(policy, ["nt", "sc0", "sc1"]);
}

#[test]
fn dpp_controls_are_decoded() {
    use DppControl::*;
    let gfx90a = isa("gfx90a");
    let gfx1030 = isa("gfx1030");
    for (isa, word, control) in [
        (&gfx90a, "quad_perm:[3,2,1,0]", QuadPerm([3, 2, 1, 0])),
        (&gfx90a, "row_shl:1", RowShiftLeft(1)),
        (&gfx90a, "row_shr:15", RowShiftRight(15)),
        (&gfx90a, "row_ror:7", RowRotateRight(7)),
        (&gfx90a, "wave_shl:1", WaveShiftLeft),
        (&gfx90a, "wave_rol:1", WaveRotateLeft),
        (&gfx90a, "wave_shr:1", WaveShiftRight),
        (&gfx90a, "wave_ror:1", WaveRotateRight),
        (&gfx90a, "row_mirror", RowMirror),
        (&gfx90a, "row_half_mirror", RowHalfMirror),
        (&gfx90a, "row_bcast:15", RowBroadcast15),
        (&gfx90a, "row_bcast:31", RowBroadcast31),
        (&gfx90a, "row_newbcast:3", RowNewBroadcast(3)),
        (&gfx1030, "row_share:3", RowShare(3)),
        (&gfx1030, "row_xmask:5", RowXmask(5)),
    ] {
        for (bound, value) in [("", false), (" bound_ctrl:1", true)] {
            let line = format!("v_mov_b32_dpp v0, v1 {word} row_mask:0xa bank_mask:0x3{bound}");
            let dpp = inst(isa, &line).modifiers.dpp.expect("dpp");
            assert_eq!((dpp.control, dpp.row_mask, dpp.bank_mask), (control, 0xa, 3), "{line}");
            assert_eq!(dpp.bound_control, value, "{line}");
        }
    }
    let dpp8 = inst(&gfx1030, "v_mov_b32_dpp v0, v1 dpp8:[7,6,5,4,3,2,1,0] fi:1").modifiers.dpp;
    let dpp8 = dpp8.expect("dpp");
    assert_eq!(dpp8.control, Dpp8([7, 6, 5, 4, 3, 2, 1, 0]));
    assert!(dpp8.fetch_inactive);
}

/// LLVM does not install the header that defines its format bits.
#[test]
fn encodings_are_decoded() {
    use Encoding::*;
    let gfx90a = isa("gfx90a");
    let gfx906 = isa("gfx906");
    let gfx1100 = isa("gfx1100");
    let gfx1201 = isa("gfx1201");
    for (isa, line, encoding) in [
        (&gfx90a, "s_mov_b32 s0, s1", Sop1),
        (&gfx90a, "s_add_u32 s0, s1, s2", Sop2),
        (&gfx90a, "s_cmp_eq_u32 s0, s1", Sopc),
        (&gfx90a, "s_movk_i32 s0, 1", Sopk),
        (&gfx90a, "s_nop 0", Sopp),
        (&gfx90a, "s_load_dword s0, s[2:3], 0", Smem),
        (&gfx90a, "v_mov_b32 v0, v1", Vop1),
        (&gfx90a, "v_mov_b32_e64 v0, v1", Vop3),
        (&gfx90a, "v_add_f32 v0, v1, v2", Vop2),
        (&gfx90a, "v_add_f32_e64 v0, v1, v2", Vop3),
        (&gfx90a, "v_cmp_eq_u32 vcc, v0, v1", Vopc),
        (&gfx90a, "v_cmp_eq_u32_e64 s[0:1], v0, v1", Vop3),
        (&gfx90a, "v_readlane_b32 s0, v1, 0", Vop3),
        (&gfx90a, "v_fma_f32 v0, v1, v2, v3", Vop3),
        (&gfx90a, "v_pk_add_f16 v0, v1, v2", Vop3p),
        (&gfx90a, "v_mfma_f32_32x32x1f32 a[0:31], v0, v1, a[0:31]", Vop3p),
        (&gfx90a, "v_accvgpr_read_b32 v0, a0", Vop3p),
        (&gfx90a, "v_mov_b32_sdwa v0, v1 src0_sel:WORD_1", Sdwa),
        (&gfx90a, "v_mov_b32_dpp v0, v1 row_shl:1", Dpp),
        (&gfx90a, "ds_read_b32 v0, v1", Ds),
        (&gfx90a, "buffer_load_dword v0, off, s[0:3], 0", Mubuf),
        (&gfx90a, "tbuffer_load_format_x v0, off, s[0:3], dfmt:4, nfmt:2, 0", Mtbuf),
        (&gfx90a, "image_load v0, v0, s[0:7] dmask:0x1 unorm", Mimg),
        (&gfx90a, "flat_load_dword v0, v[2:3]", Flat),
        (&gfx90a, "global_load_dword v0, v[2:3], off", Global),
        (&gfx90a, "scratch_load_dword v0, off, s0", Scratch),
        (&gfx906, "exp mrt0 v0, v1, v2, v3", Export),
        (&gfx906, "v_interp_p1_f32 v0, v1, attr0.x", Vintrp),
        (&gfx1100, "v_interp_p10_f32 v0, v1, v2, v3", Vintrp),
        (&gfx1100, "v_dual_mov_b32 v0, v1 :: v_dual_mov_b32 v3, v4", Vopd),
        (&gfx1100, "v_mov_b32_e64_dpp v0, v1 row_shl:1", Dpp),
        (&gfx1100, "lds_direct_load v0", Other),
        (&gfx1201, "image_load v0, v0, s[0:7] dmask:0x1 dim:SQ_RSRC_IMG_1D", Mimg),
        (&gfx1201, "image_sample v0, v0, s[0:7], s[8:11] dmask:0x1 dim:SQ_RSRC_IMG_1D", Mimg),
        (&gfx1201, "buffer_load_b32 v0, off, s[0:3], s4", Mubuf),
    ] {
        assert_eq!(inst(isa, line).encoding, encoding, "{line}");
    }
}

#[test]
fn branch_targets_and_flags_are_decoded() {
    let isa = isa("gfx90a");
    for (line, target, conditional, call) in [
        ("s_branch 3", Some(0x1010), false, false),
        ("s_branch 65535", Some(0x1000), false, false),
        ("s_cbranch_scc0 32768", Some(0x1004u64.wrapping_sub(0x20000)), true, false),
        ("s_call_b64 s[0:1], 65534", Some(0xffc), false, true),
        ("s_setpc_b64 s[0:1]", None, false, false),
        ("s_swappc_b64 s[0:1], s[2:3]", None, false, true),
        ("s_cbranch_i_fork s[0:1], 1", Some(0x1008), false, false),
    ] {
        let inst = inst(&isa, line);
        assert_eq!(inst.class(), Class::Branch, "{line}");
        assert!(inst.flags.branch, "{line}");
        assert_eq!(inst.branch_target, target.map(Pc), "{line}");
        assert_eq!((inst.flags.conditional, inst.flags.call), (conditional, call), "{line}");
    }
    let end = inst(&isa, "s_endpgm");
    assert!(!end.flags.branch && end.flags.terminator && end.flags.barrier);
    assert!(!inst(&isa, "s_nop 3").flags.branch);
}

#[test]
fn immediates_are_decoded() {
    let isa = isa("gfx90a");
    for (line, immediate) in [
        ("s_waitcnt vmcnt(0) lgkmcnt(0)", Some(0x70)),
        ("s_getreg_b32 s0, hwreg(HW_REG_MODE, 0, 4)", Some(0x1801)),
        ("s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 4), 7", Some(0x1801)),
        ("s_sendmsg sendmsg(MSG_INTERRUPT)", Some(1)),
        ("s_set_gpr_idx_on s0, gpr_idx(SRC0,DST)", Some(9)),
        ("s_movk_i32 s0, -1", Some(0xffff)),
        ("s_nop 7", Some(7)),
        ("v_mov_b32 v0, 7", None),
    ] {
        assert_eq!(inst(&isa, line).immediate, immediate, "{line}");
    }
}

#[test]
fn targets_without_a_disassembler_are_rejected() {
    for name in flipwave_isa::Target::names() {
        let target: flipwave_isa::Target = name.parse().expect("a target");
        let is_old = ["gfx6", "gfx7"].iter().any(|family| name.starts_with(family));
        assert_eq!(Isa::new(&target).is_err(), is_old, "{name}");
    }
    let target = "gfx90a".parse().expect("a target");
    assert!(Isa::with_wave_size(&target, 32).is_err());
}

/// LLVM does not install the header that defines its operand types.
#[test]
fn constants_have_the_types_of_their_operands() {
    use ConstantType::*;
    let types = |processor: &str, line: &str| {
        let inst = inst(&isa(processor), line);
        inst.sources().filter_map(|source| source.constant).collect::<Vec<_>>()
    };
    for (processor, line, expected) in [
        ("gfx90a", "v_add_f32 v0, 1.0, v1", vec![F32]),
        ("gfx90a", "v_add_u32 v0, 1.0, v1", vec![I32]),
        ("gfx90a", "v_add_f16 v0, 1.0, v1", vec![F16]),
        ("gfx90a", "v_add_u16 v0, 1.0, v1", vec![I16]),
        ("gfx90a", "v_add_u16_e64 v0, 1.0, 2.0", vec![I16, I16]),
        ("gfx90a", "v_fma_f64 v[0:1], 1.0, v[2:3], 2.0", vec![F64, F64]),
        ("gfx90a", "v_lshlrev_b64 v[0:1], 1, 2.0", vec![I32, U64]),
        ("gfx90a", "v_ashrrev_i64 v[0:1], 1, 2.0", vec![I32, I64]),
        ("gfx90a", "v_cmp_lt_i64 vcc, -1, v[0:1]", vec![I64]),
        ("gfx90a", "s_mov_b32 s0, 1.0", vec![I32]),
        ("gfx90a", "s_mov_b64 s[0:1], 1.0", vec![U64]),
        ("gfx90a", "s_ashr_i64 s[0:1], 0xffff0000, 3", vec![I64, I32]),
        ("gfx90a", "v_pk_add_u16 v0, v1, 2.0", vec![PackedI16]),
        ("gfx90a", "v_pk_add_f16 v0, v1, 2.0", vec![PackedF16]),
        ("gfx90a", "v_pk_add_f32 v[0:1], v[2:3], 2.0", vec![PackedF32]),
        ("gfx90a", "v_pk_mov_b32 v[0:1], 1, 2.0", vec![PackedI32, PackedI32]),
        ("gfx90a", "v_dot2_f32_f16 v0, v1, 1.0, 2.0", vec![PackedF16, F32]),
        ("gfx90a", "v_fma_mix_f32 v0, 1.0, 2.0, v1 op_sel_hi:[0,1,0]", vec![F32, F16]),
        ("gfx90a", "v_mfma_f32_4x4x1f32 a[0:3], v0, v1, 1.0", vec![F32]),
        ("gfx90a", "v_mfma_i32_4x4x4i8 a[0:3], v0, v1, 1", vec![I32]),
        ("gfx90a", "v_mfma_f64_4x4x4f64 a[0:1], v[0:1], v[2:3], 1.0", vec![F64]),
        ("gfx90a", "v_madak_f32 v0, v1, v2, 0x11213141", vec![F32]),
        ("gfx90a", "v_madak_f16 v0, v1, v2, 0x1121", vec![F16]),
        ("gfx90a", "ds_read_b32 v0, v1 offset:16", vec![]),
        ("gfx1100", "v_dot2_bf16_bf16 v0, 1.0, v1, 2.0", vec![PackedBf16, Bf16]),
        ("gfx1250", "v_pk_fma_bf16 v0, 1.0, v1, 2.0", vec![UpperBf16, UpperBf16]),
        ("gfx1250", "v_fma_mix_f32_bf16 v0, 1.0, 2.0, v1 op_sel_hi:[0,1,0]", vec![F32, UpperBf16]),
        ("gfx1250", "v_rcp_bf16 v0, 1.0", vec![UpperBf16]),
        ("gfx1100", "v_dual_fmaak_f32 v0, 1.0, v2, 0x11 :: v_dual_add_f32 v1, 2, v3", vec![F32; 3]),
    ] {
        assert_eq!(types(processor, line), expected, "{line}");
    }
}

/// The operation determines the bits of a constant.
#[test]
fn constants_have_the_bits_of_their_types() {
    let bits = |line: &str| {
        let inst = inst(&isa("gfx90a"), line);
        inst.sources().find_map(|source| source.constant_bits())
    };
    for (line, expected) in [
        ("v_add_f16 v0, 0.15915494, v1", 0x3118),
        ("v_add_u16 v0, 0.15915494, v1", 0x3e22_f983),
        ("v_add_u16 v0, 0x3c00, v1", 0x3c00),
        ("v_add_u16_e64 v0, v1, 1.0", 0x3f80_0000),
        ("v_pk_add_u16 v0, v1, 2.0", 0x4000_0000),
        ("v_pk_add_f16 v0, v1, 2.0", 0x4000),
        ("v_pk_add_f16 v0, v1, -1", 0xffff_ffff),
        ("v_add_f64 v[0:1], 1.0, v[2:3]", 0x3ff0_0000_0000_0000),
        ("v_cmp_lt_f64 vcc, 0x40080000, v[2:3]", 0x4008_0000_0000_0000),
        ("v_cmp_lt_i64 vcc, 0xffff0000, v[2:3]", 0xffff_ffff_ffff_0000),
        ("v_cmp_lt_u64 vcc, 0xffff0000, v[2:3]", 0xffff_0000),
        ("s_mov_b64 s[0:1], -1", u64::MAX),
        ("s_mov_b64 s[0:1], 0xffffffff", 0xffff_ffff),
        ("s_bfe_i64 s[0:1], 0x80000000, s2", 0xffff_ffff_8000_0000),
    ] {
        assert_eq!(bits(line), Some(expected), "{line}");
    }
    // The decoded constants print and assemble to the same bytes.
    let isa = isa("gfx90a");
    for line in
        ["v_add_u16 v0, -0.5, v1", "v_add_u16_e64 v0, 1.0, 4.0", "v_pk_min_i16 v0, -4.0, v1"]
    {
        let bytes = isa.assemble(line).expect("an instruction");
        let inst = isa.decode(&bytes, Pc(0)).expect("an instruction");
        assert_eq!(isa.assemble(&inst.text), Ok(bytes), "{line}: {inst}");
    }
}
