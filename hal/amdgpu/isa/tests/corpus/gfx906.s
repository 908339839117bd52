; A sample of each encoding family of gfx906.

; Dpp Valu
v_add_co_u32_dpp v146, vcc, v160, v135 quad_perm:[0,0,0,2] row_mask:0x0 bank_mask:0x0
v_add_f16_dpp v223, v0, v0 quad_perm:[0,0,0,0] row_mask:0x0 bank_mask:0x0
v_add_f32_dpp v201, -v16, -v196 quad_perm:[0,0,0,0] row_mask:0x0 bank_mask:0x0
v_add_u16_dpp v16, v0, v128 quad_perm:[0,0,0,0] row_mask:0x0 bank_mask:0x0
v_cndmask_b32_dpp v168, v136, -|v156|, vcc quad_perm:[2,1,2,2] row_mask:0x1 bank_mask:0x0
v_max_f16_dpp v126, -|v32|, v0 quad_perm:[1,2,1,0] row_mask:0x0 bank_mask:0x0 bound_ctrl:1
v_min_i32_dpp v136, v68, v133 quad_perm:[0,0,0,0] row_mask:0x0 bank_mask:0x0
v_mul_lo_u16_dpp v244, v138, v133 quad_perm:[2,0,1,0] row_mask:0x0 bank_mask:0x0
v_subbrev_co_u32_dpp v117, vcc, v160, v0, vcc quad_perm:[0,0,2,2] row_mask:0x0 bank_mask:0x0

; Ds Lds
ds_add_f32 v129, v0 offset:282 gds
ds_add_rtn_f32 v0, v88, v0 offset:2934 gds
ds_add_rtn_u32 v0, v167, v0 offset:1959 gds
ds_add_rtn_u64 v[0:1], v2, v[69:70] offset:2880 gds
ds_and_b32 v80, v192 offset:3798 gds
ds_cmpst_b64 v103, v[17:18], v[134:135] offset:505 gds
ds_dec_rtn_u32 v0, v32, v0 offset:2012 gds
ds_gws_sema_p offset:124 gds
ds_max_f32 v38, v0 offset:357 gds
ds_max_rtn_u64 v[96:97], v0, v[140:141] offset:23137 gds
ds_min_f32 v73, v0 offset:972 gds
ds_min_rtn_u64 v[1:2], v137, v[44:45] offset:435 gds
ds_mskor_b32 v144, v0, v0 offset:42981 gds
ds_or_src2_b64 v137 offset:3532 gds
ds_read_b32 v0, v240 offset:505 gds
ds_read_u16_d16_hi v0, v96 offset:1767 gds
ds_rsub_u64 v10, v[16:17] offset:2940 gds
ds_write2_b32 v1, v0, v32 offset0:85 offset1:218 gds
ds_write_b64 v0, v[68:69] offset:1012 gds
ds_wrxchg2st64_rtn_b64 v[0:3], v144, v[16:17], v[32:33] offset0:66 offset1:205 gds

; Export Graphics
exp null v160, v16, v144, off

; Flat Vmem
flat_atomic_add v0, v[176:177], v0 offset:3356 glc slc
flat_atomic_add_x2 v[0:1], v[165:166], v[57:58] offset:919 glc slc
flat_atomic_and v0, v[146:147], v0 offset:2184 glc slc
flat_atomic_and_x2 v[0:1], v[134:135], v[4:5] offset:1908 glc slc
flat_atomic_inc_x2 v[0:1], v[136:137], v[165:166] offset:2396 glc slc
flat_atomic_swap v0, v[112:113], v236 offset:898 glc slc
flat_load_dwordx2 v[2:3], v[136:137] offset:493 glc slc
flat_load_ubyte v0, v[136:137] offset:218 glc slc
flat_store_dwordx4 v[152:153], v[0:3] offset:2993 glc slc

; Global Vmem
global_atomic_cmpswap v32, v80, v[162:163], s[32:33] offset:-16 glc
global_atomic_or v0, v18, v0, s[0:1] offset:-2020 glc
global_atomic_or_x2 v64, v[0:1], s[4:5] offset:-1440 slc
global_atomic_smin v48, v2, v0, s[100:101] offset:-3937 glc

; Mimg Image
image_gather4_cl_o v[8:12], v[3:4], s[40:47], s[0:3] dmask:0x1 slc tfe
image_sample_c_o v[76:78], v[16:18], s[0:7], s[0:3] dmask:0x7 slc lwe
image_sample_cd_cl_o v[146:147], v[12:14], s[36:43], s[16:19] dmask:0xc lwe

