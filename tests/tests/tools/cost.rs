//! Cost of counting: executed instructions of the tiled matrix multiplication, with and without hooks.

use super::compared::{run_file, shipped};
use super::example;
use flipwave_tools::{InstructionCount, Options};

#[test]
fn counting_cost_is_within_limits() {
    for (per, most) in [("block", 1.2), ("instruction", 8.0)] {
        let file = shipped("instruction-count").with("per", per);
        let workload = example("matmul.yaml");
        let run = run_file::<InstructionCount>(&workload, &file, &Options::default(), |_| false);
        let [without, with] = run.executed;
        let ratio = with as f64 / without as f64;
        println!(
            "matmul_tiled, per {per}: {without} to {with} wave instructions, {ratio:.3} times"
        );
        assert!(ratio <= most, "{per}: {ratio}");
    }
}
