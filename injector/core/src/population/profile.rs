//! The profile: what a workload executes, and which places of it a fault can strike.

use super::census::Census;
use super::collected::{Collected, Kind};
use super::instructions::{Frame, KnownMasked};
use super::permanent::UnitPlaces;
use super::size::{EmptyPopulation, InstructionPopulation, Population};
use super::{Draw, Selection, Stratification};
use crate::fault::{Duration, Fault, FaultError, FaultTarget};
use crate::{GoldenError, Workload};
use flipwave_device::{Completion, DeviceError, Dispatch, WaveId};

/// What one fault-free run offers to a fault. Its size grows with waves and static instructions,
/// not with the length of the run.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    pub(crate) frame: Frame,
    /// Dispatches that were counted. The others are taken to be like the first of their kind.
    pub(crate) counted: usize,
    /// Dispatches of the workload.
    pub(crate) dispatches: usize,
    /// The population's size, as a whole and per group.
    pub population: Population,
    /// Every static instruction that was executed, selected or not, by kernel and PC.
    pub instructions: Vec<InstructionPopulation>,
    pub(crate) strata: Vec<StratumPlaces>,
}

/// How a profile counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Counting {
    /// All dispatches.
    #[default]
    Exact,
    /// The first dispatch of each kernel with each grid and workgroup. Further ones are taken to
    /// execute the same, which they need not where what a kernel does depends on its data. Sites
    /// are exact all the same: what a plan draws is looked up in the dispatch itself, and drawn
    /// anew where that has no such place.
    Approximate,
}

/// A part of the population.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stratum {
    /// Its name; empty where the population is one.
    pub name: String,
    /// Its places.
    pub places: u64,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct StratumPlaces {
    pub name: String,
    pub places: u64,
    /// By wave, for faults that strike executions.
    pub waves: Vec<WavePlaces>,
    /// By unit, for permanent faults.
    pub units: Vec<UnitPlaces>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WavePlaces {
    pub dispatch: u32,
    pub wave: WaveId,
    /// Number of its first place in the stratum.
    pub first: u64,
    /// How many it has.
    pub places: u64,
}

/// No profile.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// The fault contradicts itself.
    #[error(transparent)]
    Fault(#[from] FaultError),
    /// The fault-free run did not complete.
    #[error(transparent)]
    Golden(#[from] GoldenError),
    /// Code that was rewritten has no places of its own for some faults.
    #[error(
        "faults in {target} strike the code that runs, and the code of dispatch {dispatch} was \
         rewritten to emulate instructions; expected a target that instructions name, such as \
         destination_register"
    )]
    Rewritten {
        /// The target.
        target: FaultTarget,
        /// The dispatch.
        dispatch: u32,
    },
    /// Source lines are wanted of code that has none.
    #[error(
        "lines are selected, and the code of kernel `{kernel}` does not say which lines it is \
         from; compile it with -g"
    )]
    NoLines {
        /// The kernel.
        kernel: String,
    },
}

/// Runs `workload` once and counts what `fault` can strike in what is selected.
///
/// Places are numbered by dispatch, then workgroup (x fastest), then wave, then in the order
/// of execution within the wave; within one execution by word, lane and bit, each from the lowest.
/// Each stratum has numbers of its own.
///
/// # Errors
/// [`ProfileError`].
pub fn profile(
    workload: &Workload,
    fault: &Fault,
    selection: &Selection,
    stratification: Stratification,
    counting: Counting,
) -> Result<Profile, ProfileError> {
    let frame = Frame {
        fault: fault.clone(),
        selection: selection.clone(),
        stratification,
        draw: Draw::Bits,
        known_masked: KnownMasked::Sampled,
    };
    let mut profiler = Profiler::new(workload, frame, counting)?;
    workload.run_fault_free(|index, device, dispatch| {
        profiler.count((index, dispatch), |census| {
            let completion = match census {
                Some(census) => workload.observe(device, dispatch, census),
                None => workload.dispatch(device, dispatch),
            };
            completion.map(Some)
        })
    })?;
    Ok(profiler.into_profile())
}

