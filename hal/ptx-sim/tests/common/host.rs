//! Floating-point arithmetic of the host, in every rounding mode.

use super::forms::Operands;
use super::source;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::LazyLock;

/// The reference program, compiled once.
static REFERENCE: LazyLock<PathBuf> = LazyLock::new(|| {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let program = folder.join(format!("reference-{}", std::process::id()));
    let mut command = Command::new("clang-22");
    command.args(["-O1", "-frounding-math", "-ffp-contract=off"]);
    command.arg(source("reference.c")).arg("-lm").arg("-o").arg(&program);
    assert!(command.status().expect("clang-22").success(), "{command:?}");
    program
});

/// Results of an operation in single (`s`) or double (`d`) precision.
pub fn compute(
    operation: &str,
    precision: &str,
    rounding: &str,
    operands: &[Operands],
) -> Vec<u64> {
    let mut command = Command::new(&*REFERENCE);
    command.args([operation, precision, rounding]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().expect("the reference");
    let mut input = child.stdin.take().expect("a pipe");
    let bytes: Vec<u8> = operands
        .iter()
        .flat_map(|operands| operands[..3].iter().flat_map(|operand| operand.to_le_bytes()))
        .collect();
    let writer = std::thread::spawn(move || input.write_all(&bytes).expect("a pipe"));
    let output = child.wait_with_output().expect("results");
    writer.join().expect("operands");
    let words = output.stdout.as_chunks::<8>().0.iter();
    let results: Vec<u64> = words.map(|word| u64::from_le_bytes(*word)).collect();
    assert_eq!(results.len(), operands.len());
    results
}
