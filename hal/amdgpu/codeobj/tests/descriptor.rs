//! Descriptors compared with the assembler directives that define them.

use crate::common::{assemble, source};
use flipwave_codeobj::{
    CodeObject, CodeProperties, Denormals, Descriptor, Exceptions, FieldError, FloatMode,
    KernargPreload, Kernel, Rounding, Rsrc1, Rsrc2, Rsrc3,
};

use flipwave_isa::{Generation, Pc};

const GFX9: &[&str] = &["fp16_overflow 1", "dx10_clamp 0", "ieee_mode 1"];

const GFX90A: &[&str] = &[
    "accum_offset 24",
    "tg_split 1",
    "user_sgpr_kernarg_preload_length 3",
    "user_sgpr_kernarg_preload_offset 2",
];

const GFX10: &[&str] =
    &["fp16_overflow 1", "workgroup_processor_mode 0", "memory_ordered 0", "forward_progress 1"];

/// Directives for scratch through a buffer resource and flat scratch in user SGPRs.
const SCRATCH_IN_SGPRS: &[&str] = &[
    "reserve_flat_scratch 1",
    "user_sgpr_private_segment_buffer 1",
    "user_sgpr_flat_scratch_init 1",
    "system_sgpr_private_segment_wavefront_offset 1",
];

/// Directives for scratch that the hardware sets up.
const SCRATCH_IN_HARDWARE: &[&str] = &["enable_private_segment 1"];

/// Assembles the test kernel with additional directives.
fn probe(processor: &str, directives: &[&[&str]]) -> (Kernel, Vec<u8>) {
    let mut text = std::fs::read_to_string(source("descriptor.s")).expect("the source");
    for directive in directives.concat() {
        text += &format!("  .amdhsa_{directive}\n");
    }
    let compiled = assemble(&(text + ".end_amdhsa_kernel\n"), processor);
    let object = CodeObject::parse(&compiled.bytes).expect("a code object");
    // Without a metadata note the descriptor's symbol defines the kernel.
    assert_eq!(object.metadata(), None);
    assert_eq!(object.kernels().len(), 1);
    (object.kernel("probe").expect("the kernel").clone(), compiled.bytes)
}

/// The values of the directives in the source.
const PROPERTIES: CodeProperties = CodeProperties {
    sgpr_private_segment_buffer: true,
    sgpr_dispatch_ptr: true,
    sgpr_queue_ptr: false,
    sgpr_kernarg_segment_ptr: true,
    sgpr_dispatch_id: true,
    sgpr_flat_scratch_init: true,
    sgpr_private_segment_size: true,
    wavefront_size_32: false,
    uses_dynamic_stack: true,
};

const RSRC1: Rsrc1 = Rsrc1 {
    vgprs: 40,
    sgprs: 64,
    priority: 0,
    float_mode: FloatMode {
        round_32: Rounding::PlusInfinity,
        round_16_64: Rounding::MinusInfinity,
        denormals_32: Denormals::FlushSourcesAndResults,
        denormals_16_64: Denormals::Keep,
    },
    privileged: false,
    dx10_clamp: false,
    debug_mode: false,
    ieee_mode: true,
    bulky: false,
    debugger_user: false,
    fp16_overflow: true,
    workgroup_processor_mode: false,
    memory_ordered: false,
    forward_progress: false,
    round_robin: false,
    disable_performance_counters: false,
};

const RSRC2: Rsrc2 = Rsrc2 {
    private_segment: true,
    user_sgprs: 13,
    trap_handler: false,
    workgroup_id_x: true,
    workgroup_id_y: false,
    workgroup_id_z: true,
    workgroup_info: true,
    vgpr_workitem_id: 2,
    granulated_lds_size: 0,
    exceptions: Exceptions {
        address_watch: false,
        memory: false,
        invalid_operation: true,
        denormal_source: false,
        division_by_zero: true,
        overflow: false,
        underflow: true,
        inexact: false,
        integer_division_by_zero: true,
    },
};

const NO_PRELOAD: KernargPreload = KernargPreload { length: 0, offset: 0 };

