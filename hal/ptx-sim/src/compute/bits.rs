//! Operations on bits (PTX ISA, "Logic and Shift Instructions").

use super::row::{Compute, Row, each, low, one, pair, signed, three, two};
use crate::Gap;
use flipwave_ptx::{Form, ScalarType};
use std::sync::Arc;

pub(super) fn compute(form: &Form) -> Result<Compute, Gap> {
    let kind = form.result().ok_or_else(Gap::form)?;
    let (bits, is_signed) = (kind.bits(), kind.is_signed());
    Ok(match form.opcode() {
        "and" => two(|a, b| a & b),
        "or" => two(|a, b| a | b),
        "xor" => two(|a, b| a ^ b),
        "not" if kind == ScalarType::Pred => one(|a| a ^ 1),
        "not" => one(|a| !a),
        "cnot" => one(|a| u64::from(a == 0)),
        "shl" => two(move |a, b| shift(b).filter(|by| *by < bits).map_or(0, |by| a << by)),
        "shr" if is_signed => two(move |a, b| {
            let by = shift(b).unwrap_or(bits).min(bits - 1);
            (signed(a, bits) >> by) as u64
        }),
        "shr" => two(move |a, b| shift(b).filter(|by| *by < bits).map_or(0, |by| a >> by)),
        "shf" => funnel(form),
        "lop3" => lookup(form),
        "prmt" => permute(form)?,
        "brev" => one(move |a| a.reverse_bits() >> (64 - bits)),
        "bfe" => three(move |a, position, length| extract(a, position, length, bits, is_signed)),
        "bfi" => each(move |[a, b, position, length]| insert(a, b, position, length, bits)),
        _ => return Err(Gap::form()),
    })
}

/// A shift amount, a number of 32 bits; `None` beyond 64.
fn shift(amount: u64) -> Option<u32> {
    Some(amount as u32).filter(|amount| *amount < 64)
}

fn funnel(form: &Form) -> Compute {
    let (is_left, is_wrapping) = (form.has("l"), form.has("wrap"));
    three(move |a, b, c| {
        let by = if is_wrapping { c as u32 & 31 } else { (c as u32).min(32) };
        let both = b << 32 | a;
        if is_left { both << by >> 32 } else { both >> by }
    })
}

/// `lop3`: the sources are a, b, c and the table; with a Boolean operation, a predicate follows, and the
/// second result is the predicate.
fn lookup(form: &Form) -> Compute {
    let combination = form.modifiers().find_map(|modifier| match modifier {
        "or" => Some(true),
        "and" => Some(false),
        _ => None,
    });
    pair(move |[a, b, c, table, predicate]: [u64; 5]| {
        let row = |number: u32| {
            let part = |value: u64, bit: u32| if number >> bit & 1 != 0 { value } else { !value };
            if table >> number & 1 != 0 { part(a, 2) & part(b, 1) & part(c, 0) } else { 0 }
        };
        let result = (0..8).fold(0, |result, number| result | row(number)) & u64::from(u32::MAX);
        let is_set = u64::from(result != 0);
        let predicate = match combination {
            Some(true) => is_set | predicate & 1,
            Some(false) => is_set & predicate,
            None => 0,
        };
        [result, predicate]
    })
}

fn permute(form: &Form) -> Result<Compute, Gap> {
    let mode = form.modifiers().find(|modifier| *modifier != "b32").map(str::to_owned);
    if !matches!(mode.as_deref(), None | Some("f4e" | "b4e" | "rc8" | "ecl" | "ecr" | "rc16")) {
        return Err(Gap::form());
    }
    Ok(three(move |a, b, control| {
        let bytes = b << 32 | a;
        let byte = |index: u64| bytes >> (8 * (index & 7)) & 0xff;
        let k = control & 3;
        let selected = |position: u64| match mode.as_deref() {
            None => {
                let selector = control >> (4 * position) & 0xf;
                let value = byte(selector);
                let is_replicated = selector >> 3 != 0;
                if is_replicated { (value >> 7) * 0xff } else { value }
            }
            Some("f4e") => byte(k + position),
            Some("b4e") => byte(k.wrapping_sub(position) & 7),
            Some("rc8") => byte(k),
            Some("ecl") => byte(position.max(k)),
            Some("ecr") => byte(position.min(k)),
            _ => byte((k & 1) * 2 + (position & 1)),
        };
        (0..4).fold(0, |word, position| word | selected(position) << (8 * position))
    }))
}

fn extract(a: u64, position: u64, length: u64, bits: u32, is_signed: bool) -> u64 {
    let (position, length) = (position as u32 & 0xff, length as u32 & 0xff);
    if length == 0 {
        return 0;
    }
    let sign = is_signed && a >> (position + length - 1).min(bits - 1) & 1 != 0;
    let present = a.checked_shr(position).filter(|_| position < bits).unwrap_or(0);
    let available = bits.saturating_sub(position);
    let kept = length.min(available).min(64);
    let field = if kept == 0 { 0 } else { present & low(kept) };
    let upper = if kept >= 64 { 0 } else { u64::MAX << kept };
    if sign { field | upper } else { field }
}

fn insert(a: u64, b: u64, position: u64, length: u64, bits: u32) -> u64 {
    let (position, length) = (position as u32 & 0xff, length as u32 & 0xff);
    if length == 0 || position >= bits {
        return b;
    }
    let mask = low(length.min(64)) << position & low(bits);
    a << position & mask | b & !mask
}

/// `mov` with vectors: the elements are parts of one value, the first in its lowest bits. `sources` and
/// `results` are sizes of elements in bits.
pub(crate) fn repack(sources: Vec<u32>, results: Vec<u32>) -> Compute {
    Arc::new(move |rows: &[Row], mask, out: &mut [Row]| {
        for lane in (0..super::row::LANES).filter(|lane| mask >> lane & 1 != 0) {
            let mut value = 0u128;
            let mut at = 0;
            for (row, bits) in rows.iter().zip(&sources) {
                value |= u128::from(row[lane] & low(*bits)).checked_shl(at).unwrap_or(0);
                at += bits;
            }
            let mut at = 0;
            for (row, bits) in out.iter_mut().zip(&results) {
                row[lane] = value.checked_shr(at).unwrap_or(0) as u64 & low(*bits);
                at += bits;
            }
        }
    })
}
