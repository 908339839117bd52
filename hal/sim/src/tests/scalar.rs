//! The scalar operations against unbounded arithmetic and bit-by-bit definitions.

use crate::execute::lane::Kind;
use crate::execute::scalar::find;
use crate::instruction::{Run, Source, Word};
use crate::tests::bench;
use crate::tests::operations::{Random, control, edges};
use crate::wave::{Level, ScalarIndex, Wave};
use flipwave_isa::LaneMask;

/// Inputs of an operation: the sources in order, then the destination if it is also read; SCC,
/// EXEC, and the immediate.
struct Case {
    sources: [u64; 3],
    scc: bool,
    exec: u64,
    immediate: i64,
}

impl Case {
    fn u(&self, source: usize, bits: u32) -> i128 {
        i128::from(self.sources[source]) & ((1 << bits) - 1)
    }

    fn s(&self, source: usize, bits: u32) -> i128 {
        let value = self.u(source, bits);
        if value >> (bits - 1) != 0 { value - (1 << bits) } else { value }
    }

    fn bit(&self, source: usize, at: i128) -> bool {
        self.sources[source] >> at & 1 != 0
    }

    /// Bit field described by the second source: offset in the low bits, width in bits 22:16.
    fn field(&self, size: u32, signed: bool) -> i128 {
        let offset = self.u(1, 32) & i128::from(size - 1);
        let width = (self.u(1, 32) >> 16 & 0x7f).min(i128::from(size) - offset) as u32;
        let field = (self.u(0, size) >> offset) & ((1 << width) - 1);
        if signed && width > 0 && field >> (width - 1) != 0 { field - (1 << width) } else { field }
    }
}

/// Expected results. `None` leaves SCC or EXEC unchanged.
#[derive(Default)]
struct Expected {
    value: Option<i128>,
    scc: Option<bool>,
    exec: Option<u64>,
}

fn value(value: i128) -> Expected {
    Expected { value: Some(value), ..Expected::default() }
}

fn flag(scc: bool) -> Expected {
    Expected { scc: Some(scc), ..Expected::default() }
}

fn flagged(value: i128, scc: bool) -> Expected {
    Expected { value: Some(value), scc: Some(scc), ..Expected::default() }
}

/// The result, with SCC set if any of its bits is set.
fn nonzero(value: i128, bits: u32) -> Expected {
    flagged(value, value & ((1 << bits) - 1) != 0)
}

fn fits_i32(value: i128) -> bool {
    i32::try_from(value).is_ok()
}

fn from_bits(count: u32, bit: impl Fn(u32) -> bool) -> i128 {
    (0..count).map(|at| i128::from(bit(at)) << at).sum()
}

fn position(mut places: impl Iterator<Item = bool>) -> i128 {
    places.position(|found| found).map_or(-1, |at| at as i128)
}

/// Compares an operation with the expected results on edge cases and random values. `bits` is the
/// width of the result.
fn check(name: &str, bits: u32, expected: impl Fn(&Case) -> Expected) {
    let operation = find(control::operation(name)).unwrap_or_else(|| panic!("missing: {name}"));
    if control::records() {
        return;
    }
    let mut random = Random(31);
    let edges = edges(Kind::Wide);
    let pairs = edges.iter().flat_map(|a| edges.iter().map(move |b| [*a, *b]));
    let mut sources: Vec<[u64; 2]> = pairs.collect();
    sources.extend((0..1000).map(|_| [random.next(), random.next()]));
    for [a, b] in sources {
        let case = Case {
            sources: [a, b, random.next()],
            scc: random.next() & 1 != 0,
            exec: random.choose(&[0, 1, u64::MAX, 0xff00, a]),
            immediate: i64::from(b as i16),
        };
        let mut op = bench::op(Run::Scalar(operation.run));
        for (slot, value) in op.sources.iter_mut().zip(case.sources) {
            let words = [Word::Constant(value as u32), Word::Constant((value >> 32) as u32)];
            *slot = Source { words };
        }
        op.scalar_destination = ScalarIndex(10);
        op.immediate = case.immediate;
        let mut wave = Wave::new(Level::Plain);
        wave.scc = case.scc;
        wave.set_exec(LaneMask(case.exec));
        wave.write_scalar_pair(ScalarIndex(10), OLD);
        (operation.run)(&mut wave, &op);
        let expected = expected(&case);
        let mask = ((1u128 << bits) - 1) as u64;
        let value = expected.value.map_or(OLD, |value| value as u64 & mask | OLD & !mask);
        let got = (wave.scalar_pair(ScalarIndex(10)), wave.scc, wave.exec().0);
        let wanted = (value, expected.scc.unwrap_or(case.scc), expected.exec.unwrap_or(case.exec));
        assert!(
            got == wanted,
            "{name} {:x?} scc {} exec {:#x} immediate {}: {got:x?}, not {wanted:x?}",
            case.sources,
            case.scc,
            case.exec,
            case.immediate
        );
    }
}

