//! Negative controls: the comparison of each family fails when a wrong rule is planted, and every
//! row takes part in a comparison.

use super::{
    choice, compare, convert, cross_lane, cube, division, float, integer, matrix, modifiers,
    newest, packed, rdna, small_float, summed_dots, tables, transcendental,
};
use crate::tests::scalar;
use crate::wave::Mode;
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::panic::catch_unwind;

/// A planted error.
#[derive(Clone, Copy, Debug)]
enum PlantedError {
    /// Replaces an operation by another one.
    Operation(&'static str, &'static str),
    /// Inverts these bits of MODE.
    Mode(u32),
    /// Replaces part of an instruction's text.
    Text(&'static str, &'static str),
}

thread_local! {
    static PLANTED: Cell<Option<PlantedError>> = const { Cell::new(None) };
    static RECORDED: RefCell<Option<BTreeSet<String>>> = const { RefCell::new(None) };
}

/// Returns the operation to test in place of `name`.
pub fn operation(name: &str) -> &str {
    RECORDED.with_borrow_mut(|recorded| {
        if let Some(names) = recorded {
            names.insert(name.into());
        }
    });
    match PLANTED.get() {
        Some(PlantedError::Operation(right, wrong)) if right == name => wrong,
        _ => name,
    }
}

/// Returns the MODE to test in place of `mode`.
pub fn mode(mode: Mode) -> Mode {
    match PLANTED.get() {
        Some(PlantedError::Mode(bits)) => Mode(mode.0 ^ bits),
        _ => mode,
    }
}

/// Returns the text to test in place of `text`.
pub fn text(text: &str) -> String {
    match PLANTED.get() {
        Some(PlantedError::Text(right, wrong)) => text.replace(right, wrong),
        _ => text.into(),
    }
}

/// Returns `true` if operations are only recorded, not compared.
pub fn records() -> bool {
    RECORDED.with_borrow(Option::is_some)
}

