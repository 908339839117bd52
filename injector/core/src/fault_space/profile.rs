//! Profiling: counting what a workload executes and which fault sites it has.

use super::collected::{Collected, Kind};
use super::counter::FaultSpaceCounter;
use super::instructions::{Frame, KnownMasked};
use super::permanent::UnitPlaces;
use super::size::{EmptyFaultSpace, FaultSpace, InstructionFaultSpace};
use super::{Draw, Selection, Stratification};
use crate::fault::{Duration, Fault, FaultError, FaultTarget};
use crate::{GoldenError, Workload};
use flipwave_device::{Completion, DeviceError, Dispatch, WaveId};

/// The fault space of one golden run. Its size grows with waves and static instructions, not with the
/// length of the run.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    pub(crate) frame: Frame,
    /// Number of dispatches counted. The others are assumed to be like the first of their kind.
    pub(crate) counted: usize,
    /// Number of dispatches of the workload.
    pub(crate) dispatches: usize,
    /// Size of the fault space, in total and per group.
    pub fault_space: FaultSpace,
    /// All executed static instructions, selected or not, by kernel and PC.
    pub instructions: Vec<InstructionFaultSpace>,
    pub(crate) strata: Vec<StratumSites>,
}

/// Extent of a profile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Counting {
    /// Counts all dispatches.
    #[default]
    Exact,
    /// Counts the first dispatch of each kernel with each grid and workgroup size. Later ones are
    /// assumed to execute the same, which may be wrong if control flow depends on data. Sites are exact
    /// nevertheless: a plan resolves a drawn site in its dispatch and draws again if it does not exist
    /// there.
    Approximate,
}

/// A part of the fault space.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stratum {
    /// Name; empty if the fault space is not stratified.
    pub name: String,
    /// Number of sites.
    pub sites: u64,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct StratumSites {
    pub name: String,
    pub sites: u64,
    /// Sites by wave, for faults in executions.
    pub waves: Vec<WavePlaces>,
    /// Sites by unit, for permanent faults.
    pub units: Vec<UnitPlaces>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WavePlaces {
    pub dispatch: u32,
    pub wave: WaveId,
    /// Number of its first site in the stratum.
    pub first: u64,
    /// Number of its sites.
    pub sites: u64,
}

/// Errors returned by profiling.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// The fault is inconsistent.
    #[error(transparent)]
    Fault(#[from] FaultError),
    /// The fault-free run did not complete.
    #[error(transparent)]
    Golden(#[from] GoldenError),
    /// The fault target does not support rewritten code.
    #[error(
        "faults in {target} strike the code that runs, and the code of dispatch {dispatch} contains \
         hooks, of emulated instructions or a detector; expected a target that instructions name, \
         such as destination_register"
    )]
    Rewritten {
        /// The target.
        target: FaultTarget,
        /// The dispatch.
        dispatch: u32,
    },
    /// Lines are selected, but the code has no line table.
    #[error(
        "lines are selected, but the code of kernel `{kernel}` has no line information; \
         compile it with -g"
    )]
    NoLines {
        /// The kernel.
        kernel: String,
    },
}

/// Runs `workload` once and counts the sites of `fault` in the selected executions.
///
/// Sites are numbered by dispatch, then workgroup (x fastest), then wave, then in the order of
/// execution within the wave; within one execution by word, lane and bit, each from the lowest. Each
/// stratum is numbered separately.
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
        profiler.count(index, dispatch, |space_counter| {
            let completion = match space_counter {
                Some(space_counter) => workload.run(device, dispatch, space_counter, None),
                None => workload.dispatch(device, dispatch),
            };
            completion.map(Some)
        })
    })?;
    Ok(profiler.into_profile())
}

/// Counts sites during a golden run.
pub(crate) struct Profiler<'a> {
    workload: &'a Workload,
    frame: Frame,
    counting: Counting,
    collected: Collected,
}

impl<'a> Profiler<'a> {
    /// Creates a profiler without counts.
    ///
    /// # Errors
    /// [`ProfileError`] if the fault and the selection do not fit the code.
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

