//! The profile: what a workload executes, and which places of it a fault model can hit.

use crate::instructions::Instructions;
use crate::population::{InstructionPopulation, Population};
use crate::{FaultModel, GoldenError, Group, Workload};
use flipwave_device::{Dispatch, WaveId};
use flipwave_isa::{Inst, LaneMask};
use flipwave_sim::{Executed, Observer, Registers, Watch};
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
        let completion = device.dispatch_observed(dispatch, &mut census)?;
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

    fn after(&mut self, executed: &Executed<'_>, _: &mut Registers<'_>) -> Watch {
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
