//! Pairs of operations in which the second reads a result of the first.

use super::{difference, machines};
use crate::compile::testing::{Plan, VectorPlan, lowerings};
use crate::execute::operations::find;
use crate::instruction::{Adapt, Op, Run, Word};
use crate::tests::bench::op;
use crate::tests::operations::Random;
use crate::wave::{Level, RowIndex};

/// Returns a vector operation on these words that writes register `to`.
fn operation(name: &str, words: &[Word], to: u16) -> (Op, Plan) {
    let row = find(name).expect("a row of the same name");
    let lowering = lowerings().find(|lowering| lowering.name == name).expect("its code");
    let mut op = op(Run::Vector(row.function(Level::detect())));
    op.destination = RowIndex(to);
    for (source, word) in op.sources.iter_mut().zip(words) {
        source.words = [*word; 2];
    }
    op.per_lane = true;
    (op, Plan::Vector(VectorPlan { row, lowering }))
}

/// Selects bits with a constant mask into one of the source registers, which LLVM merges with the
/// EXEC mask. The next operation may meet a NaN, so the old register value is kept.
#[test]
fn inactive_lanes_keep_source_of_bit_select() {
    let mut random = Random(9);
    let row = |index| Word::Row(RowIndex(index));
    for machine in machines() {
        for mask in [0x7fff_ffff, 0x8000_0000, 0xffff, 0xffff_0000, 0x00ff_ff00] {
            for to in [1, 3] {
                let bits = operation("v_bfi_b32", &[Word::Constant(mask), row(3), row(1)], to);
                let sum = operation("v_add_f32", &[row(4), row(5)], 6);
                let difference = difference(&mut random, machine, vec![bits, sum], 12);
                assert_eq!(difference, None, "{mask:#x} to v{to}");
            }
        }
    }
}

/// A NaN of single precision that is the upper half of a finite double. The host gives it another
/// sign because it subtracts where the operation adds a negated operand.
#[test]
fn nan_bails_out_even_if_read_as_half_of_a_double() {
    let mut random = Random(10);
    let row = |index| Word::Row(RowIndex(index));
    for machine in machines() {
        for second in ["v_mul_f64", "v_add_f64", "v_max_f64"] {
            let mut sum = operation("v_add_f32", &[row(4), row(5)], 1);
            let adapt: &mut Adapt = sum.0.adapt.get_or_insert_default();
            adapt.sources[0].negate = true;
            let (mut op, plan) = operation(second, &[row(0), row(2)], 0);
            op.sources[0].words[1] = row(1);
            op.sources[1].words[1] = row(3);
            // The second operation overwrites the sum.
            let difference = difference(&mut random, machine, vec![sum, (op, plan)], 60);
            assert_eq!(difference, None, "{second}");
        }
    }
}
