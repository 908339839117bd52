//! Absence of defects that fault injectors are known for: misclassified outcomes, faults at other sites
//! than drawn, fault models with wrong effects, unreachable parts of the fault space, results of
//! injections that did not happen, and lost results.

use flipwave_analysis::{Outcome, Row};
use flipwave_campaigns::{Campaign, Prepared, RunOptions, Silent, prepare, run};
use flipwave_device::WaveId;
use flipwave_injector::{
    Action, Ending, Event, Fault, FaultModel, Group, Lanes, Place, Planned, Site, inject,
};
use flipwave_isa::{Lane, Pc, Register};
use flipwave_sim::{Executed, Observer, Watch, WaveState};
use flipwave_tests::{
    TestProgram, assemble, example, flipwave, gpu, plan_of, profile_of, rows, site, to_values,
};
use std::collections::{HashMap, HashSet};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

/// Writes a campaign on the kernel `chase` into `folder`.
fn chase(faults: &str, folder: &Path) -> PathBuf {
    let kernels = Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels");
    let text = format!(
        "
name: chase
seed: 5
workload:
  kernel:
    source: {}/chase.cl
    name: chase
    grid: 256
    workgroup: 128
    args:
      - {{buffer: next, type: u32, count: 256, init: {{uniform: [0, 255]}}}}
      - {{buffer: values, type: u32, count: 256, init: {{uniform: [0, 1000]}}}}
      - {{buffer: sums, type: u32, count: 256, output: true}}
      - {{scalar: 20, type: u32}}
faults: {faults}
",
        kernels.display()
    );
    let file = folder.join("chase.yaml");
    std::fs::write(&file, text).expect("a campaign file written");
    file
}

/// A transient flip of one bit.
fn one_bit() -> Fault {
    Fault::transient(FaultModel::FlipOneBit)
}

fn read(file: &Path) -> (Campaign, Prepared) {
    let campaign = Campaign::read(file).unwrap_or_else(|error| panic!("{error}"));
    let prepared = prepare(&campaign).unwrap_or_else(|error| panic!("{error}"));
    (campaign, prepared)
}

fn run_campaign(file: &Path, workers: usize) -> Vec<Row> {
    let (campaign, _) = read(file);
    let folder = tempfile::tempdir().expect("a folder");
    let workers = NonZeroUsize::new(workers).expect("a worker");
    let options = RunOptions::new(folder.path().to_owned(), workers);
    run(&campaign, &options, &mut Silent).unwrap_or_else(|error| panic!("{error}"));
    rows(folder.path())
}

/// Injects every row of a campaign again and classifies the outcome independently.
#[test]
fn a_device_fault_is_due_and_nothing_else_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = chase("{model: flip_one_bit, count: 600}", folder.path());
    let (_, Prepared { workload, .. }) = read(&file);
    let golden = workload.golden().expect("a golden run");
    let sums: Vec<u32> = to_values(&golden.outputs[0].bytes());
    let mut causes: HashMap<&str, u32> = HashMap::new();
    for row in run_campaign(&file, 2) {
        let site = site(&row.site);
        let injection = inject(&workload, &site, &golden.instruction_limits()).expect("injected");
        let struck = injection.struck;
        assert_eq!((struck.before, struck.after), (row.before, row.after), "{site}");
        let (outcome, cause, wrong) = match &injection.ending {
            Ending::Faulted { fault, .. } => (Outcome::Due, Some(fault.cause.name()), None),
            Ending::Completed { outputs, .. } => {
                let found: Vec<u32> = to_values(&outputs[0].bytes());
                let wrong = found.iter().zip(&sums).filter(|(found, sum)| found != sum).count();
                let outcome = if wrong == 0 { Outcome::Masked } else { Outcome::Sdc };
                (outcome, None, Some(wrong as u64))
            }
        };
        assert_eq!(row.outcome, outcome, "{site}");
        if outcome != Outcome::Masked {
            assert_eq!(row.cause.as_deref(), cause, "{site}");
        }
        assert_eq!(row.elements_wrong, wrong, "{site}");
        *causes.entry(cause.unwrap_or("completed")).or_default() += 1;
    }
    // Negative control: both kinds of outcome occur.
    assert!(causes["memory_violation"] > 100 && causes["completed"] > 100, "{causes:?}");
}

/// The event of a transient fault.
fn event(site: &Site) -> Event {
    *site.event().expect("an event")
}

