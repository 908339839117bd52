//! Blocks: what is compiled together, and what is known of it before it is.

use super::plan::{LaneAccess, Plan, Source, writes_exec};
use crate::instruction::{Op, Stretch, Traits};
use crate::translate::coverage::unsettled_bits;
use crate::wave::Machine;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// What is compiled together, or going to be.
pub struct Block {
    pub source: Source,
    /// See [`Stretch::number`].
    number: u64,
    /// See [`Stretch::seen_alone`]: what is always left to the interpreter.
    seen_alone: Vec<bool>,
    /// See [`Stretch::before_exec`].
    before_exec: usize,
    /// See [`Stretch`].
    pub traits: Traits,
    /// Which of the tier's windows its accesses to device memory have, from this one on.
    pub first_site: usize,
    /// Instructions before each one that do something in each active lane.
    per_lane: Vec<u32>,
    /// How often code met numbers that it does not do right, see [`Block::note_unsettled`].
    unsettled: AtomicU32,
    /// Of each instruction whether it is a flat access that has led elsewhere than to device memory.
    elsewhere: Vec<AtomicBool>,
    /// How often there were such.
    times_elsewhere: AtomicU32,
    /// Whether these are to be code of their own.
    parts_flat: AtomicBool,
}

/// How often code may meet what it does not do right before it is compiled to do more of that.
const FEW: u32 = 8;

impl Block {
    /// A block that is not compiled yet. The tier's windows from `first_site` on are its own.
    pub fn new(source: Source, first_site: usize, machine: Machine) -> Block {
        let mut per_lane = vec![0];
        for op in &source.ops {
            per_lane.push(per_lane[per_lane.len() - 1] + u32::from(op.per_lane));
        }
        let has_own_lanes = |(op, plan): (&Op, &Plan)| match plan {
            Plan::Lane(access) => *access == LaneAccess::Write,
            Plan::Exchange(exchange) => exchange.controls(op) == [false, false],
            _ => false,
        };
        let has_own_lanes = source.ops.iter().zip(&source.plans).any(has_own_lanes);
        let own_lanes = Traits::OWN_LANES.when(has_own_lanes);
        let is_unsettled = source.ops.iter().any(|op| unsettled_bits(op, machine) != 0);
        let unsettled_results = Traits::UNSETTLED.when(is_unsettled);
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        Block {
            number: NUMBERS.fetch_add(1, Ordering::Relaxed),
            before_exec: source
                .ops
                .iter()
                .position(writes_exec)
                .map_or(source.ops.len(), |index| index + 1),
            traits: own_lanes.or(unsettled_results),
            seen_alone: source.plans.iter().map(|plan| plan.is_seen_alone()).collect(),
            first_site,
            per_lane,
            unsettled: AtomicU32::new(0),
            elsewhere: source.ops.iter().map(|_| AtomicBool::new(false)).collect(),
            times_elsewhere: AtomicU32::new(0),
            parts_flat: AtomicBool::new(false),
            source,
        }
    }

    /// Notes that its code met a NaN, or another number that it does not do right.
    pub fn note_unsettled(&self) {
        self.unsettled.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether that was so often that code is worth while which makes NaNs those of the interpreter.
    pub fn is_often_unsettled(&self) -> bool {
        self.unsettled.load(Ordering::Relaxed) > FEW
    }

    /// Notes that a flat access has led to private memory or to LDS.
    pub fn note_elsewhere(&self, index: usize) {
        self.elsewhere[index].store(true, Ordering::Relaxed);
        self.times_elsewhere.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether they did that more than a few times.
    pub fn is_often_elsewhere(&self) -> bool {
        self.times_elsewhere.load(Ordering::Relaxed) > FEW
    }

    /// Has them be code of their own from now on.
    pub fn part_flat(&self) {
        self.parts_flat.store(true, Ordering::Relaxed);
    }

    /// Whether they are to be that.
    pub fn parts_flat(&self) -> bool {
        self.parts_flat.load(Ordering::Relaxed)
    }

    /// Which instructions have done so up to now.
    pub fn elsewhere(&self) -> Vec<bool> {
        self.elsewhere.iter().map(|own| own.load(Ordering::Relaxed)).collect()
    }

    /// Whether there is a better way to compile it than the usual one.
    pub fn has_better_code(&self) -> bool {
        self.is_often_unsettled() || self.parts_flat()
    }

    /// Instructions.
    pub fn len(&self) -> usize {
        self.source.ops.len()
    }

    /// Its instructions, as they are counted.
    #[inline(always)]
    pub fn stretch(&self) -> Stretch<'_> {
        let Block { number, source, seen_alone, .. } = self;
        Stretch {
            number: *number,
            start: source.start,
            ops: &source.ops,
            seen_alone,
            before_exec: self.before_exec,
            traits: self.traits,
        }
    }

    /// What the first `count` instructions count as, see
    /// [`Statistics::lane_operations`](flipwave_device::Statistics::lane_operations).
    pub fn lane_operations(&self, count: usize, active: u32) -> u64 {
        let per_lane = u64::from(self.per_lane[count]);
        per_lane * u64::from(active) + (count as u64 - per_lane)
    }
}
