use super::*;
use crate::fault::{Action, Duration, FaultModel};
use crate::fault_space::instructions::Frame;
use crate::fault_space::profile::tests::{frame, profile_of};
use crate::fault_space::{Draw, Group};
use crate::fault_space::{Selection, Stratification};
use crate::site::{Event, Lanes, Place, Site, When};
use crate::testing::{Event as Executed, dispatch, executions, trace, wave, workload};
use flipwave_arch::RegisterSpan;
use flipwave_isa::{Lane, LaneMask, Pc};
use flipwave_sim::Watch;
use std::collections::HashSet;

/// Resolves faults drawn in the first dispatch, by index of the injection.
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
    let mut resolver = Resolver::new(profile, &workload, 0, &dispatch, seed, waves);
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
    Sampling::random(count, Allocation::Proportional)
}

/// All draws of a plan.
fn draw(profile: &Profile, seed: u64, sampling: Sampling) -> Vec<Drawn> {
    let draws = Draws::new(profile, seed, &sampling);
    (0..draws.count()).map(|index| draws.get(index).unwrap()).collect()
}

fn plan_of(trace: &[Executed], profile: &Profile, seed: u64, count: u64) -> Vec<Planned> {
    let drawn = draw(profile, seed, random(count));
    let planned = resolve(trace, profile, seed, drawn);
    assert_eq!(planned.len() as u64, count);
    planned.into_values().collect()
}

fn event(planned: &Planned) -> Event {
    *planned.site.event().unwrap()
}

