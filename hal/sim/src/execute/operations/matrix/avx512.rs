//! Matrix products with AVX-512, 16 sums at a time, with the same bits as the portable code.
//! Returns `false` for operations that vectors cannot compute efficiently; the portable code then
//! executes them.

mod aligned;
mod in_order;
mod lines;
mod product;
mod sums;

pub use in_order::{
    Arithmetic, Nans, Number, Place, Positions, Results, Scales, Signs, WaveProduct, multiply_wave,
    write_wave,
};
pub use product::{Elements, Product, Sum, WIDTH};

use crate::instruction::Op;
use crate::wave::{Level, Wave};
use lines::{Lines, Room};
use product::Registers;
use sums::Method;

/// Computes D = A * B + C. Returns `false` and changes nothing if AVX-512 is not available or not
/// efficient for the operation.
pub fn multiply_add(wave: &mut Wave, op: &Op, product: &Product) -> bool {
    if wave.level != Level::Avx512 || product.size < WIDTH {
        return false;
    }
    // SAFETY: the host has this level.
    unsafe {
        match product.lines() * product.depth {
            ..=256 => multiply_lines::<16>(wave, op, product),
            257..=512 => multiply_lines::<32>(wave, op, product),
            _ => multiply_lines::<128>(wave, op, product),
        }
    }
}

/// Computes a product whose lines have at most `PARTS` parts.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma,bmi1,bmi2")]
fn multiply_lines<const PARTS: usize>(wave: &mut Wave, op: &Op, product: &Product) -> bool {
    let flushes = matches!(product.sum, Sum::Pairwise(_, true));
    let mut rooms = [const { [const { Room::uninit() }; PARTS] }; 2];
    let [left, right] = &mut rooms;
    let lines = |room, side: usize| {
        let (elements, layout) =
            (product.elements[side], product.layout(side, op.inst.modifiers.blgp));
        let count = (layout.each * elements.bits()).div_ceil(32);
        let registers = Registers::of(wave, op.sources[side].words, count)?;
        Some(Lines::read(room, &registers, elements, flushes, layout))
    };
    let (Some(left), Some(right)) = (lines(left, 0), lines(right, 1)) else { return false };
    Method::all(product, [&left, &right])
        .into_iter()
        .flatten()
        .any(|method| sums::make::<PARTS>((wave, op, product), method, &left, &right))
}