/// Value of the destination before the operation.
const OLD: u64 = 0x5555_5555_5555_5555;

#[test]
pub fn arithmetic_matches_reference() {
    check("s_add_u32", 32, |c| {
        let sum = c.u(0, 32) + c.u(1, 32);
        flagged(sum, sum >> 32 != 0)
    });
    check("s_sub_u32", 32, |c| flagged(c.u(0, 32) - c.u(1, 32), c.u(0, 32) < c.u(1, 32)));
    check("s_add_i32", 32, |c| {
        let sum = c.s(0, 32) + c.s(1, 32);
        flagged(sum, !fits_i32(sum))
    });
    check("s_sub_i32", 32, |c| {
        let difference = c.s(0, 32) - c.s(1, 32);
        flagged(difference, !fits_i32(difference))
    });
    check("s_addc_u32", 32, |c| {
        let sum = c.u(0, 32) + c.u(1, 32) + i128::from(c.scc);
        flagged(sum, sum >> 32 != 0)
    });
    check("s_subb_u32", 32, |c| {
        let difference = c.u(0, 32) - c.u(1, 32) - i128::from(c.scc);
        flagged(difference, difference < 0)
    });
    check("s_addk_i32", 32, |c| {
        let sum = c.s(0, 32) + i128::from(c.immediate);
        flagged(sum, !fits_i32(sum))
    });
    check("s_mulk_i32", 32, |c| value(c.s(0, 32) * i128::from(c.immediate)));
    check("s_add_nc_u64", 64, |c| value(c.u(0, 64) + c.u(1, 64)));
    check("s_sub_nc_u64", 64, |c| value(c.u(0, 64) - c.u(1, 64)));
    check("s_mul_u64", 64, |c| value(c.u(0, 64).wrapping_mul(c.u(1, 64))));
    check("s_mul_i32", 32, |c| value(c.s(0, 32) * c.s(1, 32)));
    check("s_mul_hi_u32", 32, |c| value((c.u(0, 32) * c.u(1, 32)) >> 32));
    check("s_mul_hi_i32", 32, |c| value((c.s(0, 32) * c.s(1, 32)) >> 32));
    check("s_min_i32", 32, |c| flagged(c.s(0, 32).min(c.s(1, 32)), c.s(0, 32) < c.s(1, 32)));
    check("s_min_u32", 32, |c| flagged(c.u(0, 32).min(c.u(1, 32)), c.u(0, 32) < c.u(1, 32)));
    check("s_max_i32", 32, |c| flagged(c.s(0, 32).max(c.s(1, 32)), c.s(0, 32) > c.s(1, 32)));
    check("s_max_u32", 32, |c| flagged(c.u(0, 32).max(c.u(1, 32)), c.u(0, 32) > c.u(1, 32)));
    check("s_abs_i32", 32, |c| nonzero(c.s(0, 32).abs(), 32));
    check("s_absdiff_i32", 32, |c| {
        // The difference wraps before its absolute value is taken.
        let difference = (c.s(0, 32) - c.s(1, 32)) as i32;
        nonzero(i128::from(difference).abs(), 32)
    });
    for shift in 1..=4 {
        check(&format!("s_lshl{shift}_add_u32"), 32, |c| {
            let sum = (c.u(0, 32) << shift) + c.u(1, 32);
            flagged(sum, sum >> 32 != 0)
        });
    }
}

