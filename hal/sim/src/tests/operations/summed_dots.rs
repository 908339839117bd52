//! Dot products of RDNA 3 and RDNA 4, checked against their rule in fixed point and against
//! published results of each chip.

use super::{DEFAULT_MODE, Random, Sources, check};
use crate::tests::bench::Bench;
use crate::wave::Mode;
use half::{bf16, f16};

/// Exponent of a unit: all terms of the samples are multiples of it.
const POINT: i32 = -80;

/// Returns the magnitude of a number in units.
fn fixed(value: f64) -> i128 {
    (value.abs() * 2f64.powi(-POINT)) as i128
}

/// Returns the exponent of a nonzero number.
fn exponent(value: f64) -> i32 {
    value.abs().log2().floor() as i32
}

/// Returns a magnitude in units of `2^grid`, truncated.
fn cut(magnitude: i128, grid: i32) -> i128 {
    if grid < POINT { magnitude << (POINT - grid) } else { magnitude >> (grid - POINT) }
}

/// A sum of `units * 2^grid`.
struct Scaled {
    units: i128,
    grid: i32,
}

/// Factors and third source of a sample.
struct Terms {
    factors: [[f64; 2]; 2],
    /// Least exponent of a factor.
    least: i32,
    third: f64,
}

impl Terms {
    /// Returns the greatest exponent sum of a nonzero product.
    fn of_factors(&self) -> Option<i32> {
        let sum = |pair: &[f64; 2]| {
            pair.map(|factor| exponent(factor).max(self.least)).iter().sum::<i32>()
        };
        self.factors.iter().filter(|[a, b]| a * b != 0.0).map(sum).max()
    }

    fn products(&self) -> [f64; 2] {
        self.factors.map(|[a, b]| a * b)
    }

    /// Returns the sum by the rule of RDNA 3.
    fn gfx11(&self) -> Scaled {
        let terms = [self.third, self.products()[0], self.products()[1]];
        let tops = terms.iter().filter(|term| **term != 0.0).map(|term| exponent(*term) - 26);
        let Some(top) = tops.max() else { return Scaled { units: 0, grid: 0 } };
        let grid = top.max(self.of_factors().map_or(top, |exponent| exponent - 24));
        let sign = if self.third.is_sign_negative() { -1 } else { 1 };
        let units = terms.iter().map(|term| {
            let units = cut(fixed(*term), grid);
            let agrees = term.is_sign_negative() == self.third.is_sign_negative();
            if agrees { units } else { -units - 1 }
        });
        Scaled { units: units.sum::<i128>() * sign, grid }
    }

    /// Returns the sum by the rule of RDNA 4. The exponent of the third source counts as at least
    /// `least`.
    fn gfx12(&self, least: i32) -> Scaled {
        let floor = |negative: bool, magnitude: i128, grid: i32| {
            let units = cut(magnitude, grid);
            let rest = grid > POINT && magnitude & ((1 << (grid - POINT)) - 1) != 0;
            if negative { -units - i128::from(rest) } else { units }
        };
        let third = if self.third == 0.0 { least } else { exponent(self.third).max(least) };
        let Some(factors) = self.of_factors() else {
            let grid = third - 26;
            return Scaled { units: floor(self.third < 0.0, fixed(self.third), grid), grid };
        };
        let product_grid = factors - 24;
        let pair: i128 =
            self.products().iter().map(|term| floor(*term < 0.0, fixed(*term), product_grid)).sum();
        let grid = product_grid.max(third - 26);
        let pair = if grid > product_grid { pair >> (grid - product_grid) } else { pair };
        let is_lost = grid > least && cut(fixed(self.third), grid) == 0;
        let third = if is_lost { 0 } else { floor(self.third < 0.0, fixed(self.third), grid) };
        Scaled { units: pair + third, grid }
    }
}

/// Rounds a sum to nearest even. The samples give neither denormal nor infinite results.
fn single(Scaled { units, grid }: Scaled) -> u64 {
    let value = units as f32 * 2f32.powi(grid / 2) * 2f32.powi(grid - grid / 2);
    if value == 0.0 { 0 } else { value.to_bits().into() }
}

