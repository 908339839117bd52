; A sample of each encoding family of gfx1100.

; Dpp Valu
v_add_f16_dpp v29, v0, v0 quad_perm:[0,0,0,0] row_mask:0x0 bank_mask:0x0
v_add_f32_dpp v184, v128, v128 quad_perm:[1,1,0,2] row_mask:0x0 bank_mask:0x0 bound_ctrl:1
v_add_nc_u32_dpp v57, v52, v128 quad_perm:[0,2,1,0] row_mask:0x0 bank_mask:0x0 fi:1
v_add_co_ci_u32_dpp v129, vcc_lo, v192, v133, vcc_lo dpp8:[0,0,3,0,0,0,0,0] fi:1
v_cmp_t_i32 vcc_lo, v8, v128 dpp8:[0,1,4,0,0,0,0,0] fi:1
v_fmac_f32_dpp v20, |v14|, -v0 quad_perm:[1,0,0,0] row_mask:0x0 bank_mask:0x0
v_min_f32_dpp v129, |v0|, -v128 quad_perm:[0,0,2,0] row_mask:0x0 bank_mask:0x1
v_mul_dx9_zero_f32_dpp v228, v36, v173 quad_perm:[0,0,0,0] row_mask:0x0 bank_mask:0x0
v_subrev_f16_dpp v27, -v68, -v112 quad_perm:[0,0,0,0] row_mask:0x0 bank_mask:0x0

; Ds Lds
ds_add_f32 v0, v136 offset:2068 gds
ds_add_gs_reg_rtn v[0:1], v0 offset:198 gds
ds_add_rtn_f32 v0, v12, v128 offset:1541 gds
ds_add_rtn_u32 v0, v132, v18 offset:357 gds
ds_and_rtn_b32 v0, v136, v160 offset:3875 gds
ds_cmpstore_rtn_b32 v69, v19, v72, v101 offset:51514 gds
ds_dec_u64 v80, v[0:1] offset:2042 gds
ds_inc_u32 v2, v34 offset:1408 gds
ds_max_rtn_i64 v[0:1], v69, v[10:11] offset:668 gds
ds_min_rtn_f32 v0, v200, v26 offset:2045 gds
ds_mskor_b64 v28, v[131:132], v[64:65] offset:392 gds
ds_load_2addr_b32 v[0:1], v0 offset0:100 offset1:10 gds
ds_load_i16 v0, v5 offset:3462 gds
ds_load_u8_d16_hi v0, v128 offset:2289 gds
ds_sub_u64 v129, v[0:1] offset:3433 gds
ds_store_b16 v154, v160 offset:346 gds
ds_storexchg_2addr_stride64_rtn_b32 v[0:1], v40, v64, v128 offset0:131 offset1:237 gds

; Export Graphics
exp mrt6 v32, v102, v4, off

; Global Vmem
global_atomic_add_u32 v65, v128, s[42:43] offset:454
global_atomic_add_f32 v8, v80, v4, s[2:3] offset:-3477 glc dlc
global_atomic_add_u64 v98, v[0:1], s[0:1] offset:1386
global_atomic_and_b32 v82, v4, v16, s[68:69] offset:-3572 glc
global_atomic_dec_u32 v128, v0, s[0:1] offset:3811
global_atomic_max_i64 v[132:133], v0, v[66:67], vcc offset:1227 glc slc dlc
global_atomic_min_u32 v5, v144, s[0:1] offset:1444
global_load_i8 v0, v81, s[0:1] offset:2629
global_load_u16 v0, v128, s[0:1] offset:3276
global_store_d16_hi_b16 v134, v0, s[2:3] offset:642 slc dlc

