//! Random kernels, interpreted and compiled: both leave the same at any instruction.

use crate::choices::Choices;
use crate::rewriter::{Kernel, device, machine};
use flipwave_device::{Device, Dispatch};
use flipwave_sim::{EmbeddedGpu, Policy};
use flipwave_tests::Tiers;

/// Instructions after which a dispatch ends.
const LIMIT: u64 = 1 << 16;

/// Runs a kernel on both tiers, all by the decisions of these bytes; how many instructions it executed.
///
/// # Errors
/// How they differ, with the kernel.
pub fn tiers(bytes: &[u8]) -> Result<u64, String> {
    let mut choices = Choices::new(bytes);
    let machine = machine(&mut choices);
    let size = 1 + choices.below(160);
    let kernel = Kernel::new(machine, size, &mut choices);
    let (mut device, buffer) = device(machine);
    let module = device.load(&kernel.object).map_err(|error| error.to_string())?;
    let dispatch = kernel.dispatch(module, buffer, LIMIT);
    // Turns that end at branches, and ones that end anywhere.
    let first_turn = choices.pick(&[Some(1), Some(7), Some(40), None]);
    let wave_turn = choices.pick(&[1024, 64, 5]);
    let policy = Policy { first_turn, wave_turn, ..device.policy() };
    keep_step(&device, policy, &dispatch, &mut choices)
        .map_err(|what| format!("{machine}: {what}\n\n{}", kernel.text))
}

/// Times that a kernel is executed: what is reached in the first is compiled in the others.
const RUNS: usize = 3;

/// Executes a dispatch in both ways, and compares what is there at some instructions and the end, and
/// what runs find out that are looked at.
fn keep_step(
    device: &EmbeddedGpu,
    policy: Policy,
    dispatch: &Dispatch,
    choices: &mut Choices<'_>,
) -> Result<u64, String> {
    let mut tiers = Tiers::new(device, policy);
    let mut executed = 0;
    for _ in 0..RUNS {
        executed += tiers.keep_step(dispatch, 1, || 1 + choices.below(4000) as u64)?;
    }
    let [one, other] = tiers.find_out(std::slice::from_ref(dispatch));
    if one != other {
        return Err(format!("found out {one:?}\ncompiled {other:?}"));
    }
    Ok(executed)
}

#[cfg(test)]
mod tests {
    use super::tiers;
    use crate::choices::random_bytes;
    use crate::driver::drive;

    #[test]
    fn random_kernels_leave_the_same_compiled_and_interpreted() {
        let mut total = 0;
        drive("tiers", 24, |number| {
            total += tiers(&random_bytes(number, 4096))?;
            Ok(())
        });
        assert!(total > 0);
    }
}
