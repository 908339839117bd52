//! Matrix products with AVX-512, 16 sums at a time, with the same bits as the portable code.
//! Returns `false` for operations that vectors cannot compute efficiently; the portable code then
//! executes them.

mod aligned;
mod in_order;
mod lines;
mod product;
mod sums;

pub use in_order::{
    Arithmetic, Nans, Number, Place, Results, Scales, Signs, SparseRows, WaveProduct,
    multiply_wave, write_wave,
};
pub use product::{Elements, Product, Sum, WIDTH};

use crate::instruction::Op;
use crate::wave::{Level, Wave};
use lines::{Lines, Room};
pub use lines::{Positions, Powers, Repeated};
use product::Registers;
use sums::Method;

/// Form of the operands of a product.
#[derive(Clone, Copy)]
pub enum Form {
    /// A and B store all elements.
    Dense,
    /// Powers of two that scale the elements of A and of B.
    Scaled([Powers; 2]),
    /// A stores two of each four elements.
    Sparse(Positions),
}

/// Computes D = A * B + C. Returns `false` and changes nothing if AVX-512 is not available or not
/// efficient for the operation.
pub fn multiply_add(wave: &mut Wave, op: &Op, product: &Product, form: Form) -> bool {
    if wave.level != Level::Avx512 || product.size < WIDTH {
        return false;
    }
    // SAFETY: the host has this level.
    unsafe {
        match product.lines() * product.depth {
            ..=256 => multiply_lines::<16>(wave, op, product, form),
            257..=512 => multiply_lines::<32>(wave, op, product, form),
            _ => multiply_lines::<128>(wave, op, product, form),
        }
    }
}

/// Computes a product whose lines have at most `PARTS` parts.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma,bmi1,bmi2")]
fn multiply_lines<const PARTS: usize>(
    wave: &mut Wave,
    op: &Op,
    product: &Product,
    form: Form,
) -> bool {
    let flushes = matches!(product.sum, Sum::Pairwise(_, true));
    let mut rooms = [const { [const { Room::uninit() }; PARTS] }; 3];
    let [left, right, stored] = &mut rooms;
    let lines = |room, side: usize| {
        let (elements, layout) = (product.elements[side], product.layout(side));
        let count = (layout.each * elements.bits()).div_ceil(32);
        let registers = Registers::of(wave, op.sources[side].words, count)?;
        match form {
            Form::Scaled(powers) => {
                Lines::read_scaled(room, &registers, elements, layout, powers[side])
            }
            _ => Some(Lines::read(room, &registers, elements, flushes, layout)),
        }
    };
    let rows = match form {
        Form::Sparse(positions) => {
            let (elements, layout) = (product.elements[0], product.fours());
            let count = (layout.each / 2 * elements.bits()).div_ceil(32);
            let registers = Registers::of(wave, op.sources[0].words, count);
            let words = Registers::of(wave, [positions.word; 2], 1);
            registers.zip(words).and_then(|(registers, words)| {
                let positions = (&words, positions);
                Lines::read_sparse([stored, left], &registers, elements, layout, positions)
            })
        }
        _ => lines(left, 0),
    };
    let (Some(left), Some(right)) = (rows, lines(right, 1)) else { return false };
    Method::all(product, form, [&left, &right])
        .into_iter()
        .flatten()
        .any(|method| sums::make::<PARTS>((wave, op, product), method, &left, &right))
}
