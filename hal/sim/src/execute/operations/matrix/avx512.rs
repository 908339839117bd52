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
pub use lines::Powers;
use lines::{Lines, Room};
use product::Registers;
use sums::Method;

/// Computes D = A * B + C. Returns `false` and changes nothing if AVX-512 is not available or not
/// efficient for the operation.
pub fn multiply_add(wave: &mut Wave, op: &Op, product: &Product) -> bool {
    multiply(wave, op, product, None)
}

/// Computes D = A * B + C, where powers of two scale the elements of A and of B.
pub fn multiply_scaled(wave: &mut Wave, op: &Op, product: &Product, powers: [Powers; 2]) -> bool {
    multiply(wave, op, product, Some(powers))
}

fn multiply(wave: &mut Wave, op: &Op, product: &Product, powers: Option<[Powers; 2]>) -> bool {
    if wave.level != Level::Avx512 || product.size < WIDTH {
        return false;
    }
    // SAFETY: the host has this level.
    unsafe {
        match product.lines() * product.depth {
            ..=256 => multiply_lines::<16>(wave, op, product, powers),
            257..=512 => multiply_lines::<32>(wave, op, product, powers),
            _ => multiply_lines::<128>(wave, op, product, powers),
        }
    }
}

/// Computes a product whose lines have at most `PARTS` parts.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma,bmi1,bmi2")]
fn multiply_lines<const PARTS: usize>(
    wave: &mut Wave,
    op: &Op,
    product: &Product,
    powers: Option<[Powers; 2]>,
) -> bool {
    let flushes = matches!(product.sum, Sum::Pairwise(_, true));
    let mut rooms = [const { [const { Room::uninit() }; PARTS] }; 2];
    let [left, right] = &mut rooms;
    let lines = |room, side: usize| {
        let (elements, layout) = (product.elements[side], product.layout(side));
        let count = (layout.each * elements.bits()).div_ceil(32);
        let registers = Registers::of(wave, op.sources[side].words, count)?;
        match powers {
            None => Some(Lines::read(room, &registers, elements, flushes, layout)),
            Some(powers) => Lines::read_scaled(room, &registers, elements, layout, powers[side]),
        }
    };
    let (Some(left), Some(right)) = (lines(left, 0), lines(right, 1)) else { return false };
    Method::all(product, [&left, &right])
        .into_iter()
        .flatten()
        .any(|method| sums::make::<PARTS>((wave, op, product), method, &left, &right))
}
