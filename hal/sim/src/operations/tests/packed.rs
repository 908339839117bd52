//! Packed and mixed precision, and dot products of halves, against exact sums.

use super::exact::{DOUBLE, Format, HALF, SINGLE, rounded_sum};
use super::{DEFAULT_MODE, Random, Sources, check, levels, operation, samples};
use crate::op::Run;
use crate::translate::translate;
use crate::wave::{RowIndex, Wave};
use flipwave_isa::{Isa, LaneMask, Pc, Target};

/// A product of two and a sum with a third, rounded once; NaNs and infinities by way of the
/// host's double precision, which holds all of these exactly.
fn fused(format: Format, a: u64, b: u64, c: u64) -> u64 {
    if let Some(nan) = [a, b, c].into_iter().find(|bits| format.is_nan(*bits)) {
        return nan | format.quiet_bit();
    }
    let terms = [a, b, c].map(|bits| format.term(bits));
    if [a, b, c].iter().any(|bits| format.is_infinite(*bits)) {
        let wide = [a, b, c].map(|bits| {
            let magnitude = if format.is_infinite(bits) {
                f64::INFINITY
            } else {
                f64::from_bits(rounded_sum(DOUBLE, &[format.term(bits & !format.sign())]))
            };
            if format.is_negative(bits) { -magnitude } else { magnitude }
        });
        let result = wide[0] * wide[1] + wide[2];
        return if result.is_nan() {
            format.default_nan()
        } else {
            format.infinity() | if result < 0.0 { format.sign() } else { 0 }
        };
    }
    rounded_sum(format, &[terms[0].times(terms[1]), terms[2]])
}

const ONE_HALF: u64 = 0x3c00;
const ONE_SINGLE: u64 = 0x3f80_0000;

/// Applies a reference to both elements.
fn both(s: &Sources, bits: u32, element: impl Fn([u64; 3]) -> u64) -> u64 {
    let part = |shift: u32| element([0, 1, 2].map(|i| s[i] >> shift & ((1 << bits) - 1)));
    part(0) | part(bits) << bits
}

/// The sum by a product with one. A NaN must not become that of the one's place.
fn sum(format: Format, one: u64, a: u64, b: u64) -> u64 {
    fused(format, a, one, b)
}

/// The product, whose zero has the sign of the product.
fn product(format: Format, a: u64, b: u64) -> u64 {
    let negative = format.is_negative(a) != format.is_negative(b);
    fused(format, a, b, if negative { format.sign() } else { 0 })
}

#[test]
fn pairs_of_halves() {
    let check = |name: &str, element: &dyn Fn([u64; 3]) -> u64| {
        check(name, DEFAULT_MODE, &samples(operation(name), 4000), |s| both(s, 16, element));
    };
    check("v_pk_add_f16", &|[a, b, _]| sum(HALF, ONE_HALF, a, b));
    check("v_pk_mul_f16", &|[a, b, _]| product(HALF, a, b));
    check("v_pk_fma_f16", &|[a, b, c]| fused(HALF, a, b, c));
    check("v_pk_fmac_f16", &|[a, b, c]| fused(HALF, a, b, c));
    let place = |bits: u64| {
        let magnitude = (bits & 0x7fff) as i64;
        if bits & 0x8000 != 0 { -magnitude - 1 } else { magnitude }
    };
    let choose = |[a, b, _]: [u64; 3], least: bool| {
        let signalling = |bits: &u64| HALF.is_nan(*bits) && bits & 0x200 == 0;
        match [a, b].iter().find(|bits| signalling(bits)) {
            Some(nan) => nan | 0x200,
            None if HALF.is_nan(a) => b,
            None if HALF.is_nan(b) => a,
            None if (place(a) < place(b)) == least => a,
            None => b,
        }
    };
    check("v_pk_min_f16", &|elements| choose(elements, true));
    check("v_pk_max_f16", &|elements| choose(elements, false));
}

