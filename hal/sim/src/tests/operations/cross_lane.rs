//! Cross-lane moves to and from scalars, exchanges, lane counts, and preserved halves.

use super::{DEFAULT_MODE, LANES, Random, control, instruction, levels, operation};
use crate::execute::operations::find_whole;
use crate::instruction::{Op, Run, Source, Word};
use crate::tests::bench::op;
use crate::wave::{RowIndex, ScalarIndex, Wave};
use flipwave_isa::LaneMask;

fn wave(exec: u64) -> Wave {
    let mut random = Random(5);
    let mut wave = Wave::new(levels()[0]);
    wave.vgpr_count = 256;
    wave.mode = DEFAULT_MODE;
    wave.set_exec(LaneMask(exec));
    for row in &mut wave.rows[..128] {
        row.0.iter_mut().for_each(|word| *word = random.next() as u32);
    }
    wave
}

fn execute(name: &str, wave: &mut Wave, prepare: impl Fn(&mut Op)) {
    let name = control::operation(name);
    let operation = find_whole(name, wave.machine).unwrap_or_else(|| panic!("missing: {name}"));
    let mut op = op(Run::Whole(operation.function));
    prepare(&mut op);
    (operation.function)(wave, &op);
}

fn row(index: u16) -> [Word; 2] {
    [Word::Row(RowIndex(index)), Word::Row(RowIndex(index + 1))]
}

#[test]
pub fn readlane_matches_reference() {
    let destination = ScalarIndex(20);
    for (exec, first) in [(u64::MAX, 0), (0xff00, 8), (1 << 63, 63), (0, 0)] {
        let mut wave = wave(exec);
        execute("v_readfirstlane_b32", &mut wave, |op| {
            op.scalar_destination = destination;
            op.sources[0].words = row(3);
        });
        let expected = wave.row(RowIndex(3)).0[first];
        assert!(wave.scalar(destination) == expected, "v_readfirstlane_b32: {exec:#x}");
    }
    for (select, lane) in [(0, 0), (41, 41), (64 + 7, 7)] {
        let mut wave = wave(0);
        execute("v_readlane_b32", &mut wave, |op| {
            op.scalar_destination = destination;
            op.sources[0].words = row(3);
            op.sources[1].words = [Word::Constant(select); 2];
        });
        assert_eq!(wave.scalar(destination), wave.row(RowIndex(3)).0[lane]);
    }
}

#[test]
pub fn writelane_matches_reference() {
    let mut wave = wave(0);
    let before = *wave.row(RowIndex(9));
    execute("v_writelane_b32", &mut wave, |op| {
        op.destination = RowIndex(9);
        op.sources[0].words = [Word::Constant(77); 2];
        op.sources[1].words = [Word::Constant(64 + 5); 2];
    });
    for lane in 0..LANES {
        let expected = if lane == 5 { 77 } else { before.0[lane] };
        assert_eq!(wave.row(RowIndex(9)).0[lane], expected);
    }
    assert_eq!(wave.written_lanes, Some(LaneMask(1 << 5)));
}

#[test]
pub fn swap_exchanges_registers() {
    let exec = 0x0123_4567_89ab_cdef;
    let mut wave = wave(exec);
    let (first, second) = (*wave.row(RowIndex(1)), *wave.row(RowIndex(2)));
    execute("v_swap_b32", &mut wave, |op| {
        op.destination = RowIndex(1);
        op.sources[0].words = row(2);
    });
    for lane in 0..LANES {
        let active = exec >> lane & 1 != 0;
        let [one, other] = [first.0[lane], second.0[lane]];
        let now = [wave.row(RowIndex(1)).0[lane], wave.row(RowIndex(2)).0[lane]];
        assert_eq!(now, if active { [other, one] } else { [one, other] });
    }
}

