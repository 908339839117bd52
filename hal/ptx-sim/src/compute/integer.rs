//! Integer arithmetic (PTX ISA, "Integer Arithmetic Instructions" and "Extended-Precision Integer
//! Arithmetic Instructions").

use super::row::{Compute, each, low, one, pair, signed, three, two};
use crate::Gap;
use flipwave_ptx::{Form, ScalarType};

/// An integer type.
#[derive(Clone, Copy)]
struct Int {
    bits: u32,
    is_signed: bool,
}

impl Int {
    fn of(kind: ScalarType) -> Int {
        Int { bits: kind.bits(), is_signed: kind.is_signed() }
    }

    /// The value of bits of this type.
    fn value(self, bits: u64) -> i128 {
        if self.is_signed { signed(bits, self.bits).into() } else { bits.into() }
    }

    fn least(self) -> i128 {
        if self.is_signed { -(1 << (self.bits - 1)) } else { 0 }
    }

    fn greatest(self) -> i128 {
        if self.is_signed { (1 << (self.bits - 1)) - 1 } else { (1 << self.bits) - 1 }
    }

    fn saturated(self, value: i128) -> u64 {
        value.clamp(self.least(), self.greatest()) as u64
    }
}

/// The half of a product that `.hi`, `.lo` and `.wide` choose.
#[derive(Clone, Copy)]
enum Half {
    High,
    Low,
    Wide,
}

impl Half {
    fn of(form: &Form) -> Half {
        match form {
            _ if form.has("hi") => Half::High,
            _ if form.has("wide") => Half::Wide,
            _ => Half::Low,
        }
    }

    fn product(self, int: Int, a: u64, b: u64) -> u64 {
        let product = match int.bits {
            64 if !int.is_signed => (u128::from(a) * u128::from(b)) as i128,
            _ => int.value(a) * int.value(b),
        };
        match self {
            Half::High => (product >> int.bits) as u64,
            Half::Low | Half::Wide => product as u64,
        }
    }
}

pub(super) fn compute(form: &Form) -> Result<Compute, Gap> {
    let kind = form.result().ok_or_else(Gap::form)?;
    if matches!(kind, ScalarType::U16x2 | ScalarType::S16x2) {
        return halves(form);
    }
    let int = Int::of(kind);
    let (is_saturating, has_carry) = (form.has("sat"), form.has("cc"));
    let saturating = is_saturating && !has_carry;
    Ok(match form.opcode() {
        "add" if saturating => two(move |a, b| int.saturated(int.value(a) + int.value(b))),
        "sub" if saturating => two(move |a, b| int.saturated(int.value(a) - int.value(b))),
        "add" if has_carry => pair(move |[a, b]: [u64; 2]| add_with_carry(int, a, b, 0)),
        "addc" => pair(move |[a, b, carry]: [u64; 3]| add_with_carry(int, a, b, carry)),
        "sub" if has_carry => pair(move |[a, b]: [u64; 2]| subtract_with_borrow(int, a, b, 0)),
        "subc" => pair(move |[a, b, borrow]: [u64; 3]| subtract_with_borrow(int, a, b, borrow)),
        "add" => two(u64::wrapping_add),
        "sub" => two(u64::wrapping_sub),
        "mul" => {
            let half = Half::of(form);
            two(move |a, b| half.product(int, a, b))
        }
        "mad" | "madc" => multiply_add(form, int),
        "mul24" | "mad24" => multiply_24(form, int),
        "sad" => three(move |a, b, c| c.wrapping_add(int.value(a).abs_diff(int.value(b)) as u64)),
        // A division by zero has an unspecified result. These are the results of NVIDIA's compilers'
        // code: all ones, and the dividend as remainder.
        "div" => two(move |a, b| match int.value(b) {
            0 => u64::MAX,
            b => (int.value(a) / b) as u64,
        }),
        "rem" => two(move |a, b| match int.value(b) {
            0 => a,
            b => (int.value(a) % b) as u64,
        }),
        "abs" => one(move |a| int.value(a).unsigned_abs() as u64),
        "neg" => one(u64::wrapping_neg),
        "min" | "max" => extremum(form, int),
        "popc" => one(|a| a.count_ones().into()),
        "clz" => one(move |a| (a.leading_zeros() - (64 - int.bits)).into()),
        "bfind" => {
            let is_shift = form.has("shiftamt");
            one(move |a| find_leading(int, a, is_shift))
        }
        "fns" => three(find_nth_set),
        "bmsk" => {
            let is_wrapping = form.has("wrap");
            two(move |a, b| bit_mask(a, b, is_wrapping))
        }
        "szext" => {
            let is_wrapping = form.has("wrap");
            two(move |a, b| size_extend(int, a, b, is_wrapping))
        }
        "dp4a" => dot(form, 8),
        "dp2a" => dot(form, 16),
        _ => return Err(Gap::form()),
    })
}

fn add_with_carry(int: Int, a: u64, b: u64, carry: u64) -> [u64; 2] {
    let sum = u128::from(a) + u128::from(b) + u128::from(carry & 1);
    [sum as u64, (sum >> int.bits) as u64 & 1]
}

fn subtract_with_borrow(int: Int, a: u64, b: u64, borrow: u64) -> [u64; 2] {
    let subtrahend = u128::from(b) + u128::from(borrow & 1);
    let difference = u128::from(a).wrapping_sub(subtrahend);
    [difference as u64 & low(int.bits), u64::from(u128::from(a) < subtrahend)]
}