fn half(Scaled { units, grid }: Scaled) -> u64 {
    let value = f16::from_f64(units as f64 * 2f64.powi(grid));
    if units == 0 || value.to_bits() << 1 == 0 { 0 } else { value.to_bits().into() }
}

/// Returns pairs of halves with some zeros and denormals, or of bfloat16 of moderate size, and
/// third sources.
fn sampled(is_brain: bool) -> Vec<Sources> {
    let mut random = Random(0xd07);
    let factor = |random: &mut Random| {
        let bits = random.next();
        match bits >> 60 {
            0 => bits & 0x8000,
            1 if !is_brain => bits & 0x83ff,
            _ if is_brain => bits & 0x807f | (107 + (bits >> 32) % 40) << 7,
            _ => bits & 0x83ff | (1 + (bits >> 32) % 30) << 10,
        }
    };
    let word = |random: &mut Random| factor(random) | factor(random) << 16;
    (0..6000)
        .map(|_| {
            let [a, b] = [(); 2].map(|()| word(&mut random));
            let bits = random.next();
            let third = match bits >> 61 {
                0 => bits & 0x8000_0000,
                _ => bits & 0x807f_ffff | (92 + (bits >> 32) % 70) << 23,
            };
            [a, b, third, 0]
        })
        .collect()
}

fn terms(s: &Sources, is_brain: bool, third: f64) -> Terms {
    let value = |bits: u64| {
        let bits = bits as u16;
        if is_brain { bf16::from_bits(bits).to_f64() } else { f16::from_bits(bits).to_f64() }
    };
    let factors = [[s[0], s[1]], [s[0] >> 16, s[1] >> 16]].map(|pair| pair.map(value));
    Terms { factors, least: if is_brain { -126 } else { -14 }, third }
}

#[test]
pub fn sums_match_the_chips() {
    for (word, is_newer) in [("gfx11", false), ("gfx12", true)] {
        for (name, is_brain) in [
            ("v_dot2_f32_f16", false),
            ("v_dot2c_f32_f16", false),
            ("v_dot2_f32_bf16", true),
            ("v_dot2acc_f32_bf16", true),
        ] {
            check(&format!("{name} {word}"), DEFAULT_MODE, &sampled(is_brain), |s| {
                let terms = terms(s, is_brain, f32::from_bits(s[2] as u32).into());
                single(if is_newer { terms.gfx12(-126) } else { terms.gfx11() })
            });
        }
    }
    let samples: Vec<Sources> = sampled(false)
        .into_iter()
        .map(|[a, b, third, _]| [a, b, (third ^ third >> 16) & 0xbfff, 0])
        .collect();
    check("v_dot2_f16_f16 gfx12", DEFAULT_MODE, &samples, |s| {
        half(terms(s, false, f16::from_bits(s[2] as u16).to_f64()).gfx12(-14))
    });
}

/// NaN factors take precedence over invalid products, then the third source.
#[test]
pub fn nan_results_match_the_chips() {
    const ONE: u64 = 0x3c00;
    const INFINITY: u64 = 0x7c00;
    const NAN: u64 = 0x7d01;
    const SINGLE_NAN: u64 = 0x7f80_0101;
    const SINGLE_INFINITY: u64 = 0x7f80_0000;
    for word in ["gfx11", "gfx12"] {
        for name in ["v_dot2_f32_f16", "v_dot2c_f32_f16"].map(|name| format!("{name} {word}")) {
            for (a, b, third, expected) in [
                (NAN, ONE, SINGLE_NAN, 0xffc0_0a3d),
                (INFINITY, 0, SINGLE_NAN, 0xffc0_0000),
                (INFINITY | INFINITY << 16, ONE | (ONE | 0x8000) << 16, 0, 0xffc0_0000),
                (ONE, ONE, SINGLE_NAN, 0x7fc0_0101),
                (INFINITY, ONE, 0, SINGLE_INFINITY),
                (INFINITY, ONE | 0x8000, SINGLE_INFINITY, 0xffc0_0000),
                (ONE, ONE, SINGLE_INFINITY | 1 << 31, SINGLE_INFINITY | 1 << 31),
            ] {
                check(&name, DEFAULT_MODE, &[[a, b, third, 0]], |_| expected);
            }
        }
    }
    check("v_dot2_f16_f16 gfx12", DEFAULT_MODE, &[[NAN, ONE, 0, 0]], |_| 0xfe3d);
    check("v_dot2_f16_f16 gfx12", DEFAULT_MODE, &[[INFINITY, 0, 0, 0]], |_| 0xfe00);
    let greatest: Sources = [0x7bff, 0x7bff, 0, 0];
    check("v_dot2_f16_f16 gfx12", DEFAULT_MODE, &[greatest], |_| INFINITY);
    let clamps = Mode(DEFAULT_MODE.0 | Mode::FP16_OVERFLOW);
    check("v_dot2_f16_f16 gfx12", clamps, &[greatest], |_| 0x7bff);
}

