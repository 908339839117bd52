//! Matrix products with AVX-512, 16 sums at a time, with the same bits as the portable code.
//! Returns `false` for operations that vectors cannot compute efficiently; the portable code then
//! executes them.

mod aligned;
mod lines;
mod product;
mod sums;

pub use product::{Elements, Product, Sum};

use product::{EACH, MOST_RESULTS, Registers, WIDTH, store};

use crate::instruction::Op;
use crate::wave::{Level, Row, Wave};
use lines::{Layout, Lines, Room};
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

/// A product of matrices with 16 rows and columns, whose sums are in the order of k or of integers.
pub struct WaveProduct<K, R> {
    pub elements: [Elements; 2],
    /// Products per sum.
    pub depth: usize,
    /// Number of lanes that hold A and B, and elements per lane.
    pub holders: (usize, usize),
    /// Number of consecutive elements of a lane with consecutive k.
    pub run: usize,
    /// Maps an element of a lane to its k.
    pub k: K,
    /// Number of lanes that hold D, and elements per lane.
    pub results: (usize, usize),
    /// Maps an element of D of a lane to its row.
    pub row: R,
}

/// Computes D = A * B + C. Returns `false` and changes nothing if AVX-512 is not available or not
/// efficient for the operation.
pub fn multiply_wave<K, R>(wave: &mut Wave, op: &Op, product: &WaveProduct<K, R>) -> bool
where
    K: Fn(usize, usize) -> usize,
    R: Fn(usize, usize) -> usize,
{
    if wave.level != Level::Avx512 {
        return false;
    }
    // SAFETY: the host has this level.
    unsafe {
        match product.depth * WIDTH {
            ..=256 => multiply_wave_lines::<16, K, R>(wave, op, product),
            257..=512 => multiply_wave_lines::<32, K, R>(wave, op, product),
            _ => multiply_wave_lines::<128, K, R>(wave, op, product),
        }
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma,bmi1,bmi2")]
fn multiply_wave_lines<const PARTS: usize, K, R>(
    wave: &mut Wave,
    op: &Op,
    product: &WaveProduct<K, R>,
) -> bool
where
    K: Fn(usize, usize) -> usize,
    R: Fn(usize, usize) -> usize,
{
    let (lanes, each) = product.holders;
    let mut rooms = [const { [const { Room::uninit() }; PARTS] }; 2];
    let [left, right] = &mut rooms;
    let lines = |room, side: usize| {
        let elements = product.elements[side];
        let layout = Layout {
            lines: WIDTH,
            depth: product.depth,
            each,
            run: product.run,
            chunks: lanes / WIDTH,
            from: EACH,
            place: |element: usize, group: usize| (product.k)(group * WIDTH, element * product.run),
        };
        let count = (each * elements.bits()).div_ceil(32);
        let registers = Registers::of(wave, op.sources[side].words, count)?;
        let lines = Lines::read(room, &registers, elements, false, layout);
        lines.are_finite.then_some(lines)
    };
    let (Some(left), Some(right)) = (lines(left, 0), lines(right, 1)) else { return false };
    let is_integer = matches!(product.elements[0], Elements::Signed(_) | Elements::Unsigned(_));
    let (lanes, count) = product.results;
    // Each vector of D is a part of a register, given by the register's number and the first lane,
    // and a row.
    let part = |vector: usize| (vector % count, vector / count * WIDTH);
    let rows: [usize; WIDTH] = std::array::from_fn(|vector| {
        let (register, lane) = part(vector);
        (product.row)(lane, register)
    });
    let Some(addends) = Registers::of(wave, [op.sources[2].words[0]; 2], count) else {
        return false;
    };
    let before = std::array::from_fn(|vector| {
        let (register, lane) = part(vector);
        addends.vector(register, lane / WIDTH)
    });
    let all = (&rows, left.values(), right.values());
    let (sums, doubts) = if is_integer {
        sums::integers_of_all(all, before)
    } else {
        sums::chain_of_all(all, before)
    };
    let mut result = [Row::ZERO; MOST_RESULTS];
    for (vector, sum) in sums.into_iter().enumerate() {
        let (register, lane) = part(vector);
        store(&mut result[register].0, lane, sum);
    }
    if doubts != 0 {
        return false;
    }
    for (register, words) in result[..count].iter().enumerate() {
        let row = wave.row_mut(op.destination.plus(register as u16));
        row.0[..lanes].copy_from_slice(&words.0[..lanes]);
    }
    wave.written_lanes = Some(wave.machine.all_lanes());
    true
}