fn wave(event: &Event) -> WaveId {
    WaveId { workgroup: event.workgroup, wave: event.wave.expect("one wave") }
}

/// Register struck at a site, and the lane if the register is per lane.
fn register(site: &Site) -> (Register, Option<Lane>) {
    let Place::Register(register) = site.place else { panic!("{site}") };
    let register = Register::of_id(register).expect("an AMD register");
    let lane = site.lanes.map(|lanes| match lanes {
        Lanes::One(lane) => lane,
        _ => panic!("{site}"),
    });
    (register, lane)
}

/// Observes a fault-free run and records the register values at planned sites, with independent counts of
/// executions.
struct Witness {
    sites: HashMap<(WaveId, Pc), Vec<(usize, Site)>>,
    executions: HashMap<(WaveId, Pc), u64>,
    /// Value of the register, and operation, by number in the plan.
    seen: HashMap<usize, (u64, &'static str)>,
}

impl Witness {
    fn of(plan: &[Planned], dispatch: u32) -> Witness {
        let mut sites: HashMap<_, Vec<_>> = HashMap::new();
        for (number, Planned { site, .. }) in plan.iter().enumerate() {
            let event = event(site);
            if event.dispatch == dispatch {
                sites.entry((wave(&event), event.pc)).or_default().push((number, *site));
            }
        }
        Witness { sites, executions: HashMap::new(), seen: HashMap::new() }
    }
}

impl Observer for Witness {
    fn watches(&mut self, _: WaveId) -> bool {
        true
    }

    fn after(&mut self, executed: &Executed<'_>, state: &mut WaveState<'_>) -> Watch {
        let Executed { inst, wave, lanes } = executed;
        if let Some(sites) = self.sites.get(&(*wave, inst.pc)) {
            let execution = self.executions.entry((*wave, inst.pc)).or_default();
            for (number, site) in
                sites.iter().filter(|(_, site)| event(site).occurrence == *execution)
            {
                let (register, lane) = register(site);
                let is_written =
                    inst.writes.iter().any(|range| range.iter().any(|written| written == register));
                assert!(is_written, "{} does not write the register of {site}", inst.text);
                assert!(lane.is_none_or(|lane| lanes.contains(lane)), "idle lane: {site}");
                let value = state.read(register, lane.unwrap_or(Lane(0)));
                let seen = (value.expect("a register").into(), inst.operation.name());
                self.seen.insert(*number, seen);
            }
            *execution += 1;
        }
        Watch::On
    }
}

#[test]
fn the_site_drawn_is_the_site_hit() {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, count) in [("quickstart", 150), ("reduction", 100), ("saxpy", 100)] {
        let file = example(name, "{model: flip_one_bit, count: 1}", folder.path());
        let (campaign, Prepared { workload, .. }) = read(&file);
        let profile = profile_of(&workload, &one_bit(), &[]);
        let plan = plan_of(&workload, &profile, campaign.seed, count);
        let limits = workload.golden().expect("a golden run").instruction_limits();

        let mut device = gpu(&workload.device).clone();
        let mut seen = HashMap::new();
        for (index, dispatch) in (0..).zip(&workload.program.dispatches) {
            let mut witness = Witness::of(&plan, index);
            device.dispatch_observed(dispatch, &mut witness).expect("a dispatch");
            seen.extend(witness.seen);
        }
        for (number, Planned { site, opcode, .. }) in plan.iter().enumerate() {
            let (value, operation) = seen.get(&number).unwrap_or_else(|| panic!("missed: {site}"));
            assert_eq!(operation, opcode, "{site}");
            let injection = inject(&workload, site, &limits).expect("injected");
            assert_eq!(injection.struck.before, *value, "{name}: {site}");
            let after = site.action.apply(*value, site.place.bits(), Lane(0));
            assert_eq!(Ok(injection.struck.after), after, "{name}: {site}");
        }
    }
}

/// The rows of a campaign with one model on a program that writes registers of every kind.
fn rows_of_model(model: &str) -> Vec<Row> {
    let folder = tempfile::tempdir().expect("a folder");
    let faults = format!("{{model: {model}, count: 250}}");
    let rows = run_campaign(&example("reduction", &faults, folder.path()), 2);
    assert!(rows.iter().all(|row| row.flip_mask == row.before ^ row.after));
    rows
}