/// Published results of each chip, and the orders of the manuals.
#[test]
fn dot_products_match_published_results() {
    const BIG: u32 = 0x4b80_0000;
    const MINUS_ONE: u32 = 0xbf80_0000;
    // 4 and 4, 8 and 6.
    const FOURS: u32 = 0x4400_4400;
    const EIGHT_AND_SIX: u32 = 0x4600_4800;
    const ONES: u32 = 0x3c00_3c00;
    let half = "v_dot2_f32_f16 v4, v1, v2, v4";
    let accumulated = "v_dot2c_f32_f16 v4, v1, v2";
    let brain = "v_dot2_f32_bf16 v4, v1, v2, v4";
    for (processor, text, a, b, third, expected) in [
        // ROCm/rocm-systems issue 12056.
        ("gfx1151", half, FOURS, EIGHT_AND_SIX, MINUS_ONE, 0x425c_0001),
        ("gfx1100", half, FOURS, EIGHT_AND_SIX, MINUS_ONE, 0x425c_0001),
        ("gfx1201", half, FOURS, EIGHT_AND_SIX, MINUS_ONE, 0x425c_0000),
        ("gfx1151", brain, 0x0001, 0x4980, 0, 0),
        ("gfx1151", brain, 0x0700, 0x3f80, 0, 0x0700_0000),
        ("gfx1151", half, ONES, ONES, BIG, BIG + 1),
        // llvm-project pull request 205101.
        ("gfx90a", half, 0x8001, 0x0400, 0, 0),
        ("gfx90a", accumulated, 0x8001, 0x0400, 0, 0),
        ("gfx950", half, 0x8001, 0x0400, 0, 0xac80_0000),
        ("gfx950", accumulated, 0x8001, 0x0400, 0, 0xac80_0000),
        ("gfx906", half, 0x8001, 0x0400, 0, 0xac80_0000),
        ("gfx1030", half, 0x8001, 0x0400, 0, 0xac80_0000),
        // Order of the manuals: products first, or the third source first.
        ("gfx90a", half, ONES, ONES, BIG, BIG + 1),
        ("gfx1030", half, ONES, ONES, BIG, BIG + 1),
        ("gfx942", half, ONES, ONES, BIG, BIG),
        ("gfx950", half, ONES, ONES, BIG, BIG),
    ] {
        for mode in [DEFAULT_MODE, Mode(0x300), Mode(0x1f0)] {
            let mut bench = Bench::with_lanes(processor, lanes(processor));
            bench.wave.mode = mode;
            for (register, word) in [(1, a), (2, b), (4, third)] {
                bench.set_lanes(register, |_| word);
            }
            bench.run(text).unwrap_or_else(|fault| panic!("{processor}: {text}: {fault}"));
            let found = bench.lanes(4)[5];
            assert_eq!(found, expected, "{processor}, {:#x}: {text}: {found:#x}", mode.0);
        }
    }
}

fn lanes(processor: &str) -> u8 {
    if processor.starts_with("gfx9") { 64 } else { 32 }
}