#[test]
fn pairs_of_singles() {
    let check = |name: &str, element: &dyn Fn([u64; 3]) -> u64| {
        check(name, DEFAULT_MODE, &samples(operation(name), 4000), |s| both(s, 32, element));
    };
    check("v_pk_add_f32", &|[a, b, _]| sum(SINGLE, ONE_SINGLE, a, b));
    check("v_pk_mul_f32", &|[a, b, _]| product(SINGLE, a, b));
    check("v_pk_fma_f32", &|[a, b, c]| fused(SINGLE, a, b, c));
}

/// Half precision of a single-precision result.
fn halved(bits: u64) -> u64 {
    let sign = bits >> 16 & 0x8000;
    if SINGLE.is_nan(bits) {
        sign | 0x7e00 | bits >> 13 & 0x3ff
    } else if SINGLE.is_infinite(bits) {
        sign | 0x7c00
    } else {
        rounded_sum(HALF, &[SINGLE.term(bits)])
    }
}

#[test]
fn mixed_precision() {
    let samples = samples(operation("v_fma_mix_f32"), 4000);
    check("v_fma_mix_f32", DEFAULT_MODE, &samples, |s| fused(SINGLE, s[0], s[1], s[2]));
    check("v_fma_mixlo_f16", DEFAULT_MODE, &samples, |s| halved(fused(SINGLE, s[0], s[1], s[2])));
    check("v_fma_mixhi_f16", DEFAULT_MODE, &samples, |s| {
        halved(fused(SINGLE, s[0], s[1], s[2])) << 16
    });
}

#[test]
fn dot_products_of_halves() {
    let widened = |bits: u64| {
        let sign = (bits & 0x8000) << 16;
        if HALF.is_nan(bits) {
            sign | 0x7fc0_0000 | (bits & 0x3ff) << 13
        } else if HALF.is_infinite(bits) {
            sign | 0x7f80_0000
        } else {
            rounded_sum(SINGLE, &[HALF.term(bits)])
        }
    };
    for name in ["v_dot2_f32_f16", "v_dot2c_f32_f16"] {
        check(name, DEFAULT_MODE, &samples(operation(name), 4000), |s| {
            let [a0, b0, a1, b1] =
                [s[0], s[1], s[0] >> 16, s[1] >> 16].map(|bits| widened(bits & 0xffff));
            let sources = [a0, b0, a1, b1, s[2]];
            if let Some(nan) = sources.into_iter().find(|bits| SINGLE.is_nan(*bits)) {
                return nan | SINGLE.quiet_bit();
            }
            let products =
                sum(SINGLE, ONE_SINGLE, product(SINGLE, a0, b0), product(SINGLE, a1, b1));
            sum(SINGLE, ONE_SINGLE, products, s[2])
        });
    }
}

/// Half-precision sources in either half, with signs, as instructions ask for them.
#[test]
fn mixed_sources_of_an_instruction() {
    let target: Target = "gfx90a".parse().expect("a target");
    let isa = Isa::new(&target).expect("LLVM has gfx90a");
    let text = "v_fma_mix_f32 v8, -v1, |v2|, v3 op_sel:[1,0,0] op_sel_hi:[1,1,0]";
    let bytes = isa.assemble(text).expect("an instruction");
    let mut random = Random(17);
    for level in levels() {
        let op = translate(isa.decode(&bytes, Pc(0)).expect("an instruction"), level);
        let Run::Vector(function) = op.run else { panic!("{text} is not executed") };
        let mut wave = Wave::new(level);
        wave.mode = DEFAULT_MODE;
        wave.set_exec(LaneMask::FULL);
        for row in &mut wave.rows[..4] {
            // Moderate exponents in all formats.
            row.0.iter_mut().for_each(|word| *word = random.next() as u32 & 0xbbff_bbff);
        }
        // SAFETY: `levels` gives what the host has.
        unsafe { function(&mut wave, &op) };
        for lane in 0..64 {
            let word = |index: u16| u64::from(wave.row(RowIndex(index)).0[lane]);
            let widen = |bits: u64| rounded_sum(SINGLE, &[HALF.term(bits & 0xffff)]);
            let a = widen(word(1) >> 16) ^ SINGLE.sign();
            let b = widen(word(2)) & !SINGLE.sign();
            assert_eq!(word(8), fused(SINGLE, a, b, word(3)), "lane {lane}");
        }
    }
}
