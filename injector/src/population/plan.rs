//! The plan: which faults a campaign injects.

use super::instructions::Instructions;
use super::places::Struck;
use super::profile::{Execution, Profile, StratumPlaces, lanes_struck, next_occurrence};
use super::selection::Moment;
use super::{Allocation, Group};
use crate::cell::Cells;
use crate::fate::{Fate, Fates};
use crate::fault::{Duration, Scope};
use crate::foresight::value_at;
use crate::site::{Event, Lanes, Place, Site, When};
use crate::stream::Stream;
use crate::{GoldenError, Workload};
use flipwave_device::{Device, Dispatch, WaveId};
use flipwave_isa::{Inst, Lane, LaneMask, Register};
use flipwave_sim::{Executed, Observer, Watch, WaveState};
use std::collections::{BTreeMap, HashMap};
use std::num::NonZeroU64;

/// One injection of a plan.
#[derive(Clone, Debug, PartialEq)]
pub struct Planned {
    /// Where the fault strikes.
    pub site: Site,
    /// The kernel of the site's dispatch; nothing for a permanent fault, which strikes in all.
    pub kernel: Option<String>,
    /// Canonical name of the operation struck.
    pub opcode: &'static str,
    /// Its primary group.
    pub group: Group,
    /// The instruction's source line, `file:line`, where the code object says it.
    pub line: Option<String>,
    /// The stratum it was drawn from, by its number in [`Profile::strata`].
    pub stratum: usize,
    /// How many places of the population it stands for, relative to the other injections: 1 on
    /// average, and the same for all of a stratum.
    pub weight: f64,
    /// What is known of the fault from the fault-free run.
    pub foresight: Option<Foresight>,
}

/// What the fault-free run says of a fault that strikes one execution of an instruction by one
/// wave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Foresight {
    /// Instructions that the wave has executed before the one of the site.
    pub time: u64,
    /// What becomes of the value that is struck, and what it is before the fault, where it is one
    /// of a register after the instruction. Of the registers of several lanes the value is that of
    /// the lowest.
    pub value: Option<(Fate, u64)>,
}

impl Planned {
    /// How many places the fault strikes, where that is known: of a site with the lanes named.
    pub(crate) fn words(&self) -> Option<u64> {
        match self.site.lanes {
            None | Some(Lanes::One(_)) => Some(1),
            Some(Lanes::Mask(mask)) => Some(mask.count().into()),
            Some(Lanes::Active | Lanes::All) => None,
        }
    }
}

/// How a plan is drawn from its population.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sampling {
    /// So many faults, with replacement; within a stratum each place with the same probability.
    Random {
        /// How many.
        count: u64,
        /// How they are divided among the strata.
        allocation: Allocation,
    },
    /// Every place once, in their order, if they are no more than this.
    Exhaustive {
        /// How many places at most.
        most: u64,
    },
}

/// No plan.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// There is nothing to hit.
    #[error(
        "nothing to inject into: {fault} has no place in this workload with {selection}, {reason}"
    )]
    EmptyPopulation {
        /// The fault, as text.
        fault: String,
        /// What is selected, as text.
        selection: String,
        /// Why there is none.
        reason: String,
    },
    /// There is too much to hit all of it.
    #[error(
        "the population has {places} places, more than the {most} of an exhaustive campaign; \
         select less, or draw a sample"
    )]
    TooLarge {
        /// Its places.
        places: u64,
        /// How many there may be.
        most: u64,
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
    /// What was counted of one dispatch does not hold for the others.
    #[error(
        "injection {index} has no site: {tries} places drawn by the approximate profile are not \
         in the dispatches they were drawn in; count all dispatches, with `profile: exact`"
    )]
    TooApproximate {
        /// Index of the injection.
        index: u64,
        /// Places drawn for it.
        tries: u32,
    },
}

/// Places drawn for one injection before an approximate profile is given up.
const TRIES: u32 = 32;

