//! The interpreter, and compiled code beside it.

use flipwave_device::{Address, Completion, Device, Dispatch};
use flipwave_isa::{LaneMask, Pc};
use flipwave_sim::{
    Compiling, EmbeddedGpu, Fidelity, FidelityCheck, Footprints, Policy, Progress, Unobserved,
    WaveCounts,
};

/// Two copies of a device: one that interprets, and one that compiles what it reaches a second time.
pub struct Tiers([EmbeddedGpu; 2]);

/// What a run that is looked at finds out of dispatches.
#[derive(Debug, PartialEq)]
pub struct Findings {
    /// Of each dispatch.
    pub dispatches: Vec<Survey>,
    /// Of all.
    pub fidelity: Fidelity,
}

/// What is found out of a dispatch.
#[derive(Debug, PartialEq)]
pub struct Survey {
    end: Completion,
    /// In the order in which they were first executed; nothing of a dispatch that has faulted: what
    /// stands after the fault may be among them.
    instructions: Vec<Pc>,
    /// How often waves have executed them.
    counts: Vec<WaveCounts>,
    footprints: Footprints,
}

/// Lanes that are counted: not all, so that it is seen which are active.
const COUNTED: LaneMask = LaneMask(0x0f0f_ffff_00ff_3fff);

impl Tiers {
    /// Copies of a device with another policy.
    pub fn new(device: &EmbeddedGpu, policy: Policy) -> Tiers {
        Tiers([Compiling::Never, Compiling::AtOnce].map(|compiling| {
            let mut device = device.clone();
            device.set_policy(Policy { compiling, ..policy });
            device
        }))
    }

    /// Executes a dispatch on both with pauses, each so many instructions after the one before, and
    /// compares all state there, and all memory at each pause whose number `memory_every` divides, and at
    /// the end; how many instructions that was.
    ///
    /// # Errors
    /// How they differ.
    pub fn keep_step(
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

    /// What runs of dispatches find out, one after the other, on copies of both.
    pub fn find_out(&self, dispatches: &[Dispatch]) -> [Findings; 2] {
        self.0.each_ref().map(|device| {
            let (mut surveyed, mut followed) = (device.clone(), device.clone());
            let [mut alone, mut beside] = [FidelityCheck::new(), FidelityCheck::new()];
            let of = |dispatch| {
                // After a run that nobody looks at, blocks of compiled code go on to each other.
                surveyed.clone().dispatch(dispatch).expect("a dispatch");
                follow(&mut followed, dispatch, &mut alone);
                survey(&mut surveyed, dispatch, &mut beside)
            };
            let found = dispatches.iter().map(of).collect();
            let fidelity = followed.fidelity(&mut alone);
            assert_eq!(fidelity, surveyed.fidelity(&mut beside), "beside what is counted");
            let mut all = dispatches.iter().enumerate();
            if all.all(|(index, dispatch)| device.has_settled_course(dispatch, index > 0)) {
                let (mut counted, mut only) = (device.clone(), FidelityCheck::new());
                only.only_count();
                dispatches.iter().for_each(|dispatch| follow(&mut counted, dispatch, &mut only));
                assert_eq!(fidelity, counted.fidelity(&mut only), "where the course is settled");
            }
            Findings { dispatches: found, fidelity }
        })
    }
}

fn survey(device: &mut EmbeddedGpu, dispatch: &Dispatch, fidelity: &mut FidelityCheck) -> Survey {
    let mut execution = device.begin(dispatch).expect("a dispatch");
    device.begin_fidelity(&dispatch.kernel, &execution, fidelity);
    let mut check = device.begin_survey(&execution, Some(COUNTED));
    let mut footprints = Footprints::default();
    let mut until = 0;
    // Pauses, so that waves are under way at the end of what is counted at once.
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
    let counter = check.counter.as_mut().expect("what is counted");
    let instructions = match end {
        Completion::Completed(_) => counter.instructions().iter().map(|inst| inst.pc).collect(),
        Completion::Faulted(_) => Vec::new(),
    };
    Survey { end, instructions, counts: counter.take_ended(), footprints }
}

fn follow(device: &mut EmbeddedGpu, dispatch: &Dispatch, check: &mut FidelityCheck) {
    let mut execution = device.begin(dispatch).expect("a dispatch");
    device.begin_fidelity(&dispatch.kernel, &execution, check);
    let end = device.advance_with_fidelity(&mut execution, &mut Unobserved, check, u64::MAX);
    assert!(matches!(end, Ok(Progress::Ended(_))), "{end:?}");
}

/// All that the device has in memory.
fn memory(device: &EmbeddedGpu) -> Vec<(Address, Vec<u8>)> {
    let content = |(address, bytes): (Address, u64)| {
        // Private memory is large, and most of it is not there.
        let mut content = vec![0; bytes.min(1 << 20) as usize];
        device.read(address, &mut content).expect("an allocation");
        (address, content)
    };
    device.allocations().map(content).collect()
}
