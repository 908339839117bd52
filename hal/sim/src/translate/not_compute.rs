//! Instructions that decode but that compute waves do not execute.

use crate::instruction::NotExecuted;
use flipwave_device::Absence;
use flipwave_isa::{Class, Encoding, Family, Generation, Inst, Register, Value};

/// Returns why no compute wave executes the instruction; `None` if compute waves can.
pub fn reason(inst: &Inst, generation: Generation) -> Option<NotExecuted> {
    let name = inst.operation.name();
    let absent = |absence, reason| Some(NotExecuted { absence, reason });
    let lacks_units = matches!(generation, Generation::Gfx90a | Generation::Gfx940);
    if inst.encoding == Encoding::Mimg && !name.starts_with("tensor_") {
        return if lacks_units {
            absent(Absence::FromProcessor, "it has no image unit")
        } else {
            absent(Absence::FromTool, "images are not executed")
        };
    }
    if inst.class() == Class::Graphics || name == "s_endpgm_ordered_ps_done" {
        return absent(Absence::FromCompute, "only a graphics shader can execute it");
    }
    if name.starts_with("s_rfe") {
        return absent(
            Absence::FromCompute,
            "only a trap handler can return from one, and none is installed",
        );
    }
    if matches!(name, "tensor_save" | "tensor_stop") {
        return absent(
            Absence::FromCompute,
            "it saves tensor moves for a trap handler, and none is installed",
        );
    }
    if name == "v_screen_partition_4se_b32" {
        return absent(
            Absence::FromCompute,
            "it looks a screen position up in a table of the rasteriser",
        );
    }
    if name.starts_with("ds_bvh_stack") {
        return absent(Absence::FromTool, "ray tracing is not executed");
    }
    // Its definition refers to VGT_GS_MAX_WAVE_ID (RDNA 4 ISA).
    if name == "global_atomic_ordered_add_b64" {
        return absent(Absence::FromCompute, "it orders what geometry shaders write");
    }
    // Linux assigns no global data share to the address spaces of compute processes (amdgpu,
    // `init_gds_vmid`).
    if inst.modifiers.gds && !inst.operation.is(Family::GlobalWaveSync) {
        return absent(
            Absence::FromCompute,
            "compute queues have no part of the global data share",
        );
    }
    if name == "s_alloc_vgpr" && generation < Generation::Gfx125 {
        return absent(Absence::FromTool, "vector registers are not allocated dynamically");
    }
    let has_barriers = generation >= Generation::Gfx125;
    if !has_barriers && matches!(name, "s_barrier_init" | "s_barrier_join" | "s_barrier_leave") {
        return absent(Absence::FromProcessor, "it has no named barriers");
    }
    if inst.modifiers.scale_offset && generation < Generation::Gfx125 {
        return absent(Absence::FromProcessor, "the bit that scales the offset is one of gfx1250");
    }
    let formats = [inst.modifiers.cbsz, inst.modifiers.blgp];
    if name.ends_with("_f8f6f4") && formats.iter().any(|format| *format > 4) {
        return absent(Absence::FromProcessor, "the manual reserves the number of the format");
    }
    let reads_lds = |value: &Value| matches!(value, Value::Register(range) if range.first == Register::LdsDirect);
    if lacks_units && inst.operands.iter().any(|operand| reads_lds(&operand.value)) {
        return absent(Absence::FromProcessor, "it does not read LDS as a source operand");
    }
    None
}