; Mimg Image
image_gather4_c v[0:3], v[51:54], s[44:51], s[0:3] dmask:0x1 dim:SQ_RSRC_IMG_2D_ARRAY
image_gather4_o v[0:3], v[38:39], s[0:7], s[0:3] dmask:0x2 dim:SQ_RSRC_IMG_1D unorm a16
image_get_lod v[32:33], v[1:2], s[12:19], s[0:3] dmask:0xc dim:SQ_RSRC_IMG_2D_MSAA_ARRAY unorm a16
image_load_mip_pck_sgn v132, v[1:2], s[64:71] dmask:0x1 dim:SQ_RSRC_IMG_CUBE a16 lwe
image_sample_c_cl v28, v[133:137], s[8:15], s[0:3] dmask:0x4 dim:SQ_RSRC_IMG_2D_ARRAY unorm d16
image_sample_d_g16 v0, v[0:5], s[0:7], s[0:3] dim:SQ_RSRC_IMG_3D unorm a16 d16

; Mtbuf Vmem
tbuffer_load_d16_format_x v0, v22, s[64:67], s0 format:[BUF_FMT_16_SNORM] offen offset:415
tbuffer_load_d16_format_xy v1, v8, s[0:3], s8 format:[BUF_FMT_8_SNORM] offen offset:3554 dlc
tbuffer_load_d16_format_xyz v[0:1], off, s[64:67], s0 format:[BUF_FMT_8_USCALED] offset:15
tbuffer_load_d16_format_xyzw v[0:1], v17, s[40:43], s0 format:[BUF_FMT_8_SINT] idxen offset:208 slc
tbuffer_store_d16_format_xy v0, off, s[64:67], s0 format:[BUF_FMT_32_UINT] offset:2723 slc

; Mubuf Vmem
buffer_atomic_add_u32 v0, v4, s[48:51], s1 offen offset:379
buffer_atomic_add_f32 v0, off, s[0:3], s0 offset:166
buffer_atomic_add_u64 v[165:166], v144, s[84:87], s0 idxen offset:180
buffer_atomic_and_b32 v0, off, s[0:3], s0 offset:118
buffer_atomic_dec_u32 v76, v16, s[80:83], s2 offen offset:296
buffer_atomic_max_i64 v[2:3], off, s[28:31], s0 offset:241
buffer_atomic_min_u32 v64, v162, s[100:103], s3 idxen offset:411
buffer_load_d16_format_x v40, v145, s[8:11], s0 idxen offset:7
buffer_load_d16_hi_b16 v[0:1], v16, s[80:83], s0 offen offset:3653 glc slc dlc tfe
buffer_store_b64 v[0:1], v41, s[8:11], s10 offen offset:2939 glc
buffer_store_format_xy v[100:101], v0, s[16:19], s0 idxen offset:823 slc

; Scratch Vmem
scratch_load_b32 v0, off, s0 offset:42
scratch_load_b64 v[0:1], off, s0 offset:66
scratch_load_b96 v[2:4], v192, s0 offset:161
scratch_load_b128 v[0:3], off, s0 offset:26
scratch_load_i16 v0, v73, s82 offset:-3943 glc slc dlc
scratch_store_b96 off, v[0:2], s0 offset:162

; Smem Smem
s_atc_probe 3, s[22:23], s0 offset:0x700c9
s_buffer_load_b32 s3, s[4:7], s0
s_buffer_load_b64 s[0:1], s[76:79], s0 offset:0x30048
s_load_b32 s0, s[100:101], s0 offset:0x8020

; Sop1 Branch
s_swappc_b64 s[2:3], s[10:11]

; Sop1 Salu
s_abs_i32 s11, s78
s_and_not0_saveexec_b32 s63, -12
s_and_not0_wrexec_b64 s[16:17], src_scc
s_and_not1_saveexec_b32 s97, s24
s_bitset0_b64 s[62:63], 51
s_clz_i32_u64 s101, s[70:71]
s_not_b32 s51, s48
s_xor_saveexec_b32 s20, -9

