//! Vector execution: one lane's semantics, applied to all lanes at once.
//!
//! The tables of operations define the semantics of one lane ([`LaneOperation`]); this module turns
//! them into whole-wave functions, compiled for AVX2 and for AVX-512, and a compact one for x86-64
//! hosts without either. All three produce the same bits.

mod sources;

use crate::execute::lane::rounding::{ByMode, Nearest, Rounder};
use crate::execute::lane::{
    Arguments, Denormals, Kind, LaneResult, Nans, Numerics, PerLane, SourceRows,
};
use crate::instruction::{Finish, Op, VectorOperation};
use crate::wave::{Mode, Wave};
use sources::{adapt_sources, broadcast_scalars, flushes_kind, source_row};
use std::marker::PhantomData;

/// Semantics of an operation in one lane.
pub trait LaneOperation {
    /// Types of the sources.
    type Arguments: Arguments;
    /// Type of the result.
    type Result: LaneResult;
    /// Properties of its arithmetic.
    const NUMERICS: Numerics;

    /// Computes one lane.
    fn apply<R: Rounder>(arguments: Self::Arguments, context: Context<R>) -> Self::Result;
}

/// Inputs of a few operations in addition to their sources.
#[derive(Clone, Copy, Debug)]
pub struct Context<R> {
    /// Number of the computing lane.
    pub lane: usize,
    /// The MODE register.
    pub mode: Mode,
    /// Rounding of results.
    pub round: R,
}

impl VectorOperation {
    /// Row of operation `F`, compiled for each level.
    pub const fn each_level<F: LaneOperation>(name: &'static str) -> VectorOperation {
        VectorOperation {
            name,
            sources: F::Arguments::KINDS,
            result: F::Result::KIND,
            float: F::Result::FLOAT,
            numerics: F::NUMERICS,
            run: [lesser::<F>, avx2::<F>, avx512::<F>],
        }
    }

    /// Row of a rare operation `F`, compiled once, without vector extensions, for all levels.
    pub const fn plain_only<F: LaneOperation>(name: &'static str) -> VectorOperation {
        VectorOperation { run: [plain::<F>; 3], ..VectorOperation::each_level::<F>(name) }
    }
}

/// # Safety
/// None needed; the type is [`VectorFunction`]'s.
unsafe fn plain<F: LaneOperation>(wave: &mut Wave, op: &Op) {
    execute::<F>(wave, op);
}

/// # Safety
/// The host has AVX2, FMA and BMI2.
#[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2,fma,bmi1,bmi2"))]
unsafe fn avx2<F: LaneOperation>(wave: &mut Wave, op: &Op) {
    execute::<F>(wave, op);
}

/// # Safety
/// The host has AVX-512 F, BW, DQ and VL.
#[cfg_attr(
    target_arch = "x86_64",
    target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma,bmi1,bmi2")
)]
unsafe fn avx512<F: LaneOperation>(wave: &mut Wave, op: &Op) {
    execute::<F>(wave, op);
}

/// Executes an operation on a host without these extensions. There are hundreds of operations and
/// few such hosts, so only the function of one lane is compiled per operation; all else is compiled
/// once for each type of result.
///
/// # Safety
/// None needed; the type is [`VectorFunction`]'s.
#[cfg(target_arch = "x86_64")]
unsafe fn lesser<F: LaneOperation>(wave: &mut Wave, op: &Op) {
    execute_called::<F::Result>(
        wave,
        op,
        Called {
            kinds: F::Arguments::KINDS,
            numerics: F::NUMERICS,
            nearest: nearest_by_calls::<F>,
            by_mode: by_mode::<F>,
        },
    );
}

/// On other architectures, the baseline build includes the host's vector extensions.
///
/// # Safety
/// None needed; the type is [`VectorFunction`]'s.
#[cfg(not(target_arch = "x86_64"))]
unsafe fn lesser<F: LaneOperation>(wave: &mut Wave, op: &Op) {
    execute::<F>(wave, op);
}

#[inline(always)]
fn execute<F: LaneOperation>(wave: &mut Wave, op: &Op) {
    execute_as(wave, op, Inlined::<F>(PhantomData));
}

#[cfg(target_arch = "x86_64")]
#[inline(never)]
fn execute_called<R: LaneResult>(wave: &mut Wave, op: &Op, called: Called<R>) {
    execute_as(wave, op, called);
}

