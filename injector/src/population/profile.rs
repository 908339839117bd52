//! The profile: what a workload executes, and which places of it a fault can strike.

use super::instructions::{Frame, Instructions};
use super::permanent::{UnitCensus, UnitPlaces};
use super::selection::Moment;
use super::size::{InstructionPopulation, Population};
use super::words::Resources;
use super::{Selection, Stratification};
use crate::fault::{Duration, Fault, FaultError, FaultTarget, Scope};
use crate::{GoldenError, Workload};
use flipwave_device::{Device, Dispatch, WaveId};
use flipwave_isa::{Inst, LaneMask};
use flipwave_sim::{Executed, Observer, Watch, WaveState};
use std::collections::{BTreeMap, HashMap};

/// What one fault-free run offers to a fault. Its size grows with waves and static instructions,
/// not with the length of the run.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    pub(crate) frame: Frame,
    /// Dispatches that were counted. The others are taken to be like the first of their kind.
    counted: usize,
    /// Dispatches of the workload.
    dispatches: usize,
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

/// The places of a stratum.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct StratumPlaces {
    pub name: String,
    pub places: u64,
    /// By wave, for faults that strike executions.
    pub waves: Vec<WavePlaces>,
    /// By unit, for permanent faults.
    pub units: Vec<UnitPlaces>,
}

/// The places of one wave.
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
    fault.check()?;
    let frame = Frame { fault: fault.clone(), selection: selection.clone(), stratification };
    check_code(workload, &frame)?;
    let mut collected = Collected::default();
    workload.run_fault_free(|index, device, dispatch| {
        let kind = Kind::of(dispatch);
        if counting == Counting::Approximate && collected.repeat(&kind, index) {
            return device.dispatch(dispatch);
        }
        let mut census = Census::new(&frame, workload, index, dispatch);
        let completion = workload.observe(device, dispatch, &mut census)?;
        collected.add(kind, index, dispatch, census);
        Ok(completion)
    })?;
    Ok(collected.into_profile(frame, workload.dispatches.len()))
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
    for (index, dispatch) in (0..).zip(&workload.dispatches) {
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

    /// What of the workload is selected.
    pub fn selection(&self) -> &Selection {
        &self.frame.selection
    }

    /// How it was counted, in words: `all dispatches counted`, `2 of 40 dispatches counted, the
    /// others taken to be like them`.
    pub fn counted(&self) -> String {
        match (self.counted, self.dispatches) {
            (counted, all) if counted == all => "all dispatches counted".to_owned(),
            (counted, all) => {
                format!("{counted} of {all} dispatches counted, the others taken to be like them")
            }
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
        let behind = self.waves.partition_point(|wave| wave.first <= place);
        let wave = self.waves.get(behind.checked_sub(1)?)?;
        let offset = place - wave.first;
        (offset < wave.places).then_some((wave, offset))
    }

    fn push(&mut self, dispatch: u32, wave: WaveId, places: u64) {
        self.waves.push(WavePlaces { dispatch, wave, first: self.places, places });
        self.places += places;
    }
}

/// What can be struck of one execution: of what each lane has of its own, which lanes.
pub(crate) fn lanes_struck(frame: &Frame, written: LaneMask, all: LaneMask) -> LaneMask {
    let whole = matches!(frame.fault.target, FaultTarget::Register | FaultTarget::Scratch)
        && frame.fault.scope == Scope::Lane;
    frame.selection.of_lanes(if whole { all } else { written })
}

/// Counts the executions of one dispatch.
struct Census<'a> {
    frame: &'a Frame,
    instructions: Instructions<'a>,
    /// Whether the dispatch is selected.
    is_selected: bool,
    resources: Box<dyn Fn(&WaveState<'_>) -> Resources + 'a>,
    /// Per number of an instruction.
    counts: Vec<Count>,
    waves: Vec<WaveCount>,
    by_wave: HashMap<WaveId, usize>,
    /// The wave seen last: waves run for long stretches.
    current: Option<(WaveId, usize)>,
    units: Option<UnitCensus>,
}

#[derive(Clone, Copy, Default)]
struct Count {
    executions: u64,
    hittable: u64,
    places: u64,
}

struct WaveCount {
    wave: WaveId,
    /// Places per stratum.
    places: Vec<u64>,
    /// Executions per number of an instruction, where the selection asks for them.
    occurrences: Vec<u64>,
}

/// One execution of an instruction, as a profile sees it.
pub(crate) struct Execution<'a> {
    pub inst: &'a Inst,
    pub wave: WaveId,
    /// The lanes that it ran on.
    pub lanes: LaneMask,
    /// All lanes of the wave.
    pub all: LaneMask,
    /// Instructions that the wave had executed before.
    pub time: u64,
}