; Sop2 Salu
s_absdiff_i32 s15, src_private_limit, s15
s_add_i32 s33, s96, src_private_limit
s_add_u32 exec_lo, src_private_limit, s0
s_addc_u32 s68, src_shared_base, exec_hi
s_ashr_i64 s[16:17], src_private_base, src_shared_base
s_lshl1_add_u32 vcc_hi, -0.5, src_shared_limit
s_max_u32 s13, src_scc, src_private_base
s_nor_b64 s[12:13], src_private_limit, s[0:1]
s_sub_i32 s33, s65, src_private_base

; Sopc Salu
s_bitcmp0_b32 src_private_base, s1
s_bitcmp0_b64 s[18:19], s10
s_bitcmp1_b32 -1.0, s101
s_bitcmp1_b64 src_shared_base, s1
s_cmp_gt_i32 s40, -3

; Sopk Branch
s_call_b64 s[100:101], 21541
s_subvector_loop_begin exec_lo, 46462
s_subvector_loop_end exec_lo, 40674

; Sopk Salu
s_addk_i32 exec_lo, 0xb095
s_cmovk_i32 exec_lo, 0xfe25
s_cmpk_eq_i32 exec_lo, 0xcdad
s_cmpk_eq_u32 exec_lo, 0xba87
s_cmpk_le_u32 exec_lo, 0xcf40
s_setreg_imm32_b32 hwreg(HW_REG_PERF_SNAPSHOT_DATA, 2, 1), 0x2000803

; Sopk Wait
s_version 0x250f
s_waitcnt_expcnt null, 0xf4dc
s_waitcnt_lgkmcnt null, 0xa060
s_waitcnt_vmcnt null, 0x6c69

; Sopp Branch
s_branch 65261
s_cbranch_cdbgsys 55864
s_cbranch_cdbgsys_and_user 37040
s_cbranch_cdbgsys_or_user 12167
s_cbranch_vccnz 20313

; Sopp Message
s_decperflevel 0xce19
s_incperflevel 0xa8c6
s_sendmsg sendmsg(200, 0, 0)
s_sendmsghalt sendmsg(226, 0, 0)

; Sopp Salu
s_denorm_mode 0x70b2
s_round_mode 0xbe18

; Sopp Wait
s_clause 0x1946
s_delay_alu instid0(VALU_DEP_2) | instskip(SKIP_3) | instid1(VALU_DEP_1)
s_set_inst_prefetch_distance 0x7301
s_nop 0xcd0a

; Vintrp Graphics
lds_param_load v163, attr28.w wait_vdst:0

; Vintrp Lds
lds_direct_load v247 wait_vdst:10

; Vop1 Valu
v_bfrev_b32_e32 v148, v203
v_ceil_f16_e32 v109, v15
v_ceil_f32_e32 v198, null
v_ceil_f64_e32 v[68:69], 28
v_cvt_f32_f64_e32 v124, v[106:107]
v_cvt_floor_i32_f32_e32 v149, v206
v_cvt_u32_f32_e32 v158, src_private_limit
v_floor_f32_e32 v129, 4.0
v_frexp_mant_f64_e32 v[119:120], v[111:112]
v_permlane64_b32 v123, v116
v_rsq_f64_e32 v[138:139], v[229:230]
v_trunc_f32_e32 v90, v161

; Vop2 Valu
v_add_f16_e32 v73, src_private_limit, v7
v_add_f32_e32 v140, src_private_limit, v174
v_add_nc_u32_e32 v152, src_private_limit, v135
v_add_co_ci_u32_e32 v171, vcc_lo, src_private_limit, v136, vcc_lo
v_fmaak_f16 v70, src_private_base, v5, 0x4a0
v_lshrrev_b32_e32 v103, src_private_limit, v128
v_mul_f16_e32 v120, src_shared_base, v35
v_sub_f16_e32 v117, src_private_base, v0
v_xor_b32_e32 v216, src_private_limit, v128

