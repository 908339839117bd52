//! Exchange between lanes (PTX ISA, "shfl", "Parallel Synchronization and Communication Instructions").

use super::row::{Compute, LANES, Row, signed};
use super::small_float::Format;
use crate::Gap;
use flipwave_ptx::{Form, ScalarType};
use std::sync::Arc;

/// Lanes in a mask.
fn lanes(mask: u32) -> impl Iterator<Item = usize> {
    (0..LANES).filter(move |lane| mask >> lane & 1 != 0)
}

pub(super) fn compute(form: &Form) -> Result<Compute, Gap> {
    match form.opcode() {
        "shfl" => shuffle(form),
        "vote" => vote(form),
        "match" => matching(form),
        "redux" => reduce(form),
        "activemask" => Ok(Arc::new(|_: &[Row], mask: u32, results: &mut [Row]| {
            results[0] = [mask.into(); LANES];
        })),
        // The elected lane is the lowest.
        "elect" => Ok(Arc::new(|sources: &[Row], mask: u32, results: &mut [Row]| {
            let members = members(sources.first(), mask);
            let leader = members.trailing_zeros();
            results[0] = [leader.into(); LANES];
            results[1] = std::array::from_fn(|lane| u64::from(lane as u32 == leader));
        })),
        _ => Err(Gap::form()),
    }
}

/// Active lanes in the member mask, an operand that lanes share.
fn members(operand: Option<&Row>, mask: u32) -> u32 {
    let first = lanes(mask).next().unwrap_or(0);
    operand.map_or(mask, |members| members[first] as u32 & mask)
}

/// The mode of a shuffle: from the lane, the operand b, and the least and greatest lanes of the segment, the
/// source lane and whether it is in range.
type Mode = fn(i32, i32, i32, i32, i32) -> (i32, bool);

/// The sources are a, b, c and the member mask; the second result is whether the source lane is in range.
fn shuffle(form: &Form) -> Result<Compute, Gap> {
    let mode: Mode = match form.modifiers().find(|modifier| *modifier != "sync") {
        Some("up") => |lane, b, _, greatest, _| (lane - b, lane - b >= greatest),
        Some("down") => |lane, b, _, greatest, _| (lane + b, lane + b <= greatest),
        Some("bfly") => |lane, b, _, greatest, _| (lane ^ b, lane ^ b <= greatest),
        Some("idx") => |_, b, least, greatest, segment| {
            let source = least | b & !segment;
            (source, source <= greatest)
        },
        _ => return Err(Gap::form()),
    };
    Ok(Arc::new(move |sources: &[Row], mask: u32, results: &mut [Row]| {
        let [a, b, c, ..] = sources else { return };
        for lane in lanes(mask) {
            let (clamp, segment) = (c[lane] as i32 & 31, (c[lane] >> 8) as i32 & 31);
            let least = lane as i32 & segment;
            let greatest = least | clamp & !segment & 31;
            let (source, in_range) =
                mode(lane as i32, b[lane] as i32 & 31, least, greatest, segment | !31);
            let source = if in_range { source as usize & 31 } else { lane };
            results[0][lane] = a[source];
            if let Some(predicate) = results.get_mut(1) {
                predicate[lane] = in_range.into();
            }
        }
    }))
}

fn vote(form: &Form) -> Result<Compute, Gap> {
    let mode: fn(u32, u32) -> u64 = match form.modifiers().find(|modifier| *modifier != "sync") {
        Some("all") => |set, members| u64::from(set == members),
        Some("any") => |set, _| u64::from(set != 0),
        Some("uni") => |set, members| u64::from(set == 0 || set == members),
        Some("ballot") => |set, _| set.into(),
        _ => return Err(Gap::form()),
    };
    Ok(Arc::new(move |sources: &[Row], mask: u32, results: &mut [Row]| {
        let members = members(sources.get(1), mask);
        let set = lanes(members).filter(|lane| sources[0][*lane] & 1 != 0);
        let set = set.fold(0, |set, lane| set | 1u32 << lane);
        results[0] = [mode(set, members); LANES];
    }))
}

fn matching(form: &Form) -> Result<Compute, Gap> {
    let is_all = form.has("all");
    Ok(Arc::new(move |sources: &[Row], mask: u32, results: &mut [Row]| {
        let members = members(sources.get(1), mask);
        for lane in lanes(mask) {
            let equal = lanes(members).filter(|other| sources[0][*other] == sources[0][lane]);
            let equal = equal.fold(0, |set, other| set | 1u32 << other);
            let are_all = equal == members;
            results[0][lane] = if is_all && !are_all { 0 } else { equal.into() };
            if let Some(predicate) = results.get_mut(1) {
                predicate[lane] = are_all.into();
            }
        }
    }))
}

fn reduce(form: &Form) -> Result<Compute, Gap> {
    let kind = form.result().ok_or_else(Gap::form)?;
    let has = |name: &str| form.has(name);
    if kind == ScalarType::F32 {
        return reduce_numbers(form);
    }
    let signed = |value: u64| signed(value, 32) as i128;
    let value = move |bits: u64| if kind.is_signed() { signed(bits) } else { bits.into() };
    let step: fn(i128, i128) -> i128 = match form {
        _ if has("add") => |a, b| a + b,
        _ if has("min") => i128::min,
        _ if has("max") => i128::max,
        _ if has("and") => |a, b| a & b,
        _ if has("or") => |a, b| a | b,
        _ if has("xor") => |a, b| a ^ b,
        _ => return Err(Gap::form()),
    };
    Ok(Arc::new(move |sources: &[Row], mask: u32, results: &mut [Row]| {
        let members = members(sources.get(1), mask);
        let result = lanes(members).map(|lane| value(sources[0][lane])).reduce(step);
        results[0] = [result.unwrap_or(0) as u64; LANES];
    }))
}

fn reduce_numbers(form: &Form) -> Result<Compute, Gap> {
    let (is_max, has_abs, takes_nan) = (form.has("max"), form.has("abs"), form.has("NaN"));
    let format = Format::F32;
    let step = move |a: u64, b: u64| match (format.is_nan(a), format.is_nan(b)) {
        (true, true) => format.nan(),
        (true, false) | (false, true) if takes_nan => format.nan(),
        (true, false) => b,
        (false, true) => a,
        (false, false) if (format.order(a) > format.order(b)) == is_max => a,
        (false, false) => b,
    };
    Ok(Arc::new(move |sources: &[Row], mask: u32, results: &mut [Row]| {
        let members = members(sources.get(1), mask);
        let magnitude = |bits: u64| if has_abs { bits & !format.sign() } else { bits };
        let result = lanes(members).map(|lane| magnitude(sources[0][lane])).reduce(step);
        results[0] = [result.unwrap_or(0); LANES];
    }))
}
