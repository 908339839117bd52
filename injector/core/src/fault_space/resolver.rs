//! Resolving of drawn faults to sites during a run.

use super::counter::{Execution, add_occurrences, lanes_struck, next_occurrence};
use super::draw::Drawn;
use super::execution_sites::ExecutionSite;
use super::instructions::Instructions;
use super::passages::{Known, Passages};
use super::planned::{Planned, SiteAnalysis};
use super::profile::Profile;
use super::selection::Moment;
use super::unread::{Decided, Origin, Unread};
use crate::Workload;
use crate::fault::{Duration, Scope};
use crate::inject::cell::Cells;
use crate::resolve::def_use::{Effect, NextUse, NextUses};
use crate::resolve::site_analysis::value_at;
use crate::resolve::stream::Stream;
use crate::site::{Event, Place, Site, When};
use flipwave_arch::{Instruction, Lane, LaneMask, RegisterId};
use flipwave_device::{Dispatch, WaveId};
use flipwave_machine::{Executed, Observer, Stretch, StretchObserver, Watch, WaveState};
use std::collections::HashMap;

/// Observer that resolves the faults drawn in one dispatch. It counts sites like the profile did and
/// follows the struck values for def-use pruning.
pub(crate) struct Resolver<'a> {
    profile: &'a Profile,
    workload: &'a Workload,
    index: u32,
    dispatch: &'a Dispatch,
    seed: u64,
    known: Known<'a>,
    pursuits: Vec<Pursuit>,
    by_wave: HashMap<WaveId, usize>,
    /// The wave seen last; waves execute many instructions in a row.
    current: Option<(WaveId, usize)>,
    planned: Vec<(u64, Planned)>,
    next_uses: NextUses,
    /// Values that have not been read yet, if sites are numbered in the order of reads.
    unread: Option<Unread>,
    /// See [`Frame::counts_executions`](super::Frame::counts_executions).
    counts_executions: bool,
    passages: Passages,
}

/// Reads the value of the given number of words starting at a place.
type Value<'a> = dyn FnMut(Place, Lane, u8) -> Option<u64> + 'a;

/// A resolved fault.
struct Found {
    drawn: Drawn,
    struck: ExecutionSite,
    /// Number of the instruction.
    number: usize,
    occurrence: u64,
}

/// Faults still to be resolved in one wave.
struct Pursuit {
    /// Per stratum, latest first, so that the next fault is at the end.
    pending: Vec<Vec<(u64, Drawn)>>,
    /// Number of pending faults in all strata.
    left: usize,
    /// Sites of the executions so far, per stratum.
    passed: Vec<u64>,
    /// Executions so far, per instruction number.
    occurrences: Vec<u64>,
    /// EXEC before the current instruction.
    exec: Option<LaneMask>,
}