; Vop3 Valu
v_add3_u32 v152, v0, v24, s2
v_add_co_u32 v213, s13, 1, v18
v_add_f16_e64 v152, |8|, |s50|
v_add_f32_e64 v194, 16, s0
v_add_nc_u32_e64 v150, s0, s0
v_bcnt_u32_b32 v59, s0, s3
v_cmp_class_f16_e64 s20, s0, s0
v_cmp_ge_f32_e64 s34, s0, s0
v_cmp_le_f64_e64 s71, s[0:1], s[0:1]
v_cmp_lt_i16_e64 s23, s0, s0
v_cmp_ngt_f32_e64 s87, s0, s0
v_cmp_t_f16_e64 s35, s0, s0
v_cubesc_f32 v172, s9, v1, |s0|
v_cvt_f32_ubyte0_e64 v186, s20
v_cvt_i32_f32_e64 v224, s0
v_cvt_pk_u16_u32 v11, s0, s0
v_cvt_u32_f32_e64 v62, s0
v_div_scale_f64 v[234:235], s2, s[76:77], s[0:1], s[0:1]
v_floor_f32_e64 v232, s0
v_fract_f16_e64 v194, s0
v_ldexp_f16_e64 v21, |s70|, s0
v_lshlrev_b32_e64 v183, s0, s0
v_mad_u32_u24 v46, s80, v129, s57
v_max_f32_e64 v242, |64|, s50
v_maxmin_u32 v188, s0, s0, s0
v_min3_f16 v198, s0, |s0|, s0 op_sel:[1,0,0,0]
v_min_i16 v55, s0, s0
v_movreld_b32_e64 v215, s0
v_mul_hi_u32_u24_e64 v134, 56, s65
v_or3_b32 v237, s0, s0, s0
v_rcp_iflag_f32_e64 v195, s0
v_sad_u32 v201, s0, v44, s36
v_sub_f16_e64 v213, |s7|, v19
v_subrev_f16_e64 v104, |50|, v168
v_xnor_b32_e64 v131, s43, s48

; Vop3p Valu
v_dot2_f32_bf16 v15, 32, s32, s21 op_sel:[1,0,1] op_sel_hi:[0,0,1] neg_lo:[0,1,0] neg_hi:[1,1,0]
v_dot2_f32_f16 v239, s13, -10, s32 op_sel:[1,0,0] op_sel_hi:[0,0,0] neg_lo:[1,1,0] neg_hi:[1,1,1] clamp
v_dot4_i32_iu8 v202, s72, 16, v33 neg_lo:[1,0,1] neg_hi:[1,0,1]
v_dot4_u32_u8 v245, s91, v136, s0 neg_hi:[0,1,1]
v_pk_fma_f16 v85, s67, 33, s64 op_sel:[1,0,1] op_sel_hi:[1,0,1] neg_hi:[1,1,0] clamp

; Vopc Valu
v_cmp_class_f16_e32 vcc_lo, src_scc, v1
v_cmp_class_f32_e32 vcc_lo, v169, v131
v_cmp_class_f64_e32 vcc_lo, v[138:139], v128
v_cmp_eq_f16_e32 vcc_lo, v89, v121
v_cmp_eq_u16_e32 vcc_lo, v82, v109
v_cmp_f_u64_e32 vcc_lo, src_private_limit, v[128:129]
v_cmp_ge_u64_e32 vcc_lo, v[226:227], v[128:129]
v_cmp_gt_u64_e32 vcc_lo, v[215:216], v[78:79]
v_cmp_le_u64_e32 vcc_lo, v[125:126], v[129:130]
v_cmp_lt_i64_e32 vcc_lo, v[239:240], v[128:129]
v_cmp_ne_u64_e32 vcc_lo, 0.15915494309189532, v[128:129]
v_cmp_ngt_f64_e32 vcc_lo, v[216:217], v[134:135]
v_cmp_nlt_f64_e32 vcc_lo, v[251:252], v[150:151]
v_cmp_t_f32_e32 vcc_lo, v198, v230
v_cmpx_eq_f32_e32 s62, v111
v_cmpx_f_f32_e32 v159, v119
v_cmpx_ge_i16_e32 s100, v0
v_cmpx_gt_i16_e32 -5, v82
v_cmpx_le_i16_e32 s100, v101
v_cmpx_lt_f16_e32 s38, v77
v_cmpx_ne_i16_e32 vcc_hi, v36
v_cmpx_nge_f16_e32 v124, v30
v_cmpx_nlg_f16_e32 v123, v56
v_cmpx_t_i32_e32 v145, v110
v_cmpx_u_f64_e32 v[49:50], v[128:129]