impl<'a> Execution<'a> {
    /// What an observer saw.
    pub fn of(executed: &Executed<'a>, state: &WaveState<'_>) -> Execution<'a> {
        Execution {
            inst: executed.inst,
            wave: executed.wave,
            lanes: executed.lanes,
            all: LaneMask(u64::MAX >> (64 - state.wave_lanes())),
            time: state.executed().saturating_sub(1),
        }
    }
}

impl<'a> Census<'a> {
    fn new(
        frame: &'a Frame,
        workload: &'a Workload,
        index: u32,
        dispatch: &'a Dispatch,
    ) -> Census<'a> {
        let units = match frame.fault.duration {
            Duration::Permanent(units) => Some(UnitCensus::new(units, workload.target(), dispatch)),
            _ => None,
        };
        Census {
            frame,
            instructions: Instructions::new(frame, &dispatch.kernel, workload.lines(dispatch)),
            is_selected: frame.selection.has_dispatch(index, &dispatch.kernel),
            resources: Box::new(|state| workload.resources(dispatch, state)),
            counts: Vec::new(),
            waves: Vec::new(),
            by_wave: HashMap::new(),
            current: None,
            units,
        }
    }

    fn count(&mut self, execution: &Execution<'_>) {
        let number = self.instructions.number(execution.inst);
        if number == self.counts.len() {
            self.counts.push(Count::default());
        }
        self.counts[number].executions += 1;
        let index = self.wave_index(execution.wave);
        let own = &mut self.waves[index];
        let occurrence = if self.frame.selection.occurrences.is_some() {
            next_occurrence(&mut own.occurrences, number)
        } else {
            0
        };
        let Execution { wave, time, .. } = *execution;
        let moment = Moment { wave, occurrence, time };
        if !self.is_selected || !self.frame.selection.has_moment(&moment) {
            return;
        }
        let lanes = lanes_struck(self.frame, execution.lanes, execution.all);
        let instruction = self.instructions.get(number);
        let places = instruction.places.count(lanes);
        let count = &mut self.counts[number];
        count.hittable += u64::from(places > 0);
        if let Some(units) = &mut self.units {
            units.count(instruction, execution, lanes);
            return;
        }
        count.places += places;
        if own.places.len() <= instruction.stratum {
            own.places.resize(instruction.stratum + 1, 0);
        }
        own.places[instruction.stratum] += places;
    }

    fn wave_index(&mut self, wave: WaveId) -> usize {
        if let Some((current, index)) = self.current
            && current == wave
        {
            return index;
        }
        let waves = &mut self.waves;
        let index = *self.by_wave.entry(wave).or_insert_with(|| {
            waves.push(WaveCount { wave, places: Vec::new(), occurrences: Vec::new() });
            waves.len() - 1
        });
        self.current = Some((wave, index));
        index
    }
}

/// How often an instruction was counted before; counts it.
pub(crate) fn next_occurrence(occurrences: &mut Vec<u64>, number: usize) -> u64 {
    if occurrences.len() <= number {
        occurrences.resize(number + 1, 0);
    }
    occurrences[number] += 1;
    occurrences[number] - 1
}

impl Observer for Census<'_> {
    fn watches(&mut self, _: WaveId) -> bool {
        true
    }

    fn after(&mut self, executed: &Executed<'_>, state: &mut WaveState<'_>) -> Watch {
        self.instructions.know(|| (self.resources)(state));
        self.count(&Execution::of(executed, state));
        Watch::On
    }
}

/// What dispatches have in common that are taken to execute the same.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Kind {
    module: u32,
    kernel: String,
    grid: [u32; 3],
    workgroup: [u32; 3],
}

impl Kind {
    fn of(dispatch: &Dispatch) -> Kind {
        Kind {
            module: dispatch.module.0,
            kernel: dispatch.kernel.clone(),
            grid: dispatch.grid,
            workgroup: dispatch.workgroup,
        }
    }
}

