//! What vector operations do in each lane, as IR. The rows of `operations` say the same in Rust, and
//! have the kinds of sources and results; the two are held against each other.
//!
//! A source of kind `F32` or `F16` is of type `F`, one of `F64` of type `E`, a lane mask of type `M`, others
//! of type `W` or `D`; a floating-point result is of type `F` or `E`, others of type `W` or `D`. What is to
//! be rounded to half precision must be exact, or have twice its digits and two more.

use rustc_hash::FxHashMap;
use std::sync::LazyLock;

/// What becomes of NaNs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nan {
    /// They are no matter, or what the code does with them is what the operation does.
    Any,
    /// A NaN among the sources gives one; the code does not say which.
    Propagates,
    /// The code is right where no source is a NaN.
    NotAmongSources,
}

/// What an operation does.
pub struct Lowering {
    /// Its name, as the rows of `operations` have it.
    pub name: &'static str,
    /// See [`super::template`].
    pub code: &'static str,
    /// What becomes of NaNs.
    pub nan: Nan,
    /// What becomes of the result.
    pub result: Stored,
}

/// How a result is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stored {
    /// As it is.
    Whole,
    /// In half precision, with zeros in the other half.
    Half,
    /// In half precision, and the other half stays.
    LowHalf,
}

/// The code of an operation, by the name of its row.
pub fn find(name: &str) -> Option<&'static Lowering> {
    static BY_NAME: LazyLock<FxHashMap<&'static str, &'static Lowering>> =
        LazyLock::new(|| TABLE.iter().map(|row| (row.name, row)).collect());
    BY_NAME.get(name).copied()
}

/// The operation on each word of one that works on pairs of words.
pub fn of_pairs(name: &str) -> Option<&'static str> {
    Some(match name {
        "v_pk_add_f32" => "v_add_f32",
        "v_pk_mul_f32" => "v_mul_f32",
        "v_pk_fma_f32" => "v_fma_f32",
        "v_pk_mov_b32" => "v_mov_b32",
        "v_pk_add_f16" => "v_add_f16",
        "v_pk_mul_f16" => "v_mul_f16",
        "v_pk_fma_f16" => "v_fma_f16",
        "v_pk_min_f16" => "v_min_f16",
        "v_pk_max_f16" => "v_max_f16",
        _ => return None,
    })
}

const fn any(name: &'static str, code: &'static str) -> Lowering {
    Lowering { name, code, nan: Nan::Any, result: Stored::Whole }
}

const fn propagates(name: &'static str, code: &'static str) -> Lowering {
    Lowering { name, code, nan: Nan::Propagates, result: Stored::Whole }
}

const fn numbers(name: &'static str, code: &'static str) -> Lowering {
    Lowering { name, code, nan: Nan::NotAmongSources, result: Stored::Whole }
}

const fn half(row: Lowering) -> Lowering {
    Lowering { result: Stored::Half, ..row }
}

const fn low_half(row: Lowering) -> Lowering {
    Lowering { result: Stored::LowHalf, ..row }
}

/// A call of an intrinsic of LLVM.
macro_rules! call {
    ($name:literal, $type:literal, $($argument:literal),+ $(; $more:literal)?) => {
        concat!("%r = call ", $type, " @llvm.", $name, ".", $type, "(", call!(@ $type, $($argument),+),
            $(", ", $more,)? ")")
    };
    (@ $type:literal, $first:literal $(, $rest:literal)*) => {
        concat!($type, " ", $first $(, ", ", $type, " ", $rest)*)
    };
}

/// The least of two that are no NaNs, minus zero being less than plus zero; and the greatest.
const LESSER: &str = "%less = fcmp olt F %a, %b\n%not = fcmp ule F %a, %b\n%bits = bitcast F %a to W\n\
     %negative = icmp slt W %bits, zeroinitializer\n%tie = and M %not, %negative\n\
     %first = or M %less, %tie\n%r = select M %first, F %a, F %b";
const GREATER: &str = "%more = fcmp ogt F %a, %b\n%not = fcmp uge F %a, %b\n%bits = bitcast F %b to W\n\
     %negative = icmp slt W %bits, zeroinitializer\n%tie = and M %not, %negative\n\
     %first = or M %more, %tie\n%r = select M %first, F %a, F %b";