    /// Counts a dispatch, which `run` executes with the given counter; the counter is absent if the
    /// dispatch need not be counted. Repeats the dispatch with a new counter while `run` returns
    /// `None`.
    pub fn count(
        &mut self,
        index: u32,
        dispatch: &Dispatch,
        mut run: impl FnMut(
            Option<&mut FaultSpaceCounter<'_>>,
        ) -> Result<Option<Completion>, DeviceError>,
    ) -> Result<Completion, DeviceError> {
        let kind = Kind::of(dispatch);
        let is_repeated =
            self.counting == Counting::Approximate && self.collected.repeat(&kind, index);
        loop {
            let new = || FaultSpaceCounter::new(&self.frame, self.workload, index, dispatch);
            let mut space_counter = (!is_repeated).then(new);
            if let Some(completion) = run(space_counter.as_mut())? {
                if let Some(space_counter) = space_counter {
                    self.collected.add(kind, index, dispatch, space_counter);
                }
                return Ok(completion);
            }
        }
    }

    /// Ends the run and returns its profile.
    pub fn into_profile(self) -> Profile {
        let dispatches = self.workload.program.dispatches.len();
        self.collected.into_profile(self.frame, dispatches)
    }
}

/// Checks that the code supports the fault and the selection.
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
        if strikes_code && workload.device.is_rewritten(dispatch.module) {
            return Err(ProfileError::Rewritten { target, dispatch: index });
        }
        if !frame.selection.lines.is_empty() && workload.lines(dispatch).is_none() {
            return Err(ProfileError::NoLines { kernel: dispatch.kernel.clone() });
        }
    }
    Ok(())
}

impl Profile {
    /// The fault whose sites are counted.
    pub fn fault(&self) -> &Fault {
        &self.frame.fault
    }

    /// Returns `true` if all dispatches were counted.
    pub(crate) fn is_exact(&self) -> bool {
        self.counted == self.dispatches
    }

    /// Returns `true` if sites in values that nothing reads are excluded.
    pub(crate) fn leaves_out_known(&self) -> bool {
        self.frame.known_masked == KnownMasked::Counted
    }

    /// Returns `true` if the sites are parts of the device instead of executions.
    pub(crate) fn is_permanent(&self) -> bool {
        matches!(self.frame.fault.duration, Duration::Permanent(_))
    }

    /// Checks that the fault space is not empty.
    ///
    /// # Errors
    /// [`EmptyFaultSpace`], which lists what was executed.
    pub fn check_places(&self) -> Result<(), EmptyFaultSpace> {
        let FaultSpace { sites, executed, groups, .. } = &self.fault_space;
        if *sites > 0 {
            return Ok(());
        }
        let kinds = groups.iter().map(|group| format!("{} {}", group.executed, group.group));
        let kinds: Vec<String> = kinds.collect();
        let kinds =
            if kinds.is_empty() { String::new() } else { format!(" ({})", kinds.join(", ")) };
        let mut kernels: Vec<&str> =
            self.instructions.iter().map(|instruction| instruction.kernel.as_str()).collect();
        kernels.sort_unstable();
        kernels.dedup();
        Err(EmptyFaultSpace {
            fault: self.frame.fault.to_string(),
            selection: self.frame.selection.to_string(),
            reason: format!(
                "which executed {executed} wave instructions{kinds} in: {}",
                kernels.join(", ")
            ),
        })
    }

    /// The selection.
    pub fn selection(&self) -> &Selection {
        &self.frame.selection
    }

    /// Extent of the profile in words: `all dispatches counted`, or `2 of 40 dispatches counted, the
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

    /// The parts of the fault space, by name.
    pub fn strata(&self) -> impl Iterator<Item = Stratum> {
        let stratum =
            |stratum: &StratumSites| Stratum { name: stratum.name.clone(), sites: stratum.sites };
        self.strata.iter().map(stratum)
    }
}

impl StratumSites {
    /// The wave that contains site number `place`, and the site's number within the wave.
    pub fn locate(&self, place: u64) -> Option<(&WavePlaces, u64)> {
        let after = self.waves.partition_point(|wave| wave.first <= place);
        let wave = self.waves.get(after.checked_sub(1)?)?;
        let offset = place - wave.first;
        (offset < wave.sites).then_some((wave, offset))
    }

    /// Waves with at least one site.
    pub fn waves_with_places(&self) -> impl Iterator<Item = &WavePlaces> {
        self.waves.iter().filter(|wave| wave.sites > 0)
    }

