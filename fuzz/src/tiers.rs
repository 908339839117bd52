//! Random kernels, interpreted and compiled: the state must be equal after any instruction.

use crate::choices::Choices;
use crate::rewriter::{Kernel, device, machine};
use flipwave_device::{Device, Dispatch};
use flipwave_sim::{EmbeddedGpu, Policy};
use flipwave_tests::Tiers;

/// Instruction limit of a dispatch.
const LIMIT: u64 = 1 << 16;

/// Generates a kernel and runs it on both tiers, as determined by `bytes`. Returns the number of executed
/// instructions.
///
/// # Errors
/// Describes the difference, with the kernel.
pub fn tiers(bytes: &[u8]) -> Result<u64, String> {
    let mut choices = Choices::new(bytes);
    let machine = machine(&mut choices);
    let size = 1 + choices.below(160);
    let kernel = Kernel::new(machine, size, &mut choices);
    let (mut device, buffer) = device(machine);
    let module = device.load(&kernel.object).map_err(|error| error.to_string())?;
    let dispatch = kernel.dispatch(module, buffer, LIMIT);
    // Turns that end at branches, and turns that end anywhere.
    let first_turn = choices.pick(&[Some(1), Some(7), Some(40), None]);
    let wave_turn = choices.pick(&[1024, 64, 5]);
    let policy = Policy { first_turn, wave_turn, ..device.policy() };
    run_in_lockstep(&device, policy, &dispatch, &mut choices)
        .map_err(|difference| format!("{machine}: {difference}\n\n{}", kernel.text))
}

/// Number of executions of a kernel. Code reached in the first one is compiled in the others.
const RUNS: usize = 3;

/// Executes a dispatch on both tiers. Compares the state at random instructions and at the end, and the
/// observations of both tiers.
fn run_in_lockstep(
    device: &EmbeddedGpu,
    policy: Policy,
    dispatch: &Dispatch,
    choices: &mut Choices<'_>,
) -> Result<u64, String> {
    let mut tiers = Tiers::new(device, policy);
    let mut executed = 0;
    for _ in 0..RUNS {
        executed += tiers.run_in_lockstep(dispatch, 1, || 1 + choices.below(4000) as u64)?;
    }
    let [interpreted, compiled] = tiers.observe(std::slice::from_ref(dispatch));
    if interpreted != compiled {
        return Err(format!("interpreted {interpreted:?}\ncompiled {compiled:?}"));
    }
    Ok(executed)
}

#[cfg(test)]
mod tests {
    use super::tiers;
    use crate::choices::random_bytes;
    use crate::driver::drive;

    #[test]
    fn random_kernels_agree_between_compiled_and_interpreted() {
        let mut total = 0;
        drive("tiers", 24, |number| {
            total += tiers(&random_bytes(number, 4096))?;
            Ok(())
        });
        assert!(total > 0);
    }
}