/// A fused product and sum of halves, which double precision holds but where so much is lost that it
/// cannot matter, with the last place of single precision set where there is more after it: so the last
/// rounding sees all.
const FUSED_HALF: &str = "%x = fpext F %a to E\n%y = fpext F %b to E\n%z = fpext F %c to E\n\
     %e = call E @llvm.fma.E(E %x, E %y, E %z)\n%bits = bitcast E %e to D\n\
     %below = and D %bits, splat (i64 536870911)\n%some = icmp ne D %below, zeroinitializer\n\
     %last = select M %some, D splat (i64 536870912), D zeroinitializer\n\
     %above = and D %bits, splat (i64 -536870912)\n%odd = or D %above, %last\n\
     %f = bitcast D %odd to E\n%r = fptrunc E %f to F";

static TABLE: &[Lowering] = &[
    // Moves, logic, shifts.
    any("v_mov_b32", "%r = or W %a, zeroinitializer"),
    any("v_accvgpr_read_b32", "%r = or W %a, zeroinitializer"),
    any("v_accvgpr_write_b32", "%r = or W %a, zeroinitializer"),
    any("v_accvgpr_mov_b32", "%r = or W %a, zeroinitializer"),
    any("v_cndmask_b32", "%r = select M %c, W %b, W %a"),
    any("v_not_b32", "%r = xor W %a, #-1"),
    any("v_and_b32", "%r = and W %a, %b"),
    any("v_or_b32", "%r = or W %a, %b"),
    any("v_xor_b32", "%r = xor W %a, %b"),
    any("v_xnor_b32", "%x = xor W %a, %b\n%r = xor W %x, #-1"),
    any("v_xor3_b32", "%x = xor W %a, %b\n%r = xor W %x, %c"),
    any("v_and_or_b32", "%x = and W %a, %b\n%r = or W %x, %c"),
    any("v_or3_b32", "%x = or W %a, %b\n%r = or W %x, %c"),
    any("v_lshl_or_b32", "%by = and W %b, #31\n%x = shl W %a, %by\n%r = or W %x, %c"),
    any("v_lshlrev_b32", "%by = and W %a, #31\n%r = shl W %b, %by"),
    any("v_lshrrev_b32", "%by = and W %a, #31\n%r = lshr W %b, %by"),
    any("v_ashrrev_i32", "%by = and W %a, #31\n%r = ashr W %b, %by"),
    any("v_alignbit_b32", call!("fshr", "W", "%a", "%b", "%c")),
    any(
        "v_bfe_u32",
        "%by = and W %b, #31\n%width = and W %c, #31\n%field = lshr W %a, %by\n\
         %over = shl W #1, %width\n%ones = sub W %over, #1\n%r = and W %field, %ones",
    ),
    any("v_bfi_b32", "%x = xor W %b, %c\n%y = and W %x, %a\n%r = xor W %y, %c"),
    any(
        "v_bfm_b32",
        "%by = and W %b, #31\n%width = and W %a, #31\n%over = shl W #1, %width\n\
         %ones = sub W %over, #1\n%r = shl W %ones, %by",
    ),
    any("v_bfrev_b32", call!("bitreverse", "W", "%a")),
    any("v_bcnt_u32_b32", "%x = call W @llvm.ctpop.W(W %a)\n%r = add W %x, %b"),
    // 32-bit integers.
    any("v_add_u32", "%r = add W %a, %b"),
    any("v_sub_u32", "%r = sub W %a, %b"),
    any("v_subrev_u32", "%r = sub W %b, %a"),
    any("v_add_i32", "%r = add W %a, %b"),
    any("v_sub_i32", "%r = sub W %a, %b"),
    any("v_add_co_u32", "%r = add W %a, %b\n%s = icmp ult W %r, %a"),
    any("v_sub_co_u32", "%r = sub W %a, %b\n%s = icmp ult W %a, %b"),
    any("v_subrev_co_u32", "%r = sub W %b, %a\n%s = icmp ult W %b, %a"),
    any(
        "v_addc_co_u32",
        "%x = add W %a, %b\n%one = icmp ult W %x, %a\n%in = zext M %c to W\n%r = add W %x, %in\n\
         %two = icmp ult W %r, %x\n%s = or M %one, %two",
    ),
    any(
        "v_subb_co_u32",
        "%x = sub W %a, %b\n%one = icmp ult W %a, %b\n%in = zext M %c to W\n%r = sub W %x, %in\n\
         %two = icmp ult W %x, %in\n%s = or M %one, %two",
    ),
    any(
        "v_subbrev_co_u32",
        "%x = sub W %b, %a\n%one = icmp ult W %b, %a\n%in = zext M %c to W\n%r = sub W %x, %in\n\
         %two = icmp ult W %x, %in\n%s = or M %one, %two",
    ),
    any("v_add3_u32", "%x = add W %a, %b\n%r = add W %x, %c"),
    any("v_add_lshl_u32", "%x = add W %a, %b\n%by = and W %c, #31\n%r = shl W %x, %by"),
    any("v_lshl_add_u32", "%by = and W %b, #31\n%x = shl W %a, %by\n%r = add W %x, %c"),
    any("v_xad_u32", "%x = xor W %a, %b\n%r = add W %x, %c"),
    any("v_mul_lo_u32", "%r = mul W %a, %b"),
    any(
        "v_mul_hi_u32",
        "%x = zext W %a to D\n%y = zext W %b to D\n%p = mul D %x, %y\n\
         %h = lshr D %p, splat (i64 32)\n%r = trunc D %h to W",
    ),
    any(
        "v_mul_hi_i32",
        "%x = sext W %a to D\n%y = sext W %b to D\n%p = mul D %x, %y\n\
         %h = lshr D %p, splat (i64 32)\n%r = trunc D %h to W",
    ),
    any("v_mul_u32_u24", "%x = and W %a, #16777215\n%y = and W %b, #16777215\n%r = mul W %x, %y"),
    any(
        "v_mul_i32_i24",
        "%p = shl W %a, #8\n%q = shl W %b, #8\n%x = ashr W %p, #8\n%y = ashr W %q, #8\n\
         %r = mul W %x, %y",
    ),
    any(
        "v_mad_u32_u24",
        "%x = and W %a, #16777215\n%y = and W %b, #16777215\n%p = mul W %x, %y\n%r = add W %p, %c",
    ),
    any(
        "v_mad_i32_i24",
        "%p = shl W %a, #8\n%q = shl W %b, #8\n%x = ashr W %p, #8\n%y = ashr W %q, #8\n\
         %z = mul W %x, %y\n%r = add W %z, %c",
    ),
    any(
        "v_min3_u32",
        concat!("%x = call W @llvm.umin.W(W %a, W %b)\n", call!("umin", "W", "%x", "%c")),
    ),
    any(
        "v_max3_u32",
        concat!("%x = call W @llvm.umax.W(W %a, W %b)\n", call!("umax", "W", "%x", "%c")),
    ),
    any(
        "v_min3_i32",
        concat!("%x = call W @llvm.smin.W(W %a, W %b)\n", call!("smin", "W", "%x", "%c")),
    ),
    any(
        "v_max3_i32",
        concat!("%x = call W @llvm.smax.W(W %a, W %b)\n", call!("smax", "W", "%x", "%c")),
    ),
    any("v_min_u32", call!("umin", "W", "%a", "%b")),
    any("v_max_u32", call!("umax", "W", "%a", "%b")),
    any("v_min_i32", call!("smin", "W", "%a", "%b")),
    any("v_max_i32", call!("smax", "W", "%a", "%b")),
    // 64-bit integers.
    any("v_mov_b64", "%r = or D %a, zeroinitializer"),
    any("v_add_nc_u64", "%r = add D %a, %b"),
    any("v_sub_nc_u64", "%r = sub D %a, %b"),
    any(
        "v_lshl_add_u64",
        "%n = and W %b, #7\n%by = zext W %n to D\n%x = shl D %a, %by\n%r = add D %x, %c",
    ),
    any("v_lshlrev_b64", "%n = and W %a, #63\n%by = zext W %n to D\n%r = shl D %b, %by"),
    any("v_lshrrev_b64", "%n = and W %a, #63\n%by = zext W %n to D\n%r = lshr D %b, %by"),
    any("v_ashrrev_i64", "%n = and W %a, #63\n%by = zext W %n to D\n%r = ashr D %b, %by"),
    any(
        "v_mad_u64_u32",
        "%x = zext W %a to D\n%y = zext W %b to D\n%p = mul D %x, %y\n%r = add D %p, %c\n\
         %s = icmp ult D %r, %p",
    ),
    // Single precision.
    propagates("v_add_f32", "%r = fadd F %a, %b"),
    propagates("v_sub_f32", "%r = fsub F %a, %b"),
    propagates("v_subrev_f32", "%r = fsub F %b, %a"),
    propagates("v_mul_f32", "%r = fmul F %a, %b"),
    propagates("v_fma_f32", call!("fma", "F", "%a", "%b", "%c")),
    propagates("v_fmac_f32", call!("fma", "F", "%a", "%b", "%c")),
    propagates("v_fmaak_f32", call!("fma", "F", "%a", "%b", "%c")),
    propagates("v_fmamk_f32", call!("fma", "F", "%a", "%b", "%c")),
    propagates("v_floor_f32", call!("floor", "F", "%a")),
    propagates("v_ceil_f32", call!("ceil", "F", "%a")),
    propagates("v_trunc_f32", call!("trunc", "F", "%a")),
    propagates("v_rndne_f32", call!("roundeven", "F", "%a")),
    numbers("v_min_f32", LESSER),
    numbers("v_max_f32", GREATER),
    // Half precision.
    half(propagates("v_add_f16", "%r = fadd F %a, %b")),
    half(propagates("v_sub_f16", "%r = fsub F %a, %b")),
    half(propagates("v_subrev_f16", "%r = fsub F %b, %a")),
    half(propagates("v_mul_f16", "%r = fmul F %a, %b")),
    low_half(propagates("v_fma_f16", FUSED_HALF)),
    low_half(propagates("v_fmac_f16", FUSED_HALF)),
    half(numbers("v_min_f16", LESSER)),
    half(numbers("v_max_f16", GREATER)),
    half(propagates("v_floor_f16", call!("floor", "F", "%a"))),
    half(propagates("v_ceil_f16", call!("ceil", "F", "%a"))),
    half(propagates("v_trunc_f16", call!("trunc", "F", "%a"))),
    half(propagates("v_rndne_f16", call!("roundeven", "F", "%a"))),
    half(propagates("v_cvt_f16_f32", "%x = bitcast F %a to W\n%r = bitcast W %x to F")),
    propagates("v_cvt_f32_f16", "%x = bitcast F %a to W\n%r = bitcast W %x to F"),
    // Double precision.
    propagates("v_add_f64", "%r = fadd E %a, %b"),
    propagates("v_mul_f64", "%r = fmul E %a, %b"),
    propagates("v_fma_f64", call!("fma", "E", "%a", "%b", "%c")),
    propagates("v_fmac_f64", call!("fma", "E", "%a", "%b", "%c")),
    propagates("v_floor_f64", call!("floor", "E", "%a")),
    propagates("v_ceil_f64", call!("ceil", "E", "%a")),
    propagates("v_trunc_f64", call!("trunc", "E", "%a")),
    propagates("v_rndne_f64", call!("roundeven", "E", "%a")),
    numbers(
        "v_min_f64",
        "%less = fcmp olt E %a, %b\n%not = fcmp ule E %a, %b\n%bits = bitcast E %a to D\n\
         %negative = icmp slt D %bits, zeroinitializer\n%tie = and M %not, %negative\n\
         %first = or M %less, %tie\n%r = select M %first, E %a, E %b",
    ),
    numbers(
        "v_max_f64",
        "%more = fcmp ogt E %a, %b\n%not = fcmp uge E %a, %b\n%bits = bitcast E %b to D\n\
         %negative = icmp slt D %bits, zeroinitializer\n%tie = and M %not, %negative\n\
         %first = or M %more, %tie\n%r = select M %first, E %a, E %b",
    ),
    propagates("v_cvt_f32_f64", "%r = fptrunc E %a to F"),
    propagates("v_cvt_f64_f32", "%r = fpext F %a to E"),
    // Conversions.
    any("v_cvt_f32_i32", "%r = sitofp W %a to F"),
    any("v_cvt_f32_u32", "%r = uitofp W %a to F"),
    any("v_cvt_i32_f32", "%r = call W @llvm.fptosi.sat.W.F(F %a)"),
    any("v_cvt_u32_f32", "%r = call W @llvm.fptoui.sat.W.F(F %a)"),
    any("v_cvt_f64_i32", "%r = sitofp W %a to E"),
    any("v_cvt_f64_u32", "%r = uitofp W %a to E"),
    any("v_cvt_f32_ubyte0", "%x = and W %a, #255\n%r = uitofp W %x to F"),
    any("v_cvt_f32_ubyte1", "%y = lshr W %a, #8\n%x = and W %y, #255\n%r = uitofp W %x to F"),
    any("v_cvt_f32_ubyte2", "%y = lshr W %a, #16\n%x = and W %y, #255\n%r = uitofp W %x to F"),
    any("v_cvt_f32_ubyte3", "%x = lshr W %a, #24\n%r = uitofp W %x to F"),
    // Comparisons.
    any("v_cmp_lt_i32", "%r = icmp slt W %a, %b"),
    any("v_cmp_eq_i32", "%r = icmp eq W %a, %b"),
    any("v_cmp_le_i32", "%r = icmp sle W %a, %b"),
    any("v_cmp_gt_i32", "%r = icmp sgt W %a, %b"),
    any("v_cmp_ne_i32", "%r = icmp ne W %a, %b"),
    any("v_cmp_ge_i32", "%r = icmp sge W %a, %b"),
    any("v_cmp_lt_u32", "%r = icmp ult W %a, %b"),
    any("v_cmp_eq_u32", "%r = icmp eq W %a, %b"),
    any("v_cmp_le_u32", "%r = icmp ule W %a, %b"),
    any("v_cmp_gt_u32", "%r = icmp ugt W %a, %b"),
    any("v_cmp_ne_u32", "%r = icmp ne W %a, %b"),
    any("v_cmp_ge_u32", "%r = icmp uge W %a, %b"),
    any("v_cmp_lt_i64", "%r = icmp slt D %a, %b"),
    any("v_cmp_eq_i64", "%r = icmp eq D %a, %b"),
    any("v_cmp_le_i64", "%r = icmp sle D %a, %b"),
    any("v_cmp_gt_i64", "%r = icmp sgt D %a, %b"),
    any("v_cmp_ne_i64", "%r = icmp ne D %a, %b"),
    any("v_cmp_ge_i64", "%r = icmp sge D %a, %b"),
    any("v_cmp_lt_u64", "%r = icmp ult D %a, %b"),
    any("v_cmp_eq_u64", "%r = icmp eq D %a, %b"),
    any("v_cmp_le_u64", "%r = icmp ule D %a, %b"),
    any("v_cmp_gt_u64", "%r = icmp ugt D %a, %b"),
    any("v_cmp_ne_u64", "%r = icmp ne D %a, %b"),
    any("v_cmp_ge_u64", "%r = icmp uge D %a, %b"),
    any("v_cmp_lt_f32", "%r = fcmp olt F %a, %b"),
    any("v_cmp_eq_f32", "%r = fcmp oeq F %a, %b"),
    any("v_cmp_le_f32", "%r = fcmp ole F %a, %b"),
    any("v_cmp_gt_f32", "%r = fcmp ogt F %a, %b"),
    any("v_cmp_lg_f32", "%r = fcmp one F %a, %b"),
    any("v_cmp_ge_f32", "%r = fcmp oge F %a, %b"),
    any("v_cmp_o_f32", "%r = fcmp ord F %a, %b"),
    any("v_cmp_u_f32", "%r = fcmp uno F %a, %b"),
    any("v_cmp_nge_f32", "%r = fcmp ult F %a, %b"),
    any("v_cmp_nlg_f32", "%r = fcmp ueq F %a, %b"),
    any("v_cmp_ngt_f32", "%r = fcmp ule F %a, %b"),
    any("v_cmp_nle_f32", "%r = fcmp ugt F %a, %b"),
    any("v_cmp_neq_f32", "%r = fcmp une F %a, %b"),
    any("v_cmp_nlt_f32", "%r = fcmp uge F %a, %b"),
    any("v_cmp_lt_f64", "%r = fcmp olt E %a, %b"),
    any("v_cmp_eq_f64", "%r = fcmp oeq E %a, %b"),
    any("v_cmp_le_f64", "%r = fcmp ole E %a, %b"),
    any("v_cmp_gt_f64", "%r = fcmp ogt E %a, %b"),
    any("v_cmp_lg_f64", "%r = fcmp one E %a, %b"),
    any("v_cmp_ge_f64", "%r = fcmp oge E %a, %b"),
    any("v_cmp_nge_f64", "%r = fcmp ult E %a, %b"),
    any("v_cmp_nlg_f64", "%r = fcmp ueq E %a, %b"),
    any("v_cmp_ngt_f64", "%r = fcmp ule E %a, %b"),
    any("v_cmp_nle_f64", "%r = fcmp ugt E %a, %b"),
    any("v_cmp_neq_f64", "%r = fcmp une E %a, %b"),
    any("v_cmp_nlt_f64", "%r = fcmp uge E %a, %b"),
];

/// All of them.
#[cfg(test)]
pub fn all() -> &'static [Lowering] {
    TABLE
}