/// Counts in a fault-free run.
pub(crate) struct Profiler<'a> {
    workload: &'a Workload,
    frame: Frame,
    counting: Counting,
    collected: Collected,
}

impl<'a> Profiler<'a> {
    /// Nothing counted yet.
    ///
    /// # Errors
    /// [`ProfileError`] where the code does not have what the fault and the selection need.
    pub fn new(
        workload: &'a Workload,
        frame: Frame,
        counting: Counting,
    ) -> Result<Profiler<'a>, ProfileError> {
        frame.fault.check()?;
        if frame.draw == Draw::Instructions {
            frame.fault.check_by_instruction()?;
        }
        if frame.known_masked == KnownMasked::Counted {
            frame.fault.check_followed()?;
        }
        check_code(workload, &frame)?;
        Ok(Profiler { workload, frame, counting, collected: Collected::default() })
    }

    /// Counts in a dispatch, which `run` runs, and again as long as that gives nothing; what it is given
    /// counts, if anything is counted.
    pub fn count(
        &mut self,
        (index, dispatch): (u32, &Dispatch),
        mut run: impl FnMut(Option<&mut Census<'_>>) -> Result<Option<Completion>, DeviceError>,
    ) -> Result<Completion, DeviceError> {
        let kind = Kind::of(dispatch);
        let is_repeated =
            self.counting == Counting::Approximate && self.collected.repeat(&kind, index);
        loop {
            let new = || Census::new(&self.frame, self.workload, index, dispatch);
            let mut census = (!is_repeated).then(new);
            if let Some(completion) = run(census.as_mut())? {
                if let Some(census) = census {
                    self.collected.add(kind, index, dispatch, census);
                }
                return Ok(completion);
            }
        }
    }

    /// The profile of the run, which has ended.
    pub fn into_profile(self) -> Profile {
        let dispatches = self.workload.program.dispatches.len();
        self.collected.into_profile(self.frame, dispatches)
    }
}

/// Checks that the code has what the fault and the selection need of it.
fn check_code(workload: &Workload, frame: &Frame) -> Result<(), ProfileError> {
    let target = frame.fault.target;
    let strikes_code = matches!(
        target,
        FaultTarget::Register
            | FaultTarget::Instruction
            | FaultTarget::Branch
            | FaultTarget::ProgramCounter
    );
    for (index, dispatch) in (0..).zip(&workload.program.dispatches) {
        if !frame.selection.has_dispatch(index, &dispatch.kernel) {
            continue;
        }
        if strikes_code && workload.guests.contains_key(&dispatch.module.0) {
            return Err(ProfileError::Rewritten { target, dispatch: index });
        }
        if !frame.selection.lines.is_empty() && workload.lines(dispatch).is_none() {
            return Err(ProfileError::NoLines { kernel: dispatch.kernel.clone() });
        }
    }
    Ok(())
}

impl Profile {
    /// What is counted.
    pub fn fault(&self) -> &Fault {
        &self.frame.fault
    }

    /// Whether all dispatches were counted.
    pub(crate) fn is_exact(&self) -> bool {
        self.counted == self.dispatches
    }

    /// Whether the places that faults can strike are only those whose values are read.
    pub(crate) fn leaves_out_known(&self) -> bool {
        self.frame.known_masked == KnownMasked::Counted
    }

    /// Whether what is counted are parts of the device, not executions.
    pub(crate) fn is_permanent(&self) -> bool {
        matches!(self.frame.fault.duration, Duration::Permanent(_))
    }

    /// Checks that there is something to strike.
    ///
    /// # Errors
    /// [`EmptyPopulation`], which says what was executed.
    pub fn check_places(&self) -> Result<(), EmptyPopulation> {
        let Population { places, executed, groups, .. } = &self.population;
        if *places > 0 {
            return Ok(());
        }
        let kinds = groups.iter().map(|group| format!("{} {}", group.executed, group.group));
        let kinds: Vec<String> = kinds.collect();
        let kinds =
            if kinds.is_empty() { String::new() } else { format!(" ({})", kinds.join(", ")) };
        let mut kernels: Vec<&str> =
            self.instructions.iter().map(|own| own.kernel.as_str()).collect();
        kernels.sort_unstable();
        kernels.dedup();
        Err(EmptyPopulation {
            fault: self.frame.fault.to_string(),
            selection: self.frame.selection.to_string(),
            reason: format!(
                "which executed {executed} wave instructions{kinds} in: {}",
                kernels.join(", ")
            ),
        })
    }

