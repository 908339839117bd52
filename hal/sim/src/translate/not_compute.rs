//! What decodes but is no instruction of a compute wave.

use flipwave_isa::{Class, Encoding, Family, Generation, Inst, Register, Value};

/// Why no compute wave can execute the instruction; `None` if one can.
pub fn reason(inst: &Inst, generation: Generation) -> Option<&'static str> {
    let name = inst.operation.name();
    let lacks_units = matches!(generation, Generation::Gfx90a | Generation::Gfx940);
    if inst.encoding == Encoding::Mimg && !name.starts_with("tensor_") {
        return Some(match lacks_units {
            true => "the processor has no image unit",
            false => "the embedded GPU has no image unit",
        });
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
    if name.starts_with("ds_bvh_stack") {
        return Some("it walks a tree with the ray tracing unit, which the embedded GPU lacks");
    }
    // VGT_GS_MAX_WAVE_ID is in its definition (RDNA 4 ISA).
    if name == "global_atomic_ordered_add_b64" {
        return Some("it orders what geometry shaders write");
    }
    // Linux gives none to the address spaces of compute processes (amdgpu, `init_gds_vmid`).
    if inst.modifiers.gds && !inst.operation.is(Family::GlobalWaveSync) {
        return Some("compute queues have no part of the global data share");
    }
    if name == "s_alloc_vgpr" {
        return Some("no dispatch of the embedded GPU has dynamic vector registers");
    }
    let has_barriers = generation >= Generation::Gfx125;
    if !has_barriers && matches!(name, "s_barrier_init" | "s_barrier_join" | "s_barrier_leave") {
        return Some("the processor has no named barriers");
    }
    if inst.modifiers.scale_offset && generation < Generation::Gfx125 {
        return Some("the bit that scales the offset is one of gfx1250");
    }
    let formats = [inst.modifiers.cbsz, inst.modifiers.blgp];
    if name.ends_with("_f8f6f4") && formats.iter().any(|format| *format > 4) {
        return Some("the manual reserves the number of the format");
    }
    let reads_lds = |value: &Value| matches!(value, Value::Register(range) if range.first == Register::LdsDirect);
    if lacks_units && inst.operands.iter().any(|operand| reads_lds(&operand.value)) {
        return Some("the processor does not read LDS as a source operand");
    }
    None
}