fn multiply_add(form: &Form, int: Int) -> Compute {
    let half = Half::of(form);
    let result = Int { bits: int.bits * if form.has("wide") { 2 } else { 1 }, ..int };
    if form.opcode() == "madc" {
        return pair(move |[a, b, c, carry]: [u64; 4]| {
            add_with_carry(result, half.product(int, a, b) & low(result.bits), c, carry)
        });
    }
    if form.has("cc") {
        return pair(move |[a, b, c]: [u64; 3]| {
            add_with_carry(result, half.product(int, a, b) & low(result.bits), c, 0)
        });
    }
    if form.has("sat") {
        return three(move |a, b, c| {
            let high = signed(half.product(int, a, b) & low(int.bits), int.bits);
            int.saturated(i128::from(high) + int.value(c))
        });
    }
    three(move |a, b, c| half.product(int, a, b).wrapping_add(c))
}

/// Products of the lowest 24 bits: `.hi` is bits 16 to 47, `.lo` bits 0 to 31.
fn multiply_24(form: &Form, int: Int) -> Compute {
    let shift = if form.has("hi") { 16 } else { 0 };
    let factor = move |value: u64| {
        let value = value & 0xff_ffff;
        if int.is_signed { signed(value, 24) } else { value as i64 }
    };
    let saturates = form.has("sat");
    let product = move |a, b| (factor(a) * factor(b)) >> shift;
    if form.opcode() == "mul24" {
        return two(move |a, b| product(a, b) as u64);
    }
    three(move |a, b, c| {
        let product = product(a, b);
        if saturates {
            return int.saturated(i128::from(product as i32) + int.value(c));
        }
        (product as u64).wrapping_add(c)
    })
}

fn extremum(form: &Form, int: Int) -> Compute {
    let (is_max, has_relu) = (form.opcode() == "max", form.has("relu"));
    two(move |a, b| {
        let (x, y) = (int.value(a), int.value(b));
        let chosen = if is_max { x.max(y) } else { x.min(y) };
        (if has_relu { chosen.max(0) } else { chosen }) as u64
    })
}

/// Position of the highest bit that differs from the sign; all ones if there is none.
fn find_leading(int: Int, a: u64, is_shift: bool) -> u64 {
    let value = if int.is_signed && signed(a, int.bits) < 0 { !a & low(int.bits) } else { a };
    match value.checked_ilog2() {
        Some(position) if is_shift => u64::from(int.bits - 1 - position),
        Some(position) => position.into(),
        None => u64::from(u32::MAX),
    }
}

/// Position of the n-th set bit from a base; all ones if there is none.
fn find_nth_set(mask: u64, base: u64, offset: u64) -> u64 {
    const NONE: u64 = u32::MAX as u64;
    let (mask, base, offset) = (mask as u32, base as u32, offset as i32);
    if base > 31 {
        return NONE;
    }
    let is_set = |position: &u32| mask >> position & 1 != 0;
    let found = match offset {
        0 => Some(base).filter(is_set),
        1.. => (base..32).filter(is_set).nth(offset as usize - 1),
        _ => (0..=base).rev().filter(is_set).nth(offset.unsigned_abs() as usize - 1),
    };
    found.map_or(NONE, u64::from)
}

fn bit_mask(start: u64, width: u64, is_wrapping: bool) -> u64 {
    let (start, width) = (start as u32, width as u32);
    if is_wrapping {
        let mask = u64::from(width & 31);
        return ((1u64 << mask) - 1) << (start & 31);
    }
    if start > 31 {
        return 0;
    }
    (low(width.clamp(1, 32)) & if width == 0 { 0 } else { u64::MAX }) << start
}

fn size_extend(int: Int, a: u64, width: u64, is_wrapping: bool) -> u64 {
    let width = width as u32;
    let width = if is_wrapping { width & 31 } else { width.min(32) };
    match width {
        0 => 0,
        width if int.is_signed => signed(a & low(width), width) as u64,
        width => a & low(width),
    }
}

/// Dot products of four bytes, or of two halves with two bytes.
fn dot(form: &Form, size: u32) -> Compute {
    let mut types = form.types.iter().map(|kind| kind.is_signed());
    let (first, second) = (types.next().unwrap_or(false), types.next().unwrap_or(false));
    let part = |value: u64, bits: u32, at: u32, is_signed: bool| {
        let part = value >> (bits * at) & low(bits);
        if is_signed { signed(part, bits) } else { part as i64 }
    };
    // `dp2a.hi` takes the upper bytes of b.
    let start = if form.has("hi") { 2 } else { 0 };
    three(move |a, b, c| {
        let sum = (0..32 / size).map(|at| {
            part(a, size, at, first) * part(b, 8, at + if size == 16 { start } else { 0 }, second)
        });
        (c as i64).wrapping_add(sum.sum::<i64>()) as u64
    })
}

/// Operations on two halves.
fn halves(form: &Form) -> Result<Compute, Gap> {
    let int = Int { bits: 16, is_signed: form.result() == Some(ScalarType::S16x2) };
    let (opcode, has_relu) = (form.opcode().to_owned(), form.has("relu"));
    if !matches!(&*opcode, "add" | "min" | "max") {
        return Err(Gap::form());
    }
    Ok(each(move |[a, b]: [u64; 2]| {
        let half = |shift: u32| {
            let [x, y] = [a, b].map(|value| int.value(value >> shift & 0xffff));
            let result = match &*opcode {
                "add" => x + y,
                "min" => x.min(y),
                _ => x.max(y),
            };
            let result = if has_relu { result.max(0) } else { result };
            (result as u64 & 0xffff) << shift
        };
        half(0) | half(16)
    }))
}