/// Draws faults from the population of `profile` and finds their sites in one more run of the
/// workload; in a few more where the profile is approximate.
///
/// Injection `i` is a function of the workload, what the profile was asked for, the seed and `i`
/// alone; a longer plan of a population without strata begins with the shorter one.
///
/// # Errors
/// [`PlanError`] if the population is empty, too large, or the workload is not the one profiled.
pub fn plan(
    workload: &Workload,
    profile: &Profile,
    seed: u64,
    sampling: Sampling,
) -> Result<Vec<Planned>, PlanError> {
    let mut wanted = draw(profile, seed, sampling)?;
    let count = wanted.len() as u64;
    let mut planned: Vec<(u64, Planned)> = Vec::with_capacity(wanted.len());
    if let Duration::Permanent(_) = profile.frame.fault.duration {
        for drawn in &wanted {
            let found = permanent(profile, seed, drawn);
            planned.push(found.ok_or(PlanError::Unresolved { index: drawn.index })?);
        }
        return in_order(planned, count);
    }
    while !wanted.is_empty() {
        let mut faults = DrawnFaults::new();
        for drawn in &wanted {
            let unresolved = PlanError::Unresolved { index: drawn.index };
            let stratum = profile.strata.get(drawn.stratum);
            let located = stratum.and_then(|own| own.locate(drawn.place));
            let (wave, offset) = located.ok_or(unresolved)?;
            let waves = faults.entry(wave.dispatch).or_default();
            waves.entry(wave.wave).or_default().push((offset, *drawn));
        }
        let before = planned.len();
        workload.run_fault_free(|index, device, dispatch| {
            let Some(waves) = faults.remove(&index) else {
                return device.dispatch(dispatch);
            };
            let mut resolver = Resolver::new(profile, workload, (index, dispatch), seed, waves);
            let completion = workload.observe(device, dispatch, &mut resolver)?;
            planned.append(&mut resolver.finish());
            Ok(completion)
        })?;
        if profile.is_exact() {
            break;
        }
        let mut found: Vec<u64> = planned[before..].iter().map(|(index, _)| *index).collect();
        found.sort_unstable();
        wanted.retain(|drawn| found.binary_search(&drawn.index).is_err());
        for drawn in &mut wanted {
            *drawn = drawn.again(profile, seed)?;
        }
    }
    in_order(planned, count)
}

/// The faults by index, if none of the `count` is missing.
fn in_order(mut planned: Vec<(u64, Planned)>, count: u64) -> Result<Vec<Planned>, PlanError> {
    planned.sort_unstable_by_key(|(index, _)| *index);
    let mut found = planned.into_iter();
    let next = |expected| match found.next() {
        Some((index, planned)) if index == expected => Ok(planned),
        _ => Err(PlanError::Unresolved { index: expected }),
    };
    (0..count).map(next).collect()
}

/// A fault drawn, before its site is known.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Drawn {
    /// Index of the injection.
    index: u64,
    stratum: usize,
    weight: f64,
    /// Number of the place in the stratum.
    place: u64,
    /// Which draw of its stream that was, from 0; nothing where all places are taken.
    draw: Option<u32>,
}

impl Drawn {
    /// The stream of the injection behind the draw of its place.
    fn stream(&self, profile: &Profile, seed: u64) -> Stream {
        let mut stream = Stream::new(seed, self.index);
        let places = profile.strata.get(self.stratum).map_or(0, |own| own.places);
        if let (Some(draw), Some(places)) = (self.draw, NonZeroU64::new(places)) {
            for _ in 0..=draw {
                stream.below(places);
            }
        }
        stream
    }

    /// The next draw of its stream.
    fn again(&self, profile: &Profile, seed: u64) -> Result<Drawn, PlanError> {
        let draw = self.draw.map_or(TRIES, |draw| draw + 1);
        let places = profile.strata.get(self.stratum).and_then(|own| NonZeroU64::new(own.places));
        match places {
            Some(places) if draw < TRIES => {
                let place = self.stream(profile, seed).below(places);
                Ok(Drawn { place, draw: Some(draw), ..*self })
            }
            _ => Err(PlanError::TooApproximate { index: self.index, tries: draw }),
        }
    }
}

/// Faults by dispatch and wave, with the number of the place among its wave's.
type DrawnFaults = BTreeMap<u32, HashMap<WaveId, Vec<(u64, Drawn)>>>;

