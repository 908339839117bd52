//! Cube map coordinates, checked against the table of faces.

use super::exact::{Rule, SINGLE, Term};
use super::{MODES, Sources, check, flushed_if, flushes, operation, samples};

/// A coordinate axis (0 for x, 1 for y, 2 for z), possibly negated.
#[derive(Clone, Copy)]
struct SignedAxis {
    axis: usize,
    negated: bool,
}

const fn plus(axis: usize) -> SignedAxis {
    SignedAxis { axis, negated: false }
}

const fn minus(axis: usize) -> SignedAxis {
    SignedAxis { axis, negated: true }
}

/// The number of a face, and the axes of s and t.
type Face = (u64, [SignedAxis; 2]);

/// Faces by major axis (x, y, z) and its sign (OpenGL specification, "Selection of cube map
/// images").
const FACES: [[Face; 2]; 3] = [
    [(0, [minus(2), minus(1)]), (1, [plus(2), minus(1)])],
    [(2, [plus(0), plus(2)]), (3, [plus(0), minus(2)])],
    [(4, [plus(0), minus(1)]), (5, [minus(0), minus(1)])],
];

#[test]
pub fn coordinates_match_face_table() {
    for mode in MODES {
        let rule = Rule::from_mode(SINGLE, mode);
        let [flush_sources, flush_results] = flushes(SINGLE, mode);
        let check = |name: &str, reference: &dyn Fn([u64; 3], usize) -> u64| {
            check(name, mode, &samples(operation(name), 2000), |s: &Sources| {
                let axes = [s[0], s[1], s[2]].map(|bits| flushed_if(flush_sources, SINGLE, bits));
                // Comparisons with a NaN are false.
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
                    // The first NaN among the sources is returned.
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
        let coordinate = |axes: [u64; 3], SignedAxis { axis, negated }: SignedAxis| {
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
