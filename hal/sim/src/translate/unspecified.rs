//! Instructions that are not executed because public sources leave open what they compute.

use crate::wave::Machine;
use flipwave_isa::{Generation, Inst};

/// Returns what public sources leave open; `None` for instructions that they specify.
pub fn reason(inst: &Inst, machine: Machine) -> Option<&'static str> {
    if machine.generation < Generation::Gfx125 {
        return None;
    }
    let name = inst.operation.name();
    // AMD's rocjitsu keeps the layouts that compiled kernels expect, and says that CDNA 5 ISA, 7.12.3 and
    // 7.12.5, pair indices with elements in another way.
    if name.starts_with("v_swmmac_") {
        return Some(
            "CDNA 5 ISA and AMD's rocjitsu differ on which index belongs to which element",
        );
    }
    // LLVM decodes it for gfx1250, but gives kernels of gfx1250 no way to enable the mode (`dynamic-vgpr`
    // concerns graphics shaders of gfx12), and CDNA 5 ISA does not describe it.
    if name == "s_alloc_vgpr" {
        return Some(
            "how kernels of gfx1250 allocate vector registers dynamically is not published",
        );
    }
    let selection = inst.modifiers.scale_select;
    if name.starts_with("v_cvt_scale_pk")
        && (name.starts_with("v_cvt_scale_pk16_") || name.ends_with("_fp4"))
    {
        // MLIR's `getScaleSel` gives the first two bytes of blocks of 16 elements the same number.
        if selection & 3 == 3 {
            return Some("MLIR documents the selection of scales, but does not encode it");
        }
    }
    if name.starts_with("v_cvt_scale_pk8_") && !name.ends_with("_fp4") {
        // MLIR's `getScaleSel` names the valid values; blocks of 16 elements are described for formats of
        // six and four bits only.
        if selection & 1 != 0 {
            return Some(
                "the bytes of scales for blocks of 16 elements of 8 bits are not published",
            );
        }
        if selection == 8 {
            return Some("MLIR rejects the selection of scales");
        }
    }
    const TO_FP8: [&str; 3] = ["v_cvt_pk_fp8_f32", "v_cvt_sr_fp8_f32", "v_cvt_pk_fp8_f16"];
    if inst.modifiers.clamp && TO_FP8.contains(&name) {
        return Some(
            "what becomes of negative numbers in E5M3, which has no sign, is not published",
        );
    }
    if ["v_cvt_pk_fp8_f16", "v_cvt_pk_bf8_f16"].contains(&name)
        && inst.sources().any(|operand| operand.constant.is_some())
    {
        return Some("LLVM assembles and prints its constants in different precisions");
    }
    None
}
