use super::*;
use crate::driver::drive;

/// Bytes of an input; kernels stop growing where they run out.
const BYTES: usize = 4096;

#[test]
fn random_kernels_with_random_hooks_are_rewritten_and_run_as_before() {
    let mut total = Outcome::default();
    let mut rewritten = 0;
    drive("rewriter", 60, |number| {
        let found = rewriter(&random_bytes(number, BYTES))?;
        rewritten += u64::from(found.is_rewritten);
        total.placed += found.placed;
        total.refused += found.refused;
        total.instructions += found.instructions;
        Ok(())
    });
    println!("{rewritten} rewritten: {total:?}");
    assert!(total.placed > 0 && total.instructions > 0, "{total:?}");
}