/// Computes an operation in all lanes, and provides its properties.
trait Computes<R: LaneResult>: Copy {
    /// Kinds of the sources.
    fn kinds(self) -> &'static [Kind];
    /// Properties of its arithmetic.
    fn numerics(self) -> Numerics;
    /// Computes the results, rounding to nearest even.
    fn nearest(self, rows: [SourceRows<'_>; 4], mode: Mode) -> R::Lanes;
    /// Computes the results with another rounding mode of MODE.
    fn by_mode(self, rows: [SourceRows<'_>; 4], mode: Mode) -> R::Lanes;
}

/// An operation whose loop over lanes is inlined into the function that executes it.
struct Inlined<F>(PhantomData<F>);

impl<F> Clone for Inlined<F> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<F> Copy for Inlined<F> {}

impl<F: LaneOperation> Computes<F::Result> for Inlined<F> {
    #[inline(always)]
    fn kinds(self) -> &'static [Kind] {
        F::Arguments::KINDS
    }
    #[inline(always)]
    fn numerics(self) -> Numerics {
        F::NUMERICS
    }
    #[inline(always)]
    fn nearest(self, rows: [SourceRows<'_>; 4], mode: Mode) -> Lanes<F> {
        nearest::<F>(rows, mode)
    }
    #[inline(always)]
    fn by_mode(self, rows: [SourceRows<'_>; 4], mode: Mode) -> Lanes<F> {
        by_mode::<F>(rows, mode)
    }
}

/// An operation whose results come from function calls.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
struct Called<R: LaneResult> {
    kinds: &'static [Kind],
    numerics: Numerics,
    nearest: fn([SourceRows<'_>; 4], Mode) -> R::Lanes,
    by_mode: fn([SourceRows<'_>; 4], Mode) -> R::Lanes,
}

#[cfg(target_arch = "x86_64")]
impl<R: LaneResult> Computes<R> for Called<R> {
    fn kinds(self) -> &'static [Kind] {
        self.kinds
    }
    fn numerics(self) -> Numerics {
        self.numerics
    }
    fn nearest(self, rows: [SourceRows<'_>; 4], mode: Mode) -> R::Lanes {
        (self.nearest)(rows, mode)
    }
    fn by_mode(self, rows: [SourceRows<'_>; 4], mode: Mode) -> R::Lanes {
        (self.by_mode)(rows, mode)
    }
}

#[inline(always)]
fn execute_as<R: LaneResult>(wave: &mut Wave, op: &Op, operation: impl Computes<R>) {
    let (kinds, numerics) = (operation.kinds(), operation.numerics());
    let mode = wave.mode;
    let flushes = numerics.denormals == Denormals::ByMode;
    let flush_sources = flushes && kinds.iter().any(|kind| flushes_kind(*kind, mode));
    let (adapted, mask) = if op.adapt.is_some() || flush_sources {
        adapt_sources(wave, op, kinds, flushes)
    } else {
        broadcast_scalars(wave, op, kinds);
        (0, wave.exec())
    };
    let row = |source, word| source_row(wave, op, kinds, adapted, source, word);
    let rows = [
        [row(0, 0), row(0, 1)],
        [row(1, 0), row(1, 1)],
        [row(2, 0), row(2, 1)],
        [row(3, 0), row(3, 1)],
    ];
    let mut result = if mode.0 & numerics.rounds.mode_bits(R::ROUNDED_BY) == 0 {
        operation.nearest(rows, mode)
    } else {
        operation.by_mode(rows, mode)
    };
    let finishes = || op.adapt.as_ref().is_some_and(|adapt| adapt.finish.changes_value());
    let flush_result = numerics.denormals.flushes_results();
    if R::FLOAT && (finishes() || (flush_result && R::flushed(mode))) {
        result = modified::<R>(&result, flush_result, op, mode);
    }
    R::commit(wave, op, &result, mask);
}

/// Computes an operation, rounding to nearest even.
#[inline(always)]
fn nearest<F: LaneOperation>(rows: [SourceRows<'_>; 4], mode: Mode) -> Lanes<F> {
    let computed = Computed::<F, Nearest> { rows, mode, round: Nearest, operation: PhantomData };
    settled_if_nan::<F>(rows, F::Result::collect(&computed))
}

/// Computes an operation, rounding to nearest even, with one call per lane.
#[cfg(target_arch = "x86_64")]
fn nearest_by_calls<F: LaneOperation>(rows: [SourceRows<'_>; 4], mode: Mode) -> Lanes<F> {
    let computed = Computed::<F, Nearest> { rows, mode, round: Nearest, operation: PhantomData };
    settled_if_nan::<F>(rows, collected(&computed))
}

/// Replaces NaN results by the NaN that the operation's rule selects.
#[inline(always)]
fn settled_if_nan<F: LaneOperation>(rows: [SourceRows<'_>; 4], result: Lanes<F>) -> Lanes<F> {
    if F::NUMERICS.nans != Nans::Own && F::Result::any_nan(&result) {
        settled::<F::Arguments, F::Result>(rows, &result, F::NUMERICS.nans == Nans::Negative)
    } else {
        result
    }
}

/// Computes an operation with another rounding mode of MODE. The loop over lanes is shared by all
/// operations: this case is rare, and there are many operations.
#[cold]
#[inline(never)]
fn by_mode<F: LaneOperation>(rows: [SourceRows<'_>; 4], mode: Mode) -> Lanes<F> {
    let round = ByMode(mode);
    let computed = Computed::<F, ByMode> { rows, mode, round, operation: PhantomData };
    let result = collected(&computed);
    if F::NUMERICS.nans == Nans::Own {
        result
    } else {
        settled::<F::Arguments, F::Result>(rows, &result, F::NUMERICS.nans == Nans::Negative)
    }
}

/// Collects the results of all lanes with one call per lane.
#[inline(never)]
fn collected<R: LaneResult>(each: &dyn PerLane<R>) -> R::Lanes {
    struct Each<'a, R>(&'a dyn PerLane<R>);

    impl<R> PerLane<R> for Each<'_, R> {
        #[inline(always)]
        fn of(&self, lane: usize) -> R {
            self.0.of(lane)
        }
    }

    R::collect(&Each(each))
}

/// Result of an operation in all lanes.
type Lanes<F> = <<F as LaneOperation>::Result as LaneResult>::Lanes;

/// Computes an operation per lane.
struct Computed<'a, F, R> {
    rows: [SourceRows<'a>; 4],
    mode: Mode,
    round: R,
    operation: PhantomData<F>,
}

impl<F: LaneOperation, R: Rounder> PerLane<F::Result> for Computed<'_, F, R> {
    #[inline(always)]
    fn of(&self, lane: usize) -> F::Result {
        let context = Context { lane, mode: self.mode, round: self.round };
        F::apply(F::Arguments::load(&self.rows, lane), context)
    }
}

/// Settles NaN results per lane; the choice of NaN depends only on the sources.
struct Settled<'a, A, R: LaneResult> {
    rows: [SourceRows<'a>; 4],
    lanes: &'a R::Lanes,
    negative: bool,
    arguments: PhantomData<A>,
}

impl<A: Arguments, R: LaneResult> PerLane<R> for Settled<'_, A, R> {
    #[inline(always)]
    fn of(&self, lane: usize) -> R {
        let first_nan = A::load(&self.rows, lane).first_nan();
        R::lane(self.lanes, lane).settle(first_nan, self.negative)
    }
}

#[cold]
#[inline(never)]
fn settled<A: Arguments, R: LaneResult>(
    rows: [SourceRows<'_>; 4],
    lanes: &R::Lanes,
    negative: bool,
) -> R::Lanes {
    R::collect(&Settled::<A, R> { rows, lanes, negative, arguments: PhantomData })
}

/// Scales, clamps and flushes results per lane.
struct Modified<'a, R: LaneResult> {
    lanes: &'a R::Lanes,
    flush: bool,
    finish: Finish,
    mode: Mode,
}

impl<R: LaneResult> PerLane<R> for Modified<'_, R> {
    #[inline(always)]
    fn of(&self, lane: usize) -> R {
        R::lane(self.lanes, lane).modify(self.flush, &self.finish, self.mode)
    }
}

#[inline(never)]
fn modified<R: LaneResult>(lanes: &R::Lanes, flush: bool, op: &Op, mode: Mode) -> R::Lanes {
    let finish = op.adapt.as_ref().map_or_else(Default::default, |adapt| adapt.finish);
    R::collect(&Modified::<R> { lanes, flush, finish, mode })
}
