; A sample of each encoding family of gfx1030.

; Dpp Valu
v_add_f16_dpp v118, v24, -v207 quad_perm:[0,1,0,0] row_mask:0x0 bank_mask:0x4 bound_ctrl:1
v_add_f32_dpp v184, v128, v128 quad_perm:[1,1,0,2] row_mask:0x0 bank_mask:0x0 bound_ctrl:1
v_add_nc_u32_dpp v57, v52, v128 quad_perm:[0,2,1,0] row_mask:0x0 bank_mask:0x0 fi:1
v_add_co_ci_u32_dpp v107, vcc_lo, v142, v144, vcc_lo dpp8:[0,0,0,1,3,0,0,0] fi:1
v_dot2c_f32_f16_dpp v163, v128, -|v231| quad_perm:[1,2,0,3] row_mask:0x9 bank_mask:0x1
v_max_f32_dpp v126, -v1, v107 quad_perm:[0,0,0,0] row_mask:0x1 bank_mask:0x5 fi:1
v_mul_f32_dpp v47, |v64|, -v210 quad_perm:[0,0,0,1] row_mask:0x8 bank_mask:0x0
v_sub_nc_u32_dpp v16, v0, v128 quad_perm:[0,0,0,0] row_mask:0x0 bank_mask:0x0

; Ds Lds
ds_add_f32 v0, v136 offset:2068 gds
ds_add_rtn_f32 v0, v80, v5 offset:3621 gds
ds_add_rtn_u32 v0, v132, v18 offset:357 gds
ds_add_rtn_u64 v[0:1], v112, v[0:1] offset:1733 gds
ds_and_rtn_b64 v[73:74], v64, v[48:49] offset:2196
ds_cmpst_rtn_f32 v15, v41, v129, v131 offset:34497 gds
ds_gws_init v144 offset:2203 gds
ds_max_f32 v64, v28 offset:3457 gds
ds_max_rtn_u64 v[0:1], v224, v[0:1] offset:2865 gds
ds_min_rtn_i32 v0, v195, v0 offset:3180 gds
ds_mskor_rtn_b64 v[0:1], v88, v[18:19], v[144:145] offset:466 gds
ds_read2st64_b32 v[0:1], v40 offset0:247 offset1:5 gds
ds_read_i8_d16 v0, v16 offset:1027 gds
ds_rsub_rtn_u64 v[0:1], v196, v[1:2] offset:1967 gds
ds_write2_b32 v20, v129, v9 offset0:203 offset1:1 gds
ds_write_b64 v36, v[0:1] offset:3647 gds
ds_wrxchg_rtn_b64 v[0:1], v0, v[4:5] offset:34256 gds

; Export Graphics
exp mrt6 v32, v102, v4, off

; Global Vmem
global_atomic_and_x2 v[0:1], v74, v[0:1], s[36:37] offset:744 glc
global_atomic_cmpswap v2, v[0:1], s[2:3] offset:-41 dlc
global_atomic_fcmpswap_x2 v108, v[0:3], s[28:29] offset:1050 dlc
global_atomic_dec v17, v83, v163, s[72:73] offset:772 glc dlc
global_atomic_or_x2 v8, v[0:1], s[32:33] offset:201 slc dlc

; Mimg Image
image_atomic_and v[0:1], v[0:3], s[0:7] dmask:0x3 dim:SQ_RSRC_IMG_2D_MSAA_ARRAY dlc
image_atomic_fmin v0, v[18:20], s[32:39] dmask:0x1 dim:SQ_RSRC_IMG_2D_MSAA
image_atomic_inc v[131:132], v[180:181], s[8:15] dmask:0x1 dim:SQ_RSRC_IMG_1D_ARRAY slc tfe
image_gather4_b_cl_o v[0:3], v[64:69], s[28:35], s[12:15] dmask:0x1 dim:SQ_RSRC_IMG_3D slc dlc lwe
image_gather4_l_o v[86:90], v[0:2], s[0:7], s[68:71] dmask:0x1 dim:SQ_RSRC_IMG_1D dlc tfe lwe
image_sample_c_b v53, v[36:39], s[8:15], s[64:67] dim:SQ_RSRC_IMG_1D_ARRAY dlc
image_sample_c_d  v[0:2], [v16, v248, v125, v96, v143], s[0:7], s[0:3] dmask:0x5 dim:SQ_RSRC_IMG_1D_ARRAY dlc tfe lwe
image_sample_c_o v[0:1], v[1:4], s[76:83], s[8:11] dmask:0x1 dim:SQ_RSRC_IMG_1D_ARRAY unorm dlc r128 tfe
image_sample_d_g16 v[0:1], v[0:4], s[0:7], s[0:3] dim:SQ_RSRC_IMG_CUBE slc dlc tfe lwe