/// Computes a result bit from a bit of each source.
type Gate = fn(bool, bool) -> bool;

const GATES: [(&str, Gate); 10] = [
    ("and", |a, b| a && b),
    ("or", |a, b| a || b),
    ("xor", |a, b| a != b),
    ("andn2", |a, b| a && !b),
    ("orn2", |a, b| a || !b),
    ("nand", |a, b| !(a && b)),
    ("nor", |a, b| !(a || b)),
    ("xnor", |a, b| a == b),
    ("andn1", |a, b| !a && b),
    ("orn1", |a, b| !a || b),
];

#[test]
pub fn logic_matches_reference() {
    for (name, gate) in GATES {
        for bits in [32, 64] {
            if !name.ends_with("n1") {
                check(&format!("s_{name}_b{bits}"), bits, |c| {
                    let result = |at: u32| gate(c.bit(0, at.into()), c.bit(1, at.into()));
                    nonzero(from_bits(bits, result), bits)
                });
            }
        }
        let with_exec =
            |c: &Case| from_bits(64, |at| gate(c.bit(0, at.into()), c.exec >> at & 1 != 0));
        check(&format!("s_{name}_saveexec_b64"), 64, |c| {
            let new = with_exec(c) as u64;
            Expected { value: Some(c.exec.into()), scc: Some(new != 0), exec: Some(new) }
        });
        // The 32-bit forms keep the upper half of EXEC.
        let with_low = |c: &Case| {
            let new = with_exec(c) as u32;
            (new, Some(c.exec & !0xffff_ffff | u64::from(new)))
        };
        check(&format!("s_{name}_saveexec_b32"), 32, |c| {
            let (new, exec) = with_low(c);
            let saved = i128::from(c.exec as u32);
            Expected { value: Some(saved), scc: Some(new != 0), exec }
        });
        if ["andn1", "andn2"].contains(&name) {
            check(&format!("s_{name}_wrexec_b32"), 32, |c| {
                let (new, exec) = with_low(c);
                Expected { value: Some(new.into()), scc: Some(new != 0), exec }
            });
            check(&format!("s_{name}_wrexec_b64"), 64, |c| {
                let new = with_exec(c) as u64;
                Expected { value: Some(new.into()), scc: Some(new != 0), exec: Some(new) }
            });
        }
    }
    for bits in [32, 64] {
        let name = |operation: &str| format!("s_{operation}_b{bits}");
        check(&name("not"), bits, |c| nonzero(from_bits(bits, |at| !c.bit(0, at.into())), bits));
        check(&name("mov"), bits, |c| value(c.u(0, bits)));
        check(&name("cmov"), bits, |c| value(c.u(usize::from(!c.scc), bits)));
        check(&name("cselect"), bits, |c| value(c.u(usize::from(!c.scc), bits)));
        check(&name("brev"), bits, |c| {
            value(from_bits(bits, |at| c.bit(0, (bits - 1 - at).into())))
        });
        check(&name("wqm"), bits, |c| {
            nonzero(from_bits(bits, |at| (0..4).any(|i| c.bit(0, (at / 4 * 4 + i).into()))), bits)
        });
        check(&name("quadmask"), bits, |c| {
            nonzero(from_bits(bits / 4, |at| (0..4).any(|i| c.bit(0, (at * 4 + i).into()))), bits)
        });
        for set in [false, true] {
            let digit = u32::from(set);
            check(&format!("s_bitset{digit}_b{bits}"), bits, |c| {
                let chosen = c.u(0, 32) % i128::from(bits);
                let bit =
                    |at: u32| if i128::from(at) == chosen { set } else { c.bit(1, at.into()) };
                value(from_bits(bits, bit))
            });
            check(&format!("s_bitcmp{digit}_b{bits}"), 0, |c| {
                flag(c.bit(0, c.u(1, 32) % i128::from(bits)) == set)
            });
            check(&format!("s_bcnt{digit}_i32_b{bits}"), 32, |c| {
                let count = (0..bits).filter(|at| c.bit(0, (*at).into()) == set).count();
                nonzero(count as i128, 32)
            });
            check(&format!("s_ff{digit}_i32_b{bits}"), 32, |c| {
                value(position((0..bits).map(|at| c.bit(0, at.into()) == set)))
            });
        }
        check(&format!("s_flbit_i32_b{bits}"), 32, |c| {
            value(position((0..bits).rev().map(|at| c.bit(0, at.into()))))
        });
    }
    for (name, bits) in [("s_flbit_i32", 32), ("s_flbit_i32_i64", 64)] {
        check(name, 32, |c| {
            let sign = c.bit(0, i128::from(bits) - 1);
            value(position((0..bits).rev().map(|at| c.bit(0, at.into()) != sign)))
        });
    }
    check("s_bitreplicate_b64_b32", 64, |c| value(from_bits(64, |at| c.bit(0, (at / 2).into()))));
}

