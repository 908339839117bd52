//! The sites of the faults drawn, found in a run.

use super::census::{Execution, lanes_struck, next_occurrence};
use super::draw::Drawn;
use super::instructions::Instructions;
use super::places::Struck;
use super::planned::{Foresight, Planned};
use super::profile::Profile;
use super::selection::Moment;
use crate::Workload;
use crate::cell::Cells;
use crate::fate::{Fate, Fates};
use crate::fault::{Duration, Scope};
use crate::foresight::value_at;
use crate::site::{Event, Place, Site, When};
use flipwave_device::{Dispatch, WaveId};
use flipwave_isa::{Inst, Lane, LaneMask, Register};
use flipwave_sim::{Executed, Observer, Watch, WaveState};
use std::collections::{BTreeMap, HashMap};

/// Finds the sites of the faults drawn in one dispatch by counting places as the profile did, and
/// what becomes of the values that they strike.
pub(crate) struct Resolver<'a> {
    profile: &'a Profile,
    workload: &'a Workload,
    index: u32,
    dispatch: &'a Dispatch,
    seed: u64,
    instructions: Instructions<'a>,
    pursuits: HashMap<WaveId, Pursuit>,
    planned: Vec<(u64, Planned)>,
    fates: Fates,
    /// EXEC of each wave before its current instruction.
    exec: HashMap<WaveId, LaneMask>,
}

/// Gives the value of this many words from a place on.
type Value<'a> = dyn FnMut(Place, Lane, u8) -> Option<u64> + 'a;

/// A fault drawn, and where that is.
struct Found {
    drawn: Drawn,
    struck: Struck,
    /// The instruction's number.
    number: usize,
    occurrence: u64,
}

/// The faults still to be found in one wave.
struct Pursuit {
    /// Per stratum, latest first, so that the next one is taken off the end.
    pending: BTreeMap<usize, Vec<(u64, Drawn)>>,
    /// Places of the executions so far, per stratum.
    passed: BTreeMap<usize, u64>,
    /// Executions so far, per number of an instruction.
    occurrences: Vec<u64>,
}

impl<'a> Resolver<'a> {
    pub fn new(
        profile: &'a Profile,
        workload: &'a Workload,
        (index, dispatch): (u32, &'a Dispatch),
        seed: u64,
        waves: HashMap<WaveId, Vec<(u64, Drawn)>>,
    ) -> Resolver<'a> {
        let pursuit = |(wave, faults): (WaveId, Vec<(u64, Drawn)>)| {
            let mut pending: BTreeMap<usize, Vec<(u64, Drawn)>> = BTreeMap::new();
            for fault in faults {
                pending.entry(fault.1.stratum).or_default().push(fault);
            }
            for faults in pending.values_mut() {
                faults.sort_unstable_by_key(|(offset, drawn)| {
                    std::cmp::Reverse((*offset, drawn.index))
                });
            }
            let passed = BTreeMap::new();
            (wave, Pursuit { pending, passed, occurrences: Vec::new() })
        };
        let lines = workload.lines(dispatch);
        Resolver {
            profile,
            workload,
            index,
            dispatch,
            seed,
            instructions: Instructions::new(&profile.frame, &dispatch.kernel, lines),
            pursuits: waves.into_iter().map(pursuit).collect(),
            planned: Vec::new(),
            fates: Fates::default(),
            exec: HashMap::new(),
        }
    }

    /// An instruction was executed; `value` gives what a place holds now.
    pub fn see(&mut self, execution: &Execution<'_>, value: &mut Value<'_>) -> Watch {
        let Execution { inst, wave, .. } = *execution;
        let Some(mut pursuit) = self.pursuits.remove(&wave) else {
            return Watch::Off;
        };
        let exec = self.exec.get(&wave).copied().unwrap_or(execution.lanes);
        self.fates.see(inst, wave, exec, execution.lanes);
        if !pursuit.pending.is_empty() {
            self.pursue(&mut pursuit, execution, value);
        }
        let is_over = pursuit.pending.is_empty() && !self.fates.follows(wave);
        self.pursuits.insert(wave, pursuit);
        if is_over { Watch::Off } else { Watch::On }
    }

