//! Matrix operations give the same bits at every SIMD level of the host.

use super::wide::{SCALE_A, execute, wave};
use super::{A, B, C, D, Random};
use crate::execute::operations::whole_wave_operations;
use crate::instruction::Op;
use crate::wave::{Level, Machine, Row, RowIndex, Wave};
use flipwave_isa::ScaleFormat;

/// Returns a generator of register words for A or B: arbitrary, near one, near zero, or close
/// together in a format, with some zeros.
fn factors(random: &mut Random) -> impl Fn(&mut Random) -> u32 + use<> {
    let (and, or) = [
        (u32::MAX, 0),
        (u32::MAX, 0x2000_0000),
        (0xbfff_bfff, 0),
        (0x87ff_87ff, 0x3000_3000),
        (0xbfbf_bfbf, 0),
        (0x8787_8787, 0x3030_3030),
        (0x8f8f_8f8f, 0x2020_2020),
        (0x80ff_80ff, 0x3f00_3f00),
        (0x8fff_8fff, 0x1000_1000),
        (0x807f_807f, 0),
        // Small halves, and denormals of few digits.
        (0x9fff_9fff, 0),
        (0x8003_8003, 0),
        // Small numbers next to greater ones.
        (0x8003_87ff, 0x3000),
    ][random.next() as usize % 13];
    let zeros = [0, 0, 2, 8][random.next() as usize % 4];
    move |random| {
        let word = random.next() as u32 & and | or;
        if random.next() % 16 < zeros {
            word & [0, 0xffff, 0xffff_0000, 0xff00_ff00][random.next() as usize % 4]
        } else {
            word
        }
    }
}

/// Returns a generator of register words for C.
fn addends(random: &mut Random) -> impl Fn(&mut Random) -> u32 + use<> {
    let kind = random.next() % 8;
    move |random| {
        let bits = random.next() as u32;
        match kind {
            0 => bits,
            1 => 0,
            2 => bits & 0x8000_0000,
            3 => bits & 0x807f_ffff,
            4 => bits & 0x8fff_ffff | 0x4000_0000,
            5 => bits & 0x81ff_ffff | 0x1000_0000,
            6 => bits & 0x81ff_ffff | 0x2800_0000,
            _ => bits & 0x81ff_ffff | 0x3e00_0000,
        }
    }
}

fn fill(
    wave: &mut Wave,
    first: u16,
    count: u16,
    random: &mut Random,
    word: impl Fn(&mut Random) -> u32,
) {
    for row in first..first + count {
        *wave.row_mut(RowIndex(row)) = Row(std::array::from_fn(|_| word(random)));
    }
}

/// Returns a wave with random matrices at A, B and C.
pub(super) fn random_wave(machine: Machine, random: &mut Random) -> Wave {
    let mut wave = wave("gfx90a");
    wave.machine = machine;
    for first in [A, B] {
        let word = factors(random);
        fill(&mut wave, first, 16, random, word);
    }
    let word = addends(random);
    fill(&mut wave, C, 32, random, word);
    wave
}

/// Executes an operation at the least and the best level and compares the results.
fn compare(name: &str, before: &Wave, change: impl Fn(&mut Op)) {
    let results = [Level::Plain, Level::detect()].map(|level| {
        let mut after = before.clone();
        after.level = level;
        execute(name, &mut after, &change);
        after
    });
    for row in D..D + 32 {
        let [one, other] = [0, 1].map(|at| results[at].row(RowIndex(row)).0);
        if let Some(lane) = (0..64).find(|lane| one[*lane] != other[*lane]) {
            panic!(
                "{:?} {name}: register {} lane {lane} is {:#x} and {:#x}, after {:#x}",
                before.machine.generation,
                row - D,
                one[lane],
                other[lane],
                before.row(RowIndex(C + row - D)).0[lane]
            );
        }
    }
}

#[test]
fn mfma_results_are_equal_at_every_level() {
    let mut random = Random(5);
    for processor in ["gfx908", "gfx90a", "gfx942", "gfx950"] {
        let machine = wave(processor).machine;
        let operations = whole_wave_operations(machine).map(|operation| operation.name);
        for name in operations.filter(|name| name.starts_with("v_mfma")) {
            let is_rearranged =
                !["f8f6f4", "f64", "ld_scale"].iter().any(|excluded| name.contains(excluded));
            for round in 0..120 {
                let before = random_wave(machine, &mut random);
                let [blgp, cbsz, abid] = if is_rearranged && round % 4 == 0 {
                    [8, 4, 8].map(|end| (random.next() % end) as u8)
                } else {
                    [0; 3]
                };
                compare(name, &before, |op| {
                    let modifiers = &mut op.inst_mut().modifiers;
                    (modifiers.blgp, modifiers.cbsz, modifiers.abid) = (blgp, cbsz, abid);
                });
            }
        }
    }
}

