; A sample of each encoding family of gfx1201.

; Dpp Valu
v_add_f16_dpp v29, v0, v0 quad_perm:[0,0,0,0] row_mask:0x0 bank_mask:0x0
v_add_f32_dpp v184, v128, v128 quad_perm:[1,1,0,2] row_mask:0x0 bank_mask:0x0 bound_ctrl:1
v_add_nc_u32_dpp v57, v52, v128 quad_perm:[0,2,1,0] row_mask:0x0 bank_mask:0x0 fi:1
v_add_co_ci_u32_dpp v129, vcc_lo, v192, v133, vcc_lo dpp8:[0,0,3,0,0,0,0,0] fi:1
v_cmpx_eq_i16 v66, v0 dpp8:[3,0,5,5,0,0,0,0]
v_lshlrev_b32_dpp v76, v0, v135 quad_perm:[0,0,2,2] row_mask:0x0 bank_mask:0x0
v_min_u32_dpp v183, v216, v133 quad_perm:[0,0,0,0] row_mask:0x0 bank_mask:0x0
v_or_b32_dpp v212, v5, v0 quad_perm:[0,2,0,0] row_mask:0x0 bank_mask:0x0 bound_ctrl:1
v_subrev_nc_u32_dpp v41, v128, v133 quad_perm:[0,0,0,0] row_mask:0x0 bank_mask:0x0

; Ds Lds
ds_add_f32 v64, v0 offset:2680
ds_add_rtn_f32 v0, v13, v34 offset:1134
ds_add_rtn_u32 v0, v176, v0 offset:17604
ds_add_rtn_u64 v[0:1], v150, v[82:83] offset:881
ds_and_rtn_b64 v[73:74], v64, v[48:49] offset:2196
ds_condxchg32_rtn_b64 v[0:1], v206, v[16:17] offset:2261
ds_inc_u64 v171, v[40:41] offset:944
ds_max_rtn_u32 v0, v0, v0 offset:300
ds_min_num_rtn_f64 v[0:1], v130, v[0:1] offset:498
ds_mskor_rtn_b32 v12, v8, v8, v2 offset:27766
ds_pk_add_rtn_bf16 v0, v197, v0 offset:2278
ds_load_b64 v[0:1], v68 offset:491
ds_load_u8 v0, v64 offset:33843
ds_sub_rtn_u32 v0, v148, v0 offset:3565
ds_store_addtid_b32 v0 offset:180
ds_storexchg_2addr_rtn_b32 v[16:17], v0, v5, v128 offset0:72 offset1:129
ds_xor_rtn_b64 v[0:1], v131, v[0:1] offset:4046

; Export Graphics
export mrt6 v32, v102, v4, off

; Global Vmem
global_atomic_and_b32 v135, v0, s[22:23] offset:-3140491
global_load_b32 v0, v120, s[48:49] offset:-8381323
global_load_tr_b64 v[0:1], v197, s[100:101] offset:1582462

; Mimg Image
image_sample_b_cl_o v[0:1], [v33, v174, v55, v113], s[0:7], s[0:3] dim:SQ_RSRC_IMG_3D a16 tfe d16
image_sample_b_o v[128:129], [v145, v61, v237, v[127:128]], s[0:7], s[0:3] dmask:0x8 dim:SQ_RSRC_IMG_CUBE th:TH_LOAD_NT_RT scope:SCOPE_SE tfe d16
image_sample_c v0, [v80, v111, v62, v175], s[0:7], s[0:3] dmask:0x1 dim:SQ_RSRC_IMG_CUBE r128
image_sample_c_d_cl v[0:1], [v149, v45, v113, v[200:203]], s[0:7], s[0:3] dmask:0x1 dim:SQ_RSRC_IMG_2D_MSAA r128 a16 tfe
image_sample_d_o v[163:164], [v163, v181, v153, v[232:235]], s[0:7], s[0:3] dmask:0x3 dim:SQ_RSRC_IMG_CUBE unorm scope:SCOPE_SYS a16 tfe d16

; Smem Smem
s_buffer_load_b32 s6, s[76:79], s0 offset:0x6fedfc th:TH_LOAD_BYPASS scope:SCOPE_SYS
s_buffer_load_b96 s[12:14], s[0:3], s0 offset:0x80 th:TH_LOAD_HT scope:SCOPE_SYS
s_buffer_load_i8 s5, s[60:63], s0 offset:0x26a1 th:TH_LOAD_BYPASS scope:SCOPE_SYS
s_buffer_load_i16 s51, s[56:59], s0 offset:0x4800e0 th:TH_LOAD_NT scope:SCOPE_SE
s_load_b128 s[52:55], s[2:3], s0 offset:0x32

; Sop1 Branch
s_swappc_b64 s[2:3], s[10:11]

