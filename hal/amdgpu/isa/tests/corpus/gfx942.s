; A sample of each encoding family of gfx942.

; Dpp Valu
v_add_co_u32_dpp v146, vcc, v160, v135 quad_perm:[0,0,0,2] row_mask:0x0 bank_mask:0x0
v_add_f16_dpp v223, v0, v0 quad_perm:[0,0,0,0] row_mask:0x0 bank_mask:0x0
v_add_f32_dpp v201, -v16, -v196 quad_perm:[0,0,0,0] row_mask:0x0 bank_mask:0x0
v_add_u16_dpp v16, v0, v128 quad_perm:[0,0,0,0] row_mask:0x0 bank_mask:0x0
v_cndmask_b32_dpp v168, v136, -|v156|, vcc quad_perm:[2,1,2,2] row_mask:0x1 bank_mask:0x0
v_lshrrev_b16_dpp v166, v29, v128 quad_perm:[0,1,0,0] row_mask:0x0 bank_mask:0x0
v_min_f16_dpp v93, v0, v128 quad_perm:[0,0,0,0] row_mask:0x0 bank_mask:0x0
v_mul_hi_u32_u24_dpp v137, v1, v128 quad_perm:[0,0,0,0] row_mask:0x0 bank_mask:0x0
v_sub_u32_dpp v184, v32, v75 quad_perm:[0,2,0,3] row_mask:0x0 bank_mask:0xc bound_ctrl:1

; Ds Lds
ds_add_f32 v130, v45 offset:562
ds_add_f64 v128, a[60:61] offset:1835
ds_add_rtn_f32 v0, v159, v72 offset:2123
ds_add_rtn_f64 v[0:1], v180, v[156:157] offset:3733
ds_and_b64 v4, a[68:69] offset:3774
ds_cmpst_rtn_b32 a5, v200, a48, a160 offset:7903
ds_dec_u64 v180, v[2:3] offset:3282
ds_inc_u32 v49, v12 offset:3457
ds_max_rtn_i64 a[0:1], v174, a[0:1] offset:3648
ds_min_rtn_f32 v16, v36, v56 offset:25644
ds_mskor_b64 v104, a[0:1], a[160:161] offset:20682
ds_pk_add_f16 v21, v176 offset:2039
ds_read_b32 a0, v129 offset:1153
ds_read_u16_d16_hi a0, v149 offset:3758
ds_sub_rtn_u64 a[0:1], v36, a[160:161] offset:20
ds_write_addtid_b32 v0 offset:108
ds_wrxchg2_rtn_b32 v[128:129], v130, v52, v19 offset0:238 offset1:230
ds_xor_rtn_b64 a[0:1], v88, a[0:1] offset:4067

; Flat Vmem
flat_atomic_add v0, v[224:225], v0 offset:2243 sc0 sc1
flat_atomic_add_f32 v0, v[128:129], v143 offset:268 sc0 nt sc1
flat_atomic_add_f64 v[0:1], v[0:1], v[0:1] offset:2654 sc0 nt sc1
flat_atomic_add_x2 v[0:1], v[136:137], v[0:1] offset:390 sc0 nt sc1
flat_atomic_dec_x2 v[0:1], v[8:9], v[0:1] offset:261 sc0 nt sc1
flat_atomic_smax v0, v[136:137], v0 offset:567 sc0 nt sc1
flat_atomic_umax_x2 v[0:1], v[128:129], v[64:65] offset:1993 sc0 nt sc1
flat_load_sbyte v0, v[30:31] offset:1101 sc0 nt
flat_load_ushort v0, v[0:1] offset:1888 sc0 nt sc1

; Global Vmem
global_atomic_add v161, v20, v160, s[64:65] offset:2911 sc0 sc1
global_atomic_add_f32 v5, v73, v16, s[4:5] offset:-1959 sc0 nt sc1
global_atomic_and v20, v103, v216, s[32:33] offset:497 sc0 nt sc1
global_atomic_cmpswap v32, v80, v[162:163], s[32:33] offset:-16 sc0
global_atomic_min_f64 v[0:1], v69, v[0:1], s[60:61] offset:-187 sc0
global_atomic_umax v84, v68, v128, s[84:85] offset:3173 sc0
global_load_short_d16_hi a0, v64, s[88:89] offset:-2689 sc1

