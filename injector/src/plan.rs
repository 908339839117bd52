//! The plan: which faults a campaign injects.

use crate::instructions::{Instruction, Instructions};
use crate::profile::Profile;
use crate::stream::Stream;
use crate::{FaultModel, GoldenError, Group, Site, Workload};
use flipwave_device::{Device, WaveId};
use flipwave_isa::{Inst, LaneMask};
use flipwave_sim::{Executed, Observer, Watch, WaveState};
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
        let completion = workload.observe(device, dispatch, &mut resolver)?;
        planned.append(&mut resolver.planned);
        Ok(completion)
    })?;
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

    fn after(&mut self, executed: &Executed<'_>, _: &mut WaveState<'_>) -> Watch {
        self.see(executed.inst, executed.wave, executed.lanes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::tests::profile_of;
    use crate::testing::{Execution, trace};
    use flipwave_isa::{Lane, Pc, Register};
    use std::collections::HashSet;

    /// The sites of the given faults of the first dispatch, by the index of the injection.
    fn resolve(
        trace: &[Execution],
        profile: &Profile,
        waves: HashMap<WaveId, Vec<Drawn>>,
    ) -> BTreeMap<u64, Planned> {
        let mut resolver = Resolver::new(profile, 0, "kernel", waves);
        let mut finished = HashSet::new();
        for (wave, inst, lanes) in trace {
            if !finished.contains(wave) && resolver.see(inst, *wave, *lanes) == Watch::Off {
                finished.insert(*wave);
            }
        }
        resolver.planned.into_iter().collect()
    }

    fn plan_of(trace: &[Execution], profile: &Profile, seed: u64, count: u64) -> Vec<Planned> {
        let mut drawn = draw(profile, seed, count).unwrap();
        let planned = resolve(trace, profile, drawn.remove(&0).unwrap());
        assert_eq!(planned.len() as u64, count);
        planned.into_values().collect()
    }

    /// Every place number of the whole population, resolved, against an enumeration of all
    /// executions, registers, lanes and bits that knows nothing of place numbers.
    #[test]
    fn every_place_of_the_population_is_one_site() {
        let trace = trace();
        let groups = [Group::Valu, Group::Salu, Group::Vmem];
        let profile = profile_of(std::slice::from_ref(&trace), &groups, FaultModel::FlipOneBit);
        let mut waves: HashMap<WaveId, Vec<Drawn>> = HashMap::new();
        for place in 0..profile.population.places {
            let (wave, offset) = profile.locate(place).unwrap();
            let drawn = Drawn { offset, index: place, random: 0 };
            waves.entry(wave.wave).or_default().push(drawn);
        }
        let found: Vec<Site> =
            resolve(&trace, &profile, waves).into_values().map(|planned| planned.site).collect();

        let mut expected = Vec::new();
        for wave in [[0, 0], [0, 1], [1, 0]] {
            let mut executions: HashMap<Pc, u64> = HashMap::new();
            for (id, inst, lanes) in &trace {
                if [id.workgroup[0], id.wave] != wave {
                    continue;
                }
                let occurrence = executions.entry(inst.pc).or_default();
                let mut add = |register: &str, lane: Option<Lane>, bits: u32| {
                    expected.extend((0..bits).map(|bit| Site {
                        dispatch: 0,
                        workgroup: id.workgroup,
                        wave: id.wave,
                        pc: inst.pc,
                        occurrence: *occurrence,
                        lane,
                        register: register.parse::<Register>().unwrap(),
                        action: crate::Action::Flip(1 << bit),
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
        let profile = profile_of(std::slice::from_ref(&trace), &[Group::All], model);
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
        let profile = profile_of(std::slice::from_ref(&trace), &[Group::Fp64], model);
        let plan = plan_of(&trace, &profile, 7, 20_000);

        let mut hits: HashMap<(Register, crate::Action), u32> = HashMap::new();
        let mut waves: HashMap<WaveId, u32> = HashMap::new();
        for Planned { site, .. } in &plan {
            *hits.entry((site.register, site.action)).or_default() += 1;
            let wave = WaveId { workgroup: site.workgroup, wave: site.wave };
            *waves.entry(wave).or_default() += 1;
        }
        assert_eq!(hits.len(), 64, "32 bits of both halves");
        let expected = 20_000.0 / 64.0;
        let squared: f64 =
            hits.values().map(|hits| (f64::from(*hits) - expected).powi(2) / expected).sum();
        // 63 degrees of freedom: 99.9 % lie below 103.4, 0.1 % below 32.
        assert!((32.0..103.4).contains(&squared), "{squared}");

        for (wave, lanes) in [((0, 0), 35.0), ((0, 1), 3.0), ((1, 0), 32.0)] {
            let hits = f64::from(waves[&crate::testing::wave(wave.0, wave.1)]);
            let share: f64 = lanes / 70.0;
            let deviation = (20_000.0 * share * (1.0 - share)).sqrt();
            assert!((hits - 20_000.0 * share).abs() < 4.0 * deviation, "{wave:?}: {hits}");
        }
    }

    #[test]
    fn random_values_differ_and_come_from_the_stream() {
        let trace = trace();
        let model = FaultModel::RandomValue;
        let profile = profile_of(std::slice::from_ref(&trace), &[Group::Fp64], model);
        let values: HashSet<crate::Action> =
            plan_of(&trace, &profile, 1, 500).iter().map(|planned| planned.site.action).collect();
        assert!(values.len() > 495);
        assert!(values.iter().all(|action| matches!(action, crate::Action::Set(_))));
    }

    #[test]
    fn planned_faults_say_what_they_strike() {
        let trace = trace();
        let profile =
            profile_of(std::slice::from_ref(&trace), &[Group::Fp64], FaultModel::ZeroValue);
        let planned = &plan_of(&trace, &profile, 1, 1)[0];
        assert_eq!((planned.opcode, planned.group), ("v_add_f64", Group::Valu));
        assert_eq!(planned.kernel, "kernel");
        assert_eq!(planned.site.pc, Pc(0x114));
    }

    #[test]
    fn an_empty_population_is_explained() {
        let profile = profile_of(&[trace()], &[Group::Lds], FaultModel::FlipOneBit);
        let error = draw(&profile, 42, 1).unwrap_err().to_string();
        assert_eq!(
            error,
            "nothing to inject into: flip_one_bit has no place in the groups lds of this \
             workload, which executed 35 wave instructions (10 valu, 15 salu, 10 vmem)"
        );
    }

    /// A workload that stops short of its profile leaves faults without a site; that must not
    /// go unnoticed.
    #[test]
    fn places_that_are_not_executed_again_are_not_planned() {
        let trace = trace();
        let profile =
            profile_of(std::slice::from_ref(&trace), &[Group::All], FaultModel::FlipOneBit);
        let drawn = draw(&profile, 42, 100).unwrap().remove(&0).unwrap();
        let planned = resolve(&trace[..7], &profile, drawn);
        assert!(planned.len() < 100);
        assert!(in_order(planned.into_iter().collect(), 100).is_err());
    }
}