#[test]
fn flip_one_bit_inverts_one_bit_and_each_of_them() {
    let rows = rows_of_model("flip_one_bit");
    assert!(rows.iter().all(|row| row.flip_mask.is_power_of_two()));
    assert!(rows.iter().all(|row| row.location != "scc" || row.flip_mask == 1));
    let union = rows.iter().fold(0, |union, row| union | row.flip_mask);
    assert_eq!(union, u64::from(u32::MAX));
}

#[test]
fn flip_two_adjacent_bits_inverts_neighbours() {
    let rows = rows_of_model("flip_two_adjacent_bits");
    let pairs: HashSet<u64> = rows.iter().map(|row| row.flip_mask).collect();
    assert!(pairs.iter().all(|mask| mask >> mask.trailing_zeros() == 0b11));
    assert!(pairs.contains(&0b11) && pairs.contains(&(0b11 << 30)));
    assert!(rows.iter().all(|row| row.location != "scc"), "one bit has no neighbour");
}

#[test]
fn random_value_stores_random_words() {
    let rows = rows_of_model("random_value");
    for row in &rows {
        let site = site(&row.site);
        assert_eq!(site.action, Action::Set(row.after as u32), "{site}");
    }
    let words: Vec<u64> =
        rows.iter().filter(|row| row.location != "scc").map(|row| row.after).collect();
    // A bit is set in half of the words; 60 is more than seven standard deviations.
    let expected = words.len() / 2;
    for bit in 0..32 {
        let set = words.iter().filter(|word| *word >> bit & 1 == 1).count();
        assert!(set.abs_diff(expected) < 60, "bit {bit} is set in {set} of {} words", words.len());
    }
    assert_eq!(words.iter().collect::<HashSet<_>>().len(), words.len(), "duplicate word");
}

#[test]
fn zero_value_stores_zero() {
    let rows = rows_of_model("zero_value");
    assert!(rows.iter().all(|row| row.after == 0));
    assert!(rows.iter().any(|row| row.before != 0), "nothing to set to zero");
}

#[test]
fn both_halves_of_64_bit_results_are_hit_equally() {
    let folder = tempfile::tempdir().expect("a folder");
    let faults = "{model: flip_one_bit, groups: [fp64], count: 1}";
    let (_, Prepared { workload, .. }) = read(&example("jacobi", faults, folder.path()));
    let profile = profile_of(&workload, &one_bit(), &[Group::Fp64]);
    // The destination as the assembler prints it: `v_fma_f64 v[4:5], ...`.
    let low_halves: HashMap<Pc, Register> = profile
        .instructions
        .iter()
        .filter_map(|instruction| {
            let (_, destination) = instruction.text.split_once(" v[")?;
            let low = destination.split_once(':')?.0;
            Some((instruction.pc, format!("v{low}").parse().ok()?))
        })
        .collect();
    let plan = plan_of(&workload, &profile, 1, 2000);
    let (mut low, mut high) = (0u32, 0u32);
    let mut bits = HashSet::new();
    for Planned { site, .. } in &plan {
        let Some(&first) = low_halves.get(&event(site).pc) else { continue };
        let (register, _) = register(site);
        if register == first {
            low += 1;
        } else if Some(register) == first.offset(1) {
            high += 1;
        } else {
            continue;
        }
        bits.insert((register == first, site.action));
    }
    assert!(low + high > 1900, "{low} and {high} of 2,000");
    // Six standard deviations of a fair coin.
    assert!(low.abs_diff(high) < 270, "low halves {low} times, high halves {high} times");
    assert_eq!(bits.len(), 64, "every bit of both halves");
}

/// Two comparisons have a fault space of 65 bits: 64 bits of VCC, and SCC. Each is drawn equally often,
/// including the first and the last.
#[test]
fn every_site_is_drawn_equally_often() {
    const EACH: u64 = 100;
    let kernel = assemble("v_cmp_lt_u32 vcc, 31, v0\n s_cmp_lg_u32 s2, 0");
    let mut program = TestProgram::new(&kernel.code_object);
    let buffer = program.output(&[0u32; 64]);
    program.launch("planted", [64, 1, 1], [64, 1, 1], &[buffer]);
    let workload = program.workload();
    let profile = profile_of(&workload, &one_bit(), &[Group::Compare]);
    assert_eq!(profile.fault_space.sites, 65);
    let mut draws: HashMap<(Register, Action), u64> = HashMap::new();
    for Planned { site, .. } in plan_of(&workload, &profile, 3, 65 * EACH) {
        *draws.entry((register(&site).0, site.action)).or_default() += 1;
    }
    assert_eq!(draws.len(), 65, "{draws:?}");
    // Six standard deviations.
    assert!(draws.values().all(|count| count.abs_diff(EACH) < 60), "{draws:?}");
}