    /// Counts the places of an execution, and plans the faults that were drawn of them.
    fn pursue(&mut self, pursuit: &mut Pursuit, execution: &Execution<'_>, value: &mut Value<'_>) {
        let Execution { inst, wave, time, .. } = *execution;
        let number = self.instructions.number(inst);
        let occurrence = next_occurrence(&mut pursuit.occurrences, number);
        let frame = &self.profile.frame;
        if !frame.selection.has_moment(&Moment { wave, occurrence, time }) {
            return;
        }
        let lanes = lanes_struck(frame, execution.lanes, execution.all);
        let instruction = self.instructions.get(number);
        let name = self.instructions.strata().get(instruction.stratum);
        let stratum = self.profile.strata.iter().position(|own| Some(&own.name) == name);
        let Some(stratum) = stratum else { return };
        let passed = pursuit.passed.entry(stratum).or_default();
        let first = *passed;
        *passed += instruction.places.count(lanes);
        let Some(pending) = pursuit.pending.get_mut(&stratum) else { return };
        while let Some((offset, drawn)) = pending.pop_if(|(own, _)| *own < *passed) {
            if let Some(struck) = instruction.places.get(lanes, offset - first) {
                let found = Found { drawn, struck, number, occurrence };
                let (planned, followed) = self.planned_of(&found, execution, value);
                if let Some((register, lanes)) = followed {
                    self.fates.follow(drawn.index, wave, register, lanes);
                }
                self.planned.push((drawn.index, planned));
            }
        }
        if pending.is_empty() {
            pursuit.pending.remove(&stratum);
        }
    }

    /// The fault of a place that was found, and the value that is to be followed.
    fn planned_of(
        &self,
        found: &Found,
        execution: &Execution<'_>,
        value: &mut Value<'_>,
    ) -> (Planned, Option<(Register, LaneMask)>) {
        let Found { drawn, struck, number, occurrence } = found;
        let fault = &self.profile.frame.fault;
        let mut stream = drawn.stream(self.profile, self.seed);
        let bits = struck.place.bits();
        let action = fault.model.action(bits, struck.format, struck.number, &mut stream);
        let intermittent = match fault.duration {
            Duration::Intermittent(own) => Some((own, stream.word())),
            _ => None,
        };
        let WaveId { workgroup, wave } = execution.wave;
        let event = Event {
            dispatch: self.index,
            workgroup,
            wave: (fault.scope != Scope::Workgroup).then_some(wave),
            pc: execution.inst.pc,
            occurrence: *occurrence,
            intermittent,
        };
        let (place, lanes) = (struck.place, struck.lanes);
        let site = Site { when: When::At(event), place, lanes, action };
        let is_single = event.is_single();
        let Execution { lanes: active, all, time, .. } = *execution;
        let at = is_single.then(|| value_at(&site, active, all, value)).flatten();
        let foresight = is_single.then(|| {
            let value = at.map(|(before, _)| (Fate::Read, before));
            Foresight { time, value }
        });
        let instruction = self.instructions.get(*number);
        let line = instruction.line.as_ref();
        let planned = Planned {
            site,
            kernel: Some(self.dispatch.kernel.clone()),
            opcode: instruction.opcode,
            group: instruction.group,
            line: line.map(|line| format!("{}:{}", line.file, line.line)),
            stratum: drawn.stratum,
            weight: drawn.weight,
            foresight,
        };
        (planned, at.and_then(|(_, followed)| followed))
    }

    /// The faults found, with what becomes of the values that they strike.
    pub fn finish(self) -> Vec<(u64, Planned)> {
        let fates: HashMap<u64, Fate> = self.fates.into_decided().into_iter().collect();
        let mut planned = self.planned;
        for (index, own) in &mut planned {
            if let Some(Foresight { value: Some((fate, _)), .. }) = &mut own.foresight
                && let Some(decided) = fates.get(index)
            {
                *fate = *decided;
            }
        }
        planned
    }
}

impl Observer for Resolver<'_> {
    fn watches(&mut self, wave: WaveId) -> bool {
        self.pursuits.contains_key(&wave)
    }

    fn before(&mut self, _: &Inst, wave: WaveId, state: &mut WaveState<'_>) {
        self.exec.insert(wave, state.exec());
    }

    fn after(&mut self, executed: &Executed<'_>, state: &mut WaveState<'_>) -> Watch {
        let (workload, dispatch) = (self.workload, self.dispatch);
        self.instructions.set_resources(|| workload.resources(dispatch, state));
        let execution = Execution::of(executed, state);
        let cells = Cells { buffers: &[] };
        self.see(&execution, &mut |place, lane, words| cells.read(state, place, lane, words))
    }
}
