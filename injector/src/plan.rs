//! The plan: which faults a campaign injects.

use crate::instructions::{Instruction, Instructions};
use crate::profile::Profile;
use crate::stream::Stream;
use crate::{FaultModel, GoldenError, Group, Site, Workload};
use flipwave_device::{Device, WaveId};
use flipwave_isa::{Inst, LaneMask};
use flipwave_sim::{Executed, Observer, Registers, Watch};
use std::collections::{BTreeMap, HashMap};
use std::num::NonZeroU64;

/// One injection of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Planned {
    /// Where the fault strikes.
    pub site: Site,
    /// The kernel of the site's dispatch.
    pub kernel: String,
    /// Canonical name of the operation struck.
    pub opcode: &'static str,
    /// Its primary group.
    pub group: Group,
}

/// No plan.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// There is nothing to hit.
    #[error(
        "nothing to inject into: {model} has no place in the groups {groups} of this workload, \
         which executed {executed} wave instructions{kinds}"
    )]
    EmptyPopulation {
        /// The fault model.
        model: FaultModel,
        /// The groups selected, as text.
        groups: String,
        /// Wave instructions executed, in any group.
        executed: u64,
        /// What they were, by group, as text.
        kinds: String,
    },
    /// The fault-free run did not complete.
    #[error(transparent)]
    Golden(#[from] GoldenError),
    /// The workload did not execute what its profile says.
    #[error(
        "injection {index} has no site: the workload did not execute again what its profile \
         counted; it is not the same workload, or the device is not deterministic"
    )]
    Unresolved {
        /// Index of the injection.
        index: u64,
    },
}

/// Draws `count` faults from the population of `profile`, with replacement, each place with the
/// same probability, and finds their sites in one more run of the workload.
///
/// Injection `i` is a function of the workload, the profile's groups and model, the seed and
/// `i` alone: a longer plan begins with the shorter one.
///
/// # Errors
/// [`PlanError`] if the population is empty or the workload is not the one profiled.
pub fn plan(
    workload: &Workload,
    profile: &Profile,
    seed: u64,
    count: u64,
) -> Result<Vec<Planned>, PlanError> {
    let mut drawn = draw(profile, seed, count)?;
    let mut planned: Vec<(u64, Planned)> = Vec::new();
    workload.run_fault_free(|index, device, dispatch| {
        let Some(waves) = drawn.remove(&index) else {
            return device.dispatch(dispatch);
        };
        let mut resolver = Resolver::new(profile, index, &dispatch.kernel, waves);
        let completion = device.dispatch_observed(dispatch, &mut resolver)?;
        planned.append(&mut resolver.planned);
        Ok(completion)
    })?;
    planned.sort_unstable_by_key(|(index, _)| *index);
    let missing = (0..count).zip(&planned).find(|(expected, (index, _))| expected != index);
    match missing {
        Some((index, _)) => Err(PlanError::Unresolved { index }),
        None if (planned.len() as u64) < count => {
            Err(PlanError::Unresolved { index: planned.len() as u64 })
        }
        None => Ok(planned.into_iter().map(|(_, planned)| planned).collect()),
    }
}

/// A fault drawn, before its site is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Drawn {
    /// Number of the place among its wave's.
    offset: u64,
    /// Index of the injection.
    index: u64,
    /// The word a random value takes.
    random: u32,
}

/// Faults by dispatch and wave.
type DrawnFaults = BTreeMap<u32, HashMap<WaveId, Vec<Drawn>>>;

fn draw(profile: &Profile, seed: u64, count: u64) -> Result<DrawnFaults, PlanError> {
    let places = NonZeroU64::new(profile.population.places).ok_or_else(|| empty(profile))?;
    let mut drawn = DrawnFaults::new();
    for index in 0..count {
        let mut stream = Stream::new(seed, index);
        let place = stream.below(places);
        let random = stream.word();
        let (wave, offset) = profile.locate(place).ok_or(PlanError::Unresolved { index })?;
        let waves = drawn.entry(wave.dispatch).or_default();
        waves.entry(wave.wave).or_default().push(Drawn { offset, index, random });
    }
    Ok(drawn)
}

