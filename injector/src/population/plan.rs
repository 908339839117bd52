//! The plan: which faults a campaign injects.

use super::draw::{Drawn, draw, permanent};
use super::profile::Profile;
use super::resolver::Resolver;
use super::{Allocation, Group};
use crate::fate::Fate;
use crate::fault::Duration;
use crate::injection::Struck;
use crate::site::{Lanes, Site};
use crate::{GoldenError, Workload};
use flipwave_device::WaveId;
use std::collections::{BTreeMap, HashMap};

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
    /// What the fault strikes, if nothing ever reads it: a run with the fault is the fault-free one
    /// then, and need not be made.
    pub fn foreseen(&self) -> Option<Struck> {
        let (fate, before) = self.foresight?.value?;
        let after = self.site.action.apply(before);
        (fate != Fate::Read).then_some(Struck { before, after, words: self.words()? })
    }

    /// What becomes of the value in the fault-free run, where that is known.
    pub fn fate(&self) -> Option<Fate> {
        self.foresight?.value.map(|(fate, _)| fate)
    }

    /// How many places the fault strikes, where that is known: of a site with the lanes named.
    fn words(&self) -> Option<u64> {
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
                return workload.dispatch(device, dispatch);
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

/// Faults by dispatch and wave, with the number of the place among its wave's.
type DrawnFaults = BTreeMap<u32, HashMap<WaveId, Vec<(u64, Drawn)>>>;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::{Action, FaultModel};
    use crate::population::instructions::Frame;
    use crate::population::profile::tests::{frame, profile_of};
    use crate::population::{Selection, Stratification};
    use crate::site::{Event, Place, When};
    use crate::testing::{Event as Executed, dispatch, executions, trace, wave, workload};
    use flipwave_isa::{Lane, LaneMask};
    use flipwave_isa::{Pc, Register, RegisterRange};
    use flipwave_sim::Watch;
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
             instructions (10 valu, 15 salu, 10 vmem) in: kernel"
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

    /// Permanent faults: every word and bit of a result on every slot that executed the operation,
    /// and no other. Lanes 1, 4 and 63 run in slots 1, 4 and 15; the halves in all sixteen.
    #[test]
    fn every_place_of_a_permanent_fault_is_a_slot_that_is_used() {
        let trace = trace();
        let mut frame = frame(&[Group::Fp64], FaultModel::FlipOneBit);
        frame.fault.duration = Duration::Permanent(std::num::NonZeroU32::new(3).unwrap());
        let profile = profile_of(std::slice::from_ref(&trace), frame);
        assert_eq!(profile.population.places, (16 + 16 + 3) * 2 * 32);
        let drawn = draw(&profile, 0, Sampling::Exhaustive { most: u64::MAX }).unwrap();
        let sites: HashSet<Site> =
            drawn.iter().map(|own| permanent(&profile, 0, own).unwrap().1.site).collect();
        assert_eq!(sites.len() as u64, profile.population.places);
        let mut slots: BTreeMap<(u32, u8), HashSet<Option<u8>>> = BTreeMap::new();
        for site in &sites {
            let (When::Always(unit), Place::Destination(0..2)) = (site.when, site.place) else {
                panic!("{site}");
            };
            assert_eq!((unit.opcode.name(), unit.units.get()), ("v_add_f64", 3));
            slots.entry((unit.unit, unit.simd)).or_default().insert(unit.slot);
        }
        let all: HashSet<Option<u8>> = (0..16).map(Some).collect();
        let few = HashSet::from([Some(1), Some(4), Some(15)]);
        assert_eq!(slots, BTreeMap::from([((0, 0), all.clone()), ((0, 1), few), ((1, 0), all)]));
    }
}
