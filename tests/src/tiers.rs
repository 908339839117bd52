//! Comparison of the interpreter with compiled code.

use flipwave_device::{Address, Completion, Device, Dispatch};
use flipwave_isa::{LaneMask, Pc};
use flipwave_machine::Fidelity;
use flipwave_sim::{
    Compiling, EmbeddedGpu, FidelityCheck, Footprints, Policy, Progress, Unobserved, WaveCounts,
};

/// Two copies of a device: one interprets, and one compiles code that it executes again.
pub struct Tiers([EmbeddedGpu; 2]);

/// Observations of several dispatches.
#[derive(Debug, PartialEq)]
pub struct Findings {
    /// Observations of each dispatch.
    pub dispatches: Vec<DispatchFindings>,
    /// Fidelity of all dispatches.
    pub fidelity: Fidelity,
}

/// Observations of a dispatch.
#[derive(Debug, PartialEq)]
pub struct DispatchFindings {
    end: Completion,
    /// Instructions in the order of their first execution. Empty after a fault, because instructions
    /// behind the fault may have been executed.
    instructions: Vec<Pc>,
    /// Executions by wave.
    counts: Vec<WaveCounts>,
    footprints: Footprints,
}

/// Lanes that are counted. A mask with gaps shows which lanes are active.
const COUNTED: LaneMask = LaneMask(0x0f0f_ffff_00ff_3fff);

impl Tiers {
    /// Copies a device and sets the policy of the copies.
    pub fn new(device: &EmbeddedGpu, policy: Policy) -> Tiers {
        Tiers([Compiling::Never, Compiling::AtOnce].map(|compiling| {
            let mut device = device.clone();
            device.set_policy(Policy { compiling, ..policy });
            device
        }))
    }

    /// Executes a dispatch on both copies, with pauses after `pause()` instructions each. Compares all
    /// state at each pause, and all memory at every `memory_every`-th pause and at the end. Returns the
    /// number of instructions.
    ///
    /// # Errors
    /// Describes the first difference.
    pub fn run_in_lockstep(
        &mut self,
        dispatch: &Dispatch,
        memory_every: u64,
        mut pause: impl FnMut() -> u64,
    ) -> Result<u64, String> {
        let begin = |device: &mut EmbeddedGpu| device.begin(dispatch).expect("a dispatch");
        let mut executions = self.0.each_mut().map(begin);
        let mut until = 0;
        for number in 1_u64.. {
            until += pause();
            let mut advance = |tier: usize| {
                let progress = self.0[tier].advance(&mut executions[tier], &mut Unobserved, until);
                progress.expect("advance")
            };
            let ends = [advance(0), advance(1)];
            if ends[0] != ends[1] {
                return Err(format!("until {until}: {:?}, compiled {:?}", ends[0], ends[1]));
            }
            if !executions[0].is_in_state_of(&executions[1]) {
                return Err(format!("another state at {until}"));
            }
            let has_ended = ends[0] != Progress::Paused;
            let compares_memory = has_ended || number.is_multiple_of(memory_every);
            if compares_memory && memory(&self.0[0]) != memory(&self.0[1]) {
                return Err(format!("other bytes in memory at {until}"));
            }
            if has_ended {
                break;
            }
        }
        Ok(until)
    }

    /// Observes consecutive dispatches on copies of both devices.
    pub fn observe(&self, dispatches: &[Dispatch]) -> [Findings; 2] {
        self.0.each_ref().map(|device| {
            let (mut profiled, mut tracked) = (device.clone(), device.clone());
            let [mut alone, mut combined] = [FidelityCheck::new(), FidelityCheck::new()];
            let observe = |dispatch| {
                // An unobserved run chains the blocks of compiled code.
                profiled.clone().dispatch(dispatch).expect("a dispatch");
                track(&mut tracked, dispatch, &mut alone);
                profile(&mut profiled, dispatch, &mut combined)
            };
            let found = dispatches.iter().map(observe).collect();
            let fidelity = tracked.fidelity(&mut alone);
            assert_eq!(fidelity, profiled.fidelity(&mut combined), "fidelity while profiling");
            let mut all = dispatches.iter().enumerate();
            if all.all(|(index, dispatch)| device.has_settled_course(dispatch, index > 0)) {
                let (mut counted, mut only) = (device.clone(), FidelityCheck::new());
                only.only_count();
                dispatches.iter().for_each(|dispatch| track(&mut counted, dispatch, &mut only));
                assert_eq!(fidelity, counted.fidelity(&mut only), "fidelity if nothing is tracked");
            }
            Findings { dispatches: found, fidelity }
        })
    }
}

fn profile(
    device: &mut EmbeddedGpu,
    dispatch: &Dispatch,
    fidelity: &mut FidelityCheck,
) -> DispatchFindings {
    let mut execution = device.begin(dispatch).expect("a dispatch");
    device.begin_fidelity(&dispatch.kernel, &execution, fidelity);
    let mut check = device.begin_survey(&execution, Some(COUNTED));
    let mut footprints = Footprints::default();
    let mut until = 0;
    // Pause regularly, so that waves are in progress when counters are collected.
    let end = loop {
        until += 5_000;
        let (observer, notes) = (&mut Unobserved, Some(&mut footprints));
        let fidelity = Some(&mut *fidelity);
        let progress =
            device.advance_surveyed(&mut execution, observer, &mut check, fidelity, notes, until);
        if let Progress::Ended(end) = progress.expect("advance") {
            break end;
        }
    };
    let counter = check.counter.as_mut().expect("a counter");
    let instructions = match end {
        Completion::Completed(_) => counter.instructions().iter().map(|inst| inst.pc).collect(),
        Completion::Faulted(_) => Vec::new(),
    };
    DispatchFindings { end, instructions, counts: counter.take_ended(), footprints }
}

fn track(device: &mut EmbeddedGpu, dispatch: &Dispatch, check: &mut FidelityCheck) {
    let mut execution = device.begin(dispatch).expect("a dispatch");
    device.begin_fidelity(&dispatch.kernel, &execution, check);
    let end = device.advance_with_fidelity(&mut execution, &mut Unobserved, check, u64::MAX);
    assert!(matches!(end, Ok(Progress::Ended(_))), "{end:?}");
}

/// All memory of the device.
fn memory(device: &EmbeddedGpu) -> Vec<(Address, Vec<u8>)> {
    let content = |(address, bytes): (Address, u64)| {
        // Private memory is large, and most of it is not allocated.
        let mut content = vec![0; bytes.min(1 << 20) as usize];
        device.read(address, &mut content).expect("an allocation");
        (address, content)
    };
    device.allocations().map(content).collect()
}
