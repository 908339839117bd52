; Every encoding family and modifier of gfx90a. One instruction a line; each is assembled,
; decoded, printed and assembled again.

; Modifiers, inline constants, literals, special registers
v_addc_co_u32_e32 v15, vcc, v11, v15, vcc
v_div_scale_f32 v2, vcc, v0, v1, v0
v_div_scale_f64 v[2:3], s[4:5], v[0:1], v[6:7], v[0:1]
v_div_fmas_f32 v0, v1, v2, v3
v_mfma_f32_32x32x1f32 a[0:31], v0, v1, a[0:31] cbsz:1 abid:1 blgp:2
v_mfma_f32_16x16x16f16 v[0:3], v[4:5], a[6:7], v[8:11]
v_mfma_f32_32x32x8bf16_1k a[0:15], v[4:5], v[6:7], 0
v_mov_b32_dpp v0, v1 quad_perm:[3,2,1,0] row_mask:0xf bank_mask:0xf bound_ctrl:0
v_mov_b32_dpp v0, v1 row_shl:1 row_mask:0xa bank_mask:0x1
v_mov_b32_dpp v0, v1 row_shr:15 row_mask:0xf bank_mask:0xf
v_mov_b32_dpp v0, v1 row_ror:7 row_mask:0xf bank_mask:0xf
v_mov_b32_dpp v0, v1 wave_rol:1 row_mask:0xf bank_mask:0xf
v_mov_b32_dpp v0, v1 wave_shr:1 row_mask:0xf bank_mask:0xf
v_mov_b32_dpp v0, v1 wave_ror:1 row_mask:0xf bank_mask:0xf
v_mov_b32_dpp v0, v1 row_mirror row_mask:0xf bank_mask:0xf
v_mov_b32_dpp v0, v1 row_half_mirror row_mask:0xf bank_mask:0xf
v_mov_b32_dpp v0, v1 row_bcast:31 row_mask:0xf bank_mask:0xf
v_mov_b32_sdwa v0, sext(v1) dst_sel:BYTE_0 dst_unused:UNUSED_PRESERVE src0_sel:WORD_1
v_cmp_class_f32_sdwa vcc, v0, v1 src0_sel:DWORD src1_sel:BYTE_2
ds_swizzle_b32 v0, v1 offset:swizzle(BROADCAST,4,1)
ds_swizzle_b32 v0, v1 offset:swizzle(QUAD_PERM,0,1,2,3)
ds_swizzle_b32 v0, v1 offset:swizzle(SWAP,16)
ds_swizzle_b32 v0, v1 offset:swizzle(FFT,31)
s_cbranch_scc1 8
s_call_b64 s[0:1], 4
v_pk_fma_f16 v0, v1, v2, v3 op_sel:[1,0,0] op_sel_hi:[0,1,1] neg_lo:[1,0,0] clamp
v_pk_add_f32 v[0:1], v[2:3], v[4:5] neg_lo:[1,0] neg_hi:[0,1]
v_fma_f16 v0, -|v1|, v2, s3 op_sel:[0,0,0,1]
buffer_load_dword v0, v1, s[0:3], s5 offen offset:16 glc slc scc
buffer_load_dword v0, v[2:3], s[0:3], s5 idxen offen
buffer_load_dword v0, s[0:3], 0 offen lds
buffer_store_dwordx4 v[0:3], off, s[0:3], 0 offset:4095
tbuffer_load_format_x v0, off, s[0:3], dfmt:4, nfmt:2, 0 offset:1
image_load v[0:3], v0, s[0:7] dmask:0xf unorm
global_atomic_add v1, v[2:3], v4, off glc
global_atomic_add v[2:3], v4, off
global_atomic_add_f64 v[2:3], v[4:5], off
scratch_load_dword v0, off, s0 offset:4
scratch_store_dword v1, v0, off
flat_atomic_cmpswap_x2 v[0:1], v[2:3], v[4:7] offset:8 glc
s_load_dwordx8 s[0:7], s[8:9], 0x10 glc
s_buffer_load_dwordx16 s[16:31], s[8:11], 0x40
s_atomic_add s0, s[2:3], 0x10
v_swap_b32 v0, v1
v_cmpx_eq_u32 vcc, v0, v1
v_ldexp_f64 v[0:1], -v[2:3], 3 mul:2
v_mul_f32_e64 v0, v1, v2 div:2
s_set_gpr_idx_on s0, gpr_idx(SRC0)
s_barrier
s_swappc_b64 s[0:1], s[2:3]
ds_write_b32 v8, v1
ds_write2_b32 v8, v1, v2 offset1:1
s_movk_i32 s0, 0x9234
s_movk_i32 s0, -1
s_addk_i32 s0, 0x8000
s_cmpk_eq_u32 s0, 0xffff
s_cmpk_eq_i32 s0, 0xffff
s_load_dword s0, s[2:3], -16
s_load_dword s0, s[2:3], s4 offset:0x10
s_load_dword s0, s[2:3], s4
s_atc_probe 7, s[4:5], 0x64
s_setreg_imm32_b32 hwreg(HW_REG_MODE,0,4), 0x12345
s_setreg_b32 hwreg(HW_REG_MODE,0,4), s1
s_mov_b64 s[0:1], 0x80000000
s_mov_b64 s[0:1], -5
v_mov_b32 v0, 0x3f800000
v_cvt_f32_f64 v0, 0x40590000
v_cmp_lt_f64 vcc, 0x40590000, v[0:1]
v_add_f64 v[0:1], -1.0, v[2:3]
v_add_f64 v[0:1], neg(1), v[2:3]
v_add_f32_e64 v0, neg(1.0), v1
v_add_f32_e64 v0, -v1, |v2| clamp mul:4
v_add_f32_e64 v0, |-4.0|, v1
v_fma_mixlo_f16 v0, v1, v2, v3 op_sel:[1,0,0] op_sel_hi:[1,0,0]
v_mad_u16 v0, v1, v2, v3
v_madak_f32 v0, v1, v2, 0x41000000
v_madmk_f32 v0, v1, 0x41000001, v2
v_madak_f32 v0, v1, v2, 1.0
global_load_short_d16_hi v0, v[2:3], off offset:-16
ds_read_u16_d16 v0, v1
ds_append v0 offset:4
ds_read_addtid_b32 v0 offset:4
ds_gws_barrier v0 offset:1 gds
s_rfe_b64 s[0:1]
s_cbranch_i_fork s[0:1], 12
s_setpc_b64 s[30:31]
s_cbranch_vccnz 65535
s_cbranch_execz 4
s_branch 3
s_cselect_b32 s0, s1, s2
s_and_saveexec_b64 s[0:1], exec
s_mov_b64 exec, s[0:1]
v_mov_b32 v0, src_shared_base
s_mov_b64 s[0:1], src_private_base
v_mov_b32 v0, src_scc
v_mov_b32 v0, m0
s_mov_b32 s0, src_execz
v_writelane_b32 v0, s1, m0
v_readfirstlane_b32 s0, v1
v_mov_b32 v0, ttmp3
s_mov_b64 xnack_mask, flat_scratch
v_cvt_pkrtz_f16_f32 v0, v1, v2
v_cmp_lt_f32_sdwa s[0:1], v0, v1 src0_sel:BYTE_1 src1_sel:WORD_1
v_add_f32_sdwa v0, -|v1|, s2 dst_sel:WORD_1 dst_unused:UNUSED_SEXT src0_sel:DWORD src1_sel:BYTE_3
v_add_f32_dpp v0, -v1, |v2| row_newbcast:3 row_mask:0x1 bank_mask:0xf
v_add_f32_dpp v0, v1, v2 row_bcast:15 row_mask:0x1 bank_mask:0xf
v_add_f32_dpp v0, v1, v2 wave_shl:1 row_mask:0x1 bank_mask:0xf
v_fmac_f64_dpp v[0:1], v[2:3], v[4:5] row_newbcast:3 row_mask:0x1 bank_mask:0xf
buffer_wbl2
buffer_wbinvl1_vol
s_dcache_inv
s_endpgm
s_sendmsg sendmsg(MSG_GS, GS_OP_EMIT, 1)
v_mfma_f64_16x16x4f64 v[0:7], v[8:9], v[10:11], v[0:7] blgp:1
v_mfma_f32_32x32x1f32 v[0:31], v0, v1, 1.0
v_mfma_f32_32x32x1f32 a[0:31], v0, a1, 2
buffer_atomic_add v0, off, s[0:3], 0 glc
buffer_atomic_cmpswap v[0:1], off, s[0:3], 0 glc
global_load_dword v0, v1, s[2:3] offset:16
v_pk_mul_f32 v[0:1], s[2:3], v[4:5] op_sel_hi:[0,1]
s_set_gpr_idx_mode gpr_idx(SRC0,DST)
s_setprio 3
v_screen_partition_4se_b32 v0, v1
v_mul_f16 v0, 0.15915494, v1
v_rcp_f64 v[0:1], 0.15915494309189532
s_waitcnt vmcnt(63)
s_waitcnt lgkmcnt(0)
s_getreg_b32 s0, hwreg(HW_REG_HW_ID)
s_getreg_b32 s0, hwreg(50)
s_sendmsg 0x70
s_bitset0_b32 s0, s1
s_cmov_b32 s0, s1
v_cndmask_b32 v0, v1, v2, vcc
v_cndmask_b32_e64 v0, v1, v2, s[2:3]
v_mad_u64_u32 v[0:1], vcc, v2, v3, v[4:5]
v_accvgpr_read_b32 v0, a1
global_load_dword a0, v[2:3], off
ds_write_b64 v1, a[2:3]