#[test]
pub fn swap_exchanges_register_halves() {
    let exec = 0xfedc_ba98_7654_3210;
    // Bit mask of the operands that are high halves.
    for high in 0..4u8 {
        let mut wave = wave(exec);
        let before = [1, 2].map(|index| *wave.row(RowIndex(index)));
        execute("v_swap_b16", &mut wave, |op| {
            op.destination = RowIndex(1);
            op.sources[0].words = row(2);
            op.inst_mut().modifiers.op_sel = Some(high);
        });
        let shift = |operand: u8| if high >> operand & 1 != 0 { 16 } else { 0 };
        let (first, second) = (shift(0), shift(1));
        for lane in 0..LANES {
            let [mut one, mut other] = before.map(|row| row.0[lane]);
            if exec >> lane & 1 != 0 {
                let halves = [one >> first & 0xffff, other >> second & 0xffff];
                one = one & !(0xffff << first) | halves[1] << first;
                other = other & !(0xffff << second) | halves[0] << second;
            }
            let now = [1, 2].map(|index| wave.row(RowIndex(index)).0[lane]);
            assert_eq!(now, [one, other], "lane {lane}, {high:#b}");
        }
    }
}

/// Lanes in odd groups of the first register and in even groups of the second are exchanged.
#[test]
pub fn permlane_swap_exchanges_rows() {
    use flipwave_isa::{Dpp, DppControl};
    for (name, group) in [("v_permlane16_swap_b32", 16), ("v_permlane32_swap_b32", 32)] {
        for exec in [u64::MAX, 0x0123_4567_89ab_cdef] {
            for (fetch_inactive, bound_control) in [(false, false), (true, false), (false, true)] {
                let mut wave = wave(exec);
                let (first, second) = (*wave.row(RowIndex(1)), *wave.row(RowIndex(2)));
                execute(name, &mut wave, |op| {
                    op.destination = RowIndex(1);
                    op.sources[0].words = row(2);
                    op.inst_mut().modifiers.dpp = Some(Dpp {
                        control: DppControl::QuadPerm([0, 1, 2, 3]),
                        row_mask: 15,
                        bank_mask: 15,
                        bound_control,
                        fetch_inactive,
                    });
                });
                let active = |lane: usize| exec >> lane & 1 != 0;
                let arrives = |lane: usize, from: usize, current: u32, moved: u32| {
                    if !active(lane) {
                        current
                    } else if active(from) || fetch_inactive {
                        moved
                    } else if bound_control {
                        0
                    } else {
                        current
                    }
                };
                for lane in 0..LANES {
                    let now = [1, 2].map(|index| wave.row(RowIndex(index)).0[lane]);
                    let (one, other) = (first.0[lane], second.0[lane]);
                    let wanted = if lane / group % 2 == 1 {
                        let from = lane - group;
                        [arrives(lane, from, one, second.0[from]), other]
                    } else {
                        let from = lane + group;
                        [one, arrives(lane, from, other, first.0[from])]
                    };
                    assert_eq!(now, wanted, "{name}: lane {lane} of {exec:#x}");
                }
            }
        }
    }
}

#[test]
pub fn masked_sums_of_absolute_differences_match_reference() {
    let mut wave = wave(u64::MAX);
    let before = wave.clone();
    execute("v_mqsad_u32_u8", &mut wave, |op| {
        op.destination = RowIndex(100);
        for (source, first) in op.sources.iter_mut().zip([0, 4, 8]) {
            source.words = row(first);
        }
    });
    for lane in 0..LANES {
        let word = |index: u16| before.row(RowIndex(index)).0[lane];
        let bytes: Vec<u8> = [word(0), word(1)].into_iter().flat_map(u32::to_le_bytes).collect();
        for at in 0..4 {
            let sum = (0..4).fold(word(8 + at as u16), |sum, byte| {
                let reference = word(4).to_le_bytes()[byte];
                let difference = i32::from(bytes[at + byte]) - i32::from(reference);
                if reference == 0 { sum } else { sum.wrapping_add(difference.unsigned_abs()) }
            });
            assert_eq!(wave.row(RowIndex(100 + at as u16)).0[lane], sum);
        }
    }
}