; Mtbuf Vmem
tbuffer_load_format_d16_x v0, v96, s[96:99], s0 format:[BUF_FMT_8_USCALED] idxen offset:935 glc dlc
tbuffer_load_format_d16_xy v0, v30, s[48:51], s0 format:[BUF_FMT_8_SNORM] offen offset:207 glc
tbuffer_load_format_d16_xyz v[0:1], v128, s[0:3], s0 format:[BUF_FMT_8_SSCALED] offen offset:3383 slc
tbuffer_load_format_d16_xyzw v[147:148], v6, s[0:3], 0 format:82 offen offset:1943 glc slc
tbuffer_store_format_d16_xy v0, v52, s[16:19], s0 format:[BUF_FMT_16_SINT] idxen offset:3866 dlc

; Mubuf Vmem
buffer_atomic_add v0, off, s[0:3], s0 offset:14
buffer_atomic_add_x2 v[66:67], off, s[8:11], s0 offset:1185
buffer_atomic_and v0, off, s[0:3], s0 offset:148
buffer_atomic_and_x2 v[0:1], v[102:103], s[8:11], s0 idxen offen offset:3439 glc
buffer_atomic_dec v32, v9, s[12:15], s32 offen offset:3851
buffer_atomic_or_x2 v[0:1], v46, s[0:3], s0 idxen offset:3446 glc slc
buffer_atomic_umax v196, off, s[80:83], s1 offset:221
buffer_load_dwordx4 v[0:3], v[36:37], s[4:7], s0 idxen offen offset:360 glc dlc
buffer_load_format_xyzw v[16:19], v[18:19], s[48:51], s33 idxen offen offset:2848 glc slc
buffer_load_ubyte_d16_hi v41, v8, s[8:11], s40 offen offset:3875 glc slc dlc
buffer_store_format_d16_x v0, v8, s[0:3], s0 idxen offset:3689 slc dlc
buffer_store_short_d16_hi v0, v174, s[0:3], s0 offen offset:3032 glc

; Scratch Vmem
scratch_load_dwordx3 v[0:2], off, s24 offset:128 glc slc dlc
scratch_store_short off, v0, s12 offset:558 slc dlc

; Sdwa Valu
v_add_f16_sdwa v38, v168, v4 dst_sel:BYTE_0 dst_unused:UNUSED_PAD src0_sel:BYTE_0 src1_sel:BYTE_0
v_add_f32_sdwa v68, v224, v5 dst_sel:BYTE_1 dst_unused:UNUSED_PRESERVE src0_sel:BYTE_0 src1_sel:BYTE_0
v_add_nc_u32_sdwa v49, v160, v132 clamp dst_sel:WORD_0 dst_unused:UNUSED_PRESERVE src0_sel:BYTE_1 src1_sel:BYTE_0
v_add_co_ci_u32_sdwa v85, vcc_lo, v0, v0, vcc_lo dst_sel:BYTE_0 dst_unused:UNUSED_PAD src0_sel:BYTE_0 src1_sel:BYTE_0
v_cvt_pkrtz_f16_f32_sdwa v114, v49, v135 dst_sel:BYTE_0 dst_unused:UNUSED_PAD src0_sel:BYTE_2 src1_sel:BYTE_0
v_min_f16_sdwa v88, v0, v0 dst_sel:BYTE_0 dst_unused:UNUSED_PAD src0_sel:BYTE_0 src1_sel:BYTE_0
v_mul_u32_u24_sdwa v23, v0, v128 dst_sel:BYTE_0 dst_unused:UNUSED_PAD src0_sel:BYTE_0 src1_sel:BYTE_0
v_subrev_nc_u32_sdwa v63, v132, v221 dst_sel:BYTE_0 dst_unused:UNUSED_PAD src0_sel:BYTE_3 src1_sel:BYTE_0

; Smem Smem
s_atc_probe 55, s[46:47], s0 offset:0x2601c
s_atc_probe_buffer 5, s[96:99], s0 offset:0x68
s_buffer_load_dword s5, s[96:99], s1 offset:0xc1a05 glc
s_buffer_load_dwordx2 s[30:31], s[56:59], s0 offset:0x18c84 glc