; Dpp Valu
v_add_co_u32_dpp v146, vcc, v160, v135 quad_perm:[0,0,0,2] row_mask:0x0 bank_mask:0x0
v_add_f16_dpp v223, v0, v0 quad_perm:[0,0,0,0] row_mask:0x0 bank_mask:0x0
v_add_f32_dpp v201, -v16, -v196 quad_perm:[0,0,0,0] row_mask:0x0 bank_mask:0x0
v_add_u16_dpp v16, v0, v128 quad_perm:[0,0,0,0] row_mask:0x0 bank_mask:0x0
v_and_b32_dpp v183, v216, v133 quad_perm:[0,0,0,0] row_mask:0x0 bank_mask:0x0
v_dot4c_i32_i8_dpp v67, v177, v134 quad_perm:[0,0,0,0] row_mask:0x0 bank_mask:0x0
v_lshrrev_b16_dpp v166, v29, v128 quad_perm:[0,1,0,0] row_mask:0x0 bank_mask:0x0
v_max_i16_dpp v252, v17, v129 quad_perm:[0,0,0,0] row_mask:0x0 bank_mask:0x0
v_min_i16_dpp v231, v67, v133 quad_perm:[0,0,0,0] row_mask:0x0 bank_mask:0x0
v_mul_hi_i32_i24_dpp v228, v36, v173 quad_perm:[0,0,0,0] row_mask:0x0 bank_mask:0x0
v_sub_co_u32_dpp v23, vcc, v11, v139 quad_perm:[0,0,0,0] row_mask:0x0 bank_mask:0x0
v_subbrev_co_u32_dpp v117, vcc, v160, v0, vcc quad_perm:[0,0,2,2] row_mask:0x0 bank_mask:0x0

