//! Which bits of a wave's registers are marked.
//!
//! What marked bits do to a result is not written down operation by operation. The operation
//! itself shows: it is executed again on registers whose marked bits are filled with several
//! patterns, and a bit of the result is marked if it is not always the same. Copies, masks,
//! shifts, selects, packed halves, moves between lanes and matrix operations are thus exact, and
//! `x ^ x` is zero whatever `x` is. A dependence that none of the patterns shows is missed; one
//! that is not there is never reported.

use super::{Named, Slots};
use crate::execute::step::step;
use crate::instruction::{Op, Run, Word};
use crate::memory::{Memory, Region, RegionMut};
use crate::wave::{LANES, Row, RowIndex, ScalarIndex, Wave};
use flipwave_isa::LaneMask;

/// Marked bits: set in the masks.
pub struct Shadow {
    /// Of vector registers.
    pub rows: Box<[Row; RowIndex::COUNT]>,
    /// Of scalar registers.
    pub scalars: [u32; ScalarIndex::COUNT],
    /// Of SCC.
    pub scc: bool,
}

/// What marked bits are filled with, whatever the lane.
const PATTERNS: [u32; 6] = [0, !0, 0x7fff_ffff, 0x8000_0000, 0x7f7f_ffff, 0xff7f_ffff];

/// What fills marked bits.
#[derive(Clone, Copy)]
enum Filling {
    /// The same word everywhere.
    Word(u32),
    /// Words that look random; two marked registers differ.
    Scattered(u32),
    /// The bits of the other source, which makes comparisons for equality come true.
    OtherSource,
}

/// A memory with nothing in it.
struct NoMemory;

impl Memory for NoMemory {
    fn readable(&mut self, _: u64, _: usize) -> Option<Region<'_>> {
        None
    }

    fn writable(&mut self, _: u64, _: usize) -> Option<RegionMut<'_>> {
        None
    }
}

impl Shadow {
    /// Everything is marked but EXEC, which is set up, and the trap registers, which are the trap
    /// handler's.
    pub fn marked() -> Shadow {
        let mut scalars = [!0; ScalarIndex::COUNT];
        scalars[usize::from(ScalarIndex::TTMP.0)..usize::from(ScalarIndex::M0.0)].fill(0);
        scalars[usize::from(ScalarIndex::EXEC.0)..].fill(0);
        Shadow { rows: rows_of(!0), scalars, scc: true }
    }

    /// Nothing is marked.
    pub fn clear() -> Shadow {
        Shadow { rows: rows_of(0), scalars: [0; ScalarIndex::COUNT], scc: false }
    }

    /// Lanes in which a word of a source has marked bits; for scalar words, all or none.
    pub fn marked_lanes(&self, word: Word) -> LaneMask {
        match word {
            Word::Row(row) => {
                let row = &self.rows[row.place()].0;
                let bits = (0..LANES).map(|lane| u64::from(row[lane] != 0) << lane);
                LaneMask(bits.fold(0, |mask, bit| mask | bit))
            }
            Word::Scalar(index) if self.scalars[usize::from(index.0)] != 0 => LaneMask::FULL,
            Word::Scc if self.scc => LaneMask::FULL,
            _ => LaneMask::EMPTY,
        }
    }

    /// Takes the marks from bits of a register, in the active lanes.
    pub fn unmark(&mut self, row: RowIndex, lanes: &Row, bits: u32) {
        let row = &mut self.rows[row.place()];
        for lane in 0..LANES {
            row.0[lane] &= !(lanes.0[lane] & bits);
        }
    }

    /// Whether a register that an instruction writes has marks.
    pub fn marks_any(&self, named: &Named) -> bool {
        named.writes.iter().any(|(_, slots)| {
            slots.rows().any(|row| self.rows[row] != Row::ZERO)
                || self.scalars[slots.scalars()].iter().any(|bits| *bits != 0)
                || (slots.is_scc() && self.scc)
        })
    }

    /// The scalar registers that an instruction writes stay marked no more, and EXEC and what follows
    /// it neither: it has been decided to be what it is.
    pub fn unmark_scalars(&mut self, named: &Named) {
        for (_, slots) in &named.writes {
            self.scalars[slots.scalars()].fill(0);
            self.scc &= !slots.is_scc();
        }
        self.scalars[usize::from(ScalarIndex::EXEC.0)..].fill(0);
    }

    /// Follows an operation that touches no memory. `ghost` is a wave to execute it on.
    pub fn follow(&mut self, ghost: &mut Wave, wave: &Wave, op: &Op, named: &Named) {
        // Registers that an index selects are not named.
        let is_indexed = wave.mode.indexes_vgprs() || op.inst.indexes_registers();
        let lane_by_lane = matches!(op.run, Run::Vector(_) | Run::Dual) && op.lane_move().is_none();
        if !is_indexed
            && !self.is_marked(named.reads.iter().map(|(_, slots)| slots), wave, lane_by_lane)
        {
            let whole = !lane_by_lane
                && named
                    .writes
                    .iter()
                    .any(|(_, slots)| slots.rows().any(|row| self.rows[row] != Row::ZERO));
            if !whole {
                self.overwrite(wave, named);
                return;
            }
        }
        let rows = named.reads.iter().chain(&named.writes).flat_map(|(_, slots)| slots.rows());
        let mut rows: Vec<usize> = rows.collect();
        if is_indexed {
            rows.extend(wave.allocated().into_iter().flatten());
        }
        rows.sort_unstable();
        rows.dedup();
        self.compare_runs(ghost, wave, op, &rows);
    }

