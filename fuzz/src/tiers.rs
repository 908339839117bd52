//! Random kernels, interpreted and compiled: both leave the same at any instruction.

use crate::choices::Choices;
use crate::rewriter::{BUFFER, Kernel, device, machine};
use flipwave_device::{Address, Device, Dispatch};
use flipwave_sim::{Compiling, EmbeddedGpu, Execution, Policy, Progress, Unobserved};

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
    keep_step((&device, policy), &dispatch, buffer, &mut choices)
        .map_err(|what| format!("{machine}: {what}\n\n{}", kernel.text))
}

/// Times that a kernel is executed: what is reached in the first is compiled in the others.
const RUNS: usize = 3;

/// Executes a dispatch in both ways, and compares what is there at some instructions and the end.
fn keep_step(
    (device, policy): (&EmbeddedGpu, Policy),
    dispatch: &Dispatch,
    buffer: Address,
    choices: &mut Choices<'_>,
) -> Result<u64, String> {
    let mut devices = [Compiling::Never, Compiling::AtOnce].map(|compiling| {
        let mut device = device.clone();
        device.set_policy(Policy { compiling, ..policy });
        device
    });
    let mut executed = 0;
    for _ in 0..RUNS {
        executed += run(&mut devices, dispatch, buffer, choices)?;
    }
    Ok(executed)
}

fn run(
    devices: &mut [EmbeddedGpu; 2],
    dispatch: &Dispatch,
    buffer: Address,
    choices: &mut Choices<'_>,
) -> Result<u64, String> {
    let begin = |device: &mut EmbeddedGpu| device.begin(dispatch).expect("a dispatch");
    let mut executions: Vec<Execution> = devices.iter_mut().map(begin).collect();
    let mut until = 0;
    loop {
        until += 1 + choices.below(4000) as u64;
        let ends: Vec<Progress> = devices
            .iter_mut()
            .zip(&mut executions)
            .map(|(device, own)| device.advance(own, &mut Unobserved, until).expect("advance"))
            .collect();
        if ends[0] != ends[1] {
            return Err(format!("until {until}: {:?}, compiled {:?}", ends[0], ends[1]));
        }
        if !executions[0].is_in_state_of(&executions[1]) {
            return Err(format!("another state at {until}"));
        }
        let [one, other] = devices.each_ref().map(|device| content(device, buffer));
        if one != other {
            return Err(format!("other bytes in memory at {until}"));
        }
        if ends[0] != Progress::Paused {
            return Ok(until);
        }
    }
}

fn content(device: &EmbeddedGpu, buffer: Address) -> Vec<u8> {
    let mut content = vec![0; BUFFER as usize];
    device.read(buffer, &mut content).expect("the buffer");
    content
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