; Mtbuf Vmem
tbuffer_load_format_d16_x v0, off, s[0:3], s0 format:[BUF_DATA_FORMAT_11_11_10] offset:171
tbuffer_load_format_d16_xy v1, v8, s[0:3], s8 format:[BUF_DATA_FORMAT_16] idxen offset:3554 slc
tbuffer_load_format_d16_xyz v[0:1], off, s[0:3], s0 format:[BUF_DATA_FORMAT_16] offset:254
tbuffer_load_format_d16_xyzw v[0:1], v[0:1], s[80:83], s0 format:[BUF_DATA_FORMAT_10_10_10_2] idxen offen offset:1186
tbuffer_store_format_d16_xy v0, v2, s[0:3], s0 format:[BUF_DATA_FORMAT_16] offen offset:2417

; Mubuf Vmem
buffer_atomic_add v64, v[64:65], s[8:11], s0 idxen offen offset:129 glc
buffer_atomic_add_x2 v[128:129], off, s[8:11], s0 offset:3415
buffer_atomic_and v0, off, s[0:3], s0 offset:4 slc
buffer_atomic_and_x2 v[19:20], v[80:81], s[16:19], 6 idxen offen offset:250 glc slc
buffer_atomic_inc_x2 v[0:1], off, s[0:3], s0 offset:10 slc
buffer_atomic_swap v0, v64, s[36:39], s0 offen offset:1622 slc
buffer_load_dwordx2 v[0:1], v[160:161], s[0:3], s0 idxen offen offset:2610 glc slc
buffer_load_format_xy v[24:25], v[34:35], s[0:3], 16 idxen offen offset:2611 glc
buffer_load_ubyte v32, v0, s[4:7], s80 idxen offset:1619 glc slc
buffer_store_dwordx4 v[0:3], v0, s[8:11], s0 idxen offset:2029 glc slc
buffer_store_format_xyzw v[192:195], off, s[0:3], s0 offset:343 slc

; Scratch Vmem
scratch_store_short off, v0, s12 offset:-3538 slc

; Sdwa Valu
v_add_co_u32_sdwa v7, vcc, v0, v0 dst_sel:BYTE_0 dst_unused:UNUSED_PAD src0_sel:BYTE_0 src1_sel:BYTE_0
v_add_f16_sdwa v100, v0, v128 dst_sel:BYTE_0 dst_unused:UNUSED_PAD src0_sel:BYTE_0 src1_sel:BYTE_0
v_add_f32_sdwa v48, v0, v0 dst_sel:BYTE_0 dst_unused:UNUSED_PAD src0_sel:BYTE_0 src1_sel:BYTE_0
v_add_u16_sdwa v104, v0, v0 dst_sel:BYTE_0 dst_unused:UNUSED_PAD src0_sel:BYTE_0 src1_sel:BYTE_0
v_cvt_u32_f32_sdwa v55, v0 dst_sel:BYTE_2 dst_unused:UNUSED_PAD src0_sel:BYTE_0
v_max_i32_sdwa v91, v132, v128 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:BYTE_1 src1_sel:BYTE_0
v_mul_f16_sdwa v45, v7, v128 mul:2 dst_sel:BYTE_0 dst_unused:UNUSED_PRESERVE src0_sel:BYTE_0 src1_sel:BYTE_0
v_sub_co_u32_sdwa v11, vcc, v96, v128 clamp dst_sel:BYTE_1 dst_unused:UNUSED_SEXT src0_sel:DWORD src1_sel:BYTE_0
v_subrev_f32_sdwa v68, v224, v5 dst_sel:BYTE_1 dst_unused:UNUSED_PRESERVE src0_sel:BYTE_0 src1_sel:BYTE_0
v_cmp_gt_i32_sdwa s[24:25], v4, s29 src0_sel:BYTE_0 src1_sel:DWORD
v_cmp_lt_f32_sdwa s[98:99], -|v4|, v29 src0_sel:DWORD src1_sel:WORD_1

; Smem Smem
s_atc_probe 6, s[32:33], 0x2010
s_atc_probe_buffer 1, s[92:95], 0xa1083
s_atomic_add s2, flat_scratch, 0x0 glc
s_atomic_add_x2 s[8:9], flat_scratch, 0xb3 glc
s_atomic_dec_x2 s[42:43], s[88:89], 0x13839 glc
s_atomic_sub s68, s[8:9], s0 offset:0xc0011 glc
s_atomic_xor_x2 s[38:39], xnack_mask, 0x40
s_buffer_atomic_inc_x2 s[12:13], s[0:3], 0xa8 glc
s_buffer_atomic_swap_x2 s[12:13], s[48:51], 0xe glc
s_buffer_load_dwordx2 s[0:1], s[80:83], s0 glc
s_load_dwordx2 s[2:3], s[68:69], 0x20 glc
s_store_dwordx2 s[52:53], s[84:85], 0x3a020 glc

