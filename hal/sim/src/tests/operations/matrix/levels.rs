//! Matrix operations give the same bits whatever vectors the host has.

use super::wide::{execute, wave};
use super::{A, B, C, D, Random};
use crate::execute::operations::whole_wave_operations;
use crate::wave::{Level, Row, RowIndex, Wave};

/// Words of the registers of A or B: anything, or what formats have near one, near zero, or close
/// together, with zeros among them.
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
    ][random.next() as usize % 10];
    let zeros = [0, 0, 2, 8][random.next() as usize % 4];
    move |random| {
        let word = random.next() as u32 & and | or;
        match random.next() % 16 < zeros {
            true => word & [0, 0xffff, 0xffff_0000, 0xff00_ff00][random.next() as usize % 4],
            false => word,
        }
    }
}

/// Words of the registers of C.
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

#[test]
fn matrices_are_the_same_at_each_level() {
    let best = Level::detect();
    let mut random = Random(5);
    for processor in ["gfx908", "gfx90a", "gfx942", "gfx950"] {
        let machine = wave(processor).machine;
        let names: Vec<&str> = whole_wave_operations(machine)
            .map(|operation| operation.name)
            .filter(|name| name.starts_with("v_mfma") && !name.contains("ld_scale"))
            .collect();
        for name in names {
            for _ in 0..40 {
                let mut before = wave(processor);
                for first in [A, B] {
                    let word = factors(&mut random);
                    fill(&mut before, first, 8, &mut random, word);
                }
                let word = addends(&mut random);
                fill(&mut before, C, 32, &mut random, word);
                let [blgp, cbsz, abid] = match random.next() % 4 {
                    0 if !name.contains("f8f6f4") && !name.contains("f64") => {
                        [8, 4, 8].map(|end| (random.next() % end) as u8)
                    }
                    _ => [0; 3],
                };
                let results = [Level::Plain, best].map(|level| {
                    let mut after = before.clone();
                    after.level = level;
                    execute(name, &mut after, |op| {
                        let modifiers = &mut op.inst.modifiers;
                        (modifiers.blgp, modifiers.cbsz, modifiers.abid) = (blgp, cbsz, abid);
                    });
                    after
                });
                for row in D..D + 32 {
                    let [one, other] = [0, 1].map(|at| results[at].row(RowIndex(row)).0);
                    if let Some(lane) = (0..64).find(|lane| one[*lane] != other[*lane]) {
                        panic!(
                            "{processor} {name} {blgp} {cbsz} {abid}: register {} lane {lane} is \
                             {:#x} and {:#x}, after {:#x}",
                            row - D,
                            one[lane],
                            other[lane],
                            before.row(RowIndex(C + row - D)).0[lane]
                        );
                    }
                }
            }
        }
    }
}
