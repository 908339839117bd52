//! Counting of one dispatch's executions and sites.

use super::instructions::{CountedInstruction, Frame, Instructions, KnownMasked};
use super::permanent::UnitCounter;
use super::selection::Moment;
use super::size::MaskedSites;
use super::unread::{Decided, Origin, Unread};
use super::words::Resources;
use crate::Workload;
use crate::fault::{Duration, FaultTarget, Scope};
use crate::resolve::def_use::{Effect, NextUse};
use flipwave_arch::{Instruction, LaneMask};
use flipwave_device::{Dispatch, WaveId};
use flipwave_machine::{Counts, Executed, Observer, Watch, WaveCounts, WaveState};
use std::collections::HashMap;

/// The lanes that a fault can strike in one execution, for values that exist per lane.
pub(crate) fn lanes_struck(frame: &Frame, written: LaneMask, all: LaneMask) -> LaneMask {
    let whole = matches!(frame.fault.target, FaultTarget::Register | FaultTarget::Scratch)
        && frame.fault.scope == Scope::Lane;
    frame.selection.of_lanes(if whole { all } else { written })
}

/// The registers and memory that a wave can use.
type ResourcesOf<'a> = Box<dyn Fn(&dyn WaveState) -> Resources + 'a>;

/// Observer that counts the executions and sites of one dispatch.
pub(crate) struct FaultSpaceCounter<'a> {
    pub frame: &'a Frame,
    pub instructions: Instructions<'a>,
    /// `true` if the dispatch is selected.
    is_selected: bool,
    is_rewritten: bool,
    resources: ResourcesOf<'a>,
    /// Counts by instruction number.
    pub counts: Vec<Count>,
    pub waves: Vec<WaveCount>,
    by_wave: HashMap<WaveId, usize>,
    /// The wave seen last; waves execute many instructions in a row.
    current: Option<(WaveId, usize)>,
    pub units: Option<UnitCounter>,
    /// Values being followed, if sites in values that nothing reads are counted.
    unread: Option<Unread>,
    /// EXEC before the current instruction.
    exec: Option<LaneMask>,
}

#[derive(Clone, Copy, Default)]
pub(crate) struct Count {
    pub executions: u64,
    pub eligible: u64,
    pub sites: u64,
    pub left_out: u64,
    pub known: MaskedSites,
}

pub(crate) struct WaveCount {
    pub wave: WaveId,
    /// Sites per stratum.
    pub sites: Vec<u64>,
    /// Executions by instruction number, if the selection needs them.
    occurrences: Vec<u64>,
}

/// One execution of an instruction.
pub(crate) struct Execution<'a> {
    pub inst: &'a dyn Instruction,
    pub wave: WaveId,
    /// Lanes that the instruction ran on.
    pub lanes: LaneMask,
    /// All lanes of the wave.
    pub all: LaneMask,
    /// Instructions that the wave had executed before.
    pub time: u64,
}

impl<'a> Execution<'a> {
    /// Converts an observed execution.
    pub fn of(executed: &Executed<'a>, state: &dyn WaveState) -> Execution<'a> {
        Execution {
            inst: executed.inst,
            wave: executed.wave,
            lanes: executed.lanes,
            all: state.all_lanes(),
            time: state.executed().saturating_sub(1),
        }
    }
}

impl<'a> FaultSpaceCounter<'a> {
    pub fn new(
        frame: &'a Frame,
        workload: &'a Workload,
        index: u32,
        dispatch: &'a Dispatch,
    ) -> FaultSpaceCounter<'a> {
        let units = match frame.fault.duration {
            Duration::Permanent(units) => {
                Some(UnitCounter::new(units, workload.architecture(), dispatch))
            }
            _ => None,
        };
        FaultSpaceCounter {
            frame,
            instructions: Instructions::new(frame, workload, dispatch),
            is_selected: frame.selection.has_dispatch(index, &dispatch.kernel),
            is_rewritten: workload.device.is_rewritten(dispatch.module),
            resources: Box::new(|state| workload.resources(dispatch, state)),
            counts: Vec::new(),
            waves: Vec::new(),
            by_wave: HashMap::new(),
            current: None,
            units,
            unread: (frame.known_masked == KnownMasked::Counted).then(Unread::default),
            exec: None,
        }
    }