fn draw(profile: &Profile, seed: u64, sampling: Sampling) -> Result<Vec<Drawn>, PlanError> {
    let places: Vec<u64> = profile.strata.iter().map(|own| own.places).collect();
    let total: u64 = places.iter().sum();
    if total == 0 {
        return Err(empty(profile));
    }
    let (count, allocation) = match sampling {
        Sampling::Random { count, allocation } => (count, allocation),
        Sampling::Exhaustive { most } if total > most => {
            return Err(PlanError::TooLarge { places: total, most });
        }
        Sampling::Exhaustive { .. } => {
            let strata = (0..).zip(&places);
            let all = strata.flat_map(|(stratum, places)| (0..*places).map(move |p| (stratum, p)));
            let drawn = |(index, (stratum, place))| Drawn {
                index,
                stratum,
                weight: 1.0,
                place,
                draw: None,
            };
            return Ok((0..).zip(all).map(drawn).collect());
        }
    };
    let mut drawn = Vec::new();
    for (stratum, share) in allocation.shares(count, &places).into_iter().enumerate() {
        let Some(own) = NonZeroU64::new(places[stratum]) else { continue };
        let weight = own.get() as f64 / total as f64 * count as f64 / share as f64;
        for _ in 0..share {
            let index = drawn.len() as u64;
            let place = Stream::new(seed, index).below(own);
            drawn.push(Drawn { index, stratum, weight, place, draw: Some(0) });
        }
    }
    Ok(drawn)
}

fn empty(profile: &Profile) -> PlanError {
    let executed = profile.population.executed;
    let kinds: Vec<String> = profile
        .population
        .groups
        .iter()
        .map(|group| format!("{} {}", group.executed, group.group))
        .collect();
    let kinds = if kinds.is_empty() { String::new() } else { format!(" ({})", kinds.join(", ")) };
    PlanError::EmptyPopulation {
        fault: profile.frame.fault.to_string(),
        selection: profile.frame.selection.to_string(),
        reason: format!("which executed {executed} wave instructions{kinds}"),
    }
}

/// The permanent fault of a place.
fn permanent(profile: &Profile, seed: u64, drawn: &Drawn) -> Option<(u64, Planned)> {
    let StratumPlaces { units, .. } = profile.strata.get(drawn.stratum)?;
    let behind = units.partition_point(|unit| unit.first <= drawn.place);
    let own = units.get(behind.checked_sub(1)?)?;
    let (unit, place, struck) = own.get(drawn.place - own.first)?;
    let mut stream = drawn.stream(profile, seed);
    let model = &profile.frame.fault.model;
    let action = model.action(struck.place.bits(), struck.format, struck.number, &mut stream);
    let planned = Planned {
        site: Site { when: When::Always(unit), place, lanes: None, action },
        kernel: None,
        opcode: unit.opcode.name(),
        group: own.group,
        line: None,
        stratum: drawn.stratum,
        weight: drawn.weight,
        foresight: None,
    };
    Some((drawn.index, planned))
}

/// Finds the sites of the faults drawn in one dispatch by counting places as the profile did, and
/// what becomes of the values that they strike.
struct Resolver<'a> {
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

