//! Atomic operations: one table for global memory, flat memory, buffers and LDS.

use crate::execute::lane::small_float::{Rounding, SmallFloat, brain_to_single};
use crate::execute::operations::{maximum_number, minimum_number};
use half::f16;

/// An atomic operation. All values are zero-extended; for 32-bit operations the result's upper half
/// is ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Atomic {
    /// Bytes of the memory word.
    pub bytes: u8,
    /// The modification.
    pub modify: Modify,
}

/// The modification, named as in the manuals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Modify {
    Swap,
    CompareSwap,
    CompareSwapF32,
    CompareSwapF64,
    Add,
    Sub,
    ReverseSub,
    MinSigned,
    MinUnsigned,
    MaxSigned,
    MaxUnsigned,
    And,
    Or,
    Xor,
    MaskedOr,
    Increment,
    Decrement,
    Wrap,
    AddF32,
    AddF64,
    AddPackedF16,
    AddPackedBf16,
    MinF32,
    MaxF32,
    MinF64,
    MaxF64,
    MinNumberF32,
    MaxNumberF32,
    MinNumberF64,
    MaxNumberF64,
    SubClamp,
    SubConditional,
    BarrierArrive,
}

/// Operation for the name after `global_atomic_`, `flat_atomic_` or `buffer_atomic_`.
pub fn find_memory(suffix: &str) -> Option<Atomic> {
    let (base, bytes) = match suffix.strip_suffix("_x2") {
        Some(base) => (base, 8),
        None => (suffix, if suffix.ends_with("f64") { 8 } else { 4 }),
    };
    let modify = match base {
        "swap" => Modify::Swap,
        "cmpswap" => Modify::CompareSwap,
        "add" => Modify::Add,
        "sub" => Modify::Sub,
        "smin" => Modify::MinSigned,
        "umin" => Modify::MinUnsigned,
        "smax" => Modify::MaxSigned,
        "umax" => Modify::MaxUnsigned,
        "and" => Modify::And,
        "or" => Modify::Or,
        "xor" => Modify::Xor,
        "inc" => Modify::Increment,
        "dec" => Modify::Decrement,
        "add_f32" => Modify::AddF32,
        "add_f64" => Modify::AddF64,
        "min_f32" => Modify::MinF32,
        "max_f32" => Modify::MaxF32,
        "min_f64" => Modify::MinF64,
        "max_f64" => Modify::MaxF64,
        "pk_add_f16" => Modify::AddPackedF16,
        "pk_add_bf16" => Modify::AddPackedBf16,
        "cmpswap_f32" => Modify::CompareSwapF32,
        "cmpswap_f64" => Modify::CompareSwapF64,
        "min_num_f32" => Modify::MinNumberF32,
        "max_num_f32" => Modify::MaxNumberF32,
        "min_num_f64" => Modify::MinNumberF64,
        "max_num_f64" => Modify::MaxNumberF64,
        // The name in gfx12.
        "csub" | "sub_clamp_u32" => Modify::SubClamp,
        "cond_sub_u32" => Modify::SubConditional,
        _ => return None,
    };
    Some(Atomic { bytes, modify })
}

/// Operation for the name after `ds_`, without `rtn`: `add_u32`, `cmpst_b64` and so on.
pub fn find_lds(name: &str) -> Option<Atomic> {
    let (base, kind) = name.rsplit_once('_')?;
    let bytes = match kind {
        "u32" | "i32" | "b32" | "f32" | "f16" | "bf16" => 4,
        "u64" | "i64" | "b64" | "f64" => 8,
        _ => return None,
    };
    let modify = match (base, kind.as_bytes()[0]) {
        ("pk_add", b'f') => Modify::AddPackedF16,
        ("pk_add", b'b') => Modify::AddPackedBf16,
        ("add", b'f') if bytes == 4 => Modify::AddF32,
        ("add", b'f') => Modify::AddF64,
        ("add", _) => Modify::Add,
        ("sub", _) => Modify::Sub,
        ("rsub", _) => Modify::ReverseSub,
        ("inc", _) => Modify::Increment,
        ("dec", _) => Modify::Decrement,
        ("min", b'i') => Modify::MinSigned,
        ("min", b'u') => Modify::MinUnsigned,
        ("min", _) if bytes == 4 => Modify::MinF32,
        ("min", _) => Modify::MinF64,
        ("max", b'i') => Modify::MaxSigned,
        ("max", b'u') => Modify::MaxUnsigned,
        ("max", _) if bytes == 4 => Modify::MaxF32,
        ("max", _) => Modify::MaxF64,
        ("and", _) => Modify::And,
        ("or", _) => Modify::Or,
        ("xor", _) => Modify::Xor,
        ("mskor", _) => Modify::MaskedOr,
        ("wrxchg", _) => Modify::Swap,
        ("cmpst", b'b') => Modify::CompareSwap,
        ("cmpst", b'f') if bytes == 4 => Modify::CompareSwapF32,
        ("cmpst", b'f') => Modify::CompareSwapF64,
        ("wrap", _) => Modify::Wrap,
        ("min_num", _) if bytes == 4 => Modify::MinNumberF32,
        ("min_num", _) => Modify::MinNumberF64,
        ("max_num", _) if bytes == 4 => Modify::MaxNumberF32,
        ("max_num", _) => Modify::MaxNumberF64,
        ("sub_clamp", _) => Modify::SubClamp,
        ("cond_sub", _) => Modify::SubConditional,
        ("atomic_barrier_arrive" | "atomic_async_barrier_arrive", _) => Modify::BarrierArrive,
        _ => return None,
    };
    Some(Atomic { bytes, modify })
}