    pub fn count(&mut self, execution: &Execution<'_>) {
        let number = self.instructions.number(execution.inst);
        if number == self.counts.len() {
            self.counts.push(Count::default());
        }
        self.counts[number].executions += 1;
        let index = self.wave_index(execution.wave);
        if let Some(unread) = &mut self.unread {
            let exec = self.exec.unwrap_or(execution.lanes);
            let effect = Effect { inst: execution.inst, exec, written: execution.lanes };
            let mut decided = Vec::new();
            unread.see(execution.wave, &effect, &mut |value| decided.push(value));
            decided.iter().for_each(|value| self.decide(index, value));
        }
        let wave_count = &mut self.waves[index];
        let occurrence = if self.frame.selection.occurrences.is_some() {
            next_occurrence(&mut wave_count.occurrences, number)
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
        let sites = instruction.sites.count(lanes);
        let count = &mut self.counts[number];
        count.left_out += instruction.left_out(|sites| sites.count(lanes));
        count.eligible += u64::from(sites > 0);
        if let Some(units) = &mut self.units {
            units.count(instruction, execution, lanes);
            return;
        }
        count.sites += sites;
        if let Some(mut unread) = self.unread.take() {
            let origin = Origin { number, occurrence, time };
            let mut decided = Vec::new();
            for register in instruction.sites.registers() {
                unread.write(wave, origin, register, lanes, &mut |value| decided.push(value));
            }
            decided.iter().for_each(|value| self.decide(index, value));
            self.unread = Some(unread);
            return;
        }
        add_sites(wave_count, instruction.stratum, sites);
    }

    /// Counts the sites of a value whose next use is known: values that are read are part of the fault
    /// space.
    fn decide(&mut self, wave: usize, decided: &Decided) {
        let CountedInstruction { stratum, sites, .. } =
            self.instructions.get(decided.origin.number);
        let sites = sites.of_register(decided.register, decided.lanes);
        let known = &mut self.counts[decided.origin.number].known;
        match decided.next_use {
            NextUse::Read => add_sites(&mut self.waves[wave], *stratum, sites),
            NextUse::Overwritten => known.overwritten += sites,
            NextUse::Dead => known.dead += sites,
        }
    }

    /// Ends the dispatch: values that have not been read are dead.
    pub fn end(&mut self) {
        let Some(unread) = self.unread.take() else { return };
        let mut left = Vec::new();
        unread.finish(&mut |wave, decided| left.push((wave, decided)));
        for (wave, decided) in left {
            let index = self.wave_index(wave);
            self.decide(index, &decided);
        }
    }

    /// The lanes to count, if [counting executions](Frame::counts_executions) is sufficient and the
    /// code was not rewritten.
    pub fn counted_lanes(&self) -> Option<LaneMask> {
        let is_counted = !self.is_rewritten && self.frame.counts_executions();
        is_counted.then(|| self.frame.selection.of_lanes(LaneMask::FULL))
    }

    /// Adds the counts of waves that have ended.
    pub fn add(&mut self, counts: &mut dyn Counts) {
        let ended = counts.take_ended();
        for number in self.counts.len()..counts.len() {
            self.instructions.number(counts.instruction(number));
            self.counts.push(Count::default());
        }
        for WaveCounts { wave, instructions, .. } in ended {
            let index = self.wave_index(wave);
            let moment = Moment { wave, occurrence: 0, time: 0 };
            let is_selected = self.is_selected && self.frame.selection.has_moment(&moment);
            for (number, executed) in instructions {
                let count = &mut self.counts[number];
                count.executions += executed.executions;
                if !is_selected {
                    continue;
                }
                let instruction = self.instructions.get(number);
                count.left_out += instruction.left_out(|sites| sites.sum(&executed).1);
                let CountedInstruction { stratum, sites, .. } = instruction;
                let (eligible, sites) = sites.sum(&executed);
                count.eligible += eligible;
                count.sites += sites;
                add_sites(&mut self.waves[index], *stratum, sites);
            }
        }
    }

    fn wave_index(&mut self, wave: WaveId) -> usize {
        if let Some((current, index)) = self.current
            && current == wave
        {
            return index;
        }
        let waves = &mut self.waves;
        let index = *self.by_wave.entry(wave).or_insert_with(|| {
            waves.push(WaveCount { wave, sites: Vec::new(), occurrences: Vec::new() });
            waves.len() - 1
        });
        self.current = Some((wave, index));
        index
    }
}

fn add_sites(wave: &mut WaveCount, stratum: usize, sites: u64) {
    if wave.sites.len() <= stratum {
        wave.sites.resize(stratum + 1, 0);
    }
    wave.sites[stratum] += sites;
}

/// Increments the count of an instruction and returns the count before.
pub(crate) fn next_occurrence(occurrences: &mut Vec<u64>, number: usize) -> u64 {
    add_occurrences(occurrences, number, 1);
    occurrences[number] - 1
}

/// Adds `times` executions of an instruction.
pub(crate) fn add_occurrences(occurrences: &mut Vec<u64>, number: usize, times: u64) {
    if occurrences.len() <= number {
        occurrences.resize(number + 1, 0);
    }
    occurrences[number] += times;
}

impl Observer for FaultSpaceCounter<'_> {
    fn watches(&mut self, _: WaveId) -> bool {
        true
    }

    fn before(&mut self, _: &dyn Instruction, _: WaveId, state: &mut dyn WaveState) {
        self.exec = Some(state.active());
    }

    fn after(&mut self, executed: &Executed<'_>, state: &mut dyn WaveState) -> Watch {
        self.instructions.set_resources(|| (self.resources)(state));
        self.count(&Execution::of(executed, state));
        Watch::On
    }
}
