//! Vector execution: one lane's semantics, applied to all lanes at once.
//!
//! The tables of operations define what one lane does ([`LaneOperation`]); this module makes
//! whole-wave functions of them, compiled for AVX2 and for AVX-512, and a short one for x86-64 hosts
//! that have neither. All three give the same bits.

use crate::lane_value::{Arguments, Kind, LaneResult, PerLane, ResultKind, SourceRows};
use crate::level::at_each_level;
use crate::numerics::{Denormals, Nans, Numerics};
use crate::op::{Adapt, Finish, Op, SourceAdapt, VectorFunction, Word};
use crate::operations::binary16;
use crate::rounding::{ByMode, Nearest, Rounder};
use crate::wave::{LANES, Mode, Row, ScalarIndex, Wave};
use flipwave_isa::{LaneMask, SdwaSelect};
use half::f16;
use std::marker::PhantomData;

/// What an operation does in one lane.
pub trait LaneOperation {
    /// Its sources.
    type Arguments: Arguments;
    /// Its result.
    type Result: LaneResult;
    /// What holds of its arithmetic.
    const NUMERICS: Numerics;

    /// Computes one lane.
    fn apply<R: Rounder>(arguments: Self::Arguments, context: Context<R>) -> Self::Result;
}

/// What a few operations know besides their sources.
#[derive(Clone, Copy, Debug)]
pub struct Context<R> {
    /// Which lane computes.
    pub lane: usize,
    /// The MODE register.
    pub mode: Mode,
    /// How results are rounded.
    pub round: R,
}

/// A row of the operation table.
pub struct VectorOperation {
    /// Canonical name.
    pub name: &'static str,
    /// Kinds of the sources.
    pub sources: &'static [Kind],
    /// Where the result goes.
    pub result: ResultKind,
    /// Whether the result is floating-point, so that it can be clamped and scaled.
    pub float: bool,
    /// What holds of its arithmetic.
    pub numerics: Numerics,
    /// The whole-wave functions, by [`Level`].
    run: [VectorFunction; 3],
}

impl VectorOperation {
    /// The row of operation `F`.
    pub const fn of<F: LaneOperation>(name: &'static str) -> VectorOperation {
        VectorOperation {
            name,
            sources: F::Arguments::KINDS,
            result: F::Result::KIND,
            float: F::Result::FLOAT,
            numerics: F::NUMERICS,
            run: [lesser::<F>, avx2::<F>, avx512::<F>],
        }
    }

    /// The row of a rare operation `F`, compiled once for all levels.
    pub const fn of_plain<F: LaneOperation>(name: &'static str) -> VectorOperation {
        VectorOperation { run: [plain::<F>; 3], ..VectorOperation::of::<F>(name) }
    }

    /// The function for this host.
    pub fn function(&self, level: Level) -> VectorFunction {
        self.run[level as usize]
    }
}

/// Vector extensions of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// None beyond the build's own.
    Plain = 0,
    /// AVX2 and FMA.
    Avx2 = 1,
    /// AVX-512 F, BW, DQ, VL.
    Avx512 = 2,
}