; Ds Lds
ds_add_f32 v130, v45 offset:562
ds_add_f64 v128, a[60:61] offset:1835
ds_add_rtn_f32 v0, v159, v72 offset:2123
ds_add_rtn_f64 v[0:1], v180, v[156:157] offset:3733
ds_add_rtn_u32 a0, v174, a0 offset:3785
ds_add_u32 v156, a32 offset:1496
ds_and_b32 v73, v0 offset:1562
ds_and_rtn_b32 v0, v76, v0 offset:2270
ds_append v0 offset:179
ds_cmpst_b32 v68, v148, v80 offset:374
ds_cmpst_f32 v226, v112, v225 offset:467
ds_cmpst_rtn_b32 a5, v200, a48, a160 offset:7903
ds_cmpst_rtn_f32 a104, v68, a1, a136 offset:7858
ds_condxchg32_rtn_b64 v[0:1], v161, v[0:1] offset:3401
ds_dec_rtn_u32 a0, v24, a192 offset:2529
ds_dec_u32 v130, a32 offset:2701
ds_gws_barrier v128 offset:1785 gds
ds_gws_sema_br a128 offset:673 gds
ds_gws_sema_release_all offset:140 gds
ds_inc_rtn_u32 v0, v134, v0 offset:3284
ds_inc_u32 v49, v12 offset:3457
ds_max_f32 v132, v8 offset:3877
ds_max_i32 v93, a0 offset:13683
ds_max_rtn_f32 a0, v64, a128 offset:3720
ds_max_rtn_i32 a0, v192, a64 offset:1672
ds_max_rtn_u32 a0, v128, a0 offset:535
ds_max_u32 v13, a0 offset:1089
ds_min_f32 v32, a154 offset:3272
ds_min_i32 v87, v0 offset:3899
ds_min_rtn_f32 v16, v36, v56 offset:25644
ds_min_rtn_i32 v0, v52, v160 offset:3641
ds_min_rtn_u32 v4, v69, v64 offset:22159
ds_min_u32 v215, a130 offset:300
ds_mskor_b32 v128, a0, a35 offset:57266
ds_mskor_rtn_b32 v32, v201, v64, v52 offset:7917
ds_or_b32 v196, v160 offset:216
ds_or_rtn_b32 v0, v64, v0 offset:2680
ds_permute_b32 v0, v64, v2 offset:29391
ds_read2_b64 v[0:3], v5 offset0:134 offset1:13
ds_read2st64_b64 v[0:3], v114 offset0:195 offset1:5
ds_read_b128 a[0:3], v201 offset:3650
ds_read_b64 v[0:1], v34 offset:4074
ds_read_i16 a0, v140 offset:3107
ds_read_i8_d16 v0, v144 offset:3716
ds_read_u16 v0, v45 offset:3993
ds_read_u16_d16_hi a0, v149 offset:3758
ds_read_u8_d16 a0, v197 offset:2278
ds_rsub_rtn_u32 a0, v134, a0 offset:3938
ds_rsub_u32 v130, a0 offset:3390
ds_sub_rtn_u32 a0, v140, a0 offset:779
ds_sub_u32 v32, a0 offset:681
ds_swizzle_b32 a0, v0 offset:swizzle(BITMASK_PERM,"0pp11")
ds_write2_b32 v212, v34, v217 offset0:195 offset1:1
ds_write2st64_b32 v70, v182, v225 offset0:162 offset1:1
ds_write_addtid_b32 v0 offset:108
ds_write_b16 v112, a16 offset:387
ds_write_b32 v32, v1 offset:1232
ds_write_b8 v128, a0 offset:2442
ds_write_b96 v72, a[44:46] offset:2708
ds_wrxchg2_rtn_b64 v[0:3], v162, v[0:1], v[0:1] offset0:241 offset1:14
ds_wrxchg2st64_rtn_b64 v[0:3], v16, v[34:35], v[0:1] offset0:217 offset1:103
ds_wrxchg_rtn_b64 a[0:1], v0, a[20:21] offset:1789
ds_xor_b64 v195, v[0:1] offset:3180
ds_xor_rtn_b64 a[0:1], v88, a[0:1] offset:4067

; Flat Vmem
flat_atomic_add v0, v[176:177], v0 offset:3356 glc slc
flat_atomic_add_f64 v[0:1], v[16:17], v[0:1] offset:2820 glc slc
flat_atomic_add_x2 v[0:1], v[136:137], v[0:1] offset:390 glc slc scc
flat_atomic_and v0, v[36:37], v0 offset:266 glc slc scc
flat_atomic_and_x2 v[0:1], v[68:69], v[80:81] offset:27 glc slc scc
flat_atomic_cmpswap_x2 v[0:1], v[226:227], v[0:3] offset:2341 glc slc scc
flat_atomic_dec_x2 v[0:1], v[8:9], v[0:1] offset:261 glc slc scc
flat_atomic_inc_x2 v[0:1], v[20:21], v[0:1] offset:2260 glc slc scc
flat_atomic_min_f64 v[0:1], v[2:3], v[0:1] offset:3833 glc slc
flat_atomic_or_x2 v[0:1], v[0:1], v[0:1] offset:239 glc slc scc
flat_atomic_smax_x2 v[0:1], v[80:81], v[0:1] offset:3657 glc slc scc
flat_atomic_smin_x2 v[0:1], v[8:9], v[0:1] offset:3045 glc slc scc
flat_atomic_sub_x2 v[0:1], v[162:163], v[0:1] offset:731 glc slc scc
flat_atomic_swap_x2 v[0:1], v[104:105], v[128:129] offset:286 glc scc
flat_atomic_umax_x2 v[0:1], v[128:129], v[64:65] offset:1993 glc slc scc
flat_atomic_umin_x2 v[0:1], v[72:73], v[0:1] offset:3568 glc slc scc
flat_atomic_xor_x2 v[0:1], v[36:37], v[0:1] offset:2884 glc slc scc
flat_load_dwordx2 v[0:1], v[8:9] offset:1326 glc slc scc
flat_load_dwordx4 v[0:3], v[180:181] offset:420 slc scc
flat_load_sbyte_d16 v0, v[106:107] offset:2890 glc slc scc
flat_load_short_d16 v1, v[136:137] offset:250 glc slc
flat_load_sshort v0, v[130:131] offset:3953 glc slc scc
flat_load_ubyte_d16 v0, v[68:69] offset:2036 glc scc
flat_load_ushort v0, v[0:1] offset:1888 glc slc scc
flat_store_byte_d16_hi v[8:9], v0 offset:3701 glc slc scc
flat_store_dwordx2 v[66:67], v[0:1] offset:343 glc slc scc
flat_store_dwordx4 v[4:5], a[48:51] offset:418 glc slc scc
flat_store_short_d16_hi v[80:81], v0 offset:810 glc slc scc

; Global Vmem
global_atomic_add v161, v20, v160, s[64:65] offset:2911 glc scc
global_atomic_add_f32 v0, v16, v0, s[80:81] offset:1000 glc
global_atomic_and v20, v103, v216, s[32:33] offset:497 glc slc scc
global_atomic_cmpswap v32, v80, v[162:163], s[32:33] offset:-16 glc
global_atomic_cmpswap_x2 a[12:13], v136, a[36:39], s[64:65] offset:-2041 glc scc
global_atomic_dec_x2 v[192:193], v64, v[232:233], s[2:3] offset:499 glc scc
global_atomic_inc_x2 v198, v[0:1], s[96:97] offset:1860 scc
global_atomic_or v128, v20, v132, s[32:33] offset:3576 glc slc scc
global_atomic_smax v100, v0, s[0:1] offset:624 slc scc
global_atomic_smin v48, v2, v0, s[100:101] offset:-3937 glc
global_atomic_umax v84, v68, v128, s[84:85] offset:3173 glc
global_atomic_umin_x2 v[0:1], v144, v[0:1], s[64:65] offset:-425 glc scc
global_load_dword v0, v130, s[0:1] offset:-914 glc slc
global_load_dwordx3 a[0:2], v66, s[0:1] offset:-3954 slc
global_load_sbyte_d16_hi v11, v137, s[32:33] offset:256 glc scc
global_load_sshort v132, s[8:9] offset:4023 scc lds
global_load_ubyte_d16_hi v0, v32, s[0:1] offset:4073 glc slc scc
global_store_dword v8, v0, s[64:65] offset:285
global_store_short v130, a0, s[0:1] offset:-2595