/// Executes a vector operation on registers 0, 2, 4.
fn apply(name: &str, wave: &mut Wave) {
    let mut op = instruction(operation(name), levels()[0]);
    op.destination = RowIndex(100);
    let Run::Vector(function) = op.run else { panic!("not a vector operation") };
    // SAFETY: the plain level needs no host features.
    unsafe { function(wave, &op) };
}

#[test]
pub fn mbcnt_counts_lower_lanes() {
    let mut wave = wave(u64::MAX);
    let before = wave.clone();
    apply("v_mbcnt_lo_u32_b32", &mut wave);
    let low = *wave.row(RowIndex(100));
    apply("v_mbcnt_hi_u32_b32", &mut wave);
    for lane in 0..LANES {
        let mask = before.row(RowIndex(0)).0[lane];
        let base = before.row(RowIndex(2)).0[lane];
        let count = |range: std::ops::Range<usize>| {
            range.filter(|bit| mask >> (bit % 32) & 1 != 0).count() as u32
        };
        let expected = base.wrapping_add(count(0..lane.min(32)));
        assert!(low.0[lane] == expected, "v_mbcnt_lo_u32_b32: lane {lane}");
        let high = wave.row(RowIndex(100)).0[lane];
        assert_eq!(high, base.wrapping_add(count(32..lane.max(32))));
    }
}

#[test]
fn halves_are_kept_or_cleared() {
    let kept = [
        ("v_mad_u16", 0xffff_0000),
        ("v_fma_f16", 0xffff_0000),
        ("v_mac_f16", 0xffff_0000),
        ("v_med3_i16", 0xffff_0000),
        ("v_fma_mixlo_f16", 0xffff_0000),
        ("v_fma_mixhi_f16", 0x0000_ffff),
    ];
    for (name, mask) in kept {
        let mut wave = wave(u64::MAX);
        let before = *wave.row(RowIndex(100));
        apply(name, &mut wave);
        let after = wave.row(RowIndex(100));
        assert_ne!(after.0, before.0, "{name}");
        assert!((0..LANES).all(|lane| (after.0[lane] ^ before.0[lane]) & mask == 0), "{name}");
    }
    for name in ["v_add_u16", "v_add_f16", "v_mad_legacy_u16", "v_fma_legacy_f16"] {
        let mut wave = wave(u64::MAX);
        apply(name, &mut wave);
        assert!(wave.row(RowIndex(100)).0.iter().all(|word| word >> 16 == 0), "{name}");
    }
}

#[test]
fn inactive_lanes_keep_their_values() {
    let exec = 0x8000_0000_ffff_0001;
    for level in levels() {
        let mut wave = wave(exec);
        let before = wave.clone();
        let op = instruction(operation("v_add_u32"), level);
        let Run::Vector(function) = op.run else { panic!("not a vector operation") };
        // SAFETY: `levels` returns only levels that the host supports.
        unsafe { function(&mut wave, &op) };
        for lane in 0..LANES {
            let value = |index: u16| before.row(RowIndex(index)).0[lane];
            let sum = value(0).wrapping_add(value(2));
            let expected = if exec >> lane & 1 != 0 { sum } else { value(100) };
            assert_eq!(wave.row(RowIndex(100)).0[lane], expected);
        }
    }
}

#[test]
fn scalars_and_constants_are_broadcast() {
    for level in levels() {
        let mut wave = wave(u64::MAX);
        wave.write_scalar(ScalarIndex(30), 1000);
        let mut op = instruction(operation("v_sub_u32"), level);
        op.sources[0] = Source { words: [Word::Scalar(ScalarIndex(30)); 2] };
        op.sources[1] = Source { words: [Word::Constant(7); 2] };
        let Run::Vector(function) = op.run else { panic!("not a vector operation") };
        // SAFETY: `levels` returns only levels that the host supports.
        unsafe { function(&mut wave, &op) };
        assert_eq!(wave.row(op.destination).0, [993; LANES]);
    }
}