#[test]
fn sparse_mfma_results_are_equal_at_every_level() {
    let mut random = Random(9);
    for processor in ["gfx942", "gfx950"] {
        let machine = wave(processor).machine;
        let operations = whole_wave_operations(machine).map(|operation| operation.name);
        for name in operations.filter(|name| name.starts_with("v_smfmac")) {
            for round in 0..60 {
                let mut before = random_wave(machine, &mut random);
                let word = addends(&mut random);
                fill(&mut before, D, 16, &mut random, word);
                // Mostly two different positions of each four.
                if round % 8 != 0 {
                    fill(&mut before, C, 1, &mut random, |random| {
                        let fours: Vec<u64> = (0..8)
                            .map(|_| random.choose(&[1, 2, 3, 4, 6, 7, 8, 9, 0xb, 0xc, 0xd, 0xe]))
                            .collect();
                        fours.iter().fold(0, |word, four| word << 4 | *four as u32)
                    });
                }
                let [cbsz, abid] = [2, 4].map(|end| (random.next() % end) as u8);
                compare(name, &before, |op| {
                    let modifiers = &mut op.inst_mut().modifiers;
                    (modifiers.cbsz, modifiers.abid) = (cbsz, abid);
                });
            }
        }
    }
}

#[test]
fn scaled_mfma_results_are_equal_at_every_level() {
    let mut random = Random(8);
    let machine = wave("gfx950").machine;
    let operations = whole_wave_operations(machine).map(|operation| operation.name);
    for name in operations.filter(|name| name.starts_with("v_mfma") && name.contains("f8f6f4")) {
        for _ in 0..300 {
            let mut before = random_wave(machine, &mut random);
            fill(&mut before, SCALE_A, 2, &mut random, scales);
            let [a, b] = [0, 1].map(|_| (random.next() % 5) as u8);
            let [low, high] = [0, 1].map(|_| (random.next() % 4) as u8);
            compare(name, &before, |op| {
                let modifiers = &mut op.inst_mut().modifiers;
                (modifiers.cbsz, modifiers.blgp) = (a, b);
                (modifiers.op_sel, modifiers.op_sel_hi) = (Some(low), Some(high));
            });
        }
    }
}

/// Four scales, mostly near one in some format.
fn scales(random: &mut Random) -> u32 {
    let bits = random.next() as u32;
    match random.next() % 4 {
        0 => bits,
        1 => bits & 0x0f0f_0f0f | 0x3030_3030,
        _ => bits & 0x0303_0303 | 0x7c7c_7c7c,
    }
}

/// Changes the modifiers of WMMA and SWMMAC.
fn change_modifiers(op: &mut Op, random: &mut Random) {
    let modifiers = &mut op.inst_mut().modifiers;
    modifiers.neg_lo = (random.next() % 8) as u8;
    modifiers.neg_hi = (random.next() % 8) as u8;
    modifiers.clamp = random.next().is_multiple_of(2);
    modifiers.op_sel = Some((random.next() % 8) as u8);
    modifiers.index_key = (random.next() % 4) as u8;
    modifiers.scale_rows = std::array::from_fn(|_| random.next().is_multiple_of(2));
    modifiers.scale_formats = std::array::from_fn(|_| {
        [ScaleFormat::E8, ScaleFormat::E5M3, ScaleFormat::E4M3][random.next() as usize % 3]
    });
    (modifiers.cbsz, modifiers.blgp) = ((random.next() % 5) as u8, (random.next() % 5) as u8);
}

#[test]
fn wmma_results_are_equal_at_every_level() {
    let mut random = Random(6);
    for (processor, lanes) in
        [("gfx1100", 32), ("gfx1100", 64), ("gfx1201", 32), ("gfx1201", 64), ("gfx1250", 32)]
    {
        let machine = Machine::new(&processor.parse().expect("a target"), lanes);
        let operations = whole_wave_operations(machine).map(|operation| operation.name);
        // The other operations are those of gfx1250.
        let is_older = |name: &str| {
            name.contains("16x16x16_")
                || name.ends_with("16x16x32_iu4")
                || name.starts_with("v_swmmac") && processor == "gfx1201"
        };
        let is_own = |name: &&str| {
            (name.starts_with("v_wmma") || name.starts_with("v_swmmac"))
                && (processor == "gfx1250") != is_older(name)
        };
        for name in operations.filter(is_own) {
            for _ in 0..60 {
                let mut before = random_wave(machine, &mut random);
                fill(&mut before, SCALE_A, 4, &mut random, scales);
                let seed = random.next();
                compare(name, &before, |op| change_modifiers(op, &mut Random(seed)));
            }
        }
    }
}