; Mimg Image
image_sample v32, v66, s[12:19], s[16:19] dmask:0x1 slc scc lwe

; Mtbuf Vmem
tbuffer_load_format_d16_x v0, off, s[0:3], s0 format:[BUF_DATA_FORMAT_11_11_10] offset:171
tbuffer_load_format_d16_xy v1, v8, s[0:3], s8 format:[BUF_DATA_FORMAT_16] idxen offset:3554 slc
tbuffer_load_format_d16_xyz v[0:1], off, s[0:3], s0 format:[BUF_DATA_FORMAT_16] offset:254
tbuffer_load_format_d16_xyzw a[0:1], v17, s[40:43], s0 format:[BUF_DATA_FORMAT_10_11_11] offen offset:208
tbuffer_load_format_x a16, off, s[32:35], -16 format:[BUF_DATA_FORMAT_16] offset:3219 glc
tbuffer_load_format_xyz v[0:2], off, s[0:3], s0 format:[BUF_NUM_FORMAT_USCALED] offset:247
tbuffer_store_format_d16_x v0, off, s[0:3], s0 format:[BUF_DATA_FORMAT_10_11_11] offset:79
tbuffer_store_format_d16_xyz v[0:1], off, s[0:3], s0 offset:173
tbuffer_store_format_x v0, off, s[0:3], s0 format:[BUF_DATA_FORMAT_16_16_16_16] offset:241
tbuffer_store_format_xyz v[0:2], off, s[0:3], s0 format:[BUF_DATA_FORMAT_32_32] offset:183

; Mubuf Vmem
buffer_atomic_add v128, v228, s[20:23], s66 offen offset:1954 glc slc scc
buffer_atomic_add_f32 v0, v73, s[0:3], s0 offen offset:701 glc slc
buffer_atomic_add_f64 v[0:1], off, s[0:3], s0 offset:127 slc
buffer_atomic_add_x2 v[128:129], off, s[8:11], s0 offset:3415
buffer_atomic_and v0, v10, s[0:3], s0 idxen offset:1872 glc slc scc
buffer_atomic_cmpswap v[4:5], v[176:177], s[0:3], s37 idxen offen offset:2119 slc scc
buffer_atomic_dec v0, v0, s[84:87], s0 idxen offset:2164 glc
buffer_atomic_inc v0, off, s[0:3], s0 offset:205 slc
buffer_atomic_max_f64 v[66:67], v65, s[16:19], s17 offen offset:3469 glc slc
buffer_atomic_or v123, v8, s[4:7], 52 offen offset:2403 glc slc scc
buffer_atomic_pk_add_f16 v0, off, s[0:3], s0 offset:44 slc
buffer_atomic_smax_x2 v[120:121], v0, s[68:71], s32 idxen offset:1052 slc
buffer_atomic_smin_x2 a[0:1], v162, s[8:11], s0 idxen offset:2945 slc
buffer_atomic_sub_x2 v[0:1], v78, s[32:35], s0 offen offset:231 glc slc scc
buffer_atomic_swap_x2 v[100:101], v1, s[4:7], s50 idxen offset:3241 scc
buffer_atomic_umax_x2 v[98:99], v2, s[32:35], s68 offen offset:3648 glc
buffer_atomic_umin_x2 v[0:1], v[98:99], s[64:67], s27 idxen offen offset:2063
buffer_atomic_xor_x2 v[0:1], v28, s[4:7], s0 idxen offset:1189 slc scc
buffer_load_dwordx2 v[0:1], v[160:161], s[0:3], s0 idxen offen offset:2610 glc slc
buffer_load_dwordx4 v[242:245], v2, s[16:19], s36 offen offset:762 glc slc scc
buffer_load_format_d16_x v0, off, s[0:3], s0 offset:39 slc
buffer_load_format_d16_xyz v[0:1], v32, s[0:3], s0 idxen offset:2637 slc
buffer_load_format_x v0, v200, s[0:3], s0 idxen offset:2040
buffer_load_format_xyz a[210:212], v[20:21], s[24:27], s12 idxen offen offset:999 slc scc
buffer_load_sbyte v0, s[96:99], s0 idxen offset:1547 glc scc lds
buffer_load_sbyte_d16_hi a137, v[2:3], s[0:3], s0 idxen offen offset:1858 slc
buffer_load_short_d16_hi a2, v[24:25], s[0:3], s2 idxen offen offset:291 glc
buffer_load_ubyte v32, v0, s[4:7], s80 idxen offset:1619 glc slc
buffer_load_ubyte_d16_hi v0, v[96:97], s[0:3], s0 idxen offen offset:649 glc slc scc
buffer_store_byte a0, v[6:7], s[0:3], s0 idxen offen offset:1553 glc slc
buffer_store_dword v32, v[38:39], s[72:75], s67 idxen offen offset:57 glc scc
buffer_store_dwordx3 v[0:2], v47, s[48:51], s0 offen offset:687 glc scc
buffer_store_format_d16_hi_x v132, v11, s[8:11], s29 idxen offset:213 slc scc
buffer_store_format_d16_xy a0, v8, s[16:19], s0 idxen offset:489
buffer_store_format_d16_xyzw v[0:1], v[6:7], s[4:7], s0 idxen offen offset:686 glc scc
buffer_store_format_xy v[0:1], v[28:29], s[4:7], s0 idxen offen offset:300 glc
buffer_store_format_xyzw a[36:39], v0, s[32:35], 8 offen offset:775 slc scc
buffer_store_short v0, v[38:39], s[4:7], s64 idxen offen offset:3997 glc scc

; Scratch Vmem
scratch_load_sbyte v0, off, s66 offset:-3471 slc scc
scratch_load_ushort off, s0 offset:-3293 slc scc lds
scratch_store_short off, v0, s12 offset:-3538 slc