; Sop1 Salu
s_and_saveexec_b32 s22, 44
s_and_saveexec_b64 s[20:21], -9
s_andn1_saveexec_b32 s31, s95
s_andn2_saveexec_b32 s54, s57
s_bitreplicate_b64_b32 s[92:93], s78
s_flbit_i32_b32 s11, s78
s_not_b64 s[6:7], src_scc
s_xnor_saveexec_b64 s[56:57], 61

; Sop2 Salu
s_absdiff_i32 exec_hi, s85, src_pops_exiting_wave_id
s_add_i32 s75, src_pops_exiting_wave_id, s31
s_add_u32 s58, src_pops_exiting_wave_id, s0
s_addc_u32 s89, s54, src_pops_exiting_wave_id
s_ashr_i64 s[6:7], s[44:45], src_private_limit
s_lshl1_add_u32 s104, src_pops_exiting_wave_id, s1
s_max_u32 s91, src_pops_exiting_wave_id, s14
s_nor_b64 s[72:73], src_pops_exiting_wave_id, 56
s_sub_u32 s11, src_pops_exiting_wave_id, s0

; Sopc Salu
s_bitcmp0_b32 src_private_base, s1
s_bitcmp0_b64 s[18:19], s10
s_bitcmp1_b32 -1.0, s101
s_bitcmp1_b64 src_shared_base, s1
s_cmp_gt_i32 s40, -3

; Sopk Branch
s_call_b64 s[100:101], 33913
s_subvector_loop_begin exec_lo, 33461
s_subvector_loop_end exec_lo, 39523

; Sopk Salu
s_addk_i32 exec_lo, 0xb095
s_cmovk_i32 exec_lo, 0xfe25
s_cmpk_eq_i32 exec_lo, 0xcdad
s_cmpk_eq_u32 exec_lo, 0xba87
s_cmpk_le_u32 exec_lo, 0xcf40
s_setreg_imm32_b32 hwreg(HW_REG_SH_MEM_BASES, 6, 1), 0x844011

; Sopk Wait
s_version 0x250f
s_waitcnt_expcnt exec_lo, 0x6176
s_waitcnt_lgkmcnt exec_lo, 0x6a9e
s_waitcnt_vmcnt exec_lo, 0xa0c9

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

; Sopp Salu
s_denorm_mode 0x42d0
s_round_mode 0x4f59

; Sopp Wait
s_clause 0x2663
s_inst_prefetch 0xfeed
s_nop 0xcd0a
s_setprio 0xac63

; Vintrp Graphics
v_interp_mov_f32_e32 v146, p20, attr14.y
v_interp_p1_f32_e32 v101, v128, attr22.w
v_interp_p2_f32_e32 v101, v151, attr26.y

; Vop1 Valu
v_bfrev_b32_e32 v148, v203
v_ceil_f16_e32 v197, v241
v_ceil_f32_e32 v158, v42
v_ceil_f64_e32 v[68:69], 28
v_cvt_f32_f16_e32 v153, vcc_hi
v_cvt_f64_u32_e32 v[127:128], v221
v_cvt_u16_f16_e32 v112, 25
v_floor_f32_e32 v129, 4.0
v_frexp_mant_f32_e32 v254, s12
v_rcp_f16_e32 v202, v81
v_rsq_f32_e32 v165, v209
v_swaprel_b32 v240, v39

; Vop2 Valu
v_add_f16_e32 v127, src_pops_exiting_wave_id, v163
v_add_f32_e32 v206, src_pops_exiting_wave_id, v128
v_add_nc_u32_e32 v113, src_pops_exiting_wave_id, v240
v_add_co_ci_u32_e32 v161, vcc_lo, src_pops_exiting_wave_id, v128, vcc_lo
v_dot4c_i32_i8 v192, src_pops_exiting_wave_id, v129
v_lshlrev_b32_e32 v121, src_pops_exiting_wave_id, v132
v_min_u32_e32 v128, src_pops_exiting_wave_id, v128
v_pk_fmac_f16 v116, src_pops_exiting_wave_id, v116
v_xnor_b32_e32 v132, src_pops_exiting_wave_id, v128

; Vop3 Graphics
v_interp_mov_f32_e64 v202, p10, attr0.x