/// What one dispatch adds.
#[derive(Clone, Default)]
struct Counted {
    instructions: Vec<((u32, String, u64), InstructionPopulation)>,
    /// In the order in which they are numbered, with their places per stratum, by name.
    waves: Vec<(WaveId, Vec<(String, u64)>)>,
}

/// The counts of the dispatches so far.
#[derive(Default)]
struct Collected {
    /// By module, kernel and PC.
    instructions: BTreeMap<(u32, String, u64), InstructionPopulation>,
    strata: BTreeMap<String, StratumPlaces>,
    kinds: HashMap<Kind, Counted>,
    counted: usize,
    units: BTreeMap<String, Vec<UnitPlaces>>,
}

impl Collected {
    /// Adds a dispatch that is like one that was counted, if there is one.
    fn repeat(&mut self, kind: &Kind, index: u32) -> bool {
        let Some(counted) = self.kinds.remove(kind) else { return false };
        self.sum_up(index, &counted);
        self.kinds.insert(kind.clone(), counted);
        true
    }

    fn add(&mut self, kind: Kind, index: u32, dispatch: &Dispatch, census: Census<'_>) {
        self.counted += 1;
        let (module, kernel) = (dispatch.module.0, &dispatch.kernel);
        let names = census.instructions.strata().to_vec();
        let mut counted = Counted::default();
        if let Some(units) = census.units {
            units.add_to(&names, &mut self.units);
        }
        for (instruction, count) in
            census.instructions.into_entries().into_iter().zip(&census.counts)
        {
            let population = InstructionPopulation {
                kernel: kernel.to_owned(),
                pc: instruction.pc,
                text: instruction.text,
                opcode: instruction.opcode,
                group: instruction.group,
                line: instruction.line.map(|line| format!("{}:{}", line.file, line.line)),
                executions: count.executions,
                hittable: count.hittable,
                places: count.places,
            };
            let key = (module, kernel.to_owned(), instruction.pc.0);
            counted.instructions.push((key, population));
        }
        let mut waves = census.waves;
        waves.sort_unstable_by_key(|own| {
            let WaveId { workgroup: [x, y, z], wave } = own.wave;
            (z, y, x, wave)
        });
        let named = |own: WaveCount| {
            let places = names.iter().cloned().zip(own.places).collect();
            (own.wave, places)
        };
        counted.waves = waves.into_iter().map(named).collect();
        self.sum_up(index, &counted);
        self.kinds.insert(kind, counted);
    }

    fn sum_up(&mut self, index: u32, counted: &Counted) {
        for (key, own) in &counted.instructions {
            let known = self.instructions.entry(key.clone()).or_insert_with(|| {
                InstructionPopulation { executions: 0, hittable: 0, places: 0, ..own.clone() }
            });
            known.executions += own.executions;
            known.hittable += own.hittable;
            known.places += own.places;
        }
        for (wave, places) in &counted.waves {
            for (name, places) in places {
                let stratum = self.strata.entry(name.clone()).or_default();
                stratum.push(index, *wave, *places);
            }
        }
    }

    fn into_profile(mut self, frame: Frame, dispatches: usize) -> Profile {
        for (name, mut units) in std::mem::take(&mut self.units) {
            let stratum = self.strata.entry(name).or_default();
            for unit in &mut units {
                unit.first = stratum.places;
                stratum.places += unit.places();
            }
            stratum.units = units;
        }
        let mut strata = Vec::new();
        for (name, stratum) in self.strata {
            strata.push(StratumPlaces { name, ..stratum });
        }
        let instructions: Vec<InstructionPopulation> = self.instructions.into_values().collect();
        let mut population = Population::of(&instructions);
        for unit in strata.iter().flat_map(|stratum| &stratum.units) {
            population.add_places(unit.group, unit.places());
        }
        Profile { frame, counted: self.counted, dispatches, population, instructions, strata }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::fault::FaultModel;
    use crate::population::Group;
    use crate::testing::{Event, dispatch, executions, inst, trace, wave, workload};

    /// What is counted for a transient fault in destination registers.
    pub(crate) fn frame(groups: &[Group], model: FaultModel) -> Frame {
        Frame {
            fault: Fault::transient(model),
            selection: Selection { groups: groups.to_vec(), ..Selection::default() },
            stratification: Stratification::None,
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

        let Population { places, hittable, executed, groups } = &profile.population;
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