impl<'a> Resolver<'a> {
    pub fn new(
        profile: &'a Profile,
        workload: &'a Workload,
        index: u32,
        dispatch: &'a Dispatch,
        seed: u64,
        waves: HashMap<WaveId, Vec<(u64, Drawn)>>,
    ) -> Resolver<'a> {
        let strata = profile.strata.len();
        let pursuit = |faults: Vec<(u64, Drawn)>| {
            let left = faults.len();
            let mut pending: Vec<Vec<(u64, Drawn)>> = vec![Vec::new(); strata];
            for fault in faults {
                pending[fault.1.stratum].push(fault);
            }
            for faults in &mut pending {
                faults.sort_unstable_by_key(|(offset, drawn)| {
                    std::cmp::Reverse((*offset, drawn.index))
                });
            }
            let (passed, occurrences) = (vec![0; strata], Vec::new());
            Pursuit { pending, left, passed, occurrences, exec: None }
        };
        let (by_wave, faults): (HashMap<WaveId, usize>, Vec<_>) =
            (0..).zip(waves).map(|(index, (wave, faults))| ((wave, index), faults)).unzip();
        Resolver {
            profile,
            workload,
            index,
            dispatch,
            seed,
            known: Known::new(profile, Instructions::new(&profile.frame, workload, dispatch)),
            counts_executions: profile.frame.counts_executions(),
            pursuits: faults.into_iter().map(pursuit).collect(),
            by_wave,
            current: None,
            planned: Vec::new(),
            next_uses: NextUses::default(),
            unread: profile.leaves_out_known().then(Unread::default),
            passages: Passages::default(),
        }
    }

    /// Processes an executed instruction; `value` reads the current value of a place.
    pub fn see(&mut self, execution: &Execution<'_>, value: &mut Value<'_>) -> Watch {
        let Execution { inst, wave, .. } = *execution;
        let Some(index) = self.index_of(wave) else { return Watch::Off };
        let exec = self.pursuits[index].exec.unwrap_or(execution.lanes);
        let effect = Effect { inst, exec, written: execution.lanes };
        let is_followed = self.next_uses.observe(wave, &effect);
        if self.pursuits[index].left > 0 {
            self.pursue(index, execution, &effect, value);
        } else if !is_followed {
            return Watch::Off;
        }
        Watch::On
    }

    /// Index of the wave's pursuit.
    fn index_of(&mut self, wave: WaveId) -> Option<usize> {
        match self.current {
            Some((current, index)) if current == wave => Some(index),
            _ => {
                let index = *self.by_wave.get(&wave)?;
                self.current = Some((wave, index));
                Some(index)
            }
        }
    }

    /// Counts the sites of an execution and resolves the faults drawn among them.
    fn pursue(
        &mut self,
        index: usize,
        execution: &Execution<'_>,
        effect: &Effect<'_>,
        value: &mut Value<'_>,
    ) {
        let Execution { inst, wave, time, .. } = *execution;
        let number = self.known.instructions.number(inst);
        let occurrence = next_occurrence(&mut self.pursuits[index].occurrences, number);
        let mut decided = Vec::new();
        if let Some(unread) = &mut self.unread {
            unread.see(wave, effect, &mut |value| decided.push(value));
            self.take_read(index, wave, std::mem::take(&mut decided));
        }
        let frame = &self.profile.frame;
        if !frame.selection.has_moment(&Moment { wave, occurrence, time }) {
            return;
        }
        let lanes = lanes_struck(frame, execution.lanes, execution.all);
        let sites = &self.known.instructions.get(number).sites;
        if let Some(unread) = &mut self.unread {
            let origin = Origin { number, occurrence, time };
            for register in sites.registers() {
                unread.write(wave, origin, register, lanes, &mut |value| decided.push(value));
            }
            return self.take_read(index, wave, decided);
        }
        let count = sites.count(lanes);
        for (drawn, offset) in self.passed(index, number, count) {
            let mut stream = drawn.stream(self.profile, self.seed);
            let sites = &self.known.instructions.get(number).sites;
            let Some(struck) = sites.draw(lanes, offset, &mut stream) else {
                continue;
            };
            let found = Found { drawn, struck, number, occurrence };
            let site = self.site_of(&found, wave, stream);
            let (analysis, followed) = analysis_of(&site, execution, value);
            if let Some((register, lanes)) = followed {
                self.next_uses.follow(drawn.index, wave, register, lanes);
            }
            let planned = self.planned_of(&found, site, analysis);
            self.planned.push((drawn.index, planned));
        }
    }

    /// Resolves the faults drawn among values that are now read.
    fn take_read(&mut self, index: usize, wave: WaveId, decided: Vec<Decided>) {
        for Decided { origin, register, lanes, .. } in
            decided.into_iter().filter(|value| value.next_use == NextUse::Read)
        {
            let Origin { number, occurrence, time } = origin;
            let count = self.known.instructions.get(number).sites.of_register(register, lanes);
            for (drawn, offset) in self.passed(index, number, count) {
                let sites = &self.known.instructions.get(number).sites;
                let Some(struck) = sites.get_of_register(register, lanes, offset) else {
                    continue;
                };
                let found = Found { drawn, struck, number, occurrence };
                let site = self.site_of(&found, wave, drawn.stream(self.profile, self.seed));
                let analysis = SiteAnalysis { time, next_use: Some(NextUse::Read), before: None };
                let planned = self.planned_of(&found, site, Some(analysis));
                self.planned.push((drawn.index, planned));
            }
        }
    }

    /// Advances past the next `count` sites of an instruction's stratum in a wave. Returns the faults
    /// drawn among them, each with the site's number among these sites.
    fn passed(&mut self, index: usize, number: usize, count: u64) -> Vec<(Drawn, u64)> {
        let Some(stratum) = self.known.stratum(number) else { return Vec::new() };
        let pursuit = &mut self.pursuits[index];
        let first = pursuit.passed[stratum];
        let after = first + count;
        pursuit.passed[stratum] = after;
        let pending = &mut pursuit.pending[stratum];
        let next = || pending.pop_if(|(site, _)| *site < after);
        let found: Vec<_> =
            std::iter::from_fn(next).map(|(offset, drawn)| (drawn, offset - first)).collect();
        pursuit.left -= found.len();
        found
    }

    /// Builds the site of a resolved fault; `stream` supplies its remaining random choices.
    fn site_of(&self, found: &Found, wave: WaveId, mut stream: Stream) -> Site {
        let Found { struck, number, occurrence, .. } = found;
        let fault = &self.profile.frame.fault;
        let instruction = self.known.instructions.get(*number);
        let action = instruction.sites.action(struck, &mut stream);
        let intermittent = match fault.duration {
            Duration::Intermittent(intermittent) => Some((intermittent, stream.word())),
            _ => None,
        };
        let WaveId { workgroup, wave } = wave;
        let event = Event {
            dispatch: self.index,
            workgroup,
            wave: (fault.scope != Scope::Workgroup).then_some(wave),
            pc: instruction.pc,
            occurrence: *occurrence,
            intermittent,
        };
        let (place, lanes) = (struck.place, struck.lanes);
        Site { when: When::At(event), place, lanes, action }
    }

    /// Builds the planned fault of a resolved site.
    fn planned_of(&self, found: &Found, site: Site, analysis: Option<SiteAnalysis>) -> Planned {
        let Found { drawn, number, .. } = found;
        let instruction = self.known.instructions.get(*number);
        let line = instruction.line.as_ref();
        Planned {
            site,
            kernel: Some(self.dispatch.kernel.clone()),
            opcode: instruction.opcode,
            group: instruction.group,
            line: line.map(|line| format!("{}:{}", line.file, line.line)),
            stratum: drawn.stratum,
            weight: drawn.weight,
            analysis,
        }
    }

    /// Returns the resolved faults with the next uses of the values that they strike.
    pub fn finish(self) -> Vec<(u64, Planned)> {
        let next_uses: HashMap<u64, NextUse> = self.next_uses.into_decided().into_iter().collect();
        let mut planned = self.planned;
        for (index, fault) in &mut planned {
            if let Some(SiteAnalysis { next_use: Some(next_use), .. }) = &mut fault.analysis
                && let Some(decided) = next_uses.get(index)
            {
                *next_use = *decided;
            }
        }
        planned
    }
}