impl Atomic {
    /// Exchange of a dword.
    pub const EXCHANGE_B32: Atomic = Atomic { bytes: 4, modify: Modify::Swap };
    /// Exchange of two dwords.
    pub const EXCHANGE_B64: Atomic = Atomic { bytes: 8, modify: Modify::Swap };
    /// Arrivals at a barrier in LDS.
    pub const BARRIER_ARRIVE: Atomic = Atomic { bytes: 8, modify: Modify::BarrierArrive };

    /// Returns `true` if the operation takes a second data operand.
    pub fn has_second_operand(self) -> bool {
        matches!(
            self.modify,
            Modify::CompareSwap
                | Modify::CompareSwapF32
                | Modify::CompareSwapF64
                | Modify::MaskedOr
                | Modify::Wrap
        )
    }

    /// Computes the new value. `data` is the operand; `second` is the comparison value (swaps), the
    /// bits to clear (masked or), or the subtrahend as long as the result is not negative (wrap).
    pub fn apply(self, old: u64, data: u64, second: u64) -> u64 {
        let narrow = self.bytes == 4;
        let signed = |value: u64| if narrow { i64::from(value as i32) } else { value as i64 };
        match self.modify {
            Modify::Swap => data,
            Modify::CompareSwap => {
                if old == second {
                    data
                } else {
                    old
                }
            }
            Modify::CompareSwapF32 => {
                if f32::from_bits(old as u32) == f32::from_bits(second as u32) { data } else { old }
            }
            Modify::CompareSwapF64 => {
                if f64::from_bits(old) == f64::from_bits(second) {
                    data
                } else {
                    old
                }
            }
            Modify::Wrap if old >= second => old - second,
            Modify::Wrap | Modify::Add => old.wrapping_add(data),
            Modify::Sub => old.wrapping_sub(data),
            Modify::ReverseSub => data.wrapping_sub(old),
            Modify::MinSigned => {
                if signed(data) < signed(old) {
                    data
                } else {
                    old
                }
            }
            Modify::MaxSigned => {
                if signed(data) > signed(old) {
                    data
                } else {
                    old
                }
            }
            Modify::MinUnsigned => old.min(data),
            Modify::MaxUnsigned => old.max(data),
            Modify::And => old & data,
            Modify::Or => old | data,
            Modify::Xor => old ^ data,
            Modify::MaskedOr => old & !second | data,
            Modify::Increment => {
                if old >= data {
                    0
                } else {
                    old + 1
                }
            }
            Modify::Decrement => {
                if old == 0 || old > data {
                    data
                } else {
                    old - 1
                }
            }
            Modify::AddF32 => u64::from(add_f32(old as u32, data as u32)),
            Modify::AddF64 => add_f64(old, data),
            Modify::AddPackedF16 => packed(old, data, add_f16),
            Modify::AddPackedBf16 => packed(old, data, add_bf16),
            Modify::MinNumberF32 => {
                minimum_number(f32::from_bits(data as u32), f32::from_bits(old as u32))
                    .to_bits()
                    .into()
            }
            Modify::MaxNumberF32 => {
                maximum_number(f32::from_bits(data as u32), f32::from_bits(old as u32))
                    .to_bits()
                    .into()
            }
            Modify::MinNumberF64 => {
                minimum_number(f64::from_bits(data), f64::from_bits(old)).to_bits()
            }
            Modify::MaxNumberF64 => {
                maximum_number(f64::from_bits(data), f64::from_bits(old)).to_bits()
            }
            Modify::SubClamp => old.saturating_sub(data),
            Modify::SubConditional if old >= data => old - data,
            Modify::SubConditional => old,
            Modify::BarrierArrive => arrive(old, data),
            Modify::MinF32 => {
                if f32::from_bits(data as u32) < f32::from_bits(old as u32) {
                    data
                } else {
                    old
                }
            }
            Modify::MaxF32 => {
                if f32::from_bits(data as u32) > f32::from_bits(old as u32) {
                    data
                } else {
                    old
                }
            }
            Modify::MinF64 => {
                if f64::from_bits(data) < f64::from_bits(old) {
                    data
                } else {
                    old
                }
            }
            Modify::MaxF64 => {
                if f64::from_bits(data) > f64::from_bits(old) {
                    data
                } else {
                    old
                }
            }
        }
    }
}