; Vopd Valu
v_dual_add_f32 v0, s67, v19 :: v_dual_add_f32 v129, s12, v128
v_dual_add_f32 v0, s43, v128 :: v_dual_add_nc_u32 v241, 16, v147
v_dual_add_f32 v133, v243, v170 :: v_dual_and_b32 v224, s1, v232
v_dual_add_f32 v1, v210, v106 :: v_dual_dot2acc_f32_f16 v96, s78, v201
v_dual_add_f32 v0, null, v0 :: v_dual_min_f32 v49, s43, v27
v_dual_cndmask_b32 v20, 20, v138 :: v_dual_cndmask_b32 v225, v138, v32
v_dual_cndmask_b32 v0, v29, v128 :: v_dual_mul_dx9_zero_f32 v73, s50, v135
v_dual_dot2acc_f32_f16 v64, v175, v250 :: v_dual_fmaak_f32 v3, s6, v216, 0xf8c19870
v_dual_dot2acc_f32_f16 v0, -1.0, v127 :: v_dual_sub_f32 v135, 0, v128
v_dual_fmaak_f32 v70, v187, v199, 0xc462d822 :: v_dual_fmamk_f32 v1, s53, 0xc462d822, v128
v_dual_fmac_f32 v0, v142, v173 :: v_dual_add_f32 v83, 42, v128
v_dual_fmac_f32 v66, s99, v190 :: v_dual_max_f32 v193, s84, v240
v_dual_fmamk_f32 v144, 2.0, 0xe6ed8e77, v152 :: v_dual_and_b32 v21, s45, v18
v_dual_fmamk_f32 v0, v190, 0x51291966, v168 :: v_dual_mov_b32 v9, s96
v_dual_max_f32 v106, v228, v115 :: v_dual_dot2acc_f32_f16 v33, 60, v40
v_dual_max_f32 v0, v195, v119 :: v_dual_mul_f32 v3, s64, v130
v_dual_min_f32 v0, s55, v135 :: v_dual_fmac_f32 v1, s96, v4
v_dual_min_f32 v0, src_private_limit, v6 :: v_dual_subrev_f32 v1, s46, v0
v_dual_mov_b32 v0, 64 :: v_dual_lshlrev_b32 v81, s12, v141
v_dual_mul_dx9_zero_f32 v0, v206, v128 :: v_dual_add_nc_u32 v33, s3, v10
v_dual_mul_dx9_zero_f32 v0, v82, v17 :: v_dual_min_f32 v33, s16, v128
v_dual_mul_f32 v0, v205, v137 :: v_dual_cndmask_b32 v65, -8, v128
v_dual_mul_f32 v0, v219, v0 :: v_dual_mul_dx9_zero_f32 v145, s20, v13
v_dual_sub_f32 v114, v90, v151 :: v_dual_fmaak_f32 v45, 0, v184, 0x9e4a81e1
v_dual_sub_f32 v129, v194, v129 :: v_dual_sub_f32 v20, s84, v8
v_dual_subrev_f32 v36, v238, v216 :: v_dual_fmamk_f32 v19, 42, 0x106387c0, v192