; Sdwa Valu
v_add_co_u32_sdwa v7, vcc, v0, v0 dst_sel:BYTE_0 dst_unused:UNUSED_PAD src0_sel:BYTE_0 src1_sel:BYTE_0
v_add_f16_sdwa v100, v0, v128 dst_sel:BYTE_0 dst_unused:UNUSED_PAD src0_sel:BYTE_0 src1_sel:BYTE_0
v_add_f32_sdwa v48, v0, v0 dst_sel:BYTE_0 dst_unused:UNUSED_PAD src0_sel:BYTE_0 src1_sel:BYTE_0
v_add_u16_sdwa v104, v0, v0 dst_sel:BYTE_0 dst_unused:UNUSED_PAD src0_sel:BYTE_0 src1_sel:BYTE_0
v_ashrrev_i16_sdwa v52, v0, v128 dst_sel:BYTE_0 dst_unused:UNUSED_PAD src0_sel:BYTE_0 src1_sel:BYTE_0
v_lshlrev_b32_sdwa v135, v0, v0 dst_sel:BYTE_0 dst_unused:UNUSED_PAD src0_sel:BYTE_0 src1_sel:BYTE_0
v_max_i32_sdwa v91, v132, v128 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:BYTE_1 src1_sel:BYTE_0
v_min_i32_sdwa v20, 4, v0 dst_sel:BYTE_0 dst_unused:UNUSED_PAD src0_sel:BYTE_2 src1_sel:BYTE_0
v_mul_hi_u32_u24_sdwa v22, sext(v157), v4 dst_sel:BYTE_0 dst_unused:UNUSED_PAD src0_sel:BYTE_0 src1_sel:BYTE_0
v_sub_f16_sdwa v23, v0, v128 dst_sel:BYTE_0 dst_unused:UNUSED_PAD src0_sel:BYTE_0 src1_sel:BYTE_0
v_subrev_co_u32_sdwa v7, vcc, v0, v128 dst_sel:BYTE_0 dst_unused:UNUSED_PAD src0_sel:BYTE_0 src1_sel:BYTE_0
v_xor_b32_sdwa v13, v30, v45 dst_sel:BYTE_0 dst_unused:UNUSED_PAD src0_sel:BYTE_1 src1_sel:BYTE_0
v_cmp_gt_i32_sdwa s[24:25], v4, s29 src0_sel:BYTE_0 src1_sel:DWORD
v_cmp_lt_f32_sdwa s[98:99], -|v4|, v29 src0_sel:DWORD src1_sel:WORD_1

; Smem Smem
s_atc_probe 6, s[32:33], 0x2010
s_atc_probe_buffer 1, s[92:95], 0xa1083
s_atomic_add s2, flat_scratch, 0x0 glc
s_atomic_add_x2 s[8:9], flat_scratch, 0xb3 glc
s_atomic_cmpswap s[2:3], s[64:65], 0x0 glc
s_atomic_dec_x2 s[42:43], s[88:89], 0x13839 glc
s_atomic_or s0, s[98:99], 0x1a83 glc
s_atomic_smax_x2 s[24:25], s[100:101], 0x12
s_atomic_sub s68, s[8:9], s0 offset:0xc0011 glc
s_atomic_swap_x2 s[0:1], s[96:97], 0x52 glc
s_atomic_umin xnack_mask_hi, s[48:49], s64 offset:0xa62a4
s_atomic_xor_x2 s[38:39], xnack_mask, 0x40
s_buffer_atomic_and s1, s[84:87], s0 glc
s_buffer_atomic_dec s45, s[16:19], 0x18069
s_buffer_atomic_inc_x2 s[12:13], s[0:3], 0xa8 glc
s_buffer_atomic_smax s0, s[52:55], 0x7000 glc
s_buffer_atomic_sub s42, s[56:59], 0x8100 glc
s_buffer_atomic_swap_x2 s[12:13], s[48:51], 0xe glc
s_buffer_atomic_umin s10, s[84:87], 0x1c19 glc
s_buffer_atomic_xor_x2 s[2:3], s[96:99], s0 glc
s_buffer_load_dwordx2 s[0:1], s[80:83], s0 glc
s_buffer_store_dwordx2 s[2:3], s[76:79], s70 glc
s_dcache_discard_x2 s[50:51], s0
s_load_dwordx2 s[2:3], s[68:69], 0x20 glc
s_scratch_load_dwordx2 s[44:45], xnack_mask, 0xa480 glc
s_scratch_store_dwordx2 s[50:51], s[36:37], 0xd63 glc
s_store_dwordx2 s[52:53], s[84:85], 0x3a020 glc

; Sop1 Salu
s_abs_i32 s97, s24
s_andn1_wrexec_b64 s[16:17], src_scc
s_bcnt0_i32_b32 s70, src_pops_exiting_wave_id
s_bcnt0_i32_b64 s30, src_pops_exiting_wave_id
s_bcnt1_i32_b32 xnack_mask_hi, src_private_limit
s_bitset0_b32 s42, s95
s_brev_b32 xnack_mask_hi, s37
s_cmov_b32 s28, src_private_base
s_ff0_i32_b32 s21, 0.5
s_ff1_i32_b32 s56, s39
s_flbit_i32_i64 s11, s[78:79]
s_mov_b64 s[58:59], src_shared_limit
s_not_b32 s95, src_private_base
s_orn2_saveexec_b64 s[20:21], -9
s_sext_i32_i16 s17, s55
s_wqm_b64 s[50:51], flat_scratch

; Sop2 Branch
s_cbranch_g_fork s[16:17], s[14:15]
s_rfe_restore_b64 s[26:27], s6

; Sop2 Salu
s_absdiff_i32 flat_scratch_lo, src_private_limit, s12
s_add_i32 xnack_mask_lo, src_execz, src_private_limit
s_add_u32 flat_scratch_lo, src_shared_limit, s12
s_addc_u32 s89, s54, src_pops_exiting_wave_id
s_and_b32 flat_scratch_hi, src_private_limit, 35
s_andn2_b32 flat_scratch_lo, src_private_limit, s1
s_ashr_i32 s58, src_shared_base, src_shared_limit
s_bfe_i32 flat_scratch_hi, src_shared_limit, s0
s_bfe_u32 s16, src_pops_exiting_wave_id, s21
s_bfm_b32 flat_scratch_lo, -4, flat_scratch_lo
s_cselect_b32 s65, s71, src_pops_exiting_wave_id
s_lshl1_add_u32 xnack_mask_lo, src_pops_exiting_wave_id, s1
s_lshl3_add_u32 s44, src_private_base, flat_scratch_hi
s_lshl_b32 vcc_lo, src_pops_exiting_wave_id, s9
s_lshr_b32 flat_scratch_lo, src_shared_limit, s9
s_max_i32 flat_scratch_hi, 0.15915494, s1
s_min_i32 flat_scratch_hi, s23, src_pops_exiting_wave_id
s_mul_hi_i32 flat_scratch_lo, src_private_base, src_vccz
s_mul_i32 flat_scratch_hi, src_shared_limit, 45
s_nand_b64 s[14:15], src_private_base, s[14:15]
s_nor_b64 s[56:57], src_pops_exiting_wave_id, s[0:1]
s_or_b64 s[34:35], src_pops_exiting_wave_id, s[52:53]
s_orn2_b64 flat_scratch, src_pops_exiting_wave_id, s[0:1]
s_pack_lh_b32_b16 xnack_mask_lo, src_pops_exiting_wave_id, 15
s_sub_i32 xnack_mask_hi, s97, src_pops_exiting_wave_id
s_subb_u32 s79, src_private_limit, flat_scratch_lo
s_xnor_b64 flat_scratch, src_private_limit, s[0:1]
s_xor_b64 s[92:93], src_pops_exiting_wave_id, s[0:1]