; Mtbuf Vmem
tbuffer_load_format_d16_x v0, off, s[0:3], s0 format:[BUF_DATA_FORMAT_11_11_10] offset:171
tbuffer_load_format_d16_xy v1, v8, s[0:3], s8 format:[BUF_DATA_FORMAT_16] idxen offset:3554 nt
tbuffer_load_format_d16_xyz v[0:1], off, s[0:3], s0 format:[BUF_DATA_FORMAT_16] offset:254
tbuffer_load_format_d16_xyzw a[0:1], v17, s[40:43], s0 format:[BUF_DATA_FORMAT_10_11_11] offen offset:208
tbuffer_store_format_d16_xy a0, off, s[24:27], s0 offset:3855

; Mubuf Vmem
buffer_atomic_add v128, v228, s[20:23], s66 offen offset:1954 sc0 nt sc1
buffer_atomic_add_f32 v0, v73, s[0:3], s0 offen offset:701 sc0 nt
buffer_atomic_add_f64 v[16:17], v[132:133], s[0:3], s31 idxen offen offset:1389 sc1
buffer_atomic_add_x2 v[128:129], off, s[8:11], s0 offset:3415
buffer_atomic_dec_x2 a[96:97], v[2:3], s[0:3], s67 idxen offen offset:747 sc0 sc1
buffer_atomic_smax_x2 v[120:121], v0, s[68:71], s32 idxen offset:1052 nt
buffer_atomic_umin v0, v166, s[72:75], s0 offen offset:2734 nt
buffer_load_format_d16_x v0, off, s[0:3], s0 offset:39 nt
buffer_load_sbyte_d16 v0, v[2:3], s[0:3], s0 idxen offen offset:2361 sc0 nt
buffer_store_byte a0, v[6:7], s[0:3], s0 idxen offen offset:1553 sc0 nt
buffer_store_format_d16_xyz v[0:1], v[36:37], s[4:7], s0 idxen offen offset:360 sc0 sc1

; Scratch Vmem
scratch_load_dword v0, v8, s40 offset:-1636 sc0 nt sc1
scratch_load_dwordx2 v[0:1], v201, s71 offset:-931 sc0 nt
scratch_load_dwordx3 v[0:2], v0, s77 offset:919 nt sc1
scratch_load_dwordx4 v[0:3], v66, s32 offset:2318 nt sc1
scratch_load_sshort v0, v226, s32 offset:1376 sc0 sc1
scratch_store_short_d16_hi v98, v0, s21 offset:-3471 sc0 nt

; Sdwa Valu
v_add_co_u32_sdwa v7, vcc, v0, v0 dst_sel:BYTE_0 dst_unused:UNUSED_PAD src0_sel:BYTE_0 src1_sel:BYTE_0
v_add_f16_sdwa v100, v0, v128 dst_sel:BYTE_0 dst_unused:UNUSED_PAD src0_sel:BYTE_0 src1_sel:BYTE_0
v_add_f32_sdwa v48, v0, v0 dst_sel:BYTE_0 dst_unused:UNUSED_PAD src0_sel:BYTE_0 src1_sel:BYTE_0
v_add_u16_sdwa v104, v0, v0 dst_sel:BYTE_0 dst_unused:UNUSED_PAD src0_sel:BYTE_0 src1_sel:BYTE_0
v_cvt_u32_f32_sdwa v55, v0 dst_sel:BYTE_2 dst_unused:UNUSED_PAD src0_sel:BYTE_0
v_max_i32_sdwa v91, v132, v128 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:BYTE_1 src1_sel:BYTE_0
v_mul_f16_sdwa v45, v7, v128 mul:2 dst_sel:BYTE_0 dst_unused:UNUSED_PRESERVE src0_sel:BYTE_0 src1_sel:BYTE_0
v_sub_f16_sdwa v23, v0, v128 dst_sel:BYTE_0 dst_unused:UNUSED_PAD src0_sel:BYTE_0 src1_sel:BYTE_0
v_subrev_u16_sdwa v85, v0, v0 dst_sel:BYTE_0 dst_unused:UNUSED_PAD src0_sel:BYTE_0 src1_sel:BYTE_0
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