fn add_f32(a: u32, b: u32) -> u32 {
    let (x, y) = (f32::from_bits(a), f32::from_bits(b));
    let sum = x + y;
    match (sum.is_nan(), x.is_nan(), y.is_nan()) {
        (false, ..) => sum.to_bits(),
        (_, true, _) => a | 1 << 22,
        (_, _, true) => b | 1 << 22,
        _ => 0x7fc0_0000,
    }
}

fn add_f64(a: u64, b: u64) -> u64 {
    let (x, y) = (f64::from_bits(a), f64::from_bits(b));
    let sum = x + y;
    match (sum.is_nan(), x.is_nan(), y.is_nan()) {
        (false, ..) => sum.to_bits(),
        (_, true, _) => a | 1 << 51,
        (_, _, true) => b | 1 << 51,
        _ => 0x7ff8_0000_0000_0000,
    }
}

/// Applies an operation to both halves of a word.
fn packed(old: u64, data: u64, add: fn(u16, u16) -> u16) -> u64 {
    let half = |shift: u32| u64::from(add((old >> shift) as u16, (data >> shift) as u16)) << shift;
    half(0) | half(16)
}

/// Adds, rounding to nearest even and keeping denormals (CDNA 3 ISA, `DS_PK_ADD_BF16`: "handles
/// NAN/INF/denorm").
fn add_bf16(a: u16, b: u16) -> u16 {
    let [x, y] = [a, b].map(|bits| f64::from(brain_to_single(bits)));
    // A sum in double precision is exact, or so far from a tie in bfloat16 that its rounding does
    // not matter: if the smaller operand lies below its last place, the greater is a bfloat16
    // number.
    let sum = x + y;
    match (sum.is_nan(), x.is_nan(), y.is_nan()) {
        (false, ..) => SmallFloat::BF16.encode(sum, Rounding::Nearest, false) as u16,
        (_, true, _) => a | 1 << 6,
        (_, _, true) => b | 1 << 6,
        _ => 0x7fc0,
    }
}

fn add_f16(a: u16, b: u16) -> u16 {
    let (x, y) = (f16::from_bits(a), f16::from_bits(b));
    // Exact in single precision, so that only one rounding occurs.
    let sum = x.to_f32() + y.to_f32();
    match (sum.is_nan(), x.is_nan(), y.is_nan()) {
        (false, ..) => f16::from_f32(sum).to_bits(),
        (_, true, _) => a | 1 << 9,
        (_, _, true) => b | 1 << 9,
        _ => 0x7e00,
    }
}

/// State of a barrier in LDS after `arrivals` (gfx1250; MLIR, `amdgpu.ds_barrier_arrive`; Triton,
/// `ArriveBarrierOp`). Bits 28:0 count the pending arrivals after the next, bits 31:29 are the phase, and the
/// upper word is the pending count that the next phase begins with. When the pending count goes below zero,
/// the borrow changes the phase.
fn arrive(state: u64, arrivals: u64) -> u64 {
    const PENDING: u64 = (1 << 29) - 1;
    let (pending, arrivals) = (state & PENDING, arrivals & u64::from(u32::MAX));
    if arrivals <= pending {
        return state - arrivals;
    }
    let phase = (state >> 29).wrapping_sub(1) & 7;
    let reload = state >> 32;
    reload << 32 | phase << 29 | reload & PENDING
}

#[cfg(test)]
mod tests;