; Sopc Salu
s_bitcmp0_b32 src_private_base, s1
s_bitcmp0_b64 s[18:19], s10
s_bitcmp1_b32 -1.0, s101
s_bitcmp1_b64 src_shared_base, s1
s_cmp_eq_i32 s25, s0
s_cmp_eq_u64 s[66:67], s[14:15]
s_cmp_ge_u32 s27, exec_hi
s_cmp_gt_u32 s37, s47
s_cmp_le_u32 s97, s12
s_cmp_lg_u32 s67, s7
s_cmp_lt_i32 xnack_mask_hi, s1
s_set_gpr_idx_on s76, gpr_idx(SRC1,SRC2,DST)

; Sopk Branch
s_call_b64 flat_scratch, 57370
s_cbranch_i_fork flat_scratch, 19758

; Sopk Salu
s_addk_i32 flat_scratch_lo, 0x27a6
s_cmovk_i32 flat_scratch_lo, 0x4311
s_cmpk_eq_i32 flat_scratch_lo, 0xfddf
s_cmpk_eq_u32 flat_scratch_lo, 0xdf30
s_cmpk_ge_i32 flat_scratch_lo, 0x2dcc
s_cmpk_gt_i32 flat_scratch_lo, 0xf502
s_cmpk_le_i32 flat_scratch_lo, 0x57b8
s_cmpk_lg_i32 flat_scratch_lo, 0xe9ca
s_cmpk_lt_i32 flat_scratch_lo, 0x8c46
s_getreg_b32 xnack_mask_hi, hwreg(HW_REG_SH_MEM_BASES, 17, 1)
s_mulk_i32 flat_scratch_lo, 0xbf42
s_setreg_imm32_b32 hwreg(HW_REG_TBA_HI, 30, 25), 0x320088

; Sopp Branch
s_branch 62893
s_cbranch_cdbgsys 33388
s_cbranch_cdbgsys_and_user 63299
s_cbranch_cdbgsys_or_user 55142
s_cbranch_cdbguser 38978
s_cbranch_execz 56660
s_cbranch_scc1 61249
s_cbranch_vccz 60148

; Sopp Message
s_decperflevel 0xbdb4
s_incperflevel 0x95ea
s_sendmsg 35125
s_sendmsghalt sendmsg(MSG_SYSMSG, SYSMSG_OP_ECC_ERR_INTERRUPT)
s_sethalt 0x1cff
s_trap 0x70b2

; Sopp Wait
s_nop 0xcd0a
s_setprio 0xac63
s_sleep 0xd476
s_waitcnt vmcnt(13) expcnt(6) lgkmcnt(0)

; Vop1 Valu
v_bfrev_b32_e32 v133, v161
v_ceil_f16_e32 v119, v203
v_ceil_f32_e32 v210, s71
v_ceil_f64_e32 v[68:69], 28
v_cos_f16_e32 v227, v130
v_cvt_f16_f32_e32 v36, src_execz
v_cvt_f16_u16_e32 v54, v125
v_cvt_f32_f64_e32 v124, v[106:107]
v_cvt_f32_u32_e32 v29, src_private_limit
v_cvt_f32_ubyte2_e32 v224, src_vccz
v_cvt_f64_f32_e32 v[16:17], s18
v_cvt_f64_u32_e32 v[92:93], v163
v_cvt_i16_f16_e32 v39, v234
v_cvt_i32_f64_e32 v144, v[134:135]
v_cvt_norm_u16_f16_e32 v176, v252
v_cvt_rpi_i32_f32_e32 v34, vcc_lo
v_cvt_u32_f32_e32 v158, src_private_limit
v_exp_f16_e32 v212, v245
v_exp_legacy_f32_e32 v55, v103
v_ffbh_u32_e32 v168, v14
v_floor_f16_e32 v237, s92
v_floor_f64_e32 v[160:161], v[164:165]
v_fract_f32_e32 v174, v231
v_frexp_exp_i16_f16_e32 v29, v122
v_frexp_exp_i32_f64_e32 v52, v[34:35]
v_frexp_mant_f32_e32 v4, exec_lo
v_log_f32_e32 v90, v161
v_mov_b32_e32 v103, flat_scratch_hi
v_rcp_f16_e32 v119, v111
v_rcp_f64_e32 v[252:253], v[92:93]
v_readfirstlane_b32 xnack_mask_hi, v174
v_rndne_f32_e32 v182, v9
v_rsq_f16_e32 v196, v134
v_rsq_f64_e32 v[44:45], v[136:137]
v_screen_partition_4se_b32_e32 v129, v173
v_sin_f32_e32 v189, v74
v_sqrt_f32_e32 v218, v111
v_trunc_f16_e32 v74, v224
v_trunc_f64_e32 v[50:51], 28