/// Every site number of the whole fault space, resolved, against an enumeration of all executions,
/// registers, lanes and bits that does not use site numbers.
#[test]
fn site_numbers_enumerate_the_fault_space() {
    let trace = trace();
    let groups = [Group::Valu, Group::Salu, Group::Vmem];
    let profile = profile_of(std::slice::from_ref(&trace), frame(&groups, FaultModel::FlipOneBit));
    let drawn = draw(&profile, 0, Sampling::Exhaustive);
    let found: Vec<Site> =
        resolve(&trace, &profile, 0, drawn).into_values().map(|planned| planned.site).collect();

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
                    place: Place::Register(crate::testing::register(register)),
                    lanes: lane.map(Lanes::One),
                    action: Action::Flip(1 << bit),
                }));
            };
            match inst.pc.0 {
                0x100 | 0x114 => {
                    let registers = if inst.pc.0 == 0x100 { ["v2", "v3"] } else { ["v4", "v5"] };
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
    assert_eq!(found.len() as u64, profile.fault_space.sites);
    assert_eq!(found.iter().collect::<HashSet<_>>().len(), found.len());
    assert!(found == expected, "the sites are not those executed, in the order documented");
}

#[test]
fn plans_depend_only_on_seed_and_index() {
    let trace = trace();
    let model = FaultModel::RandomValue;
    let profile = profile_of(std::slice::from_ref(&trace), frame(&[Group::All], model));
    let plan = plan_of(&trace, &profile, 42, 200);
    assert_eq!(plan, plan_of(&trace, &profile, 42, 200));
    assert_eq!(plan[..30], plan_of(&trace, &profile, 42, 30));
    assert_ne!(plan, plan_of(&trace, &profile, 43, 200));
}

/// Chi-squared over the bits of the results of one instruction, v[4:5] in 70 written lanes: every
/// register, bit and wave is hit in proportion to its share of the fault space.
#[test]
fn plans_are_uniform_over_the_fault_space() {
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

    for (position, lanes) in [((0, 0), 35.0), ((0, 1), 3.0), ((1, 0), 32.0)] {
        let hits = f64::from(waves[&wave(position.0, position.1)]);
        let share: f64 = lanes / 70.0;
        let deviation = (20_000.0 * share * (1.0 - share)).sqrt();
        assert!((hits - 20_000.0 * share).abs() < 4.0 * deviation, "{position:?}: {hits}");
    }
}

/// If bits are drawn, a 64-bit result of 70 lanes is hit as often as two 32-bit results; if
/// instructions are drawn, as often as one. The shares are counted by hand from the trace.
#[test]
fn instruction_draws_follow_thread_executions() {
    let trace = trace();
    let shares = |draw: Draw| {
        let frame = Frame { draw, ..frame(&[Group::Valu, Group::Salu], FaultModel::FlipOneBit) };
        let profile = profile_of(std::slice::from_ref(&trace), frame);
        let mut hits: HashMap<&str, u32> = HashMap::new();
        for planned in plan_of(&trace, &profile, 3, 20_000) {
            *hits.entry(planned.opcode).or_default() += 1;
        }
        (profile.fault_space.sites, hits)
    };
    // The comparison is executed by 195 threads, the sum by 70, scalar instructions five times each.
    let executed = [("v_cmp_gt_f32", 195), ("v_add_f64", 70)];
    let executed = executed.into_iter().chain([("s_and_saveexec_b64", 5), ("s_add_u32", 5)]);
    let bits = [5 * 64, 70 * 64, 5 * 129, 5 * 33];
    let check = |draw: Draw, expected: Vec<(&str, u64)>| {
        let (total, hits) = shares(draw);
        assert_eq!(total, expected.iter().map(|(_, sites)| sites).sum::<u64>());
        expected.iter().all(|(opcode, sites)| {
            let share = *sites as f64 / total as f64;
            let deviation = (20_000.0 * share * (1.0 - share)).sqrt();
            (f64::from(hits[opcode]) - 20_000.0 * share).abs() < 4.0 * deviation
        })
    };
    assert!(check(Draw::Instructions, executed.clone().collect()));
    assert!(check(Draw::Bits, executed.zip(bits).map(|((name, _), bits)| (name, bits)).collect()));
}

#[test]
fn random_values_come_from_the_stream() {
    let trace = trace();
    let model = FaultModel::RandomValue;
    let profile = profile_of(std::slice::from_ref(&trace), frame(&[Group::Fp64], model));
    let values: HashSet<Action> =
        plan_of(&trace, &profile, 1, 500).iter().map(|planned| planned.site.action).collect();
    assert!(values.len() > 495);
    assert!(values.iter().all(|action| matches!(action, Action::Set(_))));
}

#[test]
fn planned_faults_describe_their_sites() {
    let trace = trace();
    let profile =
        profile_of(std::slice::from_ref(&trace), frame(&[Group::Fp64], FaultModel::ZeroValue));
    let planned = &plan_of(&trace, &profile, 1, 1)[0];
    assert_eq!((planned.opcode, planned.group), ("v_add_f64", Group::Valu));
    assert_eq!(planned.kernel.as_deref(), Some("kernel"));
    assert_eq!(event(planned).pc, Pc(0x114));
}

#[test]
fn empty_fault_spaces_are_explained() {
    let profile = profile_of(&[trace()], frame(&[Group::Lds], FaultModel::FlipOneBit));
    let workload = workload();
    let error = Plan::new(&workload, &profile, 42, &random(1)).err().unwrap().to_string();
    assert_eq!(
        error,
        "nothing to inject into: transient flip_one_bit in destination_register of one lane \
         has no site in this workload with groups: [lds], which executed 35 wave \
         instructions (10 valu, 15 salu, 10 vmem) in: kernel"
    );
}

/// A workload that stops earlier than its profile leaves faults without a site, which must be reported.
#[test]
fn unexecuted_sites_are_reported() {
    let trace = trace();
    let profile =
        profile_of(std::slice::from_ref(&trace), frame(&[Group::All], FaultModel::FlipOneBit));
    let drawn = draw(&profile, 42, random(100));
    let planned = resolve(&trace[..7], &profile, 42, drawn);
    assert!(planned.len() < 100);
    let expected: Vec<u64> = (0..100).collect();
    assert!(in_order(planned.into_iter().collect(), &expected).is_err());
}

/// Each stratum is drawn separately, gets its share of faults, and the weights compensate for it.
#[test]
fn strata_get_shares_and_compensating_weights() {
    let trace = trace();
    let frame = Frame {
        stratification: Stratification::Group,
        ..frame(&[Group::All], FaultModel::FlipOneBit)
    };
    let profile = profile_of(std::slice::from_ref(&trace), frame);
    let sites: Vec<(String, u64)> =
        profile.strata().map(|stratum| (stratum.name, stratum.sites)).collect();
    assert_eq!(
        sites,
        [
            ("salu".to_owned(), 5 * (129 + 33)),
            ("valu".to_owned(), 5 * 64 + 70 * 64),
            ("vmem".to_owned(), 195 * 64),
        ]
    );
    let total: u64 = sites.iter().map(|(_, sites)| sites).sum();
    for allocation in [Allocation::Equal, Allocation::Proportional] {
        let drawn = draw(&profile, 1, Sampling::random(300, allocation.clone()));
        let planned: Vec<Planned> = resolve(&trace, &profile, 1, drawn).into_values().collect();
        assert_eq!(planned.len(), 300);
        for (stratum, (name, sites)) in sites.iter().enumerate() {
            let in_stratum: Vec<&Planned> =
                planned.iter().filter(|fault| fault.stratum == stratum).collect();
            assert!(in_stratum.iter().all(|fault| fault.group.name() == name));
            if allocation == Allocation::Equal {
                assert_eq!(in_stratum.len(), 100);
            }
            let weight: f64 = in_stratum.iter().map(|fault| fault.weight).sum();
            let share = *sites as f64 / total as f64;
            assert!((weight / 300.0 - share).abs() < 1e-12, "{name}: {weight}");
        }
    }
}

/// The index alone determines the draw: no earlier draw is needed, and the ends of each stratum's range
/// of indices are drawn in the stratum.
#[test]
fn any_index_of_an_endless_plan_is_drawn_directly() {
    let frame = Frame {
        stratification: Stratification::Group,
        ..frame(&[Group::All], FaultModel::FlipOneBit)
    };
    let profile = profile_of(&[trace()], frame);
    let strata = || 0..profile.strata.len();
    for (allocation, count) in [(Allocation::Equal, u64::MAX), (Allocation::Proportional, 3 << 62)]
    {
        let draws = Draws::new(&profile, 7, &Sampling::random(count, allocation.clone()));
        assert_eq!(draws.count(), count);
        let sites: Vec<u64> = profile.strata.iter().map(|stratum| stratum.sites).collect();
        let room = vec![u64::MAX; sites.len()];
        let mut first = 0;
        for (stratum, share) in strata().zip(allocation.shares(count, &sites, &room)) {
            let last = first + (share - 1);
            for index in [first, first + share / 2, last] {
                let drawn = draws.get(index).unwrap();
                assert_eq!((drawn.index, drawn.stratum), (index, stratum));
                assert_eq!(Some(drawn), draws.get(index), "the same each time");
            }
            first = last.wrapping_add(1);
        }
        assert_eq!(draws.get(count), None);
    }
    let all = Draws::new(&profile, 7, &Sampling::Exhaustive);
    assert_eq!(all.count(), profile.fault_space.sites);
    let last = all.get(all.count() - 1).unwrap();
    assert_eq!((last.stratum, last.place), (2, profile.strata[2].sites - 1));
    assert_eq!(all.get(all.count()), None);
}

/// Stages are drawn one after another: later stages do not change earlier ones, and each is allocated
/// to the strata as specified.
#[test]
fn later_stages_do_not_change_earlier_ones() {
    let frame = Frame {
        stratification: Stratification::Group,
        ..frame(&[Group::All], FaultModel::FlipOneBit)
    };
    let profile = profile_of(&[trace()], frame);
    let first = Stage { count: 60, allocation: Allocation::Equal };
    let second = Stage { count: 100, allocation: Allocation::Optimal(vec![0.0, 0.5, 0.0]) };
    for replacement in [true, false] {
        let sampling = |stages: &[&Stage]| Sampling::Random {
            stages: stages.iter().map(|stage| (*stage).clone()).collect(),
            replacement,
        };
        let short = draw(&profile, 9, sampling(&[&first]));
        let long = draw(&profile, 9, sampling(&[&first, &second]));
        assert_eq!((short.len(), long.len()), (60, 160));
        assert_eq!(short[..], long[..60]);
        let counts = |drawn: &[Drawn]| {
            [0, 1, 2].map(|stratum| drawn.iter().filter(|drawn| drawn.stratum == stratum).count())
        };
        assert_eq!(counts(&short), [20, 20, 20]);
        // At least one in 2^40.
        assert_eq!(counts(&long[60..]), [0, 100, 0]);
        let sites: HashSet<(usize, u64)> =
            long.iter().map(|drawn| (drawn.stratum, drawn.place)).collect();
        assert_eq!(sites.len() == long.len(), !replacement);
    }
}

#[test]
fn draws_without_replacement_are_a_permutation() {
    let profile = profile_of(&[trace()], frame(&[Group::Salu], FaultModel::ZeroValue));
    let stages = vec![Stage { count: 1000, allocation: Allocation::Proportional }];
    let drawn = draw(&profile, 3, Sampling::Random { stages, replacement: false });
    assert_eq!(drawn.len() as u64, profile.fault_space.sites);
    assert!(drawn.iter().all(|drawn| drawn.weight == 1.0));
    let mut sites: Vec<u64> = drawn.iter().map(|drawn| drawn.place).collect();
    assert!(!sites.is_sorted());
    sites.sort_unstable();
    assert_eq!(sites, (0..profile.fault_space.sites).collect::<Vec<_>>());
}

/// Checkpoints are recorded for these workgroups.
#[test]
fn struck_workgroups_are_those_of_the_faults() {
    let (workload, profile) =
        (workload(), profile_of(&[trace()], frame(&[Group::Fp64], FaultModel::FlipOneBit)));
    let struck = |count| {
        let plan = Plan::new(&workload, &profile, 3, &random(count)).unwrap();
        plan.struck_workgroups()
    };
    let one = plan_of(&trace(), &profile, 3, 1);
    assert_eq!(struck(1), StruckWorkgroups::of(&one));
    let all: StruckWorkgroups = [(0, [0, 0, 0]), (0, [1, 0, 0])].into_iter().collect();
    assert_eq!((struck(100), struck(u64::MAX)), (all.clone(), all));
}

/// A restricted selection draws from the same fault space without the excluded sites.
#[test]
fn only_selected_sites_are_drawn() {
    let trace = trace();
    let drawn = |selection: Selection| {
        let frame = Frame { selection, ..frame(&[], FaultModel::ZeroValue) };
        let profile = profile_of(std::slice::from_ref(&trace), frame);
        plan_of(&trace, &profile, 3, 100).iter().map(|planned| planned.site).collect::<Vec<_>>()
    };
    let all = Selection::default();
    let every = |selection: Selection, holds: fn(&Site, &Event) -> bool| {
        drawn(selection).iter().all(|site| holds(site, site.event().unwrap()))
    };
    let registers = vec![RegisterSpan::new(crate::testing::register("v4"), 2)];
    for (selection, holds) in [
        (
            Selection { registers, ..all.clone() },
            (|site, _| matches!(site.place, Place::Register(v) if ["v4", "v5"].contains(&&*v.to_string())))
                as fn(&Site, &Event) -> bool,
        ),
        (Selection { occurrences: Some(1..=1), ..all.clone() }, |_, event| event.occurrence == 1),
        (Selection { waves: Some(1..=7), ..all.clone() }, |_, event| event.wave == Some(1)),
        (Selection { window: Some(0..=2), ..all.clone() }, |_, event| event.pc < Pc(0x110)),
        (Selection { pcs: vec![Pc(0x110)], ..all.clone() }, |_, event| event.pc == Pc(0x110)),
        (Selection { workgroups: vec![[1, 0, 0]], ..all.clone() }, |_, event| {
            event.workgroup == [1, 0, 0]
        }),
        (Selection { lanes: Some(LaneMask(0x10)), groups: vec![Group::Vmem], ..all.clone() }, {
            |site, _| site.lanes == Some(Lanes::One(Lane(4)))
        }),
    ] {
        let text = selection.to_string();
        assert!(every(selection, holds), "{text}");
        assert!(!every(all.clone(), holds), "{text} leaves nothing out");
    }
}

/// Permanent faults: every word and bit of a result on every slot that executed the operation, and no
/// other. Lanes 1, 4 and 63 run in slots 1, 4 and 15; the halves in all sixteen.
#[test]
fn permanent_faults_hit_only_used_slots() {
    let trace = trace();
    let mut frame = frame(&[Group::Fp64], FaultModel::FlipOneBit);
    frame.fault.duration = Duration::Permanent(std::num::NonZeroU32::new(3).unwrap());
    let profile = profile_of(std::slice::from_ref(&trace), frame);
    assert_eq!(profile.fault_space.sites, (16 + 16 + 3) * 2 * 32);
    let drawn = draw(&profile, 0, Sampling::Exhaustive);
    let sites: HashSet<Site> =
        drawn.iter().map(|drawn| permanent(&profile, 0, drawn).unwrap().1.site).collect();
    assert_eq!(sites.len() as u64, profile.fault_space.sites);
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