    /// What of the workload is selected.
    pub fn selection(&self) -> &Selection {
        &self.frame.selection
    }

    /// How it was counted, in words: `all dispatches counted`, `2 of 40 dispatches counted, the
    /// others taken to be like them`.
    pub fn counted(&self) -> String {
        let dispatches = match (self.counted, self.dispatches) {
            (counted, all) if counted == all => "all dispatches counted".to_owned(),
            (counted, all) => {
                format!("{counted} of {all} dispatches counted, the others taken to be like them")
            }
        };
        match self.frame.draw {
            Draw::Bits => dispatches,
            Draw::Instructions => format!("{dispatches}, by instructions of threads"),
        }
    }

    /// The parts of the population, by name.
    pub fn strata(&self) -> impl Iterator<Item = Stratum> {
        let own = |own: &StratumPlaces| Stratum { name: own.name.clone(), places: own.places };
        self.strata.iter().map(own)
    }
}

impl StratumPlaces {
    /// The wave that has place number `place`, and the place's number among the wave's own.
    pub fn locate(&self, place: u64) -> Option<(&WavePlaces, u64)> {
        let after = self.waves.partition_point(|wave| wave.first <= place);
        let wave = self.waves.get(after.checked_sub(1)?)?;
        let offset = place - wave.first;
        (offset < wave.places).then_some((wave, offset))
    }

    /// The waves that have places.
    pub fn waves_with_places(&self) -> impl Iterator<Item = &WavePlaces> {
        self.waves.iter().filter(|wave| wave.places > 0)
    }