    /// Whether any of the registers has marked bits, in active lanes if only those count.
    fn is_marked<'a>(
        &self,
        mut registers: impl Iterator<Item = &'a Slots>,
        wave: &Wave,
        active_only: bool,
    ) -> bool {
        let exec = if active_only { *wave.exec_row() } else { Row::splat(!0) };
        registers.any(|slots| {
            slots.rows().any(|row| {
                (0..LANES).fold(0, |any, lane| any | self.rows[row].0[lane] & exec.0[lane]) != 0
            }) || self.scalars[slots.scalars()].iter().any(|bits| *bits != 0)
                || (slots.is_scc() && self.scc)
        })
    }

    /// Nothing that an instruction writes stays marked.
    fn overwrite(&mut self, wave: &Wave, named: &Named) {
        for (_, slots) in &named.writes {
            for row in slots.rows() {
                self.unmark(RowIndex(row as u16), wave.exec_row(), !0);
            }
            self.scalars[slots.scalars()].fill(0);
            self.scc &= !slots.is_scc();
        }
    }

    /// Executes the operation once for each filling of the marked bits; those bits of the result
    /// become marked in which the runs differ.
    fn compare_runs(&mut self, ghost: &mut Wave, wave: &Wave, op: &Op, rows: &[usize]) {
        let fillings = PATTERNS.map(Filling::Word).into_iter().chain([
            Filling::Scattered(1),
            Filling::Scattered(2),
            Filling::OtherSource,
        ]);
        let mut first: Option<(Vec<Row>, [u32; ScalarIndex::COUNT], bool)> = None;
        let mut differing = (vec![Row::ZERO; rows.len()], [0; ScalarIndex::COUNT], false);
        for filling in fillings {
            self.fill(ghost, wave, op, rows, filling);
            // What it ends in does not matter: what is executed here neither stops nor jumps.
            let _ = step(ghost, op, &mut NoMemory, &mut []);
            let result = (
                rows.iter().map(|row| ghost.rows[*row]).collect::<Vec<Row>>(),
                ghost.scalars,
                ghost.scc,
            );
            let first = first.get_or_insert_with(|| result.clone());
            for (index, row) in result.0.iter().enumerate() {
                for lane in 0..LANES {
                    differing.0[index].0[lane] |= row.0[lane] ^ first.0[index].0[lane];
                }
            }
            for index in 0..ScalarIndex::COUNT {
                differing.1[index] |= result.1[index] ^ first.1[index];
            }
            differing.2 |= result.2 != first.2;
        }
        for (row, bits) in rows.iter().zip(&differing.0) {
            self.rows[*row] = *bits;
        }
        self.scalars = differing.1;
        self.scc = differing.2;
    }

    /// Makes the ghost the wave, with the marked bits filled.
    fn fill(&self, ghost: &mut Wave, wave: &Wave, op: &Op, rows: &[usize], filling: Filling) {
        let word = |place: u32, other: u32| match filling {
            Filling::Word(word) => word,
            Filling::Scattered(seed) => scattered(place.wrapping_mul(3).wrapping_add(seed)),
            Filling::OtherSource => other,
        };
        let other = |own: Word| -> Option<Word> {
            let [left, right] = [op.sources[0].words, op.sources[1].words];
            let paired = left.into_iter().zip(right).chain(right.into_iter().zip(left));
            paired.into_iter().find(|(word, _)| *word == own).map(|(_, other)| other)
        };
        let value = |word: Option<Word>, lane: usize| match word {
            Some(Word::Row(row)) => wave.row(row).0[lane],
            Some(Word::Scalar(index)) => wave.scalar(index),
            Some(Word::Constant(constant)) => constant,
            _ => 0,
        };
        stand_in(ghost, wave);
        for row in rows {
            ghost.rows[*row] = wave.rows[*row];
            let marked = &self.rows[*row];
            if *marked == Row::ZERO {
                continue;
            }
            let paired = other(Word::Row(RowIndex(*row as u16)));
            for lane in 0..LANES {
                let bits = marked.0[lane];
                let filling = word((row * LANES + lane) as u32, value(paired, lane));
                ghost.rows[*row].0[lane] = wave.rows[*row].0[lane] & !bits | filling & bits;
            }
        }
        for (index, bits) in self.scalars.into_iter().enumerate().filter(|(_, bits)| *bits != 0) {
            let paired = other(Word::Scalar(ScalarIndex(index as u8)));
            let filling = word((RowIndex::COUNT * LANES + index) as u32, value(paired, 0));
            ghost.scalars[index] = wave.scalars[index] & !bits | filling & bits;
        }
        ghost.set_exec(wave.exec());
        if self.scc {
            ghost.scc = word(u32::MAX, 1) & 1 != 0;
        }
    }
}

/// Makes a ghost of a wave, but for its vector registers.
pub fn stand_in(ghost: &mut Wave, wave: &Wave) {
    ghost.machine = wave.machine;
    ghost.mode = wave.mode;
    ghost.vgpr_count = wave.vgpr_count;
    ghost.acc_vgpr_count = wave.acc_vgpr_count;
    ghost.lds_size = wave.lds_size;
    ghost.private = wave.private;
    ghost.pc = wave.pc;
    ghost.scalars = wave.scalars;
    ghost.scc = wave.scc;
    ghost.set_exec(wave.exec());
}

/// A word that looks random (the finalizer of MurmurHash3).
fn scattered(seed: u32) -> u32 {
    let mut word = seed;
    word = (word ^ word >> 16).wrapping_mul(0x85eb_ca6b);
    word = (word ^ word >> 13).wrapping_mul(0xc2b2_ae35);
    word ^ word >> 16
}

/// All vector registers, marked in these bits.
fn rows_of(bits: u32) -> Box<[Row; RowIndex::COUNT]> {
    match vec![Row::splat(bits); RowIndex::COUNT].into_boxed_slice().try_into() {
        Ok(rows) => rows,
        Err(_) => unreachable!("the length is the array's"),
    }
}