; Sop1 Salu
s_abs_i32 s97, s24
s_andn1_wrexec_b64 s[16:17], src_scc
s_bcnt0_i32_b32 s70, src_pops_exiting_wave_id
s_bcnt0_i32_b64 s30, src_pops_exiting_wave_id
s_brev_b64 s[72:73], -16
s_mov_b64 s[58:59], src_shared_limit

; Sop2 Branch
s_cbranch_g_fork s[16:17], s[14:15]
s_rfe_restore_b64 s[26:27], s6

; Sop2 Salu
s_absdiff_i32 flat_scratch_lo, src_private_limit, s12
s_add_i32 xnack_mask_lo, src_execz, src_private_limit
s_add_u32 flat_scratch_lo, src_shared_limit, s12
s_addc_u32 s89, s54, src_pops_exiting_wave_id
s_ashr_i64 s[52:53], src_pops_exiting_wave_id, s0
s_lshl1_add_u32 xnack_mask_lo, src_pops_exiting_wave_id, s1
s_max_u32 xnack_mask_hi, src_private_base, 37
s_nor_b64 s[56:57], src_pops_exiting_wave_id, s[0:1]
s_sub_u32 s11, src_pops_exiting_wave_id, s0

; Sopc Salu
s_bitcmp0_b32 src_private_base, s1
s_bitcmp0_b64 s[18:19], s10
s_bitcmp1_b32 -1.0, s101
s_bitcmp1_b64 src_shared_base, s1
s_cmp_gt_i32 s40, -3
s_set_gpr_idx_on s76, gpr_idx(SRC1,SRC2,DST)

; Sopk Branch
s_call_b64 flat_scratch, 57370
s_cbranch_i_fork flat_scratch, 19758

; Sopk Salu
s_addk_i32 flat_scratch_lo, 0x27a6
s_cmovk_i32 flat_scratch_lo, 0x4311
s_cmpk_eq_i32 flat_scratch_lo, 0xfddf
s_cmpk_eq_u32 flat_scratch_lo, 0xdf30
s_cmpk_le_u32 flat_scratch_lo, 0x7487
s_setreg_imm32_b32 hwreg(HW_REG_TBA_HI, 30, 25), 0x320088

; Sopp Branch
s_branch 62893
s_cbranch_cdbgsys 33388
s_cbranch_cdbgsys_and_user 63299
s_cbranch_cdbgsys_or_user 55142
s_cbranch_vccnz 52958

; Sopp Message
s_decperflevel 0xbdb4
s_incperflevel 0x95ea
s_sendmsg 35125
s_sendmsghalt sendmsg(MSG_SYSMSG, SYSMSG_OP_ECC_ERR_INTERRUPT)

; Sopp Wait
s_nop 0xcd0a
s_setprio 0xac63
s_sleep 0xd476
s_waitcnt vmcnt(13) expcnt(6) lgkmcnt(0)

; Vintrp Graphics
v_interp_mov_f32_e32 v46, p20, attr22.z
v_interp_p1_f32_e32 v100, v167, attr12.y
v_interp_p2_f32_e32 v101, v253, attr17.x

; Vop1 Valu
v_bfrev_b32_e32 v133, v161
v_ceil_f16_e32 v119, v203
v_ceil_f32_e32 v210, s71
v_ceil_f64_e32 v[68:69], 28
v_cvt_f32_f16_e32 v153, vcc_hi
v_cvt_f64_u32_e32 v[127:128], v221
v_cvt_u16_f16_e32 v116, v198
v_floor_f16_e32 v237, s92
v_frexp_mant_f16_e32 v132, vcc_hi
v_rcp_f32_e32 v158, v42
v_rsq_f64_e32 v[113:114], v[238:239]
v_trunc_f32_e32 v113, v158

; Vop2 Valu
v_add_co_u32_e32 v18, vcc, src_pops_exiting_wave_id, v109
v_add_f16_e32 v194, src_pops_exiting_wave_id, v130
v_add_f32_e32 v185, src_pops_exiting_wave_id, v129
v_add_u16_e32 v187, src_pops_exiting_wave_id, v218
v_cndmask_b32_e32 v104, src_lds_direct, v189, vcc
v_madak_f16 v173, src_lds_direct, v128, 0x0
v_max_u32_e32 v126, src_pops_exiting_wave_id, v132
v_mul_hi_i32_i24_e32 v108, src_pops_exiting_wave_id, v132
v_sub_f32_e32 v192, src_pops_exiting_wave_id, v129
v_subrev_u32_e32 v181, src_pops_exiting_wave_id, v128