impl Level {
    /// The best level this host has. `FLIPWAVE_SIMD` (`plain`, `avx2`) asks for a lower one.
    pub fn detect() -> Level {
        let asked = std::env::var("FLIPWAVE_SIMD").unwrap_or_default();
        #[cfg(target_arch = "x86_64")]
        {
            let avx2 = is_x86_feature_detected!("avx2")
                && is_x86_feature_detected!("fma")
                && is_x86_feature_detected!("bmi2");
            let avx512 = avx2
                && is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512vl");
            if avx512 && asked != "plain" && asked != "avx2" {
                return Level::Avx512;
            }
            if avx2 && asked != "plain" {
                return Level::Avx2;
            }
        }
        Level::Plain
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

/// For a host without these extensions. There are hundreds of operations and few such hosts: what
/// differs from operation to operation is a function of one lane, and all else is compiled once for
/// each type of result.
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

/// Other hosts have their vector extensions in every build.
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

/// What an operation gives in all lanes, and what must be known of it besides.
trait Computes<R: LaneResult>: Copy {
    /// Kinds of the sources.
    fn kinds(self) -> &'static [Kind];
    /// What holds of its arithmetic.
    fn numerics(self) -> Numerics;
    /// What it gives when it rounds to nearest even.
    fn nearest(self, rows: [SourceRows<'_>; 4], mode: Mode) -> R::Lanes;
    /// What it gives when it rounds as MODE says otherwise.
    fn by_mode(self, rows: [SourceRows<'_>; 4], mode: Mode) -> R::Lanes;
}

/// An operation whose loop over lanes is part of the function that executes it.
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

/// An operation whose results come from calls.
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

/// What an operation gives when it rounds to nearest even.
#[inline(always)]
fn nearest<F: LaneOperation>(rows: [SourceRows<'_>; 4], mode: Mode) -> Lanes<F> {
    let computed = Computed::<F, Nearest> { rows, mode, round: Nearest, operation: PhantomData };
    settled_if_nan::<F>(rows, F::Result::collect(&computed))
}

/// The same, one call a lane.
#[cfg(target_arch = "x86_64")]
fn nearest_by_calls<F: LaneOperation>(rows: [SourceRows<'_>; 4], mode: Mode) -> Lanes<F> {
    let computed = Computed::<F, Nearest> { rows, mode, round: Nearest, operation: PhantomData };
    settled_if_nan::<F>(rows, collected(&computed))
}

/// A result with regard to which NaN comes out, where there is one.
#[inline(always)]
fn settled_if_nan<F: LaneOperation>(rows: [SourceRows<'_>; 4], result: Lanes<F>) -> Lanes<F> {
    if F::NUMERICS.nans != Nans::Own && F::Result::any_nan(&result) {
        settled::<F::Arguments, F::Result>(rows, &result, F::NUMERICS.nans == Nans::Negative)
    } else {
        result
    }
}

/// What an operation gives when it rounds as MODE says otherwise. The loop over lanes is not made
/// anew for each operation: this is rare, and operations are many.
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

/// What something gives in each lane, one call a lane.
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

/// The result of an operation in all lanes.
type Lanes<F> = <<F as LaneOperation>::Result as LaneResult>::Lanes;

/// Where a word of a source lies: in a register, or in a scratch row if it is none, or if
/// modifiers change it (then its bit is set in `adapted`).
#[inline(always)]
fn source_row<'a>(
    wave: &'a Wave,
    op: &Op,
    kinds: &[Kind],
    adapted: u8,
    source: usize,
    word: usize,
) -> &'a Row {
    let Some(kind) = kinds.get(source) else { return &wave.scratch[0] };
    let word = if kind.words() == 1 || *kind == Kind::Mask { 0 } else { word };
    match op.sources[source].words[word] {
        Word::Row(row) if adapted >> source & 1 == 0 && *kind != Kind::Mask => wave.row(row),
        _ => &wave.scratch[source * 2 + word],
    }
}

/// What an operation gives.
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

/// Results with regard to which NaN comes out: it depends on the sources, and on nothing else of the
/// operation.
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

/// Results scaled, clamped and flushed.
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

/// Whether the mode flushes denormal sources of this kind.
#[inline(always)]
fn flushes_kind(kind: Kind, mode: Mode) -> bool {
    match kind {
        Kind::F32 | Kind::Mixed | Kind::PackedWords => mode.flushes_f32_sources(),
        Kind::F16 | Kind::F64 | Kind::Packed => mode.flushes_f64_sources(),
        _ => false,
    }
}

/// Puts scalar and constant words into scratch rows, the same in all lanes.
#[inline(always)]
fn broadcast_scalars(wave: &mut Wave, op: &Op, kinds: &[Kind]) {
    for (source, kind) in kinds.iter().enumerate() {
        broadcast_scalar(wave, op, source, *kind);
    }
}

/// The same for one source.
#[inline(always)]
fn broadcast_scalar(wave: &mut Wave, op: &Op, source: usize, kind: Kind) {
    let [low, high] = op.sources[source].words;
    let is_register = |word| matches!(word, Word::Row(_));
    if kind == Kind::Mask {
        expand_mask(wave, op, source);
    } else if !is_register(low) || kind.words() > 1 && !is_register(high) {
        broadcast(wave, op, source, kind);
    }
}

/// Puts the lane mask that is a source into its scratch row.
#[inline(always)]
fn expand_mask(wave: &mut Wave, op: &Op, source: usize) {
    let mask = LaneMask(lane_mask(wave, op.sources[source].words));
    wave.scratch[source * 2] = Row::expand(mask);
}

/// Puts the words of a source into its scratch rows. Compiled apart from the operations, which
/// are many, but for the same levels: a row stored in short pieces is slow to load in long ones.
#[inline(never)]
fn broadcast(wave: &mut Wave, op: &Op, source: usize, kind: Kind) {
    broadcast_at_level(wave, op, source, kind);
}

at_each_level! {
    pub fn broadcast_at_level(wave: &mut Wave, op: &Op, source: usize, kind: Kind) -> ()
        = broadcast_words;
}

#[inline(always)]
fn broadcast_words(wave: &mut Wave, op: &Op, source: usize, kind: Kind) {
    let words = op.sources[source].words.into_iter().take(kind.words().into());
    for (word, from) in words.enumerate() {
        if !matches!(from, Word::Row(_)) {
            wave.scratch[source * 2 + word] = Row::splat(scalar_word(wave, from));
        }
    }
}

/// The value of a word that is the same in all lanes.
#[inline(always)]
pub fn scalar_word(wave: &Wave, word: Word) -> u32 {
    match word {
        Word::Scalar(index) => wave.scalar(index),
        Word::Constant(value) => value,
        Word::Scc => wave.scc.into(),
        Word::Vccz => u32::from(wave.vcc() == 0),
        Word::Execz => u32::from(wave.exec() == LaneMask::EMPTY),
        Word::Row(row) => wave.row(row).0[0],
    }
}

#[inline(always)]
fn lane_mask(wave: &Wave, words: [Word; 2]) -> u64 {
    u64::from(scalar_word(wave, words[0])) | u64::from(scalar_word(wave, words[1])) << 32
}

/// Puts sources into scratch rows as the modifiers and the mode want them. Gives a bit per source
/// that was changed, and the lanes that are to be written.
#[inline(never)]
fn adapt_sources(wave: &mut Wave, op: &Op, kinds: &[Kind], flush: bool) -> (u8, LaneMask) {
    adapt_sources_at_level(wave, op, kinds, flush)
}

at_each_level! {
    pub fn adapt_sources_at_level(wave: &mut Wave, op: &Op, kinds: &[Kind], flush: bool)
        -> (u8, LaneMask) = adapt_all;
}

#[inline(always)]
fn adapt_all(wave: &mut Wave, op: &Op, kinds: &[Kind], flush: bool) -> (u8, LaneMask) {
    let mut mask = wave.exec();
    let mut adapted = 0;
    let none = Adapt::default();
    let adapt = op.adapt.as_deref().unwrap_or(&none);
    for (source, kind) in kinds.iter().enumerate() {
        let how = &adapt.sources[source];
        let moves = source == 0 && adapt.lane_move.is_some();
        let flushed = flush && flushes_kind(*kind, wave.mode);
        if *kind == Kind::Mask || !moves && !flushed && *how == SourceAdapt::default() {
            broadcast_scalar(wave, op, source, *kind);
            continue;
        }
        adapted |= 1 << source;
        let count = usize::from(kind.words());
        for (word, from) in op.sources[source].words.into_iter().take(count).enumerate() {
            wave.scratch[source * 2 + word] = match from {
                Word::Row(row) => *wave.row(row),
                other => Row::splat(scalar_word(wave, other)),
            };
        }
        let mode = wave.mode;
        let (scratch, exec) = wave.scratch_and_exec();
        let Some(rows) = scratch[source * 2..].first_chunk_mut::<2>() else { continue };
        if let (0, Some(lane_move)) = (source, &adapt.lane_move) {
            mask.0 &= lane_move.apply(&mut rows[..count], exec).0;
        }
        if *how == SourceAdapt::default() {
            if flushed {
                flush_denormals(rows, *kind);
            }
            continue;
        }
        if matches!(kind, Kind::Packed | Kind::PackedWords) {
            pack(rows, *kind, how);
        } else if *kind == Kind::Mixed && how.select != SdwaSelect::Dword {
            select(&mut rows[0], how.select, false);
            if flush && mode.flushes_f64_sources() {
                flush_denormals(rows, Kind::F16);
            }
            for word in &mut rows[0].0 {
                *word = binary16::to_f32(f16::from_bits(*word as u16)).to_bits();
            }
            change_sign(&mut rows[0], 0x8000_0000, how);
        } else {
            select(&mut rows[0], how.select, how.sign_extend);
            let (row, sign) = match kind {
                Kind::F16 | Kind::Half => (0, 0x8000),
                Kind::Wide | Kind::F64 => (1, 0x8000_0000),
                _ => (0, 0x8000_0000u32),
            };
            change_sign(&mut rows[row], sign, how);
        }
        if flushed {
            flush_denormals(rows, *kind);
        }
    }
    (adapted, mask)
}

/// Absolute value and negation.
#[inline(always)]
fn change_sign(row: &mut Row, sign: u32, how: &SourceAdapt) {
    for word in &mut row.0 {
        *word &= if how.absolute { !sign } else { u32::MAX };
        *word ^= if how.negate { sign } else { 0 };
    }
}

/// Takes a part of each word.
#[inline(always)]
fn select(row: &mut Row, select: SdwaSelect, sign_extend: bool) {
    let (shift, bits) = match select {
        SdwaSelect::Dword => return,
        SdwaSelect::Byte0 => (0, 8),
        SdwaSelect::Byte1 => (8, 8),
        SdwaSelect::Byte2 => (16, 8),
        SdwaSelect::Byte3 => (24, 8),
        SdwaSelect::Word0 => (0, 16),
        SdwaSelect::Word1 => (16, 16),
    };
    for word in &mut row.0 {
        let high = *word >> shift << (32 - bits);
        *word = if sign_extend { (high as i32 >> (32 - bits)) as u32 } else { high >> (32 - bits) };
    }
}

/// Chooses halves for both results of a packed operation, and negates them.
#[inline(always)]
fn pack(rows: &mut [Row; 2], kind: Kind, how: &SourceAdapt) {
    for lane in 0..LANES {
        let (low, high, sign) = if kind == Kind::PackedWords {
            (rows[0].0[lane], rows[1].0[lane], 0x8000_0000)
        } else {
            (rows[0].0[lane] & 0xffff, rows[0].0[lane] >> 16, 0x8000)
        };
        let for_low = if how.low_from_high { high } else { low };
        let for_high = if how.high_from_low { low } else { high };
        let for_low = for_low ^ if how.negate_low { sign } else { 0 };
        let for_high = for_high ^ if how.negate_high { sign } else { 0 };
        if kind == Kind::PackedWords {
            rows[0].0[lane] = for_low;
            rows[1].0[lane] = for_high;
        } else {
            rows[0].0[lane] = for_low | for_high << 16;
        }
    }
}

#[inline(always)]
fn flush_denormals(rows: &mut [Row; 2], kind: Kind) {
    let single = |word: u32| if word & 0x7f80_0000 == 0 { word & 0x8000_0000 } else { word };
    let half = |word: u32| if word & 0x7c00 == 0 { word & 0x8000 } else { word };
    for lane in 0..LANES {
        let low = rows[0].0[lane];
        let high = rows[1].0[lane];
        match kind {
            Kind::F32 | Kind::Mixed => rows[0].0[lane] = single(low),
            Kind::PackedWords => {
                rows[0].0[lane] = single(low);
                rows[1].0[lane] = single(high);
            }
            Kind::F16 => rows[0].0[lane] = half(low & 0xffff),
            Kind::Packed => rows[0].0[lane] = half(low & 0xffff) | half(low >> 16) << 16,
            Kind::F64 if high & 0x7ff0_0000 == 0 => {
                rows[0].0[lane] = 0;
                rows[1].0[lane] = high & 0x8000_0000;
            }
            _ => {}
        }
    }
}

/// Where VCC lies, for operations that read it without naming it.
pub const VCC_WORDS: [Word; 2] =
    [Word::Scalar(ScalarIndex::VCC), Word::Scalar(ScalarIndex(ScalarIndex::VCC.0 + 1))];