; Sop1 Salu
s_abs_i32 s11, s78
s_and_not0_saveexec_b32 s63, -12
s_and_not0_wrexec_b64 s[16:17], src_scc
s_and_not1_saveexec_b32 s97, s24
s_bitset0_b64 s[62:63], 51
s_ctz_i32_b32 s6, src_scc
s_movreld_b64 s[90:91], -2.0
s_trunc_f32 s55, 16

; Sop2 Salu
s_absdiff_i32 s15, src_private_limit, s15
s_add_f16 s26, src_private_limit, s10
s_add_f32 exec_lo, src_private_base, s12
s_add_co_i32 s33, s96, src_private_limit
s_and_not1_b32 s25, src_private_limit, s10
s_bfm_b64 s[18:19], src_private_base, s11
s_lshl2_add_u32 s50, src_private_limit, s1
s_max_num_f32 s105, src_shared_limit, src_shared_base
s_minimum_f32 s39, src_private_limit, s10
s_nor_b32 s0, 0x1000c4, src_shared_limit
s_pack_ll_b32_b16 vcc_hi, src_private_limit, s91
s_xor_b32 null, src_private_limit, s13

; Sopc Salu
s_bitcmp0_b32 src_private_base, s1
s_bitcmp0_b64 s[18:19], s10
s_bitcmp1_b32 -1.0, s101
s_bitcmp1_b64 src_shared_base, s1
s_cmp_ge_f16 31, s42
s_cmp_le_f32 56, s10
s_cmp_lt_f32 s104, s0
s_cmp_nle_f16 s13, s12
s_cmp_u_f32 s60, s84

; Sopk Branch
s_call_b64 s[100:101], 21541

; Sopk Salu
s_addk_co_i32 exec_lo, 0xb095
s_cmovk_i32 exec_lo, 0xfe25
s_getreg_b32 s57, hwreg(HW_REG_PERF_SNAPSHOT_DATA2, 12, 15)
s_movk_i32 exec_lo, 0x4ca0

; Sopk Wait
s_version 0x250f

; Sopp Barrier
s_barrier_wait 0x95ea

; Sopp Branch
s_branch 65261
s_cbranch_execnz 52341
s_cbranch_execz 17104
s_cbranch_scc0 52691

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
s_nop 0xcd0a
s_setprio 0xb32b
s_wait_event 0xb807

; Vintrp Graphics
ds_param_load v207, attr27.y wait_va_vdst:11 wait_vm_vsrc:1

; Vintrp Lds
ds_direct_load v247 wait_va_vdst:10 wait_vm_vsrc:0

; Vop1 Valu
v_bfrev_b32_e32 v148, v203
v_ceil_f16_e32 v109, v15
v_ceil_f32_e32 v198, null
v_ceil_f64_e32 v[68:69], 28
v_cvt_f32_f16_e32 v153, vcc_hi
v_cvt_f64_i32_e32 v[13:14], vcc_hi
v_cvt_pk_f32_bf8_e32 v[248:249], v92.l
v_cls_i32_e32 v116, v198
v_frexp_exp_i16_f16_e32 v80, v55
v_movreld_b32_e32 v132, vcc_hi
v_rndne_f32_e32 v78, v152
v_sqrt_f32_e32 v77, s102

; Vop2 Valu
v_add_f16_e32 v73, src_private_limit, v7
v_add_f32_e32 v140, src_private_limit, v174
v_add_f64_e32 v[131:132], 0.15915494309189532, v[128:129]
v_add_nc_u32_e32 v152, src_private_limit, v135
v_fmaak_f16 v70, src_private_base, v5, 0x4a0
v_lshrrev_b32_e32 v103, src_private_limit, v128
v_min_num_f64_e32 v[169:170], 0.15915494309189532, v[224:225]
v_mul_u32_u24_e32 v120, src_private_limit, v128
v_subrev_f32_e32 v115, src_private_limit, v132