; Vop3 Graphics
v_interp_mov_f32_e64 v63, p10, attr0.x

; Vop3 Valu
v_add3_u32 v15, s0, s0, s0
v_add_co_u32_e64 v100, s[6:7], s0, s0
v_add_f16_e64 v92, s0, s0
v_add_f32_e64 v31, |s25|, 32
v_add_u32_e64 v107, -8, s2
v_bfe_u32 v222, s0, s0, s0
v_cmp_eq_u16_e64 s[12:13], s0, s0
v_cmp_lg_f64_e64 s[22:23], s[0:1], s[0:1]
v_cmp_nle_f32_e64 s[40:41], s0, s0
v_cmpx_eq_f32_e64 s[56:57], |56|, s3
v_cmpx_lt_i64_e64 s[48:49], s[0:1], s[0:1]
v_cmpx_tru_f32_e64 s[74:75], s0, s0
v_cvt_f16_i16_e64 v236, s0
v_cvt_f32_ubyte3_e64 v91, s0
v_cvt_norm_u16_f16_e64 v37, s0
v_cvt_pknorm_u16_f32 v43, s0, s0
v_div_fixup_legacy_f16 v115, s0, s0, s0
v_floor_f16_e64 v110, s0
v_fract_f32_e64 v29, s0
v_ldexp_f32 v176, s0, s0
v_lshrrev_b16_e64 v65, s0, s0
v_mad_legacy_f16 v20, s0, s0, s0
v_max3_i16 v127, 56, 0, s8 op_sel:[1,0,0,1] clamp
v_max_u16_e64 v234, s40, v64
v_med3_u32 v167, s0, s0, s0
v_min_f64 v[39:40], s[0:1], s[0:1]
v_mul_f64 v[231:232], s[0:1], s[0:1]
v_mul_u32_u24_e64 v38, s0, s0
v_rcp_iflag_f32_e64 v60, s0
v_sad_u32 v122, s0, s0, s0
v_sub_co_u32_e64 v127, s[4:5], s75, v83
v_subrev_f16_e64 v96, |12|, s0
v_xad_u32 v2, s0, s0, s0

; Vop3p Valu
v_dot2_f32_f16 v172, 32, 0, s27 op_sel:[0,1,1] op_sel_hi:[1,0,1] clamp
v_dot2_i32_i16 v35, v139, s0, v1 op_sel:[1,1,1] op_sel_hi:[0,0,1] neg_lo:[0,1,0] neg_hi:[1,1,0]
v_dot2_u32_u16 v44, 16, s0, s0 op_sel:[1,0,0] op_sel_hi:[0,0,0] neg_hi:[1,0,1]
v_dot4_i32_i8 v225, v34, v164, s0 neg_hi:[1,0,1]
v_fma_mixlo_f16 v233, |s0|, |s0|, |s0|

; Vopc Valu
v_cmp_class_f16_e32 vcc, v120, v129
v_cmp_class_f32_e32 vcc, -4.0, v128
v_cmp_class_f64_e32 vcc, v[139:140], v187
v_cmp_eq_f16_e32 vcc, v206, v131
v_cmp_eq_u16_e32 vcc, v166, v95
v_cmp_f_u16_e32 vcc, v49, v128
v_cmp_ge_u16_e32 vcc, exec_hi, v128
v_cmp_gt_u16_e32 vcc, xnack_mask_hi, v0
v_cmp_le_u16_e32 vcc, v200, v190
v_cmp_lt_i16_e32 vcc, src_vccz, v128
v_cmp_ne_u16_e32 vcc, src_execz, v185
v_cmp_ngt_f16_e32 vcc, src_execz, v128
v_cmp_nlt_f16_e32 vcc, vcc_lo, v6
v_cmp_t_u16_e32 vcc, v246, v205
v_cmpx_class_f16_e32 vcc, v125, v102
v_cmpx_eq_u16_e32 vcc, v234, v128
v_cmpx_f_u16_e32 vcc, v124, v140
v_cmpx_ge_u16_e32 vcc, v152, v143
v_cmpx_gt_u16_e32 vcc, v141, v128
v_cmpx_le_u16_e32 vcc, v151, v243
v_cmpx_lt_i16_e32 vcc, src_pops_exiting_wave_id, v2
v_cmpx_ne_u16_e32 vcc, v240, v110
v_cmpx_ngt_f16_e32 vcc, src_private_limit, v7
v_cmpx_nlt_f16_e32 vcc, src_shared_base, v5
v_cmpx_t_u16_e32 vcc, vcc_lo, v128