; Vop2 Valu
v_add_co_u32_e32 v18, vcc, src_pops_exiting_wave_id, v109
v_add_f16_e32 v194, src_pops_exiting_wave_id, v130
v_add_f32_e32 v185, src_pops_exiting_wave_id, v129
v_add_u16_e32 v187, src_pops_exiting_wave_id, v218
v_add_u32_e32 v217, src_pops_exiting_wave_id, v128
v_and_b32_e32 v128, src_pops_exiting_wave_id, v128
v_ashrrev_i32_e32 v98, src_pops_exiting_wave_id, v232
v_dot2c_f32_f16_e32 v155, src_pops_exiting_wave_id, v131
v_dot4c_i32_i8_e32 v149, src_pops_exiting_wave_id, v130
v_fmac_f32_e32 v242, src_pops_exiting_wave_id, v128
v_ldexp_f16_e32 v171, src_pops_exiting_wave_id, v173
v_lshlrev_b32_e32 v105, src_pops_exiting_wave_id, v199
v_lshrrev_b32_e32 v52, src_pops_exiting_wave_id, v128
v_mac_f32_e32 v188, src_pops_exiting_wave_id, v133
v_madak_f32 v241, 0.15915494, v195, 0x890000
v_madmk_f32 v209, 0.15915494, 0x2100989, v128
v_max_f32_e32 v119, src_pops_exiting_wave_id, v128
v_max_i32_e32 v192, src_pops_exiting_wave_id, v129
v_max_u32_e32 v126, src_pops_exiting_wave_id, v132
v_min_f32_e32 v108, src_pops_exiting_wave_id, v235
v_min_i32_e32 v124, src_pops_exiting_wave_id, v205
v_min_u32_e32 v118, src_pops_exiting_wave_id, v131
v_mul_f32_e32 v156, src_pops_exiting_wave_id, v135
v_mul_hi_u32_u24_e32 v188, src_pops_exiting_wave_id, v128
v_mul_lo_u16_e32 v152, src_pops_exiting_wave_id, v138
v_or_b32_e32 v103, src_pops_exiting_wave_id, v128
v_sub_co_u32_e32 v121, vcc, src_pops_exiting_wave_id, v132
v_sub_f32_e32 v192, src_pops_exiting_wave_id, v129
v_sub_u32_e32 v114, src_pops_exiting_wave_id, v192
v_subbrev_co_u32_e32 v152, vcc, 0.15915494, v128, vcc
v_subrev_f16_e32 v176, src_pops_exiting_wave_id, v128
v_subrev_u16_e32 v161, src_pops_exiting_wave_id, v128
v_xnor_b32_e32 v181, src_pops_exiting_wave_id, v135

; Vop3 Valu
v_add3_u32 v15, s0, s0, s0
v_add_co_u32_e64 v100, s[6:7], s0, s0
v_add_f16_e64 v92, s0, s0
v_add_f32_e64 v31, |s25|, 32
v_add_f64 v[42:43], s[0:1], s[0:1]
v_add_i32 v11, s0, s0
v_add_u16_e64 v37, s0, s0
v_alignbit_b32 v156, v160, v19, s16
v_and_b32_e64 v51, v79, s16
v_ashrrev_i16_e64 v107, s0, s0
v_bcnt_u32_b32 v39, s0, s0
v_bfe_u32 v222, s0, s0, s0
v_bfm_b32 v62, s0, s0
v_ceil_f16_e64 v153, s0
v_cmp_eq_f32_e64 src_private_limit, v4, |4|
v_cmp_eq_u16_e64 s[12:13], s0, s0
v_cmp_f_u32_e64 s[98:99], s0, s0
v_cmp_ge_f64_e64 s[12:13], s[0:1], s[0:1]
v_cmp_le_f64_e64 s[46:47], 64, s[0:1]
v_cmp_lg_f16_e64 s[44:45], s0, s0
v_cmp_lt_u16_e64 src_private_base, s0, s0
v_cmp_neq_f32_e64 s[0:1], s0, s0
v_cmp_nge_f16_e64 src_pops_exiting_wave_id, s0, s0
v_cmp_nge_f64_e64 src_vccz, s[0:1], s[0:1]
v_cmp_nle_f32_e64 s[40:41], s0, s0
v_cmp_nlt_f16_e64 s[24:25], s0, s0
v_cmp_o_f32_e64 s[10:11], 52, v41
v_cmp_u_f32_e64 s[100:101], |v142|, v41
v_cmpx_eq_f16_e64 s[16:17], s0, s0
v_cmpx_f_i32_e64 s[22:23], s0, s0
v_cmpx_gt_f32_e64 s[46:47], s0, s0
v_cmpx_le_f32_e64 exec, |s4|, |16|
v_cmpx_lt_f32_e64 s[14:15], 33, s0
v_cmpx_lt_i64_e64 s[48:49], s[0:1], s[0:1]
v_cmpx_ne_i16_e64 s[52:53], s0, s0
v_cmpx_ne_u16_e64 s[78:79], s0, s0
v_cmpx_nge_f32_e64 s[22:23], s0, s0
v_cmpx_tru_f16_e64 s[50:51], s0, s0
v_cndmask_b32_e64 v129, v202, v96, s[0:1]
v_cos_f32_e64 v104, s0
v_cubema_f32 v59, v96, 2, s32
v_cubetc_f32 v215, |5|, s0, s0
v_cvt_f16_i16_e64 v236, s0
v_cvt_f32_f16_e64 v15, s0
v_cvt_f32_i32_e64 v213, s0
v_cvt_f32_ubyte0_e64 v163, s0
v_cvt_f32_ubyte2_e64 v134, s0
v_cvt_f64_u32_e64 v[234:235], s0
v_cvt_i16_f16_e64 v194, |28|
v_cvt_i32_f64_e64 v57, s[0:1]
v_cvt_norm_u16_f16_e64 v37, s0
v_cvt_pk_i16_i32 v114, s0, s0
v_cvt_pk_u8_f32 v160, v10, 60, s66
v_cvt_pknorm_i16_f16 v34, s0, s0 op_sel:[1,0,0]
v_cvt_pknorm_u16_f16 v234, s0, |s0|
v_cvt_pkrtz_f16_f32 v141, |s4|, 32
v_cvt_u16_f16_e64 v51, s0
v_cvt_u32_f64_e64 v67, s[0:1]
v_div_fixup_f32 v160, s0, s0, s0
v_div_fixup_legacy_f16 v115, s0, s0, s0
v_div_scale_f64 v[62:63], s[82:83], 1, v[128:129], s[0:1] clamp
v_dot2c_i32_i16_e64 v131, s0, s0
v_dot8c_i32_i4_e64 v218, s0, s0
v_exp_f32_e64 v8, s0
v_ffbh_i32_e64 v135, s0
v_ffbl_b32_e64 v199, s0
v_floor_f32_e64 v199, s0
v_fma_f16 v163, -|12|, |v8|, -2 op_sel:[1,0,1,1] clamp
v_fma_legacy_f16 v47, |36|, |s0|, |s0|
v_fract_f16_e64 v167, s0
v_fract_f64_e64 v[134:135], |s[18:19]|
v_frexp_exp_i32_f32_e64 v255, s0
v_frexp_mant_f16_e64 v243, s0
v_ldexp_f16_e64 v129, s0, s0
v_lerp_u8 v45, -16, v200, s0
v_log_f32_e64 v155, s0
v_lshl_add_u32 v14, s0, s0, s0
v_lshlrev_b16_e64 v137, s0, s0
v_lshrrev_b16_e64 v65, s0, s0
v_mac_f16_e64 v97, s0, s0
v_mad_f16 v136, s0, v1, s0 op_sel:[1,0,0,0]
v_mad_i16 v153, s0, s0, s0
v_mad_i32_i24 v191, s0, s0, s0
v_mad_legacy_f32 v176, |v177|, s96, 12
v_mad_legacy_u16 v69, s0, s0, s0
v_mad_u32_u16 v96, s0, s0, s0
v_max3_f16 v217, |52|, |s34|, |v61| op_sel:[1,0,1,0]
v_max3_i16 v127, 56, 0, s8 op_sel:[1,0,0,1] clamp
v_max3_u16 v126, s0, s0, s0
v_max_f16_e64 v222, s0, s0
v_max_i16_e64 v91, s0, s0
v_max_u16_e64 v234, s40, v64
v_mbcnt_hi_u32_b32 v252, s0, s0
v_med3_f16 v182, |s72|, v218, -|-1| op_sel:[0,0,1,0] mul:2
v_med3_i16 v176, s0, s0, s0
v_med3_u16 v219, s0, s0, s0
v_min3_f16 v34, -v0, s0, neg(0) op_sel:[0,1,0,0] clamp
v_min3_i16 v127, 36, v1, 30
v_min3_u16 v248, v0, 52, s0
v_min_f16_e64 v30, s0, s0
v_min_i16_e64 v181, s0, s0
v_min_u16_e64 v127, s0, s0
v_mov_b32_e64 v198, s0
v_mul_f16_e64 v226, s0, s0
v_mul_f64 v[142:143], s[2:3], 7
v_mul_hi_i32_i24_e64 v135, s0, s0
v_mul_hi_u32_u24_e64 v174, s0, s0
v_mul_legacy_f32 v62, |0|, |v146|
v_mul_lo_u32 v160, s0, s0
v_not_b32_e64 v122, s81
v_or_b32_e64 v185, s0, s0
v_perm_b32 v191, s0, s0, s0
v_rcp_f32_e64 v12, s0
v_rcp_iflag_f32_e64 v60, s0
v_rndne_f32_e64 v111, s4
v_rsq_f16_e64 v44, s0
v_rsq_f64_e64 v[64:65], s[0:1]
v_sad_u16 v3, s0, s0, s0
v_sad_u8 v74, s0, s0, s0
v_screen_partition_4se_b32_e64 v135, s0
v_sin_f32_e64 v150, s0
v_sqrt_f32_e64 v165, s0
v_sub_co_u32_e64 v127, s[4:5], s75, v83
v_sub_f32_e64 v202, |v66|, s0
v_sub_i32 v31, s0, s0
v_sub_u32_e64 v10, s0, s0
v_subrev_co_u32_e64 v246, s[0:1], s0, s0
v_subrev_f32_e64 v174, s0, s0
v_subrev_u32_e64 v41, s0, s0
v_trunc_f32_e64 v221, s0
v_writelane_b32 v127, s0, s0
v_xnor_b32_e64 v163, v64, 24

