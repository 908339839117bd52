//! The profile: what a workload executes, and which places of it a fault model can hit.

use crate::instructions::Instructions;
use crate::population::{InstructionPopulation, Population};
use crate::{FaultModel, GoldenError, Group, Workload};
use flipwave_device::{Dispatch, WaveId};
use flipwave_isa::{Inst, LaneMask};
use flipwave_sim::{Executed, Observer, Watch, WaveState};
use std::collections::{BTreeMap, HashMap};

/// What one fault-free run offers to a fault model. Its size grows with waves and static
/// instructions, not with the length of the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// The fault model whose places are counted.
    pub model: FaultModel,
    /// The groups selected; an instruction of any of them is in the population.
    pub groups: Vec<Group>,
    /// The population's size, as a whole and per group.
    pub population: Population,
    /// Every static instruction that was executed, selected or not, by kernel and PC.
    pub instructions: Vec<InstructionPopulation>,
    waves: Vec<WavePlaces>,
}

/// The places of one wave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WavePlaces {
    pub dispatch: u32,
    pub wave: WaveId,
    /// Number of its first place in the whole population.
    pub first: u64,
    /// How many it has.
    pub places: u64,
}

/// Runs `workload` once and counts what `model` can hit in the instructions of `groups`.
///
/// Places are numbered by dispatch, then workgroup (x fastest), then wave, then in the order
/// of execution within the wave; within one execution by destination register, written lane
/// and bit, each from the lowest.
///
/// # Errors
/// [`GoldenError`] if the fault-free run does not complete.
pub fn profile(
    workload: &Workload,
    groups: &[Group],
    model: FaultModel,
) -> Result<Profile, GoldenError> {
    let mut collected = Collected::default();
    workload.run_fault_free(|index, device, dispatch| {
        let mut census = Census::new(groups, model);
        let completion = workload.observe(device, dispatch, &mut census)?;
        collected.add(index, dispatch, census);
        Ok(completion)
    })?;
    Ok(collected.into_profile(groups, model))
}

impl Profile {
    /// The wave that has place number `place`, and the place's number among the wave's own.
    pub(crate) fn locate(&self, place: u64) -> Option<(&WavePlaces, u64)> {
        let behind = self.waves.partition_point(|wave| wave.first <= place);
        let wave = self.waves.get(behind.checked_sub(1)?)?;
        let offset = place - wave.first;
        (offset < wave.places).then_some((wave, offset))
    }
}

/// Counts the executions of one dispatch.
struct Census<'a> {
    instructions: Instructions<'a>,
    /// Per number of an instruction.
    counts: Vec<Count>,
    waves: Vec<(WaveId, u64)>,
    by_wave: HashMap<WaveId, usize>,
    /// The wave seen last: waves run for long stretches.
    current: Option<(WaveId, usize)>,
}

#[derive(Clone, Copy, Default)]
struct Count {
    executions: u64,
    hittable: u64,
    places: u64,
}

impl<'a> Census<'a> {
    fn new(groups: &'a [Group], model: FaultModel) -> Census<'a> {
        Census {
            instructions: Instructions::new(groups, model),
            counts: Vec::new(),
            waves: Vec::new(),
            by_wave: HashMap::new(),
            current: None,
        }
    }

    fn count(&mut self, inst: &Inst, wave: WaveId, lanes: LaneMask) {
        let number = self.instructions.number(inst);
        if number == self.counts.len() {
            self.counts.push(Count::default());
        }
        let places = self.instructions.get(number).destinations.places(lanes);
        let count = &mut self.counts[number];
        count.executions += 1;
        count.hittable += u64::from(places > 0);
        count.places += places;
        let wave = self.wave_index(wave);
        self.waves[wave].1 += places;
    }

    fn wave_index(&mut self, wave: WaveId) -> usize {
        if let Some((current, index)) = self.current
            && current == wave
        {
            return index;
        }
        let waves = &mut self.waves;
        let index = *self.by_wave.entry(wave).or_insert_with(|| {
            waves.push((wave, 0));
            waves.len() - 1
        });
        self.current = Some((wave, index));
        index
    }
}

impl Observer for Census<'_> {
    fn watches(&mut self, _: WaveId) -> bool {
        true
    }

    fn after(&mut self, executed: &Executed<'_>, _: &mut WaveState<'_>) -> Watch {
        self.count(executed.inst, executed.wave, executed.lanes);
        Watch::On
    }
}

/// The counts of the dispatches so far.
#[derive(Default)]
struct Collected {
    /// By module, kernel and PC.
    instructions: BTreeMap<(u32, String, u64), InstructionPopulation>,
    waves: Vec<WavePlaces>,
    places: u64,
}

