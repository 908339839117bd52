//! What decodes for gfx90a but is no instruction of a compute wave.

use flipwave_isa::{Class, Encoding, Inst, Register, Value};

/// Why no compute wave can execute the instruction; `None` if one can.
pub fn reason(inst: &Inst) -> Option<&'static str> {
    let name = inst.operation.name();
    if inst.encoding == Encoding::Mimg {
        return Some("gfx90a has no image unit");
    }
    if inst.class() == Class::Graphics || name == "s_endpgm_ordered_ps_done" {
        return Some("only a pixel shader can");
    }
    if name.starts_with("s_rfe") {
        return Some("only a trap handler can return from one, and none is installed");
    }
    if name == "v_screen_partition_4se_b32" {
        return Some("it looks a screen position up in a table of the rasteriser");
    }
    let formats = [inst.modifiers.cbsz, inst.modifiers.blgp];
    if name.ends_with("_f8f6f4") && formats.iter().any(|format| *format > 4) {
        return Some("the manual reserves the number of the format");
    }
    let reads_lds = |value: &Value| matches!(value, Value::Register(range) if range.first == Register::LdsDirect);
    if inst.operands.iter().any(|operand| reads_lds(&operand.value)) {
        return Some("gfx90a does not read LDS as a source operand");
    }
    None
}
