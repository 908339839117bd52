//! Marks on the bits of a wave's registers.
//!
//! The propagation of marks is not defined operation by operation. Instead, the operation is
//! executed repeatedly on registers whose marked bits are filled with different patterns, and a bit
//! of the result is marked if it differs between runs. Copies, masks, shifts, selects, packed
//! halves, moves between lanes and matrix operations are therefore exact, and `x ^ x` is zero for
//! any `x`. A dependence that no pattern reveals is missed; a dependence that does not exist is
//! never reported.

use super::{Named, Slots};
use crate::execute::step::step;
use crate::instruction::{Op, Run, Word};
use crate::memory::{Memory, Region, RegionMut};
use crate::wave::{LANES, Row, RowIndex, ScalarIndex, Wave};
use flipwave_isa::LaneMask;

/// Marks on the registers of a wave; a set bit is marked.
pub struct Shadow {
    /// Marks on vector registers.
    pub rows: Box<[Row; RowIndex::COUNT]>,
    /// Marks on scalar registers.
    pub scalars: [u32; ScalarIndex::COUNT],
    /// Mark on SCC.
    pub scc: bool,
}

/// Patterns for marked bits, in all lanes.
const PATTERNS: [u32; 6] = [0, !0, 0x7fff_ffff, 0x8000_0000, 0x7f7f_ffff, 0xff7f_ffff];

/// Values for marked bits.
#[derive(Clone, Copy)]
enum Filling {
    /// One word everywhere.
    Word(u32),
    /// Pseudorandom words, different for each register.
    Scattered(u32),
    /// The bits of the other source, which makes equality comparisons true.
    OtherSource,
}

/// A memory without mapped addresses.
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
    /// Marks everything except EXEC, which is initialized, and the trap registers, which belong to
    /// the trap handler.
    pub fn marked() -> Shadow {
        let mut scalars = [!0; ScalarIndex::COUNT];
        scalars[usize::from(ScalarIndex::TTMP.0)..usize::from(ScalarIndex::M0.0)].fill(0);
        scalars[usize::from(ScalarIndex::EXEC.0)..].fill(0);
        Shadow { rows: rows_of(!0), scalars, scc: true }
    }

    /// Registers without marks.
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

    /// Removes marks from bits of a register, in the active lanes.
    pub fn unmark(&mut self, row: RowIndex, lanes: &Row, bits: u32) {
        let row = &mut self.rows[row.place()];
        for lane in 0..LANES {
            row.0[lane] &= !(lanes.0[lane] & bits);
        }
    }

    /// Returns `true` if a register that an instruction writes has marks.
    pub fn marks_any(&self, named: &Named) -> bool {
        named.writes.iter().any(|(_, slots)| {
            slots.rows().any(|row| self.rows[row] != Row::ZERO)
                || self.scalars[slots.scalars()].iter().any(|bits| *bits != 0)
                || (slots.is_scc() && self.scc)
        })
    }

    /// Removes the marks from the scalar registers that an instruction writes, and from EXEC and
    /// the indices after it, whose values count as decided.
    pub fn unmark_scalars(&mut self, named: &Named) {
        for (_, slots) in &named.writes {
            self.scalars[slots.scalars()].fill(0);
            self.scc &= !slots.is_scc();
        }
        self.scalars[usize::from(ScalarIndex::EXEC.0)..].fill(0);
    }

    /// Propagates marks through an operation without memory access. `ghost` is a wave to execute it
    /// on.
    pub fn follow(&mut self, ghost: &mut Wave, wave: &Wave, op: &Op, named: &Named) {
        // Registers selected by an index are not in `named`.
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

    /// Returns `true` if any of the registers has marked bits, optionally only in active lanes.
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

    /// Removes the marks from everything that an instruction writes.
    fn overwrite(&mut self, wave: &Wave, named: &Named) {
        for (_, slots) in &named.writes {
            for row in slots.rows() {
                self.unmark(RowIndex(row as u16), wave.exec_row(), !0);
            }
            self.scalars[slots.scalars()].fill(0);
            self.scc &= !slots.is_scc();
        }
    }

    /// Executes the operation once for each filling of the marked bits; bits of the result that
    /// differ between the runs become marked.
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
            // The outcome does not matter: operations executed here neither stop nor jump.
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

    /// Copies the wave to the ghost, and fills the marked bits.
    fn fill(&self, ghost: &mut Wave, wave: &Wave, op: &Op, rows: &[usize], filling: Filling) {
        let word = |place: u32, other: u32| match filling {
            Filling::Word(word) => word,
            Filling::Scattered(seed) => scattered(place.wrapping_mul(3).wrapping_add(seed)),
            Filling::OtherSource => other,
        };
        let other = |source_word: Word| -> Option<Word> {
            let [left, right] = [op.sources[0].words, op.sources[1].words];
            let paired = left.into_iter().zip(right).chain(right.into_iter().zip(left));
            paired.into_iter().find(|(word, _)| *word == source_word).map(|(_, other)| other)
        };
        let value = |word: Option<Word>, lane: usize| match word {
            Some(Word::Row(row)) => wave.row(row).0[lane],
            Some(Word::Scalar(index)) => wave.scalar(index),
            Some(Word::Constant(constant)) => constant,
            _ => 0,
        };
        copy_to_ghost(ghost, wave);
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

/// Copies a wave to a ghost, except for its vector registers.
pub fn copy_to_ghost(ghost: &mut Wave, wave: &Wave) {
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

/// A pseudorandom word (the finalizer of MurmurHash3).
fn scattered(seed: u32) -> u32 {
    let mut word = seed;
    word = (word ^ word >> 16).wrapping_mul(0x85eb_ca6b);
    word = (word ^ word >> 13).wrapping_mul(0xc2b2_ae35);
    word ^ word >> 16
}

/// All vector registers, with these bits marked in each lane.
fn rows_of(bits: u32) -> Box<[Row; RowIndex::COUNT]> {
    match vec![Row::splat(bits); RowIndex::COUNT].into_boxed_slice().try_into() {
        Ok(rows) => rows,
        Err(_) => unreachable!("the length is the array's"),
    }
}