#[test]
fn unreached_site_is_an_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = chase("{model: flip_one_bit, count: 10}", folder.path());
    let row = run_campaign(&file, 1).remove(0);
    let site = site(&row.site);
    let (event, (register, lane)) = (event(&site), register(&site));
    for (from, to, words) in [
        (format!("occurrence={}", event.occurrence), "occurrence=1000000", "never reached"),
        (format!("pc={}", event.pc), "pc=0x1", "never reached"),
        ("dispatch=0".to_owned(), "dispatch=1", "the workload has 1"),
        (format!("wave={}", wave(&event).wave), "wave=2", "never reached"),
        (
            format!("register={register}"),
            "register=v255",
            "register=v255 does not exist or is read-only",
        ),
    ] {
        let mut site = row.site.replacen(&from, to, 1);
        assert_ne!(site, row.site, "{from}");
        if to == "register=v255" && lane.is_none() {
            site = site.replace("register", "lane=0 register");
        }
        let arguments = ["replay".as_ref(), file.as_os_str(), "--site".as_ref(), site.as_ref()];
        let finished = flipwave(folder.path(), &arguments, &[]);
        assert_eq!((finished.code, finished.stdout.as_str()), (Some(2), ""), "{site}");
        assert!(finished.stderr.contains(words), "{site}:\n{}", finished.stderr);
    }
}

/// Counts the fault space of a run from the EXEC before each instruction.
#[derive(Default)]
struct Tally {
    exec: HashMap<WaveId, u64>,
    executed: u64,
    places: u64,
}

impl Observer for Tally {
    fn watches(&mut self, _: WaveId) -> bool {
        true
    }

    fn after(&mut self, executed: &Executed<'_>, state: &mut WaveState<'_>) -> Watch {
        let Executed { inst, wave, .. } = executed;
        // Waves start with all lanes active in the programs of this test.
        let exec = self.exec.get(wave).copied().unwrap_or(u64::MAX);
        assert!(
            inst.operation.name() != "v_writelane_b32",
            "it writes one lane, independently of EXEC"
        );
        let written: HashSet<Register> =
            inst.writes.iter().flat_map(|range| range.iter()).collect();
        for register in written {
            self.places += match register {
                Register::Vgpr(_) | Register::AccVgpr(_) => 32 * u64::from(exec.count_ones()),
                Register::Scc => 1,
                Register::Mode => 0,
                _ => 32,
            };
        }
        self.executed += 1;
        let half = |register| u64::from(state.read(register, Lane(0)).expect("EXEC"));
        let exec = half(Register::ExecLo) | half(Register::ExecHi) << 32;
        self.exec.insert(*wave, exec);
        Watch::On
    }
}

#[test]
fn profile_counts_every_site_once() {
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["quickstart", "reduction", "stencil", "jacobi"] {
        let file = example(name, "{model: flip_one_bit, count: 1}", folder.path());
        let (_, Prepared { workload, .. }) = read(&file);
        let mut tally = Tally::default();
        let mut device = gpu(&workload.device).clone();
        for dispatch in &workload.program.dispatches {
            tally.exec.clear();
            device.dispatch_observed(dispatch, &mut tally).expect("a dispatch");
        }
        let profile = profile_of(&workload, &one_bit(), &[]);
        let fault_space = &profile.fault_space;
        assert_eq!(
            (fault_space.executed, fault_space.sites),
            (tally.executed, tally.places),
            "{name}"
        );
        let by_group: u64 = fault_space.groups.iter().map(|group| group.sites).sum();
        assert_eq!(by_group, tally.places, "{name}");
        let by_instruction: u64 = profile.instructions.iter().map(|inst| inst.sites).sum();
        assert_eq!(by_instruction, tally.places, "{name}");
    }
}

/// The numbers of injections are not multiples of the numbers of workers, so a lost remainder would be
/// found.
#[test]
fn every_injection_has_its_row() {
    let folder = tempfile::tempdir().expect("a folder");
    for (count, workers) in [(1, 3), (37, 2), (37, 3), (101, 5)] {
        let file = chase(&format!("{{model: flip_one_bit, count: {count}}}"), folder.path());
        let indices: Vec<u64> =
            run_campaign(&file, workers).iter().map(|row| row.injection).collect();
        assert!(indices.iter().copied().eq(0..count), "{count} on {workers} workers: {indices:?}");
    }
}