fn check(kernel: &Kernel, rsrc1: Rsrc1, rsrc2: Rsrc2, rsrc3: Rsrc3, properties: CodeProperties) {
    let descriptor = &kernel.descriptor;
    assert_eq!(descriptor.group_segment_fixed_size, 1024);
    assert_eq!(descriptor.private_segment_fixed_size, 64);
    assert_eq!(descriptor.kernarg_size, 40);
    assert_eq!(descriptor.address % 64, 0);
    assert_eq!(descriptor.entry.0 % 256, 0);
    assert_eq!(descriptor.rsrc1, rsrc1);
    assert_eq!(descriptor.rsrc2, rsrc2);
    assert_eq!(descriptor.rsrc3, rsrc3);
    assert_eq!(descriptor.properties, properties);
    assert_eq!(kernel.code_size, 8);
    assert_eq!(kernel.metadata.kernarg_segment_size, 40);
    assert_eq!(kernel.metadata.wavefront_size, descriptor.wavefront_size());
}

#[test]
fn gfx906() {
    let (kernel, _) = probe("gfx906", &[GFX9, SCRATCH_IN_SGPRS]);
    // 50 SGPRs + VCC, FLAT_SCRATCH and XNACK_MASK are 56, with a granule of 16; 37 VGPRs with a
    // granule of 4.
    check(&kernel, RSRC1, RSRC2, Rsrc3::None, PROPERTIES);
    assert_eq!(kernel.descriptor.kernarg_preload, NO_PRELOAD);
}

#[test]
fn gfx90a() {
    let (kernel, _) = probe("gfx90a", &[GFX9, GFX90A, SCRATCH_IN_SGPRS]);
    let rsrc2 = Rsrc2 { user_sgprs: 16, ..RSRC2 };
    let rsrc3 = Rsrc3::Gfx90a { accum_offset: 24, threadgroup_split: true };
    check(&kernel, RSRC1, rsrc2, rsrc3, PROPERTIES);
    assert_eq!(kernel.descriptor.kernarg_preload, KernargPreload { length: 3, offset: 2 });
}

#[test]
fn gfx942() {
    let (kernel, _) = probe("gfx942", &[GFX9, GFX90A, SCRATCH_IN_HARDWARE]);
    let rsrc2 = Rsrc2 { user_sgprs: 10, ..RSRC2 };
    let rsrc3 = Rsrc3::Gfx90a { accum_offset: 24, threadgroup_split: true };
    let properties = CodeProperties {
        sgpr_private_segment_buffer: false,
        sgpr_flat_scratch_init: false,
        ..PROPERTIES
    };
    check(&kernel, RSRC1, rsrc2, rsrc3, properties);
}

#[test]
fn gfx1030() {
    for wave32 in [true, false] {
        let size = format!("wavefront_size32 {}", u8::from(wave32));
        let (kernel, _) = probe("gfx1030", &[GFX10, SCRATCH_IN_SGPRS, &[&size]]);
        let rsrc1 = Rsrc1 {
            sgprs: 128,
            dx10_clamp: true,
            forward_progress: true,
            // 37 VGPRs round up to 40 with the granules 8 (32 lanes) and 4 (64 lanes).
            ..RSRC1
        };
        let rsrc3 = Rsrc3::Gfx10 {
            shared_vgprs: 0,
            instruction_prefetch: 0,
            trap_on_start: false,
            trap_on_end: false,
            image_operations: false,
        };
        let properties = CodeProperties { wavefront_size_32: wave32, ..PROPERTIES };
        check(&kernel, rsrc1, RSRC2, rsrc3, properties);
    }
}