; Vop3 Valu
v_add3_u32 v152, v0, v24, s2
v_add_co_u32 v213, s13, 1, v18
v_add_f16_e64 v152, |8|, |s50|
v_add_f32_e64 v194, 16, s0
v_add_nc_u32_e64 v150, s0, s0
v_bcnt_u32_b32 v59, s0, s3
v_cmp_class_f16_e64 s20, s0, s0
v_cmp_ge_i16_e64 src_private_base, s0, s0
v_cmp_le_i64_e64 s89, s[0:1], s[0:1]
v_cmp_lt_u64_e64 s49, s[66:67], s[0:1]
v_cmp_nlg_f32_e64 s46, s0, s0
v_cos_f16_e64 v49, s0
v_cvt_f32_bf8_e64 v65, s0
v_cvt_f32_ubyte3_e64 v19, s0
v_cvt_norm_i16_f16_e64 v11, s0
v_cvt_pk_u16_f32 v192, s0, s0
v_cvt_sr_bf8_f32 v237, s0, s0
v_div_fmas_f32 v66, v8, 24, s64
v_clz_i32_u32_e64 v252, s0
v_fmac_f16_e64 v253.l, s66, s0 op_sel:[1,0,0]
v_frexp_mant_f32_e64 v166, s0
v_lshl_or_b32 v34, s0, s0, s0
v_mad_u16 v139, s0, s0, s0
v_max3_u32 v90, s0, s0, s0
v_maximum3_f32 v100, 24, s0, |s0|
v_maxmin_u32 v188, s0, s0, s0
v_min3_i16 v98, s0, s0, s0
v_min_num_f32_e64 v183, |s18|, s0
v_minimummaximum_f16 v19, |0|, -s0, v0 op_sel:[0,1,0,1] clamp mul:2
v_msad_u8 v88, s0, s0, s0
v_mul_dx9_zero_f32_e64 v151, |32|, s88
v_or_b32_e64 v126, s0, s0
v_rndne_f32_e64 v251, s0
v_s_rcp_f16 s40, s0
v_sin_f32_e64 v5, s0
v_sub_nc_u16 v34, s0, s0
v_trunc_f16_e64 v51, s0

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
v_cmp_ge_u16_e32 vcc_lo, src_shared_base, v5
v_cmp_gt_u16_e32 vcc_lo, src_shared_base, v0
v_cmp_le_u16_e32 vcc_lo, src_private_limit, v7
v_cmp_lt_i16_e32 vcc_lo, s17, v113
v_cmp_ne_u16_e32 vcc_lo, s101, v82
v_cmp_ngt_f16_e32 vcc_lo, 40, v107
v_cmp_nlt_f16_e32 vcc_lo, src_scc, v6
v_cmpx_class_f16_e32 s62, v68
v_cmpx_eq_u16_e32 v107, v37
v_cmpx_ge_u16_e32 v10, v42
v_cmpx_gt_u16_e32 20, v40
v_cmpx_le_u16_e32 v100, v2
v_cmpx_lt_i16_e32 s28, v34
v_cmpx_ne_u16_e32 s34, v0
v_cmpx_ngt_f16_e32 v121, v70
v_cmpx_nlt_f16_e32 v63, v100

; Vopd Valu
v_dual_add_f32 v0, s67, v19 :: v_dual_add_f32 v129, s12, v128
v_dual_add_f32 v0, s43, v128 :: v_dual_add_nc_u32 v241, 16, v147
v_dual_add_f32 v133, v243, v170 :: v_dual_and_b32 v224, s1, v232
v_dual_add_f32 v0, v212, v128 :: v_dual_fmaak_f32 v145, s18, v9, 0xce693c5b
v_dual_add_f32 v0, v15, v128 :: v_dual_mov_b32 v1, s68
v_dual_cndmask_b32 v0, 44, v130 :: v_dual_fmaak_f32 v3, 50, v144, 0x257f20c1
v_dual_cndmask_b32 v0, src_shared_base, v128 :: v_dual_sub_f32 v131, v0, v149
v_dual_fmaak_f32 v0, src_private_base, v3, 0xb62689cb :: v_dual_lshlrev_b32 v1, 1, v0
v_dual_fmac_f32 v0, v133, v132 :: v_dual_add_nc_u32 v1, vcc_lo, v69
v_dual_fmac_f32 v0, v146, v129 :: v_dual_mov_b32 v1, s32
v_dual_fmamk_f32 v0, v179, 0xb65b88a5, v128 :: v_dual_fmaak_f32 v197, v84, v25, 0xb65b88a5
v_dual_fmamk_f32 v0, v33, 0x2459fe76, v128 :: v_dual_sub_f32 v241, s34, v130
v_dual_max_num_f32 v81, v24, v64 :: v_dual_lshlrev_b32 v176, v150, v2
v_dual_min_num_f32 v74, s49, v104 :: v_dual_add_nc_u32 v1, v160, v210
v_dual_min_num_f32 v0, s94, v138 :: v_dual_mov_b32 v129, s8
v_dual_mov_b32 v0, v253 :: v_dual_fmaak_f32 v7, s0, v18, 0xe95617a
v_dual_mov_b32 v0, v242 :: v_dual_sub_f32 v137, s9, v128
v_dual_mul_dx9_zero_f32 v176, v241, v58 :: v_dual_lshlrev_b32 v33, s64, v144
v_dual_mul_f32 v67, s0, v146 :: v_dual_add_nc_u32 v152, s4, v25
v_dual_mul_f32 v0, v222, v128 :: v_dual_mov_b32 v145, s66
v_dual_sub_f32 v114, v90, v151 :: v_dual_fmaak_f32 v45, 0, v184, 0x9e4a81e1
v_dual_sub_f32 v129, v194, v129 :: v_dual_sub_f32 v20, s84, v8
v_dual_subrev_f32 v80, v71, v17 :: v_dual_lshlrev_b32 v17, s40, v0
