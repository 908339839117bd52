//! Cost of counting: executed instructions of the tiled matrix multiplication, with and without hooks.

use super::compared::run;
use super::example;
use flipwave_tools::{InstructionCount, Options, Per};

#[test]
fn counting_cost_is_within_limits() {
    for (per, most) in [(Per::Block, 1.2), (Per::Instruction, 8.0)] {
        let options = Options { per, ..Options::default() };
        let [without, with] =
            run::<InstructionCount>(&example("matmul.yaml"), &options, |_| false).executed;
        let ratio = with as f64 / without as f64;
        println!(
            "matmul_tiled, per {per:?}: {without} to {with} wave instructions, {ratio:.3} times"
        );
        assert!(ratio <= most, "{per:?}: {ratio}");
    }
}
