//! Matrix products with matrix instructions, on every target that has them and for every element type.
//! Results are compared with plain Rust, which implements formats but no layout of lanes, and campaigns
//! inject faults.

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

/// Runs a kernel and returns the content of D.
fn computed(variant: &Variant, inputs: &Inputs, level: &str) -> Vec<u8> {
    let program = TestProgram::new(&variant.code_object(level));
    let mut program = if variant.machine.has_strict_level() { program.strictly() } else { program };
    variant.launch(&mut program, inputs);
    program.outputs().remove(0)
}

#[test]
fn matrix_products_agree_with_plain_rust() {
    // Not -O1, at which LLVM 22 reads the result of a long MFMA on gfx942 through an index one wait state
    // too early, which the strict level reports.
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

/// A possible mistake of a kernel, planted in the reference's inputs instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mistake {
    /// Columns of B are shifted by one.
    Column,
    /// Two elements of each row of A are swapped.
    Place,
    /// C is read by columns.
    Transposed,
    /// The lowest bit of an element of A is flipped.
    Element,
    /// Indices of a sparse A are read in another order.
    Index,
    /// Scales of A or of B are applied to the next 32 elements.
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

    /// Returns `true` if the mistake changes the results of a kernel.
    fn applies(self, variant: &Variant) -> bool {
        let is_short = matches!(variant.sum, Sum::F16 | Sum::Bf16);
        match self {
            Mistake::Column | Mistake::Place | Mistake::Transposed => true,
            // The lowest bits of long mantissas are below the error bound of sums.
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

/// Negative control: the comparison detects each mistake.
#[test]
fn matrix_comparison_detects_planted_mistakes() {
    for variant in cases(variants(), 3) {
        let inputs = Inputs::new(&variant, Values::Near);
        let found = computed(&variant, &inputs, "-O3");
        for mistake in Mistake::ALL.into_iter().filter(|mistake| mistake.applies(&variant)) {
            let mut mistaken = inputs.clone();
            mistake.make(&mut mistaken);
            let expected = product(&variant, &mistaken);
            let compared = compare(&variant, Values::Near, &expected, &found);
            assert!(compared.wrong > 0, "{mistake:?} is not detected in {variant}");
        }
    }
}
