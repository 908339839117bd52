//! Blocks: the unit of compilation, and what is known of one before it is compiled.

use super::plan::{ExchangeControls, LaneAccess, Plan, Source, writes_exec};
use crate::instruction::{Op, Stretch, Traits};
use crate::translate::coverage::unsettled_bits;
use crate::wave::Machine;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// Straight-line code that is compiled as one unit.
pub struct Block {
    pub source: Source,
    /// See [`Stretch::number`].
    number: u64,
    /// See [`Stretch::seen_alone`]: instructions that the interpreter always executes.
    seen_alone: Vec<bool>,
    /// See [`Stretch::before_exec`].
    before_exec: usize,
    /// See [`Stretch`].
    pub traits: Traits,
    /// Number of the block's first device memory access in the tier: the index of its window.
    pub first_site: usize,
    /// For each instruction, the number of preceding instructions that execute once per active
    /// lane.
    per_lane: Vec<u32>,
    /// Number of bailouts because of a NaN, see [`Block::record_nan_bailout`].
    nan_bailouts: AtomicU32,
    /// For each instruction, whether a flat access resolved to non-global memory.
    non_global: Vec<AtomicBool>,
    /// Number of such accesses executed.
    non_global_count: AtomicU32,
    /// `true` if such accesses are to be compiled as accesses to private memory.
    flat_private: AtomicBool,
}

/// Number of bailouts after which another variant is compiled.
const FREQUENT: u32 = 8;

impl Block {
    /// Creates a block whose device memory accesses have the tier's numbers from `first_site` on.
    pub fn new(source: Source, first_site: usize, machine: Machine) -> Block {
        let mut per_lane = vec![0];
        for op in &source.ops {
            per_lane.push(per_lane[per_lane.len() - 1] + u32::from(op.per_lane));
        }
        let chooses_lanes = |(op, plan): (&Op, &Plan)| match plan {
            Plan::Lane(access) => *access == LaneAccess::Write,
            Plan::Exchange(exchange) => exchange.controls(op) == ExchangeControls::default(),
            _ => false,
        };
        let chooses_lanes = source.ops.iter().zip(&source.plans).any(chooses_lanes);
        let chosen_lanes = Traits::OWN_LANES.when(chooses_lanes);
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
            traits: chosen_lanes.or(unsettled_results),
            seen_alone: source.plans.iter().map(|plan| plan.is_seen_alone()).collect(),
            first_site,
            per_lane,
            nan_bailouts: AtomicU32::new(0),
            non_global: source.ops.iter().map(|_| AtomicBool::new(false)).collect(),
            non_global_count: AtomicU32::new(0),
            flat_private: AtomicBool::new(false),
            source,
        }
    }

    /// Records a bailout because of a NaN or another value that the code does not handle.
    pub fn record_nan_bailout(&self) {
        self.nan_bailouts.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns `true` if such bailouts are so frequent that the NaN-exact variant pays.
    pub fn has_frequent_nan_bailouts(&self) -> bool {
        self.nan_bailouts.load(Ordering::Relaxed) > FREQUENT
    }

    /// Records that the flat access of an instruction resolved to private memory or LDS.
    pub fn record_non_global(&self, index: usize) {
        self.non_global[index].store(true, Ordering::Relaxed);
        self.non_global_count.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns `true` if flat accesses resolved to non-global memory more than a few times.
    pub fn has_frequent_non_global(&self) -> bool {
        self.non_global_count.load(Ordering::Relaxed) > FREQUENT
    }

    /// Requests the flat-private variant from now on.
    pub fn request_flat_private(&self) {
        self.flat_private.store(true, Ordering::Relaxed);
    }

    /// Returns `true` if the flat-private variant is requested.
    pub fn wants_flat_private(&self) -> bool {
        self.flat_private.load(Ordering::Relaxed)
    }

    /// For each instruction, whether a flat access resolved to non-global memory so far.
    pub fn non_global_accesses(&self) -> Vec<bool> {
        self.non_global.iter().map(|flag| flag.load(Ordering::Relaxed)).collect()
    }

    /// Returns `true` if another variant than the default is preferable.
    pub fn wants_special_variant(&self) -> bool {
        self.has_frequent_nan_bailouts() || self.wants_flat_private()
    }

    /// Number of instructions.
    pub fn len(&self) -> usize {
        self.source.ops.len()
    }

    /// The block's instructions as checkers count them.
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

    /// Lane operations of the first `count` instructions with `active` active lanes, see
    /// [`Statistics::lane_operations`](flipwave_device::Statistics::lane_operations).
    pub fn lane_operations(&self, count: usize, active: u32) -> u64 {
        let per_lane = u64::from(self.per_lane[count]);
        per_lane * u64::from(active) + (count as u64 - per_lane)
    }
}
