//! Results smaller than a register.

use crate::common::isa;
use flipwave_isa::{Pc, Register, RegisterRange, Vgpr};

/// A result of one or two bytes preserves the other bits of its register, which is therefore read.
#[test]
fn narrow_results_read_their_destination() {
    let isa = isa("gfx950");
    for line in [
        "v_cvt_pk_fp8_f32 v1, v2, v3",
        "v_cvt_sr_bf8_f32 v1, v2, v3 op_sel:[0,0,1,1]",
        "v_cvt_sr_f16_f32 v1, v2, v3",
        "v_cvt_scalef32_f16_fp8 v1, v2, v3",
        "v_cvt_scalef32_pk_bf8_f16 v1, v2, v3",
        "v_cvt_scalef32_pk_fp4_f32 v1, v2, v3, v4",
        "v_cvt_scalef32_sr_fp8_bf16 v1, v2, v3, v4",
        "v_cvt_scalef32_sr_pk_fp4_f16 v1, v2, v3, v4",
        "v_ashr_pk_i8_i32 v1, v2, v3, v4",
        "v_bitop3_b16 v1, v2, v3, v4 bitop3:7",
    ] {
        let bytes = isa.assemble(line).expect(line);
        let inst = isa.decode(&bytes, Pc(0)).expect(line);
        let destination = RegisterRange::new(Register::Vgpr(Vgpr(1)), 1);
        assert!(inst.reads.contains(&destination), "{line}: {:?}", inst.reads);
        assert!(inst.sources().count() <= 3, "{line}");
    }
    // Negative control: full-width results.
    for line in ["v_cvt_pk_bf16_f32 v1, v2, v3", "v_cvt_scalef32_f32_fp8 v1, v2, v3"] {
        let bytes = isa.assemble(line).expect(line);
        let inst = isa.decode(&bytes, Pc(0)).expect(line);
        let destination = RegisterRange::new(Register::Vgpr(Vgpr(1)), 1);
        assert!(!inst.reads.contains(&destination), "{line}: {:?}", inst.reads);
    }
}