; Vop1 Valu
v_bfrev_b32_e32 v133, v161
v_ceil_f16_e32 v119, v203
v_ceil_f32_e32 v210, s71
v_ceil_f64_e32 v[68:69], 28
v_cvt_f32_bf8_e32 v93, xnack_mask_lo
v_cvt_f64_f32_e32 v[16:17], s18
v_cvt_off_f32_i4_e32 v208, v144
v_exp_legacy_f32_e32 v55, v103
v_fract_f64_e32 v[10:11], v[224:225]
v_mov_b32_e32 v103, flat_scratch_hi
v_rndne_f32_e32 v182, v9
v_sqrt_f16_e32 v169, v108

; Vop2 Valu
v_add_co_u32_e32 v18, vcc, src_pops_exiting_wave_id, v109
v_add_f16_e32 v194, src_pops_exiting_wave_id, v130
v_add_f32_e32 v185, src_pops_exiting_wave_id, v129
v_add_u16_e32 v187, src_pops_exiting_wave_id, v218
v_cndmask_b32_e32 v164, 0.15915494, v221, vcc
v_ldexp_f16_e32 v171, src_pops_exiting_wave_id, v173
v_max_f32_e32 v119, src_pops_exiting_wave_id, v128
v_min_u16_e32 v156, src_pops_exiting_wave_id, v238
v_or_b32_e32 v103, src_pops_exiting_wave_id, v128
v_subrev_co_u32_e32 v187, vcc, src_pops_exiting_wave_id, v128

; Vop3 Valu
v_add3_u32 v15, s0, s0, s0
v_add_co_u32_e64 v100, s[6:7], s0, s0
v_add_f16_e64 v92, s0, s0
v_add_f32_e64 v31, |s25|, 32
v_add_u32_e64 v107, -8, s2
v_bfe_u32 v222, s0, s0, s0
v_cmp_f_i64_e64 s[92:93], s[0:1], s[0:1]
v_cmp_lt_u16_e64 src_private_base, s0, s0
v_cmp_nlg_f64_e64 src_pops_exiting_wave_id, |v[32:33]|, s[86:87]
v_cmpx_f_i32_e64 s[22:23], s0, s0
v_cmpx_lt_u32_e64 s[46:47], s0, s0
v_cndmask_b32_e64 v129, v202, v96, s[0:1]
v_cvt_f16_u16_e64 v19, s0
v_cvt_f32_ubyte2_e64 v134, s0
v_cvt_off_f32_i4_e64 v235, s0
v_cvt_pknorm_u16_f16 v234, s0, |s0|
v_div_fixup_f16 v104, |s0|, |s0|, |s0|
v_dot8c_i32_i4_e64 v218, s0, s0
v_floor_f64_e64 v[0:1], s[0:1]
v_frexp_exp_i32_f32_e64 v255, s0
v_log_legacy_f32_e64 v24, s0
v_mad_i16 v153, s0, s0, s0
v_max3_f16 v217, |52|, |s34|, |v61| op_sel:[1,0,1,0]
v_max_i32_e64 v3, s0, s0
v_med3_u16 v219, s0, s0, s0
v_min_f32_e64 v219, s0, s0
v_mul_f32_e64 v158, |v16|, |s0|
v_mul_lo_u32 v160, s0, s0
v_rcp_f64_e64 v[182:183], s[0:1]
v_sad_u16 v3, s0, s0, s0
v_sqrt_f64_e64 v[104:105], s[0:1]
v_subrev_co_u32_e64 v246, s[0:1], s0, s0
v_xad_u32 v2, s0, s0, s0

; Vop3p Matrix
v_mfma_f32_16x16x32_bf8_fp8 v[202:205], v[0:1], v[16:17], v[130:133] cbsz:2 abid:6

; Vop3p Valu
v_fma_mix_f32 v83, |8|, |s0|, s0
v_fma_mixhi_f16 v234, -v144, neg(28), -s0 op_sel:[1,0,1] op_sel_hi:[1,0,0]
v_fma_mixlo_f16 v233, |s0|, |s0|, |s0|
v_pk_fma_f16 v123, s16, 64, v4 op_sel:[1,1,0] op_sel_hi:[0,0,1] neg_lo:[1,0,1] neg_hi:[0,1,0]

; Vopc Valu
v_cmp_class_f16_e32 vcc, v120, v129
v_cmp_class_f32_e32 vcc, -4.0, v128
v_cmp_class_f64_e32 vcc, xnack_mask, v133
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