#[test]
pub fn shifts_and_fields_match_reference() {
    for bits in [32, 64] {
        let by = move |c: &Case| c.u(1, 32) % i128::from(bits);
        check(&format!("s_lshl_b{bits}"), bits, |c| nonzero(c.u(0, bits) << by(c), bits));
        check(&format!("s_lshr_b{bits}"), bits, |c| nonzero(c.u(0, bits) >> by(c), bits));
        check(&format!("s_ashr_i{bits}"), bits, |c| nonzero(c.s(0, bits) >> by(c), bits));
        check(&format!("s_bfm_b{bits}"), bits, |c| {
            value(((1 << (c.u(0, 32) % i128::from(bits))) - 1) << by(c))
        });
        check(&format!("s_bfe_u{bits}"), bits, |c| nonzero(c.field(bits, false), bits));
        check(&format!("s_bfe_i{bits}"), bits, |c| nonzero(c.field(bits, true), bits));
    }
    check("s_sext_i32_i8", 32, |c| value(c.s(0, 8)));
    check("s_sext_i32_i16", 32, |c| value(c.s(0, 16)));
    check("s_pack_ll_b32_b16", 32, |c| value(c.u(0, 16) | c.u(1, 16) << 16));
    check("s_pack_lh_b32_b16", 32, |c| value(c.u(0, 16) | c.u(1, 32) >> 16 << 16));
    check("s_pack_hl_b32_b16", 32, |c| value(c.u(0, 32) >> 16 | c.u(1, 16) << 16));
    check("s_pack_hh_b32_b16", 32, |c| value(c.u(0, 32) >> 16 | c.u(1, 32) >> 16 << 16));
    check("s_movk_i32", 32, |c| value(c.immediate.into()));
    check("s_cmovk_i32", 32, |c| value(if c.scc { c.immediate.into() } else { c.u(0, 32) }));
}

#[test]
pub fn comparisons_match_reference() {
    type Holds = fn(&i128, &i128) -> bool;
    let holds: [(&str, Holds); 6] = [
        ("eq", |a, b| a == b),
        ("lg", |a, b| a != b),
        ("gt", |a, b| a > b),
        ("ge", |a, b| a >= b),
        ("lt", |a, b| a < b),
        ("le", |a, b| a <= b),
    ];
    for (name, holds) in holds {
        check(&format!("s_cmp_{name}_i32"), 0, |c| flag(holds(&c.s(0, 32), &c.s(1, 32))));
        check(&format!("s_cmp_{name}_u32"), 0, |c| flag(holds(&c.u(0, 32), &c.u(1, 32))));
        check(&format!("s_cmpk_{name}_i32"), 0, |c| flag(holds(&c.s(0, 32), &c.immediate.into())));
        check(&format!("s_cmpk_{name}_u32"), 0, |c| {
            flag(holds(&c.u(0, 32), &(i128::from(c.immediate) & 0xffff)))
        });
        if ["eq", "lg"].contains(&name) {
            check(&format!("s_cmp_{name}_u64"), 0, |c| flag(holds(&c.u(0, 64), &c.u(1, 64))));
        }
    }
}