impl Collected {
    fn add(&mut self, index: u32, dispatch: &Dispatch, census: Census<'_>) {
        let (module, kernel) = (dispatch.module.0, &dispatch.kernel);
        for (instruction, count) in
            census.instructions.into_entries().into_iter().zip(&census.counts)
        {
            let known = self
                .instructions
                .entry((module, kernel.to_owned(), instruction.pc.0))
                .or_insert_with(|| InstructionPopulation {
                    kernel: kernel.to_owned(),
                    pc: instruction.pc,
                    text: instruction.text,
                    opcode: instruction.opcode,
                    group: instruction.group,
                    executions: 0,
                    hittable: 0,
                    places: 0,
                });
            known.executions += count.executions;
            known.hittable += count.hittable;
            known.places += count.places;
        }
        let mut waves = census.waves;
        waves
            .sort_unstable_by_key(|(WaveId { workgroup: [x, y, z], wave }, _)| (*z, *y, *x, *wave));
        for (wave, places) in waves {
            self.waves.push(WavePlaces { dispatch: index, wave, first: self.places, places });
            self.places += places;
        }
    }

    fn into_profile(self, groups: &[Group], model: FaultModel) -> Profile {
        let instructions: Vec<InstructionPopulation> = self.instructions.into_values().collect();
        Profile {
            model,
            groups: groups.to_vec(),
            population: Population::of(&instructions),
            instructions,
            waves: self.waves,
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::testing::{Execution, inst, trace, wave};
    use flipwave_device::ModuleId;

    /// The profile of dispatches that execute `traces`.
    pub(crate) fn profile_of(
        traces: &[Vec<Execution>],
        groups: &[Group],
        model: FaultModel,
    ) -> Profile {
        let mut collected = Collected::default();
        for (index, trace) in (0..).zip(traces) {
            let mut census = Census::new(groups, model);
            for (wave, inst, lanes) in trace {
                census.count(inst, *wave, *lanes);
            }
            collected.add(index, &dispatch(), census);
        }
        collected.into_profile(groups, model)
    }

    fn dispatch() -> Dispatch {
        Dispatch {
            module: ModuleId(0),
            kernel: "kernel".to_owned(),
            grid: [128, 1, 1],
            workgroup: [64, 1, 1],
            kernarg: Vec::new(),
            dynamic_lds: 0,
            instruction_limit: u64::MAX,
        }
    }

    #[test]
    fn the_population_is_what_was_executed() {
        let profile = profile_of(&[trace()], &[Group::All], FaultModel::FlipOneBit);
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
        let profile = profile_of(&[trace()], &[Group::Fp64], FaultModel::ZeroValue);
        assert_eq!(profile.population.places, (32 + 3 + 32 + 3) * 2);
        assert_eq!(profile.population.executed, 35);
        let vmem = profile.population.groups.iter().find(|group| group.group == Group::Vmem);
        assert_eq!(vmem.map(|group| (group.executed, group.places)), Some((10, 0)));
    }

    #[test]
    fn waves_are_numbered_by_position_and_not_by_the_order_of_execution() {
        let profile = profile_of(&[trace(), trace()], &[Group::All], FaultModel::FlipOneBit);
        let order: Vec<(u32, WaveId)> =
            profile.waves.iter().map(|wave| (wave.dispatch, wave.wave)).collect();
        let waves = [wave(0, 0), wave(0, 1), wave(1, 0)];
        let expected: Vec<(u32, WaveId)> =
            (0..2).flat_map(|dispatch| waves.map(|wave| (dispatch, wave))).collect();
        assert_eq!(order, expected);
    }

    #[test]
    fn every_place_belongs_to_one_wave() {
        let profile = profile_of(&[trace()], &[Group::Salu], FaultModel::FlipOneBit);
        let mut located = Vec::new();
        for place in 0..profile.population.places {
            let (wave, offset) = profile.locate(place).unwrap();
            located.push((wave.wave, offset));
        }
        let expected: Vec<(WaveId, u64)> = profile
            .waves
            .iter()
            .flat_map(|wave| (0..wave.places).map(|offset| (wave.wave, offset)))
            .collect();
        assert_eq!(located, expected);
        assert!(profile.locate(profile.population.places).is_none());
    }

    /// Places of waves that offer none must not shadow their neighbours.
    #[test]
    fn waves_without_places_are_never_located() {
        let without = inst(0x100, "s_waitcnt vmcnt(0)");
        let with = inst(0x104, "s_mov_b32 s0, 0");
        let trace: Vec<Execution> = [(0, &without), (1, &with), (2, &without), (3, &with)]
            .map(|(x, inst)| (wave(x, 0), inst.clone(), LaneMask::FULL))
            .to_vec();
        let profile = profile_of(&[trace], &[Group::All], FaultModel::ZeroValue);
        assert_eq!(profile.locate(0).map(|(found, _)| found.wave), Some(wave(1, 0)));
        assert_eq!(profile.locate(1).map(|(found, _)| found.wave), Some(wave(3, 0)));
        assert!(profile.locate(2).is_none());
    }

    #[test]
    fn the_population_prints_as_a_table() {
        let profile = profile_of(&[trace()], &[Group::Salu], FaultModel::FlipOneBit);
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
