//! Sources of a vector operation: rows of the register file, or scratch rows for scalars,
//! constants, and sources changed by modifiers or MODE.

use crate::execute::lane::{Kind, binary16};
use crate::execute::operand::{scalar_pair, scalar_word};
use crate::instruction::{Adapt, Op, SourceAdapt, Word};
use crate::wave::level::at_each_level;
use crate::wave::{LANES, Mode, Row, Wave};
use flipwave_isa::{LaneMask, SdwaSelect};
use half::f16;

/// Row that holds a word of a source: a register, or a scratch row if the word is not in a vector
/// register or modifiers change it (then its bit is set in `adapted`).
#[inline(always)]
pub fn source_row<'a>(
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

/// Returns `true` if the mode flushes denormal sources of this kind.
#[inline(always)]
pub fn flushes_kind(kind: Kind, mode: Mode) -> bool {
    match kind {
        Kind::F32 | Kind::Mixed | Kind::MixedBrain | Kind::PackedWords => {
            mode.flushes_f32_sources()
        }
        Kind::F16 | Kind::F64 | Kind::Packed => mode.flushes_f64_sources(),
        _ => false,
    }
}

/// Broadcasts scalar and constant words into scratch rows.
#[inline(always)]
pub fn broadcast_scalars(wave: &mut Wave, op: &Op, kinds: &[Kind]) {
    for (source, kind) in kinds.iter().enumerate() {
        broadcast_scalar(wave, op, source, *kind);
    }
}

/// Broadcasts the scalar or constant words of one source.
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

/// Expands a lane mask source into its scratch row.
#[inline(always)]
fn expand_mask(wave: &mut Wave, op: &Op, source: usize) {
    let mask = LaneMask(scalar_pair(wave, op.sources[source].words));
    wave.scratch[source * 2] = Row::expand(mask);
}

/// Broadcasts the words of a source into its scratch rows. Compiled separately from the operations,
/// which are many, but for the same levels: loading a row with wide vectors is slow if it was
/// stored with narrow ones.
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

/// Writes sources into scratch rows with modifiers and MODE applied. Returns a bit per changed
/// source, and the lanes to write.
#[inline(never)]
pub fn adapt_sources(wave: &mut Wave, op: &Op, kinds: &[Kind], flush: bool) -> (u8, LaneMask) {
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
        let modifiers = &adapt.sources[source];
        let moves = source == 0 && adapt.lane_move.is_some();
        let flushed = flush && flushes_kind(*kind, wave.mode);
        if *kind == Kind::Mask || !moves && !flushed && *modifiers == SourceAdapt::default() {
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
        if *modifiers == SourceAdapt::default() {
            if flushed {
                flush_denormals(rows, *kind);
            }
            continue;
        }
        if matches!(kind, Kind::Packed | Kind::PackedWords) {
            pack(rows, *kind, modifiers);
        } else if *kind == Kind::Mixed && modifiers.select != SdwaSelect::Dword {
            select(&mut rows[0], modifiers.select, false);
            if flush && mode.flushes_f64_sources() {
                flush_denormals(rows, Kind::F16);
            }
            for word in &mut rows[0].0 {
                *word = binary16::to_f32(f16::from_bits(*word as u16)).to_bits();
            }
            change_sign(&mut rows[0], 0x8000_0000, modifiers);
        } else if *kind == Kind::MixedBrain && modifiers.select != SdwaSelect::Dword {
            select(&mut rows[0], modifiers.select, false);
            for word in &mut rows[0].0 {
                *word <<= 16;
            }
            change_sign(&mut rows[0], 0x8000_0000, modifiers);
        } else {
            select(&mut rows[0], modifiers.select, modifiers.sign_extend);
            let (row, sign) = match kind {
                Kind::F16 | Kind::Half => (0, 0x8000),
                Kind::Wide | Kind::F64 => (1, 0x8000_0000),
                _ => (0, 0x8000_0000u32),
            };
            change_sign(&mut rows[row], sign, modifiers);
        }
        if flushed {
            flush_denormals(rows, *kind);
        }
    }
    (adapted, mask)
}

/// Applies absolute value and negation.
#[inline(always)]
fn change_sign(row: &mut Row, sign: u32, modifiers: &SourceAdapt) {
    for word in &mut row.0 {
        *word &= if modifiers.absolute { !sign } else { u32::MAX };
        *word ^= if modifiers.negate { sign } else { 0 };
    }
}

/// Selects a part of each word.
#[inline(always)]
fn select(row: &mut Row, select: SdwaSelect, sign_extend: bool) {
    if select == SdwaSelect::Dword {
        return;
    }
    let (shift, bits) = select.field();
    for word in &mut row.0 {
        let high = *word >> shift << (32 - bits);
        *word = if sign_extend { (high as i32 >> (32 - bits)) as u32 } else { high >> (32 - bits) };
    }
}

/// Selects the halves for both results of a packed operation, and negates them.
#[inline(always)]
fn pack(rows: &mut [Row; 2], kind: Kind, modifiers: &SourceAdapt) {
    for lane in 0..LANES {
        let (low, high, sign) = if kind == Kind::PackedWords {
            (rows[0].0[lane], rows[1].0[lane], 0x8000_0000)
        } else {
            (rows[0].0[lane] & 0xffff, rows[0].0[lane] >> 16, 0x8000)
        };
        let for_low = if modifiers.low_from_high { high } else { low };
        let for_high = if modifiers.high_from_low { low } else { high };
        let magnitude = |bits: u32| if modifiers.absolute { bits & !sign } else { bits };
        let for_low = magnitude(for_low) ^ if modifiers.negate_low { sign } else { 0 };
        let for_high = magnitude(for_high) ^ if modifiers.negate_high { sign } else { 0 };
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
            Kind::F32 | Kind::Mixed | Kind::MixedBrain => rows[0].0[lane] = single(low),
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