fn empty(profile: &Profile) -> PlanError {
    let names: Vec<&str> = profile.groups.iter().map(|group| group.name()).collect();
    let kinds: Vec<String> = profile
        .population
        .groups
        .iter()
        .map(|group| format!("{} {}", group.executed, group.group))
        .collect();
    PlanError::EmptyPopulation {
        model: profile.model,
        groups: if names.is_empty() { "(none)".to_owned() } else { names.join(", ") },
        executed: profile.population.executed,
        kinds: if kinds.is_empty() { String::new() } else { format!(" ({})", kinds.join(", ")) },
    }
}

/// Finds the sites of the faults drawn in one dispatch by counting places as the profile did.
struct Resolver<'a> {
    dispatch: u32,
    kernel: &'a str,
    model: FaultModel,
    instructions: Instructions<'a>,
    pursuits: HashMap<WaveId, Pursuit>,
    planned: Vec<(u64, Planned)>,
}

/// The faults still to be found in one wave.
struct Pursuit {
    /// Latest first, so that the next one is taken off the end.
    pending: Vec<Drawn>,
    /// Places of the executions so far.
    passed: u64,
    /// Executions so far, per number of an instruction.
    occurrences: Vec<u64>,
}

impl<'a> Resolver<'a> {
    fn new(
        profile: &'a Profile,
        dispatch: u32,
        kernel: &'a str,
        waves: HashMap<WaveId, Vec<Drawn>>,
    ) -> Resolver<'a> {
        let pursuit = |(wave, mut pending): (WaveId, Vec<Drawn>)| {
            pending.sort_unstable_by(|left, right| right.cmp(left));
            (wave, Pursuit { pending, passed: 0, occurrences: Vec::new() })
        };
        Resolver {
            dispatch,
            kernel,
            model: profile.model,
            instructions: Instructions::new(&profile.groups, profile.model),
            pursuits: waves.into_iter().map(pursuit).collect(),
            planned: Vec::new(),
        }
    }

    fn see(&mut self, inst: &Inst, wave: WaveId, lanes: LaneMask) -> Watch {
        let Some(pursuit) = self.pursuits.get_mut(&wave) else {
            return Watch::Off;
        };
        let number = self.instructions.number(inst);
        if pursuit.occurrences.len() <= number {
            pursuit.occurrences.resize(number + 1, 0);
        }
        let occurrence = pursuit.occurrences[number];
        pursuit.occurrences[number] += 1;

        let instruction = self.instructions.get(number);
        let first = pursuit.passed;
        pursuit.passed += instruction.destinations.places(lanes);
        while let Some(drawn) = pursuit.pending.pop_if(|drawn| drawn.offset < pursuit.passed) {
            let Some(place) = instruction.destinations.place(lanes, drawn.offset - first) else {
                continue;
            };
            let site = Site {
                dispatch: self.dispatch,
                workgroup: wave.workgroup,
                wave: wave.wave,
                pc: inst.pc,
                occurrence,
                lane: place.lane,
                register: place.register,
                action: self.model.action(place.register, place.place, drawn.random),
            };
            let kernel = self.kernel.to_owned();
            let Instruction { opcode, group, .. } = *instruction;
            self.planned.push((drawn.index, Planned { site, kernel, opcode, group }));
        }
        if pursuit.pending.is_empty() { Watch::Off } else { Watch::On }
    }
}

impl Observer for Resolver<'_> {
    fn watches(&mut self, wave: WaveId) -> bool {
        self.pursuits.contains_key(&wave)
    }

    fn after(&mut self, executed: &Executed<'_>, _: &mut Registers<'_>) -> Watch {
        self.see(executed.inst, executed.wave, executed.lanes)
    }
}
