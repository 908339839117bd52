//! Cube map coordinates against the table of the faces.

use super::exact::{Rule, SINGLE, Term};
use super::{MODES, Sources, check, flushed_if, flushes, operation, samples};

/// The number of a face, and the axes of s and t with whether they are negated.
type Face = (u64, [(usize, bool); 2]);

/// By major axis (x, y, z) and its sign (OpenGL specification, "Selection of cube map images").
const FACES: [[Face; 2]; 3] = [
    [(0, [(2, true), (1, true)]), (1, [(2, false), (1, true)])],
    [(2, [(0, false), (2, false)]), (3, [(0, false), (2, true)])],
    [(4, [(0, false), (1, true)]), (5, [(0, true), (1, true)])],
];

#[test]
pub fn coordinates() {
    for mode in MODES {
        let rule = Rule::of(SINGLE, mode);
        let [flush_sources, flush_results] = flushes(SINGLE, mode);
        let check = |name: &str, reference: &dyn Fn([u64; 3], usize) -> u64| {
            check(name, mode, &samples(operation(name), 2000), |s: &Sources| {
                let axes = [s[0], s[1], s[2]].map(|bits| flushed_if(flush_sources, SINGLE, bits));
                // A comparison with a NaN is false.
                let magnitude = |axis: usize| {
                    (!SINGLE.is_nan(axes[axis])).then_some(axes[axis] & !SINGLE.sign())
                };
                let reaches = |a, b| magnitude(a).zip(magnitude(b)).is_some_and(|(a, b)| a >= b);
                let major = match () {
                    () if reaches(2, 0) && reaches(2, 1) => 2,
                    () if reaches(1, 0) => 1,
                    () => 0,
                };
                let result = reference(axes, major);
                let quiet = if SINGLE.is_nan(result) {
                    // The first NaN among the sources comes out.
                    axes.into_iter().find(|bits| SINGLE.is_nan(*bits)).unwrap_or(result)
                        | SINGLE.quiet_bit()
                } else {
                    result
                };
                flushed_if(flush_results, SINGLE, quiet)
            });
        };
        let face = |axes: [u64; 3], major: usize| {
            let bits = axes[major];
            let below_zero =
                SINGLE.is_negative(bits) && !SINGLE.is_zero(bits) && !SINGLE.is_nan(bits);
            FACES[major][usize::from(below_zero)]
        };
        let coordinate = |axes: [u64; 3], (axis, negated): (usize, bool)| {
            axes[axis] ^ if negated { SINGLE.sign() } else { 0 }
        };
        check("v_cubeid_f32", &|axes, major| {
            Rule::nearest(SINGLE).rounded(&[Term::integer(face(axes, major).0.into())])
        });
        check("v_cubesc_f32", &|axes, major| coordinate(axes, face(axes, major).1[0]));
        check("v_cubetc_f32", &|axes, major| coordinate(axes, face(axes, major).1[1]));
        check("v_cubema_f32", &|axes, major| {
            let bits = axes[major];
            if SINGLE.is_nan(bits) || SINGLE.is_infinite(bits) {
                return bits;
            }
            let term = SINGLE.term(bits);
            rule.rounded(&[Term { exponent: term.exponent + 1, ..term }])
        });
    }
}