/// A descriptor encoded by hand from AMDGPUUsage: a VGPR granule of 16, 32 user SGPRs, named
/// barriers in units of 4, and preloaded arguments without a prologue.
#[test]
fn gfx1250() {
    let mut bytes = [0u8; 64];
    bytes[48] = 37;
    bytes[52] = 32 << 1;
    bytes[45] = 2 << 6;
    bytes[56] = 1 << 3;
    bytes[57] = 1 << 2;
    bytes[58] = 3;
    let descriptor = Descriptor::decode(&bytes, 0x1000, Generation::Gfx125);
    assert_eq!(descriptor.rsrc1.vgprs, 608);
    assert_eq!((descriptor.rsrc2.user_sgprs, descriptor.rsrc2.trap_handler), (32, false));
    let Rsrc3::Gfx125 { named_barriers, .. } = descriptor.rsrc3 else { panic!("{descriptor:?}") };
    assert_eq!(named_barriers, 2);
    assert_eq!(descriptor.kernarg_preload, KernargPreload { length: 3, offset: 0 });
    assert_eq!(descriptor.start(), descriptor.entry);
    assert_eq!(descriptor.encode(&bytes, Generation::Gfx125), Ok(bytes));
    // For gfx1200 the same bytes are half the registers and a trap handler.
    let older = Descriptor::decode(&bytes, 0x1000, Generation::Gfx12);
    assert_eq!((older.rsrc1.vgprs, older.rsrc2.user_sgprs), (304, 0));
    assert!(older.rsrc2.trap_handler);
}

#[test]
fn gfx1201() {
    let (kernel, _) = probe(
        "gfx1201",
        &[GFX10, SCRATCH_IN_HARDWARE, &["wavefront_size32 1", "round_robin_scheduling 1"]],
    );
    let rsrc1 =
        Rsrc1 { sgprs: 128, ieee_mode: false, forward_progress: true, round_robin: true, ..RSRC1 };
    let rsrc2 = Rsrc2 { user_sgprs: 7, ..RSRC2 };
    let rsrc3 = Rsrc3::Gfx12 {
        instruction_prefetch: 0,
        group_launch_guarantee: false,
        image_operations: false,
    };
    let properties = CodeProperties {
        sgpr_private_segment_buffer: false,
        sgpr_flat_scratch_init: false,
        wavefront_size_32: true,
        ..PROPERTIES
    };
    check(&kernel, rsrc1, rsrc2, rsrc3, properties);
}

/// Exactly the reserved bits do not change the decoded descriptor.
#[test]
fn every_bit_except_reserved_ones_is_decoded() {
    let (kernel, file) = probe("gfx90a", &[GFX9, GFX90A, SCRATCH_IN_SGPRS]);
    let object = CodeObject::parse(&file).unwrap();
    let generation = object.target().generation();
    let address = kernel.descriptor.address;
    let bytes = object.bytes_at(Pc(address), 64).unwrap();
    let bytes: [u8; 64] = bytes.try_into().unwrap();
    let decode = |bytes: &[u8; 64]| Descriptor::decode(bytes, address, generation);
    assert_eq!(decode(&bytes), kernel.descriptor);
    let mut ignored = Vec::new();
    for bit in 0..512 {
        let mut changed = bytes;
        changed[bit / 8] ^= 1 << (bit % 8);
        if decode(&changed) == kernel.descriptor {
            ignored.push(bit);
        }
    }
    let reserved = (96..128)
        .chain(192..352)
        .chain(358..368)
        .chain(369..384)
        // gfx9 has an SGPR granule of 16 and ignores the lowest bit.
        .chain([390])
        // Bits of compute_pgm_rsrc1 that only gfx10 has, and reserved ones.
        .chain(411..416)
        .chain([447])
        .chain(455..458)
        .chain(460..464)
        .chain(480..512);
    assert_eq!(ignored, reserved.collect::<Vec<usize>>());
}

#[test]
fn float_mode_round_trips() {
    for bits in 0..=255 {
        assert_eq!(FloatMode::from_mode(bits).mode(), bits);
    }
}

const GENERATIONS: [Generation; 9] = [
    Generation::Gfx6,
    Generation::Gfx7,
    Generation::Gfx8,
    Generation::Gfx9,
    Generation::Gfx90a,
    Generation::Gfx940,
    Generation::Gfx10,
    Generation::Gfx11,
    Generation::Gfx12,
];

/// Deterministic random bytes (xorshift64*, Vigna 2016).
fn random_bytes(state: &mut u64) -> [u8; 64] {
    std::array::from_fn(|_| {
        *state ^= *state >> 12;
        *state ^= *state << 25;
        *state ^= *state >> 27;
        (state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 56) as u8
    })
}