/// A family, its test, and an error that makes the test fail.
type Control = (&'static str, fn(), PlantedError);

const CONTROLS: &[Control] = &[
    (
        "integer",
        integer::integer_operations_match_reference,
        PlantedError::Operation("v_mul_hi_i32", "v_mul_hi_u32"),
    ),
    (
        "bits",
        integer::integer_operations_match_reference,
        PlantedError::Operation("v_bfe_i32", "v_bfe_u32"),
    ),
    (
        "short",
        integer::integer_operations_match_reference,
        PlantedError::Operation("v_ashrrev_i16", "v_lshrrev_b16"),
    ),
    (
        "wide",
        integer::integer_operations_match_reference,
        PlantedError::Operation("v_ashrrev_i64", "v_lshrrev_b64"),
    ),
    (
        "carry",
        integer::carry_operations_match_reference,
        PlantedError::Operation("v_addc_co_u32", "v_subb_co_u32"),
    ),
    (
        "saturating",
        integer::integer_operations_match_reference,
        PlantedError::Operation("v_add_i32 clamp", "v_add_i32"),
    ),
    (
        "packed integers",
        integer::integer_operations_match_reference,
        PlantedError::Operation("v_pk_min_i16", "v_pk_min_u16"),
    ),
    (
        "dot of integers",
        integer::integer_operations_match_reference,
        PlantedError::Operation("v_dot4_i32_i8", "v_dot8_i32_i4"),
    ),
    (
        "media",
        integer::integer_operations_match_reference,
        PlantedError::Operation("v_sad_u8", "v_msad_u8"),
    ),
    (
        "single",
        float::fused_multiply_add_is_rounded_once,
        PlantedError::Operation("v_fma_f32", "v_mad_f32"),
    ),
    (
        "double",
        float::fractions_are_below_one,
        PlantedError::Operation("v_fract_f64", "v_trunc_f64"),
    ),
    (
        "half",
        float::fused_multiply_add_is_rounded_once,
        PlantedError::Operation("v_fma_f16", "v_mad_f16"),
    ),
    (
        "legacy",
        float::legacy_products_of_zero_are_zero,
        PlantedError::Operation("v_mul_legacy_f32", "v_mul_f32"),
    ),
    (
        "rounding of single precision",
        float::sums_and_products_are_rounded_once,
        PlantedError::Mode(0b01),
    ),
    (
        "rounding of double and half precision",
        float::sums_and_products_are_rounded_once,
        PlantedError::Mode(0b1000),
    ),
    (
        "denormals of single precision",
        float::sums_and_products_are_rounded_once,
        PlantedError::Mode(1 << 4),
    ),
    (
        "denormal results of half precision",
        float::sums_and_products_are_rounded_once,
        PlantedError::Mode(1 << 7),
    ),
    (
        "half-precision overflow",
        float::sums_and_products_are_rounded_once,
        PlantedError::Mode(Mode::FP16_OVERFLOW),
    ),
    (
        "packed",
        packed::packed_halves_match_reference,
        PlantedError::Operation("v_pk_min_f16", "v_pk_max_f16"),
    ),
    ("packed rounding", packed::packed_singles_match_reference, PlantedError::Mode(0b10)),
    (
        "mixed",
        packed::mixed_precision_matches_reference,
        PlantedError::Operation("v_fma_mixlo_f16", "v_fma_mixhi_f16"),
    ),
    (
        "dot",
        packed::half_dot_products_match_reference,
        PlantedError::Operation("v_dot2_f32_f16", "v_dot2_i32_i16"),
    ),
    (
        "convert",
        convert::float_to_integer_matches_reference,
        PlantedError::Operation("v_cvt_i32_f32", "v_cvt_flr_i32_f32"),
    ),
    ("convert to numbers", convert::integer_to_float_matches_reference, PlantedError::Mode(0b11)),
    (
        "small formats",
        small_float::bytes_are_the_nearest_numbers,
        PlantedError::Operation("v_cvt_pk_fp8_f32", "v_cvt_pk_fp8_f32 fnuz"),
    ),
    (
        "stochastic rounding",
        small_float::random_bits_select_the_byte,
        PlantedError::Operation("v_cvt_sr_bf8_f32", "v_cvt_sr_fp8_f32"),
    ),
    (
        "small-format overflow",
        small_float::bytes_are_the_nearest_numbers,
        PlantedError::Mode(Mode::FP16_OVERFLOW),
    ),
    (
        "scaled conversions",
        small_float::scaled::widening_multiplies_by_scale,
        PlantedError::Operation("v_cvt_scalef32_pk_f32_fp8", "v_cvt_scalef32_pk_f32_bf8"),
    ),
    (
        "compare",
        compare::float_comparisons_match_reference,
        PlantedError::Operation("v_cmp_lt_f32", "v_cmp_nge_f32"),
    ),
    (
        "class",
        compare::class_tests_match_reference,
        PlantedError::Operation("v_cmp_class_f16", "v_cmp_lt_f16"),
    ),
    (
        "choice",
        choice::extremes_and_medians_match_reference,
        PlantedError::Operation("v_med3_f32", "v_max3_f32"),
    ),
    (
        "extremes of gfx12",
        choice::gfx12_extremes_match_reference,
        PlantedError::Operation("v_minimum_f32", "v_min_num_f32"),
    ),
    (
        "mixed signs",
        rdna::mixed_sign_dot_products_match_reference,
        PlantedError::Operation("v_dot4_i32_iu8 1", "v_dot4_i32_iu8 2"),
    ),
    ("IEEE rules", choice::extremes_and_medians_match_reference, PlantedError::Mode(1 << 9)),
    (
        "division",
        division::final_step_scales_quotient_back,
        PlantedError::Operation("v_div_fmas_f32", "v_fma_f32"),
    ),
    (
        "division steps",
        division::single_precision_quotients_are_correctly_rounded,
        PlantedError::Operation("v_div_fixup_f32", "v_fma_f32"),
    ),
    (
        "transcendental",
        transcendental::single_precision_is_within_one_unit,
        PlantedError::Operation("v_rsq_f32", "v_rcp_f32"),
    ),
    (
        "cube",
        cube::coordinates_match_face_table,
        PlantedError::Operation("v_cubesc_f32", "v_cubetc_f32"),
    ),
    (
        "cross-lane",
        cross_lane::mbcnt_counts_lower_lanes,
        PlantedError::Operation("v_mbcnt_lo_u32_b32", "v_mbcnt_hi_u32_b32"),
    ),
    (
        "lane reads",
        cross_lane::readlane_matches_reference,
        PlantedError::Operation("v_readfirstlane_b32", "v_readlane_b32"),
    ),
    (
        "matrix",
        matrix::small_integer_products_match_plain_matrices,
        PlantedError::Operation("v_mfma_f32_4x4x4f16", "v_mfma_f32_4x4x4bf16_1k"),
    ),
    (
        "order of matrix sums",
        matrix::sums_follow_the_measured_order,
        PlantedError::Operation("v_mfma_f32_4x4x4bf16_1k", "v_mfma_f32_4x4x4f16"),
    ),
    (
        "scalar arithmetic",
        scalar::arithmetic_matches_reference,
        PlantedError::Operation("s_add_i32", "s_add_u32"),
    ),
    (
        "scalar logic",
        scalar::logic_matches_reference,
        PlantedError::Operation("s_flbit_i32", "s_flbit_i32_b32"),
    ),
    (
        "scalar fields",
        scalar::shifts_and_fields_match_reference,
        PlantedError::Operation("s_bfe_i64", "s_bfe_u64"),
    ),
    (
        "scalar comparisons",
        scalar::comparisons_match_reference,
        PlantedError::Operation("s_cmpk_lt_u32", "s_cmpk_lt_i32"),
    ),
    ("DPP", modifiers::dpp_moves_lanes, PlantedError::Text("row_shr:3", "row_ror:3")),
    ("DPP masks", modifiers::dpp_moves_lanes, PlantedError::Text("bank_mask:0x5", "bank_mask:0xd")),
    (
        "SDWA",
        modifiers::sdwa_selects_parts_of_words,
        PlantedError::Text("UNUSED_SEXT", "UNUSED_PAD"),
    ),
    (
        "op_sel",
        modifiers::op_sel_selects_halves,
        PlantedError::Text("op_sel:[1,0,0,1]", "op_sel:[1,0,0,0]"),
    ),
    (
        "packed op_sel",
        modifiers::op_sel_selects_halves_of_packed_operands,
        PlantedError::Text("op_sel_hi:[0,1,1]", "op_sel_hi:[1,1,1]"),
    ),
    ("signs", modifiers::sign_modifiers_apply_to_sources, PlantedError::Text("-|v1|", "|v1|")),
    ("clamp", modifiers::results_are_scaled_and_clamped, PlantedError::Text(" clamp", "")),
    ("DX10 clamp", modifiers::results_are_scaled_and_clamped, PlantedError::Mode(1 << 8)),
    (
        "output scale",
        modifiers::results_are_scaled_and_clamped,
        PlantedError::Text("mul:4", "mul:2"),
    ),
    (
        "constants",
        modifiers::constants_match_operand_width,
        PlantedError::Text("0x3c004000", "0x40003c00"),
    ),
];

fn message(test: fn(), wrong: PlantedError) -> Option<String> {
    PLANTED.set(Some(wrong));
    let outcome = catch_unwind(test);
    PLANTED.set(None);
    let panic = outcome.err()?;
    let text = panic.downcast_ref::<&str>().map(|text| (*text).into());
    Some(text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default())
}

/// A failing comparison names the operation that differs, so a failure for another reason does not
/// count.
#[test]
fn every_family_detects_a_wrong_rule() {
    for (family, test, wrong) in CONTROLS {
        let message = message(*test, *wrong);
        assert!(
            message
                .as_deref()
                .is_some_and(|message| ["v_", "s_"].iter().any(|start| message.starts_with(start))),
            "{family}: {wrong:?} is not noticed, but {message:?}"
        );
    }
}

const COMPARISONS: &[fn()] = &[
    choice::extremes_and_medians_match_reference,
    compare::integer_comparisons_match_reference,
    compare::float_comparisons_match_reference,
    compare::class_tests_match_reference,
    convert::format_conversions_match_reference,
    convert::integer_to_float_matches_reference,
    convert::float_to_integer_matches_reference,
    convert::packing_matches_reference,
    convert::byte_conversion_matches_reference,
    convert::cvt_pkrtz_rounds_towards_zero,
    cross_lane::mbcnt_counts_lower_lanes,
    cross_lane::readlane_matches_reference,
    cross_lane::writelane_matches_reference,
    cross_lane::swap_exchanges_registers,
    cross_lane::swap_exchanges_register_halves,
    cross_lane::masked_sums_of_absolute_differences_match_reference,
    cube::coordinates_match_face_table,
    division::final_step_scales_quotient_back,
    division::fixup_handles_signs_and_special_values,
    division::single_precision_quotients_are_correctly_rounded,
    division::double_precision_quotients_are_correctly_rounded,
    division::trig_preop_returns_digits_of_two_over_pi,
    float::sums_and_products_are_rounded_once,
    float::fused_multiply_add_is_rounded_once,
    float::unfused_multiply_add_is_rounded_twice,
    float::legacy_products_of_zero_are_zero,
    float::rounding_to_integers_matches_reference,
    float::fractions_are_below_one,
    float::scaling_by_powers_of_two_is_rounded_once,
    float::exponents_and_mantissas_match_reference,
    integer::integer_operations_match_reference,
    integer::carry_operations_match_reference,
    matrix::small_integer_products_match_plain_matrices,
    scalar::arithmetic_matches_reference,
    scalar::logic_matches_reference,
    scalar::shifts_and_fields_match_reference,
    scalar::comparisons_match_reference,
    packed::packed_halves_match_reference,
    packed::packed_singles_match_reference,
    packed::mixed_precision_matches_reference,
    packed::half_dot_products_match_reference,
    choice::gfx12_extremes_match_reference,
    rdna::mixed_sign_dot_products_match_reference,
    rdna::packed_integer_conversions_match_reference,
    rdna::each_dot_product_step_is_rounded_once,
    summed_dots::sums_match_the_chips,
    summed_dots::nan_results_match_the_chips,
    tables::gfx950_bit_operations_match_reference,
    small_float::every_byte_is_the_number_of_the_table,
    small_float::bytes_are_the_nearest_numbers,
    small_float::random_bits_select_the_byte,
    small_float::bfloat16_and_half_conversions_match_reference,
    small_float::pairs_of_halves_round_as_single_ones,
    small_float::scaled::narrowing_divides_by_scale,
    small_float::scaled::random_bits_choose_after_the_division,
    small_float::scaled::widening_multiplies_by_scale,
    small_float::scaled::six_bit_conversions_match_reference,
    cross_lane::permlane_swap_exchanges_rows,
    matrix::wide::small_integer_products_match_plain_matrices,
    matrix::wide::all_format_modifiers_match_plain_matrices,
    transcendental::single_precision_is_within_one_unit,
    transcendental::half_precision_is_within_one_unit,
    transcendental::double_precision_matches_exact_results,
    newest::wide_integers_match_reference,
    newest::sums_saturate_before_comparison,
    newest::packed_short_integers_match_reference,
    newest::extremes_of_three_packed_halves_match_reference,
    newest::two_bit_truth_tables_match_reference,
    newest::double_precision_literals_are_exact,
    newest::bfloat16_arithmetic_is_rounded_once,
    newest::bfloat16_functions_match_reference,
    newest::byte_and_half_conversions_match_reference,
    newest::conversions_with_selected_scales_match_reference,
    newest::table_lookups_match_bit_strings,
    newest::scaled_packed_conversions_match_reference,
    newest::group_moves_match_reference,
];

/// Operations that move state rather than compute, covered by other tests.
const TESTED_ELSEWHERE: &[&str] = &[
    // No effect by itself.
    "v_mfma_ld_scale_b32",
    // Reads other lanes of its group.
    "v_interp_p10_f32",
    "v_interp_p2_f32_inreg",
    "v_interp_p10_f16_f32",
    "v_interp_p2_f16_f32",
    "v_interp_p10_rtz_f16_f32",
    "v_interp_p2_rtz_f16_f32",
    "v_permlane16_b32",
    "v_permlanex16_b32",
    "v_movrels_b32",
    "v_movreld_b32",
    "v_movrelsd_b32",
    "v_movrelsd_2_b32",
    "v_swaprel_b32",
    "v_permlane64_b32",
    "v_permlane16_var_b32",
    "v_permlanex16_var_b32",
    "s_movrelsd_2_b32",
    "s_getreg_b32",
    "s_set_gpr_idx_on",
    "s_set_gpr_idx_off",
    "s_set_gpr_idx_idx",
    "s_set_gpr_idx_mode",
    "s_movrels_b32",
    "s_movrels_b64",
    "s_movreld_b32",
    "s_movreld_b64",
];

#[test]
fn every_row_is_compared() {
    RECORDED.set(Some(BTreeSet::new()));
    COMPARISONS.iter().for_each(|test| test());
    let compared = RECORDED.take().unwrap_or_default();
    let lane_by_lane =
        crate::execute::operations::TABLES.iter().copied().flatten().map(|row| row.name);
    let machines = ["gfx90a", "gfx942", "gfx950"].map(matrix::machine);
    let whole = machines
        .into_iter()
        .flat_map(crate::execute::operations::whole_wave_operations)
        .map(|row| row.name);
    let scalar = crate::execute::scalar::names();
    let left_out: Vec<_> = lane_by_lane
        .chain(whole)
        .chain(scalar)
        .filter(|name| !TESTED_ELSEWHERE.contains(name) && !compared.contains(*name))
        .filter(|name| !name.starts_with("v_wmma_") && !name.starts_with("v_swmmac_"))
        .collect();
    assert!(left_out.is_empty(), "never compared: {left_out:?}");
}