/// The analysis of a site whose instruction was just executed, as far as it is known now, and the value
/// to follow.
fn analysis_of(
    site: &Site,
    execution: &Execution<'_>,
    value: &mut Value<'_>,
) -> (Option<SiteAnalysis>, Option<(RegisterId, LaneMask)>) {
    let is_single = site.event().is_some_and(|event| event.is_single());
    if !is_single {
        return (None, None);
    }
    let Execution { lanes: active, all, time, .. } = *execution;
    let at = value_at(site, active, all, value);
    let before = at.map(|(before, _)| before);
    let analysis = SiteAnalysis { time, next_use: before.map(|_| NextUse::Read), before };
    (Some(analysis), at.and_then(|(_, followed)| followed))
}

/// For waves with pending faults.
impl StretchObserver for Resolver<'_> {
    fn allows(&mut self, wave: WaveId, _: u64, stretch: &dyn Stretch) -> u64 {
        let Some(index) = self.index_of(wave) else { return 0 };
        let Pursuit { pending, left, passed, .. } = &self.pursuits[index];
        if stretch.has_own_lanes() || *left == 0 || self.next_uses.follows(wave) {
            return 0;
        }
        let passage = self.passages.of(stretch, &mut self.known);
        let times = |(stratum, most): &(usize, u64)| {
            let (offset, _) = pending[*stratum].last()?;
            Some((offset - passed[*stratum]) / most)
        };
        passage.most.iter().filter_map(times).min().unwrap_or(u64::MAX)
    }

    fn executed(&mut self, wave: WaveId, stretch: &dyn Stretch, times: u64, lanes: [LaneMask; 2]) {
        let Some(index) = self.index_of(wave) else { return };
        let Pursuit { passed, occurrences, .. } = &mut self.pursuits[index];
        let passage = self.passages.of(stretch, &mut self.known);
        for part in passage.parts(lanes, &mut self.known) {
            for (stratum, sites) in &part.sites {
                passed[*stratum] += times * sites;
            }
            for number in &part.numbers {
                add_occurrences(occurrences, *number, times);
            }
        }
    }

    fn executed_one(&mut self, wave: WaveId, inst: &dyn Instruction, lanes: LaneMask) {
        let Some(index) = self.index_of(wave) else { return };
        let Pursuit { passed, occurrences, .. } = &mut self.pursuits[index];
        let number = self.known.instructions.number(inst);
        add_occurrences(occurrences, number, 1);
        if let Some((stratum, sites)) = self.known.sites(number, lanes) {
            passed[stratum] += sites;
        }
    }
}

impl Observer for Resolver<'_> {
    fn of_stretches(&mut self) -> Option<&mut dyn StretchObserver> {
        if self.counts_executions { Some(self) } else { None }
    }

    fn watches(&mut self, wave: WaveId) -> bool {
        let index = self.index_of(wave);
        index.is_some_and(|index| self.pursuits[index].left > 0 || self.next_uses.follows(wave))
    }

    fn before(&mut self, _: &dyn Instruction, wave: WaveId, state: &mut dyn WaveState) {
        if let Some(index) = self.index_of(wave) {
            self.pursuits[index].exec = Some(state.active());
        }
    }

    fn after(&mut self, executed: &Executed<'_>, state: &mut dyn WaveState) -> Watch {
        let (workload, dispatch) = (self.workload, self.dispatch);
        self.known.instructions.set_resources(|| workload.resources(dispatch, state));
        let execution = Execution::of(executed, state);
        let cells = Cells { buffers: &[] };
        self.see(&execution, &mut |place, lane, words| cells.read(state, place, lane, words))
    }
}