; Vop3 Valu
v_add3_u32 v113, v40, 17, s8
v_add_co_u32 v236, s99, s20, v128
v_add_f16_e64 v152, |8|, |s50|
v_add_f32_e64 v194, 16, s0
v_add_nc_u32_e64 v150, s0, s0
v_bfe_i32 v92, s0, s0, s0
v_cmp_class_f64_e64 src_execz, s[0:1], s0
v_cmp_f_f64_e64 s5, s[0:1], s[0:1]
v_cmp_le_f16_e64 s85, s0, s0
v_cmp_lt_i16_e64 s12, s50, s0
v_cmp_neq_f64_e64 s97, s[0:1], s[0:1]
v_cmp_o_f32_e64 s64, s0, s0
v_cos_f32_e64 v120, s0
v_cvt_f32_f64_e64 v148, s[0:1]
v_cvt_f64_u32_e64 v[197:198], s0
v_cvt_pk_u16_u32 v41, s0, s0
v_cvt_u32_f32_e64 v62, s0
v_exp_f16_e64 v113, s0
v_fma_f32 v133, |v96|, v2, s33
v_frexp_exp_i16_f16_e64 v112, s0
v_lerp_u8 v86, s0, s0, s0
v_mad_i16 v44, v129, s48, s4
v_max3_f32 v27, v34, -10, s25
v_max_i32_e64 v208, s0, s0
v_med3_u16 v97, s72, v154, s40
v_min_f32_e64 v48, s0, s0
v_msad_u8 v55, s80, s8, s80
v_mul_legacy_f32_e64 v151, |32|, s88
v_perm_b32 v162, s49, s0, 16
v_rsq_f16_e64 v149, s0
v_sin_f32_e64 v5, s0
v_sub_nc_u16 v34, s0, s0
v_trunc_f16_e64 v51, s0

; Vop3p Valu
v_dot2_f32_f16 v239, s13, -10, s32 op_sel:[1,0,0] op_sel_hi:[0,0,0] neg_lo:[1,1,0] neg_hi:[1,1,1] clamp
v_dot2_i32_i16 v60, v104, s8, s4 op_sel:[0,1,1] op_sel_hi:[0,0,0] neg_lo:[1,0,0] neg_hi:[1,1,1] clamp
v_dot2_u32_u16 v245, 64, s0, s0 op_sel:[1,0,0] op_sel_hi:[0,0,0] neg_hi:[0,0,1]
v_dot4_i32_i8 v202, s72, 16, v33 neg_lo:[1,0,1] neg_hi:[1,0,1]
v_fma_mixlo_f16 v51, |s74|, v128, |s8| op_sel:[1,0,0] op_sel_hi:[0,0,1]

; Vopc Valu
v_cmp_class_f16_e32 vcc_lo, src_execz, v128
v_cmp_class_f32_e32 vcc_lo, v159, v128
v_cmp_class_f64_e32 vcc_lo, v[120:121], v0
v_cmp_eq_f16_e32 vcc_lo, v252, v188
v_cmp_eq_u16_e32 vcc_lo, v166, v95
v_cmp_f_u64_e32 vcc_lo, v[137:138], v[127:128]
v_cmp_ge_u64_e32 vcc_lo, v[215:216], v[112:113]
v_cmp_gt_u64_e32 vcc_lo, v[243:244], v[221:222]
v_cmp_le_u64_e32 vcc_lo, v[237:238], v[126:127]
v_cmp_lt_i64_e32 vcc_lo, v[179:180], v[128:129]
v_cmp_ne_u64_e32 vcc_lo, v[246:247], v[128:129]
v_cmp_ngt_f64_e32 vcc_lo, v[216:217], v[134:135]
v_cmp_nlt_f64_e32 vcc_lo, v[251:252], v[150:151]
v_cmp_tru_f32_e32 vcc_lo, src_execz, v0
v_cmpx_eq_f32_e32 src_lds_direct, v128
v_cmpx_f_f32_e32 -4.0, v128
v_cmpx_ge_i16_e32 src_lds_direct, v87
v_cmpx_gt_i16_e32 src_shared_limit, v128
v_cmpx_le_i16_e32 v121, v152
v_cmpx_lt_f16_e32 v178, v210
v_cmpx_ne_i16_e32 src_pops_exiting_wave_id, v0
v_cmpx_nge_f16_e32 exec_hi, v0
v_cmpx_nlg_f16_e32 v123, v113
v_cmpx_t_i32_e32 v240, v164
v_cmpx_u_f64_e32 src_private_limit, v[135:136]
