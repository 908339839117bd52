//! Lanes that must execute instructions together.

use super::{Checked, PtxRule};
use crate::compute::{LANES, Row};
use crate::execute::Reach;
use crate::program::{BarrierCount, Op, Source, register_source};
use flipwave_ptx::{Argument, Class, ScalarType};

/// Text of a set of lanes.
fn text(lanes: u32) -> String {
    format!("{lanes:#010x}")
}

impl Checked<'_, '_> {
    /// Checks that all lanes execute instructions with `.aligned`, and numbers of threads at barriers.
    pub(super) fn aligned(&mut self) {
        let form = &self.inst.form;
        let is_aligned = form.has("aligned") || form.opcode() == "bar" && !form.has("warp");
        let lanes = self.lanes;
        // Matrix instructions need every lane of the wave, also those that have ended or that it never had.
        let is_matrix = form.class() == Some(Class::Matrix);
        let needed = if is_matrix { u32::MAX } else { self.living() };
        if is_aligned && lanes != needed {
            let missing = needed & !lanes;
            self.report(PtxRule::Aligned, lanes, || {
                format!("lanes {} of the wave do not execute the instruction", text(missing))
            });
        }
        if let Op::Barrier(op) = self.op
            && let BarrierCount::Threads(count) = op.count
        {
            let counts = self.reach.row(count);
            let is_wrong =
                |lane: &usize| counts[*lane] == 0 || !counts[*lane].is_multiple_of(LANES as u64);
            if let Some(lane) = Reach::lanes(lanes).find(is_wrong) {
                self.report(PtxRule::BarrierCount, lanes, || {
                    format!("the barrier waits for {} threads", counts[lane])
                });
            }
        }
    }

    /// Values of the operand with a number, which is a register of 32 bits or a constant.
    fn operand(&self, number: usize) -> Option<Row> {
        match self.inst.operands.get(number)? {
            Argument::Register(register) => {
                Some(self.reach.row(register_source(*register, ScalarType::B32)))
            }
            Argument::Constant(value) => Some([value.bits(ScalarType::B32); LANES]),
            _ => None,
        }
    }

    /// The mask of lanes that an instruction names.
    fn mask(&self) -> Option<Row> {
        let form = &self.inst.form;
        if form.opcode() == "bar" || form.opcode() == "barrier" {
            return form.has("warp").then(|| self.operand(0)).flatten();
        }
        let Op::Compute { sources, .. } = self.op else { return None };
        let source = match form.opcode() {
            _ if !form.has("sync") => None,
            "shfl" => sources.get(3),
            "vote" | "match" | "redux" => sources.get(1),
            "elect" => sources.first(),
            _ => None,
        };
        source.map(|source| self.reach.row(*source))
    }

    /// Checks masks of lanes, and the lanes that shuffles read.
    pub(super) fn masks(&mut self) {
        let Some(masks) = self.mask() else { return };
        let (lanes, living) = (self.lanes, self.living());
        let outside = Reach::lanes(lanes).filter(|lane| masks[*lane] >> lane & 1 == 0);
        let outside = outside.fold(0, |all, lane| all | 1u32 << lane);
        let first = masks[lanes.trailing_zeros() as usize % LANES] as u32;
        if outside != 0 {
            self.report(PtxRule::SyncMask, outside, || {
                format!("the mask {} does not contain lanes {}", text(first), text(outside))
            });
        }
        let named = Reach::lanes(lanes).fold(0, |all, lane| all | masks[lane] as u32);
        let missing = named & living & !lanes;
        if missing != 0 {
            self.report(PtxRule::SyncMask, lanes, || {
                format!(
                    "the mask {} names lanes {}, which do not execute the instruction with the others",
                    text(named),
                    text(missing)
                )
            });
        }
        if self.inst.form.opcode() == "shfl" {
            self.shuffle(&masks);
        }
    }

    /// Checks that a shuffle reads lanes that take part.
    fn shuffle(&mut self, masks: &Row) {
        let lanes = self.lanes;
        let Some(sources) = self.shuffle_sources() else { return };
        let is_wrong = |lane: &usize| {
            let source = sources[*lane];
            lanes >> source & 1 == 0 || masks[*lane] >> source & 1 == 0
        };
        let wrong = Reach::lanes(lanes).filter(is_wrong);
        let wrong = wrong.fold(0, |all, lane| all | 1u32 << lane);
        if wrong != 0 {
            let lane = wrong.trailing_zeros() as usize;
            self.report(PtxRule::LaneSource, wrong, || {
                format!("lane {lane} reads lane {}, which does not take part", sources[lane])
            });
        }
    }

    /// The lane that each lane of a shuffle reads: itself, if the source is out of range.
    pub(super) fn shuffle_sources(&self) -> Option<[usize; LANES]> {
        let Op::Compute { operation, sources, .. } = self.op else { return None };
        // The shuffle of the lanes' numbers.
        let numbers: Row = std::array::from_fn(|lane| lane as u64);
        let rows: Vec<Row> =
            sources.iter().map(|source: &Source| self.reach.row(*source)).collect();
        let mut rows = rows;
        *rows.first_mut()? = numbers;
        let mut results = vec![[0; LANES]; 2];
        (operation.compute)(&rows, self.lanes, &mut results);
        Some(results[0].map(|lane| lane as usize % LANES))
    }
}