    pub fn push(&mut self, dispatch: u32, wave: WaveId, sites: u64) {
        self.waves.push(WavePlaces { dispatch, wave, first: self.sites, sites });
        self.sites += sites;
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::fault::FaultModel;
    use crate::fault_space::Group;
    use crate::testing::{Event, dispatch, executions, inst, trace, wave, workload};
    use flipwave_isa::LaneMask;

    /// The fault space of a transient fault in destination registers.
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
            let mut space_counter = FaultSpaceCounter::new(&frame, &workload, index, &dispatch);
            executions(trace).for_each(|execution| space_counter.count(&execution));
            collected.add(Kind::of(&dispatch), index, &dispatch, space_counter);
        }
        collected.into_profile(frame, traces.len())
    }

    #[test]
    fn fault_space_counts_executions_words_lanes_and_bits() {
        let profile = profile_of(&[trace()], frame(&[Group::All], FaultModel::FlipOneBit));
        let counts_at = |pc: u64| {
            let found = profile.instructions.iter().find(|entry| entry.pc.0 == pc).unwrap();
            (found.executions, found.eligible, found.sites)
        };
        // Lanes 64, 64, 32, 32, 3; two registers of 32 bits.
        assert_eq!(counts_at(0x100), (5, 5, (64 + 64 + 32 + 32 + 3) * 2 * 32));
        assert_eq!(counts_at(0x108), (5, 0, 0));
        // VCC; then two SGPRs, EXEC and SCC: once per execution, for any active lanes.
        assert_eq!(counts_at(0x10c), (5, 5, 5 * 64));
        assert_eq!(counts_at(0x110), (5, 5, 5 * (64 + 64 + 1)));
        // Lanes 32, 3, 0, 32, 3: an execution without lanes cannot be hit.
        assert_eq!(counts_at(0x114), (5, 4, (32 + 3 + 32 + 3) * 2 * 32));
        assert_eq!(counts_at(0x11c), (5, 5, 5 * 33));
        assert_eq!(counts_at(0x120), (5, 0, 0));

        let FaultSpace { sites, eligible, executed, groups, .. } = &profile.fault_space;
        assert_eq!(*sites, profile.instructions.iter().map(|entry| entry.sites).sum::<u64>());
        assert_eq!((*eligible, *executed), (24, 35));
        assert_eq!(groups.iter().map(|group| group.sites).sum::<u64>(), *sites);
    }

    #[test]
    fn groups_restrict_sites_but_not_executions() {
        let profile = profile_of(&[trace()], frame(&[Group::Fp64], FaultModel::ZeroValue));
        assert_eq!(profile.fault_space.sites, (32 + 3 + 32 + 3) * 2);
        assert_eq!(profile.fault_space.executed, 35);
        let vmem = profile.fault_space.groups.iter().find(|group| group.group == Group::Vmem);
        assert_eq!(vmem.map(|group| (group.executed, group.sites)), Some((10, 0)));
    }

    #[test]
    fn waves_are_numbered_by_position() {
        let profile = profile_of(&[trace(), trace()], frame(&[Group::All], FaultModel::FlipOneBit));
        let order: Vec<(u32, WaveId)> =
            profile.strata[0].waves.iter().map(|wave| (wave.dispatch, wave.wave)).collect();
        let waves = [wave(0, 0), wave(0, 1), wave(1, 0)];
        let expected: Vec<(u32, WaveId)> =
            (0..2).flat_map(|dispatch| waves.map(|wave| (dispatch, wave))).collect();
        assert_eq!(order, expected);
    }

    #[test]
    fn every_site_belongs_to_one_wave() {
        let profile = profile_of(&[trace()], frame(&[Group::Salu], FaultModel::FlipOneBit));
        let mut located = Vec::new();
        for place in 0..profile.fault_space.sites {
            let (wave, offset) = profile.strata[0].locate(place).unwrap();
            located.push((wave.wave, offset));
        }
        let expected: Vec<(WaveId, u64)> = profile.strata[0]
            .waves
            .iter()
            .flat_map(|wave| (0..wave.sites).map(|offset| (wave.wave, offset)))
            .collect();
        assert_eq!(located, expected);
        assert!(profile.strata[0].locate(profile.fault_space.sites).is_none());
    }

    /// Waves without sites must not hide their neighbours.
    #[test]
    fn waves_without_sites_are_never_located() {
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
    fn fault_space_prints_as_a_table() {
        let profile = profile_of(&[trace()], frame(&[Group::Salu], FaultModel::FlipOneBit));
        assert_eq!(
            profile.fault_space.to_string().lines().collect::<Vec<_>>(),
            [
                "group            executed         eligible                sites",
                "valu                   10                0                    0",
                "salu                   15               10                  810",
                "vmem                   10                0                    0",
                "sum                    35               10                  810",
            ]
        );
    }
}
