//! Products of matrices by matrix instructions, on every target that has some, for every kind of
//! element: what they compute is compared with plain Rust, which knows formats and nothing of lanes,
//! and campaigns strike them.

mod campaigns;
mod format;
mod inputs;
mod reference;
mod run;
mod shipped;
mod sums;
mod variants;

use flipwave_tests::{TestProgram, cases, is_long_run};
use format::Sum;
use inputs::{Inputs, Values};
use reference::{compare, product};
use variants::Kind;
pub use variants::{Variant, everyday, variants};

/// The content of D.
fn computed(variant: &Variant, inputs: &Inputs, level: &str) -> Vec<u8> {
    let program = TestProgram::new(&variant.code_object(level));
    let mut program = if variant.machine.has_strict_level() { program.strictly() } else { program };
    variant.launch(&mut program, inputs);
    program.outputs().remove(0)
}

#[test]
fn products_are_what_plain_rust_computes() {
    // Not -O1: there LLVM 22 reads a result of a long MFMA on gfx942 by an index one wait state too
    // early, which the strict level reports.
    let levels: &[&str] = if is_long_run() { &["-O3", "-O0"] } else { &["-O3"] };
    let mut failures = Vec::new();
    for variant in cases(variants(), 3) {
        for values in [Values::Exact, Values::Near, Values::Wide] {
            let inputs = Inputs::new(&variant, values);
            let expected = product(&variant, &inputs);
            for level in levels {
                let compared =
                    compare(&variant, values, &expected, &computed(&variant, &inputs, level));
                let line = format!("{variant} {level} {values:?}: {compared:?}");
                println!("{line}");
                if compared.wrong > 0 || compared.undetermined * 3 > compared.elements {
                    failures.push(line);
                }
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// What a kernel might have wrong, planted in what the reference is given instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mistake {
    /// Each column of B is taken for its neighbour.
    Column,
    /// Two elements of the rows of A change places.
    Place,
    /// C is read by columns.
    Transposed,
    /// An element of A has another bit at the bottom.
    Element,
    /// Where the elements of a sparse A are is read in another order.
    Index,
    /// Scales belong to the next 32 elements, of A or of B.
    LeftScale,
    RightScale,
}

impl Mistake {
    const ALL: [Mistake; 7] = [
        Mistake::Column,
        Mistake::Place,
        Mistake::Transposed,
        Mistake::Element,
        Mistake::Index,
        Mistake::LeftScale,
        Mistake::RightScale,
    ];

    /// Whether a kernel can have it wrong so that it shows.
    fn applies(self, variant: &Variant) -> bool {
        let is_short = matches!(variant.sum, Sum::F16 | Sum::Bf16);
        match self {
            Mistake::Column | Mistake::Place | Mistake::Transposed => true,
            // The lowest bits of long mantissas are less than what sums may be off by.
            Mistake::Element => variant.a.bits() <= 16 && !is_short,
            Mistake::Index => variant.kind == Kind::Sparse,
            Mistake::LeftScale | Mistake::RightScale => variant.kind == Kind::Scaled,
        }
    }

    fn make(self, inputs: &mut Inputs) {
        match self {
            Mistake::Column => inputs.b.rotate_left(1),
            Mistake::Place => inputs.a.iter_mut().for_each(|row| row.swap(0, 3)),
            Mistake::Transposed => {
                let size = inputs.c.len().min(inputs.c[0].len());
                let before = inputs.c.clone();
                for (row, line) in inputs.c[..size].iter_mut().enumerate() {
                    let transposed = before[..size].iter().map(|line| line[row]);
                    line.iter_mut().zip(transposed).for_each(|(element, other)| *element = other);
                }
            }
            Mistake::Element => inputs.a.iter_mut().for_each(|row| row[1] ^= 1),
            Mistake::Index => inputs.indices.iter_mut().for_each(|row| row.reverse()),
            Mistake::LeftScale => inputs.a_scales.iter_mut().for_each(|row| row.rotate_left(1)),
            Mistake::RightScale => inputs.b_scales.iter_mut().for_each(|row| row.rotate_left(1)),
        }
    }
}

/// The negative control.
#[test]
fn a_product_of_what_lies_elsewhere_is_another() {
    for variant in cases(variants(), 3) {
        let inputs = Inputs::new(&variant, Values::Near);
        let found = computed(&variant, &inputs, "-O3");
        for mistake in Mistake::ALL.into_iter().filter(|mistake| mistake.applies(&variant)) {
            let mut mistaken = inputs.clone();
            mistake.make(&mut mistaken);
            let expected = product(&variant, &mistaken);
            let compared = compare(&variant, Values::Near, &expected, &found);
            assert!(compared.wrong > 0, "nobody misses {mistake:?} in {variant}");
        }
    }
}
