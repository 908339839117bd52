// Frame around the instructions of a kernel. The only argument is a pointer to a buffer. At entry
// s[0:1] is the kernarg segment and v0 the work-item. The instructions may set `lds_bytes` and
// `private_bytes`, and `preload_length` and `preload_offset` to preload that many dwords of the
// arguments starting at that dword.
    .text
    .globl planted
    .p2align 8
    .type planted,@function
planted:
    s_load_dwordx2 s[2:3], s[0:1], 0x0
    v_lshlrev_b32 v1, 2, v0
    s_waitcnt lgkmcnt(0)
    // From here on, s[2:3] is the buffer and v1 the offset of the work-item's dword.
    .include "body.s"
end:
    s_endpgm
    .size planted, .-planted

    .ifndef lds_bytes
    .set lds_bytes, 0
    .endif
    .ifndef vgprs
    .set vgprs, 64
    .set accum_offset, 32
    .endif
    .ifndef sgprs
    .set sgprs, 64
    .endif

    .ifndef private_bytes
    .set private_bytes, 0
    .endif

    .ifndef preload_length
    .set preload_length, 0
    .set preload_offset, 0
    .endif

    .rodata
    .p2align 6
    .amdhsa_kernel planted
        .amdhsa_kernarg_size 8
        .amdhsa_group_segment_fixed_size lds_bytes
        .amdhsa_private_segment_fixed_size private_bytes
        .amdhsa_user_sgpr_kernarg_segment_ptr 1
        .amdhsa_user_sgpr_kernarg_preload_length preload_length
        .amdhsa_user_sgpr_kernarg_preload_offset preload_offset
        .amdhsa_next_free_vgpr vgprs
        .amdhsa_accum_offset accum_offset
        .amdhsa_next_free_sgpr sgprs
    .end_amdhsa_kernel

    .amdgpu_metadata
---
amdhsa.version: [1, 2]
amdhsa.kernels:
  - .name: planted
    .symbol: planted.kd
    .kernarg_segment_size: 8
    .kernarg_segment_align: 8
    .group_segment_fixed_size: 0
    .private_segment_fixed_size: 0
    .wavefront_size: 64
    .sgpr_count: 64
    .vgpr_count: 64
    .max_flat_workgroup_size: 256
    .args:
      - {.name: buffer, .offset: 0, .size: 8, .value_kind: global_buffer, .address_space: global}
...
    .end_amdgpu_metadata