#[test]
fn encoding_is_the_inverse_of_decoding() {
    let mut state = 0x5eed;
    for generation in GENERATIONS {
        for _ in 0..2000 {
            let (bytes, original) = (random_bytes(&mut state), random_bytes(&mut state));
            let descriptor = Descriptor::decode(&bytes, 0x1_2340, generation);
            // Every pattern round-trips, including reserved bits.
            assert_eq!(descriptor.encode(&bytes, generation), Ok(bytes), "{generation:?}");
            // Every field is written, independent of the original bits.
            let encoded = descriptor.encode(&original, generation).expect("every field fits");
            assert_eq!(Descriptor::decode(&encoded, 0x1_2340, generation), descriptor);
            // Other bits are preserved: every bit that encoding changes is part of a field.
            for bit in 0..512 {
                let value = |bytes: &[u8; 64]| bytes[bit / 8] >> (bit % 8) & 1;
                if value(&encoded) != value(&original) {
                    let mut changed = encoded;
                    changed[bit / 8] ^= 1 << (bit % 8);
                    assert_ne!(Descriptor::decode(&changed, 0x1_2340, generation), descriptor);
                }
            }
        }
    }
}

#[test]
fn encoding_equals_the_assembler() {
    for (processor, directives) in [("gfx906", GFX9), ("gfx90a", GFX90A), ("gfx1030", GFX10)] {
        let (kernel, file) = probe(processor, &[directives]);
        let object = CodeObject::parse(&file).unwrap();
        let (address, generation) = (kernel.descriptor.address, object.target().generation());
        let bytes: [u8; 64] = object.bytes_at(Pc(address), 64).unwrap().try_into().unwrap();
        let mut encoded = kernel.descriptor.encode(&[0; 64], generation).expect("every field fits");
        // With an SGPR granule of 16 the assembler may set the ignored lowest bit.
        encoded[48] |= bytes[48] & 1 << 6;
        assert_eq!(encoded, bytes, "{processor}");
    }
}

#[test]
fn register_counts_are_rounded_up_and_limited() {
    let zero = [0; 64];
    let encoded = |generation, change: &dyn Fn(&mut Descriptor)| {
        let mut descriptor = Descriptor::decode(&zero, 0, generation);
        change(&mut descriptor);
        let bytes = descriptor.encode(&zero, generation)?;
        Ok::<Descriptor, FieldError>(Descriptor::decode(&bytes, 0, generation))
    };
    let vgprs = |generation, vgprs| {
        encoded(generation, &|descriptor| descriptor.rsrc1.vgprs = vgprs)
            .map(|descriptor| descriptor.rsrc1.vgprs)
    };
    assert_eq!(vgprs(Generation::Gfx9, 0), Ok(4));
    assert_eq!(vgprs(Generation::Gfx9, 5), Ok(8));
    assert_eq!(vgprs(Generation::Gfx9, 256), Ok(256));
    assert_eq!(vgprs(Generation::Gfx90a, 505), Ok(512));
    let error = vgprs(Generation::Gfx90a, 513).expect_err("too many");
    assert_eq!((error.value, error.limit), (513, 512));
    let sgprs = |generation, sgprs| {
        encoded(generation, &|descriptor| descriptor.rsrc1.sgprs = sgprs)
            .map(|descriptor| descriptor.rsrc1.sgprs)
    };
    assert_eq!(sgprs(Generation::Gfx8, 9), Ok(16));
    assert_eq!(sgprs(Generation::Gfx90a, 17), Ok(32));
    assert_eq!(sgprs(Generation::Gfx90a, 112), Ok(112));
    assert_eq!(sgprs(Generation::Gfx10, 5), Ok(128), "every wave has all of them");
    let offset = encoded(Generation::Gfx940, &|descriptor| {
        descriptor.rsrc3 = Rsrc3::Gfx90a { accum_offset: 37, threadgroup_split: false };
    });
    assert_eq!(offset.map(|descriptor| descriptor.rsrc3.accum_offset()), Ok(Some(40)));
    let error = encoded(Generation::Gfx9, &|descriptor| descriptor.rsrc2.user_sgprs = 32);
    assert_eq!(
        error.expect_err("too many").to_string(),
        "kernel descriptor: user SGPRs of 32; Gfx9 holds at most 31"
    );
}