; Vop3p Valu
v_dot2_f32_f16 v172, 32, 0, s27 op_sel:[0,1,1] op_sel_hi:[1,0,1] clamp
v_dot2_i32_i16 v35, v139, s0, v1 op_sel:[1,1,1] op_sel_hi:[0,0,1] neg_lo:[0,1,0] neg_hi:[1,1,0]
v_dot2_u32_u16 v44, 16, s0, s0 op_sel:[1,0,0] op_sel_hi:[0,0,0] neg_hi:[1,0,1]
v_dot4_i32_i8 v225, v34, v164, s0 neg_hi:[1,0,1]
v_dot4_u32_u8 v217, 6, v128, s0 neg_hi:[0,0,1]
v_dot8_u32_u4 v18, 14, s0, s0 neg_hi:[1,0,1]
v_fma_mixhi_f16 v234, -v144, neg(28), -s0 op_sel:[1,0,1] op_sel_hi:[1,0,0]
v_pk_fma_f16 v123, s16, 64, v4 op_sel:[1,1,0] op_sel_hi:[0,0,1] neg_lo:[1,0,1] neg_hi:[0,1,0]
v_pk_mad_i16 v213, v227, v8, s36 op_sel_hi:[0,0,0] neg_hi:[1,0,0]

; Vopc Valu
v_cmp_class_f16_e32 vcc, v120, v129
v_cmp_class_f32_e32 vcc, -4.0, v128
v_cmp_class_f64_e32 vcc, xnack_mask, v133
v_cmp_eq_f16_e32 vcc, v206, v131
v_cmp_eq_i16_e32 vcc, xnack_mask_hi, v48
v_cmp_f_f16_e32 vcc, v252, v231
v_cmp_f_u16_e32 vcc, v49, v128
v_cmp_ge_i16_e32 vcc, v191, v128
v_cmp_gt_f16_e32 vcc, -0.5, v128
v_cmp_gt_u16_e32 vcc, xnack_mask_hi, v0
v_cmp_le_i16_e32 vcc, v206, v218
v_cmp_lg_f16_e32 vcc, v253, v161
v_cmp_lt_i16_e32 vcc, src_vccz, v128
v_cmp_ne_i16_e32 vcc, xnack_mask_hi, v101
v_cmp_neq_f16_e32 vcc, v236, v134
v_cmp_ngt_f16_e32 vcc, src_execz, v128
v_cmp_nlg_f16_e32 vcc, src_shared_limit, v128
v_cmp_o_f16_e32 vcc, v127, v128
v_cmp_t_u16_e32 vcc, v246, v205
v_cmp_u_f16_e32 vcc, s101, v158
v_cmpx_eq_f16_e32 vcc, 0.15915494, v6
v_cmpx_eq_u16_e32 vcc, v234, v128
v_cmpx_f_i16_e32 vcc, src_vccz, v0
v_cmpx_ge_f16_e32 vcc, v138, v108
v_cmpx_ge_u16_e32 vcc, v152, v143
v_cmpx_gt_i16_e32 vcc, src_execz, v134
v_cmpx_le_f16_e32 vcc, v241, v128
v_cmpx_le_u16_e32 vcc, v151, v243
v_cmpx_lt_f16_e32 vcc, v237, v128
v_cmpx_lt_u16_e32 vcc, v255, v129
v_cmpx_ne_u16_e32 vcc, v240, v110
v_cmpx_nge_f16_e32 vcc, v114, v229
v_cmpx_nle_f16_e32 vcc, src_shared_base, v0
v_cmpx_nlt_f16_e32 vcc, src_shared_base, v5
v_cmpx_t_i16_e32 vcc, s42, v143
v_cmpx_tru_f16_e32 vcc, src_private_limit, v132
