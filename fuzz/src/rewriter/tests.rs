use super::*;
use crate::driver::drive;

/// Size of an input in bytes. Kernels stop growing at its end.
const BYTES: usize = 4096;

#[test]
fn random_kernels_with_random_hooks_behave_as_before() {
    let mut total = Outcome::default();
    let mut rewritten = 0;
    drive("rewriter", 40, |number| {
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

/// Each of these inputs once revealed a bug of the rewriter, the checker or lockstep execution: moves that
/// mitigate hazards after calls and after transcendental operations; hazards completed by code inserted
/// or removed in between; functions that begin with a removed hint; waves that only one side reaches;
/// code inserted after a call, before which the caller's instructions were assumed to run; and masks
/// overwritten long before inserted code reads them.
#[test]
fn former_findings_are_fixed() {
    let found = [
        277, 2888, 3968, 10194, 103695, 105803, 106813, 109854, 111258, 400178, 400989, 401119,
        402929, 406413, 3007317, 4000481, 5000405, 6000505, 6001330, 6003510, 6007228, 6008075,
    ];
    for number in found {
        if let Err(error) = rewriter(&random_bytes(number, BYTES)) {
            panic!("FLIPWAVE_FUZZ_EPISODE={number}: {error}");
        }
    }
}
