//! Points at which functions are compared.

use super::precision::Precision;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// Operands of a function: numbers of every magnitude, with more of moderate size and more between -1 and
/// 1.
pub fn of(function: &str, precision: Precision, count: usize) -> Vec<[f64; 3]> {
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let mut points: Vec<[f64; 3]> =
        (0..count).map(|_| std::array::from_fn(|_| number(&mut random, precision))).collect();
    for [x, y, _] in &mut points {
        match function {
            "ldexp" => *y = (y.abs() % 300.0).trunc().copysign(*y),
            "lgamma" => *x = precision.round(x.abs().max(3.0)),
            // Below zero, ROCm's device libraries 5.2 have errors of tens of units in single precision, and
            // below -32 an intermediate product overflows.
            "tgamma" if precision == Precision::Single => *x = x.abs(),
            _ => {}
        }
    }
    points
}

/// A finite number, often of moderate size.
fn number(random: &mut ChaCha8Rng, precision: Precision) -> f64 {
    let word = random.next_u64();
    let fraction = (word >> 12) as f64 / (1u64 << 52) as f64;
    let sign = if word & 1 == 0 { 1.0 } else { -1.0 };
    let number = match word >> 1 & 3 {
        0 => any(random, precision),
        1 => fraction,
        _ => (1.0 + fraction) * 2f64.powi((word >> 3 & 15) as i32 - 8),
    };
    precision.round(sign * number)
}

/// Any finite number.
fn any(random: &mut ChaCha8Rng, precision: Precision) -> f64 {
    loop {
        let word = random.next_u64();
        let number = match precision {
            Precision::Half => half::f16::from_bits(word as u16 & 0x7fff).to_f64(),
            Precision::Single => f64::from(f32::from_bits(word as u32 & 0x7fff_ffff)),
            Precision::Double => f64::from_bits(word >> 1),
        };
        if number.is_finite() {
            return number;
        }
    }
}