/// Gives the value of so many words from a place on.
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
    fn new(
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
    fn see(&mut self, execution: &Execution<'_>, value: &mut Value<'_>) -> Watch {
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
        let is_single = event.wave.is_some() && intermittent.is_none();
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
    fn finish(self) -> Vec<(u64, Planned)> {
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
        self.instructions.know(|| workload.resources(dispatch, state));
        let execution = Execution::of(executed, state);
        let cells = Cells { buffers: &[] };
        self.see(&execution, &mut |place, lane, words| cells.read(state, place, lane, words))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::{Action, FaultModel};
    use crate::population::instructions::Frame;
    use crate::population::profile::tests::{frame, profile_of};
    use crate::population::{Selection, Stratification};
    use crate::testing::{Event as Executed, dispatch, executions, trace, wave, workload};
    use flipwave_isa::{Pc, Register, RegisterRange};
    use std::collections::HashSet;

    /// The faults that were drawn in the first dispatch, by the index of the injection.
    fn resolve(
        trace: &[Executed],
        profile: &Profile,
        seed: u64,
        drawn: Vec<Drawn>,
    ) -> BTreeMap<u64, Planned> {
        let mut waves: HashMap<WaveId, Vec<(u64, Drawn)>> = HashMap::new();
        for drawn in drawn {
            let (wave, offset) = profile.strata[drawn.stratum].locate(drawn.place).unwrap();
            waves.entry(wave.wave).or_default().push((offset, drawn));
        }
        let (workload, dispatch) = (workload(), dispatch());
        let mut resolver = Resolver::new(profile, &workload, (0, &dispatch), seed, waves);
        let mut finished = HashSet::new();
        for execution in executions(trace) {
            let wave = execution.wave;
            if !finished.contains(&wave)
                && resolver.see(&execution, &mut |_, _, _| Some(0)) == Watch::Off
            {
                finished.insert(wave);
            }
        }
        resolver.finish().into_iter().collect()
    }

    fn random(count: u64) -> Sampling {
        Sampling::Random { count, allocation: Allocation::Proportional }
    }

    fn plan_of(trace: &[Executed], profile: &Profile, seed: u64, count: u64) -> Vec<Planned> {
        let drawn = draw(profile, seed, random(count)).unwrap();
        let planned = resolve(trace, profile, seed, drawn);
        assert_eq!(planned.len() as u64, count);
        planned.into_values().collect()
    }

    fn event(planned: &Planned) -> Event {
        *planned.site.event().unwrap()
    }

    /// Every place number of the whole population, resolved, against an enumeration of all
    /// executions, registers, lanes and bits that knows nothing of place numbers.
    #[test]
    fn every_place_of_the_population_is_one_site() {
        let trace = trace();
        let groups = [Group::Valu, Group::Salu, Group::Vmem];
        let profile =
            profile_of(std::slice::from_ref(&trace), frame(&groups, FaultModel::FlipOneBit));
        let drawn = draw(&profile, 0, Sampling::Exhaustive { most: u64::MAX }).unwrap();
        let found: Vec<Site> =
            resolve(&trace, &profile, 0, drawn).into_values().map(|own| own.site).collect();

        let mut expected = Vec::new();
        for wave in [[0, 0], [0, 1], [1, 0]] {
            let mut executions: HashMap<Pc, u64> = HashMap::new();
            for (id, inst, lanes) in &trace {
                if [id.workgroup[0], id.wave] != wave {
                    continue;
                }
                let occurrence = executions.entry(inst.pc).or_default();
                let mut add = |register: &str, lane: Option<Lane>, bits: u32| {
                    let event = Event {
                        dispatch: 0,
                        workgroup: id.workgroup,
                        wave: Some(id.wave),
                        pc: inst.pc,
                        occurrence: *occurrence,
                        intermittent: None,
                    };
                    expected.extend((0..bits).map(|bit| Site {
                        when: When::At(event),
                        place: Place::Register(register.parse().unwrap()),
                        lanes: lane.map(Lanes::One),
                        action: Action::Flip(1 << bit),
                    }));
                };
                match inst.pc.0 {
                    0x100 | 0x114 => {
                        let registers =
                            if inst.pc.0 == 0x100 { ["v2", "v3"] } else { ["v4", "v5"] };
                        for register in registers {
                            lanes.lanes().for_each(|lane| add(register, Some(lane), 32));
                        }
                    }
                    0x10c => ["vcc_lo", "vcc_hi"].iter().for_each(|name| add(name, None, 32)),
                    0x110 => {
                        let words = ["s4", "s5", "exec_lo", "exec_hi"];
                        words.iter().for_each(|name| add(name, None, 32));
                        add("scc", None, 1);
                    }
                    0x11c => {
                        add("s6", None, 32);
                        add("scc", None, 1);
                    }
                    _ => {}
                }
                *occurrence += 1;
            }
        }
        assert_eq!(found.len() as u64, profile.population.places);
        assert_eq!(found.iter().collect::<HashSet<_>>().len(), found.len());
        assert!(found == expected, "the sites are not those executed, in the order documented");
    }

    #[test]
    fn a_plan_depends_on_seed_and_index_alone() {
        let trace = trace();
        let model = FaultModel::RandomValue;
        let profile = profile_of(std::slice::from_ref(&trace), frame(&[Group::All], model));
        let plan = plan_of(&trace, &profile, 42, 200);
        assert_eq!(plan, plan_of(&trace, &profile, 42, 200));
        assert_eq!(plan[..30], plan_of(&trace, &profile, 42, 30));
        assert_ne!(plan, plan_of(&trace, &profile, 43, 200));
    }

    /// Chi-squared over the bits of the results of one instruction, v[4:5] in 70 written lanes:
    /// every register, bit and wave is hit as often as its share of the population says.
    #[test]
    fn plans_are_uniform_over_the_population() {
        let trace = trace();
        let model = FaultModel::FlipOneBit;
        let profile = profile_of(std::slice::from_ref(&trace), frame(&[Group::Fp64], model));
        let plan = plan_of(&trace, &profile, 7, 20_000);

        let mut hits: HashMap<(Place, Action), u32> = HashMap::new();
        let mut waves: HashMap<WaveId, u32> = HashMap::new();
        for planned in &plan {
            let (site, event) = (planned.site, event(planned));
            *hits.entry((site.place, site.action)).or_default() += 1;
            let wave = WaveId { workgroup: event.workgroup, wave: event.wave.unwrap() };
            *waves.entry(wave).or_default() += 1;
        }
        assert_eq!(hits.len(), 64, "32 bits of both halves");
        let expected = 20_000.0 / 64.0;
        let squared: f64 =
            hits.values().map(|hits| (f64::from(*hits) - expected).powi(2) / expected).sum();
        // 63 degrees of freedom: 99.9 % lie below 103.4, 0.1 % below 32.
        assert!((32.0..103.4).contains(&squared), "{squared}");

        for (own, lanes) in [((0, 0), 35.0), ((0, 1), 3.0), ((1, 0), 32.0)] {
            let hits = f64::from(waves[&wave(own.0, own.1)]);
            let share: f64 = lanes / 70.0;
            let deviation = (20_000.0 * share * (1.0 - share)).sqrt();
            assert!((hits - 20_000.0 * share).abs() < 4.0 * deviation, "{own:?}: {hits}");
        }
    }

    #[test]
    fn random_values_differ_and_come_from_the_stream() {
        let trace = trace();
        let model = FaultModel::RandomValue;
        let profile = profile_of(std::slice::from_ref(&trace), frame(&[Group::Fp64], model));
        let values: HashSet<Action> =
            plan_of(&trace, &profile, 1, 500).iter().map(|planned| planned.site.action).collect();
        assert!(values.len() > 495);
        assert!(values.iter().all(|action| matches!(action, Action::Set(_))));
    }

    #[test]
    fn planned_faults_say_what_they_strike() {
        let trace = trace();
        let profile =
            profile_of(std::slice::from_ref(&trace), frame(&[Group::Fp64], FaultModel::ZeroValue));
        let planned = &plan_of(&trace, &profile, 1, 1)[0];
        assert_eq!((planned.opcode, planned.group), ("v_add_f64", Group::Valu));
        assert_eq!(planned.kernel.as_deref(), Some("kernel"));
        assert_eq!(event(planned).pc, Pc(0x114));
    }

    #[test]
    fn an_empty_population_is_explained() {
        let profile = profile_of(&[trace()], frame(&[Group::Lds], FaultModel::FlipOneBit));
        let error = draw(&profile, 42, random(1)).unwrap_err().to_string();
        assert_eq!(
            error,
            "nothing to inject into: transient flip_one_bit in destination_register of one lane \
             has no place in this workload with groups: [lds], which executed 35 wave \
             instructions (10 valu, 15 salu, 10 vmem)"
        );
    }

    /// A workload that stops short of its profile leaves faults without a site; that must not
    /// go unnoticed.
    #[test]
    fn places_that_are_not_executed_again_are_not_planned() {
        let trace = trace();
        let profile =
            profile_of(std::slice::from_ref(&trace), frame(&[Group::All], FaultModel::FlipOneBit));
        let drawn = draw(&profile, 42, random(100)).unwrap();
        let planned = resolve(&trace[..7], &profile, 42, drawn);
        assert!(planned.len() < 100);
        assert!(in_order(planned.into_iter().collect(), 100).is_err());
    }

    /// Each stratum is drawn from by itself, gets its share, and weighs what it should.
    #[test]
    fn strata_get_their_shares_and_weights_that_make_up_for_them() {
        let trace = trace();
        let frame = Frame {
            stratification: Stratification::Group,
            ..frame(&[Group::All], FaultModel::FlipOneBit)
        };
        let profile = profile_of(std::slice::from_ref(&trace), frame);
        let places: Vec<(String, u64)> =
            profile.strata().map(|own| (own.name, own.places)).collect();
        assert_eq!(
            places,
            [
                ("salu".to_owned(), 5 * (129 + 33)),
                ("valu".to_owned(), 5 * 64 + 70 * 64),
                ("vmem".to_owned(), 195 * 64),
            ]
        );
        let total: u64 = places.iter().map(|(_, places)| places).sum();
        for allocation in [Allocation::Equal, Allocation::Proportional] {
            let drawn = draw(&profile, 1, Sampling::Random { count: 300, allocation }).unwrap();
            let planned: Vec<Planned> = resolve(&trace, &profile, 1, drawn).into_values().collect();
            assert_eq!(planned.len(), 300);
            for (stratum, (name, places)) in places.iter().enumerate() {
                let own: Vec<&Planned> =
                    planned.iter().filter(|own| own.stratum == stratum).collect();
                assert!(own.iter().all(|own| own.group.name() == name));
                if allocation == Allocation::Equal {
                    assert_eq!(own.len(), 100);
                }
                let weight: f64 = own.iter().map(|own| own.weight).sum();
                let share = *places as f64 / total as f64;
                assert!((weight / 300.0 - share).abs() < 1e-12, "{name}: {weight}");
            }
        }
    }

    #[test]
    fn a_population_too_large_to_exhaust_says_how_large_it_is() {
        let profile = profile_of(&[trace()], frame(&[Group::Fp64], FaultModel::FlipOneBit));
        let error = draw(&profile, 0, Sampling::Exhaustive { most: 4479 }).unwrap_err();
        assert!(error.to_string().contains("4480 places, more than the 4479"), "{error}");
        assert_eq!(draw(&profile, 0, Sampling::Exhaustive { most: 4480 }).unwrap().len(), 4480);
    }

    /// The same sample without what a selection leaves out.
    #[test]
    fn only_what_is_selected_is_drawn() {
        let trace = trace();
        let drawn = |selection: Selection| {
            let frame = Frame { selection, ..frame(&[], FaultModel::ZeroValue) };
            let profile = profile_of(std::slice::from_ref(&trace), frame);
            plan_of(&trace, &profile, 3, 100).iter().map(|own| own.site).collect::<Vec<_>>()
        };
        let all = Selection::default();
        let every = |selection: Selection, holds: fn(&Site, &Event) -> bool| {
            drawn(selection).iter().all(|site| holds(site, site.event().unwrap()))
        };
        let registers = vec!["v4".parse().map(|own| RegisterRange::new(own, 2)).unwrap()];
        for (selection, holds) in [
            (
                Selection { registers, ..all.clone() },
                (|site, _| matches!(site.place, Place::Register(Register::Vgpr(v)) if v.0 / 2 == 2))
                    as fn(&Site, &Event) -> bool,
            ),
            (Selection { occurrences: Some(1..=1), ..all.clone() }, |_, own| own.occurrence == 1),
            (Selection { waves: Some(1..=7), ..all.clone() }, |_, own| own.wave == Some(1)),
            (Selection { window: Some(0..=2), ..all.clone() }, |_, own| own.pc < Pc(0x110)),
            (Selection { pcs: vec![Pc(0x110)], ..all.clone() }, |_, own| own.pc == Pc(0x110)),
            (Selection { workgroups: vec![[1, 0, 0]], ..all.clone() }, |_, own| {
                own.workgroup == [1, 0, 0]
            }),
            (
                Selection { lanes: Some(LaneMask(0x10)), groups: vec![Group::Vmem], ..all.clone() },
                { |site, _| site.lanes == Some(Lanes::One(Lane(4))) },
            ),
        ] {
            let text = selection.to_string();
            assert!(every(selection, holds), "{text}");
            assert!(!every(all.clone(), holds), "{text} leaves nothing out");
        }
    }
}
