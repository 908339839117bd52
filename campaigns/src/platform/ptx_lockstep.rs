//! Comparison of all values that a plain and a rewritten PTX module compute.

use super::hardening::LockstepSummary;
use crate::harden::HardeningError;
use flipwave_arch::{Instruction, LaneMask, RegisterId, RegisterRole};
use flipwave_device::{Completion, Dispatch, WaveId};
use flipwave_injector::Workload;
use flipwave_machine::{Executed, Observer, Simulator, Watch, WaveState};
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Executes two versions of a dispatch, each on a clone of `machine`, and compares the instructions of the plain
/// module that each wave executes, the values that they read and the values that they write.
///
/// # Errors
/// [`HardeningError::Diverged`] if a dispatch does not complete.
pub(super) fn compare(
    workload: &Workload,
    machine: &Simulator,
    versions: [&Dispatch; 2],
) -> Result<LockstepSummary, HardeningError> {
    let kernel = &versions[0].kernel;
    let mut values = Values::default();
    for dispatch in versions {
        values.runs += 1;
        let completion = workload.run(&mut machine.clone(), dispatch, &mut values, None)?;
        if let Completion::Faulted(fault) = completion {
            let (kernel, difference) = (kernel.clone(), fault.to_string());
            return Err(HardeningError::Diverged { kernel, difference });
        }
    }
    let shorter = values.waves.iter().filter(|(_, wave)| wave.position < wave.digests.len());
    let shorter = shorter.map(|(id, _)| format!("{id} executes fewer instructions")).min();
    let differing = values.difference.or(shorter).map(|found| format!("{kernel}: {found}"));
    let (instructions, registers) = (values.instructions, values.registers);
    Ok(LockstepSummary { instructions, registers, differing })
}

/// Values of all waves, recorded in the first run and compared in the second.
#[derive(Default)]
struct Values {
    /// Number of runs that have begun.
    runs: usize,
    waves: HashMap<WaveId, Wave>,
    /// Digest of the values that the current instruction reads.
    read: u64,
    instructions: u64,
    registers: u64,
    /// The first difference.
    difference: Option<String>,
}

/// Digests of a wave's instructions.
#[derive(Default)]
struct Wave {
    digests: Vec<u32>,
    /// Number of instructions in the second run.
    position: usize,
}

impl Values {
    /// Digest of an instruction's address and of the registers of a role in some lanes.
    fn digest(
        &mut self,
        inst: &dyn Instruction,
        role: RegisterRole,
        lanes: LaneMask,
        state: &dyn WaveState,
    ) -> u64 {
        let mut hasher = DefaultHasher::new();
        (inst.pc(), lanes.0).hash(&mut hasher);
        let mut registers: Vec<RegisterId> = inst.registers(role);
        registers.sort_unstable();
        registers.dedup();
        for register in registers {
            for lane in lanes.lanes() {
                state.read(register, lane).hash(&mut hasher);
            }
            self.registers += u64::from(self.runs == 2);
        }
        hasher.finish()
    }
}

impl Observer for Values {
    fn watches(&mut self, _: WaveId) -> bool {
        true
    }

    fn before(&mut self, inst: &dyn Instruction, _: WaveId, state: &mut dyn WaveState) {
        self.read = self.digest(inst, RegisterRole::Source, state.active(), state);
    }

    fn after(&mut self, executed: &Executed<'_>, state: &mut dyn WaveState) -> Watch {
        let written = self.digest(executed.inst, RegisterRole::Destination, executed.lanes, state);
        // Half of the bits suffices: a difference is found with a probability of 1 - 2^-32.
        let digest = (self.read ^ written.rotate_left(1)) as u32;
        let wave = self.waves.entry(executed.wave).or_default();
        if self.runs == 1 {
            wave.digests.push(digest);
            return Watch::On;
        }
        self.instructions += 1;
        if wave.digests.get(wave.position) != Some(&digest) && self.difference.is_none() {
            let inst = executed.inst;
            let (text, pc, wave) = (inst.text(), inst.pc(), executed.wave);
            self.difference = Some(format!("values of `{text}` at pc {pc} in {wave}"));
        }
        wave.position += 1;
        Watch::On
    }
}