    pub fn push(&mut self, dispatch: u32, wave: WaveId, places: u64) {
        self.waves.push(WavePlaces { dispatch, wave, first: self.places, places });
        self.places += places;
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::fault::FaultModel;
    use crate::population::Group;
    use crate::testing::{Event, dispatch, executions, inst, trace, wave, workload};
    use flipwave_isa::LaneMask;

    /// What is counted for a transient fault in destination registers.
    pub(crate) fn frame(groups: &[Group], model: FaultModel) -> Frame {
        Frame {
            fault: Fault::transient(model),
            selection: Selection { groups: groups.to_vec(), ..Selection::default() },
            stratification: Stratification::None,
            draw: Draw::Bits,
            known_masked: KnownMasked::Sampled,
        }
    }

    /// The profile of dispatches that execute `traces`.
    pub(crate) fn profile_of(traces: &[Vec<Event>], frame: Frame) -> Profile {
        let (workload, dispatch) = (workload(), dispatch());
        let mut collected = Collected::default();
        for (index, trace) in (0..).zip(traces) {
            let mut census = Census::new(&frame, &workload, index, &dispatch);
            executions(trace).for_each(|execution| census.count(&execution));
            collected.add(Kind::of(&dispatch), index, &dispatch, census);
        }
        collected.into_profile(frame, traces.len())
    }

    #[test]
    fn the_population_is_what_was_executed() {
        let profile = profile_of(&[trace()], frame(&[Group::All], FaultModel::FlipOneBit));
        let of = |pc: u64| {
            let found = profile.instructions.iter().find(|entry| entry.pc.0 == pc).unwrap();
            (found.executions, found.hittable, found.places)
        };
        // Lanes 64, 64, 32, 32, 3; two registers of 32 bits.
        assert_eq!(of(0x100), (5, 5, (64 + 64 + 32 + 32 + 3) * 2 * 32));
        assert_eq!(of(0x108), (5, 0, 0));
        // VCC; then two SGPRs, EXEC and SCC: once per execution, whatever lanes are active.
        assert_eq!(of(0x10c), (5, 5, 5 * 64));
        assert_eq!(of(0x110), (5, 5, 5 * (64 + 64 + 1)));
        // Lanes 32, 3, 0, 32, 3: an execution without lanes cannot be hit.
        assert_eq!(of(0x114), (5, 4, (32 + 3 + 32 + 3) * 2 * 32));
        assert_eq!(of(0x11c), (5, 5, 5 * 33));
        assert_eq!(of(0x120), (5, 0, 0));

        let Population { places, hittable, executed, groups, .. } = &profile.population;
        assert_eq!(*places, profile.instructions.iter().map(|entry| entry.places).sum::<u64>());
        assert_eq!((*hittable, *executed), (24, 35));
        assert_eq!(groups.iter().map(|group| group.places).sum::<u64>(), *places);
    }

    #[test]
    fn groups_confine_the_population_and_not_the_count_of_executions() {
        let profile = profile_of(&[trace()], frame(&[Group::Fp64], FaultModel::ZeroValue));
        assert_eq!(profile.population.places, (32 + 3 + 32 + 3) * 2);
        assert_eq!(profile.population.executed, 35);
        let vmem = profile.population.groups.iter().find(|group| group.group == Group::Vmem);
        assert_eq!(vmem.map(|group| (group.executed, group.places)), Some((10, 0)));
    }

    #[test]
    fn waves_are_numbered_by_position_and_not_by_the_order_of_execution() {
        let profile = profile_of(&[trace(), trace()], frame(&[Group::All], FaultModel::FlipOneBit));
        let order: Vec<(u32, WaveId)> =
            profile.strata[0].waves.iter().map(|wave| (wave.dispatch, wave.wave)).collect();
        let waves = [wave(0, 0), wave(0, 1), wave(1, 0)];
        let expected: Vec<(u32, WaveId)> =
            (0..2).flat_map(|dispatch| waves.map(|wave| (dispatch, wave))).collect();
        assert_eq!(order, expected);
    }

    #[test]
    fn every_place_belongs_to_one_wave() {
        let profile = profile_of(&[trace()], frame(&[Group::Salu], FaultModel::FlipOneBit));
        let mut located = Vec::new();
        for place in 0..profile.population.places {
            let (wave, offset) = profile.strata[0].locate(place).unwrap();
            located.push((wave.wave, offset));
        }
        let expected: Vec<(WaveId, u64)> = profile.strata[0]
            .waves
            .iter()
            .flat_map(|wave| (0..wave.places).map(|offset| (wave.wave, offset)))
            .collect();
        assert_eq!(located, expected);
        assert!(profile.strata[0].locate(profile.population.places).is_none());
    }

    /// Places of waves that offer none must not shadow their neighbours.
    #[test]
    fn waves_without_places_are_never_located() {
        let without = inst(0x100, "s_waitcnt vmcnt(0)");
        let with = inst(0x104, "s_mov_b32 s0, 0");
        let trace: Vec<Event> = [(0, &without), (1, &with), (2, &without), (3, &with)]
            .map(|(x, inst)| (wave(x, 0), inst.clone(), LaneMask::FULL))
            .to_vec();
        let profile = profile_of(&[trace], frame(&[Group::All], FaultModel::ZeroValue));
        assert_eq!(profile.strata[0].locate(0).map(|(found, _)| found.wave), Some(wave(1, 0)));
        assert_eq!(profile.strata[0].locate(1).map(|(found, _)| found.wave), Some(wave(3, 0)));
        assert!(profile.strata[0].locate(2).is_none());
    }

    #[test]
    fn the_population_prints_as_a_table() {
        let profile = profile_of(&[trace()], frame(&[Group::Salu], FaultModel::FlipOneBit));
        assert_eq!(
            profile.population.to_string().lines().collect::<Vec<_>>(),
            [
                "group            executed         hittable               places",
                "valu                   10                0                    0",
                "salu                   15               10                  810",
                "vmem                   10                0                    0",
                "sum                    35               10                  810",
            ]
        );
    }
}
