//! Minima, maxima and medians of numbers. Lanes with NaN sources bail out.

use super::lowering::{Lowering, half, line, low_half, numbers};

/// The smaller or greater of two numbers that are not NaNs, with minus zero less than plus zero:
/// `$a` if the first comparison holds, or if neither is strict and `$bits`, one of the numbers, has
/// a minus sign.
macro_rules! extreme {
    ($before:literal, $unless:literal, $bits:literal, $a:literal, $b:literal, $r:literal) => {
        concat!(
            line!($r, ".first = fcmp ", $before, " F ", $a, ", ", $b),
            line!($r, ".not = fcmp ", $unless, " F ", $a, ", ", $b),
            line!($r, ".bits = bitcast F ", $bits, " to W"),
            line!($r, ".minus = icmp slt W ", $r, ".bits, zeroinitializer"),
            line!($r, ".tie = and M ", $r, ".not, ", $r, ".minus"),
            line!($r, ".takes = or M ", $r, ".first, ", $r, ".tie"),
            concat!($r, " = select M ", $r, ".takes, F ", $a, ", F ", $b)
        )
    };
}
macro_rules! lesser {
    ($a:literal, $b:literal, $r:literal) => {
        extreme!("olt", "ule", $a, $a, $b, $r)
    };
}
macro_rules! greater {
    ($a:literal, $b:literal, $r:literal) => {
        extreme!("ogt", "uge", $b, $a, $b, $r)
    };
}
const LESSER: &str = lesser!("%a", "%b", "%r");
const GREATER: &str = greater!("%a", "%b", "%r");
const LEAST: &str = concat!(lesser!("%a", "%b", "%x"), "\n", lesser!("%x", "%c", "%r"));
const GREATEST: &str = concat!(greater!("%a", "%b", "%x"), "\n", greater!("%x", "%c", "%r"));
const LESSER_OF_GREATER: &str =
    concat!(greater!("%a", "%b", "%x"), "\n", lesser!("%x", "%c", "%r"));
const GREATER_OF_LESSER: &str =
    concat!(lesser!("%a", "%b", "%x"), "\n", greater!("%x", "%c", "%r"));

/// Median of three numbers that are not NaNs: the greater of the two that remain without one that
/// equals the greatest. Zeros of both signs are equal.
const MEDIAN: &str = concat!(
    greater!("%a", "%b", "%ab"),
    "\n",
    greater!("%ab", "%c", "%top"),
    "\n%isa = fcmp oeq F %a, %top\n%isb = fcmp oeq F %b, %top\n%any = or M %isa, %isb\n\
     %one = select M %isa, F %b, F %a\n%other = select M %any, F %c, F %b\n",
    greater!("%one", "%other", "%r")
);

const LESSER_DOUBLE: &str = "%less = fcmp olt E %a, %b\n%not = fcmp ule E %a, %b\n\
     %bits = bitcast E %a to D\n%negative = icmp slt D %bits, zeroinitializer\n\
     %tie = and M %not, %negative\n%first = or M %less, %tie\n%r = select M %first, E %a, E %b";
const GREATER_DOUBLE: &str = "%more = fcmp ogt E %a, %b\n%not = fcmp uge E %a, %b\n\
     %bits = bitcast E %b to D\n%negative = icmp slt D %bits, zeroinitializer\n\
     %tie = and M %not, %negative\n%first = or M %more, %tie\n%r = select M %first, E %a, E %b";

pub const TABLE: &[Lowering] = &[
    // Single precision
    numbers("v_min_f32", LESSER),
    numbers("v_max_f32", GREATER),
    numbers("v_min3_f32", LEAST),
    numbers("v_max3_f32", GREATEST),
    numbers("v_maxmin_f32", LESSER_OF_GREATER),
    numbers("v_minmax_f32", GREATER_OF_LESSER),
    numbers("v_med3_f32", MEDIAN),
    numbers("v_min_num_f32", LESSER),
    numbers("v_max_num_f32", GREATER),
    numbers("v_min3_num_f32", LEAST),
    numbers("v_max3_num_f32", GREATEST),
    numbers("v_maxmin_num_f32", LESSER_OF_GREATER),
    numbers("v_minmax_num_f32", GREATER_OF_LESSER),
    numbers("v_med3_num_f32", MEDIAN),
    numbers("v_minimum_f32", LESSER),
    numbers("v_maximum_f32", GREATER),
    numbers("v_minimum3_f32", LEAST),
    numbers("v_maximum3_f32", GREATEST),
    numbers("v_maximumminimum_f32", LESSER_OF_GREATER),
    numbers("v_minimummaximum_f32", GREATER_OF_LESSER),
    // Double precision
    numbers("v_min_f64", LESSER_DOUBLE),
    numbers("v_min_num_f64", LESSER_DOUBLE),
    numbers("v_minimum_f64", LESSER_DOUBLE),
    numbers("v_max_f64", GREATER_DOUBLE),
    numbers("v_max_num_f64", GREATER_DOUBLE),
    numbers("v_maximum_f64", GREATER_DOUBLE),
    // Half precision
    half(numbers("v_min_f16", LESSER)),
    half(numbers("v_max_f16", GREATER)),
    low_half(numbers("v_min3_f16", LEAST)),
    low_half(numbers("v_max3_f16", GREATEST)),
    low_half(numbers("v_maxmin_f16", LESSER_OF_GREATER)),
    low_half(numbers("v_minmax_f16", GREATER_OF_LESSER)),
    low_half(numbers("v_med3_f16", MEDIAN)),
    low_half(numbers("v_min_num_f16", LESSER)),
    low_half(numbers("v_max_num_f16", GREATER)),
    low_half(numbers("v_min3_num_f16", LEAST)),
    low_half(numbers("v_max3_num_f16", GREATEST)),
    low_half(numbers("v_maxmin_num_f16", LESSER_OF_GREATER)),
    low_half(numbers("v_minmax_num_f16", GREATER_OF_LESSER)),
    low_half(numbers("v_med3_num_f16", MEDIAN)),
    low_half(numbers("v_minimum_f16", LESSER)),
    low_half(numbers("v_maximum_f16", GREATER)),
    low_half(numbers("v_minimum3_f16", LEAST)),
    low_half(numbers("v_maximum3_f16", GREATEST)),
    low_half(numbers("v_maximumminimum_f16", LESSER_OF_GREATER)),
    low_half(numbers("v_minimummaximum_f16", GREATER_OF_LESSER)),
];
